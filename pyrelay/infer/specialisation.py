"""Core functions for calls that cannot be interpreted in line: recursion, and derivatives.

A Relay function is specialised once per layout of its arguments. The first call gives extents as it
knows them, so what the recursion passes on as it is keeps its size, and questions about it are
answered as they are outside. While a specialisation is in progress, a call of the same function
with other arguments widens it (numbers to their types, extents to symbols), so `f(n + 1)`,
`fib(30)` and `x[:n // 2]` terminate. The result type is a
fixpoint: a call whose result is not known yet diverges, so the base case settles it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pyrelay import errors
from pyrelay.infer import endless_calls, needs
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing
from pyrelay.infer.containers.open_layouts import holds_strings, sequences
from pyrelay.infer.describing import Describer
from pyrelay.infer.flow import handling
from pyrelay.infer.flow import joining as J
from pyrelay.infer.flow.differing import differ
from pyrelay.infer.function_bodies import (
    EVERYTHING,
    NeedsKnown,
    Result,
    Specialisation,
    argument_types,
    captured_values,
    interpret_function,
    join_any,
    same_result,
)
from pyrelay.infer.in_python import ONCE
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import layout_symbols, leaf_types
from pyrelay.infer.nodes import anonymous
from pyrelay.infer.slots import places_of
from pyrelay.infer.unfolding import is_unfolded
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.records import dataclass

_MOST_PASSES = 16
_PASSES_OF_STRINGS = 3  # strings put together of others are more at each pass: n become n * n + 1


class _Restart(Exception):
    """A specialisation in progress was widened: start it over."""

    def __init__(self, which: Specialisation) -> None:
        super().__init__(which.name)
        self.which = which


@dataclass
class _ArgumentDescriber(Describer):
    """Visible in arguments are, if any, the extents of the program's own arguments.

    A list in a list is handed over as its items, unless the list that it is in is as well, or
    another one from the same place of its items, which may be the same list.
    """

    #: owners of lists that are handed over, and where in their items these are
    apart: set[tuple[V.Root, tuple[int, ...]]] = field(default_factory=set)
    whole: set[V.Root] = field(default_factory=set)  # owners that are handed over themselves

    def _part(self, content: V.Part) -> Any:
        owner = self.heap.contents[content.owner]
        there = isinstance(owner, V.Growing) and places_of(owner.slots) is content.slots
        there = there and content.gone is None
        place = content.owner, content.path
        if not there or place in self.apart or content.owner in self.whole or (
            self.holds(content.owner)
        ):
            return Describer._part(self, content)
        _, inner = growing.inner_lists(owner.template)[content.path]
        template = L.retyped(
            inner.template, map(self._type, L.template_types(inner.template))
        )
        self.apart.add(place)
        return L.LGrown(template, self._extent(inner.capacity))

    def _visible(self, extent: Extent) -> bool:
        return Describer._visible(self, extent) and all(
            s.origin is Origin.ENTRY for s in dims.symbols(extent)
        )


def describe_arguments(
    it: Interpreter, values: Sequence[V.Value], *, static: dict[int, Any], exact: int = 0,
    transparent: bool = False, extents: bool = True, whole_numbers: bool = False,
    placeless: bool = False,
) -> tuple[list[L.Layout], Describer]:
    """Layouts of argument values: every mutable object in them is a place.

    With `transparent`, all extents that the caller knows are visible; without `extents`, none. With
    `whole_numbers`, ints and bools that are known stay so. With `placeless`, neither rows of nodes
    nor slots of lists are known.
    """
    kind = Describer if transparent else _ArgumentDescriber
    mark = EVERYTHING if extents else -1
    whole: set[V.Root] = set()
    while True:
        describer = kind(
            it.heap, lambda root: False, mark, loosen=True, exact=exact, alone=transparent,
            kinds=True, whole_numbers=whole_numbers, placeless=placeless,
            behind_call=not transparent,
        )
        if isinstance(describer, _ArgumentDescriber):
            describer.whole = whole
        layouts: list[L.Layout] = []
        for i, value in enumerate(values):
            if i in static and isinstance(value, V.Known):
                layouts.append(L.LKnown(value.value))
            else:
                layouts.append(describer(value))
        apart = describer.apart if isinstance(describer, _ArgumentDescriber) else set()
        found = {root for root, _ in apart if describer.holds(root)}
        if not found:
            return layouts, describer
        whole |= found


def layouts_of(
    it: Interpreter, values: Sequence[V.Value], *, numbers: bool = True
) -> list[L.Layout]:
    """Layouts of argument values, of which those that are known stay known, numbers on demand."""
    known = dict.fromkeys(range(len(values))) if numbers else {}
    return describe_arguments(it, values, static=known, exact=min(it.program.exact, 1))[0]


def would_do(it: Interpreter, old: Sequence[L.Layout], new: Sequence[L.Layout]) -> bool:
    """Whether what is interpreted with layouts `old` could be called with `new`."""
    if _lengths_differ(old, new):
        return False
    try:
        return _widened(it, old, new) == old
    except (L.JoinError, J.NeedsPlace):
        return False


def _lengths_differ(old: Sequence[L.Layout], new: Sequence[L.Layout]) -> bool:
    """Whether lists of known lengths have other ones, or grow: what would hold both grows."""
    pending: list[tuple[Any, Any]] = list(zip(old, new, strict=True))
    while pending:
        match pending.pop():
            case L.LPlace(content=L.LNode(a, xs)), L.LPlace(content=L.LNode(b, ys)):
                if a != b:
                    return bool(a[0] == b[0] == "items")
                pending.extend(zip(xs, ys, strict=True))
            case L.LPlace(content=L.LNode(("items", _))), L.LPlace(content=L.LGrown()):
                return True
            case L.LNode(a, xs), L.LNode(b, ys) if a == b:
                pending.extend(zip(xs, ys, strict=True))
    return False


def call_global(it: Interpreter, closure: V.Closure, bound: Sequence[V.Value]) -> V.Value:
    """Call a recursive function: specialise it for these arguments, or reuse."""
    from pyrelay.infer.handing_over import emit_call

    alone = closure.owner in ONCE and not _holds_nodes(it, bound)
    reading = it.program.reading
    while True:
        if alone and closure.function in reading:
            if it.captured == {}:  # it is called by one that is alone
                raise reading[closure.function]
            alone = False
        arguments = [*bound, *closure.cells] if alone else arguments_of(it, closure, bound)
        static = set(_statics(it, closure, alone))
        spec = _find(it, closure, arguments, alone)
        if spec.result is None and not spec.in_progress:
            try:
                make_function(it, spec, arguments)
            except NeedsKnown as need:
                make_known(
                    it, closure, arguments, need, _statics(it, closure, alone),
                    again=need.position in static,
                )
                continue
            except needs.NeedsCapture as need:
                if not alone or not it.program.captured:
                    raise
                reading[closure.function] = need
                continue
            finally:
                if spec.name not in it.program.functions:
                    _entries(it, closure, alone).remove(spec)
                    forget_dependents(it, spec)
        note_assumption(it, spec)
        if spec.never:
            emit_call(it, spec, arguments)
            handling.note_raising(it)
            it.program.raises_late = True  # what it writes is in no result
        if spec.result is None or spec.never:
            raise needs.Diverges  # not known yet: the base case will settle it
        return passed_on(it, spec, emit_call(it, spec, arguments))


def passed_on(it: Interpreter, spec: Specialisation, found: V.Value) -> V.Value:
    """The value of a call of a function, by what the function gives; what it raises goes on."""
    if not spec.follows:
        return found
    assert isinstance(found, V.Tuple)
    value, raised = found.items
    handling.send_on(it, raised)
    return value


def call_once(
    it: Interpreter, closure: V.Closure, bound: Sequence[V.Value]
) -> V.Value | None:
    """Call a function that raises nothing as one of the program's own (`in_python.once`).

    None where it has to be interpreted in line.
    """
    if any(isinstance(v, V.Known) and isinstance(v.value, str) for v in bound):
        return None  # which would be a function for each text
    if _lies_in_pool(it, bound) and _holds_nodes(it, bound):
        return None  # which is handed the pools, where the list could not be found again
    if is_unfolded(it, bound):
        return None  # which object is where is known
    before, heap, let, builder = it.mark(), it.heap.copy(), it.let, it.builder
    mark = it.program.guards.mark()
    handling, it.handling = it.handling, ()
    try:
        return call_global(it, closure, bound)
    except errors.PyrelayError:
        it.program.guards.rollback(mark)
        it.let, it.builder = let, builder
        it.take_back(before)
        it.heap.reset(heap)
        return None
    finally:
        it.handling = handling


def arguments_of(
    it: Interpreter, closure: V.Closure, bound: Sequence[V.Value]
) -> list[V.Value]:
    """Everything that a function of its own is handed."""
    return [*it.pools.values(), *bound, *closure.cells, *captured_values(it)]


def make_known(
    it: Interpreter, closure: V.Closure, arguments: Sequence[V.Value], need: NeedsKnown,
    static: dict[int, Any], *, again: bool = False,
) -> None:
    """Note that an argument is to be known, or that the program computes it whoever asks.

    Raises NeedsStatic if it can be known.

    again: it was taken as known before, so the recursion computes what it hands on.
    """
    value = arguments[need.position]
    origin = value.origin if isinstance(value, V.Scalar) else None
    if origin is not None:
        raise needs.NeedsStatic(origin, need.why) from None
    if isinstance(value, V.Known) and not again:
        static[need.position] = True
    else:
        static.pop(need.position, None)
        it.program.computed.add((closure.function, need.position))


def _lies_in_pool(it: Interpreter, values: Sequence[V.Value]) -> bool:
    """Whether one of some lists is that of a node: in the pools that functions are handed."""
    contents = (it.heap.contents.get(v.root) for v in values if isinstance(v, V.Ref))
    owners = {content.owner for content in contents if isinstance(content, V.Part)}
    return bool(owners) and any(
        rows.root in owners
        for pool in it.pools.values() for rows in it.content(pool.root).values()
        if isinstance(rows, V.Ref)
    )


def _holds_nodes(it: Interpreter, values: Sequence[V.Value]) -> bool:
    """Whether there are nodes in some values, whose pools a function of its own is handed."""
    pending, met = list(values), set[V.Root]()
    while pending:
        value = pending.pop()
        if isinstance(value, V.Data):
            return True
        if not isinstance(value, V.Ref):
            pending += value.possible if isinstance(value, V.Union) else L.children_of(value)
            continue
        if value.root in met:
            continue
        met.add(value.root)
        content = it.heap.contents[value.root]
        if isinstance(content, V.Growing):
            if L.pools_of(content.template):
                return True
        elif isinstance(content, V.Part):
            pending.append(V.Ref(content.owner))
        elif not isinstance(content, V.Lost):
            pending += L.content_children(content)
    return False


def _entries(it: Interpreter, closure: V.Closure, alone: bool) -> list[Specialisation]:
    return it.program.specialisations.setdefault(
        ("entries", closure.function, closure.owner, it.follows, alone), []
    )


def _statics(it: Interpreter, closure: V.Closure, alone: bool) -> dict[int, Any]:
    table: Any = it.program.specialisations.setdefault(
        ("static", closure.function, closure.owner, alone), {}  # type: ignore[arg-type]
    )
    return table  # type: ignore[no-any-return]


def _find(
    it: Interpreter, closure: V.Closure, arguments: Sequence[V.Value], alone: bool
) -> Specialisation:
    static = _statics(it, closure, alone)
    layouts, _ = describe_arguments(
        it, arguments, static=static, exact=min(it.program.exact, 1)
    )
    entries = _entries(it, closure, alone)
    for spec in entries:
        if not spec.in_progress:
            if would_do(it, spec.layouts, layouts):
                return spec
            continue
        try:
            joined = _widened(it, spec.layouts, layouts)
        except (L.JoinError, J.NeedsPlace):
            continue
        if joined == spec.layouts:
            return spec
        if _choices(joined) > _choices(spec.layouts):
            continue  # another structure, not a wider type: a function of its own
        if not any(isinstance(x, L.LKnown) and i in static
                   for i, x in enumerate(layouts) if x != spec.layouts[i]):
            spec.layouts, spec.widened = joined, True
            raise _Restart(spec)
    endless_calls.refuse(it, closure, entries, arguments, layouts)
    if entries:
        layouts = _of_any_extents(it, entries, arguments, layouts)
    name = it.program.unique(closure.function.name)
    spec = Specialisation(name, closure, layouts, alone, follows=it.follows)
    if spec.follows or closure.owner in ONCE:
        it.program.following.add(name)
    entries.append(spec)
    return spec


def _of_any_extents(
    it: Interpreter, entries: Sequence[Specialisation], arguments: Sequence[V.Value],
    layouts: list[L.Layout],
) -> list[L.Layout]:
    """Layouts for all calls that differ from these arguments in extents only, if one was met."""
    static = _statics(it, entries[0].closure, entries[0].alone)
    general, _ = describe_arguments(
        it, arguments, static=static, exact=min(it.program.exact, 1), extents=False
    )
    for spec in entries:
        if would_do(it, general, spec.layouts):
            return general
    return layouts


def _choices(layouts: Sequence[L.Layout]) -> int:
    """How many unions there are in some layouts."""
    count = 0
    pending: list[Any] = list(layouts)
    while pending:
        match pending.pop():
            case L.LUnion(cases):
                count += len(cases)
                pending.extend(cases)
            case L.LNode(_, children):
                pending.extend(children)
            case L.LPlace(_, _, _, L.LNode() as content):
                pending.append(content)
    return count


def _widened(
    it: Interpreter, old: Sequence[L.Layout], new: Sequence[L.Layout]
) -> list[L.Layout]:
    """The common layouts; equal to `old` if calls with `new` can use it.

    A symbol of the function's own takes any extent, one of the program's only itself. Raises
    JoinError where neither side says what an object contains at its first mention: one that holds
    itself, mentioned in another order.
    """
    differing = differ(old, new)
    if differing is not None:
        raise L.JoinError(*differing, "types differ")
    symbols = _symbols(old)
    bound: set[Extent] = {dims.of(s) for s in symbols if s.origin is Origin.RUNTIME}
    theirs = {s for s in symbols if s.origin is not Origin.RUNTIME}
    if it.captured is not None and not theirs.issubset(_symbols(new)):
        raise L.JoinError(old[0], new[0], "an extent that a function of its own is not given")
    joiner = J.Joiner(
        False, True, frozenset(bound), same=it.program.guards.alike, kinds=True
    )
    joined = [joiner(a, b) for a, b in zip(old, new, strict=True)]
    if not _is_told(joined):
        raise L.JoinError(old[0], new[0], "an object that is mentioned in several places")
    if joiner.differs_in_none():
        raise L.JoinError(old[0], new[0], "an extent of items, where another list has none")
    return joined


def _symbols(layouts: Sequence[L.Layout]) -> list[Symbol]:
    return [s for x in layouts for t in leaf_types([x]) for s in types.type_symbols(t)]


def _is_told(layouts: Sequence[L.Layout]) -> bool:
    """Whether the first mention of each place says what is in it."""
    told: set[int] = set()
    pending: list[Any] = list(reversed(layouts))
    while pending:
        match pending.pop():
            case L.LPlace(key, _, _, content):
                if key in told:
                    continue
                if content is None:
                    return False
                told.add(key)
                pending.append(content)
            case L.LUnion(parts) | L.LNode(_, parts):
                pending.extend(reversed(parts))
            case L.LView(base):
                pending.append(base)
            case L.LGrown(pools=pools):
                pending.extend(reversed(pools))
    return True


# -- making the function ---------------------------------------------------------------------------


def make_function(it: Interpreter, spec: Specialisation, arguments: Sequence[V.Value]) -> None:
    """Interpret the body until the result's layout is a fixpoint, then keep the function."""
    spec.in_progress = True
    it.program.making.append(spec)
    try:
        for passes in range(_MOST_PASSES):
            mark = it.program.guards.mark()
            try:
                function, result = interpret_function(it, spec)
            except _Restart as restart:
                if restart.which is not spec:
                    raise
                it.program.guards.rollback(mark)
                spec.result = None
                forget_dependents(it, spec)
                continue
            if result is None and not spec.never and spec.name in it.program.raising:
                spec.result, spec.never = Result(L.LKnown(None), (), (), ()), True
                continue
            if spec.never:
                it.program.functions[spec.name] = function
                return
            if result is None:
                raise it.failure(
                    errors.RecursionTypeError,
                    f"no path through {V.function_name(spec.closure.function)!r} returns without "
                    "calling it again: the recursion has no base case",
                    span=spec.closure.function.span,
                )
            if spec.result is not None and same_result(it, spec.result, result):
                it.program.functions[spec.name] = function
                return
            if spec.closure.function not in it.program.recursive:
                spec.result = result
                it.program.functions[spec.name] = function
                return
            if spec.result is not None:
                before = spec.result.value, *spec.result.contents
                try:
                    anonymous.refuse_depth(before, (result.value, *result.contents))
                except needs.NeedsEntries as need:
                    need.error = _unsettled(it, spec)
                    raise
            spec.result = result if spec.result is None else _join_results(it, spec, result)
            forget_dependents(it, spec)
            strings = sequences()
            longer = strings.wanted and not strings.open
            if passes >= _PASSES_OF_STRINGS and longer and any(
                map(holds_strings, (spec.result.value, *spec.result.contents))
            ):
                if not strings.tried:
                    raise needs.NeedsSequences
                break
        static = _statics(it, spec.closure, spec.alone)
        endless_calls.ask_for_depth(it, spec, arguments, static)
        raise _unsettled(it, spec)
    finally:
        spec.in_progress = False
        del it.program.making[it.program.making.index(spec) :]


def _unsettled(it: Interpreter, spec: Specialisation) -> errors.PyrelayError:
    name = V.function_name(spec.closure.function)
    return it.failure(
        errors.RecursionTypeError, f"the type of what {name!r} returns never settles"
    )


def forget_dependents(it: Interpreter, spec: Specialisation) -> None:
    """Drop the functions that were made while the result of `spec` was another one, or that take it
    as it was when it was given up."""
    for entries in it.program.specialisations.values():
        for other in list(entries):
            if isinstance(other, Specialisation) and spec in other.assumed:
                entries.remove(other)
                it.program.functions.pop(other.name, None)


def note_assumption(it: Interpreter, called: Specialisation) -> None:
    """Every specialisation in progress inside `called`, or inside what it assumed, assumes it."""
    making = it.program.making
    for spec in (called, *called.assumed):
        if spec.in_progress:
            for inner in making[making.index(spec) + 1 :]:
                if spec not in inner.assumed:
                    inner.assumed.append(spec)


def _join_results(it: Interpreter, spec: Specialisation, new: Result) -> Result:
    old = spec.result
    assert old is not None
    if old.changed != new.changed or old.stored != new.stored:
        return new
    if _count_pools(old.contents) < _count_pools(new.contents):
        return new  # lists that had no items have nodes now
    bound = frozenset(dims.of(s) for s in old.symbols)
    joiner = J.Joiner(False, True, bound, same=it.program.guards.alike, kinds=True)
    try:
        value = joiner(old.value, new.value)
        contents = tuple(
            join_any(joiner, x, y) for x, y in zip(old.contents, new.contents, strict=True)
        )
    except J.NeedsPlace:
        spec.copies = True
        return new
    except L.JoinError as error:
        if not spec.copies and _mentions_parameter(old.value, new.value):
            spec.copies = True
            return new
        raise it.failure(
            errors.TypeMismatchError,
            f"{V.function_name(spec.closure.function)!r} returns values of different types: "
            f"{error.what}",
            span=spec.closure.function.span,
        ) from None
    if not spec.copies and _is_given_or_made(value):
        spec.copies = True
        return new
    own = {s for t in argument_types(spec) for s in types.type_symbols(t)}
    found = [s for s in layout_symbols([value, *contents], -1) if s not in own]
    moved = old.moved | new.moved
    return Result(value, old.changed, contents, tuple(found), old.stored, moved)


def _count_pools(contents: Sequence[Any]) -> int:
    """How many pools the items of some lists lie in, of each list those that it has."""
    return sum(len(content.pools) for content in contents if isinstance(content, L.LGrown))


def _is_given_or_made(layout: L.Layout) -> bool:
    """Whether something is a parameter in one case and an object of its kind that the function made
    in another: each call of itself would add a case."""
    pending = [layout]
    while pending:
        here = pending.pop()
        if isinstance(here, L.LNode):
            pending.extend(here.children)
        elif isinstance(here, L.LUnion):
            if any(_given_and_made(a, b) for a, b in itertools.permutations(here.cases, 2)):
                return True
            pending.extend(here.cases)
    return False


def _given_and_made(a: L.Layout, b: L.Layout) -> bool:
    """Whether a parameter stands in one layout where an object of its kind does in another."""
    match a, b:
        case L.LParam(_, root), L.LPlace(_, kind):
            return root.kind == kind
        case L.LNode(head, parts), L.LNode(other, others) if head == other:
            return any(map(_given_and_made, parts, others))
    return False


def _mentions_parameter(*layouts: L.Layout) -> bool:
    pending: list[Any] = list(layouts)
    while pending:
        here = pending.pop()
        if isinstance(here, L.LParam):
            return True
        if isinstance(here, L.LNode):
            pending.extend(here.children)
        elif isinstance(here, L.LUnion):
            pending.extend(here.cases)
    return False
