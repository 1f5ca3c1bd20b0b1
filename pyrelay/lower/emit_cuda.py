"""Kernel IR to source text in CUDA C++.

In: a `Kernel`. Out: the text of `extern "C" __global__ void kernel(record, first, last, ...)` and
of the routines that it calls, to stand behind `devices.cuda_prelude`. Parameters stand in the order
of the kernel's block: arrays and slots as pointers, scalars and extents by value.

Each thread takes positions of the parallel axis a whole grid apart and runs the kernel for the
range from one to the next. Kernels do not rely on that range being longer: whatever splits it gives
the same result. Where `cooperation` finds loops to share, a block of `BLOCK_THREADS` does that
instead: each thread takes its rounds of those loops, and the first one alone stores what lies
between them. As in `emit_numba`, scalars that are used once become part of the expression that
uses them, and the text holds no name of the user's.

All indices have 64 bits, as the kernel IR's integers do: what is an index there and what is a
number of the user's program cannot be told apart.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyrelay.ir.types import DType
from pyrelay.lower.cooperation import BLOCK_THREADS, Cooperation, cooperation
from pyrelay.lower.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    ROW,
    SCALAR,
    SCRATCH,
    SLOT,
    Array,
    Assign,
    Body,
    Break,
    Call,
    Compute,
    Fail,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Read,
    Routine,
    Statement,
    Store,
    While,
    bodies,
    operands,
    statements,
)
from pyrelay.lower.reductions import identity
from pyrelay.ops.scalar import SCALARS

DEEPEST_CALLS = 256
"""Nested calls of routines; the stack of a GPU's thread is short, and the plan takes over."""

_LARGEST_EXPRESSION = 8  # operations in one statement
_PREFIX = {ARRAY: "a", SCALAR: "s", EXTENT: "n", OUTPUT: "o", SLOT: "r", SCRATCH: "t", ROW: "w"}
_WIDTH = 96


def emit(kernel: Kernel, on_device: frozenset[Parameter] = frozenset()) -> str:
    """The kernel's source text. It finds the scalars of `on_device` by their addresses, where an
    earlier kernel left them."""
    names = _parameter_names(kernel)
    printers = [_Printer(kernel, names, routine) for routine in kernel.routines]
    parts = [f"{_routine_head(n, p.signature())};\n" for n, p in enumerate(printers)]
    parts += [f"{_routine_head(n, p.signature())} {p.text()}" for n, p in enumerate(printers)]
    shared = cooperation(kernel)
    if shared is not None:
        parts.append(f"#define BLOCK_THREADS {BLOCK_THREADS}")
    taken = tuple(
        f"const {p.dtype.name} {names[p]} = pyrelay_words<{p.dtype.name}>::read({names[p]}_at);"
        for p in kernel.parameters if p in on_device
    )
    body = _Printer(kernel, names, shared=shared, taken=taken).text()
    parts.append(_kernel_head(kernel, names, on_device) + body)
    return "\n".join(parts)


def _parameter_names(kernel: Kernel) -> dict[Parameter, str]:
    counts: dict[str, int] = {}
    names: dict[Parameter, str] = {}
    for parameter in kernel.parameters:
        prefix = _PREFIX[parameter.role]
        names[parameter] = f"{prefix}{counts.get(prefix, 0)}"
        counts[prefix] = counts.get(prefix, 0) + 1
    return names


def stored(kernel: Kernel) -> set[Array]:
    """The arrays that a kernel writes."""
    return {s.array for s in statements(kernel.body) if isinstance(s, Store)}


def _kernel_head(
    kernel: Kernel, names: dict[Parameter, str], on_device: frozenset[Parameter]
) -> str:
    written = stored(kernel)
    declared = ["pyrelay_record *record", "i64 launch", "i64 first", "i64 last"]
    for parameter, name in names.items():
        kind = parameter.dtype.name
        if parameter in on_device:
            declared.append(f"const i64 *{name}_at")
        elif parameter.role in (SCALAR, EXTENT):
            declared.append(f"{kind} {name}")
        elif parameter.role == SLOT:
            declared.append(f"i64 *{name}")
        else:
            declared.append(f"Buffer<{kind if parameter in written else 'const ' + kind}> {name}")
    return _head('extern "C" __global__ void kernel', declared)


def _routine_head(number: int, declared: Sequence[str]) -> str:
    return _head(f"__device__ int routine{number}", declared).rstrip()


def _head(start: str, declared: Sequence[str]) -> str:
    line = f"{start}({', '.join(declared)}) "
    if len(line) <= _WIDTH:
        return line
    listed = textwrap.wrap(", ".join(declared), _WIDTH - 4, break_long_words=False)
    return start + "(\n    " + "\n    ".join(listed) + "\n) "


# -- numbers -------------------------------------------------------------------------------------


def literal(value: object, dtype: DType) -> str:
    """A number as C++ text of exactly its dtype."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        number = complex(value)  # type: ignore[call-overload]
        part = np.float32 if dtype.size == 8 else np.float64
        return f"{dtype.name}({_float(number.real, part)}, {_float(number.imag, part)})"
    if dtype.kind == "f":
        return _float(float(value), dtype.numpy.type)  # type: ignore[arg-type]
    number = int(value)  # type: ignore[call-overload]
    if dtype.size < 8:
        return f"{dtype.name}({number})"
    if dtype.kind == "u":
        return f"{number}ull"
    if number == -(2**63):
        return "(-9223372036854775807ll - 1)"
    return f"({number}ll)" if number < 0 else f"{number}ll"


def _float(value: float, kind: type) -> str:
    single = kind is np.float32
    with np.errstate(over="ignore"):
        short = str(np.float32(value)) if single else repr(float(value))
    text = {"inf": "PYRELAY_INFINITY", "-inf": "-PYRELAY_INFINITY", "nan": "PYRELAY_NAN"}.get(short)
    if text is not None:
        return f"f32({text})" if single else f"({text})"
    short += "" if "." in short or "e" in short else ".0"
    return f"({short}{'f' * single})" if short.startswith("-") else short + "f" * single


# -- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Held:
    """An expression that waits for the one statement that uses it."""

    text: str
    weight: int
    variables: frozenset[Local]
    memory: bool


class _Printer:
    """Prints a kernel, or one of its routines."""

    def __init__(
        self, kernel: Kernel, parameters: dict[Parameter, str], routine: Routine | None = None,
        shared: Cooperation | None = None, taken: Sequence[str] = (),
    ) -> None:
        self.shared, self.taken = shared, taken
        self.alone = False  # in a shared loop, where each thread does rounds of its own
        self.kernel, self.routine, self.parameters = kernel, routine, parameters
        self.body = kernel.body if routine is None else routine.body
        self.results = () if routine is None else routine.results
        self.names: dict[Local | LocalArray, str] = {kernel.begin: "begin", kernel.end: "end"}
        self.counts: dict[str, int] = {}
        self.out = io.StringIO()
        self.held: dict[Local, _Held] = {}
        self.users: dict[Local, list[int]] = {}
        self.declared: list[str] = []
        if routine is not None:
            for number, local in enumerate(routine.params):
                self.names[local] = f"p{number}"
        self._find_users()
        self._declare()

    def _find_users(self) -> None:
        """Notes, per scalar, the bodies that read it: a body is known by the id of its tuple."""
        for operand in self.results:
            if isinstance(operand, Local):
                self.users.setdefault(operand, []).append(id(self.results))
        waiting = [self.body]
        while waiting:
            here = waiting.pop()
            for statement in here:
                for operand in operands(statement):
                    if isinstance(operand, Local):
                        self.users.setdefault(operand, []).append(id(here))
                waiting += bodies(statement)

    def _declare(self) -> None:
        """Declares in front of everything what C++ would not see where it is used: variables,
        and scalars that are read outside of the body that computes them."""
        inside: dict[int, set[int]] = {}
        waiting: list[tuple[Body, tuple[int, ...]]] = [(self.body, ())]
        homes: list[tuple[Local, int]] = []
        while waiting:
            here, around = waiting.pop()
            path = (*around, id(here))
            for each in path:
                inside.setdefault(each, set()).add(id(here))
            for statement in here:
                homes += [(local, id(here)) for local in _defined(statement)]
                waiting += [(body, path) for body in bodies(statement)]
        for local, home in homes:
            if local in self.names:
                continue
            outside = any(user not in inside[home] for user in self.users.get(local, ()))
            if local.variable or outside:
                name = self._named(local, "v")
                self.declared.append(f"{local.dtype.name} {name};")
        for statement in statements(self.body):
            array = getattr(statement, "array", None)
            if isinstance(array, LocalArray) and array not in self.names:
                name = self._named(array, "c")
                self.declared.append(f"{array.dtype.name} {name}[{array.size}];")
        self.loops = any(map(_is_of_the_program, statements(self.body)))
        self.hoisted = set(self.names)

    def _named(self, thing: Local | LocalArray, prefix: str) -> str:
        if thing not in self.names:
            number = self.counts.get(prefix, 0)
            self.counts[prefix] = number + 1
            self.names[thing] = f"{prefix}{number}"
        return self.names[thing]

    # -- the function --------------------------------------------------------------------------

    def signature(self) -> list[str]:
        """The parameters of a routine."""
        assert self.routine is not None
        found = ["pyrelay_record *record", "pyrelay_calls &calls"]
        found += [f"{p.dtype.name} {self.names[p]}" for p in self.routine.params]
        return found + [
            f"{r.dtype.name} &result{k}" for k, r in enumerate(self.routine.results)
        ]

    def text(self) -> str:
        """The function's body, in braces."""
        if self.routine is None:
            return "{\n" + self._kernel() + "}\n"
        self._line(f"if (++calls.depth > {DEEPEST_CALLS}) return -1;", 1)
        self._line("if (pyrelay_stopped(record, calls.rounds)) return 1;", 1)
        for each in self.declared:
            self._line(each, 1)
        self._body(self.body, 1)
        for number, result in enumerate(self.results):
            self._line(f"result{number} = {self._take(result, 0, 1).text};", 1)
        self._line("calls.depth--;", 1)
        self._line("return 0;", 1)
        return "{\n" + self.out.getvalue() + "}\n"

    def _kernel(self) -> str:
        thread = "(i64)blockIdx.x * blockDim.x + threadIdx.x"
        step = "(i64)gridDim.x * blockDim.x"
        if self.shared is not None:
            thread, step = "blockIdx.x", "gridDim.x"
        if self.loops:
            self._line("int rounds = 0;", 1)
        self._line("if (pyrelay_over(record, launch)) return;", 1)
        for each in self.taken:
            self._line(each, 1)
        self._line(f"for (i64 begin = first + {thread};", 1)
        self._line(f"     begin < last; begin += {step}) {{", 1)
        ranged = [s for s in statements(self.body) if self.kernel.end in operands(s)]
        if not all(isinstance(s, For) and self._is_whole(s) for s in ranged):
            self._line("const i64 end = begin + 1;", 2)
        if self.kernel.routines:
            self._line("pyrelay_calls calls = {0, 0, launch};", 2)
        for each in self.declared:
            self._line(each, 2)
        self._body(self.body, 2)
        self._line("}", 1)
        return self.out.getvalue()

    def _line(self, text: str, depth: int) -> None:
        self.out.write("    " * depth + text + "\n")

    def _body(self, body: Body, depth: int) -> None:
        for statement in body:
            if isinstance(statement, (Compute, Load)):
                self._define(statement, body, depth)
            elif isinstance(statement, Read):
                self.names[statement.out] = self.parameters[statement.parameter]
            else:
                self._act(statement, depth)
        self._flush(depth)

    # -- expressions ---------------------------------------------------------------------------

    def _define(self, statement: Compute | Load, body: Body, depth: int) -> None:
        local = statement.out
        taken = [self._take(o, _LARGEST_EXPRESSION, depth) for o in operands(statement)]
        texts = [t.text for t in taken]
        loads = isinstance(statement, Load)
        if isinstance(statement, Load):
            text = f"{self._array(statement.array)}[{_bare(texts[0])}]"
        else:
            dtype = local.dtype if statement.primitive == "cast" else statement.args[-1].dtype
            text = SCALARS[statement.primitive].cuda(dtype).format(*texts)
        held = _Held(
            text, 1 + sum(t.weight for t in taken),
            frozenset[Local]().union(*(t.variables for t in taken)),
            loads or any(t.memory for t in taken),
        )  # fmt: skip
        if self.users.get(local) == [id(body)] and held.weight <= _LARGEST_EXPRESSION:
            self.held[local] = held
        else:
            self._bind(local, held, depth)

    def _bind(self, local: Local, held: _Held, depth: int) -> None:
        kind = "" if local in self.hoisted else f"const {local.dtype.name} "
        self._line(f"{kind}{self._named(local, 'x')} = {_bare(held.text)};", depth)

    def _array(self, array: Array) -> str:
        return self.parameters[array] if isinstance(array, Parameter) else self.names[array]

    def _take(self, operand: Operand, room: int, depth: int) -> _Held:
        """The expression of an operand, which is used up if it was held back."""
        if isinstance(operand, Literal):
            return _Held(literal(operand.value, operand.dtype), 0, frozenset(), False)
        held = self.held.pop(operand, None)
        if held is not None and held.weight < room:
            return held
        if held is not None:
            self._bind(operand, held, depth)
        variables = frozenset([operand]) if operand.variable else frozenset[Local]()
        return _Held(self._named(operand, "x"), 0, variables, False)

    def _flush(self, depth: int, variable: Local | None = None, *, memory: bool = False) -> None:
        """Binds what is held back, in order: what reads this variable or memory, or all of it."""
        for local, held in list(self.held.items()):
            if (variable is None and not memory) or variable in held.variables or (
                memory and held.memory
            ):
                del self.held[local]
                self._bind(local, held, depth)

    # -- effects and control -------------------------------------------------------------------

    def _act(self, statement: Statement, depth: int) -> None:
        values = [
            self._take(o, _LARGEST_EXPRESSION + 1, depth).text for o in operands(statement)
        ]
        match statement:
            case Assign(variable=variable):
                self._flush(depth, variable)
                self._line(f"{self._named(variable, 'v')} = {_bare(values[0])};", depth)
                return
            case Store(array=array):
                self._flush(depth, memory=True)
                together = self.shared is not None and not self.alone
                if together:
                    # What others may still have to read is overwritten when all are here.
                    self._line("__syncthreads();", depth)
                    self._line("if (threadIdx.x == 0) {", depth)
                    depth += 1
                if isinstance(array, Parameter) and array.role == SLOT:
                    self._line(f"pyrelay_put({self._array(array)}, {_bare(values[1])});", depth)
                else:
                    place = f"{self._array(array)}[{_bare(values[0])}]"
                    self._line(f"{place} = {_bare(values[1])};", depth)
                if together:
                    self._line("}", depth - 1)
                    self._line("__syncthreads();", depth - 1)
                return
        self._flush(depth)
        match statement:
            case Break():
                self._line(f"if ({_bare(values[0])}) break;", depth)
            case Fail():
                self._fail(statement, values, depth)
            case Call():
                self._call(statement, values, depth)
            case If(then=then, orelse=orelse):
                negated = not then
                cond = f"!{values[0]}" if negated else _bare(values[0])
                self._line(f"if ({cond}) {{", depth)
                self._body(orelse if negated else then, depth + 1)
                if orelse and not negated:
                    self._line("} else {", depth)
                    self._body(orelse, depth + 1)
                self._line("}", depth)
            case For():
                self._for(statement, values, depth)
            case While(body=body):
                self._line("while (true) {", depth)
                self._look(depth + 1)
                self._body(body, depth + 1)
                self._line("}", depth)

    def _is_whole(self, loop: For) -> bool:
        """Whether a loop runs over the range of the kernel, and so once."""
        whole = loop.start is self.kernel.begin and loop.stop is self.kernel.end
        return whole and not any(map(_leaves, loop.body))

    def _for(self, loop: For, values: Sequence[str], depth: int) -> None:
        index = self._named(loop.index, "i")
        if self._is_whole(loop):
            self._line("{", depth)
            self._line(f"const i64 {index} = begin;", depth + 1)
        else:
            first, last = _bare(values[0]), _bare(values[1])
            fixed = isinstance(loop.stop, Literal) or (
                not loop.stop.variable and self.names.get(loop.stop) == last
            )
            if not fixed:
                bound = f"bound{self.counts.setdefault('bound', 0)}"
                self.counts["bound"] += 1
                self._line(f"const i64 {bound} = {last};", depth)
                last = bound
            head = f"for (i64 {index} = {first}; {index} < {last}; {index}++) {{"
            if self.shared is not None and loop in self.shared.loops:
                self._shared_loop(loop, index, first, last, depth)
                return
            self._line(head, depth)
        if _is_of_the_program(loop):
            self._look(depth + 1)
        self._body(loop.body, depth + 1)
        self._line("}", depth)

    def _shared_loop(self, loop: For, index: str, first: str, last: str, depth: int) -> None:
        assert self.shared is not None
        stored = {s.array for s in statements(loop.body) if isinstance(s, Store)}
        if stored & self.shared.read_by_all:
            self._line("__syncthreads();", depth)
        before = []
        for part in self.shared.loops[loop]:
            name, kind = self.names[part.variable], part.variable.dtype
            before.append(f"before{self.counts.setdefault('before', 0)}")
            self.counts["before"] += 1
            self._line(f"const {kind.name} {before[-1]} = {name};", depth)
            self._line(f"{name} = {literal(identity(part.op, kind), kind)};", depth)
        head = f"for (i64 {index} = {first} + threadIdx.x; {index} < {last};"
        self._line(f"{head} {index} += BLOCK_THREADS) {{", depth)
        self.alone = True
        self._body(loop.body, depth + 1)
        self.alone = False
        self._line("}", depth)
        for old, part in zip(before, self.shared.loops[loop], strict=True):
            name, kind = self.names[part.variable], part.variable.dtype
            spelling = SCALARS[part.primitive].cuda(kind)
            combine = f"[]({kind.name} a, {kind.name} b) {{ return {spelling.format('a', 'b')}; }}"
            self._line(f"{name} = pyrelay_combined({name}, {combine});", depth)
            self._line(f"{name} = {_bare(spelling.format(old, name))};", depth)
        if not before:
            self._line("__syncthreads();", depth)

    def _look(self, depth: int) -> None:
        nested = self.routine is not None
        rounds, left = ("calls.rounds", "return 1") if nested else ("rounds", "return")
        self._line(f"if (pyrelay_stopped(record, {rounds})) {left};", depth)

    def _fail(self, fail: Fail, values: Sequence[str], depth: int) -> None:
        position = "begin" if self.routine is None else "0"
        launch = "launch" if self.routine is None else "calls.launch"
        self._line(f"if ({_bare(values[0])}) {{", depth)
        self._line(f"if (pyrelay_claim(record, {launch}, {position}, {fail.site})) {{", depth + 1)
        word = 0
        for operand, value in zip(fail.values, values[1:], strict=True):
            self._line(f"pyrelay_put(record->values + {word}, {_bare(value)});", depth + 2)
            word += 2 if operand.dtype.size == 16 else 1
        self._line("pyrelay_release(record);", depth + 2)
        self._line("}", depth + 1)
        self._line("return;" if self.routine is None else "return 1;", depth + 1)
        self._line("}", depth)

    def _call(self, call: Call, values: Sequence[str], depth: int) -> None:
        nested = self.routine is not None
        for out in call.outs:
            if out not in self.hoisted:
                self._line(f"{out.dtype.name} {self._named(out, 'x')};", depth)
        given = ["record", "calls", *map(_bare, values), *(self.names[o] for o in call.outs)]
        made = f"routine{call.routine}({', '.join(given)})"
        status = f"status{self.counts.setdefault('status', 0)}"
        self.counts["status"] += 1
        self._line(f"const int {status} = {made};", depth)
        if call.too_deep is None:
            left = f"return {status};" if nested else "return;"
            self._line(f"if ({status} != 0) {left}", depth)
            return
        self._line(f"if ({status} > 0) return{' 1' * nested};", depth)
        kind = "" if call.too_deep in self.hoisted else "const bool "
        self._line(f"{kind}{self._named(call.too_deep, 'x')} = {status} < 0;", depth)


def _defined(statement: Statement) -> tuple[Local, ...]:
    match statement:
        case Compute(out=out) | Load(out=out):
            return (out,)
        case Assign(variable=variable):
            return (variable,)
        case Call(outs=outs, too_deep=too_deep):
            return outs if too_deep is None else (*outs, too_deep)
    return ()


def _is_of_the_program(statement: Statement) -> bool:
    """Whether a loop may run so long that it has to look whether it is to stop."""
    return isinstance(statement, While) or (
        isinstance(statement, For) and statement.program and not statement.bounded
    )


def _leaves(statement: Statement) -> bool:
    """Whether a statement of a loop's body may leave the loop."""
    match statement:
        case Break():
            return True
        case If(then=then, orelse=orelse):
            return any(map(_leaves, (*then, *orelse)))
    return False


def _bare(text: str) -> str:
    """Without the parentheses around a whole expression."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]
