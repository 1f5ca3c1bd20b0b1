"""Extents that a program was found to have equal, put in place of each other.

In: functions, and the guards of an attempt, which say what is equal. Out: the functions over the
symbols that are left, and the guards over these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyrelay.infer.guards import ExtentGuard, Guards
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Attrs, Block, FnCall, Function, Jvp, Let, OpCall, Vjp
from pyrelay.ir.walk import Renaming, copy_block, nested_lets, replace_blocks


def conditions(guards: Guards) -> tuple[ExtentGuard, ...]:
    """The guards with equal extents put in place of each other, without the trivial ones."""
    found: dict[ExtentGuard, None] = {}
    for guard in guards.extents:
        left, right = guards.resolve(guard.left), guards.resolve(guard.right)
        if left != right and not (isinstance(left, int) and isinstance(right, int)):
            found[replace(guard, left=left, right=right)] = None
    return tuple(found)


def substituted(functions: Mapping[str, Function], guards: Guards) -> dict[str, Function]:
    """The functions with the extents found equal put in place of each other."""
    if not guards.equalities:
        return dict(functions)
    mapping: dict[Symbol, Extent] = {
        s: guards.resolve(dims.of(s)) for s in guards.equalities
    }
    new_dims: dict[str, tuple[Symbol, ...]] = {}
    for name, fn in functions.items():
        kept: dict[Symbol, None] = {}
        for s in fn.dims:
            for t in dims.symbols(mapping[s]) if s in mapping else (s,):
                kept[t] = None
        new_dims[name] = tuple(kept)
    result = {}
    for name, fn in functions.items():
        names = Renaming(dims=dict(mapping))
        params = tuple(map(names.var, fn.params))
        body = copy_block(fn.body, names)
        body = _recalled(body, functions, new_dims)
        result[name] = replace(fn, params=params, body=body, dims=new_dims[name])
    return result


def _recalled(body: Any, functions: Mapping[str, Function], new: Mapping[str, Any]) -> Any:
    """Calls with the extents that the callees' remaining symbols need."""
    def is_call(rhs: Any) -> bool:
        return isinstance(rhs, (FnCall, Vjp, Jvp)) or (
            isinstance(rhs, OpCall) and rhs.op.name == "ruled"
        )

    def remaining(name: str, extents: Any) -> tuple[Any, ...]:
        given = dict(zip(functions[name].dims, extents, strict=True))
        return tuple(given.get(s, dims.of(s)) for s in new[name])

    if not any(is_call(x.rhs) for x in nested_lets(body)):
        return body

    def change(block: Block) -> Block:
        lets = []
        for let in block.lets:
            rhs = replace_blocks(let.rhs, change)
            if isinstance(rhs, (FnCall, Vjp, Jvp)):
                rhs = replace(rhs, dims=remaining(rhs.function, rhs.dims))
            elif isinstance(rhs, OpCall) and rhs.op.name == "ruled":
                extents = remaining(rhs.attrs["rule"], rhs.attrs["extents"])
                rhs = replace(rhs, attrs=Attrs(**{**rhs.attrs, "extents": extents}))
            lets.append(Let(let.outs, rhs, let.dims, span=let.span))
        return Block(tuple(lets), block.results, block.dims)

    return change(body)
