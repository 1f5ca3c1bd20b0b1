"""What kernels take of a multiprocessor, by NVIDIA's compilers alone: no GPU is needed.

python -m benchmarks.gpu_resources   prints a table of Markdown

In: the programs below. Out: for the kernels of each, as a GPU would be given them, what `ptxas -v`
says for `sm_90`: the most registers of a thread, bytes of shared memory and of stack, spilled
bytes. NVRTC makes the PTX as CuPy would load it; `ptxas` comes with `pip install nvidia-cuda-nvcc`
or the CUDA toolkit, and is looked for on the path.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pyrelay
from benchmarks import gpu_programs as gpu
from benchmarks.gpu_programs import f32
from pyrelay.devices.gpu.cuda_compiler import OPTIONS, unit
from pyrelay.devices.gpu.cuda_library import TARGET, is_known
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered

_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Resources:
    """The kernels of a program: how many, and the most that one of them takes; spilled bytes of
    all."""

    kernels: int
    registers: int
    shared: int
    stack: int
    spilled: int


def argmax(x: Any) -> Any:
    return np.argmax(x, axis=1), x.max(axis=1)


def largest_so_far(x: Any) -> Any:
    return np.maximum.accumulate(x)


def chosen(x: Any) -> Any:
    return x[x > 0]


def counted(x: Any, i: Any) -> Any:
    y = np.zeros(1000, x.dtype)
    np.add.at(y, i, x)
    return y


def histogram(x: Any) -> Any:
    return np.histogram(x, bins=64, range=(-4.0, 4.0))[0]


def depth(n: Any) -> Any:
    return n if n < 2 else depth(n - 1) + depth(n - 2)


def recursion(x: Any) -> Any:
    y = np.zeros(x.size, np.int64)
    for k in range(x.size):
        y[k] = depth(x[k])
    return y


def f16(*shape: int) -> Any:
    return np.zeros(shape, np.float16)


def image_layer(x: Any, w: Any, b: Any, z: Any) -> Any:
    y = pyrelay.nn.conv2d(x, w, b, padding=1)
    return z + np.maximum(y, 0)


def image_loss(x: Any, w: Any) -> Any:
    y = pyrelay.nn.conv2d(x, w, padding=1).astype(np.float32)
    return (y * y).sum()


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    place = np.arange(q.shape[-2])
    scores = q @ k.swapaxes(-1, -2)
    return gpu.softmax_of(np.where(place[:, None] >= place, scores, np.float32(-np.inf))) @ v


def half_causal(q: Any, k: Any, v: Any) -> Any:
    return causal_attention(*(x.astype(np.float32) for x in (q, k, v))).astype(np.float16)


def half_causal_loss(q: Any, k: Any, v: Any) -> Any:
    return (half_causal(q, k, v).astype(np.float32) ** 2).sum()


def masked_attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return gpu.softmax_of(q @ k.swapaxes(-1, -2) + mask) @ v


def attention_loss(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    return (gpu.attention(q, k, v).astype(np.float16).astype(np.float32) ** 2).sum()


def running_product(x: Any) -> Any:
    return np.cumprod(x)


_GATES = f32(256, 256), f32(256, 1024), f32(256, 1024), f32(1024)
_WHICH = np.zeros(1 << 12, np.int64)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (gpu.elementwise, (f32(1 << 12),) * 3),
    "softmax": (gpu.softmax, (f32(64, 512),)),
    "layer norm": (gpu.layer_norm, (f32(64, 512), f32(512), f32(512))),
    "cross entropy": (gpu.cross_entropy, (f32(64, 512), np.zeros(64, np.int64))),
    "gradient of cross entropy": (
        pyrelay.grad(gpu.cross_entropy), (f32(64, 512), np.zeros(64, np.int64))
    ),
    "gradient of softmax": (pyrelay.grad(gpu.softmax_loss), (f32(64, 512),)),
    "sum of squares": (gpu.total, (f32(1 << 12),)),
    "column sums": (gpu.column_sums, (f32(64, 512),)),
    "argmax and maximum of rows": (argmax, (f32(64, 512),)),
    "running sum": (gpu.running_sum, (f32(1 << 12),)),
    "gradient of a running product": (
        pyrelay.grad(lambda x: running_product(x).sum()), (f32(1 << 12),)
    ),
    "largest so far": (largest_so_far, (f32(1 << 12),)),
    "gradient of largest so far": (
        pyrelay.grad(lambda x: largest_so_far(x).sum()), (f32(1 << 12),)
    ),
    "elements chosen by a mask": (chosen, (f32(1 << 12),)),
    "scatter": (counted, (f32(1 << 12), _WHICH)),
    "histogram": (histogram, (f32(1 << 12),)),
    "gradient of rows picked": (pyrelay.grad(gpu.picked), (f32(64, 512), _WHICH)),
    "sort": (gpu.ordered, (f32(1 << 12),)),
    "attention": (gpu.attention, (f32(2, 64, 64),) * 3),
    "causal attention": (causal_attention, (f32(2, 64, 64),) * 3),
    "attention with a mask": (masked_attention, (*(f32(2, 64, 64),) * 3, f32(64, 64))),
    "gradient of attention": (
        pyrelay.grad(lambda q, k, v: (gpu.attention(q, k, v) ** 2).sum(), argnums=(0, 1, 2)),
        (f32(2, 64, 64),) * 3,
    ),
    "attention in float16": (gpu.attention, (f16(2, 64, 64),) * 3),
    "causal attention in float16": (half_causal, (f16(2, 64, 64),) * 3),
    "gradient of causal attention in float16": (
        pyrelay.grad(half_causal_loss, argnums=(0, 1, 2)), (f16(2, 64, 64),) * 3
    ),
    "gradient of attention in float16": (
        pyrelay.grad(attention_loss, argnums=(0, 1, 2)), (f16(2, 64, 64),) * 3
    ),
    "convolution, bias, activation, residual": (
        image_layer, (f32(2, 8, 9, 9), f32(8, 8, 3, 3), f32(8), f32(2, 8, 9, 9)),
    ),
    "the same in float16": (
        image_layer, (f16(2, 8, 9, 9), f16(8, 8, 3, 3), f16(8), f16(2, 8, 9, 9)),
    ),
    "convolution and its gradients in float16": (
        pyrelay.value_and_grad(image_loss, argnums=(0, 1)), (f16(2, 8, 9, 9), f16(8, 8, 3, 3)),
    ),
    "LSTM": (gpu.lstm, _GATES),
    "LSTM, several at once": (gpu.lstm_batch, (f32(16, 64, 256), *_GATES[1:])),
    "gradient of the LSTM": (pyrelay.grad(gpu.lstm_loss, argnums=(1, 2, 3)), _GATES),
    "character generator": (
        gpu.characters, (f32(256), f32(256, 256), f32(256, 96), np.int64(-1))
    ),
    "conjugate gradients": (gpu.conjugate_gradients, (f32(64, 64), f32(64), np.float32(1))),
    "native recursion": (recursion, (_WHICH[:64],)),
}  # fmt: skip


def texts_of(
    function: Callable[..., Any], args: Sequence[Any], *, every_form: bool = True
) -> list[Text]:
    """The kernels that a GPU is given before the first call of a program, those of loops for any
    extents, all forms of those that have several (or the first), and the library's that are
    compiled when a call needs them."""
    specialised = pyrelay.jit(function)._specialised(args, {})
    module = lowered(specialised.module, "fuse", on="cuda_emulator")
    made = plan_code(plan(module, TARGET))
    forms = [text for texts in made.with_forms() for text in (texts if every_form else texts[:1])]
    library = [text for text in made.late if is_known(text.source)]
    return list(dict.fromkeys((*made.texts, *made.of_loops(), *forms, *library)))


def ptx(texts: Sequence[Text], arch: str = "compute_90") -> str:
    """PTX of kernels, by NVRTC as CuPy loads it. Raises RuntimeError with NVRTC's log."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(unit(texts), "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch={arch}", "-default-device", *OPTIONS))
        made: str | bytes = nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        raise RuntimeError(nvrtc.getProgramLog(program)) from error
    finally:
        nvrtc.destroyProgram(program)
    return made.decode() if isinstance(made, bytes) else made


def resources(text: str) -> Resources:
    """What `ptxas` says of the kernels of some PTX."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.ptx"
        file.write_text(text)
        done = subprocess.run(
            ["ptxas", "-v", "-arch=sm_90", "-o", str(file.with_suffix(".cubin")), str(file)],
            capture_output=True, text=True, check=True,
        )
    return read(done.stderr)


def read(said: str) -> Resources:
    """What `ptxas -v` has printed, as numbers."""
    stacks = [tuple(map(int, found)) for found in _STACK.findall(said)]
    registers = [int(found) for found in _USED.findall(said)]
    return Resources(
        len(registers), max(registers, default=0),
        max(map(int, _SHARED.findall(said)), default=0),
        max((stack for stack, _, _ in stacks), default=0),
        sum(stores + loads for _, stores, loads in stacks),
    )


def table(found: dict[str, Resources]) -> str:
    """All as a table of Markdown."""
    lines = [
        "| program | kernels | registers | shared memory | stack | spilled |",
        "|---|---|---|---|---|---|",
    ]
    for name, r in found.items():
        lines.append(
            f"| {name} | {r.kernels} | {r.registers} | {r.shared} | {r.stack} | {r.spilled} |"
        )
    return "\n".join(lines)


def main() -> None:
    if shutil.which("ptxas") is None:
        raise SystemExit("ptxas is not on the path: pip install nvidia-cuda-nvcc")
    print(table({
        name: resources(ptx(texts_of(*program))) for name, program in PROGRAMS.items()
    }))


if __name__ == "__main__":
    main()
