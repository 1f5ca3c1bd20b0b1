"""Names whose meaning is plain Python (the package in_python), and what NumPy says of types.

In: NumPy and `math` objects. Out: entries in the table of names. An error inside of a composed
function is reported at the user's call.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pyrelay import errors
from pyrelay.infer import calls
from pyrelay.infer import values as V
from pyrelay.infer.in_python import (
    applying,
    arrangement,
    bits,
    complex_math,
    elements,
    fourier,
    insertion,
    linear_algebra,
    placement,
    polynomials,
    products,
    python_math,
    quantiles,
    refuse,
    sets,
    sorting,
    special,
    statistics,
)
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handlers
from pyrelay.infer.names.adapters import cast, dtype_of, normal_axis, operand, strong
from pyrelay.infer.names.creation import of_no_axes
from pyrelay.infer.names.handlers import elementwise, handles, of_ufunc
from pyrelay.infer.operators import raised
from pyrelay.ir import types
from pyrelay.ops import linalg
from pyrelay.ops.special import digamma


def in_python(name: str, fn: Callable[..., Any]) -> Callable[..., V.Value]:
    """The handler that calls a plain Python function in place of the one named."""

    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        let, depth = it.let, len(it.calls)
        try:
            return calls.call(it, V.Known(fn), args, keywords)
        except errors.PyrelayError as error:
            it.let = let
            del it.calls[depth:]
            named = it.failure(type(error), f"{name}: {error.message}", hints=error.hints)
            named.unknown = error.unknown
            raise named from None

    return handler


@handles(refuse)
def refused(it: Interpreter, message: V.Value) -> V.Value:
    """A function in Python that does not take these arguments."""
    raise it.failure(errors.UnsupportedOperationError, it.static(message, "the message"))


def _in_loop_types(ufunc: np.ufunc, plain: Callable[..., V.Value]) -> Callable[..., V.Value]:
    """A handler whose operands and results have the types of the loop that NumPy would run."""
    if ufunc.signature is not None or getattr(np, ufunc.__name__, None) is not ufunc:
        return plain  # products of axes; functions of other libraries

    def handler(it: Interpreter, *given: V.Value) -> V.Value:
        operands = [operand(it, v) for v in given]
        tys = [it.tensor(v) for v in operands]
        found = loop_types(it, ufunc, tys)
        result = plain(it, *(
            cast(it, v, t) for v, t in zip(operands, found[: ufunc.nin], strict=True)
        ))
        if isinstance(result, V.Tuple):
            parts = zip(result.items, found[ufunc.nin :], strict=True)
            return V.Tuple(tuple(cast(it, v, t) for v, t in parts))
        return cast(it, result, found[-1])

    return handler


def loop_types(
    it: Interpreter, ufunc: np.ufunc, tys: Sequence[types.TensorType]
) -> tuple[types.DType, ...]:
    """The types of operands and results for which NumPy has a loop (NEP 50)."""
    weak = {"i": int, "f": float, "c": complex}
    asked = [weak.get(t.dtype.kind, t.dtype.numpy) if t.weak else t.dtype.numpy for t in tys]
    shown = " and ".join(map(str, tys))
    name = ufunc.__name__
    try:
        resolved = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout))
    except TypeError:
        raise it.failure(
            errors.TypeMismatchError, f"np.{name} is not defined for {shown}"
        ) from None
    found = tuple(types.from_numpy(t) for t in resolved)
    if None in found:
        other = next(t for t, ours in zip(resolved, found, strict=True) if ours is None)
        raise it.failure(
            errors.TypeMismatchError,
            f"np.{name} of {shown} computes with {other} in NumPy, which is not supported",
            hints=("convert the argument first, as with x.astype(np.float32)",),
        )
    return found  # type: ignore[return-value]


def _enter(owner: Any, spelling: str, module: Any) -> None:
    """The functions of a module of `in_python` in place of the owner's of the same names."""
    for name in module.__all__:
        known = getattr(owner, name, None)
        if known is None:
            continue  # a newer or older release of the library
        handler = in_python(f"{spelling}.{name}", getattr(module, name))
        if isinstance(known, np.ufunc):
            handler = of_ufunc(known, _in_loop_types(known, handler))
        handles(known)(handler)


for _module in (
    applying, arrangement, bits, elements, insertion, placement, products, quantiles, sets, sorting,
    statistics,
):
    _enter(np, "np", _module)
_enter(math, "math", python_math)
_enter(cmath, "cmath", complex_math)
_enter(np.linalg, "np.linalg", linear_algebra)
_enter(np.fft, "np.fft", fourier)
handles(np.lib.stride_tricks.sliding_window_view)(
    in_python("np.lib.stride_tricks.sliding_window_view", arrangement.sliding_window_view)
)
handles(type(np.mgrid).__getitem__)(in_python("np.mgrid", arrangement.grid))
handles(np.polyfit)(in_python("np.polyfit", linear_algebra.polyfit))
handles(np.roots)(in_python("np.roots", linear_algebra.roots))


def _with_array(name: str, fn: Any) -> Callable[..., V.Value]:
    """The handler of a function that gives an array where others give a number."""
    return _giving_arrays(in_python(name, fn))


def _giving_arrays(handler: Callable[..., V.Value]) -> Callable[..., V.Value]:
    """A handler, whose results are arrays, of no axes where they are numbers."""

    def array(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        found = handler(it, *args, **keywords)
        if isinstance(found, V.Tuple):
            return V.Tuple(tuple(of_no_axes(it, each) for each in found.items))
        return of_no_axes(it, found)

    return array


def _as_if_weighted(name: str, fn: Any) -> Callable[..., V.Value]:
    """The handler of a function that gives an array where weights are given, or axes kept."""
    handler, plain = in_python(name, fn), (V.NONE, V.Known(False))

    def quantile(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        found = handler(it, *args, **keywords)
        given = [keywords[k] for k in ("weights", "keepdims") if k in keywords]
        return found if all(v in plain for v in given) else of_no_axes(it, found)

    return quantile


for _name in (
    "quantile", "percentile", "median", "nanquantile", "nanpercentile", "nanmedian",
):
    handles(getattr(np, _name))(_as_if_weighted(f"np.{_name}", getattr(quantiles, _name)))
handles(np.select)(_with_array("np.select", elements.select))
handles(np.roll)(_with_array("np.roll", arrangement.roll))
handles(np.broadcast_arrays)(_with_array("np.broadcast_arrays", arrangement.broadcast_arrays))
handles(np.cov)(_with_array("np.cov", statistics.cov))
handles(np.apply_along_axis)(_with_array("np.apply_along_axis", applying.apply_along_axis))
handles(np.cross)(_with_array("np.cross", products.cross))
handles(np.piecewise)(_with_array("np.piecewise", elements.piecewise))
handles(np.isin)(_with_array("np.isin", sets.isin))
handles(np.tensordot)(_with_array("np.tensordot", products.tensordot))


def _primitive(op: str, attributes: Sequence[str]) -> Callable[..., V.Value]:
    """The handler of a function that is an op: operands, then attributes known by now."""

    def handler(it: Interpreter, *args: V.Value) -> V.Value:
        count = len(args) - len(attributes)
        given = (it.static(v, f"the argument {k!r}")
                 for k, v in zip(attributes, args[count:], strict=True))
        attrs = dict(zip(attributes, given, strict=True))
        if op in linalg.SIZED:
            attrs["small"] = _is_small(it, args[0])
        found = it.emit(op, *args[:count], **attrs)
        if isinstance(found, tuple):
            return V.Tuple(tuple(map(it.result, found)))
        return it.result(found)

    return handler


def _is_small(it: Interpreter, matrix: V.Value) -> bool:
    """Whether a square matrix is so small that elimination by element pays."""
    ty = it.tensor(matrix)
    if ty.rank != 2 or ty.dtype.kind == "c":
        return False
    return it.program.guards.is_small(ty.shape[0], linalg.SMALL)


for _function, (_op, _attributes) in linear_algebra.PRIMITIVES.items():
    handles(_function)(_primitive(_op, _attributes))
handles(np.i0)(_with_array("np.i0", special.i0))
handles(np.spacing)(
    of_ufunc(np.spacing, _in_loop_types(np.spacing, in_python("np.spacing", elements.spacing)))
)


def _nextafter(it: Interpreter, *given: V.Value) -> V.Value:
    tys = [it.tensor(operand(it, v)) for v in given]
    if types.f16 in loop_types(it, np.nextafter, tys):
        return in_python("np.nextafter", elements.next_half)(it, *given)
    return elementwise("nextafter")(it, *given)


handles(np.nextafter)(of_ufunc(np.nextafter, _in_loop_types(np.nextafter, _nextafter)))
for _name in ("erf", "erfc", "gamma", "lgamma"):
    handles(getattr(special, _name))(elementwise(_name))

#: functions of scipy.special that are an op, or NumPy's function, of this name
_SCIPY_OPS = {
    "erf": "erf", "erfc": "erfc", "expit": "sigmoid", "gamma": "gamma", "gammaln": "lgamma",
}
_SCIPY_NUMPY = ("exp2", "expm1", "log1p", "cbrt", "logaddexp", "sinc")


def enter_optional(module: Any) -> None:
    """The functions of a module that a program has imported; we never import it ourselves."""
    if module.__name__ == "statistics":
        from pyrelay.infer.in_python import samples

        _enter(module, "statistics", samples)
    elif module.__name__ == "scipy.linalg":
        from pyrelay.infer.in_python import decompositions, triangular

        _enter(module, "scipy.linalg", triangular)
        _enter(module, "scipy.linalg", decompositions)
    elif module.__name__ == "numpy.testing":
        from pyrelay.infer.in_python import checks

        _enter(module, "np.testing", checks)
    elif module.__name__ == "numpy.polynomial":
        from pyrelay.infer.in_python import polynomials

        for part in ("chebyshev", "legendre", "hermite", "hermite_e", "laguerre"):
            series = getattr(module, part)
            _enter(series, f"np.polynomial.{part}", polynomials)
            for name in ("chebgauss", "leggauss", "hermgauss", "hermegauss", "laggauss"):
                if hasattr(series, name):
                    handles(getattr(series, name))(_nodes(getattr(series, name)))
    elif module.__name__ == "ml_dtypes":
        from pyrelay.infer.names.numpy import enter_ml_dtypes

        enter_ml_dtypes(module)
    else:
        _enter_scipy(module)


def _nodes(rule: Callable[[int], Any]) -> Callable[..., V.Value]:
    """The nodes and weights of a rule of quadrature, which are known while compiling."""

    def handler(it: Interpreter, deg: V.Value) -> V.Value:
        from pyrelay.infer.attributes import captured

        found = rule(it.static(deg, "the number of nodes"))
        return V.Tuple(tuple(captured(it, part) for part in found))

    return handler


def _enter_scipy(module: Any) -> None:
    for name, op in _SCIPY_OPS.items():
        handles(getattr(module, name))(of_ufunc(getattr(module, name), elementwise(op)))
    for name in _SCIPY_NUMPY:
        known, same = getattr(module, name, None), handlers.lookup(getattr(np, name))
        if known is not None and same is not None:
            handles(known)(same)
    handles(module.digamma)(of_ufunc(module.digamma, _digamma))  # also called psi
    _enter(module, "scipy.special", special)


def _digamma(it: Interpreter, x: V.Value) -> V.Value:
    """scipy.special.digamma of floats."""
    value = strong(it, operand(it, x))
    if it.tensor(value).dtype.kind != "f":
        value = cast(it, value, types.f64)
    return it.result(digamma(it.builder.handle(it.atom(value))))


# -- limits of number types ------------------------------------------------------------------------


def limits(cls: Any) -> Callable[..., V.Value]:
    """The handler of finfo or iinfo, NumPy's or that of ml_dtypes."""

    def handler(it: Interpreter, dtype: V.Value) -> V.Value:
        return V.Known(cls(it.static(dtype, "the dtype")))

    return handler


handles(np.finfo)(limits(np.finfo))
handles(np.iinfo)(limits(np.iinfo))


# -- element types ---------------------------------------------------------------------------------


@handles(np.dtype)
def dtype(it: Interpreter, dtype: V.Value) -> V.Value:
    """np.dtype(...) of what is known while compiling."""
    return V.Known(np.dtype(it.static(dtype, "the dtype")))


@handles(np.result_type)
def result_type(it: Interpreter, *arrays_and_dtypes: V.Value) -> V.Value:
    """np.result_type: Python numbers count by their kind only."""
    return V.Known(np.result_type(*(_representative(it, v) for v in arrays_and_dtypes)))


def _representative(it: Interpreter, value: V.Value) -> Any:
    ty = V.tensor_type(value)
    if ty is None:
        return it.static(value, "the dtype")
    if ty.weak:
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[ty.dtype.kind]
    return ty.dtype.numpy


def _of_known(fn: Any) -> Callable[..., V.Value]:
    """A function of dtypes and classes, which are known while compiling."""

    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        named = {k: _representative(it, v) for k, v in keywords.items()}
        return V.Known(fn(*(_representative(it, v) for v in args), **named))

    return handler


for _fn in (np.promote_types, np.can_cast, np.issubdtype, np.isdtype):
    handles(_fn)(_of_known(_fn))


@handles(np.min_scalar_type)
def min_scalar_type(it: Interpreter, a: V.Value) -> V.Value:
    """np.min_scalar_type of an array, whose type it is, or of a number known while compiling."""
    ty = V.tensor_type(a)
    if ty is not None and ty.shape:
        return V.Known(ty.dtype.numpy)
    return V.Known(np.min_scalar_type(it.static(a, "the number")))


@handles(np.poly1d)
def poly1d(
    it: Interpreter, c_or_r: V.Value, r: V.Value = V.Known(False), variable: V.Value = V.NONE
) -> V.Value:
    """np.poly1d."""
    return calls.call(it, V.Known(polynomials.Poly1d), (c_or_r, r, variable), {})


@handles(normalize_axis_index)
def np_normalize_axis_index(it: Interpreter, axis: V.Value, ndim: V.Value) -> V.Value:
    """numpy.lib.array_utils.normalize_axis_index."""
    return V.Known(normal_axis(
        it, it.static(axis, "the axis"), it.static(ndim, "the number of axes")
    ))


@handles(np.common_type)
def common_type(it: Interpreter, *arrays: V.Value) -> V.Value:
    """np.common_type: the class of floats or complex numbers for all of the arrays."""
    return V.Known(np.common_type(*(
        np.empty(0, it.tensor(operand(it, a)).dtype.numpy) for a in arrays
    )))


@handles(np.iterable)
def iterable(it: Interpreter, y: V.Value) -> V.Value:
    """np.iterable."""
    ty = V.tensor_type(y)
    if ty is not None:
        return V.Known(ty.rank > 0)
    return V.Known(isinstance(y, (V.Tuple, V.Ref, V.Range, V.Lazy)))


# -- indices of what is true -----------------------------------------------------------------------


@handles(np.nonzero)
def nonzero(it: Interpreter, a: V.Value) -> V.Value:
    """np.nonzero: one array of indices for each axis; their size is known at run time."""
    from pyrelay.infer.arrays.advanced import true_positions

    mask = cast(it, operand(it, a), types.bool_)
    if not isinstance(mask, V.ArrayRef) or not mask.type.shape:
        raise it.failure(
            errors.InvalidValueError, f"where {V.describe(a)} is not zero has no index",
            hints=("np.atleast_1d(x) has one axis",),
        )
    return V.Tuple(tuple(true_positions(it, mask)))


@handles(np.flatnonzero)
def flatnonzero(it: Interpreter, a: V.Value) -> V.Value:
    """np.flatnonzero."""
    from pyrelay.infer.names.shape import ravel

    found = nonzero(it, ravel(it, operand(it, a)))
    assert isinstance(found, V.Tuple)
    return found.items[0]


@handles(np.argwhere)
def argwhere(it: Interpreter, a: V.Value) -> V.Value:
    """np.argwhere: a row of indices for each element that is not zero."""
    from pyrelay.infer.names.adapters import stack
    from pyrelay.infer.names.shape import ravel

    array = operand(it, a)
    rank = it.tensor(array).rank
    found = nonzero(it, array if rank else ravel(it, array))
    assert isinstance(found, V.Tuple)
    rows = stack(it, found.items, 1)
    if rank:
        return rows
    size = it.tensor(rows).shape[0]  # what has no axes has no column
    return it.call("slice", rows, starts=(0, 0), sizes=(size, 0), steps=(1, 1))


@handles(np.copyto)
def copyto(
    it: Interpreter, dst: V.Value, src: V.Value, casting: V.Value = V.Known("same_kind"),
    where: V.Value = V.Known(True),
) -> V.Value:
    """np.copyto: writes every element, or those where the mask holds."""
    from pyrelay.infer.arrays.subscripts import set_item
    from pyrelay.infer.names.numpy import where as np_where

    given, held = it.tensor(operand(it, src)), it.tensor(dst)
    rule = it.static(casting, "casting")
    order = "bifc"  # of Python's numbers only the kind counts
    fits = given.weak and order.index(given.dtype.kind) <= order.index(
        held.dtype.kind.replace("u", "i")
    )
    if not fits and not np.can_cast(given.dtype.numpy, held.dtype.numpy, rule):
        what = "array data" if given.shape else "scalar"
        raise raised(it, TypeError(
            f"Cannot cast {what} from {given.dtype.numpy!r} to {held.dtype.numpy!r} according to "
            f"the rule {rule!r}"
        ))
    if given.weak and rule == "unsafe":
        src = cast(it, strong(it, src), held.dtype)  # it wraps, and no infinity is refused
    chosen = src if where == V.Known(True) else np_where(it, where, src, dst)
    set_item(it, dst, V.Known(Ellipsis), chosen)
    return V.NONE


@handles(type(np.c_).__getitem__)
def concatenator(it: Interpreter, self: V.Value, key: V.Value) -> V.Value:
    """np.c_[key] and np.r_[key]."""
    if isinstance(self, V.Ref) and self.cls is type(np.c_):
        return in_python("np.c_", arrangement.columns)(it, key)
    method: Any = type(np.r_).__getitem__
    whole = calls.function_value(it, method)
    return calls.call_closure(it, whole, (self, key), {})


# -- functions of elements -------------------------------------------------------------------------


@handles(np.vectorize)
def vectorize(
    it: Interpreter, pyfunc: V.Value, otypes: V.Value = V.NONE, doc: V.Value = V.NONE,
    excluded: V.Value = V.NONE, cache: V.Value = V.Known(False), signature: V.Value = V.NONE,
) -> V.Value:
    """np.vectorize(function, otypes, signature=...), without excluded arguments."""
    if excluded != V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError, "np.vectorize is compiled without excluded",
            hints=("give a lambda that has those arguments: np.vectorize(lambda x: f(x, table))",),
        )
    if signature != V.NONE:
        return _vectorized_over(it, pyfunc, otypes, it.static(signature, "the signature"))
    if otypes == V.NONE:
        return V.Partial(V.Known(applying.vectorized), (pyfunc,), ())
    dtypes = tuple(map(V.Known, _output_types(it, otypes)))
    return V.Partial(V.Known(applying.vectorized_as), (V.Tuple(dtypes), pyfunc), ())


def _as_written(fn: Any) -> Callable[..., V.Value]:
    """The handler of a function in Python whose text is what is meant."""

    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        return calls.call_closure(it, calls.function_value(it, fn), args, keywords)

    return handler


for _called in (applying.vectorized, applying.vectorized_as):
    handles(_called)(_giving_arrays(_as_written(_called)))


def _vectorized_over(
    it: Interpreter, pyfunc: V.Value, otypes: V.Value, signature: Any
) -> V.Value:
    try:
        np.vectorize(len, signature=signature)
    except ValueError as error:
        raise raised(it, error) from None
    names = [
        V.Tuple(tuple(
            V.Tuple(tuple(map(V.Known, re.findall(r"\w+", part))))
            for part in re.findall(r"\(.*?\)", side)
        ))
        for side in signature.split("->")
    ]
    types_of = V.NONE if otypes == V.NONE else V.Tuple(
        tuple(map(V.Known, _output_types(it, otypes)))
    )
    return V.Partial(V.Known(applying.vectorized_over), (*names, types_of, pyfunc), ())


def _output_types(it: Interpreter, otypes: V.Value) -> list[Any]:
    """The dtypes that a string of type codes, or a list of types, says."""
    from pyrelay.infer.flow.iteration import sequence_of

    known = isinstance(otypes, V.Known) and isinstance(otypes.value, str)
    parts = [V.Known(c) for c in otypes.value] if known else sequence_of(it, otypes)  # type: ignore[union-attr]
    found = [dtype_of(it, part) for part in parts]
    return [dtype.numpy for dtype in found if dtype is not None]


@handles(np.frompyfunc)
def frompyfunc(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
    """Refused: its results are arrays of objects."""
    raise it.failure(
        errors.UnsupportedOperationError,
        "np.frompyfunc makes arrays of objects, which are not compiled",
        hints=("np.vectorize(function, otypes=[float]) makes arrays of numbers",),
    )
