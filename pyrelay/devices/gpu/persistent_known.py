"""Kernels of loops for the extents of calls: the compiler is told these.

In: the kernel of a loop, the words that a call gives it, how many blocks run it. Out: its text with
extents as constants, compiled by the first calls with each of them, and the kernel for any extents
where these vary.

Phases that compute little take as long as the integers they depend on: which rows and columns a
block has, how its threads share a sum, which of several forms of a product fits. With constants the
compiler works all that out, and leaves out what does not happen: it takes a fraction of the time
that it has for all forms. The same is computed in the same order, so results have the same bits.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.bounded import Bounded
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.persistent_held_tiles import with_tiles
from pyrelay.devices.gpu.persistent_near import with_room
from pyrelay.devices.gpu.persistent_prelude import THREADS
from pyrelay.errors import DeviceError
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Launch, Plan, Slot

if TYPE_CHECKING:
    from pyrelay.devices.gpu.plan_python import Persistent
    from pyrelay.devices.gpu.programs import GpuExecutable

FIRST = 4
"""So many extents of a loop have kernels of their own at once, by the call that comes with them. A
thread compiles the one for any extents beside the last of these: they vary."""

CALLS = 8
"""Calls with the same further extents before a thread compiles a kernel for them."""

MOST = 8
"""Such kernels of a loop, the first ones among them."""

_HEAD = 'extern "C" __global__ void kernel('


def extents_of(
    plan: Plan, part: Sequence[ins.Instruction], given: Sequence[int], others: Collection[int],
    begins: Sequence[ins.Instruction] = (),
) -> tuple[int, ...]:
    """The slots that a loop is given whose words are numbers of rows, columns and items of what it
    launches, of products that it begins with those of columns and of places of the sums: there are
    as many rows as rounds. None of `others`, which it changes or which lie on the device."""
    found: dict[int, None] = {}
    for step in begins:
        if isinstance(step, Launch) and cuda_library.multiplied(plan.kernels[step.kernel].source):
            found.update((o.index, None) for o in step.operands[4:6] if isinstance(o, Slot))
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


def with_known(text: Text, words: Mapping[str, int], blocks: int, near: bool = False) -> Text:
    """The kernel of a loop for these values of its parameters, by name, and so many blocks. It is
    launched with the same words. near: whether it keeps what it works in in shared memory."""
    support, _, kernel = text.source.rpartition(_HEAD)
    head, _, body = kernel.partition("\n")
    for name in words:
        head, count = re.subn(rf"\bi64 {name}\b", f"i64 given_{name}", head)
        assert count == 1, name
    known = "".join(f"    const i64 {name} = {word}ll;\n" for name, word in words.items())
    source = f"{support}{_HEAD}{head}\n{known}{body}".replace("gridDim.x", f"{blocks}u")
    source = with_tiles(source.replace("blockDim.x", f"{THREADS}u"))
    if blocks == 1:
        source = source.replace("blockIdx.x", "0u")
    return replace(text, source=with_room(source) if near else source)


Form = tuple[Any, int]
"""A kernel of a loop, and with how many blocks it is launched."""


class Known:
    """The kernels of a program's loops for the extents of its calls."""

    def __init__(self) -> None:
        self.made: dict[Any, Form] = {}
        self.coming: dict[Any, Callable[[], Any]] = {}  # what waits for a kernel that is compiled
        self.calls: Bounded[Any, int] = Bounded()  # with extents that have no kernel of their own
        self.counts: dict[int, int] = {}  # of kernels, by the launch that each stands for

    def function(
        self, program: GpuExecutable, made: Persistent, blocks: int, precision: int,
        words: tuple[int, ...],
    ) -> Form:
        """What is to be launched for a loop, and with how many blocks: as many as asked, or as many
        as may meet. words: `Persistent.told` for one block, else those of its extents."""
        key = made.launch, blocks, precision, words
        found = self.made.get(key)
        return self._other(program, made, key) if found is None else found

    def made_so_far(
        self, program: GpuExecutable, made: Persistent, blocks: int, precision: int,
        words: tuple[int, ...],
    ) -> tuple[Any, int, bool]:
        """What `function` would give, and whether calls are still to be counted."""
        key = made.launch, blocks, precision, words
        found = self.made.get(key)
        if found is not None:
            return (*found, False)
        counts = self.calls.get(key, 0) < CALLS and self.counts.get(made.launch, 0) < MOST
        return (*_of_any(program, made, blocks), counts)

    def _other(self, program: GpuExecutable, made: Persistent, key: Any) -> Form:
        launch, blocks, _, _ = key
        count = self.counts.get(launch, 0)
        calls = self.calls[key] = self.calls.get(key, 0) + 1
        if calls == 1 and count < FIRST:
            self.counts[launch] = count + 1
            self._make(program, made, key)
            if count + 1 == FIRST:
                program.driver.later(lambda: _tried(lambda: program.function_of(launch)))
        elif calls == CALLS and count < MOST:
            self.counts[launch] = count + 1
            program.driver.later(lambda: self._make(program, made, key))
        if key in self.made:
            return self.made[key]
        return _of_any(program, made, blocks)

    def begin(
        self, program: GpuExecutable, made: Persistent, blocks: int, precision: int,
        words: tuple[int, ...],
    ) -> None:
        """Begin what `function` will be asked for, if that makes a kernel of its own."""
        key = made.launch, blocks, precision, words
        fresh = key not in self.coming and key not in self.made
        if fresh and self.counts.get(made.launch, 0) < FIRST:
            text = _text(program, made, key, blocks)
            (self.coming[key],) = program.begun([text])

    def _make(self, program: GpuExecutable, made: Persistent, key: Any) -> None:
        _, blocks, _, _ = key

        def make() -> None:
            most = blocks
            wait = self.coming.pop(key, None)
            while True:
                if wait is None:
                    (wait,) = program.begun([_text(program, made, key, most)])
                function, wait = wait(), None
                resident = program.driver.resident(function)
                if resident >= most:
                    break
                most = resident
            self.made[key] = function, most

        _tried(make)
        program.forget_recorded()  # calls that are written launch what there was before


def _text(program: GpuExecutable, made: Persistent, key: Any, blocks: int) -> Text:
    launch, _, precision, words = key
    named = {**dict(zip(made.told, words, strict=False)), "precision": precision}
    near = len(words) == len(made.told) and not made.loop.resumes
    text = with_known(program.code.text_of(launch), named, blocks, near and blocks == 1)
    program.named[text] = made.name
    return text


def _of_any(program: GpuExecutable, made: Persistent, blocks: int) -> Form:
    """The kernel for any extents, and how many blocks of it may meet, so many at most."""
    function = program.function_of(made.launch)
    return function, min(blocks, program.driver.resident(function))


def _tried(make: Callable[[], object]) -> None:
    """The kernel for any extents stands for one that cannot be made, as where there is no memory
    for a module, or where a user's own capture keeps threads from loading any: RuntimeError is the
    base of CuPy's errors."""
    with contextlib.suppress(DeviceError, RuntimeError, MemoryError):
        make()
