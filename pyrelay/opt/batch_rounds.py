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
element of a product would compute anew what it reads. Loops in a round that multiply vectors with
matrices that all share, as a recurrent network does, are run through by many rounds together.
What goes where is said by `round_parts`.

As many rounds go together as need little memory, so that a loop over millions of examples does not
keep what each of them computes. Where a derivative is asked for it keeps that anyway, and all go
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import (
    Atom,
    Block,
    Const,
    Function,
    Jvp,
    Let,
    Loop,
    Module,
    Var,
    Vjp,
)
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.batching import Batch, Cannot
from pyrelay.opt.dots import as_sum
from pyrelay.opt.elements import integer
from pyrelay.opt.linearise import as_extent, number
from pyrelay.opt.rewrite import Replacement, Scope, rewrite, rewrite_block
from pyrelay.opt.round_parts import Rounds, is_product, type_of
from pyrelay.opt.scalars import is_kernel, scalar_lets
from pyrelay.records import dataclass

_FEWEST = 8  # rounds that are worth it, where their number is known
_AT_ONCE = 1 << 21  # elements that are computed for the rounds that go together
_LEAST_AT_ONCE = 16  # rounds


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
    if not any(is_product(let) for let in walk.nested_lets(function.body)):
        return function

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not isinstance(let.rhs, Loop):
            return None
        count = _extent(let.rhs.count, scope)
        if count is None or (isinstance(count, int) and count < _FEWEST):
            return None
        refused = set[int]()
        while (rounds := Rounds(let, let.rhs, count, frozenset(refused))).pays():
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


# -- writing ---------------------------------------------------------------------------------------


@dataclass
class _Writer:
    """Writes the rounds of a loop, of all or of parts that go together."""

    rounds: Rounds
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
            kinds = map(type_of, kept)
            room = [b.undef(TensorType(ty.dtype, (length, *ty.shape))) for ty in kinds]
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
        if whole and dims.equal(type_of(x).shape[0], length):
            return b.handle(x)
        shape = type_of(x).shape[1:]
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

    rounds: Rounds
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
        ty = type_of(out)
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
        return b.cast(row, row.dtype, weak=True) if type_of(var).weak else row.atom
