"""Code for many instances computes what the code for one computes for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Attrs, Const, Function, Let, Module, OpCall, Var
from pyrelay.ir.op import OPS, Sample
from pyrelay.ir.types import TensorType
from pyrelay.ir.verify import verify
from pyrelay.opt.batching import _RULES, Batch, is_batchable

COUNT = 3
OPERATORS = sorted(
    {*_RULES, "add", "where", "tanh", "less", "cast", "clip"} - {"iota", "undef", "extent"}
)


def operands(sample: Sample, op: str) -> list[Any]:
    """NumPy values of an op's own promoted types."""
    found = [np.asarray(a) for a in sample.args]
    if op in ("matmul", "add", "less"):
        common = np.result_type(*found)
        found = [a.astype(common) for a in found]
    return found


def instances(value: Any, k: int) -> Any:
    """The operand of one instance: integers (positions) stay what they are."""
    return value + value.dtype.type(k) / 4 if value.dtype.kind == "f" else value


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("all_differ", [True, False])
def test_every_rule_agrees_with_one_instance_after_the_other(name: str, all_differ: bool) -> None:
    checked = 0
    for sample in OPS[name].samples:
        values = operands(sample, name)
        kinds = [types.from_numpy(v.dtype) for v in values]
        if None in kinds or any(0 in v.shape for v in values):
            continue
        one = tuple(
            Var("x", TensorType(k, v.shape)) for k, v in zip(kinds, values, strict=True) if k
        )
        try:
            outs = OPS[name].relation(tuple(v.type for v in one), sample.attrs)
        except Exception:
            continue  # a sample for promoted operands
        let = Let(tuple(Var("y", t) for t in outs), OpCall(OPS[name], one, Attrs(**sample.attrs)))
        if not is_batchable(let):
            continue
        differ = [all_differ or k == 0 for k in range(len(one))]
        wanted = [
            OPS[name].numpy(
                *(instances(v, k) if d else v for v, d in zip(values, differ, strict=True)),
                **sample.attrs,
            )
            for k in range(COUNT)
        ]
        got = batched(let, values, differ)
        if got is None:
            continue
        np.testing.assert_allclose(got, np.stack(wanted), rtol=1e-12)
        checked += 1
    assert checked or (name in ("index_update", "index_add", "pad") and all_differ)


def batched(let: Let, values: list[Any], differ: list[bool]) -> Any:
    """What the code for all instances gives; None if there is none."""
    from pyrelay.opt.batching import Cannot

    n = Symbol("n")
    builder, params, args = Builder(), [], []
    batch = Batch(builder, dims.of(n))
    for var, value, differs in zip(let.rhs.args, values, differ, strict=True):  # type: ignore[union-attr]
        shape = (dims.of(n), *value.shape) if differs else value.shape
        param = Var("p", TensorType(var.type.dtype, shape))  # type: ignore[union-attr]
        params.append(param)
        if differs:
            batch.bind(var, builder.handle(param))  # type: ignore[arg-type]
            args.append(np.stack([instances(value, k) for k in range(COUNT)]))
        else:
            batch.values[var] = builder.handle(param)  # type: ignore[index]
            args.append(value if value.shape else value[()])
    length = Var("length", TensorType(types.i64, (dims.of(n),)))
    try:
        batch.let(let)
    except Cannot:
        return None
    result = batch.all(let.outs[0])
    body = builder.block([result])
    module = Module({"f": Function("f", (length, *params), body, (n,))}, "f")
    verify(module, "optimise")
    return interpret(module, [np.zeros(COUNT, np.int64), *args])[0]


def test_what_is_the_same_for_all_instances_is_computed_once() -> None:
    builder = Builder()
    x = Var("x", TensorType(types.f64, (4,)))
    y = Var("y", TensorType(types.f64, (4,)))
    batch = Batch(builder, 3)
    batch.let(Let((y,), OpCall(OPS["tanh"], (x,))))
    assert builder.lets[0].outs[0].type == y.type
    assert y not in batch.differing
    assert batch.one(Const(2.0, types.PY_FLOAT)).type == types.PY_FLOAT
