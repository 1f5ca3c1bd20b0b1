"""What users are told of functions that compile: that it takes long, or is done again and again,
or that they write what they were not to.

In: the function's name, and what is known of its programs. Out: a line of the logger "pyrelay",
which Python prints on standard error unless the program says otherwise, a RuntimeWarning, or what
is raised.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pyrelay import config, errors
from pyrelay.tracebacks import frames_to_the_user

PATIENCE = 5.0
"""Seconds that a call may compile before its user is told what it is waiting for."""


def tell_of_long_compilation(name: str, kind: str) -> None:
    """Log, as a warning, that a call is not hanging: it compiles this function.

    kind: `jit`, `grad` or another transform.
    """
    import logging

    what = name if kind == "jit" else f"{kind} of {name}"
    if config.current().cache:
        kept = "What it makes is kept on disk, where later processes find it."
    else:
        kept = "PYRELAY_CACHE is off: with it, later processes would find on disk what it makes."
    logging.getLogger("pyrelay").warning(
        "pyrelay has been compiling %s for %.0f seconds, and goes on. %s Ahead of time, "
        "explain(...) of it, with arguments of these types, compiles without running it, and says "
        "where the time goes.",
        what, PATIENCE, kept,
    )  # fmt: skip


def warn_of_many_programs(name: str, count: int, binding: Any) -> None:
    """Warn that a function is compiled again and again, and say why."""
    static = ", ".join(dict.fromkeys(binding.leaf_names[leaf] for leaf in binding.static))
    why = f"the value of {static} has to be known" if static else "what it reads keeps changing"
    warnings.warn(
        f"pyrelay compiled {name} {count} times for arguments of the same types, because {why}; "
        "f.explain() says more.",
        RuntimeWarning, stacklevel=frames_to_the_user(),
    )


__all__ = ["PATIENCE", "tell_of_long_compilation", "warn_of_many_programs"]


def impure(writes: Sequence[tuple[str, Any]]) -> errors.PyrelayError:
    """What is raised where a function writes that jit(pure=True) does not let."""
    (name, span), *others = writes
    return errors.UnsupportedOperationError(
        f"this function writes into {name}, and jit(pure=True) does not allow it.", span=span,
        related=[(s, f"and into {n}") for n, s in others if s is not None],
        hints=("work on a copy: x = x.copy(), or use jit without pure=True",),
    )
