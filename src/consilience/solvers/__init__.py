"""Solvers: arrays in, a value and its proof out; they know nothing of views, kernels or labels."""
