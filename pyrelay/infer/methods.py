"""Attributes and methods of values: those of arrays and numbers, and where those of others are.

Methods of lists, dicts and tuples are in `containers/methods.py`, of sets in `containers/sets.py`,
of text in `containers/text.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import calls, progress, random_state
from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order, strides
from pyrelay.infer.containers import list_arrays, lists, methods, sets, text, views
from pyrelay.infer.containers.open_keys import note
from pyrelay.infer.flow import generators
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.in_python import arrangement, byte_arrays, python_math, ranges
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handlers
from pyrelay.infer.names.adapters import cast, dtype_of, operand
from pyrelay.infer.names.creation import of_no_axes
from pyrelay.infer.operators import raised
from pyrelay.ir import dims, types
from pyrelay.ir.types import TensorType
from pyrelay.ops.arithmetic import have_same_bits

# Array methods that are a NumPy function of the array.
_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        "sum", "prod", "mean", "std", "var", "max", "min", "argmax", "argmin", "all", "any",
        "cumsum", "cumprod", "reshape", "ravel", "transpose", "squeeze", "swapaxes", "clip",
        "dot", "take", "repeat", "round", "diagonal", "trace", "nonzero",
        "argsort", "argpartition", "searchsorted", "choose", "put",
    )
    if hasattr(np.ndarray, name)
}


def _tensor_attribute(it: Interpreter, obj: V.Value, name: str) -> V.Value | None:
    ty = it.tensor(obj)
    match name:
        case "shape":
            return V.Tuple(tuple(V.Scalar.of_extent(d) for d in ty.shape))
        case "ndim":
            return V.Known(ty.rank)
        case "size":
            return V.Scalar.of_extent(ty.size)
        case "dtype":
            return V.Known(ty.dtype.numpy)
        case "itemsize":
            return V.Known(ty.dtype.size)
        case "strides":
            return strides.in_bytes(it, obj)
        case "flags":
            return _flags(it, obj)
        case "device":
            return V.Known("cpu")
        case "nbytes":
            return V.Scalar.of_extent(dims.multiply(ty.size, ty.dtype.size))
        case "T":
            handler = handlers.lookup(np.transpose)
            assert handler is not None
            return handlers.apply(it, np.transpose, handler, (obj,), {})
        case "mT":
            handler = handlers.lookup(np.matrix_transpose)
            assert handler is not None
            return handlers.apply(it, np.matrix_transpose, handler, (obj,), {})
        case "flat":
            from pyrelay.infer.names.shape import view

            whole = TensorType(ty.dtype, (ty.size,))
            flat = view(it, obj, "reshape", whole, shape=whole.shape)
            assert isinstance(flat, V.ArrayRef)
            return V.Flat(flat.root, flat.view, flat.type)
        case "real":
            return _part(it, obj, "real") if ty.dtype.kind == "c" else obj
        case "imag":
            if ty.dtype.kind == "c":
                return _part(it, obj, "imag")
            none = it.result(it.builder.zeros(ty))
            return of_no_axes(it, none) if isinstance(obj, V.ArrayRef) else none
    return None


def _flags(it: Interpreter, array: V.Value) -> V.Value | None:
    """`array.flags`, as far as it says how the elements lie in memory."""
    lies = [strides.lies_in(it, array, order) for order in ("C", "F")]
    if None in lies:
        return None
    return calls.call(it, V.Known(arrangement.Flags), tuple(map(V.Known, lies)), {})


def _part(it: Interpreter, x: V.Value, kind: str) -> V.Value:
    """The real or imaginary part of a complex value, a view of an array."""
    from pyrelay.infer.names.shape import view

    ty = it.tensor(x)
    dtype = types.f32 if ty.dtype is types.c64 else types.f64
    return view(it, x, kind, TensorType(dtype, ty.shape))


def set_attribute(it: Interpreter, array: V.ArrayRef, name: str, value: V.Value) -> bool:
    """`array.name = value`; False if the attribute is not one that elements are written through."""
    from pyrelay.infer.arrays.subscripts import set_item

    part = name in ("real", "imag") and (name == "real" or array.type.dtype.kind == "c")
    if not part and name != "flat":
        return False
    target = _tensor_attribute(it, array, name)
    assert target is not None
    if name == "flat":
        value = operand(it, value)
    if name == "flat" and it.tensor(value).shape:
        from pyrelay.infer.calls import call as call_value
        from pyrelay.infer.in_python.placement import refilled

        call_value(it, V.Known(refilled), (target, value), {})
    else:
        set_item(it, target, V.Known(Ellipsis), value)
    return True


def attribute(it: Interpreter, obj: V.Value, name: str) -> V.Value | None:
    """An attribute of a value, or a method looked up; None if there is none of that name."""
    ty = V.tensor_type(obj)
    if ty is not None:
        if ty.weak and ty.dtype is types.bool_ and name in ("real", "imag"):
            obj = calls.call(it, V.Known(int), (obj,), {})
            ty = it.tensor(obj)
        if not ty.weak or name in ("real", "imag"):
            found = _tensor_attribute(it, obj, name)
            if found is not None:
                return found
        if ty.weak:
            if name in ("numerator", "denominator") and ty.dtype.kind in "bi":
                return calls.call(it, V.Known(int), (obj,), {}) if name[0] == "n" else V.Known(1)
            whole = ty.dtype.kind in "bi"
            known = _INT_METHODS if whole else _FLOAT_METHODS
            return V.Method(obj, name) if name in known or name == "conjugate" else None
        if name in _FUNCTIONS or name in _ARRAY_METHODS:
            return V.Method(obj, name)
        if not ty.shape and not isinstance(obj, V.ArrayRef):
            own = _FLOAT_METHODS if ty.dtype.kind == "f" else ("bit_count",)
            return V.Method(obj, name) if name in own and ty.dtype.kind in "fiu" else None
        return None
    if name in _methods_of(obj):
        return V.Method(obj, name)
    match obj:
        case V.Slice(a, b, c) if name in ("start", "stop", "step"):
            return {"start": a, "stop": b, "step": c}[name]
        case V.Range(a, b, c) if name in ("start", "stop", "step"):
            return {"start": a, "stop": b, "step": c}[name]
        case V.Closure(function=function) if name == "__name__":
            return V.Known(function.name.rpartition(".")[2])
        case V.Closure(function=function) if name == "__doc__":
            return V.Known(function.doc)
    return None


def names_of(obj: V.Value) -> list[str]:
    """Names that `attribute` knows for a value, for suggestions."""
    if V.tensor_type(obj) is not None:
        basic = ["shape", "ndim", "size", "dtype", "T", "real", "imag"]
        return [*basic, *_FUNCTIONS, *_ARRAY_METHODS]
    if isinstance(obj, V.Ref) and isinstance(obj.cls, type):
        return [n for n in dir(obj.cls) if not n.startswith("__")]
    return list(_methods_of(obj))


def call(
    it: Interpreter, obj: V.Value, name: str, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """Call the method `name` of a value."""
    if V.tensor_type(obj) is not None:
        special = _ARRAY_METHODS.get(name) or _NUMBER_METHODS.get(name)
        if special is not None:
            return handlers.apply(it, special, special, (obj, *args), keywords)
        fn = _FUNCTIONS[name]
        handler = handlers.lookup(fn)
        if handler is None:
            from pyrelay.infer.calls import unsupported

            raise unsupported(it, fn)
        if name in ("reshape", "transpose") and len(args) > 1:
            args = (V.Tuple(tuple(args)),)
        return handlers.apply(it, fn, handler, (obj, *args), keywords)
    method = _methods_of(obj)[name]
    if args:
        note(obj, args[0], it)
    return handlers.apply(it, method, method, (obj, *args), keywords)


def _methods_of(obj: V.Value) -> Mapping[str, Callable[..., Any]]:
    match obj:
        case V.Ref(_, cls) if cls in random_state.CLASSES:
            from pyrelay.infer.names.random import METHODS

            return METHODS[cls]
        case V.Ref(root, None):
            known: dict[str, Mapping[str, Callable[..., Any]]] = {
                "list": methods.LIST, "dict": methods.DICT, "set": sets.METHODS,
                "generator": _GENERATOR,
            }
            return known.get(root.kind, {})
        case V.Range():
            return _RANGE
        case V.Text():
            return _TEXT
        case V.Lazy(kind="progress"):
            return _BAR
        case V.View():
            return views.METHODS
        case V.Tuple(_, None) | V.OpenTuple():
            return methods.TUPLE
        case V.Tuple(_, _):
            return methods.NAMEDTUPLE
    return {}


def _send(it: Interpreter, generator: V.Value, value: V.Value) -> V.Value:
    """`generator.send(value)`."""
    from pyrelay.infer.attributes import get_attribute

    receiver = generators.object_of(it, generator)
    return calls.call(it, get_attribute(it, receiver, "send"), (value,), {})


_GENERATOR: dict[str, Callable[..., Any]] = {"send": _send, "close": generators.close}


def _range_method(function: Callable[..., Any]) -> Callable[..., Any]:
    def call_it(it: Interpreter, receiver: V.Value, value: V.Value) -> V.Value:
        return calls.call(it, V.Known(function), (receiver, value), {})

    return call_it


_RANGE = {"index": _range_method(ranges.place), "count": _range_method(ranges.count)}


def _text_method(name: str) -> Callable[..., Any]:
    def call_it(
        it: Interpreter, receiver: V.Value, *args: V.Value, **keywords: V.Value
    ) -> V.Value:
        return text.method(it, receiver, name, args, keywords)

    return call_it


_BAR = progress.methods()
_TEXT = {name: _text_method(name) for name in text.methods()}


# -- arrays and numbers ----------------------------------------------------------------------------


def _astype(
    it: Interpreter, x: V.Value, dtype: V.Value, order: V.Value = V.Known("K"),
    casting: V.Value = V.Known("unsafe"), subok: V.Value = V.Known(True),
    copy: V.Value = V.Known(True),
) -> V.Value:
    """x.astype(dtype): a fresh array, unless copy=False and there is nothing to change."""
    target, rule = dtype_of(it, dtype), it.static(casting, "casting")
    given = it.tensor(x).dtype
    if target is not None and not np.can_cast(given.numpy, target.numpy, rule):
        raise raised(it, TypeError(
            f"Cannot cast array data from {given.numpy!r} to {target.numpy!r} according to the "
            f"rule {rule!r}"
        ))
    if given is target and not it.static(copy, "copy"):
        from pyrelay.infer.names.creation import in_order

        return in_order(it, x, order)
    result = cast(it, x, dtype)
    if isinstance(x, V.ArrayRef) and (result is x or not isinstance(result, V.ArrayRef)):
        result = it.new_array(it.atom(result))
        memory_order.of_result(it, (x,), result)
    if order == V.Known("F"):
        memory_order.turned(it.program, result)
    return result


def _copy(it: Interpreter, x: V.Value, order: V.Value = V.Known("C")) -> V.Value:
    """x.copy()."""
    if not isinstance(x, V.ArrayRef):
        return x
    made = it.new_array(it.atom(x))
    if order == V.Known("F"):
        memory_order.turned(it.program, made)
    elif order != V.Known("C"):
        memory_order.of_result(it, (x,), made)
    return made


def _flatten(it: Interpreter, x: V.Value, order: V.Value = V.Known("C")) -> V.Value:
    """x.flatten(): a fresh array of one axis."""
    from pyrelay.infer.names.shape import ravel

    flat = ravel(it, x, order)
    return it.new_array(it.atom(flat)) if isinstance(flat, V.ArrayRef) else flat


def _item(it: Interpreter, x: V.Value, *index: V.Value) -> V.Value:
    """x.item(): the element as a Python number."""
    ty = it.tensor(x)
    if len(index) == 1 and ty.rank > 1:
        (place,) = index
        if isinstance(place, V.Tuple):
            index = place.items
        elif isinstance(place, V.Known) and isinstance(place.value, tuple):
            index = tuple(map(V.Known, place.value))
    if index:
        from pyrelay.infer.arrays.subscripts import get_item

        flat = it.call("reshape", x, shape=(ty.size,)) if len(index) == 1 and ty.rank > 1 else x
        x = get_item(it, flat, V.Tuple(index) if len(index) > 1 else index[0])
    elif ty.shape and any(s.origin is dims.Origin.RUNTIME for s in dims.symbols(ty.size)):
        from pyrelay.infer.arrays.subscripts import only_element

        x = only_element(it, x, "can only convert an array of size 1 to a Python scalar")
    elif ty.shape:
        x = it.call("reshape", x, shape=())
    atom = it.builder.cast(it.atom(x), _PYTHONS[it.tensor(x).dtype.kind], weak=True)
    return it.result(it.builder.handle(atom))


#: The element types of Python's numbers.
_PYTHONS = {"b": types.bool_, "i": types.i64, "u": types.i64, "f": types.f64, "c": types.c128}


def _fill(it: Interpreter, x: V.Value, value: V.Value) -> V.Value:
    """x.fill(value): writes every element."""
    from pyrelay.infer.arrays.subscripts import set_item

    set_item(it, x, V.Known(Ellipsis), value)
    return V.NONE


def _tolist(it: Interpreter, x: V.Value) -> V.Value:
    """x.tolist(): a list of Python's numbers, or of lists for more axes."""
    ty = it.tensor(x)
    if not ty.shape:
        return _item(it, x)
    if isinstance(ty.shape[0], int) and ty.shape[0] <= lists.MOST_STATIC:
        return it.new_ref("list", tuple(_tolist(it, i) for i in sequence_of(it, x)))
    if ty.rank > 1:
        return calls.call(it, V.Known(in_python.nested_list), (x,), {})
    if ty.dtype is types.u64:
        x = calls.call(it, V.Known(in_python.signed), (x,), {})
    numbers = it.new_array(it.builder.cast(it.atom(x), _PYTHONS[ty.dtype.kind]))
    return list_arrays.from_array(it, numbers, python=True)


def _view(it: Interpreter, x: V.Value, dtype: V.Value = V.NONE) -> V.Value:
    """x.view(), and x.view(dtype) of a dtype of as many bytes: the same bits, written through."""
    from pyrelay.infer.names.shape import view

    ty = it.tensor(x)
    wanted = None if dtype == V.NONE else np.dtype(it.static(dtype, "the dtype of a view"))
    if wanted is None or wanted == ty.dtype.numpy:
        return x
    other = types.from_numpy(wanted)
    if other is None or other is types.bool_ or not have_same_bits(ty.dtype, other):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"x.view({wanted}) would take the bytes of {ty} for other numbers, which is not "
            "compiled",
            hints=("x.astype(dtype) converts the numbers", "make the view outside and pass it"),
        )
    return view(it, x, "bitcast", TensorType(other, ty.shape), dtype=other)


def _compress(
    it: Interpreter, x: V.Value, condition: V.Value, axis: V.Value = V.NONE
) -> V.Value:
    """x.compress(condition): the elements where it holds."""
    return calls.call(it, V.Known(np.compress), (condition, x, axis), {})


def _in_place(fn: Any) -> Callable[..., V.Value]:
    """x.sort() and x.partition(): the elements of the array put in another order."""

    def method(it: Interpreter, x: V.Value, *args: V.Value, **keywords: V.Value) -> V.Value:
        from pyrelay.infer.arrays.subscripts import set_item

        ordered = calls.call(it, V.Known(fn), (x, *args), keywords)
        set_item(it, x, V.Known(Ellipsis), ordered)
        return V.NONE

    return method


def _conjugate(it: Interpreter, x: V.Value) -> V.Value:
    """z.conjugate(): an array of real numbers itself."""
    if isinstance(x, V.ArrayRef) and x.type.dtype.kind != "c":
        return x
    return it.call("conj", x)


def _resize(it: Interpreter, x: V.Value, *shape: V.Value, **keywords: V.Value) -> V.Value:
    """Refused: every name of the array would have another shape from here on."""
    raise it.failure(
        errors.UnsupportedOperationError,
        "x.resize(...) changes the shape of an array for all its names, which is not compiled",
        hints=("make a new one: y = np.zeros(shape); y[:len(x)] = x",),
    )


_ARRAY_METHODS: dict[str, Callable[..., V.Value]] = {
    "astype": _astype, "copy": _copy, "flatten": _flatten, "item": _item, "fill": _fill,
    "tolist": _tolist, "view": _view, "sort": _in_place(np.sort),
    "partition": _in_place(np.partition), "compress": _compress, "conj": _conjugate,
    "conjugate": _conjugate, "resize": _resize,
}


def _is_integer(it: Interpreter, x: V.Value) -> V.Value:
    """float.is_integer()."""
    same = it.call("equal", it.call("floor", x), x)
    whole = it.call("logical_and", same, it.call("isfinite", x))
    return calls.call(it, V.Known(bool), (whole,), {})


def _of_bits(function: Callable[[int], int]) -> Callable[..., V.Value]:
    def method(it: Interpreter, x: V.Value) -> V.Value:
        return calls.call(it, V.Known(function), (x,), {})

    return method


def _to_bytes(
    it: Interpreter, x: V.Value, length: V.Value = V.Known(1),
    byteorder: V.Value = V.Known("big"), *, signed: V.Value = V.Known(False),
) -> V.Value:
    """int.to_bytes(length, byteorder, signed=False)."""
    return calls.call(it, V.Known(byte_arrays.to_bytes), (x, length, byteorder, signed), {})


_INT_METHODS = ("bit_length", "bit_count", "to_bytes")
_FLOAT_METHODS = ("is_integer",)
_NUMBER_METHODS: dict[str, Callable[..., V.Value]] = {
    "is_integer": _is_integer, "conjugate": _conjugate,
    "bit_length": _of_bits(python_math.bit_length), "bit_count": _of_bits(python_math.bit_count),
    "to_bytes": _to_bytes,
}
