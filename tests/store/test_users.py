"""Programs of the users' corpus, kept and found again, do what plain Python does."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

import pyrelay
from pyrelay import config
from tests.infer.running import Outcome, assert_same_outcome, plainly
from tests.users import test_users
from tests.users.corpus import USED, Use

assert test_users  # its imports fill the corpus

def called(compiled: Any, args: tuple[Any, ...]) -> Outcome:
    mine = copy.deepcopy(args)
    try:
        return Outcome(compiled(*mine), None, mine)
    except Exception as error:
        return Outcome(None, error, mine)


@pytest.mark.slow
@pytest.mark.parametrize("used", [pytest.param(u, id=u.name) for u in USED])
def test_programs_found_on_disk_do_what_python_does(used: Use) -> None:
    args = used.arguments(0)
    with config.override(verify=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called(pyrelay.jit(used.function).again(), args)
        found = pyrelay.jit(used.function).again()
        for _ in range(2):
            assert_same_outcome(called(found, args), plainly(used.function, args), used.joins)
    if not found.cache_info().loaded:
        pytest.skip("it reads something that has no place")
