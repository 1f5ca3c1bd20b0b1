"""Small Core programs written with the builder, and arguments for them: what the passes, the
interpreter and the planner are tried on without a frontend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Origin, Symbol
from pyrelay.ir.nodes import FnCall, Function, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_BOOL, PY_FLOAT, PY_INT, TAPE, TensorType, f32, f64, i64


@dataclass(frozen=True)
class Program:
    """A module, several argument lists for it, and which results replace arguments."""

    module: Module
    arguments: tuple[tuple[Any, ...], ...]
    mutated: tuple[tuple[int, int], ...] = ()


PROGRAMS: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    """Enter a program in `PROGRAMS`."""
    PROGRAMS[make.__name__] = make
    return make


def do(b: Builder, name: str, /, *args: Any, **attrs: Any) -> Any:
    """Emit an op by name."""
    return b.call(OPS[name], *args, **attrs)


def function(
    name: str, params: dict[str, Any], body: Callable[..., Sequence[Any]],
    ends: Sequence[Any] = (),
) -> Function:
    """A function whose symbols are those of its parameters' types."""
    variables = [Var(n, ty) for n, ty in params.items()]
    b = Builder()
    results = body(b, *(b.handle(v) for v in variables))
    symbols = dict.fromkeys(s for v in variables for s in types.type_symbols(v.type))
    return Function(name, tuple(variables), b.block(results, ends), tuple(symbols))


def single(name: str, params: dict[str, Any], body: Callable[..., Sequence[Any]]) -> Module:
    """A module of one function."""
    return Module({name: function(name, params, body)}, name)


def while_(
    b: Builder, init: Sequence[Any], test: Callable[..., Any], body: Callable[..., Sequence[Any]]
) -> tuple[Handle, ...]:
    """A loop that goes on while `test(builder, *carried)` is true."""
    atoms = tuple(b.atom(a) for a in init)
    carried = tuple(Var("c", a.type) for a in atoms)
    t, c = b.nested(), b.nested()
    condition = t.block([test(t, *(t.handle(v) for v in carried))])
    following = c.block(body(c, *(c.handle(v) for v in carried)))
    loop = Loop(carried, atoms, following, condition)
    return b.bind(loop, [v.type for v in carried])


def call(b: Builder, name: str, args: Sequence[Any], outs: Sequence[Any], extents: Any = ()) -> Any:
    """Call a function by name."""
    node = FnCall(name, tuple(b.atom(a) for a in args), tuple(extents))
    return b.bind(node, outs)


def vector(name: str = "n", dtype: Any = f64) -> TensorType:
    """A vector of a fresh extent."""
    return TensorType(dtype, (dims.fresh(name),))


# -- arithmetic ---------------------------------------------------------------------------------


@program
def elementwise() -> Program:
    """tanh(x * w + b) * exp(-x * x), one kernel if fused."""
    ty = vector(dtype=f32)

    def body(b: Builder, x: Handle, w: Handle, c: Handle) -> list[Handle]:
        return [do(b, "tanh", x * w + c) * do(b, "exp", -(x * x))]

    x = np.linspace(-2, 2, 7, dtype="f4")
    return Program(
        single("f", {"x": ty, "w": ty, "b": TensorType(f32)}, body),
        ((x, x[::-1].copy(), np.float32(0.5)), (x[:0], x[:0], np.float32(1))),
    )


@program
def scalars() -> Program:
    """Python and NumPy scalars of several types, results of both kinds."""

    def body(b: Builder, k: Handle, x: Handle, z: Handle) -> list[Any]:
        half = k // 2 + 1
        return [half, half * x, do(b, "sqrt", z), b.cast(k, f32), do(b, "less", x, 0.5), z * z]

    params = {"k": PY_INT, "x": PY_FLOAT, "z": TensorType(types.c128)}
    return Program(
        single("f", params, body), ((7, 0.25, np.complex128(3 + 4j)), (-8, 4.0, np.complex128(1j)))
    )


@program
def reductions() -> Program:
    """Sums along both axes and of everything, one of them used by the next."""
    m, n = dims.fresh("m"), dims.fresh("n")

    def body(b: Builder, x: Handle) -> list[Handle]:
        rows = do(b, "sum", x, axes=(1,), keepdims=True)
        share = x / rows
        total = do(b, "sum", share, axes=(0, 1), keepdims=False)
        return [share, do(b, "max", x, axes=(0,), keepdims=False), total]

    x = np.arange(1.0, 13.0).reshape(3, 4)
    return Program(single("f", {"x": TensorType(f64, (m, n))}, body), ((x,), (x[:1, :2].copy(),)))


@program
def product_of_matrices() -> Program:
    """relu(x @ w.T + b) @ v, with a batch of x."""
    k, m, n = (dims.fresh(c) for c in "kmn")

    def body(b: Builder, x: Handle, w: Handle, c: Handle) -> list[Handle]:
        hidden = do(b, "matmul", x, w, transpose_a=False, transpose_b=True) + c
        return [do(b, "maximum", hidden, 0.0)]

    params = {
        "x": TensorType(f32, (2, m, k)), "w": TensorType(f32, (n, k)), "c": TensorType(f32, (n,)),
    }
    rng = np.random.default_rng(0)
    sizes = ((3, 4, 5), (1, 300, 17))
    return Program(
        single("f", params, body),
        tuple(
            (
                rng.standard_normal((2, a, c), "f4"), rng.standard_normal((d, c), "f4"),
                rng.standard_normal(d, "f4"),
            )
            for a, c, d in sizes
        ),
    )


# -- branches -----------------------------------------------------------------------------------


@program
def branch_over_arrays() -> Program:
    """One branch returns an argument, the other a fresh array; the argument is read afterwards."""
    ty = vector()

    def body(b: Builder, x: Handle, flag: Handle) -> list[Handle]:
        (y,) = b.cond(flag, lambda t: [x], lambda e: [do(e, "exp", x)])
        return [y, x + y]

    x = np.array([0.5, -1.0, 2.0])
    return Program(single("f", {"x": ty, "flag": PY_BOOL}, body), ((x, True), (x, False)))


@program
def branches_free_what_they_do_not_use() -> Program:
    """A temporary dies in one branch, is updated in the other."""
    ty = vector()

    def body(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        y = do(b, "exp", x)

        def updated(t: Builder) -> list[Handle]:
            return [do(t, "index_update", y, b.cast(k, f64), 0, axes=(0,))]

        (z,) = b.cond(do(b, "greater", k, 0), updated, lambda e: [e.handle(x) * 2.0])
        return [z]

    x = np.array([0.5, -1.0, 2.0])
    return Program(single("f", {"x": ty, "k": PY_INT}, body), ((x, 1), (x, 0)))


@program
def branch_with_own_extents() -> Program:
    """The branches give arrays of different extents, which the If binds."""
    ty = vector()
    n = ty.shape[0]

    def body(b: Builder, x: Handle, flag: Handle) -> list[Any]:
        blocks = []
        for size in (n, 2 * n):
            t = b.nested()
            y = do(t, "iota", size=size, dtype=f64)
            blocks.append(t.block([y], [size]))
        symbol = Symbol("k", Origin.RUNTIME)
        out = TensorType(f64, (dims.of(symbol),))
        node = If(b.atom(flag), *blocks)
        (y,) = b.bind(node, [out], dims=(symbol,))
        return [do(b, "sum", y + 1.0, axes=(0,), keepdims=False), b.extent(dims.of(symbol))]

    x = np.zeros(3)
    return Program(single("f", {"x": ty, "flag": PY_BOOL}, body), ((x, True), (x, False)))


# -- loops --------------------------------------------------------------------------------------


@program
def power_by_while() -> Program:
    """The example of the printer: a loop with a test over an array and a counter."""
    ty = vector(dtype=f32)

    def body(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        y, _ = while_(
            b, [x, k], lambda t, y, i: do(t, "greater", i, 0), lambda c, y, i: [y * x, i - 1]
        )
        return [y]

    x = np.array([1.0, 2.0, 3.0], "f4")
    return Program(single("power", {"x": ty, "k": PY_INT}, body), ((x, 3), (x, 0), (x[:0], 2)))


@program
def swapped_buffers() -> Program:
    """u, v = v + 1, u: the buffers change places at every back edge."""
    ty = vector()

    def body(b: Builder, x: Handle, y: Handle, k: Handle) -> list[Handle]:
        return list(b.counted(k, [x, y], lambda c, i, uv: [uv[1] + 1.0, uv[0]]))

    x, y = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    params = {"x": ty, "y": TensorType(f64, ty.shape), "k": PY_INT}
    return Program(single("f", params, body), ((x, y, 5), (x, y, 0)))


@program
def the_same_array_carried_twice() -> Program:
    """Both carried values begin as one array and end as one array."""
    ty = vector()

    def body(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        def step(c: Builder, i: Handle, uv: Any) -> list[Handle]:
            first = do(c, "index_add", uv[0], 1.0, 0, axes=(0,))
            return [first, first]

        return list(b.counted(k, [x, x], step))

    return Program(single("f", {"x": ty, "k": PY_INT}, body), ((np.zeros(3), 4),))


@program
def elements_written_in_a_loop() -> Program:
    """x[i] = x[i - 1] + i with a checked index."""
    ty = vector()

    def body(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        size = ty.shape[0]

        def step(c: Builder, i: Handle, carried: Any) -> list[Handle]:
            before = do(c, "check_index", i - 1, size=size, axis=0)
            here = do(c, "check_index", i, size=size, axis=0)
            value = do(c, "index", carried[0], before, axes=(0,)) + i
            return [do(c, "index_update", carried[0], value, here, axes=(0,))]

        return list(b.counted(k, [x], step))

    x = np.array([1.0, 2.0, 3.0, 4.0])
    return Program(single("f", {"x": ty, "k": PY_INT}, body), ((x, 4), (x, 0)))


@program
def rows_written_in_a_loop() -> Program:
    """A residual array: row i of an undefined array becomes y, then y changes."""
    ty = vector()
    count = dims.fresh("t")

    def body(b: Builder, x: Handle, like: Handle) -> list[Handle]:
        rows = b.undef(TensorType(f64, (count, *ty.shape)))

        def step(c: Builder, i: Handle, carried: Any) -> list[Handle]:
            y, saved = carried
            saved = do(c, "index_update", saved, y, i, axes=(0,))
            saved = do(c, "index_add", saved, y, i, axes=(0,))
            return [do(c, "tanh", y) + 0.5, saved]

        return list(b.counted(b.extent(count), [x, rows], step))

    params = {"x": ty, "like": TensorType(f64, (count,))}
    x = np.array([1.0, 2.0, 3.0])
    return Program(single("f", params, body), ((x, np.zeros(4)), (x, np.zeros(0))))


@program
def loop_with_exit() -> Program:
    """Leaves when the sum passes a limit; the exit flag is a carried value itself."""
    ty = vector()

    def body(b: Builder, x: Handle, limit: Handle) -> list[Any]:
        atoms = (b.atom(x), b.atom(False), b.atom(0))
        carried = tuple(Var("c", a.type) for a in atoms)
        index = Var("i", PY_INT)
        c = b.nested()
        y, done, steps = (c.handle(v) for v in carried)
        total = do(c, "sum", y, axes=(0,), keepdims=False)
        over = do(c, "greater", total, limit)
        weak = c.cast(over, types.bool_, weak=True)
        block = c.block([done, y * 2.0, weak, steps + 1])
        loop = Loop(
            carried, atoms, block, count=b.atom(20), index=index, exits=True
        )
        return list(b.bind(loop, [v.type for v in carried]))

    x = np.array([1.0, 2.0])
    return Program(single("f", {"x": ty, "limit": PY_FLOAT}, body), ((x, 30.0), (x, 1e30)))


@program
def tested_array_handed_to_the_body() -> Program:
    """while sum(r := x * 0.5) > tol: x = r - 1 (r is handed over, also when the test fails)."""
    ty = vector()

    def body(b: Builder, x: Handle, tol: Handle) -> list[Any]:
        atoms = (b.atom(x),)
        carried = (Var("y", ty),)
        t, c = b.nested(), b.nested()
        r = t.handle(carried[0]) * 0.5
        go_on = do(t, "greater", do(t, "sum", r, axes=(0,), keepdims=False), tol)
        test = t.block([go_on, r])
        handed = (Var("r", ty),)
        following = c.block([c.handle(handed[0]) - 1.0])
        loop = Loop(carried, atoms, following, test, handed)
        return list(b.bind(loop, [ty]))

    x = np.array([100.0, 200.0])
    return Program(single("f", {"x": ty, "tol": PY_FLOAT}, body), ((x, 1.0), (x, 1e9)))


@program
def nested_loops() -> Program:
    """A matrix filled by two loops, with a branch inside."""
    m, n = dims.fresh("m"), dims.fresh("n")

    def body(b: Builder, x: Handle) -> list[Handle]:
        def outer(c: Builder, i: Handle, carried: Any) -> list[Handle]:
            def inner(d: Builder, j: Handle, held: Any) -> list[Handle]:
                old = do(d, "index", held[0], i, j, axes=(0, 1))

                def store(t: Builder) -> list[Handle]:
                    return [do(t, "index_update", held[0], old * i + j, i, j, axes=(0, 1))]

                return list(d.cond(do(d, "less", i, j), store, lambda e: [held[0]]))

            return list(c.counted(c.extent(n), carried, inner))

        return list(b.counted(b.extent(m), [x], outer))

    x = np.arange(12.0).reshape(3, 4)
    return Program(single("f", {"x": TensorType(f64, (m, n))}, body), ((x,),))


@program
def carried_extent() -> Program:
    """An array that grows by its own length each time round."""
    ty = vector()

    def body(b: Builder, x: Handle, k: Handle) -> list[Any]:
        symbol, final = Symbol("m", Origin.RUNTIME), Symbol("m", Origin.RUNTIME)
        carried = (Var("y", TensorType(f64, (dims.of(symbol),))),)
        c = b.nested()
        y = c.handle(carried[0])
        longer = do(c, "concatenate", y, y, axis=0)
        block = c.block([longer], [2 * dims.of(symbol)])
        loop = Loop(
            carried, (b.atom(x),), block, count=b.atom(k), index=Var("i", PY_INT),
            dims=(symbol,), init_dims=ty.shape,
        )
        out = TensorType(f64, (dims.of(final),))
        (y,) = b.bind(loop, [out], dims=(final,))
        return [do(b, "sum", y, axes=(0,), keepdims=False), b.extent(dims.of(final))]

    x = np.array([1.0, 2.0, 3.0])
    return Program(single("f", {"x": ty, "k": PY_INT}, body), ((x, 3), (x, 0)))


# -- calls --------------------------------------------------------------------------------------


@program
def fibonacci() -> Program:
    """Double recursion over a Python int."""

    def body(b: Builder, n: Handle) -> list[Handle]:
        def again(e: Builder) -> list[Handle]:
            (p,) = call(e, "fib", [e.handle(n) - 1], [PY_INT])
            (q,) = call(e, "fib", [e.handle(n) - 2], [PY_INT])
            return [p + q]

        return list(b.cond(do(b, "less", n, 2), lambda t: [n], again))

    return Program(single("fib", {"n": PY_INT}, body), ((10,), (1,)))


@program
def mutual_recursion() -> Program:
    """even(n) = n == 0 or odd(n - 1)."""

    def make(name: str, other: str, base: bool) -> Function:
        def body(b: Builder, n: Handle) -> list[Any]:
            def again(e: Builder) -> Any:
                return call(e, other, [e.handle(n) - 1], [PY_BOOL])

            return list(b.cond(do(b, "equal", n, 0), lambda t: [t.handle(base)], again))

        return function(name, {"n": PY_INT}, body)

    functions = {"even": make("even", "odd", True), "odd": make("odd", "even", False)}
    return Program(Module(functions, "even"), ((7,), (10,)))


@program
def helper_that_writes() -> Program:
    """A helper that stores one element, called in a loop: it takes its array over."""
    ty, other = vector(), vector()

    def store(b: Builder, x: Handle, i: Handle) -> list[Handle]:
        return [do(b, "index_update", x, b.handle(b.cast(i, f64)) * 2.0, i, axes=(0,))]

    def body(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        def step(c: Builder, i: Handle, carried: Any) -> Any:
            return call(c, "store", [carried[0], i], [ty], ty.shape)

        (y,) = b.counted(k, [x], step)
        return [y, y - x]

    functions = {
        "f": function("f", {"x": ty, "k": PY_INT}, body),
        "store": function("store", {"x": other, "i": PY_INT}, store),
    }
    return Program(Module(functions, "f"), ((np.arange(5.0), 3), (np.arange(5.0), 0)))


@program
def recursion_that_returns_its_argument() -> Program:
    """f(x, i) = x if i == 0 else f(x with an element added, i - 1)."""
    ty = vector()

    def body(b: Builder, x: Handle, i: Handle) -> list[Handle]:
        def again(e: Builder) -> Any:
            y = do(e, "index_add", x, 1.0, 0, axes=(0,))
            return call(e, "f", [y, e.handle(i) - 1], [ty], ty.shape)

        return list(b.cond(do(b, "equal", i, 0), lambda t: [x], again))

    return Program(single("f", {"x": ty, "i": PY_INT}, body), ((np.zeros(3), 4), (np.ones(2), 0)))


@program
def results_with_their_own_extents() -> Program:
    """A callee whose result has an extent that only its run tells."""
    symbol = Symbol("k", Origin.RUNTIME)

    def ramp_body(b: Builder, n: Handle) -> list[Any]:
        b.lets.append(_as_extent(b, n, symbol))
        return [do(b, "iota", size=dims.of(symbol), dtype=f64)]

    def body(b: Builder, n: Handle) -> list[Any]:
        bound = Symbol("k", Origin.RUNTIME)
        out = TensorType(f64, (dims.of(bound),))
        node = FnCall("ramp", (b.atom(n),))
        (y,) = b.bind(node, [out], dims=(bound,))
        return [do(b, "sum", y, axes=(0,), keepdims=False), b.extent(dims.of(bound))]

    ramp = function("ramp", {"n": PY_INT}, ramp_body, ends=[dims.of(symbol)])
    main = function("f", {"n": PY_INT}, body)
    return Program(Module({"f": main, "ramp": ramp}, "f"), ((5,), (0,)))


def _as_extent(b: Builder, n: Handle, symbol: Symbol) -> Any:
    return Let((), OpCall(OPS["as_extent"], (b.atom(n),)), (symbol,))


@program
def run_time_extent_at_the_boundary() -> Program:
    """np.arange(n) + 1: the extent of the result is known when the program has run."""
    symbol = Symbol("k", Origin.RUNTIME)

    def body(b: Builder, n: Handle) -> list[Any]:
        b.lets.append(_as_extent(b, n, symbol))
        return [do(b, "iota", size=dims.of(symbol), dtype=f64) + 1.0]

    main = function("f", {"n": PY_INT}, body, ends=[dims.of(symbol)])
    return Program(Module({"f": main}, "f"), ((4,), (0,)))


# -- tapes --------------------------------------------------------------------------------------


@program
def tape_of_everything() -> Program:
    """A while loop pushes an array and a number per iteration, a second loop pops them."""
    ty = vector()

    def body(b: Builder, x: Handle, limit: Handle) -> list[Any]:
        def push(c: Builder, y: Handle, t: Handle, k: Handle) -> list[Handle]:
            t = do(c, "tape_push", t, y)
            return [y * 2.0 + k, do(c, "tape_push", t, k), k + 1]

        def small(t: Builder, y: Handle, tape: Handle, k: Handle) -> Handle:
            return do(t, "less", do(t, "sum", y, axes=(0,), keepdims=False), limit)

        y, tape, count = while_(b, [x, do(b, "tape_new"), 0], small, push)

        def pop(c: Builder, i: Handle, carried: Any) -> list[Handle]:
            tape, total = carried
            tape, k = do(c, "tape_pop", tape, type=PY_INT)
            tape, row = do(c, "tape_pop", tape, type=ty)
            return [tape, total * 0.5 + row * c.cast(k, f64)]

        _, total = b.counted(count, [tape, b.zeros(ty)], pop)
        return [y, total, count]

    x = np.array([1.0, 2.0, 3.0])
    return Program(single("f", {"x": ty, "limit": PY_FLOAT}, body), ((x, 100.0), (x, 0.0)))


@program
def tape_through_recursion() -> Program:
    """One function pushes on its way down, another pops."""

    def down(b: Builder, n: Handle, tape: Handle) -> list[Any]:
        def again(e: Builder) -> Any:
            pushed = do(e, "tape_push", tape, n)
            return call(e, "down", [e.handle(n) - 1, pushed], [TAPE])

        return list(b.cond(do(b, "equal", n, 0), lambda t: [tape], again))

    def body(b: Builder, n: Handle) -> list[Any]:
        (tape,) = call(b, "down", [n, do(b, "tape_new")], [TAPE])

        def pop(c: Builder, i: Handle, carried: Any) -> list[Handle]:
            tape, k = do(c, "tape_pop", carried[0], type=PY_INT)
            return [tape, carried[1] * 2 + k]

        return [b.counted(n, [tape, 0], pop)[1]]

    functions = {
        "f": function("f", {"n": PY_INT}, body),
        "down": function("down", {"n": PY_INT, "tape": TAPE}, down),
    }
    return Program(Module(functions, "f"), ((6,), (0,)))


# -- views, scans, scatters ---------------------------------------------------------------------


@program
def views_share_a_buffer() -> Program:
    """A reshaped view outlives the array's own name, and is then updated."""
    m, n = dims.fresh("m"), dims.fresh("n")

    def body(b: Builder, x: Handle) -> list[Handle]:
        y = do(b, "exp", x)
        flat = do(b, "reshape", y, shape=(m * n,))
        row = do(b, "expand_dims", flat, axes=(0,))
        written = do(b, "index_update", row, 0.5, 0, 0, axes=(0, 1))
        one = do(b, "reshape", do(b, "sum", y, axes=(0, 1), keepdims=True), shape=())
        return [written, do(b, "expand_dims", one, axes=(0,)), one]

    x = np.linspace(0, 1, 6).reshape(2, 3)
    return Program(single("f", {"x": TensorType(f64, (m, n))}, body), ((x,),))


@program
def scans() -> Program:
    """cumsum, cumprod and the linear recurrence, along either axis and from either end."""
    m, n = dims.fresh("m"), dims.fresh("n")

    def body(b: Builder, x: Handle) -> list[Handle]:
        return [
            do(b, "cumsum", x, axis=1, reverse=False),
            do(b, "cumprod", x, axis=0, reverse=True),
            do(b, "linear_scan", x, x + 1.0, axis=0, reverse=False),
        ]

    x = np.arange(6.0).reshape(2, 3)
    return Program(single("f", {"x": TensorType(f64, (m, n))}, body), ((x,), (x[:, :1].copy(),)))


@program
def scatters() -> Program:
    """Repeated and negative positions, and an array that is read afterwards."""
    ty, index = vector(), TensorType(i64, (dims.fresh("k"),))
    m = dims.fresh("m")

    def body(b: Builder, x: Handle, v: Handle, at: Handle, a: Handle) -> list[Handle]:
        added = do(b, "scatter_add", x, v, at, axes=(0,))
        return [added, do(b, "scatter_update", x, v, at, axes=(0,)),
                do(b, "scatter_add", a, v, at, axes=(1,))]

    params = {
        "x": ty, "v": TensorType(f64, index.shape), "at": index,
        "a": TensorType(f64, (m, *ty.shape)),
    }
    x, v, at = np.arange(4.0), np.array([1.0, 2.0, 4.0]), np.array([1, -1, 1])
    return Program(single("f", params, body), ((x, v, at, np.zeros((2, 4))),))


# -- arguments that change ----------------------------------------------------------------------


@program
def argument_written_in_place() -> Program:
    """x[i] = i for the caller to see; the sum goes back as a result."""
    ty = vector()

    def body(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        def step(c: Builder, i: Handle, carried: Any) -> list[Handle]:
            return [do(c, "index_update", carried[0], c.cast(i, f64), i, axes=(0,))]

        (y,) = b.counted(k, [x], step)
        return [do(b, "sum", y, axes=(0,), keepdims=False), y]

    module = single("f", {"x": ty, "k": PY_INT}, body)
    return Program(module, ((np.ones(4), 3), (np.ones(4), 0)), ((0, 1),))


@program
def arguments_exchanged() -> Program:
    """x and y get each other's doubled content, and the sum of both is a result."""
    ty = vector()

    def body(b: Builder, x: Handle, y: Handle, k: Handle) -> list[Handle]:
        u, v = b.counted(k, [x, y], lambda c, i, uv: [uv[1] * 2.0, uv[0] * 2.0])
        return [u, v, u + v]

    params = {"x": ty, "y": TensorType(f64, ty.shape), "k": PY_INT}
    x, y = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    return Program(single("f", params, body), ((x, y, 3), (x, y, 2), (x, y, 0)), ((0, 0), (1, 1)))


@program
def argument_replaced_by_a_fresh_array() -> Program:
    """The new content is not made in the old one: it is copied back."""
    ty = vector()

    def body(b: Builder, x: Handle) -> list[Handle]:
        y = do(b, "slice", x, starts=(ty.shape[0] - 1,), sizes=ty.shape, steps=(-1,))
        return [y, x * 2.0]

    return Program(single("f", {"x": ty}, body), ((np.arange(4.0),),), ((0, 0),))
