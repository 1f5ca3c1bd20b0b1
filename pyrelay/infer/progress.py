"""Progress bars: `tqdm(iterable)` and `trange(n)` around what a compiled loop goes through.

In: the call, whose arguments are tqdm's own. Out: an iterable with the same items. Python makes the
bar, under a number; the loop calls Python again only when the bar says so, at most some tens of
times a second, and tqdm decides what it shows.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from pyrelay import errors
from pyrelay.infer import host
from pyrelay.infer import values as V
from pyrelay.infer.flow.iteration import Iteration, iterate
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types

PERIOD = 0.02
"""Seconds between two calls of Python, as far as the speed of the loop can be told."""

_METHODS = (
    "set_description", "set_description_str", "set_postfix", "set_postfix_str", "refresh", "clear",
    "reset", "close",
)
_bars: dict[int, _Bar] = {}
_numbers = itertools.count()


class _Bar:
    """A bar of tqdm's, and how far the loop was when it last called."""

    def __init__(self, bar: Any) -> None:
        self.bar, self.at, self.when = bar, 0, time.perf_counter()

    def advance(self, done: int) -> int:
        """So many rounds are done; when to call again."""
        now = time.perf_counter()
        rounds, seconds = done - self.at, max(now - self.when, 1e-9)
        self.at, self.when = done, now
        self.bar.update(done - self.bar.n)
        likely = int(rounds * PERIOD / seconds)
        return done + max(1, min(likely, 2 * rounds))


def of_tqdm(obj: Any) -> Callable[..., V.Value] | None:
    """The handler of a class or function of the library tqdm; None for another of it."""
    name = getattr(obj, "__name__", "")
    if isinstance(obj, type):
        return handler(obj, ranges=False)
    if name in ("trange", "tnrange"):
        return handler(obj, ranges=True)
    return None


def handler(cls: Any, ranges: bool) -> Callable[..., V.Value]:
    """What a call of `tqdm` (or, if it `ranges`, of `trange`) means."""

    def call(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        iterable = keywords.pop("iterable", None)
        if ranges:
            from pyrelay.infer.names.builtins import range_

            iterable, args = range_(it, *args), ()
        elif args:
            iterable, *args = args  # type: ignore[assignment]
        if iterable is None or args:
            raise it.failure(
                errors.UnsupportedOperationError,
                "a progress bar of a compiled function goes around an iterable",
                hints=("write 'for item in tqdm(items, desc=...)'",),
            )
        keywords.setdefault("total", iterate(it, iterable).count)
        number = host.call(it, _open, (V.Known(cls),), keywords, types.PY_INT)
        following = it.new_ref("cell", V.Known(1))
        return V.Lazy("progress", (iterable,), V.Tuple((number, following)))

    return call


def _open(cls: Any, **options: Any) -> int:
    number = next(_numbers)
    count = () if isinstance(cls, type) else (options.pop("total"),)  # trange takes it so
    _bars[number] = _Bar(cls(*count, **options))
    return number


def _advance(number: int, done: int) -> int:
    return _bars[number].advance(done)


def _finish(number: int, begun: int, count: int) -> None:
    own = _bars.pop(number)
    done = count if begun + 1 >= count else begun
    own.bar.update(done - own.bar.n)
    own.bar.close()


def _called(name: str, number: int, *args: Any, **keywords: Any) -> None:
    if number in _bars:
        getattr(_bars[number].bar, name)(*args, **keywords)


def iteration(it: Interpreter, value: V.Lazy) -> Iteration:
    """The items of the iterable; asking for one tells the bar that those before it are done."""
    inner = iterate(it, value.sources[0])
    number, cell = _state(value)

    def item(index: V.Value) -> V.Value:
        from pyrelay.infer.flow.control import branch
        from pyrelay.infer.operators import compare

        due = compare(it, ">=", index, it.content(cell.root))

        def tick() -> list[V.Value]:
            following = host.call(it, _advance, (number, index), result=types.PY_INT)
            it.heap.write(cell.root, following, None)
            return []

        if isinstance(due, V.Known):
            if due.value:
                tick()
        else:
            branch(it, it.atom(due), tick, list)
        return inner.item(index)

    return Iteration(inner.count, item, inner.static, inner.lists, inner.count_now)


def bars(value: V.Value) -> Iterator[V.Lazy]:
    """The bars among the sources of an iterable."""
    pending = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, V.Lazy):
            if here.kind == "progress":
                yield here
            pending += here.sources


def finish(it: Interpreter, value: V.Lazy, begun: V.Value, count: V.Value) -> None:
    """Behind the loop, whose last round was number `begun`: the bar is closed."""
    number, _ = _state(value)
    host.call(it, _finish, (number, begun, count))


def _state(value: V.Lazy) -> tuple[V.Value, V.Ref]:
    assert isinstance(value.extra, V.Tuple)
    number, cell = value.extra.items
    assert isinstance(cell, V.Ref)
    return number, cell


def methods() -> dict[str, Callable[..., V.Value]]:
    """The methods of a bar that a loop may call."""

    def method(name: str) -> Callable[..., V.Value]:
        def call(
            it: Interpreter, bar: V.Lazy, *args: V.Value, **keywords: V.Value
        ) -> V.Value:
            number, _ = _state(bar)
            return host.call(it, _called, (V.Known(name), number, *args), keywords)

        return call

    return {name: method(name) for name in _METHODS}
