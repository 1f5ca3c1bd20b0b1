"""The kernels of a program on a device, from when they are asked for to when they are launched.

In: a plan in Python, a driver. Out: for each launch what the driver launches. Kernels that calls
surely need are begun when the program is made, and waited for by the first launch of each, so that
they are compiled beside each other and beside what the host does until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.driver import Compilation, Driver, Text, by_the_clock
from pyrelay.devices.gpu.plan_python import PlanCode

_MOST_UNITS = 3
"""Units that are told by name, those that took longest."""

_MOST_NAMES = 4
"""Kernels of a unit that are."""


class ProgramKernels:
    """compilations: what the program has had compiled or read so far. late: kernels that few calls
    need and that are there, by their numbers. named: what those are called that calls write."""

    def __init__(self, driver: Driver, code: PlanCode) -> None:
        self.driver, self.code = driver, code
        self.compilations: list[Compilation] = []
        self.late: dict[int, Any] = {}
        self.named: dict[Text, str] = {}
        self._coming: dict[int, Callable[[], Any]] = {}  # by number of text, as `Launched` has it
        #: What is launched for a launch of the plan, once it was asked for.
        self.ready: list[Any] = [None] * len(code.launches)
        # What ends graphs (`cuda_library.SEAL`); of programs that have some.
        self._seals = bool((code.fails or code.own is not None) and (code.stretches or code.rounds))
        self._seal: Callable[[], Any] | None = None
        self._begin(code.first)

    @property
    def seal(self) -> Any:
        """What ends graphs; None where nothing does."""
        if not self._seals:
            return None
        self.begin_spare()
        assert self._seal is not None
        return self._seal()

    def begin_spare(self) -> None:
        """Begin what first calls hardly need and later ones do: what ends graphs, and products that
        stand by for those of the device's library."""
        if self._seals and self._seal is None:
            (self._seal,) = self.begun([cuda_library.SEAL])
        self._begin(self.code.spare)

    def _text(self, number: int) -> Text:
        return self.code.texts[number] if number >= 0 else self.code.late[-2 - number]

    def _begin(self, numbers: Iterable[int]) -> None:
        fresh = [k for k in numbers if k not in self._coming]
        made = self.begun([self._text(k) for k in fresh])
        self._coming.update(zip(fresh, made, strict=True))

    def begin_texts(self, numbers: Iterable[int]) -> None:
        """Begin kernels that will be needed, but for those that the host runs."""
        self._begin(k for k in numbers if k != -1)

    def function_of(self, launch: int) -> Any:
        """What the device launches for a launch of the plan."""
        ready = self.ready[launch]
        if ready is None:
            ready = self.ready[launch] = self._function(self.code.launches[launch].text)
        return ready

    def _function(self, number: int) -> Any:
        if number < 0:
            return self.late_function(-2 - number)
        if number in self.code.spare:
            self._begin(self.code.spare)
        elif number not in self._coming:  # a loop goes round by round
            self._begin(range(len(self.code.texts)))
        return self._coming[number]()

    def settle_kernels(self) -> None:
        """All that was asked for is there: nothing has to be loaded while work is captured."""
        for number, launched in enumerate(self.code.launches):
            if launched.text in self._coming:
                self.function_of(number)

    def late_function(self, number: int) -> Any:
        """A kernel that few calls need, compiled by the first of them."""
        if number not in self.late:
            self.compile_late((number,))
        return self.late[number]

    def compile_late(self, numbers: Sequence[int]) -> None:
        """Compile kernels that are needed now, all at once."""
        self._begin(-2 - k for k in numbers)
        for k in numbers:
            if k not in self.late:
                self.late[k] = self._coming[-2 - k]()

    def begun(self, texts: Sequence[Text]) -> list[Callable[[], Any]]:
        """For each kernel, which is on its way, what waits for it and gives what `launch` takes."""
        return self.driver.begin(texts, self.compilations)

    def compilers_told(self) -> list[str]:
        """What the device's compiler did so far."""
        self.settle_kernels()
        made = [each for each in self.compilations if each.seconds]
        found = [each for each in self.compilations if not each.seconds]
        lines = []
        if made:
            names = {**self.code.names(), **self.named}
            told = f"NVRTC compiled {_kernels(made)} in {by_the_clock(made):.2f} s"
            if len(made) == 1:
                lines.append(f"{told}: {names_in(made[0], names)}")
            else:
                together = sum(each.seconds for each in made)
                lines.append(f"{told}, {len(made)} units of {together:.2f} s together")
                longest = sorted(made, key=lambda each: -each.seconds)[:_MOST_UNITS]
                lines += [f"  {each.seconds:.2f} s: {names_in(each, names)}" for each in longest]
        if found:
            lines.append(f"machine code of {_kernels(found)} was on disk")
        return lines


def names_in(unit: Compilation, names: Mapping[Text, str]) -> str:
    """The kernels of a unit, those first that the program has of its own."""
    own = list(dict.fromkeys(names[text] for text in unit.texts if text in names))
    others = sum(text not in names for text in unit.texts)
    left = len(own) - _MOST_NAMES
    parts = own[:_MOST_NAMES] + [f"{left} more"] * (left > 0)
    return ", ".join(parts + [f"{others} of pyrelay's library"] * (others > 0))


def _kernels(compilations: Sequence[Compilation]) -> str:
    count = sum(each.kernels for each in compilations)
    return f"{count} kernel" + "s" * (count != 1)
