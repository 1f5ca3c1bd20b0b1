"""Which block of a persistent kernel owns which elements.

In: the phases of a loop. Out: `Grid`s, rows and columns of elements that blocks may share out once
for all phases, and the places where a phase accesses buffers if it is dealt out so.

"The owner computes" (Rogers and Pingali, "Process decomposition through locality of reference",
1989): a block that computes the columns of a product which its own elements read later needs no
other block for these. Recurrent networks have several such columns for each element, gates side by
side, as many columns apart as there are elements; persistent ones deal them out so by hand (Diamos
et al., "Persistent RNNs", 2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyrelay.devices.gpu.hazards import Frozen, Owned, Places, divided, is_fixed
from pyrelay.devices.gpu.item_places import (
    COLUMN,
    ITEM,
    Polynomial,
    Valued,
    accesses,
    product,
    sum_of,
    value_of,
)
from pyrelay.lower.kernels.kernel import (
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Parameter,
    Read,
    Store,
    While,
    statements,
)
from pyrelay.lower.passes.column_blocks import column_blocks
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Immediate, Launch, Slot
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows and columns of what blocks share: the columns of a block's elements are so many, or a
    multiple of that, apart."""

    rows: Frozen
    units: Frozen

    @property
    def single(self) -> bool:
        """Whether there is one row."""
        return self.rows == frozenset([((), 1)])


@dataclass(frozen=True, slots=True)
class Shared:
    """A phase as its elements: the loop over the columns of its rows, None where an item is an
    element; how many columns a row has."""

    column: For | None
    line: Frozen


@dataclass(frozen=True, slots=True)
class Extents:
    """How many items a launch has, and how many columns each of them, by a loop over these; None
    for both where an item is an element."""

    items: Polynomial
    columns: Polynomial | None
    loop: For | None

    def line_in(self, rows: Frozen) -> Frozen | None:
        """The columns of so many rows of elements; None if they do not lie in as many."""
        if self.columns is None:
            line = divided(self.items, rows)
        else:
            line = self.columns if frozenset(self.items.items()) == rows else None
        return None if line is None else frozenset(line.items())


def form_of(kernel: Kernel) -> tuple[bool, For | None]:
    """Whether a kernel's elements may be dealt out one by one; its loop over the columns of an
    item, where that is a row."""
    if kernel.sites or kernel.routines or column_blocks(kernel) is not None:
        return False, None
    if any(isinstance(s, While) or (isinstance(s, For) and s.program)
           for s in statements(kernel.body)):
        return False, None
    *before, loop = kernel.body or (None,)
    whole = isinstance(loop, For) and loop.start is kernel.begin and loop.stop is kernel.end
    if not whole or not all(isinstance(s, (Compute, Read)) for s in before):
        return False, None
    assert isinstance(loop, For)
    shared = cooperation(kernel)
    if shared is None:
        return True, None
    *first, column = loop.body
    if not isinstance(column, For) or list(shared.loops) != [column] or shared.loops[column]:
        return False, None
    # An element is computed without the others of its row.
    plain = all(isinstance(s, (Compute, Read, Load)) for s in first)
    inside = all(isinstance(s, (Compute, Load, Store, If)) for s in statements(column.body))
    begins = isinstance(column.start, Literal) and column.start.value == 0
    written = {s.array for s in statements(column.body) if isinstance(s, Store)}
    again = any(isinstance(s, Load) and s.array in written for s in first)
    if plain and inside and begins and not again and isinstance(column.stop, Local):
        return True, column
    return False, None


def extents_of(kernel: Kernel, launch: Launch, valued: Valued) -> Extents | None:
    """A launch's elements; None if they cannot be dealt out."""
    fits, column = form_of(kernel)
    if not fits:
        return None
    items = valued(launch.extent)
    if column is None:
        return Extents(items, None, None)
    given = {p: words[0] for p, words in kernel.split(launch.operands)}
    reads = {s.out: s.parameter for s in statements(kernel.body) if isinstance(s, Read)}
    stop = column.stop
    assert isinstance(stop, Local)
    if stop not in reads:
        return None
    return Extents(items, valued(given[reads[stop]]), column)


def shared(kernel: Kernel, launch: Launch, grid: Grid, valued: Valued) -> Shared | None:
    """How a kernel's elements lie in a grid; None if they do not, or change how."""
    extents = extents_of(kernel, launch, valued)
    if extents is None:
        return None
    line = extents.line_in(grid.rows)
    return Shared(extents.loop, line) if line is not None and is_fixed(line) else None


def owned_places(
    kernel: Kernel, launch: Launch, grid: Grid, form: Shared, valued: Valued
) -> dict[Any, frozenset[Owned | None]]:
    """Where a phase accesses buffers, by operand."""
    given = {p: words[0] for p, words in kernel.split(launch.operands)}
    found: dict[Any, set[Owned | None]] = {}
    for parameter, index in accesses(kernel, form.column):
        found.setdefault(given[parameter], set()).add(
            _owned(parameter, index, given, grid, form, valued)
        )
    return {operand: frozenset(each) for operand, each in found.items()}


def _owned(
    parameter: Parameter, index: Polynomial | None, given: Mapping[Any, Any], grid: Grid,
    form: Shared, valued: Valued,
) -> Owned | None:
    if index is None:
        return None
    rest = dict(index)
    stride: Polynomial = {}
    if rest.pop((ITEM if form.column is None else COLUMN,), 0) != 1:
        return None
    if form.column is not None:
        for monomial in [m for m in rest if ITEM in m]:
            left = list(monomial)
            left.remove(ITEM)
            stride[tuple(left)] = rest.pop(monomial)
    if any(name in monomial for p in (rest, stride) for monomial in p for name in (ITEM, COLUMN)):
        return None
    rows = form.line if form.column is None else frozenset(
        value_of(stride, given, valued).items()
    )
    addend = frozenset(value_of(rest, given, valued).items())
    return Owned(
        rows, addend, grid.units, form.line, grid.single, parameter.dtype.size, form.line
    )


def filled(
    kernel: Kernel, form: Shared, places: Places, given: Mapping[Parameter, Any]
) -> list[Parameter]:
    """The parameters of which each element of a phase stores one, all from the first on, and which
    it does not read."""
    *_, loop = kernel.body
    assert isinstance(loop, For)
    body = loop.body if form.column is None else form.column.body
    every = list(statements(kernel.body))
    found = []
    for store in body:
        if not isinstance(store, Store) or not isinstance(store.array, Parameter):
            continue
        touched = [s for s in every if isinstance(s, (Load, Store)) and s.array == store.array]
        first = all(
            isinstance(p, Owned) and not p.addend and p.stride == form.line
            for p in places[given[store.array]]
        )
        if touched == [store] and first:
            found.append(store.array)
    return found


def owned(
    grid: Grid, stride: Frozen, line: Frozen, size: int, lanes: Frozen | None = None
) -> Owned:
    """Where a phase accesses a matrix whose elements it deals out, from the first one on."""
    return Owned(stride, frozenset(), grid.units, line, grid.single, size, lanes)


def grids(
    products: Sequence[tuple[Frozen, Frozen]], extents: Sequence[Extents]
) -> list[Grid]:
    """What blocks may share out in a loop: rows of its products (their rows and columns), and
    columns of these or of its other phases."""
    found: dict[Grid, None] = {}
    for rows in dict.fromkeys(m for m, _ in products):
        for each in extents:
            line = each.line_in(rows)
            if line:
                found[Grid(rows, line)] = None
        for m, n in products:
            if m == rows:
                found[Grid(rows, n)] = None
    return [
        grid for grid in found
        if len(grid.units) == 1 and is_fixed(grid.units) and is_fixed(grid.rows)
    ]


class Values:
    """The words of a loop as polynomials of those that it is given.

    Slots that it changes have another name each time they are written; of others it is known how
    they were computed by sums and products.
    """

    def __init__(
        self, code: Sequence[ins.Instruction], given: Iterable[int], changed: Iterable[int]
    ) -> None:
        self.given, self.changed = frozenset(given), frozenset(changed)
        self.versions: dict[int, int] = {}
        counts: dict[int, int] = {}
        self.defined: dict[int, tuple[str, Any, Any]] = {}
        for step in code:
            target = getattr(step, "target", None)
            if isinstance(target, int):
                counts[target] = counts.get(target, 0) + 1
            match step:
                case ins.Binary("add.i64" | "sub.i64" | "mul.i64" as op, made, a, b):
                    self.defined[made] = op, a, b
        for slot in [k for k in self.defined if counts[k] > 1 or k in self.changed]:
            del self.defined[slot]

    def wrote(self, slot: int) -> None:
        """A slot has another value from now on."""
        self.versions[slot] = self.versions.get(slot, 0) + 1

    def now(self, operand: Any) -> Polynomial:
        """The value that an operand has now."""
        if isinstance(operand, Immediate):
            return {(): operand.word} if operand.word else {}
        if not isinstance(operand, Slot):
            return {(str(operand),): 1}
        if operand.index in self.changed:
            return {(f"s{operand.index}.{self.versions.get(operand.index, 0)}",): 1}
        found = self._computed(operand)
        return {(f"s{operand.index}",): 1} if found is None else found

    def _computed(self, operand: Any) -> Polynomial | None:
        """An operand by what the loop is given; None where that is not known."""
        if isinstance(operand, Immediate):
            return self.now(operand)
        if operand.index in self.defined:
            op, *args = self.defined[operand.index]
            a, b = map(self._computed, args)
            if a is not None and b is not None:
                sign = -1 if op == "sub.i64" else 1
                return product(a, b) if op == "mul.i64" else sum_of(a, b, sign)
        return {(f"s{operand.index}",): 1} if operand.index in self.given else None

    def fixed(self, operand: Any) -> Frozen | None:
        """The value of an operand that is the same in all rounds."""
        value = frozenset(self.now(operand).items())
        return value if is_fixed(value) else None


def spelled(polynomial: Frozen) -> str:
    """A polynomial of words as an expression of the kernel."""
    terms = sorted(
        " * ".join([f"{count}ll", *map(str, monomial)]) for monomial, count in polynomial
    )
    return f"({' + '.join(terms)})" if terms else "0ll"
