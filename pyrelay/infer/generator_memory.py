"""Where CPython and NumPy keep the state of a Mersenne Twister: as arrays over that memory.

In: an `np.random.RandomState` or a `random.Random`. Out: views of its 624 words, of the place among
them, and, of NumPy's, of whether a normal number is kept and of that number. Asked for by methods,
each word becomes an object of Python, which takes a call of a program 80 us. Where things lie is
not said anywhere: it is found once for each class, by what a generator of a known state has at
which place, and tried. None where nothing is found so: methods do then.
"""

from __future__ import annotations

import ctypes
import functools
import random
from typing import Any, NamedTuple

import numpy as np

_SIZE = 624
_KEPT = -0.7340219675130817
"""A float that no other memory of an object is taken for."""


class Memory(NamedTuple):
    """Views: uint32[624], int32[1], and of RandomState int32[1] and float64[1], else None."""

    words: Any
    place: Any
    has_kept: Any = None
    kept: Any = None


def memory_of(generator: Any) -> Memory | None:
    """Views of the generator's state, which hold as long as it lives and has the same bits.

    None for those of derived classes, which may draw from elsewhere.
    """
    bits = getattr(generator, "_bit_generator", None)
    for last, its_bits, memory in _last:
        if last is generator and its_bits is bits:
            return memory
    found = _found(generator)
    if found is not None:
        _last[:] = [(generator, bits, found)]
    return found


#: The generator that was asked for last, its bits and its memory: most programs have one.
_last: list[tuple[Any, Any, Memory]] = []


def _found(generator: Any) -> Memory | None:
    if type(generator) is np.random.RandomState:
        bits: Any = generator._bit_generator
        offset = _kept_offset()
        if offset is None or type(bits) is not np.random.MT19937:
            return None
        return _of_numpy(generator, bits, offset)
    at = _python_offset() if type(generator) is random.Random else None
    return None if at is None else _of_python(generator, at)


def _of_numpy(generator: Any, bits: Any, offset: int) -> Memory:
    words = _view(bits.ctypes.state_address, np.uint32, _SIZE + 1)
    kept = _view(id(generator) + offset, np.float64, 2)
    return Memory(words[:-1], words[-1:].view(np.int32), kept[:1].view(np.int32)[:1], kept[1:])


def _of_python(generator: Any, offset: int) -> Memory:
    words = _view(id(generator) + offset, np.uint32, _SIZE + 1)
    return Memory(words[1:], words[:1].view(np.int32))


def _view(address: int, dtype: Any, count: int) -> Any:
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


@functools.cache
def _kept_offset() -> int | None:
    """Where in a RandomState it is said whether a number is kept; the number is 8 bytes behind."""
    probe: Any = np.random.RandomState(np.random.MT19937(5))
    name, words, place, *_ = probe.get_state(legacy=True)
    probe.set_state((name, words, place, 1, _KEPT))
    held = ctypes.string_at(id(probe), np.random.RandomState.__basicsize__)
    found = held.find(np.float64(_KEPT).tobytes()) - 8
    if found < 0 or found % 8 or held[found : found + 4] != np.int32(1).tobytes():
        return None
    memory = _of_numpy(probe, probe._bit_generator, found)
    as_told = np.array_equal(memory.words, words) and memory.place[0] == place
    memory.has_kept[0] = 0
    if not as_told or probe.get_state(legacy=True)[3:] != (0, _KEPT):
        return None
    return found


@functools.cache
def _python_offset() -> int | None:
    """Where in a `random.Random` the place is; the words follow."""
    probe = random.Random(5)
    probe.random()
    _, (*words, place), _ = probe.getstate()
    held = ctypes.string_at(id(probe), random.Random.__basicsize__)
    found = held.find(np.array([place, *words], np.uint32).tobytes())
    if found < 0 or found % 4:
        return None
    memory = _of_python(probe, found)
    memory.place[0] = _SIZE
    return found if probe.getstate()[1] == (*words, _SIZE) else None
