"""Reading and writing at positions: index arrays, masks, ufuncs' `at`, parts of complex arrays."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([1.0, -2.0, 3.0, 0.5, 0.25])
A = np.sin(np.arange(12.0)).reshape(3, 4)
K = np.array([2, 0, 2, 1])


@use((X, K, np.array([0.5, 1.5, 2.0, -1.0])), wrt=(0, 2), long=True)
def ufuncs_at_repeated_positions(x, k, v):
    np.add.at(x, k, v)
    np.multiply.at(x, k, v + 2.0)
    np.subtract.at(x, [0, 0], v[:2])
    np.maximum.at(x, k[1:], 0.7)
    return x


@use((A,), wrt=(0,), long=True)
def the_top_of_each_row(a):
    order = np.argsort(a, axis=1)
    top = np.take_along_axis(a, order[:, -2:], axis=1)
    np.put_along_axis(a, order[:, :1], top.sum(axis=1, keepdims=True), axis=1)
    return top, a


@use((A, np.array([0, 2]), np.array([1, 3])), wrt=(0,), long=True)
def a_block_of_rows_and_columns(a, rows, columns):
    a[np.ix_(rows, columns)] *= a[np.ix_(columns[:1], rows)] + 2.0
    return a, a[None, :, columns].sum()


@use((X, 1.5), wrt=(0, 1), long=True)
def sorted_and_put_in_place(x, v):
    x[1:].sort()
    np.put(x, [0, 1], [v, v * x[2]])
    x.put([4], x[3] ** 2)
    return x


@use((X, np.array([0.3, 0.1, 0.2])), wrt=(0, 1), long=True)
def values_under_a_mask(x, v):
    positive = x > 0.3
    x[positive] = v * x[positive]
    x[~positive] -= x[positive].sum()
    return x[x > -5.0]


@use((X, 1), (X, 0), wrt=(0,), slow=True)
def written_if_a_flag_holds(x, k):
    x[k > 0] = x[::-1] * 2.0
    return x


@use((X, K), wrt=(0,), slow=True)
def parts_of_a_complex_array(x, k):
    z = x + 2j * x[::-1]
    z.real[1:] += x[1:] ** 2
    z.imag = z.imag * 0.5
    return np.abs(z) + (z * z.conj()).real


@use((np.array([250, 3], dtype=np.uint8), 4), (np.array([250, 3], dtype=np.uint8), 300))
def a_byte_that_overflows(u, k):
    u += 10
    u[0] = k
    return u


@use((X, np.array([1.0, 2.0])), (X[:3], np.array([1.0, 2.0])))
def as_many_values_as_places(x, v):
    x[x > 0.6] = v
    return x


@refuse((np.arange(4.0),), "'tobytes'", "tuple(x.ravel().tolist()) for a key")
def bytes_as_a_key(x):
    seen = {x.tobytes()}
    return len(seen)


_FOUR = np.arange(24.0).reshape(4, 6)
_SOME, _OTHERS = np.array([False, True, True, True]), np.array([False, False, True, False])


@use(
    (_FOUR, _SOME, np.array([1, 3, 5])), (_FOUR, _OTHERS, np.array([1, 3, 5])),
    (_FOUR, ~_OTHERS, np.array([1, 3])), wrt=(0,), corners=(2,),
)
def masks_of_one_beside_places(m, mask, places):
    taken = m[mask, places]
    m = m * 2
    m[mask, places] += taken
    return m, taken, m.T[places, mask]


@use((A, (2, 0)), wrt=(0,))
def places_in_tuples(a, places):
    a[(0, 1), (1, 2)] += 10.0
    np.add.at(a, ((0, 0), (3, 3)), 0.5)
    found = a[(0, 1, 0), (1, 1, 2)], a[:, (0, 3)], a[places, 1:], a[(1, 2)], a[:, ()]
    return found, a[-1, ((0, 1),)]


@use((A, 4), wrt=(0,))
def ranges_as_operands(a, n):
    return (a[0] + range(n)) / n, range(n) * a, range(n) - a[1], a[2] < range(n)


@use((A, np.array([7.0, 8.0])), wrt=(0, 1))
def elements_of_flat_in_turn(a, v):
    places = [0, 2, 5] + [-1]
    a.flat[places] = v
    a.T.flat[1:4] = [1.0, 2.0]
    a.flat[a.ravel() < -0.9] = v * 2.0
    a.flat[::5] = np.stack([v, v + 1.0])
    return a


#: with a number that no int of 64 bits holds, for arrays that come rarely
SPANS = {np.uint8: (0, 255), np.float64: (-1, 1), np.uint64: (0, 2**64 - 1)}


@use((A,), (np.arange(5, dtype=np.uint8),))
def spans_by_type(a):
    least, most = SPANS[a.dtype.type]
    return (a - least) / (most - least)


@use((A,), (np.arange(6).reshape(2, 3),))
def required_to_be(a):
    x = np.require(a, dtype=np.float64, requirements=["C", "W"])
    x[0, 0] = 5.0
    return x, a, np.require(a.T, None, "F").T
