"""Strings that a program reads as data: code points in an array, characters as numbers.

In: strings, known or of the running program. Out: a character is the text `chr(code)`, a string
read at run time the text `from_codes(codes)`, one that grew `from_items(codes)`
(open_sequences.py); what is asked of these (order, length, whether it is a digit, where it occurs)
is computed by the program. All else is asked of Python (text.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.infer import needs, own_arrays
from pyrelay.infer import values as V
from pyrelay.infer.containers.code_points import MOST_KNOWN, from_codes, from_items
from pyrelay.infer.containers.open_layouts import sequences
from pyrelay.infer.in_python import characters as in_python
from pyrelay.infer.in_python import numbers_in_texts, strings
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS

#: Known strings up to this length are gone through by unrolled loops, short ones in any case.
MOST_UNROLLED = 64
#: Properties of characters that the program looks up.
PROPERTIES = frozenset({
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace",
    "isupper",
})  # fmt: skip
#: Methods that make another character of one.
CASES = frozenset({"capitalize", "casefold", "lower", "swapcase", "title", "upper"})


# -- what a value is -------------------------------------------------------------------------------


def code_of(value: V.Value) -> V.Value | None:
    """The code point of a character; None for any other value."""
    match value:
        case V.Text(function, (code,)) if function is chr:
            return code
        case V.Known(str() as v) if len(v) == 1:
            return V.Known(ord(v))
    return None


def of_code(it: Interpreter, code: V.Value) -> V.Value:
    """The character of a code point."""
    if isinstance(code, V.Known):
        return V.Known(chr(code.value))
    number = it.builder.cast(it.atom(code), types.i64, weak=True)
    return V.Text(chr, (V.Scalar(types.PY_INT, number),))


def is_data(value: V.Value) -> bool:
    """Whether a string is an array of code points, or a list of them."""
    return isinstance(value, V.Text) and value.function in (from_codes, from_items)


def codes(it: Interpreter, value: V.Value) -> V.ArrayRef | None:
    """The code points of a known string or one that is an array; None for any other value."""
    from pyrelay.infer.containers import growing, lists
    from pyrelay.infer.containers.open_sequences import items_of

    array: V.Value | None = None
    items = items_of(value)
    if items is not None:
        grown = lists.grow(it, items.root)
        if grown is None:
            return codes(it, V.Known(""))
        content = growing.plain(it.builder, grown)
        size = lists.count_extent(it, content)
        return it.new_array(growing.items_array(it.builder, content.rows[0], size).atom)
    if isinstance(value, V.Text) and is_data(value):
        array = value.args[0]
    elif isinstance(value, V.Known) and isinstance(value.value, str):
        from pyrelay.infer.attributes import captured

        array = captured(it, own_arrays.codes(value.value))
    return array if isinstance(array, V.ArrayRef) else None


# -- what is asked of it ---------------------------------------------------------------------------


def length(it: Interpreter, value: V.Value) -> V.Value | None:
    """len(value) of a string that is an array, a list or a character."""
    from pyrelay.infer.containers.open_sequences import items_of, written

    items = items_of(written(it, value))
    if items is not None:
        content = it.content(items.root)
        return content.count if isinstance(content, V.Growing) else V.Known(len(content))
    if is_data(value):
        return V.Scalar.of_extent(value.args[0].type.shape[0])  # type: ignore[union-attr]
    return V.Known(1) if code_of(value) is not None else None


def item(
    it: Interpreter, string: V.Value, key: V.Value, *, checked: bool = False
) -> V.Value | None:
    """`string[key]`; None where Python has to be asked, or the key is known as the string is."""
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.containers import open_sequences

    string = open_sequences.written(it, string)
    items = open_sequences.items_of(string)
    if items is not None:
        return _item_of_open(it, items, key)
    open_key = any(
        isinstance(k, V.Scalar)
        for k in ((key.start, key.stop, key.step) if isinstance(key, V.Slice) else (key,))
    )
    if not is_data(string) and not open_key:
        return None
    if isinstance(string, V.Text) and string.function is chr and not isinstance(key, V.Slice):
        _place(it, key, 1)
        return string
    array = codes(it, string)
    if array is None:
        return None
    if isinstance(key, V.Slice):
        return V.Text(from_codes, (get_item(it, array, key),))
    place = _place(it, key, None if checked else array.type.shape[0])
    code = it.result(it.builder.call(OPS["index"], it.atom(array), place, axes=(0,)))
    return of_code(it, code)


def _item_of_open(it: Interpreter, items: V.Ref, key: V.Value) -> V.Value:
    """`string[key]` of a string that is a list of code points."""
    from pyrelay.infer.containers import lists, open_sequences

    if isinstance(key, V.Slice):
        part = lists.get_item(it, items, it.content(items.root), key)
        assert isinstance(part, V.Ref)
        return open_sequences.string_of(it, part)
    _require_int(it, key)
    content = it.content(items.root)
    place = lists.position(it, content, key, "string index out of range")
    code = lists.get_item(it, items, content, V.Scalar(types.PY_INT, place), checked=True)
    return of_code(it, code)


def _place(it: Interpreter, key: V.Value, size: Extent | None) -> Atom:
    """The place that an index means in a string; size: None where it is known to lie inside."""
    _require_int(it, key)
    place = it.builder.cast(it.atom(key), types.i64, weak=True)
    if size is None:
        return place
    count = it.builder.extent(size)
    text = "string index out of range"
    inside: Handle = it.builder.call(OPS["check_item"], place, count, text=text)
    return inside.atom


def _require_int(it: Interpreter, key: V.Value) -> None:
    ty = V.number_type(key)
    if ty is None or not ty.dtype.is_integer:
        from pyrelay.infer.flow.choice import wrong_index

        raise wrong_index(it, "string indices must be integers", key)


def iteration(
    it: Interpreter, value: V.Value
) -> tuple[V.Value, Callable[[V.Value], V.Value]] | None:
    """How many characters a loop goes through, and which; None for short known strings."""
    if isinstance(value, V.Text) and value.function is chr:
        return V.Known(1), lambda index: value
    if isinstance(value, V.Text) and not is_data(value):
        from pyrelay.infer.containers.open_sequences import open_text

        value = open_text(it, value)
    most = needs.SHORT if sequences().open else MOST_UNROLLED
    if not is_data(value) and not (
        isinstance(value, V.Known) and isinstance(value.value, str) and len(value.value) > most
    ):
        return None
    array = codes(it, value)
    assert array is not None

    def character(index: V.Value) -> V.Value:
        if isinstance(index, V.Known) and isinstance(value, V.Known):
            return V.Known(value.value[index.value])
        found = item(it, V.Text(from_codes, (array,)), index, checked=True)
        assert found is not None
        return found

    return V.Scalar.of_extent(array.type.shape[0]), character


def compare(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` of characters, or of strings for equality; None where Python has to be asked."""
    from pyrelay.infer import operators
    from pyrelay.infer.calls import call
    from pyrelay.infer.containers import open_sequences
    from pyrelay.infer.flow.truth import truth

    a, b = code_of(x), code_of(y)
    if a is not None and b is not None:
        return operators.compare(it, op, a, b)
    x, y = open_sequences.written(it, x), open_sequences.written(it, y)
    if op not in ("==", "!="):
        return _ordered(it, op, x, y)
    for one, other in ((x, y), (y, x)):
        if isinstance(other, V.Known) and isinstance(other.value, str):
            if code_of(one) is not None and len(other.value) != 1:
                return V.Known(op == "!=")
            if isinstance(one, V.Text) and one.origin and len(other.value) > MOST_KNOWN:
                raise needs.NeedsStatic(one.origin, "a string that is one of several names")
    if not (is_data(x) or is_data(y)):
        return None
    parts = _all_codes(it, x, y)
    if parts is None:
        return None
    same = truth(it, call(it, V.Known(in_python.same_codes), parts, {}))
    return same if op == "==" else operators.unary(it, "not", same)


def _ordered(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` for an order of strings, one of which is an array; None where Python has to say."""
    from pyrelay.infer import operators
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.truth import as_bool

    if not (is_data(x) or is_data(y)):
        return None
    first, second = (x, y) if op in ("<", ">=") else (y, x)
    parts = _all_codes(it, first, second)
    if parts is None:
        return None
    before = as_bool(it, call(it, V.Known(in_python.codes_precede), parts, {}))
    return before if op in ("<", ">") else operators.unary(it, "not", before)


def _all_codes(it: Interpreter, *strings: V.Value) -> list[V.Value] | None:
    """The code points of each of these, characters among them; None if one has none."""
    parts: list[V.Value] = []
    for string in strings:
        part: V.Value | None = codes(it, string)
        if part is None:
            code = code_of(string)
            if code is None:
                return None
            part = it.call("expand_dims", V.Scalar(types.PY_INT, it.atom(code)), axes=(0,))
        parts.append(part)
    return parts


def contains(it: Interpreter, container: V.Value, wanted: V.Value) -> V.Value | None:
    """`wanted in container` of strings; None where Python has to be asked."""
    from pyrelay.infer import operators
    from pyrelay.infer.calls import call
    from pyrelay.infer.containers.open_sequences import written

    code, own = code_of(wanted), code_of(container)
    if code is not None and own is not None:
        return operators.compare(it, "==", code, own)
    if code is None and own is None:
        string, part = written(it, container), written(it, wanted)
        if isinstance(string, V.Known) and is_data(part):
            known = codes(it, string)
            assert known is not None
            string = V.Text(from_codes, (known,))
        if not is_data(string) or not (is_data(part) or isinstance(part, V.Known)):
            return None
        return operators.compare(it, ">=", call(it, V.Known(strings.find), (string, part), {}),
                                 V.Known(0))
    if code is None:
        return None
    if isinstance(container, V.Known) and len(set(container.value)) <= MOST_KNOWN:
        found: V.Value = V.Known(False)
        for character in dict.fromkeys(container.value):
            same = operators.compare(it, "==", code, V.Known(ord(character)))
            found = operators.either(it, found, same)
        return found
    array = codes(it, container)
    if array is None:
        return None
    there = it.emit("any", it.call("equal", array, code), axes=(0,), keepdims=False)
    return it.result(it.builder.handle(it.builder.cast(there.atom, types.bool_, weak=True)))


def has_property(it: Interpreter, value: V.Value, name: str) -> V.Value | None:
    """`value.isdigit()` and the like of a character; None for any other value."""
    from pyrelay.infer.attributes import captured
    from pyrelay.infer.calls import call

    code = code_of(value)
    if code is None or name not in PROPERTIES:
        return None
    bounds = captured(it, own_arrays.bounds_of(name))
    return call(it, V.Known(in_python.lies_inside), (code, bounds), {})


def in_other_case(it: Interpreter, value: V.Value, name: str) -> V.Value | None:
    """`value.upper()` and the like of a character; None for any other value."""
    from pyrelay.infer.attributes import captured
    from pyrelay.infer.calls import call

    code = code_of(value)
    if code is None or name not in CASES or isinstance(code, V.Known):
        return None
    made = (getattr(chr(k), name)() for k in range(128))
    tables = own_arrays.numbers(tuple(map(ord, made))), own_arrays.cases_of(name)
    given = (code, *(captured(it, table) for table in tables), V.Known(name))
    found = call(it, V.Known(in_python.other_case), given, {})
    return of_code(it, found)


def as_number(it: Interpreter, cls: Any, value: V.Value, base: V.Value) -> V.Value | None:
    """int(value, base) or float(value) of a string that is an array, and int(value, base) of a
    character; None where Python has to be asked."""
    from pyrelay.infer.attributes import captured
    from pyrelay.infer.calls import call
    from pyrelay.infer.containers.open_sequences import written

    code = code_of(value)
    based = cls is int and isinstance(base, V.Known) and base.value in range(2, 37)
    if code is not None:
        if not based:
            return None
        if base != V.Known(10):
            return call(it, V.Known(numbers_in_texts.whole_of_character), (code, base), {})
        zeros = captured(it, own_arrays.zeros_of_scripts())
        return call(it, V.Known(in_python.digit_of), (code, zeros), {})
    string = written(it, value)
    if not is_data(string):
        return None
    if cls is float:
        return call(it, V.Known(numbers_in_texts.real), (string,), {})
    if not based:
        return None
    return call(it, V.Known(numbers_in_texts.whole), (string, base), {})


def are_characters(it: Interpreter, items: V.Value) -> bool:
    """Whether the items are characters: of a string that is an array, or of a growing list."""
    from pyrelay.infer import layout as L
    from pyrelay.infer.containers import lists

    if isinstance(items, V.Text):
        return is_data(items)
    content = lists.growing_content(it, items)
    template = None if content is None else content.template
    return isinstance(template, L.LNode) and template.head[:2] == ("text", chr)


def listed(it: Interpreter, items: V.Value) -> V.Value:
    """A list of items whose number is not known, which going through them may use up; any others
    as they are."""
    from pyrelay.infer.containers import lists
    from pyrelay.infer.names.builtins import list_

    if isinstance(items, V.OpenTuple):
        return items.items
    if lists.growing_content(it, items) is None and not lists.has_known_length(it, items):
        return list_(it, items)
    return items


def joined(it: Interpreter, separator: V.Value, items: V.Value) -> V.Value | None:
    """`separator.join(items)` of a list of run-time length; None for anything else."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.containers import growing, lists, open_sequences

    content = lists.growing_content(it, items)
    if content is None:
        return None
    if separator != V.Known("") or not are_characters(it, items):
        put_together = call(it, V.Known(in_python.joined_codes), (separator, items), {})
        assert isinstance(put_together, V.Ref)
        return open_sequences.string_of(it, put_together)
    content = growing.plain(it.builder, content)
    size = lists.count_extent(it, content)
    found = it.new_array(growing.items_array(it.builder, content.rows[0], size).atom)
    return V.Text(from_codes, (found,))


__all__ = [
    "are_characters", "as_number", "code_of", "codes", "compare", "contains", "has_property",
    "in_other_case", "is_data", "item", "iteration", "joined", "length", "listed", "of_code",
]
