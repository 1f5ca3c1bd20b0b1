"""Axes that a reshape has joined, counted each by itself where something is the same along some.

In: the function of a fused group. Out: one that computes the same elements, in the same order in
memory, where arrays that reshapes make of each other have the axes of all of them. What belongs to
a channel is then read once for the channel, though the loop is over a group of channels as one
axis: an index of that axis would have to be divided for each element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Attrs, Block, Function, Let, OpCall, Var
from pyrelay.ir.op import OPS, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.records import dataclass

Shape = tuple[Extent, ...]

_FEWEST = 8  # elements along which something is the same that are worth a loop of their own
_SAME_ORDER = frozenset(["reshape", "expand_dims", "squeeze"])


def split_axes(function: Function) -> Function:
    """The function with the axes of all shapes, or as it is where no division is saved by that or
    one of its ops is none of arithmetic of elements, reductions and reshapes."""
    split = _splits(function)
    if not split:
        return function
    body = _Writer(split).body(function.body)
    return function if body is None else replace(function, body=body)


@dataclass(frozen=True, slots=True)
class _Split:
    """Axes, and how many of them, none of which has extent 1, each axis of a shape is."""

    axes: Shape
    counts: tuple[int, ...]

    def parts(self) -> list[range]:
        """The numbers of the axes that each axis of the shape is."""
        found, start = [], 0
        for count in self.counts:
            found.append(range(start, start + count))
            start += count
        return found

    def aligned(self, shape: Shape, operand: Shape) -> Shape | None:
        """The shape of an operand of an op whose result has `shape`; None if that is uncertain."""
        offset = len(shape) - len(operand)
        found: list[Extent] = [1] * sum(self.counts[:offset])
        for whole, extent, part in zip(
            shape[offset:], operand, self.parts()[offset:], strict=True
        ):
            if extent == 1:
                found += [1] * len(part)
            elif extent == whole:
                found += [self.axes[k] for k in part]
            else:
                return None
        return tuple(found)


# -- which axes there are ----------------------------------------------------------------------


def _splits(function: Function) -> dict[Shape, _Split]:
    """How the shapes that reshapes make of each other are split, where that is worth it."""
    found: dict[Shape, _Split] = {}
    for shapes in _reshaped(function):
        axes = _axes_of(shapes)
        counts = {} if axes is None else {shape: _counts(shape, axes) for shape in shapes}
        splits = {
            shape: _Split(axes, each) for shape, each in counts.items()
            if axes is not None and each is not None
        }
        if len(splits) == len(shapes) and _worthwhile(function, splits):
            found |= splits
    return found


def _reshaped(function: Function) -> list[list[Shape]]:
    """Shapes that reshapes make of each other, and that differ in more than axes of extent 1."""
    groups: list[dict[Shape, None]] = []
    for let in function.body.lets:
        if not isinstance(let.rhs, OpCall) or let.rhs.op.name not in _SAME_ORDER:
            continue
        pair = dict.fromkeys((shape_of(let.rhs.args[0]), shape_of(let.outs[0])))
        met = [group for group in groups if group.keys() & pair.keys()]
        groups = [group for group in groups if group not in met]
        groups.append({shape: None for group in (*met, pair) for shape in group})
    return [list(g) for g in groups if len({_long(shape) for shape in g}) > 1]


def _long(shape: Shape) -> Shape:
    return tuple(extent for extent in shape if extent != 1)


def _axes_of(shapes: Sequence[Shape]) -> Shape | None:
    """The fewest axes that neighbours of are the axes of each shape; None if none are known."""
    axes = _long(shapes[0])
    for shape in shapes[1:]:
        both = _common(axes, _long(shape))
        if both is None:
            return None
        axes = both
    return axes


def _common(a: Shape, b: Shape) -> Shape | None:
    """The axes of both of two shapes of one size."""
    found: list[Extent] = []
    left, right = list(a[::-1]), list(b[::-1])
    while left and right:
        one, other = left.pop(), right.pop()
        if one == other:
            found.append(one)
            continue
        for whole, part, rest in ((one, other, left), (other, one, right)):
            more = None if part == 0 else dims.divided_exactly(whole, part)
            if more is not None:
                found.append(part)
                rest.append(more)
                break
        else:
            return None
    return tuple(found) if not left and not right else None


def _counts(shape: Shape, axes: Shape) -> tuple[int, ...] | None:
    """How many of the axes each axis of a shape is; None if that is uncertain."""
    counts, start = [], 0
    for extent in shape:
        ends = range(start + 1, len(axes) + 1) if extent != 1 else range(start, start + 1)
        stop = next((k for k in ends if dims.product(axes[start:k]) == extent), None)
        if stop is None:
            return None
        counts.append(stop - start)
        start = stop
    return tuple(counts) if start == len(axes) else None


def _worthwhile(function: Function, splits: dict[Shape, _Split]) -> bool:
    """Whether the index of an axis of something that loops go over would have to be divided for
    what is the same along some of the axes that it is, and never for a few elements only."""
    looped = {shape_of(result) for result in function.body.results}
    looped |= {
        shape_of(let.rhs.args[0]) for let in function.body.lets
        if isinstance(let.rhs, OpCall) and let.rhs.op.fusion is Fusion.REDUCTION
    }
    joined = [part for shape in looped & splits.keys() for part in splits[shape].parts()]
    found = False
    for let in function.body.lets:
        split = splits.get(shape_of(let.outs[0]))
        if split is None or not isinstance(let.rhs, OpCall) or not _broadcasts(let.rhs):
            continue
        for operand in filter(is_array, let.rhs.args):
            own = split.aligned(shape_of(let.outs[0]), shape_of(operand))
            if own is None:
                return False
            for part in joined:
                repeated = [own[k] == 1 for k in part]
                if len(set(repeated)) < 2:
                    continue
                last = max(k for k, x in enumerate(repeated) if x != repeated[-1])
                stretch = dims.product(split.axes[k] for k in part[last + 1 :])
                if isinstance(stretch, int) and stretch < _FEWEST:
                    return False
                found = True
    return found


def _broadcasts(call: OpCall) -> bool:
    return call.op.fusion is Fusion.ELEMENTWISE or call.op.name == "broadcast_to"


# -- the function that has them ----------------------------------------------------------------


class _Writer:
    """Writes a function in which arrays of the shapes in `splits` have all axes."""

    def __init__(self, splits: dict[Shape, _Split]) -> None:
        self.splits = splits
        self.lets: list[Let] = []
        self.made: dict[Atom, Var] = {}  # with all axes, in place of what there is no more
        self.sources: dict[Atom, Atom] = {}  # what something with other axes is made of
        self.shaped: dict[tuple[Atom, Shape], Var] = {}

    def body(self, body: Block) -> Block | None:
        """The block; None if one of its ops is not known here, or if two results would be one."""
        for let in body.lets:
            if not self._let(let):
                return None
        results = tuple(self.made.get(atom, atom) for atom in body.results)
        computed = {let.outs[0] for let in self.lets}
        if not computed.issuperset(results) or len(set(results)) < len(set(body.results)):
            return None
        return replace(body, lets=_read_lets(self.lets, results), results=results)

    def _let(self, let: Let) -> bool:
        """Writes what a Let computes; False if that is not known here."""
        call, split = let.rhs, self.splits.get(shape_of(let.outs[0]))
        if not isinstance(call, OpCall) or len(let.outs) != 1:
            return False
        if call.op.name in _SAME_ORDER:
            self.sources[let.outs[0]] = self.sources.get(call.args[0], call.args[0])
            if split is not None:
                self.made[let.outs[0]] = self._whole(call.args[0], split, let)
                return True
        elif split is not None and _broadcasts(call):
            return self._elements(let, call, split)
        elif call.op.fusion is Fusion.REDUCTION and shape_of(call.args[0]) in self.splits:
            return self._reduction(let, call)
        if any(atom in self.made for atom in call.args):
            return False
        self.lets.append(let)
        return True

    def _elements(self, let: Let, call: OpCall, split: _Split) -> bool:
        """Arithmetic of elements, or what repeats them."""
        operands: list[Atom] = []
        for atom in call.args:
            own = self.splits.get(shape_of(atom))
            source = self.sources.get(atom, atom)
            if not is_array(source):
                operands.append(source)
            elif own is not None and own.axes == split.axes:
                operands.append(self._whole(atom, split, let))
            else:
                shape = split.aligned(shape_of(let.outs[0]), shape_of(atom))
                if shape is None or atom in self.made:
                    return False
                operands.append(self._reshaped(source, shape, let))
        attrs = call.attrs
        if call.op.name == "broadcast_to":
            attrs = Attrs(**{**attrs, "shape": split.axes})
        whole = OpCall(call.op, tuple(operands), attrs)
        self.made[let.outs[0]] = self._bound(whole, let.outs[0], split.axes, let)
        return True

    def _reduction(self, let: Let, call: OpCall) -> bool:
        """A reduction of all axes that are parts of those that it is one of."""
        if len(call.args) != 1 or not {"axes", "keepdims"} <= call.attrs.keys():
            return False
        (atom,) = call.args
        shape = shape_of(atom)
        split, reduced = self.splits[shape], {axis % len(shape) for axis in call.attrs["axes"]}
        parts = split.parts()
        kept = [part for axis, part in enumerate(parts) if axis not in reduced]
        axes = tuple(k for axis in sorted(reduced) for k in parts[axis])
        if not axes or any(len(part) > 1 for part in kept):
            return False
        rest = tuple(split.axes[k] for part in kept for k in part)
        attrs = Attrs(**{**call.attrs, "axes": axes, "keepdims": False})
        whole = OpCall(call.op, (self._whole(atom, split, let),), attrs)
        if shape_of(let.outs[0]) == rest:
            self.lets.append(Let(let.outs, whole, span=let.span))
            return True
        back = Attrs(shape=shape_of(let.outs[0]))
        made = self._bound(whole, let.outs[0], rest, let)
        self.lets.append(Let(let.outs, OpCall(OPS["reshape"], (made,), back), span=let.span))
        return True

    def _whole(self, atom: Atom, split: _Split, let: Let) -> Var:
        """What stands for an array, with all axes."""
        made = self.made.get(atom)
        return self._reshaped(atom, split.axes, let) if made is None else made

    def _reshaped(self, atom: Atom, shape: Shape, let: Let) -> Var:
        if isinstance(atom, Var) and shape_of(atom) == shape:
            return atom
        if (atom, shape) not in self.shaped:
            call = OpCall(OPS["reshape"], (atom,), Attrs(shape=shape))
            self.shaped[atom, shape] = self._bound(call, atom, shape, let)
        return self.shaped[atom, shape]

    def _bound(self, call: OpCall, like: Atom, shape: Shape, let: Let) -> Var:
        """A variable for what a Let calls: of this shape and another one's type of elements."""
        assert isinstance(like.type, TensorType)
        var = Var(let.outs[0].name, TensorType(like.type.dtype, shape))
        self.lets.append(Let((var,), call, span=let.span))
        return var


def _read_lets(lets: Sequence[Let], results: Sequence[Atom]) -> tuple[Let, ...]:
    """Lets without reshapes that nothing reads."""
    read, kept = set(results), []
    for let in reversed(lets):
        call = let.rhs
        assert isinstance(call, OpCall)
        if let.outs[0] in read or call.op.name not in _SAME_ORDER:
            read.update(call.args)
            kept.append(let)
    return tuple(kept[::-1])
