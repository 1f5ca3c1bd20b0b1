"""Trees built by the program: a class of a recursive data type is called, and a row is appended.

In: the class and the values of its fields. Out: a `Data` in the pool that all new nodes of the data
type lie in (pool_tables.py). The pool is made when the program starts and handed to every
function of its own; what it has to hold is found by starting over (`NeedsPool`).

Nodes that have a node of an argument among their children lie in the argument's pool, which then
grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import kinds as number_kinds
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.containers.admission import checked_shape
from pyrelay.infer.containers.open_sequences import open_text
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes import functions_in_nodes, lengths, sets_of_nodes
from pyrelay.infer.nodes.annotations import (
    Expected,
    expected_fields,
    is_of_many,
    is_record_class,
)
from pyrelay.infer.nodes.anonymous import (
    group_of,
    refuse_deeper_fields,
    refuse_groups,
    refuse_tuples,
)
from pyrelay.infer.nodes.constructing import begun, in_place_of, incomplete, known_as
from pyrelay.infer.nodes.datatypes import (
    NO_NODE,
    Array,
    Callee,
    Child,
    Choice,
    Constant,
    Family,
    Grows,
    Incompatible,
    Items,
    Nothing,
    Number,
    Row,
    Schema,
    Sort,
    Struct,
    Text,
    captures,
    is_function,
    merged,
    of_numbers,
    ones_of,
    shown,
)
from pyrelay.infer.nodes.dicts import refuse_leaf
from pyrelay.infer.nodes.plans import Fields, NeedsPool, Plan
from pyrelay.infer.nodes.pool_tables import (
    column_rows,
    make_room,
    table_of,
    tables_of,
)
from pyrelay.infer.nodes.pools import Column, column_sorts
from pyrelay.ir import types
from pyrelay.ir.build import constant
from pyrelay.ir.nodes import UNSET, Atom
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

# -- construction ----------------------------------------------------------------------------------


def is_inside(it: Interpreter, value: V.Value, cls: type) -> bool:
    """Whether a value is or has inside an object of a class of the user."""
    pending, seen = [value], set[V.Root]()
    while pending:
        here = pending.pop()
        if isinstance(here, (V.Ref, V.Tuple)) and here.cls is cls and is_record_class(cls):
            return True
        if isinstance(here, V.Ref):
            if here.root in seen:
                continue
            seen.add(here.root)
        pending.extend(contents(it, here))
    return False


def contents(it: Interpreter, value: V.Value) -> Sequence[V.Value]:
    """The values in a tuple, a list or an object, or the cases of a union."""
    match value:
        case V.Tuple(items):
            return items
        case V.Union():
            return value.possible
        case V.Ref(root) if root.kind in ("object", "list"):
            content = it.heap.contents[root]
            return () if isinstance(content, V.Growing) else L.content_children(content)
    return ()


def build(
    it: Interpreter, cls: type, values: Mapping[str, V.Value], made: V.Root | None = None
) -> V.Value:
    """A new node. Raises Diverges if the pool cannot hold it yet, which is noted.

    made: what it was while its `__init__` ran; who got to know it then has the node from now on.
    """
    family = it.program.families.of(cls)
    assert family is not None
    if family not in it.pools:
        family = _with_parts(it, family, values)
    pool, kind = it.pools.get(family), family.kinds[cls]
    if pool is None:
        pool = it.new_ref("pool", {}, Schema((), ()))  # to look at what it would hold
    known = pool.cls.of(kind) if kind < len(pool.cls.fields) else {}
    values = {n: v if _is_of(v, made) else begun(it, v) for n, v in values.items()}
    if values.keys() < known.keys() and is_record_class(cls):  # some are assigned afterwards
        values = {n: values.get(n, V.Known(UNSET)) for n in known}
    if made is not None:
        node = V.Data(pool, kind, _next_row(it, pool, kind))
        values = {n: in_place_of(made, node, v) for n, v in values.items()}
    plan = it.program.plans.setdefault(family, Plan(family))
    lengths.note(it, plan, kind, values)
    builder = NodeBuilder(it, family, pool, cls, builds=True)
    sorts = builder.sorts_of(values, known)
    met = kind < len(pool.cls.fields) and pool.cls.fields[kind] is not None
    before = tuple(known.items())
    joined = builder.joined(before if list(known) == list(values) else sorts, sorts)
    refuse_tuples(cls, joined, values)
    refuse_deeper_fields(known, joined, values)
    fits = {n: sort == known.get(n) for n, sort in joined}
    same = met and list(known) == list(values)
    if pool.cls.classes != tuple(family.classes) or not same or not all(
        fits[n] or _can_be_nothing(sort) for n, sort in known.items()
    ):
        need = NeedsPool(family, kind, joined)
        if made is None or not _is_unknown(it, pool, kind):
            raise it.program.lacking.instead(need)
        it.program.lacking.note_hollow(need)
        new = V.Data(pool, kind, V.Scalar(types.PY_INT, it.builder.undef(types.PY_INT).atom))
        known_as(it, made, new)
        return new
    if not all(fits.values()):
        it.program.lacking.note(NeedsPool(family, kind, joined))
    leaves: dict[str, V.Value] = {}
    for name, sort in known.items():
        if fits[name]:
            builder.write(sort, f"{kind}.{name}", values[name], leaves)
        else:
            leaves.update(builder.nothing(sort, f"{kind}.{name}"))
    new = V.Data(pool, kind, builder.append(str(kind), leaves))
    if made is not None:
        known_as(it, made, new)
    return new


def _is_unknown(it: Interpreter, pool: V.Ref, kind: int) -> bool:
    """Whether nothing is known of the fields of a kind of nodes that the pool can have."""
    fields = pool.cls.fields
    return pool in it.pools.values() and kind < len(fields) and fields[kind] is None


def _with_parts(it: Interpreter, family: Family, values: Mapping[str, V.Value]) -> Family:
    """The data type of a first node, with those of the nodes in its fields."""
    for value in values.values():
        found = V.node_of(value)
        if found is None or group_of(found[0].cls) is not None:
            continue
        other = it.program.families.of(found[0].cls.classes[1])
        if other is not None and other is not family and other.families.outer is not None:
            family = other.taking_in(family)
    return family


def _plain_sort(family: Family, value: V.Value, expected: Expected | None) -> Sort | None:
    """The sort of a number or of what is known; None for anything else."""
    if V.number_type(value) is not None:
        return of_numbers(number_kinds.of(value))
    if isinstance(value, V.Known):
        named = _named(family, expected) if value.value is None else ()
        return Child(named) if NO_NODE in named else Constant(value.value, type(value.value))
    return None


def _named(family: Family, expected: Expected | None) -> tuple[int, ...]:
    """The kinds that an annotation allows, if it is about nodes."""
    if expected is None:
        return ()
    kinds = {
        family.kinds[c] for c in expected.classes
        if c in family.kinds and not c.__subclasses__()
    }
    if kinds and expected.none:
        kinds.add(NO_NODE)
    return tuple(sorted(kinds))


def _is_of(value: V.Value, made: V.Root | None) -> bool:
    return isinstance(value, V.Ref) and value.root is made


def _next_row(it: Interpreter, pool: V.Ref, kind: int) -> V.Value:
    """The row that the next node of a kind gets."""
    rows = it.content(pool.root).get(str(kind))
    count: V.Value = it.content(rows.root).count if isinstance(rows, V.Ref) else V.Known(0)
    return count


@dataclass
class NodeBuilder:
    """One node under construction.

    builds: it is to be made now. around: the objects that are to be nodes, too, in which it is.
    """

    it: Interpreter
    family: Family
    pool: V.Ref
    cls: type
    builds: bool = False
    around: tuple[V.Root, ...] = ()

    def joined(self, before: Fields, new: Fields) -> Fields:
        found = []
        for (name, a), (_, b) in zip(before, new, strict=True):
            try:
                found.append((name, merged(a, b, promote=True)))
            except Incompatible:
                arrays = isinstance(a, Array) and isinstance(b, Array) and a.dtype == b.dtype
                raise self.it.failure(
                    errors.TypeMismatchError,
                    f"the field {name!r} of {self.cls.__name__} is {shown(b)} here and "
                    f"{shown(a)} in other nodes",
                    hints=("pad the arrays of a field to one shape, which has no axis of extent 1 "
                           "in some of them only, or keep them in fields of their own" if arrays
                           else "give all nodes of a class fields of the same types",),
                ) from None  # fmt: skip
        return tuple(found)

    # -- sorts -------------------------------------------------------------------------------------

    def sort_of(self, value: V.Value, expected: Expected | None, name: str) -> Sort:
        """The sort that holds a value."""
        it = self.it
        found = V.node_of(value)
        if found is not None:
            return self._child(found[0], found[1])
        plain = _plain_sort(self.family, value, expected)
        if plain is not None:
            return plain
        match value:
            case V.ArrayRef(type=array):
                return Array(array.dtype.name, ones_of(array.shape))
            case V.Tuple(items, None):
                return self._tuple(items, expected, name)
            case V.Ref(root) if root.kind == "list":
                content = it.content(root)
                if not isinstance(content, V.Growing):
                    return Items(list, self._common(content, self._item(expected, list), name))
                if V.node_of(self._first(content)) is not None:
                    return Items(list, self.sort_of(self._first(content), None, name))
                return Grows()
            case V.OpenTuple(items) if isinstance(
                item := self.sort_of(self._first(it.content(items.root)), None, name),
                (Child, Number),
            ):
                return Items(tuple, item)
            case V.Ref() if (few := sets_of_nodes.as_range(it, value)) is not None:
                return Items(set, self._common(few, None, name))
            case V.Ref(_, cls) | V.Tuple(_, cls) if cls is not None and is_record_class(cls):
                return self._record(value, cls)
            case V.Items(pool, cls, sort):
                if pool.root is self.pool.root:
                    return Items(cls, sort)
            case V.Union():
                return self._common(value.possible, expected, name)
            case V.Text() if not all(V.number_type(v) for v in V.leaves_of(value.args)):
                return Text()
            case V.Closure() | V.Method() | V.Partial() | V.Text():
                parts = functions_in_nodes.captured(it, value)
                head = L.head_of(value)
                assert head is not None
                return Callee(head, tuple(self.sort_of(p, None, name) for p in parts))
        if isinstance(value, V.Ref):
            refuse_leaf(it, self.cls, value)
            if value.root.kind in ("dict", "set") and value.root.made is not None:
                it.program.open_keys.add(value.root.made)
            it.heap.note_items((value,))
        raise it.failure(
            errors.UnsupportedOperationError,
            f"the field {name!r} of {self.cls.__name__} cannot be {V.describe(value)} in a node "
            "that the program makes",
            hints=("keep numbers, arrays, texts, nodes, and tuples or lists of nodes in it",),
        )

    def sorts_of(self, values: Mapping[str, V.Value], known: Mapping[str, Sort]) -> Fields:
        """The sorts of the fields."""
        expected, many = expected_fields(self.cls), is_of_many(self.cls)
        return tuple(
            (n, Grows() if (isinstance(known.get(n), Grows) or many) and V.is_list(v)
             else self.sort_of(v, expected.get(n), n))
            for n, v in values.items()
        )

    def _record(self, value: V.Ref | V.Tuple, cls: type) -> Sort:
        """The sort of an object that turns out to be of a class of nodes: it was made as none, so
        that the node at hand cannot be made, but says what nodes of its class have to hold."""
        it, lacking = self.it, self.it.program.lacking
        if cls in self.family.kinds and cls not in lacking.late:
            raise incomplete(it, cls)
        self.family.add(cls)
        lacking.late.add(cls)
        ends = lacking.instead(NeedsPool(self.family))
        if isinstance(value, V.Tuple):
            values = dict(zip(cls._fields, value.items, strict=True))  # type: ignore[attr-defined]
        elif self.builds and value.root not in (*it.constructing, *self.around):
            values = it.content(value.root)
        else:
            raise ends
        around = self.around if isinstance(value, V.Tuple) else (*self.around, value.root)
        one = replace(self, cls=cls, around=around)
        lacking.instead(NeedsPool(self.family, self.family.kinds[cls], one.sorts_of(values, {})))
        return Child((self.family.kinds[cls],))

    def _first(self, content: V.Growing) -> V.Value:
        """An item of a list, to look at its type."""
        trial = self.it.builder.nested()
        with self.it.inside(trial, self.it.heap.copy()):
            return growing.read_row(trial, self.it.heap, content, constant(0))

    def _child(self, pool: V.Ref, kinds: tuple[int, ...]) -> Sort:
        if pool.root is not self.pool.root:
            refuse_groups(self.pool.cls, pool.cls)
            if self.builds and not self.pool.cls.classes:
                return self._child_of_other(pool, kinds)
            if set(pool.cls.classes) & set(self.family.classes[1:]):
                if self.it.program.plans[self.family].unified:
                    raise self.it.failure(
                        errors.UnsupportedOperationError,
                        f"a new {self.cls.__name__} cannot hold a node of this tree, beside nodes "
                        "of another one",
                        hints=("pass the trees that new nodes are made of as arguments of one "
                               "call",),
                    )
                raise NeedsPool(self.family, unified=True)
            other = self.it.program.families.of(pool.cls.classes[1])
            assert other is not None
            raise self.it.program.lacking.instead(NeedsPool(other.taking_in(self.family)))
        return Child(tuple(sorted(kinds)))

    def _child_of_other(self, pool: V.Ref, kinds: tuple[int, ...]) -> Sort:
        """The sort of a node of another data type, which becomes part of that of the node at hand,
        of which there are none yet."""
        classes = pool.cls.classes
        if not self.family.kinds.keys() >= {*classes}:
            other = self.it.program.families.of(classes[1])
            assert other is not None
            whole = other.taking_in(self.family)
            ends = self.it.program.lacking.instead(NeedsPool(whole))
            if whole is not self.family:
                raise ends
        return Child(tuple(sorted(self.family.kinds[classes[k]] for k in kinds)))

    def _tuple(self, items: Sequence[V.Value], expected: Expected | None, name: str) -> Sort:
        told = expected if expected is not None and expected.sequence is tuple else None
        nodes = any(V.node_of(i) is not None for i in items)
        if (told is not None and not told.fixed) or (told is None and (nodes or not items)):
            return Items(tuple, self._common(items, self._item(expected, tuple), name))
        return Struct(tuple(self.sort_of(i, None, name) for i in items))

    def _item(self, expected: Expected | None, cls: type) -> Expected | None:
        if expected is None or expected.sequence is not cls or not expected.items:
            return None
        return expected.items[0]

    def _common(
        self, items: Sequence[V.Value], expected: Expected | None, name: str
    ) -> Sort:
        sort: Sort = Nothing()
        named = _named(self.family, expected)
        if named and not items:
            sort = Child(named)
        for item in items:
            try:
                sort = merged(sort, self.sort_of(item, expected, name), promote=True)
            except Incompatible:
                raise self.it.failure(
                    errors.TypeMismatchError,
                    f"the items of {name!r} of {self.cls.__name__} differ in type",
                    hints=("give them one type",),
                ) from None
        return sort

    # -- rows --------------------------------------------------------------------------------------

    def append(self, table: str, leaves: Mapping[str, V.Value]) -> V.Value:
        """Append a row to a table; its number."""
        it = self.it
        rows = it.content(self.pool.root)[table]
        assert isinstance(rows, V.Ref)
        content = it.content(rows.root)
        assert isinstance(content, V.Growing)
        count = content.count
        columns = tables_of(self.pool.cls)[table]
        if not columns:
            number = lists.count_of(it, content) + 1
            it.heap.write(rows.root, lists.counting(it, content, number), None)
            return count
        lists.append(it, rows, V.Tuple(tuple(leaves[c] for c in columns)))
        for position, column in enumerate(columns):
            value = leaves[column]
            if isinstance(value, V.ArrayRef) and value.root.keeper is rows.root:
                value.root.keeper_leaf = position
        return count

    def overwrite(self, table: str, row: V.Value, leaves: Mapping[str, V.Value]) -> None:
        """Write some columns of a row."""
        it = self.it
        target = it.content(self.pool.root)[table]
        assert isinstance(target, V.Ref)
        content = it.content(target.root)
        assert isinstance(content, V.Growing)
        rows_alone = not any(isinstance(leaf, V.Text) for leaf in leaves.values()) and (
            not L.is_ragged(content.template)
        )
        if rows_alone or growing.inner_lists(content.template):
            self._overwrite_leaves(target, content, it.atom(row), leaves)
            return
        before = growing.read_row(it.builder, it.heap, content, it.atom(row))
        assert isinstance(before, V.Tuple)
        columns = tables_of(self.pool.cls)[table]
        items = (leaves.get(c, old) for c, old in zip(columns, before.items, strict=True))
        moves = any(isinstance(leaf, V.ArrayRef) for leaf in leaves.values())
        lists.set_item(it, target, row, V.Tuple(tuple(items)), moves=moves)

    def _overwrite_leaves(
        self, target: V.Ref, content: V.Growing, row: Atom, leaves: Mapping[str, V.Value]
    ) -> None:
        """Write columns of a row, beside others, which stay where they are."""
        it, span = self.it, self.it.let.span if self.it.let else None
        for column, value in leaves.items():
            if isinstance(value, V.Text):
                raise it.failure(
                    errors.UnsupportedOperationError,
                    "a text is assigned to a field of an object that has a list that grows",
                    hints=("keep the list beside the objects: lists[k]",),
                )
            _, position = table_of(self.pool.cls, column)
            there, atom = content.rows[position].type, it.atom(value)
            assert isinstance(there, TensorType)
            assert isinstance(atom.type, TensorType)
            atom = checked_shape(it, atom, there.shape[1:])
            growing.keep(it.heap, value, span, target.root)
            atom = it.builder.cast(atom, there.dtype)
            content = growing.write_leaf(it.builder, content, row, position, atom)
        moves = any(isinstance(leaf, V.ArrayRef) for leaf in leaves.values())
        lists.write_content(it, target.root, content, moves=moves)

    def write(self, sort: Sort, path: str, value: V.Value, into: dict[str, V.Value]) -> None:
        """The values of a field's columns; items of lists are appended to their table."""
        it = self.it
        if isinstance(value, V.Known) and isinstance(sort, (Items, Struct)):
            value = V.Tuple(tuple(map(V.Known, value.value)))
        if isinstance(value, V.Union) and isinstance(sort, (Items, Struct, Choice)) and (
            V.node_of(value) is None
        ):
            self._by_case(sort, path, value, into)
            return
        match sort:
            case Number(ty):
                atom = it.builder.cast(it.atom(value), ty.dtype, weak=ty.weak)
                into[path] = V.Scalar(ty, atom)
            case Array() | Grows():
                into[path] = value
            case Text():
                into[path] = open_text(it, value)
            case Child():
                parts = V.node_of(value)
                into[f"{path}.kind"] = V.Known(0) if parts is None else parts[2]
                into[f"{path}.row"] = V.Known(0) if parts is None else parts[3]
            case Items():
                self._items(sort, path, value, into)
            case Struct(parts_sorts):
                assert isinstance(value, V.Tuple)
                for k, (part, item) in enumerate(zip(parts_sorts, value.items, strict=True)):
                    self.write(part, f"{path}[{k}]", item, into)
            case Row():
                parts = V.node_of(value)
                assert parts is not None
                into[f"{path}.row"] = parts[3]
            case Callee() if is_function(sort):
                self._captured((sort,), 0, path, value, into)
            case Callee(_, sorts):
                captured = functions_in_nodes.captured(it, value)
                for k, (part, item) in enumerate(zip(sorts, captured, strict=True)):
                    self.write(part, f"{path}[{k}]", item, into)
            case Choice(cases):
                self._choice(cases, path, value, into)

    def _items(self, sort: Items, path: str, value: V.Value, into: dict[str, V.Value]) -> None:
        it = self.it
        if isinstance(value, V.Items):
            into[f"{path}.start"], into[f"{path}.count"] = value.start, value.count
            if value.path != f"{path}[]":
                raise it.failure(
                    errors.UnsupportedOperationError,
                    "a list of one field cannot become another field of a new node",
                    hints=("build a new list: [child for child in node.children]",),
                )
            return
        table = f"{path}[]"
        if isinstance(value, V.OpenTuple):
            value = value.items
        if sort.cls is list and isinstance(value, V.Ref):
            self._keep(value.root, path)
        items = value.items if isinstance(value, V.Tuple) else it.content(value.root)  # type: ignore[union-attr]
        if sort.cls is set:
            count = sets_of_nodes.kept(it, value)
        else:
            count = items.count if isinstance(items, V.Growing) else V.Known(len(items))
        rows = it.content(self.pool.root).get(table)
        if rows is None:  # what the items are is known
            into[f"{path}.start"] = V.Known(0)
            into[f"{path}.count"] = count
            return
        assert isinstance(rows, V.Ref)
        before = it.content(rows.root)
        assert isinstance(before, V.Growing)
        into[f"{path}.start"] = before.count
        into[f"{path}.count"] = count
        if isinstance(items, V.Growing):
            lists.extend(it, rows, self._as_rows(items, before))
            return
        for item in items:
            leaves: dict[str, V.Value] = {}
            self.write(sort.item, table, item, leaves)
            self.append(table, leaves)

    def _as_rows(self, items: V.Growing, like: V.Growing) -> V.Growing:
        """A list of nodes as rows of kinds and rows, one of numbers as rows of these."""
        cast = self.it.builder.cast
        wanted = [row.type.dtype for row in like.rows]  # type: ignore[union-attr]
        rows = map(cast, items.rows, wanted)
        return V.Growing(items.count, tuple(rows), like.template, items.loops)

    def _keep(self, root: V.Root, path: str) -> None:
        """Note that a node has a copy of a list: if it is changed, it has to be the node's own."""
        it = self.it
        root.stored = root.stored or (it.let.span if it.let else None) or True
        kind, _, name = path.partition(".")
        known = self.pool.cls.of(int(kind))
        if name in known and not it.program.plans[self.family].unified:
            fields = tuple((n, Grows() if n == name else s) for n, s in known.items())
            root.wanted = NeedsPool(self.family, int(kind), fields)

    def _choice(
        self, cases: tuple[Sort, ...], path: str, value: V.Value, into: dict[str, V.Value]
    ) -> None:
        own = self.sort_of(value, None, path)
        if isinstance(own, Choice):
            self._number_of_kinds(cases, path, value, into)
            return
        chosen = next(k for k, case in enumerate(cases) if _holds(case, own))
        into[f"{path}.case"] = V.Known(chosen)
        if is_function(cases[chosen]):
            self._captured(cases, chosen, path, value, into)
        else:
            self.write(cases[chosen], f"{path}|{chosen}", value, into)
        for column, sort in _of_a_row(Choice(cases), path):
            if isinstance(sort, Array) and column in into:
                make_room(self.it, self.pool, column, (f"{path}.case", chosen), into[column])
        self._fill(cases, path, into)

    def _captured(
        self, cases: tuple[Sort, ...], number: int, path: str, value: V.Value,
        into: dict[str, V.Value],
    ) -> None:
        """What a function captures that is one of these cases."""
        functions_in_nodes.fix(self.it, value)
        captured = functions_in_nodes.captured(self.it, value)
        sorts, places = captures(cases)
        for k, item in zip(places[number], captured, strict=True):
            self.write(sorts[k], f"{path}|f{k}", item, into)

    def _fill(self, cases: tuple[Sort, ...], path: str, into: dict[str, V.Value]) -> None:
        """The columns of the cases that a row does not hold."""
        for column, sort in _of_a_row(Choice(cases), path):
            if column not in into:
                into[column] = self._nothing(column, sort)

    def _by_case(
        self, sort: Sort, path: str, value: V.Union, into: dict[str, V.Value]
    ) -> None:
        """The columns of a field that gets one of several values."""
        from pyrelay.infer.flow.unions import distribute_all

        names = [column for column, _ in _of_a_row(sort, path)]

        def one(case: V.Value) -> list[V.Value]:
            found: dict[str, V.Value] = {}
            self.write(sort, path, case, found)
            return [found[n] for n in names]

        into.update(zip(names, distribute_all(self.it, value, one), strict=True))

    def _number_of_kinds(
        self, cases: tuple[Sort, ...], path: str, value: V.Value, into: dict[str, V.Value]
    ) -> None:
        """A number is written as each of the kinds that it may be: the case says which it is."""
        it, found = self.it, number_kinds.of(value)
        chosen = it.builder.handle(constant(0))
        for k, case in enumerate(cases):
            if isinstance(case, Number) and case.type in found:
                code = number_kinds.code(case.type)
                is_it = it.builder.call(OPS["equal"], number_kinds.kind_of(value), code)
                chosen = it.builder.call(OPS["where"], is_it, k, chosen)
                into[f"{path}|{k}"] = number_kinds.as_kind(it, value, case.type)
        into[f"{path}.case"] = V.Scalar(
            types.PY_INT, it.builder.cast(chosen.atom, types.i64, weak=True)
        )
        self._fill(cases, path, into)

    def nothing(self, sort: Sort, path: str) -> dict[str, V.Value]:
        """The values of a field's columns in a row that holds something else."""
        return {c: self._nothing(c, column) for c, column in _of_a_row(sort, path)}

    def _nothing(self, column: str, sort: Column) -> V.Value:
        if isinstance(sort, Number):
            return V.Scalar(sort.type, constant(0, sort.type))
        if isinstance(sort, Text):
            return open_text(self.it, V.Known(""))
        rows = column_rows(self.it, self.pool, column)
        assert rows is not None
        assert isinstance(rows.type, TensorType)
        return self.it.new_array(
            self.it.builder.full(0, rows.type.shape[1:], rows.type.dtype).atom
        )


def _of_a_row(sort: Sort, path: str) -> Iterator[tuple[str, Column]]:
    """The columns of a field; items of lists in it are rows of tables of their own."""
    return (each for each in column_sorts(sort, path) if "[]" not in each[0].removeprefix(path))


def _can_be_nothing(sort: Sort) -> bool:
    """Whether columns of a field can be left without a value that means anything."""
    return not any(isinstance(column, Grows) for _, column in _of_a_row(sort, ""))


def _holds(sort: Sort, value: Sort) -> bool:
    try:
        return merged(sort, value, promote=True) == sort
    except Incompatible:
        return False
