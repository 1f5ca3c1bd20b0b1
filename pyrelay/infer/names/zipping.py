"""`enumerate`, `zip`, `reversed` and `map` as handlers.

In: iterables, one of which may be one of several cases. Out: the iterator, used up by the first who
goes through it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.flow.effects import raise_where
from pyrelay.infer.flow.generators import (
    is_generator,
    is_iterator,
    iterator,
    listed_view,
    taken,
)
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.iteration import iterate
from pyrelay.infer.flow.narrowing import narrowed
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.flow.unions import distribute
from pyrelay.infer.in_python.iteration import groups
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.builtins import ZERO, count_of, len_
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.operators import compare, raised
from pyrelay.infer.protocols import gone_through


def _iterator(
    it: Interpreter, kind: str, sources: Sequence[V.Value], extra: V.Value | None = None
) -> V.Value:
    """The object that `zip` and its kin give. What may be no iterable raises where it is none."""
    if isinstance(extra, V.Union):
        return distribute(it, extra, lambda case: _iterator(it, kind, sources, case))
    given = [narrowed(it, source) for source in sources]
    several = [k for k, source in enumerate(given) if isinstance(source, V.Union)]

    def with_case(k: int, case: V.Value) -> V.Value:
        if isinstance(case, (V.Known, V.Scalar)):
            iterate(it, case)  # raises
        return _iterator(it, kind, [*given[:k], case, *given[k + 1 :]], extra)

    for k in several:
        value = given[k]
        assert isinstance(value, V.Union)
        mixed = any(isinstance(c, (V.Known, V.Scalar)) for c in value.possible)
        if mixed or len(several) > 1:
            return distribute(it, value, functools.partial(with_case, k), iter)
    return iterator(it, V.Lazy(kind, tuple(given), extra))


@handles(enumerate)
@keeps_unions
def enumerate_(it: Interpreter, iterable: V.Value, start: V.Value = ZERO) -> V.Value:
    """enumerate(iterable, start)."""
    return _iterator(it, "enumerate", (iterable,), start)


@handles(zip)
@keeps_unions
def zip_(it: Interpreter, *iterables: V.Value, strict: V.Value = V.Known(False)) -> V.Value:
    """zip(*iterables, strict=strict)."""
    together = bool(it.static(strict, "strict"))
    if not together and _are_one_iterator(iterables):
        return call(it, V.Known(groups), (iterables[0], V.Known(len(iterables))), {})
    iterables = _gone_through(it, iterables)
    if not together:
        return _iterator(it, "zip", iterables)
    return _together(it, "zip", iterables, lambda given: _iterator(it, "zip", given))


def _gone_through(it: Interpreter, iterables: Sequence[V.Value]) -> tuple[V.Value, ...]:
    return tuple(gone_through(it, listed_view(it, taken(it, each))) for each in iterables)


def _together(
    it: Interpreter, word: str, iterables: Sequence[V.Value],
    made: Callable[[Sequence[V.Value]], V.Value],
) -> V.Value:
    """What is made of iterables that have to be of one length."""
    given = [narrowed(it, x) for x in _gone_through(it, iterables)]
    for k, value in enumerate(given):
        if isinstance(value, V.Union):
            return distribute(
                it, value,
                lambda c, k=k: _together(it, word, [*given[:k], c, *given[k + 1 :]], made),  # type: ignore[misc]
            )
    _same_counts(it, word, given)
    return made(given)


def _are_one_iterator(iterables: Sequence[V.Value]) -> bool:
    """Whether several iterables are the same iterator, from which they take items in turn."""
    first, *others = iterables or (V.NONE,)
    return isinstance(first, V.Ref) and is_iterator(first) and bool(others) and all(
        isinstance(other, V.Ref) and other.root is first.root for other in others
    )


def _same_counts(it: Interpreter, word: str, iterables: Sequence[V.Value]) -> None:
    """Raise what zip(strict=True) raises in the end, if the iterables have different lengths."""

    if any(map(is_generator, iterables)):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{word}(..., strict=True) of a generator is not compiled",
            hints=("leave out strict=True, or make a list of the generator's items first",),
        )
    counts = [
        count_of(it, x) if isinstance(x, V.Lazy) else len_(it, x) for x in iterables
    ]
    for k, count in enumerate(counts[1:], 2):
        others = "argument 1" if k == 2 else f"arguments 1-{k - 1}"
        for op, found in (("<", "shorter"), (">", "longer")):
            differs = truth(it, compare(it, op, count, counts[0]))
            message = f"{word}() argument {k} is {found} than {others}"
            if differs == V.Known(True):
                raise raised(it, ValueError(message))
            if differs != V.Known(False):
                raise_where(it, it.atom(differs), ValueError, V.Known(message))


@handles(reversed)
def reversed_(it: Interpreter, sequence: V.Value) -> V.Value:
    """reversed(sequence)."""
    return iterator(it, V.Lazy("reversed", (sequence,)))


@handles(map)
@keeps_unions
def map_(
    it: Interpreter, function: V.Value, *iterables: V.Value, strict: V.Value | None = None
) -> V.Value:
    """map(function, *iterables, strict=strict)."""
    if strict is not None and sys.version_info < (3, 14):
        text = "map() takes no keyword arguments"
        raise certain(it, it.failure(errors.SignatureError, text), TypeError, text)
    if strict is None or not it.static(strict, "strict"):
        return _iterator(it, "map", iterables, function)
    return _together(
        it, "map", iterables, lambda given: _iterator(it, "map", given, function)
    )
