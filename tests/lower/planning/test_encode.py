"""A plan becomes words only if it is well formed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrelay.errors import InvariantError
from pyrelay.lower.planning.boundary import ScalarParameter, ScalarResult
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Binary,
    Call,
    Checked,
    Data,
    Immediate,
    Jump,
    Kernel,
    Label,
    Launch,
    LoopNext,
    Plan,
    PlanFunction,
    Raise,
    Return,
    Site,
    Slot,
    Unary,
    immediate,
)
from pyrelay.lower.planning.opcodes import GROUP, OPCODES


def _plan(*code: Any, **fields: Any) -> Plan:
    return Plan((PlanFunction("main", 0, 3, code),), **fields)


def test_values_are_slots_constants_and_addresses() -> None:
    launch = Launch(0, (Slot(2), AddressOf(1), immediate(7), immediate(7)), immediate(5), Slot(0),
                    first_site=3)  # fmt: skip
    encoded = encode(_plan(launch, Return(()), kernels=(Kernel("k", ""),)))
    words = [OPCODES.index("launch"), 0, -2, 0, 3, 1, 8 * 2, 8 * 1 + 1, -8, -8]
    assert encoded.code.tolist() == [*words, OPCODES.index("return"), 0]
    assert encoded.constants.tolist() == [5, 7]
    assert encoded.kernel_words == ((1, 0),)
    assert encoded.scratch_words == 5
    assert encoded.parallel


def test_jumps_and_calls_become_places_in_the_code() -> None:
    main = PlanFunction("main", 0, 3, (Label("a"), Jump("b"), Label("b"), Call(1, (), (2,)),
                                       Jump("a")))  # fmt: skip
    callee = PlanFunction("callee", 0, 7, (Return((immediate(1),)),))
    code = encode(Plan((main, callee))).code.tolist()
    assert code[:2] == [OPCODES.index("jump"), 2]
    assert code[2:12] == [OPCODES.index("call"), 14, 3, 7, 0, 1, 2, 2, 2, 2]
    assert code[12:14] == [OPCODES.index("jump"), 0]
    assert code[14] == OPCODES.index("return")


def test_a_group_is_filled_by_its_last_word() -> None:
    callee = PlanFunction("callee", 5, 5, (Return((Slot(4), Slot(3))),))
    five = Call(1, tuple(map(immediate, range(5))), (1, 0))
    code = encode(Plan((PlanFunction("main", 0, 2, (five, Return(()))), callee))).code.tolist()
    assert GROUP == 4
    assert code[2:5] == [2, 8, 2]  # room for what fills the second group, too
    assert code[5:13] == [-1, -2, -3, -4, -5, -5, -5, -5]
    assert code[13:18] == [1, 1, 0, 0, 0]
    assert code[-6:] == [OPCODES.index("return"), 1, 4, 3, 3, 3]


def test_arrays_are_constants_that_the_loader_fills_in() -> None:
    plan = _plan(Unary("move", 0, Data(0)), Unary("move", 1, immediate(0)), Return(()),
                 arrays=(np.zeros(3),))  # fmt: skip
    encoded = encode(plan)
    assert encoded.data_words == ((1, 0),)
    assert encoded.constants.size == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([Unary("move", 3, Slot(0)), Return(())], "no slot 3"),
        ([Unary("move", 0, Slot(-1)), Return(())], "no slot -1"),
        ([Unary("hop", 0, Slot(0)), Return(())], "no operation 'hop'"),
        ([Unary("move", 0, Data(0)), Return(())], "no array 0"),
        ([Unary("move", 0, AddressOf(0)), Return(())], "launch only"),  # type: ignore[arg-type]
        ([Jump("nowhere")], "no label 'nowhere'"),
        ([Label("a"), Label("a"), Return(())], "stands twice"),
        ([Unary("move", 0, Slot(1))], "runs past its end"),
        ([], "runs past its end"),
        ([Launch(0, (), Slot(0), Slot(0)), Return(())], "no kernel 0"),
        ([Call(1, (), ()), Return(())], "no function 1"),
        ([Call(0, (Slot(0),), ()), Return(())], "takes 0 words, not 1"),
        ([Checked("add.i64", 0, Slot(0), Slot(0), 0), Return(())], "no site 0"),
        ([Raise(0, (Slot(0),) * 16)], "at most 15 values"),
    ],
)
def test_what_is_not_well_formed_is_refused(code: list[Any], message: str) -> None:
    with pytest.raises(InvariantError, match=message):
        encode(_plan(*code))


def test_the_entry_must_take_what_its_parameters_fill() -> None:
    with pytest.raises(InvariantError, match=r"takes 0 words; its parameters fill 2"):
        encode(_plan(Return(()), parameters=(ScalarParameter("complex"),)))


def test_loops_count_up_or_down_by_the_sign_of_their_step() -> None:
    code = encode(_plan(Label("a"), LoopNext(0, 2, Slot(1), "a"), LoopNext(0, -1, Slot(1), "a"),
                        Return(()))).code  # fmt: skip
    assert OPCODES[code[0]] == "loop_up"
    assert OPCODES[code[5]] == "loop_down"


def test_results_reserve_room_for_their_words() -> None:
    results = (ScalarResult("complex"), ScalarResult("int"))
    plan = _plan(Return((Slot(0), Slot(1), Slot(2))), results=results,
                 sites=(Site("ValueError", ()),))  # fmt: skip
    assert encode(plan).scratch_words == GROUP


@pytest.mark.parametrize(
    ("value", "dtype", "word"),
    [
        (-1, "int64", -1),
        (2**64 - 1, "uint64", -1),
        (True, "bool", 1),
        (1.0, "float64", 0x3FF0000000000000),
        (1.0, "float32", 0x3F800000),
        (1.0 - 2j, "complex64", 0xC0000000_3F800000 - 2**64),
    ],
)
def test_immediates_hold_the_bits_of_their_dtype(value: Any, dtype: str, word: int) -> None:
    assert immediate(value, dtype) == Immediate(word)


def test_numbers_that_fit_no_word_are_refused() -> None:
    with pytest.raises(OverflowError):
        immediate(2**64)
    with pytest.raises(TypeError):
        immediate(1.5, "int64")
    assert Binary("add.i64", 0, Slot(0), immediate(-(2**63))).b == Immediate(-(2**63))
