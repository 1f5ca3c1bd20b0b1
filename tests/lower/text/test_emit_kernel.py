"""The text of kernels: canonical, precise, readable, and the tree that was meant."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pytest
from lowered import function_of

import pyrelay
import pyrelay.ops  # registers the ops
from pyrelay.errors import SourceText, Span
from pyrelay.ir import dims
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DTYPES, TensorType, c64, f32, f64, i64, u64
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.text.emit_kernel import emit, header
from pyrelay.lower.text.printing import unparse
from pyrelay.lower.text.spelling import literal

N = Symbol("n")
n = dims.of(N)


def chain(b: Any, x: Any, w: Any) -> Any:
    return OPS["tanh"](x * w + 1) * OPS["exp"](-(x * x))


def text_of(function: Any) -> str:
    return emit(kernelise(function).kernels[0])


def test_a_kernel_reads_like_the_formula_it_computes() -> None:
    assert text_of(function_of([TensorType(f32, (n,))] * 2, chain, [N])) == (
        "from pyrelay.devices.compiler.vocabulary import "
        "exp, f32, load_f32, param_i64, store_f32, tanh\n"
        "\n"
        "def kernel(block, begin, end):\n"
        "    a0 = param_i64(block, 1)\n"
        "    a1 = param_i64(block, 2)\n"
        "    o0 = param_i64(block, 3)\n"
        "    for i0 in range(begin, end):\n"
        "        x0 = load_f32(a0, i0)\n"
        "        store_f32(o0, i0, tanh(x0 * load_f32(a1, i0) + f32(1.0)) * exp(-(x0 * x0)))\n"
        "    return 0\n"
    )


def test_equal_kernels_of_different_programs_are_the_same_text() -> None:
    other = Symbol("batch")
    a = function_of([TensorType(f32, (n,))] * 2, chain, [N])
    b = function_of([TensorType(f32, (dims.of(other),))] * 2, chain, [other])
    assert text_of(a) == text_of(b)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, f64, "0.1"), (float(np.float32(0.1)), f32, "f32(0.1)"), (-0.0, f64, "-0.0"),
        (float("-inf"), f32, "f32(-inf)"), (float("nan"), f64, "nan"), (-(2**63), i64, None),
        (2**64 - 1, u64, "u64(-1)"), (7, DTYPES["i8"], "i8(7)"), (True, DTYPES["bool"], "True"),
        (1.5 - 2j, c64, "c64(f32(1.5), f32(-2.0))"), (1e300, f64, "1e+300"),
    ],
)  # fmt: skip
def test_literals_are_exact(value: Any, dtype: Any, text: str | None) -> None:
    printed = unparse(ast.Module([ast.Expr(literal(value, dtype))], [])).strip()
    assert printed == (text or str(value))


def test_the_header_shows_the_user_s_lines_and_stays_out_of_the_text() -> None:
    source = SourceText("model.py", ("def f(x, w):", "    return tanh(x * w + 1)"), 10)
    span = Span(source, 11, 11, 11, 26, "f")

    def body(b: Any, x: Any, w: Any) -> Any:
        with b.at(span):
            return chain(b, x, w)

    function = function_of([TensorType(f32, (n,))] * 2, body, [N])
    (kernel,) = kernelise(function).kernels
    assert header(kernel) == "# model.py\n#    11 | return tanh(x * w + 1)\n"
    assert "model" not in emit(kernel)


def test_long_expressions_are_cut_into_lines() -> None:
    def body(b: Any, x: Any) -> Any:
        for _ in range(100):
            x = x * 1.5 + 0.5
        return x

    text = text_of(function_of([TensorType(f32, (n,))], body, [N]))
    assert max(map(len, text.splitlines())) < 250
    ast.parse(text)


def filtered(x: Any, w: Any) -> Any:
    out = np.zeros(3)
    for i in range(3):
        total = 0.0
        for a in range(w.shape[0]):
            for b in range(w.shape[1]):
                total += x[i + a, b] * w[a, b]
        out[i] = total
    return out


def test_short_loops_around_loops_do_not_look_for_ctrl_c() -> None:
    fast = pyrelay.jit(filtered)
    rng = np.random.default_rng(0)
    for shape in [(1, 1), (2, 3), (0, 2), (2, 1023), (2, 1024), (1024, 1), (1025, 2)]:
        x, w = rng.random((shape[0] + 3, shape[1])), rng.random(shape)
        np.testing.assert_array_equal(fast(x, w), filtered(x, w))
    text = fast.code(x, w)
    short = text[text.rindex("else:") :]
    assert short.count("for ") >= 2
    assert "poll(" not in short[: short.index("store_")]


def widest(heights: Any, top: Any) -> Any:
    n = len(heights)
    stack, most = np.zeros(n, np.int64), 0
    for i in range(n - top):
        while top > 0 and heights[stack[top - 1]] >= heights[i]:
            top -= 1
            most = max(most, i - stack[top])
        stack[top] = i
        top += 1
    return most


def test_loops_around_while_loops_that_stand_twice_look_for_ctrl_c_in_blocks() -> None:
    fast = pyrelay.jit(widest)
    heights = np.random.default_rng(0).integers(0, 20, 50)
    for top in (0, 3):  # of which no round knows that it begins inside
        assert fast(heights, top) == widest(heights, top)
    text = fast.code(heights, 0)
    assert text.count("while True:") == 2
    assert "for start0 in" in text
    assert "rounds = rounds - 1\n" not in text


def lived(alive: Any, steps: int) -> Any:
    for _ in range(steps):
        turned = (np.roll(np.roll(alive, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1))
        count = sum(each.astype(np.int8) for each in turned)
        alive = (count == 3) | (alive & (count == 4))
    return alive


def test_no_loop_of_many_has_the_name_of_a_cast() -> None:
    fast, alive = pyrelay.jit(lived), np.random.default_rng(0).random((6, 7)) < 0.4
    np.testing.assert_array_equal(fast(alive, 3), lived(alive, 3))
    loops = set(re.findall(r"for (i\d+) in", fast.code(alive, 3)))
    assert "i9" in loops
    assert "i8" not in loops


def triangle(a: Any) -> Any:
    out = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(j):
                total += a[i, k] * a[j, k]
            out[i, j] = a[i, j] - total
    return out


def test_a_loop_around_one_that_ends_at_its_index_is_short_or_not() -> None:
    fast = pyrelay.jit(triangle)
    for n in (0, 1, 5, 40):
        a = np.random.default_rng(0).random((n, n))
        np.testing.assert_allclose(fast(a), triangle(a), rtol=1e-12)


def pushed(x: Any, v: Any) -> Any:
    v = v.copy()
    for i in range(len(x)):
        force = np.zeros(3)
        for j in range(len(x)):
            if i != j:
                r = x[j] - x[i]
                force += r / (r @ r)
        v[i] += force
    return v


def scattered(x: Any, n: int) -> Any:
    inside = 0
    for i in range(n):
        if x[i % 7] * x[i % 5] < 0.5:
            inside += 1
    return inside


def mixed(blocks: Any) -> Any:
    words = np.zeros(32, dtype=np.uint32)
    for q in range(len(blocks)):
        for i in range(16):
            words[i] = blocks[q, i]
        for i in range(16, 32):
            w = words[i - 15]
            words[i] = words[i - 16] + ((w >> np.uint32(7)) | (w << np.uint32(25)))
    return words


def test_kernels_with_rows_of_a_few_elements_say_so() -> None:
    x, v = np.random.default_rng(0).random((2, 5, 3))
    fast = pyrelay.jit(pushed)
    # NumPy's product of vectors adds up in the order of its library, which hangs on the CPU.
    np.testing.assert_allclose(fast(x, v), pushed(x, v), rtol=1e-14)
    assert "SHORT_ROWS = True" in fast.code(x, v)
    assert "SHORT_ROWS" not in pyrelay.jit(scattered).code(x[0], 9)
    assert "SHORT_ROWS" not in pyrelay.jit(mixed).code(np.ones((3, 16), dtype=np.uint32))


def test_kernels_say_whether_llvm_counts_from_round_to_round() -> None:
    """Where rounds go through neighbours, as rows of arrays do, it need not."""
    x = np.random.default_rng(0).random((40, 30))
    assert "STEPS = True" in pyrelay.jit(scattered).code(x[0], 9)
    assert "STEPS = True" in pyrelay.jit(lambda x: x.T * 2.0).code(x)
    assert "STEPS = True" in pyrelay.jit(lambda x: x * 2.0).code(x + 1j)
    for function in (lambda x: np.exp(x) + 1.0, lambda x: x - x.max(axis=1, keepdims=True)):
        assert "STEPS" not in pyrelay.jit(function).code(x)


def steps_by(x: Any, factor: Any) -> Any:
    for i in range(1, len(x)):
        if x[i] > 0.0:
            x[i] += factor * x[i - 1]
        else:
            x[i] = 0.0
    return x[-1] + x[0]


@pytest.mark.parametrize("factor", [0.5, np.inf, np.nan])
def test_a_factor_that_stays_the_same_does_not_hold_up_a_loop(factor: float) -> None:
    x = np.array([1.0, 2.0, -1.0, 0.5])
    slopes = pyrelay.grad(lambda x, factor: steps_by(x.copy(), factor))
    np.testing.assert_array_equal(slopes(x, factor), [1.0, 0.0, 0.0, 1.0])
    text = slopes.code(x, factor)
    assert re.search(r"where\(logical_and\(not (s\d) - \1 == 0.0", text)


def test_windows_of_known_size_do_not_count_the_rounds_that_were_counted_before() -> None:
    def means(x: Any) -> Any:
        out = np.empty((x.shape[0] - 2, x.shape[1] - 2))
        for i in range(x.shape[0] - 2):
            for j in range(x.shape[1] - 2):
                s = 0.0
                for u in range(3):
                    for v in range(3):
                        s += x[i + u, j + v]
                out[i, j] = s / 9.0
        return out

    x = np.arange(30.0).reshape(5, 6)
    np.testing.assert_array_equal(pyrelay.jit(means)(x), means(x))
    text = str(pyrelay.jit(means).code(x))
    piece = text.split("for start0 in ")[1].split("    for i1 in ")
    assert "rounds - (stop0 - start0) * 13" in piece[0]
    assert "rounds" not in piece[1].split("# plan")[0]


def test_loops_around_loops_of_known_length_look_for_ctrl_c_once_in_many_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyrelay.lower.text.emit_kernel.POLL_ROUNDS", 20)

    def walked(y: Any, steps: int) -> Any:
        for _ in range(steps):
            y = y + 0.1 * np.array([y[1], -y[0]])
        return y

    text = str(pyrelay.jit(walked).code(np.array([1.0, 2.0]), 5))
    pieces, rounds = text.split("for start0 in ")[1].split("    for i0 in ")
    assert "poll(block)" in pieces
    assert "poll" not in rounds
    assert "rounds" not in rounds
    y = np.array([1.0, 0.0])
    for steps in (-1, 0, 1, 29, 100):  # more than one piece
        np.testing.assert_array_equal(pyrelay.jit(walked)(y, steps), walked(y, steps))
