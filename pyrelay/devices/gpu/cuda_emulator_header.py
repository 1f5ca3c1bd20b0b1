"""The host's definitions of what CUDA supplies, in front of a kernel's unchanged source.

In: nothing. Out: `BEFORE`, which goes before `cuda_prelude.PRELUDE`, and `AFTER`, which goes
between it and the kernels.

A kernel whose threads do not wait for each other runs them one after another, the last one first,
so that a result that depends on their order shows. Otherwise each thread of a block is a fiber with
a stack of its own (`ucontext`): barriers and shuffles pass control on until all have arrived, and a
barrier that a thread can no longer reach is an error, as is an index outside of a buffer whose size
is known. Blocks run one after another, the last one first, but where they meet: then their threads
are fibers side by side, and that none of them gets on is an error too. The order of these blocks
and threads may be turned round, and a block may go on as far as it gets before the next one does,
so that a meeting which is missing shows. Shared memory is filled with garbage before each block.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_tensor_cores import EMULATED_CORES

BEFORE = r"""
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define PYRELAY_EMULATED 1
#define __device__ inline
#define __global__ static
#define PYRELAY_ENTRY extern "C" __attribute__((visibility("default")))
#define __restrict__
#define __launch_bounds__(...)
#define __forceinline__ inline

extern "C" {
#define PYRELAY_1(name) double name(double); float name##f(float);
#define PYRELAY_2(name) double name(double, double); float name##f(float, float);
PYRELAY_1(sqrt) PYRELAY_1(exp) PYRELAY_1(log) PYRELAY_1(sin) PYRELAY_1(cos) PYRELAY_1(cbrt)
PYRELAY_1(exp2) PYRELAY_1(expm1) PYRELAY_1(log2) PYRELAY_1(log10) PYRELAY_1(log1p) PYRELAY_1(tan)
PYRELAY_1(sinh) PYRELAY_1(cosh) PYRELAY_1(tanh) PYRELAY_1(erf) PYRELAY_1(erfc) PYRELAY_1(lgamma)
PYRELAY_1(floor) PYRELAY_1(ceil) PYRELAY_1(trunc) PYRELAY_1(rint) PYRELAY_1(asin) PYRELAY_1(acos)
PYRELAY_1(atan) PYRELAY_1(asinh) PYRELAY_1(acosh) PYRELAY_1(atanh) PYRELAY_1(tgamma)
PYRELAY_1(fabs) PYRELAY_2(atan2) PYRELAY_2(hypot) PYRELAY_2(nextafter) PYRELAY_2(copysign)
PYRELAY_2(fmod) PYRELAY_2(fmin) PYRELAY_2(fmax) PYRELAY_2(pow)
double fma(double, double, double); float fmaf(float, float, float);
double frexp(double, int *); float frexpf(float, int *);
double ldexp(double, int); float ldexpf(float, int);
}
#define PYRELAY_OVERLOAD(name) static inline float name(float x) { return name##f(x); }
PYRELAY_OVERLOAD(sqrt) PYRELAY_OVERLOAD(exp) PYRELAY_OVERLOAD(log) PYRELAY_OVERLOAD(sin)
PYRELAY_OVERLOAD(cos) PYRELAY_OVERLOAD(sinh) PYRELAY_OVERLOAD(cosh) PYRELAY_OVERLOAD(fabs)
PYRELAY_OVERLOAD(floor) PYRELAY_OVERLOAD(log1p)
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float fmod(float x, float y) { return fmodf(x, y); }
static inline float hypot(float x, float y) { return hypotf(x, y); }
static inline float atan2(float x, float y) { return atan2f(x, y); }
static inline float copysign(float x, float y) { return copysignf(x, y); }
template <class T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class A, class B> static inline A pyrelay_bits(B value) {
    A result;
    memcpy(&result, &value, sizeof result);
    return result;
}
static inline int __float_as_int(float x) { return pyrelay_bits<int>(x); }
static inline float __int_as_float(int x) { return pyrelay_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return pyrelay_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return pyrelay_bits<double>(x); }

// All threads of a launch share one thread of the host, so that plain memory is atomic.
template <class T> static inline T atomicCAS(T *place, T wanted, T value) {
    T old = *place;
    if (old == wanted) *place = value;
    return old;
}
template <class T> static inline T atomicExch(T *place, T value) {
    T old = *place;
    *place = value;
    return old;
}
template <class T> static inline T atomicAdd(T *place, T value) {
    T old = *place;
    *place = old + value;
    return old;
}
template <class T> static inline T atomicMax(T *place, T value) {
    T old = *place;
    if (value > old) *place = value;
    return old;
}
static inline void __threadfence() {}
static inline long long __mul64hi(long long a, long long b) { return (__int128)a * b >> 64; }

struct pyrelay_dim3 { int x, y, z; };
static thread_local pyrelay_dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace pyrelay_emulator {
const int WARP = 32, MOST_THREADS = 1024, MOST_SHARED = 64;
const size_t STACK = 1 << 16;
enum Fault { NONE, OUT_OF_BOUNDS = 90, BARRIER = 91, UNALIGNED = 92, UNROUNDED = 93 };
static thread_local int fault;

struct Fetch { void *to; const void *from; int thread, group; };
struct Block {
    ucontext_t scheduler, contexts[MOST_THREADS];
    jmp_buf home, places[MOST_THREADS];
    bool begun[MOST_THREADS];
    char *stacks;
    int count, current, waiting, arrived_in_warp[MOST_THREADS / WARP];
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
    if (_setjmp(block->home) != 0) return;
    if (block->begun[thread]) _longjmp(block->places[thread], 1);
    block->begun[thread] = true;
    setcontext(&block->contexts[thread]);
}
static Block *begun(int count, void (*body)(void *), void *argument) {
    Block *made = (Block *)calloc(1, sizeof(Block));
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
    for (int k = 0; k < made->count / WARP; k++) {
        found += made->warp_generation[k] * 2 * WARP + made->arrived_in_warp[k];
    }
    return found;
}
static void ended(Block *made) {
    for (int k = 0; k < MOST_SHARED; k++) free(made->shared[k]);
    free(made->fetches);
    free(made->stacks);
    free(made);
}
// How blocks that run side by side take turns: 1 is first to last, 2 each as far as it gets alone.
static int order;
// Runs `body` in every thread of some blocks, side by side, until all have ended.
static void run(int first, int blocks, int count, void (*body)(void *), void *argument) {
    Block **made = (Block **)malloc(sizeof(Block *) * blocks);
    for (int b = 0; b < blocks; b++) made[b] = begun(count, body, argument);
    for (bool over = false; !over && fault != BARRIER;) {
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
    for (int b = 0; b < blocks; b++) ended(made[b]);
    free(made);
    block = nullptr;
}
static void barrier() {
    long long mine = block->generation;
    if (++block->waiting == block->count) {
        block->waiting = 0;
        block->votes[(mine + 1) & 1] = false;
        block->generation++;
        return;
    }
    while (block->generation == mine) pass_on();
}
static bool any(bool vote) {
    const long long mine = block->generation;
    if (vote) block->votes[mine & 1] = true;
    barrier();
    return block->votes[mine & 1];
}
static void warp_barrier() {
    int warp = block->current / WARP;
    long long mine = block->warp_generation[warp];
    if (++block->arrived_in_warp[warp] == WARP) {
        block->arrived_in_warp[warp] = 0;
        block->warp_generation[warp]++;
        return;
    }
    while (block->warp_generation[warp] == mine) pass_on();
}
template <class T> static T shuffled(T value, int lane) {
    int self = block->current, warp = self / WARP;
    memcpy(block->exchange[self], &value, sizeof value);
    warp_barrier();
    if (lane >= 0 && lane < WARP) {
        memcpy(&value, block->exchange[warp * WARP + lane], sizeof value);
    }
    warp_barrier();
    return value;
}
static unsigned int ballot(bool mine) {
    const int self = block->current, base = self / WARP * WARP;
    block->exchange[self][0] = mine;
    warp_barrier();
    unsigned int found = 0;
    for (int lane = 0; lane < WARP; lane++) {
        found |= (unsigned int)block->exchange[base + lane][0] << lane;
    }
    warp_barrier();
    return found;
}
// The lanes with the same number, whose 8 bits are all that a GPU compares.
static unsigned int peers(unsigned int number) {
    const int self = block->current, base = self / WARP * WARP;
    block->exchange[self][0] = number;
    warp_barrier();
    unsigned int found = 0;
    for (int lane = 0; lane < WARP; lane++) {
        found |= (unsigned int)((block->exchange[base + lane][0] & 255) == (number & 255)) << lane;
    }
    warp_barrier();
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
    warp_barrier();
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 8 * N; k++) {
            const int owner = k / N % 4, far = k / (4 * N);
            const float *left = block->fragments[base + row % 8 * 4 + owner];
            const float *right = block->fragments[base + column * 4 + owner];
            sums[e] += left[(far * 2 + row / 8) * N + k % N] * right[(4 + far) * N + k % N];
        }
    }
    warp_barrier();
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
}
static void fetch_group() { block->fetch_groups[block->current]++; }
static void fetched(int but) {
    const int self = block->current, last = block->fetch_groups[self] - but;
    int kept = 0;
    for (int k = 0; k < block->fetch_count; k++) {
        const Fetch each = block->fetches[k];
        if (each.thread == self && each.group < last) memcpy(each.to, each.from, 16);
        else block->fetches[kept++] = each;
    }
    block->fetch_count = kept;
}
// Lane k tells a line of 8 elements, line k % 8 of matrix k / 8; register m of lane k is a pair of
// matrix m: of line k / 4, or of column k / 4 where matrices are turned.
static void matrices(unsigned int (&made)[4], const unsigned short *line, bool turned) {
    const int self = block->current, base = self / WARP * WARP, lane = self % WARP;
    memcpy(block->exchange[self], &line, sizeof line);
    warp_barrier();
    for (int m = 0; m < 4; m++) {
        made[m] = 0;
        for (int e = 0; e < 2; e++) {
            const int across = lane % 4 * 2 + e, owner = m * 8 + (turned ? across : lane / 4);
            const unsigned short *held;
            memcpy(&held, block->exchange[base + owner], sizeof held);
            made[m] |= (unsigned int)held[turned ? lane / 4 : across] << 16 * e;
        }
    }
    warp_barrier();
}
// The memory that all threads of the block know by the same tag.
static void *shared(const void *tag, size_t bytes) {
    int number = 0;
    while (block->shared_tags[number] != nullptr && block->shared_tags[number] != tag) number++;
    if (block->shared_tags[number] == nullptr) {
        block->shared_tags[number] = tag;
        block->shared[number] = malloc(bytes);
        memset(block->shared[number], 0xff, bytes);
    }
    return block->shared[number];
}

}

static inline void __syncthreads() { pyrelay_emulator::barrier(); }
static inline int __syncthreads_or(int vote) { return pyrelay_emulator::any(vote != 0); }
#define PYRELAY_PAUSE() pyrelay_emulator::pass_on()
static inline void pyrelay_arrive(unsigned int *word) { ++*word; }
static inline unsigned int pyrelay_arrived(const unsigned int *word) { return *word; }
static inline void __syncwarp() { pyrelay_emulator::warp_barrier(); }
template <class T> static inline T __shfl_sync(unsigned int, T value, int lane) {
    return pyrelay_emulator::shuffled(value, lane);
}
template <class T> static inline T __shfl_xor_sync(unsigned int, T value, int mask) {
    return pyrelay_emulator::shuffled(value, (threadIdx.x % 32) ^ mask);
}
template <class T> static inline T __shfl_down_sync(unsigned int, T value, int by) {
    return pyrelay_emulator::shuffled(value, threadIdx.x % 32 + by);
}
template <class T> static inline T __shfl_up_sync(unsigned int, T value, int by) {
    return pyrelay_emulator::shuffled(value, threadIdx.x % 32 - by);
}

static inline void pyrelay_mma_tf32(
    float (&sums)[4], const float (&a)[4], const float (&b)[2]
) {
    pyrelay_emulator::multiplied<1>(sums, a, b);
}
static inline void pyrelay_mma_bf16(
    float (&sums)[4], const float (&a)[8], const float (&b)[4]
) {
    pyrelay_emulator::multiplied<2>(sums, a, b);
}

static inline unsigned int __ballot_sync(unsigned int, int predicate) {
    return pyrelay_emulator::ballot(predicate != 0);
}
static inline void pyrelay_forget(unsigned int &) {}
static inline unsigned int pyrelay_peers(unsigned int number) {
    return pyrelay_emulator::peers(number);
}
static inline int __popc(unsigned int bits) { return __builtin_popcount(bits); }
static inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }

// An array as a kernel's parameter: on a GPU this is a plain pointer.
template <class T> struct Buffer {
    T *data;
    long long count;
    T &operator[](long long index) const {
        static thread_local char nowhere[16];
        if ((unsigned long long)index >= (unsigned long long)count) {
            pyrelay_emulator::fault = pyrelay_emulator::OUT_OF_BOUNDS;
            memset(nowhere, 0, sizeof nowhere);
            return *(T *)nowhere;
        }
        return data[index];
    }
    bool operator!=(const Buffer &other) const { return data != other.data; }
};
template <class T>
static inline unsigned long long pyrelay_address(const Buffer<T> &array, long long index) {
    return (unsigned long long)(array.data + index);
}
template <class T>
static inline T *pyrelay_span(const Buffer<T> &array, long long index, int count) {
    static thread_local char alignas(16) nowhere[512];
    const size_t bytes = sizeof(T) * count;
    if (index < 0 || index + count > array.count) {
        pyrelay_emulator::fault = pyrelay_emulator::OUT_OF_BOUNDS;
        return (T *)nowhere;
    }
    if (pyrelay_address(array, index) % (bytes < 16 ? bytes : 16)) {
        pyrelay_emulator::fault = pyrelay_emulator::UNALIGNED;
        return (T *)nowhere;
    }
    return array.data + index;
}
// Kernels of loops have buffers that no launch tells: those of their arenas, noted when taken.
namespace pyrelay_emulator {
const int MOST_NOTED = 4096;
static thread_local struct { long long address, bytes; } noted[MOST_NOTED];
static thread_local int noted_count;
static void note(long long address, long long bytes) {
    int k = 0;
    while (k < noted_count && noted[k].address != address) k++;
    if (k == MOST_NOTED) return;
    if (k == noted_count) noted_count++;
    noted[k].address = address, noted[k].bytes = bytes;
}
static long long bytes_at(long long address) {
    for (int k = 0; k < noted_count; k++) {
        if (noted[k].address == address) return noted[k].bytes;
    }
    return 1ll << 60;
}
}
#define PYRELAY_TAKEN(address, nbytes) pyrelay_emulator::note(address, nbytes)
#define PYRELAY_BUFFER(type, word) \
    (Buffer<type>{(type *)(word), \
        pyrelay_emulator::bytes_at((long long)(word)) / (long long)sizeof(type)})
// Memory that a launch asks for is little, so that what there is no room for shows.
#define PYRELAY_DYNAMIC_BYTES 1040
static const char pyrelay_dynamic_tag = 0;
#define PYRELAY_DYNAMIC \
    ((char *)pyrelay_emulator::shared(&pyrelay_dynamic_tag, PYRELAY_DYNAMIC_BYTES))
#define PYRELAY_PART(type, name, start, count) \
    static_assert((start) + (count) * sizeof(type) <= SHARED_BYTES, #name); \
    PYRELAY_SHARED(type, name, count)
static inline void pyrelay_fetch_words(void *to, const void *from) {
    pyrelay_emulator::fetch(to, from);
}
static inline void pyrelay_fetch_group() { pyrelay_emulator::fetch_group(); }
template <int N> static inline void pyrelay_fetched() { pyrelay_emulator::fetched(N); }
#define PYRELAY_SHARED(type, name, size) \
    static const char name##_tag = 0; \
    Buffer<type> name = {(type *)pyrelay_emulator::shared(&name##_tag, (size) * sizeof(type)), size}
"""

AFTER = r"""
static inline bool pyrelay_stopped(pyrelay_record *record, int &rounds) {
    if ((++rounds & 0xfffff) != 0) return false;
    if (record->status > 1) return true;
    if (((int (*)())record->stop)() == 0) return false;
    record->status = 2, record->position = -1;
    return true;
}

inline f32 pyrelay_half_value(u16 bits) {
    const int exponent = bits >> 10 & 31, rest = bits & 1023;
    const double size = exponent == 31 ? (rest ? __builtin_nan("") : __builtin_inf())
        : exponent ? __builtin_ldexp(1024 + rest, exponent - 25) : __builtin_ldexp(rest, -24);
    return (f32)(bits >> 15 ? -size : size);
}
inline u16 pyrelay_half_bits(f64 value) {
    const u16 sign = __builtin_signbit(value) ? 0x8000 : 0;
    const double size = __builtin_fabs(value);
    if (size != size) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < __builtin_ldexp(1, -14)) {
        return sign | (u16)__builtin_rint(__builtin_ldexp(size, 24));
    }
    const int exponent = __builtin_ilogb(size);
    const int rest = (int)__builtin_rint(__builtin_ldexp(size, 10 - exponent));
    return sign | (u16)(((exponent + 15) << 10) + rest - 1024);
}
inline u16 pyrelay_half_bits(f32 value) { return pyrelay_half_bits((f64)value); }
inline u16 pyrelay_brain_bits(f32 value) {
    const u32 bits = (u32)__float_as_int(value);
    if (value != value) return (u16)(bits >> 16 & 0x8000) | 0x7fc0;
    return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline f32 pyrelay_brain_value(u16 bits) { return __int_as_float((i32)((u32)bits << 16)); }

namespace pyrelay_emulator {
// Parameters of a kernel as they stand in the words of a launch; beside the words the bytes of
// the buffers that lie at such addresses.
template <class P> struct Parameter {
    static const int words = 1;
    static P read(const long long *word, long long) {
        P value;
        memcpy(&value, word, sizeof value);
        return value;
    }
};
template <> struct Parameter<bool> {
    static const int words = 1;
    static bool read(const long long *word, long long) { return *word != 0; }
};
template <> struct Parameter<c128> {
    static const int words = 2;
    static c128 read(const long long *word, long long) {
        return c128(pyrelay_bits<double>(word[0]), pyrelay_bits<double>(word[1]));
    }
};
template <class T> struct Parameter<Buffer<T> > {
    static const int words = 1;
    static Buffer<T> read(const long long *word, long long bytes) {
        return {(T *)*word, bytes / (long long)sizeof(T)};
    }
};

template <class... Ps> struct Kernel;
template <> struct Kernel<> {
    template <class F, class... Read>
    static void run(F *kernel, const long long *, const long long *, Read... read) {
        kernel(read...);
    }
};
template <class P, class... Rest> struct Kernel<P, Rest...> {
    template <class F, class... Read>
    static void run(F *kernel, const long long *word, const long long *bytes, Read... read) {
        Kernel<Rest...>::run(
            kernel, word + Parameter<P>::words, bytes + Parameter<P>::words, read...,
            Parameter<P>::read(word, *bytes));
    }
};

template <class... Ps> struct Launch {
    typedef void Function(Ps...);
    Function *kernel;
    const long long *words, *bytes;
    static void thread(void *self) {
        Launch *launch = (Launch *)self;
        Kernel<Ps...>::template run<Function>(launch->kernel, launch->words, launch->bytes);
    }
};
// How many words the parameters take.
template <class... Ps> struct Words { static const int count = 0; };
template <class P, class... Rest> struct Words<P, Rest...> {
    static const int count = Parameter<P>::words + Words<Rest...>::count;
};
// How the threads of a kernel work: each for itself, those of a block together, all together.
enum Together { THREAD, BLOCK, GRID };
// Runs a grid of blocks.
template <class... Ps> static long long launch(
    void (*kernel)(Ps...), Together together, const long long *words, const long long *bytes,
    long long blocks, long long threads, long long turns
) {
    fault = NONE;
    order = together == GRID ? (int)turns : 0;
    Launch<Ps...> made = {kernel, words, bytes};
    blockDim.x = threads, blockDim.y = 1, gridDim.x = blocks;
    noted_count = 0;
    if (together == GRID) {
        for (int k = 0; k < Words<Ps...>::count; k++) note(words[k], bytes[k]);
        run(0, blocks, threads, Launch<Ps...>::thread, &made);
        return fault;
    }
    for (int b = blocks - 1; b >= 0 && fault == NONE; b--) {
        blockIdx.x = b;
        if (together == BLOCK) {
            run(b, 1, threads, Launch<Ps...>::thread, &made);
            continue;
        }
        for (int t = threads - 1; t >= 0; t--) {
            threadIdx.x = t;
            Launch<Ps...>::thread(&made);
        }
    }
    return fault;
}
}
""" + EMULATED_CORES
