"""Products of matrices of a call: by the device's library, or by a kernel of ours.

In: the numbers and words of a launch. Out: it is done.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu.driver import Driver, OutOfDeviceMemory, Product

if TYPE_CHECKING:
    from pyrelay.devices.gpu.plan_launches import Launched
    from pyrelay.devices.gpu.programs import GpuExecutable

_UNKNOWN = object()


class ProductCommands:
    """What a run does with products."""

    driver: Driver
    program: GpuExecutable
    launches: Sequence[Launched]
    stream: int

    @property
    @abstractmethod
    def precision(self) -> int:
        """How products are rounded."""

    @property
    @abstractmethod
    def is_guessing(self) -> bool:
        """Whether it is unknown whether what is launched happens."""

    @abstractmethod
    def launch(self, number: int, items: int, words: Sequence[int]) -> None:
        """Run a kernel."""

    @abstractmethod
    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device."""

    @abstractmethod
    def aside(self, nbytes: int) -> int:
        """Memory for a moment."""

    def multiply(
        self, number: int, items: int, words: Sequence[int],
        aside: Callable[[int], int] | None = None,
    ) -> None:
        """Compute a product of matrices, by the device's library if it has one. `aside` gives
        memory for a product that may turn out not to happen."""
        if items <= 0:
            return
        products, key = self.program.products, (number, words[3:], self.precision)
        made: Any = products.get(key, _UNKNOWN)
        if made is _UNKNOWN:
            made = products[key] = self._product(number, words)
        if made is None or not self._by_library(made, words, aside or self.aside):
            self.launch(number, items, words)

    def product_bytes(self, number: int, words: Sequence[int]) -> int:
        """The bytes of a product."""
        dtypes = self.launches[number].product
        assert dtypes is not None
        m, c_line, axes = words[3], words[11], words[12]
        batch = words[15 : 15 + 3 * axes : 3]
        return dtypes[1].size * math.prod((m, c_line, *batch))

    def _product(self, number: int, words: Sequence[int]) -> tuple[Any, int] | None:
        """What the device's library needs for a product, and the bytes of it; None if it has none.
        """
        _, _, _, m, n, k, a_turned, b_turned, adds, a_line, b_line, c_line, axes, *rest = words
        rest = rest[2:]  # a product of ours is finished by no other kernel
        batch = tuple(zip(*[iter(rest)] * 3, strict=True))[:axes]
        dtypes = self.launches[number].product
        assert dtypes is not None
        if not k or adds or dtypes[1].kind not in "fc":
            return None
        found = self.driver.product(Product(
            *dtypes, m, n, k, bool(a_turned), bool(b_turned), a_line, b_line, c_line, batch
        ))
        return None if found is None else (found, self.product_bytes(number, words))

    def _by_library(
        self, made: tuple[Any, int], words: Sequence[int], aside: Callable[[int], int]
    ) -> bool:
        """Whether the device's library computes a product."""
        (prepared, nbytes), (a, b, c) = made, words[:3]
        place = c
        if self.is_guessing:
            try:
                place = aside(nbytes)
            except OutOfDeviceMemory:
                return False
        done = self.driver.multiply(prepared, a, b, place, self.stream)
        if done and place != c:
            self.copy(c, place, nbytes)
        return done
