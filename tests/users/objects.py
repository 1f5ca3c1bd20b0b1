"""Classes of users: special methods, properties, inheritance, enums; sets, dicts and tuples."""

from __future__ import annotations

import enum
import functools
import math
import operator
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import NamedTuple

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([3.0, 1.0, 2.0])


class Vector:
    def __init__(self, *c):
        self.c = tuple(c)

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*(a + b for a, b in zip(self.c, other.c, strict=True)))

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __sub__(self, other):
        return Vector(*[a - b for a, b in zip(self.c, other.c, strict=True)])

    def __mul__(self, k):
        if isinstance(k, Vector):
            return sum(a * b for a, b in zip(self.c, k.c, strict=True))
        return Vector(*(a * k for a in self.c))

    __rmul__ = __mul__

    def __iadd__(self, other):
        self.c = tuple(a + b for a, b in zip(self.c, other.c, strict=True))
        return self

    def __neg__(self):
        return self * -1

    def __pow__(self, k):
        return Vector(*(a**k for a in self.c))

    def __iter__(self):
        return iter(self.c)

    def __len__(self):
        return len(self.c)

    def __getitem__(self, i):
        return self.c[i]

    def __eq__(self, other):
        return isinstance(other, Vector) and self.c == other.c

    def __lt__(self, other):
        return abs(self) < abs(other)

    def __abs__(self):
        return math.sqrt(self * self)

    def __round__(self, n=None):
        return round(self.c[0])

    def __call__(self, t):
        return self * t

    def __contains__(self, v):
        return any(v == a for a in self.c)

    def __float__(self):
        return float(abs(self))

    def __int__(self):
        return int(self.c[0])


@use((2.0, 3.0), wrt=(0, 1), long=True)
def special_methods(a, b):
    u, w = Vector(a, b), Vector(b, 1.0)
    same = u
    u += w
    x0, y0 = u
    return (
        (2.0 * u)[0], abs(u - w), sum([u, w])[0], u == w, u == Vector(*u), u != w, x0, y0,
        max(u, w)[0], round(u), u(2.0)[1], 3.0 in u, float(u), int(w), list(-u), (u**2)[1],
        same is u, len(u), [c for c in w], u == 3,
    )  # fmt: skip


class Layer:
    rate = 0.5

    def __init__(self, w, b=0.0):
        self.w = w
        self.b = b

    @property
    def norm(self):
        return abs(self.w)

    @property
    def bias(self):
        return self.b

    @bias.setter
    def bias(self, new):
        self.b = new * 2
        self.writes = getattr(self, "writes", 0) + 1

    @functools.cached_property
    def squared(self):
        self.b += 10
        return self.w**2

    @classmethod
    def unit(cls, k=1.0):
        return cls(k, k)

    @staticmethod
    def twice(v):
        return v * 2

    def bump(self, by):
        self.b += by
        return self


class Affine(Layer):
    def __init__(self, w, b, scale):
        super().__init__(w, b)
        self.scale = scale

    def bump(self, by):
        return super().bump(by * self.scale)

    @classmethod
    def unit(cls, k=1.0):
        return cls(k, k, Layer.unit(k).w + cls.rate)


class Third(Affine):
    def bump(self, by):
        Layer.bump(self, by)
        return super(Affine, self).bump(by)


@use((2.0,), wrt=(0,))
def members(x):
    p = Layer(x, 1.0)
    p.bias = x + 1
    p.bias += 1
    p.bump(2.0).bump(x)
    return p.bias, p.writes, p.squared, p.squared, p.b, p.norm, Layer.unit(x).b, p.twice(x), p.rate


@use((2.0,), wrt=(0,), slow=True)
def inheritance(x):
    a, t = Affine.unit(x), Third(x, 1.0, 3.0)
    return (
        a.bump(2.0).b, t.bump(x).b, a.scale, isinstance(t, Layer), issubclass(Third, Layer),
        type(t) is Third, t.__class__.__name__, callable(t),
    )  # fmt: skip


@use((Layer(2.0, 3.0), 4.0))
def object_of_the_caller(layer, x):
    layer.bump(x)
    layer.w = layer.w * 2
    layer.note = x
    return layer.norm + layer.rate


class Fallback:
    def __init__(self):
        self.k = 1.0

    def __getattr__(self, name):
        return len(name) * 1.0


@use((2.0,), wrt=(0,))
def attributes_by_name(x):
    g = Fallback()
    setattr(g, "z" + "z", x)
    return g.k * x, g.abc * x, g.zz, hasattr(g, "k"), getattr(g, "k", 5)


@dataclass(order=True)
class Item:
    a: float
    b: int = 1
    c: list = field(default_factory=list, compare=False)


@dataclass
class Derived(Item):
    d: float = 3.0

    def __post_init__(self):
        self.d = self.a * 2


@use((2.0,), (1.0,), wrt=(0,), slow=True)
def comparisons(x):
    p, q = Item(x), Item(x, 2)
    return (
        p == Item(x), p == q, p < q, p >= q, p != q, p == 3, Item(1.0, 1, [x]) == Item(1.0, 1),
        Derived(x, 2), (x, 1) < (x, 2), (1.0, 2) < (x, 1), [1.0, x] > [1.0], (1, 2) == [1, 2],
        [x] == [x], (x,) == (x, 1), {"a": x} == {"a": x}, {"a": x} == {"a": 1.0},
        {"a": x} == {"b": x},
    )  # fmt: skip


@use((X,), wrt=(0,))
def array_and_sequence(x):
    return x == (3.0, 1.0, 5.0), x < [4.0, 0.0, 5.0], 2 in x, 2.5 in range(5), 4 in range(8, 0, -2)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Mode(enum.Enum):
    UP = 1
    DOWN = 2.5


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@use((X, Level.HIGH), (X, Level.LOW), wrt=(0,))
def numbers_with_names(x, level):
    return (
        level * x[0], x[Level.LOW], level + 1, level > Level.LOW, level == 5, Level(5) is level,
        list(range(level)), level.name, -level, level / 2, [m.value for m in Level],
        Level["LOW"] * x[1], len(Level), isinstance(level, int), Access.READ in (
            Access.READ | Access.WRITE),
    )  # fmt: skip


@use((2.0, 1.0), (2.0, -1.0), wrt=(0,))
def member_chosen_at_run_time(x, c):
    mode = Mode.UP if c > 0 else Mode.DOWN
    if mode is Mode.UP:
        x = x * 2
    match mode:
        case Mode.UP:
            x += 1
        case Mode.DOWN:
            x += 5
    return x * mode.value, mode, mode == Mode(2.5), {Mode.UP: 1.0, Mode.DOWN: x}[mode]


@use((2.0,), wrt=(0,), slow=True)
def sets(x):
    s, t = {1, 2, 3}, {2, 3, 4}
    u = set()
    u.add(1)
    u |= {5}
    u.discard(9)
    u.update([7], (8,))
    w = s.copy()
    w.remove(1)
    return (
        s, u, w, sorted(s & t), s | t, s - t, s ^ t, 2 in s, len(s), s <= {1, 2, 3, 4}, sum(s) * x,
        [v * x for v in sorted(s)], len(set([1, 1, 2])), s.issubset(t),
        frozenset((1, 2)) == {1, 2}, {v % 2 for v in (1, 2, 3)} == {0, 1}, x in {1.0, 2.0},
        isinstance(s, set), s.isdisjoint({9}), bool(set()), {"a"} | {"b"} == {"b", "a"},
    )  # fmt: skip


@use((2.0,))
def set_lacks_an_item(x):
    s = {1, 2}
    s.remove(3)
    return x


@use((2.0,), wrt=(0,), slow=True)
def dicts(x):
    d = dict(a=x, b=1.0)
    key, value = d.popitem()
    d["z"] = 3.0
    for i, (k, v) in enumerate(d.items()):
        d[k] = v + i
    nested = {"o": {"i": [x, 1]}}
    nested["o"]["i"].append(x)
    cleared = {**d, "q": x}
    cleared.clear()
    return (
        key, value, d, nested, cleared, {k: {j: x * j for j in range(2)} for k in "ab"},
        dict.fromkeys("ab", 0.0), max(d, key=len), sorted(d, reverse=True), ",".join(d),
        next(iter(d)), [*d], d | {"a": 0.0}, d.get("nope", x),
    )  # fmt: skip


@use((2.0,), wrt=(0,), slow=True)
def tuples(x):
    t = (1.0, x, 3.0, x)
    return t.index(x), t.count(x), t.index(3.0), t[::-1], x in t, t + (1,), min(t)


@use((2.0,))
def index_of_what_is_not_there(x):
    return (1.0, x).index(7.0)


GETTERS = (operator.itemgetter(1), operator.attrgetter("b"), operator.methodcaller("bump", 2.0))


@use((X,), wrt=(0,), slow=True)
def operator_module(x):
    second, bias, bump = GETTERS
    layer = Layer(x[0], x[1])
    return (
        second(x), bias(layer), bump(layer).b, operator.itemgetter(0, 2)([x[0], x[1], x[2]]),
        operator.attrgetter("w", "b")(layer), operator.methodcaller("sum", axis=0)(x),
        operator.getitem(x, 0), operator.pow(x, 2), operator.not_(x[0] > 1),
        operator.contains((1, 2), 2), functools.reduce(operator.mul, x, 2.0),
    )  # fmt: skip


class Made:
    def __new__(cls, x):
        return object.__new__(cls)


@refuse((2.0,), "__new__", "outside")
def object_with_new(x):
    return Made(x)


@use((2.0, 3.0), (2.0, 2.0))
def set_of_run_time_values(a, b):
    return len({a, b})


class ReadOnly:
    @property
    def size(self):
        return 1.0


@refuse((2.0,), "has no setter")
def property_without_setter(x):
    r = ReadOnly()
    r.size = x
    return r.size


class Shifted(NamedTuple):
    w: np.ndarray
    b: np.ndarray

    def __call__(self, x):
        return x @ self.w + self.b


class Named(NamedTuple):
    w: np.ndarray


_W, _B = np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([1.0, 3.0])


@use(([Shifted(_W, _B), Shifted(_W - 1, -_B)], _B + 1), wrt=(0, 1))
def named_tuples_that_are_called(layers, x):
    for layer in layers:
        x = np.tanh(layer(x))
    return x


@use((Shifted(_W, _B), Named(_W)), (Named(_W), Shifted(_W, _B)))
def what_may_be_called(a, b):
    made = [a, b, Shifted(a.w, 1.0), np.sin, Named, 2.0, a.w]
    return [callable(each) for each in made]


@dataclass
class Sides:
    width: float
    height: float = 1.0
    marks: list = field(default_factory=list)

    def __post_init__(self):
        self.marks.append(self.width)

    def area(self):
        return self.width * self.height


class Doubled(Sides):
    def __init__(self, width):
        super().__init__(2 * width)


class Equal(Sides):
    def __init__(self, side):
        Sides.__init__(self, side, height=side)
        self.kind = "equal"


class Inherited(Sides):
    def half(self):
        return self.width / 2


@use((3.0,), wrt=(0,))
def classes_behind_which_are_dataclasses(x):
    one, other, third = Doubled(x), Equal(x), Inherited(x, marks=[x])
    shapes = sorted([one, other, third, Sides(x)], key=lambda s: s.area())
    return one.width, other.marks, other.kind, third.half(), [s.area() for s in shapes]


class Sign(enum.Enum):
    PLUS = "+"
    TIMES = "*"

    @classmethod
    def of(cls, sign):
        return next(one for one in cls if one.value == sign)


@use(("+", ["*", "+"]), ("*", ["?", "*"]))
def members_found_by_next(sign, others):
    found = [next((one.name for one in Sign if one.value == each), "none") for each in others]
    return Sign.of(sign) is Sign.PLUS, found


@dataclass
class Scaled:
    by: InitVar[float]
    size: float = 1.0
    _: KW_ONLY
    shift: float = 0.0

    def __post_init__(self, by):
        self.size = self.size * by + self.shift


@use((3.0,), wrt=(0,))
def what_only_post_init_is_given(x):
    return Scaled(x).size, Scaled(2.0, x, shift=x).size


@dataclass(frozen=True)
class Settled:
    x: int


@use((1,))
def fields_that_cannot_be_assigned(n):
    settled = Settled(n)
    try:
        settled.x = 3
    except AttributeError as error:
        return str(error), settled
