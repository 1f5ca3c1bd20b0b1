"""Saving values of a forward block on the tape, and getting them back.

In: values and symbols of one record. Out: pushes at the end of the forward block, pops in reverse
order at the start of the backward block, where symbols are bound anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.walk import Renaming


def push(
    builder: Builder, tape: Atom, values: Sequence[Atom], symbols: Sequence[Symbol]
) -> Atom:
    """Push values, then symbols as integers; returns the tape after."""
    for value in [*values, *(builder.extent(dims.of(s)).atom for s in symbols)]:
        tape = builder.call(OPS["tape_push"], tape, value, name="tape").atom
    return tape


def pop(
    builder: Builder, tape: Atom, saved: Sequence[Var], symbols: Sequence[Symbol], names: Renaming
) -> Atom:
    """Undo `push`, entering what was popped in `names`; returns the tape after."""
    for symbol in reversed(symbols):
        rest, size = builder.call(OPS["tape_pop"], tape, type=types.PY_INT)
        rebind(builder, symbol, size, names)
        tape = rest.atom
    for var in reversed(saved):
        assert var.type is not None
        ty = types.substitute(var.type, names.dims)
        rest, value = builder.call(OPS["tape_pop"], tape, type=ty, name=var.name)
        names.atoms[var] = value.atom
        tape = rest.atom
    return tape


def rebind(builder: Builder, symbol: Symbol, size: Handle, names: Renaming) -> None:
    """Bind a symbol of the forward block anew, to the size that was saved."""
    _, (extent,) = builder.call(OPS["as_extent"], size, name=symbol.name)
    names.dims[symbol] = extent
