"""Digits written by the program, by Python's own writing of numbers."""

import math
import random

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.host import Invocation
from pyrelay.infer.in_python import digits


def text(codes):
    return "".join(map(chr, codes))


def floats(count):
    rng = random.Random(5)
    for _ in range(count):
        yield rng.random() * 10.0 ** rng.randrange(-5, 18)
        yield -round(rng.random() * 1000, rng.randrange(6))
        yield float(rng.randrange(10 ** rng.randrange(1, 18)))
        yield 2.0 ** rng.randrange(-20, 60) * rng.randrange(1, 4)
        yield rng.randrange(2**53) / 2 ** rng.randrange(60)
    yield from (0.0, -0.0, 0.5, 1.5, 2.5, 0.125, 0.375, 1e15 + 0.5, 2.0**53, 9.995, 0.0001, 1e16)
    yield from (math.inf, -math.inf, math.nan, 9.999999999999999e-05, 5e-324, 1e308, 0.1 + 0.2)


def test_the_shortest_digits_are_pythons():
    for x in floats(2000):
        assert text(digits.shortest(x)) == repr(x)


@pytest.mark.parametrize("places", [0, 1, 3, 10, 22])
def test_fixed_places_are_rounded_as_python_rounds_them(places):
    for x in floats(200):
        for width, zeros, plus, percent in (
            (0, False, False, False), (12, True, False, True), (9, False, True, False),
        ):  # fmt: skip
            sign, fill, kind = "+" if plus else "", "0" if zeros else "", "%" if percent else "f"
            spec = f"{sign}{fill}{width or ''}.{places}{kind}"
            found = digits.fixed(x, places, width, zeros, plus, "", percent, spec)
            assert text(found) == format(x, spec), (x, spec)


@pytest.mark.parametrize("places", [0, 2, 5, 15])
def test_powers_of_ten_are_written_as_python_writes_them(places):
    for x in floats(200):
        for width, zeros, plus, general in (
            (0, False, False, False), (14, True, True, False), (0, False, False, True),
            (12, True, True, True),
        ):  # fmt: skip
            sign, fill, kind = "+" if plus else "", "0" if zeros else "", "G" if general else "E"
            spec = f"{sign}{fill}{width or ''}.{places + general}{kind}"
            found = digits.scientific(x, places, width, zeros, plus, "E", general, spec)
            assert text(found) == format(x, spec), (x, spec)


def powers(xs):
    return [f"{x:g}|{x:.3e}|{x:>12.2G}" + "|%+.1e|%-9g" % (x, x) for x in xs]  # noqa: UP031


def test_powers_of_ten_in_lists_of_texts():
    xs = list(floats(10))
    assert pyrelay.jit(powers)(xs) == powers(xs)
    assert pyrelay.jit(powers)([1, -25, 10**7]) == powers([1, -25, 10**7])


def lines(xs):
    s = ""
    for v in xs:
        s += str(v) + f"|{v:.3f}|{v:8.2f}|{v:+.1f}|{v:08.1f}|{v!s}|{v:.0f}|{v:7.1%}|{v!s:>9}|{v}\n"
    return s


def numbers(xs):
    s = ""
    for v in xs:
        s += f"{v}|{v:5d}|{v:#010x}|{v:b}|{v!r}|{v!s:6}|" + str(v)
    return s


def test_texts_that_a_loop_lengthens_by_numbers():
    xs = list(floats(10))
    compiled = pyrelay.jit(lines)
    assert compiled(xs) == lines(xs)
    assert compiled(xs[:20]) == lines(xs[:20])  # the program of any number of them
    assert compiled.cache_info().signatures == 1
    assert pyrelay.jit(lines)(np.array(xs)) == lines(np.array(xs))
    ints = [0, 7, -7, 10, 99, 100, 2**63 - 1, -(2**63), 123456789]
    assert pyrelay.jit(numbers)(ints) == numbers(ints)


def test_a_text_of_many_pieces_takes_no_program_of_its_own():
    # it was unrolled, and joined more deeply than Python recurses
    xs = [0.5 * k for k in range(700)]
    assert pyrelay.jit(lines)(xs) == lines(xs)


FORMATS = (
    ">10", "<10", "^11", "*^9", "#>8.2f", "<8.2f", "+.1f", ".1%", "10.3f", "12,.2f", ",", "d",
    "05d", "+d", "x", "#010b", "s", "0>5",
)


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize(
    "items", [[1.5, -1234567.25, 0.0], [7, -1234567, 0], ["fig", "", "grün", "elderberry tree"]],
    ids=["floats", "ints", "texts"],
)
def test_formats_are_written_without_python(spec, items, monkeypatch):
    items = items * 7
    try:
        expected = "".join(f"{item:{spec}};" for item in items)
    except ValueError:
        return
    if spec == "," and isinstance(items[0], float):
        return  # Python is asked

    def lengthen(items, spec):
        s = ""
        for item in items:
            s += format(item, spec) + ";"
        return s

    monkeypatch.setattr(Invocation, "__call__", None)
    assert pyrelay.jit(lengthen)(items, spec) == expected
