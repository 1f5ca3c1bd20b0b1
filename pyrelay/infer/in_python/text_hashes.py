"""hash() of a text, as CPython has it in this process, in plain Python.

In: code points, and the key that each process draws for itself (own_arrays.py), two np.uint64. Out:
an int. The key is data of a program, so one that is kept on disk serves every process.

Source: Aumasson and Bernstein, SipHash (2012), with one round for each word and three at the end,
as in CPython 3.11 to 3.14, Python/pyhash.c; it is of the bytes that a str has inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import once

_STARTS = (
    np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D),
    np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573),
)  # fmt: skip
_LAST = np.uint64(0xFF)


def _turned(word: Any, by: int) -> Any:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


def _round(a: Any, b: Any, c: Any, d: Any) -> Any:
    a, c = a + b, c + d
    b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
    a = _turned(a, 32)
    c, a = c + b, a + d
    b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
    return a, b, _turned(c, 32), d


@once
def hash_of_codes(codes: Any, key: Any) -> Any:
    """The hash of the text with these code points, an array, np.uint64."""
    if len(codes) == 0:
        return np.uint64(0)
    greatest = np.max(codes)
    width = 1 if greatest < 256 else 2 if greatest < 65536 else 4  # bytes of each
    a, b = key[0] ^ _STARTS[0], key[1] ^ _STARTS[1]
    c, d = key[0] ^ _STARTS[2], key[1] ^ _STARTS[3]
    word, filled = np.uint64(0), 0
    for code in codes:
        word = word | (np.uint64(code) << np.uint64(8 * filled))
        filled += width
        if filled == 8:
            a, b, c, d = _round(a, b, c, d ^ word)
            a = a ^ word
            word, filled = np.uint64(0), 0
    word = word | (np.uint64(len(codes) * width) << np.uint64(56))
    a, b, c, d = _round(a, b, c, d ^ word)
    a, b, c, d = _round(a ^ word, b, c ^ _LAST, d)
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    found = a ^ b ^ c ^ d
    return found - np.uint64(1) if found + np.uint64(1) == np.uint64(0) else found
