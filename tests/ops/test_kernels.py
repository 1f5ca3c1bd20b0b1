"""The element rule of every op as a compiled kernel, on the samples of its record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrelay.ir.op import OPS, Op
from tests.lower.lowered import Failed, function_of, run
from tests.ops.calling import type_of
from tests.ops.test_elements import promoted

_WITH_RULES = [pytest.param(op, id=op.name) for op in OPS.values() if op.element is not None]


def compiled(op: Op, args: Any, attrs: Any) -> Any:
    """The result of an op, computed by a kernel of its own."""
    function = function_of(
        [type_of(a) for a in args], lambda build, *handles: build.call(op, *handles, **attrs)
    )
    (result,) = run(function, args)
    return result


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("op", _WITH_RULES)
def test_a_kernel_computes_what_numpy_does(op: Op, every: bool) -> None:
    """On the first two samples; in the long run on all of them."""
    for sample in op.samples if every else op.samples[:2]:
        args = promoted(op, sample.args)
        expected = op.numpy(*args, **sample.attrs)
        single = any(np.asarray(a).dtype in (np.float32, np.complex64) for a in args)
        np.testing.assert_allclose(
            compiled(op, args, sample.attrs), expected, rtol=2e-5 if single else 1e-12, atol=1e-14
        )


@pytest.mark.parametrize(
    ("name", "args", "attrs"),
    [
        ("add", (2**63 - 1, 1), {}), ("multiply", (2**40, -(2**40)), {}),
        ("negative", (-(2**63),), {}), ("divide", (1.0, 0.0), {}), ("divide", (1, 0), {}),
        ("floor_divide", (1, 0), {}), ("floor_divide", (-(2**63), -1), {}),
        ("remainder", (1.0, 0.0), {}), ("power", (3, 41), {}), ("power", (0.0, -1.0), {}),
        ("power", (-2.0, 0.5), {}), ("left_shift", (1, 63), {}), ("right_shift", (1, -1), {}),
        ("log", (0.0,), {"strict": True}), ("exp", (1e3,), {"strict": True}),
        ("check_index", (5,), {"size": 3, "axis": 1}),
    ],
)
def test_a_kernel_fails_with_the_exception_and_the_words_of_python(
    name: str, args: Any, attrs: Any
) -> None:
    op = OPS[name]
    with pytest.raises((ArithmeticError, ValueError, IndexError)) as expected:
        op.numpy(*args, **attrs)
    with pytest.raises(Failed) as found:
        compiled(op, args, attrs)
    error = found.value.raised()
    assert (type(error), str(error)) == (expected.type, str(expected.value))
