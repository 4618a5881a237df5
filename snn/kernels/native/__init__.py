"""What the compiled CPU kernels share: compiling once, vector primitives, and threads."""
