"""Exceptions: objects that programs make, and the raising of them.

An exception whose arguments are numbers and texts of numbers is raised by op `raise`, which may
stand in a kernel. Any other is made and raised by Python.
"""

from __future__ import annotations

import builtins
import types as python_types
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pyrelay import errors
from pyrelay.infer import host, kinds, needs
from pyrelay.infer import values as V
from pyrelay.infer.containers import text
from pyrelay.infer.flow import handling
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.objects import CAUSE
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS

MAX_WORDS = 15
"""Words of numbers that op `raise` can carry: what the run time's error record holds."""

_MOST_CASES = 4
"""Cases of an argument for each of which there is an op `raise`."""

MADE = " made"
"""The field of an exception object with what it was made of; no attribute has such a name."""


def exception_value(
    it: Interpreter, cls: type, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value] | None = None,
) -> V.Value:
    """An exception object: what it was made of, and what an `__init__` of its class's says.

    Among the keywords may be its CAUSE.
    """
    from pyrelay.infer.attributes import of_class
    from pyrelay.infer.calls import call

    named = dict(keywords or {})
    own = V.Tuple(tuple(text.frozen(it, a) for a in args))
    pairs = V.Tuple(tuple(
        V.Tuple((V.Known(k), v if k == CAUSE else text.frozen(it, v))) for k, v in named.items()
    ))
    cause = named.pop(CAUSE, V.NONE)
    if isinstance(cause, V.Raised):
        cause = exception_value(it, cause.cls, cause.args, dict(cause.keywords))
    made = it.new_ref("object", {**_of_arguments(cls, own), "__cause__": cause}, cls)
    init = of_class(it, cls, "__init__")
    if isinstance(init, python_types.FunctionType):
        call(it, V.Known(init), (made, *args), named)
    content = {**it.content(made.root), MADE: V.Tuple((own, pairs))}
    it.heap.write(made.root, content, it.let.span if it.let else None)
    return made


def initialise(it: Interpreter, made: V.Value, args: Sequence[V.Value]) -> V.Value:
    """`BaseException.__init__(made, *args)`, as `super().__init__(...)` of a user's class calls it.
    """
    assert isinstance(made, V.Ref)
    own = V.Tuple(tuple(text.frozen(it, a) for a in args))
    assert made.cls is not None
    content = {**it.content(made.root), **_of_arguments(made.cls, own)}
    it.heap.write(made.root, content, it.let.span if it.let else None)
    return V.NONE


def _of_arguments(cls: type, args: V.Tuple) -> dict[str, V.Value]:
    """The attributes that Python gives an exception of such arguments."""
    if not issubclass(cls, StopIteration):
        return {"args": args}
    return {"args": args, "value": args.items[0] if args.items else V.NONE}


def is_complete(it: Interpreter, obj: V.Ref) -> bool:
    """Whether an object is an exception whose `__init__` is done."""
    return MADE in it.content(obj.root)


def raise_value(it: Interpreter, exception: V.Value, cause: V.Value = V.NONE) -> NoReturn:
    """`raise exception from cause`. Emits the raise; always ends the block."""
    it.program.leaves = True
    for value in (exception, cause):
        if isinstance(value, V.Union):
            from pyrelay.infer.flow.unions import distribute

            distribute(it, value, lambda case, value=value: raise_value(  # type: ignore[misc]
                it, case if value is exception else exception, case if value is cause else cause
            ))
            raise needs.Diverges
    cls, args, named = parts_of(it, exception)
    if cause != V.NONE:
        named = (*(p for p in named if p[0] != CAUSE), (CAUSE, _on_its_way(it, cause)))
    if it.guarded:
        handling.raise_to_handler(it, cls, args, named)
    handling.note_raise(it)
    if not named:
        emit_raise(it, cls, args)
        raise needs.Diverges
    keywords = V.Tuple(tuple(V.Tuple((V.Known(k), v)) for k, v in named if k != CAUSE))
    given: list[V.Value] = [V.Known(cls), V.Tuple(tuple(args)), keywords]
    from_cause = dict(named).get(CAUSE)
    if isinstance(from_cause, V.Raised):
        theirs = tuple(V.Tuple((V.Known(k), v)) for k, v in from_cause.keywords if k != CAUSE)
        given += [V.Known(from_cause.cls), V.Tuple(from_cause.args), V.Tuple(theirs)]
        host.call(it, _raise_from, given)
    else:
        host.call(it, _raise, given)
    raise needs.Diverges


def _on_its_way(it: Interpreter, exception: V.Value) -> V.Raised:
    return V.Raised(*parts_of(it, exception))


def parts_of(
    it: Interpreter, exception: V.Value
) -> tuple[type[BaseException], tuple[V.Value, ...], tuple[tuple[str, V.Value], ...]]:
    """Class, arguments and keyword arguments (pairs) of what stands behind `raise`."""
    match exception:
        case V.Known(cls) if isinstance(cls, type) and issubclass(cls, BaseException):
            return cls, (), ()
        case V.Known(error) if isinstance(error, BaseException):
            return type(error), tuple(map(V.Known, error.args)), ()
        case V.Ref(root, cls) if cls is not None and issubclass(cls, BaseException):
            content = it.content(root)
            if MADE not in content:
                raise it.failure(
                    errors.UnsupportedOperationError,
                    f"this {cls.__name__} was made outside of the compiled function, which cannot "
                    "raise it", hints=(f"make it where it is raised: raise {cls.__name__}(...)",),
                )
            own, pairs = content[MADE].items
            return cls, own.items, tuple((p.items[0].value, p.items[1]) for p in pairs.items)
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


def raise_where(it: Interpreter, test: Atom, cls: type, *args: V.Value) -> None:
    """Emit the raising of `cls(*args)` where the running program finds `test` true."""
    from pyrelay.infer.flow.control import branch

    def complain() -> list[V.Value]:
        emit_raise(it, cls, args)
        raise needs.Diverges

    branch(it, test, complain, list)


def emit_raise(it: Interpreter, cls: type, args: Sequence[V.Value]) -> None:
    """Emit the raising of `cls(*args)`. In the body of a `try`, raises Raises."""
    if it.guarded:
        handling.raise_to_handler(it, cls, args)
    handling.note_raise(it)
    for k, arg in enumerate(args):
        if (several := _cases(it, arg)) is not None:
            *others, last = several.alive
            given = {i: (*args[:k], several.cases[i], *args[k + 1 :]) for i in several.alive}
            for i in others:
                chosen = it.builder.call(OPS["equal"], several.tag, i)
                raise_where(it, chosen.atom, cls, *given[i])
            emit_raise(it, cls, given[last])
            return
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


def _cases(it: Interpreter, arg: V.Value) -> V.Union | None:
    """An argument as one of a few cases, each of which op `raise` carries as what it is."""
    if isinstance(arg, V.Scalar) and arg.kinds:
        return kinds.told_apart(it, arg)
    return arg if isinstance(arg, V.Union) and len(arg.alive) <= _MOST_CASES else None


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
    if type(arg) is V.Tuple and arg.cls is None:
        if any(isinstance(item, V.Scalar) and item.kinds for item in arg.items):
            return None
        parts = [_argument(item, numbers) for item in arg.items]
        return None if None in parts else ("tuple", *parts)
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
        case V.Text(function, (code,)) if function is chr:
            return _number(code, "", "c", numbers)
    return None


def _number(
    number: V.Value, conversion: str, spec: str, numbers: list[V.Value]
) -> list[Any] | None:
    ty = V.number_type(number)
    if ty is None or (isinstance(number, V.Scalar) and number.kinds):
        return None
    numbers.append(number)
    at = len(numbers) - 1
    plain = ty.weak and not conversion and not spec
    return [at if plain else (types.scalar_kind(ty), at, conversion, spec)]


def exception_name(cls: type) -> Any:
    """Builtins by name; other classes by the class itself."""
    return cls.__name__ if getattr(builtins, cls.__name__, None) is cls else cls
