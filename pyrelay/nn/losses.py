"""Losses: one number (or one each, or their sum) for how far predictions are from what is wanted.

`reduction` is "mean", "sum" or "none". The classes stand along the last axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.nn.activations import log_softmax

Array = Any


def _reduced(values: Array, reduction: str) -> Array:
    if reduction == "mean":
        return np.mean(values)
    if reduction == "sum":
        return np.sum(values)
    if reduction == "none":
        return values
    raise ValueError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")


def one_hot(labels: Array, classes: int, dtype: Any = np.float32) -> Array:
    """Zeros with a one at each label: shape (*labels.shape, classes).

    A label outside 0 ... classes - 1 gives zeros.
    """
    return (np.asarray(labels)[..., None] == np.arange(classes)).astype(dtype)


def nll(
    log_probabilities: Array, labels: Array, *, ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """-log_probabilities[label]; those whose label is `ignore_index` do not count.

    log_probabilities (..., classes), integer labels (...). Raises IndexError for a label that is no
    class.
    """
    rows = log_probabilities.reshape(-1, log_probabilities.shape[-1])
    flat = labels.reshape(-1)
    places = np.arange(flat.shape[0])
    if ignore_index is None:
        return _reduced(-rows[places, flat].reshape(labels.shape), reduction)
    kept = flat != ignore_index
    losses = np.where(kept, -rows[places, np.where(kept, flat, 0)], 0)
    if reduction == "mean":
        return np.sum(losses) / np.sum(kept)
    return _reduced(losses.reshape(labels.shape), reduction)


def cross_entropy(
    logits: Array, labels: Array, *, label_smoothing: float = 0.0,
    ignore_index: int | None = None, reduction: str = "mean",
) -> Array:
    """-log softmax(logits)[label], or the sum of -labels * log softmax(logits).

    logits (..., classes); labels either integers (...), of which those equal to `ignore_index` do
    not count, or probabilities (..., classes). `label_smoothing` is the share of the probability
    that goes to all classes evenly (Szegedy et al., 2016). Raises IndexError for a label that is no
    class.
    """
    logs = log_softmax(logits)
    if labels.dtype.kind in "iu":
        losses = nll(logs, labels, ignore_index=ignore_index, reduction=reduction)
        if label_smoothing == 0.0:
            return losses
        even = -np.mean(logs, axis=-1)
        if ignore_index is None:
            smooth = _reduced(even, reduction)
        else:
            kept = labels != ignore_index
            smooth = np.where(kept, even, 0)
            if reduction == "mean":
                smooth = np.sum(smooth) / np.sum(kept)
            else:
                smooth = _reduced(smooth, reduction)
        return (1.0 - label_smoothing) * losses + label_smoothing * smooth
    share = (1.0 - label_smoothing) * labels + label_smoothing / logits.shape[-1]
    return _reduced(-np.sum(share * logs, axis=-1), reduction)


def bce_with_logits(
    logits: Array, targets: Array, pos_weight: Array | None = None, *, reduction: str = "mean"
) -> Array:
    """Binary cross entropy of sigmoid(logits): -t log(p) - (1 - t) log(1 - p), without overflow.

    `pos_weight` multiplies the first term.
    """
    if pos_weight is None:
        return _reduced(np.logaddexp(logits, 0) - logits * targets, reduction)
    weight = 1.0 + (pos_weight - 1.0) * targets
    losses = (1.0 - targets) * logits + weight * np.logaddexp(-logits, 0)
    return _reduced(losses, reduction)


def mse(predicted: Array, wanted: Array, *, reduction: str = "mean") -> Array:
    """Squared differences."""
    difference = predicted - wanted
    return _reduced(difference * difference, reduction)


def mae(predicted: Array, wanted: Array, *, reduction: str = "mean") -> Array:
    """Absolute differences."""
    return _reduced(np.abs(predicted - wanted), reduction)


def huber(
    predicted: Array, wanted: Array, delta: float = 1.0, *, reduction: str = "mean"
) -> Array:
    """Half the squared difference, beyond `delta` continued linearly (Huber, 1964)."""
    size = np.abs(predicted - wanted)
    inside = np.minimum(size, delta)
    return _reduced(inside * (size - 0.5 * inside), reduction)
