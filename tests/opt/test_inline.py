"""Calls become bodies, but for recursion and large bodies that many share."""

from __future__ import annotations

from typing import Any

import numpy as np
from core_programs import PROGRAMS, call, do, function, while_
from passes import after, assert_same_runs, ops

from pyrelay.ir.nodes import Module
from pyrelay.ir.types import PY_FLOAT, PY_INT
from pyrelay.opt.inline import inline, recursive_functions


def _chain(count: int, size: int, calls: int) -> Module:
    """f0 calls f1 `calls` times, f1 calls f2, ...; the last has `size` ops."""

    def last(b: Any, x: Any) -> Any:
        for _ in range(size):
            x = x * 1.5
        return [x]

    def caller(name: str) -> Any:
        def body(b: Any, x: Any) -> Any:
            for _ in range(calls):
                (x,) = call(b, name, [x], [PY_FLOAT])
            return [x]

        return body

    functions = {f"f{count}": function(f"f{count}", {"x": PY_FLOAT}, last)}
    for k in reversed(range(count)):
        functions[f"f{k}"] = function(f"f{k}", {"x": PY_FLOAT}, caller(f"f{k + 1}"))
    return Module(functions, "f0")


def test_calls_of_calls_become_one_body() -> None:
    before = _chain(4, 3, 2)
    module = after(before, inline)
    assert set(module.functions) == {"f0"}
    assert ops(module) == {"multiply": 3 * 2**4}
    assert_same_runs(before, module, (1.25,))


def test_a_deep_chain_of_calls_is_no_deep_recursion_of_ours() -> None:
    module = inline(_chain(3000, 1, 1))
    assert ops(module) == {"multiply": 1}


def test_bodies_never_grow_exponentially() -> None:
    before = _chain(30, 10, 2)
    module = after(before, inline)
    assert sum(ops(module).values()) < 10_000
    assert len(module.functions) < 30


def test_large_bodies_with_loops_are_copied_into_loops_only() -> None:
    def above(b: Any, x: Any) -> Any:
        return do(b, "greater", x, 0.5)

    def halved(b: Any, x: Any) -> Any:
        for _ in range(40):
            x = x * 0.9
        return [x]

    def search(b: Any, x: Any) -> Any:
        return list(while_(b, [x], above, halved))

    def around(b: Any, x: Any) -> Any:
        return list(call(b, "search", [x], [PY_FLOAT]))

    def main(b: Any, x: Any) -> Any:
        for _ in range(5):
            (x,) = call(b, "search", [x], [PY_FLOAT])
        return list(while_(b, [x], above, around_called))

    def around_called(b: Any, x: Any) -> Any:
        return list(call(b, "around", [x], [PY_FLOAT]))

    before = Module(
        {"main": function("main", {"x": PY_FLOAT}, main),
         "around": function("around", {"x": PY_FLOAT}, around),
         "search": function("search", {"x": PY_FLOAT}, search)}, "main",
    )  # fmt: skip
    module = after(before, inline)
    assert set(module.functions) == {"main", "search"}
    assert ops(module) == {"multiply": 2 * 40, "greater": 3, "loop": 3, "call": 5}
    assert_same_runs(before, module, (1.25,))


def test_recursive_functions_stay_and_what_they_call_is_inlined() -> None:
    def helper(b: Any, n: Any) -> Any:
        return [n - 1]

    def loops(b: Any, n: Any) -> Any:
        (m,) = call(b, "helper", [n], [PY_INT])
        return list(call(b, "loops", [m], [PY_INT]))

    module = Module(
        {"loops": function("loops", {"n": PY_INT}, loops),
         "helper": function("helper", {"n": PY_INT}, helper)}, "loops",
    )  # fmt: skip
    assert recursive_functions(module) == {"loops"}
    small = after(module, inline)
    assert set(small.functions) == {"loops"}
    assert ops(small) == {"subtract": 1, "call": 1}


def test_members_of_cycles_are_found_and_their_callers_are_none() -> None:
    edges = {"a": "b", "b": "c", "c": "bd", "d": "e", "e": "", "self": "self"}

    def caller(names: str) -> Any:
        def body(b: Any, x: Any) -> Any:
            for name in ["self"] if names == "self" else list(names):
                (x,) = call(b, name, [x], [PY_FLOAT])
            return [x]

        return body

    functions = {n: function(n, {"x": PY_FLOAT}, caller(c)) for n, c in edges.items()}
    assert recursive_functions(Module(functions, "a")) == {"b", "c", "self"}


def test_extents_and_effects_of_a_callee_come_with_its_body() -> None:
    for name in ("results_with_their_own_extents", "helper_that_writes", "mutual_recursion"):
        made = PROGRAMS[name]()
        module = after(made.module, inline)
        for args in made.arguments:
            assert_same_runs(made.module, module, args)


def test_every_inlined_body_has_variables_of_its_own() -> None:
    def double(b: Any, x: Any) -> Any:
        return [do(b, "add", x, x)]

    def main(b: Any, x: Any) -> Any:
        (y,) = call(b, "double", [x], [PY_FLOAT])
        (z,) = call(b, "double", [y], [PY_FLOAT])
        return [y, z]

    module = Module(
        {"main": function("main", {"x": PY_FLOAT}, main),
         "double": function("double", {"x": PY_FLOAT}, double)}, "main",
    )  # fmt: skip
    small = after(module, inline)
    outs = [v for let in small.main.body.lets for v in let.outs]
    assert len(set(outs)) == len(outs) == 2
    assert_same_runs(module, small, (np.float64(3.0).item(),))
