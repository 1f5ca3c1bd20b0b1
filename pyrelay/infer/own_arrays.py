"""Arrays that pyrelay makes itself while it compiles, and that programs capture.

In: constants. Out: the same array each time, so that a program finds it again, and the call that
makes it, by which another process has one of its own (`store`), without the rest of the compiler.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pyrelay.infer.containers.code_points import codes_of

Array: TypeAlias = np.ndarray[Any, Any]
Maker: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a function of this module, and its arguments."""

_Function = TypeVar("_Function", bound=Callable[..., Array])

_made: dict[int, tuple[Array, Maker]] = {}  # by id; what stands here stays


def _own(function: _Function) -> _Function:
    """Decorator: one array for each arguments."""

    @functools.cache
    def made(*args: Any) -> Array:
        array = function(*args)
        _made[id(array)] = array, (function.__name__, args)
        return array

    return functools.wraps(function)(made)  # type: ignore[return-value]


def maker_of(value: Any) -> Maker | None:
    """What makes an object, if it is an array that pyrelay made."""
    found = _made.get(id(value))
    return None if found is None else found[1]


@_own
def codes(string: str) -> Array:
    """The code points of a string, as int32."""
    return codes_of(string)


def is_of_text(value: Any) -> bool:
    """Whether an array is one of `codes`."""
    maker = maker_of(value)
    return maker is not None and maker[0] == codes.__name__


def _have(name: str) -> Array:
    """Which code points are characters with a property, the name of a method of str."""
    codes = np.arange(0x110000, dtype=np.uint32)
    if name == "isascii":
        return codes < 128
    # NumPy asks the same tables: a hundredth of a second, and a tenth for a loop of Python's.
    found: Array = getattr(np.strings, name)(codes.view("U1"))
    return found


@_own
def bounds_of(name: str) -> Array:
    """Where a property of characters, the name of a method of str, begins and ends, in turn."""
    holds = _have(name)
    return np.flatnonzero(np.diff(holds, prepend=False, append=False))


@_own
def cases_of(name: str) -> Array:
    """Characters that a method of str makes others of, by code point, and what it makes of them: in
    a second row, -1 where that is several characters."""
    change = getattr(str, name)
    found = []
    for first in range(0, 0x110000, 256):
        block = "".join(map(chr, range(first, first + 256)))
        if change(block) == block:  # most are
            continue
        for code, character in enumerate(block, first):
            made = change(character)
            if made != character:
                found.append((code, ord(made) if len(made) == 1 else -1))
    return np.array(found, np.int64).T.copy()


@_own
def zeros_of_scripts() -> Array:
    """The code points of the zeros of all scripts: ten digits follow one another."""
    return np.array([code for code in np.flatnonzero(_have("isdecimal")) if int(chr(code)) == 0])


HASH_OF_A_TEXT = hash("a text")
"""Another in each process: what a program guards that has the order of a known set of texts."""

HASHES_TEXTS = sys.implementation.name == "cpython" and sys.hash_info.algorithm == "siphash13"
"""Whether the hash of a text is what in_python/text_hashes.py says, with the key below."""


@_own
def key_of_hashes() -> Array:
    """What this process hashes texts with: two words, as uint64."""
    return np.array((ctypes.c_uint64 * 2).in_dll(ctypes.pythonapi, "_Py_HashSecret"), np.uint64)


@_own
def numbers(row: tuple[int, ...]) -> Array:
    """Integers, as int64."""
    return np.array(row, np.int64)


__all__ = [
    "HASHES_TEXTS", "HASH_OF_A_TEXT", "Maker", "bounds_of", "cases_of", "codes", "is_of_text",
    "key_of_hashes", "maker_of", "numbers", "zeros_of_scripts",
]
