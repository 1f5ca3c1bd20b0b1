"""The types of the kernel language.

In: nothing. Out: one object for each type; equal types are the same object.
"""

from __future__ import annotations


class Type:
    """A type of values in kernels."""

    def __init__(self, name: str, bitwidth: int = 0) -> None:
        self.name, self.bitwidth = name, bitwidth

    def __repr__(self) -> str:
        return self.name

    @property
    def signed(self) -> bool:
        """Whether integers of this type have a sign."""
        raise TypeError(f"{self} is no integer")

    @property
    def underlying_float(self) -> Type:
        """The type of a complex number's parts."""
        raise TypeError(f"{self} is not complex")


class Integer(Type):
    """Integers that wrap around."""

    def __init__(self, name: str, bitwidth: int, signed: bool) -> None:
        super().__init__(name, bitwidth)
        self._signed = signed

    @property
    def signed(self) -> bool:
        return self._signed


class Float(Type):
    """Floats of IEEE 754."""


class Complex(Type):
    """Pairs of floats."""

    def __init__(self, name: str, part: Float) -> None:
        super().__init__(name, 2 * part.bitwidth)
        self._part = part

    @property
    def underlying_float(self) -> Type:
        return self._part


class Half(Type):
    """A float of 16 bits: 32 in registers, whose value is one of those that 16 bits have."""


void = Type("void")
boolean = Type("bool", 1)
int8, int16, int32, int64 = (Integer(f"int{bits}", bits, True) for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (Integer(f"uint{bits}", bits, False) for bits in (8, 16, 32, 64))
float32, float64 = Float("float32", 32), Float("float64", 64)
complex64, complex128 = Complex("complex64", float32), Complex("complex128", float64)
half, brain = Half("half", 16), Half("brain float", 16)
