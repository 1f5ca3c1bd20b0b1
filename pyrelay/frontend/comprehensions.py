"""Comprehensions, as loops that fill a container.

In: a comprehension node. Out: a list or dict under construction and nested loops that add to it.
Its variables are fresh each time it runs, in fresh cells if a function in it captures them.
A generator expression that is kept is a function of its own (generators). As the argument of a
call, `any` and `all` stop at the item that decides, `sum`, `min` and `max` keep what they have so
far, and every other callee gets the items as a list.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pyrelay import python_sums
from pyrelay.frontend import closures
from pyrelay.frontend.assignment import assign
from pyrelay.frontend.expressions import alternatives, call, condition, gone_through
from pyrelay.frontend.lowering import FALSE, NONE, NOT_READ, NOT_SET, Lowering, evaluate, lowers
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.regions import CONTINUE, LoopRegion
from pyrelay.frontend.scope import Comprehension, Outside
from pyrelay.ir.nodes import Atom, Const, Loop, Var

#: What happens to each item: takes the state so far, emits the item and gives the next state.
Element = Callable[[Atom], Work[Atom]]


def _larger(best: Any, item: Any) -> Any:
    """One step of `max`: the first of equal items stays."""
    return item if best is None or item > best else best


def _smaller(best: Any, item: Any) -> Any:
    """One step of `min`: the first of equal items stays."""
    return item if best is None or item < best else best


def _largest(best: Any) -> Any:
    """The result of `max` after all steps."""
    if best is None:
        raise ValueError("max() arg is an empty sequence")
    return best


def _smallest(best: Any) -> Any:
    """The result of `min` after all steps."""
    if best is None:
        raise ValueError("min() arg is an empty sequence")
    return best


_EXTREMES = {"max": (max, _larger, _largest), "min": (min, _smaller, _smallest)}


@lowers(ast.GeneratorExp)
def generator(low: Lowering, node: ast.GeneratorExp) -> Work[Atom]:
    """A generator where it is kept, else the list of its items."""
    function = low.names.generators.get(node)
    if function is None:
        return (yield items(low, node))
    value = yield closures.make(low, function)
    first = yield gone_through(low, node.generators[0].iter)
    return low.py("call", (value, first), low.span(node), keywords=(None,))


@lowers(ast.ListComp, ast.SetComp)
def items(low: Lowering, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Work[Atom]:
    span = low.span(node)
    first = yield gone_through(low, node.generators[0].iter)
    found = low.py("list", (), span, starred=())

    def element(_: Atom) -> Work[Atom]:
        value = yield evaluate(low, node.elt)
        low.act("append", (found, value), low.span(node.elt))
        return NONE

    yield rounds(low, node, 0, first, None, element)
    if not isinstance(node, ast.SetComp):
        return found
    return low.py("call", (Const(set), found), span, keywords=(None,))


@lowers(ast.DictComp)
def entries(low: Lowering, node: ast.DictComp) -> Work[Atom]:
    first = yield gone_through(low, node.generators[0].iter)
    found = low.py("dict", (), low.span(node), merged=())

    def element(_: Atom) -> Work[Atom]:
        key = yield evaluate(low, node.key)
        value = yield evaluate(low, node.value)
        low.act("set_item", (found, key, value), low.header(node.key, node.value))
        return NONE

    yield rounds(low, node, 0, first, None, element)
    return found


@lowers(ast.Call)
def call_or_search(low: Lowering, node: ast.Call) -> Work[Atom]:
    match node:
        case ast.Call(
            func=ast.Name(id=name) as func, args=[ast.GeneratorExp() as items, *rest], keywords=[]
        ) if items not in low.names.generators:
            meaning = low.names.meaning[func]
            if isinstance(meaning, Outside) and low.program.is_builtin(name):
                if name in ("any", "all") and not rest:
                    return (yield search(low, node, func, items))
                if name == "sum" and len(rest) <= 1:
                    return (yield total(low, node, func, items, rest))
                if name in _EXTREMES and not rest:
                    return (yield extreme(low, node, func, items))
    return (yield call(low, node))


def total(
    low: Lowering, node: ast.Call, func: ast.Name, generator: ast.GeneratorExp,
    start: list[ast.expr],
) -> Work[Atom]:
    """sum(... for ...) and sum((... for ...), start)."""
    callee = yield evaluate(low, func)
    low.act("expect", (callee, Const(sum)), low.span(func))
    first = yield gone_through(low, generator.generators[0].iter)
    begin = (yield evaluate(low, start[0])) if start else Const(0)

    span = low.span(node)
    if python_sums.CARRIES:
        begin = low.py("tuple", (begin, Const(0.0)), span, starred=(False, False))

    def element(so_far: Atom) -> Work[Atom]:
        value = yield evaluate(low, generator.elt)
        at = low.span(generator.elt)
        if not python_sums.CARRIES:
            return low.py("binary", (so_far, value), at, op="+")
        step = Const(python_sums.with_item)
        return low.py("call", (step, so_far, value), at, keywords=(None, None))

    found = yield rounds(low, generator, 0, first, begin, element, stops=False)
    if not python_sums.CARRIES:
        return found
    return low.py("call", (Const(python_sums.total_of), found), span, keywords=(None,))


def extreme(
    low: Lowering, node: ast.Call, func: ast.Name, generator: ast.GeneratorExp
) -> Work[Atom]:
    """min(... for ...) and max(... for ...)."""
    span = low.span(node)
    meant, better, best = _EXTREMES[func.id]
    callee = yield evaluate(low, func)
    low.act("expect", (callee, Const(meant)), low.span(func))
    first = yield gone_through(low, generator.generators[0].iter)

    def element(so_far: Atom) -> Work[Atom]:
        value = yield evaluate(low, generator.elt)
        at = low.span(generator.elt)
        return low.py("call", (Const(better), so_far, value), at, keywords=(None, None))

    found = yield rounds(low, generator, 0, first, Const(None), element, stops=False)
    return low.py("call", (Const(best), found), span, keywords=(None,))


def search(
    low: Lowering, node: ast.Call, func: ast.Name, generator: ast.GeneratorExp
) -> Work[Atom]:
    """any(...) and all(...), which stop at the first item that decides."""
    span = low.span(node)
    negated = func.id == "all"
    callee = yield evaluate(low, func)
    low.act("expect", (callee, Const(all if negated else any)), low.span(func))
    first = yield gone_through(low, generator.generators[0].iter)

    def element(_: Atom) -> Work[Atom]:
        holds = yield condition(low, generator.elt)
        return low.py("unary", (holds,), low.span(generator.elt), op="not") if negated else holds

    decided = yield rounds(low, generator, 0, first, FALSE, element, stops=True)
    if negated:
        return low.py("unary", (decided,), span, op="not")
    return low.py("call", (Const(bool), decided), span, keywords=(None,))


def rounds(
    low: Lowering, node: Comprehension, at: int, iterable: Atom, state: Atom | None,
    element: Element, stops: bool = False,
) -> Work[Atom]:
    """The loop of generator `at` and all inside of it.

    `state` is what the items change from one to the next, None if nothing is: the result is its
    value after the loop (NONE without). With `stops` it is a bool that ends the loops once it is
    true.
    """
    generator = node.generators[at]
    if at == 0:
        for variable in low.names.comprehensions[node]:
            low.begin(variable, NOT_SET, low.span(node))
    assigned = list(low.flow.assigned(node))
    live = low.flow.joined[node] if assigned else 0
    keeps = state is not None
    carried = {v: Var(v.shown, span=low.span(node)) for v in assigned if v.bit & live}
    now = Var("decided" if stops else "so_far", span=low.span(node))
    item = Var("item", span=low.span(generator.target))
    region = LoopRegion({CONTINUE: live}, carried, False)

    def inside(test: int) -> Work[Atom]:
        """The tests from `test` on, then the next generator or the element."""
        if test < len(generator.ifs):
            cond = yield condition(low, generator.ifs[test])
            unchanged = now if keeps else NONE
            return (yield alternatives(low, node, cond, inside(test + 1), unchanged))
        if at + 1 == len(node.generators):
            return (yield element(now))
        further = yield gone_through(low, node.generators[at + 1].iter)
        kept = now if keeps else None
        return (yield rounds(low, node, at + 1, further, kept, element, stops))

    def body() -> Work[tuple[Atom, ...]]:
        low.env.values.update(carried)
        low.env.unset.update(v for v in assigned if v.deleted)
        yield assign(low, generator.target, item, low.span(generator.target))
        following = yield inside(0)
        values = region.leave(low, CONTINUE)
        return (*([following] if stops else []), *values, *([following] if keeps else []))

    block = yield low.block(body())
    init = [low.env.values[v] or NOT_READ for v in carried]
    loop = Loop(
        (*carried.values(), *([now] if keeps else [])),
        (*init, *([state] if state is not None else [])),
        block, exits=stops, iterable=iterable, item=item,
    )
    names = [*(v.shown for v in carried), *([now.name] if keeps else [])]
    outs = low.bind(loop, low.header(generator.target, generator.iter), names)
    for variable in assigned:
        if not variable.captured:
            low.env.values[variable] = None
    low.env.values.update(zip(carried, outs, strict=False))
    return outs[-1] if keeps else NONE
