"""Which variable every name means, by Python's rules of scope.

In: the tree of a function. Out: `Names`: for each node that names something the `Variable` or the
place outside of the program that it means; for each function in it its parameters and the variables
it captures. Comprehensions are no functions here: their variables are variables of the function
that nobody else can name (PEP 709 does the same to Python 3.12).

The rules are those of Python's language reference, section 4.2, and PEP 572 for `:=`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from pyrelay.frontend import generators, managing, patterns, trying
from pyrelay.frontend.source import FunctionNode
from pyrelay.records import dataclass

MODULE = "the module"
"""What a function names where it assigns to a variable of its module: no variable is called so."""
CELL = "the cell of "
"""And where it assigns to a variable of a function around the program, before that one's name."""

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
PARAMETER_KINDS = (
    "positional_only", "positional_or_keyword", "var_positional", "keyword_only", "var_keyword",
)


@dataclass(slots=True, eq=False)
class Variable:
    """A variable of a function of the program.

    `captured`: a nested function reads or writes it, so it lives in a cell. `bit` is its place in
    sets of live variables, 0 for those that live in cells.
    """

    name: str
    owner: FunctionScope
    index: int
    captured: bool = False
    deleted: bool = False
    comprehension: bool = False

    @property
    def bit(self) -> int:
        """Its place in a set of variables kept as an int."""
        return 0 if self.captured else 1 << self.index

    @property
    def shown(self) -> str:
        """The name to show in programs."""
        return "subject" if self.name.startswith(".") else self.name


@dataclass(frozen=True, slots=True)
class Outside:
    """A name of the module or of Python ('global'), or of the entry's closure ('free'); or what has
    such a name as an attribute, where it is assigned: the module that the function stands in
    ('module'), or the variable of the closure ('cell')."""

    scope: str
    name: str


@dataclass(slots=True, eq=False)
class FunctionScope:
    """A function: its variables, its parameters by kind, and the variables it captures."""

    node: FunctionNode
    parent: FunctionScope | None
    params: list[tuple[str, Variable, ast.arg]] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    cells: dict[Variable, None] = field(default_factory=dict)

    def variable(self, name: str, comprehension: bool = False) -> Variable:
        """A new variable."""
        made = Variable(name, self, len(self.variables), comprehension=comprehension)
        self.variables.append(made)
        return made


@dataclass(frozen=True, slots=True)
class Problem:
    """A construct that is not compiled: where, what it is called, what to write instead."""

    node: ast.AST
    word: str
    instead: str


@dataclass(slots=True, eq=False)
class Names:
    """What the names of a function mean, and what was found on the way.

    meaning: by node; the node of a name is its `Name`, or the `FunctionDef`, `alias` or `arg`.
    rewritten: the statements that stand for a `match`, `try`, `with` or `yield`, or assign to
    variables of the module.
    generators: the functions that stand for generator expressions. raised: what a bare `raise`
    raises. classes: the class definitions in each function.
    """

    class_name: str | None
    meaning: dict[ast.AST, Variable | Outside] = field(default_factory=dict)
    functions: dict[FunctionNode, FunctionScope] = field(default_factory=dict)
    comprehensions: dict[Comprehension, list[Variable]] = field(default_factory=dict)
    rewritten: dict[ast.stmt, list[ast.stmt]] = field(default_factory=dict)
    generators: dict[ast.AST, ast.FunctionDef] = field(default_factory=dict)
    raised: dict[ast.Raise, ast.expr] = field(default_factory=dict)
    classes: dict[FunctionScope, list[ast.ClassDef]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def variable(self, node: ast.AST) -> Variable:
        """The variable that a node means, which is one of the program."""
        found = self.meaning[node]
        assert isinstance(found, Variable)
        return found

    def mangled(self, name: str) -> str:
        """A private name as Python spells it outside of its class."""
        cls = (self.class_name or "").lstrip("_")
        private = name.startswith("__") and not name.endswith("__")
        return f"_{cls}{name}" if cls and private else name


@dataclass(slots=True, eq=False)
class _Level:
    """A scope while names are collected: a function, or a comprehension inside of one."""

    function: FunctionScope
    parent: _Level | None
    bound: dict[str, Variable] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    is_comprehension: bool = False

    def home(self) -> _Level:
        """The level of the function."""
        level = self
        while level.is_comprehension:
            assert level.parent is not None
            level = level.parent
        return level


def analyse(node: FunctionNode, class_name: str | None, free: Iterable[str]) -> Names:
    """Resolve all names in a function; `free` are the free variables of its code object."""
    lazy = generators.kept(node)
    return _Analysis(Names(class_name), frozenset(free), lazy).run(node)


class _Analysis:
    def __init__(self, names: Names, free: frozenset[str], lazy: frozenset[ast.AST]) -> None:
        self.names, self.free, self.lazy = names, free, lazy
        self.uses: list[tuple[ast.AST, str, _Level, bool]] = []
        self.pending: list[tuple[ast.AST, _Level]] = []
        self.hidden = patterns.numbers()
        self.last: set[ast.AST] = set()  # statements that functions end with

    def run(self, node: FunctionNode) -> Names:
        self.enter(node, None)
        while self.pending:
            here, level = self.pending.pop()
            visit = _VISITS.get(type(here), _Analysis.others)
            visit(self, here, level)
        for use in self.uses:
            self.resolve(*use)
        return self.names

    def later(self, nodes: Iterable[ast.AST | None], level: _Level) -> None:
        """Visit these in order, before everything that waits."""
        wanted = [n for n in nodes if n is not None]
        self.pending += [(n, level) for n in reversed(wanted)]

    def use(self, node: ast.AST, name: str, level: _Level, stored: bool) -> None:
        name = self.names.mangled(name)
        if stored and name not in level.bound and name not in level.declared:
            level.bound[name] = level.function.variable(name, level.is_comprehension)
        self.uses.append((node, name, level, stored))

    def enter(self, node: FunctionNode, parent: _Level | None) -> None:
        """Begin a function: its parameters and, later, its body."""
        scope = FunctionScope(node, None if parent is None else parent.function)
        self.names.functions[node] = scope
        level = _Level(scope, parent)
        for kind, arg in parameters(node.args):
            name = self.names.mangled(arg.arg)
            variable = level.bound[name] = scope.variable(name)
            self.names.meaning[arg] = variable
            scope.params.append((kind, variable, arg))
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self.last.add(body[-1])
        self.later(body, level)

    # -- nodes -----------------------------------------------------------------------------------

    def others(self, node: ast.AST, level: _Level) -> None:
        self.later(ast.iter_child_nodes(node), level)

    def name(self, node: ast.Name, level: _Level) -> None:
        self.use(node, node.id, level, not isinstance(node.ctx, ast.Load))

    def definition(self, node: ast.FunctionDef, level: _Level) -> None:
        self.use(node, node.name, level, True)
        self.enter(node, level)
        self.later([*node.decorator_list, *node.args.defaults, *node.args.kw_defaults], level)

    def class_(self, node: ast.ClassDef, level: _Level) -> None:
        self.use(node, node.name, level, True)
        self.names.classes.setdefault(level.function, []).append(node)

    def anonymous(self, node: ast.Lambda, level: _Level) -> None:
        self.enter(node, level)
        self.later([*node.args.defaults, *node.args.kw_defaults], level)

    def generator(self, node: ast.GeneratorExp, level: _Level) -> None:
        if node not in self.lazy:
            self.comprehension(node, level)
            return
        function = self.names.generators[node] = generators.as_function(node)
        self.enter(function, level)
        self.later([node.generators[0].iter], level)

    def statement(self, node: ast.Expr, level: _Level) -> None:
        if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            self.names.rewritten[node] = generators.as_condition(node.value, self.hidden)
            self.later(self.names.rewritten[node], level)
        else:
            self.later([node.value], level)

    def assignment(self, node: ast.Assign, level: _Level) -> None:
        if not isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            targets = [self.of_module(t, level) for t in node.targets]
            self.instead(node, ast.Assign(targets, node.value), targets != node.targets, level)
            return
        self.names.rewritten[node] = generators.as_assignment(node, self.hidden)
        self.later(self.names.rewritten[node], level)

    def returning(self, node: ast.Return, level: _Level) -> None:
        if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            self.names.rewritten[node] = generators.as_return(node, self.hidden)
            self.later(self.names.rewritten[node], level)
        else:
            self.others(node, level)

    def augmented(self, node: ast.AugAssign, level: _Level) -> None:
        if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            self.names.rewritten[node] = generators.as_augmented(node, self.hidden)
            self.later(self.names.rewritten[node], level)
            return
        target = self.of_module(node.target, level)
        assert isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
        changed = ast.AugAssign(target, node.op, node.value)
        self.instead(node, changed, target is not node.target, level)

    def instead(self, node: ast.stmt, other: ast.stmt, is_other: bool, level: _Level) -> None:
        """Visit a statement, or the one that stands for it."""
        if is_other:
            node = self.names.rewritten.setdefault(node, [ast.copy_location(other, node)])[0]
        self.others(node, level)

    def of_module(self, target: ast.expr, level: _Level) -> ast.expr:
        """A target in which variables of the module are attributes of it, and those of a function
        around the program attributes of their cells."""
        match target:
            case ast.Name(id=name) if (owner := self.owner_of(name, level)) is not None:
                module = ast.copy_location(ast.Name(owner, ast.Load()), target)
                return ast.copy_location(ast.Attribute(module, name, ast.Store()), target)
            case ast.Starred(value=inner):
                changed = self.of_module(inner, level)
                return target if changed is inner else (
                    ast.copy_location(ast.Starred(changed, ast.Store()), target)
                )
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items = [self.of_module(part, level) for part in parts]
                return target if items == parts else (
                    ast.copy_location(ast.Tuple(items, ast.Store()), target)
                )
        return target

    def owner_of(self, name: str, level: _Level) -> str | None:
        """What has a variable as an attribute that the function declares to be of elsewhere."""
        home = level.home()
        declared = home.declared.get(self.names.mangled(name))
        if declared == "global":
            return MODULE
        return CELL + name if declared == "nonlocal" and home.parent is None else None

    def call(self, node: ast.Call, level: _Level) -> None:
        match node:
            case ast.Call(func=ast.Name(id="super"), args=[], keywords=[]):
                parameters = level.home().function.params
                if parameters:  # as Python does it: super(__class__, <the first argument>)
                    own = [ast.Name("__class__", ast.Load()), ast.Name(
                        parameters[0][1].name, ast.Load()
                    )]
                    node.args.extend(ast.copy_location(name, node) for name in own)
        self.others(node, level)

    def comprehension(self, node: Comprehension, level: _Level) -> None:
        inside = _Level(level.function, level, is_comprehension=True)
        first, *others = node.generators
        element = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.later(element, inside)
        self.later(others, inside)
        self.later([first.target, *first.ifs], inside)
        self.later([first.iter], level)
        self.names.comprehensions[node] = []
        for target in (g.target for g in node.generators):
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    self.use(part, part.id, inside, True)
        self.names.comprehensions[node] += inside.bound.values()

    def walrus(self, node: ast.NamedExpr, level: _Level) -> None:
        self.use(node.target, node.target.id, level.home(), True)
        self.later([node.value], level)

    def declaration(self, node: ast.Global | ast.Nonlocal, level: _Level) -> None:
        kind = "global" if isinstance(node, ast.Global) else "nonlocal"
        for name in node.names:
            level.declared[self.names.mangled(name)] = kind

    def imports(self, node: ast.Import | ast.ImportFrom, level: _Level) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            short = name.partition(".")[0] if isinstance(node, ast.Import) else name
            self.use(alias, short, level, True)

    def annotated(self, node: ast.AnnAssign, level: _Level) -> None:
        self.later([node.value, node.target], level)  # annotations of variables are not evaluated

    def match(self, node: ast.Match, level: _Level) -> None:
        statements = patterns.as_conditions(node, self.hidden, node in self.last)
        self.names.rewritten[node] = statements
        self.later(statements, level)

    def attempt(self, node: ast.Try, level: _Level) -> None:
        statements = trying.as_attempts(node, self.hidden, self.names.raised)
        self.names.rewritten[node] = statements
        self.later(statements, level)

    def management(self, node: ast.With, level: _Level) -> None:
        statements = managing.as_attempts(node, self.hidden)
        self.names.rewritten[node] = statements
        self.later(statements, level)

    def raising(self, node: ast.Raise, level: _Level) -> None:
        self.later([self.names.raised.get(node, node.exc), node.cause], level)

    # -- meaning ---------------------------------------------------------------------------------

    def resolve(self, node: ast.AST, name: str, level: _Level, stored: bool) -> None:
        """Find what a name means, once all bindings are known."""
        if name == MODULE:
            self.names.meaning[node] = Outside("module", name)
            return
        if name.startswith(CELL):
            self.names.meaning[node] = Outside("cell", name.removeprefix(CELL))
            return
        declared = level.home().declared.get(name)
        if declared == "global":
            self.outside(node, Outside("global", name), stored)
            return
        step: _Level | None = level
        while step is not None and name not in step.bound:
            step = step.parent
            if step is not None and step.declared.get(name) == "global":
                self.outside(node, Outside("global", name), stored)
                return
        if step is None:
            scope = "free" if name in self.free else "global"
            self.outside(node, Outside(scope, name), stored)
            return
        variable = step.bound[name]
        self.names.meaning[node] = variable
        if isinstance(getattr(node, "ctx", None), ast.Del):
            variable.deleted = True
        function: FunctionScope | None = level.function
        while function is not variable.owner:
            assert function is not None
            variable.captured = True
            function.cells[variable] = None
            function = function.parent

    def outside(self, node: ast.AST, meaning: Outside, stored: bool) -> None:
        self.names.meaning[node] = meaning
        if not stored:
            return
        if meaning.scope == "global":
            word, instead = "a write to a global variable", "return the value and assign it outside"
        else:
            word = "a write to a variable of a function outside of the compiled one"
            instead = "return the value and assign it there"
        self.names.problems.append(Problem(node, word, instead))


def parameters(args: ast.arguments) -> list[tuple[str, ast.arg]]:
    """The parameters in the order of `inspect.signature`, with their kinds."""
    positional_only, positional, star, keyword_only, double_star = PARAMETER_KINDS
    found = [(positional_only, a) for a in args.posonlyargs]
    found += [(positional, a) for a in args.args]
    found += [(star, a) for a in (args.vararg,) if a is not None]
    found += [(keyword_only, a) for a in args.kwonlyargs]
    found += [(double_star, a) for a in (args.kwarg,) if a is not None]
    return found


_VISITS: dict[type[ast.AST], Callable[[_Analysis, Any, _Level], None]] = {
    ast.Name: _Analysis.name,
    ast.FunctionDef: _Analysis.definition,
    ast.ClassDef: _Analysis.class_,
    ast.Lambda: _Analysis.anonymous,
    ast.ListComp: _Analysis.comprehension,
    ast.SetComp: _Analysis.comprehension,
    ast.DictComp: _Analysis.comprehension,
    ast.GeneratorExp: _Analysis.generator,
    ast.Expr: _Analysis.statement,
    ast.Assign: _Analysis.assignment,
    ast.AugAssign: _Analysis.augmented,
    ast.Return: _Analysis.returning,
    ast.Call: _Analysis.call,
    ast.NamedExpr: _Analysis.walrus,
    ast.Global: _Analysis.declaration,
    ast.Nonlocal: _Analysis.declaration,
    ast.Import: _Analysis.imports,
    ast.ImportFrom: _Analysis.imports,
    ast.AnnAssign: _Analysis.annotated,
    ast.Match: _Analysis.match,
    ast.Try: _Analysis.attempt,
    ast.With: _Analysis.management,
    ast.Raise: _Analysis.raising,
}
