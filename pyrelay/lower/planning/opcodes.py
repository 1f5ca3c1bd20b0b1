"""The operations of plans by name, and their numbers in the table that the executor runs.

In: nothing. Out: names of scalar operations, in instructions and in the table; `OPCODES`, all that
the table may have.
"""

from __future__ import annotations

UNARY = (
    "move", "not",
    "neg.i64", "abs.i64", "invert.i64",
    "neg.f64", "abs.f64", "sqrt.f64", "isnan.f64", "neg.f32", "abs.f32", "sqrt.f32",
    "i64_to_f64", "u64_to_f64", "f64_to_i64", "i64_to_f32", "f64_to_f32", "f32_to_f64",
    "f64_to_bool", "i64_to_bool",
    "wrap.i8", "wrap.i16", "wrap.i32", "wrap.u8", "wrap.u16", "wrap.u32",
)  # fmt: skip
"""`f64_to_i64` truncates and saturates, NaN gives 0; `wrap.*` cuts an int64 to a narrower type."""

_COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")

BINARY = (
    *(f"{name}.i64" for name in ("add", "sub", "mul", "floordiv", "mod", "min", "max")),
    *(f"{name}.i64" for name in ("and", "or", "xor", "shl", "shr")),
    *(f"{name}.i64" for name in _COMPARISONS),
    "lt.u64", "le.u64",
    *(f"{name}.f64" for name in ("add", "sub", "mul", "div", *_COMPARISONS)),
    *(f"{name}.f32" for name in ("add", "sub", "mul", "div", *_COMPARISONS)),
)  # fmt: skip
"""int64 wraps; `floordiv` and `mod` round down as Python does and give 0 where the divisor is 0;
shifts by more than 63 bits give what an unbounded shift would, modulo 2**64; f64 and f32 are IEEE.
"""

CHECKED = (
    "add.i64", "sub.i64", "mul.i64", "pow.i64", "shl.i64", "shr.i64",
    "floordiv.i64", "mod.i64", "div.f64", "floordiv.f64", "mod.f64",
    "f64_to_i64", "index",
)  # fmt: skip
"""Python's own arithmetic; each raises its site, with both operands as values, where Python raises
or where the exact integer does not fit int64. `index` (an index, an extent) gives the index from
the front. `f64_to_i64` ignores its second operand. `pow.i64` raises on a negative exponent."""

MEMORY = ("i8", "i16", "i32", "i64", "u8", "u16", "u32")
"""Widths that `Load` and `Store` move: floats of 16 bits as u16, float32 as u32, float64 as i64,
bool as u8."""

GROUP = 4
"""Words that a launch, call or return hands over at a time."""

CODE_BITS = 32
"""Of the word of a `CodeOf` those that say where the function begins; the rest counts its slots."""

LINK_WORDS = 2
"""Words before a frame: where to go on in the caller, and how far up the caller's frame is."""

CONTROL = (
    "launch", "launch_serial", "launch_evenly", "select", "jump", "jump_if", "jump_unless",
    "loop_up", "loop_down", "poll", "alloc", "free", "copy", "zero", "call", "return",
    "alloc_passing", "parts", "part_end", "launch_part", "launch_serial_part",
    "launch_evenly_part",
    "tape_new", "tape_push", "tape_pop", "tape_push_bytes", "tape_pop_bytes", "tape_free",
    "raise", "guard", "host_call", "ufunc_call", "stamp",
    *(f"store.{kind}" for kind in MEMORY),
)  # fmt: skip
"""Operations that are not a result of one or two values, each with words of its own."""

OFTEN = (
    "move", "not", "load.i64", *(f"checked.{name}" for name in CHECKED[:3]), "checked.index",
    *(f"{name}.i64" for name in ("add", "sub", "mul", "floordiv", "mod", "min", "max")),
    *(f"{name}.f64" for name in ("add", "sub", "mul", "div")),
    *(f"{name}.{kind}" for name in _COMPARISONS for kind in ("i64", "f64")),
)  # fmt: skip
"""Operations for which the executor reads its values where it computes: 2 ns less than others."""

OF_ONE = tuple(name for name in UNARY if name not in OFTEN)
OF_TWO = tuple(
    name for name in (
        *(f"load.{kind}" for kind in MEMORY), *BINARY, *(f"checked.{name}" for name in CHECKED),
    ) if name not in OFTEN
)  # fmt: skip
"""The other operations of one value and of two: words of all are the slot of the result and them.
"""

OPCODES = (*CONTROL, *OFTEN, *OF_ONE, *OF_TWO)
"""Every operation of the executor; its number is its place here."""
