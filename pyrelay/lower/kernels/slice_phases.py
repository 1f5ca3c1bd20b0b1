"""Which loops a kernel takes over the elements of each slice, and what it keeps between them.

In: a fused group and its results. Out: `SlicePlan`: the slices (rows or columns), the phases in
order, and the variables that are stored in one phase and loaded in a later one, each with its
buffer.

A reduction of a slice's elements is known after the phase that makes it, so what depends on it
belongs to the next one (a softmax has three phases: maximum; exponentials and their sum;
quotients). An element that two phases need is computed again if that is cheap. Otherwise it is
stored: in the buffer of a result that is written later, else in a slice of the kernel's own.
Buffers are given out by linear scan (Poletto and Sarkar, TOPLAS 21, 1999) over the phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Function, Let, OpCall, Var
from pyrelay.ir.op import Fusion, Op
from pyrelay.ir.types import DType, TensorType, Type
from pyrelay.lower.kernels.reduced_first import reduced_first
from pyrelay.lower.kernels.schedule import Result
from pyrelay.opt.shapes import shape_of
from pyrelay.opt.slices import Kept, kept_axes
from pyrelay.opt.storage_facts import CHEAP
from pyrelay.records import dataclass

Shape = tuple[Extent, ...]

#: Cheap ops that are computed again rather than stored and loaded.
_MOST_REPEATED = 8

#: Where elements are computed `again`: cheap ops that another one counts for, how many in all, and
#: how many arrays they are made of; a store and a load take as long as two of these.
_COSTLY, _MOST_WORK, _MOST_READ = 4, 24, 2


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where a variable is kept between phases: a result's array, or a slice of the kernel's own."""

    result: Result | None
    number: int = 0  # of the kernel's own slice
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class Phase:
    """One loop over the elements `inner` of a slice; `level` reductions come before it.

    `twins` are the Lets, by the reduction that is computed for them: they differ in shape only.
    """

    inner: Shape
    level: int
    reductions: list[Let] = field(default_factory=list)
    twins: dict[Let, list[Let]] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    saved: list[Var] = field(default_factory=list)
    loaded: list[Var] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """The loops of a kernel over slices.

    slice_results  results with one number per slice.
    own            the kernel's own slices: element type and axes.
    levels         how many reductions in a row a variable depends on.
    late           of `slice_results`, those that a loop of their own computes from what reductions
                   leave (`reduced_first.py`), and what that is.
    """

    kept: Kept
    phases: tuple[Phase, ...]
    slice_results: tuple[Result, ...]
    buffers: dict[Var, Buffer]
    own: tuple[tuple[DType, Shape], ...]
    levels: dict[Atom, int]
    late: dict[Result, tuple[Var, ...]] = field(default_factory=dict)

    @property
    def stored_first(self) -> tuple[Var, ...]:
        """What `late` results are computed from."""
        return tuple(dict.fromkeys(var for found in self.late.values() for var in found))

    @property
    def results(self) -> tuple[Result, ...]:
        """All results that the kernel writes."""
        return (*self.slice_results, *(r for phase in self.phases for r in phase.results))


def slice_plan(
    function: Function, results: Sequence[Result], is_pure: Callable[[Let], bool], *,
    again: bool = False,
) -> SlicePlan | None:
    """How to compute results slice by slice; None if no reductions of rows or columns make them.

    Reductions of columns or of everything that neither an element nor another reduction depends on
    are left to other schedules. `again`: elements of rows are computed again
    rather than stored, exponentials and the like as well.
    """
    axes = {let: kept_axes(let) for let in function.body.lets}
    reductions = [let for let, kept in axes.items() if kept is not None]
    kept = axes[reductions[0]] if reductions else None
    if kept is None or any(axes[let] != kept for let in reductions):
        return None
    if kept.is_trivial or not all(map(is_pure, reductions)):
        return None
    plan = _Planner(function, kept, reductions, again and not kept.columns).plan(results)
    if plan is None or (kept.axes and not kept.columns):
        return plan
    later = [p for p in plan.phases if p.level]
    return plan if any(p.results or p.reductions for p in later) else None


class _Planner:
    def __init__(
        self, function: Function, kept: Kept, reductions: Sequence[Let], again: bool
    ) -> None:
        self.function, self.kept, self.again = function, kept, again
        self.lets = {out: let for let in function.body.lets for out in let.outs}
        self.reductions = set(reductions)
        self.inners = {kept.reduced(shape_of(_operand(let))) for let in reductions}
        self.level: dict[Atom, int] = {}
        for let in function.body.lets:
            assert isinstance(let.rhs, OpCall)
            level = max((self.level.get(a, 0) for a in let.rhs.args), default=0)
            self.level.update(dict.fromkeys(let.outs, level + (let in self.reductions)))

    def plan(self, results: Sequence[Result]) -> SlicePlan | None:
        if self.kept.columns:  # rows are reduced in front of a loop over their elements anyhow
            self.inners |= {
                self.kept.reduced(r.shape) for r in results if self.level.get(r.source, 0)
            }
        phases: dict[tuple[int, Shape], Phase] = {}

        def phase(atom: Atom) -> Phase:
            inner, level = self.kept.reduced(shape_of(atom)), self.level.get(atom, 0)
            assert inner is not None
            return phases.setdefault((level, inner), Phase(inner, level))

        for let in self.function.body.lets:
            if let in self.reductions:
                phase(_operand(let)).reductions.append(let)
        slice_results: list[Result] = []
        for result in results:
            if result.update is not None:
                continue
            if self.kept.is_slice(result.shape):
                slice_results.append(result)
            elif self._is_full(result.source):
                phase(result.source).results.append(result)
        ordered = [phases[key] for key in sorted(phases, key=lambda key: key[0])]
        # What is not needed for these results is not computed: another kernel does it.
        ordered = self._needed(ordered, slice_results)
        if not any(p.reductions for p in ordered):
            return None
        lives = self._lives(ordered)
        buffers, own = _placed(lives, ordered)
        return SlicePlan(
            self.kept, tuple(ordered), tuple(slice_results), buffers, own, self.level,
            self._late(ordered, slice_results),
        )

    def _late(
        self, phases: Sequence[Phase], slice_results: Sequence[Result]
    ) -> dict[Result, tuple[Var, ...]]:
        """The results of slices for which the kernel has another loop."""
        if self.again or self.kept.columns:
            return {}
        roots = [_operand(let) for p in phases for let in p.reductions]
        roots += [r.source for p in phases for r in p.results]
        inside = {out for let in self._behind(roots) for out in let.outs}
        lets = self.function.body.lets
        found = {r: reduced_first(r, lets, inside) for r in slice_results}
        return {result: stored for result, stored in found.items() if stored}

    def _needed(self, phases: list[Phase], slice_results: Sequence[Result]) -> list[Phase]:
        """The phases with the reductions that the results depend on."""
        roots = [r.source for p in phases for r in p.results] + [r.source for r in slice_results]
        read = set(self._behind(roots))
        for phase in phases:
            alike: dict[tuple[Op, Atom], list[Let]] = {}
            for let in phase.reductions:
                if let in read:
                    assert isinstance(let.rhs, OpCall)
                    alike.setdefault((let.rhs.op, _operand(let)), []).append(let)
            phase.twins = {lets[0]: lets for lets in alike.values()}
            phase.reductions = list(phase.twins)
        return [p for p in phases if p.reductions or p.results]

    def _behind(self, roots: Sequence[Atom]) -> Iterator[Let]:
        """Every Let that some atoms are computed from."""
        pending, seen = list(roots), set(roots)
        while pending:
            let = self.lets.get(pending.pop())  # type: ignore[arg-type]
            if let is None:
                continue
            yield let
            assert isinstance(let.rhs, OpCall)
            fresh = [a for a in let.rhs.args if a not in seen]
            seen.update(fresh)
            pending += fresh

    # -- what is kept between phases -----------------------------------------------------------

    def _is_full(self, atom: Atom) -> bool:
        """Whether an atom is computed here, with an element per element of some slice."""
        shape = shape_of(atom)
        inner = self.kept.reduced(shape)
        if atom not in self.lets or inner is None:
            return False
        return inner in self.inners and not self.kept.is_slice(shape)

    def _lives(self, phases: Sequence[Phase]) -> dict[Var, tuple[int, int]]:
        """Variables to keep: the phase that computes them, and the last that reads them."""
        first: dict[Var, int] = {}
        stored = {r.source: n for n, p in enumerate(phases) for r in p.results}
        lives: dict[Var, tuple[int, int]] = {}
        for number, phase in enumerate(phases):
            roots = [_operand(let) for let in phase.reductions]
            roots += [r.source for r in phase.results]
            pending, seen = list(roots), set(roots)
            while pending:
                var = pending.pop()
                if not self._is_full(var):
                    continue
                assert isinstance(var, Var)
                if first.setdefault(var, number) < number and (
                    stored.get(var, number) < number or self._is_costly(var)
                ):
                    lives[var] = first[var], number
                    phase.loaded.append(var)
                    continue
                rhs = self.lets[var].rhs
                assert isinstance(rhs, OpCall)
                if rhs.op.fusion is not Fusion.ELEMENTWISE:
                    continue  # it reads elements at other places
                fresh = [a for a in rhs.args if a not in seen]
                seen.update(fresh)
                pending += fresh
        for var, (start, _) in lives.items():
            phases[start].saved.append(var)
        return lives

    def _is_costly(self, var: Var) -> bool:
        """Whether an element had better be stored than computed again."""
        lets = list(self._behind_element(var))
        if not self.again:
            cheap = all(isinstance(x.rhs, OpCall) and x.rhs.op.name in CHEAP for x in lets)
            return not cheap or len(lets) > _MOST_REPEATED
        work, read = 0, set[Atom]()
        for let in lets:
            assert isinstance(let.rhs, OpCall)
            if let.rhs.op.name in CHEAP:
                work += 1
            elif let.rhs.op.fusion is Fusion.ELEMENTWISE:
                work += _COSTLY
            else:
                return True
            read.update(a for a in let.rhs.args if self._is_read(a))
        return work > _MOST_WORK or len(read) > _MOST_READ

    def _is_read(self, atom: Atom) -> bool:
        """Whether an atom is an array in memory with an element for each element of a slice."""
        shape = shape_of(atom)
        return atom not in self.lets and bool(shape) and not self.kept.is_slice(shape)

    def _behind_element(self, var: Var) -> Iterator[Let]:
        """The Lets that are computed for each element of a variable."""
        pending: list[Atom] = [var]
        seen: set[Atom] = set(pending)
        while pending:
            atom = pending.pop()
            if not isinstance(atom, Var) or atom not in self.lets:
                continue
            if self.kept.is_slice(shape_of(atom)):
                continue  # once per slice
            let = self.lets[atom]
            yield let
            assert isinstance(let.rhs, OpCall)
            fresh = [a for a in let.rhs.args if a not in seen]
            seen.update(fresh)
            pending += fresh


def _placed(
    lives: dict[Var, tuple[int, int]], phases: Sequence[Phase]
) -> tuple[dict[Var, Buffer], tuple[tuple[DType, Shape], ...]]:
    """A buffer for each variable that is kept."""
    written = {r: n for n, phase in enumerate(phases) for r in phase.results}
    own_result = {r.source: r for r in reversed(written)}
    free: dict[Result, int] = dict.fromkeys(written, -1)  # the last phase that reads it otherwise
    own: list[tuple[DType, Shape]] = []
    last: list[int] = []
    buffers: dict[Var, Buffer] = {}
    for var, (start, end) in sorted(lives.items(), key=lambda item: item[1][0]):
        if var in own_result and written[own_result[var]] == start:
            buffers[var] = Buffer(own_result[var])
            continue
        ty = var.type
        assert isinstance(ty, TensorType)
        lent = next(
            (
                r for r, n in written.items()
                if n >= end and free[r] <= start and _same_layout(r.source.type, ty)
            ),
            None,
        )
        if lent is not None:
            free[lent] = end
            buffers[var] = Buffer(lent)
            continue
        piece = ty.dtype, phases[start].inner
        number = next((k for k, p in enumerate(own) if p == piece and last[k] <= start), len(own))
        if number == len(own):
            own.append(piece)
            last.append(end)
        last[number] = end
        buffers[var] = Buffer(None, number, ty.dtype)
    return buffers, tuple(own)


def _same_layout(a: Type | None, b: TensorType) -> bool:
    return isinstance(a, TensorType) and (a.shape, a.dtype) == (b.shape, b.dtype)


def _operand(let: Let) -> Atom:
    assert isinstance(let.rhs, OpCall)
    return let.rhs.args[0]
