"""Functions that a loop's vectors compute otherwise than it says, and that yet become vector code.

In: what vectors compute and what one number does. Out: a call in a kernel, and afterwards, as a
module of their own, the functions that it calls.

A kernel calls a function that LLVM knows vectors of (``vector-function-abi-variant``, LLVM Language
Reference): its vectoriser puts a call of one number of lanes in place of so many calls. What is
called is added when loops are vectors, and put in line.

* Functions of floats that have a quick way for most: a loop whose body has branches is no vector
  code, and to choose between both ways computes both. Vectors take the quick way, and behind a
  branch that asks whether any lane is beyond it a call of what takes these one by one. One number
  takes the same ways, so that results do not depend on where it lies in an array.
* Operations for which processors have an instruction, and none of vectors (`word_arithmetic`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import WORD
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.routines.lanes import Lane
from pyrelay.records import dataclass

PREFIX = "pyrelay_vector_"
"""How the names of these functions begin."""

_WIDTHS = (2, 4, 8, 16)
"""Lanes of the vectors that there are functions for: of a half to a whole register."""

_F32 = llvm.FloatType()
_PURE = ("nounwind", "willreturn", "memory(none)")
_RARE = (1, 2000)
"""How often a lane is beyond the bound, as weights of a branch."""

_KNOWN: dict[str, VectorCall] = {}


@dataclass(frozen=True)
class VectorCall(ABC):
    """A function of some numbers of a type, that its result has too."""

    name: str
    kind: llvm.Type
    count: int

    def called(self, b: IRBuilder, *given: llvm.Value) -> llvm.Value:
        """The value at some numbers."""
        callee = b.module.globals.get(self.name)
        if callee is None:
            each = "v" * self.count
            variants = [f"_ZGV_LLVM_N{n}{each}_{self.name}({self.name}_{n})" for n in _WIDTHS]
            callee = self.declared(b.module, 0)
            callee.attributes.add(f'"vector-function-abi-variant"="{",".join(variants)}"')
            _keep(b.module, [self.declared(b.module, n) for n in _WIDTHS])
        return b.call(callee, given)

    def declared(self, module: llvm.Module, width: int) -> llvm.Function:
        """The function of so many lanes, of one number where that is 0, without a body."""
        name = f"{self.name}_{width}" if width else self.name
        return _declared(module, name, self.of(width), self.count)

    def of(self, width: int) -> llvm.Type:
        """The type of so many numbers, of one where that is 0."""
        return llvm.VectorType(self.kind, width) if width else self.kind

    @abstractmethod
    def write(self, module: llvm.Module, width: int) -> None:
        """The function of so many lanes, of one number where that is 0."""


@dataclass(frozen=True)
class BoundedCall(VectorCall):
    """A function of numbers: `slow` where they are `beyond` what is right for `quick`, else that.
    plain: whether one number is taken slowly at once, to the same result."""

    quick: Callable[..., Lane]
    slow: Callable[..., Lane]
    beyond: Callable[..., Lane]
    plain: bool = False

    def __call__(self, *given: Lane) -> Lane:
        """The value at one number, or at two."""
        b = given[0].b
        return Lane(b, self.called(b, *(each.v for each in given)))

    def write(self, module: llvm.Module, width: int) -> None:
        kind, function = self.of(width), self.declared(module, width)
        function.attributes.add("alwaysinline")
        b = IRBuilder(function.append_basic_block("entry"))
        given = [Lane(b, each) for each in function.args]
        if self.plain and not width:
            b.ret(self.slow(*given).v)
            return
        quick, far = self.quick(*given), self.beyond(*given)
        beyond, end = (function.append_basic_block(each) for each in ("beyond", "end"))
        before = b.block
        weights = [llvm.Constant(llvm.IntType(32), each) for each in _RARE]
        way = b.cbranch(_any(far).v, beyond, end)
        way.set_metadata("prof", module.add_metadata(["branch_weights", *weights]))
        b.position_at_end(beyond)
        slow: llvm.Value = b.call(self._far(module, width), function.args)
        if width:
            slow = b.select(far.v, slow, quick.v)
        b.branch(end)
        b.position_at_end(end)
        value = b.phi(kind)
        value.add_incoming(quick.v, before)
        value.add_incoming(slow, beyond)
        b.ret(value)

    def _far(self, module: llvm.Module, width: int) -> llvm.Function:
        """A function of so many lanes that takes the slow way, number by number."""
        name = f"{self.name}_far_{width}" if width else f"{self.name}_far"
        known: llvm.Function | None = module.globals.get(name)
        if known is not None:
            return known
        kind = self.of(width)
        function = _declared(module, name, kind, self.count)
        for each in ("noinline", "cold"):
            function.attributes.add(each)
        b = IRBuilder(function.append_basic_block("entry"))
        if not width:
            b.ret(self.slow(*(Lane(b, each) for each in function.args)).v)
            return function
        one = self._far(module, 0)
        found: llvm.Value = llvm.Constant(kind, None)
        for lane in range(width):
            place = llvm.Constant(WORD, lane)
            value = b.call(one, [b.extract_element(each, place) for each in function.args])
            found = b.insert_element(found, value, place)
        b.ret(found)
        return function


def vector_call(
    name: str, quick: Callable[..., Lane], slow: Callable[..., Lane], beyond: Callable[..., Lane],
    kind: llvm.Type = _F32, count: int = 1, plain: bool = False,
) -> BoundedCall:
    """Such a function of so many numbers of a type, which `definitions` knows by its name."""
    made = BoundedCall(f"{PREFIX}{name}", kind, count, quick, slow, beyond, plain)
    noted(made)
    return made


def noted(call: VectorCall) -> None:
    """From now on `definitions` knows a function by its name."""
    _KNOWN[call.name] = call


def _declared(module: llvm.Module, name: str, kind: llvm.Type, count: int) -> llvm.Function:
    function = llvm.Function(module, llvm.FunctionType(kind, [kind] * count), name)
    for each in _PURE:
        function.attributes.add(each)
    return function


def _keep(module: llvm.Module, functions: list[llvm.Function]) -> None:
    """LLVM leaves out what nothing calls, unless it is told that something unseen does."""
    name = "llvm.compiler.used"
    kept = module.globals.get(name)
    before = [] if kept is None else list(kept.initializer.constant)
    every = before + functions
    kept = llvm.GlobalVariable(module, llvm.ArrayType(functions[0].type, len(every)), name)
    kept.linkage, kept.section = "appending", "llvm.metadata"
    kept.initializer = llvm.Constant(kept.kind, every)


def _any(bits: Lane) -> Lane:
    """Whether one of these bits is set."""
    kind = bits.v.type
    if not isinstance(kind, llvm.VectorType):
        return bits
    signature = llvm.FunctionType(kind.element, [kind])
    function = bits.b.module.declare_intrinsic("llvm.vector.reduce.or", [kind], signature)
    return Lane(bits.b, bits.b.call(function, [bits.v]))


def definitions(text: str, triple: str, data_layout: str) -> tuple[str, list[str]]:
    """What a module with this text calls of such functions: a module that defines them, and the
    names of all that it defines."""
    wanted = sorted({*re.findall(rf"call [^\n]*@({PREFIX}\w+)\(", text)})
    module = llvm.Module(triple, data_layout)
    for name in wanted:
        stem, _, width = name.rpartition("_")
        call = _KNOWN.get(name)
        if call is not None:
            call.write(module, 0)
        else:
            _KNOWN[stem].write(module, int(width))
    defined = [each.name for each in module.functions if not each.is_declaration]
    return str(module), defined
