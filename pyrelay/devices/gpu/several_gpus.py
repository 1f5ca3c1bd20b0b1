"""Programs where there are several GPUs: each call runs where its arrays lie.

In: a plan, and drivers by number. Out: a callable that has an executable for each GPU, made by the
first call that needs it. Machine code is compiled once for GPUs of one compute capability: the
others find it in the disk cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.base import Loaded
from pyrelay.devices.gpu.array_taking import homes_of
from pyrelay.devices.gpu.bounded import Bounded
from pyrelay.devices.gpu.driver import Driver
from pyrelay.devices.gpu.programs import GpuExecutable
from pyrelay.devices.runtime.entry import MISMATCH
from pyrelay.infer.arrays.device_arrays import DeviceArray, LiesElsewhereError
from pyrelay.lower.planning.boundary import ArrayParameter
from pyrelay.lower.planning.instructions import Plan


def loaded_by(
    driver: Callable[[int | None], Driver], number: int | None
) -> Callable[[Plan], Loaded]:
    """How the GPU of a number loads plans (`base.Device.load`), or whichever a call is for."""
    def load(plan: Plan) -> Loaded:
        made = EachGpu(plan, driver, number)
        return Loaded(made.call, told=made.told, direct=made.direct if made.is_direct else None)

    return load


class EachGpu:
    """A plan on several GPUs, or on one of several.

    driver: the driver of a GPU by its number, of the current one for None. number: the only one
    that is to run the plan; None: that of a call's arrays, or the current one.
    """

    def __init__(
        self, plan: Plan, driver: Callable[[int | None], Driver], number: int | None
    ) -> None:
        self.plan, self.driver, self.number = plan, driver, number
        self.executables: dict[int, GpuExecutable] = {}
        self.making = threading.Lock()
        self.like = next(
            (k for k, p in enumerate(plan.parameters) if isinstance(p, ArrayParameter)), -1
        )
        self.is_direct = self.like >= 0
        self.homes: Bounded[type, Callable[[Any], int] | None] = Bounded()  # by class of arrays

    def on(self, number: int) -> GpuExecutable:
        """What runs the plan on a GPU."""
        made = self.executables.get(number)
        if made is not None:
            return made
        with self.making:
            if number not in self.executables:
                driver = self.driver(number)
                with driver.beside(type(None)):
                    self.executables[number] = GpuExecutable(self.plan, driver)
            return self.executables[number]

    def call(self, *arguments: Any) -> Any:
        """Run the program where its arrays lie. Raises LiesElsewhereError."""
        driver = self.driver(self.number)
        number, first = self.number, -1
        for k, argument in enumerate(arguments):
            if not isinstance(argument, DeviceArray) or not argument.nbytes:
                continue
            home = driver.home(argument)
            if number is None:
                number, first = home, k
            elif home != number:
                raise LiesElsewhereError(k, home, first, number)
        return self.on(driver.number if number is None else number).call(*arguments)

    def direct(self, *arguments: Any) -> Any:
        """Run the program with arrays of one class that are asked directly; `MISMATCH` for what
        needs a longer look, arrays of several GPUs among it."""
        array = arguments[self.like]
        kind = type(array)
        home = self.homes[kind] if kind in self.homes else self._home(kind)
        number = -1 if home is None else home(array)
        if number < 0 or self.number not in (None, number):
            return MISMATCH
        made = self.on(number)
        return made.direct(*arguments) if made.is_direct else MISMATCH

    def _home(self, kind: type) -> Callable[[Any], int] | None:
        made = self.homes[kind] = homes_of(kind, self.driver(self.number).own)
        return made

    def told(self) -> Sequence[str]:
        """What `GpuExecutable.told` says, of each GPU."""
        return [
            f"GPU {number}: {line}"
            for number, made in sorted(self.executables.items()) for line in made.told()
        ]
