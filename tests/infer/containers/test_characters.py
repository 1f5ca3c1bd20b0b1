"""Strings as data: what a program asks of characters, and that a new text compiles nothing."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay

PROPERTIES = ("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric",
              "isspace", "isupper")
SOME = "aZ09 _\t\n\u00e9\u00df\u0660\u00b2\u2167\u4e2d\U0001d7d8\u3000\U0001f600"


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_of_characters_are_pythons(name):
    @pyrelay.jit
    def holds(s, name):
        return [getattr(c, name)() for c in s]

    assert holds(SOME * 2, name) == [getattr(c, name)() for c in SOME * 2]


def test_digits_of_all_scripts_are_ints():
    @pyrelay.jit
    def values(s):
        return [int(c) for c in s]

    assert values("0123456789" * 2) == [*range(10)] * 2
    assert values("\u0660\u0669\U0001d7d8\u0967\uff15" * 4) == [0, 9, 0, 1, 5] * 4
    with pytest.raises(ValueError, match=r"invalid literal for int\(\) with base 10: 'x'"):
        values("0123456789x123456789")


def written(x):
    out = []
    for v in x:
        texts = (str(v), bin(v), hex(v), oct(v), f"{v:08b}", f"{v:x}", f"{v:#06X}", f"{v:5d}")
        for text in (*texts, format(v, "o")):
            mixed = len(text)
            for c in text:
                mixed = mixed * 31 % 10007 + ord(c)
            out.append(mixed)
        out.append(bin(v).count("1"))
    return out


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64"])
def test_ints_of_all_widths_are_written_in_the_program_in_every_base(dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 22, limits.max, limits.min, limits.max // 3, limits.min // 3], dtype)
    made = pyrelay.jit(written)
    assert made(x) == written(x)
    if dtype == "uint64":
        assert "host" not in str(made.code(x))


def test_a_new_text_compiles_nothing():
    @pyrelay.jit
    def distance(s, t):
        last = list(range(len(t) + 1))
        for i, c in enumerate(s):
            row = [i + 1]
            for j, d in enumerate(t):
                row.append(min(last[j] + (c != d), last[j + 1] + 1, row[j] + 1))
            last = row
        return last[-1]

    for pair in (("sitting on the old bench", "kitten on the cold beach"),
                 ("the dog and the cat are here", "the cat and the dog were there")):
        assert distance(*pair) == distance.py(*pair)
    assert distance.cache_info().compilations == 1


def test_a_long_name_of_a_choice_is_known():
    @pyrelay.jit
    def scaled(x, mode):
        if mode == "categorical_crossentropy":
            return x * 2
        if mode == "binary_cross_entropy_with_logits":
            return (x, x)
        raise ValueError(mode)

    assert scaled(1.5, "categorical_crossentropy") == 3.0
    assert scaled(1.5, "binary_cross_entropy_with_logits") == (1.5, 1.5)
    assert scaled(2.5, "categorical_crossentropy") == 5.0
    assert scaled.cache_info().compilations == 2
    with pytest.raises(ValueError, match="another name of a loss"):
        scaled(1.5, "another name of a loss")


def test_text_that_is_returned_is_the_callers():
    @pyrelay.jit
    def parts(s, k):
        return s, s[k], s[k:], s[::-1], s + "!", f"<{s[k]}>", s[k] + s[0]

    s = "\U0001f600 and \u4e2d, and others"
    assert parts(s, 7) == (s, s[7], s[7:], s[::-1], s + "!", f"<{s[7]}>", s[7] + s[0])
    with pytest.raises(IndexError, match="string index out of range"):
        parts(s, 70)


def test_chr_refuses_what_is_no_code_point():
    assert pyrelay.jit(lambda k: chr(k))(8364) == "\u20ac"
    with pytest.raises(ValueError, match="not in range"):
        pyrelay.jit(lambda k: chr(k))(-1)


def looked_for(text, item):
    try:
        return item in text
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("item", ["b", "q", 3, None, np.ones(2)])
def test_only_texts_are_looked_for_in_a_text(item):
    for text in ("abc", "abc" * 20):
        assert pyrelay.jit(looked_for)(text, item) == looked_for(text, item)


def described(text):
    counts = {}
    for word in text.lower().replace(",", " ").split():
        word = word.strip(".!?").capitalize()
        counts[word] = counts.get(word, 0) + 1
    return counts, text.title(), text.upper().rfind("THE"), "".join(c.swapcase() for c in text)


LINES = (
    "The cat, the dog, and the end.", "WHAT is it THAT we see? a cat!", "one two three four five",
)


def test_methods_of_long_texts_are_computed_by_one_program_for_all():
    compiled = pyrelay.jit(described)
    for line in LINES:
        assert compiled(line) == described(line)
    assert compiled.cache_info().compilations == 1


def test_characters_that_are_not_asciis_have_the_cases_that_python_knows():
    compiled = pyrelay.jit(described)
    line = "\xfcn\xefc\xf6de \u0391\u03a3 \u039f\u0394\u039f\u03a3, \u03b1\u03b2 words of it"
    assert compiled(line) == described(line)
    sharp = "stra\xdfe of no return"
    with pytest.raises(NotImplementedError, match="several characters, which a compiled function"):
        compiled(sharp)
    assert pyrelay.jit(lambda s: s.upper())(sharp) == sharp.upper()


def test_a_program_that_has_to_know_what_a_method_gives_knows_the_text():
    @pyrelay.jit
    def total(spec, x):
        first, last = spec.replace(" ", "").split("->")
        return np.einsum(f"{first}->{last}", x)

    for spec in ("i  j  ->  j       ", "i  j  ->  i       "):
        found = total(spec, np.arange(6.0).reshape(2, 3))
        assert found.tolist() == total.py(spec, np.arange(6.0).reshape(2, 3)).tolist()


def test_numbers_in_long_texts_are_read_by_the_program():
    def numbers(text):
        rows = [[float(part) for part in line.split(",")] for line in text.splitlines()]
        return rows, int(text[:4], 16), "2.5" in text

    compiled = pyrelay.jit(numbers)
    for text in ("1010,2.5\n-3,0.125\n", "beef,1\n2,3\n4,5.5\n", "0123456,1e3\n 7 ,-0\n1,2"):
        try:
            wanted = numbers(text)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                compiled(text)
            continue
        assert compiled(text) == wanted
    assert compiled.cache_info().compilations == 1


def test_what_an_fstring_shows_may_be_a_number_or_a_text():
    @pyrelay.jit
    def bottles(n):
        return [f"{k or 'no more'} bottle{'' if k == 1 else 's'}" + "!" * k for k in range(n)]

    for n in (0, 1, 4):
        assert bottles(n) == bottles.py(n)


@pyrelay.jit
def sought(s):
    places = ["ACGT".index(c) for c in s]
    counts = sum("banana".count(c) for c in s), sum("ACG".startswith(c) for c in s)
    return places, counts, [s.find(c, 3) for c in s], ["GATTACA".rfind(s[i]) for i in range(len(s))]


def test_characters_are_sought_in_known_texts_by_the_program():
    text = "GATTACAACCGTCAGTTAGC"
    assert sought(text) == sought.py(text)
    assert "host_value" not in str(sought.ir(text))
    with pytest.raises(ValueError, match="substring not found"):
        sought("GATTACA, and what else there is")


@pyrelay.jit
def padded(numbers):
    out = []
    for k in range(3):
        out.append("abcdefgh"[numbers[k]] if numbers[k] > 0 else "=")
    text = "".join(out)
    return text.rstrip("="), len(text), sum(c in "=" for c in text), "-".join([text, out[0]])[:4]


def test_texts_of_known_characters_and_joins_of_a_few_are_of_the_program():
    assert padded([3, 4, 0]) == padded.py([3, 4, 0]) == ("de", 3, 1, "de=-")
    assert "host_value" not in str(padded.ir([3, 4, 0]))
