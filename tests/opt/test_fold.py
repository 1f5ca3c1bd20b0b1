"""Folding computes what is constant, resolves known branches and empty loops, keeps what raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core_programs import single
from passes import after, assert_same_runs, core, ops, run

from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Block, Const, Function, If, Let, Module, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_BOOL, PY_FLOAT, PY_INT, f32
from pyrelay.opt.fold import fold
from pyrelay.opt.inline import inline


def _constants(name: str, *values: Any, **attrs: Any) -> Module:
    """An op on constants, as a program without parameters."""
    return single("f", {}, lambda b: [b.call(OPS[name], *map(b.atom, values), **attrs)])


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("add", (2, 3), 5), ("multiply", (0.1, 3.0), 0.1 * 3.0), ("floor_divide", (-7, 2), -4),
        ("greater", (2, 1), True), ("sin", (0.5,), np.sin(0.5)),
        ("add", (np.float32(0.1), np.float32(0.2)), np.float32(0.1) + np.float32(0.2)),
    ],
)  # fmt: skip
def test_scalar_ops_on_constants_are_computed_with_their_own_type(
    name: str, values: tuple[Any, ...], wanted: Any
) -> None:
    module = after(_constants(name, *values), fold)
    assert not ops(module)
    (result,) = run(module, ())
    assert result == wanted
    assert type(result) is type(run(_constants(name, *values), ())[0])


@pytest.mark.parametrize(
    ("name", "values"), [("floor_divide", (1, 0)), ("multiply", (2**62, 4)), ("divide", (1.0, 0.0))]
)
def test_an_op_that_raises_for_its_constants_stays_to_raise(
    name: str, values: tuple[Any, ...]
) -> None:
    before = _constants(name, *values)
    module = after(before, fold)
    assert ops(module) == {name: 1}
    assert_same_runs(before, module, ())


def test_constants_reach_their_uses_through_calls_branches_and_loops() -> None:
    def inner(n: Any, flag: Any) -> Any:
        return n * 2 if flag else n

    def program(x: Any) -> Any:
        total = x
        for _ in range(inner(3, False) - 3):
            total = total * x
        return total + inner(4, True)

    before = core(program, 1.5)
    module = after(before, inline, fold)
    assert set(ops(module)) <= {"add", "cast"}
    assert_same_runs(before, module, (1.5,))


def test_the_known_branch_takes_the_place_of_the_if_with_its_effects() -> None:
    b = Builder()
    x = Var("x", PY_FLOAT)
    out = Var("y", PY_FLOAT)
    then, orelse = b.nested(), b.nested()
    kept = then.block([OPS["divide"](Handle(then, x), 0.0)])
    other = orelse.block([OPS["add"](Handle(orelse, x), 1.0)])
    b.lets.append(Let((out,), If(Const(True, PY_BOOL), kept, other)))
    before = Module({"f": Function("f", (x,), Block(tuple(b.lets), (out,)))}, "f")
    module = after(before, fold)
    assert ops(module) == {"divide": 1}
    assert_same_runs(before, module, (1.0,))


def test_extents_known_at_compile_time_become_numbers() -> None:
    module = after(_constants("extent", size=4), fold)
    assert not ops(module)
    assert run(module, ()) == (4,)
    (result,) = module.main.body.results
    assert result.type == PY_INT


def test_arrays_and_placeholders_are_left_alone() -> None:
    def program() -> Any:
        return np.zeros(3, np.float32) + np.float32(1.0)

    module = after(core(program), fold)
    assert ops(module)["broadcast_to"] == 1
    assert run(module, ())[0].dtype == f32.numpy
