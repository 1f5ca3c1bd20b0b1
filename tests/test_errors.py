"""The layout of messages, and what a program that catches them can rely on."""

from __future__ import annotations

import io
import pickle
import sys
import traceback
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

import pyrelay
from pyrelay import errors
from pyrelay.errors import (
    PyrelayError,
    ShapeError,
    SourceText,
    Span,
    UnsupportedSyntaxError,
    locate,
    render,
    runtime_error,
)

MODEL = SourceText(
    "model.py",
    (
        "def loss(x, w, c):",
        "    h = tanh(x * w + c)",
        "\tif 名前 > x:",
        "        return total(",
        "            h,",
        "",
        "            x)",
    ),
    first_line=11,
)
TRAIN = SourceText("train.py", ("step(x, w)",), first_line=40)
X = Span(MODEL, 12, 13, 12, 14, "loss")
W = Span(MODEL, 12, 17, 12, 18, "loss")
CALL = Span(TRAIN, 40, 0, 40, 10)


def family() -> list[type[PyrelayError]]:
    members = (getattr(errors, name) for name in errors.__all__)
    return [m for m in members if isinstance(m, type) and issubclass(m, PyrelayError)]


def lines(text: str) -> list[str]:
    return text.split("\n")


def test_a_message_has_headline_excerpt_note_hint_and_callers() -> None:
    error = ShapeError(
        "'*' cannot combine f32[4, 3] and f32[4].",
        span=X,
        label="f32[4, 3]",
        related=[(W, "f32[4]")],
        notes=["shapes align from the right; 3 and 4 differ in the last place."],
        hints=["write 'w[:, None]' to align it with the first axis."],
        calls=[(CALL, "step(x: f32[4, 3], w: f32[4])")],
    )
    assert render(error) == (
        "pyrelay.ShapeError: '*' cannot combine f32[4, 3] and f32[4].\n"
        '  File "model.py", line 12, in loss\n'
        "  12 |     h = tanh(x * w + c)\n"
        "     |              ^ f32[4, 3]\n"
        "     |                  - f32[4]\n"
        "  Note: shapes align from the right; 3 and 4 differ in the last place.\n"
        "  Hint: write 'w[:, None]' to align it with the first axis.\n"
        "  Called from train.py, line 40: step(x: f32[4, 3], w: f32[4])"
    )


@pytest.mark.parametrize("kind", family(), ids=lambda kind: kind.__name__)
def test_a_traceback_ends_with_the_rendered_error(kind: type[PyrelayError]) -> None:
    error = kind("it is wrong.", span=X, label="here", hints=["do otherwise."])
    with pytest.raises(kind) as caught:
        raise error
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.rstrip("\n").endswith("\n" + render(error))


def test_the_interpreters_own_printing_ends_with_the_rendered_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = UnsupportedSyntaxError("one construct is not compiled.", span=X, label="here")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    sys.__excepthook__(type(error), error, None)
    assert stream.getvalue().rstrip("\n").endswith(render(error))


def test_every_class_is_also_a_builtin_and_has_a_code_of_its_own() -> None:
    kinds = [kind for kind in family() if kind is not PyrelayError]
    for kind in kinds:
        builtins = [c for c in kind.__mro__ if c.__module__ == "builtins"]
        assert set(builtins) - {Exception, BaseException, object}, kind
        assert kind.__module__ == "pyrelay"
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_an_error_survives_pickling_with_its_text() -> None:
    error = ShapeError("no fit.", span=X, label="f32[3]", related=[(W, "f32[4]")], notes=["a."])
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert isinstance(copy, ShapeError)


def test_a_key_error_shows_its_text_and_not_a_quoted_one() -> None:
    assert str(errors.KeyMissingError("there is no key 'w'.")) == "there is no key 'w'."


def test_a_place_on_another_line_of_the_function_has_its_own_excerpt() -> None:
    error = ShapeError("no fit.", span=X, related=[(Span(MODEL, 11, 9, 11, 10, "loss"), "set")])
    assert lines(str(error))[1:] == [
        '  File "model.py", line 12, in loss',
        "  12 |     h = tanh(x * w + c)",
        "     |              ^",
        "  11 | def loss(x, w, c):",
        "     |          - set",
    ]


def test_a_place_in_another_file_names_that_file() -> None:
    error = ShapeError("no fit.", span=X, related=[(CALL, "passed here")])
    assert lines(str(error))[4:] == [
        '  File "train.py", line 40',
        "  40 | step(x, w)",
        "     | ---------- passed here",
    ]


def test_line_numbers_of_different_length_share_one_gutter() -> None:
    source = SourceText("a.py", tuple(f"line{n}" for n in range(9, 11)), first_line=9)
    error = ShapeError(
        "no.", span=Span(source, 9, 0, 9, 4), related=[(Span(source, 10, 0, 10, 4), "")]
    )
    assert lines(str(error))[2:] == ["   9 | line9", "     | ^^^^", "  10 | line10", "     | ----"]


def test_all_places_of_unsupported_syntax_get_carets() -> None:
    error = UnsupportedSyntaxError("two.", span=X, label="this", related=[(W, "that")])
    assert lines(str(error))[3:] == ["     |              ^ this", "     |                  ^ that"]


def test_a_span_of_several_lines_marks_each_and_is_labelled_at_its_end() -> None:
    error = ShapeError("no.", span=Span(MODEL, 14, 8, 17, 14, "loss"), label="the call")
    assert lines(str(error))[2:] == [
        "  14 |         return total(",
        "     |         ^^^^^^^^^^^^^",
        "  15 |             h,",
        "     |             ^^",
        "  16 |",
        "  17 |             x)",
        "     |             ^^ the call",
    ]


def test_a_long_span_shows_its_ends_only() -> None:
    source = SourceText("a.py", tuple(f"row{n}" for n in range(1, 31)), first_line=1)
    text = str(ShapeError("no.", span=Span(source, 1, 0, 30, 5), label="all of it"))
    assert "row1\n" in text
    assert "row20" not in text
    assert text.endswith("  30 | row30\n     | ^^^^^ all of it")
    assert text.count(" | ...") == 1


def test_marks_stand_under_their_text_after_tabs_and_wide_characters() -> None:
    error = ShapeError("no.", span=Span(MODEL, 13, 9, 13, 10, "loss"), label="here")
    shown, marked = lines(str(error))[2:]
    before = shown[: shown.index("x:")]
    width = sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in before)
    assert marked.index("^") == width
    assert "\t" not in str(error)


def test_an_empty_span_still_gets_one_mark() -> None:
    assert "     |              ^ here" in str(
        ShapeError("no.", span=Span(MODEL, 12, 13, 12, 13, "loss"), label="here")
    )


def test_a_line_that_is_not_in_the_text_leaves_only_the_place() -> None:
    error = ShapeError("no.", span=Span(SourceText("gone.py", ()), 3, 0, 3, 1, "f"))
    assert str(error) == 'no.\n  File "gone.py", line 3, in f'


def test_further_lines_of_a_note_are_aligned() -> None:
    assert str(ShapeError("no.", notes=["one\ntwo"])) == "no.\n  Note: one\n        two"


def test_equal_calls_are_counted_and_a_long_list_is_cut() -> None:
    many = [(CALL, "f(n)")] * 5 + [(CALL, f"g{k}()") for k in range(10)]
    shown = lines(str(ShapeError("no.", calls=many)))
    assert shown[1] == "  Called from train.py, line 40: f(n) (5 times)"
    assert shown[-1] == "  ... and 3 more calls"


def test_a_file_below_the_working_directory_is_named_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = SourceText(str(tmp_path / "pkg" / "m.py"), ("x",))
    assert '  File "pkg/m.py", line 1' in str(ShapeError("no.", span=Span(source, 1, 0, 1, 1)))


def test_a_span_knows_its_text() -> None:
    assert W.text() == "w"
    assert Span(MODEL, 14, 15, 15, 14, "loss").text() == "total(\n            h,"


def test_a_run_time_error_keeps_class_and_words_and_gains_the_place() -> None:
    error = runtime_error(IndexError, "index 5 is out of range", span=X, label="index 5")
    assert type(error) is IndexError
    assert str(error) == "index 5 is out of range"
    assert render(error) == (
        "IndexError: index 5 is out of range\n"
        '  File "model.py", line 12, in loss\n'
        "  12 |     h = tanh(x * w + c)\n"
        "     |              ^ index 5"
    )
    assert getattr(error, "span", None) is X


def test_the_place_nearest_to_the_fault_is_kept() -> None:
    error = locate(ValueError("no"), span=X)
    assert locate(error, span=W) is error
    assert getattr(error, "span", None) is X
    assert len(error.__notes__) == 1


def test_error_modes_that_compiled_code_does_not_follow_are_said_at_the_users_line() -> None:
    f = pyrelay.jit(lambda x: np.log(x))
    with np.errstate(divide="raise"), pytest.warns(RuntimeWarning, match="does not reach") as given:
        assert f(np.zeros(1))[0] == -np.inf
    assert given[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.zeros(1, np.float32))
