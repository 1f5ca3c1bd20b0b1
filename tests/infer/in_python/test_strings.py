"""Methods of strings in plain Python: what they give is what the methods of `str` give."""

from __future__ import annotations

import itertools

import pytest

import pyrelay
from pyrelay import config
from pyrelay.infer.host import Invocation
from pyrelay.infer.in_python import strings

STRINGS = (
    "", " ", "a", "abcabcab", "  a b\t c  ", "aaaa", "aXbX", "7\u0660", "\n\u3000x\u2028", "-12",
    "it's ONE\r\nand\n\rTwo\n", "stra\xdfe \u01c5", "\u01c5", "\u039f\u03a3 b",
)
PARTS = ("", "a", "ab", "aa", "X", " ", "abcabcabc")
BOUNDS = (-20, -3, -1, 0, 2, 20)
PLACES = [
    (part, *bounds) for part in PARTS
    for bounds in ((), *((b,) for b in BOUNDS), *itertools.product(BOUNDS, BOUNDS))
]
SINGLE = [(part,) for part in PARTS]
SPLITS = [(), *itertools.product((None, "a", " ", "ab"), (-2, -1, 0, 1, 2, 9))]
ARGUMENTS = {
    **dict.fromkeys(("rfind", "rindex"), PLACES),
    **{name: [(width, *rest) for width in (-1, 3, 8, 11) for rest in ((), ("*",))]
       for name in ("ljust", "rjust", "center")},
    **dict.fromkeys(("removeprefix", "removesuffix", "rpartition"), SINGLE),
    "zfill": [(width,) for width in (-1, 3, 8)],
    "replace": [
        (part, new, *count) for part in PARTS for new in ("", "a", "xyz")
        for count in ((), (-2,), (0,), (1,), (3,))
    ],
    **dict.fromkeys(("split", "rsplit"), SPLITS),
    "partition": SINGLE, "find": PLACES, "index": PLACES,
    "startswith": SINGLE, "endswith": SINGLE, "count": SINGLE,
    **{name: [(), (None,), *SINGLE] for name in ("strip", "lstrip", "rstrip")},
}


def outcome(method, *args):
    try:
        return method(*args)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", strings.METHODS)
def test_methods_are_pythons(name):
    for string, args in itertools.product(STRINGS, ARGUMENTS.get(name, [()])):
        expected = outcome(getattr(str, name), string, *args)
        found = outcome(strings.METHODS[name], string, *args)
        assert (list(found) == list(expected) if "split" in name else found == expected), (
            string, args, found,
        )


@pytest.mark.parametrize("string", [
    *STRINGS, "it's", 'so "it" is', "'\"", "a\\b", "\t\r\n", "\x00", "\x7f", "\xe9",
])
def test_quotes_are_pythons(string):
    assert "".join(map(chr, strings.quoted(string))) == repr(string)


TABLE = str.maketrans("abc", "xyz", "d")
NUMBERS = {97: 98, 98: 0x20ac}


def translations(words):
    spelled = [word.translate({97: "<a>", 98: None, 0x20ac: 69}) for word in words]
    return spelled, [word.translate(TABLE) + word.translate(NUMBERS) for word in words]


def written_again(words):
    return [f"{word!r:>9}|{word!r}" for word in words], [word.rsplit(" ", 1)[-1] for word in words]


def test_words_are_written_without_python(monkeypatch):
    words = ["abcd", "it's", "", "so \"a\" b", "a \u20acb \\"]
    assert pyrelay.jit(translations)(words) == translations(words)
    assert pyrelay.jit(written_again)(words) == written_again(words)
    plain = [word for word in words if word.isascii()]
    compiled = [pyrelay.jit(f) for f in (translations, written_again)]
    monkeypatch.setattr(Invocation, "__call__", None)
    assert [f(plain) for f in compiled] == [f(plain) for f in (translations, written_again)]


def test_what_is_left_by_split_keeps_its_spaces():
    @pyrelay.jit
    def rest(n):
        line = ""
        for i in range(n):
            line += " " + str(i) + "  "
        return line.split(None, 1)[1], line.split(maxsplit=1)[1], line.find("", 0, -100)

    assert rest(5) == rest.py(5)


PREFIXES = ("ab", "cd")


def test_one_of_several_prefixes():
    @pyrelay.jit
    def begins(n):
        line = ""
        for i in range(n):
            line += "ab" + str(i)
        return line.startswith(PREFIXES), line.endswith(("b4", "x")), line.startswith(("b", "z"))

    assert begins(5) == (True, True, False)


@pytest.mark.parametrize(("string", "sep"), [(" one two  three " * 2, None), ("a,,b," * 5, ",")])
def test_a_string_is_taken_apart_by_one_loop(string, sep):
    """There was a round of the program, and a list that grew, for each part."""
    def apart(text):
        return text.split(sep)

    compiled = pyrelay.jit(apart)
    with config.override(interpret=True):
        assert compiled(string) == string.split(sep)
        assert "slice_update" not in compiled.ir(string)
