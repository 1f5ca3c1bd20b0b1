"""Every construct of Python is read whole or refused, all refusals at once."""

from __future__ import annotations

import ast
import linecache
import sys

import pytest

from pyrelay.errors import UnsupportedSyntaxError, render
from pyrelay.frontend.parse import parse
from pyrelay.frontend.subset import LANGUAGE, Read, Refused
from tests.frontend.cases import CASES
from tests.frontend.relay_eval import Run

#: Base classes of `ast`, which no node is, and what Python keeps of its past.
ABSTRACT = {
    "AST", "mod", "stmt", "expr", "expr_context", "boolop", "operator", "unaryop", "cmpop",
    "excepthandler", "pattern", "type_ignore", "type_param", "slice",
    "Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice", "Suite", "AugLoad",
    "AugStore", "Param",
}
CLASSES = {
    name: cls
    for name, cls in vars(ast).items()
    if isinstance(cls, type) and issubclass(cls, ast.AST) and name not in ABSTRACT
    and cls.__module__ == "ast" and not name.startswith("_")
}

REFUSED = {
    "try": """
        def f(x):
            try:
                z = 1 / x
            except* ZeroDivisionError:
                y = -(yield x)
            finally:
                print(x)
            try:
                f(x)
            except ValueError:
                raise
            raise
        """,
    "async": """
        async def f(x):
            async with x:
                await x
            async for y in x:
                z = [w async for w in y]
        """,
    "generators": """
        def f(x):
            g = ((y := i) for i in x)
            got = -(yield g)
            for a, b in zip((i for i in x), x):
                got = 2 * (yield from a)
            return sum(i for i in x)
        """,
    "globals": """
        count = 0

        def f(x):
            global count
            count += 1
            for count in x:
                pass
            import math as count
            return count
        """,
    "definitions": """
        def f(x):
            class Local:
                def method(self):
                    yield x
            class Many:
                held = []
            return Local, Many
        """,
    "small_things": """
        def f(x):
            del x.attribute, x[0]
            match x:
                case {"k": v, **rest}:
                    return super().g
            if x:
                raise
        """,
    "one": "f = lambda x: (yield x)",
    "wide": """
        def f(größe):
            名前 = "日本語"; y = -(yield größe)
            return 名前
        """,
}


def refused(text):
    lines = text.split("\n")
    margin = min((len(s) - len(s.lstrip()) for s in lines if s.strip()), default=0)
    text = "\n".join(s[margin:] for s in lines).lstrip("\n")
    linecache.cache["model.py"] = (len(text), None, text.splitlines(True), "model.py")
    scope: dict = {}
    exec(compile(text, "model.py", "exec"), scope)
    with pytest.raises(UnsupportedSyntaxError) as caught:
        parse(scope["f"])
    return caught.value


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_lists_every_construct_with_what_to_write(name, golden):
    golden(f"errors/syntax_{name}.txt", render(refused(REFUSED[name])))


def test_refused_write_to_a_closure_variable_of_python(golden):
    text = """
        def outer():
            n = 0
            def f(x):
                nonlocal n
                for n in range(x):
                    pass
                return n
            return f
        f = outer()
        """
    golden("errors/syntax_nonlocal.txt", render(refused(text)))


def test_refusal_leaves_nothing_behind():
    error = refused(REFUSED["one"])
    assert refused(REFUSED["one"]).message == error.message


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_class_of_syntax_is_in_the_table(name):
    assert name in LANGUAGE


@pytest.mark.parametrize("name", sorted(n for n in LANGUAGE if n in CLASSES))
def test_every_field_is_read_or_said_not_to_matter(name):
    treated = LANGUAGE[name]
    if isinstance(treated, Read):
        fields = set(CLASSES[name]._fields)
        assert set(treated.fields) <= fields
        known = {*treated.fields, *treated.unread}
        assert fields <= known, f"{name}: {fields - known} would be ignored"


@pytest.mark.parametrize("name", sorted(n for n, t in LANGUAGE.items() if isinstance(t, Refused)))
def test_refusals_say_what_to_write(name):
    treated = LANGUAGE[name]
    assert treated.word
    assert treated.instead


def test_lowering_reads_every_field_the_table_says_it_reads(monkeypatch):
    """Fields are watched while the corpus is lowered; only the frontend's own frames count."""
    seen: dict[str, set[str]] = {}
    fields = {name: set(cls._fields) for name, cls in CLASSES.items()}

    def watch(name):
        def read(self, attribute):
            if attribute in fields[name]:
                code = sys._getframe(1).f_code
                if "frontend" in code.co_filename and "subset" not in code.co_filename:
                    seen.setdefault(name, set()).add(attribute)
            return object.__getattribute__(self, attribute)

        return read

    for name, cls in CLASSES.items():
        monkeypatch.setattr(cls, "__getattribute__", watch(name), raising=False)
    for function, _ in CASES:
        copied = type(function)(
            function.__code__.replace(co_name=function.__name__), function.__globals__
        )
        parse(copied)
    monkeypatch.undo()
    roots = {"Module", "Interactive", "Expression", "FunctionType", "TypeIgnore"}
    for name, treated in LANGUAGE.items():
        if isinstance(treated, Read) and name in CLASSES and name not in roots:
            # Contexts are told by place, names of patterns are checked by Python itself.
            expected = set(treated.fields)
            assert expected <= seen.get(name, set()), name


def test_generator_expressions_are_lists_where_a_call_uses_them_up():
    def f(n):
        return sum(i for i in range(n)), sorted((-i for i in range(n)), reverse=True)

    assert Run(f)(4) == (6, [0, -1, -2, -3])


def test_declared_globals_may_be_read():
    def f(n):
        global REFUSED
        return len(REFUSED) + n

    assert Run(f)(0) == len(REFUSED)
