"""Python's truth of a value, known or as a run-time bool."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.flow import narrowing
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.datatypes import is_anonymous
from pyrelay.ir import dims, types
from pyrelay.ir.nodes import UNSET
from pyrelay.ir.op import OPS

_AMBIGUOUS = (
    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
)


def truth(it: Interpreter, value: V.Value) -> V.Value:
    """Known(bool), or a Scalar of type bool.

    Raises TypeMismatchError for an array of several elements, as NumPy raises ValueError.
    """
    match value:
        case V.Known(v):
            assert v is not UNSET
            return V.Known(bool(v))
        case V.Scalar(ty, _, extent):
            if extent is not None:
                answer = it.program.guards.compare("!=", extent, 0)
                if answer is not None:
                    return V.Known(answer)
            if ty.dtype is types.bool_:
                return value
            zero = it.builder.handle(it.builder.zeros(ty))
            return it.call("not_equal", value, zero)
        case V.ArrayRef(_, _, ty):
            if ty.size == 1:
                flat = it.emit("reshape", value, shape=())
                return truth(it, it.result(flat))
            if any(s.origin is dims.Origin.RUNTIME for s in dims.symbols(ty.size)):
                from pyrelay.infer.arrays.subscripts import only_element

                return truth(it, only_element(it, value, _AMBIGUOUS))
            raise it.failure(
                errors.ShapeError,
                f"the truth value of {ty} is ambiguous: it has more than one element",
                hints=("use .any() or .all(), or np.where for a choice per element",),
            )
        case V.Natural(bits):
            return it.result(it.builder.call(OPS["not_equal"], bits, np.uint64(0)))
        case V.Tuple(items):
            from pyrelay.infer import protocols

            for name in ("__bool__", "__len__"):  # of a namedtuple's class
                own = protocols.special(it, value, name)
                if own is not None:
                    return truth(it, own)
            return V.Known(bool(items))
        case V.Ref(root) if root.kind in ("list", "dict", "set"):
            content = it.content(root)
            if isinstance(content, V.Growing):
                return truth(it, content.count)
            return V.Known(bool(content))
        case V.OpenTuple(items):
            return truth(it, items)
        case V.Text():
            from pyrelay.infer.containers.characters import length
            from pyrelay.infer.containers.text import ask

            count = length(it, value)
            if count is not None:
                return truth(it, count)
            return ask(it, types.PY_BOOL, bool, value)
        case V.Range():
            from pyrelay.infer.flow.iteration import range_count

            return truth(it, range_count(it, value))
        case V.Ref(_, cls) if cls is not None:
            return _truth_of_object(it, value, cls)
        case V.Items(count=count):
            return truth(it, count)
        case V.Data() if is_anonymous(value.cls):
            return V.Known(bool(value.cls._fields))
        case V.Data():
            return _truth_of_object(it, value, value.cls)
        case V.Union():
            return _truth_of_cases(it, value)
    return V.Known(True)


def as_bool(it: Interpreter, value: V.Value) -> V.Value:
    """`bool(value)`: Python's bool, where the truth of a number of NumPy's is NumPy's."""
    test = truth(it, value)
    if isinstance(test, V.Known):
        return test
    made = it.result(it.builder.handle(it.builder.cast(it.atom(test), types.bool_, weak=True)))
    fact = narrowing.fact_of(it, test)
    if fact is not narrowing.NOTHING:
        narrowing.note(it, made, fact)
    return made


def _truth_of_object(it: Interpreter, value: V.Value, cls: type) -> V.Value:
    """What `__bool__`, else `__len__`, of an object's class says; true if it has neither."""
    from pyrelay.infer.attributes import of_class
    from pyrelay.infer.calls import call

    for name in ("__bool__", "__len__"):
        method = of_class(it, cls, name)
        if method is not None:
            return truth(it, call(it, V.Known(method), (value,), {}))
    return V.Known(True)


def _truth_in_python(like: Any) -> bool:
    """What Python says of an object like one whose truth is refused."""
    if isinstance(like, np.ndarray):
        raise ValueError(_AMBIGUOUS)
    return bool(like)


def _truth_of_cases(it: Interpreter, value: V.Union) -> V.Value:
    """The truth of the case at hand; what it says about the case is kept."""
    from pyrelay.infer.flow.unions import distribute

    maybe: dict[bool, set[int]] = {True: set(), False: set()}

    def ask(case: V.Value) -> V.Value:
        answer = truth(it, case)
        for side, cases in maybe.items():
            if answer != V.Known(not side):
                cases.update(i for i in value.alive if value.cases[i] is case)
        return answer

    found = distribute(it, value, ask, _truth_in_python)
    if narrowing.fact_of(it, found) is narrowing.NOTHING:
        true, false = (((value.tag, frozenset(maybe[side])),) for side in (True, False))
        narrowing.note(it, found, narrowing.Fact(true, false))
    return found
