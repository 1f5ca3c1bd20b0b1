"""Heads of functions in CUDA C++: names and types of a kernel's parameters.

In: a kernel. Out: text. Arrays and slots are pointers, scalars and extents stand by value.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    BOUND,
    EXTENT,
    OUTPUT,
    PRODUCT,
    ROW,
    SCALAR,
    SCRATCH,
    SLOT,
    Array,
    Assign,
    Body,
    Kernel,
    Load,
    Local,
    Parameter,
    Pointed,
    Read,
    Store,
    statements,
)
from pyrelay.lower.text.spelling import fresh

_PREFIX = {
    PRODUCT: "c", BOUND: "b", ARRAY: "a", SCALAR: "s", EXTENT: "n", OUTPUT: "o", SLOT: "r",
    SCRATCH: "t", ROW: "w",
}  # fmt: skip

#: Parameters that are passed by value.
BY_VALUE = (SCALAR, EXTENT, BOUND)

_WIDTH = 96


def parameter_names(kernel: Kernel) -> dict[Parameter, str]:
    """What the parameters of a kernel are called."""
    counts: dict[str, int] = {}
    names: dict[Parameter, str] = {}
    for parameter in kernel.parameters:
        names[parameter] = fresh(counts, _PREFIX[parameter.role])
    return names


def stored(kernel: Kernel) -> set[Array]:
    """The arrays that a kernel writes, and those whose address it may write to."""
    found: set[Array] = set()
    for statement in statements(kernel.body):
        if isinstance(statement, Store):
            found.add(statement.array)
        elif isinstance(statement, Read):
            found.add(statement.parameter)
    return found


def addresses(body: Body) -> dict[Local, DType]:
    """The scalars that hold addresses of arrays, and what those are arrays of."""
    found: dict[Local, DType] = {}
    sources: dict[Local, list[Local]] = {}
    for statement in statements(body):
        match statement:
            case Load(array=Pointed() as array) | Store(array=Pointed() as array):
                found[array.address] = array.dtype
            case Assign(variable=variable, value=Local() as value):
                sources.setdefault(variable, []).append(value)
    pending = list(found)
    while pending:
        local = pending.pop()
        for source in sources.get(local, ()):
            if source not in found:
                found[source] = found[local]
                pending.append(source)
    return found


def kernel_head(
    kernel: Kernel, names: dict[Parameter, str], on_device: frozenset[Parameter],
    more: Sequence[str] = (),
) -> str:
    """The head of a kernel's function; scalars of `on_device` are passed by their addresses. `more`
    parameters stand behind the range."""
    declared = ["pyrelay_record *record", "i64 launch", "i64 first", "i64 last", *more]
    for parameter, kind in parameter_types(kernel).items():
        if parameter in on_device:
            declared.append(f"const i64 *{names[parameter]}_at")
        else:
            declared.append(f"{kind} {names[parameter]}".replace("* ", "*"))
    return head('extern "C" __global__ void kernel', declared)


def parameter_types(kernel: Kernel) -> dict[Parameter, str]:
    """How C++ declares the parameters of a kernel."""
    written = stored(kernel)
    found: dict[Parameter, str] = {}
    for parameter in kernel.parameters:
        kind = parameter.dtype.name
        if parameter.role == SLOT:
            kind = "i64 *"
        elif parameter.role not in BY_VALUE:
            kind = f"Buffer<{kind if parameter in written else 'const ' + kind}>"
        found[parameter] = kind
    return found


def routine_head(number: int, declared: Sequence[str]) -> str:
    """The head of a routine's function."""
    return head(f"__device__ int routine{number}", declared).rstrip()


def head(start: str, declared: Sequence[str]) -> str:
    """A name with its parameters, in lines that are not too long."""
    line = f"{start}({', '.join(declared)}) "
    if len(line) <= _WIDTH:
        return line
    listed = textwrap.wrap(", ".join(declared), _WIDTH - 4, break_long_words=False)
    return start + "(\n    " + "\n    ".join(listed) + "\n) "
