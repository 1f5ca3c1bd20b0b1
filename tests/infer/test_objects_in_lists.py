"""Objects of the caller that are nodes for one program: the very objects come back."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import pytest

import pyrelay
from pyrelay.infer.nodes.datatypes import EVERYWHERE


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


@dataclass
class Mass:
    x: float
    y: float
    m: Any = 1.0


def masses(count: int) -> list[Mass]:
    return [Mass(float(k), 2.0, 0.5) for k in range(count)]


def test_lists_of_many_objects_compile_once_for_all_lengths() -> None:
    def energy(bodies: list[Mass]) -> float:
        return sum(b.m * (b.x * b.x + b.y * b.y) for b in bodies)

    fast = pyrelay.jit(energy)
    for count in (20, 33, 17, 6):
        assert fast(masses(count)) == pytest.approx(energy(masses(count)))
    assert fast.cache_info().compilations == 1
    assert pyrelay.grad(energy)(masses(20))[3] == Mass(3.0, 2.0, 13.0)


def test_many_objects_that_cannot_be_nodes_are_records() -> None:
    def total(bodies: list[Mass]) -> float:
        return sum(b.m(b.x) for b in bodies)

    given = [Mass(float(k), 0.0, math.sin if k % 2 else math.cos) for k in range(20)]
    assert pyrelay.jit(total)(given) == pytest.approx(total(given))


def moved(given: list[Part], by: float) -> float:
    for _ in range(3):
        for p in given:
            p.weight += by * p.uses
            p.uses += 1
    return sum(p.weight for p in given)


def put_elsewhere(given: list[Part], by: float) -> Part:
    given[0].weight = by
    given[2], given[3] = given[3], given[2]
    last = given.pop()
    given.append(Part(by, 7))
    given[1].uses = 100
    return last


@pytest.mark.parametrize("function", [moved, put_elsewhere])
def test_many_objects_are_changed_by_one_program_for_all_lengths(function: Any) -> None:
    compiled = pyrelay.jit(function)
    for count in (20, 33):
        given, wanted = parts(count), parts(count)
        before, plain = list(given), list(wanted)
        got, expected = compiled(given, 0.5), function(wanted, 0.5)
        assert given == wanted
        assert got == expected
        places = [[next((k for k, b in enumerate(old) if b is o), None) for o in new]
                  for old, new in ((before, given), (plain, wanted))]
        assert places[0] == places[1]
    assert compiled.cache_info().compilations == 1


@dataclass
class Named:
    name: str
    weight: float


@pytest.mark.parametrize("make", [
    lambda n: [{"name": f"w{k * k}", "weight": 0.5 * k} for k in range(n)],
    lambda n: [Named(f"w{k * k}", 0.5 * k) for k in range(n)],
])
def test_rows_of_any_number_with_any_texts_are_one_program(make: Any) -> None:
    def renamed(rows: Any) -> Any:
        for row in rows:
            if isinstance(row, dict):
                row["name"] += "!"
            else:
                row.name += "!"
        return rows[-1], len(rows)

    compiled = pyrelay.jit(renamed)
    for count in (17, 30, 200):
        given, expected = make(count), make(count)
        last, length = compiled(given)
        renamed(expected)
        assert last is given[-1]
        assert length == count
        assert given == expected
    assert compiled.cache_info().compilations == 1


class Layer:
    def __init__(self, weight: float) -> None:
        self.weight = weight

    def forward(self, x: float) -> float:
        self.out = x * self.weight
        return self.out


def through_a_new_layer(x: float) -> float:
    layer = Layer(2.0)
    for _ in range(3):
        x = layer.forward(x)
    return x


def test_a_call_that_is_refused_leaves_no_class_a_node() -> None:
    first, second = Layer(1.0), Layer(2.0)
    first.next, second.next = second, first
    first.handle, second.handle = threading.Lock(), {}
    with pytest.raises(pyrelay.errors.PyrelayError):
        pyrelay.jit(lambda layer: layer.weight)(first)
    assert EVERYWHERE.of(Layer) is None
    assert pyrelay.jit(through_a_new_layer)(1.0) == 8.0


class Link:
    def __init__(self, number: float, to: Any = None) -> None:
        self.number, self.to = number, to


class Other:
    def __init__(self, link: Any) -> None:
        self.link = link


def total(link: Any) -> float:
    return link.number if link.to is None else link.number + total(link.to)


def test_a_call_that_is_refused_leaves_known_nodes_as_they_were() -> None:
    compiled = pyrelay.jit(total)
    assert compiled(Link(1.0, Link(2.0))) == 3.0
    family = EVERYWHERE.of(Link)
    inner = Link(2.0)
    inner.to = Other(Link(1.0, inner))  # which leads back through another class
    with pytest.raises(pyrelay.errors.PyrelayError):
        pyrelay.jit(lambda link: link.missing)(inner)
    assert EVERYWHERE.of(Other) is None
    assert EVERYWHERE.of(Link) is family
    assert family is not None
    assert Other not in family.classes
    assert compiled(Link(4.0, Link(2.0))) == 6.0
    assert compiled.cache_info().compilations == 1
