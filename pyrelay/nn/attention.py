"""Layers of language models: affine maps, embeddings, attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.nn.activations import softmax

Array = Any


def dense(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight + bias: [..., inputs] times [inputs, outputs]."""
    y = x @ weight
    return y if bias is None else y + bias


def embedding(table: Array, ids: Array) -> Array:
    """The rows of a table [count, size] by integer ids [...]: [..., size].

    Raises IndexError for an id that is no row.
    """
    return table[ids]


def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, *, causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(query key' scale) value (Vaswani et al., 2017, section 3.2.1).

    query    [..., targets, size], key [..., sources, size], value [..., sources, outputs]
    mask     broadcasts to [..., targets, sources]: of bools, true where a source takes part; of
             floats, added to the products
    causal   target k takes sources up to k only
    scale    1 / sqrt(size) by default

    A target without any source gets zeros.
    """
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ np.swapaxes(key, -1, -2)) * factor
    if mask is not None and mask.dtype.kind != "b":
        scores = scores + mask
        mask = None
    if causal:
        order = np.arange(key.shape[-2]) <= np.arange(query.shape[-2])[:, None]
        mask = order if mask is None else mask & order
    return softmax(scores, where=mask) @ value
