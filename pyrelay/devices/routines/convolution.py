"""Convolutions: source texts of kernels that read patches of an image and multiply them.

In: a dtype, and which of the three products of ``ops.convolution`` is wanted; out: one kernel's
text (ABI of ``kernel_compiler``) for images of one to three axes, of every size, stride, dilation
and number of groups. Patches never lie in memory as a whole (implicit GEMM; Chetlur et al., *cuDNN:
Efficient Primitives for Deep Learning*, 2014): a block of them lies in the frame of the kernel,
gathered there for the register tiles of ``matmul_blocks`` to read, or written there by them and
then added to the image. Convolutions of single channels, where that would be a product with one
row, are sums of shifted lines, and their derivatives without a stride, or with one of two, sums by
taps (``tap_sums``).
``convolution_first`` has the kernel ``forward`` for images with the channels first. Parameters:

    block[1..3]      addresses of the first operand, the second one and the result
    block[4..7]      batch N, groups G, channels of a group in the image (C) and in the outputs (O)
    block[8..25]     six words for each of three axes: extent of the image, of the weights, of the
                     outputs; stride, dilation, and how many zeros come before the image
    block[26..27]    ``forward`` with the channels first: the address of a kernel that finishes the
                     outputs (``lower/planning/finishing.py``), or 0; how many operands that has
    block[28 ...]    the operands of the finishing kernel

    image    [N, G, C, *extents], or [N, *extents, G, C] with the channels last
    weights  [G, O, C, *extents], or [*extents, C, G, O]
    outputs  [N, G, O, *extents], or [N, *extents, G, O]

The parallel axis counts blocks of work by groups by blocks of ``COLUMNS`` channels of the result
(``forward`` with the channels first: of ``convolution_first.OUTPUTS``):

    forward  image, weights -> outputs: blocks of ``PIXELS`` positions, of one image, or of all of
             them with the channels last
    weights  image, outputs -> weights: blocks of ``ROWS`` channels and taps; with the channels
             first by ``convolution_gathered``, or of ``f32`` without a stride by
             ``convolution_weights``
    back     outputs, weights -> image: images (here the channels of the result are the C); with
             the channels first by ``convolution_spread``, or of ``f32`` without a stride by
             ``convolution_transformed``

With the channels last LLVM vectorises innermost loops, and no element is written twice in one of
those.
"""

from __future__ import annotations

import functools
from textwrap import dedent

from pyrelay.devices.routines.convolution_first import PIXELS, SHORT, forward_kernel
from pyrelay.devices.routines.convolution_gathered import gathered_loop
from pyrelay.devices.routines.convolution_lines import LINES, NEXT, SIZES
from pyrelay.devices.routines.convolution_spread import spread_loop
from pyrelay.devices.routines.convolution_transformed import (
    BACK_NAMES,
    transformed_loop,
    transformed_parts,
)
from pyrelay.devices.routines.convolution_weights import weights_loop, weights_parts
from pyrelay.devices.routines.kernel_text import counted_on, filled
from pyrelay.devices.routines.matmul import COLUMN_UNIT, ROW_UNIT, native_vector_bits
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import BACK, FORWARD, WEIGHTS

ROWS = 240
COLUMNS = 128
DEPTH = 256
SCRATCH = 256 * DEPTH
TAPPED = 1024  # taps of channels by themselves that are halved

_KERNEL = """\
from pyrelay.devices.routines.matmul_blocks import product_{vectors}
{calls}
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = {by_hand}


def kernel(block, begin, end):
    patches = local_{dtype}({scratch_all})
    {transformed}
    {first}, factor, result = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
    batch, groups = param_i64(block, 4), param_i64(block, 5)
    channels, outputs = param_i64(block, 6), param_i64(block, 7)
    {sizes}
    depth_all = taps0 * taps1 * taps2 * channels
    column_blocks = ({of_result} + {columns_most}) // {columns}
    {tiled}
    nothing = {dtype}(0)
    product = local_i64(16)
    for unit in range(begin, end):
        column_block = unit % column_blocks
        rest = unit // column_blocks
        o0 = column_block * {columns}
        o_count = {of_result} - o0 if {of_result} - o0 < {columns} else {columns}
        {loop}
    return 0
"""

_COPIES = """\
from pyrelay.devices.routines.offset_product import copy_lines_{vectors}, copy_run_{vectors}
"""
_DOTS = "from pyrelay.devices.routines.tap_sums import tap_dots_{vectors}\n"
_ADDS = """\
from pyrelay.devices.routines.offset_product import add_run_{vectors}
from pyrelay.devices.routines.tap_sums import tap_joins_{vectors}, tap_sums_{vectors}
"""
_RUNS = "from pyrelay.devices.routines.offset_product import copy_run_{vectors}\n"
_TURNED_PARTS = """\
from pyrelay.devices.routines.offset_product import copy_lines_{vectors}
from pyrelay.devices.routines.turned_product import (
    turned_product_{vectors}, turned_sums_{vectors}, turned_weights_{vectors})
"""
_GATHERED_PARTS = {
    "f32": "from pyrelay.devices.routines.turned_product import turned_product_{vectors}\n",
    "f64": """\
from pyrelay.devices.routines.turned_product import (
    turned_product_{vectors}, turned_sums_{vectors}, turned_weights_{vectors})
""",
}

_SIZES = """\
extent0, extent1, extent2 = param_i64(block, 8), param_i64(block, 14), param_i64(block, 20)
taps0, taps1, taps2 = param_i64(block, 9), param_i64(block, 15), param_i64(block, 21)
out0, out1, out2 = param_i64(block, 10), param_i64(block, 16), param_i64(block, 22)
stride0, stride1, stride2 = param_i64(block, 11), param_i64(block, 17), param_i64(block, 23)
step0, step1, step2 = param_i64(block, 12), param_i64(block, 18), param_i64(block, 24)
before0, before1, before2 = param_i64(block, 13), param_i64(block, 19), param_i64(block, 25)
image = extent0 * extent1 * extent2
pixels = out0 * out1 * out2
"""

_PRODUCT = """\
added = {added}
store_ordered_i64(product, 1, {a})
store_ordered_i64(product, 2, {b})
store_ordered_i64(product, 3, {c})
store_ordered_i64(product, 4, {m})
store_ordered_i64(product, 5, {n})
store_ordered_i64(product, 6, {k})
store_ordered_i64(product, 7, {a_turned})
store_ordered_i64(product, 8, {b_turned})
store_ordered_i64(product, 9, added)
store_ordered_i64(product, 10, {a_line})
store_ordered_i64(product, 11, {b_line})
store_ordered_i64(product, 12, {c_line})
store_ordered_i64(product, 13, 0)
store_ordered_i64(product, 14, 0)
row_units = ({m} + {row_unit_most}) // {row_unit}
product_{vectors}(product, 0, row_units * (({n} + {column_unit_most}) // {column_unit}))
"""

# Patches of positions p0 ... p0 + p_count of all images, their values k0 ... k0 + k_count: a
# position's values side by side. Of adjacent taps, channels and all, the values are adjacent in x.
_GATHER_LAST = """\
line = groups * channels
merged = groups == 1 and step2 == 1
run_all = taps2 * channels if merged else channels
runs = 1 if merged else taps2
first_run, first_at = k0 // run_all, k0 % run_all
first_tap2, first_rest = first_run % runs, first_run // runs
first_tap1, first_tap0 = first_rest % taps1, first_rest // taps1
entry, q = p0 // pixels, p0 % pixels
q2, q_rest = q % out2, q // out2
q1, q0 = q_rest % out1, q_rest // out1
for r in range(p_count):
    source_all = entry * image * line + group * channels
    tap0, tap1, tap2 = first_tap0, first_tap1, first_tap2
    at = first_at
    target = r * k_count
    left = k_count
    while left > 0:
        {seen}
        inside = t0 >= 0 and t0 < extent0 and t1 >= 0 and t1 < extent1
        run = run_all - at if run_all - at < left else left
        low = at
        high = at
        if inside:
            if merged:
                low = -t2 * line
                high = (extent2 - t2) * line
            elif t2 >= 0 and t2 < extent2:
                low = 0
                high = channels
            low = at if low < at else (at + run if low > at + run else low)
            high = low if high < low else (at + run if high > at + run else high)
        source = source_all + ((t0 * extent1 + t1) * extent2 + t2) * line
        offset = target - at
        for j in range(at, low):
            store_{dtype}(patches, offset + j, nothing)
        for j in range(low, high):
            store_{dtype}(patches, offset + j, load_{dtype}(x, source + j))
        for j in range(high, at + run):
            store_{dtype}(patches, offset + j, nothing)
        target += run
        left -= run
        at = 0
        {next_run}
    {next_position}
"""

# Every channel by itself, last: the channels of a position are summed side by side.
_SINGLE_LAST = """\
if group == 0:
    q2, q_rest = p0 % pixels % out2, p0 % pixels // out2
    q1, q0 = q_rest % out1, q_rest // out1
    entry = p0 // pixels
    for r in range(p_count):
        target = (p0 + r) * groups
        for c in range(groups):
            store_{dtype}(result, target + c, nothing)
        for tap in range(taps0 * taps1 * taps2):
            tap_rest = tap // taps2
            t0 = q0 * stride0 + tap_rest // taps1 * step0 - before0
            t1 = q1 * stride1 + tap_rest % taps1 * step1 - before1
            t2 = q2 * stride2 + tap % taps2 * step2 - before2
            inside = t0 >= 0 and t0 < extent0 and t1 >= 0 and t1 < extent1
            if inside and t2 >= 0 and t2 < extent2:
                source = (((entry * extent0 + t0) * extent1 + t1) * extent2 + t2) * groups
                weights = tap * groups
                for c in range(groups):
                    term = load_{dtype}(x, source + c) * load_{dtype}(factor, weights + c)
                    store_{dtype}(result, target + c, load_{dtype}(result, target + c) + term)
        {next_position}
continue
"""

_FORWARD_LAST = """\
group, p0 = rest % groups, rest // groups * {pixels}
p_left = batch * pixels - p0
p_count = p_left if p_left < {pixels} else {pixels}
if channels == 1 and outputs == 1:
    {single}
k0 = 0
while k0 == 0 or k0 < depth_all:
    k_count = depth_all - k0 if depth_all - k0 < {depth} else {depth}
    {gather}
    {product}
    k0 += {depth}
"""

_WEIGHTS_LAST = """\
group, k0 = rest % groups, rest // groups * {rows}
k_count = depth_all - k0 if depth_all - k0 < {rows} else {rows}
p0 = 0
while p0 == 0 or p0 < batch * pixels:
    p_left = batch * pixels - p0
    p_count = p_left if p_left < {depth} else {depth}
    {gather}
    {product}
    p0 += {depth}
"""

_WEIGHTS_FIRST = """\
group, k0 = rest % groups, rest // groups * {rows}
k_count = depth_all - k0 if depth_all - k0 < {rows} else {rows}
if channels == 1 and outputs == 1 and flat and stride0 == 1 and stride2 == 1:
    if k0 > 0:
        continue
    clear_bytes(result + group * depth_all * {size}, depth_all * {size})
    for entry in range(batch):
        plane = entry * groups + group
        tap_dots_{vectors}(
            factor + plane * pixels * {size}, out0, out2, x + plane * image * {size}, extent0,
            extent2, result + group * depth_all * {size}, 1, taps0, taps2, step0, step2, before0,
            before2)
    continue
halved = channels == 1 and outputs == 1 and flat and stride0 == 2 and stride2 == 2
halved = halved and step0 == 1 and step2 == 1 and before0 >= 0 and before2 >= 0
if halved and taps0 * taps2 <= {tapped} and (extent0 + 1) * (extent2 + 1) <= 2 * {scratch}:
    # Every second row and column, from each of four beginnings: those have no stride.
    if k0 > 0:
        continue
    own = local_{dtype}({tapped})
    for phase in range(4):
        from0, from2 = phase // 2, phase % 2
        tap0, tap2 = (from0 + before0) % 2, (from2 + before2) % 2
        own0, own2 = (taps0 - tap0 + 1) // 2, (taps2 - tap2 + 1) // 2
        rows_seen, columns_seen = (extent0 - from0 + 1) // 2, (extent2 - from2 + 1) // 2
        clear_bytes(own, own0 * own2 * {size})
        for entry in range(batch):
            plane = entry * groups + group
            copy_lines_{vectors}(
                patches, columns_seen, x + (plane * image + from0 * extent2 + from2) * {size},
                2 * extent2, rows_seen, 0, rows_seen, 0, columns_seen, columns_seen, 2)
            tap_dots_{vectors}(
                factor + plane * pixels * {size}, out0, out2, patches, rows_seen, columns_seen,
                own, 1, own0, own2, 1, 1, (before0 + from0 - tap0) // 2,
                (before2 + from2 - tap2) // 2)
        for k in range(own0 * own2):
            at = (tap0 + k // own2 * 2) * taps2 + tap2 + k % own2 * 2
            store_{dtype}(result, group * depth_all + at, load_{dtype}(own, k))
    continue
planes = taps0
plane_step = step0
variants = taps1 * taps2
lines = planes * variants
p0 = 0
entry = 0
while entry == 0 or entry < batch:
    p_count = pixels - p0 if pixels - p0 < {depth} else {depth}
    p_count = p_count if entry < batch else 0
    first_q2, q_rest = p0 % out2, p0 // out2
    first_q1, first_q0 = q_rest % out1, q_rest // out1
    q_count = (first_q2 + p_count + out2 - 1) // out2
    line = (q_count * out2 + {per_line} - 1) // {per_line} * {per_line}
    by_rows = flat and out2 <= {short} and k_count * line <= {scratch}
    span = q_count * out2 if by_rows else p_count
    skipped = first_q2 if by_rows else 0
    line = (span + {per_line} - 1) // {per_line} * {per_line}
    r0 = k0
    r_count = k_count
    {gather}
    {product}
    p0 += {depth}
    if p0 >= pixels:
        p0 = 0
        entry += 1
"""

# The columns of channels and taps by positions p0 ... p0 + p_count of an image are added to it.
_SCATTER_FIRST = """\
first_q2, q_rest = p0 % out2, p0 // out2
first_q1, first_q0 = q_rest % out1, q_rest // out1
for r in range(rows):
    channel, tap = r // taps, r % taps
    tap2, tap_rest = tap % taps2, tap // taps2
    tap1, tap0 = tap_rest % taps1, tap_rest // taps1
    q0, q1, q2 = first_q0, first_q1, first_q2
    source = r * p_count
    left = p_count
    while left > 0:
        {seen}
        run = out2 - q2 if out2 - q2 < left else left
        if t0 >= 0 and t0 < extent0 and t1 >= 0 and t1 < extent1:
            low = (stride2 - 1 - t2) // stride2 if t2 < 0 else 0
            high = (extent2 - t2 + stride2 - 1) // stride2
            low = run if low > run else low
            high = low if high < low else (run if high > run else high)
            target = ((plane + channel) * extent0 + t0) * extent1 + t1
            target = target * extent2 + t2
            if stride2 == 1:
                add_run_{vectors}(
                    result + (target + low) * {size}, patches + (source + low) * {size}, one,
                    high - low)
            else:
                for j in range(low, high):
                    at = target + j * stride2
                    term = load_{dtype}(patches, source + j)
                    store_{dtype}(result, at, load_{dtype}(result, at) + term)
        source += run
        left -= run
        q2 = 0
        {next_row}
"""

_BACK_FIRST = """\
group, entry = rest % groups, rest // groups
taps = taps0 * taps1 * taps2
share = {pixels} // taps if taps < {pixels} else 1
plane_all = (entry * groups + group) * channels
flat = extent0 == 1 and taps0 == 1 and out0 == 1 and before0 == 0
if channels == 1 and outputs == 1 and flat and stride1 == 1 and stride2 == 1:
    tap_sums_{vectors}(
        result + plane_all * image * {size}, extent1, extent2,
        y + plane_all * pixels * {size}, out1, out2,
        factor + (group * taps + taps - 1) * {size}, -1, taps1, taps2, step1, step2,
        step1 * (taps1 - 1) - before1, step2 * (taps2 - 1) - before2)
    continue
halved = channels == 1 and outputs == 1 and flat and stride1 == 2 and stride2 == 2
halved = halved and step1 == 1 and step2 == 1 and before1 >= 0 and before2 >= 0
if halved and taps <= {tapped} and (extent1 + 1) * (extent2 + 1) <= 2 * {scratch}:
    # Every second row and column, from each of four beginnings: those have no stride.
    own = local_{dtype}({tapped})
    half = patches + ({scratch} // 2) * {size}
    for phase in range(4):
        from1, from2 = phase // 2, phase % 2
        tap1, tap2 = (from1 + before1) % 2, (from2 + before2) % 2
        own1, own2 = (taps1 - tap1 + 1) // 2, (taps2 - tap2 + 1) // 2
        rows_seen, columns_seen = (extent1 - from1 + 1) // 2, (extent2 - from2 + 1) // 2
        for k in range(own1 * own2):
            at = (tap1 + k // own2 * 2) * taps2 + tap2 + k % own2 * 2
            store_{dtype}(own, own1 * own2 - 1 - k, load_{dtype}(factor, group * taps + at))
        tap_sums_{vectors}(
            half if from2 == 1 else patches, rows_seen, columns_seen,
            y + plane_all * pixels * {size}, out1, out2, own, 1, own1, own2, 1, 1,
            own1 - 1 - (before1 + from1 - tap1) // 2, own2 - 1 - (before2 + from2 - tap2) // 2)
        if from2 == 1:
            tap_joins_{vectors}(
                result + (plane_all * image + from1 * extent2) * {size}, 2 * extent2, rows_seen,
                extent2, patches, (extent2 + 1) // 2, half, columns_seen)
    continue
# One tap without a stride: the product is the image.
plain = taps * stride0 * stride1 * stride2 == 1 and pixels == image and outputs > 0
plain = plain and before0 == 0 and before1 == 0 and before2 == 0 and channels * outputs != 1
if not plain:
    clear_bytes(result + (plane_all + o0) * image * {size}, o_count * image * {size})
one = local_{dtype}(1)
store_{dtype}(one, 0, {dtype}(1))
c0 = o0
share = o_count if plain else share
while c0 < o0 + o_count:
    c_count = o0 + o_count - c0 if o0 + o_count - c0 < share else share
    rows = c_count * taps
    p_most = {scratch} // rows if rows > 0 else 1
    p_most = p_most if p_most < {depth} else {depth}
    p_most = pixels if plain else p_most
    plane = plane_all + c0
    made = result + plane * image * {size} if plain else patches
    p0 = 0
    while p0 < pixels:
        p_count = pixels - p0 if pixels - p0 < p_most else p_most
        if channels == 1 and outputs == 1:
            {single}
        else:
            {product}
        if not plain:
            {scatter}
        p0 += p_most
    c0 += share
"""

# Of a single channel, the columns are the outputs times a weight each.
_SINGLE_BACK_FIRST = """\
clear_bytes(patches, rows * p_count * {size})
for r in range(rows):
    add_run_{vectors}(
        patches + r * p_count * {size}, y + ((entry * groups + group) * pixels + p0) * {size},
        factor + (group * taps + r) * {size}, p_count)
"""

_BACK_LAST = """\
group, entry = rest % groups, rest // groups
line = groups * channels
single = channels == 1 and outputs == 1
width = groups if single else o_count
first = entry * image * line + group * channels + o0
if single and group != 0:
    continue
for pixel in range(image):
    for c in range(width):
        store_{dtype}(result, first + pixel * line + c, nothing)
p0 = 0
while p0 < pixels:
    p_count = pixels - p0 if pixels - p0 < {depth} else {depth}
    for tap in range(taps0 * taps1 * taps2):
        if not single:
            {product}
        tap2, tap_rest = tap % taps2, tap // taps2
        tap1, tap0 = tap_rest % taps1, tap_rest // taps1
        q2, q_rest = p0 % out2, p0 // out2
        q1, q0 = q_rest % out1, q_rest // out1
        for r in range(p_count):
            {seen}
            inside = t0 >= 0 and t0 < extent0 and t1 >= 0 and t1 < extent1
            if inside and t2 >= 0 and t2 < extent2:
                target = first + ((t0 * extent1 + t1) * extent2 + t2) * line
                if single:
                    source, weights = (entry * pixels + p0 + r) * groups, tap * groups
                    for c in range(width):
                        term = load_{dtype}(y, source + c) * load_{dtype}(factor, weights + c)
                        store_{dtype}(result, target + c, load_{dtype}(result, target + c) + term)
                else:
                    for c in range(width):
                        term = load_{dtype}(patches, r * width + c)
                        store_{dtype}(result, target + c, load_{dtype}(result, target + c) + term)
            {next_of_image}
    p0 += {depth}
"""

#: (what, channels last) -> the loop, and its product: addresses (in elements), sizes and lines.
_FORMS: dict[tuple[str, bool], tuple[str, dict[str, str]]] = {
    (FORWARD, True): (_FORWARD_LAST, {
        "a": "patches", "a_line": "k_count", "a_turned": "0", "added": "1 if k0 > 0 else 0",
        "b": "factor + ((k0 * groups + group) * outputs + o0) * {size}",
        "b_line": "groups * outputs", "b_turned": "0",
        "c": "result + ((p0 * groups + group) * outputs + o0) * {size}",
        "c_line": "groups * outputs", "m": "p_count", "n": "o_count", "k": "k_count",
    }),
    (WEIGHTS, True): (_WEIGHTS_LAST, {
        "a": "patches", "a_line": "k_count", "a_turned": "1", "added": "1 if p0 > 0 else 0",
        "b": "factor + ((p0 * groups + group) * outputs + o0) * {size}",
        "b_line": "groups * outputs", "b_turned": "0",
        "c": "result + ((k0 * groups + group) * outputs + o0) * {size}",
        "c_line": "groups * outputs", "m": "k_count", "n": "o_count", "k": "p_count",
    }),
    (WEIGHTS, False): (_WEIGHTS_FIRST, {
        "a": "factor + (((entry * groups + group) * outputs + o0) * pixels + p0) * {size}",
        "a_line": "pixels", "a_turned": "0", "added": "1 if p0 + entry > 0 else 0",
        "b": "patches + skipped * {size}", "b_line": "line", "b_turned": "1",
        "c": "result + ((group * outputs + o0) * depth_all + k0) * {size}",
        "c_line": "depth_all", "m": "o_count", "n": "k_count", "k": "p_count",
    }),
    (BACK, True): (_BACK_LAST, {
        "a": "y + (((entry * pixels + p0) * groups + group) * outputs) * {size}",
        "a_line": "groups * outputs", "a_turned": "0", "added": "0",
        "b": "factor + (((tap * channels + o0) * groups + group) * outputs) * {size}",
        "b_line": "groups * outputs", "b_turned": "1",
        "c": "patches", "c_line": "width", "m": "p_count", "n": "width", "k": "outputs",
    }),
    (BACK, False): (_BACK_FIRST, {
        "a": "factor + (group * outputs * channels + c0) * taps * {size}",
        "a_line": "channels * taps", "a_turned": "1", "added": "0",
        "b": "y + ((entry * groups + group) * outputs * pixels + p0) * {size}",
        "b_line": "pixels", "b_turned": "0",
        "c": "made", "c_line": "p_count", "m": "rows", "n": "p_count", "k": "outputs",
    }),
}  # fmt: skip


#: What stands in several of the texts.
_PARTS = {
    **NEXT,
    "next_run": counted_on([("tap2", "runs"), ("tap1", "taps1")], "tap0 += 1"),
    "next_of_image": counted_on([("q2", "out2"), ("q1", "out1")], "q0 += 1"),
    "next_position": counted_on([("q2", "out2"), ("q1", "out1"), ("q0", "out0")], "entry += 1"),
    "seen": """\
t0 = q0 * stride0 + tap0 * step0 - before0
t1 = q1 * stride1 + tap1 * step1 - before1
t2 = q2 * stride2 + tap2 * step2 - before2
""",
}


@functools.cache
def convolution_kernel(
    dtype: DType, what: str, channels_last: bool, vector_bits: int | None = None
) -> str:
    """The text of a kernel for ``f32`` or ``f64``; ``what``: one of ``lower.planning.target``."""
    if what == FORWARD and not channels_last:
        return forward_kernel(dtype, vector_bits)
    bits = native_vector_bits() if vector_bits is None else vector_bits
    names: dict[str, object] = {
        "dtype": dtype.name, "size": dtype.size,
        "vectors": f"{dtype.name}x{bits // 8 // dtype.size}",
        "columns": COLUMNS, "columns_most": COLUMNS - 1, "scratch": SCRATCH,
        "scratch_all": SCRATCH + 64, "depth": DEPTH, "short": SHORT, "per_line": 64 // dtype.size,
        "pixels": PIXELS, "pixels_most": PIXELS - 1, "rows": ROWS, "row_unit": ROW_UNIT,
        "tapped": TAPPED, "row_unit_most": ROW_UNIT - 1, "column_unit": COLUMN_UNIT,
        "column_unit_most": COLUMN_UNIT - 1, "by_hand": not channels_last,
    }  # fmt: skip
    names["first"] = "y" if what == BACK else "x"
    names["of_result"] = "channels" if what == BACK else "outputs"
    loop, operands = _FORMS[what, channels_last]
    names.update((name, text.format(**names)) for name, text in operands.items())
    parts = {
        "calls": "", "transformed": "", "tiled": "", **_PARTS, "product": _PRODUCT, "loop": loop,
        "scatter": _SCATTER_FIRST, "gather": _GATHER_LAST if channels_last else LINES,
        "sizes": SIZES if what == WEIGHTS and not channels_last else _SIZES,
        "single": _SINGLE_BACK_FIRST if what == BACK else _SINGLE_LAST,
    }
    if not channels_last:
        parts["calls"] = _ADDS if what == BACK else _COPIES + _DOTS
    lanes = bits // 8 // dtype.size
    if what == WEIGHTS and dtype.name == "f32" and not channels_last:
        parts["calls"] += weights_parts(lanes)
        parts["tiled"] = "y = factor\n" + weights_loop(lanes, ROWS)
    if what == WEIGHTS and not channels_last:
        parts["calls"] += _GATHERED_PARTS[dtype.name]
        parts["tiled"] += "variants = taps1 * taps2\n" + gathered_loop(dtype, lanes, ROWS, COLUMNS)
    if what == BACK and not channels_last:
        parts["calls"] += _TURNED_PARTS
        parts["tiled"] = spread_loop(dtype, lanes, COLUMNS)
    if what == BACK and dtype.name == "f32" and not channels_last:
        parts["calls"] += _RUNS + transformed_parts(lanes)
        parts["transformed"] = BACK_NAMES + dedent(transformed_loop(lanes, back=True))
    return filled(_KERNEL, {**parts, **names})
