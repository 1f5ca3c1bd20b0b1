"""Tiles of products by weights in registers, in kernels of loops, in CUDA C++.

In: nothing. Out: `HELD_TILE`, a part of `persistent_product.SUPPORT`; `SWITCH`, a line of each
kernel's text, and the text `with_tiles` in it.

A thread has the same weights in each round: those of its columns, for its slice of the sum. From
shared memory they are as many bytes as what they multiply, and more than shared memory gives in the
time that the sums of a tile of four by four take. Without them it has room for much of the left
operand, which comes at once. Sums are those of `pyrelay_tile`, in the same order.
"""

from __future__ import annotations

from pyrelay.devices.gpu.persistent_prelude import THREADS

SWITCH = "#define HOLDS_TILES 0"
"""Only kernels of known extents do: a thread has no registers for what it might hold."""

STEPS = 32
"""Places of a sum that a thread has weights of, at most."""

REGISTERS = 128
"""Registers of a thread for weights, at most."""

AT_ONCE = 4
"""Packs of the left operand that a thread has on their way: those of as many steps as there are."""


def with_tiles(source: str) -> str:
    """A kernel's text whose products may hold weights in registers."""
    return source.replace(SWITCH, SWITCH.replace("0", "1"))


HELD_TILE = r"""
// How threads share a tile by weights that they hold: each has `own` packs of them, of its slice of
// the sum; so many steps of the left operand are in shared memory at once.
struct pyrelay_held_form { int bits, high, slices, lines, own; Index steps; };
template <int R, int W>
__device__ pyrelay_held_form pyrelay_held_form_of(const pyrelay_split &split, Index k) {
    const pyrelay_shares shares = pyrelay_shares_of<R, W>(split.columns, split.rows);
    const int both = shares.bits + shares.high, slices = THREADS >> both;
    const int lines = R << shares.high;
    return {
        shares.bits, shares.high, slices, lines, (int)((k + slices - 1) / slices),
        AT_ONCE * THREADS * W / lines
    };
}
// Where a step lies: lines side by side, and if they are fewer than a warp as many unused behind
// each pack of steps, so that neighbours, which have the same step of their packs, store apart.
template <int W> __device__ Index pyrelay_staged(Index step, int lines) {
    return (step + (W > 1 && lines < 32 ? step / W : 0)) * lines;
}
// Bytes of shared memory that such a tile takes: for its left operand, later for sums.
template <class T, int R, int W>
__device__ i64 pyrelay_held_room(const pyrelay_held_form &form, Index k) {
    const Index steps = k < form.steps ? k : form.steps, sums = THREADS * R * W;
    const Index staged = pyrelay_staged<W>(steps, form.lines) + form.lines;
    return ((staged > sums ? staged : sums) * (i64)sizeof(T) + 15) / 16 * 16;
}
template <class T, int W> __device__ int pyrelay_held_registers(const pyrelay_held_form &form) {
    return form.own * W * (int)((sizeof(T) + 3) / 4);
}
template <class T, int R, int W>
__device__ bool pyrelay_holds_tile(
    const pyrelay_split &split, const pyrelay_held_form &form, Index k, i64 space, int registers
) {
    const bool apart = form.slices % W == 0 || form.lines >= 32;
    return HOLDS_TILES && !split.few && !split.cores && split.rows > 1 && apart
        && split.columns <= W << form.bits && form.own <= STEPS
        && pyrelay_held_registers<T, W>(form) <= registers
        && pyrelay_held_room<T, R, W>(form, k) <= space;
}
template <int W, class T> __device__ void pyrelay_hold_tile(
    T (&held)[STEPS][W], const pyrelay_held_form &form, const pyrelay_split &split,
    Buffer<const T> b, Index n, Index k, Index turned, Index line
) {
    const Index j = (threadIdx.x & ((1 << form.bits) - 1)) * W;
    const Index slice = threadIdx.x >> (form.bits + form.high);
    Index column[W];
    bool together = !turned && line % W == 0;
#pragma unroll
    for (int w = 0; w < W; w++) {
        column[w] = split.at(split.mine, j + w, n);
        together = together && column[0] >= 0 && column[w] == column[0] + w;
    }
    together = together && pyrelay_lined_up<W>(column[0], b);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const Index step = slice + i * form.slices;
        if (step < k && together) {
            const auto some = pyrelay_together<W>(b, step * line + column[0]);
#pragma unroll
            for (int w = 0; w < W; w++) held[i][w] = some.at[w];
        } else {
#pragma unroll
            for (int w = 0; w < W; w++) {
                const Index place = turned ? column[w] * line + step : step * line + column[w];
                held[i][w] = step < k && column[w] >= 0 ? b[place] : T(0);
            }
        }
    }
}
template <int R, int W, class T, class Add> __device__ void pyrelay_held_tile(
    T *stage, const T (&held)[STEPS][W], const pyrelay_split &split, const pyrelay_operand<T> &a,
    Buffer<T> c, Index c_start, Index c_line, Index row, Index rows, Index first, Index n, Index k,
    bool adds, Add add
) {
    typedef pyrelay_pack<T, W> Pack;
    const pyrelay_held_form form = pyrelay_held_form_of<R, W>(split, k);
    const int me = threadIdx.x & (THREADS - 1);  // the compiler does not know that it is less
    const int wide = 1 << form.bits, group = wide << form.high;
    const int slices = form.slices, slice = me >> (form.bits + form.high);
    const int lines = form.lines, line = me & (lines - 1);
    const int share = me & (group - 1), part = share >> form.bits;
    const bool packs = !a.turned && k % W == 0 && a.line % W == 0
        && pyrelay_lined_up<W>(a.start, a.data);
    for (Index top = 0; top < split.rows; top += lines) {
        Pack some[AT_ONCE];
        // Of a thread's packs the first one, and how far the others lie apart.
        const int begin = me / lines * W, apart = THREADS / lines * W;
        T *to = stage + pyrelay_staged<W>(begin, lines) + line;
        const Index from = a.start + (row + top + line) * a.line + begin;
        const auto fetch = [&](Index start) {
#pragma unroll
            for (int t = 0; t < AT_ONCE && packs; t++) {
                some[t] = {};
                if (start + t * apart + begin < k && top + line < rows) {
                    some[t] = pyrelay_together<W>(a.data, from + (start + t * apart));
                }
            }
        };
        const auto put = [&](Index start) {
#pragma unroll
            for (int t = 0; t < AT_ONCE && packs; t++) {
                if (start + t * apart + begin >= k) continue;
                T *next = to + pyrelay_staged<W>(t * apart, lines);
#pragma unroll
                for (int w = 0; w < W; w++) next[w * lines] = some[t].at[w];
            }
            for (Index e = me; !packs && e < form.steps * lines; e += THREADS) {
                const Index step = e / lines;
                if (start + step >= k) break;
                const bool is = top + line < rows;
                const T value = is ? a.at(row + top + line, start + step) : T(0);
                stage[pyrelay_staged<W>(step, lines) + line] = value;
            }
        };
        T sums[R][W];
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int w = 0; w < W; w++) sums[r][w] = T(0);
        }
        const T *own = stage + pyrelay_staged<W>(slice, lines) + part * R;
        const bool even = k % slices == 0;
        fetch(0);
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const Index start = i * slices, step = start % form.steps;
            if (start >= k) continue;
            if (step == 0) {
                __syncthreads();
                put(start);
                __syncthreads();
                fetch(start + form.steps);
            }
            if (!even && start + slice >= k) continue;
            const auto left = *(const pyrelay_pack<T, R> *)(own + pyrelay_staged<W>(step, lines));
#pragma unroll
            for (int r = 0; r < R; r++) {
#pragma unroll
                for (int w = 0; w < W; w++) sums[r][w] = add(sums[r][w], left.at[r], held[i][w]);
            }
        }
        __syncthreads();
        const int each = group * W;
#pragma unroll
        for (int r = 0; r < R; r++) {
            Pack put_down;
#pragma unroll
            for (int w = 0; w < W; w++) put_down.at[w] = sums[r][w];
            *(Pack *)(stage + ((r * slices + slice) * group + share) * W) = put_down;
        }
        __syncthreads();
#pragma unroll
        for (int base = 0; base < R * each; base += THREADS) {
            const int e = base + me;
            if (e >= R * each) continue;
            const int r = e / each, at = e & (each - 1), pack = at / W;
            const Index i = top + (pack >> form.bits) * R + r;
            const Index found = split.at(first, (pack & (wide - 1)) * W + at % W, n);
            if (i >= rows || found < 0) continue;
            T sum = stage[r * slices * each + at];
            for (int s = 1; s < slices; s++) sum = T(sum + stage[(r * slices + s) * each + at]);
            const Index place = c_start + (row + i) * c_line + found;
            c[place] = adds ? T(c[place] + sum) : sum;
        }
    }
}
"""
for _name, _number in (("STEPS", STEPS), ("THREADS", THREADS), ("AT_ONCE", AT_ONCE)):
    HELD_TILE = HELD_TILE.replace(_name, str(_number))
