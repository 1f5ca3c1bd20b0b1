"""A user's traceback ends in the user's code."""

from __future__ import annotations

import traceback

from pyrelay import config, errors
from pyrelay.errors import InvariantError, ShapeError, SourceText, Span, runtime_error
from pyrelay.tracebacks import trimmed, user_facing

SPAN = Span(SourceText("model.py", ("x[5]",)), 1, 0, 1, 4)


def fail_inside(error: Exception) -> None:
    """Raise `error` from a frame whose file lies in the package."""
    code = compile("def inner(error):\n    raise error\n", errors.__file__, "exec")
    scope: dict[str, object] = {}
    exec(code, scope)
    inner = scope["inner"]
    assert callable(inner)
    inner(error)


def frames_shown(error: Exception) -> list[str]:
    try:
        user_facing(fail_inside)(error)
    except Exception as caught:
        return [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
    return []


def test_frames_of_pyrelay_are_hidden_from_the_users_traceback() -> None:
    assert frames_shown(ShapeError("no.")) == ["frames_shown", "call", "fail_inside"]
    assert "inner" not in frames_shown(runtime_error(ValueError, "no", span=SPAN))


def test_all_frames_show_on_request_and_for_faults_of_pyrelay() -> None:
    with config.override(traceback="full"):
        assert frames_shown(ShapeError("no."))[-1] == "inner"
    assert frames_shown(InvariantError("no."))[-1] == "inner"
    assert frames_shown(KeyError("a bug"))[-1] == "inner"


def test_trimming_returns_the_same_exception() -> None:
    error = ShapeError("no.")
    assert trimmed(error) is error
