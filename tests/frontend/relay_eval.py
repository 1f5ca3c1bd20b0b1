"""Runs untyped Relay on Python objects: the frontend's oracle, as plain and strict as possible.

Every value that the frontend claims nobody reads is checked: UNSET and UNREAD may be passed on, and
an operation that gets one fails.
"""

from __future__ import annotations

import builtins
import collections.abc
import operator
import types
from typing import Any

from pyrelay.frontend.generators import FIRST
from pyrelay.frontend.parse import parse
from pyrelay.ir.nodes import UNREAD, UNSET, Block, Const, Function, If, Loop, PyCall, Var
from pyrelay.ir.walk import nested_lets

UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}
BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift,
}
INPLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv,
    "//": operator.ifloordiv, "%": operator.imod, "**": operator.ipow, "@": operator.imatmul,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor, "<<": operator.ilshift,
    ">>": operator.irshift,
}
COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "is": operator.is_, "is not": operator.is_not,
    "in": lambda x, y: x in y, "not in": lambda x, y: x not in y,
}
MAY_PASS_UNSET = {"bound", "set_cell", "new_cell"}


class Cell:
    def __init__(self, value: Any) -> None:
        self.value = value


class Run:
    """One run of the program of a Python function."""

    def __init__(self, function: types.FunctionType) -> None:
        self.python = function
        self.module = parse(function).module
        self.yielded: list[list[Any]] = []  # by the generators that run
        self.opening = False  # the next If is the body of a `try`
        self.raised = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        main = self.module.main
        defaults = dict(self.python.__kwdefaults__ or {})
        values = self.python.__defaults__ or ()
        positional = [p.name for p in main.signature if p.kind.startswith("positional")]
        defaults |= dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        return self.apply(main, defaults, [], args, kwargs)

    def apply(self, function: Function, defaults: Any, cells: Any, args: Any, kwargs: Any) -> Any:
        stub = make_binder(function, defaults)
        bound = stub(*args, **kwargs)
        env = dict(zip(function.params, [*bound, *cells], strict=True))
        yields = any(
            isinstance(let.rhs, PyCall) and let.rhs.kind == "yield"
            for let in nested_lets(function.body)
        )
        if yields:  # all items at once: programs of the tests are finite and without effects
            self.yielded.append([])
            self.block(function.body, env)
            return iter(self.yielded.pop())
        (result,) = self.block(function.body, env)
        assert result is not UNREAD
        assert result is not UNSET
        return result

    def value(self, atom: Any, env: dict[Var, Any]) -> Any:
        return atom.value if isinstance(atom, Const) else env[atom]

    def block(self, block: Block, env: dict[Var, Any]) -> list[Any]:
        for let in block.lets:
            assert let.span is not None
            outs = self.rhs(let.rhs, env)
            env.update(zip(let.outs, outs, strict=True))
        return [self.value(a, env) for a in block.results]

    def rhs(self, rhs: Any, env: dict[Var, Any]) -> list[Any]:
        match rhs:
            case If(then=then) if self.opening:
                self.opening = False
                try:
                    outs = self.block(then, env)
                except Exception as error:
                    outs, self.raised = [UNREAD for _ in then.results], error
                else:
                    self.raised = None
                return outs
            case If(cond, then, orelse):
                taken = self.value(cond, env)
                assert taken is True or taken is False
                return self.block(then if taken else orelse, env)
            case Loop():
                return self.loop(rhs, env)
            case PyCall(kind, args, attrs):
                values = [self.value(a, env) for a in args]
                if kind not in MAY_PASS_UNSET:
                    assert all(v is not UNSET and v is not UNREAD for v in values), kind
                found = getattr(self, kind)(*values, **attrs)
                if kind == "unpack":
                    return found
                return [] if kind in SILENT else [found]
        raise AssertionError(rhs)

    def loop(self, rhs: Loop, env: dict[Var, Any]) -> list[Any]:
        state = [self.value(a, env) for a in rhs.init]
        iterator = None if rhs.iterable is None else iter(self.value(rhs.iterable, env))
        while True:
            env.update(zip(rhs.carried, state, strict=True))
            if iterator is not None:
                try:
                    env[rhs.item] = next(iterator)
                except StopIteration:
                    return state
            if rhs.test is not None:
                cond, *handed = self.block(rhs.test, env)
                assert isinstance(cond, bool)
                if not cond:
                    return state
                env.update(zip(rhs.handed, handed, strict=True))
            results = self.block(rhs.body, env)
            stop = False
            if rhs.exits:
                stop, *results = results
                assert isinstance(stop, bool)
            state = results
            if stop:
                return state

    # -- what Python does, by kind ---------------------------------------------------------------

    def hand_over(self, item):
        self.yielded[-1].append(item)
        return False

    def name(self, scope, name):
        if scope == "free":
            names = self.python.__code__.co_freevars
            cells = dict(zip(names, self.python.__closure__, strict=True))
            return cells[name].cell_contents
        found = self.python.__globals__.get(name, UNSET)
        if found is UNSET:
            found = getattr(builtins, name, UNSET)
        if found is UNSET:
            raise NameError(f"name '{name}' is not defined")
        return found

    def expect(self, x, wanted):
        assert x is wanted

    def attribute(self, obj, name):
        return getattr(obj, name)

    def set_attribute(self, obj, value, name):
        setattr(obj, name, value)

    def item(self, obj, key):
        return obj[key]

    def set_item(self, obj, key, value):
        obj[key] = value

    def exchange(self, obj, i, j, at_i, at_j):
        obj[i], obj[j] = at_j, at_i

    def del_item(self, obj, key):
        del obj[key]

    def call(self, callee, *args, keywords):
        positional, named = [], {}
        for value, keyword in zip(args, keywords, strict=True):
            if keyword is None:
                positional.append(value)
            elif keyword == "*":
                positional += value
            elif keyword == "**":
                named.update(value)
            else:
                named[keyword] = value
        return callee(*positional, **named)

    def unary(self, x, op):
        return UNARY[op](x)

    def binary(self, x, y, op):
        return BINARY[op](x, y)

    def inplace(self, x, y, op):
        return INPLACE[op](x, y)

    def compare(self, x, y, op):
        return COMPARE[op](x, y)

    def truth(self, x):
        return bool(x)

    def sequence(self, items, starred):
        flat = []
        for item, star in zip(items, starred, strict=True):
            flat += list(item) if star else [item]
        return flat

    def tuple(self, *items, starred):
        return tuple(self.sequence(items, starred))

    def list(self, *items, starred):
        return self.sequence(items, starred)

    def set(self, *items, starred, copied):
        made = set(self.sequence(items, starred))
        return made.copy() if copied else made

    def dict(self, *items, merged):
        found = {}
        for i, is_merged in enumerate(merged):
            if is_merged:
                found.update(items[2 * i + 1])
            else:
                found[items[2 * i]] = items[2 * i + 1]
        return found

    def slice(self, start, stop, step):
        return slice(start, stop, step)

    def unpack(self, x, before, starred, after):
        code = [f"a{i}" for i in range(before)] + ["*s"] * starred + [f"b{i}" for i in range(after)]
        if not code:
            iter(x)
            return []
        scope = {"x": x}
        exec(f"[{', '.join(code)}] = x", scope)
        return [scope[c.lstrip("*")] for c in code]

    def function(self, *args, function, defaults, cells):
        made = self.module.functions[function]
        assert made.cells == cells
        given = dict(zip(defaults, args, strict=False))
        boxes = list(args[len(defaults) :])
        assert all(isinstance(box, Cell) for box in boxes)
        return lambda *a, **k: self.apply(made, given, boxes, a, k)

    def new_cell(self, value, name):
        assert value is not UNREAD
        return Cell(value)

    def get_cell(self, cell, name):
        return cell.value

    def set_cell(self, cell, value, name):
        assert value is not UNREAD
        cell.value = value

    def bound(self, x, name):
        assert x is not UNREAD
        if x is UNSET:
            raise UnboundLocalError(name)
        return x

    def format(self, *args, parts, conversions):
        texts, values = [], iter(zip(args[::2], args[1::2], conversions, strict=True))
        for part in parts:
            if part is not None:
                texts.append(part)
                continue
            value, spec, conversion = next(values)
            value = {"": lambda v: v, "s": str, "r": repr, "a": ascii}[conversion](value)
            texts.append(format(value, spec))
        return "".join(texts)

    def append(self, items, item):
        items.append(item)

    def raise_(self, exception, cause):
        raise exception from cause

    def enter(self, manager):
        return [type(manager).__enter__(manager)]

    def entered(self, box):
        return box[0]

    def managed(self, manager, box, flags):
        self.opening = True

    def exit(self, manager, error):
        cls = None if error is None else type(error)
        return bool(type(manager).__exit__(manager, cls, error, None))

    def annotate(self, x, name, annotation):
        return x

    def is_sequence(self, x):
        return isinstance(x, collections.abc.Sequence) and not isinstance(
            x, (str, bytes, bytearray)
        )

    def is_mapping(self, x):
        return isinstance(x, collections.abc.Mapping)

    def positional(self, subject, cls, index):
        if cls in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple):
            assert index == 0
            return subject
        return getattr(subject, cls.__match_args__[index])


    def try_(self, *classes, looks):
        assert len(looks) == len(classes)
        self.opening = True

    def caught(self):
        return self.raised

    def matches(self, exception, cls):
        return isinstance(exception, cls)


setattr(Run, "raise", Run.raise_)
setattr(Run, "try", Run.try_)
SILENT = {
    "expect", "set_attribute", "set_item", "exchange", "del_item", "set_cell", "append", "raise",
    "try", "managed",
}


setattr(Run, "yield", Run.hand_over)


def make_binder(function: Function, defaults: dict[str, Any]) -> Any:
    """A Python function with the same signature, which returns the values in order."""
    parts, seen_star = [], False
    following_kinds = [*(p.kind for p in function.signature[1:]), None]
    for p, following in zip(function.signature, following_kinds, strict=False):
        text = f"{p.name}=_defaults[{p.name!r}]" if p.has_default else p.name
        if p.kind == "keyword_only" and not seen_star:
            parts.append("*")
            seen_star = True
        if p.kind == "var_positional":
            text, seen_star = f"*{text}", True
        if p.kind == "var_keyword":
            text = f"**{text}"
        parts.append(text)
        if p.kind == "positional_only" and following != "positional_only":
            parts.append("/")
    names = ", ".join(p.name for p in function.signature)
    scope = {"_defaults": defaults}
    source = f"def bind({', '.join(parts)}):\n    return [{names}]\n"
    source = source.replace(FIRST, "_first")  # the parameter of a generator expression
    exec(source, scope)
    return scope["bind"]
