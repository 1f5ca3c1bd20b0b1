"""Every Core program of the corpus verifies, and runs by the interpreter as it should."""

from __future__ import annotations

import core_programs
import pytest

from pyrelay.ir.interp import interpret
from pyrelay.ir.verify import verify


@pytest.mark.parametrize("name", core_programs.PROGRAMS)
def test_corpus_programs_verify_and_run(name: str) -> None:
    program = core_programs.PROGRAMS[name]()
    verify(program.module, "optimise")
    for args in program.arguments:
        results = interpret(program.module, args)
        assert len(results) == len(program.module.main.body.results)
