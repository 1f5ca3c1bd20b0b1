"""What specialising a function gives: the typed program and how its ends meet Python.

A `Specialised` says how the flat parameters are found among arguments and captured objects, how
flat results become Python's, what the program writes of its caller's, and the guards it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrelay import errors
from pyrelay.infer.guards import ExtentGuard, NameGuard
from pyrelay.infer.result_trees import PoolResult, ResultTree
from pyrelay.infer.structure import Key
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Module
from pyrelay.records import dataclass


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
class Specialised:
    """A typed program for one structure of arguments."""

    module: Module
    hidden: tuple[HiddenArgument, ...]
    static: Mapping[int, Any]  # leaf number -> the value it was compiled for
    parameters: tuple[int, ...]  # leaf number of each parameter of the entry function
    result: ResultTree
    mutated: Mapping[int, int]  # leaf number -> result number with its new content
    changes: tuple[ContainerChange, ...]
    extents: tuple[ExtentGuard, ...]
    conditions: tuple[ExtentGuard, ...]  # the same over the symbols that the module has left
    names: tuple[NameGuard, ...]
    leaf_names: tuple[str, ...]
    axes: Mapping[Symbol, tuple[int, int]]  # leaf number and axis that each symbol is read from
    columns: Mapping[int, tuple[int, str]]  # leaf number -> the pool and column that it is
    trees: tuple[TreeChange, ...]
    apart: int  # lists up to this length are structures of their items
    #: what it writes of the caller's, and where
    writes: tuple[tuple[str, errors.Span | None], ...]
    #: whether it asks if two objects are one, so that passing one twice is another program
    identity: bool
    #: whether lists, dicts and objects of the caller are as before the call where it raises
    loses: bool
