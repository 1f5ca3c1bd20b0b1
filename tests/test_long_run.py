"""What tests/long_run.txt leaves to the long run is there."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LONG_RUN

ROOT = Path(__file__).parent.parent


def test_every_case_that_is_left_to_the_long_run_is_one_of_a_test_that_exists() -> None:
    users = "\n".join(p.read_text("utf-8") for p in (ROOT / "tests/users").glob("*.py"))
    cases = [line for line in LONG_RUN if not line.startswith("#")]
    assert len(cases) > 100
    for case in cases:
        file, _, test = case.partition("::")
        name, _, parameters = test.partition("[")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), case
        assert parameters.endswith("]"), case
        if file == "tests/users/test_users.py":
            program = parameters[:-1].rpartition("-")[0]
            assert f"def {program}(" in users, case
