"""Scalars as the 64-bit words of a frame, and back.

In: words and the kind of a scalar (`lower/planning/boundary.py`: Python's int, float, bool,
complex, or a dtype's name, with "bool_" for NumPy's bool), or a number. Out: the other one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning.boundary import PYTHON_SCALARS


def decode(kind: str, words: Sequence[int]) -> Any:
    """The Python number that words stand for; NumPy's kinds give Python's number of their value."""
    if kind in ("complex", "complex128"):
        return complex(*struct.unpack("<dd", struct.pack("<qq", *words)))
    raw = struct.pack("<q", words[0])
    if kind in ("float", "float64"):
        return struct.unpack("<d", raw)[0]
    if kind == "float32":
        return struct.unpack("<f", raw[:4])[0]
    if kind == "float16":
        return struct.unpack("<e", raw[:2])[0]
    if kind == "bfloat16":
        return struct.unpack("<f", b"\0\0" + raw[:2])[0]
    if kind == "complex64":
        return complex(*struct.unpack("<ff", raw))
    if kind in ("bool", "bool_"):
        return bool(words[0])
    return struct.unpack("<Q", raw)[0] if kind == "uint64" else words[0]


def scalar(kind: str, words: Sequence[int]) -> Any:
    """The object that words stand for: a Python number, or a NumPy scalar."""
    value = decode(kind, words)
    return value if kind in PYTHON_SCALARS else numpy_dtype(kind).type(value)


def bfloat16_word(value: float) -> bytes:
    """The bytes of a word that holds a number which is a bfloat16's."""
    return struct.pack("<f", value)[2:] + bytes(6)


def encode(kind: str, value: Any) -> list[int]:
    """The words of a number. Raises OverflowError where an integer does not fit 64 bits."""
    if kind in ("complex", "complex128"):
        return list(struct.unpack("<qq", struct.pack("<dd", value.real, value.imag)))
    if kind in ("float", "float64"):
        raw = struct.pack("<d", value)
    elif kind == "float32":
        raw = struct.pack("<fxxxx", value)
    elif kind == "float16":
        raw = struct.pack("<exxxxxx", value)
    elif kind == "bfloat16":
        raw = bfloat16_word(value)
    elif kind == "complex64":
        raw = struct.pack("<ff", value.real, value.imag)
    else:
        number = int(value)
        if not -(2**63) <= number < (2**64 if kind == "uint64" else 2**63):
            raise OverflowError(f"{number} does not fit 64 bits")
        raw = (number % 2**64).to_bytes(8, "little")
    return [int.from_bytes(raw, "little", signed=True)]
