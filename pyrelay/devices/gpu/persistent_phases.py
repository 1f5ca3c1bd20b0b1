"""The phases of a kernel that runs a loop: its launches.

In: the launches of a loop. Out: lines of `persistent_text`, and the texts of the phases, each once.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyrelay.devices.gpu import (
    cuda_library,
    persistent_held_tiles,
    persistent_product,
    persistent_tiles,
)
from pyrelay.devices.gpu.driver import block_threads
from pyrelay.devices.gpu.hazards import (
    ALL,
    BLOCK,
    GROUP,
    Frozen,
    Owned,
    Pending,
    Places,
    Rows,
    Touched,
    divided,
    is_fixed,
)
from pyrelay.devices.gpu.item_places import moving, places_of
from pyrelay.devices.gpu.launch_guards import bound_of, bound_of_product
from pyrelay.devices.gpu.loads_ahead import ahead, early
from pyrelay.devices.gpu.ownership import (
    Grid,
    Shared,
    Values,
    filled,
    form_of,
    owned,
    owned_places,
    shared,
    spelled,
)
from pyrelay.devices.gpu.persistent_prelude import CELL, LOOK, PHASE, PLAIN, THREADS, meeting
from pyrelay.devices.gpu.stretches import flow
from pyrelay.ir.types import DTYPES, DType
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.passes.narrow import Narrow, narrow
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import AddressOf, Immediate, Launch, Plan, Slot
from pyrelay.lower.text import emit_cuda
from pyrelay.lower.text.cuda_heads import BY_VALUE, parameter_names, stored
from pyrelay.lower.text.emit_ranges import Elements
from pyrelay.records import dataclass

MOST_KEPT = 32 << 10
"""Bytes of weights that a block keeps in shared memory, at most."""

MOST_SHARED = 47 << 10
"""Bytes of shared memory of a kernel: what any GPU gives without being asked."""

LARGEST = 1 << 30
"""Elements of a phase that blocks own parts of, at most: their numbers have 32 bits."""

Emit: TypeAlias = "Callable[..., tuple[str, Narrow | None]]"
"""`emitted`, whose results one that writes a loop in several ways may keep."""

_COMBINED = 1280  # bytes of `pyrelay_combined` and of `pyrelay_in_order`, for the largest ones
_HELD = 8192  # bytes of `pyrelay_held`, for elements of two kinds
_SORT_ROOM = 20480  # bytes of `pyrelay_sort_room` and of `pyrelay_sort_counts`


@dataclass(frozen=True, slots=True)
class _Factor:
    """A product whose tiles are known before the first round: its dtype and its words; whether
    they are those of the elements that blocks own; whether its right operand stays the same."""

    dtype: DType
    words: Sequence[str]
    owned: bool
    stays: bool


def emitted(
    code: kernel_ir.Kernel, packed: bool, owned: Elements | None,
    unknown: frozenset[kernel_ir.Parameter] | None,
) -> tuple[str, Narrow | None]:
    """The text of a phase, and which of its integers have 32 bits: none of them if `unknown`, the
    extents that the host does not know before the loop, is None."""
    small = None if unknown is None else narrow(code, unknown)
    scalars = frozenset[kernel_ir.Local]() if small is None else small.scalars
    text = emit_cuda.emit(code, small=scalars, packed=packed, owned=owned, several=False)
    return text, small


class PhaseWriter:
    """Writes the phases of one loop.

    alike: each thread does the same items in all phases of single threads, so that it need not wait
    for others where items go on with what is their own; otherwise it takes neighbours at once.
    grid: what blocks own elements of, None if they do not. alone: slots that a loop is given and
    does not change, whose buffers no other slot holds. small: whether numbers of elements have 32
    bits; bounds: what bounds them then, as Python of the loop's slots, in order.
    """

    plan: Plan
    part: Sequence[ins.Instruction]
    pending: Pending
    changed: frozenset[int]
    values: Values
    alone: frozenset[int]
    alike: bool
    grid: Grid | None
    emit: Emit
    small: bool
    on_device: frozenset[int]
    beginning = False  # whether phases are written that come before the first round

    def __init__(self) -> None:
        self.bounds: dict[str, None] = {}
        self.boundless = False  # whether numbers of a product's elements are bounded by nothing
        self.phases: dict[str, int] = {}
        self.aheads: dict[int, str] = {}  # texts beside those of phases, by their numbers
        self.asked: list[str] = []  # calls of these
        self.first_loads: list[str] = []  # of what phases are given, before the first round
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.factors: list[_Factor] = []
        self.owned_lines: dict[Frozen, int] = {}  # columns of phases with owned elements: numbers
        self.turned: dict[int, str] = {}  # slots whose buffer takes turns with another: its bytes
        self.turning: set[int] = set()  # those that have done so since all have met
        self.moving: set[Any] = set()  # buffers that are not accessed alike in all rounds
        self.cells = self.weights = 0  # bytes of weights, at most

    @abstractmethod
    def _word(self, operand: Any) -> str:
        """The text of an operand."""

    @abstractmethod
    def _meet(self, look: int = PLAIN) -> None:
        """All threads wait for each other, and leave if there is a reason."""

    @abstractmethod
    def _meet_by_rows(self) -> None:
        """The threads of blocks that share rows wait for each other."""

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _phase(self, source: str) -> int:
        plain = re.sub(r"^#define (BLOCK_THREADS|PACK) \d+\n", "", source, flags=re.MULTILINE)
        plain = plain.replace('extern "C" __global__ void kernel(', f"{PHASE}(")
        return self.phases.setdefault(plain, len(self.phases))

    def _uses(
        self, reads: Sequence[Any], writes: Sequence[Any], places: Places | None = None
    ) -> None:
        """What comes next reads and writes these buffers."""
        waits = self.pending.waits(reads, writes, places)
        if waits == ALL:
            self._meet()
        elif waits == GROUP:
            self._meet_by_rows()
        elif self.grid is not None and self.pending:
            self._line(f"if (!own.on) {meeting()};")
        if waits == BLOCK:
            self._line("__syncthreads();")
            self.pending.joined()
        self.pending.add(reads, writes, places)

    def _launch(self, launch: Launch) -> None:
        kernel = self.plan.kernels[launch.kernel]
        if kernel.code is None and cuda_library.product_of(kernel.source) is not None:
            self._product(launch, kernel.source)
        elif kernel.code is None:
            self._library(launch, kernel.source)
        else:
            self._own(launch, kernel.code)

    def _told(self, operand: Any) -> str:
        """An operand as Python before the loop; "" where the host does not know it there."""
        if isinstance(operand, Immediate):
            return repr(operand.word)
        known = isinstance(operand, Slot) and operand.index not in self.changed | self.on_device
        return f"s{operand.index}" if known else ""

    def _bound(self, *polynomials: Frozen) -> None:
        """Numbers of elements go up to a product of polynomials."""
        names = {name for p in polynomials for monomial, _ in p for name in monomial}
        if any(int(name[1:]) in self.on_device for name in names):
            self.boundless = True
        sums = [" + ".join("*".join([str(c), *m]) for m, c in sorted(p)) for p in polynomials]
        self.bounds["*".join(f"({each or 0})" for each in sums)] = None

    def _emitted(
        self, launch: Launch, code: kernel_ir.Kernel, owned: Elements | None
    ) -> str:
        unknown = frozenset(
            p for p, words in code.split(launch.operands)
            if p.role == kernel_ir.EXTENT and not self._told(words[0])
        )
        source, found = self.emit(
            code, not self.alike, owned, unknown if self.small else None
        )
        if found is not None:
            self.bounds[bound_of(found, launch, code, self._told)] = None
        return source

    def _own(self, launch: Launch, code: kernel_ir.Kernel) -> None:
        given: list[str] = []
        after: list[str] = []
        reads: list[Any] = []
        writes: list[Any] = []
        form = None if self.grid is None else shared(code, launch, self.grid, self.values.now)
        owned_form = None if form is None else Elements(form.column)
        source = self._emitted(launch, code, owned_form)
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
        elsewhere = moving(code, launch, form_of(code)[1], self.values.now)
        self.moving |= {self.pending.buffers.of(operand) for operand in elsewhere}
        places: Places | None = None
        turns: list[int] = []
        extent = [self._word(launch.extent)]
        if form is not None and self.grid is not None:
            places = owned_places(code, launch, self.grid, form, self.values.now)
            extent = [spelled(self.grid.rows), "own", self._owns(form.line)]
            turns = self._turn(code, launch, form, given, reads, writes, places)
        elif self.alike and not block_threads(source):
            places = places_of(code, launch, self.values.now)
        held = ""
        if owned_form is not None and not self.beginning:
            source, held = self._ask(source, launch, code, ["0", *extent, *given])
        self._call(source, launch, extent, [*given, *[held] * bool(held)], reads, writes, places)
        if held:
            self.lines += ["#if ROOM_NEAR", f"{held} = next_{held};", "#endif"]
        for k in turns:
            self._line(f"s{k} = next{k};")
            self.pending.rebound(k)
            self.pending.own(k)
            self.pending.add([], [Slot(k)], places)
        if code.sites:
            self._meet(LOOK)
        elif after and not alone:
            self._meet()
        self.lines += after

    def _ask(
        self, source: str, launch: Launch, code: kernel_ir.Kernel, given: Sequence[str]
    ) -> tuple[str, str]:
        """What a phase loads of what the loop does not change is asked for a round before, where
        it hangs on the number of the round alone: the phase, and the name of what it is given of
        that, if anything."""
        counter = self._counter()
        if counter is None:
            return source, ""
        arrays: set[str] = set()
        changing: set[str] = set()
        names = parameter_names(code)
        for parameter, operands in code.split(launch.operands):
            changed = [w for w in operands if isinstance(w, Slot) and w.index in self.changed]
            if parameter.role == kernel_ir.SCALAR and changed == [Slot(counter)]:
                changing.add(names[parameter])
            elif parameter.role in BY_VALUE and changed:
                return source, ""
            elif parameter.role == kernel_ir.ARRAY and self._stays(operands[0], ()):
                arrays.add(names[parameter])
        text = ahead(source, changing, arrays)
        if not text:
            return source, ""
        words = ", ".join(["record", "0", *given])
        one_way = not any(isinstance(i, ins.Label) or hasattr(i, "label") for i in self.part[1:-1])
        held, filled = early(source, text) if one_way else ("", "")
        number = self._phase(held or source)
        self.aheads[number] = text + filled
        self.asked.append(f"phase{number}::ahead({words});")
        if not held:
            return source, ""
        name = f"early{number}"
        self.declared.append(f"phase{number}::pyrelay_early {name} = {{}}, next_{name} = {{}};")
        self.first_loads.append(f"{name} = phase{number}::early({words});")
        later, goes_on = self._next_round(counter)
        words = re.sub(rf"\bs{counter}\b", later, words)
        self.lines += [
            "#if ROOM_NEAR",
            f"if ({goes_on}) next_{name} = phase{number}::early({words});",
            "#endif",
        ]
        return held, name

    def _next_round(self, counter: int) -> tuple[str, str]:
        """The number of the next round, and whether there is one."""
        last = self.part[-1]
        assert isinstance(last, ins.LoopNext)
        later = f"(s{counter} + {last.step}ll)"
        return later, f"{later} {'<' if last.step > 0 else '>'} {self._word(last.limit)}"

    def _counter(self) -> int | None:
        """The slot that numbers the rounds, if nothing else of a round writes it."""
        *before, last = self.part
        if not isinstance(last, ins.LoopNext):
            return None
        return None if last.counter in flow(self.plan, before)[1] else last.counter

    def _turn(
        self, code: kernel_ir.Kernel, launch: Launch, form: Shared, given: list[str],
        reads: Sequence[Any], writes: list[Any], places: Places,
    ) -> list[int]:
        """Has a phase store to another buffer than others may still read, where it fills one of
        them: the slots whose buffers take turns, which `writes` lose."""
        assert self.grid is not None
        if self.beginning:
            return []
        taken = {p: words[0] for p, words in code.split(launch.operands)}
        found: list[int] = []
        for parameter in filled(code, form, places, taken):
            slot = taken[parameter]
            rest = [w for w in writes if w != slot]
            if len(rest) + 1 != len(writes) or not isinstance(slot, Slot):
                continue
            if slot.index not in self.alone - self.turning - {*self.turned}:
                continue
            waits = [self.pending.waits(reads, each, places) for each in (writes, rest)]
            if waits[0] < GROUP or waits[1] >= GROUP:
                continue
            k = slot.index
            self.turned[k] = (
                f"{spelled(self.grid.rows)} * {spelled(form.line)} * {parameter.dtype.size}"
            )
            self.turning.add(k)
            self._line(f"if (!turns{k}) {meeting()};")
            self._line(f"next{k} = !turns{k} ? s{k} : s{k} == home{k} ? other{k} : home{k};")
            given[code.parameters.index(parameter)] = buffer_text(parameter.dtype.name, f"next{k}")
            writes.remove(slot)
            found.append(k)
        return found

    def _owns(self, line: Frozen) -> str:
        """A phase deals out elements in lines of so many: what the kernel calls these."""
        assert self.grid is not None
        self._bound(self.grid.rows, line)
        return f"line{self.owned_lines.setdefault(line, len(self.owned_lines))}"

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
        launch = persistent_product.as_row(launch)
        axes = (len(launch.operands) - 15) // 3
        words = list(map(self._word, launch.operands))
        told = list(map(self._told, launch.operands[3:]))
        if all(told):
            self.bounds[bound_of_product(told)] = None
        else:
            self.boundless = True
        shared = f"PYRELAY_SHARED({dtype.name}, work_{dtype.name}, {persistent_tiles.WORK});"
        if shared not in self.declared:
            self.declared.append(shared)
        pointers = [buffer_text(f"const {dtype.name}", w) for w in words[:2]]
        pointers.append(buffer_text(dtype.name, words[2]))
        a, b, c = launch.operands[:3]
        size = None if self.beginning else self._owned_product(launch, dtype)
        stays = not axes and self._stays(b, launch.operands[3:])
        shape = [self.values.fixed(each) for each in launch.operands[3:6]]
        if not self.beginning and (stays or size is not None or None not in shape):
            number = len(self.factors)
            kept, split, held = (f"{name}{number}" for name in ("kept", "split", "held"))
            self.factors.append(_Factor(dtype, words, size is not None, stays))
        else:
            kept = "nullptr"
            held = f"pyrelay_held<{dtype.name}, {persistent_product.pack_of(dtype)}>()"
            split = f"pyrelay_split_of<{dtype.name}>({', '.join(words[3:6])}, 0, precision)"
        given = [f"work_{dtype.name}", kept, held, split, *pointers, *words[3:], "precision"]
        reads = [a, b] if launch.operands[8] == Immediate(0) else [a, b, c]
        places = None if size is None else self._product_places(launch, dtype, size)
        extent = [self._word(launch.extent)]
        text = persistent_product.product(dtype, axes, self.beginning)
        self._call(text, launch, extent, given, reads, [c], places)

    def _owned_product(self, launch: Launch, dtype: DType) -> Owned | None:
        """Where a product writes, if blocks own its columns."""
        m, n, k, *_, stride = launch.operands[3:12]
        shape = [self.values.fixed(each) for each in (m, n, k, stride)]
        if self.grid is None or len(launch.operands) > 15 or None in shape:
            return None
        rows, line, _, apart = shape
        assert line is not None
        assert apart is not None
        if rows != self.grid.rows:
            return None
        self._owns(line)
        return owned(self.grid, apart, line, dtype.size)

    def _product_places(self, launch: Launch, dtype: DType, result: Owned) -> Places:
        """Where a product whose columns blocks own accesses its result and its left operand: of
        that a block reads the rows of its elements."""
        a, b, c, *_ = launch.operands
        _, _, k, turned, _, _, line = launch.operands[3:10]
        columns, stride = self.values.fixed(k), self.values.fixed(line)
        found: dict[Any, frozenset[Touched]] = {}
        if a != b and turned == Immediate(0) and columns is not None and stride is not None:
            found[a] = frozenset([Rows(stride, columns, dtype.size)])
        return {**found, c: frozenset([result])}

    def _move(self, target: Any, source: Any, nbytes: Any) -> None:
        """Copies a buffer, or fills it with zeros where there is no source."""
        name, given = ("zero", [target]) if source is None else ("copy", [target, source])
        words = list(map(self._word, given))
        sizes = {size for each in given for size in self._sizes(each)}
        line = None
        if self.grid is not None and len(sizes) == 1:
            (size,) = sizes
            row = frozenset((monomial, count * size) for monomial, count in self.grid.rows)
            found = divided(self.values.now(nbytes), row)
            line = None if found is None else frozenset(found.items())
        if self.grid is None or line is None or not is_fixed(line):
            self._uses(given[1:], [target])
            self._line(f"pyrelay_{name}({', '.join([*words, self._word(nbytes)])});")
            return
        place = frozenset([owned(self.grid, line, line, size, line)])
        name_of_line = self._owns(line)
        self._uses(given[1:], [target], dict.fromkeys(given, place))
        kind = f"u{8 * size}" if size < 16 else "c128"
        given_words = ", ".join(["own", name_of_line, *words])
        self._line(f"pyrelay_{name}_owned<{kind}>({given_words});")

    def _sizes(self, operand: Any) -> set[int]:
        """Of how many bytes a buffer's elements are, where that is known."""
        of, found = self.pending.buffers.of, set()
        for launch in self.part:
            kernel = self.plan.kernels[launch.kernel] if isinstance(launch, Launch) else None
            if kernel is None or kernel.code is None or not isinstance(launch, Launch):
                continue
            for parameter, words in kernel.code.split(launch.operands):
                if not isinstance(words[0], AddressOf) and of(words[0]) == of(operand):
                    found.add(parameter.dtype.size)
        return found

    def _stays(self, right: Any, words: Sequence[Any]) -> bool:
        """Whether the loop changes neither an operand of a product nor its extents."""
        if any(isinstance(w, Slot) and w.index in self.changed for w in (right, *words)):
            return False
        buffer = self.pending.buffers.of(right)
        return all(self.pending.buffers.of(s) != buffer for s in writes_of(self.plan, self.part))

    def _sharing(self) -> list[str]:
        """What comes before the first round: which block owns what, weights to shared memory."""
        lines = [] if self.grid is None else self._owners(self.grid)
        lines += [
            f"const bool turns{k} = own.on && ends{k} == {nbytes};"
            for k, nbytes in self.turned.items()
        ]
        stay = any(factor.stays for factor in self.factors)
        used = sum(shared_bytes(text) for text in (*self.phases, *self.declared))
        room = max(min(MOST_SHARED - used, MOST_KEPT), 0) // CELL if stay else 0
        if room:
            lines += [
                "PYRELAY_SHARED(u64, weights, WEIGHTS / 8);", "char *shelf = (char *)&weights[0];",
            ]
        self.weights = CELL * room
        if self.factors:
            lines.append("i64 space = WEIGHTS;")
            lines.append(f"int registers = {persistent_held_tiles.REGISTERS};")
        for number, factor in enumerate(self.factors):
            t, words = factor.dtype.name, factor.words
            m, n, k, _, turned = words[3:8]
            shape = ", ".join((m, n, k, "space" if factor.stays else "0", "precision"))
            made = f"owned<{t}>(own, {shape})" if factor.owned else f"of<{t}>({shape})"
            lines.append(f"const pyrelay_split split{number} = pyrelay_split_{made};")
            held = f"pyrelay_held<{t}, {persistent_product.pack_of(factor.dtype)}>"
            if not factor.stays or not room:
                lines += [f"{t} *kept{number} = nullptr;", f"const {held} held{number} = {{}};"]
                continue
            b = buffer_text(f"const {t}", words[1])
            told = f"{m}, {n}, {k}, {words[6]}, {turned}, {words[10]}, ROOM_NEAR > 0, space"
            hold = held.replace("held<", "hold<")
            lines += [
                f"{t} *kept{number} = ({t} *)shelf;",
                f"const {held} held{number} = {hold}(split{number}, {b}, {told}, registers);",
                f"if (!held{number}.is && !held{number}.tiled) pyrelay_keep<{t}>("
                f"kept{number}, split{number}, {b}, {n}, {k}, {turned}, {words[10]});",
                f"shelf += held{number}.room, space -= held{number}.room;",
                f"registers -= held{number}.registers;",
            ]
        return [*lines, "__syncthreads();"] if room else lines

    def _owners(self, grid: Grid) -> list[str]:
        """The elements that the block owns, and how those of phases lie."""
        rows, units = spelled(grid.rows), spelled(grid.units)
        own = [factor for factor in self.factors if factor.owned]
        depth = " + ".join(factor.words[5] for factor in own) or "0"
        weights = " + ".join(
            f"{factor.words[5]} * (({factor.words[4]} + {units} - 1) / {units})"
            for factor in own if factor.stays
        )
        size = max((factor.dtype.size for factor in own), default=1)
        holds = [f"{spelled(small)} <= {spelled(large)}" for small, large in self.pending.checks]
        holds += [
            f"{spelled(line)} <= {LARGEST} / {rows}" for line in (grid.units, *self.owned_lines)
        ]
        holds = [f"{rows} >= 1 && {units} >= 1", *sorted(holds)]
        given = [rows, units, depth, weights or "0", f"{MOST_KEPT // size}"]
        return [
            f"const pyrelay_own own = pyrelay_own_of({', '.join(given)}, {' && '.join(holds)});",
            *(
                f"const pyrelay_line line{number} = own.line({rows}, {spelled(line)});"
                for line, number in self.owned_lines.items()
            ),
        ]

    def _library(self, launch: Launch, text: str) -> None:
        source = cuda_library.for_blocks(text, THREADS)
        given: list[str] = []
        reads: list[Any] = []
        writes: list[Any] = []
        for kind, operand in cuda_library.typed(text, launch.operands):
            word = self._word(operand)
            given.append(word if kind is None else buffer_text(kind, word))
            if kind is not None:
                self.moving.add(self.pending.buffers.of(operand))
                (reads if kind.startswith("const ") else writes).append(operand)
        self._call(source, launch, [self._word(launch.extent)], given, reads, writes)
        if cuda_library.can_fail(text):
            self._meet(LOOK)

    def _call(
        self, source: str, launch: Launch, extent: Sequence[str], given: Sequence[str],
        reads: Sequence[Any], writes: Sequence[Any], places: Places | None = None,
    ) -> None:
        self._uses(reads, writes, places)
        number = self._phase(source)
        ident = f"launch + {launch.first_site} * (launch != 0)"
        arguments = ["record", ident, "0", *extent, *given]
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
                    found += [
                        w[0] for p, w in code.split(operands)
                        if p in arrays and p.role not in BY_VALUE
                    ]
            case ins.Copy(target=target) | ins.Zero(target=target):
                found.append(target)
            case ins.Store(address=address):
                found.append(address)
    return found


def shared_bytes(text: str) -> int:
    """Bytes of shared memory that a text takes, at most."""
    named = re.findall(r"PYRELAY_SHARED\(([\w<>]+), \w+, (\d+)\)", text)
    found = sum(_SIZES[kind] * int(count) for kind, count in named)
    found += sum(map(int, re.findall(r"#define WEIGHTS (\d+)", text)))
    found += _HELD * ("pyrelay_of_column(" in text)
    found += _SORT_ROOM * ("pyrelay_sort_room<" in text)
    return found + _COMBINED * len(re.findall(r"pyrelay_(?:combined|in_order)\(", text))


_SIZES = {
    **{name: dtype.size for name, dtype in DTYPES.items()}, "int": 4,
    **{f"pyrelay_affine<{name}>": 2 * dtype.size for name, dtype in DTYPES.items()},
    **{f"pyrelay_{kind}<{name}>": 40 for kind in ("scaled", "map") for name in ("f32", "f64")},
}
