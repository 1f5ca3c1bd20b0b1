"""A kernel in, an LLVM module out.

In: a Python function in the kernel language, as its syntax tree, and what the names of its text
stand for; out: its unoptimised LLVM module, in one walk over the tree. Every expression is typed as
it is written: names are assigned above where they are used.

Accesses of arrays that lie apart carry ``alias.scope`` and ``noalias``; a look for Ctrl-C says that
it touches none of them, so that what rounds of a loop hand on stays in registers. Every loop's back
edge carries ``llvm.loop.parallel_accesses`` (LLVM Language Reference) for the access groups of
``memory_access``'s parallel loads and stores: LLVM vectorises loops over buffers whose addresses
are plain integers, the same buffer read and written included. Loops around other loops leave out
those that are parallel in innermost loops only. Innermost loops over elementary functions carry
``llvm.loop.interleave.count``. Where sums of floats one after the other and vectors take turns in a
loop, the function has vectors of 256 bits: while wider ones go by, Intel's processors take twice as
long for an addition that waits for the one before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler import rooms
from pyrelay.devices.compiler.kernel_language import (
    BIT,
    BOOL,
    EVERY_LOOP,
    INNERMOST_LOOPS,
    INTEGERS,
    LLVM_TYPES,
    WORD,
    Intrinsic,
    KernelError,
    access_group,
    alias_scopes,
    all_scopes,
)
from pyrelay.devices.compiler.kernel_names import values_alone
from pyrelay.devices.compiler.kernel_operators import (
    BINARY,
    COMPARED,
    UNARY,
    emit_truth,
    inverse_of,
    truth,
)
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.compiler.lookups import looks_up_short
from pyrelay.devices.compiler.strides import strides
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.python_trees import nodes
from pyrelay.records import dataclass

_FLOATS = (types.Float, types.Complex)

MOST_SUMS = 3
"""How many sums of floats a round may add to, if their additions wait for each other."""

INTERLEAVED = 2
"""How many vectors a loop over functions whose instructions wait for each other takes at a time."""

INTERLEAVED_ALONE = 4
"""The same of a loop over one such function that is in no other loop, with 32 registers. More in
flight fill what processors look ahead; a short row would be rests."""

Value = tuple[Any, types.Type]
"""An LLVM value and its type in the kernel language."""


@dataclass(slots=True)
class _Loop:
    """A loop being written: where `continue` and `break` go, whether any goes there, whether no
    loop is inside, how many functions it calls whose instructions wait for each other, how many
    vectors its rounds are the lanes of, if they are, and whether they are never lanes. `looks_up`:
    whether its rounds look up short numbers at places that they have read. `sums`: the floats that
    its rounds add to one after the other; `beside`: whether loops right inside of it are such sums,
    True, or may become vectors, False."""

    again: llvm.Block
    out: llvm.Block
    repeats: bool = False
    ends: bool = False
    innermost: bool = True
    chained: int = 0
    vectors: int | None = None
    one_by_one: bool = False
    looks_up: bool = False
    sums: set[str] = field(default_factory=set)
    beside: set[bool] = field(default_factory=set)


def lower_kernel(
    definition: ast.FunctionDef, names: Mapping[str, Any], symbol: str, triple: str,
    data_layout: str, kinds: Sequence[types.Type] = (types.int64,) * 3,
) -> llvm.Module:
    """The LLVM module of ``kernel(block, begin, end)``, all ``int64``, result included.

    ``names``: what the text defines and imports. ``kinds``: the types of another function's
    parameters. The module defines ``symbol`` with C's calling convention, unoptimised. Raises
    ``KernelError`` where the function is not in the kernel language.
    """
    module = llvm.Module(triple, data_layout)
    written = _Lowering(module, definition, names, symbol, kinds)
    try:
        written.lower()
    except TypeError as error:
        error.add_note(f"in line {written.line} of the kernel's text")
        raise
    return module


class _Lowering:
    """Writes one function."""

    def __init__(
        self, module: llvm.Module, definition: ast.FunctionDef, names: Mapping[str, Any],
        symbol: str, kinds: Sequence[types.Type],
    ) -> None:
        self.module, self.definition, self.names = module, definition, names
        kind = llvm.FunctionType(WORD, [LLVM_TYPES[each] for each in kinds])
        self.function = llvm.Function(module, kind, symbol)
        self.kinds = kinds
        self.b = IRBuilder()
        self.alone = values_alone(definition)
        self.every = nodes(definition)
        self.divisors = self._divisors()
        self.strides = strides(self.every, names) if definition.name == "kernel" else {}
        self.inverses: dict[str, tuple[Any, Any]] = {}
        self.values: dict[str, Value] = {}
        self.variables: dict[str, Value] = {}
        self.loops: list[_Loop] = []
        self.lanes = self.mixed = False
        self.line = definition.lineno
        self.scopes: dict[str, tuple[Any, Any]] = {}

    def lower(self) -> None:
        """Write the function."""
        self.scopes = self._scopes()
        self.entry = self.function.append_basic_block("entry")
        first = self._block("begin")
        self._begin(first)
        params = self.definition.args.args
        if len(params) != len(self.kinds):
            raise KernelError(f"{self.definition.name} takes {len(params)} parameters")
        for argument, param, kind in zip(self.function.args, params, self.kinds, strict=True):
            self._bind(param.arg, (argument, kind))
        self._suite(self.definition.body)
        if not self.b.block.is_terminated:
            raise KernelError(f"{self.definition.name} ends without return")
        if self.mixed and not self.lanes and not self.names.get("BY_HAND"):
            self.function.attributes.add('"prefer-vector-width"="256"')
        self.b.position_at_end(self.entry)
        rooms.held(self.b, self.function, first)

    # -- arrays that lie apart ---------------------------------------------------------------------

    def _scopes(self) -> dict[str, tuple[Any, Any]]:
        """What accesses through a name carry, for names of arrays that lie apart."""
        sources: dict[str, list[ast.expr]] = {}
        for each in self.every:
            if isinstance(each, ast.Assign):
                self.line = each.lineno
                for target in each.targets:
                    for name, value in _pairs(target, each.value):
                        sources.setdefault(name, []).append(value)
        # Arrays whose addresses one name may hold are one, as far as is known.
        same = {name: {name} for name in sources}
        for name, values in sources.items():
            for value in values:
                if isinstance(value, ast.Name) and value.id in same:
                    both = same[name] | same[value.id]
                    same.update(dict.fromkeys(both, both))
        apart: list[set[str]] = []
        for names in {id(each): each for each in same.values()}.values():
            origins = [v for name in names for v in sources[name] if not isinstance(v, ast.Name)]
            if origins and all(map(self._is_apart, origins)):
                apart.append(names)
        scopes = alias_scopes(self.module, [min(names) for names in apart])
        return {name: scopes[min(names)] for names in apart for name in names}

    def _is_apart(self, value: ast.expr) -> bool:
        """Whether an expression gives the address of an array that lies apart."""
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
            return False
        known = self.names.get(value.func.id)
        return isinstance(known, Intrinsic) and known.apart

    def _divisors(self) -> frozenset[str]:
        """The names that something is divided by."""
        calls = (each for each in self.every if isinstance(each, ast.Call))
        return frozenset(
            call.args[1].id for call in calls
            if isinstance(call.func, ast.Name) and len(call.args) == 2
            and isinstance(call.args[1], ast.Name)
            and getattr(self.names.get(call.func.id), "inverted", None) is not None
        )

    # -- blocks ------------------------------------------------------------------------------------

    def _block(self, name: str) -> llvm.Block:
        """A block, for `_begin` to place where it belongs in the text."""
        return llvm.Block(self.function, name)

    def _begin(self, block: llvm.Block) -> None:
        self.function.blocks.append(block)
        self.b.position_at_end(block)

    def _go(self, block: llvm.Block) -> bool:
        """Go on at a block, unless the text has gone elsewhere; whether it does."""
        if self.b.block.is_terminated:
            return False
        self.b.branch(block)
        return True

    # -- statements --------------------------------------------------------------------------------

    def _suite(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.b.block.is_terminated:
                return
            self.line = statement.lineno
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                left, right = self._read(name), self._value(value)
                self._bind(name, self._apply(BINARY.get(type(op)), op, left, right))
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.If():
                self._if(statement)
            case ast.For(orelse=[]):
                self._for(statement)
            case ast.While(orelse=[]):
                self._while(statement)
            case ast.Break() if self.loops:
                self.loops[-1].ends = self._go(self.loops[-1].out)
            case ast.Continue() if self.loops:
                self.loops[-1].repeats = self._go(self.loops[-1].again)
            case ast.Return(value=ast.expr() as value):
                result, kind = self._value(value)
                if kind is not types.int64:
                    raise KernelError(f"a kernel returns {kind}")
                self.b.ret(result)
            case _:
                raise KernelError(f"{ast.unparse(statement)!r} is no statement of kernels")

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        pairs = [pair for target in targets for pair in _pairs(target, value)]
        found = [(name, part, self._value(part)) for name, part in pairs]
        for name, part, made in found:
            if self.loops and isinstance(made[1], _FLOATS) and _adds_to(name, part):
                self.loops[-1].sums.add(name)
            self._bind(name, made)

    def _bind(self, name: str, value: Value) -> None:
        made, kind = value
        if kind not in LLVM_TYPES:
            raise KernelError(f"{name!r} cannot be {kind}")
        if name in self.alone:
            self.values[name] = value
            if name in self.divisors and not self.loops and kind in INTEGERS:
                self.inverses[name] = inverse_of(self.b, kind, made)
            return
        if name not in self.variables:
            with self.b.goto_block(self.entry):
                place = self.b.alloca(LLVM_TYPES[kind])
                self.b.store(llvm.Constant(LLVM_TYPES[kind], None), place)
            self.variables[name] = place, kind
        place, known = self.variables[name]
        if known is not kind:
            raise KernelError(f"a kernel uses {name!r} as {known} and as {kind}")
        self.b.store(made, place)

    def _if(self, statement: ast.If) -> None:
        then, after = self._block("then"), self._block("after")
        orelse = self._block("else") if statement.orelse else after
        self._branch(statement.test, then, orelse)
        goes_on = not statement.orelse
        for block, body in ((then, statement.body), (orelse, statement.orelse)):
            if body:
                self._begin(block)
                self._suite(body)
                goes_on |= self._go(after)
        if goes_on:
            self._begin(after)

    # -- loops -------------------------------------------------------------------------------------

    def _for(self, statement: ast.For) -> None:
        vectors = self._vectors(statement.iter)
        start, stop, step = self._range(statement.iter)
        before, header, body = self.b.block, self._block("for"), self._block("body")
        self.b.branch(header)
        self._begin(header)
        index = self.b.phi(WORD)
        index.add_incoming(start, before)
        loop = _Loop(self._block("next"), self._block("after"), ends=True, vectors=vectors)
        loop.one_by_one = any(isinstance(each, ast.Return) for each in nodes(statement))
        self.b.cbranch(self._is_inside(index, stop, step), body, loop.out)
        self._begin(body)
        if not isinstance(statement.target, ast.Name):
            raise KernelError("a loop has one index")
        self._bind(statement.target.id, (index, types.int64))

        def following() -> None:
            # Not "nsw": the index after the last may overflow, and is never used.
            index.add_incoming(self.b.add(index, step), self.b.block)

        self._rounds(statement.body, header, loop, following)

    def _vectors(self, call: ast.expr) -> int | None:
        """How many vectors a loop over lanes goes through."""
        match call:
            case ast.Call(func=ast.Name(id="lanes"), args=[
                ast.Constant(value=int(count)), ast.Constant(value=int(size)),
            ]):  # fmt: skip
                return max(count // (native_vector_bits() // 8 // size), 1)
        return None

    def _range(self, call: ast.expr) -> tuple[Any, Any, Any]:
        match call:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if (
                "range" not in self.names and 1 <= len(args) <= 3
            ):
                bounds = [self._value(arg) for arg in args]
            case ast.Call(func=ast.Name(id="lanes"), args=[ast.Constant() as count, _]):
                bounds = [self._value(count)]
            case _:
                raise KernelError(f"a loop is over a range, not {ast.unparse(call)!r}")
        if any(kind is not types.int64 for _, kind in bounds):
            raise KernelError("the bounds of a range are int64")
        zero, one = llvm.Constant(WORD, 0), llvm.Constant(WORD, 1)
        found = [value for value, _ in bounds]
        start, stop, step = {1: (zero, *found, one), 2: (*found, one), 3: found}[len(found)]
        return start, stop, step

    def _is_inside(self, index: Any, stop: Any, step: Any) -> Any:
        if isinstance(step, llvm.Constant):
            return self.b.icmp_signed("<" if step.constant > 0 else ">", index, stop)
        upward = self.b.icmp_signed(">", step, llvm.Constant(WORD, 0))
        below, above = (self.b.icmp_signed(sign, index, stop) for sign in "<>")
        return self.b.select(upward, below, above)

    def _while(self, statement: ast.While) -> None:
        header = self._block("while")
        loop = _Loop(self._block("next"), self._block("after"), one_by_one=True)
        self.b.branch(header)
        self._begin(header)
        endless = isinstance(statement.test, ast.Constant) and statement.test.value is True
        if not endless:
            body = self._block("body")
            self._branch(statement.test, body, loop.out)
            loop.ends = True
            self._begin(body)
        self._rounds(statement.body, header, loop, lambda: None)

    def _rounds(
        self, body: Sequence[ast.stmt], header: llvm.Block, loop: _Loop,
        following: Callable[[], None],
    ) -> None:
        """The body of a loop and its back edge."""
        if self.loops:
            self.loops[-1].innermost = False
        self.loops.append(loop)
        self._suite(body)
        self.loops.pop()
        loop.looks_up = loop.innermost and looks_up_short(body)
        self._note(loop)
        if self._go(loop.again) or loop.repeats:
            self._begin(loop.again)
            following()
            self.b.branch(header).set_metadata("llvm.loop", self._hints(loop))
        if loop.ends:
            self._begin(loop.out)

    def _note(self, loop: _Loop) -> None:
        """Say of the loop around whether sums and vectors take turns in it."""
        self.lanes |= loop.vectors is not None
        if loop.innermost and self.loops and not loop.one_by_one:
            around = self.loops[-1].beside
            if len(loop.sums) <= MOST_SUMS:
                around.add(bool(loop.sums))
            self.mixed |= len(around) == 2

    def _hints(self, loop: _Loop) -> Any:
        """What LLVM is told of a loop."""
        groups = [access_group(self.module, EVERY_LOOP)]
        if loop.innermost:
            groups.append(access_group(self.module, INNERMOST_LOOPS))
        hints = [
            self.module.add_metadata(["llvm.loop.parallel_accesses", *groups]),
            # Where two checks of one index are seldom true, LLVM would compare their bounds in
            # front of a copy of the loop: in a body of many such loops it takes minutes over that,
            # and `lower/passes/loop_versions` has taken checks out already.
            self.module.add_metadata(["llvm.loop.unswitch.injection.disable"]),
        ]
        if loop.looks_up:
            never = llvm.Constant(BIT, False)
            hints.append(self.module.add_metadata(["llvm.loop.vectorize.enable", never]))
        interleaved = loop.vectors
        if interleaved is not None:  # written out before it is vectors, it would be as many numbers
            hints.append(self.module.add_metadata(["llvm.loop.unroll.disable"]))
        elif loop.innermost and loop.chained:
            alone = loop.chained == 1 and not self.loops and native_vector_bits() == 512
            interleaved = INTERLEAVED_ALONE if alone else INTERLEAVED
        if interleaved is not None:
            count = llvm.Constant(llvm.IntType(32), interleaved)
            hints.append(self.module.add_metadata(["llvm.loop.interleave.count", count]))
        told = self.module.distinct_metadata()
        told.operands = (told, *hints)
        return told

    # -- expressions -------------------------------------------------------------------------------

    def _branch(self, test: ast.expr, yes: llvm.Block, no: llvm.Block) -> None:
        """Go to one block or the other."""
        match test:
            case ast.BoolOp(op=op, values=values):
                for each in values[:-1]:
                    more = self._block("and" if isinstance(op, ast.And) else "or")
                    self._branch(each, *((more, no) if isinstance(op, ast.And) else (yes, more)))
                    self._begin(more)
                self._branch(values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._branch(operand, no, yes)
            case _:
                self.b.cbranch(self._truth(self._value(test)), yes, no)

    def _truth(self, value: Value) -> Any:
        made, kind = value
        truth.result((kind,))
        return emit_truth(self.b, kind, made)

    def _value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        match node:
            case ast.Constant(value=value):
                return _constant(value)
            case ast.Name(id=name):
                return self._read(name)
            case ast.Call():
                return self._call(node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return _constant(-value)
            case ast.UnaryOp(op=op, operand=operand):
                return self._apply(UNARY.get(type(op)), op, self._value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                operands = self._value(left), self._value(right)
                if node in self.strides:
                    operands = self._strided(node, *operands)
                return self._apply(BINARY.get(type(op)), op, *operands)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                operands = self._value(left), self._value(right)
                return self._apply(COMPARED.get(type(op)), op, *operands)
            case ast.BoolOp(op=op, values=[*most, last]):
                return self._short_cut(isinstance(op, ast.And), most, last)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(test, body, orelse)
        raise KernelError(f"{ast.unparse(node)!r} is no expression of kernels")

    def _strided(self, node: ast.BinOp, left: Value, right: Value) -> tuple[Value, Value]:
        """The sides of a product whose stride LLVM must not guess: zero is added to it, of which
        LLVM only knows that it is the sign of where the kernel begins."""
        with self.b.goto_block(self.entry):
            zero = self.b.lshr(self.function.args[1], llvm.Constant(WORD, 63))
        if self.strides[node] is node.left:
            return (self.b.add(left[0], zero), types.int64), right
        return left, (self.b.add(right[0], zero), types.int64)

    def _read(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        if name in self.variables:
            place, kind = self.variables[name]
            return self.b.load(place, typ=LLVM_TYPES[kind]), kind
        if name in self.names:
            return _constant(self.names[name])
        raise KernelError(f"{name!r} is not known here")

    def _call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        known = truth if name == "bool" else self.names.get(name)
        if not isinstance(known, Intrinsic) or node.keywords:
            raise KernelError(f"{ast.unparse(node)!r} is no call of a function of kernels")
        given = [self._value(arg) for arg in node.args]
        if known.chained and self.loops:
            self.loops[-1].chained += 1
        block, before = self.b.block, len(self.b.block.instructions)
        if known.inverted is not None and self.loops and isinstance(node.args[-1], ast.Name):
            inverse = self.inverses.get(node.args[-1].id)
            if inverse is not None:
                kind = known.result(tuple(kind for _, kind in given))
                values = (value for value, _ in given)
                return known.inverted(self.b, kind, *values, *inverse), kind
        result = self._apply(known, None, *given)
        if known.aside and self.scopes:
            everywhere = self.module.add_metadata(all_scopes(self.scopes.values()))
            for made in block.instructions[before:]:
                if isinstance(made, (llvm.LoadInstr, llvm.CallInstr)):
                    made.set_metadata("noalias", everywhere)
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Name) and (scope := self.scopes.get(first.id)) is not None:
            for made in block.instructions[before:]:
                if isinstance(made, (llvm.LoadInstr, llvm.StoreInstr)):
                    made.set_metadata("alias.scope", scope[0])
                    made.set_metadata("noalias", scope[1])
        return result

    def _apply(self, known: Intrinsic | None, op: ast.AST | None, *given: Value) -> Value:
        if known is None:
            raise KernelError(f"{type(op).__name__} is no operator of kernels")
        kinds = tuple(kind for _, kind in given)
        result = known.result(kinds)
        first = kinds[0] if kinds else types.void
        one_by_one = not self.loops or self.loops[-1].one_by_one
        emit = known.predicted if one_by_one else known.emit
        if self.names.get("BY_HAND"):
            emit = known.called
        return emit(self.b, first, *(value for value, _ in given)), result

    def _short_cut(self, wants_all: bool, most: Sequence[ast.expr], last: ast.expr) -> Value:
        """`and` and `or`: the first value that decides."""
        after = self._block("after")
        arms: list[tuple[Value, llvm.Block]] = []
        for each in most:
            value, more = self._value(each), self._block("and" if wants_all else "or")
            arms.append((value, self.b.block))
            self.b.cbranch(self._truth(value), *((more, after) if wants_all else (after, more)))
            self._begin(more)
        arms.append((self._value(last), self.b.block))
        return self._joined(arms, after)

    def _choice(self, test: ast.expr, *values: ast.expr) -> Value:
        blocks, after = (self._block("then"), self._block("else")), self._block("after")
        self._branch(test, *blocks)
        arms = []
        for block, each in zip(blocks, values, strict=True):
            self._begin(block)
            value = self._value(each)
            arms.append((value, self.b.block))
            if block is blocks[0]:
                self.b.branch(after)
        return self._joined(arms, after)

    def _joined(self, arms: Sequence[tuple[Value, llvm.Block]], after: llvm.Block) -> Value:
        """The value of the way that was taken; the last one is at hand."""
        self.b.branch(after)
        self._begin(after)
        kinds = {kind for (_, kind), _ in arms}
        if len(kinds) > 1 or not kinds <= set(LLVM_TYPES):
            raise KernelError(f"a value is {' or '.join(sorted(map(str, kinds)))}")
        kind = kinds.pop()
        found = self.b.phi(LLVM_TYPES[kind])
        for (value, _), block in arms:
            found.add_incoming(value, block)
        return found, kind


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """The names that an assignment binds, and to what."""
    match target, value:
        case ast.Name(id=name), _:
            return [(name, value)]
        case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
            return [p for n, v in zip(names, parts, strict=True) for p in _pairs(n, v)]
    raise KernelError(f"{ast.unparse(target)!r} cannot be assigned {ast.unparse(value)!r}")


def _adds_to(name: str, value: ast.expr) -> bool:
    """Whether what a name is given is computed with what it was."""
    return isinstance(value, ast.BinOp) and any(
        isinstance(each, ast.Name) and each.id == name for each in nodes(value)
    )


def _constant(value: Any) -> Value:
    kind = type(value)
    if kind is bool:
        return llvm.Constant(BIT, value), BOOL
    if kind is int:
        return llvm.Constant(WORD, value), types.int64
    if kind is float:
        return llvm.Constant(LLVM_TYPES[types.float64], value), types.float64
    raise KernelError(f"{value!r} is not part of the kernel language")
