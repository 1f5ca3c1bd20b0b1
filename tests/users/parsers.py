"""Texts that are taken apart into tokens and trees, and these computed."""

from __future__ import annotations

from dataclasses import dataclass

from tests.users.corpus import use


@dataclass
class Number:
    value: float


@dataclass
class Name:
    name: str


@dataclass
class Pair:
    sign: str
    left: object
    right: object


class Parser:
    def __init__(self, text):
        self.tokens, self.at = [], 0
        i = 0
        while i < len(text):
            begin = i
            if text[i].isdigit():
                while i < len(text) and (text[i].isdigit() or text[i] == "."):
                    i += 1
                self.tokens.append(("number", text[begin:i]))
            elif text[i].isalpha():
                while i < len(text) and text[i].isalnum():
                    i += 1
                self.tokens.append(("name", text[begin:i]))
            else:
                i += 1
                if text[begin] != " ":
                    self.tokens.append(("sign", text[begin]))
        self.tokens.append(("end", ""))

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def total(self):
        left = self.product()
        while self.tokens[self.at][1] in ("+", "-"):
            left = Pair(self.take()[1], left, self.product())
        return left

    def product(self):
        left = self.single()
        while self.tokens[self.at][1] in ("*", "/"):
            left = Pair(self.take()[1], left, self.single())
        return left

    def single(self):
        kind, text = self.take()
        if kind == "number":
            return Number(float(text))
        if kind == "name":
            return Name(text)
        if text == "(":
            inner = self.total()
            if self.take()[1] == ")":
                return inner
        raise SyntaxError("unexpected " + text)


def computed(node, names):
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        return names[node.name]
    left, right = computed(node.left, names), computed(node.right, names)
    if node.sign == "+":
        return left + right
    if node.sign == "-":
        return left - right
    return left * right if node.sign == "*" else left / right


NAMES = {"x": 1.5, "y": 2.0}


@use(("3 + 4*(2 - x) / y + 10", NAMES), ("(1+2", NAMES), ("x * z", NAMES), long=True)
def formula(text, names):
    return computed(Parser(text).total(), names)


class Cursor:
    def __init__(self, text):
        self.text, self.place = text, 0

    def peek(self):
        return self.text[self.place] if self.place < len(self.text) else ""

    def take(self):
        c = self.peek()
        self.place += 1
        return c

    def skip(self):
        while self.peek() == " ":
            self.place += 1


def _value(cursor):
    cursor.skip()
    if cursor.peek() == "[":
        cursor.take()
        items = []
        cursor.skip()
        if cursor.peek() == "]":
            cursor.take()
            return items
        while True:
            items.append(_value(cursor))
            cursor.skip()
            if cursor.take() == "]":
                return items
    digits = ""
    while cursor.peek() and cursor.peek() in "-0123456789":
        digits += cursor.take()
    return int(digits)


@use(("[1, [22, -3], [], [[ [4]] ] ]",), ("17",), ("[]",))
def lists_and_numbers_by_a_cursor(text):
    return _value(Cursor(text))


def _computed(tree):
    if isinstance(tree, list):
        sign, *parts = tree
        values = [_computed(part) for part in parts]
        if sign == "+":
            return sum(values)
        return -values[0] if len(values) == 1 else values[0] - sum(values[1:])
    return tree


@use(("(+ 1 (- 2 30) (- 4))",), ("12",), long=True)
def lists_of_signs_and_numbers(text):
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def read():
        token = tokens.pop(0)
        if token == "(":
            parts = []
            while tokens[0] != ")":
                parts.append(read())
            tokens.pop(0)
            return parts
        return int(token) if token.isdigit() else token

    return _computed(read())
