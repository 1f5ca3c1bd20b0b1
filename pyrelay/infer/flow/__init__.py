"""Control flow: branches, loops, exceptions, generators, and joining what they made."""
