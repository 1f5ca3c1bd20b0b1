"""Generators with what is to be done when they are left."""

from __future__ import annotations

import contextlib

import pytest

import pyrelay
from tests.infer.running import assert_same_outcome, interpreted, plainly


def read(values, log):
    try:
        for v in values:
            try:
                yield v
            finally:
                log.append(v)
    finally:
        log.append(-1.0)


def to_the_end(values):
    log = []
    return sum(read(values, log)), log


def left_by_break(values):
    log, total = [], 0.0
    for v in read(values, log):
        total += v
        if v < 0:
            break
    return total, log


def inverse(values, log):
    for v in read(values, log):
        if v < 0:
            return 1 / (v + 3.0)
        log.append(10 * v)
    return 0.0


def left_by_return(values):
    log = []
    return inverse(values, log), log


def left_by_raise(values):
    log = []
    try:
        for v in read(values, log):
            log.append(1 / (v + 3.0))
    except ZeroDivisionError:
        log.append(-2.0)
    return log


def managed(values):
    log = []

    @contextlib.contextmanager
    def opened(by):
        log.append(by)
        try:
            yield by * 10
        finally:
            log.append(-by)

    def scaled():
        with opened(2.0) as by:
            for v in values:
                yield v * by

    return list(scaled()), log


@pytest.mark.parametrize("function", [
    to_the_end, left_by_break, left_by_return, left_by_raise, managed,
])
def test_what_a_finally_around_a_yield_does_is_done_when_it_is_left(function):
    """It was refused."""
    for values in ([1.0, 2.0, -3.0, 4.0], [5.0, 0.5]):
        assert_same_outcome(
            interpreted(function, (list(values),)), plainly(function, (list(values),))
        )


def handles(values):
    def given():
        try:
            yield from values
        except ZeroDivisionError:
            yield 0.0

    return [1 / v for v in given()]


def test_what_the_loop_raises_is_not_the_generators_to_handle():
    assert pyrelay.jit(handles)([1.0, 2.0]) == [1.0, 0.5]
    with pytest.raises(ZeroDivisionError):
        pyrelay.jit(handles)([1.0, 0.0])
