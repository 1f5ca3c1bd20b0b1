"""Numbers of the program as extents of arrays: one number is one extent wherever it is seen.

In: a number that says how many elements an array has. Out: the extent that is bound to it, in the
block at hand, or before the loops around if the number is known there, so that a loop carries
arrays of that shape from round to round. Then the round only checks that it is not negative.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.frames import Read
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import extent_of
from pyrelay.ir import types
from pyrelay.ir.build import Handle, constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, Let, OpCall
from pyrelay.ir.op import OPS

Expression = Any
"""A number by what computes it: a Var, an int, or an op with the expressions of its operands. Equal
ones are one number, where both can be seen."""

_ARITHMETIC = frozenset(
    ["add", "subtract", "multiply", "negative", "floor_divide", "maximum", "minimum"]
)
"""Ops of ints of 64 bits that may be done before a loop: those of NumPy's ints never raise."""

_DEEPEST = 6  # ops of an expression on each other


def bound(it: Interpreter, value: V.Value) -> Extent:
    """The extent that a number is. Raises NeedsExtent where it is to be bound before a loop."""
    number = it.atom(value)
    expression, level = _expression(it, number)
    exact, clamped = (_found(it, name, expression) for name in ("as_extent", "maximum"))
    if exact is not None:
        return exact
    if clamped is None:
        clamped = it.program.lengths.get(number)
    if clamped is None and it.rolled and level < it.rolled[-1]:
        raise needs.NeedsExtent(expression)
    atom = it.builder.cast(number, types.i64, weak=True)
    _, (symbol,) = it.builder.call(OPS["as_extent"], atom, name="n")
    it.program.given_lengths.add(it.builder.lets[-1])
    if clamped is not None:  # the number is not negative, as is known now
        symbol = clamped
    _note(it, "as_extent", expression, atom, symbol)
    match value:
        case V.Scalar(origin=("leaf", leaf)):
            it.program.length_leaves[symbol] = leaf
    return symbol  # type: ignore[no-any-return]


def bind(it: Interpreter, expression: Expression) -> None:
    """Bind the extent of a number in the block at hand: 0 for one that is negative, as nothing may
    be made of it. Raises NeedsExtent where that is to be done before a loop around."""
    if it.rolled and _level(it, expression) < it.rolled[-1]:
        raise needs.NeedsExtent(expression)
    number = it.builder.cast(_computed(it, expression), types.i64, weak=True)
    least = it.builder.call(OPS["maximum"], number, 0)
    _, (symbol,) = it.builder.call(OPS["as_extent"], least, name="n")
    _note(it, "maximum", expression, least.atom, symbol)


def _found(it: Interpreter, name: str, expression: Expression) -> Extent | None:
    key = (OPS[name], expression)
    for table in reversed(it.reads):
        found: Read | None = table.get(key)
        if found is not None and found.valid:
            return extent_of(found.value)
    return None


def _note(
    it: Interpreter, name: str, expression: Expression, atom: Atom, symbol: Extent
) -> None:
    lets = it.builder.lets
    value = V.Scalar(types.PY_INT, atom, symbol)
    it.reads[-1][OPS[name], expression] = Read(value, lets, len(lets), lets[-1])


def _expression(it: Interpreter, atom: Atom, depth: int = 0) -> tuple[Expression, int]:
    """A number by what computes it, and the innermost block that has a part of it."""
    if isinstance(atom, Const):
        return int(atom.value), 0
    known = it.expressions.get(atom)
    if known is None:
        level, let = _where(it, atom)
        known = atom, level
        if let is not None and depth < _DEEPEST and _is_arithmetic(let):
            assert isinstance(let.rhs, OpCall)
            parts = [_expression(it, a, depth + 1) for a in let.rhs.args]
            known = (let.rhs.op, *(part for part, _ in parts)), max(at for _, at in parts)
        if depth == 0:  # others may be cut short
            it.expressions[atom] = known
    return known


def _where(it: Interpreter, atom: Atom) -> tuple[int, Let | None]:
    """The block that a variable is bound in, and its Let if it has one; the innermost block where
    it is not found."""
    for level in range(len(it.blocks) - 1, -1, -1):
        lets, names = it.blocks[level]
        if atom in names:
            return level, None
        for let in reversed(lets):
            if atom in let.outs:
                return level, let
    return len(it.blocks) - 1, None


def _is_arithmetic(let: Let) -> bool:
    rhs = let.rhs
    return isinstance(rhs, OpCall) and rhs.op.name in _ARITHMETIC and all(
        isinstance(a.type, types.TensorType) and a.type.dtype == types.i64 and not a.type.shape
        for a in (*rhs.args, *let.outs)
    )


def _level(it: Interpreter, expression: Expression) -> int:
    """The innermost block that has a part of an expression."""
    if isinstance(expression, tuple):
        return max(_level(it, part) for part in expression[1:])
    return 0 if isinstance(expression, int) else _where(it, expression)[0]


def _computed(it: Interpreter, expression: Expression) -> Atom:
    """The number, computed in the block at hand as an int of NumPy's, which wraps around: what
    Python raises then is raised in the loop."""
    b = it.builder
    if isinstance(expression, tuple):
        op, *operands = expression
        result: Handle = b.call(op, *(_computed(it, part) for part in operands))
        return result.atom
    if isinstance(expression, int):
        return constant(expression, types.TensorType(types.i64))
    return b.cast(expression, types.i64)
