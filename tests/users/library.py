"""Programs that lean on the library: linear algebra, spectra, random numbers, statistics."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use

RNG = np.random.RandomState(4)
POINTS = RNG.randn(12, 3)
TARGET = RNG.randn(12)
SPD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
SIGNAL = np.sin(np.arange(16.0) * 0.9) + 0.3 * np.cos(np.arange(16.0) * 2.1)


@use((POINTS, TARGET, 0.1), wrt=(0, 1, 2), slow=True)
def ridge_regression(X, y, lam):
    A = X.T @ X + lam * np.eye(X.shape[1])
    w = np.linalg.solve(A, X.T @ y)
    residual = X @ w - y
    return w, residual @ residual / len(y)


@use((POINTS, TARGET, 0.7), wrt=(0, 2), long=True)
def gaussian_process(X, y, length):
    d = X[:, None, :] - X[None, :, :]
    K = np.exp(-0.5 * np.sum(d**2, axis=-1) / length**2) + 0.1 * np.eye(len(y))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.sum(np.log(np.diag(L))) - 0.5 * len(y) * math.log(2 * math.pi)


@use((POINTS,), wrt=(0,), long=True)
def principal_components(X):
    centred = X - X.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    return s**2 / np.sum(s**2), (u[:, :2] * s[:2]) @ vt[:2]


@use((SPD, 3), wrt=(0,), long=True)
def spectral_embedding(W, k):
    degree = W.sum(axis=1)
    laplacian = np.diag(degree) - W
    values, vectors = np.linalg.eigh(laplacian)
    order = np.argsort(values)[:k]
    return values[order], np.abs(vectors[:, order])


@use((SIGNAL, 0.25), wrt=(0,), long=True)
def low_pass(x, cut):
    spectrum = np.fft.rfft(x)
    frequency = np.fft.rfftfreq(len(x))
    return np.fft.irfft(np.where(frequency <= cut, spectrum, 0), n=len(x))


@use((SIGNAL,), wrt=(0,), long=True)
def autocorrelation_by_spectrum(x):
    n = len(x)
    centred = x - np.mean(x)
    f = np.fft.fft(centred, 2 * n)
    return np.real(np.fft.ifft(f * np.conj(f)))[:n] / np.var(x) / n


@use((SIGNAL, 0.1, 3), wrt=(0,), slow=True)
def heat_equation_in_fourier_space(u, nu, steps):
    k = 2 * np.pi * np.fft.fftfreq(u.size, d=1.0 / u.size)
    factor = np.exp(-nu * k**2 * 0.001)
    spectrum = np.fft.fft(u)
    for _ in range(steps):
        spectrum = spectrum * factor
    return np.fft.ifft(spectrum).real


@use((0.3, 1.2, 50, 7), wrt=(0, 1), slow=True)
def monte_carlo_option(drift, volatility, paths, seed):
    rng = np.random.default_rng(seed)
    price = np.full(paths, 1.0)
    for _ in range(4):
        z = rng.standard_normal(paths)
        price = price * np.exp((drift - 0.5 * volatility**2) * 0.25 + volatility * 0.5 * z)
    return np.mean(np.maximum(price - 1.0, 0.0))


@use((POINTS, TARGET, 0.05, 3), wrt=(0, 1), long=True)
def stochastic_gradient_descent(X, y, rate, seed):
    rng = np.random.default_rng(seed)
    w = np.zeros(X.shape[1])
    for _ in range(3):
        for k in rng.permutation(len(y)):
            w -= rate * (X[k] @ w - y[k]) * X[k]
    return w


@use((20, 5), long=True)
def metropolis(steps, seed):
    np.random.seed(seed)
    x, accepted = 0.0, 0
    for _ in range(steps):
        proposal = x + np.random.normal(0.0, 0.5)
        if np.random.rand() < np.exp(0.5 * (x * x - proposal * proposal)):
            x = proposal
            accepted += 1
    return x, accepted


@use((TARGET, np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])), wrt=(0,), long=True)
def group_statistics(values, groups):
    kinds, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=values)
    means = sums / counts
    spread = np.sqrt(np.bincount(inverse, weights=(values - means[inverse]) ** 2) / counts)
    return kinds, means, spread


@use((TARGET,), wrt=(0,), long=True)
def robust_location(x):
    middle = np.median(x)
    deviation = np.median(np.abs(x - middle))
    clipped = np.clip(x, middle - 2 * deviation, middle + 2 * deviation)
    low, high = np.percentile(clipped, [25, 75])
    return middle, deviation, np.average(clipped, weights=np.exp(-np.abs(x - middle))), high - low


@use((np.array([0.5, -1.0, 2.0]), 1.7), wrt=(0, 1), long=True)
def fitted_polynomial(c, x):
    places = np.linspace(-1, 1, 9)
    again = np.polyfit(places, np.polyval(c, places), 2)
    return np.polyval(np.polyder(again), x), np.polyval(np.polyint(again), x)


@use((2.5, 1.5), wrt=(0, 1), slow=True)
def student_log_density(nu, t):
    half = 0.5 * (nu + 1.0)
    return (math.lgamma(half) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu * math.pi)
            - half * math.log1p(t * t / nu))
