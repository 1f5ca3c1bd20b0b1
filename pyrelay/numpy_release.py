"""Which release of NumPy runs, for what its releases do differently.

In: nothing. Out: `RELEASE`, its first two numbers.
"""

from __future__ import annotations

import numpy as np

RELEASE: tuple[int, int] = tuple(map(int, np.__version__.split(".")[:2]))  # type: ignore[assignment]

__all__ = ["RELEASE"]
