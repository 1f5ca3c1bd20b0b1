"""The rows of docs/language.md: a decorated function is one, its text is shown, it is really run.

`@compiled(title, *arguments)` is compiled and compared with plain Python. `@refused(title,
*arguments)` raises a PyrelayError, whose words are shown. `section(...)` begins a section. After a
change, `pytest tests/language --update-golden` writes the document again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Row:
    """A function and arguments to call it with; `works` says whether it compiles."""

    section: str
    title: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    works: bool


@dataclass(frozen=True)
class Section:
    """A heading and what is said under it."""

    title: str
    text: str


ROWS: list[Row] = []
SECTIONS: list[Section] = []


def section(title: str, text: str = "") -> None:
    """Begin a section; the rows that follow belong to it."""
    SECTIONS.append(Section(title, text))


def compiled(title: str, *arguments: Any) -> Callable[[F], F]:
    """A construct that is compiled."""
    return _row(title, arguments, True)


def refused(title: str, *arguments: Any) -> Callable[[F], F]:
    """A construct that is refused with a message."""
    return _row(title, arguments, False)


def _row(title: str, arguments: tuple[Any, ...], works: bool) -> Callable[[F], F]:
    def enter(function: F) -> F:
        ROWS.append(Row(SECTIONS[-1].title, title, function, arguments, works))
        return function

    return enter
