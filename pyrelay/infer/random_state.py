"""The state of a random number generator as arrays, so that a program can carry it.

In: an `np.random.Generator`, an `np.random.RandomState` or a `random.Random`. Out: an array of
uint64: the kind of the generator, its state, what it has kept of the last draw; how many they are
tells the kinds of a class apart, so that a program knows it. For the latter two classes, an array
of one float as well: the second of two normal numbers made together. `drawn` is what a program
calls through the host gate: state and arguments in, state afterwards and numbers out. Nothing else
changes, so a draw may be repeated (in a derivative) and gives the same numbers.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay.infer.generator_memory import Memory, memory_of

State = tuple[np.ndarray[Any, Any], ...]
CLASSES = (np.random.Generator, np.random.RandomState, random.Random)

_LOW = 2**64 - 1
_KINDS: tuple[Any, ...] = (
    np.random.PCG64, np.random.MT19937, np.random.PCG64DXSM, np.random.SFC64, np.random.Philox,
)
#: The kinds of `np.random.RandomState` and of `random.Random`, behind those of bit generators.
LEGACY = len(_KINDS)
PYTHON = LEGACY + 1
_local = threading.local()

PCG64_WORDS = 7
MT19937_WORDS = 627
#: Words of the state that a new generator of each class begins with.
WORDS = {
    np.random.Generator: PCG64_WORDS, np.random.RandomState: MT19937_WORDS,
    random.Random: MT19937_WORDS,
}
FIELDS = ("words", "kept")
_UNUSED = {2: 1, 3: 2}  # kind -> words that only make its state longer than that of PCG64


def state_of(generator: Any) -> State:
    """The state. Raises TypeError for a bit generator that NumPy does not have itself."""
    if isinstance(generator, (np.random.RandomState, random.Random)):
        memory = memory_of(generator)
        return _told(generator) if memory is None else _read(generator, memory)
    return (_words_of(generator),)


def _read(generator: Any, memory: Memory) -> State:
    words = np.empty(MT19937_WORDS, np.uint64)
    words[1:-2], words[-2:-1] = memory.words, memory.place
    if memory.kept is not None:
        words[0] = LEGACY
        words[-1:] = memory.has_kept
        return words, memory.kept.copy()
    following = generator.gauss_next
    words[0], words[-1] = PYTHON, following is not None
    return words, np.array([following or 0.0])


def _told(generator: Any) -> State:
    """The state by the methods of the classes."""
    if isinstance(generator, random.Random):
        _, numbers, following = generator.getstate()
        words = np.array([PYTHON, *numbers, following is not None], np.uint64)
        return words, np.array([following or 0.0])
    bits = type(generator._bit_generator)
    if bits is not np.random.MT19937:
        raise TypeError(f"generators with {bits.__name__} cannot be passed to a program")
    legacy: Any = generator.get_state(legacy=True)
    _, key, place, has_gauss, gauss = legacy
    words = np.array([LEGACY, *key.tolist(), place, has_gauss], np.uint64)
    return words, np.array([gauss])


def _words_of(generator: np.random.Generator) -> np.ndarray[Any, Any]:
    numbers: list[int]
    bits_of = generator.bit_generator
    if type(bits_of) not in _KINDS:
        raise TypeError(f"generators with {type(bits_of).__name__} cannot be passed to a program")
    kind = _KINDS.index(type(bits_of))
    state: Any = bits_of.state
    inner = state["state"]
    match kind:
        case 0 | 2:
            numbers = [n for v in (inner["state"], inner["inc"]) for n in (v & _LOW, v >> 64)]
        case 1:
            return np.array([kind, *inner["key"].tolist(), inner["pos"]], np.uint64)
        case 3:
            numbers = inner["state"].tolist()
        case _:
            numbers = [
                *inner["counter"].tolist(), *inner["key"].tolist(), *state["buffer"].tolist(),
                state["buffer_pos"],
            ]
    numbers += [0] * _UNUSED.get(kind, 0)
    return np.array([kind, *numbers, state["has_uint32"], state["uinteger"]], np.uint64)


def store(generator: Any, given: Sequence[Any]) -> None:
    """Give a generator this state."""
    if given[0][0] in (LEGACY, PYTHON):
        memory = memory_of(generator)
        if memory is not None:
            _write(generator, memory, given)
            return
    kind, *numbers = given[0].tolist()
    if kind == LEGACY:
        *key, place, has_gauss = numbers
        gauss = float(given[1][0])
        generator.set_state(("MT19937", np.array(key, np.uint32), place, has_gauss, gauss))
        return
    if kind == PYTHON:
        *numbers, has_gauss = numbers
        following = float(given[1][0]) if has_gauss else None
        generator.setstate((3, tuple(numbers), following))
        return
    state: dict[str, Any] = {"bit_generator": _KINDS[kind].__name__}
    if kind == 1:
        state["state"] = {"key": np.array(numbers[:-1], np.uint32), "pos": numbers[-1]}
    else:
        *numbers, state["has_uint32"], state["uinteger"] = numbers
        if kind in (0, 2):
            a, b, c, d, *_ = numbers
            state["state"] = {"state": a | b << 64, "inc": c | d << 64}
        elif kind == 3:
            state["state"] = {"state": np.array(numbers[:4], np.uint64)}
        else:
            state["state"] = {
                "counter": np.array(numbers[:4], np.uint64),
                "key": np.array(numbers[4:6], np.uint64),
            }
            state["buffer"] = np.array(numbers[6:10], np.uint64)
            state["buffer_pos"] = numbers[10]
    generator.bit_generator.state = state


def _write(generator: Any, memory: Memory, given: Sequence[Any]) -> None:
    words, kept = given
    memory.words[:], memory.place[:] = words[1:-2], words[-2:-1]
    if memory.kept is not None:
        memory.has_kept[:], memory.kept[:] = words[-1:], kept
    else:
        generator.gauss_next = float(kept[0]) if words[-1] else None


def made(state: Sequence[Any]) -> Any:
    """A new generator with this state."""
    kind = int(state[0][0])
    generator: Any
    if kind == LEGACY:
        generator = np.random.RandomState(0)
    elif kind == PYTHON:
        generator = random.Random(0)
    else:
        generator = np.random.Generator(_KINDS[kind](0))
    store(generator, state)
    return generator


def seeded(cls: type, seed: Any) -> np.ndarray[Any, Any]:
    """The words of the state that a seed gives a generator of the class."""
    return state_of(np.random.default_rng(seed) if cls is np.random.Generator else cls(seed))[0]


def drawn(method: str, state: State, scale: Any, args: tuple[Any, ...], keywords: Any) -> Any:
    """The state after a draw, and what it gave. Raises ValueError for a negative scale."""
    if scale is not None and np.any(np.less(scale, 0)):
        raise ValueError("scale < 0")
    kept = _local.__dict__.setdefault("generators", {})
    kind = int(state[0][0])
    if kind in kept:
        store(kept[kind], state)
    else:
        kept[kind] = made(state)
    if method == "places":  # of the items that random.sample takes
        size, count = args
        found = np.array(kept[kind].sample(range(size), count), np.int64)
    elif method == "order":  # what random.shuffle does to a list
        order = list(range(*args))
        kept[kind].shuffle(order)
        found = np.array(order, np.int64)
    else:
        found = getattr(kept[kind], method)(*args, **keywords)
    return *state_of(kept[kind]), found
