"""Loops: what they go through, and so how they run.

In: a Relay loop (`while`, or `for` over any iterable). Out: its rounds, or at each `yield` of a
generator its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.infer import progress, protocols
from pyrelay.infer import values as V
from pyrelay.infer.flow.generators import consume, is_generator, taken
from pyrelay.infer.flow.iteration import Iteration, iterate
from pyrelay.infer.flow.rounds import Runner
from pyrelay.infer.flow.unions import distribute_all
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import Let, Loop


def going_on(
    it: Interpreter, let: Let, rest: Callable[[], Sequence[V.Value]]
) -> Callable[[Sequence[V.Value]], Sequence[V.Value]]:
    """What follows a Let, for one of the arms that it goes into, given the results in that."""

    def go_on(results: Sequence[V.Value]) -> Sequence[V.Value]:
        it.bind(let.outs, results)
        it.variants += 1
        try:
            return rest()
        finally:
            it.variants -= 1

    return go_on


def split(
    it: Interpreter, let: Let, rest: Callable[[], Sequence[V.Value]], *, tears: bool
) -> list[V.Value]:
    """A Loop whose first round gives an object its structure: what follows goes into both arms, the
    one with a first round and the one without. `tears`: see `control.split`."""
    node = let.rhs
    assert isinstance(node, Loop)
    iterable = None
    if node.iterable is not None:
        iterable = _generated(it, taken(it, it.value(node.iterable), whole=not node.exits))
    iteration = None if iterable is None else iterate(it, iterable)
    init = [it.value(a) for a in node.init]

    go_on = going_on(it, let, rest)
    return Runner(it, let, node, iteration, iterable).peeled(init, go_on, tears=tears)


def run_loop(it: Interpreter, let: Let) -> None:
    """Interpret a Loop of Relay."""
    node = let.rhs
    assert isinstance(node, Loop)
    init = [it.value(a) for a in node.init]

    def over(iterable: V.Value | None) -> list[V.Value]:
        if iterable is not None:
            iterable = _generated(it, taken(it, iterable, whole=not node.exits))
        if iterable is not None and is_generator(iterable):
            return _over_generator(it, let, node, init, iterable)
        iteration = None if iterable is None else iterate(it, iterable)
        shown = list(progress.bars(iterable)) if iterable is not None else []
        if shown and iteration is not None:
            return _shown(it, let, node, init, iteration, shown)
        return Runner(it, let, node, iteration, iterable, splits=not several).run(init)

    iterable = None if node.iterable is None else it.value(node.iterable)
    if iterable is not None:
        iterable = taken(it, iterable, whole=not node.exits)
    several = isinstance(iterable, V.Union)
    if isinstance(iterable, V.Union):
        names = [v.name for v in node.carried]
        it.bind(let.outs, distribute_all(it, iterable, over, iter, names, grows=True))
    else:
        it.bind(let.outs, over(iterable))


def _generated(it: Interpreter, iterable: V.Value) -> V.Value:
    """The generator that the `__iter__` of an object gives; any other iterable unchanged.

    What has only a `__getitem__` is gone through by index.
    """
    if isinstance(iterable, (V.Ref, V.Data)) and isinstance(iterable.cls, type) and (
        {"__iter__", "__getitem__"} & set(dir(iterable.cls))
    ):
        own = protocols.iterated(it, iterable)
        if own is not None and is_generator(own):
            return own
    return iterable


def _shown(
    it: Interpreter, let: Let, node: Loop, init: list[V.Value], iteration: Iteration,
    bars: Sequence[V.Lazy],
) -> list[V.Value]:
    """A loop with progress bars: how many rounds are done is kept in a cell.

    A loop that is left counts the round that left it if it was the last one.
    """
    begun = it.new_ref("cell", V.Known(0)).root

    def item(index: V.Value) -> V.Value:
        found = iteration.item(index)
        it.heap.write(begun, index, None)
        return found

    counted = Iteration(
        iteration.count, item, iteration.static, iteration.lists, iteration.count_now
    )
    results = Runner(it, let, node, counted).run(init)
    for bar in bars:
        progress.finish(it, bar, it.content(begun), iteration.count)
    return results


def _over_generator(
    it: Interpreter, let: Let, node: Loop, init: list[V.Value], generator: V.Value
) -> list[V.Value]:
    """A loop over a generator: its body runs at every `yield`, what it carries lives in cells."""
    cells = [it.new_ref("cell", value).root for value in init]
    runner = Runner(it, let, node, Iteration(V.NONE, lambda item: item))

    def each(item: V.Value) -> V.Value:
        runner.enter([it.content(cell) for cell in cells])
        leave, following = runner.body(item)
        for cell, value in zip(cells, following, strict=True):
            it.heap.write(cell, value, let.span)
        return leave

    consume(it, generator, each)
    return [it.content(cell) for cell in cells]


__all__ = ["run_loop", "split"]
