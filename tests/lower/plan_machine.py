"""Plans run slowly and strictly: a plain interpreter of instructions that watches the memory.

Kernels are the compiled ones. Freed memory is filled with garbage and never given out again, so
reading it changes results; freeing twice, freeing what was not allocated, and forgetting to free
are errors. Only arguments that the plan may write (`writeable`) may be freed without effect.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from typing import Any

import numpy as np

from pyrelay.devices.compiler import native
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning import instructions as ins

MASK = 2**64
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_NEVER_STOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda process: 0)


def signed(word: int) -> int:
    word %= MASK
    return word - MASK if word >= MASK // 2 else word


def to_float(word: int) -> float:
    return struct.unpack("<d", struct.pack("<q", word))[0]


def of_float(value: float) -> int:
    return struct.unpack("<q", struct.pack("<d", value))[0]


def to_single(word: int) -> Any:
    return np.float32(struct.unpack("<f", struct.pack("<q", word)[:4])[0])


def of_single(value: Any) -> int:
    return struct.unpack("<q", struct.pack("<fxxxx", value))[0]


_INTEGER = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max,
    "floordiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}
_COMPARE = {
    "lt": operator.lt, "le": operator.le, "eq": operator.eq, "ne": operator.ne,
    "gt": operator.gt, "ge": operator.ge,
}
_REAL = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
_READ = {"i64": int, "f64": to_float, "f32": to_single}
_WRITE = {"i64": signed, "f64": of_float, "f32": of_single}
_UNARY: dict[str, Any] = {
    "move": lambda a: a, "not": lambda a: int(not a), "neg.i64": lambda a: signed(-a),
    "neg.f64": lambda a: of_float(-to_float(a)), "i64_to_f64": lambda a: of_float(float(a)),
    "i64_to_f32": lambda a: of_single(a), "f64_to_f32": lambda a: of_single(to_float(a)),
    "f32_to_f64": lambda a: of_float(float(to_single(a))), "i64_to_bool": lambda a: int(a != 0),
    "abs.i64": abs, "abs.f64": lambda a: of_float(abs(to_float(a))),
    "sqrt.f64": lambda a: of_float(float(np.sqrt(to_float(a)))),
    "f64_to_bool": lambda a: int(to_float(a) != 0),
}


class StoppedError(Exception):
    """The plan raised: site and words."""


class Machine:
    """Runs one plan once."""

    def __init__(self, plan: ins.Plan) -> None:
        self.plan = plan
        self.live: dict[int, np.ndarray] = {}
        self.dead: list[np.ndarray] = []  # kept, so that no address comes twice
        self.lent: set[int] = set()
        self.tapes: dict[int, list[list[int]]] = {}
        self.steps = 0
        self.copied = 0  # bytes
        self.kernels = [_KERNEL(native.kernel_address(k.source)) for k in plan.kernels]

    # -- memory --------------------------------------------------------------------------------

    def alloc(self, nbytes: int) -> int:
        assert nbytes >= 0
        memory = np.full(nbytes + 8, 0xA5, np.uint8)
        address = memory.ctypes.data
        self.live[address] = memory
        return address

    def free(self, address: int) -> None:
        if address in self.lent:
            return
        assert address in self.live, "freed what is not allocated"
        memory = self.live.pop(address)
        memory.fill(0xEE)
        self.dead.append(memory)

    # -- running -------------------------------------------------------------------------------

    def run(self, args: tuple[Any, ...]) -> list[Any]:
        """The words of the results, as arrays and numbers; checks that nothing is left over."""
        words: list[int] = []
        for parameter, arg in zip(self.plan.parameters, args, strict=True):
            if isinstance(parameter, boundary.ArrayParameter):
                words += [arg.ctypes.data, *arg.shape]
                if parameter.writeable:
                    self.lent.add(arg.ctypes.data)
            else:
                words += _scalar_words(parameter.kind, arg)
        rest = self.call(words)
        results = []
        for result in self.plan.results:
            count = result.words
            results.append(self._result(result, rest[:count]))
            rest = rest[count:]
        assert not self.live, f"{len(self.live)} buffers were never freed"
        assert not self.tapes, "a tape was never freed"
        return results

    def _result(self, result: Any, words: list[int]) -> Any:
        if isinstance(result, boundary.ArrayResult):
            address, *shape = words
            memory = self.live.pop(address)
            dtype = np.dtype(result.dtype)
            size = int(np.prod(shape, dtype=int)) * dtype.itemsize
            return memory[:size].view(dtype).reshape(shape).copy()
        return _scalar_value(result.kind, words)

    def call(self, words: list[int]) -> list[int]:
        """Run function 0 on the plan's own stack of frames."""
        stack: list[list[Any]] = [self._frame(0, words)]
        while True:
            frame = stack[-1]
            code, slots, at, labels, _ = frame
            frame[2] += 1
            self.steps += 1
            step = code[at]
            match step:
                case ins.Call(function, arguments, results):
                    values = [self.value(a, slots) for a in arguments]
                    stack.append(self._frame(function, values))
                    stack[-1][4] = results
                case ins.Return(values=values):
                    found = [self.value(v, slots) for v in values]
                    stack.pop()
                    if not stack:
                        return found
                    for slot, word in zip(frame[4], found, strict=True):
                        stack[-1][1][slot] = word
                case ins.Jump(label=label):
                    frame[2] = labels[label]
                case ins.JumpIf(condition=c, label=label):
                    if self.value(c, slots):
                        frame[2] = labels[label]
                case ins.JumpUnless(condition=c, label=label):
                    if not self.value(c, slots):
                        frame[2] = labels[label]
                case ins.LoopNext():
                    self.next_round(step, frame)
                case ins.Parts(rows=rows, label=label):
                    self.parts(step, frame, self.value(rows, slots))
                    frame[2] = labels[label]
                case _:
                    self.simple(step, slots)

    def next_round(self, step: ins.LoopNext, frame: list[Any]) -> None:
        slots = frame[1]
        slots[step.counter] = int(slots[step.counter]) + step.step
        if slots[step.counter] < self.value(step.limit, slots):
            frame[2] = frame[3][step.label]

    def parts(self, step: ins.Parts, frame: list[Any], rows: int) -> None:
        """Two parts, one after the other, the last rows first."""
        given = frame[1].copy()
        for first, end in ((rows // 2, rows), (0, rows // 2)):
            slots = given.copy()
            slots[[step.first, step.end, step.inside]] = first, end, 1
            part = [frame[0], slots, frame[2], frame[3]]
            while True:
                part[2] += 1
                match part[0][part[2] - 1]:
                    case ins.PartEnd():
                        break
                    case ins.LoopNext() as each:
                        self.next_round(each, part)
                    case ins.JumpUnless(condition=c):
                        assert self.value(c, slots), "a part leaves before its end"
                    case ins.Alloc() | ins.Free() | ins.Copy():
                        raise AssertionError("a part moves what all parts share")
                    case each:
                        self.simple(each, slots)
        frame[1][:] = slots

    def _frame(self, number: int, words: list[int]) -> list[Any]:
        function = self.plan.functions[number]
        assert len(words) == function.parameters
        slots = np.full(function.slots, -(2**40) + 1, np.int64)
        slots[: len(words)] = [signed(word) for word in words]
        labels = {s.name: k for k, s in enumerate(function.code) if isinstance(s, ins.Label)}
        return [function.code, slots, 0, labels, ()]

    def value(self, operand: Any, slots: Any) -> int:
        match operand:
            case ins.Slot(index=k):
                return int(slots[k])
            case ins.Immediate(word=w):
                return w
            case ins.AddressOf(index=k):
                return slots.ctypes.data + 8 * k
        raise AssertionError(operand)

    def simple(self, step: Any, slots: Any) -> None:
        """An instruction that goes on to the next one."""

        def value(operand: Any) -> int:
            return self.value(operand, slots)

        match step:
            case ins.Launch():
                self.launch(step, slots)
            case ins.Unary(op, target, a):
                slots[target] = _UNARY[op](value(a))
            case ins.Binary(op, target, a, b):
                slots[target] = binary(op, value(a), value(b))
            case ins.Checked(op, target, a, b, site):
                slots[target] = self.checked(op, value(a), value(b), site)
            case ins.Select(target, condition, a, b):
                slots[target] = value(a) if value(condition) else value(b)
            case ins.Alloc(target, nbytes):
                slots[target] = self.alloc(value(nbytes))
            case ins.Free(address=a):
                self.free(value(a))
            case ins.Copy(target, source, nbytes):
                self.copied += value(nbytes)
                ctypes.memmove(value(target), value(source), value(nbytes))
            case ins.Load(kind, target, address, index):
                dtype = _element(kind)
                at = value(address) + value(index) * dtype.itemsize
                found = ctypes.string_at(at, dtype.itemsize)
                slots[target] = int(np.frombuffer(found, dtype)[0])
            case ins.Store(kind, address, index, word):
                size = _element(kind).itemsize
                data = (value(word) % MASK).to_bytes(8, "little")[:size]
                ctypes.memmove(value(address) + value(index) * size, data, size)
            case ins.TapeNew(target):
                handle = 10**6 + len(self.tapes) + self.steps
                self.tapes[handle] = []
                slots[target] = handle
            case ins.TapePush(tape, values):
                self.tapes[value(tape)].append([value(v) for v in values])
            case ins.TapePop(tape, targets):
                for slot, word in zip(targets, self.tapes[value(tape)].pop(), strict=True):
                    slots[slot] = word
            case ins.TapeFree(tape):
                assert not self.tapes.pop(value(tape)), "a tape was freed with values on it"
            case ins.Raise(site, values):
                raise StoppedError(site, [value(v) for v in values])
            case ins.HostCall(host, arguments, targets):
                found = self.plan.hosts[host]([value(a) for a in arguments])
                for slot, word in zip(targets, found, strict=True):
                    slots[slot] = word
            case ins.Guard(condition):
                assert value(condition), "a guard failed"
            case ins.Label() | ins.Poll():
                pass
            case _:
                raise AssertionError(step)

    def checked(self, op: str, a: int, b: int, site: int) -> int:
        if op == "index":
            if not -b <= a < b:
                raise StoppedError(site, [a, b])
            return a + b if a < 0 else a
        if op == "div.f64":
            if to_float(b) == 0:
                raise StoppedError(site, [a, b])
            return binary(op, a, b)
        exact = _INTEGER[op.removesuffix(".i64")](a, b)
        if exact != signed(exact):
            raise StoppedError(site, [a, b])
        return int(exact)

    def launch(self, step: ins.Launch, slots: Any) -> None:
        begin, extent = self.value(step.begin, slots), self.value(step.extent, slots)
        record = np.zeros(18, np.int64)
        record[16] = ctypes.cast(_NEVER_STOP, ctypes.c_void_p).value
        words = [record.ctypes.data, *(self.value(o, slots) for o in step.operands)]
        block = np.array(words, np.int64)
        kernel = self.kernels[step.kernel]
        if begin < extent and kernel(block.ctypes.data, begin, extent):
            raise StoppedError(step.first_site + int(record[0]), record[1:].tolist())


def binary(op: str, a: int, b: int) -> int:
    name, kind = op.split(".")
    x, y = _READ[kind](a), _READ[kind](b)
    if name in _COMPARE:
        return int(_COMPARE[name](x, y))
    table = _INTEGER if kind == "i64" else _REAL
    return _WRITE[kind](table[name](x, y))


def _element(kind: str) -> np.dtype:
    return np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")


def _scalar_words(kind: str, value: Any) -> list[int]:
    if kind in ("complex", "complex128"):
        return [of_float(complex(value).real), of_float(complex(value).imag)]
    if kind in ("float", "float64"):
        return [of_float(float(value))]
    return [of_single(value)] if kind == "float32" else [int(value)]


def _scalar_value(kind: str, words: list[int]) -> Any:
    if kind in ("complex", "complex128"):
        number = complex(to_float(words[0]), to_float(words[1]))
        return number if kind == "complex" else np.complex128(number)
    if kind in ("float", "float64"):
        number = to_float(words[0])
        return number if kind == "float" else np.float64(number)
    if kind == "float32":
        return to_single(words[0])
    if kind in ("int", "bool"):
        return bool(words[0]) if kind == "bool" else words[0]
    word = words[0] % MASK if kind == "uint64" else words[0]
    return np.dtype(kind.rstrip("_")).type(word)
