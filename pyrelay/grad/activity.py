"""Which values carry derivatives.

In: a function body, the parameters differentiated with respect to, the results that have a
cotangent. Out: the *active* variables: those that depend on such a parameter and that such a result
depends on, through floating values only. Integers, booleans and the results of ops without a
derivative are never active. (Activity analysis: Griewank and Walther, Evaluating Derivatives, 2nd
ed. 2008, section 6.2; Hascoët et al., "To be recorded" analysis, 2005.)

Tapes count as floating values. A tape that depends on an active value always has a cotangent, a
tape of the cotangents of what was pushed, even if none of them influences a result: pushes and pops
must keep their balance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyrelay.ir.nodes import Atom, Block, FnCall, Function, If, Let, Loop, OpCall, Var
from pyrelay.ir.op import NotDifferentiable
from pyrelay.ir.types import TapeType, TensorType, Type
from pyrelay.ir.walk import called


def carries_derivative(ty: Type | None) -> bool:
    """True for tensors of floating numbers, and for tapes."""
    return isinstance(ty, TapeType) or (isinstance(ty, TensorType) and ty.dtype.is_float)


class Dependence:
    """For each result of a function, the parameters it depends on differentiably.

    Answers for recursive functions are the least fixpoint, computed once for all functions that the
    asked one reaches.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._known: dict[str, tuple[int, ...]] = {}

    def masks(self, name: str) -> tuple[int, ...]:
        """Per result of the function, the set of parameters as a bit mask."""
        if name not in self._known:
            self._solve(self._reached(name))
        return self._known[name]

    def _reached(self, name: str) -> list[str]:
        found, pending = {name: None}, [name]
        while pending:
            for callee in called(self._functions[pending.pop()]):
                if callee not in found and callee not in self._known:
                    found[callee] = None
                    pending.append(callee)
        return list(found)

    def _solve(self, names: list[str]) -> None:
        states: dict[str, dict[Var, int]] = {}
        for name in names:
            function = self._functions[name]
            self._known[name] = (0,) * len(function.body.results)
            states[name] = {
                p: 1 << k for k, p in enumerate(function.params) if carries_derivative(p.type)
            }
        settled = False
        while not settled:
            settled = True
            for name in names:
                body = self._functions[name].body
                spread(body, states[name], self)
                found = tuple(states[name].get(r, 0) if isinstance(r, Var) else 0
                              for r in body.results)
                if found != self._known[name]:
                    self._known[name] = found
                    settled = False



def spread(block: Block, masks: dict[Var, int], calls: Dependence) -> None:
    """Enter in `masks` every floating variable that depends on those in it, with their bits."""
    for let in block.lets:
        match let.rhs:
            case OpCall(op, args):
                if not isinstance(op.vjp, NotDifferentiable):
                    _mark(masks, let.outs, [_union(masks, args)] * len(let.outs))
            case FnCall(name, args):
                found = [
                    _union(masks, [a for k, a in enumerate(args) if reads >> k & 1])
                    for reads in calls.masks(name)
                ]
                _mark(masks, let.outs, found)
            case If(_, then, orelse):
                for arm in (then, orelse):
                    spread(arm, masks, calls)
                    _mark(masks, let.outs, [_union(masks, [r]) for r in arm.results])
            case Loop():
                _spread_loop(let, let.rhs, masks, calls)


def _spread_loop(let: Let, loop: Loop, masks: dict[Var, int], calls: Dependence) -> None:
    _mark(masks, loop.carried, [_union(masks, [a]) for a in loop.init])
    changed = True
    while changed:
        if loop.test is not None:
            spread(loop.test, masks, calls)
            _mark(masks, loop.handed, [_union(masks, [a]) for a in loop.test.results[1:]])
        spread(loop.body, masks, calls)
        following = loop.body.results[loop.exits:]
        changed = _mark(masks, loop.carried, [_union(masks, [a]) for a in following])
    _mark(masks, let.outs, [_union(masks, [v]) for v in loop.carried])


def _union(masks: Mapping[Var, int], atoms: Iterable[Atom]) -> int:
    result = 0
    for atom in atoms:
        if isinstance(atom, Var):
            result |= masks.get(atom, 0)
    return result


def _mark(masks: dict[Var, int], targets: Iterable[Var], values: Iterable[int]) -> bool:
    """Add bits to floating variables; True if that changed anything."""
    changed = False
    for var, mask in zip(targets, values, strict=True):
        before = masks.get(var, 0)
        if mask | before != before and carries_derivative(var.type):
            masks[var] = mask | before
            changed = True
    return changed


class _Demand:
    """The backward half: which varied variables influence what is already demanded."""

    def __init__(self, varied: Mapping[Var, int], calls: Dependence) -> None:
        self.varied, self.calls = varied, calls
        self.wanted = {v for v in varied if isinstance(v.type, TapeType)}

    def want(self, atoms: Iterable[Atom]) -> bool:
        before = len(self.wanted)
        self.wanted.update(a for a in atoms if isinstance(a, Var) and a in self.varied)
        return len(self.wanted) != before

    def block(self, block: Block) -> None:
        for let in reversed(block.lets):
            wanted = [k for k, out in enumerate(let.outs) if out in self.wanted]
            if wanted or isinstance(let.rhs, (If, Loop)):
                self._let(let, wanted)

    def _let(self, let: Let, wanted: list[int]) -> None:
        match let.rhs:
            case OpCall(_, args):
                self.want(args)
            case FnCall(name, args):
                masks = self.calls.masks(name)
                for k in wanted:
                    self.want(a for p, a in enumerate(args) if masks[k] >> p & 1)
            case If(_, then, orelse):
                for arm in (then, orelse):
                    self.want(arm.results[k] for k in wanted)
                    self.block(arm)
            case Loop():
                self._loop(let.rhs, wanted)

    def _loop(self, loop: Loop, wanted: list[int]) -> None:
        self.want(loop.carried[k] for k in wanted)
        changed = True
        while changed:
            before = len(self.wanted)
            pairs = zip(loop.carried, loop.body.results[loop.exits:], strict=True)
            self.want(r for v, r in pairs if v in self.wanted)
            self.block(loop.body)
            if loop.test is not None:
                handed = zip(loop.handed, loop.test.results[1:], strict=True)
                self.want(r for v, r in handed if v in self.wanted)
                self.block(loop.test)
            changed = len(self.wanted) != before
        self.want(a for v, a in zip(loop.carried, loop.init, strict=True) if v in self.wanted)


def active_vars(
    body: Block, independent: Iterable[Var], seeded: Iterable[Atom], calls: Dependence
) -> set[Var]:
    """The active variables of a function body; `seeded` are the results with a cotangent."""
    varied = {v: 1 for v in independent if carries_derivative(v.type)}
    spread(body, varied, calls)
    demand = _Demand(varied, calls)
    demand.want(seeded)
    demand.block(body)
    return demand.wanted
