"""Every program of the corpus, inferred and interpreted, does what plain Python does."""

from __future__ import annotations

import pytest

from pyrelay.pipeline import lowered
from tests.infer.running import assert_same_outcome, interpreted, plainly
from tests.programs import PROGRAMS, Program

CALLS = [
    pytest.param(p, k, id=f"{p.name}-{k}") for p in PROGRAMS for k in range(len(p.inputs))
]


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_inferred_program_does_what_python_does(program: Program, number: int) -> None:
    args = program.arguments()[number]
    got, wanted = interpreted(program.function, args), plainly(program.function, args)
    assert_same_outcome(got, wanted, program.joins)


@pytest.mark.parametrize("stage", ["grad", "optimise", "fuse"])
@pytest.mark.parametrize(("program", "number"), CALLS)
def test_each_stage_keeps_what_a_program_does(
    program: Program, number: int, stage: str
) -> None:
    args = program.arguments()[number]
    got = interpreted(program.function, args, lambda module: lowered(module, stage))
    assert_same_outcome(got, plainly(program.function, args), program.joins)
