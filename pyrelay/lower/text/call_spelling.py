"""How calls of routines are spelled in the kernel language: the state that they share.

In: calls and routines of kernel IR. Out: statements.

A routine is `routineN(block, state, arguments...)`; it returns a status as a kernel does. The
state is a small array of the kernel: the lowest address that the native stack may reach, the number
of calls since the last look for Ctrl-C, the results of the call that has returned last, a word
each, and words that a function of the plan is given, and gives back. Where the stack is short, the
plan does what the routine would (`Planned`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Kernel, Planned
from pyrelay.lower.text.spelling import binding, call, named

STACK_BYTES = 1 << 18
"""What routines may use of the native stack. Threads have 512 KiB of it at least."""

_LIMIT, _CALLS, _RESULTS = 0, 1, 2


def prepared(kernel: Kernel) -> list[ast.stmt]:
    """A state, in the kernel."""
    planned = [r.planned for r in kernel.routines if r.planned is not None]
    words = _words(kernel) + max(max(len(each.words), _taken(each)) for each in planned)
    own = ast.BinOp(call("stack_address"), ast.Sub(), ast.Constant(STACK_BYTES))
    unsaid = ast.Compare(named("lowest"), [ast.Eq()], [ast.Constant(0)])
    return [
        binding("state", call("local_i64", ast.Constant(words))),
        binding("lowest", call("lowest_address", named("block"))),
        ast.If(unsaid, [binding("lowest", own)], []),
        _stored("i64", _LIMIT, named("lowest")), _stored("i64", _CALLS, ast.Constant(0)),
    ]  # fmt: skip


def _words(kernel: Kernel) -> int:
    """Where the words for functions of the plan begin."""
    return _RESULTS + max(len(r.results) for r in kernel.routines)


def _taken(planned: Planned) -> int:
    """How many words are taken of what a function of the plan returns."""
    return max(planned.results, default=-1) + 1


def resumed(
    kernel: Kernel, planned: Planned, code: ast.expr, given: Sequence[tuple[str, ast.expr]]
) -> list[ast.stmt]:
    """What a routine does where the stack is short: the plan runs its function `code` on `given`,
    of which the types are told."""
    first = _words(kernel)
    begin = ast.BinOp(named("state"), ast.Add(), ast.Constant(8 * first))
    out: list[ast.stmt] = [binding("words", begin)]
    for number, (kind, value) in enumerate(given):
        place = ast.Constant(number)
        out.append(ast.Expr(call(f"store_slot_{kind}", named("words"), place, value)))
    numbers = [ast.Constant(n) for n in (len(given), _taken(planned))]
    made = call("resume", named("block"), named("state"), code, named("words"), *numbers)
    out += [binding("status", made), ast.If(_failed(), [ast.Return(named("status"))], [])]
    for number, position in enumerate(planned.results):
        out.append(_stored("i64", _RESULTS + number, _loaded("i64", first + position)))
    return [*out, ast.Return(ast.Constant(0))]


def entered(period: int, resumed: Sequence[ast.stmt]) -> list[ast.stmt]:
    """What a routine does first: is there room for it, is it time to look for Ctrl-C."""
    low = ast.Compare(call("stack_address"), [ast.Lt()], [_loaded("i64", _LIMIT)])
    calls = ast.BinOp(_loaded("i64", _CALLS), ast.Add(), ast.Constant(1))
    due = ast.Compare(named("calls"), [ast.GtE()], [ast.Constant(period)])
    polled: list[ast.stmt] = [
        binding("calls", ast.Constant(0)), binding("status", call("poll", named("block"))),
        ast.If(_failed(), [ast.Return(named("status"))], []),
    ]  # fmt: skip
    return [
        ast.If(call("unlikely", low), list(resumed), []),
        binding("calls", calls), ast.If(due, polled, []), _stored("i64", _CALLS, named("calls")),
    ]  # fmt: skip


def counted(period: ast.expr) -> ast.stmt:
    """The rounds of a routine's loops count as calls: it is called again and again."""
    made = ast.BinOp(period, ast.Sub(), named("rounds"))
    return _stored("i64", _CALLS, ast.BinOp(_loaded("i64", _CALLS), ast.Add(), made))


def left(dtypes: Sequence[DType], values: Sequence[ast.expr]) -> list[ast.stmt]:
    """What a routine does last."""
    out = [
        _stored(dtype.name, _place(number, dtype), value)
        for number, (dtype, value) in enumerate(zip(dtypes, values, strict=True))
    ]
    return [*out, ast.Return(ast.Constant(0))]


def called(
    routine: int, args: Sequence[ast.expr], outs: Sequence[tuple[str, DType]]
) -> list[ast.stmt]:
    """A call: on to its results, or back to the caller with the status."""
    made = call(f"call{routine}", named("block"), named("state"), *args)
    out: list[ast.stmt] = [binding("status", made)]
    out.append(ast.If(_failed(), [ast.Return(named("status"))], []))
    for number, (name, dtype) in enumerate(outs):
        out.append(binding(name, _loaded(dtype.name, _place(number, dtype))))
    return out


def _failed() -> ast.expr:
    return ast.Compare(named("status"), [ast.NotEq()], [ast.Constant(0)])


def _place(number: int, dtype: DType) -> int:
    """The index of a result's word, counted in elements of its type."""
    return (_RESULTS + number) * (8 // dtype.size)


def _stored(kind: str, place: int, value: ast.expr) -> ast.stmt:
    return ast.Expr(call(f"store_ordered_{kind}", named("state"), ast.Constant(place), value))


def _loaded(kind: str, place: int) -> ast.expr:
    return call(f"load_ordered_{kind}", named("state"), ast.Constant(place))
