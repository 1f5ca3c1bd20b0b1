"""Extents that pools of nodes begin with: the arguments that say them are known beforehand.

In: the fields of the first node of each kind, the ints among the arguments. Out: which arguments
say the shapes of the arrays in a field (`Plan.lengths`), and their extents, for the empty pool of
the next attempt. So all nodes are of one shape, and nothing has to be checked.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.plans import Plan
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Var
from pyrelay.ir.op import OPS

Lengths = Mapping[str, tuple[Extent | None, ...]]
"""The extents of the arrays in a column, as far as they are foreseen."""


def note(it: Interpreter, plan: Plan, kind: int, fields: Mapping[str, V.Value]) -> None:
    """Note which arguments say the shapes of the arrays in a node, if it is the first of a kind."""
    for name, value in fields.items():
        if isinstance(value, V.ArrayRef):
            found = tuple(map(it.program.length_leaves.get, value.type.shape))
            plan.lengths.setdefault(f"{kind}.{name}", found)


def foreseen(it: Interpreter, plan: Plan, params: Mapping[int, Var]) -> Lengths:
    """The extents that a pool begins with. params: the parameters of the program, by leaf."""
    def length(leaf: int | None) -> Extent | None:
        return None if leaf is None or leaf not in params else _extent(it, leaf, params[leaf])

    return {column: tuple(map(length, leaves)) for column, leaves in plan.lengths.items()}


def _extent(it: Interpreter, leaf: int, number: Var) -> Extent:
    """The extent that an int is: 0 for one that is negative, as nothing may be made of it."""
    known = it.program.lengths.get(number)
    if known is None:
        least = it.builder.call(OPS["maximum"], it.builder.handle(number), 0)
        _, (symbol,) = it.builder.call(OPS["as_extent"], least, name="n")
        known = it.program.lengths[number] = symbol
        it.program.length_leaves[known] = leaf
    return known
