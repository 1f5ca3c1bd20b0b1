"""What a recursion over data looks like before it runs: its calls, and what each of them computes.

In: a recursive function. Out: a `Recursion` if which calls are made, and with which arguments, does
not depend on what calls return: then the tree of all calls can be laid out first (Cortex's
linearisation; Fegade et al., MLSys 2021, whose conditions P1 to P3 these are). A call is told from
another by numbers, its *state* (the row of a node, for instance); all other arguments are shared.
Every path through the body is a `Case`: the recursive calls it makes, then pure work on their
results.

Conditions and states are computed from numbers only (`Tree`), the rest is work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from pyrelay.ir import walk
from pyrelay.ir.effects import effect_of, is_pure
from pyrelay.ir.nodes import Atom, Block, Const, FnCall, Function, If, Let, OpCall, Var
from pyrelay.ir.op import Effect
from pyrelay.ir.types import TensorType, type_symbols
from pyrelay.opt.batching import is_batchable
from pyrelay.records import dataclass

_MOST_CASES = 8


class Cannot(Exception):
    """The calls of a function cannot be laid out before it runs."""


@dataclass(eq=False)
class Case:
    """A path through the body: calls made (their outputs and states), work, results.

    numbers: integers and truths of the tree that the work reads, computed with the tree.
    """

    calls: list[tuple[tuple[Var, ...], tuple[Atom, ...]]]
    work: list[Let]
    results: tuple[Atom, ...]
    numbers: tuple[Var, ...] = ()


@dataclass(eq=False)
class Fails:
    """A path that raises."""


@dataclass(eq=False)
class Choice:
    """A condition, and what follows from either answer."""

    cond: Atom
    then: Tree
    orelse: Tree


@dataclass(eq=False)
class Check:
    """`check_index`: what follows if the index is in range; else the path fails."""

    let: Let
    rest: Tree


@dataclass(eq=False)
class Tree:
    """Numbers computed, then how the path goes on."""

    lets: list[Let]
    end: Case | Choice | Check | Fails


@dataclass(eq=False)
class Recursion:
    """A function whose calls can be laid out.

    `function` is a copy with names of its own; `state` are the positions of the parameters that
    tell calls apart, `cases` those without calls first.
    """

    function: Function
    state: tuple[int, ...]
    tree: Tree
    cases: list[Case]

    @property
    def leaves(self) -> int:
        """How many cases make no calls."""
        return sum(not c.calls for c in self.cases)

    @property
    def most_calls(self) -> int:
        """The calls of the case with the most."""
        return max(len(c.calls) for c in self.cases)


def recursion(function: Function) -> Recursion:
    """The calls of a function that calls itself. Raises Cannot."""
    names = walk.Renaming()
    symbols = tuple(map(names.symbol, function.dims))
    params = tuple(map(names.var, function.params))
    body = walk.copy_block(function.body, names)
    copy = replace(function, params=params, body=body, dims=symbols)
    reader = _Reader(copy, _state_of(copy))
    tree = reader.tree(_Path(_Rest(body, 0, None, None)))
    cases = sorted(reader.cases, key=lambda c: bool(c.calls))
    if not cases or cases[0].calls or not cases[-1].calls:
        raise Cannot("no base case, or no call")
    return Recursion(copy, reader.state, tree, cases)


def _state_of(function: Function) -> tuple[int, ...]:
    """The positions of the parameters that some call does not pass on as they are."""
    found: set[int] = set()
    for let in walk.nested_lets(function.body):
        rhs = let.rhs
        if isinstance(rhs, FnCall):
            if rhs.function != function.name:
                raise Cannot("another function")
            pairs = zip(rhs.args, function.params, strict=True)
            found.update(k for k, (a, p) in enumerate(pairs) if a is not p)
    for k in found:
        ty = function.params[k].type
        if not isinstance(ty, TensorType) or ty.shape or ty.dtype.kind not in "biu":
            raise Cannot("a state that is no integer")
    return tuple(sorted(found))


@dataclass(frozen=True, eq=False)
class _Rest:
    """What a path has still to do: a block from a Let on, then what follows the block's owner."""

    block: Block
    at: int
    owner: Let | None
    after: _Rest | None


@dataclass(eq=False)
class _Path:
    """A path as far as it was read. Everything bound on it has names of its own."""

    rest: _Rest
    names: walk.Renaming = field(default_factory=walk.Renaming)
    known: dict[Atom, bool] = field(default_factory=dict)
    calls: list[tuple[tuple[Var, ...], tuple[Atom, ...]]] = field(default_factory=list)
    work: list[Let] = field(default_factory=list)

    def entering(self, block: Block, let: Let, cond: Atom, truth: bool) -> _Path:
        """This path, going on into a branch."""
        names = walk.Renaming(dict(self.names.atoms), dict(self.names.dims))
        return _Path(
            _Rest(block, 0, let, self.rest), names, {**self.known, cond: truth},
            list(self.calls), list(self.work),
        )


class _Reader:
    """Reads the paths of a function."""

    def __init__(self, function: Function, state: tuple[int, ...]) -> None:
        self.function, self.state = function, state
        self.cases: list[Case] = []
        self.numbers: set[Atom] = {function.params[k] for k in state}
        self.shared: set[Atom] = {
            p for k, p in enumerate(function.params) if k not in state
        }

    def tree(self, path: _Path) -> Tree:
        """All that may follow on a path."""
        lets: list[Let] = []
        while True:
            rest = path.rest
            if rest.at == len(rest.block.lets):
                results = tuple(map(path.names.atom, rest.block.results))
                if rest.owner is None or rest.after is None:
                    return Tree(lets, self._case(path, results))
                path.names.atoms.update(zip(rest.owner.outs, results, strict=True))
                path.rest = rest.after
                continue
            let = rest.block.lets[rest.at]
            path.rest = replace(rest, at=rest.at + 1)
            end = self._let(path, let, lets)
            if end is not None:
                return Tree(lets, end)

    def _let(self, path: _Path, let: Let, lets: list[Let]) -> Choice | Check | Fails | None:
        """Read a Let; how the path goes on if it ends or forks here."""
        rhs = let.rhs
        if let.dims:
            raise Cannot("sizes that only the running program knows")
        if isinstance(rhs, If):
            return self._branch(path, let, rhs, lets)
        if isinstance(rhs, OpCall) and rhs.op.name == "raise":
            return Fails()
        made = walk.copy_let(let, path.names)
        if isinstance(made.rhs, FnCall):
            self._call(path, made.outs, made.rhs)
            return None
        number = self._is_number(made)
        shared = is_pure(made) and all(
            isinstance(a, Const) or a in self.shared for a in walk.operands(made.rhs)
        )
        if number:
            (self.shared if shared else self.numbers).update(made.outs)
            if isinstance(made.rhs, OpCall) and made.rhs.op.name == "check_index":
                return Check(made, self.tree(path))
            lets.append(made)
        if not number or shared or made.outs[0].type.dtype.is_float:  # type: ignore[union-attr]
            if not is_batchable(made):
                raise Cannot("work without a rule")
            path.work.append(made)
        return None

    def _branch(self, path: _Path, let: Let, rhs: If, lets: list[Let]) -> Choice | None:
        cond = path.names.atom(rhs.cond)
        truth = path.known.get(cond)
        if isinstance(cond, Const):
            truth = bool(cond.value)
        if truth is not None:
            path.rest = _Rest(rhs.then if truth else rhs.orelse, 0, let, path.rest)
            return None
        if not self._is_known(cond):
            raise Cannot("a condition on results")
        if all(self._is_plain(block) for block in (rhs.then, rhs.orelse)):
            made = walk.copy_let(let, path.names)
            self.numbers.update(made.outs)
            lets.append(made)
            return None
        then = self.tree(path.entering(rhs.then, let, cond, True))
        orelse = self.tree(path.entering(rhs.orelse, let, cond, False))
        return Choice(cond, then, orelse)

    def _call(self, path: _Path, outs: tuple[Var, ...], call: FnCall) -> None:
        state = tuple(call.args[k] for k in self.state)
        if not all(map(self._is_known, state)):
            raise Cannot("a state that depends on results")
        path.calls.append((outs, state))

    def _case(self, path: _Path, results: tuple[Atom, ...]) -> Case:
        defined = {v for let in path.work for v in let.outs}
        read = [a for let in path.work for a in walk.operands(let.rhs)]
        read += [v for let in path.work for b in walk.blocks(let.rhs) for v in walk.free_vars(b)]
        numbers = dict.fromkeys(
            a for a in (*read, *results)
            if isinstance(a, Var) and a in self.numbers and a not in defined
        )
        case = Case(path.calls, path.work, results, tuple(numbers))
        self.cases.append(case)
        if len(self.cases) > _MOST_CASES:
            raise Cannot("too many cases")
        return case

    def _is_known(self, atom: Atom) -> bool:
        """True for what depends on the state and on shared arguments only, and is a number."""
        if isinstance(atom, Const) or atom in self.numbers:
            return True
        return atom in self.shared and isinstance(atom.type, TensorType) and not atom.type.shape

    def _is_number(self, let: Let) -> bool:
        """True for numbers computed from numbers and from elements of shared arrays."""
        rhs = let.rhs
        if not isinstance(rhs, OpCall) or len(let.outs) != 1:
            return False
        ty = let.outs[0].type
        if not isinstance(ty, TensorType) or ty.shape:
            return False
        if effect_of(rhs) is not Effect.PURE and rhs.op.name != "check_index":
            return False
        args: Sequence[Atom] = rhs.args
        if rhs.op.name == "index":
            if args[0] not in self.shared:
                return False
            args = args[1:]
        return all(map(self._is_known, args))

    def _is_plain(self, block: Block) -> bool:
        """True for branches that only compute integers and truths."""
        inside: set[Atom] = set()
        for let in walk.nested_lets(block):
            rhs = let.rhs
            if not isinstance(rhs, (OpCall, If)) or effect_of(rhs) is not Effect.PURE:
                return False
            for out in let.outs:
                if not isinstance(out.type, TensorType) or out.type.shape or type_symbols(out.type):
                    return False
            inside.update(let.outs)
        atoms = [a for let in walk.nested_lets(block) for a in walk.operands(let.rhs)]
        atoms += block.results
        integers = all(
            isinstance(a.type, TensorType) and a.type.dtype.kind in "biu" for a in block.results
        )
        return integers and not self._reads_results(atoms, inside)

    def _reads_results(self, atoms: Sequence[Atom], inside: set[Atom]) -> bool:
        return not all(
            a in inside or a in self.shared or self._is_known(a) for a in atoms
        )
