"""docs/language.md is what the compiler does: every row is run, all syntax is in some row."""

from __future__ import annotations

import ast
import copy
import inspect
import re
import textwrap
import warnings
from pathlib import Path

import pytest

import pyrelay
from pyrelay.frontend.subset import LANGUAGE, Refused
from pyrelay.infer.names.handlers import known_names
from tests.infer.running import assert_same
from tests.language import constructs  # noqa: F401  fills the tables
from tests.language.rows import ROWS, SECTIONS, Row

DOCUMENT = Path(__file__).parents[2] / "docs" / "language.md"

#: Syntax that no row can hold: roots of other trees, and what Python 3.11 cannot read.
NOT_SHOWN = {
    "Module", "Interactive", "Expression", "FunctionType", "TypeIgnore", "TypeAlias", "TypeVar",
    "ParamSpec", "TypeVarTuple", "TemplateStr", "Interpolation",
}


def text_of(row: Row) -> str:
    """The function of a row without its decorator."""
    lines = textwrap.dedent(inspect.getsource(row.function)).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(("def ", "async def ")))
    return "\n".join(line.split("  # noqa")[0] for line in lines[start:])


def refusal(row: Row) -> pyrelay.PyrelayError:
    """The error of a row that is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(pyrelay.PyrelayError) as caught:
            pyrelay.jit(row.function)(*copy.deepcopy(row.arguments))
    return caught.value


@pytest.mark.parametrize("row", [r for r in ROWS if r.works], ids=lambda r: r.function.__name__)
def test_what_is_said_to_compile_does_what_python_does(row: Row) -> None:
    wanted, got = copy.deepcopy(row.arguments), copy.deepcopy(row.arguments)
    assert_same(pyrelay.jit(row.function)(*got), row.function(*wanted))
    assert_same(got, wanted, "arguments")


def test_all_syntax_is_shown_as_compiled_or_as_refused() -> None:
    shown = {
        works: {
            type(node).__name__
            for row in ROWS if row.works is works for node in ast.walk(ast.parse(text_of(row)))
        }
        for works in (True, False)
    }
    for name, treated in LANGUAGE.items():
        if name not in NOT_SHOWN:
            refused = isinstance(treated, Refused)
            assert name in shown[False] or (not refused and name in shown[True]), name


def test_the_document_is_as_generated(request: pytest.FixtureRequest) -> None:
    text = document()
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(text, encoding="utf-8")
    written = DOCUMENT.read_text(encoding="utf-8")
    rows, _, names = written.partition(NAMES)
    assert rows == text.partition(NAMES)[0], "run pytest tests/language --update-golden"
    missing = set(re.findall(r"`(\w+)`", names)) - set(re.findall(r"`(\w+)`", text))
    assert not missing, f"the document names {missing}, which are known no more"


def document() -> str:
    """The text of docs/language.md."""
    parts = [HEAD]
    for section in SECTIONS:
        parts.append(f"## {section.title}\n" + (f"\n{section.text}\n" if section.text else ""))
        parts += [_shown(row) for row in ROWS if row.section == section.title]
    parts.append(_syntax())
    parts.append(_names())
    return "\n".join(parts)


def _shown(row: Row) -> str:
    code = f"```python\n{text_of(row)}\n```\n"
    if row.works:
        return f"**{row.title}**\n\n{code}"
    error = refusal(row)
    said = [f"Refused: {error.message}"]
    said += [f"{label}." for _, label in ((error.span, error.label), *error.related) if label]
    said += [f"Instead: {hint}." for hint in error.hints]
    return f"**{row.title}**\n\n{code}\n{' '.join(dict.fromkeys(said))}\n"


def _syntax() -> str:
    """The refused rows of the frontend's own table."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, treated in LANGUAGE.items():
        if isinstance(treated, Refused):
            rows.setdefault((treated.word, treated.instead), []).append(name)
    lines = ["| construct | in Python's `ast` | instead |", "|---|---|---|"]
    for (word, instead), names in rows.items():
        lines.append(f"| {word} | `{'`, `'.join(names)}` | {instead} |")
    return "## Syntax that is refused\n\n" + "\n".join(lines) + "\n"


def _names() -> str:
    """The functions that have a meaning of their own in compiled code."""
    groups: dict[str, list[str]] = {}
    for name in known_names():
        module, _, own = name.rpartition(".")
        if not own.startswith("_") and not module.startswith(("pyrelay.", "ml_dtypes")):
            groups.setdefault(module.lstrip("_") or "builtins", []).append(own)
    lines = [
        f"**{module}**: {', '.join(f'`{n}`' for n in sorted(set(names)))}\n"
        for module, names in sorted(groups.items(), key=lambda g: g[0])
    ]
    return (
        f"{NAMES}\n\nFunctions written in Python are compiled like your own. These, which are not, "
        "are known by name:\n\n" + "\n".join(lines)
        + "\nFunctions that numba compiles (`numba.njit`, `numba.jit`, `numba.vectorize`, without "
        "declared types) are taken as the Python functions they are made of, and `numba.prange` as "
        "`range`.\n"
    )


NAMES = "## Names"

HEAD = """# The language

Written by `pytest tests/language --update-golden`; the rows are in `tests/language/constructs.py`.

`@pyrelay.jit` compiles functions written in the Python below, with plain Python's meaning: run the
function without `jit` (`f.py(...)`) to see what it should do. What is not compiled is refused with
a message at the line, never run differently. Every example here is compiled and compared with
Python, or seen to be refused, by the tests.
"""
