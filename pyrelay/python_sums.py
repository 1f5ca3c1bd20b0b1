"""What Python's `sum` does step by step.

In: what there is so far, `(total, lost)`, from `(start, 0.0)` on, and an item. Out: the same with
the item. Since 3.12 `sum` carries along what floats lose by rounding (Neumaier, "Rundungsfehler-
analyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974), and adds it at the end.
"""

from __future__ import annotations

import math
import sys
from typing import Any

CARRIES = sys.version_info >= (3, 12)
"""Whether `sum` does so in this Python."""


def with_item(so_far: tuple[Any, float], item: Any) -> tuple[Any, float]:
    """One step: the total with an item."""
    total, lost = so_far
    if type(total) is float and type(item) is float:
        lost += rounding_error(total, item)
    return total + item, lost


def rounding_error(a: float, b: float) -> float:
    """What a + b loses by rounding (Knuth, volume 2, section 4.2.2, theorem B)."""
    s = a + b
    part = s - a
    return (a - (s - part)) + (b - part)


def total_of(so_far: tuple[Any, float]) -> Any:
    """The sum when all items are in. What was lost is finite unless the total is not."""
    total, lost = so_far
    return total + lost if lost != 0.0 and math.isfinite(lost) else total


__all__ = ["CARRIES", "rounding_error", "total_of", "with_item"]
