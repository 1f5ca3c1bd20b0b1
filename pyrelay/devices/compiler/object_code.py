"""Object code laid into memory, ready to run, with nothing of LLVM.

In: an ELF object for x86-64, as LLVM writes it of kernels, and the addresses of what it refers to.
Out: the addresses of its symbols; or None where it has something that kernels do not have, which
LLVM's linker is for.

A process whose programs come from disk so does without LLVM, whose import takes longer than all
else that such a call does. An object becomes one mapping: its sections, and a jump for each
function that is too far away to be called directly; none of it can be written when it can run.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from collections.abc import Mapping
from typing import Any

from pyrelay.records import dataclass

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, the least byte first
_RELOCATABLE, _X86_64 = 1, 62
_SYMBOLS, _PLACES, _EMPTY, _UNWINDING = 2, 4, 8, 0x70000001  # types of sections
_KINDS = (1, _EMPTY, _UNWINDING)  # of sections in memory: code and data are 1
_IN_MEMORY, _WRITABLE, _THREADS_OWN = 2, 1, 0x400  # flags of sections
_RELATIVE, _CALLED = 2, 4  # R_X86_64_PC32, R_X86_64_PLT32
_UNDEFINED, _SPECIAL = 0, 0xFF00  # sections of symbols
_FILE = 4  # a symbol that names the source
_JUMP = struct.Struct("<6sQ2x")  # jmp to the address behind the instruction
_JUMP_CODE = b"\xff\x25\x00\x00\x00\x00"
_REACH = 1 << 31


class _UnknownError(Exception):
    """Something that kernels do not have."""


@dataclass(slots=True)
class _Section:
    """A section of an object; place: where it lies in the mapping, -1 for none."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    place: int = -1


@dataclass(slots=True)
class _Symbol:
    name: str
    section: int
    value: int


def load(
    code: bytes, symbols: tuple[str, ...], known: Mapping[str, int]
) -> dict[str, int] | None:
    """The addresses of an object's symbols; None where LLVM has to link it.

    `known` has addresses of what it refers to; the process is asked for others. The memory is
    never given back: threads may be within it when the interpreter is gone.
    """
    if sys.platform != "linux" or code[: len(_IDENTITY)] != _IDENTITY:
        return None
    try:
        return _laid(code, symbols, known)
    except (_UnknownError, struct.error, OSError):
        return None


def _laid(
    code: bytes, wanted: tuple[str, ...], known: Mapping[str, int]
) -> dict[str, int]:
    kind, machine = struct.unpack_from("<HH", code, 16)
    if (kind, machine) != (_RELOCATABLE, _X86_64):
        raise _UnknownError
    sections = _sections(code)
    table = next((s for s in sections if s.kind == _SYMBOLS), None)
    if table is None:
        raise _UnknownError
    names = _symbols(code, table, sections[table.link])
    far = {s.name: _address(s.name, known) for s in names if s.section == _UNDEFINED and s.name}
    written, jumps = _placed(sections)
    fixed = _rounded(jumps + _JUMP.size * len(far), mmap.PAGESIZE)
    image = bytearray(fixed + written)
    for section in sections:
        if section.flags & _WRITABLE:
            section.place += fixed
        if section.place >= 0 and section.kind != _EMPTY:
            image[section.place : section.place + section.size] = _bytes(code, section)
    base = _mapped(len(image))
    stubs = {name: jumps + _JUMP.size * k for k, name in enumerate(far)}
    for name, address in far.items():
        _JUMP.pack_into(image, stubs[name], _JUMP_CODE, address)
    _relocate(code, sections, names, image, base, far, stubs)
    ctypes.memmove(base, (ctypes.c_char * len(image)).from_buffer(image), len(image))
    _run_only(base, fixed)
    _tell_of_frames(sections, base)
    found = {
        s.name: base + sections[s.section].place + s.value
        for s in names if _UNDEFINED < s.section < _SPECIAL
    }
    if any(name not in found for name in wanted):
        raise _UnknownError
    return {name: found[name] for name in wanted}


def _sections(code: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", code, 40)
    (count,) = struct.unpack_from("<H", code, 60)
    header = struct.Struct("<4xIQ8xQQIIQ8x")
    return [
        _Section(*header.unpack_from(code, start + header.size * k)) for k in range(count)
    ]


def _symbols(code: bytes, table: _Section, texts: _Section) -> list[_Symbol]:
    names = code[texts.offset : texts.offset + texts.size]
    found = []
    for name, info, section, value in struct.iter_unpack("<IBxHQ8x", _bytes(code, table)):
        if section >= _SPECIAL and info & 15 != _FILE:
            raise _UnknownError
        found.append(_Symbol(names[name : names.index(b"\0", name)].decode(), section, value))
    return found


def _bytes(code: bytes, section: _Section) -> bytes:
    return code[section.offset : section.offset + section.size]


def _placed(sections: list[_Section]) -> tuple[int, int]:
    """Give sections their places: those that are not written from 0 on, the others likewise.

    Returns the bytes of what is written, and where the first jump lies.
    """
    ends = {0: 0, _WRITABLE: 0}
    for section in sections:
        if not section.flags & _IN_MEMORY or not section.size:
            continue
        if section.kind not in _KINDS or section.flags & _THREADS_OWN:
            raise _UnknownError
        if section.alignment > mmap.PAGESIZE:
            raise _UnknownError
        which = section.flags & _WRITABLE
        section.place = _rounded(ends[which], section.alignment)
        ends[which] = section.place + section.size
        if section.kind == _UNWINDING:
            ends[which] += 4  # a length of zero says that there is no more
    return ends[_WRITABLE], _rounded(ends[0], _JUMP.size)


def _rounded(size: int, to: int) -> int:
    return -(-size // max(to, 1)) * max(to, 1)


def _relocate(
    code: bytes, sections: list[_Section], names: list[_Symbol], image: bytearray, base: int,
    far: Mapping[str, int], stubs: Mapping[str, int],
) -> None:
    """Write into the mapping how far it is from each place to what is meant there."""
    for table in sections:
        if table.kind != _PLACES or sections[table.info].place < 0:
            continue
        start = sections[table.info].place
        for offset, kind, number, added in struct.iter_unpack("<QIIq", _bytes(code, table)):
            symbol = names[number]
            place = start + offset
            if symbol.section != _UNDEFINED:
                if kind not in (_RELATIVE, _CALLED) or sections[symbol.section].place < 0:
                    raise _UnknownError
                distance = sections[symbol.section].place + symbol.value + added - place
            elif kind == _CALLED:
                distance = far[symbol.name] + added - base - place
                if not -_REACH <= distance < _REACH:
                    distance = stubs[symbol.name] + added - place
            else:
                raise _UnknownError
            struct.pack_into("<i", image, place, distance)


def _address(name: str, known: Mapping[str, int]) -> int:
    """Where something is that an object refers to."""
    if name in known:
        return known[name]
    try:
        return ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise _UnknownError from None


def _mapped(size: int) -> int:
    """New memory, which can be written."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    found = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, private, -1, 0)
    if found in (None, ctypes.c_void_p(-1).value):
        raise _UnknownError
    return int(found)


def _run_only(base: int, size: int) -> None:
    """Memory that is written holds code from now on."""
    if _libc().mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise _UnknownError


def code_and_words(code: bytes, size: int) -> int | None:
    """A mapping of code, whole pages of it, and behind that so many bytes of zeros, which may be
    written; None where there is none. It is never given back."""
    try:
        base = _mapped(len(code) + size)
        ctypes.memmove(base, code, len(code))
        _run_only(base, len(code))
    except _UnknownError:
        return None
    return base


@functools.cache
def _libc() -> ctypes.CDLL:
    found = ctypes.CDLL(None)
    found.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    found.mmap.restype = ctypes.c_void_p
    found.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    )  # fmt: skip
    return found


def _tell_of_frames(sections: list[_Section], base: int) -> None:
    """Let unwinding find its way through the object's functions: threads that Python ends when the
    interpreter is gone may be within them."""
    for section in sections:
        if section.kind == _UNWINDING and section.place >= 0:
            _register()(base + section.place)


@functools.cache
def _register() -> Any:
    try:
        register = ctypes.CDLL("libgcc_s.so.1")["__register_frame"]
    except AttributeError:
        raise _UnknownError from None
    register.argtypes, register.restype = (ctypes.c_void_p,), None
    return register


__all__ = ["code_and_words", "load"]
