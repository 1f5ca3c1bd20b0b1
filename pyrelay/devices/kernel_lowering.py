"""A kernel in, an LLVM module out: numba's typing and lowering without numba's library.

In: a Python function in the kernel language; out: its unoptimised LLVM module.  numba supplies
bytecode analysis, type inference and lowering of control flow; its two contexts are replaced by
ones that know intrinsics and operators only, and its pass manager, wrappers and code libraries,
which cost more than the kernel, are left out.

Accesses of arrays that lie apart carry ``alias.scope`` and ``noalias``. Every loop's back edge
carries ``llvm.loop.parallel_accesses`` (LLVM Language Reference) for the access groups of
``memory_access``'s parallel loads and stores: LLVM vectorises loops over buffers whose addresses
are plain integers, the same buffer read and written included. Loops around other loops leave out
those that are parallel in innermost loops only. Innermost loops over elementary functions carry
``llvm.loop.interleave.count``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from llvmlite import ir as llvm
from numba.core import (
    bytecode,
    compiler,
    cpu,
    errors,
    funcdesc,
    interpreter,
    ir,
    lowering,
    transforms,
    typeinfer,
    types,
    typing,
)
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack

from pyrelay.devices.kernel_language import (
    BOOL,
    EVERY_LOOP,
    INNERMOST_LOOPS,
    LLVM_TYPES,
    WORD,
    Intrinsic,
    access_group,
    alias_scopes,
    distinct_metadata,
)
from pyrelay.devices.kernel_operators import OPERATORS

INTERLEAVED = 2
"""How many vectors a loop over functions whose instructions wait for each other takes at a time."""


class _Typing(typing.context.BaseContext):
    """The typing context that knows the vocabulary above and nothing else."""

    def refresh(self) -> None:
        """There is nothing to load."""

    def resolve_value_type(self, val: Any) -> types.Type:
        if isinstance(val, Intrinsic):
            return val
        kind = type(val)
        if kind is bool:
            return BOOL
        if kind is int:
            return types.int64
        if kind is float:
            return types.float64
        known = OPERATORS.get(val)
        if known is None:
            raise ValueError(f"{val!r} is not part of the kernel language")
        return known

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        known = func if isinstance(func, Intrinsic) else OPERATORS.get(func)
        return None if known is None else known.get_call_type(self, args, kws)


class _CConvention:
    """C's calling convention, of which a kernel needs only its own arguments and result."""

    def get_function_type(self, result: Any, arguments: Sequence[Any]) -> llvm.FunctionType:
        return llvm.FunctionType(WORD, [LLVM_TYPES[types.unliteral(a)] for a in arguments])

    def decorate_function(
        self, function: llvm.Function, names: Sequence[str], types: Any, noalias: bool
    ) -> None:
        for argument, name in zip(function.args, names, strict=True):
            argument.name = name

    def decode_arguments(self, builder: Any, types: Any, function: llvm.Function) -> list[Any]:
        return list(function.args)

    def init_call_helper(self, builder: Any) -> None:
        """A kernel calls nothing by this convention."""

    def return_value(self, builder: llvm.IRBuilder, value: Any) -> None:
        builder.ret(value)


class _Target(cpu.CPUContext):
    """The target context: values, constants and calls of the kernel language."""

    call_conv = _CConvention()

    def init(self) -> None:
        self.is32bit = False
        self._internal_codegen = None  # machine code is not numba's business here

    def refresh(self) -> None:
        """There is nothing to load."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Callable[..., Any]:
        known = fn if isinstance(fn, Intrinsic) else OPERATORS[fn]
        kind = sig.args[0] if sig.args else types.void

        def implementation(builder: llvm.IRBuilder, args: Sequence[Any], loc: Any = None) -> Any:
            value = known.emit(builder, kind, *args)
            return self.get_dummy_value() if value is None else value

        return implementation

    def get_constant_generic(self, builder: Any, ty: types.Type, val: Any) -> Any:
        if isinstance(ty, Intrinsic):
            return self.get_dummy_value()
        return llvm.Constant(LLVM_TYPES[types.unliteral(ty)], val)

    def get_abi_sizeof(self, ty: Any) -> int:
        return 0  # asked for debug information only, which is off

    get_constant = None  # numba's short form without a builder; nothing here uses it

    def cast(self, builder: Any, val: Any, fromty: types.Type, toty: types.Type) -> Any:
        if types.unliteral(fromty) == types.unliteral(toty):
            return val
        raise errors.TypingError(f"a kernel uses a variable as {fromty} and as {toty}")


class _Lower(lowering.Lower):
    """numba's lowering, with every back edge marked as a loop over parallel accesses."""

    def lower(self) -> None:
        self.genlower = None
        self.lower_normal_function(self.fndesc)

    def lower_block(self, block: Any) -> None:
        self._offset = self._offsets[block]
        super().lower_block(block)

    def pre_lower(self) -> None:
        super().pre_lower()
        self._find_arrays()
        self._offsets = {block: offset for offset, block in self.blocks.items()}
        loops = compute_cfg_from_blocks(self.blocks).loops().values()
        around = {other.header for each in loops for other in loops
                  if each is not other and each.header in other.body}  # fmt: skip
        self._innermost = {each.header for each in loops} - around
        self._chained = {
            each.header for each in loops
            if each.header in self._innermost and self._has_chain(each.body)
        }

    def _has_chain(self, offsets: Iterable[int]) -> bool:
        """Whether blocks call a function whose instructions wait for each other."""
        return any(
            getattr(self.typeof(call.func.name), "chained", False)
            for offset in offsets for call in self.blocks[offset].find_exprs("call")
        )

    def _find_arrays(self) -> None:
        """The names of addresses of arrays that lie apart, and what accesses of them carry."""
        self._sources: dict[str, Any] = {}
        for block in self.blocks.values():
            for each in block.find_insts(ir.Assign):
                name = each.target.name
                self._sources[name] = None if name in self._sources else each.value
        origins = {name: self._origin(name) for name in self._sources}
        calls = {
            name: value for name, value in self._sources.items()
            if isinstance(value, ir.Expr) and value.op == "call"
        }
        apart = [
            name for name, value in calls.items()
            if getattr(self.typeof(value.func.name), "apart", False)
        ]
        scopes = alias_scopes(self.module, apart) if len(apart) > 1 else {}
        self._scopes = {name: scopes[o] for name, o in origins.items() if o in scopes}

    def _origin(self, name: str) -> str:
        """The name that one is a copy of."""
        while isinstance(value := self._sources.get(name), ir.Var):
            name = value.name
        return name

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        scope = self._scopes.get(expr.args[0].name) if expr.args else None
        if scope is None:
            return super()._lower_call_normal(fnty, expr, signature)
        block, before = self.builder.block, len(self.builder.block.instructions)
        result = super()._lower_call_normal(fnty, expr, signature)
        for made in block.instructions[before:]:
            if isinstance(made, (llvm.LoadInstr, llvm.StoreInstr)):
                made.set_metadata("alias.scope", scope[0])
                made.set_metadata("noalias", scope[1])
        return result

    def lower_inst(self, inst: Any) -> None:
        super().lower_inst(inst)
        if isinstance(inst, ir.Jump):
            targets: tuple[int, ...] = (inst.target,)
        elif isinstance(inst, ir.Branch):
            targets = (inst.truebr, inst.falsebr)
        else:
            return
        header = min(targets)
        if header <= self._offset:
            groups = [access_group(self.module, EVERY_LOOP)]
            if header in self._innermost:
                groups.append(access_group(self.module, INNERMOST_LOOPS))
            hints = [self.module.add_metadata(["llvm.loop.parallel_accesses", *groups])]
            if header in self._chained:
                count = llvm.Constant(llvm.IntType(32), INTERLEAVED)
                hints.append(
                    self.module.add_metadata(["llvm.loop.interleave.count", count])
                )
            loop = distinct_metadata(self.module)
            loop.operands = (loop, *hints)
            self.builder.block.terminator.set_metadata("llvm.loop", loop)


class _Interpreter(interpreter.Interpreter):
    """numba's reading of bytecode without its repairs of what the kernel language does not have:
    `try`, `with`, calls with stars and displays of dicts."""

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        return func_ir


_NOTHING: AbstractContextManager[None] = nullcontext()


class _NoWarnings:
    """What type inference reports to; it has nothing to warn of in the kernel language."""

    def catch_warnings(
        self, filename: Any = None, lineno: Any = None
    ) -> AbstractContextManager[None]:
        return _NOTHING


def _numba_ir(kernel: Callable[..., int]) -> Any:
    """A kernel in numba's representation."""
    identity = bytecode.FunctionIdentity.from_function(kernel)
    made = _Interpreter(identity).interpret(bytecode.ByteCode(func_id=identity))
    made.blocks = transforms.canonicalize_cfg(made.blocks)
    return made


def _typed(vocabulary: _Typing, func_ir: Any, kinds: Sequence[types.Type], result: types.Type
           ) -> tuple[Any, Any]:
    """The types of a kernel's variables and the signatures of its calls."""
    inference = typeinfer.TypeInferer(vocabulary, func_ir, _NoWarnings())
    for index, (name, kind) in enumerate(zip(func_ir.arg_names, kinds, strict=True)):
        inference.seed_argument(name, index, kind)
    inference.seed_return(result)
    inference.build_constraint()
    inference.propagate()
    variables, _, calls = inference.unify()
    return variables, calls


class _Library:
    """What numba's lowering wants of a code library: somewhere to put the module."""

    def __init__(self, name: str, triple: str, data_layout: str) -> None:
        self.name, self._triple, self._data_layout = name, triple, data_layout

    def create_ir_module(self, name: str) -> llvm.Module:
        module = llvm.Module(self.name)
        module.triple, module.data_layout = self._triple, self._data_layout
        return module


_contexts: tuple[_Typing, _Target] | None = None


def _shared_contexts() -> tuple[_Typing, _Target]:
    global _contexts
    if _contexts is None:
        vocabulary = _Typing()
        _contexts = vocabulary, _Target(vocabulary)
    return _contexts


def _flags() -> compiler.Flags:
    flags = compiler.Flags()
    flags.error_model = "numpy"
    flags.enable_pyobject = False
    flags.nrt = False
    return flags


def lower_kernel(
    kernel: Callable[..., int], symbol: str, triple: str, data_layout: str,
    kinds: Sequence[types.Type] = (types.int64,) * 3,
) -> llvm.Module:
    """The LLVM module of ``kernel(block, begin, end)``, all ``int64``, result included.

    ``kinds`` are the types of another function's parameters. The module defines ``symbol`` with C's
    calling convention around the kernel, unoptimised. Raises numba's ``TypingError`` where the
    kernel is not in the kernel language.
    """
    word = types.int64
    flags = _flags()
    with global_compiler_lock:
        vocabulary, target = _shared_contexts()
        func_ir = _numba_ir(kernel)
        variables, calls = _typed(vocabulary, func_ir, kinds, word)
        described = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            func_ir, variables, word, calls, mangler=lambda *_, **__: symbol, inline=False,
            noalias=False, abi_tags=(),
        )  # fmt: skip
        with ConfigStack().enter(flags):
            library = _Library(symbol, triple, data_layout)
            lower = _Lower(target, library, described, func_ir, metadata={})
            lower.lower()
    return lower.module
