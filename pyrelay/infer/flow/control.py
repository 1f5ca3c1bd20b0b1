"""Branches: both arms are interpreted, and what they made is joined.

In: a condition known only at run time. Out: an `If` of Core whose results are the leaves of the
joined results and of every object that an arm changed. Loops are in loops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyrelay.errors import UnsupportedOperationError
from pyrelay.infer import layout as L
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.arrays import identity
from pyrelay.infer.attributes import is_our_own
from pyrelay.infer.containers import admission, found_items, growing
from pyrelay.infer.containers.open_keys import ask
from pyrelay.infer.decoding import Decoder
from pyrelay.infer.describing import Describer
from pyrelay.infer.encoding import Encoder
from pyrelay.infer.flow import handling, narrowing, unset
from pyrelay.infer.flow import joining as J
from pyrelay.infer.flow.loops import going_on, run_loop
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.heap import Heap
from pyrelay.infer.interpreter import MOST_SPLITS, Interpreter
from pyrelay.infer.leaves import layout_symbols, leaf_types
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import TEMPORARY, UNREAD, Atom, Block, If, Let, Var
from pyrelay.records import dataclass

__all__ = ["branch", "run_if", "run_loop", "split"]

Arm = Callable[[], Sequence[V.Value]]


def run_if(it: Interpreter, let: Let) -> None:
    """Interpret an If of Relay."""
    rhs = let.rhs
    assert isinstance(rhs, If)
    test = truth(it, it.value(rhs.cond))
    if it.opening is not None:
        it.bind(let.outs, handling.body(it, lambda: it.run(rhs.then), len(let.outs)))
        return
    if isinstance(test, V.Known):
        it.bind(let.outs, it.run(rhs.then if test.value else rhs.orelse))
        return
    names = [v.name for v in let.outs]
    fact = narrowing.fact_of(it, test)
    ends: dict[bool, Sequence[V.Value]] = {}

    def arm(block: Block, kept: Sequence[narrowing.Kept], side: bool) -> Sequence[V.Value]:
        with narrowing.assuming(it, kept):
            ends[side] = it.run(block)
        return ends[side]

    results = branch(
        it, it.atom(test), lambda: arm(rhs.then, fact.if_true, True),
        lambda: arm(rhs.orelse, fact.if_false, False), names,
    )
    if len(ends) == 2:
        narrowing.joined(it, test, ends[True], ends[False], results)
    it.bind(let.outs, results)
    if len(ends) == 1:  # the other arm never reaches the code behind
        narrowing.keep(it, fact.if_true if True in ends else fact.if_false)


def split(
    it: Interpreter, let: Let, rest: Callable[[], Sequence[V.Value]], *, tears: bool
) -> list[V.Value]:
    """An If whose arms leave objects with different structure: what follows goes into both arms.

    With `tears` such objects may be left behind: only the results still know their content.
    Without, code behind the block at hand goes on with both, and lists become growing ones.
    """
    rhs = let.rhs
    assert isinstance(rhs, If)
    test = truth(it, it.value(rhs.cond))
    fact = narrowing.fact_of(it, test)

    go_on = going_on(it, let, rest)

    def arm(block: Block, kept: Sequence[narrowing.Kept]) -> Sequence[V.Value]:
        with narrowing.assuming(it, kept):
            return it.run(block, go_on)

    return branch(
        it, it.atom(test), lambda: arm(rhs.then, fact.if_true),
        lambda: arm(rhs.orelse, fact.if_false), tears=tears, grows=not tears,
    )


@dataclass
class _Path:
    """What one arm did: its block under construction, its heap, its results (None: diverges)."""

    builder: Builder
    heap: Heap
    results: list[V.Value] | None
    raised: bool = False  # it ends with an exception on its way


def _walk(it: Interpreter, heap: Heap, arm: Arm) -> _Path:
    path = _Path(it.builder.nested(), heap.copy(), None)
    saved = it.let
    with it.inside(path.builder, path.heap):
        try:
            path.results = list(arm())
        except needs.Diverges:
            path.results = None
        except needs.Raises:
            path.results, path.raised = [], True
        finally:
            it.let = saved
    return path


def branch(
    it: Interpreter, test: Atom, then: Arm, orelse: Arm, names: Sequence[str] = (),
    *, tears: bool = False, grows: bool = False,
) -> list[V.Value]:
    """Interpret two arms under a run-time condition and join what they return.

    Results of different structure make unions. Raises Diverges if neither arm ends, NeedsSplitting
    if they leave an older object with different structures, which is torn with `tears`; lists of
    different lengths become growing ones with `grows`.
    """
    base = it.heap
    mark = dims.Symbol("mark").serial
    numbers = identity.Numbers()
    paths = [_walk(it, base, then), _walk(it, base, orelse)]
    alive = [p for p in paths if p.results is not None]
    ended = [p for p in alive if not p.raised]
    for path in alive:
        if path.raised and ended:
            path.results = [V.Known(UNREAD) for _ in ended[0].results or ()]
    if not alive:
        blocks = [p.builder.block(()) for p in paths]
        it.builder.bind(If(test, blocks[0], blocks[1]), ())
        raise needs.Diverges
    _apart(it, ended)
    merged = _Merge(it, base, mark, paths, names, numbers, grows)
    if tears and not merged.going:
        merged.tear()
    it.program.effort.join(it)
    results = merged.finish(test)
    if not ended:
        raise needs.Raises
    return results


def _apart(it: Interpreter, ended: Sequence[_Path]) -> None:
    """Have lists that are items of others be copies where, on another path, a list is none."""
    for k, given in enumerate(zip(*(path.results or () for path in ended), strict=True)):
        owners = [_owner(path.heap, value) for path, value in zip(ended, given, strict=True)]
        if len(set(owners)) < 2 or not all(map(V.is_list, given)):
            continue
        for path, owner, value in zip(ended, owners, given, strict=True):
            if owner is not None and path.results is not None:
                with it.inside(path.builder, path.heap):
                    path.results[k] = admission.lent(it, value)


def _owner(heap: Heap, value: V.Value) -> V.Root | None:
    """The list that a list is an item of."""
    content = heap.contents[value.root] if isinstance(value, V.Ref) else None
    return content.owner if isinstance(content, V.Part) else None


def _going(it: Interpreter, alive: Sequence[_Path]) -> str:
    """On which of two paths nothing is raised, where the caller gets what the other raises.

    What a container holds after a raise nobody reads but the caller, so it may have any structure.
    """
    raised = [p.raised for p in alive]
    if len(raised) < 2 or not any(raised) or not it.handling or not it.handling[-1].of_caller:
        return ""
    return "neither" if all(raised) else "left" if raised[1] else "right"


class _Merge:
    """The join of the arms that end."""

    def __init__(
        self, it: Interpreter, base: Heap, mark: int, paths: list[_Path], names: Sequence[str],
        numbers: identity.Numbers, grows: bool,
    ) -> None:
        self.it, self.base, self.mark, self.paths, self.names = it, base, mark, paths, names
        self.numbers = numbers
        self.grows = (
            grows or it.rolling > 0 or it.program.splits == MOST_SPLITS or is_our_own(it)
        )
        self.alive = [p for p in paths if p.results is not None]
        self.going = _going(it, self.alive)
        changed: dict[V.Root, None] = {}
        for path in self.alive:
            for root in path.heap.changed_since(base):
                # what only names may tell apart that chance chose is stale behind the join as well
                if root.kind == "array" or not any(root in p.heap.stale for p in self.alive):
                    changed[root] = None
        self.changed = list(changed)
        unset.with_names([p.heap for p in self.alive], changed)
        self.place_roots: frozenset[V.Root] = frozenset()
        self.looked_at: set[V.Root] = set()
        self.at_places: dict[V.Root, list[V.Root | None]] = {}  # arrays in lists that may grow

    def tear(self) -> None:
        """Leave behind the objects whose structure depends on the arm, but those of the caller's,
        who looks at them when the program ends: such lists grow."""
        self.looked_at = {*self.it.program.containers, *self.it.program.entered}
        heaps = [p.heap.contents for p in self.alive]
        for root in list(self.changed):
            if root.kind == "array" or root in self.looked_at:
                continue
            if len({L.content_head(contents[root]) for contents in heaps}) > 1:
                self.changed.remove(root)
                self.place_roots |= {root}
                self.base.torn[root] = self.it.builder.span

    def layouts(self) -> tuple[list[L.Layout], list[Any]]:
        """Joined layouts of the results and of the contents of changed objects."""
        while True:
            try:
                found = self._layouts()
            except J.NeedsPlace as need:
                self.place_roots |= need.roots
                continue
            more = [r for r in self._unsettled() if r not in self.changed]
            if not more:
                return self._with_moved(*found)
            self.changed += dict.fromkeys(more)

    def _with_moved(
        self, results: list[L.Layout], contents: list[Any]
    ) -> tuple[list[L.Layout], list[Any]]:
        """The same with the lists that come to live in lists which grow, and which are lost if only
        one path has them there."""
        found = dict(zip(self.changed, contents, strict=True))
        moved: list[dict[V.Root, L.LNode]] = [{} for _ in self.alive]
        for path, inner in zip(self.alive, moved, strict=True):
            for root, layout in zip(self.changed, contents, strict=True):
                inner.update(growing.moving(path.heap, root, layout))
        for root in dict.fromkeys(r for inner in moved for r in inner if r in self.base.contents):
            places = [inner.get(root) for inner in moved]
            always = places[0] if len(set(places)) == 1 else None
            found[root] = always or L.LNode(("lost",), ())
        self.changed = list(found)
        return results, list(found.values())

    def _unsettled(self) -> Iterator[V.Root]:
        for path, describer in zip(self.alive, self.describers, strict=True):
            yield from identity.unsettled(
                path.heap, self.base.contents.__contains__, describer.holds
            )

    def _layouts(self) -> tuple[list[L.Layout], list[Any]]:
        described = []
        self.describers = [
            Describer(
                p.heap, self.base.contents.__contains__, self.mark, place_roots=self.place_roots,
                exact=self.it.program.exact,
                local=frozenset(out for let in p.builder.lets for out in let.outs), kinds=True,
                counts=True, slight=self.it.program.narrow,
            )
            for p in self.alive
        ]
        for path, d in zip(self.alive, self.describers, strict=True):
            assert path.results is not None
            described.append(([d(v) for v in path.results], [d.content(r) for r in self.changed]))
        results, contents = described[0]
        if len(described) == 1:
            return results, contents
        program = self.it.program
        joiner = J.Joiner(
            True, self.grows, same=program.guards.same, going=self.going, kinds=True,
            chooses=program.chooses, tells_new=program.tells_new,
        )
        more_results, more_contents = described[1]
        try:
            joined = [joiner(a, b) for a, b in zip(results, more_results, strict=True)]
        except L.JoinError as error:
            raise self.it.failure(
                UnsupportedOperationError,
                f"a value is one of too many kinds behind this branch: {error.what}",
                hints=("give it one type and structure on all paths",),
            ) from None
        return joined, [
            self._join_content(joiner, root, a, b)
            for root, a, b in zip(self.changed, contents, more_contents, strict=True)
        ]

    def _join_content(self, joiner: J.Joiner, root: V.Root, a: Any, b: Any) -> Any:
        joiner.grows = self.grows or root in self.looked_at
        try:
            return joiner.content(root.kind, a, b)
        except L.JoinError:
            ask(self.it, root)
            raise needs.NeedsSplitting(self.it.varied(root, self.it.builder.span)) from None

    def finish(self, test: Atom) -> list[V.Value]:
        """Emit the If and give the joined values."""
        results, contents = self.layouts()
        everything = [*results, *contents]
        stale = self._stale()
        leaves = leaf_types(everything)
        symbols = layout_symbols(everything, self.mark)
        self.at_places = found_items.at_places([p.heap for p in self.alive], self.changed)
        blocks = [self._block(p, results, contents, leaves, symbols) for p in self.paths]
        outs = tuple(Var(TEMPORARY, t, span=self.it.builder.span) for t in leaves)
        self.it.builder.lets.append(
            Let(outs, If(test, blocks[0], blocks[1]), tuple(symbols), span=self.it.builder.span)
        )
        return self._decode(results, contents, iter(outs), stale)

    def _stale(self) -> dict[V.Root, list[identity.Sources]]:
        """The objects that are stale after the join, with what may have written to them."""
        found: dict[V.Root, list[identity.Sources]] = {}
        for path in self.alive:
            for root, sources in path.heap.stale.items():
                if root in self.base.contents and root not in self.changed:
                    kept = identity.kept_sources(root, sources, self.base.contents.__contains__)
                    found.setdefault(root, []).append(kept)
        return found

    def _block(
        self, path: _Path, results: list[L.Layout], contents: list[Any],
        leaves: list[Any], symbols: list[Symbol],
    ) -> Block:
        it = self.it
        if path.results is None:
            with it.inside(path.builder, path.heap):
                none: dict[Symbol, Extent] = dict.fromkeys(symbols, 0)
                atoms = [path.builder.undef(types.substitute(t, none)).atom for t in leaves]
            return path.builder.block(atoms, [0] * len(symbols))
        with it.inside(path.builder, path.heap):
            for root in self.changed:
                it.settle(root)
            encoder = Encoder(
                path.builder, path.heap, it.atom,
                number=identity.Numberer(path.builder, self.numbers), bound=symbols,
                same=it.program.guards.same, settle=it.settle,
            )
            for value, layout in zip(path.results, results, strict=True):
                encoder(value, layout)
            for root, layout in zip(self.changed, contents, strict=True):
                try:
                    encoder.content(root, layout)
                except L.NoCase:
                    ask(it, root)
                    raise needs.NeedsSplitting(it.varied(root, it.builder.span)) from None
        atoms = encoder.finish()
        return path.builder.block(atoms, [encoder.extents.get(s, 0) for s in symbols])

    def _decode(
        self, results: list[L.Layout], contents: list[Any], outs: Iterator[Atom],
        stale: dict[V.Root, list[identity.Sources]],
    ) -> list[V.Value]:
        heap = self.base
        decoder = Decoder(
            outs, heap, span=self.it.builder.span, numbers=self.numbers
        )
        values = []
        for i, layout in enumerate(results):
            decoder.name = self.names[i] if i < len(self.names) else ""
            values.append(decoder(layout))
        values = self._chosen_together(values)
        for root, layout in zip(self.changed, contents, strict=True):
            heap.contents[root] = decoder.content(root.kind, layout)
        found_items.stay(heap, self.at_places, self.it.before)
        heap.stale = {
            root: identity.joined_sources(
                root, sources, self.changed.__contains__, decoder.roots.values()
            )
            for root, sources in stale.items()
        }
        for path in self.alive:
            heap.follow(path.heap)
            heap.torn.update(path.heap.torn)
        return values

    def _chosen_together(self, values: list[V.Value]) -> list[V.Value]:
        """Unions whose case says which arm ran get the same tag."""
        if len(self.alive) < 2:
            return values
        tags: list[Atom] = []
        for i, value in enumerate(values):
            given = [p.results[i] for p in self.alive if p.results is not None]
            if not isinstance(value, V.Union) or len(value.cases) > 2 or V.node_of(value):
                continue
            if any(isinstance(g, V.Union) or g == V.Known(UNREAD) for g in given):
                continue
            tags.append(value.tag)
            values[i] = V.Union(tags[0], value.cases)
        return values
