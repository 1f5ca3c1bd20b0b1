"""What users call: `jit`, `grad`, `vmap`, and derivatives of many results.

In: Python functions. Out: callables that specialise themselves by the structure and types of their
arguments, keep what they compiled, and notice when a name they read means something else now
(`compiled.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyrelay import config, errors
from pyrelay.bound_method import BoundMethod, as_bound
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
    function = as_bound(function)
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
    return _transform("grad", function, _options(argnums, argnames, has_aux), device)


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """Like `grad`, and gives (value, gradient), or ((value, auxiliary), gradient) with has_aux.

    >>> pyrelay.value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    return _transform("value_and_grad", function, _options(argnums, argnames, has_aux), device)


def jacobian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """All derivatives of all results of a function, compiled: by columns or by rows.

    By columns (`jacfwd`) unless there are fewer results than numbers to differentiate by, as far as
    the shapes tell. Options as for `grad`. For a result of shape r and an argument of shape a it is
    an array of shape r + a. Results and arguments may be structures: it has the structure of the
    result, with the structure of the argument at each number or array, and None where an argument
    is not floating. Raises GradientError at the call for arguments without derivatives.

    >>> pyrelay.jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    return _transform("jacobian", function, _options(argnums, argnames, has_aux), device)


def jacfwd(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """`jacobian` by forward mode: one run of the function with tangents for each column.

    >>> pyrelay.jacfwd(lambda t: np.array([np.cos(t), np.sin(t)]))(0.0)
    array([-0.,  1.])
    """
    return _transform("jacfwd", function, _options(argnums, argnames, has_aux), device)


def jacrev(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """`jacobian` by reverse mode: one run of the function and its adjoint for each row.

    >>> pyrelay.jacrev(lambda x: np.array([x @ x]))(np.array([1.0, 2.0]))
    array([[2., 4.]])
    """
    return _transform("jacrev", function, _options(argnums, argnames, has_aux), device)


def hessian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
    *, device: str | None = None,
) -> Compiled:
    """All second derivatives, compiled: forward mode over reverse mode, one column after the other.

    Options and structure as for `jacobian`, applied twice.

    >>> pyrelay.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    return _transform("hessian", function, _options(argnums, argnames, has_aux), device)


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: bool = False, *, device: str | None = None,
) -> Any:
    """The value of function(*primals), and its derivative along tangents of the arguments.

    primals, tangents: as many; a tangent has the structure and the shapes of its argument, and is
    ignored, or None, where that is not floating; None stands for zeros everywhere. The derivative
    has the structure of the value. Forward mode: it costs about as much again as the function,
    and keeps nothing. With has_aux the function returns (value, auxiliary), and auxiliary is last.
    Raises GradientError for tangents that do not fit.

    >>> pyrelay.jvp(lambda x: x**3, (2.0,), (1.0,))
    (8.0, 12.0)
    """
    made = _transform("jvp", function, {"has_aux": bool(has_aux)}, device)
    points, moves = (tuple(v) if isinstance(v, list) else v for v in (primals, tangents))
    return made(points, moves)


def vjp(
    function: Callable[..., Any], *primals: Any, has_aux: bool = False, device: str | None = None
) -> Any:
    """The value of function(*primals), and what takes cotangents of it to those of the arguments.

    The second result is a function, which may be called often: its argument has the structure and
    the shapes of the value, None standing for zeros, and it gives a tuple with a cotangent for each
    argument, for what the arguments were when `vjp` was called. It keeps what it needs of the run
    of the function, so it costs the backward pass alone. Where the derivative goes through a
    `while` loop or a recursion, and inside compiled functions, it runs the function again instead,
    with its prints and what it reads and writes elsewhere. With has_aux the function returns
    (value, auxiliary), and auxiliary is last.
    Raises GradientError, when that is called, for cotangents that do not fit.

    >>> y, pullback = pyrelay.vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    from pyrelay.pullbacks import with_pullback

    options = {"has_aux": bool(has_aux)}
    value, pullback = with_pullback(
        _transform("vjp", function, options, device),
        _transform("pullback", function, options, device),
        _transform("jit", function, {}, device), primals,
    )
    return (value[0], pullback, value[1]) if has_aux else (value, pullback)


def hvp(
    function: Callable[..., Any], x: Any, v: Any, *args: Any, device: str | None = None,
    **keywords: Any,
) -> Any:
    """The Hessian of function(x, *args, **keywords) by x, a real scalar, times v.

    v has the structure and the shapes of x. Forward mode over the gradient: no matrix is made.

    >>> pyrelay.hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    return _transform("hvp", function, {}, device)(x, v, *args, **keywords)


def vmap(
    function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0,
    *, device: str | None = None,
) -> Compiled:
    """The function for many examples, compiled: a call for each, the results stacked.

    `vmap(f)(x)` gives what `np.stack([f(x[i]) for i in range(len(x))])` gives: each example takes
    its own branches and rounds of loops, writes into its own part of what is mapped, and raises
    what it raises. A number as result becomes an array of one axis.

    in_axes: the axis of examples: for all arguments, or a tuple with an entry for each. An entry is
    an int, None for what all examples share, or, for an argument that is a tuple, list, dict or
    object, a structure alike with such entries (for an object, a dict by attribute). Arguments by
    name that have no entry are mapped over the first axis. out_axes: where the axis of examples
    lies in the result, likewise; None for a part that does not depend on the examples. The result
    has the structure of f's, and no example gives arrays of no rows. device: as for `jit`.

    Raises, at the call: ShapeError where arguments have different numbers of examples;
    InvalidValueError for axes that do not fit, or where nothing is mapped; TypeMismatchError for a
    result that cannot be stacked.

    >>> def steps(n):
    ...     count = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         count += 1
    ...     return count
    >>> pyrelay.vmap(steps)(np.array([1, 2, 3, 27]))
    array([  0,   1,   7, 111])
    """
    options = {"in_axes": _axes(in_axes), "out_axes": _axes(out_axes)}
    return _transform("vmap", function, options, device)


def _axes(axes: Any) -> Any:
    """Axes as they are now: what the caller changes later is not seen."""
    if type(axes) in (list, tuple):
        return tuple(map(_axes, axes))
    return {k: _axes(v) for k, v in axes.items()} if isinstance(axes, dict) else axes


def _transform(
    kind: str, function: Any, options: dict[str, Any], device: str | None = None
) -> Compiled:
    """The transform; asked for again, the one made before, so that `grad(f)(x)` compiles once.

    It is kept with the function. What `functools.wraps` copied to another function is not taken.
    """
    function = as_bound(function)
    _check_callable(function, kind)
    made_of: type[Compiled] = Compiled
    if kind == "vjp":
        from pyrelay.pullbacks import WithPullback

        made_of = WithPullback
    if device is not None:
        device = config.checked("device", device)
    elif isinstance(function, (Compiled, BoundMethod)):
        device = function.device
    try:
        known = vars(function).setdefault("__pyrelay_derivatives__", {})
    except TypeError:  # an object without attributes of its own
        return made_of(kind, function, options, device)
    key = (kind, device, *map(repr, options.values()))
    found = known.get(key)
    if found is None or found.__pyrelay__[1] is not function:
        found = known[key] = made_of(kind, function, options, device)
    made: Compiled = found
    return made


def _options(argnums: Any, argnames: Any, has_aux: bool) -> dict[str, Any]:
    several = isinstance(argnums, Iterable)
    numbers = tuple(argnums) if several else argnums
    if not all(hasattr(n, "__index__") for n in (numbers if several else (numbers,))):
        raise TypeError(
            f"argnums is the position of an argument, or several, not {argnums!r}; "
            "argnames is for names"
        )
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
    return _transform(kind, function, options, device)
