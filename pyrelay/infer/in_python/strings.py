"""Methods of strings, in plain Python that our own frontend compiles.

In: strings that the running program has as code points. Out: what the method of the same name of
`str` gives. What a function here does not take (bounds of `startswith`, tuples of prefixes), Python
is asked for (text.py).
"""

from __future__ import annotations

from typing import Any


def split(string: Any, sep: Any = None, maxsplit: Any = -1) -> Any:
    """string.split(sep, maxsplit). Raises ValueError for an empty separator."""
    if sep is None:
        return _words(string, maxsplit)
    if len(sep) == 0:
        raise ValueError("empty separator")
    parts: list[Any] = []
    first = 0
    at = find(string, sep)
    while at >= 0 and maxsplit != len(parts):
        parts.append(string[first:at])
        first = at + len(sep)
        at = find(string, sep, first)
    parts.append(string[first:])
    return parts


def _words(string: Any, maxsplit: Any) -> Any:
    parts: list[Any] = []
    count = len(string)
    at = 0
    while at < count:
        if string[at].isspace():
            at += 1
            continue
        if maxsplit == len(parts):
            parts.append(string[at:])
            break
        first = at
        while at < count and not string[at].isspace():
            at += 1
        parts.append(string[first:at])
    return parts


def partition(string: Any, sep: Any) -> Any:
    """string.partition(sep)."""
    if len(sep) == 0:
        raise ValueError("empty separator")
    at = find(string, sep)
    if at < 0:
        return string[:], string[:0], string[:0]
    return string[:at], string[at : at + len(sep)], string[at + len(sep) :]


def find(string: Any, wanted: Any, start: Any = 0, end: Any = None) -> Any:
    """string.find(wanted, start, end)."""
    count, size = len(string), len(wanted)
    low = max(start + count, 0) if start < 0 else start
    high = count if end is None else (max(end + count, 0) if end < 0 else min(end, count))
    for at in range(low, high - size + 1):
        if _is_at(string, wanted, at):
            return at
    return -1


def _is_at(string: Any, wanted: Any, at: Any) -> Any:
    for k in range(len(wanted)):  # noqa: SIM110
        if string[at + k] != wanted[k]:
            return False
    return True


def index(string: Any, wanted: Any, start: Any = 0, end: Any = None) -> Any:
    """string.index(wanted, start, end). Raises ValueError."""
    at = find(string, wanted, start, end)
    if at < 0:
        raise ValueError("substring not found")
    return at


def startswith(string: Any, prefix: Any) -> Any:
    """string.startswith(prefix) of one prefix."""
    return len(prefix) <= len(string) and _is_at(string, prefix, 0)


def endswith(string: Any, suffix: Any) -> Any:
    """string.endswith(suffix) of one suffix."""
    return len(suffix) <= len(string) and _is_at(string, suffix, len(string) - len(suffix))


def count(string: Any, wanted: Any) -> Any:
    """string.count(wanted)."""
    if len(wanted) == 0:
        return len(string) + 1
    found = at = 0
    while at <= len(string) - len(wanted):
        if _is_at(string, wanted, at):
            found += 1
            at += len(wanted)
        else:
            at += 1
    return found


def lstrip(string: Any, chars: Any = None) -> Any:
    """string.lstrip(chars)."""
    first = 0
    while first < len(string) and _is_stripped(string[first], chars):
        first += 1
    return string[first:]


def rstrip(string: Any, chars: Any = None) -> Any:
    """string.rstrip(chars)."""
    last = len(string)
    while last > 0 and _is_stripped(string[last - 1], chars):
        last -= 1
    return string[:last]


def strip(string: Any, chars: Any = None) -> Any:
    """string.strip(chars)."""
    return lstrip(rstrip(string, chars), chars)


def _is_stripped(character: Any, chars: Any) -> Any:
    return character.isspace() if chars is None else character in chars


def isalpha(string: Any) -> Any:
    """string.isalpha()."""
    return len(string) > 0 and all(character.isalpha() for character in string)


def isdigit(string: Any) -> Any:
    """string.isdigit()."""
    return len(string) > 0 and all(character.isdigit() for character in string)


def isalnum(string: Any) -> Any:
    """string.isalnum()."""
    return len(string) > 0 and all(character.isalnum() for character in string)


def isspace(string: Any) -> Any:
    """string.isspace()."""
    return len(string) > 0 and all(character.isspace() for character in string)


METHODS = {
    f.__name__: f for f in (
        split, partition, find, index, startswith, endswith, count, lstrip, rstrip, strip, isalpha,
        isdigit, isalnum, isspace,
    )
}  # fmt: skip
"""The methods by their names."""
