"""Buffers that rounds of a loop take in turns: the same ones as a search would find."""

from __future__ import annotations

import random
import re
from typing import Any

from pyrelay.devices.gpu.arena_places import placed

STATES = [
    "loop0: ;",
    "s5 = pyrelay_take(used0, base0, step0, bytes0);",
    "phase0::phase(s3, s5);",
    "idle7 = s3;",
    "s6 = pyrelay_take(used1, base1, step1, bytes1);",
    "phase1::phase(s5, s6);",
    "idle8 = s5;",
    "s3 = s6;",
    "pyrelay_meet(grid, record, launch, 0);",
    "pyrelay_give(used1, base1, each1, 5, idle7);",
    "idle7 = 0;",
    "pyrelay_give(used0, base0, each0, 5, idle8);",
    "idle8 = 0;",
    "s1 += 1;",
    "if (s1 < s2) goto loop0;",
    "pyrelay_give(used1, base1, each1, 5, s9);",
]


def test_a_state_has_two_buffers_in_turns_and_what_a_round_needs_has_one() -> None:
    assert placed(STATES) == (
        [
            "loop0: ;",
            "s5 = chunk0_0;",
            "PYRELAY_TAKEN(s5, bytes0);",
            "phase0::phase(s3, s5);",
            "s6 = turn == 0 ? chunk1_0 : chunk1_1;",
            "PYRELAY_TAKEN(s6, bytes1);",
            "phase1::phase(s5, s6);",
            "s3 = s6;",
            "pyrelay_meet(grid, record, launch, 0);",
            "s1 += 1;",
            "turn = turn + 1 < 2 ? turn + 1 : 0;",
            "if (s1 < s2) goto loop0;",
        ],
        [
            "const i64 chunk0_0 = base0 + 0 * step0;",
            "const i64 chunk1_0 = base1 + 0 * step1;",
            "const i64 chunk1_1 = base1 + 1 * step1;",
            "int turn = 0;",
        ],
        {0: 1, 1: 2},
    )


def test_loops_with_ways_inside_search() -> None:
    for more in ("inside: ;", "if (s4) goto loop0;"):
        lines = [*STATES[:3], more, *STATES[3:]]
        assert placed(lines) == (lines, [], {})


def test_a_buffer_that_is_one_or_another_is_searched_for() -> None:
    lines = ["s3 = s9 ? s6 : s3;" if line == "s3 = s6;" else line for line in STATES]
    assert placed(lines) == (lines, [], {})


def test_ways_out_of_the_loop_are_no_ways_inside() -> None:
    lines = [STATES[0], "if (!s4) goto finished;", *STATES[1:]]
    assert placed(lines)[0][1] == "if (!s4) goto finished;"
    assert "turn = turn + 1 < 2 ? turn + 1 : 0;" in placed(lines)[0]


def test_what_is_never_given_back_is_searched_for() -> None:
    lines = [line for line in STATES if "give" not in line]
    assert placed(lines) == (lines, [], {})


def taken(lines: list[str], declared: list[str], rounds: int) -> list[Any]:
    """What the lines take, round by round, as C++ would have it: names, groups and numbers."""
    words: dict[str, Any] = {"turn": 0}
    used: set[Any] = set()
    for line in declared:
        if found := re.fullmatch(r"const i64 (\w+) = base(\d) \+ (\d+) \* step\2;", line):
            words[found[1]] = int(found[2]), int(found[3])
    made = []
    for _ in range(rounds):
        for line in lines:
            if found := re.fullmatch(r"(\w+) = pyrelay_take\(used(\d), .*", line):
                free = (k for k in range(64) if (int(found[2]), k) not in used)
                words[found[1]] = int(found[2]), next(free)
                used.add(words[found[1]])
                made.append((found[1], words[found[1]]))
            elif found := re.fullmatch(r"pyrelay_give\(used(\d), .*, (\w+)\);", line):
                given = words.get(found[2])
                used -= {given} if given and given[0] == int(found[1]) else set()
            elif found := re.fullmatch(r"PYRELAY_TAKEN\((\w+), \w+\);", line):
                made.append((found[1], words[found[1]]))
            elif found := re.fullmatch(r"turn = turn \+ 1 < (\d) .*", line):
                words["turn"] = (words["turn"] + 1) % int(found[1])
            elif " ? chunk" in line:
                name, text = line.rstrip(";").split(" = ", 1)
                *choices, last = text.split(" : ")
                turns = dict(re.fullmatch(r"turn == (\d) \? (\w+)", c).groups() for c in choices)
                words[name] = words[turns.get(str(words["turn"]), last)]
            elif found := re.fullmatch(r"(\w+) = (\w+);", line):
                words[found[1]] = words.get(found[2])
    return made


def test_rounds_take_what_a_search_finds() -> None:
    rng = random.Random(0)
    several = 0
    for _ in range(300):
        names = [f"s{k}" for k in range(4)]
        lines = ["loop0: ;"]
        for name in rng.sample(names, rng.randint(1, 4)):
            g = rng.randrange(2)
            old = rng.choice([*names, "idle1"])
            gives = [f"pyrelay_give(used{k}, base{k}, each{k}, 9, {old});" for k in (0, 1)]
            takes = [f"{name} = pyrelay_take(used{g}, base{g}, step{g}, bytes{g});"]
            moves = [f"{rng.choice(names)} = {rng.choice(names)};"]
            for some in rng.sample([gives, takes, moves, [f"idle1 = {name};"]], 4):
                lines += some
        lines.append("if (s1 < s2) goto loop0;")
        found, declared, _ = placed(lines)
        several += "int turn = 0;" in declared
        assert taken(found, declared, 11) == taken(lines, [], 11)
    assert several > 10
