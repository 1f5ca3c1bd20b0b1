"""Functions whose derivative the user gives.

In: a Python function, and its rule as Python functions. Out: a callable that is the function, and
has this derivative where it is differentiated, inside programs and by transforms
(`infer/custom_rules`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyrelay import errors

Function = Callable[..., Any]


class custom_vjp:  # noqa: N801 -- a decorator
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
        if not callable(function):
            name = type(function).__name__
            raise errors.TypeMismatchError(f"custom_vjp takes a function, not {name}.")
        functools.update_wrapper(self, function)
        self.py: Function = function
        self._rules: tuple[Function | None, Function | None, Function | None] = (None,) * 3

    @property
    def __pyrelay__(self) -> tuple[str, Any, dict[str, Any]]:
        return "custom_vjp", self.py, {"rules": self._rules}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.py(*args, **keywords)

    def __repr__(self) -> str:
        return f"<pyrelay.custom_vjp of {getattr(self, '__qualname__', self.py)}>"

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
