"""Which buffers of its arena each round of a kernel's loop takes, found when the kernel is written.

In: the lines of a loop, in which buffers are looked for among idle ones (`pyrelay_take`) and given
back (`pyrelay_give`). Out: `Placed`, the lines with the buffers themselves in the place of that, if
rounds take the same ones in turns; else the lines as they were.

A round in which control goes one way takes and gives back the same number of buffers in the same
order as the one before, so that after few rounds it begins with what an earlier one has begun with
(the same states, the same future). What a search finds is known then: looking for the first idle
buffer and dividing by the size of buffers are some 70 instructions, each of which waits for the one
before, between a meeting of blocks and the loads behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

MOST_ROUNDS = 8
"""Rounds that are gone through in search of one that has begun like another."""

MOST_TURNS = 4
"""Buffers that a place of the loop takes in turns, at most."""

_LABEL = re.compile(r"(\w+): ;")
_BACK = re.compile(r"(?:if \(.*\) )?goto (\w+);")
_TAKE = re.compile(r"(\w+) = pyrelay_take\(used(\d+), base\d+, step\d+, (bytes\d+)\);")
_GIVE = re.compile(r"pyrelay_give\(used(\d+), .*, (\w+)\);")
_MOVE = re.compile(r"(\w+) = (\w+);")
_WRITE = re.compile(r"\b([a-z]+\d+) = ([^;]*);")
_NAME = re.compile(r"[a-z]+\d+")

_UNKNOWN = (-1, -1)

Chunk: TypeAlias = "tuple[int, int]"
"""A buffer of the arena: which group it is of, its number there."""


class Placed(NamedTuple):
    """The lines of a loop with the buffers that its rounds take, and what is declared before.
    counts: how many buffers of a group they take, by its number; none where they are looked for."""

    lines: list[str]
    declared: list[str]
    counts: dict[int, int]


def placed(lines: Sequence[str]) -> Placed:
    """The lines of a loop, whose buffers are found if that is possible."""
    end = _end(lines)
    taken = None if end is None else _taken(lines[: end + 1])
    if end is None or taken is None:
        return Placed(list(lines), [], {})
    period = max(map(len, taken.values()))
    made: list[str] = []
    declared: dict[str, None] = {}
    counts: dict[int, int] = {}
    for number, line in enumerate(lines):
        take = _TAKE.fullmatch(line)
        if number == end and period > 1:
            made.append(f"turn = turn + 1 < {period} ? turn + 1 : 0;")
        if take is not None:
            name, group, nbytes = take.groups()
            found = taken[number]
            counts[int(group)] = max(counts.get(int(group), 0), *(chunk + 1 for chunk in found))
            for chunk in found:
                place = f"base{group} + {chunk} * step{group}"
                declared[f"const i64 chunk{group}_{chunk} = {place};"] = None
            made.append(f"{name} = {_chosen(group, found)};")
            made.append(f"PYRELAY_TAKEN({name}, {nbytes});")
        elif _GIVE.fullmatch(line) is None and not line.startswith("idle"):
            made.append(line)
    return Placed(made, [*declared, *["int turn = 0;"] * (period > 1)], counts)


def _chosen(group: str, found: Sequence[int]) -> str:
    """The buffer of a round, by the number of its turn."""
    names = [f"chunk{group}_{chunk}" for chunk in found]
    text = names[-1]
    for turn in reversed(range(len(names) - 1)):
        text = f"turn == {turn} ? {names[turn]} : {text}"
    return text


def _end(lines: Sequence[str]) -> int | None:
    """The line that begins the next round, where control goes through the others in order."""
    head = _LABEL.fullmatch(lines[0]) if lines else None
    if head is None or any(_LABEL.fullmatch(line) for line in lines[1:]):
        return None
    back = [n for n, line in enumerate(lines) if re.search(rf"goto {head[1]};", line)]
    if len(back) != 1 or not _BACK.fullmatch(lines[back[0]]):
        return None
    later = lines[back[0] + 1 :]
    return None if any(_TAKE.fullmatch(line) for line in later) else back[0]


def _taken(lines: Sequence[str]) -> dict[int, list[int]] | None:
    """What the takes of rounds find, by line, as often as it takes for rounds to begin alike; None
    where that is not known, or does not come soon."""
    held: dict[str, Chunk] = {}
    used: set[Chunk] = set()
    seen: list[object] = []
    rounds: list[dict[int, int]] = []
    while len(seen) < MOST_ROUNDS:
        state = (frozenset(held.items()), frozenset(used))
        if state in seen:
            return _turns(rounds, seen.index(state))
        seen.append(state)
        found = _round(lines, held, used)
        if found is None:
            return None
        rounds.append(found)
    return None


def _turns(rounds: Sequence[dict[int, int]], first: int) -> dict[int, list[int]] | None:
    """The turns of each line, if those of the rounds from `first` on fit those before, too."""
    period = len(rounds) - first
    turns = [rounds[first + (number - first) % period] for number in range(period)]
    if not rounds[0] or period > MOST_TURNS or any(
        found != turns[number % period] for number, found in enumerate(rounds)
    ):
        return None
    by_line = {line: [each[line] for each in turns] for line in turns[0]}
    return {line: found[:1] if len({*found}) == 1 else found for line, found in by_line.items()}


def _round(
    lines: Sequence[str], held: dict[str, Chunk], used: set[Chunk]
) -> dict[int, int] | None:
    """Goes through a round: what its takes find. held: the buffers that names stand for, of those
    of the arena."""
    found: dict[int, int] = {}
    for number, line in enumerate(lines):
        if take := _TAKE.fullmatch(line):
            name, group = take[1], int(take[2])
            chunk = next(k for k in range(len(used) + 1) if (group, k) not in used)
            used.add((group, chunk))
            held[name] = group, chunk
            found[number] = chunk
        elif give := _GIVE.fullmatch(line):
            given = held.get(give[2])
            if given == _UNKNOWN:
                return None
            if given is not None and given[0] == int(give[1]):
                used.discard(given)
        elif move := _MOVE.fullmatch(line):
            _hold(held, move[1], held.get(move[2]))
        else:
            for name, text in _WRITE.findall(line):
                # Whether it is written may hang on something.
                arena = name in held or any(each in held for each in _NAME.findall(text))
                _hold(held, name, _UNKNOWN if arena else None)
    return found


def _hold(held: dict[str, Chunk], name: str, chunk: Chunk | None) -> None:
    if chunk is None:
        held.pop(name, None)
    else:
        held[name] = chunk
