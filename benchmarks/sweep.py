"""Every NumPy name with usual arguments, compiled, against NumPy: where is the compiler slower?

    python -m benchmarks.sweep [--only WORDS] [--sizes 1000,100000] [--dtypes f8,f4] [--least 1.2]

In: expressions over arrays by name (``arguments``), kinds of elements, sizes. Out: a line for each
that takes at least so many times NumPy's time, and for each that is refused. One thread on both
sides; both are timed in turn, and the least of many short runs counts, so that other work on the
machine matters little. It is a tool for finding, not a benchmark: nothing is stored.
"""

from __future__ import annotations

import argparse
import linecache
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

if __name__ == "__main__":  # libraries read these when they are imported
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYRELAY_NUM_THREADS", "1")

import numpy as np

import pyrelay

FLOATS, NUMBERS, ALL, INTEGERS = "f8 f4", "f8 f4 i8", "f8 f4 i8 ?", "i8 i4"
SAMPLE_SECONDS, CASE_SECONDS, SAMPLES = 2e-4, 0.25, 15

#: by kinds of elements: expressions, separated by semicolons
EXPRESSIONS: dict[str, str] = {
    NUMBERS: """
        np.abs(x); -x; np.square(x); np.sign(x); x * 2; x.copy(); x + y; np.maximum(x, y); x < y;
        np.clip(x, -1, 1); np.prod(x); np.min(x); np.argmin(x); np.ptp(x); np.var(x); np.std(x);
        np.cumprod(x); np.dot(x, y); np.diff(x); np.maximum.accumulate(x); np.sum(x * y);
        np.sum(A, axis=0); np.sum(A, axis=1); np.max(A, axis=0); np.max(A, axis=1);
        np.argmax(A, axis=0); np.argmax(A, axis=1); np.cumsum(A, axis=0); np.sort(A, axis=0);
        np.argsort(A, axis=1); np.diff(A, axis=0); np.roll(A, 1, axis=0); np.repeat(A, 2, axis=1);
        np.concatenate([A, B], axis=1); np.take(A, i, axis=1); np.unique(x, return_counts=True);
        np.unique(x, return_inverse=True); np.partition(x, x.size // 2); np.lexsort((x, y));
        np.searchsorted(s, y); np.isin(x, y[:100]); np.union1d(x, y); np.intersect1d(x, y)""",
    ALL: """
        np.sum(x); np.mean(x); np.max(x); np.any(x); np.all(x); np.argmax(x); np.count_nonzero(x);
        np.cumsum(x); np.sort(x); np.argsort(x); np.argsort(x, kind='stable'); np.unique(x)""",
    INTEGERS: """
        x // q; x % q; np.divmod(x, q); x // 7; x % 1000003; np.fmod(x, q); x ** 3; x & y; ~x;
        x << 3; np.gcd(x, y); np.lcm(k, q); np.bitwise_count(x); x.astype(np.float64);
        np.bincount(k); np.unique(k); np.sort(k)""",
    FLOATS: """
        np.floor(x); np.round(x, 2); np.sqrt(p); np.cbrt(x); np.exp(x); np.expm1(x); np.log(p);
        np.log2(p); np.log10(p); np.log1p(p); np.sin(x); np.cos(x); np.tan(x); np.arctan(x);
        np.sinh(x); np.cosh(x); np.tanh(x); np.arcsinh(x); np.sinc(x); np.isnan(x); np.signbit(x);
        np.spacing(x); np.nan_to_num(x); np.modf(x); np.frexp(x); x / y; x // y; x % y; p ** y;
        np.fmod(x, y); x ** 2; x ** 3; x ** -1; np.arctan2(x, y); np.hypot(x, y);
        np.copysign(x, y); np.nextafter(x, y); np.logaddexp(x, y); np.isclose(x, y);
        np.where(x > 0, x, y); x.astype(np.int64); np.nansum(x); np.nanmean(x); np.nanmax(x);
        np.nanstd(x); np.linalg.norm(x); np.average(x, weights=p); np.trapezoid(x);
        np.gradient(x); np.median(x); np.percentile(x, [10, 50, 90]); np.nanmedian(x);
        np.cov(x, y); np.unwrap(x); np.median(A, axis=0); np.nanmax(A, axis=0); A.T.copy();
        A @ v; np.outer(v, v); np.trace(A); np.diag(A); np.tril(A); np.ravel(A); A[::2, ::2];
        np.einsum('ij,ij->i', A, B); np.pad(A, 1); np.pad(A, 2, mode='edge'); np.tile(A, (2, 2));
        np.vstack([A, B]); np.dstack([A, B]); A[i]; A[A > 0]; np.argwhere(A > 1); np.flip(x);
        np.delete(A, 3, axis=0); np.convolve(x, w); np.interp(x, s, y); np.digitize(x, e);
        np.histogram(x, 50); np.extract(x > 0, x); np.take(x, j); np.flatnonzero(x > 0);
        np.concatenate([x, y]); np.resize(x, (x.size * 2,)); np.arange(x.size) * 0.5;
        np.linspace(0, 1, x.size); np.add.at(z, j, x); z.fill(2.0); np.add(x, y, out=z);
        np.fft.fft(x); np.fft.rfft(x); np.fft.fft2(A)""",
    "c16 c8": """
        x * y; x / y; np.abs(x); np.exp(x); np.sum(x); np.fft.fft(x); np.dot(x, y); np.vdot(x, y);
        np.conj(x); x.real; np.sum(A, axis=0); np.concatenate([x, y]); np.fft.irfft(x)""",
    "i1 i2 ?": """
        x == y; np.max(x); np.min(A, axis=0); np.max(A, axis=1); np.argmin(x); np.argmax(A, axis=1);
        np.sum(A, axis=0); np.any(A, axis=0); np.all(A, axis=1); np.where(x, y, z); x.astype('f8');
        np.count_nonzero(A, axis=0); np.sort(x); np.concatenate([x, y]); np.maximum(x, y, out=z)""",
    "f8": """
        np.linalg.eigvalsh(A[:30, :30]); np.linalg.eigvals(A[:30, :30]);
        np.linalg.svd(A[:30, :30], compute_uv=False); np.linalg.inv(A[:30, :30]); A[0]; x[1:]; A.T;
        x.reshape(2, -1); np.minimum(x, y, out=z); np.min(A, axis=0); np.argmin(A, axis=0)""",
}  # fmt: skip


def arguments(size: int, dtype: str) -> dict[str, Any]:
    """Arrays by name: x, y, z of a size; p positive, q and k small integers, s sorted, w, e short;
    square matrices A, B and a line v of as many elements; places i in lines, j in x."""
    rng = np.random.default_rng(0)
    side = max(round(size**0.5), 4)

    def made(*shape: int) -> Any:
        if dtype == "?":
            return rng.random(shape) < 0.5
        if dtype[0] == "i":
            return rng.integers(-1_000_000, 1_000_000, shape).astype(dtype)
        found = rng.standard_normal(shape)
        return (found + 1j * rng.standard_normal(shape) if dtype[0] == "c" else found).astype(dtype)

    whole, real = (dtype if dtype[0] == kind else f"{kind}8" for kind in "if")
    x = made(size)
    return {
        "x": x, "y": made(size), "z": made(size), "s": np.sort(x), "w": made(9), "v": made(side),
        "p": (rng.random(size) + 0.1).astype(real), "q": rng.integers(1, 1000, size).astype(whole),
        "k": rng.integers(0, 20, size).astype(whole), "e": np.linspace(-2, 2, 30).astype(real),
        "A": made(side, side), "B": made(side, side), "i": rng.integers(0, side, side),
        "j": rng.integers(0, size, size),
    }  # fmt: skip


def functions(expressions: Sequence[str]) -> dict[str, tuple[Callable[..., Any], list[str]]]:
    """For each expression a function of the arrays it reads, and their names."""
    names = "|".join(arguments(4, "f8"))
    given = {
        text: list(dict.fromkeys(re.findall(rf"(?<![\w.'])(?:{names})(?![\w'=(])", text)))
        for text in expressions
    }
    lines = ["import numpy as np"]
    for number, (text, used) in enumerate(given.items()):
        lines += [f"def f{number}({', '.join(used)}):", f"    return {text}"]
    source = "\n".join([*lines, ""])
    name = f"<sweep {hash(source):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made: dict[str, Any] = {}
    exec(compile(source, name, "exec"), made)
    return {
        text: (made[f"f{number}"], used)
        for number, (text, used) in enumerate(given.items())
    }


def _rounds(function: Callable[..., Any], args: Sequence[Any], count: int) -> float:
    started = time.process_time()
    for _ in range(count):
        function(*args)
    return (time.process_time() - started) / count


def timed(plain: Callable[..., Any], args: Sequence[Any]) -> tuple[float, float, float]:
    """Seconds of NumPy, of the compiled function, and of its first call."""
    compiled = pyrelay.jit(plain)
    first = _rounds(compiled, args, 1)
    both = (plain, compiled)
    counts = [max(1, round(SAMPLE_SECONDS / max(_rounds(f, args, 2), 1e-7))) for f in both]
    least, end = [float("inf")] * 2, time.perf_counter() + CASE_SECONDS
    for sample in range(SAMPLES):
        for k, function in enumerate(both):
            least[k] = min(least[k], _rounds(function, args, counts[k]))
        if sample >= 4 and time.perf_counter() > end:
            break
    return least[0], least[1], first


def sweep(only: str, sizes: Sequence[int], dtypes: Sequence[str], least: float) -> Iterator[str]:
    """A line for each case that takes at least so many times NumPy's time, or is refused."""
    cases = [
        (" ".join(text.split()), dtype)
        for kinds, texts in EXPRESSIONS.items() for text in texts.split(";")
        for dtype in kinds.split() if only in text and (not dtypes or dtype in dtypes)
    ]  # fmt: skip
    made = functions([text for text, _ in cases])
    for text, dtype in cases:
        plain, used = made[text]
        for size in sizes:
            arrays = arguments(size, dtype)
            try:
                numpy, ours, first = timed(plain, [arrays[name] for name in used])
            except pyrelay.PyrelayError as error:
                yield f"refused  {text:40} {dtype:4} {error.message}"
                break
            if ours >= least * numpy:
                yield (
                    f"{ours / numpy:7.2f}  {text:40} {dtype:4} {size:8}  NumPy {numpy * 1e6:10.1f}"
                    f" µs  pyrelay {ours * 1e6:10.1f} µs  first call {first:.2f} s"
                )


def main() -> None:
    """Print the sweep that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep")
    parser.add_argument("--only", default="", help="expressions that contain this")
    parser.add_argument("--sizes", default="1000,100000,1000000")
    parser.add_argument("--dtypes", default="", help="such as f8,f4; all unless given")
    parser.add_argument("--least", type=float, default=1.2, help="times NumPy's time")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    sizes = [int(size) for size in given.sizes.split(",")]
    dtypes = given.dtypes.split(",") if given.dtypes else []
    for line in sweep(given.only, sizes, dtypes, given.least):
        print(line, flush=True)


if __name__ == "__main__":
    main()
