"""A plugin of pytest for `make gpu-test`: a table last, and `gpu_tests.json` in the folder `OUT`.

The run ends by itself before it is ended: after `ENOUGH` seconds no test is begun, and after
`LIMIT` what is known is told even if a kernel on the GPU never comes back. Without a GPU it ends at
once and the last line says why there is none: tests that need none are those of `make test-all`.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyrelay.devices import cuda
from pyrelay.errors import DeviceError

ENOUGH, LIMIT = 540.0, 580.0
_SHOWN = 20
ON_A_GPU = "tests/devices/gpu/test_programs.py"
"""The tests that need one."""


@dataclass
class File:
    """A file of tests: how many passed, failed, were skipped; seconds of all of them."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


@dataclass
class Report:
    """What is known of a run. failures: the last line of each, by the test's name."""

    files: dict[str, File] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    skips: dict[str, int] = field(default_factory=dict)  # by reason
    complete: bool = True

    def add(self, report: Any) -> None:
        """A test's setup, call or teardown is over."""
        file = self.files.setdefault(report.nodeid.partition("::")[0], File())
        file.seconds += report.duration
        if report.failed:
            file.failed += 1
            self.failures[report.nodeid] = (str(report.longrepr).splitlines() or [""])[-1]
        elif report.skipped:
            file.skipped += 1
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.skips[reason] = self.skips.get(reason, 0) + 1
        elif report.when == "call":
            file.passed += 1

    def write(self) -> None:
        """`gpu_tests.json` in the folder that was asked for."""
        if os.environ.get("OUT"):
            folder = Path(os.environ["OUT"])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "gpu_tests.json").write_text(json.dumps(asdict(self), indent=1))

    def table(self) -> str:
        """All as text."""
        lines = ["", "| tests | passed | failed | skipped | seconds |", "|---|---|---|---|---|"]
        for name, f in sorted(self.files.items()):
            lines.append(f"| {name} | {f.passed} | {f.failed} | {f.skipped} | {f.seconds:.1f} |")
        lines += [f"skipped {count}: {why}" for why, count in self.skips.items()]
        lines += [f"FAILED {test}: {why}" for test, why in [*self.failures.items()][:_SHOWN]]
        if len(self.failures) > _SHOWN:
            lines.append(f"and {len(self.failures) - _SHOWN} more failures")
        if not self.complete:
            lines.append("There was no time for all tests.")
        if missing():
            lines += ["", f"NO GPU: {missing()}", "Tests that need none: make test-all."]
        return "\n".join(lines)


class Plugin:
    """Follows a run."""

    def __init__(self) -> None:
        self.report, self.begun = Report(), time.monotonic()
        self.session: pytest.Session | None = None
        self.watch = threading.Timer(LIMIT, self.give_up)
        self.watch.daemon = True
        self.watch.start()

    def give_up(self) -> None:
        """Tell what is known and end: something does not come back."""
        self.report.complete = False
        self.tell()
        os._exit(1)

    def tell(self) -> None:
        """Write and print."""
        self.report.write()
        os.write(1, (self.report.table() + "\n").encode())

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.report.add(report)
        if time.monotonic() - self.begun > ENOUGH and self.session is not None:
            self.report.complete = False
            self.session.shouldstop = "no time is left"

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self.watch.cancel()
        self.tell()


@functools.cache
def missing() -> str:
    """Why there is no GPU; empty if there is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of CuPy, when it is imported
            cuda.driver()
    except DeviceError as error:
        return str(error)
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Without a GPU only the tests are looked at that need one."""
    if missing():
        config.args[:] = [path for path in config.args if path.endswith(ON_A_GPU)] or config.args
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Plugin(), "gpu report")
