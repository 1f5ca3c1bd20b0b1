"""Statistics and classical machine learning."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def data(*shape):
    """Deterministic numbers about 0."""
    return np.cos(np.arange(1, np.prod(shape) + 1) * 1.3).reshape(shape)


POINTS = np.concatenate([data(5, 2), data(5, 2) + 3.0])
LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])


@use((POINTS, POINTS[[0, 9]], 5), long=True)
def kmeans(X, centers, iterations):
    centers = centers.copy()
    k = centers.shape[0]
    for _ in range(iterations):
        d = ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        labels = d.argmin(axis=1)
        for j in range(k):
            mask = labels == j
            count = mask.sum()
            if count > 0:
                centers[j] = (X * mask[:, None]).sum(axis=0) / count
    return centers, labels


@use((POINTS, POINTS[:2], 3), long=True)
def kmeans_by_loops(points, centroids, steps):
    n, d = points.shape
    k = len(centroids)
    assignment = np.zeros(n, dtype=np.int64)
    for _ in range(steps):
        for i in range(n):
            best, best_dist = -1, float("inf")
            for c in range(k):
                dist = 0.0
                for j in range(d):
                    dist += (points[i, j] - centroids[c, j]) ** 2
                if dist < best_dist:
                    best, best_dist = c, dist
            assignment[i] = best
        sums = np.zeros((k, d))
        counts = np.zeros(k)
        for i in range(n):
            sums[assignment[i]] += points[i]
            counts[assignment[i]] += 1
        centroids = sums / np.maximum(counts, 1)[:, np.newaxis]
    return centroids, assignment


@use((POINTS, LABELS, 0.1, 20), wrt=(0,), long=True)
def logistic_regression(X, y, lr, epochs):
    n, d = X.shape
    w, b = np.zeros(d), 0.0
    for _ in range(epochs):
        p = 1 / (1 + np.exp(-(X @ w + b)))
        dw = X.T @ (p - y) / n
        db = np.mean(p - y)
        w -= lr * dw
        b -= lr * db
    return w, b


@use((POINTS, LABELS.astype(float), 15), wrt=(0, 1), long=True)
def linear_regression_sgd(X, y, epochs):
    w = np.zeros(X.shape[1])
    losses = np.zeros(epochs)
    for e in range(epochs):
        for i in range(len(X)):
            error = X[i] @ w - y[i]
            w = w - 0.01 * error * X[i]
        losses[e] = ((X @ w - y) ** 2).mean()
    return w, losses


@use((data(2, 3), np.zeros(3), POINTS, LABELS), wrt=(0, 1, 2), long=True)
def softmax_regression_loss(W, b, X, y):
    logits = X @ W + b
    logits = logits - logits.max(axis=1, keepdims=True)
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -logp[np.arange(len(y)), y].mean()


@use((POINTS, LABELS, np.array([1.0, 1.0])), long=True)
def naive_bayes(X, y, query):
    best_class, best_score = -1, -np.inf
    for c in range(2):
        mask = y == c
        n = mask.sum()
        prior = n / len(y)
        mean = (X * mask[:, None]).sum(0) / n
        var = ((X - mean) ** 2 * mask[:, None]).sum(0) / n + 1e-9
        score = np.log(prior) - 0.5 * np.sum(
            np.log(2 * np.pi * var) + (query - mean) ** 2 / var
        )
        if score > best_score:
            best_class, best_score = c, score
    return best_class, best_score


@use((data(6, 3), 2), wrt=(0,), long=True)
def pca_by_power_iteration(X, k):
    X = X - X.mean(axis=0)
    C = X.T @ X / (len(X) - 1)
    components = np.zeros((k, X.shape[1]))
    for c in range(k):
        v = np.ones(X.shape[1]) / np.sqrt(X.shape[1])
        for _ in range(10):
            v = C @ v
            v /= np.linalg.norm(v)
        components[c] = v
        C = C - (v @ C @ v) * np.outer(v, v)
    return components


@use((data(7), 0.1, 0.5), wrt=(0, 1, 2))
def kalman_filter_1d(z, q, r):
    x, p = 0.0, 1.0
    estimates = np.zeros(len(z))
    for k in range(len(z)):
        p = p + q
        gain = p / (p + r)
        x = x + gain * (z[k] - x)
        p = (1 - gain) * p
        estimates[k] = x
    return estimates


@use((data(5, 1), np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])),
     wrt=(0, 1), long=True)
def kalman_filter_2d(zs, F, H):
    x = np.zeros(2)
    P = np.eye(2)
    Q, R = 0.01 * np.eye(2), np.array([[0.3]])
    for z in zs:
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T / S[0, 0]
        x = x + K @ (z - H @ x)
        P = (np.eye(2) - K @ H) @ P
    return x, P


TRANSITION = np.array([[0.7, 0.3], [0.4, 0.6]])
EMISSION = np.array([[0.1, 0.4, 0.5], [0.7, 0.2, 0.1]])


@use((np.array([0, 1, 2, 0]), np.array([0.6, 0.4]), TRANSITION, EMISSION), wrt=(1, 2, 3), long=True)
def hmm_forward(obs, pi, A, B):
    T, N = len(obs), len(pi)
    alpha = np.zeros((T, N))
    alpha[0] = pi * B[:, obs[0]]
    loglik = 0.0
    for t in range(1, T):
        for j in range(N):
            alpha[t, j] = np.sum(alpha[t - 1] * A[:, j]) * B[j, obs[t]]
        scale = alpha[t].sum()
        alpha[t] /= scale
        loglik += np.log(scale)
    return loglik, alpha


@use((np.array([0, 1, 2, 0, 2]), np.array([0.6, 0.4]), TRANSITION, EMISSION), long=True)
def viterbi(obs, start_p, trans_p, emit_p):
    n_obs, n_states = len(obs), trans_p.shape[0]
    V = np.zeros((n_obs, n_states))
    back = np.zeros((n_obs, n_states), dtype=int)
    V[0] = np.log(start_p) + np.log(emit_p[:, obs[0]])
    for t in range(1, n_obs):
        for s in range(n_states):
            scores = V[t - 1] + np.log(trans_p[:, s])
            back[t, s] = np.argmax(scores)
            V[t, s] = scores[back[t, s]] + np.log(emit_p[s, obs[t]])
    path = np.zeros(n_obs, dtype=int)
    path[-1] = np.argmax(V[-1])
    for t in range(n_obs - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path, V[-1].max()


@use((POINTS, np.array([0.5, 0.5]), POINTS[[1, 7]], np.ones((2, 2))), wrt=(0, 1, 2, 3), long=True)
def gmm_responsibilities(X, weights, means, variances):
    diff = X[:, None] - means
    logp = -0.5 * (diff**2 / variances + np.log(2 * np.pi * variances)).sum(-1)
    logp += np.log(weights)
    peak = logp.max(1, keepdims=True)
    norm = peak + np.log(np.exp(logp - peak).sum(1, keepdims=True))
    return np.exp(logp - norm), norm.sum()


@use((data(9),), wrt=(0,))
def welford(x):
    mean = m2 = 0.0
    for n, value in enumerate(x, 1):
        delta = value - mean
        mean += delta / n
        m2 += delta * (value - mean)
    return mean, m2 / (len(x) - 1)


@use((data(8), data(8)[::-1]), wrt=(0, 1), long=True)
def pearson_correlation(x, y):
    xm, ym = x - x.mean(), y - np.mean(y)
    return (xm @ ym) / np.sqrt((xm**2).sum() * (ym**2).sum())


@use((np.array([3.0, 1.0, 2.0, 5.0]),), (np.array([3.0, 1.0, 2.0]),), long=True)
def median_by_sorting(x):
    s = np.sort(x)
    n = len(s)
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


@use((POINTS, LABELS, np.array([0.2, 0.1]), 3), long=True)
def k_nearest_neighbours(X, y, q, k):
    dist = np.sqrt(((X - q) ** 2).sum(axis=1))
    order = np.argsort(dist)
    votes = np.zeros(2, dtype=np.int64)
    for i in range(k):
        votes[y[order[i]]] += 1
    return np.argmax(votes)


@use((LABELS, np.array([0, 1, 0, 0, 1, 1, 1, 0, 1, 1]), 2), long=True)
def confusion_matrix(true, predicted, classes):
    matrix = np.zeros((classes, classes), dtype=np.int64)
    for t, p in zip(true, predicted):
        matrix[t, p] += 1
    accuracy = np.trace(matrix) / matrix.sum()
    with_add_at = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(with_add_at, (true, predicted), 1)
    return matrix, accuracy, with_add_at


@use((np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.6, 0.3])), wrt=(0, 1), long=True)
def entropies(p, q):
    def entropy(p):
        return -np.sum(p * np.log2(p))

    kl = sum(pi * np.log(pi / qi) for pi, qi in zip(p, q))
    return entropy(p), kl


@use((np.array([[0, 1, 1], [1, 0, 0], [0, 1, 0]]).astype(float), 0.85, 1e-9), long=True)
def pagerank(links, damping, tol):
    n = links.shape[0]
    M = links / np.maximum(links.sum(axis=0), 1)
    rank = np.ones(n) / n
    while True:
        new = (1 - damping) / n + damping * (M @ rank)
        if np.abs(new - rank).sum() < tol:
            return new
        rank = new


@use((data(4, 2), data(3, 2), 0.7), wrt=(0, 1, 2), slow=True)
def rbf_kernel(X, Y, gamma):
    sq = np.sum(X**2, axis=1)[:, None] + np.sum(Y**2, axis=1)[None, :] - 2 * X @ Y.T
    return np.exp(-gamma * sq)


@use((data(6), np.array([1.0, 2.0, 3.0])))
def mcmc_with_given_noise(noise, uniforms):
    """A Metropolis sampler with its random numbers passed in."""
    samples = np.zeros(len(noise))
    x, logp = 0.0, 0.0
    for i, step in enumerate(noise):
        proposal = x + step
        new = -0.5 * proposal**2
        if np.log(uniforms[i % 3] / 4) < new - logp:
            x, logp = proposal, new
        samples[i] = x
    return samples


@use((POINTS, LABELS * 2 - 1, 10), wrt=(), long=True)
def perceptron(X, y, epochs):
    w = np.zeros(X.shape[1] + 1)
    for epoch in range(epochs):
        mistakes = 0
        for xi, target in zip(X, y):
            activation = np.dot(w[1:], xi) + w[0]
            if target * activation <= 0:
                w[1:] += target * xi
                w[0] += target
                mistakes += 1
        if mistakes == 0:
            break
    return w, epoch


def _regressed(x, y, depth):
    best, cut = 0.0, 0.0
    for t in x:
        below = x < t
        if 0 < below.sum() < len(below):
            gain = abs(y[below].mean() - y[~below].mean())
            if gain > best:
                best, cut = gain, t
    if depth == 0 or best == 0:
        return y.mean()
    below = x < cut
    return _regressed(x[below], y[below], depth - 1) - _regressed(x[~below], y[~below], depth - 1)


@use((POINTS[:, 0].copy(), LABELS * 2.0, 2), (POINTS[:1, 0].copy(), LABELS[:1] * 2.0, 1))
def regression_tree_by_recursion(x, y, depth):
    return _regressed(x, y, depth)
