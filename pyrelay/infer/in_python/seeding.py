"""What a seed makes of the generators of NumPy and of Python.

In: a whole number of at most 63 bits. Out: the words of the state (`random_state`) that
`np.random.default_rng`, `np.random.RandomState` or `random.Random` begins with. Raises ValueError
as these do.

Sources: O'Neill, Developing a seed_seq Alternative (2015), as numpy.random.SeedSequence has it;
Matsumoto and Nishimura, Mersenne Twister, initialisation of 2002 (init_genrand, init_by_array).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer import random_state as state
from pyrelay.infer.in_python import pcg64

Array = Any
Word = Any  # np.uint64

_HALF = np.uint64(0xFFFFFFFF)
_SIXTEEN, _THIRTY, _HALF_SIZE = np.uint64(16), np.uint64(30), np.uint64(32)
_POOL = 4  # words of 32 bits that a seed is spread over
_SIZE = 624  # words of the Mersenne Twister


def _spread(word: Word, before: Word, after: Word) -> Word:
    """Bits mixed by two neighbours of a sequence of factors."""
    mixed = ((word ^ before) * after) & _HALF
    return mixed ^ (mixed >> _SIXTEEN)


def _joined(one: Word, other: Word) -> Word:
    mixed = (one * np.uint64(0xCA01F9DD) - other * np.uint64(0x4973F715)) & _HALF
    return mixed ^ (mixed >> _SIXTEEN)


def _entropy(seed: Any) -> Array:
    """The pool of a seed: 4 words of 32 bits."""
    bits = np.uint64(seed)
    pool = np.zeros(_POOL, np.uint64)
    pool[0], pool[1] = bits & _HALF, bits >> _HALF_SIZE
    factor = np.uint64(0x43B0D7E5)
    for k in range(_POOL):
        following = (factor * np.uint64(0x931E8875)) & _HALF
        pool[k] = _spread(pool[k], factor, following)
        factor = following
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                following = (factor * np.uint64(0x931E8875)) & _HALF
                pool[target] = _joined(pool[target], _spread(pool[source], factor, following))
                factor = following
    return pool


def default_rng(seed: Any) -> Array:
    """The state of a PCG64 generator."""
    if seed < 0:
        raise ValueError("expected non-negative integer")
    pool = _entropy(seed)
    halves = np.zeros(8, np.uint64)
    factor = np.uint64(0x8B51F9DD)
    for k in range(8):
        following = (factor * np.uint64(0x58F38DED)) & _HALF
        halves[k] = _spread(pool[k % _POOL], factor, following)
        factor = following
    state_high, state_low = _whole(halves, 0), _whole(halves, 2)
    step_high, step_low = _whole(halves, 4), _whole(halves, 6)
    one = np.uint64(1)
    words = np.zeros(state.PCG64_WORDS, np.uint64)
    words[3] = (step_low << one) | one
    words[4] = (step_high << one) | (step_low >> np.uint64(63))
    pcg64.word(words)
    low = words[1] + state_low
    words[2] += state_high + np.uint64(low < state_low)
    words[1] = low
    pcg64.word(words)
    return words


def _whole(halves: Array, place: int) -> Word:
    return halves[place] | (halves[place + 1] << _HALF_SIZE)


def _twister(kind: int, seed: Word) -> Array:
    """The state of a Mersenne Twister that the seed's lower 32 bits give."""
    words = np.zeros(state.MT19937_WORDS, np.uint64)
    words[0] = np.uint64(kind)
    bits = seed & _HALF
    for k in range(_SIZE):
        words[1 + k] = bits
        mixed = np.uint64(1812433253) * (bits ^ (bits >> _THIRTY))
        bits = (mixed + np.uint64(k + 1)) & _HALF
    words[1 + _SIZE] = np.uint64(_SIZE)
    return words


def random_state(seed: Any) -> Array:
    """The state of `np.random.RandomState`."""
    if seed < 0 or seed > 4294967295:
        raise ValueError("Seed must be between 0 and 2**32 - 1")
    return _twister(state.LEGACY, np.uint64(seed))


def python_random(seed: Any) -> Array:
    """The state of `random.Random`, for which a number and its negative are one."""
    bits = np.uint64(abs(seed))
    count = 2 if bits > _HALF else 1
    words = _twister(state.PYTHON, np.uint64(19650218))
    at = 1
    for k in range(_SIZE):
        part = bits & _HALF if k % count == 0 else bits >> _HALF_SIZE
        before = words[at]
        mixed = words[at + 1] ^ ((before ^ (before >> _THIRTY)) * np.uint64(1664525))
        words[at + 1] = (mixed + part + np.uint64(k % count)) & _HALF
        at += 1
        if at >= _SIZE:
            words[1] = words[_SIZE]
            at = 1
    for _ in range(_SIZE - 1):
        before = words[at]
        mixed = words[at + 1] ^ ((before ^ (before >> _THIRTY)) * np.uint64(1566083941))
        words[at + 1] = (mixed - np.uint64(at)) & _HALF
        at += 1
        if at >= _SIZE:
            words[1] = words[_SIZE]
            at = 1
    words[1] = np.uint64(0x80000000)
    return words
