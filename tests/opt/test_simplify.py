"""Identities: each is exact, so NaN, infinities and the sign of zero stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_programs import do, single
from passes import after, assert_same_runs, core, loops, ops, run

from pyrelay.ir import dims
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f64
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.simplify import simplify
from tests.ops.calling import program

X = np.array([1.5, -0.0, 0.0, np.nan, np.inf, -np.inf, -2.0])
C = np.array([1.5 + 2j, complex(-0.0, 0.0), complex(np.inf, 1.0), complex(0.0, -0.0)])
A = np.arange(6.0).reshape(2, 3)
B = np.arange(24.0).reshape(2, 3, 4)


def _simple(function: Callable[..., Any], *args: Any) -> Any:
    before = core(function, *args)
    module = after(before, fold, simplify, dce)
    assert_same_runs(before, module, args)
    for mine, theirs in zip(run(module, args), run(before, args), strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
    return module


NOTHING: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
    (lambda x: x * 1.0, (X,)),
    (lambda x: 1 * x, (X,)),
    (lambda x: x / 1, (X,)),
    (lambda x: x - 0.0, (X,)),
    (lambda x: x + -0.0, (X,)),
    (lambda x: np.negative(-x), (X,)),
    (lambda x: x.conj().conj(), (C,)),
    (lambda x: x.conj(), (X,)),
    (lambda x: x - 0, (C,)),
    (lambda n: (n + 0) * 1 - 0, (5,)),
    (lambda x: ~~x, (np.arange(3),)),
    (lambda x: x.astype(x.dtype), (X,)),
    (lambda a: a.T.T, (A,)),
    (lambda b: b.transpose(2, 0, 1).transpose(1, 2, 0), (B,)),
    (lambda a: a.reshape(3, 2).reshape(2, 3), (A,)),
    (lambda a: np.squeeze(np.expand_dims(a, 1), 1), (A,)),
    (lambda a: a[:, :], (A,)),
    (lambda a: np.array(np.broadcast_to(a, a.shape)), (A,)),
    (lambda x: np.float32(np.float64(x)), (np.float32(1.5),)),
    (lambda a: a.astype(np.float64).astype(np.float32), (A.astype(np.float32),)),
    (lambda x: np.where(True, x, 0.0), (X,)),
)


@pytest.mark.parametrize(("function", "args"), NOTHING, ids=range(len(NOTHING)))
def test_what_changes_nothing_goes(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert not ops(_simple(function, *args))


SOMETHING: tuple[tuple[Callable[..., Any], tuple[Any, ...], str], ...] = (
    (lambda x: x + 0.0, (X,), "add"),
    (lambda x: x - -0.0, (X,), "subtract"),
    (lambda x: 0.0 - x, (X,), "subtract"),
    (lambda x: x * 0.0, (X,), "multiply"),
    (lambda x: x / -1.0, (X,), "divide"),
    (lambda x: x * 1.0, (C,), "multiply"),
    (lambda x: x / 1.0, (C,), "divide"),
    (lambda x: x + 0.0, (C,), "add"),
    (lambda x: x * np.float64(1.0), (np.arange(3),), "cast"),
    (lambda a: np.exp(a).reshape(3, 2).T.reshape(-1), (A,), "transpose"),
)


@pytest.mark.parametrize(("function", "args", "name"), SOMETHING, ids=range(len(SOMETHING)))
def test_what_changes_a_bit_or_a_type_stays(
    function: Callable[..., Any], args: tuple[Any, ...], name: str
) -> None:
    assert ops(_simple(function, *args))[name] == 1


def test_an_infinity_in_place_of_nan_is_the_greater_or_the_lesser() -> None:
    assert ops(_simple(lambda x: np.where(np.isnan(x), -np.inf, x), X)) == {"fmax": 1}
    assert ops(_simple(lambda x: np.where(np.isnan(x), np.inf, x), X)) == {"fmin": 1}
    assert ops(_simple(lambda x: np.where(np.isnan(x), 0.0, x), X))["where"] == 1
    assert ops(_simple(lambda x: np.where(np.isnan(x), -np.inf, x[::-1]), X))["where"] == 1


def _chain(*steps: tuple[str, dict[str, Any]]) -> Any:
    """Ops without operands but the one before, on an array of shape 2, 3, 4; simplified."""

    def body(b: Any, x: Any) -> list[Any]:
        for name, attrs in steps:
            x = do(b, name, x, **attrs)
        return [x]

    before = single("f", {"x": TensorType(f64, (2, 3, 4))}, body)
    module = after(before, simplify, dce)
    assert_same_runs(before, module, (B,))
    return module


def test_chains_of_transposes_and_reshapes_become_one_or_none() -> None:
    turn = ("transpose", {"axes": (1, 2, 0)})
    shapes = [("reshape", {"shape": s}) for s in ((4, 6), (8, 3), (2, 12), (2, 3, 4))]
    assert ops(_chain(turn, turn)) == {"transpose": 1}
    assert not ops(_chain(turn, turn, turn))
    assert ops(_chain(*shapes[:3])) == {"reshape": 1}
    assert not ops(_chain(*shapes))
    assert ops(_chain(turn, shapes[0])) == {"transpose": 1, "reshape": 1}


def test_axes_put_in_and_taken_out_again_go() -> None:
    assert not ops(_chain(("expand_dims", {"axes": (1,)}), ("squeeze", {"axes": (1,)})))
    wide = _chain(("expand_dims", {"axes": (0, 1)}), ("squeeze", {"axes": (0,)}))
    assert ops(wide) == {"expand_dims": 1, "squeeze": 1}


def test_products_take_up_the_transposes_of_their_operands() -> None:
    def program(a: Any, b: Any) -> Any:
        return a.T @ a, a @ a.T, (a.T @ a).T @ a.T, b.transpose(0, 2, 1) @ b

    assert ops(_simple(program, A, B)) == {"matmul": 5}


def test_what_nobody_reads_is_not_written() -> None:
    def written(b: Any, x: Any, i: Any) -> Any:
        return b.call(OPS["index_update"], x, b.undef(TensorType(f64, ())), i, axes=(0,))

    assert not ops(after(program((X, 2), written), simplify, dce))


def test_an_element_just_written_or_filled_in_is_not_read_from_memory() -> None:
    def program(x: Any, i: Any, v: Any) -> Any:
        y = np.zeros(x.shape[0])
        first = y[i]
        y[i] = v
        y[2] = v * 2.0
        return first, y[2], y

    module = _simple(program, X, 1, 3.0)
    assert ops(module)["index"] == 0
    assert ops(module)["index_update"] == 2


def test_the_only_element_along_axes_is_no_choice() -> None:
    def program(x: Any) -> Any:
        top = np.max(x, axis=1, keepdims=True)
        return np.sum(x - top, axis=1) + top[:, 0], top[0, 0]

    module = _simple(program, np.arange(6.0).reshape(2, 3))
    assert ops(module)["squeeze"] == 1
    assert ops(module)["index"] == 1


def test_an_element_beside_the_one_written_is_read() -> None:
    def program(x: Any, i: Any) -> Any:
        x = x.copy()
        x[i] = 7.0
        return x[1] + x[i]

    before = core(program, X, 2)
    module = after(before, cse, simplify, dce)
    assert ops(module)["index"] == 1
    for i in (2, 1):
        assert_same_runs(before, module, (X, i))


def test_branch_results_that_agree_leave_the_branch() -> None:
    def program(x: Any, n: Any) -> Any:
        k, z = 0, x
        if n > 2:
            y, k, z = np.exp(x), 5, x
        else:
            y, k, z = np.sin(x), 5, x
        return y, k, z

    module = _simple(program, X, 3)
    (node,) = (let for let in module.main.body.lets if hasattr(let.rhs, "then"))
    assert len(node.outs) == 1


def test_carried_values_that_never_change_leave_the_loop() -> None:
    def program(x: Any, n: Any) -> Any:
        a, b, total = x, 2.0, x
        while n > 0:
            a, b = a, b
            total = total * b + a
            n -= 1
        return total, a, b

    module = _simple(program, 1.5, 3)
    (loop,) = loops(module)
    assert len(loop.carried) == 2
    assert_same_runs(core(program, 1.5, 3), module, (1.5, 0))


def test_carried_values_that_never_change_leave_loops_whose_arrays_grow() -> None:
    def program(x: Any, n: Any) -> Any:
        rows, kept = [], [v * 2.0 for v in x]
        for i in range(n):
            rows.append(x[i % 2])
            kept[i % 3] = x[0]
        return rows, kept

    module = _simple(program, X, 5)
    for loop in loops(module):
        following = loop.body.results[loop.exits :]
        assert not any(a is b for a, b in zip(loop.carried, following, strict=True))
        assert not any(dims.of(d) == e for d, e in zip(loop.dims, loop.body.dims, strict=True))
    assert_same_runs(core(program, X, 5), module, (X, 7))


def test_adding_to_a_place_and_subtracting_from_it_do_not_write_what_stands_there() -> None:
    def program(x: Any, i: Any, v: Any) -> Any:
        x = x.copy()
        x[i] += v
        x[1] = v - x[1]
        x[i] -= v * x[0]
        x[0] = x[0] + x[0]
        return x

    before = core(program, np.arange(4.0), 2, 0.7)
    module = after(before, simplify, cse, simplify, dce)
    assert_same_runs(before, module, (np.arange(4.0), 2, 0.7))
    found = ops(module)
    assert (found["index_add"], found["index_update"]) == (3, 1)


def _filled(*parts: tuple[int, Any], width: int = 6, value: float = 0.0) -> Any:
    """A module that adds columns, computed from x, to an array from some column on."""

    def body(b: Any, x: Any) -> Any:
        z = b.full(value, (2, width), f64)
        for start, make in parts:
            part = make(x)
            z = b.call(
                OPS["slice_add"], z, part, starts=(0, start), sizes=part.shape, steps=(1, 1)
            )
        return z

    return program((ZEROS,), body)


def _columns(start: int, size: int) -> Any:
    return lambda x: OPS["slice"](-x, starts=(0, start), sizes=(2, size), steps=(1, 1))


ZEROS = np.array([[0.0, -0.0, 1.5], [np.nan, -np.inf, -0.0]])
LEFT, RIGHT, ALL = _columns(0, 2), _columns(1, 2), _columns(0, 3)


@pytest.mark.parametrize(
    "module",
    [_filled((4, LEFT), (0, RIGHT), (2, LEFT)), _filled((0, ALL), (3, ALL))],
    ids=["three", "two"],
)
def test_parts_that_fill_an_array_of_zeros_are_joined(module: Any) -> None:
    joined = after(module, simplify, dce)
    found = ops(joined)
    assert found["concatenate"] == 1
    assert found["slice_add"] == found["broadcast_to"] == 0
    (mine,), (theirs,) = run(joined, (ZEROS,)), run(module, (ZEROS,))
    assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize(
    "module",
    [
        _filled((0, LEFT), (4, RIGHT)), _filled((0, LEFT), (2, ALL), width=5),
        _filled((0, ALL), (3, ALL), value=1.0),
        _filled((0, ALL), width=3),
    ],
    ids=["a gap", "two sizes", "onto ones", "the whole"],
)
def test_parts_that_do_not_just_fill_an_array_are_added(module: Any) -> None:
    assert not ops(after(module, simplify, dce))["concatenate"]


def test_comparisons_of_numbers_are_both_made() -> None:
    def inside(k, n):
        return k >= 0 and k < n

    def outside(k, n):
        return k < 0 or k >= n

    def chained(k, n):
        return 0 <= k < n

    for function in (inside, outside, chained):
        module = _simple(function, 3, 5)
        assert not ops(module)["if"]
        for k in (-1, 0, 4, 5):
            assert_same_runs(core(function, 3, 5), module, (k, 5))


def test_what_may_raise_waits_for_its_condition() -> None:
    module = _simple(lambda k, x: k < 7 and x[k] > 0.0, 3, X)
    assert ops(module)["if"] == 1
