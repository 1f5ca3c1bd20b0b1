"""Functions are found where they stand, or refused with what to do."""

from __future__ import annotations

import ast
import functools
import importlib.util
import linecache
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from pyrelay.errors import SourceUnavailableError
from pyrelay.frontend import source
from pyrelay.frontend.parse import parse
from tests.frontend.relay_eval import Run


def typed_in_a_cell(text, filename, name="f", **scope):
    """Define functions as a notebook does: no file, only an entry of linecache."""
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def module(tmp_path, text, name):
    path = tmp_path / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made, path


def edited(path, text):
    """Write a file so that linecache sees the change, whatever the clock's resolution."""
    path.write_text(text, encoding="utf-8")
    later = path.stat().st_mtime + 10
    os.utime(path, (later, later))


def text_of(function):
    found = source.of(function)
    return found.span(found.node, "").text()


def identity(function):
    return function


class Holder:
    """Methods stand indented in their file."""

    __secret = 5

    def method(self, x):
        self.__y = x  # a private name
        return self.__y + self.__secret + x

    @staticmethod
    def static(x):
        return """a
        b""" + x


@identity
@functools.lru_cache(
    maxsize=5,
)
def cached(x):
    return x + 1


def test_method_is_found_and_its_private_names_are_mangled():
    assert Run(Holder.method)(Holder(), 3) == 11


def test_indented_text_keeps_its_long_strings():
    assert Run(Holder.static)("c") == Holder.static("c") == "a\n        bc"


def test_decorators_are_not_part_of_the_text_that_is_compiled():
    assert text_of(cached.__wrapped__).startswith("def cached(x):")
    assert source.of(cached.__wrapped__).text.lines[0] == "@identity"


def test_nothing_is_unwrapped():
    @functools.wraps(identity)
    def wrapper(x):
        return identity(x) + 1

    assert Run(wrapper)(1) == 2


def test_lambdas_of_one_line_are_told_apart():
    f, g, h = (lambda x: x + 1), (lambda x: x + 1 - 2), lambda x: (lambda y: x * y)
    assert [text_of(k) for k in (f, g, h)] == [
        "lambda x: x + 1", "lambda x: x + 1 - 2", "lambda x: (lambda y: x * y)",
    ]
    assert text_of(h(2)) == "lambda y: x * y"
    assert Run(h(2))(5) == 10


def test_lambda_that_returns_a_constant_is_told_from_its_neighbour():
    f, g = (lambda: 1), (lambda: 2)
    assert (Run(f)(), Run(g)()) == (1, 2)


def test_lambdas_without_columns_are_told_apart_by_their_code():
    command = (
        "from tests.frontend.test_source import two_lambdas; "
        "from tests.frontend.relay_eval import Run; "
        "print([Run(f)(3) for f in two_lambdas()])"
    )
    root = Path(__file__).parents[2]
    python = [sys.executable, "-X", "no_debug_ranges", "-B", "-c", command]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONPYCACHEPREFIX": os.devnull}
    done = subprocess.run(python, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[4, 6]\n"


def two_lambdas():
    return [lambda x: x + 1, lambda x: x * 2]


def test_lambda_over_several_lines():
    (f,) = [lambda x,
            y: x
            + y]
    assert Run(f)(1, 2) == 3


def test_columns_count_characters_not_bytes():
    def f(größe):
        return "äöü" + größe  # a comment

    name = parse(f).module.main.body.lets[0]
    assert name.span.text() == '"äöü" + größe'
    assert Run(f)("ß") == "äöüß"


def test_closure_reads_the_variables_of_its_function():
    k = 10

    def f(x):
        def inner():
            return x + k

        return inner() + k

    assert Run(f)(1) == 21
    k = 100
    assert Run(f)(1) == 201


def test_cell_of_a_notebook():
    f = typed_in_a_cell("x = 1\ndef f(a):\n    return a + 1\n", "/tmp/ipykernel_1/123.py")
    assert Run(f)(2) == 3


def test_cell_with_a_form_feed_and_strange_line_ends():
    text = "'''\x0c\u2028'''\n\n\x0c\ndef f(a):\n    return a + 1\n"
    f = typed_in_a_cell(text, "<cell with form feed>")
    assert Run(f)(2) == 3


def test_cell_that_awaits_at_the_top():
    filename, text = "<cell that awaits>", "def f(a):\n    return a + 1\nawait f\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    code = compile(text, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    function = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    assert Run(types.FunctionType(function, {}))(2) == 3


def test_two_equal_functions_of_two_files_keep_their_own_places():
    f, g = (typed_in_a_cell("def f(a):\n    return a\n", f"<cell {i}>") for i in "ab")
    assert f.__code__ == g.__code__
    assert parse(f).source.filename == "<cell a>"
    assert parse(g).source.filename == "<cell b>"


def test_parsing_again_gives_the_same_program():
    assert parse(identity) is parse(identity)


def test_future_annotations_of_the_file_do_not_disturb():
    text = "from __future__ import annotations\ndef f(a: no_such_name):\n    return a\n"
    assert Run(typed_in_a_cell(text, "<future cell>"))(2) == 2


def test_function_of_a_file_edited_since_is_refused(tmp_path):
    made, path = module(tmp_path, "def f(x):\n    return x + 1\n", "edited_module")
    edited(path, "def f(x):\n    return x - 1\n")
    with pytest.raises(SourceUnavailableError, match="has changed since the function was defined"):
        parse(made.f)


def test_constant_edited_since_is_noticed(tmp_path):
    made, path = module(tmp_path, "def f(x):\n    return x + 0.0\n", "constant_module")
    edited(path, "def f(x):\n    return x + -0.0\n")
    with pytest.raises(SourceUnavailableError):
        parse(made.f)


def test_text_read_before_the_edit_is_still_good(tmp_path):
    made, path = module(tmp_path, "def f(x):\n    return x + 1\n", "read_module")
    linecache.getlines(str(path))
    edited(path, "def f(x):\n    return x - 1\n")
    assert Run(made.f)(1) == 2


def test_stale_text_of_linecache_is_read_again(tmp_path):
    made, path = module(tmp_path, "def f(x):\n    return x + 1\n", "stale_module")
    linecache.getlines(str(path))
    edited(path, "def f(x):\n    return x - 1\n")
    made, _ = module(tmp_path, "def f(x):\n    return x - 1\n", "stale_module")
    edited(path, "def f(x):\n    return x - 1\n")
    assert Run(made.f)(1) == 0


def test_text_kept_when_the_function_was_defined_is_still_good_after_an_edit(tmp_path):
    made, path = module(tmp_path, "def f(x):\n    return x + 1\n", "kept_module")
    source.keep(made.f)
    for number in (2, 3):
        edited(path, f"def f(x):\n    return x - {number}\n")
        linecache.checkcache(str(path))
        linecache.getlines(str(path))
    assert Run(made.f)(1) == 2


def test_every_version_of_a_reloaded_file_is_kept_for_its_own_functions(tmp_path):
    functions = []
    for number in (1, 2, 3):
        text = "# line\n" * number + f"def f(x):\n    return x + {number}\n"
        edited(tmp_path / "reloaded_module.py", text)
        made, _ = module(tmp_path, text, "reloaded_module")
        source.keep(made.f)
        functions.append(made.f)
    assert [Run(f)(1) for f in functions] == [2, 3, 4]


def test_function_is_found_in_a_file_that_is_broken_elsewhere(tmp_path):
    text = "def f(x):\n    def g(y):\n        return x + y\n    return g\n"
    made, path = module(tmp_path, text, "broken_module")
    edited(path, text + "def broken(:\n")
    assert Run(made.f)(1)(2) == 3
    with pytest.raises(SourceUnavailableError):
        parse(made.f(1))  # alone, the block of a closure does not say what its names are


def test_function_of_a_removed_file_says_what_to_do(tmp_path):
    made, path = module(tmp_path, "def f(x):\n    return x\n", "removed_module")
    path.unlink()
    linecache.checkcache()
    with pytest.raises(SourceUnavailableError, match=r"ship the \.py file"):
        parse(made.f)


def test_function_made_by_exec_says_what_to_do():
    scope: dict = {}
    exec("def f(x):\n    return x\n", scope)
    with pytest.raises(SourceUnavailableError, match=r"linecache\.cache\[filename\]"):
        parse(scope["f"])


def test_function_typed_at_the_prompt_says_what_to_do():
    scope: dict = {}
    exec(compile("def f(x):\n    return x\n", "<stdin>", "exec"), scope)
    with pytest.raises(SourceUnavailableError, match="in IPython"):
        parse(scope["f"])


def test_spans_hold_the_text_of_the_function_only():
    text = parse(cached.__wrapped__).source
    assert text.lines[-1] == "    return x + 1"
    assert text.at(text.first_line + len(text.lines)) is None


def test_function_rewritten_on_import_is_taken_from_its_file():
    def f(x):
        assert x > 1, "pytest rewrites this"
        return x

    assert Run(f)(2) == 2
    assert sys.modules["_pytest.assertion.rewrite"]


def test_many_threads_parse_at_once():
    functions = [
        typed_in_a_cell(f"def f(a):\n    return a + {i}\n", f"<thread cell {i}>") for i in range(8)
    ]
    results = []

    def work():
        results.append([Run(f)(1) for f in functions])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(1, 9))] * 4


def test_a_cell_that_ipython_compiles_statement_by_statement_is_found():
    text = "import numpy as np\n\ndef f(x):\n    return np.sum(x)\n"
    name = "<cell compiled in parts>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, object] = {}
    for statement in ast.parse(text).body:
        exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    assert source.of(namespace["f"]).node.name == "f"


def _tripled(x: float) -> float:
    return 3 * x


def _carried_away(x: float) -> float:
    return _tripled(x) + 1


def test_functions_whose_file_names_got_lost_on_the_way_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """cloudpickle 3.1.3 gives every function that it carries the file name `<dynamic-code>`."""
    monkeypatch.setattr(source, "_named", {})
    arrived = []
    for function in (_carried_away, _tripled):
        code = function.__code__.replace(co_filename="<dynamic-code>")
        arrived.append(types.FunctionType(code, {}))
    with pytest.raises(SourceUnavailableError):
        source.of(arrived[0])
    names, texts = source.carried(_carried_away)
    assert texts == {}  # a file can be read there, too
    source.keep_carried((names, texts))
    for function in arrived:
        found = source.of(function)
        assert found.text.filename == __file__
        assert found.node.name == function.__name__  # type: ignore[union-attr]
    again, _ = source.carried(arrived[0])  # and from there to others
    assert again.items() <= names.items()
