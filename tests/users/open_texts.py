"""Strings that loops make longer, and what is done with them: of run-time length."""

from __future__ import annotations

from collections import deque

import numpy as np

from tests.users.corpus import use

SENTENCE = "the cat and the dog and the end"


@use(("a" * 30 + "bb",))
def run_lengths(s):
    out, i = "", 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out += s[i] + str(j - i)
        i = j
    return out


@use((1994,), (0,), long=True)
def roman_numeral(n):
    values = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1]
    letters = ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"]
    out = ""
    for value, letter in zip(values, letters, strict=True):
        while n >= value:
            out += letter
            n -= value
    return out


@use((SENTENCE,), long=True)
def words_counted_letter_by_letter(text):
    counts, word = {}, ""
    for letter in text + " ":
        if letter == " ":
            if word:
                counts[word] = counts.get(word, 0) + 1
            word = ""
        else:
            word += letter
    return counts, sorted(counts), sorted(counts.items(), key=lambda item: -item[1])


@use((13,), long=True)
def numbers_or_words(n):
    out = []
    for i in range(1, n + 1):
        s = ""
        if i % 3 == 0:
            s += "Fizz"
        if i % 5 == 0:
            s += "Buzz"
        out.append(s or str(i))
    return out, " ".join(out)


@use((3,), long=True)
def balanced(n):
    out = []

    def extend(s, opened, closed):
        if len(s) == 2 * n:
            out.append(s)
            return
        if opened < n:
            extend(s + "(", opened + 1, closed)
        if closed < opened:
            extend(s + ")", opened, closed + 1)

    extend("", 0, 0)
    return out


@use((5,), (0,), long=True)
def taken_apart_again(n):
    s = "  "
    for i in range(n):
        s += f"{i * 7 - 3},{-i} "
    fields = s.split()
    t = s.strip()
    total = 0
    for field in fields:
        first, second = field.split(",")
        total += int(first) * int(second)
    return total, len(fields), t, t.find("7"), t.count(","), t.startswith("-3"), t.partition(",")


@use((5,), long=True)
def compared_and_cut(n):
    s = ""
    for i in range(n):
        s += "abc"[i % 3]
    return (
        s < "abd", s == "abcab", "abcaa" >= s, s != s[::-1], "ca" in s, s[-1], s[1:-1], s * 2,
        min(s), s.isalpha(), s.upper(), len(s), bool(s), f"<{s}>",
    )


@use((3,), long=True)
def no_such_character(n):
    s = ""
    for _ in range(n):
        s += "x"
    return s[n]


@use((4,), long=True)
def lines_of_a_picture(n):
    rows = []
    for i in range(n):
        row = ""
        for j in range(n):
            row += "#" if (i + j) % 2 else "."
        rows.append(row)
    return "\n".join(rows), rows


@use((-4071,), (9,), long=True)
def digits_of_a_number(n):
    total = 0
    for digit in str(abs(n)):
        total = 10 * total - int(digit)
    return total, str(n) == str(n)[::-1], len(str(n)), [c for c in f"{n}:{n // 7}"]


@use((4, 0.5), long=True)
def numbers_written_by_python(n, x):
    out = ""
    for i in range(n):
        out += f"{x * i:.2f} " + hex(i * 13)
    return out, out.split(" ")


@use((5,), long=True)
def text_in_a_cell(n):
    out = ""

    def emit(part):
        nonlocal out
        out += part

    for i in range(n):
        emit("x")
        emit(str(i))
        if len(out) == 6:
            return out, i
    return out, n


@use(([3, 1, 2, 3, 0],), ([3, 1, 2, 3, 0] * 9,), long=True)
def longer_at_either_end(xs):
    s = ""
    for x in xs:
        if x > 2:
            s += "hi"
        elif x > 1:
            s = s[1:]
        else:
            s = "lo" + s
    return s


@use((4,), long=True)
def kept_while_it_grows(n):
    current, out = "", []
    for i in range(n):
        current += chr(97 + i)
        out.append(current)
    current += "!"
    out[0] = current
    out.insert(1, current[:2])
    last = out.pop()
    out.append(out[1] + last)
    return out, current, last


@use((7,), long=True)
def groups_by_name(n):
    groups = {}
    for i in range(n):
        groups.setdefault("k" + str(i % 3), []).append(i)
    return [(name, sum(members)) for name, members in groups.items()], "k1" in groups


@use(("abcabcabcdabcabdabcabcxyz", 4), long=True)
def first_repeated_part(s, size):
    seen = set()
    for i in range(len(s) - size + 1):
        part = s[i : i + size]
        if part in seen:
            return part
        seen.add(part)
    return ""


@use((np.arange(70) % 3,), long=True)
def put_together_by_formats(x):
    by_f, by_percent, by_format, nested = "", "", "", "a"
    for v in x:
        by_f = f"{by_f}{v},"
        by_percent = "%s%d;" % (by_percent, v)  # noqa: UP031
        by_format = "{}{:>3}".format(by_format, v)  # noqa: UP032
        if v > 1:
            nested = f"({nested})"
    return by_f, by_percent, by_format, nested


@use((np.array([[0, 0, 1, 2], [0, 0, 1, 2], [0, 0, 0, 2], [0, 0, 0, 0]]), 3))
def put_together_by_recursion(split, last):
    def paren(i, j):
        if i == j:
            return f"A{i}"
        return f"({paren(i, split[i, j])}{paren(split[i, j] + 1, j)})"

    return paren(0, last)


@use(("one two\nthree",), ("one",))
def texts_put_together_backwards(text):
    parts = {"a": [text, "gat"], "b": ["ga"]}
    found = {}
    for key, s in {k: "".join(v) for k, v in parts.items()}.items():
        kept = ""
        for i in range(0, len(s) - 2, 3):
            kept += s[i]
        found[key] = "".join(b for b in reversed(s)), kept
    return found


@use((4,), (3,), (1,))
def numbers_among_operators(n):
    tokens = []
    for i in range(n):
        tokens.append(("number", float(i)) if i % 2 else ("operator", "+-"[i % 4 // 2]))
    total = 0.0
    for kind, value in tokens:
        if kind == "number":
            total += -value
        elif value == "-":
            total *= 2
    return total, -tokens[n - 1][1]


@use(("tobeornottobe",), long=True)
def codes_of_repeated_texts(text):
    """A dict of many texts, made at once, that gets longer ones."""
    numbers = {chr(k): k for k in range(256)}
    found, last = [], ""
    for char in text:
        if last + char in numbers:
            last += char
        else:
            found.append(numbers[last])
            numbers[last + char] = len(numbers)
            last = char
    return [*found, numbers[last]], len(numbers)


LADDER = (
    "hot dot dog lot log cog hat cat bat bag big bog fog fig fit hit sit set bet get got gut cut"
).split()


@use(("hit", "cog", LADDER), ("hot", "cut", LADDER[::-1]), ("hit", "zzz", LADDER[2:]), long=True)
def ladder_of_many_words(first, last, words):
    known, seen = set(words), {first}
    waiting = deque([(first, 1)])
    while waiting:
        word, steps = waiting.popleft()
        if word == last:
            return steps
        for i in range(len(word)):
            for letter in "abcdefghijklmnopqrstuvwxyz":
                other = word[:i] + letter + word[i + 1 :]
                if other in known and other not in seen:
                    seen.add(other)
                    waiting.append((other, steps + 1))
    return 0


@use((SENTENCE, 4, ["and", "cat"]), ("one and two and three, or four, or more", -4, ["or", "more"]))
def parts_at_places(text, at, words):
    found = []
    for word in words:
        found.append((
            text.startswith(word, at), text.endswith(word, 0, at), text.count(word, at),
            text.startswith(("one", word)), text.endswith(("x", word)),
        ))
    return found


@use(([1, 2, 3], 5), ([1, 2], 2))
def a_deque_in_its_middle(xs, k):
    d = deque(xs)
    d.appendleft(k)
    d.insert(1, 9)
    d.insert(-1, 8)
    del d[2]
    d.reverse()
    d += [4, k]
    found = d.index(k), d.index(4, 2)
    d.remove(xs[0])
    d.remove(k)
    return found, list(d)


@use(("2-1 + (34*x)",), ("(",), ("",))
def tokens_of_a_line(line):
    tokens, i = [], 0
    while i < len(line):
        if line[i].isspace():
            i += 1
            continue
        begin = i
        if line[i].isdigit():
            while i < len(line) and line[i].isdigit():
                i += 1
            tokens.append(("number", line[begin:i], begin))
        else:
            i += 1
            tokens.append(("sign", line[begin].upper(), begin))
    return tokens, len(tokens)


@use(("0fF9a" * 10,), ("0fG",), ("",))
def bits_of_digits(digits):
    total = 0
    for digit in digits:
        total += int(digit, 16)
    return total, "".join(format(int(digit, 16), "04b") for digit in digits)


@use(("aaabbbccccdaa" * 20,), ("a",), long=True)
def runs_of_letters(text):
    found, i = [], 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        found.append(f"{text[i]}{j - i}")
        i = j
    packed, again, number, letter = "".join(found), [], "", ""
    for c in packed:
        if c.isdigit():
            number += c
        else:
            if letter:
                again.append(letter * int(number))
            letter, number = c, ""
    again.append(letter * int(number))
    return packed, "".join(again) == text


@use(([1, 0, 3, 0], [2, 0, 0, 11]), ([], []), long=True)
def numbers_or_dots(row, other):
    shown = ""
    for v in row:
        shown += str(v or ".")
    return shown, ["".join(f"{v or '-':>3}" for v in line) for line in (row, other)]


@use(("kittenab", "sittingxy"), ("", "ab"), ("abc", "abc"))
def edits_by_recursion(a, b):
    def edits(s, t):
        if not s or not t:
            return len(s) + len(t)
        if s[0] == t[0]:
            return edits(s[1:], t[1:])
        return 1 + min(edits(s[1:], t), edits(s, t[1:]), edits(s[1:], t[1:]))

    return edits(a, b)


@use(("abacdfgdcabaabc",), ("a",), long=True)
def longest_palindrome_inside(s):
    def longest(t):
        if len(t) < 2:
            return t
        if t[0] == t[-1]:
            return t[0] + longest(t[1:-1]) + t[-1]
        a, b = longest(t[1:]), longest(t[:-1])
        return a if len(a) >= len(b) else b

    return longest(s)
