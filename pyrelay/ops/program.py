"""What programs need besides numbers: extents as values, checks, exceptions, placeholders, tapes.

In and out: see each op. The planner turns them into instructions of their own. A tape is linear:
the result of `tape_push` or `tape_pop` replaces the operand, which must not be used again. Push
and pop are each other's adjoint, and the tape of cotangents holds floating values only.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.errors import exception_of
from pyrelay.ir import types
from pyrelay.ir.build import Handle
from pyrelay.ir.nodes import FnCall
from pyrelay.ir.op import Effect, Fusion, Op, RelationError, Sample, Vjp, define, not_differentiable
from pyrelay.ir.types import TAPE, TapeType, TensorType, Type
from pyrelay.ops.relations import require_kind, tensors
from pyrelay.ops.samples import spread

Attributes = Mapping[str, Any]
_INTEGER = not_differentiable("an extent is an integer")
_CHECK = not_differentiable("it has no results")


def _instruction(
    name: str, relation: Any, numpy: Callable[..., Any], vjp: Vjp, samples: Sequence[Sample],
    doc: str, effect: Effect = Effect.PURE, binds: int = 0,
) -> Op:
    return define(
        name, relation=relation, numpy=numpy, vjp=vjp, samples=samples, doc=doc, effect=effect,
        binds=binds, fusion=Fusion.OPAQUE, schedule="plan",
    )


# -- extents ------------------------------------------------------------------------------------


def _one_integer(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    operands = tensors(args)
    require_kind(operands, "iu")
    if operands[0].rank:
        raise RelationError(f"takes an integer, not {operands[0]}", arg=0, kind="type")
    return ()


def _as_extent(n: Any) -> tuple[tuple[()], tuple[int]]:
    if n < 0:
        raise ValueError("negative dimensions are not allowed")
    return (), (int(n),)


def _check_equal(*, left: int, right: int, text: str, stretches: bool = False) -> tuple[()]:
    if left != right:
        raise exception_of("ValueError", pieces(text), (left, right))
    return ()


def pieces(text: str) -> tuple[str | int, ...]:
    """The parts of the text of a `check_equal`: {0} and {1}, or two {}, stand for its extents."""
    found: list[str | int] = []
    for literal, name, _, _ in string.Formatter().parse(text):
        found.append(literal)
        if name is not None:
            found.append(int(name) if name else sum(isinstance(p, int) for p in found))
    return tuple(found)


extent = _instruction(
    "extent", lambda args, attrs: (types.PY_INT,), lambda *, size: size, _INTEGER,
    (Sample((), {"size": 4}),), "an extent as a Python int",
)
as_extent = _instruction(
    "as_extent", _one_integer, _as_extent, _INTEGER, (Sample((3,)), Sample((np.int32(0),))),
    "binds an extent to an int; ValueError if it is negative", Effect.RAISES, binds=1,
)
check_equal = _instruction(
    "check_equal", lambda args, attrs: (), _check_equal, _CHECK,
    (Sample((), {"left": 3, "right": 3, "text": "3 is not 3"}),),
    "ValueError with `text` (see `pieces`) unless the extents `left` and `right` are equal; where "
    "one is 1 and `stretches`, the call begins again if it has changed nothing",
    Effect.RAISES,
)

# -- placeholders and exceptions ----------------------------------------------------------------


def _undefined(*, type: Type) -> Any:
    if isinstance(type, TapeType):
        return []
    if type.weak:
        return types.python_type(type)(0)
    shape = [d for d in type.shape if isinstance(d, int)]
    return np.zeros(shape, type.dtype.numpy)[()]


def _raise(
    *values: Any, exception: str | type[BaseException], parts: tuple[Any, ...]
) -> tuple[()]:
    raise exception_of(exception, parts, values)


undef = _instruction(
    "undef", lambda args, attrs: (attrs["type"],), _undefined,
    not_differentiable("its value is never read"),
    (
        Sample((), {"type": TensorType(types.f64, (2, 3))}), Sample((), {"type": types.PY_INT}),
        Sample((), {"type": TensorType(types.i32)}), Sample((), {"type": TAPE}),
    ),
    "a placeholder of a type",
)
raise_ = _instruction(
    "raise", lambda args, attrs: (), _raise, _CHECK,
    (Sample((3, 4.5), {"exception": "ValueError", "parts": ("wanted ", 1, ", got ", 0)}),),
    "raises `exception`, a builtin's name or a class, with arguments from `parts` and the operands "
    "(see errors.exception_of)",
    Effect.RAISES,
)

# -- derivatives that users give -----------------------------------------------------------------


def _cotangents_by_rule(
    y: Any, g: Any, *operands: Handle, rule: str, count: int, seeded: tuple[int, ...],
    owed: tuple[tuple[int, int], ...], extents: Any, takes: tuple[Type, ...],
    gives: tuple[Type, ...], own: bool,
) -> tuple[Any, ...]:
    """What the rule, a function of the program, returns for these cotangents."""
    cotangents = (g,) if count == 1 else g
    builder = cotangents[0].builder
    args = list(operands[count:])
    for k, cotangent in zip(seeded, cotangents, strict=True):
        args[k] = cotangent
    atoms = tuple(as_given(builder, a, ty) for a, ty in zip(args, takes, strict=True))
    outs = builder.bind(FnCall(rule, atoms, extents), gives)
    found: list[Any] = [None] * len(operands)
    for leaf, out in owed:
        before = found[count + leaf]
        found[count + leaf] = outs[out] if before is None else before + outs[out]
    return tuple(found)


def as_given(builder: Any, value: Any, ty: Type) -> Any:
    """An operand of the type that a function takes: rules see Python's floats as NumPy's."""
    return builder.cast(value, ty.dtype, weak=ty.weak) if isinstance(ty, TensorType) else (
        builder.atom(value)
    )


def _through(*operands: Any, count: int, **attrs: Any) -> Any:
    return operands[0] if count == 1 else operands[:count]


ruled = define(
    "ruled", relation=lambda args, attrs: args[: attrs["count"]], numpy=_through,
    fusion=Fusion.INJECTIVE, vjp=_cotangents_by_rule,
    element=lambda s, i, *readers, count, **attrs: (
        readers[0](i) if count == 1 else tuple(x(i) for x in readers[:count])
    ),
    samples=(
        Sample(
            (spread((3,)), spread((3,))),
            {"rule": "rule", "count": 1, "seeded": (0,), "owed": (), "extents": (),
             "takes": (TensorType(types.f64, (3,)),), "gives": (), "own": False},
            differentiable=False,
        ),
    ),
    doc="the first `count` operands, whose derivative by the others is the function `rule`; own: "
    "that is the derivative of what computes them, from its arguments alone",
)

barrier = _instruction(
    "barrier", lambda args, attrs: args[:1], lambda x, *others: x,
    lambda y, g, x, *others: (g, *(None for _ in others)),
    (Sample((spread((3,)), spread((2,)))),),
    "the first operand, not before the others are known: what is computed of it is not taken from "
    "what was computed of the operand itself",
)

# -- tapes --------------------------------------------------------------------------------------


def _require_tape(args: Sequence[Type]) -> None:
    if not args or not isinstance(args[0], TapeType):
        raise RelationError("needs a tape", arg=0, kind="type")


def _pushed(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    _require_tape(args)
    tensors(args[1:])
    return (TAPE,)


def _popped(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    _require_tape(args)
    return (TAPE, attrs["type"])


def _push(tape: list[Any], value: Any) -> list[Any]:
    tape.append(value)
    return tape


def _pop(tape: list[Any], *, type: TensorType) -> tuple[list[Any], Any]:
    if not tape:
        raise AssertionError("the tape is empty")
    value = tape.pop()
    if np.shape(value) != tuple(type.shape):
        raise AssertionError(f"a tape held {np.shape(value)} where {type} was to be popped")
    return tape, value


def _cotangents_of_push(y: Handle, g: Handle, tape: Handle, value: Handle) -> tuple[Any, ...]:
    if not value.dtype.is_float:
        return g, None
    rest, cotangent = tape_pop(g, type=TensorType(value.dtype, value.shape))
    return rest, cotangent


def _cotangent_of_pop(y: Any, g: Any, tape: Handle, *, type: TensorType) -> tuple[Any, ...]:
    of_tape, of_value = g
    return (tape_push(of_tape, of_value) if type.dtype.is_float else of_tape,)


tape_new = _instruction(
    "tape_new", lambda args, attrs: (TAPE,), list, not_differentiable("it has no operands"),
    (Sample(()),), "an empty tape",
)
tape_push = _instruction(
    "tape_push", _pushed, _push, _cotangents_of_push,
    (Sample(([], spread((3,)))), Sample(([1], 2.5))),
    "the tape with a value on top",
)
tape_pop = _instruction(
    "tape_pop", _popped, _pop, _cotangent_of_pop,
    (
        Sample(([spread((3,))],), {"type": TensorType(types.f64, (3,))}),
        Sample(([2.5],), {"type": types.PY_FLOAT}),
    ),
    "the tape without its topmost value, and that value; never removed, so that pops match pushes",
    Effect.RAISES,
)
