"""Numbers read from texts, by Python's own reading of them."""

import random

import pytest

import pyrelay
from pyrelay.infer.in_python import numbers_in_texts

NUMBERS = (
    "12", " -7 ", "+0", "zz", "1_000", "", "-", "٣", "123456789012345678", "1234567890123456789",
    "ff", "0x1f", "3.25", "-.5", "2.", ".", "1e3", "nan", "0.1", "123456.789012345", "-0",
    "9007199254740993", "4\n", "1.2.3", "1e", "e5", "2E+07", "-1.5e-3", "1e-400", "1e22", "1e23",
    "9007199254740993e0", "9007199254740993e1", ".e1", "1e+", "0.00000000000000000000012", "0e9999",
    "0XfF", "0b101", "0o17", "0x", "-0x1F", "0x_1", "0x-1", "1" * 62, "1" * 63, "7" * 20, "f" * 15,
    "x1", "1x", "N/A", "inf", "+-1", "12-3", "a_b",
)


def outcome(read, *args):
    try:
        found = read(*args)
    except ValueError as error:
        found = str(error)
    return type(found), repr(found)


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_read_as_python_reads_them(text):
    assert outcome(numbers_in_texts.real, text) == outcome(float, text)
    for base in (2, 8, 10, 16, 36):
        assert outcome(numbers_in_texts.whole, text, base) == outcome(int, text, base)


def test_floats_are_rounded_once():
    rng = random.Random(3)
    texts = [repr(rng.random() * 10.0 ** rng.randrange(-6, 7)) for _ in range(500)]
    texts += [f"{rng.randrange(10**18)}e-{rng.randrange(21)}" for _ in range(500)]
    # the middle of two floats, where the even one is taken, and what lies beside it
    for _ in range(200):
        middle = (2 * rng.randrange(2**52, 2**53) + 1) * 5
        texts += [f"{middle + k}e-1" for k in (-1, 0, 1)]

    @pyrelay.jit
    def read(words):
        return [float(word) for word in words]

    assert read(texts) == [float(text) for text in texts]
    assert all(numbers_in_texts.real(text) == float(text) for text in texts)


def test_texts_of_many_digits_and_exponents_are_read_without_python(monkeypatch):
    monkeypatch.setattr(numbers_in_texts, "real_of_python", None)
    for text in ("0.1234567890123456", "1e-5", "000000000000000000001.5", "6.02e22"):
        assert numbers_in_texts.real(text) == float(text)


def test_what_is_surely_no_number_raises_without_python(monkeypatch):
    monkeypatch.setattr(numbers_in_texts, "whole_of_python", None)
    monkeypatch.setattr(numbers_in_texts, "real_of_python", None)
    for text in ("", "x1", "1.5", "12-3", "one"):
        assert outcome(numbers_in_texts.whole, text, 10) == outcome(int, text)
    for text in ("", "x1", "#", "one"):
        assert outcome(numbers_in_texts.real, text) == outcome(float, text)


def test_those_that_are_no_numbers_are_told_apart():
    def sorted_out(words):
        whole, real, left = 0, 0.0, []
        for word in words:
            try:
                whole += int(word)
            except ValueError:
                try:
                    real += float(word)
                except ValueError as error:
                    left.append(str(error))
        return whole, real, left

    words = ["12", "2.5", "abc", "-7", "1_0", "", "inf", "N/A", "x'y"] * 3
    assert pyrelay.jit(sorted_out)(words) == sorted_out(words)
