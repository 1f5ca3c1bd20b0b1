"""What every test shares: a disk cache of the test run's own, verification on, golden texts.

Golden texts live in tests/golden/; `pytest --update-golden` rewrites those the run touches.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden texts that differ"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Give the run settings of its own, before any test module reads them.

    The workers of a parallel run inherit the environment of the process that starts them, so
    they share one cache directory, as processes of a user do.
    """
    for variable in [name for name in os.environ if name.startswith("PYRELAY_")]:
        if not hasattr(config, "workerinput"):
            del os.environ[variable]
    if not hasattr(config, "workerinput"):
        os.environ["PYRELAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="pyrelay-tests-")
        os.environ["PYRELAY_VERIFY"] = "1"


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["PYRELAY_CACHE_DIR"], ignore_errors=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: `text` must equal tests/golden/`name`, or becomes it on request."""
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        text = text.rstrip("\n") + "\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no tests/golden/{name}; run pytest --update-golden and read it")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            difference = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm=""
            )
            pytest.fail("\n".join(difference), pytrace=False)

    return check
