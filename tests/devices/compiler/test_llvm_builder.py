"""Instructions for LLVM: each means what llvmlite's of the same name does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite import ir as theirs

from pyrelay.devices.compiler import llvm_ir as ours
from pyrelay.devices.compiler.codegen import kernel_machine
from pyrelay.devices.compiler.llvm_builder import IRBuilder

Writer = Callable[[Any, Any, list[Any]], Any]
_ARITHMETIC = (
    "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and_", "or_", "xor", "shl", "lshr",
    "ashr", "fadd", "fsub", "fmul", "fdiv", "frem",
)  # fmt: skip
SIGNS = ("==", "!=", "<", "<=", ">", ">=")


def _assembly(text: str) -> str:
    module = llvm.parse_assembly(text)
    module.verify()
    code: str = kernel_machine().emit_assembly(module)
    return re.sub(r"#.*", "", code)  # names of blocks are comments


def _written(language: Any, builder: Any, module: Any, kinds: str, write: Writer) -> str:
    known = {
        "i": language.IntType(64), "h": language.IntType(32), "b": language.IntType(1),
        "d": language.DoubleType(), "f": language.FloatType(),
        "v": language.VectorType(language.FloatType(), 4),
        "p": language.IntType(64).as_pointer(),
    }  # fmt: skip
    returns, *parameters = (known[letter] for letter in kinds)
    f = language.Function(module, language.FunctionType(returns, parameters), "f")
    b = builder(f.append_basic_block("entry"))
    made = write(language, b, list(f.args))
    if made is not None:
        b.ret(made)
    return str(module)


def _same(kinds: str, write: Writer) -> None:
    mine = _written(ours, IRBuilder, ours.Module("", ""), kinds, write)
    other = theirs.Module(context=theirs.Context())
    assert _assembly(mine) == _assembly(_written(theirs, theirs.IRBuilder, other, kinds, write))


@pytest.mark.parametrize("name", _ARITHMETIC)
def test_arithmetic(name: str) -> None:
    kinds = "ddd" if name.startswith("f") else "iii"
    _same(kinds, lambda _, b, args: getattr(b, name)(*args))


def test_flags() -> None:
    _same("ddd", lambda _, b, args: b.fadd(b.fadd(*args, flags=("reassoc",)), args[0]))
    _same("iii", lambda _, b, args: b.add(*args, flags=("nsw",)))


@pytest.mark.parametrize("name", ["neg", "not_", "ctpop"])
def test_one_integer(name: str) -> None:
    _same("ii", lambda _, b, args: getattr(b, name)(*args))


def test_others_of_one_number() -> None:
    _same("dd", lambda _, b, args: b.fneg(*args))
    _same("ii", lambda ir, b, args: b.ctlz(*args, ir.Constant(ir.IntType(1), 0)))


def test_integers_in_vectors() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        whole = b.fptosi(args[0], _i4(ir))
        return b.bitcast(b.not_(b.neg(whole)), args[0].type)

    _same("vv", write)


def _i4(ir: Any) -> Any:
    return ir.VectorType(ir.IntType(32), 4)


@pytest.mark.parametrize("sign", SIGNS)
def test_comparisons(sign: str) -> None:
    _same("bii", lambda _, b, args: b.icmp_signed(sign, *args))
    _same("bii", lambda _, b, args: b.icmp_unsigned(sign, *args))
    _same("bdd", lambda _, b, args: b.fcmp_ordered(sign, *args))
    _same("bdd", lambda _, b, args: b.fcmp_unordered(sign, *args))
    _same("vvv", lambda _, b, args: b.select(b.fcmp_ordered(sign, *args), *args))


def test_whether_one_is_nan() -> None:
    _same("bdd", lambda _, b, args: b.fcmp_ordered("ord", *args))
    _same("bdd", lambda _, b, args: b.fcmp_unordered("uno", *args))


@pytest.mark.parametrize("name", ["sadd", "uadd", "ssub", "usub", "smul", "umul"])
def test_results_that_may_not_fit(name: str) -> None:
    def write(_: Any, b: Any, args: list[Any]) -> Any:
        both = getattr(b, f"{name}_with_overflow")(*args)
        return b.select(b.extract_value(both, 1), args[0], b.extract_value(both, 0))

    _same("iii", write)


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        ("hi", "trunc"), ("ih", "zext"), ("ih", "sext"), ("fd", "fptrunc"), ("df", "fpext"),
        ("di", "sitofp"), ("di", "uitofp"), ("id", "fptosi"), ("id", "fptoui"),
        ("id", "bitcast"), ("ip", "ptrtoint"), ("pi", "inttoptr"),
    ],
)  # fmt: skip
def test_other_types(kinds: str, name: str) -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        wanted = b.function.kind.returns if ir is ours else b.function.ftype.return_type
        return getattr(b, name)(args[0], wanted)

    _same(kinds, write)


def test_a_value_of_the_type_is_left_alone() -> None:
    f = ours.Function(ours.Module("", ""), ours.FunctionType(ours.VOID, [ours.IntType(64)]), "f")
    b = IRBuilder(f.append_basic_block("entry"))
    assert b.trunc(f.args[0], ours.IntType(64)) is f.args[0]
    pointer = b.inttoptr(f.args[0], ours.IntType(8).as_pointer())
    before = len(b.block.instructions)
    assert b.bitcast(pointer, ours.FloatType().as_pointer()).type.pointee is ours.FloatType()
    assert len(b.block.instructions) == before


def test_parts_of_vectors_and_structs() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        numbers = ir.Constant(_i4(ir), [3, 4, 1, 6])
        mixed = b.shuffle_vector(*args, numbers)
        item = b.extract_element(mixed, ir.Constant(ir.IntType(32), 2))
        pair = ir.Constant(ir.LiteralStructType([ir.FloatType()] * 2), ir.Undefined)
        pair = b.insert_value(b.insert_value(pair, item, 0), item, 1)
        return b.insert_element(mixed, b.extract_value(pair, 1), ir.Constant(ir.IntType(32), 0))

    _same("vvv", write)


def test_memory() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        pointer, index = args
        word = index.type
        room = b.alloca(word, size=ir.Constant(word, 4))
        room.align = 64
        b.store(index, b.gep(room, [index], source_etype=word))
        narrow = b.bitcast(pointer, ir.IntType(16).as_pointer())
        short = b.load(b.gep(narrow, [index], inbounds=True, source_etype=ir.IntType(16)),
                       typ=ir.IntType(16), align=1)  # fmt: skip
        b.store(short, narrow, align=1)
        seen = b.load_atomic(pointer, "seq_cst", 8, typ=word)
        b.store_atomic(seen, pointer, "seq_cst", 8)
        old = b.atomic_rmw("add", pointer, index, "seq_cst")
        both = b.cmpxchg(pointer, old, index, "seq_cst", "seq_cst")
        found = b.select(b.extract_value(both, 1), b.extract_value(both, 0), b.load(room, typ=word))
        return b.add(found, b.zext(short, word))

    _same("ipi", write)


def test_tables() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        kind = ir.ArrayType(ir.DoubleType(), 3)
        table = ir.GlobalVariable(b.module, kind, "table")
        table.initializer = ir.Constant(kind, [0.5, -0.0, 1e-300])
        table.global_constant, table.linkage = True, "internal"
        return b.load(b.gep(table, [ir.Constant(args[0].type, 0), args[0]], inbounds=True))

    _same("di", write)


def test_calls() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        x, y = args
        kind = ir.FunctionType(x.type, [x.type, x.type])
        least = b.module.declare_intrinsic("llvm.minnum", [x.type], kind)
        size = b.module.declare_intrinsic("llvm.fabs", [x.type])
        other = ir.Function(b.module, kind, "other")
        other.calling_convention = "preserve_mostcc"
        found = b.call(least, [b.call(size, [x]), y], fastmath=("nsz",))
        found = b.call(other, [found, x], cconv="preserve_mostcc")
        word = ir.IntType(64)
        return b.call(b.inttoptr(b.bitcast(y, word), kind.as_pointer()), [found, y])

    _same("ddd", write)


def test_loops_and_cases() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> None:
        number, stop = args
        word = number.type
        head, first = b.append_basic_block("head"), b.append_basic_block("first")
        second, done = b.append_basic_block("second"), b.append_basic_block("done")
        nowhere, before = b.append_basic_block("nowhere"), b.block
        with b.goto_entry_block():
            place = b.alloca(word)
        b.branch(head)
        b.position_at_end(head)
        count = b.phi(word)
        switch = b.switch(b.and_(count, ir.Constant(word, 3)), nowhere)
        switch.add_case(0, first)
        switch.add_case(1, second)
        b.position_at_end(nowhere)
        b.unreachable()
        for block in (first, second):
            b.position_at_end(block)
            following = b.add(count, stop if block is first else number)
            b.store(following, place)
            count.add_incoming(following, block)
            b.cbranch(b.icmp_signed("<", following, stop), head, done)
        count.add_incoming(number, before)
        b.position_at_end(done)
        b.ret(b.load(place, typ=word))

    _same("iii", write)


def test_branches() -> None:
    def write(ir: Any, b: Any, args: list[Any]) -> Any:
        x, y = args
        place = b.alloca(x.type)
        with b.if_else(b.icmp_signed("<", x, y)) as (yes, no):
            with yes:
                b.store(x, place)
            with no, b.if_then(b.icmp_signed("==", x, ir.Constant(x.type, 7)), likely=False):
                b.ret(y)
        return b.load(place, typ=x.type)

    _same("iii", write)


def test_where_instructions_go() -> None:
    """At the start of a block, before its end, and back at the end of the one before."""
    word = ours.IntType(64)
    f = ours.Function(ours.Module("", ""), ours.FunctionType(word, [word]), "f")
    entry, later = f.append_basic_block("entry"), f.append_basic_block("later")
    b = IRBuilder(entry)
    total = b.add(f.args[0], word(1))
    b.branch(later)
    b.position_at_end(later)
    with b.goto_entry_block():
        product = b.mul(total, word(3))
        b.position_at_start(entry)
        place = b.alloca(word)
    b.ret(product)
    assert entry.instructions == [place, total, product, entry.terminator]
    assert later.instructions == [later.terminator]
    llvm.parse_assembly(str(f)).verify()
