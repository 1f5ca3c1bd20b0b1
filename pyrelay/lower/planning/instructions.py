"""The plan: what runs between kernels, as immutable values.

In: nothing; the lowering builds these. Out: `Plan`, which `encode.encode` turns into a table of
int64 words that the executor runs (`devices/runtime/executor.py`), and
`devices.runtime.entry.Executable` makes callable.

A function's frame is a row of 64-bit slots. What a slot holds:

* int64, and every smaller integer sign- or zero-extended; bool as 0 or 1;
* float64 as its bits, smaller floats as their bits in the low part, the rest zero;
* complex64 as its 8 bytes in one slot, complex128 as two slots, real part first;
* an array as the address of its first element: C-contiguous, extents are slots of their own.

A function's parameters are its first slots. The first function of a plan is the one that Python
calls: its parameters are `Plan.parameters` one after another, its `Return` hands over the words
of `Plan.results` one after another (`lower/planning/boundary.py` says how many each takes).

An instruction either goes on to the next one, jumps, or ends the run with a status. Labels are
names, local to their function.
"""

from __future__ import annotations

import struct
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.lower.planning.boundary import Parameter, Result
from pyrelay.lower.planning.encoded import HostFunction, Kernel, Site, Ufunc
from pyrelay.lower.planning.words import bfloat16_word
from pyrelay.records import dataclass

# ---------------------------------------------------------------------------------- operands


@dataclass(frozen=True, slots=True)
class Slot:
    """The value in a slot of the running frame."""

    index: int


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant word; `immediate` makes one from a number."""

    word: int


@dataclass(frozen=True, slots=True)
class AddressOf:
    """The address of a slot: where a kernel reads or writes a scalar. Launch operands only."""

    index: int


@dataclass(frozen=True, slots=True)
class Data:
    """The address of the elements of `Plan.arrays[index]`."""

    index: int


@dataclass(frozen=True, slots=True)
class KernelAddress:
    """The address of `Plan.kernels[index]`, for a kernel that calls it."""

    index: int


@dataclass(frozen=True, slots=True)
class CodeOf:
    """Where `Plan.functions[index]` begins, and how many slots it has, in one word: for a kernel
    that has it run (`devices/runtime/resumed_calls`)."""

    index: int


Value = Slot | Immediate | Data | KernelAddress | CodeOf
Operand = Value | AddressOf

_FORMATS = {
    "bool": "q", "float16": "exxxxxx", "float32": "fxxxx", "float64": "d", "complex64": "ff",
}  # fmt: skip


def immediate(value: complex, dtype: str = "int64") -> Immediate:
    """A number of one word as an operand; complex128 takes two, one float64 each.

    Raises OverflowError where an integer does not fit 64 bits.
    """
    if dtype == "complex64":
        number = complex(value)
        packed = struct.pack("<ff", number.real, number.imag)
    elif dtype == "bfloat16":
        packed = bfloat16_word(value.real)
    elif dtype in _FORMATS:
        packed = struct.pack("<" + _FORMATS[dtype], value)
    elif isinstance(value, (int, np.integer)):
        number = int(value)
        if not -(2**63) <= number < 2**64:
            raise OverflowError(f"{number} does not fit 64 bits")
        packed = (number % 2**64).to_bytes(8, "little")
    else:
        raise TypeError(f"{value!r} is no {dtype}")
    return Immediate(int.from_bytes(packed, "little", signed=True))


# ------------------------------------------------------------------------------ instructions

@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel over `0..extent`.

    `cost` is the estimated time of one iteration in picoseconds: it decides whether the pool's
    threads share the range, and counts as work towards the next poll for Ctrl-C. `serial` keeps
    a kernel whose iterations depend on each other on this thread. `evenly` gives each thread one
    part of the range: for kernels whose neighbouring iterations share what they prepare. `begin`
    is where the range begins, which is elsewhere in `Parts` only. A kernel that fails numbers its
    own sites from 0; `first_site` is where they begin in the plan's. A `rare` one is launched over
    nothing but for few arguments. `computes` is what it is for in the user's words, as "x @ w, line
    3"; "" if nothing.
    """

    kernel: int
    operands: tuple[Operand, ...]
    extent: Value
    cost: Value
    serial: bool = False
    first_site: int = 0
    evenly: bool = False
    rare: bool = False
    begin: Value = Immediate(0)
    computes: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """`target = op(a)`, op from `opcodes.UNARY`."""

    op: str
    target: int
    a: Value


@dataclass(frozen=True, slots=True)
class Binary:
    """`target = a op b`, op from `opcodes.BINARY`."""

    op: str
    target: int
    a: Value
    b: Value


@dataclass(frozen=True, slots=True)
class Checked:
    """`target = a op b`, op from `opcodes.CHECKED`; raises `Plan.sites[site]` with a and b."""

    op: str
    target: int
    a: Value
    b: Value
    site: int


@dataclass(frozen=True, slots=True)
class Select:
    """`target = a if condition else b`, both evaluated already."""

    target: int
    condition: Value
    a: Value
    b: Value


@dataclass(frozen=True, slots=True)
class Label:
    """A place to jump to; costs nothing."""

    name: str


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at a label."""

    label: str


@dataclass(frozen=True, slots=True)
class JumpIf:
    """Go on at a label where the condition is not 0."""

    condition: Value
    label: str


@dataclass(frozen=True, slots=True)
class JumpUnless:
    """Go on at a label where the condition is 0."""

    condition: Value
    label: str


@dataclass(frozen=True, slots=True)
class LoopNext:
    """The end of a counted loop's body: `counter += step; if counter < limit: jump`, and a poll.

    A negative immediate step counts down: `if counter > limit: jump`.
    """

    counter: int
    step: int
    limit: Value
    label: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The pool's threads do what follows up to the `PartEnd` for some rows each, if that pays.

    Each thread has a copy of the frame, in which it sets `first` and `end` to its rows of the
    `rows` there are, and `inside` to 1; the copy of the first one becomes the frame, and this
    thread goes on at the label. If it does not pay, the next instruction follows: `first`, `end`
    and `inside` are 0, `rows` and 0 before. `work` is the estimated time of all in picoseconds.
    Between the two nothing is allocated, freed or called.
    """

    first: int
    end: int
    inside: int
    rows: Value
    work: Value
    label: str


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A thread has done its part of `Parts`."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Look for Ctrl-C when enough work has been done; stands in every loop and at the start of
    every recursive function. Almost free."""


@dataclass(frozen=True, slots=True)
class Alloc:
    """`target = address` of `nbytes` fresh bytes, 64-byte aligned, not zeroed.

    Belongs to the call until `Free`d or returned as an `ArrayResult`. MemoryError where there is
    none, or `nbytes` is negative. array: what it is to the user, as "x @ w, line 3"; "" if nothing.
    passing: it is given back soon, so that an idle block of up to four times the size will do.
    """

    target: int
    nbytes: Value
    array: str = field(default="", compare=False)
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Free:
    """Give back what `Alloc` gave; address 0 and the entry's `writeable` arrays are ignored."""

    address: Value


@dataclass(frozen=True, slots=True)
class Copy:
    """Move `nbytes` bytes from `source` to `target`, both addresses; they may overlap.

    A source of 0 moves nothing.
    """

    target: Value
    source: Value
    nbytes: Value


@dataclass(frozen=True, slots=True)
class Zero:
    """Set `nbytes` bytes at `target` to 0."""

    target: Value
    nbytes: Value


@dataclass(frozen=True, slots=True)
class Load:
    """`target = element index of the array at address`, kind from `opcodes.MEMORY`; unchecked."""

    kind: str
    target: int
    address: Value
    index: Value


@dataclass(frozen=True, slots=True)
class Store:
    """`array at address [index] = value`, kind from `opcodes.MEMORY`; unchecked."""

    kind: str
    address: Value
    index: Value
    value: Value


@dataclass(frozen=True, slots=True)
class Call:
    """Call `Plan.functions[function]`; its `Return` fills the slots of `results`."""

    function: int
    arguments: tuple[Value, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Return:
    """Leave the function; at the bottom frame, the words of the plan's results."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class TapeNew:
    """`target = handle` of an empty stack of bytes that grows by doubling; dies with the call."""

    target: int


@dataclass(frozen=True, slots=True)
class TapePush:
    """Push words, one after another; an array whose buffer is handed over travels as its
    address."""

    tape: Value
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class TapePop:
    """Pop words into the slots: those of the `TapePush` with as many values, in its order."""

    tape: Value
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TapePushBytes:
    """Push a copy of `nbytes` bytes at `address`."""

    tape: Value
    address: Value
    nbytes: Value


@dataclass(frozen=True, slots=True)
class TapePopBytes:
    """Pop `nbytes` bytes to `address`."""

    tape: Value
    address: Value
    nbytes: Value


@dataclass(frozen=True, slots=True)
class TapeFree:
    """Give the tape back; arrays whose addresses are on it stay allocated. 0 is ignored."""

    tape: Value


@dataclass(frozen=True, slots=True)
class Raise:
    """End the run with the error of `Plan.sites[site]`; at most 15 values for its message."""

    site: int
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """End the run as if it had not begun where the condition is 0.

    The caller gets the `MISMATCH` object, so guards stand before every write that can be seen.
    """

    condition: Value


@dataclass(frozen=True, slots=True)
class HostCall:
    """Call Python: `Plan.hosts[host](words) -> words`, with the GIL held; exceptions surface."""

    host: int
    arguments: tuple[Value, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UfuncCall:
    """Call a loop of NumPy's: `Plan.ufuncs[ufunc]` over addresses of its arguments and results.

    extents: of the loop, then of each axis that the ufunc's signature names. steps: bytes from one
    turn to the next, for each array, then along each of its axes. `target = 1` where the loop has
    raised the flag of invalid operations, by which those of `np.linalg` tell that they failed.
    """

    ufunc: int
    target: int
    arrays: tuple[Operand, ...]
    extents: tuple[Value, ...]
    steps: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Add the time since the last `Stamp` to a row of `times` (`stamps.py`). In no program, but in
    those made to be measured."""

    times: Data
    row: Immediate


Instruction = (
    Launch | Unary | Binary | Checked | Select | Label | Jump | JumpIf | JumpUnless | LoopNext
    | Parts | PartEnd | Poll | Alloc | Free | Copy | Zero | Load | Store | Call | Return
    | TapeNew | TapePush | TapePop | TapePushBytes | TapePopBytes | TapeFree | Raise | Guard
    | HostCall | UfuncCall | Stamp
)  # fmt: skip


# -------------------------------------------------------------------------------------- plan

@dataclass(frozen=True, slots=True)
class PlanFunction:
    """One function: the first `parameters` of its `slots` are filled by the caller."""

    name: str
    parameters: int
    slots: int
    code: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A whole program: `functions[0]` is the entry, `arrays` are its constants.

    `hosts` are the Python functions that its host calls call, `ufuncs` those of NumPy that it
    calls itself. `single` returns the one result itself, not a tuple of one.
    """

    functions: tuple[PlanFunction, ...]
    kernels: tuple[Kernel, ...] = ()
    sites: tuple[Site, ...] = ()
    arrays: tuple[np.ndarray[Any, Any], ...] = ()
    parameters: tuple[Parameter, ...] = ()
    results: tuple[Result, ...] = ()
    single: bool = False
    hosts: tuple[HostFunction, ...] = ()
    ufuncs: tuple[Ufunc, ...] = ()
