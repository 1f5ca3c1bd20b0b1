"""Methods of strings, in plain Python that our own frontend compiles.

In: strings that the running program has as code points. Out: what the method of the same name of
`str` gives. What a function here does not take (bounds of `startswith`, tuples of prefixes), Python
is asked for (text.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import once


def split(string: Any, sep: Any = None, maxsplit: Any = -1) -> Any:
    """string.split(sep, maxsplit). Raises ValueError for an empty separator."""
    if sep is None:
        return _words(string, maxsplit)
    if len(sep) == 0:
        raise ValueError("empty separator")
    bounds = np.empty((len(string) // len(sep) + 1, 2), np.int64)
    found = first = 0
    at = find(string, sep)
    while at >= 0 and maxsplit != found:
        bounds[found, 0], bounds[found, 1] = first, at
        found += 1
        first = at + len(sep)
        at = find(string, sep, first)
    bounds[found, 0], bounds[found, 1] = first, len(string)
    return between(string, bounds[: found + 1])


def _words(string: Any, maxsplit: Any) -> Any:
    count = len(string)
    bounds = np.empty((count // 2 + 1, 2), np.int64)
    found = at = 0
    while at < count:
        if string[at].isspace():
            at += 1
            continue
        bounds[found, 0] = at
        if maxsplit == found:
            at = count
        else:
            while at < count and not string[at].isspace():
                at += 1
        bounds[found, 1] = at
        found += 1
    return between(string, bounds[:found])


def rsplit(string: Any, sep: Any = None, maxsplit: Any = -1) -> Any:
    """string.rsplit(sep, maxsplit). Raises ValueError for an empty separator."""
    if maxsplit < 0:
        return split(string, sep)
    if sep is None:
        return _last_words(string, maxsplit)
    if len(sep) == 0:
        raise ValueError("empty separator")
    bounds = np.empty((len(string) // len(sep) + 1, 2), np.int64)
    row, end = len(bounds) - 1, len(string)
    at = rfind(string, sep)
    while at >= 0 and maxsplit > 0:
        bounds[row, 0], bounds[row, 1] = at + len(sep), end
        row, end, maxsplit = row - 1, at, maxsplit - 1
        at = rfind(string, sep, 0, end)
    bounds[row, 0], bounds[row, 1] = 0, end
    return between(string, bounds[row:])


def _last_words(string: Any, maxsplit: Any) -> Any:
    at = len(string)
    bounds = np.empty((at // 2 + 1, 2), np.int64)
    row = len(bounds)
    while at > 0:
        if string[at - 1].isspace():
            at -= 1
            continue
        row -= 1
        bounds[row, 1] = at
        if maxsplit == 0:
            at = 0
        else:
            while at > 0 and not string[at - 1].isspace():
                at -= 1
        bounds[row, 0] = at
        maxsplit -= 1
    return between(string, bounds[row:])


def between(string: Any, bounds: Any) -> Any:
    """The parts of a string between places, which are rows of two; a handler makes all at once."""
    return [string[first:end] for first, end in bounds.tolist()]


def rows_between(codes: Any, bounds: Any) -> Any:
    """How long the parts of an array between places are, and the parts as rows of a matrix."""
    counts = bounds[:, 1] - bounds[:, 0]
    room = int(np.max(counts, initial=0))
    behind = np.arange(room)
    places = np.minimum(bounds[:, :1] + behind, codes.shape[0] - 1)
    return counts, np.where(behind < counts[:, None], codes[places], 0)


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
    low, high = _ends(string, start, end)
    for at in range(low, high - len(wanted) + 1):
        if _is_at(string, wanted, at):
            return at
    return -1


def _ends(string: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Where string[start:end] begins and ends; behind each other where it begins behind the end."""
    count = len(string)
    low = max(start + count, 0) if start < 0 else start
    high = count if end is None else (max(end + count, 0) if end < 0 else min(end, count))
    return low, high


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


def startswith(string: Any, prefix: Any, start: Any = 0, end: Any = None) -> Any:
    """string.startswith(prefix, start, end) of one prefix."""
    low, high = _ends(string, start, end)
    return len(prefix) <= high - low and _is_at(string, prefix, low)


def endswith(string: Any, suffix: Any, start: Any = 0, end: Any = None) -> Any:
    """string.endswith(suffix, start, end) of one suffix."""
    low, high = _ends(string, start, end)
    return len(suffix) <= high - low and _is_at(string, suffix, high - len(suffix))


def count(string: Any, wanted: Any, start: Any = 0, end: Any = None) -> Any:
    """string.count(wanted, start, end)."""
    low, high = _ends(string, start, end)
    if len(wanted) == 0:
        return max(high - low + 1, 0)
    found, at = 0, low
    while at <= high - len(wanted):
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


def isascii(string: Any) -> Any:
    """string.isascii()."""
    return all(character.isascii() for character in string)


def isdecimal(string: Any) -> Any:
    """string.isdecimal()."""
    return len(string) > 0 and all(character.isdecimal() for character in string)


def isnumeric(string: Any) -> Any:
    """string.isnumeric()."""
    return len(string) > 0 and all(character.isnumeric() for character in string)


def islower(string: Any) -> Any:
    """string.islower(): letters that are capitals only when they begin a word are none, either."""
    if any(c.isupper() or c.lower() != c for c in string):
        return False
    return any(character.islower() for character in string)


def isupper(string: Any) -> Any:
    """string.isupper()."""
    if any(c.islower() or c.upper() != c for c in string):
        return False
    return any(character.isupper() for character in string)


# -- other cases: Python is asked where there are others than ASCII's characters -------------------


def codes_of_python(string: Any, name: Any) -> Any:
    """The code points of what the method of this name gives; a handler asks Python for them."""
    return list(map(ord, getattr(string, name)()))


def _text(codes: Any) -> Any:
    return "".join([chr(code) for code in codes])


def _lowered(code: Any) -> Any:
    return code + 32 if code >= 65 and code <= 90 else code


def _raised(code: Any) -> Any:
    return code - 32 if code >= 97 and code <= 122 else code


def _turned(code: Any) -> Any:
    lower = _lowered(code)
    return lower if lower != code else _raised(code)


def _cased(string: Any, name: Any, change: Any) -> Any:
    if string.isascii():
        return _text([change(ord(character)) for character in string])
    return _text(codes_of_python(string, name))


def lower(string: Any) -> Any:
    """string.lower()."""
    return _cased(string, "lower", _lowered)


def casefold(string: Any) -> Any:
    """string.casefold()."""
    return _cased(string, "casefold", _lowered)


def upper(string: Any) -> Any:
    """string.upper()."""
    return _cased(string, "upper", _raised)


def swapcase(string: Any) -> Any:
    """string.swapcase()."""
    return _cased(string, "swapcase", _turned)


def capitalize(string: Any) -> Any:
    """string.capitalize()."""
    if not string.isascii():
        return _text(codes_of_python(string, "capitalize"))
    codes = [_lowered(ord(character)) for character in string]
    if len(codes) > 0:
        codes[0] = _raised(codes[0])
    return _text(codes)


def title(string: Any) -> Any:
    """string.title()."""
    if not string.isascii():
        return _text(codes_of_python(string, "title"))
    codes: list[Any] = []
    inside = False
    for character in string:
        code = ord(character)
        codes.append(_lowered(code) if inside else _raised(code))
        inside = _lowered(code) != _raised(code)
    return _text(codes)


# -- longer and shorter ones -----------------------------------------------------------------------


def replace(string: Any, old: Any, new: Any, count: Any = -1) -> Any:
    """string.replace(old, new, count)."""
    codes: list[Any] = []
    into = [ord(character) for character in new]
    size, done, at = len(old), 0, 0
    while at + size <= len(string):
        if done != count and _is_at(string, old, at):
            codes.extend(into)
            done += 1
            at += size
            if size > 0:
                continue
        if at < len(string):
            codes.append(ord(string[at]))
        at += 1
    while at < len(string):
        codes.append(ord(string[at]))
        at += 1
    return _text(codes)


def removeprefix(string: Any, prefix: Any) -> Any:
    """string.removeprefix(prefix)."""
    return string[len(prefix) if startswith(string, prefix) else 0 :]


def removesuffix(string: Any, suffix: Any) -> Any:
    """string.removesuffix(suffix)."""
    return string[: len(string) - len(suffix) if endswith(string, suffix) else len(string)]


def _filled(string: Any, before: Any, after: Any, fillchar: Any) -> Any:
    if len(fillchar) != 1:
        raise TypeError("The fill character must be exactly one character long")
    codes = [ord(fillchar[0])] * before
    codes.extend([ord(character) for character in string])
    codes.extend([ord(fillchar[0])] * after)
    return _text(codes)


def ljust(string: Any, width: Any, fillchar: Any = " ") -> Any:
    """string.ljust(width, fillchar)."""
    return _filled(string, 0, max(width - len(string), 0), fillchar)


def rjust(string: Any, width: Any, fillchar: Any = " ") -> Any:
    """string.rjust(width, fillchar)."""
    return _filled(string, max(width - len(string), 0), 0, fillchar)


def center(string: Any, width: Any, fillchar: Any = " ") -> Any:
    """string.center(width, fillchar)."""
    spare = max(width - len(string), 0)
    before = spare // 2 + (spare & width & 1)
    return _filled(string, before, spare - before, fillchar)


def aligned(string: Any, width: Any, fillchar: Any, side: Any) -> Any:
    """format(string, f"{fillchar}{side}{width}") of a side that is <, > or ^."""
    gap = width - len(string)
    if gap <= 0:
        return string
    before = gap if side == ">" else gap // 2 if side == "^" else 0
    return _filled(string, before, gap - before, fillchar)


def zfill(string: Any, width: Any) -> Any:
    """string.zfill(width)."""
    spare = max(width - len(string), 0)
    signed = len(string) > 0 and (string[0] == "+" or string[0] == "-")
    codes = [ord(string[0])] if signed else []
    codes.extend([48] * spare)
    codes.extend([ord(character) for character in (string[1:] if signed else string)])
    return _text(codes)


# -- from the end, and by lines --------------------------------------------------------------------


def rfind(string: Any, wanted: Any, start: Any = 0, end: Any = None) -> Any:
    """string.rfind(wanted, start, end)."""
    low, high = _ends(string, start, end)
    at = high - len(wanted)
    while at >= low:
        if _is_at(string, wanted, at):
            return at
        at -= 1
    return -1


def rindex(string: Any, wanted: Any, start: Any = 0, end: Any = None) -> Any:
    """string.rindex(wanted, start, end). Raises ValueError."""
    at = rfind(string, wanted, start, end)
    if at < 0:
        raise ValueError("substring not found")
    return at


def rpartition(string: Any, sep: Any) -> Any:
    """string.rpartition(sep)."""
    if len(sep) == 0:
        raise ValueError("empty separator")
    at = rfind(string, sep)
    if at < 0:
        return string[:0], string[:0], string[:]
    return string[:at], string[at : at + len(sep)], string[at + len(sep) :]


def splitlines(string: Any) -> Any:
    """string.splitlines()."""
    bounds = np.empty((len(string) + 1, 2), np.int64)
    found = first = at = 0
    while at < len(string):
        if string[at] not in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
            at += 1
            continue
        bounds[found, 0], bounds[found, 1] = first, at
        found += 1
        at += 2 if string[at] == "\r" and at + 1 < len(string) and string[at + 1] == "\n" else 1
        first = at
    if first < len(string):
        bounds[found, 0], bounds[found, 1] = first, len(string)
        found += 1
    return between(string, bounds[:found])


def pairs_of_texts(x: Any, y: Any, z: Any) -> Any:
    """str.maketrans(x, y, z): a dict of the code points; of those in z it says None."""
    if len(x) != len(y):
        raise ValueError("the first two maketrans arguments must have equal length")
    into: dict[Any, Any] = {}
    for k in range(len(x)):
        into[ord(x[k])] = ord(y[k])
    for character in z:
        into[ord(character)] = None
    return into


def translate(string: Any, table: Any) -> Any:
    """string.translate(table), of a dict from code points to code points, texts or None."""
    codes: list[Any] = []
    for character in string:
        into = table.get(ord(character), ord(character))
        if isinstance(into, str):
            codes.extend([ord(each) for each in into])
        elif into is not None:
            codes.append(into)
    return _text(codes)


def quoted_by_python(string: Any) -> Any:
    """The code points of repr(string); a handler asks Python."""
    return np.array(list(map(ord, repr(string))))


def quoted(string: Any) -> Any:
    """The code points of repr(string)."""
    codes, end = _quoted(string)
    if end < 0:
        return quoted_by_python(string)
    return codes[:end]


@once
def _quoted(string: Any) -> Any:
    """What `quoted` gives up to a place, -1 if that is for Python to say: of ASCII's characters
    that are printed, and of ends of lines and tabs."""
    codes = np.empty(2 * len(string) + 2, np.int64)
    single = double = False
    for character in string:
        code = ord(character)
        if code > 126 or (code < 32 and code != 9 and code != 10 and code != 13):
            return codes, -1
        single = single or code == 39
        double = double or code == 34
    quote = 34 if single and not double else 39
    codes[0] = quote
    at = 1
    for character in string:
        code = ord(character)
        if code == quote or code == 92 or code < 32:
            codes[at] = 92
            at += 1
        codes[at] = 110 if code == 10 else 114 if code == 13 else 116 if code == 9 else code
        at += 1
    codes[at] = quote
    return codes, at + 1


def translated(string: Any, places: Any, ends: Any, codes: Any) -> Any:
    """string.translate(table) of a known table. places: for the first code points, which entry of
    the table says what they become, -1 for none; ends: where each of these ends in `codes`."""
    size = 0
    for character in string:
        place = _entry(ord(character), places)
        size += 1 if place < 0 else ends[place + 1] - ends[place]
    made = np.empty(size, np.int64)
    at = 0
    for character in string:
        place = _entry(ord(character), places)
        if place < 0:
            made[at] = ord(character)
            at += 1
        else:
            for k in range(ends[place], ends[place + 1]):
                made[at] = codes[k]
                at += 1
    return _text(made)


def _entry(code: Any, places: Any) -> Any:
    return places[code] if code < len(places) else -1


METHODS = {
    f.__name__: f for f in (
        split, partition, find, index, startswith, endswith, count, lstrip, rstrip, strip, isalpha,
        isdigit, isalnum, isspace, isascii, isdecimal, isnumeric, islower, isupper, lower, casefold,
        upper, swapcase, capitalize, title, replace, removeprefix, removesuffix, ljust, rjust,
        center, zfill, rfind, rindex, rpartition, splitlines, rsplit,
    )
}  # fmt: skip
"""The methods by their names."""
