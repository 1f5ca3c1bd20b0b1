"""How the short way into a program makes lists of run-time length, as Python text (`direct`).

In: the tree of an item (`infer.result_trees`), and the texts of arrays that have a row for each.
Out: an expression that makes the list, a comprehension over the columns that the item needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrelay.direct_text import NeedsMore, Text
from pyrelay.infer.result_trees import (
    CaseResult,
    ConstantResult,
    GrownResult,
    KindResult,
    LeafResult,
    NodeResult,
    ResultTree,
)
from pyrelay.ir import types

DEEPEST = 60
"""Nodes of a result within each other, of two brackets each: Python reads 200 at most."""


def items_text(
    text: Text, item: ResultTree, rows: Sequence[str], count: str, level: int
) -> str:
    """The list whose items are of this tree. Raises NeedsMore if there is no such text.

    level: how many nodes the list lies in.
    """
    from pyrelay.devices.runtime.items import writer

    made = _inner(text, item, rows, count, level)
    found = None if isinstance(item, LeafResult) else writer(item)
    if found is None:
        return made
    native, order = found
    return f"({text.name(native)}({', '.join([*(rows[k] for k in order), count])}) or {made})"


def _comprehension(
    text: Text, item: ResultTree, rows: Sequence[str], count: str, level: int
) -> str:
    """The list as Python makes it. Raises NeedsMore."""
    columns: dict[str, str] = {}  # of each variable of an item

    def column(index: int, numbers: bool) -> str:
        (name,) = text.fresh(1)
        columns[name] = f"{rows[index]}[:{count}]{'.tolist()' if numbers else ''}"
        return name

    def made(tree: ResultTree, level: int = level + 1) -> str:
        if level > DEEPEST:
            raise NeedsMore
        match tree:
            case ConstantResult(value):
                return text.name(value)
            case LeafResult(index, ty):
                name = column(index, ty.weak and not ty.shape)
                return f"{name}.copy()" if ty.shape else name
            case KindResult(number, kind, kinds):
                numbers = column(number.index, True)
                return of_kind(text, kinds, column(kind.index, True), numbers)
            case GrownResult(inner, length, each, key) if key < 0:
                size = column(length, True)
                columns_of_each = [column(k, False) for k in inner]
                return _inner(text, each, columns_of_each, size, level + 1)
            case CaseResult(tag, cases):
                found = column(tag, True)
                return _case(text, found, cases, [made(case, level + 1) for case in cases])
            case NodeResult("list", _, _, children, key) if key < 0:
                return f"[{', '.join(made(child, level + 1) for child in children)}]"
            case NodeResult("dict", _, names, children, key) if key < 0:
                held = [made(child, level + 1) for child in children]
                pairs = zip(map(text.name, names), held, strict=True)
                return "{" + ", ".join(f"{name}: {part}" for name, part in pairs) + "}"
            case NodeResult("tuple" | "call" as kind, cls, _, children, key) if key < 0:
                parts = "".join(f"{made(child, level + 1)}, " for child in children)
                return f"({parts})" if kind == "tuple" and cls is None else (
                    f"{text.name(cls)}({parts})"
                )
        raise NeedsMore

    one = made(item)
    if not columns:
        return f"[{one} for _ in range({count})]"
    names, arrays = ", ".join(columns), ", ".join(columns.values())
    if one == f"({names}, )":
        return f"list(zip({arrays}))"
    return f"[{one} for {names} in {arrays if len(columns) == 1 else f'zip({arrays})'}]"


def _inner(
    text: Text, item: ResultTree, rows: Sequence[str], count: str, level: int
) -> str:
    """A list in an item, of rows of the rows."""
    if isinstance(item, LeafResult) and not item.type.shape:
        row = f"{rows[item.index]}[:{count}]"
        return f"{row}.tolist()" if item.type.weak else f"list({row})"
    return _comprehension(text, item, rows, count, level)


def _case(text: Text, tag: str, cases: Sequence[ResultTree], made: Sequence[str]) -> str:
    """The one of these cases that the tag says."""
    known = [case.value for case in cases if isinstance(case, ConstantResult)]
    if len(known) == len(cases):
        return f"{text.name(tuple(known))}[{tag}]"
    tests = [f"{each} if {tag} == {k} else" for k, each in enumerate(made)]
    return f"({' '.join(tests[:-1])} {made[-1]})"


def of_kind(text: Text, kinds: Sequence[types.TensorType], kind: str, number: str) -> str:
    """A number as one of the kind whose code stands beside it."""
    from pyrelay.infer.kinds import code  # few programs have such results

    made: dict[int, Any] = {
        code(ty): types.python_type(ty) if ty.weak else ty.dtype.numpy.type for ty in kinds
    }
    return f"{text.name(made)}[{kind}]({number})"
