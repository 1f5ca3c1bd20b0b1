"""Attention: two products of matrices with a softmax between them, as one group.

In: Core before fusion. Out: Core in which

    s = score(q k')              products, scaled, masked: element by element
    e = exp(s - max(s))          over the last axis
    o = (e / sum(e)) v

stands in one `KernelCall` where nothing else reads what lies between, over any leading axes, but
for the maxima and the sums of the rows, which are results of it where they are read. Its matrices
of scores never exist as a whole (`lower/kernels/attention.py`). What a derivative needs of them is
computed again (`attention_gradient.py`), unless they are small: then they are kept, as `kept_rows`
says.

`attention_of` finds the same in the body of such a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import replace

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import Atom, Block, Const, Let, Module, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt.finishing import finishes
from pyrelay.opt.kernel_calls import kernel_call
from pyrelay.opt.places import VIEWS
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention in a block: its Lets by what they do.

    scores   the product of q and k'; `shaping` makes `scored` of it, and of what it reads beside.
    product  the product of the probabilities and v.
    inner    all Lets between the products that are neither, `largest` and `total`, the maxima and
             sums of rows, among them.
    guarded  whether a row of zeros, where every score is -inf, stays one.
    kept     what lays the scores in rows and takes those that are kept, if anything reads them.
    """

    scores: Let
    shaping: tuple[Let, ...]
    scored: Atom
    inner: tuple[Let, ...]
    largest: Let
    total: Let
    product: Let
    guarded: bool
    kept: tuple[Let, ...]

    def members(self) -> tuple[Let, ...]:
        """All Lets, each before those that read it."""
        return (self.scores, *self.shaping, *self.inner, self.product, *self.kept)


@dataclass(frozen=True, slots=True)
class Softmax:
    """The softmax whose rows a product takes: what it is of, its result, its Lets in any order."""

    scored: Atom
    powers: Atom
    probabilities: Atom
    largest: Let
    total: Let
    inner: tuple[Let, ...]
    guarded: bool


_MOST_KEPT = 16 << 20
"""Bytes of scores that are kept for a derivative: reading them takes about as long as making them
where they do not fit the last cache."""


def kept_rows(scored: Atom) -> Extent:
    """How many rows of scores are kept: all, or none where they take more memory than that."""
    ty = scored.type
    assert isinstance(ty, TensorType)
    size = dims.maximum(dims.multiply(ty.size, ty.dtype.size), _MOST_KEPT)
    return dims.multiply(dims.product(ty.shape[:-1]), dims.quotient(_MOST_KEPT, size))


def attention(module: Module) -> Module:
    """The module with each attention in a kernel call of its own."""
    return module.with_bodies(_grouped)


def _grouped(body: Block) -> Block:
    body = walk.with_blocks(body, _grouped)
    found = _in_block(body)
    if not found:
        return body
    gone = {let for each in found for let in each.members()}
    finder = Finder(body)
    calls = {
        each.product: kernel_call(each.members(), finder.results(each), {}) for each in found
    }
    kept = tuple(
        calls.get(let, let) for let in body.lets if let in calls or let not in gone
    )
    return replace(body, lets=kept)


def attention_of(body: Block) -> Attention | None:
    """The attention that the body of a group is, if it is one."""
    found = _in_block(body)
    return found[0] if found else None


def _in_block(body: Block) -> list[Attention]:
    products = [let for let in body.lets if walk.is_call(let, "matmul")]
    if len(products) < 2:
        return []
    finder = Finder(body)
    found = []
    for let in products:
        each = finder.attention(let)
        if each is not None:
            found.append(each)
    return found


class Finder:
    """Matches backwards from a product, through the Lets of one block."""

    def __init__(self, body: Block) -> None:
        self.position = {let: k for k, let in enumerate(body.lets)}
        self.makers: dict[Atom, Let] = {out: let for let in body.lets for out in let.outs}
        self.readers: Counter[Atom] = Counter(body.results)
        self.read_by: dict[Atom, list[Let]] = {}
        for let in body.lets:
            inside = (v for block in walk.blocks(let.rhs) for v in walk.free_vars(block))
            for atom in dict.fromkeys((*walk.operands(let.rhs), *inside)):
                self.readers[atom] += 1
                self.read_by.setdefault(atom, []).append(let)

    def attention(self, product: Let) -> Attention | None:
        """The attention that ends with a product."""
        found = self.softmax(product)
        return None if found is None else self._whole(product, found)

    def softmax(self, product: Let) -> Softmax | None:
        """The softmax of the last axis that a product multiplies from the left."""
        assert isinstance(product.rhs, OpCall)
        if product.rhs.attrs["transpose_a"] or not _floats(product):
            return None
        inner: list[Let] = []
        probabilities = product.rhs.args[0]
        share = self._made(probabilities, "divide", inner)
        if share is None:
            return None
        powers, below = share.args
        top = self._made(powers, "exp", inner)
        total, guarded = self._total(below, inner)
        if top is None or total is None:
            return None
        if self.exact(walk.call_of(total).args[0], inner) is not self.exact(powers, inner):
            return None
        shifted = self._made(top.args[0], "subtract", inner)
        if shifted is None:
            return None
        scored, shift = shifted.args
        largest = self._shift(shift, inner)
        if largest is None:
            return None
        same = {scored, *self.unrounded(scored)}
        if self._plain(walk.call_of(largest).args[0], inner, same) not in same:
            return None
        if not _of_rows(walk.call_of(largest), scored) or not _of_rows(walk.call_of(total), powers):
            return None
        space = shape_of(scored)
        if any(shape_of(x) != space for x in (powers, probabilities)):
            return None
        return Softmax(scored, powers, probabilities, largest, total, tuple(inner), guarded)

    def results(self, found: Attention) -> tuple[Var, ...]:
        """What a group that computes attention gives: its product; the maxima and the sums of rows
        if one of them is read."""
        inside, of_rows = set(found.members()), (found.largest, found.total)
        if not found.kept and not any(self._is_read(let, inside) for let in of_rows):
            return found.product.outs
        more = (*of_rows, *found.kept[-1:])
        return (*found.product.outs, *(let.outs[0] for let in more))

    def _is_read(self, let: Let, inside: set[Let]) -> bool:
        """Whether anything but some Lets reads the result of a Let."""
        readers = self.read_by.get(let.outs[0], [])
        return self.readers[let.outs[0]] != len(readers) or not inside.issuperset(readers)

    def _made(self, atom: Atom, name: str, inner: list[Let]) -> OpCall | None:
        """The call of an op that makes an atom, noted as a part of the attention."""
        let = self.makers.get(self.exact(atom, inner))
        if let is None or not walk.is_call(let, name):
            return None
        inner.append(let)
        assert isinstance(let.rhs, OpCall)
        return let.rhs

    def _plain(
        self, atom: Atom, inner: list[Let], known: Container[Atom] = ()
    ) -> Atom:
        """What a value is a view or a copy of, if not before that one of those that are known."""
        while atom not in known:
            let = self.makers.get(atom)
            if let is None or not isinstance(let.rhs, OpCall):
                break
            name = let.rhs.op.name
            if name in VIEWS or name == "stop_gradient" or self.unrounded(atom):
                inner.append(let)
                atom = let.rhs.args[0]
            else:
                break
        return atom

    def exact(self, atom: Atom, inner: list[Let]) -> Atom:
        """What an atom is a rounding of, as far as `unrounded` goes; the roundings are noted."""
        while source := self.unrounded(atom):
            inner.append(self.makers[atom])
            (atom,) = source
        return atom

    def unrounded(self, atom: Atom) -> tuple[Atom, ...]:
        """What an atom is a rounding of that a softmax may do without: nothing here."""
        return ()

    def _total(self, atom: Atom, inner: list[Let]) -> tuple[Let | None, bool]:
        """The sum that a divisor is, and whether 1 stands in its place where it is 0."""
        atom = self._plain(atom, inner)
        chosen = self.makers.get(atom)
        if chosen is None or not walk.is_call(chosen, "where"):
            return self._reduction(atom, "sum", inner), False
        assert isinstance(chosen.rhs, OpCall)
        test, one, other = chosen.rhs.args
        zero = self.makers.get(test)
        if zero is None or not walk.is_call(zero, "equal") or not _number(one, 1):
            return None, False
        assert isinstance(zero.rhs, OpCall)
        tested = self.exact(zero.rhs.args[0], inner)
        if tested is not self.exact(other, inner) or not _number(zero.rhs.args[1], 0):
            return None, False
        inner += [chosen, zero]
        return self._reduction(self._plain(other, inner), "sum", inner), True

    def _reduction(self, atom: Atom, name: str, inner: list[Let]) -> Let | None:
        """The Let of a reduction, noted as a part of the attention."""
        found = self._made(atom, name, inner)
        return None if found is None else self.makers[self.exact(atom, inner)]

    def _shift(self, atom: Atom, inner: list[Let]) -> Let | None:
        """The maximum that a shift is, or is where it is finite."""
        atom = self._plain(atom, inner)
        chosen = self.makers.get(atom)
        if chosen is not None and walk.is_call(chosen, "where"):
            assert isinstance(chosen.rhs, OpCall)
            test, atom, other = chosen.rhs.args
            finite = self.makers.get(test)
            if finite is None or not walk.is_call(finite, "isfinite") or not _number(other, 0):
                return None
            assert isinstance(finite.rhs, OpCall)
            if self.exact(finite.rhs.args[0], inner) is not self.exact(atom, inner):
                return None
            inner += [chosen, finite]
        return self._reduction(self._plain(atom, inner), "max", inner)

    def _whole(self, product: Let, found: Softmax) -> Attention | None:
        """The attention with its scores, if nobody else reads what lies in between."""
        scored, inner = found.scored, found.inner
        taken = {product, *inner}
        kept = self._kept(scored, taken)
        if kept and self._is_read_before(kept[-1], product, taken):
            return None
        taken.update(kept)
        shaping = self._only_for(scored, taken)
        scores = [let for let in shaping if walk.is_call(let, "matmul")]
        rest = [let for let in shaping if not walk.is_call(let, "matmul")]
        ordered = sorted(dict.fromkeys(inner), key=self.position.__getitem__)
        taken.update(shaping)
        if len(scores) != 1 or not _floats(scores[0]) or product in shaping:
            return None
        for let in (*shaping, *ordered):
            if not self._is_read(let, taken):
                continue
            if let not in (found.largest, found.total) or self._is_read_before(let, product, taken):
                return None
        if not _same_type(scores[0].outs[0], scored) or not _same_type(scored, product.outs[0]):
            return None
        if rest and not finishes(scores[0], [scores[0], *rest], shape_of(scored)):
            return None
        if not rest and scored is not scores[0].outs[0]:
            return None
        return Attention(
            scores[0], tuple(rest), scored, tuple(ordered), found.largest, found.total, product,
            found.guarded, kept,
        )

    def _kept(self, scored: Atom, taken: set[Let]) -> tuple[Let, ...]:
        """What reads the scores to keep them: a view as a matrix, and a slice of that."""
        views = [let for let in self.read_by.get(scored, ()) if let not in taken]
        view = next((let for let in views if walk.is_call(let, "reshape")), None)
        if view is None:
            return ()
        readers = self.read_by.get(view.outs[0], [])
        if len(readers) != 1 or not walk.is_call(readers[0], "slice"):
            return ()
        wanted, attrs = (kept_rows(scored), shape_of(scored)[-1]), walk.call_of(readers[0]).attrs
        whole = len(shape_of(view.outs[0])) == 2 and shape_of(view.outs[0])[-1] == wanted[1]
        if not whole or tuple(attrs["sizes"]) != wanted or tuple(attrs["starts"]) != (0, 0):
            return ()
        return (view, readers[0]) if tuple(attrs["steps"]) == (1, 1) else ()

    def _is_read_before(self, let: Let, product: Let, taken: set[Let]) -> bool:
        """Whether a Let outside of the attention reads a part of it before the product is made."""
        return any(
            self.position[reader] < self.position[product]
            for reader in self.read_by.get(let.outs[0], ()) if reader not in taken
        )

    def _only_for(self, scored: Atom, taken: set[Let]) -> list[Let]:
        """The product of scores and what else is computed for the scores alone, in order."""
        found: set[Let] = set()
        pending = [self.makers[scored]] if scored in self.makers else []
        while pending:
            let = pending.pop()
            if let in found or not self._shapes(let, found | taken):
                continue
            found.add(let)
            if not walk.is_call(let, "matmul"):
                pending += [self.makers[a] for a in walk.operands(let.rhs) if a in self.makers]
                # What could not be taken before may have all its readers by now.
        return sorted(found, key=self.position.__getitem__)

    def _shapes(self, let: Let, taken: Iterable[Let]) -> bool:
        """Whether a Let can be a part: only those that are taken read its arrays."""
        rhs = let.rhs
        if not isinstance(rhs, OpCall) or let.dims or not any(map(is_array, let.outs)):
            return False
        readers = [r for v in let.outs for r in self.read_by.get(v, ())]
        if any(self.readers[v] != len(self.read_by.get(v, ())) for v in let.outs):
            return False
        if not set(readers) <= set(taken):
            return False
        if rhs.op.name == "matmul":
            return True
        return (
            rhs.op.element is not None and rhs.op.fusion is not Fusion.REDUCTION
            and is_pure(let)
        )


def _of_rows(call: OpCall, operand: Atom) -> bool:
    """Whether a reduction is one of the last axis of an array like this one."""
    rank = len(shape_of(operand))
    axes = [axis % rank for axis in call.attrs["axes"]]
    return axes == [rank - 1] and shape_of(call.args[0]) == shape_of(operand)


def _floats(let: Let) -> bool:
    ty = let.outs[0].type
    return isinstance(ty, TensorType) and ty.dtype.kind == "f" and all(
        isinstance(a.type, TensorType) and a.type.dtype == ty.dtype for a in walk.operands(let.rhs)
    )


def _same_type(a: Atom, b: Atom) -> bool:
    x, y = a.type, b.type
    return isinstance(x, TensorType) and isinstance(y, TensorType) and x.dtype == y.dtype


def _number(atom: Atom, value: float) -> bool:
    return isinstance(atom, Const) and atom.value == value
