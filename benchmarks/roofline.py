"""How fast this machine can be: its arithmetic and its memory, measured on the spot.

In: nothing. Out: a `Roofline`: floating point operations a second, from chains of fused
multiply-adds in registers, and bytes a second, from copies of several sizes; all CPUs of this
process at once. What a program computes and moves at least then bounds the time it takes
(Williams, Waterman and Patterson, *Roofline: an Insightful Visual Performance Model for Multicore
Architectures*, 2009).

A copy is as fast as the cache that holds both its ends allows, so the bound of a program is that
of copies which touch about as many bytes as it does.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from pyrelay.devices.routines.matmul import native_vector_bits

FLOATS = {"f32": ("float", 4), "f64": ("double", 8)}
_CHAINS = 12  # independent ones: more than latency times throughput of any present core
_ROUNDS = 1 << 23  # some milliseconds, so that starting threads does not count
_SIZES = tuple(1 << k for k in range(16, 29, 2))
_COPIED = 1 << 28  # bytes to copy in a sample, so that starting threads does not count
_SAMPLES = 21
_EXCHANGES = 20_000  # of a line between two CPUs, in a sample


@dataclass(frozen=True)
class Roofline:
    """Operations a second by type, and bytes a second (read and written) by bytes touched."""

    flops: dict[str, float]
    bandwidth: dict[int, float]
    threads: int

    def bytes_per_second(self, touched: float) -> float:
        """The speed of copies of the measured size that is nearest, on a logarithmic scale."""
        nearest = min(self.bandwidth, key=lambda size: abs(math.log(size / max(touched, 1.0))))
        return self.bandwidth[nearest]

    def least_seconds(self, flops: float, touched: float, dtype: str) -> float:
        """The bound: what has to be computed and what has to be moved, whichever takes longer."""
        return max(flops / self.flops[dtype], touched / self.bytes_per_second(touched))


def cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chains(name: str, lanes: int) -> str:
    """A function of a count of rounds and a place for its result, which keeps it from being
    dropped: each round is one fused multiply-add in every chain."""
    vector, word = f"<{lanes} x {FLOATS[name][0]}>", FLOATS[name][0]
    splat = "<" + ", ".join([f"{word} 0.5"] * lanes) + ">"
    loop = ["%i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    loop += [f"%a{k} = phi {vector} [ {splat}, %entry ], [ %b{k}, %loop ]" for k in range(_CHAINS)]
    call = f"call {vector} @llvm.fma.v{lanes}{name}"
    loop += [
        f"%b{k} = {call}({vector} %a{k}, {vector} {splat}, {vector} {splat})"
        for k in range(_CHAINS)
    ]
    loop += ["%next = add i64 %i, 1", "%more = icmp slt i64 %next, %rounds"]
    loop += ["br i1 %more, label %loop, label %done"]
    ends = [f"%s0 = fadd {vector} %b0, %b1"]
    ends += [f"%s{k} = fadd {vector} %s{k - 1}, %b{k + 1}" for k in range(1, _CHAINS - 1)]
    ends += [f"store {vector} %s{_CHAINS - 2}, ptr %out, align 4", "ret void"]
    return "\n".join(
        (
            f"declare {vector} @llvm.fma.v{lanes}{name}({vector}, {vector}, {vector})",
            f"define void @chains_{name}(i64 %rounds, ptr %out) {{",
            "entry:", "br label %loop", "loop:", *loop, "done:", *ends, "}",
        )
    )  # fmt: skip


_COPY = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @copy(ptr %to, ptr %from, i64 %bytes, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


# Two threads take turns: a word goes up by one from `first` on, by each of them every other time.
# A turn that does not come ends it, as the other thread may not run.
_TURNS = """
define i64 @turns(ptr %word, i64 %first, i64 %most) {
entry:
  br label %turn
turn:
  %n = phi i64 [ %first, %entry ], [ %then, %took ]
  %over = icmp sge i64 %n, %most
  br i1 %over, label %done, label %look
look:
  %waits = phi i64 [ 0, %turn ], [ %longer, %again ]
  %seen = load atomic i64, ptr %word acquire, align 8
  %mine = icmp eq i64 %seen, %n
  br i1 %mine, label %took, label %again
again:
  %longer = add i64 %waits, 1
  %alone = icmp sgt i64 %longer, 100000000
  br i1 %alone, label %done, label %look
took:
  %next = add i64 %n, 1
  %then = add i64 %n, 2
  store atomic i64 %next, ptr %word release, align 8
  br label %turn
done:
  ret i64 %n
}
"""


def _compiled() -> Any:
    """An engine that holds the functions; it owns their code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    bits = native_vector_bits()
    texts = [_chains(name, bits // 8 // size) for name, (_, size) in FLOATS.items()]
    module = llvm.parse_assembly("\n".join((*texts, _COPY, _TURNS)))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _seconds(work: Callable[..., object], arguments: Sequence[tuple[int, ...]]) -> float:
    """The seconds that `work` takes, a thread for each tuple of arguments, all at once; it must not
    hold the GIL."""
    gate = threading.Barrier(len(arguments) + 1)

    def run(*own: int) -> None:
        gate.wait()
        work(*own)
        gate.wait()

    crew = [threading.Thread(target=run, args=own) for own in arguments]
    for thread in crew:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    gate.wait()
    end = time.perf_counter()
    for thread in crew:
        thread.join()
    return end - start


class Distance:
    """How long a line of the cache takes from one CPU of this process to another.

    A virtual machine's CPUs may share a cache for a while and then not, as its host places them:
    programs whose threads read what others wrote then take another time, by nobody's doing.
    """

    def __init__(self) -> None:
        self._engine = _compiled()
        count, place = ctypes.c_int64, ctypes.c_void_p
        self._turns = ctypes.CFUNCTYPE(count, place, count, count)(
            self._engine.get_function_address("turns")
        )

    def seconds(self) -> float | None:
        """The least of several samples, between the first two CPUs; None where there is one, where
        threads cannot be kept on theirs, or where another program takes the time of both."""
        if cpus() < 2 or not hasattr(os, "sched_setaffinity"):
            return None
        pair = sorted(os.sched_getaffinity(0))[:2]
        ended: list[int] = []

        def turns(cpu: int, address: int, first: int) -> None:
            os.sched_setaffinity(0, {cpu})  # of this thread
            ended.append(self._turns(address, first, _EXCHANGES))

        found = []
        for _ in range(_SAMPLES):
            word = np.zeros(32, np.int64)
            work = [(cpu, word[16:].ctypes.data, first) for first, cpu in enumerate(pair)]
            found.append(_seconds(turns, work) / _EXCHANGES)
        return min(found) if min(ended) >= _EXCHANGES else None


def measure() -> Roofline:
    """Measure this machine; the best of several samples each, as a bound has to be."""
    threads = cpus()
    engine = _compiled()
    place, count = ctypes.c_void_p, ctypes.c_int64
    flops = {}
    for name, (_, size) in FLOATS.items():
        lanes = native_vector_bits() // 8 // size
        chains = ctypes.CFUNCTYPE(None, count, place)(engine.get_function_address(f"chains_{name}"))
        out = np.zeros((threads, 1024), np.uint8)
        done = 2.0 * lanes * _CHAINS * _ROUNDS * threads
        places = [(_ROUNDS, out[which].ctypes.data) for which in range(threads)]
        flops[name] = done / min(_seconds(chains, places) for _ in range(_SAMPLES))
    copy = ctypes.CFUNCTYPE(None, place, place, count, count)(engine.get_function_address("copy"))
    bandwidth = {}
    for size in _SIZES:
        share = size // 2 // threads
        arrays = [np.zeros((2, share), np.uint8) for _ in range(threads)]
        for pair in arrays:
            pair[:] = 1
        times = max(1, _COPIED // 2 // threads // share)
        work = [(pair[1].ctypes.data, pair[0].ctypes.data, share, times) for pair in arrays]
        least = min(_seconds(copy, work) for _ in range(_SAMPLES))
        bandwidth[size] = 2.0 * share * times * threads / least
    return Roofline(flops, bandwidth, threads)
