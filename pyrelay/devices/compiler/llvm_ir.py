"""Programs for LLVM, written as text.

In: calls of an `IRBuilder`'s methods. Out: `str(module)`, LLVM's assembly (LLVM Language
Reference).

The names are those of llvmlite's `ir`, and so is what they mean. An instruction is text from the
start here, where llvmlite keeps objects that name and format each other: a program is written and
printed in less than half of the time, which first calls wait for (decision 0120).

Equal types are one object. Pointers know what they point at, so that loads and calls need not be
told; LLVM is not told at all.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

# -- types -----------------------------------------------------------------------------------------


class _OneOfEach(type):
    """Types that are made of the same things are one object."""

    _known: dict[Any, Any] = {}  # noqa: RUF012 -- of all types

    def __call__(cls, *given: Any) -> Any:
        key = (cls, *(tuple(each) if isinstance(each, list) else each for each in given))
        found = cls._known.get(key)
        if found is None:
            found = cls._known.setdefault(key, super().__call__(*given))
        return found


class Type(metaclass=_OneOfEach):
    """A type; `text` is how LLVM writes it, `intrinsic_name` how names of its functions do.

    Called with a number, it is a constant.
    """

    text: str
    intrinsic_name: str

    def __str__(self) -> str:
        return self.text

    def __call__(self, value: Any) -> Constant:
        return Constant(self, value)

    def as_pointer(self) -> PointerType:
        """The type of pointers to values of this type."""
        return PointerType(self)

    def constant_text(self, value: Any) -> str:
        """How LLVM writes a constant. Raises TypeError where there is none of this type."""
        raise TypeError(f"LLVM has no constant {value!r} of {self}")


class VoidType(Type):
    """No value."""

    text = intrinsic_name = "void"


class IntType(Type):
    """Integers, signed or not, of `width` bits."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.text = self.intrinsic_name = f"i{width}"

    def constant_text(self, value: Any) -> str:
        """In decimal digits."""
        return str(int(value or 0))


class _FloatingType(Type):
    _packed = "d"

    def constant_text(self, value: Any) -> str:
        """The bits of the float64 that it is, or is rounded to."""
        number = 0.0 if value is None else float(value)
        try:
            (number,) = struct.unpack(self._packed, struct.pack(self._packed, number))
        except OverflowError:
            number = math.copysign(math.inf, number)
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016x}"


class HalfType(_FloatingType):
    """float16."""

    text, intrinsic_name, _packed = "half", "f16", "e"


class FloatType(_FloatingType):
    """float32."""

    text, intrinsic_name, _packed = "float", "f32", "f"


class DoubleType(_FloatingType):
    """float64."""

    text, intrinsic_name = "double", "f64"


class PointerType(Type):
    """Addresses of values of the type `pointee`."""

    text, intrinsic_name = "ptr", "p0"

    def __init__(self, pointee: Type) -> None:
        self.pointee = pointee

    def constant_text(self, value: Any) -> str:
        """Nowhere is the only one."""
        return "null" if value is None else super().constant_text(value)


class _ManyType(Type):
    """Several values: `parts` are their types."""

    _ends = "<>"
    parts: Sequence[Type]

    def constant_text(self, value: Any) -> str:
        """Each part, or one number for all."""
        if value is None:
            return "zeroinitializer"
        if isinstance(value, bytes | bytearray):
            return 'c"' + "".join(f"\\{byte:02x}" for byte in value) + '"'
        parts = value if isinstance(value, list | tuple) else [value] * len(self.parts)
        texts = (
            part.typed if isinstance(part, Value) else f"{kind.text} {kind.constant_text(part)}"
            for kind, part in zip(self.parts, parts, strict=True)
        )
        return self._ends[0] + ", ".join(texts) + self._ends[1]


class VectorType(_ManyType):
    """Registers of `count` numbers of the type `element`."""

    def __init__(self, element: Type, count: int) -> None:
        self.element, self.count, self.parts = element, count, [element] * count
        self.text = f"<{count} x {element.text}>"
        self.intrinsic_name = f"v{count}{element.intrinsic_name}"


class ArrayType(_ManyType):
    """Memory of `count` values of the type `element`."""

    _ends = "[]"

    def __init__(self, element: Type, count: int) -> None:
        self.element, self.count, self.parts = element, count, [element] * count
        self.text = f"[{count} x {element.text}]"


class LiteralStructType(_ManyType):
    """Values of different types."""

    _ends = "{}"

    def __init__(self, parts: Sequence[Type]) -> None:
        self.parts = tuple(parts)
        self.text = "{" + ", ".join(each.text for each in parts) + "}"


class FunctionType(Type):
    """What is called: the types of its parameters, and of what it returns."""

    def __init__(self, returns: Type, parameters: Sequence[Type]) -> None:
        self.returns, self.parameters = returns, tuple(parameters)
        self.text = f"{returns.text} ({', '.join(each.text for each in parameters)})"


VOID, BIT, BYTE = VoidType(), IntType(1), IntType(8)

# -- values ----------------------------------------------------------------------------------------

Undefined = object()
"""The value of a constant that may be anything."""


class Value:
    """What instructions take: `ref` is how they name it."""

    __slots__ = ("ref", "type")

    def __init__(self, kind: Any, ref: str) -> None:
        self.type, self.ref = kind, ref

    @property
    def typed(self) -> str:
        """Its type and its name."""
        return f"{self.type.text} {self.ref}"


class Constant(Value):
    """A value known now: a number, a sequence of them, None for zeros, or `Undefined`."""

    __slots__ = ("constant",)

    def __init__(self, kind: Type, constant: Any) -> None:
        self.constant = constant
        text = "undef" if constant is Undefined else kind.constant_text(constant)
        Value.__init__(self, kind, text)


class Instruction(Value):
    """One line; void ones have no `ref`. `opname` and `operands` are known of those that readers
    of programs ask for."""

    __slots__ = ("metadata", "operands", "opname", "text")

    def __init__(
        self, kind: Type, text: str, opname: str = "", operands: Sequence[Value] = ()
    ) -> None:
        self.type, self.ref, self.text = kind, "", text
        self.opname, self.operands = opname, operands
        self.metadata: dict[str, Metadata] | None = None

    def set_metadata(self, name: str, node: Metadata) -> None:
        """What LLVM is told about it."""
        if self.metadata is None:
            self.metadata = {}
        self.metadata[name] = node

    def body(self) -> str:
        """The line without the name of its value."""
        return self.text

    def __str__(self) -> str:
        text = f"  {self.ref} = {self.body()}" if self.ref else "  " + self.body()
        if self.metadata is None:
            return text
        return text + "".join(f", !{name} {node.ref}" for name, node in self.metadata.items())


class LoadInstr(Instruction):
    """A value from memory."""

    __slots__ = ()


class StoreInstr(Instruction):
    """A value to memory."""

    __slots__ = ()


class AllocaInstr(Instruction):
    """Room on the stack, at a multiple of `align` bytes where that is not None."""

    __slots__ = ("align",)
    align: int | None

    def body(self) -> str:
        """With its alignment."""
        return self.text if self.align is None else f"{self.text}, align {self.align}"


class CallInstr(Instruction):
    """A call of `callee`."""

    __slots__ = ("callee",)
    callee: Any


class PhiInstr(Instruction):
    """The value that belongs to the block which was before."""

    __slots__ = ("incoming",)
    incoming: list[tuple[Value, Block]]

    def add_incoming(self, value: Value, block: Block) -> None:
        """What it is after this block."""
        self.incoming.append((value, block))

    def body(self) -> str:
        """With all that may come in."""
        pairs = ", ".join(f"[{value.ref}, {block.ref}]" for value, block in self.incoming)
        return f"phi {self.type.text} {pairs}"


class Terminator(Instruction):
    """The last line of a block."""

    __slots__ = ()


class Ret(Terminator):
    """The end of a function."""

    __slots__ = ()


class SwitchInstr(Terminator):
    """A way for each number."""

    __slots__ = ("cases", "kind")
    cases: list[tuple[int, Block]]
    kind: Type

    def add_case(self, number: int, block: Block) -> None:
        """Where it goes for a number."""
        self.cases.append((number, block))

    def body(self) -> str:
        """With all cases."""
        cases = "".join(f" {self.kind.text} {n}, label {block.ref}" for n, block in self.cases)
        return f"{self.text} [{cases} ]"


class MetaDataString:
    """A text as metadata."""

    def __init__(self, text: str) -> None:
        self.ref = self.typed = f'!"{text}"'


class Metadata:
    """A node of metadata. One that is `distinct` is never taken for an equal one, and may be among
    its own operands."""

    def __init__(self, number: int, operands: Sequence[Any], distinct: bool) -> None:
        self.ref = self.typed = f"!{number}"
        self.operands, self.distinct = tuple(operands), distinct

    def __str__(self) -> str:
        operands = ", ".join(each.typed for each in self.operands)
        return f"{self.ref} = {'distinct ' * self.distinct}!{{ {operands} }}"


# -- functions -------------------------------------------------------------------------------------


class Block:
    """Lines of a function that run one after another. It is written where it is appended to the
    function's `blocks`."""

    __slots__ = ("function", "instructions", "name", "ref", "terminator")

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, function.unused(name)
        self.ref = f"%{self.name}"
        self.instructions: list[Instruction] = []
        self.terminator: Terminator | None = None

    @property
    def is_terminated(self) -> bool:
        """Whether it says what comes next."""
        return self.terminator is not None


class GlobalVariable(Value):
    """Memory that a module owns."""

    def __init__(self, module: Module, kind: Type, name: str) -> None:
        super().__init__(kind.as_pointer(), f'@"{name}"')
        self.kind, self.name, self.linkage, self.global_constant = kind, name, "", False
        self.section = ""
        self.initializer: Constant | None = None
        self.align: int | None = None
        module.globals[name] = self

    def __str__(self) -> str:
        words = [self.linkage, "constant" if self.global_constant else "global", self.kind.text]
        if self.initializer is not None:
            words.append(self.initializer.ref)
        align = "" if self.align is None else f", align {self.align}"
        section = f', section "{self.section}"' if self.section else ""
        return f"{self.ref} = {' '.join(filter(None, words))}{section}{align}"


class _Attributes(dict[str, None]):
    def add(self, name: str) -> None:
        """Give it this one too."""
        self[name] = None


class Function(Value):
    """A function; without blocks it is a declaration."""

    def __init__(self, module: Module, kind: FunctionType, name: str) -> None:
        super().__init__(kind.as_pointer(), f'@"{name}"')
        self.module, self.kind, self.name = module, kind, name
        self.args = [Value(each, f"%p{k}") for k, each in enumerate(kind.parameters)]
        self.blocks: list[Block] = []
        self.attributes = _Attributes()
        self.linkage = self.calling_convention = ""
        self.values = 0
        self._names: dict[str, int] = {}
        module.globals[name] = self

    @property
    def is_declaration(self) -> bool:
        """Whether it is somewhere else."""
        return not self.blocks

    def unused(self, name: str) -> str:
        """A name for a block that no other one has."""
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}.{number}" if number else name

    def append_basic_block(self, name: str) -> Block:
        """A new block behind the last one."""
        block = Block(self, name)
        self.blocks.append(block)
        return block

    def declaration(self) -> str:
        """The line of a function that is somewhere else."""
        return "declare " + self._head(", ".join(each.type.text for each in self.args))

    def definition(self) -> str:
        """All its lines."""
        head = self._head(", ".join(each.typed for each in self.args))
        lines = [f"define {self.linkage} {head} {{"]
        for block in self.blocks:
            lines.append(f"{block.name}:")
            lines += map(str, block.instructions)
        lines.append("}")
        return "\n".join(lines)

    def _head(self, parameters: str) -> str:
        words = [self.calling_convention, self.kind.returns.text, f"{self.ref}({parameters})"]
        return " ".join([*filter(None, words), *self.attributes])

    def __str__(self) -> str:
        return self.definition() if self.blocks else self.declaration()


class Module:
    """Functions and variables that know each other by name."""

    def __init__(self, triple: str, data_layout: str) -> None:
        self.triple, self.data_layout = triple, data_layout
        self.globals: dict[str, Any] = {}
        self.metadata: list[Metadata] = []
        self._equal: dict[tuple[str, ...], Metadata] = {}

    @property
    def functions(self) -> list[Function]:
        """The functions, declared ones too."""
        return [each for each in self.globals.values() if isinstance(each, Function)]

    def add_metadata(self, operands: Sequence[Any]) -> Metadata:
        """The node of these operands: texts, constants and nodes."""
        made = [MetaDataString(each) if isinstance(each, str) else each for each in operands]
        key = tuple(each.typed for each in made)
        if key not in self._equal:
            self._equal[key] = self._node(made, False)
        return self._equal[key]

    def distinct_metadata(self) -> Metadata:
        """A new node without operands that LLVM never merges with an equal one."""
        return self._node([], True)

    def _node(self, operands: Sequence[Any], distinct: bool) -> Metadata:
        node = Metadata(len(self.metadata), operands, distinct)
        self.metadata.append(node)
        return node

    def declare_intrinsic(
        self, name: str, kinds: Sequence[Any], signature: FunctionType | None = None
    ) -> Function:
        """LLVM's function of this name for these types; of its type alone, where not told."""
        full = ".".join([name, *(each.intrinsic_name for each in kinds)])
        known: Function | None = self.globals.get(full)
        return known or Function(self, signature or FunctionType(kinds[0], list(kinds)), full)

    def __str__(self) -> str:
        head = [f'target triple = "{self.triple}"', f'target datalayout = "{self.data_layout}"']
        parts = map(str, self.globals.values())
        return "\n".join([*head, *parts, *map(str, self.metadata), ""])
