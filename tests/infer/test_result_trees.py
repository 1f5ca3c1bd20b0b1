"""Lists of run-time length as results: what is in them, and which of it is one object."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from tests.infer.running import assert_same


def pascal(n, x):
    rows = []
    for i in range(n):
        row = [1] * (i + 1)
        for k in range(1, i):
            row[k] = rows[i - 1][k - 1] + rows[i - 1][k]
        rows.append(row)
    return rows


def paths(n, x):
    found = []
    for i in range(n):
        found.append([(i * k, k * 0.5, "step") for k in range(i)])
    return found


def parts(n, x):
    found = []
    for i in range(n):
        found.append([x * k for k in range(i)])
    return found


def pairs(n, x):
    found = []
    for i in range(n):
        found.append([np.float32(i), [i, i * i], (x, i)])
    return found


def deep(n, x):
    found = []
    for i in range(n):
        found.append([list(range(k)) for k in range(i)])
    return found


@pytest.mark.parametrize("function", [pascal, paths, parts, pairs, deep])
def test_lists_in_a_list_are_those_of_python(function):
    compiled, x = pyrelay.jit(function), np.arange(3.0)
    for n in (0, 1, 5):
        assert_same(compiled(n, x), function(n, x))


def test_items_share_no_array_and_no_list():
    rows = pyrelay.jit(parts)(4, np.ones(2))
    rows[3][0][:] = 7
    rows[2].append(None)
    assert_same(rows[3][1:], [np.ones(2), np.full(2, 2.0)])
    assert len(rows[1]) == 1


def tokens(text):
    found = []
    for word in text.split():
        if word.isdigit():
            found.append(("number", word, len(word)))
        elif word in "+-*/" or word == "\u03c0":
            found.append(("sign" if word != "\u03c0" else "name", word, 0))
        else:
            found.append(("word", word, 0))
    return found, text.split(), [(len(word), word) for word in text.split()]


def test_texts_in_lists_are_made_all_at_once():
    compiled = pyrelay.jit(tokens)
    text = "12 + alpha * \u03c0 - 345 \ud800x" * 2
    with config.override(interpret=True):
        assert "host" not in compiled.ir(text)
        assert_same(compiled(text), tokens(text))
        assert_same(compiled(" " * 20), tokens(" " * 20))
