"""Text with values of the running program in it: made when it is shown, raised or returned.

In: what f-strings, `str`, `repr`, `format`, `%` and methods of strings are given. Out: `V.Text`, a
function and its arguments as they are now, or `V.Known` where everything is known. What a program
asks about such a text (its length, whether it equals another) is asked of Python when it runs.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import needs, own_arrays
from pyrelay.infer import values as V
from pyrelay.infer.containers import characters, templates
from pyrelay.infer.containers.code_points import from_codes
from pyrelay.infer.in_python import strings
from pyrelay.infer.in_python.containers import standing_for as tables
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.spellings import PYTHON
from pyrelay.ir import types
from pyrelay.ir.types import TensorType

#: Methods of strings by what they give. Those that give lists are refused: nobody knows how long.
_TEXTS = frozenset({
    "capitalize", "casefold", "center", "expandtabs", "format", "join", "ljust", "lower", "lstrip",
    "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase", "title",
    "translate", "upper", "zfill",
})  # fmt: skip
_ANSWERS = {
    **dict.fromkeys(
        ("startswith", "endswith", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
         "islower", "isnumeric", "isspace", "istitle", "isupper"), types.PY_BOOL,
    ),
    **dict.fromkeys(("count", "find", "index", "rfind", "rindex"), types.PY_INT),
}  # fmt: skip

_IN_UTF_8 = ((), (V.Known("utf-8"),), (V.Known("utf8"),))
"""The arguments of `encode` that the program can encode by."""
_MOST_TRANSLATED = 1024
"""Code points up to which a table for `translate` may say what becomes of them."""


def is_text(value: V.Value) -> bool:
    """True for a string, known or not."""
    known = isinstance(value, V.Known) and isinstance(value.value, str)
    return known or isinstance(value, V.Text)


def text(it: Interpreter, function: Callable[..., str], *args: V.Value) -> V.Value:
    """The string `function(*args)`. What Python raises for known arguments is raised here."""
    own = tuple(frozen(it, arg) for arg in args)
    if all(isinstance(leaf, (V.Known, V.Tuple)) for leaf in V.leaves_of(own)):
        try:
            return V.Known(function(*map(known_object, own)))
        except Exception as error:
            from pyrelay.infer.operators import raised

            raise raised(it, error) from None
    return V.Text(function, own)


def known_object(value: V.Value) -> Any:
    """The Python object of known values and tuples of them."""
    if isinstance(value, V.Tuple):
        items = tuple(map(known_object, value.items))
        return items if value.cls is None else value.cls(*items)
    assert isinstance(value, V.Known)
    return value.value


def frozen(it: Interpreter, value: V.Value) -> V.Value:
    """The value as it is now: later writes do not reach it."""
    match value:
        case V.ArrayRef():
            return it.new_array(it.atom(value))
        case V.Tuple(items, cls):
            return V.Tuple(tuple(frozen(it, item) for item in items), cls)
        case V.Ref(root, cls):
            content = it.content(root)
            if isinstance(content, V.Growing):
                from pyrelay.infer.containers import growing, lists

                return lists.new(it, growing.plain(it.builder, content))
            if isinstance(content, dict):
                return it.new_ref(root.kind, {k: frozen(it, v) for k, v in content.items()}, cls)
            return it.new_ref(root.kind, tuple(frozen(it, v) for v in content), cls)
        case V.Data(pool, kind, row):
            from pyrelay.infer.containers.lists_in_nodes import closed

            schema, columns = closed(it, pool)
            now = {name: frozen(it, column) for name, column in columns.items()}
            return V.Data(it.new_ref("pool", now, schema), kind, row)
        case V.Union(tag, cases, alive):
            return V.Union(tag, tuple(frozen(it, case) for case in cases), alive)
    return value


def joined(*pieces: str) -> str:
    """The pieces of an f-string as one string."""
    return "".join(pieces)


def formatted(value: Any, conversion: str, spec: str) -> str:
    """What an f-string puts for `{value!conversion:spec}`."""
    return errors.formatted(value, conversion, spec)


def called(
    name: str, receiver: str, args: Sequence[Any], keywords: Sequence[tuple[str, Any]]
) -> Any:
    """A method of a string."""
    return getattr(receiver, name)(*args, **dict(keywords))


def sliced(string: str, start: int | None, stop: int | None, step: int | None) -> str:
    """string[start:stop:step]."""
    return string[start:stop:step]


def from_parts(it: Interpreter, args: Sequence[V.Value], attrs: Any) -> V.Value:
    """An f-string."""
    pieces: list[V.Value] = []
    waiting = iter(zip(args[::2], attrs["conversions"], args[1::2], strict=True))
    for part in attrs["parts"]:
        if part is not None:
            pieces.append(V.Known(part))
            continue
        value, conversion, spec = next(waiting)
        pieces.append(shown(it, value, conversion, spec))
    return _grown(it, text(it, joined, *pieces), *args[::2])


def shown(it: Interpreter, value: V.Value, conversion: str, spec: V.Value) -> V.Value:
    """What an f-string puts for `{value!conversion:spec}`."""
    own = said_of(it, value, conversion, spec)
    if own is not None:
        value, conversion = own, ""
    if isinstance(value, V.Union) and V.node_of(value) is None:
        from pyrelay.infer.flow.unions import distribute

        return distribute(it, value, lambda case: shown(it, case, conversion, spec))
    plain = conversion in ("", "s") and spec == V.Known("")
    if plain:
        said = of_exception(it, value)
        if said is not None:
            return said
    if plain and isinstance(value, V.Text):
        return value
    return text(it, formatted, value, V.Known(conversion), spec)


def said_of(it: Interpreter, value: V.Value, conversion: str, spec: V.Value) -> V.Value | None:
    """What an object of a user's class says of itself where an f-string shows it; None for others,
    and where Python says it."""
    from pyrelay.infer.own_texts import said

    if not conversion and (
        spec != V.Known("")
        or getattr(getattr(value, "cls", None), "__format__", None) is not object.__format__
    ):
        return None
    names = {"": "__str__", "s": "__str__", "r": "__repr__"}
    return said(it, value, names[conversion]) if conversion in names else None


def of_exception(it: Interpreter, value: V.Value) -> V.Value | None:
    """str(x) of an exception of at most one argument, as BaseException and KeyError have it; None
    for any other value."""
    if not (isinstance(value, V.Ref) and issubclass(value.cls or object, BaseException)):
        return None
    args, own = it.content(value.root).get("args"), value.cls.__str__
    if not isinstance(args, V.Tuple) or len(args.items) > 1:
        return None
    if own not in (BaseException.__str__, KeyError.__str__):
        return None
    if not args.items:
        return V.Known("")
    (arg,) = args.items
    if own is KeyError.__str__:
        return text(it, repr, arg)
    return arg if isinstance(arg, V.Text) or _cases(arg) else text(it, str, arg)


def _put(it: Interpreter, value: V.Value, conversion: str, spec: str) -> V.Value:
    return shown(it, value, conversion, V.Known(spec))


def _grown(it: Interpreter, whole: V.Value, *of: V.Value) -> V.Value:
    """A string made of others: of run-time length where a loop may make it ever longer."""
    from pyrelay.infer.containers.open_sequences import becomes_longer, open_text

    strings = [leaf for leaf in V.leaves_of(of) if is_text(leaf) or _cases(leaf)]
    return open_text(it, whole) if strings and becomes_longer(it, *strings) else whole


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` where one is a string and not both are known; None if Python refuses it."""
    if op == "+" and is_text(x) and is_text(y):
        return text(it, joined, x, y)
    if op == "%" and is_text(x):
        pieces = None
        if isinstance(x, V.Known):
            pieces = templates.of_percent(x.value, y, functools.partial(_put, it))
        whole = text(it, operator.mod, x, y) if pieces is None else text(it, joined, *pieces)
        return _grown(it, whole, x, y)
    if op == "*":
        for string, count in ((x, y), (y, x)):
            ty = V.number_type(count)
            if is_text(string) and ty is not None and ty.dtype.kind in "iub":
                return _grown(it, text(it, operator.mul, string, count), string)
    return None


def compare(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y` where one is a string of the running program."""
    if is_text(x) and is_text(y):
        known = characters.compare(it, op, x, y)
        if known is not None:
            return known
        return ask(it, types.PY_BOOL, PYTHON[op], x, y)
    if op in ("==", "!="):
        return V.Known(op == "!=")
    from pyrelay.infer.comparison import not_ordered

    raise not_ordered(it, op, x, y)


def item(it: Interpreter, string: V.Value, key: V.Value) -> V.Value:
    """`string[key]` of a string of the running program."""
    if isinstance(key, V.Slice):
        return text(it, sliced, string, key.start, key.stop, key.step)
    return text(it, operator.getitem, string, key)


def ask(
    it: Interpreter, ty: TensorType, function: Callable[..., Any], *args: V.Value
) -> V.Value:
    """A number or truth that Python tells about texts: now if they are known."""
    if all(isinstance(arg, V.Known) for arg in args):
        return V.Known(function(*map(known_object, args)))
    from pyrelay.infer.host import value

    return value(it, ty, function, args)


def method(
    it: Interpreter, receiver: V.Value, name: str, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """Call a method of a string."""
    answer = characters.has_property(it, receiver, name)
    if answer is None and not (args or keywords):
        answer = characters.in_other_case(it, receiver, name)
    if answer is not None:
        return answer
    if name == "join" and args:
        from pyrelay.infer.flow.generators import taken
        from pyrelay.infer.protocols import gone_through

        args = (taken(it, gone_through(it, args[0])), *args[1:])
        if isinstance(args[0], V.Union):
            from pyrelay.infer.flow.unions import distribute

            return distribute(it, args[0], lambda case: method(it, receiver, name, (case,), {}))
        parts = characters.listed(it, args[0])
        whole = characters.joined(it, receiver, parts)
        if whole is not None:
            return whole
        from pyrelay.infer.flow.iteration import sequence_of

        items = sequence_of(it, parts)
        wrong = next((v for v in items if not is_text(v) and not _cases(v)), None)
        if wrong is not None:
            raise it.failure(
                errors.TypeMismatchError, f"'join' takes strings, not {V.describe(wrong)}",
                hints=("write str(...) around the item",),
            )
        return _grown(it, _of_items(it, receiver, items), receiver, *items)
    if name == "format" and isinstance(receiver, V.Known):
        put = functools.partial(_put, it)
        pieces = templates.of_format(receiver.value, args, keywords, put)
        if pieces is not None:
            return _grown(it, text(it, joined, *pieces), *args, *keywords.values())
    if name == "translate" and any(isinstance(v, V.Ref) and v.cls in tables for v in args):
        from pyrelay.infer.calls import call

        return call(it, V.Known(strings.translate), (receiver, *args), keywords)
    if name == "encode" and not keywords and tuple(args) in _IN_UTF_8:
        from pyrelay.infer.calls import call
        from pyrelay.infer.containers.open_sequences import open_text
        from pyrelay.infer.in_python.byte_arrays import encoded

        return call(it, V.Known(encoded), (open_text(it, receiver),), {})
    if name == "translate" and len(args) == 1:
        from pyrelay.infer.calls import call
        from pyrelay.infer.containers.open_sequences import written

        table, string = _known_table(it, args[0]), written(it, receiver)
        if table is not None and characters.is_data(string):
            return call(it, V.Known(strings.translated), (string, *table), {})
    origin = receiver.origin if isinstance(receiver, V.Text) and name not in _ANSWERS else None
    if name in strings.METHODS and not (origin and it.program.texts_known):
        own = _in_program(it, receiver, name, args, keywords)
        if own is not None:
            it.program.texts_read |= bool(origin)
            return own
    if origin:
        raise needs.NeedsStatic(origin, f"a string whose method {name!r} is called")
    named = tuple(V.Tuple((V.Known(k), v)) for k, v in keywords.items())
    given = (V.Known(name), receiver, V.Tuple(tuple(args)), V.Tuple(named))
    if name in _TEXTS:
        return _grown(it, text(it, called, *given), *given[1:])
    if name in _ANSWERS:
        return ask(it, _ANSWERS[name], called, *given)
    raise it.failure(
        errors.UnsupportedOperationError,
        f"the method {name!r} of a string that is made while the program runs cannot be called "
        "in a compiled function",
        hints=("return the text and take it apart outside",),
    )


def _known_table(it: Interpreter, table: V.Value) -> list[V.Value] | None:
    """What `strings.translated` takes of a table for `translate` whose keys are known, and few code
    points; else None."""
    from pyrelay.infer.attributes import captured
    from pyrelay.infer.names.adapters import to_array

    entries: Any = {}
    if isinstance(table, V.Known) and isinstance(table.value, dict):
        entries = {key: V.Known(into) for key, into in table.value.items()}
    elif isinstance(table, V.Ref) and table.root.kind == "dict" and table.cls is None:
        entries = it.content(table.root)
    else:
        return None
    becomes = list(map(_codes_of_entry, entries.values()))
    if None in becomes or not all(
        type(key) is int and 0 <= key < _MOST_TRANSLATED for key in entries
    ):
        return None
    places = [-1] * (max(entries, default=0) + 1)
    for number, key in enumerate(entries):
        places[key] = number
    ends = itertools.accumulate(map(len, becomes), initial=0)  # type: ignore[arg-type]
    codes = [code for codes in becomes for code in codes]  # type: ignore[union-attr]
    rows = [captured(it, own_arrays.numbers(tuple(row))) for row in (places, ends)]
    if all(isinstance(code, V.Known) for code in codes):
        known = tuple(code.value for code in codes)  # type: ignore[union-attr]
        return [*rows, captured(it, own_arrays.numbers(known))]
    return [*rows, to_array(it, V.Tuple(tuple(codes)))]


def _codes_of_entry(into: V.Value) -> list[V.Value] | None:
    """The code points of what a character becomes; None if nobody knows how many."""
    match into:
        case V.Known(None):
            return []
        case V.Known(str() as known):
            return [V.Known(ord(character)) for character in known]
        case V.Known(int() as code):
            return [into] if 0 <= code < 0x110000 else None
        case V.Scalar(type=ty) if ty == types.PY_INT:
            return [into]
    return None


def _of_items(it: Interpreter, separator: V.Value, items: Sequence[V.Value]) -> V.Value:
    """`separator.join(items)` of items of which it is known how many there are."""
    if separator == V.Known("") and items and any(isinstance(v, V.Text) for v in items):
        codes = [code for code in map(characters.code_of, items) if code is not None]
        if len(codes) == len(items):
            from pyrelay.infer.names.adapters import to_array

            array = to_array(it, V.Tuple(tuple(codes)))
            return V.Text(from_codes, (array,))
    between = [piece for item in items for piece in (separator, item)]
    return text(it, joined, *between[1:])


def _in_program(
    it: Interpreter, receiver: V.Value, name: str, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value | None:
    """What a method gives that the program itself can compute; None if Python has to be asked."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.containers.open_sequences import open_text, written

    string = written(it, receiver)
    if isinstance(string, V.Known) and name in _ANSWERS:
        known = characters.codes(it, string)
        string = string if known is None else V.Text(from_codes, (known,))
    lists = name in ("split", "rsplit", "splitlines", "partition", "rpartition")
    if lists and not characters.is_data(string):
        string = open_text(it, string)
    takes = strings.METHODS[name].__code__.co_argcount - 1
    if not characters.is_data(string) or len(args) + len(keywords) > takes:
        return None
    if name in ("startswith", "endswith") and args and _is_tuple(args[0]):
        return _with_any(it, string, name, args, keywords)
    if any(_is_tuple(v) or (v == V.NONE and not lists) for v in args):
        return None
    return call(it, V.Known(strings.METHODS[name]), (string, *args), keywords)


def _with_any(
    it: Interpreter, string: V.Value, name: str, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value | None:
    """string.startswith(...) or string.endswith(...) of a tuple of a known number of texts."""
    from pyrelay.infer import operators

    first, *rest = args
    if isinstance(first, V.OpenTuple):
        return None
    parts = (
        first.items if isinstance(first, V.Tuple) else tuple(map(V.Known, first.value))  # type: ignore[union-attr]
    )
    if not all(map(is_text, parts)):
        return None
    found: V.Value = V.Known(False)
    for part in parts:
        found = operators.either(it, found, method(it, string, name, (part, *rest), keywords))
    return found


def _is_tuple(value: V.Value) -> bool:
    known = isinstance(value, V.Known) and isinstance(value.value, tuple)
    return known or isinstance(value, V.Tuple | V.OpenTuple)


def _cases(value: V.Value) -> bool:
    return isinstance(value, V.Union) and all(map(is_text, value.possible))


def methods() -> frozenset[str]:
    """Names of the methods that `method` takes, or refuses with a reason."""
    return frozenset(name for name in dir(str) if not name.startswith("_"))
