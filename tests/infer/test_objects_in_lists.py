"""Objects of the caller that are nodes for one program: the very objects come back."""

from __future__ import annotations

from dataclasses import dataclass

import pyrelay
from pyrelay.infer.datatypes import EVERYWHERE


@dataclass
class Part:
    weight: float
    uses: int = 0


def parts(count: int) -> list[Part]:
    return [Part(0.5 * k, k) for k in range(count)]


def heavy(given: list[Part], limit: float) -> list[Part]:
    found = [p for p in given if p.weight > limit]
    for p in found:
        p.uses += 1
    return found


def test_the_callers_objects_come_back_changed() -> None:
    given = parts(5)
    found = pyrelay.jit(heavy)(given, 0.9)
    assert len(found) == 3
    assert all(a is b for a, b in zip(found, given[2:], strict=True))
    assert [p.uses for p in given] == [0, 1, 3, 4, 5]


def test_the_program_of_a_structure_is_found_again() -> None:
    compiled = pyrelay.jit(heavy)
    for count in (3, 4, 3, 4):
        compiled(parts(count), 0.9)
    assert compiled.cache_info().compilations == 2


def test_other_programs_take_the_objects_apart_as_before() -> None:
    pyrelay.jit(heavy)(parts(3), 0.9)
    assert EVERYWHERE.of(Part) is None
    assert pyrelay.jit(lambda p: p.weight * 2)(Part(1.5)) == 3.0
