"""The short way into a compiled program: one generated function per program, no flattening.

In: a compiled program, and the key of the arguments that it was compiled for (`infer.structure`).
Out: a function that puts arguments given by name in order, takes all apart as the key says, hands
their leaves to the program's native entry, which checks types and extents itself, and that what is
written shares no memory, and puts the result together. What is left to check are the shapes of the
structures, the names that the program read, compared by identity, and the settings it was compiled
under. Whatever does not fit goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pyrelay import config
from pyrelay.boundary import Program
from pyrelay.infer.guards import ABSENT, NameGuard
from pyrelay.infer.result_trees import (
    ArgumentResult,
    CaseResult,
    ConstantResult,
    LeafResult,
    NodeResult,
)
from pyrelay.infer.structure import Identity, Key
from pyrelay.records import dataclass

_MOST_STRUCTURES = 40
"""Structures among the arguments: each is one level of nesting in the generated function."""

_LEAVES = ("number", "array", "scalar")


class _NeedsMore(Exception):
    """The short way cannot take these arguments apart or put this result together."""


@dataclass
class _Text:
    """A function under construction: its lines, and the objects that its names stand for."""

    known: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    made: set[int] = field(default_factory=set)  # numbers of the mutable results it makes

    def name(self, value: Any) -> str:
        """A name that stands for an object."""
        name = f"known{len(self.known)}"
        self.known[name] = value
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * (3 + self.depth) + text)


def direct_call(
    program: Program, key: Key, order: Sequence[object], otherwise: Callable[..., Any],
    hits: list[int],
) -> Callable[..., Any] | None:
    """The function, None if the arguments or the result need more.

    key: of the arguments. order: names by which positional arguments may be given too, in order; no
    string where there is none. Whatever does not fit goes `otherwise`. Counts the calls it served
    in `hits`.
    """
    try:
        return _written(program, key, order, otherwise, hits)
    except _NeedsMore:
        return None


def _written(
    program: Program, key: Key, order: Sequence[object], otherwise: Callable[..., Any],
    hits: list[int],
) -> Callable[..., Any]:
    binding = program.binding
    positional, named, pools = key[:3]
    count = len(binding.leaf_names)
    more = binding.hidden or binding.static or binding.identity
    written = binding.changes or binding.trees
    if not program.build.native or more or written or named or pools:
        raise _NeedsMore
    # Leaf numbers are numbers of parameters. Arrays with axes are written where they are.
    if binding.parameters != tuple(range(count)) or not set(binding.mutated) <= set(binding.placed):
        raise _NeedsMore
    if any(g.kind == "defaults" and g.value for g in binding.names):
        raise _NeedsMore
    from pyrelay.devices.entry import MISMATCH

    text = _Text({
        "native": program.build.run, "MISMATCH": MISMATCH, "otherwise": otherwise, "hits": hits,
        "order": tuple(order[: len(positional)]),
        "overriding": config.overriding, "settings": config.overriding(),
    })  # fmt: skip
    tests = [f"len(args) + len(keywords) == {len(positional)}", "overriding() is settings"]
    tests += [_identity_test(g, text.name(g.container), text.name(g.value)) for g in binding.names]
    text.line(f"if {' and '.join(tests)}:")
    text.depth += 1
    text.line("if keywords:")
    text.line("    given = (*args, *[keywords[name] for name in order[len(args):]])")
    if all(k[0] in _LEAVES for k in positional):
        leaves, handed = [f"given[{k}]" for k in range(count)], "*given"
    else:
        leaves = _taken_apart(text, positional)
        handed = ", ".join(leaves)
    text.line("same = True")
    shape = _result(text, binding.result, binding.kept, leaves)
    source = [
        f"def make({', '.join(text.known)}):",
        "    def call(*args, **keywords):",
        "        same, given = False, args",
        "        try:",
        *text.lines,
        "        except (AttributeError, KeyError, ValueError):",
        "            pass",
        "        if same:",
        f"            result = native({handed})",
        "            if result is not MISMATCH:",
        "                hits[0] += 1",
        f"                return {shape}",
        "        return otherwise(*args, **keywords)",
        "    return call",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(source), namespace)
    call: Callable[..., Any] = namespace["make"](**text.known)
    return call


# -- arguments -------------------------------------------------------------------------------------


def _taken_apart(text: _Text, positional: Key) -> list[str]:
    """Lines that take the arguments apart; the names of their leaves in order."""
    leaves: list[str] = []
    names = [f"a{k}" for k in range(len(positional))]
    text.line(_unpacking(names, "given"))
    waiting = list(zip(names, positional, strict=True))[::-1]
    number = len(names)
    while waiting:
        name, key = waiting.pop()
        if key[0] in _LEAVES:
            leaves.append(name)
            continue
        test, parts, items = _structure(text, name, key)
        if text.depth > _MOST_STRUCTURES:
            raise _NeedsMore
        text.line(f"if {test}:")
        text.depth += 1
        inner = [f"a{number + k}" for k in range(len(parts))]
        number += len(parts)
        if inner:
            text.line(_unpacking(inner, items))
        waiting += list(zip(inner, parts, strict=True))[::-1]
    return leaves


def _unpacking(names: list[str], value: str) -> str:
    return f"{', '.join(names)}, = {value}"


def _structure(text: _Text, name: str, key: Key) -> tuple[str, Key, str]:
    """A test for a structure of this key, the keys of its items, and where they are found."""
    match key:
        case ("dict", keys, *parts):
            test = f"type({name}) is dict and tuple({name}) == {text.name(keys)}"
            return test, tuple(parts), f"{name}.values()"
        case ("list", *parts):
            return f"type({name}) is list and len({name}) == {len(parts)}", tuple(parts), name
        case ("tuple", cls, *parts):
            own = "tuple" if cls is None else text.name(cls)
            return f"type({name}) is {own} and len({name}) == {len(parts)}", tuple(parts), name
        case ("record", cls, names, *parts):
            fields = f"tuple({name}.__dict__) == {text.name(names)}"
            test = f"type({name}) is {text.name(cls)} and {fields}"
            return test, tuple(parts), f"{name}.__dict__.values()"
        case ("object", Identity(value)):
            return f"{name} is {text.name(value)}", (), name
        case ("constant", _, bool() | None as value):
            return f"{name} is {value}", (), name
        case ("constant", _, str() as value):
            return f"type({name}) is str and {name} == {text.name(value)}", (), name
    raise _NeedsMore


# -- names -----------------------------------------------------------------------------------------


def _identity_test(guard: NameGuard, place: str, value: str) -> str:
    """Python text that is true if a name still means the very same object."""
    match guard.kind:
        case "item":
            return f"{place}.get({guard.name!r}) is {value}"
        case "absent":
            return f"{place}.get({guard.name!r}, {value}) is {value}"
        case "cell":
            return f"{place}.cell_contents is {value}"
        case "function":
            return f"{place}.{guard.name}.__func__ is {value}"
        case "attribute" if guard.value is ABSENT:
            return f"getattr({place}, {guard.name!r}, {value}) is {value}"
        case "attribute":
            return f"{place}.{guard.name} is {value}"
        case "defaults" if not guard.value:
            return f"not {place}.__kwdefaults__"
    raise AssertionError(guard.kind)


# -- results ---------------------------------------------------------------------------------------


def _result(text: _Text, tree: Any, kept: Mapping[int, int], leaves: list[str]) -> str:
    """How the result is made from the native tuple and the arguments' leaves, as Python text."""
    match tree:
        case LeafResult(index):
            return f"result[{kept[index]}]"
        case ArgumentResult(leaf):
            return leaves[leaf]
        case ConstantResult(value):
            return text.name(value)
        case CaseResult(tag, cases):
            made = [_result(text, case, kept, leaves) for case in cases]
            tests = [f"{each} if result[{kept[tag]}] == {k} else" for k, each in enumerate(made)]
            return f"({' '.join(tests[:-1])} {made[-1]})"
        case NodeResult(key=key) if key in text.made:
            raise _NeedsMore  # one object in two places
        case NodeResult("tuple" | "list" | "dict" as kind, None, names, children, key):
            text.made.update((key,) if key >= 0 else ())
            parts = [_result(text, child, kept, leaves) for child in children]
            if kind == "dict":
                pairs = zip(map(text.name, names), parts, strict=True)
                return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
            begin, end = "()" if kind == "tuple" else "[]"
            return begin + "".join(f"{part}, " for part in parts) + end
        case NodeResult("tuple", cls, _, children) if cls is not None:
            parts = [_result(text, child, kept, leaves) for child in children]
            return f"{text.name(cls)}({', '.join(parts)})"
    raise _NeedsMore
