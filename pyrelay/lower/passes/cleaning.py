"""The last step of writing a kernel: unused statements go, parameters get their order.

In: a schedule that has written its statements. Out: the frozen `Kernel`, with its estimated cost,
and the answer which outputs may use the buffer of an input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyrelay.errors import Span
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Function
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    OUTPUT,
    ROLES,
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Load,
    Local,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
    While,
    operands,
    statements,
)
from pyrelay.lower.kernels.schedule import Schedule
from pyrelay.lower.kernels.values import operand_key
from pyrelay.lower.passes.exact_remainders import with_exact_remainders

# Picoseconds per element in vectorised code, by what the primitive needs.
_MEMORY, _SIMPLE, _DIVISION, _FUNCTION = 60, 15, 80, 250
_SECOND = 10**12
_DIVISIONS = frozenset([
    "divide", "true_quotient", "sqrt", "reciprocal", "floor_divide", "remainder",
])  # fmt: skip
_SIMPLES = frozenset([
    "add", "subtract", "multiply", "negative", "absolute", "square", "where", "cast", "minimum",
    "maximum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "logical_and", "logical_or",
    "logical_not", "add_reassociated", "multiply_reassociated", "isfinite", "isnan", "isinf",
    "real", "imag", "conj", "left_shift", "right_shift", "sign", "floor", "ceil", "trunc",
    "rint", "fmin", "fmax", "copysign",
])  # fmt: skip


def is_slow(compute: Compute) -> bool:
    """Whether a primitive divides floats or is a function of them."""
    return compute.primitive not in _SIMPLES and compute.out.dtype.kind in "fc"


def finish(schedule: Schedule, extent: Extent, spans: Sequence[Span]) -> Kernel:
    """The kernel that a schedule has written."""
    kernel = finish_body(schedule.s, schedule.begin, schedule.end, extent, spans)
    return replace(kernel, body=with_exact_remainders(kernel.body))


def finish_body(
    s: Emitter, begin: Local, end: Local, extent: Extent, spans: Sequence[Span]
) -> Kernel:
    """The kernel in the outermost scope of an emitter."""
    body = without_unused(tuple(s.scopes[0].statements))
    used: dict[Parameter, None] = {}
    for statement in statements(body):
        match statement:
            case Read(parameter=parameter):
                used[parameter] = None
            case Load(array=Parameter() as parameter) | Store(array=Parameter() as parameter):
                used[parameter] = None
    ordered = sorted(used, key=lambda p: (ROLES.index(p.role), p.position))
    inner: Body = body
    for statement in body:
        if isinstance(statement, For) and statement.stop is end:
            inner = statement.body
    cost = _cost(inner, s.trips)
    distinct = tuple(dict.fromkeys(spans))
    return Kernel(tuple(ordered), begin, end, body, extent, cost, tuple(s.sites), distinct)


# -- unused statements ---------------------------------------------------------------------------


def without_unused(body: Body, results: Sequence[Operand] = ()) -> Body:
    """The body without scalars that nothing else reads and loops that do nothing.

    `results` are read after it.
    """
    makers: dict[Local, list[Statement]] = {}
    waiting = [o for o in results if isinstance(o, Local)]
    for statement in statements(body):
        target = _target(statement)
        if target is not None:
            makers.setdefault(target, []).append(statement)
        else:
            waiting += [o for o in operands(statement) if isinstance(o, Local)]
    used: set[Local] = set()
    while waiting:  # a sum that only its own next round reads is not among them
        local = waiting.pop()
        if local not in used:
            used.add(local)
            for statement in makers.get(local, ()):
                waiting += [o for o in operands(statement) if isinstance(o, Local)]
    dropped = {s for local, made in makers.items() if local not in used for s in made}
    return _without(body, dropped)


def _target(statement: Statement) -> Local | None:
    match statement:
        case Compute(out=out) | Read(out=out) | Load(out=out):
            return out
        case Assign(variable=variable):
            return variable
    return None


def _without(body: Body, dropped: set[Statement]) -> Body:
    kept: list[Statement] = []
    for statement in body:
        if statement in dropped:
            continue
        match statement:
            case For():
                inner = _without(statement.body, dropped)
                if inner:
                    kept.append(replace(statement, body=inner))
            case If():
                then = _without(statement.then, dropped)
                orelse = _without(statement.orelse, dropped)
                if then or orelse:
                    kept.append(replace(statement, then=then, orelse=orelse))
            case While():
                kept.append(replace(statement, body=_without(statement.body, dropped)))
            case _:
                kept.append(statement)
    return tuple(kept)


# -- cost ----------------------------------------------------------------------------------------


def _cost(body: Body, trips: Mapping[Local, Extent]) -> Extent:
    """Estimated picoseconds of a body."""
    total: Extent = 0
    for statement in body:
        match statement:
            case Compute(out=out, primitive=name):
                base = (
                    _SIMPLE if name in _SIMPLES else _DIVISION if name in _DIVISIONS else _FUNCTION
                )
                total = dims.add(total, base * max(1, out.dtype.size // 4))
            case Load(array=array) | Store(array=array):
                total = dims.add(total, _MEMORY * max(1, array.dtype.size // 4))
            case If(then=then, orelse=orelse):
                both = dims.maximum(_cost(then, trips), _cost(orelse, trips))
                total = dims.add(total, dims.add(both, 10 * _SIMPLE))
            case For(index=index, body=inner):
                each = dims.multiply(trips.get(index, 16), _cost(inner, trips))
                total = dims.add(total, dims.add(each, 1000))
            case While(body=inner):
                total = dims.add(total, dims.multiply(16, _cost(inner, trips)))
            case _:
                total = dims.add(total, _SIMPLE)
    factors = [total] if isinstance(total, int) else [factor for _, factor in total.terms]
    # Loops in loops in loops: their cost would leave 64 bits, and a second is long enough.
    return _SECOND if max(factors) > _SECOND else total


# -- buffers -------------------------------------------------------------------------------------


def shared_buffers(function: Function, kernels: Sequence[Kernel]) -> tuple[frozenset[int], ...]:
    """Per result, the array arguments in whose buffer the result may be written.

    That is so if one kernel reads the argument and writes the result, every element is read in the
    body that writes the result's element at the same place, and before it is written. What tells
    places is left alone: passes let some rounds go twice, in lanes whose numbers nobody uses
    (`lane_blocks`), and what lies there by then is no place.
    """
    telling = {p for kernel in kernels for p in _telling(kernel)}
    found: list[frozenset[int]] = []
    for position, atom in enumerate(function.body.results):
        ty = atom.type
        assert isinstance(ty, TensorType)
        writers = [k for k in kernels if _touches(k, OUTPUT, position)]
        allowed: set[int] = set()
        if len(writers) == 1 and ty.rank:
            for p, param in enumerate(function.params):
                if p in telling:
                    continue
                readers = [k for k in kernels if _touches(k, ARRAY, p)]
                same_bytes = isinstance(param.type, TensorType) and (
                    param.type.shape == ty.shape and param.type.dtype.size == ty.dtype.size
                )
                if same_bytes and readers == writers and _element_wise(writers[0], position, p):
                    allowed.add(p)
        found.append(frozenset(allowed))
    return tuple(found)


def _telling(kernel: Kernel) -> set[int]:
    """The array arguments whose elements tell where others lie, or how many rounds a loop has."""
    makers: dict[Local, list[Statement]] = {}
    waiting: list[Operand] = []
    for statement in statements(kernel.body):
        target = _target(statement)
        if target is not None:
            makers.setdefault(target, []).append(statement)
        if isinstance(statement, (Load, Store)):
            waiting.append(statement.index)
        elif isinstance(statement, For):
            waiting += operands(statement)
    found: set[int] = set()
    seen: set[Operand] = set()
    while waiting:
        operand = waiting.pop()
        if operand in seen or not isinstance(operand, Local):
            continue
        seen.add(operand)
        for maker in makers.get(operand, ()):
            if isinstance(maker, Load) and isinstance(maker.array, Parameter):
                found.update({maker.array.position} if maker.array.role == ARRAY else ())
            waiting += operands(maker)
    return found


def _touches(kernel: Kernel, role: str, position: int) -> bool:
    return any(p.role == role and p.position == position for p in kernel.parameters)


def _element_wise(kernel: Kernel, result: int, param: int) -> bool:
    loads: list[tuple[Body, int, Load]] = []
    stores: list[tuple[Body, int, Store]] = []
    for body in _all_bodies(kernel.body):
        for place, statement in enumerate(body):
            match statement:
                case Load(array=Parameter(role="array", position=p)) if p == param:
                    loads.append((body, place, statement))
                case Store(array=Parameter(role="output", position=p)) if p == result:
                    stores.append((body, place, statement))
    if len(stores) != 1:
        return False
    body, place, store = stores[0]
    at = operand_key(store.index)
    return all(
        where is body and before < place and operand_key(load.index) == at
        for where, before, load in loads
    )


def _all_bodies(body: Body) -> Iterable[Body]:
    yield body
    for statement in statements(body):
        match statement:
            case If(then=then, orelse=orelse):
                yield then
                yield orelse
            case For(body=inner) | While(body=inner):
                yield inner
