"""Where flags are true: each place stored by vectors that are compressed.

In: nothing. Out: a kernel's text; parameters are those of ``lower.planning.target.PlacesKernel``.
Eight flags are one word: nothing is done where it is 0. The places of others are a vector, the true
ones of which CPUs with AVX-512 have an instruction to put in front; elsewhere each is stored where
the next true one belongs, so that no branch is guessed wrong. What lies behind the true ones is
overwritten by the next, and near the end one flag after the other is looked at.
"""

from __future__ import annotations

import functools
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_writer import WORD, Function, Variable, Word
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.kernel_text import filled
from pyrelay.devices.routines.sorting import has_instructions

PICOSECONDS = 150  # for a flag

_PLACES = """\
from pyrelay.devices.routines.true_places import {written}
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True

def kernel(block, begin, end):
    for line in range(begin, end):
        flags, count = param_i64(block, 1), param_i64(block, 2)
        {written}(flags, count, param_i64(block, 3), param_i64(block, 4))
    return 0
"""

_AT_ONCE = 8
_BYTES = llvm.VectorType(llvm.IntType(8), _AT_ONCE)
_WORDS = llvm.VectorType(WORD, _AT_ONCE)


def places_kernel(compressing: bool | None = None) -> str:
    """The text, for this CPU unless it is said whether it compresses vectors."""
    if compressing is None:
        compressing = has_instructions("avx512f")
    return filled(_PLACES, {"written": "compressed_places" if compressing else "stored_places"})


def _write(module: llvm.Module, name: str, *, compressing: bool) -> None:
    f = Function(module, name, 4)
    flags, count, to, size = f.parameters
    found, place = f.variable(0), f.variable(0)
    with f.while_(lambda: found.now < size):
        at = place.now
        with f.either(at + _AT_ONCE <= count) as (several, few):
            with several:
                word = f.load(flags + at)
                with f.either(word.equals(0)) as (none, some):
                    with none:
                        place.set(at + _AT_ONCE)
                    with some, f.either(found.now + _AT_ONCE <= size) as (whole, last):
                        with whole:
                            _several(f, flags + at, at, to, found, compressing)
                            place.set(at + _AT_ONCE)
                        with last:
                            _one(f, flags, to, found, place)
            with few:
                _one(f, flags, to, found, place)
    f.ret(0)


def _one(f: Function, flags: Word, to: Word, found: Variable, place: Variable) -> None:
    """Look at one flag."""
    at = place.now
    f.store(to + found.now * 8, 0, at)
    found.set(found.now + f.load_narrow(flags + at, 8, False).differs(0).word())
    place.set(at + 1)


def _several(
    f: Function, flags: Word, first: Word, to: Word, found: Variable, compressing: bool
) -> None:
    """Store the places of eight flags, the true ones first."""
    b = f.b
    if not compressing:
        for k in range(_AT_ONCE):
            f.store(to + found.now * 8, 0, first + k)
            found.set(found.now + f.load_narrow(flags + k, 8, False).differs(0).word())
        return
    pointer = b.inttoptr(flags.raw, _BYTES.as_pointer())
    bytes_ = b.load(pointer, align=1, typ=_BYTES)
    mask = b.icmp_unsigned("!=", bytes_, llvm.Constant(_BYTES, [0] * _AT_ONCE))
    some: Any = llvm.Constant(_WORDS, llvm.Undefined)
    some = b.insert_element(some, first.raw, llvm.Constant(llvm.IntType(32), 0))
    zeros = llvm.Constant(llvm.VectorType(llvm.IntType(32), _AT_ONCE), None)
    places = b.add(
        b.shuffle_vector(some, some, zeros), llvm.Constant(_WORDS, list(range(_AT_ONCE)))
    )
    name = "llvm.x86.avx512.mask.compress.v8i64"
    compress = b.module.globals.get(name) or llvm.Function(
        b.module, llvm.FunctionType(_WORDS, [_WORDS, _WORDS, mask.type]), name
    )
    target = b.inttoptr((to + found.now * 8).raw, _WORDS.as_pointer())
    b.store(b.call(compress, [places, places, mask]), target, align=8)
    bits = b.zext(b.bitcast(mask, llvm.IntType(_AT_ONCE)), WORD)
    found.set(found.now + Word(f, b.ctpop(bits)))


compressed_places = Part(
    "compressed_places", types.int64, 4, functools.partial(_write, compressing=True)
)
stored_places = Part(
    "stored_places", types.int64, 4, functools.partial(_write, compressing=False)
)
