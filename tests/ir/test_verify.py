"""The verifier finds each kind of broken promise, and shows where it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import core_programs
import pytest
from core_programs import do, function, single, vector

from pyrelay.errors import SourceText, Span
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import (
    Attrs,
    Block,
    Const,
    FnCall,
    Function,
    If,
    Jvp,
    KernelCall,
    Let,
    Loop,
    Module,
    OpCall,
    PyCall,
    Var,
    Vjp,
)
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_BOOL, PY_INT, TensorType, f32, f64
from pyrelay.ir.verify import VerifyError, verify

SCALAR = TensorType(f64)
ADD = OPS["add"]


def of(params: Sequence[Var], lets: Sequence[Let], results: Sequence[Any], **more: Any) -> Module:
    body = Block(tuple(lets), tuple(results))
    return Module({"f": Function("f", tuple(params), body, **more)}, "f")


def fault(module: Module, stage: str = "optimise") -> str:
    with pytest.raises(VerifyError) as found:
        verify(module, stage)
    return str(found.value)


def test_a_variable_out_of_scope_is_found_and_shown() -> None:
    x, stranger, y = Var("x", SCALAR), Var("stranger", SCALAR), Var("y", SCALAR)
    let = Let((y,), OpCall(ADD, (x, stranger)))
    text = fault(of((x,), (let,), (y,)))
    assert text.startswith("after optimise, in @f: stranger is not in scope")
    assert ">   y: f64[] = add(x, stranger)" in text
    assert "return y" in text


def test_the_error_points_at_the_user_s_line() -> None:
    span = Span(SourceText("model.py", ("y = x + z",)), 1, 4, 1, 9)
    x, y = Var("x", SCALAR), Var("y", SCALAR)
    module = of((x,), (Let((y,), OpCall(ADD, (x, Var("z", SCALAR))), span=span),), (y,))
    assert "1 | y = x + z" in fault(module)


def test_what_a_branch_binds_is_not_visible_outside() -> None:
    flag, inner, out = Var("flag", PY_BOOL), Var("inner", PY_INT), Var("out", PY_INT)
    then = Block((Let((inner,), OpCall(ADD, (constant(1), constant(2)))),), (inner,))
    node = If(flag, then, Block((), (constant(0),)))
    assert "inner is not in scope" in fault(of((flag,), (Let((out,), node),), (inner,)))


def test_binding_twice_is_found() -> None:
    x, y = Var("x", SCALAR), Var("y", SCALAR)
    lets = [Let((y,), OpCall(ADD, (x, x)))] * 2
    assert "y is bound twice" in fault(of((x,), lets, (y,)))


def test_symbols_have_a_scope_too() -> None:
    ty = vector()
    x = Var("x", ty)
    assert "the symbol n is not in scope" in fault(of((x,), (), (x,)))
    (symbol,) = types.type_symbols(ty)
    assert "the symbol n is bound twice" in fault(of((), (), (), dims=(symbol, symbol)))


def test_every_variable_of_a_typed_program_has_a_type() -> None:
    x = Var("x")
    assert "x has no type" in fault(of((x,), (), (x,)))
    verify(of((x,), (), (x,)), "parse")


@pytest.mark.parametrize("value", [(1, SCALAR), (1.0, PY_INT), ("text", None)])
def test_constants_agree_with_their_type(value: tuple[Any, Any]) -> None:
    assert "is no scalar of type" in fault(of((), (), (Const(*value),)))


def test_the_relation_of_every_op_is_run_again() -> None:
    x, y = Var("x", SCALAR), Var("y", TensorType(f32))
    text = fault(of((x,), (Let((y,), OpCall(ADD, (x, x))),), (y,)))
    assert "the result of add, position 0: f64[] where f32[] is declared" in text
    z = Var("z", TensorType(f32))
    text = fault(of((x, z), (Let((y,), OpCall(ADD, (x, z))),), (y,)))
    assert "add: cannot combine element types f64 and f32" in text


@pytest.mark.parametrize(
    ("stage", "node"),
    [
        ("infer", PyCall("truth", ())), ("grad", Vjp("f", (), (), (), ())),
        ("grad", Jvp("f", (), (), (), ())),
        ("optimise", KernelCall(Function("k", (), Block((), ())), ())),
    ],
)
def test_each_stage_has_its_own_nodes(stage: str, node: Any) -> None:
    module = of((), (Let((), node),), ())
    assert f"{type(node).__name__} does not exist after {stage}" in fault(module, stage)


def test_a_condition_is_a_bool() -> None:
    k, out = Var("k", PY_INT), Var("out", PY_INT)
    node = If(k, Block((), (k,)), Block((), (k,)))
    assert "the condition is int, not a bool" in fault(of((k,), (Let((out,), node),), (out,)))


def test_branches_give_what_is_declared() -> None:
    flag, out = Var("flag", PY_BOOL), Var("out", PY_INT)
    node = If(flag, Block((), (constant(1),)), Block((), (constant(1.0),)))
    text = fault(of((flag,), (Let((out,), node),), (out,)))
    assert "results of the else branch, position 0: float where int is declared" in text
    node = If(flag, Block((), (constant(1),)), Block((), ()))
    assert "0 values for 1 places" in fault(of((flag,), (Let((out,), node),), (out,)))


def test_a_loop_keeps_the_types_of_what_it_carries() -> None:
    c, out = Var("c", PY_INT), Var("out", PY_INT)

    def looping(init: Any, following: Any, **more: Any) -> str:
        loop = Loop((c,), (init,), Block((), (following,)), **more)
        return fault(of((), (Let((out,), loop),), (out,)))

    count = constant(3)
    assert "initial values of the loop, position 0: float" in looping(constant(1.0), c, count=count)
    assert "next values of the loop, position 0: float" in looping(
        constant(1), constant(1.0), count=count
    )
    assert "the count is float" in looping(constant(1), c, count=constant(1.0))
    assert "the index is not an int" in looping(
        constant(1), c, count=count, index=Var("i", SCALAR)
    )
    assert "the condition is int" in looping(constant(1), c, exits=True)


def test_calls_agree_with_the_function() -> None:
    callee = function("g", {"x": SCALAR}, lambda b, x: [x])
    out = Var("out", SCALAR)

    def calling(args: tuple[Any, ...], name: str = "g", extents: tuple[Any, ...] = ()) -> str:
        module = of((), (Let((out,), FnCall(name, args, extents)),), (out,))
        return fault(Module({**module.functions, "g": callee}, "f"))

    good = constant(1.0, SCALAR)
    assert "@h does not exist" in calling((good,), "h")
    assert "0 values for 1 places" in calling(())
    assert "int where f64[] is declared" in calling((constant(1),))
    assert "@g takes 0 dims" in calling((good,), extents=(3,))


def test_extents_of_calls_are_substituted() -> None:
    ty = vector("m")
    callee = function("g", {"x": ty}, lambda b, x: [do(b, "concatenate", x, x, axis=0)])
    x, out = Var("x", TensorType(f64, (3,))), Var("out", TensorType(f64, (6,)))
    node = FnCall("g", (x,), (3,))
    main = of((x,), (Let((out,), node),), (out,))
    verify(Module({**main.functions, "g": callee}, "f"), "optimise")
    wrong = Var("out", TensorType(f64, (5,)))
    main = of((x,), (Let((wrong,), node),), (wrong,))
    assert "f64[6] where f64[5]" in fault(Module({**main.functions, "g": callee}, "f"))


def test_an_oracle_may_decide_what_structure_leaves_open() -> None:
    x, y = Var("x", vector("n")), Var("y", vector("m"))
    symbols = tuple(s for v in (x, y) for s in types.type_symbols(v.type))
    out = Var("out", x.type)
    module = of((x, y), (Let((out,), OpCall(ADD, (x, y))),), (out,), dims=symbols)
    assert "cannot combine" in fault(module)
    verify(module, "optimise", equal=lambda a, b: True)


def test_derivative_requests_agree_with_the_function() -> None:
    callee = function("g", {"x": SCALAR}, lambda b, x: [x * x])
    x, y, g = Var("x", SCALAR), Var("y", SCALAR), Var("g", TensorType(f32))
    node = Vjp("g", (x,), (constant(1.0, SCALAR),), (0,), (0,))
    main = of((x,), (Let((y, g), node),), (y, g))
    text = fault(Module({**main.functions, "g": callee}, "f"), "infer")
    assert "results of @g, position 1: f64[] where f32[] is declared" in text
    main = of((x,), (Let((y, g), Jvp("g", (x,), (x,), (0,), (0,))),), (y, g))
    text = fault(Module({**main.functions, "g": callee}, "f"), "infer")
    assert "results of @g, position 1: f64[] where f32[] is declared" in text
    node = Jvp("g", (x,), (constant(1, types.PY_INT),), (0,), (0,))
    main = of((x,), (Let((y, z := Var("z", SCALAR)), node),), (y, z))
    text = fault(Module({**main.functions, "g": callee}, "f"), "infer")
    assert "seeds, position 0: int where f64[] is declared" in text


def test_kernels_are_checked_inside() -> None:
    x, y = Var("x", SCALAR), Var("y", SCALAR)
    kernel = Function("k", (), Block((), (x,)))
    module = of((x,), (Let((y,), KernelCall(kernel, ())),), (y,))
    assert "in @k: x is not in scope" in fault(module, "fuse")


def test_the_entry_exists_under_its_name() -> None:
    function_ = function("g", {}, lambda b: [])
    assert "the entry @f does not exist" in fault(Module({"g": function_}, "f"))
    assert "@g is filed under 'f'" in fault(Module({"f": function_}, "f"))


def test_bound_extents_are_counted() -> None:
    module = single("f", {"n": PY_INT}, lambda b, n: [n])
    n = module.main.params[0]
    let = Let((), OpCall(OPS["as_extent"], (n,)))
    assert "as_extent binds 1 symbols" in fault(of((n,), (let,), (n,)))
    out = Var("out", PY_INT)
    node = If(constant(True), Block((), (n,), (3,)), Block((), (n,), (4,)))
    text = fault(of((n,), (Let((out,), node),), (out,)))
    assert "a branch ends with one extent per symbol" in text


def test_straight_line_code_of_any_length_is_checked() -> None:
    def body(b: Builder, x: Any) -> list[Any]:
        for _ in range(3000):
            x = do(b, "multiply", x, x)
        return [x]

    verify(single("f", {"x": vector()}, body), "optimise")


def test_symbols_in_attributes_must_be_in_scope() -> None:
    out = Var("v", PY_INT)
    attrs = Attrs(size=dims.of(Symbol("hidden")))
    module = of((), (Let((out,), OpCall(OPS["extent"], (), attrs)),), (out,))
    assert "the symbol hidden is not in scope" in fault(module)


def test_corpus_programs_verify_after_each_typed_stage() -> None:
    for make in core_programs.PROGRAMS.values():
        for stage in ("infer", "grad", "optimise", "fuse"):
            verify(make().module, stage)
