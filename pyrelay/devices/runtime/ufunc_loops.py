"""The loops of NumPy's generalised ufuncs, by their addresses.

In: a `Ufunc` of a plan. Out: the address of its loop for those types, and the word that the loop is
given as its own. A loop is a C function of addresses, extents, steps and that word; it needs no
interpreter, and computes what the functions of `np.linalg` and `np.fft` compute. The fields of a
ufunc are part of NumPy's C interface (`PyUFuncObject`, ufuncobject.h); what they say is compared
with what Python says.
"""

from __future__ import annotations

import ctypes
import functools
import importlib

import numpy as np

from pyrelay.errors import DeviceError
from pyrelay.lower.planning.encoded import Ufunc


class _Fields(ctypes.Structure):
    """The first fields of a `PyUFuncObject`."""

    _fields_ = (
        ("references", ctypes.c_ssize_t), ("kind", ctypes.c_void_p), ("nin", ctypes.c_int),
        ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_byte)),
    )  # fmt: skip


@functools.cache
def has_loop(ufunc: Ufunc) -> bool:
    """Whether this NumPy has the ufunc with a loop for its types, laid out as is known."""
    return _found(ufunc) is not None


def loop_address(ufunc: Ufunc) -> tuple[int, int]:
    """The address of a loop and the word that it is given.

    Raises DeviceError where `has_loop` says no.
    """
    found = _found(ufunc)
    if found is None:
        raise DeviceError(f"NumPy {np.__version__} has no loop {ufunc.name} of {ufunc.types}.")
    return found


@functools.cache
def _found(ufunc: Ufunc) -> tuple[int, int] | None:
    try:
        found = getattr(importlib.import_module(ufunc.module), ufunc.name, None)
    except ImportError:
        return None
    if not isinstance(found, np.ufunc) or ufunc.types not in found.types:
        return None
    fields, place = _Fields.from_address(id(found)), found.types.index(ufunc.types)
    said = (fields.nin, fields.nout, fields.nargs, fields.ntypes, fields.name)
    if said != (found.nin, found.nout, found.nargs, found.ntypes, found.__name__.encode()):
        return None
    letters = ufunc.types.replace("->", "")
    numbers = fields.types[place * found.nargs : (place + 1) * found.nargs]
    if numbers != [np.dtype(letter).num for letter in letters] or not fields.functions[place]:
        return None
    own = fields.data[place] if fields.data else None
    return int(fields.functions[place] or 0), int(own or 0)
