"""The text of a kernel that runs a loop of a plan.

In: the loop's instructions. Out: CUDA C++ for one block of `THREADS` threads, to stand behind
`cuda_prelude`. All threads go through the same instructions with the same words; what is launched
they share, and they wait for each other before and after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.devices import cuda_library
from pyrelay.devices.stretches import flow
from pyrelay.devices.word_texts import BINARY, CHECKED, UNARY
from pyrelay.lower import emit_cuda
from pyrelay.lower import instructions as ins
from pyrelay.lower import kernel as kernel_ir
from pyrelay.lower.cuda_heads import stored
from pyrelay.lower.instructions import AddressOf, Immediate, Launch, Plan, Slot

if TYPE_CHECKING:
    from pyrelay.devices.persistent import Loop

THREADS = 256
ALIGNED = 256
"""Bytes that buffers of the arena are multiples of."""

CELL = 16
"""Bytes of the arena for each scalar that a kernel leaves in it, behind as many for `_poll`."""

class Writer:
    """Writes the kernel of one loop."""

    def __init__(
        self, plan: Plan, part: Sequence[ins.Instruction], loop: Loop, on_device: frozenset[int]
    ) -> None:
        self.plan, self.part, self.loop, self.on_device = plan, part, loop, on_device
        self.phases: dict[str, int] = {}
        self.lines: list[str] = []
        self.cells = 0

    def text(self) -> str:
        """The whole text."""
        for instruction in self.part:
            self._instruction(instruction)
        loop = self.loop
        declared = [
            f"const i64 *s{k}_at" if k in self.on_device else f"i64 s{k}" for k in loop.given
        ]
        declared += ["i64 arena", *(f"i64 step{g}" for g in range(len(loop.groups)))]
        for k in loop.arrays:
            declared += [f"i64 o{k}", f"i64 bytes{k}"]
        declared += [f"i64 *r{k}" for k in loop.scalars]
        own = ["pyrelay_record *record", "i64 launch", "i64 first", "i64 last"]
        head = ", ".join([*own, *declared])
        slots = sorted(self._slots() - {k for k in loop.given if k not in self.on_device})
        body = [f"i64 s{k} = {f'*s{k}_at' if k in loop.given else 0};" for k in slots]
        body.append("int rounds = 0;")
        start = f"arena + {CELL * (loop.cells + 1)}"
        for g, group in enumerate(loop.groups):
            body += [
                f"const i64 base{g} = (({start}) + {ALIGNED - 1}) / {ALIGNED} * {ALIGNED};",
                f"u64 used{g} = 0;",
            ]
            start = f"base{g} + {group.chunks} * step{g}"
        body += [
            "const bool over = launch != 0 && record->status != 0;", "__syncthreads();",
            "if (over) return;", *self.lines,
        ]
        if any("goto finished;" in line for line in self.lines):
            body.append("finished:")
        body.append("__syncthreads();")
        body += [f"pyrelay_copy(o{k}, s{k}, bytes{k});" for k in loop.arrays]
        if loop.scalars:
            body.append("if (threadIdx.x == 0) {")
            body += [f"    *r{k} = s{k};" for k in loop.scalars]
            body.append("}")
        parts = [f"#define BLOCK_THREADS {THREADS}"]
        for source, number in self.phases.items():
            parts.append(f"namespace phase{number} {{\n{source}}}")
        parts.append(f'extern "C" __global__ void kernel({head}) {{')
        parts += [f"    {line}" for line in body]
        return "\n".join([*parts, "}", ""])

    def _slots(self) -> set[int]:
        given, written = flow(self.plan, self.part)
        return {*given, *written}

    def _phase(self, source: str) -> int:
        plain = re.sub(r"^#define (BLOCK_THREADS|PACK) \d+\n", "", source, flags=re.MULTILINE)
        plain = plain.replace('extern "C" __global__ void kernel(', "__device__ void phase(")
        return self.phases.setdefault(plain, len(self.phases))

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _word(self, operand: Any) -> str:
        if isinstance(operand, Slot):
            return f"s{operand.index}"
        assert isinstance(operand, Immediate)
        word = operand.word
        return "(-9223372036854775807ll - 1)" if word == -(2**63) else f"({word}ll)"

    # -- instructions --------------------------------------------------------------------------

    def _instruction(self, step: ins.Instruction) -> None:
        word = self._word
        match step:
            case Launch():
                self._launch(step)
            case ins.Unary(op, target, a):
                self._line(f"s{target} = {UNARY[op].format(a=word(a))};")
            case ins.Binary(op, target, a, b):
                self._line(f"s{target} = {BINARY[op].format(a=word(a), b=word(b))};")
            case ins.Checked(op, target, a, b, site):
                self._checked(op, target, word(a), word(b), site)
            case ins.Select(target, condition, a, b):
                self._line(f"s{target} = {word(condition)} ? {word(a)} : {word(b)};")
            case ins.Label(name):
                self._line(f"{name}: ;")
            case ins.Jump(label):
                self._line(f"goto {self._goal(label)};")
            case ins.JumpIf(condition, label):
                self._line(f"if ({word(condition)}) goto {self._goal(label)};")
            case ins.JumpUnless(condition, label):
                self._line(f"if (!{word(condition)}) goto {self._goal(label)};")
            case ins.LoopNext(counter, by, limit, label):
                self._line(f"s{counter} += {by};")
                self._poll()
                sign = "<" if by > 0 else ">"
                self._line(f"if (s{counter} {sign} {word(limit)}) goto {self._goal(label)};")
            case ins.Poll():
                self._poll()
            case ins.Raise(site, values):
                self._raise("true", site, list(map(word, values)))
            case _:
                self._memory(step)

    def _goal(self, label: str) -> str:
        own = any(isinstance(i, ins.Label) and i.name == label for i in self.part)
        return label if own else "finished"

    def _memory(self, step: ins.Instruction) -> None:
        word = self._word
        match step:
            case ins.Alloc(target, nbytes):
                g = next(k for k, group in enumerate(self.loop.groups) if group.nbytes == nbytes)
                self._line(f"s{target} = pyrelay_take(used{g}, base{g}, step{g});")
            case ins.Free(address):
                for g, group in enumerate(self.loop.groups):
                    given = f"used{g}, base{g}, step{g}, {group.chunks}, {word(address)}"
                    self._line(f"pyrelay_give({given});")
            case ins.Copy(target, source, nbytes):
                self._line("__syncthreads();")
                self._line(f"pyrelay_copy({word(target)}, {word(source)}, {word(nbytes)});")
                self._line("__syncthreads();")
            case ins.Load(kind, target, address, index):
                self._line(f"s{target} = (i64)((const {kind} *){word(address)})[{word(index)}];")
                self._line("__syncthreads();")
            case ins.Store(kind, address, index, value):
                self._line("__syncthreads();")
                place = f"(({kind} *){word(address)})[{word(index)}]"
                self._line(f"if (threadIdx.x == 0) {place} = ({kind}){word(value)};")
                self._line("__syncthreads();")
            case _:
                raise AssertionError(step)

    def _poll(self) -> None:
        """All threads leave together when the host wants the launch to end."""
        self._line("if ((++rounds & 0xfff) == 0) {")
        self._line("    int due = 0xfffff;")
        self._line("    if (threadIdx.x == 0) *(i64 *)arena = pyrelay_stopped(record, due);")
        self._line("    __syncthreads();")
        self._line("    const bool stopped = *(i64 *)arena != 0;")
        self._line("    __syncthreads();")
        self._line("    if (stopped) return;")
        self._line("}")

    def _checked(self, op: str, target: int, a: str, b: str, site: int) -> None:
        compute, fails = CHECKED[op]
        result = f"checked{len(self.lines)}"
        self._line(f"{{ i64 {compute.format(r=result, a=a, b=b)};")
        self._raise(fails.format(r=result, a=a, b=b), site, [a, b])
        self._line(f"s{target} = {result}; }}")

    def _raise(self, condition: str, site: int, values: Sequence[str]) -> None:
        puts = "".join(f" record->values[{k}] = {v};" for k, v in enumerate(values))
        claim = f"pyrelay_claim(record, launch, 0, {site})"
        self._line(f"if ({condition}) {{")
        self._line(f"    if (threadIdx.x == 0 && {claim}) {{{puts} pyrelay_release(record); }}")
        self._line("    return;")
        self._line("}")

    # -- kernels -------------------------------------------------------------------------------

    def _launch(self, launch: Launch) -> None:
        kernel = self.plan.kernels[launch.kernel]
        extent = self._word(launch.extent)
        if kernel.code is None:
            dtype = cuda_library.product_of(kernel.source)
            assert dtype is not None
            axes = (len(launch.operands) - 15) // 3
            source = cuda_library.thin_product(dtype, axes)
            words = list(map(self._word, launch.operands))
            pointers = [f"PYRELAY_BUFFER(const {dtype.name}, {w})" for w in words[:2]]
            pointers.append(f"PYRELAY_BUFFER({dtype.name}, {words[2]})")
            self._call(source, launch, extent, [*pointers, *words[3:]])
            return
        given: list[str] = []
        after: list[str] = []
        written = stored(kernel.code)
        for parameter, operands in kernel.code.split(launch.operands):
            name = parameter.dtype.name
            first = operands[0]
            if isinstance(first, AddressOf):
                place = f"((i64 *)(arena + {CELL * (self.cells + 1)}))"
                self.cells += 1
                given.append(place)
                after.append(f"s{first.index} = {place}[0];")
                if parameter.dtype.size == 16:
                    after.append(f"s{first.index + 1} = {place}[1];")
            elif parameter.role == kernel_ir.SCALAR:
                words = [*map(self._word, operands), "0"][:2]
                given.append(f"pyrelay_scalar<{name}>({', '.join(words)})")
            elif parameter.role == kernel_ir.EXTENT:
                given.append(self._word(first))
            else:
                kind = name if parameter in written else f"const {name}"
                given.append(f"PYRELAY_BUFFER({kind}, {self._word(first)})")
        self._call(emit_cuda.emit(kernel.code), launch, extent, given)
        self.lines += after
        if after:
            self._line("__syncthreads();")
        if kernel.code.sites:
            self._line("{ const bool failed = record->status != 0;")
            self._line("  __syncthreads();")
            self._line("  if (failed) return; }")

    def _call(self, source: str, launch: Launch, extent: str, given: Sequence[str]) -> None:
        number = self._phase(source)
        ident = f"launch + {launch.first_site} * (launch != 0)"
        self._line(f"phase{number}::phase(record, {ident}, 0, {extent}, {', '.join(given)});")
        self._line("__syncthreads();")
