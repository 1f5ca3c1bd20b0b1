"""Exceptions: objects that programs make, and the raising of them.

An exception whose arguments are numbers and texts of numbers is raised by op `raise`, which may
stand in a kernel. Any other is made and raised by Python.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pyrelay import errors
from pyrelay.infer import handling, host, text
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types

MAX_WORDS = 15
"""Words of numbers that op `raise` can carry: what the run time's error record holds."""

_KEYWORDS = " keywords"
"""The field of an exception object with keyword arguments; no attribute has such a name."""


def exception_value(
    it: Interpreter, cls: type, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value] | None = None,
) -> V.Value:
    """An exception object under construction: its class and arguments."""
    content: dict[str, V.Value] = {"args": V.Tuple(tuple(text.frozen(it, a) for a in args))}
    if keywords:
        pairs = (V.Tuple((V.Known(k), text.frozen(it, v))) for k, v in keywords.items())
        content[_KEYWORDS] = V.Tuple(tuple(pairs))
    return it.new_ref("object", content, cls)


def raise_value(it: Interpreter, exception: V.Value, cause: V.Value = V.NONE) -> NoReturn:
    """`raise exception from cause`. Emits the raise; always ends the block."""
    if isinstance(exception, V.Union):
        from pyrelay.infer.unions import distribute

        distribute(it, exception, lambda case: raise_value(it, case, cause))
        raise V.Diverges
    cls, args, keywords = parts_of(it, exception)
    if it.guarded:
        if cause != V.NONE:
            raise it.failure(
                errors.UnsupportedOperationError,
                "'raise ... from ...' in the body of a try is not compiled",
                hints=("leave out the cause, or raise it behind the try",),
            )
        pairs = [p.items for p in keywords if isinstance(p, V.Tuple)]
        named = [(k.value, v) for k, v in pairs if isinstance(k, V.Known)]
        handling.raise_to_handler(it, cls, args, named)
    handling.note_raise(it)
    if cause == V.NONE and not keywords:
        emit_raise(it, cls, args)
    elif cause == V.NONE:
        host.call(it, _raise, (V.Known(cls), V.Tuple(args), V.Tuple(keywords)))
    else:
        its_cls, its_args, its_keywords = parts_of(it, cause)
        own = (V.Known(cls), V.Tuple(args), V.Tuple(keywords))
        causing = (V.Known(its_cls), V.Tuple(its_args), V.Tuple(its_keywords))
        host.call(it, _raise_from, (*own, *causing))
    raise V.Diverges


def parts_of(
    it: Interpreter, exception: V.Value
) -> tuple[type[BaseException], tuple[V.Value, ...], tuple[V.Value, ...]]:
    """Class, arguments and keyword arguments (pairs) of what stands behind `raise`."""
    match exception:
        case V.Known(cls) if isinstance(cls, type) and issubclass(cls, BaseException):
            return cls, (), ()
        case V.Known(error) if isinstance(error, BaseException):
            return type(error), tuple(map(V.Known, error.args)), ()
        case V.Ref(root, cls) if cls is not None and issubclass(cls, BaseException):
            content = it.content(root)
            keywords = content.get(_KEYWORDS)
            return cls, content["args"].items, keywords.items if keywords is not None else ()
    raise it.failure(errors.TypeMismatchError, f"{V.describe(exception)} is not an exception")


def _raise(
    cls: type[BaseException], args: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]
) -> NoReturn:
    raise cls(*args, **dict(keywords))


def _raise_from(
    cls: type[BaseException], args: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...],
    cause: type[BaseException], its_args: tuple[Any, ...],
    its_keywords: tuple[tuple[str, Any], ...],
) -> NoReturn:
    raise cls(*args, **dict(keywords)) from cause(*its_args, **dict(its_keywords))


def emit_raise(it: Interpreter, cls: type, args: Sequence[V.Value]) -> None:
    """Emit the raising of `cls(*args)`. In the body of a `try`, raises Raises."""
    if it.guarded:
        handling.raise_to_handler(it, cls, args)
    handling.note_raise(it)
    numbers: list[V.Value] = []
    parts = [_argument(arg, numbers) for arg in args]
    words = sum(1 + (ty.dtype.size == 16) for ty in map(V.number_type, numbers) if ty)
    if words > MAX_WORDS or None in parts:
        host.call(it, _raise, (V.Known(cls), V.Tuple(tuple(args)), V.Tuple(())))
        return
    found: tuple[Any, ...] = tuple(parts)
    plain = not any(isinstance(piece, tuple) for part in found for piece in part)
    if len(found) == 1 and found[0][0] == "text" and plain:
        found = found[0][1:]
    it.emit("raise", *numbers, exception=exception_name(cls), parts=found)


def _argument(arg: V.Value, numbers: list[V.Value]) -> tuple[Any, ...] | None:
    """An argument as a part of op `raise` (`errors.exception_of`), its numbers entered.

    None if the op cannot carry it.
    """
    ty = V.number_type(arg)
    if ty is not None:
        numbers.append(arg)
        return (types.scalar_kind(ty), len(numbers) - 1)
    if isinstance(arg, V.Known) and not isinstance(arg.value, str):
        return ("constant", arg.value)
    pieces = _pieces(arg, numbers)
    return None if pieces is None else ("text", *pieces)


def _pieces(arg: V.Value, numbers: list[V.Value]) -> list[Any] | None:
    """The pieces of a text; None unless they are known texts and formatted numbers."""
    match arg:
        case V.Known(v):
            return [str(v)]
        case V.Text(function, parts) if function is text.joined:
            pieces: list[Any] = []
            for part in parts:
                inner = _pieces(part, numbers)
                if inner is None:
                    return None
                pieces += inner
            return pieces
        case V.Text(function, (number, V.Known(conversion), V.Known(spec))) if (
            function is text.formatted
        ):
            return _number(number, conversion, spec, numbers)
        case V.Text(function, (number,)) if function is str:
            return _number(number, "s", "", numbers)
    return None


def _number(
    number: V.Value, conversion: str, spec: str, numbers: list[V.Value]
) -> list[Any] | None:
    ty = V.number_type(number)
    if ty is None:
        return None
    numbers.append(number)
    at = len(numbers) - 1
    plain = ty.weak and not conversion and not spec
    return [at if plain else (types.scalar_kind(ty), at, conversion, spec)]


def exception_name(cls: type) -> Any:
    """Builtins by name; other classes by the class itself."""
    return cls.__name__ if getattr(builtins, cls.__name__, None) is cls else cls
