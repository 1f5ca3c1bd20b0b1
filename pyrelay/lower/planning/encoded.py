"""What is loaded of a plan: words, kernels, and places in the user's program where it may stop.

In: nothing; `encode` builds these. Out: `EncodedPlan`, which `devices.runtime.entry` makes
callable.
A program that comes from disk needs this, and nothing of what plans are before they are words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay.errors import Span
from pyrelay.lower.planning.boundary import Parameter, Result
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.kernels import kernel as kernel_ir

HostFunction = Callable[[Sequence[int]], Sequence[int]]
"""Takes the raw words of a host call's arguments, gives those of its results."""


@dataclass(frozen=True, slots=True)
class Ufunc:
    """A generalised ufunc of NumPy by its module and name, and the types of one of its loops as it
    lists them: "d->dd"."""

    module: str
    name: str
    types: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as source text, its identity; its name and the user's lines are for people.

    `code` is what the text was printed from, None for kernels of a library.
    """

    name: str
    source: str
    spans: tuple[Span, ...] = field(default=(), compare=False)
    code: kernel_ir.Kernel | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's program where a run can stop.

    `exception` names a builtin exception class, or is a class. `parts` make its arguments, as
    `errors.exception_of` says; the values in them are those of the record, decoded as `kinds` says:
    a dtype's name or int, float, bool, complex (`complex` and `complex128` take two of its words).
    """

    exception: str | type[BaseException]
    parts: tuple[Any, ...]
    kinds: tuple[str, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPlan:
    """A plan ready to load.

    code: int64 words. constants: int64 words. kernel_words: (word of code, kernel): to become the
    kernel's address. data_words: (word of constants, array): to become its data's address.
    kernel_constants: (word of constants, kernel): to become the kernel's address. ufunc_words:
    (word of code, ufunc): to become the address of its loop, the next word what that is given.
    entry_slots: slots of the first frame. scratch_words: the longest list of words that any
    instruction hands over at once. parallel: whether any launch may use the pool.
    """

    code: np.ndarray[Any, Any]
    constants: np.ndarray[Any, Any]
    kernel_words: tuple[tuple[int, int], ...]
    data_words: tuple[tuple[int, int], ...]
    entry_slots: int
    scratch_words: int
    parallel: bool
    kernels: tuple[Kernel, ...]
    sites: tuple[Site, ...]
    arrays: tuple[np.ndarray[Any, Any], ...]
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    single: bool
    hosts: tuple[HostFunction, ...] = ()
    kernel_constants: tuple[tuple[int, int], ...] = ()
    ufuncs: tuple[Ufunc, ...] = ()
    ufunc_words: tuple[tuple[int, int], ...] = ()
