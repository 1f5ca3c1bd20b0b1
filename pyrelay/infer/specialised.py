"""What specialising a function gives: the typed program and how its ends meet Python.

A `Binding` says how the flat parameters are found among arguments and captured objects, how flat
results become Python's, what the program writes of its caller's, and the guards it rests on: all
that a call needs, once the program is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay import errors
from pyrelay.infer.arrays.layouts import Layout
from pyrelay.infer.guards import ExtentGuard, NameGuard
from pyrelay.infer.nodes.datatypes import Families
from pyrelay.infer.result_trees import PoolResult, ResultTree
from pyrelay.infer.structure import Key
from pyrelay.ir.dims import Symbol
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.ir.nodes import Module


@dataclass(frozen=True, slots=True)
class HiddenArgument:
    """An object that the program captures: read at each call by `source`, or always `value`."""

    source: NameGuard | None
    value: Any
    key: Key
    name: str

    def read(self) -> Any:
        """The object to flatten for this call."""
        return self.value if self.source is None else self.source.read()


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """What a caller's list, dict or object contains after the program."""

    number: int
    kind: str
    names: tuple[Any, ...]
    children: tuple[ResultTree, ...]


@dataclass(frozen=True, slots=True)
class TreeChange:
    """The fields (kind and name) of a caller's nodes that the program assigns to."""

    fields: tuple[tuple[int, str], ...]
    pool: PoolResult


@dataclass(frozen=True, slots=True)
class Binding:
    """How a program for one structure of arguments meets Python.

    result_count: of the module. placed: position of each parameter that is stored to -> the result
    with its new content; arrays without axes are numbers to a program: their new content is a
    result like others. has_arrays: whether any parameter is an array with axes.
    """

    hidden: tuple[HiddenArgument, ...]
    static: Mapping[int, Any]  # leaf number -> the value it was compiled for
    parameters: tuple[int, ...]  # leaf number of each parameter of the entry function
    result: ResultTree
    mutated: Mapping[int, int]  # leaf number -> result number with its new content
    changes: tuple[ContainerChange, ...]
    extents: tuple[ExtentGuard, ...]
    names: tuple[NameGuard, ...]
    leaf_names: tuple[str, ...]
    axes: Mapping[Symbol, tuple[int, int]]  # leaf number and axis that each symbol is read from
    columns: Mapping[int, tuple[int, str]]  # leaf number -> the pool and column that it is
    trees: tuple[TreeChange, ...]
    apart: int  # lists up to this length are structures of their items
    families: Families | None  # where objects of the caller are nodes for this program alone
    #: what it writes of the caller's, and where
    writes: tuple[tuple[str, errors.Span | None], ...]
    #: whether it asks if two objects are one, so that passing one twice is another program
    identity: bool
    #: whether lists, dicts and objects of the caller are as before the call where it raises
    loses: bool
    result_count: int
    placed: Mapping[int, int]
    has_arrays: bool
    #: leaves whose order in memory decides what reshaping copies, and how they lie
    layouts: Mapping[int, Layout | None]
    #: leaves that it reads, where it writes any: others may share memory with what it writes
    read: tuple[int, ...]
    #: leaves that enter with their axes in another order, and that order: as they lie in memory
    turned: Mapping[int, tuple[int, ...]]

    @property
    def orders(self) -> Mapping[int, tuple[int, ...]]:
        """The order of each parameter that enters in another one, by its position."""
        position = {leaf: k for k, leaf in enumerate(self.parameters)}
        return {position[leaf]: order for leaf, order in self.turned.items() if leaf in position}

    def sizes(self, leaves: Sequence[Any]) -> dict[Symbol, int]:
        """What extents are in a call, but for those of captured objects, by its leaves."""
        return {
            symbol: leaves[leaf].shape[axis]
            for symbol, (leaf, axis) in self.axes.items() if leaf < len(leaves)
        }

    @property
    def placed_leaves(self) -> Mapping[int, int]:
        """Leaf of each parameter that is stored to -> position of the parameter."""
        return {self.parameters[k]: k for k in self.placed}

    @property
    def kept(self) -> Mapping[int, int]:
        """Result number of the module -> position among what the compiled program gives."""
        written = set(self.placed.values())
        order = [k for k in range(self.result_count) if k not in written]
        return {k: n for n, k in enumerate(order)}


@dataclass(frozen=True, slots=True)
class Specialised:
    """A typed program for one structure of arguments, and how it meets Python."""

    module: Module
    binding: Binding
    #: the binding's extents, over the symbols that the module has left
    conditions: tuple[ExtentGuard, ...]
