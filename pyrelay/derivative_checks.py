"""`check_grads`: derivatives of a function compared with differences of its values.

In: a function of any structure of arguments and results, and arguments. Out: nothing, or an error
that names the mode, the order, and the element whose derivative is wrong.

Along one random direction, the tangent of forward mode is compared with the central difference, and
what reverse mode says of a random cotangent with the inner product of that and the difference. Two
step sizes tell a difference that does not settle (a kink, rounding) from a wrong derivative. Where
they part, the direction is halved until one element is left. Derivatives of higher order are those
of the function that takes the arguments to the derivative below (as JAX's `check_grads` has it).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pyrelay import api, errors
from pyrelay.callables import plain, positional
from pyrelay.compiled import Compiled
from pyrelay.records import dataclass

Function = Callable[..., Any]
Leaf = tuple[str, Any]

_MODES = {"fwd": "forward", "rev": "reverse"}
_FACTOR = 20  # times the cube root of the precision: what differences are good for


def check_grads(
    function: Function, args: Sequence[Any], order: int = 2,
    modes: str | Sequence[str] = ("fwd", "rev"), *, argnums: int | Sequence[int] | None = None,
    atol: float | None = None, rtol: float | None = None, seed: int = 0,
) -> None:
    """Compare the derivatives of a function with central differences.

    args: its positional arguments, of any structure; so is its result. order: derivatives up to
    this order. modes: "fwd", "rev" or both; of higher orders, all sequences of them. argnums: which
    arguments to vary, all of them if None: their floating leaves, along one random direction. rtol,
    atol: relative and absolute tolerances, by the widest dtype that varies if None (1e-4 for
    float64, 0.1 for float32, of numbers around 1). Raises AssertionError, which names the argument
    and the element whose derivative differs, with both numbers; GradientError as the derivatives
    do, and where nothing can be varied; InvalidValueError for other modes.

    >>> pyrelay.check_grads(lambda x: np.tanh(x), (np.array([0.1, 0.2]),))
    """
    wanted = (modes,) if isinstance(modes, str) else tuple(modes)
    if not wanted or not set(wanted) <= set(_MODES):
        raise errors.InvalidValueError(
            f"modes of check_grads are 'fwd', 'rev' or both, and {modes!r} was given."
        )
    if argnums is None:
        chosen = list(range(len(args)))
    else:
        chosen = [n % len(args) for n in ((argnums,) if isinstance(argnums, int) else argnums)]
    random = np.random.default_rng(seed)
    direction = _random_like(tuple(args), chosen, random)
    parts = [part for _, part in _leaves(direction)]
    if not parts:
        raise errors.GradientError("there is no floating-point argument to vary.")
    epsilon = max(float(np.finfo(np.asarray(part).dtype).eps) for part in parts)
    known = epsilon ** (1 / 3) * _FACTOR
    check = _Check(
        getattr(function, "__qualname__", repr(function)), tuple(args),
        _names(function, len(args)), direction, wanted,
        known if rtol is None else rtol, known if atol is None else atol, epsilon, random,
    )
    compiled = function if isinstance(function, Compiled) else api.jit(function)
    check.run(_Level(compiled, compiled), 1, order)


@dataclass(frozen=True)
class _Level:
    """A function of the arguments: as it is called, and as programs call it."""

    called: Function
    function: Function


@dataclass(frozen=True)
class _Check:
    """One check: the arguments, and a direction of their structure, None where nothing varies."""

    name: str
    args: tuple[Any, ...]
    names: tuple[str, ...]
    direction: Any
    modes: tuple[str, ...]
    rtol: float
    atol: float
    epsilon: float
    random: np.random.Generator

    def run(self, level: _Level, order: int, last: int, below: str = "") -> None:
        """Check a derivative of a function, itself one of an order below, and those above."""
        if order > last:
            return
        for mode in self.modes:
            if mode == "fwd":
                answer, above = self._forward(level)
            else:
                cotangent = _random_like(level.called(*self._fresh()), None, self.random)
                if not _leaves(cotangent):
                    continue  # nothing comes out of it
                answer, above = self._backward(level, cotangent)
            self._compare(answer, f"derivative {order} of {self.name}, {below}{_MODES[mode]} mode")
            self.run(above, order + 1, last, f"{below}{_MODES[mode]} and ")

    def _fresh(self) -> tuple[Any, ...]:
        """The arguments, which share nothing: derivatives are by one of them."""
        return tuple(map(copy.deepcopy, self.args))

    def _forward(self, level: _Level) -> tuple[_Answer, _Level]:
        function, chosen = level.function, self.direction

        @api.jit
        def tangent(args: Any, direction: Any) -> Any:
            return api.jvp(function, args, direction)[1]

        def along(*args: Any) -> Any:
            return tangent(args, chosen)

        def found(direction: Any) -> list[Leaf]:
            return _leaves(tangent(self._fresh(), direction), "the result")

        def wanted(direction: Any) -> tuple[list[Any], list[float]]:
            fine, coarse = (self._quotient(level, direction, k) for k in (1, 2))
            return fine, [_largest(a - b) for a, b in zip(fine, coarse, strict=True)]

        return (found, wanted), _Level(along, along)

    def _backward(self, level: _Level, cotangent: Any) -> tuple[_Answer, _Level]:
        function = level.function
        vary = tuple(bool(_leaves(d)) for d in self.direction)

        @api.jit
        def slopes(*args: Any) -> Any:
            found = api.vjp(function, *args)[1](cotangent)
            return tuple(slope if v else None for slope, v in zip(found, vary, strict=True))

        found_slopes = slopes(*self._fresh())
        weights = [np.asarray(leaf) for _, leaf in _leaves(cotangent)]

        def found(direction: Any) -> list[Leaf]:
            pairs = _pairs(found_slopes, direction)
            total = sum(float(np.sum(np.asarray(g, np.float64) * move)) for g, move in pairs)
            return [("the product of the result and a random cotangent", total)]

        def wanted(direction: Any) -> tuple[list[Any], list[float]]:
            fine, coarse = (
                sum(
                    float(np.sum(w * q))
                    for w, q in zip(weights, self._quotient(level, direction, k), strict=True)
                )
                for k in (1, 2)
            )
            return [np.asarray(fine)], [abs(fine - coarse)]

        return (found, wanted), _Level(slopes, slopes)

    def _quotient(self, level: _Level, direction: Any, scale: int) -> list[Any]:
        """The central difference of each floating leaf of the result."""
        step = self.epsilon ** (1 / 3) * scale
        ends = []
        for sign in (1, -1):
            moved = _moved(self._fresh(), direction, sign * step)
            ends.append([np.asarray(v, np.float64) for _, v in _leaves(level.called(*moved))])
        return [(a - b) / (2 * step) for a, b in zip(*ends, strict=True)]

    def _compare(self, answer: _Answer, said: str) -> None:
        worst = self._worst(answer, self.direction)
        if worst is None:
            return
        parts = _leaves(self.direction)
        places = [(k, n) for k, (_, part) in enumerate(parts) for n in range(np.size(part))]
        while len(places) > 1:
            half = len(places) // 2
            for chosen in (places[:half], places[half:]):
                met = self._worst(answer, _only(self.direction, chosen))
                if met is not None:
                    places, worst = chosen, met
                    break
            else:
                break  # the halves are right as far as differences tell
        where, found, wanted, doubt = worst
        along = "a random direction"
        if len(places) == 1:
            (k, n), = places
            name, part = parts[k]
            number, rest = name[1:].split("]", 1)
            name = f"{self.names[int(number)]}{rest}"
            shape = np.shape(part)
            index = ", ".join(map(str, np.unravel_index(n, shape)))
            along = f"element [{index}] of {name}" if shape else name
            size = float(np.reshape(part, -1)[n])
            found, wanted, doubt = found / size, wanted / size, abs(doubt / size)
        raise AssertionError(
            f"{said}: with {along}, {where} moves by {found:.8g}, and central differences say "
            f"{wanted:.8g} (to about {doubt:.1e})"
        )

    def _worst(self, answer: _Answer, direction: Any) -> tuple[str, float, float, float] | None:
        """The element of the answer that is off by most, if one is too far off."""
        found, (wanted, doubts) = answer[0](direction), answer[1](direction)
        worst, most = None, 0.0
        for (name, got), right, doubt in zip(found, wanted, doubts, strict=True):
            got = np.asarray(got, np.float64)
            off = np.atleast_1d(np.abs(got - right))
            scale = max(_largest(got), _largest(right))
            room = self.atol + self.rtol * scale + 10 * doubt
            off = np.where(np.isfinite(off), off, np.inf) if np.isfinite(room) else off * 0
            if off.size and (far := float(off.max())) > max(room, most):
                n = int(off.argmax())
                index = ", ".join(map(str, np.unravel_index(n, right.shape)))
                where = f"element [{index}] of {name}" if right.shape else name
                most = far
                worst = where, float(got.reshape(-1)[n]), float(right.reshape(-1)[n]), doubt
        return worst


#: What a mode says, and what differences say with their doubts, of a direction.
_Answer = tuple[Callable[[Any], list[Leaf]], Callable[[Any], tuple[list[Any], list[float]]]]


def _largest(values: Any) -> float:
    finite = np.abs(values)[np.isfinite(values)] if np.shape(values) else np.abs(values)
    return float(np.max(finite, initial=0.0))


def _names(function: Any, count: int) -> tuple[str, ...]:
    """What the arguments are called."""
    known = [p.name for p in positional(plain(function))][:count]
    return (*known, *(f"argument {k + 1}" for k in range(len(known), count)))


# -- structures ---------------------------------------------------------------------------------


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


def _children(value: Any) -> list[tuple[str, Any]]:
    """The parts of a structure and how each is reached."""
    if isinstance(value, dict):
        return [(f"[{k!r}]", v) for k, v in value.items()]
    if isinstance(value, (tuple, list)):
        return [(f"[{k}]", v) for k, v in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [(f".{f.name}", getattr(value, f.name)) for f in fields(value)]
    if type(value).__module__ not in ("builtins", "numpy") and hasattr(value, "__dict__"):
        return [] if isinstance(value, type) or callable(value) else [
            (f".{k}", v) for k, v in vars(value).items()
        ]
    return []


def _walk(value: Any, name: str, seen: set[int]) -> Iterator[Leaf]:
    if _is_leaf(value):
        if not isinstance(value, np.ndarray) or id(value) not in seen:
            seen.add(id(value))
            yield name, value
        return
    if id(value) in seen:
        return
    found = _children(value)
    if found and not isinstance(value, tuple):
        seen.add(id(value))
    for step, child in found:
        yield from _walk(child, name + step, seen)


def _leaves(value: Any, name: str = "") -> list[Leaf]:
    """The floating leaves of a structure and their names, each object's once."""
    return list(_walk(value, name, set()))


def _mapped(value: Any, change: Callable[[Any], Any], made: dict[int, Any]) -> Any:
    """The structure with `change(leaf)` for floating leaves, and what is no leaf as it is."""
    if id(value) in made:
        return made[id(value)]
    if _is_leaf(value):
        new = change(value)
        if isinstance(value, np.ndarray):
            made[id(value)] = new
        return new
    if isinstance(value, tuple):
        parts = [_mapped(v, change, made) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        new = made[id(value)] = []
        new += [_mapped(v, change, made) for v in value]
        return new
    if isinstance(value, dict):
        new = made[id(value)] = {}
        new.update((k, _mapped(v, change, made)) for k, v in value.items())
        return new
    found = _children(value)
    if not found:
        return value
    new = made[id(value)] = copy.copy(value)
    for step, child in found:
        object.__setattr__(new, step[1:], _mapped(child, change, made))
    return new


def _random_like(value: Any, chosen: Any, random: np.random.Generator) -> Any:
    """A random direction of the structure of a value; of a tuple of arguments, of those chosen."""

    def leaf(x: Any) -> Any:
        part = random.standard_normal(np.shape(x)).astype(np.asarray(x).dtype)
        return part if isinstance(x, np.ndarray) else type(x)(part)

    if chosen is None:
        return _mapped(value, leaf, {})
    return tuple(_mapped(v, leaf, {}) if k in chosen else None for k, v in enumerate(value))


def _only(direction: Any, places: Sequence[tuple[int, int]]) -> Any:
    """The direction with zeros but in these elements of its leaves."""
    wanted: dict[int, list[int]] = {}
    for k, n in places:
        wanted.setdefault(k, []).append(n)
    number = iter(range(1 << 30))

    def leaf(x: Any) -> Any:
        flat = np.zeros_like(np.asarray(x)).reshape(-1)
        chosen = wanted.get(next(number), [])
        flat[chosen] = np.reshape(x, -1)[chosen]
        return flat.reshape(np.shape(x)) if isinstance(x, np.ndarray) else type(x)(flat[0])

    return _mapped(direction, leaf, {})


def _pairs(slopes: Any, direction: Any) -> Iterator[tuple[Any, Any]]:
    """The cotangent and the tangent of each leaf that varies."""
    found = dict(_leaves(slopes))
    for name, move in _leaves(direction):
        yield found[name], move


def _moved(args: tuple[Any, ...], direction: Any, step: float) -> list[Any]:
    """The arguments, changed by a step along the direction."""
    moves = dict(_leaves(direction))
    number = iter([moves.get(name) for name, _ in _leaves(args)])

    def leaf(x: Any) -> Any:
        move = next(number)
        if move is None:
            return x
        if isinstance(x, np.ndarray):
            return (x + step * move).astype(x.dtype)
        return type(x)(x + step * move)

    return list(_mapped(args, leaf, {}))
