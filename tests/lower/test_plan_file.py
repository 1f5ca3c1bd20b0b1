"""A plan read back from its bytes is the plan that was written."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.entry import MISMATCH, Executable
from pyrelay.errors import SourceText, Span
from pyrelay.lower.boundary import (
    ArrayParameter,
    ArrayResult,
    ObjectParameter,
    ObjectResult,
    ParameterResult,
    SameResult,
    ScalarParameter,
    ScalarResult,
    ViewResult,
)
from pyrelay.lower.encode import EncodedPlan, encode
from pyrelay.lower.instructions import (
    Data,
    Kernel,
    Launch,
    Load,
    Plan,
    PlanFunction,
    Raise,
    Return,
    Site,
    Slot,
    immediate,
)
from pyrelay.lower.plan_file import from_bytes, to_bytes

SOURCE = SourceText("model.py", ("def f(x):", "    return x[i]"), 10)
SITES = (
    Site("IndexError", ("index ", 0, " is out"), ("int",), Span(SOURCE, 11, 11, 11, 15, "f")),
    Site("ValueError", ("é {}",)),
    Site("KeyError", (), (), Span(SOURCE, 10, 0, 10, 3)),
)


def _plan(**fields: Any) -> EncodedPlan:
    code = (Load("i64", 1, Data(0), Slot(0)), Return((Slot(1),)))
    plan = Plan(
        (PlanFunction("main", 1, 2, code),), sites=SITES, arrays=(np.array([10, 20, 30]),),
        parameters=(ScalarParameter("int"),), results=(ScalarResult("int"),), single=True,
    )  # fmt: skip
    return encode(dataclasses.replace(plan, **fields))


def test_the_plan_read_back_runs_and_has_the_same_fields() -> None:
    plan = _plan()
    back = from_bytes(to_bytes(plan))
    assert Executable(back).call(2) == 30
    for field in dataclasses.fields(EncodedPlan):
        mine, theirs = getattr(plan, field.name), getattr(back, field.name)
        if field.name in ("code", "constants", "arrays"):
            np.testing.assert_equal(theirs, mine)
        elif field.name != "sites":
            assert theirs == mine, field.name
    assert to_bytes(back) == to_bytes(plan)


def test_sites_keep_their_texts_and_share_their_sources() -> None:
    back = from_bytes(to_bytes(_plan())).sites
    assert [site.parts for site in back] == [site.parts for site in SITES]
    assert [site.kinds for site in back] == [site.kinds for site in SITES]
    assert back[0].span is not None
    assert back[2].span is not None
    assert back[1].span is None
    assert back[0].span.text() == "x[i]"
    assert back[0].span.function == "f"
    assert back[0].span.source is back[2].span.source


def test_every_kind_of_parameter_and_result_survives() -> None:
    parameters = (
        ArrayParameter("float64", 2, "F", True, (None, 3)), ScalarParameter("bool_"),
        ObjectParameter(None),
    )  # fmt: skip
    results = (
        ArrayResult("int8", 1), ViewResult("float64", 1, 0), ScalarResult("complex"),
        ParameterResult(0), SameResult(1), ObjectResult("text"),
    )  # fmt: skip
    words = tuple(Slot(0) for result in results for _ in range(result.words))
    plan = Plan(
        (PlanFunction("main", 4, 4, (Launch(0, (), Slot(1), immediate(3)), Return(words))),),
        (Kernel("k", "text of it"),), parameters=parameters, results=results,
    )  # fmt: skip
    back = from_bytes(to_bytes(encode(plan)))
    assert back.parameters[:2] == parameters[:2]
    assert back.results[:5] == results[:5]
    assert isinstance(back.parameters[2], ObjectParameter)
    assert isinstance(back.results[5], ObjectResult)
    assert back.results[5].value == "text"
    assert back.kernels == plan.kernels
    assert back.parallel


def test_errors_raised_by_a_plan_read_back_point_at_the_users_line() -> None:
    plan = Plan(
        (PlanFunction("main", 1, 1, (Raise(0, (Slot(0),)),)),), sites=SITES,
        parameters=(ScalarParameter("int"),),
    )  # fmt: skip
    call = Executable(from_bytes(to_bytes(encode(plan)))).call
    with pytest.raises(IndexError, match="index 7 is out") as caught:
        call(7)
    assert "return x[i]" in "".join(caught.value.__notes__)
    assert call(7.5) is MISMATCH


def test_objects_without_a_text_cannot_be_stored() -> None:
    plan = _plan(results=(ObjectResult(object()),))
    with pytest.raises(TypeError, match="cannot be stored"):
        to_bytes(plan)


def test_arguments_of_exceptions_come_back_as_tuples_and_classes_cannot_be_stored() -> None:
    parts = (("text", "x is ", 0), ("float", 0), ("constant", None), ("constant", "é"))
    plan = _plan(sites=(Site("ValueError", parts, ("float",)),))
    assert from_bytes(to_bytes(plan)).sites[0].parts == parts

    class LocalError(Exception):
        pass

    for site in (Site(LocalError, ()), Site("ValueError", (("constant", LocalError),))):
        with pytest.raises(TypeError, match="cannot be stored"):
            to_bytes(_plan(sites=(site,)))
