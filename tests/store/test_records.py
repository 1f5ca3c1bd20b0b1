"""Records read back from their bytes are the records that were written."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401 -- ops register themselves
from pyrelay.devices.runtime.entry import Executable
from pyrelay.errors import SourceText, Span
from pyrelay.infer.guards import ABSENT, ExtentGuard
from pyrelay.infer.result_trees import ConstantResult, LeafResult, NodeResult
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS
from pyrelay.lower.planning.boundary import (
    ArrayParameter,
    ObjectResult,
    ScalarParameter,
    ScalarResult,
)
from pyrelay.lower.planning.encode import EncodedPlan, encode
from pyrelay.lower.planning.host import Host
from pyrelay.lower.planning.instructions import (
    Data,
    Kernel,
    Load,
    Plan,
    PlanFunction,
    Raise,
    Return,
    Site,
    Slot,
)
from pyrelay.store.places import Places
from pyrelay.store.records import NotStorableError, from_bytes, to_bytes

SOURCE = SourceText("model.py", ("def f(x):", "    return x[i]"), 10)


class LocalError(Exception):
    pass


SITES = (
    Site("IndexError", ("index ", 0, " is out"), ("int",), Span(SOURCE, 11, 11, 11, 15, "f")),
    Site(LocalError, (("constant", LocalError),)),
    Site("KeyError", (), (), Span(SOURCE, 10, 0, 10, 3)),
)


def places() -> Places:
    made = Places()
    made.enter("callee", (LocalError, places))
    return made


def back(value: Any, files: tuple[str, ...] = (), moved: tuple[str, ...] = ()) -> Any:
    return from_bytes(to_bytes(value, places(), files), places(), moved or files)


def _plan(**fields: Any) -> EncodedPlan:
    code = (Load("i64", 1, Data(0), Slot(0)), Return((Slot(1),)))
    plan = Plan(
        (PlanFunction("main", 1, 2, code),), sites=SITES, arrays=(np.array([10, 20, 30]),),
        parameters=(ScalarParameter("int"),), results=(ScalarResult("int"),), single=True,
    )  # fmt: skip
    return encode(dataclasses.replace(plan, **fields))


def test_the_plan_read_back_runs_and_has_the_same_fields() -> None:
    plan = _plan()
    made = back(plan)
    assert Executable(made).call(2) == 30
    for each in dataclasses.fields(EncodedPlan):
        mine, theirs = getattr(plan, each.name), getattr(made, each.name)
        if each.name in ("code", "constants", "arrays"):
            np.testing.assert_equal(theirs, mine)
        elif each.name != "sites":
            assert theirs == mine, each.name
    assert [(s.exception, s.parts, s.kinds) for s in made.sites] == [
        (s.exception, s.parts, s.kinds) for s in SITES
    ]


def test_sites_keep_their_texts_and_share_them_and_files_may_have_moved() -> None:
    made = back(_plan(), ("other.py", "model.py"), ("x.py", "y.py")).sites
    assert made[0].span.text() == "x[i]"
    assert made[0].span.source is made[2].span.source
    assert made[0].span.source.filename == "y.py"
    assert back(_plan()).sites[0].span.source.filename == "model.py"


def test_errors_raised_by_a_plan_read_back_point_at_the_users_line() -> None:
    plan = Plan(
        (PlanFunction("main", 1, 1, (Raise(0, (Slot(0),)),)),), sites=SITES,
        parameters=(ScalarParameter("int"),),
    )  # fmt: skip
    with pytest.raises(IndexError, match="index 7 is out") as caught:
        Executable(back(encode(plan))).call(7)
    assert "return x[i]" in "".join(caught.value.__notes__)


def test_what_is_one_object_in_pyrelay_is_that_object_again() -> None:
    symbol = Symbol("n")
    records = (types.DTYPES["f32"], OPS["exp"], ABSENT, {symbol: (0, 1)}, dims.of(symbol), np)
    dtype, op, absent, axes, extent, module = back(records)
    assert (dtype, op, absent, module) == (types.DTYPES["f32"], OPS["exp"], ABSENT, np)
    (found,) = axes
    guard = ExtentGuard("==", extent, 3, True)
    assert guard.holds({found: 3})


def test_trees_of_results_refer_to_classes_by_path_and_hosts_to_ops_by_name() -> None:
    tree = NodeResult("tuple", LocalError, (), (LeafResult(0, types.PY_INT), ConstantResult(1.5)))
    assert back(tree) == tree
    host = Host(OPS["host_call"], {}, (types.PY_INT,), (), (), None)
    call, fetch = back((host, host.fetch))
    assert call.op is host.op
    assert fetch.__self__ is call


def test_kernels_are_kept_as_their_texts() -> None:
    kernel = Kernel("k", "text of it", (Span(SOURCE, 10, 0, 10, 3),), code=object())  # type: ignore[arg-type]
    assert back(kernel).spans == ()
    assert back(kernel) == kernel
    assert back(ArrayParameter("float64", 2, (1, 0), True, (None, 3))).extents == (None, 3)


class Elsewhere:
    pass


@pytest.mark.parametrize("value", [object(), Elsewhere, Elsewhere(), back, {1: object()}])
def test_objects_without_a_place_are_not_kept(value: Any) -> None:
    with pytest.raises(NotStorableError):
        to_bytes(ObjectResult(value), places(), ())
