"""A little scalar arithmetic as instructions of the plan, where a kernel would cost a compilation.

In: a KernelCall whose function is straight-line arithmetic on ints, floats and bools. Out: Unary,
Binary, Checked and Select instructions with the same meaning, the exceptions of Python's own
numbers included. What the executor has no instruction for stays a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyrelay.ir.nodes import Atom, Const, If, KernelCall, Let, OpCall
from pyrelay.ir.types import PY_INT, DType, TensorType, bool_, f32, f64, i64, u64
from pyrelay.lower.planning.frame import ZERO, Words, constant_words
from pyrelay.lower.planning.instructions import (
    Binary,
    Checked,
    JumpIf,
    Raise,
    Select,
    Slot,
    Unary,
    Value,
)
from pyrelay.ops.index import OUT_OF_BOUNDS
from pyrelay.ops.python_numbers import (
    DIVIDED_FLOAT_BY_ZERO,
    FLOORED_INT_BY_ZERO,
    REMAINDER_INT_BY_ZERO,
    TOO_LARGE,
)

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_LARGEST_GROUP = 16
_COMPARE = {
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
    "not_equal": "ne",
}
_ARITHMETIC = {"add": "add", "subtract": "sub", "multiply": "mul"}
_LOGIC = {"logical_and": "and.i64", "logical_or": "or.i64", "logical_xor": "xor.i64"}
_INTEGER = {
    "bitwise_and": "and.i64", "bitwise_or": "or.i64", "bitwise_xor": "xor.i64",
    "minimum": "min.i64", "maximum": "max.i64",
}
_FLOORING = {
    "floor_divide": ("floordiv.i64", FLOORED_INT_BY_ZERO),
    "remainder": ("mod.i64", REMAINDER_INT_BY_ZERO),
}

#: Emits one op: (planner, target slot, operands, the Let it stems from).
Write = Callable[["FunctionPlanner", int, Words, Let], None]


def inline(p: FunctionPlanner, let: Let, call: KernelCall) -> bool:
    """Plan the call as instructions if each of its ops has some; False if a kernel is needed."""
    body = call.function.body
    if len(body.lets) > _LARGEST_GROUP or _has_long_remainder(body.lets):
        return False
    writers: list[Write] = []
    for inner in body.lets:
        if isinstance(inner.rhs, If) and not p.program.target.chooses:
            return False
        writer = _writer(inner)
        if writer is None:
            return False
        writers.append(writer)
    values: dict[Atom, Value] = {
        param: p.scalar(arg) for param, arg in zip(call.function.params, call.args, strict=True)
    }

    def value(atom: Atom) -> Value:
        return constant_words(atom)[0] if isinstance(atom, Const) else values[atom]

    for inner, write in zip(body.lets, writers, strict=True):
        if isinstance(inner.rhs, If):
            arms = inner.rhs.then.results, inner.rhs.orelse.results
            for out, *arm in zip(inner.outs, *arms, strict=True):
                target = p.frame.slot()
                write(p, target, (value(inner.rhs.cond), *map(value, arm)), inner)
                values[out] = Slot(target)
            continue
        assert isinstance(inner.rhs, OpCall)
        target = p.frame.slot()
        operands = tuple(map(value, inner.rhs.args))
        if inner.rhs.op.name == "check_index":
            mapping = dict(zip(call.function.dims, call.dims, strict=True))
            operands = (*operands, p.sizes.substituted(inner.rhs.attrs["size"], mapping))
        write(p, target, operands, inner)
        values[inner.outs[0]] = Slot(target)
    for out, result in zip(let.outs, body.results, strict=True):
        p.words[out] = (value(result),)
    return True


def _has_long_remainder(lets: tuple[Let, ...]) -> bool:
    """Whether a remainder is taken of a product, which needs more than 64 bits
    (`lower/passes/exact_remainders.py`)."""
    products: set[Atom] = set()
    for let in lets:
        if isinstance(let.rhs, OpCall) and let.outs[0].type == PY_INT:
            name, args = let.rhs.op.name, let.rhs.args
            if name == "remainder" and args[0] in products:
                return True
            if name in ("multiply", "square") or (
                name in ("add", "subtract") and not products.isdisjoint(args)
            ):
                products.update(let.outs)
    return False


def _writer(let: Let) -> Write | None:
    """How to emit the op of a Let; None if there is no instruction for it."""
    rhs = let.rhs
    if isinstance(rhs, If):
        empty = not (rhs.then.lets or rhs.orelse.lets or let.dims)
        return _select if empty and all(map(_is_word, let.outs)) else None
    if not isinstance(rhs, OpCall) or len(let.outs) != 1:
        return None
    atoms: tuple[Atom, ...] = (*rhs.args, *let.outs)
    if not all(map(_is_word, atoms)):
        return None
    kinds = [a.type for a in atoms]
    operands = [t for t in kinds[:-1] if isinstance(t, TensorType)]
    if not operands or rhs.attrs.get("strict"):
        return None
    if rhs.op.name == "check_index":
        return _check_index if operands[0].dtype is not u64 else None
    if rhs.op.name == "where":
        return _select
    if rhs.op.name == "cast":
        return _cast(operands[0], kinds[-1])
    return _arithmetic(rhs, operands[0].dtype, operands[0].weak)


def _is_word(atom: Atom) -> bool:
    """Whether an atom is a number of one word."""
    ty = atom.type
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype.size <= 8


def _arithmetic(call: OpCall, dtype: DType, weak: bool) -> Write | None:
    name = call.op.name
    suffix = dtype.name if dtype in (f32, f64) else "i64"
    if dtype.kind not in "biu" and suffix == "i64":  # 16-bit floats and complex64 are no integers
        return None
    if name in _COMPARE and dtype is not u64:
        return _binary(f"{_COMPARE[name]}.{suffix}")
    if dtype in (f32, f64):
        return _real(name, suffix, weak)
    if dtype is bool_:
        return _unary("not") if name == "logical_not" else _table(_LOGIC, name)
    if dtype is i64:
        return _integer(call, weak)
    return None


def _table(table: dict[str, str], name: str) -> Write | None:
    return _binary(table[name]) if name in table else None


def _real(name: str, suffix: str, weak: bool) -> Write | None:
    if name in _ARITHMETIC:
        return _binary(f"{_ARITHMETIC[name]}.{suffix}")
    if name == "divide":
        if weak:
            return _checked("div.f64", "ZeroDivisionError", DIVIDED_FLOAT_BY_ZERO)
        return _binary(f"div.{suffix}")
    if name in ("negative", "absolute"):
        return _unary(f"{'neg' if name == 'negative' else 'abs'}.{suffix}")
    return None


def _integer(call: OpCall, weak: bool) -> Write | None:
    name = call.op.name
    if name in _ARITHMETIC:
        op = f"{_ARITHMETIC[name]}.i64"
        return _checked(op, "OverflowError", TOO_LARGE) if weak else _binary(op)
    if name == "negative":
        if weak:
            subtract = _checked("sub.i64", "OverflowError", TOO_LARGE)
            return lambda p, target, x, let: subtract(p, target, (ZERO, *x), let)
        return _unary("neg.i64")
    if name in _FLOORING and weak:
        divisor = call.args[1]
        op, text = _FLOORING[name]
        if isinstance(divisor, Const) and divisor.value > 0:
            return _binary(op)
        return _guarded_division(op, text)
    return _table(_INTEGER, name)


def _guarded_division(op: str, text: str) -> Write:
    """Raise for a zero divisor; what is left to raise is a quotient of more than 64 bits."""
    divide = _checked(op, "OverflowError", TOO_LARGE)

    def write(p: FunctionPlanner, target: int, x: Words, let: Let) -> None:
        after = p.frame.label("divide")
        p.frame.emit(JumpIf(x[1], after))
        site = p.program.site("ZeroDivisionError", (text,), (), let.span)
        p.frame.emit(Raise(site, ()))
        p.frame.place(after)
        divide(p, target, x, let)

    return write


def _cast(source: TensorType, target: object) -> Write | None:
    assert isinstance(target, TensorType)
    a, b = source.dtype, target.dtype
    if b is bool_:
        if a.kind in "biu":
            return _unary("i64_to_bool")
        return _unary("f64_to_bool") if a is f64 else None
    if a.kind in "biu" and a is not u64:
        if b is i64:
            return _unary("move")
        if b in (f32, f64):
            return _unary(f"i64_to_{b.name}")
        return None
    if a in (f32, f64) and b in (f32, f64):
        return _unary("move" if a is b else f"{a.name}_to_{b.name}")
    return None


# -- how instructions are written ------------------------------------------------------------------


def _unary(op: str) -> Write:
    return lambda p, target, x, let: p.frame.emit(Unary(op, target, x[0]))


def _binary(op: str) -> Write:
    return lambda p, target, x, let: p.frame.emit(Binary(op, target, x[0], x[1]))


def _checked(op: str, exception: str, text: str) -> Write:
    def write(p: FunctionPlanner, target: int, x: Words, let: Let) -> None:
        site = p.program.site(exception, (text,), (), let.span)
        p.frame.emit(Checked(op, target, x[0], x[1], site))

    return write


def _select(p: FunctionPlanner, target: int, x: Words, let: Let) -> None:
    p.frame.emit(Select(target, x[0], x[1], x[2]))


def _check_index(p: FunctionPlanner, target: int, x: Words, let: Let) -> None:
    """The site's values are the position and the size; the axis is part of the text."""
    assert isinstance(let.rhs, OpCall)
    names: dict[str | int, str | int] = {1: str(let.rhs.attrs["axis"]), 2: 1}
    parts = tuple(names.get(part, part) for part in OUT_OF_BOUNDS)
    site = p.program.site("IndexError", parts, (i64, i64), let.span)
    p.frame.emit(Checked("index", target, x[0], x[1], site))
