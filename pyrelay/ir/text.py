"""The reader of the text format: what `ir/show.py` prints, back into a module.

In: the text of a module. Out: the module, where each Let's span is its place in the text. Printing
the module gives the same text. The grammar, in which line ends do not count:

    module    ::= (function kernel*)+                      the first function is the entry
    function  ::= "def" @NAME symbols? "(" binders ")" ("->" types)? "{" block "}"
    kernel    ::= "kernel" @NAME ...                       as function; called by the one before
    block     ::= let* ("return" | "yield" | "next") atoms (";" extents)?
    let       ::= (binders (";" NAMES)? "=" | ";" NAMES "=")? rhs
    binder    ::= NAME (":" type)?
    rhs       ::= NAME "(" (atom | NAME "=" attribute), ... ")"        an op, or py.KIND
                | "kernel"? @NAME "(" atoms ")" extents?
                | "vjp" @NAME "(" atoms ")" extents? "seeds" "(" ... ")" "wrt" "(" ... ")"
                | "jvp" @NAME "(" atoms ")" extents? "seeds" "(" ... ")" "wanted" "(" ... ")"
                | "if" atom "{" block "}" "else" "{" block "}"
                | "loop" "(" binder "=" atom, ... (";" NAME "=" extent, ...)? ")"
                  ("for" binder "in" atom)? ("index" binder)? ("count" atom)? "exits"?
                  ("while" (rhs | "{" block "}" "do" ("(" binders ")")?))? "{" block "}"

Constants of weak types are Python's; others are written `f32(0.1)`. Python objects that only the
untyped dialect holds (modules, functions) have no text that could be read back.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.errors import TextFormatError
from pyrelay.ir import dims, types
from pyrelay.ir.build import constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import (
    TEMPORARY,
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
from pyrelay.ir.op import OPS, RelationError
from pyrelay.ir.show import MADE_UP
from pyrelay.ir.tokens import Tokens
from pyrelay.ir.types import DTYPES, TAPE, TensorType, Type

_WEAK = {"int": types.PY_INT, "float": types.PY_FLOAT, "bool": types.PY_BOOL,
         "complex": types.PY_COMPLEX}
#: Weak types whose constants are not written as Python does: infinities, NaN, complex numbers.
_SPELT_OUT = {"float": types.PY_FLOAT, "complex": types.PY_COMPLEX}
_WORDS: dict[str, Any] = {
    "None": None, "True": True, "False": False, "Ellipsis": ..., "unset": UNSET
}


def read(text: str, filename: str = "<ir>") -> Module:
    """The module that a text shows.

    Raises TextFormatError at the place where the text is not of the format.
    """
    reader = _Reader(text, filename)
    functions: dict[str, Function] = {}
    while reader.kind != "end":
        for function in reader.group():
            if function.name in functions:
                reader.fail(f"@{function.name} is defined twice")
            functions[function.name] = function
    if not functions:
        reader.fail("the text defines no function")
    return Module(functions, next(iter(functions)))


class _Reader(Tokens):
    """Reads functions, blocks and nodes."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, filename)
        self.kernels: dict[str, Function] = {}
        self.names: dict[str, Var] = {}
        self.symbols: dict[str, Symbol] = {}
        self.typed = True

    # -- functions -----------------------------------------------------------------------------

    def group(self) -> list[Function]:
        """A function, after its kernels have been read."""
        start = self._at
        self._skip_function("def")
        self.kernels = {}
        while self.text == "kernel":
            kernel = self.function("kernel")
            self.kernels[kernel.name] = kernel
        end, self._at = self._at, start
        function = self.function("def")
        self._at = end
        return [function]

    def _skip_function(self, word: str) -> None:
        self.expect(word)
        depth = 0
        while True:
            if self.kind == "end":
                self.fail("expected '}', found the end")
            text = self.next()
            depth += {"{": 1, "}": -1}.get(text, 0)
            if text == "}" and not depth:
                return

    def _shows_types(self) -> bool:
        """Whether the function that begins here is typed. Only then its numbers are."""
        start = self._at
        self._skip_function(self.text)
        tokens = {text for _, text, _ in self._tokens[start : self._at]}
        self._at = start
        if tokens & {"->", ":"}:
            return True
        return not any(t.startswith("py.") or t in ("loop", "if") for t in tokens)

    def function(self, word: str) -> Function:
        """A function that begins with `word`."""
        self.names, self.symbols = {}, {}
        start = self._at
        self.typed = self._shows_types()
        self.expect(word)
        name = self.word("function", "a function's name")[1:]
        symbols = tuple(self.separated(self.entry_symbol, "]")) if self.accept("[") else ()
        self.expect("(")
        params = tuple(self.separated(self.binder, ")"))
        declared: list[Type] | None = None
        if self.accept("->"):
            declared = self.separated(self.type, ")") if self.accept("(") else [self.type()]
        span = self.span(start)
        body = self.braced("return")
        if declared is not None and declared != [a.type for a in body.results]:
            raise TextFormatError(f"@{name} does not return what it declares", span=span)
        return Function(name, params, body, symbols, span=span)

    def braced(self, word: str) -> Block:
        """A block in braces that ends with `word`."""
        self.expect("{")
        lets: list[Let] = []
        while self.text != word or self.kind != "name":
            lets.append(self.let())
        self.expect(word)
        results: list[Atom] = []
        if self.text not in ("}", ";"):
            results = self.listed(self.atom)
        extents = self.listed(self.extent) if self.accept(";") else []
        self.expect("}")
        return Block(tuple(lets), tuple(results), tuple(extents))

    def binder(self) -> Var:
        """A variable, with its type in a typed program."""
        at = self._at
        name = self.word("name", "a variable")
        if name in self.names:
            self._at = at
            self.fail(f"{name} is bound twice")
        ty = self.type() if self.accept(":") else None
        made_up = re.fullmatch(rf"{MADE_UP}\d+", name)
        var = Var(TEMPORARY if made_up else name, ty, span=self.span(at))
        self.names[name] = var
        return var

    def entry_symbol(self) -> Symbol:
        """A symbol of a function."""
        return self.symbol(Origin.ENTRY)

    def symbol(self, origin: Origin = Origin.RUNTIME) -> Symbol:
        """A symbol by name: one object per name and function."""
        name = self.word("name", "an extent's name")
        return self.symbols.setdefault(name, Symbol(name, origin))

    # -- lets ----------------------------------------------------------------------------------

    def let(self) -> Let:
        """A Let; its outputs become known after its right-hand side."""
        start = self._at
        outs, symbols = self._left_side()
        # What a Let binds is not visible in its own right-hand side.
        own = {name: self.names.pop(name) for name, var in list(self.names.items()) if var in outs}
        rhs = self.rhs()
        for name, var in own.items():
            if name in self.names:
                self.fail(f"{name} is bound twice")
            self.names[name] = var
        return Let(outs, rhs, symbols, span=self.span(start))

    def _left_side(self) -> tuple[tuple[Var, ...], tuple[Symbol, ...]]:
        outs: list[Var] = []
        if self.accept(";"):
            symbols = self.listed(self.symbol)
            self.expect("=")
            return (), tuple(symbols)
        following = self.following if self.kind == "name" else ""
        if following not in (":", ",", "=", ";"):
            return (), ()
        outs = self.listed(self.binder)
        symbols = self.listed(self.symbol) if self.accept(";") else []
        self.expect("=")
        return tuple(outs), tuple(symbols)

    def rhs(self) -> Rhs:
        """The right-hand side of a Let."""
        if self.kind == "function":
            return self.call()
        match self.text:
            case "kernel":
                return self.kernel_call()
            case "vjp":
                return self.request(Vjp, "vjp", "wrt")
            case "jvp":
                return self.request(Jvp, "jvp", "wanted")
            case "if":
                return self.branches()
            case "loop":
                return self.loop()
        return self.op()

    def op(self) -> OpCall | PyCall:
        """An op, or what Python does to objects."""
        at = self._at
        name = self.word("name", "an operation")
        self.expect("(")
        attrs: dict[str, Any] = {}
        args = [a for a in self.separated(lambda: self._argument(attrs), ")") if a is not None]
        if name.startswith("py."):
            return PyCall(name[3:], tuple(args), Attrs(**attrs))
        if name not in OPS:
            self._at = at
            self.fail(f"there is no operation {name!r}")
        return OpCall(OPS[name], tuple(args), Attrs(**attrs))

    def _argument(self, attrs: dict[str, Any]) -> Atom | None:
        if self.kind == "name" and self.following == "=":
            name = self.next()
            self.expect("=")
            attrs[name] = self.attribute()
            return None
        return self.atom()

    def _applied(self) -> tuple[str, tuple[Atom, ...], tuple[Extent, ...]]:
        name = self.word("function", "a function's name")[1:]
        self.expect("(")
        args = tuple(self.separated(self.atom, ")"))
        extents = tuple(self.separated(self.extent, "]")) if self.accept("[") else ()
        return name, args, extents

    def call(self) -> FnCall:
        """A call of a function of the module."""
        return FnCall(*self._applied())

    def kernel_call(self) -> KernelCall:
        """A call of a kernel that is shown after this function."""
        self.expect("kernel")
        at = self._at
        name, args, extents = self._applied()
        if name not in self.kernels:
            self._at = at
            self.fail(f"no kernel @{name} follows this function")
        return KernelCall(self.kernels[name], args, extents)

    def request(self, kind: type[Vjp] | type[Jvp], word: str, positions: str) -> Vjp | Jvp:
        """A request of a derivative."""
        self.expect(word)
        name, args, extents = self._applied()
        self.expect("seeds")
        self.expect("(")
        seeds = self.separated(self._seed, ")")
        self.expect(positions)
        self.expect("(")
        wanted = tuple(self.separated(self._position, ")"))
        return kind(
            name, args, tuple(a for _, a in seeds), tuple(k for k, _ in seeds), wanted, extents
        )

    def _position(self) -> int:
        return int(self.word("number", "a position"))

    def _seed(self) -> tuple[int, Atom]:
        position = self._position()
        self.expect(":")
        return position, self.atom()

    def branches(self) -> If:
        """An if."""
        self.expect("if")
        condition = self.atom()
        then = self.braced("yield")
        self.expect("else")
        return If(condition, then, self.braced("yield"))

    def loop(self) -> Loop:
        """A loop."""
        self.expect("loop")
        carried, init, symbols, first = self._carried()
        iterable = item = index = count = test = None
        handed: tuple[Var, ...] = ()
        if self.accept("for"):
            item = self.binder()
            self.expect("in")
            iterable = self.atom()
        if self.accept("index"):
            index = self.binder()
        if self.accept("count"):
            count = self.atom()
        exits = self.accept("exits")
        if self.accept("while"):
            if self.text == "{":
                test = self.braced("yield")
                self.expect("do")
                handed = tuple(self.separated(self.binder, ")")) if self.accept("(") else ()
            else:
                test = self._short_test()
        body = self.braced("next")
        return Loop(
            carried, init, body, test, handed, count, index, exits, symbols, first, iterable, item
        )

    def _carried(self) -> Any:
        self.expect("(")
        pairs: list[tuple[Var, Atom]] = []
        extents: list[tuple[Symbol, Extent]] = []
        if self.text not in (";", ")"):
            pairs = self.listed(lambda: self._assigned(self.binder, self.atom))
        if self.accept(";"):
            extents = self.listed(lambda: self._assigned(self.symbol, self.extent))
        self.expect(")")
        variables, atoms = zip(*pairs, strict=True) if pairs else ((), ())
        symbols, first = zip(*extents, strict=True) if extents else ((), ())
        return variables, atoms, symbols, first

    def _assigned(self, left: Callable[[], Any], right: Callable[[], Any]) -> Any:
        target = left()
        self.expect("=")
        return target, right()

    def _short_test(self) -> Block:
        """A test of one op, whose condition has no name in the text."""
        start = self._at
        rhs = self.op()
        ty: Type | None = None
        if isinstance(rhs, OpCall) and all(a.type is not None for a in rhs.args):
            try:
                (ty,) = rhs.op.relation(tuple(a.type for a in rhs.args), dict(rhs.attrs))
            except RelationError as error:
                raise TextFormatError(error.text, span=self.span(start)) from None
        condition = Var(TEMPORARY, ty)
        return Block((Let((condition,), rhs, span=self.span(start)),), (condition,))

    # -- leaves --------------------------------------------------------------------------------

    def atom(self) -> Atom:
        """A variable or a constant."""
        if self.kind == "name" and self.text not in _WORDS:
            if self.following == "(":
                return self._typed_constant()
            if self.text not in self.names:
                self.fail(f"{self.text} is not bound here")
            return self.names[self.next()]
        value = self.value()
        return Const(value, types.of_scalar(value) if self.typed else None)

    def _typed_constant(self) -> Const:
        at = self._at
        name = self.next()
        ty = TensorType(DTYPES[name]) if name in DTYPES else _SPELT_OUT.get(name)
        if ty is None:
            self._at = at
            self.fail(f"{name!r} is no element type")
        self.expect("(")
        parts = self.separated(self._number, ")")
        if ty.dtype.kind == "c" and len(parts) == 2:
            return constant(complex(float(parts[0]), float(parts[1])), ty)
        if len(parts) != 1 or ty.dtype.kind == "c":
            self.fail(f"{name} takes {2 if ty.dtype.kind == 'c' else 1} numbers")
        text = parts[0]
        if ty.dtype.kind == "f":
            return Const(float(text) if ty.weak else ty.dtype.numpy.type(text), ty)
        return constant(text == "True" if ty.dtype.kind == "b" else int(text), ty)

    def _number(self) -> str:
        sign = "-" if self.accept("-") else ""
        return sign + self.next()

    def value(self) -> Any:
        """A Python object: number, string, None, a tuple of those, a builtin class."""
        if self.accept("("):
            return self._tuple(self.value)
        if self.kind == "object":
            return self._object()
        if self.kind == "name" and self.text in _WORDS:
            return _WORDS[self.next()]
        sign = -1 if self.accept("-") else 1
        if self.kind not in ("number", "string"):
            self.fail(f"expected a constant, found {self.text or 'the end'!r}")
        value = ast.literal_eval(self.next())
        return value if sign > 0 else -value

    def _object(self) -> Any:
        name = re.fullmatch(r"<class builtins\.(\w+)>", self.text)
        found = getattr(builtins, name.group(1), None) if name else None
        if found is None:
            self.fail(f"the object {self.text} has no text that could be read back")
        self.next()
        return found

    def _tuple(self, item: Callable[[], Any]) -> tuple[Any, ...]:
        return tuple(self.separated(item, ")"))

    def attribute(self) -> Any:
        """The value of an attribute: a constant, an extent, a type, an element type, a tuple."""
        if self.text == "(":
            return self._tuple_or_extent()
        if self.kind == "name" and self.text not in _WORDS:
            if self.text in DTYPES and self.following != "[":
                return DTYPES[self.next()]
            if self.text in DTYPES or self.text in _WEAK or self.text == "tape":
                return self.type()
            return self.extent()
        if self.kind == "number" and self.text.isdigit():
            return self.extent()
        if self.text == "-" and self.following.isidentifier():
            return self.extent()
        return self.value()

    def _tuple_or_extent(self) -> Any:
        """`(a, b)` and `(a,)` are tuples, `(n//2)` and what follows it an extent."""
        at, depth = self._at, 0
        while self.kind != "end":
            text = self.next()
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text, 0)
            if text == "," and depth == 1:
                break
            if not depth:
                is_tuple = self._at - at == 2  # ()
                self._at = at
                if not is_tuple:
                    return self.extent()
                break
        self._at = at
        self.expect("(")
        return self._tuple(self.attribute)

    def type(self) -> Type:
        """A type."""
        at = self._at
        name = self.word("name", "a type")
        if name == "tape":
            return TAPE
        if name in _WEAK and self.text != "[":
            return _WEAK[name]
        if name not in DTYPES:
            self._at = at
            self.fail(f"{name!r} is no type")
        self.expect("[")
        return TensorType(DTYPES[name], tuple(self.separated(self.extent, "]")))

    # -- extents -------------------------------------------------------------------------------

    def extent(self) -> Extent:
        """A sum of products."""
        total = self._signed()
        while self.text in ("+", "-"):
            sign = 1 if self.next() == "+" else -1
            total = dims.add(total, dims.multiply(sign, self._product()))
        return total

    def _signed(self) -> Extent:
        return dims.multiply(-1, self._product()) if self.accept("-") else self._product()

    def _product(self) -> Extent:
        result = self._power()
        while self.text in ("*", "//", "%"):
            operation = _OPERATIONS[self.next()]
            result = operation(result, self._power())
        return result

    def _power(self) -> Extent:
        base = self._primary()
        if not self.accept("**"):
            return base
        return dims.product([base] * self._position())

    def _primary(self) -> Extent:
        if self.kind == "number":
            return self._position()
        if self.accept("("):
            inner = self.extent()
            self.expect(")")
            return inner
        if self.text in ("min", "max") and self.following == "(":
            extreme = dims.minimum if self.next() == "min" else dims.maximum
            self.expect("(")
            left, right = self._two()
            return extreme(left, right)
        return dims.of(self.symbol())

    def _two(self) -> Sequence[Extent]:
        both = self.separated(self.extent, ")")
        if len(both) != 2:
            self.fail("min and max take two extents")
        return both


_OPERATIONS = {"*": dims.multiply, "//": dims.quotient, "%": dims.remainder}
