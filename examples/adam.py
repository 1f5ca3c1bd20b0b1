"""Adam (Kingma and Ba, 2015, algorithm 1) over a dict of parameters, in plain NumPy.

Called from a compiled training step it is compiled with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Tree = dict[str, Any]


def zeros_like(params: Tree) -> Tree:
    """A dict of zeros in the shapes of `params`: what both averages start from."""
    return {name: np.zeros_like(value) for name, value in params.items()}


def adam(
    params: Tree, slope: Tree, mean: Tree, square: Tree, step: float, rate: float
) -> tuple[Tree, Tree, Tree]:
    """One update: new parameters, new averages of the slope and of its square.

    `step` counts from 1.
    """
    new_params, new_mean, new_square = {}, {}, {}
    for name in params:
        m = 0.9 * mean[name] + 0.1 * slope[name]
        s = 0.999 * square[name] + 0.001 * slope[name] * slope[name]
        unbiased = m / (1.0 - 0.9**step)
        scale = np.sqrt(s / (1.0 - 0.999**step)) + 1e-8
        new_params[name] = params[name] - rate * unbiased / scale
        new_mean[name] = m
        new_square[name] = s
    return new_params, new_mean, new_square
