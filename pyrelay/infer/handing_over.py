"""Calls of the program's own functions: arguments handed over, results and changes taken back.

In: a specialisation and the values of its arguments. Out: the call, its result decoded in the
caller, and every object of the caller's with what the function left in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.arrays.identity import Numberer, identity, numbered
from pyrelay.infer.containers import lists
from pyrelay.infer.containers.open_sequences import as_laid_out
from pyrelay.infer.decoding import Decoder
from pyrelay.infer.encoding import Encoder, case_index
from pyrelay.infer.function_bodies import Result, Specialisation, argument_types, own_symbols
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import leaf_types
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import TEMPORARY, UNREAD, Atom, FnCall, Let, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


def encode_arguments(
    it: Interpreter, spec: Specialisation, arguments: Sequence[V.Value]
) -> tuple[list[Atom], tuple[Extent, ...], Places]:
    """Atoms, extents, and which value each place of the layouts is."""
    symbols = own_symbols(spec, argument_types(spec))
    encoder = Encoder(
        it.builder, it.heap, it.atom, number=Numberer(it.builder, spec.taken), bound=symbols,
        same=it.program.guards.same, settle=it.settle,
    )
    places = Places()
    for given, layout in zip(arguments, spec.layouts, strict=True):
        value = as_laid_out(it, given, layout)
        encoder(value, layout)
        _note_places(it, value, layout, places)
    atoms = encoder.finish()
    extents = tuple(encoder.extents.get(s, dims.of(s)) for s in symbols)
    return atoms, extents, places


Tests = tuple[tuple[Atom, int], ...]
"""Tags and the numbers they must have."""


class Places(dict[int, V.Value]):
    """The values of the places of some arguments, those in cases that they may be of included.

    tests: when a value is at hand: if one of these is true.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tests: dict[int, list[Tests]] = {}
        self.layouts: dict[int, L.LPlace] = {}

    def note(self, value: V.Value, layout: L.LPlace, tests: Tests) -> bool:
        """Note a place. False if it is known to be at hand where these tests are true."""
        known = self.tests.setdefault(layout.key, [])
        if any(set(other) <= set(tests) for other in known):
            return False
        known.append(tests)
        self.setdefault(layout.key, value)
        self.layouts.setdefault(layout.key, layout)
        return True


def _note_places(
    it: Interpreter, value: V.Value, layout: L.Layout, places: Places
) -> None:
    pending: list[tuple[V.Value, Any, Tests]] = [(value, layout, ())]
    while pending:
        v, x, tests = pending.pop()
        inner: list[tuple[V.Value, Any]] = []
        if isinstance(x, L.LPlace):
            if not places.note(v, x, tests):
                continue
            x = places.layouts[x.key]  # only the first mention has the content
            if x.kind != "array" and isinstance(v, V.Ref):
                there = it.heap.contents[v.root]
                if isinstance(x.content, L.LNode) and x.content.head != ("lost",):
                    inner = list(zip(L.content_children(there), x.content.children, strict=True))
                elif isinstance(x.content, L.LGrown) and x.content.pools:
                    inner = list(zip(L.pools_of(there.template), x.content.pools, strict=True))
        elif isinstance(x, L.LUnion):
            several = len(v.alive) > 1 if isinstance(v, V.Union) else False
            for number, case in _numbered_cases(v):
                chosen = x.cases[case_index(case, x, it.heap)]
                own = (v.tag, number) if several else None  # type: ignore[union-attr]
                more = () if own is None or own in tests else (own,)
                pending.append((case, chosen, (*tests, *more)))
        elif isinstance(x, L.LNode) and x.head != ("natural",) and not (
            x.head[0] == "data" and V.node_of(v) is None
        ) and not (x.head[0] == "text" and isinstance(v, V.Known)):
            inner = list(zip(L.children_of(v), x.children, strict=True))
        pending.extend((a, b, tests) for a, b in reversed(inner))


def _numbered_cases(value: V.Value) -> list[tuple[int, V.Value]]:
    if isinstance(value, V.Union):
        return [(k, value.cases[k]) for k in reversed(value.alive)]
    return [(0, value)]


def emit_call(it: Interpreter, spec: Specialisation, arguments: Sequence[V.Value]) -> V.Value:
    """Emit the call; its result, and the changes of arguments, decoded in the caller."""
    atoms, extents, places = encode_arguments(it, spec, arguments)
    result = spec.result
    assert result is not None
    node = FnCall(spec.name, tuple(atoms), extents)
    value: V.Value = decode_call(it, spec, node, extents, places)
    return value


def decode_call(
    it: Interpreter, spec: Specialisation, node: Any, extents: tuple[Extent, ...],
    places: Places, extra: Sequence[Any] = (),
    through: Callable[[tuple[Var, ...]], tuple[Var, ...]] = tuple,
) -> Any:
    """Bind the outputs of a call (and of `extra` leaf types after them) and decode the result.

    Gives the value, or (value, extra handles) if there are extra types. through: what the outputs
    are passed through first.
    """
    result = spec.result
    assert result is not None
    symbols = own_symbols(spec, argument_types(spec))
    mapping: dict[Symbol, Extent] = dict(zip(symbols, extents, strict=True))
    bound = {s: Symbol(s.name, Origin.RUNTIME) for s in result.symbols}
    mapping.update({s: dims.of(t) for s, t in bound.items()})
    leaves = leaf_types([result.value, *result.contents])
    outs = tuple(
        Var(TEMPORARY, types.substitute(t, mapping), span=it.builder.span)
        for t in [*leaves, *extra]
    )
    it.builder.lets.append(Let(outs, node, tuple(bound.values()), span=it.builder.span))
    return _decode(it, spec, result, through(outs), places, len(leaves), mapping)


def _decode(
    it: Interpreter, spec: Specialisation, result: Result, outs: tuple[Var, ...],
    places: Places, count: int, mapping: dict[Symbol, Extent],
) -> Any:
    decoder = _CallDecoder(
        iter(outs[:count]), it.heap, numbers=spec.given, places=places, mapping=mapping,
        builder=it.builder,
    )
    value = decoder(result.value)
    for key, layout in zip(result.changed, result.contents, strict=True):
        target = places.get(key)
        if target is None:  # of a case that the argument is not
            decoder.content("array" if isinstance(layout, TensorType) else "object", layout)
            continue
        root_kind = "array" if isinstance(target, V.ArrayRef) else target.root.kind  # type: ignore[union-attr]
        content = decoder.content(root_kind, layout)
        change = functools.partial(_changed, it, target, content, moves=key in result.moved)
        _where(it, places.tests[key], change)
    for key in result.stored:
        given = places.get(key)
        if isinstance(given, V.Ref):
            it.heap.lend(given.root, it.let.span if it.let else None)
    extra = outs[count:]
    return value if not extra else (value, extra)


def _changed(it: Interpreter, target: V.Value, content: Any, *, moves: bool) -> None:
    """A call changed an argument to this content; `moves`: its items may have other positions."""
    if isinstance(target, V.ArrayRef):
        from pyrelay.infer.arrays.storing import write_whole

        write_whole(it, target, content)
        return
    assert isinstance(target, V.Ref)
    span = it.let.span if it.let else None
    if isinstance(content, V.Growing):
        held = it.heap.contents[target.root]
        stay = isinstance(held, V.Growing) and not moves
        if stay:
            content = replace(content, slots=held.slots)
        lists.write_content(it, target.root, content, moves=not stay)
    else:
        it.heap.write(target.root, content, span)


def _where(it: Interpreter, tests: Sequence[Tests], change: Callable[[], None]) -> None:
    """Make a change where some tests are all true: else what it changes is not at hand."""
    from pyrelay.infer.flow.control import branch

    def arm() -> list[V.Value]:
        change()
        return []

    def together(name: str, parts: Sequence[Handle]) -> Handle:
        return functools.reduce(lambda a, b: it.emit(name, a, b), parts)

    if () in tests:
        change()
    else:
        cases = [[it.emit("equal", tag, number) for tag, number in each] for each in tests]
        test = together("logical_or", [together("logical_and", each) for each in cases])
        branch(it, test.atom, arm, list)


@dataclass
class _CallDecoder(Decoder):
    """Decodes a result in the caller: a parameter's object is the caller's argument."""

    places: Places = field(default_factory=Places)
    mapping: dict[Symbol, Extent] = field(default_factory=dict)
    builder: Builder = field(default_factory=Builder)

    def _is_here(self, case: L.Layout) -> bool:
        """Whether a case of a result is not an argument's object that these arguments have not."""
        return not isinstance(case, L.LParam) or case.key in self.places

    def _identify(self, root: V.Root, key: int, number: Atom, may_be: frozenset[Any]) -> None:
        """The number of a result: an argument's is that of the caller's array, if it is one."""
        assert self.numbers is not None
        given = {k: self.places[k] for k in may_be if k in self.places}
        if any(not isinstance(v, V.ArrayRef) or v.view or not numbered(v.root)
               for v in given.values()):
            return
        known = {-1 - k: identity(v.root) for k, v in given.items()}  # type: ignore[union-attr]
        known.update(
            (self.numbers.of(k), constant(r.serial)) for k, r in self.roots.items() if r is not root
        )
        result: Atom = constant(root.serial)
        for own, theirs in known.items():
            same = self.builder.call(OPS["equal"], number, own)
            result = self.builder.call(OPS["where"], same, theirs, result).atom
        root.number = result

    def _root(self, kind: str, may_be: frozenset[Any], rivals: frozenset[int]) -> V.Root:
        # What is in no place is of a case that the argument is not.
        given = [self.places[k].root for k in may_be if k in self.places]  # type: ignore[union-attr]
        older = frozenset(r for root in given for r in (root, *root.may_be))
        return Decoder._root(self, kind, older, rivals)

    def __call__(self, layout: L.Layout) -> V.Value:
        if isinstance(layout, L.LParam):  # none in what no place of the arguments has
            return self.places.get(layout.key, V.Known(UNREAD))
        if isinstance(layout, L.LUnion):
            here = [k for k, case in enumerate(layout.cases) if self._is_here(case)]
            tag = next(self.outs)
            found = tuple(
                self(case) if k in here else V.Known(UNREAD)
                for k, case in enumerate(layout.cases)
            )
            return found[here[0]] if len(here) == 1 else V.Union(tag, found, tuple(here))
        if isinstance(layout, L.LScalar) and layout.extent is not None:
            return V.Scalar.of_extent(dims.substitute(layout.extent, self.mapping))
        return Decoder.__call__(self, layout)
