"""What goes wrong, said in the user's words at the user's line.

In: an exception class, a sentence, and spans of the user's source. Out: an exception whose text is

    pyrelay.ShapeError: '*' cannot combine f32[4, 3] and f32[4].
      File "model.py", line 12, in loss
      12 |     h = tanh(x * w + c)
         |              ^ f32[4, 3]
         |                  - f32[4]
      Note: shapes align from the right; 3 and 4 differ in the last place.
      Hint: write 'w[:, None]' to align it with the first axis.
      Called from train.py, line 40: step(x: f32[4, 3], w: f32[4])

Two kinds of exception leave the compiler:

* `PyrelayError` and its family, for what is found while compiling. Each is also the builtin that
  plain NumPy code would raise in its place, so `except ValueError` keeps working.
* plain builtins and the user's own classes, for what is found while the compiled code runs
  (`runtime_error`, `locate`): the class and `str(error)` are exactly Python's, and the excerpt
  is a note (PEP 678), which every traceback shows.

`str(error)` leaves out the class name, since a traceback prints it in front; `render` puts it
there. Laying marks under wide and combining characters follows Unicode Annex 11 (East Asian Width).
"""

from __future__ import annotations

import builtins
import os
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from pyrelay.records import dataclass

__all__ = [
    "AliasError",
    "AttributeMissingError",
    "ConfigError",
    "DeviceError",
    "GradientError",
    "IndexRangeError",
    "InvalidValueError",
    "InvariantError",
    "KeyMissingError",
    "PyrelayError",
    "RecursionTypeError",
    "ShapeError",
    "SignatureError",
    "SourceText",
    "SourceUnavailableError",
    "Span",
    "StaticValueError",
    "TextFormatError",
    "TypeMismatchError",
    "UnboundVariableError",
    "UndefinedNameError",
    "UnsupportedOperationError",
    "UnsupportedSyntaxError",
    "locate",
    "render",
    "runtime_error",
]

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_TAB_WIDTH = 4
_LONGEST_EXCERPT = 6
_MOST_CALLS_SHOWN = 8

E = TypeVar("E", bound=BaseException)


@dataclass(frozen=True, slots=True, eq=False)
class SourceText:
    """The text of one function as it stands in its file: never dedented, compared by identity.

    `lines[0]` is line `first_line` (1-based) of `filename`; lines carry no line end.
    """

    filename: str
    lines: tuple[str, ...]
    first_line: int = 1

    @property
    def is_library(self) -> bool:
        """Whether this is pyrelay's own text, which users do not know."""
        return self.filename.startswith(_PACKAGE)

    def at(self, line: int) -> str | None:
        """The text of line `line` of the file, or None where it lies outside this text."""
        index = line - self.first_line
        return self.lines[index] if 0 <= index < len(self.lines) else None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source: lines 1-based in the file, columns 0-based in characters (not bytes).

    The end column is exclusive. `function` is the name shown after "in"; "" shows none. `scope` has
    the names of the `pyrelay.scope` blocks around it, outermost first, joined by "/".
    """

    source: SourceText
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""
    scope: str = ""

    def text(self) -> str:
        """The characters the span covers, its lines joined by newlines."""
        pieces: list[str] = []
        for line in range(self.line, self.end_line + 1):
            whole = self.source.at(line) or ""
            end = self.end_column if line == self.end_line else len(whole)
            pieces.append(whole[self.column if line == self.line else 0 : end])
        return "\n".join(pieces)


class PyrelayError(Exception):
    """Base of everything pyrelay raises about a program.

    message: one sentence in the user's words, without a span in it.
    span, label: the place at fault (carets) and what to say beside the carets, on one line.
    related: other places that take part, each with its label (dashes).
    notes, hints: why it is so, and what to write instead; one sentence each.
    calls: how the program got there, innermost call first: (span of the call, the call as text).
    """

    __module__ = "pyrelay"  # tracebacks name the class where users find it

    code: ClassVar[str] = "error"
    related_mark: ClassVar[str] = "-"
    endless = False  # whether ever more would be made of what is known
    costly = False  # or so much that another way is tried first
    unknown: Any = None  # the number that had to be known, if that is why (infer/number_sources)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__ == __name__:
            cls.__module__ = PyrelayError.__module__

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        label: str | None = None,
        related: Sequence[tuple[Span, str]] = (),
        notes: Sequence[str] = (),
        hints: Sequence[str] = (),
        calls: Sequence[tuple[Span, str]] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.label = label
        self.related = tuple(related)
        self.notes = tuple(notes)
        self.hints = tuple(hints)
        self.calls = tuple(calls)

    def __str__(self) -> str:
        marks = [_Mark(span, label, self.related_mark) for span, label in self.related]
        if self.span is not None:
            marks.insert(0, _Mark(self.span, self.label or "", "^"))
        return "\n".join(
            (
                self.message,
                *_excerpts(marks),
                *_remarks("Note", self.notes),
                *_remarks("Hint", self.hints),
                *_call_lines(self.calls),
            )
        )


class UnsupportedSyntaxError(PyrelayError, NotImplementedError):
    """Valid Python that pyrelay does not compile; lists every such construct of a function.

    Not a SyntaxError: the text is good Python, and tools print SyntaxErrors in a way of their own.
    """

    code = "unsupported-syntax"
    related_mark = "^"


class UnsupportedOperationError(PyrelayError, NotImplementedError):
    """A call of a function, or a use of an argument of one, that pyrelay does not compile."""

    code = "unsupported-operation"


class SourceUnavailableError(PyrelayError, OSError):
    """A function whose source cannot be read, so that there is nothing to compile."""

    code = "source-unavailable"


class UndefinedNameError(PyrelayError, NameError):
    """A global or builtin name that is not there."""

    code = "undefined-name"


class UnboundVariableError(PyrelayError, UnboundLocalError):
    """A local variable read where some path has not set it."""

    code = "unbound-variable"


class TypeMismatchError(PyrelayError, TypeError):
    """Values of types that do not go together, at an operation or where paths join."""

    code = "type-mismatch"


class ShapeError(PyrelayError, ValueError):
    """Arrays whose shapes do not fit an operation."""

    code = "shape"


class InvalidValueError(PyrelayError, ValueError):
    """A value of the right type that an operation cannot take: an axis, a count, an option."""

    code = "invalid-value"


class AttributeMissingError(PyrelayError, AttributeError):
    """An attribute that the object does not have."""

    code = "attribute-missing"


class KeyMissingError(PyrelayError, KeyError):
    """A key that a dict of the program does not have."""

    code = "key-missing"


class IndexRangeError(PyrelayError, IndexError):
    """An index known to be out of range before the program runs."""

    code = "index-range"


class SignatureError(PyrelayError, TypeError):
    """A call whose arguments do not fit the parameters of the function."""

    code = "signature"


class StaticValueError(PyrelayError, TypeError):
    """A value that has to be known when compiling (an axis, a rank, a key) and is not."""

    code = "static-value"


class AliasError(PyrelayError, ValueError):
    """Two names of one array, one of them written, in a way that cannot be followed."""

    code = "alias"


class GradientError(PyrelayError, TypeError):
    """A derivative that does not exist: an integer argument, a result that is not a scalar."""

    code = "gradient"


class RecursionTypeError(PyrelayError, RecursionError):
    """Recursion that has no base case, or whose arguments grow without end."""

    code = "recursion"


class TextFormatError(PyrelayError, ValueError):
    """Text that is not a program in the printed form of the intermediate representation."""

    code = "text-format"


class InvariantError(PyrelayError, AssertionError):
    """A stage of the compiler broke its own rule: a fault of pyrelay, never of the program."""

    code = "invariant"


class DeviceError(PyrelayError, RuntimeError):
    """A device that is missing, or that refused to load or run a kernel."""

    code = "device"


class ConfigError(PyrelayError, ValueError):
    """A setting that does not exist, or a value it cannot have."""

    code = "config"


def render(error: BaseException) -> str:
    """The whole text of an error, class name first, exactly as a traceback ends with it."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
    text = str(error)
    headline = f"{module}{kind.__qualname__}" + (f": {text}" if text else "")
    return "\n".join((headline, *getattr(error, "__notes__", ())))


def exception_of(
    exception: str | type[BaseException], parts: Sequence[Any], values: Sequence[Any]
) -> BaseException:
    """The exception that an instruction to raise describes.

    exception: the name of a builtin exception class, or a class. parts: its arguments. Mostly it
    has one, a text: then they are the pieces to join, strings and Python numbers of values (by
    position). Otherwise each is a tuple that makes one argument: ("text", piece, ...),
    ("constant", object), ("tuple", argument, ...), or (kind, number), a value as an object of its
    kind: int, float, bool, complex, "bool_" or a dtype's name. A piece of a "text" may also be a
    tuple (kind, number, conversion, format spec), as in an f-string. Without parts there is no
    argument.
    """
    cls = getattr(builtins, exception) if isinstance(exception, str) else exception
    if not any(isinstance(part, tuple) for part in parts):
        return cls(_joined(parts, values)) if parts else cls()
    return cls(*(_argument(part, values) for part in parts))


def _argument(part: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """One argument of an exception."""
    kind, *rest = part
    if kind == "text":
        return _joined(rest, values)
    if kind == "tuple":
        return tuple(_argument(item, values) for item in rest)
    return rest[0] if kind == "constant" else _of_kind(kind, values[rest[0]])


def _of_kind(kind: str, value: Any) -> Any:
    """A number as the object that plain Python would have: of a Python class, or a NumPy scalar."""
    if kind in ("int", "float", "bool", "complex"):
        return value
    import numpy as np

    return np.dtype(kind).type(value)


def _joined(pieces: Sequence[Any], values: Sequence[Any]) -> str:
    """The text of pieces; numbers look as in an f-string."""
    return "".join(_shown_piece(p, values) for p in pieces)


def _shown_piece(piece: str | int | tuple[str, int, str, str], values: Sequence[Any]) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, int):
        return format(values[piece])
    kind, number, conversion, spec = piece
    return formatted(_of_kind(kind, values[number]), conversion, spec)


def formatted(value: Any, conversion: str, spec: str) -> str:
    """What an f-string puts for `{value!conversion:spec}`; conversion "" is none."""
    conversions: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}
    return format(conversions[conversion](value) if conversion else value, spec)


def runtime_error(
    exception_class: type[E],
    message: str,
    *,
    span: Span | None = None,
    label: str | None = None,
    notes: Sequence[str] = (),
    calls: Sequence[tuple[Span, str]] = (),
) -> E:
    """An `exception_class(message)` for what a running program met, with its place attached."""
    return locate(exception_class(message), span=span, label=label, notes=notes, calls=calls)


def locate(
    error: E,
    *,
    span: Span | None,
    label: str | None = None,
    notes: Sequence[str] = (),
    calls: Sequence[tuple[Span, str]] = (),
) -> E:
    """Attach the place in the user's source to an exception of any class, and return it.

    The class, the arguments and `str(error)` stay as they are; the excerpt becomes a note and
    the span the attribute `span`. An exception that has its place already keeps the first one.
    """
    if isinstance(getattr(error, "span", None), Span):
        return error
    if isinstance(error, PyrelayError) and "\n" in error.message:
        return error  # raised when it is reached, it says where in its words
    marks = [] if span is None else [_Mark(span, label or "", "^")]
    lines = [*_excerpts(marks), *_remarks("Note", notes), *_call_lines(calls)]
    if lines:
        error.add_note("\n".join(lines))
    if span is not None:
        error.span = span  # type: ignore[attr-defined]
    return error


@dataclass(frozen=True, slots=True)
class _Mark:
    """A span to underline with `sign`, and the words to put behind the underline."""

    span: Span
    label: str
    sign: str


def _excerpts(marks: Sequence[_Mark]) -> list[str]:
    """Excerpts of all marks: one per line range, headed by its file where that changes.

    The first mark leads; marks on the same lines of the same function share its excerpt.
    """
    groups: dict[tuple[str, str, int, int], list[_Mark]] = {}
    for mark in marks:
        span = mark.span
        key = (span.source.filename, span.function, span.line, span.end_line)
        covering = (
            other
            for other in groups
            if other[:2] == key[:2] and other[2] <= key[2] and key[3] <= other[3]
        )
        groups.setdefault(next(covering, key), []).append(mark)
    width = max((len(str(key[3])) for key in groups), default=0)
    out: list[str] = []
    place: tuple[str, str] | None = None
    for (filename, function, line, _), group in groups.items():
        if (filename, function) != place:
            place = (filename, function)
            where = f", in {function}" if function else ""
            out.append(f'  File "{_display_path(filename)}", line {line}{where}')
        out += _excerpt(group, width)
    return out


def _excerpt(group: Sequence[_Mark], width: int) -> list[str]:
    """The lines the first mark covers, each followed by one underline per mark that touches it."""
    first = group[0].span
    shown = range(first.line, first.end_line + 1)
    skipped: range = range(0)
    if len(shown) > _LONGEST_EXCERPT:
        skipped = shown[_LONGEST_EXCERPT - 2 : -1]
    out: list[str] = []
    for line in shown:
        text = first.source.at(line)
        if text is None:
            continue
        if line in skipped:
            if line == skipped[0]:
                out.append(f"  {'':>{width}} | ...")
            continue
        out.append(f"  {line:>{width}} | {_expanded(text)}".rstrip())
        for mark in group:
            underline = _underline(mark, line, text)
            if underline:
                out.append(f"  {'':>{width}} | {underline}")
    return out


def _underline(mark: _Mark, line: int, text: str) -> str:
    """The row below `text` that marks the part of the span lying on `line`; "" for none."""
    span = mark.span
    if not span.line <= line <= span.end_line:
        return ""
    start = span.column if line == span.line else len(text) - len(text.lstrip())
    end = span.end_column if line == span.end_line else len(text.rstrip())
    if end <= start and line not in (span.line, span.end_line):
        return ""
    left = _columns(text[:start], 0)
    signs = mark.sign * max(1, _columns(text[start:end], left) - left)
    label = f" {mark.label}" if mark.label and line == span.end_line else ""
    return " " * left + signs + label


def _expanded(text: str) -> str:
    """`text` with each tab replaced by the spaces `_columns` counts for it."""
    first, *rest = text.split("\t")
    for piece in rest:
        column = _columns(first, 0)
        first += " " * (_TAB_WIDTH - column % _TAB_WIDTH) + piece
    return first


def _columns(text: str, start: int) -> int:
    """The terminal column reached after printing `text` from column `start`."""
    column = start
    for character in text:
        if character == "\t":
            column += _TAB_WIDTH - column % _TAB_WIDTH
        elif unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn"):
            continue
        else:
            column += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return column


def _remarks(kind: str, remarks: Iterable[str]) -> list[str]:
    """One entry per remark, the further lines of it aligned under the first."""
    margin = "\n" + " " * (len(kind) + 4)
    return [f"  {kind}: {remark.replace(chr(10), margin)}" for remark in remarks]


def _call_lines(calls: Sequence[tuple[Span, str]]) -> list[str]:
    """How the program got there; equal calls in a row are counted, a long list is cut."""
    runs: list[tuple[str, int]] = []
    for span, text in calls:
        line = f"  Called from {_display_path(span.source.filename)}, line {span.line}: {text}"
        if runs and runs[-1][0] == line:
            runs[-1] = (line, runs[-1][1] + 1)
        else:
            runs.append((line, 1))
    out = [line + (f" ({n} times)" if n > 1 else "") for line, n in runs[:_MOST_CALLS_SHOWN]]
    hidden = sum(n for _, n in runs[_MOST_CALLS_SHOWN:])
    if hidden:
        out.append(f"  ... and {hidden} more call{'s' if hidden > 1 else ''}")
    return out


def _display_path(filename: str) -> str:
    """The path relative to the working directory where the file lies below it, else as given."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:
        return filename
    return filename[len(here) :] if filename.startswith(here) else filename
