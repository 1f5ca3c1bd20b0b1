"""Values that are one of several cases: what is done with them is done with the case at hand.

In: a union and a use of it. Out: the use's value; where the cases differ, a chain of branches on
the tag. A use that computes nothing (the length of tuples, a key of dicts, a method of texts) gives
a union with the same tag, so that a test of the one says which case the other is.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.flow.joining import same_value
from pyrelay.infer.flow.narrowing import assuming, settled
from pyrelay.infer.in_python.nested import standing_for
from pyrelay.ir import types
from pyrelay.ir.nodes import UNREAD, UNSET, Atom

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter

_MOST_DISTRIBUTED = 100
"""Cases for each of which something is compiled."""

Use = Callable[[V.Value], V.Value]
Python = Callable[[Any], object]
Absent = Callable[[V.Value], Exception | None]

#: What a case is rejected with that Python rejects when it gets there.
_REJECTED = (
    errors.TypeMismatchError, errors.AttributeMissingError, errors.IndexRangeError,
    errors.KeyMissingError, errors.InvalidValueError, errors.ShapeError, errors.SignatureError,
)


def distribute(
    it: Interpreter, value: V.Union, use: Use, python: Python | None = None,
    absent: Absent | None = None,
) -> V.Value:
    """Do something with a value that is one of several cases.

    `python` does in Python what the use does: where the use of some cases is an error, the running
    program raises what `python` raises of a like object, or what `absent` says of the case itself.
    An error in all cases is the user's.
    """
    free = _for_free(it, value, use)
    if free is not None:
        return free
    return distribute_all(it, value, lambda case: [use(case)], python, absent=absent)[0]


def distribute_all(
    it: Interpreter, value: V.Union, use: Callable[[V.Value], Sequence[V.Value]],
    python: Python | None = None, names: Sequence[str] = (), absent: Absent | None = None,
    grows: bool = False,
) -> list[V.Value]:
    """As `distribute`, of a use with several values or none. grows: see `control.branch`."""
    from pyrelay.infer.flow.control import branch
    from pyrelay.infer.flow.effects import emit_raise

    if len(value.alive) > _MOST_DISTRIBUTED:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{V.describe(value)} may be any of {len(value.alive)}, and what is done here is "
            "compiled for each",
            hints=("for a text that gets longer in a loop, keep its parts in a list and join them "
                   "afterwards: ''.join(parts)",),
        )
    grows = grows or it.program.chooses or all(map(_is_of_list, value.possible))
    given: dict[int, Sequence[V.Value]] = {}
    rejected: list[errors.PyrelayError] = []

    def on_case(i: int) -> Sequence[V.Value]:
        case = value.cases[i]
        with assuming(it, ((value.tag, frozenset((i,))),)):
            it.program.effort.step(it)
            try:
                given[i] = use(case)
                return given[i]
            except _REJECTED as error:
                wrong = None if python is None else python_error(it, case, python)
                if wrong is None and absent is not None:
                    wrong = absent(case)
                rejected.append(error)
                if wrong is None or len(rejected) == len(value.alive):
                    raise rejected[0] from None
                emit_raise(it, type(wrong), tuple(map(V.Known, wrong.args)))
                raise needs.Diverges from None

    def among(cases: tuple[int, ...]) -> Sequence[V.Value]:
        first, *others = cases
        if not others:
            return on_case(first)
        test = it.emit("equal", value.tag, first)
        return branch(
            it, test.atom, lambda: on_case(first), lambda: among(tuple(others)), names,
            grows=grows,
        )

    results = list(among(value.alive))
    return [
        _told_apart(value, {i: g[k] for i, g in given.items()}, r) for k, r in enumerate(results)
    ]


def _is_of_list(case: V.Value) -> bool:
    """Whether a case is a list, or a method of one, which may lengthen it."""
    return V.is_list(case.receiver if isinstance(case, V.Method) else case)


def lazy_of_cases(it: Interpreter, source: V.Value) -> V.Value:
    """`zip` and its kin of what is one of several cases, as one of several; others unchanged."""
    if not isinstance(source, V.Lazy):
        return source
    several: dict[Atom, V.Union] = {
        x.tag: x for x in source.sources if isinstance(x, V.Union)
    }
    if not several:
        return source
    first, *others = several.values()
    tag = first.tag
    for other in others:  # the number of the case of all of them
        tag = it.emit("add", it.emit("multiply", tag, len(other.cases)), other.tag).atom

    def together(numbers: tuple[int, ...]) -> V.Lazy:
        chosen = dict(zip(several, numbers, strict=True))
        return V.Lazy(source.kind, tuple(
            x.cases[chosen[x.tag]] if isinstance(x, V.Union) else x for x in source.sources
        ), source.extra)

    everything = list(itertools.product(*(range(len(x.cases)) for x in several.values())))
    alive = (
        k for k, numbers in enumerate(everything)
        if all(n in x.alive for n, x in zip(numbers, several.values(), strict=True))
    )
    return V.Union(tag, tuple(map(together, everything)), tuple(alive))


def _told_apart(value: V.Union, given: dict[int, V.Value], result: V.Value) -> V.Value:
    """A result with one case per case of the value that gives any gets the value's tag; a node of
    several classes is one case among others."""
    if not isinstance(result, V.Union) or len(result.cases) != len(given):
        return result
    several = [g for g in given.values() if isinstance(g, V.Union)]
    if several and (V.node_of(result) is not None or not all(map(V.node_of, several))):
        return result
    cases: list[V.Value] = [V.Known(UNREAD)] * len(value.cases)
    for i, case in zip(given, result.cases, strict=True):
        cases[i] = case
    return V.Union(value.tag, tuple(cases), tuple(given))


def python_error(it: Interpreter, case: V.Value, python: Python) -> Exception | None:
    """What Python raises of a case, if an object like it is at hand; of one that is one of several
    if it raises of each."""
    if isinstance(case, V.Union):
        found = [python_error(it, each, python) for each in case.possible]
        return None if None in found else found[0]
    like = sample(it, case)
    if like is NotImplemented:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            python(like)
    except (TypeError, AttributeError) as error:
        return error
    except (IndexError, KeyError, ValueError) as error:
        return None if isinstance(case, V.Text) else error  # another text may do
    return None


def sample(it: Interpreter, value: V.Value) -> Any:
    """A Python object of the value's class and structure; NotImplemented if there is none."""
    match value:
        case V.Known(v):
            return v
        case V.Scalar(ty):
            return types.python_type(ty)() if ty.weak else ty.dtype.numpy.type(0)
        case V.Text():
            return "a"
        case V.ArrayRef(type=ty):
            return np.ones((1,) * len(ty.shape), ty.dtype.numpy)
        case V.Tuple(items, None):
            like = tuple(sample(it, i) for i in items)
            return NotImplemented if any(i is NotImplemented for i in like) else like
        case V.Slice(start, stop, step):
            bounds = [sample(it, v) for v in (start, stop, step)]
            return NotImplemented if any(b is NotImplemented for b in bounds) else slice(*bounds)
        case V.Ref(root) if root.kind == "iterator":
            return sample(it, it.content(root)[1])
        case V.Lazy("zip" | "map", sources):  # as many items, which may be others
            given = [sample(it, s) for s in sources]
            if any(s is NotImplemented for s in given):
                return NotImplemented
            return zip(*given, strict=False)
        case V.Ref(root) if root.kind == "list" and isinstance(it.content(root), tuple):
            return [sample(it, i) for i in it.content(root)]
        case V.Data() if value.cls in standing_for:
            return standing_for[value.cls][0]()
        case V.Data():
            return object.__new__(value.cls) if not issubclass(value.cls, tuple) else NotImplemented
        case V.Ref(root) if root.kind == "dict":
            return {k: sample(it, v) for k, v in it.content(root).items()}
    return NotImplemented


def several_in(key: V.Value) -> tuple[V.Union, Callable[[V.Value], V.Value]] | None:
    """A part of an array's key that is one of several cases, and the key with a case of it."""
    match key:
        case V.Union():
            return key, lambda case: case
        case V.Slice(start, stop, step):
            parts = [start, stop, step]
        case V.Tuple(items, None):
            parts = list(items)
        case _:
            return None
    for k, part in enumerate(parts):
        inside = several_in(part)
        if inside is not None:
            return inside[0], functools.partial(_rebuilt, key, parts, k, inside[1])
    return None


def _rebuilt(
    key: V.Value, parts: list[V.Value], k: int, with_case: Callable[[V.Value], V.Value],
    case: V.Value,
) -> V.Value:
    parts = [*parts[:k], with_case(case), *parts[k + 1 :]]
    return V.Slice(*parts) if isinstance(key, V.Slice) else V.Tuple(tuple(parts))


def _for_free(it: Interpreter, value: V.Union, use: Use) -> V.Value | None:
    """What the use gives if it computes nothing and changes nothing in any case, else None."""
    results: list[V.Value] = []
    for i, case in zip(value.alive, value.possible, strict=True):
        if isinstance(case, V.Known) and case.value is UNSET:
            return None
        trial, heap = it.builder.nested(), it.heap.copy()
        saved, calls, depth = it.let, len(it.calls), len(it.frames)
        try:
            with it.inside(trial, heap), assuming(it, ((value.tag, frozenset((i,))),)):
                results.append(use(case))
        except (errors.PyrelayError, needs.Diverges, needs.Raises):
            it.let = saved
            del it.calls[calls:], it.frames[depth:]
            return None
        if trial.lets or len(heap.contents) != len(it.heap.contents):
            return None
        if heap.changed_since(it.heap) or heap.written != it.heap.written:
            return None
    if all(_same(results[0], r) for r in results[1:]):
        return results[0]
    if all(isinstance(r, V.Known) and type(r.value) is bool for r in results):
        true = (i for i, r in zip(value.alive, results, strict=True) if r == V.Known(True))
        return settled(it, value, frozenset(true))
    computed = [r for r in results if not isinstance(r, V.Known) and V.tensor_type(r) is not None]
    if len(computed) > 1 or any(isinstance(r, V.Union) for r in results):
        return None
    cases: list[V.Value] = [V.Known(UNREAD)] * len(value.cases)
    for i, result in zip(value.alive, results, strict=True):
        cases[i] = result
    return V.Union(value.tag, tuple(cases), value.alive)


def _same(x: V.Value, y: V.Value) -> bool:
    if isinstance(x, V.Known) and isinstance(y, V.Known):
        a, b = x.value, y.value
        return a is b or (type(a) is type(b) and same_value(a, b))
    return x is y
