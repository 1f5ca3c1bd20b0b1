"""What users call: `jit`, `grad`, `value_and_grad`.

In: Python functions. Out: callables that specialise themselves by the structure and types of their
arguments, keep what they compiled, and notice when a name they read means something else now
(`compiled.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay import config, errors
from pyrelay.bound_method import BoundMethod
from pyrelay.compiled import Compiled


def jit(
    function: Callable[..., Any] | None = None, *, pure: bool = False, device: str | None = None
) -> Any:
    """Compile a Python function over NumPy arrays; `@jit` and `@jit()` are the same.

    The result is called like the function. It compiles at the first call with arguments of a new
    structure or element type; other array sizes need no new compilation. Arguments that the
    function writes into are written, as plain Python would; with `pure=True` a call that would
    write to anything of the caller's is an error that shows where. `py` is the function.

    device: where it runs, "cpu", "cuda", "cuda:1" (a GPU by its number) or "cuda_emulator"; None
    for what the settings say. What the function calls runs there as well. Raises ConfigError for
    another name; a PyrelayError, at the first call, for what cannot be compiled or where the device
    cannot be used; and whatever the function raises.

    >>> @pyrelay.jit
    ... def distance(x, y):
    ...     return np.sqrt(np.sum((x - y) ** 2))
    >>> float(distance(np.array([1.0, 2.0]), np.array([4.0, 6.0])))
    5.0
    """
    if function is None:
        return functools.partial(jit, pure=pure, device=device)
    device = None if device is None else config.checked("device", device)
    if isinstance(function, Compiled):
        kind, inner, options = function.__pyrelay__
        if pure and kind == "jit":
            options = {**options, "pure": True}
        if options == function.__pyrelay__[2] and device in (None, function.device):
            return function
        return Compiled(kind, inner, options, device or function.device)
    if isinstance(function, BoundMethod):
        made = jit(function.__func__, pure=pure, device=device)
        return function if made is function.__func__ else BoundMethod(made, function.__self__)
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(jit(function.__func__, pure=pure, device=device))
    _check_callable(function, "jit")
    return Compiled("jit", function, {"pure": True} if pure else {}, device)


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """The gradient of a real scalar function, compiled.

    argnums: positions of the arguments to differentiate (a tuple gives a tuple of gradients).
    argnames: their names, instead of positions. has_aux: the function returns (value, auxiliary),
    and the result is (gradient, auxiliary). The gradient has the structure, shapes and dtypes of
    the argument; leaves that are not floating are None. Raises GradientError at the call for a
    result that is no real scalar or an argument that has no derivative. Reverse mode; any order.
    device: as for `jit`; by default where a jitted function runs.

    >>> def energy(x, k):
    ...     return k * np.sum(x**2)
    >>> pyrelay.grad(energy)(np.array([1.0, 2.0]), 3.0)
    array([ 6., 12.])
    >>> pyrelay.grad(energy, argnames="k")(np.array([1.0, 2.0]), 3.0)
    5.0
    """
    return _derivative("grad", function, _options(argnums, argnames, has_aux), device)


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """Like `grad`, and gives (value, gradient), or ((value, auxiliary), gradient) with has_aux.

    >>> pyrelay.value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    return _derivative("value_and_grad", function, _options(argnums, argnames, has_aux), device)


def _derivative(
    kind: str, function: Any, options: dict[str, Any], device: str | None = None
) -> Compiled:
    """The derivative; asked for again, the one made before, so that `grad(f)(x)` compiles once.

    It is kept with the function. What `functools.wraps` copied to another function is not taken.
    """
    _check_callable(function, kind)
    if device is not None:
        device = config.checked("device", device)
    elif isinstance(function, (Compiled, BoundMethod)):
        device = function.device
    try:
        known = vars(function).setdefault("__pyrelay_derivatives__", {})
    except TypeError:  # an object without attributes of its own
        return Compiled(kind, function, options, device)
    key = (kind, device, *options.values())
    found = known.get(key)
    if found is None or found.__pyrelay__[1] is not function:
        found = known[key] = Compiled(kind, function, options, device)
    made: Compiled = found
    return made


def _options(argnums: Any, argnames: Any, has_aux: bool) -> dict[str, Any]:
    numbers = argnums if isinstance(argnums, int) else tuple(argnums)
    names = argnames if argnames is None or isinstance(argnames, str) else tuple(argnames)
    return {"argnums": numbers, "argnames": names, "has_aux": bool(has_aux)}


def _check_callable(function: Any, kind: str) -> None:
    if not callable(function):
        name = type(function).__name__
        above = isinstance(function, (property, functools.cached_property))
        hints = (f"write @{name} above @pyrelay.{kind}",) if above else ()
        raise errors.TypeMismatchError(f"{kind} takes a function, not {name}.", hints=hints)


def rebuilt(
    kind: str, function: Any, options: dict[str, Any], device: str | None
) -> Compiled:
    """What `pickle` calls for a transform that has no name of its own."""
    if kind == "jit":
        made: Compiled = jit(function, device=device, **options)
        return made
    return _derivative(kind, function, options, device)
