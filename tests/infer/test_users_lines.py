"""Errors are shown at lines of the user's, not within the libraries that they called."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import pytest

import pyrelay
from pyrelay.errors import SourceText, Span
from pyrelay.infer import users_lines


def matched(text: str) -> Any:
    return re.match("a.*", text)


def read(text: str) -> Any:
    return json.loads(text)


def wrapped(text: str) -> Any:
    return textwrap.wrap(text, 3)


@pytest.mark.parametrize(
    ("function", "called", "line"),
    [
        (read, "loads", "json.loads(text)"),
        (wrapped, "wrap", "textwrap.wrap(text, 3)"),
    ],
)
def test_what_is_not_compiled_of_the_standard_library_is_refused_where_it_is_called(
    function: Any, called: str, line: str
) -> None:
    with pytest.raises(pyrelay.UnsupportedOperationError) as caught:
        pyrelay.jit(function)("abc")
    error = caught.value
    assert error.message == f"'{called}' of the standard library cannot be compiled."
    assert error.hints == (users_lines.ELSEWHERE,)
    assert error.span is not None
    assert error.span.text() == line
    (call,) = error.calls
    assert call[0].source.filename == __file__
    (why,) = error.notes
    assert re.match(r"[\w .]+, line \d+: ", why)


def test_regular_expressions_are_refused_at_once() -> None:
    with pytest.raises(pyrelay.UnsupportedOperationError) as caught:
        pyrelay.jit(matched)("abc")
    error = caught.value
    name = re.match.__name__  # another one since 3.15
    assert error.message == f"'re.{name}' cannot be compiled: regular expressions are not."
    assert error.hints == (
        "use methods of strings (split, find, startswith, isdigit), or match outside of the "
        "compiled function and pass what is found",
    )
    assert error.span is not None
    assert error.span.text() == 're.match("a.*", text)'
    assert [span.source.filename for span, _ in error.calls] == [__file__]


def span_in(filename: str) -> Span:
    return Span(SourceText(filename, ("f(x)",)), 1, 0, 1, 4)


MINE, THEIRS, OURS = (
    span_in(name) for name in ("model.py", re.__file__, users_lines.__file__)
)


def test_lines_of_pyrelay_are_those_of_their_callers() -> None:
    assert users_lines.own(OURS, [(OURS, "g(x)"), (MINE, "h(x)")]) == (MINE, [])
    assert users_lines.own(MINE, [(MINE, "h(x)")]) == (MINE, [(MINE, "h(x)")])
    assert users_lines.own(OURS, [(OURS, "g(x)")]) == (OURS, [(OURS, "g(x)")])


def test_lines_of_the_standard_library_are_those_that_called_it() -> None:
    calls = [(THEIRS, "inner(x)"), (MINE, "outer(x)"), (MINE, "mine(x)")]
    assert users_lines.before_standard(THEIRS, calls) == (MINE, "outer", [(MINE, "mine(x)")])
    assert users_lines.before_standard(MINE, calls) is None
    assert users_lines.before_standard(THEIRS, calls[:1]) is None
    assert users_lines.is_standard(span_in("<frozen posixpath>").source)
    assert not users_lines.is_standard(span_in(pytest.__file__).source)
