"""The printer."""

from __future__ import annotations

import core_programs
import numpy as np
import pytest
from core_programs import do, function, single, vector

from pyrelay.ir import types
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.nodes import (
    TEMPORARY,
    UNSET,
    Attrs,
    Block,
    Const,
    Function,
    Jvp,
    KernelCall,
    Let,
    Loop,
    Module,
    PyCall,
    Var,
    Vjp,
)
from pyrelay.ir.show import show
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType, f32, f64


def test_a_loop_with_a_short_test_reads_as_one_line() -> None:
    program = core_programs.PROGRAMS["power_by_while"]()
    assert show(program.module) == (
        "def @power[n](x: f32[n], k: int) -> f32[n] {\n"
        "  v0: f32[n], v1: int = loop (c: f32[n] = x, c_1: int = k) while greater(c_1, 0) {\n"
        "    v2: f32[n] = multiply(c, x)\n"
        "    v3: int = subtract(c_1, 1)\n"
        "    next v2, v3\n"
        "  }\n"
        "  return v0\n"
        "}"
    )


def test_a_loop_shows_all_its_parts() -> None:
    text = show(core_programs.PROGRAMS["tested_array_handed_to_the_body"]().module)
    assert "loop (y: f64[n] = x) while {" in text
    assert "} do (r: f64[n]) {" in text
    text = show(core_programs.PROGRAMS["loop_with_exit"]().module)
    assert "index i: int count 20 exits {" in text
    text = show(core_programs.PROGRAMS["carried_extent"]().module)
    assert "v0: f64[m]; m = loop (y: f64[m_1] = x; m_1 = n) index i: int count k {" in text
    assert "next v1; 2*m_1" in text


def test_branches_calls_and_bound_extents_are_shown() -> None:
    text = show(core_programs.PROGRAMS["branch_with_own_extents"]().module)
    assert "f64[k]; k = if flag {" in text
    assert "} else {" in text
    assert "; 2*n" in text
    text = show(core_programs.PROGRAMS["results_with_their_own_extents"]().module)
    assert text.index("def @f(") < text.index("def @ramp(")
    assert "; k = as_extent(n)" in text


def test_names_of_users_stay_and_are_made_unique() -> None:
    def body(b: Builder, x: core_programs.Handle) -> list[core_programs.Handle]:
        first = do(b, "tanh", x, name="h")
        return [do(b, "tanh", first, name="h"), do(b, "exp", x, name="v0"), do(b, "exp", x)]

    text = show(single("f", {"x": vector()}, body))
    assert "h: f64[n] = tanh(x)" in text
    assert "h_1: f64[n] = tanh(h)" in text
    assert "v0: f64[n] = exp(x)" in text
    assert "v1: f64[n] = exp(x)" in text


def test_equal_programs_print_equally() -> None:
    for make in core_programs.PROGRAMS.values():
        assert show(make().module) == show(make().module)


@pytest.mark.parametrize(
    ("value", "ty", "text"),
    [
        (1, PY_INT, "1"), (1.5, PY_FLOAT, "1.5"), (float("nan"), PY_FLOAT, "float(nan)"),
        (float("-inf"), PY_FLOAT, "float(-inf)"), (0.1, TensorType(f32), "f32(0.1)"),
        (True, types.PY_BOOL, "True"), (True, TensorType(types.bool_), "bool(True)"),
        (1 - 2j, types.PY_COMPLEX, "complex(1.0, -2.0)"),
        (1j, TensorType(types.c64), "c64(0.0, 1.0)"), (3, TensorType(types.u8), "u8(3)"),
    ],
)
def test_constants_tell_their_type(value: complex, ty: TensorType, text: str) -> None:
    block = Block((), (constant(value, ty),))
    assert show(block) == f"return {text}"


def test_python_objects_are_shown_without_addresses() -> None:
    values = (None, "a\nb", (1, "x"), UNSET, ..., np, float, print, core_programs, object())
    text = show(Block((), tuple(Const(v) for v in values)))
    assert "0x" not in text
    assert text.startswith(
        "return None, 'a\\nb', (1, 'x'), unset, Ellipsis, <module numpy>, <class builtins.float>"
    )


def test_untyped_programs_are_shown() -> None:
    x, y = Var("x"), Var(TEMPORARY)
    lets = (
        Let((y,), PyCall("binary", (x, Const(2)), Attrs(op="+"))),
        Let((), PyCall("set_item", (x, Const("key"), y))),
    )
    loop = Loop((Var("t"),), (y,), Block((), (Const(None),)), iterable=x, item=Var("item"))
    out = Var("t")
    body = Block((*lets, Let((out,), loop)), (out,))
    assert show(Function("f", (x,), body)) == (
        "def @f(x) {\n"
        "  v0 = py.binary(x, 2, op='+')\n"
        "  py.set_item(x, 'key', v0)\n"
        "  t_1 = loop (t = v0) for item in x {\n"
        "    next None\n"
        "  }\n"
        "  return t_1\n"
        "}"
    )


def test_kernels_are_shown_after_the_function_that_calls_them() -> None:
    ty = vector()
    kernel = function("chain", {"a": ty}, lambda b, a: [do(b, "tanh", a) * 2.0])
    other = vector()
    x = Var("x", other)
    first, second = Var(TEMPORARY, other), Var(TEMPORARY, other)
    lets = (
        Let((first,), KernelCall(kernel, (x,), other.shape)),
        Let((second,), KernelCall(kernel, (first,), other.shape)),
    )
    main = Function("f", (x,), Block(lets, (second,)), tuple(types.type_symbols(other)))
    text = show(Module({"f": main}, "f"))
    assert text.count("kernel @chain[n](a: f64[n])") == 1
    assert "v0: f64[n] = kernel @chain(x)[n]" in text
    assert "v1: f64[n] = kernel @chain(v0)[n]" in text


def test_derivative_requests_are_shown() -> None:
    x, y, g = (Var(name, TensorType(f64)) for name in "xyg")
    body = Block((Let((y, g), Vjp("loss", (x,), (constant(1.0),), (0,), (0,))),), (g,))
    text = show(Function("f", (x,), body))
    assert "y: f64[], g: f64[] = vjp @loss(x) seeds (0: 1.0) wrt (0)" in text
    body = Block((Let((y, g), Jvp("loss", (x,), (constant(1.0),), (0,), (0,))),), (g,))
    text = show(Function("f", (x,), body))
    assert "y: f64[], g: f64[] = jvp @loss(x) seeds (0: 1.0) wanted (0)" in text


def test_long_programs_do_not_recurse() -> None:
    def body(b: Builder, x: core_programs.Handle) -> list[core_programs.Handle]:
        for _ in range(5000):
            x = x + 1.0
        return [x]

    assert show(single("f", {"x": vector()}, body)).count("\n") == 5002
