"""Native memory of running plans: blocks, and tapes made of them.

In: an llvmlite module. Out: in it, the functions that allocate and release.

* A block is a 64-byte header and its bytes. Sizes come in classes, four per doubling, so at most
  a quarter is wasted and a freed block fits the next request of about its size.
* What is soon given back may have an idle block of up to four times its size: so that a program
  whose arrays differ in size goes through few blocks, which stay in the cache.
* A call's state holds lists of idle blocks, one per class, so that memory stays mapped from call
  to call (fresh pages cost more than most kernels), and one list of the blocks now in use, so
  that a run that stops half-way gives everything back.
* The caller's arrays that a plan may write are lent to it: it treats them as its own, and frees
  them where they die, which must do nothing.
* Results leave the call's list; when the ndarray that owns one dies, the block goes to the lists
  of the process, which all calls draw from before they ask the system.
"""

from __future__ import annotations

import sys

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import FLAG, INT32, VOID, Function, Word
from pyrelay.devices.compiler.llvm_writer import WORD as WORD_TYPE
from pyrelay.devices.runtime.layout import SIZE_CLASSES, WORD, Block, Control, Process, State, Tape

LARGEST = 1 << 52
"""No request above this is tried; the largest size class ends here."""

HUGE = 1 << 22
"""From this size on, blocks are aligned for and advised to use huge pages."""

HUGE_PAGE = 1 << 21
MADV_HUGEPAGE = 14

PASSING_CLASSES = 8
"""So many classes larger may a block be that is soon given back: four times as large."""

KEEP_AT_LEAST = 1 << 20
"""Idle bytes that a state may always keep."""

TAPE_START = 4096


class Memory:
    """The memory functions of a module, as attributes."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.lock = self._lock()
        self.give_shared = self._give_shared()
        self.take_shared = self._take_shared()
        self.unlink = self._unlink()
        self.alloc = self._alloc("alloc", 0)
        self.alloc_passing = self._alloc("alloc_passing", PASSING_CLASSES)
        self.free = self._free()
        self.adopt = self._adopt()
        self.release_all = self._release_all()
        self.dispose = self._dispose()
        self.reserve = self._reserve()

    def _function(self, name: str, parameters: int) -> Function:
        return Function(self.module, f"pyrelay_{name}", parameters)

    def _lock(self) -> Function:
        """(process): wait for the lock; held for a few instructions at a time."""
        f = self._function("lock", 1)
        (process,) = f.parameters
        with f.while_(lambda: ~f.exchange_if(process, Process.LOCK, 0, 1)):
            f.do("sched_yield")
        f.ret()
        return f

    def _give_shared(self) -> Function:
        """(process, block): keep an idle block for any call, or free it where enough are kept."""
        f = self._function("give_shared", 2)
        process, block = f.parameters
        f.call(self.lock, process)
        kept = f.load(process, Process.KEPT_BYTES) + f.load(block, Block.SIZE)
        with f.when(kept > f.load(process, Process.KEPT_LIMIT)):
            f.atomic_store(process, Process.LOCK, 0)
            f.c("free", block, returns=VOID)
            f.ret()
        head = process + Process.FREE + f.load(block, Block.SIZE_CLASS) * WORD
        f.store(block, Block.NEXT, f.load(head))
        f.store(head, 0, block)
        f.store(process, Process.KEPT_BYTES, kept)
        f.atomic_store(process, Process.LOCK, 0)
        f.ret()
        return f

    def _take_shared(self) -> Function:
        """(process, size class, size): a kept or new block, 0 where there is no memory."""
        f = self._function("take_shared", 3)
        process, size_class, size = f.parameters
        head = process + Process.FREE + size_class * WORD
        f.call(self.lock, process)
        block = f.load(head)
        with f.when(block.differs(0)):
            f.store(head, 0, f.load(block, Block.NEXT))
            f.store(process, Process.KEPT_BYTES, f.load(process, Process.KEPT_BYTES) - size)
            f.atomic_store(process, Process.LOCK, 0)
            f.ret(block)
        f.atomic_store(process, Process.LOCK, 0)
        place = f.address(f.local_words(1))
        alignment = (size >= HUGE).choose(HUGE_PAGE, Block.BYTES)
        failed = f.c("posix_memalign", place, alignment, size + Block.BYTES, returns=INT32)
        with f.when(failed.differs(0)):
            f.ret(0)
        fresh = f.load(place)
        if sys.platform == "linux":
            with f.when(size >= HUGE):
                f.do("madvise", fresh, size, f.number(MADV_HUGEPAGE))
        f.store(fresh, Block.SIZE_CLASS, size_class)
        f.store(fresh, Block.SIZE, size)
        f.ret(fresh)
        return f

    def _unlink(self) -> Function:
        """(state, block): take a block off the list of those in use."""
        f = self._function("unlink", 2)
        state, block = f.parameters
        following, previous = f.load(block, Block.NEXT), f.load(block, Block.PREVIOUS)
        f.store(previous, Block.NEXT, following)
        with f.when(following.differs(0)):
            f.store(following, Block.PREVIOUS, previous)
        live = f.load(state, State.LIVE_BYTES) - f.load(block, Block.SIZE)
        f.store(state, State.LIVE_BYTES, live)
        f.ret()
        return f

    def _alloc(self, name: str, more: int) -> Function:
        """(state, nbytes): the address of that many bytes, 0 where there is no memory; an idle
        block may be `more` size classes larger."""
        f = self._function(name, 2)
        state, nbytes = f.parameters
        too_large = f.b.icmp_unsigned(">", nbytes.raw, WORD_TYPE(LARGEST))
        with f.b.if_then(too_large, likely=False):
            f.ret(0)
        last = (nbytes > Block.BYTES).choose(nbytes, Block.BYTES) - 1
        exponent = f.number(63) - Word(f, f.b.ctlz(last.raw, FLAG(1)))
        quarter = (last >> (exponent - 2)) & 3
        size_class = (exponent - 5) * 4 + quarter
        size = (quarter + 5) << (exponent - 2)
        place = f.variable(size_class)
        lists = state + State.FREE
        if more:
            last_class = f.smaller(size_class + more, SIZE_CLASSES - 1)
            with f.while_(
                lambda: f.load(lists + place.now * WORD).equals(0) & (place.now < last_class)
            ):
                place.set(place.now + 1)
        head = lists + place.now * WORD
        kept = f.load(head)
        found = f.variable(kept)
        with f.either(kept.differs(0)) as (reuse, fetch):
            with reuse:
                f.store(head, 0, f.load(kept, Block.NEXT))
                idle = f.load(state, State.KEPT_BYTES) - f.load(kept, Block.SIZE)
                f.store(state, State.KEPT_BYTES, idle)
            with fetch:
                process = f.load(f.load(state, State.CONTROL), Control.PROCESS)
                found.set(f.call(self.take_shared, process, size_class, size))
                with f.when(found.now.equals(0), likely=False):
                    f.ret(0)
        block = found.now
        following = f.load(state, State.LIVE)
        f.store(block, Block.NEXT, following)
        f.store(block, Block.PREVIOUS, state + State.LIVE)
        f.store(state, State.LIVE, block)
        with f.when(following.differs(0)):
            f.store(following, Block.PREVIOUS, block)
        live = f.load(state, State.LIVE_BYTES) + f.load(block, Block.SIZE)
        f.store(state, State.LIVE_BYTES, live)
        peak = f.load(state, State.PEAK_BYTES)
        f.store(state, State.PEAK_BYTES, (live > peak).choose(live, peak))
        f.ret(block + Block.BYTES)
        return f

    def _free(self) -> Function:
        """(state, address): the block becomes idle; address 0 and lent arrays are ignored."""
        f = self._function("free", 2)
        state, address = f.parameters
        with f.when(address.equals(0), likely=False):
            f.ret()
        lent = f.load(state, State.LENT)
        with f.counting(f.load(state, State.LENT_COUNT)) as index:
            same = address.equals(f.load(lent + (index << 3)))
            with f.when(same, likely=False):
                f.ret()
        block = address - Block.BYTES
        f.call(self.unlink, state, block)
        head = state + State.FREE + f.load(block, Block.SIZE_CLASS) * WORD
        f.store(block, Block.NEXT, f.load(head))
        f.store(head, 0, block)
        kept = f.load(state, State.KEPT_BYTES) + f.load(block, Block.SIZE)
        f.store(state, State.KEPT_BYTES, kept)
        f.ret()
        return f

    def _adopt(self) -> Function:
        """(state, address): the block is the caller's from now on."""
        f = self._function("adopt", 2)
        state, address = f.parameters
        f.call(self.unlink, state, address - Block.BYTES)
        f.ret()
        return f

    def _give_idle(self, f: Function, state: Word) -> None:
        """Hand the state's idle blocks to the process."""
        process = f.load(f.load(state, State.CONTROL), Control.PROCESS)
        with f.counting(f.number(SIZE_CLASSES)) as size_class:
            head = state + State.FREE + size_class * WORD
            block = f.variable(f.load(head))
            with f.while_(lambda: block.now.differs(0)):
                following = f.load(block.now, Block.NEXT)
                f.call(self.give_shared, process, block.now)
                block.set(following)
            f.store(head, 0, 0)
        f.store(state, State.KEPT_BYTES, 0)

    def _release_all(self) -> Function:
        """(state): nothing is in use any more; keep about what the last call needed."""
        f = self._function("release_all", 1)
        (state,) = f.parameters
        with f.while_(lambda: f.load(state, State.LIVE).differs(0)):
            f.call(self.free, state, f.load(state, State.LIVE) + Block.BYTES)
        enough = f.load(state, State.PEAK_BYTES) * 2 + KEEP_AT_LEAST
        f.store(state, State.PEAK_BYTES, 0)
        with f.when(f.load(state, State.KEPT_BYTES) > enough, likely=False):
            self._give_idle(f, state)
        f.ret()
        return f

    def _dispose(self) -> Function:
        """(control): an executable dies; its idle states and their memory go."""
        f = self._function("dispose", 1)
        (control,) = f.parameters
        state = f.variable(f.load(control, Control.IDLE))
        with f.while_(lambda: state.now.differs(0)):
            following = f.load(state.now, State.NEXT)
            self._give_idle(f, state.now)
            f.c("free", f.load(state.now, State.STACK), returns=VOID)
            f.c("free", state.now, returns=VOID)
            state.set(following)
        f.store(control, Control.IDLE, 0)
        f.ret()
        return f

    def _reserve(self) -> Function:
        """(state, tape, nbytes): make room on a tape; the address of the new bytes, or 0."""
        f = self._function("tape_reserve", 3)
        state, tape, nbytes = f.parameters
        used = f.load(tape, Tape.USED)
        needed = used + ((nbytes + 7) & -8)
        capacity = f.load(tape, Tape.CAPACITY)
        with f.when(needed > capacity, likely=False):
            doubled = capacity * 2 + TAPE_START
            larger = (needed > doubled).choose(needed, doubled)
            old = f.load(tape, Tape.DATA)
            fresh = f.call(self.alloc, state, larger)
            with f.when(fresh.equals(0), likely=False):
                f.ret(0)
            f.c("memcpy", fresh, old, used)
            f.call(self.free, state, old)
            f.store(tape, Tape.DATA, fresh)
            f.store(tape, Tape.CAPACITY, larger)
        f.store(tape, Tape.USED, needed)
        f.ret(f.load(tape, Tape.DATA) + used)
        return f
