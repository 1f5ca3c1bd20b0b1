"""Masks, grids and paddings of extents that only the running program knows."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def rand(*shape):
    """Deterministic numbers."""
    return np.sin(np.arange(1, np.prod(shape) + 1) * 2.1).reshape(shape)


@use((rand(7, 4), [1, 2], 6), (rand(9, 4), [3], 0))
def tokens_behind_a_prompt(weights, prompt, count):
    tokens = list(prompt)
    kept = np.zeros((16, 4))
    position = 0
    new = np.array(tokens)
    for _ in range(count):
        n = len(new)
        kept[position : position + n] = weights[new]
        scores = weights[new] @ kept[: position + n].T
        mask = np.triu(np.full((n, position + n), -np.inf), k=position + 1)
        e = np.exp(scores + mask)
        mixed = (e / e.sum(axis=1, keepdims=True)) @ kept[: position + n]
        token = int(np.argmax(weights @ mixed[-1]))
        position = len(tokens)
        tokens.append(token)
        if token == 0:
            break
        new = np.array([token])
    return tokens, kept


@use((rand(4, 5), np.arange(-6, 7)), wrt=(0,))
def diagonals_in_turn(m, ks):
    total = 0.0
    for k in ks:
        total += np.triu(m, k).sum() + 3 * np.tril(m, k - 1).sum() + np.diag(m, k).sum()
        total += np.eye(4, 5, k=k).sum() + np.tri(4, 5, k).sum()
    return total


@use((rand(3, 3), 0.5, 2.0, 4), (rand(2, 3), 0.5, 2.0, 1), wrt=(0, 1))
def points_along_rays(directions, near, far, count):
    depths = np.broadcast_to(np.linspace(near, far, count), (directions.shape[0], count))
    points = depths[..., None] * directions[:, None, :]
    return points, np.diff(depths, axis=-1), depths[:, :1]


@use((rand(5, 2), 3, 4), (rand(2, 2), 1, 3), wrt=(0,))
def map_of_nodes_drawn_to_points(points, rows, columns):
    nodes = np.ones((rows, columns, 2))
    down, right = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    for t, point in enumerate(points):
        near = np.exp(-((down - t) ** 2 + (right - t) ** 2) / 2)
        nodes += near[..., None] * (point - nodes)
    return nodes


@use((rand(14), 6, 2), (rand(9), 4, 4), wrt=(0,), slow=True)
def frames_there_and_back(x, size, hop):
    padded = np.pad(x, size // 2, mode="reflect")
    count = 1 + (len(padded) - size) // hop
    frames = np.stack([padded[i * hop : i * hop + size] for i in range(count)])
    spectrum = np.fft.rfft(frames, axis=1)
    back = np.fft.irfft(np.abs(spectrum) * np.exp(1j * np.angle(spectrum)), n=size, axis=1)
    found = np.zeros(len(padded))
    for i in range(count):
        found[i * hop : i * hop + size] += back[i]
    return found[size // 2 : size // 2 + len(x)], np.abs(spectrum)


@use((rand(3, 4), 5), (rand(3, 4), 1), (rand(2, 2), 0), (rand(2, 3), -3), wrt=(0,))
def padded_in_turn(m, count):
    total = np.pad(m, ((0, 0), (count // 2, count % 2)), mode="edge").sum()
    for k in range(count):
        total += np.sum(np.pad(m, (k % 3, 1)) ** 2) + np.pad(m, k % 2, mode="wrap").sum()
    return total


@use((rand(2, 3), rand(3)), (rand(4, 3), rand(3)), wrt=(0, 1))
def differences_that_may_be_one(x, y):
    step = x[1:, 0] - x[:-1, 0]
    kept = np.zeros(3)
    kept[:] = step
    kept += np.broadcast_to(step * 2, (3,)) * np.where(y > 0, y, step)
    return kept, x[: len(x) - 1].mean(1) * y


@use(([1, 2, 3],), ([4, 4],))
def squares_within_a_border(ks):
    n = max(ks)
    m = 0
    for k in ks:
        m += k
    g = np.arange(float(m // 2))
    h = np.zeros((n + 1, n + 1))
    h[1:, 1:] = g[:, None] * g
    return h


@use((np.arange(3.0), 0), wrt=(0,))
def squeezed_along_an_axis_whose_extent_is_computed(x, n):
    rows = int((n + 2) / 2)
    kept = np.zeros((2, rows, 3))
    first = kept.squeeze(axis=1)
    first[0] = x
    turned = (x * 2.0).reshape(3, rows).T
    return kept, np.squeeze(turned, 0), np.squeeze(np.ones((rows, rows, 2)) * x[1], axis=(0, 1))


@use((2.5, 1), wrt=(0,))
def the_only_element_of_what_is_computed(x, n):
    rows = int(n / 1)
    y = np.full((rows, rows), x)
    found = (y @ y).item() if y > 0 else -1.0
    while y.T < 21.0:
        y = y * 2.0
    return found, bool(y[0] > 3.0), y


@use((2.5, 2))
def more_than_the_only_element(x, n):
    y = np.full((int(n / 1), 1), x)
    try:
        return y.item()
    except ValueError as error:
        said = str(error)
    try:
        return -1.0 if y > 0 else 1.0
    except ValueError as error:
        return said + str(error)
