"""Linear algebra by hand."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

SPD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
SQUARE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
VECTOR = np.array([1.0, -2.0, 0.5])


@use((SQUARE,), long=True)
def lu_with_pivoting(A):
    A = A.copy()
    n = A.shape[0]
    perm = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if A[p, k] == 0:
            raise ValueError("matrix is singular")
        if p != k:
            A[[k, p]] = A[[p, k]]
            perm[k], perm[p] = perm[p], perm[k]
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A, perm


@use((SQUARE, VECTOR), wrt=(0, 1), long=True)
def gaussian_elimination(A, b):
    n = len(b)
    A = A.copy()
    x = b.copy()
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(A[r, i]) > abs(A[pivot, i]):
                pivot = r
        for c in range(n):
            A[i, c], A[pivot, c] = A[pivot, c], A[i, c]
        x[i], x[pivot] = x[pivot], x[i]
        for r in range(i + 1, n):
            factor = A[r, i] / A[i, i]
            A[r, i:] -= factor * A[i, i:]
            x[r] -= factor * x[i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


@use((SPD,), wrt=(0,), slow=True)
def cholesky(A):
    n = A.shape[0]
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = sum(L[i, k] * L[j, k] for k in range(j))
            if i == j:
                L[i, j] = np.sqrt(A[i, i] - s)
            else:
                L[i, j] = (A[i, j] - s) / L[j, j]
    return L


@use((SPD, VECTOR), wrt=(0, 1), long=True)
def triangular_solves(A, b):
    L = np.tril(A)
    n = len(b)
    y = np.zeros(n)
    for i in range(n):
        y[i] = (b[i] - np.dot(L[i, :i], y[:i])) / L[i, i]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (y[i] - np.dot(L[i + 1 :, i], x[i + 1 :])) / L[i, i]
    return x


@use((SQUARE,), wrt=(0,), long=True)
def gram_schmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for j in range(n):
        v = A[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ A[:, j]
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return Q, R


@use((SQUARE,), wrt=(0,), long=True)
def householder(A):
    R = A.copy()
    m, n = R.shape
    Q = np.eye(m)
    for k in range(n - 1):
        x = R[k:, k]
        e = np.zeros_like(x)
        e[0] = np.copysign(np.linalg.norm(x), x[0])
        v = x + e
        v = v / np.linalg.norm(v)
        R[k:, :] -= 2.0 * np.outer(v, v @ R[k:, :])
        Q[:, k:] -= 2.0 * np.outer(Q[:, k:] @ v, v)
    return Q, np.triu(R)


@use((SPD, VECTOR), wrt=(0, 1), long=True)
def conjugate_gradient(A, b, tol=1e-10):
    x = np.zeros(len(b))
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b)):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        if np.sqrt(rs_new) < tol:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x


@use((SPD, np.ones(3), 30), wrt=(0,), slow=True)
def power_iteration(A, v, n):
    for _ in range(n):
        w = A @ v
        v = w / np.linalg.norm(w)
    return v @ A @ v, v


@use((SPD,), wrt=(0,), long=True)
def jacobi_eigenvalues(A):
    A = A.copy()
    n = A.shape[0]
    for _sweep in range(6):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) < 1e-14:
                    continue
                theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                t = np.sign(theta) / (abs(theta) + np.sqrt(theta**2 + 1))
                c = 1 / np.sqrt(t * t + 1)
                s = t * c
                J = np.eye(n)
                J[p, p] = J[q, q] = c
                J[p, q], J[q, p] = s, -s
                A = J.T @ A @ J
    return np.diag(A)


@use((np.full(4, -1.0), np.full(5, 2.5), np.full(4, -1.0), np.arange(5.0)), wrt=(0, 1, 2, 3),
    long=True)
def thomas_algorithm(a, b, c, d):
    n = len(d)
    cp = np.zeros(n - 1)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i - 1] * cp[i - 1]
        if i < n - 1:
            cp[i] = c[i] / m
        dp[i] = (d[i] - a[i - 1] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


@use((np.array([[1, 1], [1, 0]]), 30), (np.array([[1, 1], [1, 0]]), 0))
def matrix_power_by_squaring(M, n):
    result = np.eye(M.shape[0], dtype=M.dtype)
    base = M
    while n > 0:
        if n & 1:
            result = result @ base
        base = base @ base
        n >>= 1
    return result


@use((SQUARE, SPD))
def matmul_by_three_loops(A, B):
    n, m = A.shape
    m2, p = B.shape
    assert m == m2, "inner dimensions must agree"
    C = np.zeros((n, p))
    for i in range(n):
        for j in range(p):
            for k in range(m):
                C[i][j] += A[i][k] * B[k][j]
    return C


@use((SQUARE,), wrt=(0,))
def determinant_by_minors(A):
    a, b, c = A[0]
    d, e, f = A[1]
    g, h, i = A[2]
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


@use((SPD,), wrt=(0,), long=True)
def inverse_by_gauss_jordan(A):
    n = len(A)
    M = np.hstack([A, np.eye(n)])
    for i in range(n):
        M[i] = M[i] / M[i, i]
        for j in range(n):
            if i != j:
                M[j] = M[j] - M[j, i] * M[i]
    return M[:, n:]


@use((SPD / 6, 12), wrt=(0,))
def matrix_exponential_by_series(A, terms):
    result = np.eye(A.shape[0])
    term = np.eye(A.shape[0])
    for k in range(1, terms):
        term = term @ A / k
        result = result + term
    return result


@use((np.arange(5.0), np.array([1.0, 3.1, 4.9, 7.2, 9.0])), wrt=(0, 1), long=True)
def least_squares_line(x, y):
    n = x.size
    sx, sy = x.sum(), y.sum()
    slope = (n * np.sum(x * y) - sx * sy) / (n * np.sum(x**2) - sx**2)
    intercept = (sy - slope * sx) / n
    residuals = y - (slope * x + intercept)
    r2 = 1 - (residuals**2).sum() / ((y - y.mean()) ** 2).sum()
    return slope, intercept, r2


@use((np.linspace(-1, 1, 6), 3), wrt=(0,), slow=True)
def vandermonde(x, degree):
    V = np.ones((len(x), degree + 1))
    for j in range(1, degree + 1):
        V[:, j] = V[:, j - 1] * x
    return V


@use((np.array([2.0, -1.0, 3.0]), 0.5), wrt=(0, 1))
def horner(coefficients, x):
    result = 0.0
    for c in coefficients:
        result = result * x + c
    return result


@use((np.arange(4.0), np.array([1.0, 2.0, 0.0, 5.0]), 1.5), wrt=(1, 2), slow=True)
def lagrange_interpolation(xs, ys, x):
    total = 0.0
    for i in range(len(xs)):
        basis = 1.0
        for j in range(len(xs)):
            if j != i:
                basis *= (x - xs[j]) / (xs[i] - xs[j])
        total += ys[i] * basis
    return total


@use((np.array([1.0, 2.0]), np.array([0, 1, 1, 2]), np.array([0, 1, 0]), np.array([0, 2, 3, 4]),
      np.array([1.0, 2.0, 3.0, 4.0])), wrt=(0, 4), long=True)
def sparse_matrix_vector(x, _rows, _unused, indptr, data):
    """Compressed rows; the column of each entry is its number modulo 2."""
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[k % 2]
    return y
