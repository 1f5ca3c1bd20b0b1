"""Python's garbage collector while a program is compiled.

In: a block of code. Out: the same with fewer collections: of the many small objects that a compiler
makes, next to all are in use until it is done, and each look through them finds nothing. Nor does
one follow at once, while a process waits for its first results: it took 32 of an LSTM's 480 ms.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS, _YOUNG = 200_000, 5
_UNSEEN = 300_000
"""Objects of a process's first programs, some 30 MB, of which up to half are garbage."""

_unseen = 0


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect after this many new objects, instead of after 700; as before, afterwards.

    A process that does not collect, or more seldom, stays as it is.
    """
    first, second, third = gc.get_threshold()
    fewer = 0 < first < _OBJECTS
    if fewer:
        gc.set_threshold(_OBJECTS, min(second, _YOUNG), third)
    try:
        yield
    finally:
        if fewer:
            _count_as_old()
        gc.set_threshold(first, second, third)


def _count_as_old() -> None:
    """Young objects count as old, for the collector's next look at everything, until there were too
    many of them. Where somebody froze objects, they would count as old too: nothing is done then,
    nor asked again, as Python goes through all that are frozen to count them.
    """
    global _unseen
    young = gc.get_count()[0]
    if _unseen + young > _UNSEEN:
        return
    if gc.get_freeze_count():
        _unseen = _UNSEEN
        return
    _unseen += young
    gc.freeze()
    gc.unfreeze()
