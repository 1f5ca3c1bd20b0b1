"""Which tiles a causal mask leaves out of attention and of its derivative.

In: the kernel that makes scores of products. Out: `causal`, what is known of its mask if it keeps
products, times numbers, whose column is at most (or below) their row, or so many further, and makes
all others -inf; and `lines`, CUDA C++ by which a block finds the tiles in which something is kept.
Their bounds lie in shared memory: a loop over tiles that has them in registers spills others.

A product that is left out has the power 0, which changes no sum, but for 0 times an infinity or a
NaN. So lines that would be left out are looked through, and all are taken if one is not finite:
reading them takes a small part of what multiplying does.
"""

from __future__ import annotations

import math

from pyrelay.lower.kernels.kernel import (
    EXTENT,
    PRODUCT,
    SCALAR,
    Compute,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
)
from pyrelay.records import dataclass

_KEEPS = frozenset(["less", "less_equal"])  # a column beside a row
_DROPS = frozenset(["greater", "greater_equal"])
_TURNED = {
    "less": "greater", "less_equal": "greater_equal",
    "greater": "less", "greater_equal": "less_equal",
}  # fmt: skip

_LINES = """\
// Which of the other lines a block takes: all,
struct AllLines {
    const i64 &lines;
    __device__ i64 from() const { return 0; }
    __device__ i64 to() const { return lines; }
};
"""

_REACH = """\
// or some, whose bounds take no registers in shared memory.
struct SomeLines {
    Buffer<i64> bounds;
    __device__ i64 from() const { return bounds[0]; }
    __device__ i64 to() const { return bounds[1]; }
};
__device__ bool is_odd(f32 x) {
    return ((u32)__float_as_int(x) & 0x7f800000u) == 0x7f800000u;
}
// Whether a mask leaves out an element of the scores: of a product 0 it makes -inf.
template <class Shape> __device__ bool left_out(const Shape &shape, i64 row, i64 j) {
    f32 cell = 0;
    shape(row, j, cell);
    return cell == -f32(PYRELAY_INFINITY);
}
// Where the tiles of 64 columns end of which the last of some rows keeps any; one is taken always.
template <class Shape> __device__ i64 reach(const Shape &shape, i64 last, i64 sources) {
    i64 low = 1, high = (sources + 63) / 64;
    while (low < high) {
        const i64 tile = (low + high) / 2;
        if (left_out(shape, last, 64 * tile)) high = tile;
        else low = tile + 1;
    }
    return 64 * low < sources ? 64 * low : sources;
}
// Where the tiles of 64 rows begin that keep any of some columns from `first` on.
template <class Shape> __device__ i64 onset(const Shape &shape, i64 first, i64 targets) {
    i64 low = 0, high = (targets + 63) / 64 - 1;
    while (low < high) {
        const i64 tile = (low + high) / 2;
        if (left_out(shape, 64 * tile + 63, first)) low = tile + 1;
        else high = tile;
    }
    return 64 * low;
}
// Whether any element of some lines is no number, or infinite, of those that a thread looks at:
// packs side by side, eight of which are on their way before the first is looked at.
template <int EACH> __device__ bool has_odd_in(const Matrix &x, i64 from, i64 to) {
    const u32 packs = (u32)x.depth / EACH, most = packs < BLOCK_THREADS ? packs : BLOCK_THREADS;
    const u32 across = most < 1 ? 1 : most, down = BLOCK_THREADS / across;
    bool found = false;
    for (u32 p = threadIdx.x % across; p < packs; p += across) {
        const i64 each = x.turned ? 1 : x.step, place = x.start + p * (x.turned ? x.step : EACH);
        if (threadIdx.x / across >= down) continue;
#pragma unroll 8
        for (i64 line = from + threadIdx.x / across; line < to; line += down) {
            const auto pack = pyrelay_together<EACH>(x.array, place + line * each);
#pragma unroll
            for (int e = 0; e < EACH; e++) found |= is_odd(pack.at[e]);
        }
    }
    return found;
}
__device__ bool has_odd(const Matrix &x, i64 from, i64 to) {
    constexpr int EACH = 16 / sizeof(x.array[0]);
    const bool fits = x.step % EACH == 0 && x.depth % EACH == 0 && !x.turned
        && pyrelay_address(x.array, x.start) % 16 == 0;
    return fits ? has_odd_in<EACH>(x, from, to) : has_odd_in<1>(x, from, to);
}
// Whether any thread of a block has found some, by shared memory that nobody has use for yet.
template <class T> __device__ bool anywhere(bool found, Buffer<T> room) {
    __syncthreads();
    const u32 own = __ballot_sync(0xffffffffu, found);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = T(own != 0);
    __syncthreads();
    bool any = false;
    for (int w = 0; w < BLOCK_THREADS / 32; w++) any |= room[w] != T(0);
    __syncthreads();
    return any;
}
"""

_ODD = """\
__device__ bool is_odd(u16 x) { return (x & {exponent}) == {exponent}; }
"""

_EXPONENTS = {"f16": "0x7c00u", "bf16": "0x7f80u"}


def lines(of: str, *, some: bool) -> str:
    """The text by which kernels take tiles of matrices of a type, to stand behind the definition of
    these; whether tiles may be left out."""
    odd = _ODD.replace("{exponent}", _EXPONENTS[of]) if of in _EXPONENTS else ""
    return _LINES + odd + _REACH if some else _LINES


@dataclass(frozen=True, slots=True)
class Mask:
    """A causal mask. rows: has the extent of an entry's rows; None where rows are numbered through
    all entries. added: scalars of the program that are added to a row's number."""

    rows: Parameter | None
    added: tuple[Parameter, ...] = ()


_Makers = dict[Operand, Statement]


def causal(kernel: Kernel | None) -> Mask | None:
    """The mask of a kernel that makes scores, if it is causal."""
    loops = [s for s in kernel.body if isinstance(s, For)] if kernel is not None else []
    if len(loops) != 1 or not isinstance(loops[0].body[-1], For):
        return None
    assert kernel is not None
    rows, columns = loops[0], loops[0].body[-1]
    within = (*rows.body[:-1], *columns.body[:-1])
    made: _Makers = {
        s.out: s for s in (*kernel.body, *within) if isinstance(s, Read | Compute | Load)
    }
    inside = {s.out for s in within if isinstance(s, Compute | Load)}
    store = columns.body[-1]
    if len(inside) != len(within) or not isinstance(store, Store):
        return None
    match made.get(_widened(store.value, made)):
        case Compute(primitive="where", args=(flag, kept, Literal(value=low))) if low == -math.inf:
            orders = _KEEPS
        case Compute(primitive="where", args=(flag, Literal(value=low), kept)) if low == -math.inf:
            orders = _DROPS
        case _:
            return None
    if not _is_scaled(kept, made, inside):
        return None
    while True:
        match made.get(flag):
            case Compute(
                primitive="where", args=(inner, Literal(value=True), Literal(value=False))
            ):
                flag = inner
            case Compute(primitive=name, args=(a, b)) if name in _TURNED:
                if b is columns.index:
                    a, b, name = b, a, _TURNED[name]
                return _row(b, rows, made) if a is columns.index and name in orders else None
            case _:
                return None


def _widened(operand: Operand, made: _Makers) -> Operand:
    """What an operand is another float type of, which neither zeros nor infinities see."""
    match made.get(operand):
        case Compute(out=out, primitive="cast", args=(Local() as a,)) if (
            out.dtype.kind == a.dtype.kind == "f"
        ):
            return _widened(a, made)
    return operand


def _is_scaled(operand: Operand, made: _Makers, inside: set[Local]) -> bool:
    """Whether an operand is the product times numbers that are the same for all scores."""
    match made.get(_widened(operand, made)):
        case Compute(primitive="multiply" | "divide", args=(a, b)) if b not in inside:
            return _is_scaled(a, made, inside)
        case Compute(primitive="multiply", args=(a, b)) if a not in inside:
            return _is_scaled(b, made, inside)
        case Load(array=Parameter(role=role)):
            return role == PRODUCT
    return False


def _row(operand: Operand, rows: For, made: _Makers) -> Mask | None:
    """The mask that compares an operand with a column, if that is the number of a row, or so many
    further."""
    if operand is rows.index:
        return Mask(None)
    match made.get(operand):
        case Compute(primitive="remainder", args=(a, b)) if a is rows.index:
            match made.get(b):
                case Read(parameter=Parameter(role=role) as extent) if role == EXTENT:
                    return Mask(extent)
        case Compute(primitive="add" | "subtract" as name, args=(a, b)):
            for row, other in ((a, b), (b, a)) if name == "add" else ((a, b),):
                scalars = _added(other, made)
                mask = None if scalars is None else _row(row, rows, made)
                if mask is not None and scalars is not None:
                    return Mask(mask.rows, (*mask.added, *scalars))
    return None


def _added(operand: Operand, made: _Makers) -> tuple[Parameter, ...] | None:
    """The scalars in what is made of them, of extents and small numbers; None for others."""
    match operand, made.get(operand):
        case Literal(value=value), _:
            return () if abs(value) < 1 << 32 else None
        case _, Read(parameter=Parameter(role=role) as parameter) if role in (EXTENT, SCALAR):
            return (parameter,) if role == SCALAR else ()
        case _, Compute(primitive="add" | "subtract", args=args):
            found = [_added(a, made) for a in args]
            return None if None in found else tuple(p for each in found for p in each or ())
    return None
