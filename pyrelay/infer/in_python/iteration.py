"""Builtins and itertools that give their items one by one, as generators in plain Python.

In and out: what the function of the same meaning takes and gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

# -- of an object ---------------------------------------------------------------------------------


def stepped(iterator: Any) -> Iterator[Any]:
    """The items that the `__next__` of an object gives."""
    while True:
        try:
            item = iterator.__next__()
        except StopIteration:
            return
        yield item


def called_until(function: Callable[[], Any], sentinel: Any) -> Iterator[Any]:
    """iter(function, sentinel)."""
    while True:
        item = function()
        if item == sentinel:
            return
        yield item


def indexed(sequence: Any) -> Iterator[Any]:
    """The items that the `__getitem__` of an object gives for 0, 1, 2, ... until IndexError."""
    number = 0
    while True:
        try:
            item = sequence[number]
        except IndexError:
            return
        yield item
        number += 1


def next_or(iterator: Any, default: Any) -> Any:
    """next(iterator, default), of an object with a `__next__` of its own."""
    try:
        return iterator.__next__()
    except StopIteration:
        return default


def as_indexed(items: Any) -> Any:
    """What a loop goes through by its places: a list that it lengthens is seen as it grows."""
    if isinstance(items, (list, tuple, str, range, np.ndarray)):
        return items
    return list(items)


# -- of one generator ------------------------------------------------------------------------------


def numbered(items: Iterable[Any], start: Any) -> Iterator[Any]:
    """enumerate(items, start)."""
    number = start
    for item in items:
        yield number, item
        number += 1


def mapped(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
    """map(function, items)."""
    for item in items:
        yield function(item)


def star_mapped(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
    """itertools.starmap(function, items)."""
    for item in items:
        yield function(*item)


def groups(items: Iterator[Any], count: int) -> Iterator[Any]:
    """zip(items, items, ...), `count` times the same iterator: its items, so many at a time."""
    for first in items:
        yield from _grouped(items, (first,), count - 1)


def _grouped(items: Iterator[Any], before: tuple[Any, ...], count: int) -> Iterator[Any]:
    """The items of a group behind those before, of which `count` are left; none at the end."""
    if count == 0:
        yield before
    else:
        for item in items:
            yield from _grouped(items, (*before, item), count - 1)
            break


def zipped(before: tuple[Any, ...], items: Iterable[Any], after: tuple[Any, ...]) -> Iterator[Any]:
    """zip(*before, items, *after), where all but `items` have a length."""
    for each in before:
        if count_of(each) == 0:
            return
    for number, item in enumerate(items):
        for each in after:
            if number >= count_of(each):
                return
        yield (
            *[item_of(each, number) for each in before], item,
            *[item_of(each, number) for each in after],
        )
        for each in before:
            if number + 1 >= count_of(each):
                return


def count_of(items: Any) -> Any:
    """How many items there are; a handler knows that of `map` and its kin, too."""
    return len(items)


def item_of(items: Any, place: Any) -> Any:
    """The item at a place; a handler knows that of `map` and its kin, too."""
    return items[place]


def in_turn(iterators: tuple[Any, ...]) -> Iterator[Any]:
    """zip(*iterators), each asked for its next item."""
    while True:
        try:
            items = _next_of(iterators)
        except StopIteration:
            return
        yield items


def _next_of(iterators: tuple[Any, ...]) -> tuple[Any, ...]:
    """The next item of each."""
    if len(iterators) == 0:
        return ()
    item = next(iterators[0])
    return (item, *_next_of(iterators[1:]))


# -- arrangements of a known length ----------------------------------------------------------------


def combinations(items: Iterable[Any], r: int) -> Iterator[Any]:
    """itertools.combinations(items, r)."""
    yield from _combined(list(items), r, 0, 1)


def combinations_with_replacement(items: Iterable[Any], r: int) -> Iterator[Any]:
    """itertools.combinations_with_replacement(items, r)."""
    yield from _combined(list(items), r, 0, 0)


def _combined(pool: list[Any], r: int, start: int, step: int) -> Iterator[Any]:
    if r == 0:
        yield ()
    else:
        for i in range(start, len(pool)):
            for rest in _combined(pool, r - 1, i + step, step):
                yield (pool[i], *rest)


def permutations(items: Iterable[Any], r: int) -> Iterator[Any]:
    """itertools.permutations(items, r)."""
    yield from _permuted(list(items), r, ())


def _permuted(pool: list[Any], r: int, taken: tuple[int, ...]) -> Iterator[Any]:
    if r == 0:
        yield ()
    else:
        for i in range(len(pool)):
            if i not in taken:
                for rest in _permuted(pool, r - 1, (*taken, i)):
                    yield (pool[i], *rest)


# -- arrangements of a length that only the running program knows ----------------------------------


def combinations_of(items: Iterable[Any], r: int) -> Iterator[Any]:
    """itertools.combinations(items, r), in the order of the places that they are from.

    Source: Knuth, The Art of Computer Programming 4A, 7.2.1.3, algorithm L, from the other end.
    """
    pool = list(items)
    n = len(pool)
    places = list(range(_length(r)))
    more = r <= n
    while more:
        yield tuple([pool[i] for i in places])
        k = r - 1
        while k >= 0 and places[k] == k + n - r:
            k -= 1
        more = k >= 0
        if more:
            places[k] += 1
            for j in range(k + 1, r):
                places[j] = places[j - 1] + 1


def combinations_of_repeated(items: Iterable[Any], r: int) -> Iterator[Any]:
    """itertools.combinations_with_replacement(items, r), as an odometer that never falls."""
    pool = list(items)
    n = len(pool)
    places = [0] * _length(r)
    more = n > 0 or r == 0
    while more:
        yield tuple([pool[i] for i in places])
        k = r - 1
        while k >= 0 and places[k] == n - 1:
            k -= 1
        more = k >= 0
        if more:
            place = places[k] + 1
            for j in range(k, r):
                places[j] = place


def permutations_of(items: Iterable[Any], r: int | None = None) -> Iterator[Any]:
    """itertools.permutations(items, r), in the order of the places that they are from.

    Behind the arrangement at hand comes the one with the next larger place at the last possible
    position, and the smallest places left behind it.
    """
    pool = list(items)
    n = len(pool)
    length = n if r is None else _length(r)
    places = list(range(length))
    taken = [k < length for k in range(n)]
    more = length <= n
    while more:
        yield tuple([pool[i] for i in places])
        more, k = False, length
        while k > 0 and not more:
            k -= 1
            place = places[k]
            taken[place] = False
            while place + 1 < n and not more:
                place += 1
                if not taken[place]:
                    more = True
            places[k] = place
        if more:
            taken[places[k]] = True
            place = 0
            for j in range(k + 1, length):
                while taken[place]:
                    place += 1
                places[j] = place
                taken[place] = True


def _length(r: int) -> int:
    if r < 0:
        raise ValueError("r must be non-negative")
    return r


def pairs(items: Iterable[Any]) -> Iterator[Any]:
    """itertools.pairwise(items)."""
    pool = list(items)
    for i in range(len(pool) - 1):
        yield pool[i], pool[i + 1]


def batches(items: Iterable[Any], n: int, strict: bool) -> Iterator[Any]:
    """itertools.batched(items, n, strict=strict)."""
    pool = list(items)
    for start in range(0, len(pool), n):
        if strict and start + n > len(pool):
            raise ValueError("batched(): incomplete batch")
        yield tuple(pool[start : start + n])


def zipped_to_the_longest(fill: Any, *iterables: Iterable[Any]) -> Iterator[Any]:
    """itertools.zip_longest(*iterables, fillvalue=fill)."""
    pools = [list(each) for each in iterables]
    for i in range(max([len(pool) for pool in pools])):
        yield *[pool[i] if i < len(pool) else fill for pool in pools],


# -- of arrays -------------------------------------------------------------------------------------


def elements_by_index(a: Any) -> Iterator[Any]:
    """np.ndenumerate(a)."""
    for index in np.ndindex(a.shape):
        yield index, a[index]


def elements(a: Any) -> Iterator[Any]:
    """np.nditer(a)."""
    for index in np.ndindex(a.shape):
        yield a[index]


# -- builtins --------------------------------------------------------------------------------------


def filtered(function: Callable[..., Any] | None, items: Iterable[Any]) -> Iterator[Any]:
    """filter(function, items)."""
    for item in items:
        if item if function is None else function(item):
            yield item


def product(items: Iterable[Any], start: Any) -> Any:
    """math.prod(items, start=start)."""
    result = start
    for item in items:
        result = result * item
    return result


def reduced(function: Callable[..., Any], items: Iterable[Any], initial: tuple[Any, ...]) -> Any:
    """functools.reduce(function, items, *initial)."""
    held = None if len(initial) == 0 else (initial[0],)  # a tuple, since a value may be None
    for item in items:
        held = (item,) if held is None else (function(held[0], item),)
    if held is None:
        raise TypeError("reduce() of empty iterable with no initial value")
    return held[0]


def first(items: Iterable[Any], default: tuple[Any, ...]) -> Any:
    """next(items, *default) of a generator that has not begun."""
    for item in items:
        return item
    if len(default) > 0:
        return default[0]
    returned = returned_by(items)
    if returned is None:
        raise StopIteration
    raise StopIteration(returned)


def returned_by(items: Iterable[Any]) -> Any:
    """What a generator returned that has ended just now; a handler knows it."""
    raise NotImplementedError(items)


class Items:
    """The iterator over a sequence: `iter(sequence)`; or over the items of a generator, with what
    that returned, which the first StopIteration says."""

    def __init__(self, sequence: Any, returned: Any = None) -> None:
        self.sequence = sequence
        self.position = 0
        self.returned = returned

    def __iter__(self) -> Iterator[Any]:
        while self.position < len(self.sequence):
            item = self.sequence[self.position]
            self.position += 1
            yield item
        if self.returned is not None:
            self.returned = None


def following(items: Items, default: tuple[Any, ...]) -> Any:
    """next(items, *default)."""
    if items.position < len(items.sequence):
        item = items.sequence[items.position]
        items.position += 1
        return item
    returned = items.returned
    if returned is not None:
        items.returned = None
    if len(default) > 0:
        return default[0]
    if returned is None:
        raise StopIteration
    raise StopIteration(returned)


ENDLESS = 2**62
"""As many items as nobody asks for."""


def append_items(items: Any, into: list[Any]) -> None:
    """Append what a generator yields; a generator that calls itself is one call in another."""
    for item in items:
        into.append(item)


def items_of_list(items: list[Any]) -> Iterator[Any]:
    """The items of a list, one after the other."""
    yield from items


# -- itertools -------------------------------------------------------------------------------------


def counted(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    """itertools.count(start, step)."""
    number = start
    while True:
        yield number
        number += step


class Counting:
    """The items of itertools.count(start, step) by number."""

    def __init__(self, start: Any = 0, step: Any = 1) -> None:
        self.start, self.step = start, step

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, number: int) -> Any:
        return self.start + self.step * number


class Repeating:
    """The items of itertools.repeat(item) by number."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, number: int) -> Any:
        return self.item


class Cycling:
    """The items of itertools.cycle(items) by number."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return ENDLESS if len(self.items) > 0 else 0

    def __getitem__(self, number: int) -> Any:
        return self.items[number % len(self.items)]


def constant(item: Any, _: Any) -> Any:
    """The item, whatever the number."""
    return item


def repeated(item: Any) -> Iterator[Any]:
    """itertools.repeat(item)."""
    while True:
        yield item


def cycled(items: Any) -> Iterator[Any]:
    """itertools.cycle(items) of items that can be gone through again."""
    while len(items) > 0:
        yield from items


def chained(iterables: Iterable[Any]) -> Iterator[Any]:
    """itertools.chain.from_iterable(iterables)."""
    for items in iterables:
        yield from items


class _Nothing:
    """Stands for no value so far."""


def accumulated(items: Iterable[Any], function: Any, initial: Any) -> Iterator[Any]:
    """itertools.accumulate(items, function, initial=initial)."""
    result: Any = _Nothing
    if initial is not None:
        result = initial
        yield initial
    for item in items:
        if result is _Nothing:
            result = item
        else:
            result = result + item if function is None else function(result, item)
        yield result


def taken_while(predicate: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """itertools.takewhile(predicate, items)."""
    for item in items:
        if not predicate(item):
            return
        yield item


def dropped_while(predicate: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """itertools.dropwhile(predicate, items)."""
    dropping = True
    for item in items:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def filtered_out(predicate: Callable[[Any], Any] | None, items: Iterable[Any]) -> Iterator[Any]:
    """itertools.filterfalse(predicate, items)."""
    for item in items:
        if not (item if predicate is None else predicate(item)):
            yield item


def compressed(items: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    """itertools.compress(items, selectors)."""
    for item, selected in zip(items, selectors, strict=False):
        if selected:
            yield item


def sliced(items: Iterable[Any], start: int, stop: int | None, step: int) -> Iterator[Any]:
    """itertools.islice(items, start, stop, step)."""
    wanted = start
    if stop is not None and stop <= start:
        return
    for number, item in enumerate(items):
        if number == wanted:
            yield item
            wanted += step
        if stop is not None and number + 1 >= stop:
            return


def grouped(items: Iterable[Any], key: Callable[[Any], Any] | None) -> Iterator[Any]:
    """itertools.groupby(items, key): a group has no items left once the next one is asked for."""
    current: Any = None
    group: list[Any] = []
    for item in items:
        rank = item if key is None else key(item)
        if len(group) > 0 and rank != current:
            shown = Items(group.copy())
            yield current, shown
            shown.position = len(shown.sequence)
            group.clear()
        current = rank
        group.append(item)
    if len(group) > 0:
        last = Items(group)
        yield current, last
        last.position = len(group)


def recalled(found: Any, key: Any, function: Callable[..., Any], args: Any) -> Any:
    """function(*args), which is at a key of `found` or is put there."""
    if key in found:
        return found[key]
    value = function(*args)
    found[key] = value
    return value


def make_key(args: Any) -> bool:
    """Whether a table holds what a function gives for such arguments; a handler says that."""
    return all(isinstance(arg, (int, np.integer, np.bool_, str)) for arg in args)


def remembers(function: Callable[..., Any]) -> Callable[..., Any]:
    """functools.cache(function): a table where the arguments make a key, else computed anew."""
    found: dict[Any, Any] = {}

    def answer(*args: Any) -> Any:
        if not make_key(args):
            return function(*args)
        return recalled(found, args[0] if len(args) == 1 else args, function, args)

    return answer


def remembers_some(maxsize: Any, typed: Any) -> Callable[..., Any]:
    """functools.lru_cache(maxsize, typed): all are kept, which only takes less time."""
    return remembers
