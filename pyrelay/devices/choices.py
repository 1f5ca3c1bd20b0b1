"""What can be chosen about the kernels of a program: block sizes of products, who shares a launch.

In: nothing, or a stored text. Out: `Choices`; the defaults are those of the model of a CPU with
caches of 32 KiB and 512 KiB. `pyrelay.tune` measures the others and stores what it finds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace
from typing import Any

from pyrelay.devices import cache
from pyrelay.ir.digest import digest
from pyrelay.ir.nodes import Module
from pyrelay.lower.instructions import Instruction, Launch, Plan
from pyrelay.records import dataclass

ALONE, EVENLY, PLANNED = "alone", "evenly", "planned"

#: The values of each choice, in the order in which they are tried.
VALUES: dict[str, tuple[Any, ...]] = {
    "launches": (PLANNED, EVENLY, ALONE),
    "depth": (256, 128, 384),
    "row_bytes": (2048, 1024),
    "band": (120, 48, 240),
    "targets": (64, 32, 128),
    "sources": (512, 256, 1024),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """One way to compile a program.

    launches   PLANNED: threads share what is long enough; EVENLY: in one part each; ALONE: nothing.
    depth      terms of a product's sums that are packed at a time.
    row_bytes  of a row of the right matrix that are packed at a time.
    band       rows of the left matrix that are packed at a time.
    targets, sources  rows and columns of a block of scores of attention.
    """

    launches: str = PLANNED
    depth: int = 256
    row_bytes: int = 2048
    band: int = 120
    targets: int = 64
    sources: int = 512

    def others(self, name: str) -> Iterator[Choices]:
        """The same with the other values of one choice."""
        for value in VALUES[name]:
            if value != getattr(self, name):
                yield replace(self, **{name: value})

    def to_text(self) -> str:
        """A text that `from_text` reads."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        changed = [
            f"{name}={value}" for name, value in asdict(self).items() if value != VALUES[name][0]
        ]
        return ", ".join(changed) or "the defaults"


DEFAULT = Choices()


def from_text(text: str) -> Choices | None:
    """The choices that a text holds; None if they are none that can be made."""
    try:
        found = json.loads(text)
        if all(found[name] in values for name, values in VALUES.items()):
            return Choices(**found)
    except (ValueError, KeyError, TypeError):
        pass
    return None


# -- which choices a program gets --------------------------------------------------------------

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
    trial, directory = _trial.get(), cache.current().path(_KIND, "")
    if trial is None and not _kept and not (directory is not None and directory.parent.exists()):
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
    if not isinstance(instruction, Launch):
        return instruction
    if launches == ALONE:
        return replace(instruction, serial=True)
    return replace(instruction, evenly=True)
