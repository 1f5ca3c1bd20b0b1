"""Templates of strings known while compiling, as the pieces of an f-string.

In: the left side of `"..." % values`, or a string whose method `format` is called, and the values.
Out: the pieces, of which those that show values are told apart as an f-string's are; None for what
no f-string says, which Python is asked for, or refuses.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence

from pyrelay.infer import values as V

Shown = Callable[[V.Value, str, str], V.Value]
"""What an f-string puts for a value, a conversion and a format."""

_FIELD = re.compile(
    r"%(?:(?P<percent>%)|(?P<flags>[-+0]*)(?P<width>\d*)(?:\.(?P<places>\d+))?(?P<letter>[deEfgGisuxX]))"
)


def of_percent(template: str, given: V.Value, shown: Shown) -> list[V.Value] | None:
    """The pieces of `template % given`."""
    values = _items(given)
    if values is None:
        return None
    pieces: list[V.Value] = []
    at, number = 0, 0
    while at < len(template):
        if template[at] != "%":
            end = template.find("%", at)
            end = len(template) if end < 0 else end
            pieces.append(V.Known(template[at:end]))
            at = end
            continue
        field = _FIELD.match(template, at)
        if field is None:
            return None
        at = field.end()
        if field["percent"]:
            pieces.append(V.Known("%"))
            continue
        if number == len(values):
            return None
        piece = _piece(field, values[number], shown)
        if piece is None:
            return None
        pieces.append(piece)
        number += 1
    return pieces if number == len(values) else None


def _items(given: V.Value) -> Sequence[V.Value] | None:
    """What the fields of `% given` show; None for a dict and its like."""
    match given:
        case V.Tuple(items):
            return items
        case V.Known(tuple() as known):
            return tuple(map(V.Known, known))
        case V.Known(int() | float() | str()) | V.Scalar() | V.Text():
            return (given,)
        case V.Ref(root, type() as cls) if root.kind == "object" and (
            not hasattr(cls, "__getitem__")
        ):
            return (given,)
    return None


def _piece(field: re.Match[str], value: V.Value, shown: Shown) -> V.Value | None:
    flags, width, places, letter = field.group("flags", "width", "places", "letter")
    side = "<" if "-" in flags else ""
    if letter == "s":
        if places is not None or "0" in flags:
            return None
        return shown(value, "s", f"{side or '>'}{width}" if width else "")
    ty = V.number_type(value)
    whole = ty is not None and ty.dtype.is_integer
    if ty is None or not (whole or (letter in "eEfgG" and ty.dtype.kind == "f")):
        return None
    if letter not in "eEfgG" and places is not None:
        return None
    zeros = "0" if "0" in flags and not side else ""
    behind = f".{places}" if places is not None else ""
    kind = "d" if letter in "iu" else letter
    return shown(value, "", f"{side}{'+' * ('+' in flags)}{zeros}{width}{behind}{kind}")


def of_format(
    template: str, args: Sequence[V.Value], keywords: Mapping[str, V.Value], shown: Shown
) -> list[V.Value] | None:
    """The pieces of `template.format(*args, **keywords)`."""
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return None
    names = [name for _, name, _, _ in fields if name is not None]
    if "" in names and any(map(str.isdigit, names)):
        return None  # Python counts fields or reads their numbers
    pieces: list[V.Value] = []
    counted = iter(args)
    for literal, name, spec, conversion in fields:
        pieces += [V.Known(literal)] * bool(literal)
        if name is None:
            continue
        if not name:
            value = next(counted, None)
        elif name.isdigit():
            value = args[int(name)] if int(name) < len(args) else None
        else:
            value = keywords.get(name)
        if value is None or spec is None or "{" in spec:
            return None
        pieces.append(shown(value, conversion or "", spec))
    return pieces
