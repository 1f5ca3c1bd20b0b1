"""The operator record: one op, one place.

A record says how an op is typed, what it means in NumPy, how it is differentiated, how one element
of its result is computed on any target, and which samples test it. `define` checks that nothing is
missing and enters the op in `OPS` under its name (its name in the text format).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.ir.types import Type


class Fusion(IntEnum):
    """How an op combines with its neighbours in one kernel."""

    ELEMENTWISE = 0  # element i of the result needs element i (broadcast) of each argument
    INJECTIVE = 1  # each element of the result needs one element of an argument, elsewhere
    REDUCTION = 2  # an element of the result needs many elements of an argument
    OPAQUE = 3  # has a kernel of its own (`schedule`), or is an instruction of the plan
    # An op may be `INJECTIVE` with many reads (gather): what matters is that its element rule does
    # not loop.


class Promotion(Enum):
    """What the builder does to operand types before the relation sees them."""

    NONE = "none"  # operands are taken as they are
    COMMON = "common"  # all operands are cast to NumPy's common type
    FLOAT = "float"  # common type, integers become floating
    DIVIDE = "divide"  # common type, NumPy integers become f64 (true division)
    COMPARED = "compared"  # common type; integers become wide enough for a Python int beside them
    BOOLEAN = "boolean"  # all operands are cast to bool (their truth)
    ARITHMETIC = "arithmetic"  # common type, except that Python bools become int
    NUMBER = "number"  # as ARITHMETIC, and NumPy bools become i8
    CHOICE = "choice"  # the first operand is cast to bool, the others to their common type


class Effect(IntEnum):
    """What happens besides the result; effects keep their order."""

    PURE = 0
    RAISES = 1  # may stop the program: never removed, never moved where it would not have run
    HOST = 2  # talks to Python (print, progress)


class RelationError(Exception):
    """An op cannot take these operands: `text` for the user, `arg` the operand at fault if one is.

    `kind` chooses the exception the user sees: "shape", "type" or "value". `raises`: class and
    words of what NumPy raises, for those who catch it.
    """

    def __init__(
        self, text: str, *, arg: int | None = None, kind: str = "shape", note: str | None = None,
        hint: str | None = None, raises: tuple[type[Exception], str] | None = None,
    ) -> None:
        super().__init__(text)
        self.text, self.arg, self.kind, self.note, self.hint = text, arg, kind, note, hint
        self.raises = raises


@dataclass(frozen=True, slots=True)
class NotDifferentiable:
    """A written reason why an op has no derivative rule: its results carry no cotangent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Arguments (NumPy values) and attributes that the generated tests call an op with.

    `given` may be what makes the arguments: nobody but tests does.
    """

    given: tuple[Any, ...] | Callable[[], tuple[Any, ...]]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    differentiable: bool = True  # False: at a kink or outside the domain, skip gradient tests

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments."""
        return self.given() if callable(self.given) else self.given


def not_differentiable(reason: str) -> NotDifferentiable:
    """The `vjp` of an op without derivative; the reason is shown in the reference of ops."""
    return NotDifferentiable(reason)


# relation(argument types, attributes) -> result types; raises RelationError
Relation = Callable[[tuple[Any, ...], Mapping[str, Any]], "tuple[Type, ...]"]
# vjp(y, g, *args, **attrs) -> one cotangent handle or None per argument
Vjp = Callable[..., "tuple[Any, ...]"] | NotDifferentiable


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operator. See `define` for the fields."""

    name: str
    relation: Relation
    numpy: Callable[..., Any]
    fusion: Fusion
    vjp: Vjp
    element: Callable[..., Any] | None
    schedule: str | None
    promotion: Promotion
    effect: Effect
    binds: int
    samples: Sequence[Sample]
    doc: str
    linear: bool = False

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        """Emit the op through the builder of the first handle among `args` (used in rules)."""
        for arg in args:
            if hasattr(arg, "builder"):
                return arg.builder.call(self, *args, **attrs)
        raise TypeError(f"op {self.name!r} was applied to no handle; use Builder.call")


OPS: dict[str, Op] = {}


def define(
    name: str,
    *,
    relation: Relation,
    numpy: Callable[..., Any],
    fusion: Fusion,
    vjp: Vjp,
    element: Callable[..., Any] | None = None,
    schedule: str | None = None,
    promotion: Promotion = Promotion.NONE,
    effect: Effect = Effect.PURE,
    binds: int = 0,
    samples: Sequence[Sample] = (),
    doc: str = "",
    linear: bool = False,
) -> Op:
    """Make the record of an op and register it.

    relation   types: operand types (after promotion) and attributes -> result types.
    numpy      meaning: operand values and attributes -> value (a tuple for several results). For
               weak scalars the operands are Python numbers and the Python result is meant.
    fusion     how it may be fused.
    vjp        `vjp(y, g, *args, **attrs)` on typed handles (y and g tuples if there are several
               results): one cotangent or None per operand. The engine sums broadcast axes, casts
               dtypes, accumulates, and passes no zero cotangents.
    element    `element(s, i, *readers, **attrs)` -> scalar expression of the result's element at
               index tuple `i` (a tuple of them for several results): see
               `lower/kernels/kernelise.py`.
    schedule   for opaque ops: the name of the kernel or plan construct that computes it.
    promotion  what the builder does to operands first.
    effect     what it does besides computing.
    binds      number of new symbols it binds (extents known once it has run); its relation finds
               them as the extents `attrs["dims"]`, and `numpy` returns (value(s), extents).
    samples    arguments for the generated tests.
    linear     the result is linear in the floating operands taken together, so that its tangent is
               the op of their tangents; else forward mode transposes `vjp` (`grad/forward.py`).

    Raises ValueError if a field is missing: an op is complete or does not exist.
    """
    if name in OPS:
        raise ValueError(f"op {name!r} is defined twice")
    if (element is None) == (schedule is None):
        raise ValueError(f"op {name!r} needs an element rule or a schedule, and not both")
    if not samples:
        raise ValueError(f"op {name!r} has no samples, so nothing would test it")
    op = Op(
        name, relation, numpy, fusion, vjp, element, schedule, promotion, effect, binds,
        tuple(samples), doc, linear,
    )
    OPS[name] = op
    return op
