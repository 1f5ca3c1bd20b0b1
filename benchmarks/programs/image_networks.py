"""Whole networks for images in plain Python and NumPy, as they are run: normalisations are folded
into the weights before.

In: float32 images [batch, channels, rows, columns] and the weights and biases of the layers in
order. Out: scores [batch, classes].

ResNet-18 (He et al., 2015), VGG-16 (Simonyan and Zisserman, 2014), MobileNetV2 (Sandler et al.,
2018) and the network of Mnih et al. (*Human-level control through deep reinforcement learning*,
2015).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import nn


def layers_of(weights):
    """Weights with their biases, in order."""
    return list(zip(weights[::2], weights[1::2], strict=True))


def resnet18(x, *weights):
    layers = layers_of(weights)

    def conv(y, stride=1, padding=1):
        w, b = layers.pop(0)
        return nn.conv(y, w, b, stride=stride, padding=padding)

    y = nn.max_pool(nn.relu(conv(x, 2, 3)), 3, 2, 1)
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            z = conv(nn.relu(conv(y, stride)))
            if stride == 2:
                y = conv(y, 2, 0)
            y = nn.relu(z + y)
    return nn.dense(nn.global_avg_pool(y), *layers[0])


def vgg16(x, *weights):
    layers = layers_of(weights)
    for count in (2, 2, 3, 3, 3):
        for w, b in layers[:count]:
            x = nn.relu(nn.conv(x, w, b, padding=1))
        layers = layers[count:]
        x = nn.max_pool(x, 2)
    y = x.reshape(x.shape[0], -1)
    for w, b in layers[:-1]:
        y = np.maximum(y @ w + b, 0)
    w, b = layers[-1]
    return y @ w + b


#: Expansion, channels, repetitions and first stride of MobileNetV2's groups of blocks.
MOBILE = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip


def mobilenet(x, *weights):
    layers = layers_of(weights)

    def conv(y, **options):
        w, b = layers.pop(0)
        return nn.conv(y, w, b, **options)

    def relu6(y):
        return np.clip(y, 0, 6)

    def bottleneck(y, expansion, stride):
        if expansion > 1:
            y = relu6(conv(y))
        return conv(relu6(conv(y, stride=stride, padding=1, groups=y.shape[1])))

    x = relu6(conv(x, stride=2, padding=1))
    for expansion, _, count, stride in MOBILE:
        x = bottleneck(x, expansion, stride)
        for _ in range(count - 1):
            x = x + bottleneck(x, expansion, 1)
    x = relu6(conv(x))
    w, b = layers[0]
    return np.mean(x, axis=(2, 3)) @ w + b


def dqn(x, w1, b1, w2, b2, w3, b3, w4, b4, w5, b5):
    y = nn.relu(nn.conv(x, w1, b1, stride=4))
    y = nn.relu(nn.conv(y, w2, b2, stride=2))
    y = nn.relu(nn.conv(y, w3, b3))
    y = nn.relu(y.reshape(y.shape[0], -1) @ w4 + b4)
    return y @ w5 + b5


FORWARD: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (resnet18, vgg16, mobilenet, dqn)
}
