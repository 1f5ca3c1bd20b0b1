"""Members of enums by values that only the running program knows."""

from __future__ import annotations

from enum import Enum, IntEnum

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
