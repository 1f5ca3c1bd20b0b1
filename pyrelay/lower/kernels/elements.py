"""Elements of a fused group: which value stands at which index of which variable.

In: a closed function of fusable ops, an `Emitter`. Out: `Elements.value(atom, index)`, which runs
the element rules that the value needs, each once per variable and index. It keeps its own stack,
so a chain of a million ops is no deeper than one; only reductions and lazy choices inside each
other nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.ir import walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, Function, Let, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import DType, TensorType, i64
from pyrelay.lower.kernels.kernel import ARRAY, SCALAR, Array, Parameter
from pyrelay.lower.kernels.reductions import Reduction
from pyrelay.lower.kernels.rule_emitter import RuleEmitter
from pyrelay.lower.kernels.values import Scope, Value

Index = tuple[Value, ...]


class _NeededError(Exception):
    """A rule asks for an element that has not been computed yet."""

    def __init__(self, atom: Atom, index: Index) -> None:
        super().__init__()
        self.atom, self.index = atom, index


class Reader:
    """An argument as an element rule sees it: `x(i)`, `x.shape`, `x.dtype`, ..."""

    __slots__ = ("_elements", "atom", "type")

    def __init__(self, elements: Elements, atom: Atom) -> None:
        assert isinstance(atom.type, TensorType)
        self._elements, self.atom, self.type = elements, atom, atom.type

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    def __call__(self, index: Sequence[Any]) -> Value:
        """The element at an index tuple; leading entries are dropped, 0 is read at extent 1."""
        return self._elements.read(self.atom, index)


class Elements:
    """The elements of all variables of a function, written through an emitter."""

    def __init__(self, s: RuleEmitter, function: Function) -> None:
        self.s = s
        self.function = function
        self.lets: dict[Var, Let] = {
            out: let for let in walk.nested_lets(function.body) for out in let.outs
        }
        self.params = {var: k for k, var in enumerate(function.params)}
        #: The memory of an array variable and whether it is written, None if it has none.
        self.home: Callable[[Atom], tuple[Array, bool] | None] = self._of_parameter
        self._rule_scopes: Sequence[Scope] = ()  # which are open around the rule that runs
        #: What a rule read of arrays that are written, for when it runs again.
        self._loaded: dict[tuple[Any, ...], Value] | None = None

    # -- reading -------------------------------------------------------------------------------

    def value(self, atom: Atom, index: Sequence[Any]) -> Value:
        """The element of `atom` at `index`, with all it needs computed first."""
        first = self._aligned(atom, index)
        pending: list[tuple[Atom, Index]] = [(atom, first)]
        loaded: dict[tuple[Any, ...], dict[tuple[Any, ...], Value]] = {}  # for each that waits
        depths: dict[tuple[Any, ...], int] = {}  # of the scopes that they have to stand in
        while pending:
            here, at = pending[-1]
            if self._known(here, at) is not None:
                pending.pop()
                continue
            missing = self._missing(here, at)
            if missing:
                pending += missing
                continue
            key = self._key(here, at)
            needed = self._computed(here, at, loaded.setdefault(key, {}), depths.get(key, 0))
            if needed is None:
                continue
            known = self._scope_of(self._key(*needed))
            if known is None:
                pending.append(needed)
            else:  # further in than the indices say: preset in a loop that counts none of them
                assert known.depth > depths.get(key, -1), needed
                depths[key] = known.depth
        result = self._known(atom, first)
        assert result is not None
        return result

    def read(self, atom: Atom, index: Sequence[Any]) -> Value:
        """The element for a rule that is running: known, or computed before the rule runs again."""
        at = self._aligned(atom, index)
        found = self.home(atom)
        if found is not None and found[1]:
            assert isinstance(atom, Var)
            return self._written(atom, at, *found)
        known = self._known(atom, at)
        if known is not None:
            return known
        if self._is_inside():
            # Inside a loop or branch that the rule has opened: it cannot be run again.
            return self.value(atom, at)
        raise _NeededError(atom, at)

    def _is_inside(self) -> bool:
        """Whether the innermost scope is one that the rule has opened, wherever that was."""
        return not any(self.s.scope is each for each in self._rule_scopes)

    def preset(self, var: Var, index: Index, value: Value) -> None:
        """Make `value` the element of `var` at `index` in the innermost scope and inside it."""
        self.s.scope.memo[self._key(var, self._aligned(var, index))] = value

    def _aligned(self, atom: Atom, index: Sequence[Any]) -> Index:
        ty = atom.type
        assert isinstance(ty, TensorType)
        own = list(index)[len(index) - ty.rank :] if ty.rank else []
        s = self.s
        return tuple(
            s.const(0, i64) if extent == 1 else s.cast(k, i64)
            for extent, k in zip(ty.shape, own, strict=True)
        )

    @staticmethod
    def _key(atom: Atom, index: Index) -> tuple[Any, ...]:
        return (atom, *(v.key for v in index))

    def _known(self, atom: Atom, index: Index) -> Value | None:
        if isinstance(atom, Const):
            assert isinstance(atom.type, TensorType)
            return self.s.const(atom.value, atom.type.dtype)
        key = self._key(atom, index)
        scope = self._scope_of(key)
        return None if scope is None else scope.memo[key]

    def _scope_of(self, key: tuple[Any, ...]) -> Scope | None:
        """The innermost scope in which an element is known."""
        for scope in reversed(self.s.scopes):
            if key in scope.memo:
                return scope
        return None

    # -- computing -----------------------------------------------------------------------------

    def _missing(self, atom: Atom, index: Index) -> list[tuple[Atom, Index]]:
        """What an elementwise op will ask for: the same element of each argument."""
        let = self.lets.get(atom) if isinstance(atom, Var) else None
        if let is None or not isinstance(let.rhs, OpCall):
            return []
        if let.rhs.op.fusion is not Fusion.ELEMENTWISE:
            return []
        wanted = [(arg, self._aligned(arg, index)) for arg in let.rhs.args]
        return [each for each in wanted if self._known(*each) is None]

    def _computed(
        self, atom: Atom, index: Index, loaded: dict[tuple[Any, ...], Value], depth: int
    ) -> tuple[Atom, Index] | None:
        """Compute an element in a scope of this depth, or further in where its index is; what it
        needs first, if that is not known there."""
        try:
            self._compute(atom, index, loaded, depth)
        except _NeededError as needed:
            return needed.atom, needed.index
        return None

    def _compute(
        self, atom: Atom, index: Index, loaded: dict[tuple[Any, ...], Value], depth: int
    ) -> None:
        assert isinstance(atom, Var)
        with self.s.at(max([depth, *(v.scope.depth for v in index)])):
            found = self.home(atom)
            if found is not None:
                self._remember(atom, index, self._load(atom, index, *found))
                return
            if atom in self.params:
                assert isinstance(atom.type, TensorType)
                slot = Parameter(SCALAR, self.params[atom], atom.type.dtype)
                self._remember(atom, index, self.s.read(slot))
                return
            let = self.lets[atom]
            values = self.apply(let, index, loaded=loaded)
            for out, value in zip(let.outs, values, strict=True):
                self._remember(out, index, value)

    def _remember(self, var: Var, index: Index, value: Value) -> None:
        home = self.s.scopes[min(value.scope.depth, len(self.s.scopes) - 1)]
        home.memo[self._key(var, index)] = value

    def _of_parameter(self, atom: Atom) -> tuple[Array, bool] | None:
        position = self.params.get(atom) if isinstance(atom, Var) else None
        ty = atom.type
        assert isinstance(ty, TensorType)
        if position is None or not ty.rank:
            return None
        return Parameter(ARRAY, position, ty.dtype), False

    def _load(self, var: Var, index: Index, array: Array, written: bool) -> Value:
        ty = var.type
        assert isinstance(ty, TensorType)
        return self.s.load(array, self.s.ravel(index, ty.shape), parallel=not written)

    def _written(self, var: Var, index: Index, array: Array, written: bool) -> Value:
        """An element of an array that is written: what it holds now, whatever it held before.

        A rule that runs again reads the same as before: it may say by what it reads which others
        it needs, and nothing is written in between.
        """
        if self._loaded is None or self._is_inside():
            return self._load(var, index, array, written)
        key = self._key(var, index)
        if key not in self._loaded:
            self._loaded[key] = self._load(var, index, array, written)
        return self._loaded[key]

    def apply(
        self, let: Let, index: Index, *, repeatable: bool = True,
        loaded: dict[tuple[Any, ...], Value] | None = None,
    ) -> tuple[Value, ...]:
        """Run the element rule of a Let in the innermost scope: one value per output.

        If `repeatable`, an element that is not known yet ends the run by an exception, to be
        computed first; otherwise it is computed at once. loaded: what earlier runs read of arrays
        that are written.
        """
        rhs = let.rhs
        assert isinstance(rhs, OpCall), rhs
        assert rhs.op.element is not None, rhs.op
        s = self.s
        saved = s.span, s.result, s.weak, self._rule_scopes, self._loaded
        self._loaded = loaded
        s.span, self._rule_scopes = let.span, s.scopes if repeatable else ()
        s.result = tuple(v.type for v in let.outs)  # type: ignore[misc]
        tensors = [a.type for a in rhs.args if isinstance(a.type, TensorType)]
        s.weak = bool(tensors) and all(t.weak for t in tensors)
        try:
            out = rhs.op.element(s, index, *(Reader(self, a) for a in rhs.args), **rhs.attrs)
        finally:
            s.span, s.result, s.weak, self._rule_scopes, self._loaded = saved
        values = out if isinstance(out, tuple) else (out,)
        lifted = []
        for var, value in zip(let.outs, values, strict=True):
            assert isinstance(var.type, TensorType)
            lifted.append(s.lift(value, var.type.dtype))
            if lifted[-1].dtype != var.type.dtype:
                raise AssertionError(
                    f"the element rule of {rhs.op.name} gives {lifted[-1].dtype}, "
                    f"its relation {var.type.dtype}"
                )
        return tuple(lifted)

    def reductions(self, let: Let, index: Index) -> tuple[Reduction, ...] | None:
        """What the outputs of a Let reduce at `index`, if they are reductions and nothing else."""
        captured: list[Reduction] = []
        self.s.captured = captured
        statements = len(self.s.scope.statements)
        try:
            values = self.apply(let, index)
        except _NeededError:
            return None
        finally:
            self.s.captured = None
        placeholders = [self.s.placeholder(r.dtype) for r in captured]
        pure = len(values) == len(captured) and all(
            v.key == p.key and v.dtype == p.dtype for v, p in zip(values, placeholders, strict=True)
        )
        return tuple(captured) if pure and len(self.s.scope.statements) == statements else None
