"""Every op against NumPy and finite differences, on the samples in its record."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Module
from pyrelay.ir.op import OPS, Fusion, Op, Promotion, RelationError, Sample
from pyrelay.ir.types import TensorType
from tests.grad.checking import check
from tests.ops.calling import call, program, result_type, run, samples, weighted_sum


@pytest.mark.parametrize(("op", "sample"), samples())
def test_a_value_has_the_type_that_the_relation_says(op: Op, sample: Sample) -> None:
    if op.name == "raise":
        with pytest.raises(ValueError, match=r"wanted 4\.5, got 3"):
            op.numpy(*sample.args, **sample.attrs)
        return

    def body(build: Builder, *handles: Any) -> Any:
        out = build.call(op, *handles, **sample.attrs)
        return out[0] if op.binds else out

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        args = [list(a) if isinstance(a, list) else a for a in sample.args]
        run(args, body)  # the interpreter compares values with types


def _cases(names: str, kinds: str) -> list[Any]:
    return [pytest.param(n, c, id=f"{n}-{c}") for n in names.split() for c in kinds]


_ALL = "?bhilBHILefdFD"
_UNARY = (
    "positive negative absolute sign square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10 "
    "log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil "
    "trunc rint invert isnan isinf isfinite logical_not conj real imag"
)
_BINARY = (
    "add subtract multiply divide floor_divide remainder power fmin fmax minimum maximum hypot "
    "copysign logaddexp arctan2 greater greater_equal less less_equal equal not_equal "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift"
)


def _numpy_result(name: str, *args: np.ndarray) -> Any:
    """NumPy's result dtype; None where NumPy has no loop."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(getattr(np, name)(*args)).dtype
    except TypeError:
        return None


def _our_result(name: str, *args: np.ndarray) -> Any:
    operands = [TensorType(types.from_numpy(a.dtype), a.shape) for a in args]
    try:
        return result_type(name, *operands).dtype.numpy
    except RelationError:
        return None


@pytest.mark.parametrize(("name", "kind"), _cases(_UNARY, _ALL))
def test_unary_ops_have_numpys_result_type(name: str, kind: str) -> None:
    x = np.ones(2, kind)
    assert _our_result(name, x) == _numpy_result(name, x)


@pytest.mark.parametrize("name", _BINARY.split())
def test_binary_ops_have_numpys_result_type(name: str) -> None:
    for left in _ALL:
        for right in _ALL:
            x, y = np.ones(2, left), np.ones(2, right)
            if name == "copysign" and {left, right} & set("FD"):
                assert _our_result(name, x, y) is None
                continue
            assert _our_result(name, x, y) == _numpy_result(name, x, y), (left, right)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"])
def test_reductions_have_numpys_result_type(name: str) -> None:
    for kind in _ALL:
        if kind in "FD" and name in {"max", "min", "argmax", "argmin"}:
            continue
        x = np.ones((2, 3), kind)
        operand = TensorType(types.from_numpy(x.dtype), x.shape)
        found = result_type(name, operand, axes=(1,), keepdims=False)
        assert found.dtype.numpy == getattr(np, name)(x, axis=1).dtype
        assert found.shape == (2,)


def test_python_numbers_give_way_to_arrays_and_stay_python_numbers_among_themselves() -> None:
    f32 = TensorType(types.f32, (3,))
    assert result_type("multiply", f32, types.PY_FLOAT) == f32
    assert result_type("add", TensorType(types.u8, (2,)), types.PY_INT).dtype == types.u8
    assert result_type("add", types.PY_INT, types.PY_FLOAT) == types.PY_FLOAT
    assert result_type("divide", types.PY_INT, types.PY_INT) == types.PY_FLOAT
    assert result_type("add", types.PY_BOOL, types.PY_BOOL) == types.PY_INT
    assert result_type("less", types.PY_INT, types.PY_FLOAT) == types.PY_BOOL
    assert result_type("exp", types.PY_BOOL) == types.PY_FLOAT
    assert result_type("absolute", types.PY_COMPLEX) == types.PY_FLOAT
    condition = TensorType(types.bool_, (3,))
    assert result_type("where", condition, types.PY_INT, types.PY_FLOAT) == TensorType(
        types.f64, (3,)
    )


def _differentiable_program(op: Op, sample: Sample) -> tuple[Module, list[Any], list[int]]:
    """A real function of the sample's floating arguments, complex ones given by their parts."""
    args: list[Any] = []
    wrt: list[int] = []
    places: list[tuple[int, ...]] = []
    for arg in sample.args:
        array = np.asarray(arg)
        parts = (array.real[()], array.imag[()]) if array.dtype.kind == "c" else (arg,)
        places.append(tuple(range(len(args), len(args) + len(parts))))
        if array.dtype.kind in "fc":
            wrt += places[-1]
            parts = tuple(np.asarray(p, "f8")[()] for p in parts)
        args += parts

    def body(build: Builder, *handles: Any) -> Any:
        operands = [
            build.call(OPS["make_complex"], *(handles[k] for k in place))
            if len(place) == 2 else handles[place[0]]
            for place in places
        ]
        attrs = {k: False if k == "weak" else v for k, v in sample.attrs.items()}
        return weighted_sum(build, build.call(op, *operands, **attrs))

    return program(args, body), args, wrt


@pytest.mark.parametrize(("op", "sample"), samples(differentiable=True))
def test_first_and_second_derivatives_agree_with_finite_differences(
    op: Op, sample: Sample
) -> None:
    module, args, wrt = _differentiable_program(op, sample)
    check(module, args, orders=2, wrt=wrt)


_KEEPS_DTYPES = {"bitcast", "cast", "check_index", "check_item", "check_places"}


def test_every_op_has_a_sentence_and_a_way_to_be_computed() -> None:
    for op in OPS.values():
        assert op.doc, op.name
        assert (op.element is None) == (op.fusion is Fusion.OPAQUE), op.name
        if op.fusion is Fusion.ELEMENTWISE and op.promotion is Promotion.NONE:
            assert op.name in _KEEPS_DTYPES, op.name


def test_samples_are_the_same_in_every_process() -> None:
    first = OPS["tanh"].samples[1].args[0]
    np.testing.assert_array_equal(
        first, call("add", np.zeros(7), np.array(first, copy=True))
    )
    assert len(set(first.tolist())) == 7
