"""What is computed with the elements that a mask chooses is computed with all, and then chosen.

In: a module. Out: the module in which `x[mask].sum()`, `a[mask] -= 1` and `z[m] = z[m] ** 2 + c[m]`
do not gather elements into an array whose length only the running program knows: elementwise
operations are done on whole arrays, a reduction takes its neutral element where the mask is false,
and a store takes what was there. That is a loop over the arrays which vectorises and fuses, where
counting, gathering and scattering are half a dozen of them.

A mask that was made outside of a loop stays as it is inside: what is gathered there may be little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from operator import is_
from typing import Any

import numpy as np

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS, Effect, Fusion
from pyrelay.ir.types import DType, TensorType
from pyrelay.opt.commits import commits
from pyrelay.opt.dce import dce
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module
from pyrelay.opt.shapes import shape_of
from pyrelay.records import dataclass


def masks(module: Module) -> Module:
    """The module without the elements that masks choose, where all may be computed."""
    rules: list[_Rule] = []

    def rule() -> _Rule:
        rules.append(_Rule())
        return rules[-1]

    new = rewrite_module(module, rule, fresh=True)
    if not any(each.used for each in rules):
        return module
    safe = frozenset(v for each in rules for v in each.safe)
    counted = frozenset(s for each in rules for s in each.counts)
    new = dce(commits(new))
    while (fewer := new.with_bodies(lambda body: _without(body, safe, counted))) is not new:
        new = dce(fewer)
    return new


def _without(body: Block, safe: frozenset[Var], counted: frozenset[Symbol]) -> Block:
    """A function's body without what nobody reads of the Lets that cannot raise."""
    uses = walk.use_counts(body)
    symbols: set[Symbol] = set()
    for let in walk.nested_lets(body):
        symbols |= walk.rhs_symbols(let.rhs)
        for var in (*let.outs, *walk.block_binders(let.rhs)):
            symbols.update(walk.attr_symbols(var.type))
    for extent in body.dims:
        symbols.update(dims.symbols(extent))

    def needed(let: Let) -> bool:
        if let.dims and not let.outs:
            return let.dims[0] not in counted or let.dims[0] in symbols
        return len(let.outs) != 1 or let.outs[0] not in safe or bool(uses.get(let.outs[0]))

    def pruned(block: Block) -> Block:
        lets = []
        for let in block.lets:
            if needed(let):
                rhs = walk.replace_blocks(let.rhs, pruned)
                lets.append(let if rhs is let.rhs else replace(let, rhs=rhs))
        if len(lets) == len(block.lets) and all(map(is_, lets, block.lets)):
            return block
        return replace(block, lets=tuple(lets))

    return pruned(body)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a mask is true: `mask` of one or two axes, in the block of `builder`."""

    mask: Atom
    builder: Builder


@dataclass(frozen=True, slots=True)
class _Chosen:
    """An array of the elements that a mask chooses: of `call`, or of the array `whole`."""

    places: _Places
    whole: Atom | None
    call: OpCall | None = None


@dataclass
class _Rule:
    places: dict[Var, _Places] = field(default_factory=dict)  # of indices along one flat axis
    chosen: dict[Var, _Chosen] = field(default_factory=dict)
    made: dict[Var, Atom] = field(default_factory=dict)
    counts: dict[Symbol, Atom] = field(default_factory=dict)  # how often a mask is true
    loops: dict[Atom, tuple[Loop, ...]] = field(default_factory=dict)  # around masks
    safe: set[Var] = field(default_factory=set)  # made by what raises elsewhere, but not here
    used: bool = False

    def __call__(self, let: Let, builder: Builder, scope: Scope) -> Replacement:
        call = let.rhs
        if not isinstance(call, OpCall):
            return None
        if call.op.name == "check_equal" and call.attrs["left"] == call.attrs["right"]:
            return ()
        if call.op.name == "as_extent" and _counts_mask(call.args[0], scope):
            self.counts[let.dims[0]] = call.args[0]
        if len(let.outs) != 1:
            return None
        out = let.outs[0]
        if isinstance(out.type, TensorType) and out.type.dtype == types.bool_ and out.type.shape:
            self.loops[out] = scope.loops
        match call.op.name:
            case "extent":
                symbol = dims.plain_symbol(call.attrs["size"])
                known = self.counts.get(symbol) if symbol is not None else None
                return None if known is None or known.type != out.type else (known,)
            case "true_places":
                found = self._places(call, builder, scope)
                if found is not None:
                    self.places[out] = found
            case "gather":
                self._gather(out, call, builder, scope)
            case "scatter_update":
                return self._store(call, builder, scope)
            case name if name in _NEUTRAL:
                return self._reduce(call, builder)
            case _:
                self._elementwise(out, call, builder)
        return None

    def _is_extent(self, atom: Atom, extent: Extent, scope: Scope) -> bool:
        inner = scope.op(atom, "cast")
        number = atom if inner is None else inner.args[0]
        if isinstance(number, Const):
            return bool(number.value == extent)
        symbol = dims.plain_symbol(extent)
        if symbol in self.counts:
            return self.counts[symbol] is number
        size = scope.op(number, "extent")
        return size is not None and size.attrs["size"] == extent

    def _places(self, call: OpCall, builder: Builder, scope: Scope) -> _Places | None:
        mask = call.args[0]
        ty = mask.type
        assert isinstance(ty, TensorType)
        if dims.plain_symbol(call.attrs["size"]) not in self.counts:
            return None
        flat = scope.op(mask, "reshape")
        if flat is not None and len(shape_of(flat.args[0])) == 2:
            mask = flat.args[0]
        if self.loops.get(mask, ()) != scope.loops:
            return None
        return _Places(mask, builder)

    # -- what is chosen --------------------------------------------------------------------------

    def _at(self, indices: Sequence[Atom], scope: Scope, builder: Builder) -> _Places | None:
        """The places that indices are, one array of them per axis of the mask."""
        if len(indices) == 1:
            found = self.places.get(indices[0])  # type: ignore[arg-type]
            fits = found is not None and len(shape_of(found.mask)) == 1
        elif len(indices) == 2:
            row = scope.op(indices[0], "floor_divide")
            column = scope.op(indices[1], "remainder")
            if row is None or column is None or row.args != column.args:
                return None
            flat, width = row.args
            found = self.places.get(flat)  # type: ignore[arg-type]
            fits = found is not None and len(shape_of(found.mask)) == 2 and self._is_extent(
                width, shape_of(found.mask)[1], scope
            )
        else:
            return None
        return found if fits and found is not None and found.builder is builder else None

    def _gather(self, out: Var, call: OpCall, builder: Builder, scope: Scope) -> None:
        array, *indices = call.args
        if call.attrs["axes"] != tuple(range(len(indices))):
            return
        places = self._at(indices, scope, builder)
        if places is not None and _covers(places, array):
            self.chosen[out] = _Chosen(places, array)
            self.safe.add(out)

    def _elementwise(self, out: Var, call: OpCall, builder: Builder) -> None:
        if call.op.name == "refine":
            same = self.chosen.get(call.args[0])  # type: ignore[arg-type]
            if same is not None and shape_of(out) == shape_of(call.args[0]):
                self.chosen[out] = same
            return
        op = call.op
        if op.fusion is not Fusion.ELEMENTWISE or op.effect is not Effect.PURE or not op.element:
            return
        found = [self.chosen[a] for a in call.args if a in self.chosen]
        if not found or any(c.places is not found[0].places for c in found):
            return
        if found[0].places.builder is not builder:
            return
        rank = len(shape_of(out))
        for atom in call.args:
            inside = atom in self.chosen and shape_of(atom) == shape_of(out)
            if not inside and len(shape_of(atom)) >= rank:
                return
        self.chosen[out] = _Chosen(found[0].places, None, call)

    def _whole(self, atom: Atom, b: Builder) -> Handle:
        """The array of which a mask chooses these elements; what is not chosen is itself."""
        if not isinstance(atom, Var) or atom not in self.chosen:
            return b.handle(atom)
        if atom not in self.made:
            here = self.chosen[atom]
            if here.call is None:
                assert here.whole is not None
                self.made[atom] = here.whole
            else:
                args = [self._whole(a, b) for a in here.call.args]
                shape = shape_of(here.places.mask)
                attrs = dict(here.call.attrs)
                if "shape" in attrs:
                    attrs["shape"] = (*shape, *attrs["shape"][1:])
                self.made[atom] = b.call(here.call.op, *args, **attrs).atom
        return b.handle(self.made[atom])

    # -- what reads it ---------------------------------------------------------------------------

    def _reduce(self, call: OpCall, b: Builder) -> Replacement:
        atom = call.args[0]
        here = self.chosen.get(atom) if isinstance(atom, Var) else None
        if here is None or here.places.builder is not b or call.attrs.get("keepdims"):
            return None
        axes = call.attrs["axes"]
        rank = len(shape_of(atom))
        if len(call.args) != 1 or not axes or axes[0] % rank != 0:
            return None
        self.used = True
        over = len(shape_of(here.places.mask))
        ty = atom.type
        assert isinstance(ty, TensorType)
        whole = self._whole(atom, b)
        mask = _over_rows(b, here.places.mask, rank - 1)
        neutral = constant(_neutral(call.op.name, ty.dtype), TensorType(ty.dtype))
        kept = b.call(OPS["where"], mask, whole, neutral)
        wider = tuple(range(over)) + tuple(a % rank + over - 1 for a in axes[1:])
        return (b.call(call.op, kept, **{**call.attrs, "axes": wider}).atom,)

    def _store(self, call: OpCall, b: Builder, scope: Scope) -> Replacement:
        array, values, *indices = call.args
        here = self.chosen.get(values) if isinstance(values, Var) else None
        if here is None or here.places.builder is not b:
            return None
        places = self._at(indices, scope, b)
        if places is not here.places or call.attrs["axes"] != tuple(range(len(indices))):
            return None
        if not _covers(places, array):
            return None
        mask = _over_rows(b, places.mask, len(shape_of(values)) - 1)
        value = b.call(OPS["where"], mask, self._whole(values, b), array)
        shape = shape_of(array)
        if value.type != array.type:
            return None
        self.used = True
        return (b.call(
            OPS["commit"], array, value, starts=(0,) * len(shape), sizes=shape,
            steps=(1,) * len(shape),
        ).atom,)


#: Reductions, and what changes nothing in them: for those without a number, the extreme of a type.
_NEUTRAL: dict[str, Any] = {
    "sum": 0, "prod": 1, "any": False, "all": True, "min": None, "max": None,
}


def _neutral(name: str, dtype: DType) -> Any:
    found = _NEUTRAL[name]
    if found is not None:
        return dtype.numpy.type(found)
    if dtype.kind == "b":
        return name == "min"
    if dtype.kind == "f":
        return dtype.numpy.type(np.inf if name == "min" else -np.inf)
    limits = np.iinfo(dtype.numpy)
    return dtype.numpy.type(limits.max if name == "min" else limits.min)


def _covers(places: _Places, array: Atom) -> bool:
    shape = shape_of(places.mask)
    return shape_of(array)[: len(shape)] == shape


def _over_rows(b: Builder, mask: Atom, more: int) -> Handle:
    """A mask for arrays with more axes behind those of the mask."""
    if not more:
        return b.handle(mask)
    rank = len(shape_of(mask))
    handle: Handle = b.call(OPS["expand_dims"], mask, axes=tuple(range(rank, rank + more)))
    return handle


def _counts_mask(atom: Atom, scope: Scope) -> bool:
    """Whether a number is how many elements of a mask are true."""
    whole = scope.op(atom, "cast")
    total = scope.op(whole.args[0], "sum") if whole is not None else None
    ones = scope.op(total.args[0], "cast") if total is not None else None
    ty = ones.args[0].type if ones is not None else None
    return isinstance(ty, TensorType) and ty.dtype == types.bool_
