"""Where the kernel of a loop hands over to the host, and what it puts on a tape.

In: the instructions of a loop, and which of them a kernel can do. Out: blocks that are left to the
host, for which the kernel ends with all its words and begins again in the next round: a list that
grows is allocated now and then, a progress report printed. And the one tape that a kernel pushes
to, or pops from: words in memory that the host lays out for so many rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Slot
from pyrelay.records import dataclass

_LEAVES = (ins.Jump, ins.JumpIf, ins.JumpUnless, ins.LoopNext, ins.Return, ins.Raise)
_ALL_LEAVES = (ins.Jump, ins.Return, ins.Raise)


@dataclass(frozen=True, slots=True)
class Tape:
    """The tape of a loop: its slot; whether it is pushed to or popped from; words of a round, at
    most; for each place that pushes, which of the values are addresses."""

    slot: int
    pushes: bool
    words: int
    sites: tuple[tuple[bool, ...], ...]


def blocks(code: Sequence[ins.Instruction], first: int, last: int) -> list[range]:
    """The places of a part of a function, cut at labels and after jumps."""
    found: list[range] = []
    start = first
    for place in range(first, last):
        if isinstance(code[place], ins.Label) and place > start:
            found.append(range(start, place))
            start = place
        if isinstance(code[place], _LEAVES):
            found.append(range(start, place + 1))
            start = place + 1
    if start < last:
        found.append(range(start, last))
    return found


def left_to_host(
    code: Sequence[ins.Instruction], first: int, last: int,
    is_fit: Callable[[ins.Instruction], bool],
) -> list[range] | None:
    """The blocks of a loop that a kernel cannot do; None where no round goes without them."""
    cut = blocks(code, first, last)
    unfit = [b for b in cut if not all(is_fit(code[k]) for k in b)]
    starts = {
        label.name: n for n, b in enumerate(cut) if isinstance(label := code[b.start], ins.Label)
    }
    head, seen = code[first], {0}
    assert isinstance(head, ins.Label)
    waiting = [] if cut[0] in unfit else [0]
    while waiting:
        number = waiting.pop()
        step = code[cut[number][-1]]
        goal = getattr(step, "label", None)
        if goal is not None and goal == head.name:
            return unfit
        following = [starts[goal]] if goal in starts else []
        if not isinstance(step, _ALL_LEAVES) and number + 1 < len(cut):
            following.append(number + 1)
        fresh = [n for n in following if n not in seen and cut[n] not in unfit]
        seen.update(fresh)
        waiting += fresh
    return None


def tape_of(
    code: Sequence[ins.Instruction], places: Sequence[int], addresses: set[int]
) -> Tape | bool:
    """The tape of the instructions at these places; True if there is none, False if it is not one
    that a kernel may have."""
    steps = [(k, i) for k in places if isinstance(i := code[k], (ins.TapePush, ins.TapePop))]
    if not steps:
        return True
    slots = {i.tape.index for _, i in steps if isinstance(i.tape, Slot)}
    pushes = {isinstance(i, ins.TapePush) for _, i in steps}
    inner = any(_is_inside(code, places, k) for k, _ in steps)
    if len(slots) != 1 or len(pushes) != 1 or inner:
        return False
    sites = tuple(
        tuple(isinstance(v, Slot) and v.index in addresses for v in i.values)
        for _, i in steps if isinstance(i, ins.TapePush)
    )
    words = sum(
        1 + len(i.values) if isinstance(i, ins.TapePush) else len(i.targets) for _, i in steps
    )
    return Tape(slots.pop(), pushes.pop(), words, sites)


def _is_inside(code: Sequence[ins.Instruction], places: Sequence[int], place: int) -> bool:
    """Whether a place is in a loop inside of that at `places`."""
    return _around(code, places, place) > 1


def _around(code: Sequence[ins.Instruction], places: Sequence[int], place: int) -> int:
    """In how many loops a place is."""
    labels = {i.name: k for k in places if isinstance(i := code[k], ins.Label)}
    heads = {
        labels[goal] for k in places
        if (goal := getattr(code[k], "label", None)) in labels and labels[goal] <= place <= k
    }
    return len(heads)


def once_a_round(
    code: Sequence[ins.Instruction], places: Sequence[int], kept: Sequence[int]
) -> bool:
    """Whether none of some places is in a loop inside of that at `places`."""
    return not any(_is_inside(code, places, k) for k in kept)


def counter_of(
    code: Sequence[ins.Instruction], places: Sequence[int], changed: set[int]
) -> tuple[int, Any] | None:
    """The counter of a loop that counts up to a known limit, and that limit."""
    head = code[places[0]]
    assert isinstance(head, ins.Label)
    for k in places:
        step = code[k]
        if (
            isinstance(step, ins.LoopNext) and step.step == 1
            and step.label == head.name
            and not (isinstance(step.limit, Slot) and step.limit.index in changed)
        ):
            return step.counter, step.limit
    return None
