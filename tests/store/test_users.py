"""Programs of the users' corpus, kept and found again, do what plain Python does."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest

import pyrelay
from pyrelay import config
from tests.infer.running import Outcome, assert_same_outcome, plainly
from tests.users import test_users
from tests.users.corpus import USED, Use

assert test_users  # its imports fill the corpus

#: Programs that read what has no place: texts as arrays, dicts made while compiling.
MOST_LEFT_OUT = 0.05


def called(compiled: Any, args: tuple[Any, ...]) -> Outcome:
    mine = copy.deepcopy(args)
    try:
        return Outcome(compiled(*mine), None, mine)
    except Exception as error:
        return Outcome(None, error, mine)


@pytest.mark.slow
def test_programs_found_on_disk_do_what_python_does(tmp_path: Path) -> None:
    left_out = [used.name for used in USED if not _is_found(used, tmp_path)]
    assert len(left_out) < MOST_LEFT_OUT * len(USED), left_out


def _is_found(used: Use, folder: Path) -> bool:
    """Whether the program of the first arguments was on disk the second time; it is compared."""
    args = used.arguments(0)
    with config.override(verify=False, cache_dir=str(folder)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called(pyrelay.jit(used.function).again(), args)
        found = pyrelay.jit(used.function).again()
        for _ in range(2):
            assert_same_outcome(called(found, args), plainly(used.function, args), used.joins)
    return bool(found.cache_info().loaded)
