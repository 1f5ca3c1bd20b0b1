"""The stage `grad`: requested derivatives become ordinary Core.

In: a module that may hold `Vjp` and `Jvp` nodes. Out: one that holds none. A request becomes a call
of a new function, which runs the requested function and then its adjoint (`Vjp`), or its tangents
beside it (`Jvp`, `forward`); requests inside requested functions come first, so derivatives of any
order are one mode over another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyrelay.errors import GradientError, Span
from pyrelay.grad.activity import carries_derivative
from pyrelay.grad.calls import Pattern, Splits, is_closed
from pyrelay.grad.cotangents import Sink
from pyrelay.grad.forward import Pushforwards
from pyrelay.grad.prepare import prepared
from pyrelay.grad.residuals import live_lets
from pyrelay.grad.reverse import Flow
from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Attrs, Block, FnCall, Function, Jvp, Let, Module, OpCall, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TAPE, TensorType

#: The kind of request, function, seeded, and wrt or wanted.
Request = tuple[type, str, tuple[int, ...], tuple[int, ...]]


def expand(module: Module, simplify: Callable[[Module], Module] | None = None) -> Module:
    """Replace every requested derivative, innermost first.

    `simplify` cleans the program between one order and the next. Functions that nothing calls any
    more are dropped; the rules of derivatives stay. Raises GradientError for a derivative that does
    not exist.
    """
    if _requests(module):
        module = module.with_bodies(_of_zeros)
    while requests := _requests(module):
        open_functions = set(requests)
        ready = [
            (request, span) for found in requests.values() for request, span in found
            if not _reaches(module.functions, request[1], open_functions)
        ]
        if not ready:
            _, span = next(iter(requests.values()))[0]
            raise GradientError(
                "a function cannot ask for its own derivative: the order of the derivative would "
                "grow without end",
                span=span,
            )
        functions = dict(module.functions)
        names: dict[Request, str] = {}
        for request, span in ready:
            if request not in names:
                mode, function, seeded, wanted = request
                write = vjp_function if mode is Vjp else jvp_function
                names[request], added = write(functions, function, seeded, wanted, span)
                functions.update((f.name, f) for f in added)
        for name in open_functions:
            functions[name] = _answer(functions[name], names)
        module = _reachable(module.holding(functions))
        if simplify is not None and _requests(module):
            module = simplify(module)
    return module


def _of_zeros(block: Block) -> Block:
    """A block in which arrays that may hold anything (`np.empty`) hold zeros: where nobody has
    written they may be NaN, and so would be sums of their products by cotangents that are 0."""
    lets = tuple(map(_with_zeros, block.lets))
    if any(new is not old for new, old in zip(lets, block.lets, strict=True)):
        block = replace(block, lets=lets)
    return walk.with_blocks(block, _of_zeros)


def _with_zeros(let: Let) -> Let:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or "arbitrary" not in rhs.attrs:
        return let
    return replace(let, rhs=replace(rhs, attrs=Attrs(shape=rhs.attrs["shape"])))


def _requests(module: Module) -> dict[str, list[tuple[Request, Span | None]]]:
    """Per function that asks for derivatives, which ones.

    What only rules of derivatives ask for that nobody takes does not count.
    """
    found: dict[str, list[tuple[Request, Span | None]]] = {}
    for name in _wanted(module):
        for let in walk.nested_lets(module.functions[name].body):
            rhs = let.rhs
            if isinstance(rhs, (Vjp, Jvp)):
                found.setdefault(name, []).append((_request(rhs), let.span))
    return found


def _wanted(module: Module) -> list[str]:
    """The functions that are called, and those that rules need in what is differentiated."""
    found = {(module.entry, False): None}
    pending = [(module.entry, False)]
    while pending:
        name, differentiated = pending.pop()
        for let in walk.nested_lets(module.functions[name].body):
            rhs = let.rhs
            if isinstance(rhs, (Vjp, Jvp)):
                reached = (rhs.function, True)
            elif isinstance(rhs, FnCall):
                reached = (rhs.function, differentiated)
            elif differentiated and isinstance(rhs, OpCall) and "rule" in rhs.attrs:
                reached = (rhs.attrs["rule"], True)
            else:
                continue
            if reached not in found:
                found[reached] = None
                pending.append(reached)
    return list(dict.fromkeys(name for name, _ in found))


def _request(node: Vjp | Jvp) -> Request:
    wanted = node.wrt if isinstance(node, Vjp) else node.wanted
    return type(node), node.function, node.seeded, wanted


def _reaches(functions: Mapping[str, Function], name: str, targets: set[str]) -> bool:
    seen, pending = {name}, [name]
    while pending:
        here = pending.pop()
        if here in targets:
            return True
        for callee in walk.called(functions[here]):
            if callee not in seen:
                seen.add(callee)
                pending.append(callee)
    return False


def _answer(function: Function, names: Mapping[Request, str]) -> Function:
    """The function calling derivatives in place of requests that have been answered."""

    def change(block: Block) -> Block:
        return Block(tuple(map(let, block.lets)), block.results, block.dims)

    def let(old: Let) -> Let:
        rhs = old.rhs
        if isinstance(rhs, (Vjp, Jvp)):
            name = names.get(_request(rhs))
            if name is None:
                return old
            return replace(old, rhs=FnCall(name, rhs.args + rhs.seeds, rhs.dims))
        changed = walk.replace_blocks(rhs, change)
        return old if changed is rhs else replace(old, rhs=changed)

    return replace(function, body=change(function.body))


def _reachable(module: Module) -> Module:
    seen, pending = {module.entry}, [module.entry]
    while pending:
        for callee in walk.called(module.functions[pending.pop()]):
            if callee not in seen:
                seen.add(callee)
                pending.append(callee)
    kept = {name: f for name, f in module.functions.items() if name in seen}
    return module.holding(kept)


def vjp_function(
    functions: Mapping[str, Function], name: str, seeded: Sequence[int], wrt: Sequence[int],
    span: Span | None = None,
) -> tuple[str, list[Function]]:
    """The derivative of a function as new functions, and the name of the one to call.

    It takes the function's arguments, then cotangents of the results at positions `seeded`; it
    returns the function's results, then cotangents of the arguments at positions `wrt`, of the
    arguments' types. `functions` must hold no requests within reach of `name`.
    Raises GradientError if an argument or a result does not carry derivatives.
    """
    _check(functions[name], seeded, wrt, span)
    fresh_name = _fresh_names(functions)
    own = fresh_name(f"{name}.vjp")
    splits = Splits(functions, fresh_name)
    while True:
        top = _write(splits, name, own, seeded, wrt)
        if splits.settle():
            return own, [top, *splits.written()]


def jvp_function(
    functions: Mapping[str, Function], name: str, seeded: Sequence[int], wanted: Sequence[int],
    span: Span | None = None,
) -> tuple[str, list[Function]]:
    """The function with tangents as new functions, and the name of the one to call.

    It takes the function's arguments, then tangents of those at positions `seeded`, of their types;
    it returns the function's results, then tangents of those at positions `wanted`. `functions`
    must hold no requests within reach of `name`.
    Raises GradientError if an argument or a result does not carry derivatives.
    """
    _check_types(functions[name], wanted, seeded, span)
    fresh_name = _fresh_names(functions)
    own = fresh_name(f"{name}.jvp")
    made = Pushforwards(functions, fresh_name)
    pattern = Pattern(name, tuple(seeded), tuple(wanted))
    return own, [made.write(pattern, own, typed_as_values=True), *made.written()]


def _fresh_names(functions: Mapping[str, Function]) -> Callable[[str], str]:
    taken = set(functions)

    def fresh_name(wish: str) -> str:
        free, number = wish, 1
        while free in taken:
            number += 1
            free = f"{wish}{number}"
        taken.add(free)
        return free

    return fresh_name


def _check(
    function: Function, seeded: Sequence[int], wrt: Sequence[int], span: Span | None
) -> None:
    _check_types(function, seeded, wrt, span)
    for k in seeded:
        ty = function.body.results[k].type
        if not is_closed(function, ty):
            raise GradientError(
                f"the result is {ty}, whose size is known only once the function has run, so "
                "nothing can be passed in for it",
                span=span,
            )


def _check_types(
    function: Function, results: Sequence[int], params: Sequence[int], span: Span | None
) -> None:
    for k in params:
        param = function.params[k]
        if not carries_derivative(param.type):
            raise GradientError(
                f"'{param.name}' is {param.type}, and only floating arguments have a derivative",
                span=span or param.span,
            )
    for k in results:
        ty = function.body.results[k].type
        if not carries_derivative(ty):
            raise GradientError(
                f"the result is {ty}, and only floating results have a derivative", span=span
            )


def _write(
    splits: Splits, name: str, own: str, seeded: Sequence[int], wrt: Sequence[int]
) -> Function:
    function = prepared(splits.functions[name], splits.functions, splits.recursive)
    walker = splits.walker(function, wrt, seeded)
    sink, flow = Sink(Builder(function.span), walker.active), Flow()
    results, params = function.body.results, function.params
    seeds = [Var("seed", results[k].type, span=function.span) for k in seeded]
    for k, seed in zip(seeded, seeds, strict=True):
        sink.add(results[k], sink.builder.handle(seed))
    start = Var("tape", TAPE)
    sink.tape = start
    lets = walker.lets(function.body.lets, sink, flow)
    cotangents = []
    for k in wrt:
        ty = params[k].type
        assert isinstance(ty, TensorType)
        cotangents.append(sink.builder.cast(sink.get(params[k]), ty.dtype, weak=ty.weak))
    forward = walker.late(params) + walker.connected(lets)
    if flow.used:
        forward.insert(0, Let((flow.current,), OpCall(OPS["tape_new"], (), Attrs())))
    walker.names.atoms[start] = flow.end
    names = walker.renaming()
    backward = live_lets(sink.builder.lets, cotangents, walker.backward)
    lets = forward + [walk.copy_let(let, names) for let in backward]
    outs = tuple(map(names.atom, cotangents))
    body = Block(tuple(lets), results + outs, function.body.dims)
    return Function(own, params + tuple(seeds), body, function.dims, span=function.span)
