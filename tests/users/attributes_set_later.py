"""Attributes that only some paths assign, or that a loop assigns for the first time."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.array([1.25, 3.0, 2.5])
FIRST = np.array([3.0, 1.25, 2.5])  # assigns all attributes in its first round, in their order


class Tracker:
    kept = -1.0

    def __init__(self):
        self.count = 0

    def step(self, x):
        if x > 2:
            self.last = x
        if x > 1:
            self.kept = 2 * x
        self.count += 1

    def learn(self, x):
        for _ in range(3):
            self.weights = x * self.count
            self.count += 1
        return self.weights.sum()


@use((X,), (X[:1],), (X[:0],), wrt=(0,), corners=(1, 2), long=True)
def read_after_a_loop(x):
    tracker = Tracker()
    for v in x:
        tracker.step(v)
    return tracker.last * 2, tracker.count


@use((X,), (X[:1],), wrt=(0,), corners=(1,))
def asked_for(x):
    tracker = Tracker()
    for v in x:
        tracker.step(v)
    first = tracker.last if hasattr(tracker, "last") else -1.0
    return first, getattr(tracker, "last", -2.0), getattr(tracker, "other", 3.0)


@use((X,), (X[:1],), wrt=(0,))
def that_the_class_has(x):
    tracker = Tracker()
    for v in x:
        tracker.step(v)
    return tracker.kept


@use((3.0,), (1.5,))
def in_a_handler(x):
    tracker = Tracker()
    tracker.step(x)
    try:
        return tracker.last
    except AttributeError as error:
        return str(error)


@use((FIRST,), (FIRST[1:2],))
def objects_given_back(x):
    tracker = Tracker()
    for v in x:
        tracker.step(v)
    return tracker


@use((X, 2), (X, 0))
def made_by_every_round(x, n):
    tracker = Tracker()
    for _ in range(n):
        tracker.weights = x * tracker.count
        tracker.count += 1
    return tracker.weights


@use((X,), wrt=(0,))
def made_in_a_method(x):
    return Tracker().learn(x)


@use((Tracker(), FIRST), (Tracker(), FIRST[1:2]), long=True)
def of_the_callers(tracker, x):
    for v in x:
        tracker.step(v)
    return tracker.count


class Agent:
    def __init__(self, states, actions):
        self.rng = np.random.default_rng(0)
        self.values = np.zeros((states, actions))
        self.steps = 0

    def act(self, state, wild):
        if self.rng.random() < wild:
            return int(self.rng.integers(self.values.shape[1]))
        return int(np.argmax(self.values[state]))

    def learn(self, state, action, reward, after):
        error = reward + 0.9 * self.values[after].max() - self.values[state, action]
        if abs(error) > 0.01:
            self.last_error = error
        self.values[state, action] += 0.5 * error
        self.steps += 1
        if self.steps % 10 == 0:
            self.target = self.values.copy()


@use((4, 2, 60))
def agent_that_learns(states, actions, rounds):
    agent = Agent(states, actions)
    state = 0
    for t in range(rounds):
        action = agent.act(state, max(0.05, 1 - t / 30))
        after = (state + (1 if action else -1)) % states
        agent.learn(state, action, float(after == states - 1), after)
        state = after
    return agent.values, agent.last_error, agent.target


class Stump:
    def fit(self, x, y):
        at = x > x.mean()
        self.where, self.low, self.high = x.mean(), y[~at].mean(), y[at].mean()
        return self

    def predict(self, x):
        return np.where(x > self.where, self.high, self.low)


class Boosted:
    def __init__(self, rounds):
        self.rounds, self.stumps, self.errors = rounds, [], []

    def fit(self, x, y):
        left = y - y.mean()
        for _ in range(self.rounds):
            stump = Stump().fit(x, left)
            left = left - 0.5 * stump.predict(x)
            self.stumps.append(stump)
            self.errors.append(np.sum(left * left))
            if self.errors[-1] < 0.3:
                break
        return self


@use((X, np.array([1.0, 3.0, 2.0]), 9), (X, np.array([1.0, 3.0, 2.0]), 2), wrt=(1,))
def models_in_a_list_that_grows(x, y, rounds):
    model = Boosted(rounds).fit(x, y)
    return sum(s.predict(x) for s in model.stumps).sum(), model.errors[-1], model.stumps[0].where


class Tree:
    def __init__(self, depth):
        self.depth = depth

    def grow(self, x):
        if self.depth == 0 or len(x) < 2:
            self.value = x.sum()
            return
        middle = x.mean()
        self.left, self.right = Tree(self.depth - 1), Tree(self.depth - 1)
        self.left.grow(x[x <= middle])
        self.right.grow(x[x > middle])

    def total(self):
        if hasattr(self, "value"):
            return self.value
        return self.left.total() - 2 * self.right.total()


@use((np.array([3.0, -1.0, 2.0, 0.5, 4.0]), 2), (X, 0))
def trees_that_grow_behind_init(x, depth):
    tree = Tree(depth)
    tree.grow(x)
    return tree.total()


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return vars(self) == vars(other)


def some_with_a_norm():
    points = [Point(1, 2), Point(3, 4), Point(5, 1)]
    points[1].norm = 7
    return points


@use(([Point(1, 2), Point(3, 4), Point(5, 1)],), (some_with_a_norm(),))
def chosen_objects_of_the_caller(points):
    kept = [p for p in points if p.x > 1]
    for p in kept:
        p.norm = p.x * p.y
    return sum(p.norm for p in kept), [getattr(p, "norm", -1) for p in points]


@use(([Point(1, 2), Point(3, 4), Point(5, 1)],), long=True)
def sorted_objects_of_the_caller(points):
    points.sort(key=lambda p: p.y)
    for rank, p in enumerate(points):
        p.rank = rank
    max(points, key=lambda p: p.x).label = f"far {len(points)}"
    return [p.rank for p in points if not hasattr(p, "label")]


@use((some_with_a_norm(),))
def of_those_that_have_it(points):
    return sum(p.norm for p in points if hasattr(p, "norm"))
