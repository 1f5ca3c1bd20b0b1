"""What names of Python and NumPy mean in a program: a handler for each."""
