"""The disk cache: bytes by kind and key, shared by processes, bounded, never trusted blindly.

In: a directory (`PYRELAY_CACHE_DIR`, else the user's cache directory). Out: `Cache.get` and `put`.

* A file holds a header (magic, checksum) and the bytes. What is truncated, corrupt or foreign is
  removed and counts as missing.
* Files are written under another name and renamed, so readers in other processes see all or
  nothing, and a killed process leaves at most a temporary file, which pruning removes.
* Only directories that belong to this user, and that nobody else can write, are used: object code
  from them is executed.
* Above its bound the files used longest ago go; a read touches its file.
* A directory that cannot be written costs one warning; everything works without it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import stat
import sys
import threading
import time
import warnings
from pathlib import Path

from pyrelay import config
from pyrelay.records import dataclass

MAGIC = b"pyrelay cache 1\n"
_HEADER = len(MAGIC) + hashlib.sha256().digest_size
_PRUNE_EVERY = 64  # writes, or as many as there are files: pruning looks at every file
_OVERSHOOT = 8  # the part of the bound that other processes may have written meanwhile
_STALE_SECONDS = 3600


@dataclass(slots=True)
class CacheCounts:
    """What happened so far in this process."""

    hits: int = 0
    misses: int = 0
    writes: int = 0
    rejected: int = 0


class Cache:
    """One directory."""

    def __init__(self, directory: Path | None, size: int) -> None:
        """`directory` None keeps nothing; `size` is the bound in bytes."""
        self.directory = directory
        self.size = size
        self.counts = CacheCounts()
        self._names = itertools.count()
        self._warned = False
        self._writes_left = self._bytes_left = 0  # until files are counted again

    def path(self, kind: str, key: str, suffix: str = "") -> Path | None:
        """Where the file for a key lies or would lie."""
        if self.directory is None:
            return None
        return self.directory / kind / (key + suffix)

    def is_empty(self, kind: str) -> bool:
        """Whether nothing of this kind is kept."""
        path = self.path(kind, "")
        try:
            return path is None or next(path.iterdir(), None) is None
        except OSError:
            return True

    def get(self, kind: str, key: str) -> bytes | None:
        """The bytes stored for a key, or None."""
        path = self.path(kind, key)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                owned = _is_ours(os.fstat(file.fileno()))
                data = file.read() if owned else b""
        except OSError:
            self.counts.misses += 1
            return None
        payload = data[_HEADER:]
        if data[:_HEADER] != MAGIC + hashlib.sha256(payload).digest():
            self.counts.rejected += 1
            self.counts.misses += 1
            _remove(path)
            return None
        self.counts.hits += 1
        _touch(path)
        return payload

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Store bytes for a key; failure is a warning, once."""
        self._write(kind, key, MAGIC + hashlib.sha256(data).digest() + data)

    def put_text(self, kind: str, key: str, suffix: str, text: str) -> None:
        """Store a text for people and debuggers to read; `get` does not know it."""
        self._write(kind, key + suffix, text.encode())

    def _write(self, kind: str, name: str, data: bytes) -> None:
        path = self.path(kind, name)
        if path is None:
            return
        temporary = path.with_name(f"{name}.{os.getpid()}.{next(self._names)}.tmp")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError as error:
            _remove(temporary)
            if not self._warned:
                self._warned = True
                _warn(f"cannot write {path.parent}: {error}")
            return
        self.counts.writes += 1
        self._writes_left -= 1
        self._bytes_left -= len(data)
        if self._writes_left < 0 or self._bytes_left < 0:
            self.prune()

    def prune(self) -> None:
        """Remove the files used longest ago until the rest fits, and temporary files left over."""
        if self.directory is None:
            return
        entries = []
        now = time.time()
        for path in self.directory.glob("*/*"):
            try:
                status = path.stat()
            except OSError:
                continue
            if path.suffix == ".tmp":
                if now - status.st_mtime > _STALE_SECONDS:
                    _remove(path)
            else:
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        entries.sort(key=lambda entry: entry[0])
        for _, size, path in entries:
            if total <= self.size:
                break
            _remove(path)
            total -= size
        self._writes_left = max(_PRUNE_EVERY, len(entries))
        self._bytes_left = max(self.size - total, self.size // _OVERSHOOT)

    def size_on_disk(self) -> tuple[int, int]:
        """Bytes and number of the files kept now."""
        if self.directory is None:
            return 0, 0
        sizes = []
        for path in self.directory.glob("*/*"):
            try:
                sizes.append(path.stat().st_size)
            except OSError:  # another process removed it
                continue
        return sum(sizes), len(sizes)


def current() -> Cache:
    """The cache that the settings of the moment ask for."""
    settings = config.current()
    if not settings.cache:
        return _cache(None, 0)
    return _cache(settings.cache_dir, settings.cache_size)


_opening = threading.Lock()


def _after_fork() -> None:
    """In a child: a thread that is gone may have held the lock."""
    global _opening
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _cache(directory: str | None, size: int) -> Cache:
    with _opening:
        return _open(directory, size, os.getpid())


@functools.cache
def _open(directory: str | None, size: int, process: int) -> Cache:
    """One `Cache` per setting and process, so that a forked child warns and counts for itself."""
    if directory is None:
        return Cache(None, 0)
    return Cache(_trusted(_place(directory)), size)


def _place(directory: str) -> Path:
    if directory:
        return Path(directory).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser() / "pyrelay"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/pyrelay").expanduser()
    # The XDG Base Directory Specification: a path that is not absolute is to be ignored.
    told = os.environ.get("XDG_CACHE_HOME", "")
    return Path(told if os.path.isabs(told) else "~/.cache").expanduser() / "pyrelay"


def _trusted(directory: Path) -> Path | None:
    """The directory, made if it is missing; None, with a warning, where it cannot be used."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as error:
        _warn(f"cannot make {directory}: {error}")
        return None
    if not _is_ours(status):
        _warn(f"{directory} can be written by others")
        return None
    if not os.access(directory, os.W_OK | os.X_OK):
        _warn(f"cannot write {directory}")
        return None
    return directory


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file or directory belongs to this user and only this user can write it."""
    if not hasattr(os, "getuid"):
        return True
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.getuid() and not status.st_mode & others


def _warn(reason: str) -> None:
    warnings.warn(f"pyrelay keeps no compiled code on disk: {reason}", RuntimeWarning, stacklevel=2)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:  # another process was faster, or it is not ours to remove
        return


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        return
