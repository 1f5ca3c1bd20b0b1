"""The kernels that a program's first call will launch, before it does.

In: a program, the words of a call. Out: these kernels begun, all at once: forms that extents choose
and loops for the call's extents are else compiled one after the other, by the launches that need
them. The call is drawn (`call_drawing`) as far as it hangs on what the host knows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu.call_drawing import Drawing
from pyrelay.devices.gpu.run_products import ProductCommands

if TYPE_CHECKING:
    from pyrelay.devices.gpu.persistent_known import Form
    from pyrelay.devices.gpu.plan_python import Persistent
    from pyrelay.devices.gpu.programs import GpuExecutable

_BASE, _APART = -(1 << 60), 40  # of made-up addresses


def foresee(
    program: GpuExecutable, words: Sequence[int], lent: Mapping[int, int], precision: int
) -> None:
    """Begin the kernels of a call. lent: the bytes at each address among its words."""
    found = _Foreseen(program, lent, precision)
    # What hangs on more than extents ends it, as does whatever the call itself will raise.
    with contextlib.suppress(Exception):
        program.entry(found, *words)
    with contextlib.suppress(Exception):
        for loop in found.loops:
            program.known.begin(program, *loop)
        program.begin_texts(found.texts)


class _Foreseen(Drawing):
    """Stands for a run. loops: what `Known.begin` is told of each. texts: numbers of the others, as
    `Launched` has them."""

    def __init__(self, program: GpuExecutable, lent: Mapping[int, int], precision: int) -> None:
        super().__init__(program, _BASE, _APART, 0, 0, precision)
        self.lent, self.sizes = [*lent], dict(lent)
        self.loops: list[tuple[Persistent, int, int, tuple[int, ...]]] = []
        self.texts: dict[int, None] = {}

    def launch(
        self, number: int, items: int, words: Sequence[Any], meeting: int = 0, made: Any = None
    ) -> None:
        if items > 0 and not meeting:
            self._note("launch", (), ())
            self.texts[self.launches[number].text] = None

    def known_kernel(self, made: Persistent, blocks: int, words: tuple[int, ...]) -> Form:
        self.loops.append((made, blocks, self.precision, words))
        return None, blocks

    def multiply(
        self, number: int, items: int, words: Sequence[Any],
        aside: Callable[[int], int] | None = None,
    ) -> None:
        ProductCommands.multiply(self, number, items, words, aside)

    def place(self, *words: Any) -> int:
        return 0

    def stretch(self, number: int, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        return function(self, *given)
