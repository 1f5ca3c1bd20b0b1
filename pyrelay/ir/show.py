"""The printer: a module, function or block in, deterministic text out.

Names are the user's where there is one (made unique with a suffix), `v0, v1, ...` for what the
compiler made; there are no addresses, so two equal programs print equally and diffs are readable.
`ir/text.py` reads the text back, and printing what was read gives the same text.

    def @power[n](x: f32[n], k: int) -> f32[n] {
      v0: f32[n], v1: int = loop (y: f32[n] = x, i: int = k) while greater(i, 0) {
        v2: f32[n] = multiply(y, x)
        v3: int = subtract(i, 1)
        next v2, v3
      }
      return v0
    }

Straight-line code is printed iteratively; only the nesting of blocks recurses.
"""

from __future__ import annotations

import re
import types as python
from collections.abc import Iterable, Sequence

import numpy as np

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import (
    TEMPORARY,
    UNREAD,
    UNSET,
    Atom,
    Attrs,
    Block,
    Const,
    FnCall,
    Function,
    If,
    Jvp,
    KernelCall,
    Let,
    Loop,
    Module,
    OpCall,
    PyCall,
    Rhs,
    Var,
    Vjp,
)
from pyrelay.ir.op import Op
from pyrelay.ir.types import DType, TapeType, TensorType, Type

INDENT = "  "
MADE_UP = "v"  # in front of the number of a value that the user did not name


def show(what: Module | Function | Block) -> str:
    """The text of a program or of a part of it."""
    if isinstance(what, Block):
        printer = _Printer()
        printer.name_block(what)
        printer.block(what, "return", 0)
        return "\n".join(printer.lines)
    if isinstance(what, Function):
        return "\n".join(line for _, line in listing(what))
    order = [what.entry, *sorted(name for name in what.functions if name != what.entry)]
    return "\n\n".join(show(what.functions[name]) for name in order)


def listing(function: Function) -> list[tuple[Let | None, str]]:
    """The lines of a function and of its kernels, each with the Let that begins on it, if one."""
    printer = _Printer()
    printer.function(function, "def")
    lines = list(zip(printer.starts, printer.lines, strict=True))
    for kernel, name in printer.kernels.items():
        inner = _Printer()
        inner.function(kernel, "kernel", name)
        lines += [(None, ""), *zip(inner.starts, inner.lines, strict=True)]
    return lines


def _unique(wanted: str, taken: set[str], *, word: bool = True) -> str:
    """`wanted` (as a word, if so asked) with the first suffix that is not taken."""
    wanted = re.sub(r"\W", "_", wanted) if word else wanted
    name, suffix = wanted, 0
    while name in taken:
        suffix += 1
        name = f"{wanted}_{suffix}"
    taken.add(name)
    return name


class _Printer:
    """Names and lines of one function; variables and symbols have separate name spaces."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.starts: list[Let | None] = []  # of each line
        self.names: dict[Var, str] = {}
        self.symbols: dict[Symbol, str] = {}
        self.kernels: dict[Function, str] = {}
        self._taken: set[str] = set()
        self._taken_symbols: set[str] = set()
        self._kernel_names: set[str] = set()
        self._number = 0

    # -- names ---------------------------------------------------------------------------------

    def name_all(self, binders: Iterable[Var]) -> None:
        """Give users' names first, so that a made-up one never takes the name of a user's."""
        order = list(binders)
        for var in order:
            if var.name != TEMPORARY and var not in self.names:
                self.names[var] = _unique(var.name, self._taken)
        for var in order:
            if var not in self.names:
                self.names[var] = self._made_up()

    def _made_up(self) -> str:
        while f"{MADE_UP}{self._number}" in self._taken:
            self._number += 1
        self._number += 1
        return f"{MADE_UP}{self._number - 1}"

    def name_block(self, block: Block, params: Sequence[Var] = ()) -> None:
        """Name the parameters and everything bound in a block, in order."""
        binders = list(params)
        unseen: set[Let] = set()  # the one Let of a test that is printed in short
        for let in walk.nested_lets(block):
            if isinstance(let.rhs, Loop) and let.rhs.test and self._is_short(let.rhs.test):
                unseen.update(let.rhs.test.lets)
            binders += walk.block_binders(let.rhs)
            binders += () if let in unseen else let.outs
        self.name_all(binders)

    def symbol(self, symbol: Symbol) -> str:
        """The unique name of a symbol; named when first met."""
        if symbol not in self.symbols:
            self.symbols[symbol] = _unique(symbol.name, self._taken_symbols)
        return self.symbols[symbol]

    # -- leaves --------------------------------------------------------------------------------

    def extent(self, extent: Extent) -> str:
        return dims.show(extent, self.symbol)

    def type(self, ty: Type) -> str:
        return types.show(ty, self.symbol)

    def binder(self, var: Var) -> str:
        return self.names[var] + ("" if var.type is None else f": {self.type(var.type)}")

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Const):
            return _constant(atom)
        if atom not in self.names:  # free in a block that is printed alone
            self.names[atom] = (
                self._made_up() if atom.name == TEMPORARY else _unique(atom.name, self._taken)
            )
        return self.names[atom]

    def atoms(self, atoms: Iterable[Atom]) -> str:
        return ", ".join(map(self.atom, atoms))

    def extents(self, extents: Sequence[Extent]) -> str:
        return f"[{', '.join(map(self.extent, extents))}]" if extents else ""

    def attribute(self, value: object) -> str:
        if isinstance(value, dims.Dim):
            return self.extent(value)
        if isinstance(value, (TensorType, TapeType)):
            return self.type(value)
        if isinstance(value, tuple):
            items = [self.attribute(item) for item in value]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        return _object(value)

    def ends(self, word: str, block: Block) -> str:
        results = self.atoms(block.results)
        text = f"{word} {results}" if results else word
        return text + (f"; {', '.join(map(self.extent, block.dims))}" if block.dims else "")

    # -- lines ---------------------------------------------------------------------------------

    def line(self, depth: int, text: str, start: Let | None = None) -> None:
        self.lines.append(INDENT * depth + text)
        self.starts.append(start)

    def function(self, function: Function, word: str, name: str | None = None) -> None:
        self.name_block(function.body, function.params)
        for symbol in function.dims:
            self.symbol(symbol)
        params = ", ".join(map(self.binder, function.params))
        head = f"{word} @{name or function.name}{self.extents(tuple(map(dims.of, function.dims)))}"
        # The symbols that the body binds must be named before the result types that mention them.
        start = len(self.lines)
        self.line(0, "")
        self.block(function.body, "return", 1)
        self.line(0, "}")
        self.lines[start] = f"{head}({params}){self._results(function)} {{"

    def _results(self, function: Function) -> str:
        known = [ty for ty in function.result_types if ty is not None]
        if not known or len(known) < len(function.result_types):
            return ""
        shown = ", ".join(map(self.type, known))
        return f" -> {shown}" if len(known) == 1 else f" -> ({shown})"

    def block(self, block: Block, word: str, depth: int) -> None:
        for let in block.lets:
            outs = ", ".join(map(self.binder, let.outs))
            if let.dims:
                outs += "; " + ", ".join(map(self.symbol, let.dims))
            self.rhs(let, outs + (" = " if outs else ""), depth)
        self.line(depth, self.ends(word, block))

    def rhs(self, let: Let, outs: str, depth: int) -> None:
        rhs = let.rhs
        if isinstance(rhs, If):
            self.line(depth, f"{outs}if {self.atom(rhs.cond)} {{", let)
            self.block(rhs.then, "yield", depth + 1)
            self.line(depth, "} else {")
            self.block(rhs.orelse, "yield", depth + 1)
            self.line(depth, "}")
        elif isinstance(rhs, Loop):
            self.loop(rhs, let, outs, depth)
        else:
            self.line(depth, outs + self.simple(rhs), let)

    def simple(self, rhs: Rhs) -> str:
        """A node without blocks."""
        match rhs:
            case OpCall(op, args, attrs):
                return f"{op.name}({self._arguments(args, attrs)})"
            case PyCall(kind, args, attrs):
                return f"py.{kind}({self._arguments(args, attrs)})"
            case FnCall(name, args, extents):
                return f"@{name}({self.atoms(args)}){self.extents(extents)}"
            case KernelCall(function, args, extents):
                if function not in self.kernels:
                    self.kernels[function] = _unique(
                        function.name, self._kernel_names, word=False
                    )
                name = self.kernels[function]
                return f"kernel @{name}({self.atoms(args)}){self.extents(extents)}"
            case Vjp(wrt=wrt):
                return self._request("vjp", rhs, "wrt", wrt)
            case Jvp(wanted=wanted):
                return self._request("jvp", rhs, "wanted", wanted)
        raise AssertionError(rhs)

    def _request(self, kind: str, rhs: Vjp | Jvp, word: str, positions: Sequence[int]) -> str:
        """A requested derivative; `word` says what the positions are of."""
        seeds = ", ".join(
            f"{k}: {self.atom(a)}" for k, a in zip(rhs.seeded, rhs.seeds, strict=True)
        )
        call = f"{kind} @{rhs.function}({self.atoms(rhs.args)}){self.extents(rhs.dims)}"
        return f"{call} seeds ({seeds}) {word} ({', '.join(map(str, positions))})"

    def _arguments(self, args: Sequence[Atom], attrs: Attrs) -> str:
        parts = [self.atom(a) for a in args]
        return ", ".join(parts + [f"{k}={self.attribute(v)}" for k, v in attrs.items()])

    def loop(self, loop: Loop, let: Let, outs: str, depth: int) -> None:
        carried = ", ".join(
            f"{self.binder(v)} = {self.atom(a)}"
            for v, a in zip(loop.carried, loop.init, strict=True)
        )
        if loop.dims:
            carried += "; " + ", ".join(
                f"{self.symbol(s)} = {self.extent(e)}"
                for s, e in zip(loop.dims, loop.init_dims, strict=True)
            )
        text = f"{outs}loop ({carried})"
        if loop.iterable is not None:
            assert loop.item is not None
            text += f" for {self.binder(loop.item)} in {self.atom(loop.iterable)}"
        if loop.index is not None:
            text += f" index {self.binder(loop.index)}"
        if loop.count is not None:
            text += f" count {self.atom(loop.count)}"
        if loop.exits:
            text += " exits"
        test = loop.test
        if test is None:
            self.line(depth, text + " {", let)
        elif self._is_short(test):
            self.line(depth, f"{text} while {self.simple(test.lets[0].rhs)} {{", let)
        else:
            self.line(depth, text + " while {", let)
            self.block(test, "yield", depth + 1)
            handed = ", ".join(map(self.binder, loop.handed))
            self.line(depth, f"}} do ({handed}) {{" if handed else "} do {")
        self.block(loop.body, "next", depth + 1)
        self.line(depth, "}")

    @staticmethod
    def _is_short(test: Block) -> bool:
        """True if a test is one op whose only result is the condition."""
        if len(test.lets) != 1 or test.dims or len(test.results) != 1:
            return False
        let = test.lets[0]
        return let.outs == test.results and isinstance(let.rhs, (OpCall, PyCall)) and not let.dims


def _constant(const: Const) -> str:
    ty = const.type
    if not isinstance(ty, TensorType):
        return _object(const.value)
    kind = ty.dtype.kind
    name = types.show(ty) if ty.weak else ty.dtype.name
    if kind == "c":
        return f"{name}({const.value.real!s}, {const.value.imag!s})"
    text = repr(const.value) if ty.weak else str(const.value)
    return text if ty.weak and np.isfinite(const.value) else f"{name}({text})"


def _object(value: object) -> str:
    """A Python object of the untyped dialect or an attribute, without addresses."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | python.EllipsisType():
            return repr(value)
        case DType() | Op():
            return value.name
        case tuple():
            items = [_object(item) for item in value]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        case type():
            return f"<class {value.__module__}.{value.__qualname__}>"
        case python.ModuleType():
            return f"<module {value.__name__}>"
        case np.generic():
            return f"{value.dtype.name}({value!s})"
    if value is UNSET or value is UNREAD:
        return repr(value)
    name = getattr(value, "__qualname__", None)
    kind = type(value).__name__
    return f"<{kind} {name}>" if isinstance(name, str) else f"<{kind}>"
