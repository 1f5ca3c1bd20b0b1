"""NumPy functions that make arrays and arrange their elements, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

Array = Any

__all__ = [
    "append", "array_split", "asfortranarray", "atleast_2d", "atleast_3d",
    "broadcast_arrays", "broadcast_shapes", "column_stack", "diag_indices_from",
    "diagflat", "diagonal", "dsplit", "dstack", "fill_diagonal", "fliplr", "flipud", "geomspace",
    "hsplit", "isfortran", "logspace", "matrix_transpose", "meshgrid", "ravel_multi_index",
    "require", "roll", "rollaxis", "rot90", "trace", "tri", "tril_indices_from",
    "triu_indices_from", "unravel_index", "unstack", "vander", "vsplit",
]


def first_items(x: Array, count: int) -> Array:
    """So many elements of a vector; all if the number is negative."""
    if count > x.shape[0]:
        raise ValueError(
            f"iterator too short: Expected {count} but iterator had only {x.shape[0]} items."
        )
    return x if count < 0 else x[:count]


def seen_at(x: Array, indices: tuple[Array, ...], axes: tuple[int, ...]) -> Array:
    """The elements at index arrays along axes. A handler makes that a view."""
    key: list[Any] = [slice(None)] * x.ndim
    for index, axis in zip(indices, axes, strict=True):
        key[axis] = index
    return x[tuple(key)]


def longer_than_one(extent: int, axis: int) -> None:
    """What np.squeeze asks of an axis that is kept, if only the running program knows its extent.

    Raises ValueError: whether the result has the axis is to be known before.
    """
    if extent == 1:
        raise ValueError(
            f"axis {axis} turns out to have extent 1: name the axes that np.squeeze drops, "
            "as in x.squeeze(axis=0)"
        )


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Array:
    """The windows of an array, on axes of their own at the end: a view."""
    widths = window_shape if isinstance(window_shape, tuple) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for width in widths:
        if width < 0:
            raise ValueError("`window_shape` cannot contain negative values")
    if len(widths) != len(axes):
        raise ValueError(
            f"Must provide matching length window_shape and axis; got {len(widths)} "
            f"window_shape elements and {len(axes)} axes elements."
        )
    for width, along in zip(widths, axes):  # noqa: B905 -- their number is the same
        places = x.shape[along] - width + 1
        if places < 1:
            raise ValueError("window shape cannot be larger than input array shape")
        at = along % x.ndim
        taken = seen_at(x, (np.arange(places)[:, None] + np.arange(width),), (at,))
        x = np.moveaxis(taken, at + 1, -1)
    return x


def as_strided(x: Any, shape: Any, strides: Any, start: int = 0) -> Array:
    """Elements of an array whose elements lie one after the other, at distances in bytes from the
    one at `start`: a view.

    Raises ValueError for what NumPy would take from outside of the array.
    """
    if len(shape) != len(strides):
        raise ValueError("strides is incompatible with shape of requested array and itemsize")
    flat, places, first, last = x.reshape(-1), np.zeros((1,), np.int64) + start, start, start
    for extent, stride in zip(shape, strides):  # noqa: B905 -- their number is the same
        if stride % x.itemsize != 0:
            raise ValueError(
                f"a stride of {stride} bytes leads between the elements of an array whose elements "
                f"have {x.itemsize}"
            )
        through = (extent - 1) * (stride // x.itemsize)
        first, last = first + min(through, 0), last + max(through, 0)
        places = places[..., None] + np.arange(extent) * (stride // x.itemsize)
    if first < 0:
        raise ValueError(f"strides and shape lead to {-first} elements before those of an array")
    if last >= flat.size:
        raise ValueError(
            f"strides and shape lead to element {last} of an array of {flat.size}, beyond its end"
        )
    return seen_at(flat, (places,), (0,))[0]


_NO_MORE = "flags say in a program how an array lies in memory, and nothing else"


class Flags:
    """`array.flags`: whether its last axis is fastest in memory, or its first one, without gaps."""

    def __init__(self, c_contiguous: bool, f_contiguous: bool) -> None:
        self.c_contiguous = self.contiguous = c_contiguous
        self.f_contiguous = self.fortran = f_contiguous
        self.fnc, self.forc = f_contiguous and not c_contiguous, f_contiguous or c_contiguous
        self.aligned = True

    @property
    def writeable(self) -> bool:
        refuse(_NO_MORE)

    @property
    def owndata(self) -> bool:
        refuse(_NO_MORE)

    def __getitem__(self, key: str) -> bool:
        if key in ("C_CONTIGUOUS", "C", "CONTIGUOUS"):
            return self.c_contiguous
        if key in ("F_CONTIGUOUS", "F", "FORTRAN"):
            return self.f_contiguous
        if key not in ("FNC", "FORC"):
            refuse(_NO_MORE)
        return self.fnc if key == "FNC" else self.forc


def isfortran(a: Array) -> bool:
    """Whether the first axis of an array is fastest in memory, and the last one is not."""
    return bool(a.flags.fnc)


# -- creation --------------------------------------------------------------------------------------


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Array:
    """Numbers evenly spaced on a logarithmic scale."""
    powers = np.power(base, np.linspace(start, stop, num, endpoint=endpoint, axis=axis))
    return powers if dtype is None else powers.astype(dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Array:
    """Numbers from `start` to `stop` of the same sign, each the same multiple of the one before."""
    first, last = np.asarray(start) * 1.0, np.asarray(stop) * 1.0
    if np.any(first == 0) or np.any(last == 0):
        raise ValueError("Geometric sequence cannot include zero")
    exponents = np.linspace(0.0, np.log10(last / first), num, endpoint=endpoint, axis=axis)
    values = np.power(10.0, np.moveaxis(exponents, axis, 0)) * first
    if num > 0:  # the ends are as given, whatever their logarithms say
        places = np.arange(num).reshape((-1,) + (1,) * (values.ndim - 1))
        values = np.where(places == 0, first, values)
        if endpoint and num > 1:
            values = np.where(places == num - 1, last, values)
    values = np.moveaxis(values, 0, axis)
    return values if dtype is None else values.astype(dtype)


def tri(N: int, M: Any = None, k: int = 0, dtype: Any = float) -> Array:  # noqa: N803
    """Ones on and below a diagonal."""
    return np.tril(np.ones((N, N if M is None else M), dtype=dtype), k)


def vander(x: Array, N: Any = None, increasing: bool = False) -> Array:  # noqa: N803
    """Powers of a vector's elements, in descending order unless `increasing`."""
    base = np.asarray(x)
    if base.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = base.shape[0] if N is None else N
    powers = base[:, None] ** np.arange(count)
    return powers if increasing else powers[:, ::-1]


def diagflat(v: Array, k: int = 0) -> Array:
    """A matrix with the flattened elements on a diagonal."""
    return np.diag(np.ravel(v), k)


def meshgrid(
    *xi: Array, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    """Coordinates of a grid: a tuple of arrays."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[0], places[1] = 1, 0
    shape = [1] * rank
    for k, x in enumerate(xi):
        shape[places[k]] = np.size(x)
    grids = []
    for k, x in enumerate(xi):
        own = [1] * rank
        own[places[k]] = np.size(x)
        grid = np.reshape(x, tuple(own))
        full = grid if sparse else np.broadcast_to(grid, tuple(shape))
        grids.append(np.array(full) if copy else full)
    return tuple(grids)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:
    """Evenly spaced numbers between arrays, along a new axis; with `retstep` their distance too."""
    kind = np.result_type(start, stop, 1.0)
    first, last = np.asarray(start).astype(kind), np.asarray(stop).astype(kind)
    first, last = first + last * 0.0, last + first * 0.0
    gaps = num - 1 if endpoint else num
    step = (last - first) / gaps if gaps > 0 else first * math.nan
    places = np.arange(num).reshape((-1,) + (1,) * first.ndim)
    index = places.astype(first.dtype)
    values = first + index * step if gaps > 0 else first + 0.0 * index
    if endpoint and num > 1:
        values = np.where(places == num - 1, last, values)
    if dtype is not None:
        whole = np.dtype(dtype).kind in "iu"
        values = (np.floor(values) if whole else values).astype(dtype)
    values = np.moveaxis(values, 0, axis)
    return (values, step) if retstep else values


# -- diagonals and triangles -----------------------------------------------------------------------


def diag(v: Array, k: int = 0) -> Array:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    x = np.asarray(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = x.shape[0] + abs(k)
    places = np.arange(x.shape[0])
    found = np.zeros((size, size), dtype=x.dtype)
    found[places + max(-k, 0), places + max(k, 0)] = x
    return found


def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements a[..., i, i + offset] of two axes, along a last axis: a view."""
    x = np.moveaxis(a, (axis1, axis2), (-2, -1))
    down, right = max(-offset, 0), max(offset, 0)
    size = max(min(x.shape[-2] - down, x.shape[-1] - right), 0)
    places = np.arange(size)
    return seen_at(x, (places + down, places + right), (x.ndim - 2, x.ndim - 1))


def trace(
    a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Array:
    """The sum along a diagonal."""
    return np.sum(diagonal(np.asarray(a), offset, axis1, axis2), axis=-1, dtype=dtype)


def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    """Write the main diagonal of a matrix; several elements in `val` are taken in turn."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if wrap and a.ndim == 2:
        count = (a.size + a.shape[1]) // (a.shape[1] + 1)
        a.flat[:: a.shape[1] + 1] = val if np.ndim(val) == 0 else np.resize(val, (count,))
        return
    size = a.shape[0]
    for extent in a.shape[1:]:
        if a.ndim > 2 and extent != size:
            raise ValueError("All dimensions of input must be of equal length")
        size = min(size, extent)
    places = np.arange(size)
    along = val if np.ndim(val) == 0 else np.resize(val, (size,))
    a[tuple([places for _ in range(a.ndim)])] = along


def diag_indices_from(arr: Array) -> Any:
    """Indices of the main diagonal."""
    places = np.arange(arr.shape[0])
    return tuple([places for _ in range(arr.ndim)])


def tril_indices_from(arr: Array, k: int = 0) -> Any:
    """Indices of the lower triangle."""
    return np.nonzero(tri(arr.shape[-2], arr.shape[-1], k, dtype=bool))


def triu_indices_from(arr: Array, k: int = 0) -> Any:
    """Indices of the upper triangle."""
    return np.nonzero(~tri(arr.shape[-2], arr.shape[-1], k - 1, dtype=bool))


# -- axes ------------------------------------------------------------------------------------------


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Array:
    """The array, in the order asked for: "C" or "F"; what programs hold is aligned and written to.
    """
    order = ""
    for wanted in requirements or ():
        letter = wanted.upper()
        if letter in ("F", "F_CONTIGUOUS", "FORTRAN", "C", "C_CONTIGUOUS", "CONTIGUOUS"):
            if order and order != letter[0]:
                raise ValueError('Cannot specify both "C" and "F" order')
            order = letter[0]
        elif letter in ("O", "OWNDATA", "E", "ENSUREARRAY"):
            refuse("whether an array owns its memory is not known in a program")
    x = np.asarray(a, dtype)
    if not order or x.ndim == 0:
        return x
    return np.ascontiguousarray(x) if order == "C" else np.asfortranarray(x)


def fliplr(m: Array) -> Array:
    """The second axis reversed."""
    if np.ndim(m) < 2:
        raise ValueError("Input must be >= 2-d.")
    return m[:, ::-1]


def flipud(m: Array) -> Array:
    """The first axis reversed."""
    if np.ndim(m) < 1:
        raise ValueError("Input must be >= 1-d.")
    return m[::-1]


def rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    """A quarter turn in the plane of two axes, k times."""
    turns = k % 4
    if turns == 0:
        return m[:]
    if turns == 2:
        return np.flip(np.flip(m, axes[0]), axes[1])
    turned = np.swapaxes(m, axes[0], axes[1])
    return np.flip(turned, axes[0] if turns == 1 else axes[1])


def normalised_axis(axis: Any, ndim: int) -> Any:
    """The number of an axis counted from the first, or what NumPy raises if it is none."""
    if isinstance(axis, tuple):
        raise TypeError("'tuple' object cannot be interpreted as an integer")
    if not -ndim <= axis < ndim:
        text = f"axis {axis} is out of bounds for array of dimension {ndim}"
        raise np.exceptions.AxisError(text)
    return axis % ndim


def rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    """An axis moved before another."""
    source = normalised_axis(axis, a.ndim)
    target = start + a.ndim if start < 0 else start
    return np.moveaxis(a, source, target - 1 if source < target else target)


def matrix_transpose(x: Array) -> Array:
    """The last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def roll(a: Array, shift: Any, axis: Any = None) -> Array:
    """Elements moved along axes; those beyond the end enter at the start."""
    x = np.asarray(a)
    if axis is None:
        return _rolled(np.ravel(x), _shifts(shift, 1)[0], 0).reshape(x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for by, k in list(zip(_shifts(shift, len(axes)), axes, strict=True)):
        x = _rolled(x, by, k)
    return x


def _shifts(shift: Any, axes: int) -> tuple[Any, ...]:
    """By how much each of so many axes is rolled: all that one is rolled by is added up."""
    listed = isinstance(shift, (tuple, list))
    if not listed and np.ndim(shift) == 0:
        return (shift,) * axes
    if axes == 1:
        return (sum(shift) if listed else np.sum(shift),)
    np.broadcast_shapes((len(shift),), (axes,))
    if listed:
        return tuple(shift) * axes if len(shift) == 1 else tuple(shift)
    along = np.broadcast_to(shift, (axes,))
    return tuple([along[k] for k in range(axes)])


def _rolled(x: Array, shift: Any, axis: int) -> Array:
    place = normalised_axis(axis, x.ndim)
    n = x.shape[place]
    if isinstance(shift, int):
        cut, ahead = -shift % max(n, 1), (slice(None),) * place
        ends = [x[(*ahead, slice(cut, None))], x[(*ahead, slice(cut))]]
        return np.concatenate(ends, axis=place)
    return np.take(x, (np.arange(n) - shift) % max(n, 1), axis=place)


def atleast_2d(*arys: Array) -> Array:
    """Arrays of at least two axes."""
    found = [_two_axes(np.asarray(a)) for a in arys]
    return found[0] if len(found) == 1 else tuple(found)


def _two_axes(x: Array) -> Array:
    if x.ndim == 0:
        return x.reshape(1, 1)
    return x[None, :] if x.ndim == 1 else x


def atleast_3d(*arys: Array) -> Array:
    """Arrays of at least three axes."""
    found = [_three_axes(np.asarray(a)) for a in arys]
    return found[0] if len(found) == 1 else tuple(found)


def _three_axes(x: Array) -> Array:
    if x.ndim == 0:
        return x.reshape(1, 1, 1)
    if x.ndim == 1:
        return x[None, :, None]
    return x[:, :, None] if x.ndim == 2 else x


def asfortranarray(a: Array, dtype: Any = None) -> Array:
    """The array if its first axis is fastest in memory, else a copy where it is."""
    return np.ascontiguousarray(np.atleast_1d(np.asarray(a, dtype)).T).T


# -- joining and splitting -------------------------------------------------------------------------


def broadcast_shapes(*args: Any) -> Any:
    """The shape that shapes broadcast to."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in args]
    rank = max([len(s) for s in shapes])
    found = []
    for k in range(rank):
        extent, source = 1, 0
        for number, s in enumerate(shapes):
            place = k - rank + len(s)
            if place >= 0 and s[place] != 1:
                if extent not in (1, s[place]):
                    raise ValueError(
                        "shape mismatch: objects cannot be broadcast to a single shape.  Mismatch "
                        f"is between arg {source} with shape {shapes[source]} and arg {number} "
                        f"with shape {s}."
                    )
                extent, source = s[place], number
        found.append(extent)
    return tuple(found)


def broadcast_arrays(*args: Array, subok: bool = False) -> Any:
    """Arrays of one shape."""
    arrays = [np.asarray(a) for a in args]
    shape = broadcast_shapes(*[a.shape for a in arrays])
    return tuple([a if a.shape == shape else np.broadcast_to(a, shape) for a in arrays])


def column_stack(tup: Any) -> Array:
    """Vectors as columns, beside matrices."""
    arrays = [np.asarray(a) for a in tup]
    return np.concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in arrays], axis=1)


def dstack(tup: Any) -> Array:
    """Arrays joined along a third axis."""
    return np.concatenate([_three_axes(np.asarray(a)) for a in tup], axis=2)


def append(arr: Array, values: Array, axis: int | None = None) -> Array:
    """Values put behind an array, both flattened without an axis."""
    if axis is None:
        return np.concatenate([np.ravel(np.asarray(arr)), np.ravel(np.asarray(values))])
    return np.concatenate([np.asarray(arr), np.asarray(values)], axis=axis)


def parted_at(ary: Array, indices: Array, axis: int) -> Any:
    """The parts between indices along an axis: a list of views."""
    along = np.moveaxis(ary, axis, 0)
    parts, begin = [], 0
    for end in indices:
        parts.append(np.moveaxis(along[begin:end], 0, axis))
        begin = end
    parts.append(np.moveaxis(along[begin:], 0, axis))
    return parts


def array_split(ary: Array, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts of nearly equal size, or between known indices: a list of views."""
    if not isinstance(indices_or_sections, int):
        return np.split(ary, indices_or_sections, axis)
    if indices_or_sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    size, more = divmod(ary.shape[axis], indices_or_sections)
    along = np.moveaxis(ary, axis, 0)
    return [
        np.moveaxis(along[k * size + min(k, more) : (k + 1) * size + min(k + 1, more)], 0, axis)
        for k in range(indices_or_sections)
    ]


def hsplit(ary: Array, indices_or_sections: Any) -> Any:
    """Parts along the second axis (the first of a vector)."""
    return np.split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary: Array, indices_or_sections: Any) -> Any:
    """Parts along the first axis."""
    return np.split(ary, indices_or_sections, 0)


def dsplit(ary: Array, indices_or_sections: Any) -> Any:
    """Parts along the third axis."""
    return np.split(ary, indices_or_sections, 2)


def unstack(x: Array, *, axis: int = 0) -> Any:
    """The arrays that `np.stack` would join to this one."""
    return tuple(np.moveaxis(x, axis, 0))


# -- positions -------------------------------------------------------------------------------------


def unravel_index(indices: Array, shape: Any, order: str = "C") -> Any:
    """Indices of flat positions, one array (or number) for each axis."""
    flat = np.asarray(indices)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    turned = extents if order == "F" else extents[::-1]
    size = 1
    for extent in extents:
        size *= extent
    if flat.ndim == 0:
        if flat < 0 or flat >= size:
            raise ValueError(f"index {flat} is out of bounds for array with size {size}")
    elif np.any((flat < 0) | (flat >= size)):
        wrong = np.ravel(flat)[np.argmax((flat < 0) | (flat >= size))]
        raise ValueError(f"index {wrong} is out of bounds for array with size {size}")
    found = []
    for extent in turned:
        found.append(flat % extent)
        flat = flat // extent
    return tuple(found if order == "F" else found[::-1])


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: str = "C"
) -> Array:
    """Flat positions of indices."""
    indices = [np.asarray(i) for i in multi_index]
    extents = tuple(dims)
    if order == "F":
        indices, extents = indices[::-1], extents[::-1]
    flat = np.zeros((), dtype=np.int64)[()]
    for k in range(len(extents)):
        index = indices[k]
        if mode == "wrap":
            index = index % extents[k]
        elif mode == "clip":
            index = np.clip(index, 0, extents[k] - 1)
        elif np.any((index < 0) | (index >= extents[k])):
            raise ValueError("invalid entry in coordinates array")
        flat = flat * extents[k] + index
    return flat


# -- grids by slices -------------------------------------------------------------------------------


def steps_of(part: Any) -> Array:
    """The numbers that a slice names: a complex step is how many there are, its end included."""
    if not isinstance(part, slice):
        return np.asarray(part)
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return np.linspace(start, part.stop, int(abs(step)))
    return np.arange(start, part.stop, step)


def grid(self: Any, key: Any) -> Any:
    """np.mgrid[key] and np.ogrid[key]."""
    if not isinstance(key, tuple):
        return steps_of(key)
    ranges = [steps_of(part) for part in key]
    if self.sparse:
        return np.meshgrid(*ranges, indexing="ij", sparse=True)
    return np.stack(np.meshgrid(*ranges, indexing="ij"))


def columns(key: Any) -> Array:
    """np.c_[key]: vectors as columns, beside each other."""
    parts = [steps_of(part) for part in (key if isinstance(key, tuple) else (key,))]
    tall = [p.reshape(-1, 1) if p.ndim < 2 else p for p in parts]
    return np.concatenate(tall, axis=-1)
