"""What NVIDIA's compilers say of kernels, read and counted."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pytest

from benchmarks.gpu_resources import PROGRAMS, Resources, ptx, read, resources, table, texts_of

SAID = """\
ptxas info    : 55 bytes gmem
ptxas info    : Compiling entry function 'kernel1' for 'sm_90'
ptxas info    : Function properties for kernel1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem
ptxas info    : Compiling entry function 'kernel0' for 'sm_90'
ptxas info    : Function properties for kernel0
    240 bytes stack frame, 188 bytes spill stores, 204 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 240 bytes cumulative stack size
"""


def test_the_most_of_all_kernels_is_told() -> None:
    found = read(SAID)
    assert found == Resources(kernels=2, registers=40, shared=256, stack=240, spilled=392)
    assert table({"both": found}).splitlines()[-1] == "| both | 2 | 40 | 256 | 240 | 392 |"


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("cupy_backends") is None or shutil.which("ptxas") is None,
    reason="needs NVRTC (pip install pyrelay[cuda13]) and ptxas (nvidia-cuda-nvcc)",
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_spill_no_registers_and_fit_their_shared_memory(name: str) -> None:
    try:
        found = resources(ptx(texts_of(*PROGRAMS[name])))
    except subprocess.CalledProcessError as error:
        if "Unsupported .version" in error.stderr:
            pytest.skip("ptxas is older than NVRTC")
        raise
    assert found.kernels == len(texts_of(*PROGRAMS[name]))
    assert found.shared <= 48 << 10
    if name != "native recursion":  # whose calls keep registers on the stack
        assert (found.stack, found.spilled) == (0, 0)
