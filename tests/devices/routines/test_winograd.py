"""Convolutions by Winograd's transforms: their errors, edges, strides, and what they are not used
for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyrelay.devices.routines.convolution import COLUMNS, PIXELS, ROWS, convolution_kernel
from pyrelay.devices.routines.convolution_choice import parts
from pyrelay.devices.routines.convolution_first import OUTPUTS
from pyrelay.ir.types import DTYPES
from pyrelay.lower.planning.target import ConvolutionSizes
from pyrelay.ops.convolution import convolve, convolve_back, convolve_weights
from tests.devices.running_kernels import run

f32 = DTYPES["f32"]


def convolved(
    x: np.ndarray, w: np.ndarray, groups: int = 1, before: tuple[int, int] = (1, 1),
    after: tuple[int, int] = (1, 1), bits: int | None = None, pieces: int = 3, stride: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel computes, and what it should."""
    entries, channels, *extents = x.shape
    taps = w.shape[2:]
    size = tuple(
        (n + lo + hi - k) // stride + 1
        for n, lo, hi, k in zip(extents, before, after, taps, strict=True)
    )
    out = np.full(entries * len(w) * size[0] * size[1] + 32, 7, np.float32)
    share, own = channels // groups, len(w) // groups
    axes = [(1, 1, 1, 1, 1, 0)]
    axes += [
        (n, k, m, stride, 1, lo) for n, k, m, lo in zip(extents, taps, size, before, strict=True)
    ]
    blocks = -(-size[0] * size[1] // PIXELS) * -(-own // OUTPUTS)
    total = entries * groups * blocks
    cuts = itertools.pairwise(total * piece // pieces for piece in range(pieces + 1))
    run(
        convolution_kernel(f32, "forward", False, bits), x, w, out[16:], entries, groups, share,
        own, *itertools.chain(*axes), 0, 0, ranges=list(cuts),
    )  # fmt: skip
    assert (out[:16] == 7).all()
    assert (out[-16:] == 7).all()
    wanted = convolve.numpy(
        x.astype(float), w.astype(float), stride=(stride, stride), dilation=(1, 1), before=before,
        size=size, groups=groups, channels_last=False,
    )
    return out[16:-16].reshape(wanted.shape), wanted


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("bits", [
    None, *(pytest.param(bits, marks=pytest.mark.slow) for bits in (128, 512))
])
def test_tiles_reach_every_edge(bits: int | None) -> None:
    for channels, outputs, groups, extents, before, after in [
        (40, 35, 1, (5, 8), (1, 1), (1, 1)),
        (16, 16, 1, (16, 16), (1, 1), (1, 1)),
        (33, 70, 1, (13, 30), (1, 1), (1, 1)),
        (80, 96, 2, (20, 19), (0, 2), (1, 0)),
        (17, 40, 1, (90, 5), (2, 2), (2, 2)),
        (20, 18, 1, (7, 250), (1, 1), (1, 1)),
        (16, 16, 1, (14, 40), (-1, 5), (0, -3)),
        (100, 70, 1, (7, 7), (1, 1), (1, 1)),  # eight tiles of two images, and whole panels
        (700, 33, 1, (8, 9), (1, 1), (1, 1)),  # channels in parts, and a panel of one output
    ]:
        entries = 33 if channels == 40 else 2
        x, w = normal(entries, channels, *extents), normal(outputs, channels // groups, 3, 3)
        found, wanted = convolved(x, w, groups, before, after, bits)
        np.testing.assert_allclose(found, wanted, atol=2e-6 * np.abs(wanted).max() * 5)


OTHERS = [  # channels, outputs, groups, extents, taps, stride, before, after
    (3, 64, 1, (60, 64), (7, 7), 2, (3, 3), (3, 3)),
    (4, 32, 1, (84, 84), (8, 8), 4, (0, 0), (0, 0)),
    (3, 33, 1, (99, 131), (11, 11), 4, (2, 2), (2, 2)),
    (32, 64, 1, (42, 42), (4, 4), 2, (0, 0), (0, 0)),
    (20, 33, 1, (28, 28), (5, 5), 1, (2, 2), (2, 2)),
    (64, 64, 2, (28, 28), (5, 6), 2, (2, 0), (1, 3)),
    (8, 64, 1, (75, 75), (5, 5), 3, (-1, 1), (3, 0)),
    (16, 24, 1, (33, 31), (4, 4), 1, (-1, 1), (3, 0)),
    (64, 32, 1, (80, 80), (4, 4), 2, (1, 1), (1, 1)),  # as many positions as there is room for
]


@pytest.mark.parametrize("bits", [
    None, *(pytest.param(bits, marks=pytest.mark.slow) for bits in (128, 256))
])
@pytest.mark.parametrize("case", OTHERS, ids=lambda case: f"{case[4][0]}x{case[4][1]}-{case[5]}")
def test_other_taps_and_strides_reach_every_edge(case: tuple, bits: int | None) -> None:
    channels, outputs, groups, extents, taps, stride, before, after = case
    axes = tuple(
        (n, k, (n + lo + hi - k) // stride + 1, stride, 1, lo)
        for n, k, lo, hi in zip(extents, taps, before, after, strict=True)
    )
    sizes = 2, groups, channels // groups, outputs // groups, ((1, 1, 1, 1, 1, 0), *axes)
    called = set(parts("forward", False, ConvolutionSizes(*sizes), 8, 4))
    assert "winograd_finite" in called, "the case does not test what it is for"
    x, w = normal(2, channels, *extents), normal(outputs, channels // groups, *taps)
    found, wanted = convolved(x, w, groups, before, after, bits, stride=stride)
    _, largest = convolved(np.abs(x), np.abs(w), groups, before, after, bits, stride=stride)
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert np.abs(found - wanted).max() < 2e-6 * largest.max()
    x[0, 1, 5, 6], x[-1, 2, 7, 2] = np.inf, np.nan
    found, wanted = convolved(x, w, groups, before, after, bits, stride=stride)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_array_equal(found[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])


@pytest.mark.parametrize("bits", [
    None, *(pytest.param(bits, marks=pytest.mark.slow) for bits in (128, 256))
])
@pytest.mark.parametrize("case", [  # channels, outputs, groups, extents, taps, before, after
    (40, 35, 1, (13, 30), (3, 3), (1, 1), (1, 1)),
    (32, 64, 2, (17, 15), (5, 5), (2, 2), (2, 2)),
    (33, 80, 1, (28, 27), (4, 4), (-1, 5), (3, 0)),
    (16, 700, 1, (9, 8), (3, 3), (0, 2), (1, 0)),
], ids=lambda case: f"{case[4][0]}x{case[4][1]}")  # fmt: skip
def test_what_outputs_add_to_an_image_is_a_convolution_by_turned_weights(
    case: tuple, bits: int | None
) -> None:
    channels, outputs, groups, extents, taps, before, after = case
    size = tuple(
        n + lo + hi - k + 1 for n, k, lo, hi in zip(extents, taps, before, after, strict=True)
    )
    own = [(n, k, m, 1, 1, lo) for n, k, m, lo in zip(extents, taps, size, before, strict=True)]
    sizes = 2, groups, channels // groups, outputs // groups, ((1, 1, 1, 1, 1, 0), *own)
    called = set(parts("back", False, ConvolutionSizes(*sizes), 8, 4))
    assert "winograd_finite" in called, "the case does not test what it is for"
    g, w = normal(2, outputs, *size), normal(outputs, channels // groups, *taps)
    units = 2 * groups * -(-channels // groups // COLUMNS)

    def added(g: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = np.full(2 * channels * extents[0] * extents[1] + 32, 7, np.float32)
        run(
            convolution_kernel(f32, "back", False, bits), g, w, out[16:], *sizes[:4],
            *itertools.chain(*sizes[4]), ranges=[(0, 1), (1, units)],
        )  # fmt: skip
        assert (out[:16] == 7).all()
        assert (out[-16:] == 7).all()
        wanted = convolve_back.numpy(
            g.astype(float), w.astype(float), stride=(1, 1), dilation=(1, 1), before=before,
            size=extents, groups=groups, channels_last=False,
        )
        return out[16:-16].reshape(wanted.shape), wanted

    found, wanted = added(g, w)
    _, largest = added(np.abs(g), np.abs(w))
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert np.abs(found - wanted).max() < 2e-6 * largest.max()
    g[0, 1, 5, 6], g[-1, 2, 7, 2] = np.inf, np.nan
    found, wanted = added(g, w)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_array_equal(found[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])


@pytest.mark.parametrize("bits", [
    None, *(pytest.param(bits, marks=pytest.mark.slow) for bits in (128, 256))
])
@pytest.mark.parametrize("case", [
    # entries, channels, outputs, groups, extents, taps, before, after
    (2, 64, 64, 1, (28, 28), 3, (1, 1), (1, 1)),
    (3, 20, 33, 1, (14, 17), 5, (2, 2), (2, 2)),
    (2, 130, 70, 2, (13, 30), 3, (0, 2), (1, 0)),
    (2, 33, 40, 1, (28, 27), 4, (-1, 5), (3, 0)),
    (1, 70, 16, 1, (40, 8), 2, (0, 1), (1, 0)),
], ids=lambda case: f"{case[5]}x{case[5]}-{case[1]}")  # fmt: skip
def test_sums_of_weights_are_outputs_of_tiles(case: tuple, bits: int | None) -> None:
    entries, channels, outputs, groups, extents, taps, before, after = case
    size = tuple(
        n + lo + hi - taps + 1 for n, lo, hi in zip(extents, before, after, strict=True)
    )
    own = [(n, taps, m, 1, 1, lo) for n, m, lo in zip(extents, size, before, strict=True)]
    sizes = entries, groups, channels // groups, outputs // groups, ((1, 1, 1, 1, 1, 0), *own)
    called = set(parts("weights", False, ConvolutionSizes(*sizes), 8, 4))
    assert "winograd_pairs" in called, "the case does not test what it is for"
    x, g = normal(entries, channels, *extents), normal(entries, outputs, *size)
    blocks = -(-outputs // groups // COLUMNS) * -(-channels // groups * taps * taps // ROWS)
    units = groups * blocks

    def summed(
        x: np.ndarray, g: np.ndarray, pieces: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        out = np.full(outputs * channels // groups * taps * taps + 32, 7, np.float32)
        cuts = itertools.pairwise(units * piece // pieces for piece in range(pieces + 1))
        run(
            convolution_kernel(f32, "weights", False, bits), x, g, out[16:], *sizes[:4],
            *itertools.chain(*sizes[4]), ranges=list(cuts),
        )  # fmt: skip
        assert (out[:16] == 7).all()
        assert (out[-16:] == 7).all()
        wanted = convolve_weights.numpy(
            x.astype(float), g.astype(float), stride=(1, 1), dilation=(1, 1), before=before,
            size=(taps, taps), groups=groups, channels_last=False,
        )
        return out[16:-16].reshape(wanted.shape), wanted

    found, wanted = summed(x, g)
    _, largest = summed(np.abs(x), np.abs(g))
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert np.abs(found - wanted).max() < 2e-6 * largest.max()
    for pieces in (2, 3, 5):
        np.testing.assert_array_equal(summed(x, g, pieces)[0], found)
    x[0, 1, 5, 6], x[-1, 2, 7, 2] = np.inf, np.nan
    found, wanted = summed(x, g)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_array_equal(found[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])
    there = np.isfinite(wanted)
    assert np.abs(found[there] - wanted[there]).max() < 2e-6 * largest.max()


def test_an_image_without_channels_is_nothing() -> None:
    found, wanted = convolved(normal(2, 0, 9, 9), normal(40, 0, 3, 3))
    np.testing.assert_array_equal(found, wanted)


def test_the_error_is_below_a_hundred_thousandth_of_the_largest_sum() -> None:
    for channels, outputs, extent in [(64, 32, 24), (256, 16, 16), (512, 16, 14), (512, 32, 7)]:
        for shift in (0.0, 3.0):
            x, w = normal(1, channels, extent, extent), normal(outputs, channels, 3, 3)
            x += np.float32(shift)
            found, wanted = convolved(x, w)
            _, largest = convolved(np.abs(x), np.abs(w))
            assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
            assert np.abs(found - wanted).max() < 1e-6 * largest.max()


def test_other_numbers_of_units_and_pieces_give_the_same_bits() -> None:
    x, w = normal(3, 40, 31, 33), normal(70, 40, 3, 3)
    first, _ = convolved(x, w, pieces=1)
    for pieces in (2, 5, 6):
        np.testing.assert_array_equal(convolved(x, w, pieces=pieces)[0], first)


def test_what_is_not_finite_spreads_no_further_than_its_neighbours() -> None:
    x, w = normal(2, 17, 18, 23), normal(33, 17, 3, 3)
    x[0, 3, 5, 6], x[0, 4, 17, 22], x[1, 0, 0, 9] = np.inf, np.nan, -np.inf
    few = convolved(x[:, :, :9, :9].repeat(3, axis=0), w)
    np.testing.assert_array_equal(np.isfinite(few[0]), np.isfinite(few[1]))
    found, wanted = convolved(x, w)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_array_equal(found[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])
    there = np.isfinite(wanted)
    np.testing.assert_allclose(found[there], wanted[there], atol=1e-4)


def test_tiles_of_one_image_are_enough() -> None:
    """A 7 by 7 image has four. Its outputs round as the largest element that their tile sees does,
    which direct products would not do for outputs that do not see it themselves."""
    x, w = normal(1, 64, 7, 7), normal(64, 64, 3, 3)
    x[0, 0, 0, 0] = 1e8
    found, wanted = convolved(x, w)
    near = np.abs(found - wanted)[:, :, 2:4, 2:4]
    assert (near > 0.1).any(), "no output of the tile rounds as its largest element does"
    assert np.abs(found - wanted)[:, :, 4:, 4:].max() < 1e-4


def test_sums_that_overflow_in_a_transform_only_are_found() -> None:
    x, w = normal(1, 16, 16, 16), normal(16, 16, 3, 3)
    x[0, 0, 4, 4] = 2e38
    w[:, 0] *= 1e-3
    found, wanted = convolved(x, w)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
