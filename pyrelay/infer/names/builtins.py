"""Python's builtins, `math` and `functools` as handlers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.infer import kinds, protocols
from pyrelay.infer import values as V
from pyrelay.infer.attributes import is_our_own, of_class
from pyrelay.infer.calls import call, has_call, unsupported
from pyrelay.infer.containers import (
    characters,
    list_arrays,
    lists,
    mappings,
    open_sequences,
    sets,
    views,
)
from pyrelay.infer.containers.open_keys import is_known
from pyrelay.infer.containers.open_layouts import sequences
from pyrelay.infer.containers.text import ask, is_text
from pyrelay.infer.flow.effects import raise_where
from pyrelay.infer.flow.generators import collected, is_generator
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.iteration import iterate, sequence_of
from pyrelay.infer.flow.truth import as_bool
from pyrelay.infer.flow.unions import distribute
from pyrelay.infer.in_python import containers, iteration, python_math, tables
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.in_python.attributes import AttributeDict
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import cast
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.nodes import sets_of_nodes
from pyrelay.infer.nodes.datatypes import is_anonymous
from pyrelay.infer.nodes.dicts import new_dict
from pyrelay.infer.nodes.fixed_lists import new_list
from pyrelay.infer.operators import (
    binary,
    compare,
    extent_of,
    number,
    raised,
)
from pyrelay.infer.unfolding import is_of_few
from pyrelay.ir import types

ZERO, ONE = V.Known(0), V.Known(1)


@handles(range)
def range_(it: Interpreter, a: V.Value, b: V.Value = V.NONE, c: V.Value = ONE) -> V.Value:
    """range(stop) or range(start, stop, step)."""
    start, stop = (ZERO, a) if b == V.NONE else (a, b)
    start, stop, c = (number(it, v) for v in (start, stop, c))
    for value in (start, stop, c):
        ty = V.number_type(value)
        if ty is None or ty.dtype.kind not in "iub":
            raise it.failure(
                errors.TypeMismatchError,
                f"range() needs integers, not {V.describe(value)}",
                hints=("write int(...) or use //",),
            )
    start, stop, step = (_python_int(it, v) for v in (start, stop, c))
    if isinstance(step, V.Scalar) and not is_our_own(it):
        _refuse_zero(it, step)
    return V.Range(start, stop, step)


def _refuse_zero(it: Interpreter, step: V.Value) -> None:
    """Raise as Python does for a range whose step is 0 when the program runs."""
    zero = it.atom(compare(it, "==", step, ZERO))
    raise_where(it, zero, ValueError, V.Known("range() arg 3 must not be zero"))


def _python_int(it: Interpreter, value: V.Value) -> V.Value:
    ty = V.number_type(value)
    if isinstance(value, V.Known):
        return V.Known(int(value.value))
    assert ty is not None
    if ty == types.PY_INT:
        return value
    return it.result(it.builder.handle(it.builder.cast(it.atom(value), types.i64, weak=True)))


@handles(len)
def len_(it: Interpreter, x: V.Value) -> V.Value:
    """len(x)."""
    match x:
        case V.ArrayRef(type=ty):
            if not ty.shape:
                raise it.failure(errors.TypeMismatchError, "len() of unsized object")
            return V.Scalar.of_extent(ty.shape[0])
        case V.View():
            return V.Known(len(views.now(it, x).items))
        case V.Tuple(items):
            own = protocols.special(it, x, "__len__")
            return V.Known(len(items)) if own is None else own
        case V.OpenTuple(items):
            return len_(it, items)
        case V.Items(count=count):
            return count
        case V.Data() if x.cls is not None and hasattr(x.cls, "_fields"):
            return V.Known(len(x.cls._fields))
        case V.Ref(root) if root.kind == "set":
            return V.Known(len(sets.items(it, x)))
        case V.Ref(root) if root.kind in ("list", "dict"):
            content = it.content(root)
            return (
                lists.length(content) if isinstance(content, V.Growing)
                else V.Known(len(content))
            )
        case V.Known(v) if hasattr(v, "__len__"):
            return V.Known(len(v))
        case V.Text():
            known = characters.length(it, x)
            return ask(it, types.PY_INT, len, x) if known is None else known
        case V.Lazy(kind="zip" | "enumerate" | "map" as kind):
            raise raised(it, TypeError(f"object of type '{kind}' has no len()"))
        case V.Range() | V.Lazy():
            return count_of(it, x)
        case V.Ref(cls=cls) | V.Data(cls=cls) if cls is not None:
            method = of_class(it, cls, "__len__")
            if method is not None:
                return call(it, V.Known(method), (x,), {})
    failure = it.failure(errors.TypeMismatchError, f"{V.describe(x)} has no len()")
    cls = class_of(x)
    if cls is None or hasattr(cls, "__len__"):
        raise failure
    raise certain(it, failure, TypeError, f"object of type '{cls.__name__}' has no len()")


def count_of(it: Interpreter, x: V.Value) -> V.Value:
    """How many items an iterable has."""
    from pyrelay.infer.flow.iteration import iterate

    count = iterate(it, x).count
    return count if isinstance(count, V.Known) else it.call("maximum", count, ZERO)


@handles(tuple)
def tuple_(it: Interpreter, iterable: V.Value = V.Tuple(())) -> V.Value:
    """tuple(iterable)."""
    if isinstance(iterable, V.OpenTuple):
        return iterable
    state = sequences()
    if not lists.has_known_length(it, iterable):
        state.wanted = True
        if state.open:
            items = list_(it, iterable)
            assert isinstance(items, V.Ref)
            return open_sequences.tuple_of(it, items)
    return V.Tuple(sequence_of(it, iterable))


@handles(tuple.__new__)
def tuple_of_class(
    it: Interpreter, cls: V.Value, iterable: V.Value = V.Tuple(())
) -> V.Value:
    """tuple.__new__(cls, iterable), as `_make` of a namedtuple's calls it."""
    from pyrelay.infer.nodes.building import build

    named, items = it.static(cls, "the class of a tuple"), sequence_of(it, iterable)
    if named is not tuple and it.program.families.of(named) is not None:
        return build(it, named, dict(zip(named._fields, items, strict=True)))
    return V.Tuple(items, None if named is tuple else named)


@handles(list)
def list_(it: Interpreter, iterable: V.Value = V.Tuple(())) -> V.Value:
    """list(iterable)."""
    if isinstance(iterable, V.Tuple) and not iterable.items:
        return new_list(it, ())
    if is_generator(iterable):
        return collected(it, iterable)
    if protocols.has_next(it, iterable):
        return collected(it, protocols.iterated(it, iterable) or iterable)
    if isinstance(iterable, V.OpenTuple):
        iterable = iterable.items
    content = lists.growing_content(it, iterable)
    if content is not None:
        return lists.new(it, lists.copied(it, content))
    items = iterate(it, iterable)
    short = isinstance(items.count, V.Known) and items.count.value <= lists.MOST_STATIC
    if items.static or short:
        return it.new_ref("list", sequence_of(it, iterable))
    if isinstance(iterable, V.ArrayRef):
        return list_arrays.from_array(it, iterable)
    return call(it, V.Known(in_python.listed), (iterable,), {})


@handles(set)
def set_(it: Interpreter, iterable: V.Value = V.Tuple(())) -> V.Value:
    """set(iterable) of known items."""
    if it.let in it.program.tables:
        from pyrelay.infer.names.containers import members

        return members(it, iterable)
    if sets.is_set(iterable):
        return sets.copy_of(it, iterable)
    found = sequence_of(it, iterable) if lists.has_known_length(it, iterable) else None
    if found is not None and is_of_few(it, found):
        from pyrelay.infer.names.containers import members

        return members(it, iterable)
    if found is not None and sets_of_nodes.is_of_nodes(it, found):
        return sets.new(it, found)
    if found is None or not all(map(is_known, found)):
        if it.let is not None:
            it.program.open_keys.add(it.let)
        raise unsupported(it, set)
    return sets.new(it, found, sets.is_dict(iterable))


@handles(object)
def object_(it: Interpreter) -> V.Value:
    """object(), which is only itself."""
    return it.new_ref("object", {}, object)


@handles(frozenset)
def frozenset_(it: Interpreter, iterable: V.Value = V.Tuple(())) -> V.Value:
    """frozenset(iterable) of known items."""
    found = set_(it, iterable)
    if not sets.is_set(found):
        raise it.failure(
            errors.UnsupportedOperationError,
            "a frozenset of items that only the program knows cannot be compiled",
            hints=("use a set",),
        )
    return V.Known(sets.frozen(it, found, as_it_is=sets.is_set(iterable)))


@handles(dict.fromkeys)
def dict_fromkeys(it: Interpreter, iterable: V.Value, value: V.Value = V.NONE) -> V.Value:
    """dict.fromkeys(iterable, value)."""
    if it.let in it.program.tables:
        return call(it, V.Known(tables.from_keys), (iterable, value), {})
    if it.let is not None:
        it.program.open_keys.add(it.let)
    keys = (it.static(k, "the key of a dict") for k in sequence_of(it, iterable))
    return new_dict(it, dict.fromkeys(keys, value))


@handles(dict)
def dict_(it: Interpreter, pairs: V.Value = V.Tuple(()), /, **named: V.Value) -> V.Value:
    """dict(mapping or pairs, **named)."""
    content: dict[Any, V.Value] = {}
    if isinstance(pairs, V.Data) and is_entries(pairs.cls):
        from pyrelay.infer.arrays.subscripts import get_item

        content = {k: get_item(it, pairs, V.Known(k)) for k in pairs.cls.labels}
        return new_dict(it, {**content, **named})
    standing = isinstance(pairs, (V.Ref, V.Data)) and pairs.cls in containers.standing_for and (
        pairs.cls is not AttributeDict
    )
    few = pairs == V.Tuple(()) and not named and is_of_few(it, ())
    if standing or few or it.let in it.program.tables | it.program.nested:
        from pyrelay.infer.names.containers import class_here

        made = call(it, class_here(it, tables.Table), (pairs,), {})
        call(it, V.Known(tables.Table.update), (made,), named)
        return made
    if pairs != V.Tuple(()):
        if it.let is not None and not (isinstance(pairs, V.Ref) and pairs.root.kind == "dict"):
            it.program.open_keys.add(it.let)
        content = mappings.taken(
            it, {}, pairs, lambda key: it.static(key, "the key of a dict")
        )
    return new_dict(it, {**content, **named})


@handles(slice)
def slice_(it: Interpreter, *bounds: V.Value) -> V.Value:
    """slice(stop) or slice(start, stop[, step])."""
    if not 1 <= len(bounds) <= 3:
        raise it.failure(errors.SignatureError, "slice() takes one to three arguments")
    if len(bounds) == 1:
        return V.Slice(V.NONE, number(it, bounds[0]), V.NONE)
    return V.Slice(*(number(it, b) for b in bounds), *[V.NONE] * (3 - len(bounds)))


@handles(float)
def float_(it: Interpreter, x: V.Value = V.Known(0.0)) -> V.Value:
    """float(x) of a number, or of an array of one element."""
    if isinstance(x, V.Natural):
        return V.Scalar(types.PY_FLOAT, it.builder.cast(x.bits, types.f64, weak=True))
    return converted(it, float, x, types.f64)


@handles(int)
def int_(it: Interpreter, x: V.Value = ZERO, base: V.Value = V.NONE) -> V.Value:
    """int(x): towards zero; int(text, base)."""
    if base != V.NONE:
        return _int_of_text(it, x, base)
    extent = extent_of(x)
    if extent is not None:
        return V.Scalar.of_extent(extent)
    return x if isinstance(x, V.Natural) else converted(it, int, x, types.i64)


def _int_of_text(it: Interpreter, x: V.Value, base: V.Value) -> V.Value:
    if not is_text(x):
        raise it.failure(
            errors.TypeMismatchError, "int() can't convert non-string with explicit base"
        )
    try:
        read = characters.as_number(it, int, x, base)
        return ask(it, types.PY_INT, int, x, base) if read is None else read
    except ValueError as error:
        raise raised(it, error) from None


@keeps_unions
@handles(bool)
def bool_(it: Interpreter, x: V.Value = V.Known(False)) -> V.Value:
    """bool(x)."""
    return as_bool(it, x)


@handles(complex)
def complex_(it: Interpreter, real: V.Value = ZERO, imag: V.Value = ZERO) -> V.Value:
    """complex(real, imag)."""
    if imag == ZERO:
        return converted(it, complex, real, types.c128)
    types_of_parts = [V.number_type(v) for v in (real, imag)]
    if all(ty is not None and ty.dtype.kind != "c" for ty in types_of_parts):
        # A product with 1j would make nan of inf.
        parts = [converted(it, float, v, types.f64) for v in (real, imag)]
        if all(isinstance(v, V.Known) for v in parts):
            return V.Known(complex(*(v.value for v in parts)))  # type: ignore[union-attr]
        return converted(it, complex, it.call("make_complex", *parts), types.c128)
    part = binary(it, "*", imag, V.Known(1j))
    return converted(it, complex, binary(it, "+", real, part), types.c128)


def _of_known(it: Interpreter, fn: Callable[..., Any], *values: Any) -> V.Value:
    """What a builtin gives of known values, or raises."""
    try:
        return V.Known(fn(*values))
    except (ValueError, OverflowError) as error:
        raise raised(it, error) from None
    except TypeError as error:
        failure = it.failure(errors.TypeMismatchError, str(error))
        raise certain(it, failure, TypeError, *error.args) from None


def converted(it: Interpreter, cls: type, x: V.Value, dtype: types.DType) -> V.Value:
    """`cls(x)`: a number of Python's of this type."""
    if isinstance(x, V.Text):
        read = characters.as_number(it, cls, x, V.Known(10))
        return ask(it, types.TensorType(dtype, weak=True), cls, x) if read is None else read
    if isinstance(x, V.Known):
        return _of_known(it, cls, x.value)
    own = protocols.special(it, x, f"__{cls.__name__}__")
    if own is not None:
        return own
    ty = it.tensor(x, f"{cls.__name__}()")
    if ty.shape:
        if ty.size != 1:
            raise it.failure(
                errors.TypeMismatchError,
                f"{cls.__name__}() needs a number, and {ty} has more than one element",
            )
        x = it.call("reshape", x, shape=())
    if ty.dtype.kind == "c" and dtype.kind != "c":
        raise it.failure(
            errors.TypeMismatchError, f"{cls.__name__}() cannot take a complex number",
            hints=("use .real or abs()",),
        )
    return it.result(it.builder.handle(it.builder.cast(it.atom(x), dtype, weak=True)))


@handles(abs, operator.abs)
def abs_(it: Interpreter, x: V.Value) -> V.Value:
    """abs(x)."""
    own = protocols.special(it, x, "__abs__")
    if own is not None:
        return own
    if isinstance(x, V.Known):
        return _of_known(it, abs, x.value)
    ty, given = V.number_type(x), x
    if ty is not None and ty == types.PY_BOOL:
        x = cast(it, x, types.i64)
    return kinds.signed(given, it.call("absolute", x), it.builder)


@handles(round)
def round_(it: Interpreter, x: V.Value, ndigits: V.Value = V.NONE) -> V.Value:
    """round(x[, ndigits]): half to even."""
    if isinstance(x, V.Known) and isinstance(ndigits, V.Known):
        number, digits = x.value, ndigits.value
        if isinstance(number, int) and isinstance(digits, int):  # Python makes a power for zeros
            digits = max(digits, -number.bit_length() - 1)
        return _of_known(it, round, number, digits)
    own = protocols.special(it, x, "__round__", *(() if ndigits == V.NONE else (ndigits,)))
    if own is not None:
        return own
    ty = it.tensor(x, "round()")
    if ty.shape:
        raise it.failure(
            errors.TypeMismatchError, f"round() needs a number, and got {ty}",
            hints=("use np.round for arrays",),
        )
    if ty.dtype is types.bf16:
        raise it.failure(
            errors.TypeMismatchError, "bfloat16 has no __round__, which round() needs",
            hints=("round a Python float, as in round(float(x), 2), or use np.round",),
        )
    if ndigits == V.NONE:
        return converted(it, int, it.call("rint", x), types.i64)
    digits = it.static(ndigits, "the number of digits")
    if not ty.weak:
        from pyrelay.infer.names.numpy import np_round

        return np_round(it, x, V.Known(digits))
    if ty.dtype.is_float:
        return call(it, V.Known(python_math.rounded), (x, V.Known(digits)), {})
    if digits >= 0:
        return int_(it, x)
    if digits < -19:  # no half of that has 64 bits
        return V.Known(0)
    if digits == -19:
        return call(it, V.Known(python_math.rounded_far), (x,), {})
    return call(it, V.Known(python_math.rounded_int), (x, V.Known(10 ** -digits)), {})


@handles(pow)
def pow_(it: Interpreter, base: V.Value, exp: V.Value, mod: V.Value = V.NONE) -> V.Value:
    """pow(base, exp[, mod])."""
    if mod == V.NONE:
        return binary(it, "**", base, exp)
    if all(isinstance(v, V.Known) for v in (base, exp, mod)):
        return _of_known(it, pow, base.value, exp.value, mod.value)  # type: ignore[union-attr]
    return call(it, V.Known(python_math.power_modulo), (base, exp, mod), {})


@handles(divmod)
def divmod_(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """divmod(x, y)."""
    numbers = [V.number_type(v) for v in (x, y)]
    if all(ty is not None and ty.weak and ty.dtype.kind != "c" for ty in numbers) and any(
        ty is not None and ty.dtype.is_float for ty in numbers
    ):
        return call(it, V.Known(python_math.divided), (x, y), {})
    of_object = protocols.binary(it, "divmod", x, y)
    if of_object is not None:
        return of_object
    return V.Tuple((binary(it, "//", x, y), binary(it, "%", x, y)))


@handles(isinstance)
def isinstance_(it: Interpreter, obj: V.Value, classinfo: V.Value) -> V.Value:
    """isinstance(obj, classinfo), folded by type."""
    wanted = it.static(classinfo, "the class for isinstance")
    cls = class_of(obj)
    flat: list[Any] = []
    pending = [wanted]
    while pending:
        here = pending.pop()
        if isinstance(here, tuple):
            pending.extend(here)
        else:
            flat.extend(getattr(here, "__args__", (here,)))
    if isinstance(obj, V.Scalar) and obj.kinds:
        named = [k for k in obj.kinds if issubclass(_class_of_number(k), tuple(flat))]
        return kinds.matches(it, obj, named)
    return V.Known(cls is not None and issubclass(cls, tuple(flat)))


@handles(issubclass)
def issubclass_(it: Interpreter, cls: V.Value, classinfo: V.Value) -> V.Value:
    """issubclass of known classes."""
    return V.Known(issubclass(it.static(cls, "a class"), it.static(classinfo, "a class")))


@handles(type)
def type_(it: Interpreter, obj: V.Value) -> V.Value:
    """type(obj), known while compiling."""
    if isinstance(obj, V.Scalar) and obj.kinds:
        return distribute(it, kinds.told_apart(it, obj), lambda case: type_(it, case))
    cls = class_of(obj)
    if cls is None:
        raise it.failure(
            errors.UnsupportedOperationError, f"the type of {V.describe(obj)} is not known here"
        )
    return V.Known(cls)


def _class_of_number(ty: types.TensorType) -> type:
    return types.python_type(ty) if ty.weak else ty.dtype.numpy.type


def class_of(value: V.Value) -> type | None:
    """The Python class of a value."""
    import types as python_types

    import numpy as np

    match value:
        case V.Known(v):
            return type(v)
        case V.Scalar(ty):
            return _class_of_number(ty)
        case V.ArrayRef():
            return np.ndarray
        case V.View(kind=kind):
            return type(getattr({}, kind)())
        case V.Tuple(_, cls):
            return cls or tuple
        case V.OpenTuple():
            return tuple
        case V.Data():
            if value.cls in containers.standing_for:
                return containers.standing_for[value.cls][0]
            return tuple if is_anonymous(value.cls) else value.cls
        case V.Items(cls=cls):
            return cls
        case V.Ref(root, cls):
            if cls in containers.standing_for:
                return containers.standing_for[cls][0]
            return cls or {"list": list, "dict": dict, "set": set}.get(root.kind)
        case V.Text():
            return str
        case V.Closure():
            return python_types.FunctionType
        case V.Range():
            return range
        case V.Slice():
            return slice
        case V.Partial():
            return functools.partial
    return None


def is_of_builtin_class(obj: V.Value, name: str) -> bool:
    """True for an attribute that a class of Python or NumPy gives to all its objects, whether a
    program can read it or not."""
    cls = class_of(obj)
    if cls is None or cls.__module__ not in ("builtins", "collections", "numpy"):
        return False
    return any(name in vars(each) for each in cls.__mro__)


@handles(callable)
def callable_(it: Interpreter, obj: V.Value) -> V.Value:
    """callable(obj)."""
    if isinstance(obj, V.Known):
        return V.Known(callable(obj.value))
    if isinstance(obj, V.Union):
        return distribute(it, obj, lambda case: callable_(it, case))
    if isinstance(obj, V.Ref | V.Data | V.Tuple):
        return V.Known(has_call(obj))
    return V.Known(isinstance(obj, (V.Closure, V.Method, V.Partial, V.Derivative)))


def _is_one(x: V.Value, y: V.Value) -> bool:
    """Whether two values are known to be one container."""
    if isinstance(x, V.Ref) and isinstance(y, V.Ref):
        return x.root is y.root
    return x == y


def lookup_of(iterable: V.Value, key: V.Value) -> V.Value:
    """The key of `max(d, key=d.get)`, which finds all keys: as `d.__getitem__`, not None at times.
    """
    of_itself = (
        isinstance(key, V.Method) and isinstance(key.receiver, (V.Ref, V.Data))
        and isinstance(iterable, (V.Ref, V.Data)) and _is_one(key.receiver, iterable)
        and iterable.cls in containers.standing_for and key.function is tables.Table.get
    )
    if not of_itself:
        return key
    assert isinstance(key, V.Method)
    return V.Method(key.receiver, "__getitem__", iterable.cls.__getitem__)  # type: ignore[index, union-attr]


@keeps_unions
@handles(functools.partial)
def partial_(it: Interpreter, func: V.Value, *args: V.Value, **keywords: V.Value) -> V.Value:
    """functools.partial(func, *args, **keywords)."""
    return V.Partial(func, args, tuple(keywords.items()))


@handles(functools.reduce)
def reduce_(
    it: Interpreter, function: V.Value, iterable: V.Value, initial: V.Value = V.NONE
) -> V.Value:
    """functools.reduce(function, iterable[, initial])."""
    given = V.Tuple(() if initial is V.NONE else (initial,))
    if not lists.has_known_length(it, iterable):
        return call(it, V.Known(iteration.reduced), (function, iterable, given), {})
    items = list(sequence_of(it, iterable))
    if not items and not given.items:
        error = TypeError("reduce() of empty iterable with no initial value")
        raise raised(it, error)
    result = items.pop(0) if initial is V.NONE else initial
    for item in items:
        result = call(it, function, (result, item), {})
    return result
