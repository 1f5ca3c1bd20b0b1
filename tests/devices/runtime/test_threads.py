"""The pool shares a kernel's range, gives the same answers as one thread, and survives forks."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernel_texts import ADD, POSITIVE

from pyrelay import config
from pyrelay.devices.compiler import native
from pyrelay.devices.runtime.entry import Executable
from pyrelay.devices.runtime.layout import Process, Team
from pyrelay.devices.runtime.library import runtime
from pyrelay.devices.runtime.threads import usable_threads
from pyrelay.lower.planning.boundary import ArrayParameter, ArrayResult, ObjectResult
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import (
    Alloc,
    Binary,
    Kernel,
    Launch,
    Plan,
    PlanFunction,
    Return,
    Site,
    Slot,
    immediate,
)

NANOSECOND = 1000
SLOW = immediate(1000 * NANOSECOND)


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    with config.override(num_threads=3):
        yield
    runtime().use_threads()


def _jobs() -> int:
    """How many jobs the team has had."""
    team = ctypes.c_int64.from_address(runtime().process + Process.TEAM).value
    return int(ctypes.c_int64.from_address(team + Team.TICKET).value) >> 16 if team else 0


def _add(cost: Any = SLOW, serial: bool = False, evenly: bool = False) -> Any:
    code = (
        Binary("mul.i64", 4, Slot(1), immediate(8)), Alloc(5, Slot(4)),
        Launch(0, (Slot(0), Slot(2), Slot(5)), Slot(1), cost, serial, evenly=evenly),
        Return((Slot(5), Slot(1))),
    )  # fmt: skip
    plan = Plan(
        (PlanFunction("main", 4, 6, code),), (Kernel("add", ADD),),
        parameters=(ArrayParameter("float64", 1), ArrayParameter("float64", 1)),
        results=(ArrayResult("float64", 1),), single=True,
    )  # fmt: skip
    return Executable(encode(plan)).call


def test_shared_launches_cover_every_element_once() -> None:
    add = _add()
    before = _jobs()
    for size in [1, 2, 41, 100, 511, 513, 1000, 4097, 100_003]:
        a, b = np.arange(size, dtype=float), np.ones(size)
        np.testing.assert_array_equal(add(a, b), a + b)
    assert _jobs() > before


def test_small_and_serial_launches_stay_on_the_callers_thread() -> None:
    a = np.arange(1000.0)
    small, serial = _add(immediate(NANOSECOND)), _add(serial=True)
    before = _jobs()
    np.testing.assert_array_equal(small(a, a), a + a)
    np.testing.assert_array_equal(serial(a, a), a + a)
    assert _jobs() == before


def test_short_launches_one_after_another_wake_the_workers() -> None:
    a = np.arange(1000.0)
    _add()(a, a)  # makes the team
    short = _add(immediate(20 * NANOSECOND))
    time.sleep(0.05)  # workers are asleep then
    team = ctypes.c_int64.from_address(runtime().process + Process.TEAM).value
    ctypes.c_int64.from_address(team + Team.ALONE).value = 0
    before = _jobs()
    for _ in range(10):
        short(a, a)
    assert _jobs() == before
    for _ in range(2):
        np.testing.assert_array_equal(short(a, a), a + a)
    assert _jobs() > before


def test_many_jobs_in_a_row_lose_no_chunk() -> None:
    add = _add()
    a = np.arange(3000.0)
    for number in range(2000):
        b = np.full(3000, float(number))
        assert add(a, b).sum() == a.sum() + 3000.0 * number


def test_concurrent_callers_all_get_their_answers() -> None:
    add = _add()
    wrong: list[int] = []

    def work(number: int) -> None:
        a = np.full(2000, float(number))
        for _ in range(300):
            if add(a, a)[1234] != 2.0 * number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_of_several_failing_chunks_the_first_ones_error_is_raised() -> None:
    code = (Launch(0, (Slot(0),), Slot(1), SLOW, first_site=1), Return(()))
    sites = (Site("TypeError", ()), Site("ValueError", ("negative at ", 0), ("int",)))
    plan = Plan(
        (PlanFunction("main", 2, 2, code),), (Kernel("positive", POSITIVE),), sites,
        parameters=(ArrayParameter("float64", 1),), results=(ObjectResult(None),), single=True,
    )  # fmt: skip
    call = Executable(encode(plan)).call
    array = np.ones(10_000)
    assert call(array) is None
    array[[1234, 5000, 5001, 9999]] = -1
    for _ in range(200):
        with pytest.raises(ValueError, match=r"^negative at 1234$"):
            call(array)
    array[1234] = 1
    with pytest.raises(ValueError, match=r"^negative at 5000$"):
        call(array)
    array[:] = 1
    assert call(array) is None


def test_a_forked_child_starts_a_team_of_its_own() -> None:
    add = _add()
    a = np.arange(5000.0)
    add(a, a)
    child = os.fork()
    if child == 0:
        good = bool((add(a, a) == a + a).all()) and _jobs() == 0
        runtime().use_threads()
        good = good and bool((add(a, a) == a + a).all()) and _jobs() == 1
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(add(a, a), a + a)


def test_one_thread_means_no_team() -> None:
    with config.override(num_threads=1):
        add = _add()
        before = _jobs()
        a = np.arange(5000.0)
        np.testing.assert_array_equal(add(a, a), a + a)
        assert before == _jobs() == 0


def test_the_default_is_the_cpus_this_process_may_use() -> None:
    assert usable_threads(5) == 5
    assert usable_threads(0) == len(os.sched_getaffinity(0))


def test_a_process_with_waiting_workers_ends_at_once() -> None:
    script = (
        "from pyrelay.devices.runtime.library import runtime\n"
        "runtime().pool.use(4)\nprint('done')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                           timeout=60, check=False)  # fmt: skip
    assert ended.stdout == "done\n"
    assert ended.returncode == 0


def test_workers_have_their_team_when_the_interpreter_is_gone() -> None:
    script = (
        "import numpy as np\n"
        "from pyrelay.devices.runtime.library import runtime\n"
        "pool = runtime().pool\npool.use(4)\n"
        "vars(pool).clear()\n"  # as what ends the interpreter does
        "taken = [np.full(128, 3) for _ in range(100)]\n"
        "for _ in range(100):\n"
        "    np.full(128, 3)\n"
        "print('done')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                           timeout=60, check=False)  # fmt: skip
    assert (ended.stdout, ended.returncode) == ("done\n", 0)


def test_kernels_are_shared_between_programs() -> None:
    _add()
    before = native.counts.loaded, native.counts.compiled
    _add(immediate(5))
    assert (native.counts.loaded, native.counts.compiled) == before


def test_an_even_launch_gives_each_thread_one_part() -> None:
    a = np.arange(100_000.0)
    chunks: dict[bool, int] = {}
    for evenly in (False, True):
        add = _add(evenly=evenly)
        before = _jobs()
        while _jobs() == before:
            np.testing.assert_array_equal(add(a, a), a + a)
        team = ctypes.c_int64.from_address(runtime().process + Process.TEAM).value
        chunks[evenly] = ctypes.c_int64.from_address(team + Team.CHUNKS).value
    threads = ctypes.c_int64.from_address(team + Team.THREADS).value
    assert chunks[True] <= threads < chunks[False]
