"""Lists of run-time length that leave the program: returned, printed, written out."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def test_a_list_of_an_array_of_another_length_compiles_nothing() -> None:
    @pyrelay.jit
    def weighted(x, groups):
        return sum(v * k for v, k in zip(x, groups.tolist(), strict=True)), groups.tolist()

    for n in (6, 7, 90):
        x, groups = np.arange(float(n)), np.arange(n) % 3
        assert weighted(x, groups) == weighted.py(x, groups)
    assert weighted.cache_info().compilations == 1


def test_lists_of_any_length_are_printed_as_they_are_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(x):
        kept = []
        for v in x.tolist():
            kept.append([v, -v])
            print(kept, len(kept))
        return kept

    for n in (0, 1, 3):
        x = np.arange(n) * 0.5
        expected, text = shown(x), capsys.readouterr().out
        assert (pyrelay.jit(shown)(x), capsys.readouterr().out) == (expected, text)
