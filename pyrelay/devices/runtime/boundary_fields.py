"""Kinds, places and flags that the native entry and the tables made for it agree on.

In: nothing. Out: constants. The places are byte offsets of fields in CPython's and NumPy's
objects, from their public headers.
"""

from __future__ import annotations

from pyrelay.lower.planning.opcodes import MEMORY

PARAMETER_WORDS = 8
"""Words of a parameter's entry: kind, class or object, descr, ndim, flags, extents, the order of
its axes in memory (0: as they stand), bytes of an element."""

RESULT_WORDS = 4
"""Words of a result's entry: kind; descr, object or number; ndim or words taken; flags or base."""

PARAMETER_KINDS = ("array", "int", "float", "bool", "complex", "object", *MEMORY, "pair")
"""`MEMORY` names: a NumPy scalar of that width; "pair": two words, complex128."""

RESULT_KINDS = (
    "array", "view", "int", "float", "bool", "complex", "numpy", "parameter", "same", "object",
)  # fmt: skip

GUARD_WORDS = 4
"""Words of a guard's entry: kind, the object looked at, a key of it, and the object found there, 0
where there is none."""

GUARD_KINDS = ("item", "code", "defaults", "cell", "setting")
"""What is looked at: an item of a dict, the code or defaults of a function, what a cell has, the
value of a context variable (None as long as a list is empty that says where it was set)."""

OBJECT_CLASS = 8
SCALAR_VALUE = 16
CELL_CONTENT = 16
LIST_LENGTH = 16
ARRAY_DATA = 16
ARRAY_NDIM = 24
ARRAY_EXTENTS = 32
ARRAY_STRIDES = 40
ARRAY_DESCR = 56
ARRAY_FLAGS = 64

C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
