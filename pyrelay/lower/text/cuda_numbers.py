"""Numbers and parentheses as C++ text.

In: a number and its dtype, or an expression. Out: text; a number is exactly what it was.
"""

from __future__ import annotations

import numpy as np

from pyrelay.ir.types import DType, f32, f64


def literal(value: object, dtype: DType) -> str:
    """A number as C++ text of exactly its dtype."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        number = complex(value)  # type: ignore[call-overload]
        part = f32 if dtype.size == 8 else f64
        return f"{dtype.name}({_float(number.real, part)}, {_float(number.imag, part)})"
    if dtype.kind == "f":
        return _float(float(value), dtype)  # type: ignore[arg-type]
    number = int(value)  # type: ignore[call-overload]
    if dtype.size < 8:
        return f"{dtype.name}({number})"
    if dtype.kind == "u":
        return f"{number}ull"
    if number == -(2**63):
        return "(-9223372036854775807ll - 1)"
    return f"({number}ll)" if number < 0 else f"{number}ll"


def _float(value: float, dtype: DType) -> str:
    if dtype.size == 2:
        return f"{dtype.name}({bare(_float(value, f32))})"
    single = dtype == f32
    with np.errstate(over="ignore"):
        short = str(np.float32(value)) if single else repr(float(value))
    text = {"inf": "PYRELAY_INFINITY", "-inf": "-PYRELAY_INFINITY", "nan": "PYRELAY_NAN"}.get(short)
    if text is not None:
        return f"f32({text})" if single else f"({text})"
    short += "" if "." in short or "e" in short else ".0"
    return f"({short}{'f' * single})" if short.startswith("-") else short + "f" * single


def bare(text: str) -> str:
    """Without the parentheses around a whole expression."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]
