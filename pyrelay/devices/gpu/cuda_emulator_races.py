"""Accesses of emulated kernels that nothing orders: what a GPU may do in any order.

In: nothing. Out: `WATCHED`, declarations that stand before `cuda_emulator_header`'s where a driver
watches, and `UNWATCHED`, which stand there otherwise; `WATCH`, a unit of its own that is linked to
a watched one, and the `OPTIONS` of the compiler for the latter.

The compiler calls a function before each access to memory, as it does for ThreadSanitizer
(`-fsanitize=thread`), but these functions are ours: for each byte of the shared memory of blocks
and of the buffers of a launch they keep who wrote it last and who has read it since, and when. Two
accesses of which one writes are ordered by a barrier of their block, by `__syncwarp` in their warp,
or between blocks by `pyrelay_arrive` and `pyrelay_arrived` around barriers (Lamport, "Time, clocks,
and the ordering of events in a distributed system", 1978; Flanagan and Freund, "FastTrack", 2009);
shuffles, votes and products of tensor cores order no memory (NVIDIA, "CUDA C++ Programming Guide",
Warp Shuffle Functions). Atomic and volatile accesses may meet each other. All else is a fault, in
whichever order the threads came: what has none shows nothing of an older value on a GPU either.
So is an access to shared memory of which nobody of the block has written any byte.

Threads are interrupted at accesses, too, at random places that are the same in every run.
"""

from __future__ import annotations

OPTIONS = ("-g1", "-fsanitize=thread")
VOLATILE = {
    False: ("--param=tsan-distinguish-volatile=1",),
    True: ("-mllvm", "-tsan-distinguish-volatile=1"),
}
"""Options to compile and not to link: of GCC and Clang, and of each by whether it is Clang."""

WHAT = (
    "an element is written and then used", "an element is read and then written",
    "bytes are used that are still being copied",
    "shared memory is used that nobody has written",
)
"""What is told of two accesses; the last of one."""

ALONE = len(WHAT) - 1

UNWATCHED = r"""
namespace pyrelay_watch {
const bool ON = false;
static inline void launched(const void *, const void *, int, int, bool) {}
static inline void goes_on(int, int) {}
static inline void block_met(int) {}
static inline void warp_met(int, int) {}
static inline void released(const void *) {}
static inline void acquired(const void *) {}
static inline void began(const void *, int) {}
static inline void landed(const void *, int) {}
static inline void touched(const void *, int, bool, bool) {}
struct Quiet { Quiet() {} };
}
"""
"""Nothing is watched."""

_DECLARED = r"""
namespace pyrelay_watch {
typedef unsigned int word;
// Where the shared memory of blocks lies, null behind a launch; so many blocks of so many threads;
// whether these are interrupted.
void launched(
    const void *shared, const void *behind, int blocks, int threads, bool interrupts
);
void goes_on(int block, int thread);
// A barrier of a block or of a warp is behind all its threads.
void block_met(int block);
void warp_met(int block, int warp);
// The thread tells what it knows, and gets to know what was told.
void released(const void *word);
void acquired(const void *word);
// A copy to shared memory has begun, and is over.
void began(const void *at, int size);
void landed(const void *at, int size);
// An access that the emulator does for the thread.
void touched(const void *at, int size, bool writes, bool strong);
extern int quiet;
struct Quiet {
    Quiet() { quiet++; }
    ~Quiet() { quiet--; }
};
// What a unit has: the thread is interrupted, which counts as getting on; a fault is told.
void interrupted(bool counts);
void found();
}
"""

WATCHED = _DECLARED + "namespace pyrelay_watch { const bool ON = true; }\n"
"""What watched units call."""

WATCH = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
""" + _DECLARED + r"""
namespace pyrelay_watch {
const int WARP = 32, MOST = 8, THREADS = 1024, CELLS = 64, WORDS = 32;
const size_t MOST_PAGES = 1 << 14;
// When a thread did something: its block's barriers, its warp's, its own releases; from where.
struct Event { short thread, block; word met, warp_met, release, from; };
// What threads of a block have read since a byte was written: which warps since its last barrier,
// which lanes of one of them since that warp's.
struct Readers {
    word met, warps, warp_met, lanes, from;
    short warp, block, thread;
    bool any;
};
// Of plain accesses and of others the last write, and the readers of two blocks.
struct Cell {
    Event wrote[2];
    bool written[2], pending;
    Readers readers[2][2];
};
struct Page {
    unsigned long long key;
    word launch;
    Cell cells[CELLS];
};
struct Known { word met, release; };
enum What { WRITTEN, READ, PENDING, EMPTY };

int quiet;
static int self_block, self;
static bool running, interrupting;
static long long told[8], empty[8];  // empty: the first use of what nobody had written
static word launch_number, met[MOST], warp_met_count[MOST][WARP], releases[MOST];
static Known known[MOST][THREADS][MOST];
// What is released by each word that counts arrivals.
static const void *words[WORDS];
static Known published[WORDS][MOST];
static bool acquired_since[MOST];
static int thread_count;
static Page **pages;
static size_t page_room, page_count;
static long long range_count;
static const long long *ranges, *skipped;
static unsigned long long shared_first, shared_last, chance;
static char base;

static bool is_likely() {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return (chance >> 20) % 8 == 0;
}
static bool is_shared(unsigned long long at) { return at >= shared_first && at < shared_last; }
static bool is_watched(unsigned long long at) {
    if (is_shared(at)) return true;
    if ((long long)at >= skipped[0] && (long long)at < skipped[1]) return false;
    long long low = 0, high = range_count;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if ((unsigned long long)ranges[2 * middle + 1] <= at) low = middle + 1;
        else high = middle;
    }
    return low < range_count && (unsigned long long)ranges[2 * low] <= at;
}
static size_t place_of(Page **all, size_t room, unsigned long long key) {
    size_t at = (key * 0x9e3779b97f4a7c15ull >> 20) & (room - 1);
    while (all[at] && all[at]->key != key) at = (at + 1) & (room - 1);
    return at;
}
static Page *page_of(unsigned long long key) {
    if (2 * (page_count + 1) > page_room) {
        const size_t room = page_room ? 2 * page_room : 4096;
        Page **more = (Page **)calloc(room, sizeof(Page *));
        for (size_t k = 0; k < page_room; k++) {
            if (pages[k]) more[place_of(more, room, pages[k]->key)] = pages[k];
        }
        free(pages);
        pages = more, page_room = room;
    }
    const size_t at = place_of(pages, page_room, key);
    if (!pages[at]) {
        pages[at] = (Page *)calloc(1, sizeof(Page));
        pages[at]->key = key, pages[at]->launch = launch_number, page_count++;
    }
    if (pages[at]->launch != launch_number) {
        memset(pages[at]->cells, 0, sizeof pages[at]->cells);
        pages[at]->launch = launch_number;
    }
    return pages[at];
}
static void tell(
    What what, unsigned long long at, word earlier, int block, int thread, const Event &e
) {
    long long (&first)[8] = what == EMPTY ? empty : told;
    if (first[0] >= 0) return;
    const long long all[8] = {
        what, (long long)at, earlier, e.from, block, thread, e.block, e.thread
    };
    memcpy(first, all, sizeof all);
    if (what != EMPTY) found();
}
static bool is_before(const Event &a, const Event &b) {
    if (a.block == b.block) {
        if (a.thread == b.thread || a.met != b.met) return true;
        return a.thread / WARP == b.thread / WARP && a.warp_met != b.warp_met;
    }
    const Known &k = known[b.block][b.thread][a.block];
    return a.met < k.met || (a.thread == 0 && a.release < k.release);
}
static bool are_before(const Readers &r, const Event &e) {
    if (r.block != e.block) return r.met < known[e.block][e.thread][r.block].met;
    if (r.met != e.met) return true;
    const int warp = e.thread / WARP;
    if (r.warps & ~(1u << warp)) return false;
    return r.warp_met != e.warp_met || !(r.lanes & ~(1u << e.thread % WARP));
}
static void read_by(Readers (&all)[2], const Event &e) {
    Readers &r = all[!all[0].any || all[0].block == e.block ? 0 : 1];
    const int warp = e.thread / WARP;
    if (!r.any || r.block != e.block || r.met != e.met) memset(&r, 0, sizeof r), r.warp = -1;
    if (r.warp != warp || r.warp_met != e.warp_met) r.lanes = 0;
    r.any = true, r.block = e.block, r.met = e.met, r.warps |= 1u << warp, r.warp = warp;
    r.warp_met = e.warp_met, r.lanes |= 1u << e.thread % WARP;
    r.thread = e.thread, r.from = e.from;
}
static void look(unsigned long long first, int size, bool writes, bool strong, word from) {
    const Event e = {
        (short)self, (short)self_block, met[self_block],
        warp_met_count[self_block][self / WARP], self == 0 ? releases[self_block] : ~0u, from
    };
    Page *page = page_of(first / CELLS);
    int known_bytes = 0;
    for (unsigned long long at = first; at < first + size; at++) {
        if (at / CELLS != page->key) page = page_of(at / CELLS);
        Cell &c = page->cells[at % CELLS];
        for (int of = 0; of < (strong ? 1 : 2); of++) {
            const Event &w = c.wrote[of];
            if (!c.written[of]) continue;
            if (c.pending) tell(PENDING, at, w.from, w.block, w.thread, e);
            else if (!is_before(w, e)) tell(WRITTEN, at, w.from, w.block, w.thread, e);
        }
        if (!writes) {
            known_bytes += c.written[0] || c.written[1];
            read_by(c.readers[strong], e);
            continue;
        }
        for (int of = 0; of < (strong ? 1 : 2); of++) {
            for (int k = 0; k < 2; k++) {
                Readers &r = c.readers[of][k];
                if (r.any && !are_before(r, e)) tell(READ, at, r.from, r.block, r.thread, e);
                r.any = false;
            }
        }
        c.written[strong] = true, c.wrote[strong] = e;
        if (!strong) c.written[1] = false;
    }
    // Copies of structures read bytes between members too, which nobody writes.
    if (!writes && known_bytes == 0 && is_shared(first)) {
        tell(EMPTY, first, from, e.block, e.thread, e);
    }
}
static word from_here(const void *at) { return (word)((const char *)at - &base); }
void touched(const void *at, int size, bool writes, bool strong) {
    if (!running || !is_watched((unsigned long long)at)) return;
    look((unsigned long long)at, size, writes, strong, from_here(__builtin_return_address(0)));
}
void began(const void *at, int size) {
    touched(at, size, true, false);
    for (int k = 0; k < size; k++) {
        const unsigned long long byte = (unsigned long long)at + k;
        page_of(byte / CELLS)->cells[byte % CELLS].pending = true;
    }
}
void landed(const void *at, int size) {
    for (int k = 0; k < size; k++) {
        const unsigned long long byte = (unsigned long long)at + k;
        page_of(byte / CELLS)->cells[byte % CELLS].pending = false;
    }
    touched(at, size, true, false);
}
void launched(
    const void *shared, const void *behind, int blocks, int threads, bool interrupts
) {
    interrupting = interrupts;
    // Of what is written at any time, in no order, both accesses are told.
    if (!shared && told[0] < 0 && empty[0] >= 0) memcpy(told, empty, sizeof told), found();
    running = shared != nullptr;
    shared_first = (unsigned long long)shared, shared_last = (unsigned long long)behind;
    if (!running) return;
    if (blocks > MOST) abort();
    if (page_count > MOST_PAGES) {
        for (size_t k = 0; k < page_room; k++) free(pages[k]);
        free(pages);
        pages = nullptr, page_room = page_count = 0;
    }
    thread_count = threads, told[0] = empty[0] = -1, quiet = 0;
    launch_number++;
    memset(met, 0, sizeof met), memset(warp_met_count, 0, sizeof warp_met_count);
    memset(releases, 0, sizeof releases), memset(known, 0, sizeof known);
    memset(published, 0, sizeof published), memset(words, 0, sizeof words);
    memset(acquired_since, 0, sizeof acquired_since);
}
void goes_on(int block, int thread) { self_block = block, self = thread; }
static void join(Known &to, const Known &from) {
    if (from.met > to.met) to.met = from.met;
    if (from.release > to.release) to.release = from.release;
}
void block_met(int b) {
    met[b]++;
    for (int w = 0; w < WARP; w++) warp_met_count[b][w]++;
    if (!acquired_since[b]) return;
    acquired_since[b] = false;
    for (int k = 0; k < MOST; k++) {
        Known all = {};
        for (int t = 0; t < thread_count; t++) join(all, known[b][t][k]);
        for (int t = 0; t < thread_count; t++) known[b][t][k] = all;
    }
}
void warp_met(int b, int warp) { warp_met_count[b][warp]++; }
static Known *published_by(const void *word) {
    for (int k = 0; k < WORDS; k++) {
        if (words[k] == word || !words[k]) return words[k] = word, published[k];
    }
    abort();
}
void released(const void *word) {
    const int b = self_block;
    Known *to = published_by(word);
    for (int k = 0; k < MOST; k++) join(to[k], known[b][self][k]);
    join(to[b], {met[b], self == 0 ? ++releases[b] : 0});
}
void acquired(const void *word) {
    const Known *from = published_by(word);
    for (int k = 0; k < MOST; k++) join(known[self_block][self][k], from[k]);
    acquired_since[self_block] = true;
}
static void access(const void *at, int size, bool writes, bool strong, const void *from) {
    if (!running || quiet || !is_watched((unsigned long long)at)) return;
    if (interrupting && is_likely()) interrupted(!strong);
    look((unsigned long long)at, size, writes, strong, from_here(from));
}
}
// What the compiler calls.
#define PYRELAY_CALL(name, size, writes, strong)                                          \
    void __tsan_##name(void *at) {                                                        \
        pyrelay_watch::access(at, size, writes, strong, __builtin_return_address(0)); \
    }
#define PYRELAY_CALLS(size)                                    \
    PYRELAY_CALL(read##size, size, false, false)               \
    PYRELAY_CALL(write##size, size, true, false)               \
    PYRELAY_CALL(unaligned_read##size, size, false, false)     \
    PYRELAY_CALL(unaligned_write##size, size, true, false)     \
    PYRELAY_CALL(volatile_read##size, size, false, true)       \
    PYRELAY_CALL(volatile_write##size, size, true, true)
extern "C" {
PYRELAY_CALLS(1)
PYRELAY_CALLS(2)
PYRELAY_CALLS(4)
PYRELAY_CALLS(8)
PYRELAY_CALLS(16)
void __tsan_read_range(void *at, size_t size) {
    pyrelay_watch::access(at, (int)size, false, false, __builtin_return_address(0));
}
void __tsan_write_range(void *at, size_t size) {
    pyrelay_watch::access(at, (int)size, true, false, __builtin_return_address(0));
}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_init(void) {}
// What a driver says before a launch: the first byte of each buffer and what lies behind it, in
// order; a range that is not looked at; a number to begin chances with. What it asks behind a
// fault: what it was, at which address, from where (as distances from an origin), and by which
// threads of which blocks.
#define PYRELAY_SHOWN __attribute__((visibility("default")))
PYRELAY_SHOWN void pyrelay_watch_memory(
    const long long *ranges, long long count, const long long *skipped, long long seed
) {
    pyrelay_watch::ranges = ranges, pyrelay_watch::range_count = count;
    pyrelay_watch::skipped = skipped;
    pyrelay_watch::chance = 88172645463325252ull ^ (unsigned long long)seed << 17;
}
PYRELAY_SHOWN const long long *pyrelay_watch_told() { return pyrelay_watch::told; }
PYRELAY_SHOWN long long pyrelay_watch_origin() {
    Dl_info own;
    dladdr(&pyrelay_watch::base, &own);
    return &pyrelay_watch::base - (char *)own.dli_fbase;
}
}
"""
"""The unit that watches."""
