"""Products in loops over examples become products of all examples.

In: a module. Out: the module in which a counted loop whose rounds are independent,

    for i in range(n): out[i] = np.tanh(x[i] @ w) @ v

and multiply vectors of their own with matrices that all share, does these products, and what leads
to them, for many rounds at once: an axis in front of all ops (`batching`), one product of matrices
for many of a vector with a matrix. What has no rule for such an axis, or gains nothing by it, stays
a loop over what was computed before or is computed after (loop distribution: Kennedy and McKinley,
"Loop distribution with arbitrary control flow", SC 1990). A round is one of these, in order:

* ahead: what the products read, of the inputs;
* checks: what may raise, in the order in which plain Python does it, and what it reads;
* behind: what the products read that depends on checks;
* rest: stores and sums that are left, as a loop.

A round of which nothing stays is computed together, too, where its products are short ones of
matrices of its own, or all that it computes, and where the loop could be one kernel, in which each
element of a product would compute anew what it reads.

As many rounds go together as need little memory, so that a loop over millions of examples does not
keep what each of them computes. Where a derivative is asked for it keeps that anyway, and all go
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import (
    Atom,
    Block,
    Const,
    Function,
    Jvp,
    Let,
    Loop,
    Module,
    OpCall,
    Var,
    Vjp,
)
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.batching import Batch, Cannot, is_batchable
from pyrelay.opt.deferred import SAME_ELEMENTS
from pyrelay.opt.dots import MOST_PRODUCTS, as_sum
from pyrelay.opt.elements import integer
from pyrelay.opt.linearise import as_extent, number
from pyrelay.opt.rewrite import Replacement, Scope, rewrite, rewrite_block
from pyrelay.opt.scalars import is_kernel, scalar_lets
from pyrelay.opt.storage_facts import MOVES
from pyrelay.records import dataclass

_FEWEST = 8  # rounds that are worth it, where their number is known
_AT_ONCE = 1 << 21  # elements that are computed for the rounds that go together
_LEAST_AT_ONCE = 16  # rounds
_READ = MOVES | {"matmul"}
"""Ops whose elements a kernel only reads, once they are there."""


def batch_rounds(module: Module) -> Module:
    """Do products in loops for many rounds at once."""
    return module.holding({n: _function(f, whole=False) for n, f in module.functions.items()})


def batch_differentiated(module: Module) -> Module:
    """Do products in loops of functions that are differentiated for all rounds at once."""
    wanted = {
        let.rhs.function for f in module.functions.values() for let in walk.nested_lets(f.body)
        if isinstance(let.rhs, (Jvp, Vjp))
    }
    pending = list(wanted)
    while pending:
        for name in walk.called(module.functions[pending.pop()]):
            if name not in wanted:
                wanted.add(name)
                pending.append(name)
    return module.holding({
        n: _function(f, whole=True) if n in wanted else f for n, f in module.functions.items()
    })


def _function(function: Function, *, whole: bool) -> Function:
    if not any(_is_product(let) for let in walk.nested_lets(function.body)):
        return function

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not isinstance(let.rhs, Loop):
            return None
        count = _extent(let.rhs.count, scope)
        if count is None or (isinstance(count, int) and count < _FEWEST):
            return None
        refused = set[int]()
        while (rounds := _Rounds(let, let.rhs, count, frozenset(refused))).pays():
            if not refused and not rounds.beats_a_kernel() and _becomes_a_kernel(let):
                return None
            trial = builder.nested()
            try:
                outs = _Writer(rounds, trial, whole=whole).outs()
            except _Refused as found:
                refused.add(found.number)
                continue
            builder.lets.extend(trial.lets)
            return [h.atom for h in outs]
        return None

    return rewrite(function, rule)


def _extent(count: Atom | None, scope: Scope) -> Extent | None:
    """How many rounds a loop has, as an extent."""
    if isinstance(count, Const):
        return int(count.value)
    call = None if count is None else scope.op(count, "extent")
    return None if call is None else call.attrs["size"]


def _is_product(let: Let) -> bool:
    return walk.is_call(let, "matmul")


def _type(atom: Atom) -> TensorType:
    assert isinstance(atom.type, TensorType)
    return atom.type


def _becomes_a_kernel(let: Let) -> bool:
    """Whether a loop is one kernel as it stands, with its small products written out."""
    written = rewrite_block(Block((let,), let.outs), as_sum)
    made = written.lets[-1]
    return isinstance(made.rhs, Loop) and is_kernel(made, scalar_lets(written))


class _Refused(Exception):
    """A Let of a body that cannot be computed for many rounds."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


# -- what becomes of the lets of a round ---------------------------------------------------------


@dataclass
class _Rounds:
    """A loop, and where the Lets of its body go, by their numbers.

    stores: by number of the carried array, the value that is stored at the index; sums: the other
    carried values, each used once, in the Let that makes its next value.
    """

    let: Let
    loop: Loop
    count: Extent
    refused: frozenset[int]  # Lets that are not computed for many rounds
    stores: dict[int, Atom] = field(default_factory=dict)
    ahead: set[int] = field(default_factory=set)
    checks: set[int] = field(default_factory=set)
    behind: set[int] = field(default_factory=set)
    rest: set[int] = field(default_factory=set)
    makers: dict[Atom, int] = field(default_factory=dict)
    reads: list[set[int]] = field(default_factory=list)  # Lets of the body that each one reads
    following: dict[int, int] = field(default_factory=dict)  # Lets that make the next values
    differing: set[Atom] = field(default_factory=set)
    rows: dict[int, Atom] = field(default_factory=dict)  # Lets that read row i of an array

    def pays(self) -> bool:
        """Whether the loop can be taken apart so that a product is computed for many rounds."""
        loop, lets = self.loop, self.loop.body.lets
        plain = loop.test is None and not loop.exits and not loop.dims and not self.let.dims
        if not plain or loop.index is None or any(let.dims for let in lets):
            return False
        if not any(map(_is_product, lets)):
            return False
        for k, let in enumerate(lets):
            self.makers.update((out, k) for out in let.outs)
            found = walk.free_vars(Block((let,), ()))
            self.reads.append({self.makers[v] for v in found if v in self.makers})
        if not self._hangs_by_sums():
            return False
        self._find_differing()
        self._part()
        return bool(self.ahead or self.behind)

    @property
    def is_whole(self) -> bool:
        """Whether all of a round is computed for many rounds at once."""
        return not self.checks and all(map(self.is_direct, self.stores)) and (
            len(self.stores) == len(self.loop.carried)
        )

    def beats_a_kernel(self) -> bool:
        """Whether nothing is checked, and products are computed for many rounds of which one kernel
        of the loop would compute operands anew for each element; or that are no vector's, and
        nothing stays."""
        lets = self.loop.body.lets
        together = self.ahead | self.behind
        return not self.checks and any(
            (self.is_whole and self._is_quick_beside_others(lets[k])) or any(
                isinstance(lets[n].rhs, OpCall) and walk.call_of(lets[n]).op.name not in _READ
                for n in self._makers_of(k, together)
            )
            for k in together if _is_product(lets[k])
        )

    def _makers_of(self, number: int, together: set[int]) -> set[int]:
        """The Lets that compute the operands of one, where these only lay elements otherwise those
        that compute theirs."""
        found, pending = set[int](), [number]
        while pending:
            for k in self.reads[pending.pop()] & together:
                rhs = self.loop.body.lets[k].rhs
                moves = isinstance(rhs, OpCall) and rhs.op.name in SAME_ELEMENTS
                (pending.append if moves else found.add)(k)
        return found

    def _hangs_by_sums(self) -> bool:
        """Whether rounds hang together by sums only, if at all. Notes the stores."""
        loop = self.loop
        uses = walk.use_counts(loop.body)
        for k, (var, result) in enumerate(zip(loop.carried, loop.body.results, strict=True)):
            number = self.makers.get(result)
            call = None if number is None else loop.body.lets[number].rhs
            if number is None or not isinstance(call, OpCall) or uses.get(var) != 1:
                return False
            if not isinstance(result, Var) or uses.get(result) != 1:
                return False
            if call.op.name == "index_update" and call.args[0] is var:
                at_index = call.attrs["axes"] == (0,) and call.args[2] is loop.index
                if not at_index or not dims.equal(_type(var).shape[0], self.count):
                    return False
                self.stores[k] = call.args[1]
            elif call.op.name != "add" or var not in call.args:
                return False
            self.following[k] = number
        return True

    def _find_differing(self) -> None:
        loop = self.loop
        assert loop.index is not None
        self.differing = {loop.index, *loop.carried}
        inside = all(map(is_pure, loop.body.lets))  # of arrays that are read
        for k, let in enumerate(loop.body.lets):
            rhs = let.rhs
            free = walk.free_vars(Block((let,), ()))
            if not self.differing.isdisjoint(free) or not is_pure(let):
                self.differing.update(let.outs)
            if (
                isinstance(rhs, OpCall) and rhs.op.name == "index" and rhs.attrs["axes"] == (0,)
                and rhs.args[1] is loop.index and rhs.args[0] not in self.differing
                and rhs.args[0] not in self.makers
                and (inside or dims.equal(_type(rhs.args[0]).shape[0], self.count))
            ):
                self.rows[k] = rhs.args[0]

    def _part(self) -> None:
        """Decide where each Let goes."""
        lets = self.loop.body.lets
        everything = set(range(len(lets))) - set(self.following.values())
        batchable = {k for k in everything if k not in self.refused and is_batchable(lets[k])}
        self.checks = {k for k in everything if not is_pure(lets[k])}
        while True:
            self.checks = self._with_reads(self.checks, batchable - self.checks)
            ahead, behind = self._levels(batchable - self.checks)
            late = {r for k in self.checks for r in self.reads[k]} & behind
            if not late:
                break
            self.checks |= late
        together = ahead | behind
        products = {k for k in together if self._is_shared_product(lets[k])}
        if not products and together == everything:
            products = {k for k in together if self._is_quick_beside_others(lets[k])}
        if not products:
            return
        needed = self._closure(products, together)
        others = everything - self.checks - needed
        if others <= together and not any(self._stays(lets[k]) for k in others):
            needed |= others
        self.ahead, self.behind = ahead & needed, behind & needed
        self.checks = self._with_reads(self.checks, needed)
        left = {n for k, n in self.following.items() if not self.is_direct(k)}
        self.rest = self._with_reads(left, needed | (self.checks - batchable))

    def _levels(self, numbers: Iterable[int]) -> tuple[set[int], set[int]]:
        """Which of these Lets can be computed for many rounds ahead of the checks, and behind."""
        ahead, behind = set[int](), set[int]()
        for k in sorted(numbers):
            if self.reads[k] <= ahead:
                ahead.add(k)
            elif self.reads[k] <= ahead | behind | self.checks:
                behind.add(k)
        return ahead, behind

    def _closure(self, numbers: Iterable[int], within: set[int]) -> set[int]:
        """These Lets and those that they read, of some."""
        found, pending = set[int](), [k for k in numbers if k in within]
        while pending:
            k = pending.pop()
            if k not in found:
                found.add(k)
                pending.extend(self.reads[k] & within)
        return found

    def _with_reads(self, numbers: Iterable[int], but: set[int]) -> set[int]:
        """These Lets and those that they read, up to some that are computed elsewhere."""
        found, pending = set[int](), list(numbers)
        while pending:
            k = pending.pop()
            if k not in found:
                found.add(k)
                pending.extend(self.reads[k] - but)
        return found

    def _is_shared_product(self, let: Let) -> bool:
        """Whether a Let multiplies a vector of its own with a matrix that all rounds share."""
        if not _is_product(let):
            return False
        a, b = walk.call_of(let).args
        if (a in self.differing) == (b in self.differing):
            return False
        own, shared = (_type(a), _type(b)) if a in self.differing else (_type(b), _type(a))
        return own.rank == shared.rank == 2 and 1 in own.shape and 1 not in shared.shape

    def _stays(self, let: Let) -> bool:
        """Whether a Let gains nothing from other rounds: a product of two of its own, a loop."""
        return isinstance(let.rhs, Loop) or (
            _is_product(let) and self.differing.issuperset(walk.call_of(let).args)
            and not self._is_quick_beside_others(let)
        )

    def _is_quick_beside_others(self, let: Let) -> bool:
        """Whether a product of matrices is done sooner with those of other rounds, as part of a
        round of which nothing stays: it is short, or all that the round computes."""
        if not _is_product(let):
            return False
        call = walk.call_of(let)
        a, b = map(_type, call.args)
        if a.rank != 2 or b.rank != 2:
            return False
        shape = _type(let.outs[0]).shape
        extents = (*shape, a.shape[0 if call.attrs["transpose_a"] else 1])
        if shape == (1, 1) or extents[-1] == 1:
            return False  # of two vectors
        if all(map(dims.is_short, extents)):
            work = dims.greatest(dims.product(extents))
            return work is None or work > MOST_PRODUCTS
        return self.differing.issuperset(call.args) and self._computed() == [let]

    def _computed(self) -> list[Let]:
        """What a round computes, without what reads its inputs, lays elements otherwise or stores
        them."""
        known = {*self.rows, *self.following.values()}
        rest = [let for k, let in enumerate(self.loop.body.lets) if k not in known]
        return [
            let for let in rest
            if not isinstance(let.rhs, OpCall) or let.rhs.op.name not in SAME_ELEMENTS
        ]

    def is_direct(self, k: int) -> bool:
        """Whether what is stored in carried array k is computed for many rounds at once."""
        number = self.makers.get(self.stores[k]) if k in self.stores else None
        return number is not None and number in self.ahead | self.behind

    def handed_on(self) -> list[Var]:
        """What the checks compute that is read behind them."""
        lets = self.loop.body.lets
        read = [(k, v) for k in self.behind | self.rest for v in walk.free_vars(
            Block((lets[k],), ())
        )]  # fmt: skip
        wanted = {v for k, v in read if k in self.behind or self.makers.get(v) not in self.rest}
        return [v for k in sorted(self.checks) for v in lets[k].outs if v in wanted]

    @property
    def keeps_nothing(self) -> bool:
        """Whether what a round computes is stored at once, so that all rounds need no more room."""
        return self.is_whole and len(self._computed()) == 1

    @property
    def size(self) -> Extent:
        """Elements that are computed for one round together with others."""
        found: Extent = 1
        for k in sorted((self.ahead | self.behind) - self.rows.keys()):
            for out in self.loop.body.lets[k].outs:
                found = dims.add(found, _type(out).size)
        return found


# -- writing ---------------------------------------------------------------------------------------


@dataclass
class _Writer:
    """Writes the rounds of a loop, of all or of parts that go together."""

    rounds: _Rounds
    builder: Builder
    whole: bool

    def outs(self) -> Sequence[Handle]:
        """What the loop gives. Raises _Refused."""
        r, b = self.rounds, self.builder
        init = [b.handle(a) for a in r.loop.init]
        few = isinstance(r.count, int) and isinstance(r.size, int)
        if self.whole or r.keeps_nothing or (few and r.count * r.size <= _AT_ONCE):  # type: ignore[operator]
            return self._part(b, init, 0, r.count)
        n, size = integer(b, b.extent(r.count)), integer(b, b.extent(r.size))
        most = b.call(OPS["floor_divide"], number(_AT_ONCE), size)
        part = b.call(OPS["maximum"], most, number(_LEAST_AT_ONCE))
        up = b.call(OPS["subtract"], b.call(OPS["add"], n, part), number(1))
        parts = b.call(OPS["floor_divide"], up, part)

        def body(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> Sequence[Handle]:
            first = inner.call(OPS["multiply"], integer(inner, k), part)
            left = inner.call(OPS["subtract"], n, first)
            start = as_extent(inner, first)
            length = as_extent(inner, inner.call(OPS["minimum"], left, part))
            return self._part(inner, carried, start, length)

        return b.counted(b.cast(parts, types.i64, weak=True), init, body)

    def _part(
        self, b: Builder, carried: Sequence[Handle], start: Extent, length: Extent
    ) -> Sequence[Handle]:
        """The carried values after the rounds from `start` on."""
        r = self.rounds
        batch = Batch(b, length)
        rows = {k: self._rows(b, x, start, length) for k, x in r.rows.items()}
        work = _Part(r, b, batch, rows, start, length)
        index = r.loop.index
        assert index is not None
        if any(
            index in walk.free_vars(Block((r.loop.body.lets[k],), ()))
            for k in (r.ahead | r.behind) - r.rows.keys()
        ):
            at = b.call(OPS["iota"], size=length, dtype=types.i64)
            if start != 0:
                at = b.call(OPS["add"], at, integer(b, b.extent(start)))
            batch.bind(index, at)
        work.together(r.ahead)
        kept = r.handed_on()
        if r.checks:
            room = [b.undef(TensorType(_type(v).dtype, (length, *_type(v).shape))) for v in kept]
            for var, values in zip(kept, work.loop(r.checks, room, kept, {}), strict=True):
                batch.bind(var, values)
        work.together(r.behind)
        found = list(carried)
        left = [k for k in range(len(carried)) if not r.is_direct(k)]
        for k in range(len(carried)):
            if k not in left:
                found[k] = self._stored(b, carried[k], batch, r.stores[k], start, length)
        if left:
            over = {r.loop.carried[k]: n for n, k in enumerate(left)}
            results = [r.loop.body.results[k] for k in left]
            made = work.loop(r.rest, [carried[k] for k in left], results, over)
            for k, value in zip(left, made, strict=True):
                found[k] = value
        return found

    def _rows(self, b: Builder, x: Atom, start: Extent, length: Extent) -> Handle:
        whole = start == 0 and length is self.rounds.count
        if whole and dims.equal(_type(x).shape[0], length):
            return b.handle(x)
        shape = _type(x).shape[1:]
        found: Handle = b.call(
            OPS["slice"], x, starts=(start, *[0] * len(shape)), sizes=(length, *shape),
            steps=(1,) * (1 + len(shape)),
        )
        return found

    def _stored(
        self, b: Builder, array: Handle, batch: Batch, value: Atom, start: Extent, length: Extent
    ) -> Handle:
        whole = array.shape[1:]
        values = b.handle(b.cast(batch.all(value), array.dtype))
        if values.shape[1:] != whole:  # it is spread over a row
            raise _Refused(self.rounds.makers[value])
        if start == 0 and length is self.rounds.count:
            return values
        found: Handle = b.call(
            OPS["slice_update"], array, values, starts=(start, *[0] * len(whole)),
            sizes=(length, *whole), steps=(1,) * array.rank,
        )
        return found


@dataclass
class _Part:
    """Some rounds: their batch, and loops over them."""

    rounds: _Rounds
    builder: Builder
    batch: Batch
    rows: dict[int, Handle]  # of the Lets that read a row
    start: Extent
    length: Extent

    def together(self, numbers: Iterable[int]) -> None:
        """Some Lets for all rounds at once. Raises _Refused."""
        for k in sorted(numbers):
            let = self.rounds.loop.body.lets[k]
            if k in self.rows:
                self.batch.bind(let.outs[0], self.rows[k])
                continue
            try:
                self.batch.let(let)
            except Cannot:
                raise _Refused(k) from None
            for out in let.outs:  # a number of Python's may take the type of others
                if self.batch.values[out].type != self._type_of_all(out):
                    raise _Refused(k)

    def _type_of_all(self, out: Var) -> TensorType:
        ty = _type(out)
        if out not in self.batch.differing:
            return ty
        return TensorType(ty.dtype, (self.length, *ty.shape))

    def loop(
        self, numbers: set[int], init: Sequence[Handle], results: Sequence[Atom],
        carried: dict[Var, int],
    ) -> Sequence[Handle]:
        """Some Lets as a loop over the rounds.

        Without `carried`, the values `results` of all rounds are stored in the arrays `init`.
        """
        r = self.rounds
        assert r.loop.index is not None

        def body(inner: Builder, j: Handle, now: tuple[Handle, ...]) -> Sequence[Handle | Atom]:
            names = walk.Renaming()
            names.atoms.update((v, now[n].atom) for v, n in carried.items())
            names.atoms[r.loop.index] = self._index(inner, j)  # type: ignore[index]
            for k in sorted(numbers):
                let = r.loop.body.lets[k]
                for var in walk.free_vars(Block((let,), ())):
                    if var not in names.atoms and var in self.batch.values:
                        names.atoms[var] = self._row(inner, self.batch, var, j)
                with inner.at(let.span):
                    if k in self.rows:
                        read = inner.call(OPS["index"], self.rows[k], j, axes=(0,))
                        names.atoms[let.outs[0]] = read.atom
                    else:
                        inner.lets.append(walk.copy_let(let, names))
            found = [names.atom(a) for a in results]
            if carried:
                return found
            return [
                inner.call(OPS["index_update"], rows, value, j, axes=(0,))
                for rows, value in zip(now, found, strict=True)
            ]

        return self.builder.counted(self.builder.extent(self.length), init, body)

    def _index(self, b: Builder, j: Handle) -> Atom:
        """The number of the round."""
        if self.start == 0:
            return j.atom
        start = integer(b, b.extent(self.start))
        return b.cast(b.call(OPS["add"], start, integer(b, j)), types.i64, weak=True)

    def _row(self, b: Builder, batch: Batch, var: Var, j: Handle) -> Atom:
        """The value of a variable in a round."""
        if var not in batch.differing:
            return batch.values[var].atom
        row = b.call(OPS["index"], batch.values[var], j, axes=(0,))
        return b.cast(row, row.dtype, weak=True) if _type(var).weak else row.atom
