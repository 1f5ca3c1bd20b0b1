"""What is said where no GPU can be used, by the error and by `pyrelay.info()`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda
from pyrelay.devices.gpu import cublas, cuda_diagnosis, cupy_driver
from pyrelay.errors import DeviceError
from tests.devices.fake_cupy import Cublas, Machine, installed

OLD = RuntimeError(
    "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
)
FRAMED = ImportError(
    "\n================================\nFailed to import CuPy.\n\nIf you installed CuPy via "
    "wheels ...\n\nOriginal error:\n  ImportError: libstdc++.so.6: version `GLIBCXX_3.4.29' not "
    "found\n================================\n"
)
WARNED = UserWarning("\n----------\n\n  CuPy may not function correctly because multiple CuPy ...")

#: The driver's CUDA, the packages that are installed, and what asking CuPy for GPUs raises.
CASES: dict[str, tuple[int, tuple[str, ...], Any]] = {
    "missing": (0, (), None),
    "missing_beside_a_driver": (12040, (), None),
    "without_driver": (0, ("cupy-cuda13x",), OLD),
    "old_driver": (12040, ("cupy-cuda13x",), OLD),
    "very_old_driver": (11080, ("cupy-cuda12x",), OLD),
    "two_packages": (13010, ("cupy-cuda12x", "cupy-cuda13x"), WARNED),
    "import": (13010, ("cupy-cuda13x",), FRAMED),
    "no_gpu": (13010, ("cupy-cuda13x",), RuntimeError("cudaErrorNoDevice: no CUDA-capable device")),
    "none_visible": (13010, ("cupy-cuda13x",), 0),
    "too_old": (13010, ("cupy-cuda13x",), 1),
}  # fmt: skip


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`found(driver, packages, answer)`: what there is, and what CuPy says of GPUs."""

    def set_up(version: int, packages: tuple[str, ...], answer: Any) -> None:
        def count() -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        def distribution(name: str, ask: Any = metadata.distribution) -> Any:
            if not name.startswith("cupy"):
                return ask(name)
            if name not in packages:
                raise metadata.PackageNotFoundError(name)
            return None

        made = SimpleNamespace(cuda=SimpleNamespace(
            runtime=SimpleNamespace(getDeviceCount=count, getDevice=lambda: 0),
            Device=lambda number: SimpleNamespace(compute_capability="75"),
        ))  # fmt: skip
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec",
            lambda what, *rest: (packages or None) if what == "cupy" else find(what, *rest),
        )
        monkeypatch.setitem(sys.modules, "cupy", made)
        monkeypatch.setattr(cuda_diagnosis, "driver_version", lambda: version)
        monkeypatch.setattr(metadata, "distribution", distribution)
        cuda.forget_drivers()

    return set_up


@pytest.mark.parametrize("name", CASES)
def test_without_a_gpu_the_error_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None], found: Any, name: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found(*CASES[name])
    with pytest.raises(DeviceError, match=r"^device 'cuda' "):
        pyrelay.jit(lambda x: x + 1.0, device="cuda")(np.ones(3))
    with pytest.raises(DeviceError) as caught:
        cuda.gpu()
    golden(f"errors/device_cuda_{name}.txt", str(caught.value))
    told = " ".join(str(pyrelay.info()).split())
    for part in (caught.value.message, *caught.value.notes, *caught.value.hints):
        assert " ".join(part.split()) in told


@pytest.mark.parametrize("package", ["cupy-cuda12x", "cupy-cuda13x"])
def test_a_cupy_that_finds_no_compiler_says_which_package_has_it(
    golden: Callable[[str, str], None], found: Any, package: str
) -> None:
    """As cupy-cuda12x does where there is the CUDA 13 toolkit alone."""
    number = package[9:11]

    def version() -> Any:
        raise RuntimeError(f'Failure finding "libnvrtc.so.{number}"\nNo such file ...')

    found(13010, (package,), 1)
    machine = Machine()
    machine.cupy.cuda.compiler.nvrtc.getVersion = version
    with pytest.raises(DeviceError) as caught:
        cupy_driver.CupyDriver(machine.cupy, 0)
    golden(f"errors/device_cuda_without_nvrtc_{number}.txt", str(caught.value))


def test_info_says_what_there_is(
    monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None], found: Any
) -> None:
    """With cuBLAS, and without it beside two packages of CuPy that work."""
    found(13010, ("cupy-cuda13x",), 1)
    machine = Machine()
    with installed(machine, monkeypatch, Cublas(machine)):
        text = str(pyrelay.info())
    found(13010, ("cupy-cuda12x", "cupy-cuda13x"), 1)
    with installed(machine, monkeypatch):
        text += str(pyrelay.info())
    lines = text.splitlines()
    starts = [k for k, line in enumerate(lines) if line.startswith("  gpu")]
    ends = [k for k, line in enumerate(lines) if line.startswith("  this process")]
    golden("info_gpu.txt", "\n".join(
        line for a, b in zip(starts, ends, strict=True) for line in lines[a:b]
    ))


def test_the_library_is_that_which_the_package_of_bindings_loads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CuPy loads NVIDIA's wheels when its package is asked for an attribute, not before."""
    asked: list[str] = []

    class Package(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            asked.append(name)
            return SimpleNamespace()

    libs = Package(__path__=[], __name__="cupy_backends.cuda.libs", __spec__=None)
    for name in ("cupy_backends", "cupy_backends.cuda"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__path__=[], __spec__=None))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", libs)
    opened: list[str] = []

    def open_loaded(name: str, mode: int) -> Any:
        assert set(asked) == {"cublas"}
        opened.append(name)
        raise OSError(name)

    monkeypatch.setattr(cublas.ctypes, "CDLL", open_loaded)
    assert cublas.load() is None
    assert opened == ["libcublas.so.13", "libcublas.so.12"]


def test_the_version_of_the_driver_is_asked_of_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def cuDriverGetVersion(self, place: Any) -> int:  # noqa: N802
            place._obj.value = 12080
            return 0

    monkeypatch.setattr(cuda_diagnosis.ctypes, "CDLL", lambda name: Library())
    assert cuda_diagnosis.driver_version() == 12080
    monkeypatch.setattr(Library, "cuDriverGetVersion", lambda self, place: 100)
    assert cuda_diagnosis.driver_version() == 0

    def none(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(cuda_diagnosis.ctypes, "CDLL", none)
    assert cuda_diagnosis.driver_version() == 0
