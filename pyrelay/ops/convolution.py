"""Convolutions, as neural networks define them: sums of products, the weights not turned around.

In: an image of one to three axes, `x` [N, C, *extents] (or [N, *extents, C] with the channels
last), and weights [O, C / groups, *taps] (or [*taps, C / groups, O]). Out: [N, O, *size] (or
[N, *size, O]) with

    y[n, o, p] = sum over c and t of w[o, c, t] * x[n, c, q / spread]
    q = p * stride + t * dilation - before

along every axis, where x counts as 0 outside and between its elements. `convolve_weights` is the
other product of three: of x and y's cotangent, of the form of the weights. Each op is linear in
both operands and its derivatives are these two ops again (Dumoulin and Visin, *A guide to
convolution arithmetic for deep learning*, 2016), so that every order exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import Fusion, Promotion, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.relations import common_dtype, require_kind, same_extent, tensors
from pyrelay.ops.samples import floats
from pyrelay.ops.shape import reshape, slice_, transpose

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
    for name in ("stride", "dilation", "spread", "before", "size"):
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


# -- meaning ---------------------------------------------------------------------------------------


def _split(x: Any, axis: int, groups: int) -> Any:
    """The axis as two: groups, and what belongs to each."""
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def _patches(x: Any, taps: Sequence[int], out: Sequence[int], attrs: Attributes) -> Any:
    """Pairs of a tap and what it sees, [N, groups, C, *out]; `x` is [N, groups, C, *extents]."""
    lead, rank = x.shape[:3], len(taps)
    apart = attrs["spread"]
    spread = tuple(max((n - 1) * e + 1, 0) for n, e in zip(x.shape[3:], apart, strict=True))
    wide = np.zeros((*lead, *spread), x.dtype)
    wide[(slice(None),) * 3 + tuple(slice(None, None, e) for e in apart)] = x
    for tap in np.ndindex(*taps):
        seen = wide
        outside = np.zeros(tuple(out), bool)
        for axis in range(rank):
            at = (
                np.arange(out[axis]) * attrs["stride"][axis] + tap[axis] * attrs["dilation"][axis]
                - attrs["before"][axis]
            )  # fmt: skip
            off = (at < 0) | (at >= spread[axis])
            outside |= off.reshape(-1, *(1,) * (rank - 1 - axis))
            if spread[axis]:
                seen = np.take(seen, np.where(off, 0, at), axis=3 + axis)
            else:
                lines = (*seen.shape[: 3 + axis], len(at), *seen.shape[4 + axis :])
                seen = np.zeros(lines, x.dtype)
        yield tap, np.where(outside, np.zeros((), x.dtype), seen)


def _first(x: Any, last: bool) -> Any:
    """An image with its channels first."""
    return np.moveaxis(x, -1, 1) if last else x


def _convolve(x: Any, w: Any, **attrs: Any) -> Any:
    last, groups = attrs["channels_last"], attrs["groups"]
    x = _split(_first(x, last), 1, groups)
    if last:
        w = np.moveaxis(w, (-1, -2), (0, 1))
    w = _split(w, 0, groups)
    entries, outputs = x.shape[0], w.shape[0] * w.shape[1]
    total = np.zeros((entries, groups, w.shape[1], *attrs["size"]), x.dtype)
    with np.errstate(all="ignore"):
        for tap, seen in _patches(x, w.shape[3:], attrs["size"], attrs):
            total += np.einsum("ngc...,goc->ngo...", seen, w[(..., *tap)])
    total = total.reshape(entries, outputs, *attrs["size"])
    return np.ascontiguousarray(np.moveaxis(total, 1, -1)) if last else total


def _convolve_weights(x: Any, g: Any, **attrs: Any) -> Any:
    last, groups = attrs["channels_last"], attrs["groups"]
    x, g = (_split(_first(a, last), 1, groups) for a in (x, g))
    result = np.zeros((groups, g.shape[2], x.shape[2], *attrs["size"]), x.dtype)
    flat = g.reshape(*g.shape[:3], -1)
    with np.errstate(all="ignore"):
        for tap, seen in _patches(x, attrs["size"], g.shape[3:], attrs):
            values = seen.reshape(*seen.shape[:3], -1)
            result[(..., *tap)] = np.einsum("ngcp,ngop->goc", values, flat)
    result = result.reshape(-1, *result.shape[2:])
    return np.ascontiguousarray(np.moveaxis(result, (0, 1), (-1, -2))) if last else result


# -- derivatives -----------------------------------------------------------------------------------


def _turned(w: Handle, groups: int, last: bool) -> Handle:
    """Weights from outputs to channels: both exchanged within each group, taps reversed."""
    outputs, own, taps = _weights(w.type, last)
    share = dims.quotient(outputs, groups)
    rank = len(taps)
    if last:
        parts = reshape(w, shape=(*taps, own, groups, share))
        swapped = transpose(parts, axes=(*range(rank), rank + 2, rank + 1, rank))
        whole = reshape(swapped, shape=(*taps, share, dims.multiply(own, groups)))
        places = range(rank)
    else:
        parts = reshape(w, shape=(groups, share, own, *taps))
        swapped = transpose(parts, axes=(0, 2, 1, *range(3, rank + 3)))
        whole = reshape(swapped, shape=(dims.multiply(own, groups), share, *taps))
        places = range(2, rank + 2)
    reverse = [k in places for k in range(rank + 2)]
    ends = (dims.add(extent, -1) for extent in whole.shape)
    return slice_(
        whole, starts=tuple(end if r else 0 for end, r in zip(ends, reverse, strict=True)),
        sizes=whole.shape, steps=tuple(-1 if r else 1 for r in reverse),
    )


def _image_cotangent(g: Handle, w: Handle, extents: Shape, attrs: Attributes) -> Handle:
    """What the outputs' cotangent `g` is for the image: a convolution with the turned weights."""
    _, _, taps = _weights(w.type, attrs["channels_last"])
    before = tuple(
        dims.add(dims.multiply(d, dims.add(t, -1)), dims.multiply(-1, lo))
        for d, t, lo in zip(attrs["dilation"], taps, attrs["before"], strict=True)
    )
    turned = _turned(w, attrs["groups"], attrs["channels_last"])
    return convolve(g, turned, **{
        **attrs, "stride": attrs["spread"], "spread": attrs["stride"], "before": before,
        "size": extents,
    })  # fmt: skip


def _cotangents(y: Handle, g: Handle, x: Handle, w: Handle, **attrs: Any) -> tuple[Any, ...]:
    last = attrs["channels_last"]
    extents, taps = _image(x.type, last)[2], _weights(w.type, last)[2]
    return (
        _image_cotangent(g, w, extents, attrs),
        convolve_weights(x, g, **{**attrs, "size": taps}),
    )


def _cotangents_of_weights(
    y: Handle, g: Handle, x: Handle, other: Handle, **attrs: Any
) -> tuple[Any, ...]:
    last = attrs["channels_last"]
    extents, size = (_image(h.type, last)[2] for h in (x, other))
    return (
        _image_cotangent(other, g, extents, attrs),
        convolve(x, g, **{**attrs, "size": size}),
    )


def _attrs(**changed: Any) -> dict[str, Any]:
    rank = len(changed["size"])
    plain = {
        "stride": (1,) * rank, "dilation": (1,) * rank, "spread": (1,) * rank,
        "before": (0,) * rank, "groups": 1, "channels_last": False,
    }
    return {**plain, **changed}


def _samples(weights: bool) -> tuple[Sample, ...]:
    """Shapes of x, w and y with attributes; the second operand is w or y."""
    found = []
    for x, w, y, attrs in (
        ((2, 3, 7), (4, 3, 3), (2, 4, 5), {}),
        ((1, 2, 5, 6), (3, 2, 3, 2), (1, 3, 3, 3), {"stride": (2, 2), "before": (1, 0)}),
        ((1, 4, 5, 4), (6, 2, 2, 2), (1, 6, 3, 3), {"groups": 2, "dilation": (2, 1)}),
        ((2, 5, 4, 3), (3, 3, 3, 2), (2, 5, 4, 2), {"channels_last": True, "before": (1, 1)}),
        ((1, 3, 3, 4), (2, 2, 1, 4), (1, 4, 6, 4),
         {"channels_last": True, "groups": 4, "spread": (1, 2), "before": (1, 1)}),
        ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (1, 2, 2, 2, 2), {}),
    ):  # fmt: skip
        last = attrs.get("channels_last", False)
        of_w = w[:-2] if last else w[2:]
        of_y = y[1:-1] if last else y[2:]
        found.append(floats(
            x, y if weights else w, attrs=_attrs(size=of_w if weights else of_y, **attrs)
        ))  # fmt: skip
    return tuple(found)


convolve = define(
    "convolve", relation=_convolved, numpy=_convolve, fusion=Fusion.OPAQUE,
    schedule="convolution", vjp=_cotangents, promotion=Promotion.COMMON, samples=_samples(False),
    doc="the convolution of an image; `before`: zeros before it, `size`: extents of the result",
)
convolve_weights = define(
    "convolve_weights", relation=_weights_type, numpy=_convolve_weights, fusion=Fusion.OPAQUE,
    schedule="convolution", vjp=_cotangents_of_weights, promotion=Promotion.COMMON,
    samples=_samples(True),
    doc="the sum over positions of what each tap sees times an image of the outputs' form",
)
