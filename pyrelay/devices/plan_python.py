"""A plan as Python: what the host does between the kernels of a GPU.

In: a plan, and which of its slots may hold scalars of the device. Out: `PlanCode`: the text of one
Python function per function of the plan, and the kernels and host kernels that it refers to.

A word is an int, a scalar on the device an object that knows its address (`gpu_memory.Cell`), a
tape a list. Functions that may recurse are generators which yield the call, so that recursion
takes no stack of Python's. Jumps go through a loop that finds a block by bisection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pyrelay.devices import cuda_attention, cuda_convolution, cuda_library
from pyrelay.devices.device_words import device_slots
from pyrelay.devices.driver import ADDRESS, Text
from pyrelay.devices.launch_guards import bound_of
from pyrelay.devices.persistent import Loop, loops, operands_of, text_of
from pyrelay.devices.stretches import flow, runs_on_host, stretches
from pyrelay.lower import emit_cuda
from pyrelay.lower import instructions as ins
from pyrelay.lower import kernel as kernel_ir
from pyrelay.lower.instructions import AddressOf, Data, Immediate, Launch, Plan, Slot
from pyrelay.lower.narrow import LARGEST, narrow
from pyrelay.records import dataclass

_WRAPPED = {"add.i64": "+", "sub.i64": "-", "mul.i64": "*"}
_COMPARED = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}
_LEAVES = (ins.Jump, ins.JumpIf, ins.JumpUnless, ins.LoopNext, ins.Return, ins.Raise)
_ALL_LEAVES = (ins.Jump, ins.Return, ins.Raise)


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel as one place of the plan launches it.

    text: its number among the texts, -1 for a kernel that the host runs, -2 - k for number k of
    those that are compiled when they are first needed: kernels with indices of 64 bits, for arrays
    that are too large for the version before. base: the first of its
    sites. product: the dtype of a product of matrices, or None. outs: for a kernel that the host
    runs, where among its words the addresses of results stand, and of how many words each is.
    """

    text: int
    kernel: int
    base: int
    product: Any = None
    outs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Persistent:
    """A loop that may run as one kernel, and the number of that launch."""

    loop: Loop
    launch: int


@dataclass(frozen=True, slots=True)
class PlanCode:
    """The Python functions of a plan, and what they launch.

    fails: whether any kernel can fail. late: texts that few calls need (`Launched.text`).
    """

    source: str
    texts: tuple[Text, ...]
    late: tuple[Text, ...]
    launches: tuple[Launched, ...]
    fails: bool
    generators: tuple[bool, ...]
    stretches: int
    persistent: tuple[Persistent, ...]


def plan_code(plan: Plan) -> PlanCode:
    """The plan written in Python."""
    shared = _Shared(plan)
    parts = [_Function(shared, number).text() for number in range(len(plan.functions))]
    fails = any(map(_can_fail, plan.kernels)) or any(
        isinstance(instruction, (ins.Raise, ins.Checked))
        for found, function in zip(shared.loops, plan.functions, strict=True) for loop in found
        for instruction in function.code[loop.first : loop.last]
    )
    return PlanCode(
        "\n\n".join(parts) + "\n", tuple(shared.texts), tuple(shared.late),
        tuple(shared.launches), fails,
        shared.generators, shared.stretches, tuple(shared.persistent),
    )


def _can_fail(kernel: ins.Kernel) -> bool:
    if kernel.code is None:
        return cuda_library.can_fail(kernel.source)
    return bool(kernel.code.sites)


@dataclass
class _Shared:
    """What the functions of a plan have in common."""

    plan: Plan
    texts: list[Text] = field(default_factory=list)
    late: list[Text] = field(default_factory=list)
    launches: list[Launched] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = self.plan
        self.loops = [loops(plan, function) for function in plan.functions]
        known = [{s for loop in found for s in loop.scalars} for found in self.loops]
        self.slots = device_slots(
            plan, lambda launch, on: runs_on_host(plan, launch, on), known
        )
        self.persistent: list[Persistent] = []
        self.numbers: dict[Text, int] = {}
        self.stretches = 0
        self.generators = _recursive(plan)

    def late_text(self, text: Text) -> int:
        """The number of a kernel's text that is compiled when it is first needed, below -1."""
        self.late.append(text)
        return -1 - len(self.late)

    def text(self, text: Text) -> int:
        """The number of a kernel's text."""
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return self.numbers[text]


def _recursive(plan: Plan) -> tuple[bool, ...]:
    """For each function whether it may call itself, or calls one that may."""
    calls = [
        {i.function for i in f.code if isinstance(i, ins.Call)} for f in plan.functions
    ]
    # What is left when those that call nothing that is left are taken out, again and again.
    left = set(range(len(calls)))
    while True:
        done = {k for k in left if not calls[k] & left}
        if not done:
            return tuple(k in left for k in range(len(calls)))
        left -= done


class _Function:
    """Writes one function of the plan."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self.shared, self.plan = shared, shared.plan
        self.function = self.plan.functions[number]
        self.number, self.on_device = number, frozenset(shared.slots[number])
        self.lines: list[str] = []
        self.before: list[str] = []  # the functions of its stretches
        self.cells = 0

    def text(self) -> str:
        """The definition."""
        self.blocks = blocks = self._blocks()
        self.places = {
            instruction.name: number for number, block in enumerate(blocks)
            for instruction in block if isinstance(instruction, ins.Label)
        }
        given = "".join(f", s{k}" for k in range(self.function.parameters))
        head = f"def f{self.number}(run{given}):"
        out: list[str] = []
        fresh = [f"s{k} = " for k in range(self.function.parameters, self.function.slots)]
        out += [f"    {''.join(fresh[k : k + 50])}0" for k in range(0, len(fresh), 50)]
        self.single = len(blocks) == 1
        written = [self._block(n, block, len(blocks)) for n, block in enumerate(blocks)]
        if self.single:
            out += (f"    {line}" for line in written[0] or ["pass"])
        else:
            out += ["    at = 0", "    while True:"]
            self._tree(written, 0, len(written), 2, out)
        return "\n".join([*self.before, head, *out])

    def _blocks(self) -> list[list[ins.Instruction]]:
        """The code cut at labels and after jumps."""
        blocks: list[list[ins.Instruction]] = [[]]
        for instruction in self.function.code:
            if isinstance(instruction, ins.Label) and blocks[-1]:
                blocks.append([])
            blocks[-1].append(instruction)
            if isinstance(instruction, _LEAVES):
                blocks.append([])
        return [block for block in blocks if block]

    def _tree(
        self, blocks: Sequence[list[str]], first: int, last: int, depth: int, out: list[str]
    ) -> None:
        """The blocks first..last as nested conditions on `at`."""
        indent = "    " * depth
        if last - first == 1:
            out += [indent + line for line in blocks[first]]
            return
        middle = (first + last) // 2
        out.append(f"{indent}if at < {middle}:")
        self._tree(blocks, first, middle, depth + 1, out)
        out.append(f"{indent}else:")
        self._tree(blocks, middle, last, depth + 1, out)

    def _block(self, number: int, block: list[ins.Instruction], count: int) -> list[str]:
        self.lines = []
        for part, worth_it in stretches(self.plan, block, self.on_device):
            if worth_it:
                self._stretch(part)
                continue
            for instruction in part:
                self._instruction(instruction)
        if not isinstance(block[-1], _ALL_LEAVES) and number + 1 < count:
            self._persistent(self.blocks[number + 1][0])
            self.lines.append(f"at = {number + 1}")
        return self.lines

    def _persistent(self, following: ins.Instruction) -> None:
        """Run the loop that follows as one kernel if that is faster."""
        code = self.function.code
        for loop in self.shared.loops[self.number]:
            operands = list(operands_of(loop))
            waits = any(isinstance(o, Slot) and o.index in self.on_device for o in operands)
            if code[loop.first] is not following or waits:
                continue
            text = text_of(self.plan, self.function, loop, self.on_device)
            launch = self._launched(Launched(self.shared.text(text), -1, 0))
            number = len(self.shared.persistent)
            self.shared.persistent.append(Persistent(loop, launch))
            values = "".join(f"{self._word(o)}, " for o in operands)
            end = code[loop.last]
            assert isinstance(end, ins.Label)
            self._line(f"values = ({values})")
            self._line(f"if run.is_worth_it({number}, values):")
            given = "".join(f"s{k}, " for k in loop.given)
            slots = "".join(f"s{k}, " for k in loop.results)
            made = f"run.persist({number}, values, ({given}))"
            self._line(f"    ({slots}) = {made}" if slots else f"    {made}")
            self._line(f"    {self._jump(end.name)}")

    def _stretch(self, part: Sequence[ins.Instruction]) -> None:
        """A function of its own, which `graphs` may replace by what it did before."""
        outside = [i for i in self.function.code if not any(i is own for own in part)]
        given, written = flow(self.plan, part)
        later = {slot for i in outside for slot in flow(self.plan, (i,))[0]} | set(given)
        results = [slot for slot in written if slot in later]
        number = self.shared.stretches
        self.shared.stretches += 1
        lines, self.lines = self.lines, []
        for instruction in part:
            self._instruction(instruction)
        words = "".join(f"s{k}, " for k in results)
        self.before += [
            f"def g{number}(run{''.join(f', s{k}' for k in given)}):",
            *(f"    {line}" for line in self.lines), f"    return ({words})", "",
        ]
        self.lines = lines
        made = f"run.stretch({number}, g{number}, ({''.join(f's{k}, ' for k in given)}))"
        self._line(f"({words}) = {made}" if words else made)

    # -- operands ------------------------------------------------------------------------------

    def _word(self, operand: Any) -> str:
        """An operand as it is: an int, a scalar of the device, a tape."""
        if isinstance(operand, Slot):
            return f"s{operand.index}"
        if isinstance(operand, Immediate):
            return repr(operand.word)
        assert isinstance(operand, Data)
        return f"run.data[{operand.index}]"

    def _known(self, operand: Any) -> str:
        """An operand that the host computes with: it is fetched if it is on the device."""
        text = self._word(operand)
        if isinstance(operand, Slot) and operand.index in self.on_device:
            self._line(f"if type({text}) is not int: {text} = run.fetched({text})")
        return text

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _jump(self, label: str) -> str:
        return f"at = {self.places[label]}; continue"

    # -- instructions --------------------------------------------------------------------------

    def _instruction(self, step: ins.Instruction) -> None:
        match step:
            case Launch():
                self._launch(step)
            case ins.Unary(op, target, a):
                value = self._word(a) if op == "move" else self._known(a)
                self._line(f"s{target} = " + (value if op == "move" else f"unary[{op!r}]({value})"))
            case ins.Binary(op, target, a, b):
                self._binary(op, target, self._known(a), self._known(b))
            case ins.Checked(op, target, a, b, site):
                x, y = self._known(a), self._known(b)
                self._line(f"found = checked[{op!r}]({x}, {y})")
                self._line(f"if found is None: raise Stopped({site}, ({x}, {y}))")
                self._line(f"s{target} = found")
            case ins.Select(target, condition, a, b):
                c = self._known(condition)
                self._line(f"s{target} = {self._word(a)} if {c} else {self._word(b)}")
            case ins.Jump(label):
                self._line(self._jump(label))
            case ins.JumpIf(condition, label):
                self._line(f"if {self._known(condition)}: {self._jump(label)}")
            case ins.JumpUnless(condition, label):
                self._line(f"if not {self._known(condition)}: {self._jump(label)}")
            case ins.LoopNext(counter, by, limit, label):
                known, sign = self._known(limit), "<" if by > 0 else ">"
                self._known(Slot(counter))
                self._line(f"s{counter} += {by}")
                self._line(f"if s{counter} {sign} {known}: {self._jump(label)}")
            case ins.Call(function, arguments, results):
                self._call(function, arguments, results)
            case ins.Return(values):
                words = "".join(f"{self._word(v)}, " for v in values)
                self._line(f"return ({words})")
            case ins.Raise(site, values):
                words = "".join(f"{self._known(v)}, " for v in values)
                self._line(f"raise Stopped({site}, ({words}))")
            case ins.Guard(condition):
                self._line(f"if not {self._known(condition)}: raise Mismatched")
            case ins.HostCall(host, arguments, results):
                self._host_call(host, arguments, results)
            case ins.Label() | ins.Poll():
                pass
            case _:
                self._memory(step)

    def _memory(self, step: ins.Instruction) -> None:
        match step:
            case ins.Alloc(target, nbytes):
                self._line(f"s{target} = run.allocate({self._known(nbytes)})")
            case ins.Free(address):
                self._line(f"run.free({self._known(address)})")
            case ins.Copy(target, source, nbytes):
                given = [self._known(each) for each in (target, source, nbytes)]
                self._line(f"run.copy({', '.join(given)})")
            case ins.Zero(target, nbytes):
                self._line(f"run.zero({self._known(target)}, {self._known(nbytes)})")
            case ins.Load(kind, target, address, index):
                given = [self._known(address), self._known(index)]
                number = self._library(cuda_library.element_read(kind))
                self._line(f"s{target} = run.load({number}, {', '.join(given)})")
            case ins.Store(kind, address, index, value):
                given = [self._known(address), self._known(index), self._word(value)]
                number = self._library(cuda_library.element_write(kind))
                self._line(f"run.store({number}, {', '.join(given)})")
            case ins.TapeNew(target):
                self._line(f"s{target} = []")
            case ins.TapePush(tape, values):
                words = "".join(f"{self._word(v)}, " for v in values)
                self._line(f"{self._word(tape)}.append(({words}))")
            case ins.TapePop(tape, targets):
                slots = "".join(f"s{k}, " for k in targets)
                pop = f"{self._word(tape)}.pop()"
                self._line(f"({slots}) = {pop}" if slots else pop)
            case ins.TapePushBytes(tape, address, nbytes):
                given = [self._known(address), self._known(nbytes)]
                self._line(f"{self._word(tape)}.append(run.kept({', '.join(given)}))")
            case ins.TapePopBytes(tape, address, nbytes):
                given = [self._known(address), self._known(nbytes)]
                self._line(f"run.restore({self._word(tape)}.pop(), {', '.join(given)})")
            case ins.TapeFree():
                pass  # a list
            case _:
                raise AssertionError(step)

    def _binary(self, op: str, target: int, a: str, b: str) -> None:
        name, kind = op.split(".")
        if op in _WRAPPED:
            text = f"({a} {_WRAPPED[op]} {b} + H & M) - H"
        elif kind == "i64" and name in _COMPARED:
            text = f"1 if {a} {_COMPARED[name]} {b} else 0"
        else:
            text = f"binary[{op!r}]({a}, {b})"
        self._line(f"s{target} = {text}")

    def _call(self, function: int, arguments: Sequence[Any], results: Sequence[int]) -> None:
        slots = "".join(f"s{k}, " for k in results)
        words = "".join(f", {self._word(a)}" for a in arguments)
        if self.shared.generators[function]:
            made = f"yield f{function}(run{words})"
        else:
            made = f"f{function}(run{words})"
        self._line(f"({slots}) = {made}" if slots else made)

    def _host_call(self, host: int, arguments: Sequence[Any], results: Sequence[int]) -> None:
        words = "".join(f"{self._known(a)}, " for a in arguments)
        slots = "".join(f"s{k}, " for k in results)
        made = f"run.host_call({host}, ({words}), {len(results)})"
        self._line(f"({slots}) = {made}" if slots else made)

    # -- kernels -------------------------------------------------------------------------------

    def _library(self, text: Text) -> int:
        return self._launched(Launched(self.shared.text(text), -1, 0))

    def _launched(self, launched: Launched) -> int:
        self.shared.launches.append(launched)
        return len(self.shared.launches) - 1

    def _launch(self, launch: Launch) -> None:
        kernel = self.plan.kernels[launch.kernel]
        if runs_on_host(self.plan, launch, self.on_device):
            self._host_launch(launch)
        elif kernel.code is None and cuda_attention.is_attention(kernel.source):
            self._attention(launch, kernel.source)
        elif kernel.code is None:
            words = [self._known(o) for o in launch.operands]
            product = cuda_library.product_of(kernel.source)
            text = Text(kernel.source, cuda_library.kinds_of(kernel.source))
            number = self._launched(
                Launched(self.shared.text(text), launch.kernel, launch.first_site, product)
            )
            if cuda_convolution.is_convolution(kernel.source):
                # In the place of a kernel that finishes the product stands how it is rounded.
                words = [*words[:-2], "run.precision"]
            how = "launch" if product is None else "multiply"
            self._issue(how, number, launch, words)
        else:
            self._device_launch(launch, kernel.code)

    def _attention(self, launch: Launch, source: str) -> None:
        shaping = next((o for o in launch.operands if isinstance(o, ins.KernelAddress)), None)
        code = None if shaping is None else self.plan.kernels[shaping.index].code
        text, operands = cuda_attention.for_launch(source, launch.operands, code)
        number = self._launched(Launched(self.shared.text(text), launch.kernel, launch.first_site))
        self._issue("launch", number, launch, [self._known(o) for o in operands])

    def _issue(self, how: str, number: int | str, launch: Launch, words: Sequence[str]) -> None:
        items = self._known(launch.extent)
        self._line(f"run.{how}({number}, {items}, ({''.join(f'{w}, ' for w in words)}))")

    def _device_launch(self, launch: Launch, code: kernel_ir.Kernel) -> None:
        words: list[str] = []
        kinds: list[str] = []
        pointed: list[kernel_ir.Parameter] = []
        after: list[str] = []
        for parameter, operands in code.split(launch.operands):
            name = parameter.dtype.name
            if isinstance(operands[0], AddressOf):
                slot, cell = operands[0].index, f"c{self.cells}"
                self.cells += 1
                self._line(f"{cell} = run.cell()")
                words.append(f"{cell}.address")
                kinds.append(ADDRESS)
                after.append(f"s{slot} = {cell}")
                if parameter.dtype.size == 16:
                    after.append(f"s{slot + 1} = {cell}.second()")
            elif parameter.role == kernel_ir.SCALAR and any(
                isinstance(o, Slot) and o.index in self.on_device for o in operands
            ):
                words.append(f"run.place({', '.join(map(self._word, operands))})")
                kinds.append(ADDRESS)
                pointed.append(parameter)
            else:
                words += map(self._known, operands)
                scalar = parameter.role in (kernel_ir.SCALAR, kernel_ir.EXTENT)
                kinds.append(name if scalar else ADDRESS)
        text = Text(emit_cuda.emit(code, frozenset(pointed)), tuple(kinds))
        small = narrow(code)
        if small is None:
            number = self._launched(
                Launched(self.shared.text(text), launch.kernel, launch.first_site)
            )
            self._issue("launch", number, launch, words)
        else:
            few = Text(emit_cuda.emit(code, frozenset(pointed), small.scalars), tuple(kinds))
            number = self._launched(
                Launched(self.shared.text(few), launch.kernel, launch.first_site)
            )
            self._launched(
                Launched(self.shared.late_text(text), launch.kernel, launch.first_site)
            )
            guard = bound_of(small, launch, code, self._known)
            self._issue("launch", f"{number} + ({guard} >= {LARGEST})", launch, words)
        self.lines += after

    def _host_launch(self, launch: Launch) -> None:
        """The host runs the kernel: scalars of the plan that nothing of the device is known of."""
        words: list[str] = []
        slots: list[int] = []
        outs: list[tuple[int, int]] = []
        code = self.plan.kernels[launch.kernel].code
        assert code is not None
        for parameter, operands in code.split(launch.operands):
            if isinstance(operands[0], AddressOf):
                count = 2 if parameter.dtype.size == 16 else 1
                outs.append((len(words), count))
                slots += range(operands[0].index, operands[0].index + count)
                words.append("0")
            else:
                words += map(self._known, operands)
        number = self._launched(
            Launched(-1, launch.kernel, launch.first_site, outs=tuple(outs))
        )
        given = "".join(f"{w}, " for w in words)
        made = f"run.host_launch({number}, {self._known(launch.extent)}, ({given}))"
        targets = "".join(f"s{k}, " for k in slots)
        self._line(f"({targets}) = {made}" if targets else made)
