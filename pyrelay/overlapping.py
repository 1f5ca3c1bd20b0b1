"""Calls whose arrays overlap where the function writes, as `f(x[:-1], x[1:])`.

In: the arguments. Out: one array that holds those that share memory, where each of them lies in it,
and a function of these that makes the views again and calls the function. To a program that sees
the array and its views, a write through one of them shows in the others as it does in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrelay.errors import AliasError
from pyrelay.infer.arrays.layouts import turns

Layout = tuple["Axes | None", ...]
"""For each argument: how it is a view of the array, or None if it is none."""


class Axes(NamedTuple):
    """How an argument is a view: what a program knows while compiling.

    steps: for each axis of the array the step of a slice, 0 where one place is taken, None where
    all of it is: what is reshaped is a view then as in NumPy, if its elements follow each other.
    flips: for each axis of the view -1 where it runs backwards, else 1. order: the axes of the view
    among those that are left.
    """

    steps: tuple[int | None, ...]
    flips: tuple[int, ...]
    order: tuple[int, ...]


class Overlap(NamedTuple):
    """A call on one array. places: of each view, its start and stop along each axis of the array.

    rest: the other arguments; None for the views.
    """

    layout: Layout
    owner: Any
    places: tuple[tuple[tuple[int, int], ...], ...]
    rest: tuple[Any, ...]


def called(
    args: Sequence[Any], error: AliasError, function: Callable[..., Any],
    known: dict[Layout, Callable[..., Any]], compiled: Callable[[Callable[..., Any]], Any],
) -> Any:
    """The result of the function; raises the error where one array does not hold what overlaps.

    known: functions of one array, compiled before; gets the new one, which `compiled` makes.
    """
    there = found(args)
    if there is None:
        raise error
    if there.layout not in known:
        known[there.layout] = compiled(on_one_array(function, there.layout))
    try:
        result = known[there.layout](there.owner, there.places, there.rest)
    except AliasError:
        raise error from None  # other arrays overlap: those of lists or objects
    return own(result, args)


def found(args: Sequence[Any]) -> Overlap | None:
    """The call on one array; None where no array is known that has all that overlap as views."""
    arrays = [a for a in args if type(a) is np.ndarray and a.size]
    shared = [
        a for a in arrays
        if any(b is not a and np.may_share_memory(a, b) for b in arrays)
    ]
    if not shared or any(a.dtype != shared[0].dtype or not a.flags.aligned for a in shared):
        return None
    for owner in _owners(shared):
        views = [_view_of(a, owner) if any(a is s for s in shared) else None for a in args]
        if sum(v is not None for v in views) == sum(any(a is s for s in shared) for a in args):
            return Overlap(
                tuple(None if v is None else v[0] for v in views), owner,
                tuple(() if v is None else v[1] for v in views),
                tuple(a if v is None else None for a, v in zip(args, views, strict=True)),
            )
    return None


def _owners(shared: Sequence[Any]) -> list[Any]:
    """Arrays whose elements lie one after the other, and which may hold all of these."""
    held = list(shared)
    for array in held:
        if type(array.base) is np.ndarray and not any(array.base is h for h in held):
            held.append(array.base)
    lying = [a.transpose(turns(a)) if turns(a) else a for a in held]
    whole = [a for a in lying if a.flags.c_contiguous and a.flags.writeable and a.ndim]
    for array in shared:
        if array.ndim > 1:
            row = max(abs(s) for s in array.strides) // array.itemsize
            whole += [a.reshape(-1, row) for a in whole if a.ndim == 1 and row and not a.size % row]
    return [*whole, *(a.reshape(-1) for a in whole if a.ndim > 1)]


def _view_of(array: Any, owner: Any) -> tuple[Axes, tuple[tuple[int, int], ...]] | None:
    """How, and where, an array is a view of one; None if it is none by slices."""
    if array.dtype != owner.dtype:
        return None
    item = array.itemsize
    strides = [s // item for s in array.strides]
    first = array.__array_interface__["data"][0] + sum(
        min(s, 0) * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)
    )
    offset, rest = divmod(first - owner.__array_interface__["data"][0], item)
    if rest or any(s % item for s in array.strides) or not 0 <= offset < owner.size:
        return None
    start = [int(k) for k in np.unravel_index(offset, owner.shape)]
    steps: list[int | None] = [0] * owner.ndim
    taken, stops = list[int](), [k + 1 for k in start]
    for stride, extent in zip(strides, array.shape, strict=True):
        for axis in range(owner.ndim):
            along = owner.strides[axis] // item
            step = abs(stride) // along if along else 0
            last = start[axis] + step * (extent - 1)
            if step and axis not in taken and step * along == abs(stride) and (
                last < owner.shape[axis]
            ):
                taken.append(axis)
                steps[axis], stops[axis] = step, last + 1
                if step == 1 and (start[axis], last + 1) == (0, owner.shape[axis]):
                    steps[axis] = None
                break
        else:
            return None
    order = tuple(sorted(taken).index(axis) for axis in taken)
    flips = tuple(-1 if s < 0 else 1 for s in strides)
    return Axes(tuple(steps), flips, order), tuple(zip(start, stops, strict=True))


def on_one_array(function: Callable[..., Any], layout: Layout) -> Callable[..., Any]:
    """The function of an array, the places of its views, and the other arguments."""

    def with_views(owner: Any, places: Any, rest: Any) -> Any:
        return function(*[
            other if axes is None else _taken(owner, place, axes)
            for axes, place, other in zip(layout, places, rest, strict=True)
        ])

    return with_views


def _taken(owner: Any, place: Any, axes: Any) -> Any:
    index = tuple([
        slice(None) if step is None else slice(start, stop, step) if step else start
        for (start, stop), step in zip(place, axes[0], strict=True)
    ])
    backwards = tuple([slice(None, None, flip) for flip in axes[1]])
    return np.transpose(owner[index], axes[2])[backwards]


def own(result: Any, args: Sequence[Any]) -> Any:
    """The result with the caller's arrays for views that are the same."""
    if type(result) is tuple:
        return tuple(own(r, args) for r in result)
    if type(result) is np.ndarray:
        for array in args:
            if type(array) is np.ndarray and (
                array.__array_interface__ == result.__array_interface__
            ):
                return array
    return result
