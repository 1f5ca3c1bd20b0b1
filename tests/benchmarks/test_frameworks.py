"""Every framework has a program for every workload, or is declared to have none.

The peers need not be installed: a stand-in that has every name takes their place, so that the
tables of their modules are made, and a wrong name of our own in them is found.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import frameworks, programs, worker
from benchmarks.driver import workers
from benchmarks.workloads import WORKLOADS

FOLDER = Path(programs.__file__).parent
PEERS = ("jax", "jax.numpy", "torch", "torch.nn", "onnx", "onnxruntime")
ASKED = {workload.program for workload in WORKLOADS}


class Something(type):
    """What a peer may have: to inherit from, to call, and with anything of that kind in it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Something(name, (), {})

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return cls


class Anything(ModuleType):
    """A module with every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Something(name, (), {})


@pytest.fixture
def without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the peers, and modules of programs that are imported anew."""
    for name in [*sys.modules]:
        if name.startswith("benchmarks.programs.") and ("_" in name or name.endswith("compiled")):
            monkeypatch.delitem(sys.modules, name)
    for name in PEERS:
        parent, _, child = name.rpartition(".")
        monkeypatch.setitem(sys.modules, name, Anything(name))
        if parent:
            monkeypatch.setattr(sys.modules[parent], child, sys.modules[name], raising=False)


@pytest.mark.usefixtures("without_peers")
@pytest.mark.parametrize("framework", frameworks.MODULES)
def test_programs_are_those_of_the_workloads_less_what_is_declared(framework: str) -> None:
    module = importlib.import_module(f"benchmarks.programs.{frameworks.MODULES[framework]}")
    assert set(module.PROGRAMS) == ASKED - frameworks.WITHOUT[framework]
    assert frameworks.WITHOUT[framework] <= ASKED


@pytest.mark.usefixtures("without_peers")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_what_modules_of_programs_ask_of_each_other_is_there(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "benchmarks.programs":
            for alias in node.names:
                name = f"benchmarks.programs.{alias.name}"
                imported[alias.asname or alias.name] = importlib.import_module(name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks."):
            module = importlib.import_module(str(node.module))
            assert [a.name for a in node.names if not hasattr(module, a.name)] == []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module_of = imported.get(node.value.id)
            assert module_of is None or hasattr(module_of, node.attr), ast.unparse(node)


def test_what_is_not_installed_is_left_out_and_what_is_wrong_stops_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def greeting(reason: Exception) -> dict[str, Any]:
        def load(framework: str) -> ModuleType:
            raise reason

        monkeypatch.setattr(worker, "load", load)
        replies = io.StringIO()
        worker.serve("jax", io.StringIO(), replies)
        return dict(json.loads(replies.getvalue()))

    absent = ModuleNotFoundError("No module named 'jax'", name="jax")
    assert greeting(absent) == {"missing": "ModuleNotFoundError: No module named 'jax'"}
    ours = ModuleNotFoundError("No module named 'benchmarks.x'", name="benchmarks.x")
    assert set(greeting(ours)) == set(greeting(ImportError("cannot import name"))) == {"failed"}
    with pytest.raises(RuntimeError, match="KeyError: 'nobody'"), workers(["nobody"]):
        pass
