"""`vjp`: the value of a function, and a pullback that does not run it again.

In: a function and arguments. Out: its value, and a callable that takes cotangents of the value to
those of the arguments. The program of both is compiled as two (`grad.splitting`): the first gives
the value and the residuals, arrays and numbers that the second reads with the cotangents. What
cannot be split (a `while` loop or a recursion keeps a tape, which is gone once it is read), and
cotangents that are not of the value's structure, go to a program that runs the function again.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.boundary import prepared
from pyrelay.compiled import Compiled
from pyrelay.infer.result_trees import (
    ConstantResult,
    LeafResult,
    NodeResult,
    ResultTree,
    SharedResult,
    assemble,
)
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir.types import TensorType, bf16
from pyrelay.lower.planning.encoded import EncodedPlan
from pyrelay.records import dataclass

_READABLE = 0x101
"""NumPy's flags of arrays that are C-contiguous and aligned."""


class WithPullback(Compiled):
    """A function that gives its value, the residuals, and the backward half of its program.

    The backward half is None where there is none: the value is then that of the function alone.
    """

    def _specialised(
        self, args: Sequence[Any], keywords: Mapping[str, Any], place: str | None = None
    ) -> Any:
        try:
            made = _halved(super()._specialised(args, keywords, place), args, place)
        except errors.PyrelayError:  # which the function itself, or its pullback, raises again
            made = None
        if made is not None:
            return made
        function = self.__pyrelay__[1]
        alone = Compiled("jit", function, {}, self.device)._specialised(args, keywords, place)
        parts = (alone.binding.result, ConstantResult(()), ConstantResult(None))
        return replace(
            alone, binding=replace(alone.binding, result=NodeResult("tuple", None, (), parts))
        )


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward half of a program.

    run: takes residuals and cotangents, gives the leaves of `result`. encoded: its plan, where it
    can be kept on disk. residuals: the leaf of the arguments that each of those is, and the order
    of its axes (`Binding.turned`), None for one that the forward half gives. places: the structure
    of the value, with the number of the cotangent at each floating leaf and None at others. types:
    of the cotangents.
    """

    run: Callable[..., Any]
    encoded: EncodedPlan | None
    result: NodeResult
    residuals: tuple[tuple[int, tuple[int, ...]] | None, ...]
    places: Any
    types: tuple[TensorType, ...]

    def __reduce__(self) -> Any:
        if self.encoded is None:
            raise pickle.PicklingError("this program is for its device")
        return _loaded, (self.encoded, self.result, self.residuals, self.places, self.types)

    def __call__(self, *given: Any) -> Any:
        """The cotangents of the arguments."""
        return assemble(self.result, self.run(*given), Flattened(), {})

    @property
    def quick(self) -> Callable[..., Any]:
        """The same, without a look at the tree of the result where that is a tuple of the leaves.
        """
        parts = self.result.children
        order = [c.index if isinstance(c, LeafResult) else None for c in parts]
        return self.run if order == [*range(len(parts))] else self


def _loaded(encoded: EncodedPlan, *more: Any) -> Backward:
    """A backward half that was kept on disk."""
    from pyrelay.devices.runtime.entry import Executable

    return Backward(Executable(encoded).call, encoded, *more)


class Pullback(functools.partial[Any]):
    """What `vjp` returns: takes a cotangent of the value to those of the arguments.

    Inside of programs, where it is a `functools.partial`, it runs the function again.
    """

    _half: Backward
    _given: tuple[Any, ...]
    _shapes: list[tuple[int, ...]]

    def __call__(self, /, *cotangents: Any, **keywords: Any) -> Any:
        if len(cotangents) == 1 and not keywords:
            run, residuals = self._backward
            seeds = _fitted(self._half, self._shapes, cotangents[0])
            if seeds is not None:
                return run(*residuals, *seeds)
        return super().__call__(*cotangents, **keywords)

    @functools.cached_property
    def _backward(self) -> tuple[Callable[..., Any], list[Any]]:
        """The program of the backward half, and its residuals."""
        flat, given = Flattened(), iter(self._given)
        flatten([(v, "") for v in self.args[0]], flat)
        found = [
            next(given) if k is None else _as_it_lies(flat.leaves[k[0]], k[1])
            for k in self._half.residuals
        ]
        return self._half.quick, [prepared(v, "a residual") for v in found]

    def __reduce__(self) -> Any:
        return functools.partial, (self.func, *self.args)

    def __deepcopy__(self, memo: Any) -> Pullback:
        return self

    def __copy__(self) -> Pullback:
        return self


def _as_it_lies(leaf: Any, order: tuple[int, ...]) -> Any:
    return leaf.transpose(order) if order else leaf


def with_pullback(
    forward: Compiled, again: Compiled, alone: Compiled, primals: tuple[Any, ...]
) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its pullback.

    again: the pullback that runs the function, of the arguments and a cotangent. alone: the
    function, for arguments that share memory which it writes.
    """
    kept = copy.deepcopy(primals)
    try:
        value, given, half = forward(*primals)
    except errors.AliasError:
        value, given, half = alone(*primals), (), None
    if half is None:
        return value, functools.partial(again, kept)
    differentiated = value[0] if forward.__pyrelay__[2]["has_aux"] else value
    shapes: list[tuple[int, ...]] = [()] * len(half.types)
    for number, array in _pairs(half.places, differentiated):
        shapes[number] = np.shape(array)
    pullback = Pullback(again, kept)
    pullback._half, pullback._given, pullback._shapes = half, given, shapes
    return value, pullback


# -- cotangents ------------------------------------------------------------------------------------


class _DiffersError(Exception):
    """A cotangent is not of the structure of the value."""


def _pairs(places: Any, given: Any) -> Iterator[tuple[int, Any]]:
    """What a structure has where another has numbers; None stands for any part."""
    if places is None or given is None:
        return
    if type(places) is int:
        yield places, given
        return
    if type(given) is not type(places):
        raise _DiffersError
    parts, others = _inside(places), _inside(given)
    if list(parts) != list(others):
        raise _DiffersError
    for name, part in parts.items():
        yield from _pairs(part, others[name])


def _inside(structure: Any) -> Mapping[Any, Any]:
    if isinstance(structure, (tuple, list)):
        return dict(enumerate(structure))
    if isinstance(structure, dict):
        return structure
    if is_dataclass(structure):
        return {f.name: getattr(structure, f.name) for f in fields(structure)}
    return vars(structure)


def _fitted(half: Backward, shapes: Sequence[tuple[int, ...]], cotangent: Any) -> list[Any] | None:
    """The cotangents as the backward half takes them; None if they are to be looked at again."""
    wanted = half.types[0].dtype.numpy if half.places == 0 else None
    if type(cotangent) is np.ndarray and cotangent.dtype is wanted and cotangent.shape == shapes[0]:
        return [_as_type(cotangent, half.types[0], shapes[0])]  # the usual case
    seeds: list[Any] = [None] * len(half.types)
    try:
        for number, given in _pairs(half.places, cotangent):
            one = _as_type(given, half.types[number], shapes[number])
            seeds[number] = one if seeds[number] is None else seeds[number] + one
    except (_DiffersError, TypeError):
        return None
    for number, seed in enumerate(seeds):
        if seed is None:
            zeros = np.zeros(shapes[number], half.types[number].dtype.numpy)
            seeds[number] = _as_type(zeros, half.types[number], shapes[number])
    return seeds


def _as_type(given: Any, ty: TensorType, shape: tuple[int, ...]) -> Any:
    """A number or an array of a type and a shape."""
    wanted = ty.dtype.numpy
    if type(given) is not np.ndarray:
        if not isinstance(given, (bool, int, float, complex, np.generic)):
            raise _DiffersError
        given = np.asarray(given)
    if given.shape != shape:
        raise _DiffersError
    if given.dtype is not wanted and given.dtype != wanted:
        complex_of_real = given.dtype.kind == "c" and wanted.kind != "c"
        if given.dtype.kind not in "biufc" or complex_of_real or ty.dtype is bf16:
            raise _DiffersError
        given = given.astype(wanted)
    if shape:
        return given if given.flags.num & _READABLE == _READABLE else given.copy()
    return given.item() if ty.weak else given[()]


# -- programs --------------------------------------------------------------------------------------


def _halved(spec: Any, args: Sequence[Any], place: str | None) -> Any | None:
    """The forward half, whose result has residuals and the backward half behind the value."""
    from pyrelay.grad.splitting import split
    from pyrelay.opt.inline import inline
    from pyrelay.pipeline import CLEAN, compiled, lowered

    binding = spec.binding
    tree, count = binding.result, len(binding.parameters)
    if not isinstance(tree, NodeResult) or (place or "").partition(":")[0] == "cuda":
        return None
    value, cotangents, places = tree.children
    numbers = _numbers(cotangents)
    if numbers is None:
        return None
    module = lowered(spec.module, "grad", None, place)
    for each in (inline, *CLEAN):
        module = each(module)
    flat = Flattened(apart=binding.apart)
    flatten([(v, "") for v in args], flat)
    plain = not binding.columns and binding.families is None and flat.apart == Flattened().apart
    kept = [k for k, n in enumerate(binding.parameters) if plain and n < len(flat.leaves)]
    types = tuple(p.type for p in spec.module.main.params[count:])
    found = split(module, len(types), numbers, kept)
    if found is None:
        return None
    given = found.forward.main.body.results[binding.result_count :]
    residuals = [
        LeafResult(binding.result_count + k, v.type) for k, v in enumerate(given)
        if isinstance(v.type, TensorType)
    ]
    again = replace(
        binding, hidden=(), static={}, parameters=(), mutated={}, changes=(), extents=(),
        names=(), trees=(), writes=(), placed={}, read=(), turned={}, result_count=len(numbers),
    )
    order = {number: k for k, number in enumerate(numbers)}
    build = compiled(replace(spec, module=found.backward, binding=again, conditions=()), place)
    gradients = _renumbered(cotangents, order)
    assert isinstance(gradients, NodeResult)
    half = Backward(
        build.run, build.encoded, gradients,
        tuple(
            None if k is None else (leaf := binding.parameters[k], binding.turned.get(leaf, ()))
            for k in found.residuals
        ),
        assemble(places, (), Flattened(), {}), types,
    )
    parts = (value, NodeResult("tuple", None, (), tuple(residuals)), ConstantResult(half))
    return replace(
        spec, module=found.forward, binding=replace(
            binding, result=NodeResult("tuple", None, (), parts),
            result_count=binding.result_count + len(given),
        ),
    )


def _numbers(tree: ResultTree) -> list[int] | None:
    """The results that a tree is made of, each once; None if it is made of more than these."""
    found: dict[int, None] = {}
    pending: list[ResultTree] = [tree]
    while pending:
        match pending.pop():
            case LeafResult(index):
                found[index] = None
            case NodeResult(_, _, _, children):
                pending += children
            case ConstantResult() | SharedResult():
                pass
            case _:
                return None
    return list(found)


def _renumbered(tree: ResultTree, order: Mapping[int, int]) -> ResultTree:
    match tree:
        case LeafResult(index, ty):
            return LeafResult(order[index], ty)
        case NodeResult(children=children):
            return replace(tree, children=tuple(_renumbered(c, order) for c in children))
    return tree
