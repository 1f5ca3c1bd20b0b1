"""How the record of an elementwise op is made from one row of a table.

In: a name, NumPy's function, the accepted kinds and the slopes. Out: a registered `Op` whose
derivative, element rule and meaning on Python numbers follow from them.

Derivatives. `slopes` holds, per operand, the derivative of the result by that operand: a number, or
a function `(y, *operands) -> handle`, or None where there is none. The cotangent is g times the
slope with a *strong zero*: where g is exactly 0 so is the product, even if the slope is infinite or
NaN (op `scale`). Therefore the gradient of `where(x > 0, log(x), 0)` at 0 is 0. Rules see Python
numbers as NumPy ones (the engine casts them), so backward code divides by zero without raising. For
complex operands the rules are the plain transpose, without conjugation (JAX's convention):
dL = Re(cotangent * dz), so the gradient of |z|**2 at 1+2j is 2-4j.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay.ir.build import Handle
from pyrelay.ir.nodes import Const
from pyrelay.ir.op import (
    OPS,
    Fusion,
    NotDifferentiable,
    Op,
    Promotion,
    Relation,
    Sample,
    Vjp,
    define,
    not_differentiable,
)
from pyrelay.ops.complex_functions import COMPLEX
from pyrelay.ops.python_numbers import MATH, Guard, Meaning, like_math, meaning
from pyrelay.ops.relations import elementwise as same_dtype

Slope = Callable[..., Any] | float | None
STEPS = not_differentiable("the result is constant between steps: its derivative is 0")
DISCRETE = not_differentiable("the result is a bool or an integer")
#: Functions that `math` lets overflow; the others answer an infinity with a domain error.
_OVERFLOWING = frozenset({"exp", "exp2", "expm1", "sinh", "cosh", "power"})


def times(g: Handle, slope: Any) -> Handle:
    """g * slope, and 0 where g is 0."""
    value = slope.atom.value if _is_constant(slope) else slope
    if isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value):
        if value == 1:
            return g
        product: Handle = -g if value == -1 else g * slope
        return product
    scaled: Handle = OPS["scale"](g, slope)
    return scaled


def _is_constant(slope: Any) -> bool:
    return isinstance(slope, Handle) and isinstance(slope.atom, Const)


def _rule_of(slopes: Sequence[Slope]) -> Callable[..., tuple[Any, ...]]:
    def vjp(y: Handle, g: Handle, *args: Handle, **attrs: Any) -> tuple[Any, ...]:
        return tuple(
            None if slope is None
            else times(g, slope(y, *args) if callable(slope) else slope)
            for slope in slopes
        )

    return vjp


def _element_of(name: str, guard: Guard | None) -> Callable[..., Any]:
    """Read the operands, apply the scalar primitive of that name, check as Python would."""
    strict_guard = like_math(name, name in _OVERFLOWING) if name in MATH else None

    def element(s: Any, i: tuple[Any, ...], *readers: Any, strict: bool = False) -> Any:
        values = tuple(x(i) for x in readers)
        if readers[0].dtype.kind == "c" and name in COMPLEX:
            return COMPLEX[name](s, *values)
        result = getattr(s, name)(*values)
        check = strict_guard if strict else guard
        if s.weak and check is not None:
            check(s, readers, values, result)
        return result

    return element


def elementwise(
    name: str,
    numpy: Meaning,
    slopes: Sequence[Slope] | NotDifferentiable | None = None,
    *,
    samples: Sequence[Sample],
    doc: str,
    relation: Relation | None = None,
    kinds: str = "biufc",
    promotion: Promotion = Promotion.COMMON,
    python: Meaning | None = None,
    guard: Guard | None = None,
    vjp: Vjp | None = None,
    element: Callable[..., Any] | None = None,
) -> Op:
    """Define an elementwise op.

    numpy     NumPy's function; `python` computes on Python numbers, by default as NumPy.
    slopes    the derivatives (see above), or the reason why there are none; or give a whole `vjp`.
    guard     the checks that compiled code adds when the operands are Python numbers.
    element   by default the scalar primitive of the same name on the operands' elements.
    """
    rule: Vjp | None = vjp
    if isinstance(slopes, NotDifferentiable):
        rule = slopes
    elif slopes is not None:
        rule = _rule_of(slopes)
    if rule is None:
        raise ValueError(f"op {name!r} needs slopes, a vjp, or the reason why it has none")
    return define(
        name,
        relation=relation or same_dtype(kinds),
        numpy=meaning(numpy, python, MATH.get(name)),
        fusion=Fusion.ELEMENTWISE,
        vjp=rule,
        element=element or _element_of(name, guard),
        promotion=promotion,
        samples=samples,
        doc=doc,
    )
