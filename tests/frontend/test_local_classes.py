"""Classes inside functions are those that Python would make, or are problems at their lines."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pyrelay.frontend import local_classes, source


def _made(function: Callable[..., Any], *around: str) -> tuple[list[type], list[str]]:
    node: Any = source.of(function).node  # type: ignore[arg-type]
    definitions = [each for each in node.body if isinstance(each, ast.ClassDef)]
    classes, problems = local_classes.made(function, definitions, around)  # type: ignore[arg-type]
    return list(classes.values()), [problem.word for problem in problems]


def _two() -> Any:
    class First:
        def other(self) -> Any:
            return Second()

    class Second(First):
        @property
        def one(self) -> int:
            return 1

    return First, Second


def test_classes_name_each_other_and_have_sources() -> None:
    (first, second), problems = _made(_two, "First", "Second")
    assert not problems
    assert first.__qualname__ == "_two.<locals>.First"
    assert isinstance(first().other(), second)
    assert issubclass(second, first)
    getter: Any = vars(second)["one"].fget
    assert source.of(getter).class_name == "Second"


def _reads(limit: int) -> Any:
    class Local:
        most = limit

    return Local


def _again() -> Any:
    class Local:
        pass

    class Local:  # type: ignore[no-redef]  # noqa: F811
        pass

    return Local


def _raises() -> Any:
    class Local:
        size = [1][2]

    return Local


def _changes() -> Any:
    class Local:
        seen: list[int] = []  # noqa: RUF012

    return Local


def test_what_is_another_class_at_each_call_is_a_problem() -> None:
    assert _made(_reads, "limit", "Local")[1] == [
        "a class that reads 'limit', which is a variable of the function"
    ]
    assert _made(_again, "Local")[1] == ["a second class of this name"]
    assert _made(_raises, "Local")[1] == [
        "a class definition that raises IndexError: list index out of range"
    ]
    assert _made(_changes, "Local")[1] == [
        "a class with an attribute that can be changed, 'seen'"
    ]
