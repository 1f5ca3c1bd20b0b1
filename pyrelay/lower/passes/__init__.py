"""Passes over kernel IR, one file each."""
