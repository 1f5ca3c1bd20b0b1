"""`match` written as `if`: the only statement that is lowered by rewriting it first.

In: an `ast.Match`. Out: an assignment of the subject to a hidden name and a chain of `if`
statements, whose tests follow PEP 634: tests from left to right, sub-subjects evaluated once, names
bound when the whole pattern has matched, then the guard.

Hidden names start with a dot, so they are nobody else's. Two nodes exist here only: `Bind` assigns
and is true, `Ask` is a question that only the pattern rules ask.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any, TypeVar

from pyrelay.frontend.recursion import Work, run
from pyrelay.ir.nodes import UNREAD

N = TypeVar("N", bound=ast.AST)


class Bind(ast.expr):
    """`target := value`, true whatever the value."""

    _fields = ("target", "value")

    def __init__(self, target: ast.Name, value: ast.expr) -> None:
        super().__init__()
        self.target, self.value = target, value


class Ask(ast.expr):
    """A PyCall of `kind` on `operands`; `index` is its attribute of that name, or None."""

    _fields = ("operands",)

    def __init__(self, kind: str, operands: list[ast.expr], index: int | None = None) -> None:
        super().__init__()
        self.kind, self.operands, self.index = kind, operands, index


def _without(mapping: dict[Any, Any], *keys: Any) -> dict[Any, Any]:
    """What `**rest` takes of a mapping; compiled with the program."""
    return {key: value for key, value in mapping.items() if key not in keys}


def as_conditions(node: ast.Match, fresh: Iterator[int], last: bool) -> list[ast.stmt]:
    """The statements that do what a `match` statement does.

    `fresh` numbers hidden names; `last` says that the function ends with the statement.
    """
    return _Rewriter(fresh).statement(node, last)


class _Rewriter:
    def __init__(self, fresh: Iterator[int]) -> None:
        self.fresh = fresh
        self.shared: list[str] = []
        self.place: ast.AST = ast.Pass()

    def statement(self, node: ast.Match, last: bool) -> list[ast.stmt]:
        self.place = node.subject
        subject = self.name()
        assign: ast.stmt = self.at(ast.Assign([self.store(subject)], node.subject))
        rest: list[ast.stmt] = []
        if last and all(isinstance(case.body[-1], (ast.Return, ast.Raise)) for case in node.cases):
            rest = [self.at(ast.Expr(self.at(Ask("unmatched", self.known(subject, node)))))]
        for case in reversed(node.cases):
            self.place = case.pattern
            captures: dict[str, str] = {}
            tests: list[ast.expr] = run(self.tests(case.pattern, subject, captures))
            if not tests and case.guard is None:  # matches everything: what follows is dead
                bind: list[ast.stmt] = [
                    self.at(ast.Assign([self.store(name)], self.load(hidden)))
                    for name, hidden in captures.items()
                ]
                rest = [*bind, *case.body]
                continue
            tests += [self.bind(name, self.load(hidden)) for name, hidden in captures.items()]
            if case.guard is not None:
                tests.append(case.guard)
            rest = [self.at(ast.If(self.both(tests), case.body, rest))]
        # Names that alternatives share are read only where one of them matched.
        self.place = node.subject
        unread: list[ast.stmt] = [
            self.at(ast.Assign([self.store(name)], self.constant(UNREAD)))
            for name in self.shared
        ]
        return [assign, *unread, *rest]

    def tests(self, pattern: ast.pattern, subject: str, captures: dict[str, str]) -> Work[
        list[ast.expr]
    ]:
        """What has to be true of the hidden name `subject`; fills `captures`: name -> hidden."""
        self.place = pattern
        match pattern:
            case ast.MatchValue(value=value):
                return [self.compare(self.load(subject), ast.Eq(), value)]
            case ast.MatchSingleton(value=value):
                constant = self.constant(value)
                return [self.compare(self.load(subject), ast.Is(), constant)]
            case ast.MatchAs(pattern=None, name=None):
                return []
            case ast.MatchAs(pattern=inner, name=name):
                found = [] if inner is None else (yield self.tests(inner, subject, captures))
                assert name is not None
                captures[name] = subject
                return found
            case ast.MatchOr(patterns=patterns):
                return (yield self.alternatives(patterns, subject, captures))
            case ast.MatchSequence(patterns=patterns):
                return (yield self.sequence(patterns, subject, captures))
            case ast.MatchMapping():
                return (yield self.mapping(pattern, subject, captures))
            case ast.MatchClass():
                return (yield self.instance(pattern, subject, captures))
        raise AssertionError(pattern)

    def known(self, subject: str, node: ast.Match) -> list[ast.expr]:
        """The subject, and the classes that some case is for."""
        patterns = (p for case in node.cases for p in ast.walk(case.pattern))
        classes = [p.cls for p in patterns if isinstance(p, ast.MatchClass)]
        return [self.load(subject), *classes]

    def alternatives(
        self, patterns: list[ast.pattern], subject: str, captures: dict[str, str]
    ) -> Work[list[ast.expr]]:
        """Patterns joined by `|`: each binds the same names, into hidden names they share."""
        shared: dict[str, str] = {}
        choices: list[ast.expr] = []
        for pattern in patterns:
            own: dict[str, str] = {}
            tests: list[ast.expr] = yield self.tests(pattern, subject, own)
            for name, hidden in own.items():
                tests.append(self.bind(shared.setdefault(name, self.name()), self.load(hidden)))
            choices.append(self.both(tests))
        captures.update(shared)
        self.shared += shared.values()
        return [self.at(ast.BoolOp(ast.Or(), choices))]

    def sequence(
        self, patterns: list[ast.pattern], subject: str, captures: dict[str, str]
    ) -> Work[list[ast.expr]]:
        """`[a, *b, c]`: a sequence that is no string, of that length or more."""
        stars = [i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
        fixed = len(patterns) - len(stars)
        length = self.call(len, self.load(subject))
        order = ast.GtE() if stars else ast.Eq()
        tests: list[ast.expr] = [
            self.at(Ask("is_sequence", [self.load(subject)])),
            self.compare(length, order, self.constant(fixed)),
        ]
        for i, pattern in enumerate(patterns):
            self.place = pattern
            if not isinstance(pattern, ast.MatchStar):
                at = i - len(patterns) if stars and i > stars[0] else i
                tests += yield self.inside(pattern, self.item(subject, self.constant(at)), captures)
            elif pattern.name is not None:
                after = len(patterns) - 1 - i
                stop = self.constant(-after) if after else None
                part = self.at(ast.Slice(self.constant(i), stop))
                hidden = captures[pattern.name] = self.name()
                items = self.call(list, self.load(subject))  # a deque has no slices
                rest = self.at(ast.Subscript(items, part, ast.Load()))
                tests.append(self.bind(hidden, rest))
        return tests

    def mapping(
        self, pattern: ast.MatchMapping, subject: str, captures: dict[str, str]
    ) -> Work[list[ast.expr]]:
        """`{key: pattern, ...}`: a mapping with at least these keys."""
        tests: list[ast.expr] = [self.at(Ask("is_mapping", [self.load(subject)]))]
        for key in pattern.keys:
            tests.append(self.compare(key, ast.In(), self.load(subject)))
        for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
            tests += yield self.inside(inner, self.item(subject, key), captures)
        if pattern.rest is not None:
            hidden = captures[pattern.rest] = self.name()
            tests.append(self.bind(hidden, self.call(_without, self.load(subject), *pattern.keys)))
        return tests

    def instance(
        self, pattern: ast.MatchClass, subject: str, captures: dict[str, str]
    ) -> Work[list[ast.expr]]:
        """`Class(a, b, name=c)`: an instance, its positional and its named attributes."""
        cls = pattern.cls
        tests: list[ast.expr] = [self.call(isinstance, self.load(subject), cls)]
        for i, inner in enumerate(pattern.patterns):
            self.place = inner
            value = self.at(Ask("positional", [self.load(subject), cls], i))
            tests += yield self.inside(inner, value, captures)
        for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            self.place = inner
            tests.append(self.call(hasattr, self.load(subject), self.constant(name)))
            named = self.at(ast.Attribute(self.load(subject), name, ast.Load()))
            tests += yield self.inside(inner, named, captures)
        return tests

    def inside(
        self, pattern: ast.pattern, value: ast.expr, captures: dict[str, str]
    ) -> Work[list[ast.expr]]:
        """Tests of a part of the subject, which is evaluated once, and only if something asks."""
        if isinstance(pattern, ast.MatchAs) and pattern.name is None and pattern.pattern is None:
            return []
        hidden = self.name()
        first = self.bind(hidden, value)
        tests: list[ast.expr] = yield self.tests(pattern, hidden, captures)
        return [first, *tests]

    # -- nodes, placed at the pattern at hand ----------------------------------------------------

    def at(self, node: N) -> N:
        return ast.copy_location(node, self.place)

    def name(self) -> str:
        return f".case{next(self.fresh)}"

    def load(self, name: str) -> ast.Name:
        return self.at(ast.Name(name, ast.Load()))

    def store(self, name: str) -> ast.Name:
        return self.at(ast.Name(name, ast.Store()))

    def constant(self, value: Any) -> ast.expr:
        """A constant, which may be any object here: `len`, `isinstance`."""
        return self.at(ast.Constant(value))

    def bind(self, name: str, value: ast.expr) -> ast.expr:
        return self.at(Bind(self.store(name), value))

    def both(self, tests: list[ast.expr]) -> ast.expr:
        if not tests:
            return self.constant(True)
        return tests[0] if len(tests) == 1 else self.at(ast.BoolOp(ast.And(), tests))

    def compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        return self.at(ast.Compare(left, [op], [right]))

    def call(self, function: object, *args: ast.expr) -> ast.expr:
        return self.at(ast.Call(self.constant(function), list(args), []))

    def item(self, subject: str, key: ast.expr) -> ast.expr:
        return self.at(ast.Subscript(self.load(subject), key, ast.Load()))


def numbers() -> Iterator[int]:
    """A numbering of hidden names, for one function."""
    return itertools.count(1)
