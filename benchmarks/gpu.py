"""`make gpu-bench`: programs on a GPU, timed; without one, what they ask of it is counted.

python -m benchmarks.gpu [OUT]   prints a table last; with OUT, a folder, writes gpu.json there,
                                 and gpu_times.json where there is a GPU, after each program

A kernel on a GPU that is not compute-bound lasts as long as its bytes take, so they are what can be
known beforehand: the bytes that its loads and stores ask for, over the fewest possible, each array
of a fused group read or written once. Times are those of `gpu_timing`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyrelay
from benchmarks import gpu_report, gpu_timing
from benchmarks.gpu_programs import LEAST, PROGRAMS, TIMED
from pyrelay.devices import cuda
from pyrelay.devices.gpu import cuda_library
from pyrelay.errors import DeviceError
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir import dims, interp, walk
from pyrelay.ir.nodes import Atom, KernelCall, Let, Loop, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.traffic import moved
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.planning.normalise import kernels_only
from pyrelay.pipeline import lowered

ENOUGH = 540.0
"""Seconds after which nothing is timed any more."""


@dataclass(frozen=True)
class Row:
    """A program: its kernels, those that a block shares, products of matrices; bytes that kernels
    ask for, the least that they could ask for, those of arguments and results."""

    program: str
    kernels: int
    by_blocks: int
    products: int
    moved: int
    least: int
    failed: str = ""
    outer: int = 0


def measured(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], rounds: int = 0
) -> Row:
    """The kernels of a program, and their bytes; of loops, which take so many `rounds`, those of a
    round, each time again.

    Raises ValueError for one with other control flow.
    """
    compiled = pyrelay.jit(function)
    # The passes of any GPU; the emulator is one that is always there.
    fused = lowered(compiled._specialised(args, {}).module, "fuse", on="cuda_emulator")
    module = kernels_only(fused, cuda_library.TARGET)
    flat = Flattened()
    flatten([(arg, "argument") for arg in args], flat)
    extents = interp.bind_extents(module.main, flat.leaves, {})
    row = Row(name, 0, 0, 0, 0, 0)
    for let in module.main.body.lets:
        row = _counted(row, let, extents, rounds)
    ends = [a for a in module.main.body.results if isinstance(a, Var)]
    given = (*module.main.params, *(a for a in ends if a not in module.main.params))
    return replace(row, outer=sum(_bytes(atom, extents) for atom in given))


def _counted(row: Row, let: Let, extents: Any, rounds: int) -> Row:
    """A row with what one Let adds to it. Raises ValueError for control flow that is no loop of so
    many rounds."""
    if isinstance(let.rhs, Loop) and rounds:
        inner = Row(row.program, 0, 0, 0, 0, 0)
        for each in let.rhs.body.lets:
            inner = _counted(inner, each, extents, 0)
        own = {o for each in let.rhs.body.lets for o in each.outs} | {*let.rhs.carried}
        read = {a for each in let.rhs.body.lets for a in walk.operands(each.rhs)} - own
        least = sum(_bytes(a, extents) for a in (*read, *let.rhs.init, *let.outs))
        return Row(
            row.program, row.kernels + inner.kernels, row.by_blocks + inner.by_blocks,
            row.products + inner.products, row.moved + rounds * inner.moved, row.least + least,
        )
    if not isinstance(let.rhs, (KernelCall, OpCall)):
        raise ValueError("programs with control flow are not counted")
    if isinstance(let.rhs, OpCall):
        is_product = getattr(let.rhs.op, "schedule", None) == "matmul"
        return replace(row, products=row.products + is_product)
    values = [dims.evaluate(d, extents) for d in let.rhs.dims]
    inside = dict(zip(let.rhs.function.dims, values, strict=True))
    lowering = kernelise(let.rhs.function, splits=True)
    arrays = dict.fromkeys((*let.rhs.args, *let.outs))
    least = sum(_bytes(array, extents) for array in arrays)
    if lowering.attention is not None:
        # A kernel of the library, which keeps scores to itself; its arrays count once.
        return replace(
            row, kernels=row.kernels + 1, by_blocks=row.by_blocks + 1, moved=row.moved + least,
            least=row.least + least,
        )
    long = lowering.long
    few = long is not None and dims.evaluate(long.when, inside)
    found = long.kernels if long is not None and few else lowering.kernels
    return replace(
        row, kernels=row.kernels + len(found),
        by_blocks=row.by_blocks + sum(cooperation(kernel) is not None for kernel in found),
        moved=row.moved + sum(
            moved(kernel, values, dims.evaluate(kernel.extent, inside)) for kernel in found
        ),
        least=row.least + least,
    )


def _bytes(atom: Atom, extents: Any) -> int:
    ty = atom.type
    if not isinstance(ty, TensorType) or not ty.shape:
        return 0
    return int(dims.evaluate(dims.product((*ty.shape, ty.dtype.size)), extents))


def table(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = [
        "| program | kernels | by blocks | products | MB moved | MB least | ratio "
        "| MB of arguments and results |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        if r.failed:
            lines.append(f"| {r.program} | {r.failed} | | | | | | |")
            continue
        ratio = f"{r.moved / r.least:.2f}" if r.least else "-"
        lines.append(
            f"| {r.program} | {r.kernels} | {r.by_blocks} | {r.products} | {r.moved / 1e6:.2f} "
            f"| {r.least / 1e6:.2f} | {ratio} | {r.outer / 1e6:.2f} |"
        )
    return "\n".join(lines)


def counted() -> list[Row]:
    """The rows of all programs; what fails is told in its own."""
    rows = []
    for name, program in PROGRAMS.items():
        try:
            rows.append(measured(name, *program))
        except Exception as error:
            rows.append(Row(name, 0, 0, 0, 0, 0, f"{type(error).__name__}: {error}"))
    return rows


def main() -> None:
    rows = counted()
    _write("gpu.json", [asdict(row) for row in rows])
    print(table(rows), end="\n\n", flush=True)
    try:
        driver = cuda.driver()
    except DeviceError as error:
        print(f"Nothing is timed: {error.message}")
        return
    found = gpu_timing.timings(
        list(TIMED), LEAST, ENOUGH,
        lambda found: _write("gpu_times.json", gpu_report.as_json(found, driver.name)),
    )
    print(f"{driver.name}\n\n{gpu_report.table(found.programs)}", flush=True)


def _write(name: str, told: Any) -> None:
    """Write JSON into the folder that was asked for."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
