"""bytearray and bytes whose items only the running program knows, in plain Python.

In and out: what the types of Python take and give. Their items are ints in a list; back in Python
each is what it stands for (`containers.standing_for`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyrelay.infer.in_python import once, refuse


class ByteString:
    """bytes."""

    outside = "index out of range"
    too_large = "bytes must be in range(0, 256)"

    def __init__(self, source: Any = ()) -> None:
        self.items: list[Any] = _items_of(source, self.too_large)

    def _made(self, items: Any) -> Any:
        made = ByteString()
        made.items = items
        return made

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._made(self.items[index])
        return self.items[self._place(index)]

    def _place(self, index: Any) -> Any:
        place = index + len(self.items) if index < 0 else index
        if place < 0 or place >= len(self.items):
            raise IndexError(self.outside)
        return place

    def __contains__(self, value: Any) -> Any:
        return self.find(value) >= 0

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, (bytes, bytearray)) or len(self.items) != len(other):
            return False
        for k in range(len(self.items)):  # noqa: SIM110
            if self.items[k] != other[k]:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        return self._made(self.items + _read(other))

    def __mul__(self, count: Any) -> Any:
        return self._made(self.items * count)

    __rmul__ = __mul__

    def count(self, value: Any, start: Any = 0, end: Any = None) -> Any:
        wanted = _sought(value)
        first, last = _ends(self.items, start, end)
        if len(wanted) == 0:
            return max(last - first + 1, 0)
        count = 0
        while True:
            place = _place_of(wanted, self.items, first, last)
            if place < 0:
                return count
            count += 1
            first = place + len(wanted)

    def index(self, value: Any, start: Any = 0, end: Any = None) -> Any:
        found = self.find(value, start, end)
        if found < 0:
            raise ValueError("subsection not found")
        return found

    def find(self, value: Any, start: Any = 0, end: Any = None) -> Any:
        first, last = _ends(self.items, start, end)
        return _place_of(_sought(value), self.items, first, last)

    def rfind(self, value: Any, start: Any = 0, end: Any = None) -> Any:
        wanted = _sought(value)
        first, last = _ends(self.items, start, end)
        for k in range(last - len(wanted), first - 1, -1):
            if _stands_at(wanted, self.items, k):
                return k
        return -1

    def startswith(self, prefix: Any) -> Any:
        if isinstance(prefix, tuple):
            return any(self.startswith(one) for one in prefix)
        return self[: len(prefix)] == prefix

    def endswith(self, suffix: Any) -> Any:
        if isinstance(suffix, tuple):
            return any(self.endswith(one) for one in suffix)
        return len(suffix) <= len(self.items) and self[len(self.items) - len(suffix) :] == suffix

    def join(self, parts: Any) -> Any:
        items: list[Any] = []
        for number, part in enumerate(parts):
            if number > 0:
                items.extend(self.items)
            items.extend(_read(part))
        return self._made(items)

    def decode(self, encoding: Any = "utf-8", errors: Any = "strict") -> Any:
        if errors != "strict":
            refuse("decode() that leaves out or replaces what is no text")
        if encoding.lower() in ("utf-8", "utf8"):
            return _decoded(self.items)
        if encoding.lower() in ("latin-1", "latin1", "iso-8859-1"):
            return "".join([chr(item) for item in self.items])
        if encoding.lower() != "ascii":
            refuse("decode() of another encoding than UTF-8, ASCII and Latin-1")
        for at, item in enumerate(self.items):
            if item > 127:
                raise UnicodeDecodeError(
                    "ascii", bytes(self.items), at, at + 1, "ordinal not in range(128)"
                )
        return "".join([chr(item) for item in self.items])

    def lstrip(self, chars: Any = None) -> Any:
        first, sought = 0, _stripped(chars)
        while first < len(self.items) and self.items[first] in sought:
            first += 1
        return self._made(self.items[first:])

    def rstrip(self, chars: Any = None) -> Any:
        last, sought = len(self.items), _stripped(chars)
        while last > 0 and self.items[last - 1] in sought:
            last -= 1
        return self._made(self.items[:last])

    def strip(self, chars: Any = None) -> Any:
        return self.lstrip(chars).rstrip(chars)

    def upper(self) -> Any:
        return self._made([n - 32 if n >= 97 and n <= 122 else n for n in self.items])

    def lower(self) -> Any:
        return self._made([n + 32 if n >= 65 and n <= 90 else n for n in self.items])

    def replace(self, old: Any, new: Any, count: Any = -1) -> Any:
        before, after = _read(old), _read(new)
        items: list[Any] = []
        at, left = 0, count
        while at <= len(self.items):
            ends = at + len(before) > len(self.items) or left == 0
            if not ends and _stands_at(before, self.items, at):
                items.extend(after)
                left -= 1
                if len(before) > 0:
                    at += len(before)
                    continue
            if at < len(self.items):
                items.append(self.items[at])
            at += 1
        return self._made(items)

    def hex(self) -> Any:
        return "".join(["0123456789abcdef"[n // 16] + "0123456789abcdef"[n % 16]
                        for n in self.items])


class ByteArray(ByteString):
    """bytearray."""

    outside = "bytearray index out of range"
    too_large = "byte must be in range(0, 256)"

    def _made(self, items: Any) -> Any:
        made = ByteArray()
        made.items = items
        return made

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self.items[index] = _items_of(value)
        else:
            self.items[self._place(index)] = _byte(value)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            del self.items[index]
        else:
            del self.items[self._place(index)]

    def __iadd__(self, other: Any) -> Any:
        self.extend(other)
        return self

    def append(self, value: Any) -> None:
        self.items.append(_byte(value))

    def extend(self, values: Any) -> None:
        for value in values:
            self.append(value)

    def insert(self, index: Any, value: Any) -> None:
        self.items.insert(index, _byte(value))

    def pop(self, index: Any = -1) -> Any:
        if len(self.items) == 0:
            raise IndexError("pop from empty bytearray")
        return self.items.pop(index)

    def reverse(self) -> None:
        self.items.reverse()

    def clear(self) -> None:
        self.items.clear()

    def copy(self) -> Any:
        return self._made(self.items[:])


def entered(items: Any) -> Any:
    """The bytes of the caller's whose items an array has."""
    made = ByteString()
    made.items = items.tolist()
    return made


def encoded(string: Any) -> Any:
    """string.encode(), in UTF-8."""
    items: list[Any] = []
    for at, character in enumerate(string):
        code = ord(character)
        if code < 0x80:
            items.append(code)
            continue
        if code < 0x800:
            items.append(0xC0 | code >> 6)
        elif code < 0x10000:
            if code >= 0xD800 and code < 0xE000:
                raise UnicodeEncodeError("utf-8", string, at, at + 1, "surrogates not allowed")
            items.append(0xE0 | code >> 12)
            items.append(0x80 | code >> 6 & 0x3F)
        else:
            items.append(0xF0 | code >> 18)
            items.append(0x80 | code >> 12 & 0x3F)
            items.append(0x80 | code >> 6 & 0x3F)
        items.append(0x80 | code & 0x3F)
    made = ByteString()
    made.items = items
    return made


def _decoded(items: list[Any]) -> Any:
    """The text of bytes in UTF-8 (Unicode 15.0, table 3-7)."""
    characters: list[Any] = []
    at = 0
    while at < len(items):
        first = items[at]
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if first < 0x80:
            more = 0
        elif first < 0xC2 or first > 0xF4:
            raise UnicodeDecodeError("utf-8", bytes(items), at, at + 1, "invalid start byte")
        code = first if more == 0 else first & (0x3F >> more)
        for k in range(1, more + 1):
            if at + k >= len(items):
                raise UnicodeDecodeError(
                    "utf-8", bytes(items), at, len(items), "unexpected end of data"
                )
            least = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
            most = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
            item = items[at + k]
            if item < (least if k == 1 else 0x80) or item > (most if k == 1 else 0xBF):
                raise UnicodeDecodeError(
                    "utf-8", bytes(items), at, at + k, "invalid continuation byte"
                )
            code = code << 6 | item & 0x3F
        characters.append(chr(code))
        at += more + 1
    return "".join(characters)


def _stripped(chars: Any) -> Any:
    """What is stripped of bytes: these, or white space."""
    return [9, 10, 11, 12, 13, 32] if chars is None else _read(chars)


def _sought(value: Any) -> Any:
    """The items that are looked for: those of bytes, or one."""
    return list(value) if isinstance(value, (bytes, bytearray)) else [_byte(value)]


def _ends(items: list[Any], start: Any, end: Any) -> tuple[Any, Any]:
    """Where items[start:end] begins and ends; behind each other where it begins behind the end."""
    size = len(items)
    last = size if end is None or end > size else end
    first = max(start + size, 0) if start < 0 else start
    return first, max(last + size, 0) if last < 0 else last


@once
def _stands_at(wanted: list[Any], items: list[Any], place: Any) -> Any:
    for k in range(len(wanted)):  # noqa: SIM110
        if items[place + k] != wanted[k]:
            return False
    return True


@once
def _place_of(wanted: list[Any], items: list[Any], first: Any, last: Any) -> Any:
    """The first place of some items among others, -1 if there is none."""
    for k in range(first, last - len(wanted) + 1):
        if _stands_at(wanted, items, k):
            return k
    return -1


def _byte(value: Any, said: str = ByteArray.too_large) -> Any:
    if value < 0 or value > 255:
        raise ValueError(said)
    return int(value)


def to_bytes(number: Any, length: Any, byteorder: Any, signed: Any) -> Any:
    """number.to_bytes(length, byteorder, signed=signed)."""
    if byteorder not in ("big", "little"):
        raise ValueError("byteorder must be either 'little' or 'big'")
    if length < 0:
        raise ValueError("length argument must be non-negative")
    if number < 0 and not signed:
        raise OverflowError("can't convert negative int to unsigned")
    bits = 8 * length - 1 if signed else 8 * length
    if bits < 63 and (number >> max(bits, 0)) != (-1 if number < 0 else 0):
        raise OverflowError("int too big to convert")
    made = ByteString()
    made.items = [(number >> min(8 * k, 63)) & 255 for k in range(length)]
    if byteorder == "big":
        made.items.reverse()
    return made


def from_bytes(bytes: Any, byteorder: Any = "big", *, signed: Any = False) -> Any:
    """int.from_bytes(bytes, byteorder, signed=signed)."""
    if byteorder not in ("big", "little"):
        raise ValueError("byteorder must be either 'little' or 'big'")
    items = _read(bytes)
    number = 0
    for k, item in enumerate(reversed(items) if byteorder == "little" else items):
        number = number * 256 + (item - 256 if signed and k == 0 and item > 127 else item)
    return number


def _read(source: Any) -> Any:
    """The items of bytes, in a list that is only read: the list itself, where there is one."""
    return source.items if hasattr(source, "outside") else list(source)


def _items_of(source: Any, said: str = ByteArray.too_large) -> Any:
    """The items of bytes that are made of a count, of bytes, or of ints."""
    if isinstance(source, str):
        raise TypeError("string argument without an encoding")
    if isinstance(source, (int, np.integer)):
        if source < 0:
            raise ValueError("negative count")
        return [0] * source
    if isinstance(source, (bytes, bytearray)):
        return list(_read(source))
    return [_byte(value, said) for value in source]


__all__ = ["ByteArray", "ByteString", "encoded", "from_bytes", "to_bytes"]
