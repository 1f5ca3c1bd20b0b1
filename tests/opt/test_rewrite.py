"""The rewriter replaces what its rule says, keeps the rest, and shows the rule what is in sight."""

from __future__ import annotations

from typing import Any

import numpy as np
from core_programs import PROGRAMS, single
from passes import after, assert_same_runs, core, lets, ops

from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Const, Let, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_FLOAT
from pyrelay.ir.verify import verify
from pyrelay.ir.walk import nested_lets
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite_module


def _keep(let: Let, builder: Builder, scope: Scope) -> Replacement:
    return None


def test_a_rule_that_keeps_everything_keeps_every_program_as_it_is() -> None:
    for make in PROGRAMS.values():
        module = make().module
        assert rewrite_module(module, _keep) is module


def test_a_rule_is_asked_once_about_each_let() -> None:
    for make in PROGRAMS.values():
        module, asked = make().module, list[Let]()

        def rule(let: Let, builder: Builder, scope: Scope, asked: list[Let] = asked) -> Replacement:
            asked.append(let)
            copied = let.rhs if isinstance(let.rhs, OpCall) and not let.dims else None
            if copied is None:
                return None
            return [h.atom for h in builder.bind(copied, [v.type for v in let.outs])]  # type: ignore[misc]

        rewrite_module(module, rule)
        count = sum(1 for f in module.functions.values() for _ in nested_lets(f.body))
        assert len(asked) == count


def test_what_a_rule_emits_and_takes_back_leaves_no_trace() -> None:
    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        for out in let.outs:
            builder.call(OPS["add"], out, 1.0)
        return None

    module = PROGRAMS["nested_loops"]().module
    assert rewrite_module(module, rule) is module


def test_operands_are_replaced_before_a_rule_sees_them() -> None:
    def zero_sines(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "sin":
            return (Const(0.0, PY_FLOAT),)
        seen.extend(a.value for a in getattr(let.rhs, "args", ()) if isinstance(a, Const))
        return None

    seen: list[Any] = []
    module = single(
        "f", {"x": PY_FLOAT},
        lambda b, x: [OPS["cos"](OPS["sin"](x)) + OPS["sin"](OPS["sin"](x))],
    )  # fmt: skip
    rewritten = rewrite_module(module, zero_sines)
    verify(rewritten, "optimise")
    assert ops(rewritten) == {"cos": 1, "add": 1}
    assert seen == [0.0, 0.0]


def test_a_replacement_inside_blocks_reaches_results_tests_and_carried_values() -> None:
    def doubles(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "multiply":
            x, y = let.rhs.args
            if isinstance(y, Const) and y.value == 2.0:
                return (builder.call(OPS["add"], x, x).atom,)
        return None

    def program(x: Any, n: Any) -> Any:
        while x * 2.0 < 50.0:
            x = x * 2.0
            if n > 2:
                x = x * 2.0
        return x

    before = core(program, 1.5, 3)
    module = after(before, lambda m: rewrite_module(m, doubles))
    assert not ops(module)["multiply"]
    assert_same_runs(before, module, (1.5, 3))
    assert_same_runs(before, module, (1.5, 0))


def test_a_scope_holds_what_dominates_and_nothing_else() -> None:
    seen: dict[str, tuple[int, int]] = {}

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if isinstance(let.rhs, OpCall) and let.rhs.op.name in ("sin", "cos", "tanh"):
            inner = [d for d in scope.definitions.values() if isinstance(d.rhs, OpCall)]
            named = {d.rhs.op.name for d in inner if isinstance(d.rhs, OpCall)}
            seen[let.rhs.op.name] = (len(scope.loops), len(named & {"exp", "log", "sqrt"}))
        return None

    def program(x: Any, n: Any) -> Any:
        x = np.exp(x)
        for _ in range(n):
            x = np.sin(np.log(x))
        if n > 2:
            x = np.sqrt(x)
            x = np.cos(x)
        return np.tanh(x)

    rewrite_module(core(program, np.ones(3), 4), rule)
    assert seen == {"sin": (1, 2), "cos": (0, 2), "tanh": (0, 1)}


def test_extents_that_a_replacement_decides_reach_types_attributes_and_branches() -> None:
    def program(x: Any, n: Any) -> Any:
        y = x[:n] + 1.0
        if n > 1:
            y = y * y
        for _ in range(2):
            y = y + y[0]
        return y

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "as_extent":
            return Replaced((), (3,))
        return None

    before = core(program, np.arange(5.0), 3)
    assert ops(before)["as_extent"] == 1
    module = rewrite_module(before, rule)
    assert ops(module)["as_extent"] == 0
    assert not [v for let in lets(module) for v in let.outs if types.type_symbols(v.type)]
    assert {"if", "loop"} <= set(ops(module))
    assert_same_runs(before, module, (np.arange(5.0), 3))


def test_a_long_block_is_rewritten_without_recursion() -> None:
    def body(b: Builder, x: Any) -> list[Any]:
        for _ in range(5_000):
            x = x * 1.5
        return [x]

    module = single("f", {"x": PY_FLOAT}, body)
    assert ops(rewrite_module(module, _keep)) == {"multiply": 5_000}
