"""Intrinsics by which kernels touch memory, convert types, and check integers.

In: addresses as ``i64``, element indices as ``i64`` (never negative, never checked). For every
dtype ``T`` of bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
c64 c128:

    param_T(block, k)             parameter k of the kernel's block, from its bit pattern
    param_extent(block, k)        the same for an i64 that is not negative
    param_apart(block, k)         the same for the address of an array that shares no memory with
                                  the other arrays that are so called, or with local ones
    load_T(address, i)            element i, where no other iteration of any loop around the load
    store_T(address, i, value)    writes it: the promise by which loops are vectorised
    load_inner_T, store_inner_T   the same promise for the innermost loops only
    load_ordered_T, store_ordered_T   the same without the promise: x[i] = x[i - 1] + y[i]
    local_T(n)                    address of n elements of the kernel's own; n is a literal
    store_slot_T(address, k, value)   bit pattern into word k: scalar results, error records
    T(x)                          x as a T: constants and NumPy's casts; c64(re, im), c128(re, im)

and besides ``add_overflows subtract_overflows multiply_overflows(a, b)`` for i64,
``outside(k, n)``, which is not 0 <= k < n (n is not negative); ``truncated(x)``, a float as an i64,
the least one where none holds it; ``whole(x)``, the same of one that is known to have one; and
``call_address(function, block, begin, end)``; ``copy_bytes(to, source, count)`` of memory that
does not overlap; ``unlikely(b)``, which is b, where a branch on it is
to keep what the other way leads to in registers; ``guessed()``, which does nothing, and whose
branch is never a choice between what both ways compute; and ``poll(block)``, which looks for
Ctrl-C: what it gives, if not 0, is the status with which the kernel has to return.

How to write loops, from measurements (Sapphire Rapids, AVX-512):

* ``for i in range(begin, end): store_f32(o, i, load_f32(x, i) * load_f32(w, i))`` becomes 512-bit
  code, four vectors at a time, with no run-time alias checks; ``o`` and ``x`` may be one buffer.
  Signed bounds are fine: addresses are computed without a wrap-around test.
* Index arithmetic belongs outside the innermost loop, as a base: ``row = i * n`` then
  ``load_f32(x, row + j)``; ``//`` and ``%`` inside it prevent vectorisation.
* A reduction is a variable of the kernel: ``s = add_reassociated(s, load_f32(x, i))`` is
  vectorised into several accumulators; plain ``s + ...`` keeps the order and stays scalar.
* A value chosen by a condition: ``where(c, a, b)``. ``if`` is kept for work that must not happen.
* A store inside a sequential inner loop to one element (``o[i]`` while ``k`` runs) breaks the
  promise: keep the sum in a variable and store once, or use the ordered pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler import rooms
from pyrelay.devices.compiler.codegen import keeps_vectors
from pyrelay.devices.compiler.kernel_language import (
    BIT,
    BOOL,
    COMPLEX,
    EVERY_LOOP,
    FLOATS,
    HALF,
    HALVES,
    INNERMOST_LOOPS,
    INTEGERS,
    LLVM_TYPES,
    SHORT_NAMES,
    WORD,
    Intrinsic,
    access_group,
    fixed,
)
from pyrelay.devices.compiler.kernel_operators import emit_truth, make_complex, parts
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.runtime.layout import RECORD_WORDS

_I64 = types.int64
_BYTE = llvm.IntType(8)
_HALF_WORD = llvm.IntType(32)
_SIXTEEN = llvm.Constant(_HALF_WORD, 16)
_SHORT, _SHORT_FLOAT, _FLOAT = llvm.IntType(16), llvm.HalfType(), llvm.FloatType()


def _part_type(ty: types.Type) -> llvm.Type:
    return LLVM_TYPES[ty.underlying_float]


def _pointer(b: IRBuilder, stored: llvm.Type, address: Any, index: Any) -> Any:
    base = b.inttoptr(address, stored.as_pointer())
    return b.gep(base, [index], inbounds=True, source_etype=stored)


def _stored_type(ty: types.Type) -> llvm.Type:
    if ty in HALVES:
        return _SHORT_FLOAT if ty == HALF else _SHORT
    return _BYTE if ty == BOOL else LLVM_TYPES[ty]


def _widened(b: IRBuilder, ty: types.Type, stored: Any) -> Any:
    """The register that stands for 16 bits: the upper ones of its own are those of a bfloat16."""
    if ty == HALF:
        return b.fpext(stored, _FLOAT)
    return b.bitcast(b.shl(b.zext(stored, _HALF_WORD), _SIXTEEN), _FLOAT)


def _shortened(b: IRBuilder, ty: types.Type, value: Any) -> Any:
    """The 16 bits of a register, whose value they can hold."""
    if ty == HALF:
        return b.fptrunc(value, _SHORT_FLOAT)
    return b.trunc(b.lshr(b.bitcast(value, _HALF_WORD), _SIXTEEN), _SHORT)


def _places(b: IRBuilder, ty: types.Type, address: Any, index: Any) -> list[Any]:
    """Pointers to the element's parts: one, or two for complex numbers.

    LLVM vectorises loads of two floats, but not loads of a structure of two.
    """
    if ty not in COMPLEX:
        return [_pointer(b, _stored_type(ty), address, index)]
    part = _part_type(ty)
    first = b.shl(index, llvm.Constant(WORD, 1))
    return [
        _pointer(b, part, address, first),
        _pointer(b, part, address, b.or_(first, llvm.Constant(WORD, 1))),
    ]


def _mark(b: IRBuilder, access: Any, loops: str | None) -> Any:
    if loops is not None:
        access.set_metadata("llvm.access.group", access_group(b.module, loops))
    return access


def _load(name: str, ty: types.Type, loops: str | None) -> Intrinsic:
    def emit(b: IRBuilder, _: types.Type, address: Any, index: Any) -> Any:
        stored = _part_type(ty) if ty in COMPLEX else _stored_type(ty)
        values = [
            _mark(b, b.load(place, typ=stored), loops)
            for place in _places(b, ty, address, index)
        ]
        if ty in COMPLEX:
            return make_complex(b, *values)
        if ty == BOOL:
            return b.icmp_unsigned("!=", values[0], llvm.Constant(_BYTE, 0))
        return _widened(b, ty, values[0]) if ty in HALVES else values[0]

    return Intrinsic(name, fixed(ty, _I64, _I64), emit)


def _store(name: str, ty: types.Type, loops: str | None) -> Intrinsic:
    def emit(b: IRBuilder, _: types.Type, address: Any, index: Any, value: Any) -> None:
        values: tuple[Any, ...]
        if ty in COMPLEX:
            values = parts(b, value)
        else:
            values = (b.zext(value, _BYTE) if ty == BOOL else value,)
            if ty in HALVES:
                values = (_shortened(b, ty, value),)
        for place, part in zip(_places(b, ty, address, index), values, strict=True):
            _mark(b, b.store(part, place), loops)

    return Intrinsic(name, fixed(types.void, _I64, _I64, ty), emit)


def _parameter(b: IRBuilder, block: Any, k: Any) -> Any:
    access = b.load(_pointer(b, WORD, block, k), typ=WORD)
    access.set_metadata("invariant.load", b.module.add_metadata([]))
    return access


def _param(name: str, ty: types.Type) -> Intrinsic:
    def emit(b: IRBuilder, _: types.Type, block: Any, k: Any) -> Any:
        def word(place: Any) -> Any:
            return _parameter(b, block, place)

        if ty == types.complex128:
            second = b.add(k, llvm.Constant(WORD, 1))
            return make_complex(b, *(b.bitcast(word(p), llvm.DoubleType()) for p in (k, second)))
        return _from_word(b, ty, word(k))

    return Intrinsic(name, fixed(ty, _I64, _I64), emit)


def _emit_extent(b: IRBuilder, _: types.Type, block: Any, k: Any) -> Any:
    access = _parameter(b, block, k)
    ends = (llvm.Constant(WORD, 0), llvm.Constant(WORD, -(2**63)))
    access.set_metadata("range", b.module.add_metadata(ends))
    return access


param_extent = Intrinsic("param_extent", fixed(_I64, _I64, _I64), _emit_extent)
param_apart = Intrinsic(
    "param_apart", fixed(_I64, _I64, _I64), lambda b, _, block, k: _parameter(b, block, k),
    apart=True,
)


def _from_word(b: IRBuilder, ty: types.Type, word: Any) -> Any:
    if ty == BOOL:
        return b.icmp_unsigned("!=", word, llvm.Constant(WORD, 0))
    if ty in INTEGERS:
        return word if ty.bitwidth == 64 else b.trunc(word, LLVM_TYPES[ty])
    if ty == types.float64:
        return b.bitcast(word, llvm.DoubleType())
    if ty in HALVES:
        bits = b.trunc(word, _SHORT)
        return _widened(b, ty, b.bitcast(bits, _SHORT_FLOAT) if ty == HALF else bits)
    low = b.bitcast(b.trunc(word, _HALF_WORD), llvm.FloatType())
    if ty == types.float32:
        return low
    high = b.trunc(b.lshr(word, llvm.Constant(WORD, 32)), _HALF_WORD)
    return make_complex(b, low, b.bitcast(high, llvm.FloatType()))


def _to_word(b: IRBuilder, ty: types.Type, value: Any) -> Any:
    """The bit pattern of a value of at most 64 bits; integers are extended by their sign."""
    if ty == BOOL:
        return b.zext(value, WORD)
    if ty in INTEGERS:
        if ty.bitwidth == 64:
            return value
        return b.sext(value, WORD) if ty.signed else b.zext(value, WORD)
    if ty == types.float64:
        return b.bitcast(value, WORD)
    if ty == types.float32:
        return b.zext(b.bitcast(value, _HALF_WORD), WORD)
    if ty in HALVES:
        short = _shortened(b, ty, value)
        return b.zext(b.bitcast(short, _SHORT) if ty == HALF else short, WORD)
    low, high = (b.zext(b.bitcast(part, _HALF_WORD), WORD) for part in parts(b, value))
    return b.or_(low, b.shl(high, llvm.Constant(WORD, 32)))


def _store_slot(name: str, ty: types.Type) -> Intrinsic:
    def emit(b: IRBuilder, _: types.Type, address: Any, k: Any, value: Any) -> None:
        if ty == types.complex128:
            words = [b.bitcast(part, WORD) for part in parts(b, value)]
        else:
            words = [_to_word(b, ty, value)]
        for offset, word in enumerate(words):
            place = b.add(k, llvm.Constant(WORD, offset))
            b.store(word, _pointer(b, WORD, address, place))

    return Intrinsic(name, fixed(types.void, _I64, _I64, ty), emit)


def _local(name: str, ty: types.Type) -> Intrinsic:
    stored, size = _stored_type(ty), -(-ty.bitwidth // 8)

    def emit(b: IRBuilder, _: types.Type, count: Any) -> Any:
        if not isinstance(count, llvm.Constant):
            raise TypeError(f"{name} needs a literal number of elements")
        nbytes = count.constant * size
        with b.goto_entry_block():
            if nbytes > rooms.LARGEST_ON_STACK:
                return rooms.part(b, nbytes)
            array = b.alloca(stored, size=count)
            array.align = 64
        return b.ptrtoint(array, WORD)

    return Intrinsic(name, fixed(_I64, _I64), emit, apart=True)


# -- casts ---------------------------------------------------------------------------------------


def _float_to_integer(b: IRBuilder, x: Any, target: types.Type) -> Any:
    """Towards zero. Out of range and NaN: what NumPy's loops give on x86-64.

    Widths below 64 keep the low bits of a wider conversion, and that conversion gives its most
    negative number when it cannot hold the value.
    """
    if target == types.uint64:
        return _float_to_u64(b, x)
    wide = WORD if target.bitwidth == 64 or target == types.uint32 else _HALF_WORD
    converted = _float_to_signed(b, x, wide)
    result = LLVM_TYPES[target]
    return converted if result == wide else b.trunc(converted, result)


def _float_to_signed(b: IRBuilder, x: Any, wide: llvm.IntType) -> Any:
    limit = 2.0 ** (wide.width - 1)
    # i32 has numbers just below -2^31 that truncate to it; in f32 and i64 there are none.
    exact = wide.width == 64 or x.type == llvm.FloatType()
    low = llvm.Constant(x.type, -limit if exact else -limit - 1)
    above = b.fcmp_ordered(">=" if exact else ">", x, low)
    below = b.fcmp_ordered("<", x, llvm.Constant(x.type, limit))
    lowest = llvm.Constant(wide, -(2 ** (wide.width - 1)))
    return b.select(b.and_(above, below), b.fptosi(x, wide), lowest)


def _emit_truncated(b: IRBuilder, source: types.Type, x: Any) -> Any:
    """The machine's own conversion where that is defined for all floats, and is not of vectors."""
    if not b.module.triple.startswith("x86_64"):
        return _float_to_signed(b, x, WORD)
    short = source == types.float32
    kind = llvm.VectorType(x.type, 4 if short else 2)
    name = f"llvm.x86.sse{'.cvttss' if short else '2.cvttsd'}2si64"
    native = b.module.globals.get(name)
    if native is None:
        native = llvm.Function(b.module, llvm.FunctionType(WORD, [kind]), name)
    first = llvm.Constant(llvm.IntType(32), 0)
    return b.call(native, [b.insert_element(llvm.Constant(kind, llvm.Undefined), x, first)])


truncated = Intrinsic(
    "truncated", lambda given: _I64 if len(given) == 1 and given[0] in FLOATS else None,
    _emit_truncated,
)


whole = Intrinsic(
    "whole", lambda given: _I64 if len(given) == 1 and given[0] in FLOATS else None,
    lambda b, _, x: b.freeze(b.fptosi(x, WORD)),
)


def _float_to_u64(b: IRBuilder, x: Any) -> Any:
    half = llvm.Constant(x.type, 2.0**63)
    big = b.fcmp_ordered(">=", x, half)
    top = llvm.Constant(WORD, -(2**63))
    upper = b.xor(_float_to_signed(b, b.fsub(x, half), WORD), top)
    return b.select(big, upper, _float_to_signed(b, x, WORD))


def _integer_resize(b: IRBuilder, x: Any, source: types.Type, target: types.Type) -> Any:
    width = 1 if source == BOOL else source.bitwidth
    result = LLVM_TYPES[target]
    if width == target.bitwidth:
        return x
    if width > target.bitwidth:
        return b.trunc(x, result)
    return b.sext(x, result) if source != BOOL and source.signed else b.zext(x, result)


def _to_float(b: IRBuilder, x: Any, source: types.Type, target: types.Type) -> Any:
    result = LLVM_TYPES[target]
    if source in FLOATS:
        if source == target:
            return x
        return b.fpext(x, result) if target == types.float64 else b.fptrunc(x, result)
    if source != BOOL and source.signed:
        return b.sitofp(x, result)
    return b.uitofp(x, result)


def _rounded_to_half(b: IRBuilder, source: types.Type, x: Any) -> Any:
    """The nearest float of 16 bits, as a float of 32."""
    if source in COMPLEX:
        return _rounded_to_half(b, source.underlying_float, parts(b, x)[0])
    if source == types.float64:
        x = _rounded_to_odd(b, x)
    elif source != types.float32:
        x = _to_float(b, x, source, types.float32)
    return b.fpext(b.fptrunc(x, _SHORT_FLOAT), _FLOAT)


def _rounded_to_brain(b: IRBuilder, source: types.Type, x: Any) -> Any:
    """The nearest bfloat16, ties to the even one, as a float of 32 bits. Doubles become floats
    first, as in ml_dtypes, and NaNs the one with the first bit of the fraction."""
    if source in COMPLEX:
        return _rounded_to_brain(b, source.underlying_float, parts(b, x)[0])
    if source != types.float32:
        x = _to_float(b, x, source, types.float32)
    bits = b.bitcast(x, _HALF_WORD)
    even = b.and_(b.lshr(bits, _SIXTEEN), llvm.Constant(_HALF_WORD, 1))
    near = b.add(b.add(bits, llvm.Constant(_HALF_WORD, 0x7FFF)), even)
    kept = b.and_(near, llvm.Constant(_HALF_WORD, -0x10000))
    sign = b.and_(bits, llvm.Constant(_HALF_WORD, -0x80000000))
    nan = b.or_(sign, llvm.Constant(_HALF_WORD, 0x7FC00000))
    return b.bitcast(b.select(b.fcmp_unordered("uno", x, x), nan, kept), _FLOAT)


def _rounded_to_odd(b: IRBuilder, x: Any) -> Any:
    """A double as a float that is rounded to fewer bits as the double itself would be: where it is
    not exact its last bit is 1, so that it is no tie (Boldo and Melquiond, "Emulation of a FMA and
    correctly rounded sums: proved algorithms using rounding to odd", 2008)."""
    near = b.fptrunc(x, _FLOAT)
    back = b.fpext(near, llvm.DoubleType())
    bits = b.bitcast(near, _HALF_WORD)
    one, zero = llvm.Constant(_HALF_WORD, 1), llvm.Constant(_HALF_WORD, 0)
    size = b.module.declare_intrinsic(
        "llvm.fabs", [x.type], llvm.FunctionType(x.type, [x.type])
    )
    beyond = b.fcmp_ordered(">", b.call(size, [back]), b.call(size, [x]))
    even = b.icmp_unsigned("==", b.and_(bits, one), zero)
    inexact = b.and_(b.fcmp_ordered("!=", back, x), even)
    step = b.select(beyond, llvm.Constant(_HALF_WORD, -1), one)
    return b.bitcast(b.add(bits, b.select(inexact, step, zero)), _FLOAT)


def emit_cast(b: IRBuilder, source: types.Type, target: types.Type, x: Any) -> Any:
    """``x`` of type ``source`` as a ``target``, as NumPy's ``astype``."""
    if source == target:
        return x
    if source in HALVES:
        return emit_cast(b, types.float32, target, x)
    if target in HALVES:
        round_to = _rounded_to_half if target == HALF else _rounded_to_brain
        return round_to(b, source, x)
    if target == BOOL:
        return emit_truth(b, source, x)
    if source in COMPLEX:
        re, im = parts(b, x)
        inner = source.underlying_float
        if target not in COMPLEX:
            return emit_cast(b, inner, target, re)
        outer = target.underlying_float
        return make_complex(b, _to_float(b, re, inner, outer), _to_float(b, im, inner, outer))
    if target in COMPLEX:
        re = _to_float(b, x, source, target.underlying_float)
        return make_complex(b, re, llvm.Constant(re.type, 0.0))
    if target in FLOATS:
        return _to_float(b, x, source, target)
    if source in FLOATS:
        return _float_to_integer(b, x, target)
    return _integer_resize(b, x, source, target)


def _cast(name: str, target: types.Type) -> Intrinsic:
    known = frozenset(LLVM_TYPES)

    def rule(given: tuple[types.Type, ...]) -> types.Type | None:
        if len(given) == 1 and given[0] in known:
            return target
        pair = len(given) == 2 and target in COMPLEX and set(given) == {target.underlying_float}
        return target if pair else None

    def emit(b: IRBuilder, source: types.Type, *values: Any) -> Any:
        if len(values) == 2:
            return make_complex(b, *values)
        return emit_cast(b, source, target, values[0])

    return Intrinsic(name, rule, emit)


# -- checks and calls ----------------------------------------------------------------------------


def _overflows(name: str, operation: str) -> Intrinsic:
    def emit(b: IRBuilder, _: types.Type, x: Any, y: Any) -> Any:
        return b.extract_value(getattr(b, f"{operation}_with_overflow")(x, y), 1)

    return Intrinsic(name, fixed(BOOL, _I64, _I64), emit)


add_overflows = _overflows("add_overflows", "sadd")
subtract_overflows = _overflows("subtract_overflows", "ssub")
multiply_overflows = _overflows("multiply_overflows", "smul")


outside = Intrinsic(
    "outside", fixed(BOOL, _I64, _I64), lambda b, _, k, n: b.icmp_unsigned(">=", k, n)
)


def _emit_call(b: IRBuilder, _: types.Type, function: Any, *args: Any) -> Any:
    signature = llvm.FunctionType(WORD, [WORD] * len(args))
    return b.call(b.inttoptr(function, signature.as_pointer()), args)


call_address = Intrinsic("call_address", fixed(_I64, *(_I64,) * 4), _emit_call)


_POLL = "look_for_ctrl_c"
#: Functions that are called so save nearly all registers themselves.
_SAVING = "preserve_allcc"


def _emit_poll(b: IRBuilder, _: types.Type, block: Any) -> Any:
    """By a function of the module that keeps registers: loops need not leave some free for it."""
    function = b.module.globals.get(_POLL) or _poll_function(b.module)
    return b.call(function, [block], cconv=_SAVING)


def _poll_function(module: llvm.Module) -> llvm.Function:
    """The record is parameter 0; behind its words stand the function and its argument."""
    made = llvm.Function(module, llvm.FunctionType(WORD, [WORD]), _POLL)
    made.linkage, made.calling_convention = "internal", _SAVING
    made.attributes.add("noinline")
    made.attributes.add("cold")
    if kept := keeps_vectors():
        made.attributes.add(kept)
    b = IRBuilder(made.append_basic_block("begin"))
    record = b.load(_pointer(b, WORD, made.args[0], llvm.Constant(WORD, 0)), typ=WORD)
    function, argument = (
        b.load(_pointer(b, WORD, record, llvm.Constant(WORD, RECORD_WORDS + k)), typ=WORD)
        for k in (0, 1)
    )
    b.ret(_emit_call(b, _I64, function, argument))
    return made


def _emit_unlikely(b: IRBuilder, _: types.Type, condition: Any) -> Any:
    signature = llvm.FunctionType(BIT, [BIT, BIT])
    expect = b.module.declare_intrinsic("llvm.expect", [BIT], signature)
    return b.call(expect, [condition, llvm.Constant(BIT, 0)])


def _emit_guessed(b: IRBuilder, _: types.Type) -> None:
    """What LLVM does not do in vain, and is no instruction."""
    name = "llvm.sideeffect"
    signature = llvm.FunctionType(llvm.VoidType(), [])
    native = b.module.globals.get(name) or llvm.Function(b.module, signature, name)
    b.call(native, [])


def _emit_copy(b: IRBuilder, _: types.Type, to: Any, source: Any, count: Any) -> None:
    places = [b.inttoptr(each, _BYTE.as_pointer()) for each in (to, source)]
    kinds = [each.type for each in places] + [WORD, BIT]
    signature = llvm.FunctionType(llvm.VoidType(), kinds)
    name = "llvm.memcpy.p0.p0.i64"
    native = b.module.globals.get(name) or llvm.Function(b.module, signature, name)
    b.call(native, [*places, count, llvm.Constant(BIT, 0)])


def _emit_clear(b: IRBuilder, _: types.Type, to: Any, count: Any) -> None:
    place = b.inttoptr(to, _BYTE.as_pointer())
    signature = llvm.FunctionType(llvm.VoidType(), [place.type, _BYTE, WORD, BIT])
    name = "llvm.memset.p0.i64"
    native = b.module.globals.get(name) or llvm.Function(b.module, signature, name)
    b.call(native, [place, llvm.Constant(_BYTE, 0), count, llvm.Constant(BIT, 0)])


clear_bytes = Intrinsic("clear_bytes", fixed(types.void, _I64, _I64), _emit_clear)
copy_bytes = Intrinsic("copy_bytes", fixed(types.void, _I64, _I64, _I64), _emit_copy)
guessed = Intrinsic("guessed", fixed(types.void), _emit_guessed)
unlikely = Intrinsic("unlikely", fixed(BOOL, BOOL), _emit_unlikely)

poll = Intrinsic("poll", fixed(_I64, _I64), _emit_poll, aside=True)

_MAKERS: dict[str, Callable[[str, types.Type], Intrinsic]] = {
    "load_{}": lambda name, ty: _load(name, ty, EVERY_LOOP),
    "store_{}": lambda name, ty: _store(name, ty, EVERY_LOOP),
    "load_inner_{}": lambda name, ty: _load(name, ty, INNERMOST_LOOPS),
    "store_inner_{}": lambda name, ty: _store(name, ty, INNERMOST_LOOPS),
    "load_ordered_{}": lambda name, ty: _load(name, ty, None),
    "store_ordered_{}": lambda name, ty: _store(name, ty, None),
    "param_{}": _param,
    "store_slot_{}": _store_slot,
    "local_{}": _local,
    "{}": _cast,
}
for _pattern, _make in _MAKERS.items():
    for _short, _ty in SHORT_NAMES.items():
        _name = "boolean" if _pattern == "{}" and _short == "bool" else _pattern.format(_short)
        globals()[_name] = _make(_name, _ty)
