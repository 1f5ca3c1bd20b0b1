"""Random functions of nasty control flow, as source text.

Every loop burns fuel, so every program ends; variables may be unset, deleted, captured; any path
may return, break, continue or raise. The log says in which order things happened.
"""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["a", "b", "c", "d"]


class Writer:
    """Draws one function, line by line."""

    def __init__(self, draw, captures: bool) -> None:
        self.draw, self.captures = draw, captures
        self.lines: list[str] = []
        self.functions = 0

    def pick(self, options):
        return self.draw(st.sampled_from(options))

    def number(self, low=0, high=3):
        return self.draw(st.integers(low, high))

    def atom(self):
        return self.pick([*NAMES, *NAMES, "0", "1", "2", "n"])

    def expression(self, depth=0):
        kinds = ["atom", "atom", "sum", "log"]
        if depth < 2:
            kinds += ["or", "ternary", "chain", "walrus", "any", "list", "not"]
        x = self.atom()
        match self.pick(kinds):
            case "atom":
                return x
            case "sum":
                return f"({x} + {self.atom()} - 1)" if self.number() else f"-{x}"
            case "log":
                return f"log({x})"
            case "or":
                op = self.pick(["or", "and"])
                return f"({self.expression(depth + 1)} {op} {self.expression(depth + 1)} {op} {x})"
            case "ternary":
                parts = [self.expression(depth + 1) for _ in range(3)]
                return f"({parts[0]} if {parts[1]} else {parts[2]})"
            case "chain":
                return f"({x} < {self.expression(depth + 1)} <= {self.expression(depth + 1)} + 1)"
            case "walrus":
                return f"({self.pick(NAMES)} := {self.expression(depth + 1)})"
            case "any":
                word = self.pick(["any", "all"])
                inner = self.expression(depth + 1)
                return f"{word}({inner} > i + {x} for i in range({self.number()}) if i != {x})"
            case "list":
                inner = self.expression(depth + 1)
                return f"len([{inner} for i in range({self.number()}) for j in [i] if {x} > j])"
        return f"(not {self.expression(depth + 1)})"

    def emit(self, indent, text):
        self.lines.append("    " * indent + text)

    def block(self, indent, depth, in_loop):
        for _ in range(self.number(1, 3)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent, depth, in_loop):
        kinds = ["set", "set", "set", "augmented", "augmented", "swap", "swap", "leave"]
        if self.number(0, 9) == 0:
            kinds = ["del"]
        elif depth < 3:
            kinds += ["if", "if", "if", "while", "for", "for", "with", "match", "assert"]
        if self.captures and kinds != ["del"]:
            kinds += ["def", "lambda"]
        kind = self.pick(kinds)
        getattr(self, f"write_{kind}")(indent, depth, in_loop)

    def write_set(self, indent, depth, in_loop):
        self.emit(indent, f"{self.pick(NAMES)} = {self.expression()}")

    def write_augmented(self, indent, depth, in_loop):
        self.emit(indent, f"{self.pick(NAMES)} {self.pick(['+', '-', '*'])}= {self.expression()}")

    def write_swap(self, indent, depth, in_loop):
        targets = f"{self.pick(NAMES)}, {self.pick(NAMES)}"
        values = f"{self.expression()}, {self.expression()}"
        self.emit(indent, f"{targets} = {self.pick([values, f'({values})', f'[{values}]'])}")

    def write_leave(self, indent, depth, in_loop):
        kind = self.pick(["return", "return", "raise", *["break", "continue"] * 3 * in_loop])
        if kind == "return":
            self.emit(indent, f"return {self.expression()}, {self.pick(NAMES)}")
        elif kind == "raise":
            self.emit(indent, f"raise ValueError({self.atom()})")
        else:
            self.emit(indent, kind)

    def write_del(self, indent, depth, in_loop):
        self.emit(indent, f"del {self.pick(NAMES)}")

    def write_assert(self, indent, depth, in_loop):
        self.emit(indent, f"assert {self.expression()} != 1, log({self.atom()})")

    def write_if(self, indent, depth, in_loop):
        self.emit(indent, f"if {self.expression()}:")
        self.block(indent + 1, depth + 1, in_loop)
        if self.number() == 0:
            self.emit(indent, f"elif {self.expression()}:")
            self.block(indent + 1, depth + 1, in_loop)
        if self.number(0, 1):
            self.emit(indent, "else:")
            self.block(indent + 1, depth + 1, in_loop)

    def write_while(self, indent, depth, in_loop):
        self.emit(indent, f"while {self.pick(['True', self.expression()])}:")
        self.round(indent, depth)

    def write_for(self, indent, depth, in_loop):
        target = self.pick([*NAMES, "a, b", "c, *d", "_"])
        items = f"range({self.number()})"
        if "," in target:
            items = f"[(i, {self.atom()}) for i in range({self.number()})]"
        self.emit(indent, f"for {target} in {items}:")
        self.round(indent, depth)

    def round(self, indent, depth):
        self.emit(indent + 1, "fuel -= 1")
        self.emit(indent + 1, "if fuel < 0:")
        self.emit(indent + 2, self.pick(["break", "return 'fuel'", "raise KeyError(n)"]))
        self.block(indent + 1, depth + 1, True)
        if self.number() == 0:
            self.emit(indent, "else:")
            self.block(indent + 1, depth + 1, False)

    def write_with(self, indent, depth, in_loop):
        bound = self.pick(["", f" as {self.pick(NAMES)}"])
        self.emit(indent, f"with log{bound}, log:")
        self.block(indent + 1, depth + 1, in_loop)

    def write_match(self, indent, depth, in_loop):
        self.emit(indent, f"match {self.expression()}, {self.atom()}:")
        patterns = [
            "(0, 1)", "(1 | 2, {})", "({}, 0) if n", "({0}, 1) | (1, {0})", "[{}, *_]", "[*{}]",
            "{{'k': {}}}", "(int() as {}, int())", "_", "{}",
        ]
        for i in range(self.number(1, 3)):
            pattern = self.pick(patterns[:-2] if i < 2 else patterns).format(self.pick(NAMES))
            self.emit(indent + 1, f"case {pattern}:")
            self.block(indent + 2, depth + 1, in_loop)
            if pattern in ("_", *NAMES):
                break

    def write_def(self, indent, depth, in_loop):
        self.functions += 1
        name = f"f{self.functions}"
        self.emit(indent, f"def {name}(k={self.atom()}):")
        if self.number(0, 1):
            self.emit(indent + 1, f"nonlocal {self.pick(NAMES[:2])}")
            self.emit(indent + 1, "a = k + 1" if "nonlocal a" in self.lines[-1] else "b = k")
        self.emit(indent + 1, f"return log({self.pick(NAMES)}) + k")
        self.emit(indent, f"{self.pick(NAMES)} = {name}({self.pick(['', self.atom()])})")

    def write_lambda(self, indent, depth, in_loop):
        self.emit(indent, f"{self.pick(NAMES)} = (lambda k: {self.pick(NAMES)} + k)({self.atom()})")


@st.composite
def functions(draw, captures: bool):
    """Source of `def program(n, a, log)`."""
    writer = Writer(draw, captures)
    writer.emit(0, "def program(n, a, log):")
    writer.emit(1, "fuel = 25")
    for name in NAMES[1:]:
        if writer.number(0, 15):  # mostly set, else most programs end with a NameError
            writer.emit(1, f"{name} = {writer.pick(['n', 'a', '1', '2'])}")
    for _ in range(writer.number(2, 5)):
        writer.statement(1, 0, False)
    writer.emit(1, f"return {', '.join(writer.pick(NAMES) for _ in range(2))}")
    return "\n".join(writer.lines) + "\n"
