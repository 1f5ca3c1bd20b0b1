"""What a node does besides computing: a node in, `Effect` out.

An op's record states the effect of the op; an *instance* of an elementwise op on Python numbers may
raise as Python does (ZeroDivisionError, OverflowError where an int leaves 64 bits) where the same
op on arrays never does. Passes ask here before they remove, move or duplicate a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyrelay.ir import walk
from pyrelay.ir.nodes import (
    Const,
    FnCall,
    Function,
    Jvp,
    KernelCall,
    Let,
    Module,
    OpCall,
    PyCall,
    Rhs,
    Vjp,
)
from pyrelay.ir.op import Effect
from pyrelay.ir.types import TensorType
from pyrelay.records import once

# Ops on Python ints whose result may leave 64 bits.
_OVERFLOWING = frozenset({"add", "subtract", "multiply", "negative", "absolute", "square"})
# Ops on Python numbers that raise for a zero divisor; with a known divisor they do not.
_DIVIDING = frozenset({"divide", "floor_divide", "remainder", "reciprocal"})
# Ops on Python ints that raise for a negative shift.
_SHIFTING = frozenset({"left_shift", "right_shift"})


def effect_of(rhs: Rhs, of_function: Callable[[str], Effect] | None = None) -> Effect:
    """The effect of a node, that of its blocks or kernel included.

    `of_function` answers for called functions (see `of_functions`); without it they may raise.
    """
    strongest = _own(rhs, of_function)
    if isinstance(rhs, OpCall):
        return strongest
    inner = walk.blocks(rhs)
    if isinstance(rhs, KernelCall):
        inner = (rhs.function.body,)
    for block in inner:
        for let in walk.nested_lets(block):
            if strongest is Effect.HOST:
                return strongest
            strongest = max(strongest, _own(let.rhs, of_function))
    return strongest


def of_functions(module: Module) -> Mapping[str, Effect]:
    """The effect of calling each function of a module: the least fixpoint over its calls."""
    own: dict[str, Effect] = {}
    callers: dict[str, list[str]] = {name: [] for name in module.functions}
    for name, function in module.functions.items():
        own[name] = _without_calls(function)
        for callee in walk.called(function):
            if callee in callers:
                callers[callee].append(name)
    pending = list(own)
    while pending:
        callee = pending.pop()
        for caller in callers[callee]:
            if own[caller] < own[callee]:
                own[caller] = own[callee]
                pending.append(caller)
    return own


@once
def _without_calls(function: Function) -> Effect:
    own = (_own_or_kernel(let.rhs) for let in walk.nested_lets(function.body))
    return max(own, default=Effect.PURE)


def _own_or_kernel(rhs: Rhs) -> Effect:
    if isinstance(rhs, KernelCall):
        return effect_of(rhs, lambda _: Effect.PURE)
    return _own(rhs, lambda _: Effect.PURE)


def is_pure(let: Let, of_function: Callable[[str], Effect] | None = None) -> bool:
    """True if a Let may be removed when nothing reads it."""
    return effect_of(let.rhs, of_function) is Effect.PURE


def _own(rhs: Rhs, of_function: Callable[[str], Effect] | None) -> Effect:
    """The effect of a node without that of its blocks."""
    match rhs:
        case OpCall():
            return Effect.RAISES if _instance_raises(rhs) else rhs.op.effect
        case FnCall(function=name) | Vjp(function=name) | Jvp(function=name):
            return of_function(name) if of_function else Effect.RAISES
        case PyCall():
            return Effect.HOST
    return Effect.PURE


@once
def _instance_raises(call: OpCall) -> bool:
    if call.op.effect is not Effect.PURE:
        return False  # the record says it already
    if call.attrs.get("strict"):
        return True
    operands = [a.type for a in call.args if isinstance(a.type, TensorType)]
    if not operands or len(operands) < len(call.args):
        return False
    name, integer = call.op.name, all(t.dtype.kind in "biu" for t in operands)
    weak = all(t.weak for t in operands)
    if name == "cast":
        return _cast_raises(operands[0], call)
    if name == "power" and integer and not weak:
        exponent = call.args[-1]  # NumPy refuses negative powers of integers
        return not (isinstance(exponent, Const) and exponent.value >= 0)
    if not weak:
        return False
    if name in _OVERFLOWING:
        return integer
    if name in _DIVIDING:
        return not _is_safe_divisor(call, integer)
    if name in _SHIFTING:
        shift = call.args[1]
        return not (name == "right_shift" and isinstance(shift, Const) and shift.value >= 0)
    return name == "power"


def _is_safe_divisor(call: OpCall, integer: bool) -> bool:
    """A constant other than 0, and for ints other than -1, whose quotient can overflow."""
    divisor = call.args[-1]
    return isinstance(divisor, Const) and divisor.value != 0 and not (
        integer and divisor.value == -1
    )


def _cast_raises(source: TensorType, call: OpCall) -> bool:
    """`int(x)` of a float or u64 that is not finite or too large; `np.uint8(n)` of a large n."""
    target = call.attrs["dtype"]
    if call.attrs.get("weak"):
        return target.kind == "i" and source.dtype.kind in "fu"
    return source.weak and source.dtype.kind == "i" and target.is_integer and target.name != "i64"
