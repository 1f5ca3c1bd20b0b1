"""The native run time: executor, memory, threads, and the way of Python objects in and out."""
