"""Functions in fields of objects that the program makes, called through the object later; lists
that objects are given and that are changed afterwards."""

from __future__ import annotations

import heapq

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([0.5, -2.0, 1.5])


class Value:
    """A number that knows how to hand its slope to what it was computed of (micrograd).

    What it was computed of is a set, which is gone through: objects stand in any order in it.
    """

    def __init__(self, data, parts=()):
        self.data = data
        self.slope = 0.0
        self.parts = set(parts)
        self.hand_on = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))

        def hand_on():
            self.slope += out.slope
            other.slope += out.slope

        out.hand_on = hand_on
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))

        def hand_on():
            self.slope += other.data * out.slope
            other.slope += self.data * out.slope

        out.hand_on = hand_on
        return out

    def tanh(self):
        t = np.tanh(self.data)
        out = Value(t, (self,))

        def hand_on():
            self.slope += (1 - t * t) * out.slope

        out.hand_on = hand_on
        return out

    def backward(self):
        order, seen = [], set()

        def visit(value):
            if value not in seen:
                seen.add(value)
                for part in value.parts:
                    visit(part)
                order.append(value)

        visit(self)
        self.slope = 1.0
        for value in reversed(order):
            value.hand_on()


class Neuron:
    def __init__(self, count, first):
        self.weights = [Value(first + 0.25 * k) for k in range(count)]
        self.shift = Value(0.0)

    def __call__(self, x):
        return sum((w * each for w, each in zip(self.weights, x)), self.shift).tanh()

    def parameters(self):
        return self.weights + [self.shift]


class Layer:
    def __init__(self, count, rows, first):
        self.neurons = [Neuron(count, first - 0.5 * k) for k in range(rows)]

    def __call__(self, x):
        out = [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self):
        return [p for neuron in self.neurons for p in neuron.parameters()]


class Network:
    def __init__(self, count, rows, first):
        sizes = [count, *rows]
        self.layers = [Layer(sizes[k], sizes[k + 1], first) for k in range(len(rows))]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]


@use((0.5, 3), long=True)
def layers_of_several_sizes_learn(first, rounds):
    network = Network(2, [2, 1], first)
    losses = []
    for _ in range(rounds):
        loss = Value(0.0)
        for x, wanted in (([2.0, 3.0], 1.0), ([3.0, -1.0], -1.0)):
            missed = network(x) + -wanted
            loss = loss + missed * missed
        for p in network.parameters():
            p.slope = 0.0
        loss.backward()
        for p in network.parameters():
            p.data += -0.05 * p.slope
        losses.append(loss.data)
    return losses


@use((0.5, -1.5, 2.0), wrt=(0, 1), long=True)
def slopes_by_functions_in_values(a, b, c):
    x, y, z = Value(a), Value(b), Value(c)
    out = (x * y + z * x + 1.0).tanh() * z + y
    out.backward()
    return x.slope * y.slope + z.slope + out.data


class Step:
    def __init__(self, function, after):
        self.function = function
        self.after = after


@use((0.5, -1.5, 2.0, 5), wrt=(0, 1, 2))
def functions_one_after_the_other(a, b, x, n):
    first = None
    for k in range(n):
        if k % 2 == 0:
            first = Step(lambda t, k=k: t * a + k, first)
        elif k == 3:
            first = Step(None, first)
        else:
            first = Step(np.tanh, first)
    while first is not None:
        x = first.function(x) if first.function is not None else x - b
        first = first.after
    return x


class Event:
    def __init__(self, time, action):
        self.time = time
        self.action = action

    def __lt__(self, other):
        return self.time < other.time


@use((X,), wrt=(0,), long=True)
def actions_in_order_of_time(x):
    events = []
    for v in x:
        heapq.heappush(events, Event(v, lambda s, v=v: s * 0.5 + v * v))
    state = 1.0
    while events:
        state = heapq.heappop(events).action(state)
    return state


@refuse((X, 0.5), "captured by a function in a field", "lambda x, k=k")
def variable_assigned_after_it_was_captured_in_a_loop(x, least):
    first, k = None, 1.0
    while k > least:
        k *= 0.9
        first = Step(lambda t: t * k, first)
    total = 0.0
    while first is not None:
        total += first.function(x[0])
        first = first.after
    return total


@use((X,), long=True)
def variable_assigned_after_it_was_captured(x):
    first = None
    for k in range(3):
        first = Step(lambda t: t * k, first)
    total = 0.0
    while first is not None:
        total += first.function(x[0])
        first = first.after
    return total


@use((X,), long=True)
def variable_that_the_function_assigns(x):
    def counting():
        count = 0

        def function(t):
            nonlocal count
            count += 1
            return t + count

        return function

    first = None
    for _ in x:
        first = Step(counting(), first)
    return first.function(1.0) + first.function(1.0)


@refuse((X,), "'function' of Step holds functions", "return numbers and arrays")
def objects_with_functions_leave(x):
    first = None
    for _ in x:
        first = Step(lambda t: t * 2.0, first)
    return first


class Part:
    def __init__(self, value, parts):
        self.value = value
        self.parts = parts

    def total(self):
        return self.value + sum(p.total() for p in self.parts)


@use((X,), wrt=(0,), long=True)
def list_of_a_node_that_gets_longer(x):
    parts = []
    for v in x:
        parts.append(Part(v * v, []))
    whole = Part(1.0, parts)
    parts.append(Part(x[0] * 5.0, []))
    return whole.total()


@use((X,))
def item_of_the_list_of_a_node_replaced(x):
    parts = [Part(1.0, []), Part(2.0, [])]
    whole = Part(0.0, parts)
    parts[0] = Part(x[0], [])
    return whole.total()


@use((X,), long=True)
def lists_of_numbers_in_links(x):
    first = None
    for v in x:
        numbers = [v]
        numbers.append(v * 2.0)
        first = Step(numbers, first)
    return first.function[0] + len(first.after.function), sum(first.after.function)
