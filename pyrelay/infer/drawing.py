"""A draw of a random number generator: compiled where its bits are made here, else Python's.

In: a generator on the heap, the name of a method, its arguments. Out: the numbers, and on the heap
the state after them. What `own_draw` does not know is called through the host gate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.infer import host, random_state
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.in_python import draws, mt19937, pcg64, python_random
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
        return _made_here(it, rng, *own, result)
    state = tuple(it.content(rng.root).values())
    given = it.new_ref("dict", dict(keywords or {}))
    operands = (V.Known(method), V.Tuple(state), scale, V.Tuple(tuple(args)), given)
    results = (*map(it.tensor, state), result)
    *after, numbers = map(it.result, emitted(it, op, random_state.drawn, operands, {}, results))
    _move_on(it, rng, after)
    return numbers


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
    "order": python_random.order,
}
_OF_INDICES = ("permutation", "order")

Own = tuple[Callable[..., Any], tuple[V.Value, ...]]


def _own_draw(
    it: Interpreter, rng: V.Ref, method: str, args: Sequence[V.Value],
    keywords: dict[str, V.Value], result: TensorType,
) -> Own | None:
    """The function that draws one number, and its arguments behind the state."""
    words = it.tensor(it.content(rng.root)[random_state.FIELDS[0]])
    count = it.program.guards.resolve(words.shape[0])
    if count != random_state.WORDS[rng.cls]:
        return None
    if rng.cls is random.Random:
        return _own_python_draw(method, args)
    if method in _STANDARD[rng.cls]:
        if keywords or result.dtype != types.f64:
            return None
        return _STANDARD[rng.cls][method], ()
    own: Any = pcg64 if rng.cls is np.random.Generator else mt19937
    if method in ("integers", "randint") and "dtype" not in keywords:
        low, high, _ = args
        if high == V.NONE:
            low, high = V.Known(0), low
        if _is_int(low) and _is_int(high):
            return getattr(own, method), (low, high, *keywords.values())
    if method == "choice" and keywords["replace"] == V.Known(True):
        if keywords["p"] == V.NONE:
            return own.item, (args[0],)
        legacy = V.Known(rng.cls is np.random.RandomState)
        sums = call(it, V.Known(draws.running_sums), (keywords["p"], args[0], legacy), {})
        return own.weighted_item, (sums,)
    if method == "permutation":
        return own.permutation, (args[0],)
    return None


def _own_python_draw(method: str, args: Sequence[V.Value]) -> Own | None:
    if method in ("gauss", "normalvariate", "expovariate"):
        return _PYTHON[method], ()  # always asked for in their standard form
    if method in _PYTHON and all(map(_is_int, args)) and len(args) < 3:
        return _PYTHON[method], tuple(args)
    return None


def _is_int(value: V.Value) -> bool:
    ty = V.number_type(value)
    return ty is not None and ty.dtype.numpy.kind in "iu" and np.can_cast(ty.dtype.numpy, np.int64)


def _made_here(
    it: Interpreter, rng: V.Ref, function: Callable[..., Any], args: tuple[V.Value, ...],
    result: TensorType,
) -> V.Value:
    """The numbers of a draw by compiled code."""
    state = tuple(it.new_array(it.atom(part)) for part in it.content(rng.root).values())
    if result.shape and function.__name__ not in _OF_INDICES:
        shape = V.Tuple(tuple(V.Scalar.of_extent(d) for d in result.shape))
        kind = V.Known(result.dtype.numpy.type)
        given = (V.Known(function), V.Tuple(state), shape, kind, V.Tuple(args))
        found = call(it, V.Known(draws.many), given, {})
    else:
        found = call(it, V.Known(function), (*state, *args), {})
    _move_on(it, rng, state)
    if result.shape:
        return found
    atom = it.builder.cast(it.atom(found), result.dtype, weak=result.weak)
    return it.result(it.builder.handle(atom))
