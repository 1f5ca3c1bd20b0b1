"""What is read of generators' memory is what their methods say."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pyrelay.infer import generator_memory, random_state
from pyrelay.infer.generator_memory import memory_of


def of_numpy() -> Any:
    generator = np.random.RandomState(7)
    generator.normal(size=3)
    return generator


def of_python() -> Any:
    generator = random.Random(7)
    generator.gauss(0.0, 1.0)
    return generator


@pytest.mark.parametrize("made", [of_numpy, of_python, lambda: random.Random(1)])
def test_the_state_is_read_and_written_as_by_methods(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory_of(made()) is not None
    found = random_state.state_of(made())
    copied = type(made())(99)
    random_state.store(copied, found)
    monkeypatch.setattr(random_state, "memory_of", lambda generator: None)
    for one, other in zip(found, random_state.state_of(made()), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    slow = type(made())(99)
    random_state.store(slow, found)
    for one, other in zip(random_state.state_of(copied), random_state.state_of(slow), strict=True):
        np.testing.assert_array_equal(one, other)
    following = [each.random() for each in (made(), copied, slow)]
    assert following[0] == following[1] == following[2]


def test_views_are_the_memory_itself() -> None:
    generator = np.random.RandomState(7)
    memory = memory_of(generator)
    assert memory is not None
    generator.normal()
    assert memory.has_kept[0] == 1
    assert memory.kept[0] == generator.get_state(legacy=True)[4]
    memory.place[0] = 624
    assert generator.get_state(legacy=True)[2] == 624


def test_classes_that_may_draw_from_elsewhere_are_asked_by_methods() -> None:
    class Own(random.Random):
        pass

    assert memory_of(Own(1)) is None
    assert memory_of(random.SystemRandom()) is None
    assert memory_of(np.random.RandomState(np.random.PCG64(1))) is None


def test_nothing_is_found_where_memory_is_laid_out_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generator_memory.ctypes, "string_at", lambda address, size: bytes(size))
    assert generator_memory._kept_offset.__wrapped__() is None
    assert generator_memory._python_offset.__wrapped__() is None
