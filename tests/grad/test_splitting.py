"""Programs that pull back, split into what runs before cotangents are known and what runs after."""

from __future__ import annotations

import numpy as np

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.grad.expand import expand
from pyrelay.grad.splitting import split
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_INT, TensorType
from pyrelay.ir.verify import verify
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.inline import inline
from tests.grad.checking import function, matrix, op, vector

SYMBOL = Symbol("n")
N = dims.of(SYMBOL)


def pulled_back(f, wrt, seeds=1):
    """A module of f's results, then cotangents of its arguments `wrt`, by seeds behind these."""
    builder = Builder()
    given = tuple(Var(p.name, p.type) for p in f.params)
    types_out = [r.type for r in f.body.results]
    own = tuple(Var("seed", ty) for ty in types_out[:seeds])
    extents = tuple(map(dims.of, f.dims))
    request = Vjp(f.name, given, own, tuple(range(seeds)), tuple(wrt), extents)
    outs = builder.bind(request, [*types_out, *(f.params[k].type for k in wrt)])
    main = Function("main", (*given, *own), builder.block(outs), f.dims)
    module = expand(Module({"main": main, f.name: f}, "main"))
    return dce(cse(inline(module)))


def run_halves(halves, args, seeds, count):
    """The results of the forward half, then those of the backward half."""
    verify(halves.forward, "grad")
    verify(halves.backward, "grad")
    results = interpret(halves.forward, args)
    given = iter(results[count:])
    residuals = [next(given) if k is None else args[k] for k in halves.residuals]
    return results[:count], interpret(halves.backward, [*residuals, *seeds])


def test_the_halves_give_what_the_whole_program_gives():
    def body(b, x, w):
        y = op("tanh", op("matmul", x, w, transpose_a=False, transpose_b=False))
        return op("sum", y * y, axes=(0,), keepdims=False)

    module = pulled_back(function("f", [matrix(4, N), matrix(N, N)], body, [SYMBOL]), [0, 1])
    x, w, seed = np.linspace(0, 1, 12).reshape(4, 3), np.eye(3) / 2, np.array([1.0, 2.0, 3.0])
    halves = split(module, 1, [1, 2])
    (value, *rest), found = run_halves(halves, [x, w], [seed], 3)
    wanted = interpret(module, [x, w, seed])
    assert not any(rest)
    for a, b in zip((value, *found), wanted, strict=True):
        np.testing.assert_allclose(a, b)


def test_parameters_that_the_caller_keeps_are_not_given_back():
    def body(b, x, w):
        return op("exp", x) * w

    module = pulled_back(function("f", [vector(N), vector(N)], body, [SYMBOL]), [0])
    given = split(module, 1, [1])
    kept = split(module, 1, [1], (0, 1))
    assert len(given.forward.main.body.results) == len(kept.forward.main.body.results) + 1
    assert sorted(kept.residuals, key=str) == [1, None]
    x = np.array([0.1, 0.2])
    for halves in (given, kept):
        _, (slope,) = run_halves(halves, [x, x + 1], [x], 2)
        np.testing.assert_allclose(slope, np.exp(x) * (x + 1) * x)


def test_what_is_made_of_nothing_is_made_where_it_is_read():
    def body(b, x):
        zeros = b.full(0.0, (N,), types.f64)
        return op("sin", x) + op("index", x, b.handle(0), axes=(0,)) + zeros

    module = pulled_back(function("f", [vector(N)], body, [SYMBOL]), [0])
    halves = split(module, 1, [1], (0,))
    assert len(halves.residuals) == 1  # the cosine: no zeros for the sum of two cotangents
    assert len(halves.backward.main.params) == 2


def test_extents_that_no_argument_tells_are_residuals():
    def body(b, x, n):
        _, (extent,) = b.call(OPS["as_extent"], n, name="m")
        rows = op("broadcast_to", op("expand_dims", op("exp", x), axes=(0,)), shape=(extent, 3))
        return op("sum", rows * rows, axes=(0,), keepdims=False)

    module = pulled_back(function("f", [vector(3), PY_INT], body), [0])
    halves = split(module, 1, [1])
    x = np.array([0.1, 0.2, 0.3])
    _, (slope,) = run_halves(halves, [x, 5], [np.ones(3)], 2)
    np.testing.assert_allclose(slope, 10 * np.exp(2 * x))
    assert PY_INT in [p.type for p in halves.backward.main.params]


def test_a_program_whose_backward_half_reads_a_tape_is_not_split():
    def body(b, x):
        (out,) = b.counted(
            b.handle(5), [x], lambda inner, i, carried: [op("exp", carried[0])],
            test=lambda inner, carried: carried[0] < 10.0,
        )
        return out

    ty = TensorType(types.f64)
    module = pulled_back(function("f", [ty], body), [0])
    assert split(module, 1, [1]) is None
