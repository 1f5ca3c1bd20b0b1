"""Names whose meaning is plain Python (numpy_in_python), methods of ufuncs, itertools.

In: NumPy and `math` objects. Out: entries in the table of names. An error inside of a composed
function is reported at the user's call.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import calls, linalg_in_python, numpy_in_python
from pyrelay.infer import values as V
from pyrelay.infer.adapters import operand, strong
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handles
from pyrelay.ir import types


def in_python(name: str, fn: Callable[..., Any]) -> Callable[..., V.Value]:
    """The handler that calls a plain Python function in place of the one named."""

    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        let, depth = it.let, len(it.calls)
        try:
            return calls.call(it, V.Known(fn), args, keywords)
        except errors.PyrelayError as error:
            it.let = let
            del it.calls[depth:]
            raise it.failure(type(error), f"{name}: {error.message}", hints=error.hints) from None

    return handler


def _enter() -> None:
    own = vars(numpy_in_python)
    for name in (
        "diff", "polyval", "ptp", "average", "trapezoid", "nansum", "nanmean", "nanmax", "nanmin",
        "argsort", "sort", "median", "quantile", "percentile", "searchsorted", "digitize",
        "interp", "bincount", "unique", "isin", "cross", "kron", "tensordot", "convolve",
        "correlate", "cov", "corrcoef", "select", "heaviside", "nan_to_num", "fix", "fmod",
        "degrees", "radians", "angle", "sinc", "array_equal", "fliplr", "flipud", "rot90",
        "column_stack", "append", "meshgrid", "logspace", "tri", "atleast_2d",
        "fill_diagonal", "isreal", "iscomplex", "unravel_index",
    ):
        if hasattr(np, name):
            handles(getattr(np, name))(in_python(f"np.{name}", own[name]))
    for name in ("solve", "inv", "det", "cholesky"):
        function = getattr(linalg_in_python, name)
        handles(getattr(np.linalg, name))(in_python(f"np.linalg.{name}", function))
    handles(np.rad2deg)(in_python("np.rad2deg", numpy_in_python.degrees))
    handles(np.deg2rad)(in_python("np.deg2rad", numpy_in_python.radians))
    handles(np.divmod)(in_python("np.divmod", numpy_in_python.np_divmod))
    handles(math.fmod)(in_python("math.fmod", numpy_in_python.math_fmod))
    for name in ("degrees", "radians", "dist"):
        handles(getattr(math, name))(in_python(f"math.{name}", own[f"math_{name}"]))
    for name in ("gcd", "lcm", "factorial", "comb", "isqrt", "isclose"):
        handles(getattr(math, name))(in_python(f"math.{name}", own[name]))


_enter()


# -- limits of number types ------------------------------------------------------------------------


def _limits(cls: Any) -> Callable[..., V.Value]:
    def handler(it: Interpreter, dtype: V.Value) -> V.Value:
        return V.Known(cls(it.static(dtype, "the dtype")))

    return handler


handles(np.finfo)(_limits(np.finfo))
handles(np.iinfo)(_limits(np.iinfo))


# -- indices of what is true -----------------------------------------------------------------------


@handles(np.nonzero)
def nonzero(it: Interpreter, a: V.Value) -> V.Value:
    """np.nonzero: one array of indices for each axis; their size is known at run time."""
    from pyrelay.infer.adapters import cast
    from pyrelay.infer.advanced import true_positions

    mask = cast(it, operand(it, a), types.bool_)
    assert isinstance(mask, V.ArrayRef)
    return V.Tuple(tuple(true_positions(it, mask)))


@handles(np.flatnonzero)
def flatnonzero(it: Interpreter, a: V.Value) -> V.Value:
    """np.flatnonzero."""
    from pyrelay.infer.names_shape import ravel

    found = nonzero(it, ravel(it, operand(it, a)))
    assert isinstance(found, V.Tuple)
    return found.items[0]


@handles(np.argwhere)
def argwhere(it: Interpreter, a: V.Value) -> V.Value:
    """np.argwhere: a row of indices for each element that is not zero."""
    from pyrelay.infer.adapters import stack

    found = nonzero(it, a)
    assert isinstance(found, V.Tuple)
    return stack(it, found.items, 1)


@handles(np.copyto)
def copyto(it: Interpreter, dst: V.Value, src: V.Value) -> V.Value:
    """np.copyto: writes every element."""
    from pyrelay.infer.subscripts import set_item

    set_item(it, dst, V.Known(Ellipsis), src)
    return V.NONE


# -- methods of ufuncs -----------------------------------------------------------------------------

_REDUCTIONS = {
    "add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min,
    "logical_and": np.all, "logical_or": np.any,
}
_SCANS = {"add": np.cumsum, "multiply": np.cumprod}


def ufunc_method(ufunc: np.ufunc, method: str) -> Callable[..., V.Value] | None:
    """The handler of np.add.at, np.subtract.outer, np.maximum.reduce, ...; None for others."""
    from pyrelay.infer import names

    name = ufunc.__name__
    known = {"reduce": _REDUCTIONS, "accumulate": _SCANS}.get(method, {}).get(name)
    if known is not None:
        return functools.partial(_along_first, known)
    plain = names.lookup(ufunc)
    if method == "outer" and plain is not None:
        return functools.partial(_outer, plain)
    if method == "at" and name == "add":
        return _add_at
    return None


def _along_first(
    fn: Any, it: Interpreter, array: V.Value, axis: V.Value = V.Known(0),
    **keywords: V.Value,
) -> V.Value:
    """A reduction or scan; unlike NumPy's functions, methods take the first axis by default."""
    from pyrelay.infer import names

    handler = names.lookup(fn)
    assert handler is not None
    return names.apply(it, fn, handler, (array, axis), keywords)


def _outer(plain: Callable[..., V.Value], it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """All pairs: the axes of a, then those of b."""
    left, right = strong(it, operand(it, a)), strong(it, operand(it, b))
    rank, more = it.tensor(left).rank, it.tensor(right).rank
    if more:
        left = it.call("expand_dims", left, axes=tuple(range(rank, rank + more)))
    return plain(it, left, right)


def _add_at(it: Interpreter, a: V.Value, indices: V.Value, b: V.Value) -> V.Value:
    """np.add.at: repeated indices add up."""
    from pyrelay.infer.subscripts import add_item

    add_item(it, a, indices, b)
    return V.NONE


# -- dataclasses -----------------------------------------------------------------------------------


@handles(dataclasses.fields)
def fields(it: Interpreter, class_or_instance: V.Value) -> V.Value:
    """dataclasses.fields of a dataclass or of an object of one."""
    match class_or_instance:
        case V.Known(cls) | V.Ref(_, cls) if dataclasses.is_dataclass(cls):
            return V.Tuple(tuple(map(V.Known, dataclasses.fields(cls))))
    raise it.failure(
        errors.TypeMismatchError,
        f"fields() needs a dataclass, not {V.describe(class_or_instance)}",
    )


@handles(dataclasses.replace)
def replace(it: Interpreter, obj: V.Value, **changes: V.Value) -> V.Value:
    """dataclasses.replace: another object of the class, some fields changed."""
    if not (isinstance(obj, V.Ref) and obj.cls is not None and dataclasses.is_dataclass(obj.cls)):
        raise it.failure(
            errors.TypeMismatchError, f"replace() needs a dataclass, not {V.describe(obj)}"
        )
    content = it.content(obj.root)
    given = {f.name: content[f.name] for f in dataclasses.fields(obj.cls) if f.init}
    return calls.call(it, V.Known(obj.cls), (), {**given, **changes})


# -- itertools -------------------------------------------------------------------------------------


@handles(itertools.product)
def product(it: Interpreter, *iterables: V.Value, repeat: V.Value = V.Known(1)) -> V.Value:
    """itertools.product: the last iterable runs fastest."""
    return V.Lazy("product", iterables * it.static(repeat, "repeat"))


@handles(itertools.chain)
def chain(it: Interpreter, *iterables: V.Value) -> V.Value:
    """itertools.chain of iterables of known length."""
    from pyrelay.infer.dispatch import sequence_of

    return V.Tuple(tuple(item for each in iterables for item in sequence_of(it, each)))


def _arrangements(fn: Any) -> Callable[..., V.Value]:
    def handler(it: Interpreter, iterable: V.Value, r: V.Value = V.NONE) -> V.Value:
        from pyrelay.infer.dispatch import sequence_of

        items = sequence_of(it, iterable)
        given = () if r == V.NONE else (it.static(r, "the length"),)
        return V.Tuple(tuple(map(V.Tuple, fn(items, *given))))

    return handler


handles(itertools.combinations)(_arrangements(itertools.combinations))
handles(itertools.permutations)(_arrangements(itertools.permutations))
handles(itertools.pairwise)(_arrangements(itertools.pairwise))


@handles(itertools.accumulate)
def accumulate(
    it: Interpreter, iterable: V.Value, func: V.Value = V.NONE, *, initial: V.Value = V.NONE
) -> V.Value:
    """itertools.accumulate of an iterable of known length."""
    from pyrelay.infer.dispatch import sequence_of
    from pyrelay.infer.operators import binary

    items = list(sequence_of(it, iterable))
    if initial != V.NONE:
        items.insert(0, initial)
    results = items[:1]
    for item in items[1:]:
        results.append(
            binary(it, "+", results[-1], item) if func == V.NONE
            else calls.call(it, func, (results[-1], item), {})
        )
    return V.Tuple(tuple(results))
