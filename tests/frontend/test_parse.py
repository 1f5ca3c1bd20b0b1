"""Parsed programs, run by a plain evaluator, do what Python does."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tests.frontend.cases import CASES
from tests.frontend.relay_eval import Run


def outcome(function, args):
    """The result with the arguments as they are afterwards, or the exception."""
    args = copy.deepcopy(args)
    try:
        return "value", (function(*args), args)
    except Exception as error:
        return "error", (type(error), str(error), type(error.__cause__))


def same(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(("function", "runs"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_parsed_function_does_what_python_does(function, runs):
    run = Run(function)
    for args in runs:
        kind, wanted = outcome(function, args)
        got_kind, got = outcome(run, args)
        assert got_kind == kind, (args, got, wanted)
        if (kind == "error" and wanted[0] is UnboundLocalError) or wanted[0] is NameError:
            assert issubclass(got[0], NameError)
        else:
            assert same(got, wanted), (args, got, wanted)
