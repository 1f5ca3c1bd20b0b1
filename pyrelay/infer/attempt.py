"""One attempt at a program: arguments enter, the call is interpreted, the module is closed.

In: what to call, Python arguments, and what earlier attempts asked for (asked.py). Out: the typed
program with its binding; or an exception that asks for more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from pyrelay.infer import calls, needs, own_arrays
from pyrelay.infer import values as V
from pyrelay.infer.arguments import Arguments
from pyrelay.infer.arrays.layouts import layout_of
from pyrelay.infer.asked import NeedsFewer, NeedsLayouts, NeedsWrites
from pyrelay.infer.closing import Close
from pyrelay.infer.containers import (
    open_layouts,
)
from pyrelay.infer.containers.item_shapes import shapes_of_items
from pyrelay.infer.flow.handling import with_raised
from pyrelay.infer.guards import NameGuard
from pyrelay.infer.heap import Heap, Items
from pyrelay.infer.in_python.nested import nested_for
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import containers as names_containers
from pyrelay.infer.nodes.annotations import are_related, is_of_many, is_record_class
from pyrelay.infer.nodes.datatypes import (
    Families,
    Family,
    is_anonymous,
)
from pyrelay.infer.program import Place, Program
from pyrelay.infer.specialised import HiddenArgument, Specialised
from pyrelay.infer.structure import Key, flatten
from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Function, Let, PyCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass
class Attempt(Arguments):
    """One try at a specialisation, with what earlier ones asked for."""

    open_keys: set[Let] = field(default_factory=set)  # see Program
    outgrown: set[Let] = field(default_factory=set)
    keys_wanted: bool = False
    of_nodes: set[Let] = field(default_factory=set)
    ranges: set[Let] = field(default_factory=set)
    mixed: set[Let] = field(default_factory=set)
    sequences_wanted: bool = False  # see open_layouts.Sequences
    hidden: list[HiddenArgument] = field(default_factory=list)
    places: set[tuple[str, int, str]] = field(default_factory=set)  # where those were found
    read: set[int] = field(default_factory=set)  # ids of the objects that the program read
    #: Parameters of arrays of pyrelay's own that some path reads first, by their ids.
    read_in_paths: dict[int, Var] = field(default_factory=dict)
    checks_shapes: bool = False
    deepens: bool = False  # lists in lists hold lists, or would
    lent: int = 0  # see Program
    shared_at: set[Place] = field(default_factory=set)
    own: set[Function] = field(default_factory=set)  # see Program
    outermost: Heap | None = None  # of what is outside all branches and loops

    def listed(self) -> list[list[type]]:
        """The user's classes of objects in lists that are no nodes of a data type yet.

        Those with a base class in common stand in one list, or could.
        """
        none = self.outermost is None or self.asked.unfolds
        found = set() if none else self.outermost.items.classes  # type: ignore[union-attr]
        groups: list[list[type]] = []
        for cls in sorted(found, key=repr):
            if not is_record_class(cls) or self.asked.families.of(cls) is not None:
                continue
            group = next((g for g in groups if are_related(cls, g[0])), None)
            if group is None:
                groups.append([cls])
            else:
                group.append(cls)
        for met in sorted(self.outermost.items.together if found else (), key=repr):  # type: ignore[union-attr]
            joined = [g for g in groups if not met.isdisjoint(g)]
            if len(joined) > 1:
                groups = [g for g in groups if g not in joined] + [[c for g in joined for c in g]]
        return groups

    def nested(self) -> dict[Let, type]:
        """What makes dicts, sets and deques that are items of lists, and what these are then."""
        found = set() if self.outermost is None else self.outermost.items.made
        tables = {
            made: nested_for[cls] for cls, made in found
            if cls in nested_for and made not in self.asked.nested
            and (made in self.open_keys or not isinstance(cls, str))
        }
        return {**tables, **dict.fromkeys(self.outgrown, nested_for["dict"])}

    def hollow(self) -> dict[Let, type]:
        """What makes dicts and sets without entries that are items of lists, to which keys may be
        given that no attempt has come to, and what these are then."""
        found = set() if self.outermost is None else self.outermost.items.made
        return {
            made: nested_for[cls] for cls, made in found
            if made not in self.asked.nested and isinstance(made.rhs, PyCall) and (
                (cls, made.rhs.kind, len(made.rhs.args)) in _HOLLOW
            )
        }

    def keyed(self) -> frozenset[Let]:
        """What makes dicts of known keys that are items of lists, which may be nodes with a field
        for each key (in_python/entries.py)."""
        return frozenset(() if self.outermost is None else self.outermost.items.keyed)

    def fixed(self) -> frozenset[Let]:
        """What makes lists of known length that are items of others, which may be nodes with a
        field for each item (in_python/fixed_lists.py)."""
        return frozenset(() if self.outermost is None else self.outermost.items.fixed)

    def _would_lend(self) -> bool:
        """Whether lists that are items twice would be copies (`Program.lends`)."""
        return self.outermost is not None and self.outermost.items.would_lend

    def own_families(self) -> Families | None:
        """The data types of this program alone, if objects of the caller are nodes of any, or of
        none though they are nodes elsewhere."""
        if self.asked.families.apart:
            return self.asked.families
        own = self.asked.families.entered.keys()
        entered = (cls for packed in self.flat.pools for cls in packed.schema.classes)
        return self.asked.families if any(cls in own for cls in entered) else None

    def _narrow(self) -> bool:
        """Whether an argument is of a type that does not hold Python's numbers."""
        dtypes = (getattr(leaf, "dtype", None) for leaf in self.flat.leaves)
        return any(getattr(d, "itemsize", 8) < 8 and d.kind != "b" for d in dtypes if d is not None)

    def run(
        self, make_callee: Any, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Specialised:
        """Interpret the call and close the module."""
        asked = self.asked
        program = Program(
            self.parse, self.guards, objects=self.objects, exact=asked.exact, chooses=asked.chooses,
            tells_new=asked.tells_new, unrolled=asked.unrolled, families=asked.families,
            ahead=asked.ahead, effort=asked.effort, unfolds=asked.unfolds,
            nodes=asked.nodes, plans=asked.plans, tables=asked.tables, open_keys=self.open_keys,
            class_attributes=asked.class_attributes,
            remembers=asked.remembers, exact_keys=asked.exact_keys,
            lends=asked.lends, lent_at=asked.lent_at,
            follows_ops=asked.raises > 1, stretches=asked.stretches,
            of_nodes=self.of_nodes, ranges=self.ranges, mixed=self.mixed,
            containers=self.containers,
            keys_known=asked.keys_known,
            counts_known=asked.counts_known, texts_known=asked.texts_known, nested=asked.nested,
            begins=asked.begins,
            keyed=asked.keyed, unkeyed=asked.unkeyed, compares=asked.compares,
            gathered=asked.gathered, counted=asked.counted,
            ordered=asked.ordered, wide=asked.wide,
            own=None if asked.own is None else set(asked.own),
        )
        sequences = open_layouts.Sequences(
            bool(asked.sequences), tried=asked.sequences is not None
        )
        try:
            with shapes_of_items(asked.ragged, asked.deep) as shapes, (
                open_layouts.sequences_of_run_time_length(sequences)
            ):
                made = self._run(program, make_callee, args, keywords)
        except Exception as ended:  # which may come of what it did without
            found = program.lacking.found
            if found is None:
                raise
            if not found.needs and ended is not found and not isinstance(ended, NeedsWrites):
                # of arrays alone nothing comes but a program that does not have them
                asked.note_captures(found.captures)
                raise
        finally:
            self.entered.ragged |= shapes.wanted
            self.deepens = shapes.deeper
            self.entered.deep |= shapes.deeper
            self.checks_shapes = program.checks_shapes or shapes.checked
            self.lent = max(program.lent, self._would_lend())
            self.shared_at, self.own = program.shared_at, program.own or set()
            self.keys_wanted = program.keys_wanted
            self.sequences_wanted = sequences.wanted
            self.entered.open |= program.opens
            self.entered.counts |= program.counts_wanted
            self.entered.begins |= program.begins_wanted
            self.entered.fixed |= bool(self.fixed() or self.hollow())
            self.entered.objects |= any(map(_is_of_user, asked.plans))
            self.entered.texts_read |= program.texts_read
            self.outgrown = program.outgrown
        lacking = program.lacking.found
        if lacking is not None:
            raise lacking
        return made

    def _run(
        self, program: Program, make_callee: Any, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Specialised:
        heap = Heap(items=Items(lends=program.lends))
        it, asked = Interpreter(program, Builder(), heap, params=self.params), self.asked
        program.layouts = self.layouts
        program.new_leaf, self.outermost = self._new_leaf, it.heap
        names = _argument_names(make_callee, len(args))
        pairs = [*zip(args, names, strict=True), *((v, k) for k, v in keywords.items())]
        everything = self.imported(it, flatten(pairs, self.flat), 0)
        values, named = everything[: len(args)], dict(
            zip(keywords, everything[len(args):], strict=True)
        )
        self.new_pools(it, asked.plans)
        for need in asked.captured:
            taken = self._new_leaf(it, need.value, need.source)
            number = self.flat.seen[id(need.value)]
            if id(need.value) in self.read_in_paths:  # what made an argument read it before
                self.objects[number] = taken
            program.captured.append(number)
        program.narrow = self._narrow()
        self.read.clear()
        for memo in asked.memos:
            program.memos[memo] = number = self._enter(memo, names_containers.table(it))
            program.captured.append(number)
        before = it.heap.copy()
        callee = make_callee if isinstance(make_callee, V.Value.__args__) else V.Known(make_callee)
        value: V.Value = V.NONE
        raised: V.Value = V.NONE
        try:
            if asked.raises:
                value, raised = with_raised(
                    it, lambda: calls.call(it, callee, values, named), "caller"
                ).items
            else:
                value = calls.call(it, callee, values, named)
        except needs.Diverges:
            pass  # every path raises
        unread = asked.expected.keys() - self.read
        if unread:
            raise NeedsFewer(unread)
        self._lay(it)
        made = Close(self, it, before).finish(value, raised)
        late = program.raises_late or (program.raises_again and made.binding.writes)
        changes = made.binding.changes or made.binding.trees
        fails = program.fails_late or bool(program.fails_again and changes)
        wanted = 2 if fails else 1 if late else 0
        if wanted > asked.raises:
            raise NeedsWrites(made, wanted)
        return made

    def _lay(self, it: Interpreter) -> None:
        """Note how arguments lie on whose order hangs what is written; raises NeedsLayouts if that
        was taken to be another way."""
        program = it.program
        deciding = program.laid.union(
            *(leaves for root, leaves in program.reshaped.items() if root in it.heap.written)
        )
        now = {k: layout_of(self.flat.leaves[k]) for k in deciding}
        wanted = {k for k, layout in now.items() if layout != program.layouts.get(k)}
        if wanted:
            raise NeedsLayouts(wanted)
        self.layouts = {**program.layouts, **now}

    def _enter(self, owner: Any, value: V.Value) -> int:
        """The number of an object of the program's own."""
        self.flat.keep.append(owner)
        self.objects.append(value)
        return self.flat.seen.setdefault(id(owner), len(self.flat.seen))

    def _new_leaf(self, it: Interpreter, value: Any, source: NameGuard | None = None) -> V.Value:
        """The value of an object that the program reads; all names that it has are guarded."""
        number = self.flat.seen.get(id(value))
        if it.captured is not None:
            if number is None or number not in it.captured:
                return self._without(it, self._wanted(it, value, source))
            known = it.captured[number]
        elif id(value) in self.read_in_paths:
            return self._own_array(it, value)
        elif number is not None:
            known = self.objects[number]
            if isinstance(known, (V.ArrayRef, V.Ref)) and known.root not in it.heap.contents:
                # first read by a call that was started over
                raise self._wanted(it, value, source)
        elif it.heap is not self.outermost:  # other paths of the program have it as well
            if source is not None or own_arrays.maker_of(value) is None:
                raise self._wanted(it, value, source)
            return self._own_array(it, value)
        else:
            count = len(self.flat.leaves)
            key = flatten([(value, _name_of(source))], self.flat, captured=True)
            self._note_read(value, source, key)
            for leaf, part in enumerate(self.flat.leaves[count:], count):
                if type(part) is int and not -(2**63) <= part < 2**63:
                    self.asked.known[leaf] = True  # no parameter holds it
            return self.imported(it, key, count)[0]
        memos = sum(n < number for n in it.program.memos.values())  # which calls do not count
        self._note_read(value, source, ((("again", number - memos),), ()))
        return known

    def _own_array(self, it: Interpreter, value: Any) -> V.Value:
        """An array that pyrelay made of its own, and nothing changes: each place where the program
        reads it has a copy of the parameter."""
        found = self.read_in_paths.get(id(value))
        if found is None:
            leaf = len(self.flat.leaves)
            key = flatten([(value, _name_of(None))], self.flat, captured=True)
            self._note_read(value, None, key)
            (_, dtype, ones, _), = key[0]
            ty = self._type(dtype, ones, leaf)
            found = self.read_in_paths[id(value)] = self._param(ty, leaf)
            self.objects.append(V.ArrayRef(V.Root("array", None, leaf), (), ty))
        return it.new_array(found)

    def _without(self, it: Interpreter, need: needs.NeedsCapture) -> V.Value:
        """An array in place of one of pyrelay's own that a function reads and is not handed: with
        that, the next attempt begins. Raises what is needed for other objects."""
        handed = any(need.value is other.value for other in self.asked.captured)
        if handed or need.source is not None or own_arrays.maker_of(need.value) is None:
            raise need
        it.program.lacking.note_capture(need)
        dtype = types.from_numpy(need.value.dtype)
        assert dtype is not None
        return it.new_array(Var("missing", TensorType(dtype, need.value.shape)))

    def _wanted(self, it: Interpreter, value: Any, source: NameGuard | None) -> needs.NeedsCapture:
        """The request for an object that the next attempt begins with."""
        return needs.NeedsCapture(source, value, tuple(frame.owner for frame in it.frames))

    def _note_read(self, value: Any, source: NameGuard | None, key: Key) -> None:
        """Note that the program found an object where `source` says, each place once."""
        self.read.add(id(value))
        place = (
            ("object", id(value), "") if source is None
            else (source.kind, id(source.container), source.name)
        )
        if place not in self.places:
            self.places.add(place)
            self.hidden.append(HiddenArgument(source, value, key, _name_of(source)))


#: Dicts and sets without entries: `{}`, `set()`.
_HOLLOW = {("dict", "dict", 0), ("set", "call", 1)}


def _is_of_user(family: Family) -> bool:
    """Whether the nodes of a data type are objects of the user's classes."""
    return any(
        is_record_class(c) and not is_of_many(c) and not is_anonymous(c)
        for c in family.classes[1:]
    )


def _name_of(source: NameGuard | None) -> str:
    return "a captured object" if source is None else source.name


def _argument_names(callee: Any, count: int) -> list[str]:
    fn = callee
    while isinstance(fn, (V.Derivative, V.Partial, V.Known)):
        if isinstance(fn, V.Partial):  # of `vmap`
            fn = fn.args[0]
        else:
            fn = fn.callee if isinstance(fn, V.Derivative) else fn.value
    signature = calls.known_signature(fn)
    names = [] if signature is None else [
        p.name for p in signature.parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return [*names[:count], *(f"argument {k + 1}" for k in range(len(names), count))]
