"""Strings read character by character: distances, ciphers, brackets, numbers, counts."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tests.users.corpus import use

FOX = "the quick brown fox jumps over the lazy dog"
CAT = "a quick brown cat jumped over two lazy dogs!"


@use((FOX, CAT), ("", "abc"), long=True)
def edit_distance(s, t):
    n, m = len(s), len(t)
    d = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        d[i][0] = i
    for j in range(m + 1):
        d[0][j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
    return d[n][m]


@use((FOX, CAT))
def common_subsequence(a, b):
    best = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            if x == y:
                best[i + 1, j + 1] = best[i, j] + 1
            else:
                best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j])
    return int(best[-1, -1])


@use(("amanaplanacanalpanama",), ("abba",))
def is_palindrome(s):
    i, j = 0, len(s) - 1
    while i < j:
        if s[i] != s[j]:
            return False, s == s[::-1]
        i += 1
        j -= 1
    return True, s == s[::-1]


@use((FOX, 3), long=True)
def caesar(s, k):
    out = []
    for ch in s:
        if ch.isalpha():
            out.append(chr((ord(ch) - 97 + k) % 26 + 97))
        else:
            out.append(ch)
    return "".join(out)


@use((FOX,))
def vowels_and_letters(s):
    counts = [0] * 26
    for c in s:
        if "a" <= c <= "z":
            counts[ord(c) - ord("a")] += 1
    return counts, sum(1 for c in s if c in "aeiou")


@use((FOX,), long=True)
def counted(s):
    d = {}
    for c in s:
        d[c] = d.get(c, 0) + 1
    return d, Counter(s).most_common(3), len(set(s))


@use(("{[()]}" * 4,), ("([)]",))
def balanced(s):
    stack = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for ch in s:
        if ch in "([{":
            stack.append(ch)
        elif not stack or stack.pop() != pairs[ch]:
            return False
    return not stack


@use((FOX,), long=True)
def longest_without_repetition(s):
    last = {}
    best = start = 0
    for i, c in enumerate(s):
        if c in last and last[c] >= start:
            start = last[c] + 1
        last[c] = i
        best = max(best, i - start + 1)
    return best


@use(("3+2*2-14+7*10-2+1",), long=True)
def calculated(s):
    num, op, stack = 0, "+", []
    for i in range(len(s)):
        c = s[i]
        if c.isdigit():
            num = num * 10 + int(c)
        if not c.isdigit() or i == len(s) - 1:
            if op == "+":
                stack.append(num)
            elif op == "-":
                stack.append(-num)
            elif op == "*":
                stack.append(stack.pop() * num)
            op = c
            num = 0
    return sum(stack)


@use(("MCMXCIV",))
def roman(s):
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for i in range(len(s)):
        if i + 1 < len(s) and values[s[i]] < values[s[i + 1]]:
            total -= values[s[i]]
        else:
            total += values[s[i]]
    return total


@use((2.0, "relu"), (2.0, "categorical_crossentropy"), wrt=(0,))
def chosen_by_name(x, mode):
    if mode == "relu":
        return x * 2
    if mode == "categorical_crossentropy":
        return x * 3
    return x


@use(("aaabbcddddddddddddd",))
def run_lengths(s):
    out = []
    i = 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out.append((s[i], j - i))
        i = j
    return out


@use((FOX, "fox jumps over the"))
def first_occurrence(s, p):
    for i in range(len(s) - len(p) + 1):
        for j in range(len(p)):
            if s[i + j] != p[j]:
                break
        else:
            return i
    return -1


@use((FOX,))
def turned_round(s):
    return "".join(reversed(s)), s[::-1], sorted(s)[:2]
