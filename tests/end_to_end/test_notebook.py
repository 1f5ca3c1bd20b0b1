"""The notebooks run from start to end, and show what they say."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
TOUR = FOLDER / "01_from_numpy_to_kernels.ipynb"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@cache
def executed(path: Path) -> Any:
    """A notebook after a run; a cell that raises, an assertion included, fails here."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook


def outputs(notebook: Any, kind: str) -> list[str]:
    """All outputs of one media type, in order."""
    return [
        output["data"][kind]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_named_in_the_readme(path: Path) -> None:
    assert f"notebooks/{path.name}" in (FOLDER.parent / "README.md").read_text()


def test_the_typed_program_and_the_kernels_show_as_html() -> None:
    shown = outputs(executed(TOUR), "text/html")
    assert len(shown) >= 3
    assert any("tanh" in html for html in shown)


def test_the_training_curve_is_drawn() -> None:
    assert outputs(executed(TOUR), "image/png")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_from_start_to_end(path: Path) -> None:
    ran = [cell for cell in executed(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in ran] == list(range(1, len(ran) + 1))
