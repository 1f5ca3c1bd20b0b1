"""Convolutions of single channels, channels first: a part of a kernel's text.

In: names of the kernel ``convolution_first`` is the text of; out: a loop over its units, planes of
the image or parts of them, where every channel is by itself. The lines of a part of the image that
its taps see, zeros around them included, lie in the frame, for every phase of a stride's rows and
columns lines of their own; the outputs are sums of shifted lines, as long as a row of positions.
What depends on which lines these are, and not on the plane, is computed once for all planes that
fit as a whole.
"""

SINGLE = """\
    # Every channel by itself: lines of the image and their sums are as long as those of positions.
    phases2 = stride2 if taps2 > 1 and step2 % stride2 != 0 else 1
    width = out2 + (taps2 - 1) * step2 // stride2
    padded = (width + {lanes_most}) // {lanes} * {lanes}
    reach = (taps0 - 1) * step0 // stride0
    height = {scratch} // (phases * phases2 * padded) - reach if width > 0 else 0
    single = channels == 1 and outputs == 1 and flat and height > 0 and taps <= {taps_most}
    single = single and stride0 <= {strides} and stride2 <= {strides}
    whole = blocks == 1 and height >= out0
    held_from = -1
    held = -1
    first_lines, last_lines = local_i64({strides}), local_i64({strides})
    lows, highs = local_i64({strides}), local_i64({strides})
    if single:
        for phase2 in range(phases2):
            t2 = phase2 - before2
            low = (stride2 - 1 - t2) // stride2 if t2 < 0 else 0
            high = (extent2 - t2 + stride2 - 1) // stride2
            low = width if low > width else low
            high = low if high < low else (width if high > width else high)
            store_ordered_i64(lows, phase2, low)
            store_ordered_i64(highs, phase2, high)
    unit = begin
    unfinished = unit
    while single and unit < end:
        plane = unit
        part = 0
        last = 1
        if blocks > 1:
            plane, part = unit // blocks, unit % blocks
            last = part + end - unit
            last = blocks if blocks < last else last
        unit += last - part
        q0 = 0
        q_end = out0
        if not whole:
            q0, q_end = part * out0 // blocks, last * out0 // blocks
        while q0 < q_end:
            q_count = q_end - q0 if q_end - q0 < height else height
            lines = q_count + reach
            if q0 != held_from or q_count != held:
                held_from = q0
                held = q_count
                for phase0 in range(phases):
                    t0 = q0 * stride0 + phase0 - before0
                    low = (stride0 - 1 - t0) // stride0 if t0 < 0 else 0
                    high = (extent0 - t0 + stride0 - 1) // stride0
                    low = lines if low > lines else low
                    high = low if high < low else (lines if high > lines else high)
                    store_ordered_i64(first_lines, phase0, low)
                    store_ordered_i64(last_lines, phase0, high)
                for tap0 in range(taps0):
                    for tap2 in range(taps2):
                        phase = tap0 * step0 % stride0 * phases2 + tap2 * step2 % stride2
                        at = (phase * lines + tap0 * step0 // stride0) * padded
                        store_ordered_i64(table, tap0 * taps2 + tap2, at + tap2 * step2 // stride2)
                store_ordered_i64(words, 0, patches)
                store_ordered_i64(words, 1, padded)
                store_ordered_i64(words, 3, out2)
                store_ordered_i64(words, 5, table)
                store_ordered_i64(words, 6, q_count)
                store_ordered_i64(words, 7, out2)
                store_ordered_i64(words, 8, taps)
            target = patches
            for phase0 in range(phases):
                t0 = q0 * stride0 + phase0 - before0
                for phase2 in range(phases2):
                    source = x + (plane * image + t0 * extent2 + phase2 - before2) * {size}
                    copy_lines_{vectors}(
                        target, padded, source, stride0 * extent2, lines,
                        load_ordered_i64(first_lines, phase0), load_ordered_i64(last_lines, phase0),
                        load_ordered_i64(lows, phase2), load_ordered_i64(highs, phase2), padded,
                        stride2)
                    target += lines * padded * {size}
            store_ordered_i64(words, 2, y + (plane * pixels + q0 * out2) * {size})
            store_ordered_i64(words, 4, w + plane % groups * taps * {size})
            line_sums_{vectors}(words)
            if finisher != 0 and not whole:
                store_ordered_i64(finishing, 2, q0 * out2)
                store_ordered_i64(finishing, 3, (q0 + q_count) * out2)
                call_address(finisher, finishing, plane, plane + 1)
            q0 += height
        # Small planes are finished several at a time, while they lie in the first cache.
        if finisher != 0 and whole:
            if unit == end or (unit - unfinished) * pixels >= {finished}:
                store_ordered_i64(finishing, 2, 0)
                store_ordered_i64(finishing, 3, pixels)
                call_address(finisher, finishing, unfinished, unit)
                unfinished = unit
"""
