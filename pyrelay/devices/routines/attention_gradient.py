"""The derivative of attention: the source text of a kernel that makes the scores again.

In: a dtype; out: one kernel's text (ABI of ``kernel_compiler``) for every size and layout.
Parameters:

    block[1..4]      addresses of q, k, v and the cotangent of attention's result
    block[5..7]      addresses of the maxima and the sums of rows of scores, and of the means of
                     their slopes, weighted with the probabilities
    block[8..10]     addresses of the cotangents of q, k and v, 0 where one is not wanted
    block[11..12]    address of scores that are kept and how many rows of them are, see
                     ``attention``: where there are none they are made again
    block[13..16]    targets (rows of scores), sources (columns), depth of q and k, width of v
    block[17..19]    1 or 0: whether q, k and v are transposed, see ``attention``; their cotangents
                     are where they are, and dense
    block[20..22]    elements from one line of q, of k, of v to the next
    block[23]        1 or 0: whether a row whose scores are all -inf has zeros (else NaN)
    block[24..25]    the address of a kernel that makes scores of products, in place
                     (``lower/planning/finishing.py``), or 0; how many operands that has
    block[26..27]    the same for one that makes cotangents of products of those of scores
    block[28]        1: an item of the parallel axis is a whole entry of the batch; 0: it is a block
                     of ``ROWS`` rows of one, or, behind those, a block of ``COLUMNS`` columns
    block[29]        the number of batch axes
    block[30 ...]    for each batch axis: its extent, the strides of q, k and v along it, in
                     elements (0 where that operand is broadcast)
    block[...]       the operands of both kernels

A block of rows gives those of q's cotangent, a block of columns those of k's and v's: nobody adds
to what another thread does, and the scores are made twice. A whole entry makes them once.
"""

from __future__ import annotations

import functools

from pyrelay.devices.choices import DEFAULT, Choices
from pyrelay.devices.routines.matmul import (
    COLUMN_UNIT,
    FINISHING_OPERANDS,
    native_vector_bits,
    product_name,
)
from pyrelay.ir.types import DType

ROWS, COLUMNS = 128, 128
WAYS = ("near_rows", "packed_rows", "packed_columns", "in_place")
"""Ways that its products go (`made_of.WAYS`)."""

_TEXT = """\
from math import inf

from pyrelay.devices.routines.attention_rows import slopes_rows_{lanes}
from pyrelay.devices.routines.matmul_blocks import product_{vectors}
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True


def kernel(block, begin, end):
    targets, sources = param_i64(block, 13), param_i64(block, 14)
    depth, width = param_i64(block, 15), param_i64(block, 16)
    q_turned, k_turned, v_turned = param_i64(block, 17), param_i64(block, 18), param_i64(block, 19)
    q_line, k_line, v_line = param_i64(block, 20), param_i64(block, 21), param_i64(block, 22)
    guarded = param_i64(block, 23)
    shaping, shaping_count = param_i64(block, 24), param_i64(block, 25)
    turning, turning_count = param_i64(block, 26), param_i64(block, 27)
    whole, axes = param_i64(block, 28), param_i64(block, 29)
    kept, keeps = param_i64(block, 11), param_i64(block, 12)
    raw_line = sources if keeps != 0 else {columns}
    tops, sums, means = param_i64(block, 5), param_i64(block, 6), param_i64(block, 7)
    q_row = 1 if q_turned != 0 else q_line
    k_column = k_line if k_turned != 0 else 1
    v_row = 1 if v_turned != 0 else v_line
    of_q_row = 1 if q_turned != 0 else depth
    of_k_column = depth if k_turned != 0 else 1
    of_v_row = 1 if v_turned != 0 else width
    scores, slopes = local_{t}({square}), local_{t}({square})
    product, shaped, turned = local_i64(16), local_i64({words}), local_i64({words})
    rows = local_i64(11)
    store_ordered_i64(product, 13, 0)
    store_ordered_i64(product, 14, 0)
    store_ordered_i64(product, 15, 0)
    store_ordered_i64(shaped, 0, param_i64(block, 0))
    store_ordered_i64(shaped, 4, {columns})
    store_ordered_i64(turned, 0, param_i64(block, 0))
    store_ordered_i64(turned, 4, {columns})
    given = 30 + 4 * axes
    for n in range(shaping_count):
        store_ordered_i64(shaped, 5 + n, load_ordered_i64(block, given + n))
    for n in range(turning_count):
        store_ordered_i64(turned, 5 + n, load_ordered_i64(block, given + shaping_count + n))
    row_blocks = (targets + {rows_most}) // {rows}
    column_blocks = (sources + {columns_most}) // {columns}
    items = 1 if whole != 0 else row_blocks + column_blocks
    for unit in range(begin, end):
        entry, item = unit // items, unit % items
        of_q, of_k, of_v = param_i64(block, 8), param_i64(block, 9), param_i64(block, 10)
        first_i = 0
        stop_i = targets
        first_j = 0
        stop_j = sources
        if whole == 0:
            if item < row_blocks:
                of_k = 0
                of_v = 0
                first_i = item * {rows}
                stop_i = first_i + {rows} if first_i + {rows} < targets else targets
            else:
                of_q = 0
                first_j = (item - row_blocks) * {columns}
                stop_j = first_j + {columns} if first_j + {columns} < sources else sources
        q, keys, values = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
        rest = entry
        axis = axes
        while axis > 0:
            axis -= 1
            extent = load_ordered_i64(block, 30 + 4 * axis)
            index = rest % extent
            rest = rest // extent
            q += index * load_ordered_i64(block, 31 + 4 * axis) * {size}
            keys += index * load_ordered_i64(block, 32 + 4 * axis) * {size}
            values += index * load_ordered_i64(block, 33 + 4 * axis) * {size}
        given_out = param_i64(block, 4) + entry * targets * width * {size}
        if of_q != 0:
            of_q += entry * targets * depth * {size}
            if sources == 0:
                for place in range(first_i * depth, stop_i * depth):
                    store_inner_{t}(of_q, place, {t}(0.0))
        if of_k != 0:
            of_k += entry * sources * depth * {size}
            if targets == 0:
                for place in range(first_j * depth, stop_j * depth):
                    store_inner_{t}(of_k, place, {t}(0.0))
        if of_v != 0:
            of_v += entry * sources * width * {size}
            if targets == 0:
                for place in range(first_j * width, stop_j * width):
                    store_inner_{t}(of_v, place, {t}(0.0))
        for j0 in range(first_j, stop_j, {columns}):
            span = stop_j - j0 if stop_j - j0 < {columns} else {columns}
            for i0 in range(first_i, stop_i, {rows}):
                count = stop_i - i0 if stop_i - i0 < {rows} else {rows}
                first = entry * targets + i0
                raw = kept + (first * sources + j0) * {size} if keeps != 0 else scores
{products_of_scores}
                store_ordered_i64(rows, 0, raw)
                store_ordered_i64(rows, 1, raw_line)
                store_ordered_i64(rows, 2, scores)
                store_ordered_i64(rows, 3, slopes)
                store_ordered_i64(rows, 4, {columns})
                store_ordered_i64(rows, 5, count)
                store_ordered_i64(rows, 6, span)
                store_ordered_i64(rows, 7, tops + first * {size})
                store_ordered_i64(rows, 8, sums + first * {size})
                store_ordered_i64(rows, 9, means + first * {size})
                store_ordered_i64(rows, 10, guarded)
                slopes_rows_{lanes}(rows)
                if turning != 0:
                    store_ordered_i64(turned, 1, slopes - (first * {columns} + j0) * {size})
                    store_ordered_i64(turned, 2, j0)
                    store_ordered_i64(turned, 3, j0 + span)
                    call_kernel(turning, turned, first, first + count)
                below = 1 if i0 > first_i else 0
                beside = 1 if j0 > first_j else 0
{products_of_results}
    return 0
"""

_SHAPED = """\
                if shaping != 0 and keeps == 0:
                    store_ordered_i64(shaped, 1, scores - (first * {columns} + j0) * {size})
                    store_ordered_i64(shaped, 2, j0)
                    store_ordered_i64(shaped, 3, j0 + span)
                    call_kernel(shaping, shaped, first, first + count)
"""


def _product(indent: int, vectors: str, **words: object) -> str:
    """Statements that multiply matrices by the words of a product's parameters (``matmul``)."""
    places = ("a", "b", "c", "m", "n", "k", "a_turned", "b_turned", "added", "a_line", "b_line",
              "c_line")  # fmt: skip
    lines = [f"store_ordered_i64(product, {k}, {words[name]})" for k, name in enumerate(places, 1)]
    units = f"(({words['n']}) + {COLUMN_UNIT - 1}) // {COLUMN_UNIT}"
    lines.append(f"product_{vectors}(product, 0, {units})")
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _either(test: str, yes: str, no: str) -> str:
    pad = " " * 20
    return f"{pad}if {test} != 0:\n{yes}{pad}else:\n{no}"


def _products_of_scores(vectors: str, size: int) -> str:
    """The scores, shaped, and their slopes."""
    tile = {"m": "count", "n": "span", "added": 0, "c_line": COLUMNS}
    scores = " " * 16 + "if keeps == 0:\n" + _product(
        20, vectors, **tile, a=f"q + i0 * q_row * {size}", b=f"keys + j0 * k_column * {size}",
        c="scores", k="depth", a_turned="q_turned", b_turned="k_turned", a_line="q_line",
        b_line="k_line",
    )
    slopes = _product(
        16, vectors, **tile, a=f"given_out + i0 * width * {size}",
        b=f"values + j0 * v_row * {size}", c="slopes", k="width", a_turned=0,
        b_turned="1 - v_turned", a_line="width", b_line="v_line",
    )
    return scores + _SHAPED.format(columns=COLUMNS, size=size) + slopes


def _products_of_results(vectors: str, size: int) -> str:
    """What a block of scores adds to the results. Each is a product with the block on the left, or,
    where it is transposed, on the right."""
    block = {"a_line": COLUMNS, "k": "count"}
    given, q = f"given_out + i0 * width * {size}", f"q + i0 * q_row * {size}"
    keys = f"keys + j0 * k_column * {size}"
    of_v, of_k = f"of_v + j0 * of_v_row * {size}", f"of_k + j0 * of_k_column * {size}"
    of_q = f"of_q + i0 * of_q_row * {size}"
    parts = []
    for name, test, turned, straight in (
        ("of_v", "v_turned",
         {"a": given, "b": "scores", "c": of_v, "m": "width", "n": "span", "k": "count",
          "a_turned": 1, "b_turned": 0, "added": "below", "a_line": "width", "b_line": COLUMNS,
          "c_line": "sources"},
         {**block, "a": "scores", "b": given, "c": of_v, "m": "span", "n": "width", "a_turned": 1,
          "b_turned": 0, "added": "below", "b_line": "width", "c_line": "width"}),
        ("of_k", "1 - k_turned",
         {"a": q, "b": "slopes", "c": of_k, "m": "depth", "n": "span", "k": "count",
          "a_turned": "1 - q_turned", "b_turned": 0, "added": "below", "a_line": "q_line",
          "b_line": COLUMNS, "c_line": "sources"},
         {**block, "a": "slopes", "b": q, "c": of_k, "m": "span", "n": "depth", "a_turned": 1,
          "b_turned": "q_turned", "added": "below", "b_line": "q_line", "c_line": "depth"}),
        ("of_q", "q_turned",
         {"a": keys, "b": "slopes", "c": of_q, "m": "depth", "n": "count", "k": "span",
          "a_turned": "k_turned", "b_turned": 1, "added": "beside", "a_line": "k_line",
          "b_line": COLUMNS, "c_line": "targets"},
         {"a": "slopes", "b": keys, "c": of_q, "m": "count", "n": "depth", "k": "span",
          "a_turned": 0, "b_turned": "1 - k_turned", "added": "beside", "a_line": COLUMNS,
          "b_line": "k_line", "c_line": "depth"}),
    ):  # fmt: skip
        both = _either(test, _product(24, vectors, **turned), _product(24, vectors, **straight))
        parts.append(f"                if {name} != 0:\n{both}")
    return "".join(parts)


@functools.cache
def attention_gradient_kernel(
    dtype: DType, vector_bits: int | None = None, choices: Choices = DEFAULT
) -> str:
    """The text of the kernel for floats of this type.

    ``vector_bits``: 128, 256 or 512; this CPU's widest vectors unless given. Of ``choices`` the
    sizes of blocks of products count.
    """
    bits = native_vector_bits() if vector_bits is None else vector_bits
    vectors = product_name(dtype, bits, choices)
    return _TEXT.format(
        t=dtype.name, size=dtype.size, vectors=vectors,
        lanes=f"{dtype.name}x{bits // (8 * dtype.size)}", rows=ROWS, rows_most=ROWS - 1,
        columns=COLUMNS, columns_most=COLUMNS - 1, square=ROWS * COLUMNS,
        words=5 + FINISHING_OPERANDS,
        products_of_scores=_products_of_scores(vectors, dtype.size),
        products_of_results=_products_of_results(vectors, dtype.size),
    )
