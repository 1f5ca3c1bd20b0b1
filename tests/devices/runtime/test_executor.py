"""The executor runs every instruction as its record says."""

from __future__ import annotations

import math
import operator
import signal
import struct
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kernel_texts import ENDLESS

from pyrelay import config
from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.runtime import runtime_parts
from pyrelay.devices.runtime.entry import Executable
from pyrelay.lower.planning.boundary import ScalarParameter, ScalarResult
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import (
    Alloc,
    Binary,
    Call,
    Checked,
    Copy,
    Free,
    HostCall,
    Jump,
    JumpIf,
    JumpUnless,
    Kernel,
    Label,
    Launch,
    Load,
    LoopNext,
    Plan,
    PlanFunction,
    Poll,
    Raise,
    Return,
    Select,
    Site,
    Slot,
    Store,
    TapeFree,
    TapeNew,
    TapePop,
    TapePopBytes,
    TapePush,
    TapePushBytes,
    Unary,
    Zero,
    immediate,
)

WORDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 70)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.5, -2.0, 7.0, 1e300, 2.0**63, -(2.0**63)])


def _operation(instruction: Any, kinds: str, result: str) -> Any:
    """One instruction as a function of Python scalars."""
    takes = tuple(ScalarParameter(kind) for kind in kinds.split())
    code = (instruction, Return((Slot(2),)))
    plan = Plan(
        (PlanFunction("f", len(takes), 3, code),),
        sites=(Site("ArithmeticError", ("values ", 0, ", ", 1), ("int", "int")),),
        parameters=takes, results=(ScalarResult(result),), single=True,
    )  # fmt: skip
    return Executable(encode(plan)).call


def _binary(op: str, kind: str, result: str) -> Any:
    return _operation(Binary(op, 2, Slot(0), Slot(1)), f"{kind} {kind}", result)


def _checked(op: str, kind: str) -> Any:
    return _operation(Checked(op, 2, Slot(0), Slot(1), 0), f"{kind} {kind}", kind)


def _wrap(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


INTEGERS = {
    "add.i64": lambda a, b: _wrap(a + b),
    "sub.i64": lambda a, b: _wrap(a - b),
    "mul.i64": lambda a, b: _wrap(a * b),
    "floordiv.i64": lambda a, b: _wrap(a // b) if b else 0,
    "mod.i64": lambda a, b: a % b if b else 0,
    "min.i64": min,
    "max.i64": max,
    "and.i64": operator.and_,
    "or.i64": operator.or_,
    "xor.i64": operator.xor,
    "shl.i64": lambda a, b: _wrap(a << b) if 0 <= b < 64 else 0,
    "shr.i64": lambda a, b: a >> b if 0 <= b < 64 else (-1 if a < 0 else 0),
    "lt.i64": operator.lt,
    "le.i64": operator.le,
    "eq.i64": operator.eq,
    "ne.i64": operator.ne,
    "gt.i64": operator.gt,
    "ge.i64": operator.ge,
    "lt.u64": lambda a, b: a % 2**64 < b % 2**64,
    "le.u64": lambda a, b: a % 2**64 <= b % 2**64,
}
INTEGER_CALLS = {op: _binary(op, "int", "int") for op in INTEGERS}

FLOAT_OPERATIONS = {
    "add.f64": operator.add,
    "sub.f64": operator.sub,
    "mul.f64": operator.mul,
    "lt.f64": operator.lt,
    "le.f64": operator.le,
    "eq.f64": operator.eq,
    "ne.f64": operator.ne,
    "gt.f64": operator.gt,
    "ge.f64": operator.ge,
}
FLOAT_CALLS = {
    op: _binary(op, "float", "float" if op[:3] in ("add", "sub", "mul") else "bool")
    for op in FLOAT_OPERATIONS
}
CHECKED_INTEGERS = {
    "add.i64": operator.add,
    "sub.i64": operator.sub,
    "mul.i64": operator.mul,
    "floordiv.i64": operator.floordiv,
    "mod.i64": operator.mod,
    "shr.i64": operator.rshift,
}
CHECKED_CALLS = {op: _checked(op, "int") for op in (*CHECKED_INTEGERS, "shl.i64", "pow.i64")}
CHECKED_FLOATS = {
    "div.f64": operator.truediv,
    "floordiv.f64": operator.floordiv,
    "mod.f64": operator.mod,
}
CHECKED_FLOAT_CALLS = {op: _checked(op, "float") for op in CHECKED_FLOATS}


def _same(a: float, b: float) -> bool:
    return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))


@given(WORDS, WORDS)
@example(-(2**63), -1)
@example(7, 0)
def test_integer_operations_agree_with_python_modulo_two_to_the_64(a: int, b: int) -> None:
    for op, meaning in INTEGERS.items():
        assert INTEGER_CALLS[op](a, b) == meaning(a, b), op


@given(FLOATS, FLOATS)
def test_float_operations_and_comparisons_are_ieee(a: float, b: float) -> None:
    for op, meaning in FLOAT_OPERATIONS.items():
        assert _same(FLOAT_CALLS[op](a, b), meaning(a, b)), op


@given(WORDS, WORDS)
@example(-(2**63), -1)
@example(-(2**63), 0)
def test_checked_integers_are_exact_or_raise(a: int, b: int) -> None:
    for op, meaning in CHECKED_INTEGERS.items():
        try:
            wanted = meaning(a, b)
        except (ZeroDivisionError, ValueError):
            wanted = None
        if wanted is None or not -(2**63) <= wanted < 2**63:
            with pytest.raises(ArithmeticError, match=f"^values {a}, {b}$"):
                CHECKED_CALLS[op](a, b)
        else:
            assert CHECKED_CALLS[op](a, b) == wanted, op


@given(st.integers(-20, 20) | WORDS, st.integers(-2, 70))
@example(2, 62)
@example(-2, 63)
@example(2, 63)
@example(0, 0)
def test_checked_powers_and_shifts_are_exact_or_raise(a: int, b: int) -> None:
    for op, meaning in (("pow.i64", operator.pow), ("shl.i64", operator.lshift)):
        if b < 0 or not -(2**63) <= meaning(a, b) < 2**63:
            with pytest.raises(ArithmeticError):
                CHECKED_CALLS[op](a, b)
        else:
            assert CHECKED_CALLS[op](a, b) == meaning(a, b), op


@given(FLOATS, FLOATS)
@example(1.0, -0.1)
@example(-1e-300, 3.0)
@example(5.0, math.inf)
def test_checked_floats_divide_as_python_does(a: float, b: float) -> None:
    for op, meaning in CHECKED_FLOATS.items():
        if b == 0:
            with pytest.raises(ArithmeticError):
                CHECKED_FLOAT_CALLS[op](a, b)
        else:
            assert _same(CHECKED_FLOAT_CALLS[op](a, b), meaning(a, b)), (op, a, b)


@given(st.floats(width=32), st.floats(width=32))
def test_float32_arithmetic_rounds_as_numpy_does(a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        for op, call in _SINGLES.items():
            wanted = getattr(np, _NUMPY_NAMES[op])(np.float32(a), np.float32(b))
            assert _same(float(call(np.float32(a), np.float32(b))), float(wanted)), op


_NUMPY_NAMES = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "le": "less_equal",
}
_SINGLES = {
    op: _binary(f"{op}.f32", "float32", "bool" if op == "le" else "float32") for op in _NUMPY_NAMES
}


@pytest.mark.parametrize(
    ("op", "kinds", "argument", "wanted"),
    [
        ("move", "int int", 5, 5),
        ("not", "int bool", 3, False),
        ("not", "int bool", 0, True),
        ("neg.i64", "int int", 4, -4),
        ("abs.i64", "int int", -4, 4),
        ("invert.i64", "int int", 4, -5),
        ("neg.f64", "float float", 0.0, -0.0),
        ("abs.f64", "float float", -2.5, 2.5),
        ("sqrt.f64", "float float", 2.0, math.sqrt(2.0)),
        ("isnan.f64", "float bool", math.nan, True),
        ("i64_to_f64", "int float", 2**53 + 1, float(2**53 + 1)),
        ("u64_to_f64", "int float", -1, float(2**64 - 1)),
        ("f64_to_i64", "float int", -2.9, -2),
        ("f64_to_i64", "float int", 1e300, 2**63 - 1),
        ("f64_to_i64", "float int", math.nan, 0),
        ("f64_to_f32", "float float32", 0.1, np.float32(0.1)),
        ("f32_to_f64", "float32 float", np.float32(0.1), float(np.float32(0.1))),
        ("neg.f32", "float32 float32", np.float32(1.5), np.float32(-1.5)),
        ("abs.f32", "float32 float32", np.float32(-1.5), np.float32(1.5)),
        ("sqrt.f32", "float32 float32", np.float32(2), np.sqrt(np.float32(2))),
        ("i64_to_f32", "int float32", 3, np.float32(3)),
        ("f64_to_bool", "float bool", -0.0, False),
        ("f64_to_bool", "float bool", math.nan, True),
        ("i64_to_bool", "int bool", 256, True),
        ("wrap.i8", "int int", 200, -56),
        ("wrap.i16", "int int", 40000, 40000 - 65536),
        ("wrap.i32", "int int", 2**31, -(2**31)),
        ("wrap.u8", "int int", -1, 255),
        ("wrap.u16", "int int", -1, 65535),
        ("wrap.u32", "int int", -1, 2**32 - 1),
    ],
)
def test_unary_operations(op: str, kinds: str, argument: Any, wanted: Any) -> None:
    kind, result = kinds.split()
    answer = _operation(Unary(op, 2, Slot(0)), kind, result)(argument)
    assert answer == wanted
    assert math.copysign(1, answer) == math.copysign(1, wanted)


def test_checked_conversion_and_index_raise_where_python_does() -> None:
    convert = _operation(Checked("f64_to_i64", 2, Slot(0), Slot(0), 0), "float", "int")
    assert convert(-7.9) == -7
    for bad in (math.nan, math.inf, 2.0**63):
        with pytest.raises(ArithmeticError):
            convert(bad)
    index = _checked("index", "int")
    assert [index(i, 3) for i in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for bad in (-4, 3):
        with pytest.raises(ArithmeticError):
            index(bad, 3)


def test_select_takes_one_of_two(scalar_program: Any) -> None:
    choose = scalar_program([Select(3, Slot(0), Slot(1), Slot(2)), Return((Slot(3),))],
                            "bool int int", "int")  # fmt: skip
    assert choose(True, 1, 2) == 1
    assert choose(False, 1, 2) == 2


def test_loops_and_jumps_count_up_and_down(scalar_program: Any) -> None:
    up = [
        Unary("move", 1, immediate(0)), Unary("move", 2, immediate(0)),
        Binary("le.i64", 3, Slot(0), immediate(0)), JumpIf(Slot(3), "end"),
        Label("top"), Binary("add.i64", 2, Slot(2), Slot(1)), LoopNext(1, 1, Slot(0), "top"),
        Label("end"), Return((Slot(2),)),
    ]  # fmt: skip
    assert [scalar_program(up, "int", "int")(n) for n in (-1, 0, 1, 5)] == [0, 0, 0, 10]
    down = [
        Unary("move", 1, immediate(0)),
        Label("top"), Binary("add.i64", 1, Slot(1), Slot(0)),
        LoopNext(0, -3, immediate(0), "top"), Return((Slot(1),)),
    ]  # fmt: skip
    assert scalar_program(down, "int", "int")(10) == 10 + 7 + 4 + 1
    collatz = [
        Unary("move", 1, immediate(0)), Label("top"),
        Binary("ne.i64", 2, Slot(0), immediate(1)), JumpUnless(Slot(2), "end"), Poll(),
        Binary("add.i64", 1, Slot(1), immediate(1)),
        Binary("and.i64", 2, Slot(0), immediate(1)), JumpIf(Slot(2), "odd"),
        Binary("shr.i64", 0, Slot(0), immediate(1)), Jump("top"),
        Label("odd"), Binary("mul.i64", 0, Slot(0), immediate(3)),
        Binary("add.i64", 0, Slot(0), immediate(1)), Jump("top"),
        Label("end"), Return((Slot(1),)),
    ]  # fmt: skip
    assert scalar_program(collatz, "int", "int")(27) == 111


SUM_TO = PlanFunction("sum_to", 1, 4, (
    Poll(), JumpIf(Slot(0), "go"), Return((immediate(0),)), Label("go"),
    Binary("sub.i64", 1, Slot(0), immediate(1)), Call(1, (Slot(1),), (2,)),
    Binary("add.i64", 2, Slot(2), Slot(0)), Return((Slot(2),)),
))  # fmt: skip


def test_recursion_a_million_deep_runs_and_shallow_calls_stay_quick(scalar_program: Any) -> None:
    call = scalar_program([Call(1, (Slot(0),), (1,)), Return((Slot(1),))], "int", "int",
                          functions=[SUM_TO])  # fmt: skip
    assert call(1_000_000) == 500_000_500_000
    assert call(3) == 6


def test_endless_recursion_is_a_recursion_error_and_leaves_the_function_usable(
    monkeypatch: pytest.MonkeyPatch, scalar_program: Any
) -> None:
    monkeypatch.setattr("pyrelay.devices.runtime.entry.STACK_LIMIT", 1 << 22)
    call = scalar_program([Call(1, (Slot(0),), (1,)), Return((Slot(1),))], "int", "int",
                          functions=[SUM_TO])  # fmt: skip
    with pytest.raises(RecursionError):
        call(-1)
    assert call(10) == 55


def test_mutual_recursion_passes_several_words_both_ways(scalar_program: Any) -> None:
    def parity(other: int, answer: int) -> PlanFunction:
        return PlanFunction("parity", 2, 5, (
            JumpIf(Slot(0), "go"), Return((immediate(answer), Slot(1))), Label("go"),
            Binary("sub.i64", 0, Slot(0), immediate(1)),
            Binary("add.i64", 1, Slot(1), immediate(2)),
            Call(other, (Slot(0), Slot(1)), (3, 4)), Return((Slot(3), Slot(4))),
        ))  # fmt: skip

    call = scalar_program(
        [Call(1, (Slot(0), immediate(0)), (2, 1)), Return((Slot(2), Slot(1)))],
        "int", "bool int", functions=[parity(2, 1), parity(1, 0)],
    )  # fmt: skip
    assert call(10) == (True, 20)
    assert call(7) == (False, 14)


def test_tapes_give_back_words_and_bytes_in_reverse(scalar_program: Any) -> None:
    n = Slot(0)
    code = [
        TapeNew(1), Alloc(2, immediate(24)), Unary("move", 3, immediate(0)),
        Label("push"),
        Store("i64", Slot(2), immediate(0), Slot(3)), Store("i64", Slot(2), immediate(2), n),
        TapePushBytes(Slot(1), Slot(2), immediate(21)), TapePush(Slot(1), (Slot(3), n)),
        LoopNext(3, 1, n, "push"),
        Unary("move", 4, immediate(0)),
        Label("pop"),
        TapePop(Slot(1), (5, 6)), TapePopBytes(Slot(1), Slot(2), immediate(21)),
        Load("i64", 7, Slot(2), immediate(0)), Binary("mul.i64", 7, Slot(7), Slot(5)),
        Binary("mul.i64", 4, Slot(4), immediate(3)), Binary("add.i64", 4, Slot(4), Slot(7)),
        LoopNext(3, -1, immediate(0), "pop"),
        TapeFree(Slot(1)), Free(Slot(2)), Return((Slot(4), Slot(6))),
    ]  # fmt: skip
    wanted = 0
    for i in reversed(range(1000)):
        wanted = _wrap(wanted * 3 + i * i)
    assert scalar_program(code, "int", "int int")(1000) == (wanted, 1000)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [("i8", -3, -3), ("i16", -300, -300), ("i32", -70000, -70000), ("i64", 2**60, 2**60),
     ("u8", 255, 255), ("u16", 65535, 65535), ("u32", 2**32 - 1, 2**32 - 1), ("u8", 256, 0)],
)  # fmt: skip
def test_elements_are_stored_loaded_copied_and_zeroed(
    scalar_program: Any, kind: str, value: int, wanted: int
) -> None:
    size = int(kind[1:]) // 8
    code = [
        Alloc(1, immediate(64)), Alloc(2, immediate(64)), Zero(Slot(1), immediate(64)),
        Store(kind, Slot(1), immediate(2), Slot(0)),
        Copy(Slot(2), Slot(1), immediate(64)), Zero(Slot(1), immediate(64)),
        Load(kind, 3, Slot(2), immediate(2)), Load(kind, 4, Slot(2), immediate(1)),
        Load(kind, 5, Slot(1), immediate(2)), Load("u8", 6, Slot(2), immediate(3 * size)),
        Return((Slot(3), Slot(4), Slot(5), Slot(6))),
    ]  # fmt: skip
    assert scalar_program(code, "int", "int int int int")(value) == (wanted, 0, 0, 0)


def test_raise_gives_the_site_its_values_decoded(scalar_program: Any) -> None:
    site = Site("KeyError", ("got ", 1, ", ", 0, " and ", 2), ("float", "bool", "complex"))
    code = [Raise(0, (Slot(0), Slot(1), Slot(0), immediate(2.0, "float64")))]
    with pytest.raises(KeyError, match=r"got True, 1.5 and \(1.5\+2j\)"):
        scalar_program(code, "float bool", "int", sites=[site])(1.5, True)


def test_host_calls_take_and_give_words_and_their_exceptions_surface(scalar_program: Any) -> None:
    seen: list[list[int]] = []

    def host(words: Any) -> list[int]:
        seen.append(list(words))
        if words[0] == 13:
            raise LookupError("thirteen")
        return [words[0] + words[1], words[0] - words[1]]

    code = [HostCall(0, (Slot(0), Slot(1)), (2, 3)), HostCall(1, (), ()),
            Return((Slot(2), Slot(3)))]  # fmt: skip
    call = scalar_program(code, "int int", "int int",
                          hosts=[host, lambda words: seen.append([]) or []])  # fmt: skip
    assert call(5, 3) == (8, 2)
    assert seen == [[5, 3], []]
    with pytest.raises(LookupError, match="thirteen"):
        call(13, 1)
    assert call(1, 1) == (2, 0)


def test_a_host_call_may_call_the_same_program_again(scalar_program: Any) -> None:
    def host(words: Any) -> list[int]:
        return [call(words[0] - 1) + words[0]] if words[0] else [0]

    code = [HostCall(0, (Slot(0),), (1,)), Return((Slot(1),))]
    call = scalar_program(code, "int", "int", hosts=[host])
    assert call(50) == 50 * 51 // 2


def _interrupted(call: Any) -> None:
    """Call it; a signal's KeyboardInterrupt must come out soon."""

    def stop(signum: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        started = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.perf_counter() - started < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_stops_an_endless_loop_of_instructions(scalar_program: Any) -> None:
    _interrupted(scalar_program([Label("top"), Poll(), Jump("top")], "", ""))


@pytest.mark.parametrize("shared", [False, True])
def test_ctrl_c_stops_a_kernel_that_polls(executable: Any, shared: bool) -> None:
    launch = Launch(0, (), immediate(64), immediate(10**9 if shared else 0))
    main = PlanFunction("main", 0, 0, (launch, Return(())))
    with config.override(num_threads=3):
        _interrupted(executable(Plan((main,), (Kernel("endless", ENDLESS),))))


def test_the_run_time_is_not_long() -> None:
    """A machine's first call waits for it: LLVM takes 40 microseconds for each instruction."""
    module = ir.Module("", "")
    runtime_parts._write_main(module)
    lines = str(module).splitlines()
    assert sum(line.startswith("  ") for line in lines) < 6_050
