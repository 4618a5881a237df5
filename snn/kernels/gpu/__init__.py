"""What the Triton kernels share: whether they can run here."""
