"""Modules that cannot be imported here are not searched for examples."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["snn/kernels/*/triton_kernels.py"]
