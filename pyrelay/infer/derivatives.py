"""`grad` and `value_and_grad` called inside a program: a request in Core, born typed.

In: a callee, its arguments, which of them to differentiate. Out: a `Vjp` of the specialised callee;
the stage `grad` expands it. Gradients have the structure of the argument; leaves that cannot carry
a derivative (ints, strings, None) become None inside structures and an error at the top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import calls, function_bodies, handing_over, needs, specialisation
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.flow.revisits import reachable
from pyrelay.infer.gradients import Gradients
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.memoising import begin_derivative
from pyrelay.infer.names.copying import unshared
from pyrelay.infer.wrappers import as_closure
from pyrelay.ir import types
from pyrelay.ir.build import constant
from pyrelay.ir.nodes import Vjp
from pyrelay.ir.types import TensorType

NO_AUXILIARY = "with has_aux=True the function must return a pair (value, auxiliary data)"


class NeverReturnsError(errors.GradientError):
    """A function that raises whatever it is given."""


def call_derivative(
    it: Interpreter, request: V.Derivative, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """The value of `grad(f, ...)(*args, **keywords)`.

    Raises GradientError if the result of f is not a real scalar, or an argument has no derivative.
    """
    if request.kind == "custom_vjp":
        from pyrelay.infer.custom_rules import call_with_rule

        return call_with_rule(it, request, args, keywords)
    if request.kind == "checkpoint":
        from pyrelay.infer.checkpoints import call_checkpointed

        return call_checkpointed(it, request, args, keywords)
    begin_derivative(it)
    if request.kind not in ("grad", "value_and_grad"):
        from pyrelay.infer.differentials import call_differential

        return call_differential(it, request, args, keywords)
    closure = as_closure(it, request.callee, args, keywords)
    bound = calls.bind_arguments(it, closure, args, keywords)
    positions, single = chosen_positions(it, request, closure)
    chosen = [p + len(it.pools) for p in positions]
    given = specialisation.arguments_of(it, closure, bound)
    arguments = arguments_apart(it, given, chosen)
    spec = specialised(it, closure, arguments, chosen)
    if spec.result is None:
        raise needs.Diverges
    value = differentiated(it, request, spec.result.value)
    return _request(it, request, spec, given, arguments, chosen, single, value)


def chosen_positions(
    it: Interpreter, request: V.Derivative, closure: V.Closure
) -> tuple[list[int], bool]:
    """Positions among the bound parameters, and whether one gradient (not a tuple) is wanted."""
    names = [p.name for p in closure.function.signature]
    if request.argnames is not None:
        wanted = request.argnames
        single = isinstance(wanted, str)
        chosen = []
        for name in (wanted,) if single else wanted:
            if name not in names:
                raise it.failure(
                    errors.GradientError,
                    f"argnames names {name!r}, and {V.function_name(closure.function)!r} has no "
                    "such parameter",
                    hints=(f"its parameters are {', '.join(names)}",),
                )
            chosen.append(names.index(name))
        return chosen, single
    numbers = request.argnums
    single = isinstance(numbers, int)
    chosen = []
    for n in (numbers,) if single else numbers:
        position = n + len(names) if n < 0 else n
        if not 0 <= position < len(names):
            raise it.failure(
                errors.GradientError,
                f"argnums is {n}, and {V.function_name(closure.function)!r} has {len(names)} "
                f"parameter{'' if len(names) == 1 else 's'}",
            )
        chosen.append(position)
    return chosen, single


def arguments_apart(
    it: Interpreter, arguments: Sequence[V.Value], chosen: Sequence[int]
) -> list[V.Value]:
    """The arguments, copies for those of `chosen` of which others or what the program captures has
    a part: a derivative is that by one argument, with the others as they are."""
    reached = [set(reachable(value, it.heap)) for value in arguments]
    times = Counter(root for roots in reached for root in roots)
    return [
        unshared(it, value)
        if k in chosen and any(times[root] > 1 and root.kind != "pool" for root in reached[k])
        else value
        for k, value in enumerate(arguments)
    ]


def check_apart(
    it: Interpreter, spec: function_bodies.Specialisation, places: handing_over.Places,
    given: Sequence[V.Value], arguments: Sequence[V.Value],
) -> None:
    """Raise GradientError where the function writes to such a copy: what it was given stays."""
    assert spec.result is not None
    apart = (v for v, before in zip(arguments, given, strict=True) if v is not before)
    copies = {root for value in apart for root in reachable(value, it.heap)}
    if any(getattr(places[key], "root", None) in copies for key in spec.result.changed):
        raise it.failure(
            errors.GradientError,
            f"{V.function_name(spec.closure.function)!r} writes to an array that it reaches in two "
            "ways, so it has no derivative by one of them",
            hints=("pass copies: f(x, x.copy())",),
        )


def specialised(
    it: Interpreter, closure: V.Closure, arguments: Sequence[V.Value], chosen: Sequence[int], *,
    fresh: bool = False,
) -> function_bodies.Specialisation:
    """A function of its own for the callee, in the caller's extents unless it is recursive.

    fresh: what it returns is a copy, so that each of its leaves is a result of its own.
    """
    static = {
        i: True for i, v in enumerate(arguments) if V.is_known_number(v) and i not in chosen
    }
    while True:
        try:
            return _specialised_with(it, closure, arguments, static, fresh)
        except function_bodies.NeedsKnown as need:
            specialisation.make_known(it, closure, arguments, need, static)


def _specialised_with(
    it: Interpreter, closure: V.Closure, arguments: Sequence[V.Value], static: dict[int, Any],
    fresh: bool,
) -> function_bodies.Specialisation:
    function = closure.function
    layouts, _ = specialisation.describe_arguments(
        it, arguments, static=static, transparent=True
    )
    name = it.program.unique(function.name)
    spec = function_bodies.Specialisation(name, closure, layouts, transparent=True, fresh=fresh)
    try:
        made, result = function_bodies.interpret_function(it, spec)
    except calls.IsRecursive as found:
        if found.function is not function:
            raise
        it.program.recursive.add(function)
        made, result = function_bodies.interpret_function(it, spec)
    if result is None:
        raise it.failure(
            NeverReturnsError,
            f"{V.function_name(function)!r} never returns, so it has no derivative",
        )
    spec.result = result
    it.program.functions[spec.name] = made
    return spec


def differentiated(it: Interpreter, request: V.Derivative, layout: L.Layout) -> L.Layout:
    """The layout of the value to differentiate: the result, or the first of (value, aux)."""
    if not request.has_aux:
        return layout
    if not (isinstance(layout, L.LNode) and layout.head[:1] == ("tuple",) and layout.head[2] == 2):
        raise it.failure(errors.GradientError, NO_AUXILIARY)
    return layout.children[0]


def _request(
    it: Interpreter, request: V.Derivative, spec: function_bodies.Specialisation,
    given: list[V.Value], arguments: list[V.Value], chosen: list[int], single: bool,
    value: L.Layout,
) -> V.Value:
    for position in chosen:
        check_argument(it, spec, position, "grad")
    seed_type = _scalar_result(it, value)
    if seed_type is None:  # a constant: all gradients are zero
        seeds: tuple[Any, ...] = ()
        seeded: tuple[int, ...] = ()
    else:
        seeds = (constant(1.0, seed_type),)
        seeded = (0,)  # the differentiated value is the first leaf of the result
    gradients = Gradients(it, it.heap.copy(), spec.layouts)
    wrt = gradients.leaves(chosen)
    atoms, extents, places = handing_over.encode_arguments(it, spec, arguments)
    check_apart(it, spec, places, given, arguments)
    node = Vjp(spec.name, tuple(atoms), seeds, seeded, tuple(wrt), extents)
    extra = [atoms[i].type for i in wrt]
    if not extra:
        raise it.failure(errors.GradientError, "there is nothing to differentiate")
    result, cotangents = handing_over.decode_call(it, spec, node, extents, places, extra)
    found = gradients.of(chosen, arguments, dict(zip(wrt, cotangents, strict=True)))
    grads: V.Value = found[0] if single else V.Tuple(tuple(found))
    if request.kind == "value_and_grad":
        return V.Tuple((result, grads))
    if request.has_aux:
        assert isinstance(result, V.Tuple)
        return V.Tuple((grads, result.items[1]))
    return grads


def _scalar_result(it: Interpreter, layout: L.Layout) -> TensorType | None:
    match layout:
        case L.LScalar(ty) | L.LPlace(_, "array", _, ty) if ty.dtype.kind == "f" and not ty.shape:
            return ty
        case L.LKnown(v) if isinstance(v, float):
            return None
        case L.LPlace(_, "array", _, ty) | L.LScalar(ty):
            shown = str(ty)
        case L.LKnown(v):
            shown = V.describe(V.Known(v))
        case L.LNode(("tuple", *_), children):
            shown = f"a tuple of {len(children)}"
        case _:
            shown = "a structure"
    many = isinstance(layout, L.LPlace)
    hint = (
        "sum or average it to a scalar first, or take all derivatives: pyrelay.jacobian(f)(x)"
        if many
        else "return (value, auxiliary data) and pass has_aux=True"
        if isinstance(layout, L.LNode)
        else "return a float"
    )
    raise it.failure(
        errors.GradientError,
        f"grad needs a function that returns a real scalar, and this one returns {shown}",
        hints=(hint,),
    )


def check_argument(
    it: Interpreter, spec: function_bodies.Specialisation, position: int, kind: str
) -> None:
    """Raise GradientError for an argument that has no derivative; kind: the transform."""
    layout = spec.layouts[position]
    name = spec.closure.function.signature[position - len(it.pools)].name
    ty = (
        layout.type if isinstance(layout, L.LScalar)
        else layout.content if isinstance(layout, L.LPlace) and layout.kind == "array"
        else types.of_scalar(layout.value) if isinstance(layout, L.LKnown) else None
    )
    structure = isinstance(layout, (L.LNode, L.LUnion)) or (
        isinstance(layout, L.LPlace) and layout.kind != "array"
    )
    if structure or (ty is not None and ty.dtype.is_float):
        return
    shown = str(ty) if ty is not None else V.describe(V.Known(getattr(layout, "value", None)))
    literal = "3.0" if ty is not None and not ty.shape else f"{name}.astype(float)"
    raise it.failure(
        errors.GradientError,
        f"{kind} cannot differentiate with respect to {name!r}: it is {shown}, and only "
        "floating-point arguments have a derivative",
        hints=(f"pass a float ({literal}), or choose other arguments with argnums",),
    )
