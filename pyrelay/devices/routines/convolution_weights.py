"""What images and outputs add to weights, by Winograd's transforms, channels first: a part of a
kernel's text.

In: names of the kernel ``convolution`` is the text of, for ``f32``, two to five taps along each
axis and no stride; out: a loop over its units. Each tap is a sum over positions, so that taps are
the outputs of a convolution whose taps are the positions of a tile: with r taps a tile has 7 - r
positions along each axis, and 36 products do for all taps what r * r * (7 - r) * (7 - r) did. Lines
of the image and of the outputs are turned, channels side by side, so that transforms and products
(``winograd``, ``winograd_products``) have no element to move. Sums of a block of channels by a
panel of outputs stay in the second cache while all tiles of all images pass, some at a time.
"""

from __future__ import annotations

from textwrap import indent

from pyrelay.devices.routines.kernel_text import filled
from pyrelay.devices.routines.made_of import PARTS

TAPS = 2, 3, 4, 5
CHANNELS = 64  # of a block
_FEWEST_CHANNELS, _FEWEST_UNITS = 8, 2  # of a block; blocks that threads share
_TILES = 32  # at a time
MOST_ACROSS = 64  # tiles of a row
FEWEST_OUTPUTS = 8
#: Products that take as long as those of a channel and an output for a tile; as the transforms of a
#: tile for a channel, by panels of outputs, and for an output, by blocks of channels; as that of a
#: sum of a channel and an output. Ten of those take as long as ``DIRECT_WORTH`` direct products.
TILE_WORTH, CHANNEL_WORTH, OUTPUT_WORTH, SUM_WORTH, DIRECT_WORTH = 45, 400, 700, 200, 16

_LOOP = """\
tiled = flat and stride0 == 1 and stride2 == 1 and step0 == 1 and step2 == 1 and taps0 == taps2
tiled = tiled and taps0 >= 2 and taps0 <= 5 and outputs >= {fewest_outputs}
side = 7 - taps0 if tiled else 1
across, down = (out2 + side - 1) // side, (out0 + side - 1) // side
tiled = tiled and across <= {most_across} and batch * pixels * channels > 0
output_blocks = (outputs + {wide_most}) // {wide}
paid = {tile_worth} * channels * outputs + {channel_worth} * channels * output_blocks
paid += {output_worth} * outputs * ((channels + {channels_most}) // {channels})
paid = paid * across * down * batch + {sum_worth} * channels * outputs
tiled = tiled and depth_all * outputs * pixels * batch * {direct_worth} >= paid * 10
if tiled:
    taps = taps0 * taps2
    # Of few channels and outputs threads share the channels.
    block = {channels}
    while block > {fewest_channels} and groups * output_blocks * channels < {fewest_units} * block:
        block = block // 2
    channel_blocks = (channels + block - 1) // block
    all_tiled = groups * channel_blocks * output_blocks
    all_units = groups * ((depth_all + {rows_most}) // {rows}) * column_blocks
    seen, given = local_f32({seen_size}), local_f32({given_size})
    sums, own_lines = local_f32({sums_size}), local_f32({lines_size})
    given_lines = local_f32({lines_size})
    # A line is written by whole vectors.
    width = across * side + taps2 - 1
    pitch = width + {lanes}
    own = (2 * begin * all_tiled + all_units) // (2 * all_units)
    own_end = (2 * end * all_tiled + all_units) // (2 * all_units)
    while own < own_end:
        output_block, rest = own % output_blocks, own // output_blocks
        c_block, group = rest % channel_blocks, rest // channel_blocks
        own += 1
        o0, c0 = output_block * {wide}, c_block * block
        o_count = outputs - o0 if outputs - o0 < {wide} else {wide}
        c_count = channels - c0 if channels - c0 < block else block
        panels = (c_count + {wide_most}) // {wide}
        k = 0
        kept = 0
        for row in range(batch * down):
            entry, q0 = row // down, row % down * side
            # The lines of outputs of a row of tiles, and those that they see; 0 outside.
            plane = ((entry * groups + group) * outputs + o0) * pixels
            for r in range(side):
                line = given_lines + r * pitch * {wide} * 4
                inside = out2 if q0 + r < out0 else 0
                if inside > 0:
                    turned_weights_{vectors}(
                        line, y + (plane + (q0 + r) * out2) * 4, pixels, o_count, out2)
                clear_bytes(line + inside * {wide} * 4, (pitch - inside) * {wide} * 4)
            low = before2 if before2 > 0 else 0
            low = width if low > width else low
            stop = before2 + extent2
            stop = low if stop < low else (width if stop > width else stop)
            for panel in range(panels):
                c = c0 + panel * {wide}
                left = c0 + c_count - c if c0 + c_count - c < {wide} else {wide}
                plane = ((entry * groups + group) * channels + c) * image
                for r in range(6):
                    line = own_lines + (panel * 6 + r) * pitch * {wide} * 4
                    t0 = q0 + r - before0
                    inside = stop if t0 >= 0 and t0 < extent0 else low
                    clear_bytes(line, low * {wide} * 4)
                    if inside > low:
                        source = x + (plane + t0 * extent2 + low - before2) * 4
                        turned_weights_{vectors}(
                            line + low * {wide} * 4, source, image, left, stop - low)
                    clear_bytes(line + inside * {wide} * 4, (pitch - inside) * {wide} * 4)
            tile = 0
            while tile < across:
                count = across - tile if across - tile < {tiles} - k else {tiles} - k
                from_tile = given_lines + tile * side * {wide} * 4
                to = given + k * {wide} * 4
                {given}
                for panel in range(panels):
                    winograd_seen_{vectors}(
                        own_lines + (panel * 6 * pitch + tile * side) * {wide} * 4, pitch * {wide},
                        side * {wide}, count, seen + (k * panels + panel) * {wide} * 4,
                        {seen_plane}, panels * {wide}, c_count - panel * {wide})
                tile += count
                k += count
                if k == {tiles} or (tile == across and row == batch * down - 1):
                    winograd_pairs_{vectors}(
                        given, {given_plane}, k, seen, {seen_plane}, panels * {wide}, sums,
                        {sums_plane}, c_count, o_count, kept)
                    k = 0
                    kept = 1
        for c in range(c_count):
            at, to = sums + c * {wide} * 4, given + c * taps * {wide} * 4
            {outputs}
        weights = result + ((group * outputs + o0) * depth_all + c0 * taps) * 4
        turned_sums_{vectors}(given, weights, depth_all, o_count, c_count * taps)
        # Transforms spread what is not finite: then taps are added up line by line.
        finite = 1
        for o in range(o_count):
            finite *= winograd_finite_{vectors}(weights + o * depth_all * 4, c_count * taps)
        for place in range(0 if finite else o_count * c_count * taps):
            o, c, tap = place // (c_count * taps), place // taps % c_count, place % taps
            to = weights + (o * depth_all + place % (c_count * taps)) * 4
            clear_bytes(to, 4)
            t2 = tap % taps2 - before2
            low = -t2 if t2 < 0 else 0
            stop = out2 if out2 < extent2 - t2 else extent2 - t2
            for row in range(batch * out0):
                entry, t0 = row // out0, row % out0 + tap // taps2 - before0
                if t0 >= 0 and t0 < extent0 and low < stop:
                    of_image = ((entry * groups + group) * channels + c0 + c) * extent0 + t0
                    of_outputs = ((entry * groups + group) * outputs + o0 + o) * out0 + row % out0
                    winograd_dot_{vectors}(
                        to, x + (of_image * extent2 + low + t2) * 4,
                        y + (of_outputs * out2 + low) * 4, stop - low)
    return 0
"""


def weights_parts(lanes: int) -> str:
    """The lines that import what the loop calls."""
    called = {
        "turned_product": ("turned_weights", "turned_sums"),
        "winograd": PARTS["winograd"], "winograd_products": ("winograd_pairs",),
    }  # fmt: skip
    return "".join(
        f"from pyrelay.devices.routines.{module} import (\n"
        f"    {', '.join(f'{part}_f32x{lanes}' for part in parts)})\n"
        for module, parts in called.items()
    )


def weights_loop(lanes: int, rows: int) -> str:
    """The loop for vectors of so many elements; the kernel's units are blocks of ``rows``."""
    wide, vectors = 2 * lanes, f"f32x{lanes}"
    planes = {
        "seen_plane": _TILES * CHANNELS + 16, "given_plane": _TILES * wide + 16,
        "sums_plane": CHANNELS * wide + 16,
    }  # fmt: skip
    # Lines of a panel of a row of tiles; what sums give lies where outputs were transformed.
    line = (MOST_ACROSS * 5 + 4 + lanes) * wide
    given = max(36 * planes["given_plane"], (CHANNELS * 25 + lanes) * wide)

    def by_side(call: str) -> str:
        return "".join(
            f"{'elif' if at else 'if'} side == {side}:\n{indent(call.format(side=side), '    ')}"
            for at, side in enumerate(TAPS)
        )

    return filled(_LOOP, dict(
        planes, vectors=vectors, lanes=lanes, wide=wide, wide_most=wide - 1, tiles=_TILES,
        fewest_channels=_FEWEST_CHANNELS, fewest_units=_FEWEST_UNITS, channels=CHANNELS,
        channels_most=CHANNELS - 1, rows=rows, rows_most=rows - 1,
        most_across=MOST_ACROSS, fewest_outputs=FEWEST_OUTPUTS, tile_worth=TILE_WORTH,
        channel_worth=CHANNEL_WORTH, output_worth=OUTPUT_WORTH, sum_worth=SUM_WORTH,
        direct_worth=DIRECT_WORTH,
        seen_size=36 * planes["seen_plane"], sums_size=36 * planes["sums_plane"],
        given_size=given, lines_size=line * max(6 * -(-CHANNELS // wide), 5),
        given=by_side(
            f"winograd_given{{side}}_{vectors}(\n    from_tile, pitch * {wide}, side * {wide}, "
            f"count, to, {planes['given_plane']}, {wide}, o_count)\n"
        ),
        outputs=by_side(
            f"winograd_outputs{{side}}_{vectors}(\n"
            f"    at, {planes['sums_plane']}, to, taps2 * {wide}, taps0, taps2)\n"
        ),
    ))  # fmt: skip
