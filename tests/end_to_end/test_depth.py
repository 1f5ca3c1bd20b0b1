"""Programs that nest deeply, and that compiling takes time in proportion to a program's size.

Time is measured as the number of Python calls, which does not depend on the machine's load.
"""

import linecache
import sys
import threading

import numpy as np
import pytest

import pyrelay
from pyrelay import deep_stack, pipeline
from pyrelay.deep_stack import on_deep_stack
from pyrelay.frontend.parse import parse
from pyrelay.infer import values
from pyrelay.infer.specialise import specialise
from pyrelay.ir import walk
from pyrelay.ir.interp import interpret
from pyrelay.ir.show import show
from pyrelay.ir.verify import verify


def made(lines, name):
    """The function `f` of a generated source."""
    source = "import numpy as np\n" + "\n".join(lines) + "\n"
    file = f"<generated {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = {}
    exec(compile(source, file, "exec"), namespace)
    return namespace["f"]


def elifs(count):
    lines = ["def f(k, x):", "    if k < 0:", "        y = x - 1.0"]
    for i in range(count):
        lines += [f"    elif k == {i}:", f"        y = x * x * {i}.0"]
    return made([*lines, "    else:", "        y = x", "    return y"], f"elif {count}")


def guards(count):
    lines = ["def f(k, x):"]
    for i in range(count):
        lines += [f"    if k == {i}:", f"        return x * x * {i}.0"]
    return made([*lines, "    return x"], f"guards {count}")


def nest(count, before, inside, after):
    lines, indent = ["def f(k, x):", *before], "    "
    for i in range(count):
        lines.append(f"{indent}for i{i} in range(k):")
        indent += "    "
    name = f"nest {count} {inside}"
    return made([*lines, *(indent + line for line in inside), f"    return {after}"], name)


def straight(count):
    lines = [f"    y = y * {1 + i / 1000} + x" for i in range(count)]
    return made(["def f(k, x):", "    y = x", *lines, "    return y"], f"straight {count}")


def work(function, args=(2, 1.5), derivative=False):
    """Python calls that the stages up to `fuse` take."""
    callee = values.Known(function)
    if derivative:
        callee = values.Derivative(callee, "grad", argnums=1, argnames=None, has_aux=False)
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    def run():
        pipeline.lowered(specialise(callee, args, {}, parse).module, "fuse")

    def counted():
        sys.setprofile(count)
        try:
            run()
        finally:
            sys.setprofile(None)

    on_deep_stack(run)  # what is made once per process
    on_deep_stack(counted)
    return calls


@pytest.mark.parametrize(("program", "count"), [
    (elifs, 300), (guards, 200), pytest.param(elifs, 2000, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_long_chain_of_branches_compiles_and_runs(program, count):
    f = program(count)
    compiled = pyrelay.jit(f)
    for k in (-5, 0, 1, 123, count - 1, count, 5000):
        assert compiled(k, 1.5) == f(k, 1.5)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_long_chain_of_branches_has_a_derivative(count):
    gradient = pyrelay.grad(guards(count), argnums=1)
    for k, expected in ((0, 0.0), (7, 21.0), (count - 1, 3.0 * (count - 1)), (count, 1.0)):
        assert gradient(k, 1.5) == expected


def test_derivatives_of_branches_save_what_the_taken_branch_needs():
    lines = ["def f(k, x):", "    y = x"]
    for i in range(8):
        test = f"    {'el' if i else ''}if k == {i}:"
        lines += [test, f"        y = np.sin(x * {i}.0) * np.exp(x)"]
    f = made([*lines, "    return y * y"], "saved")
    second = pyrelay.grad(pyrelay.grad(f, argnums=1), argnums=1)
    x, k, h = 0.3, 6, 1e-4
    differences = (f(k, x + h) - 2 * f(k, x) + f(k, x - h)) / h**2
    assert second(k, x) == pytest.approx(differences, rel=1e-4)


@pytest.mark.parametrize(("derivative", "size"), [
    (False, 20), (True, 8), pytest.param(True, 20, marks=pytest.mark.slow),
])  # fmt: skip
@pytest.mark.parametrize(
    "program", [elifs, pytest.param(guards, marks=pytest.mark.slow), straight]
)
def test_compiling_takes_time_in_proportion_to_size(program, derivative, size):
    small, large = (work(program(n), derivative=derivative) for n in (size, 4 * size))
    assert large < 4.6 * small


NESTS = {
    "a number": (["    s = 0.0"], ["s += x * i0"], "s"),
    "a number that becomes a float": (["    s = 0"], ["s += x"], "s"),
    "an array made anew": (["    a = np.zeros(3)"], ["a = a * x + i0"], "a"),
    "arrays written": (
        ["    a = np.zeros(3)", "    b = np.ones(3)"],
        ["a[i0] += x * b[0]", "b[i0] += a[i0]"], "a + b",
    ),
    "a list written": (
        ["    a = [np.zeros(3), np.ones(3)]"], ["a[0] = a[1] * x", "a[1] = a[0] + 1"], "a[0]",
    ),
}


@pytest.mark.parametrize("kind", NESTS)
def test_loops_in_loops_are_not_interpreted_exponentially_often(kind):
    shallow, deep = (work(nest(n, *NESTS[kind])) for n in (4, 12))
    assert deep < 9 * shallow, "three times as deep: at most quadratic"


@pytest.mark.parametrize("kind", NESTS)
def test_nested_loops_give_what_plain_python_gives(kind):
    f = nest(5, *NESTS[kind])
    np.testing.assert_allclose(pyrelay.jit(f)(2, 0.5), f(2, 0.5), rtol=1e-13)


def test_thirty_nested_loops_compile_and_run():
    lines = ["def g0(k, x):", "    return x + 1.0"]
    for i in range(1, 31):
        lines += [
            f"def g{i}(k, x):", "    s = x", "    for i in range(k):",
            f"        s = g{i - 1}(k, s)", "    return s",
        ]
    f = made([*lines, "def f(k, x):", "    return g30(k, x)"], "calls")
    assert pyrelay.jit(f)(1, 0.5) == f(1, 0.5)


@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_every_walk_over_a_program_survives_deep_nesting(count):
    module = on_deep_stack(
        lambda: specialise(values.Known(elifs(count)), (2, 1.5), {}, parse).module
    )

    def check():
        verify(module, "infer")
        assert show(module).count("if ") >= count
        assert len(list(walk.nested_lets(walk.copy_block(module.main.body)))) > 3 * count
        assert interpret(module, (count - 50, 2.0)) == (4.0 * (count - 50),)

    on_deep_stack(check)


def test_deep_work_leaves_the_limits_of_the_process_alone():
    before = sys.getrecursionlimit(), threading.stack_size()

    def depth(n):
        return 0 if n == 0 else 1 + max(map(depth, [n - 1]))

    assert on_deep_stack(depth, 20_000) == 20_000
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


def test_deep_work_passes_errors_on_with_their_traceback():
    def fails():
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        on_deep_stack(fails)
    assert caught.traceback[-1].name == "fails"


def test_deep_work_sees_the_settings_of_its_caller():
    with pyrelay.config.override(time=True):
        assert on_deep_stack(lambda: pyrelay.config.current().time) is True


def test_deep_work_inside_deep_work_stays_on_its_thread():
    def outer():
        return threading.get_ident(), on_deep_stack(threading.get_ident)

    here, inner = on_deep_stack(outer)
    assert here == inner != threading.get_ident()


def test_an_exception_that_arrives_while_waiting_stops_the_work(monkeypatch):
    begun, stopped = threading.Event(), threading.Event()

    def forever():
        try:
            while True:
                begun.set()
        finally:
            stopped.set()

    join, interrupted = threading.Thread.join, []

    def interrupted_once(thread, timeout=None):
        if not interrupted:
            interrupted.append(thread)
            begun.wait()
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(deep_stack.threading.Thread, "join", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        on_deep_stack(forever)
    assert stopped.is_set()
    assert not interrupted[0].is_alive()
