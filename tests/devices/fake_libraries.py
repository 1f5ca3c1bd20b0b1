"""Stand-ins for PyTorch and JAX on a GPU, over the memory of `fake_cupy.Machine`: what their arrays
tell of themselves, and how they take memory over."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.devices.fake_cupy import Machine, ndarray

_DTYPES = ("bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")


class Dtype:
    """torch.dtype: one object for each, with a text of its own."""

    def __init__(self, name: str, numpy: Any) -> None:
        self.name, self.numpy = name, np.dtype(numpy)

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Tensor:
    """torch.Tensor of a GPU."""

    __module__ = "torch"

    def __init__(self, torch: Any, data: Any, shape: Any, dtype: Dtype, strides: Any = None):
        self.torch, self.data, self.shape, self.dtype = torch, data, tuple(shape), dtype
        self.strides = strides  # in elements; None without gaps
        self.is_cuda, self.layout, self.requires_grad, self.home = True, "strided", False, 0
        self.turned: Any = None  # a view by `conj` or `imag`: the tensor of what it means

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def data_ptr(self) -> int:
        return int(self.data.ptr)

    def get_device(self) -> int:
        return self.home

    def is_contiguous(self) -> bool:
        return self.strides is None

    def is_conj(self) -> bool:
        return self.turned is not None

    def is_neg(self) -> bool:
        return False

    def resolve_conj(self) -> Any:
        return self if self.turned is None else self.turned

    def resolve_neg(self) -> Any:
        return self

    def view(self, dtype: Dtype) -> Tensor:
        assert dtype.numpy.itemsize == self.dtype.numpy.itemsize
        return Tensor(self.torch, self.data, self.shape, dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.torch.asked.append(self)
        if not self.is_cuda:
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor")
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")
        size = self.dtype.numpy.itemsize
        strides = None if self.strides is None else tuple(size * s for s in self.strides)
        typestr = "<V2" if self.dtype.name == "bfloat16" else self.dtype.numpy.str
        data = (self.data.ptr, False)
        return {"shape": self.shape, "typestr": typestr, "data": data, "strides": strides}

    def get(self) -> Any:
        """The elements."""
        made = ndarray(self.shape, self.dtype.numpy, self.data)
        if self.strides is not None:
            made.strides = tuple(made.dtype.itemsize * s for s in self.strides)
        return made.get()


class Torch(SimpleNamespace):
    """The module torch. streams: that of each device; asked: tensors whose interface was asked for;
    taken: streams in which memory was taken over."""

    def __init__(self, machine: Machine, brain: Any = np.int16, quick: bool = True) -> None:
        super().__init__()
        self.machine, self.strided = machine, "strided"
        self.streams = {0: 0, 1: 0}
        self.asked: list[Any] = []
        self.taken: list[int] = []
        for name in _DTYPES:
            setattr(self, name, Dtype(name, name))
        self.bfloat16 = Dtype("bfloat16", brain)
        self.cuda = SimpleNamespace(
            current_stream=lambda number: SimpleNamespace(cuda_stream=self.streams[number])
        )
        if quick:
            self._C = SimpleNamespace(_cuda_getCurrentRawStream=self.streams.__getitem__)

    def tensor(self, values: Any, dtype: Any = None) -> Tensor:
        """A tensor of the device."""
        made = self.machine.array(values)
        found = Tensor(self, made.data, made.shape, dtype or getattr(self, made.dtype.name))
        found.home = made.data.device_id
        return found

    def from_dlpack(self, capsule: Any) -> Tensor:
        """Memory of CuPy's, which had nothing to wait for."""
        made, stream = capsule.content
        assert stream == -1
        self.taken.append(self.machine.streams[-1].ptr)
        found = Tensor(self, made.data, made.shape, getattr(self, made.dtype.name, self.bfloat16))
        found.home = made.data.device_id
        return found


class ArrayImpl:
    """jax.Array."""

    __module__ = "jaxlib._jax"

    def __init__(self, jax: Any, data: Any, shape: Any, dtype: Any) -> None:
        self.jax, self.data, self.shape = jax, data, tuple(shape)
        self.dtype = np.dtype(dtype)
        self.home, self.platform, self.copies = 0, "gpu", 1

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def devices(self) -> set[Any]:
        return {JaxDevice(self.platform, self.home + k) for k in range(self.copies)}

    def block_until_ready(self) -> ArrayImpl:
        self.jax.waited.append(self)
        return self

    def unsafe_buffer_pointer(self) -> int:
        return int(self.data.ptr)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.jax.asked.append(self)
        if self.platform != "gpu":
            raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")
        if self.dtype.name == "bfloat16":
            raise AttributeError("__cuda_array_interface__ is not defined for bfloat16")
        data = (self.data.ptr, True)
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "version": 2}

    def view(self, dtype: Any) -> ArrayImpl:
        return ArrayImpl(self.jax, self.data, self.shape, dtype)

    def get(self) -> Any:
        """The elements."""
        return ndarray(self.shape, self.dtype, self.data).get()


class JaxDevice:
    """jax.Device."""

    def __init__(self, platform: str, number: int) -> None:
        self.platform, self.local_hardware_id = platform, number


class Jax(SimpleNamespace):
    """The modules jax and jax.dlpack. asked: arrays whose interface was asked for; waited: those
    that were waited for."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.asked: list[Any] = []
        self.waited: list[Any] = []

    def array(self, values: Any) -> ArrayImpl:
        """An array of the device."""
        made = self.machine.array(values)
        return ArrayImpl(self, made.data, made.shape, made.dtype)

    def from_dlpack(self, made: Any) -> ArrayImpl:
        """Memory of CuPy's, as an array that waits for the stream it was made in."""
        content, stream = made.__dlpack__(stream=5).content
        assert stream == 5
        assert math.prod(content.shape) * content.dtype.itemsize <= content.data.size
        return ArrayImpl(self, content.data, content.shape, content.dtype)
