"""The state of one function while it is lowered: the block being written and what names hold.

In: requests to emit, read and write, from `expressions`, `statements` and `loops`. Out: Lets.
Variables become SSA values as they go (the structured case of Braun et al., "Simple and efficient
construction of SSA form", 2013: `flow` has computed every join beforehand). A variable that a
nested function uses lives in a cell; one that some path leaves unset holds UNSET there, and reading
it is checked.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.errors import Span
from pyrelay.frontend.flow import Flow
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.scope import FunctionScope, Names, Outside, Variable
from pyrelay.frontend.source import FunctionNode, FunctionSource
from pyrelay.ir.nodes import (
    NO_ATTRS,
    TEMPORARY,
    UNREAD,
    UNSET,
    Atom,
    Attrs,
    Block,
    Const,
    If,
    Let,
    PyCall,
    Rhs,
    Var,
)
from pyrelay.records import dataclass

NONE, TRUE, FALSE, NOT_SET, NOT_READ = map(Const, (None, True, False, UNSET, UNREAD))


@dataclass(slots=True)
class Pending:
    """A nested function that still has to be lowered. `certain`: captured variables surely set."""

    node: FunctionNode
    name: str
    certain: frozenset[Variable]


@dataclass(slots=True, eq=False)
class Program:
    """What the functions of one module share. `is_builtin`: whether a name is still Python's."""

    source: FunctionSource
    names: Names
    is_builtin: Callable[[str], bool]
    code: types.CodeType
    package: str
    pending: list[Pending] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    lambdas: int = 0
    classes: dict[ast.ClassDef, type] = field(default_factory=dict)  # those defined in it

    def function_name(self, outer: str, node: FunctionNode) -> str:
        """A name in the module for a nested function."""
        if isinstance(node, ast.Lambda):
            self.lambdas += 1
            name = f"{outer}.<lambda>{self.lambdas}"
        else:
            plain = name = f"{outer}.{node.name}"
            number = 1
            while name in self.taken:
                number += 1
                name = f"{plain}{number}"
        self.taken.add(name)
        return name


@dataclass(slots=True)
class Env:
    """What is known at a point of the program.

    values: the value of each variable that lives in no cell; None where liveness says that nobody
    reads it. unset: variables that may have no value. scope: the names of the `pyrelay.scope`
    blocks that are open, joined by "/".
    """

    values: dict[Variable, Atom | None]
    unset: set[Variable]
    scope: str = ""

    def copy(self) -> Env:
        """An independent copy."""
        return Env(dict(self.values), set(self.unset), self.scope)


class Lowering:
    """One function on its way to a block."""

    def __init__(
        self, program: Program, scope: FunctionScope, flow: Flow, name: str
    ) -> None:
        self.program, self.scope, self.flow, self.name = program, scope, flow, name
        self.names = program.names
        self.lets: list[Let] = []
        self.env = Env({}, set())
        self.cells: dict[Variable, Atom] = {}

    # -- emitting --------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        return self.program.source.span(node, self.name)

    def first_line(self, node: ast.AST) -> Span:
        """The first line of a statement that has a body."""
        return self.program.source.first_line(node, self.name)

    def header(self, node: ast.AST, last: ast.AST) -> Span:
        """A statement up to the end of `last`: `if test`, `for x in y`."""
        return self.program.source.header(node, last, self.name)

    def bind(self, rhs: Rhs, span: Span, names: Sequence[str] = (TEMPORARY,)) -> tuple[Var, ...]:
        """Emit a Let with an output for each name."""
        if self.env.scope:
            span = replace(span, scope=self.env.scope)
        outs = tuple(Var(name, span=span) for name in names)
        self.lets.append(Let(outs, rhs, span=span))
        return outs

    def py(self, kind: str, args: Sequence[Atom], span: Span, **attrs: Any) -> Var:
        """Emit a PyCall that has a value."""
        rhs = PyCall(kind, tuple(args), Attrs(**attrs) if attrs else NO_ATTRS)
        return self.bind(rhs, span)[0]

    def act(self, kind: str, args: Sequence[Atom], span: Span, **attrs: Any) -> None:
        """Emit a PyCall that has none."""
        rhs = PyCall(kind, tuple(args), Attrs(**attrs) if attrs else NO_ATTRS)
        self.bind(rhs, span, ())

    def named(self, atom: Atom, name: str) -> Atom:
        """Give the value just computed the name of the variable that it is about to be assigned to.

        Only for a value that nobody else holds; the renamed one is the result.
        """
        if not self.lets or not isinstance(atom, Var) or atom.name != TEMPORARY:
            return atom
        last = self.lets[-1]
        if last.outs != (atom,):
            return atom
        renamed = Var(name, span=atom.span)
        self.lets[-1] = Let((renamed,), last.rhs, span=last.span)
        return renamed

    # -- variables -------------------------------------------------------------------------------

    def read(self, meaning: Variable | Outside, span: Span) -> Atom:
        """The value of a name."""
        if isinstance(meaning, Outside):
            return self.py("name", (), span, scope=meaning.scope, name=meaning.name)
        value: Atom | None
        if meaning.captured:
            value = self.py("get_cell", (self.cells[meaning],), span, name=meaning.name)
        else:
            value = self.env.values[meaning]
        assert value is not None, f"{meaning.name} is read where it is not live"
        if meaning not in self.env.unset:
            return value
        checked = PyCall("bound", (value,), Attrs(name=meaning.name))
        (value,) = self.bind(checked, span, (meaning.shown,))
        if not meaning.captured:
            self.env.values[meaning] = value
        if not (meaning.captured and meaning.deleted):
            self.env.unset.discard(meaning)
        return value

    def write(self, variable: Variable, value: Atom, span: Span) -> None:
        """Assign to a variable."""
        if variable.captured:
            self.act("set_cell", (self.cells[variable], value), span, name=variable.name)
        else:
            self.env.values[variable] = value
        if not (variable.captured and variable.deleted):
            self.env.unset.discard(variable)

    def delete(self, variable: Variable, span: Span) -> None:
        """Make a variable unset; an error if it is already."""
        self.read(variable, span)
        if variable.captured:
            self.act("set_cell", (self.cells[variable], NOT_SET), span, name=variable.name)
        else:
            self.env.values[variable] = NOT_SET
        self.env.unset.add(variable)

    def begin(self, variable: Variable, value: Atom, span: Span) -> None:
        """Give a variable its place: a cell if it is captured."""
        if variable.captured:
            self.cells[variable] = self.py("new_cell", (value,), span, name=variable.name)
        else:
            self.env.values[variable] = value
        if value is NOT_SET:
            self.env.unset.add(variable)

    # -- blocks ----------------------------------------------------------------------------------

    def block(self, work: Work[tuple[Atom, ...]]) -> Work[Block]:
        """A block of what `work` emits; what it does to the variables is forgotten after it."""
        lets, env = self.lets, self.env
        self.lets, self.env = [], env.copy()
        results: tuple[Atom, ...] = yield work
        block = Block(tuple(self.lets), results)
        self.lets, self.env = lets, env
        return block

    def choose(
        self, cond: Atom, then: Block, orelse: Block, names: Sequence[str], span: Span
    ) -> tuple[Atom, ...]:
        """Emit an If; its results by slot, without outputs where both blocks agree."""
        inside = [{out for let in block.lets for out in let.outs} for block in (then, orelse)]
        results: list[Atom | None] = []
        for a, b in zip(then.results, orelse.results, strict=True):
            holds = a is TRUE and b is FALSE
            results.append(cond if holds else _agreed(a, b, *inside))
        slots = [i for i, agreed in enumerate(results) if agreed is None]
        if slots or then.lets or orelse.lets:
            blocks = [
                Block(block.lets, tuple(block.results[i] for i in slots))
                for block in (then, orelse)
            ]
            outs = self.bind(If(cond, *blocks), span, [names[i] for i in slots])
            for i, out in zip(slots, outs, strict=True):
                results[i] = out
        return tuple(atom for atom in results if atom is not None)


def _agreed(a: Atom, b: Atom, in_a: set[Var], in_b: set[Var]) -> Atom | None:
    """The atom that stands for both, if there is one that is visible after the two blocks."""
    if isinstance(a, Var) and a in in_a:
        return None
    if isinstance(b, Var) and b in in_b:
        return None
    if a is b or (isinstance(b, Const) and b.value is UNREAD):
        return a
    if isinstance(a, Const) and a.value is UNREAD:
        return b
    if isinstance(a, Const) and isinstance(b, Const) and a.value is b.value:
        return a if a.value is None or isinstance(a.value, bool) or a.value is UNSET else None
    return None


# -- dispatch ------------------------------------------------------------------------------------

Rule = Callable[[Lowering, Any], Work[Atom] | Atom]
_RULES: dict[type[ast.AST], Rule] = {}


def lowers(*kinds: type[ast.AST]) -> Callable[[Rule], Rule]:
    """Register the rule that evaluates expressions of these kinds."""

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            _RULES[kind] = rule
        return rule

    return register


def evaluate(low: Lowering, node: ast.AST) -> Work[Atom]:
    """The value of an expression; nothing is emitted before the work is begun."""
    return (yield _RULES[type(node)](low, node))
