"""What programs launch on a GPU, and the bytes that each of their kernels asks for, beside the
fewest possible: known without one.

python -m benchmarks.gpu_traffic   writes the table of docs/gpu.md and prints it

In: programs and their arguments. Out: a `Row` for each, with a `Part` for each kernel. Bytes are
those of kernel IR; the fewest are those of each array of a fused group read or written once, or of
the part of it that is asked for. Launches are those of the plan as a GPU with the multiprocessors
of an H200 has it, by a driver that only notes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyrelay
from benchmarks.gpu_programs import COUNTED
from pyrelay.devices.cuda_emulator import EmulatorDriver
from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.driver import Product, Text
from pyrelay.devices.gpu.programs import GpuExecutable
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir import dims, interp, walk
from pyrelay.ir.nodes import Atom, KernelCall, Let, Loop, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernel import ARRAY, Parameter
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.traffic import asked
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.planning.normalise import kernels_only
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered

DOCUMENT = Path(__file__).parent.parent / "docs" / "gpu.md"
HEAD = "| program | launches | kernel | MB asked for | MB least | over the least | of memory |"
"""What the table begins with."""

PROCESSORS = 132
SMALL = 1 << 20
"""Bytes of an array that the cache surely holds while a kernel reads it again and again."""


@dataclass(frozen=True)
class Part:
    """A kernel, or what takes its place where several do its work: how many they are, how many of
    them blocks share; bytes that their loads and stores ask for, the least that they could ask for,
    and how many of the former are small arrays' that were asked for before, None for a loop, whose
    rounds find there what the cache keeps. own: it is a text of ours that keeps what lies between
    its operands and results to itself; these count once."""

    kernel: str
    kernels: int
    by_blocks: int
    moved: int
    least: int
    again: int | None = 0
    own: bool = False


@dataclass(frozen=True)
class Row:
    """A program: its parts; how many kernels a call launches, and how many products of matrices a
    library does."""

    program: str
    parts: tuple[Part, ...] = ()
    launches: int = 0
    products: int = 0
    failed: str = ""

    def _sum(self, name: str) -> int:
        return sum(getattr(part, name) for part in self.parts)

    @property
    def kernels(self) -> int:
        """How many there are."""
        return self._sum("kernels")

    @property
    def by_blocks(self) -> int:
        """How many of them blocks share."""
        return self._sum("by_blocks")

    @property
    def moved(self) -> int:
        """Bytes that all of them ask for."""
        return self._sum("moved")

    @property
    def least(self) -> int:
        """The fewest that they could."""
        return self._sum("least")


def measured(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], rounds: int = 0
) -> Row:
    """The kernels of a program, and their bytes; of loops, which take so many `rounds`, those of a
    round, each time again.

    Raises ValueError for one with other control flow.
    """
    fused = _fused(function, args)
    module = kernels_only(fused, cuda_library.TARGET)
    flat = Flattened()
    flatten([(arg, "argument") for arg in args], flat)
    extents = interp.bind_extents(module.main, flat.leaves, {})
    row = Row(name)
    for let in module.main.body.lets:
        row = _counted(row, let, extents, rounds)
    return row


def _fused(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    compiled = pyrelay.jit(function)
    # The passes of any GPU; the emulator is one that is always there.
    return lowered(compiled._specialised(args, {}).module, "fuse", on="cuda_emulator")


def _counted(row: Row, let: Let, extents: Any, rounds: int) -> Row:
    """A row with what one Let adds to it. Raises ValueError for control flow that is no loop of so
    many rounds."""
    if isinstance(let.rhs, Loop) and rounds:
        inner = Row(row.program)
        for each in let.rhs.body.lets:
            inner = _counted(inner, each, extents, 0)
        own = {o for each in let.rhs.body.lets for o in each.outs} | {*let.rhs.carried}
        read = {a for each in let.rhs.body.lets for a in walk.operands(each.rhs)} - own
        least = sum(_bytes(a, extents) for a in (*read, *let.rhs.init, *let.outs))
        loop = Part(
            f"loop of {rounds}", inner.kernels, inner.by_blocks, rounds * inner.moved, least, None
        )
        return replace(row, parts=(*row.parts, loop))
    if not isinstance(let.rhs, (KernelCall, OpCall)):
        raise ValueError("programs with control flow are not counted")
    if isinstance(let.rhs, OpCall):
        return row
    part = _part(let, let.rhs, extents)
    # Products are a library's; the host has what takes and gives numbers alone.
    return replace(row, parts=(*row.parts, part)) if part.kernels and part.moved else row


def _part(let: Let, call: KernelCall, extents: Any) -> Part:
    values = [dims.evaluate(d, extents) for d in call.dims]
    inside = dict(zip(call.function.dims, values, strict=True))
    lowering = kernelise(call.function, splits=True)
    least = sum(_bytes(array, extents) for array in dict.fromkeys((*call.args, *let.outs)))
    name = call.function.name
    if lowering.attention is not None:
        # A kernel of the library, which keeps scores to itself; its arrays count once.
        return Part(name, 1, 1, least, least, own=True)
    long = lowering.long
    few = long is not None and dims.evaluate(long.when, inside)
    found = long.kernels if long is not None and few else lowering.kernels
    total = again = 0
    read: Counter[Atom] = Counter()
    for kernel in found:
        bytes_of = asked(kernel, values, dims.evaluate(kernel.extent, inside))
        total += sum(bytes_of.values())
        for buffer, nbytes in bytes_of.items():
            if isinstance(buffer, Parameter) and buffer.role == ARRAY:
                read[call.args[buffer.position]] += nbytes
    for array, nbytes in read.items():
        size = _bytes(array, extents)
        least -= max(size - nbytes, 0)
        again += max(nbytes - size, 0) if size <= SMALL else 0
    shared = sum(cooperation(kernel) is not None for kernel in found)
    return Part(name, len(found), shared, total, least, again)


def _bytes(atom: Atom, extents: Any) -> int:
    ty = atom.type
    if not isinstance(ty, TensorType) or not ty.shape:
        return 0
    return int(dims.evaluate(dims.product((*ty.shape, ty.dtype.size)), extents))


# -- launches --------------------------------------------------------------------------------------


class Noting(EmulatorDriver):
    """A GPU that does nothing but note what it is asked to: which texts are launched, and how many
    products there are."""

    meeting = PROCESSORS

    def __init__(self) -> None:
        super().__init__()
        self.noted: Counter[str] = Counter()
        self.products = 0

    def load(self, texts: Sequence[Text]) -> list[Any]:
        return [text.source for text in texts]

    def launch(self, function: Any, items: int, words: Sequence[int], stream: int) -> None:
        self._do(lambda: self.noted.update([function]))

    def launch_meeting(
        self, function: Any, blocks: int, words: Sequence[int], stream: int
    ) -> None:
        self._do(lambda: self.noted.update([function]))

    def multiply(self, prepared: Product, a: int, b: int, c: int, stream: int) -> bool:
        self.products += 1
        return True


def launched(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[int, int]:
    """How many kernels a call launches, and how many products of matrices. Only of programs whose
    course hangs on no number that a kernel computes."""
    driver = Noting()
    executable = GpuExecutable(plan(_fused(function, args), cuda_library.TARGET), driver)
    flat = Flattened()
    flatten([(arg, "argument") for arg in args], flat)
    executable.call(*flat.leaves)
    return driver.noted.total(), driver.products


# -- the table -------------------------------------------------------------------------------------


def row_of(name: str, function: Callable[..., Any], args: tuple[Any, ...], rounds: int = 0) -> Row:
    """All that is known of a program; where bytes are not, why."""
    try:
        row = measured(name, function, args, rounds)
    except ValueError as error:
        row = Row(name, failed=str(error))
    launches, products = launched(function, args)
    return replace(row, launches=launches, products=products)


def lines_of(row: Row) -> list[str]:
    """A row as lines of the table."""
    beside = f" and {row.products} products" if row.products > 1 else " and a product"
    begun = f"{row.launches}{beside if row.products else ''}"
    if row.failed:
        return [f"| {row.program} | {begun} | {row.failed} | | | | |"]
    found: list[str] = []
    for part in row.parts:
        name = f"`{part.kernel}`" + (f", {part.kernels} kernels" if part.kernels > 1 else "")
        ratio = memory = ""
        if part.own:
            name += ", ours"
        elif part.least:
            ratio = f"{part.moved / part.least:.2f}"
        if not part.own and part.least and part.again is not None:
            memory = f"{(part.moved - part.again) / part.least:.2f}"
        found.append(
            f"| {row.program if not found else ''} | {begun if not found else ''} | {name} "
            f"| {part.moved / 1e6:.3f} | {part.least / 1e6:.3f} | {ratio} | {memory} |"
        )
    return found


def table(rows: Sequence[Row]) -> str:
    """Rows as a table of Markdown."""
    lines = [line for row in rows for line in lines_of(row)]
    return "\n".join([HEAD, "|" + "---|" * HEAD.count(" |"), *lines])


def replaced(page: str, told: str) -> str:
    """A page with this table in the place of the one that begins as it does."""
    before, head, rest = page.partition(HEAD + "\n")
    assert head
    _, blank, behind = rest.partition("\n\n")
    return before + told + blank + behind


def main() -> None:
    told = table([row_of(name, *program) for name, program in COUNTED.items()])
    DOCUMENT.write_text(replaced(DOCUMENT.read_text(encoding="utf-8"), told), encoding="utf-8")
    print(told)


if __name__ == "__main__":
    main()
