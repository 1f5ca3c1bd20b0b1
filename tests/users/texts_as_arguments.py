"""Many texts as arguments: in lists, in tuples in lists, as keys of dicts, in sets."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.users.corpus import use

WORDS = ("the quick brown fox jumps over the lazy dog level wow " * 2).split()
PAIRS = [(name, 0.5 * k) for k, name in enumerate(["ann", "bob", "cy", "dorothea"] * 5)]
PRICES = {f"item{k}": 1.5 * k for k in range(20)}


@use((WORDS,))
def words_counted(words):
    return Counter(words).most_common(3), max(words, key=len), sorted(set(words))[:2]


@use((WORDS, "t"), ([*WORDS, ""], "zz"))
def words_looked_at(words, start):
    kept = [w for w in words if w.startswith(start)]
    return kept, [w.upper() for w in words], " ".join(words), [w for w in words if w == w[::-1]]


@use((WORDS, "fox"), (WORDS, "cat"))
def a_word_found(words, word):
    return words.count(word), word in words, words.index(word)


@use((WORDS,))
def words_changed(words):
    words.sort()
    words.append("zz")
    words[0] = "a much longer one than any that there was"
    return len(words)


@use((WORDS,))
def words_grouped(words):
    groups = defaultdict(list)
    for word in words:
        groups["".join(sorted(word))].append(word)
    return sorted(map(len, groups.values()))


@use((PAIRS,), (PAIRS[::-1] + [("", 2.5)],), long=True)
def named_numbers(pairs):
    totals = {}
    for name, value in pairs:
        totals[name] = totals.get(name, 0.0) + value
    return totals, max(pairs, key=lambda p: p[1]), sorted(pairs, key=lambda p: (p[0], -p[1]))[:3]


@use(([("push", 2), ("push", 3), ("add", 0)] * 7,), ([("push", 1)] * 20 + [("jump", 2)],))
def a_machine(program):
    stack = []
    for name, value in program:
        match name:
            case "push":
                stack.append(value)
            case "add":
                stack.append(stack.pop() + stack.pop())
            case _:
                raise ValueError(f"no instruction {name!r}")
    return stack


@use((PRICES, [("item3", 2), ("item7", 1)] * 9), (PRICES, [("pear", 1)] * 18))
def a_bill(prices, cart):
    total = 0.0
    for item, count in cart:
        if item not in prices:
            raise KeyError(item)
        total += prices[item] * count
    return total


@use((dict(PRICES), "item3"), (dict(PRICES), "pear"), long=True)
def a_dict_with_names_changed(prices, name):
    prices[name] = prices.get(name, 0.0) + 1.0
    return max(prices, key=prices.get), len(prices)


@use((set(PRICES), "item3"), (set(PRICES), "pear"), long=True)
def a_set_of_many_names(names, name):
    return name in names, len(names), sorted(names)[:2]


@use(("n,v",), ("v,n,v",))
def parts_of_a_known_text(line):
    parts = line.split(",")
    parts.append("more")
    parts[0] = "first"
    return parts, line.split(",").index("v"), line.split(",").count("v"), sorted(line.split(","))
