"""The entry takes what a plan was made for, refuses everything else, and builds the results."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.runtime.entry import MISMATCH, Executable
from pyrelay.errors import InvariantError
from pyrelay.lower.planning.boundary import (
    ArrayParameter,
    ArrayResult,
    ObjectParameter,
    ObjectResult,
    ParameterResult,
    SameResult,
    ScalarParameter,
    ScalarResult,
    ViewResult,
    scalar_words,
)
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import (
    Alloc,
    Binary,
    Copy,
    Data,
    Free,
    Guard,
    Load,
    Plan,
    PlanFunction,
    Return,
    Slot,
    Store,
    TapeFree,
    TapeNew,
    immediate,
)
from tests.dtypes import HERE

NAMES = [d.numpy.name for d in HERE]


def _program(
    code: Any, parameters: Any, results: Any, *, slots: int = 16, arrays: Any = ()
) -> Executable:
    words = sum(parameter.words for parameter in parameters)
    plan = Plan(
        (PlanFunction("main", words, slots, tuple(code)),), arrays=tuple(arrays),
        parameters=tuple(parameters), results=tuple(results), single=len(results) == 1,
    )  # fmt: skip
    return Executable(encode(plan))


def _taken(parameter: ArrayParameter, *, given: Any) -> Any:
    """The extents that the plan sees, or MISMATCH."""
    code = [Return(tuple(Slot(1 + axis) for axis in range(parameter.ndim)))]
    return _program(code, [parameter], [ScalarResult("int")] * parameter.ndim).call(given)


def _copy(dtype: str, ndim: int, order: str = "C") -> Executable:
    """A program that copies its array."""
    size = [Binary("mul.i64", 8, immediate(np.dtype(dtype).itemsize), immediate(1))]
    size += [Binary("mul.i64", 8, Slot(8), Slot(1 + axis)) for axis in range(ndim)]
    extents = tuple(Slot(1 + axis) for axis in range(ndim))
    code = [*size, Alloc(9, Slot(8)), Copy(Slot(9), Slot(0), Slot(8)), Return((Slot(9), *extents))]
    axes = tuple(reversed(range(ndim))) if order == "F" else ()
    return _program(code, [ArrayParameter(dtype, ndim, axes)], [ArrayResult(dtype, ndim, order)])


@pytest.mark.parametrize("dtype", NAMES)
def test_arrays_of_every_dtype_and_order_go_in_and_come_out(dtype: str) -> None:
    for shape in [(), (3,), (2, 3), (0, 4), (2, 3, 4)]:
        values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        for order in ("C", "F"):
            array = np.asarray(values, order=order)
            copy = _copy(dtype, len(shape), order).call(array)
            assert type(copy) is np.ndarray
            assert copy.dtype == array.dtype
            assert copy.flags.writeable
            assert copy.flags.aligned
            assert copy.strides == array.strides or array.size == 0
            np.testing.assert_array_equal(copy, values)
            assert not np.shares_memory(copy, array)


@pytest.mark.parametrize("dtype", NAMES)
def test_numpy_scalars_keep_their_class_and_value(dtype: str) -> None:
    name = "bool_" if dtype == "bool" else dtype
    parameter = ScalarParameter(name)
    code = [Return(tuple(Slot(word) for word in range(parameter.words)))]
    call = _program(code, [parameter], [ScalarResult(name)]).call
    kind = np.dtype(dtype).type
    samples = [kind(0), kind(1), kind(100)]
    if np.dtype(dtype).kind in "iu":
        samples += [np.iinfo(dtype).min, np.iinfo(dtype).max]
    if np.dtype(dtype).kind in "fc":
        samples += [kind(-0.0), kind("nan"), kind("inf"), kind(1e-40)]
    if np.dtype(dtype).kind == "c":
        samples.append(kind(1.5 - 2.5j))
    for value in map(kind, samples):
        answer = call(value)
        assert type(answer) is kind
        assert answer.tobytes() == value.tobytes()
    for other in (1, 1.0, True, 1j, np.zeros((), dtype), None):
        assert call(other) is MISMATCH


@pytest.mark.parametrize(
    ("kind", "values"),
    [("int", [0, -5, 2**63 - 1, -(2**63)]), ("float", [0.5, -0.0, float("inf")]),
     ("bool", [True, False]), ("complex", [1.5 - 2j, 0j])],
)  # fmt: skip
def test_python_scalars_keep_their_class_and_value(kind: str, values: list[Any]) -> None:
    code = [Return(tuple(Slot(word) for word in range(scalar_words(kind))))]
    call = _program(code, [ScalarParameter(kind)], [ScalarResult(kind)]).call
    for value in values:
        answer = call(value)
        assert type(answer) is type(value)
        assert repr(answer) == repr(value)
    others = {"int": 1, "float": 1.0, "bool": True, "complex": 1j}
    for other, value in others.items():
        if other != kind:
            assert call(value) is MISMATCH
    for value in (np.int64(1), np.float64(1.0), np.bool_(True), np.complex128(1j), "1", None):
        assert call(value) is MISMATCH


def test_an_int_that_does_not_fit_is_a_mismatch_and_sets_no_error() -> None:
    call = _program([Return((Slot(0),))], [ScalarParameter("int")], [ScalarResult("int")]).call
    assert call(2**63) is MISMATCH
    assert call(-(2**63) - 1) is MISMATCH
    assert call(-(2**63)) == -(2**63)


def test_arrays_that_differ_in_class_dtype_rank_or_layout_are_refused() -> None:
    parameter = ArrayParameter("float64", 2)
    array = np.zeros((4, 6))
    assert _taken(parameter, given=array) == (4, 6)
    for other in (
        np.zeros(4), np.zeros((4, 6), np.float32), array.T, array[:, ::2], array[::2], [[1.0]],
        array.view(np.recarray), array.astype(">f8"), np.float64(1.0), None,
        np.frombuffer(bytes(97), np.uint8)[1:].view(np.float64).reshape(2, 6),
    ):  # fmt: skip
        assert _taken(parameter, given=other) is MISMATCH


def test_axes_that_lie_in_another_order_come_in_that_order() -> None:
    parameter = ArrayParameter("float64", 3, (2, 1, 0))
    array = np.zeros((4, 5, 6), order="F")
    assert _taken(parameter, given=array) == (6, 5, 4)
    for other in (np.zeros((4, 5, 6)), array[::2], array[:, :, ::-1], array.transpose(0, 2, 1)):
        assert _taken(parameter, given=other) is MISMATCH
    swapped = ArrayParameter("float64", 3, (0, 2, 1), extents=(4, None, 5))
    assert _taken(swapped, given=np.zeros((4, 6, 5)).transpose(0, 2, 1)) == (4, 6, 5)
    assert _taken(swapped, given=np.zeros((1, 6, 5)).transpose(0, 2, 1)) is MISMATCH
    assert _taken(swapped, given=np.zeros((4, 5, 6))) is MISMATCH


def test_writeable_parameters_refuse_read_only_arrays_and_fixed_extents_must_be_met() -> None:
    array = np.zeros((4, 6))
    array.flags.writeable = False
    assert _taken(ArrayParameter("float64", 2), given=array) == (4, 6)
    assert _taken(ArrayParameter("float64", 2, writeable=True), given=array) is MISMATCH
    assert _taken(ArrayParameter("float64", 2, extents=(None, 6)), given=array) == (4, 6)
    assert _taken(ArrayParameter("float64", 2, extents=(1, None)), given=array) is MISMATCH


def test_the_number_of_arguments_must_agree() -> None:
    call = _program([Return((Slot(0),))], [ScalarParameter("int")], [ScalarResult("int")]).call
    assert call() is MISMATCH
    assert call(1, 2) is MISMATCH


def test_a_failing_guard_is_a_mismatch() -> None:
    code = [Binary("eq.i64", 2, Slot(0), Slot(1)), Guard(Slot(2)), Return((Slot(0),))]
    call = _program(code, [ScalarParameter("int")] * 2, [ScalarResult("int")]).call
    assert call(3, 3) == 3
    assert call(3, 4) is MISMATCH


def test_objects_are_compared_by_identity_and_returned_as_they_are() -> None:
    marker = object()
    array = np.arange(3.0)
    call = _program(
        [Return(())], [ObjectParameter(marker), ArrayParameter("float64", 1)],
        [ParameterResult(1), ObjectResult(marker), SameResult(0), ObjectResult(None)],
    ).call  # fmt: skip
    assert call(object(), array) is MISMATCH
    answer = call(marker, array)
    assert answer[0] is array
    assert answer[1] is marker
    assert answer[2] is array
    assert answer[3] is None


def test_a_view_result_shares_memory_with_its_argument() -> None:
    code = [Binary("add.i64", 3, Slot(0), immediate(8)), Return((Slot(3), immediate(1),
            immediate(3), immediate(16), immediate(8)))]  # fmt: skip
    call = _program(code, [ArrayParameter("float64", 2)], [ViewResult("float64", 2, 0)]).call
    array = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    view = call(array)
    assert view.base is array
    assert view.flags.writeable
    np.testing.assert_array_equal(view, [[1.0, 2.0, 3.0]])
    assert view.strides == (16, 8)
    array.flags.writeable = False
    assert not call(array).flags.writeable


def test_constant_arrays_are_read_from_the_plan() -> None:
    constant = np.array([3.0, 4.0])
    code = [Alloc(0, immediate(16)), Copy(Slot(0), Data(0), immediate(16)),
            Return((Slot(0), immediate(2)))]  # fmt: skip
    call = _program(code, [], [ArrayResult("float64", 1)], arrays=[constant]).call
    np.testing.assert_array_equal(call(), constant)


def test_the_function_outlives_its_executable_and_frees_everything_with_itself() -> None:
    program = _copy("float64", 1)
    call = program.call
    record = weakref.ref(call.__self__)
    del program
    gc.collect()
    result = call(np.arange(5.0))
    del call
    gc.collect()
    assert record() is None
    np.testing.assert_array_equal(result, np.arange(5.0))


def test_words_of_a_program_are_there_until_its_memory_is_given_back() -> None:
    # What hears of it last is asked first; NumPy 2.5 has given the memory back by then.
    call = _copy("float64", 1).call
    call(np.arange(5.0))
    words = weakref.ref(call.__self__.base)
    left: list[bool] = []
    weakref.finalize(call.__self__, lambda: left.append(words() is not None))
    del call
    gc.collect()
    assert left == [True]
    assert words() is None


def test_no_reference_leaks_over_many_calls() -> None:
    array, marker = np.arange(5.0), object()
    program = _program(
        [Return((Slot(0), Slot(1)) * 0)], [ArrayParameter("float64", 1), ObjectParameter(marker)],
        [ParameterResult(0), ObjectResult(marker)],
    )  # fmt: skip
    before = sys.getrefcount(array), sys.getrefcount(marker), sys.getrefcount(MISMATCH)
    dtype = sys.getrefcount(array.dtype)
    copy = _copy("float64", 1)
    for _ in range(1000):
        program.call(array, marker)
        program.call(array, None)
        copy.call(array)
    after = sys.getrefcount(array), sys.getrefcount(marker), sys.getrefcount(MISMATCH)
    assert after == before
    assert sys.getrefcount(array.dtype) <= dtype + 5


def test_an_unknown_dtype_is_an_invariant_error() -> None:
    with pytest.raises(InvariantError, match="float128"):
        _program([Return(())], [ArrayParameter("float128", 1)], [ObjectResult(None)])


def test_freeing_an_array_that_the_caller_lent_does_nothing() -> None:
    lent = ArrayParameter("float64", 1, writeable=True)
    takes = [ScalarParameter("int"), lent, ArrayParameter("float64", 1), lent]
    code = (
        Free(Slot(1)), Free(Slot(5)), Alloc(7, immediate(64)),
        Store("i64", Slot(1), immediate(0), immediate(2.0, "float64")),
        Free(Slot(7)), Free(Slot(1)), Load("i64", 8, Slot(5), immediate(0)), Return((Slot(8),)),
    )  # fmt: skip
    call = _program(code, takes, [ScalarResult("float")]).call
    for size in (1, 3, 100):
        first, second, third = (np.full(size, float(k)) for k in range(3))
        assert call(7, first, second, third) == 2.0
        assert first[0] == 2.0
        assert np.all(first[1:] == 0.0)
        assert np.all(second == 1.0)
        assert np.all(third == 2.0)


def test_address_0_is_nothing_to_free_to_copy_or_to_return() -> None:
    zero = immediate(0)
    code = (
        Free(zero), TapeFree(zero), Copy(Slot(0), zero, immediate(8)),
        TapeNew(2), TapeFree(Slot(2)), Return((zero, immediate(4), Slot(1))),
    )  # fmt: skip
    results = [ArrayResult("float64", 1), ScalarResult("int")]
    call = _program(code, [ArrayParameter("float64", 1)], results).call
    array = np.arange(4.0)
    for _ in range(3):
        assert call(array) == (None, 4)
    assert np.array_equal(array, np.arange(4.0))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_before_the_first_line_of_a_call_of_python_is_not_lost() -> None:
    compiled = pyrelay.jit(lambda: np.random.default_rng().random())
    compiled()

    def interrupt(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "host_call":
            raise KeyboardInterrupt  # as a handler does where a frame begins

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            compiled()
    finally:
        sys.settrace(before)
    assert 0.0 <= compiled() < 1.0
