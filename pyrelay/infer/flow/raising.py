"""When an op raises, and what: asked of its operands before it runs.

In: an op call that may raise. Out: its failures, each a bool of the program and the exception that
Python would raise where it is true. They are those of the op's element rule, which is run here over
ops instead of kernel IR; an op without one is tried by Python, by its own meaning. That a Python
int does not fit 64 bits is no failure: plain Python would not raise.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.infer import values as V
from pyrelay.infer.containers import text
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Handle, constant
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Const, Let, OpCall
from pyrelay.ir.op import OPS, Op
from pyrelay.ir.types import DType, TensorType
from pyrelay.ops.index import OUT_OF_BOUNDS
from pyrelay.ops.python_numbers import TOO_LARGE
from pyrelay.records import dataclass


@dataclass(frozen=True)
class Failure:
    """`test` is true where the op raises an exception of class `cls`."""

    test: Handle
    cls: type[BaseException]
    args: Callable[[], tuple[V.Value, ...]]


def failures(it: Interpreter, let: Let) -> list[Failure]:
    """What the op of a Let may raise besides OverflowError of ints that are too large."""
    call = let.rhs
    assert isinstance(call, OpCall)
    name, attrs = call.op.name, call.attrs
    if name == "as_extent":
        test = it.builder.call(OPS["less"], _plain(it, call.args[0]), 0)
        return [_failure(test, ValueError, "negative dimensions are not allowed")]
    if name == "check_equal":
        left, right = (it.builder.extent(attrs[side]) for side in ("left", "right"))
        test = it.builder.call(OPS["not_equal"], left, right)
        return [_failure(test, ValueError, attrs["text"])]
    if name.startswith("tape"):
        return []
    if name in ("gather", "scatter_update", "scatter_add"):
        return _beyond(it, call)
    scalar = all(isinstance(a.type, TensorType) and not a.type.shape for a in call.args)
    if call.op.element is None or not scalar:
        return _tried(it, call)
    rules = _Rules(it, let, call)
    readers = [_Reader(_plain(it, a), a.type) for a in call.args]
    call.op.element(rules, (), *readers, **attrs)
    return rules.found


def _failure(test: Handle, cls: type[BaseException], message: str) -> Failure:
    return Failure(test, cls, lambda: (V.Known(message),))


def _beyond(it: Interpreter, call: OpCall) -> list[Failure]:
    """Positions in integer arrays that are none of their axis; NumPy looks at axis after axis."""
    found: list[Failure] = []
    axes, ty = call.attrs["axes"], call.args[0].type
    assert isinstance(ty, TensorType)
    for axis, index in zip(axes, call.args[-len(axes) :], strict=True):
        assert isinstance(index.type, TensorType)
        count = dims.product(index.type.shape)
        flat = it.builder.handle(index)
        if index.type.shape:
            flat = it.builder.call(OPS["reshape"], flat, shape=(count,))
        flat = it.builder.handle(it.builder.cast(flat, types.i64))
        size = _plain(it, it.builder.extent(ty.shape[axis]).atom)
        test = bad = it.builder.call(
            OPS["logical_or"],
            it.builder.call(OPS["less"], flat, it.builder.call(OPS["negative"], size)),
            it.builder.call(OPS["greater_equal"], flat, size),
        )
        if index.type.shape:
            test = it.builder.call(OPS["any"], bad, axes=(0,), keepdims=False)

        def words(flat: Handle = flat, bad: Handle = bad, size: Handle = size, axis: int = axis,
                  many: bool = bool(index.type.shape)) -> tuple[V.Value, ...]:  # fmt: skip
            if many:
                first = it.builder.call(OPS["argmax"], bad, axes=(0,), keepdims=False)
                flat = it.builder.call(OPS["gather"], flat, first, axes=(0,))
                it.program.checked.add(it.builder.lets[-1])  # that is a position of it
            numbers = (flat, axis, size)
            pieces = [
                V.Known(p) if isinstance(p, str) else _digits(it, numbers[p])
                for p in OUT_OF_BOUNDS
            ]
            return (text.text(it, text.joined, *pieces),)

        found.append(Failure(test, IndexError, words))
    return found


def _digits(it: Interpreter, number: Handle | int) -> V.Value:
    """A number as text."""
    if isinstance(number, int):
        return V.Known(str(number))
    weak = it.builder.handle(it.builder.cast(number, types.i64, weak=True))
    return text.text(it, text.formatted, it.result(weak), V.Known(""), V.Known(""))


def _plain(it: Interpreter, atom: Atom) -> Handle:
    """A scalar as NumPy's kind, whose arithmetic never raises."""
    assert isinstance(atom.type, TensorType)
    return it.builder.handle(it.builder.cast(atom, atom.type.dtype))


class _Reader:
    """An operand as element rules read it."""

    def __init__(self, value: Handle, ty: Any) -> None:
        self.value, self.type, self.dtype, self.rank = value, ty, ty.dtype, 0
        self.shape = ()

    def __call__(self, index: Any) -> Handle:
        return self.value


class _Rules:
    """What element rules are written on (`s`): ops are emitted, failures are kept."""

    def __init__(self, it: Interpreter, let: Let, call: OpCall) -> None:
        self.it, self.result = it, tuple(out.type for out in let.outs)
        self.weak = all(isinstance(a.type, TensorType) and a.type.weak for a in call.args)
        self.found: list[Failure] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.endswith("_overflows") or name == "true_quotient":  # no failure that is kept
            return lambda *operands: None
        return functools.partial(self._op, OPS[name])

    def _op(self, op: Op, *operands: Any, **attrs: Any) -> Any:
        """Emit an op; of constants, its value."""
        atoms = [self.it.builder.atom(o) for o in operands]
        values = [a.value for a in atoms if isinstance(a, Const)]
        if len(values) == len(atoms):
            return self.it.builder.handle(constant(op.numpy(*values, **attrs)))
        return self.it.builder.call(op, *atoms, **attrs)

    def const(self, value: Any, dtype: DType) -> Handle:
        """A number of NumPy's kind."""
        return self.it.builder.handle(constant(dtype.numpy.type(value)))

    def cast(self, value: Handle, dtype: DType) -> Handle:
        """The value as another dtype."""
        return self.it.builder.handle(self.it.builder.cast(value, dtype))

    def extent(self, extent: Extent) -> Handle:
        """An extent as a NumPy integer."""
        return _plain(self.it, self.it.builder.extent(extent).atom)

    def fail(
        self, exception: Any, parts: Sequence[Any], test: Any, *values: Handle
    ) -> None:
        """Keep a failure."""
        if tuple(parts) == (TOO_LARGE,):
            return
        known = self.it.builder.atom(test)
        if isinstance(known, Const) and not known.value:
            return
        cls = getattr(builtins, exception) if isinstance(exception, str) else exception
        it = self.it

        def piece(part: Any) -> V.Value:
            if isinstance(part, str):
                return V.Known(part)
            value = values[part]
            number = it.builder.handle(it.builder.cast(value, value.type.dtype, weak=True))
            return text.text(it, text.formatted, it.result(number), V.Known(""), V.Known(""))

        self.found.append(
            Failure(test, cls, lambda: (text.text(it, text.joined, *map(piece, parts)),))
        )


# -- ops that Python computes ----------------------------------------------------------------------

_TRIED: tuple[type[BaseException], ...] = (
    np.linalg.LinAlgError, IndexError, ValueError, ZeroDivisionError, TypeError,
)


@dataclass(frozen=True, eq=False)
class _Trial:
    """An op by its NumPy meaning: whether it raises, and with which words."""

    op: Op
    attrs: Mapping[str, Any]
    symbols: tuple[Symbol, ...]

    def run(self, given: Sequence[Any]) -> Exception | None:
        count = len(given) - len(self.symbols)
        known = dict(zip(self.symbols, given[count:], strict=True))
        attrs = {k: types.evaluate(v, known) for k, v in self.attrs.items()}
        try:
            self.op.numpy(*given[:count], **attrs)
        except _TRIED as error:
            return error  # type: ignore[return-value]
        return None

    def code(self, *given: Any) -> int:
        """0, or one more than the place of the exception's class in `_TRIED`."""
        error = self.run(given)
        return 0 if error is None else 1 + next(
            k for k, cls in enumerate(_TRIED) if isinstance(error, cls)
        )

    def words(self, *given: Any) -> str:
        """The text of the exception."""
        return str(self.run(given))


def _tried(it: Interpreter, call: OpCall) -> list[Failure]:
    symbols = tuple(dict.fromkeys(s for v in call.attrs.values() for s in walk.attr_symbols(v)))
    trial = _Trial(call.op, call.attrs, symbols)
    operands = [*call.args, *(it.builder.extent(dims.of(s)).atom for s in symbols)]
    reader = getattr(call.attrs.get("function"), "function", None)
    classes = enumerate(_TRIED, 1) if reader not in (int, float) else [
        (1 + _TRIED.index(ValueError), ValueError)  # all that a text raises that is no number
    ]
    code = it.builder.call(
        OPS["host_value"], *operands, function=trial.code, types=(types.PY_INT,)
    )
    it.program.checked.add(it.builder.lets[-1])  # a trial does not raise
    given = [it.result(it.builder.handle(a)) for a in operands]

    def words() -> tuple[V.Value, ...]:
        return (text.text(it, trial.words, *given),)

    return [
        Failure(it.builder.call(OPS["equal"], code, k), cls, words)
        for k, cls in classes
    ]
