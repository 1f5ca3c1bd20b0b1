"""Random programs in which names share arrays: rebound, swapped, chosen, copied and written.

In: a seed. Out: the source of a function `program(x, y, z, n)` of three float arrays of four items
and an int. All operations are exact on small multiples of 1/2.
"""

from __future__ import annotations

import random

HEADER = """
import numpy as np

def stir(u, v, k):
    if k <= 0:
        return u
    u[0] = u[0] * 0.5 + 1.0
    v[1] = u[0]
    return stir(v, u, k - 1)

def pick(u, v, k):
    return u if k % 2 else v

def mix(u, v, k):
    if k <= 0:
        return v
    w = pick(u, v, k)
    w[2] = 1.5
    return mix(w, u * 0.5, k - 1)

"""

class Sharing:
    """Writes one function."""

    def __init__(self, seed: int, size: int = 10) -> None:
        self.choose = random.Random(seed)
        self.left = size
        self.lines: list[str] = []

    def program(self) -> str:
        """The text of the function."""
        self.put(1, "k = n")
        self.put(1, "w = x[1:]")
        while self.left > 0:
            self.block(1, 0)
        results = ("x, y, z, w", "w, y", "x + y * 2.0 + z * 4.0", "z.sum(), x", "y")
        self.put(1, f"return {self.choose.choice(results)}")
        return HEADER + "def program(x, y, z, n):\n" + "\n".join(self.lines) + "\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self) -> str:
        return self.choose.choice("xyz")

    def item(self) -> str:
        return f"{self.name()}[{self.choose.choice(['0', '1', '-1', 'k % 4'])}]"

    def test(self) -> str:
        tests = (f"{self.item()} > 1.0", "k % 2 == 0", "k > 1", f"{self.name()}.sum() > 4.0",
                 f"{self.name()} is {self.name()}")
        return self.choose.choice(tests)

    def block(self, depth: int, loops: int) -> None:
        for _ in range(self.choose.randint(1, 4)):
            self.statement(depth, loops)

    def statement(self, depth: int, loops: int) -> None:
        self.left -= 1
        a, b, c = self.name(), self.name(), self.name()
        simple = (
            f"{a} = {b}", f"{a} = {b}", f"{a}, {b} = {b}, {a}", f"{a}, {b} = {b}, {a}",
            f"{self.item()} = 1.5", f"{self.item()} = {self.item()} + 0.5",
            f"{a} += {b} * 0.5", f"{a} = {b} * 0.5 + {c}", f"{a}[1:] = {b}[:-1]",
            f"{a} = {b} if {self.test()} else {c}", f"{a}[:] = {b}", f"{a} = {b}.copy()",
            f"w = {a}[1:]", f"w = {a}[:-1]", f"w = {a}[:3] if {self.test()} else {b}[1:]",
            f"w = {a}[k % 2:][:3] if {self.test()} else {b}[1:]", "w = w.copy()", "w[1] = 2.5",
            f"w *= {self.item()}", f"{a}[:-1] = w", f"{a} = stir({b}, {c}, n)",
            f"{a} = mix({b}, {c}, 2)", f"{a} = pick({b}, {c}, k)",
        )
        kind = self.choose.randint(0, len(simple) + 3)
        if kind < len(simple) or depth > 3:
            self.put(depth, simple[kind % len(simple)])
        elif kind < len(simple) + 2:
            self.put(depth, f"if {self.test()}:")
            self.block(depth + 1, loops)
            if self.choose.random() < 0.5:
                self.put(depth, "else:")
                self.block(depth + 1, loops)
        elif loops < 2:
            counter = "q" if loops else "k"
            self.put(depth, f"for {counter} in range({self.choose.choice(['n', '3', 'n + 1'])}):")
            self.block(depth + 1, loops + 1)
