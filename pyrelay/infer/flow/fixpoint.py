"""The fixpoint of a rolled loop: which layouts its carried values have, and the `Loop` of Core.

In: a `Runner` of a loop and the carried values at entry. Out: the carried values after the loop.
The body is interpreted with a guess of the layouts until those at its back edge fit the guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pyrelay import errors
from pyrelay.infer import kinds, needs
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.arrays import identity
from pyrelay.infer.containers import growing
from pyrelay.infer.containers.open_keys import ask
from pyrelay.infer.decoding import Decoder
from pyrelay.infer.describing import Describer
from pyrelay.infer.encoding import Encoder
from pyrelay.infer.flow import handling, narrowing, unset
from pyrelay.infer.flow import joining as J
from pyrelay.infer.flow.revisits import Place, Visits, objects, places, rebound
from pyrelay.infer.heap import Heap
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import layout_symbols, leaf_types
from pyrelay.infer.nodes import anonymous
from pyrelay.infer.operators import poly_of
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import LEFT_BY, TEMPORARY, Atom, Block, Let, Loop, OpCall, PyCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ir.walk import block_binders, free_vars, nested_lets, rhs_symbols
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.flow.rounds import Runner


#: The count of a loop that ends by itself.
ENDLESS = 1 << 62


class TestHasEffects(Exception):
    """The test of a loop changes an object."""


class TypeChanges(Exception):
    """A carried value's type after an iteration does not fit its type before."""

    def __init__(self, name: str, before: str, after: str, what: str) -> None:
        super().__init__(name)
        self.name, self.before, self.after, self.what = name, before, after, what


@dataclass
class _Pass:
    """One interpretation of the loop with a guess of the layouts."""

    carried: tuple[Var, ...]
    index: Var | None
    test: Block | None
    handed: tuple[Var, ...]
    heap: Heap  # at the back edge
    builder: Builder  # of the body
    leave: V.Value
    following: list[V.Value] | None
    header: list[V.Value]
    fact: narrowing.Fact  # what the test says


@dataclass
class Fixpoint:
    runner: Runner
    init: list[V.Value]
    start: int
    mixed: bool = False  # a carried value may become one of any structure
    layouts: list[L.Layout] = field(default_factory=list)
    changed: dict[V.Root, Any] = field(default_factory=dict)  # layouts of changed contents
    place_roots: frozenset[V.Root] = frozenset()
    stale: dict[V.Root, identity.Sources] = field(default_factory=dict)
    numbers: identity.Numbers = field(default_factory=identity.Numbers)
    read: set[V.Root] = field(default_factory=set)  # whose content the last pass looked at
    mark: int = 0
    symbol: Symbol | None = None  # stands for the loop's index in sizes
    visits: Visits = field(init=False)
    starts: tuple[V.Value, ...] = ()  # from here the objects that the loop knows are found
    entry: list[L.Layout] = field(default_factory=list)  # `layouts` as they are at entry
    written: dict[V.Root, Place] = field(default_factory=dict)  # what earlier visits changed

    def __post_init__(self) -> None:
        self.mark = dims.Symbol("mark").serial
        it = self.it
        self.visits = it.visits.enter(self.runner.let)
        env = it.frame.env
        read = [env[v] for v in free_vars(Block((self.runner.let,), ())) if v in env]
        self.starts = (*self.init, *read)
        self.place_roots = frozenset(objects(self.visits.rebound, self.starts, it.heap))
        self.written = objects(self.visits.written, self.starts, it.heap)
        self.changed = dict.fromkeys(self.written)
        self._describe_entry()
        if self.visits.stales:
            places_of = [x for x in self.layouts if isinstance(x, L.LPlace)]
            self.stale = {root: {} for x in places_of for root in x.may_be}

    def _found_places(self, roots: Iterable[V.Root]) -> dict[V.Root, Place]:
        return places(roots, self.starts, self.base)

    @property
    def it(self) -> Interpreter:
        return self.runner.it

    def _describer(self, heap: Heap) -> Describer:
        outer = self.base.contents.__contains__
        return Describer(
            heap, outer, self.mark, True, self.place_roots, exact=self.it.program.exact, kinds=True,
            counts=True, flags=True, slight=self.it.program.narrow,
        )

    def _describe_entry(self) -> None:
        self.base = self.it.heap
        describer = self._describer(self.base)
        self.entry = self._layouts(describer, self.init)
        self.layouts = [self.visits.guess(k, layout) for k, layout in enumerate(self.entry)]
        for k, wanted in self.visits.mates.items():
            layout = self.layouts[k]
            if isinstance(layout, L.LPlace):
                found = objects(wanted, self.starts, self.base)
                older = {r for root in found for r in (root, *root.may_be)}
                may_be = layout.may_be | older.intersection(self.base.contents)
                self.layouts[k] = replace(layout, may_be=may_be)
        for root in list(self.changed):
            if root in self.place_roots and root.kind in J.UNNUMBERED:
                del self.changed[root]  # what it contains is asked for only where it is read
            else:
                content = describer.content(root)
                place = self.written.get(root)
                self.changed[root] = (
                    content if place is None else self.visits.guess(place, content)
                )

    def _layouts(self, describer: Describer, values: Sequence[V.Value]) -> list[L.Layout]:
        """Layouts of carried values; flags that say how a loop was left stay known if they can."""
        found: list[L.Layout] = []
        for var, value in zip(self.runner.node.carried, values, strict=True):
            if var.name.startswith(LEFT_BY) and isinstance(value, V.Known):
                found.append(L.LKnown(value.value))
            else:
                found.append(describer(value))
        return found

    @property
    def everything(self) -> list[Any]:
        """All layouts: of the carried values, then of the changed contents."""
        return [*self.layouts, *self.changed.values()]

    @property
    def cases(self) -> int:
        """How many cases the carried values have that are one of several."""
        return sum(len(x.cases) for x in self.layouts if isinstance(x, L.LUnion))

    def attempt(self) -> list[V.Value] | None:
        """Interpret the loop with the present layouts; its results if they are right."""
        it = self.it
        outer, it.visits = it.visits, self.visits
        read, it.read = it.read, set()
        self.visits.met.clear()
        before, it.before = it.before, self.base
        it.rolling += 1
        lendings = self.base.lendings()
        try:
            with it.heap.repeated():
                result = self._interpret()
        finally:
            it.visits, it.before = outer, before
            self.read, it.read = it.read, it.read | read
            it.rolling -= 1
        torn = {r: s for r, s in result.heap.torn.items() if r in self.base.contents}
        if not torn.keys() <= self.base.torn.keys():  # the next round finds them so
            self.base.torn.update(torn)
            return None
        try:
            if result.following is None:
                it.program.lacking.refuse_beyond()
                left = self._emit(result)
                if self.runner.starts(self.start):
                    raise needs.Diverges  # the first iteration never ends
                return left
            if self._settled(result) and self.base.lendings() == lendings:
                left = self._emit(result)
                if self.runner.raises and self.runner.starts(self.start):
                    handling.something_raised(it)
                    raise needs.Raises  # nothing that follows is ever reached
                return left
        except J.NeedsPlace as need:
            self.place_roots |= need.roots
            self.visits.rebound.update(self._found_places(need.roots).values())
            self._describe_entry()
        return None

    # -- one pass ----------------------------------------------------------------------------------

    def _interpret(self) -> _Pass:
        it, runner, node = self.it, self.runner, self.runner.node
        leaves = leaf_types(self.everything)
        carried = tuple(Var("c", t, span=it.builder.span) for t in leaves)
        test_builder, body_builder = it.builder.nested(), it.builder.nested()
        heap = self.base.copy()
        saved_let, env = it.let, dict(it.frame.env)
        with it.inside(test_builder, heap, carried):
            header = self._decode(iter(carried), heap)
            runner.enter(header)
            test: Block | None = None
            handed: tuple[Var, ...] = ()
            fact = narrowing.NOTHING
            tested = node.test is not None and not runner.tested_inside
            if tested:
                before = heap.copy()
                cond = runner.test()
                if heap.changed_since(before):
                    raise TestHasEffects
                fact = narrowing.fact_of(it, cond)
                test, handed = self._close_test(test_builder, cond)
        index = Var("i", types.PY_INT, span=it.builder.span)
        with it.inside(body_builder, heap, (*carried, *handed, index)):
            if not tested:
                # Lets made while entering belong to the body.
                body_builder.lets[:0] = test_builder.lets
            leave: V.Value = V.Known(False)
            following: list[V.Value] | None = None
            try:
                with narrowing.assuming(it, fact.if_true):
                    leave, following = runner.body(self._index_value(index))
            except needs.Diverges:
                following = None
            except needs.NeedsStatic as need:
                if need.origin is not self:
                    raise
                raise needs.NeedsUnrolling(self._needs(need)) from None
            finally:
                it.let = saved_let
        used = index if runner.iteration is not None else None
        result = _Pass(
            carried, used, test, handed, heap, body_builder, leave, following, header, fact
        )
        it.frame.env = env
        return result

    def _needs(self, need: needs.NeedsStatic) -> Exception:
        return self.it.failure(
            errors.StaticValueError,
            f"{need.why} must be known when the function is compiled, and it depends on the loop "
            "variable of a loop whose length is known only at run time",
        )

    def _index_value(self, index: Var) -> V.Value:
        self.symbol = Symbol("i", dims.Origin.RUNTIME)
        last = None
        if self.runner.iteration is not None:
            count = None if self.runner.dynamic else poly_of(self.runner.iteration.count)
            last = None if count is None else dims.add(count, -1 - self.start)
            if last is None:
                self.it.program.note_count(self.symbol, self.runner.iteration.count)
        self.it.program.guards.ranges[self.symbol] = (0, last)
        plain = V.Scalar(types.PY_INT, index, None, self, dims.of(self.symbol))
        if not self.start or self.runner.iteration is None:  # a while loop has no index
            return plain
        shifted = self.it.emit("add", plain, self.start)
        poly = dims.add(dims.of(self.symbol), self.start)
        return V.Scalar(types.PY_INT, shifted.atom, None, self, poly)

    def _bind_index(self, result: _Pass, extents: Sequence[Extent]) -> None:
        """Bind the symbol of the loop's index where a type or a size of the body mentions it."""
        if result.index is None or self.symbol is None:
            return
        if not _mentions(result.builder.lets, extents, self.symbol):
            return
        bound = Builder(self.it.builder.span)
        call = OpCall(OPS["as_extent"], (result.index,))
        bound.lets.append(Let((), call, (self.symbol,), span=bound.span))
        result.builder.lets[:0] = bound.lets

    def _close_test(
        self, builder: Builder, cond: V.Value
    ) -> tuple[Block, tuple[Var, ...]]:
        """The finished test block: what it computed and the body reads is handed over."""
        it = self.it
        with it.inside(builder, it.heap):
            atom = it.atom(cond)
        # Every variable bound in the test may be read by the body; unread ones are removed later.
        made = [v for let in builder.lets for v in let.outs]
        symbols = {s for let in builder.lets for s in let.dims}
        handed = []
        renamed: dict[Var, Var] = {}
        for var in made:
            assert isinstance(var.type, (TensorType, types.TapeType))
            if symbols.isdisjoint(types.type_symbols(var.type)):
                renamed[var] = Var(var.name, var.type, span=var.span)
                handed.append(renamed[var])
        _Handover(it, renamed).apply()
        return builder.block([atom, *renamed]), tuple(handed)

    def _decode(
        self, outs: Any, heap: Heap, renamed: Mapping[Symbol, Extent] | None = None
    ) -> list[V.Value]:
        decoder = Decoder(
            outs, heap, renamed or {}, span=self.it.builder.span, numbers=self.numbers
        )
        header = []
        for layout, var in zip(self.layouts, self.runner.node.carried, strict=True):
            decoder.name = var.name
            header.append(decoder(layout))
        for root, layout in self.changed.items():
            heap.contents[root] = decoder.content(root.kind, layout)
        heap.stale = {
            root: identity.joined_sources(
                root, (heap.stale.get(root, {}), self.stale.get(root, {})),
                self.changed.__contains__, decoder.roots.values(),
            )
            for root in {**heap.stale, **self.stale} if root not in self.changed
        }
        return header

    # -- comparison --------------------------------------------------------------------------------

    def _settled(self, result: _Pass) -> bool:
        """Join the layouts at the back edge into the guess; True if the guess already held.

        Raises NeedsNodes where tuples nest deeper with every pass.
        """
        assert result.following is not None
        gained = unset.gained(self.base, result.heap)
        if gained and not self.mixed:
            raise TypeChanges(gained[0], "unset", "set", "the first round makes the attribute")
        if unset.with_names((self.base, result.heap), result.heap.changed_since(self.base)):
            raise J.NeedsPlace(())  # these objects are described anew
        describer = self._describer(result.heap)
        before = self._guess()
        deep = [*self.layouts, *self.changed.values()]
        bound = frozenset(
            dims.of(s) for s in layout_symbols(self.everything, self.mark)
        )
        joiner = J.Joiner(
            self.mixed, True, bound, same=self.it.program.guards.same, kinds=True,
            chooses=self.it.program.chooses, tells_new=self.mixed and self.it.program.tells_new,
        )
        back = self._layouts(describer, result.following)
        names = [v.name for v in self.runner.node.carried]
        layouts = []
        apart: frozenset[V.Root] = frozenset()  # what needs a place, of all that is joined
        entry = self._describer(self.base)
        for name, old, new, was, now in zip(
            names, self.layouts, back, result.header, result.following, strict=True
        ):
            try:
                layouts.append(joiner(old, new))
                self._note_ones(joiner, name, was, now)
            except J.NeedsPlace as need:
                apart |= need.roots | rebound(old, new, entry.content)
            except L.JoinError as error:
                raise TypeChanges(
                    name, V.describe(was), V.describe(now), error.what
                ) from None
        for root in result.heap.changed_since(self.base):
            if root not in self.changed:
                self.changed[root] = entry.content(root)
        for root, held in list(self.changed.items()):
            left = describer.content(root)
            try:
                self.changed[root] = self._join_content(joiner, root, held, left)
            except J.NeedsPlace as need:
                apart |= need.roots | rebound(held, left, entry.content)
        if apart:
            raise J.NeedsPlace(apart)
        outer = self.base.contents.__contains__
        for root in list(self.changed):
            for inner, moved in growing.moving(self.base, root, self.changed[root]).items():
                self.changed[inner] = moved
        for root in identity.unsettled(result.heap, outer, describer.holds):
            if root not in self.changed:
                self.changed[root] = entry.content(root)
        everything = [*layouts, *self.changed.values()]
        anonymous.refuse_depth(deep, everything)
        self.layouts = layouts
        for k, layout in enumerate(layouts):
            self.visits.note(k, self.entry[k], layout)
            if isinstance(layout, L.LPlace):
                mates = self._found_places(layout.may_be).values()
                self.visits.mates.setdefault(k, set()).update(mates)
        for root, place in self._found_places(self.changed).items():
            self.visits.written.add(place)
            self.visits.note(place, entry.content(root), self.changed[root])
        for root, sources in result.heap.stale.items():
            if outer(root):
                self.stale[root] = identity.kept_sources(root, sources, outer)
        self.visits.stales |= bool(self.stale)
        return before == self._guess()

    def _note_ones(self, joiner: J.Joiner, name: str, was: V.Value, now: V.Value) -> None:
        """Where extents that are 1 only before the loop would have to be equal to others, they
        may have been stretched: the first round is another one."""
        if not self.mixed:
            error = TypeChanges(
                name, V.describe(was), V.describe(now), "an extent of 1 is stretched by its rounds"
            )
            self.it.ones.update(dict.fromkeys(joiner.ones, error))
        joiner.ones.clear()

    def _guess(self) -> tuple[Any, ...]:
        """What a pass assumes, for comparison with what it found."""
        known = self.base.contents
        stale = {
            r: frozenset(s if s in known else None for s in sources) if r in self.read else None
            for r, sources in self.stale.items()
            if r not in self.changed and (r in self.read or r not in self.base.stale)
        }
        return self.everything, list(self.changed), stale

    def _join_content(self, joiner: J.Joiner, root: V.Root, a: Any, b: Any) -> Any:
        differ = isinstance(a, L.LNode) and (
            not isinstance(b, L.LNode) or (a.head != b.head and not L.differ_by_raise(a, b))
        )
        if differ and (root.kind != "list" or self.runner.keeps_lengths):
            ask(self.it, root)
            raise needs.NeedsUnrolling(
                self.it.failure(
                    errors.UnsupportedOperationError,
                    f"this loop changes the length or the keys of a {root.kind}, and how often it "
                    "runs is known only at run time",
                    hints=("write into an array made before the loop: out[i] = ...",),
                ),
                root,
            )
        try:
            joined = joiner.content(root.kind, a, b)
            if differ and isinstance(joined, L.LGrown):
                joined = replace(joined, loops=joined.loops | {self.runner.let})
            return joined
        except L.JoinError as error:
            if root.kind == "list":
                raise needs.NeedsUnrolling(self._items_differ(error)) from None
            raise TypeChanges(
                root.name or f"an item of a {root.kind}", _show(error.left), _show(error.right),
                error.what,
            ) from None

    def _items_differ(self, error: L.JoinError) -> errors.PyrelayError:
        self.it.program.mixed.update(_grown_lists(error.left), _grown_lists(error.right))
        left, right = _show(error.left), _show(error.right)
        return self.it.failure(
            errors.TypeMismatchError,
            "the items of a list that this loop changes have no common type"
            + (f": {left} and {right}" if left != right else f", {error.what}"),
            notes=("a list whose length is known only at run time holds items of one structure",),
            hints=("give the items one type and shape, or keep them in lists of their own",),
        )

    # -- emission ----------------------------------------------------------------------------------

    def _emit(self, result: _Pass) -> list[V.Value]:
        it = self.it
        symbols = layout_symbols(self.everything, self.mark)
        for root in self.changed:
            it.settle(root)
        init = self._encoder(it.builder, self.base, symbols)
        first = self._encode(init, self.init)
        body = self._body(result, symbols)
        count = None
        if self.runner.iteration is not None:
            count = constant(ENDLESS) if self.runner.dynamic else it.atom(self._count())
        loop = Loop(
            result.carried, tuple(first), body, result.test, result.handed, count,
            result.index, self._exits(result), tuple(symbols),
            tuple(init.extents[s] for s in symbols),
        )
        outer = {s: Symbol(s.name, s.origin) for s in symbols}
        mapping: dict[Symbol, Extent] = {s: dims.of(t) for s, t in outer.items()}
        outs = tuple(
            Var(TEMPORARY, types.substitute(v.type, mapping), span=it.builder.span)  # type: ignore[arg-type]
            for v in result.carried
        )
        it.builder.lets.append(Let(outs, loop, tuple(outer.values()), span=it.builder.span))
        values = self._of_rounds(self._decode(iter(outs), self.base, mapping), result)
        self.base.follow(result.heap)
        if not loop.exits:  # the test is false of what is left
            after = dict(zip(result.carried, outs, strict=True))
            narrowing.keep(it, [(after[t], c) for t, c in result.fact.if_false if t in after])
        return values

    def _of_rounds(self, values: list[V.Value], result: _Pass) -> list[V.Value]:
        """What the loop leaves: numbers that all rounds make of one kind are of it if one runs.

        A float32 that is added to 0.0 is one of Python's where there is nothing to add. That the
        loop has rounds, as its extents have in the call at hand, is asked of other calls.
        """
        if result.following is None or self.runner.dynamic or self._exits(result):
            return values
        found = [kinds.surely(x, made) for x, made in zip(values, result.following, strict=True)]
        if not any(found) or not self._has_rounds():
            return values
        return [
            x if ty is None else kinds.as_kind(self.it, x, ty)
            for x, ty in zip(values, found, strict=True)
        ]

    def _has_rounds(self) -> bool:
        if self.runner.iteration is None:
            return False
        count = poly_of(self.runner.iteration.count)
        return count is not None and bool(self.it.program.guards.compare(">", count, self.start))

    def _count(self) -> V.Value:
        assert self.runner.iteration is not None
        count = self.runner.iteration.count
        if not self.start:
            return count
        from pyrelay.infer.operators import binary

        return binary(self.it, "-", count, V.Known(self.start))

    def _encoder(
        self, builder: Builder, heap: Heap, symbols: Sequence[Symbol]
    ) -> Encoder:
        numberer = identity.Numberer(builder, self.numbers)
        return Encoder(
            builder, heap, self.it.atom, number=numberer, bound=symbols,
            same=self.it.program.guards.same, settle=self.it.settle,
        )

    def _encode(self, encoder: Encoder, carried: list[V.Value]) -> list[Atom]:
        for value, layout in zip(carried, self.layouts, strict=True):
            encoder(value, layout)
        for root, layout in self.changed.items():
            encoder.content(root, layout)
        return encoder.finish()

    def _exits(self, result: _Pass) -> bool:
        """True if the body may leave the loop."""
        never = result.following is not None and result.leave == V.Known(False)
        return self.runner.exits and not never

    def _body(self, result: _Pass, symbols: list[Symbol]) -> Block:
        it, exits = self.it, self._exits(result)
        if result.following is None:  # the body always raises
            none: dict[Symbol, Extent] = {s: dims.of(s) for s in symbols}
            with it.inside(result.builder, result.heap):
                nothing = [
                    result.builder.undef(types.substitute(v.type, none)).atom  # type: ignore[arg-type]
                    for v in result.carried
                ]
            leave = [constant(True)] if exits else []
            self._bind_index(result, ())
            return result.builder.block([*leave, *nothing], [dims.of(s) for s in symbols])
        with it.inside(result.builder, result.heap):
            for root in self.changed:
                it.settle(root)
            encoder = self._encoder(result.builder, result.heap, symbols)
            atoms = self._encode(encoder, result.following)
            leaves = [it.atom(result.leave)] if exits else []
        extents = [encoder.extents.get(s, dims.of(s)) for s in symbols]
        self._bind_index(result, extents)
        return result.builder.block([*leaves, *atoms], extents)


def _mentions(lets: Sequence[Let], extents: Sequence[Extent], symbol: Symbol | None) -> bool:
    """True if a type, an attribute or an extent in these Lets is written with the symbol."""
    if any(symbol in dims.symbols(e) for e in extents):
        return True
    for let in nested_lets(Block(tuple(lets), ())):
        for var in (*let.outs, *block_binders(let.rhs)):
            if var.type is not None and symbol in types.type_symbols(var.type):
                return True
        if symbol in rhs_symbols(let.rhs):
            return True
    return False


@dataclass
class _Handover:
    """Renames, in everything the interpreter holds, variables of the test to their handed twins."""

    it: Interpreter
    renamed: dict[Var, Var]

    def apply(self) -> None:
        if not self.renamed:
            return
        env = self.it.frame.env
        for key, value in env.items():
            env[key] = self._value(value)
        contents = self.it.heap.contents
        for root, content in contents.items():
            if isinstance(content, Var):
                contents[root] = self.renamed.get(content, content)
            elif isinstance(content, V.Growing):
                rows = tuple(
                    self.renamed.get(r, r) if isinstance(r, Var) else r for r in content.rows
                )
                count = self._value(content.count)
                if count is not content.count or rows != content.rows:
                    contents[root] = replace(content, count=count, rows=rows)
            elif root.kind != "array":
                before = L.content_children(content)
                children = [self._value(c) for c in before]
                if any(a is not b for a, b in zip(children, before, strict=True)):
                    contents[root] = L.rebuild_content(L.content_head(content), children)

    def _atom(self, atom: Atom | None) -> Atom | None:
        return self.renamed.get(atom, atom) if isinstance(atom, Var) else atom

    def _value(self, value: V.Value) -> V.Value:
        match value:
            case V.Scalar(atom=atom, kind=kind) if atom in self.renamed or kind in self.renamed:
                return replace(
                    value, atom=self._atom(atom), kind=self._atom(kind), poly=None
                )
            case V.Union(tag, cases, alive):
                new_tag = self.renamed.get(tag, tag) if isinstance(tag, Var) else tag
                new_cases = tuple(self._value(c) for c in cases)
                if new_tag is tag and all(a is b for a, b in zip(cases, new_cases, strict=True)):
                    return value
                return V.Union(new_tag, new_cases, alive)
        children = L.children_of(value)
        new = [self._value(c) for c in children]
        if all(a is b for a, b in zip(children, new, strict=True)):
            return value
        head = L.head_of(value)
        assert head is not None
        return L.rebuild(head, new, value.made if isinstance(value, V.Tuple) else frozenset())


def _grown_lists(layout: L.Layout) -> Iterator[Let]:
    """What makes the empty lists that are a case of several, of which others are no lists."""
    cases = layout.cases if isinstance(layout, L.LUnion) else ()
    listed = [case for case in cases if isinstance(case, L.LPlace) and case.kind == "list"]
    if len(listed) < len(cases):
        for made in (case.made for case in listed):
            if made is not None and isinstance(made.rhs, PyCall) and not made.rhs.args:
                yield made


def _show(layout: L.Layout) -> str:
    match layout:
        case L.LScalar(ty) | L.LPlace(_, "array", _, ty):
            return str(ty)
        case L.LKnown(v):
            return V.describe(V.Known(v))
        case L.LPlace(_, kind, cls):
            return cls.__name__ if cls else f"a {kind}"
    return "a structure"
