"""Sets: their items are known while compiling; sets of run-time values can be looked through only.

In: references to sets (the heap holds their items in the order in which Python goes through them)
and known frozensets. Out: sets, numbers and truths; changed contents on the heap.

The order of a set in CPython is that of its table, which another set of equal items need not have.
So contents whose items are known have a set of Python's own, which came about as the program's
would have (`KnownItems`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import needs, own_arrays
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_keys import ask, is_known, is_open, key_of
from pyrelay.infer.guards import NameGuard
from pyrelay.infer.in_python.containers import at_once
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.spellings import PYTHON

_MOST_TRIED = 720  # orders in which items are put in
_OPERATORS = frozenset(["&", "|", "-", "^", "==", "!=", "<", "<=", ">", ">="])
_INPLACE = {
    "&": "intersection_update", "|": "update", "-": "difference_update",
    "^": "symmetric_difference_update",
}
_METHODS = frozenset({
    "difference", "intersection", "isdisjoint", "issubset", "issuperset", "symmetric_difference",
    "union", "copy",
})  # fmt: skip
_CHANGES = frozenset({
    "add", "clear", "difference_update", "discard", "intersection_update", "pop", "remove",
    "symmetric_difference_update", "update",
})  # fmt: skip


class KnownItems(tuple[V.Value, ...]):
    """Known items, in order, and a set of them, which nobody changes.

    `begin` makes such a set as the program did, which `changes`, names of methods and what they
    were given, bring to the same state: no copy of a set is sure to have its table.
    """

    python: set[Any]
    begin: Callable[[], set[Any]]
    changes: tuple[tuple[str, tuple[Any, ...]], ...]

    @classmethod
    def made(
        cls, begin: Callable[[], set[Any]], changes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    ) -> KnownItems:
        """The items of what `begin` makes, changed."""
        python = begin()
        for name, args in changes:
            getattr(python, name)(*args)
        content = cls(map(V.Known, python))
        content.python, content.begin, content.changes = python, begin, changes
        return content

    def anew(self) -> partial[set[Any]]:
        """What makes a set that has this one's order of a list of its items: `set` or `at_once`,
        and the list, in the order in which the program put them in, if that leads to it."""
        order = list(self.python)
        of_items = isinstance(self.begin, partial) and self.begin.func in (set, at_once)
        put_in = list(self.begin.args[0]) if of_items else []  # type: ignore[attr-defined]
        for name, args in self.changes:
            put_in += {"add": args, "update": itertools.chain(*args)}.get(name, ())
        its_own = {item: item for item in order}  # 1 may have been put in again as True
        added = dict.fromkeys(its_own[item] for item in put_in if item in its_own)
        return begun(order, [*added])


def begun(order: list[Any], added: list[Any]) -> partial[set[Any]]:
    """What makes a set that Python goes through in this order, of a list of its items: of `added`,
    or in another order, if any tried leads to that; else of the items."""
    drawn = random.Random(0)
    others = (drawn.sample(order, len(order)) for _ in range(_MOST_TRIED))
    ways: tuple[Callable[[list[Any]], set[Any]], ...] = (set, at_once)
    for items in itertools.chain([added, order], others):
        for way in ways:
            if list(way(items)) == order:
                return partial(way, items)
    return partial(set, order)


def new(it: Interpreter, items: Iterable[V.Value], of_dict: bool = False) -> V.Value:
    """A set of these items, each once if they are known. of_dict: they are the keys of a dict."""
    found = tuple(items)
    if all(map(is_known, found)):
        values = [it.static(i, "an item of a set") for i in found]
        return it.new_ref("set", KnownItems.made(partial(at_once if of_dict else set, values)))
    made = it.new_ref("set", found)
    if it.let is not None and any(is_open(i) and not isinstance(i, V.Data) for i in found):
        ask(it, made.root)
    return made


def displayed(it: Interpreter, parts: Sequence[V.Value], starred: Sequence[bool]) -> V.Value:
    """A set of known items, put in as `{first, *others}` does: a dict's keys all at once."""
    empty = it.new_ref("set", KnownItems.made(partial(set, ())))
    assert isinstance(empty, V.Ref)
    for value, spread in zip(parts, starred, strict=True):
        METHODS["update" if spread else "add"](it, empty, value)
    return empty


def copy_of(it: Interpreter, value: V.Value) -> V.Value:
    """set(value) of a set."""
    if isinstance(value, V.Ref) and not isinstance(it.content(value.root), KnownItems):
        return it.new_ref("set", it.content(value.root))
    return it.new_ref("set", KnownItems.made(partial(set, python_set(it, value))))


def frozen(it: Interpreter, value: V.Value, as_it_is: bool) -> frozenset[Any]:
    """The frozenset of a set; of what a new one was made of, unless that was a set."""
    python = python_set(it, value)
    if not as_it_is and isinstance(value, V.Ref):
        begin = _known_items(it, value).begin
        if isinstance(begin, partial) and begin.func in (set, at_once):
            (items,) = begin.args
            return frozenset(dict.fromkeys(items) if begin.func is at_once else items)
    return frozenset(python)


def is_dict(value: V.Value) -> bool:
    """True for a dict of known keys, of which Python makes sets with another table."""
    return isinstance(value, V.Ref) and value.root.kind == "dict"


def is_set(value: V.Value) -> bool:
    """True for a set, known or not."""
    if isinstance(value, V.Known):
        return isinstance(value.value, (set, frozenset))
    return isinstance(value, V.Ref) and value.root.kind == "set"


def items(it: Interpreter, ref: V.Ref) -> tuple[V.Value, ...]:
    """The items of a set. Raises UnsupportedOperationError if some may be equal."""
    found: tuple[V.Value, ...] = it.content(ref.root)
    if len(found) > 1 and not all(isinstance(i, V.Known) for i in found):
        ask(it, ref.root)
        raise it.failure(
            errors.UnsupportedOperationError,
            "how many items this set has is known only at run time, since some may be equal",
            hints=("keep them in a tuple or an array, or use np.unique",),
        )
    return found


def python_set(it: Interpreter, value: V.Value) -> Any:
    """The Python set of a set whose items are known, which is not to be changed."""
    if isinstance(value, V.Known):
        return value.value
    assert isinstance(value, V.Ref)
    return _known_items(it, value).python


def _known_items(it: Interpreter, ref: V.Ref) -> KnownItems:
    content = items(it, ref)
    if isinstance(content, KnownItems):
        return content
    ask(it, ref.root)
    values = [it.static(i, "an item of a set") for i in content]  # in the caller's order
    return KnownItems.made(begun(values, values))


def in_order(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    """The items of a set, for what depends on their order: of texts, it does on the process."""
    found = tuple(map(V.Known, value.value)) if isinstance(value, V.Known) else items(it, value)  # type: ignore[arg-type]
    if not all(isinstance(i, V.Known) and _is_of_numbers(i.value) for i in found):
        it.program.guards.record(NameGuard(
            "attribute", own_arrays, "HASH_OF_A_TEXT", own_arrays.HASH_OF_A_TEXT, True
        ))
    return found


def _is_of_numbers(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_of_numbers, value))
    return isinstance(value, (int, float, np.generic))


def in_no_order(it: Interpreter, value: V.Value) -> tuple[V.Value, ...] | None:
    """The known items of a set, for what does not depend on their order: one for all processes.

    None for what is no such set.
    """
    if not isinstance(value, V.Known) and not (
        isinstance(value, V.Ref) and isinstance(it.content(value.root), KnownItems)
    ):
        return None
    return tuple(map(V.Known, sorted(python_set(it, value), key=repr))) if is_set(value) else None


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` of two sets; None for anything else."""
    _refuse_ranges(it, x, y)
    if not (is_set(x) and is_set(y)) or op not in _OPERATORS:
        return None
    return result(it, partial(PYTHON[op], python_set(it, x), python_set(it, y)))


def result(it: Interpreter, compute: Callable[[], Any]) -> V.Value:
    """What is computed of known sets: a set, or whether something is true of them."""
    found = compute()
    if not isinstance(found, set):
        return V.Known(found)
    return it.new_ref("set", KnownItems.made(compute))


def inplace(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op= y`, which changes a set; None for anything else."""
    _refuse_ranges(it, x, y)
    if not (isinstance(x, V.Ref) and is_set(x) and is_set(y)) or op not in "&|-^":
        return None
    if x != y:
        _change(it, x, _INPLACE[op], (python_set(it, y),))
    elif op in "-^":
        _change(it, x, "clear", ())
    return x


def _refuse_ranges(it: Interpreter, *values: V.Value) -> None:
    """Raises UnsupportedOperationError if one is a set in a field of a node."""
    if any(isinstance(value, V.Items) and value.cls is set for value in values):
        from pyrelay.infer.nodes.sets_of_nodes import outgrown

        raise outgrown(it, "compared with another value or joined with it")


def _change(it: Interpreter, ref: V.Ref, name: str, args: tuple[Any, ...]) -> None:
    if ref.root.stored:
        from pyrelay.infer.nodes.sets_of_nodes import outgrown

        raise outgrown(it, "changed")
    content = _known_items(it, ref)
    changed = KnownItems.made(content.begin, (*content.changes, (name, args)))
    it.heap.write(ref.root, changed, it.let.span if it.let else None)


def _as_argument(it: Interpreter, of: V.Ref, value: V.Value) -> Any:
    """The items of an iterable, for a method of a set, which could be made for open ones."""
    from pyrelay.infer.flow.iteration import sequence_of

    if is_set(value):
        return python_set(it, value)
    try:
        values = [it.static(i, "an item of a set") for i in sequence_of(it, value)]
    except (errors.StaticValueError, needs.NeedsStatic):
        ask(it, of.root)
        raise
    return dict.fromkeys(values) if is_dict(value) else values


def _asking(name: str) -> Callable[..., V.Value]:
    def method(it: Interpreter, x: V.Ref, *others: V.Value) -> V.Value:
        given = [_as_argument(it, x, other) for other in others]
        return result(it, partial(getattr(python_set(it, x), name), *given))

    return method


def _changing(name: str) -> Callable[..., V.Value]:
    def method(it: Interpreter, x: V.Ref, *args: V.Value) -> V.Value:
        from pyrelay.infer.operators import raised

        single = name in ("add", "discard", "remove")
        given = [
            key_of(it, x, a, "an item of a set") if single else _as_argument(it, x, a)
            for a in args
        ]
        if x in args:  # what is given is the set before
            given = [set(g) if isinstance(g, set) else g for g in given]
        if name == "pop":
            in_order(it, x)
        content = _known_items(it, x)
        python = KnownItems.made(content.begin, content.changes).python
        try:
            result = getattr(python, name)(*given)
        except KeyError as error:
            raise raised(it, error) from None
        except TypeError as error:
            raise it.failure(errors.TypeMismatchError, str(error)) from None
        _change(it, x, name, tuple(given))
        return V.Known(result)

    return method


METHODS: dict[str, Callable[..., V.Value]] = {
    **{name: _asking(name) for name in _METHODS}, **{name: _changing(name) for name in _CHANGES},
}
