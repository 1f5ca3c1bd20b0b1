"""`try`: what is raised in its body goes to its handlers, by ordinary branches.

In: the body of a `try`, interpreted between `begin` and `caught`. Out: Core without anything new in
it. An exception on its way is a value in a cell, None while there is none. Code behind a place that
may raise is put in the arm of a branch that did not raise; a loop is left where its body raised.
An op that would raise is preceded by its own check: the failures of its element rule, asked of its
operands, or, for an op that Python computes, a trial by Python. So derivatives, views and kernels
meet nothing that they do not know.

(This is the translation of exceptions into values: Wadler, "How to replace failure by a list of
successes", 1985, and Spivey, "A functional theory of exceptions", 1990; here with state.)
"""

from __future__ import annotations

import functools
import types as python_types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.attributes import is_our_own
from pyrelay.infer.containers import text
from pyrelay.infer.flow.raising import Failure, failures
from pyrelay.infer.frames import Question
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import walk
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import UNREAD, Const, FnCall, Jvp, Let, OpCall, Var, Vjp
from pyrelay.ir.op import OPS, Effect
from pyrelay.records import dataclass

_T = TypeVar("_T")


@dataclass(eq=False)
class Handling:
    """A `try` whose body is being interpreted.

    cell: what is on its way. catches: the classes of its clauses in order, and whether the clause
    looks at the exception. of_caller: no `try`, but the whole program, whose caller gets what is
    raised after what was written to its objects; errors of ops still stop the program. through:
    it is the `with` of a manager that catches nothing here, and this runs the body.
    """

    cell: V.Root
    catches: tuple[tuple[tuple[type, ...], bool], ...] = ()
    of_caller: bool = False
    through: Callable[[Callable[[], Sequence[V.Value]], int], list[V.Value]] | None = None

    def looks_at(self, cls: type) -> bool:
        """Whether anybody looks at an exception of this class: a clause, or who is outside."""
        for classes, looks in self.catches:
            if issubclass(cls, classes):
                return looks
        return True


def begin(it: Interpreter, clauses: Sequence[V.Value], looks: Sequence[bool]) -> None:
    """Enter the body of a `try` with these classes in its clauses."""
    catches = tuple(
        (classes_of(it, clause), look) for clause, look in zip(clauses, looks, strict=True)
    )
    cell = it.heap.new(V.Root("cell", it.let.span if it.let else None), V.NONE)
    it.opening = Handling(cell, catches)


def classes_of(it: Interpreter, clause: V.Value) -> tuple[type, ...]:
    """The classes behind `except`: one, or a tuple of them."""
    found = it.static(clause, "the class of an except clause")
    classes = found if isinstance(found, tuple) else (found,)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise it.failure(
                errors.TypeMismatchError,
                f"'except' takes classes of exceptions, not {V.describe(V.Known(cls))}",
            )
    return classes


def caught(it: Interpreter) -> V.Value:
    """Leave the body of a `try`: the exception on its way as an object, or None."""
    handling, it.opening = it.opening, None
    assert handling is not None
    found = it.heap.contents[handling.cell]
    it.heap.contents[handling.cell] = V.NONE  # a cell of nobody, which changes no more
    if isinstance(found, V.Union):
        return V.Union(found.tag, tuple(_object(it, case) for case in found.cases), found.alive)
    return _object(it, found)


def _object(it: Interpreter, value: V.Value) -> V.Value:
    from pyrelay.infer.flow.effects import exception_value

    if isinstance(value, V.Raised):
        return exception_value(it, value.cls, value.args, dict(value.keywords))
    return value


def catches(it: Interpreter, cls: type[BaseException]) -> bool:
    """Whether a `try` around catches this class, so that it is no error of the whole program."""
    return it.guarded and any(
        issubclass(cls, classes) for handling in it.handling for classes, _ in handling.catches
    )


def is_raised(it: Interpreter, cls: type[BaseException]) -> bool:
    """Whether a line that surely raises this class raises it when it is reached: somebody catches
    it, the program may never get there, or has written by then what its caller sees."""
    return catches(it, cls) or not it.sure or _has_written(it)


def certain(
    it: Interpreter, error: errors.PyrelayError, cls: type[BaseException], *args: Any
) -> errors.PyrelayError:
    """The error of a line that surely raises `cls(*args)` in plain Python.

    It is none where `is_raised` says so, as within a `try` that catches it, or behind a test that
    raises: then the exception is raised there.
    """
    from pyrelay.infer.flow import effects

    if is_raised(it, cls):
        effects.emit_raise(it, cls, tuple(map(V.Known, args)))
        raise needs.Diverges
    return error


def without_words(
    it: Interpreter, error: errors.PyrelayError, cls: type[BaseException], said: str | None = None,
) -> errors.PyrelayError:
    """As `certain`, where the words of the exception may not be known: then no handler may look at
    them, and the caller gets the words of the error."""
    if said is not None:
        return certain(it, error, cls, said)
    clauses = (clause for handling in it.handling for clause in handling.catches)
    if any(looks and issubclass(cls, classes) for classes, looks in clauses):
        return error
    return certain(it, error, type(error), str(error))


def raise_to_handler(
    it: Interpreter, cls: type[BaseException], args: Sequence[V.Value] = (),
    keywords: Sequence[tuple[str, V.Value]] = (),
) -> NoReturn:
    """Send an exception on its way. The first one of a block wins."""
    handling = it.handling[-1]
    if not handling.looks_at(cls) and not isinstance(cls.__init__, python_types.FunctionType):
        args, keywords = (), ()  # which nobody asks for
    own = tuple(text.frozen(it, arg) for arg in args)
    named = tuple((k, text.frozen(it, v)) for k, v in keywords)
    span = it.users_line()
    raised = V.Raised(cls, own, named, span if handling.of_caller else None)
    it.heap.write(handling.cell, raised, span)
    raise needs.Raises


# -- what the caller sees of a program that raises -------------------------------------------------


def note_raise(it: Interpreter) -> None:
    """Note a `raise` of the entry that is behind writes to objects of the caller, or may be.

    Such a program is interpreted again as the body of a `try` of the caller's (`with_raised`).
    """
    note_raising(it)
    if it.captured is not None:  # in a recursive function, which is given copies
        it.program.raises_again = True
        return
    it.program.raises_late = it.program.raises_late or _has_written(it)
    it.program.raises_again |= it.rolling > 0


def _has_written(it: Interpreter) -> bool:
    """Whether the program may have written to an object of the caller by now."""
    memos = set(it.program.memos.values())
    own = [v.root for n, v in enumerate(it.program.objects)
           if isinstance(v, (V.ArrayRef, V.Ref)) and n not in memos]
    own += (*it.program.containers, *it.program.entered)
    same = {*own}.union(*(o.may_be for o in own))
    suspects = [r for r in it.heap.written if r in same or r.may_be or r.join is not None]
    return any(r is o or r.may_alias(o) for r in suspects for o in own)


def note_failures(it: Interpreter, mark: int) -> None:
    """Note an op behind `mark` that may raise, if a container of the caller is written by then.

    Such a program is interpreted again with its ops followed too (`Program.follows_ops`).
    """
    program = it.program
    if it.unfailing or program.fails_late or not (program.containers or program.entered):
        return
    suspects = [n for n in _with_nested(it.builder.lets[mark:])
                if isinstance(n.rhs, OpCall) and effect_of(n.rhs) is Effect.RAISES
                and (not _binds_extent(n) or n in program.given_lengths)]
    if not suspects:
        return
    again = it.captured is not None or it.rolling > 0
    written = any(r.kind != "array" and (r is o or r.may_alias(o))
                  for r in it.heap.written for o in (*program.containers, *program.entered))
    if (written or (again and not program.fails_again)) and any(
        _may_raise(it, n) for n in suspects
    ):
        program.fails_late |= written
        program.fails_again = True


def _with_nested(lets: Sequence[Let]) -> list[Let]:
    """Lets, and behind each those in its blocks."""
    found: list[Let] = []
    for let in lets:
        found.append(let)
        if not isinstance(let.rhs, OpCall):
            found.extend(n for b in walk.blocks(let.rhs) for n in walk.nested_lets(b))
    return found


def note_raising(it: Interpreter) -> None:
    """Note that the function of its own which is being made raises something."""
    if it.program.making:
        it.program.raising.add(it.program.making[-1].name)


def with_raised(it: Interpreter, run: Callable[[], V.Value], follows: str) -> V.Tuple:
    """What `run` gives, and what it raises instead: None, one exception or one of several.

    follows: who gets that, see `Interpreter.follows`.
    """
    handling = Handling(it.heap.new(V.Root("cell"), V.NONE), of_caller=follows == "caller")
    it.handling = (handling,)
    try:
        value = run()
    except needs.Raises:
        value = V.Known(UNREAD)
    it.handling = ()
    return V.Tuple((value, it.heap.contents[handling.cell]))


def send_on(it: Interpreter, raised: V.Value) -> None:
    """Send on what a function gave as raised: None, one exception or one of several."""
    if raised == V.NONE:
        return
    it.heap.write(it.handling[-1].cell, raised, it.let.span if it.let else None)
    if not isinstance(raised, V.Union) or V.NONE not in raised.possible:
        raise needs.Raises


def on_its_way(it: Interpreter) -> V.Value:
    """Whether an exception is on its way: known, or a bool of the program."""
    from pyrelay.infer.operators import compare

    return compare(it, "is not", it.heap.contents[it.handling[-1].cell], V.NONE)


def nothing_raised(it: Interpreter) -> None:
    """Here nothing is on its way, whatever the cell may hold at other times."""
    it.answered |= it.asked
    handling, contents = it.handling[-1], it.heap.contents
    contents[handling.cell] = V.NONE
    if handling.of_caller:
        contents.update({
            root: content.plain for root, content in contents.items()
            if isinstance(content, V.Varied)
        })


def something_raised(it: Interpreter) -> None:
    """Here something is on its way, whatever the cell may hold at other times."""
    cell = it.handling[-1].cell
    found = it.heap.contents[cell]
    if isinstance(found, V.Union):
        left = tuple(k for k in found.alive if found.cases[k] != V.NONE)
        only = found.cases[left[0]] if len(left) == 1 else V.Union(found.tag, found.cases, left)
        it.heap.contents[cell] = only


def behind(it: Interpreter, rest: Callable[[], Sequence[V.Value]]) -> list[V.Value]:
    """What follows a place that may have raised, if it did not. May raise Raises."""
    from pyrelay.infer.flow.control import branch

    test = on_its_way(it)
    if isinstance(test, V.Known):
        if test.value:
            raise needs.Raises
        return list(rest())

    def goes_on() -> NoReturn:
        something_raised(it)
        raise needs.Raises

    def undisturbed() -> Sequence[V.Value]:
        nothing_raised(it)  # what follows, and what it calls, need not ask again
        return rest()

    return branch(it, it.atom(test), goes_on, undisturbed, grows=True)


def body(it: Interpreter, run: Callable[[], Sequence[V.Value]], count: int) -> list[V.Value]:
    """The results of the body of a `try`; nobody reads them where it raised."""
    outer, opened, known = it.handling, it.opening, (it.answered, it.asked)
    assert opened is not None
    if opened.through is not None:
        it.opening = None
        results = opened.through(run, count)
        it.opening = opened
        return results
    it.handling, it.opening = (*outer, opened), None
    try:
        results = list(run())
    except needs.Raises:
        results = [V.Known(UNREAD)] * count
    finally:
        it.handling = outer
        it.answered, it.asked = known  # what was raised inside may be caught
    it.opening = opened
    return results


# -- ops that raise --------------------------------------------------------------------------------


def attempt(
    it: Interpreter, run: Callable[[], Sequence[V.Value]],
    rest: Callable[[list[V.Value]], Sequence[V.Value]] = list, passed: int = 0,
) -> tuple[bool, list[V.Value]]:
    """Do a step of the program, each op of it that may raise behind a branch on its failure.

    The step is begun again in the arm where the op does not raise, and `rest` is done there with
    its results; `passed` ops are behind such branches already. Returns whether `rest` is done, and
    what it gave, else the results of the step.
    """
    from pyrelay.infer.flow.control import branch

    checked, builder = it.program.checked, it.builder
    before, heap, saved = it.mark(), it.heap.copy(), it.let
    ended: Exception | None = None
    results: list[V.Value] = []
    try:
        results = list(run())
    except (needs.Raises, needs.Diverges) as error:
        ended = error
    it.let = saved
    if is_our_own(it):  # which knows its bounds
        checked.update(let for let in builder.lets[before.lets :] if _is_index(let))
    raising = _raising(it, builder.lets[before.lets :], checked)
    for number, let in enumerate(raising):
        question = _question(let, builder.lets[before.lets :])
        known = number < passed or question in it.answered
        found = [] if known else failures(it, let)
        checked.add(let)
        if found:
            it.take_back(before, builder.lets.index(let))
            it.heap.reset(heap)
            tests = failures(it, let)  # of operands that are computed here
            test = functools.reduce(lambda a, b: it.builder.call(OPS["logical_or"], a, b),
                                    (f.test for f in tests))  # fmt: skip

            asked = {question}

            def goes_on(
                passed: int = number + 1, asked: set[Question] = asked
            ) -> Sequence[V.Value]:
                it.answered |= asked
                done, given = attempt(it, run, rest, passed)
                given = given if done else list(rest(given))
                asked.update(it.asked)
                return given

            results = branch(
                it, it.builder.atom(test), lambda t=tests: _fail(it, t), goes_on,  # type: ignore[misc]
                grows=True,
            )
            it.asked |= asked
            return True, results
    if ended is not None:
        raise ended
    return False, results


def _question(let: Let, lets: Sequence[Let]) -> Question:
    """What is asked of an op before it runs: the same for an op of the same numbers. Those that
    `lets` cast are what they are cast from."""
    casts = {
        each.outs[0]: each.rhs for each in lets
        if isinstance(each.rhs, OpCall) and each.rhs.op.name == "cast"
    }
    assert isinstance(let.rhs, OpCall)
    given = []
    for atom in let.rhs.args:
        kinds = [atom.type]
        while isinstance(atom, Var) and atom in casts:
            atom = casts[atom].args[0]
            kinds.append(atom.type)
        number = (type(atom.value), repr(atom.value)) if isinstance(atom, Const) else atom
        given.append((number, *kinds))
    attrs = sorted((name, repr(value)) for name, value in let.rhs.attrs.items())
    return let.rhs.op.name, tuple(given), tuple(attrs)


def _fail(it: Interpreter, found: Sequence[Failure]) -> list[V.Value]:
    """Raise the first of several failures that is the case."""
    from pyrelay.infer.flow.control import branch

    first, *others = found
    if not others:
        raise_to_handler(it, first.cls, first.args())
    return branch(
        it, it.builder.atom(first.test), lambda: _fail(it, [first]), lambda: _fail(it, others)
    )


def _raising(it: Interpreter, lets: Sequence[Let], checked: set[Let]) -> list[Let]:
    """The ops among new Lets that may raise something to catch and have no branch yet."""
    found: list[Let] = []
    for let in lets:
        for inner in _with_nested([let]):
            given = inner is let and inner in it.program.given_lengths
            if inner in checked or (_binds_extent(inner) and not given) or (
                not _may_raise(it, inner)
            ):
                continue  # other extents are of what there is, or loops' indices
            if inner is not let or not isinstance(let.rhs, OpCall):
                raise not_followed(it)
            found.append(let)
    return found


def unguarded(it: Interpreter, mark: int) -> None:
    """Have the ops behind a mark leave the program where they fail, whatever `try` is around."""
    it.program.checked.update(_with_nested(it.builder.lets[mark:]))


def unfailing(it: Interpreter, run: Callable[[], _T]) -> _T:
    """What `run` gives: code of ours that raises nothing, whatever its ops may, but for what Python
    is asked; nobody follows it."""
    mark, builder, around = len(it.builder.lets), it.builder, (it.handling, it.unfailing)
    it.handling, it.unfailing = (), True
    try:
        return run()
    finally:
        it.handling, it.unfailing = around
        it.program.checked.update(
            inner for inner in _with_nested(builder.lets[mark:])
            if not (isinstance(inner.rhs, OpCall) and inner.rhs.op.schedule == "host")
        )


def check(it: Interpreter, mark: int) -> None:
    """Refuse ops behind `mark` that may raise, where a branch or a loop itself emitted them. Its
    extents are those of what there is."""
    emitted = [let for let in it.builder.lets[mark:] if not _binds_extent(let)]
    if _raising(it, emitted, it.program.checked):
        raise not_followed(it)


def _binds_extent(let: Let) -> bool:
    return isinstance(let.rhs, OpCall) and let.rhs.op.name == "as_extent"


def _is_index(let: Let) -> bool:
    return isinstance(let.rhs, OpCall) and let.rhs.op.name == "check_index"


def _may_raise(it: Interpreter, let: Let) -> bool:
    rhs = let.rhs
    if isinstance(rhs, (FnCall, Vjp, Jvp)):
        return _function_raises(it, rhs.function, set())
    if not isinstance(rhs, OpCall) or effect_of(rhs) is not Effect.RAISES:
        return False
    asked = _of_types(rhs)
    known = it.program.may_raise.get(asked)
    if known is None:
        saved, it.builder = it.builder, it.builder.nested()
        try:
            known = it.program.may_raise[asked] = bool(failures(it, let))
        finally:
            it.builder = saved
    return known


def _of_types(call: OpCall) -> Question:
    """What decides whether an op may raise: the op, and of its operands types and constants."""
    given = tuple(
        (a.type, type(a.value), repr(a.value)) if isinstance(a, Const) else a.type
        for a in call.args
    )
    attrs = tuple((name, repr(value)) for name, value in sorted(call.attrs.items()))
    return call.op.name, given, attrs


def _function_raises(it: Interpreter, name: str, seen: set[str]) -> bool:
    """Whether a function of the program may raise something; one in the making may."""
    if name in it.program.following:
        return False
    function = it.program.functions.get(name)
    if function is None:  # in the making: it raises if something else in it does, see `settle`
        it.program.silent.setdefault(name, not_followed(it))
        return False
    if name in seen:
        return False
    seen.add(name)
    for let in walk.nested_lets(function.body):
        if isinstance(let.rhs, (FnCall, Vjp, Jvp)):
            if _function_raises(it, let.rhs.function, seen):
                return True
        elif isinstance(let.rhs, OpCall) and (
            let.rhs.op.name == "raise" or _may_raise(it, let)
        ):
            return True
    return False


def must_be_followed(it: Interpreter, name: str) -> bool:
    """Whether a call stands where somebody catches what this function of the program may raise, so
    that its body has to be run in line."""
    return it.guarded and bool(it.handling) and _function_raises(it, name, set())


def settle(it: Interpreter) -> None:
    """Refuse the program if a function raises that was taken not to while it was being made."""
    for name, error in it.program.silent.items():
        if _function_raises(it, name, set()):
            raise error


def not_followed(it: Interpreter) -> errors.PyrelayError:
    """The error for an exception that cannot be followed to its handler."""
    return it.failure(
        errors.UnsupportedOperationError,
        "what this raises cannot be caught in a compiled function",
        notes=("its exception would leave a recursive function, a derivative or a builtin",),
        hints=(
            "move the try into the function that raises, or test the condition before the call",
        ),
    )
