"""The Mersenne Twister, and what `np.random.rand` and its kin draw from its bits.

In: the state of a generator (`random_state`), which a draw changes in place, and parameters. Out:
the numbers that NumPy's RandomState gives, drawn from the same bits in the same order.

Sources: Matsumoto and Nishimura, Mersenne Twister (ACM TOMACS 8, 1998); normal numbers by Marsaglia
and Bray, A Convenient Method for Generating Normal Variables (SIAM Review 6, 1964).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import once

Array = Any
Word = Any  # np.uint64

_SIZE, _MIDDLE = 624, 397
_PLACE, HAS_KEPT = 625, 626  # of words, behind the kind and the 624 of the state
_HALF, _HIGHEST = np.uint64(0xFFFFFFFF), np.uint64(0x80000000)
_TWIST = np.uint64(0x9908B0DF)


# -- bits ------------------------------------------------------------------------------------------


@once
def half_word(words: Array) -> Word:
    """The next 32 bits."""
    place = int(words[_PLACE])
    if place >= _SIZE:
        for k in range(1, _SIZE + 1):
            following = k + 1 if k < _SIZE else 1
            other = k + _MIDDLE if k <= _SIZE - _MIDDLE else k + _MIDDLE - _SIZE
            mixed = (words[k] & _HIGHEST) | (words[following] & ~_HIGHEST)
            words[k] = words[other] ^ (mixed >> np.uint64(1)) ^ ((mixed & np.uint64(1)) * _TWIST)
        place = 0
    words[_PLACE] = np.uint64(place + 1)
    bits = words[1 + place]
    bits ^= bits >> np.uint64(11)
    bits ^= (bits << np.uint64(7)) & np.uint64(0x9D2C5680)
    bits ^= (bits << np.uint64(15)) & np.uint64(0xEFC60000)
    return bits ^ (bits >> np.uint64(18))


def _two(words: Array) -> tuple[Word, Word]:
    """Two times the next 32 bits."""
    first, second = np.uint64(0), np.uint64(0)
    count = 0
    while count < 2:
        first, second = second, half_word(words)
        count += 1
    return first, second


@once
def random(words: Array) -> Any:
    """A float of at least 0, less than 1."""
    first, second = _two(words)
    high, low = np.int64(first >> np.uint64(5)), np.int64(second >> np.uint64(6))
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)


# -- distributions ---------------------------------------------------------------------------------


def standard_normal(words: Array, kept: Array) -> Any:
    """A normal number; of two that are made together, the second is kept."""
    if words[HAS_KEPT]:
        words[HAS_KEPT] = np.uint64(0)
        found = kept[0]
        kept[0] = 0.0
        return found
    first, second, square, count = 0.0, 0.0, 0.0, 0
    while count < 2:
        first, second = second, 2.0 * random(words) - 1.0
        count += 1
        square = first * first + second * second
        if count == 2 and (square >= 1.0 or square == 0.0):
            count = 0
    factor = np.sqrt(-2.0 * np.log(square) / square)
    words[HAS_KEPT] = np.uint64(1)
    kept[0] = factor * first
    return factor * second


def standard_exponential(words: Array, kept: Array) -> Any:
    """An exponential number of scale 1."""
    return -np.log(1.0 - random(words))


def random_sample(words: Array, kept: Array) -> Any:
    """A float of at least 0, less than 1."""
    return random(words)


@once
def at_most(words: Array, most: Word) -> Word:
    """A whole number from 0 to `most`, each as likely as any other."""
    if most == 0:
        return most
    mask = most
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    found = np.uint64(0)
    drawing = True
    while drawing:
        if most <= _HALF:
            found = half_word(words) & mask
        else:
            high, low = _two(words)
            found = (high << np.uint64(32) | low) & mask
        drawing = found > most
    return found


def randint(words: Array, kept: Array, low: Any, high: Any) -> Any:
    """A whole number from `low` to below `high`."""
    if low >= high:
        raise ValueError("high <= 0" if low == 0 else "low >= high")
    first = np.int64(low).astype(np.uint64)
    most = np.int64(high - 1).astype(np.uint64) - first
    return (first + at_most(words, most)).astype(np.int64)


def item(words: Array, kept: Array, count: Any) -> Any:
    """A whole number below `count`, for a choice among so many things."""
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    return np.int64(at_most(words, np.uint64(count - 1)))


def weighted_item(words: Array, kept: Array, sums: Array) -> Any:
    """A place in running sums of probabilities."""
    return np.searchsorted(sums, random(words), side="right")


def permutation(words: Array, kept: Array, size: int) -> Array:
    """The numbers below `size` in a random order (Durstenfeld, Algorithm 235, 1964)."""
    order = np.arange(size)
    for k in range(size - 1, 0, -1):
        other = np.int64(at_most(words, np.uint64(k)))
        order[k], order[other] = order[other], order[k]
    return order


def sample(words: Array, kept: Array, count: int, size: int) -> Array:
    """Different numbers below `count`, i64[size], in a random order."""
    return permutation(words, kept, count)[:size]
