"""What the type relations accept, and how they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.ir import dims, types
from pyrelay.ir.op import OPS, RelationError
from pyrelay.ir.types import TensorType
from tests.ops.calling import result_type, type_of


def f32(*shape: Any) -> TensorType:
    return TensorType(types.f32, shape)


def refusal(name: str, *operands: Any, **attrs: Any) -> RelationError:
    with pytest.raises(RelationError) as caught:
        result_type(name, *operands, **attrs)
    return caught.value


N, M = dims.fresh("n"), dims.fresh("m")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((4, 3), (3,), (4, 3)), ((4, 1), (3,), (4, 3)), ((), (2,), (2,)), ((1,), (0,), (0,)),
        ((N, 3), (N, 1), (N, 3)), ((N,), (), (N,)), ((2, 1, N), (M, 1), (2, M, N)),
        ((2 * N,), (N + N,), (2 * N,)),
    ],
)
def test_shapes_broadcast_from_the_right(left: Any, right: Any, expected: Any) -> None:
    assert result_type("add", f32(*left), f32(*right)).shape == expected
    assert result_type("add", f32(*right), f32(*left)).shape == expected


def test_shapes_that_do_not_align_are_refused_with_the_place_and_a_hint() -> None:
    error = refusal("multiply", f32(4, 3), f32(4))
    assert error.text == "cannot combine f32[4, 3] and f32[4]"
    assert error.note == "shapes align from the right; 3 and 4 differ in the last place."
    assert error.hint == "write '{arg}[:, None]' to align it with the first axis."
    assert (error.arg, error.kind) == (1, "shape")


def test_the_hint_names_as_many_new_axes_as_are_needed() -> None:
    error = refusal("add", f32(5), f32(2, 5, 3, 4))
    assert error.hint == "write '{arg}[:, None, None]' to align it with the second axis."
    assert error.arg == 0
    assert refusal("add", f32(2, 3), f32(3, 2)).hint is None
    middle = refusal("where", TensorType(types.bool_, (2, 3)), f32(2, 3), f32(4, 3))
    assert middle.note == "shapes align from the right; 2 and 4 differ in the second to last place."


def test_whether_symbolic_extents_are_equal_is_asked_of_the_oracle() -> None:
    asked: list[Any] = []

    def oracle(left: Any, right: Any) -> bool:
        asked.append((left, right))
        return True

    with dims.decided_by(oracle):
        assert result_type("add", f32(N), f32(5)).shape == (5,)
        assert result_type("add", f32(5), f32(N)).shape == (5,)
        assert result_type("matmul", f32(2, N), f32(M, 3), transpose_a=False, transpose_b=False)
    assert asked == [(N, 5), (5, N), (N, M)]
    assert refusal("add", f32(N), f32(M)).text == "cannot combine f32[n] and f32[m]"


def test_a_refusal_asks_nothing_of_the_oracle_beyond_the_failing_pair() -> None:
    asked: list[Any] = []
    with dims.decided_by(lambda a, b: bool(asked.append((a, b)))):
        refusal("add", f32(N, 3), f32(M, 4))
        refusal("add", f32(4, N), f32(M))
    assert asked == [(N, M), (N, M)]


@pytest.mark.parametrize(
    ("refused", "text", "kind"),
    [
        (
            lambda: refusal("subtract", *[TensorType(types.bool_, (2,))] * 2),
            "does not take bool arrays such as bool[2]", "type",
        ),
        (
            lambda: refusal("less", types.PY_COMPLEX, types.PY_FLOAT),
            "does not take complex numbers such as complex", "type",
        ),
        (
            lambda: refusal("bitwise_and", types.PY_FLOAT, types.PY_INT),
            "does not take float numbers such as float", "type",
        ),
        (
            lambda: refusal("reshape", f32(4, 3), shape=(5,)),
            "cannot give f32[4, 3] the shape (5,)", "shape",
        ),
        (
            lambda: refusal("concatenate", f32(2, 3), f32(2, 4), axis=0),
            "cannot join f32[2, 3] and f32[2, 4] along axis 0", "shape",
        ),
        (
            lambda: refusal("concatenate", f32(2, 3), f32(2), axis=0),
            "cannot join f32[2, 3] and f32[2]", "shape",
        ),
        (
            lambda: refusal("matmul", f32(2, 3), f32(4, 2), transpose_a=False, transpose_b=False),
            "cannot multiply f32[2, 3] and f32[4, 2]", "shape",
        ),
        (
            lambda: refusal("sum", f32(2, 3), axes=(2,), keepdims=False),
            "cannot use axis 2 of an array of 2 dimensions", "value",
        ),
        (
            lambda: refusal("sum", f32(2, 3), axes=(0, -2), keepdims=False),
            "was given the same axis twice: (0, -2)", "value",
        ),
        (
            lambda: refusal("max", f32(0, 3), axes=(0,), keepdims=False),
            "cannot reduce f32[0, 3]: zero-size array to reduction operation maximum which has "
            "no identity", "value",
        ),
        (
            lambda: refusal("squeeze", f32(2, 3), axes=(0,)),
            "cannot remove axis 0 of f32[2, 3]: its extent is not 1", "value",
        ),
        (
            lambda: refusal("broadcast_to", f32(2), shape=(3,)),
            "cannot fit f32[2] into an array of shape (3,)", "shape",
        ),
        (
            lambda: refusal("index_update", f32(4, 3), f32(4), types.PY_INT, axes=(0,)),
            "cannot fit f32[4] into a place of shape (3,)", "shape",
        ),
        (
            lambda: refusal("index_update", f32(4), TensorType(types.f64), types.PY_INT, axes=(0,)),
            "cannot store f64[] in f32[4]", "type",
        ),
        (
            lambda: refusal("gather", f32(4), f32(2), axes=(0,)),
            "does not take float arrays such as f32[2]", "type",
        ),
        (
            lambda: refusal("slice", f32(4), starts=(2,), sizes=(3,), steps=(1,)),
            "goes beyond axis 0 of f32[4]", "value",
        ),
        (
            lambda: refusal("cast", types.PY_COMPLEX, dtype=types.f64, weak=True),
            "cannot make a real number of complex", "type",
        ),
        (
            lambda: refusal("cast", f32(2), dtype=types.f64, weak=True),
            "cannot make a Python number of f32[2]", "type",
        ),
    ],
)
def test_refusals_say_what_is_wrong(
    refused: Callable[[], RelationError], text: str, kind: str
) -> None:
    error = refused()
    assert (error.text, error.kind) == (text, kind)


def test_a_matrix_that_fits_when_transposed_is_hinted_at() -> None:
    flags = {"transpose_a": False, "transpose_b": False}
    error = refusal("matmul", f32(2, 3), f32(4, 3), **flags)
    assert error.note == "the left one has 3 columns, the right one 4 rows."
    assert error.hint == "write '{arg}.T' to multiply by its transpose."
    assert refusal("matmul", f32(2, 3), f32(4, 2), **flags).hint is None


def test_an_index_array_stands_where_numpy_puts_it() -> None:
    x, rows = f32(N, 3, 4), TensorType(types.i64, (M,))
    assert result_type("gather", x, rows, axes=(1,)).shape == (N, M, 4)
    assert result_type("gather", x, rows, rows, axes=(0, 1)).shape == (M, 4)
    assert result_type("gather", x, rows, rows, axes=(0, 2)).shape == (M, 3)


def test_symbolic_shapes_flow_through_movements() -> None:
    x = f32(N, M)
    assert result_type("reshape", x, shape=(M * N,)).shape == (N * M,)
    assert result_type("transpose", x, axes=(1, 0)).shape == (M, N)
    assert result_type("concatenate", x, f32(N, 2), axis=1).shape == (N, M + 2)
    assert result_type("pad", x, types.PY_INT, before=(1, 0), after=(M, 2)).shape == (
        N + M + 1, M + 2
    )
    assert result_type("sum", x, axes=(0,), keepdims=True).shape == (1, M)


def test_every_relation_is_a_function_of_types_alone() -> None:
    """Typing an op twice gives equal types: verification relies on it."""
    for op in OPS.values():
        for sample in op.samples:
            operands = [type_of(a) for a in sample.args]
            if op.binds or op.promotion.value != "none":
                continue
            first = op.relation(tuple(operands), sample.attrs)
            assert first == op.relation(tuple(operands), sample.attrs), op.name
