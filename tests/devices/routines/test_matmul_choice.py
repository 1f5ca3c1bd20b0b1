"""The ways that a product is expected to go are those that it goes."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.compiler import native
from pyrelay.devices.compiler.kernel_compiler import kernel_object
from pyrelay.devices.routines.made_of import WAYS, called_by
from pyrelay.devices.routines.matmul import matmul_kernel, native_vector_bits, product_name, units
from pyrelay.devices.routines.matmul_choice import LOW, ways
from pyrelay.ir.types import f32
from tests.devices.running_kernels import run_at

_NAMES = [name for names in WAYS.values() for name in names]
_WAY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@pytest.fixture(scope="module")
def product() -> tuple[int, list[str], Any]:
    """A product whose ways do nothing but say that they were taken: its address, and their names
    in order."""
    taken: list[str] = []
    form = product_name(f32, native_vector_bits())
    part = f"from pyrelay.devices.routines.matmul_blocks import product_{form}\n"
    kept = {
        name: _WAY(lambda _, name=name: taken.append(name.replace(f"_{form}", "")) or 0)
        for name in called_by(part)
    }
    known = {name: ctypes.cast(each, ctypes.c_void_p).value or 0 for name, each in kept.items()}
    code = kernel_object(part, "part")
    address = native.load_all(code, (f"product_{form}",), known)[f"product_{form}"]
    kernel = kernel_object(matmul_kernel(f32), "kernel")
    linked = native.load_all(kernel, ("pyrelay_kernel",), {f"product_{form}": address})
    return linked["pyrelay_kernel"], taken, kept


SIZES = [1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65, 100, 128, 200, 256]


@pytest.mark.parametrize("transposed", list(itertools.product([False, True], repeat=2)))
def test_ways_are_those_that_products_of_all_sizes_take(
    product: Any, transposed: tuple[bool, bool]
) -> None:
    address, taken, _ = product
    lanes = native_vector_bits() // 32
    room = np.zeros(3 << 20, np.float32)
    a = b = c = room[-room.ctypes.data % 64 // 4 :]
    missed, spare = [], []
    for m, n, k in itertools.product(SIZES, [*SIZES, 500], [1, 7, 32, 100, 256, 600, 1500]):
        taken.clear()
        lines = k if not transposed[0] else m, n if not transposed[1] else k, n
        form = [*map(int, transposed), 0, *lines, 0, 0, 0]
        count = units(m, n)
        run_at(address, a, b, c, m, n, k, *form, ranges=[(0, count)])
        if m * n * k >= 1 << 20:
            cuts = [count * piece // 8 for piece in range(9)]
            run_at(address, a, b, c, m, n, k, *form, ranges=list(itertools.pairwise(cuts)))
        foreseen = set(ways((m, n, k), *transposed, lanes, 4))
        if not set(taken) <= foreseen:
            missed.append((m, n, k, sorted(taken), sorted(foreseen)))
        more = foreseen - set(taken) - {"small_stack"}  # which is for many
        if m > LOW or more != {"in_place"}:  # which is for what is not aligned
            spare += more
    assert missed == []
    assert len(spare) < 20


def test_all_ways_are_expected_of_unknown_extents_but_for_a_single_row_or_column() -> None:
    every = [name for name in _NAMES if name != "panel_row"]  # which loops ask for
    assert list(ways((None, 5, 7), False, False, 16, 4)) == every
    assert list(ways((1, None, None), False, False, 16, 4)) == ["vector_lines"]
    assert list(ways((1, None, None), False, True, 16, 4)) == ["vector_dots"]
    assert list(ways((None, 1, None), True, False, 16, 4)) == ["vector_lines"]
    assert list(ways((None, 1, None), False, False, 16, 4)) == ["vector_dots"]
