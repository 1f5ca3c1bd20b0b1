"""Programs with context managers: their own classes, generators, those of contextlib."""

from __future__ import annotations

import contextlib
import math
from contextlib import contextmanager, nullcontext, suppress

import numpy as np

import pyrelay
from tests.users.corpus import use

X = np.array([1.0, 2.0, -3.0, 4.0])


@use((X,), wrt=(0,), slow=True)
def errstate_loop(x):
    t = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(len(x)):
            y = x[i] * 2
            t += y / (1 + y * y)
            if t > 3:
                break
    return t + y


@use((X,), wrt=(0,))
def errstate_return(x):
    with np.errstate(all="ignore"):
        z = np.sqrt(abs(x))
        if z[0] > 5:
            return z * 2
        return z / 3


@use(
    (X, 1.0),
)
def scope_var(x, k):
    with pyrelay.scope("a"), pyrelay.scope("b"):
        if k > 0:
            out = np.exp(x)
        else:
            out = x
    return out.sum()


@use((X, True), (X, False))
def chosen_scope(x, k):
    with nullcontext():
        y = x * 2
    with nullcontext(5.0) as five:
        y = y * five
    return y


class Timer:
    def __init__(self, name):
        self.name = name
        self.total = 0.0
        self.n = 0

    def __enter__(self):
        self.start = 1.0
        self.n += 1
        return self

    def __exit__(self, *exc):
        self.total += 2.0 - self.start


@use((X, 3), wrt=(0,))
def timers(x, n):
    t = Timer("a")
    s = 0.0
    for i in range(n):
        with t:
            s += x[i] ** 2
    return s, t.total, t.n


class Restore:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        self.saved = self.x.copy()
        return self.x

    def __exit__(self, t, v, tb):
        self.x[:] = self.saved
        return False


@use((X, 2.0), wrt=(0,), long=True)
def restored(x, k):
    with Restore(x) as y:
        y *= k
        s = np.sum(y**2)
    return s + x.sum()


@use((X, 2.0), (abs(X), 2.0))
def restored_raise(x, k):
    with Restore(x) as y:
        y *= k
        for v in y:
            if v < 0:
                raise ValueError("neg")
    return x.sum()


@use((X, 2), (X, 9), joins=True)
def restored_caught(x, k):
    s = 0.0
    try:
        with Restore(x):
            x[0] = 100.0
            s = x[k]
    except IndexError:
        s = -1.0
    return s, x[0]


@use((X,), wrt=(0,), slow=True)
def return_inside(x):
    with Restore(x) as y:
        y[0] = 7.0
        for i in range(4):
            if y[i] < 0:
                return y[i] * 2
    return x[0]


@use(
    (X,),
)
def loop_continue(x):
    t = 0.0
    for v in x:
        with Timer("q") as q:
            if v < 0:
                continue
            if v > 3:
                break
            t += v
    return t


@use((X,), (abs(X),))
def as_exc(x):
    class_seen = 0
    class_seen = Seen()
    with class_seen:
        if x[2] < 0:
            raise ValueError("v", 3)
    return class_seen.kind, class_seen.n


class Seen:
    def __init__(self):
        self.kind = "none"
        self.n = 0

    def __enter__(self):
        return self

    def __exit__(self, t, v, tb):
        if t is not None:
            self.kind = t.__name__
            self.n = len(v.args)
            assert tb is not None
        return True


@contextmanager
def swallow(*classes):
    try:
        yield
    except classes:
        pass


@use((2.0, 0.0), (2.0, 4.0), wrt=(0,))
def swallowed(a, b):
    r = -1.0
    with swallow(ZeroDivisionError):
        r = a / b
    return r * a


@use((2.0, 0.0), (2.0, 4.0), wrt=(0,))
def swallowed_return(a, b):
    with swallow(ZeroDivisionError):
        return a / b
    return a * 3


@contextmanager
def temporarily(obj, name, value):
    old = getattr(obj, name)
    setattr(obj, name, value)
    try:
        yield obj
    finally:
        setattr(obj, name, old)


class Model:
    def __init__(self, w):
        self.w = w
        self.training = True

    def __call__(self, x):
        return self.w * x if self.training else self.w + x


@use((X, 2.0), wrt=(0, 1), slow=True)
def temporary(x, w):
    m = Model(w)
    with temporarily(m, "training", False):
        a = m(x)
    return a, m(x)


@contextmanager
def either(k):
    if k > 0:
        yield k * 2.0
    else:
        yield -1.0


@use((2.0,), (-2.0,))
def branchy(k):
    with either(k) as v:
        r = v + 1
    return r


class Lib:
    def __init__(self):
        self.level = 0

    @contextmanager
    def indent(self):
        self.level += 1
        try:
            yield self.level
        finally:
            self.level -= 1


@use((3,))
def methods(n):
    lib = Lib()
    out = []
    with lib.indent() as a:
        out.append(a)
        with lib.indent() as b:
            out.append(b)
            for i in range(n):
                with lib.indent() as c:
                    out.append(c + i)
    out.append(lib.level)
    return out


@contextmanager
def twice(x):
    with Restore(x) as y:
        y += 1
        yield y.sum()


@use((X,), wrt=(0,), slow=True)
def nested_gens(x):
    with twice(x) as s:
        r = s * x.sum()
    return r, x


@use((X, 0), (X, 3), (X, 9), joins=True, long=True)
def raised_through(x, k):
    seen = []
    try:
        with counted(seen):
            v = x[k]
            seen.append(v)
    except IndexError:
        seen.append(-5.0)
    return seen


@contextmanager
def counted(seen):
    seen.append(0.5)
    try:
        yield
    except IndexError:
        seen.append(-1.0)
        raise
    else:
        seen.append(1.0)
    finally:
        seen.append(2.0)


def rec(x, n):
    with Timer("z") as t:
        if n == 0:
            return x
        return rec(x * 2, n - 1) + t.n


@use((1.5, 4), wrt=(0,), long=True)
def recursive(x, n):
    return rec(x, n)


@use((X,))
def tuple_target(x):
    with pair(x) as (a, b):
        r = a * b
    return r


@contextmanager
def pair(x):
    yield x[0], x[1]


@use((X,))
def no_as(x):
    with Restore(x), Timer("t") as t:
        x[0] = 99.0
        n = t.n
    return x, n


@use((X, 1), (X, -1))
def cond_defined(x, k):
    with np.errstate(all="ignore"):
        if k > 0:
            y = 1.0
    if k > 0:
        return y
    return 0.0


@use((X, 4))
def while_in(x, n):
    with np.errstate(all="ignore"):
        i = 0
        while True:
            i += 1
            x = x * 0.5
            if i > n:
                break
    return x, i


def with_gen(n):
    with np.errstate(all="ignore"):
        for i in range(n):
            yield i * 2


@use((4,), long=True)
def gen_with_errstate(n):
    return sum(with_gen(n))


@use((1.0, 0.0), (1.0, 2.0), wrt=(0,))
def suppressed(a, b):
    r = -1.0
    with suppress(ZeroDivisionError):
        r = a / b
    return r


@use((1.0, 0.0), (1.0, 2.0))
def suppressed2(a, b):
    r = -1.0
    with contextlib.suppress(ZeroDivisionError, ValueError):
        r = math.sqrt(a - 1.5) / b
        r += 1
    return r


class Scaled:
    def __init__(self, x, f):
        self.x, self.f = x, f

    def __enter__(self):
        self.x *= self.f
        return self

    def __exit__(self, t, v, tb):
        self.x /= self.f
        return t is ValueError


@use((X.copy(), 2.0), wrt=(0,))
def own_cm(x, f):
    with Scaled(x, f) as s:
        r = s.x.sum() ** 2
    return r + x.sum()


@use((X.copy(), 2.0), (abs(X), 2.0), long=True)
def own_cm_raise(x, f):
    r = 0.0
    with Scaled(x, f) as s:
        if x[2] < 0:
            raise ValueError("in")
        r = 1.0
    return r


@use((X.copy(), 2.0), (abs(X), 2.0))
def own_cm_raise_out(x, f):
    r = 0.0
    with Scaled(x, f) as s:
        if x[2] < 0:
            raise KeyError("in")
        r = 1.0
    return r


@contextmanager
def scaled(x, f):
    x *= f
    try:
        yield x
    finally:
        x /= f


@use((X.copy(), 2.0), wrt=(0,), long=True)
def gen_cm(x, f):
    with scaled(x, f) as s:
        r = (s**2).sum()
    return r + x.sum()


@use((X.copy(), 2.0), (abs(X), 2.0), long=True)
def gen_cm_raise(x, f):
    with scaled(x, f) as s:
        if x[2] < 0:
            raise KeyError("in")
        return s.sum()


@use((X.copy(), 2.0))
def gen_cm_two(x, f):
    with scaled(x, f) as s, scaled(x, 3.0) as u:
        r = (s + u).sum()
    return r, x


@contextmanager
def counting(log):
    log.append(1.0)
    yield len(log)
    log.append(2.0)


@use(
    ([],),
)
def gen_cm_log(log):
    with counting(log) as n:
        log.append(float(n))
    return log
