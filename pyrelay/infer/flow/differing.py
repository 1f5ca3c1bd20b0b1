"""Layouts that differ at a glance.

In: two layouts, of one argument in two calls. Out: whether no layout holds both but a union, as far
as that can be told without a join (joining.py): functions, kinds of objects, keys of dicts and
types of arrays that differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.infer.flow.joining import same_value
from pyrelay.infer.layout import Layout, LKnown, LNode, LPlace
from pyrelay.ir.types import TensorType

_FUNCTIONS = ("closure", "method", "partial", "derivative")


def differ(old: Sequence[Layout], new: Sequence[Layout]) -> tuple[Layout, Layout] | None:
    """Two layouts in one place that differ so; None if there are none."""
    pending = list(zip(old, new, strict=True))
    while pending:
        pair = pending.pop()
        match pair:
            case LKnown(x), LKnown(y) if callable(x) and callable(y):
                if not (x is y or same_value(x, y)):
                    return pair
            case (LKnown(f), LNode((kind, *_))) | (LNode((kind, *_)), LKnown(f)) if (
                kind in _FUNCTIONS and callable(f)
            ):
                return pair
            case LNode((kind, *_) as head, xs), LNode((other, *_) as its, ys) if (
                kind in _FUNCTIONS and other in _FUNCTIONS
            ):
                if head != its:
                    return pair
                pending += zip(xs, ys, strict=True)
            case LPlace(kind=kind, content=x), LPlace(kind=other, content=y):
                if kind != other:
                    return pair
                match x, y:
                    case TensorType(), TensorType():
                        if x.dtype != y.dtype or x.rank != y.rank:
                            return pair
                    case LNode(("pairs", keys), xs), LNode(("pairs", its), ys):
                        if keys != its:
                            return pair
                        pending += zip(xs, ys, strict=True)
    return None
