"""The package keeps its shape: imports go down, and importing it costs little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_imports_only_go_down_and_every_module_has_its_layer() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    run = subprocess.run(
        [*command, "--config", "setup.cfg", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_importing_pyrelay_loads_no_compiler() -> None:
    heavy = ("numba", "llvmlite", "scipy", "torch", "jax", "cupy", "IPython", "matplotlib")
    program = f"import sys, pyrelay; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
