"""Joining: the layout that the values of two paths both fit.

In: layouts of two paths. Out: their common one. Objects that differ become places of their own
(`NeedsPlace` asks for that), extents that differ symbols that the joining node binds.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.arrays.windows import whole
from pyrelay.infer.containers.item_shapes import shapes_now
from pyrelay.infer.containers.open_layouts import (
    OPEN_TEXT,
    OPEN_TUPLE,
    is_open,
    is_string,
    items_of_open,
    meet_open,
)
from pyrelay.infer.in_python.nested import ORDERED, NestedMembers, NestedTable
from pyrelay.infer.in_python.nested_lists import NestedList
from pyrelay.infer.kinds import holders, numbers_as
from pyrelay.infer.layout import (
    JoinError,
    Layout,
    LFixed,
    LGrown,
    LKnown,
    LNode,
    LParam,
    LPlace,
    LRagged,
    LScalar,
    LUnion,
    LView,
    as_template,
    inner_list,
    is_unread,
    leaf_type,
    same_structure,
    template_types,
    varying,
    with_inside,
)
from pyrelay.infer.leaves import parts_of
from pyrelay.infer.needs import NeedsNested
from pyrelay.infer.nodes.anonymous import NeedsNodes, group_of
from pyrelay.infer.nodes.datatypes import NO_NODE
from pyrelay.infer.slots import joined as joined_slots
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Origin
from pyrelay.ir.nodes import UNREAD
from pyrelay.ir.types import DType, TensorType
from pyrelay.records import dataclass

_MOST_CASES = 16
_MOST_CONSTANTS = 200
"""More constants than tables of names have: a string gets longer in an unrolled loop."""
UNNUMBERED = ("list", "dict", "set")
"""What has no number that tells at run time which object it is (identity.py)."""


@dataclass
class Joiner:
    """Joins layouts of two paths. `lenient` lets any two layouts make a union."""

    lenient: bool = False
    grows: bool = False  # lists of different lengths make one of run-time length
    #: Extents that are symbols of the left layout already: they take any extent of the right one.
    bound: frozenset[Extent] = frozenset()
    keys: dict[tuple[int | None, int | None], int] = field(default_factory=dict)
    #: The keys of each place of a path.
    of: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    left: set[tuple[int, int]] = field(default_factory=set)  # places that may be one, on the left
    right: set[tuple[int, int]] = field(default_factory=set)
    pairs: dict[Any, Extent] = field(default_factory=dict)
    lists: dict[int, Any] = field(default_factory=dict)  # contents by the key of the place
    #: Whether two extents are equal, by a guard if need be.
    same: Callable[[Extent, Extent], bool] = operator.eq
    #: On which path nothing is raised, where the other raises: "left", "right" or "neither".
    going: str = ""
    kinds: bool = False  # numbers of several kinds say which one they are
    chooses: bool = False  # one of two lists, dicts or sets is a union of them
    tells_new: bool = False  # so it is if only one of them is older than both paths
    given: list[tuple[Layout, Layout]] = field(default_factory=list)  # what was joined so far
    ones: list[Extent] = field(default_factory=list)  # new symbols that are 1 on the left
    none: set[Extent] = field(default_factory=set)  # those bound that are 0 on the right: no items

    def __call__(self, a: Layout, b: Layout) -> Layout:
        self.given.append((a, b))
        if is_unread(a) or is_unread(b):
            if is_unread(a):
                return self._alone(b, False)
            self._note_none(a)
            return self._alone(a, True)
        if isinstance(a, LUnion) or isinstance(b, LUnion):
            return self._union(a, b)
        _refuse_plain(a, b)
        if self.lenient and _one_is_an_item(a, b):
            return self._union(a, b)
        alike = self._case(a, b) if self.lenient else self._alike(a, b)
        if alike is not None:
            return alike
        if self.lenient or _may_be_union(a, b):
            return self._union(a, b)
        raise JoinError(a, b, "types differ")

    def _note_none(self, template: Layout) -> None:
        """Note that the other path has no items such as these on the left."""
        if self.bound:
            extents = (d for ty in template_types(template) for d in ty.shape)
            self.none.update(self.bound.intersection(extents))

    def differs_in_none(self) -> bool:
        """Whether an extent that is that of items on the right is also one of no items there."""
        return any(self.pairs.get(d, 0) != 0 for d in self.none)

    def _alike(self, a: Layout, b: Layout) -> Layout | None:
        """The join of two layouts of one kind; None if only a union could hold both."""
        number = self._number(a, b)
        if number is not None:
            return number
        if meet_open(a, b):
            return self._opened(a, b)
        match a, b:
            case LKnown(x), LKnown(y) if x is y or (type(x) is type(y) and same_value(x, y)):
                return a
            case LFixed(x), LFixed(y) if same_reference(x, y):
                return a
            case LParam(), LParam() if a == b:
                return a
            case (LFixed(V.Ref(x)), LPlace() as made) | (LPlace() as made, LFixed(V.Ref(x))) if (
                self.tells_new and x.kind == made.kind and x.kind in UNNUMBERED
            ):
                return None
            case LFixed(V.Ref(x)), LFixed(V.Ref(y)) if self.chooses and x.kind == y.kind and (
                x.kind in UNNUMBERED
            ):
                return None
            case (LView(), LFixed() | LPlace() | LView()) | (LFixed() | LPlace(), LView()):
                return self._view(a, b)
            case (LFixed(), LPlace()) | (LPlace(), LFixed()) | (LFixed(), LFixed()):
                raise NeedsPlace([m.value.root for m in (a, b) if isinstance(m, LFixed)])
            case LPlace(), LPlace() if a.kind == b.kind and a.cls is b.cls:
                return self._place(a, b)
            case LNode(h, xs, m), LNode(g, ys, n) if h == g:
                return LNode(h, tuple(self(x, y) for x, y in zip(xs, ys, strict=True)), m | n)
            case (LNode(("data", s, k), xs), LNode(("data", t, m), ys)) if s is t:
                joined = tuple(self(x, y) for x, y in zip(xs, ys, strict=True))
                return LNode(("data", s, tuple(sorted({*k, *m}))), joined)
            case LNode(("data", s, _)), LNode(("tuple", None, _), _, made) if made:
                _meet(made, s)
            case LNode(("tuple", None, _), _, made), LNode(("data", t, _)) if made:
                _meet(made, t)
            case LNode(("data", s, _)), LNode(("data", t, _)):
                _meet(frozenset(), s, t)
            case LNode(("data", *_)), LKnown(None):
                return self._or_none(a, True)
            case LKnown(None), LNode(("data", *_)):
                return self._or_none(b, False)
        return None

    def _opened(self, a: Layout, b: Layout) -> Layout | None:
        """The join of two tuples, or strings, as one of run-time length; None if their items are
        not of one kind."""
        sides = [_place_of_open(x) for x in (a, b)]
        try:
            place = self._place_of(sides, [items_of_open(x) for x in (a, b)])
        except JoinError:
            return None
        return LNode(OPEN_TEXT if is_string(a) else OPEN_TUPLE, (place,))

    def _place_of(self, sides: Sequence[LPlace | None], contents: Sequence[Any]) -> LPlace:
        """The list of run-time length that all these contents fit, in place of two paths' lists."""
        joined = functools.reduce(self._grown, contents)
        key, rivals = self._key(*sides)
        return LPlace(key, "list", None, joined, rivals=rivals)

    def _or_none(self, node: LNode, left: bool) -> Layout:
        """A node of a data type on one path, None on the other."""
        _, schema, kinds = node.head
        pool, _, _ = self._alone(node, left).children  # type: ignore[union-attr]
        number = LScalar(types.PY_INT)
        kinds = tuple(sorted({NO_NODE, *kinds}))
        return LNode(("data", schema, kinds), (pool, number, number))

    def _number(self, a: Layout, b: Layout) -> Layout | None:
        if isinstance(a, LScalar) and a.origin is None and a == b:
            return _same_number(a, self.kinds)
        ta, tb = _number_type(a), _number_type(b)
        if (ta is None and not _is_natural(a)) or (tb is None and not _is_natural(b)):
            return None
        ints = all(_is_natural(x) or (t == types.PY_INT and len(_kinds(x, t)) == 1)
                   for x, t in ((a, ta), (b, tb)))
        if ints and (_is_natural(a) or _is_natural(b)) and not (a == b and ta is not None):
            return LNode(("natural",), (LScalar(TensorType(types.u64)),))
        if ta is None or tb is None:
            return None
        both = isinstance(a, LKnown) and isinstance(b, LKnown) and ta == tb
        if both and same_value(a.value, b.value):  # type: ignore[union-attr]
            return a
        return _joined_number((a, b), (ta, tb), self.kinds)

    def _place(self, a: LPlace, b: LPlace) -> Layout:
        known = (a.key, b.key) in self.keys
        key, rivals = self._key(a, b)
        if a.kind == "array":
            content: Any = self.array_type(a, b)
        elif known:
            content = self.lists.get(key)
        else:
            content = self.content(a.kind, self._told(a, True), self._told(b, False))
            if a.kind == "list":
                self.lists[key] = content
        return LPlace(
            key, a.kind, a.cls, content, a.may_be | b.may_be, rivals, a.numbered and b.numbered,
            a.stored or b.stored, a.made or b.made,
        )

    def _told(self, place: LPlace, left: bool) -> Any:
        """The content of a place of one path, which its first mention has: this one may be another,
        beside a place of the other path that the first one is not beside."""
        if place.content is not None:
            return place.content
        pending: list[Any] = [pair[0 if left else 1] for pair in self.given]
        while pending:
            here = pending.pop()
            if isinstance(here, LPlace) and here.key == place.key and here.content is not None:
                return here.content
            pending.extend(parts_of(here))
        raise JoinError(place, place, "an object that is mentioned in several places")

    def content(self, kind: str, a: Any, b: Any) -> Any:
        """The join of two contents of an object; lists of different lengths make a growing one."""
        if isinstance(a, TensorType):
            return self.array_type(LPlace(-1, "array", None, a), LPlace(-1, "array", None, b))
        if isinstance(a, LNode) and isinstance(b, LNode) and a.head == b.head:
            return self._alike(a, b) if a.head[0] != "varied" else self._varied(a, b)
        moved = [x for x in (a, b) if isinstance(x, LNode) and x.head[0] in ("part", "lost")]
        if moved:  # of a list, on one path an item of another one
            always = moved[0].head[-1] == "from the start"
            return moved[0] if len(moved) == 1 and always else LNode(("lost",), ())
        if isinstance(a, LGrown) or isinstance(b, LGrown):
            return self._grown(a, b)
        if kind == "list" and self.grows and "varied" not in (a.head[0], b.head[0]):
            try:
                return self._grown(a, b)
            except JoinError:
                if not self.going:
                    raise
        return self._varied(a, b)

    def _varied(self, a: Any, b: Any) -> LNode:
        """The join of two structures of a content, which only tell whether the program raised."""
        x, y = varying(a), varying(b)
        if x is None or y is None or not (self.going or x.head == y.head):
            raise JoinError(a, b, "their lengths or keys differ")
        going = x.head[1] if self.going in ("", "left") else y.head[1]
        joined = replace(self, lenient=True)(x.children[0], y.children[0])
        return LNode(("varied", None if self.going == "neither" else going), (joined,))

    def _grown(self, a: Any, b: Any) -> LGrown:
        def join(x: Layout, y: Layout, of_one_list: bool = True) -> Layout:
            return as_template(_ItemJoiner(  # the places of each template have their own numbers
                bound=self.bound, pairs=self.pairs, same=self.same, of_one_list=of_one_list,
                none=self.none,
            )(x, y))

        templates: list[Layout] = []
        for side in (a, b):
            items = [side.template] if isinstance(side, LGrown) else list(
                map(as_template, side.children)
            )
            if items:
                templates.append(functools.reduce(join, items))
            elif templates:
                self._note_none(templates[0])
        joined = templates[0] if templates else LKnown(UNREAD)
        for other in templates[1:]:
            joined = join(joined, other, of_one_list=False)
        for side in (a, b):
            if isinstance(side, LGrown) and not same_structure(side.template, joined):
                raise JoinError(side.template, joined, "the items of a list differ in structure")
        pools = self._pools(a, b)
        loops = getattr(a, "loops", frozenset()) | getattr(b, "loops", frozenset())
        slots = [x.slots for x in (a, b) if isinstance(x, LGrown)]
        kept = joined_slots(slots) if slots else object()
        if next(template_types(joined), None) is None:
            capacity: Extent = 0  # there are no rows
        elif isinstance(a, LGrown) and isinstance(b, LGrown):
            capacity = Joiner._extent(self, a.capacity, b.capacity)
        elif isinstance(a, LGrown) and a.capacity in self.bound and (
            self.pairs.setdefault(a.capacity, len(b.children)) == len(b.children)
        ):  # which may be an extent of something else as well
            capacity = a.capacity
        else:
            capacity = dims.fresh("d", Origin.RUNTIME)
        counts = {x.known if isinstance(x, LGrown) else len(x.children) for x in (a, b)}
        return LGrown(
            joined, capacity, loops, kept, pools, counts.pop() if len(counts) == 1 else None
        )

    def _pools(self, a: Any, b: Any) -> tuple[Layout, ...]:
        """The pools of the nodes in two lists, which must be the same ones."""
        mine, theirs = (side.pools if isinstance(side, LGrown) else () for side in (a, b))
        if len(mine) != len(theirs):
            raise JoinError(a, b, "the items of the lists are nodes of different pools")
        return tuple(self(x, y) for x, y in zip(mine, theirs, strict=True))

    def _view(self, a: Layout, b: Layout) -> Layout | None:
        """The join of two views, one of which may be a whole array; None if they differ in form."""
        x, y = _as_view(a), _as_view(b)
        if x is None or y is None or x.form != y.form or len(x.type.shape) != len(y.type.shape):
            return None
        if any(stride < 0 for stride in x.form.strides) and x.starts != y.starts:
            return None  # where one of no items starts has no symbol: it may be -1
        base = self(x.base, y.base)
        starts = tuple(map(self._extent, x.starts, y.starts))
        sizes = tuple(map(self._extent, x.sizes, y.sizes))
        shape = tuple(map(self._extent, x.type.shape, y.type.shape))
        return LView(base, x.form, starts, sizes, TensorType(x.type.dtype, shape))

    def _key(self, a: LPlace | None, b: LPlace | None) -> tuple[int, frozenset[int]]:
        """The number of the place that is `a` on the left and `b` on the right path.

        With the earlier places that it may be the same object as, on either path.
        """
        for place, pairs in ((a, self.left), (b, self.right)):
            if place is not None and place.rivals:
                pairs.update((place.key, k) for k in place.rivals)
                pairs.update((k, place.key) for k in place.rivals)
        i, j = a.key if a is not None else None, b.key if b is not None else None
        key = self.keys.setdefault((i, j), len(self.keys))
        rivals: set[int] = set()
        for side, number, pairs in (("left", i, self.left), ("right", j, self.right)):
            if number is None:
                continue
            own = self.of.get((side, number), ())
            if key not in own:
                self.of[side, number] = (*own, key)
            rivals.update(k for k in own if k < key)
            for other in [m for k, m in pairs if k == number]:
                rivals.update(k for k in self.of.get((side, other), ()) if k < key)
        return key, frozenset(rivals)

    def _alone(self, layout: Layout, left: bool) -> Layout:
        """A layout that only one path has, in the numbers of the join."""
        match layout:
            case LPlace(_, "pool") if (known := self._pool(layout.key, left)) is not None:
                return replace(layout, key=known, content=None)
            case LPlace(_, kind, cls, content, may_be, _, exact, stored, made):
                known = ((layout.key, None) if left else (None, layout.key)) in self.keys
                key, rivals = self._key(layout, None) if left else self._key(None, layout)
                content = content if known else self._told(layout, left)
                if isinstance(content, LNode):
                    content = self._alone(content, left)
                return LPlace(key, kind, cls, content, may_be, rivals, exact, stored, made)
            case LNode(_, children):
                return replace(
                    layout, children=tuple(self._alone(c, left) for c in children)
                )
            case LUnion(cases):
                return LUnion(tuple(self._alone(c, left) for c in cases))
            case LView(base):
                return replace(layout, base=self._alone(base, left))
        return layout

    def _pool(self, key: int, left: bool) -> int | None:
        """The number of a pool of one path among the places joined already."""
        found = (k for (i, j), k in self.keys.items() if (i if left else j) == key)
        return next(found, None)

    def array_type(self, a: LPlace, b: LPlace) -> TensorType:
        """The common type of two arrays: extents that differ become a new symbol."""
        s, t = a.content, b.content
        if s.dtype != t.dtype:
            raise JoinError(a, b, "element types differ")
        if len(s.shape) != len(t.shape):
            raise JoinError(a, b, "numbers of axes differ")
        return TensorType(s.dtype, tuple(map(self._extent, s.shape, t.shape)))

    def _extent(self, x: Extent, y: Extent) -> Extent:
        if x in self.bound and self.pairs.setdefault(x, y) == y:
            return x
        if x == y or self.same(x, y):
            return x
        if (x, y) not in self.pairs:
            self.pairs[x, y] = dims.fresh("d", Origin.RUNTIME)
            if x == 1:
                self.ones.append(self.pairs[x, y])
        return self.pairs[x, y]

    def _union(self, a: Layout, b: Layout) -> Layout:
        opened = self._opened_cases(a, b)
        if opened is not None:
            return opened
        waiting = list(b.cases if isinstance(b, LUnion) else (b,))
        cases: list[Layout] = []
        for old in a.cases if isinstance(a, LUnion) else (a,):
            joined = None
            for new in waiting:
                joined = self._case(old, new)
                if joined is not None:
                    waiting.remove(new)
                    break
            cases.append(self._alone(old, True) if joined is None else joined)
        for new in waiting:  # what is computed of several texts may be one text in many cases
            if not (isinstance(new, LKnown) and isinstance(new.value, str) and new in cases):
                cases.append(self._alone(new, False))
        if all(_number_type(c) is not None for c in cases):
            return functools.reduce(self._common, cases)
        if len(cases) > _MOST_CONSTANTS or (
            sum(not isinstance(case, LKnown) for case in cases) > _MOST_CASES
        ):
            raise JoinError(a, b, "there are too many cases")
        return cases[0] if len(cases) == 1 else LUnion(tuple(cases))

    def _opened_cases(self, a: Layout, b: Layout) -> Layout | None:
        """One string of run-time length for several, if one of them is one; None if none is."""
        sides = [x.cases if isinstance(x, LUnion) else (x,) for x in (a, b)]
        cases = [case for side in sides for case in side]
        if not all(map(is_string, cases)) or not any(map(is_open, cases)):
            return None
        contents = [items_of_open(case) for case in cases]
        if any(content is None for content in contents):
            return None
        places = [next(filter(None, map(_place_of_open, side)), None) for side in sides]
        return LNode(OPEN_TEXT, (self._place_of(places, contents),))

    def _common(self, a: Layout, b: Layout) -> Layout:
        number = self._number(a, b)
        assert number is not None
        return number

    def _case(self, old: Layout, new: Layout) -> Layout | None:
        """The join of two layouts of one structure; None if they are different cases."""
        _refuse_plain(old, new)
        if _one_is_an_item(old, new):
            return None
        noted: list[Any] = [self.keys, self.of, self.left, self.right, self.pairs]
        saved = [each.copy() for each in noted]
        try:
            strict = replace(self, lenient=False) if self.lenient else self
            joined = strict._alike(old, new)
        except JoinError:
            joined = None
        if joined is None:
            for each, before in zip(noted, saved, strict=True):
                each.clear()  # in place: joiners of the cases around have the same ones
                each.update(before)
        return joined


def _place_of_open(layout: Layout) -> LPlace | None:
    """The list that a tuple or a string of run-time length is made of, as a place."""
    if not is_open(layout):
        return None
    (child,) = layout.children  # type: ignore[union-attr]
    if isinstance(child, LFixed):
        raise NeedsPlace([child.value.root])
    assert isinstance(child, LPlace)
    return child


@dataclass
class _ItemJoiner(Joiner):
    """Joins layouts of items of lists. Unless `Shapes` say more, arrays must have one shape.

    Lists among them may have any lengths. of_one_list: whether it is one list that both are in.
    """

    of_one_list: bool = True
    kinds: bool = True

    def content(self, kind: str, a: Any, b: Any) -> Any:
        """As of a Joiner; lists have run-time lengths."""
        if kind == "list":
            mine, theirs = inner_list(a), inner_list(b)
            joined = self._grown(mine, theirs)
            slots = mine.slots, theirs.slots
            return with_inside(joined, slots, of_one_list=self.of_one_list)
        return Joiner.content(self, kind, a, b)

    def array_type(self, a: LPlace, b: LPlace) -> Any:
        """As of a Joiner; or room for the larger one of two arrays."""
        types_ = [leaf_type(place.content) for place in (a, b)]
        x, y = (LPlace(-1, "array", None, ty) for ty in types_)
        if a.content is not x.content or b.content is not y.content or self._differ(*types_):
            return LRagged(replace(self, of_one_list=False).array_type(x, y))
        return super().array_type(a, b)

    def _differ(self, x: TensorType, y: TensorType) -> bool:
        """Whether arrays of these types may lie in one list only if its arrays may differ."""
        if not (self.of_one_list and shapes_now().ragged) or x.rank != y.rank:
            return False
        return any(d != e and not self.same(d, e) for d, e in zip(x.shape, y.shape, strict=True))

    def _extent(self, x: Extent, y: Extent) -> Extent:
        if x in self.bound and self.pairs.setdefault(x, y) == y:
            return x
        if x == y or self.same(x, y):
            return x
        shapes = shapes_now()
        if shapes.ragged:
            return super()._extent(x, y)
        shapes.wanted = True
        if any(s.origin is Origin.RUNTIME for e in (x, y) for s in dims.symbols(e)):
            return super()._extent(x, y)  # the program checks
        raise JoinError(
            LPlace(-1, "array", None, None), LPlace(-1, "array", None, None),
            f"the shapes of its items differ: {dims.show(x)} and {dims.show(y)}",
        )


def join_items(
    a: Layout, b: Layout, same: Callable[[Extent, Extent], bool] | None = None
) -> Layout:
    """The layout that fits two items of a list; extents of runtime origin may still differ.

    Raises JoinError if none does.
    """
    return as_template(_ItemJoiner(same=same or operator.eq)(a, b))


def _meet(made: frozenset[Any], *schemas: Any) -> None:
    """Raises NeedsNodes if nodes without a class meet tuples made elsewhere, or other nodes."""
    groups = [g for s in schemas if (g := group_of(s)) is not None]
    if groups and (made or len(groups) > 1):
        raise NeedsNodes(made, groups)


class NeedsPlace(Exception):
    """Different objects meet: these roots, which exist before, need places of their own."""

    def __init__(self, roots: Iterable[V.Root]) -> None:
        super().__init__()
        self.roots = frozenset(roots)


#: What lists, dicts and sets are where they are nodes.
_NESTED: dict[str, tuple[type, ...]] = {
    "list": (NestedList,), "dict": (NestedTable,), "set": (NestedMembers, ORDERED[1]),
}


def _refuse_plain(a: Layout, b: Layout) -> None:
    """Raises NeedsNested where a display makes a list, dict or set, and the other is a node."""
    for node, other in ((a, b), (b, a)):
        if isinstance(other, LPlace) and other.cls is None:
            refuse_display(node, other.kind, other.made)


def refuse_display(node: Layout, kind: str, made: Any) -> None:
    """Raises NeedsNested where a display makes a list, dict or set, and this is such a node."""
    nested = _NESTED.get(kind)
    if made is None or nested is None or not isinstance(node, LNode) or node.head[0] != "data":
        return
    _, schema, kinds = node.head
    if any(issubclass(schema.classes[k], nested) for k in kinds if k):
        raise NeedsNested(made, nested[0])


def _as_view(layout: Layout) -> LView | None:
    """A whole array as a view of all of itself."""
    match layout:
        case LView():
            return layout
        case LFixed(V.ArrayRef(view=(), type=ty)) | LPlace(content=TensorType() as ty):
            everything = whole(ty.shape)
            return LView(layout, everything.form, everything.starts, everything.sizes, ty)
    return None


def _one_is_an_item(a: Layout, b: Layout) -> bool:
    """Whether one of two lists is an item of another list, and the other one is none."""
    if not (isinstance(a, LPlace) and isinstance(b, LPlace) and a.kind == b.kind == "list"):
        return False
    return _is_item(a.content) != _is_item(b.content)


def _is_item(content: Any) -> bool:
    return isinstance(content, LNode) and content.head[0] == "part"


def same_value(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return x.hex() == y.hex()
    try:
        return bool(x == y)
    except Exception:
        return False


def same_reference(x: Any, y: Any) -> bool:
    if isinstance(x, int) or isinstance(y, int):
        return bool(x == y)
    if type(x) is not type(y) or x.root is not y.root:
        return False
    return not isinstance(x, V.ArrayRef) or x.view == y.view


def _joined_number(
    sides: tuple[Layout, Layout], own: tuple[TensorType, TensorType], tells: bool
) -> LScalar:
    """A number that is one of two, of their own types; it `tells` which kind, if need be."""
    a, b = sides
    dtype, weak = types.promote(own)
    same = isinstance(a, LScalar) and isinstance(b, LScalar) and a.extent == b.extent
    extent = a.extent if same and isinstance(a, LScalar) else None
    held_by = _holders(a) & _holders(b)
    common = TensorType(dtype, (), weak)
    if not tells:
        return LScalar(common, extent, None, (), held_by)
    common, kinds = numbers_as(common, [
        (t, _kinds(x, t), _holders(x)) for x, t in zip(sides, own, strict=True)
    ])
    return LScalar(common, None if kinds else extent, None, kinds, held_by)


@functools.lru_cache(maxsize=1024)
def _same_number(number: LScalar, tells: bool) -> LScalar:
    """The same of two equal ones, which most are."""
    return _joined_number((number, number), (number.type, number.type), tells)


def _kinds(layout: Layout, ty: TensorType) -> tuple[TensorType, ...]:
    return (layout.kinds if isinstance(layout, LScalar) else ()) or (ty,)


def _holders(layout: Layout) -> frozenset[DType]:
    return layout.holders if isinstance(layout, LScalar) else holders(layout.value)  # type: ignore[union-attr]


def _number_type(layout: Layout) -> TensorType | None:
    if isinstance(layout, LScalar):
        return layout.type
    return types.of_scalar(layout.value) if isinstance(layout, LKnown) else None


def _is_natural(layout: Layout) -> bool:
    """Whether a number is an int that may be 2**63 or more, and is not negative."""
    if isinstance(layout, LKnown):
        return type(layout.value) is int and 2**63 <= layout.value < 2**64
    return isinstance(layout, LNode) and layout.head == ("natural",)


def _may_be_union(a: Layout, b: Layout) -> bool:
    """Unions are made of None, unset, strings, functions and objects; not of two kinds of data."""

    def tells_apart(layout: Layout) -> bool:
        match layout:
            case LKnown(v):
                return types.of_scalar(v) is None
            case LNode(head, _):
                return head[0] in (
                    "closure", "method", "partial", "derivative", "text", "raised", "data",
                )
            case LView():
                return True
            case LPlace(_, kind, _, _):
                return kind == "object"
            case LFixed(V.Ref(root)):
                return root.kind == "object"
        return False

    return tells_apart(a) or tells_apart(b)
