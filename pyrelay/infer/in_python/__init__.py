"""Library functions written as plain Python over NumPy, which our own frontend compiles.

In and out of each: what the function of the same name takes and gives, for the arguments listed.
They run as they are; `names.composed` enters those of a module's `__all__` in the table of names.
Derivatives follow from their bodies.
"""

from typing import NoReturn


def refuse(message: str) -> NoReturn:
    """Say that these arguments are not compiled: an error of compilation, at the user's line."""
    raise NotImplementedError(message)
