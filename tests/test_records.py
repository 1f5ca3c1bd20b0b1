"""Records: what `dataclasses.dataclass` gives, without what nobody uses being compiled."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from dataclasses import field
from typing import Any, ClassVar

import pytest

from pyrelay import records

PARAMETERS = [
    {}, {"frozen": True}, {"slots": True}, {"eq": False}, {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
]  # fmt: skip


def point(decorator: Any, **parameters: bool) -> Any:
    @decorator(**parameters)
    class Point:
        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list)
        note: str = field(default="", compare=False, repr=False)
        place: int | None = field(default=None, kw_only=True)

        def norm(self) -> int:
            return self.x + self.y

    return Point


def both(**parameters: bool) -> tuple[Any, Any]:
    return point(records.dataclass, **parameters), point(dataclasses.dataclass, **parameters)


def outcome(f: Any, *args: Any, **named: Any) -> Any:
    try:
        return f(*args, **named)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_a_record_is_made_shown_and_compared_like_a_dataclass(parameters: Any) -> None:
    ours, theirs = both(**parameters)
    for args, named in [
        ((1,), {}), ((1, 5), {}), ((1, 5, ["a"]), {"place": 3}), ((), {"x": 4, "note": "n"}),
        ((), {}), ((1, 2, [], "n", 5), {}), ((1,), {"z": 2}),
    ]:  # fmt: skip
        made = outcome(ours, *args, **named), outcome(theirs, *args, **named)
        assert repr(made[0]) == repr(made[1])
        if not isinstance(made[0], tuple):
            assert dataclasses.asdict(made[0]) == dataclasses.asdict(made[1])
            assert made[0].norm() == made[1].norm()
    for cls in (ours, theirs):
        a, b = cls(1), cls(1, note="other")
        assert (a == b) is parameters.get("eq", True)
        assert a != cls(2)
        assert (a == 1) is False
        assert a.names is not b.names
        assert cls.kind == "point"
    assert ours.__match_args__ == theirs.__match_args__
    assert hasattr(ours(1), "__dict__") == hasattr(theirs(1), "__dict__")
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_a_record_is_hashed_changed_and_copied_like_a_dataclass(parameters: Any) -> None:
    def changed(each: Any) -> Any:
        each.y = 7
        return each.y

    def deleted(each: Any) -> Any:
        del each.y
        return hasattr(each, "y")

    ours, theirs = both(**parameters)
    for use in (
        changed, deleted, lambda each: hash(each) == hash(each),
        lambda each: dataclasses.replace(each, x=9, place=1), copy.copy, copy.deepcopy,
        lambda each: [(f.name, f.init, f.kw_only) for f in dataclasses.fields(each)],
        lambda each: dataclasses.is_dataclass(each) and dataclasses.is_dataclass(type(each)),
    ):  # fmt: skip
        found = [outcome(use, cls(1, 2, names=())) for cls in (ours, theirs)]
        assert repr(found[0]) == repr(found[1])


def test_fields_and_methods_are_inherited() -> None:
    found = []
    for decorator in (records.dataclass, dataclasses.dataclass):

        @decorator(frozen=True, slots=True)
        class Base:
            a: int
            b: int = 1

        @decorator(frozen=True, slots=True)
        class Derived(Base):
            b: int = 5
            c: int = 2

            def __post_init__(self) -> None:
                object.__setattr__(self, "c", self.a * 10)

        class Plain(Derived):
            pass

        each = Derived(1)
        found.append(
            [repr(each), each == Derived(1), each == Base(1), hash(each) == hash(Derived(1)),
             repr(Plain(3, 4)), Derived.__slots__, outcome(setattr, Plain(1), "c", 2),
             [f.name for f in dataclasses.fields(Plain)]]
        )  # fmt: skip
    assert found[0] == found[1]


def test_methods_of_the_class_are_kept() -> None:
    @records.dataclass(frozen=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(1))) == ("own", True, 3)


def test_a_field_that_is_set_later_and_one_that_refers_to_itself() -> None:
    @records.dataclass(slots=True)
    class Node:
        label: str
        size: int = field(init=False)
        next: Any = None

    node = Node("a")
    assert not hasattr(node, "size")
    node.size, node.next = 1, node
    assert "Node(label='a', size=1, next=...)" in repr(node)


def test_an_answer_is_worked_out_once_and_kept_beside_the_fields() -> None:
    asked = []

    class Kept:
        __slots__ = ("_twice",)

        @records.once
        def twice(self) -> int:
            """Doubled."""
            asked.append(self)
            return 2 * self.x  # type: ignore[attr-defined, no-any-return]

    @records.dataclass(frozen=True, slots=True)
    class Number(Kept):
        x: int

    one, other = Number(1), Number(2)
    assert [one.twice(), other.twice(), one.twice()] == [2, 4, 2]
    assert asked == [one, other]
    assert Number.twice.__doc__ == "Doubled."
    assert copy.deepcopy(one).twice() == 2


def test_the_package_compiles_no_methods_of_classes_when_it_is_imported() -> None:
    counting = (
        "import dataclasses, sys\n"
        "made, original = [], dataclasses.dataclass\n"
        "def noted(cls=None, /, **named):\n"
        "    made.append(sys._getframe(1).f_globals['__name__'])\n"
        "    return original(cls, **named)\n"
        "dataclasses.dataclass = noted\n"
        "import pyrelay.pipeline\n"
        "print([name for name in made if name.startswith('pyrelay')])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", counting], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
