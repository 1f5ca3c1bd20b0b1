"""Calls, branches and loops as plan code: jumps, moves, and who owns what on each path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrelay.ir.nodes import Block, FnCall, If, Let, Loop, Var
from pyrelay.lower.kernels.recursion import Passing
from pyrelay.lower.planning import plan_panels, plan_parts
from pyrelay.lower.planning.frame import ONE, ZERO, Words, word_count
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Binary,
    Call,
    CodeOf,
    Free,
    Jump,
    JumpIf,
    JumpUnless,
    Launch,
    LoopNext,
    Operand,
    Poll,
    Slot,
    TapeFree,
    Unary,
    Value,
)
from pyrelay.lower.planning.memory import Buffer, Scope, is_resource
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def call(p: FunctionPlanner, let: Let, node: FnCall) -> None:
    """Arguments are lent, or handed over where the callee consumes them; results are ours."""
    consumed = p.consumed[node.function]
    lent = [
        p.buffer(a) for k, a in enumerate(node.args) if is_resource(a) and k not in consumed
    ]
    arguments: list[Value] = []
    for k, atom in enumerate(node.args):
        arguments += p.hand_over((atom,), lent) if k in consumed else p.value(atom)
    arguments += p.sizes.values(node.dims)
    results = [slot for out in let.outs for slot in p.fresh(out)]
    extents = p.frame.words(len(let.dims))
    planned = Call(p.numbers[node.function], tuple(arguments), tuple(results) + extents)
    passing = p.native_passing(node.function)
    if passing is not None:
        _call_natively(p, node.function, passing, planned)
    else:
        p.frame.emit(planned)
    _bind_extents(p, let, extents)


def _call_natively(p: FunctionPlanner, name: str, passing: Passing, planned: Call) -> None:
    """A kernel makes the call; where the calls nest too deeply for it, the plan does."""
    recursion = p.recursion
    kernel = recursion.kernel(name, passing)
    operands: list[Operand] = [*recursion.in_order(name, passing, planned.arguments)]
    if recursion.resumes:
        operands += [CodeOf(p.numbers[each]) for each in recursion.reached(name)]
    staying = recursion.staying(name, passing)
    back = list(zip(planned.results, staying, strict=False))
    told = [slot for slot, argument in back if argument is None]
    operands += map(AddressOf, (*told, *planned.results[len(staying) :]))
    too_deep = None if recursion.resumes else p.frame.slot()
    if too_deep is not None:
        operands.append(AddressOf(too_deep))
    p.frame.emit(
        Launch(
            p.program.kernel(kernel, name), tuple(operands), ONE,
            p.sizes.value(kernel.cost), serial=True, first_site=p.program.sites_of(kernel),
        )
    )
    if too_deep is not None:
        after = p.frame.label("called")
        p.frame.emit(JumpUnless(Slot(too_deep), after))
        p.frame.emit(planned)
        p.frame.place(after)
    for slot, argument in back:
        if argument is not None:
            p.frame.emit(Unary("move", slot, planned.arguments[argument]))


def _bind_extents(p: FunctionPlanner, let: Let, slots: Iterable[int]) -> None:
    if let.dims:
        p.sizes.bind({s: Slot(k) for s, k in zip(let.dims, slots, strict=True)})


# -- branches --------------------------------------------------------------------------------------


def branches(p: FunctionPlanner, let: Let, node: If) -> None:
    """Both branches end by moving their results to the slots of the outputs."""
    frame = p.frame
    targets = [slot for out in let.outs for slot in frame.words(word_count(out.type))]
    extents = frame.words(len(let.dims))
    read = {**p.last(node.then), **p.last(node.orelse)}
    dying = [
        b for b in dict.fromkeys(p.buffers[v] for v in read if v in p.buffers)
        if b.scope.level <= p.scope.level and p.is_free_to_take(b)
    ]
    otherwise, end = frame.label("else"), frame.label("endif")
    frame.emit(JumpUnless(p.scalar(node.cond), otherwise))
    _branch(p, node.then, dying, [*targets, *extents])
    frame.emit(Jump(end))
    frame.place(otherwise)
    _branch(p, node.orelse, dying, [*targets, *extents])
    frame.place(end)
    for buffer in dying:
        p.take(buffer)
    _define(p, let.outs, targets)
    _bind_extents(p, let, extents)


def _define(p: FunctionPlanner, outs: Iterable[Var], slots: Iterable[int]) -> None:
    """Give the slots, which follow one another, to the variables."""
    rest = iter(slots)
    for out in outs:
        p.define(out, [next(rest) for _ in range(word_count(out.type))])


def _branch(p: FunctionPlanner, block: Block, dying: list[Buffer], targets: list[int]) -> None:
    scope = Scope(p.last(block), p.scope.level, p.scope)
    with p.inside(scope), p.alternative():
        p.free_unread(dying)
        p.run(block)
        p.frame.move(targets, p.hand_over(block.results) + p.sizes.values(block.dims))


# -- loops -----------------------------------------------------------------------------------------


def loop(p: FunctionPlanner, let: Let, node: Loop) -> None:
    """Carried values have slots of their own, assigned at the end of each iteration.

    At the head and at every exit each carried array is an owned buffer: no copies at the back edge.
    """
    frame = p.frame
    carried, extents = _enter_loop(p, node)
    laid = plan_panels.lay(p, node)
    rows = plan_parts.begin(p, node)
    head, end = frame.label("loop"), frame.label("endloop")
    counter, limit = frame.slot(), None if node.count is None else p.scalar(node.count)
    if limit is not None or node.index is not None:
        frame.emit(Unary("move", counter, ZERO))
    if limit is not None:
        enough = frame.slot()
        frame.emit(Binary("lt.i64", enough, Slot(counter), limit))
        frame.emit(JumpUnless(Slot(enough), end))
    start, first = frame.placeholder(), frame.mark() + 1
    frame.place(head)
    if node.dims:
        p.sizes.bind({s: Slot(k) for s, k in zip(node.dims, extents, strict=True)})
    scope = Scope(p.last(node.body), p.scope.level + 1, p.scope)
    failed: str | None = None
    with p.inside(scope), p.in_parts(rows):
        _define(p, node.carried, carried)
        if node.index is not None:
            p.words[node.index] = (Slot(counter),)
        if node.test is not None:
            failed = _test(p, node, node.test)
        leave = _body(p, node, [*carried, *extents])
    if leave is not None:
        frame.emit(JumpIf(leave, end))
    if limit is not None:
        frame.emit(LoopNext(counter, 1, limit, head))
        if rows is not None:
            plan_parts.close(p, rows, node, first, start)
    else:
        if node.index is not None:
            frame.emit(Binary("add.i64", counter, Slot(counter), ONE))
        frame.emit(Poll())
        frame.emit(Jump(head))
    if failed is not None:
        if limit is not None and any(map(is_resource, node.handed)):
            frame.emit(Jump(end))
        frame.place(failed)
        _free_handed(p, node)
    frame.place(end)
    if rows is not None:
        plan_parts.free(p, rows)
    plan_panels.forget(p, laid)
    _define(p, let.outs, carried)
    _bind_extents(p, let, extents)


def _enter_loop(p: FunctionPlanner, node: Loop) -> tuple[list[int], tuple[int, ...]]:
    """Slots of the carried values and extents, holding the first ones."""
    inside: set[Buffer] = set()
    for block in (node.test, node.body):
        if block is not None:
            inside.update(p.buffers[v] for v in p.last(block) if v in p.buffers)
    first = p.hand_over(node.init, inside)
    carried = [slot for v in node.carried for slot in p.frame.words(word_count(v.type))]
    extents = p.frame.words(len(node.dims))
    p.frame.move([*carried, *extents], first + p.sizes.values(node.init_dims))
    return carried, extents


def _test(p: FunctionPlanner, node: Loop, test: Block) -> str:
    """Plan the test; the label for when it fails. Carried values stay alive throughout it."""
    scope = Scope(p.last(test), p.scope.level + 1, p.scope)
    handed = [slot for v in node.handed for slot in p.frame.words(word_count(v.type))]
    with p.inside(scope):
        p.run(test)
        (condition,) = p.value(test.results[0])
        p.frame.move(handed, p.hand_over(test.results[1:]))
    _define(p, node.handed, handed)
    failed = p.frame.label("exit")
    p.frame.emit(JumpUnless(condition, failed))
    return failed


def _free_handed(p: FunctionPlanner, node: Loop) -> None:
    """What the failing test handed over was made for a body that does not run."""
    for var in node.handed:
        if is_resource(var):
            instruction = Free if is_array(var) else TapeFree
            p.frame.emit(instruction(Slot(p.buffers[var].slot)))


def _body(p: FunctionPlanner, node: Loop, targets: list[int]) -> Value | None:
    """Plan the body up to the assignment of the next values; the flag that ends the loop."""
    body = node.body
    entering = [p.buffers[v] for v in (*node.carried, *node.handed) if v in p.buffers]
    p.free_unread(entering)
    p.run(body)
    following = p.hand_over(body.results[1:] if node.exits else body.results)
    sources: Words = following + p.sizes.values(body.dims)
    if not node.exits:
        p.frame.move(targets, sources)
        return None
    leave = p.frame.slot()  # the flag itself may be a carried value, which is overwritten now
    p.frame.move([*targets, leave], (*sources, p.scalar(body.results[0])))
    return Slot(leave)
