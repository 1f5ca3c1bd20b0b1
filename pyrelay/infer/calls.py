"""Calls: of known Python functions, of closures, of functions chosen at run time, of derivatives.

A call of a function that is not recursive is interpreted in line, with the caller's heap, so views,
aliases and closures need nothing special. A function met while it is being interpreted is
recursive: it becomes a Core function of its own (specialisation.py).
"""

from __future__ import annotations

import functools
import inspect
import random
import types as python_types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from pyrelay import errors
from pyrelay.annotations import signature_of
from pyrelay.infer import (
    fitting,
    generated_inits,
    memoising,
    numba_functions,
    unfit_operands,
    users_lines,
    wrong_calls,
)
from pyrelay.infer import values as V
from pyrelay.infer.containers import byte_strings, text
from pyrelay.infer.frames import Frame
from pyrelay.infer.guards import NameGuard, keyword_defaults, registered
from pyrelay.infer.in_python import ONCE, examples, hashed_sets
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.unbound import call_unbound
from pyrelay.infer.unfolding import DEEPEST, is_unfolded
from pyrelay.ir.nodes import Block, Function, Var

_DEEPEST_INLINE = 200


class IsRecursive(Exception):
    """A function was met again while it is interpreted in line: the outer call starts over."""

    def __init__(self, function: Function) -> None:
        super().__init__(function.name)
        self.function = function


def call(
    it: Interpreter, callee: V.Value, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """The value of `callee(*args, **keywords)`."""
    match callee:
        case V.Closure():
            return call_closure(it, callee, args, keywords)
        case V.Known(fn):
            return call_known(it, fn, args, keywords)
        case V.Method():
            from pyrelay.infer.attributes import call_method

            return call_method(it, callee, args, keywords)
        case V.Partial(inner, first, named):
            return call(it, inner, (*first, *args), {**dict(named), **keywords})
        case V.Derivative():
            from pyrelay.infer.derivatives import call_derivative

            return call_derivative(it, callee, args, keywords)
        case V.Ref() | V.Data() | V.Tuple() if has_call(callee):
            from pyrelay.infer.attributes import get_attribute

            return call(it, get_attribute(it, callee, "__call__"), args, keywords)
        case V.Union():
            from pyrelay.infer.flow.unions import distribute

            return distribute(
                it, callee, lambda case: call(it, case, args, keywords), lambda c: c()
            )
    failure = it.failure(errors.TypeMismatchError, f"{V.describe(callee)} cannot be called")
    raise unfit_operands.of_call(it, failure, callee)


def has_call(value: V.Ref | V.Data | V.Tuple) -> bool:
    """Whether an object's class has a `__call__`: what the class itself is called by is none."""
    return value.cls is not None and "__call__" in dir(value.cls)


def call_known(
    it: Interpreter, fn: Any, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """Call a Python object known while compiling."""
    from pyrelay.infer.names.handlers import apply, lookup
    from pyrelay.infer.names.operator import getter

    handler = lookup(fn)
    if handler is not None:
        return apply(it, fn, handler, args, keywords)
    target = transformed(it, fn)
    if target is not None:
        return call(it, target, args, keywords)
    got = getter(fn)
    if got is not None:
        return call(it, got, args, keywords)
    if isinstance(fn, functools.partial):
        from pyrelay.infer.attributes import captured

        first = tuple(captured(it, v) for v in fn.args)
        named = {k: captured(it, v) for k, v in fn.keywords.items()}
        return call(it, V.Known(fn.func), (*first, *args), {**named, **keywords})
    if isinstance(fn, python_types.MethodType):
        from pyrelay.infer.attributes import captured

        receiver = captured(it, fn.__self__)
        return call(it, V.Known(fn.__func__), (receiver, *args), keywords)
    if is_generic(fn):
        return call_generic(it, fn, args, keywords)
    if isinstance(fn, python_types.FunctionType) and fn not in _REFUSED:
        of = generated_inits.class_of_init(fn, args)
        if of is not None:
            return generated_inits.initialise(it, of, args, keywords)
        return call_closure(it, function_value(it, fn), args, keywords)
    if isinstance(fn, type) and fn not in _REFUSED:
        from pyrelay.infer.attributes import construct

        return construct(it, fn, args, keywords)
    from pyrelay.infer.attributes import captured
    from pyrelay.infer.objects import is_callable_object

    if is_callable_object(fn):
        held = captured(it, fn)
        if isinstance(held, V.Known):  # the member of an enum, say: it has no attributes to hold
            return call(it, V.Known(type(fn).__call__), (held, *args), keywords)
        return call(it, held, args, keywords)
    if isinstance(fn, np.vectorize):
        options = (fn.otypes, None, fn.excluded or None, fn.cache, fn.signature)
        made = call_known(it, np.vectorize, [V.Known(v) for v in (fn.pyfunc, *options)], {})
        return call(it, made, args, keywords)
    if isinstance(fn, python_types.WrapperDescriptorType) and fn.__name__ == "__init__" and (
        issubclass(fn.__objclass__, BaseException)
    ):
        from pyrelay.infer.flow.effects import initialise

        return initialise(it, args[0], args[1:])
    cached = memoising.wrapped_function(fn)
    if cached is not None:
        return memoising.call_cached(it, cached, args, keywords)
    known = all(isinstance(a, V.Known) for a in (*args, *keywords.values()))
    if not known and isinstance(getattr(fn, "__self__", None), str):
        return text.method(it, V.Known(fn.__self__), fn.__name__, args, keywords)
    if not known and isinstance(getattr(fn, "__self__", None), bytes):
        from pyrelay.infer.attributes import get_attribute

        own = get_attribute(it, byte_strings.opened(it, V.Known(fn.__self__)), fn.__name__)
        return call(it, own, args, keywords)
    if isinstance(getattr(fn, "__self__", None), frozenset) and fn.__name__ in hashed_sets.ASKED:
        asked = hashed_sets.ASKED[fn.__name__]
        return call(it, V.Known(asked), (V.Known(fn.__self__), *args), keywords)
    if known and _is_pure(fn):
        named = {k: v.value for k, v in keywords.items()}  # type: ignore[union-attr]
        try:
            made = fn(*(a.value for a in args), **named)  # type: ignore[union-attr]
        except (ArithmeticError, LookupError, ValueError) as error:
            from pyrelay.infer.operators import raised

            raise raised(it, error) from None
        except TypeError as error:
            raise it.failure(errors.TypeMismatchError, str(error)) from None
        if type(made) is list:  # the parts of a text
            return it.new_ref("list", tuple(map(V.Known, made)))
        return V.Known(made)
    unbound = call_unbound(it, fn, args, keywords)
    if unbound is not None:
        return unbound
    raise unsupported(it, fn)


def is_generic(fn: Any) -> bool:
    """Whether a function is one of `functools.singledispatch`."""
    return isinstance(fn, python_types.FunctionType) and hasattr(fn, "registry") and (
        fn.__code__ is _GENERIC
    )


_GENERIC = cast(Any, functools.singledispatch(len)).__code__


def call_generic(
    it: Interpreter, fn: Any, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """Call what `functools.singledispatch` chose for the class of the first argument."""
    from pyrelay.infer.flow.unions import distribute
    from pyrelay.infer.names.builtins import type_

    if not args:
        said = f"{fn.__name__} requires at least 1 positional argument"
        raise it.failure(errors.SignatureError, said)
    first, *rest = args
    if isinstance(first, V.Union):
        return distribute(it, first, lambda case: call_generic(it, fn, (case, *rest), keywords))
    cls = type_(it, first)
    if isinstance(cls, V.Union):
        return distribute(it, cls, lambda case: _dispatched(it, fn, case, args, keywords))
    return _dispatched(it, fn, cls, args, keywords)


def _dispatched(
    it: Interpreter, fn: Any, cls: V.Value, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    assert isinstance(cls, V.Known)
    it.program.guards.record(NameGuard("registry", fn, "registry", registered(fn), False))
    return call(it, V.Known(fn.dispatch(cls.value)), args, keywords)


_BUILTIN = (
    python_types.BuiltinFunctionType, python_types.FunctionType, type, type(np.shares_memory),
)
_RANDOM = (
    "random numbers of this kind cannot be drawn inside a compiled function",
    "draw them outside and pass the array, or use rng = np.random.default_rng(seed) and its "
    "normal, uniform, integers, choice, permutation, ...",
)
_REFUSED: dict[Any, tuple[str, str]] = {
    input: ("'input' cannot be called inside a compiled function", "pass the text as an argument"),
    open: ("files cannot be opened inside a compiled function", "read the file outside"),
    np.real_if_close: (
        "'np.real_if_close' gives an array of a type that its values decide",
        "write np.real(x), or x.real, where the imaginary parts do not matter",
    ),
    **dict.fromkeys((np.shares_memory, np.may_share_memory), (
        "whether arrays share memory cannot be asked inside a compiled function: where arrays lie "
        "is the compiler's choice",
        "ask 'x is y' whether two are one array, or ask outside of the compiled function",
    )),
    set: (
        "a set whose items only the running program knows cannot be used like this: its order is "
        "not compiled, and its items are numbers, characters, constants, or tuples of them",
        "go through it in order, sorted(items), or keep the items in a dict: dict.fromkeys(items)",
    ),
}


def unsupported(it: Interpreter, fn: Any) -> errors.PyrelayError:
    """The error for a function that is neither Python source nor known to pyrelay."""
    refused = _REFUSED.get(fn) if isinstance(fn, _BUILTIN) else None
    if refused is None and (getattr(fn, "__module__", None) or "").startswith("numpy.random"):
        refused = _RANDOM
    if refused is None and isinstance(
        getattr(fn, "__self__", None), (np.random.RandomState, random.Random)
    ):
        refused = _RANDOM
    if refused is not None:
        text, hint = refused
        return it.failure(errors.UnsupportedOperationError, text, hints=(hint,))
    if not callable(fn):
        failure = it.failure(
            errors.TypeMismatchError, f"{V.describe(V.Known(fn))} cannot be called",
            notes=(f"it is {fn!r}",) if isinstance(fn, (int, float, complex, str)) else (),
        )
        return unfit_operands.of_call(it, failure, V.Known(fn))
    name = str(getattr(fn, "__qualname__", None) or getattr(fn, "__name__", type(fn).__name__))
    module = getattr(fn, "__module__", None) or type(fn).__module__
    elsewhere = isinstance(fn, np.ufunc) and getattr(np, name, None) is not fn  # SciPy's
    full = name if elsewhere or module in (None, "builtins") else f"{module}.{name}"
    close = _similar(fn, name)
    return it.failure(
        errors.UnsupportedOperationError,
        f"{full!r} cannot be compiled: it is not written in Python, and pyrelay has no version of "
        "it",
        hints=(close or users_lines.ELSEWHERE,),
    )


def _similar(fn: Any, name: str) -> str | None:
    import difflib

    from pyrelay.infer.names import handlers

    match = difflib.get_close_matches(name, handlers.known_names(), n=2, cutoff=0.8)
    return f"pyrelay knows {' and '.join(match)}" if match else None


def _is_pure(fn: Any) -> bool:
    return getattr(fn, "__module__", None) in ("math", "numpy") or fn in (
        str, repr, format, chr, ord, bool, int, float, set, frozenset,
    ) or isinstance(getattr(fn, "__self__", None), (str, bytes))  # a method of a known one


def transformed(it: Interpreter, fn: Any) -> V.Value | None:
    """What an object of pyrelay (`jit(f)`, `grad(f)`, ...) or of numba stands for inside a program.

    Those of pyrelay say so by `__pyrelay__ = (kind, function, options)`.
    """
    spec = getattr(fn, "__pyrelay__", None)
    if spec is None:
        return numba_functions.called(it, fn)
    kind, inner, options = spec
    return V.Known(inner) if kind == "jit" else transform(kind, V.Known(inner), options)


def transform(kind: str, callee: V.Value, options: Mapping[str, Any]) -> V.Value:
    """A transform of a callable, `grad` or its kin or `vmap`, not yet called."""
    if kind == "vmap":
        return mapping(callee, V.Known(options["in_axes"]), V.Known(options["out_axes"]))
    return V.Derivative(callee, kind, **options)


def mapping(callee: V.Value, in_axes: V.Value, out_axes: V.Value) -> V.Partial:
    """`vmap(callee, in_axes, out_axes)`, not yet called."""
    return V.Partial(V.Known(examples.mapped), (callee, in_axes, out_axes), ())


def function_value(it: Interpreter, fn: python_types.FunctionType) -> V.Closure:
    """The closure of a Python function that exists before the program runs.

    Its defaults are read now; its free variables are read by name when used.
    """
    from pyrelay.infer.attributes import captured, of_pyrelay

    if fn.__module__ == "re":  # whose own compiler would be interpreted first, for half a minute
        raise it.failure(
            errors.UnsupportedOperationError,
            f"'re.{fn.__name__}' cannot be compiled: regular expressions are not",
            hints=("use methods of strings (split, find, startswith, isdigit), or match outside of "
                   "the compiled function and pass what is found",),
        )  # fmt: skip
    home = it.program.parse(fn)
    function = home.module.functions[home.module.entry]
    if not of_pyrelay(fn):
        for name in ("__code__", "__defaults__"):  # as `autoreload` replaces them
            it.program.guards.record(NameGuard("attribute", fn, name, getattr(fn, name), False))
    if any(p.kind == "keyword_only" for p in function.signature) and not of_pyrelay(fn):
        now = keyword_defaults(fn)
        it.program.guards.record(NameGuard("defaults", fn, "__kwdefaults__", now, False))
    defaults: dict[str, V.Value] = {}
    positional = [p for p in function.signature if p.kind.startswith("positional")]
    values = fn.__defaults__ or ()
    for parameter, value in zip(positional[len(positional) - len(values):], values, strict=True):
        defaults[parameter.name] = captured(it, value)
    for name, value in (fn.__kwdefaults__ or {}).items():
        defaults[name] = captured(it, value)
    return V.Closure(function, home, fn, tuple(defaults.items()), ())


def bind_arguments(
    it: Interpreter, closure: V.Closure, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> list[V.Value]:
    """One value per parameter, as Python binds them. Raises SignatureError as Python would."""
    defaults, rest, named = dict(closure.defaults), list(args), dict(keywords)
    bound: list[V.Value] = []
    fits = True
    for p in closure.function.signature:
        if p.kind == "var_positional":
            match rest:
                case [V.Tuple((whole,), cls)] if cls is V.Spread:
                    bound.append(whole)
                case _:
                    bound.append(V.Tuple(tuple(rest)))
            rest = []
        elif p.kind == "var_keyword":
            bound.append(it.new_ref("dict", named))
            named = {}
        elif p.kind.startswith("positional") and rest:
            fits = fits and not (p.name in named and p.kind == "positional_or_keyword")
            bound.append(rest.pop(0))
        elif p.kind != "positional_only" and p.name in named:
            bound.append(named.pop(p.name))
        elif p.name in defaults:
            bound.append(defaults[p.name])
        else:
            fits = False
    if not fits or rest or named:
        raise _misfit(it, closure, wrong_calls.said(closure, len(args), keywords))
    return bound


def _misfit(it: Interpreter, closure: V.Closure, said: str) -> errors.PyrelayError:
    from pyrelay.infer.flow import handling

    function = closure.function
    defined = f"{V.function_name(function)} is defined here"
    related = [(function.span, defined)] if function.span else []
    error = it.failure(errors.SignatureError, said, related=related)
    return handling.certain(it, error, TypeError, said)


def call_closure(
    it: Interpreter, closure: V.Closure, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """Call a function of the program or a Python function with source."""
    return call_bound(it, closure, bind_arguments(it, closure, args, keywords))


def call_bound(it: Interpreter, closure: V.Closure, bound: list[V.Value]) -> V.Value:
    """Call such a function with a value for each parameter."""
    from pyrelay.infer import own_functions, specialisation
    from pyrelay.infer.flow import generators

    function = closure.function
    if generators.is_generator_function(it, function):
        return generators.make(it, closure, bound)
    if function in it.program.recursive:
        return specialisation.call_global(it, closure, bound)
    if closure.owner in ONCE:
        made = specialisation.call_once(it, closure, bound)
        if made is not None:
            return made
    if function in it.active and not (
        is_unfolded(it, bound) and it.active.count(function) < DEEPEST
    ):
        raise IsRecursive(function)
    if own_functions.is_costly(it, closure):
        made = own_functions.call_own(it, closure, bound)
        if made is not None:
            return made
    if len(it.active) > _DEEPEST_INLINE and not it.program.unfolds:
        it.program.recursive.add(function)  # a function of its own, as if it were
        return specialisation.call_global(it, closure, bound)
    before, saved_heap = it.mark(), it.heap.copy()
    depth, frames, calls, builder = len(it.active), len(it.frames), len(it.calls), it.builder
    let, mark, begun = it.let, it.program.guards.mark(), it.program.lacking.statements
    try:
        return in_line(it, closure, bound)
    except IsRecursive as found:
        if found.function is not function:
            raise
        it.program.guards.rollback(mark)
        it.program.recursive.add(function)
        it.let, it.builder = let, builder
        it.take_back(before)
        del it.active[depth:], it.frames[frames:], it.calls[calls:]
        it.heap.reset(saved_heap)
        return specialisation.call_global(it, closure, bound)
    finally:
        count, cost = it.program.costs.get(function, (0, 0))
        cost += it.program.lacking.statements - begun
        it.program.costs[function] = count + 1, cost


def in_line(
    it: Interpreter, closure: V.Closure, bound: Sequence[V.Value],
    consumer: Callable[[V.Value], V.Value] | None = None,
) -> V.Value:
    """Interpret the body of a function in the block at hand; `consumer` takes what it yields."""
    function = closure.function
    shown = ", ".join(
        f"{p.name}: {V.describe(v)}" for p, v in zip(function.signature, bound, strict=True)
    )
    call_site = it.let.span if it.let else None
    it.calls.append((call_site, f"{V.function_name(function)}({shown})"))
    it.active.append(function)
    saved = it.let
    try:
        return run_body(it, closure, bound, function.body, consumer)
    finally:
        it.let = saved
        if it.active and it.active[-1] is function:
            it.active.pop()
        if it.calls:
            it.calls.pop()


def run_body(
    it: Interpreter, closure: V.Closure, bound: Sequence[V.Value], body: Block,
    consumer: Callable[[V.Value], V.Value] | None = None,
) -> V.Value:
    """Interpret a body with its parameters and cells bound; the returned value."""
    function = closure.function
    frame = Frame(function, closure.home, closure.owner, consumer=consumer)
    params: tuple[Var, ...] = function.params
    frame.env.update(zip(params, [*bound, *closure.cells], strict=True))
    declared = fitting.begun(it, closure, bound)
    it.frames.append(frame)
    try:
        (result,) = it.run(body, outermost=True)
        if declared is not None and consumer is None:
            declared.result(result)
        return result
    finally:
        it.frames.pop()


def known_signature(fn: Any) -> inspect.Signature | None:
    """The signature of a Python callable, None if it has none."""
    try:
        return signature_of(fn)
    except (TypeError, ValueError):
        return None
