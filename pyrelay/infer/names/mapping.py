"""`pyrelay.vmap`: a function called for each example, as a loop of the program itself.

In: the mapped function, what `in_axes` and `out_axes` say, and the arguments of a call. Out: the
loops of `in_python/examples.py` around calls of the function with views of the arguments, so that
branches, loops and errors are those of each example, and results of the structure that the
function returns, whose leaves are arrays of all examples.

The shapes of results are learned from a call with any index, of which nothing stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import calls, needs
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.arrays.subscripts import get_item
from pyrelay.infer.flow import handling
from pyrelay.infer.in_python import examples
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.wrappers import parameters_of
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Let, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

_ALL = V.Slice(V.NONE, V.NONE, V.NONE)


@dataclass(frozen=True, slots=True)
class _Result:
    """A part of what the mapped function returns: a leaf, something known, or a structure.

    head: what the values of the examples must share, and what the structure is rebuilt from.
    leaf: the type that arrays for the leaf have elements of. axis: where their axis of examples
    goes, None for a leaf that does not differ between examples.
    """

    head: Any
    children: tuple[_Result, ...] = ()
    leaf: TensorType | None = None
    axis: int | None = 0


@handles(examples.mapped)
@keeps_unions
def mapped(
    it: Interpreter, function: V.Value, in_axes: V.Value, out_axes: V.Value, *args: V.Value,
    **keywords: V.Value,
) -> V.Value:
    """vmap(function, in_axes, out_axes)(*args, **keywords).

    Raises InvalidValueError for axes that do not fit arguments or results, and where nothing is
    mapped; ShapeError for arguments of different numbers of examples.
    """
    axes, names = _axes(it, function, in_axes, args, keywords)
    count = _count(it, [*args, *keywords.values()], axes, names)
    given = V.Tuple(args), V.Tuple(tuple(keywords.values()))
    held = (function, V.Known((axes, tuple(keywords), names)), *given)
    result, open_shapes = _tried(it, held, _known(it, out_axes, "out_axes"))
    call = V.Partial(V.Known(examples.example), (*held, V.Known(result)), ())
    leaves = [] if result is None else list(_leaves_of(result))
    examples_count = V.Scalar.of_extent(count)
    if open_shapes:
        arrays = _listed(it, call, examples_count, leaves)
    else:
        arrays = [_room(it, leaf, count) for leaf in leaves]
        apart, same = _parted(leaves, arrays)
        _loop(it, examples.stored, call, examples_count, apart, same)
    if result is None:
        raise needs.Diverges
    return _rebuilt(it, result, iter(arrays))


@handles(examples.example)
@keeps_unions
def example(
    it: Interpreter, function: V.Value, given: V.Value, args: V.Value, keywords: V.Value,
    described: V.Value, index: V.Value,
) -> V.Value:
    """The leaves of one example: those that differ between examples, and the others."""
    assert isinstance(described, V.Known)
    value, result = _called(it, (function, given, args, keywords), index), described.value
    if result is None:
        raise needs.Diverges
    return V.Tuple(_parted(list(_leaves_of(result)), _leaves(it, value, result)))


def _called(it: Interpreter, held: Sequence[V.Value], index: V.Value) -> V.Value:
    """The mapped function's result for one example."""
    function, given, args, keywords = held
    assert isinstance(given, V.Known)
    assert isinstance(args, V.Tuple)
    assert isinstance(keywords, V.Tuple)
    axes, words, names = given.value
    own = [
        _over(it, value, axis, name, lambda array, at, _: _at(it, array, at, index))
        for value, axis, name in zip((*args.items, *keywords.items), axes, names, strict=True)
    ]
    split = len(args.items)
    return calls.call(it, function, own[:split], dict(zip(words, own[split:], strict=True)))


def _at(it: Interpreter, array: V.ArrayRef, axis: int, index: V.Value) -> V.Value:
    """The view of one example."""
    key = V.Tuple((*[_ALL] * axis, index)) if axis else index
    return get_item(it, array, key, checked=True)


def _loop(it: Interpreter, function: Any, *args: V.Value) -> V.Value:
    """A loop of `examples`: in line, though a mapped function that maps another one is in it."""
    return calls.in_line(it, calls.function_value(it, function), args)


# -- arguments ----------------------------------------------------------------------------------


def _axes(
    it: Interpreter, function: V.Value, in_axes: V.Value, args: Sequence[V.Value],
    keywords: dict[str, V.Value],
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """What in_axes says of each argument, those by name behind the others; and their names.

    An argument by name has the axes of its position, or is mapped over the first axis.
    """
    known = _known(it, in_axes, "in_axes")
    declared = [p.name for p in parameters_of(it, function) if p.kind.startswith("positional")]
    later = range(len(declared), len(args))
    names = (*declared[: len(args)], *(f"argument {k + 1}" for k in later), *keywords)
    if not isinstance(known, (tuple, list)):
        return (known,) * len(names), names
    by_name = dict(zip(declared, known, strict=False))
    if len(known) != len(args) and not (
        len(args) < len(known) <= len(declared) and keywords.keys() >= set(
            declared[len(args): len(known)]
        )
    ):
        raise it.failure(
            errors.InvalidValueError,
            f"in_axes has {_counted(len(known), 'entry', 'entries')}, and the function is called "
            f"with {_counted(len(args), 'argument', 'arguments')}",
            hints=("in_axes has an entry for each argument, or is one axis for all",),
        )
    return (*known[: len(args)], *(by_name.get(n, 0) for n in keywords)), names


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _known(it: Interpreter, axes: V.Value, what: str) -> Any:
    """Axes that a program writes, as Python's objects."""
    match axes:
        case V.Tuple(items):
            return tuple(_known(it, i, what) for i in items)
        case V.Ref(root) if root.kind in ("list", "dict", "object"):
            content = it.content(root)
            if isinstance(content, dict):
                return {k: _known(it, v, what) for k, v in content.items()}
            if isinstance(content, tuple):
                return tuple(_known(it, v, what) for v in content)
    return it.static(axes, what)


def _count(
    it: Interpreter, given: Sequence[V.Value], axes: Sequence[Any], names: Sequence[str]
) -> Extent:
    """How many examples there are."""
    found: list[tuple[Extent, str]] = []

    def leaf(array: V.ArrayRef, axis: int, name: str) -> V.Value:
        found.append((array.type.shape[axis], f"{name} (axis {axis})"))
        return array

    for value, axis, name in zip(given, axes, names, strict=True):
        _over(it, value, axis, name, leaf)
    if not found:
        raise it.failure(
            errors.InvalidValueError, "vmap has nothing to map over: no argument has an axis of "
            "examples", hints=("give in_axes an axis for at least one array",),
        )
    (count, first), *others = found
    for other, name in others:
        same = it.program.guards.equal(count, other)
        if same is None:
            text = f"vmap needs as many examples of each argument: {first} has {{}}, {name} {{}}"
            it.builder.call(OPS["check_equal"], left=count, right=other, text=text)
        elif not same:
            guards = it.program.guards
            left, right = (dims.evaluate(guards.resolve(e), guards.hints) for e in (count, other))
            raise it.failure(
                errors.ShapeError,
                "vmap needs as many examples of each argument, and there are "
                f"{left} of {first} and {right} of {name}",
                hints=("in_axes=None for what all examples share",),
            )
    return count


def _over(
    it: Interpreter, value: V.Value, axes: Any, name: str,
    leaf: Callable[[V.ArrayRef, int, str], V.Value],
) -> V.Value:
    """An argument with `leaf(array, axis, name)` in place of the arrays that are mapped."""
    if axes is None:
        return value
    match value:
        case V.ArrayRef():
            return leaf(value, _axis(it, axes, value.type.rank, "in_axes", name), name)
        case V.Tuple(items, cls):
            parts = _spread(it, axes, range(len(items)), "in_axes", name)
            return V.Tuple(
                tuple(_over(it, v, a, n, leaf) for v, (a, n) in zip(items, parts, strict=True)),
                cls,
            )
        case V.Ref(root, cls) if root.kind in ("list", "dict", "object"):
            content = it.content(root)
            if isinstance(content, (tuple, dict)):
                keys = list(content) if isinstance(content, dict) else range(len(content))
                parts = _spread(it, axes, keys, "in_axes", name, cls)
                values = L.content_children(content)
                made = [_over(it, v, a, n, leaf) for v, (a, n) in zip(values, parts, strict=True)]
                return it.new_ref(
                    root.kind, L.rebuild_content(L.content_head(content), made), cls
                )
        case V.Known(v) if types.of_scalar(v) is None:
            return value
        case V.Closure() | V.Method() | V.Partial() | V.Derivative():
            return value
    shown = V.describe(value)
    raise it.failure(
        errors.InvalidValueError,
        f"vmap cannot map over {name!r}: it is {shown}, which has no axis of examples",
        hints=(f"in_axes=None for {name}, or pass an array",),
    )


def _axis(it: Interpreter, axis: Any, rank: int, what: str, name: str) -> int:
    if type(axis) is int and -rank <= axis < rank:
        return axis % rank
    said = f"axis {axis}" if isinstance(axis, int) else f"{axis!r}"
    raise it.failure(
        errors.InvalidValueError,
        f"{what} says {said} for {name}, an array of {_counted(rank, 'axis', 'axes')}",
    )


def _spread(
    it: Interpreter, axes: Any, keys: Sequence[Any], what: str, name: str, cls: Any = None
) -> list[tuple[Any, str]]:
    """What axes say of each part of a structure, and the names of the parts."""
    by_field = cls is not None
    names = [f"{name}.{k}" if by_field else f"{name}[{k!r}]" for k in keys]
    if axes is None or isinstance(axes, int):
        return [(axes, n) for n in names]
    if by_field and hasattr(axes, "__dict__"):
        axes = vars(axes)
    ordered = isinstance(keys, range)
    if ordered and isinstance(axes, (tuple, list)) and len(axes) == len(keys):
        return list(zip(axes, names, strict=True))
    if not ordered and isinstance(axes, dict) and set(axes) == set(keys):
        return [(axes[k], n) for k, n in zip(keys, names, strict=True)]
    parts = f"{len(keys)} items" if ordered else f"the parts {', '.join(map(str, keys))}"
    raise it.failure(
        errors.InvalidValueError, f"{what} says {axes!r} for {name}, which has {parts}",
        hints=("an axis holds for the whole structure; otherwise its parts have an entry each",),
    )


# -- results ------------------------------------------------------------------------------------


def _tried(
    it: Interpreter, held: Sequence[V.Value], out_axes: Any
) -> tuple[_Result | None, bool]:
    """What the function returns for an example, and whether its shapes are known only then.

    None for a function that never returns, or of which it is not known yet.
    """
    mark = dims.Symbol("mark").serial
    index = Var("i", types.PY_INT)
    trial, heap = it.builder.nested(), it.heap.copy()
    saved = it.let
    with it.inside(trial, heap):
        try:
            if it.guarded:
                handling.nothing_raised(it)
            value = _called(it, held, V.Scalar(types.PY_INT, index))
        except (needs.Raises, needs.Diverges):
            return None, False
        finally:
            it.let = saved
        differing = _Differing(it, {index})
        result = _described(it, value, out_axes, "the result", differing)
    symbols = (s for leaf in _leaves_of(result) for s in types.type_symbols(_type(leaf)))
    return result, any(s.serial >= mark for s in symbols)


def _type(leaf: _Result) -> TensorType:
    assert leaf.leaf is not None
    return leaf.leaf


class _Differing:
    """Which values of the block at hand were computed from the number of the example."""

    def __init__(self, it: Interpreter, found: set[Atom]) -> None:
        self.it, self.found, self._seen = it, found, 0

    def __contains__(self, value: V.Value) -> bool:
        if isinstance(value, V.Known):
            return False
        atom = self.it.atom(value)
        lets: list[Let] = self.it.builder.lets
        for let in lets[self._seen :]:
            if not self.found.isdisjoint(walk.free_vars(Block((let,), ()))):
                self.found.update(let.outs)
        self._seen = len(lets)
        return atom in self.found


def _described(
    it: Interpreter, value: V.Value, axes: Any, name: str, differing: _Differing
) -> _Result:
    """The structure of an example's result, with the types of its leaves."""
    ty = _leaf_type(value)
    if ty is not None:
        if axes is not None:
            return _Result("leaf", leaf=ty, axis=_axis(it, axes, ty.rank + 1, "out_axes", name))
        if value in differing:
            raise it.failure(
                errors.InvalidValueError,
                f"out_axes is None for {name}, and that differs from example to example",
                hints=("None is for results that are computed from what all examples share",),
            )
        return _Result("leaf", leaf=ty, axis=None)
    if isinstance(value, V.Known) and (value.value is None or axes is None):
        return _Result(("known", value))
    found = _structure(it, value)
    if found is None:
        raise it.failure(
            errors.TypeMismatchError,
            f"vmap cannot stack {name} of the examples: it is {V.describe(value)}",
            hints=("return arrays, numbers, and tuples, lists, dicts and objects of these",),
        )
    head, keys, children = found
    cls = head[1] if head[0] == "object" else None
    parts = _spread(it, axes, keys, "out_axes", name, cls)
    return _Result(head, tuple(
        _described(it, v, a, n, differing) for v, (a, n) in zip(children, parts, strict=True)
    ))


def _leaf_type(value: V.Value) -> TensorType | None:
    """The type of the array or number that a value is; None for a structure."""
    if isinstance(value, V.Union):
        cases = [V.number_type(c) for c in value.possible]
        if None in cases:
            return None
        dtype, _ = types.promote([c for c in cases if c is not None])
        return TensorType(dtype, ())
    ty = V.tensor_type(value)
    return None if ty is None else TensorType(ty.dtype, ty.shape)


def _structure(
    it: Interpreter, value: V.Value
) -> tuple[tuple[Any, ...], Sequence[Any], Sequence[V.Value]] | None:
    """The head, keys and parts of a tuple, list, dict or object; None for anything else."""
    match value:
        case V.Tuple(items, cls):
            return ("tuple", cls, len(items)), range(len(items)), items
        case V.Ref(root, cls) if root.kind in ("list", "dict", "object"):
            content = it.content(root)
            if isinstance(content, (tuple, dict)):
                keys = list(content) if isinstance(content, dict) else range(len(content))
                head = (root.kind, cls, L.content_head(content))
                return head, keys, L.content_children(content)
    return None


def _leaves(it: Interpreter, value: V.Value, result: _Result) -> list[V.Value]:
    """The leaves of an example's result, which has the structure of any other's."""
    if result.leaf is not None and _leaf_type(value) is not None:
        return [value]
    if result.leaf is None and result.head[0] == "known" and value == result.head[1]:
        return []
    found = _structure(it, value)
    if found is None or found[0] != result.head:
        raise it.failure(
            errors.TypeMismatchError,
            "the results of a mapped function have one structure for all examples, and here one "
            f"is {V.describe(value)}",
        )
    pairs = zip(found[2], result.children, strict=True)
    return [leaf for v, r in pairs for leaf in _leaves(it, v, r)]


def _leaves_of(result: _Result) -> list[_Result]:
    if result.leaf is not None:
        return [result]
    return [leaf for child in result.children for leaf in _leaves_of(child)]


def _parted(leaves: Sequence[_Result], values: Sequence[V.Value]) -> tuple[V.Tuple, V.Tuple]:
    """Values of the leaves that differ between examples, and of the others."""
    pairs = list(zip(leaves, values, strict=True))
    apart = tuple(v for leaf, v in pairs if leaf.axis is not None)
    return V.Tuple(apart), V.Tuple(tuple(v for leaf, v in pairs if leaf.axis is None))


def _room(it: Interpreter, leaf: _Result, count: Extent) -> V.Value:
    """An array for a leaf of all examples."""
    ty = _type(leaf)
    shape = ty.shape if leaf.axis is None else (count, *ty.shape)
    if not shape:
        shape = (1,)
    made: Handle = it.builder.full(0, shape, ty.dtype)
    return it.new_array(made.atom)


def _listed(
    it: Interpreter, call: V.Value, count: V.Value, leaves: Sequence[_Result]
) -> list[V.Value]:
    """The leaves of all examples, whose shapes the program compares."""
    if any(leaf.axis is None for leaf in leaves):
        raise it.failure(
            errors.UnsupportedOperationError,
            "vmap takes out_axes=None only where the shapes of all results follow from those of "
            "the arguments",
        )
    rows = _loop(it, examples.listed, call, count)
    return [_loop(it, examples.column, rows, V.Known(k)) for k in range(len(leaves))]


def _rebuilt(it: Interpreter, result: _Result, arrays: Any) -> V.Value:
    """The result with arrays of all examples for leaves."""
    if result.leaf is not None:
        return _turned(it, next(arrays), result)
    if result.head[0] == "known":
        known: V.Value = result.head[1]
        return known
    kind, cls, of = result.head
    parts = [_rebuilt(it, child, arrays) for child in result.children]
    if kind == "tuple":
        return V.Tuple(tuple(parts), cls)
    return it.new_ref(kind, L.rebuild_content(of, parts), cls)


def _turned(it: Interpreter, array: V.Value, leaf: _Result) -> V.Value:
    """The array with its axis of examples where out_axes says."""
    if leaf.axis is None:
        return array if _type(leaf).shape else get_item(it, array, V.Known(0))
    if leaf.axis == 0:
        return array
    moved = (array, V.Known(0), V.Known(leaf.axis))
    return calls.call_known(it, np.moveaxis, moved, {})
