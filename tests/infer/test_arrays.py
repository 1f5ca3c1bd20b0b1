"""What users write with arrays does what NumPy does: values, dtypes, writes, exceptions."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.infer.array_programs import EXPRESSIONS, NAMES, STATEMENTS
from tests.infer.running import assert_same_outcome, interpreted, plainly
from tests.property.prelude import function_of


def program(body: str) -> tuple[Any, tuple[Any, ...]]:
    """A function of the names that a body uses, and their values."""
    names = [name for name in NAMES if re.search(rf"\b{name}\b", body)]
    text = f"import math\nimport numpy as np\n\ndef f({', '.join(names)}):\n    {body}\n"
    return function_of(text, "f"), tuple(copy.deepcopy(NAMES[name]) for name in names)


def check(body: str) -> None:
    function, args = program(body)
    wanted = plainly(function, args)
    try:
        assert_same_outcome(interpreted(function, args), wanted)
    except Exception as error:
        error.add_note(body)
        raise


@pytest.mark.parametrize("batch", range(4))
def test_expressions_give_what_numpy_gives(batch: int) -> None:
    for line in EXPRESSIONS.strip().splitlines()[batch::4]:
        check(f"return {line}")


@pytest.mark.parametrize("batch", range(2))
def test_statements_write_what_numpy_writes(batch: int) -> None:
    for line in STATEMENTS.strip().splitlines()[batch::2]:
        check(line)


@pytest.mark.parametrize("body", ["for row in a: row[0] = 1", "for v in x: v += 1",
                                  "for p, w in zip(a, a.T): p[0] = w[1]",
                                  "for n in range(3): a[n] /= a[n].max() + 9"])
def test_loops_over_an_array_write_its_rows(body: str) -> None:
    check(body)


@pytest.mark.parametrize("body", ["return np.sqrt(u)", "return np.exp(m)"])
def test_functions_of_bools_and_bytes_are_float16(body: str) -> None:
    check(body)


def test_a_returned_real_part_is_a_view() -> None:
    z = np.array([1 + 2j, 3.0])
    part = pyrelay.jit(lambda v: v.imag)(z)
    part[0] = 5.0
    assert z[0] == 1 + 5j


def test_a_cast_that_numpy_refuses_for_out_is_refused() -> None:
    def truncated(v):
        return np.multiply(v, 0.5, out=v)

    with pytest.raises(TypeError, match="does not cast"):
        pyrelay.jit(truncated)(np.array([1, 2]))


def test_squeezed_axes_that_only_the_program_knows_are_named() -> None:
    def all_of_them(v, n):
        return v[:n].squeeze()

    def the_first(v, n):
        return v[:n].squeeze(axis=0)

    v = np.arange(3.0)
    assert_same_outcome(interpreted(all_of_them, (v, 2)), plainly(all_of_them, (v, 2)))
    assert_same_outcome(interpreted(the_first, (v, 1)), plainly(the_first, (v, 1)))
    with pytest.raises(ValueError, match="axis 0 turns out to have extent 1"):
        pyrelay.jit(all_of_them)(v, 1)
    with pytest.raises(ValueError, match="not equal to one"):
        pyrelay.jit(the_first)(v, 2)
