"""What images and outputs add to weights, with vectors along the outputs, channels first: a part of
a kernel's text.

In: names of the kernel ``weights`` of ``convolution``; out: a loop over its units, for outputs with
a stride, or whatever goes by no transforms. A tap of a channel has a line of sums, of a panel of
outputs each, and a position adds to that its outputs' values, which are turned, times what the tap
sees of the image there (``turned_product``). That is read where it lies: a copy with zeros around
it is made of images that taps reach beyond, but none for each tap. Positions come a number at a
time, of several images where these are small, and sums stay near until all have passed.
"""

from __future__ import annotations

from pyrelay.devices.routines.kernel_text import counted_on, filled
from pyrelay.ir.types import DType

POSITIONS = 160  # at a time
LONG = 320  # of a line, at most
SUMS = 2048  # lines of sums at a time
COPIED = 64 * 1024  # elements of a part of an image with zeros around it

#: What takes how long, fitted to 168 gradients taken both ways, in eighths of a product of vectors:
#: here, eighths of products of panels, panels of a position that are turned, positions, lines of
#: sums for so many positions, lines and vectors of images that are copied, lines of sums;
PRODUCT_WORTH, TURNING_WORTH, PLACE_WORTH, ROW_WORTH = 2, 143, 39, 15
LINE_WORTH, VECTOR_WORTH, SUM_WORTH = 74, 56, 470
#: there, products of vectors, what is copied for taps with a stride, vectors of that without one,
#: lines of it, weights, what is begun for an image, and for all.
DIRECT_WORTH, COPIED_WORTH, RUN_WORTH, COPY_WORTH = 11, 10, 57, 97
WEIGHT_WORTH, UNIT_WORTH, BEGUN_WORTH = 3, 29000, 42000

_GATHERED = """\
taps = taps0 * variants
bordered = before0 > 0 or before1 > 0 or before2 > 0
bordered = bordered or (out0 - 1) * stride0 - before0 + (taps0 - 1) * step0 >= extent0
bordered = bordered or (out1 - 1) * stride1 - before1 + (taps1 - 1) * step1 >= extent1
bordered = bordered or (out2 - 1) * stride2 - before2 + (taps2 - 1) * step2 >= extent2
gathered = taps > 0 and batch * pixels > 0 and channels * outputs != 1
if gathered:
    planes_all, panels_all = batch * groups, (outputs + {wide_most}) // {wide}
    narrow = 1 if outputs % {wide} > 0 and outputs % {wide} <= {lanes} else 0
    times = (pixels + {positions_most}) // {positions} * batch
    if pixels <= {positions}:
        times = (batch + {positions} // pixels - 1) // ({positions} // pixels)
    paid = {product_worth} * planes_all * depth_all * pixels * (8 * panels_all - narrow)
    paid += planes_all * pixels * ({turning_worth} * panels_all + {place_worth})
    paid += groups * depth_all * panels_all * ({row_worth} * times + {sum_worth})
    if bordered:
        lines_all = planes_all * channels * extent0 * extent1
        paid += lines_all * ({line_worth} + {vector_worth} * extent2 // {lanes})
    values = planes_all * depth_all * pixels
    direct = {direct_worth} * values * outputs // {lanes} + {begun_worth}
    direct += {copied_worth} * values if stride2 > 1 else {run_worth} * values // {lanes}
    direct += {copy_worth} * values // out2 + {weight_worth} * groups * depth_all * outputs
    direct += {unit_worth} * planes_all * ((depth_all + {rows_most}) // {rows})
    gathered = paid < direct
# Taps of channels at a time, and positions: of images, or of lines of one.
panels_most = ({columns} if outputs > {columns} else outputs) + {wide_most}
rows_at_once = {sums} // (panels_most // {wide}) if panels_most >= {wide} else 1
most = (rows_at_once + taps - 2) // taps + 1 if taps > 0 else 1
most = channels if channels < most else most
entries = {positions} // pixels if gathered and pixels <= {positions} else 1
entries = batch if batch < entries else entries
high0, high1 = 1, out1
if out1 * out2 <= {positions} and out1 * out2 > 0:
    high0 = {positions} // (out1 * out2)
    high0 = out0 if out0 < high0 else high0
elif out2 <= {long}:
    high1 = {positions} // out2 if out2 <= {positions} else 1
seen0 = seen1 = seen2 = 1
plane = 0
if bordered:
    gathered = gathered and out2 <= {long}
    seen2 = (out2 - 1) * stride2 + (taps2 - 1) * step2 + 1
    plane = {copied} + 1
    while gathered and entries * most * plane > {copied}:
        seen0 = (high0 - 1) * stride0 + (taps0 - 1) * step0 + 1
        seen1 = (high1 - 1) * stride1 + (taps1 - 1) * step1 + 1
        plane = seen0 * seen1 * seen2
        if entries * most * plane > {copied}:
            if entries > 1:
                entries -= 1
            elif high0 > 1:
                high0 -= 1
            elif high1 > 1:
                high1 -= 1
            else:
                gathered = False
at_once = high0 * high1 * out2 if bordered else {positions}
if gathered:
    places, listed = local_i64({places}), local_i64({listed})
    words = local_i64(15)
    panel, sums = local_{dtype}({panel_room}), local_{dtype}({sums_room})
    store_ordered_i64(words, 1, places)
    store_ordered_i64(words, 2, 0)
    store_ordered_i64(words, 3, 1)
    for k in range(8, 12):
        store_ordered_i64(words, k, 0)
    store_ordered_i64(words, 12, {positions})
    store_ordered_i64(words, 14, 1)
    # From a position, a row, a plane of them and an image to the next.
    next2, next1, next0 = stride2, stride1 * extent2, stride0 * extent1 * extent2
    next_entry = groups * channels * image
    if bordered:
        next1, next0, next_entry = stride1 * seen2, stride0 * seen1 * seen2, most * plane
    for column_block in range(column_blocks):
        o_first = column_block * {columns}
        o_end = outputs if outputs < o_first + {columns} else o_first + {columns}
        panels = (o_end - o_first + {wide_most}) // {wide}
        rest_first = (begin - column_block + column_blocks - 1) // column_blocks
        rest_end = (end - column_block + column_blocks - 1) // column_blocks
        for group in range(groups):
            # Blocks of rows that follow each other share what is copied and turned.
            k_first = (rest_first - group + groups - 1) // groups * {rows}
            k_end = (rest_end - group + groups - 1) // groups * {rows}
            k_end = depth_all if depth_all < k_end else k_end
            pieces = (k_end - k_first + rows_at_once - 1) // rows_at_once
            for piece in range(pieces):
                k0 = k_first + (k_end - k_first) * piece // pieces
                k_count = k_first + (k_end - k_first) * (piece + 1) // pieces - k0
                c_first, c_last = k0 // taps, (k0 + k_count - 1) // taps
                {piece}
    return 0
"""

_PIECE = """\
{listing}
clear_bytes(sums, panels * k_count * {wide} * {size})
for entry in range(0, batch, entries):
    some = batch - entry if batch - entry < entries else entries
    p0 = 0
    while p0 < pixels:
        first_q2, q_rest = p0 % out2, p0 // out2
        first_q1, first_q0 = q_rest % out1, q_rest // out1
        count = pixels - p0 if pixels - p0 < at_once else at_once
        if bordered and high1 < out1 and (out1 - first_q1) * out2 < count:
            count = (out1 - first_q1) * out2
        store_ordered_i64(words, 7, entry * next_entry)
        if bordered:
            store_ordered_i64(words, 7, 0)
            {copies}
        {placing}
        for number in range(panels):
            o0 = o_first + number * {wide}
            o_count = o_end - o0 if o_end - o0 < {wide} else {wide}
            for e in range(some):
                line = ((entry + e) * groups + group) * outputs + o0
                turned_weights_{vectors}(
                    panel + e * count * {wide} * {size},
                    factor + (line * pixels + p0) * {size}, pixels, o_count, count)
            store_ordered_i64(words, 0, panel)
            store_ordered_i64(words, 4, some * count)
            store_ordered_i64(words, 5, listed + number * k_count * 16)
            store_ordered_i64(words, 6, k_count)
            store_ordered_i64(words, 13, o_count)
            turned_product_{vectors}(words)
        p0 += count
for number in range(panels):
    o0 = o_first + number * {wide}
    o_count = o_end - o0 if o_end - o0 < {wide} else {wide}
    to = result + ((group * outputs + o0) * depth_all + k0) * {size}
    turned_sums_{vectors}(
        sums + number * k_count * {wide} * {size}, to, depth_all, o_count, k_count)
"""

# For each panel, where a tap of a channel begins to see the image, and where its sums lie.
_LISTING = """\
for r in range(k_count):
    c, tap = (k0 + r) // taps, (k0 + r) % taps
    from2, tap_rest = tap % taps2 * step2, tap // taps2
    from1, from0 = tap_rest % taps1 * step1, tap_rest // taps1 * step0
    seen_at = patches + ((c - c_first) * plane + (from0 * seen1 + from1) * seen2 + from2) * {size}
    if not bordered:
        at = (group * channels + c) * extent0 + from0 - before0
        at = (at * extent1 + from1 - before1) * extent2 + from2 - before2
        seen_at = x + at * {size}
    for number in range(panels):
        place = number * k_count + r
        store_ordered_i64(listed, place * 2, seen_at)
        store_ordered_i64(listed, place * 2 + 1, sums + place * {wide} * {size})
"""

# Lines of the image that the taps see from these positions, with zeros around.
_COPIES = """\
t2 = -before2
low2 = -t2 if t2 < 0 else 0
low2 = seen2 if seen2 < low2 else low2
stop2 = extent2 - t2 if extent2 - t2 > low2 else low2
stop2 = seen2 if seen2 < stop2 else stop2
# Lines follow each other along the second axis, or, where there is none, along the first.
t1 = first_q0 * stride0 - before0 if flat else first_q1 * stride1 - before1
extent_seen = extent0 if flat else extent1
lines_seen = seen0 if flat else seen1
low1 = -t1 if t1 < 0 else 0
low1 = lines_seen if lines_seen < low1 else low1
stop1 = extent_seen - t1 if extent_seen - t1 > low1 else low1
stop1 = lines_seen if lines_seen < stop1 else stop1
for e in range(some):
    for c in range(c_first, c_last + 1):
        for s0 in range(1 if flat else seen0):
            t0 = 0 if flat else first_q0 * stride0 - before0 + s0
            source = ((entry + e) * groups + group) * channels + c
            source = x + (source * image + (t0 * extent1 + t1) * extent2 + t2) * {size}
            to = patches + ((e * most + c - c_first) * plane + s0 * seen1 * seen2) * {size}
            stop = stop1 if t0 >= 0 and t0 < extent0 else low1
            copy_lines_{vectors}(
                to, seen2, source, extent2, lines_seen, low1, stop, low2, stop2, seen2, 1)
"""

_PLACING = """\
k = 0
for e in range(some):
    q0, q1, q2 = first_q0, first_q1, first_q2
    origin = e * next_entry
    if bordered:
        origin -= q0 * next0 + q1 * next1
    for p in range(count):
        store_ordered_i64(places, k, origin + q0 * next0 + q1 * next1 + q2 * next2)
        k += 1
        {next_position}
"""


def gathered_loop(dtype: DType, lanes: int, rows: int, columns: int) -> str:
    """The loop for ``f32`` or ``f64``; units are blocks of ``rows`` taps of channels by blocks of
    ``columns`` outputs."""
    wide = 2 * lanes
    return filled(_GATHERED, {
        "piece": _PIECE, "listing": _LISTING, "copies": _COPIES, "placing": _PLACING,
        "next_position": counted_on([("q2", "out2"), ("q1", "out1")], "q0 += 1"),
        "dtype": dtype.name, "size": dtype.size, "wide": wide, "wide_most": wide - 1,
        "vectors": f"{dtype.name}x{lanes}", "lanes": lanes, "rows": rows, "rows_most": rows - 1,
        "columns": columns, "positions": POSITIONS, "positions_most": POSITIONS - 1, "long": LONG,
        "copied": COPIED, "places": max(POSITIONS, LONG), "listed": 2 * SUMS, "sums": SUMS,
        "panel_room": (max(POSITIONS, LONG) + lanes) * wide, "sums_room": (SUMS + lanes) * wide,
        "product_worth": PRODUCT_WORTH, "turning_worth": TURNING_WORTH, "place_worth": PLACE_WORTH,
        "row_worth": ROW_WORTH, "line_worth": LINE_WORTH, "vector_worth": VECTOR_WORTH,
        "sum_worth": SUM_WORTH, "direct_worth": DIRECT_WORTH, "copied_worth": COPIED_WORTH,
        "run_worth": RUN_WORTH, "copy_worth": COPY_WORTH, "weight_worth": WEIGHT_WORTH,
        "unit_worth": UNIT_WORTH, "begun_worth": BEGUN_WORTH,
    })  # fmt: skip
