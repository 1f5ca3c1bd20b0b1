"""Comprehensions, as loops that fill a container.

In: a comprehension node. Out: a list or dict under construction and nested loops that add to it.
Its variables are fresh each time it runs, in fresh cells if a function in it captures them.
A generator expression is only compiled as the sole argument of a call, which uses it up: `any`
and `all` stop at the item that decides, every other callee gets the items as a list.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyrelay.frontend.assignment import assign
from pyrelay.frontend.expressions import alternatives, call, condition
from pyrelay.frontend.lowering import FALSE, NONE, NOT_READ, NOT_SET, Lowering, evaluate, lowers
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.regions import CONTINUE, LoopRegion
from pyrelay.frontend.scope import Comprehension, Outside
from pyrelay.ir.nodes import Atom, Const, Loop, Var

#: What happens to each item: emits it and gives whether the comprehension is decided by it.
Element = Callable[[], Work[Atom]]


@lowers(ast.ListComp, ast.GeneratorExp, ast.SetComp)
def items(low: Lowering, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Work[Atom]:
    span = low.span(node)
    first = yield evaluate(low, node.generators[0].iter)
    found = low.py("list", (), span, starred=())

    def element() -> Work[Atom]:
        value = yield evaluate(low, node.elt)
        low.act("append", (found, value), low.span(node.elt))
        return NONE

    yield rounds(low, node, 0, first, NONE, element)
    if not isinstance(node, ast.SetComp):
        return found
    return low.py("call", (Const(set), found), span, keywords=(None,))


@lowers(ast.DictComp)
def entries(low: Lowering, node: ast.DictComp) -> Work[Atom]:
    first = yield evaluate(low, node.generators[0].iter)
    found = low.py("dict", (), low.span(node), merged=())

    def element() -> Work[Atom]:
        key = yield evaluate(low, node.key)
        value = yield evaluate(low, node.value)
        low.act("set_item", (found, key, value), low.header(node.key, node.value))
        return NONE

    yield rounds(low, node, 0, first, NONE, element)
    return found


@lowers(ast.Call)
def call_or_search(low: Lowering, node: ast.Call) -> Work[Atom]:
    match node:
        case ast.Call(
            func=ast.Name(id="any" | "all") as func, args=[ast.GeneratorExp() as items], keywords=[]
        ):
            meaning = low.names.meaning[func]
            if isinstance(meaning, Outside) and low.program.is_builtin(func.id):
                return (yield search(low, node, func, items))
    return (yield call(low, node))


def search(
    low: Lowering, node: ast.Call, func: ast.Name, generator: ast.GeneratorExp
) -> Work[Atom]:
    """any(...) and all(...), which stop at the first item that decides."""
    span = low.span(node)
    negated = func.id == "all"
    callee = yield evaluate(low, func)
    low.act("expect", (callee, Const(all if negated else any)), low.span(func))
    first = yield evaluate(low, generator.generators[0].iter)

    def element() -> Work[Atom]:
        holds = yield condition(low, generator.elt)
        return low.py("unary", (holds,), low.span(generator.elt), op="not") if negated else holds

    decided = yield rounds(low, generator, 0, first, FALSE, element)
    return low.py("unary", (decided,), span, op="not") if negated else decided


def rounds(
    low: Lowering, node: Comprehension, at: int, iterable: Atom, decided: Atom, element: Element
) -> Work[Atom]:
    """The loop of generator `at` and all inside of it.

    `decided` is the bool that ends the loops once it is true, or NONE if they run to their ends;
    the result is its value after the loop.
    """
    generator = node.generators[at]
    if at == 0:
        for variable in low.names.comprehensions[node]:
            low.begin(variable, NOT_SET, low.span(node))
    assigned = list(low.flow.assigned(node))
    live = low.flow.joined[node] if assigned else 0
    outer, stops = low.env, decided is not NONE
    carried = {v: Var(v.shown, span=low.span(node)) for v in assigned if v.bit & live}
    now = Var("decided", span=low.span(node))
    item = Var("item", span=low.span(generator.target))
    region = LoopRegion({CONTINUE: live}, len(outer.managers), carried, False)

    def inside(test: int) -> Work[Atom]:
        """The tests from `test` on, then the next generator or the element."""
        if test < len(generator.ifs):
            cond = yield condition(low, generator.ifs[test])
            unchanged = now if stops else NONE
            return (yield alternatives(low, node, cond, inside(test + 1), unchanged))
        if at + 1 == len(node.generators):
            return (yield element())
        further = yield evaluate(low, node.generators[at + 1].iter)
        return (yield rounds(low, node, at + 1, further, now if stops else NONE, element))

    def body() -> Work[tuple[Atom, ...]]:
        low.env.values.update(carried)
        low.env.unset.update(v for v in assigned if v.deleted)
        yield assign(low, generator.target, item, low.span(generator.target))
        next_decided = yield inside(0)
        values = region.leave(low, CONTINUE)
        return (next_decided, *values, next_decided) if stops else values

    block = yield low.block(body())
    init = [low.env.values[v] or NOT_READ for v in carried]
    loop = Loop(
        (*carried.values(), now) if stops else tuple(carried.values()),
        (*init, decided) if stops else tuple(init),
        block, exits=stops, iterable=iterable, item=item,
    )
    names = [*(v.shown for v in carried), *(["decided"] if stops else [])]
    outs = low.bind(loop, low.header(generator.target, generator.iter), names)
    for variable in assigned:
        if not variable.captured:
            low.env.values[variable] = None
    low.env.values.update(zip(carried, outs, strict=False))
    return outs[-1] if stops else NONE
