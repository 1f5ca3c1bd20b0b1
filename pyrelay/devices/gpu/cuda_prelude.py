"""What every CUDA source starts with: scalar functions, error records, slots, numbering of threads.

In: nothing. Out: `PRELUDE`. A kernel's text follows it. The text is CUDA C++ for NVRTC; behind the
definitions of `cuda_emulator_header` the same text is C++ for the host.

Of all failures of a launch the one at the lowest position of the parallel axis is reported, so that
the error does not depend on which thread was first, and is the one that plain Python raises.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_recurrences import SUPPORT
from pyrelay.devices.gpu.cuda_tensor_cores import DEVICE_CORES
from pyrelay.ops.cuda_prelude import CUDA_PRELUDE

STACK = 16384
"""Bytes of stack that threads with recursive routines have, the last frame's included."""

RECORD = r"""
// What launches report: kernels write it, the host reads it at the end of a call.
struct pyrelay_record {
    u64 lock;
    i64 position, status, site, values[15];
    i64 launch;  // the launch that failed
    i64 stop;  // the address of a word that the host sets to end what runs; emulated, a function
};
// Whether an earlier launch has failed: what follows it is not to happen. Programs that cannot fail
// say so with launch 0, and read no memory. Status 3: the graph with the launch is over. 4: a gate
// is closed (`guesses`). What earlier launches wrote lies in memory when a launch begins, and L1
// holds nothing then: the first look may stay there, or all warps would wait for one word of L2.
__device__ bool pyrelay_over(pyrelay_record *record, i64 launch) {
    if (launch == 0 || record->status == 0) return false;
    __threadfence();  // what stands beside the status was written before it
    const i64 status = *(volatile i64 *)&record->status;
    return *(volatile i64 *)&record->launch != launch || status >= 3;
}
// True for the thread that may write the values of its failure, and then has to release the record.
__device__ bool pyrelay_claim(pyrelay_record *record, i64 launch, i64 position, i64 site) {
    while (atomicCAS(&record->lock, 0ull, 1ull) != 0) {}
    __threadfence();
    if (record->status != 0 && record->position <= position) {
        atomicExch(&record->lock, 0ull);
        return false;
    }
    record->position = position;
    record->site = site;
    record->launch = launch;
    __threadfence();
    record->status = 1;
    return true;
}
__device__ void pyrelay_release(pyrelay_record *record) {
    __threadfence();
    atomicExch(&record->lock, 0ull);
}

// A scalar as words of 64 bits: integers extended, floats and complex numbers as their bits.
__device__ void pyrelay_put(i64 *slot, float value) {
    *slot = (i64)(u32)__float_as_int(value);
}
__device__ void pyrelay_put(i64 *slot, double value) {
    *slot = __double_as_longlong(value);
}
__device__ void pyrelay_put(i64 *slot, c64 value) {
    i64 low, high;
    pyrelay_put(&low, value.re);
    pyrelay_put(&high, value.im);
    *slot = low | (i64)((u64)high << 32);
}
__device__ void pyrelay_put(i64 *slot, c128 value) {
    pyrelay_put(slot, value.re);
    pyrelay_put(slot + 1, value.im);
}
__device__ void pyrelay_put(i64 *slot, f16 value) {
    *slot = value.bits;
}
__device__ void pyrelay_put(i64 *slot, bf16 value) {
    *slot = value.bits;
}
template <class T> __device__ void pyrelay_put(i64 *slot, T value) {
    *slot = (i64)value;
}


// A scalar that an earlier kernel left on the device, from its words.
template <class T> struct pyrelay_words {
    static __device__ T read(const i64 *slot) { return (T)*slot; }
};
template <> struct pyrelay_words<f32> {
    static __device__ f32 read(const i64 *slot) { return __int_as_float((i32)*slot); }
};
template <> struct pyrelay_words<f16> {
    static __device__ f16 read(const i64 *slot) {
        f16 value;
        value.bits = (u16)*slot;
        return value;
    }
};
template <> struct pyrelay_words<bf16> {
    static __device__ bf16 read(const i64 *slot) {
        bf16 value;
        value.bits = (u16)*slot;
        return value;
    }
};
template <> struct pyrelay_words<f64> {
    static __device__ f64 read(const i64 *slot) { return __longlong_as_double(*slot); }
};
template <> struct pyrelay_words<c64> {
    static __device__ c64 read(const i64 *slot) {
        return c64(__int_as_float((i32)*slot), __int_as_float((i32)(*slot >> 32)));
    }
};
template <> struct pyrelay_words<c128> {
    static __device__ c128 read(const i64 *slot) {
        return c128(__longlong_as_double(slot[0]), __longlong_as_double(slot[1]));
    }
};

#define PYRELAY_INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define PYRELAY_NAN __longlong_as_double(0x7ff8000000000000ll)

// State of a kernel's recursive routines: how deep they are, how often they were entered.
struct pyrelay_calls { int depth, rounds; i64 launch; };
// Whether the routines that are running, whose kernel has its state on the same stack, have used up
// most of it.
__device__ bool pyrelay_deep(const pyrelay_calls &calls) {
    volatile char here = 0;
    const u64 low = (u64)&here, high = (u64)&calls;
    return (low < high ? high - low : low - high) > MOST_STACK;
}
""".replace("MOST_STACK", str(STACK - 2048))

DEVICE = r"""
template <class T> using Buffer = T *;
// The address of an element, and of `count` elements that are read or written together.
template <class T> __device__ u64 pyrelay_address(T *array, i64 index) {
    return (u64)(array + index);
}
template <class T> __device__ T *pyrelay_span(T *array, i64 index, int count) {
    return array + index;
}
#define PYRELAY_SHARED(type, name, count) __shared__ __align__(16) type name[count]
// What a launch asked for.
extern __shared__ __align__(16) char pyrelay_dynamic[];
#define PYRELAY_DYNAMIC pyrelay_dynamic
// A part, from a byte on, of the SHARED_BYTES that a text has launches ask for.
#define PYRELAY_PART(type, name, start, count)                             \
    static_assert((start) + (count) * sizeof(type) <= SHARED_BYTES, #name); \
    type *name = (type *)(pyrelay_dynamic + (start))
#define PYRELAY_DYNAMIC_BYTES pyrelay_dynamic_bytes()
__device__ int pyrelay_dynamic_bytes() {
    int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}
#define PYRELAY_BUFFER(type, word) ((type *)(word))
#define PYRELAY_TAKEN(address, nbytes)
#define PYRELAY_PAUSE()
// Asks for what an element that will be loaded lies in, 32 bytes that come to the cache which all
// blocks share: whoever has the first element does.
template <class T> __device__ void pyrelay_ahead(const T *element) {
    if ((u64)element % 32 < sizeof(T)) asm volatile("prefetch.global.L2 [%0];" :: "l"(element));
}
// Counting up a word behind what was written before, by this thread and those that it has waited
// for, and reading it before what comes next.
__device__ void pyrelay_arrive(u32 *word) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(word) : "memory");
}
__device__ u32 pyrelay_arrived(const u32 *word) {
    u32 count;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(word) : "memory");
    return count;
}
// Products of tensor cores, added to sums: operands as the registers of `mma.sync` hold them, by
// PTX ISA's "Warp-level matrix fragments" for m16n8k8 (tf32) and m16n8k16 (bf16).
__device__ u32 pyrelay_tf32(f32 value) {
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
}
__device__ u32 pyrelay_bf16(f32 low, f32 high) {
    u32 rounded;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rounded) : "f"(high), "f"(low));
    return rounded;
}
#define PYRELAY_MMA(shape)                                                                       \
    asm(                                                                                         \
        "mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "              \
        "{%0, %1, %2, %3};"                                                                      \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                             \
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
__device__ void pyrelay_mma_tf32(f32 (&sums)[4], const f32 (&a)[4], const f32 (&b)[2]) {
    const u32 x[4] = {
        pyrelay_tf32(a[0]), pyrelay_tf32(a[1]), pyrelay_tf32(a[2]), pyrelay_tf32(a[3])
    };
    const u32 y[2] = {pyrelay_tf32(b[0]), pyrelay_tf32(b[1])};
    PYRELAY_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
}
__device__ void pyrelay_mma_bf16(f32 (&sums)[4], const f32 (&a)[8], const f32 (&b)[4]) {
    const u32 x[4] = {
        pyrelay_bf16(a[0], a[1]), pyrelay_bf16(a[2], a[3]), pyrelay_bf16(a[4], a[5]),
        pyrelay_bf16(a[6], a[7])
    };
    const u32 y[2] = {pyrelay_bf16(b[0], b[1]), pyrelay_bf16(b[2], b[3])};
    PYRELAY_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
}
// One instruction each, where comparing and choosing are three. Of zeros the largest is 0.0.
__device__ f32 pyrelay_maximum(f32 a, f32 b) {
    f32 largest;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
    return largest;
}
__device__ f32 pyrelay_minimum(f32 a, f32 b) {
    f32 least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
}
__device__ u16 pyrelay_half_bits(f32 value) {
    u16 rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
}
__device__ u16 pyrelay_half_bits(f64 value) {
    u16 rounded;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(rounded) : "d"(value));
    return rounded;
}
__device__ f32 pyrelay_half_value(u16 bits) {
    f32 value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ u16 pyrelay_brain_bits(f32 value) {
    u16 rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
}
__device__ f32 pyrelay_brain_value(u16 bits) {
    return __int_as_float((i32)((u32)bits << 16));
}
// The compiler is to keep a number itself, not what it was made of.
__device__ void pyrelay_forget(u32 &number) { asm("" : "+r"(number)); }
// The steps by which NVRTC divides, without its look for numbers that these are not right for: it
// is a branch, and nothing else is computed beside it.
__device__ f32 pyrelay_share(f32 part, f32 whole) {
    f32 inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(whole));
    inverse = fma(fma(-whole, inverse, 1.0f), inverse, inverse);
    const f32 share = part * inverse;
    return whole == 1.0f ? part : fma(fma(-whole, share, part), inverse, share);
}
// Numbers have been loaded here: what only one branch needs is not loaded there. Of few bytes or
// several parts there are few.
template <class T> __device__ void pyrelay_needed(T) {}
__device__ void pyrelay_needed(f32 x) { asm volatile("" : : "f"(x)); }
__device__ void pyrelay_needed(f64 x) { asm volatile("" : : "d"(x)); }
__device__ void pyrelay_needed(i32 x) { asm volatile("" : : "r"(x)); }
__device__ void pyrelay_needed(i64 x) { asm volatile("" : : "l"(x)); }
template <class... T> __device__ void pyrelay_loaded(T... x) { (pyrelay_needed(x), ...); }
// The lanes that have the same number of 8 bits.
__device__ u32 pyrelay_peers(u32 number) {
    u32 peers = 0xffffffffu;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        u32 mine = number & 1u << bit;
        pyrelay_forget(mine);  // NVRTC tests `number >> bit & 1`, three instructions for each bit
        const u32 set = __ballot_sync(0xffffffffu, mine != 0);
        peers &= mine != 0 ? set : ~set;
    }
    return peers;
}
// Whether the host wants the launch to stop; looked up now and then in loops of the program.
__device__ bool pyrelay_stopped(pyrelay_record *record, int &rounds) {
    if ((++rounds & 0xfffff) != 0) return false;
    return *(volatile i64 *)record->stop != 0;
}
""" + DEVICE_CORES

BLOCKS = r"""
// Neighbouring elements that a thread reads or writes in one access, or in two.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pyrelay_pack {
    T at[N];
};
template <class T> struct pyrelay_plain { typedef T type; };
template <class T> struct pyrelay_plain<const T> { typedef T type; };
template <int N, class T>
__device__ pyrelay_pack<typename pyrelay_plain<T>::type, N> pyrelay_together(
    Buffer<T> array, i64 start
) {
    typedef pyrelay_pack<typename pyrelay_plain<T>::type, N> Pack;
    return *(const Pack *)pyrelay_span(array, start, N);
}
template <int N, class T>
__device__ void pyrelay_put_together(Buffer<T> array, i64 start, const pyrelay_pack<T, N> &pack) {
    *(pyrelay_pack<T, N> *)pyrelay_span(array, start, N) = pack;
}
// Whether packs of N elements may begin at an index of all these arrays.
template <int N> __device__ bool pyrelay_lined_up(i64) { return true; }
template <int N, class T, class... Rest>
__device__ bool pyrelay_lined_up(i64 index, Buffer<T> array, Rest... rest) {
    const u64 bytes = sizeof(T) * N < 16 ? sizeof(T) * N : 16;
    return pyrelay_address(array, index) % bytes == 0 && pyrelay_lined_up<N>(index, rest...);
}
// The first index where they may; `last` if there is none.
template <int N, class... Arrays>
__device__ i64 pyrelay_head(i64 first, i64 last, Arrays... arrays) {
    for (i64 index = first; index < last && index < first + N; index++) {
        if (pyrelay_lined_up<N>(index, arrays...)) return index;
    }
    return last;
}
template <class T> __device__ T pyrelay_shuffled(T value, int mask) {
    return (T)__shfl_xor_sync(0xffffffffu, (i32)value, mask);
}
#define PYRELAY_SHUFFLED(T)                                      \
    __device__ T pyrelay_shuffled(T value, int mask) {           \
        return __shfl_xor_sync(0xffffffffu, value, mask);        \
    }
PYRELAY_SHUFFLED(i64)
PYRELAY_SHUFFLED(u64)
PYRELAY_SHUFFLED(u32)
PYRELAY_SHUFFLED(f32)
PYRELAY_SHUFFLED(f64)
__device__ c64 pyrelay_shuffled(c64 value, int mask) {
    return c64(pyrelay_shuffled(value.re, mask), pyrelay_shuffled(value.im, mask));
}
__device__ c128 pyrelay_shuffled(c128 value, int mask) {
    return c128(pyrelay_shuffled(value.re, mask), pyrelay_shuffled(value.im, mask));
}
// The value of the thread so many lanes below in the warp.
template <class T> __device__ T pyrelay_from_below(T value, int by) {
    return (T)__shfl_up_sync(0xffffffffu, value, by);
}
__device__ c64 pyrelay_from_below(c64 value, int by) {
    return c64(pyrelay_from_below(value.re, by), pyrelay_from_below(value.im, by));
}
__device__ c128 pyrelay_from_below(c128 value, int by) {
    return c128(pyrelay_from_below(value.re, by), pyrelay_from_below(value.im, by));
}
// A step of a recurrence: what was before times a factor, and a term.
template <class T> struct pyrelay_affine {
    T factor, term;
    pyrelay_affine() = default;
    __device__ pyrelay_affine(T factor, T term) : factor(factor), term(term) {}
};
template <class T>
__device__ pyrelay_affine<T> pyrelay_from_below(pyrelay_affine<T> value, int by) {
    return pyrelay_affine<T>(
        pyrelay_from_below(value.factor, by), pyrelay_from_below(value.term, by)
    );
}
// By way of which sorts change the order of a tile; how often a warp has each digit of 8 bits.
template <class T> __device__ Buffer<T> pyrelay_sort_room() {
    PYRELAY_SHARED(T, held, 16384 / sizeof(T));
    return held;
}
__device__ Buffer<u16> pyrelay_sort_counts() {
    PYRELAY_SHARED(u16, held, 2048);
    return held;
}
// The values of all threads of a block combined in the order of the threads.
template <class T, class Op> __device__ T pyrelay_in_order(T value, Op combine) {
    PYRELAY_SHARED(T, held, 32);
    for (int step = 1; step < 32; step *= 2) {
        const T before = pyrelay_from_below(value, step);
        if (threadIdx.x % 32 >= step) value = combine(before, value);
    }
    if (threadIdx.x % 32 == 31) held[threadIdx.x / 32] = value;
    __syncthreads();
    value = held[0];
    for (int warp = 1; warp < (int)blockDim.x / 32; warp++) value = combine(value, held[warp]);
    __syncthreads();
    return value;
}
// Where the threads of an item meet, which are a warp or a block.
__device__ void pyrelay_item_meets() {
    if (blockDim.x > 32) {
        __syncthreads();
    } else {
        __syncwarp();
    }
}
// The values of all threads of an item combined, in an order that is always the same; every thread
// gets the same result (Harris, "Optimizing parallel reduction in CUDA", 2007). What threads have
// stored before, all may read behind it: shuffles alone would not see to that.
template <class T, class Op> __device__ T pyrelay_combined(T value, Op combine) {
    PYRELAY_SHARED(T, held, 32);
    for (int step = 16; step > 0; step /= 2) {
        value = combine(value, pyrelay_shuffled(value, step));
    }
    if (blockDim.x == 32) {
        __syncwarp();
        return value;
    }
    if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = value;
    __syncthreads();
    value = held[0];
    for (int warp = 1; warp < (int)blockDim.x / 32; warp++) value = combine(value, held[warp]);
    __syncthreads();
    return value;
}
// The rounds of a loop from `first` to `last`, dealt out to threads of a block: N neighbours at a
// time where they `fit`, else one.
template <int COUNT> struct pyrelay_count { static const int N = COUNT; };
template <class T> struct pyrelay_the { using type = T; };
// `take` begins to read a pack, `round` does what is to be done with it; the reads of AHEAD packs
// are on their way at the same time.
template <int N, int AHEAD, class I, class Take, class Round>
__device__ void pyrelay_rounds(
    bool fit, I first, typename pyrelay_the<I>::type last, int thread, int threads,
    const Take &take, const Round &round
) {
    if (fit) {
        const pyrelay_count<N> many;
        const I step = threads * N;
        I at = first + thread * N;
        for (; at < last && last - at > (AHEAD - 1) * step; at += AHEAD * step) {
            decltype(take(many, at)) taken[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) taken[k] = take(many, I(at + k * step));
#pragma unroll
            for (int k = 0; k < AHEAD; k++) round(many, I(at + k * step), taken[k]);
        }
        for (; at < last; at += step) round(many, at, take(many, at));
    } else {
        const pyrelay_count<1> one;
        for (I at = first + thread; at < last; at += threads) round(one, at, take(one, at));
    }
}
// The first elements of a row, in shared memory.
template <class T> struct pyrelay_row { T *at; int count; };
// The part for a row of memory that a launch gives to each item, which has `bytes` of an element in
// each place, `before` of them those of other rows.
template <class T> __device__ pyrelay_row<T> pyrelay_room(int bytes, int before) {
    const int item = PYRELAY_DYNAMIC_BYTES / (int)blockDim.y / 16 * 16;
    const int most = item / bytes / 64 * 64;
    char *start = PYRELAY_DYNAMIC + (int)threadIdx.y * item + most * before;
    return {(T *)start, most};
}
// Begins to copy what there is room for, if a row consists of whole words of 16 bytes.
template <class T>
__device__ pyrelay_row<T> pyrelay_hold(
    pyrelay_row<T> room, Buffer<const T> array, i64 start, i64 length
) {
    const int each = 16 / sizeof(T);
    const bool whole = length % each == 0 && pyrelay_address(array, start) % 16 == 0;
    const int count = !whole ? 0 : length < room.count ? (int)length : room.count;
    for (int at = threadIdx.x * each; at < count; at += blockDim.x * each) {
        pyrelay_fetch_words(room.at + at, pyrelay_span(array, start + at, each));
    }
    return {room.at, count};
}
// Elements of a row from where they are.
template <int N, class T>
__device__ pyrelay_pack<T, N> pyrelay_of_row(
    const pyrelay_row<T> &row, i64 index, Buffer<const T> array, i64 start
) {
    if (index < row.count) return *(const pyrelay_pack<T, N> *)(row.at + index);
    return pyrelay_together<N>(array, start);
}
// How many threads share an item of so many elements, N at a time: a power of two.
template <int N, int THREADS> __device__ int pyrelay_lanes(i64 elements) {
    int lanes = 1;
    while (lanes < THREADS && lanes * N < elements) lanes *= 2;
    return lanes;
}
// How many threads of a block stand side by side along columns: a power of two.
__device__ int pyrelay_wide(i64 columns) {
    int wide = 1;
    while (wide < columns) wide *= 2;
    return wide;
}
template <class T> __device__ T *pyrelay_held() {
    PYRELAY_SHARED(T, held, 256);
    return &held[0];
}
// The values of the threads of a column combined, by pairs; each of them gets the result.
template <class T, class Op> __device__ T pyrelay_of_column(T value, int wide, Op combine) {
    T *held = pyrelay_held<T>();
    held[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half >= wide; half /= 2) {
        if ((int)threadIdx.x < half) {
            held[threadIdx.x] = combine(held[threadIdx.x], held[threadIdx.x + half]);
        }
        __syncthreads();
    }
    value = held[threadIdx.x % wide];
    __syncthreads();
    return value;
}
// Floats as words and back, for the arithmetic of plans (`word_texts`).
__device__ i64 pyrelay_word(f64 value) { return __double_as_longlong(value); }
__device__ i64 pyrelay_word(f32 value) { return (i64)(u32)__float_as_int(value); }
__device__ f64 f64_of(i64 word) { return __longlong_as_double(word); }
__device__ f32 f32_of(i64 word) { return __int_as_float((i32)word); }
"""
"""Behind `DEVICE`, or what the emulator has in its place."""
BLOCKS += SUPPORT  # of scans that take chunks together

PRELUDE = CUDA_PRELUDE + RECORD
"""Without what differs between a GPU and its emulation: `DEVICE` for a GPU; `BLOCKS` follows."""
