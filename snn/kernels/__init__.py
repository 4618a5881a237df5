"""One folder for each operator, one file for each of its backends; `snn.dispatch` says how to add one."""
