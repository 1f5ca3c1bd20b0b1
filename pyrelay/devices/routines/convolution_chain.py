"""Convolutions of single channels between such of one tap: source texts of kernels.

In: a dtype and a vector width; out: the text of a kernel (ABI of ``kernel_compiler``) that computes
a layer of one tap, what every channel gives by itself, and another layer of one tap from that, as
mobile networks are made of (Sandler et al., *MobileNetV2: Inverted Residuals and Linear
Bottlenecks*, 2018), some rows of positions of one image at a time, and of them some channels at a
time: what lies between the layers stays in the second cache and has no place in memory. Images have
the channels first. The first layer may be absent. Parameters:

    block[1..5]      addresses of the image, of the weights of the three layers (0 for a layer that
                     is absent) and of the result
    block[6..9]      entries, channels of the image (0 without a first layer), channels between the
                     layers (M), outputs
    block[10]        bands of rows of an image
    block[11..22]    six words for the rows and the columns, as in ``convolution``
    block[23]        the address of the kernel ``forward`` of ``convolution_first``
    block[24..29]    for each layer the address of a kernel that finishes it
                     (``lower/planning/finishing.py``), in place but for the last, or 0; how many
                     operands that has
    block[30 ...]    the operands of the finishing kernels, one after another

    image    [N, C, rows, columns], or [N, M, ...] without a first layer
    weights  [M, C], [M, taps of a column, taps of a row], [outputs, M]
    result   [N, outputs, rows, columns]

The parallel axis counts bands of all entries. Sums do not depend on how it is cut.
"""

from __future__ import annotations

import functools

from pyrelay.devices.routines.convolution_first import PIXELS, vectors_across
from pyrelay.devices.routines.kernel_text import filled
from pyrelay.devices.routines.matmul import FINISHING_OPERANDS, native_vector_bits
from pyrelay.ir.types import DType

ROOM = 192 * 1024
"""Bytes of what lies between two layers, of some channels and rows."""
CHANNELS = 24
"""Channels at a time, or so many times as many: whole register tiles of any width."""
_DEPTH = 192  # most channels whose sums are added up at a time, and most of the image
_OPERANDS = 5 + FINISHING_OPERANDS

_KERNEL = """\
from pyrelay.devices.routines.offset_product import offset_product_{vectors}
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    x, w1, w2 = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
    w3, y = param_i64(block, 4), param_i64(block, 5)
    channels, between, outputs = param_i64(block, 7), param_i64(block, 8), param_i64(block, 9)
    bands = param_i64(block, 10)
    extent0, taps0, out0 = param_i64(block, 11), param_i64(block, 12), param_i64(block, 13)
    stride0, step0, before0 = param_i64(block, 14), param_i64(block, 15), param_i64(block, 16)
    extent2, taps2, out2 = param_i64(block, 17), param_i64(block, 18), param_i64(block, 19)
    image, pixels = extent0 * extent2, out0 * out2
    finisher1, count1 = param_i64(block, 24), param_i64(block, 25)
    finisher2, count2 = param_i64(block, 26), param_i64(block, 27)
    finisher3, count3 = param_i64(block, 28), param_i64(block, 29)
    wide, single = local_{dtype}({room_all}), local_{dtype}({room_all})
    panel, edge = local_{dtype}({panel}), local_{dtype}({panel})
    lines, places = local_i64({depth}), local_i64({depth})
    words, layer = local_i64(16), local_i64(28)
    finishing1, finishing2 = local_i64({operands}), local_i64({operands})
    finishing3 = local_i64({operands})
    unit = begin
    if unit < end:
        for k in range({depth}):
            store_ordered_i64(places, k, k * {across})
        store_ordered_i64(words, 10, 1)
        store_ordered_i64(words, 11, panel)
        store_ordered_i64(words, 12, places)
        store_ordered_i64(words, 13, 0)
        store_ordered_i64(words, 14, 0)
        # The layer of single channels, of which some rows of some channels are wanted at a time.
        store_ordered_i64(layer, 0, param_i64(block, 0))
        store_ordered_i64(layer, 4, 1)
        store_ordered_i64(layer, 6, 1)
        store_ordered_i64(layer, 7, 1)
        for k in range(5):
            store_ordered_i64(layer, 8 + k, 1)
        store_ordered_i64(layer, 13, 0)
        for k in range(12):
            store_ordered_i64(layer, 14 + k, load_ordered_i64(block, 11 + k))
        store_ordered_i64(layer, 26, 0)
        store_ordered_i64(layer, 27, 0)
        for k in range(count1):
            store_ordered_i64(finishing1, 5 + k, load_ordered_i64(block, 30 + k))
        for k in range(count2):
            store_ordered_i64(finishing2, 5 + k, load_ordered_i64(block, 30 + count1 + k))
        for k in range(count3):
            operand = load_ordered_i64(block, 30 + count1 + count2 + k)
            store_ordered_i64(finishing3, 5 + k, operand)
        store_ordered_i64(finishing1, 0, param_i64(block, 0))
        store_ordered_i64(finishing2, 0, param_i64(block, 0))
        store_ordered_i64(finishing3, 0, param_i64(block, 0))
        store_ordered_i64(finishing3, 1, y)
        store_ordered_i64(finishing3, 4, pixels)
    while unit < end:
        entry, band = unit // bands, unit % bands
        unit += 1
        q0, q_end = band * out0 // bands, (band + 1) * out0 // bands
        if q0 < q_end:
            # The rows of the image that these rows of the result see.
            t0, t_end = q0 * stride0 - before0, (q_end - 1) * stride0 - before0
            t_end += (taps0 - 1) * step0 + 1
            t0 = 0 if t0 < 0 or channels == 0 else t0
            t_end = extent0 if t_end > extent0 or channels == 0 else t_end
            t_end = t0 if t_end < t0 else t_end
            seen, made = (t_end - t0) * extent2, (q_end - q0) * out2
            store_ordered_i64(layer, 14, t_end - t0)
            store_ordered_i64(layer, 16, q_end - q0)
            store_ordered_i64(layer, 19, before0 - q0 * stride0 + t0)
            # So many channels at a time, and so many of what single channels give.
            most = {depth} if {room} // made > {depth} else {room} // made
            each = {room} // seen if channels > 0 and seen > 0 and {room} // seen < most else most
            if each >= {channels}:
                each = each // {channels} * {channels}
            most = most // each * each
            m_first = 0
            while m_first < between:
                m_count = between - m_first if between - m_first < most else most
                m0 = m_first
                while m0 < m_first + m_count:
                    count = m_first + m_count - m0 if m_first + m_count - m0 < each else each
                    row = entry * between + m0
                    source = x + row * image * {size}
                    if channels > 0:
                        source = wide
                        {first}
                    to = single + (m0 - m_first) * made * {size}
                    store_ordered_i64(layer, 1, source)
                    store_ordered_i64(layer, 2, w2 + m0 * taps0 * taps2 * {size})
                    store_ordered_i64(layer, 3, to)
                    store_ordered_i64(layer, 5, count)
                    parts = (made + {pixels_most}) // {pixels}
                    call_address(param_i64(block, 23), layer, 0, count * parts)
                    if finisher2 != 0:
                        at = to - (row * made + q0 * out2) * {size}
                        store_ordered_i64(finishing2, 1, at)
                        store_ordered_i64(finishing2, 2, q0 * out2)
                        store_ordered_i64(finishing2, 3, q_end * out2)
                        store_ordered_i64(finishing2, 4, made)
                        call_address(finisher2, finishing2, row, row + count)
                    m0 += each
                {last}
                m_first += most
            if finisher3 != 0:
                store_ordered_i64(finishing3, 2, q0 * out2)
                store_ordered_i64(finishing3, 3, q_end * out2)
                call_address(finisher3, finishing3, entry * outputs, (entry + 1) * outputs)
    return 0
"""

# Channels m0 ... m0 + count of the first layer. Vectors that are whole are read where they lie; of
# what is left over there is a copy, as nothing may be read behind the image.
_FIRST = """\
c0 = 0
while c0 < channels:
    c_count = channels - c0 if channels - c0 < {depth} else {depth}
    plane = (entry * channels + c0) * image + t0 * extent2
    store_ordered_i64(words, 0, w1 + (m0 * channels + c0) * {size})
    store_ordered_i64(words, 1, channels)
    store_ordered_i64(words, 4, seen)
    store_ordered_i64(words, 6, count)
    store_ordered_i64(words, 8, c_count)
    store_ordered_i64(words, 9, c0)
    whole = seen // {lanes} * {lanes}
    if whole > 0:
        for k in range(c_count):
            store_ordered_i64(lines, k, k * image)
        store_ordered_i64(words, 2, x + plane * {size})
        store_ordered_i64(words, 3, wide)
        store_ordered_i64(words, 5, lines)
        store_ordered_i64(words, 7, whole)
        offset_product_{vectors}(words)
    if whole < seen:
        for k in range(c_count):
            for j in range(seen - whole):
                value = load_inner_{dtype}(x, plane + k * image + whole + j)
                store_inner_{dtype}(edge, k * {across} + j, value)
        store_ordered_i64(words, 2, edge)
        store_ordered_i64(words, 3, wide + whole * {size})
        store_ordered_i64(words, 5, places)
        store_ordered_i64(words, 7, seen - whole)
        offset_product_{vectors}(words)
    c0 += {depth}
if finisher1 != 0:
    store_ordered_i64(finishing1, 1, wide - (row * seen + t0 * extent2) * {size})
    store_ordered_i64(finishing1, 2, t0 * extent2)
    store_ordered_i64(finishing1, 3, t_end * extent2)
    store_ordered_i64(finishing1, 4, seen)
    call_address(finisher1, finishing1, row, row + count)
"""

# What m_count channels add to the outputs.
_LAST = """\
for k in range(m_count):
    store_ordered_i64(lines, k, k * made)
store_ordered_i64(words, 0, w3 + m_first * {size})
store_ordered_i64(words, 1, between)
store_ordered_i64(words, 2, single)
store_ordered_i64(words, 3, y + (entry * outputs * pixels + q0 * out2) * {size})
store_ordered_i64(words, 4, pixels)
store_ordered_i64(words, 5, lines)
store_ordered_i64(words, 6, outputs)
store_ordered_i64(words, 7, made)
store_ordered_i64(words, 8, m_count)
store_ordered_i64(words, 9, m_first)
offset_product_{vectors}(words)
"""


@functools.cache
def chain_kernel(dtype: DType, vector_bits: int | None = None) -> str:
    """The text of the kernel for ``f32`` or ``f64``.

    ``vector_bits``: 128, 256 or 512; this CPU's widest vectors unless given.
    """
    bits = native_vector_bits() if vector_bits is None else vector_bits
    lanes = bits // 8 // dtype.size
    across = vectors_across(lanes, dtype.size) * lanes
    return filled(_KERNEL, {
        "dtype": dtype.name, "size": dtype.size, "vectors": f"{dtype.name}x{lanes}",
        "lanes": lanes, "across": across, "room": ROOM // dtype.size,
        "room_all": ROOM // dtype.size + 64, "panel": across * _DEPTH, "depth": _DEPTH,
        "channels": CHANNELS, "operands": _OPERANDS,
        "pixels": PIXELS, "pixels_most": PIXELS - 1, "first": _FIRST, "last": _LAST,
    })  # fmt: skip
