"""Which arguments a number is computed of that had to be known: another attempt may know those.

In: an attempt that failed, and the error, which says by `unknown` where the number is. Out: leaves
of arguments that are ints or bools, and that it depends on: by what computes it, by the conditions
of branches and loops that chose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom, If, Let, Loop, Var
from pyrelay.ir.walk import blocks, operands
from pyrelay.records import dataclass


@dataclass(frozen=True)
class Unknown:
    """A number that only the running program knows, and the blocks that were open around it."""

    atom: Atom | None
    lets: Sequence[Sequence[Let]]  # as they were: those of an attempt are taken back
    origins: Mapping[Var, Any]  # of parameters, as `Program` has them


def leaves_of(failure: Exception) -> list[int]:
    """The leaves that the number depends on which had to be known; none if that is not what failed.
    """
    unknown = failure.unknown if isinstance(failure, errors.StaticValueError) else None
    if unknown is None:
        return []
    made = {var: atoms for lets in unknown.lets for var, atoms in _made(lets)}
    found: dict[int, None] = {}
    pending: list[Any] = [unknown.atom]
    seen = set()
    while pending:
        atom = pending.pop()
        if not isinstance(atom, Var) or atom in seen or not _is_whole(atom):
            continue
        seen.add(atom)
        match unknown.origins.get(atom):
            case ("leaf", leaf):
                found[leaf] = None
        pending += made.get(atom, ())
    return list(found)


def _is_whole(var: Var) -> bool:
    ty = var.type
    return isinstance(ty, types.TensorType) and not ty.shape and ty.dtype.kind in "biu"


def _made(lets: Sequence[Let]) -> Iterator[tuple[Var, tuple[Any, ...]]]:
    """Variables, those of blocks inside too, and what decides on each."""
    for let in lets:
        rhs = let.rhs
        if isinstance(rhs, If):
            for k, out in enumerate(let.outs):
                yield out, (rhs.cond, rhs.then.results[k], rhs.orelse.results[k])
        elif isinstance(rhs, Loop):
            yield from _carried(let, rhs)
        else:
            for out in let.outs:
                yield out, operands(rhs)
        for block in blocks(rhs):
            yield from _made(block.lets)


def _carried(let: Let, loop: Loop) -> Iterator[tuple[Var, tuple[Any, ...]]]:
    tests = () if loop.test is None else loop.test.results
    ending = (loop.count, *tests[:1], *(loop.body.results[:1] if loop.exits else ()))
    for k, (var, init) in enumerate(zip(loop.carried, loop.init, strict=True)):
        atoms = (*ending, init, loop.body.results[k + loop.exits])
        yield var, atoms
        yield let.outs[k], atoms
    yield from zip(loop.handed, ((a,) for a in tests[1:]), strict=True)
