"""How compiled functions are pickled.

In: a function of `compiled.Compiled`, or the state that another process pickled. Out: what its
`__reduce__` gives: its name where it is found by that, else the Python function and its source.
"""

from __future__ import annotations

import pickle
import sys
import types as python_types
from typing import TYPE_CHECKING, Any

from pyrelay.callables import pickled_by_value

if TYPE_CHECKING:
    from pyrelay.compiled import Compiled


def reduced(compiled: Compiled) -> Any:
    """Raises pickle.PicklingError for a function that is not found by its name."""
    found: Any = sys.modules.get(compiled.__module__)
    for name in compiled.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is compiled and not (compiled.__module__ == "__main__" and pickled_by_value()):
        return compiled.__qualname__
    kind, function, options = compiled.__pyrelay__
    if pickled_by_value() and isinstance(function, python_types.FunctionType):
        from pyrelay.frontend import source

        carried = source.carried(function)
        made = type(compiled)
        return made.__new__, (made,), (kind, function, options, compiled.device, carried)
    if isinstance(function, python_types.FunctionType) and found is not function:
        raise pickle.PicklingError(
            f"{compiled!r} cannot be pickled: {compiled.__qualname__} is not found by that name in "
            f"{compiled.__module__}; define it at the top level of a module"
        )
    from pyrelay.api import rebuilt

    return rebuilt, (kind, function, options, compiled.device)


def restored(compiled: Compiled, state: Any) -> None:
    """Make an empty object what was pickled by value."""
    from pyrelay.frontend import source

    kind, function, options, device, carried = state
    source.keep_carried(carried)
    compiled.__init__(kind, function, options, device)  # type: ignore[misc]
