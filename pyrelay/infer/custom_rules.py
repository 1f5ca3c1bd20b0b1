"""Functions with a derivative of their own: calls of what `pyrelay.custom_vjp` makes.

In: the functions that a user gives (the function, and its rule) and the arguments of a call. Out:
the value, passed through the op `ruled`, whose derivative is a call of the rule: a function of the
program of its own, which takes what the rule reads and the cotangents of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import calls, derivatives, handing_over, specialisation
from pyrelay.infer import values as V
from pyrelay.infer.function_bodies import Specialisation, argument_types, own_symbols
from pyrelay.infer.gradients import Gradients
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import leaf_types
from pyrelay.infer.names.copying import unshared
from pyrelay.infer.wrappers import as_closure
from pyrelay.ir import types
from pyrelay.ir.build import Handle
from pyrelay.ir.op import OPS


def by_rule(primals: Any, value: Any, cotangent: Any, rule: Any) -> Any:
    """Cotangents of the arguments by a rule that reads these and the value."""
    return rule(cotangent, value, *primals)


def by_backward(primals: Any, residuals: Any, cotangent: Any, backward: Any) -> Any:
    """Cotangents of the arguments by a rule that reads what its forward half left."""
    return backward(residuals, cotangent)


def call_with_rule(
    it: Interpreter, request: V.Derivative, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """The value of a function with a derivative of its own; `rules` of the request are the forward
    and the backward half of its rule, and the rule, None where it has none.

    Raises GradientError for a rule that is missing or does not fit the arguments.
    """
    forward, backward, rule = request.rules
    if forward in it.program.forwards:  # asks for the value of the function that it stands for
        return calls.call(it, request.callee, args, keywords)
    closure = as_closure(it, request.callee, args, keywords)
    name = V.function_name(closure.function)
    bound = calls.bind_arguments(it, closure, args, keywords)
    primals = V.Tuple(tuple(bound))
    if rule is not None:
        read = V.Tuple(tuple(unshared(it, v) for v in bound))
        value = calls.call(it, request.callee, bound, {})
        primals, residuals = read, unshared(it, value)
        made: Any = by_rule
    elif forward is not None:
        it.program.forwards.append(forward)
        pair = calls.call(it, V.Known(forward), bound, {})
        it.program.forwards.pop()
        if not isinstance(pair, V.Tuple) or len(pair.items) != 2:
            raise it.failure(
                errors.GradientError,
                f"the forward half of the rule of {name!r} must return a pair (value, what the "
                f"backward half reads), and returns {V.describe(pair)}",
            )
        value, residuals = pair.items
        made = by_backward
    else:
        raise it.failure(
            errors.GradientError, f"{name!r} has no rule for its derivative yet",
            hints=(f"write @{name}.def_vjp above a function (cotangent, value, *arguments)",),
        )
    given = (primals, residuals, unshared(it, value), V.Known(rule or backward))
    return _ruled(it, name, made, given, value)


def _ruled(
    it: Interpreter, name: str, made: Any, given: Sequence[V.Value], value: V.Value
) -> V.Value:
    closure = calls.function_value(it, made)
    arguments = specialisation.arguments_of(it, closure, given)
    of_primals, of_value = len(it.pools), len(it.pools) + 2
    spec = derivatives.specialised(it, closure, arguments, [of_value], fresh=True)
    inputs = Gradients(it, it.heap.copy(), spec.layouts, "custom_vjp")
    atoms, extents, _ = handing_over.encode_arguments(it, spec, arguments)
    seeded, wrt = inputs.leaves([of_value]), inputs.leaves([of_primals])
    if not seeded or not wrt:
        return value
    count = len(given[0].items) if isinstance(given[0], V.Tuple) else 0
    owed = _owed(it, name, spec, inputs, of_primals, count)
    own = dict(zip(own_symbols(spec, argument_types(spec)), extents, strict=True))
    assert spec.result is not None
    gives = leaf_types([spec.result.value, *spec.result.contents])
    found = it.builder.call(
        OPS["ruled"], *(atoms[k] for k in seeded), *atoms, rule=spec.name, count=len(seeded),
        seeded=tuple(seeded), owed=tuple(owed), extents=tuple(extents),
        takes=tuple(a.type for a in atoms), gives=tuple(types.substitute(t, own) for t in gives),
        own=False,
    )
    handles = dict(zip(seeded, (found,) if isinstance(found, Handle) else found, strict=True))

    def leaf(number: int | None, of_array: bool) -> V.Value:
        assert number is not None
        handle = handles[number]
        return it.new_array(handle.atom) if of_array else V.Scalar(handle.type, handle.atom)

    return inputs.placed([of_value], arguments, leaf, keep=True)[0]


def _owed(
    it: Interpreter, name: str, spec: Specialisation, inputs: Gradients, primals: int, count: int
) -> list[tuple[int, int]]:
    """Which leaf of what the rule returns is a cotangent of which leaf of the arguments."""
    assert spec.result is not None
    if spec.result.symbols:
        raise it.failure(
            errors.GradientError,
            f"the rule of {name!r} returns arrays whose sizes are known only once it has run",
        )
    outputs = Gradients(it, it.heap, [spec.result.value], "custom_vjp")
    found = outputs.paired(0, inputs, primals)
    if isinstance(found, str):
        many = f"a tuple with a cotangent for each of its {count} arguments"
        raise it.failure(
            errors.GradientError,
            f"the rule of {name!r} must return {many if count != 1 else 'a tuple of one cotangent'}"
            f", with the structure of the argument; {found}",
            hints=("None stands for zeros",),
        )
    return found
