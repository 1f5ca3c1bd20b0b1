"""The disk cache gives back what was stored, or nothing; never anything else."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from pathlib import Path

import pytest

from pyrelay import config
from pyrelay.devices import cache
from pyrelay.devices.cache import Cache


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path, 10**9)


def test_what_is_put_is_got(store: Cache) -> None:
    assert store.get("plans", "a") is None
    store.put("plans", "a", b"some bytes")
    store.put("kernels", "a", b"")
    assert store.get("plans", "a") == b"some bytes"
    assert store.get("kernels", "a") == b""
    store.put("plans", "a", b"others")
    assert store.get("plans", "a") == b"others"
    assert (store.counts.hits, store.counts.misses, store.counts.writes) == (3, 1, 3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:10],
        lambda data: b"",
        lambda data: data[:-1] + b"?",
        lambda data: b"foreign" + data,
        lambda data: data + b"more",
    ],
)
def test_damaged_and_foreign_files_count_as_missing_and_are_removed(
    store: Cache, damage: object
) -> None:
    store.put("plans", "a", b"some bytes")
    path = store.path("plans", "a")
    assert path is not None
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert store.get("plans", "a") is None
    assert not path.exists()
    assert store.counts.rejected == 1
    store.put("plans", "a", b"again")
    assert store.get("plans", "a") == b"again"


def test_a_file_that_others_can_write_is_not_trusted(store: Cache) -> None:
    store.put("plans", "a", b"some bytes")
    path = store.path("plans", "a")
    assert path is not None
    path.chmod(0o666)
    assert store.get("plans", "a") is None


def test_directories_are_made_for_the_owner_only(tmp_path: Path) -> None:
    with config.override(cache_dir=str(tmp_path / "new")):
        cache.current().put("plans", "a", b"x")
    for path in (tmp_path / "new", tmp_path / "new" / "plans"):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_write_is_refused_with_a_warning(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with config.override(cache_dir=str(shared)):
        with pytest.warns(RuntimeWarning, match="written by others"):
            store = cache.current()
        store.put("plans", "a", b"x")
        assert store.get("plans", "a") is None
    assert not list(shared.iterdir())


def test_a_place_that_is_no_directory_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with config.override(cache_dir=str(tmp_path / "file" / "cache")):
        with pytest.warns(RuntimeWarning, match="cannot make"):
            store = cache.current()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.current() is store
            store.put("plans", "a", b"x")
            assert store.get("plans", "a") is None


def test_a_write_that_fails_costs_one_warning(store: Cache) -> None:
    assert store.directory is not None
    (store.directory / "plans").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="cannot write"):
        store.put("plans", "a", b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put("plans", "b", b"x")
        assert store.get("plans", "b") is None


def test_the_oldest_files_go_when_the_bound_is_passed(tmp_path: Path) -> None:
    store = Cache(tmp_path, 10**6)
    for number in range(10):
        store.put("plans", str(number), bytes(200))
        path = store.path("plans", str(number))
        assert path is not None
        os.utime(path, (number + 1, number + 1))
    assert store.get("plans", "3") is not None
    Cache(tmp_path, 1000).prune()
    left = sorted(path.name for path in (tmp_path / "plans").iterdir())
    assert left == ["3", "7", "8", "9"]


def test_writing_a_file_does_not_look_at_all_others(tmp_path: Path) -> None:
    looks = 0

    class Watched(Cache):
        def prune(self) -> None:
            nonlocal looks
            looks += len(list(tmp_path.glob("*/*")))
            super().prune()

    store = Watched(tmp_path, 10**9)
    for number in range(600):
        store.put("plans", str(number), b"x")
    assert looks < 3 * 600
    crowded = Watched(tmp_path, 6000)
    for number in range(600):
        crowded.put("kernels", str(number), bytes(1000))
        assert crowded.size_on_disk()[0] < 7500


def test_temporary_files_of_killed_processes_are_removed_in_time(store: Cache) -> None:
    assert store.directory is not None
    store.put("plans", "a", b"x")
    old, young = (store.directory / "plans" / name for name in ("b.1.0.tmp", "c.2.0.tmp"))
    for path in (old, young):
        path.write_bytes(b"half a fi")
    before = time.time() - 10_000
    os.utime(old, (before, before))
    store.prune()
    assert not old.exists()
    assert young.exists()


def _write_and_read(directory: str, number: int) -> bool:
    store = Cache(Path(directory), 10**9)
    for step in range(100):
        store.put("plans", "shared", bytes([number]) * (1000 + step))
        found = store.get("plans", "shared")
        if found is None or len(set(found)) != 1:
            return False
    return True


def test_processes_that_write_one_key_at_once_read_whole_files(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(3) as workers:
        arguments = [(str(tmp_path), number) for number in range(3)]
        assert all(workers.starmap(_write_and_read, arguments))
    assert [path.name for path in (tmp_path / "plans").iterdir()] == ["shared"]


def test_the_cache_can_be_switched_off() -> None:
    with config.override(cache=False):
        store = cache.current()
        store.put("plans", "a", b"x")
        assert store.get("plans", "a") is None
        assert store.path("plans", "a") is None
