"""Functions of Python's library and of NumPy that take or make functions, tables of characters,
and dicts with entries given by name."""

from __future__ import annotations

import collections
import functools
import heapq
import os
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([0.5, 3.0, -1.0, 2.0])


@dataclass
class Square:
    side: float


@dataclass
class Circle:
    radius: float


@functools.singledispatch
def area(shape):
    raise TypeError(f"no area of a {type(shape).__name__}")


@area.register
def _(shape: Square):
    return shape.side**2


@area.register(Circle)
def _(shape):
    return 3.0 * shape.radius**2


@area.register(int)
@area.register(float)
def _(shape, scale=1.0):
    return shape * scale


@use((2.0,), wrt=(0,))
def areas_of_both_kinds(x):
    return area(Square(x)) + area(Circle(2 * x)) + area(x, scale=3.0)


@use((5,), (1,))
def areas_of_shapes_in_a_list(n):
    shapes = []
    for i in range(n):
        shapes.append(Square(float(i)) if i % 2 else Circle(float(i)))
    return [area(shape) for shape in shapes]


@use(("a",))
def area_of_a_text(text):
    return area(text)


@use(("hello world",), ("Xerxes, again",))
def characters_replaced(text):
    table = str.maketrans("aeo", "430", " ,")
    pairs = str.maketrans({"l": "L", "x": None, 104: "jj"})
    return text.translate(table), text.translate(table)[::-1], text.translate(pairs)


@use((["attack", "at dawn"], 3))
def shifted_by_a_computed_alphabet(texts, k):
    letters = "abcdefghijklmnopqrstuvwxyz"
    table = str.maketrans(letters, letters[k:] + letters[:k], " ")
    return [text.translate(table) for text in texts]


@use((4,))
def named_tuples_made_inside(n):
    Edge = collections.namedtuple("Edge", ["u", "v", "w"], defaults=[1.5])
    Word = collections.namedtuple("Word", "x class", rename=True)
    edges = [Edge(i, i + 1) for i in range(n)] + [Edge(0, n, w=n)]
    edges.sort(key=lambda e: (-e.w, e.u))
    best = edges[0]._replace(u=9)
    return [tuple(e) for e in edges], best._asdict(), str(best), Edge._fields, Word(n, 1)._1


@use((1,))
def named_tuples_of_wrong_names(n):
    return collections.namedtuple("Pair", "x x")(n, n)


@use(("a/b",))
def path_of_a_text(path):
    return os.fspath(path) + "/c"


@use((3,), long=True)
def entries_by_name(n):
    made = {"a": n}
    made.update(other=3)
    made.update({"b": 1}, self=4, key=5, items=n, x=6)
    table = {}
    for i in range(n):
        table[f"k{i}"] = i
    table.update(other=3, pairs=n, self=2)
    counted = Counter("abca", iterable=2)
    counted.update(self=1, pairs=2)
    return made, table, counted, dict(pairs=1, it=2), OrderedDict(pairs=1), defaultdict(
        int, pairs=1, default_factory=2
    )


@use((3,))
def entries_of_other_lengths(n):
    made = {}
    made.update([(2, n), (3,)])
    return made


@use((X,), wrt=(0,))
def vectorized_with_types(x):
    bent = np.vectorize(lambda v: 0 if v < 0 else v * v, otypes=[float])
    low, sign = np.vectorize(lambda v: (v - 1, v > 0), otypes="dd")(x)
    return bent(x), low, sign, np.vectorize(lambda v: 2.0, otypes=[np.float32])(x[:0])


@use((X,), wrt=(0,))
def vectorized_whose_first_is_a_float(x):
    return np.vectorize(lambda v: v if v > 0 else 0)(x)


@refuse((X,), "arrays of objects", "np.vectorize")
def function_of_objects(x):
    return np.frompyfunc(lambda v: v + 1, 1, 1)(x)


@use((np.arange(6.0).reshape(2, 3),), (np.ones((2, 2, 3)),))
def vectorized_rows(x):
    return np.vectorize(lambda row: row.sum(), signature="(n)->()")(x)


@refuse((X,), "x.resize", "np.zeros")
def resized_in_place(x):
    y = x.copy()
    y.resize(6)
    return y


@use(("abc",), ("/",), ("",), ("a/",))
def of_paths(text):
    return os.path.join(text, "b")


@use((["b", "A c"], {"x": 3, "y": 5}))
def methods_of_texts_by_their_class(words, d):
    parts = [list(map(str.upper, part)) for part in map(str.split, words)]
    return (
        sorted(words, key=str.lower), parts, ",".join(map(str.strip, words)),
        list(filter(str.isalpha, "a1b")), max(d, key=d.get),
    )


@use(([3, 1, 2], [1.5, 2.0]), ([], []))
def methods_of_others_by_their_class(items, x):
    copied = []
    for item in items:
        list.append(copied, item)
    try:
        said = [str.upper(item) for item in items]
    except TypeError as error:
        said = str(error)
    return copied, said, list(map(float.is_integer, x)), list(map(int.bit_length, items))


@use((36,), (7,))
def divisors(n):
    """As they are found often."""
    pairs = ([i, n // i] for i in range(1, int(n**0.5) + 1) if n % i == 0)
    return sorted(set(functools.reduce(list.__add__, pairs)))


@use((np.arange(6.0).reshape(2, 3),), wrt=(0,))
def methods_of_arrays_by_their_class(x):
    return np.ndarray.sum(x, axis=0), list(map(np.ndarray.max, x))


@use(([4, 2, 9], [8, 1]), ([], [3]))
def merged_by_the_library(a, b):
    a, b = sorted(a), sorted(b)
    down = heapq.merge(a[::-1], b[::-1], key=lambda v: v // 2, reverse=True)
    return list(heapq.merge(a, b, [3])), list(down)


@use((b"ab\x00\xff",), (b"",))
def bytes_gone_through(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xEDB88320 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF, sum(data), [b ^ 1 for b in data], list(b"ab"), 255 in data
