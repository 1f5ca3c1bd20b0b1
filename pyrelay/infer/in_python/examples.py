"""The loops over examples that `pyrelay.vmap` stands for.

In: a function that calls the mapped one for example i (`names/mapping.py` makes it) and gives the
leaves of its result, and how many examples there are. Out: the leaves of all examples, stored in
arrays that were made before the loop, or stacked after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def mapped(function: Any, in_axes: Any, out_axes: Any, *args: Any, **keywords: Any) -> Any:
    """What `vmap(function, in_axes, out_axes)(*args, **keywords)` calls; entered as a name."""
    raise NotImplementedError


def example(
    function: Any, in_axes: Any, args: Any, keywords: Any, described: Any, index: int
) -> Any:
    """The leaves of `function` for one example; entered as a name."""
    raise NotImplementedError


def stored(call: Any, count: int, apart: Any, same: Any) -> None:
    """Each example's leaves stored in row i of `apart`; those that do not differ, in `same`."""
    for i in range(count):
        own, shared = call(i)
        for out, leaf in zip(apart, own, strict=True):
            out[i] = leaf
        for out, leaf in zip(same, shared, strict=True):
            out[...] = leaf


def listed(call: Any, count: int) -> list[Any]:
    """Each example's leaves, where the shapes are known only once they are computed."""
    return [call(i)[0] for i in range(count)]


def column(rows: list[Any], k: int) -> Array:
    """Leaf k of all examples. Raises ValueError if the shapes differ, as np.stack does."""
    return np.stack([row[k] for row in rows])
