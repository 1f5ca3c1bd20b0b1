"""Which choices a program gets: those of a trial, those that were kept, else the defaults.

In: a program, and its plan. Out: its `Choices`, and its plan as chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from pyrelay.devices import cache
from pyrelay.devices.choices import ALONE, DEFAULT, PLANNED, Choices, from_text
from pyrelay.ir.digest import digest
from pyrelay.ir.nodes import Module
from pyrelay.lower.planning.instructions import Immediate, Instruction, Launch, Parts, Plan
from pyrelay.records import dataclass

_KIND = "choices"  # in the disk cache
_kept: dict[str, Choices] = {}


@dataclass(slots=True)
class Trial:
    """A program being compiled to be measured: the key of the program and its plan, as texts, are
    noted when they are known."""

    choices: Choices
    key: str = ""
    plan: str = ""


_trial: ContextVar[Trial | None] = ContextVar("trial", default=None)


@contextmanager
def choosing(choices: Choices) -> Iterator[Trial]:
    """Compile what is compiled in this context in one way."""
    trial = Trial(choices)
    token = _trial.set(trial)
    try:
        yield trial
    finally:
        _trial.reset(token)


def chosen(module: Module) -> Choices:
    """The choices for a program: those of a trial, those that are kept, else the defaults."""
    trial = _trial.get()
    if trial is None and not _kept and cache.current().is_empty(_KIND):
        return DEFAULT
    key = _key(module)
    if trial is not None:
        trial.key = key
        return trial.choices
    if key and key not in _kept:
        found = cache.current().get(_KIND, key)
        _kept[key] = (from_text(found.decode()) if found else None) or DEFAULT
    return _kept.get(key, DEFAULT)


def keep(key: str, choices: Choices) -> None:
    """Choose so for a program from now on, here and in later processes."""
    _kept[key] = choices
    cache.current().put(_KIND, key, choices.to_text().encode())


def _key(module: Module) -> str:
    """A program on this processor; "" for one that means something in this process only."""
    import llvmlite.binding as llvm

    try:
        text = f"{digest(module)} {llvm.get_host_cpu_name()}"
    except TypeError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def as_chosen(made: Plan, choices: Choices) -> Plan:
    """A plan whose launches are shared as chosen."""
    trial = _trial.get()
    if choices.launches != PLANNED:
        made = replace(made, functions=tuple(
            replace(f, code=tuple(_shared(i, choices.launches) for i in f.code))
            for f in made.functions
        ))  # fmt: skip
    if trial is not None:
        trial.plan = repr((made.functions, [kernel.source for kernel in made.kernels]))
    return made


def _shared(instruction: Instruction, launches: str) -> Instruction:
    if isinstance(instruction, Parts) and launches == ALONE:
        return replace(instruction, work=Immediate(0))
    if not isinstance(instruction, Launch):
        return instruction
    if launches == ALONE:
        return replace(instruction, serial=True)
    return replace(instruction, evenly=True)
