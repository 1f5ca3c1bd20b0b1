"""Random Python programs as text: loops, branches, exits, tuples, arrays that are written.

In: choices (of Hypothesis, or of `random.Random`). Out: the source of a function
`program(x, y, n, a, b)` of two floats, an int, and two float arrays of one length >= 2.

All numbers stay small multiples of 1/4 and all operations on them are exact, so that plain Python,
the interpreter and compiled code agree bit for bit and no branch flips.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

HEADER = '''
import numpy as np

def tame(v):
    v = np.floor(v * 4.0) * 0.25
    return max(-8.0, min(8.0, v))

def tamed(v):
    return np.clip(np.floor(v * 4.0) * 0.25, -8.0, 8.0)

def stir(v, target, k):
    target[k % len(target)] += v
    if v > 2.0:
        return v - 2.0
    return v + target[0]

def down(k, v):
    if k <= 0:
        return v
    return tame(down(k - 1, v * 0.5 + 1.0) - v)

def evens(k, v):
    return v if k <= 0 else odds(k - 1, v + 0.25)

def odds(k, v):
    return -v if k <= 0 else evens(k - 1, v * 0.5)

'''


class Choices(Protocol):
    """What the writer asks for: `random.Random` has both."""

    def randint(self, a: int, b: int) -> int: ...
    def choice(self, seq: Sequence[Any]) -> Any: ...


class Drawn:
    """Choices drawn by Hypothesis; the first of each choice is the simplest."""

    def __init__(self, draw: Callable[[int, int], int]) -> None:
        self.draw = draw

    def randint(self, a: int, b: int) -> int:
        return self.draw(a, b)

    def choice(self, seq: Sequence[Any]) -> Any:
        return seq[self.draw(0, len(seq) - 1)]


class Writer:
    """Writes one function. The names in scope are kept by kind; all are set on every path."""

    def __init__(self, choose: Choices, size: int) -> None:
        self.choose = choose
        self.left = size
        self.lines: list[str] = []
        self.floats, self.ints, self.arrays = ["x", "y"], ["n"], ["a", "b"]
        self.frozen: set[str] = set()  # loop counters, which the program must not set
        self.iterated: set[str] = set()  # arrays that a loop runs over
        self.count = 0

    def program(self) -> str:
        """The text of the module."""
        self.block(1, loops=0)
        self.put(1, f"return {self.result()}")
        return HEADER + "def program(x, y, n, a, b):\n" + "\n".join(self.lines) + "\n"

    # -- pieces ------------------------------------------------------------------------------------

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def float(self) -> str:
        match self.choose.randint(0, 9):
            case 0 | 1 | 2:
                return self.choose.choice(self.floats)
            case 3:
                return self.choose.choice(["0.5", "1.0", "-2.25", "3.0", "0.0"])
            case 4:
                return f"({self.float()} {self.choose.choice('+-*')} {self.float()})"
            case 5:
                return f"{self.choose.choice(self.arrays)}[{self.position()}]"
            case 6:
                return f"{self.choose.choice(['max', 'min'])}({self.float()}, {self.float()})"
            case 7:
                return f"abs({self.float()})"
            case 8:
                return f"({self.float()} if {self.test()} else {self.float()})"
            case _:
                array = self.choose.choice(self.arrays)
                return self.choose.choice(
                    [
                        f"np.sum({array})", f"np.max({array})", f"{array}.min()",
                        f"float({self.int()})",
                    ]
                )

    def int(self) -> str:
        match self.choose.randint(0, 6):
            case 0 | 1 | 2:
                return self.choose.choice(self.ints)
            case 3:
                return str(self.choose.randint(0, 3))
            case 4:
                return f"({self.int()} {self.choose.choice(['+', '-', '*'])} {self.int()}) % 5"
            case 5:
                return f"({self.int()} // {self.choose.choice(['2', '3'])})"
            case _:
                return f"len({self.choose.choice(self.arrays)})"

    def position(self) -> str:
        match self.choose.randint(0, 3):
            case 0:
                return self.choose.choice(["0", "-1", "1"])
            case _:
                return f"({self.int()}) % len(a)"

    def array(self) -> str:
        first = self.choose.choice(self.arrays)
        match self.choose.randint(0, 8):
            case 0:
                return f"{first} + {self.choose.choice(self.arrays)}"
            case 1:
                return f"{first} * {self.float()}"
            case 2:
                return f"np.where({first} > {self.float()}, {first}, {self.float()})"
            case 3:
                return f"np.maximum({first}, {self.choose.choice(self.arrays)})"
            case 4:
                return f"{first}[::-1] - {self.choose.choice(self.arrays)}"
            case 5:
                return f"np.concatenate(({first}[1:], {self.choose.choice(self.arrays)}[:1]))"
            case 6:
                return f"np.full(len({first}), {self.float()})"
            case 7:
                return f"{first} * 0.5 - np.abs({self.choose.choice(self.arrays)})"
            case _:
                return f"np.cumsum({first})"

    def test(self) -> str:
        match self.choose.randint(0, 6):
            case 0 | 1:
                return f"{self.float()} {self.choose.choice(['<', '>', '<=', '>='])} {self.float()}"
            case 2:
                return f"{self.int()} {self.choose.choice(['<', '>', '==', '!='])} {self.int()}"
            case 3:
                return f"({self.test()}) {self.choose.choice(['and', 'or'])} ({self.test()})"
            case 4:
                return f"not {self.choose.choice(self.floats)} > 1.0"
            case 5:
                return f"0.0 < {self.choose.choice(self.floats)} <= 4.0"
            case _:
                return f"np.any({self.choose.choice(self.arrays)} > {self.float()})"

    def result(self) -> str:
        parts = [self.choose.choice(self.floats), self.choose.choice(self.arrays)]
        return f"{parts[0]}, {self.choose.choice(self.ints)}, tamed({parts[1]})"

    # -- statements --------------------------------------------------------------------------------

    def block(self, depth: int, loops: int) -> None:
        """A few statements; names that they make are out of scope afterwards."""
        kept = list(self.floats), list(self.ints), list(self.arrays)
        for _ in range(self.choose.randint(1, 4)):
            self.left -= 1
            simple = (self.set_float, self.set_array, self.store, self.store, self.call, self.swap)
            kinds: tuple[Callable[[int, int], None], ...] = (*simple, self.set_int, self.raising)
            if self.left > 0 and depth < 5:
                kinds += (self.branch, self.branch, self.count_up, self.wait, self.over, self.leave)
            self.choose.choice(kinds)(depth, loops)
        if depth > 1:
            self.floats, self.ints, self.arrays = kept

    def set_float(self, depth: int, loops: int) -> None:
        name = self.choose.choice([*self.floats, self.fresh("f")])
        self.put(depth, f"{name} = tame({self.float()})")
        if name not in self.floats:
            self.floats.append(name)

    def set_int(self, depth: int, loops: int) -> None:
        free = [i for i in self.ints if i not in self.frozen]
        name = self.choose.choice([*free, self.fresh("i")])
        self.put(depth, f"{name} = ({self.int()}) % 7")
        if name not in self.ints:
            self.ints.append(name)

    def set_array(self, depth: int, loops: int) -> None:
        mine = [a for a in self.arrays if a not in self.iterated]
        name = self.choose.choice([*mine, self.fresh("c")])
        value = f"tamed({self.array()})"
        if self.choose.randint(0, 4) == 4:
            value = self.choose.choice(self.arrays)  # another name of the same array
            if self.choose.randint(0, 1):
                value += ".copy()"
        self.put(depth, f"{name} = {value}")
        if name not in self.arrays:
            self.arrays.append(name)

    def store(self, depth: int, loops: int) -> None:
        name = self.choose.choice(self.arrays)
        match self.choose.randint(0, 5):
            case 0 | 1 | 2:
                self.put(depth, f"{name}[{self.position()}] = tame({self.float()})")
            case 3:
                self.put(depth, f"{name}[{self.position()}] += 0.25")
            case 4:
                self.put(depth, f"{name}[1:] = tame({self.float()})")
            case _:
                self.put(depth, f"{name}[:-1] = tamed({self.choose.choice(self.arrays)}[1:])")

    def call(self, depth: int, loops: int) -> None:
        name = self.fresh("f")
        match self.choose.randint(0, 2):
            case 0:
                array = self.choose.choice(self.arrays)
                self.put(depth, f"{name} = tame(stir(tame({self.float()}), {array}, {self.int()}))")
            case 1:
                self.put(depth, f"{name} = down({self.int()}, tame({self.float()}))")
            case _:
                self.put(depth, f"{name} = tame(evens({self.int()}, tame({self.float()})))")
        self.floats.append(name)

    def swap(self, depth: int, loops: int) -> None:
        kind = self.choose.choice([self.floats, self.arrays])
        if kind is self.arrays:
            kind = [a for a in kind if a not in self.iterated] or ["a"]
        one, other = self.choose.choice(kind), self.choose.choice(kind)
        self.put(depth, f"{one}, {other} = {other}, {one}")

    def raising(self, depth: int, loops: int) -> None:
        number = self.choose.choice(self.ints)
        if self.choose.randint(0, 3) == 0:
            test = f"{self.float()} > 7.0 and {self.test()}"
            self.put(depth, f"if {test}:")
            self.put(depth + 1, f"raise ValueError(f'number {{{number}}}')")
        else:
            self.put(depth, f"assert {number} < 100, 'too large'")

    def branch(self, depth: int, loops: int) -> None:
        self.put(depth, f"if {self.test()}:")
        self.block(depth + 1, loops)
        if self.choose.randint(0, 2) == 0:
            self.put(depth, f"elif {self.test()}:")
            self.block(depth + 1, loops)
        if self.choose.randint(0, 1):
            self.put(depth, "else:")
            self.block(depth + 1, loops)

    def leave(self, depth: int, loops: int) -> None:
        self.put(depth, f"if {self.test()}:")
        ways = ["return", "break", "continue"] if loops else ["return"]
        way = self.choose.choice(ways)
        self.put(depth + 1, f"return {self.result()}" if way == "return" else way)

    def count_up(self, depth: int, loops: int) -> None:
        index = self.fresh("k")
        bounds = self.choose.choice(
            [
                self.choose.choice("023"), "n", "len(a)", "1, n + 1", "n, 0, -1",
                f"({self.int()}) % 4",
            ]
        )
        self.put(depth, f"for {index} in range({bounds}):")
        self.inside(depth, loops, ints=[index])

    def over(self, depth: int, loops: int) -> None:
        item, array = self.fresh("v"), self.choose.choice(self.arrays)
        saved = set(self.iterated)
        self.iterated.add(array)
        if self.choose.randint(0, 1):
            self.put(depth, f"for {item} in {array}:")
            self.inside(depth, loops, floats=[item])
        else:
            index = self.fresh("k")
            self.put(depth, f"for {index}, {item} in enumerate({array}):")
            self.inside(depth, loops, floats=[item], ints=[index])
        self.iterated = saved

    def wait(self, depth: int, loops: int) -> None:
        counter = self.fresh("w")
        self.put(depth, f"{counter} = 0")
        self.put(depth, f"while {counter} < 3 and ({self.test()}):")
        self.put(depth + 1, f"{counter} += 1")
        self.inside(depth, loops, ints=[counter])

    def inside(
        self, depth: int, loops: int, floats: Sequence[str] = (), ints: Sequence[str] = ()
    ) -> None:
        """The body of a loop, with names of its own, and sometimes an else."""
        kept = list(self.floats), list(self.ints)
        self.floats += floats
        self.ints += ints
        self.frozen |= set(ints)
        self.block(depth + 1, loops + 1)
        self.floats, self.ints = kept
        if self.choose.randint(0, 5) == 0:
            self.put(depth, "else:")
            self.block(depth + 1, loops)


_made = 0


def function_of(text: str, name: str = "program") -> Callable[..., Any]:
    """A function of a module's text; its source can be found."""
    global _made
    _made += 1
    filename = f"<random program {_made}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, filename, "exec"), namespace)
    made: Callable[..., Any] = namespace[name]
    return made


def arguments() -> list[tuple[Any, ...]]:
    """Calls to try: lengths, signs and counts differ; arrays once the same one."""
    a = np.array([1.0, -2.5, 3.25, 0.0, -0.75])
    b = np.array([0.5, 4.0, -1.0, 2.25, 6.0])
    return [
        (1.5, -2.0, 3, a.copy(), b.copy()),
        (-0.25, 0.0, 0, b[:2].copy(), a[1:3].copy()),
        (6.5, 3.0, 4, b.copy(), a.copy()),
    ]
