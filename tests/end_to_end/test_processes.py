"""The disk cache between processes: warm starts, broken files, directories that cannot be used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = '''
import sys, numpy as np, pyrelay
from pyrelay.devices.compiler import native

@pyrelay.jit
def norm(x):
    return np.sum(np.exp(-x * x) + np.tanh(x))

def power(x, n):
    return np.sum(x) if n == 0 else power(x * np.sin(x), n - 1)

x = np.linspace(-1.0, 1.0, 50)
assert np.isclose(norm(x), norm.py(x))
assert np.allclose(pyrelay.grad(norm)(x), -2 * x * np.exp(-x * x) + 1 - np.tanh(x) ** 2)
assert np.isclose(pyrelay.jit(power)(x, 3), power(x, 3))
late = {"numba", "pyrelay.devices.compiler.kernel_lowering"}
print(native.counts.compiled, bool(late & set(sys.modules)))
'''


def run(directory: Path, text: str = PROGRAM, **environment: str) -> tuple[str, str]:
    """Run a program in a process of its own; what it printed."""
    path = next(p for p in directory.parents if p.is_dir()) / "program.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYRELAY_CACHE_DIR": str(directory), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_a_second_process_compiles_no_kernel_and_imports_no_compiler(tmp_path: Path) -> None:
    first, _ = run(tmp_path / "cache")
    assert int(first.split()[0]) > 0
    assert run(tmp_path / "cache") == ("0 False", "")


def test_files_that_are_truncated_foreign_or_half_written_are_made_anew(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first, _ = run(cache)
    files = [f for f in cache.glob("*/*") if f.is_file()]
    for number, file in enumerate(files):
        data = file.read_bytes()
        file.write_bytes((data[: len(data) // 2], b"", b"not ours", data[:-1] + b"?")[number % 4])
        file.with_name(file.name + ".123.0.tmp").write_bytes(data[:10])
    assert run(cache) == (first, "")
    assert run(cache) == ("0 False", "")


def test_a_killed_process_leaves_nothing_that_breaks_the_next_one(tmp_path: Path) -> None:
    endless = PROGRAM.replace(
        "x = np.linspace",
        "print('started', flush=True)\n"
        "for k in range(1000):\n"
        "    pyrelay.grad(lambda x: norm(x) * k)(np.ones(2) + k)\n"
        "x = np.linspace",
    )
    cache = tmp_path / "cache"
    (tmp_path / "endless.py").write_text(endless)
    for wait in (b"started\n",) * 2:
        with subprocess.Popen(
            [sys.executable, str(tmp_path / "endless.py")], stdout=subprocess.PIPE,
            env={**os.environ, "PYRELAY_CACHE_DIR": str(cache)},
        ) as child:  # fmt: skip
            assert child.stdout is not None
            assert child.stdout.readline() == wait
            child.send_signal(signal.SIGKILL)
    run(cache)
    assert run(cache)[0] == "0 False"


@pytest.mark.parametrize(
    "kind",
    ["a file", *(pytest.param(k, marks=pytest.mark.slow) for k in ("open to all", "below a file"))],
)
def test_a_directory_that_cannot_be_used_is_a_warning_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "open to all":
        place.mkdir()
        place.chmod(0o777)
    else:
        place.write_text("a file")
    out, text = run(place / "cache" if kind == "below a file" else place)
    assert int(out.split()[0]) > 0
    assert text.count("pyrelay keeps no compiled code on disk") == 1


def test_the_cache_can_be_switched_off(tmp_path: Path) -> None:
    out, text = run(tmp_path / "cache", PYRELAY_CACHE="0")
    assert (int(out.split()[0]) > 0, text) == (True, "")
    assert not (tmp_path / "cache").exists()


def test_a_forked_child_calls_what_its_parent_compiled_and_compiles_more(tmp_path: Path) -> None:
    text = PROGRAM + (
        "import os\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    new = pyrelay.jit(lambda v: np.cosh(v))\n"
        "    os._exit(0 if np.isclose(norm(x), norm.py(x)) and new(0.0) == 1 else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    run(tmp_path / "cache", text)


def test_importing_pyrelay_imports_neither_the_compiler_nor_what_it_uses(tmp_path: Path) -> None:
    text = """if True:
        import sys, pyrelay
        late = {"numba", "llvmlite", "lark"}
        parts = ("frontend", "grad", "infer.interpreter", "ir.nodes", "lower", "ops", "opt")
        late.update("pyrelay." + part for part in parts)
        late.discard("pyrelay.grad")  # no more than its docstring: see pyrelay/__init__.py
        known = set(sys.modules)
        print(sorted(late & known), [m for m in known if m.startswith("pyrelay.grad.")])
    """
    assert run(tmp_path / "cache", text) == ("[] []", "")
