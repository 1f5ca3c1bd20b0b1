"""Room for a kernel's large arrays, which a small stack would not hold.

In: the LLVM module of a kernel, and how many bytes. Out: in that module, functions that take a room
of so many bytes and give it back; ``LARGEST_ON_STACK``, up to which arrays are in frames; ``part``,
a part of the one room that a function has, and ``held``, which completes such a function.

Threads may have little stack: as much as ``threading.stack_size`` says, 512 KiB on some systems.
A room that is given back waits among the words of the kernel's object for the next call, so that
its memory stays mapped and cached. A thread looks first where the CPU that it runs on left one:
what another CPU has written has to come from its cache, line by line, before it can be written
again, which takes as long as a product of a few rows. No lock is held, and a forked child goes on
with its copies.
"""

from __future__ import annotations

import ctypes
import weakref

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, WORD, Function, Word
from pyrelay.devices.runtime.layout import Status

LARGEST_ON_STACK = 1 << 14
"""Bytes of the largest array that lies in a kernel's frame."""

_CPUS = 16  # that have words of their own
_LINE = 8  # words of each, in a cache line of their own
_KEPT = _CPUS * _LINE  # rooms that wait, or are taken: as many are had without asking the system
_TAKEN = 1  # added to the address of a room that somebody has
_ALIGNED = 64


def take(module: ir.Module, nbytes: int) -> ir.Function:
    """The function of a module that takes a room: its address, 0 where there is no memory."""
    name = f"take_room_{nbytes}"
    if name in module.globals:
        return module.globals[name]
    f = _internal(module, name, 0)
    first, kept = _first(f), _kept(f, nbytes)
    with f.counting(f.number(_KEPT)) as k:
        place = _place(kept, first + k)
        room = f.atomic_load(place, 0)
        waits = room.differs(0) & (room & _TAKEN).equals(0)
        with f.when(waits), f.when(f.exchange_if(place, 0, room, room | _TAKEN)):
            f.ret(room)
    made = f.address(f.local_words(1))
    failed = f.c("posix_memalign", made, _ALIGNED, nbytes, returns=INT32)
    with f.when(failed.differs(0)):
        f.ret(0)
    room = f.load(made)
    with f.counting(f.number(_KEPT)) as k:
        place = _place(kept, first + k)
        empty = f.atomic_load(place, 0).equals(0)
        with f.when(empty), f.when(f.exchange_if(place, 0, 0, room | _TAKEN)):
            f.ret(room)
    f.ret(room)
    return f.native


def give(module: ir.Module, nbytes: int) -> ir.Function:
    """The function of a module that gives a room back; it ignores address 0."""
    name = f"give_room_{nbytes}"
    if name in module.globals:
        return module.globals[name]
    f = _internal(module, name, 1)
    (room,) = f.parameters
    first, kept = _first(f), _kept(f, nbytes)
    with f.when(room.equals(0)):
        f.ret(0)
    with f.counting(f.number(_KEPT)) as k:
        place = _place(kept, first + k)
        with f.when(f.atomic_load(place, 0).equals(room | _TAKEN)):
            f.atomic_store(place, 0, room)
            f.ret(0)
    f.c("free", room, returns=VOID)  # more are taken than can wait
    f.ret(0)
    return f.native


def _first(f: Function) -> Word:
    """Where the words of the CPU begin that a thread runs on; where the system does not say which
    one that is, of the thread."""
    tells = hasattr(ctypes.CDLL(None), "sched_getcpu")
    number = f.c("sched_getcpu", returns=INT32) if tells else f.c("pthread_self") >> 12
    return (number & (_CPUS - 1)) * _LINE


def _place(kept: Word, number: Word) -> Word:
    return kept + ((number & (_KEPT - 1)) << 3)


_ROOM = ir.Value(WORD, "%room")
_parts: weakref.WeakKeyDictionary[ir.Function, int] = weakref.WeakKeyDictionary()
"""How many bytes of its room are the parts of a function's arrays so far."""


def part(b: IRBuilder, nbytes: int) -> ir.Value:
    """The address of a part of the room of the function that ``b`` writes."""
    function = b.block.function
    offset = _parts.get(function, 0)
    _parts[function] = offset + -(-nbytes // _ALIGNED) * _ALIGNED
    return b.add(_ROOM, WORD(offset))


def held(b: IRBuilder, function: ir.Function, first: ir.Block) -> None:
    """End a function's entry, where ``b`` stands: go on at ``first`` with its room taken, or leave
    with ``Status.MEMORY``. Wherever the function is left, its room is given back."""
    nbytes = _parts.pop(function, 0)
    if not nbytes:
        b.branch(first)
        return
    entry = b.block
    b.position_at_start(entry)
    b.call(take(function.module, nbytes), []).ref = _ROOM.ref
    b.position_at_end(entry)
    none = function.append_basic_block("no_memory")
    b.cbranch(b.icmp_unsigned("==", _ROOM, WORD(0)), none, first)
    b.position_at_end(none)
    b.ret(WORD(Status.MEMORY))
    for block in function.blocks:
        if isinstance(block.terminator, ir.Ret) and block is not none:
            b.position_before_end(block)
            b.call(give(function.module, nbytes), [_ROOM])


def _internal(module: ir.Module, name: str, parameters: int) -> Function:
    f = Function(module, name, parameters)
    f.native.linkage = "internal"
    f.native.attributes.add("noinline")
    return f


def _kept(f: Function, nbytes: int) -> Word:
    """The address of the words of rooms that wait."""
    name = f"rooms_{nbytes}"
    known = f.module.globals.get(name)
    if known is None:
        kind = ir.ArrayType(WORD, _KEPT)
        known = ir.GlobalVariable(f.module, kind, name)
        known.linkage, known.initializer, known.align = "internal", ir.Constant(kind, None), 64
    return f.address(known)
