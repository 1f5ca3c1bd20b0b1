"""The values that the arguments of a call are to a program.

In: the keys and leaves of arguments (structure.py), and what earlier attempts asked for (asked.py).
Out: parameters of the program for leaves, and values and objects made of them.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from pyrelay.infer import calls
from pyrelay.infer import values as V
from pyrelay.infer.arrays.layouts import Layout, layout_of
from pyrelay.infer.asked import Asked
from pyrelay.infer.containers import (
    code_points,
    column_content,
    columns,
    growing,
    moving,
)
from pyrelay.infer.guards import Guards
from pyrelay.infer.in_python import (
    byte_arrays,
    counting,
    hashed_sets,
    nested,
    set_order,
    tables,
)
from pyrelay.infer.in_python.containers import ENTERED
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes import lengths, pool_tables
from pyrelay.infer.nodes.datatypes import (
    Child,
    Family,
    Grows,
    Number,
    Schema,
    Text,
)
from pyrelay.infer.nodes.pools import Column, schema_columns
from pyrelay.infer.nodes.trees import ARGUMENT
from pyrelay.infer.objects import generator_classes
from pyrelay.infer.structure import Flattened, Identity, Key
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ops.shape import inverse
from pyrelay.records import dataclass


@dataclass
class Entered:
    """Lists that entered as arrays: the lengths of those of numbers, whether there were trees."""

    lengths: list[int] = field(default_factory=list)
    trees: bool = False
    texts: bool = False  # whether any list had texts in it
    nested: bool = False  # whether any list held lists of lists
    dicts: bool = False  # whether any dict entered as a table
    ragged: bool = False  # whether arrays in one list may differ in shape
    deep: bool = False  # whether lists in lists would hold lists
    deepened: bool = False  # and did at last
    open: bool = False  # whether a dict that did not is given keys that only the program knows
    texts_read: bool = False  # whether the program computed what methods of arguments give
    fixed: bool = False  # whether lists of known length, or dicts of no entry, became items
    counts: bool = False  # whether arguments say how often loops over objects by index run
    begins: bool = False  # whether first rounds of loops in loops gave objects their structure
    objects: bool = False  # whether the program made objects of the user that are nodes

    @property
    def arrays(self) -> bool:
        """Whether any list or dict entered as arrays."""
        return bool(self.lengths) or self.trees or self.texts or self.nested or self.dicts


@dataclass
class Arguments:
    """What has entered a program so far."""

    parse: Callable[[Any], Any]
    asked: Asked
    guards: Guards = field(default_factory=Guards)
    flat: Flattened = field(default_factory=Flattened)
    params: list[Var] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    objects: list[V.Value] = field(default_factory=list)  # value of each mutable object, by number
    roots: dict[int, V.Root] = field(default_factory=dict)
    containers: list[V.Root] = field(default_factory=list)
    #: of lists that entered as arrays: what tells whether their items moved
    slots: dict[V.Root, Any] = field(default_factory=dict)
    inside: dict[V.Root, list[object]] = field(default_factory=dict)  # and those of lists in them
    #: of dicts that entered as tables: what the lists that they are made of contained
    tabled: dict[V.Root, dict[V.Root, Any]] = field(default_factory=dict)
    #: of dicts of dicts, or of sets, that entered as arrays: the lists that these lie in
    given: dict[V.Root, list[V.Root]] = field(default_factory=dict)
    #: what these lists contained
    given_rows: dict[V.Root, Any] = field(default_factory=dict)
    #: deques and bytearrays, and what they and the lists that they are made of contained
    standing: dict[V.Root, tuple[V.Ref, dict[V.Root, Any]]] = field(default_factory=dict)
    copied_items: set[V.Root] = field(default_factory=set)  # the lists that these entered as
    given_changed: bool = False  # whether the program wrote to some before others entered
    entered: Entered = field(default_factory=lambda: Entered())
    layouts: dict[int, Layout | None] = field(default_factory=dict)  # see Program
    turned: dict[int, tuple[int, ...]] = field(default_factory=dict)  # see Binding
    pools: list[V.Root] = field(default_factory=list)
    trees: list[tuple[V.Ref, tuple[int, ...]]] = field(default_factory=list)  # pool of each root
    #: columns of lists of trees, which lie in the pool of the trees
    sequences: dict[V.Root, dict[str, V.Value]] = field(default_factory=dict)
    axes: dict[Symbol, tuple[int, int]] = field(default_factory=dict)
    columns: dict[int, tuple[int, str]] = field(default_factory=dict)

    def imported(self, it: Interpreter, key: Key, first: int) -> list[V.Value]:
        """The values of a key of `flatten`, whose leaves start at number `first`."""
        keys, packed = key
        schemas, roots = packed or ((), ())
        pools = [self._pool(it, schema) for schema in schemas]
        before = len(self.flat.pools) - len(pools)
        self.trees = [(pools[n - before], kinds) for n, kinds in roots]
        leaves = iter(range(first, len(self.flat.leaves)))
        self.sequences = {pool.root: {} for pool in pools}
        values = [self._build(it, k, leaves) for k in keys]
        for pool, data in zip(pools, self.flat.pools[before:], strict=True):
            self.objects.append(pool)
            self.pools.append(pool.root)
            content = self.sequences[pool.root]
            for name, sort in schema_columns(data.schema).items():
                leaf = next(leaves)
                self.columns[leaf] = (len(self.pools) - 1, name)
                content[name] = self._column(it, sort, leaf)
            if pool.cls is not data.schema:
                content = pool_tables.opened(it, content, data.schema, pool.cls)
                it.program.entered += [ref.root for ref in content.values()]
            it.heap.new(pool.root, content)
        return values

    def new_pools(self, it: Interpreter, families: Iterable[Family]) -> None:
        """Pools for the nodes that the program makes, of those data types that have a plan."""
        for family in families:
            plan = self.asked.plans.get(family)
            if plan is not None and family not in it.pools:
                params = dict(zip(self.parameters, self.params, strict=True))
                it.pools[family] = pool_tables.new_pool(
                    it, plan.schema(), lengths.foreseen(it, plan, params)
                )

    def _pool(self, it: Interpreter, schema: Schema) -> V.Ref:
        """The pool of some arguments; one that nodes are added to can hold all that is planned."""
        plans = self.asked.plans.items()
        plan = next((p for f, p in plans if f.classes[1] in schema.classes), None)
        if plan is None or not plan.unified or plan.family in it.pools:
            return V.Ref(V.Root("pool", None), schema)
        pool = it.pools[plan.family] = V.Ref(V.Root("pool", None), plan.schema(schema))
        return pool

    def _column(self, it: Interpreter, sort: Column, leaf: int) -> V.Value:
        assert not isinstance(sort, Grows)  # no list of an argument does
        if isinstance(sort, Number):
            return self._new_array(it, sort.type.dtype.name, (None,), leaf)
        if isinstance(sort, Text):
            return self._new_array(it, types.i64.name, (None, None), leaf)
        return self._new_array(it, sort.dtype, (None, *sort.ones), leaf)

    def _node(self, number: int, leaves: Iterator[int]) -> V.Value:
        pool, kinds = self.trees[number]
        kind, row = (
            V.Scalar(types.PY_INT, self._param(types.PY_INT, next(leaves))) for _ in range(2)
        )
        value = V.node(pool, kinds, kind, row)
        self.objects.append(value)
        return value

    def _nodes(self, it: Interpreter, number: int, leaves: Iterator[int]) -> V.Value:
        """A list of trees: a sequence in their pool, as if it were a field of a node.

        A list of places, where the program adds nodes to the pool or changes some.
        """
        pool, kinds = self.trees[number]
        first = next(leaves)
        root = V.Root("list", None, None, self.flat.names[first])
        self.containers.append(root)
        if pool in it.pools.values():
            return self._places(it, root, number, (first, next(leaves)))
        it.heap.new(root, ())  # nothing changes it
        path = f"{ARGUMENT}{first}"
        for part, leaf in (("kind", first), ("row", next(leaves))):
            column = self._new_array(it, types.i64.name, (None,), leaf)
            self.sequences[pool.root][f"{path}.{part}"] = column
        count = V.Scalar.of_extent(column.type.shape[0])
        value = V.Items(pool, list, Child(kinds), path, V.Known(0), count)
        self.objects.append(value)
        self.entered.trees = True
        return value

    def _places(self, it: Interpreter, root: V.Root, number: int, leaves: Sequence[int]) -> V.Ref:
        """A list of nodes whose kinds and rows are two arrays."""
        pool, kinds = self.trees[number]
        count = self._extent(leaves[0], 0)
        rows = tuple(self._param(TensorType(types.i64, (count,)), leaf) for leaf in leaves)
        unknown = V.Scalar(types.PY_INT, Var("place", types.PY_INT))
        template = growing.template_of(it.heap, [V.node(pool, kinds, unknown, unknown)])
        content = V.Growing(V.Scalar.of_extent(count), rows, template, slots=object())
        it.heap.new(root, content)
        value = V.Ref(root)
        self.objects.append(value)
        self.entered.trees = True
        return value

    def _build(self, it: Interpreter, key: Key, leaves: Iterator[int]) -> V.Value:
        match key:
            case ("number", _) | ("scalar", _):
                return self._number(it, key, next(leaves))
            case ("array", dtype, ones, order):
                value = self._new_array(it, dtype, ones, next(leaves), order)
                self.objects.append(value)
                return value
            case ("text",):
                return self._text(it, next(leaves))
            case ("bytes",):
                return self._bytes(it, next(leaves))
            case ("constant", _, value):
                return V.Known(value.value if isinstance(value, Identity) else value)
            case ("object", identity):
                return V.Known(identity.value)
            case ("again", number):
                return self.objects[number]
            case ("tuple", cls, *children):
                return V.Tuple(tuple(self._build(it, c, leaves) for c in children), cls)
            case ("range", step, *ends):
                start, stop = (V.Known(0), *(self._build(it, c, leaves) for c in ends))[-2:]
                return V.Range(start, stop, V.Known(step))
            case ("tree", number):
                return self._node(number, leaves)
            case ("trees", number):
                return self._nodes(it, number, leaves)
            case ("grown", item):
                return self._grown(it, item, leaves)
            case ("table", names, held):
                return self._table(it, names, held, leaves)
            case ("nested", cls, names, held):
                return self._nested(it, cls, names, held, leaves)
            case ("subclass", cls, _, ("table", names, _) as entries, *emptied) if cls is set:
                return self._set(it, names, entries, leaves, emptied=bool(emptied))
            case ("subclass", cls, factory, entries):
                return self._subclass(it, cls, factory.value, entries, leaves)
            case ("sequence", cls, most, items):
                return self._sequence(it, cls, most, items, leaves)
        return self._container(it, key, leaves)

    def _number(self, it: Interpreter, key: Key, leaf: int) -> V.Value:
        value = self.flat.leaves[leaf]
        if leaf in self.asked.known:
            return V.Known(value)
        ty = (
            types.of_scalar(value) if key[0] == "number" else TensorType(types.DTYPES[key[1]])
        )
        assert ty is not None
        param = self._param(ty, leaf)
        it.program.origins[param] = ("leaf", leaf)
        return V.Scalar(ty, param, None, ("leaf", leaf))

    def _text(self, it: Interpreter, leaf: int) -> V.Value:
        """A string that is data: its code points, which nothing changes."""
        self.entered.lengths.append(0)
        if leaf in self.asked.known or self.flat.apart >= columns.MOST_APART_NEEDED:
            self.asked.known[leaf] = True
            return V.Known(code_points.from_codes(self.flat.leaves[leaf]))
        array = self._new_array(it, types.i32.name, (None,), leaf)
        return V.Text(code_points.from_codes, (array,), ("leaf", leaf))

    def _bytes(self, it: Interpreter, leaf: int) -> V.Value:
        """Bytes that are data: their items."""
        self.entered.lengths.append(0)
        if leaf in self.asked.known or self.flat.apart >= columns.MOST_APART_NEEDED:
            self.asked.known[leaf] = True
            return V.Known(self.flat.leaves[leaf].tobytes())
        before = dict(it.heap.written)
        array = self._new_array(it, types.u8.name, (None,), leaf)
        value = calls.call(it, V.Known(byte_arrays.entered), (array,), {})
        it.heap.written = before
        return value

    def _numbered(self) -> int:
        """The number of an object that is made next: what makes it may read arrays of our own,
        whose numbers are higher."""
        self.objects.append(V.NONE)
        return len(self.objects) - 1

    def _param(self, ty: TensorType, leaf: int) -> Var:
        name = self.flat.names[leaf]
        var = Var(name if name.isidentifier() else f"a{leaf}", ty)
        self.params.append(var)
        self.parameters.append(leaf)
        return var

    def _type(self, dtype: str, ones: tuple[int | None, ...], leaf: int) -> TensorType:
        axes = range(self.flat.leaves[leaf].ndim)
        shape = tuple(1 if ones[k] == 1 else self._extent(leaf, k) for k in axes)
        return TensorType(types.DTYPES[dtype], shape)

    def _new_array(
        self, it: Interpreter, dtype: str, ones: tuple[int | None, ...], leaf: int,
        order: tuple[int, ...] = (),
    ) -> V.ArrayRef:
        """An array that enters. order: its axes as they lie in memory, if these are not as they
        stand: the program takes it so, and transposes it first."""
        array = self.flat.leaves[leaf]
        name = self.flat.names[leaf]
        plain = name if name.isidentifier() else f"a{leaf}"
        ty = self._type(dtype, ones, leaf)
        root = V.Root("array", None, leaf, plain)
        if order:
            self.layouts[leaf] = order, (True,) * len(order)
        if order and leaf not in self.asked.copied:
            self.turned[leaf] = order
            lies = TensorType(ty.dtype, tuple(ty.shape[k] for k in order))
            param = self._param(lies, leaf)
            content = it.builder.call(OPS["transpose"], param, axes=inverse(order)).atom
        else:
            content = self._param(ty, leaf)
        it.heap.new(root, content)
        self.roots[leaf] = root
        if leaf in self.asked.layouts:
            self.layouts[leaf] = layout_of(array)
        return V.ArrayRef(root, (), ty)

    def _table(
        self, it: Interpreter, names: Key | None, held: Key | None, leaves: Iterator[int]
    ) -> V.Value:
        """A dict that entered as arrays of its keys and values."""
        number = self._numbered()
        lists = [self._rows(it, item, leaves) for item in (names, held)]
        before = dict(it.heap.written)
        value = calls.call(it, V.Known(tables.entered), lists, {})
        it.heap.written = before  # what makes a table writes nothing of the caller's
        assert isinstance(value, V.Ref)
        self.objects[number] = value
        self.containers.append(value.root)
        self.entered.dicts = True
        content = it.heap.contents[value.root]
        parts = [content[name].root for name in ("names", "held", "alive", "slots")]
        it.program.entered.extend(parts)
        self.tabled[value.root] = {r: it.heap.contents[r] for r in parts[:3]}
        return value

    def _nested(
        self, it: Interpreter, cls: type, names: Key | None, held: Key, leaves: Iterator[int]
    ) -> V.Value:
        """A dict of dicts, or of sets, or a list of sets, that entered as arrays of what they
        have."""
        number = self._numbered()
        keys = self._rows(it, names, leaves)
        lists = [self._rows(it, held, leaves)]
        made: Any = nested.entered_dicts
        if cls is set and it.program.ordered:
            made = nested.entered_ordered_sets
            lists.append(self._rows(it, columns.LAYOUTS, leaves))
        elif cls is set:
            made = nested.entered_sets
            for _ in range(columns.count_of(columns.LAYOUTS)):
                next(leaves)
        self.new_pools(it, map(self.asked.families.declare, ([c] for c in nested.GIVEN[made])))
        self.given_changed |= self.changes_given(it)
        before = dict(it.heap.written)
        value = calls.call(it, V.Known(made), lists, {})
        if names is not None:
            value = calls.call(it, V.Known(tables.entered), (keys, value), {})
        it.heap.written = before
        assert isinstance(value, V.Ref)
        self.objects[number] = value
        self.containers.append(value.root)
        self.entered.dicts = True
        parts = [value.root]
        if names is not None:
            content = it.heap.contents[value.root]
            parts = [content[name].root for name in ("names", "held", "alive", "slots")]
        it.program.entered.extend(parts)
        self.tabled[value.root] = {r: it.heap.contents[r] for r in parts[:3]}
        rows = [r for cls in nested.GIVEN[made] for r in self._rows_of(it, cls)]
        it.program.entered.extend(rows)
        self.given[value.root] = rows
        self.given_rows.update((r, it.heap.contents[r]) for r in rows)
        return value

    def _rows_of(self, it: Interpreter, cls: type) -> Iterator[V.Root]:
        """The lists that the dicts or sets of a class lie in that are nodes."""
        family = self.asked.families.declare([cls])
        for table, rows in it.heap.contents[it.pools[family].root].items():
            if table.partition(".")[0] == str(family.kinds[cls]):
                yield rows.root

    def changes_given(self, it: Interpreter) -> bool:
        """Whether the program writes to a dict or set of the caller's that is in a dict."""
        return any(it.heap.contents[r] is not content for r, content in self.given_rows.items())

    def _subclass(
        self, it: Interpreter, cls: type, factory: Any, entries: Key, leaves: Iterator[int]
    ) -> V.Value:
        """A Counter, an OrderedDict or a defaultdict, with the dict of its entries."""
        number = len(self.objects)
        inside = self._build(it, entries, leaves)
        before = dict(it.heap.written)
        own: list[V.Value] = []
        if cls is not OrderedDict:
            own.append(V.Tuple(()) if cls is Counter else V.Known(factory))
        value = calls.call(it, V.Known(counting.STAND_FOR[cls]), (*own, inside), {})
        it.heap.written = before
        self.objects[number] = value
        return value

    def _set(
        self, it: Interpreter, names: Key | None, entries: Key, leaves: Iterator[int], *,
        emptied: bool,
    ) -> V.Value:
        """A set, with the dict of its items, or, in a program that keeps the order of sets, with
        what its table has in its slots."""
        number = len(self.objects)
        before = dict(it.heap.written)
        if not it.program.ordered or emptied:
            inside = self._build(it, entries, leaves)
            value = calls.call(it, V.Known(hashed_sets.with_table), (inside,), {})
            if not emptied:
                next(leaves)  # the layout
        else:
            self._numbered()
            items = self._rows(it, names, leaves)
            if names is not None:
                next(leaves)  # what a dict of the items holds
            slots = self._new_array(it, types.i64.name, (None,), next(leaves))
            value = calls.call(it, V.Known(set_order.entered), (items, slots), {})
            assert isinstance(value, V.Ref)
            inside = it.heap.contents[value.root]["table"]
            self.containers.append(inside.root)
            self.entered.dicts = True
            parts = [it.heap.contents[inside.root][n].root for n in set_order.PARTS]
            it.program.entered.extend(parts)
            self.tabled[inside.root] = {r: it.heap.contents[r] for r in parts}
        it.heap.written = before
        self.objects[number] = value
        return value

    def _sequence(
        self, it: Interpreter, cls: type, most: int | None, items: Key, leaves: Iterator[int]
    ) -> V.Value:
        """A deque or a bytearray, with the list of its items."""
        number, place = self._numbered(), len(self.containers)
        self.containers.append(V.Root("object"))
        before = dict(it.heap.written)
        inside = self._build(it, items, leaves)
        value = calls.call(it, V.Known(ENTERED[cls]), (inside, V.Known(most)), {})
        it.heap.written = before  # what makes it writes nothing of the caller's
        assert isinstance(value, V.Ref)
        assert isinstance(inside, V.Ref)
        self.objects[number], self.containers[place] = value, value.root
        self.copied_items.add(inside.root)
        content = it.heap.contents[value.root]
        parts = [part.root for part in content.values() if isinstance(part, V.Ref)]
        it.program.entered.extend(parts)
        contents = {r: it.heap.contents[r] for r in (value.root, *parts)}
        self.standing[value.root] = value, contents
        return value

    def _rows(self, it: Interpreter, item: Key | None, leaves: Iterator[int]) -> V.Ref:
        """The list of a column of a dict."""
        if item is None:
            return it.new_ref("list", ())
        self.entered.texts |= columns.holds_texts(item)
        own = [next(leaves) for _ in range(columns.count_of(item))]
        return it.new_ref(
            "list", column_content.content(item, own, self._extent, self._param)
        )

    def _grown(self, it: Interpreter, item: Key, leaves: Iterator[int]) -> V.Value:
        """A list that entered as arrays."""
        own = [next(leaves) for _ in range(columns.count_of(item))]
        root = V.Root("list", None, None, self.flat.names[own[0]])
        value = V.Ref(root)
        self.objects.append(value)
        self.containers.append(root)
        content = column_content.content(item, own, self._extent, self._param)
        if self.asked.placed and columns.holds_lists(item):
            content = moving.placed(it, content)
        self.entered.texts |= columns.holds_texts(item)
        self.slots[root] = content.slots
        self.entered.nested |= columns.is_deep(item)
        self.inside[root] = growing.slots_inside(content.template)
        self.entered.lengths.append(len(self.flat.leaves[own[0]]))
        it.heap.new(root, content)
        return value

    def _extent(self, leaf: int, axis: int) -> Extent:
        """The symbol of an extent of a leaf."""
        name = self.flat.names[leaf]
        symbol = Symbol(f"{name if name.isidentifier() else f'a{leaf}'}{axis}")
        self.guards.hints[symbol] = self.flat.leaves[leaf].shape[axis]
        self.axes[symbol] = (leaf, axis)
        return dims.of(symbol)

    def _container(self, it: Interpreter, key: Key, leaves: Iterator[int]) -> V.Value:
        kind = "object" if key[0] == "record" else key[0]
        cls = key[1] if key[0] == "record" else None
        root = V.Root(kind)
        value = V.Ref(root, cls)
        self.objects.append(value)
        self.containers.append(root)
        children = key[{"list": 1, "set": 1, "dict": 2}.get(key[0], 3):]
        parts = tuple(self._build(it, c, leaves) for c in children)
        names = key[1] if key[0] == "dict" else key[2] if key[0] == "record" else None
        content = parts if names is None else dict(zip(names, parts, strict=True))
        it.heap.new(root, content)
        if cls in generator_classes():
            for part in parts:
                (extent,) = it.tensor(part).shape  # it says which kind of generator this is
                self.guards.equal(extent, dims.evaluate(extent, self.guards.hints))
        return value
