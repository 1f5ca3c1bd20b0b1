"""The element types that tests can have arrays of: all, but bfloat16 only beside ml_dtypes."""

from __future__ import annotations

from importlib.util import find_spec

from pyrelay.ir.types import DTYPES

HERE = [d for d in DTYPES.values() if d.own is not None or find_spec("ml_dtypes") is not None]
