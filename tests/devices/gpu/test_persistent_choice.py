"""How a loop runs, by what a round of it costs."""

from __future__ import annotations

from pyrelay.devices.gpu.persistent_choice import BY_PRODUCT, BY_THREADS, Work, blocks_of, form_of


def test_the_form_of_a_loop_follows_from_what_a_round_costs() -> None:
    def lstm_of(width: int, batch: int) -> list[Work]:
        tiles = -(-4 * width // 16) * -(-batch // 16)
        product = Work(tiles, 100 * width * 16 * min(batch, 16), BY_PRODUCT)
        return [product, Work(width * batch, 5000, BY_THREADS)]

    assert blocks_of(lstm_of(32, 1), 2, 132) == 1
    assert 16 <= blocks_of(lstm_of(256, 1), 2, 132) <= 132
    assert 64 <= blocks_of(lstm_of(256, 64), 2, 132) <= 132
    assert blocks_of(lstm_of(4096, 512), 2, 132) == 0
    assert blocks_of(lstm_of(256, 1), 2, 1) <= 1
    # Tensor cores help both, the device's library more than a grid.
    assert 16 <= blocks_of(lstm_of(256, 64), 1, 132, cores=True) <= 132
    assert blocks_of(lstm_of(1024, 64), 1, 132, cores=True) == 0


def test_a_phase_is_shared_by_as_many_blocks_as_it_has_work_for() -> None:
    assert Work(1000, 1, BY_THREADS).blocks == 4
    assert Work(0, 1, BY_THREADS).blocks == 1
    assert Work(64, 1, BY_PRODUCT).blocks == 128
    assert blocks_of([Work(200, 10**6, BY_THREADS)], 1, 132) <= 1


def test_forms_are_told_in_words() -> None:
    assert [form_of(b).split(",")[0] for b in (0, 1, 9)] == [
        "ran round by round", "ran as one kernel of one block",
        "ran as one kernel of 9 blocks that meet",
    ]  # fmt: skip
