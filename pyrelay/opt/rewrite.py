"""The one way passes rewrite programs: Lets re-emitted in order under a substitution.

In: a function and a rule. Out: the function with every Let for which the rule gave atoms replaced
by those. A rule sees a Let whose operands are replaced already, and a builder to emit into; None
means "keep it". Blocks inside are rewritten first to last, each with the scope of what dominates
it. Whatever stays as it is is the same object afterwards: Lets, blocks, functions, the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import (
    Atom,
    Block,
    FnCall,
    Function,
    If,
    Jvp,
    KernelCall,
    Let,
    Loop,
    Module,
    OpCall,
    Rhs,
    Var,
    Vjp,
)
from pyrelay.ir.walk import Renaming
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Replaced:
    """Atoms for the outputs of a Let, and extents for the symbols it binds.

    after: what the rest of the block reads instead of other variables, which are bound before.
    """

    atoms: Sequence[Atom]
    extents: Sequence[Extent] = ()
    after: Mapping[Var, Atom] = field(default_factory=dict)


Replacement = Sequence[Atom] | Replaced | None


@dataclass
class Scope:
    """What dominates the place at hand: definitions by variable, and the enclosing loops."""

    definitions: dict[Var, Let] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()

    def definition(self, atom: Atom) -> Rhs | None:
        """The node that computes an atom, if it is a variable bound by a Let in sight."""
        let = self.definitions.get(atom) if isinstance(atom, Var) else None
        return None if let is None else let.rhs

    def op(self, atom: Atom, name: str) -> OpCall | None:
        """The call of op `name` that computes an atom, if that is what computes it."""
        rhs = self.definition(atom)
        return rhs if isinstance(rhs, OpCall) and rhs.op.name == name else None


Rule = Callable[[Let, Builder, Scope], Replacement]


def rewrite_module(
    module: Module, rule: Callable[[], Rule] | Rule, *, fresh: bool = False
) -> Module:
    """Rewrite every function. With `fresh`, `rule` makes a new rule per function."""
    functions = {}
    for name, function in module.functions.items():
        own = rule() if fresh else rule  # type: ignore[call-arg]
        functions[name] = rewrite(function, own)  # type: ignore[arg-type]
    return module.holding(functions)


def rewrite(function: Function, rule: Rule) -> Function:
    """Rewrite one function."""
    body = _Rewriter(rule).block(function.body, Scope())
    return function if body is function.body else replace(function, body=body)


def rewrite_block(block: Block, rule: Rule) -> Block:
    """Rewrite a block of which nothing around it matters."""
    return _Rewriter(rule).block(block, Scope())


def _same(left: Sequence[Let | Atom], right: Sequence[Let | Atom]) -> bool:
    return tuple(left) == tuple(right)  # each is equal to itself only


@dataclass
class _Rewriter:
    rule: Rule
    names: Renaming = field(default_factory=Renaming)

    def block(self, block: Block, scope: Scope) -> Block:
        builder = Builder()
        lets, definitions, rule, names = builder.lets, scope.definitions, self.rule, self.names
        seen: list[Var] = []
        outside: dict[Var, Atom] = {}
        for let in block.lets:
            builder.span = let.span
            before = len(lets)
            if isinstance(let.rhs, OpCall) and not names.atoms and not names.dims:
                replacement = rule(let, builder, scope)
                if replacement is None:  # most are as they were, and stay
                    lets[before:] = (let,)
                    for out in let.outs:
                        definitions[out] = let
                    seen += let.outs
                    continue
                after = self._replaced(let, let.outs, replacement)
            else:
                after = self._let(let, builder, scope)
            for var, atom in after.items():
                outside.setdefault(var, names.atom(var))
                names.atoms[var] = atom
            for made in lets[before:]:
                for out in made.outs:
                    definitions[out] = made
                    seen.append(out)
        results = tuple(map(self.names.atom, block.results))
        extents = tuple(map(self.names.extent, block.dims))
        for out in seen:  # not in sight after the block
            del definitions[out]
        for var, atom in outside.items():
            self.names.atoms[var] = atom
        if (
            _same(builder.lets, block.lets) and _same(results, block.results)
            and extents == block.dims
        ):
            return block
        return Block(tuple(builder.lets), results, extents)

    def _let(self, let: Let, builder: Builder, scope: Scope) -> Mapping[Var, Atom]:
        """Emit a Let; what is read instead of other variables after it."""
        rhs = self._rhs(let.rhs, scope)
        outs = let.outs
        if self.names.dims:
            outs = tuple(self._retyped(v) for v in outs)
        new = let
        if rhs is not let.rhs or not _same(outs, let.outs):
            new = Let(outs, rhs, let.dims, span=let.span)
        emitted = len(builder.lets)
        replacement = self.rule(new, builder, scope)
        if replacement is None:
            del builder.lets[emitted:]
            builder.lets.append(new)
            return {}
        return self._replaced(let, outs, replacement)

    def _replaced(
        self, let: Let, outs: Sequence[Var], replacement: Sequence[Atom] | Replaced
    ) -> Mapping[Var, Atom]:
        """Note what is read instead of a Let, whose outputs are `outs` now."""
        if not isinstance(replacement, Replaced):
            replacement = Replaced(replacement)
        for symbol, extent in zip(let.dims, replacement.extents, strict=True):
            if extent != dims.of(symbol):
                self.names.dims[symbol] = extent
        for out, atom in zip(let.outs, replacement.atoms, strict=True):
            self.names.atoms[out] = atom
        for out, atom in zip(outs, replacement.atoms, strict=True):
            if out is not atom:
                self.names.atoms[out] = atom
        return replacement.after

    def _retyped(self, var: Var) -> Var:
        assert var.type is not None
        ty = types.substitute(var.type, self.names.dims)
        if ty == var.type:
            return var
        copy = Var(var.name, ty, span=var.span)
        self.names.atoms[var] = copy
        return copy

    def _rhs(self, rhs: Rhs, scope: Scope) -> Rhs:
        names = self.names
        if isinstance(rhs, OpCall):
            args, attrs = rhs.args, names.attrs(rhs.attrs) if names.dims else rhs.attrs
            if not names.atoms.keys().isdisjoint(args):
                args = tuple(map(names.atom, args))
            if attrs is rhs.attrs and _same(args, rhs.args):
                return rhs
            return OpCall(rhs.op, args, attrs)
        if isinstance(rhs, If):
            cond = names.atom(rhs.cond)
            then, orelse = self.block(rhs.then, scope), self.block(rhs.orelse, scope)
            same = cond is rhs.cond and then is rhs.then and orelse is rhs.orelse
            return rhs if same else If(cond, then, orelse)
        if isinstance(rhs, Loop):
            return self._loop(rhs, scope)
        if not names.atoms and not names.dims:
            return rhs
        match rhs:
            case FnCall(_, args, extents) | KernelCall(_, args, extents):
                renamed, told = tuple(map(names.atom, args)), tuple(map(names.extent, extents))
                if told == extents and _same(renamed, args):
                    return rhs
                return replace(rhs, args=renamed, dims=told)
            case Vjp() | Jvp():
                return replace(
                    rhs, args=tuple(map(names.atom, rhs.args)),
                    seeds=tuple(map(names.atom, rhs.seeds)),
                    dims=tuple(map(names.extent, rhs.dims)),
                )
        raise AssertionError(rhs)

    def _loop(self, loop: Loop, scope: Scope) -> Loop:
        names = self.names
        init = tuple(map(names.atom, loop.init))
        count = None if loop.count is None else names.atom(loop.count)
        init_dims = tuple(map(names.extent, loop.init_dims))
        carried = loop.carried
        handed = loop.handed
        if names.dims:
            carried = tuple(map(self._retyped, carried))
            handed = tuple(map(self._retyped, handed))
        header = loop
        if not (
            _same(carried, loop.carried) and _same(handed, loop.handed) and _same(init, loop.init)
            and count is loop.count and init_dims == loop.init_dims
        ):
            header = replace(
                loop, carried=carried, handed=handed, init=init, count=count, init_dims=init_dims
            )
        inner = Scope(scope.definitions, (*scope.loops, header))
        test = None if loop.test is None else self.block(loop.test, inner)
        body = self.block(loop.body, inner)
        if test is header.test and body is header.body:
            return header
        return replace(header, test=test, body=body)
