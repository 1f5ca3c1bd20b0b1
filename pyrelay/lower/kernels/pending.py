"""Expressions that wait for the one statement that uses them, for printers of kernel IR.

In: statements in order, with the printed forms of what they compute. Out: for each operand the
expression to print. A scalar that is read once, in the body that computes it, becomes part of the
expression that reads it; what it reads may change before, so it is bound to a name in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pyrelay.lower.kernels.kernel import Body, Literal, Local, Operand, bodies, operands
from pyrelay.records import dataclass

Tree = TypeVar("Tree")
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Held(Generic[Tree]):
    """An expression: how many operations it has, which variables and whether memory it reads."""

    tree: Tree
    weight: int
    variables: frozenset[Local]
    memory: bool


def readers(body: Body, results: tuple[Operand, ...] = ()) -> dict[Local, list[int]]:
    """Per scalar, the bodies that read it: a body is known by the id of its tuple."""
    found: dict[Local, list[int]] = {}
    for operand in results:
        if isinstance(operand, Local):
            found.setdefault(operand, []).append(id(results))
    waiting = [body]
    while waiting:
        here = waiting.pop()
        for statement in here:
            for operand in operands(statement):
                if isinstance(operand, Local):
                    found.setdefault(operand, []).append(id(here))
            waiting += bodies(statement)
    return found


class Pending(Generic[Tree, Place]):
    """The expressions that wait.

    bind: writes `name = tree` at a place. name: a scalar by its name. literal: a number. largest:
    how many operations one expression may have.
    """

    def __init__(
        self, users: dict[Local, list[int]], largest: int,
        bind: Callable[[Local, Tree, Place], None], name: Callable[[Local], Tree],
        literal: Callable[[Literal], Tree],
    ) -> None:
        self.users, self.largest = users, largest
        self.bind, self.name, self.literal = bind, name, literal
        self.held: dict[Local, Held[Tree]] = {}

    def define(
        self, local: Local, tree: Tree, taken: Sequence[Held[Tree]], body: Body, place: Place, *,
        loads: bool,
    ) -> None:
        """What a scalar is, made of these operands: held back if it may be, else bound."""
        weight = 1 + sum(t.weight for t in taken)
        if self.users.get(local) == [id(body)] and weight <= self.largest:
            variables = frozenset[Local]().union(*(t.variables for t in taken))
            memory = loads or any(t.memory for t in taken)
            self.held[local] = Held(tree, weight, variables, memory)
        else:
            self.bind(local, tree, place)

    def take(self, operand: Operand, room: int, place: Place) -> Held[Tree]:
        """The expression of an operand, which is used up if it was held back."""
        if isinstance(operand, Literal):
            return Held(self.literal(operand), 0, frozenset(), False)
        held = self.held.pop(operand, None)
        if held is not None and held.weight < room:
            return held
        if held is not None:
            self.bind(operand, held.tree, place)
        variables = frozenset([operand]) if operand.variable else frozenset[Local]()
        return Held(self.name(operand), 0, variables, False)

    def flush(self, place: Place, variable: Local | None = None, *, memory: bool = False) -> None:
        """Binds what is held back, in order: what reads this variable or memory, or all of it."""
        everything = variable is None and not memory
        for local, held in list(self.held.items()):
            if everything or variable in held.variables or (memory and held.memory):
                del self.held[local]
                self.bind(local, held.tree, place)
