"""Writing native functions as Python code that reads like C.

In: calls of `Function`'s methods and operators on `Word`s. Out: functions in a module of `llvm_ir`.

Every value is a 64-bit word; addresses are words. Comparisons give a `Flag` (one bit), floating
point work happens on values of `llvm_ir` inside the operation that needs it. Variables live in
stack slots that LLVM turns into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_builder import IRBuilder

WORD = ir.IntType(64)
INT32 = ir.IntType(32)
FLAG = ir.IntType(1)
DOUBLE = ir.DoubleType()
FLOAT = ir.FloatType()
VOID = ir.VoidType()

Branch = AbstractContextManager[object]
"""One side of `Function.either`."""


class Word:
    """A 64-bit value; operators build instructions, comparisons are signed."""

    __slots__ = ("f", "raw")

    def __init__(self, f: Function, raw: ir.Value) -> None:
        self.f, self.raw = f, raw

    def _with(self, operation: str, other: Word | int) -> Word:
        return Word(self.f, getattr(self.f.b, operation)(self.raw, self.f.raw(other)))

    def __add__(self, other: Word | int) -> Word:
        return self._with("add", other)

    def __sub__(self, other: Word | int) -> Word:
        return self._with("sub", other)

    def __mul__(self, other: Word | int) -> Word:
        return self._with("mul", other)

    def __and__(self, other: Word | int) -> Word:
        return self._with("and_", other)

    def __or__(self, other: Word | int) -> Word:
        return self._with("or_", other)

    def __xor__(self, other: Word | int) -> Word:
        return self._with("xor", other)

    def __lshift__(self, other: Word | int) -> Word:
        return self._with("shl", other)

    def __rshift__(self, other: Word | int) -> Word:
        """Logical: zeros come in."""
        return self._with("lshr", other)

    def unsigned_div(self, other: Word | int) -> Word:
        """The quotient of unsigned words; the divisor must not be 0."""
        return self._with("udiv", other)

    def _compare(self, sign: str, other: Word | int) -> Flag:
        return Flag(self.f, self.f.b.icmp_signed(sign, self.raw, self.f.raw(other)))

    def __lt__(self, other: Word | int) -> Flag:
        return self._compare("<", other)

    def __le__(self, other: Word | int) -> Flag:
        return self._compare("<=", other)

    def __gt__(self, other: Word | int) -> Flag:
        return self._compare(">", other)

    def __ge__(self, other: Word | int) -> Flag:
        return self._compare(">=", other)

    def unsigned_below(self, other: Word | int) -> Flag:
        """Whether it is less as an unsigned word."""
        return Flag(self.f, self.f.b.icmp_unsigned("<", self.raw, self.f.raw(other)))

    def equals(self, other: Word | int) -> Flag:
        """Whether the words are the same."""
        return self._compare("==", other)

    def differs(self, other: Word | int) -> Flag:
        """Whether the words are not the same."""
        return self._compare("!=", other)

    def double(self) -> ir.Value:
        """The same bits as a float64."""
        return self.f.b.bitcast(self.raw, DOUBLE)

    def float(self) -> ir.Value:
        """The low half's bits as a float32."""
        return self.f.b.bitcast(self.f.b.trunc(self.raw, INT32), FLOAT)


class Flag:
    """One bit."""

    __slots__ = ("f", "raw")

    def __init__(self, f: Function, raw: ir.Value) -> None:
        self.f, self.raw = f, raw

    def __and__(self, other: Flag) -> Flag:
        return Flag(self.f, self.f.b.and_(self.raw, other.raw))

    def __or__(self, other: Flag) -> Flag:
        return Flag(self.f, self.f.b.or_(self.raw, other.raw))

    def __invert__(self) -> Flag:
        return Flag(self.f, self.f.b.not_(self.raw))

    def word(self) -> Word:
        """0 or 1."""
        return Word(self.f, self.f.b.zext(self.raw, WORD))

    def choose(self, a: Word | int, b: Word | int) -> Word:
        """`a if self else b`."""
        return Word(self.f, self.f.b.select(self.raw, self.f.raw(a), self.f.raw(b)))


class Variable:
    """A word that changes."""

    __slots__ = ("f", "place")

    def __init__(self, f: Function, place: ir.Value) -> None:
        self.f, self.place = f, place

    @property
    def now(self) -> Word:
        """Its value at this point of the program."""
        return Word(self.f, self.f.b.load(self.place, typ=WORD))

    def set(self, value: Word | int) -> None:
        """Give it a value."""
        self.f.b.store(self.f.raw(value), self.place)


class Function:
    """A native function being written: words in, one word (or nothing) out."""

    def __init__(
        self, module: ir.Module, name: str, parameters: int, returns: ir.Type = WORD
    ) -> None:
        self.module = module
        signature = ir.FunctionType(returns, [WORD] * parameters)
        self.native = ir.Function(module, signature, name)
        self.b = IRBuilder(self.native.append_basic_block("entry"))
        self._entry = self.b.block
        self.parameters = [Word(self, argument) for argument in self.native.args]

    def expanded(self) -> Function:
        """The function, which is written out wherever it is called."""
        self.native.attributes.add("alwaysinline")
        return self

    # -- values

    def raw(self, value: Word | int) -> ir.Value:
        """The value, for instructions, of a word or a number."""
        return value.raw if isinstance(value, Word) else WORD(value)

    def number(self, value: int) -> Word:
        """A constant."""
        return Word(self, WORD(value))

    def variable(self, value: Word | int) -> Variable:
        """A new variable."""
        variable = Variable(self, self.local_words(1))
        variable.set(value)
        return variable

    def local_words(self, count: int) -> ir.Value:
        """Room on the native stack, as a pointer of `llvm_ir`; allocated once per call."""
        with self.b.goto_block(self._entry):
            self.b.position_at_start(self._entry)
            return self.b.alloca(WORD, count)

    def address(self, pointer: ir.Value) -> Word:
        """A pointer as a word."""
        return Word(self, self.b.ptrtoint(pointer, WORD))

    def smaller(self, a: Word, b: Word | int) -> Word:
        """The smaller of two signed words."""
        return (a < b).choose(a, b)

    # -- memory

    def _pointer(self, address: Word, offset: int, kind: ir.Type) -> ir.Value:
        return self.b.inttoptr((address + offset if offset else address).raw, kind.as_pointer())

    def load(self, address: Word, offset: int = 0) -> Word:
        """The word at `address + offset`."""
        return Word(self, self.b.load(self._pointer(address, offset, WORD), typ=WORD))

    def store(self, address: Word, offset: int, value: Word | int) -> None:
        """Write a word at `address + offset`."""
        self.b.store(self.raw(value), self._pointer(address, offset, WORD))

    def load_narrow(self, address: Word, bits: int, signed: bool) -> Word:
        """A narrow integer at an address, extended."""
        kind = ir.IntType(bits)
        value = self.b.load(self._pointer(address, 0, kind), typ=kind)
        return Word(self, (self.b.sext if signed else self.b.zext)(value, WORD))

    def store_narrow(self, address: Word, bits: int, value: Word) -> None:
        """Write the low bits of a word at an address."""
        kind = ir.IntType(bits)
        self.b.store(self.b.trunc(value.raw, kind), self._pointer(address, 0, kind))

    def atomic_load(self, address: Word, offset: int) -> Word:
        """A word that other threads write."""
        pointer = self._pointer(address, offset, WORD)
        return Word(self, self.b.load_atomic(pointer, "seq_cst", 8, typ=WORD))

    def atomic_store(self, address: Word, offset: int, value: Word | int) -> None:
        """Write a word that other threads read."""
        self.b.store_atomic(self.raw(value), self._pointer(address, offset, WORD), "seq_cst", 8)

    def atomic_add(self, address: Word, offset: int, value: int) -> Word:
        """Add to a shared word; what it was before."""
        pointer = self._pointer(address, offset, WORD)
        return Word(self, self.b.atomic_rmw("add", pointer, WORD(value), "seq_cst"))

    def exchange_if(self, address: Word, offset: int, old: Word | int, new: Word | int) -> Flag:
        """Replace a shared word if it is `old`; whether it was."""
        pointer = self._pointer(address, offset, WORD)
        pair = self.b.cmpxchg(pointer, self.raw(old), self.raw(new), "seq_cst", "seq_cst")
        return Flag(self, self.b.extract_value(pair, 1))

    # -- control

    @contextmanager
    def when(self, condition: Flag, likely: bool | None = None) -> Iterator[None]:
        """A block that runs if the condition holds; it may leave the function."""
        with self.b.if_then(condition.raw, likely=likely):
            yield

    @contextmanager
    def either(self, condition: Flag) -> Iterator[tuple[Branch, Branch]]:
        """`with f.either(c) as (yes, no): with yes: ...; with no: ...`."""
        with self.b.if_else(condition.raw) as branches:
            yield branches

    @contextmanager
    def while_(self, condition: Callable[[], Flag]) -> Iterator[None]:
        """A loop whose test is written by `condition`."""
        test = self.native.append_basic_block("test")
        body = self.native.append_basic_block("body")
        done = self.native.append_basic_block("done")
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(condition().raw, body, done)
        self.b.position_at_end(body)
        yield
        if not self.b.block.is_terminated:
            self.b.branch(test)
        self.b.position_at_end(done)

    @contextmanager
    def counting(self, count: Word) -> Iterator[Word]:
        """A loop over `0..count`."""
        index = self.variable(0)
        with self.while_(lambda: index.now < count):
            yield index.now
            index.set(index.now + 1)

    def ret(self, value: Word | int = 0) -> None:
        """Leave the function."""
        self.b.ret(self.raw(value))

    # -- calls

    def call(self, callee: Function, *arguments: Word | int) -> Word:
        """Call a function of this module."""
        return Word(self, self.b.call(callee.native, [self.raw(a) for a in arguments]))

    def call_address(self, address: Word, *arguments: Word | int) -> Word:
        """Call a native function of words by its address."""
        kind = ir.FunctionType(WORD, [WORD] * len(arguments)).as_pointer()
        pointer = self.b.inttoptr(address.raw, kind)
        return Word(self, self.b.call(pointer, [self.raw(a) for a in arguments]))

    def c(self, name: str, *arguments: Word | int, returns: ir.Type = WORD) -> Word:
        """Call a C function by its symbol; integer and pointer parameters only.

        An `int` result is sign-extended; of a void one the word is 0.
        """
        native = self.symbol(name, [WORD] * len(arguments), returns)
        value = self.b.call(native, [self.raw(a) for a in arguments])
        if returns is VOID:
            return self.number(0)
        return Word(self, value if returns is WORD else self.b.sext(value, WORD))

    def do(self, name: str, *arguments: Word | int) -> None:
        """Call a C function that returns an `int` which nothing reads."""
        native = self.symbol(name, [WORD] * len(arguments), INT32)
        self.b.call(native, [self.raw(a) for a in arguments])

    def symbol(self, name: str, parameters: Sequence[ir.Type], returns: ir.Type) -> ir.Function:
        """The declaration of a C function."""
        known = self.module.globals.get(name)
        if known is not None:
            return known
        return ir.Function(self.module, ir.FunctionType(returns, parameters), name)

    def pause(self) -> None:
        """Tell the CPU that this is a spinning loop."""
        if self.module.triple.startswith("x86_64"):
            self.b.call(self.symbol("llvm.x86.sse2.pause", [], VOID), [])
        elif self.module.triple.startswith(("aarch64", "arm64")):
            self.b.call(self.symbol("llvm.aarch64.hint", [INT32], VOID), [INT32(1)])


@contextmanager
def over(f: Function, start: Word | int, stop: Word, step: int) -> Iterator[Word]:
    """``for index in range(start, stop, step)``."""
    index = f.variable(start)
    with f.while_(lambda: index.now < stop):
        now = index.now
        yield now
        index.set(now + step)
