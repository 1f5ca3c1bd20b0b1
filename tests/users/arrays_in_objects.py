"""Engines that record what arrays of several shapes are computed of, and go back through it."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

RNG = np.random.default_rng(5)
X, W, V = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5)), RNG.normal(size=(5, 2))
CORNERS = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
TRUTHS = np.array([[0.0], [1], [1], [0]])


class Tensor:
    """An array that knows how to hand its slope to what it was computed of."""

    def __init__(self, data, parts=()):
        self.data = np.asarray(data, dtype=np.float64)
        self.grad = np.zeros_like(self.data)
        self.parts = set(parts)
        self.hand_on = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        out = Tensor(self.data + other.data, (self, other))

        def hand_on():
            self.grad += summed_to(out.grad, self.data.shape)
            other.grad += summed_to(out.grad, other.data.shape)

        out.hand_on = hand_on
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        out = Tensor(self.data * other.data, (self, other))

        def hand_on():
            self.grad += summed_to(other.data * out.grad, self.data.shape)
            other.grad += summed_to(self.data * out.grad, other.data.shape)

        out.hand_on = hand_on
        return out

    def __sub__(self, other):
        return self + other * -1.0

    def __matmul__(self, other):
        out = Tensor(self.data @ other.data, (self, other))

        def hand_on():
            self.grad += out.grad @ other.data.T
            other.grad += self.data.T @ out.grad

        out.hand_on = hand_on
        return out

    def tanh(self):
        t = np.tanh(self.data)
        out = Tensor(t, (self,))

        def hand_on():
            self.grad += (1 - t * t) * out.grad

        out.hand_on = hand_on
        return out

    def sum(self):
        out = Tensor(self.data.sum(), (self,))

        def hand_on():
            self.grad += out.grad * np.ones_like(self.data)

        out.hand_on = hand_on
        return out

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for part in node.parts:
                    visit(part)
                order.append(node)

        visit(self)
        self.grad = np.ones_like(self.data)
        for node in reversed(order):
            node.hand_on()


def summed_to(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(axis=0)
    for axis, extent in enumerate(shape):
        if extent == 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad


@use((X, W), long=True)
def slopes_of_a_product(x, w):
    a, b = Tensor(x), Tensor(w)
    loss = (a @ b).tanh().sum()
    loss.backward()
    return loss.data, a.grad, b.grad


@use((CORNERS, TRUTHS, 3), (CORNERS, TRUTHS, 5), long=True)
def network_of_tensors(x, y, steps):
    rng = np.random.default_rng(0)
    w, b = Tensor(rng.standard_normal((2, 8))), Tensor(np.zeros(8))
    v, c = Tensor(rng.standard_normal((8, 1))), Tensor(np.zeros(1))
    losses = []
    for _ in range(steps):
        apart = ((Tensor(x) @ w + b).tanh() @ v + c) - Tensor(y)
        loss = (apart * apart).sum()
        for p in (w, b, v, c):
            p.grad = np.zeros_like(p.data)
        loss.backward()
        for p in (w, b, v, c):
            p.data -= 0.01 * p.grad
        losses.append(float(loss.data))
    return losses


class Node:
    """An array, and of what it was computed, with what gives the slope of each."""

    def __init__(self, value, parents=()):
        self.value = np.array(value, dtype=float)
        self.parents = parents
        self.grad = None

    def __matmul__(self, o):
        return Node(
            self.value @ o.value,
            ((self, lambda g: g @ o.value.T), (o, lambda g: self.value.T @ g)),
        )

    def tanh(self):
        t = np.tanh(self.value)
        return Node(t, ((self, lambda g: g * (1 - t * t)),))

    def sum(self):
        return Node(self.value.sum(), ((self, lambda g: np.full(self.value.shape, g)),))


@use((X, W, V), long=True)
def slopes_by_parents(x, w, v):
    a, b, c = Node(x), Node(w), Node(v)
    loss = ((a @ b).tanh() @ c).sum()
    order, seen = [], []

    def visit(node):
        if node in seen:
            return
        seen.append(node)
        for parent, _ in node.parents:
            visit(parent)
        order.append(node)

    visit(loss)
    loss.grad = np.ones_like(loss.value)
    for node in reversed(order):
        for parent, slope in node.parents:
            g = slope(node.grad)
            parent.grad = g if parent.grad is None else parent.grad + g
    return loss.value, b.grad, c.grad


class Variable:
    def __init__(self, data):
        self.data = data
        self.grad = None
        self.creator = None

    def backward(self):
        self.grad = np.ones_like(self.data)
        functions = [self.creator]
        while functions:
            f = functions.pop()
            for x, g in zip(f.inputs, f.backward(f.output.grad), strict=True):
                x.grad = g if x.grad is None else x.grad + g
                if x.creator is not None:
                    functions.append(x.creator)


class Function:
    """What computes variables of others: they know it, and it them, when it was called."""

    def __call__(self, *inputs):
        out = Variable(self.forward(*[x.data for x in inputs]))
        out.creator = self
        self.inputs, self.output = inputs, out
        return out


class Square(Function):
    def forward(self, x):
        return x**2

    def backward(self, g):
        return (2 * self.inputs[0].data * g,)


class Add(Function):
    def forward(self, a, b):
        return a + b

    def backward(self, g):
        return g, g


@use((X,), (np.array(0.5),), long=True)
def slopes_by_creators(x):
    v = Variable(x)
    y = Add()(Square()(Square()(v)), Square()(v))
    y.backward()
    return y.data, v.grad


class Recorded:
    """An array with what it was computed of in lists; slopes are found by the ids of objects."""

    def __init__(self, data, parents=(), slopes=()):
        self.data = np.asarray(data, dtype=float)
        self.grad = None
        self.parents = list(parents)
        self.slopes = list(slopes)

    def __matmul__(self, o):
        return Recorded(
            self.data @ o.data, [self, o], [lambda g: g @ o.data.T, lambda g: self.data.T @ g]
        )

    def __add__(self, o):
        return Recorded(
            self.data + o.data, [self, o],
            [lambda g: summed_to(g, self.data.shape), lambda g: summed_to(g, o.data.shape)],
        )

    def squared(self):
        return Recorded((self.data**2).sum(), [self], [lambda g: 2 * g * self.data])

    def backward(self):
        order, seen = [], set()

        def visit(t):
            if id(t) in seen:
                return
            seen.add(id(t))
            for p in t.parents:
                visit(p)
            order.append(t)

        visit(self)
        grads = {id(self): np.ones_like(self.data)}
        for t in reversed(order):
            g = grads[id(t)]
            t.grad = g
            for p, slope in zip(t.parents, t.slopes, strict=True):
                grads[id(p)] = grads[id(p)] + slope(g) if id(p) in grads else slope(g)


@use((X, 3), (X, 4), long=True)
def parameters_made_anew(x, steps):
    w, b = Recorded(np.array([[0.5], [-0.3], [0.8]])), Recorded(np.zeros(1))
    for _ in range(steps):
        loss = (Recorded(x) @ w + b).squared()
        loss.backward()
        w = Recorded(w.data - 0.1 * w.grad)
        b = Recorded(b.data - 0.1 * b.grad)
    return w.data, b.data


@use((X, 4), (X, 2), long=True)
def states_of_a_recurrence(x, steps):
    u, w = Tensor(W), Tensor(np.eye(5) * 0.5)
    h = Tensor(np.zeros((1, 5)))
    for t in range(steps):
        h = (Tensor(x[t:t + 1]) @ u + h @ w).tanh()
    loss = h.sum()
    loss.backward()
    return loss.data, u.grad, w.grad
