"""Laws of every pass: what the program does stays, it is valid, and doing it twice adds nothing."""

from __future__ import annotations

from typing import Any

import pytest
from core_programs import PROGRAMS
from law_programs import LAW_PROGRAMS
from passes import Pass, after, assert_same_runs, core, lets

from pyrelay import pipeline
from pyrelay.ir.digest import digest
from pyrelay.ir.nodes import Module
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.hoist import hoist
from pyrelay.opt.inline import inline
from pyrelay.opt.ranges import ranges
from pyrelay.opt.simplify import simplify

PASSES: tuple[Pass, ...] = (inline, ranges, fold, simplify, cse, dce, hoist)
(OPTIMISE,) = (stage.passes for stage in pipeline.STAGES if stage.name == "optimise")
NAMES = [*LAW_PROGRAMS, *PROGRAMS]


def _module(name: str) -> tuple[Module, Any]:
    if name in LAW_PROGRAMS:
        function, arguments = LAW_PROGRAMS[name]
        return core(function, *arguments[0]), arguments
    made = PROGRAMS[name]()
    return made.module, made.arguments


@pytest.mark.parametrize("each", PASSES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_keeps_meaning_and_doing_it_again_changes_nothing(name: str, each: Pass) -> None:
    module, arguments = _module(name)
    once = after(module, each)
    assert digest(after(once, each)) == digest(once)
    for args in arguments:
        assert_same_runs(module, once, args)


@pytest.mark.parametrize("name", NAMES)
def test_all_passes_in_the_pipelines_order_keep_meaning_and_come_to_rest(name: str) -> None:
    module, arguments = _module(name)
    once = after(module, *OPTIMISE)
    for args in arguments:
        assert_same_runs(module, once, args)
    twice = after(once, *OPTIMISE)
    assert len(lets(twice)) == len(lets(once))
    for args in arguments:
        assert_same_runs(module, twice, args)
