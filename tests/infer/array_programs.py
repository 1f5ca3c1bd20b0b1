"""Expressions and statements on arrays, one a line, with the values of the names they use."""

from __future__ import annotations

from typing import Any

import numpy as np

NAMES: dict[str, Any] = {
    "x": np.array([1.0, -2.0, 3.0, 0.5, 0.0]),
    "y": np.array([2.0, 1.0, -1.0, 4.0, 0.25]),
    "a": np.arange(12.0).reshape(3, 4) - 4.5,
    "b": np.sin(np.arange(24.0)).reshape(2, 3, 4),
    "c": np.float64(2.5),
    "e": np.zeros((0,)),
    "e2": np.zeros((0, 3)),
    "f": np.array([1.5, -2.0], dtype=np.float32),
    "i": np.array([2, 0, -1]),
    "I": np.array([3, -1, 4, 1]),
    "j": np.array([[0, 1], [2, 0]]),
    "k": 2,
    "l": [2, 0, 1],
    "m": np.array([True, False, True, True, False]),
    "M": np.arange(12).reshape(3, 4) % 3 == 0,
    "n": 3,
    "q": np.array([5, 2], dtype=np.int8),
    "r": np.array([True, False, True]),
    "s": -2,
    "t": 0.5,
    "u": np.array([3, 250, 7], dtype=np.uint8),
    "z": np.array([1 + 2j, -0.5j, 3.0, -1 - 1j]),
}

EXPRESSIONS = """
x[::-1]
x[::s]
x[k::-1]
x[3:0:s]
x[::k]
a[::-1, ::s]
a[..., 1]
a[None, :, k]
a[..., None]
a[None, ..., None, 0]
b[..., 1, :]
b[:, None, k]
x[m]
x[~m]
x[x > 0]
a[M]
a[a > 0]
a[r]
a[r, 1]
a[r, 1:]
a[r][:, 0]
a[:, [0, 2]]
a[[0, 2]]
a[[0, 2], [1, 3]]
a[i]
a[i, 0]
a[i, 1:3]
a[:, i]
a[j]
a[j, 0]
a[j, j]
b[0, :, i]
b[:, 0, i]
b[0, i]
b[i % 2, :, 0]
b[i % 2, 0, :]
b[:, i, 0]
b[..., i]
b[:, i, i]
b[i % 2, :, i]
b[None, :, i]
a[np.ix_([0, 2], [1, 3])]
a[np.ix_(i, i)]
a[i[:, None], i[None]]
a[l]
x[l]
x[[True, False, True, True, False]]
x[-1]
x[k]
x[-k]
a[k, -1]
a[k][1]
a[k, 1:][0]
x[()]
x[...]
a[()]
x[k:k+2]
x[-3:-1]
x[10:]
x[:-10]
x[k:1]
x[-100:100]
x[True]
x[False]
x[None]
x.mean()[None]
x.sum()[..., None, None]
x.max()[()]
np.seterr(divide="warn")["under"] == "ignore"
x[k > 1]
np.nonzero(x)
np.nonzero(a > 0)
np.argwhere(a > 0)
np.argwhere(m)
np.flatnonzero(a > 0)
np.where(x > 0)
np.where(a > 0)[1]
np.where(a > 0, a, 0)
np.where(x > 0, x, t)
np.take(x, i)
np.take(a, i, axis=0)
np.take(a, i, axis=1)
np.take(a, 1, axis=1)
np.take_along_axis(a, np.argsort(a, axis=1), axis=1)
np.take_along_axis(a, np.argmax(a, axis=1)[:, None], axis=1)
np.compress(m, x)
np.extract(x > 0, x)
np.choose(np.array([0, 1, 1, 0, 1]), [x, y])
np.select([x > 1, x < 0], [x, -x], 7.)
np.diagonal(a)
np.diagonal(a, 1)
a.diagonal()
a.diagonal(1)
a.diagonal(-1)
b.diagonal(0, 1, 2)
a.trace()
np.trace(a)
np.diag(x)
np.diag(a)
np.diag(a, -1)
x[np.argsort(x)]
a[np.arange(3), i]
a[np.arange(3), [0, 1, 2]]
a[a[:, 0].argsort()]
x[i] * 2
x[np.newaxis, :] - x[:, np.newaxis]
a.T
a.mT
b.T
b.mT
a.shape
a.ndim
a.size
a.dtype
a.itemsize
a.nbytes
a.flat[3]
x.real
z.real
z.imag
x.imag
a.sum()
a.sum(0)
a.sum(axis=(0, 1))
a.sum(axis=-1, keepdims=True)
b.sum((0, 2))
a.sum(dtype=np.float32)
a.sum(initial=2.)
a.sum(where=M)
a.sum(axis=0, where=M, initial=1.)
a.mean()
a.mean(1)
a.mean(axis=0, keepdims=True)
a.mean(where=M)
a.std()
a.std(axis=0, ddof=1)
a.var(1)
a.var(ddof=1)
a.min()
a.max(axis=1)
a.max(axis=(0, 1))
a.min(initial=-20.)
a.max(axis=0, where=M, initial=-1.)
a.argmin()
a.argmax(1)
a.argmax(axis=0, keepdims=True)
a.ptp(axis=0) if hasattr(a, 'ptp') else 0
np.ptp(a)
np.ptp(a, axis=1)
x.prod()
a.prod(axis=0)
x.cumsum()
a.cumsum()
a.cumsum(axis=1)
a.cumprod(axis=0)
m.any()
M.all(axis=0)
M.any(1, keepdims=True)
M.sum()
M.mean()
x.clip(0, 2)
x.clip(min=0)
x.clip(max=1.)
x.clip(0, y)
x.round()
a.round(1)
x.dot(y)
a.dot(a.T)
a.transpose()
b.transpose(1, 0, 2)
b.transpose((2, 0, 1))
a[0].transpose(0), np.transpose(a[0], [-1])
a.reshape(2, 6)
a.reshape((4, -1))
a.reshape(-1)
a.reshape(2, 6, order='F')
a.ravel()
a.ravel('F')
a.flatten()
a.T.flatten()
a[None].squeeze()
a[None].squeeze(0)
a[None].squeeze(axis=0)
a.swapaxes(0, 1)
b.swapaxes(-1, 0)
x.repeat(2)
a.repeat(2, axis=0)
x.repeat([1, 2, 0, 1, 1])
x.take(i)
a.take(i, axis=1)
a.take([[0, 1], [2, 3]])
x.argsort()
a.argsort(axis=0)
np.sort(x)
np.sort(a, axis=0)
np.sort(x)[::-1]
np.sort(x).searchsorted(1.)
np.sort(x).searchsorted(y)
np.sort(x).searchsorted(y, side='right')
x.nonzero()
x.copy()
x.astype(int)
x.astype(np.float32)
x.astype('float32')
x.astype(bool)
I.astype(float)
x.item(2)
x[2].item()
a.item(1, 2)
x.sum().item()
x.tolist()
a.tolist()
z.conj()
z.conjugate()
np.partition(x, 2)[2]
x.compress(m)
np.array([x, y])
abs(z)
np.angle(z)
z * 2 + 1j
z @ z
np.vdot(z, z)
np.dot(z, z)
np.exp(z)
np.sqrt(z)
np.log(z)
np.sin(z)
np.abs(z) ** 2
z.sum()
z.mean()
z.prod()
(z * z.conj()).real
z ** 2
z ** 0.5
1 / z
z.real ** 2 + z.imag ** 2
z == z
z.reshape(2, 2).T.conj()
np.sum(z, axis=0)
z.std()
z.var()
np.linalg.norm(z)
complex(1, 2) * x
x + 1j * y
x * 1j
np.conj(z)
np.real(z)
np.imag(z)
z[::2]
z.cumsum()
np.outer(z, z)
z / z
-z
np.isfinite(z)
np.round(z, 1)
np.power(z, 3)
z.astype(np.complex64)
f * 2
f + t
f + 1
f.sum()
f.mean()
f @ f
u + 10
u * 2
u + u
u.sum()
u / 2
u // 3
u % 5
u ** 2
-u
u >> 1
u & 3
~u
u.mean()
m + m
m * 2
m & m
m ^ m
~m
m - False
-x
I / 2
I // 2
I ** 2
I % 3
I.mean()
I.std()
np.log(I)
I.sum(dtype=float)
I.max()
I.cumsum()
I.prod()
e.sum()
e.max()
e.min()
e.mean()
e.argmax()
e.prod()
e2.sum(axis=0)
e2.max(axis=0)
e2.max(axis=1)
e2.mean(axis=1)
x[x > 100].max()
x[x > 100].sum()
x[x > 100].argmin()
np.max(x[5:])
x[7]
x[-6]
a[3]
a[0, 4]
a[k+1]
a[:, -5]
a[i+5]
x[[0, 9]]
x[i * 3]
a[0, 0, 0]
x[np.array([0, 5])]
x.reshape(2, 2)
x.reshape(3, -1)
np.add(x, a)
x + x[:3]
a @ a
x[M]
x[r]
c * x
c.real
c.shape
c.item()
c.dtype
c.ndim
x.max().dtype
x.T @ y
x.flat[i]
a.flat[2:5]
np.unravel_index(5, (3, 4))
np.ravel_multi_index((1, 2), (3, 4))
np.count_nonzero(a)
np.squeeze(a[None])
np.rot90(a)
np.flip(a)
np.flip(a, 1)
np.fliplr(a)
np.roll(a, 1)
np.roll(a, 1, axis=0)
np.roll(x, k)
np.tril(a)
np.triu(a, 1)
np.tril_indices(3)
a[np.tril_indices(3)]
a[np.triu_indices(3, 1)]
np.diag_indices(3)
a[np.diag_indices(3)]
x[slice(1, 3)]
a[slice(None), 0]
a[(0, 1)]
a[(slice(0, 2), 1)]
x[-k:]
x[:-k]
x[:k], x[k:]
a[:, k:][:, ::-1]
x[::-1][1:3]
x[::2][::-1]
x[-1:0:-2]
x[5:1:-1]
a[1:][:, 1:].sum()
n ** 50
n / 0
n // 0
n % 0
x / 0
c / 0
math.sqrt(-1.0)
math.sqrt(s)
math.log(0.0)
math.log(k - 2)
np.log(c - 2.5)
math.exp(1000.0)
(-8.0) ** (1 / 3)
t ** s
0 ** s
0.0 ** s
(k - 2) ** s
np.sqrt(c - 10)
int(t * 1e30)
int(np.inf * t)
n << 70
n << s
np.int64(5) // np.int64(k - 2)
np.uint8(255) + np.uint8(k)
u + 300
u + s
q * 100
q - 200
np.int8(100) * k
u * -1
np.full(3, 300, dtype=np.uint8)
round(t * 5)
round(2.675, 2)
divmod(n, k)
divmod(t, k)
-7 // k
-7 % k
-7.5 // k
-7.5 % k
"""

STATEMENTS = """
x[x < 0] = 0; return x
x[m] = y[m]; return x
x[m] = [9., 8., 7.]; return x
x[m] = 5; return x
x[m] += 1; return x
x[m] *= y[m]; return x
x[~m] = x[m].sum(); return x
x[m] = y[:2]; return x
a[M] = -1; return a
a[a > 0] *= 2; return a
a[M] = np.arange(4.); return a
a[r] = 0; return a
a[r] = x[:4]; return a
a[r, 1] = 5; return a
a[r, 1:] = 5; return a
a[:, 1][r] = 7; return a
a[r, :k] = a[r, k:]; return a
a[r] += x[:4]; return a
a[:, [0, 2]] = 0; return a
a[[0, 2]] = a[[2, 0]]; return a
a[:, [0, 1]] = a[:, [1, 0]]; return a
a[i, 0] = 5; return a
a[i, [1, 2, 3]] = [1, 2, 3]; return a
a[i] = 0; return a
a[i] += 1; return a
x[i] = y[i]; return x
x[i] += 1; return x
x[[0, 0, 1]] += 1; return x
x[[0, 0, 1]] = [1, 2, 3]; return x
np.add.at(x, [0, 0, 1], 1.); return x
np.add.at(x, i, y[:3]); return x
np.add.at(a, (i, i), 2.); return a
np.add.at(a, i, 1.); return a
np.add.at(a, (slice(None), [0, 0]), 1.); return a
np.subtract.at(x, [0, 0, 1], 1.); return x
np.multiply.at(x, [0, 0, 1], 2.); return x
np.maximum.at(x, [0, 0, 1], y[:3]); return x
np.minimum.at(x, i, 0.); return x
np.negative.at(x, [0, 0]); return x
np.divide.at(x, [0, 0], 2.); return x
np.logaddexp.at(x, [0, 0], 2.); return x
np.add.at(I, [0, 0, 1], 1); return I
np.put(x, [0, 2], [7., 8.]); return x
x.put([0, 2], 5.); return x
np.put(x, i, y); return x
np.put_along_axis(a, np.argmax(a, axis=1)[:, None], 0., axis=1); return a
np.putmask(x, m, y); return x
np.putmask(x, x > 0, 0.); return x
np.place(x, m, [1., 2.]); return x
np.copyto(x, y); return x
np.copyto(x, 0.); return x
np.copyto(x, y, where=m); return x
np.fill_diagonal(a, 0.); return a
np.fill_diagonal(a[:, :3], x[:3]); return a
x.fill(2); return x
x.sort(); return x
a.sort(); return a
a.sort(axis=0); return a
a.sort(0); return a
a[0].sort(); return a
a[:, 1].sort(); return a
x[::-1].sort(); return x
x[...] = y; return x
x[()] = 1.; return x
x[::2] = 0; return x
x[::-1] = x; return x
x[1:] = x[:-1]; return x
x[:-1] = x[1:]; return x
x[::s] = 1.; return x
x[k::-1] = y[:3]; return x
a[::-1] = a; return a
a[:, ::-1] = a; return a
a[..., 0] = 5; return a
a[None, 0] = 5; return a
a[0, None] = 5; return a
a[0] = x[:4]; return a
a[:, 0] = [1, 2, 3]; return a
a[0:2, 1:3] = [[1, 2], [3, 4]]; return a
a[-1] += a[0]; return a
a[1:] -= a[:-1]; return a
a += x[:4]; return a
a *= 2; return a
a /= 2; return a
a **= 2; return a
a //= 2; return a
a %= 3; return a
I += 1; return I
I *= 2; return I
I[0] = 2.7; return I
I[0] = -2.7; return I
I[:] = x[:4]; return I
I //= 2; return I
I <<= 1; return I
I &= 3; return I
m &= ~m; return m
m |= True; return m
m[0] = 5; return m
u[0] = 300; return u
u[0] = -1; return u
u[0] = k; return u
u[:] = 256; return u
u += 5; return u
u += 300; return u
u[0] += 10; return u
u[1] += 10; return u
q[0] = 200; return q
x[7] = 1; return x
x[k + 5] = 1; return x
a[3, 0] = 1; return a
a[0, k + 2] = 1; return a
x[i * 3] = 1; return x
x[:2] = y; return x
x[:] = y[:3]; return x
a[:] = x; return a
x[m] = y; return x
x[M] = 1; return x
x[k] += 1; return x
x[k], x[0] = x[0], x[k]; return x
x[[0, k]] = x[[k, 0]]; return x
x[0] = x[1] = 5; return x
x.flat[2] = 5; return x
a.flat[i] = 5; return a
a.flat[5] = 1.; return a
a.flat = 3.; return a
a.T[0] = 5; return a
a.reshape(-1)[3] = 5; return a
a.ravel()[3] = 5; return a
a.reshape(4, 3)[0] = 5; return a
a.flatten()[0] = 5; return a
a.swapaxes(0, 1)[1] = 5; return a
a[1].reshape(2, 2)[0, 1] = 5; return a
np.transpose(a)[0] = 5; return a
np.reshape(a, (6, 2))[0] = 5; return a
np.ravel(a)[1] = 5; return a
np.squeeze(a[None])[0] = 5; return a
np.expand_dims(a, 0)[0, 0] = 5; return a
np.atleast_2d(x)[0, 0] = 5; return x
np.flip(x)[0] = 5; return x
np.moveaxis(a, 0, 1)[0] = 5; return a
np.split(x[:4], 2)[0][0] = 5; return x
p, w = np.split(x[:4], 2); p += 1; return x
np.array_split(x, 2)[1][0] = 5; return x
np.asarray(x)[0] = 5; return x
np.array(x)[0] = 5; return x
np.array(x, copy=False)[0] = 5; return x
x.view()[0] = 5; return x
x.astype(float)[0] = 5; return x
x.astype(float, copy=False)[0] = 5; return x
z.real[0] = 5; return z
z.imag = 5; return z
z.real = x[:4]; return z
z[0] = 1; return z
z[0] = 1j; return z
z += x[:4]; return z
np.add(x, y, out=x); return x
np.add(x, y, x); return x
np.exp(x, out=x); return x
np.exp(x, out=y[:]); return y
np.multiply(x, 2, out=x); return x
np.clip(x, 0, 1, out=x); return x
x.clip(0, 1, out=x); return x
np.maximum(x, 0, out=x); return x
np.dot(a, x[:4], out=y[:3]); return y
np.matmul(a, x[:4], out=y[:3]); return y
np.sum(a, axis=0, out=x[:4]); return x
a.sum(axis=0, out=x[:4]); return x
np.cumsum(x, out=y); return y
np.mean(a, axis=1, out=x[:3]); return x
np.sqrt(x, out=y, where=x > 0); return y
np.add(x, y, out=x, where=m); return x
np.divide(x, y, out=np.zeros_like(x), where=y != 0.25)
np.where(m, x, y)[0] = 1; return x
np.take(x, i, out=y[:3]); return y
np.greater(x, y, out=m); return m
np.logical_not(m, out=m); return m
np.negative(x, out=x); return x
np.round(x, 0, out=x); return x
np.copyto(x[1:3], y[:2]); return x
np.einsum('ij,j->i', a, x[:4], out=y[:3]); return y
np.swapaxes(a, 0, 1)[2] = 0; return a
x[0:0] = []; return x
x[k:k] = 1; return x
a[:, k] = 0; a[k] = 1; return a
a[[True, False, True]] = 1; return a
a[np.ix_([0, 2], [1, 3])] = 9; return a
a[np.ix_([0, 2], [1, 3])] += 9; return a
a[i[:, None], i] = 1; return a
b[:, 0, [1, 2]] = 5; return b
b[0, :, [1, 2]] = 5; return b
b[i % 2, :, 0] = 5; return b
b[..., i] = 5; return b
b[:, m[:3]] = 7; return b
b[0, m[:3], 1] = 7; return b
b[M[None].repeat(2, 0)] = 3; return b
a[np.arange(3), i] += 1; return a
a[np.arange(3), [0, 1, 2]] = x[:3]; return a
a[np.tril_indices(3)] = 0; return a
a[np.diag_indices(3)] += 10; return a
x[np.where(x > 0)] = 1; return x
x[np.where(x > 0)[0]] += 1; return x
a[np.nonzero(a > 0)] = 1; return a
x[np.argmax(x)] = 0; return x
x[x.argmin()] += 10; return x
a[np.unravel_index(np.argmax(a), a.shape)] = 0; return a
x[x == x.max()] = 0; return x
x[np.isnan(x)] = 0; return x
x[(x > 0) & (y > 0)] = 1; return x
x[np.abs(x) > 1] = np.sign(x)[np.abs(x) > 1]; return x
"""
