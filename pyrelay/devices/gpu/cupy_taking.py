"""Arrays of CuPy's as arguments: the words of a call, with nothing made on the way.

In: the parameters of a plan. Out: a Python function, written for them, that asks the arrays for
what a program has to know. `__cuda_array_interface__`, by which arrays of all libraries are known,
is a dict with texts and tuples that takes longer than a launch.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.gpu.driver import Taken
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.words import encode

_MOST_PAIRS = 64
"""Pairs of an array that is written and another one, which must not share memory."""

_FLOAT, _WORD = struct.Struct("<d"), struct.Struct("<q")


def taking(
    parameters: Sequence[boundary.Parameter], cupy: Any, device: int, several: bool
) -> Callable[..., Taken | None] | None:
    """A function that gives the words of arguments, and bytes by address, where each array is of
    CuPy's own class, of the dtype and the extents that the plan is for, without gaps, on this
    device, and shares no memory with one that is written; None for other arguments. `several`:
    whether there are other devices.

    None where no parameter is an array, or too many are written.
    """
    writer = _Writer(cupy.ndarray, device, several)
    for k, parameter in enumerate(parameters):
        writer.take(f"a{k}", parameter)
    pairs = writer.pairs()
    if not writer.arrays or len(pairs) > _MOST_PAIRS:
        return None
    names: dict[str, Any] = {
        **writer.known, "array": cupy.ndarray, "current": cupy.cuda.runtime.getDevice,
        "encode": encode, "packed": _FLOAT.pack, "unpacked": _WORD.unpack,
    }
    here = [f"current() != {device}"] if several else []
    sizes = ", ".join(f"p{a}: {a}.nbytes" for a in writer.arrays)
    exec("\n".join([
        f"def take({', '.join(f'a{k}' for k in range(len(parameters)))}):",
        f"    if not ({' and '.join(writer.tests)}): return None",
        *(f"    if {test}: return None" for test in here),
        *(f"    {line}" for line in writer.lines),
        *(f"    if {test}: return None" for test in (*writer.refused, *pairs)),
        f"    return ({''.join(f'{w}, ' for w in writer.words)}), {{{sizes}}}",
    ]), names)
    made: Callable[..., Taken | None] = names["take"]
    return made


class _Writer:
    """The text of such a function: what has to hold, lines behind that, what must not hold then,
    the words."""

    def __init__(self, array: type, device: int, several: bool) -> None:
        self.device, self.several = device, several
        self.known: dict[str, Any] = {}
        self.tests: list[str] = []
        self.lines: list[str] = []
        self.refused: list[str] = []
        self.words: list[str] = []
        self.arrays: dict[str, bool] = {}  # whether each is written

    def _known(self, value: Any) -> str:
        name = f"k{len(self.known)}"
        self.known[name] = value
        return name

    def take(self, name: str, parameter: boundary.Parameter) -> None:
        """Enter an argument."""
        match parameter:
            case boundary.ArrayParameter():
                self._array(name, parameter)
            case boundary.ScalarParameter(kind="int"):
                self.tests.append(f"type({name}) is int and -{1 << 63} <= {name} < {1 << 63}")
                self.words.append(name)
            case boundary.ScalarParameter(kind="float"):
                self.tests.append(f"type({name}) is float")
                self.words.append(f"*unpacked(packed({name}))")
            case boundary.ScalarParameter(kind=kind):
                own = {"bool": bool, "complex": complex}.get(kind) or numpy_dtype(kind).type
                self.tests.append(f"type({name}) is {self._known(own)}")
                self.words.append(f"*encode({kind!r}, {name})")
            case boundary.ObjectParameter(value=value):
                self.tests.append(f"{name} is {self._known(value)}")

    def _array(self, name: str, parameter: boundary.ArrayParameter) -> None:
        dtype = self._known(numpy_dtype(parameter.dtype))
        self.arrays[name] = parameter.writeable
        self.tests.append(
            f"type({name}) is array and {name}.dtype == {dtype} and {name}.ndim == {parameter.ndim}"
            f" and {name}._c_contiguous"
        )
        self.lines.append(f"d{name} = {name}.data")
        self.lines.append(f"p{name} = d{name}.ptr")
        extents = [f"n{name}_{axis}" for axis in range(parameter.ndim)]
        self.lines.append(f"{', '.join(extents)}, = {name}.shape")
        if self.several:
            self.refused.append(f"d{name}.device_id != {self.device}")
        self.refused += [
            f"{extent} != {wanted}"
            for extent, wanted in zip(extents, parameter.extents, strict=False)
            if wanted is not None
        ]
        self.words += [f"p{name}", *extents]

    def pairs(self) -> list[str]:
        """What holds where an array that is written shares memory with another one."""
        return [
            f"p{a} < p{b} + {b}.nbytes and p{b} < p{a} + {a}.nbytes"
            for a, b in itertools.combinations(self.arrays, 2)
            if self.arrays[a] or self.arrays[b]
        ]
