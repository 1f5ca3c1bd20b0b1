"""Windows: views of an array in a form that two paths can share.

In: the chain of steps of a view. Out: a `Window`, one slice and perhaps an index for each axis of
the array and then what rearranges the axes left; and from a window the steps again. Two windows of
one form differ in numbers only, which a branch or a loop can choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.infer import values as V
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.records import dataclass

#: what may follow the slices and indices, and has no numbers that the running program computes
_REARRANGING = frozenset({"transpose", "expand_dims", "squeeze", "reshape", "refine"})


@dataclass(frozen=True, slots=True)
class Form:
    """What windows must have in common: strides of all axes, indexed axes, the steps behind."""

    strides: tuple[int, ...]
    axes: tuple[int, ...]
    behind: tuple[V.ViewStep, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Per axis of the array its slice, start and length; an index for each of the indexed axes."""

    form: Form
    starts: tuple[Extent, ...]
    sizes: tuple[Extent, ...]
    atoms: tuple[Atom, ...]


def whole(shape: Sequence[Extent]) -> Window:
    """All of an array."""
    return Window(Form((1,) * len(shape), (), ()), (0,) * len(shape), tuple(shape), ())


def window_of(shape: Sequence[Extent], view: Sequence[V.ViewStep]) -> Window | None:
    """A view of an array of this shape as a window; None if it is not one."""
    window = whole(shape)
    for step in view:
        if step.kind == "slice" and not window.form.behind:
            if not all(isinstance(stride, int) for stride in step.keywords["steps"]):
                return None
            window = _sliced(window, step)
        elif step.kind == "index" and not window.form.behind:
            window = _indexed(window, step)
        elif step.kind in _REARRANGING:
            behind = (*window.form.behind, step)
            window = replace(window, form=replace(window.form, behind=behind))
        else:
            return None
    return window


def _kept(window: Window) -> list[int]:
    return [a for a in range(len(window.sizes)) if a not in window.form.axes]


def _sliced(window: Window, step: V.ViewStep) -> Window:
    starts, sizes = list(window.starts), list(window.sizes)
    strides = list(window.form.strides)
    attrs = step.keywords
    parts = zip(attrs["starts"], attrs["sizes"], attrs["steps"], strict=True)
    for axis, (start, size, stride) in zip(_kept(window), parts, strict=True):
        starts[axis] = dims.add(starts[axis], dims.multiply(strides[axis], start))
        sizes[axis] = size
        strides[axis] *= stride
    form = replace(window.form, strides=tuple(strides))
    return replace(window, form=form, starts=tuple(starts), sizes=tuple(sizes))


def _indexed(window: Window, step: V.ViewStep) -> Window:
    kept = _kept(window)
    indices = dict(zip(window.form.axes, window.atoms, strict=True))
    for axis, atom in zip(step.keywords["axes"], step.atoms, strict=True):
        indices[kept[axis]] = atom
    axes = tuple(sorted(indices))
    form = replace(window.form, axes=axes)
    return replace(window, form=form, atoms=tuple(indices[a] for a in axes))


def steps_of(window: Window, shape: Sequence[Extent]) -> tuple[V.ViewStep, ...]:
    """The steps that read a window of an array of this shape."""
    steps: list[V.ViewStep] = []
    form = window.form
    if replace(window, form=Form(form.strides, (), ()), atoms=()) != whole(shape):
        attrs = (("starts", window.starts), ("sizes", window.sizes), ("steps", form.strides))
        steps.append(V.ViewStep("slice", (), attrs))
    if form.axes:
        steps.append(V.ViewStep("index", window.atoms, (("axes", form.axes),)))
    return (*steps, *form.behind)

