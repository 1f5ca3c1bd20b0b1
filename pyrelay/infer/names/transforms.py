"""The transforms that `in_python/fourier.py` is made of.

In: its functions that compile to an op. Out: entries in the table of names.
"""

from __future__ import annotations

from pyrelay.infer import values as V
from pyrelay.infer.in_python import fourier
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import extent
from pyrelay.infer.names.handlers import handles


@handles(fourier.transform)
def transform(it: Interpreter, x: V.Value, inverse: V.Value) -> V.Value:
    """Complex numbers to complex numbers."""
    return it.result(it.emit("fft", x, inverse=it.static(inverse, "the argument 'inverse'")))


@handles(fourier.of_real)
def of_real(it: Interpreter, x: V.Value) -> V.Value:
    """Real numbers to the first half of their frequencies."""
    return it.result(it.emit("rfft", x))


@handles(fourier.to_real)
def to_real(it: Interpreter, half: V.Value, n: V.Value) -> V.Value:
    """That half to n real numbers."""
    return it.result(it.emit("irfft", half, size=extent(it, n, "the number of points")))
