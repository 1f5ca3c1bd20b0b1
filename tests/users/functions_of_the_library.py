"""Functions of Python's library and of NumPy that take or make functions, tables of characters,
and dicts with entries given by name."""

from __future__ import annotations

import functools
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


@refuse((X,), "excluded and signature", "loop")
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
