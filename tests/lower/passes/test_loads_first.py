"""Loads before what is computed of them."""

from __future__ import annotations

from pyrelay.ir.types import f32, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    Compute,
    Literal,
    Load,
    Local,
    Parameter,
    Store,
)
from pyrelay.lower.passes.loads_first import MOST, loads_first

A, B = Parameter(ARRAY, 0, f32), Parameter(ARRAY, 1, f32)


def test_loads_and_their_indices_come_first_up_to_a_store() -> None:
    item, place, x, y, z, w, late = (
        Local(i64), Local(i64), Local(f32), Local(f32), Local(f32), Local(f32), Local(f32)
    )
    load_x = Load(x, A, item, parallel=True)
    tanh = Compute(y, "tanh", (x,))
    index = Compute(place, "add", (item, Literal(1, i64)))
    load_z = Load(z, B, place, parallel=True)
    add = Compute(w, "add", (y, z))
    store = Store(A, item, w, parallel=True)
    after = Load(late, A, place, parallel=True)
    body = (load_x, tanh, index, load_z, add, store, after)
    assert loads_first(body) == ((load_x, index, load_z, tanh, add, store, after), 3)


def test_what_an_index_hangs_on_stays_before_it() -> None:
    item, x, place, y = Local(i64), Local(i64), Local(i64), Local(f32)
    first = Load(x, Parameter(ARRAY, 2, i64), item, parallel=True)
    index = Compute(place, "multiply", (x, Literal(2, i64)))
    second = Load(y, A, place, parallel=True)
    body = (first, index, second, Store(B, item, y, parallel=True))
    assert loads_first(body) == (body, 3)


def test_no_more_than_registers_hold() -> None:
    item = Local(i64)
    values = [Local(f32) for _ in range(MOST + 5)]
    sums = [Local(f32) for _ in values]
    body = tuple(
        s for x, y in zip(values, sums, strict=True)
        for s in (Load(x, A, item, parallel=True), Compute(y, "tanh", (x,)))
    )
    found, count = loads_first(body)
    assert count == MOST
    assert all(isinstance(s, Load) for s in found[:MOST])
    assert sum(isinstance(s, Load) for s in found[MOST:]) == 5
    assert loads_first(body[1:2]) == (body[1:2], 0)
