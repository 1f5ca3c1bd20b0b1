"""What a kernel's loop keeps in shared memory where one block runs it.

In: the groups of buffers of the loop's arena, arrays that it changes in place. Out: lines that put
the arena into shared memory, and those arrays for as long as the loop lasts, as far as there is
room; whatever is left lies where it was.

No other block looks at what one block alone computes before the loop ends, but its threads wait for
each other's elements several times a round: some 30 cycles in shared memory, 270 in the cache that
all blocks share. Which extents fit is known to kernels of known extents alone (`persistent_known`):
`ROOM_NEAR` is the bytes there are, 0 in all other kernels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pyrelay.devices.gpu.persistent_phases import MOST_SHARED, shared_bytes
from pyrelay.devices.gpu.persistent_prelude import ALIGNED, GROUPS

SWITCH = "#define ROOM_NEAR 0"
"""A line of each kernel's text."""

LEAST = 4096
"""Bytes that weights leave, if they would take all."""

_WEIGHTS = re.compile(r"#define WEIGHTS (\d+)")


def with_room(source: str) -> str:
    """A kernel's text with all the shared memory that there is for what it works in."""
    room = MOST_SHARED - shared_bytes(source)
    for weights in map(int, _WEIGHTS.findall(source)):
        given = min(max(LEAST - room, 0), weights)
        room += given
        source = _WEIGHTS.sub(f"#define WEIGHTS {weights - given}", source)
    return source.replace(SWITCH, f"#define ROOM_NEAR {max(room, 0)}")


def begun(
    before: int, chunks: Sequence[int], arrays: Sequence[int], turned: Collection[int]
) -> list[str]:
    """Lines that say where the arena and the arrays are. before: bytes of the arena that are no
    group's; chunks: how many buffers each group has; arrays: slots; turned: those of them that
    take turns with another buffer."""
    sizes = [f"{count} * step{g}" for g, count in enumerate(chunks)]
    aligned = f"(far + {before + GROUPS + ALIGNED - 1}) / {ALIGNED} * {ALIGNED}"
    near = [f"const i64 arena_bytes = {' + '.join([str(before), *sizes])};"]
    near.append("const i64 near_arena = arena_bytes <= ROOM_NEAR ? arena_bytes : 0;")
    end = "near_arena"
    for k in arrays:
        many = 2 if k in turned else 1
        near += [
            f"const i64 each{k}_bytes = (ends{k} + 15) / 16 * 16;",
            f"const i64 near{k} = {end} + {many} * each{k}_bytes <= ROOM_NEAR ? each{k}_bytes : 0;",
            f"const i64 end{k} = {end} + {many} * near{k};",
        ]
        end = f"end{k}"
    near += [
        f"PYRELAY_SHARED(u64, nearby, {end} / 8 + 2);", "const i64 nearest = (i64)&nearby[0];",
        "const i64 arena = near_arena > 0 ? nearest : far;",
        f"const i64 begins = near_arena > 0 ? nearest + {before} : {aligned};",
    ]
    end = "near_arena"
    for k in arrays:
        near += [
            f"if (near{k} > 0) {{", f"    s{k} = nearest + {end};",
            f"    PYRELAY_TAKEN(s{k}, ends{k});", f"    pyrelay_copy(s{k}, origin{k}, ends{k});",
            *[f"    other{k} = s{k} + near{k};"] * (k in turned), "}",
        ]
        end = f"end{k}"
    return [
        *(f"const i64 origin{k} = s{k};" for k in arrays),
        "#if ROOM_NEAR", *near, "__syncthreads();", "#else",
        f"const i64 arena = far, begins = {aligned};", "#endif",
    ]


def ended(arrays: Sequence[int]) -> list[str]:
    """Lines that leave the arrays where they were."""
    return [f"pyrelay_copy(origin{k}, s{k}, ends{k});" for k in arrays]
