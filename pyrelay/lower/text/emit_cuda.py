"""Kernel IR to source text in CUDA C++.

In: a `Kernel`. Out: the text of `extern "C" __global__ void kernel(record, first, last, ...)` and
of the routines that it calls, to stand behind `devices.gpu.cuda_prelude`. Parameters stand in the
order of the kernel's block: arrays and slots as pointers, scalars and extents by value.

Each thread takes positions of the parallel axis a whole grid apart and runs the kernel for the
range from one to the next. Kernels do not rely on that range being longer: whatever splits it gives
the same result. Where `packs` finds accesses to do for several elements at once, a thread does so
many neighbours; single elements are left before the first address that is one of whole packs, and
at the end. Where `cooperation` finds loops to share, a block of `BLOCK_THREADS` does that
instead: each thread takes its rounds of those loops, and the first one alone stores what lies
between them. Where blocks own elements (`devices.gpu.ownership`), threads take those of their
block. As in `emit_kernel`, scalars that are used once become part of the expression that uses them,
and the text holds no name of the user's.

Integers have 64 bits, as those of the kernel IR do, but for those that `narrow` tells where they
are asked to have 32.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from pyrelay.ir.types import i32, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    PRODUCT,
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
    Pointed,
    Read,
    Routine,
    Statement,
    Store,
    While,
    bodies,
    operands,
    statements,
)
from pyrelay.lower.kernels.pending import Pending, readers
from pyrelay.lower.passes.column_blocks import BLOCK_THREADS as COLUMN_THREADS
from pyrelay.lower.passes.column_blocks import ColumnBlocks, column_blocks
from pyrelay.lower.passes.cooperation import BLOCK_THREADS, Cooperation, cooperation
from pyrelay.lower.passes.held_rows import HeldRows, held_rows, length_of
from pyrelay.lower.passes.known_divisors import known_divisors
from pyrelay.lower.passes.loads_first import loads_first
from pyrelay.lower.passes.packs import Packs, packs
from pyrelay.lower.passes.row_packs import row_packs
from pyrelay.lower.text.cuda_heads import (
    addresses,
    head,
    kernel_head,
    parameter_names,
    parameter_types,
    routine_head,
)
from pyrelay.lower.text.cuda_numbers import bare, literal
from pyrelay.lower.text.emit_ranges import Elements, RangePrinter
from pyrelay.lower.text.spelling import fresh
from pyrelay.ops.scalar import SCALARS, TARGET

DEEPEST_CALLS = 256
"""Nested calls of routines; the stack of a GPU's thread is short, and the plan takes over. It takes
over earlier where that much stack is used up (`cuda_prelude`)."""

_LARGEST_EXPRESSION = 8  # operations in one statement


def emit(
    kernel: Kernel, on_device: frozenset[Parameter] = frozenset(),
    small: frozenset[Local] = frozenset(), packed: bool = True, owned: Elements | None = None,
    several: bool = True,
) -> str:
    """The kernel's source text. It finds the scalars of `on_device` by their addresses, where an
    earlier kernel left them. Those of `small` have 32 bits (`narrow`). Where it is not `packed`, no
    thread does neighbouring items at once. Where elements are `owned`, the text is that of a phase
    which is told by which blocks, `last` is the number of rows, and `line` that of columns. A block
    does `several` short items at once, but not in a phase, whose items are a block's each."""
    if owned is None:
        kernel = known_divisors(kernel)
    names = parameter_names(kernel)
    printers = [_Printer(kernel, names, routine) for routine in kernel.routines]
    parts = [f"{routine_head(n, p.signature())};\n" for n, p in enumerate(printers)]
    parts += [f"{routine_head(n, p.signature())} {p.text()}" for n, p in enumerate(printers)]
    shared = cooperation(kernel) if owned is None else None
    if shared is not None:
        parts.append(f"#define BLOCK_THREADS {BLOCK_THREADS}")
    taken = tuple(
        f"const {p.dtype.name} {names[p]} = pyrelay_words<{p.dtype.name}>::read({names[p]}_at);"
        for p in kernel.parameters if p in on_device
    )
    columns = column_blocks(kernel) if shared is None and owned is None else None
    if columns is not None:
        parts.append(f"#define BLOCK_THREADS {COLUMN_THREADS}")
    packed = packed and owned is None and shared is None and columns is None
    found = packs(kernel) if packed else None
    if found is not None:
        parts.append(f"#define PACK {found.count}")
    printer = _Printer(kernel, names, None, shared, taken, found, small, columns, owned)
    if shared is not None and several:
        printer.apart = shared.column
        if printer.apart is None:
            printer.threads, printer.held = "blockDim.x", held_rows(kernel, shared)
            parts += _geometry(kernel, shared, on_device, printer.held)
    more = ("const pyrelay_own &own", "const pyrelay_line &line") if owned is not None else ()
    parts.append(kernel_head(kernel, names, on_device, more) + printer.text())
    return "\n".join(parts)


def _geometry(
    kernel: Kernel, shared: Cooperation, on_device: frozenset[Parameter], held: HeldRows | None
) -> list[str]:
    """What a launch has to know of items: which word of it says how many elements each has, or
    their number, how many a thread takes at once, and bytes of those that are held."""
    length = length_of(kernel, shared)
    if length is None:
        return []
    found = [packs for loop in shared.loops if (packs := row_packs(loop)) is not None]
    parts = [f"#define ROW_PACK {max((each.count for each in found), default=1)}"]
    if isinstance(length, int):
        parts.append(f"#define ROW_ELEMENTS {length}")
    else:
        before = kernel.parameters[: kernel.parameters.index(length)]
        word = sum(1 if p in on_device else p.words for p in before)
        parts.append(f"#define ROW_WORD {word}")
    if held is not None:
        parts.append(f"#define HELD_BYTES {held.nbytes}")
    return parts


def emit_item(
    kernel: Kernel, name: str, *, in_register: bool = False, results: bool = True
) -> str:
    """The text of a function of the device that does one item of a kernel in one thread: it takes
    the record, the launch, the item, and the kernel's parameters. Where a product is
    `in_register`, that is its one element of the item. Without `results`, the elements of these
    are left in registers, references to which stand in the places of their arrays."""
    names, printer = parameter_names(kernel), _Printer(kernel, parameter_names(kernel))
    declared = ["pyrelay_record *record", "i64 launch", "i64 begin"]
    for parameter, kind in parameter_types(kernel).items():
        if in_register and parameter.role == PRODUCT:
            kind = f"const {parameter.dtype.name}"
            printer.lanes.update(
                (s, names[parameter]) for s in statements(kernel.body)
                if isinstance(s, Load) and s.array == parameter
            )
        if not results and parameter.role == OUTPUT:
            kind = f"{parameter.dtype.name} &"
            printer.lanes.update(
                (s, names[parameter]) for s in statements(kernel.body)
                if isinstance(s, Store) and s.array == parameter
            )
        declared.append(f"{kind} {names[parameter]}")
    return head(f"__device__ void {name}", declared) + printer.item()


# -- statements ----------------------------------------------------------------------------------


class _Printer(RangePrinter):
    """Prints a kernel, or one of its routines."""

    def __init__(
        self, kernel: Kernel, parameters: dict[Parameter, str], routine: Routine | None = None,
        shared: Cooperation | None = None, taken: Sequence[str] = (),
        packed: Packs | None = None, small: frozenset[Local] = frozenset(),
        columns: ColumnBlocks | None = None, owned: Elements | None = None,
    ) -> None:
        self.columns, self.owned = columns, owned
        self.apart: For | None = None
        self.threads = "BLOCK_THREADS"
        self.held: HeldRows | None = None
        self.wide = ""  # how many threads of a lane there are in a loop over columns
        self.shared, self.taken, self.packed, self.small = shared, taken, packed, small
        self.lanes: dict[Load | Store, str] = {}  # the pack where an access has its element
        self.alone = False  # in a shared loop, where each thread does rounds of its own
        self.left = (-1, -1, 0)  # where what one thread stores last ends, and its end; the depth
        self.kernel, self.routine, self.parameters = kernel, routine, parameters
        body = kernel.body if routine is None else routine.body
        assert body is not None, "GPUs call no plan"
        self.body = body
        self.results = () if routine is None else routine.results
        self.names: dict[Local | LocalArray, str] = {kernel.begin: "begin", kernel.end: "end"}
        self.counts: dict[str, int] = {}
        self.out = io.StringIO()
        self.declared: list[str] = []
        if routine is not None:
            for number, local in enumerate(routine.params):
                self.names[local] = f"p{number}"
        self.users = readers(self.body, self.results)
        self.addresses = addresses(self.body)
        self.pending: Pending[str, int] = Pending(
            self.users, _LARGEST_EXPRESSION, self._bind, lambda local: self._named(local, "x"),
            lambda each: literal(each.value, each.dtype),
        )
        self._declare()

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
                self.declared.append(f"{self._type(local)} {name};")
        for statement in statements(self.body):
            array = getattr(statement, "array", None)
            if isinstance(array, LocalArray) and array not in self.names:
                name = self._named(array, "c")
                kind = array.dtype.name
                own = f"{name} = {kind}()" if self.columns is not None else f"{name}[{array.size}]"
                self.declared.append(f"{kind} {own};")
        self.loops = any(map(_is_of_the_program, statements(self.body)))
        self.hoisted = set(self.names)

    def _named(self, thing: Local | LocalArray, prefix: str) -> str:
        if thing not in self.names:
            self.names[thing] = fresh(self.counts, prefix)
        return self.names[thing]

    # -- the function --------------------------------------------------------------------------

    def signature(self) -> list[str]:
        """The parameters of a routine."""
        assert self.routine is not None
        found = ["pyrelay_record *record", "pyrelay_calls &calls"]
        kinds = parameter_types(self.kernel)
        found += [f"{kinds[p]} {self.parameters[p]}" for p in self._passed_on()]
        found += [f"{p.dtype.name} {self.names[p]}" for p in self.routine.params]
        return found + [
            f"{r.dtype.name} &result{k}" for k, r in enumerate(self.routine.results)
        ]

    def _passed_on(self) -> list[Parameter]:
        """The parameters of the kernel that its routines read, too."""
        return [p for p in self.kernel.parameters if p.role in (ARRAY, EXTENT)]

    def text(self) -> str:
        """The function's body, in braces."""
        if self.routine is None:
            return "{\n" + self._kernel() + "}\n"
        self._line(f"if (++calls.depth > {DEEPEST_CALLS} || pyrelay_deep(calls)) return -1;", 1)
        self._line("if (pyrelay_stopped(record, calls.rounds)) return 1;", 1)
        for each in self.declared:
            self._line(each, 1)
        self._body(self.body, 1)
        for number, result in enumerate(self.results):
            self._line(f"result{number} = {self.pending.take(result, 0, 1).tree};", 1)
        self._line("calls.depth--;", 1)
        self._line("return 0;", 1)
        return "{\n" + self.out.getvalue() + "}\n"

    def item(self) -> str:
        """The body, in braces, of a function that does the item `begin`."""
        self._line("const i64 end = begin + 1;", 1)
        for each in self.declared:
            self._line(each, 1)
        self._body(self.body, 1)
        return "{\n" + self.out.getvalue() + "}\n"

    def _kernel(self) -> str:
        if self.loops:
            self._line("int rounds = 0;", 1)
        self._line("if (pyrelay_over(record, launch)) return;", 1)
        for each in self.taken:
            self._line(each, 1)
        if self.apart is not None:
            for each in self.declared:
                self._line(each, 1)
            self._body(self.body[:-1], 1)
        self._range()
        ranged = [s for s in statements(self.body) if self.kernel.end in operands(s)]
        if not all(isinstance(s, For) and self._is_whole(s) for s in ranged):
            self._line("const i64 end = begin + 1;", 2)
        if self.kernel.routines:
            self._line("pyrelay_calls calls = {0, 0, launch};", 2)
        if self.apart is None:
            for each in self.declared:
                self._line(each, 2)
        self._body(self.body if self.apart is None else self.body[-1:], 2)
        self._line("}", 1)
        return self.out.getvalue()

    def _one(self) -> _Printer:
        return _Printer(self.kernel, self.parameters, small=self.small)

    def _line(self, text: str, depth: int) -> None:
        self.out.write("    " * depth + text + "\n")

    def _body(self, body: Body, depth: int) -> None:
        ordered, loads = (body, 0) if self.owned is None else loads_first(body)
        for number, statement in enumerate(ordered):
            if number == loads and loads:
                self.pending.flush(depth, memory=True)
                self._loaded(ordered[:loads], depth)
            if isinstance(statement, (Compute, Load)):
                self._define(statement, body, depth)
            elif isinstance(statement, Read):
                name = self.parameters[statement.parameter]
                self.names[statement.out] = f"i32({name})" if statement.out in self.small else name
            else:
                self._act(statement, depth)
        self.pending.flush(depth)

    def _loaded(self, early: Body, depth: int) -> None:
        """Loads are done here: NVRTC would move them behind the branches of what is computed."""
        used = {o for s in early for o in operands(s)}
        names = [
            str(self.pending.name(s.out))
            for s in early if isinstance(s, Load) and s.out not in used
        ]
        if len(names) > 1:
            self._line(f"pyrelay_loaded({', '.join(names)});", depth)

    # -- expressions ---------------------------------------------------------------------------

    def _define(self, statement: Compute | Load, body: Body, depth: int) -> None:
        local = statement.out
        taken = [self.pending.take(o, _LARGEST_EXPRESSION, depth) for o in operands(statement)]
        texts = [t.tree for t in taken]
        loads = isinstance(statement, Load)
        if isinstance(statement, Load) and statement in self.lanes:
            text, loads = self.lanes[statement], False
        elif isinstance(statement, Load):
            text = self._element(statement.array, texts[0])
        else:
            text = self._computed(statement, texts)
        self.pending.define(local, text, taken, body, depth, loads=loads)

    def _computed(self, statement: Compute, texts: Sequence[str]) -> str:
        args = statement.args
        scalar = SCALARS[statement.primitive]
        dtype = statement.out.dtype if scalar.result == TARGET else args[-1].dtype
        small = [isinstance(a, Local) and a in self.small for a in args]
        if any(small) or statement.out in self.small:
            known = [n or _is_small(a) for a, n in zip(args, small, strict=True)]
            fits = statement.out in self.small or (statement.out.dtype.kind == "b" and all(known))
            dtype = i32 if fits else dtype
            texts = [
                f"i64({text})" if n and not fits
                else literal(a.value, i32) if fits and isinstance(a, Literal) and a.dtype == i64
                else text
                for a, n, text in zip(args, small, texts, strict=True)
            ]  # fmt: skip
        return scalar.cuda(dtype).format(*texts)

    def _type(self, local: Local) -> str:
        if local in self.addresses:
            return f"Buffer<{self.addresses[local].name}>"
        return "i32" if local in self.small else local.dtype.name

    def _bind(self, local: Local, text: str, depth: int) -> None:
        kind = "" if local in self.hoisted else f"const {self._type(local)} "
        self._line(f"{kind}{self._named(local, 'x')} = {bare(text)};", depth)

    def _element(self, array: Array, index: str) -> str:
        if self.columns is not None and isinstance(array, LocalArray):
            return self.names[array]  # of the thread's column
        return f"{self._array(array)}[{bare(index)}]"

    def _array(self, array: Array) -> str:
        if isinstance(array, Parameter):
            return self.parameters[array]
        return self.names[array.address if isinstance(array, Pointed) else array]

    # -- effects and control -------------------------------------------------------------------

    def _alone_begins(self, depth: int) -> None:
        """One thread stores: behind what it stored right before, where nothing lies between."""
        begin, end, before = self.left
        if self.out.tell() == end and depth == before:
            self.out.seek(begin)
            self.out.truncate()
            return
        # What others may still have to read is overwritten when all are here.
        self._line("pyrelay_item_meets();", depth)
        self._line("if (threadIdx.x == 0) {", depth)

    def _alone_ends(self, depth: int) -> None:
        begin = self.out.tell()
        self._line("}", depth)
        self._line("pyrelay_item_meets();", depth)
        self.left = begin, self.out.tell(), depth

    def _act(self, statement: Statement, depth: int) -> None:
        values = [
            self.pending.take(o, _LARGEST_EXPRESSION + 1, depth).tree for o in operands(statement)
        ]
        match statement:
            case Assign(variable=variable):
                self.pending.flush(depth, variable)
                self._line(f"{self._named(variable, 'v')} = {bare(values[0])};", depth)
                return
            case Store() if statement in self.lanes:
                self._line(f"{self.lanes[statement]} = {bare(values[1])};", depth)
                return
            case Store(array=array):
                self.pending.flush(depth, memory=True)
                together = self.shared is not None and not self.alone
                if self.columns is not None and not self.alone and isinstance(array, Parameter):
                    self._line(f"if (threadIdx.x < {self.wide}) {{", depth)
                    self._line(f"{self._element(array, values[0])} = {bare(values[1])};", depth + 1)
                    self._line("}", depth)
                    return
                if together:
                    self._alone_begins(depth)
                    depth += 1
                if isinstance(array, Parameter) and array.role == SLOT:
                    self._line(f"pyrelay_put({self._array(array)}, {bare(values[1])});", depth)
                else:
                    place = self._element(array, values[0])
                    self._line(f"{place} = {bare(values[1])};", depth)
                if together:
                    self._alone_ends(depth - 1)
                return
        self.pending.flush(depth)
        match statement:
            case Break():
                self._line(f"if ({bare(values[0])}) break;", depth)
            case Fail():
                self._fail(statement, values, depth)
            case Call():
                self._call(statement, values, depth)
            case If(then=then, orelse=orelse):
                negated = not then
                cond = f"!{values[0]}" if negated else bare(values[0])
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
        if self.held is not None and loop is self.held.before:
            self._hold(self.held, depth)
        index, kind = self._named(loop.index, "i"), self._type(loop.index)
        parts = self.shared.around.get(loop, ()) if self.shared is not None else ()
        before: list[str] = []
        if self._is_whole(loop):
            self._line("{", depth)
            self._line(f"const {kind} {index} = begin;", depth + 1)
        else:
            if self.owned is not None and loop is self.owned.column:
                self._line("{", depth)
                self._line(f"const {kind} {index} = at.column;", depth + 1)
                self._body(loop.body, depth + 1)
                self._line("}", depth)
                return
            first, last = bare(values[0]), bare(values[1])
            fixed = isinstance(loop.stop, Literal) or (
                not loop.stop.variable and self.names.get(loop.stop) == last
            )
            if not fixed:
                bound = f"bound{self.counts.setdefault('bound', 0)}"
                self.counts["bound"] += 1
                self._line(f"const {kind} {bound} = {last};", depth)
                last = bound
            if self.columns is not None and self._by_columns(loop, index, first, last, depth):
                return
            head = f"for ({kind} {index} = {first}; {index} < {last}; {index}++) {{"
            if self.shared is not None and loop in self.shared.loops:
                self._shared_loop(loop, index, first, last, depth)
                return
            before = self._parts_begin(parts, depth)
            self._line(head, depth)
        if _is_of_the_program(loop):
            self._look(depth + 1)
        self._body(loop.body, depth + 1)
        self._line("}", depth)
        self._parts_end(parts, before, depth)

    def _look(self, depth: int) -> None:
        nested = self.routine is not None
        rounds, left = ("calls.rounds", "return 1") if nested else ("rounds", "return")
        self._line(f"if (pyrelay_stopped(record, {rounds})) {left};", depth)

    def _fail(self, fail: Fail, values: Sequence[str], depth: int) -> None:
        position = "begin" if self.routine is None else "0"
        launch = "launch" if self.routine is None else "calls.launch"
        self._line(f"if ({bare(values[0])}) {{", depth)
        self._line(f"if (pyrelay_claim(record, {launch}, {position}, {fail.site})) {{", depth + 1)
        word = 0
        for operand, value in zip(fail.values, values[1:], strict=True):
            self._line(f"pyrelay_put(record->values + {word}, {bare(value)});", depth + 2)
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
        read = (self.parameters[p] for p in self._passed_on())
        given = ["record", "calls", *read, *map(bare, values), *(self.names[o] for o in call.outs)]
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


def _is_small(operand: Operand) -> bool:
    """Whether an operand is an integer of 64 bits that is known to need 32."""
    return isinstance(operand, Literal) and operand.dtype == i64 and abs(operand.value) < 2**31


def _leaves(statement: Statement) -> bool:
    """Whether a statement of a loop's body may leave the loop."""
    match statement:
        case Break():
            return True
        case If(then=then, orelse=orelse):
            return any(map(_leaves, (*then, *orelse)))
    return False
