"""What users are told while functions compile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import pyrelay
from pyrelay import notices
from pyrelay.deep_stack import on_deep_stack, on_deep_stack_telling


@pytest.fixture
def log(caplog) -> Iterator[pytest.LogCaptureFixture]:
    with pyrelay.config.override(cache=False), caplog.at_level(logging.WARNING, "pyrelay"):
        yield caplog


def test_a_long_compilation_is_told_once(log, monkeypatch):
    monkeypatch.setattr(notices, "PATIENCE", 0.0)
    trained = pyrelay.jit(lambda x: np.tanh(x * 1.3572468))
    trained.__qualname__ = "trained"
    for _ in range(2):
        np.testing.assert_allclose(trained(np.ones(3)), np.tanh(np.full(3, 1.3572468)))
    assert log.messages == [
        "pyrelay has been compiling trained for 0 seconds, and goes on. PYRELAY_CACHE is off: with "
        "it, later processes would find on disk what it makes. Ahead of time, explain(...) of it, "
        "with arguments of these types, compiles without running it, and says where the time goes."
    ]


def test_what_is_said_of_a_derivative_and_of_the_cache(log):
    with pyrelay.config.override(cache=True):
        notices.tell_of_long_compilation("loss", "grad")
    (line,) = log.messages
    assert "compiling grad of loss for 5 seconds" in line
    assert "is kept on disk, where later processes find it." in line


def test_short_compilations_say_nothing(log):
    pyrelay.jit(lambda x: x * 1.3572469)(np.ones(3))
    assert not log.messages


def test_what_is_late_is_told_once_and_its_result_comes():
    told, release = [], threading.Event()

    def late():
        told.append(threading.current_thread())
        release.set()

    assert on_deep_stack_telling(0.01, late, release.wait, 60)
    assert told == [threading.current_thread()]


def test_work_on_its_deep_stack_and_work_in_time_tell_nothing():
    told = []

    def inner():
        return on_deep_stack_telling(0.0, lambda: told.append(1), lambda: 7)

    assert on_deep_stack(inner) == 7
    assert on_deep_stack_telling(60.0, lambda: told.append(1), lambda: 8) == 8
    assert not told


def test_what_telling_raises_stops_the_work():
    stop = threading.Event()

    def late():
        stop.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_deep_stack_telling(0.01, late, stop.wait, 60)
