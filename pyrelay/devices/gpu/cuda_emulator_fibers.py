"""Threads of emulated kernels that wait for each other.

In: nothing. Out: `FIBERS`, a part of `cuda_emulator_header`.

Each thread of a block is a fiber with a stack of its own (`ucontext`): barriers and shuffles pass
control on until all have arrived, and a barrier that a thread can no longer reach is an error, and
so is one that threads reach at different places of the text. Blocks run one after another, the last
one first, but where they meet: then their threads are fibers side by side, and that none of them
gets on is an error too. The order of these blocks and threads may be turned round, and a block may
go on as far as it gets before the next one does, so that a meeting which is missing shows. Shared
memory is filled with garbage before each block; it is as much as a block of an H200 may have.
"""

from __future__ import annotations

FIBERS = r"""
namespace pyrelay_emulator {
const int WARP = 32, MOST_THREADS = 1024, MOST_SHARED = 64, SHARED_ROOM = 232448;
const size_t STACK = 1 << 16;
enum Fault {
    NONE, OUT_OF_BOUNDS = 90, BARRIER, UNALIGNED, UNROUNDED, DIVERGED, CROWDED, RACE
};
static thread_local int fault;

struct Fetch { void *to; const void *from; int thread, group; };
struct Block {
    ucontext_t scheduler, contexts[MOST_THREADS];
    jmp_buf home, places[MOST_THREADS];
    bool begun[MOST_THREADS];
    char *stacks;
    int number, count, current, waiting, arrived_in_warp[MOST_THREADS / WARP];
    int site, site_of_warp[MOST_THREADS / WARP];  // where the first thread waits
    long long interrupted;
    long long generation, warp_generation[MOST_THREADS / WARP];
    bool votes[2];
    bool done[MOST_THREADS];
    int finished, finished_in_warp[MOST_THREADS / WARP];
    unsigned long long exchange[MOST_THREADS][2];
    float fragments[MOST_THREADS][12];
    Fetch *fetches;
    int fetch_count, fetch_room, fetch_groups[MOST_THREADS];
    const void *shared_tags[MOST_SHARED];
    void *shared[MOST_SHARED];
    char *room;
    size_t taken;
    void (*body)(void *);
    void *argument;
};
static thread_local Block *block;

static void start() {
    block->body(block->argument);
    block->done[block->current] = true;
    block->finished++;
    block->finished_in_warp[block->current / WARP]++;
    _longjmp(block->home, 1);
}
// Contexts begin fibers only: to change between them by jumps takes no system call.
static void pass_on() {
    if (_setjmp(block->places[block->current]) == 0) _longjmp(block->home, 1);
}
static __attribute__((noinline)) void go_on(int thread) {
    block->current = thread;
    threadIdx.x = thread;
    pyrelay_watch::goes_on(block->number, thread);
    if (_setjmp(block->home) != 0) return;
    if (block->begun[thread]) _longjmp(block->places[thread], 1);
    block->begun[thread] = true;
    setcontext(&block->contexts[thread]);
}
static Block *begun(
    int number, char *room, int count, void (*body)(void *), void *argument
) {
    Block *made = (Block *)calloc(1, sizeof(Block));
    made->number = number, made->room = room;
    made->stacks = (char *)malloc(STACK * count);
    made->count = count, made->body = body, made->argument = argument;
    for (int k = 0; k < count; k++) {
        getcontext(&made->contexts[k]);
        made->contexts[k].uc_stack.ss_sp = made->stacks + STACK * k;
        made->contexts[k].uc_stack.ss_size = STACK;
        made->contexts[k].uc_link = &made->scheduler;
        makecontext(&made->contexts[k], start, 0);
    }
    return made;
}
// How far a block has come: what stands still when it waits for another one, or for ever.
static long long progress(const Block *made) {
    long long found = made->finished + made->generation * 2 * MOST_THREADS + made->waiting;
    found += made->interrupted;
    for (int k = 0; k < made->count / WARP; k++) {
        found += made->warp_generation[k] * 2 * WARP + made->arrived_in_warp[k];
    }
    return found;
}
static void ended(Block *made) {
    free(made->fetches);
    free(made->stacks);
    free(made);
}
// How blocks that run side by side take turns: 1 is first to last, 2 each as far as it gets alone,
// 4 interrupts threads of kernels that are watched.
static int order;
// Runs `body` in every thread of some blocks, side by side, until all have ended.
static void run(int first, int blocks, int count, void (*body)(void *), void *argument) {
    Block **made = (Block **)malloc(sizeof(Block *) * blocks);
    char *room = (char *)aligned_alloc(256, (size_t)SHARED_ROOM * blocks);
    memset(room, 0xff, (size_t)SHARED_ROOM * blocks);
    for (int b = 0; b < blocks; b++) {
        made[b] = begun(b, room + (size_t)SHARED_ROOM * b, count, body, argument);
    }
    pyrelay_watch::launched(
        room, room + (size_t)SHARED_ROOM * blocks, blocks, count, (order & 4) != 0);
    for (bool over = false; !over && fault != BARRIER && fault != DIVERGED && fault != RACE;) {
        bool still = true;
        over = true;
        for (int turn = 0; turn < blocks; turn++) {
            const int b = order & 1 ? turn : blocks - 1 - turn;
            block = made[b];
            blockIdx.x = first + b;
            for (bool stands = false; !stands;) {
                const long long before = progress(block);
                for (int k = 0; k < count; k++) {
                    const int thread = order & 1 ? k : count - 1 - k;
                    if (!block->done[thread]) go_on(thread);
                }
                stands = before == progress(block);
                still = still && stands;
                if (!(order & 2)) break;
            }
            over = over && block->finished == count;
        }
        if (still && !over) fault = BARRIER;
    }
    pyrelay_watch::launched(nullptr, nullptr, 0, 0, false);
    for (int b = 0; b < blocks; b++) ended(made[b]);
    free(made);
    free(room);
    block = nullptr;
}
// Waiting is for others who wait at the same place of the text.
static void at_site(int &known, bool first, int site) {
    if (first) known = site;
    else if (known != site) fault = DIVERGED;
    asm volatile("" : : : "memory");
}
static void barrier(int site) {
    long long mine = block->generation;
    at_site(block->site, block->waiting == 0, site);
    if (++block->waiting == block->count) {
        block->waiting = 0;
        block->votes[(mine + 1) & 1] = false;
        block->generation++;
        pyrelay_watch::block_met(block->number);
        return;
    }
    while (block->generation == mine) pass_on();
}
static bool any(bool vote, int site) {
    const long long mine = block->generation;
    if (vote) block->votes[mine & 1] = true;
    barrier(site);
    return block->votes[mine & 1];
}
// `orders`: whether it orders memory too, as `__syncwarp` does and nothing else.
static void warp_barrier(int site, bool orders = false) {
    int warp = block->current / WARP;
    long long mine = block->warp_generation[warp];
    at_site(block->site_of_warp[warp], block->arrived_in_warp[warp] == 0, site);
    if (++block->arrived_in_warp[warp] == WARP) {
        block->arrived_in_warp[warp] = 0;
        block->warp_generation[warp]++;
        if (orders) pyrelay_watch::warp_met(block->number, warp);
        return;
    }
    while (block->warp_generation[warp] == mine) pass_on();
}
template <class T> static T shuffled(unsigned int mask, T value, int lane, int site) {
    int self = block->current, warp = self / WARP;
    if (mask != ~0u) fault = DIVERGED;
    memcpy(block->exchange[self], &value, sizeof value);
    warp_barrier(site);
    if (lane >= 0 && lane < WARP) {
        memcpy(&value, block->exchange[warp * WARP + lane], sizeof value);
    }
    warp_barrier(site);
    return value;
}
static unsigned int ballot(unsigned int mask, bool mine, int site) {
    const int self = block->current, base = self / WARP * WARP;
    if (mask != ~0u) fault = DIVERGED;
    block->exchange[self][0] = mine;
    warp_barrier(site);
    unsigned int found = 0;
    for (int lane = 0; lane < WARP; lane++) {
        found |= (unsigned int)block->exchange[base + lane][0] << lane;
    }
    warp_barrier(site);
    return found;
}
// The lanes with the same number, whose 8 bits are all that a GPU compares.
static unsigned int peers(unsigned int number) {
    const int self = block->current, base = self / WARP * WARP;
    block->exchange[self][0] = number;
    warp_barrier(__LINE__);
    unsigned int found = 0;
    for (int lane = 0; lane < WARP; lane++) {
        found |= (unsigned int)((block->exchange[base + lane][0] & 255) == (number & 255)) << lane;
    }
    warp_barrier(__LINE__);
    return found;
}
// A product of tensor cores, 16 by 8 elements of `depth` factors: lanes 4 k to 4 k + 3 have lines k
// and k + 8 of the left operand and line k of the right one, each a part of their places.
static float rounded(float value, unsigned int half, unsigned int kept) {
    unsigned int bits;
    memcpy(&bits, &value, 4);
    if (kept == 16) bits += bits >> 16 & 1;
    if (value - value == 0) bits = (bits + half) >> kept << kept;
    memcpy(&value, &bits, 4);
    return value;
}
template <int N>
static void added_up(float (&sums)[4], const float (&a)[4 * N], const float (&b)[2 * N]) {
    const int self = block->current, base = self / WARP * WARP, lane = self % WARP;
    for (int k = 0; k < 4 * N; k++) block->fragments[self][k] = a[k];
    for (int k = 0; k < 2 * N; k++) block->fragments[self][4 * N + k] = b[k];
    warp_barrier(__LINE__);
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 8 * N; k++) {
            const int owner = k / N % 4, far = k / (4 * N);
            const float *left = block->fragments[base + row % 8 * 4 + owner];
            const float *right = block->fragments[base + column * 4 + owner];
            sums[e] += left[(far * 2 + row / 8) * N + k % N] * right[(4 + far) * N + k % N];
        }
    }
    warp_barrier(__LINE__);
}
// The same of float32, which is rounded first.
template <int N>
static void multiplied(float (&sums)[4], const float (&a)[4 * N], const float (&b)[2 * N]) {
    const unsigned int half = N == 1 ? 0x1000 : 0x7fff, kept = N == 1 ? 13 : 16;
    float left[4 * N], right[2 * N];
    for (int k = 0; k < 4 * N; k++) left[k] = rounded(a[k], half, kept);
    for (int k = 0; k < 2 * N; k++) right[k] = rounded(b[k], half, kept);
    added_up<N>(sums, left, right);
}
// Copies of 16 bytes happen when a thread waits for them, and not before.
static void fetch(void *to, const void *from) {
    if (block->fetch_count == block->fetch_room) {
        block->fetch_room = 2 * block->fetch_room + 64;
        block->fetches = (Fetch *)realloc(block->fetches, sizeof(Fetch) * block->fetch_room);
    }
    block->fetches[block->fetch_count++] = {
        to, from, block->current, block->fetch_groups[block->current]
    };
    pyrelay_watch::began(to, 16);
}
static void fetch_group() { block->fetch_groups[block->current]++; }
static void fetched(int but) {
    const int self = block->current, last = block->fetch_groups[self] - but;
    int kept = 0;
    for (int k = 0; k < block->fetch_count; k++) {
        const Fetch each = block->fetches[k];
        if (each.thread == self && each.group < last) {
            pyrelay_watch::Quiet quiet;
            pyrelay_watch::touched(each.from, 16, false, false);
            memcpy(each.to, each.from, 16);
            pyrelay_watch::landed(each.to, 16);
        } else {
            block->fetches[kept++] = each;
        }
    }
    block->fetch_count = kept;
}
// Lane k tells a line of 8 elements, line k % 8 of matrix k / 8; register m of lane k is a pair of
// matrix m: of line k / 4, or of column k / 4 where matrices are turned.
static void matrices(unsigned int (&made)[4], const unsigned short *line, bool turned) {
    const int self = block->current, base = self / WARP * WARP, lane = self % WARP;
    memcpy(block->exchange[self], &line, sizeof line);
    warp_barrier(__LINE__);
    for (int m = 0; m < 4; m++) {
        made[m] = 0;
        for (int e = 0; e < 2; e++) {
            const int across = lane % 4 * 2 + e, owner = m * 8 + (turned ? across : lane / 4);
            const unsigned short *held;
            memcpy(&held, block->exchange[base + owner], sizeof held);
            const unsigned short *place = held + (turned ? lane / 4 : across);
            pyrelay_watch::Quiet quiet;
            pyrelay_watch::touched(place, 2, false, false);
            made[m] |= (unsigned int)*place << 16 * e;
        }
    }
    warp_barrier(__LINE__);
}
// The memory that all threads of the block know by the same tag.
static void *shared(const void *tag, size_t bytes) {
    int number = 0;
    while (block->shared_tags[number] != nullptr && block->shared_tags[number] != tag) number++;
    if (block->shared_tags[number] == nullptr) {
        block->shared_tags[number] = tag;
        block->shared[number] = block->room + block->taken;
        block->taken += (bytes + 15) / 16 * 16;
        if (block->taken > SHARED_ROOM) {
            fault = CROWDED;
            block->shared[number] = block->room;
        }
    }
    return block->shared[number];
}

}
"""
