"""Dicts and sets whose keys are known apart do what Python's do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyrelay.infer.in_python.few import FewEntries, FewMembers

KEYS = [1, 2.5, "a", (1, 2), None]


def changed(held: Any, rng: random.Random) -> list[Any]:
    """What a dict gives while it is changed."""
    found: list[Any] = []
    for _ in range(60):
        key = rng.choice(KEYS)
        match rng.randrange(7):
            case 0 | 1:
                held[key] = rng.random()
            case 2:
                found.append(held.pop(key, None))
            case 3:
                found.append((key in held, held.get(key), len(held)))
            case 4:
                found.append(held.setdefault(key, 0))
            case 5:
                found.append((list(held), list(held.items()), list(held.values())))
            case 6 if key in held:
                del held[key]
    other = held.copy()
    other.update({"b": 3})
    return [*found, list(other.items()), other.popitem(), len(other), list(held)]


@pytest.mark.parametrize("seed", range(3))
def test_entries(seed: int) -> None:
    assert changed(FewEntries(), random.Random(seed)) == changed({}, random.Random(seed))


@pytest.mark.parametrize("seed", range(3))
def test_members(seed: int) -> None:
    rng = random.Random(seed)
    mine, theirs = FewMembers([1, 2, 2]), {1, 2}
    for _ in range(60):
        key = rng.choice(KEYS)
        name = rng.choice(["add", "discard"])
        getattr(mine, name)(key)
        getattr(theirs, name)(key)
        assert len(mine) == len(theirs)
        assert all((k in mine) == (k in theirs) for k in KEYS)
        assert sorted(mine, key=repr) == sorted(theirs, key=repr)
    assert set(mine.copy()) == set(mine.union([])) == theirs


def test_what_is_not_there() -> None:
    for made in (FewEntries(), FewMembers()):
        with pytest.raises(KeyError):
            made.pop() if isinstance(made, FewMembers) else made.pop(1)
    with pytest.raises(KeyError):
        FewEntries().popitem()
