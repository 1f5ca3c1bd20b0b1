"""A plugin of pytest for `make gpu-test`: a table last, and `gpu_tests.json` in the folder `OUT`.

The run ends by itself before it is ended: after `ENOUGH` seconds no test is begun, and after
`LIMIT` what is known is told even if a kernel on the GPU never comes back. An error after which a
process can use the GPU no more, as an access outside of memory, ends the process and not the run:
pytest-xdist begins another worker, and without it the run goes on in a process that takes the place
of this one. So does a test that does not come back within `PATIENCE`. Without a GPU it ends at once
and the last line says why there is none: tests that need none are those of `make test-all`.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyrelay.devices import cuda
from pyrelay.errors import DeviceError

ENOUGH, LIMIT, PATIENCE = 540.0, 580.0, 100.0
_SHOWN = 20
_BEFORE = "PYRELAY_TESTS_BEFORE"  # names the file with what a process before has found
ON_A_GPU = "tests/devices/gpu/test_programs"
"""How the files begin whose tests need one."""


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
            if report.nodeid in self.failures:  # its worker ended, too
                return
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
    """Follows a run. alone: whether this process runs the tests itself."""

    def __init__(self, arguments: Sequence[str], alone: bool) -> None:
        self.arguments, self.alone = arguments, alone
        self.report, self.begun, self.done = Report(), time.time(), list[str]()
        if os.environ.get(_BEFORE):
            before = json.loads(Path(os.environ[_BEFORE]).read_text())
            self.begun, self.done = before.pop("begun"), before.pop("done")
            files = {name: File(**each) for name, each in before.pop("files").items()}
            self.report = Report(files, **before)
        self.session: pytest.Session | None = None
        self.streams = os.dup(1), os.dup(2)  # pytest captures the others while a test runs
        self.watch = threading.Timer(self.begun + LIMIT - time.time(), self.give_up)
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
        os.write(self.streams[0], (self.report.table() + "\n").encode())

    def leave(self, test: str) -> None:
        """A test does not come back: the others are begun elsewhere."""
        file = self.report.files.setdefault(test.partition("::")[0], File())
        file.failed += 1
        file.seconds += PATIENCE
        self.report.failures[test] = f"did not come back in {PATIENCE:.0f} s"
        self.done.append(test)
        self.go_on()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        waiting = threading.Timer(PATIENCE, self.leave, [item.nodeid])
        waiting.daemon = True
        waiting.start()
        try:
            return (yield)
        finally:
            waiting.cancel()

    def go_on(self) -> None:
        """Go on in a fresh process."""
        self.watch.cancel()
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({**asdict(self.report), "begun": self.begun, "done": self.done}, file)
        for number, stream in enumerate(self.streams, 1):
            os.dup2(stream, number)
        os.environ[_BEFORE] = file.name
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *self.arguments])

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        done = set(self.done)
        items[:] = [item for item in items if item.nodeid not in done]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.report.add(report)
        if report.when == "setup" or report.failed:
            self.done.append(report.nodeid)
        if self.alone and report.failed and is_lost():
            self.go_on()
        if time.time() - self.begun > ENOUGH and self.session is not None:
            self.report.complete = False
            self.session.shouldstop = "no time is left"

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self.watch.cancel()
        self.tell()


class Worker:
    """Follows a worker of pytest-xdist, which is ended where a test does not come back, whatever
    Python waits for then."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=sys.__stderr__)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and is_lost():
            os._exit(1)  # the report is sent, and another worker begins


def is_lost() -> bool:
    """Whether this process can use the GPU no more."""
    if missing():
        return False
    try:
        cuda.driver().runtime.deviceSynchronize()
    except RuntimeError:
        return True
    return False


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
    # JAX would take most of the memory for itself, in each process.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if missing():
        config.args[:] = [path for path in config.args if ON_A_GPU in path] or config.args
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker(), "gpu report")
        return
    alone = not getattr(config.option, "numprocesses", None)
    arguments = config.invocation_params.args
    config.pluginmanager.register(Plugin([str(a) for a in arguments], alone), "gpu report")
