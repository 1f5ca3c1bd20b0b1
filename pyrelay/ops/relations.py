"""Type relations shared by the ops: operand types and attributes in, result types out.

A relation raises `RelationError` in the user's words; its text follows the op as the user spelled
it: "'*' " + "cannot combine f32[4, 3] and f32[4]". In a hint, "{arg}" stands for the source text of
the operand at fault. Broadcasting is NumPy's, aligned from the right; whether extents are equal, or
1 where they are not, is asked of `dims.equal`, whose answer may cost a guard or a run-time check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay.ir import dims, limits, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import Relation, RelationError
from pyrelay.ir.types import DType, TensorType, Type

Shape = tuple[Extent, ...]
Attributes = Mapping[str, Any]
_PLACES = ("last", "second to last", "third to last")
_KIND_NAMES = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "float", "c": "complex"}


def show_shape(shape: Sequence[Extent]) -> str:
    """A shape as Python writes a tuple."""
    inside = ", ".join(dims.show(d) for d in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def tensors(args: Sequence[Type]) -> tuple[TensorType, ...]:
    """The operand types, which must be tensors. Raises RelationError for a tape."""
    for k, ty in enumerate(args):
        if not isinstance(ty, TensorType):
            raise RelationError("takes arrays and numbers only", arg=k, kind="type")
    return tuple(args)  # type: ignore[arg-type]


def same_extent(left: Extent, right: Extent) -> Extent | None:
    """The common extent (a number if either is one), or None if they differ."""
    if not dims.equal(left, right):
        return None
    return left if isinstance(left, int) else right


def broadcast(operands: Sequence[TensorType]) -> Shape:
    """NumPy's common shape of the operands. Raises RelationError."""
    rank = max((t.rank for t in operands), default=0)
    return tuple(_common_extent(operands, place) for place in range(rank, 0, -1))


def _common_extent(operands: Sequence[TensorType], place: int) -> Extent:
    """The extent of all operands at `place` from the right."""
    common: Extent = 1
    settled_by = 0
    for k, ty in enumerate(operands):
        if ty.rank < place or ty.shape[-place] == 1:
            continue
        if common == 1 or _stretches(common, ty.shape[-place]):
            common, settled_by = ty.shape[-place], k
            continue
        if _stretches(ty.shape[-place], common):
            continue
        both = same_extent(common, ty.shape[-place])
        if both is not None:
            common = both
        elif _is_one(common):
            common, settled_by = ty.shape[-place], k
        elif not _is_one(ty.shape[-place]):
            raise _not_broadcastable(operands, settled_by, k, place)
    return common


def _stretches(own: Extent, other: Extent) -> bool:
    """Whether an extent that is 0 or 1, as `x[i : i + 1]` has, is 1 beside one that may be more."""
    may_be_one = limits.at_most_one(own) and not isinstance(own, int)
    return may_be_one and not limits.at_most_one(other) and dims.equal(1, own)


def _is_one(extent: Extent) -> bool:
    """Whether a computed extent, such as n - 1, is 1 in this program; others are said to be 1."""
    return dims.plain_symbol(extent) is None and dims.equal(1, extent)


def _not_broadcastable(
    operands: Sequence[TensorType], first: int, second: int, place: int
) -> RelationError:
    left, right = operands[first], operands[second]
    where = _PLACES[place - 1] if place <= len(_PLACES) else f"{place}th from the last"
    small, other = (first, right) if left.rank < right.rank else (second, left)
    return RelationError(
        f"cannot combine {left} and {right}",
        arg=small,
        note=f"shapes align from the right; {dims.show(left.shape[-place])} and "
        f"{dims.show(right.shape[-place])} differ in the {where} place.",
        hint=_alignment_hint(operands[small], other),
    )


def _alignment_hint(small: TensorType, other: TensorType) -> str | None:
    """How to align a vector with another axis, if there is one of its extent."""
    if small.rank != 1 or other.rank < 2 or small.shape[0] not in other.shape[:-1]:
        return None
    axis = other.shape.index(small.shape[0])
    ordinal = ("first", "second", "third")[axis] if axis < 3 else f"{axis + 1}th"
    new_axes = ", ".join([":"] + ["None"] * (other.rank - 1 - axis))
    return f"write '{{arg}}[{new_axes}]' to align it with the {ordinal} axis."


def unchanged(dtype: DType) -> DType:
    """Result dtype of most ops: that of the operands."""
    return dtype


def truth(dtype: DType) -> DType:
    """Result dtype of comparisons and predicates: bool."""
    return types.bool_


def real_part(dtype: DType) -> DType:
    """The real type of a complex one, others unchanged."""
    return {"c64": types.f32, "c128": types.f64}.get(dtype.name, dtype)


def elementwise(
    kinds: str = "biufc", result: Callable[[DType], DType] = unchanged, hint: str | None = None
) -> Relation:
    """Operands of one dtype, whose kind is in `kinds`, are broadcast; `result` maps the dtype."""

    def relation(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
        operands = tensors(args)
        dtype = common_dtype(operands)
        require_kind(operands, kinds, hint)
        weak = all(t.weak for t in operands)
        return (TensorType(result(dtype), broadcast(operands), weak),)

    return relation


def common_dtype(operands: Sequence[TensorType]) -> DType:
    """The one dtype of all operands. Raises RelationError if they differ."""
    dtype = operands[0].dtype
    for k, ty in enumerate(operands):
        if ty.dtype != dtype:
            raise RelationError(
                f"cannot combine element types {dtype} and {ty.dtype}", arg=k, kind="type"
            )
    return dtype


def require_kind(operands: Sequence[TensorType], kinds: str, hint: str | None = None) -> None:
    """Raise RelationError unless every operand's dtype kind is in `kinds`."""
    for k, ty in enumerate(operands):
        if ty.dtype.kind not in kinds:
            what = _KIND_NAMES[ty.dtype.kind]
            thing = "numbers" if ty.weak or not ty.shape else "arrays"
            raise RelationError(
                f"does not take {what} {thing} such as {ty}", arg=k, kind="type", hint=hint
            )


def axes_in(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes, non-negative, each at most once. Raises RelationError."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise RelationError(
                f"cannot use axis {axis} of an array of {rank} dimension{'' if rank == 1 else 's'}",
                kind="value",
            )
    found = tuple(a % rank for a in axes)
    if len(set(found)) != len(found):
        raise RelationError(f"was given the same axis twice: {tuple(axes)}", kind="value")
    return found


def without_axes(shape: Shape, axes: Sequence[int], keepdims: bool = False) -> Shape:
    """The shape with `axes` removed, or set to 1."""
    if keepdims:
        return tuple(1 if k in axes else d for k, d in enumerate(shape))
    return tuple(d for k, d in enumerate(shape) if k not in axes)


def require_shape(ty: TensorType, shape: Shape, arg: int, what: str) -> None:
    """Raise RelationError unless `ty` broadcasts to exactly `shape`; `what` names the target."""
    extra = ty.rank - len(shape)
    fits = extra <= 0 and all(
        d == 1 or dims.equal(d, e) or _is_one(d)
        for d, e in zip(ty.shape, shape[-extra:], strict=True)
    )
    if not fits:
        raise RelationError(
            f"cannot fit {ty} into {what} of shape {show_shape(shape)}", arg=arg,
            note="shapes align from the right, and an extent 1 is repeated.",
        )
