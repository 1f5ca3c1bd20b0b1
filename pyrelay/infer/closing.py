"""The end of a specialisation: what the interpreted call gives, as flat results and their tree.

In: an `Attempt` whose call was interpreted, its value, the heap before. Out: `Specialised`: the
module, with equal extents put in place of each other; the tree of the result; what was written of
the caller's arrays, containers and nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.argument_uses import leaves_read, updated_by_parts, what_is_written
from pyrelay.infer.arrays import identity, memory_order
from pyrelay.infer.containers import growing, lists_in_nodes
from pyrelay.infer.containers.code_points import from_items
from pyrelay.infer.containers.columns import ALL_APART
from pyrelay.infer.containers.grown_trees import grown_tree
from pyrelay.infer.containers.sets import KnownItems
from pyrelay.infer.equal_extents import conditions, substituted
from pyrelay.infer.flow.effects import MADE
from pyrelay.infer.flow.handling import settle
from pyrelay.infer.heap import Heap
from pyrelay.infer.in_python.counting import Counts, Defaults, Ordered
from pyrelay.infer.in_python.hashed_sets import Members
from pyrelay.infer.in_python.nested import GIVEN_CLASSES
from pyrelay.infer.in_python.set_order import OrderedMembers
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.kinds import told_apart
from pyrelay.infer.layout import content_children, pools_of
from pyrelay.infer.names.containers import given_back
from pyrelay.infer.nodes import pool_tables
from pyrelay.infer.result_trees import (
    ArgumentResult,
    CaseResult,
    ConstantResult,
    ContainerResult,
    FieldResult,
    InnerResult,
    ItemResult,
    LeafResult,
    NodeResult,
    PoolResult,
    RaisedResult,
    ResultTree,
    SharedResult,
    TreeResult,
    ViewResult,
    ViewStepResult,
    of_list,
)
from pyrelay.infer.short_arrays import take_as_short
from pyrelay.infer.slots import Placed, places_of
from pyrelay.infer.specialised import (
    Binding,
    ContainerChange,
    Specialised,
    TreeChange,
)
from pyrelay.infer.wide import WHOLE
from pyrelay.ir import types
from pyrelay.ir.build import constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Function, Module
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ops.shape import inverse
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.attempt import Attempt


class NeedsApart(Exception):
    """Which list of a list's is which matters: they must be structures of their items."""


@dataclass
class Close:
    """Turns the interpreted call into a module: results, mutations, substituted extents."""

    attempt: Attempt
    it: Interpreter
    before: Heap
    atoms: list[Atom] = field(default_factory=list)
    keys: dict[V.Root, int] = field(default_factory=dict)
    columns: dict[V.Root, Any] = field(default_factory=dict)  # of pools of new nodes
    schemas: dict[V.Root, Any] = field(default_factory=dict)
    held: dict[V.Root, Any] = field(default_factory=dict)
    arrays: dict[Any, LeafResult | ViewResult] = field(default_factory=dict)
    #: Arguments, and arrays that the result has; those of them that may be others.
    known: dict[V.Root, None] = field(default_factory=dict)
    chosen: dict[V.Root, None] = field(default_factory=dict)
    objects: dict[V.Root, ResultTree] = field(default_factory=dict)  # arguments; those met so far
    certain: set[V.Root] = field(default_factory=set)  # those that the result surely has
    mentions: Counter[V.Root] = field(default_factory=Counter)
    reached: set[V.Root] = field(default_factory=set)  # containers and pools of the result
    returning: bool = False

    def finish(self, value: V.Value, raised: V.Value) -> Specialised:
        it, attempt = self.it, self.attempt
        settle(it)
        self._know(*attempt.roots.values())
        containers = [V.Ref(r) for r in attempt.containers]
        self.objects.update(
            (r, ContainerResult(k)) for k, r in enumerate(attempt.containers)
            if r not in attempt.copied_items
        )
        self._count_mentions([value, *containers])
        for root in (*attempt.roots.values(), *attempt.containers):
            it.settle(root)  # what was written to it under other names
        changed = set(it.heap.changed_since(self.before))
        changed.update(r for r in it.heap.written if r not in self.before.contents)  # captured ones
        mutated: dict[int, int] = {}
        changes: list[ContainerChange] = []
        turned = [k for k, root in attempt.roots.items() if k in attempt.turned and root in changed]
        copied = [
            k for k in turned if not updated_by_parts(it, attempt, it.content(attempt.roots[k]))
        ]
        if copied:
            raise needs.NeedsCopies(frozenset(copied))
        for leaf, root in attempt.roots.items():
            if root in changed:
                mutated[leaf] = self._result(self._as_it_lies(leaf, it.content(root)))
        if attempt.given_changed:
            raise NeedsApart  # what they had when the others entered is not known
        for number, root in enumerate(attempt.containers):
            if root in attempt.copied_items:
                pass  # nobody has it
            elif root in attempt.standing:
                changes += self._sequence_change(number, *attempt.standing[root])
            elif root in attempt.given:
                changes += self._nested_change(number, root)
            elif root in attempt.tabled:
                if self._is_changed(root):
                    changes.append(self._table_change(number, root))
            elif root in changed and (
                root in it.heap.written or not isinstance(it.heap.contents[root], V.Growing)
            ):
                changes.append(self._change(number, root))
        trees = tuple(self._assigned())
        # Behind what is changed, as it is put together: an object in both is made for the changes.
        plain = {r: c.plain for r, c in it.heap.contents.items() if isinstance(c, V.Varied)}
        it.heap.contents.update(plain)  # the result is read where nothing is raised
        # Of a result, what may be a view of an argument is a copy: recursions over trees that may
        # give either are laid out level by level. What is stored keeps to its memory.
        self.returning = True
        tree = self._outcome(value, raised)
        body = it.builder.block(self.atoms)
        params = (*attempt.params, *it.program.seeds)
        symbols = [s for p in params for s in types.type_symbols(p.type)]  # type: ignore[arg-type]
        entry = Function("main", params, body, tuple(dict.fromkeys(symbols)))
        name = it.program.unique("main")
        functions = {**it.program.functions, name: replace(entry, name=name)}
        if attempt.asked.near:
            take_as_short(functions, attempt.guards)
        with_axes = [bool(getattr(p.type, "shape", ())) for p in attempt.params]
        position = {leaf: k for k, leaf in enumerate(attempt.parameters)}
        stored = {position[leaf]: result for leaf, result in mutated.items()}
        module = Module(substituted(functions, attempt.guards), name, frozenset(stored))
        binding = Binding(
            tuple(attempt.hidden), {k: attempt.flat.leaves[k] for k in attempt.asked.known},
            tuple(attempt.parameters), tree, mutated, tuple(changes),
            tuple(attempt.guards.extents), tuple(attempt.guards.names.values()),
            tuple(attempt.flat.names), attempt.axes, attempt.columns, trees, attempt.flat.apart,
            attempt.own_families(),
            what_is_written(it, attempt, mutated, changes, trees), attempt.guards.identity, False,
            len(body.results), {k: r for k, r in stored.items() if with_axes[k]}, any(with_axes),
            {k: lies for k, lies in attempt.layouts.items() if k not in attempt.turned},
            leaves_read(attempt, module.main) if mutated else (), attempt.turned,
        )
        return Specialised(module, binding, conditions(attempt.guards))

    def _as_it_lies(self, leaf: int, content: Atom) -> Atom:
        """What an argument contains after the program, with its axes as they entered."""
        order = self.attempt.turned.get(leaf)
        if order is None:
            return content
        atom: Atom = self.it.builder.call(OPS["transpose"], content, axes=order).atom
        return atom

    def _assigned(self) -> Iterator[TreeChange]:
        """What is assigned to the fields of nodes that the caller has."""
        for family, plan in self.attempt.asked.plans.items():
            pool = self.it.pools[family]
            if plan.assigned and pool.root in self.attempt.pools:
                fields = tuple(sorted(plan.assigned))
                yield TreeChange(fields, self._pool(pool))

    def _result(self, atom: Atom) -> int:
        self.atoms.append(atom)
        return len(self.atoms) - 1

    def _change(self, number: int, root: V.Root) -> ContainerChange:
        content = self.it.heap.contents[root]
        if isinstance(content, V.Varied):
            return ContainerChange(number, "varied", (), (self._varied(content.value),))
        content = self.it.content(root)
        if isinstance(content, V.Growing):
            kind, extra = "items", tuple[ResultTree, ...]()
            if growing.inner_lists(content.template) and root in self.attempt.slots:
                kind = "lists"
                if growing.slots_inside(content.template) != self.attempt.inside[root]:
                    raise NeedsApart  # a list in a list in it may be another one
                if places_of(content.slots) is not self.attempt.slots[root]:
                    kind = "placed lists"
                    extra = (self._items(self._places(content.slots)),)
            elif growing.inner_lists(content.template):
                self._refuse_moved(root)
            items = grown_tree(self.it, content, self._result, self._pool)
            return ContainerChange(number, kind, (), (items, *extra))
        kind = "record" if root.kind == "object" else root.kind
        if isinstance(content, dict):
            parts = tuple(self._tree(v) for v in content.values())
            return ContainerChange(number, kind, tuple(content), parts)
        return ContainerChange(number, kind, (), tuple(self._tree(v) for v in content))

    def _places(self, slots: Any) -> V.Root:
        """The list that says which of the caller's lists is where."""
        if isinstance(slots, Placed):
            return slots.places
        if self.it.program.moves and not self.attempt.asked.placed:
            raise needs.NeedsPlaces
        raise NeedsApart

    def _refuse_moved(self, root: V.Root) -> None:
        """Refuse that lists of the caller's, which entered one by one, changed places."""
        before, short = self.before.contents.get(root), self.attempt.flat.apart < ALL_APART
        if isinstance(before, tuple) and any(map(V.is_list, before)) and (
            short or self.it.program.moves
        ):
            raise self.it.failure(
                errors.UnsupportedOperationError,
                "lists in a list of the caller's change places, and these are no lists of numbers "
                "of one type",
                span=self.it.heap.written.get(root),
                notes=("after the call each would have to be the very list that it was",),
                hints=("let a list of your own have them: rows = [row[:] for row in rows]",),
            )

    def _is_changed(self, root: V.Root) -> bool:
        """Whether a dict that entered as a table has other lists now, or other items in them."""
        contents, before = self.it.heap.contents, self.attempt.tabled[root]
        own = contents[root]
        now = {v.root for v in own.values() if isinstance(v, V.Ref)} if isinstance(own, dict) else (
            before.keys()
        )
        return not before.keys() <= now or any(contents[r] is not c for r, c in before.items())

    def _table_change(self, number: int, root: V.Root) -> ContainerChange:
        """What a dict that entered as a table contains after the program."""
        parts = self.it.content(root)
        if "held" not in parts:  # of a set that keeps its order
            children = [self._items(parts[name].root) for name in ("names", "alive")]
            return ContainerChange(number, "table", (), tuple(children))
        held = parts["held"].root
        before = self.attempt.tabled[root].get(held)
        if isinstance(before, V.Growing) and growing.inner_lists(before.template):
            after = self.it.content(held)
            if not isinstance(after, V.Growing) or places_of(after.slots) is not before.slots or (
                growing.slots_inside(after.template) != growing.slots_inside(before.template)
            ):
                raise NeedsApart  # a list in it may be another one
        children = [self._items(parts[name].root) for name in ("names", "held", "alive")]
        return ContainerChange(number, "table", (), tuple(children))

    def _sequence_change(
        self, number: int, value: V.Ref, entered: Mapping[V.Root, Any]
    ) -> Iterator[ContainerChange]:
        """What a deque or a bytearray contains after the program, if that changed: what another one
        has, or lists with other items."""
        contents = self.it.heap.contents
        changed = [root for root, content in entered.items() if contents[root] is not content]
        if not changed:
            return
        listed = any(
            isinstance(content, V.Growing) and growing.inner_lists(content.template)
            for content in map(self.it.content, entered)
        )
        if listed and self.attempt.copied_items.issuperset(changed):
            yield self._change(number + 1, changed[0])
            return
        if listed:
            raise self.it.failure(
                errors.UnsupportedOperationError,
                "a deque of the caller's that has lists in it is changed",
                notes=("after the call each would have to be the very list that it was",),
                hints=("let a deque of your own have them: deque(lists)",),
            )
        given = given_back(self.it, value)
        assert given is not None
        made, arguments = given
        tree = NodeResult("call", made, (), tuple(map(self._tree, arguments)))
        yield ContainerChange(number, "sequence", (), (tree,))

    def _nested_change(self, number: int, root: V.Root) -> Iterator[ContainerChange]:
        """What a dict of dicts, or of sets, or a list of sets contains after the program, if that
        changed: what those that entered have, and, if these are not all that it has, what it has.
        """
        it, before = self.it, self.attempt.tabled[root]
        outer = self._is_changed(root)
        inner = [r for r in self.attempt.given[root]
                 if it.heap.contents[r] is not self.attempt.given_rows[r]]
        if not (outer or inner):
            return
        parts = [root]
        if root not in before:  # a dict
            content = it.content(root)
            parts = [content[name].root for name in ("held", "names", "alive")]
        entered = before[parts[0]]
        children: list[ResultTree] = [grown_tree(it, entered, self._result, self._pool)]
        if outer:
            children += map(self._items, parts)
        yield ContainerChange(number, "nested", (), tuple(children))

    def _items(self, root: V.Root) -> ResultTree:
        """What a list contains, as a list of its own."""
        content = self.it.content(root)
        if isinstance(content, V.Growing):
            return grown_tree(self.it, content, self._result, self._pool)
        return NodeResult("list", None, (), tuple(map(self._tree, content)))

    def _tree(self, value: V.Value) -> ResultTree:
        it = self.it
        match value:
            case V.Known(v):
                return ConstantResult(v)
            case V.Scalar(kinds=kinds) if kinds:
                return self._tree(told_apart(it, value))
            case V.Scalar(ty):
                return LeafResult(self._result(it.atom(value)), ty)
            case V.Natural(bits):
                leaf = LeafResult(self._result(bits), WHOLE)
                return NodeResult("call", int, (), (leaf,))
            case V.ArrayRef():
                return self._array(value)
            case V.Tuple(items, cls):
                return NodeResult("tuple", cls, (), tuple(map(self._tree, items)))
            case V.OpenTuple(own):
                return NodeResult("call", tuple, (), (self._items(own.root),))
            case V.Text(function, (V.Ref(root),)) if function is from_items:
                return NodeResult("call", function, (), (self._items(root),))
            case V.Text(function, args):
                return NodeResult("call", function, (), tuple(map(self._tree, args)))
            case V.Raised():
                return self._outcome(V.NONE, value)
            case V.Ref(root, cls):
                return self._container(root, cls)
            case V.Data() | V.Union() if V.node_of(value) is not None:
                return self._node(value)
            case V.Union(tag, cases):
                index = self._result(tag)
                return CaseResult(index, tuple(self._case(c) for c in cases))
            case V.Range(a, b, c):
                return NodeResult("range", None, (), tuple(map(self._tree, (a, b, c))))
        span = value.function.span if isinstance(value, V.Closure) else None
        raise it.failure(
            errors.UnsupportedOperationError, span=span,
            message=f"a compiled function cannot return {V.describe(value)} to Python",
            hints=("call it inside the function and return what it gives",),
        )

    def _outcome(self, value: V.Value, raised: V.Value) -> ResultTree:
        """The result, or the exception that is raised instead."""
        match raised:
            case V.Raised(cls, args, keywords, span):
                names, values = tuple(k for k, _ in keywords), tuple(v for _, v in keywords)
                parts = tuple(map(self._tree, (*args, *values)))
                return RaisedResult(cls, parts, names, span)
            case V.Union(tag, cases):
                certain, found = set(self.certain), []
                for case in cases:
                    self.certain = set(certain)
                    found.append(self._outcome(value, case))
                return CaseResult(self._result(tag), tuple(found))
        return self._tree(value)

    def _array(self, value: V.ArrayRef) -> ResultTree:
        """An argument itself, a view of one, or a new array; each array of the program once."""
        root, view = value.root, value.view
        if root.leaf is None and not value.type.shape:  # the program gives a number
            key = self.keys.setdefault(root, len(self.keys))
            return NodeResult("call", np.array, (), (self._certain(root, view),), key)
        if root in self.it.program.listed and not view:
            key = self.keys.setdefault(root, len(self.keys))
            return NodeResult("call", of_list, (), (self._certain(root, view),), key)
        others = [] if root.leaf is not None else self._others(root)
        if not others:
            return self._certain(root, view)
        if not identity.told_apart(root, others):
            if self.it.program.exact < (1 if self.returning else 2):
                raise needs.NeedsIdentity(root)
            return self._certain(root, view)
        cases = [self._certain(r, view) for r in (root, *others)]
        return CaseResult(self._which(root, others), tuple(cases))  # arguments come first

    def _others(self, root: V.Root) -> list[V.Root]:
        """Arguments, and arrays that the result has already, which an array may be."""
        among = self.known if root.is_chosen else self.chosen
        return [r for r in among if r is not root and r.may_alias(root)]

    def _know(self, *roots: V.Root) -> None:
        self.known.update(dict.fromkeys(roots))
        self.chosen.update(dict.fromkeys(r for r in roots if r.is_chosen))

    def _certain(self, root: V.Root, view: tuple[V.ViewStep, ...]) -> ResultTree:
        """An array whose root is known to be no older one."""
        if root.leaf is None and (not view or self.mentions[root] == 1):
            key = (root, view)
            if key not in self.arrays:
                self.arrays[key] = self._new(root, view)
                if not view:
                    self._know(root)
            return self.arrays[key]
        if root.leaf is not None:
            base: ArgumentResult | LeafResult = ArgumentResult(root.leaf)
        else:
            whole = self._certain(root, ())
            assert isinstance(whole, LeafResult)  # what is mentioned again is not turned
            base = whole
        return ViewResult(base, tuple(map(self._step, view))) if view else base

    def _new(self, root: V.Root, view: tuple[V.ViewStep, ...]) -> LeafResult | ViewResult:
        """A new array, in the order in which NumPy has it in memory where that costs nothing."""
        it = self.it
        atom = it.atom(V.ArrayRef(root, view, it.content(root).type))
        assert isinstance(atom.type, TensorType)
        # What is mentioned again, or may be, must be the same object, or is seen by views.
        lone = self.mentions[root] == 1 and not any(r.is_chosen for r in self.mentions)
        order = memory_order.kept(it, V.ArrayRef(root, view, atom.type)) if lone else None
        if order is None:
            return LeafResult(self._result(atom), atom.type)
        turned = it.builder.call(OPS["transpose"], atom, axes=order)
        leaf = LeafResult(self._result(turned.atom), turned.type)
        return ViewResult(leaf, (ViewStepResult("transpose", (), (("axes", inverse(order)),)),))

    def _node(self, value: V.Value) -> ResultTree:
        """A node of an argument, or of a tree whose columns the program made."""
        it, parts = self.it, V.node_of(value)
        assert parts is not None
        kind, row = (LeafResult(self._result(it.atom(v)), types.PY_INT) for v in parts[2:])
        return TreeResult(self._pool(parts[0]), kind, row)

    def _pool(self, pool: V.Ref) -> PoolResult:
        root = pool.root
        if self.returning and not GIVEN_CLASSES.isdisjoint(pool.cls.classes):
            raise NeedsApart  # the caller's own dict or set
        if root in self.attempt.pools and not pool_tables.is_growing(self.it, pool):
            return PoolResult(-1, self.attempt.pools.index(root), None, ())
        known = self.attempt.pools.index(root) if root in self.attempt.pools else None
        if root not in self.keys:
            self.keys[root] = len(self.keys)
            schema, columns = lists_in_nodes.closed(self.it, pool)
            self.columns[root] = tuple((n, self._array(c)) for n, c in columns.items())
            self.schemas[root] = schema
            self.held[root] = tuple(self._held(pool))
        return PoolResult(
            self.keys[root], known, self.schemas[root], self.columns[root], self.held[root]
        )

    def _held(self, pool: V.Ref) -> Iterator[tuple[int, LeafResult, str, int]]:
        """The lists of the caller's in fields of a pool's nodes (see `PoolResult`)."""
        for number, root in enumerate(self.attempt.containers):
            part = self.it.heap.contents[root]
            field = lists_in_nodes.field_of(self.it, part) if isinstance(part, V.Part) else None
            if field is not None and field[0].root is pool.root:
                row = LeafResult(self._result(self.it.atom(part.position)), types.PY_INT)
                yield field[1], row, field[2], number

    def _step(self, step: V.ViewStep) -> ViewStepResult:
        def number(extent: Extent) -> int | LeafResult:
            if isinstance(extent, int):
                return extent
            return LeafResult(self._result(self.it.builder.extent(extent).atom), types.PY_INT)

        attrs = {
            k: tuple(map(number, v)) if k in ("starts", "sizes", "shape") else v
            for k, v in step.attrs
        }
        positions = tuple(LeafResult(self._result(a), types.PY_INT) for a in step.atoms)
        return ViewStepResult(step.kind, positions, tuple(attrs.items()))

    def _count_mentions(self, values: Sequence[V.Value]) -> None:
        """How many references to each array the result and the caller's containers hold, and which
        containers and pools of nodes are there."""
        pending, seen = list(values), self.reached
        while pending:
            for value in V.leaves_of((pending.pop(),)):
                if isinstance(value, V.ArrayRef):
                    self.mentions[value.root] += 1
                elif isinstance(value, V.Data):
                    seen.add(value.pool.root)
                elif isinstance(value, V.Ref) and value.root not in seen:
                    seen.add(value.root)
                    content = self.it.heap.contents[value.root]
                    pending.extend(content_children(content))
                    if isinstance(content, V.Growing):
                        seen.update(pool.root for pool in pools_of(content.template))

    def _case(self, case: V.Value) -> ResultTree:
        """One case of a union: what only this case has may have to be made by others too."""
        before = set(self.certain)
        tree = self._tree(case)
        self.certain = before
        return tree

    def _either(self, root: V.Root, cls: Any, entries: V.Union) -> ResultTree:
        """A set, a Counter or the like that may be one of the caller's, or a new one."""
        containers = self.attempt.containers
        given = given_back(self.it, V.Ref(root, cls))
        assert given is not None
        made, arguments = given
        key = self.keys.setdefault(root, len(self.keys))

        def tree(case: V.Value) -> ResultTree:
            if isinstance(case, V.Ref) and case.root in containers:
                return ContainerResult(containers.index(case.root))
            parts = (case if each is entries else each for each in arguments)
            return NodeResult("call", made, (), tuple(map(self._case, parts)), key)

        return CaseResult(self._result(entries.tag), tuple(map(tree, entries.cases)))

    def _container(self, root: V.Root, cls: Any) -> ResultTree:
        if root in self.attempt.containers and root not in self.attempt.copied_items:
            return ContainerResult(self.attempt.containers.index(root))
        if cls in (Counts, Defaults, Members, Ordered, OrderedMembers):
            of_set = issubclass(cls, Members)
            entries = self.it.content(root)["table" if of_set else "entries"]
            if isinstance(entries, V.Union):
                return self._either(root, cls, entries)
            if entries.root in self.attempt.containers:
                return ContainerResult(self.attempt.containers.index(entries.root))
        held = self.it.heap.contents[root]
        if isinstance(held, V.Part) and any(held.owner in t for t in self.attempt.tabled.values()):
            raise NeedsApart  # the caller's own list
        if isinstance(held, V.Part) and held.owner in self.attempt.slots:
            slots = places_of(self.it.content(held.owner).slots)
            if slots is not self.attempt.slots[held.owner]:
                self._places(slots)  # by which the caller's list has it there when this is read
                self.it.content(root)  # raises AliasError if it may be elsewhere
            return InnerResult(self.attempt.containers.index(held.owner), self._position(held))
        outer = self.it.heap.contents[held.owner] if isinstance(held, V.Part) else None
        if isinstance(outer, V.Part) and outer.owner in self.attempt.slots:
            self.it.content(root)  # raises AliasError if it may be elsewhere
            return ItemResult(self._container(held.owner, None), self._position(held), ())
        inside = self._inside(root, held) if isinstance(held, V.Part) else None
        if inside is not None:
            return inside
        if root.kind in ("generator", "iterator"):
            raise self.it.failure(
                errors.UnsupportedOperationError,
                f"a compiled function cannot return {V.describe(V.Ref(root))} to Python",
                hints=("return its items: list(...)",),
            )
        if root not in self.objects:
            self.objects[root] = self._object(root, cls)
        elif root in self.certain:
            return SharedResult(self.keys[root])
        return self.objects[root]

    def _position(self, held: V.Part) -> LeafResult:
        """The position of a list in the one that it lives in."""
        return LeafResult(self._result(self.it.atom(held.position)), types.PY_INT)

    def _inside(self, root: V.Root, held: V.Part) -> ResultTree | None:
        """A list that lives in another one, or in a node, if the result has that; else None."""
        field = lists_in_nodes.field_of(self.it, held)
        if (held.owner if field is None else field[0].root) not in self.reached:
            return None
        self.it.content(root)  # raises AliasError if it may be elsewhere
        position = self._position(held)
        if field is None:
            return ItemResult(self._container(held.owner, None), position, held.path)
        pool, kind, name = field
        of_kind = LeafResult(self._result(constant(kind)), types.PY_INT)
        return FieldResult(TreeResult(self._pool(pool), of_kind, position), name)

    def _object(self, root: V.Root, cls: Any) -> ResultTree:
        """A container: an older one of the result or a new one, where a branch or loop chose."""
        others = [r for r in self.objects if r.may_alias(root)]
        if not others or root.kind not in identity.CONTAINERS:
            return self._made(root, cls)
        if not all(map(identity.numbered, (root, *others))):
            if self.it.program.exact:
                return self._made(root, cls)
            raise needs.NeedsIdentity(root)
        chosen = self._which(root, others)
        before = set(self.certain)
        made = self._made(root, cls)
        self.certain = before
        known = (
            SharedResult(self.keys[r]) if r in self.certain else self.objects[r] for r in others
        )
        return CaseResult(chosen, (made, *known))

    def _which(self, root: V.Root, others: Sequence[V.Root]) -> int:
        """The result that says which of the others an object is, from 1; 0 for none of them."""
        chosen: V.Value = V.Known(0)
        for number in range(len(others), 0, -1):  # the first one last: what is that is no other
            same = identity.same_object(self.it, root, others[number - 1])
            chosen = self.it.call("where", same, V.Known(number), chosen)
        return self._result(self.it.atom(chosen))

    def _made(self, root: V.Root, cls: Any) -> ResultTree:
        """A container of the program, which is no other one of its result."""
        held = self.it.heap.contents[root]
        key = self.keys.setdefault(root, len(self.keys))
        if root in self.certain:
            return SharedResult(key)
        self.certain.add(root)
        if isinstance(held, V.Varied):
            return self._varied(held.value, root.kind, cls, key)
        given = given_back(self.it, V.Ref(root, cls))
        if given is not None:
            made, arguments = given
            return NodeResult("call", made, (), tuple(map(self._tree, arguments)), key)
        content = self.it.content(root)
        if isinstance(content, V.Growing):
            return grown_tree(self.it, content, self._result, self._pool, key)
        kind = "record" if root.kind == "object" else root.kind
        if isinstance(content, dict):
            own = {name: v for name, v in content.items() if name != MADE}
            parts = tuple(map(self._tree, own.values()))
            return NodeResult(kind, cls, tuple(own), parts, key)
        if isinstance(content, KnownItems):
            made = content.anew()
            parts = tuple(self._tree(V.Known(item)) for item in made.args[0])
            if made.func is not set:
                of = NodeResult("list", None, (), parts)
                return NodeResult("call", made.func, (), (of,), key)
            return NodeResult("set", None, (), parts, key)
        return NodeResult(kind, cls, (), tuple(self._tree(v) for v in content), key)

    def _varied(
        self, content: V.Value, kind: str = "", cls: Any = None, key: int = -1
    ) -> ResultTree:
        """A container whose structure depends on whether the program raised.

        Without a kind, its content alone: a list or a dict.
        """
        if isinstance(content, V.Union):
            index, certain, found = self._result(content.tag), set(self.certain), []
            for case in content.cases:
                found.append(self._varied(case, kind, cls, key))
                self.certain = set(certain)
            return CaseResult(index, tuple(found))
        assert isinstance(content, V.Tuple)
        names = content.cls.names  # type: ignore[union-attr]
        plain = kind or ("list" if names is None else "dict")
        parts = tuple(map(self._tree, content.items))
        return NodeResult("record" if kind == "object" else plain, cls, names or (), parts, key)
