"""Strings and bytes at the boundary: the code points of a string that is data, and back.

In: strings and bytes of the caller's. Out: arrays of code points, or of items, which say
nothing of the length in a key.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

#: Strings up to this length are known while compiling where they are arguments: names of choices.
MOST_KNOWN = 16


def from_codes(codes: Any) -> str:
    """The string of these code points."""
    return np.asarray(codes, "<u4").tobytes().decode("utf-32-le", "surrogatepass")


def from_items(codes: list[int]) -> str:
    """The string of the code points in a list: one that a program made longer item by item."""
    return "".join(map(chr, codes))


def from_row(codes: np.ndarray[Any, Any]) -> str:
    """`from_items` of an array: a few characters are joined sooner than a codec is called."""
    return from_items(codes.tolist()) if len(codes) < 32 else from_codes(codes)


def texts_of(codes: Any, lengths: Any) -> list[str]:
    """The strings whose code points begin the rows of a matrix, as many as the lengths say."""
    whole = from_codes(codes[np.arange(codes.shape[1]) < lengths[:, None]])
    ends = lengths.cumsum().tolist()
    return [whole[start:end] for start, end in itertools.pairwise([0, *ends])]


def items_of_bytes(value: bytes) -> np.ndarray[Any, Any]:
    """The items of bytes, as uint8: an array over their memory."""
    return np.frombuffer(value, np.uint8)


def codes_of(string: str) -> np.ndarray[Any, Any]:
    """The code points of a string, as int32."""
    return np.frombuffer(string.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int32)
