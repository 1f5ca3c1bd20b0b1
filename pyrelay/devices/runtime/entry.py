"""A plan made callable: from Python arguments to Python results with nothing of Python between.

In: an `EncodedPlan`. Out: `Executable`, whose `call(*arguments)` is a C function of CPython
(`boundary_native.py`): it checks the arguments against the plan's parameters, runs the plan without
the GIL, and builds the results. Where the arguments are not what the plan was made for, or a
`Guard` of its prologue fails, it returns `MISMATCH` and has changed nothing.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.devices.compiler import native
from pyrelay.devices.runtime import boundary_fields as fields
from pyrelay.devices.runtime.layout import ANSWERED, RECORD_WORDS, WORD, Control, Status
from pyrelay.devices.runtime.library import Runtime, runtime
from pyrelay.devices.runtime.ufunc_loops import loop_address
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.encoded import EncodedPlan, HostFunction, Site
from pyrelay.lower.planning.words import decode
from pyrelay.records import dataclass

STACK_LIMIT = 1 << 30
"""Bytes of frames at which recursion is taken to be endless."""

class _Mismatch:
    """The class of `MISMATCH`."""

    def __repr__(self) -> str:
        return "MISMATCH"


MISMATCH = _Mismatch()
"""What a call returns where its arguments do not fit."""


NOTHING = object()
"""What a guard finds where there is nothing."""

Guard = tuple[str, Any, Any, Any]
"""A kind of `GUARD_KINDS`, the object looked at, a key of it, and what is found there."""


@dataclass(frozen=True, slots=True)
class Whole:
    """How a call ends that Python's callers make.

    otherwise: takes what does not fit. failed: raises an error, given with the arguments. answer:
    ("results", None), the one result; ("results", n), the tuple of n; ("object", value), a value
    whatever the results; ("argument", k), the k'th argument. earlier: tried before `otherwise`,
    with nothing of Python between, if it is a whole call, too, and so on.
    """

    otherwise: Callable[..., Any]
    failed: Callable[..., Any]
    answer: tuple[str, Any]
    earlier: Callable[..., Any] | None = None


class Record(np.ndarray[Any, Any]):
    """Words that native code reads, as the object that owns all they are the addresses of."""

    owners: tuple[Any, ...]


class Executable:
    """A loaded plan.

    call: the C function. It keeps everything it needs alive, so it may outlive this object.
    """

    def __init__(self, plan: EncodedPlan) -> None:
        """Load the kernels and build the tables."""
        self.plan = plan
        addresses = native.kernel_addresses([kernel.source for kernel in plan.kernels])
        machine = runtime()
        if plan.parallel:
            machine.use_threads()
        self.call: Callable[..., Any] = c_function(_control(plan, addresses, machine), _method())


def _control(plan: EncodedPlan, kernels: list[int], machine: Runtime) -> Record:
    """The control record of a plan and everything it points to."""
    code, constants = plan.code.copy(), plan.constants.copy()
    for word, kernel in plan.kernel_words:
        code[word] = kernels[kernel]
    for word, ufunc in plan.ufunc_words:
        code[word : word + 2] = loop_address(plan.ufuncs[ufunc])
    arrays = [np.ascontiguousarray(array) for array in plan.arrays]
    for word, array in plan.data_words:
        constants[word] = arrays[array].ctypes.data
    for word, kernel in plan.kernel_constants:
        constants[word] = kernels[kernel]
    outside = _Outside(plan.sites, plan.hosts)
    gate = _GATE(outside.host_call)
    parameters, kept = _parameter_table(plan.parameters)
    results = _result_table(plan.results)
    lent = _lent_slots(plan.parameters)
    words = np.zeros(Control.BYTES // WORD, np.int64)
    control = words.view(Record)
    for field, value in (
        (Control.PROCESS, machine.process),
        (Control.CODE, code.ctypes.data),
        (Control.CONSTANTS_END, constants.ctypes.data + constants.nbytes),
        (Control.ENTRY_SLOTS, plan.entry_slots),
        (Control.SCRATCH_WORDS, plan.scratch_words),
        (Control.PARAMETER_COUNT, len(plan.parameters)),
        (Control.PARAMETERS, parameters.ctypes.data),
        (Control.RESULT_COUNT, len(plan.results)),
        (Control.RESULTS, results.ctypes.data),
        (Control.SINGLE, int(plan.single)),
        (Control.MISMATCH, id(MISMATCH)),
        (Control.ON_ERROR, id(raiser := outside.raise_error)),
        (Control.GATE, ctypes.cast(gate, ctypes.c_void_p).value or 0),
        (Control.NDARRAY, id(np.ndarray)),
        (Control.NEW_ARRAY, numpy_function("PyArray_NewFromDescr")),
        (Control.SET_BASE, numpy_function("PyArray_SetBaseObject")),
        (Control.NEW_SCALAR, numpy_function("PyArray_Scalar")),
        (Control.FALSE, id(False)),
        (Control.TRUE, id(True)),
        (Control.STACK_LIMIT, STACK_LIMIT),
        (Control.LENT, lent.ctypes.data),
        (Control.LENT_COUNT, len(lent)),
        (Control.NONE, id(None)),
    ):
        control[field // WORD] = value
    control.owners = (
        code, constants, arrays, raiser, gate, parameters, kept, results, lent, plan, machine,
    )  # fmt: skip
    _disposed_of(control, words, machine)
    return control


def guarded(
    call: Callable[..., Any], guards: Sequence[Guard], served: np.ndarray[Any, Any],
    whole: Whole | None = None,
) -> Callable[..., Any] | None:
    """A C function like an executable's that looks at names first, and gives MISMATCH where one
    means something else; None if `call` is none. Counts the calls it serves in `served`, an int64.

    As a `whole` call it never gives MISMATCH; None if the executable's results are others.
    """
    control = getattr(call, "__self__", None)
    if not isinstance(control, Record):
        return None
    table = np.zeros((len(guards), fields.GUARD_WORDS), np.int64)
    for row, (kind, place, key, found) in zip(table, guards, strict=True):
        number = fields.GUARD_KINDS.index(kind)
        row[:] = number, id(place), id(key), 0 if found is NOTHING else id(found)
    words = np.array(control)
    own = words.view(Record)
    for field, value in (
        (Control.IDLE, 0), (Control.GUARD_COUNT, len(guards)), (Control.GUARDS, table.ctypes.data),
        (Control.SERVED, served.ctypes.data),
    ):
        own[field // WORD] = value
    if whole is not None and not _answers(own, whole):
        return None
    own.owners = (control, table, tuple(guards), served, whole)
    _disposed_of(own, words, runtime())
    return c_function(own, _whole_method() if whole is not None else _method())


def _answers(own: Record, whole: Whole) -> bool:
    """Write into a control record how a whole call ends; false if its results are others."""
    kind, value = whole.answer
    results = int(own[Control.RESULT_COUNT // WORD])
    if kind == "results" and value not in (None, results):
        return False
    if kind == "results" and value is None and results != 1:
        return False
    for field, word in (
        (Control.SINGLE, int(kind == "results" and value is None)),
        (Control.ANSWER, id(value) if kind == "object" else 0),
        (Control.ANSWERED, value + 1 if kind == "argument" else 0),
        (Control.OTHERWISE, id(whole.otherwise)), (Control.FAILED, id(whole.failed)),
        (Control.EXCEPTION, id(Exception)), (Control.EARLIER, _self_of_whole(whole.earlier)),
    ):
        own[field // WORD] = word
    return True


def _self_of_whole(call: Callable[..., Any] | None) -> int:
    """The address of what a whole call has as its `self`; 0 if this is none."""
    own = getattr(call, "__self__", None)
    return id(own) if isinstance(own, Record) and own[Control.OTHERWISE // WORD] else 0


def _disposed_of(control: Record, words: np.ndarray[Any, Any], machine: Runtime) -> None:
    """Give back what calls have left to a control record, a view of words, when nobody has it any
    more."""
    dispose = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(machine.symbols["pyrelay_dispose"])
    # An array gives back its memory before it says that it dies (NumPy 2.5): the words stay.
    weakref.finalize(control, _dispose_of, dispose, words).atexit = False


def _dispose_of(dispose: Callable[[int], int], words: np.ndarray[Any, Any]) -> None:
    dispose(words.ctypes.data)


# ------------------------------------------------------------------------------------ tables


@functools.cache
def _descr(dtype: str) -> np.dtype[Any]:
    """The one dtype object that arrays of this dtype carry."""
    if dtype not in (*boundary.DTYPES, "bool_"):
        raise errors.InvariantError(f"The boundary knows no dtype {dtype!r}.")
    return numpy_dtype(dtype)


def _numpy_kind(dtype: str) -> str:
    """The kind of parameter that a NumPy scalar of this dtype is."""
    descr = _descr(dtype)
    if dtype == "complex128":
        return "pair"
    return ("i" if descr.kind == "i" or descr.itemsize == 8 else "u") + str(8 * descr.itemsize)


def _parameter_table(parameters: Sequence[boundary.Parameter]) -> tuple[Any, list[Any]]:
    """The entry's view of the parameters, and what has to stay alive for it."""
    table = np.zeros((max(len(parameters), 1), fields.PARAMETER_WORDS), np.int64)
    kept: list[Any] = []
    classes = {"int": int, "float": float, "bool": bool, "complex": complex}
    for row, parameter in zip(table, parameters, strict=False):
        if isinstance(parameter, boundary.ArrayParameter):
            descr = _descr(parameter.dtype)
            contiguous = 0 if parameter.order else fields.C_CONTIGUOUS
            if parameter.order and parameter.order == tuple(range(parameter.ndim))[::-1]:
                contiguous = fields.F_CONTIGUOUS
            writeable = fields.WRITEABLE if parameter.writeable else 0
            wanted = parameter.extents or (None,) * parameter.ndim
            extents = np.array([-1 if n is None else n for n in wanted], np.int64)
            order = np.array(parameter.order, np.int64)
            kept += [descr, extents, order]
            row[:] = (
                fields.PARAMETER_KINDS.index("array"), id(np.ndarray), id(descr), parameter.ndim,
                contiguous | fields.ALIGNED | writeable, extents.ctypes.data,
                order.ctypes.data if parameter.order else 0, descr.itemsize,
            )  # fmt: skip
        elif isinstance(parameter, boundary.ObjectParameter):
            kept.append(parameter.value)
            row[:2] = fields.PARAMETER_KINDS.index("object"), id(parameter.value)
        elif parameter.kind in boundary.PYTHON_SCALARS:
            row[:2] = fields.PARAMETER_KINDS.index(parameter.kind), id(classes[parameter.kind])
        else:
            kind = fields.PARAMETER_KINDS.index(_numpy_kind(parameter.kind))
            row[:2] = kind, id(_descr(parameter.kind).type)
    return table, kept


def _lent_slots(parameters: Sequence[boundary.Parameter]) -> Any:
    """The entry's slots that hold arrays which the plan may write, and so treats as its own."""
    slots, place = [], 0
    for parameter in parameters:
        if isinstance(parameter, boundary.ArrayParameter) and parameter.writeable:
            slots.append(place)
        place += parameter.words
    return np.array(slots, np.int64)


def _result_table(results: Sequence[boundary.Result]) -> Any:
    """The entry's view of the results."""
    table = np.zeros((max(len(results), 1), fields.RESULT_WORDS), np.int64)
    kinds = fields.RESULT_KINDS
    for row, result in zip(table, results, strict=False):
        if isinstance(result, boundary.ArrayResult):
            order = fields.F_CONTIGUOUS if result.order == "F" else fields.C_CONTIGUOUS
            flags = order | fields.ALIGNED | fields.WRITEABLE
            row[:] = kinds.index("array"), id(_descr(result.dtype)), result.ndim, flags
        elif isinstance(result, boundary.ViewResult):
            descr = id(_descr(result.dtype))
            row[:] = kinds.index("view"), descr, result.ndim, result.parameter
        elif isinstance(result, boundary.ParameterResult):
            row[:2] = kinds.index("parameter"), result.parameter
        elif isinstance(result, boundary.SameResult):
            row[:2] = kinds.index("same"), result.result
        elif isinstance(result, boundary.ObjectResult):
            row[:2] = kinds.index("object"), id(result.value)
        elif result.kind in boundary.PYTHON_SCALARS:
            row[:3] = kinds.index(result.kind), 0, result.words
        else:
            row[:3] = kinds.index("numpy"), id(_descr(result.kind)), result.words
    return table


# ------------------------------------------------------------------------------- C interfaces

_NUMPY_API = {"PyArray_Scalar": 60, "PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282}
"""Places in NumPy's table of C functions, which its binary interface fixes."""

_FASTCALL, _KEYWORDS, _ONE = 0x80, 0x02, 0x08

_GATE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def numpy_function(name: str) -> int:
    """The address of a function of NumPy's C interface."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(_multiarray_umath._ARRAY_API, None)
    return int(ctypes.c_int64.from_address(table + WORD * _NUMPY_API[name]).value)


@functools.cache
def _method() -> _MethodDef:
    """The one definition that executables' functions share; CPython keeps its address."""
    entry = runtime().symbols["pyrelay_entry"]
    return _MethodDef(b"compiled", entry, _FASTCALL, b"A compiled program.")


@functools.cache
def _whole_method() -> _MethodDef:
    """The definition for whole calls."""
    whole = runtime().symbols["pyrelay_whole"]
    return _MethodDef(b"compiled", whole, _FASTCALL | _KEYWORDS, b"A compiled function.")


def one_argument(address: int, doc: bytes) -> ctypes.Structure:
    """The definition of a native function of `self` and one argument."""
    return _MethodDef(b"compiled", address, _ONE, doc)


def many_arguments(address: int, doc: bytes) -> ctypes.Structure:
    """The definition of a native function of `self`, an array of arguments and how many there are.
    """
    return _MethodDef(b"compiled", address, _FASTCALL, doc)


def c_function(control: Any, method: ctypes.Structure) -> Callable[..., Any]:
    """A function of CPython with an object as its `self`, by a definition that lives on."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Callable[..., Any] = make(ctypes.addressof(method), control, None)
    return function


# ------------------------------------------------------------------------- leaving native code


_STATUSES = frozenset(Status)


class _Outside:
    """Where native code turns to Python: host calls and errors."""

    def __init__(self, sites: Sequence[Site], hosts: Sequence[HostFunction]) -> None:
        self.sites, self.hosts = sites, hosts
        self.pending: dict[int, BaseException] = {}  # by thread: what a host call raised

    def host_call(self, host: int, given: int, count: int, results: int, wanted: int) -> int:
        """The gate: words in, words out, ANSWERED and a status back; runs with the GIL."""
        try:
            words = (ctypes.c_int64 * count).from_address(given)[:] if count else []
            answer = self.hosts[host](words)
            if len(answer) != wanted:
                raise errors.InvariantError(
                    f"A host call gave {len(answer)} words; {wanted} are wanted."
                )
            for place, word in enumerate(answer):
                ctypes.c_int64.from_address(results + WORD * place).value = word
        except BaseException as error:
            self.pending[threading.get_ident()] = error
            return ANSWERED + Status.HOST
        return ANSWERED + Status.OK

    def raise_error(self, status: int, record: int) -> None:
        """Raise the Python error of a run that ended with a status."""
        if status == Status.HOST:
            raise self.pending.pop(threading.get_ident())
        if status == Status.RECURSION:
            raise RecursionError("maximum recursion depth exceeded in compiled code")
        if status == Status.MEMORY:
            raise MemoryError("no memory for an array of the program")
        if status not in _STATUSES:
            # Python raised before the first line of `host_call`, and ctypes has no result then: a
            # signal came just there, or there was no room for one more frame.
            raise KeyboardInterrupt
        words = (ctypes.c_int64 * RECORD_WORDS).from_address(record)[:]
        if status != Status.RAISED or not 0 <= words[0] < len(self.sites):
            raise errors.InvariantError(f"Compiled code ended with status {status}.")
        raise site_error(self.sites[words[0]], words[1:])


def site_error(site: Site, words: Sequence[int]) -> BaseException:
    """The exception of a site, its values read from the record's words."""
    values: list[Any] = []
    place = 0
    for kind in site.kinds:
        size = boundary.scalar_words(kind)
        values.append(decode(kind, words[place : place + size]))
        place += size
    error = errors.exception_of(site.exception, site.parts, values)
    return errors.locate(error, span=site.span)
