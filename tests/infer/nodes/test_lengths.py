"""Nodes whose arrays are of lengths that are arguments have one program for all lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.infer.attempt import Attempt
from tests.infer.running import assert_same_outcome, plainly


class Individual:
    """Genes and how fit they are."""

    def __init__(self, genes: Any) -> None:
        self.genes = genes
        self.fitness = float((genes * genes).sum())


class Particle:
    """A place and a velocity."""

    def __init__(self, dim: int, k: int) -> None:
        self.x = np.ones(dim) * k
        self.v = np.zeros(dim)


class Grid:
    """Cells of two lengths."""

    def __init__(self, height: int, width: int) -> None:
        self.cells = np.zeros((height, width))


def comprehension(dim: int, n: int) -> Any:
    return sum(p.fitness for p in [Individual(np.zeros(dim) + k) for k in range(n)])


def appended(dim: int, n: int) -> Any:
    found = []
    for k in range(n):
        found.append(Individual(np.zeros(dim) + k))
    return sum(p.fitness for p in found)


def crossed(dim: int, n: int) -> Any:
    g = np.random.default_rng(n)
    found = [Individual(g.uniform(-5, 5, dim)) for _ in range(n)]
    for _ in range(3):
        after: list[Individual] = []
        while len(after) < n:
            a, b = found[int(g.integers(n))], found[int(g.integers(n))]
            child = Individual(np.where(g.random(dim) < 0.5, a.genes, b.genes))
            mutated = Individual(child.genes.copy())
            mutated.genes[0] += 1.0
            after.append(mutated)
        found = after
    return [p.fitness for p in found], found[0].genes


def swarm(dim: int, n: int) -> Any:
    found = [Particle(dim, k) for k in range(n)]
    for _ in range(3):
        for p in found:
            p.v = 0.5 * p.v - p.x
            p.x = p.x + p.v
    return [float(p.x.sum()) for p in found], found[-1].x


def grids(dim: int, n: int) -> Any:
    found = [Grid(dim, n) for _ in range(n)]
    for k, grid in enumerate(found):
        grid.cells[k % dim] += k
    return found[-1].cells, sum(grid.cells.sum() for grid in found)


@pytest.mark.parametrize(
    ("function", "most"),
    [(comprehension, 200), (appended, 200), (crossed, 5000), (swarm, 250), (grids, 200)],
)
def test_arrays_of_lengths_that_are_arguments_are_of_one_shape(
    function: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once lists of arrays that might differ were tried behind it, and knew how many there are."""
    attempts: list[Attempt] = []
    run = Attempt.run

    def noted(self: Attempt, *args: Any) -> Any:
        attempts.append(self)
        return run(self, *args)

    monkeypatch.setattr(Attempt, "run", noted)
    compiled = pyrelay.jit(function)
    with config.override(interpret=True):
        for given in ((3, 20), (4, 21)):
            assert_same_outcome(plainly(compiled, given), plainly(function, given))
    assert compiled.cache_info().compilations == 1
    assert len(attempts) <= 4
    assert not any(attempt.asked.ragged or attempt.asked.known for attempt in attempts)
    assert attempts[-1].asked.effort.steps < most


def test_negative_lengths_raise_where_an_array_is_made() -> None:
    compiled = pyrelay.jit(comprehension)
    with config.override(interpret=True):
        for given in ((2, 20), (-1, 0), (-1, 20), (0, 2)):
            assert_same_outcome(plainly(compiled, given), plainly(comprehension, given))
    assert compiled.cache_info().compilations == 1


def shorter_last(dim: int, n: int) -> Any:
    found = [Individual(np.zeros(dim) + k) for k in range(n)]
    found.append(Individual(found[0].genes[1:]))
    found.append(Individual(np.ones(dim + 1)))
    return [p.fitness for p in found], [len(p.genes) for p in found]


def of_two_lengths(dim: int, n: int) -> Any:
    found = []
    for k in range(n):
        if k % 2:
            found.append(Individual(np.zeros(dim) + k))
        else:
            found.append(Individual(np.ones(n)))
    return [p.fitness for p in found], sum(len(p.genes) for p in found)


@pytest.mark.parametrize("function", [shorter_last, of_two_lengths])
def test_arrays_of_several_lengths_stay_right(function: Any) -> None:
    compiled = pyrelay.jit(function)
    with config.override(interpret=True):
        for given in ((3, 5), (5, 5)):
            assert_same_outcome(plainly(compiled, given), plainly(function, given))
