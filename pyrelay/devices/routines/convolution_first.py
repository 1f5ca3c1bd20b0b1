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

With 3 by 3 taps most convolutions of float32 go by Winograd's transforms (``winograd``). Their
products have vectors along the outputs too, so that a few tiles are as good as many: weights are
turned, transformed, and multiplied with all tiles of a unit while they lie in the second cache.

The first axis that is not of extent 1 counts the rows; a row has the positions of the other axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.devices.routines.convolution_lines import LINES, NEXT, SIZES
from pyrelay.devices.routines.convolution_single import SINGLE
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
MOST_TILES = 64  # at a time

_FORWARD = """\
from pyrelay.devices.routines.offset_product import (
    copy_lines_{vectors}, copy_run_{vectors}, line_sums_{vectors}, offset_product_{vectors},
    window_sums_{vectors})
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
    words = local_i64(16)
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

# 3 by 3 taps in f32, where tiles of 4 by 4 outputs are many enough to pay for their transforms and
# those of the weights (``winograd``): the units of work are rows of tiles by panels of outputs.
_WINOGRAD = """\
    across, down = (out2 + 3) // 4, (out0 + 3) // 4
    plain = flat and stride0 == 1 and stride2 == 1 and step0 == 1 and step2 == 1
    tiled = plain and taps0 == 3 and taps2 == 3 and channels >= 16 and outputs >= 16
    tiled = tiled and across <= {most_tiles}
    tiled = tiled and pixels * 5 >= across * down * 32  # else tiles are mostly empty
    # Where few positions are seen, direct products take as long as the transforms of the weights.
    paid = {tile_worth} * across * down * batch + {weights_worth}
    tiled = tiled and 9 * pixels * batch >= paid
    if tiled:
        bands = {most_tiles} // across
        bands = (down + bands - 1) // bands
        output_blocks = (outputs + {wide_most}) // {wide}
        all_units = batch * groups * column_blocks * blocks
        # Small images are taken several at a time.
        together = {most_tiles} // (across * down) if bands == 1 else 1
        entry_blocks = (batch + together - 1) // together
        together = (batch + entry_blocks - 1) // entry_blocks
        all_tiled = entry_blocks * groups * output_blocks * bands
        spectra, values = local_f32({spectra_size}), local_f32({values_size})
        sums, halves = local_f32({sums_size}), local_f32({halves_size})
        tile_places = local_i64({tile_line})
        pitch = (across * 4 + 2 + {lanes_most}) // {lanes} * {lanes}
        own, own_end = begin * all_tiled // all_units, end * all_tiled // all_units
        while own < own_end:
            output_block, rest = own % output_blocks, own // output_blocks
            band, rest = rest % bands, rest // bands
            first = down * band // bands
            high = down * (band + 1) // bands - first
            group, entry = rest % groups, rest // groups * together
            entries = batch - entry if batch - entry < together else together
            own_tiles = high * across
            tiles = entries * own_tiles
            # Blocks of outputs of the same tiles share the transforms of the image.
            sharing = {sums_most} // (tiles * {wide}) if tiles > 0 else 1
            left = output_blocks - output_block
            left = own_end - own if own_end - own < left else left
            sharing = left if left < sharing else sharing
            own += sharing
            o0 = output_block * {wide}
            o_count = outputs - o0 if outputs - o0 < sharing * {wide} else sharing * {wide}
            at_once = {values_most} // tiles if tiles > 0 else 1
            parts = (channels + at_once - 1) // at_once
            at_once = (channels + parts - 1) // parts
            low, stop = before2, before2 + extent2
            low = 0 if low < 0 else (across * 4 + 2 if low > across * 4 + 2 else low)
            stop = low if stop < low else (across * 4 + 2 if stop > across * 4 + 2 else stop)
            t0_first = first * 4 - before0
            first_line = -t0_first if t0_first < 0 else 0
            last_line = extent0 - t0_first if extent0 - t0_first < high * 4 + 2 else high * 4 + 2
            first_line = high * 4 + 2 if first_line > high * 4 + 2 else first_line
            last_line = first_line if last_line < first_line else last_line
            # Few tiles are those of several channels, as many as fill a vector.
            each = {lanes} // tiles if tiles > 0 and tiles < {lanes} else 1
            # What lies outside of the image stays 0.
            for row in range(6):
                clear_bytes(halves + row * {halves_plane} * 4, each * entries * high * pitch * 4)
            for k in range((each * tiles + {lanes_most}) // {lanes} * {lanes}):
                k_line = k // across if k < each * tiles else 0
                store_ordered_i64(tile_places, k, k_line * pitch + k % across * 4)
            for element in range(36):
                clear_bytes(sums + element * {sums_plane} * 4, sharing * tiles * {wide} * 4)
            # Weights of few tiles lie in the first cache with what is multiplied.
            block = {few_channels} if tiles <= {few_tiles} else {block}
            store_ordered_i64(words, 0, patches)
            store_ordered_i64(words, 2, spectra)
            store_ordered_i64(words, 4, {values_plane})
            store_ordered_i64(words, 6, {sums_plane})
            store_ordered_i64(words, 7, tiles)
            store_ordered_i64(words, 9, block * 36)
            store_ordered_i64(words, 10, {wide})
            store_ordered_i64(words, 11, depth_all * 4)
            c0 = 0
            while c0 < channels and high > 0:
                c_count = channels - c0 if channels - c0 < at_once else at_once
                for c in range(0, c_count, each):
                    some = c_count - c if c_count - c < each else each
                    for which in range(some * entries):
                        plane = (entry + which % entries) * groups + group
                        plane = plane * channels + c0 + c + which // entries
                        seen = plane * image + t0_first * extent2 + low - before2
                        for r in range(high):
                            winograd_lines_{vectors}(
                                x + (seen + r * 4 * extent2) * 4, extent2,
                                first_line - r * 4, last_line - r * 4,
                                halves + ((which * high + r) * pitch + low) * 4, {halves_plane},
                                stop - low)
                    winograd_image_{vectors}(
                        halves, {halves_plane}, tile_places, values + c * tiles * 4,
                        {values_plane}, some * tiles)
                c_blocks = (c_count + block - 1) // block
                for part in range(sharing * c_blocks):
                    o, c = part // c_blocks * {wide}, part % c_blocks * block
                    count = c_count - c if c_count - c < block else block
                    weights = w + ((group * outputs + o0 + o) * channels + c0 + c) * 36
                    panel = o_count - o if o_count - o < {wide} else {wide}
                    turned_weights_{vectors}(patches, weights, depth_all, panel, count * 9)
                    # Weights of the next channels, or outputs, are fetched meanwhile.
                    weights += block * 36
                    if c + block >= c_count:
                        weights += {wide} * depth_all * 4 - c_blocks * block * 36
                    store_ordered_i64(words, 1, count)
                    store_ordered_i64(words, 3, values + c * tiles * 4)
                    store_ordered_i64(words, 5, sums + o * tiles * 4)
                    store_ordered_i64(words, 8, weights)
                    store_ordered_i64(words, 12, panel)
                    winograd_products_{vectors}(words)
                c0 += at_once
            for which in range(entries):
                row = ((entry + which) * groups + group) * outputs + o0
                for o in range(0, o_count, {wide}):
                    for tile in range(own_tiles):
                        q0, q2 = tile // across * 4, tile % across * 4
                        rows = out0 - first * 4 - q0
                        at = o * tiles + (which * own_tiles + tile) * {wide}
                        winograd_outputs_{vectors}(
                            sums + at * 4, {sums_plane}, patches + (q0 * out2 + q2) * {wide} * 4,
                            out2 * {wide}, rows if rows < 4 else 4,
                            out2 - q2 if out2 - q2 < 4 else 4)
                    q_count = out0 - first * 4 if out0 - first * 4 < high * 4 else high * 4
                    turned_sums_{vectors}(
                        patches, y + ((row + o) * pixels + first * 4 * out2) * 4, pixels,
                        o_count - o if o_count - o < {wide} else {wide}, q_count * out2)
                q_end = out0 if out0 < (first + high) * 4 else (first + high) * 4
                # Transforms spread what is not finite: such outputs are added up term by term.
                finite = 1
                for o in range(o_count):
                    at = (row + o) * pixels + first * 4 * out2
                    finite *= winograd_finite_{vectors}(y + at * 4, (q_end - first * 4) * out2)
                if finite == 0:
                    for o in range(o_count):
                        for q0 in range(first * 4, q_end):
                            at = (row + o) * pixels + q0 * out2
                            clear_bytes(y + at * 4, out2 * 4)
                            for k in range(channels * 9):
                                t0, t2 = q0 + k % 9 // 3 - before0, k % 3 - before2
                                plane = ((entry + which) * groups + group) * channels + k // 9
                                source = (plane * extent0 + t0) * extent2 + t2
                                low_here = -t2 if t2 < 0 else 0
                                stop_here = out2 if out2 < extent2 - t2 else extent2 - t2
                                stop_here = 0 if t0 < 0 or t0 >= extent0 else stop_here
                                weight = (group * outputs + o0 + o) * depth_all + k
                                winograd_term_{vectors}(
                                    y + (at + low_here) * 4, x + (source + low_here) * 4,
                                    w + weight * 4, stop_here - low_here)
                if finisher != 0 and high > 0:
                    p_end = q_end * out2
                    store_ordered_i64(finishing, 2, first * 4 * out2)
                    store_ordered_i64(finishing, 3, p_end)
                    call_address(finisher, finishing, row, row + o_count)
        return 0
"""
_BLOCK = 32  # channels whose products are added up: of twice as many, errors half as large again
_FEW_TILES, _FEW_CHANNELS = 16, 16  # of which the latter are taken at a time
_SUMS, _VALUES = 5120, 2560  # elements of a plane of sums, and of transforms of the image
_ROOMS = "values", "sums"  # of 36 planes
TILE_WORTH, WEIGHTS_WORTH = 45, 120  # products that a tile and the weights' transform cost


def _winograd(lanes: int) -> str:
    planes = {
        "values_plane": _VALUES + 16, "sums_plane": _SUMS + 16,
        "halves_plane": MOST_TILES * max(8, lanes) + 32,
    }  # fmt: skip
    rooms = {f"{name}_size": 36 * planes[f"{name}_plane"] + 64 for name in _ROOMS}
    return _WINOGRAD.format(
        vectors=f"f32x{lanes}", lanes=lanes, lanes_most=lanes - 1, block=_BLOCK,
        few_tiles=_FEW_TILES, few_channels=_FEW_CHANNELS, wide=2 * lanes, wide_most=2 * lanes - 1,
        most_tiles=MOST_TILES, tile_line=MOST_TILES + lanes, sums_most=_SUMS, values_most=_VALUES,
        tile_worth=TILE_WORTH, weights_worth=WEIGHTS_WORTH,
        spectra_size=6 * (_BLOCK * 2 * lanes + 16), halves_size=6 * planes["halves_plane"] + 64,
        **rooms, **planes,
    )  # fmt: skip


def vectors_across(lanes: int, size: int) -> int:
    """Vectors of a panel of an ``offset_product``: as many as registers hold with eight rows, or
    with six."""
    return 3 if lanes * size == 64 else 2


def forward_kernel(dtype: DType, vector_bits: int | None = None) -> str:
    """The text of the kernel ``forward`` for ``f32`` or ``f64``."""
    bits = native_vector_bits() if vector_bits is None else vector_bits
    lanes = bits // 8 // dtype.size
    winograd = transforms = ""
    if dtype.name == "f32":
        winograd = _winograd(lanes)
        parts = "lines", "image", "outputs", "finite", "term"
        names = ", ".join(f"winograd_{part}_f32x{lanes}" for part in parts)
        transforms = f"from pyrelay.devices.routines.winograd import (\n    {names})\n"
        transforms += "from pyrelay.devices.routines.winograd_products import "
        transforms += f"winograd_products_f32x{lanes}"
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
        scratch_all=_SCRATCH + 64, depth=_DEPTH, taps_most=TABLE, table=TABLE, short=SHORT,
        finishing=5 + FINISHING_OPERANDS, more=_MORE, shallow=_SHALLOW, few_rows=_FEW_ROWS,
        panel=_PANEL, panel_most=_PANEL - 1, band=BAND,
        panel_wide=vectors_across(lanes, dtype.size) * lanes,
        most_outputs=MOST_OUTPUTS, fewest_pixels=FEWEST_PIXELS, most_image=MOST_IMAGE,
        near_image=_NEAR_IMAGE,
    ))  # fmt: skip
