"""What a program reads and writes of its arguments, which its binding says.

In: an `Attempt` whose call was interpreted. Out: the leaves that are read; what is written, in
words for the user; whether an array is written part by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.specialised import ContainerChange, TreeChange
from pyrelay.ir.nodes import Atom, Function, OpCall, Rhs
from pyrelay.ir.walk import free_vars, operands
from pyrelay.ops.index import UPDATES

if TYPE_CHECKING:
    from pyrelay.infer.attempt import Attempt


def updated_by_parts(it: Interpreter, attempt: Attempt, content: Atom) -> bool:
    """Whether content of an argument is what it was with some parts updated, one after the
    other."""
    made: dict[Atom, Rhs] = {out: let.rhs for let in it.builder.lets for out in let.outs}
    while content not in attempt.params:
        update = made.get(content)
        if not isinstance(update, OpCall) or not (
            update.op.name in UPDATES or update.op.name == "transpose"
        ):
            return False
        content = update.args[0]
    return True


def leaves_read(attempt: Attempt, entry: Function) -> tuple[int, ...]:
    """The leaves whose parameters the program reads."""
    entered = {p: p for _, p in zip(attempt.parameters, entry.params, strict=False)}
    lets = list(entry.body.lets)
    for leaf, param in zip(attempt.parameters, entry.params, strict=False):
        if leaf in attempt.turned:  # nothing else reads the parameter
            for turning in [x for x in lets if param in operands(x.rhs)]:
                lets.remove(turning)
                entered[param] = turning.outs[0]
    read = set(free_vars(replace(entry.body, lets=tuple(lets))))
    leaves = zip(attempt.parameters, entry.params, strict=False)  # then come seeds
    return tuple(leaf for leaf, param in leaves if entered[param] in read)


def what_is_written(
    it: Interpreter, attempt: Attempt, mutated: Mapping[int, int],
    changes: Sequence[ContainerChange], trees: Sequence[TreeChange],
) -> tuple[tuple[str, errors.Span | None], ...]:
    """What a program writes of its arguments, in words, and where."""
    where = it.heap.written
    arrays = [
        (repr(attempt.flat.names[k]), where.get(attempt.roots[k]))
        for k in mutated if k in attempt.roots
    ]
    roots = [attempt.containers[c.number] for c in changes]
    names = [", ".join(repr(name) for _, name in t.fields) for t in trees]
    nodes = [(f"{n} of an object of the caller", None) for n in names]
    containers = [
        ("a dict or set of the caller", _written_in(it, attempt, r)) if r in attempt.tabled
        else (f"a {r.kind} of the caller", where.get(r)) for r in roots
    ]
    return (*arrays, *containers, *nodes)


def _written_in(it: Interpreter, attempt: Attempt, root: V.Root) -> errors.Span | None:
    """Where a dict that entered as a table was written."""
    where = it.heap.written
    return next((s for r in attempt.tabled[root] if (s := where.get(r))), None)
