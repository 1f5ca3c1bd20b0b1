"""The arithmetic of plans on words in CUDA C++.

In: nothing. Out: for each op of `lower.planning.instructions` that has one, its spelling; and
kernels of one thread that compute a scalar of scalars which lie on the device, so that nobody waits
for them.
"""

from __future__ import annotations

from typing import Any

from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.lower.planning import instructions as ins

UNARY = {
    "move": "{a}", "not": "i64({a} == 0)", "neg.i64": "i64(0ull - u64({a}))",
    "abs.i64": "({a} < 0 ? i64(0ull - u64({a})) : {a})", "invert.i64": "(~{a})",
    "neg.f64": "pyrelay_word(-f64_of({a}))", "abs.f64": "pyrelay_word(fabs(f64_of({a})))",
    "sqrt.f64": "pyrelay_word(sqrt(f64_of({a})))", "isnan.f64": "i64(isnan(f64_of({a})))",
    "neg.f32": "pyrelay_word(-f32_of({a}))", "abs.f32": "pyrelay_word(fabsf(f32_of({a})))",
    "sqrt.f32": "pyrelay_word(sqrtf(f32_of({a})))",
    "i64_to_f64": "pyrelay_word(f64({a}))", "u64_to_f64": "pyrelay_word(f64(u64({a})))",
    "i64_to_f32": "pyrelay_word(f32({a}))", "f64_to_f32": "pyrelay_word(f32(f64_of({a})))",
    "f32_to_f64": "pyrelay_word(f64(f32_of({a})))", "f64_to_bool": "i64(f64_of({a}) != 0.0)",
    "i64_to_bool": "i64({a} != 0)", "f64_to_i64": "pyrelay_truncated(f64_of({a}))",
    **{f"wrap.{k}{bits}": f"i64({k}{bits}({{a}}))" for k in "iu" for bits in (8, 16, 32)},
}  # fmt: skip
_SIGNS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
BINARY = {
    **{f"{n}.i64": f"i64(u64({{a}}) {s} u64({{b}}))" for n, s in _ARITHMETIC.items()},
    **{f"{n}.f64": f"pyrelay_word(f64_of({{a}}) {s} f64_of({{b}}))"
       for n, s in {**_ARITHMETIC, "div": "/"}.items()},
    **{f"{n}.f32": f"pyrelay_word(f32_of({{a}}) {s} f32_of({{b}}))"
       for n, s in {**_ARITHMETIC, "div": "/"}.items()},
    **{f"{n}.i64": f"i64({{a}} {s} {{b}})" for n, s in _SIGNS.items()},
    **{f"{n}.f64": f"i64(f64_of({{a}}) {s} f64_of({{b}}))" for n, s in _SIGNS.items()},
    **{f"{n}.f32": f"i64(f32_of({{a}}) {s} f32_of({{b}}))" for n, s in _SIGNS.items()},
    **{f"{n}.i64": f"({{a}} {s} {{b}})" for n, s in {"and": "&", "or": "|", "xor": "^"}.items()},
    "floordiv.i64": "pyrelay_floor_divide({a}, {b})", "mod.i64": "pyrelay_remainder({a}, {b})",
    "min.i64": "({a} < {b} ? {a} : {b})", "max.i64": "({a} > {b} ? {a} : {b})",
    "shl.i64": "(u64({b}) > 63 ? 0 : i64(u64({a}) << {b}))",
    "shr.i64": "({a} >> (u64({b}) > 63 ? 63 : {b}))",
    "lt.u64": "i64(u64({a}) < u64({b}))", "le.u64": "i64(u64({a}) <= u64({b}))",
}  # fmt: skip
CHECKED = {
    "add.i64": ("{r} = i64(u64({a}) + u64({b}))", "(({a} ^ {r}) & ({b} ^ {r})) < 0"),
    "sub.i64": ("{r} = i64(u64({a}) - u64({b}))", "(({a} ^ {b}) & ({a} ^ {r})) < 0"),
    "mul.i64": ("{r} = i64(u64({a}) * u64({b}))", "__mul64hi({a}, {b}) != ({r} >> 63)"),
    "index": ("{r} = {a} < 0 ? {a} + {b} : {a}", "{r} < 0 || {r} >= {b}"),
    "div.f64": ("{r} = pyrelay_word(f64_of({a}) / f64_of({b}))", "f64_of({b}) == 0.0"),
    "floordiv.f64": (
        "{r} = pyrelay_word(pyrelay_floor_divide(f64_of({a}), f64_of({b})))", "f64_of({b}) == 0.0"
    ),
    "mod.f64": (
        "{r} = pyrelay_word(pyrelay_remainder(f64_of({a}), f64_of({b})))", "f64_of({b}) == 0.0"
    ),
    "floordiv.i64": (
        "{r} = pyrelay_floor_divide({a}, {b})", "{b} == 0 || ({b} == -1 && {a} == {r} && {a} != 0)"
    ),
    "mod.i64": ("{r} = pyrelay_remainder({a}, {b})", "{b} == 0"),
    "shl.i64": (
        "{r} = u64({b}) > 63 ? 0 : i64(u64({a}) << {b})",
        "{b} < 0 || ({b} > 63 ? {a} != 0 : ({r} >> {b}) != {a})"
    ),
    "shr.i64": ("{r} = {a} >> (u64({b}) > 63 ? 63 : {b})", "{b} < 0"),
    "f64_to_i64": (
        "{r} = pyrelay_truncated(f64_of({a}))",
        "!(f64_of({a}) >= -9223372036854775808.0 && f64_of({a}) < 9223372036854775808.0)"
    ),
}

#: Instructions that have a spelling here.
SPELLED: dict[type, frozenset[str]] = {
    ins.Unary: frozenset(UNARY), ins.Binary: frozenset(BINARY),
    ins.Checked: frozenset(CHECKED),
}

_KERNEL = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {parameters}, i64 *out
) {{
    if (pyrelay_over(record, launch) || blockIdx.x != 0 || threadIdx.x != 0) return;
{taken}{body}}}
"""
_FAILS = """\
    if ({fails}) {{
        if (pyrelay_claim(record, launch, 0, 0)) {{
            record->values[0] = a;
            record->values[1] = b;
            pyrelay_release(record);
        }}
        return;
    }}
"""


def operands_of(instruction: Any) -> tuple[Any, ...]:
    """The scalars that an instruction computes with; none where it computes nothing."""
    match instruction:
        case ins.Unary(a=a):
            return (a,)
        case ins.Binary(a=a, b=b) | ins.Checked(a=a, b=b):
            return (a, b)
        case ins.Select(condition=condition, a=a, b=b):
            return (condition, a, b)
    return ()


def is_spelled(instruction: Any) -> bool:
    """Whether `computing` has a kernel for an instruction."""
    if isinstance(instruction, ins.Select):
        return True
    return type(instruction) in SPELLED and instruction.op in SPELLED[type(instruction)]


def computing(instruction: Any) -> Text:
    """The kernel of an instruction that `is_spelled`. For each operand it takes a word and an
    address: it reads what stands there, unless that is 0; then where the result goes. A checked
    one fails at site 0 with both operands."""
    names = "abc"[: len(operands_of(instruction))]
    match instruction:
        case ins.Unary(op=op):
            body = f"    *out = {UNARY[op].format(a='a')};\n"
        case ins.Binary(op=op):
            body = f"    *out = {BINARY[op].format(a='a', b='b')};\n"
        case ins.Select():
            body = "    *out = a ? b : c;\n"
        case ins.Checked(op=op):
            compute, fails = CHECKED[op]
            body = f"    i64 {compute.format(r='found', a='a', b='b')};\n"
            body += _FAILS.format(fails=fails.format(r="found", a="a", b="b"))
            body += "    *out = found;\n"
        case _:
            raise AssertionError(instruction)
    parameters = ", ".join(f"i64 {n}_word, const i64 *{n}_at" for n in names)
    taken = "".join(f"    const i64 {n} = {n}_at ? *{n}_at : {n}_word;\n" for n in names)
    kinds = ("i64", ADDRESS) * len(names) + (ADDRESS,)
    return Text(_KERNEL.format(parameters=parameters, taken=taken, body=body), kinds)
