"""The verifier: a module and the stage it has reached in, nothing or VerifyError out.

Checks what every stage promises: the nodes it may hold, that each variable and symbol is bound once
and before it is read, that calls and blocks agree in number with what they bind; and, once the
program is typed, re-runs the relation of every op and compares all types with their binders. An
error shows the window of the printed program around the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyrelay.errors import InvariantError
from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import (
    Atom,
    Block,
    Const,
    FnCall,
    Function,
    If,
    Jvp,
    KernelCall,
    Let,
    Loop,
    Module,
    OpCall,
    PyCall,
    Var,
    Vjp,
)
from pyrelay.ir.op import RelationError
from pyrelay.ir.show import listing
from pyrelay.ir.types import PY_INT, TensorType, Type

#: stage -> the nodes a program may hold after it
STAGE_NODES: dict[str, tuple[type, ...]] = {
    "parse": (OpCall, FnCall, If, Loop, Vjp, Jvp, PyCall),
    "infer": (OpCall, FnCall, If, Loop, Vjp, Jvp),
    "grad": (OpCall, FnCall, If, Loop),
    "optimise": (OpCall, FnCall, If, Loop),
    "fuse": (OpCall, FnCall, If, Loop, KernelCall),
}
_LINES_AROUND = 4


class VerifyError(InvariantError):
    """A program is not what its stage promises."""


def verify(
    module: Module, stage: str, *, equal: Callable[[Extent, Extent], bool] | None = None
) -> None:
    """Check a module. `equal` decides equalities of extents that structure leaves open.

    Raises VerifyError with the printed surroundings of the first fault; KeyError for no such stage.
    """
    nodes = STAGE_NODES[stage]
    typed = stage != "parse"
    with dims.decided_by(equal or (lambda left, right: False)):
        if module.entry not in module.functions:
            raise VerifyError(f"after {stage}: the entry @{module.entry} does not exist")
        for name, function in module.functions.items():
            if function.name != name:
                raise VerifyError(f"after {stage}: @{function.name} is filed under {name!r}")
            verify_function(function, nodes, typed, module, stage)


def verify_function(
    function: Function, nodes: tuple[type, ...], typed: bool, module: Module, stage: str
) -> None:
    """Check one function; a kernel's function is checked where it is called."""
    checker = _Checker(function, nodes, typed, module, stage)
    try:
        checker.function()
    except _Fault as fault:
        window = _window(function, fault.let)
        span = fault.let.span if fault.let is not None else function.span
        raise VerifyError(
            f"after {stage}, in @{function.name}: {fault}\n{window}", span=span
        ) from None


class _Fault(Exception):
    """What is wrong, and in which Let."""

    let: Let | None = None


def _window(function: Function, let: Let | None) -> str:
    lines = listing(function)
    at = next((k for k, (start, _) in enumerate(lines) if start is let and let is not None), 0)
    first = max(0, at - _LINES_AROUND)
    shown = lines[first : at + _LINES_AROUND + 1]
    return "\n".join(
        f"{'>' if first + k == at else ' '} {text}" for k, (_, text) in enumerate(shown)
    )


def _require(condition: object, text: str) -> None:
    if not condition:
        raise _Fault(text)


class _Checker:
    """Checks one function. `visible` is what is in scope; leaving a block takes its binders out."""

    def __init__(
        self, function: Function, nodes: tuple[type, ...], typed: bool, module: Module, stage: str
    ) -> None:
        self.subject, self.nodes, self.typed = function, nodes, typed
        self.module, self.stage = module, stage
        self.visible: set[Var | Symbol] = set()
        self.ever: set[Var | Symbol] = set()

    def function(self) -> None:
        function = self.subject
        self.bind_symbols(function.dims)
        self.bind(function.params)
        self.block(function.body)

    # -- scope ---------------------------------------------------------------------------------

    def bind(self, binders: Iterable[Var]) -> None:
        for var in binders:
            _require(var not in self.ever, f"{var.name} is bound twice")
            self.ever.add(var)
            self.visible.add(var)
            if self.typed:
                _require(var.type is not None, f"{var.name} has no type")
                self.symbols(types.type_symbols(var.type) if var.type else ())

    def bind_symbols(self, symbols: Iterable[Symbol]) -> None:
        for symbol in symbols:
            _require(symbol not in self.ever, f"the symbol {symbol} is bound twice")
            self.ever.add(symbol)
            self.visible.add(symbol)

    def symbols(self, symbols: Iterable[Symbol]) -> None:
        for symbol in symbols:
            _require(symbol in self.visible, f"the symbol {symbol} is not in scope")

    def extents(self, extents: Iterable[Extent]) -> None:
        for extent in extents:
            self.symbols(dims.symbols(extent))

    def atoms(self, atoms: Iterable[Atom]) -> None:
        for atom in atoms:
            if isinstance(atom, Var):
                _require(atom in self.visible, f"{atom.name} is not in scope")
            elif self.typed:
                self.constant(atom)

    @staticmethod
    def constant(const: Const) -> None:
        ty = const.type
        _require(
            isinstance(ty, TensorType) and not ty.shape and types.of_scalar(const.value) == ty,
            f"the constant {const.value!r} is no scalar of type {ty}",
        )

    # -- blocks --------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Check a block; what it binds stays visible until `leave`."""
        for let in block.lets:
            try:
                self.let(let)
            except _Fault as fault:
                fault.let = fault.let or let
                raise
        self.atoms(block.results)
        self.extents(block.dims)

    def leave(self, block: Block) -> None:
        """Take what a block bound out of scope."""
        for let in block.lets:
            self.visible.difference_update(let.outs, let.dims)

    def let(self, let: Let) -> None:
        rhs = let.rhs
        _require(
            isinstance(rhs, self.nodes), f"{type(rhs).__name__} does not exist after {self.stage}"
        )
        self.atoms(walk.operands(rhs))
        match rhs:
            case OpCall(attrs=attrs):
                for value in attrs.values():
                    self.symbols(walk.attr_symbols(value))
                self.bind_outputs(let)
                if self.typed:
                    self.op(let, rhs)
            case FnCall(function=name, args=args, dims=extents):
                callee = self.callee(name)
                self.extents(extents)
                self.bind_outputs(let)
                self.call(let, callee, args, extents, callee.result_types)
            case KernelCall(function=kernel, args=args, dims=extents):
                self.extents(extents)
                self.bind_outputs(let)
                verify_function(kernel, (OpCall, If, Loop), True, self.module, self.stage)
                self.call(let, kernel, args, extents, kernel.result_types)
            case Vjp():
                self.extents(rhs.dims)
                self.bind_outputs(let)
                self.vjp(let, rhs)
            case Jvp():
                self.extents(rhs.dims)
                self.bind_outputs(let)
                self.jvp(let, rhs)
            case If():
                self.branches(let, rhs)
            case Loop():
                self.loop(let, rhs)
            case _:
                self.bind_outputs(let)

    def bind_outputs(self, let: Let) -> None:
        self.bind_symbols(let.dims)
        self.bind(let.outs)

    def callee(self, name: str) -> Function:
        _require(name in self.module.functions, f"@{name} does not exist")
        return self.module.functions[name]

    # -- types ---------------------------------------------------------------------------------

    def same(
        self, what: str, found: Sequence[Type | None], expected: Sequence[Type | None]
    ) -> None:
        """Compare types position by position, in number only if the program is untyped."""
        _require(
            len(found) == len(expected), f"{what}: {len(found)} values for {len(expected)} places"
        )
        if not self.typed:
            return
        for k, (left, right) in enumerate(zip(found, expected, strict=True)):
            if left is None or right is None or not _agree(left, right):
                raise _Fault(f"{what}, position {k}: {left} where {right} is declared")

    def op(self, let: Let, call: OpCall) -> None:
        attrs = dict(call.attrs)
        _require(len(let.dims) == call.op.binds, f"{call.op.name} binds {call.op.binds} symbols")
        if call.op.binds:
            attrs["dims"] = tuple(map(dims.of, let.dims))
        try:
            result = call.op.relation(tuple(a.type for a in call.args), attrs)
        except RelationError as error:
            raise _Fault(f"{call.op.name}: {error.text}") from error
        self.same(f"the result of {call.op.name}", result, _types(let.outs))

    def call(
        self, let: Let, callee: Function, args: Sequence[Atom], extents: Sequence[Extent],
        results: Sequence[Type | None],
    ) -> None:
        _require(len(extents) == len(callee.dims), f"@{callee.name} takes {len(callee.dims)} dims")
        values = dict(zip(callee.dims, extents, strict=True))
        params = _substituted(_types(callee.params), values)
        self.same(f"arguments of @{callee.name}", _types(args), params)
        ends = tuple(dims.substitute(e, values) for e in callee.body.dims)
        _require(len(let.dims) == len(ends), f"@{callee.name} returns {len(ends)} extents")
        self.same(
            f"results of @{callee.name}", _substituted(results, values),
            _substituted(_types(let.outs), dict(zip(let.dims, ends, strict=True))),
        )

    def vjp(self, let: Let, vjp: Vjp) -> None:
        callee = self.callee(vjp.function)
        results = callee.result_types
        _require(
            all(0 <= k < len(results) for k in vjp.seeded)
            and all(0 <= k < len(vjp.args) for k in vjp.wrt),
            "seeded and wrt must be positions",
        )
        _require(len(vjp.seeds) == len(vjp.seeded), "one seed for each seeded result")
        wanted = tuple(callee.params[k].type for k in vjp.wrt)
        self.call(let, callee, vjp.args, vjp.dims, (*results, *wanted))
        values = dict(zip(callee.dims, vjp.dims, strict=True))
        outs = tuple(let.outs[k].type for k in vjp.seeded)
        ends = tuple(dims.substitute(e, values) for e in callee.body.dims)
        self.same("seeds", _substituted(_types(vjp.seeds), dict(zip(let.dims, ends, strict=True))),
                  _substituted(outs, dict(zip(let.dims, ends, strict=True))))

    def jvp(self, let: Let, jvp: Jvp) -> None:
        callee = self.callee(jvp.function)
        results = callee.result_types
        _require(
            all(0 <= k < len(jvp.args) for k in jvp.seeded)
            and all(0 <= k < len(results) for k in jvp.wanted),
            "seeded and wanted must be positions",
        )
        _require(len(jvp.seeds) == len(jvp.seeded), "one seed for each seeded argument")
        wanted = tuple(results[k] for k in jvp.wanted)
        self.call(let, callee, jvp.args, jvp.dims, (*results, *wanted))
        self.same("seeds", _types(jvp.seeds), tuple(jvp.args[k].type for k in jvp.seeded))

    def branches(self, let: Let, node: If) -> None:
        self.condition(node.cond)
        for block in (node.then, node.orelse):
            self.block(block)
            _require(len(block.dims) == len(let.dims), "a branch ends with one extent per symbol")
        results = tuple(_types(block.results) for block in (node.then, node.orelse))
        self.leave(node.then)
        self.leave(node.orelse)
        self.bind_outputs(let)
        for word, block, found in zip(
            ("then", "else"), (node.then, node.orelse), results, strict=True
        ):
            ends = dict(zip(let.dims, block.dims, strict=True))
            self.same(f"results of the {word} branch", found, _substituted(_types(let.outs), ends))

    def condition(self, atom: Atom) -> None:
        ty = atom.type
        _require(
            not self.typed
            or (isinstance(ty, TensorType) and not ty.shape and ty.dtype is types.bool_),
            f"the condition is {ty}, not a bool",
        )

    def loop(self, let: Let, loop: Loop) -> None:
        self.extents(loop.init_dims)
        _require(len(loop.dims) == len(loop.init_dims), "one initial extent per carried symbol")
        self.bind_symbols(loop.dims)
        self.bind(loop.carried)
        carried = _types(loop.carried)
        first = dict(zip(loop.dims, loop.init_dims, strict=True))
        self.same("initial values of the loop", _types(loop.init), _substituted(carried, first))
        self.bounds(loop)
        if loop.test is not None:
            self.block(loop.test)
            _require(loop.test.results, "a test without a condition")
            self.condition(loop.test.results[0])
            self.bind(loop.handed)
            self.same("what the test hands over", _types(loop.test.results[1:]),
                      _types(loop.handed))
            self.leave(loop.test)
        self.block(loop.body)
        results = loop.body.results
        if loop.exits:
            _require(results, "a body without an exit flag")
            self.condition(results[0])
            results = results[1:]
        _require(len(loop.body.dims) == len(loop.dims), "one next extent per carried symbol")
        following = dict(zip(loop.dims, loop.body.dims, strict=True))
        self.same("next values of the loop", _types(results), _substituted(carried, following))
        self.leave(loop.body)
        self.visible.difference_update(walk.block_binders(loop), loop.dims)
        self.bind_outputs(let)
        _require(len(let.dims) == len(loop.dims), "one final extent per carried symbol")
        last = dict(zip(loop.dims, map(dims.of, let.dims), strict=True))
        self.same("outputs of the loop", _types(let.outs), _substituted(carried, last))

    def bounds(self, loop: Loop) -> None:
        if loop.iterable is not None or loop.item is not None:
            _require(not self.typed, "an iterable in a typed program")
            _require(loop.iterable is not None and loop.item is not None, "item without iterable")
            self.bind((loop.item,) if loop.item else ())
        if loop.index is not None:
            self.bind((loop.index,))
            _require(not self.typed or loop.index.type == PY_INT, "the index is not an int")
        if loop.count is not None and self.typed:
            ty = loop.count.type
            _require(
                isinstance(ty, TensorType) and not ty.shape and ty.dtype.is_integer,
                f"the count is {ty}, not an integer",
            )


def _types(atoms: Iterable[Atom]) -> tuple[Type | None, ...]:
    return tuple(a.type for a in atoms)


def _substituted(
    kinds: Iterable[Type | None], values: Mapping[Symbol, Extent]
) -> tuple[Type | None, ...]:
    return tuple(None if ty is None else types.substitute(ty, dict(values)) for ty in kinds)


def _agree(left: Type, right: Type) -> bool:
    """Equal types, where extents are equal by structure or by decision."""
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return left == right
    return (
        left.dtype == right.dtype
        and left.weak == right.weak
        and len(left.shape) == len(right.shape)
        and all(map(dims.equal, left.shape, right.shape))
    )
