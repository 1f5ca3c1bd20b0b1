"""Parts are made when they are first called, whoever calls them, and only then."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pyrelay.devices.compiler.late_parts import LateParts, supported
from pyrelay.devices.runtime.library import runtime

pytestmark = pytest.mark.skipif(not supported(), reason="parts are made first on this machine")

_EIGHT = [ctypes.c_int64] * 8


def _digits(*words: int) -> int:
    return int("".join(map(str, words)))


_TARGET = ctypes.CFUNCTYPE(ctypes.c_int64, *_EIGHT)(_digits)


def _parts(count: int = 1, make: Callable[[int], Any] = lambda _: None) -> Any:
    """Addresses, what has them made, and the numbers that were made."""
    made: list[int] = []

    def target(number: int) -> int:
        make(number)
        made.append(number)
        address = ctypes.cast(_TARGET, ctypes.c_void_p).value or 0
        parts.made(number, address)
        return address

    parts = LateParts(target)
    addresses = [parts.address() for _ in range(count)]
    parts.asked_by(runtime().symbols["pyrelay_ask"])
    return addresses, parts, made


def _call(address: int, kind: Callable[..., Any] = ctypes.CFUNCTYPE) -> int:
    answer: int = kind(ctypes.c_int64, *_EIGHT)(address)(1, 2, 3, 4, 5, 6, 7, 8)
    return answer


@pytest.mark.parametrize("kind", [ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE], ids=["without", "with"])
def test_a_part_is_made_by_its_first_call_with_and_without_the_gil(kind: Any) -> None:
    """Arguments in registers and on the stack are what the part gets."""
    (address,), parts, made = _parts()
    assert made == []
    assert [_call(address, kind) for _ in range(3)] == [12345678] * 3
    assert made == [0]
    del parts


def test_each_address_stands_for_a_part_of_its_own() -> None:
    addresses, parts, made = _parts(150)
    assert len(set(addresses)) == 150
    for number in (149, 0, 64, 63):
        assert _call(addresses[number]) == 12345678
    assert made == [149, 0, 64, 63]
    del parts


def test_threads_that_call_at_once_wait_for_the_part() -> None:
    begun = threading.Barrier(5)
    (address,), parts, _ = _parts(make=lambda _: threading.Event().wait(0.05))
    answers: list[int] = []

    def call() -> None:
        begun.wait()
        answers.append(_call(address))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    for thread in threads:
        thread.join()
    assert answers == [12345678] * 4
    del parts


def test_a_call_at_the_end_of_pythons_stack_has_its_part_made() -> None:
    def deep(depth: int) -> int:
        return 1 + deep(depth - 1) if depth else 0

    def make(number: int) -> int:
        depths.append(deep(500))
        return ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value or 0

    def to_the_end() -> int:
        try:
            return to_the_end()
        except RecursionError:
            return native(-3)

    depths: list[int] = []
    parts = LateParts(make)
    native = ctypes.CFUNCTYPE(ctypes.c_int)(parts.address())
    parts.asked_by(runtime().symbols["pyrelay_ask"])
    assert to_the_end() == 3
    assert depths == [500]


def test_a_forked_child_has_parts_made() -> None:
    (address,), parts, _ = _parts()
    child = os.fork()
    if child == 0:
        os._exit(0 if _call(address) == 12345678 else 1)
    assert os.waitpid(child, 0)[1] == 0
    del parts


def test_a_part_that_cannot_be_made_ends_the_process_with_the_reason() -> None:
    script = """
import ctypes
from pyrelay.devices.compiler.late_parts import LateParts
from pyrelay.devices.runtime.library import runtime

def make(number):
    raise MemoryError("no room for it")

parts = LateParts(make)
address = parts.address()
parts.asked_by(runtime().symbols["pyrelay_ask"])
ctypes.CFUNCTYPE(ctypes.c_int64)(address)()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode < 0
    assert "MemoryError: no room for it" in ended.stderr
