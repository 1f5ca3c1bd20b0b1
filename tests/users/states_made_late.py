"""Optimisers and layers that make the arrays of their states when they first need them."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use

POINTS = np.cos(np.arange(24) * 1.3).reshape(8, 3)
VALUES = np.sin(np.arange(8) * 0.7)


class Adam:
    """Adam, with the moments of each parameter from its first step on."""

    def __init__(self, rate=0.01, decays=(0.9, 0.999)):
        self.rate, self.decays = rate, decays
        self.state = {}
        self.steps = 0

    def step(self, params, grads):
        """One step of all parameters."""
        self.steps += 1
        first, second = self.decays
        for name in params:
            if name not in self.state:
                self.state[name] = np.zeros_like(params[name]), np.zeros_like(params[name])
            m, v = self.state[name]
            m = first * m + (1 - first) * grads[name]
            v = second * v + (1 - second) * grads[name] ** 2
            self.state[name] = m, v
            scaled = m / (1 - first**self.steps)
            params[name] -= self.rate * scaled / (np.sqrt(v / (1 - second**self.steps)) + 1e-8)


@use((POINTS, VALUES, 2, 3), (POINTS, VALUES, 1, 8))
def moments_made_at_the_first_step(x, y, epochs, size):
    params = {"w": np.ones((3, 2)), "u": np.ones(2), "b": np.zeros(())}
    adam = Adam()
    for _ in range(epochs):
        for start in range(0, len(x), size):
            some, wanted = x[start : start + size], y[start : start + size]
            h = some @ params["w"]
            e = h @ params["u"] + params["b"] - wanted
            adam.step(
                params, {"w": some.T @ np.outer(e, params["u"]), "u": h.T @ e, "b": e.sum()}
            )
    return params, adam.steps


class Dense:
    """A layer that keeps what it was given, and gives gradients afterwards."""

    def __init__(self, weights):
        self.params = {"w": weights, "b": np.zeros(weights.shape[1])}
        self.grads = {}

    def forward(self, x):
        """Outputs of inputs."""
        self.x = x
        return x @ self.params["w"] + self.params["b"]

    def backward(self, g):
        """Gradients of the inputs, from those of the outputs."""
        self.grads["w"] = self.x.T @ g
        self.grads["b"] = g.sum(axis=0)
        return g @ self.params["w"].T


@use((POINTS, VALUES, 2, 3), long=True)
def velocities_by_layer_and_name(x, y, epochs, size):
    net, speeds = [Dense(np.ones((3, 2))), Dense(np.ones((2, 1)))], {}
    for _ in range(epochs):
        for start in range(0, len(x), size):
            h = x[start : start + size]
            for layer in net:
                h = layer.forward(h)
            g = h - y[start : start + size, None]
            for layer in reversed(net):
                g = layer.backward(g)
            for k, layer in enumerate(net):
                for name, grad in layer.grads.items():
                    speed = 0.9 * speeds.get((k, name), 0.0) - 0.01 * grad
                    speeds[k, name] = speed
                    layer.params[name] += speed
    return [layer.params for layer in net]


@refuse((VALUES, 2, 0), "makes the keys of a dict", "without a round to do", "before the loops")
def without_a_round(x, epochs, rounds):
    state = {}
    for _ in range(epochs):
        for k in range(rounds):
            if "m" not in state:
                state["m"] = np.zeros(2)
            state["m"] = np.float32(state["m"] + x[k])
    return state
