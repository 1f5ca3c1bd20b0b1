"""Functions that hand arrays on to each other: which of them native code can run, and where each
array is.

In: the functions of a module after `normalise`. Out: a `Threaded` for each that computes with
scalars and elements of arrays only, as do those that it calls. What it stores it stores into
elements of arrays that it is given, and gives these back, each where the caller takes the one that
it has given: so an array has one buffer in all calls, which nobody need hand on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import (
    Atom,
    Block,
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
from pyrelay.opt import places, scalars
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite
from pyrelay.opt.shapes import is_array
from pyrelay.opt.storage import GivenBack, storage_of
from pyrelay.records import dataclass

_MOST_RESULTS = 8


@dataclass(frozen=True, slots=True)
class Threaded:
    """A function that native code can run.

    function: itself, with its fused groups in line. given_back: for each result the number of the
    parameter that it is, None for a scalar. buffers: the parameter in whose buffer each version of
    an array is. written: the numbers of the parameters that it stores into.
    """

    function: Function
    given_back: tuple[int | None, ...]
    buffers: Mapping[Var, Var]
    written: frozenset[int]

    def root(self, atom: Atom) -> Atom:
        """The parameter that an array is, or a later version of."""
        return self.buffers.get(atom, atom) if isinstance(atom, Var) else atom


def threaded(functions: Iterable[Function], stores: bool) -> dict[str, Threaded]:
    """The functions, of some, that native code can run, which may only store if `stores`."""
    found = {f.name: rewrite(f, _groups_in_line) for f in functions if _is_scalar(f, stores)}
    while True:
        found = _closed(found)
        given_back = _given_back(found)
        kept = {name: _threaded(f, given_back) for name, f in found.items()}
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


def _threaded(function: Function, given_back: GivenBack) -> Threaded | None:
    body, given = function.body, given_back[function.name]
    storage = storage_of(body.lets, body.results, given_back)
    if storage is None or storage.own or storage.turns or storage.choices or storage.ends:
        return None
    written = {k for k, p in enumerate(function.params) if p in storage.written}
    found = Threaded(function, given, storage.buffers, frozenset(written))
    for result, k in zip(body.results, given, strict=True):
        if is_array(result) and (k is None or found.root(result) is not function.params[k]):
            return None
    return found if written.issubset(given) else None


# -- what is given back ----------------------------------------------------------------------------


def _given_back(functions: Mapping[str, Function]) -> GivenBack:
    """For each result of each function the number of the parameter that it is a version of.

    What a function gives back that calls itself hangs on itself: it is what is known first, by the
    ways that end the recursion. `storage_of` tells whether it is so on all of them.
    """
    found: dict[str, tuple[int | None, ...]] = {
        name: (None,) * len(f.body.results) for name, f in functions.items()
    }
    while True:
        now = {
            name: tuple(map(_first_known, found[name], _Origins(f, found).results()))
            for name, f in functions.items()
        }
        if now == found:
            return found
        found = now


def _first_known(*numbers: int | None) -> int | None:
    return next((k for k in numbers if k is not None), None)


class _Origins:
    """Which parameter each array of a function is a version of, if that is known."""

    def __init__(self, function: Function, calls: GivenBack) -> None:
        self.function, self.calls = function, calls
        self.of: dict[Atom, int] = {p: k for k, p in enumerate(function.params) if is_array(p)}

    def results(self) -> tuple[int | None, ...]:
        """The same for each result."""
        self._block(self.function.body)
        return tuple(map(self.of.get, self.function.body.results))

    def _block(self, block: Block) -> None:
        for let in block.lets:
            rhs = let.rhs
            match rhs:
                case OpCall() if rhs.op.name in places.UPDATES:
                    self._is(let.outs[0], rhs.args[0])
                case If():
                    self._block(rhs.then)
                    self._block(rhs.orelse)
                    arms = zip(rhs.then.results, rhs.orelse.results, strict=True)
                    for out, pair in zip(let.outs, arms, strict=True):
                        self._is(out, *pair)
                case Loop():
                    for var, first in zip(rhs.carried, rhs.init, strict=True):
                        self._is(var, first)
                    if rhs.test is not None:
                        self._block(rhs.test)
                        for var, atom in zip(rhs.handed, rhs.test.results[1:], strict=True):
                            self._is(var, atom)
                    self._block(rhs.body)
                    for out, var in zip(let.outs, rhs.carried, strict=True):
                        self._is(out, var)
                case FnCall():
                    given = self.calls[rhs.function]
                    for out, k in zip(let.outs, given, strict=True):
                        if k is not None:
                            self._is(out, rhs.args[k])

    def _is(self, var: Var, *atoms: Atom) -> None:
        """A variable is a version of what the first of some atoms is one of that is known."""
        origin = _first_known(*map(self.of.get, atoms))
        if origin is not None:
            self.of[var] = origin


# -- what native code computes ---------------------------------------------------------------------


def _is_scalar(function: Function, stores: bool) -> bool:
    """Whether a function computes with scalars and elements only, without effects but failures and
    elements that it stores, if it may."""
    results = function.body.results
    if function.body.dims or len(results) > _MOST_RESULTS:
        return False
    return all(_is_word(r) or (stores and is_array(r)) for r in results) and all(
        _is_word(p) or is_array(p) for p in function.params
    ) and all(computes(let, stores) for let in walk.nested_lets(function.body))


def computes(let: Let, stores: bool) -> bool:
    """Whether a Let computes with scalars and elements, and only stores if it may; not what its
    blocks do."""
    rhs = let.rhs
    if let.dims or not all(_is_word(v) or (stores and is_array(v)) for v in let.outs):
        return False
    match rhs:
        case OpCall():
            return scalars.is_scalar_op(rhs)
        case KernelCall():
            return all(
                isinstance(each.rhs, (If, Loop, OpCall)) and computes(each, stores)
                for each in walk.nested_lets(rhs.function.body)
            )
        case Loop():
            return not rhs.dims
    return isinstance(rhs, (FnCall, If))


def _is_word(atom: Atom) -> bool:
    """Whether an atom is a real scalar of at most 64 bits."""
    ty = atom.type
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype.kind != "c"
