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
    pairs = {m: o for m, o in begun.items() if ended.get(m) is o}
    places: dict[Local, int] = {}
    for n, s in enumerate(nest.before):
        if isinstance(s, Assign) and s.variable in pairs:
            places.setdefault(s.variable, n)
    begins = 1 + max(places.values(), default=-1)
    ahead, first = nest.before[:begins], nest.before[begins:]
    pairs = {m: o for m, o in pairs.items() if _only_handed((*ahead, *nest.after), nest, m, o)}
    mine, behind = set(pairs), read_by(nest.after)
    later = behind | read_by(nest.inner.body)
    if not _Choice(None, mine).is_none_of(first, later) and _asked(first, mine, later) is None:
        return nest, set()
    found = _asked(nest.inner.body, mine, behind)
    return (nest, set()) if found is None else (_compared(nest, pairs, found), mine)


def _asked(body: Body, mine: set[Local], behind: set[Operand]) -> Compute | None:
    """What is asked where a body sets all variables, if it does so in this way."""
    uses = Counter(o for s in statements(body) for o in operands(s))
    for asked in statements(body):
        if isinstance(asked, Compute) and asked.primitive in _STRICT and uses[asked.out] == 1:
            leaders = [a for a in asked.args if a in mine]
            if len(leaders) == 1 and _Choice(asked, mine).is_all_of(body, behind):
                return asked
    return None


def _copies(body: Body) -> dict[Local, Local]:
    """The variables that a body sets, in any case and at first to what another one is."""
    found: dict[Local, Local] = {}
    touched: set[Operand] = set()
    for s in body:
        match s:
            case Assign(variable=variable, value=Local(variable=True) as value):
                if variable not in touched:
                    found[variable] = value
        for each in statements((s,)):
            touched.update(operands(each))
            if isinstance(each, Assign):
                touched.add(each.variable)
    return found


def _only_handed(ends: Body, nest: Nest, mine: Local, ours: Local) -> bool:
    """Whether neither variable is read or set in front of a row and behind it otherwise than from
    one to the other, and only `mine` in it."""
    every = list(statements(ends))
    read = Counter(o for s in every for o in operands(s))
    was_set = Counter(s.variable for s in every if isinstance(s, Assign))
    inside = list(statements(nest.body))
    used = Counter(o for s in inside for o in operands(s))
    changed = Counter(s.variable for s in inside if isinstance(s, Assign))
    return (
        read[mine] == read[ours] == was_set[mine] == was_set[ours] == 1
        and used[ours] == changed[ours] == 1
    )


_Held: TypeAlias = "dict[Operand, tuple[str, Local]]"
"""What holds one of the variables: as it was when the round began, or as the choice left it."""


class _UnlikeError(Exception):
    """The variables are used in another way."""


class _Choice:
    """Follows variables through a round which may set all of them, if the answer to a question is
    yes, and touches them nowhere else; or through what only hands them on."""

    def __init__(self, asked: Compute | None, mine: set[Local]) -> None:
        self.asked, self.mine = asked, mine
        self.met = False
        self.holding: set[Local] = set()

    def is_all_of(self, body: Body, read: set[Operand]) -> bool:
        """Whether a round changes the variables so, to what does not hang on them, and what else
        it has of them is not read behind all rounds."""
        return self._holds(body, read, _CHOSEN)

    def is_none_of(self, body: Body, read: set[Operand]) -> bool:
        """Whether it leaves them as they were, and what else it has of them is not read later."""
        return self._holds(body, read, _OLD)

    def _holds(self, body: Body, read: set[Operand], kind: str) -> bool:
        try:
            held = self._through(body, {v: (_OLD, v) for v in self.mine}, behind=False)
        except _UnlikeError:
            return False
        return not (self.holding - self.mine) & read and all(
            held.get(v) == (kind, v) for v in self.mine
        )

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
                    is_choice = self.asked is not None and cond is self.asked.out and not met
                    held = self._chosen(s, held) if is_choice else self._either(s, held, behind)
                    behind |= self.met and not met
                case _ if read:
                    raise _UnlikeError
        return held

    def _chosen(self, branch: If, held: _Held) -> _Held:
        """What is held behind the choice: one arm sets all anew, the other keeps all."""
        assert self.asked is not None
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
