"""Functions that hand arrays on to each other: which of them native code can run, and where each
array is.

In: the functions of a module after `normalise`, and which of them are parts (`growing_parts`). Out:
a `Threaded` for each that computes with scalars and elements of arrays only, as do those that it
calls. What it stores it stores into elements of arrays that it is given, and gives these back, each
where the caller takes the one that it has given: so an array has one place in all calls. What is
there becomes another buffer where a part makes room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import (
    Atom,
    FnCall,
    Function,
    If,
    KernelCall,
    Let,
    Loop,
    OpCall,
    Var,
)
from pyrelay.ir.types import TensorType
from pyrelay.opt import scalars
from pyrelay.opt.given_back import GivenBack, given_back, of_one
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite
from pyrelay.opt.shapes import is_array
from pyrelay.opt.storage import storage_of
from pyrelay.records import dataclass

_MOST_RESULTS = 32
_MOST_SCALARS = 8  # results of functions that store nothing


@dataclass(frozen=True, slots=True)
class Threaded:
    """A function that native code can run.

    function: itself, with its fused groups in line. given_back: for each result the number of the
    parameter that it is, None for a scalar. buffers: the parameter in whose place each version of
    an array is. written: the numbers of the parameters that it stores into. is_part: the plan runs
    it, and may put arrays that it gives back into other buffers.
    """

    function: Function
    given_back: tuple[int | None, ...]
    buffers: Mapping[Var, Var]
    written: frozenset[int]
    is_part: bool = False

    def root(self, atom: Atom) -> Atom:
        """The parameter that an array is, or a later version of."""
        return self.buffers.get(atom, atom) if isinstance(atom, Var) else atom


def threaded(
    functions: Iterable[Function], stores: bool, parts: Collection[str] = ()
) -> dict[str, Threaded]:
    """The functions, of some, that native code can run, which may only store if `stores`, and the
    parts."""
    found = {
        f.name: rewrite(f, _groups_in_line) for f in functions
        if f.name in parts or _is_scalar(f, stores, parts)
    }
    while True:
        found = _closed(found)
        back = given_back(found, longer=True)
        kept = {
            name: _part(f, back[name]) if name in parts else _threaded(f, back)
            for name, f in found.items()
        }
        fit = {name: each for name, each in kept.items() if each is not None}
        if len(fit) == len(found):
            return fit
        found = {name: found[name] for name in fit}


def _closed(functions: Mapping[str, Function]) -> dict[str, Function]:
    """Those functions that call no others."""
    found = dict(functions)
    while True:
        kept = {name: f for name, f in found.items() if found.keys() >= set(walk.called(f))}
        if len(kept) == len(found):
            return found
        found = kept


def _groups_in_line(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, KernelCall):
        return None
    body = walk.instantiate(rhs.function, rhs.args, rhs.dims)
    builder.lets.extend(body.lets)
    return Replaced(body.results)


def _part(function: Function, back: tuple[int | None, ...]) -> Threaded | None:
    """A part; None if it makes an array that is none of those it is given."""
    results = zip(function.body.results, back, strict=True)
    if function.body.dims or any(k is None and is_array(r) for r, k in results):
        return None
    written = frozenset(k for k in back if k is not None)
    return Threaded(function, back, {}, written, is_part=True)


def _threaded(function: Function, back: GivenBack) -> Threaded | None:
    body, given = function.body, back[function.name]
    storage = storage_of(body.lets, body.results, back)
    if storage is None or storage.own or storage.turns or storage.choices or storage.ends:
        return None
    written = {k for k, p in enumerate(function.params) if p in storage.written}
    found = Threaded(function, given, storage.buffers, frozenset(written))
    for result, k in zip(body.results, given, strict=True):
        if is_array(result) and (k is None or found.root(result) is not function.params[k]):
            return None
    return found if written.issubset(given) else None


# -- what native code computes ---------------------------------------------------------------------


def _is_scalar(function: Function, stores: bool, parts: Collection[str]) -> bool:
    """Whether a function computes with scalars and elements only, without effects but failures and
    elements that it stores, if it may."""
    results = function.body.results
    if (function.body.dims and not stores) or len(results) > (
        _MOST_RESULTS if stores else _MOST_SCALARS
    ):
        return False
    return all(_is_word(r) or (stores and is_array(r)) for r in results) and all(
        _is_word(p) or is_array(p) for p in function.params
    ) and _fits(function, stores, parts)


def _fits(function: Function, stores: bool, parts: Collection[str]) -> bool:
    """Whether native code can run a function. One that has lists may go through them, too: they are
    short, or else it would not be worth while to hand them on."""
    grows = not set(walk.called(function)).isdisjoint(parts)
    return all(
        computes(let, stores) or (grows and computes_vectors(let))
        for let in walk.nested_lets(function.body)
    )


def computes(let: Let, stores: bool) -> bool:
    """Whether a Let computes with scalars and elements, and only stores if it may; not what its
    blocks do."""
    rhs = let.rhs
    if let.dims and not stores:
        return False
    if not all(_is_word(v) or (stores and is_array(v)) for v in let.outs):
        return False
    match rhs:
        case OpCall():
            return rhs.op.name == "as_extent" if let.dims else scalars.is_scalar_op(rhs)
        case KernelCall():
            return not let.dims and all(
                isinstance(each.rhs, (If, Loop, OpCall)) and computes(each, stores)
                for each in walk.nested_lets(rhs.function.body)
            )
    return isinstance(rhs, (FnCall, If, Loop))


def computes_vectors(let: Let) -> bool:
    """Whether a Let is a fused group that computes numbers of arrays, or what it stores into parts
    of arrays that it is given."""
    rhs = let.rhs
    if not isinstance(rhs, KernelCall) or let.dims:
        return False
    for each in walk.nested_lets(rhs.function.body):
        call = each.rhs
        if isinstance(call, OpCall) and (
            call.op.name == "pad"
            or not (scalars.is_scalar_op(call) or scalars.is_vector_op(each, call))
        ):
            return False
    back = zip(rhs.function.body.results, of_one(rhs.function), strict=True)
    return all(_is_word(r) or (is_array(r) and k is not None) for r, k in back)


def _is_word(atom: Atom) -> bool:
    """Whether an atom is a real scalar of at most 64 bits."""
    ty = atom.type
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype.kind != "c"
