"""A draw of a random number generator: compiled where its bits are made here, else Python's.

In: a generator on the heap, the name of a method, its arguments. Out: the numbers, and on the heap
the state after them. What `own_draw` does not know is called through the host gate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrelay.infer import host, random_state
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.in_python import distributions, draws, mt19937, pcg64, python_random
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types
from pyrelay.ir.types import TensorType


def emitted(
    it: Interpreter, op: str, function: Callable[..., Any], args: Sequence[V.Value],
    keywords: Mapping[str, V.Value], results: tuple[TensorType, ...],
) -> Any:
    """A call of Python with results of these types."""
    taken = host.Operands(it)
    trees = tuple(map(taken.tree, args))
    named = tuple((k, taken.tree(v)) for k, v in keywords.items())
    function_call = host.Invocation(function, trees, named)
    return it.emit(op, *taken.atoms, function=function_call, types=results)


def draw(
    it: Interpreter, rng: V.Ref, method: str, args: Sequence[V.Value], result: TensorType,
    keywords: Mapping[str, V.Value] | None = None, *, scale: V.Value = V.NONE,
    op: str = "host_value",
) -> V.Value:
    """Call a method of the generator; its numbers. The generator's state changes."""
    own = _own_draw(it, rng, method, args, dict(keywords or {}), result)
    if own is not None:
        if scale != V.NONE:
            call(it, V.Known(draws.check_scale), (scale,), {})
        return _made_here(it, rng, own, result)
    state = tuple(it.content(rng.root).values())
    given = it.new_ref("dict", dict(keywords or {}))
    operands = (V.Known(method), V.Tuple(state), scale, V.Tuple(tuple(args)), given)
    results = (*map(it.tensor, state), result)
    *after, numbers = map(it.result, emitted(it, op, random_state.drawn, operands, {}, results))
    _move_on(it, rng, after)
    return numbers


def placed(
    it: Interpreter, standard: V.Value, loc: V.Value, scale: V.Value
) -> V.Value:
    """loc + scale * standard, as NumPy computes it."""
    from pyrelay.infer.names.adapters import operand
    from pyrelay.infer.operators import binary

    loc, scale = (v if V.tensor_type(v) is not None else operand(it, v) for v in (loc, scale))
    return as_drawn(it, binary(it, "+", loc, binary(it, "*", scale, standard)))


def as_drawn(it: Interpreter, value: V.Value) -> V.Value:
    """A single number as a Python float, arrays in double precision."""
    ty = it.tensor(value)
    return it.result(
        it.builder.handle(it.builder.cast(it.atom(value), types.f64, weak=not ty.shape))
    )


def _move_on(it: Interpreter, rng: V.Ref, state: Sequence[V.Value]) -> None:
    content = dict(zip(random_state.FIELDS, state, strict=False))
    it.heap.write(rng.root, content, it.let.span if it.let else None)


# -- draws of compiled code ------------------------------------------------------------------------

#: By class: methods without parameters but the size, and those of parameters that are numbers.
_STANDARD: dict[Any, dict[str, Callable[..., Any]]] = {
    np.random.Generator: {
        "random": pcg64.random, "standard_normal": pcg64.standard_normal,
        "standard_exponential": pcg64.standard_exponential,
    },
    np.random.RandomState: {
        "random": mt19937.random_sample, "random_sample": mt19937.random_sample,
        "standard_normal": mt19937.standard_normal,
        "standard_exponential": mt19937.standard_exponential,
    },
}
_PYTHON: dict[str, Callable[..., Any]] = {
    "random": mt19937.random_sample, "gauss": python_random.gauss,
    "normalvariate": python_random.normalvariate, "expovariate": python_random.expovariate,
    "randrange": python_random.randrange, "randint": python_random.randint,
    "order": python_random.order, "places": python_random.places,
}

#: Dtypes whose whole numbers NumPy draws from the bits that those of 64 bits are drawn from.
_OF_WHOLE_WORDS = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint32))


class Own(NamedTuple):
    """A function that draws, and its arguments around the state."""

    function: Callable[..., Any]
    after: tuple[V.Value, ...]
    before: tuple[V.Value, ...] = ()
    whole: bool = False  # it draws all numbers at once, in a vector
    #: of an array of draws, with the parameters in a tuple
    repeated: Callable[..., Any] = draws.many


def _own_draw(
    it: Interpreter, rng: V.Ref, method: str, args: Sequence[V.Value],
    keywords: dict[str, V.Value], result: TensorType,
) -> Own | None:
    """What draws these numbers here, or None."""
    words = it.tensor(it.content(rng.root)[random_state.FIELDS[0]])
    count = it.program.guards.resolve(words.shape[0])
    if count != random_state.WORDS[rng.cls]:
        return None
    if rng.cls is random.Random:
        return _own_python_draw(method, args)
    if method in _STANDARD[rng.cls]:
        if method == "random" and result.dtype == types.f32:
            return Own(pcg64.random_single, ())
        return Own(_STANDARD[rng.cls][method], ()) if result.dtype == types.f64 else None
    own: Any = pcg64 if rng.cls is np.random.Generator else mt19937
    if method in ("integers", "randint"):
        return _own_integers(getattr(own, method), args, keywords, result)
    if method == "choice":
        return _own_choice(it, own, args, keywords, result)
    if method == "permutation":
        return Own(own.permutation, (args[0],), whole=True)
    return _own_distribution(it, rng.cls is np.random.RandomState, method, args, keywords, result)


def _own_integers(
    function: Callable[..., Any], args: Sequence[V.Value], keywords: dict[str, V.Value],
    result: TensorType,
) -> Own | None:
    given = keywords.pop("dtype", V.NONE)
    if given != V.NONE and (
        function is mt19937.randint or result.dtype.numpy not in _OF_WHOLE_WORDS
    ):
        return None
    low, high, _ = args
    if high == V.NONE:
        low, high = V.Known(0), low
    if not (_is_int(low) and _is_int(high)):
        return None
    if result.dtype != types.i64:
        limits = np.iinfo(result.dtype.numpy)
        ends = [v.value for v in (low, high) if isinstance(v, V.Known)]
        if len(ends) < 2 or not limits.min <= ends[0] < ends[1] <= limits.max:
            return None  # the error of numbers out of bounds is NumPy's
    return Own(function, (low, high, *keywords.values()))


def _own_choice(
    it: Interpreter, own: Any, args: Sequence[V.Value], keywords: dict[str, V.Value],
    result: TensorType,
) -> Own | None:
    count, p, legacy = args[0], keywords["p"], V.Known(own is mt19937)
    if keywords["replace"] == V.Known(True):
        if p == V.NONE:
            return Own(own.item, (count,))
        sums = call(it, V.Known(draws.running_sums), (p, count, legacy), {})
        return Own(own.weighted_item, (sums,))
    if keywords["replace"] != V.Known(False):
        return None
    size = V.Scalar.of_extent(result.size)
    if p != V.NONE:
        uniform = mt19937.random_sample if own is mt19937 else pcg64.random
        return Own(draws.weighted_sample, (p, count, size, legacy), (V.Known(uniform),), True)
    call(it, V.Known(draws.check_sample), (count, size, legacy), {})
    if own is mt19937:
        return Own(mt19937.sample, (count, size), whole=True)
    return Own(pcg64.sample, (count, size, keywords["shuffle"]), whole=True)


def _own_python_draw(method: str, args: Sequence[V.Value]) -> Own | None:
    if method in ("gauss", "normalvariate", "expovariate"):
        return Own(_PYTHON[method], ())  # always asked for in their standard form
    if method in _PYTHON and all(map(_is_int, args)) and len(args) < 3:
        return Own(_PYTHON[method], tuple(args), whole=method in ("order", "places"))
    return None


_NOT_NEGATIVE, _POSITIVE = draws.not_negative, draws.positive
#: By method: the parameters, each with its default (None: it has none) and what checks it.
_PARAMETERS: dict[str, tuple[tuple[str, float | None, Callable[..., None] | None], ...]] = {
    "standard_gamma": (("shape", None, _NOT_NEGATIVE),),
    "beta": (("a", None, _POSITIVE), ("b", None, _POSITIVE)),
    "chisquare": (("df", None, _POSITIVE),),
    "f": (("dfnum", None, _POSITIVE), ("dfden", None, _POSITIVE)),
    "standard_t": (("df", None, _POSITIVE),),
    "standard_cauchy": (),
    **dict.fromkeys(("laplace", "gumbel", "logistic"), (("loc", 0.0, None), ("scale", 1.0, None))),
    "rayleigh": (("scale", 1.0, None),),
    "weibull": (("a", None, _NOT_NEGATIVE),),
    "pareto": (("a", None, _POSITIVE),),
    "power": (("a", None, _POSITIVE),),
    "triangular": (("left", None, None), ("mode", None, None), ("right", None, None)),
    "wald": (("mean", None, _POSITIVE), ("scale", None, _POSITIVE)),
    "poisson": (("lam", 1.0, draws.rate),),
    "binomial": (("n", None, _NOT_NEGATIVE), ("p", None, draws.probability)),
    "geometric": (("p", None, draws.some_probability),),
    "multinomial": (("n", None, _NOT_NEGATIVE), ("pvals", None, None)),
    "dirichlet": (("alpha", None, None),),
}


def _own_distribution(
    it: Interpreter, legacy: bool, method: str, args: Sequence[V.Value],
    keywords: dict[str, V.Value], result: TensorType,
) -> Own | None:
    """A draw from the distribution that `distributions` has under the name of the method."""
    wanted = _PARAMETERS.get(method)
    if wanted is None or result.dtype not in (types.f64, types.i64):
        return None
    given = dict(zip([name for name, _, _ in wanted], args, strict=False)) | keywords
    taken = {
        name: given.get(name, V.NONE if default is None else V.Known(default))
        for name, default, _ in wanted
    }
    found = []
    for name, value in taken.items():
        number = _as_parameter(it, value, whole=name == "n", drawn=result.dtype)
        if number is None:
            return None
        found.append(number)
    for (name, _, check), number in zip(wanted, found, strict=True):
        if check is not None:
            call(it, V.Known(check), (number, V.Known(name)), {})
    if method == "triangular":
        call(it, V.Known(draws.triangle), tuple(found), {})
    repeated = draws.distributed
    if method in ("multinomial", "dirichlet"):
        if it.tensor(found[-1]).rank != 1 or any(it.tensor(v).shape for v in found[:-1]):
            return None
        repeated = draws.vectors
        if method == "multinomial":
            if it.tensor(taken["pvals"]).dtype == types.f32:
                return None  # has an error of its own
            call(it, V.Known(draws.chances), (found[-1],), {})
        else:
            check = _POSITIVE if legacy else _NOT_NEGATIVE
            call(it, V.Known(check), (found[0], V.Known("alpha")), {})
    source = distributions.LEGACY if legacy else distributions.GENERATOR
    function = getattr(distributions, method)
    return Own(function, tuple(found), (V.Known(source),), repeated=repeated)


def _as_parameter(
    it: Interpreter, value: V.Value, *, whole: bool, drawn: types.DType
) -> V.Value | None:
    """A parameter as a double, or as an int where it counts; None for what is neither."""
    from pyrelay.infer.names.adapters import operand

    if value == V.NONE:
        return None
    number = value if V.tensor_type(value) is not None else operand(it, value)
    ty = it.tensor(number)
    if ty.dtype.kind not in ("iub" if whole else "iubf"):
        return None
    cast = it.builder.cast(it.atom(number), types.i64 if whole else types.f64)
    # of numbers drawn by it there is no derivative: of whole ones it is 0, of floats an error
    op = "stop_gradient" if drawn == types.i64 else "drawn_by"
    return it.call(op, it.result(it.builder.handle(cast)))


def _is_int(value: V.Value) -> bool:
    ty = V.number_type(value)
    return ty is not None and ty.dtype.numpy.kind in "iu" and np.can_cast(ty.dtype.numpy, np.int64)


def _made_here(it: Interpreter, rng: V.Ref, own: Own, result: TensorType) -> V.Value:
    """The numbers of a draw by compiled code."""
    state = tuple(it.new_array(it.atom(part)) for part in it.content(rng.root).values())
    function = V.Known(own.function)
    if own.whole:
        found = call(it, function, (*own.before, *_state_of(own, state), *own.after), {})
        found = _shaped(it, found, result)
    elif result.shape:
        shape = V.Tuple(tuple(V.Scalar.of_extent(d) for d in result.shape))
        kind = V.Known(result.dtype.numpy.type)
        given = (function, *own.before, V.Tuple(state), shape, kind, V.Tuple(own.after))
        found = call(it, V.Known(own.repeated), given, {})
    else:
        found = call(it, function, (*own.before, *_state_of(own, state), *own.after), {})
    _move_on(it, rng, state)
    if result.shape:
        return found
    atom = it.builder.cast(it.atom(found), result.dtype, weak=result.weak)
    return it.result(it.builder.handle(atom))


def _state_of(own: Own, state: tuple[V.Value, ...]) -> tuple[V.Value, ...]:
    """The state as arguments: in one tuple for what draws from several generators."""
    return (V.Tuple(state),) if own.before else state


def _shaped(it: Interpreter, vector: V.Value, result: TensorType) -> V.Value:
    if len(result.shape) == 1:
        return vector
    shape = V.Tuple(tuple(V.Scalar.of_extent(d) for d in result.shape))
    return call(it, V.Known(np.reshape), (vector, shape), {})
