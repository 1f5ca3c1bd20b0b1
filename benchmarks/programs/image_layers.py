"""The networks of `image_networks.py` for a framework's own layers.

In: the layers, an image and the weights, as the framework has them. Out: scores.

`o` has conv(x, w, b, stride, padding, groups), relu, relu6, add, max_pool(x, window, stride,
padding), mean (of rows and columns), flat (all axes but the first as one) and dense(x, w, b).
"""

from __future__ import annotations

from benchmarks.programs.image_networks import MOBILE


def resnet18(o, x, *weights):
    def conv(k, y, stride=1, padding=1):
        return o.conv(y, weights[2 * k], weights[2 * k + 1], stride, padding, 1)

    y = o.max_pool(o.relu(conv(0, x, 2, 3)), 3, 2, 1)
    k = 1
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            z = conv(k + 1, o.relu(conv(k, y, stride)))
            k += 2
            if stride == 2:
                y = conv(k, y, 2, 0)
                k += 1
            y = o.relu(o.add(z, y))
    return o.dense(o.mean(y), weights[2 * k], weights[2 * k + 1])


def vgg16(o, x, *weights):
    k = 0
    for count in (2, 2, 3, 3, 3):
        for _ in range(count):
            x = o.relu(o.conv(x, weights[k], weights[k + 1], 1, 1, 1))
            k += 2
        x = o.max_pool(x, 2, 2, 0)
    y = o.flat(x)
    for last in (False, False, True):
        y = o.dense(y, weights[k], weights[k + 1])
        y = y if last else o.relu(y)
        k += 2
    return y


def mobilenet(o, x, *weights):
    x = o.relu6(o.conv(x, weights[0], weights[1], 2, 1, 1))
    k, channels = 2, 32
    for expansion, outputs, count, first in MOBILE:
        for number in range(count):
            wide, stride = expansion * channels, first if number == 0 else 1
            y = x
            if expansion > 1:
                y = o.relu6(o.conv(y, weights[k], weights[k + 1], 1, 0, 1))
                k += 2
            y = o.relu6(o.conv(y, weights[k], weights[k + 1], stride, 1, wide))
            y = o.conv(y, weights[k + 2], weights[k + 3], 1, 0, 1)
            k += 4
            x, channels = y if number == 0 else o.add(x, y), outputs
    x = o.relu6(o.conv(x, weights[k], weights[k + 1], 1, 0, 1))
    return o.dense(o.mean(x), weights[k + 2], weights[k + 3])


def dqn(o, x, *weights):
    for k, stride in enumerate((4, 2, 1)):
        x = o.relu(o.conv(x, weights[2 * k], weights[2 * k + 1], stride, 0, 1))
    x = o.relu(o.dense(o.flat(x), weights[6], weights[7]))
    return o.dense(x, weights[8], weights[9])


NETWORKS = {function.__name__: function for function in (resnet18, vgg16, mobilenet, dqn)}
