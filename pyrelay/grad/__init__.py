"""Reverse mode as a Core -> Core transformation."""
