"""Members of enums by values that only the running program knows."""

from __future__ import annotations

from enum import Enum, IntEnum

import numpy as np

from tests.users.corpus import use


class Op(IntEnum):
    PUSH = 0
    ADD = 1
    MUL = 2


class Base(Enum):
    A = "a"
    B = "b"


class Grade(Enum):
    GOOD = 4
    FAIR = 3
    NONE = 0

    @classmethod
    def _missing_(cls, value):
        return cls.NONE if value < 0 else None


@use(([(0, 2), (0, 3), (1, 0), (0, 5), (2, 0)],), ([(0, 1), (7, 0)],))
def a_machine_of_a_stack(code):
    stack = []
    for op, arg in code:
        match Op(op):
            case Op.PUSH:
                stack.append(arg)
            case Op.ADD:
                stack.append(stack.pop() + stack.pop())
            case Op.MUL:
                stack.append(stack.pop() * stack.pop())
    return stack


@use(("aba",), ("ax",))
def members_of_characters(word):
    return [Base(c).name for c in word]


@use((9, 0), (8, 5), (7, 0))
def a_member_for_what_is_missing(n, k):
    grade = Grade(n % 5 - k)
    return grade, grade.value, Grade(grade) is Grade.NONE


class Mark(IntEnum):
    LOW = -1
    NONE = 0
    HIGH = 1


class Scale(float, Enum):
    HALF = 0.5
    TWICE = 2.0


@use((np.array([3, -4, 0], dtype=np.int8),))
def members_stored_in_arrays(levels):
    marks = np.full(len(levels), Mark.NONE, dtype=np.int8)
    for i in range(len(levels)):
        if levels[i] > 0:
            marks[i] = Mark.HIGH
        elif levels[i] < 0:
            marks[i] = Mark.LOW
    levels[1:] = Mark.LOW
    levels[0] = Mark.HIGH if marks[0] == Mark.LOW else Mark.NONE
    return marks, np.array([Mark.LOW, Mark.HIGH]), np.full(2, Mark.HIGH)


@use((np.array([3, -4, 0], dtype=np.int8), np.float32(1.5)))
def members_beside_numbers_of_numpy(levels, x):
    chosen = Mark.HIGH if levels[0] > 0 else Mark.LOW
    return (
        levels * Mark.LOW, levels ** Mark.HIGH, np.minimum(levels, Mark.NONE),
        np.where(levels > 0, Mark.HIGH, Mark.LOW), levels == Mark.NONE, chosen - levels,
        x * Mark.LOW, x * Scale.HALF, np.maximum(levels, Scale.TWICE), Mark.HIGH < x,
    )


@use((3, 2.5), (-3, 0.5))
def members_beside_numbers_of_python(i, x):
    return i * Mark.LOW, i * Scale.TWICE, x * Mark.LOW, x < Scale.TWICE, max(i, Mark.NONE)
