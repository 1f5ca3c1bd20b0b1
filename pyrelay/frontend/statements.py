"""Statements, in order, to the end of a region.

In: the statements still to come and the region they stand in. Out: the results of the region. What
follows a statement is a value, `Rest`, so that the code behind an `if` can be put into the branch
that reaches it (see `regions`).
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.errors import Span
from pyrelay.frontend import assignment, closures
from pyrelay.frontend.expressions import condition
from pyrelay.frontend.flow import BREAK, CONTINUE, EMPTY, RETURN, Summary
from pyrelay.frontend.loops import Left, LoopNode, loop
from pyrelay.frontend.lowering import NONE, NOT_READ, TRUE, Lowering, evaluate
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.regions import FALL, RAISE, BranchRegion, Region, ordered
from pyrelay.frontend.trying import Attempt
from pyrelay.ir.nodes import Atom, Block, Const, If
from pyrelay.records import dataclass

Results = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An `if` whose condition is known, or the `else` of a loop; `key` is its node in `flow`."""

    key: ast.stmt
    cond: Atom
    then: Sequence[Item]
    orelse: Sequence[Item]
    summaries: tuple[Summary, Summary]
    span: Span


@dataclass(frozen=True, slots=True)
class Departure:
    """Behind the body of a `try` that did not raise: leave as it was left, if it was.

    flags say by which of the exits (see `BranchRegion.flags`); `falls`: it may not have been.
    """

    exits: tuple[str, ...]
    flags: tuple[Atom, ...]
    returned: Atom
    falls: bool
    span: Span


Item = ast.stmt | Choice | Departure
#: Statements, the index of the next one, and what comes after them.
Rest = tuple[Sequence[Item], int, "Rest"] | None


def lower(low: Lowering, rest: Rest, region: Region) -> Work[Results]:
    """Lower all that is left to do in a region; its results."""
    while rest is not None:
        items, at, behind = rest
        if at == len(items):
            rest = behind
            continue
        item, rest = items[at], (items, at + 1, behind)
        match item:
            case ast.Return(value=value) if item not in low.names.rewritten:
                atom = NONE if value is None else (yield evaluate(low, value))
                return region.leave(low, RETURN, atom)
            case ast.Break():
                return region.leave(low, BREAK)
            case ast.Continue():
                return region.leave(low, CONTINUE)
            case ast.Raise():
                yield raising(low, item)
                return region.leave(low, RAISE)
            case ast.If() | Choice():
                choice = (yield decided(low, item)) if isinstance(item, ast.If) else item
                results = yield branch(low, choice, rest, region)
                if results is not None:
                    return results
            case ast.While() | ast.For():
                left = yield loop(low, item, functools.partial(lower, low, (item.body, 0, None)))
                rest, results = yield behind_loop(low, item, left, rest, region)
                if results is not None:
                    return results
            case Attempt():
                rest, results = yield attempt(low, item, rest, region)
                if results is not None:
                    return results
            case Departure():
                left = yield departing(low, item, rest, region)
                if left is not None:
                    return left
            case ast.Assign() if assignment.ends_exchange(items, at):
                yield assignment.end_exchange(low, items, at)
                rest = (items, at + 2, behind)
            case _ if item in low.names.rewritten:
                rest = (low.names.rewritten[item], 0, rest)
            case _:
                yield _SIMPLE[type(item)](low, item)
    return region.leave(low, FALL)


# -- branches ------------------------------------------------------------------------------------


def decided(low: Lowering, node: ast.If) -> Work[Choice]:
    """Evaluate the condition of an `if`."""
    cond = yield condition(low, node.test, low.flow.sides[node])
    summaries = low.flow.summary[node, "body"], low.flow.summary[node, "orelse"]
    span = low.header(node, node.test)
    return Choice(node, cond, node.body, node.orelse, summaries, span)


def branch(low: Lowering, choice: Choice, rest: Rest, region: Region) -> Work[Results | None]:
    """Lower a choice. None if what follows is still to be lowered, else the region's results."""
    first, second = choice.summaries
    exits = ordered(first.exits | second.exits)
    if exits and not (first.falls and second.falls):
        rests = rest if first.falls else None, rest if second.falls else None
        then, orelse = yield sides(low, choice, rests, region)
        return low.choose(choice.cond, then, orelse, region.slots, choice.span)
    assigned = list({**first.assigned, **second.assigned})
    live = {FALL: low.flow.after[choice.key], **{e: region.live[e] for e in exits}}
    wanted = 0
    for mask in live.values():
        wanted |= mask
    inner = BranchRegion(
        live, [v for v in assigned if v.bit & wanted], exits
    )
    then, orelse = yield sides(low, choice, (None, None), inner)
    outs = low.choose(choice.cond, then, orelse, inner.slots, choice.span)
    flags, values = outs[: len(inner.flags)], outs[len(inner.flags) :]
    returned = values[-1] if RETURN in exits else NOT_READ
    values = values[: len(inner.variables)]
    if not first.falls and not second.falls:
        return region.leave(low, RAISE)
    inner.take_over(low, assigned, values)
    if not exits:
        return None

    way = Departure(exits, flags, returned, True, choice.span)
    return (yield departing(low, way, rest, region))


def departing(
    low: Lowering, way: Departure, rest: Rest, region: Region
) -> Work[Results | None]:
    """Leave as the flags say, or go on. None if there is no way out."""
    exits = way.exits

    def leaves(at: int) -> Work[Results]:
        """Leave by exit `at` or a later one, as the flags say."""
        if at + 1 == len(exits):
            return (yield region.leave(low, exits[at], way.returned))
        this = yield low.block(region.leaving(low, exits[at], way.returned))
        later = yield low.block(leaves(at + 1))
        return low.choose(way.flags[at + 1], this, later, region.slots, way.span)

    if not exits:
        return None if way.falls else region.leave(low, RAISE)
    if not way.falls:
        return (yield leaves(0))
    left = yield low.block(leaves(0))
    stayed = yield low.block(lower(low, rest, region))
    return low.choose(way.flags[0], left, stayed, region.slots, way.span)


def attempt(
    low: Lowering, node: Attempt, rest: Rest, region: Region
) -> Work[tuple[Rest, Results | None]]:
    """The body of a `try`; what is still to be done behind it, or the region's results."""
    types: list[Atom] = []
    for each in node.types:
        types.append((yield evaluate(low, each)))
    span = low.first_line(node)
    body, orelse = low.flow.summary[node, "body"], low.flow.summary[node, "orelse"]
    exits = ordered(body.exits)
    live = {FALL: 0, **{e: region.live[e] for e in exits}}
    inner = BranchRegion(live, [], exits)
    if node.managed:
        low.act("managed", types, span, flags=len(inner.flags))
    else:
        low.act("try", types, span, looks=node.looks)
    outer = low.env.scope
    if node.scope:
        low.env.scope = f"{outer}/{node.scope}".removeprefix("/")
    block = yield low.block(lower(low, (node.body, 0, None), inner))
    low.env.scope = outer
    nothing = Block((), tuple(NOT_READ for _ in inner.slots))
    outs = low.bind(If(TRUE, block, nothing), span, inner.slots)
    inner.take_over(low, body.assigned, ())
    raised = low.py("caught", (), span)
    low.write(low.names.variable(node.target), raised, span)
    cond = low.py("compare", (raised, NONE), span, op="is not")
    flags = outs[: len(inner.flags)]
    returned = outs[-1] if RETURN in exits else NOT_READ
    falls = body.falls or node.managed  # the manager may deal with what is raised where it is
    way = Departure(exits, flags, returned, falls, span)
    after = Summary(
        orelse.assigned, body.exits | (orelse.exits if falls else frozenset()),
        falls and orelse.falls,
    )
    summaries = low.flow.summary[node, "caught"], after
    choice = Choice(node, cond, node.caught, [way, *node.orelse], summaries, span)
    if node.final:
        return (node.final, 0, ([choice], 0, rest)), None
    return rest, (yield branch(low, choice, rest, region))


def sides(
    low: Lowering, choice: Choice, rests: tuple[Rest, Rest], region: Region
) -> Work[tuple[Block, Block]]:
    """The two blocks of a choice, each with what follows it in the region."""
    then = yield low.block(lower(low, (choice.then, 0, rests[0]), region))
    orelse = yield low.block(lower(low, (choice.orelse, 0, rests[1]), region))
    return then, orelse


def behind_loop(
    low: Lowering, node: LoopNode, left: Left, rest: Rest, region: Region
) -> Work[tuple[Rest, Results | None]]:
    """What follows a loop: its `else`, and the way out if it returned from inside."""
    what = left.plan
    if what.ends and node.orelse:
        if what.breaks:
            summaries = EMPTY, low.flow.summary[node, "orelse"]
            span = low.span(node.orelse[0])
            choice = Choice(node, left.flags[BREAK], [], node.orelse, summaries, span)
            rest = ([choice], 0, rest)
        else:
            rest = (node.orelse, 0, rest)
    if not what.returns:
        return rest, None if what.goes_on else region.leave(low, RAISE)
    if not what.goes_on:
        return None, region.leave(low, RETURN, left.returned)
    then = yield low.block(region.leaving(low, RETURN, left.returned))
    orelse = yield low.block(lower(low, rest, region))
    return None, low.choose(left.flags[RETURN], then, orelse, region.slots, low.first_line(node))


# -- single statements ---------------------------------------------------------------------------


def raising(low: Lowering, node: ast.Raise) -> Work[None]:
    """`raise exception from cause`."""
    raised = low.names.raised.get(node, node.exc)
    assert raised is not None
    exception = yield evaluate(low, raised)
    cause = NONE if node.cause is None else (yield evaluate(low, node.cause))
    low.act("raise", (exception, cause), low.span(node))


def expression(low: Lowering, node: ast.Expr) -> Work[None]:
    """An expression for its effects; a docstring has none."""
    if not isinstance(node.value, ast.Constant):
        yield evaluate(low, node.value)


def asserting(low: Lowering, node: ast.Assert) -> Work[None]:
    """`assert test, message`."""
    cond = yield condition(low, node.test)

    def fails() -> Work[Results]:
        error: Atom = Const(AssertionError)
        if node.msg is not None:
            message = yield evaluate(low, node.msg)
            error = low.py("call", (error, message), low.span(node), keywords=(None,))
        low.act("raise", (error, NONE), low.span(node))
        return ()

    orelse = yield low.block(fails())
    low.choose(cond, Block((), ()), orelse, (), low.span(node))


def definition(low: Lowering, node: ast.FunctionDef) -> Work[None]:
    """A nested function, with its decorators applied from the inside out."""
    decorators: list[Atom] = []
    for decorator in node.decorator_list:
        decorators.append((yield evaluate(low, decorator)))
    value = yield closures.make(low, node)
    for callee, place in zip(reversed(decorators), reversed(node.decorator_list), strict=True):
        value = low.py("call", (callee, value), low.span(place), keywords=(None,))
    variable = low.names.variable(node)
    low.write(variable, low.named(value, variable.shown), low.first_line(node))


def class_definition(low: Lowering, node: ast.ClassDef) -> None:
    """A class, which was made when the function was read."""
    made = Const(low.program.classes[node])
    low.write(low.names.variable(node), made, low.first_line(node))


def importing(low: Lowering, node: ast.Import) -> Work[None]:
    """`import a.b.c [as d]`: modules are found now."""
    yield ()
    for alias in node.names:
        span = low.span(node)
        module = imported(low, alias.name, span)
        if alias.asname is None and not isinstance(module.value, ImportError):
            module = imported(low, alias.name.partition(".")[0], span)
        low.write(low.names.variable(alias), module, span)


def importing_from(low: Lowering, node: ast.ImportFrom) -> Work[None]:
    """`from a.b import c [as d]`: the module is found now, its attribute when the code runs."""
    yield ()
    span = low.span(node)
    name = "." * node.level + (node.module or "")
    for alias in node.names:
        module = imported(low, name, span)
        submodule = f"{name.removesuffix('.')}.{alias.name}"
        if not hasattr(module.value, alias.name) and hasattr(module.value, "__path__"):
            value: Atom = imported(low, submodule, span)
        else:
            value = low.py("attribute", (module,), span, name=alias.name)
        low.write(low.names.variable(alias), value, span)


def imported(low: Lowering, name: str, span: Span) -> Const:
    """A module; where there is none, the error is raised by the program when it gets there."""
    try:
        return Const(importlib.import_module(name, low.program.package))
    except ImportError as error:
        low.act("raise", (Const(error), NONE), span)
        return Const(error)


def nothing(low: Lowering, node: ast.stmt) -> None:
    """`pass`, and declarations that `scope` has read."""


_SIMPLE: dict[type, Callable[[Lowering, Any], Work[None] | None]] = {
    ast.Expr: expression,
    ast.Assign: assignment.assignment,
    ast.AugAssign: assignment.augmented,
    ast.AnnAssign: assignment.annotated,
    ast.Delete: assignment.delete,
    ast.Assert: asserting,
    ast.FunctionDef: definition,
    ast.ClassDef: class_definition,
    ast.Import: importing,
    ast.ImportFrom: importing_from,
    ast.Global: nothing,
    ast.Nonlocal: nothing,
    ast.Pass: nothing,
}
