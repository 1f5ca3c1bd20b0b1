"""Extents: what is known of them without their values."""

from __future__ import annotations

from pyrelay.ir import dims


def test_the_greatest_value_of_an_extent_follows_from_what_its_symbols_say() -> None:
    n, m = dims.of(dims.Symbol("n", most=7)), dims.fresh("m")
    assert dims.greatest(2 * n - 3) == 11
    assert dims.greatest(n - m) == 7
    assert dims.greatest(n * n + n // 2) == 52
    assert dims.greatest(dims.minimum(m, n - 9)) == -2
    assert dims.greatest(m % 4) == 3
    assert dims.greatest(dims.maximum(n, 9)) == 9
    assert dims.greatest(m) is None
    assert dims.greatest(dims.maximum(n, m)) is None
    assert dims.is_short(n + 9)
    assert not dims.is_short(n + 10)
