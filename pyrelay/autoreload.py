"""IPython's `%autoreload`: compiled functions follow an edited module as plain functions do.

In: the class of compiled functions. Out: a rule in IPython's own table of what to do with an object
of a module that was loaded again. For a plain function IPython puts the new code into the old
object; for a compiled one the same is done to the function below it, and guards notice.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_EXTENSION = "IPython.extensions.autoreload"


def follow_autoreload(compiled: type) -> None:
    """Enter the rule, once, if the extension is loaded; it is when a module is loaded again."""
    extension: Any = sys.modules.get(_EXTENSION)
    if extension is None or any(getattr(r[1], "ours", False) for r in extension.UPDATE_RULES):
        return

    def matches(old: Any, new: Any) -> bool:
        return isinstance(old, compiled) and isinstance(new, compiled)

    def update(old: Any, new: Any) -> None:
        extension.update_generic(old.py, new.py)
        functools.update_wrapper(old, old.py)

    update.ours = True  # type: ignore[attr-defined]
    extension.UPDATE_RULES.append((matches, update))
