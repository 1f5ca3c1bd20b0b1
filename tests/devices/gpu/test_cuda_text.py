"""What kernels are for a GPU: texts that NVIDIA's compiler accepts for compute_90.

NVRTC is taken from CuPy where that is installed (the extras cuda12 and cuda13), else nvcc from the
path. Nothing here needs a GPU.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks import gpu_programs
from benchmarks.gpu_resources import PROGRAMS as FAMILIES
from benchmarks.gpu_resources import ptx, texts_of
from pyrelay.devices.gpu import (
    cuda_attention,
    cuda_convolution,
    cuda_library,
    cuda_scans,
    cuda_scatters,
    cuda_single_attention,
    cuda_sorted_adds,
    cuda_sorts,
    word_texts,
)
from pyrelay.devices.gpu.cuda_compiler import OPTIONS, unit
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.errors import PyrelayError
from pyrelay.ir.types import DTYPES, bool_, f32, f64, i64
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Slot
from pyrelay.lower.planning.plan import plan
from pyrelay.lower.planning.target import BACK, FORWARD, WEIGHTS
from pyrelay.ops.running import RUNNING
from pyrelay.ops.scalar import SCALARS
from pyrelay.pipeline import lowered
from tests.devices.gpu.test_cuda_attention import CALLS as ATTENTION
from tests.devices.test_cuda_emulator import SAMPLE
from tests.infer.running import inferred
from tests.ops.test_scalar import applicable, cuda_kernel, spelled_in_cuda
from tests.opt.test_half_attention import causal
from tests.programs import PROGRAMS, Program


def _compiler() -> str:
    if importlib.util.find_spec("cupy_backends") is not None:
        from cupy_backends.cuda.libs import nvrtc

        with contextlib.suppress(Exception):  # CuPy has no class for a library that is missing
            nvrtc.getVersion()
            return "nvrtc"
    return "nvcc" if shutil.which("nvcc") else ""


COMPILER = _compiler()
ON = "cuda_emulator"  # whose passes are those of a GPU
needs_nvidia = pytest.mark.skipif(
    not COMPILER, reason="needs NVRTC (pip install pyrelay[cuda13]) or nvcc"
)


def assert_compiles(sources: list[str], tmp_path: Path) -> str:
    """All texts as one unit, as a GPU gets them; the PTX."""
    texts = [Text(source, ()) for source in dict.fromkeys(sources)]
    if COMPILER == "nvrtc":
        made = ptx(texts)
        assert ".target sm_90" in made
        return made
    file = tmp_path / "kernels.cu"
    file.write_text(unit(texts))
    options = ["-arch=compute_90", *OPTIONS, "-o", str(tmp_path / "kernels.ptx")]
    command = ["nvcc", "-ptx", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (tmp_path / "kernels.ptx").read_text()


def kernels_of(programs: Iterable[Program]) -> Iterator[str]:
    """The kernels of programs of the corpus."""
    for program in programs:
        for args in program.arguments()[:1]:
            try:
                module = lowered(inferred(program.function, args).module, "fuse", on=ON)
            except PyrelayError:  # a program that is refused for these arguments
                continue
            # With scalars of the device taken by their addresses, as a GPU gets them.
            made = plan_code(plan(module, TARGET))
            yield from (text.source for text in (*made.texts, *made.late))


@needs_nvidia
def test_every_kernel_of_a_sample_of_the_corpus_compiles(tmp_path: Path) -> None:
    kernels = list(kernels_of(p for p in PROGRAMS if p.name in SAMPLE))
    assert len(kernels) >= len(SAMPLE)
    assert_compiles(kernels, tmp_path)


@needs_nvidia
@pytest.mark.slow
def test_every_kernel_of_the_corpus_compiles(tmp_path: Path) -> None:
    kernels = list(kernels_of(PROGRAMS))
    assert len(kernels) > 100
    assert_compiles(kernels, tmp_path)


@pytest.mark.slow
@needs_nvidia
def test_every_scalar_primitive_and_cast_compiles(tmp_path: Path) -> None:
    kernels = []
    for dtype in DTYPES.values():
        texts = [(spelled_in_cuda(s, dtype), s.result_dtype(dtype)) for s in applicable(dtype)]
        texts += [(SCALARS["cast"].cuda(to).format("a"), to) for to in DTYPES.values()]
        kernels.append(cuda_kernel(texts, dtype))
    assert_compiles(kernels, tmp_path)


@needs_nvidia
def test_native_recursion_compiles(tmp_path: Path) -> None:
    made = texts_of(*FAMILIES["native recursion"])
    assert any("__device__ int routine" in text.source for text in made)
    assert_compiles([text.source for text in made], tmp_path)


@needs_nvidia
@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_of_programs_compiles(tmp_path: Path, name: str) -> None:
    """Loops as one kernel and derivatives among them."""
    made = texts_of(*FAMILIES[name], every_form=False)
    assert_compiles([text.source for text in made], tmp_path)


@needs_nvidia
def test_products_of_matrices_compile(tmp_path: Path) -> None:
    assert_compiles([cuda_library.matmul(dtype, 2) for dtype in DTYPES.values()], tmp_path)


@needs_nvidia
@pytest.mark.slow
def test_convolutions_compile_and_use_tensor_cores(tmp_path: Path) -> None:
    kernels = [
        cuda_convolution.text_of(cuda_convolution.Variety(dtype, what, last))
        for dtype in (f32, f64) for what in (FORWARD, WEIGHTS, BACK) for last in (False, True)
    ]  # fmt: skip
    made = assert_compiles(kernels, tmp_path)
    for shape in ("m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k16.row.col.f32.bf16.bf16.f32"):
        assert f"mma.sync.aligned.{shape}" in made


@needs_nvidia
@pytest.mark.slow
def test_scans_and_scatters_compile_for_every_dtype(tmp_path: Path) -> None:
    kernels = []
    for dtype in (i64, DTYPES["u64"], f32, f64, DTYPES["c64"], DTYPES["c128"]):
        running = [op.name for step, op in RUNNING.items() if SCALARS[step].takes(dtype)]
        for name in ("cumsum", "cumprod", "linear_scan", "steady_scan", *running):
            made = [cuda_scans.scan(name, dtype, side) for side in (False, True)]
            kernels += [text for each in made for text in (each.totals, each.scan) if text]
        for name, axes in (("scatter_add", 1), ("scatter_add", 3), ("scatter_update", 2)):
            of = cuda_scatters.scatter(name, dtype, axes)
            kernels += [text for text in (of.source, *of.many, of.few) if text]
        for to_zeros in (False, True):
            adds = cuda_sorted_adds.sorted_adds(dtype, to_zeros)
            kernels += [*adds.added, adds.finished]
    assert_compiles(kernels, tmp_path)


@needs_nvidia
@pytest.mark.slow
def test_sorting_compiles(tmp_path: Path) -> None:
    halves = DTYPES["u16"], DTYPES["f16"], DTYPES["bf16"]
    made = [
        cuda_sorts.sort(name, dtype, wide, in_loop) for dtype in (bool_, f32, f64, i64, *halves)
        for name, wide in (("sort", False), ("argsort", False), ("argsort", True))
        for in_loop in (False, True)
    ]
    texts = {text for each in made for text in (each.lines, each.count, each.move)}
    assert_compiles(sorted(texts), tmp_path)


@pytest.mark.slow
def test_scalars_of_the_device_and_what_guessing_needs_compile(tmp_path: Path) -> None:
    steps: list[Any] = [ins.Select(0, Slot(1), Slot(2), Slot(3))]
    steps += [ins.Unary(op, 0, Slot(1)) for op in word_texts.UNARY]
    steps += [ins.Binary(op, 0, Slot(1), Slot(2)) for op in word_texts.BINARY]
    steps += [ins.Checked(op, 0, Slot(1), Slot(2), 0) for op in word_texts.CHECKED]
    made = [word_texts.computing(step).source for step in steps]
    own = (cuda_library.GATE, cuda_library.COPY, cuda_library.ZERO, cuda_library.element_put())
    assert_compiles([*made, *(text.source for text in own)], tmp_path)


@pytest.mark.slow
@needs_nvidia
def test_attention_and_convolutions_over_halves_compile(tmp_path: Path) -> None:
    kernels = [
        TARGET.half_convolution(DTYPES[of], DTYPES[of], what, last).source  # type: ignore[misc]
        for of in ("f16", "bf16") for what in (FORWARD, WEIGHTS, BACK) for last in (True, False)
    ]
    kernels += [
        TARGET.half_attention(DTYPES[of], DTYPES[made], rounded).source  # type: ignore[misc]
        for of in ("f16", "bf16") for made in ("f32", of) for rounded in (True, False)
    ]
    args = tuple(np.ones((2, 5, 4), np.float16) for _ in range(3))
    module = lowered(inferred(causal, args).module, "fuse", on="cuda_emulator")
    made = plan_code(plan(module, TARGET))
    kernels += [text.source for text in (*made.texts, *made.late)]
    text = assert_compiles(kernels, tmp_path)
    for of in ("f16", "bf16"):
        assert f"mma.sync.aligned.m16n8k16.row.col.f32.{of}.{of}.f32" in text


@pytest.mark.slow
@needs_nvidia
def test_derivatives_of_attention_compile(tmp_path: Path) -> None:
    kernels = [TARGET.attention_gradient(f64).source]  # type: ignore[misc]
    kernels += [
        TARGET.half_attention_gradient(DTYPES[of]).source  # type: ignore[union-attr]
        for of in ("f16", "bf16")
    ]
    assert_compiles(kernels, tmp_path)


@pytest.mark.slow
@needs_nvidia
@pytest.mark.parametrize("form", range(6))
def test_forms_of_the_derivative_of_attention_compile(tmp_path: Path, form: int) -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return (causal(q, k, v) ** 2).sum()

    args = tuple(np.ones((2, 5, 4), np.float32) for _ in range(3))
    module = lowered(inferred(pyrelay.grad(loss), args).module, "fuse", on="cuda_emulator")
    (forms,) = (
        [text.source for text in texts]
        for texts in plan_code(plan(module, TARGET)).with_forms()
        if "void sum_up(" in texts[0].source
    )
    assert len(forms) == 6
    assert "turned(record" in forms[form]
    assert_compiles([forms[form]], tmp_path)


@pytest.mark.slow
def test_attention_compiles(tmp_path: Path) -> None:
    kernels = [cuda_attention.attention(f64).source, cuda_single_attention.attention().source]
    for function, args in ATTENTION.values():
        module = lowered(inferred(function, tuple(args)).module, "fuse", on=ON)
        made = plan_code(plan(module, TARGET))
        kernels += [text.source for text in (*made.texts, *made.late)]
    assert_compiles(kernels, tmp_path)


@pytest.mark.slow
@needs_nvidia
def test_reductions_by_blocks_compile_for_every_dtype(tmp_path: Path) -> None:
    def reduced(x: Any) -> Any:
        return x.sum(axis=1), x.max(axis=1), x.sum(), x.argmax(axis=1), x.max(axis=0)

    def summed(x: Any) -> Any:
        return x.sum(axis=1), x.prod(), (x != 0).any(axis=1), x.sum(axis=0)

    kernels = []
    for dtype in (bool_, i64, f32, f64, DTYPES["u8"], DTYPES["c64"], DTYPES["c128"]):
        each = summed if dtype.kind == "c" else reduced
        module = lowered(inferred(each, (np.ones((3, 50), dtype.numpy),)).module, "fuse", on=ON)
        kernels += [kernel.source for kernel in plan(module, TARGET).kernels]
    assert sum("BLOCK_THREADS" in text for text in kernels) > 7
    assert_compiles(kernels, tmp_path)


@needs_nvidia
def test_neighbouring_elements_are_loaded_and_stored_16_bytes_at_a_time(tmp_path: Path) -> None:
    kernels = []
    for dtype in (np.float32, np.float64):
        x = np.ones(50, dtype)
        module = lowered(inferred(lambda x, y: x * y + x, (x, x)).module, "fuse", on=ON)
        kernels += [text.source for text in plan_code(plan(module, TARGET)).texts]
    made = assert_compiles(kernels, tmp_path)
    for letters in ("v4.(f32|b32|u32)", "v2.(f64|b64|u64)"):
        assert len(re.findall(rf"ld\.global\.{letters}", made)) >= 2
        assert re.search(rf"st\.global\.{letters}", made)


@needs_nvidia
def test_whether_a_launch_failed_before_is_a_look_that_caches_keep(tmp_path: Path) -> None:
    """Warps that all look at one word of L2 wait for each other: 2.4 of them a nanosecond."""
    args = np.ones(9), np.arange(9)
    module = lowered(inferred(lambda x, i: x[i] + 1, args).module, "fuse", on=ON)
    (kernel, *_) = plan_code(plan(module, TARGET)).texts
    loads = re.findall(r"ld\.(volatile\.)?global", assert_compiles([kernel.source], tmp_path))
    assert loads[:3] == ["", "volatile.", "volatile."]


@needs_nvidia
def test_floats_of_16_bits_are_converted_by_one_instruction(tmp_path: Path) -> None:
    def halved(x: Any, y: Any, s: Any) -> Any:
        return x * x + s, (x * y).sum(), x.astype(np.float64), y.astype(np.float16)

    x, y = np.ones(50, np.float16), np.ones(50)
    module = lowered(inferred(halved, (x, y, np.float16(2))).module, "fuse", on=ON)
    kernels = [text.source for text in plan_code(plan(module, TARGET)).texts]
    made = assert_compiles(kernels, tmp_path)
    for instruction in ("cvt.rn.f16.f32", "cvt.rn.f16.f64", "cvt.f32.f16"):
        assert instruction in made


def test_what_a_step_of_a_loop_needs_is_loaded_at_once() -> None:
    x, w = np.ones((5, 8), np.float32), np.ones((8, 32), np.float32)
    module = lowered(inferred(gpu_programs.lstm, (x, w, w, w[0])).module, "fuse", on=ON)
    (loop, *_) = plan_code(plan(module, TARGET)).of_loops()
    assert re.search(r"pyrelay_loaded\((x\d+, ){12}x\d+\);", loop.source)


def test_sigmoids_by_the_steps_of_a_gpu_have_the_bits_of_a_division() -> None:
    """Of all inverses that `rcp.approx` may give, which are one unit off at most, but for that of
    the number below 2, for which this only holds of the right one (Markstein, 1990)."""
    x = -np.geomspace(1e-9, 150.0, 200_000).astype(np.float32)
    small = np.concatenate([np.exp(x), np.float32([0.0, 1.0, 2.0**-24, 2.0**-23])])
    one = np.ones_like(small)
    whole = one + small

    def fma(a: Any, b: Any, c: Any) -> Any:
        return (a.astype(np.longdouble) * b + c).astype(np.float32)

    for part in (small, one):
        for toward in (0, 1, 2):
            inverse = np.nextafter(one / whole, np.float32(toward))
            if toward == 1:
                inverse = one / whole
            inverse = fma(fma(-whole, inverse, one), inverse, inverse)
            share = part * inverse
            found = fma(fma(-whole, share, part), inverse, share)
            known = (whole < np.nextafter(np.float32(2), np.float32(0))) | (whole == 2)
            wanted = np.where(whole == 1, part, found)
            np.testing.assert_array_equal(wanted[known], (part / whole)[known])
