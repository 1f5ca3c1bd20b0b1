"""The greatest number of a table is that of each row first.

In: a loop around a loop, in which rows hand on the greatest number so far, or the least, and what
was noted where it was found. Out: the same, in which each row compares what it has found, at its
end:

    for i in rows:                                  for i in rows:
        best, at = most, place                          best, at = most, place
        for j in columns:                               for j in columns:
            if x > best: best, at = x, j        as          if x > best: best, at = x, j
        most, place = best, at                          if best > most: most, place = best, at

A row may then begin with what was known some rows before: it finds numbers that are greater than
that, the first of the greatest among them, and of several rows that find the same one the first row
is taken, as by the loop. Numbers that are NaN are never taken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeAlias

from pyrelay.ir.types import bool_
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    If,
    Load,
    Local,
    Operand,
    operands,
    statements,
)
from pyrelay.lower.passes.lane_blocks import read_by
from pyrelay.lower.passes.row_lags import Nest

_STRICT = frozenset(["less", "greater"])
_OLD, _CHOSEN = "old", "chosen"


def with_row_extremes(nest: Nest) -> tuple[Nest, set[Local]]:
    """The nest whose rows compare at their end, and the variables that hold what each row found;
    the nest itself, and none, where there is nothing of the kind in it."""
    begun = _copies(nest.before)  # what a row finds, to what all rows have found
    ended = {mine: ours for ours, mine in _copies(nest.after).items()}
    pairs = {m: o for m, o in begun.items() if ended.get(m) is o and _only_handed(nest, m, o)}
    uses = Counter(o for s in statements(nest.inner.body) for o in operands(s))
    behind = read_by(nest.after)
    for asked in statements(nest.inner.body):
        if isinstance(asked, Compute) and asked.primitive in _STRICT and uses[asked.out] == 1:
            leaders = [a for a in asked.args if a in pairs]
            choice = _Choice(asked, set(pairs))
            if len(leaders) == 1 and choice.is_all_of(nest.inner.body, behind):
                return _compared(nest, pairs, asked), set(pairs)
    return nest, set()


def _copies(body: Body) -> dict[Local, Local]:
    """The variables that a body sets once, in any case and to what another one is."""
    every = Counter(s.variable for s in statements(body) if isinstance(s, Assign))
    return {
        s.variable: s.value for s in body
        if isinstance(s, Assign) and every[s.variable] == 1
        and isinstance(s.value, Local) and s.value.variable
    }  # fmt: skip


def _only_handed(nest: Nest, mine: Local, ours: Local) -> bool:
    """Whether neither variable is read or set otherwise than from one to the other, and `mine` in
    the columns."""
    around = (*nest.before, *nest.after)
    read = Counter(o for s in statements(around) for o in operands(s))
    columns = list(statements(nest.inner.body))
    used = {o for s in columns for o in operands(s)} | {
        s.variable for s in columns if isinstance(s, Assign)
    }
    return read[mine] == read[ours] == 1 and ours not in used


_Held: TypeAlias = "dict[Operand, tuple[str, Local]]"
"""What holds one of the variables: as it was when the round began, or as the choice left it."""


class _UnlikeError(Exception):
    """The variables are used in another way."""


class _Choice:
    """Follows variables through a round which may set all of them, if the answer to a question is
    yes, and touches them nowhere else."""

    def __init__(self, asked: Compute, mine: set[Local]) -> None:
        self.asked, self.mine = asked, mine
        self.met = False
        self.holding: set[Local] = set()

    def is_all_of(self, body: Body, read: set[Operand]) -> bool:
        """Whether a round changes the variables so, to what does not hang on them, and what else
        it has of them is not read behind all rounds."""
        try:
            held = self._through(body, {v: (_OLD, v) for v in self.mine}, behind=False)
        except _UnlikeError:
            return False
        if (self.holding - self.mine) & read:
            return False
        return all(held.get(v) == (_CHOSEN, v) for v in self.mine)

    def _through(self, body: Body, held: _Held, *, behind: bool) -> _Held:
        """What is held behind a body. Behind the choice nobody may read what was there before."""
        held = dict(held)
        for s in body:
            read = [held[o] for o in operands(s) if o in held]
            if behind and any(kind == _OLD for kind, _ in read):
                raise _UnlikeError
            match s:
                case Compute() if s is self.asked and [kind for kind, _ in read] == [_OLD]:
                    pass
                case Assign(variable=variable, value=value):
                    held.pop(variable, None)
                    if value in held:
                        held[variable] = held[value]
                        self.holding.add(variable)
                case If(cond=cond) if not read:
                    met = self.met
                    is_choice = cond is self.asked.out and not met
                    held = self._chosen(s, held) if is_choice else self._either(s, held, behind)
                    behind |= self.met and not met
                case _ if read:
                    raise _UnlikeError
        return held

    def _chosen(self, branch: If, held: _Held) -> _Held:
        """What is held behind the choice: one arm sets all anew, the other keeps all."""
        every = (*branch.then, *branch.orelse)
        inside = [o for s in statements(branch.then) for o in operands(s)]
        if any(o in held for o in inside) or not all(isinstance(s, Assign) for s in branch.orelse):
            raise _UnlikeError
        new = {s.variable: s.value for s in branch.then if isinstance(s, Assign)}
        kept = {s.variable: held.get(s.value) for s in branch.orelse if isinstance(s, Assign)}
        found = {o: h for o, h in held.items() if o not in new and o not in kept}
        for variable, value in new.items():
            before = kept.get(variable, held.get(variable))
            if before is None or before[0] != _OLD:
                raise _UnlikeError  # rows that begin with less would set that more often
            self.holding.add(variable)
            if before[1] in self.asked.args and value not in self.asked.args:
                raise _UnlikeError  # what is compared is not what is taken
            found[variable] = _CHOSEN, before[1]
        self.met = {v for kind, v in found.values() if kind == _CHOSEN} == self.mine
        if not self.met or any(not isinstance(s, Assign | Compute | Load) for s in every):
            raise _UnlikeError
        return found

    def _either(self, branch: If, held: _Held, behind: bool) -> _Held:
        """What is held behind any other branch, whichever arm has been taken."""
        then = self._through(branch.then, held, behind=behind)
        orelse = self._through(branch.orelse, held, behind=behind)
        return {
            o: max(then[o], orelse[o], key=lambda h: h[0] == _CHOSEN)
            for o in then.keys() & orelse.keys() if then[o][1] is orelse[o][1]
        }  # fmt: skip


def _compared(nest: Nest, pairs: dict[Local, Local], asked: Compute) -> Nest:
    """The nest with a comparison at the end of each row."""
    (mine,) = [a for a in asked.args if a in pairs]
    args = tuple(pairs[a] if isinstance(a, Local) and a in pairs else mine for a in asked.args)
    better = Local(bool_)
    ends = tuple(s for s in nest.after if isinstance(s, Assign) and s.value in pairs)
    kept = [s for s in nest.after if s not in ends]
    return replace(
        nest, after=(*kept, Compute(better, asked.primitive, args), If(better, ends))
    )
