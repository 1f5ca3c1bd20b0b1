"""What outputs add to an image whose channels are vectors, channels first: a part of a text.

In: names of the kernel ``back`` of ``convolution``; out: a loop over its units, for outputs with a
stride, or whatever goes by no transforms. A position's sums are a line of channels, and a tap adds
to those of every output's position the products with its weights (``turned_product``): nothing is
spread with zeros between, and no product of few positions is copied and added element by element.
Sums of a band of lines, or of several small images, lie in the frame, with the weights of a panel
of channels, tap by tap. Which outputs a tap adds to which positions is listed once for all images.
"""

from __future__ import annotations

from pyrelay.devices.routines.kernel_text import filled
from pyrelay.ir.types import DType

POSITIONS = 256  # whose sums lie in the frame
LISTED = 8192  # outputs of all taps
DEPTH = 5120  # outputs by taps, most of them
TAPS = 512
ENDS = 2048  # bands by taps

#: What takes how long, fitted to 161 gradients taken both ways, in twentieths of a product of
#: vectors: here, eighths of products of panels, what begins them, vectors of sums, what is listed,
#: panels of weights that are turned;
PRODUCT_WORTH, ENTRY_WORTH, SUM_WORTH, LISTING_WORTH, TURNING_WORTH = 5, 180, 470, 270, 930
#: there, products of vectors, elements that are added with a stride, vectors of them without one,
#: lines of these, vectors of the image and of weights.
DIRECT_WORTH, ADDED_WORTH, RUN_WORTH, LINE_WORTH = 31, 96, 410, 950
IMAGE_WORTH, WEIGHT_WORTH = 210, 190
FAR = 2 * 2**20  # bytes of outputs of an image that take half as long again

_PANEL = 20 * 1024  # bytes at a time of a panel of weights

_SPREAD = """\
taps = taps0 * taps1 * taps2
across = (extent2 + stride2 - 1) // stride2
across = out2 if out2 < across else across
stays = pixels * taps <= {listed}
spread = taps > 0 and taps <= {taps_most} and outputs * taps <= {depth} and image > 0
spread = spread and extent2 <= {positions} and across * taps <= {listed}
spread = spread and batch * pixels > 0 and channels * outputs != 1
if spread:
    panels, planes_all = (channels + {wide_most}) // {wide}, batch * groups
    narrow = 1 if channels % {wide} > 0 and channels % {wide} <= {lanes} else 0
    products = planes_all * outputs * taps * pixels
    paid = {product_worth} * products * (8 * panels - narrow)
    paid += paid // 2 if outputs * pixels * {size} > {far} else 0
    paid += {entry_worth} * planes_all * taps * pixels * panels
    paid += {sum_worth} * planes_all * image * (2 * panels - narrow)
    paid += {listing_worth} * taps * pixels * (1 if stays else planes_all * panels)
    paid += {turning_worth} * groups * outputs * taps * panels
    values = planes_all * channels * taps * pixels
    direct = {direct_worth} * products * channels // {lanes}
    direct += {added_worth} * values if stride2 > 1 else {run_worth} * values // {lanes}
    direct += {line_worth} * values // out2
    direct += {image_worth} * planes_all * channels * image // {lanes}
    direct += {weight_worth} * planes_all * channels * outputs * taps // {lanes}
    plain = taps * stride0 * stride1 * stride2 == 1 and pixels == image
    plain = plain and before0 == 0 and before1 == 0 and before2 == 0
    spread = paid < direct and not plain
high = {positions} // extent2 if spread else 0
high = extent0 * extent1 if extent0 * extent1 < high else high
high += 1 if spread else 0
seen = {listed} + 1
while spread and seen * across * taps > {listed}:
    high -= 1
    # Lines of outputs that a tap adds to so many lines of the image, at most.
    planes = (high - 1) // extent1 + 2
    planes = extent0 if extent0 < planes else planes
    seen = high // stride1 + planes
    seen = high if high < seen else seen
if high > 0:
    panel, sums = local_{dtype}({panel_room}), local_{dtype}({sums_room})
    places, listed, ends = local_i64({depth}), local_i64({listed_words}), local_i64({ends})
    words = local_i64(15)
    for o in range(outputs):
        store_ordered_i64(places, o, o * pixels)
    # Weights of so many outputs stay in the first cache.
    parts = (outputs + {near_most}) // {near}
    store_ordered_i64(words, 2, 0)
    store_ordered_i64(words, 3, 1)
    for k in range(8, 12):
        store_ordered_i64(words, k, 0)
    store_ordered_i64(words, 12, {near})
    store_ordered_i64(words, 14, 1)
    bands = (extent0 * extent1 + high - 1) // high
    # Lists for all bands, where there is room for them, and for several images.
    stays = stays and bands * (taps + 1) <= {ends}
    together = 1
    if bands == 1:
        together = {positions} // image
        most = {listed} // (seen * across * taps) if seen * across > 0 else 1
        together = most if most < together else together
        together = batch if batch < together else together
    apart = groups * outputs * pixels
    known = 0
    for column_block in range(column_blocks):
        o0 = column_block * {columns}
        o_end = channels if channels < o0 + {columns} else o0 + {columns}
        rest_first = (begin - column_block + column_blocks - 1) // column_blocks
        rest_end = (end - column_block + column_blocks - 1) // column_blocks
        for group in range(groups):
            first = (rest_first - group + groups - 1) // groups
            last = (rest_end - group + groups - 1) // groups
            o_here = o_end if first < last else o0
            for c0 in range(o0, o_here, {wide}):
                c_count = o_end - c0 if o_end - c0 < {wide} else {wide}
                weights = factor + (group * outputs * channels + c0) * taps * {size}
                if taps == 1:
                    copy_lines_{vectors}(
                        panel, {wide}, weights, channels, outputs, 0, outputs, 0, c_count, {wide},
                        1)
                else:
                    for o in range(outputs):
                        turned_weights_{vectors}(
                            sums, weights + o * channels * taps * {size}, taps, c_count, taps)
                        copy_lines_{vectors}(
                            panel + o * {wide} * {size}, outputs * {wide}, sums, {wide}, taps, 0,
                            taps, 0, {wide}, {wide}, 1)
                store_ordered_i64(words, 13, c_count)
                for entry in range(first, last, together):
                    some = last - entry if last - entry < together else together
                    store_ordered_i64(words, 7, (entry * groups + group) * outputs * pixels)
                    listed_end = 0
                    for band in range(bands):
                        line_first = extent0 * extent1 * band // bands
                        line_end = extent0 * extent1 * (band + 1) // bands
                        positions = (line_end - line_first) * extent2
                        own = ends + band * (taps + 1) * 8 if stays else ends
                        if known == 0:
                            found = listed_end if stays else 0
                            {listing}
                            listed_end = found
                        clear_bytes(sums, some * positions * {wide} * {size})
                        for tap in range(taps):
                            found = load_ordered_i64(own, tap)
                            each = (load_ordered_i64(own, tap + 1) - found) // (2 * together)
                            store_ordered_i64(words, 5, listed + found * 8)
                            store_ordered_i64(words, 6, some * each)
                            for part in range(parts):
                                o = outputs * part // parts
                                at = panel + (tap * outputs + o) * {wide} * {size}
                                store_ordered_i64(words, 0, at)
                                store_ordered_i64(words, 1, places + o * 8)
                                store_ordered_i64(words, 4, outputs * (part + 1) // parts - o)
                                turned_product_{vectors}(words)
                        for k in range(some):
                            plane = ((entry + k) * groups + group) * channels + c0
                            at = plane * image + line_first * extent2
                            turned_sums_{vectors}(
                                sums + k * positions * {wide} * {size}, result + at * {size},
                                image, c_count, positions)
                    known = 1 if stays else 0
    return 0
"""

_LISTING = """\
for tap in range(taps):
    store_ordered_i64(own, tap, found)
    from2, tap_rest = tap % taps2 * step2 - before2, tap // taps2
    from1 = tap_rest % taps1 * step1 - before1
    from0 = tap_rest // taps1 * step0 - before0
    low2 = (stride2 - 1 - from2) // stride2 if from2 < 0 else 0
    stop2 = (extent2 - from2 + stride2 - 1) // stride2
    stop2 = out2 if out2 < stop2 else stop2
    for k in range(together):
        source = y + k * apart * {size}
        to = sums + k * positions * {wide} * {size}
        for q0 in range(out0):
            t0 = q0 * stride0 + from0
            line = t0 * extent1 - line_first
            # Of the plane's lines, those in the band.
            low1 = -line if line < 0 else 0
            stop1 = line_end - line_first - line
            stop1 = extent1 if extent1 < stop1 else stop1
            stop1 = low1 if t0 < 0 or t0 >= extent0 else stop1
            low1 -= from1
            stop1 -= from1
            low1 = (low1 + stride1 - 1) // stride1 if low1 > 0 else 0
            stop1 = (stop1 + stride1 - 1) // stride1 if stop1 > 0 else 0
            stop1 = out1 if out1 < stop1 else stop1
            for q1 in range(low1, stop1):
                seen_at = source + ((q0 * out1 + q1) * out2 + low2) * {size}
                at = (line + q1 * stride1 + from1) * extent2 + from2 + low2 * stride2
                added_at = to + at * {wide} * {size}
                for q2 in range(low2, stop2):
                    store_ordered_i64(listed, found, seen_at)
                    store_ordered_i64(listed, found + 1, added_at)
                    seen_at += {size}
                    added_at += stride2 * {wide} * {size}
                    found += 2
store_ordered_i64(own, taps, found)
"""


def spread_loop(dtype: DType, lanes: int, columns: int) -> str:
    """The loop for ``f32`` or ``f64``; ``columns``: channels of a unit of work."""
    wide = 2 * lanes
    near = _PANEL // (wide * dtype.size)
    turned = (TAPS + lanes) * wide
    return filled(_SPREAD, {
        "listing": _LISTING, "dtype": dtype.name, "size": dtype.size, "wide": wide,
        "vectors": f"{dtype.name}x{lanes}", "lanes": lanes, "wide_most": wide - 1,
        "columns": columns, "positions": POSITIONS, "listed": LISTED, "listed_words": 2 * LISTED,
        "depth": DEPTH, "taps_most": TAPS, "ends": ENDS, "near": near, "near_most": near - 1,
        "panel_room": DEPTH * wide + wide, "sums_room": max(turned, (POSITIONS + lanes) * wide),
        "product_worth": PRODUCT_WORTH, "entry_worth": ENTRY_WORTH, "far": FAR,
        "sum_worth": SUM_WORTH, "listing_worth": LISTING_WORTH, "turning_worth": TURNING_WORTH,
        "direct_worth": DIRECT_WORTH, "added_worth": ADDED_WORTH, "run_worth": RUN_WORTH,
        "line_worth": LINE_WORTH, "image_worth": IMAGE_WORTH, "weight_worth": WEIGHT_WORTH,
    })  # fmt: skip
