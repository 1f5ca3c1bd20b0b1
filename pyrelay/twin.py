"""The twin run: the first line at which a compiled function does otherwise than plain Python.

In: a Python function and arguments for which results differ. Out: a `Place`, or None.

The function is rewritten twice from its syntax tree. The *log* notes, as it runs in plain Python,
the value of what every statement sets. The *probe* of a statement is compiled and returns that
value when the statement has run a given number of times. The log is searched by bisection for the
first note on which a probe disagrees; what the statement calls is then searched in the same way.
"""

from __future__ import annotations

import ast
import bisect
import copy
import itertools
import linecache
import types
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.frontend import source
from pyrelay.frontend.source import FunctionNode
from pyrelay.records import dataclass

Differ = Callable[[Any, Any, str, list[str]], None]
"""Appends what differs between a compiled and a plain value, which have this name."""

Compile = Callable[[Any], Callable[..., Any]]

_MOST_NOTES = 5000
_DEEPEST = 8
_SEEN, _WANTED, _NOTE, _CALL, _RESULT, _FACTORY, _MISSED = (
    f"twin_{word}_" for word in ("seen", "wanted", "note", "call", "result", "factory", "missed")
)
_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """A statement, how many times it had run, and what differs after it."""

    file: str
    line: int
    function: str
    text: str
    times: int
    differences: tuple[str, ...]

    def __str__(self) -> str:
        times = f", the {_ordinal(self.times)} time" if self.times > 1 else ""
        head = f"first at {self.file}, line {self.line}, in {self.function}{times}: {self.text}"
        return "\n".join([head, *(f"    {each}" for each in self.differences)])


def _ordinal(number: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def first_difference(
    function: Any, args: Sequence[Any], keywords: Mapping[str, Any], compiled: Compile,
    differ: Differ, depth: int = 0,
) -> Place | None:
    """Where a compiled function and the plain one part; None if no single statement shows it.

    Runs the plain function and many compiled prefixes of it, all on copies of the arguments.
    """
    if isinstance(function, types.MethodType):
        args, function = (function.__self__, *args), function.__func__
    if not isinstance(function, types.FunctionType) or depth > _DEEPEST:
        return None
    try:
        search = _Search(function, args, keywords, compiled, differ)
    except errors.SourceUnavailableError:
        return None
    note = search.first()
    if note is None:
        return None
    for callee, given, named in search.calls_at(note):
        inner = first_difference(callee, given, named, compiled, differ, depth + 1)
        if inner is not None:
            return inner
    return search.place(note)


@dataclass(frozen=True)
class _Note:
    """What plain Python had after a statement ran for the `times`th time."""

    point: int
    times: int
    value: Any


class _Enough(Exception):
    """The log is full."""


class _Missed(LookupError):
    """A probe came to its end without the statement having run that often."""


@dataclass(frozen=True)
class _Point:
    """A statement, and what is looked at after it."""

    statement: ast.stmt
    looked_at: ast.expr


class _Search:
    def __init__(
        self, function: types.FunctionType, args: Sequence[Any], keywords: Mapping[str, Any],
        compiled: Compile, differ: Differ,
    ) -> None:
        self.function, self.args, self.keywords = function, args, keywords
        self.compiled, self.differ = compiled, differ
        self.source = source.of(function)
        self.points = list(_points(self.source.node))
        self.probes: dict[int, Callable[..., Any]] = {}
        self.notes = self._log()

    # -- the log -----------------------------------------------------------------------------------

    def _log(self) -> list[_Note]:
        """What plain Python sets, in order, as far as the log goes."""
        notes: list[_Note] = []
        times: Counter[int] = Counter()

        def note(point: int, value: Any) -> None:
            if len(notes) >= _MOST_NOTES:
                raise _Enough
            times[point] += 1
            notes.append(_Note(point, times[point], copy.deepcopy(value)))

        _quietly(self._rewritten(_Log(self.points), {_NOTE: note}), *self._given())
        return notes

    def calls_at(self, note: _Note) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
        """The calls of Python functions that a statement makes when it runs for that time."""
        made: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        times = 0

        def run(point: int, value: Any) -> None:
            nonlocal times
            if point == note.point:
                times += 1
            if times >= note.times:
                raise _Enough

        def call(function: Any, *args: Any, **keywords: Any) -> Any:
            plain = getattr(function, "py", function)
            if times == note.times - 1 and isinstance(
                plain, (types.FunctionType, types.MethodType)
            ):
                made.append((plain, *copy.deepcopy((args, keywords))))
            return function(*args, **keywords)

        statement = self.points[note.point].statement
        log = _Log(self.points, None if hasattr(statement, "body") else statement)
        _quietly(self._rewritten(log, {_NOTE: run, _CALL: call}), *self._given())
        return made

    # -- the search --------------------------------------------------------------------------------

    def first(self) -> _Note | None:
        """The first note that the compiled function disagrees with.

        What a statement sets goes wrong once and mostly stays so: its notes are searched by
        bisection, those of each statement up to the earliest fault known so far.
        """
        of_point: dict[int, list[int]] = {}
        for k, note in enumerate(self.notes):
            of_point.setdefault(note.point, []).append(k)
        earliest = len(self.notes)
        for places in sorted(of_point.values(), key=lambda places: -places[-1]):
            before = places[: bisect.bisect_left(places, earliest)]
            if before and self._wrong(before[-1]):
                end = len(before) - 1
                earliest = before[bisect.bisect_left(before, True, hi=end, key=self._wrong)]
        return self.notes[earliest] if earliest < len(self.notes) else None

    def _wrong(self, place: int) -> bool:
        return bool(self.differences(self.notes[place]))

    def differences(self, note: _Note) -> list[str]:
        """What the compiled function has otherwise after a statement."""
        found: list[str] = []
        name = ast.unparse(self.points[note.point].looked_at)
        if isinstance(self.points[note.point].statement, ast.Return):
            name = "result"
        probe = self.probes.get(note.point)
        if probe is None:
            rewritten = self._rewritten(_Probe(self.points, note.point), {_MISSED: _Missed})
            probe = self.probes[note.point] = self.compiled(rewritten)
        args, keywords = self._given()
        result, error = _quietly(probe, args, {**keywords, _WANTED: note.times})
        if isinstance(error, errors.PyrelayError):
            return []  # this prefix alone is not compiled
        if isinstance(error, _Missed):
            return ["plain Python comes to this line, the compiled program does not"]
        if error is not None:
            return [f"the compiled program has raised {type(error).__name__}: {error}"]
        self.differ(*_of_one_kind(result[0], note.value), name, found)
        return found

    def place(self, note: _Note) -> Place:
        """The statement of a note, for people."""
        span = self.source.first_line(self.points[note.point].statement, self.function.__name__)
        text = (self.source.text.at(span.line) or "").strip()
        file, name = self.source.text.filename, self.function.__qualname__
        return Place(file, span.line, name, text, note.times, tuple(self.differences(note)))

    # -- rewriting ---------------------------------------------------------------------------------

    def _given(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return copy.deepcopy((tuple(self.args), dict(self.keywords)))

    def _rewritten(self, change: _Rewriter, names: Mapping[str, Any]) -> types.FunctionType:
        """The function after a change, over its own globals, with more names, and its cells."""
        code = self.function.__code__
        node = change.function(self.source.node)
        (factory,) = _statements(f"def {_FACTORY}({', '.join(code.co_freevars)}): pass")
        assert isinstance(factory, ast.FunctionDef)
        factory.body = [node]
        if self.source.class_name is not None:  # which mangles private names
            (around,) = _statements(f"class {self.source.class_name}: pass")
            assert isinstance(around, ast.ClassDef)
            around.body = [node]
            factory.body = [around]
        text = ast.unparse(ast.fix_missing_locations(ast.Module([factory], []))) + "\n"
        filename = f"<pyrelay twin {next(_numbers)}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        pending = [compile(text, filename, "exec", dont_inherit=True)]
        while pending[0].co_name != node.name:
            pending += [c for c in pending.pop(0).co_consts if isinstance(c, types.CodeType)]
        found = dict(zip(code.co_freevars, self.function.__closure__ or (), strict=True))
        closure = tuple(found[name] for name in pending[0].co_freevars)
        made = types.FunctionType(
            pending[0], {**self.function.__globals__, **names}, node.name,
            self.function.__defaults__, closure,
        )
        made.__kwdefaults__ = self.function.__kwdefaults__
        return made


def _of_one_kind(a: Any, b: Any) -> tuple[Any, Any]:
    """Numbers as one type: between lines, compiled code keeps what later joins widen them to."""
    numbers = (bool, int, float, complex, np.generic)
    if type(a) is type(b) or not (isinstance(a, numbers) and isinstance(b, numbers)):
        return a, b
    dtype = np.result_type(np.asarray(a), np.asarray(b))
    return dtype.type(a), dtype.type(b)


def _quietly(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Any, Exception | None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **keywords), None
        except Exception as error:
            return None, error


# -- what is looked at -----------------------------------------------------------------------------


def _points(node: FunctionNode) -> Iterator[_Point]:
    """What statements of a function set, in order of the text; not those of functions inside."""
    if isinstance(node, ast.Lambda):
        yield _Point(ast.copy_location(ast.Return(node.body), node.body), node.body)
        return
    pending: list[ast.stmt] = list(reversed(node.body))
    while pending:
        statement = pending.pop()
        yield from (_Point(statement, looked_at) for looked_at in _set_by(statement))
        pending += reversed(list(_inside(statement)))


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements in the blocks of a statement."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(statement, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            else:
                yield from child.body


def _set_by(statement: ast.stmt) -> list[ast.expr]:
    """What a statement may have changed, as expressions that read it afterwards."""
    match statement:
        case ast.Assign(targets=targets):
            return [read for target in targets for read in _read(target)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            return _read(target)
        case ast.For(target=target):
            return _read(target)
        case ast.Return(value=ast.expr() as value):
            return [value]
        case ast.Expr(value=ast.Call(func=func, args=args)):
            owner = [func.value] if isinstance(func, ast.Attribute) else []
            return [read for each in (*owner, *args) for read in _read(each)]
    return []


def _read(target: ast.expr) -> list[ast.expr]:
    match target:
        case ast.Name(id=name):
            return [ast.Name(name, ast.Load())]
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return [read for item in items for read in _read(item)]
        case ast.Starred(value=inner) | ast.Subscript(value=inner):
            return _read(inner)
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return [ast.Attribute(ast.Name(name, ast.Load()), attr, ast.Load())]
    return []


# -- the rewritings --------------------------------------------------------------------------------


class _Rewriter(ABC):
    """A function with statements put behind those of the points; functions inside stay."""

    def __init__(self, points: Sequence[_Point]) -> None:
        self.points: dict[ast.stmt, list[tuple[int, ast.expr]]] = {}
        for number, point in enumerate(points):
            self.points.setdefault(point.statement, []).append((number, point.looked_at))

    def function(self, node: FunctionNode) -> ast.FunctionDef:
        """The function changed: without decorators and annotations, defaults to be filled in."""
        made = ast.parse("def twin_lambda_(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        body = node.body if isinstance(node, ast.FunctionDef) else list(self.points)
        if isinstance(node, ast.FunctionDef):
            made.name = f"twin_{node.name}_"  # its own name stays a global
        none = ast.Constant(None)
        made.args = ast.arguments(
            [_bare(a) for a in node.args.posonlyargs], [_bare(a) for a in node.args.args],
            node.args.vararg and _bare(node.args.vararg),
            [_bare(a) for a in node.args.kwonlyargs],
            [d and none for d in node.args.kw_defaults],
            node.args.kwarg and _bare(node.args.kwarg), [none] * len(node.args.defaults),
        )
        made.body = self.block(body) or [ast.Pass()]
        return made

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements changed, with what is put between them."""
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """What becomes of a statement."""
        if isinstance(statement, ast.Return):
            return self.returned(statement)
        new = copy.copy(statement)
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                if inner := getattr(statement, name, None):
                    setattr(new, name, self.block(inner))
            for name in ("handlers", "cases"):
                if clauses := getattr(statement, name, None):
                    setattr(new, name, [self.clause(c) for c in clauses])
        here = self.points.get(statement, ())
        after = [new for point, looked_at in here for new in self.after(point, looked_at)]
        if isinstance(new, ast.For):
            new.body = [*after, *new.body]
            return [new]
        return [new, *after]

    def clause(self, clause: Any) -> Any:
        """An except clause or a case."""
        new = copy.copy(clause)
        new.body = self.block(clause.body)
        return new

    @abstractmethod
    def after(self, point: int, looked_at: ast.expr) -> list[ast.stmt]:
        """What is put behind a point."""

    @abstractmethod
    def returned(self, statement: ast.Return) -> list[ast.stmt]:
        """What becomes of a return."""


def _bare(arg: ast.arg) -> ast.arg:
    return ast.arg(arg.arg)


class _Log(_Rewriter):
    """Notes every point; the calls of one statement are made through a function of the search."""

    def __init__(self, points: Sequence[_Point], calls_of: ast.stmt | None = None) -> None:
        super().__init__(points)
        self.calls_of = calls_of

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        if statement is not self.calls_of:
            return super().statement(statement)
        through = _ThroughCall().visit(copy.deepcopy(statement))
        self.points[through] = self.points[statement]
        return super().statement(through)

    def after(self, point: int, looked_at: ast.expr) -> list[ast.stmt]:
        arguments = [ast.Constant(point), looked_at]
        return [ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), arguments, []))]

    def returned(self, statement: ast.Return) -> list[ast.stmt]:
        if statement.value is None:
            return [statement]
        result = ast.Name(_RESULT, ast.Load())
        notes = [s for k, _ in self.points[statement] for s in self.after(k, result)]
        assign = ast.Assign([ast.Name(_RESULT, ast.Store())], statement.value)
        return [assign, *notes, ast.Return(result)]


class _ThroughCall(ast.NodeTransformer):
    """`f(x)` becomes `call(f, x)`; not in functions inside, which run elsewhere."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        return ast.Call(ast.Name(_CALL, ast.Load()), [node.func, *node.args], node.keywords)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


class _Probe(_Rewriter):
    """Returns what one point looks at, in a tuple, when it is reached for the time asked for."""

    def __init__(self, points: Sequence[_Point], point: int) -> None:
        super().__init__(points)
        self.point = point

    def function(self, node: FunctionNode) -> ast.FunctionDef:
        made = super().function(node)
        made.args.kwonlyargs.append(ast.arg(_WANTED))
        made.args.kw_defaults.append(None)
        made.body = [*_statements(f"{_SEEN} = 0"), *made.body, *_missed()]
        return made

    def after(self, point: int, looked_at: ast.expr) -> list[ast.stmt]:
        if point != self.point:
            return []
        count, leave = _statements(f"{_SEEN} += 1\nif {_SEEN} == {_WANTED}:\n    pass")
        assert isinstance(leave, ast.If)
        leave.body = [ast.Return(ast.Tuple([looked_at], ast.Load()))]
        return [count, leave]

    def returned(self, statement: ast.Return) -> list[ast.stmt]:
        for point, looked_at in self.points.get(statement, ()):
            if point == self.point:
                return [ast.Return(ast.Tuple([looked_at], ast.Load()))]
        return _missed()


def _missed() -> list[ast.stmt]:
    return _statements(f"raise {_MISSED}")


def _statements(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


__all__ = ["Place", "first_difference"]
