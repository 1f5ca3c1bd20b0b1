"""Attention as one kernel of a GPU: layouts, masks, batches, tiles that are not full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices.gpu import cuda_attention
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.T) @ v


def heads(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    return softmax(scores) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = q.T @ k / np.sqrt(q.shape[0])
    place = np.arange(scores.shape[1])
    scores = np.where(place[None, :] > place[: scores.shape[0], None], -np.inf, scores)
    return softmax(scores) @ v.T


def arguments(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


CALLS: dict[str, tuple[Any, list[Any]]] = {
    "several tiles of each": (plain, arguments((37, 40), (70, 40), (70, 67))),
    "turned, causal": (causal, arguments((5, 40), (5, 40), (9, 40))),
    "heads": (
        heads,
        [*arguments((2, 3, 9, 4), (3, 34, 4), (2, 1, 34, 6), (9, 34), dtype=np.float32), 0.5],
    ),
}


def together(calls: Any) -> Any:
    """All calls in one program, so that they are compiled together."""
    (a, b, c) = calls
    return plain(*a), causal(*b), heads(*c)


@needs_compiler
@pytest.mark.slow
def test_attention_gives_what_numpy_gives() -> None:
    calls = tuple(tuple(args) for _, args in CALLS.values())
    compiled = pyrelay.jit(together, device=ON)
    for got, wanted in zip(compiled(calls), together(calls), strict=True):
        assert got.dtype == wanted.dtype
        tolerance = 1e-5 if got.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    # Another text for scores that the program shapes; that of float32 is shaped as well.
    assert compiled.code(calls).count("PYRELAY_SHARED(f64, left") == 2


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("precision", "tolerance"), [("tf32", 2e-3), ("bf16", 2e-2)])
def test_tensor_cores_multiply_float32_as_the_setting_says(
    precision: str, tolerance: float
) -> None:
    def two(calls: Any) -> Any:
        (a, b) = calls
        return plain(*a), heads(*b)

    calls = tuple(
        tuple(a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in CALLS[name][1])
        for name in ("several tiles of each", "heads")
    )
    exact = two(calls)
    with config.override(matmul_precision=precision):
        found = pyrelay.jit(two, device=ON)(calls)
    for got, wanted in zip(found, exact, strict=True):
        assert got.dtype == np.float32
        error = abs(got - wanted).max() / abs(wanted).max()
        assert tolerance / 100 < error < tolerance  # rounded, and no more than that


def test_scores_have_no_memory_and_one_launch_does_all() -> None:
    for function, args in CALLS.values():
        module = lowered(inferred(function, tuple(args)).module, "fuse")
        made = plan_code(plan(module, TARGET))
        texts = [text.source for text in (*made.texts, *(forms[0] for forms in made.with_forms()))]
        assert sum("i64 k_turned" in text for text in texts) == 1
        assert not any(launch.product for launch in made.launches)


@needs_compiler
def test_rows_without_a_score_and_guarded_ones() -> None:
    def guarded(q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = np.where(mask, q @ k.T, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        e = np.exp(scores - np.where(top == -np.inf, 0.0, top))
        total = e.sum(axis=-1, keepdims=True)
        return (e / np.where(total == 0.0, 1.0, total)) @ v

    q, k, v = arguments((3, 4), (40, 4), (40, 5))
    mask = np.ones((3, 40), bool)
    mask[1], mask[2, :35] = False, False
    got = pyrelay.jit(guarded, device=ON)(q, k, v, mask)
    np.testing.assert_allclose(got, guarded(q, k, v, mask), rtol=1e-12, atol=1e-13)
    assert (got[1] == 0.0).all()


@dataclass
class Run:
    precision: int


def test_a_launch_has_the_form_for_its_precision_and_its_heads() -> None:
    three = cuda_attention.Forms((0, 1, 2), narrow=64)
    two = cuda_attention.Forms((1, 0, 0), narrow=64)
    by_parts = cuda_attention.Forms((2, 1, 0))
    found = [
        [eval(forms.chosen(depth, width), {"run": Run(precision)})
         for depth, width in (("64", "64"), ("65", "8"), ("8", "65")) for precision in range(3)]
        for forms in (three, two, by_parts, cuda_attention.ONE)
    ]  # fmt: skip
    assert found == [
        [3, 4, 5, 0, 1, 2, 0, 1, 2], [3, 2, 2, 1, 0, 0, 1, 0, 0], [2, 1, 0] * 3, [0] * 9
    ]
    assert [forms.count for forms in (three, two, by_parts, cuda_attention.ONE)] == [6, 4, 3, 1]


def test_forms_are_texts_of_their_own_that_calls_compile() -> None:
    args = tuple(arguments((37, 40), (70, 40), (70, 67), dtype=np.float32))
    made = plan_code(plan(lowered(inferred(plain, args).module, "fuse"), TARGET))
    ((texts, first),) = made.with_forms().items()
    assert not made.texts
    assert len({text.source for text in texts}) == first.forms == len(made.late) == 6
    assert "[run.precision] + 3 * (" in made.source


@needs_compiler
def test_turned_operands_come_as_whole_tiles_and_as_parts_of_some() -> None:
    compiled = pyrelay.jit(causal, device=ON)
    for places, lines in ((64, 128), (64, 70), (40, 128)):
        args = arguments((places, lines), (places, lines), (lines, lines), dtype=np.float32)
        exact = causal(*(a.astype(float) for a in args))
        for precision, bound in (("highest", 1e-6), ("tf32", 2e-3)):
            with config.override(matmul_precision=precision):
                found = compiled(*args)
            assert abs(found - exact).max() / abs(exact).max() < bound


def test_a_block_of_tensor_cores_has_128_rows_of_narrow_heads() -> None:
    args = tuple(arguments((37, 40), (70, 40), (70, 40), dtype=np.float32))
    made = plan_code(plan(lowered(inferred(plain, args).module, "fuse"), TARGET))
    ((forms, _),) = made.with_forms().items()
    attends = ("ByThreads, 2", "ByWarps<1, 1>, 2", "ByWarps<2, 1>, 2", "ByThreads, 1",
               "ByWarps<1, 2>, 1", "ByWarps<2, 2>, 1")  # fmt: skip
    for form, attend in zip(forms, attends, strict=True):
        assert f"attend<{attend}>(" in form.source
        assert ("steps = (blocks + 2 - 1) / 2" in form.source) == ("2>, 1" in attend)
