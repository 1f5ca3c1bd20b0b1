"""`make gpu-bench`: programs on a GPU, timed; without one, what they ask of it is counted.

python -m benchmarks.gpu [OUT]   prints a table last; with OUT, a folder, writes gpu.json there,
                                 and gpu_times.json where there is a GPU, after each program

A kernel on a GPU that is not compute-bound lasts as long as its bytes take, so they are what can be
known beforehand: the bytes that its loads and stores ask for, over the fewest possible, each array
of a fused group read or written once. Times are those of `gpu_timing`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import pyrelay
from benchmarks import gpu_timing
from pyrelay.devices import cuda
from pyrelay.devices.gpu import cuda_library
from pyrelay.errors import DeviceError
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir import dims, interp, walk
from pyrelay.ir.nodes import Atom, KernelCall, Let, Loop, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.traffic import moved
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.planning.normalise import kernels_only
from pyrelay.pipeline import lowered

ENOUGH, LIMIT = 480.0, 570.0
"""Seconds after which no program is begun, and after which all ends."""


@dataclass(frozen=True)
class Row:
    """A program: its kernels, those that a block shares, products of matrices; bytes that kernels
    ask for, the least that they could ask for, those of arguments and results."""

    program: str
    kernels: int
    by_blocks: int
    products: int
    moved: int
    least: int
    failed: str = ""
    outer: int = 0


def elementwise(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x * w + b) * np.exp(-x * x)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    return centred / deviation * scale + shift


def cross_entropy(x: Any, y: Any) -> Any:
    shifted = x - x.max(axis=1, keepdims=True)
    sums = np.log(np.exp(shifted).sum(axis=1))
    return (sums - shifted[np.arange(y.size), y]).mean()


def total(x: Any) -> Any:
    return (x * x).sum()


def column_sums(x: Any) -> Any:
    return x.sum(axis=0)


def perceptron(x: Any, w: Any, v: Any, y: Any) -> Any:
    error = np.tanh(x @ w) @ v - y
    return (error * error).sum()


def f32(*shape: int) -> Any:
    """Zeros: only their shape and dtype count."""
    return np.zeros(shape, np.float32)


def bf16(*shape: int) -> Any:
    """The same of bfloat16."""
    import ml_dtypes

    return np.zeros(shape, ml_dtypes.bfloat16)


#: What programs in bfloat16 are made of is installed.
HAS_BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None


def softmax_loss(x: Any) -> Any:
    return (softmax(x) * x).sum()


def lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    n = wh.shape[0]
    h, c = b[:n] * 0, b[:n] * 0
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        forget, keep, give = (1 / (1 + np.exp(-z[k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = forget * c + keep * np.tanh(z[2 * n : 3 * n])
        h = give * np.tanh(c)
    return h


def lstm_batch(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    """The same for several sequences at once, steps first."""
    n = wh.shape[0]
    h = (x[0] @ wx)[:, :n] * 0
    c = h
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        forget, keep, give = (1 / (1 + np.exp(-z[:, k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = forget * c + keep * np.tanh(z[:, 2 * n : 3 * n])
        h = give * np.tanh(c)
    return h


def lstm_loss(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    h = lstm(x, wx, wh, b)
    return (h * h).sum()


def small_kernels(x: Any) -> Any:
    for _ in range(17):
        total = (x * x).sum()
        x = np.tanh(x) + x / total
    return x


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))) @ v


def softmax_of(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def dense(x: Any, w: Any) -> Any:
    return (x @ w).astype(x.dtype)


def transformer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, up: Any, down: Any) -> Any:
    """A block of 16 heads: attention and a perceptron, each after a normalisation."""
    n, d = x.shape
    rows = normalised(x)
    q, k, v = (dense(rows, w).reshape(n, 16, d // 16).swapaxes(0, 1) for w in (wq, wk, wv))
    mixed = attention(q, k, v).astype(x.dtype).swapaxes(0, 1).reshape(n, d)
    x = x + dense(mixed, wo)
    return x + dense(np.maximum(dense(normalised(x), up), 0), down)


def normalised(x: Any) -> Any:
    wide = x.astype(np.float32)
    centred = wide - wide.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
    return (centred / deviation).astype(x.dtype)


def two_layers(x: Any, up: Any, down: Any, y: Any) -> Any:
    error = dense(np.maximum(dense(x, up), 0), down) - y
    return (error * error).sum()


def running_sum(x: Any) -> Any:
    return np.cumsum(x)


def searched(edges: Any, x: Any) -> Any:
    return np.searchsorted(edges, x)


def histogram(x: Any) -> Any:
    return np.histogram(x, bins=64, range=(-4.0, 4.0))[0]


def row_sums(x: Any) -> Any:
    return x.sum(axis=1)


def place_of_largest(x: Any) -> Any:
    return x.argmax()


def picked(table: Any, i: Any) -> Any:
    return (table[i] * table[i]).sum()


#: What is counted: the function, its arguments, and how many rounds its loop takes, if it has one.
PROGRAMS: dict[str, Any] = {
    "elementwise 1M": (elementwise, (f32(1 << 20), f32(1 << 20), f32(1 << 20))),
    "softmax 4096x512": (softmax, (f32(4096, 512),)),
    "layer norm 4096x512": (layer_norm, (f32(4096, 512), f32(512), f32(512))),
    "sum of squares 1M": (total, (f32(1 << 20),)),
    "column sums 4096x512": (column_sums, (f32(4096, 512),)),
    "softmax 8x128k": (softmax, (f32(8, 1 << 17),)),
    "sums of 8 rows of 1M": (row_sums, (f32(8, 1 << 20),)),
    "argmax of 16M": (place_of_largest, (f32(1 << 24),)),
    "4k places among 1k": (searched, (f32(1 << 10), f32(1 << 12))),
    "gradient of softmax": (pyrelay.grad(softmax_loss), (f32(4096, 512),)),
    "gradient of perceptron": (
        pyrelay.grad(perceptron, argnums=(1, 2)),
        (f32(64, 784), f32(784, 256), f32(256, 10), f32(64, 10)),
    ),
    "cross entropy 4096x512": (cross_entropy, (f32(4096, 512), np.zeros(4096, np.int64))),
    "gradient of cross entropy": (
        pyrelay.grad(cross_entropy), (f32(4096, 512), np.zeros(4096, np.int64))
    ),
    "LSTM of 256 steps, 256 wide": (
        lstm, (f32(256, 256), f32(256, 1024), f32(256, 1024), f32(1024)), 256
    ),
    "transformer block 512 x 256": (
        transformer, (f32(512, 256), *(f32(256, 256),) * 4, f32(256, 1024), f32(1024, 256))
    ),
}  # fmt: skip
if HAS_BFLOAT16:
    PROGRAMS["elementwise 1M in bfloat16"] = elementwise, tuple(bf16(1 << 20) for _ in range(3))
    PROGRAMS["layer norm 4096x512 in bfloat16"] = normalised, (bf16(4096, 512),)


def characters(state: Any, w: Any, u: Any, stop: Any) -> Any:
    """A generator of characters that ends when the likeliest one is `stop`."""
    count = 0
    while count < 256:
        state = np.tanh(state @ w)
        if np.argmax(state @ u) == stop:
            break
        count += 1
    return state, count


def ordered(x: Any) -> Any:
    return np.sort(x)


def conjugate_gradients(a: Any, b: Any, least: Any) -> Any:
    """The solution of a system, to where the residual is small: no more rounds than it takes."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r
    size = (r * r).sum()
    while size > least:
        ap = a @ p
        step = size / (p * ap).sum()
        x = x + step * p
        r = r - step * ap
        new = (r * r).sum()
        p = r + (new / size) * p
        size = new
    return x


def system(n: int) -> tuple[Any, Any, Any]:
    """A matrix whose neighbours hang together, so that some hundred rounds are needed."""
    a = (2.001 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)).astype(np.float32)
    return a, noise(n), np.float32(1e-2)


def noise(*shape: int) -> Any:
    """Numbers in no order, for programs whose course hangs on them."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


#: What is timed: the function, the arguments of its gradient or None, arguments.
TIMED: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
    **{
        f"elementwise {n >> 20}M": (elementwise, None, (f32(n), f32(n), f32(n)))
        for n in (1 << 20, 1 << 24, 1 << 28, 1 << 30)
    },
    **{
        f"softmax {n}x{rows >> 10}k": (softmax, None, (f32(n, rows),))
        for n, rows in ((1 << 15, 1 << 10), (1 << 12, 1 << 13), (256, 1 << 17))
    },
    "softmax 4096x512": (softmax, None, (f32(4096, 512),)),
    "softmax 512x32768": (softmax, None, (f32(512, 1 << 15),)),
    "softmax 8x128k": (softmax, None, (f32(8, 1 << 17),)),
    "sums of 8 rows of 1M": (row_sums, None, (f32(8, 1 << 20),)),
    "argmax of 16M": (place_of_largest, None, (noise(1 << 24),)),
    "16M places among 1k": (searched, None, (np.sort(noise(1 << 10)), noise(1 << 24))),
    "histogram of 16M in 64 bins": (histogram, None, (noise(1 << 24),)),
    "layer norm 4096x512": (layer_norm, None, (f32(4096, 512), f32(512), f32(512))),
    "sum of squares 16M": (total, None, (f32(1 << 24),)),
    "column sums 4096x512": (column_sums, None, (f32(4096, 512),)),
    "gradient of softmax": (softmax_loss, 0, (f32(4096, 512),)),
    "gradient of perceptron": (
        perceptron, (1, 2), (f32(64, 784), f32(784, 256), f32(256, 10), f32(64, 10))
    ),
    "LSTM of 64 steps, 32 wide": (
        lstm, None, (f32(64, 32), f32(32, 128), f32(32, 128), f32(128))
    ),
    "LSTM of 256 steps, 256 wide": (
        lstm, None, (f32(256, 256), f32(256, 1024), f32(256, 1024), f32(1024))
    ),
    "LSTM of 256 steps, 256 wide, 64 at once": (
        lstm_batch, None, (f32(256, 64, 256), f32(256, 1024), f32(256, 1024), f32(1024))
    ),
    "gradient of that LSTM, one sequence": (
        lstm_loss, (1, 2, 3), (f32(256, 256), f32(256, 1024), f32(256, 1024), f32(1024))
    ),
    "characters, 256 wide": (
        characters, None, (f32(256), f32(256, 256), f32(256, 96), np.int64(-1))
    ),
    "attention of 16 heads, 1024 by 64": (attention, None, (f32(16, 1024, 64),) * 3),
    "running sum of 16M": (running_sum, None, (f32(1 << 24),)),
    "sort of 1M": (ordered, None, (noise(1 << 20),)),
    "sort of 4096 rows of 512": (ordered, None, (noise(4096, 512),)),
    "conjugate gradients, 4096 unknowns": (conjugate_gradients, None, system(4096)),
    "gradient of 8192 rows of 30k, 512 wide": (
        picked, 0, (f32(30_000, 512), np.arange(8192) * 7919 % 30_000)
    ),
    "51 operations on 10k": (small_kernels, None, (f32(10_000),)),
    "transformer block 2048 x 1024 in TF32": (
        transformer, None,
        (*(f32(2048, 1024),), *(f32(1024, 1024),) * 4, f32(1024, 4096), f32(4096, 1024)),
    ),
    "training of a perceptron 1024-4096-1024, 4096 rows, in TF32": (
        two_layers, (1, 2), (f32(4096, 1024), f32(1024, 4096), f32(4096, 1024), f32(4096, 1024))
    ),
}  # fmt: skip
if HAS_BFLOAT16:
    TIMED["elementwise 16M in bfloat16"] = elementwise, None, (bf16(1 << 24),) * 3
    for _name in [name for name in TIMED if name.endswith(" in TF32")]:
        _function, _argnums, _args = TIMED[_name]
        TIMED[_name.replace("TF32", "bfloat16")] = (
            _function, _argnums, tuple(bf16(*a.shape) for a in _args)
        )


#: Bytes that a program has to move at least, where that is what it lasts as long as.
LEAST = {
    **{f"elementwise {n >> 20}M": 16 * n for n in (1 << 20, 1 << 24, 1 << 28, 1 << 30)},
    **{f"softmax {n}x{m >> 10}k": 8 * n * m
       for n, m in ((1 << 15, 1 << 10), (1 << 12, 1 << 13), (256, 1 << 17))},
    "softmax 4096x512": 1 << 24, "softmax 512x32768": 1 << 27, "layer norm 4096x512": 1 << 24,
    "elementwise 16M in bfloat16": 1 << 27,
    "softmax 8x128k": 1 << 23, "sums of 8 rows of 1M": 1 << 25, "argmax of 16M": 1 << 26,
    "16M places among 1k": 3 << 26, "histogram of 16M in 64 bins": 1 << 26,
    "sum of squares 16M": 1 << 26, "column sums 4096x512": 1 << 23, "running sum of 16M": 1 << 27,
}  # fmt: skip


def measured(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], rounds: int = 0
) -> Row:
    """The kernels of a program, and their bytes; of loops, which take so many `rounds`, those of a
    round, each time again.

    Raises ValueError for one with other control flow.
    """
    compiled = pyrelay.jit(function)
    # The passes of any GPU; the emulator is one that is always there.
    fused = lowered(compiled._specialised(args, {}).module, "fuse", on="cuda_emulator")
    module = kernels_only(fused, cuda_library.TARGET)
    flat = Flattened()
    flatten([(arg, "argument") for arg in args], flat)
    extents = interp.bind_extents(module.main, flat.leaves, {})
    row = Row(name, 0, 0, 0, 0, 0)
    for let in module.main.body.lets:
        row = _counted(row, let, extents, rounds)
    ends = [a for a in module.main.body.results if isinstance(a, Var)]
    given = (*module.main.params, *(a for a in ends if a not in module.main.params))
    return replace(row, outer=sum(_bytes(atom, extents) for atom in given))


def _counted(row: Row, let: Let, extents: Any, rounds: int) -> Row:
    """A row with what one Let adds to it. Raises ValueError for control flow that is no loop of so
    many rounds."""
    if isinstance(let.rhs, Loop) and rounds:
        inner = Row(row.program, 0, 0, 0, 0, 0)
        for each in let.rhs.body.lets:
            inner = _counted(inner, each, extents, 0)
        own = {o for each in let.rhs.body.lets for o in each.outs} | {*let.rhs.carried}
        read = {a for each in let.rhs.body.lets for a in walk.operands(each.rhs)} - own
        least = sum(_bytes(a, extents) for a in (*read, *let.rhs.init, *let.outs))
        return Row(
            row.program, row.kernels + inner.kernels, row.by_blocks + inner.by_blocks,
            row.products + inner.products, row.moved + rounds * inner.moved, row.least + least,
        )
    if not isinstance(let.rhs, (KernelCall, OpCall)):
        raise ValueError("programs with control flow are not counted")
    if isinstance(let.rhs, OpCall):
        is_product = getattr(let.rhs.op, "schedule", None) == "matmul"
        return replace(row, products=row.products + is_product)
    values = [dims.evaluate(d, extents) for d in let.rhs.dims]
    inside = dict(zip(let.rhs.function.dims, values, strict=True))
    lowering = kernelise(let.rhs.function, splits=True)
    arrays = dict.fromkeys((*let.rhs.args, *let.outs))
    least = sum(_bytes(array, extents) for array in arrays)
    if lowering.attention is not None:
        # A kernel of the library, which keeps scores to itself; its arrays count once.
        return replace(
            row, kernels=row.kernels + 1, by_blocks=row.by_blocks + 1, moved=row.moved + least,
            least=row.least + least,
        )
    long = lowering.long
    few = long is not None and dims.evaluate(long.when, inside)
    found = long.kernels if long is not None and few else lowering.kernels
    return replace(
        row, kernels=row.kernels + len(found),
        by_blocks=row.by_blocks + sum(cooperation(kernel) is not None for kernel in found),
        moved=row.moved + sum(
            moved(kernel, values, dims.evaluate(kernel.extent, inside)) for kernel in found
        ),
        least=row.least + least,
    )


def _bytes(atom: Atom, extents: Any) -> int:
    ty = atom.type
    if not isinstance(ty, TensorType) or not ty.shape:
        return 0
    return int(dims.evaluate(dims.product((*ty.shape, ty.dtype.size)), extents))


def table(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = [
        "| program | kernels | by blocks | products | MB moved | MB least | ratio "
        "| MB of arguments and results |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        if r.failed:
            lines.append(f"| {r.program} | {r.failed} | | | | | | |")
            continue
        ratio = f"{r.moved / r.least:.2f}" if r.least else "-"
        lines.append(
            f"| {r.program} | {r.kernels} | {r.by_blocks} | {r.products} | {r.moved / 1e6:.2f} "
            f"| {r.least / 1e6:.2f} | {ratio} | {r.outer / 1e6:.2f} |"
        )
    return "\n".join(lines)


def counted() -> list[Row]:
    """The rows of all programs; what fails is told in its own."""
    rows = []
    for name, program in PROGRAMS.items():
        try:
            rows.append(measured(name, *program))
        except Exception as error:
            rows.append(Row(name, 0, 0, 0, 0, 0, f"{type(error).__name__}: {error}"))
    return rows


def main() -> None:
    rows = counted()
    _write("gpu.json", rows)
    print(table(rows), end="\n\n", flush=True)
    try:
        driver = cuda.driver()
    except DeviceError as error:
        print(f"Nothing is timed: {error.message}")
        return
    known: list[gpu_timing.Timing] = []

    def note(found: list[gpu_timing.Timing]) -> None:
        known[:] = found
        _write("gpu_times.json", found)

    def tell() -> None:
        print(f"{driver.name}\n\n{gpu_timing.table(known)}", flush=True)

    def give_up() -> None:
        tell()
        os._exit(1)

    # A kernel that does not end must not take the other times with it.
    watch = threading.Timer(LIMIT, give_up)
    watch.daemon = True
    watch.start()
    gpu_timing.timings(sys.modules[__name__], driver.cupy, ENOUGH, note)
    watch.cancel()
    tell()


def _write(name: str, rows: Sequence[Any]) -> None:
    """Write rows into the folder that was asked for."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
