"""Tables of keys that only the running program knows: how long a key is sought."""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python.tables import Table, place_of


class Counted(list[Any]):
    """A list that counts how often an item is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


def test_keys_that_lack_among_neighbouring_numbers_are_not_sought_for_long() -> None:
    table = Table((k, k) for k in range(4000))
    slots = Counted(table.slots)
    lacking = [len(slots) * 3 + 10 * k for k in range(400)]
    assert all(place_of(key, slots, table.names, table.alive) < 0 for key in lacking)
    assert slots.reads < 20 * len(lacking)
