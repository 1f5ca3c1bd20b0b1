"""Which parts of a round of a loop over examples are computed for many rounds at once.

In: a loop whose rounds may be independent, how many there are, and which Lets of its body cannot be
computed for many. Out: `Rounds`: for each Let of the body whether it is computed ahead of what may
raise, with that, behind it, or in a loop that stays; and whether that pays. `batch_rounds` writes
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pyrelay.ir import dims, limits, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import Atom, Block, Const, Let, Loop, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.ops.work import element_work
from pyrelay.opt.batching import is_batchable
from pyrelay.opt.deferred import SAME_ELEMENTS
from pyrelay.opt.dots import MOST_PRODUCTS
from pyrelay.opt.storage_facts import MOVES
from pyrelay.records import dataclass

_FEW = 4  # elements along an axis: a product of so few is written out
_READ = MOVES | {"matmul"}
"""Ops whose elements a kernel only reads, once they are there."""


def is_product(let: Let) -> bool:
    """Whether a Let is a product of matrices."""
    return walk.is_call(let, "matmul")


def type_of(atom: Atom) -> TensorType:
    """The type of an array or a number."""
    assert isinstance(atom.type, TensorType)
    return atom.type


def _is_of_few(product: OpCall) -> bool:
    """Whether a product of matrices is known to be of few elements, which a kernel writes out."""
    extents = [e for a in product.args for e in type_of(a).shape]
    return all(isinstance(e, int) and e <= _FEW for e in extents)


def _products_in(loop: Loop) -> Iterable[tuple[OpCall, set[Var]]]:
    """The products in a loop, with the variables that it binds."""
    lets = list(walk.nested_lets(loop.body))
    bound = {*loop.carried, *(out for let in lets for out in let.outs)}
    bound.update(v for let in lets if isinstance(let.rhs, Loop) for v in let.rhs.carried)
    return [(walk.call_of(let), bound) for let in lets if is_product(let)]


@dataclass
class Rounds:
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
        if not any(map(is_product, walk.nested_lets(loop.body))):
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
        """Whether nothing is checked, and what is computed for many rounds is slow in one kernel of
        the loop: products that would compute operands anew for each element, loops that are slow
        one after the other, and, where nothing stays, products that are no vector's."""
        lets = self.loop.body.lets
        together = self.ahead | self.behind
        return not self.checks and any(
            self._has_computed_operands(k, together) or (
                self._is_slow_alone(lets[k]) and (self.is_whole or isinstance(lets[k].rhs, Loop))
            )
            for k in together
        )

    def _has_computed_operands(self, number: int, together: set[int]) -> bool:
        lets = self.loop.body.lets
        return is_product(lets[number]) and any(
            isinstance(lets[n].rhs, OpCall) and walk.call_of(lets[n]).op.name not in _READ
            for n in self._makers_of(number, together)
        )

    def _is_slow_alone(self, let: Let) -> bool:
        """Whether many of a Let take less time together: of short matrices, or of loops with
        functions of the library, which vectors have, or with products of no few known elements."""
        if not isinstance(let.rhs, Loop):
            return self._is_quick_beside_others(let)
        return self._is_shared_product(let) and any(
            element_work(call) > 1 or (call.op.name == "matmul" and not _is_of_few(call))
            for call in (each.rhs for each in walk.nested_lets(let.rhs.body))
            if isinstance(call, OpCall)
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
            if isinstance(result, Const) and var not in uses:
                continue  # of which kind a sum is by now
            number = self.makers.get(result)
            call = None if number is None else loop.body.lets[number].rhs
            if number is None or not isinstance(call, OpCall) or uses.get(var) != 1:
                return False
            if not isinstance(result, Var) or uses.get(result) != 1:
                return False
            if call.op.name == "index_update" and call.args[0] is var:
                at_index = call.attrs["axes"] == (0,) and call.args[2] is loop.index
                if not at_index or not dims.equal(type_of(var).shape[0], self.count):
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
                and (inside or dims.equal(type_of(rhs.args[0]).shape[0], self.count))
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
        """Whether a Let multiplies a vector of its own with a matrix that all rounds share; in a
        loop, one that this makes, which all rounds may run through together."""
        if isinstance(let.rhs, Loop):
            return is_batchable(let) and any(map(self._is_shared_in, _products_in(let.rhs)))
        if not is_product(let):
            return False
        a, b = walk.call_of(let).args
        if (a in self.differing) == (b in self.differing):
            return False
        own, shared = (type_of(a), type_of(b)) if a in self.differing else (type_of(b), type_of(a))
        return own.rank == shared.rank == 2 and 1 in own.shape and 1 not in shared.shape

    def _is_shared_in(self, product: tuple[OpCall, set[Var]]) -> bool:
        """The same for a product in a loop, which binds some variables."""
        call, bound = product
        a, b = call.args
        if (a in bound) == (b in bound):
            return False
        own, shared = (a, b) if a in bound else (b, a)
        return shared not in self.differing and type_of(own).rank == type_of(shared).rank == 2 and (
            1 in type_of(own).shape and 1 not in type_of(shared).shape
        )

    def _stays(self, let: Let) -> bool:
        """Whether a Let gains nothing from other rounds: a product of two of its own, a loop."""
        if isinstance(let.rhs, Loop):
            return not self._is_shared_product(let)
        return (
            is_product(let) and self.differing.issuperset(walk.call_of(let).args)
            and not self._is_quick_beside_others(let)
        )

    def _is_quick_beside_others(self, let: Let) -> bool:
        """Whether a product of matrices is done sooner with those of other rounds, as part of a
        round of which nothing stays: it is short, or all that the round computes."""
        if not is_product(let):
            return False
        call = walk.call_of(let)
        a, b = map(type_of, call.args)
        if a.rank != 2 or b.rank != 2:
            return False
        shape = type_of(let.outs[0]).shape
        extents = (*shape, a.shape[0 if call.attrs["transpose_a"] else 1])
        if shape == (1, 1) or extents[-1] == 1:
            return False  # of two vectors
        if all(map(limits.is_short, extents)):
            work = limits.greatest(dims.product(extents))
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
                found = dims.add(found, type_of(out).size)
        return found
