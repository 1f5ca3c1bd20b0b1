"""Parts of parts of arrays, read and written without the part between.

In: reads and updates of a part of an array that are made on a part of it again, such as the
`row = x[i]; row[j] = v` of a program: infer writes a view's update as an update of the part, then
one of the array with the new part. Out: the same in one step, `x[i, j] = v`, which costs one
element and no row. Every rule is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.elements import integer
from pyrelay.opt.places import same_atom
from pyrelay.opt.rewrite import Scope

Positions = Mapping[int, Atom]  # axis -> the position there


def read_of_part(call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    """`index` or `slice` of what `index` or `slice` has read."""
    inner = scope.definition(call.args[0])
    if not isinstance(inner, OpCall):
        return None
    match inner.op.name, call.op.name:
        case "index", "index":
            whole = _merged(inner, _positions(call))
            return _index(b, inner.args[0], whole)
        case "slice", "index":
            at = _positions(call)
            if not _rest_is_whole(inner, at):
                return None
            return _index(b, inner.args[0], _through_slice(b, inner, at))
        case "slice", "slice":
            attrs = _composed(inner, call)
            atom: Atom = b.call(OPS["slice"], inner.args[0], **attrs).atom
            return atom
    return None


def update_of_part(call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    """An update of an array with an updated part of it: `x[i] = (x[i] with [j] = v)`.

    If it writes what is there already, it is the array itself.
    """
    if _is_there(call, scope):
        return call.args[0]
    new = scope.definition(call.args[1])
    if not isinstance(new, OpCall) or new.op.name not in _UPDATES:
        return None
    base = call.args[0]
    match call.op.name, new.op.name:
        case "index_update", "index_update" | "index_add":
            root, at = _indexed(base, scope)
            if not _same_part(_indexed(new.args[0], scope), (root, _joined(base, at, call))):
                return None
            return _update(b, new, base, _merged(call, _positions(new)))
        case "slice_update", "index_update" | "index_add":
            at = _positions(new)
            if not _reads_slice(new.args[0], call, scope) or not _rest_is_whole(call, at):
                return None
            return _update(b, new, base, _through_slice(b, call, at))
        case "slice_update", "slice_update" | "slice_add":
            if not _reads_slice(new.args[0], call, scope):
                return None
            attrs = _composed(call, new)
            atom: Atom = b.call(new.op, base, new.args[1], **attrs).atom
            return atom
    return None


_UPDATES = frozenset(["index_update", "index_add", "slice_update", "slice_add"])


def _is_there(call: OpCall, scope: Scope) -> bool:
    """Whether an update writes what it has just written, or read from the same place."""
    base, value = call.args[:2]
    before = scope.op(base, call.op.name)
    if before is not None and before.args[1] is value and _same_place(before, call):
        return True
    read = scope.op(value, call.op.name.removesuffix("_update"))
    return read is not None and read.args[0] is base and _same_place(read, call)


def _same_place(one: OpCall, other: OpCall) -> bool:
    """Whether two reads or updates of one kind mean the same part of their arrays."""
    if one.attrs != other.attrs:
        return False
    if "axes" not in one.attrs:
        return True
    pairs = zip(_positions(one).values(), _positions(other).values(), strict=True)
    return all(same_atom(a, b) for a, b in pairs)


# -- positions -----------------------------------------------------------------------------------


def _positions(call: OpCall) -> Positions:
    """The positions of a read or update of one element or part."""
    skipped = 1 if call.op.name == "index" else 2
    return dict(zip(call.attrs["axes"], call.args[skipped:], strict=True))


def _rank(atom: Atom) -> int:
    assert isinstance(atom.type, TensorType)
    return atom.type.rank


def _merged(outer: OpCall, inner: Positions) -> Positions:
    """Positions in the array that `outer` takes a part of, for positions in that part."""
    return _lifted(_rank(outer.args[0]), _positions(outer), inner)


def _lifted(rank: int, fixed: Positions, inner: Positions) -> Positions:
    kept = [axis for axis in range(rank) if axis not in fixed]
    found = {**fixed, **{kept[axis]: atom for axis, atom in inner.items()}}
    return dict(sorted(found.items()))


def _indexed(atom: Atom, scope: Scope) -> tuple[Atom, Positions]:
    """The array that an atom is a part of by `index`, and where; the atom itself if it is none."""
    read = scope.op(atom, "index")
    return (atom, {}) if read is None else (read.args[0], _positions(read))


def _joined(base: Atom, at: Positions, call: OpCall) -> Positions:
    """Where in its root an update of `base`, a part of the root at `at`, writes."""
    return _lifted(_rank(base) + len(at), at, _positions(call))


def _same_part(one: tuple[Atom, Positions], other: tuple[Atom, Positions]) -> bool:
    return (
        one[0] is other[0] and one[1].keys() == other[1].keys()
        and all(same_atom(atom, other[1][axis]) for axis, atom in one[1].items())
    )


def _index(b: Builder, array: Atom, at: Positions) -> Atom:
    atom: Atom = b.call(OPS["index"], array, *at.values(), axes=tuple(at)).atom
    return atom


def _update(b: Builder, update: OpCall, array: Atom, at: Positions) -> Atom:
    atom: Atom = b.call(update.op, array, update.args[1], *at.values(), axes=tuple(at)).atom
    return atom


# -- slices --------------------------------------------------------------------------------------


def _reads_slice(atom: Atom, update: OpCall, scope: Scope) -> bool:
    """Whether an atom is the part that a `slice_update` replaces."""
    read = scope.op(atom, "slice")
    return read is not None and read.args[0] is update.args[0] and read.attrs == update.attrs


def _slicing(call: OpCall) -> Sequence[tuple[Extent, Extent, Extent]]:
    attrs = call.attrs
    return list(zip(attrs["starts"], attrs["sizes"], attrs["steps"], strict=True))


def _rest_is_whole(call: OpCall, at: Positions) -> bool:
    """Whether a slice takes all of every axis that is not in `at`."""
    ty = call.args[0].type
    assert isinstance(ty, TensorType)
    return all(
        axis in at or (start == 0 and step == 1 and size == extent)
        for axis, ((start, size, step), extent) in enumerate(
            zip(_slicing(call), ty.shape, strict=True)
        )
    )


def _through_slice(b: Builder, call: OpCall, at: Positions) -> Positions:
    """Positions in the sliced array, for positions in the slice."""
    found: dict[int, Atom] = {}
    for axis, atom in at.items():
        start, _, step = _slicing(call)[axis]
        if start == 0 and step == 1:
            found[axis] = atom
            continue
        position, first, by = (
            integer(b, each) for each in (atom, b.extent(start), b.extent(step))
        )
        found[axis] = (first + position * by).atom
    return found


def _composed(outer: OpCall, inner: OpCall) -> dict[str, Any]:
    """The attributes of the slice `inner` of the slice `outer`, in one."""
    starts, steps = [], []
    for (start, _, step), (first, _, more) in zip(_slicing(outer), _slicing(inner), strict=True):
        starts.append(dims.add(start, dims.multiply(first, step)))
        steps.append(dims.multiply(step, more))
    return {"starts": tuple(starts), "sizes": inner.attrs["sizes"], "steps": tuple(steps)}
