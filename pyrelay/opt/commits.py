"""What a caller's array contains at each place where the program may raise.

In: Core in which `commit(array, value)` says that the array, which is the caller's, contains the
value from here on. Out: of `commits`, Core without those commits that nobody can see: nothing may
raise before the next one, or before the program ends, which writes what is new into the caller's
array anyway. `in_place`, which runs before fusion, leaves the commits of what really lies in the
caller's memory, and lets nothing read such an array in its old state after a store: what does,
reads a copy instead. So each store is made in that memory where it stands (`stores.py` keeps it in
order), and what the caller finds there when the program raises is what Python leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import (
    Atom,
    Block,
    FnCall,
    Function,
    If,
    Let,
    Loop,
    Module,
    OpCall,
    Rhs,
    Var,
)
from pyrelay.ir.op import OPS, Effect
from pyrelay.opt import places
from pyrelay.opt.given_back import NO_CALLS, GivenBack, given_back
from pyrelay.opt.rewrite import Replacement, Scope, rewrite
from pyrelay.opt.stores import Stores, is_update, raises
from pyrelay.records import dataclass


def commits(module: Module) -> Module:
    """The module without the commits that nobody can see."""
    again = {callee for f in module.functions.values() for callee in walk.called(f)}
    functions = {
        name: _without(f, name in again, frozenset()) for name, f in module.functions.items()
    }
    return module.holding(functions)


def in_place(module: Module) -> Module:
    """The module whose stores in arrays of the caller's can all be made in their memory."""
    again = {callee for f in module.functions.values() for callee in walk.called(f)}
    functions, stores, back = {}, Stores(module), NO_CALLS
    if any(next(iter(_commits_of(f.body)), None) for f in module.functions.values()):
        back = given_back(module.functions)
    for name, function in module.functions.items():
        shown = stores.shown(function) if raises(function) else set()
        kept = _without(function, name in again, {
            let.outs[0] for let in _commits_of(function.body)
            if let.rhs.args[0] not in shown  # type: ignore[union-attr]
        }, back)
        if shown:
            body = _Linear(stores, frozenset(stores.shown(kept))).block(kept.body)
            kept = kept if body is kept.body else replace(kept, body=body)
        functions[name] = kept
    return module.holding(functions)


def _is_commit(let: Let) -> bool:
    return isinstance(let.rhs, OpCall) and let.rhs.op.name == "commit"


def _commits_of(block: Block) -> Iterable[Let]:
    return (let for let in walk.nested_lets(block) if _is_commit(let))


# -- commits that nobody sees ----------------------------------------------------------------------


def _without(
    function: Function, raises_behind: bool, unseen: Set[Var], back: GivenBack | None = None
) -> Function:
    """The function without unseen commits; `raises_behind`: something may raise after it ends.

    back: what functions give back, where updates stay what they are, also those of whole arrays,
    which are their values.
    """
    if next(iter(_commits_of(function.body)), None) is None:
        return function
    function = rewrite(function, lambda let, _, scope: _of_updates(let, scope, back))
    search = _Search()
    search.block(function.body, raises_behind)
    dropped = search.dropped | search.unseen(function.params) | unseen
    if not raises_behind and not raises(function):
        dropped |= search.commits.keys()
    bases = {
        out: search.base(out, dropped) for out, call in search.commits.items()
        if out not in dropped and call.args[0] in dropped
    }
    anew: dict[Atom, Atom] = {}

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not _is_commit(let):
            return None
        out, call = let.outs[0], let.rhs
        assert isinstance(call, OpCall)
        if out in dropped:
            return (call.args[1],)
        if out not in bases:
            return None
        array = anew.get(bases[out], bases[out])
        anew[out] = builder.call(call.op, array, call.args[1], **call.attrs).atom
        return (anew[out],)

    return rewrite(function, rule)


def _of_updates(let: Let, scope: Scope, back: GivenBack | None) -> Replacement:
    """Updates of an array are made where it lies: no commit is needed."""
    if not _is_commit(let):
        return None
    assert isinstance(let.rhs, OpCall)
    array, value = let.rhs.args
    atom = value
    while atom is not array:
        call = scope.definition(atom)
        if isinstance(call, FnCall) and back is not None:
            k = back[call.function][scope.definitions[atom].outs.index(atom)]  # type: ignore[index]
            if k is None:
                return None
            atom = call.args[k]
            continue
        if not isinstance(call, OpCall) or not (is_update(call) or places.is_view(call)):
            return None
        if back is None and call.attrs.get("sizes") == getattr(array.type, "shape", None):
            return None
        atom = call.args[0]
    return (value,)


@dataclass
class _Search:
    """Looks through a function from its end for commits after which nothing may raise."""

    contents: Contents = field(default_factory=Contents)
    commits: dict[Var, OpCall] = field(default_factory=dict)
    dropped: set[Var] = field(default_factory=set)
    last: list[Var] = field(default_factory=list)  # those behind which nothing may raise

    def block(self, block: Block, behind: bool) -> None:
        """`behind`: whether something may raise after the block."""
        following: dict[Atom, int] = {}  # committed array -> how much may raise behind the next one
        count = 0
        for let in reversed(block.lets):
            if _is_commit(let):
                call, out = let.rhs, let.outs[0]
                assert isinstance(call, OpCall)
                self.commits[out] = call
                if following.get(out) == count:
                    self.dropped.add(out)
                if not behind and not count:
                    self.last.append(out)
                following[call.args[0]] = count
                continue
            effect = self.contents.effect(let.rhs) is not Effect.PURE
            again = effect and isinstance(let.rhs, Loop)
            for inner in walk.blocks(let.rhs):
                self.block(inner, behind or bool(count) or again)
            count += effect

    def unseen(self, params: Sequence[Var]) -> set[Var]:
        """Last commits to arrays that were not stored into before.

        A commit behind others keeps those: what they store is not read otherwise.
        """
        found: set[Var] = set()
        for out in reversed(self.last):  # the earliest first
            if self.base(out, self.dropped | found) in params:
                found.add(out)
        return found

    def base(self, out: Var, dropped: set[Var]) -> Atom:
        """The array that a commit replaces once others are dropped."""
        array = self.commits[out].args[0]
        while array in dropped:
            array = self.commits[array].args[0]
        return array


# -- arrays that are stored into -------------------------------------------------------------------


@dataclass
class _Linear:
    """Gives copies of arrays of the caller's to what reads them after they are stored into."""

    stores: Stores
    shown: frozenset[Atom]
    found: dict[Block, frozenset[Atom]] = field(default_factory=dict)
    contents: Contents = field(default_factory=Contents)

    def block(self, block: Block) -> Block:
        """The block with copies."""
        if not self._inside(block):
            return block
        last: dict[Atom, int] = {}  # where a variable is read last
        views: dict[Atom, list[Atom]] = {}  # array -> its views, as far as they are made
        for k, let in enumerate(block.lets):
            last.update(dict.fromkeys((*walk.operands(let.rhs), *self._free(let.rhs)), k))
        last.update(dict.fromkeys(block.results, len(block.lets)))
        names: dict[Var, Atom] = {}
        lets: list[Let] = []
        for k, let in enumerate(block.lets):
            copied: dict[Var, Atom] = {}
            for array in self._consumed(let.rhs):
                for var in (array, *views.get(array, ())):
                    late = last.get(var, -1) > k
                    if isinstance(var, Var) and (late or self._is_free_in_loop(var, let.rhs)):
                        copy = _copied(names.get(var, var), let)
                        lets.append(copy)
                        copied[var] = copy.outs[0]
            if isinstance(let.rhs, Loop):
                lets.append(self._renamed(let, {**names, **copied}, names))
            else:
                lets.append(self._renamed(let, names, names))
            names.update(copied)
            if isinstance(let.rhs, OpCall) and places.is_view(let.rhs):
                source = let.rhs.args[0]
                views.setdefault(source, [])
                for array, those in views.items():
                    if array is source or source in those:
                        those.append(let.outs[0])
        results = tuple(names.get(a, a) if isinstance(a, Var) else a for a in block.results)
        return Block(tuple(lets), results, block.dims)

    def _renamed(self, let: Let, inner: Mapping[Var, Atom], own: Mapping[Var, Atom]) -> Let:
        """A Let with copies in it: `own` are those for its operands, `inner` for its blocks."""
        rhs = walk.replace_blocks(let.rhs, self.block)
        if any(v in inner for v in (*walk.operands(rhs), *self._free(rhs))):
            init = tuple(map(walk.Renaming(dict(own)).atom, getattr(rhs, "init", ())))
            rhs = walk.copy_rhs(rhs, walk.Renaming(dict(inner)))
            if isinstance(rhs, Loop):
                rhs = replace(rhs, init=init)
        return let if rhs is let.rhs else replace(let, rhs=rhs)

    def _free(self, rhs: Rhs) -> Iterable[Var]:
        return (v for block in walk.blocks(rhs) for v in self.contents.free(block))

    def _is_free_in_loop(self, var: Var, rhs: Rhs) -> bool:
        return isinstance(rhs, Loop) and var in self._free(rhs)

    def _inside(self, block: Block) -> frozenset[Atom]:
        """Arrays that a block stores into, in their own memory."""
        if block not in self.found:
            self.found[block] = frozenset(a for let in block.lets for a in self._consumed(let.rhs))
        return self.found[block]

    def _consumed(self, rhs: Rhs) -> Iterable[Atom]:
        """Arrays that a node stores into, in their own memory."""
        match rhs:
            case OpCall() | FnCall():
                return [a for a in dict.fromkeys(self.stores.stored(rhs)) if a in self.shown]
            case If():
                return dict.fromkeys((*self._inside(rhs.then), *self._inside(rhs.orelse)))
            case Loop():
                inside = {a for block in walk.blocks(rhs) for a in self._inside(block)}
                pairs = zip(rhs.carried, rhs.init, strict=True)
                return dict.fromkeys(init for carried, init in pairs if carried in inside)
        return ()


def _copied(atom: Atom, beside: Let) -> Let:
    assert isinstance(atom, Var)
    copy = Var(atom.name, atom.type, span=atom.span)
    return Let((copy,), OpCall(OPS["stop_gradient"], (atom,)), span=beside.span)
