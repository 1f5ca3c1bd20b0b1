"""Arrays with the same elements in another arrangement.

In: an array and extents as attributes. Out: an array whose every element is one element of an
operand. Extents may be symbolic; what cannot be decided here (bounds of a slice) is checked by the
program before the op.

The rule of an op that reads a part of x returns its cotangent as a function that adds it to a total
of x's type, so that reading an element costs one element in the backward pass, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.build import Handle
from pyrelay.ir.op import OPS, Fusion, Op, Promotion, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.relations import (
    axes_in,
    common_dtype,
    require_shape,
    show_shape,
    tensors,
    without_axes,
)
from pyrelay.ops.samples import floats, spread

Attributes = Mapping[str, Any]


def _movement(
    name: str, relation: Any, numpy: Callable[..., Any], vjp: Any, element: Any, *,
    samples: Sequence[Sample], doc: str, promotion: Promotion = Promotion.NONE,
    linear: bool = False,
) -> Op:
    return define(
        name, relation=relation, numpy=numpy, fusion=Fusion.INJECTIVE, vjp=vjp, element=element,
        promotion=promotion, samples=samples, doc=doc, linear=linear,
    )


# -- another shape, the same order --------------------------------------------------------------


def _reshaped(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    shape = tuple(attrs["shape"])
    if not dims.equal(ty.size, dims.product(shape)):
        raise RelationError(
            f"cannot give {ty} the shape {show_shape(shape)}", arg=0,
            note=f"it has {dims.show(ty.size)} elements, the shape "
            f"{dims.show(dims.product(shape))}.",
        )
    return (TensorType(ty.dtype, shape),)


def _same_position(s: Any, i: Any, x: Any, **attrs: Any) -> Any:
    """The element of x with the same position in C order."""
    return x(s.regrouped(i, s.result[0].shape, x.shape))


reshape = _movement(
    "reshape", _reshaped, lambda x, *, shape: np.reshape(x, shape)[()],
    lambda y, g, x, *, shape: (OPS["reshape"](g, shape=x.shape),),
    _same_position,
    samples=(
        floats((2, 6), attrs={"shape": (3, 4)}), floats((4,), attrs={"shape": (2, 1, 2)}),
        floats((1, 1), attrs={"shape": ()}), floats((), attrs={"shape": (1, 1)}),
        Sample((np.zeros((0, 3)),), {"shape": (3, 0)}),
    ),
    doc="the elements in C order, in another shape of the same size",
)


def _expanded(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    axes = axes_in(attrs["axes"], ty.rank + len(attrs["axes"]))
    rest = iter(ty.shape)
    rank = ty.rank + len(axes)
    return (TensorType(ty.dtype, tuple(1 if k in axes else next(rest) for k in range(rank))),)


expand_dims = _movement(
    "expand_dims", _expanded, lambda x, *, axes: np.expand_dims(x, axes),
    lambda y, g, x, *, axes: (squeeze(g, axes=axes),),
    lambda s, i, x, *, axes: x(without_axes(i, axes_in(axes, len(i)))),
    samples=(
        floats((3, 4), attrs={"axes": (1,)}), floats((3,), attrs={"axes": (0, 2)}),
        floats((), attrs={"axes": (0,)}),
    ),
    doc="new axes of extent 1, which are `axes` of the result",
)


def _squeezed(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    axes = axes_in(attrs["axes"], ty.rank)
    for axis in axes:
        if not dims.equal(ty.shape[axis], 1):
            raise RelationError(
                f"cannot remove axis {axis} of {ty}: its extent is not 1", arg=0, kind="value"
            )
    return (TensorType(ty.dtype, without_axes(ty.shape, axes)),)


def _with_axes(s: Any, i: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """The element of x with 0 at `axes`."""
    rest, ones = iter(i), axes_in(axes, x.rank)
    return x(tuple(0 if k in ones else next(rest) for k in range(x.rank)))


squeeze: Op = _movement(
    "squeeze", _squeezed, lambda x, *, axes: np.squeeze(x, axes)[()],
    lambda y, g, x, *, axes: (expand_dims(g, axes=axes),),
    _with_axes,
    samples=(floats((3, 1, 4), attrs={"axes": (1,)}), floats((1, 1), attrs={"axes": (0, 1)})),
    doc="without `axes`, whose extent is 1",
)


def _refined(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    if ty.rank != len(attrs["shape"]):
        raise RelationError(f"cannot see {ty} as {show_shape(attrs['shape'])}", arg=0)
    return (TensorType(ty.dtype, tuple(attrs["shape"])),)


refine = _movement(
    "refine", _refined, lambda x, *, shape: x,
    lambda y, g, x, *, shape: (OPS["refine"](g, shape=x.shape),),
    lambda s, i, x, *, shape: x(i),
    samples=(floats((3, 4), attrs={"shape": (3, 4)}),),
    doc="the same array under extents that a check before has found equal",
)

# -- another order ------------------------------------------------------------------------------


def _transposed(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    axes = axes_in(attrs["axes"], ty.rank)
    if len(axes) != ty.rank:
        raise RelationError(f"needs all {ty.rank} axes of {ty}, not {axes}", arg=0, kind="value")
    return (TensorType(ty.dtype, tuple(ty.shape[a] for a in axes)),)


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `axes`."""
    return tuple(sorted(range(len(axes)), key=lambda k: axes[k]))


transpose = _movement(
    "transpose", _transposed, lambda x, *, axes: np.transpose(x, axes),
    lambda y, g, x, *, axes: (OPS["transpose"](g, axes=inverse(axes)),),
    lambda s, i, x, *, axes: x(tuple(i[k] for k in inverse(axes))),
    samples=(floats((3, 4), attrs={"axes": (1, 0)}), floats((2, 3, 4), attrs={"axes": (2, 0, 1)})),
    doc="axis k of the result is axis axes[k]",
)


def _broadcast_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    shape = tuple(attrs["shape"])
    require_shape(ty, shape, 0, "an array")
    return (TensorType(ty.dtype, shape),)


broadcast_to = _movement(
    "broadcast_to", _broadcast_type,
    lambda x, *, shape, arbitrary=False: np.broadcast_to(x, shape)[()],
    lambda y, g, x, *, shape, arbitrary=False: (g,),
    lambda s, i, x, *, shape, arbitrary=False: x(i),
    samples=(
        floats((3,), attrs={"shape": (2, 3)}), floats((), attrs={"shape": (2, 2)}),
        floats((2, 1), attrs={"shape": (4, 2, 3)}), Sample((1.5,), {"shape": (3,)}),
    ),
    doc="repeated along new axes and along axes of extent 1; where `arbitrary`, as for np.empty, "
    "any other elements do as well",
)

# -- parts and wholes ---------------------------------------------------------------------------


def index_of_slice(starts: Any, sizes: Any, steps: Any) -> tuple[slice, ...]:
    """NumPy's index of the elements start + k * step, k < size, of each axis."""
    slices = []
    for start, size, step in zip(starts, sizes, steps, strict=True):
        stop = start + size * step
        slices.append(slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0))
    return tuple(slices)


def _sliced(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    return (TensorType(ty.dtype, slice_shape(ty, attrs)),)


def slice_shape(ty: TensorType, attrs: Attributes) -> tuple[Any, ...]:
    """Shape of the part of `ty` that starts, sizes, steps choose. Raises RelationError."""
    starts, sizes, steps = attrs["starts"], attrs["sizes"], attrs["steps"]
    if not len(starts) == len(sizes) == len(steps) == ty.rank:
        raise RelationError(f"needs a start, a size and a step per axis of {ty}", kind="value")
    if any(step == 0 for step in steps):
        raise RelationError("cannot have a step of zero", kind="value")
    for axis, extent in enumerate(ty.shape):
        ends = (starts[axis], starts[axis] + (sizes[axis] - 1) * steps[axis])
        known = all(isinstance(e, int) for e in (extent, *ends))
        if known and sizes[axis] and not (min(ends) >= 0 and max(ends) < extent):
            raise RelationError(f"goes beyond axis {axis} of {ty}", arg=0, kind="value")
    return tuple(sizes)


def _slice_element(
    s: Any, i: Any, x: Any, *, starts: Any, sizes: Any, steps: Any
) -> Any:
    return x(tuple(
        _moved(s, index, start, step) for index, start, step in zip(i, starts, steps, strict=True)
    ))


def _moved(s: Any, index: Any, start: Any, step: int) -> Any:
    """start + index * step, without the parts that do nothing."""
    stride = index if step == 1 else index * s.extent(step)
    return stride if start == 0 else s.extent(start) + stride


def zeros_like(handle: Handle) -> Handle:
    """Zeros of the type of a handle."""
    return handle.builder.full(0, handle.shape, handle.dtype)


slice_ = _movement(
    "slice", _sliced, lambda x, *, starts, sizes, steps: x[index_of_slice(starts, sizes, steps)],
    lambda y, g, x, **part: (lambda total: OPS["slice_add"](total, g, **part),),
    _slice_element,
    samples=(
        floats((7,), attrs={"starts": (1,), "sizes": (3,), "steps": (2,)}),
        floats((5, 4), attrs={"starts": (4, 1), "sizes": (5, 2), "steps": (-1, 1)}),
        floats((6,), attrs={"starts": (5,), "sizes": (3,), "steps": (-2,)}),
        floats((3,), attrs={"starts": (0,), "sizes": (0,), "steps": (1,)}),
    ),
    doc="element k of an axis is start + k * step",
)


def _concatenated(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    parts = tensors(args)
    dtype = common_dtype(parts)
    first = parts[0]
    if not first.rank:
        raise RelationError(f"cannot join {first}: it has no axes", arg=0)
    (axis,) = axes_in((attrs["axis"],), first.rank)
    shape = list(first.shape)
    for k, part in enumerate(parts[1:], 1):
        if part.rank != first.rank:
            raise RelationError(
                f"cannot join {first} and {part}", arg=k,
                note=f"they have {first.rank} and {part.rank} axes.",
            )
        for a, (d, e) in enumerate(zip(first.shape, part.shape, strict=True)):
            if a != axis and not dims.equal(d, e):
                raise RelationError(
                    f"cannot join {first} and {part} along axis {axis}", arg=k,
                    note=f"{dims.show(d)} and {dims.show(e)} differ in axis {a}.",
                )
        shape[axis] = shape[axis] + part.shape[axis]
    return (TensorType(dtype, tuple(shape)),)


def _concatenate_element(s: Any, i: Any, *parts: Any, axis: int) -> Any:
    """A balanced tree of choices: as deep as the logarithm of the number of parts."""
    ends: list[Any] = [0]
    for part in parts:
        ends.append(ends[-1] + part.shape[axis])

    def choose(low: int, high: int) -> Any:
        if high - low == 1:
            local = _moved(s, i[axis], -1 * ends[low], 1)
            return parts[low]((*i[:axis], local, *i[axis + 1 :]))
        middle = (low + high) // 2
        before = i[axis] < s.extent(ends[middle])
        return s.choose(before, lambda: choose(low, middle), lambda: choose(middle, high))

    return choose(0, len(parts))


def _cotangents_of_parts(y: Handle, g: Handle, *parts: Handle, axis: int) -> tuple[Any, ...]:
    start: Any = 0
    found = []
    for part in parts:
        starts = tuple(start if a == axis else 0 for a in range(part.rank))
        found.append(slice_(g, starts=starts, sizes=part.shape, steps=(1,) * part.rank))
        start = start + part.shape[axis]
    return tuple(found)


concatenate = _movement(
    "concatenate", _concatenated, lambda *parts, axis: np.concatenate(parts, axis),
    _cotangents_of_parts, _concatenate_element, promotion=Promotion.COMMON,
    samples=(
        floats((2, 3), (4, 3), attrs={"axis": 0}), floats((3,), (1,), (2,), attrs={"axis": 0}),
        floats((2, 1), (2, 2), (2, 3), (2, 1), (2, 2), attrs={"axis": 1}),
        Sample((np.array([1, 2]), np.array([0.5])), {"axis": 0}, False),
    ),
    doc="the arrays one after the other along an axis", linear=True,
)


def _padded(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    ty, value = tensors(args)
    before, after = attrs["before"], attrs["after"]
    if not len(before) == len(after) == ty.rank:
        raise RelationError(f"needs two widths per axis of {ty}", kind="value")
    if any(isinstance(w, int) and w < 0 for w in (*before, *after)):
        raise RelationError("cannot have a negative width", kind="value")
    if value.rank:
        raise RelationError(f"pads with one number, not with {value}", arg=1)
    sizes = zip(before, ty.shape, after, strict=True)
    return (TensorType(common_dtype((ty, value)), tuple(b + d + a for b, d, a in sizes)),)


def _pad_element(s: Any, i: Any, x: Any, value: Any, *, before: Any, after: Any) -> Any:
    local, tests = [], []
    for index, low, extent, high in zip(i, before, x.shape, after, strict=True):
        position = index if low == 0 else index - s.extent(low)
        local.append(position)
        if low != 0:
            tests.append(position >= s.extent(0))
        if high != 0:
            tests.append(position < s.extent(extent))
    if not tests:
        return x(tuple(local))
    return s.choose(all_of(s, tests), lambda: x(tuple(local)), lambda: value(()))


def all_of(s: Any, conditions: Sequence[Any]) -> Any:
    """The conjunction of at least one condition."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = s.logical_and(result, condition)
    return result


def _cotangents_of_pad(
    y: Handle, g: Handle, x: Handle, value: Handle, *, before: Any, after: Any
) -> tuple[Any, ...]:
    part = {"starts": before, "sizes": x.shape, "steps": (1,) * x.rank}
    border = OPS["slice_update"](g, zeros_like(x), **part)
    total = OPS["sum"](border, axes=tuple(range(g.rank)), keepdims=False)
    return slice_(g, **part), total


pad = _movement(
    "pad", _padded,
    lambda x, value, *, before, after: np.pad(
        x, tuple(zip(before, after, strict=True)), constant_values=value
    ),
    _cotangents_of_pad, _pad_element, promotion=Promotion.COMMON,
    samples=(
        floats((3,), (), attrs={"before": (2,), "after": (1,)}),
        floats((2, 3), (), attrs={"before": (0, 1), "after": (2, 0)}),
        Sample((spread((3,)), 0.0), {"before": (0,), "after": (0,)}),
    ),
    doc="the array inside a border of one value", linear=True,
)
