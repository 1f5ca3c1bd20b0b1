"""Trees of user objects: one program for all shapes, gradients with the tree's structure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import pyrelay


@dataclass(frozen=True)
class Leaf:
    x: np.ndarray


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@dataclass
class Chain:
    value: float
    next: Chain | None = None


def lstm(t, w, u):
    """A binary Tree-LSTM (Tai, Socher and Manning, 2015) with one matrix for its five gates."""
    match t:
        case Leaf(x):
            z = w @ x
            n = z.shape[0] // 3
            c = np.tanh(z[:n]) * np.exp(-z[n:2 * n] ** 2)
            return np.tanh(c) * np.tanh(z[2 * n:]), c
        case Node(left, right):
            (hl, cl), (hr, cr) = lstm(left, w, u), lstm(right, w, u)
            z = u @ np.concatenate([hl, hr])
            n = hl.shape[0]
            i, fl, fr, o, new = (z[k * n:(k + 1) * n] for k in range(5))
            c = np.tanh(new) / (1 + np.exp(-i)) + cl / (1 + np.exp(-fl)) + cr / (1 + np.exp(-fr))
            return np.tanh(c) / (1 + np.exp(-o)), c


def random_tree(random, leaves):
    if leaves == 1:
        return Leaf(random.standard_normal(3))
    k = int(random.integers(1, leaves))
    return Node(random_tree(random, k), random_tree(random, leaves - k))


def weights(random):
    return random.standard_normal((6, 3)) / 2, random.standard_normal((10, 4)) / 2


def test_a_tree_lstm_compiles_once_for_a_thousand_shapes() -> None:
    random = np.random.default_rng(0)
    w, u = weights(random)
    compiled = pyrelay.jit(lstm)
    for k in range(1000):
        tree = random_tree(random, int(random.integers(1, 12)))
        h, c = compiled(tree, w, u)
        if k % 50 == 0:
            wanted = lstm(tree, w, u)
            np.testing.assert_allclose(h, wanted[0], 1e-12)
            np.testing.assert_allclose(c, wanted[1], 1e-12)
    assert compiled.cache_info()[:3] == (1, 1, 999)


def test_the_gradient_of_a_tree_has_its_structure_and_sharing() -> None:
    random = np.random.default_rng(1)
    w, u = weights(random)

    def loss(t, w, u):
        h, c = lstm(t, w, u)
        return np.sum(h) + np.sum(c * c)

    gradient = pyrelay.grad(loss, argnums=(0, 1, 2))
    shared = Leaf(random.standard_normal(3))
    tree = Node(Node(shared, Leaf(random.standard_normal(3))), shared)
    of_tree, of_w, of_u = gradient(tree, w, u)
    assert isinstance(of_tree, Node)
    assert isinstance(of_tree.left, Node)
    assert of_tree.left.left is of_tree.right

    def slope(change):
        h = 1e-6
        return (change(h) - change(-h)) / (2 * h)

    def with_shared(h):
        leaf = Leaf(shared.x + h * np.array([0.0, 1.0, 0.0]))
        return loss(Node(Node(leaf, tree.left.right), leaf), w, u)

    np.testing.assert_allclose(of_tree.right.x[1], slope(with_shared), 1e-6)
    np.testing.assert_allclose(of_w[2, 1], slope(lambda h: loss(tree, at(w, (2, 1), h), u)), 1e-6)
    np.testing.assert_allclose(of_u[7, 3], slope(lambda h: loss(tree, w, at(u, (7, 3), h))), 1e-6)
    for _ in range(5):
        gradient(random_tree(random, int(random.integers(2, 9))), w, u)
    assert gradient.cache_info().compilations == 1


def at(array, place, by):
    changed = array.copy()
    changed[place] += by
    return changed


def chain(values):
    link = None
    for value in reversed(values):
        link = Chain(float(value), link)
    return link


@pytest.mark.parametrize("depth", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_great_depth_is_like_any_other(depth: int) -> None:
    def total(link):
        return 0.0 if link is None else link.value + total(link.next)

    long = chain(np.ones(depth))
    assert pyrelay.jit(total)(long) == depth
    gradient = pyrelay.grad(total)(long)
    count = 0
    while gradient is not None:
        assert gradient.value == 1.0
        gradient, count = gradient.next, count + 1
    assert count == depth


def test_around_a_cycle_a_program_comes_back_to_the_same_object() -> None:
    def around(link, k):
        total, here = 0.0, link
        for _ in range(k):
            total, here = 10 * total + here.value, here.next
        here.value = total
        return here

    compiled = pyrelay.jit(around)
    for k in (2, 3, 7):
        link = Chain(1.0)
        link.next = Chain(2.0, link)
        found = compiled(link, k)
        assert found is (link if k % 2 == 0 else link.next)
        other = Chain(1.0)
        other.next = Chain(2.0, other)
        assert found.value == around(other, k).value


def test_gradients_of_linked_objects_are_linked_like_these() -> None:
    class Both:
        def __init__(self, value):
            self.value, self.before, self.next = value, None, None

    def loss(item):
        total = 0.0
        while item is not None:
            total += item.value**2 * (1.0 if item.before is None else item.before.value)
            item = item.next
        return total

    first, second = Both(3.0), Both(2.0)
    first.next, second.before = second, first
    slopes = pyrelay.grad(loss)(first)
    assert (slopes.value, slopes.next.value) == (6.0 + 4.0, 12.0)
    assert slopes.next.before is slopes


def test_recursion_around_a_cycle_that_never_ends_raises() -> None:
    def total(link):
        return 0.0 if link is None else link.value + total(link.next)

    link = Chain(1.0)
    link.next = Chain(2.0, link)
    with pytest.raises(RecursionError):
        pyrelay.jit(total)(link)


def test_leaves_alone_use_the_program_of_the_whole_data_type() -> None:
    @pyrelay.jit
    def first(t):
        return t.x[0] if isinstance(t, Leaf) else first(t.left)

    assert first(Leaf(np.array([3.0, 4.0]))) == 3.0
    assert first(Node(Leaf(np.array([5.0, 4.0])), Leaf(np.zeros(2)))) == 5.0
    assert first.cache_info().compilations == 1


def test_an_argument_comes_back_as_the_same_object() -> None:
    tree = Node(Leaf(np.ones(2)), Node(Leaf(np.zeros(2)), Leaf(np.ones(2))))
    rightmost = pyrelay.jit(lambda t: t.right if isinstance(t, Node) else t)
    assert rightmost(tree) is tree.right


@dataclass
class Weighted:
    w: np.ndarray
    kids: list[Weighted] = field(default_factory=list)


@pyrelay.jit
def doubled(t):
    t.w *= 1.0
    t.w[:] = t.w * 2
    for kid in t.kids:
        doubled(kid)


def test_arrays_of_nodes_are_written_in_place() -> None:
    inner = Weighted(np.ones((2, 3))[:, ::2])
    array = inner.w
    doubled(Weighted(np.ones((2, 2)), [inner]))
    assert inner.w is array
    np.testing.assert_array_equal(array, np.full((2, 2), 2.0))


def test_arrays_that_two_nodes_share_cannot_be_written() -> None:
    array = np.ones((2, 2))
    with pytest.raises(pyrelay.AliasError, match="shares memory"):
        doubled(Weighted(array, [Weighted(array[::-1])]))


def test_a_match_without_a_case_for_a_class_names_it() -> None:
    @pyrelay.jit
    def depth(t):
        match t:
            case Node(left, right):
                return 1 + max(depth(left), depth(right))

    with pytest.raises(pyrelay.TypeMismatchError, match="this match has no case for Leaf"):
        depth(Node(Leaf(np.ones(2)), Leaf(np.ones(2))))


def test_packed_trees_stand_for_the_trees() -> None:
    random = np.random.default_rng(2)
    w, u = weights(random)
    trees = [random_tree(random, n) for n in (1, 4, 9)]
    packed = pyrelay.pack(trees)
    compiled = pyrelay.jit(lstm)
    for tree, again in zip(trees, packed, strict=True):
        for _ in range(2):
            np.testing.assert_array_equal(compiled(again, w, u)[0], compiled(tree, w, u)[0])
    assert compiled.cache_info().compilations == 1
    assert pyrelay.jit(lambda t: t)(packed[1]) is trees[1]

    def squares(t):
        if isinstance(t, Leaf):
            return np.sum(t.x ** 2)
        return squares(t.left) + squares(t.right)

    of_tree, tree = pyrelay.grad(squares)(pyrelay.pack(trees[1])), trees[1]
    while isinstance(tree, Node):
        of_tree, tree = of_tree.left, tree.left
    np.testing.assert_allclose(of_tree.x, 2 * tree.x)


def test_packed_trees_cannot_be_changed() -> None:
    tree = Weighted(np.ones((2, 2)))
    with pytest.raises(pyrelay.InvalidValueError, match="packed Weighted"):
        doubled(pyrelay.pack(tree))
    with pytest.raises(pyrelay.TypeMismatchError, match="needs trees"):
        pyrelay.pack([1, 2])


# -- lists of trees as arguments -------------------------------------------------------------------


@dataclass
class Twig:
    value: float
    left: Twig | None = None


def twigs(count: int) -> list[Twig]:
    return [Twig(1.5 * k, Twig(k + 0.25) if k % 3 else None) for k in range(count)]


def height(t):
    return t.value if t.left is None else t.value * height(t.left)


def of_all(trees):
    total = 0.0
    for k, t in enumerate(trees):
        if k < len(trees) - 1:
            total += height(t) * trees[k + 1].value
    return total + trees[-1].value


def test_a_list_of_trees_is_compiled_once_for_all_lengths():
    f = pyrelay.jit(of_all)
    for count in (5, 6, 40):
        assert f(twigs(count)) == pytest.approx(of_all(twigs(count)))
        assert f(pyrelay.pack(twigs(count))) == pytest.approx(of_all(twigs(count)))
    assert f.cache_info().compilations == 1


def appending(trees):
    trees.append(Twig(2.0))
    return sum([t.value for t in trees])


def replacing(trees):
    trees[0] = trees[2]
    trees[1].value = 7.0
    return trees[0].value + trees[1].value


def giving_back(trees):
    return trees[::-1]


@pytest.mark.parametrize("function", [appending, replacing, giving_back])
def test_a_list_of_trees_that_is_changed_or_returned_is_a_list(function):
    mine, theirs = twigs(6), twigs(6)
    got, wanted = pyrelay.jit(function)(mine), function(theirs)
    assert got == wanted
    assert mine == theirs


def test_the_gradient_in_a_list_of_trees_is_a_list():
    found = pyrelay.grad(of_all)(twigs(6))
    assert len(found) == 6
    assert found[4].value == pytest.approx(4.25 * 7.5 + 4.5)
