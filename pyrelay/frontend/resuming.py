"""Generators as classes: what is asked for an item goes on where it was left.

In: a generator function. Out: the functions of a class whose objects do what the generator does, an
item at a call of `__next__`: its variables are fields, and a number says at which `yield` it was
left. What stands before that `yield` is skipped: loops around it begin in the middle of a round,
and branches are taken by the number. So each loop stays a loop, and where it is known which `yield`
was last, as in a generator with one, nothing is left of the number. (C# compiles iterators to such
classes, with jumps in place of what is skipped: ECMA-334, section 15.14.)

The functions are made of the tree of the generator, so that their spans are the generator's.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Sequence
from typing import Any, TypeVar

from pyrelay.frontend import source
from pyrelay.frontend.generators import parted
from pyrelay.python_trees import children, nodes

N = TypeVar("N", bound=ast.AST)

_OBJECT, _NUMBER, _PLACE, _SENT = ".object", ".number", ".place", ".sent"
_RETURNED = ".returned"
_BEFORE, _GOT = ".before", ".got"
_OVER = -1
"""The number of one that has ended."""
_INDEXED = "__indexed__"  # whoever makes the class adds it: what a `for` goes through, by places


class _CannotResume(Exception):
    """The generator has a form that is not taken apart."""


def functions_of(
    function: types.FunctionType, line: int, captured: Sequence[str]
) -> dict[str, Any] | None:
    """`__init__`, which takes the generator's parameters in their order, and then what it captures,
    `__iter__` and `__next__`, and `send` where it takes what is sent.

    line: that of its `def`, which is the function's, or stands in it. captured: variables of
    functions around it that only the program has. None where the generator has a form that is not
    taken apart.
    """
    code, node = _standing(function, line)
    if not isinstance(node, ast.FunctionDef):
        return None
    node = _Parted().visit(copy.deepcopy(node))
    args = node.args
    parameters = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg)
    given = [each.arg for each in parameters if each is not None]
    try:
        names = (*code.co_varnames, *code.co_cellvars, *captured, _BEFORE, _GOT)
        body = _Resumed(frozenset(names)).function(node)
    except _CannotResume:
        return None
    itself = _at(node, ast.Return(_name(node, _OBJECT, ast.Load())))
    made = [
        _init(node, (*given, *captured)), _definition(node, "__iter__", [_OBJECT], [itself]),
    ]
    if any(isinstance(each, ast.Assign) and _is_sent(each) for each in nodes(node)):
        nothing = _at(node, ast.Call(
            _field(node, "send", ast.Load()), [_at(node, ast.Constant(None))], []
        ))
        made += [
            _definition(node, "__next__", [_OBJECT], [_at(node, ast.Return(nothing))]),
            _definition(node, "send", [_OBJECT, _SENT], [*_nothing_yet(node.body[0]), *body]),
        ]
    else:
        made.append(_definition(node, "__next__", [_OBJECT], body))
    return {each.name: _compiled(function, each) for each in made}


def _standing(
    function: types.FunctionType, line: int
) -> tuple[types.CodeType, ast.AST]:
    """The code and the tree of the function whose `def` stands in a line."""
    found: list[types.CodeType] = [function.__code__]
    for code in found:
        found += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    for node in nodes(source.of(function).node):
        if isinstance(node, ast.FunctionDef) and node.lineno == line:
            first = min([line, *(each.lineno for each in node.decorator_list)])
            for code in found:
                if (code.co_name, code.co_firstlineno) == (node.name, first):
                    return code, node
    return function.__code__, source.of(function).node


def _is_endless(node: ast.FunctionDef) -> bool:
    """Whether it ends with a `while True` that nothing leaves."""
    last = node.body[-1]
    return (
        isinstance(last, ast.While) and _is_true(last.test)
        and not any(isinstance(each, ast.Return) for each in nodes(node))
        and not any(map(_breaks, last.body))
    )


def _breaks(node: ast.AST) -> bool:
    """Whether a statement of a loop's body leaves the loop."""
    if isinstance(node, (ast.For, ast.While)):
        return any(map(_breaks, node.orelse))
    return isinstance(node, ast.Break) or any(map(_breaks, children(node)))


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


class _Parted(ast.NodeTransformer):
    """Statements where `x += yield y` reads x, assigns what is sent, and adds that."""

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not isinstance(node.target, ast.Name) or not isinstance(node.value, ast.Yield):
            return node
        return parted(node, _BEFORE, _GOT)


class _Fields(ast.NodeTransformer):
    """Statements without a `yield`, with variables of the generator as fields of the object."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> Any:
        match node:
            case ast.Name(id=name, ctx=context):
                return _field(node, name, context) if name in self.names else node
            case ast.Return(value=value):
                return _ended(node, None if value is None else self.visit(value))
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                if value is None:
                    return _at(node, ast.Pass())
                return _at(node, ast.Assign([self.visit(target)], self.visit(value)))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node)
            case (
                ast.NamedExpr() | ast.Lambda() | ast.FunctionDef() | ast.ClassDef()
                | ast.Nonlocal() | ast.Match() | ast.Try()
            ):
                raise _CannotResume
        return self.generic_visit(node)

    def _comprehension(self, node: Any) -> ast.AST:
        """The first iterable is evaluated outside, where the names of the targets may be others."""
        first = self.visit(node.generators[0].iter)
        outside = self.names
        self.names = outside - {
            each.id for generator in node.generators for each in nodes(generator.target)
            if isinstance(each, ast.Name)
        }
        made: Any = self.generic_visit(node)
        self.names = outside
        made.generators[0].iter = first
        return made


class _Resumed:
    """The body of `__next__`."""

    def __init__(self, names: frozenset[str]) -> None:
        self.fields = _Fields(names)
        self.numbers: dict[ast.AST, frozenset[int]] = {}
        self.loops = 0

    def function(self, node: ast.FunctionDef) -> list[ast.stmt]:
        node = copy.deepcopy(node)
        self._count(node)
        first, last = node.body[0], node.body[-1]
        begun = _assign(first, _PLACE, _field(first, _NUMBER, ast.Load()))
        if _is_endless(node):
            return [begun, *self._block(node.body)]
        over = _if(first, self._is_at(first, {_OVER}), _ended(first))
        return [begun, over, *self._block(node.body), *_ended(last)]

    def _count(self, node: ast.AST) -> None:
        """Number what yields, and note for each node which of these lie in it."""
        found, number = list(nodes(node)), 0
        for each in reversed(found):  # those further in first
            own: frozenset[int] = frozenset()
            if isinstance(each, (ast.Yield, ast.YieldFrom)):
                number += 1
                own = frozenset((number,))
            self.numbers[each] = own.union(*(self.numbers[child] for child in children(each)))

    def _block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements in order, of which those before the `yield` that was last are skipped."""
        out: list[ast.stmt] = []
        plain: list[ast.stmt] = []
        yielding = sum(bool(self.numbers[each]) for each in body)
        for statement in body:
            if not self.numbers[statement]:
                read = self.fields.visit(statement)
                plain += read if isinstance(read, list) else [read]
                continue
            out += self._skipped(plain)
            plain = []
            made = self._statement(statement)
            if yielding > 1:
                made = [_if(statement, self._is_at(statement, {0, *self.numbers[statement]}), made)]
            out += made
        return [*out, *plain]

    def _skipped(self, plain: list[ast.stmt]) -> list[ast.stmt]:
        return [_if(plain[0], self._is_at(plain[0], {0}), plain)] if plain else []

    def _is_at(self, near: ast.AST, numbers: set[int]) -> ast.expr:
        tests: list[ast.expr] = [
            _at(near, ast.Compare(
                _name(near, _PLACE, ast.Load()), [ast.Eq()], [_at(near, ast.Constant(number))]
            ))
            for number in sorted(numbers)
        ]
        return tests[0] if len(tests) == 1 else _at(near, ast.BoolOp(ast.Or(), tests))

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=targets) if _is_sent(node):
                left = self._statement(_yielding(node, self.numbers))
                sent = _name(node, _SENT, ast.Load())
                return [*left, _at(node, ast.Assign(list(map(self.fields.visit, targets)), sent))]
            case ast.Expr(ast.Yield(value=value)):
                (number,) = self.numbers[node]
                item = _at(node, ast.Constant(None)) if value is None else self._read(value)
                left = [
                    _set(node, _NUMBER, _at(node, ast.Constant(number))),
                    _at(node, ast.Return(item)),
                ]
                gone_on = _assign(node, _PLACE, _at(node, ast.Constant(0)))
                return [_if(node, self._is_at(node, {0}), left), gone_on]
            case ast.Expr(ast.YieldFrom(value=value) as given):
                item_name = f".item{self.loops}"
                self.fields.names |= {item_name}
                inner = _at(node, ast.Yield(_name(node, item_name, ast.Load())))
                body = _at(node, ast.Expr(inner))
                loop = _at(node, ast.For(_name(node, item_name, ast.Store()), value, [body], []))
                for each in (inner, body, loop):
                    self.numbers[each] = self.numbers[given]
                return self._statement(loop)
            case ast.While(test=test, body=body, orelse=[]) if not self.numbers[test]:
                going = test if _is_true(test) else _either(node, self._read(test))
                return [_at(node, ast.While(going, self._block(body), []))]
            case ast.For(target=target, iter=items, body=body, orelse=[]) if (
                not self.numbers[items]
            ):
                return self._for(node, target, items, body)
            case ast.If(test=test, body=body, orelse=orelse) if not self.numbers[test]:
                inside = {n for each in body for n in self.numbers[each]}
                taken: ast.expr = _at(node, ast.BoolOp(
                    ast.And(), [self._is_at(node, {0}), self._read(test)]
                ))
                if inside:
                    taken = _at(node, ast.BoolOp(ast.Or(), [self._is_at(node, inside), taken]))
                then, other = (self._block(each) for each in (body, orelse))
                return [_at(node, ast.If(taken, then, other))]
        raise _CannotResume

    def _for(
        self, node: ast.stmt, target: ast.expr, items: ast.expr, body: list[ast.stmt]
    ) -> list[ast.stmt]:
        """A loop over a sequence as a `while` loop over its places."""
        sequence, position = f".items{self.loops}", f".position{self.loops}"
        self.loops += 1
        indexed = _at(node, ast.Call(
            _field(node, _INDEXED, ast.Load()), [self._read(items)], []
        ))
        begun = [
            _set(node, sequence, indexed), _set(node, position, _at(node, ast.Constant(0))),
        ]
        length = _at(node, ast.Call(
            _name(node, "len", ast.Load()), [_field(node, sequence, ast.Load())], []
        ))
        left = _at(node, ast.Compare(_field(node, position, ast.Load()), [ast.Lt()], [length]))
        item = _at(node, ast.Subscript(
            _field(node, sequence, ast.Load()), _field(node, position, ast.Load()), ast.Load()
        ))
        taken = [
            _at(node, ast.Assign([self.fields.visit(target)], item)),
            _at(node, ast.AugAssign(
                _field(node, position, ast.Store()), ast.Add(), _at(node, ast.Constant(1))
            )),
        ]
        rounds = [_if(node, self._is_at(node, {0}), taken), *self._block(body)]
        loop = _at(node, ast.While(_either(node, left), rounds, []))
        return [_if(node, self._is_at(node, {0}), begun), loop]

    def _read(self, value: ast.expr) -> ast.expr:
        if self.numbers.get(value):
            raise _CannotResume
        made: ast.expr = self.fields.visit(value)
        return made


def _is_sent(node: ast.Assign) -> bool:
    """Whether what is sent to the generator is assigned: `x = yield value`."""
    return isinstance(node.value, ast.Yield)


def _yielding(node: ast.Assign, numbers: dict[ast.AST, frozenset[int]]) -> ast.stmt:
    """The `yield` of an assignment alone."""
    alone = _at(node, ast.Expr(node.value))
    numbers[alone] = numbers[node]
    return alone


def _nothing_yet(near: ast.AST) -> list[ast.stmt]:
    """What is sent to a generator that has not begun can only be None."""
    fresh = _at(near, ast.Compare(
        _field(near, _NUMBER, ast.Load()), [ast.Eq()], [_at(near, ast.Constant(0))]
    ))
    some = _at(near, ast.Compare(
        _name(near, _SENT, ast.Load()), [ast.IsNot()], [_at(near, ast.Constant(None))]
    ))
    said = _at(near, ast.Constant("can't send non-None value to a just-started generator"))
    error = _at(near, ast.Call(_name(near, "TypeError", ast.Load()), [said], []))
    wrong = _at(near, ast.BoolOp(ast.And(), [fresh, some]))
    return [_if(near, wrong, [_at(near, ast.Raise(error, None))])]


def _at(near: ast.AST, made: N) -> N:
    return ast.copy_location(made, near)


def _name(near: ast.AST, name: str, context: ast.expr_context) -> ast.expr:
    return _at(near, ast.Name(name, context))


def _field(near: ast.AST, name: str, context: ast.expr_context) -> ast.Attribute:
    return _at(near, ast.Attribute(_name(near, _OBJECT, ast.Load()), name, context))


def _set(near: ast.AST, name: str, value: ast.expr) -> ast.stmt:
    """A field of the object gets a value."""
    return _at(near, ast.Assign([_field(near, name, ast.Store())], value))


def _assign(near: ast.AST, name: str, value: ast.expr) -> ast.stmt:
    return _at(near, ast.Assign([_name(near, name, ast.Store())], value))


def _if(near: ast.AST, test: ast.expr, body: list[ast.stmt]) -> ast.stmt:
    return _at(near, ast.If(test, body, []))


def _either(near: ast.AST, test: ast.expr) -> ast.expr:
    """Whether a loop goes on: it is gone on with in the middle of a round, or its test holds."""
    place = _name(near, _PLACE, ast.Load())
    inside = _at(near, ast.Compare(place, [ast.NotEq()], [_at(near, ast.Constant(0))]))
    return _at(near, ast.BoolOp(ast.Or(), [inside, test]))


def _ended(near: ast.AST, value: ast.expr | None = None) -> list[ast.stmt]:
    """What is done at the end: there, with what is returned, and at each call behind it."""
    over = _at(near, ast.UnaryOp(ast.USub(), _at(near, ast.Constant(-_OVER))))
    error = _name(near, "StopIteration", ast.Load())
    if value is None:
        return [_set(near, _NUMBER, over), _at(near, ast.Raise(error, None))]
    kept = _assign(near, _RETURNED, value)  # it may raise, before the end is noted
    made = _at(near, ast.Call(error, [_name(near, _RETURNED, ast.Load())], []))
    return [kept, _set(near, _NUMBER, over), _at(near, ast.Raise(made, None))]


def _init(node: ast.FunctionDef, given: Sequence[str]) -> ast.FunctionDef:
    at = node.body[0]
    body = [_set(at, name, _name(at, name, ast.Load())) for name in given]
    body.append(_set(at, _NUMBER, _at(at, ast.Constant(0))))
    return _definition(node, "__init__", [_OBJECT, *given], body)


def _definition(
    node: ast.FunctionDef, name: str, parameters: Sequence[str], body: list[ast.stmt]
) -> ast.FunctionDef:
    args = ast.arguments([], [_at(node, ast.arg(each)) for each in parameters], None, [], [], None,
                         [])
    made = ast.FunctionDef(name, args, body, [], None)
    return ast.fix_missing_locations(_at(node, made))


def _compiled(function: types.FunctionType, node: ast.FunctionDef) -> types.FunctionType:
    """The function of a definition, which reads the globals and the variables around `function`."""
    free = function.__code__.co_freevars
    around = _definition(node, "around", free, [node])
    whole = compile(ast.Module([around], []), function.__code__.co_filename, "exec")
    (outer,) = (each for each in whole.co_consts if isinstance(each, types.CodeType))
    code = next(each for each in outer.co_consts if isinstance(each, types.CodeType))
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    made = types.FunctionType(
        code, function.__globals__, node.name, None, tuple(cells[n] for n in code.co_freevars)
    )
    return source.give(made, node, source.of(function))
