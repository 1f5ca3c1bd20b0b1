"""The reference interpreter: a Core module and NumPy values in, the values of its results out.

It runs the IR of any stage after `infer` over the ops' NumPy meaning and is the oracle of every
differential test. Python numbers (weak types) are Python numbers, NumPy scalars are `np.generic`,
arrays `np.ndarray`. Every value is checked against its binder's type, extents included.

Each block runs as a generator that yields the generators it waits for; a trampoline keeps them on
a list, so neither call depth nor nesting meets Python's recursion limit (the technique of
"Trampolined Style", Ganz, Friedman and Wand, ICFP 1999).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.errors import InvariantError
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Dim, Extent, Symbol
from pyrelay.ir.nodes import (
    Atom,
    Attrs,
    Block,
    Const,
    FnCall,
    Function,
    If,
    KernelCall,
    Let,
    Loop,
    Module,
    OpCall,
    Var,
)
from pyrelay.ir.types import TapeType, TensorType, Type

DEPTH_LIMIT = 1_000_000  # blocks in progress

Outcome = tuple[tuple[Any, ...], tuple[int, ...]]  # the results of a block, and its extents
Steps = Generator["Steps", Outcome, Outcome]


def interpret(
    module: Module, args: Sequence[Any], dims: Mapping[Symbol | str, int] | None = None
) -> tuple[Any, ...]:
    """Run the entry function of a module: one value per result.

    args: one value per parameter. dims: values of entry symbols, by symbol or name, that the shapes
    of the arguments do not tell. Raises what the program raises; ValueError if an argument does not
    fit its parameter; InvariantError if the IR is not what its types say, or has a Vjp.
    """
    function = module.main
    extents = bind_extents(function, args, dims or {})
    values = [
        _argument(p.type, a, extents) for p, a in zip(function.params, args, strict=True)
    ]
    machine = _Machine(module)
    results, _ = _run(machine.call(function, values, [extents[s] for s in function.dims]))
    return results


def bind_extents(
    function: Function, args: Sequence[Any], known: Mapping[Symbol | str, int]
) -> dict[Symbol, int]:
    """The value of each symbol of a function, solved from the shapes of arguments.

    Raises ValueError if the shapes do not determine them or contradict each other.
    """
    values = {s: known[k] for s in function.dims for k in (s, s.name) if k in known}
    equations: list[tuple[Extent, int]] = []
    if len(args) != len(function.params):
        raise ValueError(f"{function.name} takes {len(function.params)} values, not {len(args)}")
    for param, arg in zip(function.params, args, strict=True):
        if isinstance(param.type, TensorType) and param.type.shape:
            shape = np.shape(arg)
            if len(shape) != len(param.type.shape):
                raise ValueError(f"{param.name}: {param.type} does not fit the shape {shape}")
            equations += zip(param.type.shape, shape, strict=True)
    progress = True
    while progress:
        solved = [_solve(extent, size, values) for extent, size in equations]
        progress = any(solved)
    missing = [s.name for s in function.dims if s not in values]
    if missing:
        raise ValueError(f"the arguments do not determine {', '.join(missing)}")
    for extent, size in equations:
        if dims.evaluate(extent, values) != size:
            raise ValueError(f"the extent {dims.show(extent)} is {size} in an argument")
    return values


def _solve(extent: Extent, size: int, values: dict[Symbol, int]) -> bool:
    """Solve `coefficient * symbol + rest == size` if one symbol is open; True if it was."""
    rest = dims.substitute(extent, values)
    open_symbols = dims.symbols(rest)
    if len(open_symbols) != 1 or not isinstance(rest, Dim):
        return False
    (symbol,) = open_symbols
    terms = dict(rest.terms)
    coefficient = terms.pop((((symbol, 1),)), 0)
    constant = terms.pop((), 0)
    if terms or not coefficient or (size - constant) % coefficient:
        return False
    values[symbol] = (size - constant) // coefficient
    return True


def _argument(ty: Type | None, value: Any, extents: Mapping[Symbol, int]) -> Any:
    if not isinstance(ty, TensorType):
        return value
    if ty.weak:
        return types.python_type(ty)(value)
    if not ty.shape:
        return ty.dtype.numpy.type(value)
    return np.asarray(value, ty.dtype.numpy)


def _run(main: Steps) -> Outcome:
    """Drive a generator and those it yields, innermost first."""
    stack = [main]
    outcome: Outcome = ((), ())
    started = False
    while True:
        try:
            waiting = stack[-1].send(outcome) if started else next(stack[-1])
            if len(stack) == DEPTH_LIMIT:
                raise RecursionError("maximum recursion depth exceeded")
            stack.append(waiting)
            started = False
        except StopIteration as stop:
            outcome, started = stop.value, True
            stack.pop()
            if not stack:
                return outcome


class _Frame:
    """The values of one activation of a function."""

    __slots__ = ("extents", "values")

    def __init__(self) -> None:
        self.values: dict[Var, Any] = {}
        self.extents: dict[Symbol, int] = {}

    def atom(self, atom: Atom) -> Any:
        return atom.value if isinstance(atom, Const) else self.values[atom]

    def atoms(self, atoms: Sequence[Atom]) -> list[Any]:
        return [self.atom(a) for a in atoms]

    def extent(self, extent: Extent) -> int:
        return extent if isinstance(extent, int) else dims.evaluate(extent, self.extents)

    def ends(self, block: Block) -> Outcome:
        return tuple(self.atoms(block.results)), tuple(map(self.extent, block.dims))

    def bind(self, outs: Sequence[Var], values: Sequence[Any]) -> None:
        if len(outs) != len(values):
            raise InvariantError(f"{len(values)} values for {len(outs)} variables")
        for var, value in zip(outs, values, strict=True):
            self.values[var] = self.checked(var, value)

    def bind_extents(self, symbols: Sequence[Symbol], extents: Sequence[int]) -> None:
        self.extents.update(zip(symbols, extents, strict=True))

    def checked(self, var: Var, value: Any) -> Any:
        """The value in the form its type says. Raises InvariantError if it has another type."""
        ty = var.type
        if isinstance(ty, TapeType):
            return value
        assert isinstance(ty, TensorType), f"{var.name} has no type"
        if ty.weak:
            if type(value) is types.python_type(ty):
                return value
            raise _mismatch(var, value)
        found = types.from_numpy(value.dtype) if hasattr(value, "dtype") else None
        if found != ty.dtype:
            raise _mismatch(var, value)
        if not ty.shape:
            if value.shape:
                raise _mismatch(var, value)
            return value[()]
        if value.shape != tuple(map(self.extent, ty.shape)):
            raise _mismatch(var, value)
        return value

    def attrs(self, attrs: Attrs) -> dict[str, Any]:
        return {name: types.evaluate(value, self.extents) for name, value in attrs.items()}


def _mismatch(var: Var, value: Any) -> InvariantError:
    found = f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else type(value).__name__
    return InvariantError(f"the value of {var.name} is {found}, its type says {var.type}")


class _Machine:
    """Makes the generators that run functions and blocks of one module."""

    def __init__(self, module: Module) -> None:
        self.functions = module.functions

    def call(self, function: Function, args: Sequence[Any], extents: Sequence[int]) -> Steps:
        frame = _Frame()
        frame.bind_extents(function.dims, extents)
        frame.bind(function.params, args)
        return self.block(function.body, frame)

    def block(self, block: Block, frame: _Frame) -> Steps:
        for let in block.lets:
            rhs = let.rhs
            if isinstance(rhs, OpCall):
                self.op(let, rhs, frame)
                continue
            if isinstance(rhs, If):
                steps = self.block(rhs.then if frame.atom(rhs.cond) else rhs.orelse, frame)
            elif isinstance(rhs, Loop):
                steps = self.loop(rhs, frame)
            elif isinstance(rhs, (FnCall, KernelCall)):
                callee = (
                    self.functions[rhs.function] if isinstance(rhs, FnCall) else rhs.function
                )
                steps = self.call(
                    callee, frame.atoms(rhs.args), tuple(map(frame.extent, rhs.dims))
                )
            else:
                raise InvariantError(f"{type(rhs).__name__} cannot be interpreted", span=let.span)
            results, extents = yield steps
            frame.bind_extents(let.dims, extents)
            frame.bind(let.outs, results)
        return frame.ends(block)

    @staticmethod
    def op(let: Let, call: OpCall, frame: _Frame) -> None:
        """Evaluate one op by its NumPy meaning."""
        value = call.op.numpy(*frame.atoms(call.args), **frame.attrs(call.attrs))
        if call.op.binds:
            value, extents = value
            frame.bind_extents(let.dims, extents)
        if value is None:
            value = ()
        # A tape is a Python list or tuple as well, so only the number of outputs tells.
        several = len(let.outs) != 1 or (call.op.binds and isinstance(value, tuple))
        frame.bind(let.outs, value if several else (value,))

    def loop(self, loop: Loop, frame: _Frame) -> Steps:
        values: tuple[Any, ...] = tuple(frame.atoms(loop.init))
        extents = tuple(map(frame.extent, loop.init_dims))
        count = None if loop.count is None else int(frame.atom(loop.count))
        iteration = 0
        while True:
            frame.bind_extents(loop.dims, extents)
            frame.bind(loop.carried, values)
            if count is not None and iteration >= count:
                break
            if loop.index is not None:
                frame.values[loop.index] = iteration
            if loop.test is not None:
                (go_on, *handed), _ = yield self.block(loop.test, frame)
                if not go_on:
                    break
                frame.bind(loop.handed, handed)
            values, extents = yield self.block(loop.body, frame)
            leave, values = (values[0], values[1:]) if loop.exits else (False, values)
            iteration += 1
            if leave:
                break
        return values, extents
