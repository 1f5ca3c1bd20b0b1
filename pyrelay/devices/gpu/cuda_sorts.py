"""Lines of numbers sorted, or the places that sort them, in CUDA C++.

In: which of both, a dtype, whether a line may be longer than 32 bits count. Out: texts to stand
behind `cuda_prelude`; parameters are those of `lower.planning.target.SortKernels`.

Numbers become keys, unsigned integers in the same order, whose least digits of 8 bits are sorted
first, each time stably (Knuth, The Art of Computer Programming, volume 3, section 5.2.5). NaNs are
the greatest. Where places are asked for, the zeros of both signs are one, and equal elements stay
in their order; where they are not, nothing but keys is moved, and numbers are made of them again.

A block ranks a tile: its warps go through elements in their order, lanes with the same digit find
each other by ballots, and digits are counted for each warp, so that no order hangs on which thread
comes first (Merrill and Grimshaw, "High performance and scalable radix sorting", 2011). By way of
shared memory elements of one digit come to lie side by side. Short lines are sorted so altogether,
as many at a time as a tile has room for, the number of its line being the last digit of each.

Of long lines one kernel counts all digits. Then there is one for each digit, in which tiles tell
each other how many elements of a digit they and those before them have (Adinets and Merrill,
"Onesweep", 2022), by groups: a tile adds up what those of its group before it have told, all at
once, and what groups before have, back to one whose last tile knows the sum. Blocks take tiles by
number in the order in which they begin, so that whoever is waited for runs. Digits that all keys of
a line share move nothing.
"""

from __future__ import annotations

from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import SortKernels

DIGITS = 256
"""Values of a digit."""

THREADS, MOVING, COUNTING = 256, 512, 1024
"""Of a block that sorts short lines, or is part of the kernel of a loop; of one that moves elements
by a digit, and of one that counts digits."""

ROOM = 16384
"""Bytes of shared memory by way of which as many threads as `THREADS` change a tile's order."""

CHUNK, MOST_LINES, GROUP, LOOKED = 8192, 256, 8, 8
"""Elements of a line that a block counts, lines of a tile, tiles of a group, groups that are looked
at together."""

_KEY = """\
__device__ {k} sort_key({t} value) {{
{key}}}
__device__ {t} sort_value({k} key) {{
{value}}}
#define BLOCK_THREADS {block}
"""

# How a tile is ranked: `to` is where each element of the thread comes to lie in it. Thread k tells
# how many elements have digit k as soon as it knows that, and gets where the first of them lies.
_RANKS = """\
const int EACH = {each}, TILE = {tile}, WARPS = {threads} / 32;
// The sum over the threads before.
template <class T> __device__ T sum_before(T value) {{
    PYRELAY_SHARED(T, sums, WARPS);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T upto = value;
    for (int step = 1; step < 32; step *= 2) {{
        const T before = pyrelay_from_below(upto, step);
        if (lane >= step) upto += before;
    }}
    if (lane == 31) sums[warp] = upto;
    __syncthreads();
    T start = upto - value;
    for (int w = 0; w < warp; w++) start += sums[w];
    return start;
}}
template <class Digit, class Tell>
__device__ u32 ranked(u32 (&to)[EACH], const Digit &digit, const Tell &tell) {{
    {counts};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int w = 0; w < WARPS && {has}; w++) counts[w * {digits} + threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) {{
        const u32 of = digit(i), peers = pyrelay_peers(of);
        const u32 below = __popc(peers & ((1u << lane) - 1));
        const int own = warp * {digits} + of;
        const u32 before = counts[own];
        to[i] = (before + below) << 8 | of;
        pyrelay_forget(to[i]);
        __syncwarp();
        if (below == 0) counts[own] = (u16)(before + __popc(peers));
        __syncwarp();
    }}
    __syncthreads();
    u32 of_warp[WARPS], count = 0;
#pragma unroll
    for (int w = 0; w < WARPS && {has}; w++) {{
        count += of_warp[w] = counts[w * {digits} + threadIdx.x];
    }}
    tell(count);
    const u32 start = sum_before(count);
    u32 at = start;
#pragma unroll
    for (int w = 0; w < WARPS && {has}; w++) {{
        counts[w * {digits} + threadIdx.x] = (u16)at;
        at += of_warp[w];
    }}
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) {{
        to[i] = (to[i] >> 8) + counts[warp * {digits} + (to[i] & 255)];
    }}
    return start;
}}
// Element i of a thread is one of its warp's neighbours: number 32 * i from here.
__device__ int first_place(u32 thread) {{ return thread / 32 * EACH * 32 + thread % 32; }}
"""

_LINES = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> x,
    Buffer<{made}> result, i64 n, i64 lines, i64 together
) {{
    if (pyrelay_over(record, launch)) return;
    Buffer<{room}> room = pyrelay_sort_room<{room}>();
    const int own = first_place(threadIdx.x);
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 begin = item * together, base = begin * n;
        const int here = (int)(lines - begin < together ? lines - begin : together);
        const int length = (int)n, count = here * length;
        const int left = count - own;
        {k} key[EACH];
        u32 place[EACH], to[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            place[i] = own + 32 * i;
            key[i] = 32 * i < left ? sort_key(x[base + own + 32 * i]) : ({k})~({k})0;
        }}
        const {k} first_key = sort_key(x[base]);
#pragma unroll 1
        for (int pass = 0; pass < {passes} + (here > 1); pass++) {{
            // What lies behind the last element stays there.
            auto digit = [&](int i) {{
                if (pass < {passes}) return (u32)(key[i] >> 8 * pass & 255);
                const u32 line = place[i] / length;
                return line < 255 ? line : 255;
            }};
            if (pass < {passes}) {{
                bool differs = false;
#pragma unroll
                for (int i = 0; i < EACH; i++) {{
                    differs |= 32 * i < left && ((key[i] ^ first_key) >> 8 * pass & 255) != 0;
                }}
                if (!__syncthreads_or(differs)) continue;
            }}
            ranked(to, digit, [](u32) {{}});
#pragma unroll
            for (int i = 0; i < EACH; i++) room[to[i]] = key[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < EACH; i++) key[i] = ({k})room[own + 32 * i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < EACH; i++) room[to[i]] = place[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < EACH; i++) place[i] = (u32)room[own + 32 * i];
        }}
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            if (32 * i < left) result[base + own + 32 * i] = {line_result};
        }}
    }}
}}
"""

_COUNT = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> x,
    Buffer<u64> memory, i64 n
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED(u32, counts, {values});
    const i64 chunks = (n + {chunk} - 1) / {chunk};
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 line = item / chunks, start = item % chunks * {chunk};
        const int count = n - start < {chunk} ? (int)(n - start) : {chunk};
        for (int e = threadIdx.x; e < {values}; e += BLOCK_THREADS) counts[e] = 0;
        __syncthreads();
        for (int begin = threadIdx.x; begin < count; begin += 8 * BLOCK_THREADS) {{
            {t} value[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {{
                const int e = begin + i * BLOCK_THREADS;
                value[i] = x[line * n + start + (e < count ? e : begin)];
            }}
#pragma unroll
            for (int i = 0; i < 8; i++) {{
                if (begin + i * BLOCK_THREADS >= count) break;
                const {k} key = sort_key(value[i]);
                for (int pass = 0; pass < {passes}; pass++) {{
                    atomicAdd(&counts[pass * {digits} + (int)(key >> 8 * pass & 255)], 1u);
                }}
            }}
        }}
        __syncthreads();
        for (int e = threadIdx.x; e < {values}; e += BLOCK_THREADS) {{
            if (counts[e]) atomicAdd(&memory[{head} + line * {values} + e], (u64)counts[e]);
        }}
        __syncthreads();
    }}
}}
"""

# What tiles tell each other, in a word: a number of elements, and in 8 bits which pass it is of and
# whether it is the tile's alone or with those before it. So words of an earlier pass say nothing.
_MOVE = """\
extern "C" __global__{bounds} void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> x,
    Buffer<const {k}> keys, Buffer<{k}> new_keys,{places} Buffer<{made}> result,
    Buffer<u64> memory, i64 n, i64 lines, i64 pass, i64 ends
) {{
    if (pyrelay_over(record, launch)) return;
    {room_of_tile};
    const int PARTS = BLOCK_THREADS / {digits};  // of the tiles before, for each digit
    PYRELAY_SHARED(i64, starts, {digits});
    PYRELAY_SHARED(u64, shares, BLOCK_THREADS);
    PYRELAY_SHARED(i64, number, 1);
    const i64 tiles = (n + TILE - 1) / TILE;
    const u64 alone = 2 * (u64)pass + 1, most = ((u64)1 << 56) - 1;
    for (bool more_tiles = true; more_tiles; more_tiles = gridDim.x < last - first) {{
        __syncthreads();
        // The tiles before are those of blocks that have begun.
        if (threadIdx.x == 0) number[0] = first + (i64)atomicAdd(&memory[pass], (u64)1);
        __syncthreads();
        const i64 item = number[0];
        if (item >= last) break;
        // What hangs on the thread only is not kept from tile to tile.
        u32 thread = threadIdx.x;
        pyrelay_forget(thread);
        const int own = first_place(thread);
        const i64 line = lines == 1 ? 0 : item / tiles, tile = item - line * tiles;
        const i64 begin = tile * TILE, base = line * n, start = base + begin;
        const int count = n - begin < TILE ? (int)(n - begin) : TILE;
        const int left = count - own, beyond = count - (int)thread;
        auto key_at = [&](i64 at) {{ return pass == 0 ? sort_key(x[at]) : keys[at]; }};
        auto put = [&](i64 at, {k} key) {{
{put}        }};
        {k} key[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            key[i] = 32 * i < left ? key_at(start + own + 32 * i) : ({k})~({k})0;
        }}
{put_places}        const i64 counted = {head} + (line * {passes} + pass) * {digits};
        const int digit = (int)(thread % {digits}), part = (int)(thread / {digits});
        auto digit_of = [&]({k} any) {{ return (u32)(any >> 8 * pass & 255); }};
        const u64 of_line = part == 0 ? memory[counted + digit] : 0;
        if (__syncthreads_or(of_line == (u64)n)) {{
#pragma unroll
            for (int i = 0; i < EACH; i++) {{
                if (32 * i >= left) break;
                put(start + own + 32 * i, key[i]);
{put_own_place}            }}
            continue;
        }}
        const i64 all = lines * tiles, in_groups = (tiles + {group} - 1) / {group};
        const i64 words = {head} + lines * {values} + line * tiles * {digits} + digit;
        const i64 groups = words + (all + line * (in_groups - tiles)) * {digits};
        auto tell = [&](i64 to_all, i64 k, u64 state, u64 sum) {{
            *(volatile u64 *)&memory[to_all + k * {digits}] = state << 56 | sum;
        }};
        auto told = [&](i64 by, i64 k) {{ return *(volatile u64 *)&memory[by + k * {digits}]; }};
        u32 to[EACH];
        u64 here = 0;
        const u32 mine = ranked(to, [&](int i) {{ return digit_of(key[i]); }}, [&](u32 same) {{
            // What lies behind the last element has the greatest digit.
            here = same - (digit == 255 ? TILE - count : 0);
            if (part == 0) tell(words, tile, alone, here);
        }});
        // The tiles of the group that are before, all looked at together.
        const int NEAR = ({group} - 2) / PARTS + 1;
        const i64 group = tile / {group};
        const int of_group = (int)(tile - group * {group}) - 1 - part;
        u64 near[NEAR], before = 0;
#pragma unroll
        for (int j = 0; j < NEAR; j++) {{
            const int back = j * PARTS;
            near[j] = back <= of_group ? told(words, tile - 1 - part - back) : alone << 56;
        }}
#pragma unroll
        for (int i = 0; i < EACH; i++) room[to[i]] = key[i];
        const u64 smaller = sum_before(of_line);
#pragma unroll
        for (int j = 0; j < NEAR; j++) {{
            while (near[j] >> 56 < alone) {{
                PYRELAY_PAUSE();
                near[j] = told(words, tile - 1 - part - j * PARTS);
            }}
            before += near[j] & most;
        }}
        if (PARTS > 1) {{
            shares[thread] = before;
            __syncthreads();
            for (int k = 1; k < PARTS && part == 0; k++) before += shares[k * {digits} + digit];
        }}
        if (part == 0) {{
            const bool ends_group = of_group == {group} - 2;
            if (ends_group) tell(groups, group, group == 0 ? alone + 1 : alone, before + here);
            i64 asked = group - 1;
            for (bool more = group > 0; more;) {{
                u64 seen[{looked}];
#pragma unroll
                for (int j = 0; j < {looked}; j++) {{
                    const i64 other = asked > j ? asked - j : 0;
                    seen[j] = told(groups, other);
                }}
                bool waits = false;
#pragma unroll
                for (int j = 0; j < {looked}; j++) {{
                    waits |= seen[j] >> 56 < alone;
                    if (!more || waits) continue;
                    before += seen[j] & most;
                    more = seen[j] >> 56 == alone;
                    asked--;
                }}
                if (more && waits) PYRELAY_PAUSE();
            }}
            if (ends_group && group > 0) tell(groups, group, alone + 1, before + here);
            starts[digit] = (i64)(smaller + before) - (i64)mine;
        }}
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            if (i * BLOCK_THREADS >= beyond) break;
            const int at = (int)thread + i * BLOCK_THREADS;
            key[i] = ({k})room[at];
            put(base + starts[digit_of(key[i])] + at, key[i]);
        }}
{move_places}    }}
}}
"""

_PUT_PLACES = """\
        auto place_at = [&](i64 at) {{ return pass == 0 ? ({p})at : places[base + at]; }};
        auto put_place = [&](i64 at, {p} place) {{
            if (ends) result[at] = (i64)place;
            else new_places[at] = place;
        }};
"""
_PUT_OWN_PLACE = """\
                put_place(start + own + 32 * i, place_at(begin + own + 32 * i));
"""
_MOVE_PLACES = """\
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            if (32 * i < left) room[to[i]] = place_at(begin + own + 32 * i);
        }}
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            if (i * BLOCK_THREADS >= beyond) break;
            const int at = (int)thread + i * BLOCK_THREADS;
            put_place(base + starts[digit_of(key[i])] + at, ({p})room[at]);
        }}
"""

_FLOAT_KEY = """\
    {u} bits = {bits};
    const {u} size = bits & {rest};
    if (size > {infinity}) return ({k})~({k})0;
{zeros}    return ({u})(bits & {top} ? ~bits : bits | {top});
"""
_FLOAT_VALUE = """\
    const {u} bits = ({u})(key == ({k})~({k})0 ? {nan} : key & {top} ? key ^ {top} : ~key);
{made}"""

_BITS = {
    "f16": ("value.bits", 0x7C00), "bf16": ("value.bits", 0x7F80),
    "f32": ("(u32)__float_as_int(value)", 0x7F800000),
    "f64": ("(u64)__double_as_longlong(value)", 0x7FF0000000000000),
}  # fmt: skip
_OF_BITS = {
    "f32": "    return __int_as_float((i32)bits);\n",
    "f64": "    return __longlong_as_double((i64)bits);\n",
}
_OF_HALF_BITS = "    {t} value;\n    value.bits = bits;\n    return value;\n"

HEAD = 8
"""Words before the counts of digits: how many tiles of each pass were taken."""

_made: dict[str, tuple[str, ...]] = {}


def sort(name: str, dtype: DType, wide: bool, in_loop: bool) -> SortKernels:
    """The kernels of "sort" or "argsort"; `wide`: whether places need more than 32 bits; `in_loop`:
    whether they have to fit the kernel of a loop."""
    places, key_bytes = name == "argsort", 8 if dtype.size > 4 else 4
    place = "" if not places else "i64" if wide else "u32"
    threads, counting = (THREADS, THREADS) if in_loop else (MOVING, COUNTING)
    of_lines = _sized(key_bytes, THREADS)
    moved = _sized(8 if place == "i64" else key_bytes, threads)
    k, made, passes = f"u{8 * key_bytes}", "i64" if places else dtype.name, dtype.size
    words: dict[str, object] = {
        "t": dtype.name, "k": k, "p": place, "made": made, "passes": passes, "digits": DIGITS,
        "values": passes * DIGITS, "chunk": CHUNK, "head": HEAD, "looked": LOOKED, "group": GROUP,
        "line_result": "place[i] % (u32)length" if places else "sort_value(key[i])",
        "put": (
            "            if (!ends) new_keys[at] = key;\n" if places else
            "            if (ends) result[at] = sort_value(key);\n"
            "            else new_keys[at] = key;\n"
        ),
        "places": f" Buffer<const {place}> places, Buffer<{place}> new_places," * places,
        "put_places": _PUT_PLACES.format(p=place) if places else "",
        "put_own_place": _PUT_OWN_PLACE * places,
        "move_places": _MOVE_PLACES.format(p=place) if places else "",
        "bounds": "" if in_loop else f" __launch_bounds__({threads})",
    }  # fmt: skip
    body = {"key": _key(dtype, k, places), "value": _value(dtype, k), **words}
    lines, count, move = (
        _KEY.format(block=block, **body) for block in (THREADS, counting, threads)
    )
    lines += ranks(THREADS, _elements(of_lines)) + _LINES.format(**words, **of_lines)
    count += _COUNT.format(**words)
    move += ranks(threads, _elements(moved)) + _MOVE.format(**words, **moved)
    _made[lines] = (ADDRESS,) * 2 + ("i64",) * 3
    _made[count] = (ADDRESS,) * 2 + ("i64",)
    _made[move] = (ADDRESS,) * (7 if places else 5) + ("i64",) * 4
    return SortKernels(
        lines, count, move, passes, _elements(of_lines), MOST_LINES, CHUNK, _elements(moved),
        key_bytes, (8 if wide else 4) if places else 0, HEAD, DIGITS, GROUP,
    )


def ranks(threads: int, tile: int) -> str:
    """How blocks of so many threads, no fewer than there are digits, rank tiles."""
    alone = threads == DIGITS
    return _RANKS.format(
        threads=threads, digits=DIGITS, tile=tile, each=tile // threads,
        has="true" if alone else f"threadIdx.x < {DIGITS}",
        counts="Buffer<u16> counts = pyrelay_sort_counts()" if alone
        else f"PYRELAY_SHARED(u16, counts, {threads // 32 * DIGITS})",
    )


def _sized(room_bytes: int, threads: int) -> dict[str, object]:
    """What a tile is whose elements change places as words of so many bytes."""
    tile, room = ROOM * threads // THREADS // room_bytes, f"u{8 * room_bytes}"
    held = f"PYRELAY_SHARED({room}, room, TILE)"
    if threads == THREADS:
        held = f"Buffer<{room}> room = pyrelay_sort_room<{room}>()"
    return {"room": room, "room_of_tile": held, "tile": tile, "each": tile // threads}


def _elements(sized: dict[str, object]) -> int:
    tile = sized["tile"]
    assert isinstance(tile, int)
    return tile


def _key(dtype: DType, k: str, places: bool) -> str:
    """The body of what makes a key of a number."""
    u, top = f"u{8 * dtype.size}", _top(dtype)
    if dtype.kind == "f":
        bits, infinity = _BITS[dtype.name]
        zeros = "    if (size == 0) bits = 0;\n" if places else ""
        rest = f"({u})~{top}"
        return _FLOAT_KEY.format(
            u=u, k=k, bits=bits, rest=rest, infinity=f"{infinity}ull", zeros=zeros, top=top
        )
    if dtype.kind == "i":
        return f"    return ({u})(({u})value ^ {top});\n"
    return f"    return ({k})value;\n"


def _value(dtype: DType, k: str) -> str:
    """The body of what makes a number of its key."""
    u, top = f"u{8 * dtype.size}", _top(dtype)
    if dtype.kind == "f":
        infinity = _BITS[dtype.name][1]
        made = _OF_BITS.get(dtype.name) or _OF_HALF_BITS.format(t=dtype.name)
        quiet = infinity | (infinity & -infinity) >> 1
        return _FLOAT_VALUE.format(u=u, k=k, nan=f"{quiet}ull", top=top, made=made)
    if dtype.kind == "i":
        return f"    return ({dtype.name})({u})(key ^ {top});\n"
    return f"    return ({dtype.name})key;\n"


def _top(dtype: DType) -> str:
    """The greatest bit of a number."""
    return f"(({f'u{8 * dtype.size}'}){1 << (8 * dtype.size - 1)}ull)"


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    return _made.get(text)
