"""The abstract interpreter: Relay blocks in, Core lets out, one PyCall at a time.

`Interpreter` walks the blocks of one Core function under construction. What each kind of node means
stands in files of its own: calls.py (functions), operators.py, attributes.py, and the folders flow/
(branches, loops), arrays/ (subscripts) and names/ (what names mean).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyrelay.ops  # noqa: F401  (fills the table of ops)
from pyrelay import errors
from pyrelay.errors import PyrelayError, Span
from pyrelay.infer import needs, users_lines, wide
from pyrelay.infer import values as V
from pyrelay.infer.arrays import identity, memory_order
from pyrelay.infer.arrays.numpys_words import not_broadcast
from pyrelay.infer.flow import narrowing
from pyrelay.infer.flow.narrowing import Fact
from pyrelay.infer.flow.revisits import Visits
from pyrelay.infer.frames import Frame, Mark, Question, Read
from pyrelay.infer.heap import Heap
from pyrelay.infer.marks import marked_operands
from pyrelay.infer.number_sources import Unknown
from pyrelay.infer.program import Place, Program
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, Operand
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Const, If, Let, Loop, PyCall, Var
from pyrelay.ir.op import OPS, Fusion, Op, RelationError
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.flow.handling import Handling

#: Errors whose message is clearer with the types of the operands under them.
_SHOWN_OPERANDS = (
    errors.ShapeError, errors.TypeMismatchError, errors.IndexRangeError, errors.InvalidValueError,
)

#: what must be known while compiling -> what to write where it is not
_INSTEAD = {
    "the index of a list": "keep the items in an array, e.g. np.zeros(n), and index that",
    "the number of items": "index what you need, e.g. first = items[0]",
    "the key of a dict": "use an array indexed by the key: counts[k] += 1",
}

MOST_SPLITS = 64
"""How many branches of a program may be followed by code for either arm of its own."""

Rest = Callable[[tuple[V.Value, ...]], Sequence[V.Value]]


@dataclass(eq=False)
class NeedsCheck(Exception):
    """Two extents must be equal and only the running program can tell."""

    left: Extent
    right: Extent


@dataclass
class Interpreter:
    """Interprets Relay blocks while building one Core function."""

    program: Program
    builder: Builder = field(default_factory=Builder)
    heap: Heap = field(default_factory=Heap)
    frames: list[Frame] = field(default_factory=list)
    calls: list[tuple[Span | None, str]] = field(default_factory=list)
    let: Let | None = None
    active: list[Any] = field(default_factory=list)  # functions being interpreted in line
    conditional: int = 0  # how many run-time branches and loops the code at hand is inside
    before: Heap | None = None  # what there was before the loop or the recursive function at hand
    rolling: int = 0  # how many loops are around it; in a recursive function one more
    rounds: int = 0  # how many loops are around it, first rounds that stand alone among them
    variants: int = 0  # how many branches that gave objects different structures it is behind
    facts: dict[Var, Fact] = field(default_factory=dict)  # what bools say about unions
    read: set[V.Root] = field(default_factory=set)  # objects whose content was looked at
    visits: Visits = field(default_factory=Visits)  # of the loops in the loop at hand
    cases: dict[Atom, frozenset[int]] = field(default_factory=dict)  # left of tags, see narrowing
    #: what was left of tags before, for those that have fewer cases up to the end of a block
    assumed: list[tuple[Atom, frozenset[int] | None]] = field(default_factory=list)
    #: fields of nodes read so far, and numbers bound as extents: a table for each block that the
    #: code at hand is inside
    reads: list[dict[Any, Read]] = field(default_factory=lambda: [{}])
    params: Sequence[Var] = ()  # of the function
    #: the blocks that the code at hand is inside: their Lets, and the variables they begin with
    blocks: list[tuple[list[Let], Sequence[Var]]] = field(init=False)
    rolled: list[int] = field(default_factory=list)  # how many blocks are around each rolled loop
    expressions: dict[Atom, tuple[Any, int]] = field(default_factory=dict)  # see bound_extents
    pools: dict[Any, V.Ref] = field(default_factory=dict)  # of new nodes, by data type
    #: objects whose `__init__` runs, of classes of nodes: where it began, or the node it is by now
    constructing: dict[V.Root, Builder | V.Data] = field(default_factory=dict)
    handling: tuple[Handling, ...] = ()  # the `try` whose bodies are around, innermost last
    unfailing: bool = False  # in code of ours that raises nothing (`handling.unfailing`)
    opening: Handling | None = None  # the `try` whose body is next, or was just now
    #: ops that do not raise here: the code at hand is behind a branch on what they would
    answered: frozenset[Question] = frozenset()
    #: ops of the block at hand that did not raise if nothing is on its way
    asked: frozenset[Question] = frozenset()
    #: extents that are 1 when a loop begins and others later: what ends an attempt to roll it that
    #: would have them equal to others
    ones: dict[Extent, Exception] = field(default_factory=dict)
    captured: dict[int, V.Value] | None = None  # captured objects by number; None in the entry

    def __post_init__(self) -> None:
        self.blocks = [(self.builder.lets, self.params)]

    # -- blocks ------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The innermost activation."""
        return self.frames[-1]

    def value(self, atom: Atom) -> V.Value:
        """The abstract value of a Relay atom."""
        if isinstance(atom, Const):
            return V.Known(atom.value)
        found = self.frame.env[atom]
        if isinstance(found, V.Wrapped):
            return wide.settled(self, found)
        return narrowing.narrowed(self, found) if isinstance(found, V.Union) else found

    def _operand(self, atom: Atom) -> V.Value:
        """As `value`, for an operator: an int may wait for a mask."""
        found = self.frame.env[atom] if isinstance(atom, Var) else None
        return found if isinstance(found, V.Wrapped) else self.value(atom)

    def bind(self, outs: Sequence[Var], results: Sequence[V.Value]) -> None:
        """Bind Relay variables."""
        self.frame.env.update(zip(outs, results, strict=True))

    def run(
        self, block: Block, behind: Rest | None = None, *, outermost: bool = False
    ) -> tuple[V.Value, ...]:
        """Interpret a block, then what is `behind` it; the results.

        `outermost`: a function returns behind it. Raises Diverges if its end is not reached.
        """
        mark = len(self.assumed)
        try:
            return self._run_from(block, 0, behind, outermost)
        finally:
            narrowing.forget(self, mark)

    def _run_from(
        self, block: Block, start: int, behind: Rest | None, outermost: bool
    ) -> tuple[V.Value, ...]:
        for k in range(start, len(block.lets)):
            let, saved = block.lets[k], self.let
            mark, before = len(self.assumed), self.mark()
            if self.tries_ops and isinstance(let.rhs, PyCall):

                def goes_on(
                    results: Sequence[V.Value], k: int = k, let: Let = let
                ) -> tuple[V.Value, ...]:
                    self.bind(let.outs, results)
                    return self._behind_raise(block, k + 1, behind)

                done, found = self._tried(let, goes_on)
                if done:
                    return tuple(found)
                self.bind(let.outs, found)
            try:
                if not self.tries_ops or not isinstance(let.rhs, PyCall):
                    self.step(let)
            except needs.NeedsSplitting as need:
                tried = isinstance(let.rhs, If) and isinstance(let.rhs.cond, Const)
                first = isinstance(let.rhs, Loop) and isinstance(need, needs.NeedsFirstRound)
                splits = first or (isinstance(let.rhs, If) and not tried)
                if not splits or self.program.splits == MOST_SPLITS:
                    raise
                self.program.splits += 1
                narrowing.forget(self, mark)
                self.let = saved
                self.take_back(before)

                def rest(k: int = k) -> tuple[V.Value, ...]:
                    return self._run_from(block, k + 1, behind, False)

                from pyrelay.infer.flow import control, loops

                split = loops.split if first else control.split
                with self.builder.at(let.span):
                    return tuple(split(self, let, rest, tears=outermost))
            if self.guarded and self.heap.contents[self.handling[-1].cell] != V.NONE:
                with self.builder.at(let.span):
                    return self._behind_raise(block, k + 1, behind)
        results = tuple(map(self.value, block.results))
        return results if behind is None else tuple(behind(results))

    def _behind_raise(
        self, block: Block, start: int, behind: Rest | None
    ) -> tuple[V.Value, ...]:
        """In the body of a `try`: the rest of a block, unless something was raised before."""
        from pyrelay.infer.flow import handling

        return tuple(
            handling.behind(self, lambda: self._run_from(block, start, behind, False))
        )

    @property
    def guarded(self) -> bool:
        """True where what is raised is a value: in the body of a `try` or of the caller's."""
        return bool(self.handling)

    @property
    def sure(self) -> bool:
        """True where the program surely gets to: in no branch or loop, behind no `raise`."""
        return not self.conditional and not self.program.leaves

    @property
    def tries_ops(self) -> bool:
        """True in the body of a `try`, where the errors of ops are values as well."""
        return bool(self.handling) and (
            self.program.follows_ops or not self.raises_to_caller
        )

    @property
    def raises_to_caller(self) -> bool:
        """True where a `raise` leaves the program by its end (see `handling.with_raised`)."""
        return bool(self.handling) and self.handling[-1].of_caller

    @property
    def follows(self) -> str:
        """Who follows what is raised here: a `try`, the program's "caller", or nobody ("")."""
        return "" if not self.handling else "caller" if self.raises_to_caller else "try"

    def step(self, let: Let) -> None:
        """Interpret one Let."""
        from pyrelay.infer.flow.handling import check, note_failures

        self.program.effort.step(self)
        self.program.lacking.step()
        saved, self.let = self.let, let
        mark, tried = len(self.builder.lets), self.tries_ops
        with self.builder.at(let.span):
            match let.rhs:
                case PyCall() as node:
                    self.bind(let.outs, self._done(node))
                    if not tried:
                        note_failures(self, mark)
                case If():
                    from pyrelay.infer.flow.control import run_if

                    run_if(self, let)
                case Loop():
                    from pyrelay.infer.flow.control import run_loop

                    run_loop(self, let)
                case _:
                    raise AssertionError(f"{let.rhs} is not a node of Relay")
            if tried:
                check(self, mark)
        self.let = saved

    def _tried(
        self, let: Let, rest: Callable[[list[V.Value]], Sequence[V.Value]]
    ) -> tuple[bool, list[V.Value]]:
        """A step in the body of a `try` (see `handling.attempt`)."""
        from pyrelay.infer.flow import handling

        node, saved = let.rhs, self.let
        assert isinstance(node, PyCall)
        self.let = let
        with self.builder.at(let.span):
            found = handling.attempt(self, lambda: self._done(node), rest)
        self.let = saved
        return found

    def _done(self, node: PyCall) -> list[V.Value]:
        """The outputs of a PyCall."""
        from pyrelay.infer.dispatch import TABLE

        read = self._operand if node.kind in ("binary", "inplace") else self.value
        results = TABLE[node.kind](self, tuple(map(read, node.args)), node.attrs)
        found = [] if results is None else results
        return found if isinstance(found, list) else [found]  # type: ignore[list-item]

    @contextmanager
    def inside(
        self, builder: Builder, heap: Heap, names: Sequence[Var] = ()
    ) -> Iterator[None]:
        """Emit into another block with another heap, e.g. a branch; it begins with some names."""
        saved, known = (self.builder, self.heap), (self.answered, self.asked)
        self.builder, self.heap = builder, heap
        self.conditional += 1
        self.reads.append({})
        self.blocks.append((builder.lets, names))
        try:
            yield
        finally:
            self.blocks.pop()
            self.reads.pop()
            self.builder, self.heap = saved
            self.answered, self.asked = known
            self.conditional -= 1

    def mark(self) -> Mark:
        """The present place of the block at hand."""
        return Mark(len(self.builder.lets), self.answered, self.asked)

    def take_back(self, mark: Mark, start: int | None = None) -> None:
        """Forget what was emitted behind a mark, of its Lets those from number `start` on."""
        del self.builder.lets[mark.lets if start is None else start :]
        self.answered, self.asked = mark.answered, mark.asked

    # -- emitting ----------------------------------------------------------------------------

    def emit(self, op: str | Op, *operands: V.Value | Operand, **attrs: Any) -> Any:
        """Emit an op on values: Handle, tuple of them, or (results, extents) if it binds symbols.

        A relation's complaint becomes an error at the user's line; an equality of extents that only
        the running program can decide becomes a check.
        """
        record = OPS[op] if isinstance(op, str) else op
        known = V.Value.__args__
        atoms: list[Any] = [self.atom(o) if isinstance(o, known) else o for o in operands]
        while True:
            try:
                with dims.decided_by(self._decide_equal):
                    return self.builder.call(record, *atoms, **attrs)
            except NeedsCheck as need:
                once_one = self.ones.get(need.left) or self.ones.get(need.right)
                if once_one is not None:
                    raise once_one from None
                for extent in (need.left, need.right):  # where it is 1, it is stretched instead
                    self.program.guards.equal(extent, 1)
                from pyrelay.infer.arrays import stretching

                atoms = stretching.met(self, record, atoms, attrs, need.left, need.right)
            except RelationError as error:
                failure = self.relation_failure(error, record)
                if error.raises is not None:
                    from pyrelay.infer.flow.handling import certain

                    raise certain(self, failure, *error.raises) from None
                if error.kind == "shape" and record.name in _AS_IN_NUMPY:
                    from pyrelay.infer.flow.handling import without_words

                    said = self._said_of(record, atoms)
                    raise without_words(self, failure, ValueError, said) from None
                raise failure from None

    def _said_of(self, op: Op, operands: Sequence[Operand]) -> str | None:
        """What NumPy says of operands that an op cannot broadcast; None if that is not known."""
        rhs = self.let.rhs if self.let else None
        kind = rhs.kind if isinstance(rhs, PyCall) else ""
        atoms = [self.builder.atom(operand) for operand in operands]
        said = not_broadcast(self, (*atoms, *atoms[: kind == "inplace"]))
        users = kind in ("binary", "inplace", "compare") and op.name not in _WITH_OTHER_WORDS
        return said if users else None

    def _decide_equal(self, left: Extent, right: Extent) -> bool:
        answer = self.program.guards.equal(left, right)
        if answer is None:
            raise NeedsCheck(left, right)
        return answer

    def _shape_unknown(self, need: NeedsCheck) -> PyrelayError:
        left, right = dims.show(need.left), dims.show(need.right)
        return self.failure(
            errors.ShapeError,
            f"a view is read here of one of several arrays, whose extents {left} and {right} may "
            "differ",
            hints=("copy the view where it is made: x[1:].copy()",),
        )

    def result(self, handle: Handle, name: str = "") -> V.Value:
        """The value of an emitted result: a number, or a fresh array."""
        ty = handle.type
        if not ty.shape:
            if isinstance(handle.atom, Const) and ty.weak:
                return V.Known(handle.atom.value)
            return V.Scalar(ty, handle.atom)
        return self.new_array(handle.atom, name)

    def call(self, op: str | Op, *operands: V.Value | Operand, **attrs: Any) -> V.Value:
        """Emit an op with one result and give its value."""
        found = self.result(self.emit(op, *operands, **attrs))
        if (OPS[op] if isinstance(op, str) else op).fusion is Fusion.ELEMENTWISE:
            memory_order.of_result(self, operands, found)
        return found

    def new_array(self, atom: Atom, name: str = "") -> V.ArrayRef:
        """A fresh array with this content."""
        assert isinstance(atom.type, TensorType)
        span = self.let.span if self.let else None
        root = self.heap.new(V.Root("array", span, name=name), atom)
        return V.ArrayRef(root, (), atom.type)

    def new_ref(self, kind: str, content: Any, cls: Any = None) -> V.Ref:
        """A fresh list, dict, object, cell or pool."""
        span = self.let.span if self.let else None
        root = V.Root(kind, span)
        if kind in ("dict", "set", "object"):
            root.made = self.let
        return V.Ref(self.heap.new(root, content), cls)

    # -- reading -----------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        """Where the code at hand stands, by the calls around it: the same in each attempt."""
        return *(span for span, _ in self.calls), self.let.span if self.let else None

    def atom(self, value: V.Value) -> Atom:
        """The Core atom of a number or of an array's present content.

        Raises TypeMismatchError for anything else.
        """
        match value:
            case V.Union() if all(V.number_type(c) is not None for c in value.possible):
                return self.atom(self._chosen_number(value))
            case V.Known(v) if types.of_scalar(v) is not None:
                return wide.constant_of(self, v)
            case V.Scalar(_, atom, extent):
                if atom is not None:
                    return atom
                assert extent is not None
                return self.builder.extent(extent).atom
            case V.Natural(bits):
                return wide.int_of(self.builder, bits)
            case V.Wrapped():
                return self.atom(wide.settled(self, value))
            case V.ArrayRef(root, view):
                handle = self.builder.handle(self.content(root))
                before = len(self.builder.lets)
                try:
                    with dims.decided_by(self._decide_equal):
                        for step in view:
                            handle = self.builder.call(
                                OPS[step.kind], handle, *step.atoms, **step.keywords
                            )
                except NeedsCheck as need:  # the array is another one, since paths met
                    raise needs.NeedsUnrolling(self._shape_unknown(need)) from None
                # Whether it reaches beyond the array was asked where the view was made.
                self.program.checked.update(self.builder.lets[before:])
                return handle.atom
        raise self.failure(
            errors.TypeMismatchError, f"{V.describe(value)} cannot be used as a number or an array"
        )

    def _chosen_number(self, value: V.Union) -> V.Value:
        from pyrelay.infer.flow.unions import distribute_all

        return distribute_all(self, value, lambda case: [case])[0]

    def content(self, root: V.Root) -> Any:
        """What an object contains now. Raises AliasError if that cannot be known."""
        self.settle(root)
        content = self.heap.contents[root]
        if isinstance(content, V.Varied):
            raise self.varied(root, self.builder.span)
        if isinstance(content, (V.Part, V.Lost)):
            from pyrelay.infer.containers.lists import part_content

            return part_content(self, content)
        return content

    def _is_read_again(self, root: V.Root) -> bool:
        from pyrelay.infer.containers.found_items import read_again

        return read_again(self, root)

    def settle(self, root: V.Root) -> None:
        """Make sure that the heap says what an object contains. Raises as `content`."""
        if root in self.heap.torn:
            raise self.varied(root, self.heap.torn[root])
        if root.outdated and not self._is_read_again(root):
            raise self.failure(
                errors.AliasError,
                f"{repr(root.name) if root.name else 'this array'} became an item of a list, and "
                "an item was written through the list, which may be this array",
                related=[(root.outdated, "written here")] if root.outdated is not True else (),
                hints=("read it again from the list: x = items[i]",),
            )
        self.read.add(root)
        sources = self.heap.stale.get(root)
        if sources is not None:
            if identity.told_apart(root, sources):
                identity.settle(self, root)
                return
            related = [(s, "written here") for s in reversed(list(sources.values())) if s][:1]
            choices = [r.span for r in self.heap.contents if root.may_alias(r) and r.join]
            related += [(s, "here a name may come to mean it") for s in choices if s][:1]
            failure = self.failure(
                errors.AliasError,
                f"{'this ' + root.kind if not root.name else repr(root.name)} may or may not be "
                "the object that was written under another name, and plain Python would "
                "depend on which",
                related=related,
                hints=(
                    "copy it before the loop or branch that rebinds the name: "
                    f"{root.name or 'x'} = {root.name or 'x'}.copy()",
                ),
            )
            raise needs.NeedsIdentity(root, failure)

    def varied(self, root: V.Root, span: Span | None) -> PyrelayError:
        """The error for an object whose structure depends on a branch."""
        what, hint = {
            "list": ("length of a list", "keep the items in an array and a mask of those that "
                     "count: values[mask]"),
            "dict": ("keys of a dict", "give the dict the same keys on both branches"),
            "object": ("attributes of an object", "set the attribute on both branches"),
        }.get(root.kind, (f"structure of a {root.kind}", "do the same on both branches"))
        return self.failure(
            errors.UnsupportedOperationError,
            f"this branch changes the {what}, which only the running program knows then",
            span=span, hints=(hint,),
        )

    def tensor(self, value: V.Value, what: str = "this operation") -> TensorType:
        """Type of a number or array; TypeMismatchError for anything else."""
        ty = V.tensor_type(value)
        if ty is None:
            raise self.failure(
                errors.TypeMismatchError, f"{what} cannot take {V.describe(value)}",
            )
        return ty

    def static(self, value: V.Value, what: str) -> Any:
        """The Python object of a value that must be known while compiling.

        Tuples and lists of known values count. Raises NeedsStatic, caught where the value came from
        (a parameter is then specialised, a loop unrolled), or StaticValueError.
        """
        match value:
            case V.Known(v):
                return v
            case V.Tuple(items, None):
                return tuple(self.static(i, what) for i in items)
            case V.Ref(root) if root.kind == "list" and isinstance(self.content(root), tuple):
                return [self.static(i, what) for i in self.content(root)]
            case V.Text(origin=origin) if origin is not None:
                raise needs.NeedsStatic(origin, what)
            case V.Slice(a, b, c):
                return slice(self.static(a, what), self.static(b, what), self.static(c, what))
            case V.Scalar(_, _, extent, origin):
                if extent is not None:
                    known = self.program.guards.fix(extent)
                    if known is not None:
                        return known
                if origin is not None:
                    raise needs.NeedsStatic(origin, what)
                if isinstance(value.atom, Const):  # as in np.int64(2)
                    return value.atom.value
        failure = self.failure(
            errors.StaticValueError,
            f"{what} must be known when the function is compiled, and here it is "
            f"{V.describe(value)}, computed by the program",
            hints=(_INSTEAD[what],) if what in _INSTEAD else (),
        )
        if isinstance(value, V.Scalar):
            failure.unknown = Unknown(
                value.atom, [tuple(lets) for lets, _ in self.blocks], self.program.origins
            )
        raise failure

    # -- errors ------------------------------------------------------------------------------

    def failure(
        self, cls: type[PyrelayError], message: str, *, span: Span | None = None,
        label: str | None = None, related: Sequence[tuple[Span, str]] = (),
        notes: Sequence[str] = (), hints: Sequence[str] = (),
    ) -> PyrelayError:
        """An error at the current line, with the calls that led here.

        Within pyrelay's own Python functions it is at the line that called them. What is not
        compiled of the standard library is refused at the line that called that.
        """
        line = span or (self.let.span if self.let else None)
        here, chain = self._users_line(line)
        related = [(s, text) for s, text in related if not s.source.is_library]
        if here is not None and here.source.is_library and related:
            (here, label), *related = related
        message = message if message.endswith(".") else message + "."
        within = users_lines.before_standard(here, chain)
        if within is not None and here is not None and cls is errors.UnsupportedOperationError:
            file = os.path.basename(here.source.filename).strip("<>")
            notes = (f"{file}, line {here.line}: {message}",)
            here, name, chain = within
            message = f"{name!r} of the standard library cannot be compiled."
            label, related, hints = None, (), (users_lines.ELSEWHERE,)
        elif here is line and not (span or label or related) and issubclass(cls, _SHOWN_OPERANDS):
            here, label, related = marked_operands(self, here)
        return cls(
            message, span=here, label=label, related=related, notes=notes, hints=hints, calls=chain
        )

    def _users_line(self, line: Span | None) -> tuple[Span | None, users_lines.Calls]:
        calls = [(s, text) for s, text in reversed(self.calls) if s is not None]
        return users_lines.own(line, calls)

    def users_line(self) -> Span | None:
        """The line at hand, or the user's that called for it within pyrelay's own functions."""
        return self._users_line(self.let.span if self.let else None)[0]

    def relation_failure(self, error: RelationError, op: Op) -> PyrelayError:
        """The user's error for what a type relation refused."""
        cls: type[PyrelayError] = {
            "shape": errors.ShapeError, "type": errors.TypeMismatchError,
            "value": errors.InvalidValueError, "index": errors.IndexRangeError,
        }[error.kind]
        text = error.text if error.text[:1] == "'" else f"{self.operation(op)} {error.text}"
        notes = (error.note,) if error.note else ()
        hints = (error.hint,) if error.hint else ()
        return self.failure(cls, text, notes=notes, hints=hints)

    def operation(self, op: Op) -> str:
        """How the user spelled the operation at hand, else the op's name."""
        rhs = self.let.rhs if self.let else None
        if isinstance(rhs, PyCall) and rhs.kind in ("binary", "inplace", "unary", "compare"):
            suffix = "=" if rhs.kind == "inplace" else ""
            return f"'{rhs.attrs['op']}{suffix}'"
        return f"'{op.name}'"


#: ops that take the shapes that NumPy's functions take
_AS_IN_NUMPY = frozenset((
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum",
    "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "where", "matmul", "concatenate", "hypot", "arctan2",
))

_WITH_OTHER_WORDS = frozenset(("matmul", "concatenate"))
