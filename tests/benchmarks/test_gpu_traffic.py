"""Kernels, launches and bytes of the programs that are timed on GPUs: none may become more unseen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks import gpu_programs as gpu
from benchmarks import gpu_traffic
from benchmarks.gpu_programs import COUNTED, f32
from benchmarks.gpu_traffic import DOCUMENT, Part, Row, launched, measured, row_of, table

#: Launches, products of a library, and for each kernel, or what takes its place, how many they are
#: and how often they ask for the least bytes.
PINNED: dict[str, tuple[int, int, list[tuple[int, float]]]] = {
    "elementwise 1M": (1, 0, [(1, 1.0)]),
    "softmax 4096x512": (1, 0, [(1, 1.0)]),
    "softmax 512x32768": (1, 0, [(1, 1.0)]),
    "softmax 8x128k": (3, 0, [(3, 2.016)]),
    "layer norm 4096x8k": (1, 0, [(1, 2.0)]),
    "cross entropy 4096x8k": (2, 0, [(1, 1.0), (2, 1.0)]),
    "sums of 8 rows of 1M": (2, 0, [(2, 1.001)]),
    "argmax of 16M": (3, 0, [(3, 2.0)]),
    "gradient of perceptron": (3, 5, [(1, 1.0), (1, 1.0), (1, 1.0)]),
    "LSTM of 64 steps, 32 wide": (1, 0, [(1, 1.0), (1, 2.449)]),
    "LSTM of 256 steps, 256 wide, 64 at once": (3, 2, [(1, 1.0), (1, 1.0), (1, 3.678)]),
    "characters, 256 wide": (3, 0, [(2, 1.989)]),
    "51 operations on 10k": (1, 0, [(2, 25.534)]),
    "training of a perceptron 1024-4096-1024, 4096 rows, in TF32": (
        3, 5, [(1, 1.0), (1, 1.0), (1, 1.0)]
    ),
}  # fmt: skip


def seen(row: Row) -> tuple[int, int, list[tuple[int, float]]]:
    parts = [(part.kernels, round(part.moved / part.least, 3)) for part in row.parts]
    return row.launches, row.products, parts


@pytest.mark.parametrize("name", PINNED)
def test_programs_launch_and_ask_for_no_more_than_they_did(name: str) -> None:
    row = row_of(name, *COUNTED[name])
    assert not row.failed
    assert seen(row) == PINNED[name]


def test_a_transformer_block_launches_no_more_than_it_did() -> None:
    function, _, _ = COUNTED["transformer block 2048 x 1024 in TF32"]
    row = row_of("small", function, (
        f32(64, 256), *(f32(256, 256) for _ in range(4)), f32(256, 512), f32(512, 256)
    ))  # fmt: skip
    assert (row.launches, row.products) == (9, 6)
    assert all(part.moved == part.least for part in row.parts)


def test_softmax_is_one_kernel_that_reads_its_row_once() -> None:
    row = measured("small", gpu.softmax, (f32(64, 100),))
    array = 64 * 100 * 4
    [part] = row.parts
    assert part == Part("max_subtract_exp_sum", 1, 1, 2 * array, 2 * array)
    assert table([row]).splitlines()[-1].endswith("| 0.051 | 0.051 | 1.00 | 1.00 |")


def test_small_arrays_that_are_read_again_come_from_the_cache() -> None:
    [part] = measured("small", gpu.layer_norm, (f32(64, 96), f32(96), f32(96))).parts
    assert part.again == part.moved - part.least
    assert part.again == 63 * 2 * 96 * 4


def test_of_an_array_the_part_counts_that_is_asked_for() -> None:
    def first(x: Any) -> Any:
        return x[:10] * 2

    [part] = measured("small", first, (f32(1000),)).parts
    assert (part.moved, part.least) == (80, 80)


def test_programs_with_control_flow_are_told_to_be_not_counted() -> None:
    def newton(x: Any) -> Any:
        for _ in range(3):
            x = x / np.abs(x).max()
        return x

    with pytest.raises(ValueError, match="control flow"):
        measured("loop", newton, (np.ones(5000),))
    row = row_of("loop", newton, (np.ones(5000),))
    assert table([row]).splitlines()[-1] == (
        "| loop | 1 | programs with control flow are not counted | | | | |"
    )


def test_products_are_a_library_s_and_launches_are_counted_beside_them() -> None:
    def layer(x: Any, w: Any, b: Any) -> Any:
        return np.tanh(x @ w + b)

    assert launched(pyrelay.jit(layer), (f32(300, 200), f32(200, 300), f32(300))) == (1, 1)


def test_the_table_is_put_in_its_place() -> None:
    page = f"before\n\n{gpu_traffic.HEAD}\n|---|\n| old |\n\nbehind\n"
    told = table([Row("new", (Part("sum", 2, 2, 3_000_000, 2_000_000),), launches=2, products=1)])
    assert gpu_traffic.replaced(page, told) == f"before\n\n{told}\n\nbehind\n"
    assert told.endswith(
        "| new | 2 and a product | `sum`, 2 kernels | 3.000 | 2.000 | 1.50 | 1.50 |"
    )


@pytest.mark.slow
def test_the_table_of_the_docs_is_what_is_counted_now() -> None:
    pytest.importorskip("ml_dtypes")  # for the programs in bfloat16
    rows = [row_of(name, *program) for name, program in COUNTED.items()]
    assert table(rows) in DOCUMENT.read_text(encoding="utf-8")
