"""What one specialisation shares: functions made so far, guards, names read.

In: what an attempt was asked for (asked.py). Out: what its interpreters note on their way, which
the next attempt is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from pyrelay.errors import PyrelayError
from pyrelay.infer import values as V
from pyrelay.infer.arrays.layouts import Layout
from pyrelay.infer.arrays.memory_order import Memory
from pyrelay.infer.effort import Effort
from pyrelay.infer.guards import Guards
from pyrelay.infer.needs import NeedsCapture
from pyrelay.infer.nodes.anonymous import Groups
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families
from pyrelay.infer.nodes.plans import Lacking
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Function, Let, Var
from pyrelay.records import dataclass

#: A place of the program: the calls that lead there and what stands there.
Place = tuple[Any, ...]


@dataclass
class Program:
    """State shared by the whole specialisation of one entry."""

    parse: Callable[[Any], Any]  # Python function -> frontend's ParsedFunction
    guards: Guards
    functions: dict[str, Function] = field(default_factory=dict)
    specialisations: dict[Any, list[Any]] = field(default_factory=dict)
    recursive: set[Any] = field(default_factory=set)  # functions that call themselves
    #: What functions cost in line: how often they were called, and the statements interpreted.
    costs: dict[Function, tuple[int, int]] = field(default_factory=dict)
    #: Those that cost much, in attempts before, too; None if all functions are to be in line.
    own: set[Function] | None = field(default_factory=set)
    in_line: set[Function] = field(default_factory=set)  # those that have to be (own_functions.py)
    declared: dict[Any, Any] = field(default_factory=dict)  # what functions say of their arrays
    making: list[Any] = field(default_factory=list)  # specialisations in progress, outermost first
    names: dict[str, int] = field(default_factory=dict)
    seeds: list[Var] = field(default_factory=list)  # parameters behind those of the arguments
    hidden: dict[int, V.Value] = field(default_factory=dict)  # id of a captured object -> value
    new_leaf: Callable[..., V.Value] | None = None  # makes a hidden argument of a captured object
    objects: list[V.Value] = field(default_factory=list)  # mutable objects from outside, by number
    #: Ops in bodies of `try` whose failure has a branch of its own.
    checked: set[Let] = field(default_factory=set)
    #: Whether ops of some operands may raise, as far as was asked.
    may_raise: dict[Any, bool] = field(default_factory=dict)
    #: Those that make extents of numbers of the user's, which may be negative.
    given_lengths: set[Let] = field(default_factory=set)
    #: Functions called in bodies of `try` before they were complete, with the error if they raise.
    silent: dict[str, PyrelayError] = field(default_factory=dict)
    containers: list[V.Root] = field(default_factory=list)  # those of the objects from outside
    captured: list[int] = field(default_factory=list)  # captured ones passed to every function
    #: library functions of the program's own that read captured objects, with the request for one
    reading: dict[Function, NeedsCapture] = field(default_factory=dict)
    #: parameters of functions that call themselves which the program computes, whoever wants to
    #: know them: by function and place
    computed: set[tuple[Function, int]] = field(default_factory=set)
    #: no object of the user is a node, and functions that call themselves with objects are in line
    unfolds: bool = False
    families: Families = field(default_factory=lambda: Families(EVERYWHERE))
    nodes: Groups = field(default_factory=Groups)  # tuples that are nodes (anonymous.py)
    plans: dict[Any, Any] = field(default_factory=dict)  # what is built, by data type (plans.py)
    effort: Effort = field(default_factory=Effort)
    lacking: Lacking = field(default_factory=Lacking)  # what the pools turned out not to hold
    leaves: bool = False  # by a `raise` that the code at hand may be behind
    raises_late: bool = False  # behind a write to an object of the caller
    raises_again: bool = False  # in a loop or a recursive function, so that it may be behind one
    follows_ops: bool = False  # the caller sees what was written before an op raises, too
    fails_late: bool = False  # an op may raise behind a write to a container of the caller
    fails_again: bool = False  # one in a loop or a recursive function may
    raising: set[str] = field(default_factory=set)  # functions of their own with a `raise`
    #: those that give what they raise, or raise nothing
    following: set[str] = field(default_factory=set)
    narrow: bool = False  # arguments are of types that do not hold Python's numbers
    exact: int = 0  # from 1: arrays names may share have numbers; from 2: views stay views
    chooses: bool = False  # one of two lists stays one of them; lists of lists grow
    tells_new: bool = False  # so it does if the other one is new
    generators: dict[Function, bool] = field(default_factory=dict)  # those that yield, by function
    ahead: frozenset[Let] = frozenset()  # makers of generators whose items are computed at once
    #: Generators that run: how many functions are active around each, and layouts of its arguments.
    begun: dict[Function, list[tuple[int, list[Any], list[Any]]]] = field(default_factory=dict)
    gathered: frozenset[Function] = frozenset()  # generators that call themselves, however deep
    counted: frozenset[Function] = frozenset()  # those that run as deep as known numbers say
    #: What generators whose items were computed at once depend on: the contents of objects then.
    sources: dict[V.Root, dict[V.Root, Any]] = field(default_factory=dict)
    #: What generators returned whose bodies ran in line.
    returned: dict[V.Root, V.Value] = field(default_factory=dict)
    stretches: bool = False  # operands of extents known at run time are, where these are 1
    splits: int = 0  # branches that what follows was put into
    unrolled: frozenset[Let] = frozenset()  # loops whose lists must have a known length
    growing: set[Let] = field(default_factory=set)  # loops whose lists cannot have one
    tables: frozenset[Let] = frozenset()  # makers of dicts and sets with keys known at run time
    open_keys: set[Let] = field(default_factory=set)  # those that were given such keys
    of_nodes: set[Let] = field(default_factory=set)  # those that were given nodes
    ranges: set[Let] = field(default_factory=set)  # makers of sets in fields of nodes
    nested: frozenset[Let] = frozenset()  # makers of containers that are items of others
    mixed: set[Let] = field(default_factory=set)  # makers of lists that are items beside others
    ordered: bool = False  # sets keep the order that they have in Python (set_order.py)
    keyed: frozenset[Let] = frozenset()  # makers of dicts with a field for each key (entries.py)
    unkeyed: frozenset[Let] = frozenset()  # those that have no such, as they get other keys
    entries: dict[type, set[Let]] = field(default_factory=dict)  # those by the class of the dicts
    outgrown: set[Let] = field(default_factory=set)  # those whose dicts would get other keys
    compared: int = 0  # keys of dicts that are compared with one of the running program
    compares: bool = False  # however many these are, and loops over dicts are unrolled
    opens: bool = False  # a dict of the caller was given such a key
    #: lists that dicts and sets of the caller's, and nodes that are changed, are made of
    entered: list[V.Root] = field(default_factory=list)
    keys_known: bool = False  # arguments of recursive functions that are keys are made known
    keys_wanted: bool = False  # or would have been
    counts_known: bool = False  # so are arguments that say how often loops over objects run
    counts_wanted: bool = False  # or would have been
    #: loops in loops whose first round gives objects their structure run at least once, and calls
    #: in which one does not are refused
    begins: bool = False
    begins_wanted: bool = False  # or would have to
    texts_known: bool = False  # so are texts whose methods are called
    texts_read: bool = False  # or would have been: the program computes what these give
    #: ints computed of one argument and constants: where that came from
    computed_of: dict[Var, Any] = field(default_factory=dict)
    origins: dict[Var, Any] = field(default_factory=dict)  # of parameters that are such an argument
    looked_up: dict[Atom, Any] = field(default_factory=dict)  # keys of tables, see absent_keys
    #: loops that run as often as such a number says, by the symbols of their indices
    counts: dict[Symbol, Any] = field(default_factory=dict)
    checks_shapes: bool = False  # of items, which may differ: their extents are computed
    #: numbers of which pools of nodes have the lengths, and 0 for those that are negative
    lengths: dict[Atom, Extent] = field(default_factory=dict)
    length_leaves: dict[Extent, int] = field(default_factory=dict)  # arguments that extents are
    #: how arguments lie in memory that are not contiguous, as far as that was asked; how arrays of
    #: the program do; those that were reshaped as arguments lie (memory_order.py)
    layouts: dict[int, Layout | None] = field(default_factory=dict)
    memory: dict[V.Root, Memory] = field(default_factory=dict)
    reshaped: dict[V.Root, frozenset[int]] = field(default_factory=dict)
    laid: frozenset[int] = frozenset()  # leaves whose strides the program reads
    wide: bool | None = False  # ints may have 64 bits and no sign; None if that can be asked for
    moves: bool = False  # items of a list changed places by an operation that can note them
    forwards: list[Any] = field(default_factory=list)  # halves of rules that are interpreted now
    #: arrays made of lists of run-time length: of an empty one NumPy makes floats, of one axis
    listed: set[V.Root] = field(default_factory=set)
    memos: dict[Any, int] = field(default_factory=dict)  # tables of cached functions, by number
    remembers: bool = True  # False where such tables cannot hold what the functions give
    exact_keys: bool = False  # floats are no keys of these: there are derivatives
    keeps_floats: bool = False  # or have been
    #: Lists become items as copies, and are unchanged from then on: from 1 those that others made,
    #: from 2 all.
    lends: int = 0
    #: those that the program assigns, by their class, and variables, by their module
    class_attributes: Mapping[Any, tuple[str, ...]] = field(default_factory=dict)
    lent: int = 0  # what would have made copies of more lists
    lent_at: frozenset[Place] = frozenset()  # where lists become items as copies whatever `lends`
    shared_at: set[Place] = field(default_factory=set)  # where one would have been in two places

    def note_source(self, result: V.Scalar, x: V.Value, y: V.Value) -> None:
        """Note what `result`, an int computed of two, comes from, if one of them is a constant."""
        if isinstance(result.atom, Var) and V.Known in (type(x), type(y)):
            source = self.source_of(y if isinstance(x, V.Known) else x)
            if source is not None:
                self.computed_of[result.atom] = source

    def note_count(self, index: Symbol, count: V.Value) -> None:
        """Note where the number comes from that says how often the loop of an index runs."""
        source = self.source_of(count)
        if source is not None:
            self.counts[index] = source

    def source_of(self, value: V.Value) -> Any:
        """The origin of the argument that an int is, or is computed of with constants only; None if
        there is none that could be made known."""
        if not isinstance(value, V.Scalar):
            return None
        if isinstance(value.origin, tuple):
            return value.origin
        return self.computed_of.get(value.atom) if isinstance(value.atom, Var) else None

    def unique(self, name: str) -> str:
        """A name for a Core function."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return name if not count else f"{name}.{count}"
