"""A check that users run on their own functions: compiled against plain.

In: functions and arguments. Out: `Comparison`, or an error that says where the numbers part.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import api, errors
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.twin import Place


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
    elif isinstance(wanted, np.random.Generator):
        states = got.bit_generator.state, wanted.bit_generator.state
        _values_differ(*states, f"{where}.bit_generator.state", found)
    elif isinstance(wanted, np.random.RandomState):
        _values_differ(got.get_state(), wanted.get_state(), f"{where}.get_state()", found)
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
