"""Functions that call themselves with ever new types of arguments: an end is found, or refused.

In: a call of a function of its own that no function made so far takes, and those made so far. Out:
nothing where one more may be made; or what ends the attempt: tuples or objects that nest deeper are
to be nodes, a number that says how deep functions capture each other is to be known, texts that get
longer are of run-time length, known texts of the caller's are to be data.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_layouts import sequences
from pyrelay.infer.effort import TooManySteps
from pyrelay.infer.function_bodies import NeedsKnown, Specialisation
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import leaf_types
from pyrelay.infer.nodes import anonymous, building, constructing
from pyrelay.infer.nodes.datatypes import EVERYWHERE
from pyrelay.infer.nodes.plans import NeedsPool
from pyrelay.ir import types

_MOST_SPECIALISATIONS = 64
_MOST_LONGER = 12
_MOST_UNFOLDED = 32  # of objects in objects, which are compared as wholes
_MOST_AROUND = 8  # likewise, in calls inside each other
_MOST_TEXTS = 20  # that are known and could be data, of calls that differ in nothing else
_MOST_LONGER_TEXTS = 3  # that the program puts together, in calls inside each other
_MOST_DEEPER = 4  # calls inside each other that are handed functions of functions of functions
_DEPTH = "how often a function calls itself that hands on functions"


def refuse(
    it: Interpreter, closure: V.Closure, entries: Sequence[Specialisation],
    arguments: Sequence[V.Value], layouts: Sequence[L.Layout],
) -> None:
    """Raises RecursionTypeError, or what another attempt needs, where a call with other arguments
    than those of `entries` would be followed by more and more of them."""
    if entries and not it.program.unfolds:
        _refuse_nesting(it, arguments)
    around = [spec for spec in entries if spec.in_progress]  # beside them, recursion begins anew
    if len(around) > 1:
        anonymous.refuse_depth([x for spec in around for x in spec.layouts], layouts)
        if len(around) >= _MOST_LONGER_TEXTS and not sequences().tried and _lengthens(
            [*(spec.layouts for spec in around[-_MOST_LONGER_TEXTS:]), layouts]
        ):
            raise needs.NeedsSequences
    most = _most(entries, layouts)
    if len(around) >= _MOST_DEEPER and _deepens(
        [*(spec.layouts for spec in around[-_MOST_DEEPER:]), layouts]
    ):
        for position, layout in enumerate(around[0].layouts):
            computed = (closure.function, position) in it.program.computed
            if isinstance(layout, L.LScalar) and layout.type == types.PY_INT and not computed:
                raise needs.NeedsStatic((around[0], position), _DEPTH)
        most = len(entries)
    if it.program.unfolds:
        most = min(most, _MOST_UNFOLDED)
        sizes = [len(leaf_types(x)) for x in (*(spec.layouts for spec in around), layouts)]
        if len(around) >= _MOST_AROUND and all(a < b for a, b in itertools.pairwise(sizes)):
            most = len(entries)  # the number that ends this only the running program knows
    if around and len(entries) >= _MOST_TEXTS and it.program.effort.texts_may_open and (
        _differ_in_texts(entries, layouts)
    ):
        raise TooManySteps(_failure(it, closure, entries))
    if len(entries) >= most:
        if most == _MOST_LONGER and sequences().wanted and not sequences().tried:
            raise needs.NeedsSequences
        raise _failure(it, closure, entries)


def _failure(
    it: Interpreter, closure: V.Closure, entries: Sequence[Specialisation]
) -> errors.PyrelayError:
    failure = it.failure(
        errors.RecursionTypeError,
        f"{V.function_name(closure.function)!r} calls itself with ever new types of arguments: "
        f"{_growing(it, closure, entries)} grows without end",
    )
    failure.endless = True
    return failure


def _refuse_nesting(it: Interpreter, arguments: Sequence[V.Value]) -> None:
    """Objects that hold objects of their class nest deeper with each call: they are to be nodes."""
    for value in (c for v in arguments for c in (v.possible if isinstance(v, V.Union) else (v,))):
        if not isinstance(value, V.Ref) or value.cls is None:
            continue
        parts = building.contents(it, value)
        if any(building.is_inside(it, part, value.cls) for part in parts):
            if it.program.families.of(value.cls) is not None:
                raise constructing.incomplete(it, value.cls)
            raise NeedsPool(EVERYWHERE.declare([value.cls]))


def _most(entries: Sequence[Specialisation], layouts: Sequence[L.Layout]) -> int:
    """How many functions may be made of one: fewer where a text gets longer with each."""
    calls = [*(_of_generators(x.layouts) for x in entries[-_MOST_LONGER:]), _of_generators(layouts)]
    if len({len(call) for call in calls}) > 1:
        return _MOST_SPECIALISATIONS
    for texts in zip(*calls, strict=True):
        if all(isinstance(x, L.LKnown) and isinstance(x.value, str) for x in texts):
            lengths = [len(x.value) for x in texts]
            if len(set(lengths)) == len(lengths) and lengths == sorted(lengths):
                return _MOST_LONGER
    return _MOST_SPECIALISATIONS


def _of_generators(layouts: Sequence[L.Layout]) -> list[Any]:
    """Arguments, and those of the generators among them."""
    found: list[Any] = []
    for layout in layouts:
        match layout:
            case L.LPlace(kind="generator", content=L.LNode(_, parts)):
                found += parts
            case _:
                found.append(layout)
    return found


def _differ_in_texts(entries: Sequence[Specialisation], layouts: Sequence[L.Layout]) -> bool:
    """Whether calls differ in nothing but texts that are known."""

    def rest(of: Sequence[L.Layout]) -> list[Any]:
        return [str if isinstance(x, L.LKnown) and isinstance(x.value, str) else x for x in of]

    return all(rest(spec.layouts) == rest(layouts) for spec in entries)


def _lengthens(calls: Sequence[Sequence[L.Layout]]) -> bool:
    """Whether a text that the program puts together is one of more parts at each of some calls."""
    for layouts in zip(*calls, strict=True):
        parts = [x.head[3] for x in layouts if isinstance(x, L.LNode) and x.head[0] == "text"]
        counts = list(map(len, parts))
        if len(counts) == len(calls) and counts == sorted(set(counts)):
            return True
    return False


def _deepens(calls: Sequence[Sequence[L.Layout]]) -> bool:
    """Whether some calls differ in nothing but functions that capture more functions in each."""
    found = False
    for layouts in zip(*calls, strict=True):
        if any(x != layouts[0] for x in layouts):
            depths = list(map(_functions, layouts))
            if depths != sorted(set(depths)):
                return False
            found = True
    return found


def _functions(layout: Any) -> int:
    """How deep functions capture each other."""
    match layout:
        case L.LNode((str() as kind, *_), parts):
            own = kind in ("closure", "method", "partial")
            return own + max(map(_functions, parts), default=0)
        case L.LUnion(cases):
            return max(map(_functions, cases))
        case L.LPlace(kind="cell", content=content):
            return _functions(content)
    return 0


def _growing(it: Interpreter, closure: V.Closure, entries: Sequence[Specialisation]) -> str:
    last, before = entries[-1].layouts, entries[-2].layouts
    own = slice(0 if entries[0].alone else len(it.pools), None)
    for p, a, b in zip(closure.function.signature, last[own], before[own], strict=False):
        if a != b:
            return repr(p.name)
    return "a captured variable"


def ask_for_depth(
    it: Interpreter, spec: Specialisation, arguments: Sequence[V.Value], static: Container[int]
) -> None:
    """Raises NeedsKnown for an int that may say how deep a function calls itself: what it returns
    is settled where that is known."""
    for position, value in enumerate(arguments):
        known = isinstance(value, V.Known) and type(value.value) is int
        told = isinstance(value, V.Scalar) and isinstance(value.origin, tuple)
        asked = position in static or (spec.closure.function, position) in it.program.computed
        if (known or told) and V.number_type(value) == types.PY_INT and not asked:
            raise NeedsKnown(position, _DEPTH)
