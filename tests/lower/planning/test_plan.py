"""Planned programs compute what the interpreter computes, in place, and free all they allocate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_programs import PROGRAMS, Program, do, single
from plan_machine import Machine

import pyrelay
from pyrelay.devices.cpu import TARGET
from pyrelay.devices.runtime.entry import MISMATCH, Executable
from pyrelay.ir import dims
from pyrelay.ir.interp import interpret
from pyrelay.ir.types import PY_BOOL, PY_FLOAT, PY_INT, TensorType, f32, f64, i32, u64
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import Alloc, Call, Copy, Free, Instruction, Launch, Plan
from pyrelay.lower.planning.plan import Condition, Entry, plan


def planned(program: Program) -> Plan:
    return plan(program.module, TARGET, Entry(mutated=dict(program.mutated)))


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
    single = getattr(expected, "dtype", None) in (np.float32, np.complex64)
    np.testing.assert_allclose(found, expected, rtol=2e-6 if single else 1e-12)


def check(program: Program, run: Callable[..., Any]) -> None:
    """Results and changed arguments are the interpreter's, and other arguments stay."""
    changes = dict(program.mutated)
    for args in program.arguments:
        own = copied(args)
        found = run(own)
        expected = interpret(program.module, args)
        rest = [e for k, e in enumerate(expected) if k not in changes.values()]
        for result, wanted in zip(found, rest, strict=True):
            same(result, wanted)
        for k, (before, now) in enumerate(zip(args, own, strict=True)):
            same(now, expected[changes[k]] if k in changes else before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_executor_computes_what_the_interpreter_computes(name: str) -> None:
    program = PROGRAMS[name]()
    executable = Executable(encode(planned(program)))
    check(program, lambda args: executable.call(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_buffer_is_freed_once_and_never_read_afterwards(name: str) -> None:
    program = PROGRAMS[name]()
    code = planned(program)
    check(program, lambda args: Machine(code).run(args))


def loop_code(code: Plan, function: str) -> list[Instruction]:
    """What runs once per iteration in the loops of a function."""
    (found,) = (f for f in code.functions if f.name == function)
    text = [type(step).__name__ for step in found.code]
    start = next(k for k, s in enumerate(found.code) if getattr(s, "name", "").startswith("loop"))
    end = max(k for k, name in enumerate(text) if name in ("LoopNext", "Jump"))
    return list(found.code[start:end])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("elements_written_in_a_loop", "f"), ("rows_written_in_a_loop", "f"),
        ("nested_loops", "f"), ("helper_that_writes", "f"), ("argument_written_in_place", "f"),
    ],
)
def test_a_loop_that_stores_copies_and_allocates_nothing(name: str, function: str) -> None:
    steps = loop_code(planned(PROGRAMS[name]()), function)
    assert not [s for s in steps if isinstance(s, (Alloc, Copy, Free))]
    assert [s for s in steps if isinstance(s, (Launch, Call))]


def test_swapped_buffers_change_places_without_a_copy() -> None:
    steps = loop_code(planned(PROGRAMS["swapped_buffers"]()), "f")
    assert not [s for s in steps if isinstance(s, Copy)]


def test_a_helper_that_stores_one_element_copies_nothing() -> None:
    code = planned(PROGRAMS["helper_that_writes"]())
    (helper,) = (f for f in code.functions if f.name == "store")
    assert not [s for s in helper.code if isinstance(s, (Alloc, Copy))]


def test_an_argument_that_is_written_is_never_copied() -> None:
    program = PROGRAMS["argument_written_in_place"]()
    machine = Machine(planned(program))
    machine.run(copied(program.arguments[0]))
    assert machine.copied == 0


def test_recursion_hands_its_array_down_without_copies() -> None:
    program = PROGRAMS["recursion_that_returns_its_argument"]()
    machine = Machine(planned(program))
    machine.run(copied(program.arguments[0]))
    assert machine.copied == program.arguments[0][0].nbytes  # the caller's array, once


def test_sizes_are_computed_once_and_outside_loops() -> None:
    code = planned(PROGRAMS["nested_loops"]())
    steps = loop_code(code, "f")
    products = [s for s in steps if getattr(s, "op", "") == "mul.i64"]
    assert not products


def test_extents_of_arguments_that_must_agree_are_guarded() -> None:
    program = PROGRAMS["swapped_buffers"]()
    executable = Executable(encode(planned(program)))
    x, y = np.zeros(2), np.zeros(3)
    assert executable.call(x, y, 1) is MISMATCH


def test_conditions_on_extents_decide_whether_a_call_is_served() -> None:
    program = PROGRAMS["power_by_while"]()
    extent = dims.of(program.module.main.dims[0])
    entry = Entry(conditions=(Condition("<", extent, 4), Condition("==", extent, 1, False)))
    executable = Executable(encode(plan(program.module, TARGET, entry)))
    assert executable.call(np.ones(4, "f4"), 1) is MISMATCH
    assert executable.call(np.ones(1, "f4"), 1) is MISMATCH
    (found,) = executable.call(np.full(3, 2, "f4"), 2)
    np.testing.assert_array_equal(found, np.full(3, 8, "f4"))


def test_equal_groups_are_one_kernel() -> None:
    code = planned(PROGRAMS["scatters"]())
    launches = [s for f in code.functions for s in f.code if isinstance(s, Launch)]
    assert len({s.kernel for s in launches}) == len(code.kernels) <= len(launches)


@pytest.mark.parametrize(
    ("op", "kind", "args"),
    [
        ("floor_divide", PY_INT, (7, 0)), ("remainder", PY_INT, (7, 0)),
        ("divide", PY_FLOAT, (1.0, 0.0)), ("floor_divide", PY_FLOAT, (1.0, 0.0)),
        ("add", PY_INT, (2**63 - 1, 1)), ("multiply", PY_INT, (2**62, 2)),
        ("floor_divide", PY_INT, (-(2**63), -1)), ("power", PY_INT, (10, 30)),
    ],
)
def test_arithmetic_of_python_numbers_raises_as_python_does(
    op: str, kind: Any, args: tuple[Any, Any]
) -> None:
    module = single("f", {"x": kind, "y": kind}, lambda b, x, y: [do(b, op, x, y)])
    with pytest.raises((ArithmeticError, ValueError)) as expected:
        interpret(module, args)
    with pytest.raises(type(expected.value)) as found:
        Executable(encode(plan(module, TARGET))).call(*args)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    ("op", "kind", "args"),
    [
        ("floor_divide", PY_INT, (-7, 2)), ("remainder", PY_INT, (-7, 2)),
        ("remainder", PY_INT, (7, -2)), ("subtract", PY_INT, (-5, 9)),
        ("divide", PY_FLOAT, (1.0, -3.0)), ("power", PY_INT, (-3, 5)),
        ("less", PY_INT, (3, 4)), ("maximum", PY_INT, (3, 4)), ("less_equal", PY_FLOAT, (1.0, 1.0)),
        ("add", TensorType(f32), (np.float32(0.1), np.float32(0.2))),
        ("divide", TensorType(f64), (np.float64(1), np.float64(0))),
        ("not_equal", TensorType(f64), (np.float64("nan"), np.float64("nan"))),
        ("multiply", TensorType(i32), (np.int32(2**30), np.int32(6))),
        ("logical_xor", PY_BOOL, (True, False)),
        ("less", TensorType(u64), (np.uint64(2**63), np.uint64(1))),
    ],
)
def test_scalar_arithmetic_is_exact(op: str, kind: Any, args: tuple[Any, Any]) -> None:
    module = single("f", {"x": kind, "y": kind}, lambda b, x, y: [do(b, op, x, y)])
    (found,) = Executable(encode(plan(module, TARGET))).call(*args)
    (expected,) = interpret(module, args)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)


def test_an_index_out_of_bounds_names_its_value() -> None:
    program = PROGRAMS["elements_written_in_a_loop"]()
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        Executable(encode(planned(program))).call(np.zeros(4), 9)


def test_a_raised_message_joins_its_parts() -> None:
    parts = ("{wanted} ", 1, ", got ", 0)

    def body(b: Any, n: Any, x: Any) -> list[Any]:
        do(b, "raise", n, x, exception="KeyError", parts=parts)
        return [n]

    module = single("f", {"n": PY_INT, "x": PY_FLOAT}, body)
    with pytest.raises(KeyError) as found:
        Executable(encode(plan(module, TARGET))).call(3, 0.5)
    assert found.value.args == ("{wanted} 0.5, got 3",)


def test_a_negative_extent_is_refused() -> None:
    program = PROGRAMS["run_time_extent_at_the_boundary"]()
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        Executable(encode(planned(program))).call(-1)


def test_recursion_is_as_deep_as_memory_allows() -> None:
    executable = Executable(encode(planned(PROGRAMS["mutual_recursion"]())))
    assert executable.call(100_000) == (True,)


@pytest.mark.parametrize("function", [
    lambda x, w: x @ w, lambda x, w: np.maximum(x @ w.T.T + 1, 0), lambda x, w: (x @ w).sum(0),
])  # fmt: skip
def test_products_of_many_with_one_matrix_are_one_product(function: Any) -> None:
    compiled, w = pyrelay.jit(function), np.arange(20.0).reshape(4, 5)
    for shape in ((2, 3, 4), (0, 3, 4), (7, 1, 4), (90, 3, 4), (2, 3, 2, 4)):
        x = np.arange(math.prod(shape)).reshape(shape) % 7 - 2.5
        np.testing.assert_array_equal(compiled(x, w), function(x, w))
        (given,) = re.findall(r"launch matmul_kernel\(([^)]*)\)", str(compiled.code(x, w)))
        assert given.split(", ")[12] == "0"  # batch axes


def test_products_of_matrix_by_matrix_are_not() -> None:
    function = pyrelay.jit(lambda x, w: x @ w)
    for x, w in ((np.ones((2, 3, 4)), np.ones((2, 4, 5))), (np.ones((3, 4)), np.ones((2, 4, 5)))):
        np.testing.assert_array_equal(function(x, w), x @ w)
        (given,) = re.findall(r"launch matmul_kernel\(([^)]*)\)", str(function.code(x, w)))
        assert given.split(", ")[12] == "1"
