"""The layouts of tuples and strings whose length only the running program knows.

In: layouts of tuples and strings, known or not. Out: what their items are laid out like, and
whether two of them meet as one of run-time length (open_sequences.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyrelay.infer.containers.code_points import from_codes, from_items
from pyrelay.infer.layout import (
    Layout,
    LFixed,
    LGrown,
    LKnown,
    LNode,
    LParam,
    LPlace,
    LScalar,
    LUnion,
    LView,
    same_structure,
)
from pyrelay.ir import types
from pyrelay.records import dataclass

OPEN_TUPLE: tuple[Any, ...] = ("open tuple",)
OPEN_TEXT: tuple[Any, ...] = ("text", from_items, 1, (str(None),))
"""The heads of tuples and strings whose items are in a list (open_sequences.py)."""


def is_open(layout: Layout) -> bool:
    """Whether a layout is that of a tuple or a string whose items are in a list of its own."""
    return isinstance(layout, LNode) and layout.head in (OPEN_TUPLE, OPEN_TEXT)


def items_of_open(layout: Layout) -> Any:
    """The layout of the items of a tuple or a string, as that of a list's content; None for what
    is no tuple or string, or one that Python has to make."""
    match layout:
        case LNode(head, (LPlace(_, "list", _, content),)) if head in (OPEN_TUPLE, OPEN_TEXT):
            return content
        case LNode(("tuple", None, count), children):
            return LNode(("items", count), children)
        case LKnown(str() | tuple() as items) if type(items) in (str, tuple):
            codes = map(ord, items) if isinstance(items, str) else items
            return LNode(("items", len(items)), tuple(map(LKnown, codes)))
        case LNode(("text", function, *_), children) if function is chr:
            return LNode(("items", 1), children)
        case LNode(("text", function, *_), (child,)) if (
            function is from_codes and not isinstance(child, LParam)
        ):
            array = child.value.type if isinstance(child, LFixed) else (
                child.type if isinstance(child, LView) else child.content  # type: ignore[union-attr]
            )
            return LGrown(LScalar(types.PY_INT), array.shape[0])
    return None


def holds_objects(layout: Layout) -> bool:
    """Whether a value is, or has in it, an array or a list, which may have another name as well.

    The lists that tuples and strings of run-time length are made of have none.
    """
    pending = [layout]
    while pending:
        match pending.pop():
            case LPlace(content=content) if content is not None:
                return True
            case LNode(_, parts) as node if not is_open(node):
                pending.extend(parts)
            case LUnion(parts):
                pending.extend(parts)
    return False


def is_string(layout: Layout) -> bool:
    """Whether a layout is that of a string, known or not."""
    known = isinstance(layout, LKnown) and isinstance(layout.value, str)
    return known or (isinstance(layout, LNode) and layout.head[0] == "text")


def becomes_open(layout: Layout, wanted: Layout) -> bool:
    """Whether what is laid out so, in an item of a list, can be of run-time length as wanted."""
    if isinstance(layout, LUnion):
        return all(becomes_open(case, wanted) for case in layout.cases)
    assert isinstance(wanted, LNode)
    (place,) = wanted.children
    assert isinstance(place, LPlace)
    items = items_of_open(layout)
    return is_string(layout) == is_string(wanted) and isinstance(items, LNode) and all(
        types.of_scalar(x.value) is not None if isinstance(x, LKnown)
        else same_structure(x, place.content.template) for x in items.children
    )


def holds_strings(layout: Any) -> bool:
    """Whether a string is what is laid out so, or is in it."""
    match layout:
        case LGrown(template):
            return holds_strings(template)
        case LPlace(content=(LNode() | LGrown()) as content):
            return holds_strings(content)
        case LNode(_, parts) | LUnion(parts):
            return is_string(layout) or any(map(holds_strings, parts))
    return is_string(layout)


# -- where they meet ------------------------------------------------------------------------------


@dataclass
class Sequences:
    """Whether tuples of different lengths that meet make one of run-time length, and strings that
    a loop makes longer; `wanted`: whether some would have, `lengthened`: strings among them;
    `tried`: whether that was asked for."""

    open: bool = False
    wanted: bool = False
    lengthened: bool = False
    tried: bool = False


_sequences: ContextVar[Sequences] = ContextVar("sequences", default=Sequences())  # noqa: B039


def sequences() -> Sequences:
    """What holds for the tuples and strings of the present attempt."""
    return _sequences.get()


@contextmanager
def sequences_of_run_time_length(made: Sequences) -> Iterator[None]:
    """Join tuples and strings so inside a `with` block."""
    token = _sequences.set(made)
    try:
        yield
    finally:
        _sequences.reset(token)


def meet_open(a: Layout, b: Layout) -> bool:
    """Whether two tuples, or two strings, meet as one of run-time length."""
    if is_string(a) != is_string(b) or items_of_open(a) is None or items_of_open(b) is None:
        return False
    if is_open(a) or is_open(b):
        return not (is_open(a) and is_open(b))
    state = _sequences.get()
    if is_string(a):
        if isinstance(a, LKnown) or isinstance(b, LKnown) or a.head[:2] == b.head[:2]:  # type: ignore[union-attr]
            return False
    elif items_of_open(a).head == items_of_open(b).head:
        return False
    state.wanted = True
    return state.open
