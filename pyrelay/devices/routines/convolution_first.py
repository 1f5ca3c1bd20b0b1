"""Convolutions with the channels first: source texts of kernels.

In: a dtype and a vector width; out: the text of a kernel (ABI and parameters of ``convolution``).

The values that the taps of a line of the weights see from one position on lie, shifted by whole
rows of positions, in a copy of a part of the image: the lines of rows ``q`` and ``q + 1`` for one
tap of a row are those of row ``q`` for it and the next one (Cho and Brand, *MEC: Memory-efficient
Convolution*, 2017). So a block of positions copies as many lines as a row has taps, not as many as
all taps, and a product reads them at offsets (``offset_product``). With a stride, every phase of
the rows has lines of its own. Where rows are too long for that to pay, each tap has its line.
Blocks whose taps reach beyond them about as far as they go are copied several at a time. Of one
tap and few outputs no block is copied: the product reads the image where it lies, and the first
tile of a panel of columns leaves a copy of it to the others.

Images whose positions are far apart, or few, are not copied either: vectors lie along the outputs
(``convolution_turned``).

Most of float32 with few taps go by Winograd's transforms (``convolution_transformed``).

The first axis that is not of extent 1 counts the rows; a row has the positions of the other axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.devices.routines.convolution_lines import LINES, NEXT, SIZES
from pyrelay.devices.routines.convolution_single import SINGLE
from pyrelay.devices.routines.convolution_transformed import (
    transformed_loop,
    transformed_parts,
    transformed_room,
)
from pyrelay.devices.routines.convolution_turned import turned_loop
from pyrelay.devices.routines.kernel_text import filled
from pyrelay.devices.routines.matmul import FINISHING_OPERANDS, native_vector_bits

if TYPE_CHECKING:
    from pyrelay.ir.types import DType

PIXELS = 240
OUTPUTS = 16  # of a unit of work; units of the same positions are done together
_DEPTH = 160  # values of k at a time
_PANEL = 256  # of one tap, whose lines are read where they lie
MOST_OUTPUTS, FEWEST_PIXELS = 128, 64  # for that to be faster than to copy them first
MOST_IMAGE = 4 * 2**20  # bytes of images for that: memory is slower read a line of a channel each
_NEAR_IMAGE = 512 * 1024  # bytes of images that a near cache may hold
_MORE = 3  # blocks of positions that are done with the one before
TABLE = 1024  # of a channel that a table holds: more of them are gathered tap by tap
_SCRATCH = 48 * 1024
BAND = 120  # rows of weights that stay in the second cache: whole tiles of six, or of eight
_SHALLOW = 64  # most values of k of products that are finished
_FEW_ROWS = 24  # so many rows at a time
_NEAR = 24 * 1024  # bytes of lines of channels by themselves, where they are
_FEWEST_ROWS = 8  # as many as these, at a time
STRIDES = 16  # longest that channels by themselves have lines for
_FINISHED = 2048  # outputs of such channels that are finished together
SMALL = 64  # most rows of planes that are summed several at a time
WINDOW = 3  # taps along both axes of windows that are summed as such
DIRECT = 48  # columns from which on these are summed where they lie
_AHEAD = 4096  # bytes of these that are fetched before they are read
SHORT = 128  # positions of rows that are copied as a whole

_FORWARD = """\
from pyrelay.devices.routines.offset_product import (
    add_run_{vectors}, copy_lines_{vectors}, copy_run_{vectors}, line_sums_{vectors},
    offset_product_{vectors}, window_sums_{vectors})
from pyrelay.devices.routines.turned_product import (
    turned_product_{vectors}, turned_sums_{vectors}, turned_weights_{vectors})
{transforms}
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True


def kernel(block, begin, end):
    x, w, y = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
    batch, groups = param_i64(block, 4), param_i64(block, 5)
    channels, outputs = param_i64(block, 6), param_i64(block, 7)
    {sizes}
    variants = taps1 * taps2
    taps = taps0 * variants
    depth_all = taps * channels
    column_blocks = (outputs + {columns_most}) // {columns}
    blocks = (pixels + {pixels_most}) // {pixels}
    share = ((pixels + blocks - 1) // blocks + {wide_most}) // {wide} * {wide}
    phases = stride0 if taps0 > 1 and step0 % stride0 != 0 else 1
    shifts = (taps0 - 1) * step0 // stride0 * out1 * out2
    patches = local_{dtype}({scratch_all})
    table = local_i64({table})
    words = local_i64(18)
    one_tap = plain and channels * outputs != 1
    panels = one_tap and pixels >= {fewest_pixels} and outputs <= {most_outputs}
    panels = panels and batch * groups * channels * image * {size} <= {most_image}
    places = local_i64({panel})
    if panels:
        for k in range({panel}):
            store_ordered_i64(places, k, k * {panel_wide})
    # Where an image is not in a near cache, what the next positions see is fetched meanwhile.
    far = local_i64({panel})
    fetching = one_tap and batch * groups * channels * image * {size} > {near_image}
    if fetching:
        for k in range({panel}):
            store_ordered_i64(far, k, k * image)
    # The block of what finishes the outputs: rows are channels of entries, columns positions.
    finisher, finishing = param_i64(block, 26), local_i64({finishing})
    if finisher != 0:
        store_ordered_i64(finishing, 0, param_i64(block, 0))
        store_ordered_i64(finishing, 1, y)
        store_ordered_i64(finishing, 4, pixels)
        for k in range(param_i64(block, 27)):
            store_ordered_i64(finishing, 5 + k, param_i64(block, 28 + k))
{single}
{winograd}
{turned}
    # Blocks of positions that follow each other share the rows that the taps reach beyond them.
    together = 0
    reaching = shifts * 2 > share and phases * (share + shifts) < taps0 * share
    if reaching and groups == 1 and taps > 0 and taps <= {taps_most}:
        at_once = {depth} // taps if {depth} // taps < channels else channels
        at_once = 1 if at_once < 1 else at_once
        room = {scratch} // (phases * variants * at_once) - shifts - 32 - 2 * out2
        together = room // share - 1 if room // share - 1 < {more} else {more}
    while unit < end:
        column_block, rest = unit % column_blocks, unit // column_blocks
        last = column_block + end - unit
        last = column_blocks if column_blocks < last else last
        unit += last - column_block
        o0 = column_block * {columns}
        o_end = outputs if outputs < last * {columns} else last * {columns}
        o_count = o_end - o0
        group, place = rest % groups, rest // groups
        entry, p0 = place // blocks, place % blocks * share
        p_count = share
        if together > 0 and last - column_block == column_blocks:
            more = pixels // share - 1 - place % blocks
            more = (end - unit) // column_blocks if (end - unit) // column_blocks < more else more
            more = together if together < more else more
            if more > 0:
                p_count += more * share
                unit += more * column_blocks
        p_count = pixels - p0 if pixels - p0 < p_count else p_count
        p_end = p0 + p_count
        while p0 < p_end:
            # Panels are whole: what is left of a vector comes last.
            in_place = (p_end - p0) // {wide} * {wide} if panels else 0
            p_count = in_place if in_place > 0 else p_end - p0
            first_q2, q_rest = p0 % out2, p0 // out2
            first_q1, first_q0 = q_rest % out1, q_rest // out1
            # Short rows of positions are copied as a whole, from the first one's beginning on.
            by_rows = flat and out2 <= {short} and not one_tap
            skipped = first_q2 if by_rows else 0
            around = 32 + 2 * out2 if by_rows else 32
            shifted = phases * (p_count + shifts) < taps0 * p_count and taps <= {taps_most}
            shifted = shifted and phases * variants * (p_count + shifts + around) <= {scratch}
            span = p_count + shifts if shifted else p_count
            q_count = (skipped + span + out2 - 1) // out2
            span = q_count * out2 if by_rows else span
            planes = phases if shifted else taps0
            plane_step = 1 if shifted else step0
            # An odd number of cache lines: lines of equal places share no set of the cache.
            line = ((span + {per_line} - 1) // {per_line} | 1) * {per_line}
            lines = planes * variants
            lines_all = lines * channels
            most = {scratch} // line
            if shifted:
                at_once = {depth} // taps
                at_once = most // lines if most // lines < at_once else at_once
                at_once = 1 if at_once < 1 else at_once
                parts = (channels + at_once - 1) // at_once
                most = (channels + parts - 1) // parts * lines if parts > 0 else 1
            elif in_place > 0:
                parts = (channels + {panel_most}) // {panel}
                most = (channels + parts - 1) // parts if parts > 0 else 1
            else:
                most = {depth} if {depth} < most else most
            seen = patches
            r0 = 0
            k0 = 0
            while r0 == 0 or r0 < lines_all:
                r_count = lines_all - r0 if lines_all - r0 < most else most
                k_count = r_count
                plane = (entry * groups + group) * channels + r0
                lying = x + (plane * image + p0) * {size}
                if in_place == 0 and one_tap:
                    copy_lines_{vectors}(
                        patches, line, lying, image, r_count, 0, r_count, 0, p_count, p_count, 1)
                elif in_place == 0:
                    {copies}
                if in_place > 0:
                    seen = lying
                    for r in range(r_count):
                        store_ordered_i64(table, r, r * image)
                elif shifted:
                    k_count = r_count // lines * taps
                    k = 0
                    for c in range(r_count // lines):
                        for tap in range(taps0):
                            at = (c * lines + tap * step0 % stride0 * variants) * line
                            at += tap * step0 // stride0 * out1 * out2 + skipped
                            for variant in range(variants):
                                store_ordered_i64(table, k, at + variant * line)
                                k += 1
                else:
                    for r in range(r_count):
                        store_ordered_i64(table, r, r * line + skipped)
                store_ordered_i64(words, 1, depth_all)
                store_ordered_i64(words, 2, seen)
                store_ordered_i64(words, 4, pixels)
                store_ordered_i64(words, 5, table)
                store_ordered_i64(words, 7, p_count)
                store_ordered_i64(words, 8, k_count)
                store_ordered_i64(words, 9, k0)
                store_ordered_i64(words, 10, 1)
                room = patches if in_place > 0 else 0
                store_ordered_i64(words, 11, room)
                store_ordered_i64(words, 12, places)
                ahead = {wide} if in_place > 0 else p_count
                store_ordered_i64(words, 13, lying + ahead * {size} if fetching else 0)
                store_ordered_i64(words, 14, far)
                # Sums of a few products are finished while they lie in the first cache.
                early = finisher != 0 and r_count == lines_all and k_count <= {shallow}
                rows_each = {few_rows} if early else {band}
                o = o0
                while o < o_end:
                    rows = o_end - o if o_end - o < rows_each else rows_each
                    row = (entry * groups + group) * outputs + o
                    weights = w + ((group * outputs + o) * depth_all + k0) * {size}
                    store_ordered_i64(words, 0, weights)
                    store_ordered_i64(words, 3, y + (row * pixels + p0) * {size})
                    store_ordered_i64(words, 6, rows)
                    offset_product_{vectors}(words)
                    if finisher != 0 and r0 + most >= lines_all:
                        store_ordered_i64(finishing, 2, p0)
                        store_ordered_i64(finishing, 3, p0 + p_count)
                        call_address(finisher, finishing, row, row + rows)
                    o += rows
                k0 += k_count
                r0 += most
            p0 += p_count
    return 0
"""

def vectors_across(lanes: int, size: int) -> int:
    """Vectors of a panel of an ``offset_product``: as many as registers hold with eight rows, or
    with six."""
    return 3 if lanes * size == 64 else 2


def forward_kernel(dtype: DType, vector_bits: int | None = None) -> str:
    """The text of the kernel ``forward`` for ``f32`` or ``f64``."""
    bits = native_vector_bits() if vector_bits is None else vector_bits
    lanes = bits // 8 // dtype.size
    winograd = transforms = ""
    room = _SCRATCH
    if dtype.name == "f32":
        room = max(room, transformed_room(lanes))
        winograd = transformed_loop(lanes)
        transforms = transformed_parts(lanes)
    single = SINGLE.format(
        dtype=dtype.name, vectors=f"{dtype.name}x{lanes}", size=dtype.size, lanes=lanes,
        lanes_most=lanes - 1, scratch=_SCRATCH, taps_most=TABLE, strides=STRIDES,
        direct=DIRECT, ahead=_AHEAD, finished=_FINISHED, window=WINDOW,
        near=_NEAR // dtype.size, fewest=_FEWEST_ROWS, tall=SMALL, lines_most=2 * SMALL + 3,
    )
    turned = turned_loop(dtype, lanes, TABLE, OUTPUTS)
    return filled(_FORWARD, dict(
        NEXT, sizes=SIZES, copies=LINES, single=single, winograd=winograd, transforms=transforms,
        turned=turned,
        dtype=dtype.name, size=dtype.size, vectors=f"{dtype.name}x{lanes}", columns=OUTPUTS,
        columns_most=OUTPUTS - 1, pixels=PIXELS, pixels_most=PIXELS - 1, wide=2 * lanes,
        wide_most=2 * lanes - 1, per_line=64 // dtype.size, scratch=_SCRATCH,
        scratch_all=room + 64, depth=_DEPTH, taps_most=TABLE, table=TABLE, short=SHORT,
        finishing=5 + FINISHING_OPERANDS, more=_MORE, shallow=_SHALLOW, few_rows=_FEW_ROWS,
        panel=_PANEL, panel_most=_PANEL - 1, band=BAND,
        panel_wide=vectors_across(lanes, dtype.size) * lanes,
        most_outputs=MOST_OUTPUTS, fewest_pixels=FEWEST_PIXELS, most_image=MOST_IMAGE,
        near_image=_NEAR_IMAGE,
    ))  # fmt: skip
