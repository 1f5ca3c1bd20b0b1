"""What a phase of a loop will load in the next round, brought near while blocks meet.

In: the text of a phase whose elements blocks own, the names of its parameters that are another word
in each round, of arrays that the loop does not change. Out: a function of the same parameters that
asks for the elements of these arrays which hang on such words, and does nothing else.

Rows of an array that a loop goes through, as a step's part of a recurrent network, come from memory
farther away than the states that blocks exchange. Blocks wait for each other once a round at least,
and the loads of the next one hang on its number alone (Mowry, Lam and Gupta, "Design and evaluation
of a compiler algorithm for prefetching", 1992).
"""

from __future__ import annotations

import re
from collections.abc import Collection

_KERNEL = 'extern "C" __global__ void kernel('
_LOADED = "pyrelay_loaded("
_OVER = "pyrelay_over("
_DEFINED = re.compile(r"\s*const \w+ (x\d+) = (.*);")
_LOAD = re.compile(r"(\w+)\[([^\[\]]*)\]")
_NAME = re.compile(r"\b[a-z]+\d+\b")


def ahead(source: str, changing: Collection[str], arrays: Collection[str]) -> str:
    """The text of the function; empty if there is nothing to be asked for."""
    lines = source.split("\n")
    ends = [number for number, line in enumerate(lines) if _LOADED in line]
    if len(ends) != 1:
        return ""
    hanging, dropped, asked = {*changing}, set[str](), False
    made: list[str] = []
    for line in lines[: ends[0]]:
        found = _DEFINED.fullmatch(line)
        names = {*_NAME.findall(line if found is None else found[2])}
        if names & dropped:
            return ""
        load = None if found is None else _LOAD.fullmatch(found[2])
        if found is not None and names & hanging:
            hanging.add(found[1])
        if found is not None and "[" in found[2]:
            dropped.add(found[1])
            if load is not None and load[1] in arrays and {*_NAME.findall(load[2])} & hanging:
                made.append(f"pyrelay_ahead<NEAR>(&{load[1]}[{load[2]}]);")
                asked = True
        elif _OVER not in line and not line.startswith("#define"):
            made.append(line.replace("own.begin()", "own.beside()"))
    depth = sum(line.count("{") - line.count("}") for line in made)
    text = "\n".join([*made, "}" * depth, ""])
    return text.replace(_KERNEL, "__device__ void ahead(", 1) if asked else ""
