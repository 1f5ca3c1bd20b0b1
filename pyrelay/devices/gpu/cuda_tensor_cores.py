"""Tensor cores, tiles and copies for kernels of 16-bit floats, in CUDA C++.

In: nothing. Out: `DEVICE_CORES`, to stand behind `cuda_prelude.DEVICE`, what the emulator has in
its place (`EMULATED_CORES`, behind its `AFTER`), and `TILES`, for texts of kernels: a tile is 64
lines of up to 128 elements in shared memory, of a `matrix` that lies anywhere.

Operands of `mma.sync.m16n8k16` have the lanes of NVIDIA, "PTX ISA", section 9.7.14 (Warp-level
matrix fragments): pairs of neighbouring elements in a register, as `ldmatrix` reads them. Copies
without registers (`cp.async`) are over for a thread when it has waited for them, for others behind
the next barrier.
"""

from __future__ import annotations

DEVICE_CORES = r"""
__device__ u32 pyrelay_shared_address(const void *place) {
    u32 address;
    asm("{ .reg .u64 whole; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole; }"
        : "=r"(address) : "l"(place));
    return address;
}
// Addresses are those of whole tiles and what is added to them, of which the compiler knows that it
// is the same for many of them.
// Starts to copy 16 bytes to shared memory; what was started is waited for by groups.
template <class T> __device__ void pyrelay_fetch(T *to, int at, const T *from, i64 start) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
        : : "r"(pyrelay_shared_address(to) + (u32)sizeof(T) * at), "l"(from + start) : "memory");
}
__device__ void pyrelay_fetch_words(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
        : : "r"(pyrelay_shared_address(to)), "l"(from) : "memory");
}
__device__ void pyrelay_fetch_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
// Waits for all groups but the last N.
template <int N> __device__ void pyrelay_fetched() {
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
}
// Four matrices of 8 by 8; lane k says where line k % 8 of matrix k / 8 begins.
__device__ void pyrelay_matrices(u32 (&made)[4], const u16 *memory, int at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(made[0]), "=r"(made[1]), "=r"(made[2]), "=r"(made[3])
        : "r"(pyrelay_shared_address(memory) + 2 * at) : "memory");
}
__device__ void pyrelay_matrices_turned(u32 (&made)[4], const u16 *memory, int at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(made[0]), "=r"(made[1]), "=r"(made[2]), "=r"(made[3])
        : "r"(pyrelay_shared_address(memory) + 2 * at) : "memory");
}
// The same number, and nobody knows how it was made: what is made of it is not kept in registers
// from before a loop, and what is added to it as an address is a part of instructions.
__device__ int pyrelay_anew(int number) {
    asm volatile("" : "+r"(number));
    return number;
}
// 2 to a power, with 22 digits; what would be below the normal numbers is 0.
__device__ f32 pyrelay_exp2(f32 power) {
    f32 made;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(power));
    return made;
}
__device__ f32 pyrelay_log2(f32 value) {
    f32 made;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(value));
    return made;
}
__device__ u32 pyrelay_pair(f32 low, f32 high, bf16) { return pyrelay_bf16(low, high); }
__device__ u32 pyrelay_pair(f32 low, f32 high, f16) {
    u32 rounded;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(rounded) : "f"(high), "f"(low));
    return rounded;
}
// Takes away from two numbers what was rounded to a pair.
__device__ void pyrelay_rest(f32 &low, f32 &high, u32 pair, bf16) {
    low -= __int_as_float((i32)(pair << 16));
    high -= __int_as_float((i32)(pair & 0xffff0000u));
}
__device__ void pyrelay_rest(f32 &low, f32 &high, u32 pair, f16) {
    low -= pyrelay_half_value((u16)pair);
    high -= pyrelay_half_value((u16)(pair >> 16));
}
// float32 of 11 digits, which tensor cores read as they are: the rest of their bits is 0.
struct tf32 {};
__device__ void pyrelay_mma(f32 (&sums)[4], const u32 (&x)[4], const u32 (&y)[2], tf32) {
    PYRELAY_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
}
__device__ void pyrelay_mma(f32 (&sums)[4], const u32 (&x)[4], const u32 (&y)[2], bf16) {
    PYRELAY_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
}
__device__ void pyrelay_mma(f32 (&sums)[4], const u32 (&x)[4], const u32 (&y)[2], f16) {
    PYRELAY_MMA("m16n8k16.row.col.f32.f16.f16.f32");
}
"""

EMULATED_CORES = r"""
template <class T> static inline void pyrelay_fetch(
    const Buffer<T> &to, long long at, const Buffer<const T> &from, long long start
) {
    const int count = 16 / sizeof(T);
    pyrelay_emulator::fetch(pyrelay_span(to, at, count), pyrelay_span(from, start, count));
}
static inline void pyrelay_matrices(u32 (&made)[4], const Buffer<u16> &memory, long long at) {
    pyrelay_emulator::matrices(made, pyrelay_span(memory, at, 8), false);
}
static inline void pyrelay_matrices_turned(
    u32 (&made)[4], const Buffer<u16> &memory, long long at
) {
    pyrelay_emulator::matrices(made, pyrelay_span(memory, at, 8), true);
}
static inline int pyrelay_anew(int number) { return number; }
static inline f32 pyrelay_log2(f32 value) { return (f32)__builtin_log2(value); }
static inline f32 pyrelay_exp2(f32 power) { return __builtin_exp2f(power); }
template <class H> static inline u32 pyrelay_pair(f32 low, f32 high, H) {
    return (u32)H(low).bits | (u32)H(high).bits << 16;
}
template <class H> static inline void pyrelay_rest(f32 &low, f32 &high, u32 pair, H) {
    H one, other;
    one.bits = (u16)pair, other.bits = (u16)(pair >> 16);
    low -= (f32)one, high -= (f32)other;
}
struct tf32 {};
static inline u32 pyrelay_tf32(f32 value) {
    if (value != value) return 0x7fffe000;
    return (u32)__float_as_int(pyrelay_emulator::rounded(value, 0x1000, 13));
}
static inline u32 pyrelay_bf16(f32 low, f32 high) {
    return (u32)pyrelay_brain_bits(low) | (u32)pyrelay_brain_bits(high) << 16;
}
// A GPU would cut off digits that are not 0; that they were rounded is looked at.
static inline void pyrelay_mma(f32 (&sums)[4], const u32 (&x)[4], const u32 (&y)[2], tf32) {
    f32 a[4], b[2];
    for (int k = 0; k < 6; k++) {
        const u32 bits = k < 4 ? x[k] : y[k - 4];
        (k < 4 ? a[k] : b[k - 4]) = __int_as_float((i32)bits);
        if (bits & 0x1fff) pyrelay_emulator::fault = pyrelay_emulator::UNROUNDED;
    }
    pyrelay_emulator::added_up<1>(sums, a, b);
}
template <class H>
static inline void pyrelay_mma(f32 (&sums)[4], const u32 (&x)[4], const u32 (&y)[2], H) {
    f32 a[8], b[4];
    for (int k = 0; k < 12; k++) {
        H half;
        half.bits = (u16)((k < 8 ? x[k / 2] : y[k / 2 - 4]) >> (k % 2 * 16));
        (k < 8 ? a[k] : b[k - 8]) = (f32)half;
    }
    pyrelay_emulator::added_up<2>(sums, a, b);
}
"""

LINE = 136
"""Elements from one line of a tile to the next: 8 lines lie in different banks."""


def matrix(element: str) -> str:
    """What the texts of kernels that take tiles of such elements call a matrix."""
    return f"""\
// A matrix of which tiles are taken: element d of a line is at start + i * step + d, or, turned, at
// start + d * step + i.
struct Matrix {{
    Buffer<const {element}> array;
    i64 start, step, lines, depth;
    bool turned;
}};
"""


TILES = f"\nconst int LINE = {LINE};\n" + matrix("u16") + r"""typedef pyrelay_pack<u16, 8> Eight;
// Elements from d0 on of 64 lines, in so many columns (a multiple of 16) of a tile whose lines are
// STEP elements apart; zeros outside. What can be copied without registers is on its way only.
template <int STEP = LINE>
__device__ void take(
    const Matrix &x, Buffer<u16> tile, i64 first, i64 d0, int columns, int behind = 0
) {
    const bool fits = x.step % 8 == 0 && pyrelay_address(x.array, x.start) % 16 == 0;
    const int packs = columns / 8;
    const bool inside = first + 64 <= x.lines && d0 + columns <= x.depth;
    if (fits && inside && !x.turned && BLOCK_THREADS % packs == 0) {
        const int i = threadIdx.x / packs, d = threadIdx.x % packs * 8;
        const int down = BLOCK_THREADS / packs;
        i64 from = x.start + (first + i) * x.step + d0 + d;
        const i64 each = down * x.step;
        for (int line = i; line < 64; line += down, from += each) {
            pyrelay_fetch(tile, behind + line * STEP + d, x.array, from);
        }
        return;
    }
    if (!x.turned) {
#pragma unroll 1
        for (int k = threadIdx.x; k < 64 * packs; k += BLOCK_THREADS) {
            const int i = k / packs, d = k % packs * 8;
            const i64 line = first + i, from = x.start + line * x.step + d0 + d;
            if (fits && line < x.lines && d0 + d + 8 <= x.depth) {
                pyrelay_fetch(tile, behind + i * STEP + d, x.array, from);
                continue;
            }
            Eight pack = {};
            if (line < x.lines) {
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    if (d0 + d + e < x.depth) pack.at[e] = x.array[from + e];
                }
            }
            pyrelay_put_together<8>(tile, behind + i * STEP + d, pack);
        }
        return;
    }
#pragma unroll 1
    for (int k = threadIdx.x; k < 8 * columns; k += BLOCK_THREADS) {
        const int i = k % 8 * 8, d = k / 8;
        const i64 line = first + i, from = x.start + (d0 + d) * x.step + line;
        Eight pack = {};
        if (d0 + d < x.depth) {
            if (fits && line + 8 <= x.lines) {
                pack = pyrelay_together<8>(x.array, from);
            } else {
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    if (line + e < x.lines) pack.at[e] = x.array[from + e];
                }
            }
        }
#pragma unroll
        for (int e = 0; e < 8; e++) tile[behind + (i + e) * STEP + d] = pack.at[e];
    }
}
__device__ int in_tile(i64 left) { return left < 128 ? ((int)left + 15) / 16 * 16 : 128; }
// Where the lane's line begins of the left operand of a product, 16 by 16 elements from a line on;
// of two right operands beside each other whose lines are columns; of two whose lines are places.
template <int STEP = LINE> __device__ int left_lane(int line) {
    return (line + threadIdx.x % 16) * STEP + threadIdx.x % 32 / 16 * 8;
}
template <int STEP = LINE> __device__ int right_lane(int line) {
    return (line + threadIdx.x % 8 + threadIdx.x % 32 / 16 * 8) * STEP + threadIdx.x % 16 / 8 * 8;
}
// Two neighbouring elements of a line, each of which may lie outside of the line.
template <class T>
__device__ void put_pair(Buffer<T> y, i64 place, f32 low, f32 high, i64 inside) {
    if (inside >= 2 && pyrelay_lined_up<2>(place, y)) {
        const pyrelay_pack<T, 2> pack = {{T(low), T(high)}};
        pyrelay_put_together<2>(y, place, pack);
    } else {
        if (inside >= 1) y[place] = T(low);
        if (inside >= 2) y[place + 1] = T(high);
    }
}
// Two products beside each other.
template <class H>
__device__ void two_products(f32 (&one)[4], f32 (&other)[4], const u32 (&a)[4], const u32 (&b)[4]) {
    const u32 near[2] = {b[0], b[1]}, far[2] = {b[2], b[3]};
    pyrelay_mma(one, a, near, H());
    pyrelay_mma(other, a, far, H());
}
"""
