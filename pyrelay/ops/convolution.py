"""Convolutions, as neural networks define them: sums of products, the weights not turned around.

In: an image of one to three axes, `x` [N, C, *extents] (or [N, *extents, C] with the channels
last), and weights [O, C / groups, *taps] (or [*taps, C / groups, O]). Out: y [N, O, *positions]
(or [N, *positions, O]) with

    y[n, o, p] = sum over c and t of w[o, c, t] * x[n, c, p * stride + t * dilation - before]

along every axis, where x counts as 0 outside. This is linear in x and in w, and so are its two
derivatives, `convolve_back` of y's form and w to x's form, and `convolve_weights` of x and y's
form to w's form: the derivatives of each of the three are the other two (Dumoulin and Visin, *A
guide to convolution arithmetic for deep learning*, 2016). `size` is the extents of an op's result:
positions, extents of the image, or taps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import Fusion, Op, Promotion, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.relations import common_dtype, require_kind, same_extent, tensors
from pyrelay.ops.samples import floats

Attributes = Mapping[str, Any]
Shape = tuple[Extent, ...]


def _image(ty: TensorType, last: bool) -> tuple[Extent, Extent, Shape]:
    """Entries, channels, extents."""
    if last:
        return ty.shape[0], ty.shape[-1], ty.shape[1:-1]
    return ty.shape[0], ty.shape[1], ty.shape[2:]


def _weights(ty: TensorType, last: bool) -> tuple[Extent, Extent, Shape]:
    """Outputs, channels of a group, taps."""
    if last:
        return ty.shape[-1], ty.shape[-2], ty.shape[:-2]
    return ty.shape[0], ty.shape[1], ty.shape[2:]


def _ranks(args: tuple[Type, ...], attrs: Attributes) -> tuple[TensorType, TensorType]:
    """The operands, of the same rank 3 to 5, as many axes as the attributes say."""
    x, other = tensors(args)
    require_kind((x, other), "f")
    common_dtype((x, other))
    if not 3 <= x.rank <= 5:
        raise RelationError(
            f"takes images with one to three axes besides batch and channels, not {x}", arg=0
        )
    if other.rank != x.rank:
        raise RelationError(f"cannot combine {x} and {other}", arg=1)
    for name in ("stride", "dilation", "before", "size"):
        if len(attrs[name]) != x.rank - 2:
            raise RelationError(f"needs one {name} for each of {x.rank - 2} axes", kind="value")
    return x, other


def _group(extent: Extent, groups: int, ty: TensorType, arg: int) -> Extent:
    """Channels of one group."""
    share = dims.quotient(extent, groups)
    if not dims.equal(dims.multiply(share, groups), extent):
        raise RelationError(
            f"cannot divide the {dims.show(extent)} channels of {ty} into {groups} groups", arg=arg
        )
    return share


def _convolved(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, w = _ranks(args, attrs)
    last, groups = attrs["channels_last"], attrs["groups"]
    entries, channels, _ = _image(x, last)
    outputs, own, _ = _weights(w, last)
    if same_extent(_group(channels, groups, x, 0), own) is None:
        of_groups = f" in {groups} groups" if groups > 1 else ""
        raise RelationError(
            f"cannot combine {x} and {w}", arg=1,
            note=f"the image has {dims.show(channels)} channels{of_groups}, the weights take "
            f"{dims.show(own)}.",
        )
    _group(outputs, groups, w, 1)
    size = tuple(attrs["size"])
    shape = (entries, *size, outputs) if last else (entries, outputs, *size)
    return (TensorType(x.dtype, shape),)


def _weights_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, g = _ranks(args, attrs)
    last, groups = attrs["channels_last"], attrs["groups"]
    entries, channels, _ = _image(x, last)
    others, outputs, _ = _image(g, last)
    if same_extent(entries, others) is None:
        raise RelationError(f"cannot combine {x} and {g}", arg=1)
    own = _group(channels, groups, x, 0)
    _group(outputs, groups, g, 1)
    size = tuple(attrs["size"])
    shape = (*size, own, outputs) if last else (outputs, own, *size)
    return (TensorType(x.dtype, shape),)


def _back_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    g, w = _ranks(args, attrs)
    last, groups = attrs["channels_last"], attrs["groups"]
    entries, others, _ = _image(g, last)
    outputs, own, _ = _weights(w, last)
    if same_extent(outputs, others) is None:
        raise RelationError(
            f"cannot combine {g} and {w}", arg=1,
            note=f"the image has {dims.show(others)} channels, the weights take "
            f"{dims.show(outputs)}.",
        )
    _group(outputs, groups, w, 1)
    size, channels = tuple(attrs["size"]), dims.multiply(own, groups)
    shape = (entries, *size, channels) if last else (entries, channels, *size)
    return (TensorType(g.dtype, shape),)


# -- meaning ---------------------------------------------------------------------------------------


def _split(x: Any, axis: int, groups: int) -> Any:
    """The axis as two: groups, and what belongs to each."""
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def _seen(
    extents: Sequence[int], taps: Sequence[int], out: Sequence[int], attrs: Attributes
) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """For every tap: the tap, the positions it sees something from, and the places it sees."""
    for tap in np.ndindex(*taps):
        places, positions = [], []
        for axis, extent in enumerate(extents):
            at = (
                np.arange(out[axis]) * attrs["stride"][axis] + tap[axis] * attrs["dilation"][axis]
                - attrs["before"][axis]
            )  # fmt: skip
            inside = (at >= 0) & (at < extent)
            positions.append(np.flatnonzero(inside))
            places.append(at[inside])
        yield tap, (..., *np.ix_(*positions)), (..., *np.ix_(*places))


def _image_of(x: Any, last: bool, groups: int) -> Any:
    """An image as [N, groups, C, *extents]."""
    return _split(np.moveaxis(x, -1, 1) if last else x, 1, groups)


def _weights_of(w: Any, last: bool, groups: int) -> Any:
    """Weights as [groups, O, C, *taps]."""
    return _split(np.moveaxis(w, (-1, -2), (0, 1)) if last else w, 0, groups)


def _joined(image: Any, last: bool) -> Any:
    """An image in its own form, of [N, groups, C, *extents]."""
    whole = image.reshape(image.shape[0], image.shape[1] * image.shape[2], *image.shape[3:])
    return np.ascontiguousarray(np.moveaxis(whole, 1, -1)) if last else whole


def _convolve(x: Any, w: Any, **attrs: Any) -> Any:
    last, groups = attrs["channels_last"], attrs["groups"]
    x, w = _image_of(x, last, groups), _weights_of(w, last, groups)
    total = np.zeros((x.shape[0], groups, w.shape[1], *attrs["size"]), x.dtype)
    with np.errstate(all="ignore"):
        for tap, positions, places in _seen(x.shape[3:], w.shape[3:], attrs["size"], attrs):
            total[positions] += np.einsum("ngc...,goc->ngo...", x[places], w[(..., *tap)])
    return _joined(total, last)


def _convolve_back(g: Any, w: Any, **attrs: Any) -> Any:
    last, groups = attrs["channels_last"], attrs["groups"]
    g, w = _image_of(g, last, groups), _weights_of(w, last, groups)
    total = np.zeros((g.shape[0], groups, w.shape[2], *attrs["size"]), g.dtype)
    with np.errstate(all="ignore"):
        for tap, positions, places in _seen(attrs["size"], w.shape[3:], g.shape[3:], attrs):
            total[places] += np.einsum("ngo...,goc->ngc...", g[positions], w[(..., *tap)])
    return _joined(total, last)


def _convolve_weights(x: Any, g: Any, **attrs: Any) -> Any:
    last, groups = attrs["channels_last"], attrs["groups"]
    x, g = _image_of(x, last, groups), _image_of(g, last, groups)
    result = np.zeros((groups, g.shape[2], x.shape[2], *attrs["size"]), x.dtype)
    with np.errstate(all="ignore"):
        for tap, positions, places in _seen(x.shape[3:], attrs["size"], g.shape[3:], attrs):
            values, weights = x[places], g[positions]
            at: Any = (..., *tap)
            result[at] = np.einsum(
                "ngcp,ngop->goc", values.reshape(*values.shape[:3], -1),
                weights.reshape(*weights.shape[:3], -1),
            )
    result = result.reshape(-1, *result.shape[2:])
    return np.ascontiguousarray(np.moveaxis(result, (0, 1), (-1, -2))) if last else result


# -- derivatives -----------------------------------------------------------------------------------


def _extents(image: Handle, attrs: Attributes) -> Shape:
    return _image(image.type, attrs["channels_last"])[2]


def _taps(weights: Handle, attrs: Attributes) -> Shape:
    return _weights(weights.type, attrs["channels_last"])[2]


def _cotangents(y: Handle, g: Handle, x: Handle, w: Handle, **attrs: Any) -> tuple[Any, ...]:
    return (
        convolve_back(g, w, **{**attrs, "size": _extents(x, attrs)}),
        convolve_weights(x, g, **{**attrs, "size": _taps(w, attrs)}),
    )


def _cotangents_of_back(
    x: Handle, h: Handle, g: Handle, w: Handle, **attrs: Any
) -> tuple[Any, ...]:
    return (
        convolve(h, w, **{**attrs, "size": _extents(g, attrs)}),
        convolve_weights(h, g, **{**attrs, "size": _taps(w, attrs)}),
    )


def _cotangents_of_weights(
    w: Handle, h: Handle, x: Handle, g: Handle, **attrs: Any
) -> tuple[Any, ...]:
    return (
        convolve_back(g, h, **{**attrs, "size": _extents(x, attrs)}),
        convolve(x, h, **{**attrs, "size": _extents(g, attrs)}),
    )


# -- records ---------------------------------------------------------------------------------------


def _samples(operands: tuple[int, int], result: int) -> tuple[Sample, ...]:
    """Arguments of the forms 0 (x), 1 (w) and 2 (y)."""
    found = []
    for *shapes, changed in (
        ((2, 3, 7), (4, 3, 3), (2, 4, 5), {}),
        ((1, 2, 5, 6), (3, 2, 3, 2), (1, 3, 3, 3), {"stride": (2, 2), "before": (1, 0)}),
        ((1, 4, 5, 4), (6, 2, 2, 2), (1, 6, 3, 3), {"groups": 2, "dilation": (2, 1)}),
        ((2, 5, 4, 3), (3, 3, 3, 2), (2, 5, 4, 2), {"channels_last": True, "before": (1, 1)}),
        ((1, 3, 5, 4), (2, 2, 1, 4), (1, 3, 2, 4),
         {"channels_last": True, "groups": 4, "stride": (1, 3), "before": (1, 0)}),
        ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (1, 2, 2, 2, 2), {}),
    ):  # fmt: skip
        last, rank = changed.get("channels_last", False), len(shapes[0]) - 2
        form = shapes[result]
        inner = form[:-2] if last and result == 1 else form[1:-1] if last else form[2:]
        attrs = {
            "stride": (1,) * rank, "dilation": (1,) * rank, "before": (0,) * rank, "groups": 1,
            "channels_last": False, **changed, "size": inner,
        }
        found.append(floats(*(shapes[k] for k in operands), attrs=attrs))
    return tuple(found)


def _record(
    name: str, relation: Any, numpy: Any, vjp: Any, samples: tuple[Sample, ...], doc: str
) -> Op:
    return define(
        name, relation=relation, numpy=numpy, fusion=Fusion.OPAQUE, schedule="convolution",
        vjp=vjp, promotion=Promotion.COMMON, samples=samples, doc=doc,
    )  # fmt: skip


convolve = _record(
    "convolve", _convolved, _convolve, _cotangents, _samples((0, 1), 2),
    "the convolution of an image; `before`: zeros before it",
)
convolve_back = _record(
    "convolve_back", _back_type, _convolve_back, _cotangents_of_back, _samples((2, 1), 0),
    "what every position adds to the places that it sees: a transposed convolution",
)
convolve_weights = _record(
    "convolve_weights", _weights_type, _convolve_weights, _cotangents_of_weights,
    _samples((0, 2), 1), "the sum over positions of what each tap sees times an image of y's form",
)
