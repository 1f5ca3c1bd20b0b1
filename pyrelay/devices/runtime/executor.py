"""The executor: a native loop over the instructions of a plan.

In: an llvmlite module with its memory and thread functions. Out: in it,
`pyrelay_run(state, start)`, which runs the plan of the state's executable from the instruction at
`start` and returns a `Status`.

The table's layout is that of `lower/planning/encode.py`. Frames lie on a stack of their own that
grows, so that recursion costs memory and nothing else. It is written as LLVM IR, so that starting
it needs no C compiler; arithmetic is in `executor_arithmetic.py`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Flag, Function, Word
from pyrelay.devices.runtime.executor_arithmetic import BINARY_OPERATIONS, UNARY_OPERATIONS, Checks
from pyrelay.devices.runtime.layout import (
    ANSWERED,
    POLL,
    RESUME,
    WORD,
    Control,
    Process,
    State,
    Status,
    Tape,
)
from pyrelay.devices.runtime.memory import Memory
from pyrelay.devices.runtime.resumed_calls import write_resume
from pyrelay.devices.runtime.row_parts import INSTRUCTION_WORDS, LINK, ROWS_TOGETHER, write_part
from pyrelay.devices.runtime.teamwork import CHUNKS_PER_THREAD, WORTH_SHARING, Teamwork
from pyrelay.lower.planning.opcodes import (
    CONTROL,
    GROUP,
    LINK_WORDS,
    OF_ONE,
    OF_TWO,
    OFTEN,
    OPCODES,
)

POLL_PERIOD = 10_000_000_000
"""Picoseconds of estimated work between two looks for Ctrl-C."""

INVALID = 1
"""The flag of invalid operations, FE_INVALID on both x86 and ARM."""

JUMP_WORK = 5_000
"""Picoseconds that one round of a loop, or one poll, counts for beside its launches."""


def write_grow(module: ir.Module) -> Function:
    """`pyrelay_grow(state, needed)`: a frame stack of at least this many bytes, or a status."""
    f = Function(module, "pyrelay_grow", 2)
    state, needed = f.parameters
    limit = f.load(f.load(state, State.CONTROL), Control.STACK_LIMIT)
    with f.when(needed > limit):
        f.ret(Status.RECURSION)
    stack = f.load(state, State.STACK)
    doubled = (f.load(state, State.STACK_END) - stack) * 2
    size = f.smaller((needed > doubled).choose(needed, doubled), limit)
    fresh = f.c("realloc", stack, size)
    with f.when(fresh.equals(0)):
        f.ret(Status.RECURSION)
    f.store(state, State.STACK, fresh)
    f.store(state, State.STACK_END, fresh + size)
    f.ret(Status.OK)
    return f


class Executor:
    """Writes `pyrelay_run`: one method per kind of instruction."""

    def __init__(self, module: ir.Module, memory: Memory, teamwork: Teamwork) -> None:
        self.memory, self.teamwork = memory, teamwork
        self.poll = teamwork.poll
        self.grow = write_grow(module)
        self.f = f = Function(module, "pyrelay_run", 2)
        self.state, start = f.parameters
        self.part = write_part(module, f)
        resume = write_resume(module, f)
        self.control = f.load(self.state, State.CONTROL)
        self.code = f.load(self.control, Control.CODE)
        self.constants = f.load(self.control, Control.CONSTANTS_END)
        self.scratch = self.state + State.SCRATCH
        self.ip = f.variable(start)
        self.frame = f.variable(f.load(self.state, State.STACK) + LINK)
        self.work_left = f.variable(POLL_PERIOD)
        self.result = f.variable(0)
        self.chunks, self.begin, self.operands = f.variable(0), f.variable(0), f.variable(0)
        self.checks = Checks(module)
        f.store(self.frame.now, -LINK, 0)
        with f.when(f.load(self.state, State.RECORD + POLL).equals(0)):  # else a part's
            f.store(self.state, State.RECORD + POLL, f.address(self.poll.native))
            process = f.load(self.control, Control.PROCESS)
            f.store(self.state, State.RECORD + POLL + WORD, process)
        f.store(self.state, State.RECORD + RESUME, f.address(resume.native))
        self.run = f
        self._write()

    def _handlers(self) -> dict[str, Callable[[], None]]:
        """What each operation does; a handler ends by `_next`, `_jump` or leaving."""
        f = self.f
        table: dict[str, Callable[[], None]] = {
            "launch": lambda: self._launch(CHUNKS_PER_THREAD),
            "launch_evenly": lambda: self._launch(1),
            "launch_serial": lambda: self._launch(0),
            "launch_part": lambda: self._launch(CHUNKS_PER_THREAD, begins=True),
            "launch_evenly_part": lambda: self._launch(1, begins=True),
            "launch_serial_part": lambda: self._launch(0, begins=True),
            "parts": self._parts,
            "part_end": lambda: f.ret(Status.OK),
            "select": self._select,
            "jump": lambda: self._jump(1),
            "jump_if": lambda: self._jump_if(self._value(1).differs(0), 2),
            "jump_unless": lambda: self._jump_if(self._value(1).equals(0), 2),
            "loop_up": lambda: self._loop(lambda counter, limit: counter < limit),
            "loop_down": lambda: self._loop(lambda counter, limit: counter > limit),
            "poll": self._poll_here,
            "alloc": lambda: self._alloc(self.memory.alloc),
            "alloc_passing": lambda: self._alloc(self.memory.alloc_passing),
            "free": self._free,
            "copy": self._copy,
            "zero": self._zero,
            "call": self._call,
            "return": self._return,
            "tape_new": self._tape_new,
            "tape_push": self._tape_push,
            "tape_pop": self._tape_pop,
            "tape_push_bytes": self._tape_push_bytes,
            "tape_pop_bytes": self._tape_pop_bytes,
            "tape_free": self._tape_free,
            "raise": self._raise,
            "guard": self._guard,
            "host_call": self._host_call,
            "ufunc_call": self._ufunc_call,
            "stamp": self._stamp,
        }
        for name in CONTROL:
            group, _, rest = name.partition(".")
            if group == "store":
                table[name] = lambda n=rest: self._store(n)  # type: ignore[misc]
        return table

    def _write(self) -> None:
        b = self.f.b
        self.dispatch, self.launching, scalars, unary, binary, self.unknown = (
            self._block(name)
            for name in ("dispatch", "launching", "scalars", "unary", "binary", "unknown")
        )
        b.branch(self.dispatch)
        b.position_at_end(self.dispatch)
        operation = self._word(0)
        often = {name: functools.partial(self._alone, name) for name in OFTEN}
        self._cases(operation, {**self._handlers(), **often}, scalars)
        b.position_at_end(scalars)
        b.cbranch((operation < OPCODES.index(OF_TWO[0])).raw, unary, binary)
        b.position_at_end(unary)
        self._together(operation, OF_ONE, [self._value(2)])
        b.position_at_end(binary)
        self._together(operation, OF_TWO, [self._value(2), self._value(3)])
        b.position_at_end(self.launching)
        self._write_launch()
        b.position_at_end(self.unknown)
        b.unreachable()
    def _block(self, name: str) -> ir.Block:
        return self.f.native.append_basic_block(name)

    def _cases(
        self, operation: Word, handlers: Mapping[str, Callable[[], None]], otherwise: ir.Block
    ) -> None:
        """Go on with what an operation does."""
        b = self.f.b
        switch = b.switch(operation.raw, otherwise)
        for name, handler in handlers.items():
            block = self._block(name)
            switch.add_case(OPCODES.index(name), block)
            b.position_at_end(block)
            handler()
            if not b.block.is_terminated:
                raise AssertionError(f"operation {name} does not say what comes next")

    # -- scalars

    def _alone(self, name: str) -> None:
        """An operation that reads its values and writes its result itself."""
        values = [self._value(2 + k) for k in range(1 if name in UNARY_OPERATIONS else 2)]
        result, fails = self._computed(name, values)
        if fails is not None:
            with self.f.when(fails, likely=False):
                self._raise_with(values)
        self._set(1, result)
        self._next(2 + len(values) + (fails is not None))

    def _together(self, operation: Word, names: Sequence[str], values: Sequence[Word]) -> None:
        """Operations whose values are read and whose results are written in one place: LLVM takes
        as long for that as for what most of them do, and there are 70."""
        b = self.f.b
        done, right, wrong = self._block("done"), self._block("right"), self._block("wrong")
        self._cases(operation, {
            name: functools.partial(self._one_of, name, values, done, right, wrong)
            for name in names
        }, self.unknown)  # fmt: skip
        for end, words in ((done, 2 + len(values)), (right, 3 + len(values))):
            b.position_at_end(end)
            self._set(1, self.result.now)
            self._next(words)
        b.position_at_end(wrong)
        self._raise_with(values)

    def _one_of(
        self, name: str, values: Sequence[Word], done: ir.Block, right: ir.Block, wrong: ir.Block
    ) -> None:
        result, fails = self._computed(name, values)
        self.result.set(result)
        if fails is None:
            self.f.b.branch(done)
        else:
            self.f.b.cbranch(fails.raw, wrong, right)

    def _computed(self, name: str, values: Sequence[Word]) -> tuple[Word, Flag | None]:
        """The result of an operation, and whether it fails where it may."""
        group, _, rest = name.partition(".")
        if name in UNARY_OPERATIONS:
            return UNARY_OPERATIONS[name](*values), None
        if group == "checked":
            return self.checks.write(rest, *values)
        if group == "load":
            array, index = values
            bits = int(rest[1:])
            return self.f.load_narrow(array + index * (bits // 8), bits, rest[0] == "i"), None
        return BINARY_OPERATIONS[name](*values), None

    def _raise_with(self, values: Sequence[Word]) -> None:
        """Leave with a checked operation's site and its values."""
        record = self.state + State.RECORD
        for place, value in enumerate((self._word(4), *values)):
            self.f.store(record, place * WORD, value)
        self.f.ret(Status.RAISED)

    # -- reading the table

    def _word(self, place: int) -> Word:
        return self.f.load(self.ip.now, place * WORD)

    def _resolve(self, word: Word) -> Word:
        """The value that a word stands for."""
        base = (word < 0).choose(self.constants, self.frame.now)
        return self.f.load(base + (word << 3))

    def _value(self, place: int) -> Word:
        return self._resolve(self._word(place))

    def _slot(self, place: int) -> Word:
        return self.frame.now + (self._word(place) << 3)

    def _set(self, place: int, value: Word) -> None:
        self.f.store(self._slot(place), 0, value)

    def _resolve_all(self, words: Word, count: Word, target: Word) -> None:
        """Write the values of `count` words, one after another, at an address."""
        with self.f.counting(count) as index:
            value = self._resolve(self.f.load(words + (index << 3)))
            self.f.store(target + (index << 3), 0, value)

    def _resolve_groups(self, words: Word, groups: Word, target: Word) -> None:
        """The same of groups of words."""
        with self._in_groups(groups) as offset:
            for k in range(GROUP):
                value = self._resolve(self.f.load(words + offset, k * WORD))
                self.f.store(target + offset, k * WORD, value)

    def _resolve_operand(self, word: Word, target: Word, place: int = 0) -> None:
        """Write the value of a word that may ask for the address of a slot. What it asks for is no
        branch: in a row of launches nothing foresees them."""
        f = self.f
        address = (word < 0).choose(self.constants, self.frame.now) + (word & -WORD)
        value = f.load(address)
        wanted = f.number(0) - (word & 1)  # all bits, or none
        f.store(target, place * WORD, value + ((address - value) & wanted))

    @contextmanager
    def _in_groups(self, groups: Word) -> Iterator[Word]:
        """For each group of words, how many bytes are before it."""
        with self.f.counting(groups) as index:
            yield index << (WORD * GROUP).bit_length() - 1

    # -- going on

    def _next(self, words: int) -> None:
        self._go(self.ip.now + words * WORD)

    def _go(self, address: Word) -> None:
        self.ip.set(address)
        self.f.b.branch(self.dispatch)

    def _jump(self, place: int) -> None:
        self._go(self.code + (self._word(place) << 3))

    def _jump_if(self, condition: Flag, place: int) -> None:
        with self.f.when(condition):
            self._jump(place)
        self._next(place + 1)

    def _leave_if(self, condition: Flag, status: int) -> None:
        with self.f.when(condition, likely=False):
            self.f.ret(status)

    def _poll(self, work: int) -> None:
        left = self.work_left.now - work
        self.work_left.set(left)
        with self.f.when(left < 0, likely=False):
            self.work_left.set(POLL_PERIOD)
            poll, of = (self.f.load(self.state, State.RECORD + POLL + k) for k in (0, WORD))
            status = self.f.call_address(poll, of)
            with self.f.when(status.differs(0), likely=False):
                self.f.ret(status)

    def _poll_here(self) -> None:
        self._poll(JUMP_WORK)
        self._next(1)

    # -- kernels and scalars

    def _launch(self, chunks_per_thread: int, begins: bool = False) -> None:
        """Run a kernel, on the team if that gets any chunks of it. `begins`: a word says where."""
        self.chunks.set(chunks_per_thread)
        self.begin.set(self._value(6) if begins else 0)
        self.operands.set(self.ip.now + (6 + begins) * WORD)
        self.f.b.branch(self.launching)

    def _write_launch(self) -> None:
        f = self.f
        kernel, extent, groups = self._word(1), self._value(2), self._word(5)
        words, begin, chunks = self.operands.now, self.begin.now, self.chunks.now
        f.store(self.scratch, 0, self.state + State.RECORD)
        with self._in_groups(groups) as offset:
            for k in range(GROUP):
                word = f.load(words + offset, k * WORD)
                self._resolve_operand(word, self.scratch + offset, 1 + k)
        count = groups * GROUP
        work = (extent - begin) * self._value(3)
        self.work_left.set(self.work_left.now - work)
        status = f.variable(0)
        team = f.load(f.load(self.control, Control.PROCESS), Process.TEAM)
        shared = (work >= WORTH_SHARING) & team.differs(0) & begin.equals(0) & chunks.differs(0)
        with f.either(shared) as (yes, no):
            with yes:
                status.set(f.call(self.teamwork.launch_shared, team, kernel, self.scratch,
                                  count + 1, extent, work, chunks))  # fmt: skip
            with no:
                status.set(f.call_address(kernel, self.scratch, begin, extent))
        with f.when(status.now.differs(0), likely=False):
            record = self.state + State.RECORD
            in_plan = status.now.equals(Status.RAISED_IN_PLAN)
            f.store(record, 0, f.load(record) + in_plan.choose(0, self._word(4)))
            f.ret(in_plan.choose(Status.RAISED, status.now))
        self._go(words + (count << 3))

    def _parts(self) -> None:
        """Let the team do what follows in parts, each a run of its own (`row_parts.py`)."""
        f = self.f
        rows, work = self._value(4), self._value(5)
        team = f.load(f.load(self.control, Control.PROCESS), Process.TEAM)
        with f.when((work >= WORTH_SHARING) & team.differs(0) & (rows >= 2 * ROWS_TOGETHER)):
            self.work_left.set(self.work_left.now - work)
            # A part may be over before another one begins: all begin with the same frame.
            size = self._word(6) << 3
            copy = f.c("malloc", size)
            self._leave_if(copy.equals(0), Status.MEMORY)
            f.c("memcpy", copy, self.frame.now, size)
            record = self.state + State.RECORD
            given = (record, self.state, copy, self.frame.now, self.ip.now, rows)
            for place, word in enumerate(given):
                f.store(self.scratch, place * WORD, word)
            units = (rows + (ROWS_TOGETHER - 1)).unsigned_div(ROWS_TOGETHER)
            status = f.call(self.teamwork.launch_shared, team, f.address(self.part.native),
                            self.scratch, len(given), units, work, 1)  # fmt: skip
            f.c("free", copy, returns=VOID)
            with f.when(status.differs(0), likely=False):
                f.ret(status)
            self._jump(7)
        self._next(INSTRUCTION_WORDS)

    def _select(self) -> None:
        self._set(1, self._value(2).differs(0).choose(self._value(3), self._value(4)))
        self._next(5)

    def _loop(self, more: Callable[[Word, Word], Flag]) -> None:
        counter = self.f.load(self._slot(1)) + self._value(2)
        self._set(1, counter)
        self._poll(JUMP_WORK)
        self._jump_if(more(counter, self._value(3)), 4)

    # -- memory

    def _alloc(self, alloc: Function) -> None:
        address = self.f.call(alloc, self.state, self._value(2))
        self._leave_if(address.equals(0), Status.MEMORY)
        self._set(1, address)
        self._next(3)

    def _free(self) -> None:
        self.f.call(self.memory.free, self.state, self._value(1))
        self._next(2)

    def _copy(self) -> None:
        target, source, nbytes = (self._value(place) for place in (1, 2, 3))
        with self.f.when(source.differs(0)):
            self.f.c("memmove", target, source, nbytes)
        self._next(4)

    def _zero(self) -> None:
        self.f.c("memset", self._value(1), self.f.number(0), self._value(2))
        self._next(3)

    def _store(self, kind: str) -> None:
        bits = int(kind[1:])
        address = self._value(1) + self._value(2) * (bits // 8)
        self.f.store_narrow(address, bits, self._value(3))
        self._next(4)

    # -- calls

    def _call(self) -> None:
        f = self.f
        target, caller, callee, groups = (self._word(place) for place in (1, 2, 3, 4))
        words = self.ip.now + 5 * WORD
        distance = (caller + LINK_WORDS) << 3
        stack = f.load(self.state, State.STACK)
        needed = (self.frame.now - stack) + distance + (callee << 3)
        with f.when(needed > f.load(self.state, State.STACK_END) - stack, likely=False):
            offset = self.frame.now - stack
            status = f.call(self.grow, self.state, needed)
            with f.when(status.differs(0), likely=False):
                f.ret(status)
            self.frame.set(f.load(self.state, State.STACK) + offset)
        frame = self.frame.now + distance
        self._resolve_groups(words, groups, frame)
        f.store(frame, -LINK, words + groups * (GROUP * WORD))
        f.store(frame, -LINK + WORD, distance)
        self.frame.set(frame)
        self._go(self.code + (target << 3))

    def _return(self) -> None:
        f = self.f
        groups, words = self._word(1), self.ip.now + 2 * WORD
        back = f.load(self.frame.now, -LINK)
        with f.when(back.equals(0), likely=False):
            self._resolve_all(words, groups * GROUP, self.scratch)
            f.ret(Status.OK)
        caller = self.frame.now - f.load(self.frame.now, -LINK + WORD)
        with self._in_groups(groups) as offset:
            for k in range(GROUP):
                value = self._resolve(f.load(words + offset, k * WORD))
                slot = f.load(back + offset, (k + 1) * WORD)
                f.store(caller + (slot << 3), 0, value)
        self.frame.set(caller)
        self._go(back + groups * (GROUP * WORD) + WORD)

    # -- tapes

    def _tape_new(self) -> None:
        f = self.f
        tape = f.call(self.memory.alloc, self.state, f.number(Tape.BYTES))
        self._leave_if(tape.equals(0), Status.MEMORY)
        for field in (Tape.DATA, Tape.USED, Tape.CAPACITY):
            f.store(tape, field, 0)
        self._set(1, tape)
        self._next(2)

    def _reserve(self, nbytes: Word) -> Word:
        place = self.f.call(self.memory.reserve, self.state, self._value(1), nbytes)
        self._leave_if(place.equals(0), Status.MEMORY)
        return place

    def _popped(self, nbytes: Word) -> Word:
        """Take bytes off the tape; where they lie until the next push."""
        tape = self._value(1)
        used = self.f.load(tape, Tape.USED) - ((nbytes + 7) & -8)
        self.f.store(tape, Tape.USED, used)
        return self.f.load(tape, Tape.DATA) + used

    def _tape_push(self) -> None:
        count, words = self._word(2), self.ip.now + 3 * WORD
        self._resolve_all(words, count, self._reserve(count << 3))
        self._go(words + (count << 3))

    def _tape_pop(self) -> None:
        f = self.f
        count, words = self._word(2), self.ip.now + 3 * WORD
        place = self._popped(count << 3)
        with f.counting(count) as index:
            slot = f.load(words + (index << 3))
            f.store(self.frame.now + (slot << 3), 0, f.load(place + (index << 3)))
        self._go(words + (count << 3))

    def _tape_push_bytes(self) -> None:
        nbytes = self._value(3)
        self.f.c("memcpy", self._reserve(nbytes), self._value(2), nbytes)
        self._next(4)

    def _tape_pop_bytes(self) -> None:
        nbytes = self._value(3)
        self.f.c("memcpy", self._value(2), self._popped(nbytes), nbytes)
        self._next(4)

    def _tape_free(self) -> None:
        tape = self._value(1)
        with self.f.when(tape.differs(0)):
            self.f.call(self.memory.free, self.state, self.f.load(tape, Tape.DATA))
            self.f.call(self.memory.free, self.state, tape)
        self._next(2)

    # -- leaving

    def _raise(self) -> None:
        record = self.state + State.RECORD
        self.f.store(record, 0, self._word(1))
        self._resolve_all(self.ip.now + 3 * WORD, self._word(2), record + WORD)
        self.f.ret(Status.RAISED)

    def _guard(self) -> None:
        self._leave_if(self._value(1).equals(0), Status.MISMATCH)
        self._next(2)

    def _host_call(self) -> None:
        f = self.f
        # A signal that waits would be raised as soon as Python is entered, where nobody catches it.
        polled = f.call(self.poll, f.load(self.control, Control.PROCESS))
        with f.when(polled.differs(0), likely=False):
            f.ret(polled)
        site, given, wanted = self._word(1), self._word(2), self._word(3)
        words = self.ip.now + 4 * WORD
        self._resolve_all(words, given, self.scratch)
        targets, results = words + (given << 3), self.scratch + (given << 3)
        gate = f.load(self.control, Control.GATE)
        status = f.call_address(gate, site, self.scratch, given, results, wanted) - ANSWERED
        with f.when(status.differs(0), likely=False):
            f.ret(status)
        with f.counting(wanted) as index:
            slot = f.load(targets + (index << 3))
            f.store(self.frame.now + (slot << 3), 0, f.load(results + (index << 3)))
        self._go(targets + (wanted << 3))

    def _ufunc_call(self) -> None:
        """As NumPy calls a loop: addresses, extents, steps, and a word that is the loop's own."""
        f = self.f
        loop, own, arrays, before_steps, groups = (self._word(k) for k in (1, 2, 4, 5, 6))
        words = self.ip.now + 7 * WORD
        with f.counting(groups * GROUP) as index:
            self._resolve_operand(f.load(words + (index << 3)), self.scratch + (index << 3))
        extents, steps = (self.scratch + (k << 3) for k in (arrays, before_steps))
        f.do("feclearexcept", INVALID)
        f.call_address(loop, self.scratch, extents, steps, own)
        self._set(3, f.c("fetestexcept", INVALID, returns=INT32).differs(0).word())
        self._go(words + groups * (GROUP * WORD))

    def _stamp(self) -> None:
        """The last time is the first word; rows of a count and nanoseconds follow."""
        f, times = self.f, self._value(1)
        f.do("clock_gettime", time.CLOCK_MONOTONIC, self.scratch)
        now = f.load(self.scratch) * 1_000_000_000 + f.load(self.scratch, WORD)
        row = times + (self._value(2) << 4)
        f.store(row, WORD, f.load(row, WORD) + 1)
        f.store(row, 2 * WORD, f.load(row, 2 * WORD) + (now - f.load(times)))
        f.store(times, 0, now)
        self._next(3)
