"""Numerical kernels as texts: products, convolutions, attention, elementary functions."""
