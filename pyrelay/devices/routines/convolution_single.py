"""Convolutions of single channels, channels first: a part of a kernel's text.

In: names of the kernel ``convolution_first`` is the text of; out: a loop over its units, planes of
the image or parts of them, where every channel is by itself. The lines of a part of the image that
its taps see, zeros around them included, lie in the frame, for every phase of a stride's columns
lines of their own; the outputs are sums of shifted lines, as long as a row of positions. Of 3 by 3
adjacent taps they are sums over windows, which read every second column themselves, and lines that
are not short where they lie in the image.
What depends on which lines these are, and not on the plane, is computed once for all planes that
fit as a whole.
"""

SINGLE = """\
    # Every channel by itself: lines of the image, zeros around them included, as the taps see them.
    windows = taps0 == {window} and taps2 == {window} and step0 == 1 and step2 == 1
    windows = windows and stride2 <= 2 and stride0 == stride2
    apart = 1 if windows else stride2
    phases2 = apart if taps2 > 1 and step2 % apart != 0 else 1
    width = (out2 - 1) * stride2 // apart + 1 + (taps2 - 1) * step2 // apart
    padded = (width + {lanes_most}) // {lanes} * {lanes}
    reach = (taps0 - 1) * step0 + 1 - stride0
    height = 0
    if width > 0:
        # So many rows that their lines stay in the first cache, unless that is next to none.
        height = ({near} // (phases2 * padded) - reach) // stride0
        if height < {fewest}:
            height = ({scratch} // (phases2 * padded) - reach) // stride0
    direct = windows and extent2 >= {direct} and before2 >= 0 and extent2 <= {scratch}
    if direct:
        height = {near} // (extent2 * stride0 + out2)
    if windows:
        height = ({taps_most} - reach) // stride0 if height > {taps_most} // 2 else height
        height = {fewest} if direct and height < {fewest} else height
    single = channels == 1 and outputs == 1 and flat and height > 0 and taps <= {taps_most}
    single = single and stride2 <= {strides}
    whole = blocks == 1 and height >= out0
    held_from = -1
    held = -1
    first_line = 0
    last_line = 0
    lows, highs = local_i64({strides}), local_i64({strides})
    if single:
        for phase2 in range(phases2):
            t2 = phase2 - before2
            low = (apart - 1 - t2) // apart if t2 < 0 else 0
            high = (extent2 - t2 + apart - 1) // apart
            low = width if low > width else low
            high = low if high < low else (width if high > width else high)
            store_ordered_i64(lows, phase2, low)
            store_ordered_i64(highs, phase2, high)
    if single and windows:
        low = 0
        high = out2
        if direct:
            # Whole vectors of the image, of which the first are those of a multiple of columns.
            low = ((before2 + stride2 - 1) // stride2 + {lanes_most}) // {lanes} * {lanes}
            space = extent2 - 2 - stride2 * {lanes} + before2
            high = (space // stride2 + {lanes}) // {lanes} * {lanes}
            high = out2 // {lanes} * {lanes} if high > out2 // {lanes} * {lanes} else high
            high = low if high < low else high
            clear_bytes(patches, extent2 * {size})
        store_ordered_i64(words, 0, table)
        store_ordered_i64(words, 3, out2)
        store_ordered_i64(words, 5, stride2)
        store_ordered_i64(words, 7, low)
        store_ordered_i64(words, 8, high)
        store_ordered_i64(words, 9, before2)
        store_ordered_i64(words, 10, extent2)
        store_ordered_i64(words, 12, 0)
        store_ordered_i64(words, 13, 1)
        store_ordered_i64(words, 14, table)
    outside, line_bytes = patches - before2 * {size}, extent2 * {size}
    unit = begin
    # Planes whose rows are no longer than two vectors: several at a time, read where they lie.
    small = single and windows and whole and out2 <= 2 * {lanes} and out0 <= {tall} and not direct
    if small:
        apart_lines = local_i64({lines_most})
        clear_bytes(patches, extent2 * {size})
        for k in range(out0 * stride0 + reach):
            inside = k >= before0 and k - before0 < extent0
            line = x + ((k - before0) * extent2 - before2) * {size}
            store_ordered_i64(table, k, line if inside else patches - before2 * {size})
            store_ordered_i64(apart_lines, k, image * {size} if inside else 0)
        store_ordered_i64(words, 1, y)
        store_ordered_i64(words, 2, out0)
        store_ordered_i64(words, 6, x)
        store_ordered_i64(words, 7, 0)
        store_ordered_i64(words, 8, 0)
        store_ordered_i64(words, 14, apart_lines)
    while small and unit < end:
        last = unit - unit % groups + groups
        last = end if last > end else last
        last = unit + {finished} // pixels + 1 if last > unit + {finished} // pixels + 1 else last
        store_ordered_i64(words, 4, w - (unit - unit % groups) * taps * {size})
        store_ordered_i64(words, 11, (end - last) * pixels)
        store_ordered_i64(words, 12, unit)
        store_ordered_i64(words, 13, last)
        window_sums_{vectors}(words)
        if finisher != 0:
            store_ordered_i64(finishing, 2, 0)
            store_ordered_i64(finishing, 3, pixels)
            call_address(finisher, finishing, unit, last)
        unit = last
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
        # The next planes of this call are written later.
        room = (end - unit) * pixels
        room = room if whole and room < {lanes} else {lanes}
        room = room if whole else 0
        while q0 < q_end:
            q_count = q_end - q0 if q_end - q0 < height else height
            lines = q_count * stride0 + reach
            t0 = q0 * stride0 - before0
            if q0 != held_from or q_count != held:
                held_from = q0
                held = q_count
                first_line = -t0 if t0 < 0 else 0
                last_line = extent0 - t0
                first_line = lines if first_line > lines else first_line
                last_line = lines if last_line > lines else last_line
                last_line = first_line if last_line < first_line else last_line
                if windows:
                    for k in range(lines):
                        store_ordered_i64(table, k, patches + k * padded * {size})
                else:
                    for tap0 in range(taps0):
                        for tap2 in range(taps2):
                            at = (tap2 * step2 % apart * lines + tap0 * step0) * padded
                            at += tap2 * step2 // apart
                            store_ordered_i64(table, tap0 * taps2 + tap2, at)
                    store_ordered_i64(words, 0, patches)
                    store_ordered_i64(words, 1, stride0 * padded)
                    store_ordered_i64(words, 3, out2)
                    store_ordered_i64(words, 5, table)
                    store_ordered_i64(words, 6, q_count)
                    store_ordered_i64(words, 7, out2)
                    store_ordered_i64(words, 8, taps)
            source = x + (plane * image + t0 * extent2 - before2) * {size}
            to = y + (plane * pixels + q0 * out2) * {size}
            weights = w + plane % groups * taps * {size}
            behind = source + last_line * extent2 * {size}
            if direct:
                behind = source + {ahead}
                line = source + first_line * extent2 * {size}
                for k in range(first_line):
                    store_ordered_i64(table, k, outside)
                for k in range(first_line, last_line):
                    store_ordered_i64(table, k, line)
                    line += line_bytes
                for k in range(last_line, lines):
                    store_ordered_i64(table, k, outside)
            else:
                for phase2 in range(phases2):
                    copy_lines_{vectors}(
                        patches + phase2 * lines * padded * {size}, padded,
                        source + phase2 * {size}, extent2, lines, first_line, last_line,
                        load_ordered_i64(lows, phase2), load_ordered_i64(highs, phase2), padded,
                        apart)
            if windows:
                store_ordered_i64(words, 1, to)
                store_ordered_i64(words, 2, q_count)
                store_ordered_i64(words, 4, weights)
                store_ordered_i64(words, 6, behind)
                store_ordered_i64(words, 11, room)
                window_sums_{vectors}(words)
            else:
                store_ordered_i64(words, 2, to)
                store_ordered_i64(words, 4, weights)
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
