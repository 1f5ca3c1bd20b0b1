"""What decides how programs are compiled is told without LLVM, and from the files themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrelay import config
from pyrelay.devices import fingerprints


@pytest.fixture(autouse=True)
def _anew(tmp_path: Path) -> None:
    for each in (fingerprints.installation, fingerprints.generators):
        each.cache_clear()


def test_what_generators_say_is_read_once_for_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with config.override(cache_dir=str(tmp_path / "cache")):
        first = fingerprints.generators()
        fingerprints.generators.cache_clear()
        monkeypatch.setattr(fingerprints, "generating_files", lambda: [Path("gone")])
        assert fingerprints.generators() == first
    fingerprints.generators.cache_clear()


def test_installations_differ_by_files_and_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_PACKAGE", tmp_path)
    found = []
    for change in ("", "x = 1\n", "x = 12\n"):
        (tmp_path / "inner").mkdir(exist_ok=True)
        (tmp_path / "inner" / "a.py").write_text(change)
        found.append(fingerprints.installation())
        fingerprints.installation.cache_clear()
    monkeypatch.setattr(fingerprints, "_versions", lambda: ("another processor",))
    found.append(fingerprints.installation())
    fingerprints.installation.cache_clear()
    assert len(set(found)) == 4


def test_llvm_is_asked_where_the_kernel_does_not_say_the_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_PROCESSOR", tmp_path / "none")
    assert len(fingerprints._processor()) == 3
    arm = tmp_path / "arm"
    arm.write_text("cpu:type:aarch64:feature:,0000,0001\n")
    monkeypatch.setattr(fingerprints, "_PROCESSOR", arm)
    assert len(fingerprints._processor()) == 3
