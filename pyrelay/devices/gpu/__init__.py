"""Programs on GPUs: CUDA sources, plans as Python, graphs and persistent loops, drivers."""
