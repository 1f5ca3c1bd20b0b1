"""pyrelay timed against NumPy, numba, JAX and PyTorch; `make bench` runs it."""
