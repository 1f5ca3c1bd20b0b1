"""Blocks are reused, released when a run stops half-way, and results live as long as needed."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.runtime.entry import Executable
from pyrelay.devices.runtime.layout import Control, State
from pyrelay.lower.planning.boundary import ArrayResult, ScalarParameter
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import (
    Alloc,
    Binary,
    Free,
    JumpUnless,
    Label,
    LoopNext,
    Plan,
    PlanFunction,
    Raise,
    Return,
    Site,
    Slot,
    Store,
    TapeNew,
    TapePush,
    Unary,
    Zero,
    immediate,
)


def _field(call: Any, field: int) -> int:
    """A field of the idle state of a program's function."""
    control = call.__self__.ctypes.data
    state = ctypes.c_int64.from_address(control + Control.IDLE).value
    return int(ctypes.c_int64.from_address(state + field).value)


FRESH = PlanFunction("fresh", 1, 4, (
    Alloc(1, Slot(0)), Zero(Slot(1), Slot(0)), Return((Slot(1), Slot(0))),
))  # fmt: skip


def _fresh() -> Any:
    plan = Plan((FRESH,), parameters=(ScalarParameter("int"),),
                results=(ArrayResult("uint8", 1),), single=True)  # fmt: skip
    return Executable(encode(plan)).call


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 100, 4096, 5000, 1 << 20, (1 << 22) + 1])
def test_blocks_of_every_size_are_aligned_and_usable_to_their_end(nbytes: int) -> None:
    array = _fresh()(nbytes)
    assert array.ctypes.data % 64 == 0
    array[:] = 255
    assert array.shape == (nbytes,)


@pytest.mark.parametrize("nbytes", [-1, -(2**63), 2**63 - 1, 1 << 51])
def test_impossible_sizes_are_a_memory_error(nbytes: int) -> None:
    call = _fresh()
    with pytest.raises(MemoryError):
        call(nbytes)
    assert call(8).nbytes == 8


def test_a_dead_results_memory_is_reused_and_a_living_one_is_not() -> None:
    call = _fresh()
    first = call(1 << 16)
    second = call(1 << 16)
    assert first.ctypes.data != second.ctypes.data
    first[:] = 1
    second[:] = 2
    assert first.min() == first.max() == 1
    address = first.ctypes.data
    view = first[10:]
    del first
    third = call(1 << 16)
    assert third.ctypes.data != address
    assert view.max() == 1
    del view
    assert call(1 << 16).ctypes.data == address


def test_what_a_call_frees_serves_its_next_request_and_its_next_call(scalar_program: Any) -> None:
    code = [
        Unary("move", 1, immediate(0)),
        Label("top"), Alloc(2, immediate(1 << 16)), Store("i64", Slot(2), immediate(0), Slot(1)),
        Free(Slot(2)), LoopNext(1, 1, Slot(0), "top"), Return((Slot(2),)),
    ]  # fmt: skip
    call = scalar_program(code, "int", "int")
    assert call(1000) == call(1)
    assert _field(call, State.LIVE_BYTES) == 0
    assert 1 << 16 <= _field(call, State.KEPT_BYTES) <= 1.25 * (1 << 16)


@pytest.mark.parametrize(("nbytes", "shared"), [
    (40_000, True), (16_000, True), (13_000, False), (70_000, False),
])  # fmt: skip
def test_what_passes_may_have_an_idle_block_of_up_to_four_times_its_size(
    scalar_program: Any, nbytes: int, shared: bool
) -> None:
    for passing in (True, False):
        code = [
            Alloc(1, immediate(1 << 16)), Free(Slot(1)), Alloc(2, Slot(0), passing=passing),
            Zero(Slot(2), Slot(0)), Binary("eq.i64", 3, Slot(1), Slot(2)), Return((Slot(3),)),
        ]  # fmt: skip
        call = scalar_program(code, "int", "int")
        assert call(nbytes) == (shared and passing)
        assert _field(call, State.LIVE_BYTES) == 0
        with pytest.raises(MemoryError):
            call(1 << 52)


def test_an_aborted_call_gives_everything_back(scalar_program: Any) -> None:
    code = [
        TapeNew(4), Unary("move", 1, immediate(0)),
        Label("top"), Alloc(2, immediate(10_000)), TapePush(Slot(4), (Slot(2),)),
        LoopNext(1, 1, Slot(0), "top"),
        Raise(0, (Slot(1),)),
    ]  # fmt: skip
    call = scalar_program(code, "int", "int", sites=[Site("ValueError", ("stop",))])
    for _ in range(3):
        with pytest.raises(ValueError, match="stop"):
            call(50)
        assert _field(call, State.LIVE) == 0
        assert _field(call, State.LIVE_BYTES) == 0
        assert _field(call, State.KEPT_BYTES) >= 50 * 10_000


def test_memory_that_later_calls_do_not_need_is_passed_on(scalar_program: Any) -> None:
    code = [Alloc(1, Slot(0)), Return((immediate(0),))]
    call = scalar_program(code, "int", "int")
    call(1 << 24)
    assert _field(call, State.KEPT_BYTES) >= 1 << 24
    call(64)
    assert _field(call, State.KEPT_BYTES) <= 1 << 20


def test_results_survive_their_program_and_die_after_it() -> None:
    call = _fresh()
    results = [call(100_000) for _ in range(20)]
    del call
    gc.collect()
    for number, result in enumerate(results):
        result[:] = number
    assert [int(result[5]) for result in results] == list(range(20))
    results.clear()


def test_branches_that_allocate_may_leave_address_zero_to_free(scalar_program: Any) -> None:
    code = [
        Unary("move", 1, immediate(0)), JumpUnless(Slot(0), "end"), Alloc(1, immediate(128)),
        Label("end"), Free(Slot(1)), Return((Slot(0),)),
    ]  # fmt: skip
    call = scalar_program(code, "bool", "bool")
    assert [call(True), call(False)] == [True, False]


def test_results_made_and_dropped_in_threads_keep_their_values() -> None:
    import threading

    call = _fresh()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            kept = [call(3000 + 100 * step) for step in range(5)]
            for array in kept:
                array[:] = number
            if any(np.any(array != number) for array in kept):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
