"""The tree of a result: how the flat results of a program become the Python result again.

In: a tree that specialisation made, the flat results, the arguments as they were flattened. Out:
Python objects; the caller's own where a program gives them back.
"""

from __future__ import annotations

import functools
import itertools
import operator
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.errors import Span, locate
from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.infer.containers import columns
from pyrelay.infer.containers.code_points import from_items, from_row, texts_of
from pyrelay.infer.nodes.datatypes import Schema
from pyrelay.infer.nodes.pools import Unpacker
from pyrelay.infer.objects import CAUSE, generator_classes, is_generator
from pyrelay.infer.structure import Flattened
from pyrelay.ir import types
from pyrelay.ir.nodes import UNSET
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class ConstantResult:
    """The same object every time."""

    value: Any


@dataclass(frozen=True, slots=True)
class LeafResult:
    """Result number `index` of the program: an array, or a scalar of this type."""

    index: int
    type: types.TensorType


@dataclass(frozen=True, slots=True)
class ArgumentResult:
    """The very array that is leaf `leaf` of the arguments."""

    leaf: int


@dataclass(frozen=True, slots=True)
class ContainerResult:
    """The very list, dict or object that is container `number` of the arguments."""

    number: int


@dataclass(frozen=True, slots=True)
class InnerResult:
    """The very list at a position (a result) of the list that is container `number`."""

    number: int
    position: LeafResult


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The very list at a position (a result), at `path` there, of another list of the result."""

    owner: ResultTree
    position: LeafResult
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FieldResult:
    """The very list in a field of a node."""

    node: TreeResult
    name: str


@dataclass(frozen=True, slots=True)
class SharedResult:
    """A new mutable object met before: number `key` of this result."""

    key: int


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A structure: `kind` is tuple, list, dict, set or record; `key` numbers mutable ones.

    Of kind call, it is what `cls` gives for the children.
    """

    kind: str
    cls: Any
    names: tuple[Any, ...]
    children: tuple[ResultTree, ...]
    key: int = -1


@dataclass(frozen=True, slots=True)
class RaisedResult:
    """Not a result: the function raises `cls`. The keywords have the last of the arguments."""

    cls: type[BaseException]
    args: tuple[ResultTree, ...]
    keywords: tuple[str, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class PoolResult:
    """A pool of nodes: number `given` of the arguments, or, with a schema, new columns.

    With both a node is the argument's if that has the row, else of the columns. What has one
    `number` shares its nodes. held: lists of the caller's in fields: the kind of node, its row (a
    result), the field, and which container of the arguments.
    """

    number: int
    given: int | None
    schema: Schema | None
    columns: tuple[tuple[str, ResultTree], ...]
    held: tuple[tuple[int, LeafResult, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TreeResult:
    """A node of a pool."""

    pool: PoolResult
    kind: LeafResult
    row: LeafResult


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One of several, by the int that is result number `tag`."""

    tag: int
    cases: tuple[ResultTree, ...]


@dataclass(frozen=True, slots=True)
class KindResult:
    """A number of an item of a list, which is of one of several kinds, as `kind` says (kinds.py).

    number: as Python's number of the kind that they have in common.
    """

    number: LeafResult
    kind: LeafResult
    kinds: tuple[types.TensorType, ...]


@dataclass(frozen=True, slots=True)
class ViewStepResult:
    """One step of a view: the op that reads it, and its ints (known, or results of the program)."""

    kind: str
    positions: tuple[int | LeafResult, ...]
    attrs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ViewResult:
    """A view of an array that the caller has or gets, so that writes show in both."""

    base: ArgumentResult | LeafResult
    steps: tuple[ViewStepResult, ...]


@dataclass(frozen=True, slots=True)
class GrownResult:
    """The items of a list of run-time length.

    `rows` are numbers of results with one row per item, and `item` is the tree of one item, whose
    leaves are numbers of rows.
    """

    rows: tuple[int, ...]
    count: int
    item: ResultTree
    key: int = -1


ResultTree = (
    ConstantResult | LeafResult | ArgumentResult | ContainerResult | SharedResult | NodeResult
    | CaseResult | ViewResult | GrownResult | TreeResult | RaisedResult | InnerResult | KindResult
    | ItemResult | FieldResult
)


def assemble(
    tree: ResultTree, results: Any, flat: Flattened, made: dict[Any, Any]
) -> Any:
    """The Python object of a result tree, from the program's flat results.

    Raises what the function raises.
    """
    match tree:
        case LeafResult(index):
            return results[index]
        case ConstantResult(value):
            return value
        case ViewResult(base, steps):
            array = assemble(base, results, flat, made)
            for step in steps:
                array = _viewed(array, step, results)
            return array
        case ArgumentResult(leaf):
            array = flat.leaves[leaf]
            return array.value if isinstance(array, DeviceArray) else array
        case ContainerResult(number):
            return flat.containers[number]
        case InnerResult(number, position):
            return flat.containers[number][int(results[position.index])]
        case ItemResult(owner, position, path):
            item = assemble(owner, results, flat, made)[int(results[position.index])]
            return functools.reduce(operator.getitem, path, item)
        case FieldResult(node, name):
            return getattr(assemble(node, results, flat, made), name)
        case SharedResult(key):
            return made[key]
        case TreeResult(pool, kind, row):
            place = int(results[kind.index]), int(results[row.index])
            nodes = nodes_of(pool, results, flat, made)
            return flat.pools[pool.given].object_at(place) if nodes is None else nodes(place)  # type: ignore[index]
        case CaseResult(tag, cases):
            return assemble(cases[int(results[tag])], results, flat, made)
        case KindResult(number, kind, kinds):
            (found,) = _of_kinds([results[number.index]], [results[kind.index]], kinds)
            return found
        case GrownResult(key=key) | NodeResult(key=key) if key in made:
            return made[key]
        case GrownResult(_, _, _, key):
            items = grown_items(tree, results, flat, made)
            if key >= 0:
                made[key] = items
            return items
        case NodeResult(key=-1) if (text := grown_text(tree)) is not None:
            codes, size = text
            return from_row(results[codes][:int(results[size])])
        case NodeResult(kind, cls, names, children, key):
            parts = [assemble(c, results, flat, made) for c in children]
            node = built(kind, cls, names, parts)
            if key >= 0:
                made[key] = node
            return node
        case RaisedResult():
            raise locate(_exception(tree, results, flat, made), span=tree.span)
    raise AssertionError(tree)


def grown_text(tree: ResultTree) -> tuple[int, int] | None:
    """Which results are the code points of a text that a program made longer, and how many there
    are; None for any other tree."""
    match tree:
        case NodeResult("call", function, _, (GrownResult((codes,), size, LeafResult()),)) if (
            function is from_items
        ):
            return codes, size
    return None


def _exception(
    tree: RaisedResult, results: Any, flat: Flattened, made: dict[Any, Any]
) -> BaseException:
    """An exception that is on its way to the caller, or the cause of one."""
    parts = [
        _exception(a, results, flat, made) if isinstance(a, RaisedResult)
        else assemble(a, results, flat, made)
        for a in tree.args
    ]
    split = len(parts) - len(tree.keywords)
    named = dict(zip(tree.keywords, parts[split:], strict=True))
    cause = named.pop(CAUSE, None)
    error = tree.cls(*parts[:split], **named)
    if cause is not None:
        error.__cause__ = cause
    return error


def nodes_of(
    pool: PoolResult, results: Any, flat: Flattened, made: dict[Any, Any]
) -> Unpacker | None:
    """What makes the nodes of a pool by kind and row; None if all of them are the argument's."""
    if pool.schema is None:
        return None
    if ("tree", pool.number) not in made:
        given = None if pool.given is None else flat.pools[pool.given]
        arrays = {name: assemble(c, results, flat, made) for name, c in pool.columns}
        making = _nothing if flat.unpack is None else (
            functools.partial(flat.unpack, pool.schema, arrays, given)
        )
        known = None if given is None else given.object_at
        unpacker = made["tree", pool.number] = Unpacker(pool.schema, arrays, known, making)
        for kind, row, name, number in pool.held:
            node = unpacker((kind, int(results[row.index])))
            object.__setattr__(node, name, flat.containers[number])
    found: Unpacker = made["tree", pool.number]
    return found


def _nothing() -> None:
    return None


def grown_items(
    tree: GrownResult, results: Any, flat: Flattened, made: dict[Any, Any]
) -> list[Any]:
    """The items of a list of run-time length, as a new list."""
    for pool in _pools(tree.item):
        nodes_of(pool, results, flat, made)
    nodes = {key: known for key, known in made.items() if isinstance(known, Unpacker)}
    count = int(results[tree.count])
    arrays = [results[k][:count] for k in tree.rows]
    simple = _in_columns(tree.item, arrays, count, nodes, flat)
    if simple is not None:
        return simple
    columns = _columns(tree.item, arrays)
    rows = zip(*columns, strict=True) if columns else [()] * count
    return [assemble(tree.item, leaves, flat, dict(nodes)) for leaves in rows]


def _in_columns(
    item: ResultTree, rows: Sequence[Any], count: int, nodes: Mapping[Any, Unpacker],
    flat: Flattened,
) -> list[Any] | None:
    """All items, made column by column of the arrays of their leaves; None unless they are numbers,
    arrays, texts, nodes, tuples and lists of them, or one of several such, and no item has one
    twice."""
    match item:
        case LeafResult(index, ty):
            return _leaves(rows[index], ty.weak)
        case ConstantResult(value):
            return [value] * count
        case KindResult(number, kind, kinds):
            return _of_kinds(rows[number.index].tolist(), rows[kind.index].tolist(), kinds)
        case GrownResult(inner, length, each):
            lengths = rows[length]
            room = max((rows[k].shape[1] for k in inner), default=0)
            filled = np.arange(room) < lengths[:, None]
            ends = lengths.cumsum().tolist()
            items = _in_columns(
                each, [rows[k][filled] for k in inner], ends[-1] if ends else 0, nodes, flat
            )
            if items is None or not inner:
                return None
            return [items[start:end] for start, end in itertools.pairwise([0, *ends])]
        case TreeResult(pool, kind, row) if ("tree", pool.number) in nodes:
            return nodes["tree", pool.number].several(rows[kind.index], rows[row.index])
        case TreeResult(pool, kind, row) if pool.schema is None:
            return flat.pools[pool.given].objects_at(rows[kind.index], rows[row.index])  # type: ignore[index]
        case CaseResult(tag, cases):
            return _of_cases(cases, rows[tag], rows, nodes, flat)
        case NodeResult() if (text := grown_text(item)) is not None:
            codes, length = text
            return texts_of(rows[codes], rows[length])
        case NodeResult("tuple" | "list" as kind, cls, _, children) if children:
            found = [_in_columns(child, rows, count, nodes, flat) for child in children]
            parts = [part for part in found if part is not None]
            if len(parts) < len(found):
                return None
            together = zip(*parts, strict=True)
            if kind == "list":
                return list(map(list, together))
            return list(together) if cls is None else [cls(*row) for row in together]
    return None


def _of_cases(
    cases: Sequence[ResultTree], tags: Any, rows: Sequence[Any], nodes: Mapping[Any, Unpacker],
    flat: Flattened,
) -> list[Any] | None:
    """Items that are one of several cases each, made case by case; None as `_in_columns` gives."""
    found: list[Any] = [None] * len(tags)
    for case in set(tags.tolist()):
        places = np.flatnonzero(tags == case)
        own = _in_columns(cases[case], [row[places] for row in rows], len(places), nodes, flat)
        if own is None:
            return None
        for place, value in zip(places.tolist(), own, strict=True):
            found[place] = value
    return found


def _leaves(row: Any, of_python: bool) -> list[Any]:
    """The numbers of one leaf, or arrays of their own."""
    if of_python:
        return row.tolist()  # type: ignore[no-any-return]
    return list(row) if row.ndim == 1 else [part.copy() for part in row]


def _of_kinds(
    numbers: list[Any], codes: list[int], kinds: tuple[types.TensorType, ...]
) -> list[Any]:
    """Python's numbers as those of the kinds whose codes stand beside them."""
    from pyrelay.infer.kinds import code  # few programs have such results

    made = {code(ty): types.python_type(ty) if ty.weak else ty.dtype.numpy.type for ty in kinds}
    if len(set(codes)) == 1:
        return list(map(made[codes[0]], numbers))
    return [made[c](number) for number, c in zip(numbers, codes, strict=True)]


def _pools(item: ResultTree) -> Iterator[PoolResult]:
    """The pools of the nodes in an item of a list."""
    match item:
        case TreeResult(pool):
            yield pool
        case NodeResult(_, _, _, children) | CaseResult(_, children):
            for child in children:
                yield from _pools(child)
        case GrownResult(item=inner):
            yield from _pools(inner)


def _columns(item: ResultTree, rows: list[Any]) -> list[list[Any]]:
    """The leaves of all items, leaf by leaf: numbers of the right kind, arrays of their own."""
    of_python = set()
    pending: list[ResultTree] = [item]
    while pending:
        match pending.pop():
            case LeafResult(index, ty) if ty.weak:
                of_python.add(index)
            case NodeResult(_, _, _, children) | CaseResult(_, children):
                pending.extend(children)
            case KindResult(number, kind):
                of_python |= {number.index, kind.index}
    return [_leaves(row, k in of_python) for k, row in enumerate(rows)]


def _viewed(array: Any, step: ViewStepResult, results: Any) -> Any:
    def numbers(given: Any) -> list[int]:
        return [int(results[p.index]) if isinstance(p, LeafResult) else p for p in given]

    attrs = dict(step.attrs)
    match step.kind:
        case "slice":
            parts = zip(*(numbers(attrs[k]) for k in ("starts", "sizes", "steps")), strict=True)
            return array[tuple(slice_of(*p) for p in parts)]
        case "index":
            places = dict(zip(attrs["axes"], numbers(step.positions), strict=True))
            # With an ellipsis the view of no axes is an array, as the program has it.
            return array[(*(places.get(k, slice(None)) for k in range(array.ndim)), ...)]
        case "transpose":
            return array.transpose(attrs["axes"])
        case "expand_dims":
            return np.expand_dims(array, attrs["axes"])
        case "squeeze":
            return np.squeeze(array, attrs["axes"])
        case "real" | "imag":
            return getattr(array, step.kind)
        case "bitcast":
            return array.view(attrs["dtype"].numpy)
        case "broadcast_to":
            return np.broadcast_to(array, numbers(attrs["shape"]))
        case "gather_inside":  # a copy: no strides lead to any elements
            found = [results[p.index] for p in step.positions if isinstance(p, LeafResult)]
            index = dict(zip(attrs["axes"], found, strict=True))
            return array[tuple(index.get(k, slice(None)) for k in range(array.ndim))]
    return array.reshape(numbers(attrs["shape"]))


def slice_of(start: int, size: int, step: int) -> slice:
    """The slice of so many elements."""
    if size <= 0:
        return slice(0, 0)
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step)


def of_list(array: Any) -> Any:
    """What NumPy makes of the list that an array was made of: floats of one axis if it was empty,
    whatever might have been in it."""
    return array if array.shape[0] else np.array([])


def built(kind: str, cls: Any, names: tuple[Any, ...], parts: list[Any]) -> Any:
    """The structure of a `NodeResult`, from its parts."""
    if kind == "tuple":
        return cls(*parts) if cls is not None else tuple(parts)
    if kind == "call":
        return cls(*parts)
    if kind == "list":
        return parts
    if kind == "set":
        return set(parts)
    if kind == "dict":
        return dict(zip(names, parts, strict=True))
    if kind == "slice":
        return slice(*parts)
    if kind == "range":
        return range(*parts)
    if cls in generator_classes():
        from pyrelay.infer import random_state

        return random_state.made(parts)
    made = cls.__new__(cls, *(parts[names.index("args")] if _is_exception(cls) else ()))
    for name, part in zip(names, parts, strict=True):
        if part is not UNSET:
            object.__setattr__(made, name, part)
    return made


def _is_exception(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, BaseException)


def restore(container: Any, kind: str, names: tuple[Any, ...], parts: list[Any]) -> None:
    """Give a caller's list, dict or object the content it has after the program."""
    if kind == "varied":
        _restore_varied(container, parts[0])
    elif kind == "list":
        container[:] = parts
    elif kind == "set":
        container.clear()
        container.update(parts)
    elif kind == "items":
        (container[:],) = parts
    elif kind == "sequence":
        if isinstance(container, array):  # which has no `clear` before Python 3.13
            del container[:]
        else:
            container.clear()
        container.extend(parts[0])
    elif kind == "lists":
        columns.store(container, parts[0])
    elif kind == "placed lists":
        columns.store_placed(container, *parts)
    elif kind == "nested":
        columns.store_nested(container, *parts)
    elif kind == "table":
        entries = zip(*parts, strict=True)
        if isinstance(container, set):
            columns.store_members(container, [name for name, *_, there in entries if there])
            return
        columns.store_entries(container, {k: v for k, v, there in entries if there})
    elif kind == "dict":
        container.clear()
        # Not by a method that a user's class may override; an ordered dict has an order of its own.
        entries = zip(names, parts, strict=True)
        if isinstance(container, OrderedDict):
            OrderedDict.update(container, entries)
        else:
            dict.update(container, entries)
    elif is_generator(container):
        from pyrelay.infer import random_state

        random_state.store(container, parts)
    else:
        for name, part in zip(names, parts, strict=True):
            if part is not UNSET:
                object.__setattr__(container, name, part)


def _restore_varied(container: Any, content: Any) -> None:
    """As `restore`, for what the container holds where a program raises: a list or a dict."""
    if isinstance(container, list):
        container[:] = content
    elif isinstance(container, (dict, set)):
        container.clear()
        container.update(content)
    else:
        for name, part in content.items():
            object.__setattr__(container, name, part)
