"""The source of a function object: its syntax tree, and the text that spans point into.

In: a Python function. Out: the tree of the `def` or `lambda` it was made from, parsed from the
whole file (so that nothing is dedented and columns are those of the file), and its `SourceText`.

A function is found by the position of its code object, never by its text: `co_firstlineno` is
the line of the first decorator, or of `def` or `lambda`; several lambdas on one line are told apart
by the columns of their instructions (PEP 657). What is found is compiled and compared with the
function's own code, so that an edited file is noticed and not silently compiled in its new form.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import inspect
import linecache
import os
import threading
import time
import types
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from pyrelay.errors import SourceText, SourceUnavailableError, Span
from pyrelay.python_trees import MADE, children
from pyrelay.records import dataclass

FunctionNode = ast.FunctionDef | ast.Lambda
_Identity = tuple[str, int, bytes, tuple[str, ...], tuple[str, ...]]
Carried = tuple[dict[_Identity, str], dict[str, list[str]]]

#: Nodes whose bodies become code objects of the kind we look for, and those we only pass through.
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag
_LOADED_AT = time.time()
_FILES_KEPT = 32
_VERSIONS_KEPT = 16


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSource:
    """Where a function stands: its node, its text, and the class it is written in, if any."""

    node: FunctionNode
    text: SourceText
    class_name: str | None
    #: Characters before each byte column, for the lines that are not ASCII.
    _columns: dict[int, list[int]] = field(default_factory=dict)

    def span(self, node: ast.AST, function: str) -> Span:
        """The stretch of text of a node with a position. `function` is shown with it."""
        line, start, end_line, end = position(node)
        return Span(
            self.text, line, self._column(line, start), end_line, self._column(end_line, end),
            function,
        )

    def first_line(self, node: ast.AST, function: str) -> Span:
        """The first line of a statement, without what is left and right of it."""
        whole = self.span(node, function)
        end = len((self.text.at(whole.line) or "").rstrip())
        if whole.line == whole.end_line:
            end = whole.end_column
        return Span(self.text, whole.line, whole.column, whole.line, end, function)

    def header(self, node: ast.AST, last: ast.AST, function: str) -> Span:
        """From the start of a statement to the end of `last`, which stands in its first line."""
        whole, end = self.span(node, function), self.span(last, function)
        return Span(
            self.text, whole.line, whole.column, end.end_line, end.end_column, function
        )

    def _column(self, line: int, byte: int) -> int:
        """A column in characters from one in bytes of UTF-8, as `ast` counts."""
        text = self.text.at(line) or ""
        if text.isascii():
            return byte
        return len(text.encode()[:byte].decode(errors="ignore"))


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    """A parsed file: its lines, and its functions by (name, first line)."""

    lines: tuple[str, ...]
    text: str
    shift: int  # what to add to a line number of `text`
    functions: dict[tuple[str, int], list[tuple[FunctionNode, str | None]]]
    #: Code objects of the compiled file by future flags and by whether each statement was compiled
    #: alone, made when first asked for.
    codes: dict[tuple[int, bool], dict[tuple[str, int], list[types.CodeType]]]


def position(node: ast.AST) -> tuple[int, int, int, int]:
    """Line, column, end line, end column of a node that has a place; columns are in bytes."""
    place: Any = node
    return place.lineno, place.col_offset, place.end_lineno, place.end_col_offset


#: By file name, first line (0 for a whole file) and text.
_files: OrderedDict[tuple[str, int, int], _File] = OrderedDict()
#: By file name: what `linecache` had when functions of the file were defined, newest first.
_kept: dict[str, list[list[str]]] = {}
#: By what is the same in every process of a function's code: its file name, of functions that came
#: from another process without one.
_named: dict[_Identity, str] = {}
_lock = threading.Lock()


def of(function: types.FunctionType) -> FunctionSource:
    """The source of a function, exactly as given: nothing is unwrapped.

    Raises SourceUnavailableError if there is no text, or if the text is not that of the function.
    """
    made = function.__dict__.get(MADE)
    if isinstance(made, FunctionSource):
        return made
    given, known = function.__code__, False
    name = _named.get(_identity(given))
    for code in (given, given.replace(co_filename=name)) if name else (given,):
        for lines in _versions(function, code.co_filename):
            found = _find(code, _split(lines)) if lines else None
            if found is not None:
                return found
            known = known or bool(lines)
    raise _changed(given) if known else _unavailable(given)


def give(
    made: types.FunctionType, node: FunctionNode, source: FunctionSource,
    class_name: str | None = None,
) -> types.FunctionType:
    """A function that was made of a tree, whose nodes have places in the text of another one.

    class_name: that of the class it is written in, if that is not the other one's.
    """
    made.__dict__[MADE] = FunctionSource(node, source.text, class_name or source.class_name)
    return made


def keep(function: types.FunctionType) -> None:
    """Keep the text of the function's file as it is now, so that a later edit does not matter.

    For the moment a function is defined; all functions of its file profit.
    """
    name = function.__code__.co_filename
    linecache.checkcache(name)
    keep_text(name, _cached_lines(function, name))


def keep_text(name: str, lines: list[str]) -> None:
    """Keep a text of a file or cell."""
    with _lock:
        versions = _kept.setdefault(name, [])
        if lines and not any(lines is known for known in versions):
            versions.insert(0, lines)
            del versions[_VERSIONS_KEPT:]


def carried(function: types.FunctionType) -> Carried:
    """What goes along with a function to another process, of all functions that it may call too:
    the names of their files, which cloudpickle 3.1.3 leaves away, and the lines of notebook cells,
    which nobody else can read, by name."""
    names: dict[_Identity, str] = {}
    texts: dict[str, list[str]] = {}
    pending, seen = [function], {id(function)}
    while pending:
        one = pending.pop()
        name = _named.get(_identity(one.__code__), one.__code__.co_filename)
        names[_identity(one.__code__)] = name
        if not os.path.exists(name):
            code = one.__code__.replace(co_filename=name)
            for lines in _versions(one, name):
                if lines and _find(code, _split(lines)) is not None:
                    texts[name] = lines
        for value in _read_by(one):
            while hasattr(value, "__pyrelay__"):
                value = value.__pyrelay__[1]
            if isinstance(value, types.FunctionType) and id(value) not in seen:
                seen.add(id(value))
                pending.append(value)
    return names, texts


def keep_carried(found: Carried) -> None:
    """Keep what came along with a function from another process."""
    names, texts = found
    _named.update(names)
    for name, lines in texts.items():
        keep_text(name, lines)


def _identity(code: types.CodeType) -> _Identity:
    return code.co_name, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames


def _read_by(function: types.FunctionType) -> Iterator[Any]:
    """The values of the globals and of the variables around that a function names."""
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        yield from (function.__globals__[n] for n in code.co_names if n in function.__globals__)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not set yet
            yield cell.cell_contents


def _versions(function: types.FunctionType, name: str) -> Iterator[list[str]]:
    """The texts that may be the function's, of the file or cell of this name: what is known now,
    read again, kept before."""
    yield _cached_lines(function, name)
    linecache.checkcache(name)
    yield _cached_lines(function, name)
    with _lock:
        versions = tuple(_kept.get(name, ()))
    yield from versions


def _cached_lines(function: types.FunctionType, name: str) -> list[str]:
    """The lines of the function's file or cell, `name`, as `linecache` has them; none without a
    text.

    Modules that are frozen into the interpreter (`collections.abc`, `os.path`) say in `__file__`
    where their text lies, if the installation has it.
    """
    lines = linecache.getlines(name, function.__globals__)
    if not lines and name.startswith("<frozen "):
        lines = linecache.getlines(str(function.__globals__.get("__file__", "")))
    if not lines and not os.path.isabs(name) and not name.startswith("<"):
        path = inspect.getsourcefile(function)
        lines = linecache.getlines(path, function.__globals__) if path else []
    return lines


def _split(lines: list[str]) -> tuple[str, ...]:
    """Lines without their ends.

    Entries made for notebook cells are split at form feeds too, which `ast` does not count.
    """
    text = "".join(lines)
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _find(code: types.CodeType, lines: tuple[str, ...]) -> FunctionSource | None:
    """The function in these lines whose code this is; None if it is not there."""
    file = _parsed(code, lines)
    if file is None:
        return None
    candidates = file.functions.get((code.co_name, code.co_firstlineno), [])
    if code.co_name == "<lambda>":
        candidates = _by_columns(code, candidates)
    if not candidates or not _is_current(code, file):
        return None
    node, class_name = candidates[0]
    first = code.co_firstlineno
    last = node.end_lineno or node.lineno
    text = SourceText(code.co_filename, lines[first - 1 : last], first)
    return FunctionSource(node, text, class_name)


def _parsed(code: types.CodeType, lines: tuple[str, ...]) -> _File | None:
    """The whole file parsed; where the whole is not Python any more, the function's own block."""
    for first in (0, code.co_firstlineno):
        key = (code.co_filename, first, hash(lines))
        with _lock:
            known = _files.get(key)
            if known is not None and known.lines == lines:
                _files.move_to_end(key)
                return known
    file = _parse("\n".join(lines) + "\n", lines, 0)
    key = (code.co_filename, 0, hash(lines))
    if file is None:
        file = _parse_block(lines, code.co_firstlineno)
        key = (code.co_filename, code.co_firstlineno, hash(lines))
    if file is not None:
        with _lock:
            _files[key] = file
            while len(_files) > _FILES_KEPT:
                _files.popitem(last=False)
    return file


def _parse_block(lines: tuple[str, ...], first: int) -> _File | None:
    """The function that begins at line `first`, from a file that is not Python as a whole."""
    try:
        block = inspect.getblock([line + "\n" for line in lines[first - 1 :]])
    except (SyntaxError, IndentationError):
        return None
    if block and block[0][:1].isspace():
        # Below `if` a block keeps its indentation, so its columns and long strings stay right.
        return _parse("if 1:\n" + "".join(block), lines, first - 2)
    return _parse("".join(block), lines, first - 1)


def _parse(text: str, lines: tuple[str, ...], shift: int) -> _File | None:
    """A file or block parsed, with its functions filed by name and first line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given once already, when Python compiled the text
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return None
    if shift:
        ast.increment_lineno(tree, shift)
    functions: dict[tuple[str, int], list[tuple[FunctionNode, str | None]]] = {}
    for node, class_name in _functions(tree):
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        functions.setdefault((name, first), []).append((node, class_name))
    return _File(lines, text, shift, functions, {})


def _functions(tree: ast.AST) -> Iterator[tuple[FunctionNode, str | None]]:
    """Every function in a tree with the name of the class that mangles its private names."""
    pending: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while pending:
        node, class_name = pending.pop()
        if isinstance(node, _FUNCTIONS):
            yield node, class_name  # type: ignore[misc]  # `subset` refuses the async ones
        inside = node.name if isinstance(node, ast.ClassDef) else class_name
        pending += [(child, inside) for child in children(node)]


def _by_columns(
    code: types.CodeType, candidates: list[tuple[FunctionNode, str | None]]
) -> list[tuple[FunctionNode, str | None]]:
    """The innermost of the lambdas whose bodies hold every instruction of the code."""
    places = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and column is not None
        and end_line is not None and end_column is not None and column != end_column
    ]
    holding = []
    for node, class_name in candidates:
        body = node.body
        assert isinstance(body, ast.expr)
        start = (body.lineno, body.col_offset)
        end = (body.end_lineno or 0, body.end_col_offset or 0)
        if all(start <= first and last <= end for first, last in places):
            holding.append((start, node, class_name))
    if not places and len(candidates) > 1:
        return _by_code(code, candidates)
    return [(n, c) for _, n, c in sorted(holding, key=lambda h: h[0], reverse=True)]


def _by_code(
    code: types.CodeType, candidates: list[tuple[FunctionNode, str | None]]
) -> list[tuple[FunctionNode, str | None]]:
    """The lambdas that compile to this code, for code without columns.

    Python 3.12 gives none to a lambda that returns a constant, -X no_debug_ranges to nothing.
    """
    found: list[tuple[FunctionNode, str | None]] = []
    for node, class_name in candidates:
        assert isinstance(node, ast.Lambda)
        alone = compile(ast.Expression(node), code.co_filename, "eval")
        made = next(c for c in alone.co_consts if isinstance(c, types.CodeType))
        if _same(code, made):
            found.append((node, class_name))
    return found


def _is_current(code: types.CodeType, file: _File) -> bool:
    """Whether the text compiles to this code.

    Tools that rewrite assertions or add checks on import (pytest, typeguard) change the code but
    not the file: a file as old as this process is taken for the text of what was loaded from it,
    as long as every name in the text is one of the code's.
    """
    compiled = _compiled(code, file)
    if any(_same(code, other) for other in compiled):
        return True
    # IPython compiles a cell statement by statement, and which names the same text imports
    # decides between two ways to call a method.
    if any(_same(code, other) for other in _compiled(code, file, alone=True)):
        return True
    try:
        untouched = os.stat(code.co_filename).st_mtime < _LOADED_AT
    except OSError:
        untouched = False
    return untouched and any(
        other.co_varnames[: _parameters(other)] == code.co_varnames[: _parameters(code)]
        and set(_names(other)) <= set(_names(code))
        for other in compiled
    )


def _parameters(code: types.CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount


def _names(code: types.CodeType) -> tuple[str, ...]:
    return code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars


def _compiled(code: types.CodeType, file: _File, alone: bool = False) -> list[types.CodeType]:
    """Code objects of that name and line which the text gives under the function's own flags.

    With `alone`, every statement of the text is compiled by itself.
    """
    flags = code.co_flags & FUTURE_FLAGS
    by_place = file.codes.get((flags, alone))
    if by_place is None:
        # Notebook cells may await at the top, which does not change functions in them.
        flags_of_cell = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                parts: list[Any] = [file.text]
                if alone:
                    parts = [ast.Module([s], []) for s in ast.parse(file.text).body]
                pending = [
                    compile(part, code.co_filename, "exec", flags_of_cell, True) for part in parts
                ]
            except (SyntaxError, ValueError):
                return []  # a block alone, with a `nonlocal` whose variable is outside of it
        by_place = {}
        while pending:
            one = pending.pop()
            by_place.setdefault((one.co_name, one.co_firstlineno + file.shift), []).append(one)
            pending += [c for c in one.co_consts if isinstance(c, types.CodeType)]
        file.codes[flags, alone] = by_place
    return by_place.get((code.co_name, code.co_firstlineno), [])


def _same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two code objects do the same; where they stand in their files does not count."""
    pending = [(a, b)]
    while pending:
        x, y = pending.pop()
        if (
            x.co_code != y.co_code
            or x.co_names != y.co_names
            or x.co_varnames != y.co_varnames
            or x.co_cellvars != y.co_cellvars
            or _parameters(x) != _parameters(y)
            or x.co_posonlyargcount != y.co_posonlyargcount
            or len(x.co_consts) != len(y.co_consts)
        ):
            return False
        for p, q in zip(x.co_consts, y.co_consts, strict=True):
            if isinstance(p, types.CodeType) and isinstance(q, types.CodeType):
                pending.append((p, q))
            elif type(p) is not type(q):
                return False
            elif isinstance(p, frozenset):
                if p != q:
                    return False
            elif repr(p) != repr(q):  # tells 0.0 from -0.0
                return False
    return True


def _unavailable(code: types.CodeType) -> SourceUnavailableError:
    """The error for a function of which no text is known."""
    name, file = code.co_name, code.co_filename
    if file == "<stdin>":
        why = "This Python prompt does not keep what is typed."
        hint = "define the function in a file, in a notebook or in IPython"
    elif file.startswith("<"):
        why = f"It was made by exec or eval of a string ({file}), which Python does not keep."
        hint = (
            "before exec, put the text into linecache.cache[filename] = "
            "(len(text), None, text.splitlines(True), filename)"
        )
    else:
        why = f"The file {file} cannot be read."
        hint = "ship the .py file beside the compiled one: pyrelay compiles from source"
    return SourceUnavailableError(
        f"The source of '{name}' is not available.", notes=(why,), hints=(hint,)
    )


def _changed(code: types.CodeType) -> SourceUnavailableError:
    """The error for a function whose text is now another one."""
    return SourceUnavailableError(
        f"The source of '{code.co_name}' has changed since the function was defined.",
        notes=(f"{code.co_filename}, line {code.co_firstlineno}, now holds other code.",),
        hints=("reload the module, or run the cell again, and use the function it then defines",),
    )
