"""`with`: managers of the program, generators made managers, and those without effect.

In: a manager and the body of its `with`. A manager of a user's class is entered and left by its own
methods, its body is the body of a `try`. A generator that `contextlib.contextmanager` made a
manager runs with the body at its `yield`: what the body raises meets the `try` around that `yield`,
as if it were raised there, which is what Python does by throwing it in.
"""

from __future__ import annotations

import contextlib
import types as python_types
from collections.abc import Callable, Sequence

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.flow import generators, handling
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import UNREAD
from pyrelay.scoping import scope

_WITHOUT_EFFECT = (np.errstate, scope)
_OF_C = (python_types.MethodDescriptorType, python_types.BuiltinFunctionType)


class Traceback:
    """Stands for the traceback that `__exit__` is given: it is not None, and has nothing else."""


_TRACEBACK = V.Known(Traceback())


def enter(it: Interpreter, manager: V.Value) -> V.Value:
    """A cell of what entering a manager gives."""
    if _has_no_effect(manager) or _generator_of(it, manager) is not None:
        value: V.Value = V.NONE
        if isinstance(manager, V.Known) and isinstance(manager.value, scope):
            value = manager
    else:
        value = _call(it, manager, "__enter__")
    return V.Ref(it.heap.new(V.Root("cell", it.let.span if it.let else None), value))


def begin(it: Interpreter, manager: V.Value, entered: V.Value, flags: int) -> None:
    """Enter the body of a `with`, the first results of whose block are `flags`."""
    if _has_no_effect(manager):
        it.opening = handling.Handling(it.heap.new(V.Root("cell"), V.NONE), through=_as_it_is)
        return
    generator = _generator_of(it, manager)
    if generator is None:
        handling.begin(it, (V.Known(BaseException),), (True,))
        return

    def through(run: Callable[[], Sequence[V.Value]], count: int) -> list[V.Value]:
        return _at_yield(it, generator, entered, run, flags, count)

    it.opening = handling.Handling(it.heap.new(V.Root("cell"), V.NONE), through=through)


def _as_it_is(run: Callable[[], Sequence[V.Value]], count: int) -> list[V.Value]:
    return list(run())


def _at_yield(
    it: Interpreter, generator: V.Ref, entered: V.Value, run: Callable[[], Sequence[V.Value]],
    flags: int, count: int,
) -> list[V.Value]:
    """The results of a body that runs at the `yield` of a generator.

    They live in a cell: the generator may have its `yield` in a branch, and may catch what the body
    raises, after which the body was not left by `return` or its like.
    """
    assert isinstance(entered, V.Ref)
    span = it.let.span if it.let else None
    unread = [*(V.Known(False) for _ in range(flags)), *(V.Known(UNREAD),) * (count - flags)]
    results = it.heap.new(V.Root("cell", span), V.Tuple(tuple(unread)))
    yielded = it.heap.new(V.Root("cell", span), V.Known(False))

    def each(item: V.Value) -> V.Value:
        if it.heap.contents[yielded] != V.Known(False):
            raise it.failure(
                errors.UnsupportedOperationError,
                "the generator of this context manager may yield more than once",
                hints=("write its yield outside of loops, once on each path",),
            )
        it.heap.write(yielded, V.Known(True), span)
        it.heap.write(entered.root, item, span)
        found = V.Tuple(tuple(run()))

        def ended() -> Sequence[V.Value]:
            it.heap.write(results, found, span)
            return ()

        if it.guarded:  # it may have raised
            handling.behind(it, ended)
        else:
            ended()
        return V.Known(False)

    generators.consume(it, generator, each, managed=True)
    if it.heap.contents[yielded] != V.Known(True):
        raise it.failure(
            errors.UnsupportedOperationError,
            "the generator of this context manager may end without a yield",
            hints=("write its yield outside of loops, once on each path",),
        )
    found = it.heap.contents[results]
    assert isinstance(found, V.Tuple)
    return list(found.items)


def entered(it: Interpreter, cell: V.Value) -> V.Value:
    """What entering a manager gave."""
    assert isinstance(cell, V.Ref)
    found: V.Value = it.heap.contents[cell.root]
    return found


def leave(it: Interpreter, manager: V.Value, raised: V.Value) -> V.Value:
    """Leave a manager after its body raised an exception, or None; whether it dealt with it."""
    if _has_no_effect(manager) or _generator_of(it, manager) is not None:
        return V.Known(False)
    if isinstance(raised, V.Union):
        from pyrelay.infer.flow.unions import distribute

        return distribute(it, raised, lambda case: leave(it, manager, case))
    if raised == V.NONE:
        _call(it, manager, "__exit__", V.NONE, V.NONE, V.NONE)
        return V.Known(False)
    assert isinstance(raised, V.Ref)
    return _call(it, manager, "__exit__", V.Known(raised.cls), raised, _TRACEBACK)


def _has_no_effect(manager: V.Value) -> bool:
    return isinstance(manager, V.Known) and isinstance(manager.value, _WITHOUT_EFFECT)


def _generator_of(it: Interpreter, manager: V.Value) -> V.Ref | None:
    """The generator inside a manager that `contextlib.contextmanager` made."""
    if isinstance(manager, V.Ref) and manager.cls is contextlib._GeneratorContextManager:
        generator = it.content(manager.root)["gen"]
        assert isinstance(generator, V.Ref)
        return generator
    return None


def _call(it: Interpreter, manager: V.Value, name: str, *args: V.Value) -> V.Value:
    """`type(manager).name(manager, *args)`. Raises the error for what is no manager."""
    from pyrelay.infer.attributes import of_class
    from pyrelay.infer.calls import call
    from pyrelay.infer.protocols import is_object

    if isinstance(manager, V.Ref) and is_object(manager):
        method, end = (of_class(it, manager.cls, n) for n in (name, "__exit__"))
        if not any(m is None or isinstance(m, _OF_C) for m in (method, end)):
            return call(it, V.Known(method), (manager, *args), {})
    raise it.failure(
        errors.UnsupportedOperationError,
        f"'with' cannot enter {V.describe(manager)} in a compiled function",
        hints=(
            "managers written in Python, np.errstate(...) and pyrelay.scope(name) are compiled; "
            "others belong around the call",
        ),
    )
