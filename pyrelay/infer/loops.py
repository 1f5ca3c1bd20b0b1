"""Loops: the carried values' layouts are found as a fixpoint, then the loop is emitted once.

In: a Relay loop (`while`, or `for` over any iterable). Out: a Core `Loop` whose carried variables
are the leaves of the carried values and of every object that the body changes. A loop over
structure, or one whose body needs its index while compiling, is unrolled; one whose first iteration
changes the type of a carried value (None or a number that becomes an array) is peeled once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import narrowing
from pyrelay.infer import values as V
from pyrelay.infer.heap import Heap
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.iteration import Iteration, iterate
from pyrelay.infer.operators import poly_of
from pyrelay.infer.truth import truth
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ir.walk import block_binders, nested_lets, rhs_symbols

UNROLL_LIMIT = 1024
_MOST_PASSES = 12


def run_loop(it: Interpreter, let: Let) -> None:
    """Interpret a Loop of Relay."""
    node = let.rhs
    assert isinstance(node, Loop)
    init = [it.value(a) for a in node.init]
    iteration = None if node.iterable is None else iterate(it, it.value(node.iterable))
    results = _Runner(it, let, node, iteration).run(init)
    it.bind(let.outs, results)


class _TestHasEffects(Exception):
    """The test of a loop changes an object."""


class _TypeChanges(Exception):
    """A carried value's type after an iteration does not fit its type before."""

    def __init__(self, name: str, before: str, after: str, what: str) -> None:
        super().__init__(name)
        self.name, self.before, self.after, self.what = name, before, after, what


@dataclass
class _Runner:
    it: Interpreter
    let: Let
    node: Loop
    iteration: Iteration | None
    #: The test has effects: it is done first thing in the body, which then may leave the loop.
    tested_inside: bool = False

    @property
    def exits(self) -> bool:
        """True if the body says whether to leave."""
        return self.node.exits or self.tested_inside

    def run(self, init: list[V.Value]) -> list[V.Value]:
        """The carried values after the loop."""
        count = self.iteration.count if self.iteration else None
        if self.iteration and self.iteration.static:
            return self.unroll(init, 0, count.value)  # type: ignore[union-attr]
        if count == V.Known(0):
            return init
        try:
            return self._attempt(lambda: self.rolled(init, 0))
        except _TestHasEffects:
            self.tested_inside = True
            return self.run(init)
        except (_TypeChanges, V.NeedsUnrolling) as problem:
            return self._otherwise(init, problem)

    def _attempt(self, action: Callable[[], list[V.Value]]) -> list[V.Value]:
        """Run an attempt; if it fails, nothing of it stays."""
        it = self.it
        saved_lets, saved_heap = len(it.builder.lets), it.heap.copy()
        saved_env = dict(it.frame.env)
        try:
            return action()
        except (_TypeChanges, V.NeedsUnrolling, _TestHasEffects):
            del it.builder.lets[saved_lets:]
            it.heap.contents, it.heap.stale = saved_heap.contents, saved_heap.stale
            it.heap.written = saved_heap.written
            it.frame.env = saved_env
            raise

    def _otherwise(self, init: list[V.Value], problem: Exception) -> list[V.Value]:
        count = self.iteration.count if self.iteration else None
        if isinstance(count, V.Scalar) and count.extent is not None and isinstance(
            problem, V.NeedsUnrolling
        ):
            fixed = self.it.program.guards.fix(count.extent)
            count = count if fixed is None else V.Known(fixed)
        if isinstance(count, V.Known) and count.value <= UNROLL_LIMIT:
            return self.unroll(init, 0, count.value)
        if self.iteration is None:
            try:
                return self._attempt(lambda: self.unroll_while(init, problem))
            except (_TypeChanges, V.NeedsUnrolling) as again:
                problem = again
        if isinstance(problem, V.NeedsUnrolling):
            if isinstance(count, V.Scalar) and isinstance(count.origin, tuple):
                raise V.NeedsStatic(count.origin, "how often this loop runs")
            raise problem.error
        assert isinstance(problem, _TypeChanges)
        try:
            return self._attempt(lambda: self.peeled(init))
        except _TypeChanges as again:
            raise self._changed(problem if problem.before != "None" else again) from None

    def _changed(self, problem: _TypeChanges) -> errors.PyrelayError:
        return self.it.failure(
            errors.TypeMismatchError,
            f"{problem.name!r} is {problem.before} before an iteration of this loop and "
            f"{problem.after} after it",
            notes=(f"what a loop carries keeps its type: {problem.what}",),
            hints=(f"start {problem.name!r} with a value of the type it has in the loop",),
        )

    # -- one iteration ---------------------------------------------------------------------------

    def enter(self, carried: list[V.Value]) -> None:
        """Bind the carried variables for the test and the body."""
        self.it.bind(self.node.carried, carried)

    def test(self) -> V.Value:
        """Interpret the test; its truth. Binds the handed variables."""
        assert self.node.test is not None
        cond, *handed = self.it.run(self.node.test)
        self.it.bind(self.node.handed, handed)
        return truth(self.it, cond)

    def body(self, index: V.Value | None) -> tuple[V.Value, list[V.Value]]:
        """Interpret the body; whether to leave, and the next carried values."""
        if self.iteration is not None:
            assert index is not None
            if self.node.item is not None:
                self.it.bind((self.node.item,), (self.iteration.item(index),))
        if not self.tested_inside:
            return self._body()
        going = self.test()
        if isinstance(going, V.Known):
            return self._body() if going.value else (V.Known(True), self._carried())
        from pyrelay.infer.control import branch

        def inside() -> list[V.Value]:
            leave, following = self._body()
            return [leave, *following]

        names = ["leave", *(v.name for v in self.node.carried)]
        leave, *following = branch(
            self.it, self.it.atom(going), inside, lambda: [V.Known(True), *self._carried()], names
        )
        return leave, following

    def _carried(self) -> list[V.Value]:
        return [self.it.value(v) for v in self.node.carried]

    def _body(self) -> tuple[V.Value, list[V.Value]]:
        results = list(self.it.run(self.node.body))
        if self.node.exits:
            return truth(self.it, results[0]), results[1:]
        return V.Known(False), results

    # -- unrolled and peeled -----------------------------------------------------------------------

    def unroll(self, carried: list[V.Value], start: int, count: int) -> list[V.Value]:
        """Iterations `start` to `count` one after the other."""
        from pyrelay.infer.control import branch

        if count - start > UNROLL_LIMIT:
            raise self.it.failure(
                errors.UnsupportedOperationError,
                f"this loop would have to be unrolled {count - start} times, and the limit is "
                f"{UNROLL_LIMIT}",
                notes=("its items differ in structure, or its body needs the index while compiling",),
                hints=("keep the items in one array, and index it with the loop variable",),
            )
        for k in range(start, count):
            self.enter(carried)
            leave, carried = self.body(V.Known(k))
            if isinstance(leave, V.Known):
                if leave.value:
                    return carried
                continue
            if k + 1 == count:
                return carried
            stop, rest = list(carried), list(carried)
            return branch(
                self.it, self.it.atom(leave), lambda s=stop: s,  # type: ignore[misc]
                lambda r=rest, n=k + 1: self.unroll(r, n, count),  # type: ignore[misc]
                [v.name for v in self.node.carried],
            )
        return carried

    def unroll_while(self, carried: list[V.Value], problem: Exception) -> list[V.Value]:
        """A `while` whose test is known each time; raises `problem` if it is not."""
        for _ in range(UNROLL_LIMIT):
            self.enter(carried)
            going = V.Known(True) if self.node.test is None or self.tested_inside else self.test()
            if going == V.Known(False):
                return carried
            leave, following = self.body(None) if going == V.Known(True) else (None, carried)
            if leave == V.Known(True):
                return following
            if leave != V.Known(False):
                break
            carried = following
        raise problem

    def peeled(self, init: list[V.Value]) -> list[V.Value]:
        """One iteration, if there is one, then the loop."""
        from pyrelay.infer.control import branch

        it = self.it
        names = [v.name for v in self.node.carried]

        def rest(carried: list[V.Value]) -> list[V.Value]:
            return self.rolled(carried, 1)

        def first() -> list[V.Value]:
            leave, carried = self.body(V.Known(0))
            if isinstance(leave, V.Known):
                return carried if leave.value else rest(carried)
            stop = list(carried)
            return branch(it, it.atom(leave), lambda: stop, lambda: rest(carried), names)

        self.enter(init)
        if self.iteration is None:
            tested = self.node.test is not None and not self.tested_inside
            started = self.test() if tested else V.Known(True)
        else:
            started = _positive(it, self.iteration.count)
        if isinstance(started, V.Known):
            return first() if started.value else init
        return branch(it, it.atom(started), first, lambda: init, names, lenient=True)

    # -- rolled --------------------------------------------------------------------------------------

    def rolled(self, init: list[V.Value], start: int) -> list[V.Value]:
        """A loop of Core from iteration `start` on."""
        state = _Fixpoint(self, init, start)
        for _ in range(_MOST_PASSES):
            done = state.attempt()
            if done is not None:
                return done
        raise self.it.failure(
            errors.TypeMismatchError, "the types that this loop carries never settle"
        )


@dataclass
class _Pass:
    """One interpretation of the loop with a guess of the layouts."""

    carried: tuple[Var, ...]
    index: Var | None
    test: Block | None
    handed: tuple[Var, ...]
    heap: Heap  # at the back edge
    builder: Builder  # of the body
    leave: V.Value
    following: list[V.Value] | None
    header: list[V.Value]


@dataclass
class _Fixpoint:
    runner: _Runner
    init: list[V.Value]
    start: int
    layouts: list[L.Layout] = field(default_factory=list)
    changed: dict[V.Root, Any] = field(default_factory=dict)  # layouts of changed contents
    place_roots: frozenset[V.Root] = frozenset()
    stale: dict[V.Root, Any] = field(default_factory=dict)
    mark: int = 0
    symbol: Symbol | None = None  # stands for the loop's index in sizes

    def __post_init__(self) -> None:
        self.mark = dims.Symbol("mark").serial
        self._describe_entry()

    @property
    def it(self) -> Interpreter:
        return self.runner.it

    def _describer(self, heap: Heap) -> L.Describer:
        outer = self.base.contents.__contains__
        return L.Describer(heap, outer, self.mark, True, self.place_roots)

    def _describe_entry(self) -> None:
        self.base = self.it.heap
        self.layouts = [self._describer(self.base)(v) for v in self.init]
        describer = self._describer(self.base)
        self.layouts = [describer(v) for v in self.init]
        for root in self.changed:
            self.changed[root] = describer.content(root)

    @property
    def everything(self) -> list[Any]:
        """All layouts: of the carried values, then of the changed contents."""
        return [*self.layouts, *self.changed.values()]

    def attempt(self) -> list[V.Value] | None:
        """Interpret the loop with the present layouts; its results if they are right."""
        try:
            result = self._interpret()
            if result.following is None:
                return self._emit(result)
            if self._settled(result):
                return self._emit(result)
        except L.NeedsPlace as need:
            self.place_roots |= need.roots
            self._describe_entry()
        return None

    # -- one pass ---------------------------------------------------------------------------------

    def _interpret(self) -> _Pass:
        it, runner, node = self.it, self.runner, self.runner.node
        from pyrelay.infer.control import _unshared

        carried = tuple(Var("c", t, span=it.builder.span) for t in _unshared(self.everything))
        test_builder, body_builder = it.builder.nested(), it.builder.nested()
        heap = self.base.copy()
        heap.stale.update(self.stale)
        saved_let, env = it.let, dict(it.frame.env)
        with it.inside(test_builder, heap):
            header = self._decode(iter(carried), heap)
            for root in self.changed:
                heap.stale.pop(root, None)
            runner.enter(header)
            test, handed = None, ()
            kept: tuple[narrowing.Kept, ...] = ()
            tested = node.test is not None and not runner.tested_inside
            if tested:
                before = heap.copy()
                cond = runner.test()
                if heap.changed_since(before):
                    raise _TestHasEffects
                kept = narrowing.fact_of(it, cond).if_true
                test, handed = self._close_test(test_builder, cond)
        index = Var("i", types.PY_INT, span=it.builder.span)
        with it.inside(body_builder, heap):
            if not tested:
                # Lets made while entering belong to the body.
                body_builder.lets[:0] = test_builder.lets
            leave: V.Value = V.Known(False)
            following: list[V.Value] | None = None
            try:
                with narrowing.assuming(it, kept):
                    leave, following = runner.body(self._index_value(index))
            except V.Diverges:
                following = None
            except V.NeedsStatic as need:
                if need.origin is not self:
                    raise
                raise V.NeedsUnrolling(self._needs(need)) from None
            finally:
                it.let = saved_let
        used = index if runner.iteration is not None else None
        result = _Pass(
            carried, used, test, handed, heap, body_builder, leave, following, header
        )
        it.frame.env = env
        return result

    def _needs(self, need: V.NeedsStatic) -> Exception:
        return self.it.failure(
            errors.StaticValueError,
            f"{need.why} must be known when the function is compiled, and it depends on the loop "
            "variable of a loop whose length is known only at run time",
        )

    def _index_value(self, index: Var) -> V.Value:
        self.symbol = Symbol("i", dims.Origin.RUNTIME)
        last = None
        if self.runner.iteration is not None:
            count = poly_of(self.runner.iteration.count)
            last = None if count is None else dims.add(count, -1 - self.start)
        self.it.program.guards.ranges[self.symbol] = (0, last)
        plain = V.Scalar(types.PY_INT, index, None, self, dims.of(self.symbol))
        if not self.start:
            return plain
        shifted = self.it.emit("add", plain, self.start)
        poly = dims.add(dims.of(self.symbol), self.start)
        return V.Scalar(types.PY_INT, shifted.atom, None, self, poly)

    def _bind_index(self, result: _Pass, extents: Sequence[Extent]) -> None:
        """If a type or a size of the body is written with the loop's index, bind its symbol there."""
        if result.index is None or not _mentions(result.builder.lets, extents, self.symbol):
            return
        bound = Builder(self.it.builder.span)
        call = OpCall(OPS["as_extent"], (result.index,))
        bound.lets.append(Let((), call, (self.symbol,), span=bound.span))
        result.builder.lets[:0] = bound.lets

    def _close_test(
        self, builder: Builder, cond: V.Value
    ) -> tuple[Block, tuple[Var, ...]]:
        """The finished test block: what it computed and the body reads is handed over."""
        it = self.it
        with it.inside(builder, it.heap):
            atom = it.atom(cond)
        # Every variable bound in the test may be read by the body; unread ones are removed later.
        made = [v for let in builder.lets for v in let.outs]
        symbols = {s for let in builder.lets for s in let.dims}
        handed = []
        renamed: dict[Var, Var] = {}
        for var in made:
            assert isinstance(var.type, (TensorType, types.TapeType))
            if symbols.isdisjoint(types.type_symbols(var.type)):
                renamed[var] = Var(var.name, var.type, span=var.span)
                handed.append(renamed[var])
        _Handover(it, renamed).apply()
        return builder.block([atom, *renamed]), tuple(handed)

    def _decode(self, outs: Any, heap: Heap, renamed: Any = None) -> list[V.Value]:
        decoder = L.Decoder(outs, heap, span=self.it.builder.span)
        header = []
        for layout, var in zip(self.layouts, self.runner.node.carried, strict=True):
            decoder.name = var.name
            header.append(decoder(layout))
        for root, layout in self.changed.items():
            heap.contents[root] = decoder.content(root.kind, layout)
        return header

    # -- comparison ---------------------------------------------------------------------------------

    def _settled(self, result: _Pass) -> bool:
        """Join the layouts at the back edge into the guess; True if the guess already held."""
        assert result.following is not None
        describer = self._describer(result.heap)
        before = self.everything, list(self.changed), dict(self.stale)
        bound = frozenset(
            dims.of(s) for s in L.layout_symbols(self.everything, self.mark)
        )
        joiner = L.Joiner(False, bound, same=self.it.program.guards.same)
        back = [describer(v) for v in result.following]
        names = [v.name for v in self.runner.node.carried]
        layouts = []
        for name, old, new, was, now in zip(
            names, self.layouts, back, result.header, result.following, strict=True
        ):
            try:
                layouts.append(joiner(old, new))
            except L.JoinError as error:
                raise _TypeChanges(
                    name, V.describe(was), V.describe(now), error.what
                ) from None
        entry = self._describer(self.base)
        for root in result.heap.changed_since(self.base):
            if root not in self.changed:
                self.changed[root] = entry.content(root)
        for root in self.changed:
            self.changed[root] = self._join_content(
                joiner, root, self.changed[root], describer.content(root)
            )
        self.layouts = layouts
        self.stale = {
            r: s for r, s in result.heap.stale.items() if r in self.base.contents
        }
        return before == (self.everything, list(self.changed), dict(self.stale))

    def _join_content(self, joiner: L.Joiner, root: V.Root, a: Any, b: Any) -> Any:
        if isinstance(a, TensorType):
            return joiner.array_type(
                L.LPlace(-1, "array", None, a), L.LPlace(-1, "array", None, b)
            )
        if a.head != b.head:
            raise V.NeedsUnrolling(
                self.it.failure(
                    errors.UnsupportedOperationError,
                    f"this loop changes the length or the keys of a {root.kind}, and how often it "
                    "runs is known only at run time",
                    hints=("write into an array made before the loop: out[i] = ...",),
                )
            )
        try:
            return joiner(a, b)
        except L.JoinError as error:
            raise _TypeChanges(
                root.name or f"an item of a {root.kind}", _show(error.left), _show(error.right),
                error.what,
            ) from None

    # -- emission ----------------------------------------------------------------------------------

    def _emit(self, result: _Pass) -> list[V.Value]:
        it = self.it
        symbols = L.layout_symbols(self.everything, self.mark)
        init = L.Encoder(it.builder, self.base, it.atom)
        self._encode(init, self.init)
        body = self._body(result, symbols)
        count = None
        if self.runner.iteration is not None:
            count = it.atom(self._count())
        loop = Loop(
            result.carried, tuple(init.atoms), body, result.test, result.handed, count,
            result.index, self.runner.exits, tuple(symbols), tuple(init.extents[s] for s in symbols),
        )
        outer = {s: Symbol(s.name, s.origin) for s in symbols}
        mapping: dict[Symbol, Extent] = {s: dims.of(t) for s, t in outer.items()}
        outs = tuple(
            Var("v", types.substitute(v.type, mapping), span=it.builder.span)  # type: ignore[arg-type]
            for v in result.carried
        )
        it.builder.lets.append(Let(outs, loop, tuple(outer.values()), span=it.builder.span))
        values = self._decode(iter(outs), self.base)
        self.base.stale.update(self.stale)
        for root in self.changed:
            self.base.stale.pop(root, None)
        self.base.written.update(result.heap.written)
        return values

    def _count(self) -> V.Value:
        assert self.runner.iteration is not None
        count = self.runner.iteration.count
        if not self.start:
            return count
        from pyrelay.infer.operators import binary

        return binary(self.it, "-", count, V.Known(self.start))

    def _encode(self, encoder: L.Encoder, carried: list[V.Value]) -> None:
        for value, layout in zip(carried, self.layouts, strict=True):
            encoder(value, layout)
        for root, layout in self.changed.items():
            encoder.content(root, layout)

    def _body(self, result: _Pass, symbols: list[Symbol]) -> Block:
        it, exits = self.it, self.runner.exits
        if result.following is None:  # the body always raises
            none: dict[Symbol, Extent] = {s: dims.of(s) for s in symbols}
            with it.inside(result.builder, result.heap):
                atoms: list[Atom] = [
                    result.builder.undef(types.substitute(v.type, none)).atom  # type: ignore[arg-type]
                    for v in result.carried
                ]
            leave = [constant(True)] if exits else []
            self._bind_index(result, ())
            return result.builder.block([*leave, *atoms], [dims.of(s) for s in symbols])
        with it.inside(result.builder, result.heap):
            encoder = L.Encoder(result.builder, result.heap, it.atom)
            self._encode(encoder, result.following)
            leaves = [it.atom(result.leave)] if exits else []
        extents = [encoder.extents[s] for s in symbols]
        self._bind_index(result, extents)
        return result.builder.block([*leaves, *encoder.atoms], extents)


def _mentions(lets: Sequence[Let], extents: Sequence[Extent], symbol: Symbol | None) -> bool:
    """True if a type, an attribute or an extent in these Lets is written with the symbol."""
    if any(symbol in dims.symbols(e) for e in extents):
        return True
    for let in nested_lets(Block(tuple(lets), ())):
        for var in (*let.outs, *block_binders(let.rhs)):
            if var.type is not None and symbol in types.type_symbols(var.type):
                return True
        if symbol in rhs_symbols(let.rhs):
            return True
    return False


@dataclass
class _Handover:
    """Renames, in everything the interpreter holds, variables of the test to their handed twins."""

    it: Interpreter
    renamed: dict[Var, Var]

    def apply(self) -> None:
        env = self.it.frame.env
        for key, value in env.items():
            env[key] = self._value(value)
        contents = self.it.heap.contents
        for root, content in contents.items():
            if isinstance(content, Var):
                contents[root] = self.renamed.get(content, content)
            elif root.kind != "array":
                children = [self._value(c) for c in L.content_children(content)]
                if any(a is not b for a, b in zip(children, L.content_children(content), strict=True)):
                    contents[root] = L.rebuild_content(L.content_head(content), children)

    def _value(self, value: V.Value) -> V.Value:
        match value:
            case V.Scalar(ty, Var() as atom, extent, origin) if atom in self.renamed:
                return V.Scalar(ty, self.renamed[atom], extent, origin)
            case V.Union(tag, cases):
                new_tag = self.renamed.get(tag, tag) if isinstance(tag, Var) else tag
                new_cases = tuple(self._value(c) for c in cases)
                if new_tag is tag and all(a is b for a, b in zip(cases, new_cases, strict=True)):
                    return value
                return V.Union(new_tag, new_cases)
        head = L.head_of(value)
        if head is None:
            return value
        children = L.children_of(value)
        new = [self._value(c) for c in children]
        if all(a is b for a, b in zip(children, new, strict=True)):
            return value
        return L.rebuild(head, new)


def _positive(it: Interpreter, count: V.Value) -> V.Value:
    from pyrelay.infer.operators import compare

    return compare(it, ">", count, V.Known(0))


def _show(layout: L.Layout) -> str:
    match layout:
        case L.LScalar(ty) | L.LPlace(_, "array", _, ty):
            return str(ty)
        case L.LKnown(v):
            return V.describe(V.Known(v))
        case L.LPlace(_, kind, cls):
            return cls.__name__ if cls else f"a {kind}"
    return "a structure"
