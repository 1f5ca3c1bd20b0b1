"""Kernel IR to source text in the kernel language of `devices.compiler.kernel_language`.

In: a `Kernel`. Out: a Python module that defines `kernel(block, begin, end)`. The text holds no
name of the user's, so equal kernels of different programs are the same text; `header` gives the
user's lines that a kernel came from, as a comment to stand in front of it.

Loops of the user's program count their rounds and look for Ctrl-C now and then.

Scalars that are used once, where they are defined, become part of the expression that uses them.
The tree is built as `ast` and printed by precedence.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyrelay.ir.types import DType, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    BOUND,
    CODE,
    EXTENT,
    OUTPUT,
    PRODUCT,
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
    Planned,
    Pointed,
    Read,
    Routine,
    Statement,
    Store,
    While,
    bodies,
    breaks,
    has_loops,
    operands,
    statements,
)
from pyrelay.lower.kernels.pending import Pending, readers
from pyrelay.lower.passes.last_passes import printable
from pyrelay.lower.passes.row_windows import has_row_windows
from pyrelay.lower.text import call_spelling
from pyrelay.lower.text.printing import unparse
from pyrelay.lower.text.spelling import (
    binding,
    call,
    copied,
    fresh,
    literal,
    named,
    spelled,
)
from pyrelay.ops.scalar import SCALARS, TARGET
from pyrelay.python_trees import nodes

#: Where the names that kernels use are defined.
VOCABULARY = "pyrelay.devices.compiler.vocabulary"

POLL_ROUNDS = 1 << 20  # of the loops of a program, between two looks for Ctrl-C
_SHORT_LOOP = 1 << 10  # rounds; of a loop in such a loop there are no more than between two looks
_LONGEST_ROW = 16  # elements; LLVM unrolls loops over them
_LARGEST_TWICE = 60  # statements of a loop that may stand twice
_MOST_FIXED = 1 << 12  # rounds of loops of known length, inside each round of one without polls
_LARGEST_EXPRESSION = 12  # operations in one statement
_PREFIX = {
    PRODUCT: "c", BOUND: "b", ARRAY: "a", SCALAR: "s", EXTENT: "n", OUTPUT: "o", SLOT: "r",
    SCRATCH: "t", ROW: "w",
}  # fmt: skip
_CONSTANTS = ("inf", "nan")


def emit(kernel: Kernel) -> str:
    """The kernel's source text."""
    short_rows = _has_short_rows(kernel)  # not lanes that lie far apart, which `printable` makes
    kernel = printable(kernel)
    functions = [_Printer(kernel).function()]
    declared: list[ast.stmt] = []
    for number, routine in enumerate(kernel.routines):
        functions.insert(number, _Printer(kernel, routine).routine(number))
        kinds = [ast.Constant(p.dtype.name) for p in routine.params]
        made = call("routine", ast.Constant(f"routine{number}"), *kinds)
        declared.append(binding(f"call{number}", made))
    names = set[str]().union(*map(_imported, functions))
    names -= {f"call{number}" for number in range(len(kernel.routines))}
    if kernel.routines:
        names.add("routine")
    numbers = sorted(names.intersection(_CONSTANTS))
    words = sorted(names.difference(_CONSTANTS))
    imports: list[ast.stmt] = []
    if _has_steps(kernel):
        declared.append(binding("STEPS", ast.Constant(True)))
    if short_rows:
        declared.append(binding("SHORT_ROWS", ast.Constant(True)))
    if has_row_windows(kernel):
        declared.append(binding("ROW_WINDOWS", ast.Constant(True)))
    if numbers:
        imports.append(_import("math", numbers))
    if words:
        imports.append(_import(VOCABULARY, words))
    return unparse(ast.Module([*imports, *declared, *functions], []))


def header(kernel: Kernel) -> str:
    """A comment with the user's lines that the kernel computes, "" if they are not known."""
    lines: dict[tuple[str, int], str] = {}
    for span in kernel.spans:
        text = span.source.at(span.line)
        if text is not None:
            lines[span.source.filename, span.line] = text.strip()
    out = io.StringIO()
    previous = None
    for (filename, number), text in sorted(lines.items()):
        if filename != previous:
            out.write(f"# {filename}\n")
            previous = filename
        out.write(f"# {number:5} | {text}\n")
    return out.getvalue()


def _has_short_rows(kernel: Kernel) -> bool:
    """Whether a kernel of a program's loops computes with rows of a few floats: of integers, as in
    hashes, LLVM's vectors of straight lines are slower."""
    return kernel.apart and any(
        isinstance(s, For) and isinstance(s.start, Literal) and isinstance(s.stop, Literal)
        and not s.lanes and 2 <= s.stop.value - s.start.value <= _LONGEST_ROW
        and any(isinstance(inner, Load) and inner.out.dtype.kind in "fc" for inner in s.body)
        for s in statements(kernel.body)
    )


def _has_steps(kernel: Kernel) -> bool:
    """Whether what LLVM counts from round to round matters: in a program's loops and recursion, of
    complex numbers, which are pairs, and where places that are no neighbours are multiplied out in
    each round of an innermost loop."""
    pairs = any(
        isinstance(s, Load) and s.out.dtype.kind == "c" for s in statements(kernel.body)
    )
    return kernel.apart or bool(kernel.routines) or pairs or any(
        isinstance(s, Compute) and s.primitive == "multiply" and s.out.dtype.kind == "i"
        for loop in statements(kernel.body) if isinstance(loop, For) and not has_loops(loop.body)
        for s in statements(loop.body)
    )


def _function(name: str, params: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    args = ast.arguments([], [ast.arg(n) for n in params], None, [], [], None, [])
    return ast.FunctionDef(name, args, body, [], lineno=1)


def _import(module: str, names: Sequence[str]) -> ast.stmt:
    return ast.ImportFrom(module, [ast.alias(n) for n in names], 0)


def _imported(function: ast.FunctionDef) -> set[str]:
    """Names that the function reads and nobody binds in it."""
    bound = {a.arg for a in function.args.args}
    used: set[str] = set()
    for node in nodes(function):
        if isinstance(node, ast.Name):
            (bound if isinstance(node.ctx, ast.Store) else used).add(node.id)
    return used - bound - {"range", "lanes"}


# -- loops that look for Ctrl-C ------------------------------------------------------------------


def _period() -> ast.expr:
    return ast.Constant(POLL_ROUNDS)


def _look() -> list[ast.stmt]:
    """Ask whether to stop, if enough rounds were done since the last time."""
    status = ast.Compare(named("status"), [ast.NotEq()], [ast.Constant(0)])
    asked: list[ast.stmt] = [
        binding("rounds", _period()), binding("status", call("poll", named("block"))),
        ast.If(status, [ast.Return(named("status"))], []),
    ]  # fmt: skip
    over = ast.Compare(named("rounds"), [ast.Lt()], [ast.Constant(0)])
    return [ast.If(call("unlikely", over), asked, [])]


def _more_rounds(start: ast.expr, stop: ast.expr) -> ast.stmt:
    """Count down by the rounds of a loop that does not count them itself."""
    number = ast.BinOp(stop, ast.Sub(), start)
    zero = isinstance(start, ast.Constant) and start.value == 0
    return binding("rounds", ast.BinOp(named("rounds"), ast.Sub(), stop if zero else number))


def _round(number: int = 1) -> list[ast.stmt]:
    return [_more_rounds(ast.Constant(0), ast.Constant(number)), *_look()]


def _loop(index: str, bounds: list[ast.expr], body: list[ast.stmt]) -> ast.stmt:
    """`for index in range(...)`, without a first bound of 0 that may be left out."""
    zero = isinstance(bounds[0], ast.Constant) and bounds[0].value == 0
    shown = bounds[1:] if zero and len(bounds) == 2 else bounds
    return ast.For(ast.Name(index, ast.Store()), call("range", *shown), body, [], lineno=1)


def _counts_rounds(statement: Statement) -> bool:
    """Whether a statement is a loop that looks for Ctrl-C."""
    if isinstance(statement, For):
        return statement.program and (not statement.bounded or has_loops(statement.body))
    return isinstance(statement, While) and statement.most is None


def _looks(body: Body) -> bool:
    """Whether a body has loops that look for Ctrl-C in each of their rounds, and no other ones. One
    that stands in both arms of a branch has its checks in one of them."""
    loops = [s for s in body if has_loops((s,))]
    return bool(loops) and all(
        _looks(s.then) and _looks(s.orelse) if isinstance(s, If)
        else isinstance(s, While) and s.most is None
        for s in loops
    )


def _fixed_rounds(body: Body) -> int | None:
    """The rounds of the loops in a body, if it is known before how many they are, and few."""
    total = 0
    for statement in body:
        inner: int | None = 0
        match statement:
            case For(start=Literal(value=start), stop=Literal(value=stop)) if (
                statement.bounded or not statement.program
            ):
                inner = _fixed_rounds(statement.body)
                inner = None if inner is None else max(stop - start, 0) * (1 + inner)
            case While(most=int() as most):
                inner = most
            case For() | While() | Call():
                return None
            case If():
                arms = [_fixed_rounds(arm) for arm in bodies(statement)]
                inner = None if None in arms else sum(arms)  # type: ignore[arg-type]
        if inner is None or total + inner > _MOST_FIXED:
            return None
        total += inner
    return total


# -- statements ----------------------------------------------------------------------------------


class _Printer:
    """Prints a kernel, or one of its routines."""

    def __init__(self, kernel: Kernel, routine: Routine | None = None) -> None:
        self.kernel, self.of = kernel, routine
        self.names: dict[Local | LocalArray | Parameter, str] = {}
        self.names[kernel.begin], self.names[kernel.end] = "begin", "end"
        self.counts: dict[str, int] = {}
        self.places: dict[Parameter, int] = {}
        place = 1
        for parameter in kernel.parameters:
            self.places[parameter] = place
            place += parameter.words
        body: Body = kernel.body
        results: tuple[Operand, ...] = ()
        if routine is not None:
            body, results = routine.body or (), routine.results
        self.pending: Pending[ast.expr, list[ast.stmt]] = Pending(
            readers(body, results), _LARGEST_EXPRESSION, self._bind, self._scalar,
            lambda each: literal(each.value, each.dtype),
        )
        self.extents = {
            s.out for s in statements(body) if isinstance(s, Read) and s.parameter.role == EXTENT
        }
        self.depth = 0  # loops of the user's program around
        self.independent = False  # whether rounds of the loop around touch nothing of each other's
        self.counted = False  # whether one of these has counted the rounds of those inside it

    def _named(self, thing: Local | LocalArray | Parameter, prefix: str) -> str:
        if thing not in self.names:
            self.names[thing] = fresh(self.counts, prefix)
        return self.names[thing]

    # -- the function --------------------------------------------------------------------------

    def function(self) -> ast.FunctionDef:
        """The definition of `kernel`."""
        out: list[ast.stmt] = []
        for parameter in self.kernel.parameters:
            if parameter.role not in (SCALAR, EXTENT, CODE, BOUND):
                name = self._named(parameter, _PREFIX[parameter.role])
                out.append(binding(name, self._address(parameter)))
        if self.kernel.routines:
            out += call_spelling.prepared(self.kernel)
        out += self._whole(self.kernel.body)
        out.append(ast.Return(ast.Constant(0)))
        return _function("kernel", ("block", "begin", "end"), out)

    def routine(self, number: int) -> ast.FunctionDef:
        """The definition of a routine, which leaves its results in the state of the calls."""
        assert self.of is not None
        params = [self._named(p, "s") for p in self.of.params]
        resumed, body = self._resumed(self.of.planned), self.of.body
        if body is None:
            return _function(f"routine{number}", ("block", "state", *params), resumed)
        out = call_spelling.entered(POLL_ROUNDS, resumed)
        read = {s.array for s in statements(body) if isinstance(s, (Load, Store))}
        for parameter in self.kernel.parameters:
            if parameter in read:
                name = self._named(parameter, _PREFIX[parameter.role])
                out.append(binding(name, self._address(parameter)))
        out += self._whole(body)
        values = [self.pending.take(o, _LARGEST_EXPRESSION, out).tree for o in self.of.results]
        if any(map(_counts_rounds, statements(body))):
            out.append(call_spelling.counted(_period()))
        out += call_spelling.left([o.dtype for o in self.of.results], values)
        return _function(f"routine{number}", ("block", "state", *params), out)

    def _resumed(self, planned: Planned | None) -> list[ast.stmt]:
        assert planned is not None, "the CPU's plans go on where the stack is short"
        given: list[tuple[str, ast.expr]] = []
        for word in planned.words:
            if isinstance(word, Parameter):
                given.append(("i64", self._parameter(word, i64)))
            elif isinstance(word, Local):
                given.append((word.dtype.name, self._scalar(word)))
            else:
                given.append((word.dtype.name, literal(word.value, word.dtype)))
        code = self._parameter(planned.code, i64)
        return call_spelling.resumed(self.kernel, planned, code, given)

    def _whole(self, body: Body) -> list[ast.stmt]:
        """The body of a function, with what it needs before."""
        out: list[ast.stmt] = []
        for statement in statements(body):
            array = getattr(statement, "array", None)
            if isinstance(array, LocalArray) and array not in self.names:
                size = ast.Constant(array.size)
                made = call(f"local_{array.dtype.name}", size)
                out.append(binding(self._named(array, "c"), made))
        if any(map(_counts_rounds, statements(body))):
            out.append(binding("rounds", _period()))
        return out + self._body(body)

    def _address(self, parameter: Parameter) -> ast.expr:
        word = "param_apart" if self.kernel.apart and parameter.role != SLOT else "param_i64"
        return call(word, named("block"), ast.Constant(self.places[parameter]))

    def _parameter(self, parameter: Parameter, dtype: DType) -> ast.expr:
        place = ast.Constant(self.places[parameter])
        return call(f"param_{dtype.name}", named("block"), place)

    def _body(self, body: Body) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, (Compute, Load, Read)):
                self._define(statement, body, out)
            else:
                self._act(statement, out)
        self.pending.flush(out)
        return out

    def _define(self, statement: Compute | Load | Read, body: Body, out: list[ast.stmt]) -> None:
        local = statement.out
        if isinstance(statement, Read):
            parameter = statement.parameter
            if parameter in self.names:  # its address
                self.pending.define(local, named(self.names[parameter]), (), body, out, loads=False)
                return
            name = self._named(local, _PREFIX[parameter.role])
            if parameter.role == EXTENT:
                place = ast.Constant(self.places[parameter])
                out.append(binding(name, call("param_extent", named("block"), place)))
            else:
                out.append(binding(name, self._parameter(parameter, local.dtype)))
            return
        taken = [self.pending.take(o, _LARGEST_EXPRESSION, out) for o in operands(statement)]
        tree = self._tree(statement, [t.tree for t in taken])
        loads = isinstance(statement, Load)
        self.pending.define(local, tree, taken, body, out, loads=loads)

    def _bind(self, local: Local, tree: ast.expr, out: list[ast.stmt]) -> None:
        out.append(binding(self._named(local, "x"), tree))

    def _scalar(self, local: Local) -> ast.expr:
        return named(self._named(local, "v" if local.variable else "x"))

    def _tree(self, statement: Compute | Load, args: list[ast.expr]) -> ast.expr:
        if isinstance(statement, Load):
            name = f"load_{self._order(statement)}{statement.array.dtype.name}"
            return call(name, self._place(statement.array, args), args[0])
        scalar = SCALARS[statement.primitive]
        dtype = statement.out.dtype if scalar.result == TARGET else statement.args[-1].dtype
        return spelled(scalar.kernel(dtype), args)

    def _order(self, access: Load | Store) -> str:
        """The part of an access's name that tells which loops may be vectorised over it."""
        if not access.parallel:
            return "inner_" if self.independent else "ordered_"
        array = access.array
        own = isinstance(array, LocalArray) or (
            isinstance(array, Parameter) and array.role == ROW
        )
        return "inner_" if own else ""

    def _place(self, array: Array, values: Sequence[ast.expr]) -> ast.expr:
        """An array that is read or stored into; an address is the last of the operands."""
        return values[-1] if isinstance(array, Pointed) else named(self.names[array])

    def _act(self, statement: Statement, out: list[ast.stmt]) -> None:
        room = _LARGEST_EXPRESSION + 1
        values = [self.pending.take(o, room, out).tree for o in operands(statement)]
        match statement:
            case Assign(variable=variable):
                self.pending.flush(out, variable)
                out.append(binding(self._named(variable, "v"), values[0]))
            case Store():
                self.pending.flush(out, memory=True)
                out.append(ast.Expr(self._store(statement, values)))
            case Break():
                self.pending.flush(out)
                ends = isinstance(statement.cond, Literal) and statement.cond.value is True
                out.append(ast.Break() if ends else ast.If(values[0], [ast.Break()], []))
            case Fail():
                self.pending.flush(out)
                failure = self._failure(statement, values[1:])
                out.append(ast.If(call("unlikely", values[0]), failure, []))
            case If():
                self.pending.flush(out)
                then, orelse = self._body(statement.then), self._body(statement.orelse)
                if statement.guessed:
                    then.insert(0, ast.Expr(call("guessed")))
                if then:
                    cond = call("unlikely", values[0]) if statement.unlikely else values[0]
                    out.append(ast.If(cond, then, orelse))
                else:
                    out.append(ast.If(ast.UnaryOp(ast.Not(), values[0]), orelse, []))
            case Call():
                self.pending.flush(out)
                outs = [(self._named(o, "x"), o.dtype) for o in statement.outs]
                out += call_spelling.called(statement.routine, values, outs)
            case For():
                self.pending.flush(out)
                self._for(statement, values[0], values[1], out)
            case While():
                self.pending.flush(out)
                with self._in_program():
                    # Behind the rounds: one that ends before counts nothing.
                    counted = [] if statement.most else _round(statement.rounds)
                    body = [*self._body(statement.body), *counted]
                out.append(ast.While(ast.Constant(True), body, []))

    # -- loops ---------------------------------------------------------------------------------

    @contextmanager
    def _in_program(self) -> Iterator[None]:
        """Inside a loop of the user's program."""
        self.depth += 1
        yield
        self.depth -= 1

    def _counted_body(self, body: Body) -> list[ast.stmt]:
        """The body of a loop that has counted the rounds of all loops in it."""
        before, self.counted = self.counted, True
        out = self._body(body)
        self.counted = before
        return out

    def _for(self, loop: For, first: ast.expr, last: ast.expr, out: list[ast.stmt]) -> None:
        around, self.independent = self.independent, loop.independent
        self._rounds(loop, first, last, out)
        self.independent = around

    def _rounds(self, loop: For, first: ast.expr, last: ast.expr, out: list[ast.stmt]) -> None:
        index = self._named(loop.index, "i")
        if loop.lanes:
            over = call("lanes", last, ast.Constant(loop.lanes))
            body = self._body(loop.body)
            out.append(ast.For(ast.Name(index, ast.Store()), over, body, [], lineno=1))
            return
        if self.counted:
            out.append(_loop(index, [first, last], self._body(loop.body)))
            return
        endless = loop.program and not loop.bounded
        waits = _looks(loop.body)
        each = self._rounds_inside(loop, last) if self.depth else None
        fixed = _fixed_rounds(loop.body) if loop.program and not breaks(loop.body) else None
        if each is not None:  # in a loop that looks now and then
            self._short_or_not(loop, each, first, last, out)
        elif fixed:
            out += self._in_blocks(loop, index, first, last, fixed)
        elif loop.program and waits and not breaks(loop.body):
            out += self._in_blocks(loop, index, first, last)
        elif (loop.program and has_loops(loop.body)) or (endless and breaks(loop.body)):
            number = 1 + sum(s.most or 0 for s in loop.body if isinstance(s, While))
            with self._in_program():
                body = [*_round(number), *self._body(loop.body)]
            out.append(_loop(index, [first, last], body))
        elif endless:
            out += self._in_blocks(loop, index, first, last)
        else:
            if self.depth and not isinstance(loop.stop, Literal):
                first, last = self._once(first, out), self._once(last, out)
                most = copied(last)
                if loop.stop not in self.extents:  # it may be far below the first index
                    most = call("maximum", most, copied(first))
                out.append(_more_rounds(copied(first), most))
            out.append(_loop(index, [first, last], self._body(loop.body)))

    def _rounds_inside(self, loop: For, last: ast.expr) -> ast.expr | None:
        """The most rounds that each round of a loop stands for, if loops inside it make no more
        whatever they compute, and hold no loops themselves; the loop ends before `last`."""
        inside = list(statements(loop.body))
        inner = [s for s in inside if isinstance(s, (For, While))]
        fits = loop.program and len(inner) > 0 and len(inside) <= _LARGEST_TWICE
        if not fits or any(isinstance(s, (Break, Call)) for s in inside):
            return None
        made = {s.out for s in inside if isinstance(s, (Compute, Read, Load))}
        total: ast.expr = ast.Constant(1)
        for each in inner:
            if isinstance(each, While) and each.most is not None:
                total = ast.BinOp(total, ast.Add(), ast.Constant(each.most))
                continue
            endless = isinstance(each, For) and each.program and not each.bounded
            if not isinstance(each, For) or endless or has_loops(each.body):
                return None
            stop = each.stop
            if not isinstance(each.start, Literal) or each.start.value != 0:
                return None
            if isinstance(stop, Literal):
                number: ast.expr = ast.Constant(stop.value)
            elif stop is loop.index:
                number = copied(last)
            elif stop in self.names and not stop.variable and stop not in made:
                number = self._scalar(stop)
            else:
                return None
            total = ast.BinOp(total, ast.Add(), number)
        return total

    def _short_or_not(
        self, loop: For, each: ast.expr, first: ast.expr, last: ast.expr, out: list[ast.stmt]
    ) -> None:
        """A loop around loops twice: if both have few rounds, it does not look for Ctrl-C, for
        that would cost as much as what a short loop computes."""
        index = self._named(loop.index, "i")
        first, last = self._once(first, out), self._once(last, out)
        rounds = last if isinstance(first, ast.Constant) and first.value == 0 else (
            ast.BinOp(last, ast.Sub(), first)
        )
        most = call("maximum", rounds, each)
        many = ast.Compare(most, [ast.Gt()], [ast.Constant(_SHORT_LOOP)])
        with self._in_program():
            looking = _loop(index, [first, last], [*_round(), *self._body(loop.body)])
        total = _more_rounds(ast.Constant(0), ast.BinOp(copied(rounds), ast.Mult(), copied(each)))
        short = _loop(index, [copied(first), copied(last)], self._counted_body(loop.body))
        out.append(ast.If(call("unlikely", many), [looking], [total, short]))

    def _in_blocks(
        self, loop: For, index: str, first: ast.expr, last: ast.expr, inside: int = 0
    ) -> list[ast.stmt]:
        """A loop in pieces, so that its rounds cost nothing beside what they compute, and keep in
        registers what one leaves to the next. inside: rounds of loops in each of them."""
        out: list[ast.stmt] = []
        first, last = self._once(first, out), self._once(last, out)
        start, stop = fresh(self.counts, "start"), fresh(self.counts, "stop")
        most = ast.Constant(POLL_ROUNDS // (1 + inside))
        size = call("minimum", ast.BinOp(copied(last), ast.Sub(), named(start)), copied(most))
        zero, rounds = ast.Constant(0), ast.BinOp(named(stop), ast.Sub(), named(start))
        if inside:
            rounds = ast.BinOp(rounds, ast.Mult(), ast.Constant(1 + inside))
        with self._in_program():
            body = self._counted_body(loop.body) if inside else self._body(loop.body)
            piece = [
                binding(stop, ast.BinOp(named(start), ast.Add(), size)),
                _more_rounds(zero, rounds), *_look(),
                _loop(index, [named(start), named(stop)], body),
            ]  # fmt: skip
        out.append(_loop(start, [first, last, most], piece))
        return out

    def _once(self, value: ast.expr, out: list[ast.stmt]) -> ast.expr:
        """The value, under a name if reading it twice would compute it twice."""
        if isinstance(value, (ast.Name, ast.Constant)):
            return value
        name = fresh(self.counts, "bound")
        out.append(binding(name, value))
        return named(name)

    def _store(self, store: Store, values: list[ast.expr]) -> ast.expr:
        array = self._place(store.array, values)
        if isinstance(store.array, Parameter) and store.array.role == SLOT:
            return call(f"store_slot_{store.array.dtype.name}", array, *values)
        return call(f"store_{self._order(store)}{store.array.dtype.name}", array, *values[:2])

    def _failure(self, fail: Fail, values: list[ast.expr]) -> list[ast.stmt]:
        record = call("param_i64", named("block"), ast.Constant(0))
        site = call("store_slot_i64", named("record"), ast.Constant(0), ast.Constant(fail.site))
        out: list[ast.stmt] = [binding("record", record), ast.Expr(site)]
        word = 1
        for operand, value in zip(fail.values, values, strict=True):
            name = f"store_slot_{operand.dtype.name}"
            out.append(ast.Expr(call(name, named("record"), ast.Constant(word), value)))
            word += 2 if operand.dtype.size == 16 else 1
        return [*out, ast.Return(ast.Constant(1))]
