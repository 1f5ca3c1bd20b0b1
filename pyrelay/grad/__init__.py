"""Reverse mode as a Core -> Core transformation."""

from pyrelay.grad.expand import expand, vjp_function

__all__ = ["expand", "vjp_function"]
