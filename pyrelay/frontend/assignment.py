"""Assignment to targets of any form, augmented assignment, and `del`.

In: a target and the value for it. Out: variables written, and the Lets that store into elements,
slices and attributes, in Python's order: the value first, then targets from left to right.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyrelay.errors import Span
from pyrelay.frontend.lowering import Lowering, evaluate
from pyrelay.frontend.operators import BINARY
from pyrelay.frontend.recursion import Work
from pyrelay.ir.nodes import TEMPORARY, Atom, Attrs, PyCall


def assign(low: Lowering, target: ast.expr, value: Atom, span: Span) -> Work[None]:
    """Store a value; `span` is the whole assignment."""
    match target:
        case ast.Name():
            low.write(low.names.variable(target), value, span)
        case ast.Starred(value=inner):
            yield assign(low, inner, value, span)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for part, item in zip(elts, unpack(low, elts, value, low.span(target)), strict=True):
                yield assign(low, part, item, span)
        case ast.Attribute(value=owner, attr=attr):
            holder = yield evaluate(low, owner)
            low.act("set_attribute", (holder, value), span, name=low.names.mangled(attr))
        case ast.Subscript(value=owner, slice=key):
            holder = yield evaluate(low, owner)
            place = yield evaluate(low, key)
            low.act("set_item", (holder, place, value), span)


def named(low: Lowering, target: ast.expr, value: Atom) -> Atom:
    """A value just computed, under the name of the variable that it is for."""
    if not isinstance(target, ast.Name):
        return value
    return low.named(value, low.names.variable(target).shown)


def unpack(
    low: Lowering, targets: list[ast.expr], value: Atom, span: Span
) -> tuple[Atom, ...]:
    """The values for several targets, one of which may be starred, from one iterable."""
    stars = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
    before = stars[0] if stars else len(targets)
    after = len(targets) - before - len(stars)
    attrs = Attrs(before=before, starred=bool(stars), after=after)
    plain = [t.value if isinstance(t, ast.Starred) else t for t in targets]
    names = [
        low.names.variable(t).shown if isinstance(t, ast.Name) else TEMPORARY for t in plain
    ]
    return low.bind(PyCall("unpack", (value,), attrs), span, names)


def assignment(low: Lowering, node: ast.Assign) -> Work[None]:
    """`targets = value`; a tuple assigned to a tuple is never made."""
    span = low.span(node)
    pairs = [(node.targets[0], node.value)] if len(node.targets) == 1 else []
    if pairs and _matches(*pairs[0]):
        while any(_matches(*pair) for pair in pairs):
            pairs = [part for pair in pairs for part in _parts(*pair)]
        if len(pairs) == 2 and _exchanges(*pairs):
            yield _exchange(low, pairs[1][1], pairs[0][1], span)
            return
        values: list[Atom] = []
        for target, value in pairs:
            values.append(named(low, target, (yield evaluate(low, value))))
        for (target, _), atom in zip(pairs, values, strict=True):
            yield assign(low, target, atom, span)
        return
    atom = named(low, node.targets[0], (yield evaluate(low, node.value)))
    for target in node.targets:
        yield assign(low, target, atom, span)


def _matches(target: ast.expr, value: ast.expr) -> bool:
    """Whether target and value are displays of one length, without stars."""
    return (
        isinstance(target, (ast.Tuple, ast.List))
        and isinstance(value, (ast.Tuple, ast.List))
        and len(target.elts) == len(value.elts)
        and not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
    )


def _parts(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if not _matches(target, value):
        return [(target, value)]
    assert isinstance(target, (ast.Tuple, ast.List))
    assert isinstance(value, (ast.Tuple, ast.List))
    return list(zip(target.elts, value.elts, strict=True))


def _exchanges(first: tuple[ast.expr, ast.expr], second: tuple[ast.expr, ast.expr]) -> bool:
    """Whether two targets are two items of one object and get each other's value.

    Only where the object and the keys are names, attributes and sums of those: what they are does
    not hang on what is stored first.
    """
    targets, values = zip(first, second, strict=True)
    one, other = targets
    if not (isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript)):
        return False
    return (
        all(map(_is_plain, (one.value, one.slice, other.slice)))
        and [ast.unparse(t) for t in targets] == [ast.unparse(v) for v in reversed(values)]
        and ast.unparse(one.value) == ast.unparse(other.value)
    )


def _is_plain(node: ast.expr) -> bool:
    parts = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)
    sums = (ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.UnaryOp, ast.USub)
    return all(isinstance(part, (*parts, *sums)) for part in ast.walk(node))


def _exchange(
    low: Lowering, one: ast.expr, other: ast.expr, span: Span, known: Atom | None = None
) -> Work[None]:
    """`x[i], x[j] = x[j], x[i]`, where `one` is `x[i]`, and `other`, which is read first, `x[j]`.

    known: what is at `one`, if that was read before.
    """
    read: list[tuple[Atom, Atom, Atom]] = []
    for part, item in ((other, None), (one, known)):
        assert isinstance(part, ast.Subscript)
        holder = yield evaluate(low, part.value)
        key = yield evaluate(low, part.slice)
        if item is None:
            item = low.py("item", (holder, key), low.span(part))
        read.append((holder, key, item))
    (holder, j, at_j), (_, i, at_i) = read
    low.act("exchange", (holder, i, j, at_i, at_j), span)


def ends_exchange(items: Sequence[object], at: int) -> bool:
    """Whether statements `t = x[i]`, `x[i] = x[j]`, `x[j] = t` stand there, the second one at `at`.
    """
    match items[max(at - 1, 0) : at + 2]:
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as first),
            ast.Assign(targets=[ast.Subscript() as one], value=second),
            ast.Assign(targets=[ast.Subscript() as other], value=ast.Name(id=again)),
        ]:
            parts = (*ast.walk(one), *ast.walk(other))
            used = {part.id for part in parts if isinstance(part, ast.Name)}
            return name == again and name not in used and _exchanges((one, second), (other, first))
    return False


def end_exchange(low: Lowering, items: Sequence[object], at: int) -> Work[None]:
    """The second and third of such statements, which are one exchange."""
    read, stored, last = items[at - 1 : at + 2]
    assert isinstance(read, ast.Assign)
    assert isinstance(stored, ast.Assign)
    assert isinstance(last, ast.Assign)
    kept, span = read.targets[0], low.span(last)
    assert isinstance(kept, ast.Name)
    yield _exchange(low, read.value, stored.value, span, low.read(low.names.variable(kept), span))


def augmented(low: Lowering, node: ast.AugAssign) -> Work[None]:
    """`target op= value`: the place is evaluated once, before the value."""
    span, op = low.span(node), BINARY[type(node.op)]
    target = node.target
    if isinstance(target, ast.Name):
        variable = low.names.variable(target)
        old = low.read(variable, low.span(target))
        value = yield evaluate(low, node.value)
        new = named(low, target, low.py("inplace", (old, value), span, op=op))
        low.write(variable, new, span)
        return
    holder = yield evaluate(low, target.value)
    if isinstance(target, ast.Attribute):
        name = low.names.mangled(target.attr)
        old = low.py("attribute", (holder,), low.span(target), name=name)
        value = yield evaluate(low, node.value)
        new = low.py("inplace", (old, value), span, op=op)
        low.act("set_attribute", (holder, new), span, name=name)
        return
    key = yield evaluate(low, target.slice)
    old = low.py("item", (holder, key), low.span(target))
    value = yield evaluate(low, node.value)
    new = low.py("inplace", (old, value), span, op=op)
    low.act("set_item", (holder, key, new), span)


def annotated(low: Lowering, node: ast.AnnAssign) -> Work[None]:
    """`target: annotation = value`; without a value nothing happens."""
    if node.value is None:
        return
    value = yield evaluate(low, node.value)
    if isinstance(node.target, ast.Name):
        text = ast.unparse(node.annotation)
        value = low.py("annotate", (value,), low.span(node), name=node.target.id, annotation=text)
        value = named(low, node.target, value)
    yield assign(low, node.target, value, low.span(node))


def delete(low: Lowering, node: ast.Delete) -> Work[None]:
    """`del` of variables and elements."""
    pending = list(reversed(node.targets))
    while pending:
        target = pending.pop()
        match target:
            case ast.Name():
                low.delete(low.names.variable(target), low.span(target))
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                pending += reversed(elts)
            case ast.Subscript(value=owner, slice=key):
                holder = yield evaluate(low, owner)
                place = yield evaluate(low, key)
                low.act("del_item", (holder, place), low.span(node))
