"""How a loop runs: as one kernel of one block, of a grid whose blocks meet, or round by round.

In: what the launches of a round cost, how often its phases meet, how many blocks may meet. Out: how
many blocks, 0 for round by round. This is an estimate from extents that are known before the loop;
all its numbers stand here. They are those of an H200.

A launch costs what it takes in rounds that are graphs (`round_graphs`), its kernel's beginning and
end included. Inside of a kernel a phase takes its time as well, however little it computes, and a
meeting: a barrier of a block, or one of the grid, which lasts as long as a few trips to the L2
cache and the longer the more blocks count themselves in. What a phase computes is shared by as many
blocks as it has work for. A grid has one block for each multiprocessor, and so hides less latency
than launches that fill the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyrelay.records import dataclass

LAUNCH = 4_000_000
"""Picoseconds of a launch: recurrent networks of 32 to 256 elements took 3.7 to 4.9 us for each of
a round's, a generator of characters 4.1."""

PHASE = 800_000
"""Picoseconds of a phase that computes little: gates of an LSTM took 1800 cycles, its product
1500."""

BLOCK_BARRIER = 100_000
GRID_BARRIER, GRID_BARRIER_BLOCK = 1_000_000, 1_000
"""Picoseconds of a barrier: of a block; of a grid, and more for each of its blocks."""

CORES, CORES_PRODUCT = 2, 2
"""How many cores of a CPU, in whose picoseconds work is told, a block is as fast as: at elements
(10,000 of `np.tanh(x) + x / (x * x).sum()` took 5.6 us a round, 1.8 of which are two phases and
barriers), at products, whose weights it may have to read again."""

FULL, LIBRARY = 2, 8
"""How much faster the whole machine is than a grid that meets: at elements, at products."""

CORES_GRID, CORES_LIBRARY = 3, 8
"""How much faster tensor cores are at products: in a grid that meets, in the device's library."""

LIBRARY_TILES = 16
"""Tiles of 16 by 16 elements that the device's library has a multiprocessor compute."""

PHASE_THREADS = 256
PRODUCT_BLOCKS = 2
"""Blocks that a tile of 16 by 16 elements of a product is worth."""

BY_THREADS, BY_BLOCKS, BY_PRODUCT = "threads", "blocks", "product"


@dataclass(frozen=True, slots=True)
class Work:
    """A launch of a round: its items, picoseconds of a core for each, and what works on an item."""

    items: int
    cost: int
    by: str

    @property
    def total(self) -> int:
        """Picoseconds of a core."""
        return max(self.items, 0) * self.cost

    @property
    def blocks(self) -> int:
        """How many blocks can share it."""
        items = max(self.items, 1)
        if self.by == BY_THREADS:
            return -(-items // PHASE_THREADS)
        return items * (PRODUCT_BLOCKS if self.by == BY_PRODUCT else 1)


def blocks_of(work: Sequence[Work], meets: int, most: int, cores: bool = False) -> int:
    """With how many blocks a loop is fastest; 0: round by round. `most` may meet. cores: whether
    tensor cores may multiply."""
    best, least = 0, _rounds(work, most, cores)
    for blocks in _grids(most):
        took = _meeting(work, meets, blocks, cores)
        if took < least:
            best, least = blocks, took
    return best


def form_of(blocks: int) -> str:
    """What that means, for people."""
    if blocks == 0:
        return "ran round by round, since the machine is faster than blocks that meet"
    if blocks == 1:
        return "ran as one kernel of one block"
    return f"ran as one kernel of {blocks} blocks that meet"


def _grids(most: int) -> Iterator[int]:
    """1, the powers of two, and all that may meet."""
    blocks = 1
    while blocks < most:
        yield blocks
        blocks *= 2
    yield max(most, 1)


def _meeting(work: Sequence[Work], meets: int, blocks: int, cores: bool) -> float:
    barrier = GRID_BARRIER + GRID_BARRIER_BLOCK * blocks if blocks > 1 else BLOCK_BARRIER
    product = CORES_PRODUCT * (CORES_GRID if cores else 1)
    return meets * barrier + sum(
        PHASE + w.total / (min(blocks, w.blocks) * (product if w.by == BY_PRODUCT else CORES))
        for w in work
    )


def _rounds(work: Sequence[Work], most: int, cores: bool) -> float:
    library = CORES_PRODUCT * LIBRARY * (CORES_LIBRARY if cores else 1)
    return sum(
        LAUNCH + w.total / (
            library * min(most, max(w.items // LIBRARY_TILES, 1)) if w.by == BY_PRODUCT
            else CORES * min(FULL * most, w.blocks)
        )
        for w in work
    )
