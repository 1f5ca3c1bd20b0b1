"""A compiled program called with Python objects.

In: flattened arguments (`infer.structure`) and a specialised, compiled program. Out: the Python
result, with the caller's arrays, lists, dicts and objects written as the function writes them.

Arrays enter as they are where a program can read them (without gaps and with their axes in the
order that it was made for, aligned, in native byte order); others are copied in, and back if they
are written, also when the program raises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.build import Build
from pyrelay.infer.arrays.device_arrays import DeviceArray, LiesElsewhereError
from pyrelay.infer.arrays.layouts import layout_of
from pyrelay.infer.nodes.datatypes import EVERYWHERE
from pyrelay.infer.result_trees import RaisedResult, assemble, nodes_of, restore
from pyrelay.infer.specialised import Binding, Specialised
from pyrelay.infer.structure import Flattened, Key, flatten
from pyrelay.ir import types
from pyrelay.records import dataclass
from pyrelay.tracebacks import frames_to_the_user

_READABLE = 0x101
"""NumPy's flags of arrays that are C-contiguous and aligned."""

_OVERLAP_WORK: Any = 10_000
"""Steps that telling two strided arrays apart may take; beyond, they count as overlapping."""


@dataclass(frozen=True, slots=True)
class Program:
    """One compiled specialisation.

    signature: the arguments it was made for, as text. spec: what it was compiled from, None where
    the program was found on disk. infer_seconds: what `infer` took.
    """

    binding: Binding
    build: Build
    signature: str
    spec: Specialised | None = None
    infer_seconds: float = 0.0
    held: list[tuple[int, ...]] = field(default_factory=list, compare=False)

    @property
    def seconds(self) -> Mapping[str, float]:
        """What each stage of compiling it took, in their order."""
        spent = {"infer": self.infer_seconds} if self.spec is not None else {}
        for step in self.build.steps:
            spent[step.stage] = spent.get(step.stage, 0.0) + step.seconds
        return spent

    def accepts(self, flat: Flattened) -> bool:
        """True if every guard holds for these leaves; appends the leaves of captured objects."""
        binding = self.binding
        if not all(guard.holds() for guard in binding.names):
            return False
        try:
            if self.captured(flat) != [hidden.key for hidden in binding.hidden]:
                return False
        except (KeyError, ValueError, AttributeError, errors.TypeMismatchError):
            return False
        if not all(_same_number(flat.leaves[k], v) for k, v in binding.static.items()):
            return False
        if any(layout_of(flat.leaves[k]) != layout for k, layout in binding.layouts.items()):
            return False
        if binding.extents:
            sizes = tuple(flat.leaves[leaf].shape[axis] for leaf, axis in binding.axes.values())
            if sizes not in self.held:
                values = dict(zip(binding.axes, sizes, strict=True))
                if not all(guard.holds(values) for guard in binding.extents):
                    return False
                self.held[:] = (sizes,)
        return True

    def captured(self, flat: Flattened) -> list[Key]:
        """Append the leaves of the objects that the program reads; their keys. They are taken apart
        as it needs them, which arguments may not have asked for."""
        given = flat.apart, flat.families
        flat.apart, flat.families = self.binding.apart, self.binding.families or EVERYWHERE
        try:
            return [
                flatten([(hidden.read(), hidden.name)], flat, captured=True)
                for hidden in self.binding.hidden
            ]
        finally:
            flat.apart, flat.families = given

    def caller(self) -> Callable[[Flattened], Any]:
        """A function that runs the program on leaves it accepts, and gives the Python result."""
        from pyrelay.devices.runtime.entry import MISMATCH

        binding, kept, run = self.binding, self.binding.kept, self.build.run
        names = [binding.leaf_names[k] for k in binding.parameters]
        place = binding.placed_leaves
        numbers = {leaf: r for leaf, r in binding.mutated.items() if leaf not in place}
        columns = [binding.columns[leaf] for leaf in binding.mutated if leaf in binding.columns]
        place_name = self.build.place
        used = {*binding.read, *binding.mutated}
        position = {leaf: k for k, leaf in enumerate(binding.parameters)}
        taken = [(k, n, binding.turned.get(k, ())) for k, n in zip(
            binding.parameters, names, strict=True
        )]
        on_host = place_name.partition(":")[0] != "cuda" and binding.has_arrays

        def call(flat: Flattened) -> Any:
            leaves = flat.leaves
            if flat.on_device and on_host:
                raise _on_a_gpu(flat, place_name)
            unread = _check_written(binding, flat, used) if binding.mutated else ()
            if flat.pools:
                _check_reused(binding, flat)
            given = [prepared(leaves[k], name, order) for k, name, order in taken]
            for k in unread:
                given[position[k]] = given[position[k]].copy(order="K")
            try:
                results = run(*given)
            except LiesElsewhereError as error:
                raise _on_another_gpu(error, names, given, place_name) from None
            except Exception as error:
                if binding.loses:
                    note_lost(error)
                raise
            finally:
                for leaf, k in place.items():
                    if given[k] is not leaves[leaf]:
                        np.copyto(leaves[leaf], given[k])
                for pool, column in columns:
                    flat.pools[pool].write_back(column)
            if results is MISMATCH:
                raise NeedsStretching
            for leaf, result in numbers.items():
                array = leaves[leaf]
                target = array.value if isinstance(array, DeviceArray) else array
                target[...] = results[kept[result]]
            return outcome(binding, kept, results, flat)

        return call


class NeedsStretching(Exception):
    """A call has changed nothing, and begins again with a program that stretches arrays whose
    extents only the running program knows (infer/arrays/stretching.py)."""


def outcome(binding: Binding, kept: Mapping[int, int], results: Any, flat: Flattened) -> Any:
    """The Python result, with the caller's lists, dicts, objects and nodes as the program leaves
    them.

    kept: the binding's. results: what the compiled program gave. flat: the arguments.
    """
    numbered, made = _Numbered(results, kept), dict[Any, Any]()
    for change in binding.changes:
        parts = [assemble(c, numbered, flat, made) for c in change.children]
        restore(flat.containers[change.number], change.kind, change.names, parts)
    for assigned in binding.trees:
        nodes = nodes_of(assigned.pool, numbered, flat, made)
        assert nodes is not None
        assert assigned.pool.given is not None
        flat.pools[assigned.pool.given].assign(assigned.fields, nodes)
    return assemble(binding.result, numbered, flat, made)


def raised(
    tree: RaisedResult, kept: Mapping[int, int], results: Any, flat: Flattened
) -> None:
    """Raise what a function raises that its program could follow."""
    assemble(tree, _Numbered(results, kept), flat, {})


def note_lost(error: Exception) -> None:
    """Say on an exception of the user's program that what this had written is lost."""
    if not isinstance(error, errors.PyrelayError):
        error.add_note(_LOST)


#: What is added to an exception of a program that could not be followed to where it raises.
_LOST = (
    "pyrelay: lists, dicts and objects of the caller are as before the call; what it had written "
    "to them when it raised is lost."
)


def _same_number(now: Any, then: Any) -> bool:
    """Equal numbers, a negative zero and a NaN told from others as well; equal texts."""
    if isinstance(now, np.ndarray):
        return np.array_equal(now, then)
    return bool(now == then and str(now) == str(then)) or (now != now and then != then)


class _Numbered:
    """Results by their number in the module."""

    __slots__ = ("kept", "results")

    def __init__(self, results: Any, kept: Mapping[int, int]) -> None:
        self.results, self.kept = results, kept

    def __getitem__(self, number: int) -> Any:
        return self.results[self.kept[number]]


def prepared(leaf: Any, name: str, order: tuple[int, ...] = ()) -> Any:
    """A leaf as a program takes it: numbers as they are, arrays native and without gaps, their axes
    from the outermost in memory to the innermost in an order, or as they stand."""
    if order:
        lies = leaf.transpose(order)
        found = prepared(lies, name)
        return leaf if found is lies else found.transpose(np.argsort(order))
    if (
        type(leaf) is np.ndarray and leaf.ndim and id(leaf.dtype) in types.CANONICAL
        and leaf.flags.num & _READABLE == _READABLE
    ):  # the usual case, told by what asks least
        return leaf
    if isinstance(leaf, DeviceArray):
        return leaf if leaf.ndim else leaf.dtype.type(leaf.value.item())
    if isinstance(leaf, np.ndarray):
        if not leaf.ndim:
            return leaf[()]
        dtype = types.from_numpy(leaf.dtype)
        assert dtype is not None
        if not (leaf.flags.c_contiguous and leaf.flags.aligned and leaf.dtype.isnative):
            return np.array(leaf, dtype=dtype.numpy, order="C", subok=False)
        if type(leaf) is np.ndarray and leaf.dtype is dtype.numpy:
            return leaf
        # The same memory as an array of the one class and dtype object that programs know.
        return np.asarray(leaf).view(dtype.numpy)
    if type(leaf) is int and not -(2**63) <= leaf < 2**63:
        raise errors.InvalidValueError(
            f"{name} is {leaf}, which does not fit into 64 bits.",
            hints=("pass it as a float",),
        )
    return leaf


def _check_written(binding: Binding, flat: Flattened, used: Set[int]) -> Set[int]:
    """Refuse to write read-only arrays, and those that share memory with another that is used.

    An array that the program only replaces, as an object's view of what it updates, is not used:
    gives the leaves of such that share memory with one that is written (none in a GPU's memory).
    """
    unread = set[int]()
    arrays = [
        (k, array) for k in binding.parameters
        if isinstance(flat.leaves[k], (np.ndarray, DeviceArray))
        for array in _memory_of(binding, flat, k)
    ]
    for n, (k, written) in enumerate(arrays):
        if k not in binding.mutated:
            continue
        name = binding.leaf_names[k]
        if not _writeable(written):
            raise errors.InvalidValueError(
                f"the function writes into {name}, which is read-only.",
                hints=(f"pass a copy: {name}.copy()",),
            )
        for m, (j, other) in enumerate(arrays):
            if m != n and _overlap(written, other):
                if j not in used and isinstance(other, np.ndarray):
                    unread.add(j)
                    continue
                shared = binding.leaf_names[j]
                held = not shared.isidentifier()
                copy = f"{shared} = {shared}.copy()" if held else f"{shared}.copy()"
                raise errors.AliasError(
                    f"the function writes into {name}, which shares memory with {shared}.",
                    hints=(
                        f"pass a copy: {copy}",
                        *["where a function stored it there, let it store a copy"] * held,
                    ),
                )
    return unread


def _check_reused(binding: Binding, flat: Flattened) -> None:
    """Refuse to change trees that were packed to be used again."""
    pools = [binding.columns[leaf][0] for leaf in binding.mutated if leaf in binding.columns]
    pools += [t.pool.given for t in binding.trees if t.pool.given is not None]
    for number in pools:
        if flat.pools[number].reused:
            raise errors.InvalidValueError(
                f"the function changes nodes of a packed {flat.pools[number].schema}.",
                hints=("pass the tree itself",),
            )


def _on_a_gpu(flat: Flattened, place: str) -> errors.PyrelayError:
    names = zip(flat.leaves, flat.names, strict=True)
    name = next(name for leaf, name in names if isinstance(leaf, DeviceArray))
    return errors.DeviceError(
        f"{name} lies on a GPU, and this function runs on device {place!r}.",
        hints=("use jit(device='cuda'), or pass an array of NumPy's",),
    )


def _on_another_gpu(
    error: LiesElsewhereError, names: Sequence[str], given: Sequence[Any], place: str
) -> errors.PyrelayError:
    from pyrelay.devices.gpu.array_libraries import moved_text

    name, number = names[error.argument], error.number
    runs = f"this function runs on device {place!r}"
    if error.first >= 0:
        runs = f"{names[error.first]} on GPU {number}"
    written = moved_text(type(given[error.argument].value), name, number)
    return errors.DeviceError(
        f"{name} lies on GPU {error.home}, and {runs}.",
        hints=(f"copy it there: {written}",),
    )


def _writeable(array: Any) -> bool:
    return not array.readonly if isinstance(array, DeviceArray) else array.flags.writeable


def _memory_of(binding: Binding, flat: Flattened, leaf: int) -> list[Any]:
    """The caller's arrays that a leaf stands for: itself, or those in a field of all nodes."""
    if leaf not in binding.columns:
        return [flat.leaves[leaf]]
    pool, column = binding.columns[leaf]
    return [a for a in flat.pools[pool].arrays.get(column, ()) if a is not None]


def _overlap(a: Any, b: Any) -> bool:
    if isinstance(a, DeviceArray) or isinstance(b, DeviceArray):
        if not (isinstance(a, DeviceArray) and isinstance(b, DeviceArray)):
            return False
        (first, last), (start, end) = a.bounds, b.bounds
        return first < end and start < last
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


def warn_of_error_modes() -> None:
    """Say that compiled code goes on with inf and nan where NumPy would raise or call."""
    modes = [f"{name}={mode!r}" for name, mode in np.geterr().items() if mode in ("raise", "call")]
    if modes:
        warnings.warn(
            f"np.seterr({modes[0]}) does not reach compiled code, which goes on with inf and nan; "
            "test its results: if not np.all(np.isfinite(y)): raise ...",
            RuntimeWarning, stacklevel=frames_to_the_user(),
        )
