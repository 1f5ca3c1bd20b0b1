"""Keeping compiled programs, and finding one for a call.

In: what is called, the key of its arguments, a compiled program. Out: `keep` writes it to the disk
cache; `find` gives a program that serves a call, or None.

A file has the programs for one thing called with one key: its name is a digest of both, of the
settings, of the versions and files that decide what a compiler makes, and of the processor. Each
program in it lists what was read under names while it was compiled: where, and a digest of all
that was found. It serves where the same is found now: what changes a guard in one process changes
a digest in the next. What has no description, or no place, is not kept. Files that cannot be read
count as missing.
"""

from __future__ import annotations

import functools
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from pyrelay import config
from pyrelay.boundary import Program
from pyrelay.build import Build, Step
from pyrelay.devices import cache
from pyrelay.devices.compiler import native
from pyrelay.devices.fingerprints import installation
from pyrelay.infer.guards import ABSENT, NameGuard
from pyrelay.infer.in_python.entries import entries_class, is_entries
from pyrelay.infer.in_python.fixed_lists import fixed_class, is_fixed
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families, is_anonymous
from pyrelay.infer.specialised import Binding, HiddenArgument
from pyrelay.infer.structure import Flattened, Key, flatten, forget, mark
from pyrelay.records import dataclass
from pyrelay.store.descriptions import Description
from pyrelay.store.places import Path, Places, constant, own_place
from pyrelay.store.records import NotStorableError, from_bytes, to_bytes

KIND = "programs"
"""The cache's name for programs."""

_MOST_KEPT = 16
"""Programs in one file; the one made first goes."""

_MOST_BYTES = 8 << 20
"""Bytes of one file."""

#: Settings that do not change what is compiled.
_OTHER_SETTINGS = frozenset((
    "dump", "dump_dir", "time", "cache", "cache_dir", "cache_size", "traceback", "verify",
    "compile_processes",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Called:
    """What was called: the triple of a transform (`__pyrelay__`), and the key of the arguments."""

    transform: tuple[str, Any, dict[str, Any]]
    key: Key


_Hidden = tuple[int, str, Key | None]


@dataclass(frozen=True, slots=True)
class _Types:
    """A program's own data types: of each class what tells it (`_told`)."""

    rows: bool
    fixed: bool
    mixed: bool
    groups: list[list[tuple[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Read:
    """Something that was read under a name, or (without one) found among what others led to.

    hidden: number and name of the argument that it became, and its key if it is one of the objects
    before it; None for a guard.
    """

    guard: NameGuard | None
    value: Any
    hidden: _Hidden | None = None


def keep(called: Called, program: Program, key: Key) -> None:
    """Write a program to the disk cache, if the settings allow it and all it refers to has a place.

    key: that of its arguments; `called` has the one that calls begin with (see `find`).
    """
    if program.build.encoded is None or not _is_wanted():
        return
    name = _name(called)
    if name is None:
        return
    try:
        entry = _entry(replace(called, key=key), program, called.key)
    except Exception:  # beside our own: attributes of the user's objects may raise anything
        return
    store = cache.current()
    known = [e for e in _entries(store, name) if e[0] != entry[0]]
    kept, size = [entry], 0
    for each in known[: _MOST_KEPT - 1]:
        size += sum(map(len, each))
        if size < _MOST_BYTES:
            kept.append(each)
    store.put(KIND, name, pickle.dumps(kept, pickle.HIGHEST_PROTOCOL))


Again = Callable[[int, Families], tuple[Key, Flattened]]
"""Key and arguments, with lists up to a length taken apart and objects of data types as nodes."""


def find(
    called: Called, flat: Flattened, again: Again
) -> tuple[Program, Key, Flattened] | None:
    """A kept program that serves a call, its key and leaves; None if there is none.

    flat: the arguments. again: the arguments as a program may need them. The leaves are those of
    the arguments and of captured objects.
    """
    if not _is_wanted():
        return None
    name = _name(called)
    if name is None:
        return None
    store = cache.current()
    before = mark(flat)
    for head, rest, plan in _entries(store, name):
        started = time.perf_counter()
        try:
            found = _loaded(called, flat, again, head, rest, plan, started)
        except Exception:  # a name is gone; and what pickle raises on foreign bytes has no class
            found = None
        if found is not None:
            return found
        forget(flat, before)
    return None


_Entry = tuple[bytes, bytes, bytes]
"""What a program was compiled for (equal heads, equal programs), its binding, its plan."""


def _entries(store: cache.Cache, name: str) -> list[_Entry]:
    data = store.get(KIND, name)
    if data is None:
        return []
    try:
        return [(head, rest, plan) for head, rest, plan in pickle.loads(data)]
    except Exception:  # what pickle raises on foreign bytes has no common class
        return []


def _is_wanted() -> bool:
    """Whether the settings of the moment let programs come from disk: not if stages are to be
    checked or shown."""
    settings = config.current()
    return settings.cache and not (settings.verify or settings.dump or settings.interpret)


# -- names of files --------------------------------------------------------------------------------


def _name(called: Called) -> str | None:
    """The name of the file for a call; None if what is called has no description."""
    settings = config.current()
    chosen = cache.current().path("choices", "")
    tuned = chosen is not None and chosen.exists() and chosen.stat().st_mtime_ns
    made = Description()
    try:
        made.text(installation(), tuned, *(
            f"{f.name}={getattr(settings, f.name)}" for f in fields(settings)
            if f.name not in _OTHER_SETTINGS
        ))  # fmt: skip
        _describe_call(made, called)
    except Exception:  # beside NoDescriptionError: see `keep`
        return None
    return made.digest()


def _describe_call(made: Description, called: Called) -> None:
    kind, function, options = called.transform
    made.text(kind, *sorted(options))
    made.add_all(options[name] for name in sorted(options))
    made.add(function)
    made.add(called.key)


# -- one program -----------------------------------------------------------------------------------


def _entry(called: Called, program: Program, first: Key) -> _Entry:
    binding, build = program.binding, program.build
    types = _classes_of(binding.families, first)
    flattened = functools.partial(_captured, binding.apart, binding.families or EVERYWHERE)
    for hidden in binding.hidden:
        if _again(hidden.key) is None and flattened(hidden.read(), hidden.name) != hidden.key:
            raise NotStorableError(f"{hidden.name} contains an object that is found elsewhere, too")
    places = _start(called)
    order = _in_order(places, flattened, [
        *(_Read(guard, guard.value) for guard in binding.names),
        *(_Read(h.source, h.read(), (k, h.name, _again(h.key)))
          for k, h in enumerate(binding.hidden)),
    ])  # fmt: skip
    made = Description()
    _describe_call(made, called)
    reads = []
    for number, (read, path) in enumerate(order):
        guard = read.guard
        told = None
        if guard is not None:
            told = (guard.kind, guard.name, guard.by_value, guard.value is ABSENT)
        reads.append((path, told, read.hidden))
        _describe(made, places, number, guard, read.value, read.hidden)
    rest = replace(binding, names=(), hidden=(), families=None)
    only_for = repr((binding.extents, binding.static, binding.layouts))
    needs = binding.apart, types
    head = (needs, made.digest(), reads, only_for)
    files = tuple(made.files)
    facts = (program.signature, build.kernels, build.launches)
    return (
        pickle.dumps(head, pickle.HIGHEST_PROTOCOL),
        to_bytes((rest, facts), places, files),
        to_bytes(build.encoded, places, files),
    )


def _classes_of(families: Families | None, key: Key) -> _Types | None:
    """Where the key that calls begin with has the classes of a program's own data types.

    Raises NotStorableError for classes that are elsewhere.
    """
    if families is None:
        return None
    places = Places()
    places.enter("key", key)
    own = dict.fromkeys(f for f in families.entered.values() if f is not None)
    groups = [
        [_told(cls, places) for cls in f.classes[1:] if not is_anonymous(cls)]
        for f in own
    ]  # fmt: skip
    if any(found is None for group in groups for _, found in group):
        raise NotStorableError("a class of nodes is not found among the arguments")
    told = [group for group in groups if group]
    return _Types(families.rows, families.fixed, families.mixed, told)


def _told(cls: Any, places: Places) -> tuple[str, Any]:
    """What tells a class: the keys of its dicts, the length of its lists, or where it is."""
    if is_entries(cls):
        return "keys", cls.labels
    return ("list", (len(cls.names), cls.site)) if is_fixed(cls) else ("place", places.path(cls))


def _families_at(types: _Types | None, key: Key) -> Families:
    """The data types whose classes a key has at these places."""
    if types is None:
        return EVERYWHERE
    places = Places()
    places.enter("key", key)
    families = Families(EVERYWHERE, rows=types.rows, fixed=types.fixed, mixed=types.mixed)
    for group in types.groups:
        families.declare([
            entries_class(*found) if told == "keys" else
            fixed_class(*found) if told == "list" else places.at(found) for told, found in group
        ])
    return families


def _captured(apart: int, families: Families, value: Any, name: str) -> Key:
    """The key of an object that a program reads, as its arguments are taken apart."""
    return flatten([(value, name)], Flattened(apart=apart, families=families), captured=True)


def _again(key: Key) -> Key | None:
    """The key of an object that is one of those before it."""
    (own,), _ = key
    return key if own[0] == "again" else None


def _start(called: Called) -> Places:
    places = Places()
    places.enter("callee", called.transform[1])
    places.enter("key", called.key)
    return places


def _in_order(
    places: Places, flattened: Callable[[Any, str], Key], reads: Sequence[_Read]
) -> list[tuple[_Read, Path]]:
    """The reads, each behind those that lead to where it reads, with the path of that place."""
    order: list[tuple[_Read, Path]] = []
    waiting = list(reads)
    while waiting:
        left = []
        for read in waiting:
            if read.guard is None:
                path = places.path(read.value) or own_place(read.value)
            else:
                path = places.path(read.guard.container)
            if path is None:
                left.append(read)
                continue
            number = len(order)
            order.append((read, path))
            _enter(places, flattened, number, read.value, read.hidden)
        if len(left) == len(waiting):
            raise NotStorableError(f"nothing leads to {left[0]}")
        waiting = left
    return order


def _enter(
    places: Places, flattened: Callable[[Any, str], Key], number: int, value: Any,
    hidden: _Hidden | None,
) -> None:
    """Let paths begin at what a read gave."""
    if not constant(value):
        places.enter(number, value)
    if hidden is not None:
        places.enter(("key", number), flattened(value, hidden[1]))


def _describe(
    made: Description, places: Places, number: int, guard: NameGuard | None, value: Any,
    hidden: _Hidden | None,
) -> None:
    if hidden is not None:
        made.text("hidden")
        made.add(places.at((("key", number),)))
    elif guard is not None:
        if isinstance(guard.container, type):
            made.add(guard.container)
        made.text(guard.kind, guard.name)
        made.member(guard.container, guard.name, value)


def _loaded(
    called: Called, flat: Flattened, again: Again, head: bytes, rest: bytes, plan: bytes,
    started: float,
) -> tuple[Program, Key, Flattened] | None:
    (apart, types), digest, reads, _ = pickle.loads(head)
    families = _families_at(types, called.key)
    if apart != flat.apart or types is not None:
        key, flat = again(apart, families)
        called = replace(called, key=key)
    flattened = functools.partial(_captured, apart, families)
    places = _start(called)
    made = Description()
    _describe_call(made, called)
    names: list[NameGuard] = []
    captured: dict[int, HiddenArgument] = {}
    for number, (path, told, hidden) in enumerate(reads):
        place = places.at(path)
        guard, value = None, place
        if told is not None:
            kind, name, by_value, absent = told
            guard = NameGuard(kind, place, name, ABSENT if absent else None, by_value)
            value = guard.read()
            guard = replace(guard, value=value)
        _enter(places, flattened, number, value, hidden)
        _describe(made, places, number, guard, value, hidden)
        if hidden is not None:
            which, named, seen = hidden
            key = places.at((("key", number),)) if seen is None else seen
            captured[which] = HiddenArgument(guard, value, key, named)
        elif guard is not None:
            names.append(guard)
    if made.digest() != digest:
        return None
    files = tuple(made.files)
    binding: Binding
    binding, (signature, kernels, launches) = from_bytes(rest, places, files)
    binding = replace(
        binding, names=tuple(names), hidden=tuple(captured[k] for k in range(len(captured))),
        families=families if types is not None else None,
    )
    program = Program(binding, _NOTHING, signature)
    if not program.accepts(flat):
        return None
    from pyrelay.devices.runtime.entry import Executable

    before = native.counts.compiled
    encoded = from_bytes(plan, places, files)
    run = Executable(encoded).call
    step = Step("load", "load", time.perf_counter() - started)
    step.report()
    build = Build(
        run, True, (step,), kernels, launches, native.counts.compiled - before, "cpu", encoded
    )
    return replace(program, build=build), called.key, flat


_NOTHING = Build(lambda *_: None, False, (), 0, 0, 0, "cpu")


__all__ = ["KIND", "Called", "find", "keep"]
