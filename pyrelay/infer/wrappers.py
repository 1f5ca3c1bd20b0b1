"""Anything callable as a function of Relay, so that derivatives know only one kind of callee.

In: a callable value (a derivative, a method, a partial, a NumPy function, an object with
`__call__`) and the arguments of one call. Out: a closure that takes exactly those arguments, under
the names they have in the callee, and passes them on; the callee is in its cell.
"""

from __future__ import annotations

import types as python_types
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.errors import Span
from pyrelay.infer import calls
from pyrelay.infer import values as V
from pyrelay.infer.in_python import examples
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.objects import is_callable_object
from pyrelay.ir.nodes import Attrs, Block, Function, Let, Parameter, PyCall, Var


def as_closure(
    it: Interpreter, callee: V.Value, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Closure:
    """The callee as a closure that `callee(*args, **keywords)` can be made with."""
    if isinstance(callee, V.Known):
        callee = calls.transformed(it, callee.value) or callee
    if isinstance(callee, V.Known) and isinstance(callee.value, python_types.FunctionType):
        callee = calls.function_value(it, callee.value)
    if isinstance(callee, V.Closure) and not _packs(callee):
        return callee
    known = [p.name for p in parameters_of(it, callee) if p.kind.startswith("positional")]
    taken = [n for n in known if n not in keywords][: len(args)]
    positional = (*taken, *(f"argument {k + 1}" for k in range(len(taken), len(args))))
    span = it.let.span if it.let else None
    key = ("wrapper", positional, tuple(keywords), span)
    made = it.program.specialisations.get(key)
    if made is None:
        made = it.program.specialisations[key] = [_wrapper(positional, tuple(keywords), span)]
    return V.Closure(made[0], None, None, (), (it.new_ref("cell", callee),))


def _packs(closure: V.Closure) -> bool:
    """True if the function takes *args: its callers count the arguments, not that parameter."""
    return any(p.kind == "var_positional" for p in closure.function.signature)


def _wrapper(positional: Sequence[str], named: Sequence[str], span: Span | None) -> Function:
    params = [Var(n) for n in (*positional, *named)]
    cell, inner, result = Var("callee"), Var("callee"), Var("result")
    keywords = (*(None for _ in positional), *named)
    lets = (
        Let((inner,), PyCall("get_cell", (cell,), Attrs(name="callee")), span=span),
        Let((result,), PyCall("call", (inner, *params), Attrs(keywords=keywords)), span=span),
    )
    signature = (
        *(Parameter(n, "positional_or_keyword") for n in positional),
        *(Parameter(n, "keyword_only") for n in named),
    )
    return Function(
        "derivative", (*params, cell), Block(lets, (result,)), signature=signature,
        cells=("callee",),
    )


def parameters_of(it: Interpreter, callee: V.Value) -> tuple[Parameter, ...]:
    """The parameters a callable declares, as far as they are known."""
    match callee:
        case V.Closure(function=function):
            return function.signature
        case V.Derivative(callee=inner):
            return parameters_of(it, inner)
        case V.Method(function=fn) if fn is not None:
            return parameters_of(it, V.Known(fn))[1:]
        case V.Partial(V.Known(value=examples.mapped), (inner, *_)):
            return parameters_of(it, inner)
        case V.Partial(inner, args, keywords):
            fixed = dict(keywords)
            rest = [p for p in parameters_of(it, inner) if p.name not in fixed]
            return tuple(rest[len(args) :])
        case V.Ref() | V.Data() | V.Tuple() if calls.has_call(callee):
            cls: Any = callee.cls
            return parameters_of(it, V.Known(cls.__call__))[1:]
        case V.Union():
            return parameters_of(it, callee.possible[0])
        case V.Known(fn):
            target = calls.transformed(it, fn)
            if target is not None:
                return parameters_of(it, target)
            if isinstance(fn, python_types.FunctionType):
                return calls.function_value(it, fn).function.signature
            if isinstance(fn, python_types.MethodType):
                return parameters_of(it, V.Known(fn.__func__))[1:]
            if is_callable_object(fn):
                return parameters_of(it, V.Known(type(fn).__call__))[1:]
    return ()
