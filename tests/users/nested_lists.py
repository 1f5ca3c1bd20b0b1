"""Lists in lists as deep as the input has brackets: parsers, evaluators, comparisons of them."""

from __future__ import annotations

from tests.users.corpus import use


def nested(text, i=0):
    """The list of ints that starts at a place of a text, and the place behind it."""
    if text[i] == "[":
        out = []
        i += 1
        while text[i] != "]":
            if text[i] == ",":
                i += 1
            value, i = nested(text, i)
            out.append(value)
        return out, i + 1
    j = i
    while text[j].isdigit():
        j += 1
    return int(text[i:j]), j


@use(("[1,[2,33],[],[[4],5]]",), ("[]",), long=True)
def lists_read_from_a_text(text):
    return nested(text)[0]


@use(("[1,[2,33],[],[[4],5]]",), long=True)
def sum_depth_and_leaves(text):
    def total(v):
        return sum(total(x) for x in v) if isinstance(v, list) else v

    def depth(v):
        return 1 + max([depth(x) for x in v], default=0) if isinstance(v, list) else 0

    def leaves(v):
        out = []
        for x in v:
            if isinstance(x, list):
                out += leaves(x)
            else:
                out.append(x)
        return out

    tree = nested(text)[0]
    return total(tree), depth(tree), leaves(tree), len(tree)


@use(("[1,[2,33],[]]",), long=True)
def made_anew_and_turned(text):
    def doubled(v):
        return [doubled(x) for x in v] if isinstance(v, list) else v * 2

    def turned(v):
        return [turned(x) for x in v[::-1]] if isinstance(v, list) else v

    tree = nested(text)[0]
    return doubled(tree), turned(tree)


@use(("[1,[2],3]", "[1,[2,[3]]]"), ("[[4,4],4]", "[[4,4],4]"), ("[9]", "[[8]]"), long=True)
def order_of_packets(left, right):
    def compare(a, b):
        if isinstance(a, int) and isinstance(b, int):
            return (a > b) - (a < b)
        if isinstance(a, int):
            return compare([a], b)
        if isinstance(b, int):
            return compare(a, [b])
        for x, y in zip(a, b, strict=False):
            c = compare(x, y)
            if c != 0:
                return c
        return (len(a) > len(b)) - (len(a) < len(b))

    return compare(nested(left)[0], nested(right)[0])


@use(("()(()(()))()((()))(())",), long=True)
def lists_in_order(text):
    def read(i):
        out = []
        while i < len(text) and text[i] != ")":
            if text[i] == "(":
                inner, i = read(i + 1)
                out.append(inner)
            else:
                i += 1
        return out, i + 1

    trees = read(0)[0]
    trees.sort()
    return trees, trees[0] < trees[-1], trees[1] >= trees[2]


def expression(tokens, i=0):
    if tokens[i] == "(":
        out = []
        i += 1
        while tokens[i] != ")":
            node, i = expression(tokens, i)
            out.append(node)
        return out, i + 1
    return tokens[i], i + 1


def spaced(text):
    return text.replace("(", " ( ").replace(")", " ) ").split()


@use(("(+ 1 (* 2 3) (- 10 4))",), long=True)
def value_of_an_expression(text):
    def value(node):
        if isinstance(node, str):
            return int(node)
        args = [value(a) for a in node[1:]]
        if node[0] == "+":
            return sum(args)
        if node[0] == "*":
            product = 1
            for a in args:
                product *= a
            return product
        return args[0] - args[1]

    return value(expression(spaced(text))[0])


@use(("(define x (+ 1 2))",), long=True)
def expression_of_words_and_numbers(text):
    def read(tokens):
        token = tokens.pop(0)
        if token == "(":
            out = []
            while tokens[0] != ")":
                out.append(read(tokens))
            tokens.pop(0)
            return out
        try:
            return int(token)
        except ValueError:
            return token

    return read(spaced(text))


@use(("(begin (define a 3) (if (< a 4) (* a (+ a 1)) 7))",), long=True)
def interpreter_of_lists(text):
    variables = {}

    def value(x):
        if isinstance(x, str):
            return int(x) if x.isdigit() else variables[x]
        if x[0] == "define":
            variables[x[1]] = value(x[2])
            return 0
        if x[0] == "if":
            return value(x[2]) if value(x[1]) else value(x[3])
        if x[0] == "begin":
            found = 0
            for each in x[1:]:
                found = value(each)
            return found
        a, b = value(x[1]), value(x[2])
        if x[0] == "+":
            return a + b
        if x[0] == "*":
            return a * b
        return int(a < b)

    return value(expression(spaced(text))[0])


@use((0,), (3,), long=True)
def nested_without_end(n):
    return [] if n == 0 else [nested_without_end(n - 1)]


@use((5,), long=True)
def halves(n):
    return n if n <= 1 else [halves(n // 2), halves(n - n // 2)]


@use(("2*(3+4)-10/5" + "+1" * 40,), long=True)
def syntax_tree_of_tuples(text):
    pos = 0

    def expr():
        nonlocal pos
        node = term()
        while pos < len(text) and text[pos] in "+-":
            op = text[pos]
            pos += 1
            node = (op, node, term())
        return node

    def term():
        nonlocal pos
        node = atom()
        while pos < len(text) and text[pos] in "*/":
            op = text[pos]
            pos += 1
            node = (op, node, atom())
        return node

    def atom():
        nonlocal pos
        if text[pos] == "(":
            pos += 1
            node = expr()
            pos += 1
            return node
        n = 0
        while pos < len(text) and text[pos].isdigit():
            n = n * 10 + int(text[pos])
            pos += 1
        return ("num", n, None)

    def value(node):
        op, a, b = node
        if op == "num":
            return a
        x, y = value(a), value(b)
        if op == "+":
            return x + y
        if op == "-":
            return x - y
        return x * y if op == "*" else x // y

    return value(expr())


@use((3,), (5,), long=True)
def towers(n):
    pegs = [list(range(n, 0, -1)), [], []]

    def move(k, a, b, c):
        if k == 0:
            return
        move(k - 1, a, c, b)
        pegs[c].append(pegs[a].pop())
        move(k - 1, b, a, c)

    move(n, 0, 1, 2)
    return pegs


class Number:
    def __init__(self, value):
        self.value = value


class Several:
    def __init__(self):
        self.items = []


@use(("[1,[2,33],[],[[4],5]]",), long=True)
def objects_of_two_classes_in_a_list(text):
    def read(i):
        if text[i] == "[":
            out = Several()
            i += 1
            while text[i] != "]":
                if text[i] == ",":
                    i += 1
                value, i = read(i)
                out.items.append(value)
            return out, i + 1
        j = i
        while text[j].isdigit():
            j += 1
        return Number(int(text[i:j])), j

    def total(v):
        if isinstance(v, Number):
            return v.value
        found = 0
        for x in v.items:
            found += total(x)
        return found

    return total(read(0)[0])


@use((4,), (1,))
def rows_cut_out(n):
    rows = [[i] * i for i in range(n)][1:]
    turned = [[i, i + 1] for i in range(n)][::-1]
    for row in rows:
        row.append(5)
    turned[0].append(len(rows))
    return rows, turned


@use(([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), long=True)
def round_by_round(rows):
    found = []
    while rows:
        found += rows.pop(0)
        rows = [list(row) for row in zip(*rows)][::-1]
    return found
