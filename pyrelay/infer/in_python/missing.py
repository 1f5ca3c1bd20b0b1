"""What errors say of a value that is not there, in plain Python that our own frontend compiles.

In: the value, and where it was looked for. Out: the text that this release of Python has.
"""

from __future__ import annotations

import sys
from typing import Any

_NAMED = sys.version_info < (3, 14)


def missing(value: Any, where: str, by: str = "index") -> Any:
    """The text of the ValueError of a method ``by`` of a ``list``, ``deque`` or ``range``."""
    return f"{value!r} is not in {where}" if _NAMED else f"{where}.{by}(x): x not in {where}"
