"""Attention over 16-bit floats, whose matrices a device's kernel takes as they are.

In: Core before fusion, in which products of such floats are those of casts to float32 (`halves`).
Out: Core in which attention (`attention.py`) whose queries, keys and values are casts of one type
of 16 bits is one `KernelCall` of those, the casts in it: nothing of float32 is made of them. A
transposed matrix is a flag of its product; a cast of the result to that type is a part of it.

What makes scores of products is rounded as the program says. The softmax between the products is
like a sum: it is computed in float32, whatever the program rounds in it, and its probabilities are
rounded for the second product only if they are in the program (docs/decisions/0043).

`half_attention_of` finds the same in the body of such a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Attrs, Block, KernelCall, Let, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType, f32
from pyrelay.opt.attention import Attention, Finder
from pyrelay.opt.attention_gradient import Gradient, gradient_of
from pyrelay.opt.dce import dce
from pyrelay.opt.half_products import turned
from pyrelay.opt.halves import is_half
from pyrelay.opt.kernel_calls import kernel_call
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module
from pyrelay.records import dataclass

_Makers = Mapping[Any, Let]  # by atom


@dataclass(frozen=True, slots=True)
class HalfAttention:
    """Attention over 16-bit floats: `attention` of casts of `operands` (queries, keys, values) of
    type `of`, those that are `turned` transposed before; whether its probabilities are `rounded` to
    that type; the cast of its result, if any."""

    attention: Attention
    operands: tuple[Atom, Atom, Atom]
    turned: tuple[bool, bool, bool]
    of: DType
    rounded: bool
    back: Let | None


class _Finder(Finder):
    """Matches attention whose softmax is rounded in between."""

    def unrounded(self, atom: Atom) -> tuple[Atom, ...]:
        let = self.makers.get(atom)
        if let is None or not walk.is_call(let, "cast"):
            return ()
        (source,) = walk.call_of(let).args
        types = {_dtype(atom), _dtype(source)}
        return (source,) if types <= {f32, *filter(_is_half, types)} else ()


def half_attention(module: Module) -> Module:
    """The module with each attention over 16-bit floats in a kernel call of its own."""
    found = module.with_bodies(lambda body: _grouped(body, {}))
    return module if found is module else dce(found)


def half_attention_gradient(module: Module) -> Module:
    """The module with casts in each derivative of attention that is one of casts of one type of 16
    bits."""
    found = rewrite_module(module, _casting)
    return module if found is module else dce(found)


def operands_of(gradient: Gradient) -> tuple[Atom, ...]:
    """Queries, keys, values and the result's cotangent."""
    given, v = walk.call_of(gradient.slopes).args
    return (*walk.call_of(gradient.scores).args, v, given)


def cast_from(body: Block, gradient: Gradient) -> DType | None:
    """The type of 16-bit floats that the operands of a group are casts of inside of it."""
    makers: _Makers = {out: let for let in body.lets for out in let.outs}
    sources = [_source(atom, makers) for atom in operands_of(gradient)]
    return None if None in sources else _dtype(sources[0])  # type: ignore[arg-type]


def _casting(let: Let, builder: Builder, scope: Scope) -> Replacement:
    if not isinstance(let.rhs, KernelCall):
        return None
    function = let.rhs.function
    gradient = gradient_of(function.body)
    if gradient is None:
        return None
    given: dict[Atom, Atom] = dict(zip(function.params, let.rhs.args, strict=True))
    operands = operands_of(gradient)
    if not all(atom in given for atom in operands):
        return None
    sources = {atom: _source(given[atom], scope.definitions) for atom in operands}
    if len({None if x is None else _dtype(x) for x in sources.values()}) != 1 or None in (
        sources.values()
    ):
        return None
    names, casts = walk.Renaming(), Builder()
    names.atoms.update(zip(function.params, let.rhs.args, strict=True))
    names.dims.update(zip(function.dims, let.rhs.dims, strict=True))
    for atom, source in sources.items():
        assert source is not None
        assert isinstance(atom, Var)
        with casts.at(let.span):
            names.atoms[atom] = casts.cast(source, f32)
    body = walk.copy_block(function.body, names)
    made = dict(zip(body.results, let.outs, strict=True))
    members = [
        replace(each, outs=tuple(made.get(out, out) for out in each.outs)) for each in body.lets
    ]
    builder.lets.append(kernel_call((*casts.lets, *members), let.outs, {}))
    return let.outs


def half_attention_of(body: Block) -> HalfAttention | None:
    """The attention over 16-bit floats that the body of a group is, if it is one."""
    products = [let for let in body.lets if walk.is_call(let, "matmul")]
    if len(products) != 2 or not isinstance(body.lets[-1].rhs, OpCall):
        return None
    return _found(_Finder(body), products[1], {})


def _grouped(body: Block, outer: _Makers) -> Block:
    if any(walk.blocks(let.rhs) for let in body.lets):
        makers: dict[Atom, Let] = {out: let for let in body.lets for out in let.outs}
        makers.update(outer)
        body = walk.with_blocks(body, lambda inner: _grouped(inner, makers))
    products = [let for let in body.lets if walk.is_call(let, "matmul")]
    if len(products) < 2:
        return body
    finder, calls, gone = _Finder(body), dict[Let, tuple[Let, ...]](), set[Let]()
    for product in products:
        found = _found(finder, product, outer)
        if found is None:
            continue
        members = found.attention.members() if found.back is None else (
            *found.attention.members(), found.back
        )
        statistics = finder.results(found.attention)[1:]
        found, copies = _in_lines(finder, found)
        call = _call_of(found, members, (*members[-1].outs, *statistics))
        calls[product] = (*copies, call)
        gone.update(members)
    if not calls:
        return body
    kept = (
        calls.get(let, (let,)) for let in body.lets if let in calls or let not in gone
    )
    return replace(body, lets=tuple(new for each in kept for new in each))


def _in_lines(finder: _Finder, found: HalfAttention) -> tuple[HalfAttention, tuple[Let, ...]]:
    """The same, with Lets for those operands that are made by moving axes: copies whose lines are
    lines of what is copied, and transposed by the product rather than by the copy."""
    operands, flags, copies = list(found.operands), list(found.turned), list[Let]()
    for k, atom in enumerate(operands):
        let = finder.makers.get(atom)
        if flags[k] or let is None or not walk.is_call(let, "transpose"):
            continue
        call = walk.call_of(let)
        axes = call.attrs["axes"]
        last = len(axes) - 1
        if axes[-1] == last or axes[-2] != last or not _serves_once(finder, atom):
            continue
        builder = Builder()
        with builder.at(let.span):
            moved = (*axes[:-2], axes[-1], axes[-2])
            operands[k] = builder.call(OPS["transpose"], call.args[0], axes=moved).atom
        flags[k] = True
        copies += builder.lets
    changed = replace(
        found, operands=(operands[0], operands[1], operands[2]),
        turned=(flags[0], flags[1], flags[2]),
    )
    return changed, tuple(copies)


def _serves_once(finder: _Finder, atom: Atom) -> bool:
    """Whether one cast reads an atom, and one operand of a product that cast."""
    casts = finder.read_by.get(atom, [])
    if finder.readers[atom] != 1 or len(casts) != 1:
        return False
    (wide,) = casts[0].outs
    users = finder.read_by.get(wide, [])
    return len(users) == finder.readers[wide] == 1 and walk.operands(users[0].rhs).count(wide) == 1


def _found(finder: _Finder, product: Let, outer: _Makers) -> HalfAttention | None:
    """The attention that ends with a product, if its operands are casts of one type of 16 bits."""
    found = finder.attention(product)
    if found is None or found.kept:
        return None
    atoms = (*walk.call_of(found.scores).args, walk.call_of(product).args[1])
    q, k, v = (_source(atom, finder.makers, outer) for atom in atoms)
    if q is None or k is None or v is None or len({_dtype(x) for x in (q, k, v)}) != 1:
        return None
    of = _dtype(q)
    assert of is not None
    lying = [_as_it_lies(x, finder.makers, outer) for x in (q, k, v)]
    (q, turned_q), (k, turned_k), (v, turned_v) = lying
    share = finder.makers[walk.call_of(product).args[0]]
    rounded = walk.is_call(share, "cast") and _dtype(walk.call_of(share).args[0]) == of
    back = _back(finder, product, of)
    return HalfAttention(found, (q, k, v), (turned_q, turned_k, turned_v), of, rounded, back)


def _back(finder: _Finder, product: Let, of: DType) -> Let | None:
    """The cast of a product to a type, if nothing else reads it."""
    (made,) = product.outs
    readers = finder.read_by.get(made, [])
    if len(readers) != 1 or finder.readers[made] != 1 or not walk.is_call(readers[0], "cast"):
        return None
    return readers[0] if _dtype(readers[0].outs[0]) == of else None


def _source(atom: Atom, *makers: _Makers) -> Atom | None:
    """What an atom of float32 is a cast of that has 16 bits."""
    let = _maker(atom, makers)
    if let is None or not walk.is_call(let, "cast"):
        return None
    (source,) = walk.call_of(let).args
    return source if _is_half(_dtype(source)) else None


def _as_it_lies(atom: Atom, *makers: _Makers) -> tuple[Atom, bool]:
    """A matrix, or what it is the transpose of in its last two axes; whether it is one."""
    let = _maker(atom, makers)
    if let is None or not isinstance(let.rhs, OpCall):
        return atom, False
    source = turned(let.rhs)
    return (atom, False) if source is None else (source, True)


def _maker(atom: Atom, makers: Iterable[_Makers]) -> Let | None:
    return next((found[atom] for found in makers if atom in found), None)


def _call_of(
    found: HalfAttention, members: tuple[Let, ...], results: tuple[Var, ...]
) -> Let:
    """The group: casts, each of a matrix as it lies, and the rest, whose operands they are."""
    casts: dict[Atom, Let] = {}
    for source in found.operands:
        builder = Builder()
        with builder.at(members[-1].span):
            builder.cast(source, f32)
        casts.setdefault(source, builder.lets[-1])
    q, k, v = (casts[source].outs[0] for source in found.operands)
    turned_q, turned_k, turned_v = found.turned
    scores, product = walk.call_of(found.attention.scores), walk.call_of(found.attention.product)
    changed = {
        found.attention.scores: _product(scores, (q, k), turned_q, turned_k),
        found.attention.product: _product(product, (product.args[0], v), False, turned_v),
    }
    whole = (
        *casts.values(),
        *(replace(let, rhs=changed[let]) if let in changed else let for let in members),
    )
    return kernel_call(whole, results, {})


def _product(call: OpCall, args: tuple[Atom, ...], turned_a: bool, turned_b: bool) -> OpCall:
    """A product of other matrices, which may be the transposes of what they were."""
    a, b = call.attrs["transpose_a"], call.attrs["transpose_b"]
    return replace(
        call, args=args, attrs=Attrs(transpose_a=a != turned_a, transpose_b=b != turned_b)
    )


def _is_half(dtype: DType | None) -> bool:
    return dtype is not None and is_half(dtype)


def _dtype(atom: Atom) -> DType | None:
    return atom.type.dtype if isinstance(atom.type, TensorType) else None
