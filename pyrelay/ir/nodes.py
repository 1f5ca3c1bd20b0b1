"""The nodes of the intermediate representation: flat A-normal form, two dialects in one grammar.

    module   ::= function+
    function ::= def @name[symbol, ...](var: type, ...) block
    block    ::= let* return atom, ... [; extent, ...]
    let      ::= var: type, ... [; symbol, ...] = rhs
    atom     ::= var | const
    rhs      ::= op(atom, ..., attribute=value, ...)             OpCall
               | @name(atom, ...)[extent, ...]                   FnCall
               | if atom block else block                        If
               | loop (var = atom, ...) while block do block     Loop
               | vjp @name(atom, ...)[extent, ...]               Vjp        Core, until `grad`
               | jvp @name(atom, ...)[extent, ...]               Jvp        Core, until `grad`
               | kernel @name(atom, ...)[extent, ...]            KernelCall Core, after `fuse`
               | py.kind(atom, ...)                              PyCall     Relay only

Relay (untyped; what the frontend makes) has Python objects as constants, `PyCall` for everything
Python does to objects, and places that are written. Core (typed; what `infer` makes) is first
order: no closures, no tuples, no Python objects, no places.

`Var` compares by identity; its name is decoration. Extents are a second sort of value: a `Let`, a
`Loop` and a `Function` bind symbols, and a `Block` ends with the extents for the symbols that its
owner binds. Every node is frozen: a pass makes a new program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from pyrelay.errors import Span
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.op import Op
from pyrelay.ir.types import Type
from pyrelay.records import dataclass


class Attrs(Mapping[str, Any]):
    """Immutable, hashable, name-ordered attributes of a node. Values must be hashable."""

    __slots__ = ("_hash", "_items")

    def __init__(self, **items: Any) -> None:
        self._items = dict(sorted(items.items()))
        self._hash = hash(tuple(self._items.items()))

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __contains__(self, name: object) -> bool:  # a Mapping's raises where there is none
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        # repr tells 1, 1.0 and True apart, which are equal as keys of a dict.
        return (
            isinstance(other, Attrs)
            and self._items == other._items
            and [type(v) for v in self._items.values()] == [type(v) for v in other._items.values()]
        )

    def __repr__(self) -> str:
        return f"Attrs({', '.join(f'{k}={v!r}' for k, v in self._items.items())})"


NO_ATTRS = Attrs()


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A name bound once. `type` is None in Relay."""

    name: str
    type: Type | None = None
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant: in Core a number of a scalar `type`, in Relay any Python object (type None)."""

    value: Any
    type: Type | None = None


Atom = Var | Const

TEMPORARY = "%"
"""The name of a value that the user gave none: no variable of Python's can have it."""
LEFT_BY = "left by "
"""What the names of flags begin with that say how a loop or a branch was left."""


class _Unset:
    """The value of a variable, or of an attribute, on a path that has not assigned it."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "UNSET"

    def __repr__(self) -> str:
        return "unset"


UNSET = _Unset()


class _Unread:
    """A value that no path reads: it joins with anything and stands for nothing at run time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "unread"


UNREAD = _Unread()


class _Call:
    """What passes find out about a call over and over is kept with it (`records.once`)."""

    __slots__ = ("_instance_raises",)


@dataclass(frozen=True, slots=True, eq=False)
class OpCall(_Call):
    """An operator of the `ops` package applied to atoms."""

    op: Op
    args: tuple[Atom, ...]
    attrs: Attrs = NO_ATTRS


@dataclass(frozen=True, slots=True, eq=False)
class FnCall:
    """A call of a global function; `dims` are the extents for the function's symbols."""

    function: str
    args: tuple[Atom, ...]
    dims: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """Runs one of two blocks, whose results become the outputs of the `Let`.

    In Core `cond` is a scalar of dtype bool; in Relay any object, judged by Python's truth.
    """

    cond: Atom
    then: Block
    orelse: Block


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Carried values, updated until a bound, a test or the body ends the loop.

    Per iteration: stop if `count` is given and the iteration number (bound to `index`, from 0) has
    reached it; run `test` if given, whose results are a condition and the values for `handed`, and
    stop if the condition is false; run `body`, whose results are, with `exits`, first a bool that
    ends the loop after this iteration, then the next carried values. The outputs of the `Let` are
    the carried values at the end. `dims` are carried extents, visible in `test` and `body`;
    `init_dims` their first values, and `body.dims` the next ones.

    Relay only: `iterable` is a Python iterable whose items are bound to `item`, instead of `count`.
    """

    carried: tuple[Var, ...]
    init: tuple[Atom, ...]
    body: Block
    test: Block | None = None
    handed: tuple[Var, ...] = ()
    count: Atom | None = None
    index: Var | None = None
    exits: bool = False
    dims: tuple[Symbol, ...] = ()
    init_dims: tuple[Extent, ...] = ()
    iterable: Atom | None = None
    item: Var | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Vjp:
    """A requested derivative: the results of a function, then cotangents of some arguments.

    `args` are the function's arguments; `seeds` are the cotangents of the results whose positions
    are `seeded` (other results have cotangent zero); `wrt` are the positions of the arguments whose
    cotangents follow the function's results among the outputs of the `Let`.
    """

    function: str
    args: tuple[Atom, ...]
    seeds: tuple[Atom, ...]
    seeded: tuple[int, ...]
    wrt: tuple[int, ...]
    dims: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Jvp:
    """A requested derivative in a direction: the results of a function, then tangents of some.

    `args` are the function's arguments; `seeds` are the tangents of those whose positions are
    `seeded` (others have tangent zero); `wanted` are the positions of the results whose tangents
    follow the function's results among the outputs of the `Let`.
    """

    function: str
    args: tuple[Atom, ...]
    seeds: tuple[Atom, ...]
    seeded: tuple[int, ...]
    wanted: tuple[int, ...]
    dims: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """A fused group: a closed function whose body becomes one kernel, applied to atoms."""

    function: Function
    args: tuple[Atom, ...]
    dims: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PyCall:
    """Relay only: what Python does to objects. `kind` is one of `PY_KINDS`."""

    kind: str
    args: tuple[Atom, ...]
    attrs: Attrs = NO_ATTRS


#: kind -> meaning (arguments; attributes). The outputs are one value unless said otherwise.
PY_KINDS: dict[str, str] = {
    "name": "value of a name outside the program: scope 'global' is the module's, then Python's "
    "builtins; 'free' is a closure cell of the entry's Python function (; scope='global'|'free', "
    "name)",
    "expect": "refuse the program unless x is this very object: its lowering depended on it "
    "(x, object), no output",
    "attribute": "obj.name (obj; name)",
    "set_attribute": "obj.name = value (obj, value; name), no output",
    "item": "obj[key] (obj, key; unnamed: True where nothing else can have the list that is cut, "
    "else not there)",
    "set_item": "obj[key] = value (obj, key, value), no output",
    "exchange": "obj[i], obj[j] = at_j, at_i, which were read there just before (obj, i, j, at_i, "
    "at_j), no output",
    "del_item": "del obj[key] (obj, key), no output",
    "call": "callee(...) (callee, argument...; keywords: one of None (positional), name, '*', '**' "
    "per argument)",
    "unary": "operator applied to x (x; op='-'|'+'|'~'|'not')",
    "binary": "x op y (x, y; op='+'|'-'|'*'|'/'|'//'|'%'|'**'|'@'|'&'|'|'|'^'|'<<'|'>>')",
    "inplace": "new value of x after x op= y, which writes into an array or list "
    "(x, y; op as above)",
    "compare": "x op y (x, y; op='=='|'!='|'<'|'<='|'>'|'>='|'is'|'is not'|'in'|'not in')",
    "truth": "bool(x) as `if` and `while` judge it (x)",
    "tuple": "(item, ...) (item...; starred: one bool per item)",
    "list": "[item, ...] (item...; starred)",
    "set": "{item, ...} (item...; starred; copied: from a set of these)",
    "dict": "{key: value, ...} (key, value, key, value...); key Const(None) with attribute "
    "merged[i] true stands for **value",
    "slice": "start:stop:step (start, stop, step), Const(None) where absent",
    "unpack": "several outputs from one iterable (x; before, starred: bool, after: counts)",
    "function": "a function value (default...; function=name in the module, defaults: names of the "
    "parameters with a default, in order; cells: names of captured variables; the atoms after the "
    "defaults are the captured cells, in order)",
    "new_cell": "a fresh box for a captured variable (initial value; name)",
    "get_cell": "content of a box (cell; name)",
    "set_cell": "assign to a box (cell, value; name), no output",
    "bound": "x, or Python's error if x is unset on this path (x; name)",
    "format": "f-string (value, spec, value, spec...; parts: literal strings, None for the next "
    "value; conversions: '', 's', 'r' or 'a' per value); a spec is Const('') where absent",
    "append": "append to a list under construction by a comprehension (list, item), no output",
    "raise": "raise an exception (exception or class, cause or Const(None)), no output",
    "try": "begin the body of a `try`, which is the branch taken of the If that follows (class of "
    "each clause...; looks: whether the clause looks at the exception), no output",
    "caught": "end the body of a `try`: the exception that it raised, or None",
    "matches": "whether an exception is of the class, or of one of the classes (exception, class)",
    "enter": "enter a context manager of a `with`: a box of what that gives (manager)",
    "managed": "begin the body of a `with`, which is the branch taken of the If that follows, "
    "whose first outputs are flags (manager, box; flags: how many), no output",
    "entered": "what entering a manager gave (box)",
    "exit": "leave a manager (manager, what the body raised or None): whether it dealt with that",
    "annotate": "x, declared by the user to have a type; Python ignores it (x; name, annotation: "
    "its source text)",
    "is_sequence": "whether a sequence pattern of `match` may match x, as Python judges (x)",
    "is_mapping": "whether a mapping pattern of `match` may match x, as Python judges (x)",
    "yield": "hand x to who consumes the generator; whether it wants no more (x)",
    "returned": "what a generator returned that was gone through just before (generator)",
    "positional": "the attribute that the index-th positional pattern of `case cls(...)` looks at "
    "(subject, cls; index)",
}

Rhs = OpCall | FnCall | If | Loop | Vjp | Jvp | KernelCall | PyCall


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """Binds `outs` (and `dims`, extents known only once `rhs` has run) to what `rhs` computes."""

    outs: tuple[Var, ...]
    rhs: Rhs
    dims: tuple[Symbol, ...] = ()
    span: Span | None = field(default=None, kw_only=True, repr=False)


class _Lets:
    """What passes find out about a block over and over is kept with it (`records.once`)."""

    __slots__ = ("_free_vars", "_nested_lets")


@dataclass(frozen=True, slots=True, eq=False)
class Block(_Lets):
    """Lets in order, then results, then extents for the symbols that the owner binds."""

    lets: tuple[Let, ...]
    results: tuple[Atom, ...]
    dims: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """Relay only: how Python binds an argument. `kind` is inspect's name of the parameter kind."""

    name: str
    #: positional_only | positional_or_keyword | var_positional | keyword_only | var_keyword
    kind: str
    has_default: bool = False


class _Body:
    """What passes find out about a function over and over is kept with it (`records.once`)."""

    __slots__ = ("_called", "_without_calls")


@dataclass(frozen=True, slots=True, eq=False)
class Function(_Body):
    """A closed function. `dims` are the symbols a call supplies, `signature` is Relay's.

    In Relay, `params` are the parameters in the order of `signature`, then one per name in `cells`
    (boxes of captured variables).
    """

    name: str
    params: tuple[Var, ...]
    body: Block
    dims: tuple[Symbol, ...] = ()
    span: Span | None = field(default=None, kw_only=True, repr=False)
    signature: tuple[Parameter, ...] = field(default=(), kw_only=True)
    cells: tuple[str, ...] = field(default=(), kw_only=True)
    doc: str | None = field(default=None, kw_only=True, repr=False)

    @property
    def result_types(self) -> tuple[Type | None, ...]:
        """Types of the results."""
        return tuple(a.type for a in self.body.results)


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """Functions by name, and the one that is called; the positions of those of its parameters whose
    arrays the caller sees changed, None where any may be such."""

    functions: Mapping[str, Function]
    entry: str
    written: frozenset[int] | None = None

    @property
    def main(self) -> Function:
        """The entry function."""
        return self.functions[self.entry]

    def holding(self, functions: Mapping[str, Function]) -> Module:
        """The module with these functions in place of its own; itself if they are the same ones."""
        same = len(functions) == len(self.functions) and all(
            functions.get(name) is function for name, function in self.functions.items()
        )
        return self if same else replace(self, functions=functions)

    def with_bodies(self, rewritten: Callable[[Block], Block]) -> Module:
        """The module with every function's body rewritten; itself if they all stay the same."""
        functions = {}
        for name, function in self.functions.items():
            body = rewritten(function.body)
            functions[name] = function if body is function.body else replace(function, body=body)
        return self.holding(functions)


