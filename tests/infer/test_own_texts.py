"""What objects say of themselves: by their own methods, by what dataclasses generate, by Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import pyrelay


@dataclass
class Point:
    x: int
    y: float
    hidden: int = field(default=0, repr=False)


@dataclass
class Named:
    at: Point
    name: str


class Told:
    def __init__(self, x: int) -> None:
        self.x, self.count = x, 0

    def __str__(self) -> str:
        self.count += 1
        return f"<{self.x}>" if self.x % 2 else "even"


class Shown:
    def __init__(self, x: int, after: Any = None) -> None:
        self.x, self.after = x, after

    def __repr__(self) -> str:
        return f"Shown({self.x})"


class Derived(Shown):
    def __format__(self, spec: str) -> str:
        return f"{self.x}{spec}"


class Chain(Shown):
    def __repr__(self) -> str:
        return f"{self.x} {self.after!r}"


class InALoop(Shown):
    def __str__(self) -> str:
        said = ""
        for _ in range(self.x):
            said += "|"
        return said


class NotCompiled(Shown):
    def __str__(self) -> str:
        self.x += 0
        return self.__class__.__doc__.__repr__() + str(vars(self)["x"])


def points(n):
    return [str(Point(i, 0.5, 7)) for i in range(n)]


def named(n):
    return repr(Named(Point(n, 0.5), "it's")), f"{Named(Point(n, 1.0), 'b')!r:>40}|"


def of_methods(n):
    a, b = Told(n), Shown(n + 1)
    return f"{a} {a!s:>6} {b} {b!r}", str(a), "%s" % a, f"{b}, {b!r}", str(b), a.count  # noqa: UP031


def chain(n):
    head = None
    for i in range(n):
        head = Shown(i, head)
    found = []
    while head is not None:
        found.append(f"{head}!")
        head = head.after
    return found


def short_chain(n):
    return str(Chain(n, Chain(n + 1))), f"{Chain(n, 2.5)}"


def by_python(n):
    return str(InALoop(n)), f"{NotCompiled(n)}", f"{Derived(n)} {Derived(n):*}", str(Derived(n))


def chosen(n):
    box = Shown(n) if n > 3 else Told(n)
    return str(box)


PROGRAMS = [points, named, of_methods, chain, short_chain, by_python, chosen]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_objects_say_what_they_say_in_python(program: Callable[..., Any]) -> None:
    made = pyrelay.jit(program)
    for n in (3, 4):
        assert made(n) == program(n)


@pytest.mark.parametrize("program", [points, chain, of_methods], ids=lambda p: p.__name__)
def test_methods_are_compiled(program: Callable[..., Any]) -> None:
    made = pyrelay.jit(program)
    assert made(3) == program(3)
    assert "host" not in str(made.code(3))
