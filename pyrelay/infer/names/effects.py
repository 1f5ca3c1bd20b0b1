"""Functions of Python that do something besides computing: output, warnings, logging, clocks.

Each becomes a call of the very function, at its place in the program.
"""

from __future__ import annotations

import builtins
import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import host
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.objects import is_writer
from pyrelay.ir import types
from pyrelay.records import dataclass
from pyrelay.scoping import scope
from pyrelay.tracebacks import PACKAGE_DIRECTORY


@keeps_unions
@handles(builtins.print)
def print_(
    it: Interpreter, *values: V.Value, sep: V.Value = V.NONE, end: V.Value = V.NONE,
    file: V.Value = V.NONE, flush: V.Value = V.Known(False),
) -> V.Value:
    """print(...): to the stream that Python's `sys` names when the program runs."""
    if not isinstance(file, V.Known):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"'print' of a compiled function cannot write to {V.describe(file)}",
            hints=("print to sys.stdout or sys.stderr, or return the text and write it outside",),
        )
    keywords = {"sep": sep, "end": end, "file": file, "flush": flush}
    return host.call(it, builtins.print, values, keywords)


@handles(warnings.warn)
def warn(
    it: Interpreter, message: V.Value, category: V.Value = V.NONE,
    stacklevel: V.Value = V.Known(1), source: V.Value = V.NONE,
) -> V.Value:
    """warnings.warn(...): for the line that `stacklevel` says, inside the program or outside."""
    level = it.static(stacklevel, "the stacklevel of a warning")
    here = [it.let.span if it.let else None, *(span for span, _ in reversed(it.calls))]
    spans = [span for span in here if span is not None]
    span = spans[level - 1] if 0 < level <= len(spans) else None
    place = None if span is None else (span.source.filename, span.line)
    namespace = it.frame.owner.__globals__ if it.frame.owner is not None else {}
    where = V.Known(_Place(place, level - len(spans), namespace))
    return host.call(it, _warn, (where, message, category))


def _done_by_the_host(function: Callable[..., Any]) -> None:
    @handles(function)
    def done(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        return host.call(it, function, args, keywords)


_catching: list[warnings.catch_warnings[None]] = []


def _catch(action: Any, category: Any) -> None:
    _catching.append(warnings.catch_warnings())
    _catching[-1].__enter__()
    if action is not None:
        warnings.simplefilter(action, category)


def _catch_no_more() -> None:
    _catching.pop().__exit__(None, None, None)


@contextlib.contextmanager
def _caught(action: Any, category: Any) -> Iterator[None]:
    _catch(action, category)
    try:
        yield
    finally:
        _catch_no_more()


for _effect in (_catch, _catch_no_more, warnings.simplefilter, warnings.filterwarnings):
    _done_by_the_host(_effect)


@handles(warnings.catch_warnings)
def catch_warnings(
    it: Interpreter, *, record: V.Value = V.Known(False), action: V.Value = V.NONE,
    category: V.Value = V.Known(Warning),
) -> V.Value:
    """warnings.catch_warnings(): the filters of before are those of afterwards."""
    if record != V.Known(False):
        raise it.failure(
            errors.UnsupportedOperationError,
            "warnings cannot be recorded inside a compiled function",
            hints=("call the compiled function in 'with warnings.catch_warnings(record=True)'",),
        )
    return call(it, V.Known(_caught), (action, category), {})


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where a warning belongs: a line, or so many frames outside of the compiled program."""

    line: tuple[str, int] | None
    outside: int
    namespace: dict[str, Any]


def _warn(where: _Place, message: Any, category: type[Warning] | None) -> None:
    """Issue a warning as if it came from the line where it belongs."""
    namespace, line = where.namespace, where.line
    if line is None:
        frame = sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(
            (PACKAGE_DIRECTORY, "<string>")
        ):
            frame = frame.f_back
        for _ in range(where.outside - 1):
            frame = frame.f_back or frame
        namespace, line = frame.f_globals, (frame.f_code.co_filename, frame.f_lineno)
    registry = namespace.setdefault("__warningregistry__", {})
    kind = type(message) if isinstance(message, Warning) else category or UserWarning
    name = namespace.get("__name__")
    warnings.warn_explicit(message, kind, *line, module=name, registry=registry)


@handles(np.errstate)
def errstate(it: Interpreter, **modes: V.Value) -> V.Value:
    """np.errstate(...): compiled code never warns, so only what would raise or call is refused."""
    return V.Known(np.errstate(**_modes(it, "np.errstate", modes)))


@handles(np.seterr)
def seterr(it: Interpreter, **modes: V.Value) -> V.Value:
    """np.seterr(...): likewise; what it was before, where nobody set it."""
    _modes(it, "np.seterr", modes)
    before = dict.fromkeys(("divide", "over", "under", "invalid"), "warn") | {"under": "ignore"}
    return it.new_ref("dict", {name: V.Known(mode) for name, mode in before.items()})


def _modes(it: Interpreter, name: str, modes: Mapping[str, V.Value]) -> dict[str, Any]:
    """What is done of each kind of error. Raises UnsupportedOperationError for more than warnings.
    """
    known = {kind: it.static(mode, f"the mode of {name}") for kind, mode in modes.items()}
    strict = [kind for kind, mode in known.items() if mode in ("raise", "call", "print", "log")]
    if strict:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{name}({strict[0]}={known[strict[0]]!r}) is not compiled: arithmetic on arrays "
            "goes on with inf and nan",
            hints=("test the result: if not np.all(np.isfinite(y)): raise ...",),
        )
    return known


@handles(scope)
def named_scope(it: Interpreter, name: V.Value) -> V.Value:
    """pyrelay.scope(name)."""
    return V.Known(scope(it.static(name, "the name of a scope")))


def _clock(function: Callable[[], Any], ty: types.TensorType) -> None:
    @handles(function)
    def read(it: Interpreter) -> V.Value:
        return host.call(it, function, result=ty)


for _name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
    _clock(getattr(time, _name), types.PY_FLOAT)
    _clock(getattr(time, f"{_name}_ns"), types.PY_INT)


@handles(time.sleep)
def sleep(it: Interpreter, seconds: V.Value) -> V.Value:
    """time.sleep(seconds)."""
    return host.call(it, time.sleep, (seconds,))


def _module_logging(function: Callable[..., Any]) -> None:
    @handles(function)
    def log(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        return host.call(it, function, args, keywords)


LOG_METHODS = ("debug", "info", "warning", "error", "critical", "log")

for _name in LOG_METHODS:
    _module_logging(getattr(logging, _name))


def bound_effect(method: Any) -> Callable[..., V.Value] | None:
    """The handler of a method that writes, of a logger or a stream; None for another."""
    owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    if not is_writer(owner):
        return None
    wanted = LOG_METHODS if isinstance(owner, logging.Logger) else ("write", "flush")
    if name not in wanted:
        return None

    def call(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        result = types.PY_INT if name == "write" else None
        return host.call(it, method, args, keywords, result)

    return call
