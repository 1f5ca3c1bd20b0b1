"""Calls that do not fit the function, and the TypeErrors that tell of them."""

from __future__ import annotations

from tests.users.corpus import refuse, use


def several(a, /, b, *, c=5, d):
    return a * 100 + b * 10 + c + d


def few(a, b=1):
    return a + b


class Box:
    def __init__(self, x):
        self.x = x

    def scaled(self, k):
        return self.x * k


@use((3,))
def texts_of_wrong_calls(n):
    def inside(x, y, z):
        return x + y + z

    said = []
    try:
        several(n)
    except TypeError as error:
        said.append(str(error))
    try:
        several(n, 2)
    except TypeError as error:
        said.append(str(error))
    try:
        several(1, 2, 3, d=n)
    except TypeError as error:
        said.append(str(error))
    try:
        several(b=1, a=n, d=2)
    except TypeError as error:
        said.append(str(error))
    try:
        few(1, 2, n)
    except TypeError as error:
        said.append(str(error))
    try:
        few(1, a=n)
    except TypeError as error:
        said.append(str(error))
    try:
        few(1, scale=n)
    except TypeError as error:
        said.append(str(error))
    try:
        inside()
    except TypeError as error:
        said.append(str(error))
    try:
        (lambda u: u)(n, n)
    except TypeError as error:
        said.append(str(error))
    try:
        Box(n).scaled()
    except TypeError as error:
        said.append(str(error))
    return said


class Plain:
    pass


@use((3,))
def class_without_parameters(n):
    try:
        return Plain(n)
    except TypeError as error:
        return str(error)


@use((3,), (-1,))
def wrong_on_one_path(n):
    try:
        if n > 0:
            return few(n, n, n)
        return few(n)
    except TypeError:
        return 100


@use((0,), (2,))
def tried_in_turn(n):
    found = []
    for function in (few, several, lambda *args: len(args)):
        try:
            found.append(function(n, 1))
        except TypeError:
            found.append(-1)
    return found


@refuse((3,), "missing 1 required positional argument: 'a'", "few is defined here")
def never_caught(n):
    return few() + n
