"""Where NumPy keeps the elements of a view, and so whether reshaping it copies them.

In: a view of an array, which lies as memory_order.py says. Out: extents and strides per axis, in
elements. Source: NumPy's `_attempt_nocopy_reshape`; an extent that is not known to match counts
as one that does not, so that the elements are copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order
from pyrelay.infer.arrays.layouts import Layout
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a view: its extent, and the distance of neighbours along it."""

    extent: Extent
    stride: Extent


def of_view(it: Interpreter, array: V.ArrayRef) -> tuple[Axis, ...] | None:
    """The axes of a view; None for one that no strides describe."""
    whole = it.builder.handle(it.content(array.root)).type
    memory = memory_order.of_root(it.program, array.root)
    if memory.leaves:
        known = it.program.reshaped.get(array.root, frozenset())
        it.program.reshaped[array.root] = known | memory.leaves
    axes: tuple[Axis, ...] | None = (
        contiguous(whole.shape) if memory.layout is None else _laid(whole.shape, memory.layout)
    )
    for step in array.view:
        if axes is None:
            return None
        axes = _after(it, axes, step)
    return axes


def in_bytes(it: Interpreter, array: V.Value) -> V.Value | None:
    """What `array.strides` is; None where only the running program knows how an argument lies."""
    ty = it.tensor(array)
    axes: Sequence[Axis] | None = contiguous(ty.shape)
    if isinstance(array, V.ArrayRef):
        axes = of_view(it, array)
        it.program.laid |= memory_order.of_root(it.program, array.root).leaves
    if axes is None or any(_is_untold(axis.stride) for axis in axes):
        return None
    return V.Tuple(tuple(
        V.Scalar.of_extent(dims.multiply(axis.stride, ty.dtype.size)) for axis in axes
    ))


def _is_untold(stride: Extent) -> bool:
    return any(s.origin is Origin.RUNTIME for s in dims.symbols(stride))


def contiguous(shape: Sequence[Extent]) -> tuple[Axis, ...]:
    """The axes of an array whose elements lie one after the other, the last axis fastest."""
    found: list[Axis] = []
    stride: Extent = 1
    for extent in reversed(shape):
        found.insert(0, Axis(extent, stride))
        stride = dims.multiply(stride, extent)
    return tuple(found)


def copied(it: Interpreter, array: V.ArrayRef) -> V.Value:
    """A copy of a view that is made since its elements do not lie as they would have to."""
    made = it.result(it.builder.handle(it.atom(array)))
    if isinstance(made, V.ArrayRef) and array.root in it.program.reshaped:
        it.program.reshaped[made.root] = it.program.reshaped[array.root]
    return made


def _laid(shape: Sequence[Extent], layout: Layout) -> tuple[Axis, ...]:
    """The axes of an array that lies like this; a stride that nothing tells is one of its own."""
    found: dict[int, Axis] = {}
    stride: Extent = 1
    for axis, joined in reversed(list(zip(*layout, strict=True))):
        if not joined:
            stride = dims.of(Symbol("stride", Origin.RUNTIME))
        found[axis] = Axis(shape[axis], stride)
        stride = dims.multiply(shape[axis], stride)
    return tuple(found[k] for k in range(len(shape)))


def is_contiguous(it: Interpreter, array: V.ArrayRef) -> bool:
    """Whether the elements of a view surely lie one after the other."""
    axes = of_view(it, array)
    if axes is None:
        return False
    runs = _runs(it, axes)
    return not runs or (len(runs) == 1 and runs[0].stride == 1)


def lies_in(it: Interpreter, array: V.Value, order: str) -> bool | None:
    """Whether the elements lie one after the other, the last axis fastest ('C') or the first one
    ('F'); None where only the running program knows."""
    axes: Sequence[Axis] | None = contiguous(it.tensor(array).shape)
    if isinstance(array, V.ArrayRef):
        axes = of_view(it, array)
        it.program.laid |= memory_order.of_root(it.program, array.root).leaves
    if axes is None:
        return None
    if any(it.program.guards.equal(axis.extent, 0) for axis in axes):
        return True
    step: Extent = 1
    for axis in reversed(axes) if order == "C" else axes:
        if it.program.guards.equal(axis.extent, 1):
            continue
        if it.program.guards.equal(axis.stride, step) is not True:
            return False
        step = dims.multiply(step, axis.extent)
    return True


def outermost_first(it: Interpreter, array: V.ArrayRef) -> tuple[int, ...]:
    """The axes in the order in which they lie in memory."""
    it.program.laid |= memory_order.of_root(it.program, array.root).leaves
    return memory_order.outermost_first(it, array)


def reshaped(
    it: Interpreter, axes: Sequence[Axis], shape: Sequence[Extent]
) -> tuple[Axis, ...] | None:
    """The axes of the same elements in another shape; None where that needs a copy."""
    found: list[Axis] = []
    wanted = list(shape)
    runs = _runs(it, axes)
    if len(runs) == 1:  # whatever the extents are: there are as many elements
        inner = contiguous(shape)
        return tuple(Axis(a.extent, dims.multiply(a.stride, runs[0].stride)) for a in inner)
    for run in runs:
        taken: list[Extent] = []
        while not it.program.guards.equal(dims.product(taken), run.extent):
            if not wanted:
                return None
            taken.append(wanted.pop(0))
        inner = contiguous(taken)
        found.extend(Axis(a.extent, dims.multiply(a.stride, run.stride)) for a in inner)
    if any(extent != 1 for extent in wanted):
        return None
    return (*found, *(Axis(1, 1) for _ in wanted))


def _runs(it: Interpreter, axes: Sequence[Axis]) -> list[Axis]:
    """Neighbouring axes as one where a step along the outer one is a walk along the inner one."""
    runs: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        last = runs[-1] if runs else None
        through = dims.multiply(axis.extent, axis.stride)
        if last is not None and it.program.guards.equal(last.stride, through):
            runs[-1] = Axis(dims.multiply(last.extent, axis.extent), axis.stride)
        else:
            runs.append(axis)
    return runs


def _after(
    it: Interpreter, axes: tuple[Axis, ...], step: V.ViewStep
) -> tuple[Axis, ...] | None:
    """The axes after one more step of a view."""
    attrs = step.keywords
    match step.kind:
        case "slice":
            parts = zip(axes, attrs["sizes"], attrs["steps"], strict=True)
            return tuple(Axis(size, dims.multiply(a.stride, by)) for a, size, by in parts)
        case "index":
            return tuple(a for k, a in enumerate(axes) if k not in attrs["axes"])
        case "transpose":
            return tuple(axes[k] for k in attrs["axes"])
        case "squeeze":
            return tuple(a for k, a in enumerate(axes) if k not in attrs["axes"])
        case "expand_dims":
            kept = iter(axes)
            rank = len(axes) + len(attrs["axes"])
            return tuple(Axis(1, 1) if k in attrs["axes"] else next(kept) for k in range(rank))
        case "real" | "imag":
            return tuple(Axis(a.extent, dims.multiply(2, a.stride)) for a in axes)
        case "bitcast":
            return tuple(axes)
        case "refine":
            shape = attrs["shape"]
            return tuple(Axis(n, a.stride) for n, a in zip(shape, axes, strict=True))
        case "reshape":
            return reshaped(it, axes, attrs["shape"])
    return None
