"""Parts of kernels that are compiled, or fetched from disk, when they are first called.

In: the number of a part. Out: an address that kernels are linked with, which stands for the part
for good. A product, for one, has eight ways to go, most of which are for other sizes than a
program ever meets.

Behind the address is a jump through a word. The word leads to code that has the part made, until
that is done, and to the part itself from then on. Making takes Python, which a thread of a team
does not have, and which the thread that began the call may have no room for any more, or signals
to answer: so it happens on a thread of its own, for which the caller waits without the GIL
(`devices/runtime/asking`). A part takes words: it is called by the C convention of x86-64, by which
six of them are in registers, which are kept meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable

from pyrelay.devices.compiler import object_code
from pyrelay.devices.runtime.layout import WORD

_APART, _MANY = 64, 64
"""Bytes from one address to the next, and how many addresses a mapping has."""
_WORDS = _APART * _MANY
"""Where, in a mapping, its words begin: `ask`, `make`, and one for each address."""
_FIRST = 6
"""Where the code begins, within that of an address, which its word leads to first."""

Make = Callable[[int], int]
"""What makes a part: its number -> where it is."""


def supported() -> bool:
    """Whether this machine has such addresses."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32


class LateParts:
    """The addresses of a process."""

    def __init__(self, make: Make) -> None:
        def made(number: int) -> int:
            try:
                return make(number)
            except BaseException:  # there is nobody to tell: a kernel is half way
                import traceback  # which takes longer to import than all else here

                traceback.print_exc()
                sys.stderr.flush()
                os.abort()

        self._make = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(made)
        self._mappings: list[int] = []
        self._count = 0

    def address(self) -> int | None:
        """A new address, for the part whose number is how many there were; None where memory for
        code cannot be had. It can be called when `asked_by` was."""
        mapping, place = divmod(self._count, _MANY)
        if mapping == len(self._mappings):
            code = b"".join(_code(k, mapping * _MANY + k) for k in range(_MANY))
            base = object_code.code_and_words(code, WORD * (2 + _MANY))
            if base is None:
                return None
            self._mappings.append(base)
            _word(base, 1).value = ctypes.cast(self._make, ctypes.c_void_p).value or 0
            for k in range(_MANY):
                _word(base, 2 + k).value = base + _APART * k + _FIRST
        self._count += 1
        return self._mappings[mapping] + _APART * place

    def asked_by(self, ask: int) -> None:
        """Give the native function `int64 (int64 number, int64 make)` by which addresses have
        their parts made."""
        for base in self._mappings:
            _word(base, 0).value = ask

    def made(self, number: int, address: int) -> None:
        """A part is there: its address leads to it from now on."""
        mapping, place = divmod(number, _MANY)
        _word(self._mappings[mapping], 2 + place).value = address


def _word(base: int, number: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(base + _WORDS + WORD * number)


def _code(place: int, number: int) -> bytes:
    """The code of an address: where it stands in its mapping, and its number."""
    code = bytearray()

    def of_word(instruction: str, word: int) -> None:
        """One whose operand is a word of the mapping, which is told by its distance."""
        code.extend(bytes.fromhex(instruction))
        behind = _APART * place + len(code) + 4
        code.extend(struct.pack("<i", _WORDS + WORD * word - behind))

    of_word("ff 25", 2 + place)  # jmp [word]
    assert len(code) == _FIRST
    code += bytes.fromhex("57 56 52 51 41 50 41 51")  # push rdi, rsi, rdx, rcx, r8, r9
    code += bytes.fromhex("bf") + struct.pack("<i", number)  # mov edi, number
    of_word("48 8b 35", 1)  # mov rsi, [make]
    code += bytes.fromhex("48 83 ec 08")  # sub rsp, 8: a multiple of 16, where calls are made
    of_word("ff 15", 0)  # call [ask]
    code += bytes.fromhex("48 83 c4 08")  # add rsp, 8
    code += bytes.fromhex("41 59 41 58 59 5a 5e 5f")  # pop r9, r8, rcx, rdx, rsi, rdi
    code += bytes.fromhex("ff e0")  # jmp rax
    return bytes(code.ljust(_APART, b"\xcc"))
