"""Subscripts: reading `x[key]`, writing `x[key] = v`, and views.

A basic index (ints, slices, `...`, `None`) of an array is a view: a chain of steps on its root,
read when it is used and written through to the root. Integer arrays gather and scatter copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays.slicing import index_atom, is_index, slice_of_axis
from pyrelay.infer.arrays.storing import fitted, refuse_to_an_element, write_whole
from pyrelay.infer.attributes import is_our_own
from pyrelay.infer.containers import (
    absent_keys,
    byte_strings,
    characters,
    found_items,
    lists,
    moving,
    open_sequences,
    text,
)
from pyrelay.infer.containers.open_keys import key_of, note, stored_key
from pyrelay.infer.flow import choice
from pyrelay.infer.flow.handling import certain, is_raised, without_words
from pyrelay.infer.flow.unions import distribute, distribute_all, sample, several_in
from pyrelay.infer.in_python import ranges
from pyrelay.infer.in_python.index_tricks import index_trick
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.trees import attribute, fields, is_namedtuple
from pyrelay.infer.operators import (
    binary,
    compare,
    number,
    number_of_enum,
    raised,
)
from pyrelay.infer.protocols import special
from pyrelay.ir import types
from pyrelay.ir.build import constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


def get_item(it: Interpreter, obj: V.Value, key: V.Value, *, checked: bool = False) -> V.Value:
    """`obj[key]`. With `checked` an int key is known to be in range."""
    if isinstance(obj, V.Union):
        return distribute(
            it, obj, lambda case: get_item(it, case, key), lambda c: c[sample(it, key)]
        )
    if isinstance(key, V.Union) and not (isinstance(obj, V.Ref) and obj.cls is not None):
        note(obj, key, it)
        return distribute(
            it, key, lambda case: get_item(it, obj, case), lambda c: sample(it, obj)[c]
        )
    if isinstance(obj, V.ArrayRef) and (inside := several_in(key)) is not None:
        several, with_case = inside

        def python(like: Any) -> Any:
            array, at = sample(it, obj), sample(it, with_case(V.Known(like)))
            return None if at is NotImplemented else array[at]

        return distribute(it, several, lambda case: get_item(it, obj, with_case(case)), python)
    if not isinstance(obj, V.ArrayRef) or _is_flag(key):
        key = number(it, key)
    match obj:
        case V.ArrayRef() if _is_flag(key):
            return it.new_array(it.atom(_if_true(it, obj, key)))
        case V.ArrayRef():
            part = _index_array(it, obj, number_of_enum(key), checked)
            copied = isinstance(obj, V.Flat) and isinstance(part, V.ArrayRef)
            return it.new_array(it.atom(part)) if copied else part
        case V.Tuple(items):
            return choice.item(it, items, key, "tuple")
        case V.OpenTuple(own):
            return _index_open(it, own, key, checked)
        case V.Scalar(ty) if not ty.weak and _is_flag(key):
            return get_item(it, it.new_array(it.atom(obj)), key)
        case V.Scalar(ty) if not ty.weak and (new := _expand(it, key, 0)).count(V.NONE) == len(new):
            if not new and _has_ellipsis(key) and not is_our_own(it):
                return it.new_array(it.atom(obj))
            # An array of no axes is a number here.
            return it.call("reshape", obj, shape=(1,) * len(new)) if new else obj
        case V.Ref(root) if root.kind == "list":
            return _index_list(it, obj, key, checked)
        case V.Ref(root) if root.kind == "dict":
            return choice.lookup(it, obj, key)
        case V.Data() if is_namedtuple(obj) and obj.cls.__getitem__ is tuple.__getitem__:
            names = obj.cls._fields
            if isinstance(key, V.Known) and type(key.value) is int and 0 <= key.value < len(names):
                return attribute(it, obj, names[key.value])  # and no other column is read
            return choice.item(it, fields(it, obj), key, "tuple")
        case V.Ref(cls=cls) | V.Data(cls=cls) if cls is not None and hasattr(cls, "__getitem__"):
            from pyrelay.infer.attributes import of_class
            from pyrelay.infer.calls import call

            value = call(it, V.Known(of_class(it, cls, "__getitem__")), (obj, key), {})
            found_items.note_key(obj, key, value)
            return value
        case V.Items():
            from pyrelay.infer.nodes.trees import checked_item

            return checked_item(it, obj, key)
        case V.Range():
            return _index_range(it, obj, number_of_enum(key))
        case _ if text.is_text(obj) and (found := characters.item(it, obj, key)) is not None:
            return found
        case V.Text():
            return text.item(it, obj, key)
        case V.Known(v) if (made := index_trick(v)) is not None:
            from pyrelay.infer.calls import call

            return call(it, V.Known(made), (key,), {})
        case V.Known(v):
            return _index_known(it, obj, v, key)
    failure = it.failure(errors.TypeMismatchError, f"{V.describe(obj)} cannot be indexed")
    if isinstance(obj, V.Scalar):
        said = f"'{types.python_type(obj.type).__name__}' object is not subscriptable"
        raise certain(it, failure, TypeError, said)
    raise failure


def _index_known(it: Interpreter, obj: V.Value, v: Any, key: V.Value) -> V.Value:
    """An item of an object of Python's."""
    from pyrelay.infer.attributes import captured

    if not isinstance(v, type) and not hasattr(v, "__getitem__"):  # whatever the key is
        said = f"{type(v).__name__!r} object is not subscriptable"
        raise certain(it, it.failure(errors.TypeMismatchError, said), TypeError, said)
    if isinstance(v, tuple) and choice.is_computed(it, key):
        return choice.item(it, tuple(captured(it, part) for part in v), key, "tuple")
    if isinstance(v, bytes) and choice.is_computed(it, key):
        return byte_strings.item(it, v, key)
    if isinstance(v, bytes) and isinstance(key, V.Slice) and any(
        choice.is_computed(it, part) for part in (key.start, key.stop, key.step)
    ):
        return get_item(it, byte_strings.opened(it, obj), key)
    at = it.static(key, "this index")
    try:
        found = v[at]
    except (IndexError, KeyError) as error:
        failed: errors.PyrelayError = it.failure(errors.IndexRangeError, f"{error}")
        raise certain(it, failed, type(error), *error.args) from None
    except TypeError as error:
        failed = it.failure(errors.TypeMismatchError, str(error))
        raise certain(it, failed, TypeError, *error.args) from None
    return captured(it, found)


def _index_open(it: Interpreter, items: V.Ref, key: V.Value, checked: bool) -> V.Value:
    """`t[key]` of a tuple of run-time length."""
    content = it.content(items.root)
    if isinstance(key, V.Slice):
        part = lists.get_item(it, items, content, key)
        assert isinstance(part, V.Ref)
        return open_sequences.tuple_of(it, part)
    if not checked:
        place = lists.position(it, content, key, "tuple index out of range")
        key = V.Scalar(types.PY_INT, place)
    return lists.get_item(it, items, content, key, checked=True)


def _index_range(it: Interpreter, obj: V.Range, key: V.Value) -> V.Value:
    from pyrelay.infer.calls import call

    if isinstance(key, V.Slice):
        bounds = (key.start, key.stop, key.step)
        return call(it, V.Known(ranges.part), (obj, *bounds), {})
    ty = V.number_type(key)
    if ty is None or ty.dtype.kind not in "iub":
        raise it.failure(
            errors.TypeMismatchError,
            f"range indices must be integers or slices, not {V.describe(key)}",
        )
    return call(it, V.Known(ranges.item), (obj, key), {})


def _index_list(it: Interpreter, obj: V.Ref, key: V.Value, checked: bool) -> V.Value:
    items = it.content(obj.root)
    if not isinstance(items, V.Growing):
        many = isinstance(key, V.Slice) or len(items) > lists.MOST_CHOICES or (
            it.program.chooses and any(V.is_list(item) for item in items)
        )
        if not items and isinstance(key, V.Slice):
            slice_of_axis(it, key, 0, known_shape=False)  # which says what is wrong with the bounds
            return it.new_ref("list", ())
        if not (many and _grows_at(it, obj, key)):
            return choice.item(it, items, key, "list")
        items = it.content(obj.root)
    return lists.get_item(it, obj, items, key, checked=checked)


def _grows_at(it: Interpreter, obj: V.Ref, key: V.Value) -> bool:
    """Whether a list has to grow for a key; makes it grow if so."""
    bounds = (key.start, key.stop, key.step) if isinstance(key, V.Slice) else (key,)
    return any(lists.must_grow(it, obj, b) for b in bounds)


# -- arrays: what a key means ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Basic:
    """A basic key as view steps."""

    steps: tuple[V.ViewStep, ...]
    type: TensorType


def _expand(it: Interpreter, key: V.Value, rank: int) -> list[V.Value]:
    """The key as one item per axis (plus None items), `...` replaced by full slices.

    One that stands for no axis stays between indices some of which are arrays: it parts them.
    """
    items: list[V.Value] = list(key.items) if isinstance(key, V.Tuple) else [key]
    if isinstance(key, V.Known) and isinstance(key.value, tuple):
        items = [V.Known(v) for v in key.value]
    items = [_plain(i) for i in items]
    used = sum(_axes_used(it, i) for i in items)
    ellipses = [k for k, i in enumerate(items) if i == V.Known(Ellipsis)]
    if len(ellipses) > 1:
        raise it.failure(errors.IndexRangeError, "an index can have only one ellipsis ('...')")
    if used > rank:
        failure = it.failure(
            errors.IndexRangeError,
            f"too many indices: the array has {rank} ax{'i' if rank == 1 else 'e'}s, and {used} "
            "were indexed",
        )
        if not rank:
            raise without_words(it, failure, IndexError)
        said = f"too many indices for array: array is {rank}-dimensional, but {used} were indexed"
        raise certain(it, failure, IndexError, said)
    full = V.Slice(V.NONE, V.NONE, V.NONE)
    filler: list[V.Value] = [full] * (rank - used)
    at = ellipses[0] if ellipses else len(items)
    if ellipses and not filler and any(isinstance(i, V.ArrayRef) for i in items) and all(
        any(_indexes(i) for i in side) for side in (items[:at], items[at + 1 :])
    ):
        return items
    return items[:at] + filler + items[at + 1 :]


def _indexes(item: V.Value) -> bool:
    """Whether an item takes places of an axis, one by one."""
    return isinstance(item, V.ArrayRef) or V.number_type(item) is not None


def _plain(item: V.Value) -> V.Value:
    if isinstance(item, V.Known) and isinstance(item.value, slice):
        s = item.value
        return V.Slice(V.Known(s.start), V.Known(s.stop), V.Known(s.step))
    return item


def _axes_used(it: Interpreter, item: V.Value) -> int:
    if item == V.Known(Ellipsis) or item == V.NONE:
        return 0
    if isinstance(item, V.ArrayRef) and item.type.dtype is types.bool_:
        return item.type.rank
    return 1


def _index_array(it: Interpreter, array: V.ArrayRef, key: V.Value, checked: bool) -> V.Value:
    key = _as_array_key(it, key)
    items = _expand(it, key, array.type.rank)
    if any(isinstance(i, V.ArrayRef) for i in items):
        from pyrelay.infer.arrays.advanced import gather

        return gather(it, array, items)
    basic = _basic(it, array.type, items, checked)
    view = V.ArrayRef(array.root, array.view + basic.steps, basic.type)
    if basic.type.shape or (_has_ellipsis(key) and not is_our_own(it)):
        return view if basic.steps else V.ArrayRef(array.root, array.view, array.type)
    return it.result(it.builder.handle(it.atom(view)))


def _has_ellipsis(key: V.Value) -> bool:
    """Whether what a key says of all axes is an array still, a view of no axes."""
    if isinstance(key, V.Known):
        parts = key.value if isinstance(key.value, tuple) else (key.value,)
        return any(part is Ellipsis for part in parts)
    return isinstance(key, V.Tuple) and V.Known(Ellipsis) in key.items


def only_element(it: Interpreter, array: V.Value, text: str) -> V.Value:
    """The element of an array whose size the program knows, and checks to be 1; `text` is what
    NumPy's ValueError says of another."""
    ty = it.tensor(array)
    it.emit("check_equal", left=ty.size, right=1, text=text)
    return get_item(it, array, V.Tuple((V.Known(0),) * ty.rank))


def _is_flag(key: V.Value) -> bool:
    """Whether that is one bool, which may be an array of no axes."""
    ty = V.tensor_type(key)
    return ty is not None and not ty.shape and ty.dtype is types.bool_


def _if_true(it: Interpreter, array: V.ArrayRef, flag: V.Value) -> V.Value:
    """The array with a new first axis of one element, or of none if a bool is false."""
    count = it.result(it.builder.handle(it.builder.cast(it.atom(flag), types.i64, weak=True)))
    return get_item(it, get_item(it, array, V.NONE), V.Slice(V.NONE, count, V.NONE))


def _as_array_key(it: Interpreter, key: V.Value) -> V.Value:
    """Lists of indices become arrays, as in NumPy, and tuples in the tuple of a key."""

    def convert(item: V.Value) -> V.Value:
        from pyrelay.infer.names.adapters import cast, to_array

        if isinstance(item, V.Known) and isinstance(item.value, (list, range, tuple)):
            item = V.Tuple(tuple(map(V.Known, item.value)))
        if isinstance(item, (V.Range, V.Tuple)) or V.is_list(item):
            places = to_array(it, item)
            held = it.content(item.root) if V.is_list(item) else getattr(item, "items", None)
            return cast(it, places, types.i64) if held == () else places
        return item

    if isinstance(key, V.Known) and isinstance(key.value, tuple):
        if not any(isinstance(part, tuple) for part in key.value):
            return key
        key = V.Tuple(tuple(map(V.Known, key.value)))
    if isinstance(key, V.Tuple):
        return V.Tuple(tuple(map(convert, key.items)))
    return convert(key)


def _basic(
    it: Interpreter, ty: TensorType, items: Sequence[V.Value], checked: bool,
    written: bool = False,
) -> _Basic:
    """View steps of ints, slices and None: first ints, then slices, then new axes."""
    starts: list[Extent] = []
    sizes: list[Extent] = []
    strides: list[Extent] = []
    ints: list[tuple[int, Atom]] = []
    new_axes: list[int] = []
    axis = kept = 0
    for item in items:
        if item == V.NONE:
            new_axes.append(kept)
            kept += 1
            continue
        extent = ty.shape[axis]
        if isinstance(item, V.Slice):
            start, size, step = slice_of_axis(it, item, extent, known_shape=not written)
            kept += 1
        elif is_index(item):
            start, size, step = 0, extent, 1
            ints.append((axis, index_atom(it, item, extent, axis, checked)))
        else:
            raise it.failure(
                errors.TypeMismatchError,
                f"an array cannot be indexed with {V.describe(item)}",
                hints=("use ints, slices, '...', None, or arrays of ints or bools",),
            )
        starts.append(start)
        sizes.append(size)
        strides.append(step)
        axis += 1
    return _steps(ty, starts, sizes, strides, ints, new_axes)


def _steps(
    ty: TensorType, starts: list[Extent], sizes: list[Extent], strides: list[Extent],
    ints: list[tuple[int, Atom]], new_axes: list[int],
) -> _Basic:
    steps: list[V.ViewStep] = []
    taken = [a for a, _ in ints]
    if ints:  # first, so that nobody handles more than the rows that are meant
        steps.append(V.ViewStep("index", tuple(i for _, i in ints), (("axes", tuple(taken)),)))
    rest = [a for a in range(len(ty.shape)) if a not in taken]
    shape: tuple[Extent, ...] = tuple(sizes[a] for a in rest)
    if any(starts[a] != 0 or strides[a] != 1 or sizes[a] != ty.shape[a] for a in rest):
        attrs = (
            ("starts", tuple(starts[a] for a in rest)), ("sizes", shape),
            ("steps", tuple(strides[a] for a in rest)),
        )
        steps.append(V.ViewStep("slice", (), attrs))
    if new_axes:
        steps.append(V.ViewStep("expand_dims", (), (("axes", tuple(new_axes)),)))
        for a in new_axes:
            shape = (*shape[:a], 1, *shape[a:])
    return _Basic(tuple(steps), TensorType(ty.dtype, shape))


# -- writing ---------------------------------------------------------------------------------------


def set_item(it: Interpreter, obj: V.Value, key: V.Value, value: V.Value) -> None:
    """`obj[key] = value`."""
    if isinstance(obj, V.ArrayRef) and (inside := several_in(key)) is not None:
        several, with_case = inside

        def stored_at(case: V.Value) -> tuple[V.Value, ...]:
            set_item(it, obj, with_case(case), value)
            return ()

        distribute_all(it, several, stored_at)
        return
    match obj:
        case V.ArrayRef() if isinstance(value, V.Union):
            def stored(case: V.Value) -> tuple[V.Value, ...]:
                _write_array(it, obj, key, case)
                return ()

            element = np.zeros(1, obj.type.dtype.numpy)
            distribute_all(it, value, stored, lambda like: element.__setitem__(..., like))
            return
        case V.ArrayRef() if _is_flag(key):
            set_item(it, _if_true(it, obj, number(it, key)), V.Known(Ellipsis), value)
            return
        case V.ArrayRef():
            _write_array(it, obj, key, value)
            return
        case V.Ref(root) if root.kind == "list":
            if _grows_at(it, obj, key):
                lists.set_item(it, obj, key, value)
                return
            items = list(it.content(root))
            if not items and isinstance(key, V.Scalar):
                raise raised(it, IndexError("list assignment index out of range"))
            if not items and isinstance(key, V.Slice):
                from pyrelay.infer.containers.list_slices import set_slice_of_none

                set_slice_of_none(it, obj, key, value)
                return
            index = it.static(key, "the index of a list")
            new: Any = value
            if isinstance(index, slice):
                from pyrelay.infer.names.adapters import nested_items

                new = nested_items(it, value)
            try:
                items[index] = new
            except TypeError as error:
                said = str(error)
                failure = it.failure(errors.TypeMismatchError, said)
                raise certain(it, failure, TypeError, said) from None
            except ValueError as error:
                if is_raised(it, ValueError):
                    raise raised(it, error) from None
                raise it.failure(errors.InvalidValueError, str(error)) from None
            except IndexError:
                if is_raised(it, IndexError):
                    raise raised(it, IndexError("list assignment index out of range")) from None
                raise it.failure(
                    errors.IndexRangeError,
                    f"list index {index} is out of range: it has {len(items)} items",
                ) from None
            it.heap.write(root, tuple(items), it.let.span if it.let else None)
            return
        case V.Ref(root) if root.kind == "dict":
            known = stored_key(it, obj, key)
            it.heap.write(root, {**it.content(root), known: value}, it.let.span if it.let else None)
            return
        case V.Ref(_, cls) | V.Data(pool=V.Ref(), cls=cls) if (
            cls is not None and hasattr(cls, "__setitem__")
        ):
            from pyrelay.infer.attributes import of_class
            from pyrelay.infer.calls import call

            if found_items.is_found_at(it, obj, key, value):
                return
            name = "add" if absent_keys.lacks(it, obj, key) else "__setitem__"
            call(it, V.Known(of_class(it, cls, name)), (obj, key, value), {})
            return
        case V.Items(cls=cls) if cls is list:
            from pyrelay.infer.containers.lists_in_nodes import let_grow

            let_grow(it, obj)
        case V.Tuple() | V.OpenTuple():
            failure = it.failure(
                errors.TypeMismatchError, "a tuple cannot be changed: its items are fixed",
                hints=("make it a list",),
            )
            said = "'tuple' object does not support item assignment"
            raise certain(it, failure, TypeError, said)
    raise it.failure(
        errors.TypeMismatchError, f"{V.describe(obj)} does not support item assignment"
    )


def _write_array(it: Interpreter, array: V.ArrayRef, key: V.Value, value: V.Value) -> None:
    key = _as_array_key(it, key)
    items = _expand(it, key, array.type.rank)
    if isinstance(array, V.Flat) and not all(map(is_index, items)):
        value = _in_turn(it, array, key, value)
    if any(isinstance(i, V.ArrayRef) for i in items):
        from pyrelay.infer.arrays.advanced import scatter

        scatter(it, array, items, value)
        return
    basic = _basic(it, array.type, items, False, written=True)
    if not (basic.type.shape or _has_ellipsis(key)):
        refuse_to_an_element(it, value, array.type.dtype)
    target = V.ArrayRef(array.root, array.view + basic.steps, basic.type)
    write_whole(it, target, fitted(it, value, basic.type))


def _in_turn(it: Interpreter, flat: V.Flat, key: V.Value, value: V.Value) -> V.Value:
    """What `array.flat[key] = value` stores: as many elements, in turn, as there are places."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python import insertion
    from pyrelay.infer.names.adapters import operand

    given, places = operand(it, value), get_item(it, flat, key)
    if not it.tensor(given).shape or it.tensor(given).shape == it.tensor(places).shape:
        return value
    return call(it, V.Known(insertion.in_turn), (given, places), {})


def add_item(it: Interpreter, obj: V.Value, key: V.Value, value: V.Value) -> None:
    """np.add.at(obj, key, value): repeated indices add up."""
    if not isinstance(obj, V.ArrayRef):
        raise it.failure(
            errors.TypeMismatchError, f"np.add.at writes to an array, not to {V.describe(obj)}"
        )
    items = _expand(it, _as_array_key(it, key), obj.type.rank)
    if any(isinstance(i, V.ArrayRef) for i in items):
        from pyrelay.infer.arrays.advanced import scatter

        scatter(it, obj, items, value, add=True)
        return
    set_item(it, obj, key, binary(it, "+", get_item(it, obj, key), value))


def del_item(it: Interpreter, obj: V.Value, key: V.Value) -> None:
    """`del obj[key]` of a list or dict."""
    if V.is_list(obj) and _grows_at(it, obj, key):
        if isinstance(key, V.Slice):
            from pyrelay.infer.containers.list_slices import delete_slice

            delete_slice(it, obj, key)
        else:
            lists.pop(it, obj, key, "list assignment index out of range")
        return
    if isinstance(obj, V.Data) or (isinstance(obj, V.Ref) and obj.root.kind == "object"):
        method = special(it, obj, "__delitem__", key)
        if method is not None:
            return
    if V.is_list(obj) and isinstance(key, V.Slice) and not it.content(obj.root):
        slice_of_axis(it, key, 0, known_shape=False)
        return
    if isinstance(obj, V.Ref) and obj.root.kind == "dict":
        known = key_of(it, obj, key, "the key to delete")
    else:
        known = it.static(key, "the key to delete")
    if isinstance(obj, V.Ref) and obj.root.kind == "dict":
        content = dict(it.content(obj.root))
        if known not in content:
            if is_raised(it, KeyError):
                raise raised(it, KeyError(known))
            raise it.failure(errors.KeyMissingError, f"this dict has no key {known!r}")
        del content[known]
        it.heap.write(obj.root, content, it.let.span if it.let else None)
        return
    if V.is_list(obj):
        items = list(it.content(obj.root))
        try:
            del items[known]
        except IndexError as error:
            failure = it.failure(
                errors.IndexRangeError,
                f"list index {known} is out of range: it has {len(items)} items",
            )
            raise certain(it, failure, IndexError, *error.args) from None
        except TypeError as error:
            failure = it.failure(errors.TypeMismatchError, str(error))
            raise certain(it, failure, TypeError, *error.args) from None
        it.heap.write(obj.root, tuple(items), it.let.span if it.let else None)
        return
    raise it.failure(errors.TypeMismatchError, f"items of {V.describe(obj)} cannot be deleted")


def exchange(
    it: Interpreter, obj: V.Value, i: V.Value, j: V.Value, at_i: V.Value, at_j: V.Value
) -> None:
    """`obj[i], obj[j] = at_j, at_i`, which are what is there now."""
    if not moving.exchanged(it, obj, (i, j), (at_i, at_j)):
        set_item(it, obj, i, at_j)
        set_item(it, obj, j, at_i)


__all__ = [
    "add_item", "binary", "compare", "constant", "del_item", "exchange", "get_item", "set_item",
]
