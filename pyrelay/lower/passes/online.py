"""The greatest element of a row and a sum of exponentials relative to it, in one pass.

In: a kernel with a row's maximum, and behind it sums, chunk by chunk, of ``exp(x - maximum)`` over
the same elements, each perhaps times something, and of ``x == maximum``, which gradients count.
Out: the kernel with one loop over chunks for all, as in Milakov and Gimelshein, *Online normalizer
calculation for softmax* (2018): the sums are relative to the greatest element so far, and
multiplied by ``exp(old - new)`` where a chunk has a greater one; counts begin again there. So a row
that no cache holds is read from memory once less: of a chunk, which one does, first the greatest
element is looked for, without which each element would ask whether it is that.

Elements of -inf add nothing until another one came; where a row's maximum is no finite number the
sums are NaN, as they are in two passes. The loop over chunks is marked as `rescaled`, so that a
device whose threads share it knows what their parts are relative to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir.types import bool_
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Read,
    Rescaled,
    Statement,
    bodies,
    operands,
    renamed,
    statements,
)
from pyrelay.lower.passes.cooperation import free_order
from pyrelay.records import dataclass

_SUMS = ("add", "add_reassociated")


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of a loop's elements, what the sums of chunks are added to, and whether it counts
    those that are the greatest."""

    chunk: Local
    total: Local
    counts: bool


@dataclass(frozen=True, slots=True)
class _Largest:
    """A loop that finds the greatest of its elements: the variable, the element, and reductions
    beside it with their primitives."""

    loop: For
    variable: Local
    element: Local
    others: tuple[tuple[Local, str], ...]


@dataclass(frozen=True, slots=True)
class _Exponentials:
    """A loop over chunks, the loop over a chunk, its elements less their maximum, and its sums."""

    outer: For
    inner: For
    less: tuple[Compute, ...]
    sums: tuple[_Sum, ...]


def online(kernel: Kernel) -> Kernel:
    """The kernel with such pairs of loops as one; the kernel itself if it has none."""
    users: dict[Local, set[int]] = {}
    for statement in statements(kernel.body):
        for operand in operands(statement):
            if isinstance(operand, Local):
                users.setdefault(operand, set()).add(id(statement))
    body = _joined(kernel.body, users)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _joined(body: Body, users: dict[Local, set[int]]) -> Body:
    changed = tuple(_inside(s, users) for s in body)
    if any(new is not old for new, old in zip(changed, body, strict=True)):
        body = changed
    for place, statement in enumerate(body):
        if not isinstance(statement, For):
            continue
        follows = next((k for k in range(place + 1, len(body)) if _loops(body[k])), None)
        if follows is None:
            continue
        between = body[place + 1 : follows]
        for largest in _largest(body, statement):
            found = _exponentials(body[follows], largest, users)
            made = {largest.variable, *(variable for variable, _ in largest.others)}
            if found is None or not all(_waits(s, made) for s in between):
                continue
            if not all(_begins(body[:follows], each.total) for each in found.sums):
                continue
            rest = _joined(body[follows + 1 :], users)
            return (*body[:place], *between, *_in_one_pass(largest, found), *rest)
    return body


def _inside(statement: Statement, users: dict[Local, set[int]]) -> Statement:
    if not isinstance(statement, For):
        return statement
    inner = _joined(statement.body, users)
    return statement if inner is statement.body else replace(statement, body=inner)


def _loops(statement: Statement) -> bool:
    return bool(bodies(statement))


def _waits(statement: Statement, variables: set[Local]) -> bool:
    """Whether a statement may run before variables are known."""
    return isinstance(statement, (Assign, Compute, Load, Read)) and not any(
        o in variables for o in operands(statement)
    )


def _begins(before: Body, total: Local) -> bool:
    """Whether a sum begins with nothing."""
    values = [s.value for s in before if isinstance(s, Assign) and s.variable is total]
    return len(values) == 1 and isinstance(values[0], Literal) and values[0].value == 0


def _largest(body: Body, loop: For) -> list[_Largest]:
    """The maxima of a loop that does nothing but reduce its elements."""
    if not all(isinstance(s, (Compute, Load, Assign)) for s in loop.body):
        return []
    steps: dict[Local, Compute] = {}
    for assign in (s for s in loop.body if isinstance(s, Assign)):
        variable = assign.variable
        made = (s for s in loop.body if isinstance(s, Compute) and s.out is assign.value)
        step = next(made, None)
        reads = [s for s in loop.body if variable in operands(s)]
        if step is None or variable in steps or reads != [step]:
            return []
        if free_order(step.primitive, variable.dtype) is None:
            return []
        steps[variable] = step
    found = []
    for variable, step in steps.items():
        begins = [s for s in body if isinstance(s, Assign) and s.variable is variable]
        value = begins[0].value if len(begins) == 1 else None
        if not isinstance(value, Literal) or value.value != -float("inf"):
            continue
        element = next((a for a in step.args if a is not variable), None)
        if step.primitive != "maximum" or not isinstance(element, Local):
            continue
        others = tuple((v, s.primitive) for v, s in steps.items() if v is not variable)
        found.append(_Largest(loop, variable, element, others))
    return found


def _exponentials(
    outer: Statement, largest: _Largest, users: dict[Local, set[int]]
) -> _Exponentials | None:
    """The sums of a loop over chunks, if they are of exponentials relative to that element."""
    if not isinstance(outer, For):
        return None
    loops = [s for s in outer.body if _loops(s)]
    inner = loops[0] if len(loops) == 1 else None
    if not isinstance(inner, For) or not _covers(outer, inner, largest.loop):
        return None
    if not all(isinstance(s, (Compute, Load, Assign)) for s in inner.body):
        return None
    if any(largest.variable in operands(s) for s in outer.body):
        return None
    element = _key(largest.element, _makers(largest.loop), largest.loop.index)
    makers = _makers(inner)
    less: list[Compute] = []
    scaled: dict[Local, bool] = {}
    for each in inner.body:
        if largest.variable not in operands(each):
            continue
        if not isinstance(each, Compute) or each.primitive not in ("subtract", "equal"):
            return None
        other = each.args[each.args[0] is largest.variable]
        if other is largest.variable or _key(other, makers, inner.index) != element:
            return None
        if each.primitive == "equal":
            scaled[each.out] = True
        elif each.args[1] is largest.variable:
            less.append(each)
        else:
            return None
    for power in inner.body:
        if isinstance(power, Compute) and power.args[0] in {x.out for x in less}:
            if power.primitive != "exp":
                return None
            scaled[power.out] = False
    if not less or any(len(users.get(each.out, ())) != 1 for each in less):
        return None
    sums = _sums(outer, inner, scaled, users)
    return None if sums is None else _Exponentials(outer, inner, tuple(less), sums)


def _covers(outer: For, inner: For, whole: For) -> bool:
    """Whether the chunks of a loop are those of the elements that another one goes through."""
    if not all(_number(x) == 0 for x in (outer.start, whole.start)):
        return False
    made = next((s for s in outer.body if isinstance(s, Compute) and s.out is inner.stop), None)
    if made is None:
        return False
    if made.primitive == "minimum":
        last = _number(whole.stop)
        return any(a is whole.stop or (last is not None and _number(a) == last) for a in made.args)
    count, size = _number(outer.stop), next(filter(None, map(_number, made.args)), None)
    if made.primitive != "add" or inner.start not in made.args or count is None or size is None:
        return False
    return count * size == _number(whole.stop)


def _number(operand: Operand) -> int | None:
    return int(operand.value) if isinstance(operand, Literal) else None


def _sums(
    outer: For, inner: For, scaled: dict[Local, bool], users: dict[Local, set[int]]
) -> tuple[_Sum, ...] | None:
    """The sums of the loops, if all of them are in proportion to the exponentials, or count what
    is `scaled` and true."""
    for s in inner.body:
        many = [a for a in operands(s) if isinstance(a, Local) and a in scaled]
        if not many or not isinstance(s, Compute) or s.out in scaled:
            continue
        if s.primitive in ("multiply", "cast") and len(many) == 1 and s.out.dtype.kind == "f":
            scaled[s.out] = scaled[many[0]]
        elif s.primitive not in _SUMS or len(many) != 1:
            return None
    found = []
    for assign in (s for s in inner.body if isinstance(s, Assign)):
        chunk = assign.variable
        made = [s for s in inner.body if isinstance(s, Compute) and s.out is assign.value]
        step = made[0] if made else None
        if step is None or step.primitive not in _SUMS or chunk not in step.args:
            return None
        terms = [a for a in step.args if isinstance(a, Local) and a in scaled]
        if len(terms) != 1 or users[step.out] != {id(assign)}:
            return None
        total = _total(outer, inner, chunk, users)
        if total is None or not _begins(outer.body[: outer.body.index(inner)], chunk):
            return None
        found.append(_Sum(chunk, total, scaled[terms[0]]))
    # Nothing else is made of them.
    steps = {id(s) for s in inner.body}
    if not all(users.get(x, set()) <= steps for x in scaled):
        return None
    return tuple(found) or None


def _total(outer: For, inner: For, chunk: Local, users: dict[Local, set[int]]) -> Local | None:
    """The variable to which the sum of a chunk is added, and nothing else done with it."""
    place = outer.body.index(inner)
    value, cast = chunk, None
    for s in outer.body[place + 1 :]:
        if isinstance(s, Compute) and s.primitive == "cast" and s.args == (value,):
            value, cast = s.out, s
        elif isinstance(s, Compute) and s.primitive in _SUMS and value in s.args:
            others = [a for a in s.args if a is not value]
            sets = [x for x in outer.body if isinstance(x, Assign) and x.value is s.out]
            if len(others) != 1 or len(sets) != 1 or sets[0].variable is not others[0]:
                return None
            inside = {id(x) for x in inner.body}
            outside = users[chunk] - inside
            if outside != {id(cast or s)} or (cast and users[value] != {id(s)}):
                return None
            return sets[0].variable
    return None


def _makers(loop: For) -> dict[Local, Compute | Load]:
    return {s.out: s for s in loop.body if isinstance(s, (Compute, Load))}


def _key(operand: Operand, makers: dict[Local, Compute | Load], index: Local) -> object:
    """What an element is computed from, the same for loops that compute the same."""
    if isinstance(operand, Literal):
        return repr(operand.value), operand.dtype
    if operand is index:
        return "index"
    made = makers.get(operand)
    if made is None:
        return operand
    if isinstance(made, Load):
        array: object = made.array if isinstance(made.array, Parameter) else id(made.array)
        return "load", array, _key(made.index, makers, index)
    return (
        made.primitive, made.out.dtype, *(_key(a, makers, index) for a in made.args)
    )  # fmt: skip


# -- the one pass ----------------------------------------------------------------------------------


def _in_one_pass(largest: _Largest, found: _Exponentials) -> tuple[Statement, ...]:
    variable = largest.variable
    dtype = variable.dtype
    shift, top = Local(dtype, True), Local(dtype, True)
    before = found.outer.body[: found.outer.body.index(found.inner)]
    behind = found.outer.body[len(before) + 1 :]
    look = replace(
        largest.loop, start=found.inner.start, stop=found.inner.stop,
        body=tuple(_to(s, variable, top) for s in largest.loop.body),
    )
    less = tuple(
        replace(s, args=(s.args[0], shift)) if isinstance(s, Compute) and s in found.less else s
        for s in found.inner.body
    )
    rescaled = Rescaled(
        variable, tuple(each.total for each in found.sums if not each.counts),
        tuple(each.total for each in found.sums if each.counts), largest.others,
    )
    outer = replace(found.outer, rescaled=rescaled, body=(
        *before, Assign(top, variable), look, *_grown(variable, top, shift, found.sums),
        replace(found.inner, body=less), *behind,
    ))  # fmt: skip
    after: list[Statement] = []
    for each in found.sums:
        if each.counts:
            continue
        nothing = _computed("subtract", (variable, variable), after)  # NaN if it is not finite
        wide = _cast(nothing, each.total, after)
        after.append(Assign(each.total, _computed("add", (each.total, wide), after)))
    return Assign(shift, Literal(0.0, dtype)), outer, *after


def _to(statement: Statement, variable: Local, other: Local) -> Statement:
    """The statement with another variable in the place of one."""
    changed = renamed(statement, {variable: other})
    if isinstance(changed, Assign) and changed.variable is variable:
        return replace(changed, variable=other)
    return changed


def _grown(
    variable: Local, top: Local, shift: Local, sums: Sequence[_Sum]
) -> list[Statement]:
    """What the greatest element of a chunk, and of those before, does to the sums so far."""
    made: list[Statement] = []
    grows = Local(bool_)
    made.append(Compute(grows, "not_equal", (top, variable)))
    then: list[Statement] = []
    factor = _computed("exp", (_computed("subtract", (variable, top), then),), then)
    for each in sums:
        if each.counts:
            then.append(Assign(each.total, Literal(0.0, each.total.dtype)))
            continue
        wide = _cast(factor, each.total, then)
        then.append(Assign(each.total, _computed("multiply", (each.total, wide), then)))
    then += [Assign(variable, top), Assign(shift, top)]
    made.append(If(grows, tuple(then), unlikely=True))
    return made


def _computed(primitive: str, args: tuple[Operand, ...], into: list[Statement]) -> Local:
    out = Local(args[0].dtype)
    into.append(Compute(out, primitive, args))
    return out


def _cast(value: Local, like: Local, into: list[Statement]) -> Local:
    if value.dtype == like.dtype:
        return value
    out = Local(like.dtype)
    into.append(Compute(out, "cast", (value,)))
    return out
