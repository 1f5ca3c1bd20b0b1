"""Names for parts of a program.

In: `with pyrelay.scope("attention"):` around statements of a function. Out: nothing else happens;
`f.code(...)` shows the name at the kernels that compute those statements.
"""

from __future__ import annotations

from types import TracebackType


class scope:  # noqa: N801 -- used like a function
    """A context that names the statements inside it: `with pyrelay.scope("attention"):`.

    Scopes nest. Compiled or not, it has no effect on what is computed.

    >>> @pyrelay.jit
    ... def scaled(x):
    ...     with pyrelay.scope("largest"):
    ...         top = np.max(x)
    ...     return x / top
    >>> scaled(np.array([1.0, 4.0]))
    array([0.25, 1.  ])
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a scope is a string, not {name!r}")
        self.name = name

    def __enter__(self) -> scope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing."""

    def __repr__(self) -> str:
        return f"pyrelay.scope({self.name!r})"
