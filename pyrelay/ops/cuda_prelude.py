"""CUDA C++ functions that the spellings of `ops.scalar` call and CUDA itself does not have.

In: nothing. Out: `CUDA_PRELUDE`, which goes before every kernel. It needs no header of CUDA's, so
that NVRTC compiles it as it is and a host compiler behind a few definitions of its own.

Overloads for float and double win over the integers' templates, complex ones over both.
"""

CUDA_PRELUDE = r"""
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// Floats of 16 bits, which are moved and cast; arithmetic is that of f32. What is converted to f16
// is rounded once, whole numbers after they have become f32, as in NumPy; to bf16 from f32, as in
// ml_dtypes.
__device__ u16 pyrelay_half_bits(f32 value);
__device__ u16 pyrelay_half_bits(f64 value);
__device__ f32 pyrelay_half_value(u16 bits);
struct f16 {
    u16 bits;
    f16() = default;
    __device__ explicit f16(f32 value) : bits(pyrelay_half_bits(value)) {}
    __device__ explicit f16(f64 value) : bits(pyrelay_half_bits(value)) {}
    template <class T> __device__ explicit f16(T value) : f16((f32)value) {}
    __device__ operator f32() const { return pyrelay_half_value(bits); }
};

__device__ u16 pyrelay_brain_bits(f32 value);
__device__ f32 pyrelay_brain_value(u16 bits);
struct bf16 {
    u16 bits;
    bf16() = default;
    __device__ explicit bf16(f32 value) : bits(pyrelay_brain_bits(value)) {}
    template <class T> __device__ explicit bf16(T value) : bf16((f32)value) {}
    __device__ operator f32() const { return pyrelay_brain_value(bits); }
};

template <class T> __device__ T pyrelay_floor_divide(T a, T b) {
    if (b == 0) return 0;
    if (T(-1) < T(0) && b == T(-1)) return T(0ull - (u64)a);
    T quotient = a / b;
    return quotient - (T)((a % b != 0) && ((a < 0) != (b < 0)));
}
template <class T> __device__ T pyrelay_remainder(T a, T b) {
    if (b == 0 || (T(-1) < T(0) && b == T(-1))) return 0;
    T rest = a % b;
    return (rest != 0 && ((rest < 0) != (b < 0))) ? (T)(rest + b) : rest;
}
__device__ i64 pyrelay_truncated(f64 a) {
    if (a >= -9223372036854775808.0 && a < 9223372036854775808.0) return (i64)a;
    return a != a ? 0 : (i64)(a > 0 ? ~0ull >> 1 : 1ull << 63);
}
template <class T> __device__ T pyrelay_power(T a, T b) {
    if (b < 0) return a == 1 ? T(1) : a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
    u64 result = 1, factor = (u64)a;
    for (u64 left = (u64)b; left; left >>= 1) {
        if (left & 1) result *= factor;
        factor *= factor;
    }
    return (T)result;
}
template <class T> __device__ T pyrelay_absolute(T a) {
    return a < 0 ? T(0ull - (u64)a) : a;
}
// By 32 bits: NVRTC 13.0 takes the 8 bits above an absolute value of 8 for zeros that they are not.
__device__ i8 pyrelay_absolute(i8 a) { return (i8)(a < 0 ? -(i32)a : (i32)a); }
template <class T> __device__ T pyrelay_sign(T a) {
    return a != a ? a : T((a > T(0)) - (a < T(0)));
}
template <class T> __device__ T pyrelay_square(T a) {
    return (T)((u64)a * (u64)a);
}
template <class T> __device__ T pyrelay_minimum(T a, T b) { return (a < b || a != a) ? a : b; }
template <class T> __device__ T pyrelay_maximum(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> __device__ T pyrelay_left_shift(T a, T b) {
    return (u64)b < 8 * sizeof(T) ? T((u64)a << b) : T(0);
}
template <class T> __device__ T pyrelay_right_shift(T a, T b) {
    if ((u64)b < 8 * sizeof(T)) return a >> b;
    return a < 0 ? T(-1) : T(0);
}
__device__ bool pyrelay_add_overflows(i64 a, i64 b) {
    i64 sum = (i64)((u64)a + (u64)b);
    return ((a ^ sum) & (b ^ sum)) < 0;
}
__device__ bool pyrelay_subtract_overflows(i64 a, i64 b) {
    i64 rest = (i64)((u64)a - (u64)b);
    return ((a ^ b) & (a ^ rest)) < 0;
}
__device__ bool pyrelay_multiply_overflows(i64 a, i64 b) {
    const i64 lowest = (i64)(1ull << 63);
    if (a == 0 || b == 0) return false;
    if (a == -1) return b == lowest;
    if (b == -1) return a == lowest;
    return (i64)((u64)a * (u64)b) / b != a;
}
__device__ u64 pyrelay_rest(i64 a, u64 size) {
    if (a >= 0) return (u64)a % size;
    u64 rest = (0 - (u64)a) % size;
    return rest ? size - rest : 0;
}
__device__ u64 pyrelay_rest_of_sum(u64 a, u64 b, u64 size) {
    return a + b >= size ? a + b - size : a + b;
}
__device__ i64 pyrelay_signed_rest(u64 rest, i64 n) {
    return n < 0 && rest ? (i64)(rest + (u64)n) : (i64)rest;
}
__device__ i64 pyrelay_add_remainder(i64 a, i64 b, i64 n) {
    if (n == 0) return 0;
    u64 size = n < 0 ? 0 - (u64)n : (u64)n;
    u64 rest = pyrelay_rest_of_sum(pyrelay_rest(a, size), pyrelay_rest(b, size), size);
    return pyrelay_signed_rest(rest, n);
}
__device__ i64 pyrelay_subtract_remainder(i64 a, i64 b, i64 n) {
    if (n == 0) return 0;
    u64 size = n < 0 ? 0 - (u64)n : (u64)n, other = pyrelay_rest(b, size);
    u64 rest = pyrelay_rest_of_sum(pyrelay_rest(a, size), other ? size - other : 0, size);
    return pyrelay_signed_rest(rest, n);
}
__device__ i64 pyrelay_multiply_remainder(i64 a, i64 b, i64 n) {
    if (n == 0) return 0;
    u64 size = n < 0 ? 0 - (u64)n : (u64)n, rest = 0, part = pyrelay_rest(a, size);
    for (u64 left = pyrelay_rest(b, size); left; left >>= 1) {
        if (left & 1) rest = pyrelay_rest_of_sum(rest, part, size);
        part = pyrelay_rest_of_sum(part, part, size);
    }
    return pyrelay_signed_rest(rest, n);
}
__device__ i64 pyrelay_power_remainder(i64 a, i64 b, i64 n) {
    i64 rest = pyrelay_multiply_remainder(1, 1, n);
    for (u64 left = (u64)b; left; left >>= 1) {
        if (left & 1) rest = pyrelay_multiply_remainder(rest, a, n);
        a = pyrelay_multiply_remainder(a, a, n);
    }
    return rest;
}
__device__ double pyrelay_true_quotient(i64 a, i64 b) {
    u64 n = a < 0 ? 0 - (u64)a : (u64)a, d = b < 0 ? 0 - (u64)b : (u64)b;
    if (((n | d) >> 53) == 0 || n == 0 || d == 0) return (double)a / (double)b;
    int exponent = -63;
    for (; n >> 63 == 0; n <<= 1) --exponent;
    for (; d >> 63 == 0; d <<= 1) ++exponent;
    u64 found = 0, rest = n >> 1, next = n & 1;
    for (int k = 0; k < 64; ++k, next = 0) {
        bool carry = rest >> 63;
        rest = rest << 1 | next;
        bool fits = carry || rest >= d;
        if (fits) rest -= d;
        found = found << 1 | (u64)fits;
    }
    double size = ldexp((double)(found | (u64)(rest != 0)), exponent);
    return (a < 0) != (b < 0) ? -size : size;
}
// Quotients of numbers up to 1 by a number from 1 to 2, which is 1 beside those below 2^-24.
__device__ float pyrelay_share(float part, float whole);
__device__ double pyrelay_share(double part, double whole) { return part / whole; }
// A division whose second number is the same many times: what is asked of it here compilers ask
// once. No branch, where a division has one. Rounded once, but results below 2^-60 may be the
// neighbour of that.
__device__ float pyrelay_quotient(float part, float whole) {
    const float size = fabsf(whole);
    const float scale = size > 0x1p125f ? 0x1p-4f : size < 0x1p-40f ? 0x1p40f : 1.0f;
    const float scaled = whole * scale, inverse = 1.0f / scaled;
    part = part * scale;
    const float near = part * inverse, found = fabsf(near);
    const float rounded = fmaf(fmaf(-scaled, near, part), inverse, near);
    return found > 0x1p-60f && found <= 0x1.fffffep127f ? rounded : near;
}
#define PYRELAY_FLOAT(T)                                                                   \
    __device__ T pyrelay_remainder(T a, T b) {                                             \
        T rest = fmod(a, b);                                                               \
        if (rest == 0) return copysign(T(0), b);                                           \
        return (rest < 0) != (b < 0) ? rest + b : rest;                                    \
    }                                                                                      \
    __device__ T pyrelay_floor_divide(T a, T b) {                                          \
        if (b == 0) return a / b;                                                          \
        T rest = fmod(a, b), quotient = (a - rest) / b;                                    \
        if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;                             \
        if (quotient == 0) return copysign(T(0), a / b);                                   \
        T down = floor(quotient);                                                          \
        return quotient - down > T(0.5) ? down + 1 : down;                                 \
    }                                                                                      \
    __device__ T pyrelay_square(T a) { return a * a; }                                     \
    __device__ T pyrelay_sigmoid(T a) {                                                    \
        T small = exp(-fabs(a));                                                           \
        return pyrelay_share(a < 0 ? small : T(1), 1 + small);                             \
    }                                                                                      \
    __device__ T pyrelay_logaddexp(T a, T b) {                                             \
        if (a == b) return a + T(0.693147180559945309417232121458176568);                  \
        T gap = a - b;                                                                     \
        return gap > 0 ? a + log1p(exp(-gap)) : gap <= 0 ? b + log1p(exp(gap)) : gap;      \
    }
PYRELAY_FLOAT(float)
PYRELAY_FLOAT(double)

template <class T> struct pyrelay_complex {
    T re, im;
    pyrelay_complex() = default;
    __device__ pyrelay_complex(T a, T b = T(0)) : re(a), im(b) {}
    template <class U> __device__ explicit pyrelay_complex(const pyrelay_complex<U> &z)
        : re((T)z.re), im((T)z.im) {}
};
typedef pyrelay_complex<float> c64;
typedef pyrelay_complex<double> c128;
#define PYRELAY_COMPLEX template <class T> __device__
#define PYRELAY_Z pyrelay_complex<T>
PYRELAY_COMPLEX PYRELAY_Z operator+(PYRELAY_Z a, PYRELAY_Z b) {
    return PYRELAY_Z(a.re + b.re, a.im + b.im);
}
PYRELAY_COMPLEX PYRELAY_Z operator-(PYRELAY_Z a, PYRELAY_Z b) {
    return PYRELAY_Z(a.re - b.re, a.im - b.im);
}
PYRELAY_COMPLEX PYRELAY_Z operator-(PYRELAY_Z a) { return PYRELAY_Z(-a.re, -a.im); }
PYRELAY_COMPLEX PYRELAY_Z operator*(PYRELAY_Z a, PYRELAY_Z b) {
    return PYRELAY_Z(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
// Smith's algorithm (Comm. ACM 5, 1962), as NumPy's loops.
PYRELAY_COMPLEX PYRELAY_Z operator/(PYRELAY_Z a, PYRELAY_Z b) {
    T width = b.re < 0 ? -b.re : b.re, height = b.im < 0 ? -b.im : b.im;
    if (width == 0 && height == 0) return PYRELAY_Z(a.re / width, a.im / width);
    if (width >= height) {
        T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return PYRELAY_Z((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
    }
    T ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return PYRELAY_Z((a.im + a.re * ratio) * scale, (a.im * ratio - a.re) * scale);
}
PYRELAY_COMPLEX bool operator==(PYRELAY_Z a, PYRELAY_Z b) { return a.re == b.re && a.im == b.im; }
PYRELAY_COMPLEX bool operator!=(PYRELAY_Z a, PYRELAY_Z b) { return a.re != b.re || a.im != b.im; }
PYRELAY_COMPLEX bool operator!(PYRELAY_Z a) { return a.re == 0 && a.im == 0; }
// NumPy orders complex numbers by the real part, then by the imaginary part.
PYRELAY_COMPLEX bool operator<(PYRELAY_Z a, PYRELAY_Z b) {
    return a.re < b.re || (a.re == b.re && a.im < b.im);
}
PYRELAY_COMPLEX bool operator<=(PYRELAY_Z a, PYRELAY_Z b) {
    return a.re < b.re || (a.re == b.re && a.im <= b.im);
}
PYRELAY_COMPLEX bool operator>(PYRELAY_Z a, PYRELAY_Z b) { return b < a; }
PYRELAY_COMPLEX bool operator>=(PYRELAY_Z a, PYRELAY_Z b) { return b <= a; }
PYRELAY_COMPLEX PYRELAY_Z pyrelay_make(T re, T im) { return PYRELAY_Z(re, im); }
PYRELAY_COMPLEX T pyrelay_absolute(PYRELAY_Z a) { return hypot(a.re, a.im); }
PYRELAY_COMPLEX PYRELAY_Z pyrelay_square(PYRELAY_Z a) { return a * a; }
PYRELAY_COMPLEX PYRELAY_Z pyrelay_conj(PYRELAY_Z a) { return PYRELAY_Z(a.re, -a.im); }
PYRELAY_COMPLEX bool pyrelay_isnan(PYRELAY_Z a) { return isnan(a.re) || isnan(a.im); }
PYRELAY_COMPLEX bool pyrelay_isinf(PYRELAY_Z a) { return isinf(a.re) || isinf(a.im); }
PYRELAY_COMPLEX bool pyrelay_isfinite(PYRELAY_Z a) { return isfinite(a.re) && isfinite(a.im); }
PYRELAY_COMPLEX PYRELAY_Z pyrelay_exp(PYRELAY_Z a) {
    T size = exp(a.re);
    if (a.im == 0) return PYRELAY_Z(size, a.im);
    return PYRELAY_Z(size * cos(a.im), size * sin(a.im));
}
PYRELAY_COMPLEX PYRELAY_Z pyrelay_log(PYRELAY_Z a) {
    return PYRELAY_Z(log(hypot(a.re, a.im)), atan2(a.im, a.re));
}
// The root with a non-negative real part; Kahan's formula scaled against overflow.
PYRELAY_COMPLEX PYRELAY_Z pyrelay_sqrt(PYRELAY_Z a) {
    T half = T(0.5), large = sqrt(hypot(a.re * half, a.im * half) + fabs(a.re) * half);
    T small = large == 0 ? large : fabs(a.im) * half / large;
    if (a.re >= 0) return PYRELAY_Z(large, copysign(small, a.im));
    return PYRELAY_Z(small, copysign(large, a.im));
}
PYRELAY_COMPLEX PYRELAY_Z pyrelay_sin(PYRELAY_Z a) {
    return PYRELAY_Z(sin(a.re) * cosh(a.im), cos(a.re) * sinh(a.im));
}
PYRELAY_COMPLEX PYRELAY_Z pyrelay_cos(PYRELAY_Z a) {
    return PYRELAY_Z(cos(a.re) * cosh(a.im), -(sin(a.re) * sinh(a.im)));
}
// exp(b log a); 0 to the power 0 is 1, to a power with a positive real part 0.
PYRELAY_COMPLEX PYRELAY_Z pyrelay_power(PYRELAY_Z a, PYRELAY_Z b) {
    if (b.re == 0 && b.im == 0) return PYRELAY_Z(1, 0);
    if (a.re == 0 && a.im == 0 && b.re > 0) return PYRELAY_Z(0, 0);
    return pyrelay_exp(pyrelay_log(a) * b);
}

// NumPy's casts. A float that no integer of the type can hold becomes what x86-64 makes of it:
// widths below 64 keep the low bits of a wider conversion, whose answer is its lowest number.
template <class S> __device__ i64 pyrelay_to_i64(S x) {
    return x >= S(-9223372036854775808.0) && x < S(9223372036854775808.0)
        ? (i64)x : (i64)(1ull << 63);
}
template <class S> __device__ int pyrelay_to_i32(S x) {
    return x > S(-2147483649.0) && x < S(2147483648.0) ? (int)x : (int)(1u << 31);
}
template <class T, class S> struct pyrelay_from_float {
    static __device__ T to(S x) { return (T)pyrelay_to_i32(x); }
};
template <class S> struct pyrelay_from_float<i64, S> {
    static __device__ i64 to(S x) { return pyrelay_to_i64(x); }
};
template <class S> struct pyrelay_from_float<u32, S> {
    static __device__ u32 to(S x) { return (u32)pyrelay_to_i64(x); }
};
template <class S> struct pyrelay_from_float<u64, S> {
    static __device__ u64 to(S x) {
        const S half = S(9223372036854775808.0);
        if (x >= half) return (u64)pyrelay_to_i64(x - half) ^ (1ull << 63);
        return (u64)pyrelay_to_i64(x);
    }
};
template <class S> struct pyrelay_from_float<bool, S> {
    static __device__ bool to(S x) { return x != 0; }
};
template <class S> struct pyrelay_from_float<f16, S> {
    static __device__ f16 to(S x) { return f16(x); }
};
template <class S> struct pyrelay_from_float<bf16, S> {
    static __device__ bf16 to(S x) { return bf16(x); }
};
template <class S> struct pyrelay_from_float<float, S> {
    static __device__ float to(S x) { return (float)x; }
};
template <class S> struct pyrelay_from_float<double, S> {
    static __device__ double to(S x) { return (double)x; }
};
template <class T, class S> __device__ T pyrelay_same_bits(S x) {
    T same;
    memcpy(&same, &x, sizeof same);
    return same;
}
template <class T> struct pyrelay_to {
    template <class S> static __device__ T of(S x) { return (T)x; }
    static __device__ T of(float x) { return pyrelay_from_float<T, float>::to(x); }
    static __device__ T of(double x) { return pyrelay_from_float<T, double>::to(x); }
    static __device__ T of(c64 x) { return of(x.re); }
    static __device__ T of(c128 x) { return of(x.re); }
};
template <> struct pyrelay_to<bool> {
    template <class S> static __device__ bool of(S x) { return x != S(0); }
};
template <class P> struct pyrelay_to<pyrelay_complex<P> > {
    template <class S> static __device__ pyrelay_complex<P> of(S x) {
        return pyrelay_complex<P>((P)x, P(0));
    }
    template <class U> static __device__ pyrelay_complex<P> of(pyrelay_complex<U> x) {
        return pyrelay_complex<P>((P)x.re, (P)x.im);
    }
};
"""
