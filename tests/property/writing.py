"""Random Python programs as text, over all that the language has.

In: choices (of Hypothesis, or of `random.Random`). Out: the source of a function
`program(x, y, n, a, b)` of two floats, an int, and two float arrays of one length >= 2, which calls
what `prelude` defines.

A construct is one method of `Writer` in `SIMPLE` or `NESTING`: it writes lines and enters the names
it makes in `Scope`, whose lists hold names that are set on every path to this place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np


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


@dataclass
class Scope:
    """Names by what they hold. Arrays have the length of `a`; the others need not."""

    floats: list[str] = field(default_factory=lambda: ["x", "y"])
    ints: list[str] = field(default_factory=lambda: ["n"])
    arrays: list[str] = field(default_factory=lambda: ["a", "b"])
    views: list[str] = field(default_factory=list)  # one-dimensional, at least one element
    matrices: list[str] = field(default_factory=list)  # len(a) by len(a)
    lists: list[str] = field(default_factory=list)  # of floats, at least one
    growing: list[str] = field(default_factory=list)  # of floats, perhaps none
    pairs: list[str] = field(default_factory=list)  # (float, int)
    tables: list[str] = field(default_factory=list)  # {"p": float, "q": array}
    cells: list[str] = field(default_factory=list)  # objects of class Cell
    functions: list[str] = field(default_factory=list)  # of a float, to a float
    flags: list[str] = field(default_factory=list)  # bools
    perhaps: list[str] = field(default_factory=list)  # floats or None

    def copy(self) -> Scope:
        return Scope(*(list(getattr(self, f.name)) for f in fields(self)))


class Writer:
    """Writes one function of about `size` statements."""

    def __init__(self, choose: Choices, size: int) -> None:
        self.choose = choose
        self.left = size
        self.lines: list[str] = []
        self.scope = Scope()
        self.frozen: set[str] = set()  # loop counters, which the program must not set
        self.iterated: set[str] = set()  # arrays that a loop runs over
        self.count = 0
        self.loops = 0  # around this place, in this function

    def program(self) -> str:
        """The text of the program."""
        while self.left > 0:
            self.statement(1)
        self.put(1, f"return {self.result()}")
        return "def program(x, y, n, a, b):\n" + "\n".join(self.lines) + "\n"

    # -- pieces ------------------------------------------------------------------------------------

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def one(self, *ways: Any) -> Any:
        return self.choose.choice(ways)

    def chance(self, of: int) -> bool:
        return self.choose.randint(0, of - 1) == of - 1

    def name(self, kind: str) -> str:
        names: list[str] = getattr(self.scope, kind)
        return str(self.choose.choice(names))

    def made(self, kind: str, prefix: str) -> str:
        """A new name, from here on in scope."""
        name = self.fresh(prefix)
        getattr(self.scope, kind).append(name)
        return name

    def float(self) -> str:
        scope = self.scope
        ways: list[Callable[[], str]] = [
            lambda: self.name("floats"), lambda: self.name("floats"), lambda: self.name("floats"),
            lambda: self.one("0.5", "1.0", "-2.25", "3.0", "0.0"),
            lambda: f"({self.float()} {self.one('+', '-', '*')} {self.float()})",
            lambda: f"{self.name('arrays')}[{self.position()}]",
            lambda: f"{self.one('max', 'min')}({self.float()}, {self.float()})",
            lambda: f"{self.one('abs', '-', '+')}({self.float()})",
            lambda: f"({self.float()} if {self.test()} else {self.float()})",
            lambda: self.one("np.sum({0})", "np.max({0})", "{0}.min()").format(self.name("arrays")),
            lambda: f"float({self.int()})",
        ]
        if scope.functions:
            ways += [lambda: f"{self.name('functions')}({self.float()})"] * 2
        if scope.lists:
            ways.append(lambda: f"{self.name('lists')}[{self.one('0', '-1')}]")
            ways.append(lambda: f"{self.one('sum', 'max')}({self.name('lists')})")
        if scope.views:
            ways.append(lambda: f"{self.name('views')}[{self.one('0', '-1')}]")
            ways.append(lambda: f"np.sum({self.name('views')})")
        if scope.matrices:
            ways.append(lambda: f"{self.name('matrices')}[{self.position()}, {self.position()}]")
            ways.append(lambda: f"np.trace({self.name('matrices')})")
        if scope.pairs:
            ways.append(lambda: f"{self.name('pairs')}[0]")
        if scope.tables:
            ways.append(lambda: f"{self.name('tables')}['p']")
        if scope.cells:
            ways.append(lambda: f"{self.name('cells')}.{self.one('v', 'total')}")
        if scope.perhaps:
            name = self.name("perhaps")
            ways.append(lambda: f"({name} if {name} is not None else {self.float()})")
        return str(self.choose.choice(ways)())

    def int(self) -> str:
        scope = self.scope
        ways: list[Callable[[], str]] = [
            lambda: self.name("ints"), lambda: self.name("ints"), lambda: self.name("ints"),
            lambda: str(self.choose.randint(0, 3)),
            lambda: f"({self.int()} {self.one('+', '-', '*')} {self.int()}) % 5",
            lambda: f"({self.int()} {self.one('// 2', '// 3', '& 3', '>> 1', '<< 1')})",
            lambda: f"len({self.name('arrays')})",
            lambda: f"int({self.float()})",
        ]
        if scope.pairs:
            ways.append(lambda: f"{self.name('pairs')}[1]")
        if scope.growing:
            ways.append(lambda: f"len({self.name('growing')})")
        return str(self.choose.choice(ways)())

    def position(self) -> str:
        if self.choose.randint(0, 3) == 0:
            return self.one("0", "-1", "1")  # type: ignore[no-any-return]
        return f"({self.int()}) % len(a)"

    def array(self) -> str:
        first = self.name("arrays")
        ways: list[Callable[[], str]] = [
            lambda: f"{first} {self.one('+', '-', '*')} {self.name('arrays')}",
            lambda: f"{first} * {self.float()}",
            lambda: f"np.where({first} > {self.float()}, {first}, {self.float()})",
            lambda: f"np.maximum({first}, {self.name('arrays')})",
            lambda: f"{first}[::-1] - {self.name('arrays')}",
            lambda: f"np.concatenate(({first}[1:], {self.name('arrays')}[:1]))",
            lambda: f"np.full(len({first}), {self.float()})",
            lambda: f"{first} * 0.5 - np.abs({self.name('arrays')})",
            lambda: f"np.cumsum({first})",
            lambda: f"np.array([{self.float()}] * len({first}))",
        ]
        if self.scope.matrices:
            matrix = self.name("matrices")
            ways.append(lambda: f"{matrix} @ {first}")
            ways.append(lambda: f"{matrix}.{self.one('sum', 'max')}(axis={self.one('0', '1')})")
            ways.append(lambda: f"{matrix}[{self.position()}]")
            ways.append(lambda: f"{matrix}[:, {self.position()}]")
        if self.scope.tables:
            ways.append(lambda: f"{self.name('tables')}['q'] + {first}")
        return str(self.choose.choice(ways)())

    def test(self) -> str:
        scope = self.scope
        ways: list[Callable[[], str]] = [
            lambda: f"{self.float()} {self.one('<', '>', '<=', '>=')} {self.float()}",
            lambda: f"{self.int()} {self.one('<', '>', '==', '!=')} {self.int()}",
            lambda: f"({self.test()}) {self.one('and', 'or')} ({self.test()})",
            lambda: f"not {self.name('floats')} > 1.0",
            lambda: f"0.0 < {self.name('floats')} <= 4.0",
            lambda: f"np.{self.one('any', 'all')}({self.name('arrays')} > {self.float()})",
            lambda: f"{self.int()} in (0, 2, 3)",
        ]
        if scope.flags:
            ways.append(lambda: self.name("flags"))
        if scope.perhaps:
            ways.append(lambda: f"{self.name('perhaps')} is None")
        if scope.growing:
            ways.append(lambda: self.name("growing"))
        return str(self.choose.choice(ways)())

    def result(self) -> str:
        """Everything in scope, so that no statement is without effect on the result."""
        scope = self.scope
        values = [
            *scope.floats, *(f"np.sum({u})" for u in scope.views),
            *(f"np.sum({m})" for m in scope.matrices), *(f"sum({x})" for x in scope.lists),
            *(f"sum({g}) + len({g})" for g in scope.growing), *(f"{t}[0]" for t in scope.pairs),
            *(f"{d}['p'] + np.sum({d}['q'])" for d in scope.tables),
            *(f"{o}.total" for o in scope.cells), *(f"{q} * 0.5" for q in scope.flags),
            *(f"({h} if {h} is not None else 0.25)" for h in scope.perhaps),
        ]
        weighted = [f"{k} * ({value})" for k, value in enumerate(values, 1)]
        ints = [*scope.ints, *(f"{t}[1]" for t in scope.pairs)]
        arrays = [f"{k} * {name}" for k, name in enumerate(scope.arrays, 1)]
        return f"{' + '.join(weighted)}, {' + '.join(ints)}, {' + '.join(arrays)}"

    # -- statements --------------------------------------------------------------------------------

    def block(self, depth: int) -> None:
        """A few statements; names that they make are out of scope afterwards."""
        kept = self.scope.copy()
        for _ in range(self.choose.randint(1, 4)):
            self.statement(depth)
        self.scope = kept

    def statement(self, depth: int) -> None:
        self.left -= 1
        kinds = SIMPLE + NESTING if self.left > 0 and depth < 6 else SIMPLE
        self.choose.choice(kinds)(self, depth)

    def indented(self, depth: int, header: str) -> None:
        self.put(depth, header)
        self.block(depth + 1)

    def set_float(self, depth: int) -> None:
        value = f"tame({self.float()})"
        name = self.choose.choice([*self.scope.floats, self.fresh("f")])
        if name in self.scope.floats and self.chance(3):
            self.put(depth, f"{name} {self.one('+=', '-=', '*=')} {value}")
            value = f"tame({name})"
        self.put(depth, f"{name} = {value}")
        if name not in self.scope.floats:
            self.scope.floats.append(name)

    def set_int(self, depth: int) -> None:
        free = [i for i in self.scope.ints if i not in self.frozen]
        name = self.choose.choice([*free, self.fresh("i")])
        self.put(depth, f"{name} = ({self.int()}) % 7")
        if name not in self.scope.ints:
            self.scope.ints.append(name)

    def set_flag(self, depth: int) -> None:
        test = self.test()
        self.put(depth, f"{self.made('flags', 'q')} = bool({test})")

    def set_array(self, depth: int) -> None:
        mine = [a for a in self.scope.arrays if a not in self.iterated]
        name = self.choose.choice([*mine, self.fresh("c")])
        value = f"tame({self.array()})"
        if self.chance(5):
            value = self.name("arrays")  # another name of the same array
            if self.choose.randint(0, 1):
                value += ".copy()"
        self.put(depth, f"{name} = {value}")
        if name not in self.scope.arrays:
            self.scope.arrays.append(name)

    def store(self, depth: int) -> None:
        name = self.name("arrays")
        match self.choose.randint(0, 7):
            case 0 | 1 | 2:
                self.put(depth, f"{name}[{self.position()}] = tame({self.float()})")
            case 3:
                place = f"{name}[{self.position()}]"
                self.put(depth, f"{place} += 0.25")
                self.put(depth, f"{place} = tame({place})")
            case 4:
                self.put(depth, f"{name}[1:] = tame({self.float()})")
            case 5:
                self.put(depth, f"{name}[:-1] = tame({self.name('arrays')}[1:])")
            case 6:
                self.put(depth, f"{name}[:] = tame({self.array()})")
            case _:
                self.put(depth, f"{name}[{name} > {self.float()}] = tame({self.float()})")

    def view(self, depth: int) -> None:
        if self.scope.views and self.chance(2):
            name = self.name("views")
            way = self.one("{0}[0] = {1}", "{0}[-1] = {1}", "{0}[:] = {1}")
            self.put(depth, way.format(name, f"tame({self.float()})"))
            return
        source = self.name("arrays")
        part = self.one(f"{source}[1:]", f"{source}[:2]", f"{source}[::-1]", f"{source}[::2]")
        self.put(depth, f"{self.made('views', 'u')} = {part}")

    def matrix(self, depth: int) -> None:
        if self.scope.matrices and self.chance(2):
            name = self.name("matrices")
            place = self.one(
                f"{name}[{self.position()}, {self.position()}]", f"{name}[{self.position()}]",
                f"{name}[:, {self.position()}]",
            )
            self.put(depth, f"{place} = tame({self.float()})")
            return
        value = f"np.outer({self.name('arrays')}, {self.name('arrays')})"
        if self.scope.matrices:
            value = self.one(value, f"{self.name('matrices')}.T", f"{self.name('matrices')} * 2.0")
        self.put(depth, f"{self.made('matrices', 'm')} = tame({value})")

    def listed(self, depth: int) -> None:
        if self.scope.lists and self.chance(2):
            name, value = self.name("lists"), f"tame({self.float()})"
            way = self.one("{0}[0] = {1}", "{0}[-1] += {1}", "{0} = {0}[::-1]", "{0}.reverse()")
            self.put(depth, way.format(name, value))
            self.put(depth, f"{name}[-1] = tame({name}[-1])")
            return
        value = self.one(
            f"[tame({self.float()}), {self.name('floats')}]",
            f"[tame({self.float()} + j) for j in range(3)]",
        )
        self.put(depth, f"{self.made('lists', 'l')} = {value}")

    def grow(self, depth: int) -> None:
        if not self.scope.growing or self.chance(3):
            self.put(depth, f"{self.made('growing', 'g')} = []")
            return
        name = self.name("growing")
        match self.choose.randint(0, 3):
            case 0 | 1:
                self.put(depth, f"{name}.append(tame({self.float()}))")
            case 2:
                self.put(depth, f"{self.made('floats', 'f')} = tame(sum({name}))")
            case _:
                self.put(depth, f"if {name}:")
                self.put(depth + 1, f"{name}.pop()")

    def pair(self, depth: int) -> None:
        if self.scope.pairs and self.chance(2):
            one, other = self.fresh("f"), self.fresh("i")
            self.put(depth, f"{one}, {other} = {self.name('pairs')}")
            self.scope.floats.append(one)
            self.scope.ints.append(other)
            return
        value = f"(tame({self.float()}), {self.name('ints')})"
        self.put(depth, f"{self.made('pairs', 't')} = {value}")

    def table(self, depth: int) -> None:
        if self.scope.tables and self.chance(2):
            name = self.name("tables")
            ways = "{0}['p'] = {1}", "{0}['q'][{2}] = {1}", "{0}['q'] = tame({0}['q'] * 0.5)"
            way = self.one(*ways)
            self.put(depth, way.format(name, f"tame({self.float()})", self.position()))
            return
        value = f"{{'p': tame({self.float()}), 'q': {self.name('arrays')}}}"
        self.put(depth, f"{self.made('tables', 'd')} = {value}")

    def cell(self, depth: int) -> None:
        if self.scope.cells and self.chance(2):
            name = self.name("cells")
            ways = "{0}.v = {1}", "{0}.bump({1})", "{0}.bump({1}).bump(0.5)", "{0}.w[0] = {1}"
            way = self.one(*ways)
            self.put(depth, way.format(name, f"tame({self.float()})"))
            return
        value = f"Cell(tame({self.float()}), {self.name('arrays')})"
        self.put(depth, f"{self.made('cells', 'o')} = {value}")

    def maybe(self, depth: int) -> None:
        name = self.fresh("h")
        self.put(depth, f"{name} = None")
        self.put(depth, f"if {self.test()}:")
        self.put(depth + 1, f"{name} = tame({self.float()})")
        self.scope.perhaps.append(name)

    def call(self, depth: int) -> None:
        text = self.one(
            f"tame(stir(tame({self.float()}), {self.name('arrays')}, {self.int()}))",
            f"down(({self.int()}) % 4, tame({self.float()}))",
            f"tame(evens(({self.int()}) % 6, tame({self.float()})))",
            f"mixed({self.float()}, {self.float()}, by={self.float()})",
            f"mixed(*({self.float()}, {self.float()}), **{{'extra': {self.float()}}})",
        )
        self.put(depth, f"{self.made('floats', 'f')} = {text}")

    def reduced(self, depth: int) -> None:
        array = self.name("arrays")
        text = self.one(
            f"sum(v * 0.5 for v in {array} if v > {self.float()})",
            f"sum(positive({array}, {self.float()}))",
            f"max([abs(v) for v in {array}])",
            f"sum([u * v for u, v in zip({array}, {self.name('arrays')})])",
        )
        self.put(depth, f"{self.made('floats', 'f')} = tame({text})")

    def local_function(self, depth: int) -> None:
        """A closure; what it reads of the program may change before it is called."""
        name, parameter = self.fresh("p"), self.fresh("z")
        kept, iterated, loops = self.scope.copy(), set(self.iterated), self.loops
        self.loops = 0
        self.scope.floats.append(parameter)
        self.scope.functions = []
        if self.chance(3):
            self.put(depth, f"{name} = lambda {parameter}: tame({self.float()})")
        else:
            self.put(depth, f"def {name}({parameter}, w=0.5):")
            outer = [f for f in kept.floats if not f.startswith("v")]  # not of a loop
            if depth == 1 and self.chance(3):
                target = self.choose.choice(outer)
                self.put(depth + 1, f"nonlocal {target}")
                self.put(depth + 1, f"{target} = tame({target} + {parameter})")
            if self.chance(2):
                self.put(depth + 1, f"if {self.test()}:")
                self.put(depth + 2, f"return tame({self.float()})")
            self.put(depth + 1, f"return tame({self.float()} * w)")
        self.scope, self.iterated, self.loops = kept, iterated, loops
        self.scope.functions.append(name)

    def choose_function(self, depth: int) -> None:
        if len(self.scope.functions) < 2:
            return self.local_function(depth)
        one, other = self.name("functions"), self.name("functions")
        text = f"{one} if {self.test()} else {other}"
        self.put(depth, f"{self.made('functions', 'p')} = {text}")
        return None

    def swap(self, depth: int) -> None:
        kind = self.one(self.scope.floats, self.scope.arrays)
        if kind is self.scope.arrays:
            kind = [a for a in kind if a not in self.iterated] or ["a"]
        one, other = self.choose.choice(kind), self.choose.choice(kind)
        self.put(depth, f"{one}, {other} = {other}, {one}")

    def raising(self, depth: int) -> None:
        number = self.name("ints")
        if self.choose.randint(0, 3) == 0:
            test = f"{self.float()} > 7.0 and {self.test()}"
            self.put(depth, f"if {test}:")
            self.put(depth + 1, f"raise ValueError(f'number {{{number}}}')")
        else:
            self.put(depth, f"assert {number} < 100, 'too large'")

    # -- with blocks -------------------------------------------------------------------------------

    def branch(self, depth: int) -> None:
        if self.chance(4):
            name = self.fresh("f")
            self.put(depth, f"if ({name} := tame({self.float()})) > {self.float()}:")
            self.scope.floats.append(name)
            self.block(depth + 1)
        else:
            self.indented(depth, f"if {self.test()}:")
        if self.choose.randint(0, 2) == 0:
            self.indented(depth, f"elif {self.test()}:")
        if self.choose.randint(0, 1):
            self.indented(depth, "else:")

    def match(self, depth: int) -> None:
        self.put(depth, f"match ({self.int()}) % 4:")
        self.indented(depth + 1, f"case {self.one('0', '1 | 3', '-1')}:")
        if self.choose.randint(0, 1):
            name = self.fresh("i")
            self.scope.ints.append(name)
            self.indented(depth + 1, f"case {name} if {self.test()}:")
            self.scope.ints.remove(name)
        self.indented(depth + 1, "case _:")

    def leave(self, depth: int) -> None:
        self.put(depth, f"if {self.test()}:")
        ways = ["return", "break", "continue"] if self.loops else ["return"]
        way = self.choose.choice(ways)
        self.put(depth + 1, f"return {self.result()}" if way == "return" else way)

    def count_up(self, depth: int) -> None:
        index = self.fresh("k")
        bounds = self.one(
            self.one("0", "2", "3"), "n", "len(a)", "1, n + 1", "n, 0, -1", f"({self.int()}) % 4"
        )
        kept = self.scope.copy()
        self.scope.ints.append(index)
        self.inside(depth, f"for {index} in range({bounds}):", kept, counters=[index])

    def over(self, depth: int) -> None:
        item, array = self.fresh("v"), self.name("arrays")
        saved, kept = set(self.iterated), self.scope.copy()
        self.iterated.add(array)
        match self.choose.randint(0, 3):
            case 0 | 1:
                header, counters = f"for {item} in {self.one('', 'reversed')}({array}):", []
            case 2:
                index = self.fresh("k")
                header, counters = f"for {index}, {item} in enumerate({array}):", [index]
            case _:
                other, second = self.fresh("v"), self.name("arrays")
                self.iterated.add(second)
                header, counters = f"for {item}, {other} in zip({array}, {second}):", []
                self.scope.floats.append(other)
        self.scope.floats.append(item)
        self.scope.ints += counters
        self.inside(depth, header, kept, counters)
        self.iterated = saved

    def wait(self, depth: int) -> None:
        counter = self.fresh("w")
        self.put(depth, f"{counter} = 0")
        kept = self.scope.copy()
        self.scope.ints.append(counter)
        if self.chance(3):
            header, test = "while True:", f"{counter} >= 3 or ({self.test()})"
        else:
            header, test = f"while {counter} < 3 and ({self.test()}):", ""
        first = [f"if {test}:", "    break"] if test else []
        self.inside(depth, header, kept, [counter], [*first, f"{counter} += 1"])

    def inside(
        self, depth: int, header: str, kept: Scope, counters: Sequence[str],
        first: Sequence[str] = (),
    ) -> None:
        """A loop with names of its own, and sometimes an else."""
        self.frozen |= set(counters)
        self.put(depth, header)
        for line in first:
            self.put(depth + 1, line)
        self.loops += 1
        self.block(depth + 1)
        self.loops -= 1
        self.scope = kept
        if self.choose.randint(0, 5) == 0:
            self.indented(depth, "else:")

    def attempt(self, depth: int) -> None:
        name = self.fresh("f")
        self.put(depth, "try:")
        self.put(depth + 1, f"{name} = tame(strict({self.float()}, 'here'))")
        self.block(depth + 1)
        self.put(depth, self.one("except ValueError:", "except (ValueError, KeyError) as error:"))
        self.put(depth + 1, f"{name} = tame({self.float()})")
        if self.chance(2):
            self.put(depth, "except KeyError:")
            self.put(depth + 1, f"{name} = 0.25")
        if self.chance(3):
            self.put(depth, "else:")
            self.put(depth + 1, f"{name} = tame({name} + 1.0)")
        if self.chance(3):
            self.put(depth, "finally:")
            self.put(depth + 1, f"a[0] = tame({self.float()})")
        self.put(depth, f"{name} = tame({name}) if {self.test()} else 0.5")


Statement = Callable[[Writer, int], None]

SIMPLE: tuple[Statement, ...] = (
    Writer.set_float, Writer.set_array, Writer.store, Writer.store, Writer.call, Writer.swap,
    Writer.set_int, Writer.raising, Writer.set_flag, Writer.view, Writer.matrix, Writer.listed,
    Writer.pair, Writer.table, Writer.cell, Writer.maybe, Writer.local_function,
    Writer.choose_function, Writer.reduced, Writer.grow,
)  # fmt: skip
NESTING: tuple[Statement, ...] = (
    Writer.branch, Writer.branch, Writer.match, Writer.count_up, Writer.count_up, Writer.wait,
    Writer.over, Writer.leave, Writer.attempt,
)  # fmt: skip


def arguments() -> list[tuple[Any, ...]]:
    """Calls to try: lengths, signs and counts differ."""
    a = np.array([1.0, -2.5, 3.25, 0.0, -0.75])
    b = np.array([0.5, 3.75, -1.0, 2.25, -4.0])
    return [
        (1.5, -2.0, 3, a.copy(), b.copy()),
        (-0.25, 0.0, 0, b[:2].copy(), a[1:3].copy()),
        (3.5, 3.0, 4, b.copy(), a.copy()),
    ]
