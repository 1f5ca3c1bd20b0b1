"""Random control flow does what Python does."""

from __future__ import annotations

import itertools
import linecache

from hypothesis import HealthCheck, given, reject, settings

from tests.frontend.cases import Log
from tests.frontend.random_programs import functions
from tests.frontend.relay_eval import Run

_numbers = itertools.count()


def defined(text: str):
    """The function `program` of a text, with its source where linecache finds it."""
    filename = f"<random program {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict = {}
    exec(compile(text, filename, "exec"), scope)
    return scope["program"]


def outcome(program, n, a):
    log = Log()
    try:
        result = "value", repr(program(n, a, log))
    except NameError:
        result = "error", NameError
    except Exception as error:
        result = "error", type(error), repr(error.args)
    try:
        return result, repr(log.said)
    except ValueError:  # an int of more digits than Python shows
        reject()


def compare(text: str) -> None:
    try:
        program = defined(text)
    except SyntaxError:
        return  # names that are parameters and nonlocal, and the like
    run = Run(program)
    for n, a in itertools.product((0, 1, 4), (0, 2)):
        assert outcome(run, n, a) == outcome(program, n, a), (n, a)
    linecache.cache.pop(program.__code__.co_filename)


@given(functions(captures=False))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_control_flow_does_what_python_does(text):
    compare(text)


@given(functions(captures=True))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_captured_variables_do_what_python_does(text):
    compare(text)
