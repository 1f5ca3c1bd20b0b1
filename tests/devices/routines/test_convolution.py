"""Convolutions of every form, layout and dtype, against sums over NumPy's slices."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from pyrelay.devices.cpu import target
from pyrelay.devices.routines import convolution_gathered, convolution_spread
from pyrelay.devices.routines.convolution import COLUMNS, PIXELS, ROWS, convolution_kernel
from pyrelay.devices.routines.convolution_first import OUTPUTS
from pyrelay.ir.types import DTYPES, DType
from tests.devices.running_kernels import run

f32, f64 = DTYPES["f32"], DTYPES["f64"]


@dataclass(frozen=True)
class Case:
    """Sizes along three axes; `channels` and `outputs` of a group."""

    extent: tuple[int, int, int]
    taps: tuple[int, int, int]
    batch: int = 1
    groups: int = 1
    channels: int = 1
    outputs: int = 1
    stride: tuple[int, int, int] = (1, 1, 1)
    step: tuple[int, int, int] = (1, 1, 1)
    before: tuple[int, int, int] = (0, 0, 0)
    after: tuple[int, int, int] = (0, 0, 0)

    @property
    def out(self) -> tuple[int, ...]:
        return tuple(
            (n + lo + hi - d * (k - 1) - 1) // s + 1
            for n, k, s, d, lo, hi in zip(
                self.extent, self.taps, self.stride, self.step, self.before, self.after, strict=True
            )
        )


CASES = [
    Case((1, 1, 9), (1, 1, 3), channels=4, outputs=5),
    Case((1, 8, 9), (1, 3, 3), 2, 1, 3, 6, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 30, 31), (1, 7, 7), 1, 1, 3, 20, stride=(1, 2, 2), before=(0, 3, 3), after=(0, 3, 3)),
    Case((1, 17, 15), (1, 3, 2), 2, 2, 40, 150, stride=(1, 1, 2), step=(1, 2, 3), before=(0, 2, 0)),
    Case((1, 6, 5), (1, 3, 3), 2, 3, 2, 4, stride=(1, 2, 3), before=(0, 2, 1), after=(0, 1, 3)),
    Case((4, 5, 6), (2, 3, 2), 2, 1, 2, 3, before=(1, 0, 1), stride=(2, 1, 1)),
    Case((1, 19, 21), (1, 3, 3), 2, 6, 1, 1, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 19, 21), (1, 3, 3), 1, 5, 1, 1, stride=(1, 2, 2), step=(1, 1, 2)),
    Case((1, 1, 50), (1, 1, 5), 2, 2, 1, 1, before=(0, 0, 4), step=(1, 1, 2)),
    Case((1, 60, 90), (1, 5, 5), 1, 2, 1, 1, step=(1, 2, 2), stride=(1, 2, 2), before=(0, 4, 5)),
    Case((1, 40, 45), (1, 4, 5), 1, 1, 13, 21, stride=(1, 3, 2), step=(1, 2, 1), before=(0, 2, 1)),
    Case((5, 9, 11), (3, 3, 3), 1, 2, 1, 1, before=(1, 1, 1)),
    Case((1, 150, 61), (1, 3, 3), 1, 3, 1, 1, stride=(1, 2, 2), before=(0, 1, 1), after=(0, 0, 1)),
    Case((1, 130, 75), (1, 3, 3), 1, 2, 1, 1, stride=(1, 3, 1), before=(0, 1, 2), after=(0, 1, 1)),
    Case((1, 21, 45), (1, 3, 3), 1, 3, 1, 1, stride=(1, 1, 2), step=(1, 2, 3), before=(0, 3, 1)),
    Case((1, 30, 3), (1, 3, 3), 2, 4, 1, 1),
    Case((1, 90, 91), (1, 7, 7), 2, 1, 3, 20, stride=(1, 2, 2), before=(0, 3, 3), after=(0, 3, 3)),
    Case((1, 40, 130), (1, 5, 3), 1, 1, 3, 35, before=(0, 2, 1), after=(0, 2, 1)),
    Case((1, 7, 47), (1, 1, 9), 1, 3, 1, 1, stride=(1, 3, 2), before=(0, -1, 4), after=(0, 0, 9)),
    Case((1, 34, 40), (1, 33, 33), 1, 1, 1, 9),
    Case((1, 34, 40), (1, 33, 33), 1, 2, 1, 1),
    Case((1, 5, 5), (1, 3, 3), 1, 3, 1, 1, stride=(1, 1, 2), before=(0, 2, 2), after=(0, 2, 2)),
    Case((1, 2, 40), (1, 1, 17), 1, 1, 17, 2, before=(0, 0, 8), after=(0, 0, 8)),
    Case((1, 7, 7), (1, 1, 1), 3, 1, 300, 130),
    Case((1, 9, 13), (1, 1, 1), 2, 1, 300, 30),
    Case((1, 1, 41), (1, 1, 1), 2, 1, 170, 19),
    Case((1, 5, 5), (1, 1, 1), 1, 2, 18, 9),
    Case((1, 10, 16), (1, 1, 1), 1, 2, 21, 9),
    Case((1, 5, 4), (1, 1, 1), 2, 1, 21, 13),
    Case((1, 37, 41), (1, 8, 8), 2, 1, 3, 7, stride=(1, 4, 4), before=(0, 2, 3), after=(0, 1, 5)),
    Case((1, 37, 43), (1, 5, 5), 1, 3, 1, 1, stride=(1, 4, 4), before=(0, 2, 3), after=(0, 1, 5)),
    Case((1, 3, 3), (1, 2, 2), 1, 1, 0, 2),
    Case((1, 4, 4), (1, 5, 5), 1, 1, 2, 2, before=(0, -1, 3), after=(0, 5, 2)),
    Case((1, 2, 2), (1, 3, 3), 2, 5, 1, 1, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 1, 3), (1, 3, 3), 1, 7, 1, 1, before=(0, 1, 0), after=(0, 1, 0)),
    Case((1, 7, 7), (1, 3, 3), 2, 9, 1, 1, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 14, 15), (1, 3, 3), 1, 4, 1, 1, stride=(1, 2, 2), before=(0, 1, 0), after=(0, 1, 1)),
    Case((1, 90, 75), (1, 3, 3), 2, 2, 1, 1, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 70, 64), (1, 3, 3), 1, 3, 1, 1),
    Case((1, 3, 50), (1, 3, 3), 1, 3, 1, 1, stride=(1, 2, 2), before=(0, 1, 2), after=(0, 1, 7)),
    Case((1, 9, 49), (1, 3, 3), 1, 2, 1, 1, before=(0, 3, 21), after=(0, 5, 18)),
    Case((1, 33, 50), (1, 3, 3), 1, 2, 1, 1, stride=(1, 2, 2), before=(0, -1, -1)),
    Case((1, 12, 60), (1, 3, 3), 1, 2, 1, 1, before=(0, 9, 0), after=(0, 8, 0)),
    Case((1, 13, 12), (1, 3, 3), 3, 5, 1, 1, before=(0, 2, 3), after=(0, 3, 1)),
    Case((1, 12, 25), (1, 3, 3), 2, 40, 1, 1, stride=(1, 2, 2), before=(0, -1, -1)),
    Case((1, 3, 9), (1, 3, 3), 2, 90, 1, 1, before=(0, 0, 1), after=(0, 0, 1)),
    Case((1, 56, 57), (1, 1, 1), 8, 1, 44, 8),
    Case((1, 7, 7), (1, 3, 3), 2, 1, 40, 49, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 7, 7), (1, 3, 3), 1, 1, 17, 64, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 20, 21), (1, 4, 4), 3, 1, 9, 32, stride=(1, 2, 2)),
    Case((1, 23, 23), (1, 3, 3), 2, 2, 17, 32, stride=(1, 2, 2), step=(1, 2, 1), before=(0, 2, 1)),
    Case((3, 9, 8), (2, 3, 3), 2, 1, 16, 70, stride=(1, 2, 2), before=(1, 1, 1), after=(0, 1, 1)),
    Case((7, 9, 8), (3, 3, 3), 2, 1, 17, 64, before=(1, 1, 1), after=(1, 1, 1)),
    Case((7, 9, 10), (2, 3, 2), 2, 2, 3, 32, step=(1, 2, 1)),
    Case((1, 41, 40), (1, 3, 3), 1, 1, 18, 32, stride=(1, 2, 2), before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 37, 34), (1, 5, 5), 2, 1, 7, 96, stride=(1, 3, 4), after=(0, -1, -2)),
    Case((1, 6, 6), (1, 3, 3), 1, 2, 32, 32, stride=(1, 1, 2), before=(0, 4, 5), after=(0, 3, 6)),
    Case((1, 9, 8), (1, 5, 5), 3, 3, 1, 1, stride=(1, 2, 2), before=(0, 2, 2), after=(0, 2, 2)),
    Case((1, 6, 7), (1, 1, 1), 2, 2, 1, 1, stride=(1, 2, 2)),
    Case((1, 1, 9), (1, 1, 4), 2, 3, 1, 1, stride=(1, 2, 2), before=(0, 0, 3)),
    Case((1, 40, 71), (1, 7, 6), 1, 2, 1, 1, stride=(1, 2, 2), before=(0, 5, 3), after=(0, 0, 9)),
    Case((1, 3, 3), (1, 5, 5), 2, 2, 1, 1, stride=(1, 2, 2), before=(0, 4, 1), after=(0, 1, 3)),
]

GRADIENTS = [
    Case((1, 14, 14), (1, 3, 3), 5, 1, 16, 32, stride=(1, 2, 2), before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 3, 4), (1, 2, 2), 40, 2, 33, 9, stride=(1, 2, 2)),  # several images at a time
    Case((1, 31, 90), (1, 3, 3), 2, 1, 17, 7, stride=(1, 2, 2), before=(0, 1, 1)),  # bands
    Case((1, 70, 200), (1, 7, 7), 1, 1, 9, 3, before=(0, 3, 3), after=(0, 3, 3)),
    Case((1, 8, 8), (1, 3, 3), 2, 1, 140, 330, stride=(1, 2, 2)),  # parts of outputs
    Case((9, 8, 7), (3, 3, 2), 2, 2, 18, 5, stride=(2, 2, 1), before=(1, 1, 1), after=(1, 0, 1)),
    Case((3, 5, 70), (2, 3, 3), 2, 1, 5, 4, stride=(1, 3, 1), step=(2, 1, 3), before=(2, 0, 4)),
    Case((6, 3, 3), (1, 1, 1), 2, 1, 34, 6, stride=(3, 2, 1)),
    Case((1, 40, 300), (1, 3, 3), 1, 1, 9, 3, stride=(1, 2, 2)),  # no room for a line
    Case((1, 3, 400), (1, 3, 3), 1, 1, 3, 9, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 60, 130), (1, 3, 3), 1, 1, 5, 20, stride=(1, 2, 1), before=(0, 1, 1)),
    Case((4, 30, 31), (3, 3, 3), 1, 1, 70, 40, stride=(1, 1, 2), before=(1, 1, 1)),
    Case((1, 9, 8), (1, 3, 3), 11, 1, 150, 140, stride=(1, 2, 2), before=(0, 1, 1)),
    Case((1, 5, 5), (1, 3, 3), 2, 1, 20, 0),
    Case((1, 5, 5), (1, 3, 3), 0, 1, 20, 4),
]


def seen(case: Case, tap: tuple[int, ...]) -> tuple[tuple[np.ndarray, ...], ...]:
    """The positions from which a tap sees something, and what it sees: indices."""
    positions, places = [], []
    for t, n, out, s, d, lo in zip(
        tap, case.extent, case.out, case.stride, case.step, case.before, strict=True
    ):
        at = np.arange(out) * s + t * d - lo
        inside = (at >= 0) & (at < n)
        positions.append(np.flatnonzero(inside))
        places.append(at[inside])
    return np.ix_(*positions), np.ix_(*places)


def patches(case: Case, x: np.ndarray) -> np.ndarray:
    """[N, G, C, *taps, *out] of x [N, G, C, *extent]."""
    result = np.zeros((*x.shape[:3], *case.taps, *case.out), x.dtype)
    for tap in np.ndindex(*case.taps):
        positions, places = seen(case, tap)
        result[(slice(None),) * 3 + tap][(..., *positions)] = x[(..., *places)]
    return result


def back(case: Case, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """What the positions of y add to the image, [N, G, C, *extent]."""
    x = np.zeros((case.batch, case.groups, case.channels, *case.extent))
    for tap in np.ndindex(*case.taps):
        positions, places = seen(case, tap)
        x[(..., *places)] += np.einsum("ngoijk,goc->ngcijk", y[(..., *positions)], w[(..., *tap)])
    return x


@functools.cache
def arrays(case: Case) -> tuple[np.ndarray, ...]:
    """An image, weights, their convolution, and what that adds to weights and image."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, case.groups, case.channels, *case.extent))
    w = rng.standard_normal((case.groups, case.outputs, case.channels, *case.taps))
    gathered = patches(case, x)
    y = np.einsum("ngcijkdhw,gocijk->ngodhw", gathered, w, optimize=True)
    of_weights = np.einsum("ngcijkdhw,ngodhw->gocijk", gathered, y, optimize=True)
    return x, w, y, of_weights, back(case, y, w)


def units(case: Case, what: str, last: bool) -> int:
    pixels, values = int(np.prod(case.out)), case.channels * int(np.prod(case.taps))
    if what == "back":
        return case.batch * case.groups * -(-case.channels // COLUMNS)
    if what == "weights":
        blocks = -(-values // ROWS)
    else:
        blocks = -(-case.batch * pixels // PIXELS) if last else case.batch * -(-pixels // PIXELS)
    columns = OUTPUTS if what == "forward" and not last else COLUMNS
    return blocks * case.groups * -(-case.outputs // columns)


def check(case: Case, dtype: DType, what: str, last: bool, source: str) -> None:
    """Runs the kernel in three ranges, and compares."""
    x, w, y, of_weights, of_image = arrays(case)
    if last:
        x, y, of_image = (np.moveaxis(a, (1, 2), (-2, -1)) for a in (x, y, of_image))
        w, of_weights = (np.transpose(a, (3, 4, 5, 2, 0, 1)) for a in (w, of_weights))
    first, factor, wanted = {
        "forward": (x, w, y), "weights": (x, y, of_weights), "back": (y, w, of_image)
    }[what]
    first, factor = (np.ascontiguousarray(a, dtype.numpy) for a in (first, factor))
    out = np.full(wanted.size + 32, 7, dtype.numpy)
    axes = [
        value for axis in zip(
            case.extent, case.taps, case.out, case.stride, case.step, case.before, strict=True
        ) for value in axis
    ]  # fmt: skip
    total = units(case, what, last)
    cuts = [total * piece // 3 for piece in range(4)]
    sizes = case.batch, case.groups, case.channels, case.outputs
    # The last range first: what a range wrote behind its own would stay.
    ranges = list(itertools.pairwise(cuts))[::-1]
    run(source, first, factor, out[16:], *sizes, *axes, 0, 0, ranges=ranges)
    assert (out[:16] == 7).all()
    assert (out[16 + wanted.size :] == 7).all()
    computed = out[16 : 16 + wanted.size].reshape(wanted.shape)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    tolerance = 2e-5 if dtype is f32 else 1e-12
    np.testing.assert_allclose(computed, wanted, atol=tolerance * scale, err_msg=f"{case}")


QUICK = {
    (f64, "forward", True), (f32, "weights", True), (f64, "back", False),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "what", "last"), [
    pytest.param(
        *kernel, id=f"{kernel[0]}-{kernel[1]}-{'last' if kernel[2] else 'first'}",
        marks=() if kernel in QUICK else (pytest.mark.slow,),
    ) for kernel in itertools.product((f32, f64), ("forward", "weights", "back"), (False, True))
])  # fmt: skip
def test_a_convolution_is_the_product_of_patches_and_weights(
    dtype: DType, what: str, last: bool
) -> None:
    source = convolution_kernel(dtype, what, last)
    for case in CASES:
        check(case, dtype, what, last, source)


@pytest.mark.parametrize("bits", [128, pytest.param(512, marks=pytest.mark.slow)])
def test_vectors_of_other_widths_compute_the_same(bits: int) -> None:
    """LLVM splits vectors that are wider than the CPU's."""
    source = convolution_kernel(f32, "forward", False, bits)
    for case in CASES:
        check(case, f32, "forward", False, source)


@pytest.mark.parametrize("what", ["back", "weights"])
@pytest.mark.parametrize(("dtype", "bits"), [
    (f32, None), (f64, 256), pytest.param(f32, 128, marks=pytest.mark.slow),
    pytest.param(f64, 512, marks=pytest.mark.slow),
])  # fmt: skip
def test_gradients_by_vectors_of_channels_or_outputs_are_the_same(
    dtype: DType, bits: int | None, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever there is room for them, also where something else is quicker."""
    chosen = convolution_spread if what == "back" else convolution_gathered
    monkeypatch.setattr(chosen, "DIRECT_WORTH", 10**9)
    source = convolution_kernel.__wrapped__(dtype, what, False, bits)
    for case in CASES + GRADIENTS:
        check(case, dtype, what, False, source)


def test_an_image_of_few_positions_is_work_for_several_threads() -> None:
    """64 outputs of 9 by 9 positions: a thread has half of them, and copies the image once."""
    kernel = target().convolution(f32, "forward", False)
    assert kernel.pixels >= 81
    assert 64 // kernel.columns == 4
    assert kernel.evenly
