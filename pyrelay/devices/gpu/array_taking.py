"""Arrays of a device as arguments: the words of a call, with nothing made on the way.

In: the parameters of a plan, and a class of arrays: CuPy's, PyTorch's or JAX's. Out: a Python
function, written for these, that asks the arrays for what a program has to know; and one that also
finds what does such a call again (`recorded_calls`).
`__cuda_array_interface__`, by which arrays of all libraries are known, is a dict with texts and
tuples that takes longer than a launch.
"""

from __future__ import annotations

import importlib
import itertools
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pyrelay.devices.gpu.array_libraries import home_of_jax, library_of
from pyrelay.devices.gpu.driver import ADDRESS, Taken
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.words import encode
from pyrelay.records import dataclass

_MOST_PAIRS = 64
"""Pairs of an array that is written and another one, which must not share memory."""

FIXED, NUMBER = "fixed", "number"
"""Words of arguments besides `ADDRESS`: extents and integers, by which calls are known again; and
numbers that may be others at each call."""

_REAL = ("bool", "complex")

_FLOAT, _WORD = struct.Struct("<d"), struct.Struct("<q")


class Calls(Protocol):
    """What `again` asks of calls that are done again (`recorded_calls.RecordedCalls`)."""

    roles: tuple[str, ...]
    table: dict[tuple[Any, ...], list[Callable[..., Any]]]
    looks_at_precision: bool

    def note(self, key: tuple[Any, ...]) -> list[Callable[..., Any]]: ...

    def otherwise(self, *arguments: Any) -> Any: ...

    def current(self) -> Any: ...

    def beside(self, kind: type) -> AbstractContextManager[Any]: ...

    def lend(self, arrays: Sequence[Any]) -> None: ...

    def precision(self) -> str: ...


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
    writer = _written(parameters, kind, own, device, several)
    if writer is None:
        return None
    names = writer.names
    sizes = ", ".join(f"p{a}: {size}" for a, size in writer.sizes.items())
    exec("\n".join([
        f"def take({', '.join(f'a{k}' for k in range(len(parameters)))}):",
        f"    if not ({' and '.join(writer.tests)}): return None",
        *(f"    {line}" for line in writer.lines),
        *(f"    if {test}: return None" for test in (*writer.refused, *writer.pairs())),
        f"    return ({''.join(f'{w.text}, ' for w in writer.words)}), {{{sizes}}}",
    ]), names)
    made: Callable[..., Taken | None] = names["take"]
    return made


def again(
    parameters: Sequence[boundary.Parameter], kind: type, own: type, device: int, several: bool,
    calls: Calls,
) -> Callable[..., Any] | None:
    """A function that does calls again where `calls` has what does so, by the words that calls
    share: extents and integers. None where `taking` has none."""
    writer = _written(parameters, kind, own, device, several)
    if writer is None:
        return None
    calls.roles = tuple(word.role for word in writer.words)
    key = [word.text for word in writer.words if word.role == FIXED]
    key += [*["precision()"] * calls.looks_at_precision, "current().ptr"]
    moving = [word.text for word in writer.words if word.role != FIXED]
    given = "".join(f"a{k}, " for k in range(len(parameters)))
    run = f"made({', '.join([f'({given})', *moving])})"
    done = [f"return {run}"]
    if kind is not own or several:
        done = [f"result = {run}", f"lend(({given}))", "return result"]
    found = [
        f"waiting = table.get(({', '.join(key)}, ))",
        f"if waiting is None: waiting = note(({', '.join(key)}, ))",
        "if waiting:",
        "    try: made = waiting.pop()",
        "    except IndexError: pass",  # another thread has it
        "    else:",
        "        try:", *(f"            {line}" for line in done),
        "        finally: waiting.append(made)",
    ]
    if kind is not own or several:
        found = ["with beside(array):", *(f"    {line}" for line in found)]
    refused = " or ".join([*writer.refused, *writer.pairs()]) or "False"
    names = {
        **writer.names, "table": calls.table, "note": calls.note, "otherwise": calls.otherwise,
        "current": calls.current, "beside": calls.beside, "lend": calls.lend,
        "precision": calls.precision,
    }
    exec("\n".join([
        f"def direct({given}):", f"    if {' and '.join(writer.tests)}:",
        *(f"        {line}" for line in writer.lines),
        f"        if not ({refused}):", *(f"            {line}" for line in found),
        f"    return otherwise({given})",
    ]), names)
    made: Callable[..., Any] = names["direct"]
    return made


def _written(
    parameters: Sequence[boundary.Parameter], kind: type, own: type, device: int, several: bool
) -> _Writer | None:
    """The text of what takes these parameters; None where they cannot be taken."""
    library = _asked(kind, own)
    if library is None:
        return None
    writer = _Writer(_LIBRARIES[library], _dtypes(library), device, several)
    for k, parameter in enumerate(parameters):
        writer.take(f"a{k}", parameter)
    if not writer.fits or not writer.arrays or len(writer.pairs()) > _MOST_PAIRS:
        return None
    writer.names = {
        **writer.known, "array": kind,
        "encode": encode, "packed": _FLOAT.pack, "unpacked": _WORD.unpack, "home": home_of_jax,
        "strided": importlib.import_module("torch").strided if library == "torch" else None,
    }
    return writer


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


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the arguments, as Python text, and what it is."""

    text: str
    role: str


class _Writer:
    """The text of such a function: what has to hold, lines behind that, what must not hold then,
    the words, and what the names stand for."""

    names: dict[str, Any]

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
        self.words: list[_Word] = []
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
                self.words.append(_Word(name, FIXED))
            case boundary.ScalarParameter(kind="float"):
                self.tests.append(f"type({name}) is float")
                self._number(name, f"unpacked(packed({name}))", 1, NUMBER)
            case boundary.ScalarParameter(kind=kind):
                own = {"bool": bool, "complex": complex}.get(kind) or numpy_dtype(kind).type
                self.tests.append(f"type({name}) is {self._known(own)}")
                whole = numpy_dtype(kind).kind not in "fcV" if kind not in _REAL else kind == "bool"
                role = FIXED if whole else NUMBER
                self._number(name, f"encode({kind!r}, {name})", parameter.words, role)
            case boundary.ObjectParameter(value=value):
                self.tests.append(f"{name} is {self._known(value)}")

    def _array(self, name: str, parameter: boundary.ArrayParameter) -> None:
        asked, dtype = self.asked, self.dtypes(parameter.dtype)
        if dtype is None or parameter.order or (parameter.writeable and not asked.writes):
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
        self.words.append(_Word(f"p{name}", ADDRESS))
        self.words += [_Word(extent, FIXED) for extent in extents]
        self.sizes[name] = " * ".join([*extents, str(numpy_dtype(parameter.dtype).itemsize)])

    def _number(self, name: str, encoded: str, count: int, role: str) -> None:
        """Words that a number is encoded to."""
        words = [f"w{name}_{k}" for k in range(count)]
        self.lines.append(f"{', '.join(words)}, = {encoded}")
        self.words += [_Word(word, role) for word in words]

    def pairs(self) -> list[str]:
        """What holds where an array that is written shares memory with another one."""
        ends = {a: f"p{a} + {size}" for a, size in self.sizes.items()}
        return [
            f"p{a} < {ends[b]} and p{b} < {ends[a]}"
            for a, b in itertools.combinations(self.arrays, 2)
            if self.arrays[a] or self.arrays[b]
        ]
