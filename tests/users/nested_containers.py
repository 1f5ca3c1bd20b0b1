"""Dicts, sets, deques and counters in dicts, in lists and in fields of objects."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

import numpy as np

from tests.users.corpus import use

KEYS = np.array([3, 1, 3, 2, 1, 3])
X = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


@use((KEYS, X), (KEYS[:0], X[:0]), long=True)
def dicts_by_setdefault(keys, x):
    found = {}
    for i, (key, v) in enumerate(zip(keys, x)):
        found.setdefault(int(key), {})[i % 2] = float(v)
    return found, {key: len(inner) for key, inner in found.items()}


@use((KEYS, X), wrt=(1,), long=True)
def weights_of_a_graph(keys, x):
    graph = defaultdict(lambda: defaultdict(float))
    for i in range(len(keys)):
        graph[int(keys[i])][i % 3] += x[i] * x[i]
    total = 0.0
    for a in graph:
        for b in graph[a]:
            total += (a + b) * graph[a][b]
    return total


@use((KEYS,), long=True)
def followers(keys):
    after = defaultdict(Counter)
    keys = keys.tolist()
    for a, b in zip(keys, keys[1:]):
        after[a][b] += 1
    return {a: (c.most_common(1)[0], sum(c.values())) for a, c in after.items()}


@use(("to be or not to be", 2))
def words_in_lists_that_a_recursion_fills(text, n):
    lists = [[] for _ in range(n)]
    words = text.split()

    def fill(items, k):
        if k < len(words):
            items.append(words[k])
            fill(items, k + n)

    for k in range(n):
        fill(lists[k], k)
    return lists


@use((X[[0, 2, 1, 4]],))
def clusters_that_merge(x):
    clusters = {i: [i] for i in range(len(x))}
    while len(clusters) > 1:
        best = None
        for a in clusters:
            for b in clusters:
                if a < b and (best is None or abs(x[a] - x[b]) < best[0]):
                    best = abs(x[a] - x[b]), a, b
        _, a, b = best
        clusters[a] = clusters[a] + clusters.pop(b)
    return clusters


@use((KEYS,), long=True)
def sets_by_key(keys):
    found = {}
    for i, key in enumerate(keys):
        if int(key) not in found:
            found[int(key)] = set()
        found[int(key)].add(i % 2)
    return {key: sorted(s) for key, s in found.items()}, 1 in found[3], found[2] == {1}


@use((KEYS,), long=True)
def queues_by_key(keys):
    found = defaultdict(deque)
    for i, key in enumerate(keys):
        found[int(key)].append(i)
    return {key: q.popleft() for key, q in found.items()}, {k: len(q) for k, q in found.items()}


@use((4, KEYS), (2, KEYS[3:5]))
def neighbours_in_sets(n, keys):
    around = [set() for _ in range(n)]
    for a, b in zip(keys, keys[1:]):
        around[a % n].add(int(b))
        around[b % n].add(int(a))
    return [sorted(s) for s in around], [len(s) for s in around]


class Branch:
    def __init__(self):
        self.children = {}
        self.is_word = False


@use((["ab", "ac", "b", "ab"],), long=True)
def words_in_a_trie(words):
    root = Branch()
    for word in words:
        node = root
        for c in word:
            if c not in node.children:
                node.children[c] = Branch()
            node = node.children[c]
        node.is_word = True

    def count(node):
        return (1 if node.is_word else 0) + sum(count(n) for n in node.children.values())

    return count(root)


@use(
    (np.array([[0, 1, 2], [0, 1, 3], [3, 3, 3]]), np.array([0, 1, 3])), long=True
)
def paths_in_dicts_without_end(words, asked):
    root = {}
    for word in words:
        node = root
        for c in word:
            node = node.setdefault(int(c), {})
    node, depth = root, 0
    for c in asked:
        if int(c) not in node:
            break
        node = node[int(c)]
        depth += 1
    return depth, len(root)


class Box:
    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size
        self.points = []
        self.parts = []

    def insert(self, px, py):
        if self.parts:
            self.parts[(px > self.x) + 2 * (py > self.y)].insert(px, py)
            return
        self.points.append((px, py))
        if len(self.points) > 2 and self.size > 0.01:
            h = self.size / 2
            self.parts = [
                Box(self.x - h, self.y - h, h), Box(self.x + h, self.y - h, h),
                Box(self.x - h, self.y + h, h), Box(self.x + h, self.y + h, h),
            ]
            for qx, qy in self.points:
                self.parts[(qx > self.x) + 2 * (qy > self.y)].insert(qx, qy)
            self.points.clear()

    def count(self):
        return len(self.points) + sum(part.count() for part in self.parts)


@use((np.array([[0.1, 0.2], [0.3, 0.4], [-0.5, 0.6], [0.12, 0.22], [0.7, -0.3]]),), long=True)
def points_in_a_quadtree(points):
    root = Box(0.0, 0.0, 1.0)
    for x, y in points:
        root.insert(x, y)
    return root.count()


@use((5,), (1,), long=True)
def lists_in_their_order(n):
    groups = {}
    for i in range(n):
        groups.setdefault(i % 3, []).append(-i)
    by_length = sorted(groups.values(), key=len)
    rows = [[k % 2] * (k % 3) for k in range(n)]
    rows.sort(reverse=True)
    return sorted(groups.values()), by_length, rows


@use(([17, 4, 75, 9, 2, 80, 2],), ([5],))
def sorted_by_digits(items):
    """Each round fills buckets anew, from a list that only the first one is given."""
    most, unit = max(items), 1
    while most // unit > 0:
        buckets = [[] for _ in range(10)]
        for item in items:
            buckets[item // unit % 10].append(item)
        items = [item for bucket in buckets for item in bucket]
        unit *= 10
    return items


@use(([f"w{k % 37}{k % 5}" for k in range(90)],), (["a", "ab", "b"],))
def letters_in_a_tree(words):
    root = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})

    def count(node):
        return 1 + sum(count(node[letter]) for letter in node)

    return count(root), len(root)


WORDS = [f"w{k % 37}{k % 5}" for k in range(90)]


@use((WORDS, ["w11", "w1", "x"]), (["a", "ab"], ["ab"]), long=True)
def ends_of_words_in_a_tree(words, asked):
    root = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node["$"] = True
    found = []
    for word in asked:
        node = root
        for letter in word:
            if letter not in node:
                found.append(False)
                break
            node = node[letter]
        else:
            found.append("$" in node)
    return found


@use((WORDS, ["w11", "w1", "x"]), long=True)
def words_at_the_ends_of_a_tree(words, asked):
    root = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node["word"] = word
    found = []
    for word in asked:
        node = root
        for letter in word:
            node = node.get(letter, {})
        if "word" in node:
            found.append(node["word"])
    return sorted(found)


@use((WORDS,))
def a_tree_that_makes_its_branches(words):
    tree = lambda: defaultdict(tree)  # noqa: E731
    root = tree()
    for word in words:
        node = root
        for letter in word:
            node = node[letter]
        node["$"] = True

    def count(node):
        return sum(1 if key == "$" else count(node[key]) for key in node)

    return count(root)


@use((WORDS,), long=True)
def what_is_no_text_in_a_tree(words):
    root = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node["word"] = word
    try:
        return root[words[0][0]] + "s"
    except TypeError as error:
        return str(error)


EDGES = [(1, 2), (2, 3), (4, 5), (6, 7), (7, 8), (8, 6)]


@use((EDGES,), ([(5, 1), (1, 9), (9, 5), (2, 5), (3, 3)],))
def neighbours_from_both_ends(edges):
    near = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return len(near), max(len(others) for others in near.values()), 8 in near[edges[0][1]]


@use((EDGES,), ([(5, 1), (1, 9), (9, 5), (2, 5), (3, 3)],))
def sets_made_where_they_are_missing(edges):
    near = {}
    for a, b in edges:
        if a not in near:
            near[a] = set()
        if b not in near:
            near[b] = set()
        near[a].add(b)
        near[b].add(a)
    return sum(a in near[b] for a, b in edges), sorted(near)


DOCS = ["good film", "bad plot", "good plot"] * 8


@use((DOCS, ["p", "n", "p"] * 8, ["good"] * 20 + ["plot no"] * 3))
def scores_of_texts(docs, labels, tests):
    counts = {}
    for doc, label in zip(docs, labels):
        counts.setdefault(label, Counter()).update(doc.split())
    found = []
    for text in tests:
        scores = {}
        for label in sorted(counts):
            scores[label] = sum(counts[label][word] / 8 for word in text.split())
        found.append((max(scores, key=scores.get), scores))
    return found
