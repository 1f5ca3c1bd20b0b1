"""Straight-line code for many instances at once: every op over one more axis, in front.

In: the Lets of one instance, and which of their variables differ between instances. Out: the same
computation for all of them; a value that is the same for all instances stays as it is. This is
what vectorising maps do (`vmap`; Bradbury et al., JAX, 2018): a rule per op says where the new axis
goes, and a product of a matrix with a vector of each instance becomes one product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Const, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS, Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.ops.running import RUNNING

Attributes = Mapping[str, Any]


class Cannot(Exception):
    """There is no rule for this code."""


def is_batchable(let: Let) -> bool:
    """True if `Batch.let` has a rule for a Let: a pure op call, or a counted loop of such."""
    rhs = let.rhs
    if let.dims or not all(isinstance(v.type, TensorType) for v in let.outs):
        return False
    if isinstance(rhs, Loop):
        counted = rhs.count is not None and rhs.test is None and not rhs.exits and not rhs.dims
        return counted and all(map(is_batchable, rhs.body.lets))
    if not isinstance(rhs, OpCall) or effect_of(rhs) is not Effect.PURE:
        return False
    return rhs.op.name in _RULES or _is_elementwise(rhs)


def _is_elementwise(call: OpCall) -> bool:
    return call.op.fusion is Fusion.ELEMENTWISE and bool(call.args)


class Batch:
    """Code for `size` instances, emitted into a builder.

    `values` holds what each variable became: its values of all instances along the first axis if
    it is in `differing`, else its one value.
    """

    def __init__(self, builder: Builder, size: Extent) -> None:
        self.builder, self.size = builder, size
        self.values: dict[Var, Handle] = {}
        self.differing: set[Var] = set()

    def bind(self, var: Var, values: Handle) -> None:
        """Give a variable its values of all instances."""
        self.values[var] = values
        self.differing.add(var)

    def let(self, let: Let) -> None:
        """Emit a Let for all instances. Raises Cannot if there is no rule for it."""
        call = let.rhs
        with self.builder.at(let.span):
            if isinstance(call, Loop):
                self._loop(let, call)
                return
            assert isinstance(call, OpCall)
            if not any(a in self.differing for a in call.args):
                args = tuple(self.one(a).atom for a in call.args)
                outs = self.builder.bind(
                    OpCall(call.op, args, call.attrs), [v.type for v in let.outs]  # type: ignore[misc]
                )
                self.values.update(zip(let.outs, outs, strict=True))
                return
            rule = _RULES.get(call.op.name)
            made = rule(self, call) if rule is not None else self._elementwise(call)
            for out, value in zip(let.outs, made, strict=True):
                self.bind(out, value)

    def one(self, atom: Atom) -> Handle:
        """The value of an atom that does not differ between instances."""
        if isinstance(atom, Const):
            return self.builder.handle(atom)
        return self.builder.handle(self.values.get(atom, atom))

    def all(self, atom: Atom) -> Handle:
        """The values of an atom of all instances, repeated if they are the same."""
        value = self.one(atom)
        if atom in self.differing:
            return value
        wanted = (self.size, *_type(atom).shape)
        return self.builder.full(value, wanted, value.dtype) if not value.rank else self.op(
            "broadcast_to", value, shape=wanted
        )

    def aligned(self, atom: Atom, rank: int) -> Handle:
        """An operand that broadcasts, after the first axis, with operands of `rank` axes."""
        value = self.one(atom)
        missing = rank - _type(atom).rank
        if atom not in self.differing or missing <= 0:
            return value
        return self.op("expand_dims", value, axes=tuple(range(1, 1 + missing)))

    def op(self, name: str, *operands: Any, **attrs: Any) -> Handle:
        """Emit an op of one result."""
        handle: Handle = self.builder.call(OPS[name], *operands, **attrs)
        return handle

    def _loop(self, let: Let, loop: Loop) -> None:
        """A loop that all instances run through together."""
        assert loop.count is not None
        if loop.count in self.differing:
            raise Cannot("a loop that runs longer for some")
        inner = Batch(self.builder.nested(), self.size)
        inner.values, inner.differing = dict(self.values), set(self.differing)
        index = None
        if loop.index is not None:
            index = Var(loop.index.name, loop.index.type, span=loop.index.span)
            inner.values[loop.index] = inner.builder.handle(index)
        kinds = [TensorType(_type(v).dtype, (self.size, *_type(v).shape)) for v in loop.carried]
        carried = tuple(
            Var(v.name, ty, span=v.span) for v, ty in zip(loop.carried, kinds, strict=True)
        )
        for old, new in zip(loop.carried, carried, strict=True):
            inner.bind(old, inner.builder.handle(new))
        init = [
            self.builder.cast(self.all(a), t.dtype)
            for a, t in zip(loop.init, kinds, strict=True)
        ]
        for each in loop.body.lets:
            inner.let(each)
        results = [inner.all(a) for a in loop.body.results]
        node = Loop(
            carried, tuple(init), inner.builder.block(results), count=self.one(loop.count).atom,
            index=index,
        )
        for out, values in zip(let.outs, self.builder.bind(node, kinds), strict=True):
            self.bind(out, values)

    def _elementwise(self, call: OpCall) -> Sequence[Handle]:
        rank = max(_type(a).rank for a in call.args)
        operands = [self.aligned(a, rank) for a in call.args]
        attrs = dict(call.attrs)
        if "weak" in attrs:
            attrs["weak"] = False
        return (self.op(call.op.name, *operands, **attrs),)


def _type(atom: Atom) -> TensorType:
    assert isinstance(atom.type, TensorType)
    return atom.type


# -- rules: how an op with operands that differ is spelled with one more axis --------------------


def _with_shape(batch: Batch, call: OpCall) -> Sequence[Handle]:
    shape = (batch.size, *call.attrs["shape"])
    value = batch.aligned(call.args[0], len(shape) - 1 if call.op.name == "broadcast_to" else 0)
    return (batch.op(call.op.name, value, shape=shape),)


def _axes_of_result(batch: Batch, call: OpCall) -> Sequence[Handle]:
    rank = _type(call.args[0]).rank + len(call.attrs["axes"])
    axes = tuple(a % rank + 1 for a in call.attrs["axes"])
    return (batch.op(call.op.name, batch.one(call.args[0]), axes=axes),)


def _axes_of_operand(batch: Batch, call: OpCall) -> Sequence[Handle]:
    rank = _type(call.args[0]).rank
    attrs = dict(call.attrs)
    if "axes" in attrs:
        attrs["axes"] = tuple(a % rank + 1 for a in attrs["axes"])
    else:
        attrs["axis"] = attrs["axis"] % rank + 1
    return (batch.op(call.op.name, batch.one(call.args[0]), **attrs),)


def _given(batch: Batch, call: OpCall) -> Sequence[Handle]:
    rank = _type(call.args[0]).rank
    attrs = {**call.attrs, "axes": tuple(a % rank + 1 for a in call.attrs["axes"])}
    return (batch.op(call.op.name, *map(batch.all, call.args), **attrs),)


def _position(batch: Batch, call: OpCall) -> Sequence[Handle]:
    (x,) = call.args
    if len(call.attrs["axes"]) == 1:
        return _axes_of_operand(batch, call)
    if call.attrs["keepdims"]:
        raise Cannot(call.op.name)
    flat = batch.op("reshape", batch.one(x), shape=(batch.size, _type(x).size))
    return (batch.op(call.op.name, flat, axes=(1,), keepdims=False),)


def _transpose(batch: Batch, call: OpCall) -> Sequence[Handle]:
    axes = (0, *(a + 1 for a in call.attrs["axes"]))
    return (batch.op("transpose", batch.one(call.args[0]), axes=axes),)


def _part(attrs: Attributes, size: Extent) -> dict[str, Any]:
    return {
        "starts": (0, *attrs["starts"]), "sizes": (size, *attrs["sizes"]),
        "steps": (1, *attrs["steps"]),
    }


def _slice(batch: Batch, call: OpCall) -> Sequence[Handle]:
    return (batch.op("slice", batch.one(call.args[0]), **_part(call.attrs, batch.size)),)


def _slice_stored(batch: Batch, call: OpCall) -> Sequence[Handle]:
    x, v = call.args
    value = batch.aligned(v, _type(x).rank)
    return (batch.op(call.op.name, batch.all(x), value, **_part(call.attrs, batch.size)),)


def _pad(batch: Batch, call: OpCall) -> Sequence[Handle]:
    x, border = call.args
    if border in batch.differing:
        raise Cannot("pad")
    attrs = {k: (0, *v) for k, v in call.attrs.items()}
    return (batch.op("pad", batch.one(x), batch.one(border), **attrs),)


def _concatenate(batch: Batch, call: OpCall) -> Sequence[Handle]:
    axis = call.attrs["axis"] % _type(call.args[0]).rank + 1
    return (batch.op("concatenate", *map(batch.all, call.args), axis=axis),)


def _index(batch: Batch, call: OpCall) -> Sequence[Handle]:
    x, *positions = call.args
    rank = _type(x).rank
    axes = tuple(a % rank for a in call.attrs["axes"])
    if not any(p in batch.differing for p in positions):
        read = batch.op(
            "index", batch.one(x), *map(batch.one, positions), axes=tuple(a + 1 for a in axes)
        )
        return (read,)
    at = [batch.builder.handle(batch.builder.cast(batch.all(p), types.i64)) for p in positions]
    if x in batch.differing:
        rows = batch.op("iota", size=batch.size, dtype=types.i64)
        return (_in_front(batch, batch.one(x), [rows, *at], (0, *(a + 1 for a in axes))),)
    return (_in_front(batch, batch.one(x), at, axes),)


def _in_front(
    batch: Batch, x: Handle, positions: Sequence[Handle], axes: tuple[int, ...]
) -> Handle:
    """`gather` whose axis of positions comes first."""
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    axes, positions = tuple(axes[k] for k in order), [positions[k] for k in order]
    found = batch.op("gather", x, *positions, axes=axes)
    contiguous = axes == tuple(range(axes[0], axes[0] + len(axes)))
    if not contiguous or axes[0] == 0:
        return found
    rest = [k for k in range(found.rank) if k != axes[0]]
    return batch.op("transpose", found, axes=(axes[0], *rest))


def _index_stored(batch: Batch, call: OpCall) -> Sequence[Handle]:
    x, v, *positions = call.args
    rank = _type(x).rank
    axes = tuple(a % rank for a in call.attrs["axes"])
    if any(p in batch.differing for p in positions):
        return (_scattered(batch, call, axes),)
    value = batch.aligned(v, rank - len(axes))
    stored = batch.op(
        call.op.name, batch.all(x), value, *map(batch.one, positions),
        axes=tuple(a + 1 for a in axes),
    )
    return (stored,)


def _scattered(batch: Batch, call: OpCall, axes: tuple[int, ...]) -> Handle:
    """What is stored at positions of each instance's own, which are no two the same."""
    x, v, *positions = call.args
    if axes != tuple(range(len(axes))):
        raise Cannot(call.op.name)
    rows = batch.op("iota", size=batch.size, dtype=types.i64)
    at = [batch.builder.handle(batch.builder.cast(batch.all(p), types.i64)) for p in positions]
    whole = (batch.size, *_type(x).shape[len(axes):])
    value = batch.aligned(v, len(whole) - 1)
    if value.shape != whole:
        value = batch.op("broadcast_to", value, shape=whole)
    name = "scatter_add" if call.op.name == "index_add" else "scatter_update"
    return batch.op(name, batch.all(x), value, rows, *at, axes=tuple(range(1 + len(axes))))


def _matmul(batch: Batch, call: OpCall) -> Sequence[Handle]:
    a, b = call.args
    turned_a, turned_b = call.attrs["transpose_a"], call.attrs["transpose_b"]
    matrices = _type(a).rank == 2 and _type(b).rank == 2
    if matrices and b not in batch.differing:
        return (_rows_times(batch, _turned(batch, a, turned_a), batch.one(b), turned_b),)
    if matrices and a not in batch.differing:
        columns = _turned(batch, b, not turned_b)
        product = _rows_times(batch, columns, batch.one(a), not turned_a)
        return (_last_axes_swapped(batch, product),)
    rank = max(_type(a).rank, _type(b).rank)
    left, right = batch.aligned(a, rank), batch.aligned(b, rank)
    product = batch.op("matmul", left, right, transpose_a=turned_a, transpose_b=turned_b)
    return (product,)


def _turned(batch: Batch, atom: Atom, turned: bool) -> Handle:
    """The matrices of all instances, transposed if asked."""
    value = batch.one(atom)
    return _last_axes_swapped(batch, value) if turned else value


def _last_axes_swapped(batch: Batch, value: Handle) -> Handle:
    n, rows, columns = value.shape
    if 1 in (rows, columns):  # the same elements in the same order
        return batch.op("reshape", value, shape=(n, columns, rows))
    return batch.op("transpose", value, axes=(0, 2, 1))


def _rows_times(batch: Batch, rows: Handle, matrix: Handle, turned: bool) -> Handle:
    """The product of the rows of all instances with one matrix, as one product of matrices."""
    n, count, inner = rows.shape
    flat = batch.op("reshape", rows, shape=(dims.multiply(n, count), inner))
    product = batch.op("matmul", flat, matrix, transpose_a=False, transpose_b=turned)
    return batch.op("reshape", product, shape=(n, count, product.shape[1]))


_Rule = Callable[[Batch, OpCall], Sequence[Handle]]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("reshape", "refine", "broadcast_to"), _with_shape),
    "expand_dims": _axes_of_result,
    **dict.fromkeys(
        (
            "squeeze", "sum", "prod", "max", "min", "any", "all", "cumsum", "cumprod",
            *(scan.name for scan in RUNNING.values()),
        ),
        _axes_of_operand,
    ),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp"), _given),
    **dict.fromkeys(("argmax", "argmin"), _position),
    "transpose": _transpose,
    "slice": _slice,
    **dict.fromkeys(("slice_update", "slice_add"), _slice_stored),
    "pad": _pad,
    "concatenate": _concatenate,
    "index": _index,
    **dict.fromkeys(("index_update", "index_add"), _index_stored),
    "matmul": _matmul,
    **dict.fromkeys(("iota", "undef", "extent"), lambda batch, call: ()),  # of no operands
}
