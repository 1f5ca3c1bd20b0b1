"""List operations composed of others, in plain Python that our own frontend compiles.

In and out: what Python's operation of that name takes and gives, for lists whose length is known
only at run time, and for other iterables. Derivatives follow from the bodies.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np

from pyrelay import python_sums
from pyrelay.infer.in_python.missing import missing
from pyrelay.infer.in_python.ranges import elements


def repeat_items(items: Any, times: Any) -> Any:
    """items * times."""
    result: Any = []
    for _ in range(times):
        result.extend(items)
    return result


def add_items(items: Any, more: Any) -> Any:
    """items.extend(more) for any iterable."""
    for item in more:
        items.append(item)


def listed(iterable: Any) -> Any:
    """list(iterable) for a number of items known only at run time."""
    return [item for item in iterable]  # noqa: C416


def copied_rows(rows: Any) -> Any:
    """copy.deepcopy(rows) for lists in a list."""
    return [copy.deepcopy(row) for row in rows]


def column(rows: Any, k: Any) -> Any:
    """Item k of every row."""
    return tuple([row[k] for row in rows])


def columns(rows: Any) -> Any:
    """tuple(zip(*rows)) of sequences of any lengths."""
    width = min([len(row) for row in rows], default=0)
    return tuple([column(rows, k) for k in range(width)])


def tuples(rows: Any) -> Any:
    """A tuple of each row."""
    return [tuple(row) for row in rows]


def nested_list(array: Any) -> Any:
    """array.tolist() of several axes."""
    return [row.tolist() for row in array]


def signed(array: Any) -> Any:
    """Integers without a sign as Python's, of which ours have 64 bits with one."""
    if np.any(array > np.uint64(2**63 - 1)):
        raise OverflowError("the int result does not fit in 64 bits")
    return array.astype(np.int64)


def contains(items: Any, wanted: Any) -> Any:
    """wanted in items."""
    for item in items:  # noqa: SIM110
        if item == wanted:
            return True
    return False


def index_of(items: Any, wanted: Any) -> Any:
    """items.index(wanted)."""
    for k in range(len(items)):
        if items[k] == wanted:
            return k
    raise ValueError(missing(wanted, "list"))


def index_between(items: Any, wanted: Any, start: Any, stop: Any = None) -> Any:
    """items.index(wanted, start, stop)."""
    count = len(items)
    end = count if stop is None else stop
    low, high = (max(k + count, 0) if k < 0 else min(k, count) for k in (start, end))
    for k in range(low, high):
        if items[k] == wanted:
            return k
    raise ValueError(missing(wanted, "list"))


def index_in_tuple(items: Any, wanted: Any, start: Any = 0, stop: Any = None) -> Any:
    """items.index(wanted, start, stop) of a tuple."""
    size = len(items)
    first = max(start + size, 0) if start < 0 else start
    last = size if stop is None else stop + size if stop < 0 else stop
    for k, item in enumerate(items):
        if k >= first and k < last and item == wanted:
            return k
    raise ValueError("tuple.index(x): x not in tuple")


def count_of(items: Any, wanted: Any) -> Any:
    """items.count(wanted)."""
    found = 0
    for item in items:
        if item == wanted:
            found += 1
    return found


def remove_item(items: Any, wanted: Any) -> None:
    """items.remove(wanted)."""
    for k in range(len(items)):
        if items[k] == wanted:
            items.pop(k)
            return
    raise ValueError("list.remove(x): x not in list")


def equal_lists(items: Any, others: Any) -> Any:
    """items == others."""
    if len(items) != len(others):
        return False
    for k in range(len(items)):  # noqa: SIM110
        if items[k] != others[k]:
            return False
    return True


def precedes(items: Any, others: Any) -> Any:
    """items < others: the first difference decides, then the lengths."""
    for k in range(min(len(items), len(others))):
        if items[k] != others[k]:
            return items[k] < others[k]
    return len(items) < len(others)


def compared_fields(node: Any) -> Any:
    """What a dataclass compares of an object; a handler says that of a node."""
    return tuple(getattr(node, f.name) for f in dataclasses.fields(node) if f.compare)


def equal_nodes(node: Any, other: Any) -> Any:
    """node == other, of a dataclass that contains itself, down to the leaves."""
    return node is other or compared_fields(node) == compared_fields(other)


def items_of_node(node: Any) -> Any:
    """The items of a tuple; a handler says those of one that is a node."""
    return tuple(node)


def equal_tuples(node: Any, other: Any) -> Any:
    """node == other, of tuples of one length that contain themselves, down to the leaves."""
    return node is other or items_of_node(node) == items_of_node(other)


def precedes_node(node: Any, other: Any) -> Any:
    """node < other, of such a class with order=True."""
    return compared_fields(node) < compared_fields(other)


def is_not_behind_node(node: Any, other: Any) -> Any:
    """node <= other."""
    return compared_fields(node) <= compared_fields(other)


def set_steps(items: Any, start: Any, count: Any, step: Any, given: Any) -> None:
    """Give the `count` items at start, start + step, ... other values."""
    if len(given) != count:
        raise ValueError(
            f"attempt to assign sequence of size {len(given)} to extended slice of size {count}"
        )
    for k in range(count):
        items[start + k * step] = given[k]


def without_steps(items: Any, start: Any, count: Any, step: Any) -> Any:
    """The items but the `count` ones at start, start + step, ..."""
    left = []
    for k in range(len(items)):
        steps = (k - start) // step
        if (k - start) % step != 0 or steps < 0 or steps >= count:
            left.append(items[k])
    return left


def set_slice(items: Any, start: Any, stop: Any, step: Any, given: Any) -> None:
    """items[start:stop:step] = given, for a step that only the running program knows."""
    if step == 1:
        items[start:stop] = given
        return
    first, count, forward, backward = elements(start, stop, step, len(items))
    set_steps(items, first, count, forward - backward, given)


def delete_slice(items: Any, start: Any, stop: Any, step: Any) -> None:
    """del items[start:stop:step], for a step that only the running program knows."""
    first, count, forward, backward = elements(start, stop, step, len(items))
    if count > 0:
        items[:] = without_steps(items, first, count, forward - backward)


def any_of(items: Any) -> Any:
    """any(items)."""
    for item in items:  # noqa: SIM110
        if item:
            return True
    return False


def all_of(items: Any) -> Any:
    """all(items)."""
    for item in items:  # noqa: SIM110
        if not item:
            return False
    return True


def _complaint(choose: Any) -> str:
    try:
        choose(())
    except ValueError as error:
        return str(error)
    raise AssertionError("something was chosen from nothing")


# What Python says of min(()) and max(()); the words differ between its releases. Two names: a dict
# would be compared with what it was at each call of a program that reads it.
NO_LEAST, NO_GREATEST = _complaint(min), _complaint(max)


def total_of(items: Any, start: Any) -> Any:
    """sum(items, start)."""
    total = start
    for item in items:
        total = total + item
    return total


def carried_total_of(items: Any, start: Any) -> Any:
    """sum(items, start) where what floats lose by rounding is carried along."""
    so_far = start, 0.0
    for item in items:
        so_far = python_sums.with_item(so_far, item)
    return python_sums.total_of(so_far)


def least_item(items: Any, key: Any, default: Any) -> Any:
    """min(items, key=key, default=default)."""
    if not items:
        if default is None:
            raise ValueError(NO_LEAST)
        return default
    best = items[0]
    if key is None:
        for item in items:
            if item < best:
                best = item
        return best
    found = key(best)
    for k in range(1, len(items)):
        here = key(items[k])
        if here < found:
            best, found = items[k], here
    return best


def greatest_item(items: Any, key: Any, default: Any) -> Any:
    """max(items, key=key, default=default)."""
    if not items:
        if default is None:
            raise ValueError(NO_GREATEST)
        return default
    best = items[0]
    if key is None:
        for item in items:
            if item > best:
                best = item
        return best
    found = key(best)
    for k in range(1, len(items)):
        here = key(items[k])
        if here > found:
            best, found = items[k], here
    return best


def least_element(x: Any, default: Any) -> Any:
    """min(x, default=default) of an array: a NaN only if it is the first element."""
    if len(x) == 0:
        if default is None:
            raise ValueError(NO_LEAST)
        return default
    if x.dtype.kind != "f":
        return np.min(x)
    return np.where(np.isnan(x[0]), x[0], np.min(np.where(np.isnan(x), np.inf, x)))[()]


def greatest_element(x: Any, default: Any) -> Any:
    """max(x, default=default) of an array: a NaN only if it is the first element."""
    if len(x) == 0:
        if default is None:
            raise ValueError(NO_GREATEST)
        return default
    if x.dtype.kind != "f":
        return np.max(x)
    return np.where(np.isnan(x[0]), x[0], np.max(np.where(np.isnan(x), -np.inf, x)))[()]


def sorted_items(items: Any, key: Any, reverse: Any) -> Any:
    """sorted(items, key=key, reverse=reverse)."""
    given = list(items)
    return ordered_by(given, given if key is None else [key(item) for item in given], reverse)


def ordered_by(given: Any, ranks: Any, reverse: Any) -> Any:
    """The items in the order of their ranks: numbers, or tuples of them."""
    return picked(given, _order(ranks, reverse))


def picked(items: Any, places: Any) -> Any:
    """The items at these places, an array; a handler reads those of a growing list at once."""
    return [items[k] for k in places]


def arrange(items: Any, places: Any) -> None:
    """Puts the items of a list in another order; a handler says that of a growing list."""
    items[:] = picked(items, places)


def sort_in_place(items: Any, key: Any, reverse: Any) -> None:
    """items.sort(key=key, reverse=reverse) of a growing list, whose items only move."""
    arrange(items, _order(items if key is None else [key(item) for item in items], reverse))


def _order(ranks: Any, reverse: Any) -> Any:
    """The places of the items in the order of their ranks."""
    if not are_numbers(ranks):
        return _merged_order(ranks, reverse)
    ranks = np.array(ranks)
    if ranks.dtype.kind == "c":
        raise TypeError("'<' not supported between instances of 'complex' and 'complex'")
    order = _stable_order(ranks[::-1] if reverse else ranks)
    if reverse:
        order = len(ranks) - 1 - order[::-1]
    if ranks.dtype.kind == "f":
        _refuse_nans(ranks, order)
    return order


def are_numbers(ranks: Any) -> bool:
    """Whether ranks are numbers, or tuples of them; a handler says that of a program."""
    return np.array(ranks).dtype.kind in "biuf"


def _merged_order(ranks: Any, reverse: Any) -> Any:
    """As `_order`, of ranks that are compared by `<`."""
    def stays(one: Any, other: Any) -> Any:
        return not (one < other) if reverse else not (other < one)

    return _merged(ranks, stays)


def _merged(items: Any, stays: Any) -> Any:
    """The places of items in their order, by merging ever longer runs: stable.

    stays(one, other): whether the one that comes first before may come first afterwards.
    """
    count = len(items)
    places = np.arange(count)
    width = 1
    while width < count:
        merged = np.zeros(count, dtype=np.int64)
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for k in range(low, high):
                first = left < middle
                if first and right < high:
                    first = stays(items[places[left]], items[places[right]])
                if first:
                    merged[k] = places[left]
                    left += 1
                else:
                    merged[k] = places[right]
                    right += 1
        places = merged
        width *= 2
    return places


def _refuse_nans(ranks: Any, order: Any) -> None:
    """What Python makes of ranks that are neither less nor greater depends on how it sorts."""
    first = ranks if ranks.ndim == 1 else ranks[:, 0]
    missing = np.isnan(first).any()
    if ranks.ndim > 1 and not missing and np.isnan(ranks).any():
        missing = (first[order[1:]] == first[order[:-1]]).any()  # others count where these tie
    if missing:
        raise NotImplementedError("a list with NaN among what it is sorted by has no order")


def compared(compare: Any, item: Any) -> Any:
    """The rank that functools.cmp_to_key(compare) gives an item; only sorted() knows to use it."""
    raise TypeError("an item by a function that compares has a rank only in sorted()")


def sorted_by(items: Any, compare: Any, reverse: Any) -> Any:
    """sorted(items, key=functools.cmp_to_key(compare), reverse=reverse)."""
    given = list(items)[::-1] if reverse else list(items)

    def stays(one: Any, other: Any) -> Any:
        return compare(one, other) <= 0

    ordered = [given[k] for k in _merged(given, stays)]
    return ordered[::-1] if reverse else ordered


def _stable_order(ranks: Any) -> Any:
    """The places of the items by rank; of tuples, by the first number that differs."""
    if ranks.ndim == 1:
        return np.argsort(ranks, kind="stable")
    order = np.argsort(ranks[:, -1], kind="stable")
    for k in range(2, ranks.shape[1] + 1):
        order = order[np.argsort(ranks[order, -k], kind="stable")]
    return order


def sort_items(items: Any, key: Any, reverse: Any) -> None:
    """items.sort(key=key, reverse=reverse)."""
    ordered = sorted(items, key=key, reverse=reverse)
    for k in range(len(ordered)):
        items[k] = ordered[k]


# -- in a random order -----------------------------------------------------------------------------


def items_at(items: Any, places: Any) -> Any:
    """The items at these places."""
    return [items[k] for k in places]


def put_in_order(items: Any, order: Any) -> None:
    """Each place gets the item that was at the place that the order says."""
    items[:] = [items[k] for k in order]


def joined_rows(rows: Any, sizes: Any) -> Any:
    """np.concatenate of the first sizes[i] items of each rows[i]."""
    return rows[np.arange(rows.shape[1]) < sizes[:, None]]


def joined_flat(rows: Any, extents: Any) -> Any:
    """np.concatenate, axis=None, of arrays of these extents that lie in the corners of rows[i]."""
    kept = np.ones(rows.shape, bool)
    for axis, sizes in enumerate(extents, 1):
        shape = [1] * rows.ndim
        shape[0], shape[axis] = rows.shape[0], rows.shape[axis]
        kept &= (np.arange(rows.shape[axis]) < sizes[:, None]).reshape(shape)
    return rows[kept]


def check_bounds(numbers: Any, least: int, most: int, name: str) -> None:
    """Raises what NumPy raises for Python's numbers of which the ints are out of bounds."""
    outside = ~((numbers > least - 1) & (numbers < most + 1)) if numbers.dtype.kind == "f" else (
        (numbers < least) | (numbers > most)
    )
    if np.any(outside):
        wrong = int(np.ravel(numbers)[np.argmax(outside)])
        raise OverflowError(f"Python integer {wrong} out of bounds for {name}")


def even_size(sizes: Any) -> Any:
    """What all of these are; what np.array raises for items that differ in length."""
    for size in sizes:
        if size != sizes[0]:
            raise ValueError(
                "setting an array element with a sequence. The requested array has an "
                f"inhomogeneous shape after 1 dimensions. The detected shape was ({len(sizes)},) "
                "+ inhomogeneous part."
            )
    return sizes[0] if len(sizes) > 0 else 0


def same_shape(sizes: Any) -> Any:
    """What all of these are; what np.stack raises for arrays that differ in shape."""
    for size in sizes:
        if size != sizes[0]:
            raise ValueError("all input arrays must have the same shape")
    return sizes[0] if len(sizes) > 0 else 0


def same_size(sizes: Any, axis: Any) -> Any:
    """What all of these are; what np.concatenate raises where another axis differs."""
    for k in range(1, len(sizes)):
        if sizes[k] != sizes[0]:
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match "
                f"exactly, but along dimension {axis}, the array at index 0 has size {sizes[0]} "
                f"and the array at index {k} has size {sizes[k]}"
            )
    return sizes[0] if len(sizes) > 0 else 0
