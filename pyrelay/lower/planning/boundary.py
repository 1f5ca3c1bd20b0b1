"""What crosses between Python and a plan: one record per parameter and per result.

In: nothing; the lowering builds these. Out: `Parameter`s, which say what an argument must be and
how it fills slots, and `Result`s, which say how words become Python objects. Both are read by the
native entry (`devices/runtime/entry.py`).
"""

from __future__ import annotations

from typing import Any

from pyrelay.records import dataclass

PYTHON_SCALARS = ("int", "float", "bool", "complex")
"""Scalars of Python's own. NumPy's are named by their dtype, but its bool is "bool_"."""

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128", "bfloat16",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """An ndarray: fills the address and `ndim` extents.

    Takes exactly class ndarray, this dtype in native byte order, aligned, without gaps. `order`
    are its axes from the outermost in memory to the innermost, if these are not as they stand; so
    the extents come, the wanted ones, too. `writeable` asks for the flag and lends the array to the
    plan, which may write it and free it; freeing it does nothing. An extent that is not None must
    be met exactly.
    """

    dtype: str
    ndim: int
    order: tuple[int, ...] = ()
    writeable: bool = False
    extents: tuple[int | None, ...] = ()

    @property
    def words(self) -> int:
        """Slots it fills."""
        return 1 + self.ndim


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A Python scalar (`kind` from `PYTHON_SCALARS`) or a NumPy scalar (a dtype's
    name, "bool_" for its bool).

    Exactly that class; a Python int must fit int64.
    """

    kind: str

    @property
    def words(self) -> int:
        """Slots it fills."""
        return scalar_words(self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectParameter:
    """Exactly this object (`is`): a static argument. Fills no slot."""

    value: Any

    @property
    def words(self) -> int:
        """Slots it fills."""
        return 0


Parameter = ArrayParameter | ScalarParameter | ObjectParameter


@dataclass(frozen=True, slots=True)
class ArrayResult:
    """A fresh ndarray: an address that `Alloc` gave, then `ndim` extents; C-contiguous.

    Address 0 (nothing was computed on the path taken) becomes None.

    With order "F" the extents are those of the transposed array and the result is transposed.
    """

    dtype: str
    ndim: int
    order: str = "C"

    @property
    def words(self) -> int:
        """Words it takes."""
        return 1 + self.ndim


@dataclass(frozen=True, slots=True)
class ViewResult:
    """A view of parameter `parameter`: an address, `ndim` extents, `ndim` strides in bytes."""

    dtype: str
    ndim: int
    parameter: int

    @property
    def words(self) -> int:
        """Words it takes."""
        return 1 + 2 * self.ndim


@dataclass(frozen=True, slots=True)
class ScalarResult:
    """A Python scalar (`kind` from `PYTHON_SCALARS`) or a NumPy scalar (a dtype's
    name, "bool_" for its bool)."""

    kind: str

    @property
    def words(self) -> int:
        """Words it takes."""
        return scalar_words(self.kind)


@dataclass(frozen=True, slots=True)
class ParameterResult:
    """The very object that came in as parameter `parameter`. Takes no word."""

    parameter: int

    @property
    def words(self) -> int:
        """Words it takes."""
        return 0


@dataclass(frozen=True, slots=True)
class SameResult:
    """The same object as the earlier result number `result`. Takes no word."""

    result: int

    @property
    def words(self) -> int:
        """Words it takes."""
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class ObjectResult:
    """A constant Python object. Takes no word."""

    value: Any

    @property
    def words(self) -> int:
        """Words it takes."""
        return 0


Result = ArrayResult | ViewResult | ScalarResult | ParameterResult | SameResult | ObjectResult


def scalar_words(kind: str) -> int:
    """How many 64-bit words a scalar of this kind takes: two for complex128, else one."""
    return 2 if kind in ("complex", "complex128") else 1
