"""Rounds of a loop around a loop that adds up something take several rounds side by side.

In: a kernel of a program's loops, for the CPU. Out: its body, in which

    for j in range(n):              for each block of rounds:
        s = 0.0                         for l in lanes: s[l] = 0.0
        for k in range(m):      as      for k in range(m):
            s += a[k] * b[k, j]             for l in lanes: s[l] += a[k] * b[k, j + l]
        c[j] = s                        for j in the block: c[j] = s[j - first]

A sum of floats in a given order is a chain: each addition waits for the one before. The chains of
several rounds are independent of each other, and their lanes are vectors (unroll and jam: Callahan,
Carr and Kennedy, "Improving register allocation for subscripted variables", PLDI 1990). All numbers
are computed as one by one, and in the same order. Integers and truths may be added in any order,
but down a column it is the lanes that are neighbours.

What is moved is what a round begins with, as long as it only reads: no store of a round may be
where a later round of the same block reads before its own (`distinct_places`). Blocks are as many
lanes as four vectors of 32 bytes have, then as one has; the last of these begins early enough to be
whole, and what it computes anew is not used. Fewer rounds than that go on one by one. Lanes that
read far from each other are no vectors, but as many numbers in registers, and what is left of such
goes on one by one: processors run a few short chains side by side themselves.

A check of floats, such as `math.exp` makes of its result, only notes in its lane that it fails; if
one of a block does, the rounds of that block go one by one instead, and fail where they do. So what
stands in front of a chain, `s += math.exp(x[i])`, or between checks is done for a block of rounds
even without a loop inside, if that is a function that takes long. There, what lies far apart is
loaded first, number by number. Sines, cosines and tangents of doubles are no vectors for all
angles: lanes note those that are too far from zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyrelay.ir.types import bool_, f32, f64, i32, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Call,
    Compute,
    Fail,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Pointed,
    Read,
    Statement,
    Store,
    bodies,
    breaks,
    has_loops,
    operands,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.asked_extents import as_sum
from pyrelay.lower.passes.distinct_places import (
    Integers,
    reads_across,
    reads_before_stores,
    strides,
    with_loops,
)
from pyrelay.lower.passes.lane_blocks import (
    Blocks,
    Group,
    Node,
    Reading,
    groups,
    made_by,
    read_by,
    set_later,
)
from pyrelay.ops.scalar import NEAR_ANGLE

_BYTES = 128  # of the lanes of a block
_REST = 32  # of those of a block of what is left
_APART = 8  # lanes that read far from each other
_MOST_KEPT = 6  # numbers that are kept for each lane, through loops
_MOST_LEFT = 12  # those that are left to the rest of a round, without a loop before it
_FEW_VARIABLES = 2  # of which whole blocks find room in registers
_MOST_READING, _MOST_STATEMENTS = 60, 200  # statements that are moved, and of a round
_WRITTEN_OUT = 25  # rounds of inner loops that LLVM makes statements of
_WORK_WRITTEN_OUT = 112  # loads and operations on floats, in all of these rounds
_PLACES = frozenset(["add", "subtract", "multiply"])
SIDE_BY_SIDE = _PLACES | frozenset([
    "divide", "true_quotient", "negative", "positive", "absolute", "square", "reciprocal", "fma",
    "sqrt", "exp", "log", "tanh", "sigmoid", "floor", "ceil", "trunc", "rint", "copysign",
    "minimum", "maximum", "fmin", "fmax", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "where", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "isnan", "isinf", "isfinite", "cast",
    "whole", "exp2", "expm1",
    "log2", "log10", "log1p", "cbrt", "erf", "arcsin", "arccos", "arctan", "sinh", "cosh", "power",
    "arctan2", "hypot", "arcsinh", "arccosh", "arctanh", "near_sin", "near_cos",
    "near_tan", "add_reassociated",
])  # fmt: skip
"""Primitives that vectors have, or that LLVM makes of such."""
LONG = frozenset([
    "exp", "log", "tanh", "sigmoid", "exp2", "expm1", "log2", "log10", "log1p", "cbrt", "erf",
    "arcsin", "arccos", "arctan", "sinh", "cosh", "power", "arctan2", "hypot", "arcsinh",
    "arccosh", "arctanh", "sin", "cos", "tan", "near_sin", "near_cos", "near_tan",
])  # fmt: skip
"""Those that are many instructions each."""
WORTH = LONG | frozenset(["sqrt"])
"""Those that are worth a second look at their checks."""
_ANGLES = {"sin": "near_sin", "cos": "near_cos", "tan": "near_tan"}
"""Those that are a call of a library for each number, and what they are for small angles."""
_ASKED = frozenset(["isnan", "isinf", "isfinite", "equal", "not_equal", "less", "less_equal",
                    "greater", "greater_equal"])  # fmt: skip
_JOINED = frozenset(["logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or"])


class _UnfitError(Exception):
    """A loop whose rounds do not run side by side."""


Uses: TypeAlias = Counter[Operand]
"""How often operands are read."""


def jammed(kernel: Kernel) -> Body:
    """The body of a kernel with its loops of chains as blocks of lanes.

    Where arrays may share memory, a round reads nothing that another one stores, for the rounds
    are shared out among threads. LLVM makes vectors of these, but for functions of angles.
    """
    candidate = _is_candidate if kernel.apart else _has_angles
    if not any(isinstance(s, For) and candidate(s) for s in statements(kernel.body)):
        return kernel.body
    uses = counted(kernel.body)

    def changed(loop: For, around: Integers) -> Iterable[Statement] | None:
        fit = candidate(loop) and not loop.few
        reading = _reading(loop, around, uses) if fit else None
        return None if reading is None else Blocks(reading).statements()

    return with_loops(kernel.body, Integers(), changed)


def _is_candidate(loop: For) -> bool:
    return any(
        isinstance(s, (For, If, Fail)) or (isinstance(s, Compute) and s.primitive in LONG)
        for s in loop.body
    )


def _has_angles(loop: For) -> bool:
    return any(_is_of_angle(s) for s in loop.body)


def counted(body: Body) -> Uses:
    """How often statements read each operand."""
    return Counter(o for s in statements(body) for o in operands(s))


# -- what is moved -------------------------------------------------------------------------------


def _reading(loop: For, around: Integers, uses: Uses) -> Reading | None:
    """What may be moved of a loop, if that pays."""
    if loop.rescaled is not None:
        return None
    loop = replace(loop, lanes=0)  # of lanes, too, there are blocks
    every = list(statements(loop.body))
    if len(every) > _MOST_STATEMENTS or any(isinstance(s, Call) for s in every):
        return None
    outside = uses - counted(loop.body)
    length = _pure(loop.body)
    while length := _to_last(loop, length):
        loop, length = set_later(loop, length)
        if len(list(statements(loop.body[:length]))) > _MOST_READING:
            return None
        doubted, doubt = _doubted(loop, length)
        more = len(doubted.body) - len(loop.body)
        reading = _grouped(doubted, length + more, outside, doubt)
        if isinstance(reading, int):
            length = max(reading - more, 0)
        elif not _pays(reading, around):
            return None
        else:
            asked = reads_before_stores(doubted, length + more, around)
            if asked is None:
                return None
            reading.asked = [as_sum(extent, around) for extent in asked]
            found = strides(doubted, length + more, around)
            far = any(
                load.out in reading.varying and found[load] != 1 for load in _inner(reading)
            )
            far |= any(isinstance(s, If) and _loads(s) for g in groups(reading) for s in g.body)
            if not has_loops(reading.body):
                reading.far = frozenset(
                    s for s in reading.body
                    if isinstance(s, Load) and s.out in reading.varying and found[s] != 1
                )
            if far and (doubt is not None or not has_loops(reading.body)):
                return None  # lanes that are no vectors gain less than a second look costs
            if far and any(_in_any_order(s) for s in statements(reading.body)):
                return None  # a sum is a vector of its own there
            reading.whole = loop
            _choose_lanes(reading, far)
            most = _MOST_KEPT if has_loops(reading.body) else _MOST_LEFT
            return reading if len(reading.kept) <= most else None
    return None


def _doubted(loop: For, length: int) -> tuple[For, Local | None]:
    """A loop whose first statements note whether one of their checks fails, or an angle is too
    large for vectors, and go on."""
    first = loop.body[:length]
    if not any(isinstance(s, Fail) or _is_of_angle(s) for s in statements(first)):
        return loop, None
    doubt = Local(bool_, variable=True)
    varying = _varying(loop, first, None)

    def noted(body: Body) -> Body:
        out: list[Statement] = []
        for s in body:
            if isinstance(s, Fail):
                either = Local(bool_)
                out += [Compute(either, "logical_or", (doubt, s.cond)), Assign(doubt, either)]
            elif isinstance(s, Compute) and _is_of_angle(s) and s.out in varying:
                out += [*_far_noted(s.args[0], doubt), replace(s, primitive=_ANGLES[s.primitive])]
            else:
                out.append(replace_bodies(s, noted))
        return tuple(out)

    before = Assign(doubt, Literal(False, bool_))
    return replace(loop, body=(before, *noted(first), *loop.body[length:])), doubt


def _is_of_angle(statement: Statement) -> bool:
    """Whether a statement is a function of a double that calls a library."""
    return (
        isinstance(statement, Compute)
        and statement.primitive in _ANGLES
        and statement.out.dtype == f64
    )


def _far_noted(angle: Operand, doubt: Local) -> list[Statement]:
    """Notes in `doubt` whether an angle is too large for vectors, or no number."""
    size, near, far, either = Local(f64), Local(bool_), Local(bool_), Local(bool_)
    return [
        Compute(size, "absolute", (angle,)),
        Compute(near, "less_equal", (size, Literal(NEAR_ANGLE, f64))),
        Compute(far, "logical_not", (near,)),
        Compute(either, "logical_or", (doubt, far)),
        Assign(doubt, either),
    ]


def _asks_floats(fail: Fail, makers: Mapping[Operand, Compute]) -> bool:
    """Whether a check is one of floats only: what is computed of them without it is harmless."""
    waiting = [fail.cond]
    while waiting:
        maker = makers.get(waiting.pop())
        if maker is None:
            return False
        if maker.primitive in _JOINED:
            waiting += maker.args
        elif maker.primitive not in _ASKED or any(a.dtype.kind != "f" for a in maker.args):
            return False
    return True


def _pure(body: Body) -> int:
    """How many statements at the beginning of a body only read, but for checks of floats; behind
    these, no integer may be made of a float, which the check may have looked at."""
    makers: dict[Operand, Compute] = {s.out: s for s in statements(body) if isinstance(s, Compute)}
    checked = False
    for number, statement in enumerate(body):
        for s in statements((statement,)):
            pure = isinstance(s, (Compute, Read, Load, Assign, If, For))
            if isinstance(s, Fail):
                pure, checked = _asks_floats(s, makers), True
            elif checked and isinstance(s, Compute) and s.out.dtype.kind in "iu":
                pure = all(a.dtype.kind in "iub" for a in s.args)
            if not pure or (isinstance(s, For) and s.rescaled is not None):
                return number
    return len(body)


def _to_last(loop: For, length: int) -> int:
    """The length up to the last statement with a loop, or, of a body without loops that LLVM makes
    no vectors of, up to the last check or long function."""
    body = loop.body
    loops = has_loops(body[:length])
    checks = any(isinstance(s, Fail) or _is_of_angle(s) for s in body[:length])
    checks = checks or _is_chain(loop, length)
    while length:
        last = body[length - 1]
        if has_loops((last,)):
            break
        long = isinstance(last, Compute) and last.primitive in WORTH
        if checks and not loops and (long or isinstance(last, Fail)):
            break
        length -= 1
    return length


def _is_chain(loop: For, length: int) -> bool:
    """Whether what follows the first statements waits for the round before: it adds up floats, to a
    variable or to an element."""
    varying = _varying(loop, loop.body, None)
    return any(
        (isinstance(s, Assign) and s.variable.dtype.kind == "f")
        or (isinstance(s, Store) and s.index not in varying)
        for s in loop.body[length:]
    )


def _grouped(loop: For, length: int, outside: Uses, doubt: Local | None) -> Reading | int:
    """The first statements of a round in groups; or how many of them may be at most."""
    body, rest = loop.body[:length], loop.body[length:]
    if breaks(rest):
        return 0
    if not starts_anew(body, rest, outside):
        return 0
    varying = _varying(loop, body, doubt)
    changed = {s.variable for s in statements(rest) if isinstance(s, Assign)} - varying
    again: dict[Operand, Compute] = {}
    for number, statement in enumerate(body):
        if any(isinstance(s, Assign) and s.variable in changed for s in statements((statement,))):
            return number  # set once for all rounds of a block, of which each changes it
        try:
            _check(statement, varying)
        except _UnfitError:
            return number
    for s in statements(body):
        if isinstance(s, Compute) and s.out in varying and s.out.dtype == i64:
            known = {loop.index, *again}
            if s.primitive in _PLACES and all(a in known or a not in varying for a in s.args):
                again[s.out] = s
    inner: dict[For | If, list[list[Node]]] = {}
    nodes = _nodes(body, varying, inner)
    return Reading(loop, length, nodes, inner, varying, again, doubt=doubt)


def starts_anew(body: Body, rest: Body, outside: Uses) -> bool:
    """Whether each round sets every variable that its first statements read and any statement of
    the loop sets. One that is not set in every round is used in the first statements alone."""
    changed = {s.variable for s in statements((*body, *rest)) if isinstance(s, Assign)}
    definite: set[Operand] = set()
    if not sets_first(body, changed, definite):
        return False
    after = read_by(rest)
    return all(
        v in definite or not (v in after or outside[v])
        for v in {s.variable for s in statements(body) if isinstance(s, Assign)}
    )


def sets_first(body: Sequence[Statement], changed: set[Local], definite: set[Operand]) -> bool:
    """Whether statements read none of the variables `changed` before they have set it; adds to
    `definite` those that they set in any case."""
    for s in body:
        if any(o in changed and o not in definite for o in operands(s)):
            return False
        if isinstance(s, Assign):
            definite.add(s.variable)
        arms = [(each, set(definite)) for each in bodies(s)]
        if not all(sets_first(each, changed, found) for each, found in arms):
            return False
        if isinstance(s, If):
            definite |= set.intersection(*(found for _, found in arms))
    return True


def _varying(loop: For, body: Body, doubt: Local | None) -> set[Operand]:
    """What differs between rounds."""
    found: set[Operand] = {loop.index} if doubt is None else {loop.index, doubt}

    def visit(part: Body, chosen: bool) -> None:
        for s in part:
            differs = any(o in found for o in operands(s))
            match s:
                case (Compute(out=out) | Load(out=out)) if differs:
                    found.add(out)
                case Assign(variable=variable) if differs or chosen:
                    found.add(variable)
                case For(body=inner):
                    visit(inner, chosen or differs)
                case If():
                    for inner in bodies(s):
                        visit(inner, chosen or differs)

    size = 0
    while size < len(found):
        size = len(found)
        visit(body, False)
    return found


def _check(statement: Statement, varying: set[Operand]) -> None:
    """Raises _UnfitError for a statement that does not run side by side."""
    for s in statements((statement,)):
        differs = any(o in varying for o in operands(s))
        match s:
            case For() if differs:
                raise _UnfitError
            case If() if differs and has_loops((s,)):
                raise _UnfitError
            case Load(array=Pointed()):
                raise _UnfitError
            case Compute(out=out, primitive=name) if differs:
                if name not in SIDE_BY_SIDE and not (name in _ANGLES and out.dtype == f32):
                    raise _UnfitError
                if not _fits(out):
                    raise _UnfitError
                if name == "divide" and out.dtype.kind != "f":
                    raise _UnfitError
                if any(isinstance(a, Local) and not _fits(a) for a in s.args):
                    raise _UnfitError
            case Load(out=out) if differs and not _fits(out):
                raise _UnfitError
            case Assign(variable=variable) if variable in varying and not _fits(variable):
                raise _UnfitError


def _fits(local: Local) -> bool:
    dtype = local.dtype
    return dtype == bool_ or (dtype.kind in "iuf" and dtype.size in (4, 8))


def _nodes(
    body: Body, varying: set[Operand], inner: dict[For | If, list[list[Node]]]
) -> list[Node]:
    out: list[Node] = []
    group: list[Statement] = []

    def end() -> None:
        if group:
            out.append(Group(list(group)))
            group.clear()

    for s in body:
        chosen = isinstance(s, If) and s.cond not in varying
        if isinstance(s, (For, If)) and (chosen or has_loops((s,))):
            end()
            inner[s] = [_nodes(each, varying, inner) for each in bodies(s)]
            out.append(s)
        elif _uniform(s, varying):
            if isinstance(s, Assign):
                end()
            out.append(s)
        else:
            group.append(s)
    end()
    return out


def _uniform(statement: Statement, varying: set[Operand]) -> bool:
    """Whether a statement does the same in all rounds."""
    return not any(
        o in varying for s in statements((statement,))
        for o in (*operands(s), *([s.variable] if isinstance(s, Assign) else ()))
    )  # fmt: skip


def _kept(reading: Reading) -> tuple[list[Local], list[Local]]:
    """The variables that each lane has of its own, and what else is computed in one group and read
    in another, or in the rest of the round."""
    parts = list(groups(reading))
    after = read_by(reading.rest)
    if reading.doubt is not None:
        after.add(reading.doubt)
    variables: dict[Local, None] = {}
    others: list[Local] = []
    for group in parts:
        elsewhere = after.union(*(read_by(g.body) for g in parts if g is not group))
        for s in statements(tuple(group.body)):
            if isinstance(s, Assign) and (
                s.variable in elsewhere or not sets_first(group.body, {s.variable}, set())
            ):
                variables[s.variable] = None
        others += [
            o for o in made_by(group.body) if o in elsewhere and o not in reading.again
        ]  # fmt: skip
    return list(variables), others


def _inner(reading: Reading) -> Iterator[Load]:
    """The loads in the loops of what is moved."""
    for loop in statements(reading.body):
        if isinstance(loop, For):
            yield from (s for s in statements(loop.body) if isinstance(s, Load))


def _in_any_order(statement: Statement) -> bool:
    return isinstance(statement, Compute) and statement.primitive == "add_reassociated"


def _loads_of(body: Body) -> Iterator[Load]:
    return (s for s in statements(body) if isinstance(s, Load))


def _loads(choice: If) -> bool:
    """Whether a branch loads something, which vectors would do number by number."""
    return any(_loads_of((choice,)))


def _choose_lanes(reading: Reading, far: bool) -> None:
    """Decides what is kept for each lane, and how many lanes there are; if they read far from each
    other they are no vectors."""
    variables, others = _kept(reading)
    computed = [
        s.out for g in groups(reading) for s in statements(tuple(g.body))
        if isinstance(s, (Compute, Load)) and s.out not in reading.again
    ]  # fmt: skip
    size = max([4, *(o.dtype.size for o in (*computed, *variables))])
    if far:
        reading.lanes = _APART
    else:
        reading.lanes = _BYTES // size // (1 if len(variables) <= _FEW_VARIABLES else 2)
        reading.rest_lanes, reading.size = _REST // size, size
    truths = i64 if size == i64.size else i32
    for local in (*variables, *others):
        dtype = truths if local.dtype == bool_ else local.dtype
        reading.kept[local] = LocalArray(dtype, reading.lanes)


def _pays(reading: Reading, around: Integers) -> bool:
    """Whether an inner loop has a chain of floats, or of other numbers that lie across it, and more
    rounds than LLVM writes out, which then makes vectors of the loop around."""
    if not has_loops(reading.body):
        return any(isinstance(s, Compute) and s.primitive in WORTH for s in reading.body)
    chains = {
        s.variable.dtype.kind for loop in statements(reading.body) if isinstance(loop, For)
        for s in statements(loop.body)
        if isinstance(s, Assign) and s.variable in reading.varying
    }  # fmt: skip
    chained = "f" in chains or (
        bool(chains) and reads_across(reading.loop, reading.length, around)
    )
    return chained and not _is_short(reading.body)


def _is_short(body: Body) -> bool:
    """Whether the loops of a body are known to have few rounds, with little to do, in all."""

    def rounds(part: Body) -> tuple[int, int]:
        """Rounds of loops, and the loads and operations on floats in all of them."""
        total, work = 0, 0
        for s in part:
            if isinstance(s, For):
                if not (isinstance(s.start, Literal) and isinstance(s.stop, Literal)):
                    return _WRITTEN_OUT + 1, 0
                number = s.stop.value - s.start.value
                inner, done = rounds(s.body)
                total += number * max(1, inner)
                work += number * done
            else:
                for arm in bodies(s):
                    inner, done = rounds(arm)
                    total, work = total + inner, work + done
                if isinstance(s, Compute) and s.primitive in LONG:
                    work += _WORK_WRITTEN_OUT
                elif isinstance(s, (Compute, Load)) and s.out.dtype.kind == "f":
                    work += 1
        return total, work

    total, work = rounds(tuple(s for s in body if has_loops((s,))))
    return total <= _WRITTEN_OUT and work <= _WORK_WRITTEN_OUT
