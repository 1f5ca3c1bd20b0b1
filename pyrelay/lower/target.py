"""What the planner asks of a device: the text of its kernels, and its library.

In: nothing; `devices` makes one per kind of device. Out: `Target`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyrelay.ir.types import DType
from pyrelay.lower.kernel import Kernel


@dataclass(frozen=True, slots=True)
class MatmulKernel:
    """A matrix product. Parameters in order: addresses of a, b and c; m, n, k; 1 or 0 for whether a
    is transposed, whether b is, and whether the product is added to c; the number of batch axes;
    for each of them its extent and the strides of a and of b along it, in elements.

    The parallel axis counts blocks of `row_unit` by `column_unit` elements of each product, and one
    multiplication with its addition takes about `picoseconds` on a core.
    """

    source: str
    row_unit: int
    column_unit: int
    picoseconds: int


@dataclass(frozen=True, slots=True)
class Target:
    """A device as the planner sees it.

    emit    kernel IR -> source text.
    matmul  element type -> the kernel of its products.
    """

    emit: Callable[[Kernel], str]
    matmul: Callable[[DType], MatmulKernel]
