"""Extents: what is known of them without their values."""

from __future__ import annotations

import copy

from pyrelay.ir import dims, limits


def test_the_greatest_value_of_an_extent_follows_from_what_its_symbols_say() -> None:
    n, m = dims.of(dims.Symbol("n", most=7)), dims.fresh("m")
    assert limits.greatest(2 * n - 3) == 11
    assert limits.greatest(n - m) == 7
    assert limits.greatest(n * n + n // 2) == 52
    assert limits.greatest(dims.minimum(m, n - 9)) == -2
    assert limits.greatest(m % 4) == 3
    assert limits.greatest(dims.maximum(n, 9)) == 9
    assert limits.greatest(m) is None
    assert limits.greatest(dims.maximum(n, m)) is None
    assert limits.is_short(n + 9)
    assert not limits.is_short(n + 10)


def _halved(n: dims.Extent, times: int) -> dims.Extent:
    """An extent whose parts stand in it 2 ** times times."""
    for _ in range(times):
        n = dims.minimum(n, dims.quotient(n + 3, 2)) * dims.remainder(n, 7)
    return n


def test_extents_made_of_each_other_are_compared_hashed_and_ordered_once() -> None:
    """Looking through all that stands in them would not end."""
    n, m = dims.fresh("n"), dims.fresh("m")
    first, again, other = _halved(n, 40), _halved(n, 40), _halved(m, 40)
    assert first == again
    assert first != other
    assert hash(first) == hash(again)
    assert dims.add(first, other) == dims.add(other, first)
    assert dims.add(first, dims.multiply(-1, again)) == 0


def test_symbols_are_replaced_once_in_what_extents_are_made_of() -> None:
    """As sizes of a network's layers are, when its groups become kernels."""
    n, m = dims.Symbol("n"), dims.fresh("m")
    halved = _halved(dims.of(n), 40)
    assert dims.symbols(halved) == (n,)
    assert dims.substitute(halved, {n: m}) == _halved(m, 40)
    assert dims.substitute(halved, {dims.Symbol("n"): m}) is halved


def test_numbers_are_added_and_multiplied_term_by_term() -> None:
    n, m = dims.fresh("n"), dims.fresh("m")
    both = n * m + 2 * n
    assert dims.show(both + 3 - 3) == dims.show(both)
    assert both + 3 - 3 == both
    assert dims.show(3 * (both + 1)) == "3*n*m + 6*n + 3"
    assert (n + 2) - 2 == n
    assert 0 * both == 0
    assert n + 0 is n


def test_extents_that_are_taken_apart_and_put_together_are_equal() -> None:
    n = dims.fresh("n")
    for extent in (dims.quotient(n, 3), dims.remainder(n, 3), dims.minimum(n, 3)):
        assert isinstance(extent, dims.Dim)
        (((atom, _),), _) = extent.terms[0]
        fields = [getattr(atom, name) for name in type(atom).__match_args__]
        assert type(atom)(*fields) == atom
        assert hash(type(atom)(*fields)) == hash(atom)
        assert copy.deepcopy(n + 1) != n + 1  # symbols are compared by identity
