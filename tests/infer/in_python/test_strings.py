"""Methods of strings in plain Python: what they give is what the methods of `str` give."""

from __future__ import annotations

import itertools

import pytest

import pyrelay
from pyrelay import config
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
    "split": [(), *itertools.product((None, "a", " ", "ab"), (-2, -1, 0, 1, 2, 9))],
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
        assert (list(found) == list(expected) if name == "split" else found == expected), (
            string, args, found,
        )


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
