"""The bit generator of `np.random.default_rng`, and what NumPy's generators draw from its bits.

In: the words of a generator's state (`random_state`), which a draw changes in place, and
parameters. Out: the numbers that NumPy gives, drawn from the same bits in the same order.

Sources: O'Neill, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
Random Number Generation (2014), member XSL RR 128/64; Marsaglia and Tsang, The Ziggurat Method
(2000); Lemire, Fast Random Integer Generation in an Interval (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import once
from pyrelay.infer.in_python import ziggurat as z

Array = Any
Word = Any  # np.uint64

_HALF = np.uint64(0xFFFFFFFF)
_FACTOR_LOW, _FACTOR_HIGH = np.uint64(4865540595714422341), np.uint64(2549297995355413924)
_NORMAL_END = 3.6541528853610087963519472518  # where the lowest layer's tail begins
_EXPONENTIAL_END = 7.6971174701310497140446280481


# -- bits ------------------------------------------------------------------------------------------


def _high_product(a: Word, b: Word) -> Word:
    """The upper 64 of the 128 bits of a product."""
    a_low, a_high = a & _HALF, a >> np.uint64(32)
    b_low, b_high = b & _HALF, b >> np.uint64(32)
    cross, other = a_low * b_high, a_high * b_low
    middle = (a_low * b_low >> np.uint64(32)) + (cross & _HALF) + (other & _HALF)
    above = (cross >> np.uint64(32)) + (other >> np.uint64(32)) + (middle >> np.uint64(32))
    return a_high * b_high + above


@once
def word(words: Array) -> Word:
    """The next 64 bits."""
    low, high = words[1], words[2]
    after = low * _FACTOR_LOW + words[3]
    carry = np.uint64(after < words[3])
    high = _high_product(low, _FACTOR_LOW) + low * _FACTOR_HIGH + high * _FACTOR_LOW
    high = high + words[4] + carry
    words[1], words[2] = after, high
    turn = high >> np.uint64(58)
    mixed = high ^ after
    return (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))


def half_word(words: Array) -> Word:
    """The next 32 bits; every second time those that were left over."""
    if words[5] != 0:
        words[5] = np.uint64(0)
        return words[6]
    found = word(words)
    words[5] = np.uint64(1)
    words[6] = found >> np.uint64(32)
    return found & _HALF


def _float(bits: Word) -> Any:
    return np.int64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


def random(words: Array) -> Any:
    """A float of at least 0, less than 1."""
    return _float(word(words))


@once
def at_most(words: Array, most: Word) -> Word:
    """A whole number from 0 to `most`, each as likely as any other."""
    if most == 0:
        return most
    count = most + np.uint64(1)
    if most <= _HALF:
        least = (_HALF - most) % count
        product = np.uint64(0)
        drawing = True
        while drawing:
            product = half_word(words) * count
            drawing = product & _HALF < least
        return product >> np.uint64(32)
    found = np.uint64(0)
    drawing = True
    least = (~np.uint64(0) - most) % count if count else np.uint64(0)
    while drawing:
        found = word(words)
        drawing = found * count < least
    return _high_product(found, count) if count else found


@once
def in_interval(words: Array, most: Word) -> Word:
    """As `at_most` for up to 32 bits, by leaving out what is too large: other numbers."""
    mask = most
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> np.uint64(shift)
    found = most + np.uint64(1)
    while found > most:
        found = half_word(words) & mask
    return found


# -- distributions ---------------------------------------------------------------------------------

_LAYER, _EDGE, _TAIL, _TAIL_AGAIN, _DONE = range(5)  # what the next bits are for


def _in_layer(bits: Word) -> Any:
    """A layer and how far from the middle of it, of those of the normal density."""
    layer = int(bits & np.uint64(0xFF))
    return layer, int((bits >> np.uint64(9)) & np.uint64(0x000FFFFFFFFFFFFF))


@once
def standard_normal(words: Array) -> Any:
    """A normal number, by the ziggurat."""
    bits = word(words)
    layer, distance = _in_layer(bits)
    x = distance * z.NORMAL_WIDTHS[layer]
    if distance >= z.NORMAL_BOUNDS[layer]:  # one in a hundred
        state, beyond = _EDGE if layer else _TAIL, 0.0
        while state != _DONE:
            more = word(words)
            if state == _EDGE:
                low, high = z.NORMAL_HEIGHTS[layer], z.NORMAL_HEIGHTS[layer - 1]
                inside = (high - low) * _float(more) + low < np.exp(-0.5 * x * x)
                state = _DONE if inside else _LAYER
            elif state == _LAYER:
                bits = more
                layer, distance = _in_layer(bits)
                x = distance * z.NORMAL_WIDTHS[layer]
                state = _EDGE if layer else _TAIL
                if distance < z.NORMAL_BOUNDS[layer]:
                    state = _DONE
            else:
                tail = -np.log1p(-_float(more))
                if state == _TAIL:
                    beyond = tail / _NORMAL_END
                    state = _TAIL_AGAIN
                elif tail + tail > beyond * beyond:
                    x = _NORMAL_END + beyond
                    bits = np.uint64(distance)
                    state = _DONE
                else:
                    state = _TAIL
    return -x if bits & np.uint64(0x100) else x


@once
def standard_exponential(words: Array) -> Any:
    """An exponential number of scale 1, by the ziggurat."""
    state, layer, x = _LAYER, 0, 0.0
    while state != _DONE:
        bits = word(words)
        if state == _LAYER:
            layer = int((bits >> np.uint64(3)) & np.uint64(0xFF))
            distance = int(bits >> np.uint64(11))
            x = distance * z.EXPONENTIAL_WIDTHS[layer]
            state = _EDGE if layer else _TAIL
            if distance < z.EXPONENTIAL_BOUNDS[layer]:
                state = _DONE
        elif state == _EDGE:
            low, high = z.EXPONENTIAL_HEIGHTS[layer], z.EXPONENTIAL_HEIGHTS[layer - 1]
            inside = (high - low) * _float(bits) + low < np.exp(-x)
            state = _DONE if inside else _LAYER
        else:
            x = _EXPONENTIAL_END - np.log1p(-_float(bits))
            state = _DONE
    return x


def integers(words: Array, low: Any, high: Any, endpoint: bool) -> Any:
    """A whole number from `low` to below `high`, or to it."""
    last = high if endpoint else high - 1
    if low > last:
        sign = ">" if endpoint else ">="
        opposite = "<" if endpoint else "<="
        raise ValueError(f"high {opposite} 0" if low == 0 else f"low {sign} high")
    first = np.int64(low).astype(np.uint64)
    most = np.int64(last).astype(np.uint64) - first
    return (first + at_most(words, most)).astype(np.int64)


def item(words: Array, count: Any) -> Any:
    """A whole number below `count`, for a choice among so many things."""
    if count <= 0:
        raise ValueError("a must be a positive integer unless no samples are taken")
    return np.int64(at_most(words, np.uint64(count - 1)))


def weighted_item(words: Array, sums: Array) -> Any:
    """A place in running sums of probabilities."""
    return np.searchsorted(sums, random(words), side="right")


def permutation(words: Array, size: int) -> Array:
    """The numbers below `size` in a random order (Durstenfeld, Algorithm 235, 1964)."""
    order = np.arange(size)
    for k in range(size - 1, 0, -1):
        other = np.int64(in_interval(words, np.uint64(k)))
        order[k], order[other] = order[other], order[k]
    return order


FREE = -1  # of places in a table


def sample(words: Array, count: int, size: int, shuffle: bool) -> Array:
    """Different numbers below `count`, i64[size], in a random order if `shuffle`.

    Sources: Floyd, as Bentley has it (Programming Pearls, CACM 30, 1987); of large parts of many
    numbers the end of a permutation.
    """
    cutoff = 50 if shuffle else 20
    if count > 10000 and size > count // cutoff:
        order = np.arange(count)
        _shuffle(words, order, max(count - size, 1))
        return order[count - size:]
    room = 2
    while room < 2 * size:
        room *= 2
    table = np.full(room, FREE)
    found = np.empty(size, np.int64)
    for k in range(size):
        last = count - size + k
        value = np.int64(at_most(words, np.uint64(last)))
        place = place_in(table, value)
        if table[place] != FREE:
            value = np.int64(last)
            place = place_in(table, value)
        table[place] = value
        found[k] = value
    if shuffle:
        _shuffle(words, found, 1)
    return found


@once
def place_in(table: Array, value: Any) -> Any:
    """Where a number stands in a table with open addresses, or could."""
    place = value & (table.shape[0] - 1)
    while table[place] != FREE and table[place] != value:
        place = (place + 1) & (table.shape[0] - 1)
    return place


@once
def _shuffle(words: Array, order: Array, first: int) -> None:
    """Exchange each number from the last down to `first` for one at most as far along."""
    for k in range(order.shape[0] - 1, first - 1, -1):
        other = np.int64(at_most(words, np.uint64(k)))
        order[k], order[other] = order[other], order[k]


def random_single(words: Array) -> Any:
    """A float of 24 bits of at least 0, less than 1."""
    return np.float32(np.int64(half_word(words) >> np.uint64(8)) * (1.0 / 16777216.0))
