"""Objects of which builtins ask something: their order, their attributes, their identity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.users.corpus import use


class Vector:
    """A vector ordered by its length."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __lt__(self, other):
        return abs(self) < abs(other)

    def __abs__(self):
        return math.hypot(self.x, self.y)


@use((1.0, 2.0), (-3.0, 0.5), wrt=(0, 1), long=True)
def sorted_by_their_own_order(a, b):
    vectors = [Vector(a, b), Vector(b, 3 * b), Vector(3 * a, a)]
    rising = sorted(vectors)
    vectors.sort(reverse=True)
    return [v.x for v in rising], [v.y for v in vectors], max(vectors, key=abs).x, min(vectors).y


@dataclass(order=True, frozen=True)
class Card:
    """A card by rank, then suit."""

    rank: int
    suit: int = 0


@use((3, 2), (2, 3), (2, 2), long=True)
def ordered_records(a, b):
    cards = [Card(a, 1), Card(b, 0), Card(2, 2)]
    return [c.suit for c in sorted(cards)], max(cards).rank, sorted(cards, reverse=True)[0].suit


class Celsius:
    """A temperature that has other scales as attributes."""

    def __init__(self, degrees):
        self.degrees = degrees

    def __getattr__(self, name):
        if name == "kelvin":
            return self.degrees + 273.15
        raise AttributeError(name)


@use((50.0,), wrt=(0,))
def attributes_that_a_class_makes(v):
    t = Celsius(v)
    return (
        t.kelvin, hasattr(t, "kelvin"), hasattr(t, "rankine"), getattr(t, "rankine", 3.0),
        getattr(t, "degrees", 0.0),
    )


def what_it_has(value):
    names = ("__len__", "__iter__", "__float__", "append", "shape", "__call__", "nothing")
    return [hasattr(value, name) for name in names]


@use((2.0,), (np.float32(2.0),), ([1.0, 2.0],), (np.ones(2),), ("text",), ((1, 2),))
def attributes_that_builtin_classes_give(value):
    return what_it_has(value), what_it_has([value]), what_it_has(lambda: value)


class Pair(NamedTuple):
    """Two numbers."""

    x: float
    y: float = 2.0


@use((1.0, 3.0), wrt=(0, 1))
def made_of_an_iterable(x, d):
    return Pair._make([x, d]), Pair(x)._make((d, d)).y


@use((math.nan, 1.0), (1.0, math.nan), (2.0, 1.0))
def the_same_nan(a, b):
    return a in (a, b), a in [b, 1.0], b in (0.0, b), np.nan in (a, b)


@use((5, 17), (2, 10))
def digits_in_a_base(a, n):
    return int("101", 2), int(bin(n), 2) + a, int("ff", 16)


class Plane(NamedTuple):
    """A vector that is a tuple, with operators of its own."""

    x: float
    y: float

    def __add__(self, other):
        return Plane(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Plane(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __neg__(self):
        return Plane(-self.x, -self.y)

    def __abs__(self):
        return math.hypot(self.x, self.y)

    def __lt__(self, other):
        return self.y < other.y

    def __contains__(self, v):
        return self.x <= v <= self.y

    def __len__(self):
        return 7


@use((1.0, 2.0), (5.0, 3.0), wrt=(0, 1), slow=True)
def named_tuples_with_operators(a, b):
    p, q = Plane(a, b), Plane(b, 2 * a)
    total = p + q * 2.0 + 0.5 * -p
    total += q
    pair = Pair(a) + (b,)
    return total, abs(p), p < q, 1.5 in p, len(p), pair, p == (a, b), Pair(b) * 2


class Countdown:
    """An object that is its own iterator."""

    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return self.left * 1.5


@use((5,), long=True)
def object_that_is_its_own_iterator(n):
    down = Countdown(n)
    total = 0.0
    for value in down:
        total = total * 2 + value
        if value < 2:
            break
    return total, down.left, next(down, -1.0), list(Countdown(3)), max(Countdown(n))


class Clock:
    """A number of minutes, parted by another or by a plain one."""

    def __init__(self, minutes):
        self.minutes = minutes

    def __divmod__(self, other):
        return Clock(self.minutes // other.minutes), self.minutes % other.minutes

    def __rdivmod__(self, other):
        return divmod(other, self.minutes)


@use((130, 60), (7, 2))
def divmod_of_objects(a, b):
    hours, left = divmod(Clock(a), Clock(b))
    return hours.minutes, left, divmod(a + 1, Clock(b))


@use((7,), (12,))
def keys_that_are_asked_once(n):
    asked = []

    def key(v):
        asked.append(v)
        return (v % 5, -v)

    some = [v for v in range(n) if v % 3]
    return max(some, key=key), min(some, key=key), asked


@use(([(1, 2), (0, 1), (1, 2), (0, 5)],))
def sorted_by_tuples_in_tuples(pairs):
    counts = {}
    for x, y in pairs:
        counts[x, y] = counts.get((x, y), 0) + 1
    rows = [((a, b), a * b) for a, b in pairs]
    rows.sort(key=lambda row: (row[1], row[0]), reverse=True)
    return sorted(counts.items()), max(counts.items()), rows, sorted((r[::-1] for r in rows))


@use((7,), (1,), (0,))
def words_of_a_branch_in_order(n):
    words, rows = [], []
    for i in range(n):
        words.append("odd" if i % 2 else "even")
        rows.append(("b" if i % 3 else "a", i))
    rows.sort(reverse=True)
    return sorted(words), rows, sorted(rows, key=lambda row: row[0]), max(words, default="")


@use((1, True), (3, False))
def numbers_that_are_one_object(n, flag):
    one, first, third = n - 2 if n > 2 else n, 1, 3
    return (
        one is n, one is first, n is not third, flag is True, flag is n,
        [k is one for k in (first, 2)],
    )


@dataclass(frozen=True)
class Hashed:
    """Hashed as the tuple of its fields."""

    x: int
    y: float


class OwnHash:
    """Says its hash itself."""

    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return hash((self.v, 3)) if self.v > 0 else -1


@use((3, 2.5, "abc"), (-1, -1.0, ""))
def hashes_of_values(a, b, s):
    of_objects = hash(Hashed(a, b)), hash(OwnHash(a))
    return hash(a), hash(b), hash(s), hash((a, (b, 2))), hash(np.float32(b)), hash(()), of_objects


@use((10, 8))
def hashed_into_buckets(n, count):
    buckets = [[] for _ in range(count)]
    for k in range(n):
        buckets[hash(k * 7.5) % count].append(k)
    return buckets


class Reversed:
    """What is gone through from its end."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return reversed(self.items)


class Pairs(Reversed):
    """What is gone through with its places."""

    def __iter__(self):
        return zip(range(len(self.items)), map(abs, self.items), strict=False)


@use((3,), (0,))
def iterators_of_builtins(n):
    numbers = []
    for k in range(n):
        numbers.append(k - 1)
    backwards, pairs = Reversed(numbers), Pairs(numbers)
    total = 0
    for k, v in pairs:
        total = 10 * total + k + v
    return list(backwards), [v for v in backwards], total, sorted(pairs), tuple(backwards)
