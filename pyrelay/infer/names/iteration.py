"""`iter`, `next`, `filter` and itertools as handlers.

In: iterables. Out: tuples where all items are at hand, else generators (in_python/iteration.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import memoising, protocols
from pyrelay.infer import values as V
from pyrelay.infer.arrays.subscripts import get_item
from pyrelay.infer.calls import call
from pyrelay.infer.containers.open_keys import is_int, is_known
from pyrelay.infer.flow.generators import (
    has_numbers,
    is_generator,
    is_iterator,
    iterator_as_items,
    list_as_iterator,
    never_ends,
    object_of,
    resumed_as,
    takes_values,
)
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.iteration import iterate, sequence_of
from pyrelay.infer.in_python import iteration
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import operand
from pyrelay.infer.names.handlers import handles
from pyrelay.ir.nodes import TEMPORARY


def _items(it: Interpreter, iterable: V.Value) -> tuple[V.Value, ...] | None:
    """The items of an iterable that are all at hand, else None."""
    if is_generator(iterable) or isinstance(iterable, V.ArrayRef):
        return None
    found = iterate(it, iterable)
    if not isinstance(found.count, V.Known) or not found.static:
        return None
    return tuple(found.item(V.Known(k)) for k in range(found.count.value))


def _in_python(fn: Callable[..., Any]) -> Callable[..., V.Value]:
    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        return call(it, V.Known(fn), args, keywords)

    return handler


@handles(filter)
def filter_(it: Interpreter, function: V.Value, iterable: V.Value) -> V.Value:
    """filter(function, iterable)."""
    return call(it, V.Known(iteration.filtered), (function, iterable), {})


@handles(iter)
def iter_(it: Interpreter, iterable: V.Value, *sentinel: V.Value) -> V.Value:
    """iter(iterable): a generator of its items; iter(function, sentinel)."""
    if sentinel:
        return call(it, V.Known(iteration.called_until), (iterable, *sentinel), {})
    if isinstance(iterable, V.Ref) and (
        is_generator(iterable) or iterable.root.kind == "iterator"
    ):
        return iterable
    if isinstance(iterable, V.Ref) and iterable.cls is iteration.Items:
        return iterable
    if isinstance(iterable, V.Ref) and iterable.root.kind in ("dict", "set"):
        iterable = V.Tuple(sequence_of(it, iterable))
    if iterable == V.NONE or V.number_type(iterable) is not None:
        iterate(it, iterable)  # which raises
    own = protocols.special(it, iterable, "__iter__")
    if own is not None and protocols.has_next(it, own):
        return own
    return iter_(it, own) if own is not None else call(
        it, V.Known(iteration.Items), (iterable,), {}
    )


def _has_name(it: Interpreter, value: V.Value) -> bool:
    """True if a variable holds a generator, which may then be asked for more."""
    return isinstance(value, V.Lazy) or any(
        isinstance(held, V.Ref) and isinstance(value, V.Ref) and held.root is value.root
        for var, held in it.frame.env.items() if var.name != TEMPORARY
    )


@handles(next)
def next_(it: Interpreter, iterator: V.Value, *default: V.Value) -> V.Value:
    """next(iterator[, default])."""
    if isinstance(iterator, V.Ref) and iterator.cls is iteration.Items:
        return call(it, V.Known(iteration.following), (iterator, V.Tuple(default)), {})
    if isinstance(iterator, V.Ref) and iterator.root.kind == "iterator":
        items = iterator_as_items(it, iterator)
        return call(it, V.Known(iteration.following), (items, V.Tuple(default)), {})
    if is_generator(iterator):
        if (resumed := resumed_as(it, iterator)) is not None:
            return next_(it, resumed, *default)
        if takes_values(it, iterator):
            return next_(it, object_of(it, iterator), *default)
        if _has_name(it, iterator) and (has_numbers(it, iterator) or not never_ends(it, iterator)):
            items = list_as_iterator(it, iterator)
            return call(it, V.Known(iteration.following), (items, V.Tuple(default)), {})
        return call(it, V.Known(iteration.first), (iterator, V.Tuple(default)), {})
    if protocols.has_next(it, iterator):
        if default:
            return call(it, V.Known(iteration.next_or), (iterator, *default), {})
        found = protocols.special(it, iterator, "__next__")
        assert found is not None
        return found
    raise it.failure(
        errors.TypeMismatchError, f"next() cannot take {V.describe(iterator)}",
        hints=("give it an iterator: iter(...)",),
    )


@handles(iteration.returned_by)
def returned_by(it: Interpreter, items: V.Value) -> V.Value:
    """What a generator returned that has ended just now."""
    if not isinstance(items, V.Ref):
        return V.NONE
    return it.program.returned.pop(items.root, V.NONE)


@handles(itertools.tee)
def tee(it: Interpreter, iterable: V.Value, n: V.Value = V.Known(2)) -> V.Value:
    """itertools.tee: iterators over the same items, which are computed at once."""
    from pyrelay.infer.names.builtins import list_

    if is_generator(iterable) and never_ends(it, iterable):
        raise it.failure(
            errors.UnsupportedOperationError,
            "itertools.tee of a generator that never ends cannot be compiled",
            hints=("make the generator twice",),
        )
    items = list_as_iterator(it, iterable) if is_generator(iterable) else list_(it, iterable)
    held = list_(it, items) if is_generator(iterable) else items
    return V.Tuple(tuple(iter_(it, held) for _ in range(it.static(n, "the number of copies"))))


@handles(itertools.product)
def product(it: Interpreter, *iterables: V.Value, repeat: V.Value = V.Known(1)) -> V.Value:
    """itertools.product: the last iterable runs fastest."""
    from pyrelay.infer.names.builtins import list_

    given = tuple(list_(it, each) if is_generator(each) else each for each in iterables)
    return V.Lazy("product", given * it.static(repeat, "repeat"))


@handles(np.ndindex)
def ndindex(it: Interpreter, *shape: V.Value) -> V.Value:
    """np.ndindex(*shape), or of one tuple: the last index runs fastest."""
    extents = shape
    if len(shape) == 1 and V.number_type(shape[0]) is None:
        extents = sequence_of(it, shape[0])
    ranges = tuple(V.Range(V.Known(0), n, V.Known(1)) for n in extents)
    return V.Lazy("product", ranges)


@handles(np.ndenumerate)
def ndenumerate(it: Interpreter, arr: V.Value) -> V.Value:
    """np.ndenumerate(arr)."""
    return call(it, V.Known(iteration.elements_by_index), (operand(it, arr),), {})


@handles(np.nditer)
def nditer(it: Interpreter, op: V.Value) -> V.Value:
    """np.nditer of one array, in C order, without flags: its elements as numbers."""
    return call(it, V.Known(iteration.elements), (operand(it, op),), {})


@handles(itertools.chain)
def chain(it: Interpreter, *iterables: V.Value) -> V.Value:
    """itertools.chain(*iterables)."""
    return chain_all(it, V.Tuple(iterables))


@handles(itertools.chain.from_iterable)
def chain_all(it: Interpreter, iterables: V.Value) -> V.Value:
    """itertools.chain.from_iterable(iterables)."""
    parts = _items(it, iterables)
    if parts is not None:
        known = [_items(it, part) for part in parts]
        if all(k is not None for k in known):
            return V.Tuple(tuple(item for each in known for item in each or ()))
        iterables = V.Tuple(parts)
    return call(it, V.Known(iteration.chained), (iterables,), {})


def _arrangements(
    fn: Any, meaning: Callable[..., Any], of_any_length: Callable[..., Any]
) -> Callable[..., V.Value]:
    """Arrangements at hand of items that are, else made one by one: tuples of a known length, or of
    one that only the running program knows."""
    def handler(it: Interpreter, iterable: V.Value, r: V.Value = V.NONE) -> V.Value:
        items = _items(it, iterable)
        whole = fn is itertools.permutations and r == V.NONE
        if not isinstance(r, V.Known) or (whole and items is None):
            return call(it, V.Known(of_any_length), (iterable, r), {})
        length = () if r == V.NONE else (V.Known(it.static(r, "the length of an arrangement")),)
        if length and length[0].value < 0:
            text = "r must be non-negative"
            raise certain(it, it.failure(errors.InvalidValueError, text), ValueError, text)
        if items is None:
            return call(it, V.Known(meaning), (iterable, *length), {})
        return V.Tuple(tuple(map(V.Tuple, fn(items, *(k.value for k in length)))))

    return handler


for _fn, _meaning, _of_any_length in (
    (itertools.combinations, iteration.combinations, iteration.combinations_of),
    (
        itertools.combinations_with_replacement, iteration.combinations_with_replacement,
        iteration.combinations_of_repeated,
    ),
    (itertools.permutations, iteration.permutations, iteration.permutations_of),
    (itertools.pairwise, iteration.pairs, iteration.pairs),
):
    handles(_fn)(_arrangements(_fn, _meaning, _of_any_length))


def batched(
    it: Interpreter, iterable: V.Value, n: V.Value, *, strict: V.Value = V.Known(False)
) -> V.Value:
    """itertools.batched(iterable, n, strict=strict)."""
    size = it.static(n, "the length of a batch")
    if size < 1:
        text = "n must be at least one"
        raise certain(it, it.failure(errors.InvalidValueError, text), ValueError, text)
    items = _items(it, iterable)
    if items is None:
        return call(it, V.Known(iteration.batches), (iterable, n, strict), {})
    if it.static(strict, "strict") and len(items) % size:
        return call(it, V.Known(iteration.batches), (V.Tuple(items), n, strict), {})
    return V.Tuple(
        tuple(V.Tuple(items[k : k + size]) for k in range(0, len(items), size))
    )


if hasattr(itertools, "batched"):  # since 3.12
    handles(itertools.batched)(batched)


@handles(itertools.accumulate)
def accumulate(
    it: Interpreter, iterable: V.Value, func: V.Value = V.NONE, *, initial: V.Value = V.NONE
) -> V.Value:
    """itertools.accumulate(iterable, func, initial=initial)."""
    return call(it, V.Known(iteration.accumulated), (iterable, func, initial), {})


@handles(itertools.repeat)
def repeat(it: Interpreter, object: V.Value, times: V.Value | None = None) -> V.Value:
    """itertools.repeat(object[, times])."""
    if times is None:
        return call(it, V.Known(iteration.repeated), (object,), {})
    return V.Lazy("map", (V.Range(V.Known(0), times, V.Known(1)),), V.Partial(
        V.Known(iteration.constant), (object,), ()
    ))


@handles(itertools.islice)
def islice(it: Interpreter, iterable: V.Value, *bounds: V.Value) -> V.Value:
    """itertools.islice(iterable, [start,] stop[, step])."""
    start: V.Value = V.Known(0)
    stop: V.Value = V.NONE
    step: V.Value = V.Known(1)
    match bounds:
        case (only,):
            stop = only
        case (first, last, *more) if len(more) <= 1:
            start = first if first != V.NONE else start
            stop = last
            step = more[0] if more and more[0] != V.NONE else step
        case _:
            raise it.failure(errors.SignatureError, "islice() takes from 2 to 4 arguments")
    return call(it, V.Known(iteration.sliced), (iterable, start, stop, step), {})


@handles(itertools.zip_longest)
def zip_longest(
    it: Interpreter, *iterables: V.Value, fillvalue: V.Value = V.NONE
) -> V.Value:
    """itertools.zip_longest(*iterables, fillvalue=fillvalue)."""
    columns = [_items(it, each) for each in iterables]
    if any(column is None for column in columns):
        return call(it, V.Known(iteration.zipped_to_the_longest), (fillvalue, *iterables), {})
    rows = itertools.zip_longest(*(c or () for c in columns), fillvalue=fillvalue)
    return V.Tuple(tuple(map(V.Tuple, rows)))


_MEANINGS: dict[Any, Callable[..., Any]] = {
    itertools.count: iteration.counted, itertools.starmap: iteration.star_mapped,
    itertools.takewhile: iteration.taken_while, itertools.dropwhile: iteration.dropped_while,
    itertools.filterfalse: iteration.filtered_out, itertools.compress: iteration.compressed,
}
for _fn, _meaning in _MEANINGS.items():
    handles(_fn)(_in_python(_meaning))


@handles(itertools.cycle)
def cycle(it: Interpreter, iterable: V.Value) -> V.Value:
    """itertools.cycle(iterable)."""
    if is_iterator(iterable) and not is_generator(iterable):  # which is used up by one round
        iterable = call(it, V.Known(list), (iterable,), {})
    return call(it, V.Known(iteration.cycled), (iterable,), {})


@handles(iteration.count_of)
def count_of(it: Interpreter, items: V.Value) -> V.Value:
    """How many items there are."""
    if isinstance(items, V.Lazy):
        return iterate(it, items).count
    return call(it, V.Known(len), (items,), {})


@handles(iteration.item_of)
def item_of(it: Interpreter, items: V.Value, place: V.Value) -> V.Value:
    """The item at a place."""
    if isinstance(items, V.Lazy):
        return iterate(it, items).item(place)
    return get_item(it, items, place)


@handles(itertools.groupby)
def groupby(it: Interpreter, iterable: V.Value, key: V.Value = V.NONE) -> V.Value:
    """itertools.groupby(iterable, key)."""
    return call(it, V.Known(iteration.grouped), (iterable, key), {})


@handles(iteration.make_key)
def make_key(it: Interpreter, args: V.Value) -> V.Value:
    """Whether functools.cache keeps what a function gives for these arguments in a table."""
    assert isinstance(args, V.Tuple)
    ints = all(map(is_int, args.items))
    return V.Known(ints or (not is_known(args) and memoising.make_key(it, args.items)))


@handles(functools.cache)
def cache(it: Interpreter, user_function: V.Value) -> V.Value:
    """functools.cache(function), in a compiled function."""
    return call(it, V.Known(iteration.remembers), (user_function,), {})


@handles(functools.lru_cache)
def lru_cache(
    it: Interpreter, maxsize: V.Value = V.Known(128), typed: V.Value = V.Known(False)
) -> V.Value:
    """functools.lru_cache, with its arguments or as a decorator without them."""
    if isinstance(maxsize, V.Closure):
        return cache(it, maxsize)
    return call(it, V.Known(iteration.remembers_some), (maxsize, typed), {})
