"""Builtins that make text of numbers, known or computed."""

from __future__ import annotations

import pytest

import pyrelay


def spelled(n, x):
    return hex(n), oct(n), bin(-n), str(n), repr(x), format(x, ".2e"), ascii("é"), hex(255)


@pytest.mark.parametrize("number", [10, -3, 0])
def test_numbers_are_spelled_as_in_python(number):
    assert pyrelay.jit(spelled)(number, 2.5) == spelled(number, 2.5)
