"""How the short way into a program puts results together, as Python text (`direct`).

In: the result of a program as a tree (`infer.result_trees`). Out: an expression that makes it of
what the native entry gives, `_result`, and of the arguments, and says what the program changed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.boundary import outcome
from pyrelay.direct_text import NeedsMore, Text
from pyrelay.infer.result_trees import (
    ArgumentResult,
    CaseResult,
    ConstantResult,
    ContainerResult,
    GrownResult,
    LeafResult,
    NodeResult,
    ResultTree,
    ViewResult,
    ViewStepResult,
    built,
    slice_of,
)
from pyrelay.infer.specialised import Binding, ContainerChange
from pyrelay.infer.structure import Flattened
from pyrelay.ir.nodes import UNSET

_DEEPEST = 60
"""Nodes of a result within each other, of two brackets each: Python reads 200 at most."""


def result_text(text: Text, binding: Binding) -> tuple[list[str], str]:
    """Lines that do to arguments what the program did, and how the result is made, as Python text.
    """
    try:
        lines = [line for c in binding.changes for line in _changed(text, c, binding.kept)]
        return lines, _result(text, binding.result, binding.kept)
    except NeedsMore:  # no text of its own
        return [], _assembled(text, binding)


def _changed(text: Text, change: ContainerChange, kept: Mapping[int, int]) -> list[str]:
    """Lines that give a container what `restore` gives it. Raises NeedsMore for unusual ones."""
    container = text.containers[change.number]
    if any(map(_may_be_unset, change.children)):
        raise NeedsMore
    parts = [_result(text, child, kept, 1) for child in change.children]
    match change.kind:
        case "list":
            return [f"{container}[:] = [{', '.join(parts)}]"]
        case "items":
            return [f"{container}[:] = {parts[0]}"]
        case "dict":
            pairs = zip(map(text.name, change.names), parts, strict=True)
            items = ", ".join(f"{key}: {part}" for key, part in pairs)
            return [f"_items = {{{items}}}", f"{container}.clear()", f"{container}.update(_items)"]
        case "record":
            write = text.name(object.__setattr__)
            return [
                f"{write}({container}, {name!r}, {part})"
                for name, part in zip(change.names, parts, strict=True)
            ]
    raise NeedsMore


def _may_be_unset(tree: ResultTree) -> bool:
    """Whether this is an attribute that an object has after some calls only."""
    if isinstance(tree, CaseResult):
        return any(map(_may_be_unset, tree.cases))
    return isinstance(tree, ConstantResult) and tree.value is UNSET


def _assembled(text: Text, binding: Binding) -> str:
    """How a result is made that has no text of its own, or that comes with changes of arguments."""
    from pyrelay.devices.runtime.unpacking import unpacker

    taken = functools.partial(Flattened, unpack=unpacker)
    make, tree, kept, flat = map(text.name, (outcome, binding, binding.kept, taken))
    containers = f"[{', '.join(text.containers)}]"
    return f"{make}({tree}, {kept}, _result, {flat}([{', '.join(text.leaves)}], {containers}))"


def _result(text: Text, tree: Any, kept: Mapping[int, int], level: int = 0) -> str:
    """How the result is made from the native tuple and the arguments' leaves, as Python text.

    level: how many nodes it lies in. Raises NeedsMore if there is no such text.
    """
    if level > _DEEPEST:
        raise NeedsMore
    match tree:
        case LeafResult(index):
            return f"_result[{kept[index]}]"
        case ArgumentResult(leaf):
            return text.leaves[leaf]
        case ContainerResult(number):
            return text.containers[number]
        case ConstantResult(value):
            return text.name(value)
        case ViewResult(base, steps):
            return functools.reduce(
                lambda array, step: _view(text, array, step, kept), steps, _result(text, base, kept)
            )
        case GrownResult(rows, count, LeafResult(index, ty), key) if (
            ty.weak and key not in text.made
        ):
            text.made.update((key,) if key >= 0 else ())
            return f"_result[{kept[rows[index]]}][:_result[{kept[count]}]].tolist()"
        case CaseResult(tag, cases):
            made = [_result(text, case, kept, level + 1) for case in cases]
            tests = [f"{each} if _result[{kept[tag]}] == {k} else" for k, each in enumerate(made)]
            return f"({' '.join(tests[:-1])} {made[-1]})"
        case NodeResult(key=key) if key in text.made:
            raise NeedsMore  # one object in two places
        case NodeResult(kind, cls, names, children, key):
            text.made.update((key,) if key >= 0 else ())
            parts = [_result(text, child, kept, level + 1) for child in children]
            if kind == "dict":
                pairs = zip(map(text.name, names), parts, strict=True)
                return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
            items = "".join(f"{part}, " for part in parts)
            if kind == "list" or (kind == "tuple" and cls is None):
                return f"[{items}]" if kind == "list" else f"({items})"
            given = ", ".join(map(text.name, (kind, cls, names)))
            return f"{text.name(built)}({given}, [{items}])"
    raise NeedsMore


def _view(text: Text, array: str, step: ViewStepResult, kept: Mapping[int, int]) -> str:
    """One step of a view, as Python text; arrays are seen by basic indices wherever they can be,
    which NumPy is quickest with."""

    def numbers(given: Sequence[int | LeafResult]) -> list[str]:
        return [str(n) if isinstance(n, int) else f"_result[{kept[n.index]}]" for n in given]

    attrs = dict(step.attrs)
    match step.kind:
        case "slice":
            parts = zip(*(numbers(attrs[k]) for k in ("starts", "sizes", "steps")), strict=True)
            return f"{array}[{', '.join(_cut(text, *part) for part in parts)}]"
        case "index" | "gather":
            places = dict(zip(attrs["axes"], numbers(step.positions), strict=True))
            each = [places.get(k, ":") for k in range(max(places) + 1)]
            return f"{array}[{', '.join(each)}, ...]"  # of no axes, too, it is an array
        case "squeeze" if min(attrs["axes"], default=-1) >= 0:
            each = ["0" if k in attrs["axes"] else ":" for k in range(max(attrs["axes"]) + 1)]
            return f"{array}[{', '.join(each)}, ...]"
        case "transpose" if attrs["axes"] == tuple(range(len(attrs["axes"])))[::-1]:
            return f"{array}.T"
        case "transpose":
            return f"{array}.transpose({attrs['axes']})"
        case "expand_dims" if min(attrs["axes"], default=-1) >= 0:
            each = ["None" if k in attrs["axes"] else ":" for k in range(max(attrs["axes"]) + 1)]
            return f"{array}[{', '.join(each)}]"
        case "real" | "imag":
            return f"{array}.{step.kind}"
        case "bitcast":
            return f"{array}.view({text.name(attrs['dtype'].numpy)})"
        case "reshape":
            return f"{array}.reshape({', '.join(numbers(attrs['shape'])) or '()'})"
    raise NeedsMore


def _cut(text: Text, start: str, size: str, step: str) -> str:
    """The slice of so many elements, which are extents and so no less than 0."""
    if step.startswith("-"):
        return f"{text.name(slice_of)}({start}, {size}, {step})"
    stop = size if step == "1" else f"{size} * {step}"
    return f":{stop}:{step}" if start == "0" else f"{start}:{start} + {stop}:{step}"
