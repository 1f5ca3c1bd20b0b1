"""bfloat16 of ml_dtypes: the types and numbers of plain Python with NumPy, on the CPU and emulated.

Sums of many are rounded once (decision 0032): here they are of a few numbers, or compared loosely.
"""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ml_dtypes = pytest.importorskip("ml_dtypes")
brain = ml_dtypes.bfloat16

rng = np.random.default_rng(0)
X, Y = (rng.normal(size=12).astype(brain) for _ in range(2))
A, B = rng.normal(size=(4, 5)).astype(brain), rng.normal(size=(5, 3)).astype(brain)
S = brain(1.5)
K = np.arange(12)
#: Ties and what lies beside them, what float32 rounds away before, what is too large or small.
TIES = np.array([
    1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 1e-12, 1 + 2**-8 + 1e-6, 70000.3, 3.38e38, 3.4e38, 1e300,
    -1e39, 1e-40, 1e-45, 1e-60, np.inf, -np.inf, np.nan, -0.0,
])  # fmt: skip


@dataclasses.dataclass
class Layer:
    weights: Any
    bias: Any


def little(x: Any, s: Any, a: Any, b: Any, ties: Any) -> Any:
    """Some of everything."""
    x[1:3] *= 2
    x[0] += s
    return (
        x * x + 1, x * 0.1, s * 2, s * 0.1, x + np.float16(1), ties.astype(brain), a @ b,
        np.dot(a, b), x.max(), np.where(x > s, x, s), float(x[0]), np.zeros(2, brain),
    )  # fmt: skip


def promoted(x: Any, s: Any, k: Any) -> Any:
    """A Python float beside a bfloat16 makes a float32, small integers do not."""
    return (
        x + 1, x + 1.5, x * 1e40, x + True, x + s, s + 1, 1 + s, s + 0.1, s + np.float32(1),
        np.float64(1) + s, s + np.float16(1), s * np.int64(2), x + k, x + k.astype(np.int16),
        x + k.astype(np.int8), x + (k > 3), x + x.astype(np.float16), x * 1j, x / 3, 2 / x, x // 2,
        x % 2.0, x**2, x**2.0, abs(x) ** 0.5, s**2.0, np.maximum(x, 0), np.maximum(x, 0.0),
        np.where(x > 0, x, 0), np.where(x > 0, x, 0.0), np.clip(x, -1, 1), x.clip(max=s), x > 0.1,
        x == s, s > 1.1, np.concatenate([x, k.astype(np.uint8)]), np.stack([x, x.astype("f8")]),
    )  # fmt: skip


def elements(x: Any, y: Any, s: Any) -> Any:
    return (
        x * y + x, np.exp(x) * np.tanh(y), np.sqrt(abs(x)), -x, np.arctan2(x, y), divmod(x, y),
        np.sign(x), np.floor(x), np.round(x), np.hypot(x, y), np.log1p(abs(x)), np.isnan(x),
        np.logical_and(x, y), x[x > 0], x[::2], x[[1, 1]], x.reshape(3, 4).T, np.sort(x), x.max(),
        x.argmin(), np.diff(x), x[:2].sum(), x[:2].mean(), x.any(), np.degrees(x), np.modf(x),
        float(s), int(s), s.item(), f"{s} {s:.3f} {x[0]}", x.tolist(), sorted(x[:3]), sum(x[:2]),
        max(s, x[0]), [v * 2 for v in x], 0.0 if s > 1 else s, s if s > 1 else 0.0,
    )  # fmt: skip


def products(a: Any, b: Any, x: Any) -> Any:
    """NumPy multiplies matrices of bfloat16 as float32, but np.dot gives bfloat16."""
    return (
        a @ b, a @ x[:5], x @ x, np.matmul(a, b), np.dot(a, b), a.dot(b), np.inner(x, x),
        np.vdot(x, x), np.tensordot(a, b, 1), np.outer(x, x), a @ b.astype(np.float16),
        np.vecdot(x, x), a @ np.ones((5, 2), np.int32),
    )  # fmt: skip


def created(x: Any, s: Any, ties: Any) -> Any:
    return (
        np.zeros(3, brain), np.ones((2, 2), "bfloat16"), np.full(3, 1.1, brain), np.full(2, s),
        np.arange(4, dtype=brain), np.array([1, 2.5], brain), np.array([s, s]), np.zeros_like(x),
        np.linspace(0, 1, 3, dtype=brain), np.eye(2, dtype=brain), np.identity(2, brain), brain(3),
        brain(1.1), brain(s), brain(np.float32(1.1)), np.float32(s), x.dtype == brain, x.dtype.name,
        x.itemsize, np.issubdtype(x.dtype, np.floating), isinstance(s, np.floating), s.dtype,
        ties.astype(brain), ties.astype(np.float32).astype(brain),
        ties.astype(np.float16).astype(brain), (ties > 1).astype(brain), x.astype(np.int8),
        x.astype(np.float16), x.astype(bool), (2**25 + 2**17 + np.arange(3)).astype(brain),
        x + ml_dtypes.finfo(brain).eps,
    )  # fmt: skip


def written(x: Any, layer: Any, given: Any) -> Any:
    """Arrays in place, objects, dicts, numbers that go around loops."""
    x += 1
    x *= 2.0
    x[2] = 1.1
    x[3:5] -= x[:2]
    x[x > 2] = 0
    x[0] += np.float32(0.3)
    for n in range(1, len(x)):
        x[n] = x[n - 1] * brain(0.5) + x[n]
    layer.weights *= 2
    layer.bias = layer.bias + brain(1)
    total, steps = given["start"], 0
    while total < 3:
        total, steps = total * brain(1.1), steps + 1
    mixed = brain(0)
    for value in x:
        mixed = mixed + value * 0.5
    return {"x": x, "last": (total, steps)}, Layer(np.tanh(layer.weights), mixed), given


CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (promoted, (X, S, K)), (elements, (X, Y, S)), (products, (A, B, X)), (created, (X, S, TIES)),
    (written, (X, Layer(A, S), {"start": S})),
]  # fmt: skip
LITTLE = (little, (X, S, A, B, TIES))


def same(got: Any, wanted: Any) -> bool:
    """Equal classes, types, shapes and numbers; sums of float32 may be in another order."""
    if dataclasses.is_dataclass(wanted):
        return type(got) is type(wanted) and same(vars(got), vars(wanted))
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(same(got[k], wanted[k]) for k in wanted)
    if isinstance(wanted, (list, tuple)):
        return type(got) is type(wanted) and len(got) == len(wanted) and all(map(same, got, wanted))
    if not isinstance(wanted, (np.ndarray, np.generic)):
        return type(got) is type(wanted) and bool(got == wanted)
    if (type(got), got.dtype, got.shape) != (type(wanted), wanted.dtype, wanted.shape):
        return False
    if wanted.dtype == brain:
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
        return np.array_equal(got, wanted, equal_nan=True)
    if wanted.dtype.kind == "f":
        return np.allclose(got, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
    return np.array_equal(got, wanted)


def assert_like_python(function: Any, args: tuple[Any, ...], device: str) -> None:
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    found = pyrelay.jit(function, device=device)(*mine)
    with np.errstate(all="ignore"):
        wanted = function(*theirs)
    for place, pair in enumerate(zip(found, wanted, strict=True)):
        assert same(*pair), (place, *pair)
    assert same(mine, theirs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of plain NumPy
@pytest.mark.parametrize(
    ("function", "args"), [LITTLE, *(pytest.param(*c, marks=pytest.mark.slow) for c in CASES)]
)
def test_results_are_those_of_plain_python(function: Any, args: tuple[Any, ...]) -> None:
    assert_like_python(function, args, "cpu")


@needs_compiler
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("function", "args"), [LITTLE, *CASES])
def test_gpus_give_the_same(function: Any, args: tuple[Any, ...]) -> None:
    assert_like_python(function, args, "cuda_emulator")


def test_sums_are_rounded_once() -> None:
    ones = np.ones((1000, 2), brain)
    found = pyrelay.jit(lambda a: (a.sum(axis=0), a.mean()))(ones)
    assert [np.asarray(f).dtype for f in found] == [np.dtype(brain)] * 2
    assert [np.asarray(f).tolist() for f in found] == [[1000.0, 1000.0], 1.0]


def little_loss(x: Any, w: Any) -> Any:
    return (np.tanh(x @ w).astype(x.dtype) ** 2 * brain(0.5)).sum()


def loss(x: Any, w: Any) -> Any:
    hidden = np.tanh(x @ w).astype(x.dtype)
    hidden[1:] *= hidden[0]
    raised = np.exp(hidden - hidden.max(axis=1, keepdims=True))
    total = (raised / raised.sum(axis=1, keepdims=True)).sum() + np.maximum(hidden, 0).mean()
    for row in hidden:
        total = total + row[0] * row[1] / 4
    return total


@pytest.mark.parametrize(("function", "device"), [
    (little_loss, "cpu"), pytest.param(loss, "cpu", marks=pytest.mark.slow),
    pytest.param(loss, "cuda_emulator", marks=[needs_compiler, pytest.mark.slow]),
])  # fmt: skip
def test_gradients_have_the_type_of_the_argument_and_are_close(function: Any, device: str) -> None:
    mine = pyrelay.grad(function, argnums=(0, 1), device=device)(A, B)
    wanted = pyrelay.grad(function, argnums=(0, 1))(A.astype(np.float64), B.astype(np.float64))
    for got, exact in zip(mine, wanted, strict=True):
        assert got.dtype == brain
        np.testing.assert_allclose(got.astype(float), exact, rtol=0.05, atol=0.02)
    assert type(pyrelay.grad(lambda s: s * s * s)(brain(2))) is brain


@pytest.mark.parametrize(("function", "said"), [
    (lambda x: np.einsum("i,i", x, x), "einsum does not take bfloat16"),
    (lambda x: round(x[0]), "no __round__"),
    (lambda x: np.nextafter(x, x), "does not take bfloat16"),
    (lambda x: np.spacing(x), "does not take bfloat16"),
    (lambda x: np.where(x > 0, x, np.arange(12)), "no common element type"),
    (lambda x: np.concatenate([x, x.astype(np.float16)]), "no common element type"),
    (lambda x: np.arange(x[0]), "array of objects"), (lambda x: np.nanmax(x), "not left out"),
])  # fmt: skip
def test_what_numpy_does_not_do_is_refused(function: Any, said: str) -> None:
    with pytest.raises(pyrelay.PyrelayError, match=said) as caught:
        pyrelay.jit(function)(X)
    assert "test_bfloat16.py" in str(caught.value)


WITHOUT = """
import sys
import pyrelay
assert "ml_dtypes" not in sys.modules
sys.modules["ml_dtypes"] = None
from pyrelay.ir.types import bf16
try:
    bf16.numpy
except pyrelay.UnsupportedOperationError as error:
    print(error)
"""


def test_the_package_is_imported_late_and_asked_for_where_it_is_not_there() -> None:
    root = Path(pyrelay.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True, cwd=root
    )
    assert "needs the package ml_dtypes" in done.stdout
    assert "pip install pyrelay[bfloat16]" in done.stdout


def test_a_thread_of_a_gpu_takes_eight_elements_at_once() -> None:
    module = lowered(inferred(lambda x, y: x * y + x, (X, Y)).module, "fuse")
    (text,) = plan_code(plan(module, TARGET)).texts
    assert "#define PACK 8" in text.source
    assert "Buffer<const bf16>" in text.source
    assert "f64" not in text.source
