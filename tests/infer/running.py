"""Running a function through `infer` and the reference interpreter, beside plain Python.

In: a Python function and arguments. Out: an `Outcome` of either: the result or the exception, and
the arguments as they are afterwards.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

import pyrelay.ops  # noqa: F401  (fills the table of ops)
from pyrelay.errors import PyrelayError
from pyrelay.frontend.parse import parse
from pyrelay.infer.result_trees import assemble, restore
from pyrelay.infer.specialise import specialise
from pyrelay.infer.specialised import Specialised
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Module
from pyrelay.ir.verify import verify
from pyrelay.ops.python_numbers import TOO_LARGE


@dataclass(frozen=True)
class Outcome:
    """What a call did."""

    result: Any
    error: BaseException | None
    arguments: tuple[Any, ...]


def plainly(function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """The call in plain Python."""
    mine = copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*mine)
            if beyond_64_bits(result):
                return Outcome(None, OverflowError(TOO_LARGE), mine)
            return Outcome(result, None, mine)
        except Exception as error:
            return Outcome(None, error, mine)


def beyond_64_bits(value: Any) -> bool:
    """True if an int of a result does not fit: compiled ints have 64 bits, and say so."""
    if type(value) is int:
        return not -(2**63) <= value < 2**63
    return isinstance(value, (tuple, list)) and any(map(beyond_64_bits, value))


def inferred(function: Any, args: tuple[Any, ...]) -> Specialised:
    """The verified specialisation for these arguments."""
    specialised = specialise(function, args, {}, parse)
    verify(specialised.module, "infer")
    return specialised


def interpreted(
    function: Any, args: tuple[Any, ...], through: Callable[[Module], Module] = lambda m: m
) -> Outcome:
    """The call through `infer`, some passes, and the reference interpreter."""
    mine = copy.deepcopy(args)
    try:
        specialised = inferred(function, mine)
    except PyrelayError as error:
        return Outcome(None, error, mine)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Outcome(run(specialised, through(specialised.module), mine, {}), None, mine)
        except PyrelayError:
            raise  # a fault of the compiler
        except Exception as error:
            return Outcome(None, error, mine)


def run(
    specialised: Specialised, module: Module, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Any:
    """Call a specialisation with arguments of its structure; they are written as it says."""
    binding = specialised.binding
    flat = Flattened(apart=binding.apart)
    flatten([(value, "argument") for value in (*args, *keywords.values())], flat)
    for hidden in binding.hidden:
        flatten([(hidden.read(), hidden.name)], flat, captured=True)
    values = [copy.copy(flat.leaves[leaf]) for leaf in binding.parameters]
    results = interpret(module, values)
    for leaf, number in binding.mutated.items():
        flat.leaves[leaf][...] = results[number]
    made: dict[int, Any] = {}
    built = assemble(binding.result, results, flat, made)
    for change in binding.changes:
        parts = [assemble(c, results, flat, made) for c in change.children]
        restore(flat.containers[change.number], change.kind, change.names, parts)
    return built


def assert_same(
    got: Any, wanted: Any, where: str = "result", joins: bool = False, *,
    met: frozenset[int] = frozenset(),
) -> None:
    """Equal values of equal classes, dtypes and shapes, through any structure.

    With `joins` numbers may be of a wider kind than the wanted ones. `met`: objects that lead here.
    """
    if joins and isinstance(wanted, (bool, int, float, np.generic)):
        assert np.result_type(got, wanted) == np.asarray(got).dtype, f"{where}: {got!r}, {wanted!r}"
        np.testing.assert_allclose(got, wanted, 1e-6, err_msg=where)
        return
    assert type(got) is type(wanted), f"{where}: {got!r} is not of the class of {wanted!r}"
    if isinstance(wanted, (np.ndarray, np.generic)):
        assert got.dtype == wanted.dtype, f"{where}: {got.dtype} is not {wanted.dtype}"
        assert got.shape == wanted.shape, f"{where}: {got.shape} is not {wanted.shape}"
        tolerance = 1e-5 if wanted.dtype.char in "fF" else 1e-12
        np.testing.assert_allclose(got, wanted, tolerance, tolerance * 1e-3, err_msg=where)
    elif isinstance(wanted, (float, complex)):
        np.testing.assert_allclose(got, wanted, 1e-12, 1e-15, err_msg=where)
    elif isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted), f"{where}: {got!r} is not {wanted!r}"
        for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
            assert_same(a, b, f"{where}[{k}]", joins, met=met)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted), f"{where}: keys {list(got)} are not {list(wanted)}"
        for k in wanted:
            assert_same(got[k], wanted[k], f"{where}[{k!r}]", joins, met=met)
    elif is_dataclass(wanted):
        for f in fields(wanted):
            a, b = getattr(got, f.name), getattr(wanted, f.name)
            assert_same(a, b, f"{where}.{f.name}", joins, met=met)
    elif type(wanted).__eq__ is object.__eq__ and hasattr(wanted, "__dict__"):
        if id(wanted) not in met:
            assert_same(vars(got), vars(wanted), where, joins, met=met | {id(wanted)})
    else:
        assert got == wanted, f"{where}: {got!r} is not {wanted!r}"


def assert_same_outcome(got: Outcome, wanted: Outcome, joins: bool = False) -> None:
    """The same result or exception, the same arguments afterwards."""
    if wanted.error is None:
        if got.error is not None:
            raise got.error
        assert_same(got.result, wanted.result, joins=joins)
    else:
        assert got.error is not None, f"{got.result!r} instead of {wanted.error!r}"
        assert isinstance(got.error, type(wanted.error)), f"{got.error!r}, not {wanted.error!r}"
        if not isinstance(got.error, PyrelayError):
            assert str(got.error) == str(wanted.error)
    assert_same(got.arguments, wanted.arguments, "arguments")
