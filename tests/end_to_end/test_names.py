"""What a compiled function reads from outside may change: every change is noticed, and no more."""

from __future__ import annotations

import threading
import types
import warnings

import numpy as np
import pytest

import pyrelay


def module(text: str) -> types.ModuleType:
    """A module made of a text whose functions can be read, as a notebook makes them."""
    import itertools
    import linecache

    made = types.ModuleType("names")
    counter = made.__dict__.setdefault("_counter", itertools.count())

    def run(cell: str) -> None:
        filename = f"<cell {id(made)}-{next(counter)}>"
        linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
        exec(compile(cell, filename, "exec"), made.__dict__)

    made.run = run
    made.pyrelay, made.np = pyrelay, np
    run(text)
    return made


def test_a_changed_global_number_is_noticed_and_an_equal_one_compiles_nothing():
    m = module("scale = 2.0\n@pyrelay.jit\ndef f(x):\n    return x * scale\n")
    assert m.f(3.0) == 6.0
    m.scale = float("5")
    assert m.f(3.0) == 15.0
    m.scale = float("2")
    assert m.f(3.0) == 6.0
    assert m.f.cache_info().compilations == 2
    del m.scale
    with pytest.raises(NameError, match="scale"):
        m.f(3.0)


def test_a_helper_defined_anew_is_noticed_at_any_depth():
    m = module(
        "def inner(x):\n    return x + 1\n"
        "def outer(x):\n    return inner(x) * 2\n"
        "@pyrelay.jit\ndef f(x):\n    return outer(x)\n"
        "slope = pyrelay.grad(f)\n"
    )
    assert (m.f(3.0), m.slope(3.0)) == (8.0, 2.0)
    m.run("def inner(x):\n    return x * x\n")
    assert (m.f(3.0), m.slope(3.0)) == (18.0, 12.0)
    m.run("@pyrelay.jit\ndef outer(x):\n    return -inner(x)\n")
    assert (m.f(3.0), m.slope(3.0)) == (-9.0, -6.0)


def test_a_name_that_hides_a_builtin_is_noticed_and_gone_again():
    m = module("@pyrelay.jit\ndef f(x):\n    return abs(x)\n")
    assert m.f(-3.0) == 3.0
    m.run("def abs(x):\n    return 100.0\n")
    assert m.f(-3.0) == 100.0
    del m.abs
    assert m.f(-3.0) == 3.0
    assert m.f.cache_info().compilations == 2


def test_a_patched_attribute_of_a_module_or_a_class_is_noticed():
    m = module(
        "class Box:\n    size = 2.0\n    def area(self, x):\n        return x * self.size\n"
        "box = Box()\n"
        "@pyrelay.jit\ndef f(x):\n    return box.area(x) + tools.shift(x)\n"
    )
    m.tools = types.SimpleNamespace(shift=lambda x: 0.0)
    m.tools = module("def shift(x):\n    return 0.0\n")
    assert m.f(3.0) == 6.0
    m.Box.size = 5.0
    assert m.f(3.0) == 15.0
    m.box.size = 1.0
    assert m.f(3.0) == 3.0
    m.tools.run("def shift(x):\n    return 10.0\n")
    assert m.f(3.0) == 13.0
    m.Box.area = lambda self, x: x
    assert m.f(3.0) == 13.0
    m.Box.area = lambda self, x: 2 * x
    assert m.f(3.0) == 16.0


def test_changed_defaults_and_replaced_code_are_noticed():
    def f(x, k=2.0, *, j=0.0):
        return x * k + j

    def other(x, k=2.0, *, j=0.0):
        return x - k

    compiled = pyrelay.jit(f)
    assert compiled(3.0) == 6.0
    f.__defaults__ = (7.0,)
    assert compiled(3.0) == 21.0
    f.__kwdefaults__ = {"j": 1.0}
    assert compiled(3.0) == 22.0
    f.__code__ = other.__code__
    assert compiled(3.0) == -4.0


def test_closures_of_one_factory_never_share_a_program_and_see_their_variables_change():
    def factory(k):
        def change(value):
            nonlocal k
            k = value

        return pyrelay.jit(lambda x: x * k), change

    (double, change), (triple, _) = factory(2), factory(3)
    assert (double(1.5), triple(1.5)) == (3.0, 4.5)
    change(10)
    assert (double(1.5), triple(1.5)) == (15.0, 4.5)


def test_captured_arrays_are_arguments_their_contents_and_their_sizes_compile_nothing():
    m = module("w = np.ones(3)\n@pyrelay.jit\ndef f(x):\n    return np.sum(w * x)\n")
    assert m.f(2.0) == 6.0
    m.w[:] = 4.0
    assert m.f(2.0) == 24.0
    m.w = np.full(7, 0.5)
    assert m.f(2.0) == 7.0
    assert m.f.cache_info().compilations == 1
    m.w = np.ones((2, 2), np.float32)
    assert m.f(2.0) == 8.0
    m.w = 5.0
    assert m.f(2.0) == 10.0
    m.w = np.ones(2)
    assert m.f(2.0) == 4.0
    assert m.f.cache_info().compilations == 3


def test_captured_containers_are_read_at_each_call_and_written():
    m = module(
        "state = {'w': np.ones(2), 'n': 0}\n"
        "@pyrelay.jit\ndef f(x):\n"
        "    state['n'] += 1\n    state['w'][0] = x\n    return np.sum(state['w'])\n"
    )
    assert m.f(2.0) == 3.0
    m.state["w"] = np.ones(4)
    assert m.f(2.0) == 5.0
    assert m.state["n"] == 2
    assert m.state["w"].tolist() == [2.0, 1.0, 1.0, 1.0]


def test_captured_arrays_reach_recursive_functions_and_derivatives_of_any_order():
    m = module(
        "w = np.arange(3.0)\n"
        "def power(x, n):\n    return np.sum(w * x) if n == 0 else power(x * w, n - 1)\n"
        "def loss(x):\n    return np.sum(w * x * x)\n"
        "slope = pyrelay.grad(loss)\n"
        "curvature = pyrelay.grad(lambda x: np.sum(slope(x) * w))\n"
    )
    x = np.ones(3)
    power = pyrelay.jit(m.power)
    for _ in range(2):
        assert power(x, 3) == m.power(x, 3)
        np.testing.assert_allclose(pyrelay.grad(m.power)(x, 2), m.w**3)
        np.testing.assert_allclose(m.slope(x), 2 * m.w)
        np.testing.assert_allclose(m.curvature(x), 2 * m.w**2)
        m.w += 1.0


def test_a_captured_array_that_is_an_argument_as_well_is_one_array():
    m = module("w = np.zeros(3)\n@pyrelay.jit\ndef f(x):\n    x[0] = 5.0\n    return w[0]\n")
    assert m.f(m.w) == 5.0
    assert m.f(np.zeros(3)) == 5.0


# -- programs for structures and values ------------------------------------------------------------


def test_another_size_compiles_nothing_and_another_type_or_structure_does():
    compiled = pyrelay.jit(lambda p: p["x"] * 2)
    compiled({"x": np.ones(3)})
    compiled({"x": np.ones(300)})
    assert compiled.cache_info()[:3] == (1, 1, 1)
    compiled({"x": np.ones(3, np.float32)})
    compiled({"x": 1.0})
    compiled({"x": np.ones(2), "y": 1})
    assert compiled.cache_info()[:3] == (4, 4, 1)


def test_values_that_must_be_known_make_a_program_each():
    @pyrelay.jit
    def total(x, axis):
        return np.sum(x, axis=axis)

    x = np.ones((2, 3))
    for axis in (0, 1, 0, 1):
        np.testing.assert_array_equal(total(x, axis), np.sum(x, axis=axis))
    assert total.cache_info()[:3] == (1, 2, 2)


def repeated(function, numbers):
    for number in numbers:
        function(1.0, number)


def test_a_function_called_with_ever_new_values_keeps_a_bounded_number_and_says_so():
    @pyrelay.jit
    def ones(x, shape):
        return np.sum(np.ones((2,) * shape)) * x

    text = "64 times .*the value of shape has to be known"
    with pytest.warns(RuntimeWarning, match=text) as seen:
        repeated(ones, [0, 1, *range(-198, -130)])
    assert len(seen) == 1
    assert seen[0].filename == __file__
    (programs,) = ones._table.values()
    assert len(programs) == 64


def test_a_function_called_with_ever_new_structures_keeps_a_bounded_number():
    compiled = pyrelay.jit(lambda x, structure: x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(300):
            structure = tuple(1.0 if digit == "0" else (1.0,) for digit in f"{k:b}")
            assert compiled(k, structure) == k
    assert compiled.cache_info().signatures == 256


def test_settings_of_the_moment_hold_for_functions_that_are_compiled_already():
    compiled = pyrelay.jit(lambda x: x + 1)
    compiled(np.ones(2))
    with pyrelay.config.override(interpret=True):
        assert compiled(np.ones(2)).tolist() == [2.0, 2.0]
        assert compiled.cache_info().compilations == 2
        assert "interpreter" in compiled.explain(np.ones(2))
    compiled(np.ones(2))
    assert compiled.cache_info().compilations == 2


# -- threads ---------------------------------------------------------------------------------------


def test_threads_that_call_a_new_function_at_once_compile_it_once_and_get_their_own_results():
    @pyrelay.jit
    def work(x, n):
        for _ in range(n):
            x = np.tanh(x) + 0.5 * x
        return x

    start = threading.Barrier(4)
    wrong: list[float] = []

    def run(value: float) -> None:
        x = np.full(500, value)
        wanted = work.py(x, 5)
        start.wait()
        wrong.extend(value for _ in range(50) if not np.allclose(work(x, 5), wanted))

    threads = [threading.Thread(target=run, args=(0.25 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert work.cache_info().compilations == 1
