"""Rounds of loops: what they carry is found as a fixpoint, then the loop is emitted once.

In: a Relay loop, and what it goes through. Out: a Core `Loop` whose carried variables are the
leaves of the carried values and of every object that the body changes. A loop over structure, or
one whose body needs its index while compiling, is unrolled; one whose first iteration changes the
type of a carried value (None or a number that becomes an array), or the keys of a dict, is peeled
once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import field
from typing import Any

from pyrelay import errors
from pyrelay.infer import bound_extents, needs
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing
from pyrelay.infer.containers.open_keys import note_beside
from pyrelay.infer.containers.open_layouts import sequences
from pyrelay.infer.flow import handling
from pyrelay.infer.flow.effects import raise_where
from pyrelay.infer.flow.fixpoint import Fixpoint, TestHasEffects, TypeChanges
from pyrelay.infer.flow.iteration import Iteration, iterate
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.in_python.nested import nested_for
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.operators import either, extent_of, raised, unary
from pyrelay.ir.nodes import Let, Loop
from pyrelay.records import dataclass

_MOST_PASSES = 12
_MOST_GROWTH = 5
"""Passes in a row that find more cases of carried values, such as longer and longer texts."""
_NO_ROUND = (
    "this loop makes the keys of a dict, or the attributes of an object, in its first round, and "
    "was come to without a round to do; pyrelay compiles such a loop, inside of others, only where "
    "it has one. Instead: make them before the loops"
)


class _LengthChanges(Exception):
    """A list that a loop goes through is made longer or shorter by the loop."""


class _LengthUnknown(Exception):
    """Unrolled or not, a loop makes a list whose length is known only at run time."""


_FAILURES = (
    TypeChanges, needs.NeedsUnrolling, TestHasEffects, _LengthChanges, _LengthUnknown,
    errors.PyrelayError,
)
"""What ends an attempt at a loop, which may be tried in another way."""


@dataclass
class Runner:
    it: Interpreter
    let: Let
    node: Loop
    iteration: Iteration | None
    iterable: V.Value | None = None  # that the iteration is over
    #: The loop goes through a list that it makes longer or shorter.
    dynamic: bool = False
    #: The test has effects: it is done first thing in the body, which then may leave the loop.
    tested_inside: bool = False
    splits: bool = False  # what follows may be compiled with a first round and without
    raises: bool = False  # the body surely raised to a handler when it was interpreted last
    size: int | None = field(init=False)  # of the dict or set that the loop goes through

    def __post_init__(self) -> None:
        self.size = self._size()

    def _size(self) -> int | None:
        """How many entries the dict or set has that the loop goes through."""
        of = self.iterable
        if not isinstance(of, V.Ref) or of.root.kind not in ("dict", "set"):
            return None
        content = self.it.heap.contents[of.root]
        return len(content) if isinstance(content, (dict, tuple)) else None

    def _check_size(self) -> None:
        """What Python raises where a dict or set has more or fewer entries than at the start."""
        if self._size() != self.size:
            assert isinstance(self.iterable, V.Ref)
            what = "dictionary" if self.iterable.root.kind == "dict" else "Set"
            raise raised(self.it, RuntimeError(f"{what} changed size during iteration"))

    @property
    def exits(self) -> bool:
        """True if the body says whether to leave."""
        return self.node.exits or self.tested_inside or self.dynamic or self.it.guarded

    @property
    def keeps_lengths(self) -> bool:
        """True for a loop whose lists should keep a known length: it runs a few times."""
        if self.dynamic:
            return False
        if self.let in self.it.program.unrolled:
            return True
        if self.let in self.it.program.growing or self.it.raises_to_caller:
            return False
        count = self.iteration.count if self.iteration else None
        return isinstance(count, V.Known) and count.value <= needs.SHORT

    def run(self, init: list[V.Value]) -> list[V.Value]:
        """The carried values after the loop."""
        self.tested_inside |= self.it.guarded and self.node.test is not None
        count = self.iteration.count if self.iteration else None
        if self.iteration and self.iteration.static:
            try:
                return self._attempt(lambda: self.unroll(init, 0, count.value))  # type: ignore[union-attr]
            except _LengthChanges:
                return self._through_changing_lists(init)
        if count == V.Known(0):
            return init
        try:
            return self._attempt(lambda: self.rolled(init, 0))
        except TestHasEffects:
            self.tested_inside = True
            return self.run(init)
        except _LengthChanges:
            return self._through_changing_lists(init)
        except (TypeChanges, needs.NeedsUnrolling) as problem:
            return self._otherwise(init, problem)
        except errors.StaticValueError as error:  # perhaps made of the index
            if isinstance(count, V.Known) or getattr(count, "extent", None) is not None:
                return self._otherwise(init, needs.NeedsUnrolling(error))
            self._ask_to_unroll(count)
            raise
        except needs.NeedsIdentity as need:
            if need.error is None or not self.it.program.unfolds:
                raise
            return self._otherwise(init, needs.NeedsUnrolling(need.error))
        except errors.PyrelayError as error:
            return self._short(init, error)

    def _short(self, init: list[V.Value], error: errors.PyrelayError) -> list[V.Value]:
        """The loop unrolled if it runs a few times, so that what it makes differs from round to
        round; or not at all. Raises the error of the loop as it is where that fails, too."""
        count = self.iteration.count if self.iteration else None
        short = self.keeps_lengths and isinstance(count, V.Known) and count.value <= needs.SHORT
        if not short and (self.iteration is not None or self.node.test is None):
            raise error
        try:
            return self._attempt(
                lambda: self.unroll(init, 0, count.value) if short  # type: ignore[union-attr]
                else self._unless_entered(init, error)
            )
        except _FAILURES:
            raise error from None

    def _unless_entered(self, init: list[V.Value], error: Exception) -> list[V.Value]:
        """A `while` loop whose test is known to fail at once: it carries on what it began with."""
        self.enter(init)
        if self.test() != V.Known(False):
            raise error
        return init

    def _through_changing_lists(self, init: list[V.Value]) -> list[V.Value]:
        """The loop over lists that it makes longer or shorter: each time it looks how long."""
        from pyrelay.infer.containers import lists

        it, iteration = self.it, self.iteration
        assert iteration is not None
        assert self.iterable is not None
        contents = [lists.grow(it, ref.root) for ref in iteration.lists]
        grown = iteration.count_now is not None and None not in contents
        if grown:
            self.iteration = iterate(it, self.iterable)
        if not grown or self.iteration.static:  # type: ignore[union-attr]
            raise self._longer()
        self.dynamic = True
        return self.run(init)

    def _longer(self) -> errors.PyrelayError:
        return self.it.failure(
            errors.UnsupportedOperationError,
            "this loop makes the list longer or shorter that it goes through",
            hints=("go through a copy: for item in list(items)",),
        )

    def _attempt(self, action: Callable[[], list[V.Value]]) -> list[V.Value]:
        """Run an attempt; if it fails, nothing of it stays."""
        it = self.it
        mark, saved_heap = it.mark(), it.heap.copy()
        saved_env = dict(it.frame.env)
        try:
            return action()
        except (*_FAILURES, needs.NeedsIdentity):
            it.program.lacking.refuse_beyond()
            it.take_back(mark)
            it.heap.reset(saved_heap)
            it.frame.env = saved_env
            raise

    def _otherwise(self, init: list[V.Value], problem: Exception) -> list[V.Value]:
        count = self.iteration.count if self.iteration else None
        root = problem.root if isinstance(problem, needs.NeedsUnrolling) else None
        makes = root is not None and root.kind == "dict"
        surely = self.it.program.begins and self.it.rounds > 0
        if isinstance(problem, TypeChanges) and surely:
            makes = problem.before == "unset"
        if makes and not isinstance(count, V.Known):
            try:  # its keys may be those that the first round gives it
                return self._attempt(lambda: self.peeled(init, surely=surely))
            except needs.NeedsFirstRound:
                raise
            except _FAILURES:
                pass
        mixes = self.iteration is None and isinstance(problem, TypeChanges)
        if not mixes:  # a `while` loop may carry several types, and is not unrolled
            self._ask_for_sequences(count)
        if isinstance(count, V.Scalar) and count.extent is not None and isinstance(
            problem, needs.NeedsUnrolling
        ):
            fixed = self.it.program.guards.fix(count.extent)
            count = count if fixed is None else V.Known(fixed)
        if isinstance(problem, needs.NeedsUnrolling):
            self._ask_for_entries()
            self._ask_for_tables(count)
        elif isinstance(count, V.Known) and not self.keeps_lengths:
            try:
                return self._attempt(lambda: self.peeled(init))
            except _FAILURES:
                pass
        if isinstance(count, V.Known) and self.it.program.effort.unrolls(count.value):
            try:
                return self._attempt(lambda: self._unrolled(init, count.value, root))
            except _LengthUnknown:
                self.it.program.growing.add(self.let)
                return self.run(init)
            except needs.NeedsSplitting:  # it is left where a list has one of several lengths
                given = self.it.program.unrolled | self.it.program.growing
                if self.let in given:
                    raise
                self.it.program.growing.add(self.let)
                return self.run(init)
        if self.iteration is None:
            try:
                return self._attempt(lambda: self.unroll_while(init, problem))
            except (TypeChanges, needs.NeedsUnrolling) as again:
                problem = again
        if isinstance(problem, needs.NeedsUnrolling):
            self._ask_to_unroll(count)
            raise problem.error
        assert isinstance(problem, TypeChanges)
        if self.it.program.unfolds:  # an object refers to more of them after each round
            self._ask_to_unroll(count)
        try:
            return self._attempt(lambda: self.peeled(init))
        except TypeChanges as again:
            problem = problem if problem.before != "None" else again
        try:
            return self._attempt(lambda: self.rolled(init, 0, mixed=True))
        except (TypeChanges, needs.NeedsUnrolling, errors.PyrelayError):
            self._ask_for_sequences(count)
            raise self._changed(problem) from None

    def _ask_to_unroll(self, count: V.Value | None) -> None:
        """Raises NeedsStatic where another attempt may know how often the loop runs."""
        if isinstance(count, V.Scalar) and isinstance(count.origin, tuple):
            note_beside(self.it, self.node.body)
            raise needs.NeedsStatic(count.origin, needs.HOW_OFTEN) from None

    def _ask_for_sequences(self, count: V.Value | None) -> None:
        """Raises NeedsSequences where a text that gets longer may be why the loop would be
        unrolled."""
        strings = sequences()
        few = isinstance(count, V.Known) and count.value <= needs.SHORT
        if strings.lengthened and not strings.open and not strings.tried and not few:
            raise needs.NeedsSequences

    def _ask_for_entries(self) -> None:
        """Raises NeedsEntries where dicts in lists may be why the loop would be unrolled,
        NeedsListed where objects are."""
        program, count = self.it.program, self.iteration.count if self.iteration else None
        if program.compares or program.unfolds or (
            isinstance(count, V.Known) and count.value <= needs.SHORT
        ):
            return
        known = program.keyed | program.unkeyed | program.nested | program.tables
        found = self.it.heap.items.keyed - known
        if found:
            raise needs.NeedsEntries(frozenset(found))
        classes = self.it.heap.items.classes
        if isinstance(count, V.Known) and any(
            is_record_class(cls) and program.families.of(cls) is None for cls in classes
        ):
            raise needs.NeedsListed

    def _ask_for_tables(self, count: V.Value | None) -> None:
        """Raises NeedsListed where a loop would be unrolled many times that may be because of dicts
        in lists whose keys only the running program knows."""
        program = self.it.program
        if program.compares or program.unfolds or not isinstance(count, V.Known) or (
            count.value <= needs.SHORT
        ):
            return
        if any(
            cls in nested_for and made not in program.nested
            and (made in program.open_keys or not isinstance(cls, str))
            for cls, made in self.it.heap.items.made
        ):
            raise needs.NeedsListed

    def _changed(self, problem: TypeChanges) -> errors.PyrelayError:
        return self.it.failure(
            errors.TypeMismatchError,
            f"{problem.name!r} is {problem.before} before an iteration of this loop and "
            f"{problem.after} after it",
            notes=(f"what a loop carries keeps its type: {problem.what}",),
            hints=(f"start {problem.name!r} with a value of the type it has in the loop",),
        )

    # -- one iteration -----------------------------------------------------------------------------

    def enter(self, carried: list[V.Value]) -> None:
        """Bind the carried variables for the test and the body."""
        self.it.bind(self.node.carried, carried)

    def test(self) -> V.Value:
        """Interpret the test; its truth. Binds the handed variables."""
        assert self.node.test is not None
        cond, *handed = self.it.run(self.node.test)
        self.it.bind(self.node.handed, handed)
        return truth(self.it, cond)

    def body(
        self, index: V.Value | None, *, raises: bool = True
    ) -> tuple[V.Value, list[V.Value]]:
        """Interpret the body; whether to leave, and the next carried values.

        With `raises` the loop is left where something is raised, too.
        """
        if not self.it.guarded:
            return self._iteration(index)
        handling.nothing_raised(self.it)
        self.raises = False
        try:
            leave, following = self._iteration(index)
        except needs.Raises:
            self.raises = True
            return V.Known(True), self._carried()
        if not raises:
            return leave, following
        return either(self.it, handling.on_its_way(self.it), leave), following

    def _iteration(self, index: V.Value | None) -> tuple[V.Value, list[V.Value]]:
        self.it.rounds += 1
        try:
            return self._round(index)
        finally:
            self.it.rounds -= 1

    def _round(self, index: V.Value | None) -> tuple[V.Value, list[V.Value]]:
        if self.dynamic:
            assert index is not None
            return self._guarded(self._reached(index), index)
        if self.iteration is not None:
            assert index is not None
            self._bind_item(index)
        if not self.tested_inside:
            return self._body()
        return self._guarded(self.test())

    def _bind_item(self, index: V.Value) -> None:
        iteration = self.iteration
        assert iteration is not None
        if self.node.item is None:
            return
        if self.it.tries_ops:
            _, item = handling.attempt(self.it, lambda: [iteration.item(index)])
        else:
            item = [iteration.item(index)]
        self.it.bind((self.node.item,), item)

    def _reached(self, index: V.Value) -> V.Value:
        """Whether lists have an item at an index, as long as they are now."""
        from pyrelay.infer.operators import compare

        assert self.iteration is not None
        assert self.iteration.count_now is not None
        return compare(self.it, "<", index, self.iteration.count_now())

    def _guarded(
        self, going: V.Value, index: V.Value | None = None
    ) -> tuple[V.Value, list[V.Value]]:
        """The body if the test holds, else leave the loop."""
        if isinstance(going, V.Known):
            if not going.value:
                return V.Known(True), self._carried()
            if index is not None:
                self._bind_item(index)
            return self._body()
        from pyrelay.infer.flow.control import branch

        def inside() -> list[V.Value]:
            if index is not None:
                self._bind_item(index)
            leave, following = self._body()
            return [leave, *following]

        names = ["leave", *(v.name for v in self.node.carried)]
        leave, *following = branch(
            self.it, self.it.atom(going), inside, lambda: [V.Known(True), *self._carried()], names
        )
        return leave, following

    def _carried(self) -> list[V.Value]:
        return [self.it.value(v) for v in self.node.carried]

    def _body(self) -> tuple[V.Value, list[V.Value]]:
        if not self.it.guarded:
            return self._plain_body()

        def run() -> list[V.Value]:
            leave, following = self._plain_body()
            return [leave, *following]

        leave, *following = handling.behind(self.it, run)
        return leave, following

    def _plain_body(self) -> tuple[V.Value, list[V.Value]]:
        lengths = self._lengths()
        results = list(self.it.run(self.node.body))
        leave: V.Value = V.Known(False)
        if self.node.exits:
            leave, results = truth(self.it, results[0]), results[1:]
        if lengths != self._lengths() and not self.dynamic and leave != V.Known(True):
            raise _LengthChanges
        return leave, results

    def _lengths(self) -> list[Any]:
        """What tells how long the lists are that this loop goes through."""
        refs = self.iteration.lists if self.iteration is not None else ()
        found: list[Any] = []
        for ref in refs:
            content = self.it.heap.contents[ref.root]
            if isinstance(content, V.Growing):
                count = extent_of(content.count)
                found.append(self.it.atom(content.count) if count is None else count)
            elif isinstance(content, V.Part):
                owner = self.it.content(content.owner)
                first, _ = growing.inner_lists(owner.template)[content.path]
                found.append(owner.rows[first])  # the lengths of all lists in it
            else:
                found.append(len(self.it.content(ref.root)))
        return found

    # -- unrolled and peeled -----------------------------------------------------------------------

    def _unrolled(self, init: list[V.Value], count: int, root: V.Root | None) -> list[V.Value]:
        """All iterations; `root` is a list whose length should be known afterwards."""
        results = self.unroll(init, 0, count)
        given_up = self.let not in self.it.program.unrolled
        if root is not None and given_up and isinstance(self.it.content(root), V.Growing):
            raise _LengthUnknown
        return results

    def unroll(self, carried: list[V.Value], start: int, count: int) -> list[V.Value]:
        """Iterations `start` to `count` one after the other."""
        from pyrelay.infer.flow.control import branch

        if not self.it.program.effort.unrolls(count - start):
            raise self.it.failure(
                errors.UnsupportedOperationError,
                f"this loop would have to be unrolled {count - start} times, and the limit is "
                f"{self.it.program.effort.rounds}",
                notes=(
                    "its items differ in structure, or its body needs the index while compiling",
                ),
                hints=("keep the items in one array, and index it with the loop variable",),
            )
        it = self.it
        self._check_size()
        for k in range(start, count):
            self.enter(carried)
            it.rolling += 1
            try:
                leave, carried = self.body(V.Known(k), raises=not it.raises_to_caller)
            finally:
                it.rolling -= 1

            def rest(
                leave: V.Value = leave, carried: list[V.Value] = carried, following: int = k + 1
            ) -> list[V.Value]:
                if isinstance(leave, V.Known):
                    return carried if leave.value else self.unroll(carried, following, count)
                if following == count and self._size() == self.size and not self.dynamic:
                    return carried
                return branch(
                    it, it.atom(leave), lambda: list(carried),
                    lambda: self.unroll(list(carried), following, count),
                    [v.name for v in self.node.carried], grows=True,
                )  # fmt: skip

            if it.raises_to_caller and handling.on_its_way(it) != V.Known(False):
                return handling.behind(it, rest)  # a caller's lists may be longer where it raised
            if not isinstance(leave, V.Known):
                return rest()
            if leave.value:
                return carried
            self._check_size()
        if self.dynamic and self._reached(V.Known(count)) != V.Known(False):
            raise self._longer()
        return carried

    def unroll_while(self, carried: list[V.Value], problem: Exception) -> list[V.Value]:
        """A `while` whose test is known each time; raises `problem` if it is not."""
        for done in itertools.count():
            if not self.it.program.effort.unrolls(done):
                break
            self.enter(carried)
            going = V.Known(True) if self.node.test is None or self.tested_inside else self.test()
            if going == V.Known(False):
                return carried
            leave, following = self.body(None) if going == V.Known(True) else (None, carried)
            if leave == V.Known(True):
                return following
            if leave != V.Known(False):
                break
            carried = following
        raise problem

    def peeled(
        self, init: list[V.Value], behind: Callable[[list[V.Value]], Any] = list, *,
        tears: bool = False, surely: bool = False,
    ) -> list[V.Value]:
        """One iteration, if there is one, then the loop, and what is `behind` it in both arms.

        surely: a call in which there is none is refused when it gets there.
        Raises NeedsFirstRound if that has to be so, as they leave an object with two structures.
        """
        from pyrelay.infer.flow.control import branch

        it = self.it
        names = [v.name for v in self.node.carried]

        def rest(carried: list[V.Value]) -> list[V.Value]:
            return self.rolled(carried, 1)

        def first() -> list[V.Value]:
            leave, carried = self.body(V.Known(0))
            if isinstance(leave, V.Known):
                return carried if leave.value else rest(carried)
            stop = list(carried)
            return branch(it, it.atom(leave), lambda: stop, lambda: rest(carried), names)

        self.enter(init)
        if self.iteration is None:
            tested = self.node.test is not None and not self.tested_inside
            started = self.test() if tested else V.Known(True)
        else:
            started = _positive(it, self.iteration.count)
        if isinstance(started, V.Known):
            return list(behind(first() if started.value else init))
        if surely:
            raise_where(
                it, it.atom(unary(it, "not", started)), errors.UnsupportedOperationError,
                V.Known(_NO_ROUND),
            )
            return list(behind(first()))
        done = False

        def with_first() -> list[V.Value]:
            nonlocal done
            results = list(behind(first()))
            done = True
            return results

        try:
            return branch(
                it, it.atom(started), with_first, lambda: list(behind(init)),
                names if behind is list else (), tears=tears,
                grows=behind is not list and not tears,
            )
        except needs.NeedsSplitting as need:
            it.program.begins_wanted |= done and it.rounds > 0
            if not done or behind is not list or not self.splits:
                raise
            raise needs.NeedsFirstRound(need.error, need.root) from None

    # -- rolled ------------------------------------------------------------------------------------

    def starts(self, start: int) -> bool:
        """True if iteration `start` is certain to run."""
        if self.iteration is None:
            return self.node.test is None
        count = self.iteration.count
        return isinstance(count, V.Known) and bool(count.value > start)

    def rolled(
        self, init: list[V.Value], start: int, *, mixed: bool = False
    ) -> list[V.Value]:
        """A loop of Core from iteration `start` on. `mixed`: anything may become anything."""
        it = self.it
        mark, heap, env, let = it.mark(), it.heap.copy(), dict(it.frame.env), it.let
        it.rolled.append(len(it.blocks))
        try:
            return self._settled(init, start, mixed)
        except needs.NeedsExtent as need:
            expression = need.expression
        finally:
            it.rolled.pop()
        it.take_back(mark)
        it.heap.reset(heap)
        it.frame.env, it.let = env, let
        bound_extents.bind(it, expression)
        return self.rolled(init, start, mixed=mixed)

    def _settled(self, init: list[V.Value], start: int, mixed: bool) -> list[V.Value]:
        """The loop where the layouts that it carries fit those that it began with."""
        state = Fixpoint(self, init, start, mixed)
        passes = growth = cases = 0
        while passes < _MOST_PASSES and growth < _MOST_GROWTH:
            places = len(state.place_roots)
            done = state.attempt()
            if done is not None:
                return done
            passes += len(state.place_roots) == places  # one that finds places gets nearer
            before, cases = cases, state.cases
            growth = growth + 1 if cases > before else 0
        raise needs.NeedsUnrolling(self.it.failure(
            errors.TypeMismatchError, "the types that this loop carries never settle"
        ))


def _positive(it: Interpreter, count: V.Value) -> V.Value:
    from pyrelay.infer.operators import compare

    return compare(it, ">", count, V.Known(0))
