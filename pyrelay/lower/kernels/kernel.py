"""Kernel IR: what one kernel computes, as loops over scalars, for any target.

A kernel reads parameters (buffers, scalars, extents), runs statements over scalar locals, and
stores into buffers and slots. Its range `begin..end` runs over the parallel axis; the target's
scheduler may cut it anywhere. Statements:

    statement ::= local = primitive(operand, ...)          Compute
                | local = parameter                        Read
                | local = array[operand]                   Load
                | array[operand] = operand                 Store
                | variable = operand                       Assign
                | if operand: statement* else: statement*  If
                | for local in operand..operand: statement*   For
                | while true: statement*                   While
                | break if operand                         Break
                | fail site(operand, ...) if operand       Fail
                | local, ... = routine(operand, ...)       Call

A `Local` is bound once, unless it is a `variable`: then `Assign` sets it, and it is read as it is
at that moment. One that holds the address of an array is a variable, or a copy of one that was.
Primitives are the names of `ops.scalar.SCALARS`. A `Load` or `Store` marked
`parallel` touches no element that another iteration of a loop around it writes (of the innermost
loop around it, in a `LocalArray` or a ROW), so that loops may be vectorised.

`Lowering` is what becomes of one fused group: kernels in order, and what the planner must know of
its buffers. Parameters of a kernel are listed in the order in which they stand in its block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias, TypeVar

from pyrelay.errors import Span
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, Let
from pyrelay.ir.types import DType
from pyrelay.records import dataclass

Word = TypeVar("Word")

# The roles of a parameter, in the order in which parameters stand in a block.
PRODUCT = "product"  # address of the product that the kernel finishes, see `finishing.py`
BOUND = "bound"  # of the part of it: first column, end of the columns, elements between rows
ARRAY = "array"  # address of the buffer of an array argument
SCALAR = "scalar"  # bit pattern of a scalar argument
EXTENT = "extent"  # value of an extent
CODE = "code"  # where a function of the plan begins, and how many slots it has
OUTPUT = "output"  # address of the buffer of an array result
SLOT = "slot"  # address of the slot of a scalar result
SCRATCH = "scratch"  # address of a buffer that lives only between the kernels of one lowering
ROW = "row"  # the same; every row of a kernel over rows uses the place of the first again
ROLES = (PRODUCT, BOUND, ARRAY, SCALAR, EXTENT, CODE, OUTPUT, SLOT, SCRATCH, ROW)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One entry of a kernel's block. `position` counts the function's params, dims or results; of
    an EXTENT that is a `size` made of several dims it is any other number."""

    role: str
    position: int
    dtype: DType
    size: Extent | None = None

    @property
    def words(self) -> int:
        """How many 64-bit words of the block it takes: two for a complex128 by value."""
        return 2 if self.role == SCALAR and self.dtype.size == 16 else 1


@dataclass(frozen=True, slots=True, eq=False)
class LocalArray:
    """A small array of the kernel itself, `size` elements, not initialised."""

    dtype: DType
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A scalar of the kernel: bound once, or a `variable` that `Assign` sets."""

    dtype: DType
    variable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pointed:
    """The array whose address a variable holds at that moment: arrays that change places."""

    dtype: DType
    address: Local


Array: TypeAlias = Parameter | LocalArray | Pointed


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number known at compile time: a Python number of the kind of `dtype`."""

    value: Any
    dtype: DType


Operand: TypeAlias = Local | Literal


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """out = primitive(args...)."""

    out: Local
    primitive: str
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """out = the value of a SCALAR or EXTENT parameter, or the address of an array."""

    out: Local
    parameter: Parameter


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """out = array[index], `index` counting elements from the start of the buffer."""

    out: Local
    array: Array
    index: Operand
    parallel: bool


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """array[index] = value; a SLOT has the one element 0."""

    array: Array
    index: Operand
    value: Operand
    parallel: bool


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """variable = value."""

    variable: Local
    value: Operand


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """Runs one of two bodies; if `unlikely`, seldom the first. A `guessed` one stays a branch:
    nothing is computed of both bodies to choose from (`lower/passes/guessed_branches`)."""

    cond: Operand
    then: Body
    orelse: Body = ()
    unlikely: bool = False
    guessed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rescaled:
    """Sums that a loop makes relative to the greatest element so far, `largest`. Those of different
    elements are added when each is multiplied by exp(its largest - the greater one); `counts`, of
    elements that are the greatest, where its own is that. `others` are reductions beside them, with
    their primitives."""

    largest: Local
    sums: tuple[Local, ...]
    counts: tuple[Local, ...]
    others: tuple[tuple[Local, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """Runs `body` for index = start, start + 1, ..., stop - 1.

    A `program` loop is one that the user wrote, which has to look for Ctrl-C as every `While` has.
    It is `bounded` if it runs over an extent: then its rounds take no more than seconds.
    `rescaled`: what it and the loop inside it do in one pass (`lower/passes/online.py`).
    `lanes`: bytes of the largest number in its rounds, if these are the lanes of vectors: there is
    a literal number of them, and they touch nothing of each other's (`lower/passes/jammed_loops`).
    `independent`: its rounds store nothing that another one touches
    (`lower/passes/independent_rounds`).
    `few`: no more rounds than those of a loop beside it, which is for all but the first and the
    last (`lower/passes/peeled_rounds`), so that versions of it are not worth their code.
    """

    index: Local
    start: Operand
    stop: Operand
    body: Body
    program: bool = False
    bounded: bool = True
    rescaled: Rescaled | None = None
    lanes: int = 0
    independent: bool = False
    few: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """Runs `body` until a `Break` in it (not in a loop inside it) ends it.

    `rounds`: of the user's loop that one of `body` is. `most`: rounds that it certainly makes no
    more than, where that is known and they are few: it need not look for Ctrl-C.
    """

    body: Body
    rounds: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """Ends the innermost loop if `cond`."""

    cond: Operand


@dataclass(frozen=True, slots=True, eq=False)
class Fail:
    """Ends the kernel with error site number `site` and these values if `cond`."""

    cond: Operand
    site: int
    values: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """outs = routine number `routine` of the kernel, applied to args.

    Where `too_deep` is given, it tells whether calls were nested too deeply for the native stack
    (then `outs` hold nothing); elsewhere that ends the routine that calls, unless it is `Planned`.
    """

    outs: tuple[Local, ...]
    routine: int
    args: tuple[Operand, ...]
    too_deep: Local | None = None


Statement: TypeAlias = (
    Compute | Read | Load | Store | Assign | If | For | While | Break | Fail | Call
)
Body: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """The function of the plan that does what a routine does, where the native stack is short.

    code: the parameter that tells which. words: what it is given: operands of the routine, arrays
    and extents of the kernel. results: which words of what it returns are the routine's results.
    """

    code: Parameter
    words: tuple[Operand | Parameter, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A function of scalars, of at most 64 bits each, that the routines of its kernel may call.

    `planned` is None where calls that nest too deeply end the routines that make them. One without
    a `body` has the plan do all that it does.
    """

    params: tuple[Local, ...]
    body: Body | None
    results: tuple[Operand, ...]
    planned: Planned | None = None


@dataclass(frozen=True, slots=True)
class RaiseSite:
    """What a failure means: an exception, its arguments, the user's line.

    `parts` are as `errors.exception_of` says; the values in them have the dtypes `dtypes`.
    """

    exception: str | type[BaseException]
    parts: tuple[Any, ...]
    dtypes: tuple[DType, ...]
    span: Span | None


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One kernel.

    `begin` and `end` are i64 locals that hold the range over the parallel axis, which is `extent`
    long; an iteration takes about `cost` picoseconds. Both are polynomials of the function's dims.
    `spans` are the user's lines it came from; they and `sites` are not part of its text.
    Where its arrays are `apart`, one that it writes shares no memory with another one.
    """

    parameters: tuple[Parameter, ...]
    begin: Local
    end: Local
    body: Body
    extent: Extent
    cost: Extent
    sites: tuple[RaiseSite, ...] = ()
    spans: tuple[Span, ...] = ()
    routines: tuple[Routine, ...] = ()
    apart: bool = False

    def split(self, words: Sequence[Word]) -> list[tuple[Parameter, Sequence[Word]]]:
        """The words of a launch by the parameters that they belong to."""
        found, place = [], 0
        for parameter in self.parameters:
            found.append((parameter, words[place : place + parameter.words]))
            place += parameter.words
        return found

    @property
    def is_scalar(self) -> bool:
        """Whether it reads and writes no buffer."""
        return all(p.role in (SCALAR, EXTENT, SLOT) for p in self.parameters)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product of matrices in a fused group: its Let, what it reads in memory, the positions of
    that among the group's parameters, which result of the group it is itself, if any, and how many
    matrices of the other results' shape it is, side by side."""

    let: Let
    read: tuple[Atom, ...]
    operands: tuple[int, ...]
    result: int | None
    gates: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """Attention in a fused group: the Lets of its products; the positions of q, k and v among the
    group's parameters; whether a row without a finite score gives zeros; whether the maxima and the
    sums of rows are results after the product, and scores that are kept one after those. Where
    `halves` says so, q, k and v are 16-bit floats of that type, and the probabilities are rounded
    to it or not. `scale`: whether the kernel divides by a number, or multiplies by it, and the
    number or its position among the group's parameters; None where it does anything else."""

    scores: Let
    product: Let
    operands: tuple[int, ...]
    guarded: bool
    statistics: bool
    kept: bool
    halves: tuple[DType, bool] | None = None
    scale: tuple[bool, Const | int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AttendedGradient:
    """The derivative of attention in a fused group: the Lets of the products that give scores and
    their slopes, and of its results; the positions among the group's parameters of q, k, v, the
    result's cotangent, the rows' maxima, their sums and the means of the slopes; whether a row
    without a finite score gives zeros. The first kernel makes scores of products, if `shaped`; the
    last makes cotangents of products of those of scores, if `turned_back`. `kept`: the position of
    the scores that are kept, if any are. `halves`: the type of 16-bit floats that q, k, v and the
    cotangent have, if they have one."""

    scores: Let
    slopes: Let
    of_q: Let | None
    of_k: Let | None
    of_v: Let | None
    operands: tuple[int, ...]
    guarded: bool
    shaped: bool
    turned_back: bool
    kept: int | None
    halves: DType | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Long:
    """Kernels that do what a group's own do, for rows that are few and long; `when` is 1 where they
    had better run, and else 0. Their buffers are their own."""

    when: Extent
    kernels: tuple[Kernel, ...]
    scratch: tuple[Extent, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lowering:
    """A fused group as kernels, launched in order.

    scratch  bytes of each buffer to allocate before the first launch and to free after the last.
    aliases  per result, the position of the array argument whose buffer becomes the result, or
             None; such a result has no OUTPUT parameter.
    written  positions of array arguments that are written, or whose buffers become results: the
             caller must own their buffers.
    shares   per result, array arguments whose buffer may be given as the output as well, if the
             argument dies: every element is read before the one in its place is written.
    product  a product of matrices that the one kernel finishes, part by part.
    attention  what the device's kernel for attention computes, with the one kernel, if any.
    attention_gradient  the same for its derivative, with up to two kernels.
    half_product  a product of matrices of 16-bit floats: its Let and the positions of those among
                  the group's parameters.
    long     what may run in place of the kernels.
    """

    kernels: tuple[Kernel, ...]
    scratch: tuple[Extent, ...] = ()
    aliases: tuple[int | None, ...] = ()
    written: frozenset[int] = frozenset()
    shares: tuple[frozenset[int], ...] = field(default=())
    product: Product | None = None
    attention: Attended | None = None
    attention_gradient: AttendedGradient | None = None
    half_product: tuple[Let, tuple[int, int]] | None = None
    long: Long | None = None


def without_results(kernel: Kernel) -> Kernel:
    """A kernel whose results are not among its parameters: who calls it has them in registers."""
    kept = tuple(p for p in kernel.parameters if p.role != OUTPUT)
    return replace(kernel, parameters=kept)


def bodies(statement: Statement) -> tuple[Body, ...]:
    """The bodies inside a statement."""
    match statement:
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case For(body=body) | While(body=body):
            return (body,)
    return ()


def replace_bodies(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement with the bodies inside it changed."""
    match statement:
        case If(then=then, orelse=orelse):
            return replace(statement, then=change(then), orelse=change(orelse))
        case For(body=body) | While(body=body):
            return replace(statement, body=change(body))
    return statement


def statements(body: Body) -> Iterator[Statement]:
    """Every statement of a body and of the bodies inside it, outer ones first, in order."""
    pending = [iter(body)]
    while pending:
        for statement in pending[-1]:
            yield statement
            if isinstance(statement, (If, For, While)):
                pending.extend(iter(b) for b in reversed(bodies(statement)))
                break
        else:
            pending.pop()


def has_loops(body: Body) -> bool:
    """Whether there is a loop in a body, or in a body inside it."""
    return any(isinstance(statement, (For, While)) for statement in statements(body))


def breaks(body: Body) -> bool:
    """Whether a body ends the loop that it belongs to."""
    return any(
        isinstance(s, Break) or (isinstance(s, If) and any(map(breaks, bodies(s)))) for s in body
    )


def bound_by(statement: Statement) -> tuple[Local, ...]:
    """What a statement binds or sets itself, not those inside its bodies."""
    match statement:
        case Compute(out=out) | Load(out=out) | Read(out=out) | Assign(variable=out):
            return (out,)
        case For(index=index):
            return (index,)
        case Call(outs=outs, too_deep=too_deep):
            return outs if too_deep is None else (*outs, too_deep)
    return ()


def operands(statement: Statement) -> tuple[Operand, ...]:
    """The operands a statement reads itself, not those inside its bodies."""
    match statement:
        case Compute(args=args) | Call(args=args):
            return args
        case Load(array=Pointed(address=address), index=index):
            return (index, address)
        case Store(array=Pointed(address=address), index=index, value=value):
            return (index, value, address)
        case Load(index=index):
            return (index,)
        case Store(index=index, value=value):
            return (index, value)
        case Assign(value=value):
            return (value,)
        case If(cond=cond) | Break(cond=cond):
            return (cond,)
        case For(start=start, stop=stop):
            return (start, stop)
        case Fail(cond=cond, values=values):
            return (cond, *values)
    return ()


def pointed(array: Array, at: Callable[[Operand], Operand]) -> Array:
    """The array with another name for what holds its address, if it is a `Pointed` one."""
    if not isinstance(array, Pointed):
        return array
    address = at(array.address)
    assert isinstance(address, Local)
    return array if address is array.address else Pointed(array.dtype, address)


def renamed(statement: Statement, names: Mapping[Operand, Operand]) -> Statement:
    """The statement with other operands for some that it reads itself, not in its bodies."""
    if not any(o in names for o in operands(statement)):
        return statement

    def at(operand: Operand) -> Operand:
        return names.get(operand, operand)

    match statement:
        case Compute(args=args) | Call(args=args):
            return replace(statement, args=tuple(map(at, args)))
        case Load(index=index):
            return replace(statement, array=pointed(statement.array, at), index=at(index))
        case Store(index=index, value=value):
            array = pointed(statement.array, at)
            return replace(statement, array=array, index=at(index), value=at(value))
        case Assign(value=value):
            return replace(statement, value=at(value))
        case If(cond=cond) | Break(cond=cond):
            return replace(statement, cond=at(cond))
        case For(start=start, stop=stop):
            return replace(statement, start=at(start), stop=at(stop))
        case Fail(cond=cond, values=values):
            return replace(statement, cond=at(cond), values=tuple(map(at, values)))
    return statement
