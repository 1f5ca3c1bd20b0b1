"""CuPy itself takes the calls that the driver makes: its names, signatures, constants, classes.

What the driver calls is noted while programs run on the stand-in; then CuPy is called so too. It
needs no GPU: without a driver a call whose arguments fit ends with an error of CUDA's, one whose
arguments do not with a TypeError. Skipped where CuPy is not installed, and where there is a GPU, on
which such calls would do something.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks.gpu_resources import PROGRAMS, texts_of
from pyrelay.devices.gpu import cublas, cuda_diagnosis, programs
from pyrelay.devices.gpu.cuda_compiler import MINIMAL, OPTIONS, Compiler, unit
from pyrelay.errors import DeviceError
from tests.devices import fake_cupy
from tests.devices.fake_cupy import Cublas, Machine, installed
from tests.devices.fake_libraries import Jax
from tests.devices.running_kernels import needs_compiler

#: Of the objects that CuPy makes: the stand-in's class, where CuPy's is, and the methods.
METHODS: dict[type, tuple[str, tuple[str, ...]]] = {
    fake_cupy.Stream: ("cuda.Stream", (
        "__enter__", "begin_capture", "end_capture", "synchronize", "record", "wait_event",
    )),
    fake_cupy.Module: ("cuda.function.Module", ("load", "get_function")),
    fake_cupy.MemoryPointer: ("cuda.MemoryPointer", ("__add__",)),
}  # fmt: skip

#: What is called without CUDA: it succeeds.
HOST_ONLY = {
    "cuda.MemoryPointer.__add__", "cuda.function.Module", "cuda.Stream.from_external",
    "cuda.runtime.streamQuery", "cuda.runtime.driverGetVersion", "cuda.runtime.runtimeGetVersion",
    "cuda.compiler.nvrtc.getVersion", "ndarray", "ascontiguousarray",
}  # fmt: skip


class Noted:
    """A part of the stand-in that notes what is asked of it."""

    def __init__(self, path: str, value: Any, notes: dict[str, Any]) -> None:
        self.path, self.value, self.notes = path, value, notes

    def __getattr__(self, name: str) -> Any:
        path = f"{self.path}.{name}".lstrip(".")
        found = getattr(self.value, name)
        if isinstance(found, SimpleNamespace) or (
            callable(found) and not (isinstance(found, type) and issubclass(found, Exception))
        ):
            return Noted(path, found, self.notes)
        self.notes[path] = found
        return found

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        self.notes[self.path] = (args, keywords)
        return self.value(*args, **keywords)


def noting(path: str, method: Callable[..., Any], notes: dict[str, Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        notes[path] = (args, keywords)
        return method(self, *args, **keywords)

    return call


def cooperating(x: Any, n: int) -> Any:
    for k in range(n):
        x = np.tanh(x) * 0.5 + k
    return x


def layers(x: Any, w: Any) -> Any:
    return np.tanh(np.tanh(x @ w) @ w) @ w


def climbed(n: Any) -> Any:
    return n if n < 2 else climbed(n - 1) + climbed(n - 2)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """All that programs of every kind ask of CuPy: the arguments of the last call, by path."""
    made: dict[str, Any] = {}
    for kind, (path, names) in METHODS.items():
        for name in names:
            noted = noting(f"{path}.{name}", getattr(kind, name), made)
            monkeypatch.setattr(kind, name, noted)
    done = noting("cuda.Event.done", fake_cupy.Event.done.fget, made)  # type: ignore[attr-defined]
    monkeypatch.setattr(fake_cupy.Event, "done", property(done))
    machine = Machine(devices=2)
    machine.cupy = Noted("", machine.cupy, made)
    monkeypatch.setattr(programs, "blocks_of", lambda work, meets, most, cores: most)
    monkeypatch.setattr(cuda_diagnosis, "wheels", lambda: ["cupy-cuda13x"])
    with installed(machine, monkeypatch, Cublas(machine)):
        given = machine.array(np.ones((4, 4)))
        for _ in range(3):
            pyrelay.jit(layers)(given, given)
        function = pyrelay.jit(layers)
        for _ in range(3):
            function(given, given)
        pyrelay.jit(cooperating, device="cuda")(np.ones(40), 30)
        pyrelay.jit(lambda x: climbed(x[0]) * x, device="cuda")(np.array([7, 2]))
        gaps = fake_cupy.ndarray((4, 2), np.float64, given.data)
        gaps.strides, gaps.stream = (32, 16), 9
        pyrelay.jit(lambda x: x.fill(2.0))(gaps)
        pyrelay.jit(lambda x: np.zeros(int(x.sum())))(given)
        jax = Jax(machine)
        monkeypatch.setitem(sys.modules, "jax.dlpack", jax)
        lent = jax.array(np.ones(4))
        machine.idle = False  # so that what it reads is kept, and asked for
        for _ in range(2):
            pyrelay.jit(lambda x: x + 1.0)(lent)
        pyrelay.info()
    return made


def at(root: Any, path: str) -> Any:
    for name in path.split("."):
        root = getattr(root, name)
    return root


@pytest.fixture(scope="module")
def cupy() -> Any:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("needs CuPy (pip install pyrelay[cuda13]), but no GPU")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cupy as found

    if found.cuda.is_available():
        pytest.skip("there is a GPU: test_programs.py calls CuPy on it")
    return found


def bare(cupy: Any, kind: str) -> Any:
    """An object of CuPy's that nothing on a device belongs to."""
    if kind == "cuda.Stream":
        return cupy.cuda.Stream.from_external(SimpleNamespace(__cuda_stream__=lambda: (0, 7)))
    if kind == "cuda.MemoryPointer":
        memory = cupy.cuda.memory.UnownedMemory(4096, 64, None, 0)
        return cupy.cuda.MemoryPointer(memory, 0)
    found = at(cupy, kind)
    made = found.__new__(found)
    if kind == "cuda.Event":
        made.ptr = 0
    return made


# CuPy's streams complain when they end if they could not be made.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@needs_compiler
def test_cupy_takes_the_calls_of_the_driver(cupy: Any, notes: dict[str, Any]) -> None:
    kinds = {path for path, _ in METHODS.values()}
    pointer = bare(cupy, "cuda.MemoryPointer")
    called = 0
    for path, noted in notes.items():
        kind, _, name = path.rpartition(".")
        if not isinstance(noted, tuple):
            real = at(cupy, path)
            if isinstance(noted, type):
                bases = {base.__name__ for base in real.__mro__}
                assert {base.__name__ for base in noted.__mro__} <= bases, path
            elif path != "__version__":
                assert real == noted, path
            continue
        args, keywords = noted
        if path == "cuda.Event.done":
            assert bare(cupy, kind).done is False
            continue
        if path == "ndarray":
            args = (*args[:2], pointer)
        elif path in ("ascontiguousarray", "asarray", "copyto"):
            args = (cupy.ndarray((2,), np.float32, pointer),) * len(args)
        elif path == "cuda.Stream.wait_event":
            args = (SimpleNamespace(ptr=3),)
        function = getattr(bare(cupy, kind), name) if kind in kinds else at(cupy, path)
        called += 1
        if path in HOST_ONLY:
            function(*args, **keywords)
            continue
        told = r"InsufficientDriver|NoDevice|libcuda"
        if path == "cuda.runtime.check_status":
            told = "NotReady"  # which it is given
        with pytest.raises(RuntimeError, match=told):
            function(*args, **keywords)
    assert called >= 30
    for path in ("cuda.driver.launchKernel", "cuda.driver.launchCooperativeKernel",
                 "cuda.Stream.end_capture", "cuda.Event.done", "cuda.runtime.check_status",
                 "cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor"):  # fmt: skip
        assert path in notes
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="InsufficientDriver"):
        bare(cupy, "cuda.graph.Graph").launch()


def test_errors_of_cuda_are_what_captures_are_given_up_for(cupy: Any) -> None:
    for kind in (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError):
        assert issubclass(kind, RuntimeError)
    assert issubclass(cublas.CublasError, RuntimeError)
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)


def test_its_compiler_makes_machine_code_of_kernels(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options that CuPy adds of its own."""
    def for_hopper(arch: Any = None) -> tuple[str, str]:
        return "-arch=sm_90", "cubin"

    monkeypatch.setattr(cupy.cuda.compiler, "_get_arch_for_options_for_nvrtc", for_hopper)
    made = Compiler.__new__(Compiler)
    made.cupy, made.options = cupy, (*OPTIONS, MINIMAL)
    for name in ("LSTM", "native recursion"):
        texts = texts_of(*PROGRAMS[name])
        code = made.compiled(unit(texts))
        assert code.startswith(b"\x7fELF")
        assert all(f"kernel{k}".encode() in code for k in range(len(texts)))
    with pytest.raises(DeviceError, match="NVRTC does not compile the kernels") as caught:
        made.compiled("no kernel")
    assert "error" in caught.value.notes[0]


def test_the_library_of_products_has_the_functions(cupy: Any) -> None:
    found = cublas.load()
    if found is None:
        pytest.skip("needs cuBLAS (pip install nvidia-cublas)")
    for name in ("cublasCreate_v2", "cublasGemmStridedBatchedEx", "cublasSetWorkspace_v2"):
        assert hasattr(found.library, name)
    with pytest.raises(cublas.CublasError):
        found.handle()  # there is no device
