"""The package keeps its shape: imports go down, and importing it costs little."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_imports_only_go_down() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    run = subprocess.run(
        [*command, "--config", "setup.cfg", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_part_of_the_package_has_its_layer() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = settings["importlinter:contract:layers"]["layers"].replace("|", "\n").split()
    present = {
        path.name.removesuffix(".py")
        for path in (ROOT / "pyrelay").iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    assert present - {"__init__", *(name.strip("()") for name in listed)} == set()


def test_importing_pyrelay_loads_no_compiler() -> None:
    heavy = ("numba", "llvmlite", "scipy", "torch", "jax", "cupy", "IPython", "matplotlib")
    program = f"import sys, pyrelay; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
