"""What `infer` knows of a Python object while it interprets a program: abstract values.

A value is known (`Known`), a typed number (`Scalar`), an array by reference (`ArrayRef`: a root on
the abstract heap and a chain of views), a structure of values, a function, an iterable, or one of
several cases told apart at run time (`Union`). Mutable objects live on the heap under a `Root`;
references share roots exactly as Python variables share objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeGuard

from pyrelay.errors import Span
from pyrelay.infer.nodes.datatypes import NO_NODE, Schema, Sort
from pyrelay.ir import types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Function, Let
from pyrelay.ir.types import DType, TensorType
from pyrelay.records import dataclass

_outside = itertools.count(1)
_serials: ContextVar[Iterator[int]] = ContextVar("serials")


def next_serial() -> int:
    """A number greater than all before it in this attempt at a program."""
    return next(_serials.get(_outside))


@contextmanager
def own_serials() -> Iterator[None]:
    """Inside, numbers begin anew: they become constants of a program, whose kernels are found on
    disk by their texts, whatever the process compiled before. 0 is the number of no object: a
    number that is not read on a path is 0 there."""
    token = _serials.set(itertools.count(1))
    try:
        yield
    finally:
        _serials.reset(token)


@dataclass(slots=True, eq=False)
class Root:
    """The identity of one mutable object. `leaf` is the entry argument it came from, if one."""

    kind: str  # "array" | "list" | "dict" | "set" | "object" | "cell"
    span: Span | None = None
    leaf: int | None = None
    name: str = ""
    serial: int = field(default_factory=next_serial)
    #: Older roots that this one may be the same object as, since a branch or a loop chose.
    may_be: frozenset[Root] = field(default=frozenset(), repr=False)
    #: The join that made this root; of the roots it made, `rivals` may be the same object.
    join: object = field(default=None, repr=False)
    rivals: set[Root] = field(default_factory=set, repr=False)
    #: The run-time number of the object that a place is (identity.py), if it has one.
    number: Atom | None = field(default=None, repr=False)
    #: Where (True: somewhere) it became an item of a growing list, which keeps a copy of it.
    stored: Span | bool = False
    item: Item | None = None  # which item it was read from
    keeper: Root | None = None  # the list that it became an item of, if that is one on all paths
    keeper_leaf: int | None = None  # and which part of its items it is, if that is known
    wanted: Exception | None = None  # of a list that a node has a copy of: the request for one list
    #: Where (True: somewhere) an item was written that may be this array.
    outdated: Span | bool = False
    made: Let | None = None  # what makes it, of a dict, set, object or list display of the program

    @property
    def is_chosen(self) -> bool:
        """Whether it may be the same object as an older one, or as one made with it."""
        return bool(self.may_be) or self.join is not None

    def may_alias(self, other: Root) -> bool:
        """True unless the two are certainly different objects."""
        if self is other or self in other.may_be or other in self.may_be:
            return True
        if self.join is not None and self.join is other.join:
            return other in self.rivals
        return not self.may_be.isdisjoint(other.may_be)


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An array was read as `owner[key]`, which was at `position` of this content.

    It is there as long as the content of the owner has these slots. leaf: which column of the
    content holds it. found: the dict that has this list, and the key it was asked for, if any.
    """

    owner: Root
    key: Atom
    position: Atom
    content: Growing
    leaf: int = 0
    found: tuple[Root, Value] | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A Python object known while compiling."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Known):
            return NotImplemented
        if self.value is None or other.value is None:
            return self.value is other.value  # np.dtype(float) == None is true
        return bool(self.value == other.value)


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number known by type. `extent` is its value as a polynomial of extents, if it has one."""

    type: TensorType
    atom: Atom | None
    extent: Extent | None = None
    origin: Any = None  # the parameter it came from unchanged, which can be made static
    #: Its value as a polynomial of extents and loop indices, for numbers that have an atom too.
    poly: Extent | None = None
    #: What it may be in Python, as the path taken says, and the number of what it is (kinds.py).
    kinds: tuple[TensorType, ...] = ()
    kind: Atom | None = None
    holders: frozenset[DType] = frozenset()  # of the constants it comes of: `kinds.holders`

    @staticmethod
    def of_extent(extent: Extent) -> Value:
        """A Python int that is an extent; known if the extent is."""
        if isinstance(extent, int):
            return Known(extent)
        return Scalar(types.PY_INT, None, extent)


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One basic indexing step. `kind` is the op that reads it: slice, index, transpose, ..."""

    kind: str
    atoms: tuple[Atom, ...]
    attrs: tuple[tuple[str, Any], ...]

    @property
    def keywords(self) -> dict[str, Any]:
        """The attributes of the op."""
        return dict(self.attrs)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRef:
    """An array: `view` steps applied to the current content of `root`; `type` is what they give."""

    root: Root
    view: tuple[ViewStep, ...]
    type: TensorType


@dataclass(frozen=True, slots=True, eq=False)
class Flat(ArrayRef):
    """`array.flat`: written to as a view of the elements, but its items are copies."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuple:
    """A tuple; `cls` is the class of a namedtuple, `made` where the program makes it."""

    items: tuple[Value, ...]
    cls: type | None = None
    made: frozenset[Let] = frozenset()


class Spread:
    """What a tuple of one is of that a function takes for all of its `*rest`."""


@dataclass(frozen=True, slots=True, eq=False)
class View(Tuple):
    """What `d.keys()`, `d.values()` or `d.items()`, by its `kind`, gives of a dict of known keys
    (see containers/views.py). Past loops, branches and calls it is a tuple."""

    of: Ref | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class OpenTuple:
    """A tuple whose length only the running program knows: its items are in a list of its own,
    which nothing changes (see open_sequences.py)."""

    items: Ref


@dataclass(frozen=True, slots=True, eq=False)
class Ref:
    """A list, dict, set, object or cell on the heap. `cls` is the class of an object."""

    root: Root
    cls: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Natural:
    """A Python int from 0 to 2**64 - 1: `bits` is a number of dtype uint64 (see wide.py)."""

    bits: Atom


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped:
    """A Python int of which the low 64 bits are computed; `whole(it)` computes it, if it fits.

    depth: how many operators that takes. Only operators see it; for all else it is `whole`.
    """

    bits: Atom
    whole: Callable[[Any], Value]
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A string that only the running program knows: `function(*args)`.

    The function is pure, and the arguments are the program's own: nothing can change them.
    """

    function: Callable[..., str]
    args: tuple[Value, ...]
    origin: Any = None  # the argument that it is unchanged, which can be made static


@dataclass(frozen=True, slots=True, eq=False)
class Raised:
    """An exception on its way to its handler: `cls(*args, **keywords)`, keywords as pairs.

    One of them may be its CAUSE. One on its way to the caller knows where it was raised.
    """

    cls: type[BaseException]
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """start:stop:step."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function of the program: its Relay code, defaults by parameter name, captured cells.

    `home` is what the frontend parsed it from; `owner` the Python function whose globals it reads.
    """

    function: Function
    home: Any
    owner: Any
    defaults: tuple[tuple[str, Value], ...] = ()
    cells: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A method of a value, looked up and not yet called."""

    receiver: Value
    name: str
    function: Any = None  # the Python function, for methods of user classes


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """functools.partial(callee, *args, **keywords)."""

    callee: Value
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """pyrelay.grad(callee, ...) and its kin, not yet called."""

    callee: Value
    kind: str  # "grad" | "value_and_grad" | those of `differentials`
    argnums: Any = 0
    argnames: Any = None
    has_aux: bool = False
    rules: tuple[Any, ...] = ()  # of "custom_vjp": see `custom_rules.call_with_rule`


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """range(start, stop, step)."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True, slots=True, eq=False)
class Lazy:
    """An iterable made of others: `kind` is zip, enumerate, reversed, map or product."""

    kind: str
    sources: tuple[Value, ...]
    extra: Value | None = None  # enumerate's start, map's function


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One of several cases, chosen at run time by an int `tag`.

    `alive` are the numbers of the cases that it can still be; unions with one tag choose together.
    """

    tag: Atom
    cases: tuple[Value, ...]
    alive: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.alive:
            object.__setattr__(self, "alive", tuple(range(len(self.cases))))

    @property
    def possible(self) -> tuple[Value, ...]:
        """The cases that it can still be."""
        return tuple(self.cases[i] for i in self.alive)


@dataclass(frozen=True, slots=True, eq=False)
class Growing:
    """The content of a list whose length is known only at run time.

    `template` is the layout of one item; `rows` holds one array per leaf of it, with the capacity
    as its first extent, of which the first `count` rows are items (see growing.py). Unrolling the
    loops of Relay in `loops` may keep the length known.

    Where items are lists, the same of the inner list at a position of an outer one, whose rows
    these are: `prefix` is the position. `slots` changes where a place may have another array or
    list than before; it stays where items are added behind the others.
    """

    count: Value
    rows: tuple[Atom, ...]
    template: Any
    loops: frozenset[Let] = frozenset()
    prefix: tuple[Atom, ...] = ()
    slots: Any = None

    @property
    def capacity(self) -> Extent:
        """How many items there is room for."""
        return self.rows[0].type.shape[len(self.prefix)] if self.rows else 0  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The content of a list that is (at `path` in) the item at a position of another list.

    gone: what says in the running program that it has been taken out, if it may have been.
    """

    owner: Root
    position: Value
    path: tuple[int, ...]
    slots: Any
    gone: Atom | None = None

    def is_beside(self, other: Part) -> bool:
        """True if both are in one list, at one place of its items: they are one if their positions
        are."""
        return (self.owner, self.path, self.slots) == (other.owner, other.path, other.slots)


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """The content of a list that became an item of another one, which is not known here."""


@dataclass(frozen=True, slots=True)
class Structure:
    """How the content of a container is made: of items, or of values that have these names."""

    count: int
    names: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, content: Any) -> Structure:
        """The structure of the content of a list (a tuple), a dict or an object (a dict)."""
        return cls(len(content), tuple(content) if isinstance(content, dict) else None)


@dataclass(frozen=True, slots=True, eq=False)
class Varied:
    """The content of a container whose structure depends on whether the program raised.

    A `Tuple` of class `Structure` or a union of those. Where nothing is raised it has the structure
    `going`; only there can it be read (see `handling.nothing_raised`).
    """

    value: Value
    going: Structure | None

    @property
    def plain(self) -> Any:
        """The content where nothing is raised."""
        cases = self.value.possible if isinstance(self.value, Union) else (self.value,)
        for case in cases:
            assert isinstance(case, Tuple)
            structure: Any = case.cls
            if self.going is not None and structure == self.going:
                names = self.going.names
                return case.items if names is None else dict(zip(names, case.items, strict=True))
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A node of a recursive data type: `row` of the columns of the class that `kind` stands for.

    `pool` holds the columns; its class is the schema. A node of one of several classes, or None, is
    a union whose tag is the kind (`node`, `node_of`).
    """

    pool: Ref
    kind: int
    row: Value

    @property
    def schema(self) -> Schema:
        """The columns of the pool."""
        assert isinstance(self.pool.cls, Schema)
        return self.pool.cls

    @property
    def cls(self) -> Any:
        """The Python class."""
        return self.schema.classes[self.kind]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A list, tuple or set in a field of a node: `count` rows of `sort`'s columns from `start`."""

    pool: Ref
    cls: type
    sort: Sort
    path: str
    start: Value
    count: Value


Value = (
    Known | Scalar | Natural | Wrapped | ArrayRef | Tuple | OpenTuple | Ref | Text | Raised | Slice
    | Closure | Method | Partial | Derivative | Range | Lazy | Union | Data | Items
)

NONE = Known(None)


def number_type(value: Value) -> TensorType | None:
    """Type of a number, None if the value is not one."""
    if isinstance(value, Scalar):
        return value.type
    if isinstance(value, Known):
        return types.of_scalar(value.value)
    if isinstance(value, (Natural, Wrapped)):
        return types.PY_INT
    return None


def tensor_type(value: Value) -> TensorType | None:
    """Type of a number or an array, None if the value is neither."""
    return value.type if isinstance(value, ArrayRef) else number_type(value)


def describe(value: Value) -> str:
    """How an error message names the value's type."""
    match value:
        case Known(None):
            return "None"
        case Known(v):
            ty = types.of_scalar(v)
            if ty is not None:
                return str(ty)
            if isinstance(v, str):
                return "a string"
            if isinstance(v, type):
                return f"the class {v.__name__}"
            name = getattr(v, "__name__", None)
            return f"{name!r}" if name else f"an object of class {type(v).__name__}"
        case Scalar(ty):
            return str(ty)
        case ArrayRef(type=ty):
            return str(ty)
        case Natural() | Wrapped():
            return str(types.PY_INT)
        case Tuple(items, cls):
            if cls is not None:
                return cls.__name__
            return f"({', '.join(map(describe, items))}{',' if len(items) == 1 else ''})"
        case OpenTuple():
            return "a tuple"
        case Ref(root, cls):
            return cls.__name__ if cls is not None else _with_article(root.kind)
        case Union():
            return " or ".join(dict.fromkeys(map(describe, value.possible)))
        case Closure(function=f):
            return f"the function {function_name(f)!r}"
        case Method(name=name):
            return f"the method {name!r}"
        case Text():
            return "a string"
        case Raised(cls):
            return cls.__name__
        case Slice():
            return "a slice"
        case Range():
            return "a range"
        case Lazy(kind=kind):
            return f"{'an' if kind == 'enumerate' else 'a'} {kind}"
        case Data():
            return str(value.cls.__name__)
        case Items(cls=cls):
            return f"a {cls.__name__}"
        case Partial() | Derivative():
            return "a function"
    raise AssertionError(value)


def _with_article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def function_name(function: Function) -> str:
    """The name of a function as its author wrote it."""
    name = function.name.rpartition(".")[2]
    return "<lambda>" if name.startswith("<lambda>") else name


def is_known_number(value: Value) -> bool:
    """True for a number whose value is known."""
    return isinstance(value, Known) and types.of_scalar(value.value) is not None


def range_of(value: Value) -> Range | None:
    """A range, a known one as one of known numbers; None for anything else."""
    if isinstance(value, Known) and isinstance(value.value, range):
        return Range(*map(Known, (value.value.start, value.value.stop, value.value.step)))
    return value if isinstance(value, Range) else None


def is_list(value: Value) -> TypeGuard[Ref]:
    """True for a list."""
    return isinstance(value, Ref) and value.root.kind == "list"


def node(pool: Ref, kinds: Sequence[int], kind: Value, row: Value) -> Value:
    """A node of one of these kinds, which `kind` tells at run time."""
    if len(kinds) == 1:
        return Data(pool, kinds[0], row) if kinds[0] != NO_NODE else NONE
    assert isinstance(kind, Scalar)
    assert kind.atom is not None
    cases: list[Value] = [NONE, *(Data(pool, k, row) for k in range(1, len(pool.cls.classes)))]
    return Union(kind.atom, tuple(cases), tuple(kinds))


def node_of(value: Value) -> tuple[Ref, tuple[int, ...], Value, Value] | None:
    """The pool, possible kinds, kind and row of a node; None for another value."""
    match value:
        case Data(pool, kind, row):
            return pool, (kind,), Known(kind), row
        case Union(tag, cases, alive):
            first = next((c for c in value.possible if isinstance(c, Data)), None)
            if first is None or not all(_is_case(cases[k], k, first) for k in alive):
                return None
            return first.pool, alive, Scalar(types.PY_INT, tag), first.row
    return None


def _is_case(case: Value, number: int, node: Data) -> bool:
    if number == NO_NODE:
        return isinstance(case, Known) and case.value is None
    return (
        isinstance(case, Data) and case.kind == number and case.pool.root is node.pool.root
        and (case.row is node.row or getattr(case.row, "atom", 0) == getattr(node.row, "atom", 1))
    )


def leaves_of(values: tuple[Value, ...]) -> Iterator[Value]:
    """The values and everything inside their immutable structure (heap contents excluded)."""
    pending = list(reversed(values))
    while pending:
        value = pending.pop()
        yield value
        match value:
            case Tuple(items) | Text(args=items):
                pending.extend(reversed(items))
            case Union():
                pending.extend(reversed(value.possible))
            case Slice(a, b, c) | Range(a, b, c):
                pending.extend((c, b, a))
            case Closure(defaults=defaults, cells=cells):
                pending.extend(cells)
                pending.extend(v for _, v in defaults)
            case Method(receiver=receiver):
                pending.append(receiver)
            case Partial(callee, args, keywords):
                pending.extend((callee, *args, *(v for _, v in keywords)))
            case Derivative(callee=callee):
                pending.append(callee)
            case Lazy(sources=sources, extra=extra):
                pending.extend(sources)
                if extra is not None:
                    pending.append(extra)
