"""Checks that users run on their own functions: compiled against plain, gradients against slopes.

In: functions and arguments. Out: `Comparison`, or an error that says where the numbers part.

Gradients are compared with central differences along a random direction, at two step sizes, so that
a difference that does not settle (a kink, rounding) is told from a wrong derivative.
"""

from __future__ import annotations

import copy
import itertools
import linecache
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import api, errors
from pyrelay.compiled import Compiled
from pyrelay.infer.containers import columns
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.twin import Place

_numbers = itertools.count()


@dataclass(frozen=True)
class Comparison:
    """What a compiled function did otherwise than the plain one; true if nothing.

    first: the first statement after which they differ, None if it was not found.
    """

    differences: tuple[str, ...]
    first: Place | None = None

    def __bool__(self) -> bool:
        return not self.differences

    def __repr__(self) -> str:
        if not self.differences:
            return "the compiled and the plain function agree"
        place = "no single statement shows it" if self.first is None else str(self.first)
        return "\n".join([*self.differences, place])


@dataclass(frozen=True)
class _Outcome:
    result: Any
    error: Exception | None
    arguments: dict[str, Any]


def compare(
    plain: Callable[..., Any], compiled: Callable[..., Any], args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Comparison:
    """Run both on copies of the arguments and compare results, exceptions and arguments.

    Where they differ, the first line that shows it is looked for, which takes compilations.
    """
    wanted, got = (_outcome(f, args, keywords) for f in (plain, compiled))
    found: list[str] = []
    if wanted.error is not None or got.error is not None:
        _errors_differ(got.error, wanted.error, found)
    else:
        _values_differ(got.result, wanted.result, "result", found)
    for name, value in wanted.arguments.items():
        _values_differ(got.arguments[name], value, f"{name} afterwards", found)
    if not found:
        return Comparison(())
    from pyrelay.twin import first_difference

    place = first_difference(plain, args, keywords, api.jit, _values_differ)
    return Comparison(tuple(found), place)


def _outcome(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> _Outcome:
    mine, named = copy.deepcopy((tuple(args), dict(keywords)))
    given = {f"argument {k}": a for k, a in enumerate(mine, 1)} | named
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return _Outcome(function(*mine, **named), None, given)
        except errors.PyrelayError:
            raise  # refused, not run
        except Exception as error:
            return _Outcome(None, error, given)


def _errors_differ(
    got: Exception | None, wanted: Exception | None, found: list[str]
) -> None:
    if type(got) is not type(wanted) or str(got) != str(wanted):
        said = ["returns" if e is None else f"raises {errors.render(e).splitlines()[0]}"
                for e in (got, wanted)]  # fmt: skip
        found.append(f"compiled {said[0]}, plain {said[1]}")


def _values_differ(got: Any, wanted: Any, where: str, found: list[str]) -> None:
    """Append what differs between two values of any structure."""
    if type(got) is not type(wanted):
        found.append(
            f"{where}: compiled {type(got).__name__}, plain {type(wanted).__name__}"
        )
    elif isinstance(wanted, (np.ndarray, np.generic, float, complex)):
        _numbers_differ(np.asarray(got), np.asarray(wanted), where, found)
    elif isinstance(wanted, (tuple, list)):
        if len(got) != len(wanted):
            found.append(f"{where}: compiled {len(got)} items, plain {len(wanted)}")
        for k, (a, b) in enumerate(zip(got, wanted, strict=False)):
            _values_differ(a, b, f"{where}[{k}]", found)
    elif isinstance(wanted, dict):
        if list(got) != list(wanted):
            found.append(f"{where}: compiled keys {list(got)}, plain {list(wanted)}")
        for k in wanted:
            if k in got:
                _values_differ(got[k], wanted[k], f"{where}[{k!r}]", found)
    elif is_dataclass(wanted):
        for name in (f.name for f in fields(wanted)):
            _values_differ(getattr(got, name), getattr(wanted, name), f"{where}.{name}", found)
    elif _is_record(wanted):
        _values_differ(vars(got), vars(wanted), where, found)
    elif got != wanted:
        found.append(f"{where}: compiled {got!r}, plain {wanted!r}")


def _is_record(value: Any) -> bool:
    """True for an object that is what its attributes are, and has no equality of its own."""
    return hasattr(value, "__dict__") and type(value).__eq__ is object.__eq__


def _numbers_differ(
    got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], where: str, found: list[str]
) -> None:
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        found.append(
            f"{where}: compiled {got.dtype}{list(got.shape)}, plain "
            f"{wanted.dtype}{list(wanted.shape)}"
        )
        return
    if wanted.dtype.kind in "fc" and wanted.size:
        epsilon = float(np.finfo(wanted.dtype).eps)
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = float(finite.max()) if finite.size else 0.0
        same = np.isclose(got, wanted, epsilon**0.75, scale * epsilon * 16, equal_nan=True)
    else:
        same = got == wanted
    if not np.all(same):
        count = int(same.size - np.count_nonzero(same))
        place = np.unravel_index(int(np.argmin(same)), same.shape)
        at = f" at [{', '.join(map(str, place))}]" if place else ""
        many = f" ({count} of {same.size} elements)" if same.ndim else ""
        found.append(f"{where}: compiled {got[place]!r}, plain {wanted[place]!r}{at}{many}")


# -- gradients -------------------------------------------------------------------------------------


def check_grads(
    function: Callable[..., Any], args: Sequence[Any], order: int = 2, *,
    argnums: int | Sequence[int] = 0, rtol: float | None = None, seed: int = 0,
) -> None:
    """Compare the derivatives of a real scalar function with central differences.

    args: its positional arguments; argnums: which of them to vary (their floating leaves, along one
    random direction). order: derivatives up to this order; each is compared with differences of
    the one below. rtol: relative tolerance; a cube root of the precision if None. Raises
    AssertionError with both numbers where they differ, and GradientError as `grad` does.

    >>> pyrelay.check_grads(lambda x: np.sum(np.tanh(x)), (np.array([0.1, 0.2]),))
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    numbers = tuple(n % len(args) for n in numbers)
    direction = _Direction(args, numbers, seed)
    slope: Callable[..., Any] = function if isinstance(function, Compiled) else (
        api.jit(function)
    )
    for step in range(1, order + 1):
        lower, slope = slope, direction.slope_of(slope)
        found, wanted, doubt = float(slope(*args)), *direction.difference(lower, args)
        tolerance = (direction.epsilon ** (1 / 3) if rtol is None else rtol) * 20
        scale = max(abs(found), abs(wanted), 1.0)
        if abs(found - wanted) > tolerance * scale + 10 * doubt:
            name = getattr(function, "__qualname__", repr(function))
            raise AssertionError(
                f"derivative {step} of {name} along a random direction is {found!r}, and central "
                f"differences say {wanted!r} (to about {doubt:.1e})"
            )


class _Direction:
    """A random direction in the floating leaves of some arguments."""

    def __init__(self, args: Sequence[Any], numbers: tuple[int, ...], seed: int) -> None:
        self.numbers = numbers
        self.count = len(args)
        random = np.random.default_rng(seed)
        self.places: list[str] = []  # each leaf as an expression over the arguments a0, a1, ...
        self.parts: list[Any] = []
        self.epsilon = float(np.finfo(np.float64).eps)
        for n in numbers:
            flat = Flattened(apart=columns.ALL_APART)
            flatten([(args[n], f"a{n}")], flat)
            if flat.pools:
                raise errors.GradientError(
                    "check_grads cannot vary the numbers in a tree.",
                    hints=("check a function of arrays that puts them into the tree",),
                )
            for name, leaf in zip(flat.names, flat.leaves, strict=True):
                array = np.asarray(leaf)
                if array.dtype.kind != "f":
                    continue
                self.epsilon = max(self.epsilon, float(np.finfo(array.dtype).eps))
                part = random.standard_normal(array.shape).astype(array.dtype)
                self.places.append(name)
                self.parts.append(part if array.ndim else float(part))
        if not self.places:
            raise errors.GradientError("there is no floating-point argument to vary.")

    def slope_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The derivative along the direction, as a function of the same arguments."""
        gradient = api.grad(function, argnums=self.numbers)
        terms = [
            f"np.sum({'g' + place[1:]} * parts[{k}])" for k, place in enumerate(self.places)
        ]
        names = ", ".join(f"g{n}" for n in self.numbers)
        taken = ", ".join(f"a{n}" for n in range(self.count))
        text = (
            f"def slope({taken}):\n    {names}, = gradient({taken})\n"
            f"    return {' + '.join(terms)}\n"
        )
        filename = f"<pyrelay slope {next(_numbers)}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        namespace: dict[str, Any] = {
            "np": np, "gradient": gradient, "parts": tuple(self.parts), "__name__": __name__,
        }
        exec(compile(text, filename, "exec"), namespace)
        made: Callable[..., Any] = api.jit(namespace["slope"])
        return made

    def difference(self, function: Callable[..., Any], args: Sequence[Any]) -> tuple[float, float]:
        """The central difference of a function along the direction, and how uncertain it is."""
        step = self.epsilon ** (1 / 3)
        fine, coarse = (self._quotient(function, args, step * k) for k in (1, 2))
        return fine, abs(fine - coarse)

    def _quotient(self, function: Callable[..., Any], args: Sequence[Any], step: float) -> float:
        ends = []
        for sign in (1, -1):
            moved = copy.deepcopy(list(args))
            where = {f"a{n}": moved[n] for n in self.numbers}
            for place, part in zip(self.places, self.parts, strict=True):
                change = step * sign * part
                if place in where:
                    where[place] = where[place] + change
                elif isinstance(part, float):
                    exec(f"{place} = {place} + change", {"change": change}, where)
                else:
                    exec(f"{place}[...] += change", {"change": change}, where)
            for n in self.numbers:
                moved[n] = where[f"a{n}"]
            ends.append(float(function(*moved)))
        return (ends[0] - ends[1]) / (2 * step)


__all__ = ["Comparison", "check_grads", "compare"]
