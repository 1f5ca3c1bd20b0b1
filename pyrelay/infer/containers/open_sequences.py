"""Tuples and strings whose length only the running program knows.

In: tuples that loops make longer, `tuple(items)` of a list of run-time length; strings that grow by
`+=`, and what is cut out of them. Out: a `V.OpenTuple` or a text `from_items(codes)`, whose items
are in a list of run-time length that nobody else has and nothing changes (growing.py): such a
value is joined, stored and returned as that list is, and none of the rules for lists under two
names apply. An attempt makes them only where one without them failed (`open_layouts.Sequences`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.containers.code_points import codes_of, from_codes, from_items
from pyrelay.infer.containers.formats import Writing, writing_of
from pyrelay.infer.containers.open_layouts import is_open, sequences
from pyrelay.infer.heap import Heap
from pyrelay.infer.in_python import characters as in_python
from pyrelay.infer.in_python import digits, strings
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.layout import Layout, LNode, LPlace, LScalar
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom


def in_list(
    builder: Builder, heap: Heap, read: Callable[[V.Value], Atom], value: V.Value
) -> V.Value:
    """A tuple, or a string of known items, as one of run-time length."""
    if isinstance(value, V.OpenTuple) or is_open_text(value):
        return value
    content: Any
    match value:
        case V.Tuple(items):
            content = items
        case V.Known(tuple() as known):
            content = tuple(map(V.Known, known))
        case V.Known(str() as known):
            content = tuple(V.Known(ord(character)) for character in known)
        case V.Text(function, (code,)) if function is chr:
            content = (code,)
        case V.Text(function, (V.ArrayRef() as array,)) if function is from_codes:
            codes = builder.cast(read(array), types.i64)
            count = V.Scalar.of_extent(array.type.shape[0])
            content = V.Growing(count, (codes,), LScalar(types.PY_INT), slots=object())
        case _:
            raise AssertionError(value)
    root = V.Root("list", builder.span)
    heap.new(root, content)
    own = V.Ref(root)
    is_text = isinstance(value, V.Text) or (
        isinstance(value, V.Known) and isinstance(value.value, str)
    )
    return V.Text(from_items, (own,)) if is_text else V.OpenTuple(own)


def is_open_text(value: V.Value) -> bool:
    """Whether a value is a string whose code points are in a list of its own."""
    return isinstance(value, V.Text) and value.function is from_items


def items_of(value: V.Value) -> V.Ref | None:
    """The list that a tuple or a string of run-time length is made of; None for other values."""
    if isinstance(value, V.OpenTuple):
        return value.items
    if isinstance(value, V.Text) and is_open_text(value):
        (own,) = value.args
        assert isinstance(own, V.Ref)
        return own
    return None


def tuple_of(it: Interpreter, items: V.Ref) -> V.Value:
    """The tuple of the items of a list that nobody else has."""
    content = it.content(items.root)
    return V.OpenTuple(items) if isinstance(content, V.Growing) else V.Tuple(content)


def string_of(it: Interpreter, codes: V.Ref) -> V.Value:
    """The string of the code points in a list that nobody else has."""
    from pyrelay.infer.containers.lists import grow

    if grow(it, codes.root) is None:
        return V.Known("")
    return V.Text(from_items, (codes,))


# -- longer ones -----------------------------------------------------------------------------------


def added(it: Interpreter, x: V.Value, y: V.Value) -> V.Value | None:
    """`x + y` of tuples of run-time length, and of strings that a loop makes longer; None for all
    else."""
    if _is_tuple(x) and _is_tuple(y):
        if not (isinstance(x, V.OpenTuple) or isinstance(y, V.OpenTuple)):
            return None
        return tuple_of(it, _joined(it, x, y))
    if not (_may_be_text(x) and _may_be_text(y)) or not becomes_longer(it, x, y):
        return None
    return string_of(it, _joined(it, *(open_text(it, part) for part in (x, y))))


def becomes_longer(it: Interpreter, *parts: V.Value) -> bool:
    """Whether strings that are put together are one of run-time length then."""
    if any(map(is_open_text, parts)):
        return True
    known = all(isinstance(part, V.Known) for part in parts)
    if not it.rolling and (known or not it.conditional):
        return False
    state = sequences()
    state.wanted = state.lengthened = True
    return state.open


def _joined(it: Interpreter, x: V.Value, y: V.Value) -> V.Ref:
    from pyrelay.infer.operators import binary

    sides = (_in_list(it, part) for part in (x, y))
    found = binary(it, "+", *sides)
    assert isinstance(found, V.Ref)
    return found


def _in_list(it: Interpreter, value: V.Value) -> V.Ref:
    own = items_of(in_list(it.builder, it.heap, it.atom, value))
    assert own is not None
    return own


def _is_tuple(value: V.Value) -> bool:
    return isinstance(value, V.OpenTuple) or (isinstance(value, V.Tuple) and value.cls is None) or (
        isinstance(value, V.Known) and type(value.value) is tuple
    )


def _may_be_text(value: V.Value) -> bool:
    if isinstance(value, V.Union):
        return all(map(_may_be_text, value.possible))
    return isinstance(value, V.Text) or (
        isinstance(value, V.Known) and isinstance(value.value, str)
    )


# -- what a string is made of ----------------------------------------------------------------------


def open_text(it: Interpreter, value: V.Value) -> V.Value:
    """A string, whatever it is made of, as one whose code points are in a list.

    Those that are put together, and whole numbers, are written by the program; for all else (a
    float, a method's result) Python says what the string is.
    """
    from pyrelay.infer.containers import text

    if isinstance(value, V.Union):
        from pyrelay.infer.flow.unions import distribute

        return distribute(it, value, lambda case: open_text(it, case))
    if not isinstance(value, V.Text) or value.function in (chr, from_codes, from_items):
        return in_list(it.builder, it.heap, it.atom, value)
    if value.function is text.joined:
        whole: V.Value = in_list(it.builder, it.heap, it.atom, V.Known(""))
        for part in value.args:
            whole = string_of(it, _joined(it, whole, open_text(it, part)))
            whole = in_list(it.builder, it.heap, it.atom, whole)
        return whole
    from pyrelay.infer.calls import call

    if value.function is operator.mul and _is_written(value.args[0]):
        codes = call(it, V.Known(in_python.repeated_codes), value.args, {})
        assert isinstance(codes, V.Ref)
        return string_of(it, codes)
    writing = writing_of(value)
    if writing is not None:
        return _written(it, writing)
    return in_list(it.builder, it.heap, it.atom, by_python(it, value))


def _written(it: Interpreter, writing: Writing) -> V.Value:
    """A string that the program writes, as one whose code points are in a list."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.handling import unfailing
    from pyrelay.infer.names.builtins import float_

    if writing.function is None:
        found = open_text(it, writing.of)
    else:
        number = float_(it, writing.of) if writing.as_float else writing.of
        if isinstance(number, V.Text):
            number = open_text(it, number)
        known = {k: V.Known(v) for k, v in writing.form.items()}
        codes = unfailing(it, lambda: call(it, V.Known(writing.function), (number,), known))
        found = in_list(it.builder, it.heap, it.atom, V.Text(from_codes, (codes,)))
    if writing.room is None:
        return found
    filled = call(it, V.Known(strings.aligned), (found, *map(V.Known, writing.room)), {})
    return open_text(it, filled)


@keeps_unions
@handles(in_python.codes_of_item)
def codes_of_item(it: Interpreter, string: V.Value) -> V.Value:
    """The code points of a string that is put together with others, in a list of their own."""
    if not _may_be_text(string):
        raise it.failure(
            errors.TypeMismatchError, f"'join' takes strings, not {V.describe(string)}",
            hints=("write str(...) around the item",),
        )
    own = items_of(open_text(it, string))
    assert own is not None
    return it.new_ref("list", it.content(own.root))


def as_item(it: Interpreter, value: V.Value) -> V.Value:
    """What becomes an item of a list: strings that only Python could tell are of run-time length,
    for the list may be of run-time length too."""
    match value:
        case V.Tuple(items):
            return replace(value, items=tuple(as_item(it, item) for item in items))
        case V.Text(function) if function not in (chr, from_codes, from_items):
            pass
        case V.Union() if V.node_of(value) is None and any(
            isinstance(case, V.Text) and case.function is not chr for case in value.possible
        ):
            if not _may_be_text(value):
                from pyrelay.infer.flow.unions import distribute

                return distribute(it, value, lambda case: as_item(it, case))
        case _:
            return value
    state = sequences()
    state.wanted = True
    return open_text(it, value) if state.open else value


def written(it: Interpreter, value: V.Value) -> V.Value:
    """A string that the program can write itself as one whose code points are in a list."""
    if not isinstance(value, V.Text) or value.function in (chr, from_codes, from_items):
        return value
    return open_text(it, value) if _is_written(value) else value


def _is_written(value: V.Value) -> bool:
    from pyrelay.infer.containers import text

    if isinstance(value, V.Text):
        if value.function is text.joined:
            return all(map(_is_written, value.args))
        if value.function is operator.mul:
            return _is_written(value.args[0])
        own = value.function in (chr, from_codes, from_items)
        writing = None if own else writing_of(value)
        return own or (
            writing is not None and (writing.function is not None or _is_written(writing.of))
        )
    if isinstance(value, V.Union):
        return all(map(_is_written, value.possible))
    return isinstance(value, V.Known)


def as_laid_out(it: Interpreter, value: V.Value, layout: Layout) -> V.Value:
    """The value, with the tuples and strings in it of run-time length where a layout has such.

    So are those that a generator was given, which is the same one.
    """
    if isinstance(layout, LPlace) and layout.kind == "generator" and isinstance(
        layout.content, LNode
    ):
        assert isinstance(value, V.Ref)
        content = it.content(value.root)
        parts = zip(content, layout.content.children, strict=True)
        found = tuple(as_laid_out(it, v, x) for v, x in parts)
        if found != content:
            it.heap.write(value.root, found, it.let.span if it.let else None)
    if not isinstance(layout, LNode):
        return value
    if is_open(layout):
        if _may_be_text(value):
            return open_text(it, value)
        if isinstance(value, V.Union):
            from pyrelay.infer.flow.unions import distribute

            return distribute(it, value, lambda case: as_laid_out(it, case, layout))
        return in_list(it.builder, it.heap, it.atom, value)
    if isinstance(value, V.Tuple):
        parts = zip(value.items, layout.children, strict=True)
        return replace(value, items=tuple(as_laid_out(it, v, x) for v, x in parts))
    return value


@handles(digits.shown_by_python)
def shown_by_python(it: Interpreter, number: V.Value, spec: V.Value) -> V.Value:
    """The code points of a number that only Python can write, as an array."""
    from pyrelay.infer.containers import text

    written = by_python(it, V.Text(text.formatted, (number, V.Known(""), spec)))
    return it.new_array(it.builder.cast(it.atom(written.args[0]), types.i64))


@handles(strings.quoted_by_python)
def quoted_by_python(it: Interpreter, string: V.Value) -> V.Value:
    """The code points of a string in quotes that only Python can write, as an array."""
    written = by_python(it, V.Text(repr, (string,)))
    return it.new_array(it.builder.cast(it.atom(written.args[0]), types.i64))


def by_python(it: Interpreter, value: V.Value) -> V.Text:
    """A string that Python makes while the program runs, as an array of code points."""
    from pyrelay.infer import host
    from pyrelay.infer.containers.lists import extent_of_atom
    from pyrelay.ir.types import TensorType

    before = len(it.builder.lets)
    size = extent_of_atom(it, it.atom(host.value(it, types.PY_INT, len, (value,))))
    codes = host.value(it, TensorType(types.i32, (size,)), codes_of, (value,))
    if _never_raises(it, value):
        it.program.checked.update(it.builder.lets[before:])
    return V.Text(from_codes, (codes,))


def _never_raises(it: Interpreter, value: V.Value) -> bool:
    """Whether Python surely makes this string, or one of this number or exception."""
    from pyrelay.infer.containers import text

    match value:
        case V.Text(text.formatted, (number, V.Known(conversion), V.Known(spec))):
            ty = V.number_type(number)
            if ty is None or spec.endswith("c"):  # not every number is that of a character
                return not spec and _never_raises(it, number)
            one = ty.dtype.numpy.type(1)
            try:
                text.formatted(one.item() if ty.weak else one, conversion, spec)
            except (TypeError, ValueError):
                return False
            return not (isinstance(number, V.Scalar) and number.kinds)
        case V.Text(function, args):
            makers = (text.joined, str, repr, from_codes, from_items)
            return function in makers and all(_never_raises(it, arg) for arg in args)
        case V.Union(_, cases, alive):
            return all(_never_raises(it, cases[k]) for k in alive)
        case V.Tuple(items):
            return all(_never_raises(it, item) for item in items)
        case V.Ref(root, cls) if issubclass(cls or object, BaseException):
            return _never_raises(it, it.content(root)["args"])
        case V.Ref(root):  # of the code points of a string
            return isinstance(it.content(root), V.Growing)
    return isinstance(value, (V.Known, V.Scalar, V.ArrayRef))
