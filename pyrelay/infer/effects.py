"""Effects of a program on the world: raising exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types

MAX_WORDS = 15
"""Words of numbers that an exception can carry: what the run time's error record holds."""


def exception_value(it: Interpreter, cls: type, args: Sequence[V.Value]) -> V.Value:
    """An exception object under construction: its class and arguments."""
    content = {"args": V.Tuple(tuple(args))}
    return it.new_ref("object", content, cls)


def raise_value(it: Interpreter, exception: V.Value) -> None:
    """`raise exception`. Emits the raise; always ends the block."""
    match exception:
        case V.Known(cls) if isinstance(cls, type) and issubclass(cls, BaseException):
            emit_raise(it, cls, ())
        case V.Known(error) if isinstance(error, BaseException):
            emit_raise(it, type(error), tuple(map(V.Known, error.args)))
        case V.Ref(root, cls) if cls is not None and issubclass(cls, BaseException):
            arguments = it.content(root)["args"]
            emit_raise(it, cls, arguments.items)
        case _:
            raise it.failure(
                errors.TypeMismatchError, f"{V.describe(exception)} is not an exception"
            )
    raise V.Diverges


def emit_raise(it: Interpreter, cls: type, args: Sequence[V.Value]) -> None:
    """Emit the raising of `cls(*args)`. The arguments may contain numbers of the program."""
    values: list[V.Value] = []
    parts = tuple(_argument(it, arg, values) for arg in args)
    plain = not any(isinstance(piece, tuple) for part in parts for piece in part)
    if len(parts) == 1 and parts[0][0] == "text" and plain:
        parts = parts[0][1:]
    if sum(1 + (ty.dtype.size == 16) for ty in map(V.number_type, values) if ty) > MAX_WORDS:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"an exception of a compiled function carries at most {MAX_WORDS} numbers",
        )
    it.emit("raise", *values, exception=exception_name(cls), parts=parts)


def _argument(it: Interpreter, arg: V.Value, values: list[V.Value]) -> tuple[Any, ...]:
    """An argument as a part of op `raise` (`errors.exception_of`); its numbers go to `values`."""
    ty = V.number_type(arg)
    if ty is not None:
        values.append(arg)
        name = types.python_type(ty).__name__ if ty.weak else ty.dtype.numpy.name
        return ("bool_" if name == "bool" and not ty.weak else name, len(values) - 1)
    if isinstance(arg, V.Known) and not isinstance(arg.value, str):
        return ("constant", arg.value)
    pieces: list[Any] = ["text"]
    _message_parts(it, arg, pieces, values)
    return tuple(pieces)


def exception_name(cls: type) -> Any:
    """Builtins by name; other classes by the class itself."""
    import builtins

    return cls.__name__ if getattr(builtins, cls.__name__, None) is cls else cls


def _message_parts(
    it: Interpreter, arg: V.Value, parts: list[Any], values: list[V.Value]
) -> None:
    match arg:
        case V.Known(v):
            parts.append(str(v))
        case V.Scalar():
            parts.append(len(values))
            values.append(arg)
        case V.Tuple(items, cls) if cls is FormattedText:
            for item in items:
                _message_parts(it, item, parts, values)
        case V.Tuple((number, V.Known(conversion), V.Known(spec)), cls) if cls is FormattedNumber:
            parts.append((len(values), conversion, spec))
            values.append(number)
        case _:
            raise it.failure(
                errors.UnsupportedOperationError,
                f"{V.describe(arg)} cannot be an argument of an exception in a compiled function",
                hints=("give it texts and numbers",),
            )


class FormattedNumber(tuple):  # type: ignore[type-arg]
    """Marks a Tuple value that is a run-time number, a conversion, and a format spec.

    Called with the three, it gives the text.
    """

    __slots__ = ()

    def __new__(cls, number: Any, conversion: str, spec: str) -> Any:
        return errors.formatted(number, conversion, spec)


class FormattedText(tuple):  # type: ignore[type-arg]
    """Marks a Tuple value that is the parts of an f-string with run-time numbers in it.

    Called with the parts, it gives the text.
    """

    __slots__ = ()

    def __new__(cls, *parts: Any) -> Any:
        return "".join(format(p) for p in parts)


def is_text(value: V.Value) -> bool:
    """True for text with numbers of the running program in it."""
    return isinstance(value, V.Tuple) and value.cls is FormattedText


def format_text(it: Interpreter, args: Sequence[V.Value], attrs: Any) -> V.Value:
    """An f-string: known text, or text with numbers to be filled in when it is shown."""
    pieces: list[V.Value] = []
    waiting = iter(zip(args[::2], attrs["conversions"], args[1::2], strict=True))
    for part in attrs["parts"]:
        if part is not None:
            pieces.append(V.Known(part))
            continue
        value, conversion, spec = next(waiting)
        pieces.append(_formatted(it, value, conversion, spec))
    if all(isinstance(p, V.Known) for p in pieces):
        return V.Known("".join(str(p.value) for p in pieces))  # type: ignore[union-attr]
    return V.Tuple(tuple(pieces), FormattedText)


def _formatted(
    it: Interpreter, value: V.Value, conversion: str, spec_value: V.Value
) -> V.Value:
    spec = it.static(spec_value, "a format spec")
    if isinstance(value, V.Known):
        return V.Known(errors.formatted(value.value, conversion, spec))
    if isinstance(value, V.Tuple) and value.cls is FormattedText:
        return value
    ty = V.number_type(value)
    if ty is None:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{V.describe(value)} cannot be put into text in a compiled function",
            hints=("format numbers, e.g. one element of the array",),
        )
    if spec or conversion:
        return V.Tuple((value, V.Known(conversion), V.Known(spec)), FormattedNumber)
    return value

