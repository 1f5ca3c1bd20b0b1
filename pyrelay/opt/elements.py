"""Single elements and the integers that say which: what passes that write loops write in them.

In: a builder and handles of Core. Out: handles of what was read, stored or made an index.
"""

from __future__ import annotations

from pyrelay.ir.build import Builder, Handle, Operand
from pyrelay.ir.op import OPS
from pyrelay.ir.types import i64


def integer(build: Builder, k: Operand) -> Handle:
    """An integer of the program whose arithmetic needs no check for overflow."""
    return build.handle(build.cast(k, i64))


def read(build: Builder, x: Handle, *at: Operand) -> Handle:
    """The element of an array at a position, an index for each axis."""
    element: Handle = build.call(OPS["index"], x, *at, axes=tuple(range(x.rank)))
    return element


def stored(build: Builder, x: Handle, value: Operand, *at: Operand) -> Handle:
    """An array with another element at a position."""
    array: Handle = build.call(OPS["index_update"], x, value, *at, axes=tuple(range(x.rank)))
    return array
