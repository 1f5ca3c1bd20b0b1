"""Calls of Python from the program: abstract values in, ops `host_call` and `host_value` out.

The operands of the op are the numbers and arrays inside the arguments; a tree says how the
arguments are put together from them (`result_trees.assemble`) when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import result_trees
from pyrelay.infer import values as V
from pyrelay.infer.containers.grown_trees import grown_tree
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.kinds import told_apart
from pyrelay.infer.objects import CAUSE
from pyrelay.infer.result_trees import ResultTree
from pyrelay.infer.structure import Flattened
from pyrelay.infer.wide import WHOLE
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Invocation:
    """`function(*args, **keywords)` of arguments made of an op's operands."""

    function: Callable[..., Any]
    args: tuple[ResultTree, ...]
    keywords: tuple[tuple[str, ResultTree], ...] = ()

    def __repr__(self) -> str:
        return f"<{getattr(self.function, '__name__', type(self.function).__name__)}>"

    def __call__(self, *values: Any) -> Any:
        made: dict[Any, Any] = {}
        # What it is handed may be kept, and the program goes on to use its own.
        values = tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)

        def built(tree: ResultTree) -> Any:
            return result_trees.assemble(tree, values, Flattened(), made)

        named = {k: built(tree) for k, tree in self.keywords}
        return self.function(*map(built, self.args), **named)


def call(
    it: Interpreter, function: Callable[..., Any], args: Sequence[V.Value] = (),
    keywords: Mapping[str, V.Value] | None = None, result: TensorType | None = None,
) -> V.Value:
    """Call a Python function that does something, here and once; its number if it gives one."""
    return _emitted(it, "host_call", function, args, keywords or {}, result)


def value(
    it: Interpreter, result: TensorType, function: Callable[..., Any], args: Sequence[V.Value]
) -> V.Value:
    """The number that a Python function without effects gives."""
    return _emitted(it, "host_value", function, args, {}, result)


def _emitted(
    it: Interpreter, op: str, function: Callable[..., Any], args: Sequence[V.Value],
    keywords: Mapping[str, V.Value], result: TensorType | None,
) -> V.Value:
    taken = Operands(it)
    trees = tuple(map(taken.tree, args))
    named = tuple((k, taken.tree(v)) for k, v in keywords.items())
    invocation = Invocation(function, trees, named)
    found = it.emit(
        op, *taken.atoms, function=invocation, types=() if result is None else (result,)
    )
    return V.NONE if result is None else it.result(found)


@dataclass
class Operands:
    """The operands of a call, and the trees of what is made of them."""

    it: Interpreter
    atoms: list[Atom] = field(default_factory=list)
    numbers: dict[Atom, int] = field(default_factory=dict)
    keys: dict[V.Root, int] = field(default_factory=dict)
    certain: set[V.Root] = field(default_factory=set)  # containers handed over in any case

    def operand(self, atom: Atom) -> int:
        """The position of an operand; each is passed once."""
        if atom not in self.numbers:
            self.numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return self.numbers[atom]

    def tree(self, value: V.Value) -> ResultTree:
        it = self.it
        match value:
            case V.Known(v):
                return result_trees.ConstantResult(v)
            case V.Scalar(kinds=kinds) if kinds:
                return self.tree(told_apart(it, value))
            case V.Scalar(ty):
                return result_trees.LeafResult(self.operand(it.atom(value)), ty)
            case V.Natural(bits):
                leaf = result_trees.LeafResult(self.operand(bits), WHOLE)
                return result_trees.NodeResult("call", int, (), (leaf,))
            case V.ArrayRef(type=ty):
                return result_trees.LeafResult(self.operand(it.atom(value)), ty)
            case V.Tuple(items, cls):
                return result_trees.NodeResult("tuple", cls, (), self.trees(items))
            case V.OpenTuple(own):
                content = it.content(own.root)
                made = grown_tree(it, content, self.operand, self.pool)
                return result_trees.NodeResult("call", tuple, (), (made,))
            case V.Text(function, args):
                return result_trees.NodeResult("call", function, (), self.trees(args))
            case V.Ref(root, cls):
                return self.container(root, cls)
            case V.Data() | V.Union() if V.node_of(value) is not None:
                return self.node(value)
            case V.Union(tag, cases):
                return result_trees.CaseResult(self.operand(tag), tuple(map(self.case, cases)))
            case V.Range(a, b, c):
                return result_trees.NodeResult("range", None, (), self.trees((a, b, c)))
            case V.Slice(a, b, c):
                return result_trees.NodeResult("slice", None, (), self.trees((a, b, c)))
            case V.Closure(function, _, owner) if owner is not None and not function.cells:
                if owner.__code__.co_name == V.function_name(function):
                    return result_trees.ConstantResult(owner)
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{V.describe(value)} cannot be handed to Python from a compiled function",
            hints=("hand over numbers, arrays, strings and tuples, lists or dicts of them",),
        )

    def trees(self, values: Sequence[V.Value]) -> tuple[ResultTree, ...]:
        return tuple(map(self.tree, values))

    def node(self, value: V.Value) -> ResultTree:
        """A node of a tree, with the columns of its pool."""
        parts = V.node_of(value)
        assert parts is not None
        pool, _, *place = parts
        kind, row = (
            result_trees.LeafResult(self.operand(self.it.atom(v)), types.PY_INT) for v in place
        )
        return result_trees.TreeResult(self.pool(pool), kind, row)

    def pool(self, pool: V.Ref) -> result_trees.PoolResult:
        """The columns of a pool that nodes lie in."""
        from pyrelay.infer.containers.lists_in_nodes import closed

        key = self.keys.setdefault(pool.root, len(self.keys))
        schema, columns = closed(self.it, pool)
        leaves = tuple((name, self.tree(column)) for name, column in columns.items())
        return result_trees.PoolResult(key, None, schema, leaves)

    def case(self, case: V.Value) -> ResultTree:
        """One case of a union: what only this case has may have to be made by others too."""
        before = set(self.certain)
        tree = self.tree(case)
        self.certain = before
        return tree

    def container(self, root: V.Root, cls: Any) -> ResultTree:
        key = self.keys.setdefault(root, len(self.keys))
        if root in self.certain:
            return result_trees.SharedResult(key)
        if root.kind in ("generator", "iterator"):
            raise self.it.failure(
                errors.UnsupportedOperationError,
                f"{V.describe(V.Ref(root))} cannot be handed to Python from a compiled function",
                hints=("hand over its items: list(...)",),
            )
        self.certain.add(root)
        content = self.it.content(root)
        if cls is not None and issubclass(cls, BaseException):
            from pyrelay.infer.flow.effects import parts_of

            made, args, named = parts_of(self.it, V.Ref(root, cls))
            if any(k != CAUSE for k, _ in named):
                raise self.it.failure(
                    errors.UnsupportedOperationError,
                    f"a {cls.__name__} made with keyword arguments cannot be handed to Python",
                    hints=("give its arguments by position",),
                )
            return result_trees.NodeResult("call", made, (), self.trees(args))
        if isinstance(content, V.Growing):
            return grown_tree(self.it, content, self.operand, self.pool, key)
        kind = "record" if root.kind == "object" else root.kind
        if isinstance(content, dict):
            parts = self.trees(tuple(content.values()))
            return result_trees.NodeResult(kind, cls, tuple(content), parts, key)
        return result_trees.NodeResult(kind, cls, (), self.trees(content), key)
