"""Ops that are instructions of the plan: extents, checks, exceptions, placeholders, tapes, views.

Library ops (`plan_library`) go on there; nothing else reaches the planner as
an OpCall, since `normalise.py` has put the rest into kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyrelay.errors import InvariantError
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import TapeType, TensorType, i64
from pyrelay.lower.planning import plan_commits, plan_library
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import (
    Binary,
    Guard,
    Immediate,
    JumpIf,
    Load,
    Raise,
    Slot,
    Store,
    TapeNew,
    TapePop,
    TapePush,
    Unary,
)
from pyrelay.lower.planning.memory import ALIASES
from pyrelay.ops.program import pieces
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

Plan = Callable[["FunctionPlanner", Let, OpCall], None]


def op_call(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan an op that is not part of a kernel."""
    name = call.op.name
    if name in ALIASES:
        view(p, let, call)
    elif name in _PLANS:
        _PLANS[name](p, let, call)
    else:
        plan_library.library_call(p, let, call)


# -- views -----------------------------------------------------------------------------------------


def memory_kind(ty: TensorType) -> str:
    """How `Load` and `Store` move one word of an element."""
    if ty.dtype.size >= 8:
        return "i64"
    letter = "i" if ty.dtype.kind == "i" else "u"
    return f"{letter}{8 * ty.dtype.size}"


def view(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """The same elements with other extents: no work, unless a scalar becomes an array or back."""
    x, out = call.args[0], let.outs[0]
    if is_array(x) and is_array(out):
        buffer = p.buffer(x)
        buffer.readers.append(out)
        p.buffers[out] = buffer
        return
    if not is_array(x) and not is_array(out):
        p.words[out] = p.value(x)
        return
    ty = out.type
    assert isinstance(ty, TensorType)
    kind = memory_kind(ty)
    if is_array(out):
        slot = p.allocate(ty)
        for k, word in enumerate(p.value(x)):
            p.frame.emit(Store(kind, Slot(slot), Immediate(k), word))
        p.define(out, (slot,))
        return
    address = p.scalar(x)
    for k, slot in enumerate(p.fresh(out)):
        p.frame.emit(Load(kind, slot, address, Immediate(k)))


# -- extents and exceptions ------------------------------------------------------------------------


def _extent(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    p.words[let.outs[0]] = (p.sizes.value(call.attrs["size"]),)


def _as_extent(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    value = p.scalar(call.args[0])
    fine, after = p.frame.slot(), p.frame.label("extent")
    p.frame.emit(Binary("ge.i64", fine, value, ZERO))
    p.frame.emit(JumpIf(Slot(fine), after))
    site = p.program.site(
        "ValueError", ("negative dimensions are not allowed",), (), let.span
    )
    p.frame.emit(Raise(site, ()))
    p.frame.place(after)
    # A slot of its own: what is computed from it is known here and below, and the value may be an
    # extent from which sizes are computed elsewhere as well.
    own = p.frame.slot()
    p.frame.emit(Unary("move", own, value))
    p.sizes.bind({let.dims[0]: Slot(own)})


def _check_equal(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    left, right = p.sizes.value(call.attrs["left"]), p.sizes.value(call.attrs["right"])
    same, after = p.frame.slot(), p.frame.label("equal")
    p.frame.emit(Binary("eq.i64", same, left, right))
    p.frame.emit(JumpIf(Slot(same), after))
    if call.attrs.get("stretches") and p.program.begins_again:
        for extent in (left, right):
            more = p.frame.slot()
            p.frame.emit(Binary("ne.i64", more, extent, Immediate(1)))
            p.frame.emit(Guard(Slot(more)))
    site = p.program.site("ValueError", pieces(call.attrs["text"]), (i64, i64), let.span)
    p.frame.emit(Raise(site, (left, right)))
    p.frame.place(after)


def _raise(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    words = [word for a in call.args for word in p.value(a)]
    dtypes = [a.type.dtype if isinstance(a.type, TensorType) else i64 for a in call.args]
    site = p.program.site(call.attrs["exception"], call.attrs["parts"], dtypes, let.span)
    p.frame.emit(Raise(site, tuple(words)))


def _undef(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    (out,) = let.outs
    if is_array(out):  # it may be written in place, element by element
        p.define(out, (p.allocate(out.type),))
    elif isinstance(out.type, TapeType):
        _tape_new(p, let, call)
    else:
        for slot in p.fresh(out):
            p.frame.emit(Unary("move", slot, ZERO))


# -- tapes -----------------------------------------------------------------------------------------


def _tape_new(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    (slot,) = p.fresh(let.outs[0])
    p.frame.emit(TapeNew(slot))


def _tape_push(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """A scalar travels as its words, an array as its address: the tape owns it from now on."""
    tape, value = call.args
    words = p.hand_over((value,))
    handle = p.hand_over((tape,))
    p.frame.emit(TapePush(handle[0], words))
    _continue_tape(p, let, handle[0])


def _tape_pop(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    (handle,) = p.hand_over(call.args)
    p.frame.emit(TapePop(handle, p.fresh(let.outs[1])))
    _continue_tape(p, let, handle)


def _continue_tape(p: FunctionPlanner, let: Let, handle: object) -> None:
    if not isinstance(handle, Slot):
        raise InvariantError("a tape lives in a slot", span=let.span)
    p.define(let.outs[0], (handle.index,))


_PLANS: dict[str, Plan] = {
    "commit": plan_commits.commit,
    "extent": _extent,
    "as_extent": _as_extent,
    "check_equal": _check_equal,
    "raise": _raise,
    "undef": _undef,
    "tape_new": _tape_new,
    "tape_push": _tape_push,
    "tape_pop": _tape_pop,
}
PLAN_OPS = frozenset(_PLANS) | ALIASES
