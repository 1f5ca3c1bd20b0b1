"""What loops of one block keep in shared memory, and that results are the same bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import persistent_known, programs
from pyrelay.devices.gpu.persistent_near import LEAST, SWITCH, begun, ended
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"
LITTLE = "#define ROOM_NEAR 128"


def recurrent(x: Any, w: Any, b: Any) -> Any:
    """Two states, one of which is updated in place, and all of the other one."""
    n = w.shape[0]
    h, c = b[:n] * 0, b[:n] * 0
    hs = np.zeros((x.shape[0], n), x.dtype)
    for t in range(x.shape[0]):
        z = x[t] @ w + h @ w + b
        c = np.tanh(z[:n]) * c + np.tanh(z[n:])
        h = np.tanh(c)
        hs[t] = h
    return h, hs


def whole(h: Any, w: Any) -> Any:
    """A state in an array that takes turns with another one."""
    for _ in range(3):
        h[:] = np.tanh(h @ w) + 0.5 * h
    return (h.sum(),)


def but_one(h: Any, w: Any) -> Any:
    """A state in its array, of which a part stays."""
    for _ in range(4):
        h[1:] = np.tanh(h @ w)[1:]
    return (h.sum(),)


def arguments(function: Any = recurrent, rounds: int = 5, n: int = 7) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    if function is not recurrent:
        return rng.normal(size=n), rng.normal(size=(n, n))
    return tuple(rng.normal(size=s) for s in ((rounds, n), (n, 2 * n), 2 * n))


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are made for known extents, of one block."""
    found: list[str] = []
    known = persistent_known.with_known

    def note(*given: Any) -> Any:
        made = known(*given)
        found.append(made.source)
        return made

    monkeypatch.setattr(persistent_known, "with_known", note)
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    return found


def check(function: Any, args: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are those of Python, and the bits of the kernel for any extents."""
    monkeypatch.setattr(cuda_emulator.DRIVER, "watched", True)
    here, theirs, again = ([a.copy() for a in args] for _ in range(3))
    found, wanted = (*pyrelay.jit(function, device=ON)(*here), *here), (*function(*theirs), *theirs)
    near = {"rtol": 1e-11} if args[0].dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other, **near)
    monkeypatch.setattr(persistent_known, "FIRST", 0)
    np.testing.assert_equal((*pyrelay.jit(function, device=ON)(*again), *again), found)


def test_lines_put_the_arena_and_arrays_where_there_is_room() -> None:
    lines = begun(48, [1, 3], [7, 9], [9])
    assert lines[:3] == ["const i64 origin7 = s7;", "const i64 origin9 = s9;", "#if ROOM_NEAR"]
    assert "const i64 arena_bytes = 48 + 1 * step0 + 3 * step1;" in lines
    assert "const i64 near9 = end7 + 2 * each9_bytes <= ROOM_NEAR ? each9_bytes : 0;" in lines
    assert "    other9 = s9 + near9;" in lines
    assert "    other7 = s7 + near7;" not in lines
    assert lines[-3:] == [
        "#else", "const i64 arena = far, begins = (far + 2351) / 256 * 256;", "#endif"
    ]
    assert ended([7]) == ["pyrelay_copy(origin7, s7, ends7);"]


@needs_compiler
@pytest.mark.parametrize("function", [recurrent, whole, but_one])
def test_what_one_block_works_in_is_shared_memory(
    function: Any, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(function, arguments(function), monkeypatch)
    (text,) = texts
    assert SWITCH not in text
    assert f"#define ROOM_NEAR {LEAST}\n" in text
    assert text.count("pyrelay_copy(origin") == 1  # the array of all states is not held


@needs_compiler
@pytest.mark.parametrize(("dtype", "n"), [(np.float32, 32), (np.float64, 32), (np.float32, 8)])
def test_weights_of_one_row_stay_in_registers_and_steps_inputs_come_a_round_before(
    dtype: Any, n: int, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = [0.3 * each for each in arguments(n=n)]
    check(recurrent, tuple(each.astype(dtype) for each in args), monkeypatch)
    (text,) = texts
    assert "ROOM_NEAR > 0, space, registers);" in text
    assert re.search(r"if \(\(s\d+ \+ 1ll\) < s\d+\) next_early(\d) = phase\1::early\(", text)


@needs_compiler
def test_what_does_not_fit_stays_where_it_was(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        persistent_known, "with_room", lambda text: text.replace(SWITCH, LITTLE)
    )
    check(recurrent, arguments(), monkeypatch)
    assert all(LITTLE in text for text in texts)


@needs_compiler
def test_how_many_rounds_there_are_is_no_extent(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = pyrelay.jit(recurrent, device=ON)
    for rounds in (5, 3, 4):
        args = arguments(rounds=rounds)
        for mine, theirs in zip(function(*args), recurrent(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-11)
    assert len(texts) == 1


@needs_compiler
def test_several_blocks_keep_nothing(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 2)
    check(recurrent, arguments(), monkeypatch)
    assert all(SWITCH in text for text in texts)
