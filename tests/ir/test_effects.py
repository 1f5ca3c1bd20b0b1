"""What nodes do besides computing."""

from __future__ import annotations

from typing import Any

import pytest
from core_programs import PROGRAMS, do, single

from pyrelay.ir import effects
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.nodes import Block, FnCall, If, KernelCall, Module, OpCall, PyCall, Var
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import (
    PY_BOOL,
    PY_COMPLEX,
    PY_FLOAT,
    PY_INT,
    TensorType,
    f32,
    f64,
    i8,
    i64,
)

F64, I64 = TensorType(f64), TensorType(i64)


def of(name: str, *operands: Any, **attrs: Any) -> Effect:
    b = Builder()
    variables = [Var("x", o) if isinstance(o, TensorType) else constant(o) for o in operands]
    do(b, name, *variables, **attrs)
    return effects.effect_of(b.lets[-1].rhs)


@pytest.mark.parametrize(
    ("name", "operands", "raises"),
    [
        ("add", (PY_INT, PY_INT), True), ("add", (PY_FLOAT, PY_FLOAT), False),
        ("add", (I64, I64), False), ("multiply", (PY_INT, 2), True),
        ("negative", (PY_INT,), True), ("divide", (PY_FLOAT, PY_FLOAT), True),
        ("divide", (PY_FLOAT, 2.0), False), ("divide", (F64, F64), False),
        ("floor_divide", (PY_INT, 2), False), ("floor_divide", (PY_INT, -1), True),
        ("remainder", (PY_INT, PY_INT), True), ("power", (PY_FLOAT, 2.0), True),
        ("power", (I64, 2), False), ("power", (I64, I64), True), ("power", (F64, F64), False),
        ("left_shift", (PY_INT, 1), True), ("right_shift", (PY_INT, 1), False),
        ("right_shift", (PY_INT, PY_INT), True), ("less", (PY_INT, PY_INT), False),
        ("multiply", (PY_COMPLEX, PY_COMPLEX), False), ("exp", (PY_FLOAT,), False),
    ],
)
def test_arithmetic_of_python_numbers_raises_where_python_may(
    name: str, operands: tuple[Any, ...], raises: bool
) -> None:
    assert of(name, *operands) is (Effect.RAISES if raises else Effect.PURE)


def test_functions_of_math_raise() -> None:
    assert of("exp", PY_FLOAT, strict=True) is Effect.RAISES


def test_conversions_to_int_may_raise() -> None:
    assert of("cast", PY_FLOAT, dtype=i64, weak=True) is Effect.RAISES
    assert of("cast", F64, dtype=i64, weak=False) is Effect.PURE
    assert of("cast", PY_INT, dtype=i8, weak=False) is Effect.RAISES
    assert of("cast", PY_INT, dtype=f64, weak=True) is Effect.PURE
    assert of("cast", PY_INT, dtype=f32, weak=False) is Effect.PURE


def test_records_state_their_own_effect() -> None:
    assert of("check_index", PY_INT, size=3, axis=0) is Effect.RAISES


def test_blocks_and_kernels_count() -> None:
    flag, x = Var("flag", PY_BOOL), Var("x", PY_INT)
    b = Builder()
    doubled = do(b, "add", x, x)
    raising, harmless = b.block([doubled]), Block((), (x,))
    assert effects.effect_of(If(flag, harmless, raising)) is Effect.RAISES
    assert effects.effect_of(If(flag, harmless, harmless)) is Effect.PURE
    kernel = single("k", {"x": PY_INT}, lambda c, y: [y + y]).main
    assert effects.effect_of(KernelCall(kernel, (x,))) is Effect.RAISES


def test_calls_may_raise_unless_told_otherwise() -> None:
    node = FnCall("g", ())
    assert effects.effect_of(node) is Effect.RAISES
    assert effects.effect_of(node, lambda name: Effect.PURE) is Effect.PURE
    assert effects.effect_of(PyCall("truth", ())) is Effect.HOST


def test_effects_of_functions_are_a_fixpoint_over_calls() -> None:
    module = PROGRAMS["mutual_recursion"]().module
    found = effects.of_functions(module)
    assert found == {"even": Effect.RAISES, "odd": Effect.RAISES}  # n - 1 may leave 64 bits
    pure = single("g", {"x": F64}, lambda b, x: [x + x])
    caller = single("f", {"x": F64}, lambda b, x: list(b.bind(FnCall("g", (x.atom,)), [F64])))
    found = effects.of_functions(Module({**pure.functions, **caller.functions}, "f"))
    assert found == {"g": Effect.PURE, "f": Effect.PURE}


def test_removable_lets_are_pure() -> None:
    b = Builder()
    do(b, "add", Var("x", F64), Var("y", F64))
    do(b, "add", Var("x", PY_INT), Var("y", PY_INT))
    assert [effects.is_pure(let) for let in b.lets] == [True, False]
    assert OpCall(OPS["extent"], ()).op.effect is Effect.PURE


def test_what_a_call_does_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    call = OpCall(OPS["add"], (constant(1), Var("n", PY_INT)))
    assert effects.effect_of(call) is Effect.RAISES
    monkeypatch.setattr(effects, "_OVERFLOWING", frozenset())
    assert effects.effect_of(call) is Effect.RAISES
