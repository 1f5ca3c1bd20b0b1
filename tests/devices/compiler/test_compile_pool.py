"""Several processes compile what one would, and what goes wrong in them costs only time."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_texts import ADD, SCALE

from pyrelay import config
from pyrelay.devices import fingerprints
from pyrelay.devices.compiler import compile_pool, kernel_compiler
from pyrelay.devices.compiler.compile_pool import Task, objects
from pyrelay.devices.compiler.compile_worker import KERNEL
from pyrelay.devices.compiler.kernel_language import KernelError
from pyrelay.devices.routines import matmul
from pyrelay.devices.runtime import runtime_parts
from pyrelay.devices.runtime.runtime_parts import MAIN, TREES
from pyrelay.ir.types import f32

TASKS = [Task(text, f"<{name}>") for name, text in (("add", ADD), ("scale", SCALE))]


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compile_pool, "_compilers", [])
    with config.override(compile_processes=2):
        yield
    compile_pool._stop()


def _asked(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[str]:
    """The kernels that this process compiles itself, from now on, as slowly as that."""
    here: list[str] = []
    real = kernel_compiler.kernel_object

    def compile_here(source: str, filename: str) -> bytes:
        here.append(filename)
        time.sleep(seconds)
        return real(source, filename)

    monkeypatch.setattr(kernel_compiler, "kernel_object", compile_here)
    return here


@pytest.mark.usefixtures("two_processes")
def test_two_processes_compile_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [kernel_compiler.kernel_object(task.source, task.filename) for task in TASKS]
    (other,) = compile_pool._others(1)
    assert other.ask((KERNEL, ADD, "<add>")) == alone[0]
    here = _asked(monkeypatch, 0.5)
    assert objects(TASKS) == alone
    assert len(here) == 1


@pytest.mark.usefixtures("two_processes")
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_process_that_dies_leaves_its_kernels_to_the_caller(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    (other,) = compile_pool._others(1)
    other.ask((KERNEL, ADD, "<add>"))
    if when == "before":
        other._process.kill()
    else:
        monkeypatch.setattr(compile_pool.pickle, "load", _ended)
    here = _asked(monkeypatch)
    codes = objects(TASKS)
    assert codes == [kernel_compiler.kernel_object(task.source, task.filename) for task in TASKS]
    assert sorted(set(here)) == ["<add>", "<scale>"]


def _ended(pipe: Any) -> Any:
    raise EOFError


@pytest.mark.usefixtures("two_processes")
def test_what_was_begun_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (other,) = compile_pool._others(1)
    alone = [other.ask((KERNEL, task.source, task.filename)) for task in TASKS]
    here = _asked(monkeypatch)
    for task in TASKS:
        compile_pool.begin(task)
    if (thread := compile_pool._ahead.thread) is not None:
        thread.join()
    assert objects(TASKS) == alone
    assert here == []
    monkeypatch.setattr(other, "ask", lambda request: time.sleep(0.5))  # it fails, and slowly
    for task in TASKS:
        compile_pool.begin(task)
    assert objects(TASKS) == alone
    assert "<add>" in here or "<scale>" in here  # the one that was begun
    assert compile_pool._ahead.waiting == []


@pytest.mark.usefixtures("two_processes")
def test_what_nobody_asks_for_is_not_waited_for_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    (other,) = compile_pool._others(1)
    other.ask((KERNEL, ADD, "<add>"))
    real = other.ask

    def slow(request: tuple[str, ...]) -> bytes | None:
        time.sleep(1.0)
        return real(request)

    monkeypatch.setattr(other, "ask", slow)
    for _ in range(2):
        compile_pool.begin(TASKS[1])
    while compile_pool._ahead.begun is None:
        time.sleep(0.01)
    assert compile_pool._ahead.waiting == []  # it is not begun again
    started = time.perf_counter()
    objects(TASKS[:1])
    assert time.perf_counter() - started < 0.9
    thread = compile_pool._ahead.thread
    assert thread is not None
    thread.join()
    here = _asked(monkeypatch)
    assert len(objects(TASKS[1:])) == 1
    assert here == []


def test_nothing_is_begun_where_no_process_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_pool, "_compilers", [])
    for count in (1, 2):
        with config.override(compile_processes=count):
            compile_pool.begin(TASKS[0])
    assert compile_pool._ahead.waiting == []


@pytest.mark.usefixtures("two_processes")
def test_a_text_that_is_no_kernel_is_the_callers_error() -> None:
    (other,) = compile_pool._others(1)
    assert other.ask((KERNEL, ADD, "<add>"))
    wrong = Task(ADD.replace("load_f64(b, i)", "load_f64('b', i)"), "<wrong>")
    with pytest.raises(KernelError):
        objects([wrong, wrong])


@pytest.mark.usefixtures("two_processes")
def test_python_inside_another_program_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/photo-editor")
    (other,) = compile_pool._others(1)
    assert other.ask((KERNEL, ADD, "<add>")) is None
    assert not other.started


def test_one_process_asks_nobody() -> None:
    with config.override(compile_processes=1):
        assert compile_pool._others(3) == []
        compile_pool.expect([MAIN])
        assert compile_pool.runtime(MAIN) is None


@pytest.mark.usefixtures("two_processes")
def test_another_process_makes_the_parts_of_the_run_time_that_are_expected() -> None:
    compile_pool.expect([MAIN, TREES])
    made = [compile_pool.runtime(part) for part in (MAIN, TREES)]
    assert made == [runtime_parts.build(part) for part in (MAIN, TREES)]
    assert compile_pool.runtime(MAIN) is None


def test_a_process_that_compiles_imports_nothing_of_numpy(tmp_path: Path) -> None:
    """Nor what programs are before they are kernels: every first call waits for its start."""
    asked = [("runtime", MAIN), ("kernel", matmul.matmul_kernel(f32), "<product>"),
             ("kernel", ADD, "<add>"), ("runtime", TREES)]  # fmt: skip
    start = compile_pool.process_start()
    listed = (
        "import sys; open(sys.argv[1], 'w').write('\\n'.join("
        "f'{k} {getattr(m, \"__file__\", None)}' for k, m in sys.modules.items()))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"{start}; {listed}", str(tmp_path / "modules")],
        input=b"".join(map(pickle.dumps, asked)), capture_output=True, check=True,
    )  # fmt: skip
    replies = io.BytesIO(done.stdout)
    assert all(pickle.load(replies) for _ in asked)
    known = dict(line.split(" ", 1) for line in (tmp_path / "modules").read_text().splitlines())
    late = ("numpy", "numba", "site", "pyrelay.api", "pyrelay.config", "pyrelay.ir.types",
            "pyrelay.lower.kernels.kernel")  # fmt: skip
    assert not known.keys() & set(late)
    own = {Path(file) for name, file in known.items() if name.startswith("pyrelay.")}
    read = {path for path in own if path.name != "__init__.py"}
    # object code on disk is made again when one changes
    assert read <= set(fingerprints.generating_files())
    assert len(read) > 20


def test_a_process_without_requests_ends() -> None:
    text = (
        "import sys; from pyrelay.devices.compiler import compile_worker as w; "
        "w.IDLE_SECONDS = 0.01; w.main(); sys.stderr.write('ended')"
    )
    ended = subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert ended.stderr is not None
    assert ended.stderr.read() == b"ended"  # its standard input is still open
    assert ended.communicate()[0] == b""


FIRST_CALL = """
import logging, os, sys, numpy as np, pyrelay
from pyrelay.devices.compiler import compile_pool

logging.disable()  # on a busy machine pyrelay says that it takes long

@pyrelay.jit
def f(x):
    return np.tanh(x) * x.sum()

assert np.allclose(f(np.ones(3)), 3 * np.tanh(1.0))
(other,) = compile_pool._compilers
assert other.started
child = os.fork()
if child == 0:  # has no process of its own yet, and can have one
    assert compile_pool._compilers == []
    assert np.allclose(pyrelay.jit(lambda x: np.sinh(x) - x)(np.ones(2)), np.sinh(1.0) - 1.0)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert other.ask(("kernel", "no kernel", "<none>")) is None and other.started
print(other._process.pid)
"""


#: How Python 3.15 begins to say that there are threads, which run none of it, where one forks.
THREADS = "This process"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_first_call_of_a_fresh_process_has_help_that_ends_with_it(tmp_path: Path) -> None:
    script = tmp_path / "first.py"
    script.write_text(FIRST_CALL)
    environment = {
        **os.environ, "PYRELAY_CACHE_DIR": str(tmp_path / "cache"), "PYRELAY_COMPILE_PROCESSES": "2"
    }
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-W", f"ignore:{THREADS}", str(script)],
        env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended.stdout), 0)


def test_long_kernels_and_parts_written_by_hand_are_taken_to_last_longer() -> None:
    part = "from pyrelay.devices.routines.matmul_blocks import product_f32x8\n"
    line = "    x = x + 1\n"
    pack, near = (
        f"from pyrelay.devices.routines.matmul_{name}_f32x8\n"
        for name in ("panels import pack", "bands import near_rows")
    )
    texts = [line, part + line, pack, line * 30, part, near, line * 200]
    seconds = [Task(text, "").seconds for text in texts]
    assert seconds == sorted(seconds)
    assert len(set(seconds)) == len(texts)
    tidied = Task(f"\nBY_HAND = True\n{line * 200}", "").seconds
    assert seconds[2] < tidied < seconds[-1]
