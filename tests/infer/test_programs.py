"""Every program of the corpus, inferred and interpreted, does what plain Python does."""

from __future__ import annotations

import pytest

from tests.infer.running import assert_same_outcome, interpreted, plainly
from tests.programs import PROGRAMS, Program

CALLS = [
    pytest.param(p, k, id=f"{p.name}-{k}") for p in PROGRAMS for k in range(len(p.inputs))
]


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_inferred_program_does_what_python_does(program: Program, number: int) -> None:
    args = program.arguments()[number]
    assert_same_outcome(interpreted(program.function, args), plainly(program.function, args))
