"""Slices of growing lists: read, assigned and deleted.

In: a reference to a list of run-time length and a slice of it. Out: a new list, or the list with
other items in place of the slice; what comes behind moves up.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.infer import values as V
from pyrelay.infer.arrays.slicing import slice_bounds, slice_of_axis
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.dims import Extent


def get_slice(it: Interpreter, content: V.Growing, key: V.Slice) -> V.Value:
    """`lst[a:b:c]`: a new list."""
    content = lists.copied(it, content)
    whole = lists.count_extent(it, content)
    start, size, step = slice_of_axis(it, key, whole, known_shape=False)
    return lists.new(it, _rows(it, content, start, size, step))


def cut_out(it: Interpreter, ref: V.Ref, key: V.Slice) -> V.Value:
    """`[...][a:b:c]` of a list that nothing else has: the lists in it move to the new one."""
    from pyrelay.infer.arrays.subscripts import get_item

    content = it.content(ref.root)
    if not isinstance(content, V.Growing) or not growing.inner_lists(content.template):
        return get_item(it, ref, key)
    it.heap.contents[ref.root] = V.Lost()
    content = replace(growing.plain(it.builder, content), slots=object())
    start, size, step = slice_of_axis(
        it, key, lists.count_extent(it, content), known_shape=False
    )
    return lists.new(it, _rows(it, content, start, size, step))


def _rows(
    it: Interpreter, content: V.Growing, start: Extent, size: Extent, step: Extent = 1
) -> V.Growing:
    rows = tuple(lists.part_rows(it, row, start, size, step) for row in content.rows)
    return replace(content, count=V.Scalar.of_extent(size), rows=rows)


def set_slice(it: Interpreter, ref: V.Ref, key: V.Slice, value: V.Value) -> None:
    """`lst[a:b:c] = value`; ValueError if a slice with a step has another number of items."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.names.builtins import list_

    given = list_(it, value)
    if isinstance(key.step, V.Scalar):
        given_bounds = (key.start, key.stop, key.step)
        call(it, V.Known(in_python.set_slice), (ref, *given_bounds, given), {})
        return
    size = lists.count_extent(it, it.content(ref.root))
    start, count, step = slice_bounds(it, key, size)
    if step != 1:
        bounds = (V.Scalar.of_extent(start), V.Scalar.of_extent(count), V.Known(step))
        call(it, V.Known(in_python.set_steps), (ref, *bounds, given), {})
        return
    _replaced(it, ref, start, count, given)


def set_slice_of_none(it: Interpreter, ref: V.Ref, key: V.Slice, value: V.Value) -> None:
    """`lst[a:b:c] = value` of a list without items."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.names.builtins import list_

    given = list_(it, value)
    slice_of_axis(it, key, 0, known_shape=False)  # which says what is wrong with the bounds
    if key.step in (V.NONE, V.Known(1)):
        assert isinstance(given, V.Ref)
        it.heap.write(ref.root, it.content(given.root), it.let.span if it.let else None)
    elif isinstance(key.step, V.Known):
        call(it, V.Known(in_python.set_steps), (ref, V.Known(0), V.Known(0), key.step, given), {})
    else:
        bounds = (V.NONE, V.NONE, key.step, given)
        call(it, V.Known(in_python.set_slice), (ref, *bounds), {})


def delete_slice(it: Interpreter, ref: V.Ref, key: V.Slice) -> None:
    """`del lst[a:b:c]`."""
    from pyrelay.infer.calls import call

    if isinstance(key.step, V.Scalar):
        given = (key.start, key.stop, key.step)
        call(it, V.Known(in_python.delete_slice), (ref, *given), {})
        return
    size = lists.count_extent(it, it.content(ref.root))
    start, count, step = slice_bounds(it, key, size)
    if step == 1:
        _replaced(it, ref, start, count, it.new_ref("list", ()))
        return
    bounds = (V.Scalar.of_extent(start), V.Scalar.of_extent(count), V.Known(step))
    left = call(it, V.Known(in_python.without_steps), (ref, *bounds), {})
    set_slice(it, ref, V.Slice(V.NONE, V.NONE, V.NONE), left)


def _replaced(it: Interpreter, ref: V.Ref, start: Extent, count: Extent, given: V.Value) -> None:
    """The list with other items in place of `count` ones from `start` on."""
    from pyrelay.infer.attributes import call_method
    from pyrelay.ir import dims

    content = lists.copied(it, it.content(ref.root))
    behind = dims.add(start, count)
    size = dims.add(lists.count_extent(it, content), dims.multiply(-1, behind))
    rest = lists.new(it, _rows(it, content, behind, size))
    kept = replace(content, count=V.Scalar.of_extent(start))
    lists.write_content(it, ref.root, kept, moves=True)
    for more in (given, rest):
        call_method(it, V.Method(ref, "extend"), (more,), {})


__all__ = ["delete_slice", "get_slice", "set_slice", "set_slice_of_none"]
