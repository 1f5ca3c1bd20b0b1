"""The table from Python objects to their meaning in a program: NumPy, math, builtins, pyrelay.nn.

A handler is written like the function it stands for: `handler(it, *args, **keywords)` on abstract
values, with the same parameter names, so that keyword calls and wrong arguments behave as in
Python.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from pyrelay import errors
from pyrelay.infer import kinds
from pyrelay.infer import values as V
from pyrelay.infer.flow.generators import listed_view, taken
from pyrelay.infer.flow.narrowing import narrowed
from pyrelay.infer.flow.unions import distribute, sample
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.protocols import gone_through
from pyrelay.ir import types

_entered: list[Any] = []  # optional libraries whose functions are in the table
_TABLE: dict[int, tuple[Any, Callable[..., Any]]] = {}
_OF_CLASSES: dict[Any, Callable[..., Any]] = {}  # class methods, made anew by every look
_TAKES_UNIONS: set[Callable[..., Any]] = set()
#: What takes an iterator as the object that it is.
_TAKE_ITERATORS = (next, iter, isinstance, type, callable, zip)
#: Parameters of handlers that go through what they are given.
_ITERABLES = frozenset(("iterable", "iterables"))
_loaded = False
_complete = False


H = TypeVar("H", bound=Callable[..., Any])


def handles(*objects: Any) -> Callable[[H], H]:
    """Enter a handler for these Python objects."""

    def enter(handler: H) -> H:
        for obj in objects:
            if isinstance(getattr(obj, "__self__", None), type):
                _OF_CLASSES[obj] = handler
            else:
                _TABLE[id(obj)] = (obj, handler)
        return handler

    return enter


def keeps_unions(handler: H) -> H:
    """Mark a handler that passes on its arguments as they are: a union stays one."""
    _TAKES_UNIONS.add(handler)
    return handler


def _load() -> None:
    global _loaded, _complete
    if not _loaded:
        _loaded = True
        from pyrelay.infer.arrays import einsum  # noqa: F401 (fills the table)
        from pyrelay.infer.names import (  # noqa: F401 (each fills the table)
            attributes,
            builtins,
            complex_order,
            composed,
            containers,
            copying,
            creation,
            dataclasses,
            effects,
            folds,
            iteration,
            joining,
            keys,
            mapping,
            math,
            numpy,
            operator,
            random,
            reduction,
            shape,
            sorting,
            text,
            transforms,
            zipping,
        )

        _complete = True


#: Modules that are entered once a program has imported them, and the last name that each defines.
_OPTIONAL = {
    "scipy.special": "softmax", "scipy.linalg": "block_diag",
    "numpy.testing": "assert_allclose", "statistics": "NormalDist",
    "numpy.polynomial": "Polynomial", "ml_dtypes": "bfloat16",
}


def _new_library() -> bool:
    """Enter optional modules that have been imported since the last time; whether any was."""
    if not _complete:
        return False
    before = len(_entered)
    for name, last in _OPTIONAL.items():
        module = sys.modules.get(name)
        if module is not None and module not in _entered and hasattr(module, last):
            _entered.append(module)
            from pyrelay.infer.names.composed import enter_optional

            enter_optional(module)
    return len(_entered) > before


def lookup(obj: Any) -> Callable[..., Any] | None:
    """The handler of a Python object, None if it has none."""
    _load()
    found = _TABLE.get(id(obj))
    if found is not None and found[0] is obj:
        return found[1]
    if _new_library():
        return lookup(obj)
    ufunc = getattr(obj, "__self__", None)
    if type(ufunc) is np.ufunc:
        from pyrelay.infer.names.ufunc_methods import ufunc_method

        return ufunc_method(ufunc, obj.__name__)
    if isinstance(ufunc, type) and obj in _OF_CLASSES:
        return _OF_CLASSES[obj]
    if ufunc is not None:
        from pyrelay.infer.names.effects import bound_effect

        writes = bound_effect(obj)
        if writes is not None:
            return writes
    home = getattr(obj, "__module__", None)
    if isinstance(home, str) and home.partition(".")[0] == "tqdm":
        from pyrelay.infer.progress import of_tqdm

        return of_tqdm(obj)
    ours = home in ("pyrelay.api", "pyrelay.ruled_functions") or (
        isinstance(home, str) and home.startswith("pyrelay.nn.")
    )
    if ours and (isinstance(obj, type) or not hasattr(obj, "__pyrelay__")):
        from pyrelay.infer.names.pyrelay import HANDLERS

        return HANDLERS.get((obj.__module__, getattr(obj, "__name__", "")))
    return None


def known_names() -> list[str]:
    """Names of everything in the table, for suggestions."""
    _load()
    return sorted({_spell(obj) for obj, _ in _TABLE.values()})


def _spell(obj: Any) -> str:
    name = getattr(obj, "__name__", str(obj))
    module = getattr(obj, "__module__", None) or type(obj).__module__
    if module in ("builtins", None):
        return name
    return f"np.{name}" if module.startswith("numpy") else f"{module}.{name}"


def apply(
    it: Interpreter, fn: Any, handler: Callable[..., Any], args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """Call a handler; arguments that it does not take are the user's error."""
    if fn not in _TAKE_ITERATORS:
        args = [taken(it, a) for a in args]
        if fn is not len:
            args = [listed_view(it, a) for a in args]
    if handler not in _TAKES_UNIONS:
        args = [narrowed(it, a) for a in args]
        if len(args) < 2 or not any(fn is f for f in _COMPARE):
            args = [kinds.told(it, a) for a in args]
        if isinstance(fn, np.ufunc) and kinds.differ(fn, args):
            args = [kinds.told_apart(it, a) if isinstance(a, V.Scalar) and a.kinds else a
                    for a in args]
        for k, value in enumerate(args):
            if isinstance(value, V.Union):
                return distribute(
                    it, value,
                    lambda c, k=k: apply(it, fn, handler, (*args[:k], c, *args[k + 1 :]), keywords),  # type: ignore[misc]
                    None if fn is handler else lambda c, k=k: fn(  # type: ignore[misc]
                        *(c if i == k else sample(it, a) for i, a in enumerate(args))
                    ),
                )
        for name, value in keywords.items():
            if isinstance(value, V.Union):
                return distribute(
                    it, value,
                    lambda c, n=name: apply(it, fn, handler, args, {**keywords, n: c}),  # type: ignore[misc]
                )
    if "out" in keywords and any(fn is f for f in _WITHOUT_OUT):
        others = {k: v for k, v in keywords.items() if k != "out"}
        result = apply(it, fn, handler, args, others)
        return result if keywords["out"] == V.NONE else stored(it, fn, keywords["out"], result)
    named = {k: keywords[k] for k in _only_named(handler) & keywords.keys()}
    others = {k: v for k, v in keywords.items() if k not in named}
    try:
        bound = _signature(handler).bind(it, *args, **others)
    except TypeError as error:
        raise it.failure(errors.SignatureError, f"{_spell(fn)}(): {error}") from None
    for name in () if fn in _TAKE_ITERATORS else _ITERABLES & bound.arguments.keys():
        value = bound.arguments[name]
        bound.arguments[name] = (
            tuple(gone_through(it, v) for v in value) if isinstance(value, tuple)
            else gone_through(it, value)
        )
    given = {k: v for k, v in keywords.items() if k in named or k in bound.kwargs}
    answer: V.Value = handler(*bound.args, **given)
    return answer


#: Functions of numbers that only compare them, of whatever kinds they are.
_COMPARE = (min, max)

#: Functions with an `out` that their handlers need not know: it is written with their result.
_WITHOUT_OUT = (
    np.dot, np.einsum, np.trace, np.choose, np.compress, np.fix, np.isposinf, np.isneginf,
    np.cumulative_sum, np.cumulative_prod, np.linalg.multi_dot,
)


@functools.cache
def _signature(handler: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(handler)


@functools.cache
def _only_named(handler: Callable[..., Any]) -> frozenset[str]:
    """Names of parameters by position that mean others as keywords: Python 3.11 refuses to bind
    them to `**named` (3.12 does)."""
    parameters = _signature(handler).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        return frozenset()
    return frozenset(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)


def elementwise(op: str) -> Callable[..., V.Value]:
    """The handler of an op of elements on operands, which may be nested lists of numbers."""

    def handler(it: Interpreter, *operands: V.Value) -> V.Value:
        from pyrelay.infer.names.adapters import operand, strong

        values = [operand(it, v) for v in operands]
        if all(it.tensor(v).weak for v in values):
            # NumPy's functions give NumPy scalars, also for Python numbers.
            values = [strong(it, v) for v in values]
        return it.call(op, *values)

    return handler


def _gives_truths(ufunc: np.ufunc) -> bool:
    """Whether its results are bools, so that a dtype says nothing of its operands."""
    return all(loop[-1] == "?" for loop in ufunc.types if loop[-1] != "O")


def _require_loop(
    it: Interpreter, ufunc: np.ufunc, operands: Sequence[V.Value], dtype: V.Value, rule: Any
) -> None:
    """Raise NumPy's TypeError where it has no loop of that dtype, or operands may not become it."""
    from pyrelay.infer.names.adapters import dtype_of

    target = dtype_of(it, dtype)
    if target is None or types.bf16 in (target, *(it.tensor(v).dtype for v in operands)):
        return
    if _gives_truths(ufunc):
        if target.kind != "b":
            raise it.failure(
                errors.TypeMismatchError,
                "No loop matching the specified signature and casting was found for ufunc "
                + ufunc.__name__,
            )
        return
    for k, value in enumerate(operands):
        ty = it.tensor(value)
        whole = ty.weak and ty.dtype.kind in "ib" and target.kind != "b"
        if not whole and not np.can_cast(ty.dtype.numpy, target.numpy, rule):
            raise it.failure(
                errors.TypeMismatchError,
                f"Cannot cast ufunc {ufunc.__name__!r} input {k} from {ty.dtype.numpy!r} to "
                f"{target.numpy!r} with casting rule {rule!r}",
            )


def of_ufunc(ufunc: np.ufunc, plain: Callable[..., V.Value]) -> Callable[..., V.Value]:
    """The handler of a ufunc with its `out`, `where` and `dtype`, from that of its operands."""

    def handler(
        it: Interpreter, *given: V.Value, out: V.Value = V.NONE, where: V.Value = V.Known(True),
        dtype: V.Value = V.NONE, **keywords: V.Value,
    ) -> V.Value:
        from pyrelay.infer.names.adapters import cast, operand, refuse_keywords

        along = {}  # NumPy takes it where all operands have one core dimension: no other ufunc here
        if ufunc is np.vecdot and "axis" in keywords:
            along["axis"] = keywords.pop("axis")
        refuse_keywords(it, keywords, ufunc.__name__, ("casting", "order", "subok"))
        operands, places = list(given[: ufunc.nin]), list(given[ufunc.nin :])
        if out != V.NONE:
            places += out.items if isinstance(out, V.Tuple) else [out]
        places += [V.NONE] * (ufunc.nout - len(places))
        if len(operands) < ufunc.nin or len(places) > ufunc.nout:
            raise it.failure(
                errors.SignatureError,
                f"np.{ufunc.__name__}() takes {ufunc.nin} operand{'s' * (ufunc.nin > 1)} "
                f"but {len(given)} were given",
            )
        rule = it.static(keywords.get("casting", V.Known("same_kind")), "casting")
        if dtype != V.NONE:
            operands = [operand(it, v) for v in operands]
            _require_loop(it, ufunc, operands, dtype, rule)
            if not _gives_truths(ufunc):
                operands = [cast(it, v, dtype) for v in operands]
        result = plain(it, *operands, **along)
        results = result.items if isinstance(result, V.Tuple) else (result,)
        found = tuple(
            _put(it, ufunc, part, place, where, rule)
            for part, place in zip(results, places, strict=True)
        )
        return V.Tuple(found) if isinstance(result, V.Tuple) else found[0]

    return handler


def _put(
    it: Interpreter, ufunc: np.ufunc, result: V.Value, place: V.Value, where: V.Value, rule: Any
) -> V.Value:
    """A result of a ufunc, written where it is wanted to the array given for it."""
    if place == V.NONE and where == V.Known(True):
        return result
    if place == V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"np.{ufunc.__name__} with where= leaves elements unset that out= does not give",
            hints=("give out=, e.g. out=np.zeros_like(x)",),
        )
    if where != V.Known(True):
        select = lookup(np.where)
        assert select is not None
        result = select(it, where, result, place)
    return stored(it, ufunc, place, result, rule)


def stored(
    it: Interpreter, fn: Any, out: V.Value, result: V.Value, rule: Any = "same_kind"
) -> V.Value:
    """The array `out` of a call of `fn`, after the result was written to it.

    rule: NumPy's `casting`, by which the result becomes one of its type.
    """
    from pyrelay.infer.arrays.subscripts import set_item
    from pyrelay.infer.names.adapters import cast

    if not isinstance(out, V.ArrayRef):
        raise it.failure(
            errors.TypeMismatchError,
            f"{_spell(fn)}(): out= must be an array, not {V.describe(out)}",
        )
    given = it.tensor(result)
    if not np.can_cast(given.dtype.numpy, out.type.dtype.numpy, rule):
        raise it.failure(
            errors.TypeMismatchError,
            f"{_spell(fn)}() gives {given}, which NumPy does not cast to the {out.type} of out=",
            hints=("give an array of the result's type, or write out[...] = result",),
        )
    if len(given.shape) != len(out.type.shape) and not isinstance(fn, np.ufunc):
        raise it.failure(
            errors.ShapeError, f"{_spell(fn)}() gives {given}, and out= is {out.type}"
        )
    set_item(it, out, V.Known(Ellipsis), cast(it, result, out.type.dtype))
    return out
