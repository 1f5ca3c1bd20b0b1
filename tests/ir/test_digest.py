"""The digest: equal exactly for alpha-equal programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core_programs import PROGRAMS, Handle, do, single, vector

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.digest import digest
from pyrelay.ir.nodes import Block, Const, Function, Module, Var
from pyrelay.ir.types import PY_INT, TensorType, f32, f64


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_made_twice_have_one_digest(name: str) -> None:
    first, second = PROGRAMS[name]().module, PROGRAMS[name]().module
    assert digest(first) == digest(second)
    assert digest(first.main) == digest(second.main)


def test_different_programs_have_different_digests() -> None:
    found = {digest(make().module) for make in PROGRAMS.values()}
    assert len(found) == len(PROGRAMS)


def test_renaming_everything_keeps_the_digest() -> None:
    for make in PROGRAMS.values():
        module = make().module
        functions = {}
        for name, function in module.functions.items():
            names = walk.Renaming()
            symbols = tuple(map(names.symbol, function.dims))
            params = tuple(map(names.var, function.params))
            body = walk.copy_block(function.body, names)
            functions[name] = Function(name, params, body, symbols)
        assert digest(Module(functions, module.entry)) == digest(module)


def test_names_of_functions_do_not_count() -> None:
    module = PROGRAMS["mutual_recursion"]().module
    swapped = PROGRAMS["mutual_recursion"]().module
    assert digest(module) == digest(Module(dict(reversed(swapped.functions.items())), "even"))
    assert digest(module) != digest(Module(module.functions, "odd"))


def _constant(value: Any, ty: TensorType | None = None) -> str:
    return digest(Function("f", (), Block((), (constant(value, ty),))))


def test_constants_count_by_type_and_bits() -> None:
    values = [1, 1.0, True, 1 + 0j, np.float32(1), np.float64(1), np.int32(1), 0.0, -0.0, np.nan]
    assert len({_constant(v) for v in values}) == len(values)
    assert _constant(float("nan")) == _constant(float("nan"))


def test_attributes_count() -> None:
    def with_axis(axis: int) -> str:
        ty = TensorType(f64, (2, 2))
        return digest(single("f", {"x": ty}, lambda b, x: [
            do(b, "cumsum", x, axis=axis, reverse=False)
        ]))

    assert with_axis(0) != with_axis(1)


def test_the_age_of_symbols_does_not_count() -> None:
    def made(swap: bool) -> str:
        first, second = dims.fresh("a"), dims.fresh("b")
        n, m = (second, first) if swap else (first, second)
        x, y = Var("x", TensorType(f32, (n,))), Var("y", TensorType(f32, (m,)))
        b = Builder()
        size = b.extent(n * m + 2 * m + dims.minimum(n, m))
        symbols = tuple(s for v in (x, y) for s in types.type_symbols(v.type))
        return digest(Function("f", (x, y), b.block([size]), symbols))

    assert made(False) == made(True)


def test_which_symbol_is_used_counts() -> None:
    def made(which: int) -> str:
        n, m = dims.fresh("n"), dims.fresh("m")

        def body(b: Builder, x: Handle, y: Handle) -> list[Handle]:
            return [b.extent((n, m)[which])]

        return digest(single("f", {"x": TensorType(f64, (n,)), "y": TensorType(f64, (m,))}, body))

    assert made(0) != made(1)


def test_only_what_the_entry_reaches_counts() -> None:
    module = single("f", {"n": PY_INT}, lambda b, n: [n + 1])
    more = Module({**module.functions, **PROGRAMS["fibonacci"]().module.functions}, "f")
    assert digest(module) == digest(more)


def test_objects_without_a_meaning_elsewhere_have_no_digest() -> None:
    with pytest.raises(TypeError, match="has no digest"):
        digest(Function("f", (), Block((), (Const(object()),))))
    assert digest(Function("f", (), Block((), (Const(np.tanh),)))) is not None


def test_a_wider_vector_is_another_program() -> None:
    assert digest(single("f", {"x": vector(dtype=f32)}, lambda b, x: [x])) != digest(
        single("f", {"x": vector(dtype=f64)}, lambda b, x: [x])
    )
