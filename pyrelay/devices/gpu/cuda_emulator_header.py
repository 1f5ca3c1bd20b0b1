"""The host's definitions of what CUDA supplies, in front of a kernel's unchanged source.

In: nothing. Out: `BEFORE`, which goes before `cuda_prelude.PRELUDE`, and `AFTER`, which goes
between it and the kernels.

A kernel whose threads do not wait for each other runs them one after another, the last one first,
so that a result that depends on their order shows. Otherwise they are fibers
(`cuda_emulator_fibers`). An index outside of a buffer whose size is known is an error. `BEFORE`
stands behind declarations of `cuda_emulator_races`: where these watch, all threads of a launch are
fibers side by side.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_emulator_fibers import FIBERS
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
#define __forceinline__

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
namespace pyrelay_emulator {
static void pass_on();
template <class T, class Made> static inline T changed(T *place, const Made &made) {
    pyrelay_watch::Quiet quiet;
    pyrelay_watch::touched(place, sizeof(T), true, true);
    const T old = *place;
    *place = made(old);
    return old;
}
}
template <class T> static inline T atomicCAS(T *place, T wanted, T value) {
    const T old = pyrelay_emulator::changed(place, [&](T is) { return is == wanted ? value : is; });
    if (pyrelay_watch::ON && old != wanted) pyrelay_emulator::pass_on();
    return old;
}
template <class T> static inline T atomicExch(T *place, T value) {
    return pyrelay_emulator::changed(place, [&](T) { return value; });
}
template <class T> static inline T atomicAdd(T *place, T value) {
    return pyrelay_emulator::changed(place, [&](T is) { return (T)(is + value); });
}
template <class T> static inline T atomicMax(T *place, T value) {
    return pyrelay_emulator::changed(place, [&](T is) { return value > is ? value : is; });
}
static inline void __threadfence() {}
static inline long long __mul64hi(long long a, long long b) { return (__int128)a * b >> 64; }

struct pyrelay_dim3 { int x, y, z; };
static thread_local pyrelay_dim3 threadIdx, blockIdx, blockDim, gridDim;
""" + FIBERS + r"""
#define PYRELAY_SITE int site = __builtin_LINE()
static inline void __syncthreads(PYRELAY_SITE) { pyrelay_emulator::barrier(site); }
static inline int __syncthreads_or(int vote, PYRELAY_SITE) {
    return pyrelay_emulator::any(vote != 0, site);
}
#define PYRELAY_PAUSE() pyrelay_emulator::pass_on()
static inline void pyrelay_arrive(unsigned int *word) {
    pyrelay_emulator::changed(word, [](unsigned int is) { return is + 1; });
    pyrelay_watch::released(word);
}
static inline unsigned int pyrelay_arrived(const unsigned int *word) {
    pyrelay_watch::Quiet quiet;
    pyrelay_watch::touched(word, 4, false, true);
    pyrelay_watch::acquired(word);
    return *word;
}
static inline void __syncwarp(PYRELAY_SITE) { pyrelay_emulator::warp_barrier(site, true); }
template <class T>
static inline T __shfl_sync(unsigned int mask, T value, int lane, PYRELAY_SITE) {
    return pyrelay_emulator::shuffled(mask, value, lane, site);
}
template <class T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int by, PYRELAY_SITE) {
    return pyrelay_emulator::shuffled(mask, value, (threadIdx.x % 32) ^ by, site);
}
template <class T>
static inline T __shfl_down_sync(unsigned int mask, T value, int by, PYRELAY_SITE) {
    return pyrelay_emulator::shuffled(mask, value, threadIdx.x % 32 + by, site);
}
template <class T>
static inline T __shfl_up_sync(unsigned int mask, T value, int by, PYRELAY_SITE) {
    return pyrelay_emulator::shuffled(mask, value, threadIdx.x % 32 - by, site);
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

static inline unsigned int __ballot_sync(unsigned int mask, int predicate, PYRELAY_SITE) {
    return pyrelay_emulator::ballot(mask, predicate != 0, site);
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
static inline void pyrelay_ahead(const void *) {}
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
template <class... T> static inline void pyrelay_loaded(const T &...) {}
f32 pyrelay_share(f32 part, f32 whole) { return part / whole; }
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

namespace pyrelay_watch {
void interrupted(bool counts) {
    pyrelay_emulator::block->interrupted += counts;
    pyrelay_emulator::pass_on();
}
void found() { pyrelay_emulator::fault = pyrelay_emulator::RACE; }
}
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
    order = together == GRID || pyrelay_watch::ON ? (int)turns : 0;
    Launch<Ps...> made = {kernel, words, bytes};
    blockDim.x = threads, blockDim.y = 1, gridDim.x = blocks;
    noted_count = 0;
    if (together == GRID || pyrelay_watch::ON) {
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
