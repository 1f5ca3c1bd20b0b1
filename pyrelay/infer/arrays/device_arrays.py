"""Arrays that lie in the memory of a GPU, whichever library they are of.

In: an object. Out: a `DeviceArray`, told by `__cuda_array_interface__` (CuPy, PyTorch, JAX, numba);
no library is imported for it.

The interface has no name for bfloat16: arrays are asked for the name of their `dtype`. JAX refuses
to tell of such arrays, and is asked for their address instead.

See https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.ir import types
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """What a program has to know of such an array; `value` is the array itself."""

    value: Any
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in bytes; None: C-contiguous
    readonly: bool
    stream: int | None = None  # work on it may have to be waited for; 1 and 2 are CUDA's own

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def bounds(self) -> tuple[int, int]:
        """The addresses of the first byte and of the one after the last."""
        if not self.nbytes or self.strides is None:
            return self.address, self.address + self.nbytes
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        first = self.address + sum(r for r in reach if r < 0)
        last = self.address + sum(r for r in reach if r > 0)
        return first, last + self.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one after another, the last axis first."""
        if self.strides is None or not self.nbytes:
            return True
        step = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True


class LiesElsewhereError(Exception):
    """An array does not lie on the GPU that a call runs on.

    argument, home: the place of the array among the arguments of a plan, and its GPU. first,
    number: the array that chose the GPU, negative if none did, and that GPU.
    """

    def __init__(self, argument: int, home: int, first: int, number: int) -> None:
        super().__init__(argument, home, first, number)
        self.argument, self.home, self.first, self.number = argument, home, first, number


def is_device_array(value: Any) -> bool:
    """Whether an object is an array in the memory of a GPU."""
    return not isinstance(value, np.ndarray) and _interface(value) is not None


def device_array(value: Any) -> DeviceArray:
    """The description of an array for which `is_device_array` is true."""
    value, is_view = _computed(value)
    told = _interface(value)
    assert told is not None
    address, readonly = told["data"]
    readonly = readonly or is_view
    strides = told.get("strides")
    dtype = types.bf16.numpy if _is_bfloat16(value) else np.dtype(told["typestr"])
    return DeviceArray(
        value, int(address), dtype, tuple(told["shape"]),
        None if strides is None else tuple(strides), bool(readonly), told.get("stream"),
    )


def _interface(value: Any) -> dict[str, Any] | None:
    # PyTorch's tensors of the CPU raise AttributeError, those that ask for gradients RuntimeError.
    if getattr(type(value), "__cuda_array_interface__", None) is None:
        return None
    if _is_bfloat16(value) and hasattr(value, "unsafe_buffer_pointer"):
        return _of_jax(value)
    try:
        found: dict[str, Any] | None = value.__cuda_array_interface__
    except AttributeError:
        return None
    return found


def _computed(value: Any) -> tuple[Any, bool]:
    """An array whose elements are in memory as they are, and whether it is a copy: PyTorch's views
    by `conj` and `imag` leave it to those who read them to change signs, and tell nobody."""
    if hasattr(type(value), "resolve_neg") and (value.is_conj() or value.is_neg()):
        return value.resolve_conj().resolve_neg(), True
    return value, False


def _is_bfloat16(value: Any) -> bool:
    return str(getattr(value, "dtype", None)) in ("bfloat16", "torch.bfloat16")


def _of_jax(value: Any) -> dict[str, Any] | None:
    """What the interface would say of a whole array of JAX, which is never written."""
    devices = value.devices()
    if len(devices) != 1 or next(iter(devices)).platform not in ("gpu", "cuda"):
        return None
    return {"shape": value.shape, "typestr": "<V2", "data": (value.unsafe_buffer_pointer(), True)}
