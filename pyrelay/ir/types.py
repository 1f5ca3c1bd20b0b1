"""Types of the intermediate representation: element types, tensor types, tapes, and promotion.

In: NumPy element types and extents. Out: frozen `Type` values and NumPy 2's promotion (NEP 50).

bfloat16 is no type of NumPy's: the package `ml_dtypes` brings it. It is imported where a program
first has numbers of that type, which mostly means that its caller has imported it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.errors import TypeMismatchError, UnsupportedOperationError
from pyrelay.ir import dims
from pyrelay.ir.dims import Dim, Extent, Symbol
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. `kind` is NumPy's letter: b, i, u, f or c."""

    name: str
    kind: str = field(compare=False)
    size: int = field(compare=False)  # bytes of one element
    own: np.dtype[Any] | None = field(compare=False, repr=False)  # None: a package brings it

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype. Raises UnsupportedOperationError for bfloat16 without `ml_dtypes`."""
        return self.own or _bfloat16()

    @property
    def numpy_name(self) -> str:
        """The name of NumPy's dtype, which need not be there."""
        return self.own.name if self.own is not None else "bfloat16"

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """True for real and complex floating types: those that carry derivatives."""
        return self.kind in "fc"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers."""
        return self.kind in "iu"


def _dtype(name: str, numpy: str) -> DType:
    dtype = np.dtype(numpy)
    return DType(name, dtype.kind, dtype.itemsize, dtype)


bool_ = _dtype("bool", "?")
i8, i16, i32, i64 = (_dtype(f"i{8 * n}", f"i{n}") for n in (1, 2, 4, 8))
u8, u16, u32, u64 = (_dtype(f"u{8 * n}", f"u{n}") for n in (1, 2, 4, 8))
f16, f32, f64 = _dtype("f16", "f2"), _dtype("f32", "f4"), _dtype("f64", "f8")
bf16 = DType("bf16", "f", 2, None)
c64, c128 = _dtype("c64", "c8"), _dtype("c128", "c16")

DTYPES = {
    d.name: d
    for d in (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, c64, c128, bf16)
}
_BY_NUMPY = {d.own: d for d in DTYPES.values() if d.own is not None}
CANONICAL = frozenset(id(d.own) for d in DTYPES.values() if d.own is not None)
"""Addresses of the dtype objects that programs know arrays by."""
_BY_NAME = {d.numpy_name: d for d in DTYPES.values()}
_PYTHON_NAMES = {"b": "bool", "i": "int", "f": "float", "c": "complex"}
_PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


def from_numpy(dtype: Any) -> DType | None:
    """The element type of a NumPy dtype (or anything `np.dtype` takes), None if unsupported."""
    given = np.dtype(dtype)
    found = _BY_NUMPY.get(given.newbyteorder("="))
    if found is None and given.kind == "V" and given.name == "bfloat16":
        return bf16
    return found


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of that name, which may be "bool_" and "bfloat16"."""
    return np.dtype(bool) if name == "bool_" else _BY_NAME[name].numpy


@functools.cache
def _bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedOperationError(
            "bfloat16 needs the package ml_dtypes, which is not installed.",
            notes=("NumPy has no such type of its own.",),
            hints=("pip install pyrelay[bfloat16]",),
        ) from None
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


@dataclass(frozen=True, slots=True)
class TensorType:
    """An array of `dtype` and `shape`; a scalar has shape ().

    `weak` marks a Python number (`int`, `float`, `bool`, `complex`): its dtype gives way to any
    array's in promotion, and its arithmetic raises as Python's does. Only scalars are weak, and
    their dtype is i64, f64, bool or c128.
    """

    dtype: DType
    shape: tuple[Extent, ...] = ()
    weak: bool = False

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Extent:
        """Number of elements."""
        return dims.product(self.shape)

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class TapeType:
    """A linear last-in first-out byte store: what a forward pass leaves for the backward pass."""

    def __str__(self) -> str:
        return "tape"


Type = TensorType | TapeType
TAPE = TapeType()
PY_BOOL = TensorType(bool_, (), True)
PY_INT = TensorType(i64, (), True)
PY_FLOAT = TensorType(f64, (), True)
PY_COMPLEX = TensorType(c128, (), True)


def show(ty: Type, name: Callable[[Symbol], str] = str) -> str:
    """`f32[n, 3]`, `f64[]` for a NumPy scalar, `float` for a Python one, `tape`."""
    if isinstance(ty, TapeType):
        return "tape"
    if ty.weak:
        return _PYTHON_NAMES[ty.dtype.kind]
    return f"{ty.dtype}[{', '.join(dims.show(d, name) for d in ty.shape)}]"


def of_scalar(value: object) -> TensorType | None:
    """Type of a Python or NumPy number, None for anything else."""
    if isinstance(value, np.generic):
        dtype = from_numpy(value.dtype)
        return TensorType(dtype) if dtype else None
    if type(value) is bool:
        return PY_BOOL
    if type(value) is int:
        return PY_INT
    if type(value) is float:
        return PY_FLOAT
    if type(value) is complex:
        return PY_COMPLEX
    return None


def python_type(ty: TensorType) -> type:
    """The Python class of a weak scalar type: bool, int, float or complex."""
    return _PYTHON_TYPES[ty.dtype.kind]


def scalar_kind(ty: TensorType) -> str:
    """The word for the class of a scalar: Python's (int, float, bool, complex), or a NumPy dtype's
    name, "bool_" for NumPy's bool."""
    if ty.weak:
        return python_type(ty).__name__
    return "bool_" if ty.dtype is bool_ else ty.dtype.numpy_name


_REPRESENTATIVE: dict[str, Any] = {"b": True, "i": 1, "f": 1.0, "c": 1j}


def promote(types: Iterable[TensorType]) -> tuple[DType, bool]:
    """NumPy 2's common dtype of several operands (NEP 50), and whether it is still weak.

    Raises TypeMismatchError if NumPy has no common type for them, as for bfloat16 and float16.
    """
    operands = list(types)
    if all(t.weak for t in operands):
        kind = max((t.dtype.kind for t in operands), key="bifc".index)
        return {"b": bool_, "i": i64, "f": f64, "c": c128}[kind], True
    first = operands[0]
    if all(t.dtype == first.dtype and not t.weak for t in operands):
        return first.dtype, False  # most often, and at once
    values = [_REPRESENTATIVE[t.dtype.kind] if t.weak else t.dtype.numpy for t in operands]
    try:
        result = from_numpy(np.result_type(*values))
    except TypeError:
        result = None
    if result is None:
        raise TypeMismatchError(
            f"{' and '.join(map(str, operands))} have no common element type in NumPy.",
            hints=("convert one of them first, as with x.astype(np.float32)",),
        )
    return result, False


def promote_computed(types: Iterable[TensorType]) -> tuple[DType, bool]:
    """The dtype in which NumPy's functions of elements compute with such operands (`promote` is
    that of functions which only move elements), and whether it is still weak.

    They differ for bfloat16: a function has no loop for it and Python floats, or for it and
    integers of 16 bits, and takes the first that fits both, float32 or larger.
    """
    operands = list(types)
    if any(t.dtype is bf16 for t in operands) and not all(map(_beside_bfloat16, operands)):
        operands = [TensorType(f32, t.shape) if t.dtype is bf16 else t for t in operands]
    return promote(operands)


def _beside_bfloat16(ty: TensorType) -> bool:
    """Whether a number is taken for a bfloat16 beside one."""
    return ty.dtype is bf16 or (ty.dtype.kind in "biu" and (ty.weak or ty.dtype.size == 1))


def float_of(dtype: DType) -> DType:
    """The type of tanh, exp, ... of `dtype`: NumPy's choice."""
    if dtype.is_float:
        return dtype
    return {1: f16, 2: f32}.get(dtype.size, f64)


def type_symbols(ty: Type) -> tuple[Symbol, ...]:
    """The symbols in the shape of a type, in order of occurrence."""
    if isinstance(ty, TapeType) or not ty.shape:
        return ()
    found: dict[Symbol, None] = {}
    for extent in ty.shape:
        for symbol in dims.symbols(extent):
            found[symbol] = None
    return tuple(found)


def evaluate(value: Any, extents: Mapping[Symbol, int]) -> Any:
    """An attribute of a node with the extents inside it (those of its types too) as numbers.

    Raises KeyError for a symbol without a value.
    """
    if isinstance(value, Dim):
        return dims.evaluate(value, extents)
    if isinstance(value, TensorType):
        return substitute(value, dict(extents))
    if isinstance(value, tuple):
        return tuple(evaluate(item, extents) for item in value)
    return value


def substitute(ty: Type, mapping: dict[Symbol, Extent]) -> Type:
    """The type with symbols in its shape replaced."""
    if isinstance(ty, TapeType) or not mapping or not ty.shape:
        return ty
    return TensorType(ty.dtype, tuple(dims.substitute(d, mapping) for d in ty.shape), ty.weak)
