"""array.array, in plain Python.

In and out: what `array.array` takes and gives, of ints of up to 64 bits with a sign and of floats.
The items are in a list; back in Python each is what it stands for (`containers.standing_for`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

_LONG = "Python int too large to convert to C long"
_NO_SIGN = "can't convert negative value to unsigned int"
_LEAST, _MOST = -(2**63), 2**63 - 1
_BOUNDS = {
    "b": (-128, 127, "signed char is less than minimum", "signed char is greater than maximum"),
    "B": (0, 255, "unsigned byte integer is less than minimum",
          "unsigned byte integer is greater than maximum"),
    "h": (-(2**15), 2**15 - 1, "signed short integer is less than minimum",
          "signed short integer is greater than maximum"),
    "H": (0, 2**16 - 1, "unsigned short is less than minimum",
          "unsigned short is greater than maximum"),
    "i": (-(2**31), 2**31 - 1, "signed integer is less than minimum",
          "signed integer is greater than maximum"),
    "I": (0, 2**32 - 1, _NO_SIGN, "unsigned int is greater than maximum"),
    "l": (_LEAST, _MOST, _LONG, _LONG), "L": (0, _MOST, _NO_SIGN, _LONG),
    "q": (_LEAST, _MOST, "int too big to convert", "int too big to convert"),
    "Q": (0, _MOST, "can't convert negative int to unsigned", "int too big to convert"),
}
"""The least and the greatest item by type code, and what Python says of those beyond."""
_SIZES = {code: array(code).itemsize for code in (*_BOUNDS, "f", "d")}


class TypedArray:
    """array.array."""

    def __init__(self, typecode: Any, initializer: Any = ()) -> None:
        if typecode not in "bBhHiIlLqQfd":
            if typecode == "u":
                refuse("an array of characters: use a string, or a list of characters")
            raise ValueError("bad typecode (must be b, B, u, h, H, i, I, l, L, q, Q, f or d)")
        if isinstance(initializer, str):
            raise TypeError(f"cannot use a str to initialize an array with typecode '{typecode}'")
        if isinstance(initializer, (bytes, bytearray)) and typecode != "B":
            refuse("an array of bytes that are read as numbers: use np.frombuffer outside")
        self.typecode = typecode
        self.items: list[Any] = [_item(typecode, value) for value in initializer]

    @property
    def itemsize(self) -> Any:
        return _SIZES[self.typecode]

    def _made(self, items: Any) -> Any:
        made = TypedArray(self.typecode)
        made.items = items
        return made

    def _place(self, index: Any, said: str) -> Any:
        place = index + len(self.items) if index < 0 else index
        if place < 0 or place >= len(self.items):
            raise IndexError(said)
        return place

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._made(self.items[index])
        return self.items[self._place(index, "array index out of range")]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            if not isinstance(value, array):
                raise TypeError(
                    f'can only assign array (not "{type(value).__name__}") to array slice'
                )
            self.items[index] = _of_kind(value, self.typecode)
        else:
            place = self._place(index, "array assignment index out of range")
            self.items[place] = _item(self.typecode, value)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            del self.items[index]
        else:
            del self.items[self._place(index, "array assignment index out of range")]

    def __contains__(self, value: Any) -> Any:
        return value in self.items

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, array) and self.items == other.tolist()

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> Any:
        return self.items < other.tolist()

    def __le__(self, other: Any) -> Any:
        return self.items <= other.tolist()

    def __gt__(self, other: Any) -> Any:
        return self.items > other.tolist()

    def __ge__(self, other: Any) -> Any:
        return self.items >= other.tolist()

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, array):
            raise TypeError(f'can only append array (not "{type(other).__name__}") to array')
        return self._made(self.items + _of_kind(other, self.typecode))

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, array):
            raise TypeError(f'can only extend array with array (not "{type(other).__name__}")')
        self.extend(other)
        return self

    def __mul__(self, count: Any) -> Any:
        return self._made(self.items * count)

    __rmul__ = __mul__

    def __imul__(self, count: Any) -> Any:
        self.items *= count
        return self

    def __repr__(self) -> str:
        shown = f", {self.items}" if len(self.items) > 0 else ""
        return f"array('{self.typecode}'{shown})"

    def append(self, value: Any) -> None:
        self.items.append(_item(self.typecode, value))

    def extend(self, values: Any) -> None:
        if isinstance(values, array):
            self.items.extend(_of_kind(values, self.typecode))
        else:
            for value in values:
                self.append(value)

    def fromlist(self, values: Any) -> None:
        self.items.extend([_item(self.typecode, value) for value in values])

    def insert(self, index: Any, value: Any) -> None:
        self.items.insert(index, _item(self.typecode, value))

    def pop(self, index: Any = -1) -> Any:
        if len(self.items) == 0:
            raise IndexError("pop from empty array")
        return self.items.pop(self._place(index, "pop index out of range"))

    def remove(self, value: Any) -> None:
        if value not in self.items:
            raise ValueError("array.remove(x): x not in array")
        self.items.remove(value)

    def index(self, value: Any, start: Any = 0, stop: Any = _MOST) -> Any:
        size = len(self.items)
        first = max(start + size, 0) if start < 0 else start
        for k in range(first, min(stop + size if stop < 0 else stop, size)):
            if self.items[k] == value:
                return k
        raise ValueError("array.index(x): x not in array")

    def count(self, value: Any) -> Any:
        return self.items.count(value)

    def reverse(self) -> None:
        self.items.reverse()

    def tolist(self) -> Any:
        return self.items[:]

    def __copy__(self) -> Any:
        return self._made(self.items[:])


def entered_array(items: list[Any], typecode: Any) -> TypedArray:
    """The array of the caller's with these items."""
    made = TypedArray(typecode)
    made.items = items
    return made


def _of_kind(other: Any, typecode: Any) -> Any:
    """The items of another array of a type code."""
    if other.typecode != typecode:
        raise TypeError("can only extend with array of same kind")
    return other.tolist()


def _item(typecode: Any, value: Any) -> Any:
    """A value as an item of an array of a type code."""
    if typecode in ("f", "d"):
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            raise TypeError(f"must be real number, not {type(value).__name__}")
        return float(value) if typecode == "d" else float(np.float32(value))
    if not isinstance(value, (int, np.integer, np.bool_)):
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
    least, most, below, above = _BOUNDS[typecode]
    if value < least:
        raise OverflowError(below)
    if value > most:
        raise OverflowError(above)
    return int(value)


__all__ = ["TypedArray", "entered_array"]
