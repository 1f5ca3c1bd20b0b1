"""The notebook runs from start to end, and shows what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "01_from_numpy_to_kernels.ipynb"


@pytest.fixture(scope="module")
def executed() -> Any:
    """The notebook after a run; a cell that raises, an assertion included, fails here."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    client.execute()
    return notebook


def outputs(notebook: Any, kind: str) -> list[str]:
    """All outputs of one media type, in order."""
    return [
        output["data"][kind]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)


def test_the_typed_program_and_the_kernels_show_as_html(executed: Any) -> None:
    shown = outputs(executed, "text/html")
    assert len(shown) >= 3
    assert any("tanh" in html for html in shown)


def test_the_training_curve_is_drawn(executed: Any) -> None:
    assert outputs(executed, "image/png")
