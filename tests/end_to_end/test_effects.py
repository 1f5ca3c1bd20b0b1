# ruff: noqa: UP031, UP032  (all the ways in which users make text)
"""Effects of a compiled program are those of plain Python: all of them, once, and in order."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config

log = logging.getLogger("tests.effects")
CASES: list[Any] = []


def case(*args: Any) -> Callable[[Any], Any]:
    """Enter a program with arguments."""

    def enter(function: Any) -> Any:
        CASES.append(pytest.param(function, args, id=function.__name__))
        return function

    return enter


@case(3.5)
def prints_a_number(x):
    print("x =", x)
    print(f"{x:.3f}", x*2, sep="|", end="!\n")
    return x+1


@case(np.arange(4.0), 3)
def prints_in_a_loop_that_writes(x, n):
    for i in range(n):
        x[i] = x[i]*2
        print(i, x, f"{x[i]=:.2f}", (i, x[i]), [i, x[0]], {"a": x[i], "b": i})
    return x.sum()


@case(5)
def prints_in_recursion(n):
    if n <= 1:
        print("base", n)
        return 1
    print("call", n)
    r = n * prints_in_recursion(n-1)
    print("ret", r)
    return r


@case(np.float32(0.1), np.float64(0.1), 0.1, True, np.int8(3), np.bool_(True), 2+3j)
def shows_every_kind_of_number(a,b,c,d,e,f,g):
    print(a,b,c,d,e,f,g)
    print((a,b,c,d,e,f,g))
    print(f"{a} {b!r} {c!s:>8} {d} {e!r:>12} {f} {g}")
    print("{} {:.3f} {x}".format(a, b, x=c))
    print("%d %5.2f %s %r" % (e, c, d, a))
    print(str(a)+"-"+repr(b), len(str(e)), str(c).upper(), ", ".join([str(a), str(c)]))
    return a


@case(np.ones((2,3)))
def shows_arrays_and_structures(x):
    print(x.shape, x.dtype, x.ndim, len(x), x.size)
    print("mean", x.mean(), "sum", x.sum(axis=0))
    print(x > 0, x.T, x[0], x[:, 1])
    print()
    print(None, "a", 1.5, [1, 2])
    return x


@case(2.0)
def carries_text_through_branches(x):
    s = f"value {x}"
    y = x * 2
    t = s + f" and {y}"
    t = t + "!" if x > 1 else "small"
    if x > 5:
        t += " large"
    print(t)
    return t, s


@case(4)
def prints_to_stderr_in_a_branch(n):
    i = 0
    while i < n:
        if i % 2 == 0:
            print("even", i)
        else:
            print("odd", i, file=sys.stderr)
        i += 1
    return i


@case(1221)
def asks_about_text(n):
    return str(n) == str(n)[::-1], int(str(n)[::-1]) + 1, len(f"{n:,}"), float(f"{n/7:.2f}")


@case(3.0)
def text_is_of_the_moment(x):
    x0 = np.array([x, 2 * x])
    s = f"{x0}"
    x0[0] = 100.0
    print(s, x0)
    log.info("val %s %.2f", x0, x)
    log.warning("hello")
    sys.stdout.write(f"w {x}\n")
    return x0


@case(3)
def prints_in_helpers_and_comprehensions(n):
    def helper(k):
        print("helper", k)
        return k*2
    return [helper(i) for i in range(n)], sum(helper(i) for i in range(2))


@case(3.0)
def separators_conversions_and_specs(x):
    print("a" if x > 2 else "b", x if x > 2 else None)
    print(*[x, x+1], sep=", ")
    print("x", "y" * 3, "-" * 10)
    name = "k"
    print(f"{name}: {x:{8}.{2}f} {x:>10}|{x!r:<10}|", f"{{}} {x}")
    return x


@case(0)
def prints_up_to_a_raise(k):
    for i in range(5):
        print("before", i)
        if i == k + 2:
            raise ValueError(f"stopped at {i}", np.array([i, k]))
        print("after", i)
    return k


@case(np.arange(3.0), 5)
def prints_up_to_an_index_error(x, n):
    total = 0.0
    for i in range(n):
        print("reading", i)
        total = total + x[i]
    return total


@case(2.0)
def warns_and_goes_on(x):
    if x > 1:
        warnings.warn(f"x is {x}", RuntimeWarning, stacklevel=1)
    _warns_for_its_caller(x)
    warnings.warn("for the caller", stacklevel=2)
    return x


def _warns_for_its_caller(x):
    warnings.warn("inside", stacklevel=1)
    warnings.warn(RuntimeWarning(f"caller of {x}"), stacklevel=2)
    warnings.warn("far away", stacklevel=3)


def record(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives or raises, and everything it does besides."""
    mine = copy.deepcopy(args)
    out, err, logged = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    result: Any
    try:
        with (
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            try:
                result = function(*mine)
            except (ValueError, IndexError) as error:
                result = (type(error), str(error), repr(error.args))
    finally:
        log.removeHandler(handler)
    shown = [(w.category, str(w.message), w.filename, w.lineno) for w in warned]
    return repr(result), out.getvalue(), err.getvalue(), logged.getvalue(), shown, repr(mine)


@pytest.mark.parametrize(("function", "args"), CASES)
@pytest.mark.parametrize("interpret", [False, True])
def test_a_program_does_what_plain_python_does(
    function: Any, args: Any, interpret: bool
) -> None:
    wanted = record(function, args)
    assert wanted[1] or wanted[2] or wanted[4] or "asks" in function.__name__
    with config.override(interpret=interpret):
        compiled = pyrelay.jit(function)
        assert record(compiled, args) == wanted
        assert record(compiled, args) == wanted


def loss(x, n):
    s = 0.0
    for i in range(n):
        y = np.sin(x) * (i + 1)
        print("round", i, y[0])
        s = s + (y * y).sum()
        if s > 2:
            print("large", s)
    print("done", s)
    return s


def halving(x):
    if x < 0.1:
        print("leaf", x)
        return x * x
    print("node", x)
    return x * halving(x / 2)


def shrinking(x):
    started = time.perf_counter()
    while x > 0.5:
        print("now", x)
        x = x * 0.9
    if time.perf_counter() < started:
        raise RuntimeError("a clock that goes backwards")
    return x


@pytest.mark.parametrize(
    ("function", "args"),
    [(loss, (np.array([0.3, 0.4]), 3)), (halving, (1.0,)), (shrinking, (1.0,))],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_gradient_prints_what_the_function_prints_once(function: Any, args: Any) -> None:
    wanted = record(function, args)[1]
    gradient = pyrelay.grad(function)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        found = gradient(*args)
    assert out.getvalue() == wanted
    with contextlib.redirect_stdout(out):
        pyrelay.check_grads(function, args, order=1, modes="rev", argnums=0)
    assert np.all(np.isfinite(found))


def test_what_is_handed_to_python_may_be_kept() -> None:
    kept: list[Any] = []

    class Keeps(logging.Handler):
        def emit(self, record: Any) -> None:
            kept.append(record.args)

    handler = Keeps()
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    @pyrelay.jit
    def logs(x):
        for i in range(3):
            x[0] = i
            log.info("%s %s", x, i)
        return x.sum()

    try:
        assert logs(np.zeros(4)) == 2.0
    finally:
        log.removeHandler(handler)
    assert [(a[0], i) for a, i in kept] == [(0.0, 0), (1.0, 1), (2.0, 2)]


def test_print_of_what_python_cannot_have_is_refused() -> None:
    @pyrelay.jit
    def shows_a_function(x):
        def inner(y):
            return x + y

        print(inner)
        return inner(x)

    with pytest.raises(pyrelay.PyrelayError, match="cannot be handed to Python"):
        shows_a_function(1.0)


def test_a_progress_bar_shows_what_it_shows_around_a_python_loop() -> None:
    tqdm = pytest.importorskip("tqdm")
    bar_class, ranges = tqdm.tqdm, tqdm.trange

    def whole(x, n):
        s = 0.0
        for i in bar_class(range(n), desc="loop"):
            s += np.sin(x) * i
        return s

    def left_early(x, n):
        for i in ranges(n):
            x = x * 1.01
            if i == 5:
                break
        return x

    def with_methods(xs):
        bar = bar_class(xs)
        s = 0.0
        for i, v in enumerate(bar):
            s += v * i
            bar.set_postfix(s=s)
        return s

    for function, args in (
        (whole, (1.5, 2000)), (left_early, (2.0, 100)), (with_methods, (np.arange(5.0),)),
    ):
        shown = []
        for variant in (function, pyrelay.jit(function), pyrelay.grad(function)):
            err = io.StringIO()
            with contextlib.redirect_stderr(err):
                result = variant(*args)
            last = err.getvalue().replace("\r", "\n").strip().split("\n")[-1]
            shown.append((last.partition("[")[0], result))
        assert shown[0][0] == shown[1][0] == shown[2][0] != ""
        assert shown[0][1] == pytest.approx(shown[1][1])


def test_a_progress_bar_without_an_iterable_is_refused() -> None:
    tqdm = pytest.importorskip("tqdm")
    bar_class = tqdm.tqdm

    @pyrelay.jit
    def manual(x):
        bar = bar_class(total=3)
        return x, bar

    with pytest.raises(pyrelay.PyrelayError, match="goes around an iterable"):
        manual(1.0)
