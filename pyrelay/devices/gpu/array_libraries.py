"""Libraries whose arrays lie on GPUs, besides CuPy: which one an array is of, the stream that it
works in, and how it takes memory over.

In: an array, or its class. Out: a name, a stream, an array of that library. No library is imported
here that has not made an array before.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from typing import Any

import numpy as np

_MODULE = re.compile(r"^[A-Za-z]\w*")

_BITS = np.dtype(np.int16)
_BRAIN = "V"  # the kind of bfloat16 alone; names of dtypes are put together at each look

_NAMES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "numba": "numba", "cupy": "cupy"}


@functools.lru_cache(maxsize=64)
def library_of(kind: type) -> str:
    """The library of a class of arrays: "cupy", "torch", "jax", "numba", or nothing."""
    found = _MODULE.match(kind.__module__)
    return _NAMES.get(found[0], "") if found else ""


def stream_of(kind: type, number: int) -> int | None:
    """The stream in which the library of a class of arrays works on a device; None where that is
    CuPy's, or the library has none that it tells."""
    if library_of(kind) != "torch":
        return None
    torch = sys.modules["torch"]
    # What the code that `torch.compile` writes asks: it makes no object for the stream.
    quick = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    if quick is not None:
        return int(quick(number))
    return int(torch.cuda.current_stream(number).cuda_stream)


def home_of_jax(array: Any) -> int:
    """The number of the GPU that an array of JAX's lies on; -1 for all others."""
    devices = array.devices()
    if len(devices) != 1:
        return -1
    (device,) = devices
    return int(device.local_hardware_id) if device.platform in ("gpu", "cuda") else -1


def moved_text(kind: type, name: str, number: int) -> str:
    """What to write for an array of some class, to have a copy of it on another GPU."""
    written = {
        "torch": f"{name}.to('cuda:{number}')",
        "jax": f"jax.device_put({name}, jax.devices()[{number}])",
        "numba": f"with numba.cuda.gpus[{number}]: numba.cuda.to_device({name}.copy_to_host())",
    }
    return written.get(library_of(kind), f"with cupy.cuda.Device({number}): cupy.array({name})")


def carried_by(kind: type, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the array of CuPy's that a library is to take over: not every CuPy hands
    bfloat16 over, so its bits are handed over as integers."""
    return _BITS if dtype.kind == _BRAIN and library_of(kind) in ("torch", "jax") else dtype


def handed_over(given: Any, kind: type, dtype: np.dtype[Any]) -> Any:
    """An array of CuPy's, `carried_by` a dtype, as one of the library of a class, without a copy.

    PyTorch is told that nothing has to be waited for, since work was in its stream, by a capsule of
    DLPack's; JAX asks for what has to be waited for itself. CuPy's own array where the library is
    none of these, or has no such elements.
    """
    library = library_of(kind)
    brain = dtype.kind == _BRAIN
    if library == "torch":
        torch = sys.modules["torch"]
        tensor = torch.from_dlpack(given.__dlpack__(stream=-1))
        return tensor.view(torch.bfloat16) if brain else tensor
    if library == "jax":
        array = importlib.import_module("jax.dlpack").from_dlpack(given)
        return array.view(dtype) if brain else array
    if library == "numba" and not brain:
        return importlib.import_module("numba.cuda").as_cuda_array(given)
    return given
