"""What a phase of a loop will load in the next round, brought near while blocks meet.

In: the text of a phase whose elements blocks own, the names of its parameters that are another word
in each round, of arrays that the loop does not change. Out: a function of the same parameters that
asks for the elements of these arrays which hang on such words, and does nothing else; one that
loads them into registers, which a block that is alone has for a round.

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
_HELD = re.compile(r"(\s*)const (\w+) (x\d+) = (\w+\[[^\[\]]*\]);")
_ASKED = "pyrelay_ahead(&"
_ONCE = "    const bool once = ROOM_NEAR > 0 && own.on && line.end <= blockDim.x;\n"
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
                made.append(f"pyrelay_ahead(&{load[1]}[{load[2]}]);")
                asked = True
        elif _OVER not in line and not line.startswith("#define"):
            made.append(line)
    depth = sum(line.count("{") - line.count("}") for line in made)
    text = "\n".join([*made, "}" * depth, ""])
    return text.replace(_KERNEL, "__device__ void ahead(", 1) if asked else ""


def early(source: str, asked: str) -> tuple[str, str]:
    """The text of a phase that is given what `ahead`, this text, asks for, if each thread has one
    element at most; and of a function that loads it. Empty where some of it is loaded for some
    elements only."""
    lines = source.split("\n")
    end = next(number for number, line in enumerate(lines) if _LOADED in line)
    tests = [line for line in lines[:end] if " if (" in line]
    if any(_OVER not in line and "at.is" not in line for line in tests):
        return "", ""
    places = {line[len(_ASKED) : -2] for line in asked.split("\n") if line.startswith(_ASKED)}
    held: dict[str, str] = {}  # kinds by names
    filling: list[str] = []
    phase: list[str] = []
    for line in lines[:end]:
        found = _HELD.fullmatch(line)
        if found is not None and found[4] in places:
            space, kind, name, load = found.groups()
            held[name] = kind
            filling.append(f"{space}early.{name} = {load};")
            phase.append(f"{space}const {kind} {name} = once ? early.{name} : {load};")
            continue
        dropped = found is not None and "[" in found[4]
        filling += [] if dropped or _OVER in line or line.startswith("#define") else [line]
        phase.append(line)
    fields = "".join(f" {kind} {name};" for name, kind in held.items())
    head = f"struct pyrelay_early {{{fields} }};\n"
    text = "\n".join([*phase, *lines[end:]])
    text = text.replace("\n) {\n", f",\n    const pyrelay_early &early\n) {{\n{_ONCE}", 1)
    text = text.replace("cell += own.step()", "cell = once ? line.end : cell + own.step()", 1)
    depth = sum(line.count("{") - line.count("}") for line in filling)
    filled = "\n".join([*filling, "}" * (depth - 1), "    return early;\n}\n"])
    one = f"\n) {{\n{_ONCE}    pyrelay_early early = {{}};\n    if (!once) return early;\n"
    filled = filled.replace("\n) {\n", one, 1).replace("cell += own.step()", "cell = line.end", 1)
    return head + text, filled.replace(_KERNEL, "__device__ pyrelay_early early(", 1)
