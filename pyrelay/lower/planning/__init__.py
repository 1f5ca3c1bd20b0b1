"""Typed Core to plans: what runs between kernels."""
