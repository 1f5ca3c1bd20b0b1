"""Classes that a function defines for itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tests.users.corpus import use


@use(([5, 2, 8, 1, 9],))
def tree_of_a_class_inside(keys):
    class Node:
        made = 3

        def __init__(self, key):
            self.key = key
            self.left = None
            self.right = None

        def insert(self, key):
            if key < self.key:
                if self.left is None:
                    self.left = Node(key)
                else:
                    self.left.insert(key)
            elif self.right is None:
                self.right = Node(key)
            else:
                self.right.insert(key)

        def walk(self):
            before = self.left.walk() if self.left else []
            return [*before, self.key, *(self.right.walk() if self.right else [])]

        @classmethod
        def of(cls, key):
            return cls(key)

        @staticmethod
        def limit():
            return 7

        @property
        def double(self):
            return 2 * self.key

    root = Node.of(keys[0])
    for key in keys[1:]:
        root.insert(key)
    return root.walk(), root.double, Node.limit(), Node.made


@use((2.0,), (0.5,), wrt=(0,), corners=(0, 1))
def records_of_classes_inside(x):
    @dataclass
    class Point:
        x: float
        y: float = 1.0
        tags: list[Any] = field(default_factory=list)

        def norm(self):
            return math.hypot(self.x, self.y)

    class Far(Point):
        def norm(self):
            return super().norm() + 1

    class Mode(Enum):
        NEAR = 1
        FAR = 2

    class Step(NamedTuple):
        size: int
        rate: float = 0.5

    def checked(v):
        class TooFar(ValueError):
            pass

        if v > 1.5:
            raise TooFar("too far")
        return v

    p, q = Point(x), Far(x, y=3.0)
    q.tags.append(1)
    try:
        checked(x)
        said = ""
    except ValueError as error:
        said = str(error)
    return p.norm() + q.norm() * Step(3).rate, Mode(2).name, q.tags, p == Point(x), said
