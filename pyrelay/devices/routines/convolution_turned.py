"""Convolutions whose vectors lie along the outputs, channels first: a part of a kernel's text.

In: names of the kernel ``convolution_first`` is the text of; out: a loop over its units, where
positions are far apart in the image, or few, or the image has three axes. Weights of a panel of
outputs, and of a block of channels, are turned and lie in the frame, with the sums of a block of
positions of one or several images (``turned_product``). Values are read where they lie: no line is
copied for a tap, and no position that is left over costs a vector. A position all of whose taps lie
in the image reads them at the offsets of a table; the others are listed for each tap that lies in
it for them, so zeros around an image are neither copied nor multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.devices.routines.kernel_text import counted_on, filled

if TYPE_CHECKING:
    from pyrelay.ir.types import DType

POSITIONS = 240  # at a time
_PANEL = 20 * 1024  # bytes at a time of a panel of weights, which stays in the first cache
LISTED = 4096  # most positions listed, for all taps
FEW_PIXELS = 128  # positions up to which images without a stride are summed this way
DEEP, MANY_POSITIONS = 128, 120  # of others of three axes, products of each, and how many at once
FEWEST_POSITIONS = 25  # at a time, for weights to be turned
FEWEST_PRODUCTS = 4096  # of a position, for its place to be looked up
FEW_CHANNELS = 16  # for taps to be gone through one by one, where some lie beyond the image
NEAR_IMAGE = 512 * 1024  # bytes that positions see at a time

_TURNED = """\
    # Where a stride would be copied, or columns are left over, unless the weights are read for few
    # positions, the image does not stay in the second cache, or taps beyond it have few channels.
    last0, last1 = extent0 - 1 - (taps0 - 1) * step0, extent1 - 1 - (taps1 - 1) * step1
    last2 = extent2 - 1 - (taps2 - 1) * step2
    bordered = before0 > 0 or before1 > 0 or before2 > 0
    bordered = bordered or (out0 - 1) * stride0 - before0 > last0
    bordered = bordered or (out1 - 1) * stride1 - before1 > last1
    bordered = bordered or (out2 - 1) * stride2 - before2 > last2
    turned = taps > 1 and taps <= {taps_most}
    turned = turned and (outputs % {wide} == 0 or outputs >= 4 * {wide})
    sparse = stride2 > 1 or pixels <= {few_pixels}
    turned = turned and (sparse or (not flat and depth_all >= {deep}))
    turned = turned and depth_all * outputs >= {fewest_products}
    at_once = {depth} // taps if turned and {depth} // taps < channels else channels
    at_once = 1 if at_once < 1 else at_once
    parts = (channels + at_once - 1) // at_once
    at_once = (channels + parts - 1) // parts
    # Few weights are turned once for all positions, and stay.
    pitch = (depth_all + {lanes_most}) // {lanes} * {lanes}
    panels_all = (outputs + {wide_most}) // {wide}
    stay = turned and groups == 1 and panels_all * pitch <= {held}
    panel_room = panels_all * pitch if stay else at_once * taps + {lanes}
    most = {listed} // (taps + 1) if bordered else {positions}
    most = {positions} if most > {positions} else most
    turned = turned and (sparse or most >= {many_positions})
    at_once_seen = pixels * batch if pixels * batch < most else most
    seen_bytes = at_once_seen * channels * stride0 * stride1 * stride2 * {size}
    turned = turned and (channels >= {few_channels} or not bordered) and seen_bytes <= {near_bytes}
    turned = turned and at_once_seen >= {fewest_positions}
    if turned:
        listed, outer = local_i64({listed_words}), local_i64({outer_words})
        ends, turned_at = local_i64({ends}), local_i64({held_panels})
        k = 0
        for c in range(at_once):
            for tap0 in range(taps0):
                for tap1 in range(taps1):
                    for tap2 in range(taps2):
                        at = (c * extent0 + tap0 * step0) * extent1 + tap1 * step1
                        store_ordered_i64(table, k, at * extent2 + tap2 * step2)
                        k += 1
        sums = patches + panel_room * {wide} * {size}
        for panel in range(panels_all if stay else 0):
            store_ordered_i64(turned_at, panel, 0)
        store_ordered_i64(words, 1, table)
        store_ordered_i64(words, 12, {depth})
        unit = begin
        while unit < end:
            column_block, rest = unit % column_blocks, unit // column_blocks
            last = column_block + end - unit
            last = column_blocks if column_blocks < last else last
            unit += last - column_block
            o_first = column_block * {columns}
            o_end = outputs if outputs < last * {columns} else last * {columns}
            group, place = rest % groups, rest // groups
            next_place = place + 1
            if groups == 1 and last - column_block == column_blocks:
                next_place += (end - unit) // column_blocks
                unit += (end - unit) // column_blocks * column_blocks
            # Positions are numbered through all images.
            p_first = place % blocks * share
            p_last = next_place % blocks * share
            p_first = place // blocks * pixels + (pixels if pixels < p_first else p_first)
            p_last = next_place // blocks * pixels + (pixels if pixels < p_last else p_last)
            pieces = (p_last - p_first + most - 1) // most
            piece = 0
            while piece < pieces:
                n_first = p_first + (p_last - p_first) * piece // pieces
                n_count = p_first + (p_last - p_first) * (piece + 1) // pieces - n_first
                piece += 1
                inner = 0
                border = 0
                entry, p = n_first // pixels, n_first % pixels
                q2, q_rest = p % out2, p // out2
                q1, q0 = q_rest % out1, q_rest // out1
                for n in range(n_count):
                    t0, t1 = q0 * stride0 - before0, q1 * stride1 - before1
                    t2 = q2 * stride2 - before2
                    at = (entry * groups + group) * channels * extent0 + t0
                    at = x + ((at * extent1 + t1) * extent2 + t2) * {size}
                    inside = t0 >= 0 and t0 <= last0 and t1 >= 0 and t1 <= last1
                    if inside and t2 >= 0 and t2 <= last2:
                        store_ordered_i64(listed, inner * 2, at)
                        store_ordered_i64(listed, inner * 2 + 1, sums + n * {wide} * {size})
                        inner += 1
                    else:
                        store_ordered_i64(outer, border * 5, at)
                        store_ordered_i64(outer, border * 5 + 1, sums + n * {wide} * {size})
                        store_ordered_i64(outer, border * 5 + 2, t0)
                        store_ordered_i64(outer, border * 5 + 3, t1)
                        store_ordered_i64(outer, border * 5 + 4, t2)
                        border += 1
                    {next_of_all}
                found = inner
                if border > 0:
                    for tap in range(taps):
                        from2, tap_rest = tap % taps2 * step2, tap // taps2
                        from1, from0 = tap_rest % taps1 * step1, tap_rest // taps1 * step0
                        store_ordered_i64(ends, tap, found)
                        for n in range(border):
                            t0 = load_ordered_i64(outer, n * 5 + 2) + from0
                            t1 = load_ordered_i64(outer, n * 5 + 3) + from1
                            t2 = load_ordered_i64(outer, n * 5 + 4) + from2
                            to = load_ordered_i64(outer, n * 5 + 1)
                            store_ordered_i64(listed, found * 2, load_ordered_i64(outer, n * 5))
                            store_ordered_i64(listed, found * 2 + 1, to)
                            inside = t0 >= 0 and t0 < extent0 and t1 >= 0 and t1 < extent1
                            found += 1 if inside and t2 >= 0 and t2 < extent2 else 0
                    store_ordered_i64(ends, taps, found)
                o0 = o_first
                while o0 < o_end:
                    o_count = o_end - o0 if o_end - o0 < {wide} else {wide}
                    store_ordered_i64(words, 13, o_count)
                    panel = patches
                    if stay:
                        # Turned where they were not yet: units may begin amid outputs.
                        slot = (o0 - o_first) // {wide}
                        panel += slot * pitch * {wide} * {size}
                        if load_ordered_i64(turned_at, slot) != o0 + 1:
                            rows_turned = outputs - o0 if outputs - o0 < {wide} else {wide}
                            turned_weights_{vectors}(
                                panel, w + o0 * depth_all * {size}, depth_all, rows_turned,
                                depth_all)
                            store_ordered_i64(turned_at, slot, o0 + 1)
                    if border > 0:
                        clear_bytes(sums, n_count * {wide} * {size})
                    c0 = 0
                    while c0 < channels:
                        c_count = channels - c0 if channels - c0 < at_once else at_once
                        store_ordered_i64(words, 0, panel + c0 * taps * {wide} * {size})
                        store_ordered_i64(words, 8, 0)
                        if not stay:
                            weights = w + ((group * outputs + o0) * depth_all + c0 * taps) * {size}
                            turned_weights_{vectors}(
                                panel, weights, depth_all, o_count, c_count * taps)
                            store_ordered_i64(words, 0, panel)
                            # Weights of the next channels, or outputs, are fetched meanwhile.
                            weights += c_count * taps * {size}
                            if c0 + at_once >= channels:
                                weights += ({wide} - 1) * depth_all * {size}
                            store_ordered_i64(words, 8, weights)
                        store_ordered_i64(words, 2, 0)
                        store_ordered_i64(words, 3, 1)
                        store_ordered_i64(words, 4, c_count * taps)
                        store_ordered_i64(words, 5, listed)
                        store_ordered_i64(words, 6, inner)
                        store_ordered_i64(words, 7, c0 * image)
                        store_ordered_i64(words, 9, at_once * taps * {size})
                        store_ordered_i64(words, 10, {wide})
                        store_ordered_i64(words, 11, depth_all * {size})
                        store_ordered_i64(words, 14, c0)
                        turned_product_{vectors}(words)
                        store_ordered_i64(words, 8, 0)
                        store_ordered_i64(words, 3, taps)
                        store_ordered_i64(words, 4, c_count)
                        store_ordered_i64(words, 14, 1)
                        tap = 0
                        while border > 0 and tap < taps:
                            found = load_ordered_i64(ends, tap)
                            store_ordered_i64(words, 2, tap)
                            store_ordered_i64(words, 5, listed + found * 16)
                            store_ordered_i64(words, 6, load_ordered_i64(ends, tap + 1) - found)
                            turned_product_{vectors}(words)
                            tap += 1
                        c0 += at_once
                    # Images one by one.
                    n = 0
                    while n < n_count:
                        entry, p = (n_first + n) // pixels, (n_first + n) % pixels
                        run = pixels - p if pixels - p < n_count - n else n_count - n
                        row = (entry * groups + group) * outputs + o0
                        turned_sums_{vectors}(
                            sums + n * {wide} * {size}, y + (row * pixels + p) * {size}, pixels,
                            o_count, run)
                        if finisher != 0:
                            store_ordered_i64(finishing, 2, p)
                            store_ordered_i64(finishing, 3, p + run)
                            call_address(finisher, finishing, row, row + o_count)
                        n += run
                    o0 += {wide}
"""


def turned_loop(dtype: DType, lanes: int, taps_most: int, columns: int) -> str:
    """The loop for ``f32`` or ``f64``; ``taps_most``: words of the kernel's table; ``columns``:
    outputs of a unit of work."""
    wide = 2 * lanes
    return filled(_TURNED, {
        "dtype": dtype.name, "size": dtype.size, "vectors": f"{dtype.name}x{lanes}", "wide": wide,
        "columns": columns, "taps_most": taps_most, "ends": taps_most + 1,
        "depth": _PANEL // (wide * dtype.size), "lanes": lanes, "lanes_most": lanes - 1,
        "wide_most": wide - 1, "held": taps_most, "held_panels": taps_most // lanes + 1,
        "positions": POSITIONS, "listed": LISTED, "listed_words": 2 * LISTED + 2,
        "outer_words": 5 * POSITIONS, "few_pixels": FEW_PIXELS,
        "deep": DEEP, "many_positions": MANY_POSITIONS, "few_channels": FEW_CHANNELS,
        "near_bytes": NEAR_IMAGE, "fewest_positions": FEWEST_POSITIONS,
        "fewest_products": FEWEST_PRODUCTS,
        "next_of_all": counted_on(
            [("q2", "out2"), ("q1", "out1"), ("q0", "out0")], "entry += 1"
        ),
    })  # fmt: skip
