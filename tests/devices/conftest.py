"""What the tests of the run time share: plans of a few instructions, made callable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyrelay.devices.runtime.entry import Executable
from pyrelay.lower.planning.boundary import ScalarParameter, ScalarResult
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import Instruction, Plan, PlanFunction


@pytest.fixture
def executable() -> Callable[..., Any]:
    """`executable(plan)`: its function."""

    def make(plan: Plan) -> Any:
        return Executable(encode(plan)).call

    return make


@pytest.fixture
def scalar_program(executable: Callable[..., Any]) -> Callable[..., Any]:
    """`scalar_program(code, "int float", "int")`: a function of Python scalars in slots 0, 1, ...

    Has 16 slots. `sites`, `functions` and `hosts` go to the plan.
    """

    def make(
        code: Sequence[Instruction],
        parameters: str,
        results: str,
        *,
        sites: Any = (),
        functions: Sequence[PlanFunction] = (),
        hosts: Any = (),
    ) -> Any:
        takes = tuple(ScalarParameter(kind) for kind in parameters.split())
        gives = tuple(ScalarResult(kind) for kind in results.split())
        words = sum(parameter.words for parameter in takes)
        main = PlanFunction("main", words, 16, tuple(code))
        plan = Plan(
            (main, *functions), sites=tuple(sites), parameters=takes, results=gives,
            single=len(gives) == 1, hosts=tuple(hosts),
        )  # fmt: skip
        return executable(plan)

    return make
