"""The memory of calls on a GPU: buffers, scalars, and the record of what went wrong.

In: a driver. Out: `CallMemory`, under the `programs.Run` of each call, and the `Scratch` that calls
hand on to each other. Memory belongs to its call until it is freed or the call ends.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pyrelay.devices.gpu.driver import Driver, OutOfDeviceMemory
from pyrelay.devices.runtime.entry import site_error
from pyrelay.devices.runtime.layout import WORD

CELLS = 256
"""Scalars that are allocated at once."""

SCRATCH_WORDS = 21
"""Of the record on the device (`cuda_prelude`)."""

STATUS, SITE, VALUES, LAUNCH = 2, 3, 4, 19
"""Words of the record: what it says, of which site, with which values, of which launch."""

CLOSED = 4
"""The status behind a gate that is closed (`guesses`); the site is the number of the guess."""

TAKEN, ARGUMENT = -1, "an argument"
"""What is told of the copy of an array of the host."""

_CELL_BYTES = 16
STOP = 20  # the record's word with the address that running kernels look at
_LARGEST_SHOWN = 3

_T = TypeVar("_T")


class Cell:
    """A scalar on the device: written once, by the kernel that it was made for."""

    __slots__ = ("__weakref__", "address", "free", "keeper")

    def __init__(self, address: int, free: list[int], keeper: Any = None) -> None:
        self.address, self.free, self.keeper = address, free, keeper

    def second(self) -> Cell:
        """The second word of a complex128."""
        return Cell(self.address + WORD, [], self)

    def __del__(self) -> None:
        if self.keeper is None:
            self.free.append(self.address)


class Scratch:
    """The record of a call and the memory of its scalars, kept for the calls that follow."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.used_up = driver, False
        self.record, self.owner = driver.allocate(SCRATCH_WORDS * WORD)
        self.free_cells: list[int] = []
        self.slabs: list[Any] = []
        words = np.zeros(SCRATCH_WORDS, np.int64)
        words[STOP] = driver.stop_word
        driver.upload(self.record, words)

    def grow(self) -> None:
        """Memory for more scalars."""
        address, owner = self.driver.allocate(CELLS * _CELL_BYTES)
        self.slabs.append(owner)
        places = range(address, address + CELLS * _CELL_BYTES, _CELL_BYTES)
        self.free_cells.extend(reversed(places))


def error_in(record: np.ndarray[Any, Any], sites: Sequence[Any]) -> BaseException:
    """What a kernel has raised, by the record that it left."""
    site = int(record[LAUNCH] & 0xFFFFFFFF) + int(record[SITE])
    return site_error(sites[site], record[VALUES:LAUNCH].tolist())


class ScalarCommands(ABC):
    """How the scalars of a plan are made and stored by kernels, wherever they and their memory are.
    """

    @abstractmethod
    def cell(self) -> Any:
        """A new scalar."""

    @abstractmethod
    def place(self, *words: Any) -> int:
        """The address where a kernel finds a scalar."""

    @abstractmethod
    def launch(self, number: int, items: int, words: Sequence[int]) -> None:
        """Run a kernel over so many items."""

    def load(self, number: int, address: int, index: int) -> Any:
        """An element of an array as a scalar."""
        cell = self.cell()
        self.launch(number, 1, (address, index, cell.address))
        return cell

    def computed(self, number: int, *operands: Any) -> Any:
        """A scalar of the device made of others, and of what the host knows."""
        cell = self.cell()
        words = (each for o in operands for each in ((o, 0) if type(o) is int else (0, o.address)))
        self.launch(number, 1, (*words, cell.address))
        return cell

    def store(self, number: int, address: int, index: int, value: Any) -> None:
        """An element of an array set to a scalar."""
        self.launch(number, 1, (address, index, self.place(value)))


class CallMemory(ABC):
    """The buffers of a call: its own, and those that were lent to it. `arrays`: what arrays are to
    the user (`PlanCode.arrays`)."""

    def __init__(self, driver: Driver, arrays: Sequence[str]) -> None:
        self.driver, self.arrays = driver, arrays
        self.live: dict[int, tuple[int, Any]] = {}  # address -> bytes, owner
        self.told: dict[int, int] = {}  # address -> what was allocated there last (`arrays`)
        self.lent: dict[int, int] = {}  # address -> bytes

    def clear(self) -> None:
        """Forget what the call that is over had."""
        self.live.clear()
        self.told.clear()
        self.lent.clear()

    @abstractmethod
    def forget_graphs(self) -> None:
        """Give back the memory that captured work holds."""

    def allocate(self, nbytes: int, told: int = 0) -> int:
        """The address of fresh memory of this call, for what `arrays` says of the number `told`.
        Raises MemoryError."""
        if nbytes < 0:
            raise MemoryError("no memory for an array of the program")
        try:
            address, owner = self.driver.allocate(nbytes or 1)
        except OutOfDeviceMemory:
            address, owner = self.obtained(nbytes, told)
        self.live[address] = nbytes, owner
        self.told[address] = told
        return address

    def obtained(
        self, nbytes: int, told: int = 0, make: Callable[[], tuple[int, Any]] | None = None
    ) -> tuple[int, Any]:
        """Memory of the device's, and its owner, as `make` gives it; graphs give back theirs if
        there is none else. Raises MemoryError."""
        make = make or functools.partial(self.driver.allocate, max(nbytes, 1))
        try:
            return made_with(make, self.forget_graphs)
        except OutOfDeviceMemory:
            raise MemoryError(self.out_of_memory(nbytes, told)) from None

    def out_of_memory(self, nbytes: int, told: int = 0) -> str:
        """What was asked, and the largest arrays of the call."""
        asked = f"an array of {self._array(nbytes, told)}" if nbytes else "scalars"
        text = f"no memory on {self.driver.name} for {asked}"
        held = sorted(
            ((size, self.told.get(address, 0)) for address, (size, _) in self.live.items()),
            reverse=True,
        )
        if not held:
            return text
        largest = ", ".join(self._array(*each) for each in held[:_LARGEST_SHOWN])
        count = f"{len(held)} arrays, the largest" if len(held) > 1 else "an array,"
        return f"{text}; the call holds {size_text(sum(s for s, _ in held))} in {count} {largest}"

    def _array(self, nbytes: int, told: int) -> str:
        what = ARGUMENT if told == TAKEN else self.arrays[told]
        return f"{size_text(nbytes)} ({what})" if what else size_text(nbytes)

    def bytes_at(self, address: int) -> int:
        """How many bytes a buffer has."""
        return self.lent[address] if address in self.lent else self.live[address][0]

    def size_at(self, address: int) -> int | None:
        """How many bytes a buffer has; None where there is none."""
        if address in self.lent:
            return self.lent[address]
        return self.live[address][0] if address in self.live else None

    def free(self, address: int) -> None:
        """Give memory back; arguments stay."""
        if address in self.lent or address == 0:
            return
        del self.live[address]

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes; a source of 0 moves nothing."""
        if source and nbytes and target != source:
            self.driver.copy(target, source, nbytes)

    def zero(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""
        if nbytes:
            self.driver.zero(address, nbytes)

    def kept(self, address: int, nbytes: int) -> int:
        """A copy of some bytes, for a tape."""
        place = self.allocate(nbytes)
        self.copy(place, address, nbytes)
        return place

    def restore(self, kept: int, address: int, nbytes: int) -> None:
        """Bytes back from a tape."""
        self.copy(address, kept, nbytes)
        self.free(kept)


def made_with(make: Callable[[], _T], forget: Callable[[], None]) -> _T:
    """What `make` gives, at the second try when `forget` has given memory back.
    Raises OutOfDeviceMemory."""
    try:
        return make()
    except OutOfDeviceMemory:
        forget()
    return make()


def size_text(nbytes: int) -> str:
    """Bytes as a text: 1.5 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes} bytes"
