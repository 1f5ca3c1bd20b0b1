"""Whether reshaping copies hangs on how NumPy keeps arguments, and results, in memory."""

from __future__ import annotations

import numpy as np

import pyrelay


def arguments():
    """The same shape in C order, transposed, with gaps, backwards, and as part of more rows."""
    c = np.arange(24.0).reshape(4, 6)
    yield c.copy()
    yield np.asfortranarray(c)
    yield np.arange(96.0).reshape(8, 12)[::2, ::2]
    yield c[::-1].copy()[::-1]
    yield np.arange(48.0).reshape(8, 6)[:4]
    yield np.arange(96.0).reshape(8, 2, 6)[4:, 1]


def assert_as_in_python(function):
    """One compiled function for all of them, called twice with each."""
    compiled = pyrelay.jit(function)
    for _ in range(2):
        for mine, theirs in zip(arguments(), arguments(), strict=True):
            expected, found = function(theirs), compiled(mine)
            for one, other in zip((theirs, *expected), (mine, *found), strict=True):
                np.testing.assert_array_equal(one, other)
    return compiled


def test_what_is_reshaped_from_an_argument_is_a_view_or_a_copy():
    def written_both_ways(x):
        flat, turned = x.reshape(-1), x.T.ravel()
        flat[1], turned[2] = 100.0, 200.0
        x[3] = -1.0
        whole = np.ascontiguousarray(x)
        whole[0, 5] = 50.0
        by_columns = np.asfortranarray(x)
        by_columns[1] = 7.0
        return flat, turned, whole, by_columns

    compiled = assert_as_in_python(written_both_ways)
    assert "only for x that lies in C order" in compiled.explain(np.ones((4, 6)))


def test_results_lie_in_memory_as_what_they_are_computed_from():
    def of_operands(x):
        made = [x.T * 2.0, np.maximum(x, x.T[0, 0]), np.zeros_like(x.T), np.copy(x.T),
                x.T.astype(np.float32), x.T.copy(), x[None] + x.T.T, x + x.T.reshape(4, 6)]
        flat = [m.reshape(-1) for m in made]
        for f in flat:
            f[1] = 33.0
        return *made, *flat

    assert_as_in_python(of_operands)


def test_orders_that_are_asked_for():
    def asked(x):
        made = [np.zeros((2, 3), order="F"), np.array(x, order="F"), x.copy(order="K"),
                np.ones_like(x, order="C"), x.transpose(1, 0)[:, None] - 1.0]
        flat = [m.ravel() for m in made]
        for f in flat:
            f[1] = 33.0
        return *made, *flat

    assert_as_in_python(asked)


def test_programs_that_write_nothing_serve_arrays_with_gaps_too():
    @pyrelay.jit
    def read(x):
        return x.reshape(-1) * 2.0

    for x in arguments():
        np.testing.assert_array_equal(read(x), read.py(x))
    assert read.cache_info().compilations == 2  # one for the order of Fortran


def test_what_is_asked_to_lie_in_an_order_is_the_argument_or_a_copy():
    def in_order(x):
        return (
            np.ascontiguousarray(x), np.asfortranarray(x), np.require(x, requirements="C"),
            np.asarray(x, order="C"), np.asarray(x, order="F"), np.array(x, order="C", copy=None),
            x.astype(float, order="C", copy=False), x.copy(order="F"), np.array(x, order="F"),
            x.astype(np.float32, order="F"),
        )

    compiled = pyrelay.jit(in_order)
    for _ in range(2):
        for x in arguments():
            for k, (mine, plain) in enumerate(zip(compiled(x), in_order(x), strict=True)):
                np.testing.assert_array_equal(mine, plain)
                assert np.shares_memory(mine, x) == np.shares_memory(plain, x), k
                assert mine.strides == plain.strides, k


def test_places_in_the_flat_array_are_written_however_it_lies():
    def flat_places(x):
        np.put(x, [1, 3], [7.0, 8.0])
        np.multiply.at(x, ([2, 2], [1, 1]), 3.0)
        np.einsum("ii->i", x[:, :4])[1:] = 5.0
        return ()

    assert_as_in_python(flat_places)


def test_results_lie_in_memory_as_in_python():
    def turned(x, z):
        kept = x.T * 3.0
        return (
            x.T + 1.0, (x * 2).T, (x.T @ x + 1.0).T, np.exp(z.transpose(1, 2, 0)) * z[0, 0, 0],
            x.T**2.5, x.T**2.0, x.T.copy(), (x.T + 1.0).T, x.T + x.reshape(6, 4),
            np.zeros_like(x.T), z.T[0] * 2, {"kept": kept}, [x.T.astype(np.float32)],
        )

    given = np.arange(24.0).reshape(4, 6), np.arange(24.0).reshape(2, 3, 4) / 24
    compiled = pyrelay.jit(turned)
    for _ in range(2):
        found, expected = compiled(*given), turned(*given)
        for one, other in zip(arrays_of(found), arrays_of(expected), strict=True):
            np.testing.assert_allclose(one, other)
            assert one.strides == other.strides


def arrays_of(result):
    """The arrays of a tuple, and of the dicts and lists in it."""
    for part in result.values() if isinstance(result, dict) else result:
        yield from (part,) if isinstance(part, np.ndarray) else arrays_of(part)


def test_arrays_that_stand_in_a_result_twice_are_one_array():
    @pyrelay.jit
    def twice(x, k):
        y, z = x.T + 1.0, x.T * 2.0
        return y, z, y, z[1:], y if k else z

    x = np.arange(24.0).reshape(4, 6)
    for k in (0, 1):
        y, z, again, part, chosen = twice(x, k)
        assert y is again
        assert chosen is (y if k else z)
        assert np.shares_memory(part, z)
        np.testing.assert_array_equal(y, x.T + 1.0)


def test_what_is_rolled_or_padded_lies_in_c_order():
    def moved(x):
        return np.roll(x, 1, 1), np.pad(x, 1, mode="reflect"), np.pad(x, ((0, 0), (2, 1)), "wrap")

    x = np.arange(12.0).reshape(3, 4)
    for found, wanted in zip(pyrelay.jit(moved)(x), moved(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.flags.c_contiguous
