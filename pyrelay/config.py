"""Settings: read once from PYRELAY_* variables, overridden for a stretch of code.

In: environment variables and `override(...)`. Out: `current()`, a frozen `Config`.

Every field of `Config` is one setting. Its variable is `PYRELAY_` and the name in capitals; what
it means stands in its metadata, and `table()` prints all of them. An override holds in the
`with` block only, in this thread only (a context variable), and nests.
"""

from __future__ import annotations

import contextvars
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from pyrelay.errors import ConfigError
from pyrelay.records import dataclass

__all__ = ["Config", "checked", "current", "from_environment", "override", "overriding", "table"]

STAGES = ("parse", "infer", "grad", "optimise", "fuse", "kernelise", "plan", "emit")
"""What PYRELAY_DUMP and `f.ir(stage=...)` accept."""

_SIZE_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _close(name: str, known: Iterable[str]) -> list[str]:
    import difflib

    return [f"did you mean {other}?" for other in difflib.get_close_matches(name, [*known], 1)]


def _flag(text: str) -> bool:
    """`1 true yes on` or `0 false no off`, in any case."""
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("use 1 or 0")


def _choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError("use one of " + ", ".join(words))
        return word

    return read


def _device(text: str) -> str:
    name, numbered, number = text.strip().lower().partition(":")
    if numbered and name == "cuda" and number.isdecimal():
        return f"{name}:{int(number)}"
    if numbered or name not in ("cpu", "cuda", "cuda_emulator"):
        raise ValueError("use one of cpu, cuda, cuda_emulator, or cuda:1 for a GPU by its number")
    return name


def _stages(text: str) -> tuple[str, ...]:
    """Stage names with commas between them; `all` stands for every one."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if names == ("all",):
        return STAGES
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        raise ValueError(f"no stage is called {unknown[0]!r}; use {', '.join(STAGES)} or all")
    return names


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError("use a number of at least 0")
    return number


def _bytes(text: str) -> int:
    """A number of bytes with an optional unit: `500MB`, `2GB`, `1048576`."""
    digits = text.strip().upper().rstrip("BKMGT")
    unit = text.strip().upper()[len(digits) :]
    if unit not in _SIZE_UNITS:
        raise ValueError("use a number of bytes such as 500MB or 2GB")
    try:
        size = float(digits)
    except ValueError:
        raise ValueError("use a number of bytes such as 500MB or 2GB") from None
    if not 0 <= size < float("inf"):
        raise ValueError("use a size of at least 0, such as 500MB")
    return int(size * _SIZE_UNITS[unit])


def _setting(default: Any, read: Callable[[str], Any], meaning: str) -> Any:
    return field(default=default, metadata={"read": read, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Config:
    """All settings at one moment; see the metadata of each field, or `table()`."""

    device: str = _setting(
        "cpu", _device,
        "where compiled code runs: cpu, cuda (cuda:1 for a GPU by its number), cuda_emulator "
        "(a GPU's code, on the CPU)",
    )
    num_threads: int = _setting(
        0, _count, "threads of the CPU pool, the caller's included; 0: the CPUs of this process"
    )
    compile_processes: int = _setting(
        0, _count, "processes, for a GPU threads, that compile a program's kernels, the caller's "
        "included; 0: the CPUs of this process, at most 4 processes",
    )
    interpret: bool = _setting(
        False, _flag, "run the typed program in the reference interpreter: slow, for finding faults"
    )
    matmul_precision: str = _setting(
        "highest", _choice("highest", "tf32", "bf16"),
        "how a GPU multiplies float32 matrices: highest, or rounded to tf32 or bf16 for speed",
    )
    verify: bool = _setting(False, _flag, "check the program's invariants after every stage")
    dump: tuple[str, ...] = _setting(
        (),
        _stages,
        "stages to print while compiling, with commas: " + ",".join(STAGES) + ", or all",
    )
    dump_dir: str = _setting("", str, "directory that dumps go to; empty: standard error")
    time: bool = _setting(False, _flag, "print how long each stage and pass took")
    cache: bool = _setting(True, _flag, "keep compiled programs on disk")
    cache_dir: str = _setting(
        "", str, "directory of the disk cache; empty: the user's cache directory"
    )
    cache_size: int = _setting(
        10**9, _bytes, "bytes the disk cache may hold before its oldest files go, such as 2GB"
    )
    unroll_limit: int = _setting(
        256, _count, "most rounds a loop may be unrolled to when its index has to be known"
    )
    traceback: str = _setting(
        "short", _choice("short", "full"), "short hides pyrelay's own frames, full shows them"
    )


def from_environment(environment: Mapping[str, str]) -> Config:
    """The settings that the PYRELAY_* variables of `environment` ask for.

    Raises ConfigError for a value that a setting cannot have and for a PYRELAY_ variable that is
    no setting, so that a misspelt name is not ignored in silence.
    """
    fields = {"PYRELAY_" + f.name.upper(): f for f in dataclasses.fields(Config)}
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith("PYRELAY_"):
            continue
        if variable not in fields:
            raise ConfigError(
                f"the environment sets {variable}, which is no setting of pyrelay.",
                notes=["settings are " + ", ".join(sorted(fields)) + "."],
                hints=_close(variable, fields),
            )
        setting = fields[variable]
        try:
            values[setting.name] = setting.metadata["read"](text)
        except ValueError as reason:
            raise ConfigError(
                f"{variable}={text!r} cannot be used: {_reason(reason)}.",
                notes=[f"it means: {setting.metadata['meaning']}."],
            ) from None
    return Config(**values)


overridden: contextvars.ContextVar[Config | None] = contextvars.ContextVar(
    "pyrelay_config", default=None
)
"""Holds the settings of the innermost override in force here."""
overriding = overridden.get
"""The settings of the innermost override in force here, None outside of all overrides."""

overrides: list[Config] = []
"""Not empty once settings were overridden anywhere in this process: until then none are here."""

_process_wide: Config | None = None


def current() -> Config:
    """The settings in force here: the innermost override, or else those of the environment."""
    global _process_wide
    inner = overridden.get()
    if inner is not None:
        return inner
    if _process_wide is None:
        _process_wide = from_environment(os.environ)
    return _process_wide


@contextmanager
def override(**settings: Any) -> Iterator[Config]:
    """Use other settings inside a `with` block, in this thread: `override(device="cuda")`.

    Values may be given as they stand in `Config` or as text, as in the environment. Raises
    ConfigError for an unknown name or a value the setting cannot have.
    """
    values = {name: checked(name, value) for name, value in settings.items()}
    chosen = dataclasses.replace(current(), **values)
    if not overrides:
        overrides.append(chosen)
    token = overridden.set(chosen)
    try:
        yield chosen
    finally:
        overridden.reset(token)


def checked(name: str, value: Any) -> Any:
    """`value` in the form the setting holds, read as the environment's text would be.

    Raises ConfigError for an unknown name or a value the setting cannot have.
    """
    fields = {f.name: f for f in dataclasses.fields(Config)}
    if name not in fields:
        raise ConfigError(
            f"{name!r} is no setting of pyrelay.",
            notes=["settings are " + ", ".join(sorted(fields)) + "."],
            hints=_close(name, fields),
        )
    setting = fields[name]
    text = ",".join(value) if isinstance(value, tuple) else value
    if isinstance(value, os.PathLike):
        text = os.fspath(value)
    if isinstance(value, bool | int) and isinstance(setting.default, int):
        text = str(int(value))
    try:
        if not isinstance(text, str):
            raise ValueError(f"use a value like {setting.default!r}")
        return setting.metadata["read"](text)
    except ValueError as reason:
        raise ConfigError(
            f"{setting.name}={value!r} cannot be used: {_reason(reason)}.",
            notes=[f"it means: {setting.metadata['meaning']}."],
        ) from None


def _reason(error: ValueError) -> str:
    """What to say of a value that did not read; Python's own words for int() are not helpful."""
    text = str(error)
    return "use a whole number" if text.startswith("invalid literal") else text


def table() -> str:
    """All settings, one line each: variable, present value, meaning."""
    now = current()
    rows = [
        ("PYRELAY_" + f.name.upper(), _shown(getattr(now, f.name)), str(f.metadata["meaning"]))
        for f in dataclasses.fields(Config)
    ]
    widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join(value) or "-"
    return str(value) if value != "" else "-"
