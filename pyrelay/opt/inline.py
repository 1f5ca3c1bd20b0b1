"""Inlining: calls of functions that are not recursive are replaced by the function's body.

In: a module. Out: the module in which only recursive functions, and functions whose derivative is
requested, are functions of their own. A body that many calls share stays a function: a large one
with loops that is called where no loop is around, as what is around a loop is no part of its
kernel, and all passes after this one would go through each copy. In loops calls become bodies far
longer, as only a loop without calls is a kernel.
"""

from __future__ import annotations

from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import FnCall, Function, Let, Loop, Module
from pyrelay.ir.walk import blocks, called, instantiate, nested_lets
from pyrelay.opt.dce import count_lets, reachable
from pyrelay.opt.rewrite import Replaced, Replacement, Rule, Scope, rewrite

_SMALL = 24  # Lets; a body this small is worth any number of copies
_LARGEST_TOTAL = 4000  # Lets that copies of one body may add
_LARGEST_APART = 200  # the same for copies with loops that are in no loop


def inline(module: Module) -> Module:
    """Inline calls, callees first."""
    cyclic = recursive_functions(module)
    done: dict[str, Function] = {}
    uses: dict[str, int] = {}
    for function in module.functions.values():
        for let in nested_lets(function.body):
            if isinstance(let.rhs, FnCall):
                uses[let.rhs.function] = uses.get(let.rhs.function, 0) + 1
    looped = _called_in_loops(module)
    for name in _callees_first(module):
        function = module.functions[name]
        open_to = {n for n in called(function) if n not in cyclic and n in done}
        wanted = {n for n in open_to if _worth(done[n], uses.get(n, 0), _LARGEST_TOTAL)}
        apart = wanted if name in looped else {
            n for n in wanted
            if not _has_loops(done[n]) or _worth(done[n], uses.get(n, 0), _LARGEST_APART)
        }
        done[name] = rewrite(function, _rule(done, wanted, apart)) if wanted else function
    return reachable(module.holding({n: done[n] for n in module.functions}))


def _rule(functions: dict[str, Function], wanted: set[str], apart: set[str]) -> Rule:
    """Replace calls of functions that are `wanted` in loops, and `apart` from them."""

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        call = let.rhs
        if not isinstance(call, FnCall) or call.function not in (wanted if scope.loops else apart):
            return None
        body = instantiate(functions[call.function], call.args, call.dims)
        builder.lets.extend(body.lets)
        return Replaced(body.results, body.dims)

    return rule


def _worth(function: Function, uses: int, most: int) -> bool:
    size = count_lets(function)
    return uses <= 1 or size <= _SMALL or size * uses <= most


def _has_loops(function: Function) -> bool:
    return any(isinstance(let.rhs, Loop) for let in nested_lets(function.body))


def _called_in_loops(module: Module) -> set[str]:
    """Functions that are called in loops, and those that they call."""
    pending = [
        inner.rhs.function
        for function in module.functions.values()
        for let in nested_lets(function.body) if isinstance(let.rhs, Loop)
        for block in blocks(let.rhs)
        for inner in nested_lets(block) if isinstance(inner.rhs, FnCall)
    ]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found and name in module.functions:
            found.add(name)
            pending += called(module.functions[name])
    return found


def recursive_functions(module: Module) -> set[str]:
    """Functions that reach themselves by calls: members of cycles of the call graph (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: set[str] = set()
    edges = {n: [c for c in called(f) if c in module.functions]
             for n, f in module.functions.items()}
    for start in module.functions:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            name, rest = work[-1]
            for callee in rest:
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    on_stack.add(callee)
                    work.append((callee, iter(edges[callee])))
                    break
                if callee in on_stack:
                    low[name] = min(low[name], index[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    group = stack[stack.index(name):]
                    del stack[stack.index(name):]
                    on_stack.difference_update(group)
                    if len(group) > 1 or name in edges[name]:
                        found.update(group)
    return found


def _callees_first(module: Module) -> list[str]:
    order: list[str] = []
    state: dict[str, int] = {}
    for start in module.functions:
        work = [start]
        while work:
            name = work[-1]
            if state.get(name) == 2:
                work.pop()
            elif state.get(name) == 1:
                state[name] = 2
                order.append(name)
                work.pop()
            else:
                state[name] = 1
                work.extend(
                    c for c in called(module.functions[name])
                    if c in module.functions and c not in state
                )
    return order
