"""Native side of the threads that share a kernel's range.

In: an llvmlite module. Out: in it, `launch_shared`, which splits a kernel's range over the team,
and the workers' function. `threads.py` makes the team and starts the workers.

One job runs at a time; a second caller finds the team busy and runs its kernel alone. A job is cut
into chunks whose number and bounds depend on the range and the work only, so results do not depend
on who runs what; of several failing chunks the first one's error is reported. Workers spin for some
microseconds after a job, unless they are on the caller's CPU, then sleep on a condition variable,
without the GIL. They are started by Python but run no Python, so nothing waits for them when the
process ends. A forked child begins with a team of its own.
"""

from __future__ import annotations

import ctypes

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Function, Word
from pyrelay.devices.runtime.layout import (
    POLL,
    RECORD_BYTES,
    RECORD_WORDS,
    WORD,
    Process,
    Status,
    Team,
)

GRAIN = 5_000_000
"""Picoseconds of work that a chunk should have at least."""

WORTH_SHARING = 10_000_000
"""Picoseconds of work from which on a launch pays on workers that are awake: handing over and
waiting costs 1-2 microseconds where it was measured."""

WORTH_WAKING = 40_000_000
"""Picoseconds of work from which on it pays to wake sleeping workers first."""

WORTH_WAKING_FOR_MORE = 200_000_000
"""Picoseconds of work in shorter launches, since workers were last woken, from which on it pays to
wake them: for the next ones, if they come soon. The call that wakes takes some 3 microseconds."""

CHUNKS_PER_THREAD = 4
LONG = 200_000_000_000
"""Picoseconds of work from which on even a launch that asks for fewer chunks gets that many."""

LARGEST_BLOCK = 512
"""Words of a kernel's block that fit a thread's copy of it; longer ones run on one thread."""

ALIGNED = 64
"""Long ranges are cut at multiples of this, so that chunks share no cache line."""

WORKER_SPINS = 8000
"""Rounds, some 0.2 ms: shorter than what programs do between two kernels that pay to be shared, a
sleeping worker costs each such kernel a wake-up, and shorter ones the help."""
CALLER_SPINS = 400
"""Rounds of waiting for the others, some 10 microseconds, from which on a caller yields at each."""
POLL_SPINS = 1 << 15
"""Rounds of waiting for the others, some milliseconds, between two looks for Ctrl-C."""

CHUNK_BITS = 16
CHUNK_MASK = (1 << CHUNK_BITS) - 1


class Teamwork:
    """The thread functions of a module, as attributes."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.says_cpu = hasattr(ctypes.CDLL(None), "sched_getcpu")
        self.poll = self._poll()
        self.poll_shared = self._poll_shared()
        self.report = self._report()
        self.work = self._work()
        self.launch_shared = self._launch_shared()
        self.worker = self._worker()

    def _here(self, f: Function) -> Word:
        """The CPU that runs this, or the same number everywhere where the system does not say."""
        return f.c("sched_getcpu", returns=INT32) if self.says_cpu else f.number(0)

    def _waiting(self, team: Word) -> Word:
        return team.f.atomic_load(team, Team.TICKET) & CHUNK_MASK

    def _poll(self) -> Function:
        """(process): OK, or INTERRUPTED with the error that the signal's handler raised set.

        Takes the GIL. Python handles signals on its main thread only; elsewhere this is OK.
        """
        f = Function(self.module, "pyrelay_poll", 1)
        (process,) = f.parameters
        main = f.load(process, Process.MAIN_THREAD)
        with f.when(f.c("pthread_self").differs(main)):
            f.ret(Status.OK)
        held = f.c("PyGILState_Ensure", returns=INT32)
        failed = f.c("PyErr_CheckSignals", returns=INT32)
        f.c("PyGILState_Release", held, returns=VOID)
        f.ret(failed.differs(0).choose(Status.INTERRUPTED, Status.OK))
        return f

    def _poll_shared(self) -> Function:
        """(team): `poll` for the threads of a job: what one of them learns stops all."""
        f = Function(self.module, "pyrelay_poll_shared", 1)
        (team,) = f.parameters
        stop = f.atomic_load(team, Team.STOP)
        with f.when(stop.differs(0)):
            f.ret(stop)
        status = f.call(self.poll, f.load(team, Team.PROCESS))
        with f.when(status.differs(0)):
            f.atomic_store(team, Team.STOP, status)
        f.ret(status)
        return f

    def _report(self) -> Function:
        """(team, chunk, status, record): note a failure if it is the first of the range."""
        f = Function(self.module, "pyrelay_report", 4)
        team, chunk, status, record = f.parameters
        with f.while_(lambda: ~f.exchange_if(team, Team.ERROR_LOCK, 0, 1)):
            f.do("sched_yield")
        with f.when(chunk < f.load(team, Team.FAILED)):
            f.store(team, Team.FAILED, chunk)
            f.atomic_store(team, Team.STATUS, status)
            target = f.load(f.load(team, Team.BLOCK))
            f.c("memcpy", target, record, f.number(RECORD_WORDS * WORD))
        f.atomic_store(team, Team.ERROR_LOCK, 0)
        f.ret()
        return f

    def _work(self) -> Function:
        """(team): run chunks until none is left."""
        f = Function(self.module, "pyrelay_work", 1)
        (team,) = f.parameters
        block = f.address(f.local_words(LARGEST_BLOCK))
        record = f.address(f.local_words(RECORD_BYTES // WORD))
        with f.while_(lambda: self._waiting(team).differs(0)):
            ticket = f.atomic_load(team, Team.TICKET)
            left = ticket & CHUNK_MASK
            wanted = (left.differs(0)).choose(ticket - 1, ticket)
            taken = f.exchange_if(team, Team.TICKET, ticket, wanted)
            with f.when(left.differs(0) & taken):
                chunk = f.load(team, Team.CHUNKS) - left
                with f.when(chunk < f.atomic_load(team, Team.FAILED)):
                    f.c("memcpy", block, f.load(team, Team.BLOCK),
                        f.load(team, Team.BLOCK_WORDS) * WORD)  # fmt: skip
                    f.store(record, POLL, f.address(self.poll_shared.native))
                    f.store(record, POLL + WORD, team)
                    f.store(block, 0, record)
                    begin = chunk * f.load(team, Team.CHUNK)
                    end = f.smaller(begin + f.load(team, Team.CHUNK), f.load(team, Team.EXTENT))
                    kernel = f.load(team, Team.KERNEL)
                    status = f.call_address(kernel, block, begin, end)
                    with f.when(status.differs(0), likely=False):
                        f.call(self.report, team, chunk, status, record)
                f.atomic_add(team, Team.UNFINISHED, -1)
        f.ret()
        return f

    def _launch_shared(self) -> Function:
        """(team, kernel, block, its words, extent, work, chunks per thread): run a kernel."""
        f = Function(self.module, "pyrelay_launch_shared", 7)
        team, kernel, block, words, extent, work, most = f.parameters
        with f.when(words > LARGEST_BLOCK):
            f.ret(f.call_address(kernel, block, 0, extent))
        asleep = f.atomic_load(team, Team.SLEEPERS).differs(0)
        with f.when(asleep & (work < WORTH_WAKING)):
            alone = f.atomic_load(team, Team.ALONE) + work
            enough = alone > WORTH_WAKING_FOR_MORE
            f.atomic_store(team, Team.ALONE, enough.choose(0, alone))
            with f.when(~enough):
                f.ret(f.call_address(kernel, block, 0, extent))
        with f.when(~f.exchange_if(team, Team.BUSY, 0, 1)):
            f.ret(f.call_address(kernel, block, 0, extent))
        # Nobody looks for Ctrl-C inside a chunk of a product: a long one is cut all the same.
        most = (work > LONG).choose(CHUNKS_PER_THREAD, most)
        wanted = f.smaller(f.load(team, Team.THREADS) * most,
                           work.unsigned_div(GRAIN) + 1)  # fmt: skip
        wanted = f.smaller(f.smaller(wanted, extent), CHUNK_MASK >> 1)
        # Rounded down: of a few long units, a chunk of one more would be waited for.
        even = extent.unsigned_div(wanted)
        aligned = (even + (ALIGNED - 1)) & -ALIGNED
        chunk = (even > 8 * ALIGNED).choose(aligned, even)
        chunks = (extent + chunk - 1).unsigned_div(chunk)
        for field, value in (
            (Team.KERNEL, kernel), (Team.BLOCK, block), (Team.BLOCK_WORDS, words),
            (Team.EXTENT, extent), (Team.CHUNK, chunk), (Team.CHUNKS, chunks),
            (Team.STATUS, f.number(0)), (Team.STOP, f.number(0)), (Team.FAILED, chunks),
            (Team.UNFINISHED, chunks), (Team.CPU, self._here(f)),
        ):  # fmt: skip
            f.atomic_store(team, field, value)
        job = (f.atomic_load(team, Team.TICKET) >> CHUNK_BITS) + 1
        f.atomic_store(team, Team.TICKET, (job << CHUNK_BITS) | chunks)
        with f.when(f.atomic_load(team, Team.SLEEPERS).differs(0)):  # some may sleep by now
            f.do("pthread_mutex_lock", team + Team.MUTEX)
            f.do("pthread_cond_broadcast", team + Team.CONDITION)
            f.do("pthread_mutex_unlock", team + Team.MUTEX)
        f.call(self.work, team)
        spins = f.variable(0)
        with f.while_(lambda: f.atomic_load(team, Team.UNFINISHED).differs(0)):
            spins.set(spins.now + 1)
            f.pause()
            with f.when(spins.now > CALLER_SPINS):
                f.do("sched_yield")
            with f.when((spins.now & (POLL_SPINS - 1)).equals(0), likely=False):
                f.call(self.poll_shared, team)
        stop = f.atomic_load(team, Team.STOP)
        status = stop.differs(0).choose(stop, f.atomic_load(team, Team.STATUS))
        f.atomic_store(team, Team.BUSY, 0)
        f.ret(status)
        return f

    def _worker(self) -> Function:
        """(team): what a worker runs; does not return."""
        f = Function(self.module, "pyrelay_worker", 1)
        (team,) = f.parameters
        with f.while_(lambda: f.number(0).equals(0)):
            # Where other processes keep the CPUs busy, it may be on the caller's, which would wait
            # for it. It does not yield: a scheduler puts a thread that does so last, and it is late
            # for the next kernel.
            beside = f.load(team, Team.CPU).equals(self._here(f))
            spins = f.variable(beside.choose(WORKER_SPINS, 0))
            with f.while_(lambda: self._waiting(team).equals(0) & (spins.now < WORKER_SPINS)):
                spins.set(spins.now + 1)
                f.pause()
            with f.when(self._waiting(team).equals(0)):
                f.do("pthread_mutex_lock", team + Team.MUTEX)
                f.atomic_add(team, Team.SLEEPERS, 1)
                with f.while_(lambda: self._waiting(team).equals(0)):
                    f.c("pthread_cond_wait", team + Team.CONDITION, team + Team.MUTEX,
                        returns=INT32)  # fmt: skip
                f.atomic_add(team, Team.SLEEPERS, -1)
                f.do("pthread_mutex_unlock", team + Team.MUTEX)
            f.call(self.work, team)
        f.ret()
        return f
