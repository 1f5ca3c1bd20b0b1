"""The derivative of attention as one group, which makes the scores again.

In: Core in which attention (`attention.py`) and its derivative are written out,

    s = score(q k')              p = softmax(s)              o = p v
    dp = do v'                   ds = p (dp - sum(dp p))     dv = p' do
    d = score'(ds)               dq = d k                    dk = d' q

Out: Core in which p, of which a program would keep all, is read by o only, so that `attention` can
take it, and all that follows is one `KernelCall`: of q, k, v, do, the maxima and sums of the rows
of s, and the means sum(dp p), which are sum(do o). It computes p again, block by block, and no
matrix of scores exists as a whole (Dao, *FlashAttention-2*, 2023, section 3.1.2). Small ones are
kept by the attention (`attention.kept_rows`): the group is given them and need not make them again.

Where a loss is linear in o, nobody wants o: where no scores are kept, it is made for the means.

`score` may multiply, mask and add, if its derivative needs no scores. A derivative by what is added
is a matrix of scores: such a program keeps them, as one does whose softmax somebody else reads.

`gradient_of` finds the same in the body of such a group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyrelay.ir import dims, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import Atom, Block, Let, Module, OpCall
from pyrelay.ir.op import OPS, Fusion
from pyrelay.opt.attention import Finder, Softmax, kept_rows
from pyrelay.opt.finishing import finishes
from pyrelay.opt.kernel_calls import kernel_call
from pyrelay.opt.reordering import ordered
from pyrelay.opt.shapes import GATHERS, shape_of
from pyrelay.records import dataclass

_MADE_OF_NOTHING = frozenset(["iota", "broadcast_to", "expand_dims"])


@dataclass(frozen=True, slots=True)
class Gradient:
    """The derivative of attention: its Lets by what they do.

    scores, slopes    the products q k' and do v'.
    shaping           makes scores of products; `scored` is the result.
    softmax           makes probabilities of scores, maxima and sums.
    centred           the slopes less their means; `of_scores`, that times the probabilities.
    turning           makes `cotangent`, of the products, of `of_scores`.
    of_q, of_k, of_v  the products that are the results, None where one is not wanted.
    kept              shows the scores that are kept to the group: nothing reads it.
    """

    scores: Let
    shaping: tuple[Let, ...]
    scored: Atom
    softmax: tuple[Let, ...]
    probabilities: Atom
    guarded: bool
    slopes: Let
    centred: Let
    of_scores: Let
    turning: tuple[Let, ...]
    cotangent: Atom
    of_q: Let | None
    of_k: Let | None
    of_v: Let | None
    kept: Let | None = None

    @property
    def results(self) -> tuple[Let, ...]:
        """The Lets of the results."""
        return tuple(let for let in (self.of_q, self.of_k, self.of_v) if let is not None)

    def members(self) -> tuple[Let, ...]:
        """All Lets, each before those that read it. A mask may shape and turn."""
        ordered = (
            *(() if self.kept is None else (self.kept,)), self.scores, *self.shaping,
            *self.softmax, self.slopes, self.centred, self.of_scores, *self.turning, *self.results,
        )  # fmt: skip
        return tuple(dict.fromkeys(ordered))

    @property
    def product_of_scores(self) -> Let:
        """`of_scores` as if it were a product of matrices, which others finish."""
        return replace(self.slopes, outs=self.of_scores.outs)


def attention_gradient(module: Module) -> Module:
    """The module with each derivative of attention in a kernel call of its own."""
    return module.with_bodies(lambda body: _grouped(body, keeping=True))


def attention_gradient_again(module: Module) -> Module:
    """The same where no scores are kept, however small they are."""
    return module.with_bodies(lambda body: _grouped(body, keeping=False))


def gradient_of(body: Block) -> Gradient | None:
    """The derivative of attention that the body of a group is, if it is one."""
    products = [let for let in body.lets if walk.is_call(let, "matmul")]
    if len(products) < 3 or any(not isinstance(let.rhs, OpCall) for let in body.lets):
        return None
    return _Matcher(body).group(products)


def _grouped(body: Block, keeping: bool) -> Block:
    body = walk.with_blocks(body, lambda inner: _grouped(inner, keeping))
    products = [let for let in body.lets if walk.is_call(let, "matmul")]
    if not products:
        return body
    matcher, found = _Matcher(body), _Apart()
    for product in products:
        change = matcher.change(product, keeping)
        if change is None and not keeping:
            change = matcher.restored(product)
        if change is not None:
            found.take(change)
    if not found.changes:
        return body
    together = _changed(body, found.changes)
    if together is not None:
        return together
    for change in found.changes:  # one of them does not go
        body = _changed(body, [change]) or body
    return body


@dataclass(frozen=True, slots=True)
class _Change:
    """A derivative of attention as one group: what is in the group, what of it gives results, and
    is `gone`; Lets that are added, the group among them; and the product that the attention ends
    with, which must be one group after it."""

    members: tuple[Let, ...]
    gone: tuple[Let, ...]
    added: tuple[Let, ...]
    product: Let


class _Apart:
    """Changes none of which has what gives results of another one within its group."""

    def __init__(self) -> None:
        self.changes: list[_Change] = []
        self._members: set[Let] = set()
        self._gone: set[Let] = set()

    def take(self, change: _Change) -> None:
        """Add a change, unless it is not apart from those before."""
        if self._gone.isdisjoint(change.members) and self._members.isdisjoint(change.gone):
            self.changes.append(change)
            self._members.update(change.members)
            self._gone.update(change.gone)


def _changed(body: Block, changes: Iterable[_Change]) -> Block | None:
    """The block after some changes; None if a Let with an effect would have to move, or one of the
    attentions is no group then."""
    gone = {let for change in changes for let in change.gone}
    left = [let for let in body.lets if let not in gone]
    lets = ordered(body, [*left, *(let for change in changes for let in change.added)])
    if lets is None:
        return None
    body = replace(body, lets=lets)
    after = Finder(body)
    fit = all(after.attention(change.product) is not None for change in changes)
    return body if fit else None


def _flags(let: Let) -> tuple[bool, bool]:
    attrs = walk.call_of(let).attrs
    return attrs["transpose_a"], attrs["transpose_b"]


def _args(let: Let) -> tuple[Atom, ...]:
    return walk.call_of(let).args


class _Matcher:
    """Matches forwards from the probabilities, through the Lets of one block."""

    def __init__(self, body: Block) -> None:
        self.body, self.finder = body, Finder(body)

    # -- what a derivative of attention looks like -------------------------------------------------

    def derivative(self, product: Let) -> tuple[Gradient, Softmax] | None:
        """The derivative of the attention that ends with a product, as it is written out."""
        softmax = self.finder.softmax(product)
        if softmax is None:
            return None
        p = softmax.probabilities
        readers = [let for let in self._readers(p) if let is not product]
        products = [let for let in readers if walk.is_call(let, "matmul")]
        scales = [let for let in readers if walk.is_call(let, "scale") and _args(let)[1] is p]
        if len(readers) != len(products) + len(scales) or len(scales) != 2 or len(products) > 1:
            return None
        found = self._slopes(softmax, product, scales) or self._slopes(
            softmax, product, scales[::-1]
        )
        if found is None:
            return None
        slopes, centred, of_scores = found
        of_v = next(iter(products), None)
        if of_v is not None and not _is_of_v(of_v, p, _args(slopes)[0], _flags(product)[1]):
            return None
        shaping = self._forming(softmax.scored)
        scores = [let for let in shaping if walk.is_call(let, "matmul")]
        if len(scores) != 1:
            return None
        rest = tuple(let for let in shaping if let is not scores[0])
        if rest and not finishes(scores[0], shaping, shape_of(softmax.scored)):
            return None
        given = {softmax.scored, softmax.largest.outs[0], softmax.total.outs[0]}
        whole = self._turned(
            Gradient(
                scores[0], rest, softmax.scored, self._between(given, p), p, softmax.guarded,
                slopes, centred, of_scores, (), of_scores.outs[0], None, None, of_v,
            )
        )
        return None if whole is None else (whole, softmax)

    def _slopes(
        self, softmax: Softmax, product: Let, scales: list[Let]
    ) -> tuple[Let, Let, Let] | None:
        """The Lets of do v', of that less its mean, and of the scores' cotangent."""
        weighted, of_scores = scales
        slope = _args(weighted)[0]
        makers = self.finder.makers
        slopes, centred = makers.get(slope), makers.get(_args(of_scores)[0])
        if slopes is None or not walk.is_call(slopes, "matmul"):
            return None
        if not walk.is_call(centred, "subtract"):
            return None
        assert centred is not None
        mean = makers.get(_args(centred)[1])
        if _args(centred)[0] is not slope or not walk.is_call(mean, "sum"):
            return None
        assert mean is not None
        if _args(mean)[0] is not weighted.outs[0] or not _keeps_rows(mean):
            return None
        flags = (False, not _flags(product)[1])
        if _args(slopes)[1] is not _args(product)[1] or _flags(slopes) != flags:
            return None
        if shape_of(_args(slopes)[0]) != shape_of(product.outs[0]):
            return None
        space = shape_of(softmax.scored)
        if any(shape_of(let.outs[0]) != space for let in (slopes, centred, of_scores)):
            return None
        alone = (
            self._is_read_by(slopes, weighted, centred) and self._is_read_by(weighted, mean)
            and self._is_read_by(mean, centred) and self._is_read_by(centred, of_scores)
        )
        return (slopes, centred, of_scores) if alone else None

    def _is_read_by(self, let: Let, *readers: Let) -> bool:
        """Whether some Lets read the result of a Let, and nothing else does."""
        (out,) = let.outs
        return set(self._readers(out)) == {*readers} and self.finder.readers[out] == len(readers)

    def _between(self, given: Iterable[Atom], result: Atom) -> tuple[Let, ...]:
        """The Lets that compute a result from what is given, in order."""
        seen, found, pending = set(given), set(), [result]
        while pending:
            atom = pending.pop()
            let = self.finder.makers.get(atom)
            if atom not in seen and let is not None:
                seen.add(atom)
                found.add(let)
                pending += walk.operands(let.rhs)
        return tuple(sorted(found, key=self.finder.position.__getitem__))

    def _turned(self, found: Gradient) -> Gradient | None:
        """The derivative with what follows the cotangent of the scores."""
        space = shape_of(found.scored)
        chain, atom = [], found.cotangent
        while True:
            readers = self._readers(atom)
            if self.finder.readers[atom] != len(readers):
                return None
            if readers and all(walk.is_call(let, "matmul") for let in readers):
                break
            if len(readers) != 1 or not _computes_elements(readers[0]):
                return None
            if shape_of(readers[0].outs[0]) != space:
                return None
            chain.append(readers[0])
            atom = readers[0].outs[0]
        beside = self._beside(chain, found)
        if beside is None:
            return None
        turning = tuple(sorted({*chain, *beside}, key=self.finder.position.__getitem__))
        product = found.product_of_scores
        if chain and not finishes(product, [product, *turning], space):
            return None
        q, k = _args(found.scores)
        turned_q, turned_k = _flags(found.scores)
        of_q = [x for x in readers if _is_of_q(x, atom, k, turned_q, turned_k)]
        of_k = [x for x in readers if _is_of_k(x, atom, q, turned_q, turned_k)]
        if len(of_q) > 1 or len(of_k) > 1 or len(of_q) + len(of_k) != len(readers):
            return None
        whole = replace(
            found, turning=turning, cotangent=atom, of_q=next(iter(of_q), None),
            of_k=next(iter(of_k), None),
        )
        batch = space[:-2]
        if any(shape_of(let.outs[0])[:-2] != batch for let in whole.results):
            return None
        return whole

    def _beside(self, chain: Iterable[Let], found: Gradient) -> list[Let] | None:
        """What is computed for the cotangent of the products beside it, such as a mask; None if
        that needs scores."""
        inside = {let.outs[0] for let in (*chain, found.of_scores)}
        beside: dict[Let, None] = {}
        for let in chain:
            for atom in _args(let):
                if atom not in inside:
                    beside.update(dict.fromkeys(self._forming(atom)))
        return None if self._depend_on(found.scores, beside) else list(beside)

    def _depend_on(self, source: Let, lets: Iterable[Let]) -> bool:
        """Whether some Lets are a Let, or hang on its results."""
        position, pending = self.finder.position, [*lets]
        seen = {*pending}
        for let in pending:
            if let is source:
                return True
            for atom in walk.free_vars(Block((let,), ())):
                maker = self.finder.makers.get(atom)
                if maker is not None and maker not in seen and position[maker] >= position[source]:
                    seen.add(maker)
                    pending.append(maker)
        return False

    def _forming(self, atom: Atom) -> tuple[Let, ...]:
        """The Lets that compute a matrix of scores or a mask, in order, which can be done again."""
        found: set[Let] = set()
        pending = [atom]
        while pending:
            let = self.finder.makers.get(pending.pop())
            if let is None or let in found:
                continue
            if walk.is_call(let, "matmul") and shape_of(let.outs[0]) == shape_of(atom):
                found.add(let)
                continue
            if not _computes_elements(let) or not _is_matrix(let):
                continue
            found.add(let)
            pending += walk.operands(let.rhs)
        return tuple(sorted(found, key=self.finder.position.__getitem__))

    def _readers(self, atom: Atom) -> list[Let]:
        return self.finder.read_by.get(atom, [])

    # -- the block with it in a group --------------------------------------------------------------

    def change(self, product: Let, keeps: bool) -> _Change | None:
        """The derivative of the attention that ends with a product as one group, if there is one;
        small scores are kept if it `keeps` them."""
        found = self.derivative(product)
        if found is None:
            return None
        gradient, softmax = found
        if not gradient.results or self.finder.readers[softmax.probabilities] != len(
            self._readers(softmax.probabilities)
        ):
            return None
        means, centred = self._means(product, gradient)
        keeping, kept = _keeping(gradient) if keeps else ((), None)
        whole = replace(gradient, kept=kept).members()
        members = tuple(centred if x is gradient.centred else x for x in whole)
        call = kernel_call(members, [let.outs[0] for let in gradient.results], {})
        return _Change(whole, gradient.results, (*means, *keeping, call), product)

    def restored(self, slopes: Let) -> _Change | None:
        """The same of slopes do v', where nobody wants the result p v, as where the loss is linear
        in it: it is computed for the means."""
        readers = self._readers(slopes.outs[0])
        weighted = [x for x in readers if walk.is_call(x, "scale")]
        if len(readers) != 2 or len(weighted) != 1 or _flags(slopes)[0]:
            return None
        p = _args(weighted[0])[1]
        if p not in self.finder.makers:
            return None
        builder, v = Builder(), _args(slopes)[1]
        with builder.at(slopes.span):
            builder.call(
                OPS["matmul"], p, v, transpose_a=False, transpose_b=not _flags(slopes)[1]
            )
        (product,) = builder.lets
        if shape_of(product.outs[0]) != shape_of(_args(slopes)[0]):
            return None
        position = self.finder.position
        at = max(position[slopes], position[self.finder.makers[p]] + 1)
        lets = (*self.body.lets[:at], product, *self.body.lets[at:])
        change = _Matcher(replace(self.body, lets=lets)).change(product, keeps=False)
        return None if change is None else replace(change, added=(product, *change.added))

    def _means(self, product: Let, gradient: Gradient) -> tuple[tuple[Let, ...], Let]:
        """Lets that compute the means of the slopes from the result, and the slopes less those."""
        builder = Builder()
        last = len(shape_of(product.outs[0])) - 1
        with builder.at(gradient.centred.span):
            weighted = builder.call(OPS["scale"], _args(gradient.slopes)[0], product.outs[0])
            mean = builder.call(OPS["sum"], weighted, axes=(last,), keepdims=True).atom
        slope = _args(gradient.centred)[0]
        rhs = gradient.centred.rhs
        assert isinstance(rhs, OpCall)
        return tuple(builder.lets), replace(
            gradient.centred, rhs=replace(rhs, args=(slope, mean))
        )

    def group(self, products: list[Let]) -> Gradient | None:
        """The derivative that the Lets of a block are, in the order of `Gradient.members`."""
        scores, slopes, *results = products
        of_scores = next((x for x in self.body.lets if self._weighs(x, slopes)), None)
        if of_scores is None or self.body.results != tuple(x.outs[0] for x in results):
            return None
        makers = self.finder.makers
        centred, p = makers[_args(of_scores)[0]], _args(of_scores)[1]
        exp = makers[_args(makers[p])[0]]
        shifted = makers[_args(exp)[0]]
        scored, of_v = _args(shifted)[0], next((x for x in results if p in _args(x)), None)
        others = [x for x in results if x is not of_v]
        last = of_scores.outs[0]
        cotangent = next(
            (a for x in others for a in _args(x) if self._comes_from(a, last)), last
        )
        q, k = _args(scores)
        flags = _flags(scores)
        softmax = self._between({scored}, p)
        return Gradient(
            scores, self._between(scores.outs, scored), scored, softmax, p,
            any(walk.is_call(x, "equal") for x in softmax), slopes, centred, of_scores,
            self._between({last}, cotangent), cotangent,
            next((x for x in others if _is_of_q(x, cotangent, k, *flags)), None),
            next((x for x in others if _is_of_k(x, cotangent, q, *flags)), None), of_v,
            next((x for x in self.body.lets if not self.finder.readers[x.outs[0]]), None),
        )

    def _weighs(self, let: Let, slopes: Let) -> bool:
        """Whether a Let multiplies slopes, less their means, by the results of a softmax."""
        if not walk.is_call(let, "scale"):
            return False
        centred, share = (self.finder.makers.get(a) for a in _args(let))
        if not walk.is_call(centred, "subtract") or not walk.is_call(share, "divide"):
            return False
        assert centred is not None
        return _args(centred)[0] is slopes.outs[0]

    def _comes_from(self, atom: Atom, source: Atom) -> bool:
        return atom is source or any(
            source in walk.operands(let.rhs) for let in self._between({source}, atom)
        )


def _keeping(gradient: Gradient) -> tuple[tuple[Let, ...], Let | None]:
    """Lets that keep the scores, and the one that shows them to the group; none where they are
    known to be too many."""
    rows = kept_rows(gradient.scored)
    if rows == 0:
        return (), None
    space, builder = shape_of(gradient.scored), Builder()
    with builder.at(gradient.scores.span):
        every = (dims.product(space[:-1]), space[-1])
        matrix = builder.call(OPS["reshape"], gradient.scored, shape=every)
        builder.call(
            OPS["slice"], matrix, starts=(0, 0), sizes=(rows, space[-1]), steps=(1, 1)
        )
        builder.call(OPS["stop_gradient"], builder.lets[-1].outs[0])
    *keeping, shown = builder.lets
    return tuple(keeping), shown


def _is_of_v(let: Let, p: Atom, cotangent: Atom, turned: bool) -> bool:
    """Whether a product is the cotangent of v, transposed as v is."""
    wanted = (cotangent, p) if turned else (p, cotangent)
    return _args(let) == wanted and _flags(let) == (True, False)


def _is_of_q(let: Let, d: Atom, k: Atom, turned_q: bool, turned_k: bool) -> bool:
    """Whether a product is the cotangent of q, transposed as q is."""
    if turned_q:
        return _args(let) == (k, d) and _flags(let) == (turned_k, True)
    return _args(let) == (d, k) and _flags(let) == (False, not turned_k)


def _is_of_k(let: Let, d: Atom, q: Atom, turned_q: bool, turned_k: bool) -> bool:
    """Whether a product is the cotangent of k, transposed as k is."""
    if turned_k:
        return _args(let) == (d, q) and _flags(let) == (True, turned_q)
    return _args(let) == (q, d) and _flags(let) == (not turned_q, False)


def _keeps_rows(let: Let) -> bool:
    """Whether a reduction is one of the last axis, which stays with extent 1."""
    assert isinstance(let.rhs, OpCall)
    rank = len(shape_of(_args(let)[0]))
    axes = [axis % rank for axis in let.rhs.attrs["axes"]]
    return axes == [rank - 1] and bool(let.rhs.attrs["keepdims"])


def _computes_elements(let: Let) -> bool:
    rhs = let.rhs
    return (
        isinstance(rhs, OpCall) and rhs.op.element is not None and not let.dims
        and rhs.op.fusion is not Fusion.REDUCTION and rhs.op.name not in GATHERS and is_pure(let)
    )


def _is_matrix(let: Let) -> bool:
    """Whether a Let gives as much as a matrix of scores, or what is made of nothing."""
    shape = shape_of(let.outs[0])
    if isinstance(let.rhs, OpCall) and let.rhs.op.name in _MADE_OF_NOTHING:
        return bool(shape)
    return len(shape) >= 2 and 1 not in shape[-2:]
