"""What Python's `random.random` and its kin draw from the bits of a Mersenne Twister.

In: the state of a generator (`random_state`), which a draw changes in place, and parameters. Out:
the numbers that `random.Random` gives, drawn from the same bits in the same order.

Sources: normal numbers by Box and Muller (Annals of Mathematical Statistics 29, 1958), and by
Kinderman and Monahan (ACM TOMS 3, 1977).
"""

from __future__ import annotations

import bisect
import itertools
import math
import sys
from typing import Any

import numpy as np

from pyrelay.infer.in_python import once
from pyrelay.infer.in_python.mt19937 import HAS_KEPT, half_word, random
from pyrelay.infer.in_python.pcg64 import FREE, place_in

Array = Any

_NORMAL_FACTOR = 4 * math.exp(-0.5) / math.sqrt(2.0)
_NAMES_BOUNDS = sys.version_info >= (3, 12)  # in the error of an empty range


def gauss(words: Array, kept: Array) -> Any:
    """A normal number; of two that are made together, the second is kept."""
    if words[HAS_KEPT]:
        words[HAS_KEPT] = np.uint64(0)
        found = kept[0]
        kept[0] = 0.0
        return found
    angle = random(words) * (2.0 * math.pi)
    radius = math.sqrt(-2.0 * math.log(1.0 - random(words)))
    words[HAS_KEPT] = np.uint64(1)
    kept[0] = math.sin(angle) * radius
    return math.cos(angle) * radius


def expovariate(words: Array, kept: Array) -> Any:
    """An exponential number of rate 1."""
    return -math.log(1.0 - random(words))


def normalvariate(words: Array, kept: Array) -> Any:
    """A normal number."""
    found, drawing = 0.0, True
    while drawing:
        first = random(words)
        second = 1.0 - random(words)
        found = _NORMAL_FACTOR * (first - 0.5) / second
        drawing = found * found / 4.0 > -math.log(second)
    return found


@once
def below(words: Array, count: Any) -> Any:
    """A whole number below `count`, each as likely as any other."""
    width = 0
    while count >> width:
        width += 1
    found = count
    while found >= count:
        low = half_word(words)
        if width <= 32:
            found = int(low >> np.uint64(32 - width))
        else:
            high = half_word(words) >> np.uint64(64 - width)
            found = int(high << np.uint64(32) | low)
    return found


def randrange(words: Array, kept: Array, start: Any, stop: Any = None) -> Any:
    """An item of a range."""
    if stop is None:
        if start <= 0:
            raise ValueError("empty range for randrange()")
        return below(words, start)
    if start >= stop:
        if _NAMES_BOUNDS:
            raise ValueError(f"empty range in randrange({start}, {stop})")
        raise ValueError(f"empty range for randrange() ({start}, {stop}, {stop - start})")
    return start + below(words, stop - start)


def randint(words: Array, kept: Array, a: Any, b: Any) -> Any:
    """A whole number from `a` to `b`."""
    return randrange(words, kept, a, b + 1)


def order(words: Array, kept: Array, size: int) -> Array:
    """The numbers below `size` in the order in which `shuffle` puts them."""
    found = np.arange(size)
    for k in range(size - 1, 0, -1):
        other = below(words, k + 1)
        found[k], found[other] = found[other], found[k]
    return found


def places(words: Array, kept: Array, count: int, size: int) -> Array:
    """The places, i64[size], of the items that `sample` takes of `count`, each once."""
    if size < 0 or size > count:
        raise ValueError("Sample larger than population or is negative")
    found = np.empty(size, np.int64)
    room = 1  # a power of 4, as Python chooses which way takes less memory
    while room < 3 * size:
        room *= 4
    if count <= (21 + room if size > 5 else 21):
        left = np.arange(count)
        for k in range(size):
            place = below(words, count - k)
            found[k] = left[place]
            left[place] = left[count - k - 1]
        return found
    taken = np.full(room, FREE)
    for k in range(size):
        value = np.int64(below(words, count))
        place = place_in(taken, value)
        while taken[place] != FREE:
            value = np.int64(below(words, count))
            place = place_in(taken, value)
        taken[place] = value
        found[k] = value
    return found


def choices(
    generator: Any, population: Any, weights: Any, cum_weights: Any, count: Any
) -> list[Any]:
    """random.Random.choices: items, the same one as often as it comes, by weights if there are."""
    size = len(population)
    if cum_weights is None:
        if weights is None:
            return [population[math.floor(generator.random() * size)] for _ in range(count)]
        cum_weights = list(itertools.accumulate(weights))
    elif weights is not None:
        raise TypeError("Cannot specify both weights and cumulative weights")
    if len(cum_weights) != size:
        raise ValueError("The number of weights does not match the population")
    total = cum_weights[size - 1] + 0.0
    if total <= 0.0:
        raise ValueError("Total of weights must be greater than zero")
    if not math.isfinite(total):
        raise ValueError("Total of weights must be finite")
    return [
        population[bisect.bisect(cum_weights, generator.random() * total, 0, size - 1)]
        for _ in range(count)
    ]
