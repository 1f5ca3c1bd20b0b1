"""How the short way into a program puts results together, as Python text (`direct`).

In: the result of a program as a tree (`infer.result_trees`). Out: an expression that makes it of
what the native entry gives, `_result`, and of the arguments, and says what the program changed.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrelay.boundary import outcome, raised
from pyrelay.direct_items import DEEPEST, items_text, of_kind
from pyrelay.direct_text import NeedsMore, Text
from pyrelay.infer.containers.code_points import from_row
from pyrelay.infer.nodes.pools import Packed
from pyrelay.infer.result_trees import (
    ArgumentResult,
    CaseResult,
    ConstantResult,
    ContainerResult,
    GrownResult,
    InnerResult,
    ItemResult,
    KindResult,
    LeafResult,
    NodeResult,
    RaisedResult,
    ResultTree,
    SharedResult,
    ViewResult,
    ViewStepResult,
    built,
    grown_text,
    restore,
    slice_of,
)
from pyrelay.infer.specialised import Binding, ContainerChange
from pyrelay.infer.structure import Flattened
from pyrelay.ir.nodes import UNSET


def result_text(text: Text, binding: Binding) -> tuple[list[str], str]:
    """Lines that do to arguments what the program did, and how the result is made, as Python text.
    """
    if binding.trees:
        return [], _assembled(text, binding)
    trees = [child for change in binding.changes for child in change.children]
    met = Counter(key for tree in (*trees, binding.result) for key in _keys(tree))
    text.shared = {key for key, count in met.items() if count > 1}
    try:
        lines = [line for c in binding.changes for line in _changed(text, c, binding.kept)]
        result = _result(text, binding.result, binding.kept)
        return [f"_m{key} = None" for key in sorted(text.perhaps)] + lines, result
    except NeedsMore:  # no text of its own
        return [], _assembled(text, binding)


def _keys(tree: Any) -> Iterator[int]:
    """The numbers of the mutable objects in a result, as often as they are met."""
    match tree:
        case SharedResult(key):
            yield key
        case NodeResult(children=children, key=key):
            yield from (key,) * (key >= 0)
            yield from (k for child in children for k in _keys(child))
        case GrownResult(key=key):
            yield from (key,) * (key >= 0)
        case CaseResult(_, cases):
            yield from (k for case in cases for k in _keys(case))
        case ItemResult(owner):
            yield from _keys(owner)
        case RaisedResult(args=args):
            yield from (k for arg in args for k in _keys(arg))


def _changed(text: Text, change: ContainerChange, kept: Mapping[int, int]) -> list[str]:
    """Lines that give a container what `restore` gives it. Raises NeedsMore for unusual ones."""
    container = text.containers[change.number]
    parts = [_result(text, child, kept, 1) for child in change.children]
    kind = None if any(map(_may_be_unset, change.children)) else change.kind
    match kind:
        case "list":
            return [f"{container}[:] = [{', '.join(parts)}]"]
        case "items":
            return [f"{container}[:] = {parts[0]}"]
        case "dict":
            pairs = zip(map(text.name, change.names), parts, strict=True)
            items = ", ".join(f"{key}: {part}" for key, part in pairs)
            return [f"_items = {{{items}}}", f"{container}.clear()", f"{container}.update(_items)"]
        case "record" if container not in text.generators:
            write = text.name(object.__setattr__)
            return [
                f"{write}({container}, {name!r}, {part})"
                for name, part in zip(change.names, parts, strict=True)
            ]
    names = text.name(change.names)
    given = f"{container}, {change.kind!r}, {names}, [{', '.join(parts)}]"
    return [f"{text.name(restore)}({given})"]


def _may_be_unset(tree: ResultTree) -> bool:
    """Whether this is an attribute that an object has after some calls only."""
    if isinstance(tree, CaseResult):
        return any(map(_may_be_unset, tree.cases))
    return isinstance(tree, ConstantResult) and tree.value is UNSET


def _assembled(text: Text, binding: Binding) -> str:
    """How a result is made that has no text of its own, or that comes with changes of arguments."""
    make, tree, kept = map(text.name, (outcome, binding, binding.kept))
    return f"{make}({tree}, {kept}, _result, {_arguments(text)})"


def _flattened(leaves: list[Any], containers: list[Any], pools: list[Packed]) -> Flattened:
    from pyrelay.devices.runtime.unpacking import unpacker

    return Flattened(leaves, containers, pools=pools, unpack=unpacker)


def _arguments(text: Text) -> str:
    """The arguments, taken apart, as `assemble` wants them."""
    flat = text.name(_flattened)
    parts = (f"[{', '.join(of)}]" for of in (text.leaves, text.containers, text.pools))
    return f"{flat}({', '.join(parts)})"


def _result(
    text: Text, tree: Any, kept: Mapping[int, int], level: int = 0, *, chosen: bool = False
) -> str:
    """How the result is made from the native tuple and the arguments' leaves, as Python text.

    level: how many nodes it lies in. chosen: whether it is one of several cases. Raises NeedsMore
    if there is no such text.
    """
    if level > DEEPEST:
        raise NeedsMore
    match tree:
        case LeafResult(index):
            return f"_result[{kept[index]}]"
        case ArgumentResult(leaf):
            return text.leaves[leaf]
        case ContainerResult(number):
            return text.containers[number]
        case InnerResult(number, position):
            return f"{text.containers[number]}[_result[{kept[position.index]}]]"
        case ItemResult(owner, position, path):
            items = _result(text, owner, kept, level + 1, chosen=chosen)
            return f"{items}[_result[{kept[position.index]}]]{''.join(f'[{k}]' for k in path)}"
        case ConstantResult(value):
            return text.name(value)
        case KindResult(number, kind, kinds):
            of = f"_result[{kept[kind.index]}]", f"_result[{kept[number.index]}]"
            return of_kind(text, kinds, *of)
        case ViewResult(base, steps):
            return functools.reduce(
                lambda array, step: _view(text, array, step, kept), steps, _result(text, base, kept)
            )
        case CaseResult(tag, cases):
            found = [_result(text, case, kept, level + 1, chosen=True) for case in cases]
            tests = [f"{each} if _result[{kept[tag]}] == {k} else" for k, each in enumerate(found)]
            return f"({' '.join(tests[:-1])} {found[-1]})"
        case RaisedResult() if next(_keys(tree), None) is None:
            of = text.name(tree), text.name(kept)
            return f"{text.name(raised)}({', '.join(of)}, _result, {_arguments(text)})"
        case SharedResult(key) if key in text.made:
            return f"_m{key}"
        case NodeResult(key=key) if (grown := grown_text(tree)) and key not in text.made:
            codes, size = grown
            row = f"_result[{kept[codes]}][:_result[{kept[size]}]]"
            return _shared(text, key, chosen, f"{text.name(from_row)}({row})")
        case GrownResult(rows, count, item, key) if key not in text.made:
            each = [f"_result[{kept[row]}]" for row in rows]
            made = items_text(text, item, each, f"_result[{kept[count]}]", level)
            return _shared(text, key, chosen, made)
        case NodeResult(kind, cls, names, children, key) if key not in text.made:
            parts = [_result(text, child, kept, level + 1, chosen=chosen) for child in children]
            return _shared(text, key, chosen, _node(text, kind, cls, names, parts))
    raise NeedsMore


def _shared(text: Text, key: int, chosen: bool, made: str) -> str:
    """A new object, which has a name if it stands in several places."""
    if key not in text.shared:
        return made
    new = f"(_m{key} := {made})"
    if chosen:  # whether it is made before it is met again depends on which case it is
        text.perhaps.add(key)
    else:
        text.made.add(key)
    return f"(_m{key} if _m{key} is not None else {new})" if key in text.perhaps else new


def _node(text: Text, kind: str, cls: Any, names: tuple[Any, ...], parts: list[str]) -> str:
    """As `built`, as Python text."""
    if kind == "dict":
        pairs = zip(map(text.name, names), parts, strict=True)
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    items = "".join(f"{part}, " for part in parts)
    if kind == "list" or (kind == "tuple" and cls is None):
        return f"[{items}]" if kind == "list" else f"({items})"
    if kind == "call":
        return f"{text.name(cls)}({items})"
    given = ", ".join(map(text.name, (kind, cls, names)))
    return f"{text.name(built)}({given}, [{items}])"


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
        case "index" | "gather_inside":
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
