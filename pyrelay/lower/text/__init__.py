"""Kernel IR and plans as text: the kernel language, CUDA C++, listings for people."""
