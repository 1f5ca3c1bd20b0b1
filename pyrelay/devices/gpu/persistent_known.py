"""Kernels of loops for extents that come again and again: the compiler is told these.

In: the kernel of a loop, the words that a call gives it, how many blocks run it. Out: its text with
extents as constants, and, when calls with these have come often enough, that kernel compiled.

Phases that compute little take as long as the integers they depend on: which rows and columns a
block has, how its threads share a sum, which of several forms of a product fits. With constants the
compiler works all that out, and leaves out what does not happen. The same is computed in the same
order, so results have the same bits.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.bounded import Bounded
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.errors import DeviceError
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Launch, Plan, Slot

if TYPE_CHECKING:
    from pyrelay.devices.gpu.plan_python import Persistent
    from pyrelay.devices.gpu.programs import Run

CALLS = 8
"""Calls with the same extents before a kernel is compiled for them: that takes a second or two, by
a thread beside the program."""

MOST = 4
"""Such kernels of a loop: where extents are others all the time, none is worth it."""

_HEAD = 'extern "C" __global__ void kernel('


def extents_of(
    plan: Plan, part: Sequence[ins.Instruction], given: Sequence[int], others: Collection[int]
) -> tuple[int, ...]:
    """The slots that a loop is given whose words are numbers of rows, columns and items of what it
    launches; none of `others`, which it changes or which lie on the device."""
    found: dict[int, None] = {}
    for launch in part:
        if not isinstance(launch, Launch):
            continue
        code = plan.kernels[launch.kernel].code
        operands: list[Any] = [launch.extent]
        if code is None:
            kinds = cuda_library.kinds_of(plan.kernels[launch.kernel].source)
            told = zip(launch.operands, kinds, strict=False)  # precision comes from elsewhere
            operands += [o for o, kind in told if kind != ADDRESS]
        else:
            for parameter, words in code.split(launch.operands):
                operands += words if parameter.role == kernel_ir.EXTENT else ()
        found.update((o.index, None) for o in operands if isinstance(o, Slot))
    return tuple(k for k in given if k in found and k not in others)


def with_known(text: Text, words: Mapping[str, int], blocks: int) -> Text:
    """The kernel of a loop for these values of its parameters, by name, and so many blocks. It is
    launched with the same words."""
    support, _, kernel = text.source.rpartition(_HEAD)
    head, _, body = kernel.partition("\n")
    for name in words:
        head, count = re.subn(rf"\bi64 {name}\b", f"i64 given_{name}", head)
        assert count == 1, name
    known = "".join(f"    const i64 {name} = {word}ll;\n" for name, word in words.items())
    source = f"{support}{_HEAD}{head}\n{known}{body}".replace("gridDim.x", f"{blocks}u")
    return replace(text, source=source.replace("blockIdx.x", "0u") if blocks == 1 else source)


class Known:
    """The kernels of a program's loops for the extents of its calls."""

    def __init__(self) -> None:
        self.made: Bounded[Any, Any] = Bounded()  # calls so far, then the kernel, if there is one
        self.counts: dict[int, int] = {}  # of kernels, by the launch that each stands for

    def function(self, run: Run, made: Persistent, blocks: int, given: Sequence[Any]) -> Any:
        """What is to be launched in place of a loop's kernel for any extents; None for nothing."""
        words = tuple(given[k] for k in made.extents)
        key = made.launch, blocks, run.precision, words
        found = self.made.get(key, 0)
        if type(found) is not int:
            return found
        self.made[key] = found + 1
        if found + 1 == CALLS and self.counts.get(made.launch, 0) < MOST:
            self.counts[made.launch] = self.counts.get(made.launch, 0) + 1
            named = {f"s{made.loop.given[k]}": w for k, w in zip(made.extents, words, strict=True)}
            named["precision"] = run.precision
            program = run.program
            text = with_known(program.code.text_of(made.launch), named, blocks)

            def make() -> None:
                # The other one goes on where there is no memory for a module, or where a user's own
                # capture keeps threads from loading any: RuntimeError is the base of CuPy's errors.
                with contextlib.suppress(DeviceError, RuntimeError):
                    (self.made[key],) = program.compiled([text])

            program.driver.later(make)
        return None
