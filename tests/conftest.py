"""What every test shares: a disk cache of the test run's own, verification on, golden texts.

Processes that tests start find pyrelay's byte code, as those of a user do whose package is
installed; without it each would compile pyrelay's sources first.

Tests that tests/long_run.txt names are left to the long run.

Golden texts live in tests/golden/; `pytest --update-golden` rewrites those the run touches.
"""

from __future__ import annotations

import difflib
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
LONG_RUN = frozenset((Path(__file__).parent / "long_run.txt").read_text("utf-8").splitlines())


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
        folder = Path(tempfile.mkdtemp(prefix="pyrelay-tests-"))
        os.environ["PYRELAY_CACHE_DIR"] = str(folder / "cache")
        os.environ["PYRELAY_VERIFY"] = "1"
        os.environ["PYRELAY_COMPILE_PROCESSES"] = "1"  # the run has a worker for every CPU
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A test that edits a module within a second would be given the byte code of the old text.
    sys.dont_write_bytecode = True
    # Ten thousand tests and what they import live as long as the run: with Python's own threshold
    # a tenth of the run is the collector's, which looks at all of it again and again.
    gc.set_threshold(20_000, 20, 10)


@pytest.hookimpl(tryfirst=True)  # before those are left out that are marked
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid in LONG_RUN:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(Path(os.environ["PYRELAY_CACHE_DIR"]).parent, ignore_errors=True)


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
