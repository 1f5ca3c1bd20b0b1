"""Generators: the body of the generator runs where it is consumed, each `yield` runs the consumer.

In: a generator (a `Ref` of kind "generator", whose content is the function and its arguments, and
nothing once it has run) and what is done with each item. Out: the generator's body in line, with
the consumer's body at every `yield`. What the consumer carries from item to item lives in cells, so
that loops and branches of the generator carry it along; where the consumer leaves, the generator
returns. Other iterables that go with a generator in `zip`, `enumerate` or `map` are indexed by
the number of the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import Function, PyCall
from pyrelay.ir.walk import nested_lets

Each = Callable[[V.Value], V.Value]
"""What is done with an item; true if no more are wanted."""

_STARTED = V.Known("started")
_DEEPEST = 100


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
    return it.new_ref("generator", (closure, *bound))


def is_generator(value: V.Value) -> bool:
    """True for a generator, and for `zip` and its kin of one."""
    if isinstance(value, V.Lazy):
        return any(map(is_generator, value.sources))
    return isinstance(value, V.Ref) and value.root.kind == "generator"


def consume(it: Interpreter, value: V.Value, each: Each) -> None:
    """Run a generator to its end, or until `each` wants no more."""
    ref = as_generator(it, value)
    content = it.content(ref.root)
    if content == (_STARTED,):
        raise it.failure(
            errors.UnsupportedOperationError,
            "this generator was left before its end, and going on with it is not compiled",
            hints=("do all that needs its items in one loop, or make the generator anew",),
        )
    if not content:
        return
    span = it.let.span if it.let else None
    it.heap.write(ref.root, (_STARTED,), span)
    closure, *bound = content
    if _run(it, closure, bound, each):
        it.heap.write(ref.root, (), span)


def _run(it: Interpreter, closure: V.Closure, bound: list[V.Value], each: Each) -> bool:
    """Interpret the body of a generator with its consumer; whether it runs to its end."""
    from pyrelay.infer.calls import in_line

    if it.active.count(closure.function) >= _DEEPEST:
        raise it.failure(
            errors.RecursionTypeError,
            "this generator calls itself, and how deep is known only at run time",
            hints=("fill an array, or a list of known length, by a recursive function instead",),
        )
    frames, calls, active = list(it.frames), list(it.calls), list(it.active)
    to_the_end = True

    def consumer(item: V.Value) -> V.Value:
        nonlocal to_the_end
        inside = it.frames, it.calls, it.active, it.let
        it.frames, it.calls, it.active = list(frames), list(calls), list(active)
        try:
            done = each(item)
        finally:
            it.frames, it.calls, it.active, it.let = inside
        to_the_end = to_the_end and done == V.Known(False)
        return done

    in_line(it, closure, bound, consumer)
    return to_the_end


def hand_over(it: Interpreter, item: V.Value) -> V.Value:
    """`yield item`: whether the consumer wants no more."""
    consumer = it.frame.consumer
    assert consumer is not None
    return consumer(item)


def collected(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    """All items of a generator that yields a known number of them."""
    from pyrelay.infer.attributes import call_method

    found = it.new_ref("list", ())

    def each(item: V.Value) -> V.Value:
        call_method(it, V.Method(found, "append"), (item,), {})
        return V.Known(False)

    consume(it, value, each)
    return tuple(it.content(found.root))


# -- zip, enumerate and map of a generator ---------------------------------------------------------


def as_generator(it: Interpreter, value: V.Value) -> V.Ref:
    """A generator, or what `zip` and its kin make of one as a generator."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python import iteration

    if isinstance(value, V.Ref):
        return value
    assert isinstance(value, V.Lazy)
    at = [k for k, source in enumerate(value.sources) if is_generator(source)]
    if len(at) > 1 or value.kind in ("product", "reversed"):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{value.kind} of {'several generators' if len(at) > 1 else 'a generator'} cannot be "
            "compiled",
            hints=("make lists of their items first, or write one loop",),
        )
    generator = as_generator(it, value.sources[at[0]])
    before, after = value.sources[: at[0]], value.sources[at[0] + 1 :]
    args: tuple[Any, ...]
    made: Callable[..., Any]
    match value.kind:
        case "enumerate":
            made, args = iteration.numbered, (generator, value.extra or V.Known(0))
        case "map" if not before and not after:
            assert value.extra is not None
            made, args = iteration.mapped, (value.extra, generator)
        case _:
            made, args = iteration.zipped, (V.Tuple(before), generator, V.Tuple(after))
    found = call(it, V.Known(made), args, {})
    if value.kind == "map" and (before or after):
        assert value.extra is not None
        found = call(it, V.Known(iteration.star_mapped), (value.extra, found), {})
    assert isinstance(found, V.Ref)
    return found
