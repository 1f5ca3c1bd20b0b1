"""Passes from Core to Core, one per file."""
