"""Python's garbage collector while a program is compiled.

In: a block of code. Out: the same with fewer collections: of the many small objects that a compiler
makes, next to all are in use until it is done, and each look through them finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS, _YOUNG = 200_000, 5


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect after this many new objects, instead of after 700; as before, afterwards.

    A process that does not collect, or more seldom, stays as it is.
    """
    first, second, third = gc.get_threshold()
    if 0 < first < _OBJECTS:
        gc.set_threshold(_OBJECTS, min(second, _YOUNG), third)
    try:
        yield
    finally:
        gc.set_threshold(first, second, third)
