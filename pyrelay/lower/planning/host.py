"""The host gate: ops whose schedule is "host" call their NumPy meaning in Python.

In: the Let of such an op. Out: a `HostCall`, and the `Host` behind it, which takes words apart,
calls `op.numpy` with the very objects that plain Python would have (Python numbers, NumPy scalars,
arrays) and turns what it gives into words again.

An array argument is seen in its buffer, read-only, as long as the call lasts. A result array is
copied into a buffer that the plan allocated for it. Where the extents of the results are known only
when the op has run (`op.binds`), the arrays wait in the host until the plan, told the extents,
fetches them into buffers.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import errors
from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.op import Op
from pyrelay.ir.types import TensorType, Type
from pyrelay.lower.planning import boundary, words
from pyrelay.lower.planning.instructions import HostCall, Slot, Value
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


class Host:
    """A host call's function: the raw words of its arguments in, those of its results out.

    Words in: each argument's (a scalar's words; an array's address and extents), the values of the
    symbols of the attributes, the addresses of the result arrays. Words out: those of the results
    that are scalars, in order. An exception is raised as it is, with the user's line noted.
    """

    def __init__(
        self, op: Op, attrs: dict[str, Any], arguments: Sequence[TensorType],
        results: Sequence[TensorType], symbols: Sequence[Symbol], span: errors.Span | None,
    ) -> None:
        self.op, self.attrs, self.symbols, self.span = op, attrs, tuple(symbols), span
        self.arguments, self.results = tuple(arguments), tuple(results)
        self._given = [_Given.of(ty) for ty in arguments]  # a call of a library may be short
        self._made = [(ty, ty.dtype.numpy) for ty in results if ty.shape]
        self.waiting: dict[int, list[Any]] = {}  # by thread: result arrays not yet fetched

    def __repr__(self) -> str:
        return f"Host({self.op.name})"

    def __call__(self, given: Sequence[int]) -> list[int]:
        try:
            return self._called(given)
        except Exception as error:
            errors.locate(error, span=self.span)
            raise

    def _called(self, given: Sequence[int]) -> list[int]:
        taken, place = [], 0
        for each in self._given:
            taken.append(each.value(given, place))
            place += each.words
        attrs = self.attrs
        if self.symbols:
            known = dict(zip(self.symbols, given[place:], strict=False))
            attrs = {k: types.evaluate(v, known) for k, v in attrs.items()}
            place += len(self.symbols)
        value = self.op.numpy(*taken, **attrs)
        extents: Sequence[int] = ()
        if self.op.binds:
            value, extents = value
        values = (value,) if len(self.results) == 1 else tuple(value or ())
        if len(values) != len(self.results):
            raise errors.InvariantError(f"{self.op.name} gave {len(values)} results.")
        arrays = []
        out = list(extents)
        for ty, result in zip(self.results, values, strict=True):
            if ty.shape:
                arrays.append(result)
            else:
                out += words.encode(types.scalar_kind(ty), result)
        if self.op.binds:
            self.waiting[threading.get_ident()] = arrays
        else:
            self._copy(arrays, given[place:])
        return out

    def places(
        self, given: Sequence[int], *, fetching: bool = False
    ) -> tuple[list[tuple[int, int]], list[int]]:
        """Where addresses stand among the words of a call, or of `fetch`: those of argument arrays
        with their bytes, and those of result arrays."""
        if fetching:
            return [], list(range(len(given)))
        found, place = [], 0
        for each in self._given:
            if each.dtype is not None:
                extents = given[place + 1 : place + each.words]
                found.append((place, math.prod(extents) * each.dtype.itemsize))
            place += each.words
        return found, list(range(place + len(self.symbols), len(given)))

    def fetch(self, addresses: Sequence[int]) -> list[int]:
        """Copy the arrays that wait into buffers of the plan."""
        self._copy(self.waiting.pop(threading.get_ident()), addresses)
        return []

    def _copy(self, arrays: Sequence[Any], addresses: Sequence[int]) -> None:
        for (ty, dtype), array, address in zip(self._made, arrays, addresses, strict=True):
            if array.dtype != dtype or array.ndim != ty.rank:
                raise errors.InvariantError(
                    f"{self.op.name} gave {array.dtype} of {array.ndim} axes for {ty}."
                )
            if array.size:
                _at(address, dtype, array.shape)[...] = array


@dataclass(frozen=True, slots=True)
class _Given:
    """How an argument's words become its object: of an array the type of its elements, of a scalar
    what kind it is; and how many words there are."""

    dtype: np.dtype[Any] | None
    kind: str
    words: int

    @staticmethod
    def of(ty: TensorType) -> _Given:
        if ty.shape:
            return _Given(ty.dtype.numpy, "", 1 + ty.rank)
        kind = types.scalar_kind(ty)
        return _Given(None, kind, boundary.scalar_words(kind))

    def value(self, given: Sequence[int], place: int) -> Any:
        """The object of the argument whose words begin at a place."""
        end = place + self.words
        if self.dtype is None:
            return words.scalar(self.kind, given[place:end])
        array = _at(given[place], self.dtype, given[place + 1 : end])
        array.flags.writeable = False
        return array


def _at(address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The array whose elements lie at an address."""
    size = dtype.itemsize * math.prod(shape)
    if not size:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)


# -- planning --------------------------------------------------------------------------------------


def host_call(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan an op that Python computes."""
    symbols = tuple(
        dict.fromkeys(s for v in call.attrs.values() for s in walk.attr_symbols(v))
    )
    arguments = [_tensor(a.type) for a in call.args]
    results = [_tensor(out.type) for out in let.outs]
    host = Host(call.op, dict(call.attrs), arguments, results, symbols, let.span)
    given: list[Value] = []
    for atom, ty in zip(call.args, arguments, strict=True):
        given += p.value(atom)
        given += p.sizes.values(ty.shape)
    given += p.sizes.values(tuple(map(dims.of, symbols)))
    extents = p.frame.words(len(let.dims))
    addresses: list[Value] = []
    if not call.op.binds:
        addresses = _buffers(p, let)
    scalars = [slot for out in let.outs if not is_array(out) for slot in p.fresh(out)]
    _call(p, host, [*given, *addresses], (*extents, *scalars))
    if call.op.binds:
        p.sizes.bind({s: Slot(k) for s, k in zip(let.dims, extents, strict=True)})
        _call(p, host.fetch, _buffers(p, let), ())


def _buffers(p: FunctionPlanner, let: Let) -> list[Value]:
    """Fresh buffers for the arrays among the results: their addresses."""
    addresses: list[Value] = []
    for out in let.outs:
        if is_array(out):
            slot = p.allocate(out.type)
            p.define(out, (slot,))
            addresses.append(Slot(slot))
    return addresses


def _call(
    p: FunctionPlanner, host: Callable[[Sequence[int]], Sequence[int]], given: Sequence[Value],
    results: Sequence[int],
) -> None:
    p.program.hosts.append(host)
    p.frame.emit(HostCall(len(p.program.hosts) - 1, tuple(given), tuple(results)))


def _tensor(ty: Type | None) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty
