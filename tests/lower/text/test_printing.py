"""Syntax trees as text: what is printed parses to the same tree, with or without astunparse."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from pyrelay.lower.text import printing

STATEMENTS = """\
def kernel(block, begin, end):
    for i in range(begin, end):
        if i < 3:
            break
        elif i < 4:
            x = 1
        else:
            while True:
                x = 2
    return 0
"""


@pytest.fixture(params=["astunparse", "ast"])
def unparse(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The printer, of both packages."""
    if request.param == "ast":
        monkeypatch.setattr(printing, "Unparser", None)
    else:
        pytest.importorskip("astunparse")
    return printing.unparse


@pytest.mark.parametrize(
    "text",
    [
        "a - (b - c)", "a - b - c", "-(a * b)", "-a * b", "~(a & b) | c", "(a + b) * c",
        "a if b else c", "(a if b else c) + d", "not a == b", "(not a) + b", "a and (b or c)",
        "(a < b) == c", "f(a, -b)[c]", "a << (b + c)", "a << b + c", "(a // b) % c", "a // (b % c)",
        "a < b < c", "(a, b)", "- -a",
    ],
)  # fmt: skip
def test_what_is_printed_parses_to_the_same_tree(unparse: Callable[..., str], text: str) -> None:
    tree = ast.parse(f"x = {text}")
    assert ast.dump(ast.parse(unparse(tree))) == ast.dump(tree)


def test_statements_print_as_they_parse(unparse: Callable[..., str]) -> None:
    assert unparse(ast.parse(STATEMENTS)).lstrip("\n") == STATEMENTS
