"""Which Lets become part of one serial kernel: scalar control flow, and vectors inside loops.

In: a block of Core. Out: its Lets that compute with scalars and array elements only, and the loops
that compute with rows of arrays as well, where launching a kernel for each row would cost more than
computing it: loops inside loops, loops over what has as many rows as an array, and loops over small
arrays of known size. Where their arrays live is for `storage.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from pyrelay.ir import dims, limits, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, OpCall, Var
from pyrelay.ir.op import Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.ops.work import element_work, most_elements
from pyrelay.opt import places
from pyrelay.opt.bounds import Bounds
from pyrelay.opt.shapes import GATHERS, is_array, shape_of
from pyrelay.opt.storage import storage_of, uses_linearly, with_copies
from pyrelay.opt.storage_facts import MOVES

#: Ops without an element rule that mean the same inside a kernel.
_ALSO_IN_KERNELS = frozenset(["extent", "undef", "raise"])
#: The same beside vectors: they bind extents, or check them.
_OF_EXTENTS = frozenset(["as_extent", "check_equal"])
#: How deep loops and branches of one kernel may nest: Python refuses 20 nested loops.
_DEEPEST = 12
_LARGEST_VECTORS = 600  # Lets of a loop over vectors

_few_threads: ContextVar[bool] = ContextVar("few_threads", default=False)


@contextmanager
def with_few_threads(few: bool) -> Iterator[None]:
    """Choose loops for a device whose threads are too few to pay for an array of few elements.

    There loops over such arrays are kernels where numbers say how few they are. A GPU has a thread
    for each element; what has `dims.NEAR` elements by a guard was asked for by `infer`, for CPUs.
    """
    token = _few_threads.set(few)
    try:
        yield
    finally:
        _few_threads.reset(token)


def is_scalar_op(rhs: OpCall) -> bool:
    """Whether an op takes scalars, or an element of an array, to a scalar or an updated array."""
    if places.updates_element(rhs):
        return not any(map(is_array, rhs.args[1:]))
    if places.reads_element(rhs):
        return True
    if any(not isinstance(a.type, TensorType) or a.type.shape for a in rhs.args):
        return False
    if rhs.op.name in _ALSO_IN_KERNELS:
        return not _is_undefined_array(rhs)
    return (
        rhs.op.element is not None and rhs.op.fusion is Fusion.ELEMENTWISE
    )


def _is_undefined_array(rhs: OpCall) -> bool:
    """Whether an op makes an array (or tape) that nobody reads."""
    ty = rhs.attrs.get("type")
    return rhs.op.name == "undef" and not (isinstance(ty, TensorType) and not ty.shape)


def is_vector_op(let: Let, rhs: OpCall) -> bool:
    """Whether an op computes with arrays element by element, so that a serial loop can."""
    if rhs.op.name in _OF_EXTENTS or rhs.op.name == "undef":
        return True
    if any(not isinstance(a.type, TensorType) for a in (*rhs.args, *let.outs)):
        return False
    return rhs.op.element is not None and rhs.op.effect is not Effect.HOST


def scalar_lets(block: Block) -> set[Let]:
    """Lets in a block and inside it that may become part of a serial kernel.

    Those inside a loop over vectors are not named, unless they are scalar themselves.
    """
    depth: dict[Let, int] = {}
    vectors: dict[Let, int] = {}  # what is fit for a loop over vectors -> how deep it nests
    for let in reversed(list(walk.nested_lets(block))):
        rhs = let.rhs
        if any(not isinstance(v.type, TensorType) for v in let.outs):
            continue
        if isinstance(rhs, OpCall):
            view = places.is_view(rhs) and is_array(let.outs[0])
            if not let.dims and (is_scalar_op(rhs) or view):
                depth[let] = 0
            elif is_vector_op(let, rhs):
                vectors[let] = 0
            continue
        if let.dims or not isinstance(rhs, (If, Loop)) or (isinstance(rhs, Loop) and rhs.dims):
            continue
        inner = [each for b in walk.blocks(rhs) for each in b.lets]
        if any(each not in depth and each not in vectors for each in inner):
            continue
        deepest = 1 + max((depth.get(e, vectors.get(e, 0)) for e in inner), default=0)
        if deepest <= _DEEPEST:
            (depth if all(each in depth for each in inner) else vectors)[let] = deepest
    return set(depth) | set(_VectorLoops(block, depth, vectors).chosen())


def is_kernel(let: Let, scalar: set[Let]) -> bool:
    """Whether a loop of a block, of which these Lets are scalar, becomes a kernel."""
    assert isinstance(let.rhs, Loop)
    if let not in scalar:
        return False
    return uses_linearly([let], let.outs) or uses_linearly(
        [with_copies(let, let.rhs)[0]], let.outs
    )


class _VectorLoops:
    """The loops over vectors of a block that are worth a kernel, the outermost ones."""

    def __init__(
        self, block: Block, scalar: dict[Let, int], vectors: dict[Let, int]
    ) -> None:
        self.source, self.scalar, self.vectors = block, scalar, vectors
        self.makers: dict[Atom, Let] = {}

    def chosen(self) -> Iterable[Let]:
        """The loops, each of which becomes a kernel with all that is inside."""
        if not self.vectors:
            return
        self.makers = {
            out: let for let in walk.nested_lets(self.source) for out in let.outs
        }
        pending: list[tuple[Block, tuple[Loop, ...]]] = [(self.source, ())]
        while pending:
            block, around = pending.pop()
            for let in block.lets:
                rhs = let.rhs
                if isinstance(rhs, Loop):
                    fit = let in self.vectors and self._pays(let, rhs, around)
                    if fit and self._has_memory(let, rhs):
                        yield let
                    elif let not in self.scalar:
                        pending += [(b, (*around, rhs)) for b in walk.blocks(rhs)]
                elif let not in self.scalar:
                    pending += [(b, around) for b in walk.blocks(rhs)]

    def _has_memory(self, let: Let, loop: Loop) -> bool:
        """Whether a loop can use its arrays, and how large they get is known in its kernel."""
        storage = storage_of([let], let.outs)
        if storage is None:
            storage = storage_of([with_copies(let, loop)[0]], let.outs)
        if storage is None:
            return False
        free = walk.free_vars(Block((let,), ()))
        made = (self.makers[var] for var in free if var in self.makers)
        extents = [let for let in made if walk.is_call(let, "extent")]
        bounds = Bounds(Block((*extents, let), ()))
        return all(bounds.of(var) is not None for var in storage.own)

    def _pays(self, let: Let, loop: Loop, around: tuple[Loop, ...]) -> bool:
        """Whether kernels of their own for the vectors in a loop would cost more than they do."""
        inside, work, largest = 0, 0, 0  # of arrays whose few elements are known
        waiting = [(b, (*around, loop)) for b in walk.blocks(loop)]
        while waiting:
            block, loops = waiting.pop()
            for each in block.lets:
                inside += 1
                if isinstance(each.rhs, Loop):
                    waiting += [(b, (*loops, each.rhs)) for b in walk.blocks(each.rhs)]
                elif isinstance(each.rhs, If):
                    waiting += [(b, loops) for b in walk.blocks(each.rhs)]
                elif each not in self.scalar and not self._is_short(each.rhs, loops):
                    call = walk.call_of(each)
                    size = _known_size(call)
                    if size is None:
                        return False
                    work += element_work(call)
                    largest = max(largest, size)
        return inside <= _LARGEST_VECTORS and largest <= most_elements(work)

    def _is_short(self, rhs: object, loops: Sequence[Loop]) -> bool:
        """Whether what an op computes is little enough for the place where it stands."""
        assert isinstance(rhs, OpCall)
        if rhs.op.name in places.UPDATES and self._is_update(rhs.args[1]):
            return True  # of the place that the inner one updates, at the cost of that
        long = sum(not limits.is_short(extent) for extent in _space(rhs))
        if long == 0 or _was_asked_to_be_near(_space(rhs)):
            return True
        if long == 1:
            return (
                len(loops) > 1 or self._has_size_of_array(loops[0].count)
                or (loops[0].count is None and self._goes_through_an_array(loops[0]))
            )
        window = rhs.op.name not in places.UPDATES
        return len(loops) > long or (len(loops) == long and window)

    def _goes_through_an_array(self, loop: Loop) -> bool:
        """Whether each round goes through elements one by one, which costs more than computing with
        all of them: a queue of places, each with a row of neighbours."""
        inner = (let.rhs for let in walk.nested_lets(loop.body) if isinstance(let.rhs, Loop))
        return any(self._has_size_of_array(each.count) for each in inner)

    def _is_update(self, atom: Atom) -> bool:
        let = self.makers.get(atom)
        return let is not None and isinstance(let.rhs, OpCall) and (
            let.rhs.op.name in places.UPDATES
        )

    def _has_size_of_array(self, count: Atom | None) -> bool:
        """Whether a number of rounds is computed from an extent."""
        pending, seen = [count], {count}
        while pending:
            let = self.makers.get(pending.pop())  # type: ignore[arg-type]
            if let is None or not isinstance(let.rhs, OpCall):
                continue
            if let.rhs.op.name == "extent":
                return not isinstance(let.rhs.attrs["size"], int)
            if not any(map(is_array, let.rhs.args)):
                fresh = [a for a in let.rhs.args if isinstance(a, Var) and a not in seen]
                seen.update(fresh)
                pending += fresh
        return False


def _was_asked_to_be_near(space: tuple[Extent, ...]) -> bool:
    """Whether an array has few elements because that was asked for: symbols say so of themselves,
    which those of programs for GPUs do not."""
    size = limits.greatest_size(space)
    asked = any(s.most is not None for extent in space for s in dims.symbols(extent))
    return asked and size is not None and size <= dims.NEAR


def _known_size(call: OpCall) -> int | None:
    """The number of elements over which an op computes, at most; None if nobody knows, or if they
    have a thread each."""
    return limits.greatest_size(_space(call)) if _few_threads.get() else None


def _space(rhs: OpCall) -> tuple[Extent, ...]:
    """The axes over which an op computes; none for what only moves elements."""
    if rhs.op.name in MOVES or rhs.op.name in _OF_EXTENTS:
        return ()
    if rhs.op.name in places.UPDATES:
        return places.part_shape(rhs)
    shapes = [shape_of(a) for a in rhs.args]
    if rhs.op.name in GATHERS:
        kept = (d for k, d in enumerate(shapes[0]) if k not in rhs.attrs["axes"])
        return (*max(shapes[1:], key=len), *kept)
    return max(shapes, key=len, default=())
