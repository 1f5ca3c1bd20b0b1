"""Random numbers: methods of NumPy's generators, functions of np.random and random.

In: a generator of the caller's, or one made here. Out: the numbers that NumPy draws (`drawing`);
the state of the generator (`random_state`) is a field of an object on the heap, so that loops,
branches and callers see it change. Distributions with a location and a scale have their derivatives
by both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import random_state
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.drawing import as_drawn, draw, emitted, placed
from pyrelay.infer.in_python import lists as in_lists
from pyrelay.infer.in_python import seeding
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import python_random
from pyrelay.infer.names.adapters import dtype_of, extent, operand, shape_of, to_array
from pyrelay.infer.names.creation import of_no_axes
from pyrelay.infer.names.handlers import apply, handles
from pyrelay.infer.operators import binary
from pyrelay.ir import dims, types
from pyrelay.ir.types import TensorType

ZERO = V.Known(0)
ZERO_F, ONE_F = V.Known(0.0), V.Known(1.0)


# -- making ----------------------------------------------------------------------------------------


_SEEDED = {
    np.random.Generator: seeding.default_rng, np.random.RandomState: seeding.random_state,
    random.Random: seeding.python_random,
}


def _made(it: Interpreter, cls: Any, seed: V.Value) -> V.Value:
    if _is_whole(seed, of_python=cls is random.Random):
        parts = [call(it, V.Known(_SEEDED[cls]), (seed,), {})]
    else:
        ty = TensorType(types.u64, (random_state.WORDS[cls],))
        # without a seed, another one every time
        op = "host_call" if seed == V.NONE else "host_value"
        made = emitted(it, op, random_state.seeded, (V.Known(cls), seed), {}, (ty,))
        parts = [it.result(made)]
    if cls is not np.random.Generator:
        parts.append(call(it, V.Known(np.zeros), (V.Known(1),), {}))
    return it.new_ref("object", dict(zip(random_state.FIELDS, parts, strict=False)), cls)


def _is_whole(seed: V.Value, *, of_python: bool) -> bool:
    """True for a whole number of at most 63 bits and a sign."""
    if isinstance(seed, V.Known):
        return type(seed.value) is int and -(2**63) <= seed.value < 2**63
    ty = V.number_type(seed)
    if ty is None or (of_python and not ty.weak):
        return False
    return ty.dtype.kind == "i" or (ty.dtype.kind == "u" and ty.dtype.size < 8)


@handles(np.random.default_rng)
def default_rng(it: Interpreter, seed: V.Value = V.NONE) -> V.Value:
    """np.random.default_rng of a seed, or of a generator, which it gives back."""
    if is_generator(seed):
        return seed
    return _made(it, np.random.Generator, seed)


@handles(np.random.RandomState)
def random_state_(it: Interpreter, seed: V.Value = V.NONE) -> V.Value:
    """np.random.RandomState(seed)."""
    return _made(it, np.random.RandomState, seed)


@handles(random.Random)
def python_random_(it: Interpreter, x: V.Value = V.NONE) -> V.Value:
    """random.Random(seed)."""
    return _made(it, random.Random, x)


def is_generator(value: V.Value) -> bool:
    """True for a generator on the heap."""
    return isinstance(value, V.Ref) and value.cls in random_state.CLASSES


# -- drawing ---------------------------------------------------------------------------------------


def _result_type(
    it: Interpreter, size: V.Value, parameters: Sequence[V.Value], dtype: types.DType
) -> TensorType:
    """The type of a draw: of shape `size`, or of the parameters' shapes together."""
    shape: tuple[Any, ...] = ()
    for value in parameters:
        other = it.tensor(operand(it, value)).shape
        shape = _broadcast(it, shape, other)
    if size == V.NONE:
        return TensorType(dtype, shape, weak=not shape)
    asked = shape_of(it, size)
    if len(shape) > len(asked) or (shape and _broadcast(it, asked, shape) != asked):
        told = ", ".join(map(dims.show, asked))
        raise it.failure(
            errors.ShapeError,
            f"size ({told}) does not fit the parameters, which are of shape "
            f"({', '.join(map(dims.show, shape))})",
        )
    return TensorType(dtype, asked)


def _of_size(it: Interpreter, size: V.Value, found: V.Value) -> V.Value:
    """What was drawn; one number is an array of no axes where size=() asks for that."""
    return found if size == V.NONE else of_no_axes(it, found)


def _broadcast(it: Interpreter, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(a) < len(b):
        a, b = b, a
    found = list(a)
    for k, other in enumerate(b, len(a) - len(b)):
        if found[k] == 1:
            found[k] = other
        elif other != 1 and it.program.guards.equal(found[k], other) is False:
            raise it.failure(errors.ShapeError, "the parameters of the draw do not broadcast")
    return tuple(found)


def _standard(method: str) -> Callable[..., V.Value]:
    """A distribution without parameters."""

    def handler(
        it: Interpreter, rng: V.Ref, size: V.Value = V.NONE, dtype: V.Value = V.NONE,
        out: V.Value = V.NONE,
    ) -> V.Value:
        target = dtype_of(it, dtype) or types.f64
        if out != V.NONE:
            return _into(it, rng, method, size, dtype, out)
        named = {} if dtype == V.NONE else {"dtype": V.Known(target.numpy.type)}
        ty = _result_type(it, size, (), target)
        if size != V.NONE:
            return of_no_axes(it, draw(it, rng, method, (size,), ty, named))
        if target is types.f64:
            return draw(it, rng, method, (size,), ty, named)
        # a Python float, of the bits of a narrow one
        single = draw(it, rng, method, (V.Tuple(()),), TensorType(target, ()), named)
        return as_drawn(it, single)

    return handler


def _into(
    it: Interpreter, rng: V.Ref, method: str, size: V.Value, dtype: V.Value, out: V.Value
) -> V.Value:
    """A draw into an array of the caller's, of its shape."""
    from pyrelay.infer.arrays.strides import is_contiguous
    from pyrelay.infer.arrays.subscripts import set_item

    if not isinstance(out, V.ArrayRef) or not is_contiguous(it, out):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{method} is compiled with an out= that lies in C order only",
            hints=(f"write out[...] = rng.{method}(out.shape)",),
        )
    wanted = dtype_of(it, dtype) or types.f64
    if out.type.dtype != wanted:
        raise it.failure(
            errors.TypeMismatchError,
            "Supplied output array has the wrong type. "
            f"Expected {wanted.numpy_name}, got {out.type.dtype.numpy_name}",
        )
    shape = out.type.shape
    given = shape if size == V.NONE else shape_of(it, size)
    same = [it.program.guards.equal(a, b) for a, b in zip(given, shape, strict=False)]
    if len(given) != len(shape) or False in same:
        raise it.failure(errors.ShapeError, "size must match out.shape when used together")
    count = V.Tuple(tuple(map(V.Scalar.of_extent, shape)))
    set_item(it, out, V.Known(Ellipsis), _standard(method)(it, rng, count, dtype))
    return out


def _located(method: str, standard: str | None = None) -> Callable[..., V.Value]:
    """A distribution with a location and a scale."""

    def handler(
        it: Interpreter, rng: V.Ref, loc: V.Value = ZERO_F, scale: V.Value = ONE_F,
        size: V.Value = V.NONE,
    ) -> V.Value:
        ty = _result_type(it, size, (loc, scale), types.f64)
        count = V.Tuple(tuple(V.Scalar.of_extent(d) for d in ty.shape)) if ty.shape else size
        args = (count,) if standard else (ZERO_F, ONE_F, count)
        found = draw(it, rng, standard or method, args, ty, scale=scale)
        return _of_size(it, size, placed(it, found, loc, scale))

    return handler


def _scaled(method: str, standard: str | None = None) -> Callable[..., V.Value]:
    """A distribution with a scale."""

    def handler(
        it: Interpreter, rng: V.Ref, scale: V.Value = ONE_F, size: V.Value = V.NONE
    ) -> V.Value:
        ty = _result_type(it, size, (scale,), types.f64)
        count = V.Tuple(tuple(V.Scalar.of_extent(d) for d in ty.shape)) if ty.shape else size
        args = (count,) if standard else (ONE_F, count)
        found = draw(it, rng, standard or method, args, ty, scale=scale)
        factor = scale if V.tensor_type(scale) is not None else operand(it, scale)
        return _of_size(it, size, as_drawn(it, binary(it, "*", factor, found)))

    return handler


def _uniform(
    it: Interpreter, rng: V.Ref, low: V.Value = ZERO_F, high: V.Value = ONE_F,
    size: V.Value = V.NONE,
) -> V.Value:
    """Between two bounds."""
    ty = _result_type(it, size, (low, high), types.f64)
    count = V.Tuple(tuple(V.Scalar.of_extent(d) for d in ty.shape)) if ty.shape else size
    found = draw(it, rng, "random_sample" if _legacy(rng) else "random", (count,), ty)
    low, high = (v if V.tensor_type(v) is not None else operand(it, v) for v in (low, high))
    return _of_size(it, size, placed(it, found, low, binary(it, "-", high, low)))


def _lognormal(
    it: Interpreter, rng: V.Ref, mean: V.Value = ZERO_F, sigma: V.Value = ONE_F,
    size: V.Value = V.NONE,
) -> V.Value:
    """exp of a normal number."""
    exponent = _located("normal", "standard_normal")(it, rng, mean, sigma, size)
    return _of_size(it, size, as_drawn(it, it.call("exp", exponent)))


def _direct(method: str, integer: bool, count: int) -> Callable[..., V.Value]:
    """A distribution whose numbers are drawn as they are; `count` parameters, then the size.

    Numbers that are not whole have no derivative by the parameters, which is an error if asked for.
    """

    def handler(it: Interpreter, rng: V.Ref, *given: V.Value, **keywords: V.Value) -> V.Value:
        args = list(given)
        size = keywords.pop("size", V.NONE)
        if len(args) > count:
            size = args.pop()
        named = dict(keywords)
        target = types.i64 if integer else types.f64
        if method == "standard_gamma" and "dtype" in keywords and not _legacy(rng):
            target = dtype_of(it, keywords.pop("dtype")) or target
            named["dtype"] = V.Known(target.numpy.type)
        parameters = [*args, *keywords.values()]
        ty = _result_type(it, size, parameters, target)
        op = "host_value" if integer else "host_draw"
        found = draw(it, rng, method, args, ty, {**named, "size": size}, op=op)
        return _of_size(it, size, found)

    return handler


def _gamma(
    it: Interpreter, rng: V.Ref, shape: V.Value, scale: V.Value = ONE_F, size: V.Value = V.NONE
) -> V.Value:
    """A standard gamma number times a scale, by which it has a derivative."""
    ty = _result_type(it, size, (shape, scale), types.f64)
    count = V.Tuple(tuple(V.Scalar.of_extent(d) for d in ty.shape)) if ty.shape else size
    found = draw(
        it, rng, "standard_gamma", (shape,), ty, {"size": count}, scale=scale, op="host_draw"
    )
    factor = scale if V.tensor_type(scale) is not None else operand(it, scale)
    return _of_size(it, size, as_drawn(it, binary(it, "*", factor, found)))


def _legacy(rng: V.Ref) -> bool:
    return rng.cls is np.random.RandomState


def _integers(
    it: Interpreter, rng: V.Ref, low: V.Value, high: V.Value = V.NONE, size: V.Value = V.NONE,
    dtype: V.Value = V.NONE, endpoint: V.Value = V.Known(False),
) -> V.Value:
    """Whole numbers."""
    target = dtype_of(it, dtype) or types.i64
    bounds = [v for v in (low, high) if v != V.NONE]
    ty = _result_type(it, size, bounds, target)
    named: dict[str, V.Value] = {}
    if dtype != V.NONE:
        named["dtype"] = V.Known(target.numpy.type)
    if not _legacy(rng):
        named["endpoint"] = endpoint
        if not ty.shape:
            ty = TensorType(target, ())
    elif dtype != V.NONE and not ty.shape:
        ty = TensorType(target, ())
    method = "randint" if _legacy(rng) else "integers"
    found = draw(it, rng, method, (low, high, size), ty, named)
    if size == V.NONE and not ty.shape and target is types.bool_:  # one of Python's
        return it.result(it.builder.handle(it.builder.cast(it.atom(found), target, weak=True)))
    return _of_size(it, size, found)


def _choice(
    it: Interpreter, rng: V.Ref, a: V.Value, size: V.Value = V.NONE,
    replace: V.Value = V.Known(True), p: V.Value = V.NONE, axis: V.Value = ZERO,
    shuffle: V.Value = V.Known(True),
) -> V.Value:
    """Elements of an array, or numbers below an int."""
    whole = V.number_type(a) is not None
    items = None if whole else (a if isinstance(a, V.ArrayRef) else to_array(it, a))
    at = it.static(axis, "the axis")
    count = a if items is None else V.Scalar.of_extent(it.tensor(items).shape[at])
    shape = () if size == V.NONE else shape_of(it, size)
    ty = TensorType(types.i64, shape, weak=size == V.NONE)
    named = {"replace": replace, "p": p}
    if not _legacy(rng):
        named["shuffle"] = shuffle
    found = draw(it, rng, "choice", (count, size), ty, named)
    if items is None:
        return _of_size(it, size, found)
    from pyrelay.infer.names.numpy import take

    return _of_size(it, size, take(it, items, found, axis))


def _order(it: Interpreter, rng: V.Ref, size: Any) -> V.Value:
    """A random order of `size` things."""
    ty = TensorType(types.i64, (size,))
    return draw(it, rng, "permutation", (V.Scalar.of_extent(size),), ty)


def _permutation(it: Interpreter, rng: V.Ref, x: V.Value, axis: V.Value = ZERO) -> V.Value:
    """A random order of the numbers below an int, or of the slices of an array."""
    from pyrelay.infer.names.numpy import take

    if V.number_type(x) is not None:
        return _order(it, rng, extent(it, x))
    items = x if isinstance(x, V.ArrayRef) else to_array(it, x)
    size = it.tensor(items).shape[it.static(axis, "the axis")]
    return take(it, items, _order(it, rng, size), axis)


def _shuffle(it: Interpreter, rng: V.Ref, x: V.Value, axis: V.Value = ZERO) -> V.Value:
    """The slices of an array, or the items of a list, put in a random order, in place."""
    from pyrelay.infer.arrays.subscripts import set_item
    from pyrelay.infer.names.builtins import len_

    if V.is_list(x) and axis == ZERO:
        order = _order(it, rng, extent(it, len_(it, x)))
        call(it, V.Known(in_lists.put_in_order), (x, order), {})
        return V.NONE
    if not isinstance(x, V.ArrayRef):
        raise it.failure(
            errors.UnsupportedOperationError, f"{V.describe(x)} cannot be shuffled here",
            hints=("shuffle an array, or its indices: order = rng.permutation(len(x))",),
        )
    set_item(it, x, V.Known(Ellipsis), _permutation(it, rng, x, axis))
    return V.NONE


def _by_extents(method: str) -> Callable[..., V.Value]:
    """rand(d0, d1, ...) and randn."""

    def handler(it: Interpreter, rng: V.Ref, *extents: V.Value) -> V.Value:
        size = V.Tuple(tuple(extents)) if extents else V.NONE
        return _standard(method)(it, rng, size)

    return handler


def _seed(it: Interpreter, rng: V.Ref, seed: V.Value = V.NONE) -> V.Value:
    """RandomState.seed, Random.seed."""
    fresh = _made(it, rng.cls, seed)
    assert isinstance(fresh, V.Ref)
    it.heap.write(rng.root, dict(it.content(fresh.root)), it.let.span if it.let else None)
    return V.NONE


def _multivariate_normal(
    it: Interpreter, rng: V.Ref, mean: V.Value, cov: V.Value, size: V.Value = V.NONE,
    *, method: V.Value = V.Known("svd"), **keywords: V.Value,
) -> V.Value:
    """Vectors of normal numbers with a covariance."""
    from pyrelay.infer.in_python import linear_algebra
    from pyrelay.infer.names.composed import in_python

    center = operand(it, mean)
    outer = () if size == V.NONE else shape_of(it, size)
    shape = (*outer, it.tensor(center).shape[0])
    count = V.Tuple(tuple(V.Scalar.of_extent(d) for d in shape))
    normal = draw(it, rng, "standard_normal", (count,), TensorType(types.f64, shape))
    spread = in_python("multivariate_normal", linear_algebra.spread_by_covariance)
    return spread(it, normal, center, operand(it, cov), method, V.Known(_legacy(rng)))


def _dirichlet(
    it: Interpreter, rng: V.Ref, alpha: V.Value, size: V.Value = V.NONE
) -> V.Value:
    """Vectors of probabilities, f64[*size, k] for f64[k]; no derivative by alpha."""
    weights = operand(it, alpha)
    shape = _with_categories(it, weights, size, ())
    ty = TensorType(types.f64, shape)
    return draw(it, rng, "dirichlet", (weights, size), ty, op="host_draw")


def _multinomial(
    it: Interpreter, rng: V.Ref, n: V.Value, pvals: V.Value, size: V.Value = V.NONE
) -> V.Value:
    """How often each of k things comes in n draws, i64[..., k]."""
    chances = operand(it, pvals)
    drawn = operand(it, n)
    shape = _with_categories(it, chances, size, it.tensor(drawn).shape)
    return draw(it, rng, "multinomial", (drawn, chances, size), TensorType(types.i64, shape))


def _with_categories(
    it: Interpreter, weights: V.Value, size: V.Value, others: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The shape of a draw of vectors: of `size`, or of all parameters together, and of the last
    axis of the weights."""
    own = it.tensor(weights).shape
    if not own:
        raise it.failure(
            errors.ShapeError, "the parameters of this draw are a vector, and a number is given"
        )
    outer = shape_of(it, size) if size != V.NONE else _broadcast(it, own[:-1], others)
    return (*outer, own[-1])


def _permuted(
    it: Interpreter, rng: V.Ref, x: V.Value, *, axis: V.Value = V.NONE, out: V.Value = V.NONE
) -> V.Value:
    """The elements of an array in a random order; of each line along an axis in one of its own."""
    from pyrelay.infer.names.creation import arange
    from pyrelay.infer.names.numpy import take
    from pyrelay.infer.names.shape import reshape

    if out != V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError, "permuted is compiled without out=",
            hints=("write x[...] = rng.permuted(x, axis=axis)",),
        )
    items = x if isinstance(x, V.ArrayRef) else to_array(it, x)
    ty = it.tensor(items)
    if axis == V.NONE and ty.rank > 1:
        raise it.failure(
            errors.UnsupportedOperationError,
            "permuted without an axis takes elements as they lie in memory, which is not compiled",
            hints=("write rng.permuted(x.ravel()).reshape(x.shape)",),
        )
    shape = V.Tuple(tuple(map(V.Scalar.of_extent, ty.shape)))
    places = reshape(it, arange(it, V.Scalar.of_extent(ty.size)), shape)
    order = draw(it, rng, "permuted", (places,), TensorType(types.i64, ty.shape), {"axis": axis})
    return take(it, items, order, V.NONE)


_COMMON: dict[str, Callable[..., V.Value]] = {
    "normal": _located("normal", "standard_normal"), "uniform": _uniform,
    "laplace": _located("laplace"), "logistic": _located("logistic"),
    "gumbel": _located("gumbel"), "exponential": _scaled("exponential", "standard_exponential"),
    "rayleigh": _scaled("rayleigh"), "lognormal": _lognormal,
    "standard_normal": _standard("standard_normal"),
    "standard_exponential": _standard("standard_exponential"),
    "standard_cauchy": _standard("standard_cauchy"), "random": _standard("random"),
    "choice": _choice, "permutation": _permutation, "shuffle": _shuffle,
    "multivariate_normal": _multivariate_normal, "dirichlet": _dirichlet,
    "multinomial": _multinomial, "gamma": _gamma,
    **{
        name: _direct(name, True, count)
        for name, count in {
            "poisson": 1, "binomial": 2, "geometric": 1, "negative_binomial": 2, "zipf": 1,
            "hypergeometric": 3, "logseries": 1,
        }.items()
    },
    **{
        name: _direct(name, False, count)
        for name, count in {
            "standard_gamma": 1, "beta": 2, "chisquare": 1, "standard_t": 1,
            "weibull": 1, "pareto": 1, "power": 1, "f": 2, "triangular": 3, "vonmises": 2,
            "wald": 2, "noncentral_chisquare": 2, "noncentral_f": 3,
        }.items()
    },
}
#: by class
METHODS: dict[Any, dict[str, Callable[..., V.Value]]] = {
    np.random.Generator: {**_COMMON, "integers": _integers, "permuted": _permuted},
    np.random.RandomState: {
        **_COMMON, "randint": _integers, "rand": _by_extents("random_sample"),
        "randn": _by_extents("standard_normal"), "random_sample": _standard("random_sample"),
        "seed": _seed,
    },
    random.Random: {**python_random.METHODS, "seed": _seed},
}
for _methods in METHODS.values():
    for _name, _method in _methods.items():  # as errors call them
        _method.__name__, _method.__module__ = _name, "rng"


def method_of(it: Interpreter, rng: V.Value, name: str) -> V.Value:
    """A method of a generator, looked up."""
    assert isinstance(rng, V.Ref)
    if name in METHODS[rng.cls]:
        return V.Method(rng, name)
    cls = rng.cls.__name__ if rng.cls is not None else ""
    if not hasattr(rng.cls, name):
        raise it.failure(errors.AttributeMissingError, f"{cls!r} object has no attribute {name!r}")
    raise it.failure(
        errors.UnsupportedOperationError, f"{name!r} of a {cls} is not compiled",
        hints=("draw outside and pass the array; normal, uniform, integers, choice, permutation "
               "and their kin are compiled",),
    )


# -- functions of np.random ------------------------------------------------------------------------


def _of_module(shared: Any, method: Callable[..., V.Value]) -> Callable[..., V.Value]:
    """A function of np.random or random: a method of the one generator behind the module."""

    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        from pyrelay.infer.attributes import captured

        return apply(it, method, method, (captured(it, shared), *args), keywords)

    return handler


_numpy_shared: Any = np.random.mtrand._rand
for _name, _method in METHODS[np.random.RandomState].items():
    if hasattr(np.random, _name):
        handles(getattr(np.random, _name))(_of_module(_numpy_shared, _method))
handles(np.random.ranf, np.random.sample)(
    _of_module(_numpy_shared, _standard("random_sample"))
)
_python_shared: Any = random.random.__self__  # type: ignore[attr-defined]
for _name, _method in METHODS[random.Random].items():
    handles(getattr(random, _name))(_of_module(_python_shared, _method))
