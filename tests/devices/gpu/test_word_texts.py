"""Scalars that a device computes of others are those that the host would compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.cuda_emulator import EmulatorDriver
from pyrelay.devices.gpu import word_arithmetic, word_texts
from pyrelay.devices.gpu.gpu_memory import SCRATCH_WORDS, STATUS
from pyrelay.devices.gpu.word_arithmetic import of_double, of_single
from pyrelay.lower.planning.instructions import Binary, Checked, Immediate, Select, Unary
from tests.devices.running_kernels import needs_compiler

MEANINGS: dict[type, dict[str, Any]] = {
    Unary: word_arithmetic.UNARY_MEANINGS, Binary: word_arithmetic.BINARY_MEANINGS,
    Checked: word_arithmetic.CHECKED_MEANINGS,
}  # fmt: skip
INTEGERS = (0, 1, -1, 2, -7, 63, 64, 70, 1 << 62, (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, -0.0, 1.5, -2.5, 1e-3, 7.0, 9.3e18, -9.3e18, math.inf, -math.inf, math.nan)


def words_of(name: str) -> tuple[int, ...]:
    """Words that an op may be given, by its name."""
    kind = name.split(".")[-1]
    if kind == "f32" or name.startswith("f32"):
        return tuple(map(of_single, FLOATS))
    if kind == "f64" or name.startswith("f64"):
        return tuple(map(of_double, FLOATS))
    return INTEGERS


def is_nan(name: str, word: int) -> bool:
    kind = name.split(".")[-1]
    if kind == "f32" or name.endswith("f32"):
        return bool(np.isnan(word_arithmetic.to_single(word)))
    return (kind == "f64" or name.endswith("f64")) and math.isnan(word_arithmetic.to_double(word))


@needs_compiler
@pytest.mark.slow
def test_spellings_mean_what_the_host_computes() -> None:
    zero = Immediate(0)
    ops = [(kind, op) for kind, names in word_texts.SPELLED.items() for op in sorted(names)]
    steps: list[Any] = [
        Unary(op, 0, zero) if kind is Unary
        else Binary(op, 0, zero, zero) if kind is Binary else Checked(op, 0, zero, zero, 0)
        for kind, op in ops
    ]
    driver = EmulatorDriver()
    steps.append(Select(0, zero, zero, zero))
    functions = driver.load([word_texts.computing(step) for step in steps])
    record, out = np.zeros(SCRATCH_WORDS, np.int64), np.zeros(1, np.int64)
    at = np.zeros(1, np.int64)
    for array in (record, out, at):
        driver.sizes[array.ctypes.data] = array.nbytes
    ident = 1 << 32

    def given(function: Any, *words: int) -> int | None:
        """The first operand stands in memory."""
        record[:], at[0] = 0, words[0]
        operands = [0, at.ctypes.data, *(w for word in words[1:] for w in (word, 0))]
        driver.launch(
            function, 1, [record.ctypes.data, ident, 0, 1, *operands, out.ctypes.data], 0
        )
        return None if record[STATUS] else int(out[0])

    for (kind, op), function in zip(ops, functions, strict=False):
        words = words_of(op)
        pairs = [(a,) for a in words] if kind is Unary else [(a, b) for a in words for b in words]
        for pair in pairs:
            found, wanted = given(function, *pair), MEANINGS[kind][op](*pair)
            same = found == wanted or (
                found is not None and wanted is not None
                and is_nan(op, found) and is_nan(op, wanted)
            )
            assert same, (op, pair, found, wanted)
    assert [given(functions[-1], c, 5, 6) for c in (0, 1)] == [6, 5]
