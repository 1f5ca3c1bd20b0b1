"""One element of each row, picked or put: within kernels that go through the rows.

In: a module whose derivatives are expanded. Out: one where outside of loops

* an element picked from each row, `x[np.arange(n), y]`, of rows that a reduction goes through
  anyway is a reduction too: the largest of those in the right column. What `x` is made of by
  elements is picked from, so that a cross entropy picks from its logits while it looks for their
  maximum, and needs no array of their logarithms;
* an element put into each row of zeros, the derivative of that or a matrix of ones and zeros, is a
  choice by column, which a kernel makes while it goes on with the rows.

It is for devices that go through a row faster than they begin a kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Atom, Const, Let, Module, OpCall
from pyrelay.ir.op import OPS, Effect, Fusion
from pyrelay.ir.types import TensorType, i64
from pyrelay.ops.running import identity
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module
from pyrelay.opt.shapes import GATHERS, shape_of

_SAME_ORDER = frozenset(["reshape", "expand_dims", "squeeze", "refine", "cast"])
_DEEPEST = 12  # ops by elements between what is picked from and what is in memory
_PUTTING = frozenset(["scatter_add", "scatter_update"])


def picks(module: Module) -> Module:
    """The module with elements of rows picked and put by column."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or scope.loops:
        return None
    if rhs.op.name in GATHERS and _is_of_rows(rhs, rhs.args[0], rhs.args[1:], scope):
        return _picked(let, rhs, builder, scope)
    if rhs.op.name in _PUTTING and _is_of_rows(rhs, rhs.args[0], rhs.args[2:], scope):
        return _put(rhs, builder, scope)
    return None


def _is_of_rows(call: OpCall, array: Atom, indices: tuple[Atom, ...], scope: Scope) -> bool:
    """Whether one element of each row of a matrix is meant, row by row."""
    if call.attrs["axes"] != (0, 1) or len(shape_of(array)) != 2 or len(indices) != 2:
        return False
    rows = shape_of(array)[0]
    if any(shape_of(index) not in ((rows,), (rows, 1)) for index in indices):
        return False
    if shape_of(indices[0]) != shape_of(indices[1]):
        return False
    return _counts(indices[0], scope)


def _counts(atom: Atom, scope: Scope) -> bool:
    """Whether an array is 0, 1, 2, ..."""
    call = scope.definition(atom)
    while isinstance(call, OpCall) and call.op.name in _SAME_ORDER:
        if call.op.name == "cast" and not _holds_integers(atom):
            return False
        atom = call.args[0]
        call = scope.definition(atom)
    return scope.op(atom, "iota") is not None


def _holds_integers(atom: Atom) -> bool:
    """Whether its type holds numbers of rows."""
    return isinstance(atom.type, TensorType) and atom.type.dtype.name in ("i32", "i64", "u64")


# -- picked ----------------------------------------------------------------------------------------


def _picked(let: Let, call: OpCall, builder: Builder, scope: Scope) -> Replacement:
    """Elements of a gather, if what they are made of lies in rows that are reduced."""
    source, column = call.args[0], call.args[2]
    bases: list[Atom] = []
    if not _found_bases(source, scope, bases, _DEEPEST) or not bases:
        return None
    if any(base.type.dtype.kind == "c" for base in bases):  # type: ignore[union-attr]
        return None
    if not all(_is_reduced(base, scope) for base in bases):
        return None
    here = _in_column(builder, column, shape_of(source))
    rows = _Picks(builder, scope, shape_of(source), here)
    made = rows.of(source)
    return (builder.call(OPS["reshape"], made, shape=shape_of(let.outs[0])).atom,)


def _found_bases(atom: Atom, scope: Scope, bases: list[Atom], depth: int) -> bool:
    """Notes the matrices that `atom` is made of by elements; False if there are too many ops."""
    call = _by_elements(atom, scope)
    if call is None:
        if atom not in bases:
            bases.append(atom)
        return True
    if depth == 0:
        return False
    return all(
        _found_bases(a, scope, bases, depth - 1) for a in call.args if shape_of(a) == shape_of(atom)
    )


def _by_elements(atom: Atom, scope: Scope) -> OpCall | None:
    """The op that makes a matrix of matrices, columns and numbers, element by element."""
    call = scope.definition(atom)
    if not isinstance(call, OpCall):
        return None
    if call.op.fusion is not Fusion.ELEMENTWISE and call.op.name != "broadcast_to":
        return None
    if call.op.effect is not Effect.PURE or len(shape_of(atom)) != 2:
        return None
    rows = shape_of(atom)[0]
    fits = (shape_of(atom), (rows, 1), ())
    return call if all(shape_of(a) in fits for a in call.args) else None


def _is_reduced(base: Atom, scope: Scope) -> bool:
    """Whether a reduction of rows that stands before reads a matrix, itself or by elements."""
    for made in scope.definitions.values():
        call = made.rhs
        if not isinstance(call, OpCall) or call.op.fusion is not Fusion.REDUCTION:
            continue
        if shape_of(call.args[0]) != shape_of(base) or call.attrs.get("axes") not in ((1,), (-1,)):
            continue
        bases: list[Atom] = []
        if _found_bases(call.args[0], scope, bases, _DEEPEST) and base in bases:
            return True
    return False


class _Picks:
    """Columns (n, 1) of what matrices have where a mask says so."""

    def __init__(self, builder: Builder, scope: Scope, shape: tuple[Any, ...], here: Handle):
        self.builder, self.scope, self.shape, self.here = builder, scope, shape, here
        self.made: dict[Atom, Handle] = {}

    def of(self, atom: Atom) -> Handle:
        """The column of a matrix; a column or a number is its own."""
        if shape_of(atom) != self.shape:
            return self.builder.handle(atom)
        if atom not in self.made:
            self.made[atom] = self._of(atom)
        return self.made[atom]

    def _of(self, atom: Atom) -> Handle:
        build, call = self.builder, _by_elements(atom, self.scope)
        if call is not None:
            made: Handle = self.of(call.args[0])
            if call.op.fusion is Fusion.ELEMENTWISE:
                made = build.call(call.op, *map(self.of, call.args), **call.attrs)
            if made.shape == (self.shape[0], 1):
                return made
            column: Handle = build.call(
                OPS["broadcast_to"], made, shape=(self.shape[0], 1)
            )
            return column
        x = build.handle(atom)
        least = build.cast(identity("maximum", x.dtype), x.dtype)
        chosen = build.call(OPS["where"], self.here, x, least)
        found: Handle = build.call(OPS["max"], chosen, axes=(1,), keepdims=True)
        return found


# -- put -------------------------------------------------------------------------------------------


def _put(call: OpCall, builder: Builder, scope: Scope) -> Replacement:
    """A matrix of zeros with one other element in each row."""
    array, value, _, column = call.args
    zeros = scope.op(array, "broadcast_to")
    if zeros is None or not isinstance(zeros.args[0], Const) or zeros.args[0].value != 0:
        return None
    if np.signbit(np.real(zeros.args[0].value)):
        return None
    rows = shape_of(array)[0]
    new = builder.handle(value)
    if new.rank:
        wide = builder.call(OPS["broadcast_to"], new, shape=shape_of(column))
        new = builder.call(OPS["reshape"], wide, shape=(rows, 1))
    here = _in_column(builder, column, shape_of(array))
    zero = builder.cast(0, new.dtype)
    made = builder.call(OPS["where"], here, new, zero)
    return (builder.call(OPS["broadcast_to"], made, shape=shape_of(array)).atom,)


def _in_column(builder: Builder, column: Atom, shape: tuple[Any, ...]) -> Handle:
    """For each row whether an element stands in the row's column; IndexError for one too large."""
    line: Any = builder.call(OPS["reshape"], column, shape=(shape[0], 1))
    place = builder.call(OPS["check_places"], line, size=shape[1], axis=1)
    columns = builder.call(OPS["iota"], size=shape[1], dtype=i64)
    here: Handle = builder.call(OPS["equal"], columns, place)
    return here
