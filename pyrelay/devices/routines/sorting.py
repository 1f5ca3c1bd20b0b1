"""Lines of numbers sorted: quicksort by vectors, down to blocks that are sorted in registers.

In: "sort", "argsort" or "partition", and a type of 32 or 64 bits or whole numbers of fewer. Out: a
kernel's text; parameters are those of ``lower.planning.target.LineSort``.

A part is divided by a pivot, the middle one of a sample (``sort_partitions``); where the pivot
occurs again what equals it is set apart, so that few different numbers are no worst case. Parts of
a few vectors are blocks (``sort_blocks``). A line in ascending or descending order is found to be
so. NaNs are set apart first. Places are sorted as numbers: in a word lie as many of the leading
bits of a key, counted from where the greatest and the least one differ, as the element's place
leaves free, and the place behind them: what is equal is ordered by places, as a stable sort does.
Where bits of keys were left out, runs that are equal as far are sorted by those. Keys that differ
in few bits are counted instead, those of two bytes byte by byte, from the last one on (radix sort).

To partition a line only parts in which an asked place lies are divided further (Hoare, "Algorithm
65: find", CACM 4(7), 1961), by pivots beyond the place, which leave a small part (Floyd and Rivest,
"Expected time bounds for selection", CACM 18(3), 1975).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pyrelay.devices.routines.kernel_text import filled
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.devices.routines.sort_blocks import ROWS
from pyrelay.ir.types import DType

PICOSECONDS = {"sort": 6_000, "argsort": 12_000, "partition": 1_500}  # for an element

_PERMUTING = {256: "avx2", 512: "avx512f"}
"""What has instructions that permute vectors of so many bits by numbers."""

_HEAD = """\
from math import inf, nan
from pyrelay.devices.routines.sort_blocks import {block}
from pyrelay.devices.routines.sort_partitions import {divisions}
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True
sort_part = routine("sort_part"{asked_types})
{first_asked}
def sort_part(to, count{asked}):
    stack, sample = local_i64(128), local_{t}({most})
    first, top = 0, 0
    while True:
        {wanted}
        if count <= {most}:
            {block}(to + first * {size}, count)
            count = 0
        if count == 0:
            if top == 0:
                break
            top -= 1
            first = load_ordered_i64(stack, 2 * top)
            count = load_ordered_i64(stack, 2 * top + 1)
            continue
        few = {few} if count < {many} else {most}
        share = count // {few} if count < {many} else count // {most}
        seed = count
        for k in range(few):
            # Any place of a share of the part: which one, its size and number decide.
            seed = seed * 6364136223846793005 + 1442695040888963407
            at = first + share * k + ((seed >> 33 & 1073741823) * share >> 30)
            store_ordered_{t}(sample, k, load_ordered_{t}(to, at))
        {block}(sample, few)
        {middle}
        pivot = sample + middle * {size}
        start = to + first * {size}
        left = {less}(start, count, pivot)
        right = count - left
        last = first + left
        again = load_ordered_{t}(sample, middle - 1) == load_ordered_{t}(sample, middle)
        if left == 0 or again:
            start = to + last * {size}
            same = {same}(start, right, pivot)
            last += same
            right -= same
        # The shorter part first: the others are few.
        shorter = left < right
        store_ordered_i64(stack, 2 * top, last if shorter else first)
        store_ordered_i64(stack, 2 * top + 1, right if shorter else left)
        first = first if shorter else last
        count = left if shorter else right
        top += 1
    return 0

"""

#: the whole line is sorted
_ALL = {
    "first_asked": "", "asked_types": "", "asked": "", "wanted": "", "middle": "middle = few // 2",
}

#: only where a place is asked
_SOME = {
    "asked": ", places, many_asked", "asked_types": ', "i64", "i64"',
    "first_asked": """\
first_asked = routine("first_asked", "i64")

def first_asked(places, many_asked, least):
    low, high = 0, many_asked
    while low < high:
        between = (low + high) // 2
        if load_ordered_i64(places, between) < least:
            low = between + 1
        else:
            high = between
    return low

""",
    "wanted": """\
asked = first_asked(places, many_asked, first)
beyond = first_asked(places, many_asked, first + count)
if asked == beyond:
    count = 0
""",
    "middle": """\
# Where the place is in the sample, and further to the part's middle, so that it is on the short
# side of the pivot.
asked = load_ordered_i64(places, (asked + beyond) // 2) - first
middle = asked * few // count
middle = middle + few // 16 + 1 if 2 * middle < few else middle - few // 16
middle = 1 if middle < 1 else few - 1 if middle > few - 1 else middle
""",
}

_SORT = """\
def kernel(block, begin, end):
    x, out, room = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
    n = param_i64(block, 4)
    {asked_parameters}
    limit = room + (begin + 1) * n * {size}
    for line in range(begin, end):
        source, to = x + line * n * {size}, out + line * n * {size}
        {numbers}
        at = 1
        while at < count and not load_ordered_{t}(to, at) < load_ordered_{t}(to, at - 1):
            at += 1
        if at >= count:
            continue
        if at == 1:
            while at < count and not load_ordered_{t}(to, at - 1) < load_ordered_{t}(to, at):
                at += 1
            if at == count:
                for k in range(count // 2):
                    value = load_ordered_{t}(to, k)
                    store_ordered_{t}(to, k, load_ordered_{t}(to, count - 1 - k))
                    store_ordered_{t}(to, count - 1 - k, value)
                continue
        {sorted_part}
    return 0
"""

_FLOATS = """\
count = n
if {copy}(source, n, to) != 0:
    count = {number}(source, n, to, limit)
    for k in range(count, n):
        store_ordered_{t}(to, k, {t}(nan))
"""

_INTEGERS = """\
count = n
copy_bytes(to, source, n * {size})
"""

_WHOLE = {"asked_parameters": "", "sorted_part": "sort_part(to, count)"}

_PARTITION = {
    "asked_parameters": "places = param_i64(block, 5)\n"
    "many_asked, next_places = param_i64(block, 6), param_i64(block, 7)\n",
    "sorted_part": "sort_part(to, count, places + line * next_places * 8, many_asked)",
}

#: narrow numbers, where no vectors of them are compressed: as numbers of 32 bits in the room
_WIDENED = """\
wide = room + begin * n * 4
for k in range(count):
    store_ordered_i32(wide, k, i32(load_ordered_{t}(to, k)))
{part}
for k in range(count):
    store_ordered_{t}(to, k, {t}(load_ordered_i32(wide, k)))
"""

_ARGSORT = """\
zero_counts = routine("zero_counts")
add_counts = routine("add_counts")

def zero_counts(counts, many):
    for k in range(many):
        store_ordered_i64(counts, k, 0)
    return 0


def add_counts(counts, many):
    total = 0
    for k in range(many):
        count = load_ordered_i64(counts, k)
        store_ordered_i64(counts, k, total)
        total += count
    return 0


def kernel(block, begin, end):
    x, out, room = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
    n = param_i64(block, 4)
    counts, others, by_byte = local_i64(256), local_i64(256), room + begin * n * 8
    place_bits = 0
    while (n - 1) >> place_bits > 0:
        place_bits += 1
    places = (1 << place_bits) - 1
    for line in range(begin, end):
        source, to = x + line * n * {bytes}, out + line * n * 8
        in_order = True
        before = {least}
        {bounds}
        if in_order:
            for i in range(n):
                store_ordered_i64(to, i, i)
            continue
        # As an unsigned number, which any difference of keys is.
        apart = u64(greatest) - u64(least)
        key_bits = 0
        while key_bits < 64 and i64(apart >> u64(key_bits)) != 0:
            key_bits += 1
        if key_bits <= 8 and n > i64(apart):
            zero_counts(counts, i64(apart) + 1)
            for i in range(n):
                {key}
                byte = key - least
                store_ordered_i64(counts, byte, load_ordered_i64(counts, byte) + 1)
            add_counts(counts, i64(apart) + 1)
            for i in range(n):
                {key}
                byte = key - least
                place = load_ordered_i64(counts, byte)
                store_ordered_i64(counts, byte, place + 1)
                store_ordered_i64(to, place, i)
            continue
        if key_bits <= 16 and n >= {many_counted}:
            zero_counts(counts, 256)
            zero_counts(others, 256)
            for i in range(n):
                {key}
                byte, other = key - least & 255, key - least >> 8
                store_ordered_i64(counts, byte, load_ordered_i64(counts, byte) + 1)
                store_ordered_i64(others, other, load_ordered_i64(others, other) + 1)
            add_counts(counts, 256)
            add_counts(others, 256)
            for i in range(n):
                {key}
                byte = key - least & 255
                place = load_ordered_i64(counts, byte)
                store_ordered_i64(counts, byte, place + 1)
                store_ordered_i64(by_byte, place, i)
            for k in range(n):
                i = load_ordered_i64(by_byte, k)
                {key}
                other = key - least >> 8
                place = load_ordered_i64(others, other)
                store_ordered_i64(others, other, place + 1)
                store_ordered_i64(to, place, i)
            continue
        lost = key_bits + place_bits - 63
        lost = 0 if lost < 0 else lost
        for i in range(n):
            {key}
            known = i64((u64(key) - u64(least)) >> u64(lost))
            store_ordered_i64(to, i, known << place_bits | i)
        sort_part(to, n)
        if lost > 0:
            some = (1 << lost) - 1
            first = 0
            while first < n:
                known = load_ordered_i64(to, first) >> place_bits
                last = first + 1
                while last < n and load_ordered_i64(to, last) >> place_bits == known:
                    last += 1
                if last - first > 1:
                    for k in range(first, last):
                        i = load_ordered_i64(to, k) & places
                        {key}
                        rest = i64(u64(key) - u64(least)) & some
                        store_ordered_i64(to, k, rest << place_bits | i)
                    sort_part(to + first * 8, last - first)
                first = last
        for k in range(n):
            store_ordered_i64(to, k, load_ordered_i64(to, k) & places)
    return 0
"""

_BOUNDS = """\
least, greatest = {greatest}, {least}
for i in range(n):
    {key}
    least = where(key < least, key, least)
    greatest = where(key > greatest, key, greatest)
    in_order = in_order and not key < before
    before = key
"""

#: few numbers there are: no line is gone through to find the least one
_BOUNDS_OF_BYTES = """\
least, greatest = {least}, {greatest}
i = 0
while i < n and in_order:
    {key}
    in_order = not key < before
    before = key
    i += 1
"""

_KEYS = {
    "f": """\
value = load_ordered_{s}(source, i)
bits = i64(load_ordered_i{bits}(source, i))
key = where(bits < 0, bits ^ {greatest}, bits)
key = where(value == {s}(0.0), 0, key)
key = where(value != value, {greatest}, key)
""",
    "i": "key = i64(load_ordered_{s}(source, i))\n",
    "u": "key = i64(load_ordered_{s}(source, i)){flipped}\n",
}


@functools.cache
def line_sort(op: str, dtype: DType, vector_bits: int | None = None) -> str:
    """The text that sorts lines or partitions them, for a type of 32 or 64 bits, or whole numbers
    of fewer; `vector_bits` are those of this CPU unless they are given."""
    bits = vector_bits or native_vector_bits()
    if op == "argsort":
        return _head(op, "i64", 8, bits) + filled(_ARGSORT, _of_keys(dtype))
    names: dict[str, object] = {
        "t": dtype.name, "size": dtype.size, "numbers": _INTEGERS,
        **(_PARTITION if op == "partition" else _WHOLE),
    }
    if dtype.size == 4 or dtype.size == 8 or _are_compressed(dtype, bits):
        if dtype.kind == "f":
            names |= {"numbers": _FLOATS, **_divisions(dtype.name, dtype.size, bits, _OF_NANS)}
        return _head(op, dtype.name, dtype.size, bits, dtype.kind == "f") + filled(_SORT, names)
    part = str(names["sorted_part"]).replace("(to,", "(wide,")
    names["sorted_part"] = filled(_WIDENED, {**names, "part": part})
    return _head(op, "i32", 4, bits) + filled(_SORT, names)


def _are_compressed(dtype: DType, bits: int) -> bool:
    """Whether there are instructions that compress vectors of narrow numbers."""
    return dtype.size == 2 and bits == 512 and has_instructions("avx512vbmi2")


_OF_NANS = {"number": "take_numbers", "copy": "copy_numbers"}


def _divisions(kind: str, size: int, bits: int, rules: Mapping[str, str]) -> dict[str, str]:
    """The names of functions of vectors of a type, by what texts call them."""
    fitting = (wide for wide in _PERMUTING if wide <= bits and has_instructions(_PERMUTING[wide]))
    divided = max(fitting, default=0)
    vectors = f"x{divided // 8 // size}" if divided else ""
    return {rule: f"{name}_{kind}{vectors}" for rule, name in rules.items()}


def _head(op: str, kind: str, size: int, bits: int, nans: bool = False) -> str:
    """The part that sorts a line of a type where it lies."""
    lanes = min(bits // 8 // size, ROWS)
    rules = {"less": "divide_less", "same": "divide_same"}
    named = _divisions(kind, size, bits, {**rules, **(_OF_NANS if nans else {})})
    most = ROWS * lanes
    return filled(_HEAD, {
        "t": kind, "size": size, "block": f"sort_block_{kind}x{lanes}",
        "divisions": ", ".join(named.values()), "most": most, "few": min(16, most),
        "many": 16 * most, **named, **(_SOME if op == "partition" else _ALL),
    })


def _of_keys(dtype: DType) -> dict[str, object]:
    """What the text that sorts places says of the type of the keys."""
    wide = dtype.size == 8
    signed = dtype.kind != "u" or wide
    bits = 8 * dtype.size
    return {
        "s": dtype.name, "bits": bits, "bytes": dtype.size, "key": _KEYS[dtype.kind],
        "flipped": " ^ (1 << 63)" if wide else "", "many_counted": 1024,
        "bounds": _BOUNDS_OF_BYTES if bits == 8 else _BOUNDS,
        "greatest": 2 ** (bits - signed) - 1,
        "least": "(0 - 9223372036854775807 - 1)" if wide else -(2 ** (bits - 1)) * signed,
    }


@functools.cache
def has_instructions(feature: str) -> bool:
    """Whether this CPU has a kind of instructions."""
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get(feature))
