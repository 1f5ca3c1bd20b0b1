"""Elements that a thread of a GPU does together: which accesses, and that results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f32, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    Assign,
    Body,
    Compute,
    Fail,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Parameter,
    Store,
)
from pyrelay.lower.passes.packs import Packs, packs
from pyrelay.lower.text.emit_cuda import emit
from tests.devices.running_kernels import emulate, needs_compiler

ON = "cuda_emulator"
A, B = Parameter(ARRAY, 0, f32), Parameter(ARRAY, 1, f64)
N, OUT = Parameter(EXTENT, 0, i64), Parameter(OUTPUT, 0, f32)
BEGIN, END, INDEX = Local(i64), Local(i64), Local(i64)
ZERO = Literal(0, i64)


def kernel(*body: Any, before: Body = ()) -> Kernel:
    loop = For(INDEX, BEGIN, END, body)
    return Kernel((A, B, N, OUT), BEGIN, END, (*before, loop), 1, 1)


def found(*body: Any) -> Packs:
    made = packs(kernel(*body))
    assert made is not None
    return made


def load(array: Parameter = A, index: Any = INDEX) -> Load:
    return Load(Local(array.dtype), array, index, True)


def store(value: Any, index: Any = INDEX, array: Parameter = OUT) -> Store:
    return Store(array, index, value, True)


def test_a_pack_has_16_bytes_of_the_narrowest_array_and_at_most_32_of_the_widest() -> None:
    x, y = load(), load(B)
    alone, mixed = found(x, store(x.out)), found(x, y, store(x.out))
    assert (alone.count, mixed.count) == (4, 4)
    assert alone.arrays == (A, OUT)
    assert mixed.arrays == (A, B, OUT)
    assert found(y, store(Literal(1.0, f64), array=B)).count == 2


def test_accesses_at_other_places_and_under_conditions_are_done_one_by_one() -> None:
    x, cond, v, turned = load(), Local(bool_), Local(f32, True), Local(i64)
    inside, elsewhere = load(), load(index=turned)
    made = found(
        x, Compute(cond, "greater", (x.out, Literal(0.0, f32))),
        Compute(turned, "subtract", (END, INDEX)), elsewhere,
        If(cond, (inside, Assign(v, inside.out)), (Assign(v, elsewhere.out),)), store(v),
    )  # fmt: skip
    assert list(made.loads) == [x]


def test_what_a_thread_cannot_do_for_neighbours_is_left_alone() -> None:
    x, flag = load(), Literal(False, bool_)
    other, again = Local(i64), load(OUT)
    for body in (
        (x, store(x.out, ZERO)),
        (x, If(flag, (store(x.out),))),
        (x, Fail(flag, 0), store(x.out)),
        (x, For(Local(i64), ZERO, ZERO, ()), store(x.out)),
        (x, store(x.out), again),
        (load(OUT, other), store(Literal(1.0, f32))),
        (Load(Local(f32), A, INDEX, False), Store(OUT, INDEX, Literal(1.0, f32), False)),
    ):
        assert packs(kernel(*body)) is None
    assert packs(kernel(x, store(x.out), before=(store(Literal(1.0, f32), ZERO),))) is None


@needs_compiler
def test_heads_tails_and_addresses_that_do_not_fit_together() -> None:
    x, y = load(), Local(f32)
    text = emit(kernel(x, Compute(y, "add", (x.out, Literal(1.0, f32))), store(y)))
    assert "#define PACK 4" in text
    memory, results = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    b = np.zeros(1)
    for start, target, n in ((0, 0, 64), (3, 3, 50), (1, 5, 9), (1, 2, 40), (2, 2, 1), (0, 4, 60)):
        results[:] = -1.0
        a, out = memory[start : start + n], results[target : target + n]
        emulate([text], (a, b, n, out), items=[n])
        np.testing.assert_array_equal(out, a + 1.0)
        assert (results[:target] == -1.0).all()
        assert (results[target + n :] == -1.0).all()


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 7, 64, 1003])
def test_programs_of_elements_of_every_width(n: int) -> None:
    def mixed(x: Any, y: Any, k: Any, flags: Any, z: Any) -> Any:
        x += y
        return np.where(flags, x, -y), k * 2 + flags, z * 1j, x[::-1] - y, (y > 0) & flags

    rng = np.random.default_rng(n)
    args = (
        rng.normal(size=n).astype(np.float32), rng.normal(size=n),
        rng.integers(-9, 9, n).astype(np.int8), rng.normal(size=n) > 0,
        rng.normal(size=n).astype(np.complex64),
    )  # fmt: skip
    args = (args[0].astype(np.float64), *args[1:])
    mine, plain = [a.copy() for a in args], [a.copy() for a in args]
    got, wanted = pyrelay.jit(mixed, device=ON)(*mine), mixed(*plain)
    for a, b in zip((*got, mine[0]), (*wanted, plain[0]), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)
