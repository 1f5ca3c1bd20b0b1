"""Kernels that make the elements of rows, as functions of a row and a column.

In: a kernel that stores one result, and what its parameters are. Out: the kernel whose item is one
element, if each is computed without the others: of all rows one after the other, or, with a
parameter more, of a row's loop over columns. What is computed for a row is computed for each
element then, so that it has to be little. Checks of positions that are known to be looked at before
are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    SCALAR,
    Body,
    Compute,
    Fail,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
)
from pyrelay.ops.index import OUT_OF_BOUNDS
from pyrelay.records import dataclass

COLUMN = Parameter(EXTENT, 1 << 30, i64)
"""The parameter that says which element of a row it is."""

_MOST_LOADS = 6  # of an element
_LITTLE = frozenset((
    "add", "subtract", "multiply", "negative", "where", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal", "logical_or", "logical_and", "logical_not", "minimum",
    "maximum",
))  # fmt: skip
"""Primitives that take no longer than finding what they are done to."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is known of a kernel's parameters: the extent of an EXTENT; for an ARRAY the axis whose
    positions it holds, if those are looked at before, and the extents of these axes; the number of
    rows, and of elements in one."""

    extent: Callable[[Parameter], Extent | None]
    axis: Callable[[Parameter], int | None]
    axes: tuple[Extent, ...]
    rows: Extent
    width: Extent


def row_element(kernel: Kernel, kernel_extent: Extent, given: Given) -> Kernel | None:
    """The kernel whose item is one element: of a row if COLUMN is among its parameters, else of
    all; None if there is none. The kernel's own parallel axis is so long."""
    if kernel.routines or not isinstance(kernel.body[-1], For):
        return None
    whole, known = kernel.body[-1], dict[Local, Statement]()
    roles = {p.role for p in kernel.parameters}
    outputs = [p for p in kernel.parameters if p.role == OUTPUT]
    if len(outputs) != 1 or not roles <= {ARRAY, EXTENT, SCALAR, OUTPUT}:
        return None
    if (whole.start, whole.stop) != (kernel.begin, kernel.end):
        return None
    inner = whole.body[-1]
    body = _checked(whole.body, whole.index, kernel, given, known, kernel.body[:-1])
    if body is None:
        return None
    if isinstance(inner, Store):
        elements = dims.multiply(given.rows, given.width)
        if kernel_extent != elements or inner.index is not whole.index:
            return None
        parameters, element = kernel.parameters, body
    else:
        found = _column(inner, whole.index, known, given)
        if found is None or kernel_extent != given.rows or not _is_little(body[:-1]):
            return None
        parameters = (*kernel.parameters, COLUMN)
        element = (*body[:-1], Read(found.index, COLUMN), *found.body)
    if sum(isinstance(s, Load) for s in element) > _MOST_LOADS:
        return None
    return replace(
        kernel, parameters=parameters, body=(*kernel.body[:-1], replace(whole, body=element)),
        sites=(),
    )


def _checked(
    body: Body, item: Local, kernel: Kernel, given: Given, known: dict[Local, Statement],
    before: Body,
) -> Body | None:
    """The body of the loop over items without checks that were made before; None if it does more
    than compute. `known` gets what makes each scalar."""
    for statement in before:
        if not isinstance(statement, Compute | Read):
            return None
        known[statement.out] = statement
    kept: list[Statement] = []
    for statement in body[:-1]:
        if isinstance(statement, Fail):
            if not _is_looked_at(statement, item, kernel, given, known):
                return None
            continue
        if not isinstance(statement, Compute | Load | Read):
            return None
        known[statement.out] = statement
        kept.append(statement)
    return (*kept, body[-1])


def _is_looked_at(
    fail: Fail, item: Local, kernel: Kernel, given: Given, known: dict[Local, Statement]
) -> bool:
    """Whether a check says again that an index of the item lies in its axis."""
    site = kernel.sites[fail.site]
    if (site.exception, site.parts) != ("IndexError", OUT_OF_BOUNDS):
        return False
    position, _, extent = fail.values
    loaded = known.get(position) if isinstance(position, Local) else None
    if not isinstance(loaded, Load) or loaded.index is not item:
        return False
    axis = given.axis(loaded.array) if isinstance(loaded.array, Parameter) else None
    return axis is not None and _extent(extent, known, given) == given.axes[axis]


def _extent(
    operand: Operand, known: dict[Local, Statement], given: Given
) -> Extent | None:
    if isinstance(operand, Literal):
        return int(operand.value)
    read = known.get(operand)
    return given.extent(read.parameter) if isinstance(read, Read) else None


def _column(
    inner: Statement, row: Local, known: dict[Local, Statement], given: Given
) -> For | None:
    """The loop over a row's columns, if it stores each at its place."""
    if not isinstance(inner, For) or inner.rescaled is not None or not inner.body:
        return None
    if not isinstance(inner.start, Literal) or inner.start.value != 0:
        return None
    if _extent(inner.stop, known, given) != given.width:
        return None
    *made, store = inner.body
    if not isinstance(store, Store) or not all(isinstance(s, Compute | Load) for s in made):
        return None
    for statement in made:
        assert isinstance(statement, Compute | Load)
        known[statement.out] = statement
    place = known.get(store.index) if isinstance(store.index, Local) else None
    if not isinstance(place, Compute) or place.primitive != "add":
        return None
    begin, column = place.args
    start = known.get(begin) if isinstance(begin, Local) else None
    if column is not inner.index or not isinstance(start, Compute):
        return None
    if start.primitive != "multiply" or start.args[0] is not row:
        return None
    return inner if _extent(start.args[1], known, given) == given.width else None


def _is_little(body: Body) -> bool:
    """Whether what is computed for a row may be computed for each of its elements."""
    return all(not isinstance(s, Compute) or s.primitive in _LITTLE for s in body)
