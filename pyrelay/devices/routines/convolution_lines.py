"""Lines of an image with the channels first: parts of kernels' texts.

In: what the texts name. Out: lines of values side by side, as the taps of the weights see them from
one position after another. The first axis that is not of extent 1 counts the rows; a row has the
positions of the other axes.
"""

from pyrelay.devices.routines.kernel_text import counted_on

SIZES = """\
flat = param_i64(block, 8) == 1 and param_i64(block, 9) == 1 and param_i64(block, 10) == 1
flat = flat and param_i64(block, 13) == 0
rows = 14 if flat else 8
extent0, taps0 = param_i64(block, rows), param_i64(block, rows + 1)
out0, stride0 = param_i64(block, rows + 2), param_i64(block, rows + 3)
step0, before0 = param_i64(block, rows + 4), param_i64(block, rows + 5)
extent1 = taps1 = out1 = stride1 = step1 = 1
before1 = 0
if not flat:
    extent1, taps1 = param_i64(block, 14), param_i64(block, 15)
    out1, stride1 = param_i64(block, 16), param_i64(block, 17)
    step1, before1 = param_i64(block, 18), param_i64(block, 19)
extent2, taps2, out2 = param_i64(block, 20), param_i64(block, 21), param_i64(block, 22)
stride2, step2, before2 = param_i64(block, 23), param_i64(block, 24), param_i64(block, 25)
image = extent0 * extent1 * extent2
pixels = out0 * out1 * out2
plain = taps0 * taps1 * taps2 == 1 and stride0 * stride1 * stride2 == 1
plain = plain and before0 == 0 and before1 == 0 and before2 == 0 and pixels == image
if plain and channels * outputs != 1:  # one tap: an image is a line
    extent2 = out2 = image
    extent0 = extent1 = out0 = out1 = 1
"""
"""A block's words as variables (``convolution``); ``flat`` where there is one axis but the rows."""

LINES = """\
channel, plane = r0 // lines, r0 % lines // variants
tap1, tap2 = r0 % variants // taps2, r0 % taps2
source_all = ((entry * groups + group) * channels + channel) * image
for r in range(r_count):
    q0, q1, q2 = first_q0, first_q1, first_q2
    target = patches + r * line * {size}
    left = span
    # The positions from which the tap sees something of a line.
    t2 = tap2 * step2 - before2
    low_all = (stride2 - 1 - t2) // stride2 if t2 < 0 else 0
    high_all = (extent2 - t2 + stride2 - 1) // stride2
    if by_rows:
        left = 0
        low_all = out2 if low_all > out2 else low_all
        high_all = out2 if high_all > out2 else high_all
        high_all = low_all if high_all < low_all else high_all
        t0 = q0 * stride0 + plane * plane_step - before0
        low = (stride0 - 1 - t0) // stride0 if t0 < 0 else 0
        high = (extent0 - t0 + stride0 - 1) // stride0
        low = q_count if low > q_count else low
        high = low if high < low else (q_count if high > q_count else high)
        source = x + (source_all + t0 * extent2 + t2) * {size}
        copy_lines_{vectors}(
            target, out2, source, stride0 * extent2, q_count, low, high, low_all,
            high_all, out2, stride2)
    while left > 0:
        t0 = q0 * stride0 + plane * plane_step - before0
        t1 = q1 * stride1 + tap1 * step1 - before1
        t2 = q2 * stride2 + tap2 * step2 - before2
        run = out2 - q2 if out2 - q2 < left else left
        low = 0
        high = 0
        if t0 >= 0 and t0 < extent0 and t1 >= 0 and t1 < extent1:
            low = low_all - q2 if low_all > q2 else 0
            high = high_all - q2
            low = run if low > run else low
            high = low if high < low else (run if high > run else high)
        source = x + (source_all + (t0 * extent1 + t1) * extent2 + t2) * {size}
        copy_run_{vectors}(target, source, low, high, run, stride2)
        target += run * {size}
        left -= run
        q2 = 0
        {next_row}
    {next_tap}
"""
"""Copies ``r_count`` lines, from the one of number ``r0`` on, to ``patches``, ``line`` elements
apart: a channel has ``lines`` of them, for ``planes`` rows of taps ``plane_step`` apart by
``variants`` taps of a row. A line has ``span`` positions from ``first_q0, first_q1, first_q2`` on;
or, ``by_rows``, ``q_count`` whole rows of them. Vectors are written: what follows a line is lost.
"""

NEXT = {
    "next_row": counted_on([("q1", "out1")], "q0 += 1"),
    "next_tap": counted_on(
        [("tap2", "taps2"), ("tap1", "taps1"), ("plane", "planes")], "source_all += image"
    ),
}
"""Parts of ``LINES``."""
