"""Running products of floats, and linear recurrences of any factors, in CUDA C++.

In: which scan, a dtype, whether the elements of a line lie side by side. Out: two texts to stand
behind `cuda_prelude`, as those of `cuda_scans`; and `SUPPORT`, which that prelude ends with.

What a chunk of a line does to a running value is told before that value is known: of a product of
factors its sign, leading bits and exponent apart, so that it neither overflows nor vanishes where
the running value does not; of a recurrence the map v -> factor * v + term, the factor as such a
product (Blelloch, "Prefix sums and their applications", 1990, section 1.4). Chunks are taken so
only where plain Python comes to the same but for rounding:

* of products, where all running values are normal numbers, by bounds of their exponents; and where
  the value is 0, infinite or NaN and stays so. A running value that overflowed or vanished on the
  way is no case of these.
* of recurrences, where all is finite and the product of no neighbouring factors is larger than 8:
  call it G. With running values of at most M each error of rounding grows by at most G on its way.
  Terms of chunks are (1 + G) M at most; d of them joined in turn are wrong by 2 d G (1 + G)**2 eps
  M at most, d being about 30, where the plain loop over n elements is by 2 n G eps M.

All other chunks are gone through one by one, as the plain loop does, by a thread, in each block
that needs to know what comes behind them. Which these are hangs on the elements alone, and so all
runs give the same bits.
"""

from __future__ import annotations

from pyrelay.ir.types import DType

THREADS = 256

SUPPORT = """
__device__ f32 pyrelay_parts(f32 x, int &exponent) { return frexpf(x, &exponent); }
__device__ f64 pyrelay_parts(f64 x, int &exponent) { return frexp(x, &exponent); }
__device__ f32 pyrelay_whole(f32 x, int exponent) { return ldexpf(x, exponent); }
__device__ f64 pyrelay_whole(f64 x, int exponent) { return ldexp(x, exponent); }
__device__ i32 pyrelay_near(i32 e) {
    const i32 far = 1 << 29;
    return e < -far ? -far : e > far ? far : e;
}
// Leading bits, from 1/2 on, times a power of two; or 0.
template <class T> struct pyrelay_factor {
    T leading;
    i32 exponent;
    __device__ T times(T v) const {
        if (leading == T(0) || v == T(0) || v - v != T(0)) return leading * v;
        int own;
        const T bits = pyrelay_parts(v, own);
        return pyrelay_whole(bits * leading, own + exponent);
    }
    __device__ void join(const pyrelay_factor &a, const pyrelay_factor &b) {
        leading = a.leading * b.leading, exponent = pyrelay_near(a.exponent + b.exponent);
        if (leading == T(0)) exponent = 0;
        if (leading != T(0) && leading < T(0.5) && leading > T(-0.5)) {
            leading = leading + leading, exponent--;
        }
    }
    __device__ f32 size() const {
        return leading == T(0) ? -1e30f : f32(exponent) + log2f(fabsf(f32(leading)));
    }
};
template <class T>
__device__ pyrelay_factor<T> pyrelay_from_below(pyrelay_factor<T> v, int by) {
    return {pyrelay_from_below(v.leading, by), pyrelay_from_below(v.exponent, by)};
}
// What a product of factors does to a running value. high, low: bounds of the exponents of the
// products of its first factors; odd: 1 for a zero among them, 2 for an infinity, 4 for a NaN.
template <class T> struct pyrelay_scaled {
    static __device__ pyrelay_scaled nothing() {
        return {{T(0.5), 1}, -(1 << 29), 1 << 29, 0};
    }
    pyrelay_factor<T> factor;
    i32 high, low, odd;
    __device__ bool fits(T v) const {
        if (v != v) return true;
        if (v == T(0)) return (odd & 6) == 0;
        if (v - v != T(0)) return (odd & 5) == 0;
        const int TOP = sizeof(T) == 8 ? 1022 : 126, BOTTOM = 3 - TOP;
        int own;
        pyrelay_parts(v, own);
        return odd == 0 && own + high < TOP && own + low > BOTTOM;
    }
    __device__ T after(T v) const {
        if (v == T(0) || v - v != T(0)) return factor.leading < T(0) ? -v : v;
        return factor.times(v);
    }
};
template <class T>
__device__ pyrelay_scaled<T> pyrelay_from_below(pyrelay_scaled<T> v, int by) {
    return {
        pyrelay_from_below(v.factor, by), pyrelay_from_below(v.high, by),
        pyrelay_from_below(v.low, by), pyrelay_from_below(v.odd, by)
    };
}
template <class T>
__device__ pyrelay_scaled<T> pyrelay_join(const pyrelay_scaled<T> &a, const pyrelay_scaled<T> &b) {
    pyrelay_scaled<T> made;
    made.factor.join(a.factor, b.factor);
    const i32 high = pyrelay_near(a.factor.exponent + b.high);
    const i32 low = pyrelay_near(a.factor.exponent + b.low - 1);
    made.high = a.high > high ? a.high : high, made.low = a.low < low ? a.low : low;
    made.odd = a.odd | b.odd;
    return made;
}
template <class T> __device__ pyrelay_scaled<T> pyrelay_enter(T x) {
    if (x == T(0) || x - x != T(0)) {
        const T sign = x < T(0) || (x == T(0) && T(1) / x < T(0)) ? T(-0.5) : T(0.5);
        return {{sign, 1}, 1, 1, x == T(0) ? 1 : x != x ? 4 : 2};
    }
    int own;
    const T bits = pyrelay_parts(x, own);
    return {{bits, own}, own, own, 0};
}
// What steps of a recurrence do to a running value. first, last, most: the largest product of the
// first, of the last, of any neighbouring factors, as logarithms.
template <class T> struct pyrelay_map {
    static __device__ pyrelay_map nothing() {
        return {{T(0.5), 1}, T(-0.0), -1e30f, -1e30f, -1e30f};
    }
    pyrelay_factor<T> factor;
    T term;
    f32 first, last, most;
    __device__ bool fits(T v) const {
        if (v != v) return true;
        const T LARGE = pyrelay_whole(T(1), sizeof(T) == 8 ? 1000 : 120);
        return most <= 3.0f && (v - v != T(0) || (v < LARGE && v > -LARGE));
    }
    __device__ T after(T v) const { return factor.times(v) + term; }
};
template <class T> __device__ pyrelay_map<T> pyrelay_from_below(pyrelay_map<T> v, int by) {
    return {
        pyrelay_from_below(v.factor, by), pyrelay_from_below(v.term, by),
        pyrelay_from_below(v.first, by), pyrelay_from_below(v.last, by),
        pyrelay_from_below(v.most, by)
    };
}
template <class T>
__device__ pyrelay_map<T> pyrelay_join(const pyrelay_map<T> &a, const pyrelay_map<T> &b) {
    pyrelay_map<T> made;
    made.factor.join(a.factor, b.factor);
    made.term = b.factor.times(a.term) + b.term;
    made.first = fmaxf(a.first, a.factor.size() + b.first);
    made.last = fmaxf(b.last, b.factor.size() + a.last);
    made.most = fmaxf(fmaxf(a.most, b.most), a.last + b.first);
    if (made.term - made.term != T(0)) made.most = 1e30f;
    return made;
}
template <class T> __device__ pyrelay_map<T> pyrelay_enter(T x, T term) {
    if (x - x != T(0) || term - term != T(0)) return {{x, 0}, term, 1e30f, 1e30f, 1e30f};
    int own = 0;
    const T bits = x == T(0) ? x : pyrelay_parts(x, own);
    pyrelay_map<T> made = {{bits, own}, term, 0.0f, 0.0f, 0.0f};
    made.first = made.last = made.most = made.factor.size();
    return made;
}
"""

BLOCK_THREADS = f"#define BLOCK_THREADS {THREADS}\n"

HEAD = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {operands}, Buffer<{state}> totals,
    Buffer<{t}> y, i64 outer, i64 length, i64 inner, i64 chunk, i64 reverse
) {{
    if (pyrelay_over(record, launch)) return;
    const i64 chunks = (length + chunk - 1) / chunk{parts};
"""
"""How all kernels of scans begin."""

_JOIN = """\
    typedef {state} State;
    auto combine = [](const State &a, const State &b) {{ return pyrelay_join(a, b); }};
"""

_BY_THREADS = """\
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
        const i64 column = item % inner, part = item / inner % chunks;
        const i64 line = item / inner / chunks;
        auto place = [&](i64 k) {{
            return (line * length + (reverse ? length - 1 - k : k)) * inner + column;
        }};
        auto end = [&](i64 part) {{
            return (part + 1) * chunk < length ? (part + 1) * chunk : length;
        }};
{work}    }}
}}
"""
_THREAD_TOTAL = """\
        State all = State::nothing();
        for (i64 k = part * chunk; k < end(part); k++) {{
            const i64 at = place(k);
            all = combine(all, pyrelay_enter({entering}));
        }}
        totals[item] = all;
"""
_THREAD_SCAN = """\
        {t} v = {start};
        for (i64 before = 0; before < part; before++) {{
            const State all = totals[(line * (chunks - 1) + before) * inner + column];
            if (all.fits(v)) {{
                v = all.after(v);
                continue;
            }}
            for (i64 k = before * chunk; k < end(before); k++) {{
                const i64 at = place(k);
                v = {step};
            }}
        }}
        for (i64 k = part * chunk; k < end(part); k++) {{
            const i64 at = place(k);
            v = {step};
            y[at] = v;
        }}
"""

# A block goes through the tiles of a chunk: of a tile each thread has neighbours.
_BY_BLOCKS = """\
    PYRELAY_SHARED({state}, warps, 32);
    PYRELAY_SHARED({t}, reached, 1);
{shared}    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = threadIdx.x * {each};
    State ahead, all;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 part = item % chunks, line = item / chunks;
        auto place = [&](i64 k) {{ return line * length + (reverse ? length - 1 - k : k); }};
        auto end = [&](i64 part) {{
            return (part + 1) * chunk < length ? (part + 1) * chunk : length;
        }};
        auto take = [&](i64 base, int count) {{
            __syncthreads();
            for (int k = threadIdx.x; k < count; k += BLOCK_THREADS) {{
                const i64 at = place(base + k);
{loads}            }}
            __syncthreads();
        }};
        auto size = [&](i64 base, i64 stop) {{
            return stop - base < {tile} ? (int)(stop - base) : {tile};
        }};
        // What the tile does altogether, and what is ahead of the thread.
        auto sum_up = [&](int count) {{
            State sum = State::nothing();
            for (int at = own; at < own + {each} && at < count; at++) {{
                sum = combine(sum, pyrelay_enter({tile_entering}));
            }}
            for (int step = 1; step < 32; step *= 2) {{
                const State before = pyrelay_from_below(sum, step);
                if (lane >= step) sum = combine(before, sum);
            }}
            if (lane == 31) warps[warp] = sum;
            ahead = pyrelay_from_below(sum, 1);
            if (lane == 0) ahead = State::nothing();
            __syncthreads();
            all = warps[0];
            for (int k = 1; k < BLOCK_THREADS / 32; k++) {{
                if (k == warp) ahead = combine(all, ahead);
                all = combine(all, warps[k]);
            }}
        }};
{work}    }}
}}
"""
_BLOCK_TOTAL = """\
        State whole = State::nothing();
        for (i64 base = part * chunk; base < end(part); base += {tile}) {{
            const int count = size(base, end(part));
            take(base, count);
            sum_up(count);
            whole = combine(whole, all);
        }}
        if (threadIdx.x == 0) totals[item] = whole;
        __syncthreads();
"""
_BLOCK_SCAN = """\
        {t} v = {start};
        // One after another, by the first thread; results stay where the operand was.
        auto one_by_one = [&](int count) {{
            if (threadIdx.x == 0) {{
                for (int at = 0; at < count; at++) {{
                    v = {tile_step};
                    tile0[at] = v;
                }}
                reached[0] = v;
            }}
            __syncthreads();
            v = reached[0];
        }};
        const i64 run = (part + BLOCK_THREADS - 1) / BLOCK_THREADS;
        State before = State::nothing();
        for (i64 k = threadIdx.x * run; k < part && k < (threadIdx.x + 1) * run; k++) {{
            before = combine(before, totals[line * (chunks - 1) + k]);
        }}
        before = pyrelay_in_order(before, combine);
        if (before.fits(v)) {{
            v = before.after(v);
        }} else {{
            for (i64 some = 0; some < part; some += 32) {{
                __syncthreads();
                if (threadIdx.x < 32 && some + threadIdx.x < part) {{
                    warps[threadIdx.x] = totals[line * (chunks - 1) + some + threadIdx.x];
                }}
                __syncthreads();
                for (i64 k = some; k < part && k < some + 32; k++) {{
                    const State known = warps[k - some];
                    if (known.fits(v)) {{
                        v = known.after(v);
                        continue;
                    }}
                    for (i64 base = k * chunk; base < end(k); base += {tile}) {{
                        const int count = size(base, end(k));
                        take(base, count);
                        one_by_one(count);
                    }}
                }}
            }}
        }}
        for (i64 base = part * chunk; base < end(part); base += {tile}) {{
            const int count = size(base, end(part));
            take(base, count);
            sum_up(count);
            if (all.fits(v)) {{
                const {t} begun = v;
                v = ahead.after(begun);
                for (int at = own; at < own + {each} && at < count; at++) {{
                    v = {tile_step};
                    tile0[at] = v;
                }}
                v = all.after(begun);
                __syncthreads();
            }} else {{
                one_by_one(count);
            }}
            for (int k = threadIdx.x; k < count; k += BLOCK_THREADS) y[place(base + k)] = tile0[k];
        }}
        __syncthreads();
"""


def is_guarded(name: str, dtype: DType) -> bool:
    """Whether a scan has kernels here."""
    return name in ("cumprod", "linear_scan") and dtype.name in ("f32", "f64")


def state_bytes(name: str, dtype: DType) -> int:
    """Bytes of what is told of a chunk."""
    single, double = (20, 32) if name == "cumprod" else (24, 40)
    return double if dtype.size == 8 else single


def tile_of(name: str) -> int:
    """Elements of a tile."""
    return THREADS * (8 if name == "cumprod" else 4)


def text(name: str, dtype: DType, *, by_blocks: bool, totals: bool) -> str:
    """One of the kernels of a scan."""
    t, product = dtype.name, name == "cumprod"
    operands = 1 if product else 2
    step = "{t}({v} * x0[at])" if product else "{t}(x0[at] * {v} + x1[at])"
    step = step.format(t=t, v="v")
    entering = ", ".join(f"x{k}[at]" for k in range(operands))
    tile = tile_of(name)
    words = {
        "t": t, "state": f"pyrelay_{'scaled' if product else 'map'}<{t}>", "tile": tile,
        "each": tile // THREADS, "parts": " - 1" * totals,
        "start": f"{t}({1 if product else -0.0})",
        "operands": ", ".join(f"Buffer<const {t}> x{k}" for k in range(operands)),
        "entering": entering, "step": step, "tile_entering": entering.replace("x", "tile"),
        "tile_step": step.replace("x0", "tile0").replace("x1", "tile1"),
        "shared": "".join(
            f"    PYRELAY_SHARED({t}, tile{k}, {tile});\n" for k in range(operands)
        ),
        "loads": "".join(
            f"                tile{k}[k] = x{k}[at];\n" for k in range(operands)
        ),
    }  # fmt: skip
    if by_blocks:
        work, body = _BLOCK_TOTAL if totals else _BLOCK_SCAN, _BY_BLOCKS
    else:
        work, body = _THREAD_TOTAL if totals else _THREAD_SCAN, _BY_THREADS
    words["work"] = work.format(**words)
    head = BLOCK_THREADS if by_blocks else ""
    return head + (HEAD + _JOIN + body).format(**words)
