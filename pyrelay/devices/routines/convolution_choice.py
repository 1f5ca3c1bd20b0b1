"""Which parts a convolution of some size needs.

In: extents and layouts. Out: names, and texts, of parts (``made_of.PARTS``) that kernels of
convolutions are likely to call. They decide by the same limits (``convolution_first``,
``convolution_single``, ``convolution_turned``); what is not foreseen is made when it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from math import prod

from pyrelay.devices.routines import (
    convolution_first,
    convolution_gathered,
    convolution_spread,
    convolution_transformed,
    convolution_turned,
    convolution_weights,
    matmul_choice,
)
from pyrelay.devices.routines.convolution import COLUMNS, DEPTH, PIXELS, ROWS, SCRATCH, TAPPED
from pyrelay.devices.routines.made_of import PARTS, part_text
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import BACK, FORWARD, WEIGHTS, ConvolutionSizes

_TRANSFORMING = "winograd", "winograd_products"  # modules for float32 alone
_LINES = "copy_lines", "copy_run"
_ADDED = ("add_run",)
_TURNED = "turned_weights", "turned_product", "turned_sums"
_WINOGRAD = (
    "winograd_lines", "winograd_image", "turned_weights", "turned_sums", "winograd_finite",
)  # fmt: skip
_SPREAD = *_ADDED, "tap_sums", "tap_joins", "copy_lines", *_TURNED
_TRANSFORMED = (
    "copy_run", *(part for module in _TRANSFORMING for part in PARTS[module]),
)
_TILED = *PARTS["winograd"], "winograd_pairs"


@functools.cache
def calls(
    dtype: DType, what: str, channels_last: bool
) -> Callable[[ConvolutionSizes | None], list[str]]:
    """What gives the texts of the parts that a kernel is likely to call, from extents, if they are
    known."""
    lanes = native_vector_bits() // 8 // dtype.size
    form = f"{dtype.name}x{lanes}"

    def texts(sizes: ConvolutionSizes | None) -> list[str]:
        found = parts(what, channels_last, sizes, lanes, dtype.size)
        return [part_text(name, form) for name in found]

    return texts


def parts(
    what: str, channels_last: bool, sizes: ConvolutionSizes | None, lanes: int, size: int
) -> Iterator[str]:
    """Names of parts for a product of a convolution, or all where ``sizes`` are not known. Elements
    have ``size`` bytes, vectors ``lanes`` of them."""
    if what == FORWARD and not channels_last:
        if sizes is not None:
            yield from _forward(sizes, lanes, size)
            return
        for module in ("offset_product", "turned_product", *_TRANSFORMING):
            if size == 4 or module not in _TRANSFORMING:
                yield from PARTS[module]
        return
    transposed = {
        (FORWARD, True): (False, False), (BACK, True): (False, True), (BACK, False): (True, False),
    }.get((what, channels_last), (channels_last, not channels_last))  # fmt: skip
    if sizes is None:
        if not channels_last:
            yield from (*_LINES, "tap_dots", *_TURNED) if what == WEIGHTS else _SPREAD
            if size == 4:
                yield from _TRANSFORMED if what == BACK else _TILED
        yield from matmul_choice.ways((None,) * 3, *transposed, lanes, size)
        return
    single = sizes.channels == sizes.outputs == 1
    flat = sizes.axes[0][:3] == (1, 1, 1) and sizes.axes[0][5] == 0
    strides = {axis[3] for axis in sizes.axes[1:]} if flat and not channels_last else set()
    if single and what != FORWARD and (strides == {1} or (strides == {2} and _is_halved(sizes))):
        yield "tap_dots" if what == WEIGHTS else "tap_sums"
        if strides == {2}:
            yield "copy_lines" if what == WEIGHTS else "tap_joins"
        return
    if what == WEIGHTS and not channels_last:
        if size == 4 and _by_tiles(sizes, lanes):
            yield from _tiling(sizes.axes[1][1])
            return
        if not single and _by_positions(sizes, lanes):
            yield from ("turned_weights", "turned_product", "turned_sums")
            if _is_bordered(sizes):
                yield "copy_lines"
            return
        yield _copied(flat, sizes.axes[2][2])
    back = _turned_around(sizes) if what == BACK and not channels_last and size == 4 else None
    if back is not None and _by_transforms(back, convolution_transformed.BACK_WORTH):
        yield from _transforming(back)
        return
    plain = what == BACK and not channels_last and not single and is_plain(sizes)
    if what == BACK and not channels_last and not plain:
        if not single and _by_channels(sizes, lanes, size):
            yield from ("turned_product", "turned_sums", "copy_lines")
            if any(axis[1] > 1 for axis in sizes.axes):
                yield "turned_weights"
            return
        if single or sizes.axes[2][3] == 1:
            yield from _ADDED
    # Blocks of positions, by blocks of channels, taps or outputs.
    m, n, k = _extents(what, channels_last, sizes)
    if what == WEIGHTS and channels_last and n == 1 < sizes.groups:
        yield "in_place"  # a column whose elements are apart
    elif what == WEIGHTS or not single:
        positions = prod(axis[2] for axis in sizes.axes)
        line = positions if what == WEIGHTS else k
        yield from matmul_choice.ways((m, n, k), *transposed, lanes, size, line)
        if what == BACK and not channels_last and n < positions:  # of which some are left over
            yield from matmul_choice.ways((m, positions % n, k), *transposed, lanes, size)


def is_plain(sizes: ConvolutionSizes) -> bool:
    """Whether outputs are products of positions of the image: one tap, without a stride."""
    return all(
        taps == stride == 1 and before == 0 and extent == out
        for extent, taps, out, stride, _, before in sizes.axes
    )


def _copied(flat: bool, out2: int) -> str:
    return "copy_lines" if flat and out2 <= convolution_first.SHORT else "copy_run"


def _extents(what: str, channels_last: bool, sizes: ConvolutionSizes) -> tuple[int, int, int]:
    """m, n and k of a block's product."""
    taps, positions = (prod(axis[k] for axis in sizes.axes) for k in (1, 2))
    columns = min(COLUMNS, sizes.channels if what == BACK else sizes.outputs)
    values = taps * sizes.channels
    if what == FORWARD:
        return min(PIXELS, sizes.batch * positions), columns, min(DEPTH, values)
    if what == BACK and channels_last:
        return min(DEPTH, positions), columns, sizes.outputs
    if what == BACK:
        if is_plain(sizes):
            return columns, positions, sizes.outputs
        return min(columns, max(1, PIXELS // taps)) * taps, min(DEPTH, positions), sizes.outputs
    if channels_last:
        return min(ROWS, values), columns, min(DEPTH, sizes.batch * positions)
    return columns, min(ROWS, values), min(DEPTH, positions)


def _forward(sizes: ConvolutionSizes, lanes: int, size: int) -> Iterator[str]:
    (_, taps0, out0, stride0, step0, before0), axis1, axis2 = sizes.axes
    extent2, taps2, out2, stride2, step2, before2 = axis2
    flat = sizes.axes[0][:3] == (1, 1, 1) and before0 == 0
    if flat:
        _, taps0, out0, stride0, step0, before0 = axis1
    extents, taps, positions = (prod(axis[k] for axis in sizes.axes) for k in (0, 1, 2))
    plain = is_plain(sizes)
    single = sizes.channels == sizes.outputs == 1
    if single and flat and taps <= convolution_first.TABLE and stride2 <= convolution_first.STRIDES:
        windows = taps0 == taps2 == convolution_first.WINDOW and step0 == step2 == 1
        windows = windows and stride0 == stride2 <= 2
        direct = windows and extent2 >= convolution_first.DIRECT and before2 >= 0
        small = windows and out2 <= 2 * lanes and out0 <= convolution_first.SMALL
        yield "window_sums" if windows else "line_sums"
        if not direct and not (small and positions <= convolution_first.PIXELS):
            yield "copy_lines"
    elif size == 4 and flat and _by_transforms(sizes, convolution_transformed.DIRECT_WORTH):
        yield from _transforming(sizes)
    elif _by_outputs(sizes, taps, positions, lanes, size):
        yield from _TURNED
    else:
        yield "offset_product"
        if plain and not single:
            nbytes = sizes.batch * sizes.groups * sizes.channels * extents * size
            fits = positions >= convolution_first.FEWEST_PIXELS
            fits = fits and sizes.outputs <= convolution_first.MOST_OUTPUTS
            if not fits or nbytes > convolution_first.MOST_IMAGE or positions % (2 * lanes):
                yield "copy_lines"
        else:
            yield _copied(flat, out2)


def _turned_around(sizes: ConvolutionSizes) -> ConvolutionSizes | None:
    """The convolution whose outputs are the image that outputs are added to; None with a stride, or
    of three axes."""
    axes = [
        (out, taps, extent, 1, step, taps - 1 - before)
        for extent, taps, out, stride, step, before in sizes.axes
        if stride == 1
    ]
    if len(axes) < len(sizes.axes) or axes[0][:3] != (1, 1, 1) or axes[0][5] != 0:
        return None
    return ConvolutionSizes(sizes.batch, sizes.groups, sizes.outputs, sizes.channels, tuple(axes))


def _transforming(sizes: ConvolutionSizes) -> Iterator[str]:
    """What Winograd's transforms call."""
    _, taps, _, stride, *_ = sizes.axes[1]
    own_taps = -(-taps // stride)
    yield from _WINOGRAD
    if stride > 1:
        yield "copy_lines"
    yield f"winograd_{'phases' if stride > 1 else 'products'}{own_taps}"
    yield f"winograd_outputs{own_taps}"


def _tiling(taps: int) -> Iterator[str]:
    """What the transforms of weights' sums call."""
    side = 7 - taps
    yield from ("turned_weights", "turned_sums", "winograd_seen", "winograd_finite")
    yield from (f"winograd_given{side}", "winograd_pairs", f"winograd_outputs{side}")


def _by_tiles(sizes: ConvolutionSizes, lanes: int) -> bool:
    """Whether weights' sums are those of tiles."""
    limits, wide = convolution_weights, 2 * lanes
    flat, (_, taps0, out0, stride0, step0, _), (_, taps2, out2, stride2, step2, _) = sizes.axes
    if flat[:3] != (1, 1, 1) or flat[5] != 0 or (stride0, stride2, step0, step2) != (1, 1, 1, 1):
        return False
    if taps0 != taps2 or taps0 not in limits.TAPS or sizes.outputs < limits.FEWEST_OUTPUTS:
        return False
    side, channels, outputs = 7 - taps0, sizes.channels, sizes.outputs
    across, down = -(-out2 // side), -(-out0 // side)
    if across > limits.MOST_ACROSS or sizes.batch * out0 * out2 * channels == 0:
        return False
    paid = limits.TILE_WORTH * channels * outputs
    paid += limits.CHANNEL_WORTH * channels * -(-outputs // wide)
    paid += limits.OUTPUT_WORTH * outputs * -(-channels // limits.CHANNELS)
    paid = paid * across * down * sizes.batch + limits.SUM_WORTH * channels * outputs
    products = taps0 * taps2 * channels * outputs * out0 * out2 * sizes.batch
    return products * limits.DIRECT_WORTH >= paid * 10


def _by_transforms(sizes: ConvolutionSizes, direct_worth: int) -> bool:
    """Whether Winograd's transforms are taken."""
    limits = convolution_transformed
    (_, taps0, out0, stride0, step0, _), (_, taps2, out2, stride2, step2, _) = sizes.axes[1:]
    own_taps, phases = -(-taps0 // stride0), stride0 * stride0
    if stride0 != stride2 or stride0 > limits.MOST_STRIDE or (step0, step2) != (1, 1):
        return False
    if own_taps not in limits.TAPS or (own_taps == 2 and phases == 1):
        return False
    if -(-taps2 // stride2) != own_taps:
        return False
    side, seen = 7 - own_taps, sizes.channels * phases
    across, down = -(-out2 // side), -(-out0 // side)
    if sizes.outputs < limits.FEWEST_OUTPUTS or across > limits.MOST_TILES or not sizes.channels:
        return False
    paid = limits.TILE_WORTH * seen + limits.SUMS_WORTH + limits.IMAGE_WORTH * seen // sizes.outputs
    paid *= across * down * sizes.batch
    paid += (limits.PHASES_WORTH if phases > 1 else limits.WEIGHTS_WORTH) * seen
    products = taps0 * taps2 * sizes.channels * out0 * out2 * sizes.batch
    worth = products * direct_worth >= paid * 10
    return out0 * out2 * 5 >= across * down * side * side * 2 and worth


def _by_channels(sizes: ConvolutionSizes, lanes: int, size: int) -> bool:
    """Whether what outputs add to an image has vectors along its channels."""
    limits, wide, channels, outputs = convolution_spread, 2 * lanes, sizes.channels, sizes.outputs
    image, taps, pixels = (prod(axis[k] for axis in sizes.axes) for k in (0, 1, 2))
    extent2, _, out2, stride2 = sizes.axes[2][:4]
    if not 0 < taps <= limits.TAPS or outputs * taps > limits.DEPTH:
        return False
    if sizes.batch * image * pixels == 0:
        return False
    if extent2 > limits.POSITIONS or min(out2, -(-extent2 // stride2)) * taps > limits.LISTED:
        return False
    planes, panels = sizes.batch * sizes.groups, -(-channels // wide)
    narrow, stays = 0 < channels % wide <= lanes, pixels * taps <= limits.LISTED
    products, values = planes * outputs * taps * pixels, planes * channels * taps * pixels
    paid = limits.PRODUCT_WORTH * products * (8 * panels - narrow)
    paid += paid // 2 if outputs * pixels * size > limits.FAR else 0
    paid += limits.ENTRY_WORTH * planes * taps * pixels * panels
    paid += limits.SUM_WORTH * planes * image * (2 * panels - narrow)
    paid += limits.LISTING_WORTH * taps * pixels * (1 if stays else planes * panels)
    paid += limits.TURNING_WORTH * sizes.groups * outputs * taps * panels
    direct = limits.DIRECT_WORTH * products * channels // lanes
    direct += limits.ADDED_WORTH * values if stride2 > 1 else limits.RUN_WORTH * values // lanes
    direct += limits.LINE_WORTH * values // out2
    direct += limits.IMAGE_WORTH * planes * channels * image // lanes
    direct += limits.WEIGHT_WORTH * planes * channels * outputs * taps // lanes
    return paid < direct


def _by_positions(sizes: ConvolutionSizes, lanes: int) -> bool:
    """Whether what adds to weights has vectors along the outputs."""
    limits, wide, channels, outputs = convolution_gathered, 2 * lanes, sizes.channels, sizes.outputs
    taps, pixels = (prod(axis[k] for axis in sizes.axes) for k in (1, 2))
    depth, planes, panels = taps * channels, sizes.batch * sizes.groups, -(-outputs // wide)
    if taps * sizes.batch * pixels == 0:
        return False
    extent2, _, out2, stride2, *_ = sizes.axes[2]
    if is_plain(sizes):  # an image is a line
        out2 = pixels
    narrow = 0 < outputs % wide <= lanes
    bordered = _is_bordered(sizes)
    if bordered:
        seen = prod((taps - 1) * step + 1 for _, taps, _, _, step, _ in sizes.axes[:2])
        seen *= (out2 - 1) * stride2 + (sizes.axes[2][1] - 1) * sizes.axes[2][4] + 1
        most = (limits.SUMS // -(-min(outputs, COLUMNS) // wide) + taps - 2) // taps + 1
        if out2 > limits.LONG or min(channels, most) * seen > limits.COPIED:
            return False
    at_once = limits.POSITIONS // pixels
    times = -(-sizes.batch // at_once) if at_once else -(-pixels // limits.POSITIONS) * sizes.batch
    paid = limits.PRODUCT_WORTH * planes * depth * pixels * (8 * panels - narrow)
    paid += planes * pixels * (limits.TURNING_WORTH * panels + limits.PLACE_WORTH)
    paid += sizes.groups * depth * panels * (limits.ROW_WORTH * times + limits.SUM_WORTH)
    if bordered:
        lines = planes * channels * sizes.axes[0][0] * sizes.axes[1][0]
        paid += lines * (limits.LINE_WORTH + limits.VECTOR_WORTH * extent2 // lanes)
    values = planes * depth * pixels
    direct = limits.DIRECT_WORTH * values * outputs // lanes + limits.BEGUN_WORTH
    direct += limits.COPIED_WORTH * values if stride2 > 1 else limits.RUN_WORTH * values // lanes
    direct += limits.COPY_WORTH * values // out2
    direct += limits.WEIGHT_WORTH * sizes.groups * depth * outputs
    direct += limits.UNIT_WORTH * planes * -(-depth // ROWS)
    return paid < direct


def _is_halved(sizes: ConvolutionSizes) -> bool:
    """Whether single channels are taken apart by a stride of two."""
    (extent0, taps0, _, _, step0, before0), (extent2, taps2, _, _, step2, before2) = sizes.axes[1:]
    near = (extent0 + 1) * (extent2 + 1) <= 2 * SCRATCH and taps0 * taps2 <= TAPPED
    return near and step0 == step2 == 1 and min(before0, before2) >= 0


def _is_bordered(sizes: ConvolutionSizes) -> bool:
    """Whether taps reach beyond an image."""
    return any(
        before > 0 or (out - 1) * stride - before > extent - 1 - (taps - 1) * step
        for extent, taps, out, stride, step, before in sizes.axes
    )


def _by_outputs(
    sizes: ConvolutionSizes, taps: int, positions: int, lanes: int, size: int
) -> bool:
    """Whether vectors lie along the outputs."""
    channels, outputs, wide = sizes.channels, sizes.outputs, 2 * lanes
    bordered = _is_bordered(sizes)
    most = convolution_turned.POSITIONS
    if bordered:
        most = min(most, convolution_turned.LISTED // (taps + 1))
    sparse = sizes.axes[2][3] > 1 or positions <= convolution_turned.FEW_PIXELS
    flat = sizes.axes[0][:3] == (1, 1, 1) and sizes.axes[0][5] == 0
    seen = min(positions * sizes.batch, most)
    strides = prod(axis[3] for axis in sizes.axes)
    return (
        1 < taps <= convolution_first.TABLE
        and (outputs % wide == 0 or outputs >= 4 * wide)
        and (sparse or not flat)
        and (sparse or taps * channels >= convolution_turned.DEEP)
        and (sparse or most >= convolution_turned.MANY_POSITIONS)
        and taps * channels * outputs >= convolution_turned.FEWEST_PRODUCTS
        and (channels >= convolution_turned.FEW_CHANNELS or not bordered)
        and seen * channels * strides * size <= convolution_turned.NEAR_IMAGE
        and seen >= convolution_turned.FEWEST_POSITIONS
    )
