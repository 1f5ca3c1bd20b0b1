"""The native way in and out: Python objects to a plan's words and back.

In: an llvmlite module with its memory functions and the executor. Out: in it, `pyrelay_entry`, a
METH_FASTCALL function of CPython whose `self` is the int64 ndarray that is an executable's control
record, and `pyrelay_release`, the destructor of the capsules that own result arrays.

Arguments are checked against the parameter table by reading the objects' fields: class, descr,
number of dimensions, flags; an array that the plan may write shares no memory with another one.
Names that the control lists must mean what they meant. What does not fit returns the control's
MISMATCH object, and Python decides. The fields' places are those of NumPy's and CPython's public
headers (`PyArrayObject_fields`, `PyFloatObject`, `PyComplexObject`, the array scalars), which
`library` compares with the running interpreter before first use.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import DOUBLE, VOID, Flag, Function, Word
from pyrelay.devices.compiler.llvm_writer import WORD as WORD_TYPE
from pyrelay.devices.runtime.boundary_fields import (
    ARRAY_DATA,
    ARRAY_DESCR,
    ARRAY_EXTENTS,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_STRIDES,
    CELL_CONTENT,
    F_CONTIGUOUS,
    GUARD_KINDS,
    GUARD_WORDS,
    LIST_LENGTH,
    OBJECT_CLASS,
    PARAMETER_KINDS,
    PARAMETER_WORDS,
    RESULT_KINDS,
    RESULT_WORDS,
    SCALAR_VALUE,
    WRITEABLE,
)  # fmt: skip
from pyrelay.devices.runtime.layout import WORD, Block, Control, State, Status
from pyrelay.devices.runtime.memory import Memory
from pyrelay.devices.runtime.row_parts import LINK
from pyrelay.lower.planning.opcodes import MEMORY

FIRST_STACK = 1 << 15
"""Bytes of a new state's frame stack beside its entry frame."""

KEEP_STACK = 1 << 24
"""A frame stack above this many bytes is given back after the call."""


class Boundary:
    """Writes the entry and its parts."""

    def __init__(self, module: ir.Module, memory: Memory, run: Function) -> None:
        self.module, self.memory, self.run = module, memory, run
        self.release = self._release()
        self.new_stack = self._new_stack()
        self.new_state = self._new_state()
        self.finish = self._finish()
        self.guards = self._guards()
        self.bind = self._bind()
        self.bytes = self._bytes()
        self.apart = self._apart()
        self.lend = self._lend()
        self.new_array = self._new_array()
        self.build = self._build()
        self.results = self._results()
        self.fail = self._fail()
        self.entry = self._entry()

    def _function(self, name: str, parameters: int) -> Function:
        return Function(self.module, f"pyrelay_{name}", parameters)

    def _release(self) -> Function:
        """(capsule): a result's array died; its block goes to the process."""
        f = Function(self.module, "pyrelay_release", 1, returns=VOID)
        (capsule,) = f.parameters
        data = f.c("PyCapsule_GetPointer", capsule, 0)
        process = f.c("PyCapsule_GetContext", capsule)
        f.call(self.memory.give_shared, process, data - Block.BYTES)
        f.b.ret_void()
        return f

    # -- states

    def _new_stack(self) -> Function:
        """(state): a frame stack of the first size; whether there was memory."""
        f = self._function("new_stack", 1)
        (state,) = f.parameters
        slots = f.load(f.load(state, State.CONTROL), Control.ENTRY_SLOTS)
        size = (slots << 3) + (LINK + FIRST_STACK)
        stack = f.c("malloc", size)
        f.store(state, State.STACK, stack)
        f.store(state, State.STACK_END, stack + size)
        f.ret(stack.differs(0).word())
        return f

    def _new_state(self) -> Function:
        """(control): a state for one call, 0 where there is no memory."""
        f = self._function("new_state", 1)
        (control,) = f.parameters
        scratch = (f.load(control, Control.SCRATCH_WORDS) << 3) + State.SCRATCH + WORD
        lent = f.load(control, Control.LENT_COUNT)
        state = f.c("calloc", f.number(1), scratch + (lent << 3))
        with f.when(state.differs(0)):
            f.store(state, State.CONTROL, control)
            f.store(state, State.LENT, state + scratch)
            f.store(state, State.LENT_COUNT, lent)
            with f.when(f.call(self.new_stack, state).equals(0)):
                f.c("free", state, returns=VOID)
                f.ret(0)
        f.ret(state)
        return f

    def _finish(self) -> Function:
        """(state): the call is over; what it holds is released, the state is idle."""
        f = self._function("finish", 1)
        (state,) = f.parameters
        control = f.load(state, State.CONTROL)
        f.call(self.memory.release_all, state)
        stack = f.load(state, State.STACK)
        with f.when(f.load(state, State.STACK_END) - stack > KEEP_STACK, likely=False):
            f.c("free", stack, returns=VOID)
            with f.when(f.call(self.new_stack, state).equals(0)):
                f.c("free", state, returns=VOID)
                f.ret()
        f.store(state, State.NEXT, f.load(control, Control.IDLE))
        f.store(control, Control.IDLE, state)
        f.ret()
        return f

    # -- names

    def _guards(self) -> Function:
        """(control): 1 where the names in the table still mean what they meant, else 0."""
        f = self._function("guards", 1)
        (control,) = f.parameters
        table = f.load(control, Control.GUARDS)
        lookers: dict[str, Callable[[Word, Word], Word]] = {
            "item": lambda place, key: f.c("PyDict_GetItem", place, key),
            "code": lambda place, key: f.c("PyFunction_GetCode", place),
            "defaults": lambda place, key: f.c("PyFunction_GetDefaults", place),
            "cell": lambda place, key: f.load(place, CELL_CONTENT),
            "setting": lambda place, key: self._setting(f, control, place, key),
        }
        with f.counting(f.load(control, Control.GUARD_COUNT)) as index:
            entry = table + index * (GUARD_WORDS * WORD)
            place, key = f.load(entry, WORD), f.load(entry, 2 * WORD)
            found = f.variable(0)
            for number, kind in enumerate(GUARD_KINDS):
                with f.when(f.load(entry).equals(number)):
                    found.set(lookers[kind](place, key))
            self._refuse(f, found.now.differs(f.load(entry, 3 * WORD)))
        f.ret(1)
        return f

    def _setting(self, f: Function, control: Word, places: Word, variable: Word) -> Word:
        """What a context variable holds, None while a list is empty. It outlives the look."""
        found = f.variable(f.load(control, Control.NONE))
        with f.when(f.load(places, LIST_LENGTH).differs(0), likely=False):
            held = f.address(f.local_words(1))
            f.store(held, 0, 0)
            f.do("PyContextVar_Get", variable, 0, held)
            found.set(f.load(held))
            f.c("Py_DecRef", found.now, returns=VOID)
        return found.now

    # -- arguments

    def _bind(self) -> Function:
        """(control, arguments, frame): fill the entry frame; 1 where everything fits, else 0."""
        f = self._function("bind", 3)
        control, arguments, frame = f.parameters
        table = f.variable(f.load(control, Control.PARAMETERS))
        target = f.variable(frame)
        with f.counting(f.load(control, Control.PARAMETER_COUNT)) as index:
            argument = f.load(arguments + (index << 3))
            entry = table.now
            kind, wanted_class = f.load(entry), f.load(entry, WORD)
            with f.when((f.load(argument, OBJECT_CLASS).differs(wanted_class))
                        & kind.differs(PARAMETER_KINDS.index("object"))):  # fmt: skip
                f.ret(0)
            done = f.native.append_basic_block("bound")
            unknown = f.native.append_basic_block("unknown")
            switch = f.b.switch(kind.raw, unknown)
            f.b.position_at_end(unknown)
            f.b.unreachable()
            for number, name in enumerate(PARAMETER_KINDS):
                case = f.native.append_basic_block(name)
                switch.add_case(number, case)
                f.b.position_at_end(case)
                filled = self._bind_one(f, name, control, entry, argument, target.now)
                target.set(filled)
                f.b.branch(done)
            f.b.position_at_end(done)
            table.set(entry + PARAMETER_WORDS * WORD)
        f.ret(1)
        return f

    def _bind_one(
        self, f: Function, kind: str, control: Word, entry: Word, argument: Word, target: Word
    ) -> Word:
        """Fill the slots of one parameter; where the next one's begin."""
        if kind == "array":
            return self._bind_array(f, entry, argument, target)
        if kind == "object":
            self._refuse(f, argument.differs(f.load(entry, WORD)))
            return target
        if kind == "int":
            overflow = f.address(f.local_words(1))
            f.store(overflow, 0, 0)
            number = f.c("PyLong_AsLongLongAndOverflow", argument, overflow)
            self._refuse(f, f.load(overflow).differs(0))
            f.store(target, 0, number)
        elif kind == "bool":
            f.store(target, 0, argument.equals(f.load(control, Control.TRUE)).word())
        elif kind in MEMORY:
            value = f.load_narrow(argument + SCALAR_VALUE, int(kind[1:]), kind[0] == "i")
            f.store(target, 0, value)
        else:
            f.store(target, 0, f.load(argument, SCALAR_VALUE))
            if kind in ("complex", "pair"):
                f.store(target, WORD, f.load(argument, SCALAR_VALUE + WORD))
                return target + 2 * WORD
        return target + WORD

    def _bytes(self) -> Function:
        """(entry, argument): how many bytes an array takes."""
        f = self._function("bytes", 2)
        entry, argument = f.parameters
        shape = f.load(argument, ARRAY_EXTENTS)
        size = f.variable(f.load(entry, 7 * WORD))
        with f.counting(f.load(entry, 3 * WORD)) as axis:
            size.set(size.now * f.load(shape + (axis << 3)))
        f.ret(size.now)
        return f

    def _apart(self) -> Function:
        """(control, arguments): 1 where no array that the plan may write shares memory with another
        one, else 0. All are known to be contiguous.
        """
        f = self._function("apart", 2)
        control, arguments = f.parameters
        table, count = f.load(control, Control.PARAMETERS), f.load(control, Control.PARAMETER_COUNT)

        def array(index: Word) -> tuple[Word, Word, Flag]:
            entry = table + index * (PARAMETER_WORDS * WORD)
            is_array = f.load(entry).equals(PARAMETER_KINDS.index("array"))
            return entry, f.load(arguments + (index << 3)), is_array

        with f.counting(count) as one:
            entry, argument, is_array = array(one)
            with f.when(is_array & (f.load(entry, 4 * WORD) & WRITEABLE).differs(0)):
                first = f.load(argument, ARRAY_DATA)
                end = first + f.call(self.bytes, entry, argument)
                with f.counting(count) as other:
                    entry, argument, is_array = array(other)
                    with f.when(is_array & other.differs(one)):
                        start = f.load(argument, ARRAY_DATA)
                        behind = start + f.call(self.bytes, entry, argument)
                        self._refuse(f, (first < behind) & (start < end))
        f.ret(1)
        return f

    def _lend(self) -> Function:
        """(state, frame): note the addresses of the arrays that the plan may write."""
        f = self._function("lend", 2)
        state, frame = f.parameters
        slots, lent = f.load(f.load(state, State.CONTROL), Control.LENT), f.load(state, State.LENT)
        with f.counting(f.load(state, State.LENT_COUNT)) as index:
            slot = f.load(slots + (index << 3))
            f.store(lent + (index << 3), 0, f.load(frame + (slot << 3)))
        f.ret()
        return f

    def _refuse(self, f: Function, condition: Flag) -> None:
        with f.when(condition):
            f.ret(0)

    def _bind_array(self, f: Function, entry: Word, argument: Word, target: Word) -> Word:
        descr, ndim, flags = (f.load(entry, place * WORD) for place in (2, 3, 4))
        extents, order = f.load(entry, 5 * WORD), f.load(entry, 6 * WORD)
        has = f.load_narrow(argument + ARRAY_FLAGS, 32, False)
        dimensions = f.load_narrow(argument + ARRAY_NDIM, 32, True)
        self._refuse(f, f.load(argument, ARRAY_DESCR).differs(descr))
        self._refuse(f, dimensions.differs(ndim) | (has & flags).differs(flags))
        f.store(target, 0, f.load(argument, ARRAY_DATA))
        shape = f.load(argument, ARRAY_EXTENTS)

        def take(axis: Word, extent: Word) -> None:
            wanted = f.load(extents + (axis << 3))
            self._refuse(f, (wanted >= 0) & wanted.differs(extent))
            f.store(target + (axis << 3), WORD, extent)

        with f.when(order.equals(0)), f.counting(ndim) as axis:
            take(axis, f.load(shape + (axis << 3)))
        with f.when(order.differs(0), likely=False):
            told, through = (flags & F_CONTIGUOUS).differs(0), f.variable(f.load(entry, 7 * WORD))
            strides = f.load(argument, ARRAY_STRIDES)
            with f.counting(ndim) as before:
                axis = ndim - 1 - before
                place = f.load(order + (axis << 3))
                extent = f.load(shape + (place << 3))
                stride = f.load(strides + (place << 3))
                lies = told | stride.equals(through.now) | extent.equals(1)
                self._refuse(f, lies.word().equals(0))
                through.set(through.now * extent)
                take(axis, extent)
        return target + WORD + (ndim << 3)

    # -- results

    def _new_array(self) -> Function:
        """(control, entry, data, extents, strides, flags): a new reference, or 0."""
        f = self._function("new_array", 6)
        control, entry, data, extents, strides, flags = f.parameters
        descr, ndim = f.load(entry, WORD), f.load(entry, 2 * WORD)
        f.c("Py_IncRef", descr, returns=VOID)
        f.ret(f.call_address(f.load(control, Control.NEW_ARRAY), f.load(control, Control.NDARRAY),
                             descr, ndim, extents, strides, data, flags, 0))  # fmt: skip
        return f

    def _build(self) -> Function:
        """(state, entry, words, arguments, results so far, address of the next words): an object.

        A new reference, or 0 with a Python error set.
        """
        f = self._function("build", 6)
        state, entry, words, arguments, so_far, following = f.parameters
        control = f.load(state, State.CONTROL)
        unknown = f.native.append_basic_block("unknown")
        switch = f.b.switch(f.load(entry).raw, unknown)
        f.b.position_at_end(unknown)
        f.b.unreachable()
        makers: dict[str, Callable[[], Word]] = {
            "array": lambda: self._build_array(f, state, entry, words, following),
            "view": lambda: self._build_view(f, control, entry, words, arguments, following),
            "int": lambda: f.c("PyLong_FromLongLong", f.load(words)),
            "float": lambda: self._from_doubles(f, "PyFloat_FromDouble", f.load(words)),
            "complex": lambda: self._from_doubles(
                f, "PyComplex_FromDoubles", f.load(words), f.load(words, WORD)
            ),
            "bool": lambda: self._shared(
                f,
                f.load(words)
                .differs(0)
                .choose(f.load(control, Control.TRUE), f.load(control, Control.FALSE)),
            ),
            "numpy": lambda: f.call_address(
                f.load(control, Control.NEW_SCALAR), words, f.load(entry, WORD), 0
            ),
            "parameter": lambda: self._shared(f, f.load(arguments + (f.load(entry, WORD) << 3))),
            "same": lambda: self._shared(f, f.c("PyTuple_GetItem", so_far, f.load(entry, WORD))),
            "object": lambda: self._shared(f, f.load(entry, WORD)),
        }
        for number, name in enumerate(RESULT_KINDS):
            case = f.native.append_basic_block(name)
            switch.add_case(number, case)
            f.b.position_at_end(case)
            if name not in ("array", "view"):
                f.store(following, 0, words + (f.load(entry, 2 * WORD) << 3))
            f.ret(makers[name]())
        return f

    def _shared(self, f: Function, value: Word) -> Word:
        f.c("Py_IncRef", value, returns=VOID)
        return value

    def _from_doubles(self, f: Function, name: str, *words: Word) -> Word:
        native = f.symbol(name, [DOUBLE] * len(words), WORD_TYPE)
        return Word(f, f.b.call(native, [word.double() for word in words]))

    def _build_array(
        self, f: Function, state: Word, entry: Word, words: Word, following: Word
    ) -> Word:
        control = f.load(state, State.CONTROL)
        f.store(following, 0, words + WORD + (f.load(entry, 2 * WORD) << 3))
        data, flags = f.load(words), f.load(entry, 3 * WORD)
        with f.when(data.equals(0), likely=False):
            f.ret(self._shared(f, f.load(control, Control.NONE)))
        with f.when((flags & F_CONTIGUOUS).differs(0)):
            self._reverse(f, words + WORD, f.load(entry, 2 * WORD))
        array = f.call(self.new_array, control, entry, data, words + WORD, 0, flags)
        self._refuse(f, array.equals(0))
        release = f.address(self.release.native)
        owner = f.c("PyCapsule_New", data, f.number(0), release)
        with f.when(owner.equals(0), likely=False):
            f.c("Py_DecRef", array, returns=VOID)
            f.ret(0)
        f.do("PyCapsule_SetContext", owner, f.load(control, Control.PROCESS))
        f.call(self.memory.adopt, state, data)
        return self._owned(f, control, array, owner)

    def _reverse(self, f: Function, words: Word, count: Word) -> None:
        """Turn a row of words round in place."""
        with f.counting(count >> 1) as index:
            near, far = words + (index << 3), words + ((count - 1 - index) << 3)
            first, last = f.load(near), f.load(far)
            f.store(near, 0, last)
            f.store(far, 0, first)

    def _build_view(
        self, f: Function, control: Word, entry: Word, words: Word, arguments: Word,
        following: Word,
    ) -> Word:  # fmt: skip
        ndim = f.load(entry, 2 * WORD) << 3
        f.store(following, 0, words + WORD + ndim + ndim)
        base = f.load(arguments + (f.load(entry, 3 * WORD) << 3))
        flags = f.load_narrow(base + ARRAY_FLAGS, 32, False) & WRITEABLE
        extents = words + WORD
        array = f.call(self.new_array, control, entry, f.load(words), extents, extents + ndim,
                       flags)  # fmt: skip
        self._refuse(f, array.equals(0))
        return self._owned(f, control, array, self._shared(f, base))

    def _owned(self, f: Function, control: Word, array: Word, owner: Word) -> Word:
        """Make `owner` the array's base; takes both references."""
        failed = f.call_address(f.load(control, Control.SET_BASE), array, owner) & 0xFFFFFFFF
        with f.when(failed.differs(0), likely=False):
            f.c("Py_DecRef", array, returns=VOID)
            f.ret(0)
        return array

    def _results(self) -> Function:
        """(state, arguments): the object that the call returns, or 0 with a Python error set."""
        f = self._function("results", 2)
        state, arguments = f.parameters
        control = f.load(state, State.CONTROL)
        table, words = f.load(control, Control.RESULTS), state + State.SCRATCH
        place = f.address(f.local_words(1))
        with f.when(f.load(control, Control.SINGLE).differs(0)):
            f.ret(f.call(self.build, state, table, words, arguments, 0, place))
        count = f.load(control, Control.RESULT_COUNT)
        everything = f.c("PyTuple_New", count)
        self._refuse(f, everything.equals(0))
        f.store(place, 0, words)
        with f.counting(count) as index:
            entry = table + index * (RESULT_WORDS * WORD)
            value = f.call(self.build, state, entry, f.load(place), arguments, everything, place)
            with f.when(value.equals(0), likely=False):
                f.c("Py_DecRef", everything, returns=VOID)
                f.ret(0)
            f.do("PyTuple_SetItem", everything, index, value)
        f.ret(everything)
        return f

    # -- the entry

    def _fail(self) -> Function:
        """(state, status): raise the Python error of a status; returns 0."""
        f = self._function("fail", 2)
        state, status = f.parameters
        self._refuse(f, f.c("PyErr_Occurred").differs(0))
        on_error = f.load(f.load(state, State.CONTROL), Control.ON_ERROR)
        first = f.c("PyLong_FromLongLong", status)
        second = f.c("PyLong_FromLongLong", state + State.RECORD)
        with f.when(first.differs(0) & second.differs(0)):
            given = f.address(f.local_words(2))
            f.store(given, 0, first)
            f.store(given, WORD, second)
            f.c("PyObject_Vectorcall", on_error, given, f.number(2), f.number(0))
            f.c("Py_DecRef", first, returns=VOID)
            f.c("Py_DecRef", second, returns=VOID)
        f.ret(0)
        return f

    def _entry(self) -> Function:
        """(self, arguments, count): call the executable."""
        f = self._function("entry", 3)
        owner, arguments, count = f.parameters
        control = f.load(owner, ARRAY_DATA)
        mismatch = f.load(control, Control.MISMATCH)
        with f.when(count.differs(f.load(control, Control.PARAMETER_COUNT)), likely=False):
            f.ret(self._shared(f, mismatch))
        with (
            f.when(f.load(control, Control.GUARD_COUNT).differs(0)),
            f.when(f.call(self.guards, control).equals(0), likely=False),
        ):
            f.ret(self._shared(f, mismatch))
        found = f.variable(f.load(control, Control.IDLE))
        with f.either(found.now.differs(0)) as (idle, none):
            with idle:
                f.store(control, Control.IDLE, f.load(found.now, State.NEXT))
            with none:
                found.set(f.call(self.new_state, control))
                with f.when(found.now.equals(0), likely=False):
                    f.ret(f.c("PyErr_NoMemory"))
        state = found.now
        frame = f.load(state, State.STACK) + LINK
        with f.when(f.call(self.bind, control, arguments, frame).equals(0), likely=False):
            f.call(self.finish, state)
            f.ret(self._shared(f, mismatch))
        with f.when(f.load(control, Control.LENT_COUNT).differs(0)):
            with f.when(f.call(self.apart, control, arguments).equals(0), likely=False):
                f.call(self.finish, state)
                f.ret(self._shared(f, mismatch))
            f.call(self.lend, state, frame)
        thread = f.c("PyEval_SaveThread")
        status = f.call(self.run, state, f.load(control, Control.CODE))
        f.c("PyEval_RestoreThread", thread, returns=VOID)
        value = f.variable(0)
        with f.either(status.equals(Status.OK)) as (fine, failed):
            with fine:
                value.set(f.call(self.results, state, arguments))
                served = f.load(control, Control.SERVED)
                with f.when(served.differs(0)):
                    f.store(served, 0, f.load(served) + 1)
            with failed, f.either(status.equals(Status.MISMATCH)) as (refused, raised):
                with refused:
                    value.set(self._shared(f, mismatch))
                with raised:
                    value.set(f.call(self.fail, state, status))
        f.call(self.finish, state)
        f.ret(value.now)
        return f
