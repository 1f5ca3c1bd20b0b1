"""How scans go, as CUDA C++: what goes from element to element, and how it is joined.

In: which scan, a dtype. Out: pieces of text that kernels of scans are made of.
"""

from __future__ import annotations

from pyrelay.ir.types import DType
from pyrelay.lower.text.cuda_numbers import literal
from pyrelay.ops.running import identity, step_of
from pyrelay.ops.scalar import SCALARS
from pyrelay.records import dataclass

EACH = 8
"""Values of a tile that a thread has, where these are elements."""

IN_WARPS = """\
#pragma unroll
        for (int r = 0; r < {rounds}; r++) {{
#pragma unroll
            for (int p = 1; p < {pack}; p++) own[r][p] = combine(own[r][p - 1], own[r][p]);
            upto[r] = own[r][{pack} - 1];
        }}
        // The sums of the threads before, in the warp.
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {{
#pragma unroll
            for (int r = 0; r < {rounds}; r++) {{
                const State before = pyrelay_from_below(upto[r], step);
                if (lane >= step) upto[r] = combine(before, upto[r]);
            }}
        }}
"""
"""How threads that have `own`, packs in rounds, come by the sums `upto` the end of theirs in the
warp."""

#: What stands before the first element, and two values that follow each other as one.
_JOINED = {"cumsum": (-0.0, "a + b"), "cumprod": (1, "a * b")}


@dataclass(frozen=True, slots=True)
class Form:
    """How a scan goes, as text: the type of what goes from element to element, what it is before
    the first one, how `a` and the `b` that follows it are one, what enters at `at`, and the result
    of `v`; how many bytes such a value has, and how many of them a thread has of a tile."""

    state: str
    identity: str
    combined: str
    entering: str
    value: str
    nbytes: int
    each: int = EACH


def is_grouped(name: str, dtype: DType) -> bool:
    """Whether elements may be taken together before what precedes them is known."""
    return dtype.kind in "iu" if name == "cumprod" else name != "linear_scan"


def form_of(name: str, dtype: DType) -> Form:
    """The form of a scan."""
    t, step = dtype.name, step_of(name)
    if step is not None:
        first = literal(identity(step, dtype), dtype)
        joined = SCALARS[step].cuda(dtype).format("a", "b")
        return Form(t, first, joined, "x0[at]", "v", dtype.size)
    if name in _JOINED:
        start, joined = _JOINED[name]
        return Form(t, literal(start, dtype), joined, "x0[at]", "v", dtype.size)
    state = f"pyrelay_affine<{t}>"
    first = f"State({literal(1, dtype)}, {literal(-0.0, dtype)})"
    joined = "b.factor * a.factor, b.factor * a.term + b.term"
    return Form(state, first, joined, "x0[at], x1[at]", "v.term", 2 * dtype.size, EACH // 2)
