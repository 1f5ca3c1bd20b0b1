"""Functions with awkward control flow, each with arguments: (function, [args, ...])."""

# The code is odd on purpose; its imports are still checked.
# ruff: noqa: B002, B012, B023, B905, C416, E702, SIM107, F821, F841, F842, RET503
from __future__ import annotations

import collections
import functools
from dataclasses import dataclass

import numpy as np

CASES: list[tuple] = []


def case(*runs):
    def register(function):
        CASES.append((function, [run if isinstance(run, tuple) else (run,) for run in runs]))
        return function

    return register


GLOBAL = 7
Point = collections.namedtuple("Point", "x y")


@dataclass
class Box:
    left: object
    right: object = None


class Log:
    """Says in which order things happened."""

    def __init__(self):
        self.said = []

    def __call__(self, x):
        self.said.append(x)
        return x

    def __enter__(self):
        self.said.append("enter")
        return self

    def __exit__(self, *error):
        self.said.append("exit")

    def __eq__(self, other):
        return isinstance(other, Log)

    __hash__ = None

    def __repr__(self):
        return "log"


@case((2.0, 1.0, 1e-9))
def newton(f0, x, tol):
    while abs(x * x - f0) > tol:
        x = 0.5 * (x + f0 / x)
    return x


@case(1, 0, -1)
def early_return(x):
    if x > 0:
        return "positive"
    if x == 0:
        return "zero"
    return "negative"


@case(*range(-2, 9))
def return_from_nested_ifs(x):
    y = 0
    if x > 0:
        if x > 3:
            if x > 5:
                return x
            y = 3
        y += 1
    else:
        if x < -1:
            return -x
        y = 10
    return y * 100 + x


@case(([1, 2, 3], 2), ([1, 2, 3], 9), ([], 1), ([1, 200, 2], 2))
def search_with_else(xs, wanted):
    for i, x in enumerate(xs):
        if x == wanted:
            return i
        if x > 100:
            break
    else:
        i = -5
    return -1, i


@case(*((a, b, n) for a in range(-1, 5) for b in (-3, 0, 2, 77) for n in (0, 6)))
def every_exit_from_one_branch(a, b, n):
    s = 0
    for i in range(n):
        if a > i:
            if b > i + 3:
                break
            s += 1
            if b < -i:
                continue
            if b == 2 and s > 1:
                return "out", s
        s += 10
    return s


@case(*((n, k) for n in range(5) for k in range(5)))
def loops_left_from_the_inner_one(n, k):
    total = []
    for i in range(n):
        for j in range(n):
            if j == k:
                break
            if i + j == 2 * k:
                return total, i, j
            if (i + j) % 2:
                continue
            total.append((i, j))
        else:
            total.append("whole")
            continue
        total.append(i)
    else:
        return total
    return "never"


@case(*range(6))
def while_else(n):
    i = 0
    while i < n:
        i += 1
        if i == 4:
            break
    else:
        i = -i
    return i


@case(*range(6))
def while_true_assigns_and_breaks(n):
    i = 0
    while True:
        square = i * i
        i += 1
        if square >= n:
            break
    return square, i


@case(*range(4))
def while_true_returns(n):
    while True:
        n += 1
        if n % 5 == 0:
            return n


@case((0, 5), (3, 5), (9, 5))
def break_out_of_while_with_else_and_continue(n, stop):
    seen = []
    while n < 12:
        n += 1
        if n % 2:
            continue
        seen.append(n)
        if n == stop + 1:
            break
    else:
        seen.append("end")
    return seen


@case(0, 1, 2, 3)
def set_on_one_path(x):
    if x > 1:
        y = x
    if x > 2:
        z = 1
    if x > 1:
        return y
    return z


@case(0, 1, 5)
def loop_variable_after_the_loop(n):
    for i in range(n):
        last = i
    return i, last


@case((True,), (False,))
def deleted_on_one_path(flag):
    x = 1
    if flag:
        del x
    return x


@case(0, 1, 3)
def deleted_in_a_loop(n):
    x = 1
    for i in range(n):
        if i == 1:
            del x
    return x


@case(1, 2)
def deleted_and_set_again(n):
    x = n
    del x
    x = 3
    del x
    if n > 1:
        x = 5
    return x


@case((3, 4), (0, 4), (3, 0), (0, 0), ("", []))
def and_or_give_operands(a, b):
    return a or b, a and b, not a, a or b or 9, a and b and 9, (a and b) or (b and a) or "none"


@case(*((a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)))
def conditions_of_and_or(a, b, c):
    if (a and not b) or (c and (b or not a)):
        return 1
    if not (a or (b and c)):
        return 2
    return 3


@case(*((a, b, c) for a in (1, 2, 3) for b in (1, 2, 3) for c in (1, 3)))
def chained(a, b, c):
    n = Log()
    return a < n(b) <= n(c), a < n(b) < n(c) != n(2), n.said


@case(0, 1, 2, 7)
def ternaries(x):
    return ("a" if x else "b") + ("c" if x > 1 else "d" if x > 5 else "e")


@case([], [1, 2], [3, 0, 4])
def walrus_in_if(xs):
    if (n := len(xs)) > 2 and (first := xs[1]) == 0:
        return n, first
    return n


@case(([5, 4, 3, 0, 9],), ([0],))
def walrus_in_while(xs):
    seen = []
    while x := xs[len(seen)]:
        seen.append(x)
    return seen, x


@case(([5, 4, 3, 0, 9],), ([0],))
def walrus_in_while_not_read_after(xs):
    at = 0
    while (x := xs[at]) > 0 and (y := x + 1) > 1:
        at += x * y
        if at >= len(xs):
            return at
    return at


@case((0, 4), (3, 4), (5, 0))
def walrus_in_ternary(a, b):
    r = (c := a) if a else (d := b)
    if a:
        return r, c
    return r, d


@case((1, 2), (0, 2), (1, 0))
def walrus_in_and_may_stay_unset(a, b):
    if a and (n := b):
        return n
    return n


@case([], [1, 2, 3, 4])
def walrus_in_comprehension(xs):
    total = 0
    sums = [total := total + x for x in xs if x != 2]
    return sums, total


@case([], [3], [1, 2, 3])
def walrus_found_by_any(xs):
    if any((hit := x) > 2 for x in xs):
        return hit
    return all((bad := x) < 2 for x in xs), bad


@case(([[1, 2], [], [0, 3]],), ([],))
def any_and_all_stop_early(rows):
    log = Log()
    first = any(log(x) == 0 for row in rows if row for x in row if x < 3)
    second = all(10 // log(x) for row in rows for x in row if log(x) or True) if not first else 0
    return first, second, log.said


@case(([1, 0],), ([1, 2],))
def all_raises_only_if_it_gets_there(xs):
    return all(x > 1 / xs[1] for x in xs)


@case(4)
def comprehensions(n):
    x = "outer"
    a = [x for x in range(n) if x % 2 if x > 1]
    b = {k: [v for v in range(k)] for k in range(n)}
    c = {y // 2 for y in range(n)}
    d = [(i, j) for i in range(n) for j in range(i) if i + j > 2]
    e = sum(i * i for i in range(n))
    f = [p + q for p, q in zip(range(n), range(1, n + 1))]
    g = [first for first, *_ in [(1, 2), (3,)]]
    return a, b, c, d, e, f, g, x


@case(3)
def lambdas_in_a_comprehension_share_their_variable(n):
    shared = [lambda: i for i in range(n)]
    own = [lambda i=i: i for i in range(n)]
    nested = [[lambda: (i, j) for j in range(2)] for i in range(n)]
    return [f() for f in shared], [f() for f in own], [[f() for f in r] for r in nested]


@case(1, 10)
def closures_read_late(n):
    def add(x):
        return x + n

    first = add(1)
    n *= 2
    return first, add(1)


@case(3)
def nonlocal_counts(n):
    count = 0

    def bump(by=1):
        nonlocal count
        count += by
        return count

    for i in range(n):
        bump(i)
    bump()
    return count, bump(by=10)


@case(5)
def recursion_of_nested_functions(n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return [even(k) for k in range(n)], odd(n)


@case(2)
def three_levels_of_functions(n):
    def outer(a):
        def middle(b):
            def inner(c):
                nonlocal a
                a += c
                return a + b + n

            return inner

        first = middle(10)
        return first(1) + first(2), a

    return outer(n)


@case(0, 1)
def captured_and_maybe_unset(flag):
    def get():
        return x

    if flag:
        x = 3
    return get()


@case(0, 1, 2)
def captured_and_deleted(flag):
    x = 1

    def get():
        return x

    if flag == 1:
        del x
        x = 5
    if flag == 2:
        del x
    return get(), x


@case(2)
def functions_made_in_a_loop(n):
    made = []
    for i in range(n):
        def f(k, i=i):
            return k * i + j
        j = 10 * i
        made.append(f)
    return [f(3) for f in made], made[0](1, i=5), (lambda *a, b=2, **c: (a, b, c))(1, 2, d=4)


@case(0, 1, 2, 3, 4)
def every_way_through_a_try(n):
    log = Log()
    for k in range(3):
        try:
            log("body")
            if n == 0:
                continue
            if n == 1:
                break
            if n == 2 and k == 1:
                raise KeyError(k)
            if n == 3:
                return log.said, 1 // (1 - k)
        except KeyError as error:
            log(error.args)
            continue
        except (TypeError, ZeroDivisionError):
            log("never")
        else:
            log("else")
        finally:
            log("finally")
        log("behind")
    return log.said, k


@case(0, 1, 2, 3)
def handlers_that_raise(n):
    log = Log()
    y = 0
    try:
        try:
            y = 1
            if n == 1:
                raise ValueError("inner")
            y = 10 // (n - 2)
        except ValueError:
            log(y)
            raise
        except ZeroDivisionError as error:
            log(str(error))
            raise KeyError(y) from error
        finally:
            log("finally")
            y += 100
    except Exception as outer:
        log((type(outer).__name__, y))
    return log.said, y


@case(0, 1)
def finally_has_the_last_word(n):
    for k in (1, 2, 3):
        try:
            if n:
                raise ValueError
            return "body"
        finally:
            if k < 3:
                continue
            return "finally", k


@case(0, 1)
def an_exception_is_unset_behind_its_handler(n):
    try:
        assert n
    except AssertionError as error:
        seen = type(error).__name__
    except:
        raise
    else:
        seen = "none"
    return seen, error


@case(1)
def all_kinds_of_parameters(x):
    def f(a, b=2, /, c=3, *args, d, e=5, **more):
        return a, b, c, args, d, e, more

    return f(x, d=1), f(1, 2, 3, 4, 5, d=6, g=7), f(*[1, 2], d=3, e=4), f(1, *(2,), d=0)


@case((1,), (1, 2), (1, 2, 3))
def defaults(a, b=10, *, c=100):
    return a + b + c


CASES[-1][1].clear()
CASES[-1][1].extend([(1,), (1, 2)])


@case((1, 3), (2, 0))
def copies_of_a_variable_named_as_nameless_values_are_shown(v, n):
    u = w = 0
    for _ in range(n):
        v = 2 * v
        u = v
        w = (v := v + 1)
    return u, v, w


@case((1, 2, 3), ())
def star_parameters(*args, **kwargs):
    return args, kwargs, [*args, *args], {**kwargs, "z": 1}, (*args, 0), {*args, 1}


@case(5)
def decorated_inside(n):
    def twice(f):
        def call(x):
            return f(f(x))

        return call

    def plus(k):
        return lambda f: lambda x: f(x) + k

    @plus(100)
    @twice
    def double(x):
        return 2 * x

    return double(n)


@case(([1, 2, 3],))
def unpacking(xs):
    a, b, c = xs
    d, *e = xs
    *f, g = xs
    (h, [i, *j]), k = (xs[0], xs), 9
    [m] = [n] = (5,)
    o = p, q = 1, 2
    return a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q


@case(([1, 2],), ([1, 2, 3],), ([1, 2, 3, 4],))
def unpacking_fails(xs):
    a, b, c = xs
    return a, b, c


@case((1, 2))
def swaps(a, b):
    a, b = b, a
    (a, b), c = (b, a + 1), a
    x = [0, 1, 2]
    i = 0
    i, x[i] = 2, "moved"
    return a, b, c, x, i


@case(([0, 1, 2, 3],))
def elements_and_slices(xs):
    xs[1] += 10
    xs[-1], xs[0] = xs[0], xs[-1]
    xs[1:2] = [7, 8, 9]
    del xs[0], xs[-1:]
    y = xs
    y += [5]
    return xs, y is xs, xs[::-1], xs[:2], xs[-2:], xs[slice(1, None, 2)]


@case((np.arange(12.0).reshape(3, 4),))
def array_indexing(x):
    y = x[1:, ::2]
    z = x[..., None, 0]
    x[0] = -1
    x[:, 1] *= 2
    y[...] += 1
    return x, y, z, x[x > 4], x.T @ x


@case(1)
def attributes(n):
    box = Box(n)
    box.left += 2
    box.right = Box(box.left, right=n)
    box.right.left, box.right.right = box.right.right, box.right.left
    return box, box.right.left


@case(3)
def order_of_evaluation(n):
    o = Log()
    x = {}
    x[o("key")] = o("value")
    o("f")
    (o("a"), o)[1](o("b"))
    x[o("k2")] = x[o("key")] = o("v2")
    x[o("key")] += o("w")
    y = [o(1), *o([2]), o(3)][o(0)]
    z = {o("p"): o("q"), **o({}), o("r"): o("s")}
    w = max(o(1), *o([2]), key=o(abs), **o({"default": 3})) if o(0) else o(4)
    v = f"{o(n):{o(5)}.{o(1)}f}{o('r')!r}"
    u = o([0, 1, 2])[o(0) : o(2) : o(None)]
    return o.said, y, z, w, v, u, o(1) + o(2) * o(3), o(1) < o(2) < o(1) < o(0)


@case(0, 1, 2, 3)
def raises(n):
    if n == 1:
        raise ValueError(f"bad {n}")
    if n == 2:
        raise KeyError("no") from TypeError("yes")
    assert n != 3, f"n is {n}"
    return n


@case(0, 1, 2)
def assertion_without_message(n):
    for i in range(n):
        assert i < 1
    return n


@case(0, 1, 2, 3)
def raise_ends_a_branch(n):
    if n == 0:
        x = 1
    elif n == 1:
        x = 2
    else:
        raise ValueError(n)
    while x < 10:
        x += n + 1
        if x == 7:
            raise KeyError(x)
    return x


@case(0, 1)
def all_paths_raise(n):
    if n:
        raise ValueError
    raise KeyError("k")


@case(*range(6))
def with_blocks_and_exits(n):
    log = Log()
    for i in range(4):
        with log as opened, Log():
            opened(i)
            if i == n:
                break
            if n == 4 and i == 2:
                return log.said
            with log:
                if i == n - 2:
                    continue
                log("inner")
            log("outer")
        log("after")
    return log.said


@case(*range(5))
def with_around_a_loop(n):
    log = Log()
    with log:
        while True:
            with log:
                n += 1
                if n == 4:
                    return log, n
                if n > 5:
                    break
        log("end")
    return log, "fell", n


@case(0, 4)
def imports(n):
    import math as m
    import os.path
    from collections import OrderedDict
    from collections import namedtuple as nt

    import numpy.linalg

    return m.sqrt(n), os.path.join("a", "b"), OrderedDict(a=1), nt("T", "x")(1).x, numpy.linalg.norm


@case(0, 1)
def import_of_what_is_not_there(n):
    if n:
        import there_is_no_such_module

        return there_is_no_such_module.x
    return n


@case(2)
def outside_names(n):
    global GLOBAL
    return GLOBAL * n, len([1]), np.pi, Point(1, 2).y, functools.reduce(max, [1, 3, 2])


@case(2)
def undefined_name(n):
    return n + there_is_no_such_name


@case(2)
def annotations(n: int) -> float:
    x: float = n * 2.0
    y: undefined_type
    z: list[int] = [n]
    z[0]: int = 5
    return x, z


@case(2)
def annotation_alone_makes_a_local(n):
    x: int
    return x


@case(2, 3.5, "s")
def strings(x):
    """A docstring."""
    "another constant"
    return "", f"{x}", f"a{x!r:>8}b{x!s}{{}}", f"{x=}", "a" "b", f"{'n'}" f"{x!a}"


@case(5, 0)
def constants(x):
    return -1, -2.5, +3, ~x, -x, not x, -(-1), 1j, ..., None, b"x", 2 ** -1, x ** -2 if x else -0.0


@case(3)
def operators(x):
    y = 7
    return (
        x + y, x - y, x * y, x / y, x // y, x % y, x ** y, x & y, x | y, x ^ y, x << y, y >> x,
        x == y, x != y, x < y, x <= y, x > y, x >= y, x is y, x is not y, x in [y], x not in [y],
    )


@case(3)
def augmented(x):
    a = b = x
    a += 1; a -= 3; a *= 7; a **= 2; a //= 3; a %= 50; a <<= 2; a >>= 1; a |= 8; a &= 61; a ^= 5
    b /= 2
    return a, b


@case(0, 1, 5)
def variable_of_for_is_assigned_inside(n):
    i = "before"
    for i in range(n):
        i = i * 2
        if i > 4:
            break
    return i


@case(3)
def targets_of_for(n):
    x = [0, 0]
    box = Box(None)
    for x[0], (box.left, *x[1:]) in [(1, (2, 3)), (4, (5, 6, 7))]:
        n += x[0]
    return x, box, n


@case(6)
def dead_code(n):
    while n:
        n -= 1
        if n == 3:
            break
            n = 100
        continue
        return "dead"
    return n
    undefined_here = n


@case(0, 3)
def loop_carried_swap(n):
    a, b, c = 1, 2, 3
    for _ in range(n):
        a, b = b, a + b
        c, a = a, c
    return a, b, c


@case(0, 2, 5)
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 100:
            return None
    return steps


@case(10)
def primes(n):
    found = []
    for i in range(2, n):
        for p in found:
            if i % p == 0:
                break
        else:
            found.append(i)
    return found


@case((None,), (True,), (3,), ("s",), (2.5,), ((1, 2),), ((1, 2, 3),), ([9],), ([1, [2, 3]],),
      ({"k": 4, "j": 5},), ({"k": "v"},), (Point(0, 5),), (Point(1, 1),), (Box(1),),
      (Box(2, Box(3, 4)),), (-1,), ((),), ((5, 6, 7, 8),), ({"t": 1, "k": 0},), (1,), (0,))
def match_patterns(x):
    match x:
        case None | True:
            return "singleton"
        case 3 | "s":
            return "value"
        case Point(x=0, y=why):
            return "named", why
        case Point(a, b) if a == b:
            return "guard", a
        case Box(left=2, right=Box(3, inner)):
            return "nested", inner
        case Box(l, None):
            return "positional", l
        case (1, 2):
            return "pair"
        case [1, *rest]:
            return "star", rest
        case [first, *_, last] if first != 9:
            return "ends", first, last
        case [only]:
            return "only", only
        case {"k": int(v), "j": j}:
            return "mapping", v, j
        case {"k": str() as s}:
            return "captured", s
        case float(f):
            return "float", f
        case -1:
            return "minus one"
        case _ as other:
            return "other", other


@case(0, 1, 2, 3, 4)
def match_falls_through_and_loops(n):
    out = []
    for i in range(n):
        match i, n:
            case 0, _:
                continue
            case (1, k) | (k, 1):
                out.append(k)
            case 3, _:
                break
        out.append(i)
    return out, k if n > 1 else None


@case(3)
def shadowed_builtins(any):
    len = any
    return [len for len in range(len)], len


@case(3)
def nested_comprehension_scopes(n):
    i = 100
    return [[i + j for j in range(i)] for i in range(n)], i, [i for i in [i]]


@case(2, 0)
def generator_arguments(n):
    return tuple(i + 1 for i in range(n)), max((i for i in range(n)), default=-1) if n < 0 else 5


@case(0, 1, 5)
def generators(n):
    def items(m):
        """Yields from a loop, from another generator, and nothing."""
        for i in range(m):
            if i == 3:
                return
            yield i * n
        yield from (j + n for j in range(2) if j != n)
        yield

    lazy = (i + j for i in range(n) for j in range(i))
    return list(items(n)), [v for v in items(1)], list(lazy), [w for w in lazy]


@case(2)
def returns_nothing(n):
    n += 1


@case(2)
def returns_without_a_value(n):
    if n:
        return None
    return 5


@case(*range(8))
def many_sequential_exits(n):
    for k in range(3):
        if n == k:
            return "a", k
        if n == k + 3:
            break
        if n == 7:
            if k == 1:
                return "b"
            continue
    else:
        n = -n
    if n == 4:
        return "c"
    return n, k
