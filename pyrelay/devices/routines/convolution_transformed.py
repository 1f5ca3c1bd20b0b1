"""Convolutions by Winograd's transforms, channels first: a part of a kernel's text.

In: names of the kernel ``convolution_first`` is the text of; out: a loop over its units, for
``f32`` with three to five taps along an axis, or two to five for each phase of a stride. Products
(``winograd``, ``winograd_products``) have vectors along the outputs, so that a few tiles are as
good as many: weights are turned, transformed, and multiplied with all tiles of a unit while they
lie in the second cache. With a stride the rows and columns of each phase are copied, and are a
channel of their own: 7 by 7 taps with a stride of 2 are 4 by 4 taps of four times the channels.
"""

from __future__ import annotations

import textwrap

from pyrelay.devices.routines.kernel_text import filled
from pyrelay.devices.routines.made_of import PARTS

MOST_TILES = 64  # at a time
_BLOCK = 32  # channels whose products are added up: of twice as many, errors half as large again
_FEW_TILES, _FEW_CHANNELS = 16, 16  # of which the latter are taken at a time
_SUMS, _VALUES = 5120, 2560  # elements of a plane of sums, and of transforms of the image
_ROOMS = "values", "sums"  # of 36 planes
#: Products that take as long as those of a channel of a tile, its sums, the transform of the image
#: by the outputs that share it, and that of a channel's weights, or a phase's; of direct products
#: ``DIRECT_WORTH`` take as long as ten of those, or ``BACK_WORTH`` of those of `BACK_NAMES`.
TILE_WORTH, SUMS_WORTH, IMAGE_WORTH, WEIGHTS_WORTH, PHASES_WORTH = 42, 350, 1000, 170, 280
DIRECT_WORTH, BACK_WORTH = 12, 24
TAPS = 2, 3, 4, 5
FEWEST_OUTPUTS = 16  # for tiles
MOST_STRIDE = 4
_FEWEST_UNITS, _FEWEST_TILES = 4, 8  # that threads share, and of each

# The units of work are rows of tiles by panels of outputs. A channel that is seen is one of the
# image's, or a phase of its rows and columns.
_WINOGRAD = """\
    own_taps, phases_all = (taps0 + stride0 - 1) // stride0, stride0 * stride0
    tiled = flat and stride0 == stride2 and stride0 <= {most_stride} and step0 == 1 and step2 == 1
    # Two taps have the largest errors, which the phases of a stride even out.
    tiled = tiled and own_taps >= (2 if stride0 > 1 else 3) and own_taps <= 5
    tiled = tiled and (taps2 + stride2 - 1) // stride2 == own_taps
    side = 7 - own_taps if tiled else 1
    across, down = (out2 + side - 1) // side, (out0 + side - 1) // side
    channels_seen = channels * phases_all
    tiled = tiled and outputs >= {fewest_outputs} and across <= {most_tiles} and channels > 0
    tiled = tiled and pixels * 5 >= across * down * side * side * 2  # else most of a tile is empty
    # Of few positions, outputs or channels the transforms take longer than direct products.
    paid = {tile_worth} * channels_seen + {sums_worth}
    paid += {image_worth} * channels_seen // outputs if tiled else 0
    paid = paid * across * down * batch
    paid += ({phases_worth} if phases_all > 1 else {weights_worth}) * channels_seen
    tiled = tiled and depth_all * pixels * batch * {direct_worth} >= paid * 10
    if tiled:
        bands = {most_tiles} // across
        bands = (down + bands - 1) // bands
        output_blocks = (outputs + {wide_most}) // {wide}
        # Of few outputs threads share the tiles, where each has some.
        wanted = ({fewest_units} - 1) // (batch * groups * output_blocks) + 1
        most = across * down // {fewest_tiles}
        wanted = most if most < wanted else wanted
        wanted = down if down < wanted else wanted
        bands = wanted if bands < wanted else bands
        all_units = batch * groups * {unit_blocks}
        # Small images are taken several at a time.
        together = {most_tiles} // (across * down) if bands == 1 else 1
        entry_blocks = (batch + together - 1) // together
        together = (batch + entry_blocks - 1) // entry_blocks
        all_tiled = entry_blocks * groups * output_blocks * bands
        spectra, values = local_f32({spectra_size}), local_f32({values_size})
        sums, halves = local_f32({sums_size}), local_f32({halves_size})
        tile_places = local_i64({tile_line})
        width = across * side + own_taps - 1
        pitch = (width + {lanes_most}) // {lanes} * {lanes}
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
            at_once = {values_most} // (tiles * phases_all) if tiles > 0 else 1
            parts = (channels + at_once - 1) // at_once
            at_once = (channels + parts - 1) // parts
            lines_seen = high * side + own_taps - 1
            t0_first = first * side * stride0 - before0
            low = 0
            stop = width
            if stride0 == 1:
                low = 0 if before2 < 0 else (width if before2 > width else before2)
                stop = before2 + extent2
                stop = low if stop < low else (width if stop > width else stop)
            # Few tiles are those of several channels, as many as fill a vector.
            each = {lanes} // tiles if tiles > 0 and tiles < {lanes} else 1
            # What lies outside of the image stays 0.
            for row in range(6):
                clear_bytes(halves + row * {halves_plane} * 4, each * entries * high * pitch * 4)
            for k in range((each * tiles + {lanes_most}) // {lanes} * {lanes}):
                k_line = k // across if k < each * tiles else 0
                store_ordered_i64(tile_places, k, k_line * pitch + k % across * side)
            # Weights of few tiles lie in the first cache with what is multiplied.
            block = {few_channels} if tiles <= {few_tiles} else {block}
            store_ordered_i64(words, 0, patches + {first_tap} * 4)
            store_ordered_i64(words, 2, spectra)
            store_ordered_i64(words, 4, {values_plane})
            store_ordered_i64(words, 6, {sums_plane})
            store_ordered_i64(words, 7, tiles)
            block = block // phases_all
            {next_lines}
            store_ordered_i64(words, 14, {tap_step})
            store_ordered_i64(words, 15, stride0)
            store_ordered_i64(words, 16, taps0)
            store_ordered_i64(words, 17, taps2)
            c0 = 0
            while c0 < channels and high > 0:
                c_count = channels - c0 if channels - c0 < at_once else at_once
                for c in range(0, c_count * phases_all, each):
                    some = c_count * phases_all - c if c_count * phases_all - c < each else each
                    for which in range(some * entries):
                        phase = c + which // entries
                        plane = (entry + which % entries) * groups + group
                        plane = plane * channels + c0 + phase // phases_all
                        phase0, phase2 = phase % phases_all // stride0, phase % stride0
                        t0, t2 = t0_first + phase0, phase2 - before2
                        first_line = (stride0 - 1 - t0) // stride0 if t0 < 0 else 0
                        last_line = (extent0 - t0 + stride0 - 1) // stride0
                        first_line = lines_seen if first_line > lines_seen else first_line
                        last_line = lines_seen if last_line > lines_seen else last_line
                        last_line = first_line if last_line < first_line else last_line
                        lines_at = x + (plane * image + t0 * extent2 + t2 + low) * 4
                        if stride0 > 1:
                            low2 = (stride0 - 1 - t2) // stride0 if t2 < 0 else 0
                            stop2 = (extent2 - t2 + stride0 - 1) // stride0
                            low2 = width if low2 > width else low2
                            stop2 = width if stop2 > width else stop2
                            stop2 = low2 if stop2 < low2 else stop2
                            copy_lines_{vectors}(
                                patches, pitch, lines_at, stride0 * extent2, lines_seen,
                                first_line, last_line, low2, stop2, width, stride0)
                            lines_at = patches
                            first_line = 0
                            last_line = lines_seen
                        line_seen = pitch if stride0 > 1 else extent2
                        for r in range(high):
                            winograd_lines_{vectors}(
                                lines_at + r * side * line_seen * 4, line_seen,
                                first_line - r * side, last_line - r * side,
                                halves + ((which * high + r) * pitch + low) * 4, {halves_plane},
                                stop - low)
                    winograd_image_{vectors}(
                        halves, {halves_plane}, tile_places, values + c * tiles * 4,
                        {values_plane}, some * tiles)
                c_blocks = (c_count + block - 1) // block
                for part in range(sharing * c_blocks):
                    o, c = part // c_blocks * {wide}, part % c_blocks * block
                    count = c_count - c if c_count - c < block else block
                    panel = o_count - o if o_count - o < {wide} else {wide}
                    {turned}
                    store_ordered_i64(words, 1, count)
                    store_ordered_i64(words, 3, values + c * phases_all * tiles * 4)
                    store_ordered_i64(words, 5, sums + o * tiles * 4)
                    store_ordered_i64(words, 8, weights)
                    store_ordered_i64(words, 12, panel)
                    store_ordered_i64(words, 13, c0 + c)
                    {products}
                c0 += at_once
            for which in range(entries):
                row = ((entry + which) * groups + group) * outputs + o0
                for o in range(0, o_count, {wide}):
                    for tile in range(own_tiles):
                        q0, q2 = tile // across * side, tile % across * side
                        rows = out0 - first * side - q0
                        rows = rows if rows < side else side
                        columns = out2 - q2 if out2 - q2 < side else side
                        at = sums + (o * tiles + (which * own_tiles + tile) * {wide}) * 4
                        to = patches + (q0 * out2 + q2) * {wide} * 4
                        {outputs}
                    q_count = out0 - first * side
                    q_count = q_count if q_count < high * side else high * side
                    turned_sums_{vectors}(
                        patches, y + ((row + o) * pixels + first * side * out2) * 4, pixels,
                        o_count - o if o_count - o < {wide} else {wide}, q_count * out2)
                q_end = out0 if out0 < (first + high) * side else (first + high) * side
                # Transforms spread what is not finite: such outputs are added up term by term.
                finite = 1
                for o in range(o_count):
                    at = (row + o) * pixels + first * side * out2
                    finite *= winograd_finite_{vectors}(y + at * 4, (q_end - first * side) * out2)
                if finite == 0:
                    for o in range(o_count):
                        for q0 in range(first * side, q_end):
                            at = (row + o) * pixels + q0 * out2
                            clear_bytes(y + at * 4, out2 * 4)
                            for k in range(depth_all):
                                t0 = q0 * stride0 + k % taps // taps2 - before0
                                t2 = k % taps2 - before2
                                plane = ((entry + which) * groups + group) * channels + k // taps
                                source = (plane * extent0 + t0) * extent2 + t2
                                low_here = (stride0 - 1 - t2) // stride0 if t2 < 0 else 0
                                stop_here = (extent2 - t2 + stride0 - 1) // stride0
                                stop_here = out2 if out2 < stop_here else stop_here
                                stop_here = 0 if t0 < 0 or t0 >= extent0 else stop_here
                                here = stop_here - low_here
                                if here > 0:
                                    source = x + (source + low_here * stride0) * 4
                                    copy_run_{vectors}(patches, source, 0, here, here, stride0)
                                    place = {weight_place}
                                    add_run_{vectors}(
                                        y + (at + low_here) * 4, patches, w + place * 4, here)
                {finish}
        return 0
"""

# Weights of the next channels, or outputs, are fetched meanwhile.
_FORWARD = {
    "unit_blocks": "column_blocks * blocks", "first_tap": "0", "tap_step": "{wide}",
    "next_lines": """\
store_ordered_i64(words, 9, block * taps * 4)
store_ordered_i64(words, 10, {wide})
store_ordered_i64(words, 11, depth_all * 4)
""",
    "turned": """\
weights = w + ((group * outputs + o0 + o) * channels + c0 + c) * taps * 4
turned_weights_{vectors}(patches, weights, depth_all, panel, count * taps)
weights += block * taps * 4
if c + block >= c_count:
    weights += ({wide} * depth_all - c_blocks * block * taps) * 4
""",
    "weight_place": "(group * outputs + o0 + o) * depth_all + k",
    "finish": """\
if finisher != 0 and high > 0:
    p_end = q_end * out2
    store_ordered_i64(finishing, 2, first * side * out2)
    store_ordered_i64(finishing, 3, p_end)
    call_address(finisher, finishing, row, row + o_count)
""",
}

# The same of weights from the last tap to the first, whose outputs are their channels.
_BACK = {
    "unit_blocks": "column_blocks", "first_tap": "(taps - 1) * {wide}", "tap_step": "-{wide}",
    "next_lines": """\
store_ordered_i64(words, 9, {wide} * taps * 4)
store_ordered_i64(words, 10, block)
store_ordered_i64(words, 11, outputs * taps * 4)
""",
    "turned": """\
weights = w + ((group * channels + c0 + c) * outputs + o0 + o) * taps * 4
for channel in range(count):
    turned_weights_{vectors}(
        patches + channel * taps * {wide} * 4, weights + channel * outputs * taps * 4, taps, panel,
        taps)
weights += block * outputs * taps * 4
if c + block >= c_count:
    weights += ({wide} - c_blocks * block * outputs) * taps * 4
""",
    "weight_place": "((group * channels + k // taps) * outputs + o0 + o + 1) * taps - 1 - k % taps",
    "finish": "",
}

# Names of the loop for an image of what its outputs add to it, where those have no stride: it is
# the result of a convolution of the outputs by weights that are turned around.
BACK_NAMES = """\
x, w, y = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
batch, groups = param_i64(block, 4), param_i64(block, 5)
channels, outputs = param_i64(block, 7), param_i64(block, 6)
flat = param_i64(block, 8) == 1 and param_i64(block, 9) == 1 and param_i64(block, 10) == 1
flat = flat and param_i64(block, 13) == 0
flat = flat and param_i64(block, 17) == 1 and param_i64(block, 23) == 1
out0, taps0, extent0 = param_i64(block, 14), param_i64(block, 15), param_i64(block, 16)
out2, taps2, extent2 = param_i64(block, 20), param_i64(block, 21), param_i64(block, 22)
step0, before0 = param_i64(block, 18), taps0 - 1 - param_i64(block, 19)
step2, before2 = param_i64(block, 24), taps2 - 1 - param_i64(block, 25)
stride0 = stride2 = 1
image, pixels, taps = extent0 * extent2, out0 * out2, taps0 * taps2
depth_all = taps * channels
column_blocks = (outputs + {columns_most}) // {columns}
words = local_i64(18)
"""


def _by_taps(call: str, fewest: int = TAPS[0]) -> str:
    """Text that calls what is for a number of taps."""
    return "".join(
        f"{'elif' if at else 'if'} own_taps == {count}:\n    {call.format(taps=count)}\n"
        for at, count in enumerate(range(fewest, TAPS[-1] + 1))
    )


def transformed_parts(lanes: int) -> str:
    """The lines that import what the loop calls of these modules."""
    return "".join(
        f"from pyrelay.devices.routines.{module} import (\n"
        f"    {', '.join(f'{part}_f32x{lanes}' for part in PARTS[module])})\n"
        for module in ("winograd", "winograd_products")
    )


def transformed_room(lanes: int) -> int:
    """Elements of ``patches`` that it needs: positions of all tiles for a panel of outputs, of
    which whole vectors are read."""
    side = 7 - TAPS[0]
    return (MOST_TILES * side * side + lanes) * 2 * lanes


def transformed_loop(lanes: int, *, back: bool = False) -> str:
    """The loop for vectors of so many elements; ``back``: with `BACK_NAMES`."""
    planes = {
        "values_plane": _VALUES + 16, "sums_plane": _SUMS + 16,
        "halves_plane": MOST_TILES * max(8, lanes) + 32,
    }  # fmt: skip
    rooms = {f"{name}_size": 36 * planes[f"{name}_plane"] + 64 for name in _ROOMS}
    vectors = f"f32x{lanes}"
    products = _by_taps(f"winograd_products{{taps}}_{vectors}(words)", fewest=3)
    phases = _by_taps(f"winograd_phases{{taps}}_{vectors}(words)")
    outputs = _by_taps(
        f"winograd_outputs{{taps}}_{vectors}(\n"
        f"        at, {planes['sums_plane']}, to, out2 * {2 * lanes}, rows, columns)"
    )
    if not back:
        phases, products = (textwrap.indent(text, "    ") for text in (phases, products))
        products = f"if stride0 > 1:\n{phases}else:\n{products}"
    names = {"vectors": vectors, "wide": 2 * lanes}
    form = {name: text.format(**names) for name, text in (_BACK if back else _FORWARD).items()}
    return filled(_WINOGRAD, dict(
        form, outputs=outputs, products=products, vectors=vectors, lanes=lanes,
        lanes_most=lanes - 1, block=_BLOCK,
        few_tiles=_FEW_TILES, few_channels=_FEW_CHANNELS, wide=2 * lanes, wide_most=2 * lanes - 1,
        most_tiles=MOST_TILES, tile_line=MOST_TILES + lanes, sums_most=_SUMS, values_most=_VALUES,
        tile_worth=TILE_WORTH, sums_worth=SUMS_WORTH, weights_worth=WEIGHTS_WORTH,
        image_worth=IMAGE_WORTH, phases_worth=PHASES_WORTH,
        direct_worth=BACK_WORTH if back else DIRECT_WORTH,
        fewest_outputs=FEWEST_OUTPUTS, most_stride=MOST_STRIDE,
        fewest_units=_FEWEST_UNITS, fewest_tiles=_FEWEST_TILES,
        spectra_size=6 * (_BLOCK * 2 * lanes + 16), halves_size=6 * planes["halves_plane"] + 64,
        **rooms, **planes,
    ))  # fmt: skip
