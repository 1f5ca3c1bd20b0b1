"""The structural digest: a function or module in, a SHA-256 in hexadecimal digits out.

Two programs have one digest exactly if they are alpha-equal: variables, symbols and functions are
numbered in order of occurrence, spans are ignored, and op names, attributes, types and constants
(element type and bytes, so NaN and -0.0 are themselves) go in.
"""

from __future__ import annotations

import hashlib
import types as python
from collections.abc import Iterable
from typing import Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.dims import Dim, Extent, Extreme, Quotient, Remainder, Symbol
from pyrelay.ir.nodes import (
    UNREAD,
    UNSET,
    Atom,
    Block,
    FnCall,
    Function,
    If,
    Jvp,
    KernelCall,
    Loop,
    Module,
    OpCall,
    PyCall,
    Rhs,
    Var,
    Vjp,
)
from pyrelay.ir.op import Op
from pyrelay.ir.types import DType, TapeType, TensorType


def digest(what: Module | Function) -> str:
    """The digest of a module (its entry and what that reaches) or of one function.

    For a function alone, the functions it calls count by name. Raises TypeError for a Python object
    that has no meaning of its own outside this process.
    """
    if isinstance(what, Function):
        hasher = _Hasher(None)
        hasher.function(what)
        return hasher.hexdigest()
    reached = [what.entry]
    hasher = _Hasher(reached)
    for name in reached:  # grows while the functions are fed
        hasher.function(what.functions[name])
    return hasher.hexdigest()


class _Hasher:
    """Feeds tokens of one program to SHA-256; appends the functions it calls to `reached`."""

    def __init__(self, reached: list[str] | None) -> None:
        self._sha = hashlib.sha256()
        self._reached = reached
        self._functions = {name: k for k, name in enumerate(reached or ())}
        self._numbers: dict[Var | Symbol, int] = {}

    def hexdigest(self) -> str:
        return self._sha.hexdigest()

    def put(self, *tokens: object) -> None:
        # The length in front keeps neighbouring tokens apart.
        data = repr(tokens).encode()
        self._sha.update(b"%d:" % len(data))
        self._sha.update(data)

    def number(self, binder: Var | Symbol) -> int:
        return self._numbers.setdefault(binder, len(self._numbers))

    def binders(self, binders: Iterable[Var]) -> None:
        for var in binders:
            self.put("bind", self.number(var), self.value(var.type))

    def symbols(self, symbols: Iterable[Symbol]) -> None:
        self.put("symbols", [self.number(s) for s in symbols])

    def callee(self, name: str) -> object:
        if self._reached is None:
            return name
        if name not in self._functions:
            self._functions[name] = len(self._reached)
            self._reached.append(name)
        return self._functions[name]

    # -- values --------------------------------------------------------------------------------

    def atom(self, atom: Atom) -> object:
        if isinstance(atom, Var):
            return ("var", self.number(atom))
        return ("const", self.value(atom.type), self.value(atom.value))

    def atoms(self, atoms: Iterable[Atom]) -> list[object]:
        return [self.atom(a) for a in atoms]

    def extent(self, extent: Extent) -> object:
        """The polynomial with numbered symbols, in an order that does not depend on their age."""
        if isinstance(extent, int):
            return extent
        terms = [
            (sorted(((self._dim_atom(a), p) for a, p in monomial), key=repr), coefficient)
            for monomial, coefficient in extent.terms
        ]
        return sorted(terms, key=repr)

    def _dim_atom(self, atom: dims.Atom) -> object:
        match atom:
            case Symbol():
                return self.number(atom)
            case Quotient(a, b):
                return ("//", self.extent(a), self.extent(b))
            case Remainder(a, b):
                return ("%", self.extent(a), self.extent(b))
            case Extreme(kind, a, b):
                return (kind, *sorted((self.extent(a), self.extent(b)), key=repr))
        raise AssertionError(atom)

    def value(self, value: Any) -> object:
        """A token for an attribute or a constant."""
        match value:
            case Dim():
                return ("extent", self.extent(value))
            case TensorType(dtype, shape, weak):
                return ("type", dtype.name, [self.extent(e) for e in shape], weak)
            case TapeType():
                return "tape"
            case DType() | Op():
                return (type(value).__name__, value.name)
            case float() | complex() if not isinstance(value, np.generic):
                return (type(value).__name__, np.asarray(value).tobytes())
            case None | bool() | int() | str() | bytes() | python.EllipsisType():
                return (type(value).__name__, value)
            case np.generic():
                return (value.dtype.str, value.tobytes())
            case tuple():
                return ("tuple", [self.value(item) for item in value])
            case python.ModuleType():
                return ("module", value.__name__)
        if value is UNSET or value is UNREAD:
            return repr(value)
        qualified = getattr(value, "__qualname__", None)
        if isinstance(qualified, str) and "<" not in qualified:
            return (type(value).__name__, getattr(value, "__module__", None), qualified)
        raise TypeError(f"{value!r} has no digest")

    # -- program -------------------------------------------------------------------------------

    def function(self, function: Function) -> None:
        self.put("function", [(p.name, p.kind, p.has_default) for p in function.signature],
                 len(function.cells))
        self.symbols(function.dims)
        self.binders(function.params)
        self.block(function.body)

    def block(self, block: Block) -> None:
        self.put("block", len(block.lets))
        for let in block.lets:
            self.rhs(let.rhs)
            self.symbols(let.dims)
            self.binders(let.outs)
        self.put("ends", self.atoms(block.results), [self.extent(e) for e in block.dims])

    def rhs(self, rhs: Rhs) -> None:
        match rhs:
            case OpCall(op, args, attrs):
                self.put("op", op.name, self.atoms(args), self._attrs(attrs.items()))
            case PyCall(kind, args, attrs):
                self.put("py", kind, self.atoms(args), self._attrs(attrs.items()))
            case FnCall(name, args, extents):
                self.put("call", self.callee(name), self.atoms(args), self._extents(extents))
            case Vjp(name, args, seeds, seeded, wrt, extents):
                self.put("vjp", self.callee(name), self.atoms(args), self.atoms(seeds), seeded,
                         wrt, self._extents(extents))
            case Jvp(name, args, seeds, seeded, wanted, extents):
                self.put("jvp", self.callee(name), self.atoms(args), self.atoms(seeds), seeded,
                         wanted, self._extents(extents))
            case KernelCall(function, args, extents):
                self.put("kernel", self.atoms(args), self._extents(extents))
                self.function(function)
            case If(cond, then, orelse):
                self.put("if", self.atom(cond))
                self.block(then)
                self.block(orelse)
            case Loop():
                self._loop(rhs)

    def _attrs(self, items: Iterable[tuple[str, Any]]) -> list[object]:
        return [(name, self.value(value)) for name, value in items]

    def _extents(self, extents: Iterable[Extent]) -> list[object]:
        return [self.extent(e) for e in extents]

    def _loop(self, loop: Loop) -> None:
        outer = [None if a is None else self.atom(a) for a in (loop.count, loop.iterable)]
        self.put("loop", self.atoms(loop.init), outer, self._extents(loop.init_dims), loop.exits)
        self.symbols(loop.dims)
        self.binders(loop.carried)
        for binder in (loop.index, loop.item):
            self.put(binder is not None)
            if binder is not None:
                self.binders((binder,))
        self.put("test", loop.test is not None)
        if loop.test is not None:
            self.block(loop.test)
        self.binders(loop.handed)
        self.block(loop.body)
