"""Deep copies share nothing with what they are copies of."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import pyrelay


def table(n: int) -> Any:
    rows = [[0] * n for _ in range(n)]
    other = copy.deepcopy(rows)
    other[0][0] = 1
    return rows, other


def deeper(n: int) -> Any:
    rows = [[[i * j] for i in range(n)] for j in range(n)]
    other = copy.deepcopy(rows)
    other[0][0].append(4)
    return rows, other


def pairs(n: int) -> Any:
    rows = [([i], i) for i in range(n)]
    other = copy.deepcopy(rows)
    other[1][0][0] = 7
    return rows[1], other[1], len(other)


@pytest.mark.parametrize("program", [table, deeper, pairs])
def test_lists_in_lists_that_the_running_program_makes_are_copied(program: Any) -> None:
    assert pyrelay.jit(program)(3) == program(3)
