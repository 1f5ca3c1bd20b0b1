"""What a `for` goes through: how many items, and the item at an index."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.infer import needs, protocols
from pyrelay.infer import values as V
from pyrelay.infer.containers import byte_strings, characters, sets, views
from pyrelay.infer.flow.generators import collected, is_generator, taken
from pyrelay.infer.flow.handling import certain, without_words
from pyrelay.infer.in_python.nested import standing_for
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.trees import fields, is_namedtuple
from pyrelay.ir import dims
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Iteration:
    """`count` items, `item(index)` gives one; `static` if items differ in structure.

    `count` and `index` are values (known or typed ints); a static iteration has a known count and
    takes only known indices. `lists` are those gone through; if their lengths may change meanwhile,
    `count_now` gives the count at the time it is called (None: that has no meaning).
    """

    count: V.Value
    item: Callable[[V.Value], V.Value]
    static: bool = False
    lists: tuple[V.Ref, ...] = ()
    count_now: Callable[[], V.Value] | None = None


def iterate(it: Interpreter, value: V.Value) -> Iteration:
    """The iteration over a value. Raises TypeMismatchError if Python could not iterate over it."""
    found = characters.iteration(it, value)
    if found is not None:
        return Iteration(*found)
    value = V.range_of(value) or value
    match value:
        case V.Range(start, _, step):
            return Iteration(
                range_count(it, value), lambda i: _affine(it, start, step, i)
            )
        case V.View():
            return _static(views.now(it, value).items)
        case V.Tuple(items):
            return _static(items)
        case V.OpenTuple(items):
            return iterate(it, items)
        case V.Items(count=count):
            from pyrelay.infer.nodes.trees import item

            return Iteration(count, lambda i: item(it, value, i))
        case V.Data() if is_namedtuple(value):
            return _static(fields(it, value))
        case V.Ref(root) if root.kind in ("list", "set"):
            return _list(it, value)
        case V.Ref(root) if root.kind == "dict":
            return _static(tuple(V.Known(k) for k in it.content(root)))
        case V.Known(v) if isinstance(v, (frozenset, set)):
            return _static(sets.in_order(it, value))
        case V.Known(v) if isinstance(v, (str, tuple, list, dict)):
            return _static(tuple(V.Known(x) for x in v))
        case V.Known(bytes() as v):
            return _bytes(it, v)
        case V.Known(v) if isinstance(v, enum.EnumType):
            members: list[Any] = list(v)
            return _static(tuple(map(V.Known, members)))
        case V.ArrayRef(_, _, ty) if ty.shape:
            from pyrelay.infer.arrays.subscripts import get_item

            return Iteration(
                V.Scalar.of_extent(ty.shape[0]), lambda i: get_item(it, value, i, checked=True)
            )
        case _ if is_generator(value):
            return iterate(it, collected(it, value))
        case V.Lazy():
            return _lazy(it, value)
        case V.Ref() | V.Data() if value.cls is not None:
            own = protocols.special(it, value, "__iter__")
            if own is not None and protocols.has_next(it, own):
                raise it.failure(
                    errors.UnsupportedOperationError,
                    f"{V.describe(own)}, which has a __next__, can only be gone through by 'for', "
                    "next() and list() in a compiled function",
                    hints=("make a list of its items first: list(...)",),
                )
            if own is not None:
                return iterate(it, taken(it, own))
    if isinstance(value, (V.Ref, V.Data)) and (
        standing_for.get(value.cls, (None,))[0] is set
    ):
        raise order_wanted(it)
    hints = ("write 'for i in range(n)'",) if V.number_type(value) is not None else ()
    from pyrelay.infer.names.builtins import class_of

    failure = it.failure(
        errors.TypeMismatchError, f"{V.describe(value)} is not iterable", hints=hints
    )
    if isinstance(value, V.Scalar) and not value.type.weak:
        raise without_words(it, failure, TypeError)  # a number of NumPy's or an array of no axes
    cls = class_of(value)
    if isinstance(value, (V.Scalar, V.Known)) and cls and not hasattr(cls, "__iter__"):
        said = f"{cls.__name__!r} object is not iterable"
        raise certain(it, failure, TypeError, said)
    raise failure


def order_wanted(it: Interpreter) -> Exception:
    """What is raised where the order of a set matters that has not kept it: it will, if it can."""
    if not it.program.ordered:
        return needs.NeedsOrder()
    return it.failure(
        errors.UnsupportedOperationError,
        "the order of a set is not known that comes from outside the program",
        hints=("go through sorted(items), or pass list(items)",),
    )


def sequence_of(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    """The items of an iterable whose number is known."""
    items = iterate(it, taken(it, protocols.gone_through(it, value)))
    count = it.static(items.count, "the number of items")
    return tuple(items.item(V.Known(k)) for k in range(count))


def _list(it: Interpreter, ref: V.Ref) -> Iteration:
    """Over a list or a set: the items that it has when they are reached."""
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.containers.lists import length

    content = it.content(ref.root)
    if ref.root.kind == "set":
        return _static(sets.in_order(it, ref))
    growing = isinstance(content, V.Growing)

    def count() -> V.Value:
        now = it.content(ref.root)
        return length(now) if isinstance(now, V.Growing) else V.Known(len(now))

    return Iteration(
        count(), lambda i: get_item(it, ref, i, checked=True), not growing, (ref,), count
    )


def _bytes(it: Interpreter, value: bytes) -> Iteration:
    """Over known bytes: Python's ints, from an array, so that the loop is compiled as a loop."""
    return Iteration(
        V.Known(len(value)), lambda index: byte_strings.item(it, value, index, checked=True)
    )


def _static(items: tuple[V.Value, ...]) -> Iteration:
    return Iteration(V.Known(len(items)), lambda i: items[i.value], static=True)  # type: ignore[union-attr]


def _lazy(it: Interpreter, value: V.Lazy) -> Iteration:
    if value.kind == "progress":
        from pyrelay.infer import progress

        return progress.iteration(it, value)
    parts = [iterate(it, s) for s in value.sources]
    static = any(p.static for p in parts)
    if value.kind == "product":
        if static and not all(isinstance(p.count, V.Known) for p in parts):
            parts, static = [_by_index(it, p) if p.static else p for p in parts], False
        return _product(it, parts, static)
    through = tuple(ref for p in parts for ref in p.lists)

    def count_now() -> V.Value:
        return _least(it, [p.count_now() if p.count_now else p.count for p in parts])

    now = count_now if all(p.count_now or not p.lists for p in parts) else None
    count = _least(it, [p.count for p in parts])
    if static and not isinstance(count, V.Known):
        try:
            count = V.Known(it.static(count, "the number of items"))
        except errors.StaticValueError:
            parts, static = [_by_index(it, p) if p.static else p for p in parts], False
    match value.kind:
        case "zip":
            return Iteration(
                count, lambda i: V.Tuple(tuple(p.item(i) for p in parts)), static, through, now
            )
        case "enumerate":
            start = value.extra or V.Known(0)
            one = V.Known(1)
            return Iteration(
                count,
                lambda i: V.Tuple((_affine(it, start, one, i), parts[0].item(i))),
                static, through, now,
            )
        case "reversed":
            last = _arith(it, "-", count, V.Known(1))
            return Iteration(
                count, lambda i: parts[0].item(_arith(it, "-", last, i)), static, through
            )
        case "map":
            from pyrelay.infer.calls import call

            callee = value.extra
            assert callee is not None
            return Iteration(
                count, lambda i: call(it, callee, tuple(p.item(i) for p in parts), {}), static,
                through, now,
            )
    raise AssertionError(value.kind)


def _by_index(it: Interpreter, part: Iteration) -> Iteration:
    """Over known items, one of which a number of the program chooses in each round."""
    from pyrelay.infer.flow import choice

    count = it.static(part.count, "the number of items")
    items = tuple(part.item(V.Known(k)) for k in range(count))
    return Iteration(part.count, lambda i: choice.item(it, items, i, "tuple"))


def _product(it: Interpreter, parts: list[Iteration], static: bool) -> Iteration:
    """All combinations of items, the last iteration running fastest."""
    count: V.Value = V.Known(1)
    for part in parts:
        own = part.count
        if not isinstance(own, V.Known) and _as_extent(own) is None:
            own = it.call("maximum", own, V.Known(0))
        count = _arith(it, "*", count, own)

    def item(index: V.Value) -> V.Value:
        chosen: list[V.Value] = []
        for part in reversed(parts):
            if part is parts[0]:
                chosen.insert(0, part.item(index))
                continue
            chosen.insert(0, part.item(_arith(it, "%", index, part.count)))
            index = _arith(it, "//", index, part.count)
        return V.Tuple(tuple(chosen))

    through = tuple(ref for p in parts for ref in p.lists)
    return Iteration(count, item, static, through)


def _least(it: Interpreter, counts: list[V.Value]) -> V.Value:
    if V.Known(0) in counts:
        return V.Known(0)
    least = counts[0] if counts else V.Known(0)
    for count in counts[1:]:
        known = _as_extent(least), _as_extent(count)
        if None not in known:
            smaller = it.program.guards.compare("<=", known[0], known[1])  # type: ignore[arg-type]
            if smaller is not None:
                least = least if smaller else count
            else:
                least = V.Scalar.of_extent(dims.minimum(known[0], known[1]))  # type: ignore[arg-type]
        else:
            least = it.call("minimum", least, count)
    return least


def _as_extent(value: V.Value) -> dims.Extent | None:
    if isinstance(value, V.Known):
        return int(value.value)
    return value.extent if isinstance(value, V.Scalar) else None


def _arith(it: Interpreter, op: str, a: V.Value, b: V.Value) -> V.Value:
    from pyrelay.infer.operators import binary

    return binary(it, op, a, b)


def _affine(it: Interpreter, start: V.Value, step: V.Value, i: V.Value) -> V.Value:
    """start + i * step, keeping a plain index as it is."""
    scaled = i if step == V.Known(1) else _arith(it, "*", i, step)
    return scaled if start == V.Known(0) else _arith(it, "+", start, scaled)


def range_count(it: Interpreter, value: V.Range) -> V.Value:
    """Number of items of a range; may be negative at run time, which means none."""
    start, stop, step = value.start, value.stop, value.step
    if step == V.Known(0):
        raise it.failure(errors.InvalidValueError, "range() arg 3 must not be zero")
    if all(isinstance(v, V.Known) for v in (start, stop, step)):
        return V.Known(len(range(start.value, stop.value, step.value)))  # type: ignore[union-attr]
    if step == V.Known(1):
        return stop if start == V.Known(0) else _arith(it, "-", stop, start)
    if step == V.Known(-1):
        return _arith(it, "-", start, stop)
    if isinstance(step, V.Known):
        # ceil((stop - start) / step) by floor division towards the step's sign
        distance = _arith(it, "-", stop, start)
        rounded = _arith(it, "+", distance, V.Known(step.value + (-1 if step.value > 0 else 1)))
        return _arith(it, "//", rounded, step)
    distance = _arith(it, "-", stop, start)
    negated = it.call("negative", distance)
    return it.call("negative", _arith(it, "//", negated, step))
