"""The shape of parsed programs: what is carried, joined and checked, where spans point."""

from __future__ import annotations

import linecache

import pytest

from pyrelay.frontend.parse import parse
from pyrelay.ir.nodes import PY_KINDS, UNREAD, UNSET, Const, If, Loop, PyCall
from pyrelay.ir.verify import verify
from pyrelay.ir.walk import nested_lets
from tests.frontend.cases import CASES
from tests.frontend.relay_eval import Run


def loops(function):
    return [let.rhs for let in nested_lets(parse(function).module.main.body)
            if isinstance(let.rhs, Loop)]


def calls(function, kind):
    return [let for let in nested_lets(parse(function).module.main.body)
            if isinstance(let.rhs, PyCall) and let.rhs.kind == kind]


def choices(function):
    return [let for let in nested_lets(parse(function).module.main.body)
            if isinstance(let.rhs, If)]


def names(variables):
    return [v.name for v in variables]


def written(text, name="f"):
    filename = f"<written {hash(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict = {}
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def test_loop_carries_what_is_live_and_nothing_else():
    def f(n):
        total, unused = 0, 1
        for i in range(n):
            temporary = i * 2
            total += temporary
            unused = temporary  # noqa: F841
        return total

    (loop,) = loops(f)
    assert names(loop.carried) == ["total"]
    assert not loop.exits


def test_variable_of_for_is_carried_only_if_read_behind():
    def f(n):
        for i in range(n):  # noqa: B007
            pass
        return i

    (loop,) = loops(f)
    assert names(loop.carried) == ["i"]
    assert loop.init[0].value is UNSET
    assert calls(f, "bound")


def test_first_value_that_nobody_reads_is_unread_not_unset():
    def f(n):
        while True:
            x = n * 2
            n += 1
            if x > 10:
                break
        return x

    (loop,) = loops(f)
    init = dict(zip(names(loop.carried), loop.init, strict=True))
    assert init["x"].value is UNREAD
    assert not calls(f, "bound")


def test_walrus_of_a_test_is_handed_to_the_body():
    def f(res, x, tol):
        while (r := res(x)) > tol:
            x = x - r
        return x

    (loop,) = loops(f)
    assert names(loop.handed) == ["r"]
    assert names(loop.carried) == ["x"]


def test_walrus_of_a_test_that_is_read_behind_moves_the_test_into_the_body():
    def f(res, x, tol):
        while (r := res(x)) > tol:
            x = x - r
        return r

    (loop,) = loops(f)
    assert loop.test is None
    assert loop.exits
    assert names(loop.carried) == ["x", "r"]


def test_guards_that_raise_do_not_nest_what_follows():
    def f(x):
        if x < 0:
            raise ValueError
        if x > 9:
            raise KeyError
        assert x != 5
        return x

    top = parse(f).module.main.body
    assert [len(let.rhs.then.lets) + len(let.rhs.orelse.lets) for let in top.lets
            if isinstance(let.rhs, If)] == [2, 2, 1]


def test_early_returns_duplicate_no_code():
    def f(x, log):
        if x > 1:
            if x > 2:
                return 1
            log("a")
        elif x < -1:
            if x < -2:
                return 2
            log("b")
        log("once")
        return 3

    assert sum(let.rhs.args[1].value == "once" for let in calls(f, "call")) == 1


def test_branch_outputs_are_what_differs():
    def f(c, x):
        y = z = 1
        if c:
            y = x
            z = 1
            w = x  # noqa: F841
        return y, z

    (choice,) = choices(f)
    assert names(choice.outs) == ["y", "z"]


def test_tuple_assignment_makes_no_tuple():
    def f(a, b):
        a, b = b, a
        return a - b

    assert not calls(f, "tuple")
    assert not calls(f, "unpack")


def test_elements_evaluate_before_they_are_stored():
    def f(x, i):
        x[i], i = i, x[i]
        return i

    kinds = [let.rhs.kind for let in parse(f).module.main.body.lets]
    assert kinds == ["item", "set_item"]


def test_captured_variables_live_in_cells_and_others_do_not():
    def f(a, b):
        c = a + b

        def g(d=b):
            return a + c + d

        return g

    module = parse(f).module
    inner = next(fn for name, fn in module.functions.items() if name.endswith(".g"))
    assert inner.cells == ("a", "c")
    assert [p.name for p in inner.signature] == ["d"]
    assert len(inner.params) == 3
    assert names(inner.params) == ["d", "a", "c"]
    assert not any(let.rhs.kind == "bound" for let in inner.body.lets)


def test_functions_are_named_after_where_they_stand():
    def f(x):
        def g():
            return lambda: x

        def h():
            def g():
                return x

            return g

        if x:
            def g():
                return h

        return g, h, lambda: 1

    assert list(parse(f).module.functions) == [
        "f", "f.g", "f.h", "f.g2", "f.<lambda>1", "f.g.<lambda>2", "f.h.g",
    ]


def test_signature_says_how_arguments_bind():
    def f(a, b=1, /, c=2, *d, e, g=3, **h):
        return a

    assert [(p.name, p.kind, p.has_default) for p in parse(f).module.main.signature] == [
        ("a", "positional_only", False), ("b", "positional_only", True),
        ("c", "positional_or_keyword", True), ("d", "var_positional", False),
        ("e", "keyword_only", False), ("g", "keyword_only", True), ("h", "var_keyword", False),
    ]


def test_any_and_all_are_searches_only_while_the_names_are_pythons():
    def f(x):
        return any(y > 1 for y in x)

    (loop,) = loops(f)
    assert loop.exits
    assert calls(f, "expect")
    g = written("def any(x):\n    return 5\ndef f(x):\n    return any(y > 1 for y in x)\n")
    assert not calls(g, "expect")
    assert Run(g)([1]) == 5


@pytest.mark.parametrize("function", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_programs_are_well_formed(function):
    verify(parse(function).module, "parse")
    for fn in parse(function).module.functions.values():
        (result,) = fn.body.results
        assert result is not None
        for let in nested_lets(fn.body):
            rhs = let.rhs
            assert let.span.text(), rhs
            inside = [*rhs.carried, *rhs.handed, rhs.item] if isinstance(rhs, Loop) else []
            assert all(v.span is not None for v in [*let.outs, *inside] if v is not None)
            if isinstance(rhs, PyCall):
                assert rhs.kind in PY_KINDS
                assert not any(isinstance(a, Const) and a.value is UNREAD for a in rhs.args)


def test_spans_cover_their_expressions():
    def f(x, y):
        z = (x.real + 2) * y[0:1]
        if z > 1:
            return sum(
                [x, y])
        for i in x:
            x -= i
        return z

    texts = [let.span.text() for let in nested_lets(parse(f).module.main.body)]
    for text in (
        "x.real", "x.real + 2", "0:1", "y[0:1]", "(x.real + 2) * y[0:1]", "z > 1", "if z > 1",
        "sum(\n                [x, y])", "[x, y]", "for i in x", "x -= i",
    ):
        assert text in texts
    assert parse(f).module.main.span.text() == "def f(x, y):"
    assert {let.span.function for let in nested_lets(parse(f).module.main.body)} == {"f"}


@pytest.mark.parametrize(
    "expression",
    ["+".join(["a"] * 1500), "-" * 1500 + "a", "a" + ".real" * 1500, "a" + "[0:1]" * 1500],
    ids=["sum", "signs", "attributes", "subscripts"],
)
def test_deep_expressions_do_not_meet_the_recursion_limit(expression):
    f = written(f"def f(a):\n    return {expression}\n")
    assert len(parse(f).module.main.body.lets) >= 1499


def test_long_chains_of_elif_do_not_meet_the_recursion_limit():
    arms = "".join(f"    elif a == {i}:\n        x = {i}\n" for i in range(1, 900))
    f = written(f"def f(a):\n    if a == 0:\n        x = 0\n{arms}    return x\n")
    assert len(choices(f)) == 900


def test_long_chains_of_returns_do_not_meet_the_recursion_limit():
    arms = "".join(f"    if a == {i}:\n        return {i}\n" for i in range(2000))
    f = written(f"def f(a):\n{arms}    return a\n")
    assert len(choices(f)) == 2000


def test_long_conditions_and_conjunctions():
    words = " and ".join(f"a > {i}" for i in range(1500))
    f = written(f"def f(a):\n    if {words}:\n        return 1\n    return {words}\n")
    assert len(choices(f)) == 2 * 1499 + 1


def test_nested_loops_take_time_that_grows_with_their_number():
    depth = 18
    lines = ["def f(n):", "    s = 0"]
    for i in range(depth):
        lines.append("    " * (i + 1) + f"for i{i} in range(n):")
        lines.append("    " * (i + 2) + f"s += i{i}")
    lines.append("    return s")
    f = written("\n".join(lines) + "\n")
    assert len(loops(f)) == depth
