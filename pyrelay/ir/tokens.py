"""The tokens of the text format: a text in, one token after another out, errors in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from pyrelay.errors import SourceText, Span, TextFormatError

T = TypeVar("T")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<function>@[^\s()\[\]{},]+)
      | (?P<string>b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")
      | (?P<object><[^>]*>)
      | (?P<number>(?:\d+\.?\d*(?:[eE][+-]?\d+)?j?))
      | (?P<name>[^\W\d]\w*(?:\.\w+)*)
      | (?P<mark>->|//|\*\*|[-+*%(){}\[\],;:=])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)


class Tokens:
    """Reads a text from left to right; `text` and `kind` are those of the next token."""

    def __init__(self, text: str, filename: str) -> None:
        self.source = SourceText(filename, tuple(text.splitlines()))
        self._text = text
        self._tokens = list(self._scan())
        self._at = 0

    def _scan(self) -> Iterator[tuple[str, str, int]]:
        at = 0
        while True:
            match = _TOKEN.match(self._text, at)
            if match is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                self._tokens = [("mark", self._text[start], start)]
                self._at = 0
                self.fail(f"{self._text[start]!r} does not belong here")
            kind = match.lastgroup
            assert kind is not None
            yield kind, match.group(kind), match.start(kind)
            if kind == "end":
                return
            at = match.end()

    @property
    def kind(self) -> str:
        """The kind of the next token: a group of `_TOKEN`."""
        return self._tokens[self._at][0]

    @property
    def text(self) -> str:
        """The next token."""
        return self._tokens[self._at][1]

    @property
    def following(self) -> str:
        """The token after the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)][1]

    def span(self, start: int | None = None) -> Span:
        """From token number `start` (by default the next one) to the last one that was read."""
        first = self._tokens[self._at if start is None else start]
        last = first if start is None else self._tokens[max(start, self._at - 1)]
        line, column = self._place(first[2])
        end_line, end_column = self._place(last[2] + max(len(last[1]), 1))
        return Span(self.source, line, column, end_line, end_column)

    def _place(self, offset: int) -> tuple[int, int]:
        before = self._text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1)

    def fail(self, message: str) -> NoReturn:
        """Raise an error at the next token."""
        raise TextFormatError(message, span=self.span())

    def next(self) -> str:
        """Read a token."""
        text = self.text
        self._at += 1
        return text

    def accept(self, text: str) -> bool:
        """Read the next token if it is this one."""
        if self.text != text or self.kind == "string":
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        """Read this token."""
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.text or 'the end'!r}")

    def word(self, kind: str, what: str) -> str:
        """Read a token of a kind."""
        if self.kind != kind:
            self.fail(f"expected {what}, found {self.text or 'the end'!r}")
        return self.next()

    def separated(self, item: Callable[[], T], end: str) -> list[T]:
        """Items separated by commas up to a mark, which is read."""
        items: list[T] = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def listed(self, item: Callable[[], T]) -> list[T]:
        """One or more items separated by commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items
