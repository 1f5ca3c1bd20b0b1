"""Functions whose derivative is taken in another way than from what they compute.

In: a Python function; of one whose derivative the user gives, its rule as Python functions. Out: a
callable that is the function, and has this derivative where it is differentiated, inside programs
and by transforms (`infer/custom_rules`, `infer/checkpoints`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.bound_method import BoundMethod

Function = Callable[..., Any]


class _Ruled:
    """The function itself; above a method, that of its objects."""

    device = None

    def __init__(self, function: Any) -> None:
        if not callable(function):
            kind, name = type(self).__name__, type(function).__name__
            raise errors.TypeMismatchError(f"{kind} takes a function, not {name}.")
        functools.update_wrapper(self, function)
        self.py: Function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.py(*args, **keywords)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundMethod(self, instance)

    def __repr__(self) -> str:
        name = getattr(self, "__qualname__", self.py)
        return f"<pyrelay.{type(self).__name__} of {name}>"


class checkpoint(_Ruled):  # noqa: N801 -- a decorator
    """The function, of which a derivative keeps only the arguments, and runs it again.

    It computes what the function computes. In reverse mode what a function computes on the way is
    kept until its derivative is taken; of this one only the arguments are, captured arrays
    included, and the function runs once more: half as much again in time, for the memory of a layer
    in place of that of all. For functions in programs, in loops, nested, with any structure of
    arguments and results; derivatives have any order and both modes. Called from Python it is the
    function. Where the size of a result is known only when the function has run, its derivative is
    as without `checkpoint`.

    >>> @pyrelay.checkpoint
    ... def layer(h, w):
    ...     return np.tanh(h @ w)
    >>> def loss(w, h):
    ...     for k in range(len(w)):
    ...         h = layer(h, w[k])
    ...     return np.sum(h * h)
    >>> pyrelay.grad(loss)(np.ones((3, 2, 2)), np.ones((5, 2))).shape
    (3, 2, 2)
    """

    @property
    def __pyrelay__(self) -> tuple[str, Any, dict[str, Any]]:
        return "checkpoint", self.py, {}


class custom_vjp(_Ruled):  # noqa: N801 -- a decorator
    """The function, with a derivative of the user's own; give it by `def_vjp` or by `defvjp`.

    The rule is an ordinary function, compiled with the program, and must be linear in the cotangent
    for forward mode, which transposes it. It returns a tuple with a cotangent for each argument of
    the function, of the argument's structure and shape; None stands for zeros, as for arguments
    that are not floating. Nothing flows to what the function captures. Called from Python it is the
    function. Raises GradientError, where a program calls it, if there is no rule or it does not
    fit.

    >>> @pyrelay.custom_vjp
    ... def clipped(x):
    ...     return np.clip(x, -1.0, 1.0)
    >>> @clipped.def_vjp
    ... def slope(cotangent, value, x):       # straight through
    ...     return (cotangent,)
    >>> pyrelay.grad(lambda x: np.sum(clipped(x) ** 2))(np.array([0.5, 3.0]))
    array([1., 2.])
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._rules: tuple[Function | None, Function | None, Function | None] = (None,) * 3

    @property
    def __pyrelay__(self) -> tuple[str, Any, dict[str, Any]]:
        return "custom_vjp", self.py, {"rules": self._rules}

    def def_vjp(self, rule: Function) -> Function:
        """Give the rule: rule(cotangent, value, *arguments) -> cotangents. A decorator."""
        self._give((None, None, rule))
        return rule

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Give the rule in two halves, as JAX has them.

        forward(*arguments) -> (value, residuals) stands for the function in programs;
        backward(residuals, cotangent) -> cotangents.
        """
        self._give((forward, backward, None))

    def _give(self, rules: tuple[Function | None, Function | None, Function | None]) -> None:
        if self._rules != (None,) * 3:
            raise errors.InvalidValueError(
                f"{self!r} has a rule already, and programs may have been compiled with it."
            )
        if not all(rule is None or callable(rule) for rule in rules):
            raise errors.TypeMismatchError("the rule of a derivative is made of functions.")
        self._rules = rules
