"""Reductions of leading axes, shared by the threads of a GPU's block.

In: a kernel that adds rows into small arrays with an element per column (`schedule.py`,
`column_schedule.py`). Out: a `ColumnBlocks`: the loops over columns, and those over rows that are
dealt out. None for another kernel.

One block does an item of the parallel axis, a chunk of rows. Its threads stand side by side along
the columns, in as many lanes as there is room for: a thread keeps the element of its column, every
lane takes its share of the rows, and the shares are combined by pairs. Neighbouring threads read
neighbouring elements. All threads run what stands between such loops, and the first lane stores.
Who takes which row and what is added to what is fixed: results are the same in every run.
"""

from __future__ import annotations

from pyrelay.lower.kernels.kernel import (
    ROW,
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Load,
    LocalArray,
    Operand,
    Parameter,
    Read,
    Store,
    operands,
    statements,
)
from pyrelay.lower.passes.cooperation import free_order
from pyrelay.records import dataclass

BLOCK_THREADS = 256


@dataclass(frozen=True, slots=True)
class Share:
    """An array of which each lane has a part: combine them with `primitive`, whose reduction is
    called `op` in `reductions.identity`."""

    array: LocalArray
    primitive: str
    op: str


@dataclass(frozen=True, slots=True)
class ColumnBlocks:
    """The loops over columns; the loops over rows with what is combined after each; which of them
    store what later ones may read."""

    columns: frozenset[For]
    rows: dict[For, tuple[Share, ...]]
    storing: frozenset[For]


class _UnfitError(Exception):
    """The kernel does something else as well."""


def column_blocks(kernel: Kernel) -> ColumnBlocks | None:
    """How the threads of a block share the rows and columns of an item, None if they should not."""
    arrays = {s.array for s in statements(kernel.body) if isinstance(s, (Load, Store))}
    small = [a for a in arrays if isinstance(a, LocalArray)]
    if kernel.routines or not small or any(a.size > BLOCK_THREADS for a in small):
        return None
    found = _Finder(kernel)
    try:
        found.visit(kernel.body)
    except _UnfitError:
        return None
    if not any(found.rows.values()):
        return None
    # What is stored and read again lies in rows that one thread each has to itself.
    dealt = {id(s) for loop in found.rows for s in statements(loop.body)}
    if any(
        isinstance(s, (Load, Store)) and s.array in found.both and id(s) not in dealt
        for s in statements(kernel.body)
    ):
        return None
    return ColumnBlocks(frozenset(found.columns), found.rows, frozenset(found.storing))


class _Finder:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        every = list(statements(kernel.body))
        self.stored = {s.array for s in every if isinstance(s, Store)}
        self.both = {
            s.array for s in every
            if isinstance(s, Load) and s.array in self.stored and isinstance(s.array, Parameter)
        }
        self.storing: list[For] = []
        self.columns: list[For] = []
        self.rows: dict[For, tuple[Share, ...]] = {}
        self.width: Operand | None = None

    def visit(self, body: Body) -> None:
        """Notes the loops of a body that is not one of columns."""
        for statement in body:
            match statement:
                case Compute() | Read():
                    pass
                case Load(array=Parameter()):
                    self._touch(statement)
                case For(program=False):
                    if any(isinstance(s, For) for s in statement.body):
                        self.visit(statement.body)
                        if statement.stop is not self.kernel.end:
                            self._deal(statement)
                    else:
                        self._column(statement)
                case _:
                    raise _UnfitError

    def _touch(self, access: Load | Store) -> None:
        """Elements that are stored and read again have to be those of one round."""
        array = access.array
        own = isinstance(array, Parameter) and array.role == ROW
        if array in self.both and (own or not access.parallel):
            raise _UnfitError

    def _column(self, loop: For) -> None:
        """A loop over columns touches its own elements only."""
        start = loop.start
        if not (isinstance(start, Literal) and start.value == 0):
            raise _UnfitError
        if self.width is not None and not _same(loop.stop, self.width):
            raise _UnfitError
        self.width = loop.stop
        for statement in loop.body:
            match statement:
                case Compute() | Read():
                    pass
                case Load(array=LocalArray()) | Store(array=LocalArray()):
                    if statement.index is not loop.index:
                        raise _UnfitError
                case Load() | Store():
                    self._touch(statement)
                case _:
                    raise _UnfitError
        self.columns.append(loop)

    def _deal(self, loop: For) -> None:
        """Notes a loop over rows if its rounds may be dealt out."""
        shares: list[Share] = []
        stores = False
        for statement in loop.body:
            if not isinstance(statement, For):
                continue
            if statement not in self.columns:
                return
            found = _shares(statement.body)
            if found is None:
                return
            shares += found
            stores = stores or any(
                isinstance(s, Store) and isinstance(s.array, Parameter) for s in statement.body
            )
        if (shares or stores) and len({s.array for s in shares}) == len(shares):
            self.rows[loop] = tuple(shares)
            if stores:
                self.storing.append(loop)


def _same(a: Operand, b: Operand) -> bool:
    both = isinstance(a, Literal) and isinstance(b, Literal)
    return a.value == b.value if both else a is b  # type: ignore[union-attr]


def _shares(body: Body) -> list[Share] | None:
    """What a loop over columns adds to each of the small arrays that it stores to; None where it
    does more than adding."""
    loads = {s.out: s for s in body if isinstance(s, Load)}
    makers = {s.out: s for s in body if isinstance(s, Compute)}
    found: list[Share] = []
    for store in (s for s in body if isinstance(s, Store)):
        array = store.array
        if isinstance(array, Parameter):
            if not store.parallel or array.role == ROW:
                return None
            continue
        if not isinstance(array, LocalArray):
            return None
        step = makers.get(store.value)  # type: ignore[arg-type]
        if step is None:
            return None
        op = free_order(step.primitive, array.dtype)
        own = [out for out, load in loads.items() if load.array is array]
        users = [s for s in body if own and own[0] in operands(s)]
        if op is None or len(own) != 1 or users != [step] or step.args.count(own[0]) != 1:
            return None
        if sum(store.value in operands(s) for s in body) != 1:
            return None
        found.append(Share(array, step.primitive, op))
    return found
