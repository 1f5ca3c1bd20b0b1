"""Arrays of a device as arguments: the words of a call, with nothing made on the way.

In: the parameters of a plan, and a class of arrays: CuPy's, PyTorch's or JAX's. Out: a Python
function, written for these, that asks the arrays for what a program has to know.
`__cuda_array_interface__`, by which arrays of all libraries are known, is a dict with texts and
tuples that takes longer than a launch.
"""

from __future__ import annotations

import importlib
import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.gpu.array_libraries import home_of_jax, library_of
from pyrelay.devices.gpu.driver import Taken
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.words import encode
from pyrelay.records import dataclass

_MOST_PAIRS = 64
"""Pairs of an array that is written and another one, which must not share memory."""

_FLOAT, _WORD = struct.Struct("<d"), struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a library's arrays are asked, as Python text: `{a}` is an array, `{dtype}` and `{ndim}`
    what it has to be of.

    tests: what holds of arrays that programs read as they lie. ready: a line that waits for work
    which its library has begun in no stream that it tells. address: where the elements are. home:
    the number of the device. writes: whether such arrays may be written.
    """

    tests: str
    address: str
    home: str
    ready: str = ""
    writes: bool = True


_LIBRARIES = {
    "cupy": _Asked(
        "{a}.dtype == {dtype} and {a}.ndim == {ndim} and {a}._c_contiguous", "{a}.data.ptr",
        "{a}.data.device_id",
    ),
    # Views by `conj` and `imag` are numbers that nobody has computed yet.
    "torch": _Asked(
        "{a}.dtype is {dtype} and {a}.ndim == {ndim} and {a}.is_cuda and {a}.layout is strided"
        " and {a}.is_contiguous() and not ({a}.requires_grad or {a}.is_neg() or {a}.is_conj())",
        "{a}.data_ptr()", "{a}.get_device()",
    ),
    # Its interface also tells whether the elements lie in rows.
    "jax": _Asked(
        "{a}.dtype == {dtype} and {a}.ndim == {ndim} and home({a}) >= 0",
        "{a}.__cuda_array_interface__['data'][0]", "home({a})", "{a}.block_until_ready()", False,
    ),
}  # fmt: skip


def taking(
    parameters: Sequence[boundary.Parameter], kind: type, own: type, device: int, several: bool
) -> Callable[..., Taken | None] | None:
    """A function that gives the words of arguments, and bytes by address, where each array is of
    just this class, of the dtype and the extents that the plan is for, without gaps, on this
    device, and shares no memory with one that is written; None for other arguments. own: CuPy's
    class. several: whether there are other devices.

    None where no parameter is an array, too many are written, or the class is none of CuPy's,
    PyTorch's and JAX's for arrays that programs can take.
    """
    library = _asked(kind, own)
    if library is None:
        return None
    writer = _Writer(_LIBRARIES[library], _dtypes(library), device, several)
    for k, parameter in enumerate(parameters):
        writer.take(f"a{k}", parameter)
    pairs = writer.pairs()
    if not writer.fits or not writer.arrays or len(pairs) > _MOST_PAIRS:
        return None
    names: dict[str, Any] = {
        **writer.known, "array": kind,
        "encode": encode, "packed": _FLOAT.pack, "unpacked": _WORD.unpack, "home": home_of_jax,
        "strided": importlib.import_module("torch").strided if library == "torch" else None,
    }
    sizes = ", ".join(f"p{a}: {size}" for a, size in writer.sizes.items())
    exec("\n".join([
        f"def take({', '.join(f'a{k}' for k in range(len(parameters)))}):",
        f"    if not ({' and '.join(writer.tests)}): return None",
        *(f"    {line}" for line in writer.lines),
        *(f"    if {test}: return None" for test in (*writer.refused, *pairs)),
        f"    return ({''.join(f'{w}, ' for w in writer.words)}), {{{sizes}}}",
    ]), names)
    made: Callable[..., Taken | None] = names["take"]
    return made


def homes_of(kind: type, own: type) -> Callable[[Any], int] | None:
    """A function that gives the number of the GPU on which an array of a class lies; None for
    classes whose arrays are not asked. own: CuPy's class."""
    library = _asked(kind, own)
    if library is None:
        return None
    made: Callable[[Any], int] = eval(
        f"lambda a: {_LIBRARIES[library].home.format(a='a')}", {"home": home_of_jax}
    )
    return made


def _asked(kind: type, own: type) -> str | None:
    """The library of a class of arrays that are asked; None for others."""
    library = "cupy" if kind is own else library_of(kind)
    return library if library in _LIBRARIES and (library == "cupy") == (kind is own) else None


def _dtypes(library: str) -> Callable[[str], Any]:
    """What a library calls a dtype; None where it has none of this name, or where its arrays of
    that are known in another way."""
    if library == "torch":
        torch = importlib.import_module("torch")
        return lambda name: getattr(torch, name, None)
    if library == "jax":  # whose interface tells of no bfloat16
        return lambda name: None if name == "bfloat16" else numpy_dtype(name)
    return numpy_dtype


class _Writer:
    """The text of such a function: what has to hold, lines behind that, what must not hold then,
    the words."""

    def __init__(
        self, asked: _Asked, dtypes: Callable[[str], Any], device: int, several: bool
    ) -> None:
        self.asked, self.dtypes = asked, dtypes
        self.device, self.several = device, several
        self.fits = True
        self.known: dict[str, Any] = {}
        self.tests: list[str] = []
        self.lines: list[str] = []
        self.refused: list[str] = []
        self.words: list[str] = []
        self.arrays: dict[str, bool] = {}  # whether each is written
        self.sizes: dict[str, str] = {}  # the bytes of each

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
        asked, dtype = self.asked, self.dtypes(parameter.dtype)
        if dtype is None or (parameter.writeable and not asked.writes):
            self.fits = False
            return
        self.arrays[name] = parameter.writeable
        told = asked.tests.format(a=name, dtype=self._known(dtype), ndim=parameter.ndim)
        self.tests.append(f"type({name}) is array and {told}")
        if asked.ready:
            self.lines.append(asked.ready.format(a=name))
        self.lines.append(f"p{name} = {asked.address.format(a=name)}")
        extents = [f"n{name}_{axis}" for axis in range(parameter.ndim)]
        if extents:
            self.lines.append(f"{', '.join(extents)}, = {name}.shape")
        if self.several:
            self.refused.append(f"{asked.home.format(a=name)} != {self.device}")
        self.refused += [
            f"{extent} != {wanted}"
            for extent, wanted in zip(extents, parameter.extents, strict=False)
            if wanted is not None
        ]
        self.words += [f"p{name}", *extents]
        self.sizes[name] = " * ".join([*extents, str(numpy_dtype(parameter.dtype).itemsize)])

    def pairs(self) -> list[str]:
        """What holds where an array that is written shares memory with another one."""
        ends = {a: f"p{a} + {size}" for a, size in self.sizes.items()}
        return [
            f"p{a} < {ends[b]} and p{b} < {ends[a]}"
            for a, b in itertools.combinations(self.arrays, 2)
            if self.arrays[a] or self.arrays[b]
        ]
