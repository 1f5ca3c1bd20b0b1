"""Generators: the body of the generator runs where it is consumed, each `yield` runs the consumer.

In: a generator (a `Ref` of kind "generator", whose content is how far it has run, the function and
its arguments) and what is done with each item. Out: the generator's body in line, with
the consumer's body at every `yield`. What the consumer carries from item to item lives in cells, so
that loops and branches of the generator carry it along; where the consumer leaves, the generator
returns. Other iterables that go with a generator in `zip`, `enumerate` or `map` are indexed by
the number of the item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_layouts import is_open, is_string
from pyrelay.infer.flow import resuming
from pyrelay.infer.flow.handling import unguarded
from pyrelay.infer.flow.revisits import reachable
from pyrelay.infer.flow.unions import lazy_of_cases
from pyrelay.infer.in_python.iteration import append_items
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import TEMPORARY, Function, Loop, PyCall
from pyrelay.ir.walk import nested_lets

Each = Callable[[V.Value], V.Value]
"""What is done with an item; true if no more are wanted."""

_FRESH, _STARTED, _DONE = V.Known("fresh"), V.Known("started"), V.Known("done")
_HOLDERS = ("list", "dict", "set", "object", "cell")
_DEEPEST = 100
_DEEPEST_GROWING = 32
"""How deep a generator runs in itself that is handed the same but longer lists."""
_DEEPEST_COUNTED = 4
"""How deep it does so with known numbers that change beside others that only the running program
knows, which most likely say where it ends."""


def is_generator_function(it: Interpreter, function: Function) -> bool:
    """True for a function with a `yield` of its own."""
    known = it.program.generators.get(function)
    if known is None:
        known = it.program.generators[function] = any(
            isinstance(let.rhs, PyCall) and let.rhs.kind == "yield"
            for let in nested_lets(function.body)
        )
    return known


def make(it: Interpreter, closure: V.Closure, bound: list[V.Value]) -> V.Value:
    """The generator that a call of a generator function gives."""
    ref = it.new_ref("generator", (_FRESH, closure, *bound))
    ref.root.made = it.let
    if it.let in it.program.ahead:
        if _has_items(it, ref):
            list_as_iterator(it, ref)
        elif (resumable := resuming.class_of(closure)) is not None:
            state = resuming.resumed(it, resumable, closure, bound)
            cells = {c.root: it.content(c.root) for c in closure.cells if isinstance(c, V.Ref)}
            it.program.sources[ref.root] = cells
            it.heap.write(ref.root, (state, closure, *bound), it.let.span if it.let else None)
    return ref


def _has_items(it: Interpreter, ref: V.Ref) -> bool:
    """Whether the items of a generator can be there before they are asked for."""
    if _is_sent_to(it, ref):
        return False
    return _numbered(it.content(ref.root)[1].owner) is not None or not never_ends(it, ref)


def is_generator(value: V.Value) -> bool:
    """True for a generator, and for `zip` and its kin of one."""
    if isinstance(value, V.Lazy):
        return any(map(is_generator, value.sources))
    return isinstance(value, V.Ref) and value.root.kind == "generator"


def is_iterator(value: V.Value) -> bool:
    """True for what is used up by going through it: generators, and what `iter` and `zip` give."""
    from pyrelay.infer.in_python.iteration import Items

    if is_generator(value) or isinstance(value, V.Lazy):
        return True
    return isinstance(value, V.Ref) and (value.root.kind == "iterator" or value.cls is Items)


def consume(it: Interpreter, value: V.Value, each: Each, *, managed: bool = False) -> None:
    """Run a generator to its end, or until `each` wants no more.

    managed: what `each` raises is thrown into the generator, as a `with` does it.
    """
    from pyrelay.infer.protocols import iterated

    ref = as_generator(it, value)
    state, closure, *bound = it.content(ref.root)
    if isinstance(state, V.Ref):  # an iterator over its items stands for it by now, or an object
        _check_sources(it, ref)
        rest = iterated(it, state)
        assert rest is not None
        consume(it, rest, each)
        return
    if state == _DONE:
        return
    if state != _FRESH:
        raise _left(it, ref, "this generator may have been left before its end, and going on with "
                    "it is not compiled")
    span = it.let.span if it.let else None
    it.heap.write(ref.root, (_STARTED, closure, *bound), span)
    if closure.function in it.program.gathered and it.frame.owner is not append_items:
        to_the_end = _run_gathered(it, make(it, closure, bound), each)
    else:
        to_the_end, it.program.returned[ref.root] = _run(it, closure, bound, each, managed)
    if to_the_end:
        it.heap.write(ref.root, (_DONE, closure, *bound), span)


def resumed_as(it: Interpreter, value: V.Value) -> V.Ref | None:
    """The object that stands for a generator whose end is not known: it gives an item at a call."""
    from pyrelay.infer.protocols import has_next

    if not (isinstance(value, V.Ref) and value.root.kind == "generator"):
        return None
    state = it.content(value.root)[0]
    if not (isinstance(state, V.Ref) and has_next(it, state)):
        return None
    _check_sources(it, value)
    return state


def takes_values(it: Interpreter, generator: V.Value) -> bool:
    """Whether a generator that nothing stands for yet may be sent values: `x = yield value`."""
    if not (isinstance(generator, V.Ref) and generator.root.kind == "generator"):
        return False
    made = generator.root.made
    return made is not None and made not in it.program.ahead and _is_sent_to(it, generator)


def _is_sent_to(it: Interpreter, generator: V.Ref) -> bool:
    return hasattr(resuming.class_of(it.content(generator.root)[1]), "send")


def object_of(it: Interpreter, generator: V.Value) -> V.Ref:
    """The object that stands for a generator that is sent values."""
    state = resumed_as(it, generator)
    if state is not None and hasattr(state.cls, "send"):
        return state
    assert isinstance(generator, V.Ref)
    error = it.failure(
        errors.UnsupportedOperationError, "nothing can be sent to this generator",
        notes=("what takes a value is 'x = yield y' as a statement of its own, in a generator with "
               "no try around a yield and no function inside",),
        hints=("write a class with a method that takes the value",),
    )
    if not takes_values(it, generator):
        raise error
    raise needs.NeedsListing(generator.root.made, error)  # type: ignore[arg-type]


def close(it: Interpreter, generator: V.Value) -> V.Value:
    """`generator.close()`: it gives nothing more."""
    assert isinstance(generator, V.Ref)
    state, closure, *bound = it.content(generator.root)
    if state == _STARTED and resuming.class_of(closure) is None:  # a try may wait for it
        raise _left(it, generator, "a generator that was left cannot be closed")
    it.heap.write(generator.root, (_DONE, closure, *bound), it.let.span if it.let else None)
    return V.NONE


def _left(it: Interpreter, ref: V.Ref, problem: str) -> Exception:
    """What to raise where a generator or iterator that may have been left is gone on with."""
    error = it.failure(
        errors.UnsupportedOperationError, problem,
        hints=("do all that needs its items in one loop, or make it anew",),
    )
    made = ref.root.made
    if made is None or made in it.program.ahead:
        return error
    known = ref.root.kind == "iterator" or _has_items(it, ref)
    if not known and resuming.class_of(it.content(ref.root)[1]) is None:
        return error
    return needs.NeedsListing(made, error)


def _check_sources(it: Interpreter, ref: V.Ref) -> None:
    """Refuse to go on with a generator whose items were computed, from what has changed since."""
    contents = it.heap.contents
    for root, content in it.program.sources.get(ref.root, {}).items():
        if root in contents and contents[root] is not content:
            raise it.failure(
                errors.UnsupportedOperationError,
                "what this generator goes through may have changed since it was made, and going on "
                "with it after it was left is not compiled",
                hints=("make a list of its items where it is made: items = iter(list(...))",),
            )


def _note_sources(it: Interpreter, ref: V.Ref, values: Sequence[V.Value]) -> None:
    contents = it.heap.contents
    it.program.sources[ref.root] = {
        root: contents[root] for v in values for root in reachable(v, it.heap) if root in contents
    }


def _has_grown(
    it: Interpreter, outer: Sequence[L.Layout], inner: Sequence[L.Layout], known: bool = False
) -> bool:
    """Whether arguments are the same but for lists and tuples in them, which have more items, and
    strings that are made of others; known: or are known."""
    from pyrelay.infer import specialisation

    others = [a if _is_longer(a, b, known) else b for a, b in zip(outer, inner, strict=True)]
    return specialisation.would_do(it, outer, others)


def _is_longer(outer: L.Layout, inner: L.Layout, known: bool) -> bool:
    match outer, inner:
        case (
            L.LPlace(kind="list", content=L.LNode(_, before)),
            L.LPlace(kind="list", content=L.LNode(_, now)),
        ):
            return len(now) > len(before)
        case L.LNode(("tuple", None, _), before), L.LNode(("tuple", None, _), now):
            return len(now) > len(before)
        case L.LKnown(str() as before), L.LKnown(str() as now) if known:
            return len(now) > len(before)
        case _, L.LNode(("text", *_)) if is_string(outer) and not is_open(inner):
            return outer != inner
    return False


def _is_computed(it: Interpreter, value: V.Value) -> bool:
    """Whether a value, or what a variable of the function around holds, is a number that only the
    running program knows."""
    if isinstance(value, V.Ref) and value.root.kind == "cell":
        value = it.content(value.root)
    return isinstance(value, V.Scalar)


def _check_depth(
    it: Interpreter, function: Function, values: Sequence[V.Value], layouts: Sequence[L.Layout],
    around: Sequence[Any],
) -> None:
    """Raises NeedsGathering where a generator runs in itself, seemingly without end.

    around: the layouts of its arguments, and these themselves, of those that it runs in.
    """
    from pyrelay.infer import specialisation

    endless = (
        any(specialisation.would_do(it, others, layouts) for others, _ in around)
        or sum(_has_grown(it, others, layouts) for others, _ in around) >= _DEEPEST_GROWING
        or it.active.count(function) >= _DEEPEST
    )
    soft = not endless and len(around) >= _DEEPEST_COUNTED and (
        function not in it.program.counted | it.program.gathered
        and any(_is_computed(it, v) for v in values)
    )
    if soft:
        numbers = specialisation.layouts_of(it, values, numbers=False)
        met = (specialisation.layouts_of(it, others, numbers=False) for _, others in around)
        soft = 1 + sum(
            specialisation.would_do(it, others, numbers)
            or _has_grown(it, others, numbers, known=True)
            for others in met
        ) >= _DEEPEST_COUNTED
    if endless or soft:
        error = it.failure(
            errors.RecursionTypeError,
            "this generator calls itself, and how deep is known only at run time",
            hints=("fill an array, or a list of known length, by a recursive function instead",),
        )
        raise needs.NeedsGathering(function, error, soft)


def _run(
    it: Interpreter, closure: V.Closure, bound: list[V.Value], each: Each, managed: bool
) -> tuple[bool, V.Value]:
    """Interpret the body of a generator with its consumer.

    Whether it runs to its end, and what it returns there.
    """
    from pyrelay.infer import specialisation
    from pyrelay.infer.calls import in_line

    begun = it.program.begun.setdefault(closure.function, [])
    values = [*bound, *closure.cells]
    layouts = specialisation.layouts_of(it, values)
    around = [
        others for depth, *others in begun
        if depth < len(it.active) and it.active[depth] is closure.function
    ]
    _check_depth(it, closure.function, values, layouts, around)
    frames, calls, active, let = list(it.frames), list(it.calls), list(it.active), it.let
    to_the_end, guards = True, len(it.handling)

    def consumer(item: V.Value) -> V.Value:
        nonlocal to_the_end
        inside = it.frames, it.calls, it.active, it.let, it.handling
        # A `finally` is done when the loop is left, by what its body raises too; a handler is not.
        caught = not managed and any(each.catches for each in it.handling[guards:])
        if caught:
            if guards:
                raise it.failure(
                    errors.UnsupportedOperationError,
                    "a yield in the body of a try with an except is not compiled where the loop "
                    "over the generator is in the body of a try itself",
                    notes=("the inner try would have to guard the yield and not the loop",),
                    hints=("put the try where the values are used",),
                )
            it.handling = ()
        it.frames, it.calls, it.active = list(frames), list(calls), list(active)
        it.let, mark = let, len(it.builder.lets)
        try:
            done = each(item)
        finally:
            it.frames, it.calls, it.active, it.let, it.handling = inside
            if caught:
                unguarded(it, mark)
        to_the_end = to_the_end and done == V.Known(False)
        return done

    begun.append((len(it.active), layouts, values))
    try:
        result = in_line(it, closure, bound, consumer)
    finally:
        begun.pop()
    return to_the_end, result


def _run_gathered(it: Interpreter, generator: V.Value, each: Each) -> bool:
    """The same of a generator that calls itself, whose items a recursive function puts in a list.

    Raises UnsupportedOperationError where it would show that they are computed at once.
    """
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python.iteration import items_of_list

    if never_ends(it, generator):
        raise it.failure(
            errors.UnsupportedOperationError,
            "a generator that calls itself and never ends cannot be compiled",
            hints=("write a loop with a list of what is left to do",),
        )
    sources = set(reachable(generator, it.heap))
    found, before = it.new_ref("list", ()), it.heap.copy()
    it.heap.written = {}
    call(it, V.Known(append_items), (generator, found), {})
    assert isinstance(generator, V.Ref)
    held = {root: it.heap.contents[root] for root in sources - {generator.root}}
    changed = before.contents.keys() & it.heap.written.keys()  # others may be laid out anew
    it.heap.written = {**before.written, **it.heap.written}
    changed -= {found.root, generator.root}
    if any(not _changes_unseen(it, root) for root in changed):
        if any(isinstance(it.heap.contents[root], V.Lost) for root in changed):
            it.program.lent = 2  # a list that it yields, which may be a copy
        raise it.failure(
            errors.UnsupportedOperationError,
            "this generator calls itself and changes objects, which those who go through it could "
            "see before its end",
            hints=("append what it yields to a list in a recursive function",),
        )
    rest = call(it, V.Known(items_of_list), (found,), {})
    assert isinstance(rest, V.Ref)
    consume(it, rest, each)
    if any(it.heap.contents.get(root) is not content for root, content in held.items()):
        raise it.failure(
            errors.UnsupportedOperationError,
            "what this generator goes through is changed before its end, and it calls itself",
            hints=("go through a list of its items: for item in list(...)",),
        )
    return it.content(rest.root)[0] == _DONE  # type: ignore[no-any-return]


def _changes_unseen(it: Interpreter, root: V.Root) -> bool:
    """Whether nobody sees a list that a generator changes while others go through its items.

    Those are handed on as they are (`yield from`) by a function that does nothing else meanwhile,
    or the list has no name outside of the generator, nor is it an item.
    """
    if root.kind != "list" or root.stored or isinstance(
        it.heap.contents[root], (V.Lost, V.Part)
    ):
        return False
    loop = None if it.let is None else it.let.rhs
    if it.frame.function in it.program.gathered and isinstance(loop, Loop):
        first, *rest = (let.rhs for let in loop.body.lets)
        return (
            isinstance(first, PyCall) and first.kind == "yield" and first.args == (loop.item,)
            and len(rest) == 1  # whether no more is wanted
        )
    named = [
        value for frame in it.frames for var, value in frame.env.items() if var.name != TEMPORARY
    ]
    holders = [V.Ref(r) for r in it.heap.contents if r.kind in _HOLDERS and r is not root]
    return root.made is not None and not any(
        root in reachable(value, it.heap) for value in (*named, *holders)
    )


def hand_over(it: Interpreter, item: V.Value) -> V.Value:
    """`yield item`: whether the consumer wants no more."""
    consumer = it.frame.consumer
    assert consumer is not None
    return consumer(item)


def returned(it: Interpreter, iterable: V.Value) -> V.Value:
    """What `yield from iterable` gives, which was gone through just before."""
    from pyrelay.infer.in_python.iteration import Items
    from pyrelay.infer.protocols import is_object

    if isinstance(iterable, V.Ref) and iterable.root.kind == "generator":
        found = it.program.returned.pop(iterable.root, None)
        if found is not None and not isinstance(it.content(iterable.root)[0], V.Ref):
            return found
    elif not isinstance(iterable, V.Union) and (
        not is_object(iterable) or getattr(iterable, "cls", None) is Items
    ):
        return V.NONE
    raise it.failure(
        errors.UnsupportedOperationError,
        "what 'yield from' gives is known only of a generator that it goes through from its start, "
        "and that is not recursive",
        hints=("make the generator there: x = yield from g(...)",),
    )


def collected(it: Interpreter, value: V.Value) -> V.Ref:
    """All items of a generator as a list."""
    from pyrelay.infer.attributes import call_method

    found = it.new_ref("list", ())

    def each(item: V.Value) -> V.Value:
        call_method(it, V.Method(found, "append"), (item,), {})
        return V.Known(False)

    consume(it, value, each)
    return found


def list_as_iterator(it: Interpreter, value: V.Value) -> V.Ref:
    """The iterator over all items of a generator, which stands for the generator from now on."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python import iteration

    ref = as_generator(it, value)
    state, closure, *bound = it.content(ref.root)
    if not isinstance(state, V.Ref):
        numbered = by_number(it, ref)
        items = numbered or listed(it, ref)
        if numbered is None:
            _note_sources(it, ref, (closure, *bound))
        result = it.program.returned.get(ref.root, V.NONE)
        state = call(it, V.Known(iteration.Items), (items, result), {})
        it.heap.write(ref.root, (state, closure, *bound), it.let.span if it.let else None)
    else:
        _check_sources(it, ref)
    assert isinstance(state, V.Ref)
    return state


def listed(it: Interpreter, value: V.Value) -> V.Ref:
    """All items of a generator as a list, ahead of when Python computes them.

    Raises UnsupportedOperationError if that would show: the generator changes other objects.
    Generators that it goes through to their end count as left, for whoever else would go on.
    """
    before = it.heap.copy()
    found = collected(it, value)
    ref = as_generator(it, value)
    changed = [r for r in it.heap.changed_since(before) if r is not ref.root]
    ended = [r for r in changed if r.kind in ("generator", "iterator")
             and it.heap.contents[r][0] == _DONE]
    for root in ended:
        left = (_STARTED, *it.heap.contents[root][1:])
        it.heap.write(root, left, it.let.span if it.let else None)
    if len(ended) < len(changed):
        raise it.failure(
            errors.UnsupportedOperationError,
            "this generator changes objects while others are asked for items in turn",
            hints=("write one loop that does what both do",),
        )
    return found


# -- zip, enumerate, map and reversed: used up by the first who goes through them ------------------


def iterator(it: Interpreter, lazy: V.Value) -> V.Ref:
    """The object that `zip` and its kin give, of a `Lazy` or of the items."""
    ref = it.new_ref("iterator", (_FRESH, lazy))
    ref.root.made = it.let
    if it.let in it.program.ahead:
        iterator_as_items(it, ref)
    return ref


def taken(it: Interpreter, value: V.Value, *, whole: bool = True) -> V.Value:
    """What there is to go through of an iterator; anything else unchanged.

    `whole`: all of it will be gone through. Raises UnsupportedOperationError if it is not known how
    much is left.
    """
    from pyrelay.infer.in_python.iteration import Items
    from pyrelay.infer.protocols import special

    if isinstance(value, V.Ref) and value.cls is Items:
        return special(it, value, "__iter__") or value
    if not (isinstance(value, V.Ref) and value.root.kind == "iterator"):
        return value
    state, lazy = it.content(value.root)
    if isinstance(state, V.Ref):
        _check_sources(it, value)
        return taken(it, state)
    if state == _DONE:
        return V.Tuple(())
    if state != _FRESH:
        raise _left(it, value, "this iterator may have been left before its end, and going on with "
                    "it is not compiled")
    left = _DONE if whole else _STARTED
    it.heap.write(value.root, (left, lazy), it.let.span if it.let else None)
    return lazy_of_cases(it, lazy)


def listed_view(it: Interpreter, value: V.Value) -> V.Value:
    """The items of a view of a table's keys or values, in a list; anything else unchanged."""
    from pyrelay.infer.in_python.tables import Values
    from pyrelay.infer.protocols import special

    if not (isinstance(value, V.Ref) and isinstance(value.cls, type)) or not (
        issubclass(value.cls, Values)
    ):
        return value
    items = special(it, value, "__iter__")
    assert items is not None
    return items if isinstance(items, (V.Tuple, V.Known)) else collected(it, items)


def iterator_as_items(it: Interpreter, value: V.Ref) -> V.Ref:
    """The iterator over the items of what `zip` and its kin gave, which stands for it from now."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.iteration import sequence_of
    from pyrelay.infer.in_python import iteration

    state, lazy = it.content(value.root)
    if isinstance(state, V.Ref):
        _check_sources(it, value)
        return state
    source = taken(it, value)
    _note_sources(it, value, (lazy,))
    items = listed(it, lazy) if is_generator(lazy) else V.Tuple(sequence_of(it, source))
    state = call(it, V.Known(iteration.Items), (items,), {})
    assert isinstance(state, V.Ref)
    it.heap.write(value.root, (state, lazy), it.let.span if it.let else None)
    return state


# -- zip, enumerate and map of a generator ---------------------------------------------------------


def _all_but_one_listed(
    it: Interpreter, value: V.Lazy
) -> tuple[tuple[V.Value, ...], int] | None:
    """Sources of which one is a generator, and which: of several all but one are made lists.

    None where more than one never end, or nobody knows if they do.
    """
    sources = list(value.sources)
    generators = [k for k, source in enumerate(sources) if is_generator(source)]
    for k in generators[:-1]:
        items = by_number(it, sources[k])
        if items is not None:
            sources[k] = items
    if len(generators) > 1 and all(not is_generator(sources[k]) for k in generators[:-1]):
        return tuple(sources), generators[-1]
    items = by_number(it, sources[generators[-1]]) if len(generators) > 1 else None
    if items is not None:
        sources[generators[-1]] = items
    *others, last = [k for k in generators if is_generator(sources[k])]
    for k in others:
        if never_ends(it, sources[k]):
            last, k = k, last
        if never_ends(it, sources[k]):
            return None
        sources[k] = listed(it, sources[k])
    return tuple(sources), last


def _in_turn(it: Interpreter, value: V.Lazy) -> V.Ref:
    """What `zip` gives of several that never end, or nobody knows if they do: a generator that asks
    each for its next item."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python import iteration

    iterators: list[V.Value] = []
    for source in value.sources:
        if not is_generator(source) or isinstance(source, V.Lazy):
            iterators.append(call(it, V.Known(iter), (source,), {}))
            continue
        assert isinstance(source, V.Ref)
        state, closure, *bound = it.content(source.root)
        if state == _FRESH and closure.owner is iteration.stepped:
            source = bound[0]
        elif not isinstance(state, V.Ref) and resuming.class_of(closure) is None:
            raise it.failure(
                errors.UnsupportedOperationError,
                f"{value.kind} of several generators without an end cannot be compiled",
                hints=("write one loop that computes what both give",),
            )
        iterators.append(source)
    found = call(it, V.Known(iteration.in_turn), (V.Tuple(tuple(iterators)),), {})
    assert isinstance(found, V.Ref)
    return found


def has_numbers(it: Interpreter, value: V.Value) -> bool:
    """True for itertools.count and its kin."""
    return isinstance(value, V.Ref) and _numbered(it.content(value.root)[1].owner) is not None


def _numbered(function: Any) -> Any:
    from pyrelay.infer.in_python import iteration

    return {
        iteration.counted: iteration.Counting, iteration.repeated: iteration.Repeating,
        iteration.cycled: iteration.Cycling,
    }.get(function)


def by_number(it: Interpreter, value: V.Value) -> V.Value | None:
    """The items of itertools.count and its kin by their number, instead of one by one.

    None for another generator, or one that has begun. It counts as begun from now on.
    """
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python import iteration

    if not (isinstance(value, V.Ref) and value.root.kind == "generator"):
        return None
    state, closure, *bound = it.content(value.root)
    made = _numbered(closure.owner)
    if state != _FRESH or made is None:
        return None
    if made is iteration.Counting and any(_is_inexact(v) for v in bound):
        raise it.failure(
            errors.UnsupportedOperationError,
            "itertools.count of floats is compiled only where one loop goes through it",
            hints=("count with ints, and compute start + step * k",),
        )
    it.heap.write(value.root, (_STARTED, closure, *bound), it.let.span if it.let else None)
    return call(it, V.Known(made), bound, {})


def _is_inexact(value: V.Value) -> bool:
    ty = V.number_type(value)
    return ty is None or ty.dtype.kind not in "bi"


def never_ends(it: Interpreter, value: V.Value) -> bool:
    """True for a generator with a loop that only its consumer ends."""
    if isinstance(value, V.Lazy):
        return all(never_ends(it, s) for s in value.sources if is_generator(s))
    assert isinstance(value, V.Ref)
    function = it.content(value.root)[1].function
    return any(
        isinstance(let.rhs, Loop) and let.rhs.iterable is None and let.rhs.test is None
        for let in nested_lets(function.body)
    )


def as_generator(it: Interpreter, value: V.Value) -> V.Ref:
    """A generator, or what `zip` and its kin make of one as a generator."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python import iteration

    if isinstance(value, V.Ref):
        return value
    assert isinstance(value, V.Lazy)
    if value.kind in ("product", "reversed"):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{value.kind} of a generator cannot be compiled",
            hints=("make a list of its items first: list(...)",),
        )
    found: V.Value
    several, chosen = len(value.sources) > 1, _all_but_one_listed(it, value)
    if chosen is None:
        found = _in_turn(it, value)
    else:
        sources, at = chosen
        generator = as_generator(it, sources[at])
        args: tuple[Any, ...]
        made: Callable[..., Any]
        match value.kind:
            case "enumerate":
                made, args = iteration.numbered, (generator, value.extra or V.Known(0))
            case "map" if not several:
                assert value.extra is not None
                made, args = iteration.mapped, (value.extra, generator)
            case _:
                args = V.Tuple(sources[:at]), generator, V.Tuple(sources[at + 1 :])
                made = iteration.zipped
        found = call(it, V.Known(made), args, {})
    if value.kind == "map" and several:
        assert value.extra is not None
        found = call(it, V.Known(iteration.star_mapped), (value.extra, found), {})
    assert isinstance(found, V.Ref)
    return found
