"""Tables that do not grow without end."""

from __future__ import annotations

from pyrelay.devices.gpu.bounded import MOST_KEPT, Bounded


def test_a_full_table_begins_anew() -> None:
    table: Bounded[int, int] = Bounded()
    for k in range(MOST_KEPT):
        table[k] = -k
    assert table == {k: -k for k in range(MOST_KEPT)}
    table[MOST_KEPT] = 1
    assert table == {MOST_KEPT: 1}
