"""Kernels and plans as text for people.

In: the fused groups of a module, or a plan. Out: kernel IR, the kernels as one Python module, each
named after what it computes and headed by the user's lines, and the plan's instructions.
"""

from __future__ import annotations

import dataclasses
import os
import re
import struct
import textwrap
from collections.abc import Sequence

from pyrelay.errors import Span
from pyrelay.ir import dims, walk
from pyrelay.ir.nodes import Function, KernelCall, Module
from pyrelay.lower.kernels import kernel as K  # noqa: N812
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.planning import instructions as I  # noqa: N812
from pyrelay.lower.planning.program import name_of

INDENT = "  "

# -- kernel IR -------------------------------------------------------------------------------------

_ROLE_LETTERS = {
    K.ARRAY: "a", K.SCALAR: "s", K.EXTENT: "n", K.OUTPUT: "out", K.SLOT: "slot", K.SCRATCH: "tmp",
    K.ROW: "row", K.PRODUCT: "product", K.BOUND: "bound",
}  # fmt: skip


def show_kernel_ir(module: Module) -> str:
    """The kernel IR of every fused group of a module, in the order of its functions."""
    groups: dict[Function, None] = {}
    for function in module.functions.values():
        for let in walk.nested_lets(function.body):
            if isinstance(let.rhs, KernelCall):
                groups[let.rhs.function] = None
    texts = []
    for group in groups:
        for kernel in kernelise(group).kernels:
            texts.append("\n".join(_Names().kernel(kernel, name_of(group))))
    return "\n\n".join(texts)


class _Names:
    """Prints one kernel; locals are numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.names: dict[object, str] = {}

    def kernel(self, kernel: K.Kernel, name: str) -> list[str]:
        self.names |= {kernel.begin: "begin", kernel.end: "end"}
        taken = ", ".join(f"{self.array(p)}: {p.dtype.name}" for p in kernel.parameters)
        lines = [*heading(kernel.spans)]
        lines.append(f"kernel {name}({taken}) over {dims.show(kernel.extent)}")
        return lines + self.body(kernel.body, 1)

    def local(self, value: object) -> str:
        if isinstance(value, K.Literal):
            return repr(value.value)
        return self.names.setdefault(value, f"x{len(self.names)}")

    def array(self, array: object) -> str:
        if isinstance(array, K.Parameter):
            return f"{_ROLE_LETTERS[array.role]}{array.position}"
        if isinstance(array, K.Pointed):
            return self.local(array.address)
        return self.names.setdefault(array, f"local{len(self.names)}")

    def body(self, body: K.Body, depth: int) -> list[str]:
        lines: list[str] = []
        pad = INDENT * depth
        for statement in body:
            match statement:
                case K.Compute(out, primitive, args):
                    given = ", ".join(map(self.local, args))
                    lines.append(f"{pad}{self.local(out)} = {primitive}({given})")
                case K.Read(out, parameter):
                    lines.append(f"{pad}{self.local(out)} = {self.array(parameter)}")
                case K.Load(out, array, index):
                    place = f"{self.array(array)}[{self.local(index)}]"
                    lines.append(f"{pad}{self.local(out)} = {place}")
                case K.Store(array, index, value):
                    place = f"{self.array(array)}[{self.local(index)}]"
                    lines.append(f"{pad}{place} = {self.local(value)}")
                case K.Assign(variable, value):
                    lines.append(f"{pad}{self.local(variable)} = {self.local(value)}")
                case K.If(cond, then, orelse):
                    lines.append(f"{pad}if {self.local(cond)}")
                    lines += self.body(then, depth + 1)
                    if orelse:
                        lines += [f"{pad}else", *self.body(orelse, depth + 1)]
                case K.For(index, start, stop, inner):
                    span = f"{self.local(start)}..{self.local(stop)}"
                    lines.append(f"{pad}for {self.local(index)} in {span}")
                    lines += self.body(inner, depth + 1)
                case K.While(inner):
                    lines += [f"{pad}while true", *self.body(inner, depth + 1)]
                case K.Break(cond):
                    lines.append(f"{pad}break if {self.local(cond)}")
                case K.Fail(cond, site, values):
                    given = ", ".join(map(self.local, values))
                    lines.append(f"{pad}fail {site}({given}) if {self.local(cond)}")
        return lines


_IMPORT = re.compile(r"from (?P<module>[\w.]+) import (?P<names>.+)")

# -- kernels ---------------------------------------------------------------------------------------


def show_kernels(plan: I.Plan) -> str:
    """The kernels of a plan as one module: what they import first, each under its own name."""
    imported: dict[str, dict[str, None]] = {}
    texts = []
    for kernel, name in zip(plan.kernels, kernel_names(plan), strict=True):
        kept = []
        for line in kernel.source.strip().splitlines():
            found = _IMPORT.fullmatch(line)
            if found is None:
                kept.append(line)
                continue
            names = imported.setdefault(found["module"], {})
            names.update(dict.fromkeys(found["names"].split(", ")))
        source = "\n".join(kept).strip().replace("def kernel(", f"def {name}(", 1)
        texts.append("\n".join([*heading(kernel.spans), source]))
    head = "\n".join(_import(module, sorted(names)) for module, names in sorted(imported.items()))
    return "\n\n\n".join([head, *texts] if head else texts)


def _import(module: str, names: Sequence[str]) -> str:
    """An import statement of at most 100 columns."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return line
    rest = textwrap.fill(", ".join(names), 96, initial_indent="    ", subsequent_indent="    ")
    return f"from {module} import (\n{rest},\n)"


def kernel_names(plan: I.Plan) -> list[str]:
    """A name of its own for each kernel of a plan."""
    met: dict[str, int] = {}
    names = []
    for kernel in plan.kernels:
        met[kernel.name] = count = met.get(kernel.name, 0) + 1
        names.append(f"{kernel.name}_kernel" + (f"_{count}" if count > 1 else ""))
    return names


def heading(spans: Sequence[Span]) -> list[str]:
    """The user's lines as comments."""
    lines: dict[tuple[str, int], str] = {}
    for span in sorted(spans, key=lambda s: (s.source.filename, s.line)):
        text = (span.source.at(span.line) or "").strip()
        scope = f"  (scope {span.scope})" if span.scope else ""
        lines.setdefault((span.source.filename, span.line), text + scope)
    return [
        f"# {os.path.basename(file)}, line {number}: {text}"
        for (file, number), text in lines.items()
    ]


# -- plans -----------------------------------------------------------------------------------------

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
    "lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">=",
}  # fmt: skip


def show_plan(plan: I.Plan) -> str:
    """The instructions of a plan, function by function; `s3` is slot 3 of the running frame."""
    kernels = kernel_names(plan)
    functions = [function.name for function in plan.functions]
    lines = []
    for function in plan.functions:
        given = ", ".join(f"s{k}" for k in range(function.parameters))
        lines.append(f"plan {function.name}({given})")
        for number, instruction in enumerate(function.code):
            if isinstance(instruction, I.Label):
                lines.append(f"     {instruction.name}:")
            else:
                text = _instruction(instruction, plan, kernels, functions)
                lines.append(f"{number:4d}   {text}")
    return "\n".join(lines)


def _instruction(
    instruction: I.Instruction, plan: I.Plan, kernels: Sequence[str], functions: Sequence[str]
) -> str:
    v, several = _value, _values
    match instruction:
        case I.Launch(kernel, operands, extent, _, serial, begin=begin):
            alone = " on this thread" if serial else ""
            over = v(extent) if begin == I.Immediate(0) else f"{v(begin)} to {v(extent)}"
            return f"launch {kernels[kernel]}({several(operands)}) over {over}{alone}"
        case I.Parts(first, end, _, rows, _, label):
            return f"in parts s{first} to s{end} of {v(rows)} rows, then go to {label}"
        case I.PartEnd():
            return "end of the part"
        case I.Unary(op, target, a):
            return f"s{target} = {v(a, op)}" if op == "move" else f"s{target} = {op}({v(a, op)})"
        case I.Binary(op, target, a, b):
            return f"s{target} = {_binary(op, a, b)}"
        case I.Checked(op, target, a, b, site):
            return f"s{target} = {_binary(op, a, b)}, else {_site(plan, site)}"
        case I.Select(target, condition, a, b):
            return f"s{target} = {v(a)} if {v(condition)} else {v(b)}"
        case I.Jump(label):
            return f"go to {label}"
        case I.JumpIf(condition, label):
            return f"if {v(condition)} go to {label}"
        case I.JumpUnless(condition, label):
            return f"if not {v(condition)} go to {label}"
        case I.LoopNext(counter, step, limit, label):
            sign = "<" if step > 0 else ">"
            return f"s{counter} += {step}; if s{counter} {sign} {v(limit)} go to {label}"
        case I.Alloc(target, nbytes):
            return f"s{target} = allocate {v(nbytes)} bytes"
        case I.Free(address):
            return f"free {v(address)}"
        case I.Copy(target, source, nbytes):
            return f"copy {v(nbytes)} bytes from {v(source)} to {v(target)}"
        case I.Zero(target, nbytes):
            return f"zero {v(nbytes)} bytes at {v(target)}"
        case I.Load(kind, target, address, index):
            return f"s{target} = {kind} at {v(address)}[{v(index)}]"
        case I.Store(kind, address, index, value):
            return f"{kind} at {v(address)}[{v(index)}] = {v(value)}"
        case I.Call(function, arguments, results):
            return _assigned(results, f"{functions[function]}({several(arguments)})")
        case I.Return(values):
            return f"return {several(values)}"
        case I.HostCall(host, arguments, results):
            return _assigned(results, f"host {host}({several(arguments)})")
        case I.UfuncCall(ufunc, target, arrays, extents, steps):
            name = plan.ufuncs[ufunc].name
            given = f"{several(arrays)}; {several(extents)}; {several(steps)}"
            return f"s{target} = {name}({given})"
        case I.Raise(site, values):
            return f"raise {_site(plan, site)} ({several(values)})"
        case I.Guard(condition):
            return f"guard {v(condition)}"
    return _generic(instruction)


def _generic(instruction: I.Instruction) -> str:
    """The name of an instruction and its operands, in order."""
    parts = []
    for field in dataclasses.fields(instruction):
        value = getattr(instruction, field.name)
        if isinstance(value, tuple):
            parts.append(_values(value))
        elif isinstance(value, I.Operand):
            parts.append(_value(value))
        else:
            parts.append(f"s{value}" if field.name == "target" else str(value))
    return " ".join([type(instruction).__name__.lower(), ", ".join(p for p in parts if p)]).strip()


def _assigned(results: Sequence[int], text: str) -> str:
    return f"{', '.join(f's{r}' for r in results)} = {text}" if results else text


def _binary(op: str, a: I.Value, b: I.Value) -> str:
    name = op.partition(".")[0]
    left, right = _value(a, op), _value(b, op)
    return f"{left} {_SIGNS[name]} {right}" if name in _SIGNS else f"{name}({left}, {right})"


def _values(values: Sequence[I.Operand | int]) -> str:
    return ", ".join(f"s{v}" if isinstance(v, int) else _value(v) for v in values)


def _value(value: I.Operand, op: str = "") -> str:
    """A slot as `s3`, its address as `&s3`, a constant as its number."""
    match value:
        case I.Slot(index):
            return f"s{index}"
        case I.AddressOf(index):
            return f"&s{index}"
        case I.Data(index):
            return f"constant{index}"
        case I.KernelAddress(index):
            return f"kernel{index}"
        case I.CodeOf(index):
            return f"code{index}"
    packed = value.word.to_bytes(8, "little", signed=True)
    if op.endswith(".f64"):
        return repr(struct.unpack("<d", packed)[0])
    if op.endswith(".f32"):
        return repr(struct.unpack("<fxxxx", packed)[0])
    return str(value.word)


def _site(plan: I.Plan, number: int) -> str:
    """The exception of a site, and where it is raised."""
    if number >= len(plan.sites):
        return f"site {number}"
    site = plan.sites[number]
    name = site.exception if isinstance(site.exception, str) else site.exception.__name__
    return f"{name} of line {site.span.line}" if site.span is not None else name
