"""Functions that cost much in line: from some call on, each is a function of the program's own.

In: a call that would be interpreted in line, and what such calls have cost so far. Out: the call of
a function that is specialised once for the layouts of its arguments; or None, where the call has to
be interpreted in line after all.

In line a call is exact: views, aliases and numbers known while compiling cross it as they are. A
function of its own is used only where nothing of that is lost: whole numbers and bools among the
arguments stay known, no view of an array comes back, and what fails in it is interpreted in line.
So what a program costs grows with its text, not with the number of its calls: see
decision 0113.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import needs, specialisation
from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order
from pyrelay.infer.attributes import of_pyrelay
from pyrelay.infer.calls import IsRecursive
from pyrelay.infer.function_bodies import NeedsKnown, NotInLine, Specialisation
from pyrelay.infer.handing_over import emit_call
from pyrelay.infer.heap import Heap
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.slots import Placed

_COSTLY = 1000  # statements that a function may cost in line, all its calls together
_CALLS = 2  # calls that are in line anyway
_FORMS = 6  # functions that may be made of one for whole numbers that are known

_LOCAL = (
    errors.PyrelayError, needs.Diverges, needs.Raises, needs.NeedsUnrolling, needs.NeedsIdentity,
    needs.NeedsListing, NeedsKnown, NotInLine,
)
"""What makes the call one that is interpreted in line, where it may be no reason to stop."""


def is_costly(it: Interpreter, closure: V.Closure) -> bool:
    """Whether calls of a function have cost so much that it should be one of the program's own."""
    program, function = it.program, closure.function
    if program.own is None or function in program.in_line or of_pyrelay(closure.owner):
        return False
    calls, statements = program.costs.get(function, (0, 0))
    if calls >= _CALLS and statements >= _COSTLY:
        program.own.add(function)
    return function in program.own


def call_own(
    it: Interpreter, closure: V.Closure, bound: Sequence[V.Value]
) -> V.Value | None:
    """Call a function as one of the program's own. None where it has to be in line."""
    program = it.program
    if it.follows == "try" or any(s.result is None and not s.strict for s in program.making):
        return None  # it may raise what is caught here, or diverge where a result is not known yet
    arguments = specialisation.arguments_of(it, closure, bound)
    if not _can_be_handed_over(it, [*bound, *closure.cells]):
        return None
    before, heap, let, builder = it.mark(), it.heap.copy(), it.let, it.builder
    mark, handled = program.guards.mark(), it.handling
    made, named = {k: list(v) for k, v in program.specialisations.items()}, set(program.functions)
    try:
        spec = _own_function(it, closure, arguments)
        value = emit_call(it, spec, arguments)
    except (*_LOCAL, IsRecursive) as found:
        if isinstance(found, IsRecursive) and found.function is not closure.function:
            raise
        program.lacking.refuse_beyond()
        program.guards.rollback(mark)
        it.let, it.builder, it.handling = let, builder, handled
        it.take_back(before)
        it.heap.reset(heap)
        _forget(it, made, named)
        if isinstance(found, IsRecursive):
            program.recursive.add(closure.function)
            return specialisation.call_global(it, closure, bound)
        program.in_line.add(closure.function)
        return None
    return specialisation.passed_on(it, spec, value)


def _own_function(
    it: Interpreter, closure: V.Closure, arguments: Sequence[V.Value]
) -> Specialisation:
    """The function for a call that could be interpreted in line as well.

    Raises what makes the function differ from the call in line.
    """
    entries = it.program.specialisations.setdefault(
        ("own", closure.function, closure.owner, it.follows), []
    )

    def fitting(layouts: Sequence[L.Layout]) -> Specialisation | None:
        return next((
            s for s in entries
            if all(map(_is_alike, s.layouts, layouts))
            and specialisation.would_do(it, s.layouts, layouts)
        ), None)

    layouts = _placeless(it, arguments, whole_numbers=True)
    found = fitting(layouts)
    if found is None and entries:
        known = len(entries) < _FORMS
        general = _placeless(it, arguments, whole_numbers=known, extents=False)
        if not known or any(specialisation.would_do(it, general, s.layouts) for s in entries):
            layouts, found = general, fitting(general)
    if found is None:
        found = Specialisation(
            it.program.unique(closure.function.name), closure, layouts, follows=it.follows,
            strict=True,
        )
        if found.follows:
            it.program.following.add(found.name)
        entries.append(found)
    if found.result is None:
        try:
            specialisation.make_function(it, found, arguments)
        finally:
            if found.name not in it.program.functions and found in entries:
                entries.remove(found)
                specialisation.forget_dependents(it, found)
    if found.never:
        raise needs.Diverges
    specialisation.note_assumption(it, found)
    return found


def _placeless(
    it: Interpreter, arguments: Sequence[V.Value], *, whole_numbers: bool, extents: bool = True
) -> list[L.Layout]:
    return specialisation.describe_arguments(
        it, arguments, static={}, exact=min(it.program.exact, 1), extents=extents,
        whole_numbers=whole_numbers, placeless=True,
    )[0]


def _is_alike(own: L.Layout, given: L.Layout) -> bool:
    """Whether arguments have the structure of a function's own, down to numbers that are known and
    lists of known length."""
    pending: list[tuple[Any, Any]] = [(own, given)]
    while pending:
        x, y = pending.pop()
        if type(x) is not type(y):
            return False
        match x:
            case L.LNode(head, parts):
                if head != y.head:
                    return False
                pending.extend(zip(parts, y.children, strict=True))
            case L.LUnion(cases):
                if len(cases) != len(y.cases):
                    return False
                pending.extend(zip(cases, y.cases, strict=True))
            case L.LPlace():
                pending.append((x.content, y.content))
    return True


def _forget(it: Interpreter, made: dict[object, list[Specialisation]], named: set[str]) -> None:
    """Drop the functions that were made meanwhile: what they rest on was taken back."""
    for key, entries in it.program.specialisations.items():
        if isinstance(entries, list):
            entries[:] = made.get(key, ())
    for name in it.program.functions.keys() - named:
        del it.program.functions[name]


def _can_be_handed_over(it: Interpreter, values: Sequence[V.Value]) -> bool:
    """Whether arguments are in a function what they are in line."""
    for value in everything(it.heap, values):
        match value:
            case V.Ref(root):
                if root.kind in ("generator", "iterator") or (
                    root in it.constructing and it.program.families.of(value.cls) is not None
                ):
                    return False
                content = it.heap.contents[root]
                if isinstance(content, (V.Part, V.Lost, V.Varied)) or (
                    isinstance(content, V.Growing) and isinstance(content.slots, Placed)
                ):
                    return False
            case V.ArrayRef(root, view):
                if any(step.kind not in ("slice", "index") for step in view):
                    return False
                if memory_order.of_root(it.program, root).layout is not None:
                    return False
                if root in it.program.listed:
                    return False
            case V.Derivative() | V.Lazy():
                return False
    return True


def everything(heap: Heap, values: Sequence[V.Value]) -> Iterator[V.Value]:
    """Values, what is in them, and what is in the objects that they refer to, each object once;
    arrays as often as they are mentioned."""
    pending, seen = list(values), set[V.Root]()
    while pending:
        for value in V.leaves_of((pending.pop(),)):
            if isinstance(value, V.Ref):
                if value.root in seen:
                    continue
                seen.add(value.root)
                if value.root.kind != "pool":
                    pending.extend(L.content_children(heap.contents[value.root]))
            yield value
