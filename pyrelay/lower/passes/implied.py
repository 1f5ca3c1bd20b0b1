"""Checks that conditions around them settle leave: `if 0 <= j < n: total += x[j]`.

In: the body of a scalar kernel. Out: the same, in which comparisons and overflows of integers that
are certain are constants, and what these decide is decided: checks that cannot fail, whether an
index counts from the end, branches that are never taken.

One walk in the order of execution. What holds after a check, in a branch and where a loop goes on
is noted (`intervals`) and forgotten at its end. Of a variable that a loop changes there holds in it
what held in front of it and what a round does not undo, which is tried (Flanagan and Leino,
"Houdini, an annotation assistant for ESC/Java", FME 2001); in a loop of few rounds, what is found
by going through them all; and what follows from small steps in one direction. So it is known, too,
which loops end soon (`few_rounds`). A condition of several parts is a variable that a branch sets,
`v = b if a else False`: where it is true both parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Assign,
    Body,
    Break,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Operand,
    Read,
    Statement,
    While,
    bodies,
    operands,
    renamed,
    statements,
)
from pyrelay.lower.kernels.values import operand_key
from pyrelay.lower.passes.few_rounds import most_rounds
from pyrelay.lower.passes.intervals import (
    ANY,
    GREATEST,
    LEAST,
    LONGEST,
    Interval,
    Intervals,
    whatever_variables_are,
)
from pyrelay.records import dataclass

_COMPARED = frozenset(["less", "less_equal", "greater", "greater_equal"])
_EQUAL = frozenset(["equal", "not_equal"])
_BOTH = frozenset(["logical_and", "bitwise_and"])
_EITHER = frozenset(["logical_or", "bitwise_or"])
_OVERFLOWS = frozenset(["add_overflows", "subtract_overflows", "multiply_overflows"])
_EXACT = frozenset(name.removesuffix("_overflows") for name in _OVERFLOWS)
_TRIALS, _FEW_TRIALS = 4, 2000  # statements gone through in trials, by statements
_LARGEST_STEP = 16
_DEEPEST = 16
_MOST_TRIALS = 6  # of what a round leaves as it was
_MOST_ROUNDS = 32  # of a loop that is gone through
_FAR = 1 << 60  # steps of at most 16 take years to get so far
_FEW_BITS = 2**32 - 1
_FEW_SECONDS = 1 << 30  # rounds
_LARGEST_TRIAL = 400  # statements
_MOST_LIMITS = 4  # numbers that a variable is tried to be no more than
_MOST_COPIES = 6  # from one variable to the next, of what a round adds
_TRUE, _FALSE = Literal(True, bool_), Literal(False, bool_)
_Choice: TypeAlias = tuple[Operand, Operand, Operand]  # a condition, and what follows from it


def without_implied_checks(body: Body) -> Body:
    """The body without what conditions around it have settled."""
    if not any(_may_settle(s) for s in statements(body)):
        return body
    return walked(body, lambda s, _: (s,))


def _may_settle(s: Statement) -> bool:
    """Whether it is a check, a loop that may end soon, or hangs on what is known already."""
    known = any(isinstance(o, Literal) and o.dtype == bool_ for o in operands(s))
    return isinstance(s, (Fail, While)) or (known and isinstance(s, (Compute, If)))


#: What is computed in place of a value by what is known of its operands.
Rule: TypeAlias = Callable[[Compute, Intervals], Sequence[Compute]]


def walked(body: Body, rule: Rule) -> Body:
    """The same, where values are computed as a rule says."""
    return _Walk(body, rule).body(body)


@dataclass(slots=True, eq=False)
class _Inside:
    """The Assigns in a loop, what makes its scalars, and how many statements it has."""

    assigns: set[int]
    makers: dict[Local, Compute]
    size: int
    _whatever: Intervals | None = None

    def compared(self) -> tuple[dict[Local, int], list[int]]:
        """What integers are compared with in it: scalars, which by up to so much more, and numbers,
        and what lies below them."""
        scalars: dict[Local, int] = {}
        numbers: set[int] = set()
        for s in self.makers.values():
            if s.primitive in _COMPARED and s.args[0].dtype == i64:
                for arg in s.args:
                    if isinstance(arg, Literal):
                        numbers.add(int(arg.value))
                    elif isinstance(arg, Local):
                        scalar, more = self._sum(arg)
                        scalars[scalar] = max(more, scalars.get(scalar, 0))
        limits = sorted({n - less for n in numbers if n > 1 for less in (0, 1)})
        return scalars, limits[:_MOST_LIMITS]

    def _sum(self, local: Local) -> tuple[Local, int]:
        """What a scalar of the loop is a constant more than, and that constant."""
        match self.makers.get(local):
            case Compute(primitive="add", args=(Local() as scalar, Literal(value=int(more)))):
                return scalar, more
        return local, 0

    def whatever_variables_are(self) -> Intervals:
        """What is known of its scalars in any round: a loop is looked at for each variable, and
        again in each trial of those around it."""
        if self._whatever is None:
            self._whatever = whatever_variables_are(self.makers.values(), {})
        return self._whatever


class _Walk:
    """What is known at the statement that is being looked at."""

    def __init__(self, body: Body, rule: Rule) -> None:
        self.rule = rule
        self.known = Intervals()
        self.extents: set[Local] = set()
        self.names: dict[Operand, Operand] = {}
        self.makers: dict[Local, Compute] = {}  # of values, as long as these are what they give
        self.choices: dict[Local, _Choice] = {}  # of variables that a branch has set
        self.truths: dict[Operand, bool] = {}  # of variables that have just been set
        self.readers: dict[Local, list[Local]] = {}  # of variables: what the above say of them
        self.assigns: dict[Local, list[Assign]] = {}
        for s in statements(body):
            if isinstance(s, Assign):
                self.assigns.setdefault(s.variable, []).append(s)
        self.checked: dict[tuple[object, ...], Local] = {}  # sums and the like, by what they are of
        #: Statements to go through in trials.
        self.left = _FEW_TRIALS + _TRIALS * sum(1 for _ in statements(body))
        self.ends: list[tuple[Sequence[Local], list[dict[Local, Interval]]]] = []  # of loops around
        self.changes: dict[Statement, Sequence[Local]] = {}
        self.insides: dict[Statement, _Inside] = {}
        self.tries = False  # whether nothing of this walk is kept
        self.over = False  # whether what follows is never reached

    def _apart(self) -> _Walk:
        """Another walk from here on, of which nothing is kept."""
        new = object.__new__(_Walk)
        new.known, new.names, new.makers = self.known.copy(), dict(self.names), dict(self.makers)
        new.extents, new.rule = self.extents, self.rule
        new.choices, new.checked = dict(self.choices), dict(self.checked)
        new.truths = dict(self.truths)
        new.readers = {variable: list(readers) for variable, readers in self.readers.items()}
        new.assigns, new.left, new.ends = self.assigns, self.left, []
        new.changes, new.insides = self.changes, self.insides
        new.tries, new.over = True, False
        return new

    def body(self, body: Body) -> Body:
        """The statements of a body, in order."""
        out: list[Statement] = []
        for statement in body:
            out += self._statement(renamed(statement, self.names))
            if self.over and self.tries:
                break
        return tuple(out)

    def _statement(self, s: Statement) -> Sequence[Statement]:
        match s:
            case Compute():
                return self._compute(s)
            case Read(out=out, parameter=parameter):
                if parameter.role == EXTENT:
                    self.known.put(out, Interval(0, LONGEST, {}))
                    self.extents.add(out)
            case Assign(variable=variable, value=value):
                self._forget(variable)
                self.known.put(variable, self.known.value(value))
                if variable.dtype.kind == "f":
                    self.known.floats.put(variable, self.known.floats.of(value))
                truth = self._truth(value) if variable.dtype == bool_ else None
                if truth is not None:
                    self.truths[variable] = truth
            case Fail(cond=cond) | Break(cond=cond):
                truth = self._truth(cond)
                if truth is False:
                    return ()
                self.over = truth is True
                if isinstance(s, Break) and self.ends:
                    changed, ends = self.ends[-1]
                    ends.append({v: self.known.of(v) for v in changed})
                self._assume(cond, False)
            case If(cond=cond):
                truth = self._truth(cond)
                if truth is not None:
                    return self.body(s.then if truth else s.orelse)
                return (self._if(s),)
            case For() | While():
                return (self._loop(s),)
        return (s,)

    # -- values --------------------------------------------------------------------------------

    def _compute(self, s: Compute) -> Sequence[Statement]:
        decided = self._decided(s)
        if decided is not None:
            self.names[s.out] = decided
            return ()
        self.makers[s.out] = s
        for arg in s.args:
            if isinstance(arg, Local) and arg.variable:
                self.readers.setdefault(arg, []).append(s.out)
        self.known.make(s)
        if s.primitive in _EXACT:
            self.checked[s.primitive, *map(operand_key, s.args)] = s.out
        if s.primitive == "logical_or":
            return self._loses_bits(s)
        return self.rule(s, self.known)

    def _decided(self, s: Compute) -> Operand | None:
        """What a value certainly is, if another operand gives it."""
        name, args = s.primitive, s.args
        if args and args[0].dtype.kind == "f" and s.out.dtype == bool_:
            truth = self.known.floats.truth(name, args)
            return None if truth is None else _TRUE if truth else _FALSE
        if name in _COMPARED and _are_integers(args):
            truth = self._compared(name, *args)
            return None if truth is None else _TRUE if truth else _FALSE
        if name in _OVERFLOWS and all(a.dtype == i64 for a in args):
            low, high = self._exact_ends(name, args)
            return _FALSE if low >= LEAST and high <= GREATEST else None
        if name in _EQUAL and all(a.dtype == i64 for a in args):
            if self._is_shifted_back(*args):
                return _FALSE if name == "not_equal" else _TRUE
            a, b = map(self.known.of, args)
            apart = a.high < b.low or b.high < a.low
            return None if not apart else _TRUE if name == "not_equal" else _FALSE
        known = [self._truth(a) for a in args]
        if s.out.dtype != bool_ and name != "where":
            return None
        if name == "where" and known[0] is not None:
            chosen = args[1] if known[0] else args[2]
            return None if isinstance(chosen, Local) and chosen.variable else chosen
        if name == "logical_not" and known[0] is not None:
            return _FALSE if known[0] else _TRUE
        if name in _BOTH | _EITHER and all(a.dtype == bool_ for a in args):
            neutral = name in _BOTH
            if (not neutral) in known:
                return _FALSE if neutral else _TRUE
            for value, other in ((known[0], args[1]), (known[1], args[0])):
                if value is neutral and not (isinstance(other, Local) and other.variable):
                    return other
        return None

    def _is_shifted_back(self, back: Operand, number: Operand) -> bool:
        """Whether `back` is `number`, shifted to the left by so few bits that none left, and back
        again."""
        by = self._shift(back, number)
        if by is None:
            return False
        bits, found = self.known.of(by), self.known.of(number)
        return 0 <= bits.low <= bits.high < 63 and (
            found.low << bits.high >= LEAST and found.high << bits.high <= GREATEST
        )

    def _shift(self, back: Operand, number: Operand) -> Operand | None:
        """By how many bits `number` has been shifted to the left, and back again."""
        match self.makers.get(back):  # type: ignore[arg-type]
            case Compute(primitive="right_shift", args=(Local() as shifted, by)):
                maker = self.makers.get(shifted)
                if maker is not None and maker.primitive == "left_shift" and (
                    maker.args[0] is number and operand_key(maker.args[1]) == operand_key(by)
                ):
                    return by
        return None

    def _loses_bits(self, s: Compute) -> Sequence[Compute]:
        """Whether a number that is known to have few bits loses some of them where it is shifted to
        the left: only by so many bits, which is what loops can ask for a last round."""
        for each in s.args:
            match self.makers.get(each):  # type: ignore[arg-type]
                case Compute(primitive="not_equal", args=(back, number)):
                    by, found = self._shift(back, number), self.known.of(number)
                    if by is not None and 0 <= found.low <= found.high <= _FEW_BITS:
                        far, either = Local(bool_), Local(bool_)
                        most = Literal(63 - found.high.bit_length(), i64)
                        if 0 < found.low == found.high:
                            return (Compute(s.out, "greater", (by, most)),)
                        return (
                            Compute(far, "greater", (by, most)), replace(s, out=either),
                            Compute(s.out, "logical_and", (far, either)),
                        )  # fmt: skip
        return (s,)

    def _exact_ends(self, name: str, args: Sequence[Operand]) -> tuple[int, int]:
        """Between what a sum, a difference or a product lies if it may have more than 64 bits."""
        a, b = map(self.known.of, args)
        if name == "add_overflows":
            return a.low + b.low, a.high + b.high
        if name == "subtract_overflows":
            return a.low - b.high, a.high - b.low
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(corners), max(corners)

    def _truth(self, operand: Operand) -> bool | None:
        """Whether a condition holds, which may be compared further up than where it is settled."""
        if isinstance(operand, Literal):
            return bool(operand.value)
        if operand in self.truths:
            return self.truths[operand]
        maker = self.makers.get(operand)
        if maker is not None and maker.primitive == "logical_not":
            truth = self._truth(maker.args[0])
            return None if truth is None else not truth
        if maker is None or maker.primitive not in _COMPARED:
            return None
        if _are_integers(maker.args):
            return self._compared(maker.primitive, *maker.args)
        return self.known.floats.truth(maker.primitive, maker.args)

    def _compared(self, name: str, a: Operand, b: Operand) -> bool | None:
        if name in ("greater", "greater_equal"):
            a, b = b, a
        less = -1 if name in ("less", "greater") else 0
        if self.known.at_most(a, b, less):
            return True
        return False if self.known.at_most(b, a, -1 - less) else None

    # -- conditions ----------------------------------------------------------------------------

    def _assume(self, cond: Operand, truth: bool, depth: int = 0) -> None:
        """Note what follows if a condition is true, or false."""
        if not isinstance(cond, Local) or depth > _DEEPEST:
            return
        choice = self.choices.get(cond)
        if choice is not None:
            self._assume_chosen(*choice, truth, depth + 1)
        maker = self.makers.get(cond)
        if maker is None:
            return
        name, args = maker.primitive, maker.args
        if name == "logical_not":
            self._assume(args[0], not truth, depth + 1)
        elif name in (_BOTH if truth else _EITHER) and all(a.dtype == bool_ for a in args):
            for arg in args:
                self._assume(arg, truth, depth + 1)
        elif name in _OVERFLOWS and not truth and all(a.dtype == i64 for a in args):
            self._assume_exact(name, args)
        elif name in _EQUAL and all(a.dtype == i64 for a in args):
            a, b = args
            if truth is (name == "equal"):
                self.known.assume_at_most(a, b, 0)
                self.known.assume_at_most(b, a, 0)
            elif isinstance(a, Local) and isinstance(b, Literal):
                self.known.assume_other(a, b.value)
        elif name in _COMPARED and all(a.dtype == i64 for a in args):
            a, b = reversed(args) if name in ("greater", "greater_equal") else args
            less = -1 if name in ("less", "greater") else 0
            if truth:
                self.known.assume_at_most(a, b, less)
            else:
                self.known.assume_at_most(b, a, -1 - less)
        elif name in _COMPARED and args[0].dtype.kind == "f":
            self.known.floats.assume(name, args, truth)
        elif name == "isnan" and not truth:
            self.known.floats.assume_number(args[0])

    def _assume_exact(self, name: str, args: Sequence[Operand]) -> None:
        """Note what a sum, a difference or a product is that has not left 64 bits."""
        primitive = name.removesuffix("_overflows")
        out = self.checked.get((primitive, *map(operand_key, args)))
        if out is not None and out in self.makers:
            if primitive == "multiply":
                found = Interval(*self._exact_ends(name, args), {})
            else:
                found = self.known.exact(primitive, args)
            self.known.put(out, self.known.of(out).met(found))

    def _assume_chosen(
        self, cond: Operand, then: Operand, orelse: Operand, truth: bool, depth: int
    ) -> None:
        """`then if cond else orelse` is true, or false: which of the two it is, if that is sure."""
        for value, other, taken in ((then, orelse, True), (orelse, then, False)):
            if isinstance(other, Literal) and bool(other.value) is not truth:
                self._assume(cond, taken, depth)
                self._assume(value, truth, depth)

    def _forget(self, variable: Local) -> None:
        """What was said of a variable's value is no longer of its value."""
        self.choices.pop(variable, None)
        self.truths.pop(variable, None)
        waiting = [variable]
        while waiting:
            for reader in self.readers.pop(waiting.pop(), ()):
                self.makers.pop(reader, None)
                if self.choices.pop(reader, None) is not None:
                    waiting.append(reader)

    # -- branches ------------------------------------------------------------------------------

    def _if(self, s: If) -> If:
        changed = self._changed(s)
        arms, ends, of_floats = [], [], []
        for arm, truth in ((s.then, True), (s.orelse, False)):
            mark, self.over = self.known.mark(), False
            self._assume(s.cond, truth)
            arms.append(self.body(arm))
            if not self.over:
                ends.append({v: self.known.of(v) for v in changed})
                of_floats.append(self.known.floats.of_each(changed))
            self.known.undo(mark)
            for variable in changed:
                self._forget(variable)
        self.over = not ends
        for variable in changed:
            found = (end[variable] for end in ends)
            self.known.put(variable, reduce(Interval.joined, found) if ends else ANY)
        self.known.floats.join(changed, of_floats)
        then, orelse = arms
        for variable in changed:
            if variable.dtype == bool_:
                self._note_choice(variable, s.cond, _last(then, variable), _last(orelse, variable))
        return replace(s, then=then, orelse=orelse)

    def _changed(self, s: If | For | While) -> Sequence[Local]:
        """The variables that a statement's bodies change."""
        if s not in self.changes:
            found = (v for body in bodies(s) for v in _assigned(body))
            self.changes[s] = tuple(dict.fromkeys(found))
        return self.changes[s]

    def _note_choice(
        self, variable: Local, cond: Operand, then: Operand | None, orelse: Operand | None
    ) -> None:
        if then is None or orelse is None or variable in (cond, then, orelse):
            return
        then = _TRUE if then is cond else then
        orelse = _FALSE if orelse is cond else orelse
        if not isinstance(then, Literal) and not isinstance(orelse, Literal):
            return
        self.choices[variable] = cond, then, orelse
        for operand in (cond, then, orelse):
            if isinstance(operand, Local) and operand.variable:
                self.readers.setdefault(operand, []).append(variable)

    # -- loops ---------------------------------------------------------------------------------

    def _loop(self, s: For | While) -> For | While:
        changed = self._changed(s)
        if s not in self.insides:
            flat = list(statements(s.body))
            self.insides[s] = _Inside(
                {id(each) for each in flat if isinstance(each, Assign)},
                {each.out: each for each in flat if isinstance(each, Compute)}, len(flat),
            )
        inside = self.insides[s]
        kept = {v: self._kept(v, inside) for v in changed}
        slow = self._slow(s, inside.assigns, inside.makers)
        kept = self._tried(s, inside, changed, kept, slow)
        for variable in changed:
            self._forget(variable)
            self.known.put(variable, kept[variable])
        if isinstance(s, For) and not s.bounded and self._is_bounded(s):
            s = replace(s, bounded=True)
        mark = self.known.mark()
        self._begin(s, changed, slow)
        self.ends.append((changed, []))
        body = self.body(s.body)
        self.over = False
        self.ends.pop()
        if isinstance(s, While):
            most = most_rounds(replace(s, body=body), kept, self.known.of)
            s = replace(s, most=s.most if most is None else most)
        self.known.undo(mark)
        for variable in changed:
            self._forget(variable)
            self.known.put(variable, kept[variable])
        return replace(s, body=body)

    def _is_bounded(self, s: For) -> bool:
        """Whether a loop has no more rounds than an array has elements, or a few seconds."""
        if self.known.of(s.start).low < -_FEW_SECONDS:
            return False
        stop = self.known.value(s.stop)
        return stop.high <= _FEW_SECONDS or any(
            extent in self.extents and more <= _FEW_SECONDS for extent, more in stop.above.items()
        )

    def _begin(
        self, s: For | While, changed: Sequence[Local], slow: Mapping[Local, int]
    ) -> None:
        """Note what is known of a loop's index, and of what steps no faster."""
        if isinstance(s, For):
            first = self.known.of(s.start).low
            self.known.put(s.index, Interval(first, GREATEST, {}))
            if s.stop not in changed:
                self.known.assume_at_most(s.index, s.stop, -1)
            for v, more in slow.items():
                above = {s.index: more}
                self.known.put(v, self.known.of(v).met(Interval(LEAST, GREATEST, above)))

    def _slow(
        self, s: For | While, inside: set[int], makers: dict[Local, Compute]
    ) -> dict[Local, int]:
        """Variables that exceed a loop's index by no more than a constant when a round begins, as
        each adds at most 1 to them: places of what a loop over an array keeps."""
        found: dict[Local, int] = {}
        if not isinstance(s, For) or not isinstance(s.start, Literal):
            return found
        for each in s.body:
            if not isinstance(each, Assign) or each.variable.dtype != i64:
                continue
            variable, high = each.variable, self.known.of(each.variable).high
            if sum(id(other) in inside for other in self.assigns[variable]) > 1 or high > _FAR:
                continue
            steps = self._steps(variable, each.value, inside, makers, 0)
            if steps is not None and max(steps) <= 1:
                found[variable] = high - s.start.value
        return found

    def _tried(
        self, s: For | While, inside: _Inside, changed: Sequence[Local],
        kept: dict[Local, Interval], slow: Mapping[Local, int],
    ) -> dict[Local, Interval]:
        """What holds whenever a round begins, and behind the loop: what is kept anyway, and what
        rounds are found to leave true."""
        numbers, size = [v for v in changed if v.dtype == i64], inside.size
        found = {v: self.known.of(v) for v in numbers}
        if size > _LARGEST_TRIAL or all(v == ANY for v in found.values()):
            return kept
        scalars, limits = inside.compared()
        lengths = {e: more for e, more in scalars.items() if e in self.extents}
        found = {v: self._below(each, lengths) for v, each in found.items()}
        rounds = _MOST_ROUNDS + 1
        if isinstance(s, For) and isinstance(s.start, Literal) and isinstance(s.stop, Literal):
            rounds = max(s.stop.value - s.start.value, 0)
        few = rounds <= _MOST_ROUNDS
        for trial in range(rounds if few else _MOST_TRIALS):
            self.left -= size
            if self.left < 0:
                return kept
            walk = self._apart()
            for v in changed:
                walk._forget(v)
                walk.known.put(v, kept[v].met(found[v]) if v in found else ANY)
            walk._begin(s, changed, slow)
            walk.ends.append((numbers, []))
            walk.body(s.body)
            self.left = walk.left
            after = list(walk.ends[0][1])
            if not walk.over:
                after.append({v: walk.known.of(v) for v in numbers})
            tried = limits if trial < _MOST_TRIALS - 2 else ()

            def kept_of(a: Interval, b: Interval, tried: Sequence[int] = tried) -> Interval:
                return a.joined(b) if few else a.kept(b, tried, lengths)

            new = {v: reduce(kept_of, (each[v] for each in after), found[v]) for v in numbers}
            if new == found:
                break
            found = new
        else:
            if not few:
                return kept
        return {v: kept[v].met(found[v]) if v in found else kept[v] for v in changed}

    def _below(self, found: Interval, lengths: Mapping[Local, int]) -> Interval:
        """What is known of a number, and by how much it is no more than lengths of arrays."""
        more = {e: found.high - self.known.of(e).low for e in lengths}
        above = {e: n for e, n in more.items() if n <= lengths[e]}
        return found.met(Interval(LEAST, GREATEST, above))

    def _kept(self, variable: Local, inside: _Inside) -> Interval:
        """What a loop's steps leave true of a variable that it changes, or what it sets it to."""
        if variable.dtype != i64:
            return ANY
        start = self.known.of(variable)
        steps: set[int] = set()
        changes = [each for each in self.assigns[variable] if id(each) in inside.assigns]
        for each in changes:
            found = self._steps(variable, each.value, inside.assigns, inside.makers, 0)
            if found is None:
                known = inside.whatever_variables_are()
                set_to = (known.of(change.value) for change in changes)
                return reduce(Interval.joined, set_to, replace(start, above={}))
            steps |= found
        down, up = min(steps, default=0) < 0, max(steps, default=0) > 0
        if (down and start.low < -LONGEST) or (up and start.high > LONGEST):
            return ANY
        return Interval(
            start.low - _FAR * down, start.high + _FAR * up, {} if up else start.above
        )

    def _steps(
        self, variable: Local, value: Operand, inside: set[int], makers: dict[Local, Compute],
        depth: int,
    ) -> set[int] | None:
        """What is added to a variable in all; None if that is not some of few constants."""
        if value is variable:
            return {0}
        if not isinstance(value, Local) or depth > _MOST_COPIES:
            return None
        if value.variable:
            found: set[int] = set()
            for each in self.assigns.get(value, ()):
                if id(each) not in inside:
                    return None
                steps = self._steps(variable, each.value, inside, makers, depth + 1)
                if steps is None:
                    return None
                found |= steps
            return found
        maker = makers.get(value)
        if maker is None or maker.primitive not in ("add", "subtract"):
            return None
        a, b = maker.args
        if maker.primitive == "add" and isinstance(a, Literal):
            a, b = b, a
        if not isinstance(b, Literal) or abs(b.value) > _LARGEST_STEP:
            return None
        steps = self._steps(variable, a, inside, makers, depth + 1)
        by = b.value if maker.primitive == "add" else -b.value
        return None if steps is None else {step + by for step in steps}


def _are_integers(args: Sequence[Operand]) -> bool:
    """Whether operands are integers of one type."""
    return args[0].dtype.kind in "iu" and all(a.dtype == args[0].dtype for a in args)


def _assigned(body: Sequence[Statement]) -> Iterator[Local]:
    """The variables that statements change; scalars that calls and loads give are none."""
    return (s.variable for s in statements(tuple(body)) if isinstance(s, Assign))


def _last(body: Body, variable: Local) -> Operand | None:
    """What a body leaves in a variable, if its own last word on it is an Assign."""
    for s in reversed(body):
        if isinstance(s, Assign) and s.variable is variable:
            return s.value
        if variable in _assigned((s,)):
            return None
    return None

