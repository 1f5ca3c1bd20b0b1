"""The sweep over NumPy's names: its functions read what they name, and slow cases are told."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sweep import EXPRESSIONS, arguments, functions, sweep


def test_every_expression_is_a_function_of_the_arrays_that_it_names() -> None:
    for kinds, texts in EXPRESSIONS.items():
        arrays = arguments(100, kinds.split()[0])
        made = functions([t.strip() for t in texts.split(";")])
        assert len(made) == texts.count(";") + 1
        with np.errstate(all="ignore"):
            for function, used in made.values():
                found = function(*(arrays[name] for name in used))
                assert found is not None or "z" in used  # which is written


def test_cases_are_told_by_their_share_of_numpy_s_time() -> None:
    (line,) = sweep("np.cbrt", [50], ["f8"], 0.0)
    assert "np.cbrt(x)" in line
    assert "first call" in line
    assert not list(sweep("np.cbrt", [50], ["f8"], 1e9))


@pytest.mark.slow
def test_nothing_is_refused() -> None:
    assert not list(sweep("", [100], [], 1e9))
