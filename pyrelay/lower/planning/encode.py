"""A plan as the table of int64 words that the executor runs.

In: a `Plan`. Out: an `EncodedPlan`: code, constants, and which of their words are addresses that
only the loader knows. `OPCODES` and the word layouts written down in `_Encoder` are the contract
with `devices/runtime/executor.py`.

A value is one word: `w >= 0` is slot `w`, `w < 0` is the constant that lies `-w` words before the
end of the constants. Values among which addresses of slots may be are 8 times that, and one more
where the address is meant. What is handed over by launches, calls and returns comes in groups of
`GROUP` words, of which the executor takes one at a time: the last word is said again until its
group is full. Jumps hold the index of a code word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pyrelay.errors import InvariantError
from pyrelay.lower.planning import instructions as plan_ir
from pyrelay.lower.planning.encoded import EncodedPlan
from pyrelay.lower.planning.instructions import Plan
from pyrelay.lower.planning.opcodes import CODE_BITS, GROUP, OPCODES

MAX_VALUES = 15
"""Values an error record holds beside its site."""

PART_WORDS = 6
"""Words that the executor hands to the threads that do `Parts`."""

TIME_WORDS = 2
"""Words of a time: seconds, and nanoseconds beside them."""

_NUMBERS = {name: number for number, name in enumerate(OPCODES)}


def encode(plan: Plan) -> EncodedPlan:
    """Lay a plan out as words.

    Raises InvariantError where the plan is not well formed: an unknown label, operation, slot,
    function, kernel or site, or counts that do not agree.
    """
    encoder = _Encoder(plan)
    for number in range(len(plan.functions)):
        encoder.function(number)
    return encoder.finish()


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise InvariantError(message)


def _grouped(words: list[int]) -> list[int]:
    """The words in whole groups: the last one is said again."""
    return words + words[-1:] * (-len(words) % GROUP)


class _Encoder:
    """The words written so far, and the places in them that wait for a later answer."""

    def __init__(self, plan: Plan) -> None:
        _expect(len(plan.functions) > 0, "A plan has at least its entry function.")
        self.plan = plan
        self.code: list[int] = []
        self.constants: dict[tuple[str, int], int] = {}
        self.kernel_words: list[tuple[int, int]] = []
        self.ufunc_words: list[tuple[int, int]] = []
        self.calls: list[tuple[int, int]] = []
        self.starts: list[int] = []
        self.scratch = sum(result.words for result in plan.results)
        self.parallel = False
        self.slots = 0
        self.labels: dict[str, int] = {}
        self.jumps: list[tuple[int, str]] = []
        self.writers: dict[type, Callable[[Any], None]] = {
            plan_ir.Launch: self.launch,
            plan_ir.Checked: self.checked,
            plan_ir.Label: self.label,
            plan_ir.Jump: lambda i: self.jump("jump", [], i.label),
            plan_ir.JumpIf: lambda i: self.jump("jump_if", [self.value(i.condition)], i.label),
            plan_ir.JumpUnless: lambda i: self.jump(
                "jump_unless", [self.value(i.condition)], i.label
            ),
            plan_ir.LoopNext: self.loop_next,
            plan_ir.Parts: self.parts,
            plan_ir.Call: self.call,
            plan_ir.Return: self.leave,
            plan_ir.TapePush: self.tape_push,
            plan_ir.TapePop: self.tape_pop,
            plan_ir.Raise: self.stop,
            plan_ir.HostCall: self.host_call,
            plan_ir.UfuncCall: self.ufunc_call,
            plan_ir.Stamp: self.stamp,
        }
        self.simple: dict[type, Callable[[Any], list[Any]]] = {
            plan_ir.Unary: lambda i: [i.op, i.target, i.a],
            plan_ir.Binary: lambda i: [i.op, i.target, i.a, i.b],
            plan_ir.Select: lambda i: ["select", i.target, i.condition, i.a, i.b],
            plan_ir.Poll: lambda i: ["poll"],
            plan_ir.PartEnd: lambda i: ["part_end"],
            plan_ir.Alloc: lambda i: [
                "alloc_passing" if i.passing else "alloc", i.target, i.nbytes
            ],
            plan_ir.Free: lambda i: ["free", i.address],
            plan_ir.Copy: lambda i: ["copy", i.target, i.source, i.nbytes],
            plan_ir.Zero: lambda i: ["zero", i.target, i.nbytes],
            plan_ir.Load: lambda i: [f"load.{i.kind}", i.target, i.address, i.index],
            plan_ir.Store: lambda i: [f"store.{i.kind}", i.address, i.index, i.value],
            plan_ir.TapeNew: lambda i: ["tape_new", i.target],
            plan_ir.TapePushBytes: lambda i: ["tape_push_bytes", i.tape, i.address, i.nbytes],
            plan_ir.TapePopBytes: lambda i: ["tape_pop_bytes", i.tape, i.address, i.nbytes],
            plan_ir.TapeFree: lambda i: ["tape_free", i.tape],
            plan_ir.Guard: lambda i: ["guard", i.condition],
        }

    # -- words

    def emit(self, op: str, words: Iterable[int] = ()) -> None:
        _expect(op in _NUMBERS, f"The executor has no operation {op!r}.")
        self.code.append(_NUMBERS[op])
        self.code.extend(words)

    def slot(self, index: int) -> int:
        _expect(0 <= index < self.slots, f"The frame has {self.slots} slots, no slot {index}.")
        return index

    def slot_list(self, indices: Sequence[int]) -> list[int]:
        return [self.slot(index) for index in indices]

    def value(self, operand: plan_ir.Operand) -> int:
        if isinstance(operand, plan_ir.Slot):
            return self.slot(operand.index)
        if isinstance(operand, plan_ir.Immediate):
            return self.constant("word", operand.word)
        if isinstance(operand, plan_ir.KernelAddress):
            self.kernel(operand.index)
            return self.constant("kernel", operand.index)
        if isinstance(operand, plan_ir.CodeOf):
            _expect(0 <= operand.index < len(self.plan.functions),
                    f"There is no function {operand.index}.")  # fmt: skip
            return self.constant("code", operand.index)
        _expect(isinstance(operand, plan_ir.Data), f"{operand} may stand in a launch only.")
        assert isinstance(operand, plan_ir.Data)
        _expect(0 <= operand.index < len(self.plan.arrays), f"There is no array {operand.index}.")
        return self.constant("data", operand.index)

    def addressed(self, operands: Sequence[plan_ir.Operand]) -> list[int]:
        """The words of operands that may be addresses of slots, in whole groups."""
        return _grouped([
            8 * self.slot(operand.index) + 1 if isinstance(operand, plan_ir.AddressOf)
            else 8 * self.value(operand) for operand in operands
        ])

    def values(self, operands: Sequence[plan_ir.Operand]) -> list[int]:
        self.scratch = max(self.scratch, len(operands))
        return [self.value(operand) for operand in operands]

    def constant(self, kind: str, word: int) -> int:
        return -1 - self.constants.setdefault((kind, word), len(self.constants))

    def site(self, number: int) -> int:
        _expect(0 <= number < len(self.plan.sites), f"There is no site {number}.")
        return number

    def kernel(self, number: int) -> int:
        _expect(0 <= number < len(self.plan.kernels), f"There is no kernel {number}.")
        return number

    # -- instructions

    def function(self, number: int) -> None:
        function = self.plan.functions[number]
        _expect(function.parameters <= function.slots, f"{function.name} needs more slots.")
        self.starts.append(len(self.code))
        self.slots, self.labels, self.jumps = function.slots, {}, []
        for instruction in function.code:
            kind = type(instruction)
            if kind in self.simple:
                op, *fields = self.simple[kind](instruction)
                self.emit(op, [self.slot(f) if isinstance(f, int) else self.value(f)
                               for f in fields])  # fmt: skip
            else:
                self.writers[kind](instruction)
        last = function.code[-1] if function.code else None
        _expect(isinstance(last, (plan_ir.Return, plan_ir.Raise, plan_ir.Jump)),
                f"{function.name} runs past its end.")  # fmt: skip
        for word, name in self.jumps:
            _expect(name in self.labels, f"{function.name} has no label {name!r}.")
            self.code[word] = self.labels[name]

    def label(self, instruction: plan_ir.Label) -> None:
        _expect(instruction.name not in self.labels, f"Label {instruction.name!r} stands twice.")
        self.labels[instruction.name] = len(self.code)

    def jump(self, op: str, words: list[int], label: str) -> None:
        self.emit(op, [*words, 0])
        self.jumps.append((len(self.code) - 1, label))

    def loop_next(self, instruction: plan_ir.LoopNext) -> None:
        step = self.constant("word", instruction.step)
        words = [self.slot(instruction.counter), step, self.value(instruction.limit)]
        self.jump("loop_up" if instruction.step > 0 else "loop_down", words, instruction.label)

    def parts(self, instruction: plan_ir.Parts) -> None:
        own = self.slot_list((instruction.first, instruction.end, instruction.inside))
        words = [*own, self.value(instruction.rows), self.value(instruction.work), self.slots]
        self.parallel, self.scratch = True, max(self.scratch, PART_WORDS)
        self.jump("parts", words, instruction.label)

    def launch(self, instruction: plan_ir.Launch) -> None:
        number = self.kernel(instruction.kernel)
        operands = self.addressed(instruction.operands)
        self.kernel_words.append((len(self.code) + 1, number))
        self.parallel = self.parallel or not instruction.serial
        self.scratch = max(self.scratch, 1 + len(operands))
        extent, cost = self.value(instruction.extent), self.value(instruction.cost)
        op = "launch_evenly" if instruction.evenly else "launch"
        op = "launch_serial" if instruction.serial else op
        begin = []
        if instruction.begin != plan_ir.Immediate(0):
            op, begin = f"{op}_part", [self.value(instruction.begin)]
        words = [number, extent, cost, instruction.first_site, len(operands) // GROUP, *begin]
        self.emit(op, [*words, *operands])

    def stamp(self, instruction: plan_ir.Stamp) -> None:
        self.scratch = max(self.scratch, TIME_WORDS)
        self.emit("stamp", [self.value(instruction.times), self.value(instruction.row)])

    def checked(self, instruction: plan_ir.Checked) -> None:
        target, site = self.slot(instruction.target), self.site(instruction.site)
        words = [target, self.value(instruction.a), self.value(instruction.b), site]
        self.emit(f"checked.{instruction.op}", words)

    def call(self, instruction: plan_ir.Call) -> None:
        _expect(0 <= instruction.function < len(self.plan.functions),
                f"There is no function {instruction.function}.")  # fmt: skip
        callee = self.plan.functions[instruction.function]
        arguments = self.values(instruction.arguments)
        _expect(
            len(arguments) == callee.parameters,
            f"{callee.name} takes {callee.parameters} words, not {len(arguments)}.",
        )
        self.calls.append((len(self.code) + 1, instruction.function))
        given, results = _grouped(arguments), _grouped(self.slot_list(instruction.results))
        room = max(callee.slots, len(given))
        self.emit("call", [0, self.slots, room, len(given) // GROUP, *given,
                           len(results) // GROUP, *results])  # fmt: skip

    def leave(self, instruction: plan_ir.Return) -> None:
        values = _grouped(self.values(instruction.values))
        self.scratch = max(self.scratch, len(values))
        self.emit("return", [len(values) // GROUP, *values])

    def tape_push(self, instruction: plan_ir.TapePush) -> None:
        values = self.values(instruction.values)
        self.emit("tape_push", [self.value(instruction.tape), len(values), *values])

    def tape_pop(self, instruction: plan_ir.TapePop) -> None:
        targets = self.slot_list(instruction.targets)
        self.emit("tape_pop", [self.value(instruction.tape), len(targets), *targets])

    def stop(self, instruction: plan_ir.Raise) -> None:
        _expect(len(instruction.values) <= MAX_VALUES, "An error takes at most 15 values.")
        values = self.values(instruction.values)
        self.emit("raise", [self.site(instruction.site), len(values), *values])

    def host_call(self, instruction: plan_ir.HostCall) -> None:
        _expect(0 <= instruction.host < len(self.plan.hosts),
                f"There is no host function {instruction.host}.")  # fmt: skip
        arguments = self.values(instruction.arguments)
        results = self.slot_list(instruction.results)
        self.scratch = max(self.scratch, len(arguments) + len(results))
        self.emit("host_call", [instruction.host, len(arguments), len(results),
                                *arguments, *results])  # fmt: skip

    def ufunc_call(self, instruction: plan_ir.UfuncCall) -> None:
        _expect(0 <= instruction.ufunc < len(self.plan.ufuncs),
                f"There is no ufunc {instruction.ufunc}.")  # fmt: skip
        arrays = len(instruction.arrays)
        words = self.addressed((*instruction.arrays, *instruction.extents, *instruction.steps))
        self.ufunc_words.append((len(self.code) + 1, instruction.ufunc))
        self.scratch = max(self.scratch, len(words))
        before_steps = arrays + len(instruction.extents)
        self.emit("ufunc_call", [0, 0, self.slot(instruction.target), arrays, before_steps,
                                 len(words) // GROUP, *words])  # fmt: skip

    def finish(self) -> EncodedPlan:
        plan = self.plan
        entry = plan.functions[0]
        words = sum(parameter.words for parameter in plan.parameters)
        _expect(entry.parameters == words, f"The entry takes {entry.parameters} words; its "
                f"parameters fill {words}.")  # fmt: skip
        for word, number in self.calls:
            self.code[word] = self.starts[number]
        constants = np.zeros(len(self.constants), np.int64)
        addresses: dict[str, list[tuple[int, int]]] = {"data": [], "kernel": []}
        for (kind, word), place in self.constants.items():
            if kind in addresses:
                addresses[kind].append((len(constants) - 1 - place, word))
                continue
            if kind == "code":
                word = plan.functions[word].slots << CODE_BITS | self.starts[word]
            constants[len(constants) - 1 - place] = word
        return EncodedPlan(
            np.array(self.code, np.int64), constants, tuple(self.kernel_words),
            tuple(addresses["data"]), entry.slots, self.scratch, self.parallel, plan.kernels,
            plan.sites, plan.arrays, plan.parameters, plan.results, plan.single, plan.hosts,
            tuple(addresses["kernel"]), plan.ufuncs, tuple(self.ufunc_words),
        )  # fmt: skip
