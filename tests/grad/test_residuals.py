"""What a backward block saves and what it repeats."""

from __future__ import annotations

import numpy as np

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.errors import SourceText, Span
from pyrelay.grad.expand import expand
from pyrelay.grad.residuals import invariant_lets, live_lets, select
from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import OpCall, Var
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType
from pyrelay.ir.walk import nested_lets
from tests.grad.checking import F64, check, derived, function, op, op_names, program, vector


def chosen(write, needed, leaves=(F64,)):
    """Names of saved variables and of repeated ops; `write` returns handles by name."""
    builder = Builder()
    inputs = [Var(f"in{k}", ty) for k, ty in enumerate(leaves)]
    named = write(*map(builder.handle, inputs))
    names = {h.atom: name for name, h in named.items()}
    names.update({v: v.name for v in inputs})
    found = select(builder.lets, [named[n].atom for n in needed], inputs)
    return [names[v] for v in found.saved], [let.rhs.op.name for let in found.repeated]


def test_a_chain_of_cheap_ops_is_repeated_from_one_saved_value():
    def write(x):
        y = x * 2.0
        z = y + 1.0
        return {"y": y, "z": z, "w": z * y}

    assert chosen(write, ["y", "z", "w"]) == (["y"], ["add", "multiply"])


def test_one_needed_value_is_saved_rather_than_two_that_it_comes_from():
    def write(x, y):
        return {"s": op("sin", x) * op("exp", y)}

    assert chosen(write, ["s"], (F64, F64)) == (["s"], [])


def test_the_smaller_of_two_equivalent_values_is_saved():
    def write(x):
        wide = b_cast(x, types.f64)
        return {"wide": wide, "sum": wide + 1.0}

    def b_cast(x, dtype):
        return x.builder.handle(x.builder.cast(x, dtype))

    narrow = TensorType(types.f32, (8,))
    saved, repeated = chosen(write, ["wide", "sum"], (narrow,))
    assert saved == ["in0"]
    assert repeated == ["cast", "add"]


def test_an_expensive_result_is_saved_and_what_follows_from_it_is_repeated():
    def write(x):
        e = op("exp", x)
        return {"e": e, "twice": e * 2.0}

    assert chosen(write, ["twice", "e"]) == (["e"], ["multiply"])


def test_what_a_loop_does_not_change_is_found():
    builder = Builder()
    outer, carried = Var("a", F64), Var("c", F64)
    fixed = op("exp", builder.handle(outer))
    op("sin", fixed)
    moving = builder.handle(carried) * fixed
    op("sin", moving)
    found = [let.rhs.op.name for let in builder.lets if let in invariant_lets(
        builder.lets, [carried], ())]
    assert found == ["exp", "sin"]


def test_what_no_result_needs_is_removed():
    builder = Builder()
    x = builder.handle(Var("x", F64))
    op("exp", x)
    y = op("sin", x)
    assert [let.rhs.op.name for let in live_lets(builder.lets, [y.atom], Contents())] == ["sin"]


def test_checks_are_not_repeated_in_the_backward_pass():
    def body(b, n, x):
        def step(b, i, v):
            at = op("check_index", i - 1, size=4, axis=0)
            return [v[0] * op("sin", op("index", b.handle(x), at, axes=(0,)))]

        (y,) = b.counted(n, [b.handle(np.float64(1.0))], step)
        return y

    module = program(function("f", [PY_INT, vector(4)], body))
    check(module, [3, np.array([0.3, 0.8, -0.4, 1.1])])
    expanded = expand(derived(module, "f", (1,), "g"))
    assert op_names(expanded).count("check_index") == 1
    saved = [
        let.rhs.attrs["type"] for f in expanded.functions.values() for let in nested_lets(f.body)
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "undef"
    ]
    assert saved
    assert all(ty.dtype.is_float for ty in saved), "the position is computed again, not saved"


def test_python_numbers_go_through_loops_and_branches():
    def body(b, n, x):
        def step(b, i, v):
            return b.cond(
                b.handle(i) < 2,
                lambda b: [op("divide", v[0], op("exp", v[0])), v[0]],
                lambda b: [op("power", v[0], 1.5), v[1] * x],
            )

        y, z = b.counted(n, [x, x], step)
        return b.handle(b.cast(y * z, types.f64))

    module = program(function("f", [PY_INT, PY_FLOAT], body))
    check(module, [4, 0.8], tolerance=1e-5)


def test_backward_code_points_at_the_line_it_differentiates():
    text = SourceText("model.py", "a\nb\nc\n")
    builder, x = Builder(), Var("x", F64)
    spans = [Span(text, line, 0, line, 1) for line in (1, 2)]
    with builder.at(spans[0]):
        y = op("sin", builder.handle(x))
    with builder.at(spans[1]):
        z = op("exp", y) * y
    f = function("f", [F64], lambda b, x: x)
    f = type(f)("f", (x,), builder.block([z]), ())
    expanded = expand(derived(program(f), "f", (0,), "g"))
    found = {
        let.rhs.op.name: let.span for let in nested_lets(expanded.functions["f.vjp"].body)
        if isinstance(let.rhs, OpCall)
    }
    assert found["cos"] is spans[0]
    assert found["add"] is spans[1]
