"""Instructions for LLVM, one method each.

In: values of `llvm_ir`. Out: the lines of a function's blocks.

Methods are named as llvmlite's, after LLVM's instructions (LLVM Language Reference).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pyrelay.devices.compiler.llvm_ir import (
    BIT,
    VOID,
    AllocaInstr,
    Block,
    CallInstr,
    Constant,
    Function,
    FunctionType,
    Instruction,
    IntType,
    LiteralStructType,
    LoadInstr,
    Module,
    PhiInstr,
    Ret,
    StoreInstr,
    SwitchInstr,
    Terminator,
    Type,
    Value,
    VectorType,
)

_LIKELY = (99, 1)
_TESTS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def _binary(name: str) -> Callable[..., Any]:
    def write(self: IRBuilder, x: Any, y: Any, flags: Sequence[str] = ()) -> Value:
        words = " ".join((name, *flags)) if flags else name
        text = f"{words} {x.type.text} {x.ref}, {y.ref}"
        return self._put(Instruction(x.type, text, name, (x, y)))

    write.__doc__ = f"`{name}` of two values of one type."
    return write


def _cast(name: str, opname: str = "") -> Callable[..., Any]:
    def write(self: IRBuilder, x: Any, kind: Type) -> Any:
        if x.type is kind:
            return x
        if name == "trunc" and isinstance(x, Constant) and isinstance(x.constant, int):
            bits = kind.width  # type: ignore[attr-defined]
            if -(1 << bits - 1) <= x.constant < 1 << bits:  # readers know it for a constant
                return Constant(kind, x.constant)
        return self._put(Instruction(kind, f"{name} {x.typed} to {kind.text}", opname, (x,)))

    write.__doc__ = f"`{name}`: the value as another type."
    return write


def _overflow(name: str) -> Callable[..., Any]:
    def write(self: IRBuilder, x: Any, y: Any) -> Value:
        signature = FunctionType(LiteralStructType([x.type, BIT]), [x.type, x.type])
        native = self.module.declare_intrinsic(f"llvm.{name}.with.overflow", [x.type], signature)
        return self.call(native, [x, y])

    write.__doc__ = f"`llvm.{name}.with.overflow`: the result, and whether it did not fit."
    return write


class IRBuilder:
    """Writes at a place in a function: behind the last line of a block, or before one of them."""

    def __init__(self, block: Block | None = None) -> None:
        self._at: int | None = None
        if block is not None:
            self.block = block

    # -- places

    @property
    def function(self) -> Function:
        """The function that is written."""
        return self.block.function

    @property
    def module(self) -> Module:
        """Its module."""
        return self.block.function.module

    def append_basic_block(self, name: str) -> Block:
        """A new block behind the function's last one."""
        return self.block.function.append_basic_block(name)

    def position_at_end(self, block: Block) -> None:
        """Go on behind the last line of a block."""
        self.block, self._at = block, None

    def position_at_start(self, block: Block) -> None:
        """Go on before the first line of a block."""
        self.block, self._at = block, 0

    def position_before_end(self, block: Block) -> None:
        """Go on before the line that ends a block, or at its end where none does."""
        self.block = block
        self._at = len(block.instructions) - 1 if block.terminator else None

    @contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """Write before the line that ends another block for a while."""
        before = self.block
        self.position_before_end(block)
        yield
        self.position_at_end(before)

    def goto_entry_block(self) -> AbstractContextManager[None]:
        """The same of the function's first block."""
        return self.goto_block(self.function.blocks[0])

    def _put(self, made: Any) -> Any:
        block = self.block
        if made.type is not VOID:
            function = block.function
            function.values += 1
            made.ref = f"%v{function.values}"
        if self._at is None:
            block.instructions.append(made)
        else:
            block.instructions.insert(self._at, made)
            self._at += 1
        return made

    # -- arithmetic

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    sdiv, udiv, srem, urem = _binary("sdiv"), _binary("udiv"), _binary("srem"), _binary("urem")
    fadd, fsub, fmul = _binary("fadd"), _binary("fsub"), _binary("fmul")
    fdiv, frem = _binary("fdiv"), _binary("frem")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    sadd_with_overflow, uadd_with_overflow = _overflow("sadd"), _overflow("uadd")
    ssub_with_overflow, usub_with_overflow = _overflow("ssub"), _overflow("usub")
    smul_with_overflow, umul_with_overflow = _overflow("smul"), _overflow("umul")

    def neg(self, x: Any) -> Value:
        """`-x` of integers."""
        return self._put(Instruction(x.type, f"sub {x.type.text} {x.type(None).ref}, {x.ref}"))

    def fneg(self, x: Any) -> Value:
        """`-x` of floats."""
        return self._put(Instruction(x.type, f"fneg {x.typed}", "fneg", (x,)))

    def not_(self, x: Any) -> Value:
        """Every bit turned around."""
        return self._put(Instruction(x.type, f"xor {x.typed}, {x.type(-1).ref}"))

    def ctlz(self, x: Any, zero_is_undefined: Any) -> Value:
        """How many leading bits are 0."""
        signature = FunctionType(x.type, [x.type, BIT])
        native = self.module.declare_intrinsic("llvm.ctlz", [x.type], signature)
        return self.call(native, [x, zero_is_undefined])

    def ctpop(self, x: Any) -> Value:
        """How many bits are 1."""
        return self.call(self.module.declare_intrinsic("llvm.ctpop", [x.type]), [x])

    # -- comparisons

    def _compared(self, test: str, x: Any, y: Any) -> Value:
        kind = x.type
        truth = VectorType(BIT, kind.count) if isinstance(kind, VectorType) else BIT
        return self._put(Instruction(truth, f"{test} {kind.text} {x.ref}, {y.ref}"))

    def icmp_signed(self, sign: str, x: Any, y: Any) -> Value:
        """A comparison of signed integers: `==`, `!=`, `<`, `<=`, `>` or `>=`."""
        test = _TESTS[sign]
        return self._compared(f"icmp {test if sign in ('==', '!=') else 's' + test}", x, y)

    def icmp_unsigned(self, sign: str, x: Any, y: Any) -> Value:
        """The same of integers without a sign, and of pointers."""
        test = _TESTS[sign]
        return self._compared(f"icmp {test if sign in ('==', '!=') else 'u' + test}", x, y)

    def fcmp_ordered(self, sign: str, x: Any, y: Any) -> Value:
        """A comparison of floats that fails where one is NaN; `ord`: whether none is."""
        return self._compared(f"fcmp {'o' + _TESTS[sign] if sign != 'ord' else sign}", x, y)

    def fcmp_unordered(self, sign: str, x: Any, y: Any) -> Value:
        """A comparison of floats that holds where one is NaN; `uno`: whether one is."""
        return self._compared(f"fcmp {'u' + _TESTS[sign] if sign != 'uno' else sign}", x, y)

    def select(self, condition: Any, x: Any, y: Any) -> Value:
        """`x if condition else y`."""
        text = f"select {condition.typed}, {x.typed}, {y.typed}"
        return self._put(Instruction(x.type, text, "select", (condition, x, y)))

    # -- other types

    trunc, zext, sext = _cast("trunc"), _cast("zext", "zext"), _cast("sext", "sext")
    fptrunc, fpext = _cast("fptrunc", "fptrunc"), _cast("fpext", "fpext")
    sitofp, uitofp = _cast("sitofp", "sitofp"), _cast("uitofp", "uitofp")
    fptosi, fptoui = _cast("fptosi"), _cast("fptoui")
    inttoptr, ptrtoint, _bits = _cast("inttoptr"), _cast("ptrtoint"), _cast("bitcast")

    def bitcast(self, x: Any, kind: Type) -> Any:
        """The same bits as another type; of a pointer without an instruction."""
        if kind.text == "ptr":
            return Value(kind, x.ref)
        return self._bits(x, kind)

    def freeze(self, x: Any) -> Value:
        """The same where that is a number, else any number."""
        return self._put(Instruction(x.type, f"freeze {x.typed}"))

    # -- parts

    def extract_element(self, vector: Any, index: Any) -> Value:
        """One number of a vector."""
        text = f"extractelement {vector.typed}, {index.typed}"
        return self._put(Instruction(vector.type.element, text))

    def insert_element(self, vector: Any, value: Any, index: Any) -> Value:
        """A vector with one number replaced."""
        text = f"insertelement {vector.typed}, {value.typed}, {index.typed}"
        return self._put(Instruction(vector.type, text))

    def shuffle_vector(self, x: Any, y: Any, numbers: Any) -> Value:
        """A vector of those with these numbers, of two vectors behind each other."""
        text = f"shufflevector {x.typed}, {y.typed}, {numbers.typed}"
        return self._put(Instruction(VectorType(x.type.element, numbers.type.count), text))

    def extract_value(self, x: Any, place: int) -> Value:
        """One part of a struct."""
        return self._put(Instruction(x.type.parts[place], f"extractvalue {x.typed}, {place}"))

    def insert_value(self, x: Any, value: Any, place: int) -> Value:
        """A struct with one part replaced."""
        return self._put(Instruction(x.type, f"insertvalue {x.typed}, {value.typed}, {place}"))

    # -- memory

    def alloca(self, kind: Type, size: Any = None) -> AllocaInstr:
        """Room for a value, or for `size` of them, until the function is left."""
        count = Constant(IntType(32), size) if isinstance(size, int) else size
        text = f"alloca {kind.text}" if count is None else f"alloca {kind.text}, {count.typed}"
        made = AllocaInstr(kind.as_pointer(), text)
        made.align = None
        placed: AllocaInstr = self._put(made)
        return placed

    def gep(
        self, pointer: Any, indices: Sequence[Any], inbounds: bool = False,
        source_etype: Type | None = None,
    ) -> Value:
        """The address of an item: of `pointer[indices[0]][indices[1]]...`."""
        kind: Any = source_etype or pointer.type.pointee
        places = ", ".join(each.typed for each in indices)
        words = "getelementptr inbounds" if inbounds else "getelementptr"
        text = f"{words} {kind.text}, ptr {pointer.ref}, {places}"
        for _ in indices[1:]:
            kind = kind.element
        return self._put(Instruction(kind.as_pointer(), text))

    def load(
        self, pointer: Any, align: int | None = None, typ: Type | None = None,
        volatile: bool = False,
    ) -> LoadInstr:  # fmt: skip
        """What is at an address, of the type that it points at or of `typ`; LLVM does not find out
        what that is where the load is `volatile`."""
        kind = typ or pointer.type.pointee
        end = "" if align is None else f", align {align}"
        word = "load volatile" if volatile else "load"
        made: LoadInstr = self._put(LoadInstr(kind, f"{word} {kind.text}, ptr {pointer.ref}{end}"))
        return made

    def store(self, value: Any, pointer: Any, align: int | None = None) -> StoreInstr:
        """Write a value to an address."""
        end = "" if align is None else f", align {align}"
        text = f"store {value.typed}, ptr {pointer.ref}{end}"
        made: StoreInstr = self._put(StoreInstr(VOID, text))
        return made

    def load_atomic(self, pointer: Any, ordering: str, align: int, typ: Type) -> LoadInstr:
        """What other threads may write."""
        text = f"load atomic {typ.text}, ptr {pointer.ref} {ordering}, align {align}"
        made: LoadInstr = self._put(LoadInstr(typ, text))
        return made

    def store_atomic(self, value: Any, pointer: Any, ordering: str, align: int) -> StoreInstr:
        """Write what other threads may read."""
        text = f"store atomic {value.typed}, ptr {pointer.ref} {ordering}, align {align}"
        made: StoreInstr = self._put(StoreInstr(VOID, text))
        return made

    def atomic_rmw(self, operation: str, pointer: Any, value: Any, ordering: str) -> Value:
        """Change what is at an address at once; what was there before."""
        text = f"atomicrmw {operation} ptr {pointer.ref}, {value.typed} {ordering}"
        return self._put(Instruction(value.type, text))

    def cmpxchg(self, pointer: Any, old: Any, new: Any, ordering: str, failing: str) -> Value:
        """Write `new` where `old` is; what was there, and whether it was `old`."""
        text = f"cmpxchg ptr {pointer.ref}, {old.typed}, {new.typed} {ordering} {failing}"
        return self._put(Instruction(LiteralStructType([old.type, BIT]), text))

    # -- control

    def call(
        self, callee: Any, arguments: Sequence[Any], cconv: str = "",
        fastmath: Sequence[str] = (),
    ) -> CallInstr:
        """Call a function, or what a pointer to a function points at."""
        kind = callee.type.pointee
        words = " ".join(["call", *fastmath, *([cconv] if cconv else ()), kind.returns.text])
        given = ", ".join([each.typed for each in arguments])
        made = CallInstr(kind.returns, f"{words} {callee.ref}({given})")
        made.callee = callee
        placed: CallInstr = self._put(made)
        return placed

    def phi(self, kind: Type) -> PhiInstr:
        """A value that depends on the block before."""
        made = PhiInstr(kind, "")
        made.incoming = []
        placed: PhiInstr = self._put(made)
        return placed

    def _end(self, made: Any) -> Any:
        self.block.terminator = self._put(made)
        return made

    def branch(self, block: Block) -> Terminator:
        """Go to a block."""
        made: Terminator = self._end(Terminator(VOID, f"br label {block.ref}"))
        return made

    def cbranch(
        self, condition: Any, yes: Block, no: Block, weights: Sequence[int] | None = None
    ) -> Terminator:
        """Go to one of two blocks; `weights`: how often to each."""
        text = f"br i1 {condition.ref}, label {yes.ref}, label {no.ref}"
        made: Terminator = self._end(Terminator(VOID, text))
        if weights is not None:
            numbers = [Constant(IntType(32), weight) for weight in weights]
            made.set_metadata("prof", self.module.add_metadata(["branch_weights", *numbers]))
        return made

    def switch(self, value: Any, otherwise: Block) -> SwitchInstr:
        """Go to the block of a number."""
        made = SwitchInstr(VOID, f"switch {value.typed}, label {otherwise.ref}")
        made.cases, made.kind = [], value.type
        ended: SwitchInstr = self._end(made)
        return ended

    def ret(self, value: Any) -> Ret:
        """Leave the function with a value."""
        made: Ret = self._end(Ret(VOID, f"ret {value.typed}"))
        return made

    def ret_void(self) -> Ret:
        """Leave the function."""
        made: Ret = self._end(Ret(VOID, "ret void"))
        return made

    def unreachable(self) -> Terminator:
        """Nothing ever comes here."""
        made: Terminator = self._end(Terminator(VOID, "unreachable"))
        return made

    @contextmanager
    def if_then(self, condition: Any, likely: bool | None = None) -> Iterator[None]:
        """A block that runs where the condition holds; it may leave the function."""
        inside, after = self.append_basic_block("if"), self.append_basic_block("endif")
        weights = None if likely is None else _LIKELY if likely else _LIKELY[::-1]
        self.cbranch(condition, inside, after, weights)
        self.position_at_end(inside)
        yield
        self._go_on(after)
        self.position_at_end(after)

    @contextmanager
    def if_else(self, condition: Any) -> Iterator[tuple[Any, Any]]:
        """Two blocks, of which one runs: each is written within its own `with`."""
        yes, no = self.append_basic_block("if"), self.append_basic_block("else")
        after = self.append_basic_block("endif")
        self.cbranch(condition, yes, no)
        yield self._side(yes, after), self._side(no, after)
        self.position_at_end(after)

    @contextmanager
    def _side(self, block: Block, after: Block) -> Iterator[None]:
        self.position_at_end(block)
        yield
        self._go_on(after)

    def _go_on(self, block: Block) -> None:
        if not self.block.is_terminated:
            self.branch(block)
