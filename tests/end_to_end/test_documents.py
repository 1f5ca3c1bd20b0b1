"""What the documents say is so: the README's code runs, the grammar is the nodes' own."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyrelay.ir import nodes
from tests.gpu_report import ON_A_GPU

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "pyrelay", ROOT, ROOT / "tests")


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of one language in a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks("README.md", "python"))))
def test_the_code_of_the_readme_runs_as_pasted_into_a_file(number: int, tmp_path: Path) -> None:
    program = tmp_path / "pasted.py"
    program.write_text(blocks("README.md", "python")[number], encoding="utf-8")
    run = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    if number == 0:
        root, slope = map(float, run.stdout.split())
        assert root == pytest.approx(2**0.5, abs=1e-12)
        assert slope == pytest.approx(0.5 / 2**0.5, abs=1e-12)


def test_the_readme_names_the_two_commands_and_they_are_targets_of_the_makefile() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "bench"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_links_of_the_documents_lead_to_files() -> None:
    for document in ("README.md", "ARCHITECTURE.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / target).exists(), f"{document} links to {target}"


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/gpu.md"])
def test_files_that_the_documents_name_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    names = re.findall(r"`([a-z_/0-9]+\.py)`", text)
    names += [f"{name}.py" for name in re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)+)`", text)]
    assert names
    for name in names:
        assert any((folder / name).exists() for folder in FOLDERS), name


def test_the_tests_that_prove_what_is_said_of_gpus_are_those_of_gpu_test() -> None:
    """All that the table of docs/gpu.md names is there, and is what `make gpu-test` runs."""
    text = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    table = text.partition("## What was proved")[2]
    named = re.findall(r"`([a-z_/0-9]+/test_[a-z_0-9]+\.py)`", table)
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ngpu-test:")[2]
    patterns = re.findall(r"tests/\S+\.py", recipe.partition("\n\n")[0])
    run = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert named
    assert any(str(path).startswith(str(ROOT / ON_A_GPU)) for path in run)
    assert not [name for name in named if ROOT / "tests" / name not in run]


def test_every_decision_has_a_number_of_its_own_and_a_line_in_the_list_of_all() -> None:
    folder = ROOT / "docs" / "decisions"
    files = sorted(folder.glob("[0-9]*.md"))
    assert [file.name[:5] for file in files] == [f"{n:04}-" for n in range(1, len(files) + 1)]
    titles = [file.read_text(encoding="utf-8").splitlines()[0] for file in files]
    listed = re.findall(r"^\* \[(\d+)\]\((.+?)\): (.+)$", (folder / "README.md").read_text(
        encoding="utf-8"), re.MULTILINE)
    assert [(file, f"# {n}: {title}") for n, file, title in listed] == [
        (file.name, title) for file, title in zip(files, titles, strict=True)
    ]


def test_the_grammar_of_the_architecture_is_that_of_the_nodes() -> None:
    (text,) = blocks("ARCHITECTURE.md", "grammar")
    written = {name.strip(): fields.split() for name, fields in re.findall(r"(.+?)=(.+)", text)}
    classes = {
        name: [f.name for f in dataclasses.fields(member) if f.name != "span"]
        for name, member in vars(nodes).items()
        if dataclasses.is_dataclass(member) and member.__module__ == nodes.__name__
    }
    assert written == classes
