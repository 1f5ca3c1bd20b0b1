"""What NumPy gives as a view, or as the array itself: writes behind it show."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

M = np.arange(9.0).reshape(3, 3)


@use((M,), wrt=(0,), slow=True)
def arrays_as_they_are(m):
    same = np.asarray(m, dtype=float), np.ascontiguousarray(m, float), m.astype("f8", copy=False)
    fresh = np.array(m, dtype=float), m.astype(float), np.copy(m)
    m[1] += 100
    same[0][0, 0] = -7
    return [v[:2, :2] * 1 for v in (*same, *fresh)], same[0] is m


@use((M,), wrt=(0,), slow=True)
def einsum_without_a_sum(m):
    turned, diagonal, summed = np.einsum("ij->ji", m), np.einsum("ii->i", m), np.einsum("ij->i", m)
    m[1] += 100
    return turned * 1, diagonal * 1, summed, m


@use((M + 1j * M,))
def parts_of_complex_numbers(m):
    real, imag = np.real(m), np.imag(m)
    m[1] += 100 + 50j
    return real * 1, imag * 1


@use((M,), wrt=(0,), long=True)
def grids_are_fresh(m):
    x, y = np.meshgrid(m[0], m[1])
    m[1] += 100
    x[0] = 5
    sparse, _ = np.meshgrid(m[0], m[1], sparse=True, copy=False)
    m[0] -= 1
    return x, y, sparse * 1


SHIFTS = (1.0, 2.0, 3.0)


@use((M, [1.0, 2.0, 3.0]), wrt=(0, 1), long=True)
def lists_beside_arrays(m, weights):
    items = [0.5]
    items += m[0]
    m[2] *= (1, 0, -1)
    return (
        m + weights, [1, 2, 3] * m, m @ [1.0, 0.0, 2.0], (1, 2, 3) - m[0], m[1] ** [1, 2, 3],
        items, m * SHIFTS, m[1] > [1, 9, 4], [[1], [2], [3]] + m,
    )


@use((np.arange(6.0), 2), (np.arange(6), 1))
def arrays_of_one_element_in_an_element(x, i):
    said = []
    for k in range(4):
        try:
            if k == 0:
                x[i] = x[:1]
            elif k == 1:
                x[i] = [7.0]
            elif k == 2:
                x[i, ...] = x[3:4]
            else:
                x.reshape(2, 3)[0, i] = np.array(x[5])
        except (TypeError, ValueError) as error:
            said.append(str(error))
    x[:2] = x[4:5].reshape(1, 1, 1)
    return said, x


@use((np.arange(6.0).reshape(1, 6),), (np.arange(6.0).reshape(2, 3),))
def padded_by_nothing(m):
    p = np.pad(m, ((0, 0), (0, 0)), mode="edge")
    p += 1
    return m, p


@use((np.arange(6.0).reshape(1, 6),), (np.arange(6.0).reshape(2, 3),))
def reduced_over_one_row(m):
    last, first = np.subtract.reduce(m), np.divide.reduce(m + 1, axis=0, keepdims=True)
    last += 10
    first[...] = 3
    return m, last, first
