"""What statements assign, how they are left, and which variables are live where.

In: a function's tree and its names. Out: `Flow`, two tables by node, made before lowering so that
each branch and loop knows its results in advance: no phi is made and removed again, no loop body is
walked twice to find what it carries.

`Summary` (of a list of statements) goes up the tree: variables assigned, exits. Liveness comes back
down it: the textbook backward analysis in its structured form. A transfer function G | (X - K)
reaches its fixpoint at the first value, so a loop's head needs one silent walk of the body and
the tables one more; total work grows with the depth of loops, not with 2 to the depth.
Sets of variables are ints, one bit each (`Variable.bit`); captured variables live in cells and are
in none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from pyrelay.frontend.patterns import Bind
from pyrelay.frontend.recursion import Work, run
from pyrelay.frontend.scope import COMPREHENSIONS, Comprehension, Names, Variable
from pyrelay.frontend.trying import Attempt
from pyrelay.python_trees import nodes
from pyrelay.records import dataclass

BREAK, CONTINUE, RETURN = "break", "continue", "return"
Statements = list[ast.stmt]


@dataclass(frozen=True, slots=True)
class Summary:
    """Of statements: first assignment per variable, ways to leave, whether the end is reached."""

    assigned: dict[Variable, ast.AST] = field(default_factory=dict)
    exits: frozenset[str] = frozenset()
    falls: bool = True


EMPTY = Summary()


@dataclass(slots=True, eq=False)
class Flow:
    """The tables.

    summary: of a clause, by (statement, field). after: variables live after a branch or loop.
    head, body, orelse: those live where a loop's next round begins (before its test), where its
    body begins, and where it ends without break. joined: live after an expression of which parts
    run conditionally, or, for a comprehension, at its head. ended: live where the body of a `try`
    ends, however it does.
    """

    names: Names
    summary: dict[tuple[ast.AST, str], Summary] = field(default_factory=dict)
    after: dict[ast.AST, int] = field(default_factory=dict)
    head: dict[ast.AST, int] = field(default_factory=dict)
    body: dict[ast.AST, int] = field(default_factory=dict)
    orelse: dict[ast.AST, int] = field(default_factory=dict)
    joined: dict[ast.AST, int] = field(default_factory=dict)
    sides: dict[ast.AST, tuple[int, int]] = field(default_factory=dict)
    ended: dict[ast.AST, int] = field(default_factory=dict)
    _expressions: dict[ast.AST, tuple[int, dict[Variable, ast.AST]]] = field(default_factory=dict)

    def assigned(self, node: ast.AST) -> dict[Variable, ast.AST]:
        """Variables that an expression assigns with `:=`."""
        return self.effects(node)[1]

    def stored(self, *nodes: ast.expr | None) -> dict[Variable, ast.AST]:
        """Variables that targets of assignment name; their other parts are expressions."""
        found: dict[Variable, ast.AST] = {}
        pending = [n for n in reversed(nodes) if n is not None]
        while pending:
            node = pending.pop()
            match node:
                case ast.Name():
                    found[self.names.variable(node)] = node
                case ast.Tuple(elts=elts) | ast.List(elts=elts):
                    pending += reversed(elts)
                case ast.Starred(value=value):
                    pending.append(value)
                case _:
                    found.update(self.assigned(node))
        return found

    def effects(self, node: ast.AST) -> tuple[int, dict[Variable, ast.AST]]:
        """Variables that an expression may read, and those it may assign."""
        known = self._expressions.get(node)
        if known is None:
            known = self._expressions[node] = self._effects(node)
        return known

    def _effects(self, root: ast.AST) -> tuple[int, dict[Variable, ast.AST]]:
        reads = 0
        assigned: dict[Variable, ast.AST] = {}
        pending = [root]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Name):
                meaning = self.names.meaning[node]
                if isinstance(meaning, Variable) and not meaning.comprehension:
                    reads |= meaning.bit
            elif isinstance(node, (ast.NamedExpr, Bind)):
                assigned[self.names.variable(node.target)] = node.target
                pending.append(node.value)
            elif isinstance(node, ast.Lambda):
                pending += evaluated_defaults(node.args)
            elif isinstance(node, ast.GeneratorExp) and node in self.names.generators:
                pending.append(node.generators[0].iter)
            else:
                pending += reversed(list(ast.iter_child_nodes(node)))
        return reads, assigned


def analyse(body: Statements | ast.expr, names: Names) -> Flow:
    """The tables for one function (nested functions have their own).

    What the body of a `try` assigns and code behind it may read has its value from where the body
    raised: such variables are captured, that is, live in cells.
    """
    flow = _tables(body, names)
    kept = [
        variable
        for attempt, live in flow.ended.items()
        for variable in flow.summary.get((attempt, "body"), EMPTY).assigned if variable.bit & live
    ]
    for variable in kept:
        variable.captured = True
    return _tables(body, names) if kept else flow


def _tables(body: Statements | ast.expr, names: Names) -> Flow:
    flow = Flow(names)
    if isinstance(body, ast.expr):
        run(_Liveness(flow, True).expression(body, 0))
    else:
        run(_Summaries(flow).statements(body))
        run(_Liveness(flow, True).statements(body, 0, {}))
    return flow


def evaluated_defaults(args: ast.arguments) -> list[ast.expr]:
    """The default expressions in order of evaluation."""
    return [*args.defaults, *(d for d in args.kw_defaults if d is not None)]


def always_true(test: ast.expr) -> bool:
    """Whether a test is a constant that holds, as in `while True`."""
    return isinstance(test, ast.Constant) and bool(test.value)


def _joined(first: Summary, second: Summary) -> Summary:
    """Of two alternatives."""
    return Summary(
        {**second.assigned, **first.assigned}, first.exits | second.exits,
        first.falls or second.falls,
    )


class _Summaries:
    """Fills `Flow.summary`, from the leaves up."""

    def __init__(self, flow: Flow) -> None:
        self.flow, self.names = flow, flow.names

    def statements(self, body: Statements) -> Work[Summary]:
        assigned: dict[Variable, ast.AST] = {}
        exits: frozenset[str] = frozenset()
        for statement in body:
            one: Summary = yield self.statement(statement)
            for variable, node in one.assigned.items():
                assigned.setdefault(variable, node)
            exits |= one.exits
            if not one.falls:
                return Summary(assigned, exits, False)  # what follows is dead
        return Summary(assigned, exits, True)

    def clause(self, node: ast.stmt, name: str) -> Work[Summary]:
        found: Summary = yield self.statements(getattr(node, name))
        self.flow.summary[node, name] = found
        return found

    def statement(self, node: ast.stmt) -> Work[Summary]:
        match node:
            case ast.Return() if node not in self.names.rewritten:
                return Summary(self.expressions(node.value), frozenset({RETURN}), False)
            case ast.Break():
                return Summary({}, frozenset({BREAK}), False)
            case ast.Continue():
                return Summary({}, frozenset({CONTINUE}), False)
            case ast.Raise():
                raised = self.names.raised.get(node, node.exc)
                return Summary(self.expressions(raised, node.cause), frozenset(), False)
            case Attempt():
                return (yield self.attempt(node))
            case ast.If():
                then: Summary = yield self.clause(node, "body")
                orelse: Summary = yield self.clause(node, "orelse")
                return self.after(self.expressions(node.test), _joined(then, orelse))
            case ast.While() | ast.For():
                return (yield self.loop(node))
            case _ if node in self.names.rewritten:
                return (yield self.statements(self.names.rewritten[node]))
        return Summary(self.simple(node))

    def attempt(self, node: Attempt) -> Work[Summary]:
        body: Summary = yield self.clause(node, "body")
        final: Summary = yield self.clause(node, "final")
        caught: Summary = yield self.clause(node, "caught")
        orelse: Summary = yield self.clause(node, "orelse")
        assigned = {
            **orelse.assigned, **caught.assigned, **final.assigned, **self.flow.stored(node.target),
            **body.assigned, **self.expressions(*node.types),
        }
        if not final.falls:
            return Summary(assigned, final.exits, False)
        exits = body.exits | final.exits | caught.exits
        if body.falls:
            exits |= orelse.exits
        return Summary(assigned, exits, caught.falls or (body.falls and orelse.falls))

    def loop(self, node: ast.While | ast.For) -> Work[Summary]:
        body: Summary = yield self.clause(node, "body")
        orelse: Summary = yield self.clause(node, "orelse")
        if isinstance(node, ast.For):
            first = {**self.expressions(node.iter), **self.flow.stored(node.target)}
            ends = True
        else:
            first = self.expressions(node.test)
            ends = not always_true(node.test)
        exits = body.exits & {RETURN}
        falls = BREAK in body.exits
        if ends:
            exits |= orelse.exits
            falls = falls or orelse.falls
        return Summary({**orelse.assigned, **body.assigned, **first}, exits, falls)

    def after(self, first: dict[Variable, ast.AST], then: Summary) -> Summary:
        return Summary({**then.assigned, **first}, then.exits, then.falls)

    def simple(self, node: ast.stmt) -> dict[Variable, ast.AST]:
        """Variables that a statement without clauses assigns."""
        match node:
            case ast.Assign(targets=targets, value=value):
                return {**self.expressions(value), **self.flow.stored(*targets)}
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(
                target=target, value=value
            ):
                stored = {} if value is None else self.flow.stored(target)
                return {**self.expressions(value), **stored}
            case ast.Delete(targets=targets):
                return self.flow.stored(*targets)
            case ast.FunctionDef(decorator_list=decorators, args=args):
                own = {self.names.variable(node): node}
                return {**self.expressions(*decorators, *evaluated_defaults(args)), **own}
            case ast.ClassDef():
                return {self.names.variable(node): node}
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                return {self.names.variable(alias): alias for alias in aliases}
            case ast.Expr(value=value):
                return self.expressions(value)
            case ast.Assert(test=test, msg=msg):
                return self.expressions(test, msg)
        return {}

    def expressions(self, *nodes: ast.expr | None) -> dict[Variable, ast.AST]:
        found: dict[Variable, ast.AST] = {}
        for node in nodes:
            if node is not None:
                found.update(self.flow.assigned(node))
        return found


class _Liveness:
    """Walks backwards from the variables live after something to those live before it.

    `exits` are the live sets where break and continue go. Tables are filled if `records`.
    """

    def __init__(self, flow: Flow, records: bool) -> None:
        self.flow, self.names, self.records = flow, flow.names, records

    def note(self, table: dict[ast.AST, Any], node: ast.AST, live: Any) -> None:
        if self.records:
            table[node] = live

    def statements(self, body: Statements, after: int, exits: dict[str, int]) -> Work[int]:
        live = after
        for node in reversed(body):
            live = yield self.statement(node, live, exits)
        return live

    def statement(self, node: ast.stmt, after: int, exits: dict[str, int]) -> Work[int]:
        match node:
            case ast.If():
                self.note(self.flow.after, node, after)
                then = yield self.statements(node.body, after, exits)
                orelse = yield self.statements(node.orelse, after, exits)
                self.note(self.flow.sides, node, (then, orelse))
                return (yield self.expression(node.test, then | orelse))
            case ast.While() | ast.For():
                return (yield self.loop(node, after, exits))
            case _ if node in self.names.rewritten:
                return (yield self.statements(self.names.rewritten[node], after, exits))
            case Attempt():
                return (yield self.attempt(node, after, exits))
            case ast.Break() | ast.Continue():
                return exits[BREAK if isinstance(node, ast.Break) else CONTINUE]
        return (yield self.simple(node, after))

    def attempt(self, node: Attempt, after: int, exits: dict[str, int]) -> Work[int]:
        """The body may be left anywhere, so nothing in it ends the life of a variable."""
        self.note(self.flow.after, node, after)
        caught = yield self.statements(node.caught, after, exits)
        live = caught | (yield self.statements(node.orelse, after, exits))
        if node.final:
            for left in exits.values():
                live |= left
            live = yield self.statements(node.final, live, exits)
        live = yield self.targets([node.target], live)
        if node.final:
            exits = dict.fromkeys(exits, live)
        ended = live
        body = self.flow.summary.get((node, "body"), EMPTY)  # none if it is never reached
        for exit in body.exits & exits.keys():
            ended |= exits[exit]
        self.note(self.flow.ended, node, ended)
        live |= yield self.statements(node.body, live, exits)
        return (yield self.sequence(node.types, live))

    def loop(self, node: ast.While | ast.For, after: int, exits: dict[str, int]) -> Work[int]:
        ending = yield self.statements(node.orelse, after, exits)
        if isinstance(node, ast.While) and always_true(node.test):
            ending = 0
        head = yield _Liveness(self.flow, False).round(node, ending, after, 0)
        if self.records:
            self.note(self.flow.after, node, after)
            self.note(self.flow.orelse, node, ending)
            self.note(self.flow.head, node, head)
            yield self.round(node, ending, after, head)
        if isinstance(node, ast.For):
            return (yield self.expression(node.iter, head))
        return head

    def round(self, node: ast.While | ast.For, ending: int, after: int, head: int) -> Work[int]:
        """Live before a round of a loop, whose next round has `head` live."""
        live = yield self.statements(node.body, head, {BREAK: after, CONTINUE: head})
        self.note(self.flow.body, node, live)
        if isinstance(node, ast.For):
            return (yield self.targets([node.target], live)) | ending
        self.note(self.flow.sides, node, (live, ending))
        return (yield self.expression(node.test, live | ending))

    def simple(self, node: ast.stmt, after: int) -> Work[int]:
        match node:
            case ast.Return(value=value):
                return (yield self.sequence([value], 0))
            case ast.Raise(cause=cause):
                return (yield self.sequence([self.names.raised.get(node, node.exc), cause], 0))
            case ast.Assert(test=test, msg=msg):
                failing = yield self.sequence([msg], 0)
                return (yield self.expression(test, after | failing))
            case ast.Assign(targets=targets, value=value):
                live = yield self.targets(targets, after)
                return (yield self.expression(value, live))
            case ast.AnnAssign(target=target, value=value):
                if value is None:
                    return after
                live = yield self.targets([target], after)
                return (yield self.expression(value, live))
            case ast.AugAssign(target=target, value=value):
                live = yield self.targets([target], after)
                live = yield self.expression(value, live)
                return live | self.flow.effects(target)[0]
            case ast.Delete(targets=targets):
                live = yield self.targets(targets, after)
                for deleted in targets:
                    live |= self.flow.effects(deleted)[0]
                return live
            case ast.FunctionDef(decorator_list=decorators, args=args):
                live = after & ~self.names.variable(node).bit
                return (yield self.sequence([*decorators, *evaluated_defaults(args)], live))
            case ast.ClassDef():
                return after & ~self.names.variable(node).bit
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    after &= ~self.names.variable(alias).bit
                return after
            case ast.Expr(value=value):
                return (yield self.expression(value, after))
        return after

    def targets(self, nodes: Iterable[ast.expr | None], after: int) -> Work[int]:
        """Through assignments to targets, the last one first."""
        live = after
        pending = [n for n in nodes if n is not None]
        while pending:
            node = pending.pop()
            match node:
                case ast.Name():
                    live &= ~self.names.variable(node).bit
                case ast.Tuple(elts=elts) | ast.List(elts=elts):
                    pending += elts
                case ast.Starred(value=value):
                    pending.append(value)
                case _:
                    live = yield self.children(node, live)
        return live

    # -- expressions -----------------------------------------------------------------------------

    def sequence(self, nodes: Iterable[ast.AST | None], after: int) -> Work[int]:
        live = after
        for node in reversed([n for n in nodes if n is not None]):
            live = yield self.expression(node, live)
        return live

    def expression(self, node: ast.AST, after: int) -> Work[int]:
        """Exact where `:=` assigns; elsewhere the order of evaluation does not matter."""
        reads, assigned = self.flow.effects(node)
        if not assigned:
            return after | reads
        match node:
            case ast.NamedExpr(target=target, value=value) | Bind(target=target, value=value):
                live = after & ~self.names.variable(target).bit
                return (yield self.expression(value, live))
            case ast.BoolOp(values=[first, *others]):
                self.note(self.flow.joined, node, after)
                return (yield self.lazily(first, others, after))
            case ast.Compare(left=left, comparators=[second, *others]) if others:
                self.note(self.flow.joined, node, after)
                live = yield self.lazily(second, others, after)
                return (yield self.expression(left, live))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.note(self.flow.joined, node, after)
                then = yield self.expression(body, after)
                other = yield self.expression(orelse, after)
                return (yield self.expression(test, then | other))
            case _ if isinstance(node, COMPREHENSIONS):
                return (yield self.comprehension(node, after))
        return (yield self.children(node, after))

    def lazily(self, first: ast.expr, others: list[ast.expr], after: int) -> Work[int]:
        """`first`, then each of the others if the ones before let it."""
        live = after
        for node in reversed(others):
            live = (yield self.expression(node, live)) | after
        return (yield self.expression(first, live))

    def comprehension(self, node: Comprehension, after: int) -> Work[int]:
        """Its rounds may read what earlier ones assigned; only the first iterable surely runs."""
        head = after | self.flow.effects(node)[0]
        for part in nodes(node):
            if isinstance(part, ast.expr):
                self.note(self.flow.joined, part, head)
        return (yield self.expression(node.generators[0].iter, head))

    def children(self, node: ast.AST, after: int) -> Work[int]:
        return (yield self.sequence(in_order(node), after))


def in_order(node: ast.AST) -> list[ast.AST]:
    """The parts of an expression in order of evaluation."""
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [part for pair in pairs for part in pair if part is not None]
        case ast.Lambda(args=args):
            return list(evaluated_defaults(args))
    return [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr_context)]
