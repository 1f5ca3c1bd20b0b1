"""Things grouped by what is computed of them, and the groups sorted, listed and chosen."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from tests.users.corpus import use


@use((8, 3), (0, 3), long=True)
def groups_as_a_dict(n, m):
    groups = defaultdict(list)
    for i in range(n):
        groups[i * i % m].append(i)
    return dict(groups)


@use((8, 3), (0, 3))
def groups_listed(n, m):
    groups = {}
    for i in range(n):
        groups.setdefault(i * i % m, []).append(i)
    return list(groups.values()), len(groups)


@use((8, ((0, 1), (2, 3), (1, 3), (5, 6))), long=True)
def joined_sets_by_size(n, pairs):
    parent = list(range(n))

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for a, b in pairs:
        parent[find(a)] = find(b)
    groups = defaultdict(list)
    for i in range(n):
        groups[find(i)].append(i)
    return sorted(groups.values(), key=lambda g: (-len(g), g[0]))


@use((8, 3), (0, 2))
def rows_sorted_when_they_are_full(n, m):
    rows = [[k] for k in range(m)]
    for i in range(n):
        rows[i * i % m].append(i)
    return sorted(rows, key=lambda row: (-len(row), row[0])), rows


MUST_SHOW = "which the new list would share with it"


@use((8, 3), (3, 5), long=True)
def rows_sorted_and_changed_in_turn(n, m):
    rows = [[k] for k in range(m)]
    found = []
    for i in range(n):
        rows[i % m].append(i)
        found = sorted(rows, key=len)
    return found, rows


@use((8, 3), (3, 5), long=True)
def rows_changed_again_by_a_function_of_its_own(n, m):
    rows = [[k] for k in range(m)]

    def grow(i):
        rows[i % m].append(i)
        return i if i < 1 else grow(i - 1)

    grow(n)
    found = sorted(rows, key=len)
    grow(2)
    return found


@use((8, 3), (3, 5), long=True)
def rows_changed_once_they_are_sorted(n, m):
    rows = [[k] for k in range(m)]
    found = sorted(rows, key=len)
    for i in range(n):
        rows[i % m].append(i)
    return found


@use((([3, 1, 3, 2]),), (([0, 0, 0, 0]),), long=True)
def stored_one_after_another(keys):
    found = {}
    first, second, third, fourth = (k * k for k in keys)
    found[first] = 1.0
    found[second] = found.get(second, 0.0) + 2.0
    found[third] = found.get(third, 0.0) + 3.0
    found[fourth] = found.get(fourth, 0.0) + 4.0
    return found


@dataclass
class Paid:
    name: str
    pay: float


@use((["ann", "bob", "cy"], ["x", "y", "x"], [3.0, 2.0, 5.0]))
def groups_of_objects_in_order(names, groups, pay):
    found = defaultdict(list)
    for name, group, p in zip(names, groups, pay):
        found[group].append(Paid(name, p))
    return {
        group: (len(them), max(them, key=lambda one: one.pay).name)
        for group, them in sorted(found.items())
    }


@use((" ".join(f"w{k * k % 37}" for k in range(300)),), long=True)
def words_that_follow_each_word(text):
    words = text.split()
    chain = defaultdict(list)
    for a, b in zip(words, words[1:]):
        chain[a].append(b)
    return {a: " ".join(following) for a, following in chain.items()}, chain["w1"][-1]


WORDS = "the quick brown fox jumps over the lazy dog and the cat sat on the mat in spain".split()


@use((WORDS,), (WORDS[:1],))
def words_by_length_in_order(words):
    groups = defaultdict(list)
    for w in words:
        groups[len(w)].append(w)
    return {n: own for n, own in sorted(groups.items())}


@use((" ".join(WORDS),), ("a",))
def first_letters_of_a_text(text):
    groups = {}
    for w in text.split():
        groups.setdefault(w[0], []).append(w)
    return [(c, len(own), own[0]) for c, own in sorted(groups.items())]


@use((WORDS,), (WORDS[:2],))
def letters_of_words_in_order(words):
    groups = {}
    for w in words:
        groups.setdefault(w[0], []).append(w)
    return {c: Counter(w[-1] for w in groups[c]) for c in sorted(groups)}


@use((WORDS,), long=True)
def counters_in_order_of_their_names(words):
    ends = defaultdict(Counter)
    for w in words:
        ends[w[0]][w[-1]] += 1
    return {c: dict(sorted(own.items())) for c, own in sorted(ends.items())}


@use((WORDS,), (WORDS[:1],))
def letters_of_each_word_once(words):
    seen = {}
    for w in words:
        seen[w] = len(seen)
    found = []
    for w in seen:
        places = {}
        for c in w:
            places[c] = len(places)
        found.append(places)
    return found


MANY = "east seat listen silent enlist tan nat net ten teas opts stop post pots bat tab".split()


@use((MANY * 2,), (MANY,))
def anagrams_in_order(words):
    groups = {}
    for w in words:
        groups.setdefault("".join(sorted(w)), []).append(w)
    return sorted(sorted(own) for own in groups.values() if len(own) > 1)


LINES = [
    "2024-01-01 ERROR db timeout", "2024-01-01 INFO web started", "2024-01-02 ERROR web crash",
    "2024-01-02 WARN db slow", "2024-01-03 INFO db ok",
]


@use((LINES,), long=True)
def counters_by_day_beside_one_of_levels(lines):
    days, levels = {}, defaultdict(int)
    for line in lines:
        day, level, service, *rest = line.split()
        levels[level] += 1
        days.setdefault(day, Counter())[service] += 1
    return {day: dict(own) for day, own in days.items()}, dict(levels)
