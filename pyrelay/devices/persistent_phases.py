"""The phases of a kernel that runs a loop: its launches.

In: the launches of a loop. Out: lines of `persistent_text`, and the texts of the phases, each once.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from pyrelay.devices import cuda_library, persistent_product
from pyrelay.devices.driver import block_threads
from pyrelay.devices.hazards import Pending, Place
from pyrelay.devices.item_places import places_of
from pyrelay.devices.persistent_prelude import CELL, LOOK, PLAIN, THREADS
from pyrelay.ir.types import DTYPES
from pyrelay.lower import emit_cuda
from pyrelay.lower import instructions as ins
from pyrelay.lower import kernel as kernel_ir
from pyrelay.lower.cuda_heads import stored
from pyrelay.lower.instructions import AddressOf, Launch, Plan, Slot

MOST_KEPT = 32 << 10
"""Bytes of weights that a block keeps in shared memory, at most."""

MOST_SHARED = 47 << 10
"""Bytes of shared memory of a kernel: what any GPU gives without being asked."""

_COMBINED = 512  # bytes of `pyrelay_combined`, for the largest elements
_HELD = 8192  # bytes of `pyrelay_held`, for elements of two kinds


class PhaseWriter:
    """Writes the phases of one loop.

    alike: each thread does the same items in all phases of single threads, so that it need not wait
    for others where items go on with what is their own; otherwise it takes neighbours at once.
    """

    plan: Plan
    part: Sequence[ins.Instruction]
    pending: Pending
    changed: frozenset[int]
    alike: bool

    def __init__(self) -> None:
        self.phases: dict[str, int] = {}
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.kept: list[tuple[str, str, Sequence[str]]] = []  # dtype, split, words of a product
        self.cells = 0
        self.versions: dict[int, int] = {}  # how often a slot was written

    @abstractmethod
    def _word(self, operand: Any) -> str:
        """The text of an operand."""

    @abstractmethod
    def _meet(self, look: int = PLAIN) -> None:
        """All threads wait for each other, and leave if there is a reason."""

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _phase(self, source: str) -> int:
        plain = re.sub(r"^#define (BLOCK_THREADS|PACK) \d+\n", "", source, flags=re.MULTILINE)
        plain = plain.replace('extern "C" __global__ void kernel(', "__device__ void phase(")
        return self.phases.setdefault(plain, len(self.phases))

    def _uses(
        self, reads: Sequence[Any], writes: Sequence[Any],
        places: dict[Any, frozenset[Place | None]] | None = None,
    ) -> None:
        """What comes next reads and writes these buffers."""
        if self.pending.waits(reads, writes, places):
            self._meet()
        self.pending.add(reads, writes, places)

    def _named(self, operand: Any) -> str:
        """What stands for the value that an operand has now."""
        if isinstance(operand, Slot):
            return f"s{operand.index}.{self.versions.get(operand.index, 0)}"
        return self._word(operand)

    def _launch(self, launch: Launch) -> None:
        kernel = self.plan.kernels[launch.kernel]
        if kernel.code is None and cuda_library.product_of(kernel.source) is not None:
            self._product(launch, kernel.source)
        elif kernel.code is None:
            self._library(launch, kernel.source)
        else:
            self._own(launch, kernel.code)

    def _own(self, launch: Launch, code: kernel_ir.Kernel) -> None:
        given: list[str] = []
        after: list[str] = []
        reads: list[Any] = []
        writes: list[Any] = []
        source = emit_cuda.emit(code, packed=not self.alike)
        alone = runs_alone(code, source)
        written = stored(code)
        for parameter, operands in code.split(launch.operands):
            name = parameter.dtype.name
            first = operands[0]
            if isinstance(first, AddressOf):
                place = self._cell(alone)
                given.append(place)
                after.append(f"s{first.index} = {place}[0];")
                if parameter.dtype.size == 16:
                    after.append(f"s{first.index + 1} = {place}[1];")
            elif parameter.role == kernel_ir.SCALAR:
                words = [*map(self._word, operands), "0"][:2]
                given.append(f"pyrelay_scalar<{name}>({', '.join(words)})")
            elif parameter.role == kernel_ir.EXTENT:
                given.append(self._word(first))
            else:
                (writes if parameter in written else reads).append(first)
                kind = name if parameter in written else f"const {name}"
                given.append(buffer_text(kind, self._word(first)))
        if alone:
            source = source.replace(") {\n", f") {{\n{_ALONE}", 1)
        places = None
        if self.alike and not block_threads(source):
            places = places_of(code, launch, self._named)
        self._call(source, launch, given, reads, writes, places)
        if code.sites:
            self._meet(LOOK)
        elif after and not alone:
            self._meet()
        self.lines += after

    def _cell(self, alone: bool) -> str:
        """Where a kernel leaves a scalar: with each thread, or in one of two places of the arena
        that take turns, so that nobody has to wait until all have read it."""
        number = self.cells
        self.cells += 1
        if alone:
            self.declared.append(f"i64 cell{number}[2] = {{0, 0}};")
            return f"cell{number}"
        self.declared.append(f"i64 turn{number} = 0;")
        self._line(f"turn{number} ^= {CELL};")
        return f"((i64 *)(arena + {CELL * (2 * number + 1)} + turn{number}))"

    def _product(self, launch: Launch, text: str) -> None:
        dtype = cuda_library.product_of(text)
        assert dtype is not None
        axes = (len(launch.operands) - 15) // 3
        words = list(map(self._word, launch.operands))
        shared = f"PYRELAY_SHARED({dtype.name}, work_{dtype.name}, {persistent_product.WORK});"
        if shared not in self.declared:
            self.declared.append(shared)
        pointers = [buffer_text(f"const {dtype.name}", w) for w in words[:2]]
        pointers.append(buffer_text(dtype.name, words[2]))
        kept, split = "nullptr", f"pyrelay_split_of({', '.join(words[3:6])}, 0)"
        if not axes and self._stays(launch.operands[1], launch.operands[3:]):
            number = len(self.kept)
            kept, split = f"kept{number}", f"split{number}"
            self.kept.append((dtype.name, split, words))
        given = [f"work_{dtype.name}", kept, split, *pointers, *words[3:]]
        a, b, c = launch.operands[:3]
        self._call(persistent_product.product(dtype, axes), launch, given, [a, b], [c])

    def _stays(self, right: Any, words: Sequence[Any]) -> bool:
        """Whether the loop changes neither an operand of a product nor its extents."""
        if any(isinstance(w, Slot) and w.index in self.changed for w in (right, *words)):
            return False
        buffer = self.pending.buffers.of(right)
        return all(self.pending.buffers.of(s) != buffer for s in writes_of(self.plan, self.part))

    def _keeping(self) -> list[str]:
        """What comes before the first round: weights to shared memory."""
        if not self.kept:
            return []
        used = sum(shared_bytes(text) for text in (*self.phases, *self.declared))
        room = max(min(MOST_SHARED - used, MOST_KEPT), 0) // len(self.kept) // CELL
        lines = [f"PYRELAY_SHARED(u64, weights, {max(2 * room * len(self.kept), 1)});"]
        for number, (t, split, words) in enumerate(self.kept):
            m, n, k, _, turned = words[3:8]
            line = words[10]
            b = buffer_text(f"const {t}", words[1])
            lines += [
                f"{t} *kept{number} = ({t} *)&weights[{2 * room * number}];",
                f"const pyrelay_split {split} = "
                f"pyrelay_split_of({m}, {n}, {k}, {CELL * room}ll / (i64)sizeof({t}));",
                f"pyrelay_keep<{t}>(kept{number}, {split}, {b}, {n}, {k}, {turned}, {line});",
            ]
        return lines

    def _library(self, launch: Launch, text: str) -> None:
        source = cuda_library.for_blocks(text, THREADS)
        given: list[str] = []
        reads: list[Any] = []
        writes: list[Any] = []
        for kind, operand in cuda_library.typed(text, launch.operands):
            word = self._word(operand)
            given.append(word if kind is None else buffer_text(kind, word))
            if kind is not None:
                (reads if kind.startswith("const ") else writes).append(operand)
        self._call(source, launch, given, reads, writes)
        if cuda_library.can_fail(text):
            self._meet(LOOK)

    def _call(
        self, source: str, launch: Launch, given: Sequence[str], reads: Sequence[Any],
        writes: Sequence[Any], places: dict[Any, frozenset[Place | None]] | None = None,
    ) -> None:
        self._uses(reads, writes, places)
        number = self._phase(source)
        ident = f"launch + {launch.first_site} * (launch != 0)"
        arguments = ["record", ident, "0", self._word(launch.extent), *given]
        self._line(f"phase{number}::phase({', '.join(arguments)});")


def buffer_text(kind: str, word: str) -> str:
    """A buffer of elements at an address."""
    return f"PYRELAY_BUFFER({kind}, {word})"


_ALONE = """\
    const pyrelay_alone threadIdx = {0}, blockIdx = {0}, blockDim = {1}, gridDim = {1};
"""


def runs_alone(code: kernel_ir.Kernel, source: str) -> bool:
    """Whether each thread computes a kernel of scalars by itself: then none waits for another. What
    may fail or be stopped is done once."""
    return code.is_scalar and not code.sites and "pyrelay_stopped" not in source


def writes_of(plan: Plan, part: Sequence[ins.Instruction]) -> list[Any]:
    """The operands that are buffers which a part of a plan writes."""
    found: list[Any] = []
    for step in part:
        match step:
            case Launch(kernel=number, operands=operands):
                code = plan.kernels[number].code
                if code is None:
                    typed = cuda_library.typed(plan.kernels[number].source, operands)
                    found += [o for kind, o in typed if kind and not kind.startswith("const ")]
                else:
                    arrays = stored(code)
                    found += [w[0] for p, w in code.split(operands) if p in arrays]
            case ins.Copy(target=target) | ins.Zero(target=target):
                found.append(target)
            case ins.Store(address=address):
                found.append(address)
    return found


def shared_bytes(text: str) -> int:
    """Bytes of shared memory that a text takes, at most."""
    named = re.findall(r"PYRELAY_SHARED\(([\w<>]+), \w+, (\d+)\)", text)
    found = sum(_SIZES[kind] * int(count) for kind, count in named)
    found += _HELD * ("pyrelay_of_column(" in text)
    return found + _COMBINED * len(re.findall(r"pyrelay_(?:combined|in_order)\(", text))


_SIZES = {
    **{name: dtype.size for name, dtype in DTYPES.items()}, "int": 4,
    **{f"pyrelay_affine<{name}>": 2 * dtype.size for name, dtype in DTYPES.items()},
}
