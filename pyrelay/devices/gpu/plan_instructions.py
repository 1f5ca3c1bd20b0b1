"""The instructions of a plan as Python, one by one.

In: instructions of a function of a plan. Out: lines that `plan_python` puts together, with what
they refer to entered into the plan's launches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.plan_launches import Launched, Launches, LaunchWriter
from pyrelay.devices.gpu.stretches import is_computed
from pyrelay.devices.gpu.word_texts import computing
from pyrelay.devices.gpu.word_texts import operands_of as scalars_of
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Launch, Slot

_WRAPPED = {"add.i64": "+", "sub.i64": "-", "mul.i64": "*"}
_CHOSEN = {"min.i64": "<", "max.i64": ">"}
_COMPARED = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}


class PlanLaunches(Launches):
    """What the functions of a plan have in common.

    generators: which of them recurse. may_fail: whether anything may raise. stays, arrays: those of
    `PlanCode`. fails: whether the device computes something that is checked.
    """

    def __init__(self, generators: Sequence[bool], may_fail: bool) -> None:
        super().__init__()
        self.generators, self.may_fail = tuple(generators), may_fail
        self.stays: list[int | None] = []
        self.arrays: dict[str, int] = {"": 0}
        self.fails = False


class InstructionWriter(LaunchWriter):
    """Writes instructions of a function.

    place: the number of the block that is written. kept: text of the slots that rounds of a loop
    change. guessed: the number of each branch that may be guessed, by its `id`. made_here: the
    slots of arrays that the function allocates.
    """

    shared: PlanLaunches
    made_here: frozenset[int]
    guessed: Mapping[int, int]
    kept: str
    place: int

    @abstractmethod
    def _jump(self, label: str) -> str:
        """Text that goes on at a label."""

    # -- instructions --------------------------------------------------------------------------

    def _instruction(self, step: ins.Instruction) -> None:
        match step:
            case Launch():
                self._launch(step)
            case _ if self._is_computed(step):
                self._computed(step)
            case ins.Unary(op, target, a):
                value = self._word(a) if op == "move" else self._known(a)
                self._line(f"s{target} = " + (value if op == "move" else f"unary[{op!r}]({value})"))
            case ins.Binary(op, target, a, b):
                self._binary(op, target, self._known(a), self._known(b))
            case ins.Checked(op, target, a, b, site):
                x, y = self._known(a), self._known(b)
                self._line(f"found = checked[{op!r}]({x}, {y})")
                self._line(f"if found is None: {self._stop(site, f'{x}, {y}')}")
                self._line(f"s{target} = found")
            case ins.Select(target, condition, a, b):
                c = self._known(condition)
                self._line(f"s{target} = {self._word(a)} if {c} else {self._word(b)}")
            case ins.Jump(label):
                self._line(self._jump(label))
            case ins.JumpIf(condition, label):
                self._line(f"if {self._condition(step, condition)}: {self._jump(label)}")
            case ins.JumpUnless(condition, label):
                self._line(f"if not {self._condition(step, condition)}: {self._jump(label)}")
            case ins.LoopNext(counter, by, limit, label):
                known, sign = self._known(limit), "<" if by > 0 else ">"
                self._known(Slot(counter))
                self._line(f"s{counter} += {by}")
                self._line(f"if s{counter} {sign} {known}: {self._jump(label)}")
            case ins.Call(function, arguments, results):
                self._call(function, arguments, results)
            case ins.Return(values):
                words = "".join(f"{self._word(v)}, " for v in values)
                self._settle()
                self._line(f"return ({words})")
            case ins.Raise(site, values):
                self._line(self._stop(site, "".join(f"{self._known(v)}, " for v in values)))
            case ins.Guard(condition):
                self._line(f"if not {self._known(condition)}: raise Mismatched")
            case ins.HostCall(host, arguments, results):
                self._host_call(host, arguments, results)
            case ins.Label() | ins.Poll():
                pass
            case _:
                self._memory(step)

    # -- scalars of the device -----------------------------------------------------------------

    def _is_computed(self, step: Any) -> bool:
        if isinstance(step, ins.Unary) and step.op == "move":
            return False
        return is_computed(step, self.on_device)

    def _computed(self, step: Any) -> None:
        """A scalar made of others, by the device unless the host knows them all."""
        base = 0
        if isinstance(step, ins.Checked):
            base, self.shared.fails = step.site, True
        number = self.launches.library(computing(step), base)
        read = scalars_of(step)
        words = [self._word(o) for o in read]
        unknown = [
            w for w, o in zip(words, read, strict=True)
            if isinstance(o, Slot) and o.index in self.on_device
        ]
        known = " is ".join(f"type({w})" for w in dict.fromkeys(unknown))
        self._line(f"if {known} is int:")
        lines, self.lines = self.lines, []
        on_device, self.on_device = self.on_device, frozenset()
        self._instruction(step)
        self.on_device = on_device
        self.lines = [*lines, *(f"    {line}" for line in self.lines)]
        self._line(f"else: s{step.target} = run.computed({number}, {', '.join(words)})")

    def _condition(self, step: Any, condition: Any) -> str:
        """What a branch asks: where it may be guessed, that is done."""
        if id(step) not in self.guessed:
            return self._known(condition)
        word = self._word(condition)
        guess = f"run.guess({self.guessed[id(step)]}, {word}, {self.place}, ({self.kept}))"
        return f"({word} if type({word}) is int else {guess})"

    def _settle(self) -> None:
        """Nothing is guessed behind this."""
        if self.guessed:
            self._line("run.settle()")

    def _stop(self, site: int, words: str) -> str:
        settled = "run.settle(); " if self.guessed else ""
        return f"{settled}raise Stopped({site}, ({words}))"

    def _push(self, tape: Any, pushed: str) -> None:
        if self.guessed:
            self._line(f"run.push({self._word(tape)}, {pushed})")
        else:
            self._line(f"{self._word(tape)}.append({pushed})")

    def _memory(self, step: ins.Instruction) -> None:
        match step:
            case ins.Alloc(target, nbytes, array):
                number = self.shared.arrays.setdefault(array, len(self.shared.arrays))
                self._line(f"s{target} = run.allocate({self._known(nbytes)}, {number})")
            case ins.Free(address):
                self._line(f"run.free({self._known(address)})")
            case ins.Copy(target, source, nbytes):
                self._copy(target, *(self._known(each) for each in (target, source, nbytes)))
            case ins.Zero(target, nbytes):
                self._line(f"run.zero({self._known(target)}, {self._known(nbytes)})")
            case ins.Load(kind, target, address, index):
                given = [self._known(address), self._known(index)]
                number = self.launches.library(cuda_library.element_read(kind))
                self._line(f"s{target} = run.load({number}, {', '.join(given)})")
            case ins.Store(kind, address, index, value):
                given = [self._known(address), self._known(index), self._word(value)]
                number = self.launches.library(cuda_library.element_write(kind))
                self._line(f"run.store({number}, {', '.join(given)})")
            case ins.TapeNew(target):
                self._line(f"s{target} = []")
            case ins.TapePush(tape, values):
                words = "".join(f"{self._word(v)}, " for v in values)
                self._push(tape, f"({words})")
            case ins.TapePop(tape, targets):
                slots = "".join(f"s{k}, " for k in targets)
                self._settle()
                pop = f"{self._word(tape)}.pop()"
                self._line(f"({slots}) = {pop}" if slots else pop)
            case ins.TapePushBytes(tape, address, nbytes):
                given = [self._known(address), self._known(nbytes)]
                self._push(tape, f"run.kept({', '.join(given)})")
            case ins.TapePopBytes(tape, address, nbytes):
                given = [self._known(address), self._known(nbytes)]
                self._settle()
                self._line(f"run.restore({self._word(tape)}.pop(), {', '.join(given)})")
            case ins.TapeFree():
                pass  # a list
            case _:
                raise AssertionError(step)

    def _copy(self, place: Any, target: str, source: str, nbytes: str) -> None:
        """Bytes copied; to an argument by a kernel where something may have failed, as the driver
        would copy what has not been computed."""
        if not (self.shared.may_fail and self._is_given(place)):
            self._line(f"run.copy({target}, {source}, {nbytes})")
            return
        number = self.launches.launched(Launched(self.launches.late_text(cuda_library.COPY), -1, 0))
        self._line(f"if {source} and {target} != {source}:")
        self._line(f"    run.launch({number}, -(-{nbytes} // 8), ({target}, {source}, {nbytes}))")

    def _is_given(self, place: Any) -> bool:
        """Whether an array may be one of the caller's."""
        return isinstance(place, Slot) and place.index not in self.made_here

    def _binary(self, op: str, target: int, a: str, b: str) -> None:
        name, kind = op.split(".")
        if op in _WRAPPED:
            text = f"({a} {_WRAPPED[op]} {b} + H & M) - H"
        elif kind == "i64" and name in _COMPARED:
            text = f"1 if {a} {_COMPARED[name]} {b} else 0"
        elif op in _CHOSEN:
            text = f"{a} if {a} {_CHOSEN[op]} {b} else {b}"
        elif op == "floordiv.i64" and b.isdigit() and b != "0":
            text = f"{a} // {b}"
        else:
            text = f"binary[{op!r}]({a}, {b})"
        self._line(f"s{target} = {text}")

    def _call(self, function: int, arguments: Sequence[Any], results: Sequence[int]) -> None:
        slots = "".join(f"s{k}, " for k in results)
        words = "".join(f", {self._word(a)}" for a in arguments)
        self._settle()
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
