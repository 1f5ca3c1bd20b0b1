"""How many bins a histogram has by the name of a rule, as NumPy counts them.

In: the numbers, the name, the least and the greatest edge. Out: the number of bins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

Array = Any

_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "sturges")


def count_of_bins(x: Array, rule: str, first: Any, last: Any, whole: bool) -> Any:
    """The number of bins between two edges; `whole`: these are the extremes of all numbers."""
    if rule == "stone":
        refuse("bins by the rule 'stone' are not compiled")
    if rule not in _RULES:
        raise ValueError(f"'{rule}' is not a valid estimator for `bins`")
    kept = x if whole else x[(x >= first) & (x <= last)]
    if kept.shape[0] == 0:
        return 1
    width = _width(kept, rule)
    if width == 0:
        return 1
    if x.dtype.kind in "iu":
        width = np.maximum(width, 1.0)
    reach = _reach(kept) if whole else 0.0
    return int(np.ceil((reach if reach > 0 else last - first) / width))


def _reach(x: Array) -> Any:
    """From the least to the greatest, in the type of floats."""
    if x.dtype.kind == "f":
        return np.max(x) - np.min(x)
    return np.float64(np.max(x)) - np.float64(np.min(x))


def _width(x: Array, rule: str) -> Any:
    size = x.shape[0]
    if rule == "sqrt":
        return _reach(x) / np.sqrt(size)
    if rule == "sturges":
        return _reach(x) / (np.log2(size) + 1.0)
    if rule == "rice":
        return _reach(x) / (2.0 * size ** (1.0 / 3))
    if rule == "scott":
        return (24.0 * math.pi**0.5 / size) ** (1.0 / 3.0) * np.std(x)
    if rule == "doane":
        return _doane(x)
    high, low = np.percentile(x, 75), np.percentile(x, 25)
    between = 2.0 * (high - low) * size ** (-1.0 / 3.0)
    if rule == "fd":
        return between
    few = np.maximum(between, _reach(x) / np.sqrt(size) / 2)  # not too many bins, that is
    return np.minimum(few, _reach(x) / (np.log2(size) + 1.0))


def _doane(x: Array) -> Any:
    """Sturges' rule with bins for what is not symmetric."""
    size = x.shape[0]
    spread = np.std(x)
    if size <= 2 or spread <= 0.0:
        return np.float64(0.0)
    usual = np.sqrt(6.0 * (size - 2) / ((size + 1.0) * (size + 3)))
    skew = np.mean(((x - np.mean(x)) / spread) ** 3)
    return _reach(x) / (1.0 + np.log2(size) + np.log2(1.0 + np.absolute(skew) / usual))
