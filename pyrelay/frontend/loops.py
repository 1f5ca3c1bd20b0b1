"""`while`, and `for` over anything that can be iterated.

In: a loop statement. Out: a Loop that carries the variables which a round assigns and which are
live at its head or behind it, and what the code behind has to know: how the loop was left.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyrelay.frontend.assignment import assign
from pyrelay.frontend.expressions import condition, gone_through
from pyrelay.frontend.flow import BREAK, CONTINUE, RETURN, Summary, always_true
from pyrelay.frontend.lowering import FALSE, NOT_READ, Lowering
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.regions import DONE, FALL, LoopRegion, Region
from pyrelay.frontend.scope import Variable
from pyrelay.ir.nodes import Atom, Block, Loop, Var
from pyrelay.records import dataclass

LoopNode = ast.While | ast.For
#: Lowers the body of a loop to the results of the region it is given.
Body = Callable[[Region], Work[tuple[Atom, ...]]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a loop carries and how it is left, known before its body is lowered.

    assigned: variables that a round assigns, with the place of the first assignment. carried: those
    whose values pass from round to round or out. ends: it can end by its own test or iterable.
    tests_inside: the test is part of the body, since it assigns what the code behind needs.
    """

    node: LoopNode
    body: Summary
    assigned: dict[Variable, ast.AST]
    carried: tuple[Variable, ...]
    ends: bool
    tests_inside: bool

    @property
    def breaks(self) -> bool:
        """Whether a round may break."""
        return BREAK in self.body.exits

    @property
    def returns(self) -> bool:
        """Whether the function may return from inside."""
        return RETURN in self.body.exits

    @property
    def stops(self) -> bool:
        """Whether a round may end the loop."""
        return self.tests_inside or self.breaks or self.returns

    @property
    def goes_on(self) -> bool:
        """Whether the code behind the loop is ever reached."""
        return self.ends or self.breaks

    @property
    def flags(self) -> tuple[str, ...]:
        """Exits that the code behind tells apart: by return, and by break if there is `else`."""
        by_return = (RETURN,) if self.returns and self.goes_on else ()
        by_break = (BREAK,) if self.breaks and self.ends and self.node.orelse else ()
        return by_return + by_break


@dataclass(frozen=True, slots=True)
class Left:
    """How a loop was left: by exit, the flag that says so; and what is returned."""

    plan: Plan
    flags: dict[str, Var]
    returned: Atom


def plan(low: Lowering, node: LoopNode) -> Plan:
    """Decide what a loop carries."""
    flow = low.flow
    if isinstance(node, ast.For):
        first = flow.stored(node.target)
        ends, tests_inside = True, False
    else:
        first = flow.assigned(node.test)
        ends = not always_true(node.test)
        tests_inside = ends and any(v.bit & flow.orelse[node] for v in first)
    body = flow.summary[node, "body"]
    assigned = {**body.assigned, **first}
    live = flow.head[node] | flow.orelse[node] | flow.after[node]
    carried = tuple(v for v in assigned if v.bit & live)
    return Plan(node, body, assigned, carried, ends, tests_inside)


def loop(low: Lowering, node: LoopNode, body: Body) -> Work[Left]:
    """Emit the loop; the variables then have the values that it ends with."""
    what = plan(low, node)
    iterable = (yield gone_through(low, node.iter)) if isinstance(node, ast.For) else None
    region = _region(low, what)
    item = Var("item", span=low.span(node.target)) if isinstance(node, ast.For) else None
    outer = low.env
    low.env = outer.copy()
    head = low.flow.head[node]
    for variable in what.assigned:
        if not variable.captured:
            low.env.values[variable] = region.carried.get(variable)
        if variable.deleted:
            low.env.unset.add(variable)
        if not (variable.captured or variable.bit & head):
            low.env.unset.discard(variable)
    region.unset.update(low.env.unset)
    test, handed = (yield _test(low, what))
    block = yield low.block(_round(low, what, region, item, body))
    low.env = outer

    flags = [Var(name, span=low.span(node)) for name in region.flag_names()]
    returned = () if region.returned is None else (region.returned,)
    init = [_initial(low, v, head) for v in region.carried]
    outs = low.bind(
        Loop(
            (*region.carried.values(), *returned, *flags),
            (*init, *(NOT_READ for _ in returned), *(FALSE for _ in flags)),
            block, test, handed, exits=what.stops, iterable=iterable, item=item,
        ),
        low.header(node, node.iter if isinstance(node, ast.For) else node.test),
        region.slots[what.stops :],
    )
    _settle(low, what, region, outs)
    rest = outs[len(region.carried) :]
    by_exit = dict(zip(region.flags, rest[len(returned) :], strict=True))
    return Left(what, by_exit, rest[0] if returned else NOT_READ)


def _region(low: Lowering, what: Plan) -> LoopRegion:
    """The region of the loop's body, with fresh carried values."""
    flow, node = low.flow, what.node
    head = flow.head[node]
    return LoopRegion(
        {FALL: head, CONTINUE: head, BREAK: flow.after[node], DONE: flow.orelse[node], RETURN: 0},
        {v: Var(v.shown, span=low.span(what.assigned[v])) for v in what.carried},
        what.stops,
        Var("returned", span=low.span(node)) if what.returns else None,
        what.flags,
    )


def _initial(low: Lowering, variable: Variable, head: int) -> Atom:
    """The first value of a carried variable; nobody reads it if it is not live at the head."""
    if not variable.bit & head:
        return NOT_READ
    value = low.env.values[variable]
    assert value is not None, f"{variable.name} is live and has no value"
    return value


def _test(low: Lowering, what: Plan) -> Work[tuple[Block | None, tuple[Var, ...]]]:
    """The test block; what it assigns and the body reads is handed to the body."""
    node = what.node
    if isinstance(node, ast.For) or not what.ends or what.tests_inside:
        return None, ()
    assigned = low.flow.assigned(node.test)
    handed = {
        v: Var(v.shown, span=low.span(place))
        for v, place in assigned.items()
        if v.bit & low.flow.body[node]
    }
    unset: set[Variable] = set()

    def work() -> Work[tuple[Atom, ...]]:
        cond = yield condition(low, node.test, low.flow.sides[node])
        unset.update(low.env.unset)
        return (cond, *(low.env.values[v] for v in handed))

    block: Block = yield low.block(work())
    low.env.values.update(handed)
    low.env.unset.difference_update(assigned)
    low.env.unset.update(unset.intersection(assigned))
    return block, tuple(handed.values())


def _round(
    low: Lowering, what: Plan, region: LoopRegion, item: Var | None, body: Body
) -> Work[tuple[Atom, ...]]:
    """One round: the target of `for` or a test that belongs to the body, then the body."""
    node = what.node
    if isinstance(node, ast.For):
        assert item is not None
        yield assign(low, node.target, item, low.span(node.target))
    if isinstance(node, ast.For) or not what.tests_inside:
        return (yield body(region))
    cond = yield condition(low, node.test, low.flow.sides[node])
    then = yield low.block(body(region))
    orelse = yield low.block(region.leaving(low, DONE))
    return low.choose(cond, then, orelse, region.slots, low.header(node, node.test))


def _settle(low: Lowering, what: Plan, region: LoopRegion, outs: tuple[Var, ...]) -> None:
    """After the loop: what its variables hold, and which of them may be unset."""
    for variable in what.assigned:
        if not variable.captured:
            low.env.values[variable] = None
    low.env.values.update(zip(region.carried, outs, strict=False))
    low.env.unset.difference_update(what.assigned)
    low.env.unset.update(region.unset.intersection(what.assigned))
