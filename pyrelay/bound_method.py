"""A compiled function that is an attribute of a class, read from one of its objects.

In: a compiled function, or one with a derivative of its own, and an object. Out: what is called,
differentiated, pickled and looked into without naming the object.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types as python_types
from typing import Any

from pyrelay.annotations import signature_of


def unbound(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What is called, with which arguments: of a bound method the function, its object first."""
    function = as_bound(function)
    if isinstance(function, BoundMethod):
        return function.__func__, (function.__self__, *args)
    return function, args


def as_bound(function: Any) -> Any:
    """A method of a compiled function as one of ours: `classmethod` gives Python's since 3.13."""
    if isinstance(function, python_types.MethodType) and hasattr(function.__func__, "__pyrelay__"):
        return BoundMethod(function.__func__, function.__self__)
    return function


class BoundMethod:
    """A compiled method of one object: called, and looked into, without naming the object."""

    __slots__ = ("__func__", "__self__", "__weakref__")

    def __init__(self, function: Any, instance: Any) -> None:
        self.__func__, self.__self__ = function, instance

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.__func__(self.__self__, *args, **keywords)

    @property
    def __pyrelay__(self) -> tuple[str, Any, dict[str, Any]]:
        kind, function, options = self.__func__.__pyrelay__
        return kind, python_types.MethodType(function, self.__self__), options

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:  # while a copy is made
            raise AttributeError(name)
        found = getattr(self.__func__, name)
        if name in ("ir", "code", "lower", "compare"):
            return functools.partial(found, self.__self__)
        if name == "explain":  # without arguments, of all programs

            def explain(*args: Any, **keywords: Any) -> Any:
                given = args or keywords
                return found(self.__self__, *args, **keywords) if given else found()

            return explain
        if name == "py":
            return python_types.MethodType(found, self.__self__)
        return found

    @property
    def __signature__(self) -> inspect.Signature:
        signature = signature_of(self.__func__)
        return signature.replace(parameters=tuple(signature.parameters.values())[1:])

    def __reduce__(self) -> Any:
        name = self.__func__.__name__
        if getattr(self.__self__, name, None) == self:
            return getattr, (self.__self__, name)
        return BoundMethod, (self.__func__, self.__self__)

    def __copy__(self) -> BoundMethod:
        return self

    def __deepcopy__(self, memo: Any) -> BoundMethod:
        return BoundMethod(self.__func__, copy.deepcopy(self.__self__, memo))

    def __repr__(self) -> str:
        return f"<bound method {self.__func__!r} of {self.__self__!r}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundMethod) and self.__func__ is other.__func__
            and self.__self__ is other.__self__
        )

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))
