"""Items of tuples, short lists and dicts by an index or a key, known or not.

In: the items and the key. Out: the item. A key that only the running program knows chooses among
the items by a chain of branches, or, among many numbers, by indexing an array of them. Where the
items differ in shape and the key can be known (it is an argument, or the index of a loop that can
be unrolled), knowing it is asked for instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_keys import is_open, key_of, note
from pyrelay.infer.flow import constants
from pyrelay.infer.flow.effects import emit_raise, raise_where
from pyrelay.infer.flow.handling import certain, is_raised
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import compare, raised
from pyrelay.ir import dims, types

#: More numbers than this are put into an array and indexed.
MOST_BRANCHES = 4
#: More keys than this are not compared one by one in a program, if their dict can be a table.
MOST_COMPARED = 2000
#: A comparison of strings or tuples counts as so many of numbers: it is about as much longer.
COMPARED_ITEMS = 10


def item(it: Interpreter, items: Sequence[V.Value], key: V.Value, kind: str) -> V.Value:
    """`items[key]` of a tuple or list, as `kind` says; a part for a slice."""
    if is_computed(it, key) and items and not _better_known(it, key, items):
        return _choose_item(it, items, key, kind)
    if not items and is_computed(it, key):
        raise raised(it, IndexError(f"{kind} index out of range"))
    if not items and isinstance(key, V.Slice) and key.step == V.NONE:
        key = V.Known(slice(None))  # whatever its bounds are
    index = it.static(key, f"the index of a {kind}")
    if isinstance(index, slice):
        try:
            part = tuple(items[index])
        except TypeError as error:
            raise it.failure(errors.TypeMismatchError, str(error)) from None
        return V.Tuple(part) if kind == "tuple" else it.new_ref("list", part)
    if type(index) is not int and not hasattr(index, "__index__"):
        raise wrong_index(it, f"{kind} indices must be integers or slices", key)
    if not -len(items) <= index < len(items):
        if is_raised(it, IndexError):
            raise raised(it, IndexError(f"{kind} index out of range"))
        raise it.failure(
            errors.IndexRangeError,
            f"{kind} index {index} is out of range: it has {len(items)} items",
        )
    chosen: V.Value = items[index]
    return chosen


def lookup(it: Interpreter, ref: V.Ref, key: V.Value) -> V.Value:
    """`d[key]` of a dict."""
    content: Mapping[Any, V.Value] = it.content(ref.root)
    note(ref, key, it)
    if chooses(it, content, key):
        def missing() -> V.Value:
            emit_raise(it, KeyError, (key,))
            raise needs.Diverges

        return choose_by_key(it, ref, content, key, missing)
    known = key_of(it, ref, key, "the key of a dict")
    if known not in content:
        if is_raised(it, KeyError):
            raise raised(it, KeyError(known))
        present = ", ".join(map(repr, content)) or "none"
        import difflib

        close = difflib.get_close_matches(str(known), [k for k in content if isinstance(k, str)], 1)
        raise it.failure(
            errors.KeyMissingError, f"this dict has no key {known!r}",
            notes=(f"its keys are: {present}",),
            hints=[f"did you mean {k!r}?" for k in close],
        )
    return content[known]


def chooses(it: Interpreter, content: Mapping[Any, V.Value], key: V.Value) -> bool:
    """True if a key of a dict has to be looked for at run time, among numbers."""
    return (
        is_computed(it, key) and bool(content)
        and all(_same_sort(k, key) for k in content)
        and not _better_known(it, key, tuple(content.values()))
    )


def choose_by_key(
    it: Interpreter, ref: V.Ref, content: Mapping[Any, V.Value], key: V.Value,
    missing: Callable[[], V.Value],
) -> V.Value:
    """The value under a run-time key, or what `missing` gives.

    Raises NeedsTable for a dict of the program if this makes it too large.
    """
    from pyrelay.infer.flow.control import branch

    _count_compared(it, ref, key, len(content))
    pairs = list(content.items())

    def among(k: int) -> V.Value:
        if k == len(pairs):
            return missing()
        known, value = pairs[k]
        same = truth(it, compare(it, "==", key, V.Known(known)))
        if isinstance(same, V.Known):
            return value if same.value else among(k + 1)
        return branch(it, it.atom(same), lambda: [value], lambda: [among(k + 1)])[0]

    return among(0)


def _count_compared(it: Interpreter, ref: V.Ref, key: V.Value, keys: int) -> None:
    """Count the comparisons of a key with those of a dict.

    Raises NeedsTable for a dict of the program if they are too many.
    """
    program = it.program
    program.compared += keys * (1 if isinstance(key, V.Scalar) else COMPARED_ITEMS)
    if ref.root.made is not None and program.compared > MOST_COMPARED and not program.compares:
        raise needs.NeedsTable(ref.root.made)


def has_key(it: Interpreter, ref: V.Ref, key: V.Value) -> V.Value:
    """`key in ref` of a dict. Raises NeedsTable for one of the program of too many keys."""
    from pyrelay.infer.operators import either

    content = it.content(ref.root)
    note(ref, key, it)
    if not is_computed(it, key):
        return V.Known(it.static(key, "the key") in content)
    _count_compared(it, ref, key, len(content))
    found: V.Value = V.Known(False)
    for known in content:
        if _same_sort(known, key):
            found = either(it, found, truth(it, compare(it, "==", key, V.Known(known))))
    return found


def is_computed(it: Interpreter, key: V.Value) -> bool:
    """True for a key whose value only the running program knows."""
    if isinstance(key, (V.Text, V.Tuple, V.OpenTuple)):
        return is_open(key)
    if not isinstance(key, V.Scalar):
        return False
    return key.extent is None or it.program.guards.fix(key.extent) is None


def _same_sort(known: Any, key: V.Value) -> bool:
    """Whether a key of a dict and one of the running program are both numbers, strings or tuples.
    """
    if isinstance(key, V.Text):
        return isinstance(known, str)
    if isinstance(key, V.Tuple):
        return isinstance(known, tuple)
    return types.of_scalar(known) is not None


def _better_known(it: Interpreter, key: V.Value, items: Sequence[V.Value]) -> bool:
    """True if the key can be made known and the items differ in more than their numbers."""
    from pyrelay.infer.flow.fixpoint import Fixpoint

    tensors = [V.tensor_type(v) for v in items]
    if all(ty is not None for ty in tensors) and len({(t.dtype, t.shape) for t in tensors}) == 1:  # type: ignore[union-attr]
        return False
    shaped = any(isinstance(v, (V.ArrayRef, V.Ref, V.Tuple)) for v in items)
    if shaped:
        _ask_for_counts(it, key)
    if isinstance(key, V.Text):
        return shaped and _is_made_of_indices(it, key)
    if not isinstance(key, V.Scalar):
        return False
    if it.program.counts_known and shaped and _is_made_of_indices(it, key):
        return True
    if isinstance(key.origin, Fixpoint):
        iteration = key.origin.runner.iteration
        return iteration is not None and isinstance(iteration.count, V.Known)
    return key.origin is not None and shaped


def _ask_for_counts(it: Interpreter, key: V.Value) -> None:
    """Note that a key is made of indices of loops which run as often as an argument says.

    Raises NeedsStatic in an attempt that takes these arguments as known (`Program.counts_known`).
    """
    program = it.program
    symbols = {
        s for v in V.leaves_of((key,)) if isinstance(v, V.Scalar) and v.poly is not None
        for s in dims.symbols(v.poly)
    }
    found = [program.counts[s] for s in symbols if s in program.counts]
    if found and program.counts_known:
        raise needs.NeedsStatic(found[0], "which of these objects is meant")
    program.counts_wanted |= bool(found)


def _is_made_of_indices(it: Interpreter, key: V.Value) -> bool:
    """Whether a text or a number depends on nothing but indices of loops that could be unrolled."""
    computed = [
        v for v in V.leaves_of((key,)) if not isinstance(v, (V.Known, V.Text, V.Tuple))
    ]
    return bool(computed) and all(
        isinstance(leaf, V.Scalar) and leaf.poly is not None
        and all(isinstance(it.program.guards.ranges.get(s, (0, None))[1], int)
                for s in dims.symbols(leaf.poly))
        for leaf in computed
    )


def wrong_index(it: Interpreter, said: str, key: V.Value) -> errors.PyrelayError:
    """The error of an index that is no number: TypeError in plain Python; but a float may be one
    only because it has met others."""
    from pyrelay.infer.names.builtins import class_of

    cls = class_of(key)
    if cls is None or isinstance(key, V.Scalar):
        return it.failure(errors.TypeMismatchError, f"{said}, not {V.describe(key)}")
    word = cls.__name__ if "slices" in said else repr(cls.__name__)
    text = f"{said}, not {word}"
    return certain(it, it.failure(errors.TypeMismatchError, text), TypeError, text)


def _choose_item(
    it: Interpreter, items: Sequence[V.Value], key: V.Value, kind: str
) -> V.Value:
    ty = it.tensor(key, f"the index of a {kind}")
    if not ty.dtype.is_integer:
        raise wrong_index(it, f"{kind} indices must be integers or slices", key)
    index = it.builder.handle(it.builder.cast(it.atom(key), types.i64, weak=True))
    count = len(items)
    outside = it.emit("logical_or", index < -count, index >= count)

    raise_where(it, outside.atom, IndexError, V.Known(f"{kind} index out of range"))
    checked = it.emit("where", index < 0, index + count, index)
    return _chosen(it, list(map(_apart, items)), checked)


def _apart(item: V.Value) -> V.Value:
    """A constant tuple as a tuple of constants, which may be one of several each."""
    if isinstance(item, V.Known) and type(item.value) is tuple:
        return V.Tuple(tuple(_apart(V.Known(v)) for v in item.value))
    return item


def _chosen(it: Interpreter, items: Sequence[V.Value], checked: Any) -> V.Value:
    """The item at an index in range, a number of the program."""
    from pyrelay.infer.flow.control import branch

    count = len(items)
    if all(isinstance(v, V.Known) and types.of_scalar(v.value) is None for v in items):
        known = [v.value for v in items]  # type: ignore[union-attr]
        return constants.chosen(it, known, it.result(checked))
    if count > MOST_BRANCHES and all(V.number_type(v) is not None for v in items):
        return _in_array(it, items, it.result(checked))
    rows = [v.items for v in items if isinstance(v, V.Tuple) and v.cls is None]
    if len(rows) == count > MOST_BRANCHES and len(set(map(len, rows))) == 1:
        columns = zip(*rows, strict=True)  # of a table: a choice in each
        return V.Tuple(tuple(_chosen(it, column, checked) for column in columns))

    def pick(k: int) -> list[V.Value]:
        if k == len(items) - 1:
            return [items[k]]
        test = it.emit("equal", checked, k)
        return branch(it, test.atom, lambda: [items[k]], lambda: pick(k + 1))

    return pick(0)[0]


def _in_array(it: Interpreter, items: Sequence[V.Value], index: V.Value) -> V.Value:
    """One of many numbers, of their common kind."""
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.names.adapters import stack

    dtype, weak = types.promote([it.tensor(v) for v in items])
    found = get_item(it, stack(it, items, 0), index, checked=True)
    return it.result(it.builder.handle(it.builder.cast(it.atom(found), dtype, weak=weak)))
