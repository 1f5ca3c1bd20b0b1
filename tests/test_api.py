"""`jit`, `grad` and their objects: what they do with functions, arguments, names and copies."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import pickle
import types
from dataclasses import dataclass

import numpy as np
import pytest

import pyrelay


def double(x, times=2):
    """A doc text."""
    return x * times


@pyrelay.jit
def tripled(x):
    return x * 3


def cubes(x):
    return np.sum(x**3)


class Model:
    unit = 1.0

    def __init__(self, weights):
        self.weights = weights

    @pyrelay.jit
    def score(self, x):
        return np.sum(self.weights * x * x)

    def loss(self, x):
        return np.sum(self.weights * x)


# -- calling ---------------------------------------------------------------------------------------


def test_jit_works_with_and_without_parentheses_and_of_a_jitted_function_is_the_same():
    compiled = pyrelay.jit(double)
    assert pyrelay.jit()(double)(np.ones(2)).tolist() == [2.0, 2.0]
    assert pyrelay.jit(compiled) is compiled
    assert compiled.py is double


def test_jit_refuses_what_is_no_function():
    for transform in (pyrelay.jit, pyrelay.grad, pyrelay.value_and_grad):
        with pytest.raises(pyrelay.TypeMismatchError, match="takes a function, not int"):
            transform(3)


def test_a_compiled_function_has_the_name_the_text_and_the_signature_of_the_function():
    for compiled in (pyrelay.jit(double), pyrelay.grad(double)):
        assert compiled.__name__ == "double"
        assert compiled.__doc__ == "A doc text."
        assert compiled.__module__ == __name__
        assert inspect.signature(compiled) == inspect.signature(double)
    assert repr(pyrelay.jit(double)) == "<pyrelay.jit double>"
    assert repr(pyrelay.grad(double)) == "<pyrelay.grad of double>"


def test_arguments_by_name_by_position_and_by_default_share_a_program():
    compiled = pyrelay.jit(double)
    x = np.ones(2)
    for call in (
        lambda: compiled(x, 5), lambda: compiled(x, times=5), lambda: compiled(times=5, x=x)
    ):
        assert call().tolist() == [5.0, 5.0]
    assert compiled(x).tolist() == [2.0, 2.0]
    assert compiled.cache_info()[:3] == (2, 2, 2)


def test_wrong_arguments_are_refused_as_python_refuses_them():
    compiled = pyrelay.jit(double)
    for args, keywords in (((), {}), ((1, 2, 3), {}), ((1,), {"n": 2}), ((1,), {"x": 2})):
        with pytest.raises(TypeError):
            compiled(*args, **keywords)
    assert compiled(4) == 8


def test_star_arguments_and_keyword_only_arguments_reach_the_function():
    def total(first, *rest, scale=1.0, **named):
        for value in rest:
            first = first + value
        return first * scale + named["extra"]

    compiled = pyrelay.jit(total)
    keywords = {"scale": 2.0, "extra": 0.5}
    assert compiled(1.0, 2.0, 3.0, **keywords) == total(1.0, 2.0, 3.0, **keywords)


def test_partials_lambdas_and_methods_compile():
    assert pyrelay.jit(functools.partial(double, times=7))(2) == 14
    assert pyrelay.jit(lambda x: x + 1)(2) == 3
    model = Model(np.array([1.0, 2.0]))
    assert pyrelay.jit(model.loss)(np.ones(2)) == 3.0
    assert pyrelay.jit(Model.loss)(model, np.ones(2)) == 3.0


def test_a_jitted_method_is_called_and_looked_into_without_naming_the_object():
    one, other = Model(np.array([1.0, 2.0])), Model(np.array([5.0, 5.0]))
    x = np.array([1.0, 3.0])
    assert one.score(x) == 19.0
    assert other.score(x) == 50.0
    assert Model.score(one, x) == 19.0
    assert one.score.py(x) == 19.0
    assert "multiply" in one.score.ir(x)
    assert one.score.compare(x)
    assert one.score == one.score
    assert one.score != other.score
    one.weights = np.array([0.0, 1.0])
    assert one.score(x) == 9.0


class Kinds:
    rate = 2.0

    @staticmethod
    @pyrelay.jit
    def inner_static(x):
        return x + 1

    @pyrelay.jit
    @staticmethod
    def outer_static(x):
        return x + 2

    @classmethod
    @pyrelay.jit
    def inner_class(cls, x):
        return x * cls.rate

    @pyrelay.jit
    @classmethod
    def outer_class(cls, x):
        return x * cls.rate + 1

    @property
    @pyrelay.jit
    def doubled(self):
        return self.rate * 2

    @pyrelay.jit
    def __call__(self, x):
        """Rate minus x."""
        return self.rate - x


class Faster(Kinds):
    rate = 5.0


@pytest.mark.parametrize("cls", [Kinds, Faster])
def test_methods_of_every_kind_are_jitted_whichever_decorator_comes_first(cls):
    for owner in (cls, cls()):
        assert owner.inner_static(2.0) == 3.0
        assert owner.outer_static(2.0) == 4.0
        assert owner.inner_class(3.0) == 3.0 * cls.rate
        assert owner.outer_class(3.0) == 3.0 * cls.rate + 1
    assert cls().doubled == cls.rate * 2
    assert cls()(1.0) == cls.rate - 1
    assert pyrelay.jit(cls())(1.0) == cls.rate - 1
    assert pyrelay.grad(cls())(1.0) == -1.0
    assert pyrelay.grad(cls.inner_class)(1.0) == cls.rate
    assert inspect.signature(cls().__call__) == inspect.signature(lambda x: None)


@pytest.mark.parametrize("wrapper", [property, functools.cached_property])
def test_jit_of_a_property_says_which_decorator_comes_first(wrapper):
    with pytest.raises(pyrelay.TypeMismatchError, match=f"write @{wrapper.__name__} above @pyr"):
        pyrelay.jit(wrapper(lambda self: 1))


def test_a_jitted_function_is_called_inside_another_and_inside_plain_python():
    @pyrelay.jit
    def outer(x):
        return tripled(x) + tripled(1)

    assert outer(np.ones(2)).tolist() == [6.0, 6.0]
    assert [tripled(k) for k in range(3)] == [0, 3, 6]


# -- derivatives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [cubes, pyrelay.jit(cubes), lambda x: np.sum(x**3)])
def test_gradients_of_plain_and_jitted_functions_to_order_three(function):
    x = np.array([1.0, 2.0])
    first = pyrelay.grad(function)
    second = pyrelay.grad(lambda x: np.sum(first(x)))
    third = pyrelay.grad(lambda x: np.sum(second(x)))
    np.testing.assert_allclose(first(x), 3 * x**2)
    np.testing.assert_allclose(second(x), 6 * x)
    np.testing.assert_allclose(third(x), [6.0, 6.0])


def test_grad_of_grad_nests_without_names():
    assert pyrelay.grad(pyrelay.grad(pyrelay.grad(lambda x: x**4)))(2.0) == pytest.approx(48.0)


def test_gradients_of_partials_and_of_methods():
    assert pyrelay.grad(functools.partial(lambda a, x: a * x**2, 3.0))(2.0) == 12.0
    model = Model(np.array([1.0, 2.0]))
    x = np.array([3.0, 4.0])
    np.testing.assert_allclose(pyrelay.grad(model.score)(x), 2 * model.weights * x)
    np.testing.assert_allclose(pyrelay.grad(model.loss)(x), model.weights)
    np.testing.assert_allclose(pyrelay.grad(Model.loss, argnums=1)(model, x), model.weights)
    np.testing.assert_allclose(pyrelay.grad(Model.loss)(model, x).weights, x)


def test_argnums_and_argnames_choose_arguments():
    def product(a, b, *, c=1.0):
        return a * a * b * c

    assert pyrelay.grad(product)(2.0, 3.0) == 12.0
    assert pyrelay.grad(product, argnums=1)(2.0, 3.0) == 4.0
    assert pyrelay.grad(product, argnums=-2)(2.0, 3.0) == 4.0
    assert pyrelay.grad(product, argnums=(1, 0))(2.0, 3.0) == (4.0, 12.0)
    assert pyrelay.grad(product, argnums=(0,))(2.0, 3.0) == (12.0,)
    assert pyrelay.grad(product, argnames="b")(2.0, 3.0) == 4.0
    assert pyrelay.grad(product, argnames=("c", "a"))(2.0, 3.0, c=2.0) == (12.0, 24.0)
    with pytest.raises(pyrelay.GradientError, match="no such parameter"):
        pyrelay.grad(product, argnames="d")(2.0, 3.0)
    with pytest.raises(pyrelay.GradientError, match="has 3 parameters"):
        pyrelay.grad(product, argnums=3)(2.0, 3.0)
    for wrong in ("b", ((0, 1), None), None):
        with pytest.raises(TypeError, match=r"position .*, not .*; argnames is for names"):
            pyrelay.grad(product, argnums=wrong)


def test_auxiliary_results_come_with_the_gradient():
    def loss(x):
        return x * x, {"twice": 2 * x}

    assert pyrelay.grad(loss, has_aux=True)(3.0) == (6.0, {"twice": 6.0})
    assert pyrelay.value_and_grad(loss, has_aux=True)(3.0) == ((9.0, {"twice": 6.0}), 6.0)
    assert pyrelay.value_and_grad(lambda x: x * x)(3.0) == (9.0, 6.0)


Pair = collections.namedtuple("Pair", "left right")


@dataclass
class Layer:
    w: object
    name: str = "layer"


def test_gradients_have_the_structure_of_their_arguments_and_none_where_nothing_floats():
    def loss(p):
        return np.sum(p["list"][0] * p["list"][1]) * p["pair"].left * p["layer"].w + p["count"]

    given = {
        "list": [np.array([1.0, 2.0]), np.array([3.0, 4.0])], "pair": Pair(2.0, 5), "count": 3,
        "layer": Layer(0.5), "text": "word",
    }
    found = pyrelay.grad(loss)(given)
    assert list(found) == list(given)
    np.testing.assert_allclose(found["list"][0], [3.0, 4.0])
    np.testing.assert_allclose(found["list"][1], [1.0, 2.0])
    assert found["pair"] == Pair(5.5, None)
    assert found["layer"] == Layer(22.0, None)
    assert found["count"] is None
    assert found["text"] is None


def test_the_dtype_of_a_gradient_is_that_of_the_argument():
    found = pyrelay.grad(lambda x, y: np.sum(x) * np.sum(y), argnums=(0, 1))(
        np.ones(2, np.float32), np.ones(3)
    )
    assert [g.dtype for g in found] == [np.float32, np.float64]


def test_grad_inside_jit_and_of_a_function_that_uses_grad():
    @pyrelay.jit
    def step(x):
        return x - 0.1 * pyrelay.grad(cubes)(x)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(step(x), x - 0.3 * x**2)


def test_asking_for_a_gradient_again_compiles_nothing():
    for _ in range(3):
        pyrelay.grad(cubes)(np.ones(2))
    assert pyrelay.grad(cubes) is pyrelay.grad(cubes)
    assert pyrelay.grad(cubes).cache_info().compilations == 1
    assert pyrelay.grad(cubes) is not pyrelay.grad(cubes, has_aux=True)
    assert pyrelay.grad(cubes) is not pyrelay.value_and_grad(cubes)


def test_a_wrapper_made_with_functools_wraps_does_not_inherit_gradients():
    pyrelay.grad(cubes)(np.ones(2))

    @functools.wraps(cubes)
    def squares(x):
        return np.sum(x**2)

    np.testing.assert_allclose(pyrelay.grad(squares)(np.array([3.0])), [6.0])


def test_wrong_gradients_are_refused():
    with pytest.raises(pyrelay.GradientError, match="real scalar"):
        pyrelay.grad(lambda x: x * 2)(np.ones(2))
    with pytest.raises(pyrelay.GradientError, match="floating-point"):
        pyrelay.grad(lambda x: x * 2.0)(3)


# -- looking inside --------------------------------------------------------------------------------


def test_the_program_is_shown_at_the_end_of_every_stage():
    compiled = pyrelay.jit(double)
    x = np.ones(3)
    assert "py.binary" in compiled.ir(x, stage="parse")
    for stage in ("infer", "grad", "optimise"):
        assert "multiply(x" in compiled.ir(x, stage=stage)
    assert "kernel @" in compiled.ir(x, stage="fuse")
    assert "kernel multiply(a0: f64" in compiled.ir(x, stage="kernelise")
    assert "launch multiply_kernel(" in compiled.ir(x, stage="plan")
    assert "def multiply_kernel(" in compiled.ir(x, stage="emit")
    with pytest.raises(ValueError, match="no stage"):
        compiled.ir(x, stage="nothing")


def test_texts_print_as_they_are_and_show_with_colours_in_notebooks():
    text = pyrelay.jit(double).code(np.ones(3))
    assert repr(text) == str(text)
    shown = text._repr_html_()
    assert shown.startswith("<pre")
    assert '<span style="color:' in shown
    assert ">def</span>" in shown
    compile(text, "code", "exec")


def test_ir_and_code_write_nothing_into_the_arguments_and_run_nothing():
    @pyrelay.jit
    def fill(x):
        x[0] = 9.0
        return x

    x = np.zeros(2)
    fill.ir(x), fill.code(x), fill.lower(x), fill.explain(x)
    assert x.tolist() == [0.0, 0.0]
    assert fill(x) is x
    assert x.tolist() == [9.0, 0.0]


def test_lower_compiles_and_a_call_finds_what_it_made():
    compiled = pyrelay.jit(double)
    program = compiled.lower(np.ones(3))
    assert repr(program) == "<pyrelay program double(x: f64[3])>"
    assert "kernel @" in program.ir()
    assert "def multiply_kernel(" in program.code()
    assert program.explain() == compiled.explain()
    compiled(np.ones(5))
    assert compiled.cache_info()[:3] == (1, 1, 1)


def test_explain_says_what_was_compiled_why_and_how_long_it_took():
    @pyrelay.jit
    def summed(x, w, axis):
        return np.sum(double(x @ w), axis=axis) * abs(Model.unit)

    assert summed.explain().endswith("nothing compiled yet")
    text = summed.explain(np.ones((2, 3)), np.ones((3, 4)), 1)
    for part in ("summed(x: f64[2, 3], w: f64[3, 4], axis: int)", "infer", "fuse", "kernels",
                 " load ", "axis = 1", "x.shape[1] == w.shape[0]"):  # fmt: skip
        assert part in text
    assert "while these names mean the same: double, Model, Model.unit\n" in text
    with pyrelay.config.override(interpret=True):
        assert "reference interpreter" in summed.explain(np.ones((2, 3)), np.ones((3, 4)), 1)


def test_the_time_of_llvm_is_told_apart_and_added_up():
    compiled = pyrelay.jit(lambda x: x * 1.2345678 + 8.7654321)
    with pyrelay.config.override(cache=False):
        text = compiled.explain(np.ones(3))
    (line,) = (line for line in text.splitlines() if line.startswith("    compile "))
    assert line.endswith(" ms, by LLVM")
    first = compiled.cache_info().seconds
    assert first > float(line.split()[1]) / 1e3
    compiled(np.ones(4))
    assert compiled.cache_info().seconds == first
    compiled(np.ones(3, np.float32))
    assert compiled.cache_info().seconds > first


def test_a_compiled_function_shows_itself_in_notebooks():
    compiled = pyrelay.jit(double)
    compiled(np.ones(3))
    shown = compiled._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/plain"] == "<pyrelay.jit double>"
    assert "f64[3]" in shown["text/html"]


# -- copies ----------------------------------------------------------------------------------------


def test_compiled_functions_are_pickled_by_name_or_by_their_function():
    for each in (tripled, pyrelay.jit(double), Model.score):
        assert pickle.loads(pickle.dumps(each)).py is each.py
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    slope = pickle.loads(pickle.dumps(pyrelay.grad(cubes, argnums=(0,))))
    np.testing.assert_allclose(slope(np.ones(1)), [[3.0]])
    bent = pickle.loads(pickle.dumps(pyrelay.jit(functools.partial(double, times=3))))
    assert bent(2) == 6


def test_bound_methods_are_pickled_with_their_object():
    model = pickle.loads(pickle.dumps(Model(np.array([1.0, 2.0])).score))
    assert model(np.array([1.0, 3.0])) == 19.0
    for method in (Kinds.inner_class, Faster.outer_class, Faster().inner_class):
        assert pickle.loads(pickle.dumps(method))(3.0) == method(3.0)
    slope = pickle.loads(pickle.dumps(pyrelay.grad(Kinds().__call__)))
    assert slope(1.0) == -1.0
    assert copy.copy(Kinds().__call__)(1.0) == 1.0
    assert copy.deepcopy(Kinds().__call__)(1.0) == 1.0


def test_what_has_no_name_cannot_be_pickled_and_says_so():
    for function in (lambda x: x, types.FunctionType(double.__code__, globals(), "nowhere")):
        with pytest.raises(pickle.PicklingError, match="top level of a module"):
            pickle.dumps(pyrelay.jit(function))


def test_copies_of_a_compiled_function_are_the_function():
    assert copy.copy(tripled) is tripled
    assert copy.deepcopy({"f": tripled})["f"] is tripled


# -- errors ----------------------------------------------------------------------------------------


def test_errors_name_the_call_that_led_to_them_and_hide_the_frames_of_pyrelay():
    @pyrelay.jit
    def bad(x, w):
        return x * w

    with pytest.raises(pyrelay.ShapeError) as caught:
        bad(np.ones((4, 3)), w=np.ones(4))
    text = str(caught.value)
    line = caught.tb.tb_lineno
    assert f"test_api.py, line {line}: bad(x: f64[4, 3], w: f64[4])" in text.splitlines()[-1]
    files = [entry.path.name for entry in caught.traceback]
    assert files[0] == "test_api.py"
    assert len([name for name in files if name != "test_api.py"]) <= 1


def test_a_failed_compilation_leaves_the_function_usable_for_other_arguments():
    compiled = pyrelay.jit(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(pyrelay.ShapeError):
            compiled(np.ones(2), np.ones(3))
        assert compiled(np.ones(2), np.ones(2)).tolist() == [2.0, 2.0]
    assert compiled(1, 2) == 3


# -- checks for users ------------------------------------------------------------------------------


def test_compare_finds_no_difference_and_leaves_the_arguments_alone():
    @pyrelay.jit
    def fill(x, d):
        x[:] = np.tanh(x)
        d["n"] += 1
        return x, d

    x, d = np.ones(3), {"n": 1}
    found = fill.compare(x, d=d)
    assert found
    assert repr(found) == "the compiled and the plain function agree"
    assert (x.tolist(), d) == ([1.0, 1.0, 1.0], {"n": 1})
    assert pyrelay.jit(lambda x, k: x[k]).compare(np.ones(2), 5)


def test_compare_names_what_differs():
    from pyrelay.comparison import compare

    def plain(x, d):
        x[1] = 2.0
        return x + 1, {"k": 1.0, "t": (1, 2)}

    def other(x, d):
        d.append(3)
        return x + np.array([1.0, 1.5]), {"k": 1.0, "t": (1, 3)}

    found = compare(plain, other, (np.zeros(2), []), {})
    assert found.differences == (
        "result[0]: compiled np.float64(1.5), plain np.float64(3.0) at [1] (1 of 2 elements)",
        "result[1]['t'][1]: compiled 3, plain 2",
        "argument 1 afterwards: compiled np.float64(0.0), plain np.float64(2.0) at [1] "
        "(1 of 2 elements)",
        "argument 2 afterwards: compiled 1 items, plain 0",
    )
    found = compare(lambda: 1 / 0, lambda: 1, (), {})
    assert found.differences == (
        "compiled returns, plain raises ZeroDivisionError: division by zero",
    )
    assert not compare(lambda: 1, lambda: 1.0, (), {})
    assert not compare(lambda: np.ones(2), lambda: np.ones(2, np.float32), (), {})


def test_compare_of_a_derivative_says_what_to_use():
    with pytest.raises(pyrelay.InvalidValueError, match="check_grads"):
        pyrelay.grad(cubes).compare(np.ones(2))


def test_benchmark_tells_the_first_call_from_the_rest():
    timing = pyrelay.benchmark(pyrelay.jit(double), np.ones(4), seconds=0.02)
    assert 0 < timing.best <= timing.median < timing.first
    assert timing.calls >= 3
    assert "first call" in repr(timing)
    assert pyrelay.benchmark(double, np.ones(4), times=3, seconds=0.01).kernels == 0


def test_info_reports_versions_machine_cache_and_settings():
    text = pyrelay.info()
    for part in ("pyrelay", "numpy", "llvmlite", "CPUs", "disk cache", "PYRELAY_NUM_THREADS"):
        assert part in text


def test_every_public_name_exists():
    assert all(hasattr(pyrelay, name) for name in pyrelay.__all__)
    assert callable(pyrelay.grad)


def test_a_pure_function_may_not_write_to_its_arguments() -> None:
    @pyrelay.jit(pure=True)
    def scaled(x, log, record):
        y = x.copy()
        y[0] = 2.0
        if record:
            log[0] = x[0]
        return y

    x = np.arange(3.0)
    with pytest.raises(pyrelay.UnsupportedOperationError, match=r"(?s)into .log.*log.0. = x"):
        scaled(x, np.zeros(1), 1)
    with pytest.raises(pyrelay.UnsupportedOperationError, match="a list of the caller"):
        pyrelay.jit(scaled, pure=True)(x, [0.0], 1)
    assert pyrelay.jit(lambda v: v * 2.0, pure=True)(x).tolist() == [0.0, 2.0, 4.0]


def test_a_method_of_pythons_over_a_compiled_function_is_one_of_ours():
    """What `classmethod` gives since Python 3.13."""
    method = types.MethodType(Kinds.__dict__["inner_class"].__func__, Faster)
    assert method(3.0) == 15.0
    assert pyrelay.jit(method)(3.0) == 15.0
    assert pyrelay.grad(method)(1.0) == 5.0
    assert pyrelay.profile(method, 1.0).seconds > 0
