"""One pass over the body of a function that is specialised (specialisation.py).

In: a `Specialisation`: the layouts of the arguments. Out: a Core function of these parameters, and
the layouts of what it returns and of what it changed (`Result`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.infer import layout as L
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order
from pyrelay.infer.arrays.identity import Numberer, Numbers
from pyrelay.infer.containers import admission
from pyrelay.infer.decoding import Decoder
from pyrelay.infer.describing import Describer
from pyrelay.infer.encoding import Encoder
from pyrelay.infer.flow import handling
from pyrelay.infer.flow import joining as J
from pyrelay.infer.flow.revisits import Visits
from pyrelay.infer.heap import Heap
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import layout_symbols, leaf_types
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Function, Var
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

#: A mark that no symbol is newer than: all extents are visible.
EVERYTHING = 1 << 62


@dataclass
class Result:
    """What a specialised function returns: layouts of the result and of changed parameters."""

    value: L.Layout
    changed: tuple[int, ...]  # keys of places among the arguments
    contents: tuple[Any, ...]
    symbols: tuple[Symbol, ...]
    stored: tuple[int, ...] = ()  # keys of lists among the arguments that became items
    moved: frozenset[int] = frozenset()  # keys of changed lists with items at other positions now


@dataclass(eq=False)
class Specialisation:
    """One Core function. `layouts` are those of its arguments, which may widen.

    The arguments are the pools of new nodes, the Python function's, its cells, then the objects the
    program captures. Pools come first, so that what mentions them afterwards has no contents.
    alone: the Python function's and its cells only. strict: it stands for calls in line, to which
    it makes no difference (own_functions.py).
    """

    name: str
    closure: V.Closure
    layouts: list[L.Layout]
    alone: bool = False
    strict: bool = False
    static: dict[int, Any] = field(default_factory=dict)  # argument positions kept known
    result: Result | None = None
    in_progress: bool = False
    transparent: bool = False  # uses the caller's symbols
    widened: bool = False
    copies: bool = False  # returned parameters are copied: not on all paths the same one is
    fresh: bool = False  # all that it returns is a copy
    #: specialisations, in progress when this one was made, whose results it took as they were then
    assumed: list[Specialisation] = field(default_factory=list)
    #: who follows what it raises, which is one of its results then (`Interpreter.follows`)
    follows: str = ""
    never: bool = False  # all its paths raise, so it never returns
    taken: Numbers = field(default_factory=Numbers.of_arguments)  # of arrays among the arguments
    given: Numbers = field(default_factory=Numbers.of_results)
    visits: Visits = field(default_factory=Visits)  # of its loops, by earlier passes over its body


class NeedsKnown(Exception):
    """An argument of the function being specialised must be known while compiling."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(position)
        self.position, self.why = position, why


class NotInLine(Exception):
    """A function gives something else than its calls in line would: a copy in place of a view."""


def argument_types(spec: Specialisation) -> list[Any]:
    """The types of its parameters."""
    return leaf_types(spec.layouts)


def interpret_function(
    it: Interpreter, spec: Specialisation
) -> tuple[Function, Result | None]:
    """One pass over the body with fresh parameters."""
    from pyrelay.infer import calls

    leaves = argument_types(spec)
    params = tuple(Var("p", t, span=spec.closure.function.span) for t in leaves)
    heap = Heap(items=it.heap.items)
    decoder = Decoder(
        iter(params), heap, numbers=spec.taken, origins=it.program.origins
    )
    values = [decoder(x) for x in spec.layouts]
    computed = {i for f, i in it.program.computed if f is spec.closure.function}
    values = [v if i in computed else _from_parameter(v, spec, i) for i, v in enumerate(values)]
    roots = dict(decoder.roots)
    entry = heap.copy()
    inner = Interpreter(
        it.program, Builder(spec.closure.function.span), heap, [], list(it.calls), it.let,
        [*it.active, spec.closure.function], conditional=1, rolling=1, visits=spec.visits,
        params=params,
    )
    spec.visits.met.clear()
    pools, captured = ({}, []) if spec.alone else (it.pools, captured_values(it))
    first, end = len(pools), len(values) - len(captured)
    inner.pools = dict(zip(pools, values[:first], strict=True))  # type: ignore[arg-type]
    inner.before = entry
    inner.captured = _numbered(it, captured, inner, values[end:])
    split = end - len(spec.closure.cells)
    closure = replace(spec.closure, cells=tuple(values[split:end]))
    symbols = own_symbols(spec, leaves)

    def run() -> V.Value:
        return calls.run_body(inner, closure, values[first:split], closure.function.body)

    try:
        with heap.repeated(for_good=True):
            value = handling.with_raised(inner, run, spec.follows) if spec.follows else run()
    except needs.Diverges:
        return Function(spec.name, params, inner.builder.block(()), symbols), None
    except needs.NeedsStatic as need:
        if isinstance(need.origin, tuple) and need.origin[0] is spec:
            raise NeedsKnown(need.origin[1], need.why) from None
        raise
    if spec.fresh:
        from pyrelay.infer.names.copying import unshared

        value = unshared(inner, value)
    value = admission.lent(inner, value)
    return _close(inner, spec, params, roots, entry, symbols, value)


def captured_values(it: Interpreter) -> list[V.Value]:
    """The captured objects, which the program hands to every function of its own."""
    known = it.program.objects if it.captured is None else it.captured
    return [known[n] for n in it.program.captured]


def _numbered(
    outer: Interpreter, values: Sequence[V.Value], inner: Interpreter, parts: Sequence[V.Value]
) -> dict[int, V.Value]:
    """The captured objects as a function sees them, and what lies in them, by number."""
    known = outer.captured
    if known is None:
        known = dict(enumerate(outer.program.objects))
    numbers = {v.root: n for n, v in known.items() if isinstance(v, (V.ArrayRef, V.Ref))}
    found: dict[int, V.Value] = {}
    pending = list(zip(values, parts, strict=True))
    while pending:
        given, mine = pending.pop()
        if isinstance(given, (V.ArrayRef, V.Ref)) and isinstance(mine, (V.ArrayRef, V.Ref)):
            number = numbers.get(given.root)
            if number in found:
                continue
            if number is not None:
                found[number] = mine
            if isinstance(given, V.Ref):
                contents = outer.heap.contents[given.root], inner.heap.contents[mine.root]
                if any(isinstance(c, (V.Growing, V.Part, V.Lost)) for c in contents):
                    continue
                pending.extend(zip(*map(L.content_children, contents), strict=True))
        else:
            pending.extend(zip(L.children_of(given), L.children_of(mine), strict=True))
    nodes = zip(outer.program.captured, parts, strict=False)  # none where a function is alone
    return {**{n: mine for n, mine in nodes if isinstance(mine, V.Data | V.Union)}, **found}


def _from_parameter(value: V.Value, spec: Specialisation, position: int) -> V.Value:
    if isinstance(value, V.Scalar):
        return replace(value, origin=(spec, position))
    return value


def own_symbols(spec: Specialisation, leaves: Sequence[Any]) -> tuple[Symbol, ...]:
    """The symbols in the types of its parameters."""
    found: dict[Symbol, None] = {}
    for ty in leaves:
        for symbol in types.type_symbols(ty):
            found[symbol] = None
    return tuple(found)


def _close(
    inner: Interpreter, spec: Specialisation, params: tuple[Var, ...], roots: dict[int, V.Root],
    entry: Heap, symbols: tuple[Symbol, ...], value: V.Value,
) -> tuple[Function, Result]:
    """Finish the block: encode the result and the contents of changed parameters."""
    outer = set(roots.values())
    for root in roots.values():  # what was written to it under other names is settled
        if isinstance(inner.heap.contents[root], (V.Part, V.Lost)):
            inner.settle(root)  # it lives in another list, where callers cannot follow it
        else:
            inner.content(root)
    if spec.strict:
        _refuse_views(inner, roots.values(), entry, value)
    visible = set(symbols)
    copied: frozenset[V.Root] = frozenset()
    for leaf in V.leaves_of((value,)):
        if isinstance(leaf, V.ArrayRef) and leaf.root in outer and leaf.view:
            copied |= {leaf.root}  # a view of a parameter is returned as a copy of its elements
    mark = EVERYTHING if spec.transparent else 0
    keys = {root: key for key, root in roots.items()}
    if spec.copies:
        copied |= {r for r in outer if r.kind != "pool"}
    describer = _ResultDescriber(
        inner.heap, outer.__contains__, mark, place_roots=copied, own=visible,
        open=spec.transparent, parameters=keys, exact=min(inner.program.exact, 1), kinds=True,
        behind_call=True,
    )
    layout = describer(value)
    changed = [r for r in inner.heap.changed_since(entry) if r in outer]
    contents = tuple(describer.content(r) for r in changed)
    found = [s for s in layout_symbols([layout, *contents], -1) if s not in visible]
    if spec.transparent:
        inside = {s for let in inner.builder.lets for s in let.dims}
        found = [s for s in found if s in inside or s in describer.renamed_symbols()]
    stored = tuple(key for key, r in roots.items() if r.kind == "list" and r.stored)
    moved = frozenset(keys[r] for r in changed if _moves(entry.contents[r], inner.heap.contents[r]))
    result = Result(
        layout, tuple(keys[r] for r in changed), contents, tuple(found), stored, moved
    )
    if spec.result is not None and same_result(inner, spec.result, result):
        result = spec.result  # what callers were told, where this pass knows more
        layout, *rest = (_with_roots(x, roots) for x in (result.value, *result.contents))
        contents, found = tuple(rest), list(result.symbols)
    encoder = Encoder(
        inner.builder, inner.heap, inner.atom, number=Numberer(inner.builder, spec.given),
        bound=found, same=inner.program.guards.same, settle=inner.settle,
    )
    encoder(value, layout)
    for root, content in zip(changed, contents, strict=True):
        encoder.content(root, content)
    atoms = encoder.finish()
    extents = [encoder.extents.get(s, dims.of(s)) for s in found]
    body = inner.builder.block(atoms, extents)
    function = Function(
        spec.name, params, body, symbols, span=spec.closure.function.span
    )
    return function, result


def _moves(before: Any, after: Any) -> bool:
    """Whether items of a list may be at other positions than where a function began."""
    return not isinstance(before, V.Growing) or not isinstance(after, V.Growing) or (
        after.slots is not before.slots
    )


def _refuse_views(
    inner: Interpreter, outer: Iterable[V.Root], entry: Heap, value: V.Value
) -> None:
    """Raise NotInLine if views of arrays, iterators, or items of lists leave the function: behind
    it they are other objects."""
    changed = [V.Ref(r) for r in inner.heap.changed_since(entry) if r.kind not in ("array", "pool")]
    pending, seen = [value, *changed], set[V.Root]()
    while pending:
        for part in V.leaves_of((pending.pop(),)):
            if isinstance(part, V.ArrayRef) and (
                part.view or memory_order.of_root(inner.program, part.root).layout is not None
                or part.root in inner.program.listed
            ):
                raise NotInLine
            if not isinstance(part, V.Ref) or part.root in seen or part.root.kind == "pool":
                continue
            seen.add(part.root)
            content = inner.heap.contents[part.root]
            if part.root.kind in ("generator", "iterator") or isinstance(
                content, (V.Part, V.Lost, V.Varied)
            ):
                raise NotInLine
            pending.extend(L.content_children(content))


def _with_roots(layout: Any, roots: Mapping[int, V.Root]) -> Any:
    """A layout of an earlier pass, with the objects that the parameters are in this one."""
    match layout:
        case L.LParam(key):
            return L.LParam(key, roots[key])
        case L.LNode(_, parts):
            return replace(layout, children=tuple(_with_roots(p, roots) for p in parts))
        case L.LUnion(cases):
            return L.LUnion(tuple(_with_roots(c, roots) for c in cases))
        case L.LPlace(content=L.LNode() | L.LGrown() as content):
            return replace(layout, content=_with_roots(content, roots))
        case L.LGrown(pools=pools):
            return replace(layout, pools=tuple(_with_roots(p, roots) for p in pools))
    return layout


@dataclass
class _ResultDescriber(Describer):
    """Visible in a result are the symbols of the parameters (all of the caller's, if `open`)."""

    own: set[Symbol] = field(default_factory=set)
    open: bool = False
    parameters: dict[V.Root, int] = field(default_factory=dict)

    def __call__(self, value: V.Value) -> L.Layout:
        layout = Describer.__call__(self, value)
        if isinstance(layout, L.LFixed):
            root = layout.value.root
            return L.LParam(self.parameters[root], root)
        if isinstance(layout, L.LPlace) and layout.numbered:
            own = {k: r for r, k in self.parameters.items()}
            if any(own[k].number is None for k in layout.may_be):
                return replace(layout, numbered=False)
        return layout

    def _part(self, content: V.Part) -> L.LNode:
        """An owner is another object to the caller."""
        return L.LNode(("lost",), ())

    def _may_be(self, root: V.Root) -> frozenset[Any]:
        return frozenset(self.parameters[r] for r in Describer._may_be(self, root))

    def _visible(self, extent: Extent) -> bool:
        if self.open:
            return all(s.origin is Origin.ENTRY or s in self.own for s in dims.symbols(extent))
        return all(s in self.own for s in dims.symbols(extent))

    def renamed_symbols(self) -> set[Symbol]:
        """The symbols made for extents that are not visible."""
        return {s for e in self.renamed.values() for s in dims.symbols(e)}


def same_result(it: Interpreter, a: Result, b: Result) -> bool:
    """Whether what `b` returns and changes is laid out as `a` says."""
    if a.changed != b.changed or a.stored != b.stored or not b.moved <= a.moved:
        return False
    everything_a, everything_b = [a.value, *a.contents], [b.value, *b.contents]
    bound = frozenset(dims.of(s) for s in a.symbols)
    joiner = J.Joiner(False, True, bound, same=it.program.guards.alike, kinds=True)
    for x, y in zip(everything_a, everything_b, strict=True):
        try:
            joined = join_any(joiner, x, y)
        except (L.JoinError, J.NeedsPlace):
            return False
        if joined != x:
            return False
    return True


def join_any(joiner: J.Joiner, x: Any, y: Any) -> Any:
    """The layout of values, or of contents, that two others fit."""
    if isinstance(x, (TensorType, L.LGrown)) or isinstance(y, L.LGrown):
        return joiner.content("list", x, y)
    if isinstance(x, L.LNode) and isinstance(y, L.LNode) and x.head[0] == "items":
        return joiner.content("list", x, y)
    return joiner(x, y)
