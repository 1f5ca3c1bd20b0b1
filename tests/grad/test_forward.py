"""Forward mode: every op against its rule, and control flow against reverse mode.

A derivative J is one linear map: for all u and v, <u, J v> as forward mode computes it is
<J' u, v> as reverse mode does, whose rules are compared with finite differences elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pyrelay import hvp
from pyrelay.grad.expand import expand
from pyrelay.ir import dims, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Jvp, Loop, Module, OpCall, Var, Vjp
from pyrelay.ir.op import OPS, Op
from pyrelay.ir.types import TensorType
from pyrelay.ir.verify import verify
from pyrelay.pipeline import lowered
from tests.infer.running import inferred
from tests.ops.calling import program, samples


def _floating(types: Sequence[Any]) -> tuple[int, ...]:
    return tuple(
        k for k, ty in enumerate(types) if isinstance(ty, TensorType) and ty.dtype.is_float
    )


def both_ways(module: Module) -> Module:
    """An entry that takes the arguments of the module's, tangents, and cotangents; it returns the
    results, their tangents, and the cotangents of the arguments."""
    source = module.main
    extents = tuple(map(dims.of, source.dims))
    builder = Builder()
    params = tuple(Var(p.name, p.type) for p in source.params)
    given, wanted = _floating([p.type for p in params]), _floating(source.result_types)
    tangents = tuple(Var("v", params[k].type) for k in given)
    cotangents = tuple(Var("u", source.result_types[k]) for k in wanted)
    results = list(source.result_types)
    forward = builder.bind(
        Jvp(source.name, params, tangents, given, wanted, extents),
        [*results, *(results[k] for k in wanted)],  # type: ignore[list-item]
    )
    backward = builder.bind(
        Vjp(source.name, params, cotangents, wanted, given, extents),
        [*results, *(params[k].type for k in given)],  # type: ignore[list-item]
    )
    body = builder.block((*forward, *backward[len(results) :]))
    entry = Function("both", (*params, *tangents, *cotangents), body, source.dims)
    return Module({**module.functions, "both": entry}, "both")


def _like(value: Any, rng: np.random.Generator) -> Any:
    array = np.asarray(value)
    drawn = rng.normal(size=array.shape)
    if array.dtype.kind == "c":
        drawn = drawn + 1j * rng.normal(size=array.shape)
    made = drawn.astype(array.dtype)[()]
    return made.item() if isinstance(value, (float, complex)) and made.ndim == 0 and not (
        isinstance(value, np.generic)
    ) else made


def agree(module: Module, args: Sequence[Any], rtol: float = 1e-9) -> None:
    """<u, J v> is the same by both modes, and the values are the function's own."""
    rng = np.random.default_rng(len(args))
    expected = interpret(module, [np.copy(a) if isinstance(a, np.ndarray) else a for a in args])
    made = both_ways(module)
    expanded = expand(made)
    verify(expanded, "grad")
    results = [p.type for p in module.main.body.results]
    given, wanted = _floating([p.type for p in module.main.params]), _floating(results)
    tangents = [_like(args[k], rng) for k in given]
    cotangents = [_like(expected[k], rng) for k in wanted]
    found = interpret(expanded, (*args, *tangents, *cotangents))
    count = len(results)
    for value, same in zip(expected, found, strict=False):
        np.testing.assert_array_equal(value, same)
    moved, owed = found[count : count + len(wanted)], found[count + len(wanted) :]
    assert [np.shape(m) for m in moved] == [np.shape(expected[k]) for k in wanted]
    left = [np.real(np.sum(u * m)) for u, m in zip(cotangents, moved, strict=True)]
    right = [np.real(np.sum(v * o)) for v, o in zip(tangents, owed, strict=True)]
    scale = max(1.0, *(abs(x) for x in (*left, *right)))
    np.testing.assert_allclose(sum(left), sum(right), rtol=0, atol=rtol * scale)
    assert any(np.any(m != 0) for m in moved) == any(np.any(o != 0) for o in owed)


_BY_OP: dict[str, list[Any]] = {}
for _given in samples(differentiable=True):
    _BY_OP.setdefault(_given.values[0].name, []).append(_given.values[1])


@pytest.mark.parametrize("name", _BY_OP)
def test_the_tangent_of_an_op_is_the_transpose_of_its_rule(name: str) -> None:
    op: Op = OPS[name]
    for sample in _BY_OP[name]:
        single = any(getattr(np.asarray(a), "dtype", None) in (np.float32, np.complex64)
                     for a in sample.args)
        module = program(
            sample.args,
            lambda build, *xs, s=sample: build.call(op, *xs, **s.attrs),  # type: ignore[misc]
        )
        agree(module, sample.args, 1e-4 if single else 1e-9)


def roots(x):
    total = 0.0
    for i in range(len(x)):
        y = x[i]
        while abs(y * y - x[i]) > 1e-9:
            y = 0.5 * (y + x[i] / y)
        total = total + y * x[i]
    return total


def test_forward_over_reverse_through_while_loops_leaves_no_tape_to_the_plan() -> None:
    """Tangents lie on the tape of what they belong to, so that it becomes an array as that does."""

    def program(x, v):
        return hvp(roots, x, v)

    x, v = np.array([2.0, 3.0, 1.5]), np.array([1.0, -1.0, 0.5])
    module = inferred(program, (x, v)).module
    (found,) = interpret(lowered(module, "grad"), (x, v))
    np.testing.assert_allclose(found, 0.75 * v / np.sqrt(x), rtol=1e-6)
    fused = lowered(module, "fuse")
    lets = [let for f in fused.functions.values() for let in walk.nested_lets(f.body)]
    names = {let.rhs.op.name for let in lets if isinstance(let.rhs, OpCall)}
    assert not any(name.startswith("tape") for name in names)
    assert not any(isinstance(let.rhs, Loop) for let in lets)  # all loops are kernels
