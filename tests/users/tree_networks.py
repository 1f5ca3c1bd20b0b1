"""Networks over trees: recursions that return vectors, which run level by level."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.users.corpus import use

RNG = np.random.default_rng(17)
E, W, B = RNG.normal(size=(6, 3)), RNG.normal(size=(3, 3)) * 0.5, RNG.normal(size=3)


@dataclass
class Word:
    index: int


@dataclass
class Phrase:
    left: Word | Phrase
    right: Word | Phrase


@dataclass
class Item:
    x: np.ndarray
    weight: float
    first: Item | None = None
    second: Item | None = None


@dataclass
class Corpus:
    sentences: list[Word | Phrase]
    targets: list[float] = field(default_factory=list)
    more: Corpus | None = None


SENTENCE = Phrase(Phrase(Word(1), Phrase(Word(2), Word(3))), Phrase(Word(0), Word(5)))
OTHER = Phrase(Word(4), Phrase(Word(2), Word(2)))
CORPUS = Corpus([SENTENCE, Word(3), OTHER], [1.0, 0.5, -1.0])


def item(*parts):
    return Item(RNG.normal(size=3), float(RNG.normal()), *parts)


ITEMS = item(item(None, item(item(), item())), item(item(), item()))


def lstm(t, E, W, B):
    if isinstance(t, Word):
        return np.zeros(3), E[t.index]
    (c1, h1), (c2, h2) = lstm(t.left, E, W, B), lstm(t.right, E, W, B)
    gate = 1 / (1 + np.exp(-(W @ h1 + h2 @ W + B)))
    c = gate * c1 + (1 - gate) * c2 + np.tanh(h1 * h2)
    return c, gate * np.tanh(c)


@use((SENTENCE, E, W, B), (Word(2), E, W, B), wrt=(1, 2, 3), long=True)
def tree_lstm(t, E, W, B):
    return np.sum(lstm(t, E, W, B)[1] ** 2)


@use((CORPUS, E, W, B), (Corpus([], []), E, W, B), wrt=(1, 2, 3), joins=True, long=True)
def loss_of_a_corpus(corpus, E, W, B):
    loss = 0.0
    for t, y in zip(corpus.sentences, corpus.targets, strict=True):
        _, h = lstm(t, E, W, B)
        loss += (np.mean(h) - y) ** 2
    return loss


@use((SENTENCE, OTHER, E, W, B), wrt=(2, 3), long=True)
def similarity_of_two_trees(a, b, E, W, B):
    x, y = lstm(a, E, W, B)[1], lstm(b, E, W, B)[1]
    return x @ y / np.sqrt((x @ x) * (y @ y))


@use((ITEMS, W, B), wrt=(0, 1, 2), long=True)
def arrays_and_numbers_in_nodes(t, W, B):
    def value(t):
        h = np.tanh(W @ t.x + B) * t.weight
        if t.first is not None:
            h = h + value(t.first) * 0.5
        if t.second is not None:
            h = h - value(t.second) / 2
        return h

    return np.sum(value(t) ** 2)


@use((ITEMS, W), wrt=(0, 1), long=True)
def a_path_per_number_in_a_node(t, W):
    def value(t):
        if t.first is None or t.second is None:
            return t.x * t.weight
        if t.weight > 0.2:
            return value(t.first) + t.x
        return W @ value(t.first) * value(t.second)

    return np.sum(value(t))


@use((SENTENCE, E), wrt=(1,), long=True)
def attention_over_children(t, E):
    def value(t):
        match t:
            case Word(i):
                return E[i]
            case Phrase(a, b):
                rows = np.stack([value(a), value(b)])
                scores = np.exp(rows @ rows[0] - np.max(rows @ rows[0]))
                h = (scores / scores.sum()) @ rows
                return (h - h.mean()) / np.sqrt(h.var() + 1e-2)

    return np.sum(value(t) * np.arange(3.0))


@use((SENTENCE, E, W), wrt=(1, 2), long=True)
def matrices_of_a_tree_written_in_part(t, E, W):
    def value(t):
        if isinstance(t, Word):
            return np.outer(E[t.index], E[t.index])
        m = value(t.left) @ W @ value(t.right).T
        out = np.zeros((3, 3))
        out[:2] = m[1:]
        out[2] += np.tanh(m[0])
        out[0, 1] = 1.0
        return out

    return np.sum(np.tanh(value(t)))


class Encoder:
    def __init__(self, E, W):
        self.E, self.W = E, W

    def __call__(self, t):
        if isinstance(t, Word):
            return {"h": self.E[t.index], "size": 1.0}
        left, right = self(t.left), self(t.right)
        h = np.maximum(left["h"], self.W @ right["h"])
        return {"h": h, "size": left["size"] + right["size"]}


@use((SENTENCE, E, W), wrt=(1, 2), long=True)
def a_model_with_a_recursive_call(t, E, W):
    found = Encoder(E, W)(t)
    return np.sum(found["h"]) / found["size"]
