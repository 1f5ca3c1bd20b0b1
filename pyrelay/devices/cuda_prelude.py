"""What every CUDA source starts with: scalar functions, error records, slots, numbering of threads.

In: nothing. Out: `PRELUDE`. A kernel's text follows it. The text is CUDA C++ for NVRTC; behind the
definitions of `cuda_emulator_header` the same text is C++ for the host.

Of all failures of a launch the one at the lowest position of the parallel axis is reported, so that
the error does not depend on which thread was first, and is the one that plain Python raises.
"""

from __future__ import annotations

from pyrelay.ops.cuda_prelude import CUDA_PRELUDE

RECORD = r"""
// What a launch reports: kernels write it, the host reads it.
struct pyrelay_record {
    u64 lock;
    i64 position, status, site, values[15];
    i64 stop;  // on the host: the address of the function that looks for Ctrl-C
    i64 process;  // its argument
};
// True for the thread that may write the values of its failure, and then has to release the record.
__device__ bool pyrelay_claim(pyrelay_record *record, i64 position, i64 site) {
    while (atomicCAS(&record->lock, 0ull, 1ull) != 0) {}
    __threadfence();
    if (record->status != 0 && record->position <= position) {
        atomicExch(&record->lock, 0ull);
        return false;
    }
    record->position = position;
    record->site = site;
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
template <class T> __device__ void pyrelay_put(i64 *slot, T value) {
    *slot = (i64)value;
}

#define PYRELAY_INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define PYRELAY_NAN __longlong_as_double(0x7ff8000000000000ll)

// State of a kernel's recursive routines: how deep they are, how often they were entered.
struct pyrelay_calls { int depth, rounds; };
"""

DEVICE = r"""
template <class T> using Buffer = T *;
#define PYRELAY_SHARED(type, name, count) __shared__ type name[count]
// Whether the host wants the launch to stop; looked up now and then in loops of the program.
__device__ bool pyrelay_stopped(pyrelay_record *record, int &rounds) {
    if ((++rounds & 0xfffff) != 0) return false;
    return *(volatile i64 *)&record->stop != 0;
}
"""

BLOCKS = r"""
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
// The values of all threads of a block combined, in an order that is always the same; every thread
// gets the same result (Harris, "Optimizing parallel reduction in CUDA", 2007).
template <class T, class Op> __device__ T pyrelay_combined(T value, Op combine) {
    PYRELAY_SHARED(T, held, 32);
    for (int step = 16; step > 0; step /= 2) {
        value = combine(value, pyrelay_shuffled(value, step));
    }
    if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = value;
    __syncthreads();
    value = held[0];
    for (int warp = 1; warp < (int)blockDim.x / 32; warp++) value = combine(value, held[warp]);
    __syncthreads();
    return value;
}
"""
"""Behind `DEVICE`, or what the emulator has in its place."""

PRELUDE = CUDA_PRELUDE + RECORD
"""Without what differs between a GPU and its emulation: `DEVICE` for a GPU; `BLOCKS` follows."""
