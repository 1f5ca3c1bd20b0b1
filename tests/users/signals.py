"""Signals: transforms, filters, convolutions."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use

WAVE = np.sin(np.arange(8) * 0.9) + 0.3


@use((WAVE.astype(complex),))
def fft_recursive(x):
    n = x.shape[0]
    if n == 1:
        return x
    even = fft_recursive(x[::2])
    odd = fft_recursive(x[1::2])
    twiddle = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + twiddle, even - twiddle])


@use((WAVE,))
def power_spectrum(x):
    spectrum = fft_recursive(x.astype(np.complex128))
    return np.abs(spectrum[: len(x) // 2]) ** 2


@use((WAVE,), wrt=(0,), slow=True)
def dft_by_matrix(x):
    n = len(x)
    k = np.arange(n)
    angle = 2 * np.pi * np.outer(k, k) / n
    return np.cos(angle) @ x, -np.sin(angle) @ x


@use((WAVE, np.array([0.25, 0.5, 0.25])), wrt=(0, 1), slow=True)
def convolution_by_loops(x, h):
    n, m = len(x), len(h)
    y = np.zeros(n + m - 1)
    for i in range(n):
        for j in range(m):
            y[i + j] += x[i] * h[j]
    return y


@use((WAVE, 3), wrt=(0,), long=True)
def moving_average(x, window):
    out = []
    for i in range(3):
        out.append(x[i : i + window].mean())
    smooth = np.zeros(len(x) - window + 1)
    for i in range(len(smooth)):
        smooth[i] = np.mean(x[i : i + window])
    return np.array(out), smooth


@use((WAVE, 3), wrt=(0,), slow=True)
def moving_average_by_cumsum(x, n):
    c = np.cumsum(np.concatenate((np.zeros(1), x)))
    return (c[n:] - c[:-n]) / n


@use((WAVE, 0.3, None), (WAVE, 0.3, 1.0), wrt=(0, 1), slow=True)
def exponential_smoothing(x, alpha, start):
    s = x[0] if start is None else start
    result = np.empty_like(x)
    for t, value in enumerate(x):
        s = alpha * value + (1 - alpha) * s
        result[t] = s
    return result


@use((WAVE, np.array([0.2, 0.3]), np.array([1.0, -0.5, 0.1])), wrt=(0, 1, 2), long=True)
def iir_filter(x, b, a):
    y = np.zeros(len(x))
    for n in range(len(x)):
        for k in range(len(b)):
            if n - k >= 0:
                y[n] += b[k] * x[n - k]
        for k in range(1, len(a)):
            if n >= k:
                y[n] -= a[k] * y[n - k]
        y[n] /= a[0]
    return y


@use((np.array([1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 1.0]), 3), long=True)
def median_filter(x, size):
    half = size // 2
    out = x.copy()
    for i in range(half, len(x) - half):
        w = x[i - half : i + half + 1].copy()
        for a in range(len(w)):
            for b in range(len(w) - 1 - a):
                if w[b] > w[b + 1]:
                    w[b], w[b + 1] = w[b + 1], w[b]
        out[i] = w[half]
    return out


@use((WAVE,), wrt=(0,), slow=True)
def haar_wavelet(x):
    out = x.copy()
    n = len(x)
    while n > 1:
        half = n // 2
        a = (out[0:n:2] + out[1:n:2]) / math.sqrt(2)
        d = (out[0:n:2] - out[1:n:2]) / math.sqrt(2)
        out[:half] = a
        out[half:n] = d
        n = half
    return out


@use((WAVE, 2), wrt=(0,), long=True)
def autocorrelation(x, lag):
    x = x - x.mean()
    return np.dot(x[:-lag], x[lag:]) / np.dot(x, x)


@use((np.array([0, 1, 0, 0, 1, 1]), 3))
def zero_crossings_and_runs(bits, _unused):
    changes = np.diff(bits) != 0
    longest = current = 0
    for bit in bits:
        current = current + 1 if bit else 0
        longest = max(longest, current)
    return changes.sum(), longest


@use((np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]),), wrt=(0,), long=True)
def bilinear_upscale(img):
    h, w = img.shape
    out = np.zeros((2 * h - 1, 2 * w - 1))
    out[::2, ::2] = img
    out[1::2, ::2] = (img[:-1] + img[1:]) / 2
    out[::2, 1::2] = (img[:, :-1] + img[:, 1:]) / 2
    out[1::2, 1::2] = (img[:-1, :-1] + img[1:, :-1] + img[:-1, 1:] + img[1:, 1:]) / 4
    return out


@use((np.arange(30.0).reshape(5, 6) % 7,), wrt=(0,), long=True)
def sobel(img):
    gx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    h, w = img.shape
    out = np.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            patch = img[i : i + 3, j : j + 3]
            sx = (patch * gx).sum()
            sy = np.sum(patch * gx.T)
            out[i, j] = np.sqrt(sx**2 + sy**2 + 1e-9)
    return out


@use((WAVE, 4), wrt=(0,), long=True)
def windowed_energy(x, n):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / (n - 1))
    frames = [x[s : s + n] * window for s in (0, 2, 4)]
    return np.stack(frames), [np.sum(f**2) for f in frames]


@use((1.0, 0.1, 1.5, np.array([0.1, 0.5, 0.9, 1.4, 1.2])), wrt=(0, 3), slow=True)
def pid_controller(kp, ki, setpoint, readings):
    integral, previous = 0.0, None
    outputs = np.zeros(len(readings))
    for i in range(len(readings)):
        error = setpoint - readings[i]
        integral += error
        derivative = 0.0 if previous is None else error - previous
        outputs[i] = kp * error + ki * integral + 0.05 * derivative
        previous = error
    return outputs
