"""Attention: the source text of a kernel that computes ``softmax(score(q k')) v``.

In: a dtype; out: one kernel's text (ABI of ``kernel_compiler``) for attention of every size and
layout. Parameters:

    block[1..4]      addresses of q, k, v and the result
    block[5..6]      addresses of the maxima and of the sums of rows, or 0 where they are not wanted
    block[7..8]      address of scores that are kept, one matrix of the rows of all entries, and how
                     many rows are kept: none or all
    block[9..12]     targets (rows of scores), sources (columns), depth of q and k, width of v
    block[13..15]    1 or 0: whether q, k and v are transposed, as in ``matmul``: q is [targets,
                     depth], k [depth, sources], v [sources, width] where they are not
    block[16..18]    elements from one line of q, of k, of v to the next
    block[19]        1 or 0: whether a row whose scores are all -inf gives zeros (else NaN)
    block[20..21]    the address of a kernel that makes scores of products, in place
                     (``lower/planning/finishing.py``), or 0; how many operands that has
    block[22..23]    1 or 2 where all that kernel does is to multiply by a number or to divide by
                     it, else 0; that number. It scales q then, which has fewer elements, where that
                     cannot overflow
    block[24]        the number of batch axes
    block[25 ...]    for each batch axis: its extent, the strides of q, k and v along it, in
                     elements (0 where that operand is broadcast)
    block[...]       the operands of the kernel that makes scores

The parallel axis counts blocks of ``choices.targets`` targets of each entry of the batch. Where an
entry has two whole blocks or more, up to ``GROUP`` of them that follow each other are taken
together: their keys and values are packed once, if these are no deeper or wider than the blocks of
a product. Their scores, for two blocks of targets and ``choices.sources`` columns at a time, lie in
the frame of the kernel; how blocks of columns are joined is said in
``lower/kernels/attention.py``.
"""

from __future__ import annotations

import functools

from pyrelay.devices.choices import DEFAULT, Choices
from pyrelay.devices.routines.matmul import (
    COLUMN_UNIT,
    FINISHING_OPERANDS,
    ROW_UNIT,
    native_vector_bits,
    product_name,
)
from pyrelay.ir.types import DType

GROUP = 8
"""Blocks of targets for which keys and values are packed once."""

WAYS = ("near_rows", "packed_columns")
"""Ways that its products go (`made_of.WAYS`)."""

_DEEPEST = 1024  # bytes of a row of q that is scaled
_MOST_DIVIDED = 2.0**64  # by what q is divided: the reciprocal has all digits

_TEXT = """\
from math import inf

from pyrelay.devices.routines.attention_rows import scaled_rows_{lanes}, softened_rows_{lanes}
from pyrelay.devices.routines.matmul_bands import near_rows_{vectors}, packed_columns_{vectors}
from pyrelay.devices.routines.matmul_blocks import product_{vectors}
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True


def kernel(block, begin, end):
    targets, sources = param_i64(block, 9), param_i64(block, 10)
    depth, width = param_i64(block, 11), param_i64(block, 12)
    q_turned, k_turned, v_turned = param_i64(block, 13), param_i64(block, 14), param_i64(block, 15)
    q_line, k_line, v_line = param_i64(block, 16), param_i64(block, 17), param_i64(block, 18)
    guarded, shaping, operands = param_i64(block, 19), param_i64(block, 20), param_i64(block, 21)
    axes = param_i64(block, 24)
    kept, keeps = param_i64(block, 7), param_i64(block, 8)
    raw_line = sources if keeps != 0 else {columns}
    tops, sums = param_i64(block, 5), param_i64(block, 6)
    q_row = 1 if q_turned != 0 else q_line
    k_column = k_line if k_turned != 0 else 1
    v_row = 1 if v_turned != 0 else v_line
    scores = local_{t}({scores})
    largest, totals = local_{t}({most}), local_{t}({most})
    product, shaped = local_i64(16), local_i64({words})
    store_ordered_i64(product, 13, 0)
    store_ordered_i64(product, 14, 0)
    store_ordered_i64(product, 15, 0)
    store_ordered_i64(shaped, 0, param_i64(block, 0))
    store_ordered_i64(shaped, 4, raw_line)
    for k in range(operands):
        store_ordered_i64(shaped, 5 + k, load_ordered_i64(block, 25 + 4 * axes + k))
    # Whether q is scaled: by a number of at most 1, or the reciprocal of one of at least 1.
    scales, factor = param_i64(block, 22), param_{t}(block, 23)
    divides = scales == 2 and (factor >= {t}(1.0) or factor <= {t}(-1.0))
    divides = divides and factor <= {t}({most_divided}) and factor >= {t}(-{most_divided})
    scaled = divides or (scales == 1 and factor >= {t}(-1.0) and factor <= {t}(1.0))
    scaled = scaled and depth <= {deepest} and q_turned == 0
    shaping = 0 if scaled else shaping
    smaller = local_{t}({smaller})
    rows, numbers = local_i64(11), local_{t}(1)
    store_ordered_{t}(numbers, 0, {t}(1.0) / factor if divides else factor)
    # Not by how many blocks the range has: a row's sums are the same wherever it is cut.
    shared = targets >= 2 * {rows} and depth <= {deep} and width <= {deep} and q_turned == 0
    packed_keys, packed_values = local_{t}({keys}), local_{t}({values})
    blocks = (targets + {rows_most}) // {rows}
    unit = begin
    while unit < end:
        entry, i0 = unit // blocks, unit % blocks * {rows}
        several = blocks - unit % blocks if shared else 1
        several = several if several < {group} else {group}
        several = several if several < end - unit else end - unit
        every = targets - i0 if targets - i0 < several * {rows} else several * {rows}
        unit += several
        q, keys, values = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
        rest = entry
        axis = axes
        while axis > 0:
            axis -= 1
            extent = load_ordered_i64(block, 25 + 4 * axis)
            index = rest % extent
            rest = rest // extent
            q += index * load_ordered_i64(block, 26 + 4 * axis) * {size}
            keys += index * load_ordered_i64(block, 27 + 4 * axis) * {size}
            values += index * load_ordered_i64(block, 28 + 4 * axis) * {size}
        q += i0 * q_row * {size}
        result = param_i64(block, 4) + (entry * targets + i0) * width * {size}
        for r in range(every):
            store_{t}(largest, r, {t}(-inf))
            store_{t}(totals, r, {t}(0.0))
        if sources == 0:
            for place in range(every * width):
                store_inner_{t}(result, place, {t}(0.0))
        for j0 in range(0, sources, {columns}):
            added = 1 if j0 > 0 else 0
            span = sources - j0 if sources - j0 < {columns} else {columns}
            these_keys = keys + j0 * k_column * {size}
            these_values = values + j0 * v_row * {size}
            if shared:
                packed_columns_{vectors}(these_keys, k_line, k_turned, packed_keys, span, depth)
                for k0 in range(0, span, {deep}):
                    few = span - k0 if span - k0 < {deep} else {deep}
                    packed_columns_{vectors}(
                        these_values + k0 * v_row * {size}, v_line, v_turned,
                        packed_values + k0 * {wide} * {size}, width, few,
                    )
            for r0 in range(0, every, 2 * {rows}):
                count = every - r0 if every - r0 < 2 * {rows} else 2 * {rows}
                first = entry * targets + i0 + r0
                these, line = q + r0 * q_row * {size}, q_line
                store_ordered_i64(rows, 4, count)
                if scaled:
                    store_ordered_i64(rows, 0, these)
                    store_ordered_i64(rows, 1, q_line)
                    store_ordered_i64(rows, 2, smaller)
                    store_ordered_i64(rows, 3, depth)
                    store_ordered_i64(rows, 5, depth)
                    store_ordered_i64(rows, 6, numbers)
                    store_ordered_i64(rows, 7, 0)
                    scaled_rows_{lanes}(rows)
                    these = smaller
                    line = depth
                raw = kept + (first * sources + j0) * {size} if keeps != 0 else scores
                sums_of = result + r0 * width * {size}
                if shared:
                    near_rows_{vectors}(
                        these, line, raw, raw_line, packed_keys, 0, 0, count, 0, span, depth, 0,
                    )
                else:
                    store_ordered_i64(product, 1, these)
                    store_ordered_i64(product, 2, these_keys)
                    store_ordered_i64(product, 3, raw)
                    store_ordered_i64(product, 4, count)
                    store_ordered_i64(product, 5, span)
                    store_ordered_i64(product, 6, depth)
                    store_ordered_i64(product, 7, q_turned)
                    store_ordered_i64(product, 8, k_turned)
                    store_ordered_i64(product, 9, 0)
                    store_ordered_i64(product, 10, line)
                    store_ordered_i64(product, 11, k_line)
                    store_ordered_i64(product, 12, raw_line)
                    product_{vectors}(product, 0, (span + {column_unit_most}) // {column_unit})
                if shaping != 0:
                    store_ordered_i64(shaped, 1, raw - (first * raw_line + j0) * {size})
                    store_ordered_i64(shaped, 2, j0)
                    store_ordered_i64(shaped, 3, j0 + span)
                    call_kernel(shaping, shaped, first, first + count)
                store_ordered_i64(rows, 0, raw)
                store_ordered_i64(rows, 1, raw_line)
                store_ordered_i64(rows, 2, scores)
                store_ordered_i64(rows, 3, {columns})
                store_ordered_i64(rows, 5, span)
                store_ordered_i64(rows, 6, largest + r0 * {size})
                store_ordered_i64(rows, 7, totals + r0 * {size})
                store_ordered_i64(rows, 8, sums_of)
                store_ordered_i64(rows, 9, width)
                store_ordered_i64(rows, 10, added)
                softened_rows_{lanes}(rows)
                if shared:
                    for k0 in range(0, span, {deep}):
                        few = span - k0 if span - k0 < {deep} else {deep}
                        near_rows_{vectors}(
                            scores + k0 * {size}, {columns}, sums_of, width,
                            packed_values + k0 * {wide} * {size}, 0, 0, count, 0, width, few,
                            added + k0,
                        )
                else:
                    store_ordered_i64(product, 1, scores)
                    store_ordered_i64(product, 2, these_values)
                    store_ordered_i64(product, 3, sums_of)
                    store_ordered_i64(product, 5, width)
                    store_ordered_i64(product, 6, span)
                    store_ordered_i64(product, 7, 0)
                    store_ordered_i64(product, 8, v_turned)
                    store_ordered_i64(product, 9, added)
                    store_ordered_i64(product, 10, {columns})
                    store_ordered_i64(product, 11, v_line)
                    store_ordered_i64(product, 12, width)
                    product_{vectors}(product, 0, (width + {column_unit_most}) // {column_unit})
        for r in range(every):
            total = load_ordered_{t}(totals, r)
            if tops != 0:
                store_{t}(tops, entry * targets + i0 + r, load_ordered_{t}(largest, r))
            if sums != 0:
                store_{t}(sums, entry * targets + i0 + r, total)
            if guarded != 0 and total == {t}(0.0):
                total = {t}(1.0)
            store_ordered_{t}(totals, r, {t}(1.0) / total)
        store_ordered_i64(rows, 0, result)
        store_ordered_i64(rows, 1, width)
        store_ordered_i64(rows, 2, result)
        store_ordered_i64(rows, 3, width)
        store_ordered_i64(rows, 4, every)
        store_ordered_i64(rows, 5, width)
        store_ordered_i64(rows, 6, totals)
        store_ordered_i64(rows, 7, 1)
        scaled_rows_{lanes}(rows)
    return 0
"""


@functools.cache
def attention_kernel(
    dtype: DType, vector_bits: int | None = None, choices: Choices = DEFAULT
) -> str:
    """The text of the kernel for floats of this type.

    ``vector_bits``: 128, 256 or 512; this CPU's widest vectors unless given.
    """
    rows, columns = choices.targets, choices.sources
    assert 2 * rows <= ROW_UNIT
    bits = native_vector_bits() if vector_bits is None else vector_bits
    lanes = bits // (8 * dtype.size)
    assert columns % lanes == 0
    deep, panel = choices.depth, 3 * lanes
    wide = deep + panel  # columns of packed values: the last panel may be wider than what is left
    return _TEXT.format(
        t=dtype.name, size=dtype.size, vectors=product_name(dtype, bits, choices),
        lanes=f"{dtype.name}x{lanes}",
        rows=rows, rows_most=rows - 1, most=GROUP * rows, group=GROUP, columns=columns,
        scores=2 * rows * columns, deep=deep, wide=wide, keys=(columns + panel) * deep,
        values=-(-columns // deep) * wide * deep,
        column_unit=COLUMN_UNIT, column_unit_most=COLUMN_UNIT - 1,
        words=5 + FINISHING_OPERANDS, deepest=_DEEPEST // dtype.size,
        most_divided=_MOST_DIVIDED,
        smaller=2 * rows * _DEEPEST // dtype.size,
    )  # fmt: skip
