"""Texts of kernels put together of parts.

In: texts with names in braces. Out: one text. A name that stands alone on a line is a part of
several lines, which is indented as its name is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

_ALONE = re.compile(r"( *)\{(\w+)\}", re.ASCII)


def filled(text: str, names: Mapping[str, object]) -> str:
    """The text with what each name stands for, in parts too. Raises KeyError of an unknown name."""
    made = []
    for line in text.splitlines():
        alone = _ALONE.fullmatch(line)
        if alone is None:
            made.append(line.format_map(names) + "\n")
        else:
            made.append(textwrap.indent(filled(str(names[alone[2]]), names), alone[1]))
    return "".join(made)


def counted_on(counters: Sequence[tuple[str, str]], beyond: str) -> str:
    """Counts nested counters on, each of which ends at a number, the innermost first; the statement
    `beyond` follows when all of them begin again."""
    made = []
    for depth, (counter, end) in enumerate(counters):
        lines = f"{counter} += 1\nif {counter} == {end}:\n    {counter} = 0\n"
        made.append(textwrap.indent(lines, "    " * depth))
    return "".join(made) + "    " * len(counters) + beyond + "\n"
