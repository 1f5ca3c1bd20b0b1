"""Whether loops over rows of matrices read neighbours in these.

In: a kernel of a program's loops, for the CPU. Out: whether its innermost loops do nothing but
compute, load and store, in branches compute alone, and one of them reads elements of a row that are
few places apart, as

    for i in range(1, n - 1):
        for j in range(1, m - 1):
            out[i, j] = a[i, j - 1] + a[i, j + 1]

LLVM leaves out loads of what a round before has loaded (GVN), and hands on the number from round to
round. A vector of such is spliced of two others, and what is left of a row then goes one by one:
with rows of a hundred elements that takes up to 1.3 times as long. So loops of such kernels are
made vectors before anything is left out (`devices/compiler/kernel_compiler`). Rows that are
thousands of elements long gain some percent by what is left out, and so do loops of one row, which
mostly are long, but for elements of four bytes or fewer in loops that go through them again: of
these up to 63 would go one by one.
"""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Load,
    Read,
    Statement,
    Store,
    bodies,
    has_loops,
)
from pyrelay.lower.passes.distinct_places import Integers, places, strides

_SHORT = 4  # bytes
_NEAR = 8  # places that neighbours are apart, at most


def has_row_windows(kernel: Kernel) -> bool:
    """Whether loops of a kernel are to be made vectors before loads are left out."""
    return kernel.apart and bool(_found(kernel.body, Integers()))


def _found(body: Body, integers: Integers) -> bool | None:
    """Whether one of the innermost loops reads neighbours; None if one does more than that."""
    found = False
    for statement in body:
        integers.note(statement)
        for each in bodies(statement):
            inside = Integers(integers)
            if isinstance(statement, For):
                if not has_loops(each):
                    if not all(map(_is_straight, each)):
                        return None
                    found |= _reads_neighbours(statement, integers)
                    continue
                inside.enter(statement)
            inner = _found(each, inside)
            if inner is None:
                return None
            found |= inner
    return found


def _is_straight(statement: Statement) -> bool:
    """Whether a statement computes, loads, stores, or chooses between numbers by branches."""
    if isinstance(statement, If):
        parts = statement.then + statement.orelse
        return all(isinstance(s, (Compute, Assign, Read)) for s in parts)
    return isinstance(statement, (Compute, Load, Store, Read))


def _reads_neighbours(loop: For, around: Integers) -> bool:
    rows = {step for step, _ in around.all_steps()}
    steps = strides(loop, len(loop.body), around)
    loads = [
        (access.array, place) for access, place in places(loop, around).items()
        if isinstance(access, Load) and steps[access] == 1 and rows
        and (access.out.dtype.size <= _SHORT or rows & set(dims.symbols(place)))
    ]  # fmt: skip
    for number, (array, place) in enumerate(loads):
        before = dims.multiply(-1, place)
        for other, there in loads[:number]:
            apart = dims.add(there, before) if array == other else 0
            if isinstance(apart, int) and 0 < abs(apart) <= _NEAR:
                return True
    return False
