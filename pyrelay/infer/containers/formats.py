"""How the program writes what a string shows: numbers, and strings with room around them.

In: a `V.Text` that says which Python function makes a string of what. Out: a `Writing`, the
function of our own that writes it and how; None where Python has to be asked. The grammar is that
of Python's format specifications (Format Specification Mini-Language, in the docs of `string`).
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.in_python import digits, strings
from pyrelay.ir import types
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Writing:
    """What writes a string.

    function   from a number and `form` to an array of code points; None if `of` is the string
    of         the number or the string
    form       how, as keywords
    as_float   whether the number is made a float first
    room       at least so many characters, filled up by one, the string being at a side: < > ^
    """

    function: Callable[..., Any] | None
    of: V.Value
    form: dict[str, Any]
    room: tuple[int, str, str] | None = None
    as_float: bool = False


def writing_of(value: V.Text) -> Writing | None:
    """How a string is written; None for what Python has to be asked."""
    from pyrelay.infer.containers import text

    of = value.args[0] if value.args else V.NONE
    function: Callable[..., Any] = value.function
    spec: V.Value = V.Known("")
    match value:
        case V.Text(text.formatted, (_, V.Known(conversion), given)):
            function, spec = _CONVERSIONS[conversion], given
        case V.Text(builtins.format, (_, given)):
            spec = given
    if not isinstance(spec, V.Known):
        return None
    if function in (format, str) and _is_string(of):
        return _of_string(of, spec.value)
    if function is repr and isinstance(of, V.Text):
        around = _of_string(of, spec.value)
        return around and replace(around, function=strings.quoted)
    ty = V.number_type(of)
    if ty is None or (isinstance(of, V.Scalar) and of.kinds):
        return None
    if function is repr and ty.weak:
        function = str
    if function in _BASES and ty.dtype.is_integer:
        form = (*_BASES[function], 0, False, False, "")
        made = Writing(digits.digits_of, of, dict(zip(digits.FORM, form, strict=True)))
    elif function is str and ty.dtype == types.f64:
        made = Writing(digits.shortest, of, {})
    elif function is format and (ty.dtype.is_integer or ty.dtype == types.f64):
        return _of_number(of, ty.dtype.is_integer, spec.value)
    else:
        return None
    around = _of_string(of, spec.value)  # the number is a string already
    return around and replace(made, room=around.room)


def _is_string(value: V.Value) -> bool:
    return isinstance(value, V.Text) or (
        isinstance(value, V.Known) and isinstance(value.value, str)
    )


_SPEC = re.compile(
    r"(?:(?P<fill>.)?(?P<side>[<>^]))?(?P<plus>\+?)(?P<prefix>#?)(?P<zeros>0?)(?P<width>\d*)"
    r"(?P<group>[,_]?)(?:\.(?P<places>\d+))?(?P<letter>[bdoxXfeEgG%s]?)", re.DOTALL,
)


def _of_string(of: V.Value, spec: str) -> Writing | None:
    found = _SPEC.fullmatch(spec)
    if not found or any(found[k] for k in ("plus", "prefix", "zeros", "group", "places")) or (
        found["letter"] not in ("", "s")
    ):
        return None
    return Writing(None, of, {}, _room(found, "<"))


def _of_number(of: V.Value, is_integer: bool, spec: str) -> Writing | None:
    """A number by a format, such as "08b" or ">8.3f"."""
    found = _SPEC.fullmatch(spec)
    if not found or found["letter"] == "s" or found["group"] == "_":
        return None
    room = _room(found, ">") if found["side"] else None
    width, zeros = (0, False) if found["side"] else (
        int(found["width"] or 0), bool(found["zeros"])
    )  # fmt: skip
    plus, group, letter = bool(found["plus"]), found["group"], found["letter"]
    if group and zeros:
        return None
    if letter and letter in "f%":
        places = int(found["places"] or 6)
        if places > digits.MOST_PLACES or found["prefix"]:
            return None
        form = {
            "places": places, "width": width, "zeros": zeros, "plus": plus, "group": group,
            "percent": letter == "%", "spec": spec,
        }  # fmt: skip
        if room:
            form["spec"] = _without_room(found)
        return Writing(digits.fixed, of, form, room, is_integer)
    if letter and letter in "eEgG":
        general = letter in "gG"
        places = int(found["places"] or 6)
        places = max(places - 1, 0) if general else places
        if places > digits.MOST_DIGITS or found["prefix"] or group:
            return None
        form = {
            "places": places, "width": width, "zeros": zeros, "plus": plus,
            "e": "e" if letter in "eg" else "E", "general": general,
            "spec": _without_room(found) if room else spec,
        }  # fmt: skip
        return Writing(digits.scientific, of, form, room, is_integer)
    if found["places"]:
        return None
    if not is_integer:
        if letter or plus or group or zeros or found["prefix"] or width:
            return None
        return Writing(digits.shortest, of, {}, room)
    base, letters, prefix = _LETTERS[letter]
    if group and base != 10:
        return None
    written = base, letters, prefix if found["prefix"] else "", width, zeros, plus, group
    return Writing(digits.digits_of, of, dict(zip(digits.FORM, written, strict=True)), room)


def _room(found: re.Match[str], side: str) -> tuple[int, str, str] | None:
    """The room that a format asks for."""
    width = int(found["width"] or 0)
    fill = found["fill"] or ("0" if found["zeros"] else " ")
    return (width, fill, found["side"] or side) if width else None


def _without_room(found: re.Match[str]) -> str:
    """The format of a number alone."""
    places = "" if found["places"] is None else f".{found['places']}"
    return f"{found['plus']}{found['group']}{places}{found['letter']}"


_CONVERSIONS: dict[str, Callable[..., Any]] = {
    "": format, "s": str, "r": repr, "a": ascii,
}  # fmt: skip
_LETTERS = {
    "": (10, 0, ""), "d": (10, 0, ""), "b": (2, 0, "0b"), "o": (8, 0, "0o"),
    "x": (16, ord("a"), "0x"), "X": (16, ord("A"), "0X"),
}  # fmt: skip
"""The base, the first letter that is a digit, and what stands in front."""
_BASES: dict[Any, tuple[int, int, str]] = {
    function: _LETTERS[letter]
    for function, letter in ((str, "d"), (bin, "b"), (oct, "o"), (hex, "x"))
}
