"""NumPy's functions of small, empty and unusual arrays: the value, the type and what is raised.

In: expressions over `a` and `b` (a vector of a type), `A` (a matrix), `e` (an empty vector), `E`
(of no rows), `m` (a mask) and `M` (one of the matrix). Each is inferred and run beside plain
Python, for several types of the elements.
"""

from __future__ import annotations

import linecache
import re
from typing import Any

import numpy as np
import pytest

from tests.infer.running import assert_same_outcome, interpreted, plainly

CASES = {
    "f8 f4 i4 ?": """
        np.roll(e, 1); np.isin(1, a); np.tensordot(A, A, 2); np.size(A, axis=(0, 1));
        np.fromiter(a, dtype=float, count=2); np.fromiter(a, dtype=float, count=9);
        np.vectorize(lambda x, y: x + y)(A, A); np.copy(A, order='F'); np.min_scalar_type(a)""",
    "i4 u1 i8": """
        np.add.reduceat(a, [0, 3]); np.multiply.reduceat(a, [0, 3]);
        np.logical_and.reduceat(a, [0, 3]); np.bitwise_and.reduce(e); np.bitwise_or.reduce(E);
        np.bitwise_xor.reduce(A, axis=(0, 1), keepdims=True); np.gcd.reduce(e);
        np.bitwise_or.reduce(A, axis=0, where=M); np.bitwise_and.reduce(A, axis=None, initial=7);
        np.clip(a, 0, 300); np.clip(a, -300, 3);
        np.isclose(a, b, atol=1); np.nanmean(a); np.nanvar(a, ddof=1); np.nanmedian(e)""",
    "f8 f4": """
        np.nanmedian(e); np.nanmedian(E, axis=1); np.nanpercentile(e, 30); np.nanquantile(e, [.5]);
        np.fmod(a, 2); np.fmod(-a, 2); np.cumsum(a, out=np.empty(5)); np.sum(a, out=np.empty(()));
        np.polydiv(a, b[1:3]); np.nanmean(A, axis=0, dtype=np.int64);
        np.quantile(A, [.1, .7], axis=0); np.quantile(a, .3, method='closest_observation');
        np.quantile(a, .4, method='averaged_inverted_cdf')""",
    "f4": """
        np.cov(A); np.corrcoef(A); np.sort(a, axis=1); np.argsort(a, axis=-2); np.sort(A, axis=2);
        np.argsort(A, axis=(0, 1)); np.sort(a, axis=-1); np.argsort(a[0]);
        np.argsort(np.asarray(a[0]), axis=1); np.sort(a[0])""",
    "?": """
        np.arctan2(a, 2); np.copysign(a, 2); np.add.reduceat(A, [0, 1], axis=1); np.bincount(a);
        np.isclose(a, b); np.logaddexp(a, 1)""",
    "i4 f4 u8": "np.polyval([1, 2, 3], a); np.arange(a[1])",
    "i4 u8": "o = a.copy(); np.copyto(o, 1.5); o",
    "i4 i8 f4": "np.select([m, a > b], [a, 2], 3)",
    "c16 c8": """
        np.round(a, 1); np.round(a); np.median(a); np.digitize(a, [0, 1, 2]); np.nanquantile(a, .5);
        np.cov(A)""",
    "i4": """
        np.subtract.reduce(A, axis=None); np.subtract.reduce(e); np.nanmean(E, axis=0);
        np.min_scalar_type(300); np.min_scalar_type(-1); np.maximum.reduce(a, dtype=np.float64)""",
}  # fmt: skip


def arrays(dtype: str) -> dict[str, Any]:
    kind = np.dtype(dtype)
    values = np.array([3, 7, -0.0, 1, 4.5] if kind.kind in "fc" else [3, 7, 0, 1, 4])
    if kind.kind == "c":
        values = values + 1j * values[::-1] / 3
    a, b = values.astype(kind), values[::-1].astype(kind)
    return {
        "a": a, "b": b, "A": np.stack([a[:4], b[:4], a[1:]]), "e": a[:0], "E": a[:0].reshape(0, 3),
        "m": np.array([True, False, True, True, False]), "M": np.arange(12).reshape(3, 4) % 5 > 1,
    }


def made(expression: str) -> tuple[Any, list[str]]:
    *first, last = expression.split("; ")
    used = [k for k in "abAeEmM" if re.search(rf"(?<![\w.'])\b{k}\b(?!\s*=[^=])", expression)]
    lines = [f"def f({', '.join(used)}):", *(f"    {line}" for line in first), f"    return {last}"]
    name = f"<{expression}>"
    linecache.cache[name] = (1, None, [f"{line}\n" for line in lines], name)
    held: dict[str, Any] = {"np": np}
    exec(compile("\n".join(lines), name, "exec"), held)
    return held["f"], used


def expressions() -> list[tuple[str, str]]:
    found = []
    for kinds, text in CASES.items():
        whole = " ".join(text.split())
        parts = [whole] if whole.startswith("o =") else whole.split("; ")
        found += [(part, dtype) for part in parts for dtype in kinds.split()]
    return found


@pytest.mark.parametrize(("expression", "dtype"), expressions())
def test_what_numpy_gives(expression: str, dtype: str) -> None:
    function, used = made(expression)
    held = arrays(dtype)
    args = tuple(held[k] for k in used)
    got, wanted = interpreted(function, args), plainly(function, args)
    assert_same_outcome(got, wanted)
    if wanted.error is None:
        assert type(got.result) is type(wanted.result)
