"""The tables of a pool that nodes are added to: growing lists, one row for each node.

In: a schema, or the columns of the caller's trees. Out: the content of a pool: one growing list
(growing.py) for the nodes of each kind and one for the items of each field that is a list; where a
column lies in them, and its rows.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.containers.open_layouts import OPEN_TEXT
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.infer.nodes.datatypes import (
    Array,
    Callee,
    Choice,
    Constant,
    Grows,
    Incompatible,
    Items,
    Number,
    Schema,
    Sort,
    Struct,
    Text,
    merged,
)
from pyrelay.infer.nodes.functions_in_nodes import refuse_leaving
from pyrelay.infer.nodes.lengths import Lengths
from pyrelay.infer.nodes.pools import Column, column_sorts, schema_columns
from pyrelay.ir import dims, types
from pyrelay.ir.build import constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import UNREAD, Atom, If
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType


@functools.cache
def tables_of(schema: Schema) -> dict[str, dict[str, Column]]:
    """The columns of each table: by kind, and by list field; those that are several rows, texts and
    lists that grow, are the last ones."""
    found: dict[str, dict[str, Column]] = {}
    for kind in schema.known():
        found[str(kind)] = {}
        for name, sort in schema.of(kind).items():
            for column, own in column_sorts(sort, f"{kind}.{name}"):
                table, bracket, _ = column.rpartition("[]")
                found.setdefault(table + bracket or str(kind), {})[column] = own
    return {
        table: dict(sorted(own.items(), key=lambda column: isinstance(column[1], (Grows, Text))))
        for table, own in found.items()
    }


@functools.cache
def table_of(schema: Schema, column: str) -> tuple[str, int]:
    """The table that a column belongs to, and its position there."""
    for table, columns in tables_of(schema).items():
        if column in columns:
            return table, list(columns).index(column)
    raise AssertionError(column)


def columns(it: Interpreter, pool: V.Ref) -> dict[str, V.ArrayRef]:
    """All columns of a pool, as arrays, for Python to make objects of."""
    refuse_leaving(it, pool.cls)
    content = it.content(pool.root)
    found = {}
    for name, sort in schema_columns(pool.cls).items():
        rows = column_rows(it, pool, name)
        if rows is not None and isinstance(sort, Text):
            rows = text_column(it, *texts(it, pool, name))
        found[name] = content[name] if rows is None else it.new_array(rows)
    return found


def text_column(it: Interpreter, counts: Atom, codes: Atom) -> Atom:
    """Texts as a column of a result has them, by how many code points they have, and these."""
    parts = it.emit("expand_dims", counts, axes=(1,)).atom, codes
    atom: Atom = it.emit("concatenate", *parts, axis=1).atom
    return atom


def texts(it: Interpreter, pool: V.Ref, column: str) -> tuple[Atom, Atom]:
    """How many code points the texts of a column have, and these, row by row."""
    given = it.content(pool.root).get(column)
    if isinstance(given, V.ArrayRef):
        return _parted(it, it.atom(given))
    table, position = table_of(pool.cls, column)
    rows = it.content(it.content(pool.root)[table].root)
    first = _first_leaf(rows.template, position)
    return rows.rows[first], rows.rows[first + 1]


def _first_leaf(template: Any, position: int) -> int:
    """The number of the first row that is of a column."""
    return sum(len(tuple(L.template_types(c))) for c in template.children[:position])


def _parted(it: Interpreter, rows: Atom) -> tuple[Atom, Atom]:
    """Texts as the columns of an argument have them: their counts, and their code points."""
    assert isinstance(rows.type, TensorType)
    count, width = rows.type.shape
    counts = it.emit("index", rows, constant(0), axes=(1,))
    codes = it.emit(
        "slice", rows, starts=(0, 1), sizes=(count, dims.add(width, -1)), steps=(1, 1)
    )
    return counts.atom, codes.atom


def column_rows(it: Interpreter, pool: V.Ref, column: str) -> Atom | None:
    """The rows of a column of a growing pool; None if the pool does not grow.

    Raises UnsupportedOperationError for arrays that differ in shape, which have extents beside them
    in lists (ragged.py): the arrays of a field are rows of one column.
    """
    content = it.content(pool.root)
    if isinstance(content.get(column), V.ArrayRef):  # else it may be a table of that name
        return None
    table, position = table_of(pool.cls, column)
    rows = it.content(content[table].root)
    assert isinstance(rows, V.Growing)
    columns = tables_of(pool.cls)[table].values()
    single = sum(not isinstance(own, (Grows, Text)) for own in columns)
    if L.is_ragged(rows.template) or (single == len(columns) != len(rows.rows)):
        raise it.failure(
            errors.UnsupportedOperationError,
            "the arrays in a field of these nodes differ in shape",
            hints=("pad them to one shape",),
        )
    return rows.rows[_first_leaf(rows.template, position)]


def make_room(
    it: Interpreter, pool: V.Ref, column: str, held: tuple[str, int], value: V.Value
) -> None:
    """Have the rows of a column of arrays, which some nodes have, be of the shape of this one.

    held: the column of cases, and which of them says that a row has an array. While none has, the
    rows may have any shape; then the program checks that the shapes are equal.
    """
    rows, cases = column_rows(it, pool, column), column_rows(it, pool, held[0])
    if rows is None or cases is None:
        return
    array = it.atom(value)
    assert isinstance(array.type, TensorType)
    assert isinstance(rows.type, TensorType)
    assert isinstance(cases.type, TensorType)
    capacity, *extents = rows.type.shape
    unequal = dict.fromkeys(
        pair for pair in zip(array.type.shape, extents, strict=True)
        if it.program.guards.equal(*pair) is None
    )
    if not unequal:
        return
    table, position = table_of(pool.cls, column)
    owner = it.content(pool.root)[table].root
    content = it.content(owner)
    b = it.builder
    differ = functools.reduce(
        lambda x, y: b.call(OPS["logical_or"], x, y),
        (b.call(OPS["not_equal"], b.extent(own), b.extent(there)) for own, there in unequal),
    )
    then, orelse = b.nested(), b.nested()
    present = then.call(
        OPS["less"], then.call(OPS["iota"], size=cases.type.shape[0], dtype=types.i64),
        it.atom(content.count),
    )
    given = then.call(
        OPS["any"],
        then.call(OPS["logical_and"], present, then.call(OPS["equal"], cases, held[1])),
        axes=(0,), keepdims=False,
    )
    checked, unchecked = then.nested(), then.nested()
    for own, there in unequal:
        checked.call(OPS["check_equal"], left=own, right=there, text=growing.ONE_SHAPE)
    then.bind(If(given.atom, checked.block([]), unchecked.block([])), [])
    made = then.full(0, (capacity, *array.type.shape), rows.type.dtype)
    symbols = {there: Symbol("d", Origin.RUNTIME) for _, there in unequal}
    owns = {there: own for own, there in unequal}
    node = If(
        differ.atom, then.block([made], [owns[e] for e in symbols]),
        orelse.block([rows], list(symbols)),
    )
    shape = (capacity, *(dims.of(symbols[e]) if e in symbols else e for e in extents))
    (new,) = b.bind(node, [TensorType(rows.type.dtype, shape)], dims=tuple(symbols.values()))
    every = (*content.rows[:position], new.atom, *content.rows[position + 1 :])
    lists.write_content(it, owner, replace(
        content, rows=every, template=typed_by_rows(content.template, every)
    ))


def is_growing(it: Interpreter, pool: V.Ref) -> bool:
    """True for a pool that nodes can be added to."""
    return any(isinstance(v, V.Ref) for v in it.content(pool.root).values())


def new_pool(it: Interpreter, schema: Schema, lengths: Lengths) -> V.Ref:
    """An empty pool, with rows of these extents."""
    content = {
        table: it.new_ref("list", _empty(it, columns, lengths))
        for table, columns in tables_of(schema).items()
    }
    return it.new_ref("pool", content, schema)


def _empty(it: Interpreter, columns: Mapping[str, Column], lengths: Lengths) -> V.Growing:
    rows = tuple(
        row for column, sort in columns.items()
        for row in _zeros(it, sort, 0, lengths.get(column, ()))
    )
    return _content(columns, V.Known(0), rows)


def _zeros(
    it: Interpreter, sort: Column, count: Extent, lengths: Sequence[Extent | None] = ()
) -> tuple[Atom, ...]:
    """The rows of a column that no node has had yet."""
    if isinstance(sort, Text):
        return tuple(it.builder.full(0, shape, types.i64).atom for shape in ((count,), (count, 0)))
    shape: list[Extent] = [count]
    if isinstance(sort, Array):
        foreseen = lengths if len(lengths) == len(sort.ones) else (None,) * len(sort.ones)
        for n, length in zip(sort.ones, foreseen, strict=True):
            shape.append(1 if n == 1 else _unknown(it) if length is None else length)
    return (it.builder.full(0, tuple(shape), _dtype(sort)).atom,)


def _unknown(it: Interpreter) -> Extent:
    """An extent of which nothing is known while compiling: the first node says what it is."""
    _, (extent,) = it.builder.call(OPS["as_extent"], constant(0), name="d")
    return extent  # type: ignore[no-any-return]


def _dtype(sort: Column) -> types.DType:
    if isinstance(sort, (Grows, Text)):
        return types.i64  # how many items there are
    return sort.type.dtype if isinstance(sort, Number) else types.DTYPES[sort.dtype]


def _content(
    columns: Mapping[str, Column], count: V.Value, rows: tuple[Atom, ...]
) -> V.Growing:
    leaves: list[L.Layout] = []
    for k, sort in enumerate(columns.values()):
        if isinstance(sort, Number):
            leaves.append(L.LScalar(sort.type))
        elif isinstance(sort, Grows):
            leaves.append(L.LPlace(k, "list", None, L.LGrown(L.LKnown(UNREAD), 0)))
        elif isinstance(sort, Text):
            codes = L.LPlace(k, "list", None, L.LGrown(L.LScalar(types.PY_INT), 0))
            leaves.append(L.LNode(OPEN_TEXT, (codes,)))
        else:
            leaves.append(L.LPlace(k, "array", None, TensorType(_dtype(sort))))
    template = L.LNode(("tuple", None, len(leaves)), tuple(leaves))
    return V.Growing(count, rows, typed_by_rows(template, rows), slots=object())


def opened(it: Interpreter, columns: Mapping[str, V.Value], old: Schema, new: Schema) -> Any:
    """The content of an argument's pool, as one that nodes can be added to."""
    content = {}
    converted = _converted(it, columns, old, new)
    for table, sorts in tables_of(new).items():
        if any(isinstance(sort, Grows) for sort in sorts.values()):
            raise it.failure(
                errors.UnsupportedOperationError,
                "a list in a field of a new node is changed, and new nodes hold nodes of the "
                "caller's trees",
                hints=("assign a new list: node.items = node.items + [x]",),
            )
        rows: list[Atom] = []
        count = _count(columns, table, old)
        for column, sort in sorts.items():
            given = converted.get(column)
            if given is None:
                rows += _zeros(it, sort, count)
            elif isinstance(sort, Text):
                rows += _parted(it, it.atom(given))
            else:
                rows.append(it.builder.cast(it.atom(given), _dtype(sort)))
        number = V.Scalar.of_extent(count)
        content[table] = it.new_ref("list", _content(sorts, number, _same_count(it, rows, count)))
    return content


def _count(columns: Mapping[str, V.Value], table: str, schema: Schema) -> Extent:
    """The number of rows that a table of an argument has."""
    for column in tables_of(schema).get(table, {}):
        array = columns[column]
        assert isinstance(array, V.ArrayRef)
        return array.type.shape[0]
    return 0


def _converted(
    it: Interpreter, columns: Mapping[str, V.Value], old: Schema, new: Schema
) -> dict[str, V.Value]:
    """The columns of an argument's pool as a wider schema names them: what was a field's only sort
    may be one of several cases there. Columns that are left out hold zeros.
    """
    found: dict[str, V.Value] = {}
    counts = {table: _count(columns, table, old) for table in tables_of(old)}

    def copy(sort: Sort, path: str, into: Sort, at: str) -> None:
        match sort, into:
            case _, Choice(cases):
                given = sort.cases if isinstance(sort, Choice) else (sort,)
                places = [_case_of(it, case, cases) for case in given]
                if isinstance(sort, Choice):
                    if len(set(places)) < len(places):
                        raise _too_many(it)
                    found[f"{at}.case"] = _renumbered(it, columns[f"{path}.case"], places)
                else:
                    table, bracket, _ = path.rpartition("[]")
                    count = counts[table + bracket or path.partition(".")[0]]
                    rows = it.builder.full(places[0], (count,), types.i64)
                    found[f"{at}.case"] = it.new_array(rows.atom)
                for k, (case, place) in enumerate(zip(given, places, strict=True)):
                    inner = f"{path}|{k}" if isinstance(sort, Choice) else path
                    copy(case, inner, cases[place], f"{at}|{place}")
            case (Choice(), _) | (Constant(), Text()):
                raise _too_many(it)
            case (Struct(parts) | Callee(_, parts)), (Struct(others) | Callee(_, others)):
                for k, (part, other) in enumerate(zip(parts, others, strict=True)):
                    copy(part, f"{path}[{k}]", other, f"{at}[{k}]")
            case Items(_, item), Items(_, other):
                for name in ("start", "count"):
                    found[f"{at}.{name}"] = columns[f"{path}.{name}"]
                copy(item, f"{path}[]", other, f"{at}[]")
            case _:
                for name, _ in column_sorts(sort, path):
                    found[at + name[len(path):]] = columns[name]

    for kind in old.known():
        wider = new.of(kind)
        for name, sort in old.of(kind).items():
            copy(sort, f"{kind}.{name}", wider[name], f"{kind}.{name}")
    return found


def _case_of(it: Interpreter, sort: Sort, cases: Sequence[Sort]) -> int:
    """The number of the case that holds what is of a sort."""
    if sort in cases:
        return cases.index(sort)
    for k, case in enumerate(cases):
        try:
            if merged(case, sort, promote=True) == case:
                return k
        except Incompatible:
            continue
    raise _too_many(it)


def _renumbered(it: Interpreter, given: V.Value, places: Sequence[int]) -> V.Value:
    """A column of cases by their numbers in a wider schema."""
    if list(places) == list(range(len(places))):
        return given
    old = it.builder.handle(it.atom(given))
    found = it.builder.call(OPS["multiply"], old, 0)
    for k, place in enumerate(places):
        is_it = it.builder.call(OPS["equal"], old, k)
        found = it.builder.call(OPS["where"], is_it, place, found)
    return it.new_array(it.builder.cast(found.atom, types.i64))


def _too_many(it: Interpreter) -> errors.PyrelayError:
    return it.failure(
        errors.UnsupportedOperationError,
        "a field of the caller's objects gets numbers of too many types",
        hints=("give the field numbers of one type in all objects",),
    )


def _same_count(it: Interpreter, rows: list[Atom], count: Extent) -> tuple[Atom, ...]:
    """Columns of one table have as many rows, which is certain."""
    found = []
    for row in rows:
        assert isinstance(row.type, TensorType)
        shape = (count, *row.type.shape[1:])
        found.append(
            row if shape == row.type.shape
            else it.builder.call(OPS["refine"], row, shape=shape).atom
        )
    return tuple(found)
