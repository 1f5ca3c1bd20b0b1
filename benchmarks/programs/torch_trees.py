"""A Tree-LSTM as it is written with torch: a module that calls itself, a node at a time."""

from __future__ import annotations

import torch


class TreeLSTM(torch.nn.Module):
    """A binary Tree-LSTM with the workload's weights."""

    def __init__(self, words, U, V, b):  # noqa: N803
        super().__init__()
        count, size = words.shape
        self.words = torch.nn.Embedding(count, size)
        self.left = torch.nn.Linear(size, 5 * size)
        self.right = torch.nn.Linear(size, 5 * size, bias=False)
        with torch.no_grad():
            self.words.weight.copy_(words)
            self.left.weight.copy_(U.T)
            self.left.bias.copy_(b)
            self.right.weight.copy_(V.T)

    def forward(self, tree):
        if tree.left is None:
            h = self.words.weight[tree.word]
            return torch.zeros_like(h), h
        (c1, h1), (c2, h2) = self(tree.left), self(tree.right)
        i, f1, f2, o, g = (self.left(h1) + self.right(h2)).chunk(5)
        c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
        return c, torch.sigmoid(o) * torch.tanh(c)


def loss(module, trees):
    return sum((module(tree)[1] ** 2).sum() for tree in trees)


def tree_lstm(*args):
    *weights, trees = args
    module = TreeLSTM(*map(torch.from_numpy, weights))
    return lambda: loss(module, trees)


def tree_lstm_gradient(*args):
    *weights, trees = args
    module = TreeLSTM(*map(torch.from_numpy, weights))
    wanted = module.words.weight, module.left.weight, module.right.weight, module.left.bias

    def run():
        with torch.enable_grad():
            words, left, right, bias = torch.autograd.grad(loss(module, trees), wanted)
        return words, left.T, right.T, bias

    return run
