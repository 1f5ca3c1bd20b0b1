"""Layouts: how abstract values are spelled as typed variables where control flow meets.

describing.py gives the layout of a value, joining.py finds the layout that two values fit, and
coding.py turns values into variables and back. A layout has leaves with types (numbers,
array contents, tags of unions) around structure that is known while compiling.

Mutable objects appear either as `Fixed` (the very same root on all paths) or as a place with a
content of its own, shared by every mention of it in one layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.arrays.windows import Form
from pyrelay.infer.containers.code_points import from_codes, from_items
from pyrelay.infer.slots import Inside, inside
from pyrelay.ir import types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import UNREAD
from pyrelay.ir.types import DType, TensorType
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class LKnown:
    """The same Python object on all paths."""

    value: Any


@dataclass(frozen=True, slots=True)
class LScalar:
    """A number. `extent` if it is the same polynomial of extents on all paths.

    `kinds` are what it may be in Python, if that is not its type (kinds.py). holders: types
    that hold all constants that it comes of (`kinds.holders`).
    """

    type: TensorType
    extent: Extent | None = None
    origin: Any = None
    kinds: tuple[TensorType, ...] = ()
    holders: frozenset[DType] = frozenset()


@dataclass(frozen=True, slots=True)
class LFixed:
    """The same mutable object (and, for arrays, the same view) on all paths: no leaf at all."""

    value: Any  # ArrayRef or Ref; of a pool in an `LGrown` its number there


@dataclass(frozen=True, slots=True)
class LPlace:
    """A mutable object with content of its own. Equal `key` means the same object.

    `content` is a TensorType for an array, else the layout of the content (an LNode).
    """

    key: int
    kind: str
    cls: Any
    content: Any
    may_be: frozenset[Any] = frozenset()  # older roots; in what a function returns, keys of places
    rivals: frozenset[int] = frozenset()  # keys of earlier places that may be the same object
    numbered: bool = False  # a first leaf says which object it is (identity.py)
    stored: Any = False  # where it became an item of a growing list
    made: Any = field(default=None, compare=False)  # what makes it, of a dict, set or list display


@dataclass(frozen=True, slots=True)
class LNode:
    """Immutable structure: `head` says which, `children` follow."""

    head: tuple[Any, ...]
    children: tuple[Layout, ...]
    made: frozenset[Any] = field(default=frozenset(), compare=False)  # as of a `Tuple`


@dataclass(frozen=True, slots=True)
class LUnion:
    """One of several cases; a tag and the leaves of all of them."""

    cases: tuple[Layout, ...]


@dataclass(frozen=True, slots=True)
class LView:
    """A view of an array: a leaf per indexed axis, after those of the array itself.

    Where the slice of each axis starts, how long it is, and the type are written in symbols that
    the join binds where they differ.
    """

    base: Layout
    form: Form
    starts: tuple[Extent, ...]
    sizes: tuple[Extent, ...]
    type: TensorType


@dataclass(frozen=True, slots=True)
class LParam:
    """In what a function returns: the very object that is place `key` of its arguments."""

    key: int
    root: V.Root = field(compare=False)


@dataclass(frozen=True, slots=True)
class LGrown:
    """The content of a list whose length is known only at run time: a count and rows of leaves.

    pools: those of the nodes among its items that are not known outside; the template has their
    numbers. known: the count, where that is one number on all paths.
    """

    template: Layout  # of one item
    capacity: Extent
    loops: frozenset[Any] = field(default=frozenset(), compare=False)  # as of a `Growing`
    slots: Any = None
    pools: tuple[Layout, ...] = ()
    known: int | None = None

    @property
    def leaves(self) -> tuple[TensorType, ...]:
        """The count, then for each leaf of an item an array of them."""
        return (types.PY_INT, *(rows_of(t, self.capacity) for t in template_types(self.template)))


@dataclass(frozen=True, slots=True)
class LRagged:
    """The content of an array in a growing list whose arrays differ in shape.

    type: with the extents for which there is room, those of the largest one.
    """

    type: TensorType

    @property
    def leaves(self) -> tuple[TensorType, ...]:
        """The extents of the array, then its elements with room behind them."""
        return (*[types.PY_INT] * self.type.rank, self.type)


def leaf_type(content: TensorType | LRagged) -> TensorType:
    """The type of an array in a list; if there are larger ones, with the room for those."""
    return content.type if isinstance(content, LRagged) else content


Layout = LKnown | LScalar | LFixed | LPlace | LNode | LUnion | LView | LParam

LETTER: Layout = LNode(("text", chr, 1, (str(types.PY_INT),)), (LScalar(types.PY_INT),))
"""A string of one letter, which is its code point."""


class JoinError(Exception):
    """Two layouts have no common one; `left` and `right` are the parts that differ."""

    def __init__(self, left: Layout, right: Layout, what: str) -> None:
        super().__init__(what)
        self.left, self.right, self.what = left, right, what


class NoCase(Exception):
    """A value is none of the cases that it was described as: an object that it holds took another
    layout meanwhile, in another place that has it."""


# -- immutable structure ---------------------------------------------------------------------------


def head_of(value: V.Value) -> tuple[Any, ...] | None:
    """What two structured values must share to be joined child by child; None for leaves."""
    match value:
        case V.Tuple(items, cls):
            return ("tuple", cls, len(items))
        case V.OpenTuple():
            return ("open tuple",)
        case V.Text(function, args):
            # Text of an int and text of a float are two texts: their numbers are not joined.
            kinds = tuple(str(V.number_type(v)) for v in V.leaves_of(args))
            return ("text", function, len(args), kinds)
        case V.Raised(cls, args, keywords, span):
            shown = tuple(head_of(v) or V.describe(v) for v in args)
            return ("raised", cls, shown, tuple(k for k, _ in keywords), span)
        case V.Slice():
            return ("slice",)
        case V.Range():
            return ("range",)
        case V.Natural():
            return ("natural",)
        case V.Closure(function, home, owner, defaults, cells):
            return ("closure", function, home, owner, tuple(n for n, _ in defaults), len(cells))
        case V.Method(_, name, function):
            return ("method", name, function)
        case V.Partial(_, args, keywords):
            return ("partial", len(args), tuple(n for n, _ in keywords))
        case V.Derivative(_, kind, argnums, argnames, has_aux, rules):
            return ("derivative", kind, argnums, argnames, has_aux, rules)
        case V.Lazy(kind, sources, extra):
            return ("lazy", kind, len(sources), extra is None)
        case V.Data(pool, kind):
            return ("data", pool.cls, (kind,))
        case V.Items(pool, cls, sort, path):
            return ("items", pool.cls, cls, sort, path)
    return None


def children_of(value: V.Value) -> tuple[V.Value, ...]:
    """The values inside a structured value, in the order `rebuild` takes them."""
    match value:
        case V.Tuple(items) | V.Text(args=items):
            return items
        case V.OpenTuple(items):
            return (items,)
        case V.Raised(_, args, keywords):
            return (*args, *(v for _, v in keywords))
        case V.Slice(a, b, c) | V.Range(a, b, c):
            return (a, b, c)
        case V.Natural(bits):
            return (V.Scalar(TensorType(types.u64), bits),)
        case V.Closure(defaults=defaults, cells=cells):
            return tuple(v for _, v in defaults) + cells
        case V.Method(receiver=receiver):
            return (receiver,)
        case V.Partial(callee, args, keywords):
            return (callee, *args, *(v for _, v in keywords))
        case V.Derivative(callee=callee):
            return (callee,)
        case V.Lazy(sources=sources, extra=extra):
            return sources if extra is None else (*sources, extra)
        case V.Data() | V.Union():
            parts = V.node_of(value)
            return () if parts is None else (parts[0], *parts[2:])
        case V.Items(pool, start=start, count=count):
            return (pool, start, count)
    return ()


def rebuild(
    head: tuple[Any, ...], children: Sequence[V.Value], made: frozenset[Any] = frozenset()
) -> V.Value:
    """The structured value of a head and children."""
    c = tuple(children)
    match head:
        case ("tuple", cls, _):
            return V.Tuple(c, cls, made)
        case ("open tuple",):
            assert isinstance(c[0], V.Ref)
            return V.OpenTuple(c[0])
        case ("text", function, _, _):
            return V.Text(function, c)
        case ("raised", cls, shown, names, span):
            split = len(shown)
            return V.Raised(cls, c[:split], tuple(zip(names, c[split:], strict=True)), span)
        case ("slice",):
            return V.Slice(*c)
        case ("range",):
            return V.Range(*c)
        case ("natural",):
            assert isinstance(c[0], V.Scalar)
            assert c[0].atom is not None
            return V.Natural(c[0].atom)
        case ("closure", function, home, owner, names, _):
            split = len(names)
            return V.Closure(
                function, home, owner, tuple(zip(names, c[:split], strict=True)), c[split:]
            )
        case ("method", name, function):
            return V.Method(c[0], name, function)
        case ("partial", count, names):
            pairs = tuple(zip(names, c[1 + count :], strict=True))
            return V.Partial(c[0], c[1 : 1 + count], pairs)
        case ("derivative", *options):
            return V.Derivative(c[0], *options)
        case ("lazy", kind, _, no_extra):
            return V.Lazy(kind, c, None) if no_extra else V.Lazy(kind, c[:-1], c[-1])
        case ("data", _, kinds):
            pool, kind, row = c
            assert isinstance(pool, V.Ref)
            return V.node(pool, kinds, kind, row)
        case ("items", _, cls, sort, path):
            pool, start, count = c
            assert isinstance(pool, V.Ref)
            return V.Items(pool, cls, sort, path, start, count)
    raise AssertionError(head)


# -- contents of containers: a head and children too -----------------------------------------------


def content_head(content: Any) -> tuple[Any, ...]:
    """Head of the content of a list (tuple of values), dict (pairs), object (fields) or cell."""
    if isinstance(content, dict):
        return ("pairs", tuple(content))
    if isinstance(content, tuple):
        return ("items", len(content))
    if isinstance(content, V.Growing):
        return ("growing",)
    if isinstance(content, V.Part):
        start = "from the start" if isinstance(content.position, V.Known) else "moved"
        return ("part", content.owner, content.path, content.slots, start)
    if isinstance(content, V.Lost):
        return ("lost",)
    if isinstance(content, V.Varied):
        return ("varied", content.going)
    return ("cell",)


def content_children(content: Any) -> tuple[V.Value, ...]:
    """The values in a container's content."""
    if isinstance(content, dict):
        return tuple(content.values())
    if isinstance(content, tuple):
        return content
    if isinstance(content, V.Growing):
        return ()  # its items are copies, in arrays of its own
    if isinstance(content, V.Part):
        return (content.position,)
    if isinstance(content, V.Lost):
        return ()
    return (content.value,) if isinstance(content, V.Varied) else (content,)


def rebuild_content(head: tuple[Any, ...], children: Sequence[V.Value]) -> Any:
    """The content of a head and values."""
    match head:
        case ("pairs", keys):
            return dict(zip(keys, children, strict=True))
        case ("items", _):
            return tuple(children)
        case ("part", owner, path, slots, _):
            return V.Part(owner, children[0], path, slots)
        case ("lost",):
            return V.Lost()
        case ("varied", going):
            return V.Varied(children[0], going)
    return children[0]


def fitted_to(content: Any, layout: Any) -> Any:
    """A container's content, as one that varies where the layout says so."""
    varies = isinstance(layout, LNode) and layout.head[0] == "varied"
    if not varies or isinstance(content, V.Varied):
        return content
    going = V.Structure.of(content)
    return V.Varied(V.Tuple(content_children(content), going), going)  # type: ignore[arg-type]


def differ_by_raise(a: LNode, b: LNode) -> bool:
    """Whether two contents have one structure where the program does not raise."""
    x, y = varying(a), varying(b)
    return x is not None and y is not None and x.head == y.head and x.head[1] is not None


def varying(layout: LNode) -> LNode | None:
    """The layout of a content as of one that varies; None if its structure is no plain one."""
    match layout.head:
        case ("varied", _):
            return layout
        case ("pairs", _) | ("items", _):
            names = layout.head[1] if layout.head[0] == "pairs" else None
            going = V.Structure(len(layout.children), names)
            head = ("tuple", going, len(layout.children))
            return LNode(("varied", going), (LNode(head, layout.children),))
    return None


# -- items of growing lists ------------------------------------------------------------------------


def rows_of(leaf: TensorType, capacity: Extent) -> TensorType:
    """The type of the array that holds a leaf of every item."""
    return TensorType(leaf.dtype, (capacity, *leaf.shape))


def template_types(template: Layout) -> Iterator[TensorType]:
    """Types of the leaves of an item, in the order of `leaves.leaf_types`."""
    match template:
        case LScalar(ty, kinds=kinds):
            yield ty
            if kinds:
                yield types.PY_INT
        case LPlace(_, _, _, TensorType() as ty):
            yield ty
        case LPlace(content=(LGrown() | LRagged()) as inner):
            yield from inner.leaves
        case LNode(_, children):
            for child in children:
                yield from template_types(child)
        case LUnion(cases):
            yield types.PY_INT
            for case in cases:
                yield from template_types(case)


def retyped(template: Layout, leaves: Iterator[TensorType]) -> Layout:
    """The template with the shapes of other leaves; numbers stay Python's or NumPy's."""
    match template:
        case LScalar(ty, kinds=kinds):
            number = LScalar(TensorType(next(leaves).dtype, (), ty.weak), kinds=kinds)
            if kinds:
                next(leaves)
            return number
        case LPlace(key, kind, cls, TensorType()):
            return LPlace(key, kind, cls, next(leaves))
        case LPlace(key, kind, cls, LRagged(ty)):
            *_, own = (next(leaves) for _ in range(1 + ty.rank))
            return LPlace(key, kind, cls, LRagged(own))
        case LPlace(key, "list", cls, LGrown(item) as inner):
            next(leaves)
            rows = [next(leaves) for _ in template_types(item)]
            capacity = rows[0].shape[0] if rows else 0
            items = retyped(item, iter(TensorType(r.dtype, r.shape[1:]) for r in rows))
            content = replace(inner, template=items, capacity=capacity)
            return LPlace(key, "list", cls, content, made=template.made)
        case LNode(_, children):
            return replace(template, children=tuple(retyped(c, leaves) for c in children))
        case LUnion(cases):
            next(leaves)
            return LUnion(tuple(retyped(c, leaves) for c in cases))
    return template


def with_pools(template: Layout, pool: Callable[[Any], Any]) -> Layout:
    """The template with other pools of its nodes: `pool` of what is there, a pool or its number."""
    match template:
        case LNode(("data", *_) as head, (LFixed(there), *place)):
            return LNode(head, (LFixed(pool(there)), *place))
        case LNode(_, children):
            return replace(template, children=tuple(with_pools(c, pool) for c in children))
        case LUnion(cases):
            return LUnion(tuple(with_pools(c, pool) for c in cases))
        case LPlace(_, "list", _, LGrown(item) as inner):
            return replace(template, content=replace(inner, template=with_pools(item, pool)))
    return template


def pools_of(template: Layout) -> tuple[V.Ref, ...]:
    """The pools of the nodes in an item, each once."""
    found: dict[V.Root, V.Ref] = {}

    def note(here: Layout) -> None:
        match here:
            case LNode(("data", *_), (LFixed(pool), *_)):
                found.setdefault(pool.root, pool)
            case LNode(_, parts) | LUnion(parts):
                for part in parts:
                    note(part)
            case LPlace(_, "list", _, LGrown(item)):
                note(item)

    note(template)
    return tuple(found.values())


def as_template(layout: Layout) -> Layout:
    """The layout of a value as an item of a growing list, which holds copies of arrays.

    Raises JoinError for an item that cannot be copied.
    """
    count = 0

    def convert(here: Layout) -> Layout:
        nonlocal count
        match here:
            case LKnown(str() as text) if len(text) == 1:
                return LETTER
            case LKnown(v):
                ty = types.of_scalar(v)
                return here if ty is None else LScalar(ty)
            case LScalar(ty, kinds=kinds):
                return LScalar(ty, kinds=kinds)
            case LFixed(V.ArrayRef(type=array)) | LPlace(_, "array", _, array):
                count += 1
                return LPlace(count, "array", None, array)
            case LView(type=array):
                count += 1
                return LPlace(count, "array", None, array)
            case LNode(("tuple" | "data" | "open tuple" | "natural", *_), children):
                return replace(here, children=tuple(map(convert, children)))
            case LNode(("text", function, *_) as head, children) if function in (chr, from_items):
                return LNode(head, tuple(map(convert, children)))
            case LNode(("text", function, *_), _) if function is from_codes:
                from pyrelay.infer.containers.open_layouts import OPEN_TEXT, items_of_open

                count += 1
                return LNode(OPEN_TEXT, (LPlace(count, "list", None, items_of_open(here)),))
            case LFixed(pool) if isinstance(pool, int) or pool.root.kind == "pool":
                return here
            case LUnion(cases) if not _shares_lists(here):
                return LUnion(tuple(
                    c if isinstance(c, LKnown) and isinstance(c.value, str) else convert(c)
                    for c in cases
                ))
            case LPlace(_, "list", _, (LGrown() | LNode(("items", _))) as content, made=made):
                count += 1
                return LPlace(count, "list", None, inner_list(content), made=made)
        if isinstance(here, LFixed) and here.value.root.kind == "list":
            from pyrelay.infer.flow.joining import NeedsPlace

            raise NeedsPlace([here.value.root])
        raise JoinError(here, here, "a list of a length known only at run time cannot hold it")

    return convert(layout)


def _holds_lists(layout: Layout) -> bool:
    match layout:
        case LPlace(_, kind):
            return kind == "list"
        case LNode(_, children) | LUnion(children):
            return any(map(_holds_lists, children))
    return False


def _shares_lists(layout: Layout) -> bool:
    """Whether there is a list in an item that others may know: not what texts are made of."""
    from pyrelay.infer.containers.open_layouts import is_open

    match layout:
        case LPlace(_, kind):
            return kind == "list"
        case LNode(_, children) | LUnion(children):
            return not is_open(layout) and any(map(_shares_lists, children))
    return False


def is_ragged(layout: Layout) -> bool:
    """Whether arrays in an item of a list may differ in shape from those in other items."""
    match layout:
        case LPlace(content=content):
            return isinstance(content, LRagged)
        case LNode(_, children) | LUnion(children):
            return any(map(is_ragged, children))
    return False


def inner_list(content: Any) -> LGrown:
    """The layout of a list as an item of a growing one: it grows.

    Raises JoinError for lists in lists in lists, if this attempt has none.
    """
    from pyrelay.infer.containers.item_shapes import may_be_deep
    from pyrelay.infer.flow.joining import join_items

    if isinstance(content, LGrown):
        own = content.slots if isinstance(content.slots, Inside) else None
        inner = replace(content, loops=frozenset(), slots=own, known=None)
    else:
        joined: Layout = LKnown(UNREAD)  # of an empty list: its items may become anything
        for child in content.children:
            joined = join_items(joined, as_template(child))
        inner = LGrown(joined, len(content.children))
    if is_ragged(inner.template):
        raise JoinError(
            inner.template, inner.template, "the arrays in its lists differ in shape"
        )
    if _holds_lists(inner.template) and not may_be_deep():
        raise JoinError(
            inner.template, inner.template, "lists in lists in lists grow at run time"
        )
    return with_inside(inner, (inner.slots,), of_one_list=True)


def with_inside(inner: LGrown, slots: Sequence[Any], *, of_one_list: bool) -> LGrown:
    """The layout of a list in a list, with the slots that tell whether lists in it moved."""
    holds = _holds_lists(inner.template)
    return replace(inner, slots=inside(slots, of_one_list=of_one_list) if holds else None)


def inside_slots(template: Layout, slots: Callable[[Inside], Inside]) -> Layout:
    """The template of items with other slots in the lists of lists in it: `slots` of theirs."""
    match template:
        case LNode(_, children):
            return replace(template, children=tuple(inside_slots(c, slots) for c in children))
        case LUnion(cases):
            return LUnion(tuple(inside_slots(c, slots) for c in cases))
        case LPlace(_, "list", _, LGrown(item, slots=Inside() as own) as inner):
            content = replace(inner, template=inside_slots(item, slots), slots=slots(own))
            return replace(template, content=content)
    return template


def is_unread(layout: Layout) -> bool:
    """True for a value that no path reads: it joins with anything."""
    return isinstance(layout, LKnown) and layout.value is UNREAD


def same_structure(a: Layout, b: Layout) -> bool:
    """Whether two templates have the same leaves, up to types of numbers and shapes."""
    from pyrelay.infer.containers.open_layouts import becomes_open, is_open

    match a, b:
        case _ if is_unread(a):
            return True  # of no items
        case LKnown(None), LNode(("data", *_)):
            return True  # None is a kind of node
        case LFixed(V.Ref(x)), LFixed(V.Ref(y)):
            return x is y
        case _ if is_open(b) and not is_open(a):
            return becomes_open(a, b)
        case LPlace(_, "list", _, LGrown(x)), LPlace(_, "list", _, LGrown(y)):
            return same_structure(x, y)
        case (LScalar(), LScalar()) | (LPlace(), LPlace()):
            return True
        case LScalar(kinds=()), LNode(("natural",)):
            return a.type == types.PY_INT
        case LNode(_, xs), LNode(_, ys):
            return len(xs) == len(ys) and all(map(same_structure, xs, ys))
        case _, LUnion():
            return cases_in(a, b) is not None
    return a == b


def cases_in(template: Layout, union: LUnion) -> list[int] | None:
    """Which cases of a union of templates the cases of another one are, or the one that it is.

    None if some are no case of it.
    """
    from pyrelay.infer.containers.open_layouts import is_open

    free = dict(enumerate(union.cases))
    found = []
    for case in template.cases if isinstance(template, LUnion) else (template,):
        fits = (
            k for k, other in free.items() if same_structure(case, other) and (
                isinstance(case, LKnown) or (is_open(other) and not is_open(case))
                or getattr(case, "head", ("",))[:2] == getattr(other, "head", ("",))[:2]
            )
        )
        number = next(fits, None)
        if number is None:
            return None
        del free[number]
        found.append(number)
    return found
