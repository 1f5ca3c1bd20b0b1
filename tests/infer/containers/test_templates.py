"""Templates of strings, by Python's own `%` and `format`."""

# ruff: noqa: F501, F507, F522, F524, F525, UP030, UP031, UP032 -- what they say is meant

import pytest

import pyrelay
from pyrelay.infer.host import Invocation


def by_percent(xs, ns, words):
    s = ""
    for x, n, word in zip(xs, ns, words, strict=True):
        s += "%s: %d of %.2f, %5.1f%%, %-8s|%8s|" % (word, n, x, x, word, n)
        s += "%05d %+d %x %s\n" % (n, n, n * n, x)
        s += "%f" % n + "%s" % word
    return s


def by_format(xs, ns, words):
    s = ""
    for x, n, word in zip(xs, ns, words, strict=True):
        s += "{}: {} of {:.2f} {{{:>8}}}".format(word, n, x, word)
        s += "{1:.1f} {0:<6}{n:05d} {word!s}\n".format(word, x, n=n, word=word)
    return s


GIVEN = [1.5, -22.125, 3.0] * 7, [7, -1234, 0] * 7, ["fig", "", "grün"] * 7


@pytest.mark.parametrize("f", [by_percent, by_format])
def test_values_are_put_into_templates_by_the_program(f, monkeypatch):
    expected = f(*GIVEN)
    monkeypatch.setattr(Invocation, "__call__", None)
    assert pyrelay.jit(f)(*GIVEN) == expected


OTHERS = (
    lambda x: "%e" % x, lambda x: "%d" % x, lambda x: "%.3s|" % x, lambda x: "% d" % int(x),
    lambda x: "%(a)s" % {"a": x}, lambda x: "{0:.{1}f}".format(x, 2), lambda x: "%g %%" % x,
    lambda x: "{0[0]}".format((x, 1)), lambda x: "%5s" % True,
)  # fmt: skip


@pytest.mark.parametrize("f", OTHERS)
def test_other_templates_are_pythons(f):
    assert pyrelay.jit(f)(2.5) == f(2.5)


WRONG = (
    lambda x: "%d %d" % (x, ), lambda x: "%d" % (x, x), lambda x: "%d" % str(x),
    lambda x: "{} {}".format(x), lambda x: "{} {0}".format(x), lambda x: "{a}".format(b=x),
    lambda x: "%" % x,
)  # fmt: skip


@pytest.mark.parametrize("f", WRONG)
def test_what_python_refuses_is_refused(f):
    with pytest.raises((TypeError, ValueError, IndexError, KeyError)) as expected:
        f(2.5)
    with pytest.raises(expected.type) as found:
        pyrelay.jit(f)(2.5)
    assert str(found.value).startswith(str(expected.value))
