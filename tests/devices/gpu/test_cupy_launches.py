"""Launches through CuPy's binding of the driver: grids, parameters, threads."""

from __future__ import annotations

import ctypes
import struct
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pyrelay.devices.gpu.cupy_launches import ELEMENT_THREADS, Grid, Launches, function
from pyrelay.devices.gpu.driver import ADDRESS, Text, shared_bytes

ELEMENTS = "void kernel() {}"
BLOCKS = "#define BLOCK_THREADS 128\n" + ELEMENTS


class Cuda:
    """Notes what is launched, and for which threads a context is made."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.threads: list[int] = []
        self.words = 0
        driver = SimpleNamespace(
            launchKernel=self.launch, launchCooperativeKernel=lambda *a: self.launch(*a, None)
        )
        runtime = SimpleNamespace(setDevice=lambda k: self.threads.append(threading.get_ident()))
        self.cuda = SimpleNamespace(driver=driver, runtime=runtime)

    def launch(self, handle: int, *given: Any) -> None:
        blocks, _, _, threads, _, _, _, stream, table, extra = given
        places = (ctypes.c_void_p * self.words).from_address(table)
        found = [ctypes.c_int64.from_address(place or 0).value for place in places]
        self.seen.append((handle, blocks, threads, stream, found, extra))


def launches(cuda: Cuda) -> Launches:
    return Launches(cuda, 0, 4)


def kernel(source: str, *kinds: str) -> Any:
    return function(SimpleNamespace(ptr=77), Text(source, kinds), 1)


def test_parameters_lie_where_the_table_says() -> None:
    cuda = Cuda()
    cuda.words = 6
    launches(cuda).launch(kernel(BLOCKS, ADDRESS, "f32"), 9, (1, 2, 3, 9, 5, -6), 11)
    assert cuda.seen == [(77, 9, 128, 11, [1, 2, 3, 9, 5, -6], 0)]


def test_a_text_says_how_much_shared_memory_launches_ask_for() -> None:
    source = BLOCKS + "\n#define SHARED_BYTES 81920\n"
    assert (shared_bytes(source), shared_bytes(BLOCKS)) == (81920, 0)
    made = function(SimpleNamespace(ptr=77), Text(source, ()), 1, asked=shared_bytes(source))
    assert launches(Cuda())._grid(made, 9, 0) == Grid(9, 128, shared=81920)


def test_complex_numbers_are_two_words_of_one_parameter() -> None:
    cuda = Cuda()
    cuda.words = 7
    made = kernel(ELEMENTS, "c128", "i64", "c128")
    launches(cuda).launch(made, 1, (1, 2, 3, 1, 50, 51, 6, 70, 71), 0)
    assert cuda.seen[0][4] == [1, 2, 3, 1, 50, 6, 70]


def test_there_is_room_for_any_number_of_parameters() -> None:
    cuda = Cuda()
    count = 4 + 1000
    cuda.words = count
    words = tuple(range(count))
    where = launches(cuda)
    where.launch(kernel(BLOCKS, *["i64"] * 1000), 1, words, 0)
    cuda.words = 5
    where.launch(kernel(BLOCKS, "i64"), 1, (5, 4, 3, 2, 1), 0)
    assert [each[4] for each in cuda.seen] == [list(words), [5, 4, 3, 2, 1]]


@pytest.mark.parametrize(("items", "grid"), [
    (1, (1, 32)), (129, (3, 64)), (4 * 256, (4, 256)), (4 * 256 + 1, (5, 256)),
    (10**9, (10**9 // ELEMENT_THREADS, ELEMENT_THREADS)),
])  # fmt: skip
def test_few_items_are_spread_over_all_multiprocessors(items: int, grid: tuple[int, int]) -> None:
    cuda = Cuda()
    cuda.words = 4
    where, made = launches(cuda), kernel(ELEMENTS)
    for _ in range(2):
        where.launch(made, items, (0, 0, 0, items), 0)
    assert [each[1:3] for each in cuda.seen] == [grid, grid]


def test_grids_are_remembered_for_some_numbers_of_items_only() -> None:
    cuda = Cuda()
    cuda.words = 4
    where, made = launches(cuda), kernel(ELEMENTS)
    for items in range(1, 1000):
        where.launch(made, items, (0, 0, 0, items), 0)
    assert len(made.grids) <= 256


def test_blocks_that_meet_run_at_the_same_time() -> None:
    cuda = Cuda()
    cuda.words = 4
    where, made = launches(cuda), kernel(BLOCKS)
    where.launch_meeting(made, 4, (0, 0, 0, 1), 3)
    where.launch_meeting(made, 1, (0, 0, 0, 1), 3)
    assert [(*each[1:4], each[5]) for each in cuda.seen] == [(4, 128, 3, None), (1, 128, 3, 0)]


def test_threads_have_a_context_and_words_of_their_own() -> None:
    cuda = Cuda()
    cuda.words = 4
    where, made = launches(cuda), kernel(BLOCKS)
    inside, others = threading.Event(), threading.Event()
    issue = where.issue

    def slow(*given: Any) -> None:
        if not inside.is_set():
            inside.set()
            others.wait(10)  # another thread launches between these words and their launch
        issue(*given)

    where.issue = slow
    first = threading.Thread(target=where.launch, args=(made, 1, (1, 1, 1, 1), 0))
    first.start()
    inside.wait(10)
    where.launch(made, 2, (2, 2, 2, 2), 0)
    others.set()
    first.join()
    assert [each[4] for each in cuda.seen] == [[2, 2, 2, 2], [1, 1, 1, 1]]
    assert len(set(cuda.threads)) == 2


def test_too_few_words_are_no_launch() -> None:
    with pytest.raises(struct.error):
        launches(Cuda()).launch(kernel(BLOCKS, "i64"), 1, (0, 0, 0, 1), 0)
