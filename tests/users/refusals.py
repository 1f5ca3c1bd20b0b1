"""What is not compiled, and what its error must say."""
