"""The programs, one module per framework.

Each module has `PROGRAMS`, from a program's name to a function that takes the workload's NumPy
arguments and returns a thunk; calling the thunk runs the program once and waits for its result.
`as_arrays` turns such a result into a tuple of NumPy arrays. `version()` says what was timed.
"""
