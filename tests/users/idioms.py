"""NumPy's idioms: indexing, broadcasting, shapes, dtypes."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def field(*shape):
    """Deterministic numbers in (-1, 1)."""
    return np.sin(np.arange(1, np.prod(shape) + 1) * 1.1).reshape(shape)


@use((field(4, 3),), (field(2, 2).astype(np.float32),), wrt=(0,), long=True)
def normalise_columns(x):
    return (x - x.mean(axis=0)) / x.std(axis=0), x / np.linalg.norm(x, axis=1, keepdims=True)


@use((field(5),), wrt=(0,), slow=True)
def pairwise_distances(x):
    return np.abs(x[:, None] - x[None, :]), np.abs(np.subtract.outer(x, x))


@use((field(4, 5),), wrt=(0,), slow=True)
def slices_of_all_kinds(x):
    return x[1:], x[::-1], x[:, ::2], x[-1], x[..., 0], x[1:3, -2:], x[::-2, 1], x[None, :, 0]


@use((field(6),), long=True)
def masks(x):
    y = x.copy()
    y[y < 0] = 0
    y[(x > 0.5) & (x < 0.9)] = 0.7
    y[~(x > -0.5)] *= -1
    return y, (x > 0).sum(), np.any(x > 0.9), np.all(x > -2), np.count_nonzero(x > 0)


@use((field(6), np.array([0, 3, 3, 5])), wrt=(0,), long=True)
def fancy_indexing(x, idx):
    y = np.zeros(6)
    y[idx] = 1.0
    np.add.at(y, idx, x[idx])
    y[[0, 1]] += 2
    return y, x[idx][::-1], x[[1, 2, 1]], np.take(x, idx)


@use((field(3, 4), np.array([0, 1, 2]), np.array([3, 0, 1])), wrt=(0,), long=True)
def fancy_pairs(x, i, j):
    x = x.copy()
    picked = x[i, j]
    x[i, j] = 0.0
    x[:, j] += 1.0
    return picked, x, x[i][:, j], x[np.arange(3)[:, None], j]


@use((field(7),), (np.array([3, 1, 2]),), long=True)
def arg_functions(x):
    return x.argmax(), np.argmin(x), np.argsort(x), np.sort(x), x.max(), x.min()


@use((field(2, 3), field(2, 3) + 1), wrt=(0, 1), long=True)
def joins_and_splits(a, b):
    both = np.concatenate([a, b], axis=1)
    left, right = np.split(both, 2, axis=1)
    return (
        both, np.stack([a, b]), np.vstack((a, b)), np.hstack([a, b]), np.stack([a, b], axis=-1),
        left - right, np.column_stack([a[:, 0], b[:, 1]]), np.append(a[0], b[0]),
    )  # fmt: skip


@use((field(6), np.array([1, 0, 1, 1, 0, 2])), wrt=(0,))
def splits_where_it_computes(x, group):
    order = np.argsort(group, kind="stable")
    names, starts = np.unique(group[order], return_index=True)
    parts = np.split(x[order], starts[1:])
    rising = np.split(x, np.flatnonzero(np.diff(x) <= 0) + 1)
    return names, [part.mean() for part in parts], max(len(run) for run in rising)


@use((field(3, 2),), wrt=(0,), long=True)
def repeats_and_flips(x):
    return (
        np.tile(x, 2), np.tile(x, (2, 1)), np.repeat(x, 2), np.repeat(x, 3, axis=0),
        np.roll(x, 1), np.roll(x, 1, axis=0), np.flip(x), np.flip(x, 0), np.fliplr(x),
        np.flipud(x), np.pad(x, 1), np.pad(x, ((0, 1), (2, 0))), np.rot90(x),
    )  # fmt: skip


@use((field(2, 3, 4),), wrt=(0,), slow=True)
def reshapes(x):
    return (
        x.reshape(-1), x.reshape(6, -1), x.reshape((2, 12)), x.T, x.transpose(1, 0, 2), x.ravel(),
        x.flatten(), np.squeeze(x[:1]), x[:, None].shape, np.moveaxis(x, 0, -1), x.swapaxes(0, 1),
        np.expand_dims(x, 1), np.atleast_2d(x[0, 0]),
    )  # fmt: skip


@use((field(3, 4),), wrt=(0,), long=True)
def reductions(x):
    return (
        x.sum(), x.sum(axis=0), x.mean(1), np.max(x, axis=0), x.min(-1), x.prod(), x.std(),
        x.var(axis=0, ddof=1), np.median(x), np.cumsum(x), x.cumsum(axis=1), np.cumprod(x, axis=0),
        np.ptp(x), np.linalg.norm(x), np.average(x, axis=0), np.diff(x, axis=1),
        np.maximum.reduce(x), np.logical_and.reduce(x > -2), np.add.reduce(x, axis=1),
    )  # fmt: skip


@use((field(3, 4), field(4, 2), field(4)), wrt=(0, 1, 2), slow=True)
def products(a, b, v):
    return (
        a @ b, np.dot(a, b), a.dot(v), np.matmul(a, b), np.outer(v, v), v @ v, np.inner(v, v),
        np.einsum("ij,jk->ik", a, b), np.einsum("ij->j", a), np.einsum("i,i", v, v), np.vdot(v, v),
        np.tensordot(a, b, axes=1), np.trace(a @ b @ b.T @ a.T), np.kron(v[:2], v[2:]),
    )  # fmt: skip


@use((3, 5), long=True)
def created(n, m):
    xs, ys = np.meshgrid(np.arange(n), np.linspace(0, 1, m))
    return (
        np.zeros(n), np.ones((n, m)), np.full((2, n), 7.5), np.eye(n), np.identity(n),
        np.arange(2, m), np.arange(0.0, 1.0, 0.25), np.linspace(-1, 1, n), xs, ys, np.empty(0),
        np.zeros((n, m), dtype=np.float32), np.arange(n, dtype=float), np.logspace(0, 2, n),
        np.tri(n), np.diag(np.arange(n)), np.triu(np.ones((n, n)), 1), np.zeros((n,), int),
    )  # fmt: skip


@use((np.array([250, 5], dtype=np.uint8), np.array([127], dtype=np.int8)), long=True)
def integer_overflow_wraps(a, b):
    return a + np.uint8(10), a * a, b + np.int8(1), -a, a // 2, a.sum(), a.astype(int) + 10


@use((np.float32(1.5), field(3), field(3).astype(np.float32)))
def promotions(s, x, y):
    return (
        s * 2, s * 2.0, s + x, y * 2.0, y + x, y * s, y / 3, np.sqrt(y), np.sin(2), y + 1,
        np.arange(3) / 2, np.arange(3) * y, (y > 0) * 2.5, np.float64(s), y.astype(np.float64),
        np.int32(3) * np.arange(2), True + y,
    )  # fmt: skip


@use((field(3) + 1j * field(3)[::-1], 2.0), long=True)
def complex_arrays(z, k):
    return (
        np.abs(z), z.real, z.imag, np.conj(z), z * k, np.exp(1j * k * z.real), np.angle(z), z.sum(),
        (z * z.conj()).real, z @ z, np.real(z), np.isreal(z.real),
    )  # fmt: skip


@use((field(6), 0.5), wrt=(0, 1), long=True)
def piecewise(x, k):
    soft = np.sign(x) * np.maximum(np.abs(x) - k, 0)
    huber = np.where(np.abs(x) < k, 0.5 * x**2, k * (np.abs(x) - 0.5 * k))
    chosen = np.select([x < -k, x > k], [-x, x * 2], 0.0)
    return soft, huber, np.clip(x, -k, k), chosen, np.heaviside(x, 0.5)


@use((np.array([1.0, np.nan, 3.0, np.inf]),), long=True)
def not_numbers(x):
    return (
        np.isnan(x), np.isinf(x), np.isfinite(x), np.nan_to_num(x), np.nansum(x), np.nanmax(x[:3]),
        np.where(np.isnan(x), 0, x),
    )


@use((field(5),), wrt=(0,), long=True)
def ufuncs(x):
    return (
        np.exp(x), np.log1p(x + 2), np.log10(x + 2), np.sqrt(x + 2), np.square(x), np.tanh(x),
        np.arctan2(x, 2.0), np.hypot(x, 1.0), np.power(x + 2, 1.5), np.abs(x), np.minimum(x, 0.1),
        np.reciprocal(x + 2), np.cbrt(x + 2), np.sinh(x), np.arcsin(x), np.logaddexp(x, 0),
        np.float_power(x + 2, 2), np.degrees(x), np.deg2rad(x), np.sinc(x + 2), np.rad2deg(x),
    )  # fmt: skip


@use((np.array([3.7, -3.7, 2.5]),))
def roundings(x):
    return (
        np.floor(x), np.ceil(x), np.rint(x), np.trunc(x), np.round(x), x.round(1), np.fix(x),
        x // 1, x % 2, np.mod(x, 2), np.fmod(x, 2), x.astype(int), np.sign(x), np.divmod(x, 2),
    )  # fmt: skip


@use((np.array([1, 2, 3, 4]), np.array([1, 0, 3, 0])), long=True)
def comparisons_and_logic(a, b):
    return (
        a == b, (a == b).all(), np.array_equal(a, b), np.allclose(a, b), a != b, a >= b,
        np.logical_or(a > 2, b > 2), np.logical_not(b), (a > 1) ^ (b > 0), a & b, a | 1, a << 2,
        np.isin(a, [1, 4]), np.equal(a, b), bool(a.any()), np.bitwise_xor(a, b),
    )  # fmt: skip


@use((field(4, 4),), long=True)
def writes_of_all_kinds(x):
    x[0] = 1
    x[:, 1] = np.arange(4)
    x[2, 2:] *= 10
    x[-1, ::2] = [7.0, 8.0]
    x[1:3, 0] = x[0, 1:3]
    x.T[0, 0] = -5
    x[np.arange(4), np.arange(4)] += 100
    np.fill_diagonal(x[1:, 1:], 3.0)
    row = x[3]
    row += 1
    x.flat[5] = 9.0
    return x.sum()


@use((field(3), field(2, 3)), wrt=(0, 1), slow=True)
def in_place_functions(a, b):
    out = np.zeros(3)
    np.add(a, 1.0, out=out)
    np.multiply(out, 2.0, out=out)
    b -= a
    b /= 2
    b **= 2
    np.copyto(a, out)
    return out, b


@use((np.array([1.0, 2.0, 4.0, 7.0]), np.array([0.5, 3.0, 6.9])), wrt=(), long=True)
def searching(x, q):
    place = np.unravel_index(5, (2, 3))
    return np.searchsorted(x, q), np.interp(q, x, x**2), np.digitize(q, x), place


@use((np.array([3, 1, 3, 2, 1]),), long=True)
def counting(x):
    return np.bincount(x, minlength=5), np.unique(np.array([1, 2])).size


@use((field(3, 3),), wrt=(0,), slow=True)
def triangles_and_diagonals(a):
    sym = (a + a.T) / 2
    total = a.diagonal().sum()
    return np.tril(a), np.triu(a, 1), np.diag(a), np.trace(a), np.diag(a[0]), sym, total


@use((field(8),), wrt=(0,), slow=True)
def strided_tricks(x):
    even, odd = x[::2], x[1::2]
    inter = np.empty(8)
    inter[0::2] = odd
    inter[1::2] = even
    return inter, x.reshape(4, 2).sum(axis=1), x[:4][::-1] + x[4:], x[-3:], x[:-3]


@use((2, 3.5), (np.int64(2), np.float64(3.5)))
def numbers_of_numpy_and_python(a, b):
    converted = float(b), int(b), np.int64(a)
    return a + b, np.maximum(a, b), max(a, b), np.sqrt(a), a**2, np.abs(-a), converted


@use((field(2, 3),), wrt=(0,))
def out_of_attributes(x):
    rows, cols = x.shape
    is_double = x.dtype == np.float64
    return x.ndim, x.size, len(x), is_double, rows * cols, x.shape[-1], x.item(0), x[0].tolist()


@use((field(3, 4),), wrt=(0,), long=True)
def iterating(x):
    total = 0.0
    for row in x:
        for v in row:
            total += v**2
    by_index = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            by_index += x[i, j] * (i - j)
    for k, col in enumerate(x.T):
        total += k * col.sum()
    return total, by_index


@use((field(3, 3),), wrt=(0,), slow=True)
def linalg(a):
    m = a @ a.T + 3 * np.eye(3)
    return (
        np.linalg.inv(m), np.linalg.solve(m, a[0]), np.linalg.det(m), np.linalg.cholesky(m),
    )


@use((field(6) + 1j * field(2, 3).reshape(-1)[::-1], 6), slow=True)
def escape_times(c, most):
    """Complex numbers are compared by their real parts, where these tie by the imaginary ones."""
    z, times = c, most + np.zeros(c.shape, dtype=int)
    for k in range(most):
        z = z**2 + 3 * c
        beyond = z * np.conj(z) > 2**2
        times[beyond & (times == most)] = k
        z[beyond] = 2
    return times, c >= c[::-1], np.maximum(c, 0.1j), c[0] < c[1]


LETTERS = frozenset("abc")


@use(({1: 2, 4: 5}, [1, 2, 4]), ({}, [1]))
def sums_with_a_marker(table, keys):
    missing, total, last = object(), 0, None
    for k in keys:
        v = table.get(k, missing)
        if v is missing:
            last = k
            continue
        total += v
    best = missing
    for k in keys:
        if best is missing or k > best:
            best = k
    return total, last, best


@use(("abca",), ("xyz",), ("",))
def letters_of_a_word(word):
    return LETTERS.issuperset(word), LETTERS.isdisjoint(word), LETTERS.issubset(word)
