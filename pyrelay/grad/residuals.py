"""What a backward block needs from the forward block that it reverses.

In: the Lets of a forward block, and the variables bound there that the backward block reads. Out:
which variables to save, and which cheap Lets to repeat in the backward block instead.

The choice is a minimum cut between what cannot be repeated and what is needed: a vertex costs its
bytes, an edge from operand to result is free (Enzyme, Moses and Churavy 2020; the min-cut
partitioner of PyTorch's AOTAutograd). Of all minimum cuts the one nearest to what is needed is
taken, so that nothing is repeated without saving memory. Values from outside the block are free,
but for arrays that the block around must save in turn, such as one that a loop around updates: of
those the elements that were read are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import TapeType, TensorType
from pyrelay.records import dataclass

#: Ops that cost less than storing and loading their result: arithmetic of a cycle or two, and
#: rearrangements that fuse into their reader.
_REPEATABLE_NAMES = """
    add subtract multiply negative positive absolute sign square minimum maximum
    floor ceil trunc rint greater greater_equal less less_equal equal not_equal
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert
    left_shift right_shift where clip cast real imag conj stop_gradient check_index
    reshape expand_dims squeeze transpose broadcast_to slice refine index iota extent
"""
REPEATABLE = frozenset(_REPEATABLE_NAMES.split())

_TYPICAL_EXTENT = 64  # stands for a symbol when sizes are compared
_ENDLESS = 1 << 60


@dataclass(frozen=True, slots=True)
class Residuals:
    """`saved` are kept by the forward block, `repeated` open the backward block, in this order."""

    saved: tuple[Var, ...]
    repeated: tuple[Let, ...]


def is_repeatable(let: Let) -> bool:
    """True if computing the Let again is cheaper than saving its result."""
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name not in REPEATABLE or let.dims:
        return False
    if rhs.op.name in ("check_index", "cast"):
        return True
    # An op that may raise can be repeated without its check only where NumPy's meaning agrees.
    return effect_of(rhs) is Effect.PURE or all(_is_weak(a) for a in rhs.args)


def _is_weak(atom: Atom) -> bool:
    return isinstance(atom.type, TensorType) and atom.type.weak


def repeat(builder: Builder, let: Let, names: walk.Renaming) -> None:
    """Compute a Let again, without its effect: what raised there has not raised."""
    assert isinstance(let.rhs, OpCall)
    if effect_of(let.rhs) is Effect.PURE:
        builder.lets.append(walk.copy_let(let, names))
        return
    (out,) = let.outs
    args = [names.atom(a) for a in let.rhs.args]
    with builder.at(let.span):
        if let.rhs.op.name == "check_index":
            size = builder.extent(names.extent(let.rhs.attrs["size"]))
            i, n = (_numpy_kind(builder, a) for a in (args[0], size.atom))
            value = builder.call(OPS["where"], i < 0, i + n, i)
        else:
            attrs = {k: v for k, v in names.attrs(let.rhs.attrs).items() if k != "strict"}
            if let.rhs.op.name == "cast":
                attrs["weak"] = False
            value = builder.call(let.rhs.op, *(_numpy_kind(builder, a) for a in args), **attrs)
        assert isinstance(out.type, TensorType)
        names.atoms[out] = builder.cast(value, out.type.dtype, weak=out.type.weak)


def _numpy_kind(builder: Builder, atom: Atom) -> Handle:
    assert isinstance(atom.type, TensorType)
    return builder.handle(builder.cast(atom, atom.type.dtype))


def invariant_lets(
    lets: Sequence[Let], varying: Collection[Var], varying_symbols: Collection[Symbol]
) -> set[Let]:
    """The pure op calls of a loop body that give the same value in every iteration."""
    moving, moving_symbols = set(varying), set(varying_symbols)
    found: set[Let] = set()
    contents = Contents()
    for let in lets:
        rhs = let.rhs
        still = (
            isinstance(rhs, OpCall) and not let.dims and effect_of(rhs) is Effect.PURE
            and not any(a in moving for a in rhs.args if isinstance(a, Var))
            and not any(isinstance(o.type, TapeType) for o in let.outs)
            and moving_symbols.isdisjoint(contents.let_symbols(let))
        )
        if still:
            found.add(let)
        else:
            moving.update(let.outs)
            moving_symbols.update(let.dims)
    return found


def select(
    lets: Sequence[Let], needed: Iterable[Var], leaves: Collection[Var],
    free_lets: Collection[Let] = (), volatile: Collection[Var] = (), trips: int = 1,
    unsaved: Collection[Var] = (),
) -> Residuals:
    """Decide what to save of a forward block.

    lets: the forward block. needed: variables that the backward block reads. leaves: variables
    that the block's owner binds and that must be saved if they are needed (a loop's carried
    variables). free_lets: Lets that may be repeated whatever they cost. Variables bound neither by
    `lets` nor in `leaves` are available to the backward block, and free unless they are `volatile`
    arrays: those cost the block around their bytes, once for `trips` runs of this block. unsaved:
    results of `free_lets` that are not saved.
    """
    producer = {out: let for let in lets for out in let.outs}
    bound = {*producer, *leaves}

    def counts(var: Var) -> bool:
        return var in bound or (var in volatile and is_array(var))

    graph = _Graph()
    wanted = [v for v in dict.fromkeys(needed) if counts(v)]
    pending, seen = list(wanted), set(wanted)
    for var in wanted:
        graph.edge((var, "out"), _Graph.SINK, _ENDLESS)
    while pending:
        var = pending.pop()
        share = 1 if var in bound else trips
        cost = _ENDLESS if var in unsaved else max(1, size_of(var) // share)
        graph.edge((var, "in"), (var, "out"), cost)
        let = producer.get(var)
        if let is None or not (let in free_lets or is_repeatable(let)):
            graph.edge(_Graph.SOURCE, (var, "in"), _ENDLESS)
            continue
        for atom in walk.operands(let.rhs):
            if isinstance(atom, Var) and counts(atom):
                graph.edge((atom, "out"), (var, "in"), _ENDLESS)
                if atom not in seen:
                    seen.add(atom)
                    pending.append(atom)
    saved = graph.cut()
    order = [*leaves, *producer]
    return Residuals(
        tuple(v for v in order if v in saved), _lets_to_repeat(lets, wanted, saved, producer)
    )


def _lets_to_repeat(
    lets: Sequence[Let], wanted: Sequence[Var], saved: Collection[Var], producer: Mapping[Var, Let]
) -> tuple[Let, ...]:
    chosen: set[Let] = set()
    pending = [v for v in wanted if v not in saved]
    while pending:
        let = producer.get(pending.pop())
        if let is None or let in chosen:
            continue
        chosen.add(let)
        pending += [a for a in walk.operands(let.rhs) if isinstance(a, Var) and a not in saved]
    return tuple(let for let in lets if let in chosen)


def is_array(var: Var) -> bool:
    """True for an array, of rank one or more."""
    return isinstance(var.type, TensorType) and var.type.rank > 0


def typical(extent: Extent) -> int:
    """An extent's value, with a typical number for unknown ones in it."""
    return dims.evaluate(extent, dict.fromkeys(dims.symbols(extent), _TYPICAL_EXTENT))


def size_of(var: Var) -> int:
    """Bytes of a value, with a typical number for unknown extents."""
    if not isinstance(var.type, TensorType):
        return _ENDLESS
    return max(1, typical(var.type.size)) * var.type.dtype.size


Vertex = tuple[Var | str, str]


class _Graph:
    """A flow network; maximum flow by Dinic's algorithm (1970)."""

    SOURCE: Vertex = ("source", "")
    SINK: Vertex = ("sink", "")

    def __init__(self) -> None:
        self._number: dict[Vertex, int] = {self.SOURCE: 0, self.SINK: 1}
        self._edges: list[list[int]] = [[], []]  # vertex -> its edges
        self._head: list[int] = []  # edge -> vertex; edge ^ 1 is its reverse
        self._room: list[int] = []  # edge -> capacity left

    def edge(self, tail: Vertex, head: Vertex, capacity: int) -> None:
        """Add an edge."""
        a, b = self._vertex(tail), self._vertex(head)
        self._edges[a].append(len(self._head))
        self._edges[b].append(len(self._head) + 1)
        self._head += (b, a)
        self._room += (capacity, 0)

    def _vertex(self, vertex: Vertex) -> int:
        number = self._number.setdefault(vertex, len(self._number))
        if number == len(self._edges):
            self._edges.append([])
        return number

    def cut(self) -> set[Var]:
        """The variables whose own edge is in the minimum cut nearest to the sink."""
        while (levels := self._levels())[1] >= 0:
            self._augment(levels)
        reaching = self._reaching_sink()
        return {
            v for (v, side), n in self._number.items()
            if isinstance(v, Var) and side == "out" and n in reaching
            and self._number[(v, "in")] not in reaching
        }

    def _levels(self) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[0] = 0
        queue = deque([0])
        while queue:
            here = queue.popleft()
            for e in self._edges[here]:
                there = self._head[e]
                if self._room[e] and levels[there] < 0:
                    levels[there] = levels[here] + 1
                    queue.append(there)
        return levels

    def _augment(self, levels: list[int]) -> None:
        """A blocking flow along edges that go up one level."""
        position = [0] * len(self._edges)
        path: list[int] = []
        here = 0
        while True:
            if here == 1:
                amount = min(self._room[e] for e in path)
                for e in path:
                    self._room[e] -= amount
                    self._room[e ^ 1] += amount
                path, here = [], 0
                continue
            edges = self._edges[here]
            while position[here] < len(edges):
                e = edges[position[here]]
                if self._room[e] and levels[self._head[e]] == levels[here] + 1:
                    break
                position[here] += 1
            if position[here] < len(edges):
                path.append(edges[position[here]])
                here = self._head[path[-1]]
            elif path:
                here = self._head[path.pop() ^ 1]
                position[here] += 1
            else:
                return

    def _reaching_sink(self) -> set[int]:
        found, pending = {1}, [1]
        while pending:
            for e in self._edges[pending.pop()]:
                tail = self._head[e]
                if self._room[e ^ 1] and tail not in found:
                    found.add(tail)
                    pending.append(tail)
        return found


def live_lets(lets: Sequence[Let], results: Iterable[Atom], contents: Contents) -> list[Let]:
    """The Lets of a backward block that its results or its tape need.

    `contents` says what the blocks inside it read.
    """
    needed = {a for a in results if isinstance(a, Var)}
    needed_symbols = {s for a in needed if a.type for s in types.type_symbols(a.type)}
    kept: list[Let] = []
    for let in reversed(lets):
        if not (
            any(o in needed or isinstance(o.type, TapeType) for o in let.outs)
            or any(s in needed_symbols for s in let.dims)
        ):
            continue
        kept.append(let)
        needed.update(a for a in walk.operands(let.rhs) if isinstance(a, Var))
        for block in walk.blocks(let.rhs):
            needed.update(contents.free(block))
        needed_symbols |= contents.let_symbols(let)
    return kept[::-1]


