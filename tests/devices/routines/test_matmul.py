"""Matrix products: every form, dtype, edge size and vector width against NumPy."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.compiler import native
from pyrelay.devices.routines import matmul
from pyrelay.devices.routines.made_of import WAYS
from pyrelay.devices.routines.matmul import matmul_kernel, units
from pyrelay.ir.types import DTYPES, DType, f32, f64
from tests.devices.running_kernels import kernel_assembly, needs_vectors, run

FORMS = pytest.mark.parametrize(
    ("transpose_a", "transpose_b"), list(itertools.product([False, True], repeat=2))
)
# Sizes (m, n, k) about the tiles' and the units' edges; one row, one column, nothing at all.
SIZES = [
    (1, 1, 1), (1, 5, 7), (5, 1, 7), (1, 130, 300), (3, 70, 40), (4, 64, 0), (8, 8, 8), (9, 33, 17),
    (31, 257, 65), (33, 100, 600), (300, 1, 520), (270, 300, 257), (2, 31, 1000), (40, 16, 16),
    (40, 10, 3), (7, 1, 0), (600, 65, 9), (257, 550, 3), (2, 300, 0), (5, 531, 11), (8, 1100, 13),
    (20, 600, 41), (6, 1100, 523), (50, 75, 300), (1, 3, 101), (13, 1, 5), (7, 1, 33),
]  # fmt: skip
GUARD = 32


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype.numpy)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.kind == "c" else real).astype(
        dtype.numpy
    )


def product(
    dtype: DType,
    transposed: tuple[bool, bool],
    a: np.ndarray,
    b: np.ndarray,
    sizes: tuple[int, int, int],
    batch: tuple[tuple[int, int, int], ...] = (),
    start: np.ndarray | None = None,
    pieces: int = 1,
    vector_bits: int | None = None,
) -> np.ndarray:
    """``a @ b`` by the kernel, in ``pieces`` ranges; nothing around the result may change."""
    m, n, k = sizes
    extents = tuple(axis[0] for axis in batch)
    count = int(np.prod(extents, dtype=int)) * m * n
    buffer = np.ones(count + 2 * GUARD, dtype.numpy)
    c = buffer[GUARD : GUARD + count]
    if start is not None:
        c[:] = start.ravel()
    total = units(m, n, int(np.prod(extents, dtype=int)))
    cuts = [total * piece // pieces for piece in range(pieces + 1)]
    source = matmul_kernel(dtype, vector_bits)
    lines = a.shape[-1], b.shape[-1], n
    form = [*map(int, transposed), int(start is not None), *lines, len(batch), 0, 0]
    flat = [word for axis in batch for word in axis]
    run(source, a, b, c, m, n, k, *form, *flat, ranges=list(itertools.pairwise(cuts)))
    assert (buffer[:GUARD] == 1).all()
    assert (buffer[GUARD + count :] == 1).all()
    return c.reshape(*extents, m, n)


def stored(array: np.ndarray, transposed: bool) -> np.ndarray:
    """The array as its buffer lies in memory."""
    return np.ascontiguousarray(array.swapaxes(-1, -2) if transposed else array)


def assert_close(computed: np.ndarray, wanted: np.ndarray, k: int) -> None:
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(computed, wanted)
    else:
        tolerance = 4 * np.finfo(wanted.dtype).eps * np.sqrt(max(k, 1))
        np.testing.assert_allclose(computed, wanted, rtol=tolerance, atol=8 * tolerance)


@FORMS
@pytest.mark.parametrize("bits", [pytest.param(128, marks=pytest.mark.slow), 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_products_of_every_form_and_vector_width_agree_with_numpy(
    dtype: DType, bits: int, transpose_a: bool, transpose_b: bool
) -> None:
    needs_vectors(bits)
    rng = np.random.default_rng(0)
    form = (transpose_a, transpose_b)
    for place, (m, n, k) in enumerate(SIZES):
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
        computed = product(
            dtype, form, stored(a, transpose_a), stored(b, transpose_b), (m, n, k),
            pieces=1 + place % 3, vector_bits=bits,
        )  # fmt: skip
        assert_close(computed, a.astype(dtype.numpy) @ b, k)


@FORMS
@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.kind != "f"], ids=str)
def test_products_of_other_dtypes_agree_with_numpy(
    dtype: DType, transpose_a: bool, transpose_b: bool
) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in [(1, 1, 1), (5, 40, 7), (300, 35, 9), (3, 3, 0)]:
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
        computed = product(
            dtype, (transpose_a, transpose_b), stored(a, transpose_a), stored(b, transpose_b),
            (m, n, k), pieces=2,
        )  # fmt: skip
        assert_close(computed, a @ b, k)


@pytest.mark.parametrize("n", [200, 600])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_sums_of_a_row_are_the_same_bits_among_any_number_of_rows(dtype: DType, n: int) -> None:
    rng = np.random.default_rng(0)
    k = 523
    a, b = numbers(rng, (70, k), dtype), numbers(rng, (k, n), dtype)
    wanted = product(dtype, (False, False), a, b, (70, n, k))
    for rows in (2, 5, 8, 9, 16, 17, 40):
        computed = product(dtype, (False, False), a[:rows], b, (rows, n, k))
        assert np.array_equal(computed, wanted[:rows])


@FORMS
@pytest.mark.parametrize("dtype", [f32, DTYPES["i32"]], ids=str)
def test_an_accumulating_product_adds_to_what_is_there(
    dtype: DType, transpose_a: bool, transpose_b: bool
) -> None:
    rng = np.random.default_rng(0)
    form = (transpose_a, transpose_b)
    for m, n, k in [(1, 20, 5), (20, 1, 5), (40, 100, 300), (6, 6, 0), (7, 600, 6)]:
        a, b, start = (numbers(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        computed = product(
            dtype, form, stored(a, transpose_a), stored(b, transpose_b), (m, n, k), start=start
        )
        assert_close(computed, start + a @ b, k)


@pytest.mark.parametrize("pieces", [1, 5])
@pytest.mark.parametrize(
    ("a_batch", "b_batch"),
    [((3,), (3,)), ((3,), (1,)), ((1,), (3,)), ((2, 1), (1, 4)), ((0,), (0,))],
)
def test_batches_are_broadcast(a_batch: Any, b_batch: Any, pieces: int) -> None:
    rng = np.random.default_rng(0)
    m, n, k = 20, 70, 30
    a, b = rng.standard_normal((*a_batch, m, k)), rng.standard_normal((*b_batch, k, n))
    wanted = a @ b
    batch = []
    for axis, extent in enumerate(wanted.shape[:-2]):
        strides = [
            0 if each.shape[axis] == 1 else each.strides[axis] // each.itemsize for each in (a, b)
        ]
        batch.append((extent, *strides))
    computed = product(
        f64, (False, False), a, b, (m, n, k), tuple(batch), pieces=pieces
    )
    assert_close(computed, wanted, k)


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_stacks_of_small_matrices_agree_with_numpy(
    dtype: DType, transposed: tuple[bool, bool]
) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in itertools.product((1, 2, 3, 4, 5, 8, 9), (1, 2, 3, 4, 7, 8, 9), (1, 3, 8, 9)):
        a, b = numbers(rng, (7, m, k), dtype), numbers(rng, (7, k, n), dtype)
        turned = [
            np.ascontiguousarray(x.transpose(0, 2, 1)) if t else x
            for x, t in zip((a, b), transposed, strict=True)
        ]
        for apart, other in ((k * n, b), (0, b[:1])):
            batch = ((7, m * k, apart),)
            computed = product(dtype, transposed, *turned, (m, n, k), batch, pieces=3)
            assert_close(computed, a @ other, k)


def test_a_range_may_be_cut_anywhere() -> None:
    rng = np.random.default_rng(0)
    m, n, k = 700, 100, 20
    a, b = numbers(rng, (m, k), f32), numbers(rng, (k, n), f32)
    computed = product(f32, (False, False), a, b, (m, n, k), pieces=units(m, n))
    assert_close(computed, a @ b, k)


def test_nan_and_infinity_reach_only_the_results_they_belong_to() -> None:
    a, b = np.ones((40, 40), np.float32), np.ones((40, 40), np.float32)
    a[3, 5], b[7, 9] = np.nan, np.inf
    computed = product(f32, (False, False), a, b, (40, 40, 40))
    np.testing.assert_array_equal(np.isnan(computed), np.isnan(a @ b))
    np.testing.assert_array_equal(np.isinf(computed), np.isinf(a @ b))


@FORMS
@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_products_of_few_columns_agree_with_numpy(
    dtype: DType, bits: int, transpose_a: bool, transpose_b: bool
) -> None:
    """The columns are laid along k, where that has enough vectors; of a turned left matrix vectors
    lie along the rows."""
    needs_vectors(bits)
    rng, form = np.random.default_rng(2), (transpose_a, transpose_b)
    sizes = [(33, 2, 65), (38, 2, 300), (41, 3, 100), (300, 4, 130), (71, 7, 515), (64, 8, 256)]
    for place, (m, n, k) in enumerate(sizes):
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
        start = numbers(rng, (m, n), dtype) if place % 2 else None
        computed = product(
            dtype, form, stored(a, transpose_a), stored(b, transpose_b), (m, n, k), start=start,
            pieces=1 + place % 3, vector_bits=bits,
        )  # fmt: skip
        assert_close(computed, a @ b + (0 if start is None else start), k)


def test_few_columns_of_many_rows_are_dot_products() -> None:
    """Each row is read a vector at a time, by several sums, not an element at a time."""
    text = "from pyrelay.devices.routines.matmul_ways import column_dots_f32x16\n"
    needs_vectors(512)
    blocks = re.split(r"^\.L\w+:", kernel_assembly(text), flags=re.MULTILINE)
    loops = [block for block in blocks if len(re.findall(r"vfmadd\w+ps", block)) == 16]
    assert any("{1to16}" not in block and "broadcast" not in block for block in loops)


def test_neighbouring_lines_of_a_narrow_matrix_are_added_up_apart() -> None:
    a, b = np.ones((1, 17), np.float32), np.ones((17, 3), np.float32)
    b[[0, 8], 1] = 2**30, -(2**30)
    np.testing.assert_array_equal(product(f32, (False, False), a, b, (1, 3, 17)), [[17, 15, 17]])


def test_the_innermost_loop_keeps_its_sums_in_registers() -> None:
    """The packed tile's loop multiplies straight from broadcast memory and stores nothing."""
    parts = native.parts_of(matmul_kernel(f32))
    names = [name for names in WAYS.values() for name in names] + ["product"]
    assert [name.split("_f32")[0] for name in parts] == names
    for name, part in parts.items():
        if name.startswith(("packed_columns", "panel_row", "small_stack", "product")):  # have none
            continue
        blocks = re.split(r"^\.L\w+:", kernel_assembly(part), flags=re.MULTILINE)
        tiles = [block for block in blocks if len(re.findall(r"vfmadd\w+ps", block)) >= 8]
        assert tiles
        for block in tiles:
            loop = block[: block.rfind("vfmadd")]
            assert not re.search(r"vmov\w+\s+%[yz]mm\d+, -?\d*\(%r[sb]p", loop)


def test_products_narrower_than_a_vector_are_stored_from_registers() -> None:
    """Tiles of few terms, as of 3 x 3 matrices, took most of their time to store row after row."""
    text = "from pyrelay.devices.routines.matmul_ways import in_place_f32x8\n"
    stored = r"vmaskmovps\s+%ymm\d+, %ymm\d+, .*\(|vmovups\s+%ymm\d+, .*\) ?\{%k"
    blocks = re.split(r"^\.L\w+:", kernel_assembly(text), flags=re.MULTILINE)
    assert max(len(re.findall(stored, block)) for block in blocks) > 4


@pytest.mark.parametrize("bits", [256, 512])
def test_few_rows_give_the_same_bits_wherever_the_matrix_lies(bits: int) -> None:
    """Vectors are read from where they are aligned; the columns before that are taken apart."""
    needs_vectors(bits)
    rng, lanes = np.random.default_rng(5), bits // 32
    for m, wide, k in [(1, 8, 5), (1, 4, 300), (1, 16, 19), (3, 9, 30), (4, 40, 300)]:
        n = wide * lanes
        a, start = numbers(rng, (m, k), f32), numbers(rng, (m, n), f32)
        given = numbers(rng, (k, n), f32)
        room, made = np.empty(k * n + 64, f32.numpy), []
        first = -room.ctypes.data % 64 // 4
        for place in (first, first + 4, first + 15):
            b = room[place : place + k * n].reshape(k, n)
            b[:] = given
            computed = product(f32, (False, False), a, b, (m, n, k), vector_bits=bits)
            added = product(
                f32, (False, False), a, b, (m, n, k), start=start, vector_bits=bits
            )
            assert_close(added, start + a @ b, k)
            made.append((computed, added))
        assert_close(made[0][0], a @ given, k)
        for each in made[1:]:
            np.testing.assert_array_equal(each, made[0])


def by_panels(
    dtype: DType, bits: int, form: tuple[bool, bool], a: np.ndarray, b: np.ndarray,
    sizes: tuple[int, int, int], gates: int, start: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """``a @ b`` by panels that lie between NaNs; ``sizes`` has the columns of one gate."""
    m, n, k = sizes
    lanes = matmul.panel_lanes(dtype, bits)
    multiplies, lays = matmul.panel_kernels(dtype, bits)
    per_gate = -(-n // (2 * lanes))
    buffer = np.full(per_gate * gates * -(-k // lanes) * 2 * lanes**2 + GUARD, np.nan, dtype.numpy)
    count = per_gate * gates
    cuts = [(place, place + 1) for place in reversed(range(count))]
    run(lays, b, buffer, k, n, b.shape[-1], int(form[1]), ranges=cuts)
    assert np.isnan(buffer[-GUARD:]).all()
    c = np.zeros((m, gates * n), dtype.numpy) if start is None else start.copy()
    total = units(m, n)
    middle = total // 2
    form_words = int(form[0]), gates, int(start is not None), a.shape[-1], 0, gates * n
    for first, end in ((0, m // 3), (m // 3, m)):
        run(
            multiplies, a, buffer, c, m, n, k, *form_words, 0, 0, 0, first, end,
            ranges=[(0, middle), (middle, total)],
        )  # fmt: skip
    return c


@FORMS
@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_products_of_one_row_read_panels_or_the_matrix(
    dtype: DType, bits: int, transpose_a: bool, transpose_b: bool
) -> None:
    needs_vectors(bits)
    rng = np.random.default_rng(1)
    multiplies, (_, lays) = matmul_kernel(dtype, bits), matmul.panel_kernels(dtype, bits)
    lanes = matmul.panel_lanes(dtype, bits)
    for place, (n, k) in enumerate([(2, 1), (5, 7), (33, 40), (64, 9), (130, 300), (97, 0)]):
        a, b = numbers(rng, (1, k), dtype), numbers(rng, (k, n), dtype)
        start = numbers(rng, (1, n), dtype) if place % 2 else np.zeros((1, n), dtype.numpy)
        left, right = stored(a, transpose_a), stored(b, transpose_b)
        count = -(-n // (2 * lanes))
        panels = np.full(count * -(-k // lanes) * 2 * lanes**2 + GUARD, np.nan, dtype.numpy)
        run(lays, right, panels, k, n, right.shape[-1], int(transpose_b), ranges=[(0, count)])
        total = units(1, n)
        for operand, form in ((right, int(transpose_b)), (panels, 2)):
            c = np.concatenate([start[0], np.full(GUARD, 7, dtype.numpy)])
            words = int(transpose_a), form, place % 2, left.shape[-1], right.shape[-1], n
            run(
                multiplies, left, operand, c, 1, n, k, *words, 0, 0, 0,
                ranges=[(0, total // 2), (total // 2, total)],
            )  # fmt: skip
            assert (c[n:] == 7).all()
            assert_close(c[None, :n], a @ b + start, k)


@FORMS
@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_products_by_panels_agree_with_numpy(
    dtype: DType, bits: int, transpose_a: bool, transpose_b: bool
) -> None:
    needs_vectors(bits)
    rng = np.random.default_rng(0)
    form = (transpose_a, transpose_b)
    for place, (m, n, k) in enumerate(SIZES):
        gates = 1 + place % 4
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n * gates), dtype)
        start = numbers(rng, (m, n * gates), dtype) if place % 3 == 0 else None
        operands = stored(a, transpose_a), stored(b, transpose_b)
        computed = by_panels(dtype, bits, form, *operands, (m, n, k), gates, start)
        assert_close(computed, a @ b + (0 if start is None else start), k)
