"""Objects that a loop finds by index, as often as an attribute or an argument says
(decision 0026).
"""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def rand(*shape):
    return np.sin(np.arange(1, np.prod(shape) + 1) * 1.7).reshape(shape)


class Affine:
    def __init__(self, rows, columns):
        self.W = rand(rows, columns)
        self.dW = None

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, dout):
        self.dW = self.x.T @ dout
        return dout @ self.W.T


class Relu:
    def forward(self, x):
        self.mask = x <= 0
        return np.where(self.mask, 0.0, x)

    def backward(self, dout):
        return np.where(self.mask, 0.0, dout)


class Listed:
    def __init__(self, *sizes):
        self.count = len(sizes) - 1
        self.layers = [Affine(n, m) for n, m in zip(sizes[:-1], sizes[1:], strict=True)]


class Named:
    def __init__(self, *sizes):
        self.hidden = len(sizes) - 2
        self.layers = {}
        for k, (n, m) in enumerate(zip(sizes[:-1], sizes[1:], strict=True), 1):
            self.layers["Affine" + str(k)] = Affine(n, m)
            if k <= self.hidden:
                self.layers[f"Relu{k}"] = Relu()


@use((Listed(3, 4, 2), rand(2, 3)), wrt=(1,))
def layers_by_index(net, x):
    for i in range(net.count):
        x = net.layers[i].forward(x)
    return x


@use((Listed(3, 4, 2), rand(2, 3)), wrt=(1,))
def layers_by_shifted_index(net, x):
    for i in range(1, net.count + 1):
        x = net.layers[i - 1].forward(x)
    return x


@use((Listed(3, 4, 2), 1, rand(2, 3)), (Listed(3, 4, 2), 2, rand(2, 3)))
def layers_by_argument(net, count, x):
    for i in range(count):
        x = net.layers[i].forward(x)
    return x


@use((Named(3, 4, 2), rand(2, 3)), long=True)
def gradients_by_name(net, x):
    for layer in net.layers.values():
        x = layer.forward(x)
    for layer in reversed(net.layers.values()):
        x = layer.backward(x)
    grads = {}
    for i in range(1, net.hidden + 2):
        grads["W" + str(i)] = net.layers["Affine" + str(i)].dW
    return grads
