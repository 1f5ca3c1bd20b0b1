"""Small functions at the edges of Python's meaning do the same inferred and interpreted."""

from __future__ import annotations

import pytest

from tests.infer.edge_programs import EDGES
from tests.infer.running import assert_same_outcome, interpreted, plainly
from tests.programs import Program

CALLS = [pytest.param(p, k, id=f"{p.name}-{k}") for p in EDGES for k in range(len(p.inputs))]


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_inferred_program_does_what_python_does(program: Program, number: int) -> None:
    args = program.arguments()[number]
    got, wanted = interpreted(program.function, args), plainly(program.function, args)
    assert_same_outcome(got, wanted, program.joins)
