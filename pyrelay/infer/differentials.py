"""Derivatives of functions of many results: directions, pullbacks and Jacobians.

In: a callable, its arguments, and which derivative of it (`V.Derivative`): "jvp" along tangents,
"pullback" of cotangents (what `vjp` returns in programs), "vjp" (the same by cotangents that the
program is given later, see `pullbacks`), "jacfwd", "jacrev", "jacobian", "hessian", "hvp".
Out: `Jvp` and `Vjp` requests of the specialised callee, in a loop over directions for Jacobians.
Results have the structure of the function's result, each leaf that of the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import calls, derivatives, handing_over, needs, specialisation
from pyrelay.infer import values as V
from pyrelay.infer.function_bodies import argument_types, own_symbols
from pyrelay.infer.gradients import Direction, Gradients
from pyrelay.infer.in_python import weighing
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import leaf_types
from pyrelay.infer.names.copying import unshared
from pyrelay.infer.wrappers import as_closure
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, FnCall, Jvp, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType

_TYPICAL_EXTENT = 64  # stands for a symbol when sizes are compared

_ROWS_OF_HESSIAN = "hessian rows"
"""The gradient that a Hessian is the Jacobian of, for any result."""

_TAKEN = {
    "jvp": "jvp takes a function, a tuple of arguments and a tuple of tangents",
    "pullback": "what vjp returns takes one cotangent, of the structure of the value",
    "hvp": "hvp takes a function, its argument and a vector like that, then other arguments",
}


def call_differential(
    it: Interpreter, request: V.Derivative, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """The value of a derivative of this module called with these arguments.

    Raises GradientError for arguments and directions that do not fit.
    """
    if request.kind == "hessian":
        request = replace(request, callee=replace(request, kind=_ROWS_OF_HESSIAN))
    if request.kind == "vjp":
        return _seeded(it, request, args)
    direct: Callable[..., V.Value] | None = {
        "jvp": _jvp, "pullback": _pullback, "hvp": _hvp,
    }.get(request.kind)  # type: ignore[assignment]
    if direct is None:
        return _jacobian(it, request, args, keywords)
    try:
        inspect.signature(direct).bind(it, request, *args, **keywords)
    except TypeError:
        raise it.failure(errors.SignatureError, _TAKEN[request.kind]) from None
    return direct(it, request, *args, **keywords)


def vjp(
    it: Interpreter, function: V.Value, primals: Sequence[V.Value], has_aux: bool
) -> V.Value:
    """The value of `pyrelay.vjp(function, *primals)`: the pullback keeps copies of the primals."""
    copies = V.Tuple(tuple(unshared(it, p) for p in primals))
    result = calls.call(it, function, primals, {})
    pullback = V.Partial(
        V.Derivative(function, "pullback", 0, None, has_aux), (copies,), ()
    )
    if not has_aux:
        return V.Tuple((result, pullback))
    if not isinstance(result, V.Tuple) or len(result.items) != 2:
        raise it.failure(errors.GradientError, derivatives.NO_AUXILIARY)
    return V.Tuple((result.items[0], pullback, result.items[1]))


class _Call:
    """One call of a function to differentiate: its arguments handed over, what it returns."""

    def __init__(
        self, it: Interpreter, request: V.Derivative, args: Sequence[V.Value],
        keywords: Mapping[str, V.Value], chosen: Sequence[int] | None = None,
    ) -> None:
        self.it, self.request = it, request
        self.name = request.kind.split()[0]  # of the transform, to users
        closure = as_closure(it, request.callee, args, keywords)
        bound = calls.bind_arguments(it, closure, args, keywords)
        self.single = False
        if chosen is None:
            chosen, self.single = derivatives.chosen_positions(it, request, closure)
        self.chosen = [len(it.pools) + k for k in chosen]
        given = specialisation.arguments_of(it, closure, bound)
        self.arguments = derivatives.arguments_apart(it, given, self.chosen)
        self.spec = derivatives.specialised(it, closure, self.arguments, self.chosen, fresh=True)
        if self.spec.result is None:
            raise needs.Diverges
        derivatives.differentiated(it, request, self.spec.result.value)
        self.inputs = Gradients(it, it.heap.copy(), self.spec.layouts, self.name)
        self.atoms, self.extents, self.places = handing_over.encode_arguments(
            it, self.spec, self.arguments
        )
        derivatives.check_apart(it, self.spec, self.places, given, self.arguments)
        returned = self.spec.result.value
        self._own = dict(
            zip(own_symbols(self.spec, argument_types(self.spec)), self.extents, strict=True)
        )
        self._differentiated = (
            returned.children[0]  # type: ignore[union-attr]
            if request.has_aux else returned
        )
        self.outputs = Gradients(it, it.heap, [self._differentiated], self.name)
        self.value: V.Value = V.NONE  # the result, once the function is called
        self.auxiliary: V.Value = V.NONE
        self.leaves: tuple[Var, ...] = ()  # of the result

    @property
    def results(self) -> list[int]:
        """The numbers of the floating leaves of what is differentiated, which come first."""
        return self.outputs.leaves([0])

    def result_type(self, leaf: int) -> TensorType:
        """The type of a leaf of the result, in the caller's extents."""
        assert self.spec.result is not None
        ty = types.substitute(leaf_types([self.spec.result.value])[leaf], self._own)
        assert isinstance(ty, TensorType)
        return ty

    def is_sized(self, leaf: int) -> bool:
        """Whether the caller knows the size of a leaf of the result."""
        assert self.spec.result is not None
        found = self.spec.result.symbols
        return not set(types.type_symbols(self.result_type(leaf))) & set(found)

    def run(self, node: Any, extra: Sequence[Any] = ()) -> list[Any]:
        """Call the function for good, by this node; what follows its results, of `extra` types."""
        found = handing_over.decode_call(
            self.it, self.spec, node, self.extents, self.places, extra
        )
        value, more = found if extra else (found, ())
        if self.request.has_aux:
            assert isinstance(value, V.Tuple)
            value, self.auxiliary = value.items
        self.value = value
        lets = reversed(self.it.builder.lets)
        self.leaves = next(let.outs for let in lets if let.rhs is node)
        self.outputs.heap = self.it.heap.copy()
        return list(more)

    def call(self) -> FnCall:
        """The call without a derivative."""
        return FnCall(self.spec.name, tuple(self.atoms), self.extents)

    def forward(self, seeds: Mapping[int, Atom], wanted: Sequence[int]) -> Jvp:
        """The request along tangents of leaves of arguments."""
        return Jvp(
            self.spec.name, tuple(self.atoms), tuple(seeds.values()), tuple(seeds),
            tuple(wanted), self.extents,
        )

    def backward(self, seeds: Mapping[int, Atom], wanted: Sequence[int]) -> Vjp:
        """The request by cotangents of leaves of the result."""
        return Vjp(
            self.spec.name, tuple(self.atoms), tuple(seeds.values()), tuple(seeds),
            tuple(wanted), self.extents,
        )

    def beside(self, builder: Builder, node: Any, extra: Sequence[Any]) -> list[Handle]:
        """What follows the results of a request, in a block inside; the results are not used."""
        result = self.spec.result
        assert result is not None
        bound = tuple(Symbol(s.name, Origin.RUNTIME) for s in result.symbols)
        mapping: dict[Symbol, Extent] = {
            **self._own, **dict(zip(result.symbols, map(dims.of, bound), strict=True))
        }
        leaves = leaf_types([result.value, *result.contents])
        out_types = [types.substitute(t, mapping) for t in (*leaves, *extra)]
        return list(builder.bind(node, out_types, dims=bound)[len(leaves) :])

    def with_auxiliary(self, *values: V.Value) -> V.Value:
        """The answer, with the auxiliary data behind it if the function gives some."""
        if self.request.has_aux:
            values = (*values, self.auxiliary)
        return values[0] if len(values) == 1 else V.Tuple(values)


# -- directions ------------------------------------------------------------------------------------


def _jvp(
    it: Interpreter, request: V.Derivative, primals: V.Value, tangents: V.Value
) -> V.Value:
    points, moves = _listed(it, primals, "primals"), _listed(it, tangents, "tangents")
    if len(points) != len(moves):
        raise it.failure(
            errors.GradientError,
            f"jvp takes a tangent for each argument, and got {len(points)} "
            f"argument{'' if len(points) == 1 else 's'} and {len(moves)} "
            f"tangent{'' if len(moves) == 1 else 's'}",
            hints=("give None for an argument that does not move",),
        )
    call = _Call(it, request, points, {}, range(len(points)))
    moved = _along(call, {k: (v, f"tangents[{k}]") for k, v in enumerate(moves)})
    return call.with_auxiliary(call.value, moved)


def _listed(it: Interpreter, value: V.Value, name: str) -> Sequence[V.Value]:
    if isinstance(value, V.Tuple):
        return value.items
    if isinstance(value, V.Known) and isinstance(value.value, tuple):
        return tuple(map(V.Known, value.value))
    if isinstance(value, V.Ref) and value.root.kind == "list":
        content = it.content(value.root)
        if isinstance(content, tuple):
            return content
    raise it.failure(
        errors.GradientError,
        f"jvp takes the {name} as a tuple, one for each argument, and got {V.describe(value)}",
        hints=("write jvp(f, (x,), (v,))",),
    )


def _hvp(
    it: Interpreter, request: V.Derivative, x: V.Value, v: V.Value, *rest: V.Value,
    **keywords: V.Value,
) -> V.Value:
    slope = replace(request, callee=V.Derivative(request.callee, "grad", 0, None, False))
    call = _Call(it, slope, (x, *rest), keywords, (0,))
    return _along(call, {0: (v, "v")})


def _along(call: _Call, moves: Mapping[int, tuple[V.Value, str]]) -> V.Value:
    """The tangent of the result; `moves` has a tangent, and its name, per position of `chosen`."""
    it = call.it
    seeds: dict[int, Atom] = {}
    for k, (given, name) in moves.items():
        found = call.inputs.directions(call.chosen[k], given, name)
        found = {leaf: _single(it, direction) for leaf, direction in found.items()}
        seeds.update(_seeds(it, found, lambda leaf, _: call.atoms[leaf].type))
    wanted = call.results
    if not seeds or not wanted:
        call.run(call.call())
        zeros = {k: _zero(it, call.result_type(k)) for k in wanted}
        return _placed(call, zeros)
    own = [leaf_types([call.spec.result.value])[k] for k in wanted]  # type: ignore[union-attr]
    tangents = call.run(call.forward(seeds, wanted), own)
    return _placed(call, dict(zip(wanted, tangents, strict=True)))


def _single(it: Interpreter, direction: Direction) -> Direction:
    """The tangent of an array, which may stand at several places of an argument, as one."""
    (first, name), *others = direction.given
    for value, other in others:
        if it.atom(value) != it.atom(first):
            raise it.failure(
                errors.GradientError,
                f"{name} and {other} are tangents of one array, and are not the same array",
                hints=("pass the array as two arguments, or a copy of it in one of the places",),
            )
    return replace(direction, given=[(first, name)])


def _placed(call: _Call, atoms: Mapping[int, Atom]) -> V.Value:
    def leaf(number: int | None, of_array: bool) -> V.Value:
        if number is None:
            return V.Known(0.0)
        atom = atoms[number]
        if of_array:
            return call.it.new_array(atom)
        assert isinstance(atom.type, TensorType)
        return V.Scalar(atom.type, atom)

    return call.outputs.placed([0], [call.value], leaf, constants=True)[0]


def _zero(it: Interpreter, ty: TensorType) -> Atom:
    return it.builder.zeros(ty).atom


def _seeds(
    it: Interpreter, found: Mapping[int, Direction], type_of: Callable[[int, Direction], Any]
) -> dict[int, Atom]:
    """Directions of leaves, of the leaves' types. Raises GradientError for another shape."""
    seeds: dict[int, Atom] = {}
    for leaf, direction in found.items():
        ty = type_of(leaf, direction)
        total: Handle | None = None
        for value, name in direction.given:
            one = it.builder.handle(_fitted(it, value, name, ty))
            total = one if total is None else it.builder.call(OPS["add"], total, one)
        assert total is not None
        seeds[leaf] = it.builder.cast(total, ty.dtype, weak=ty.weak)
    return seeds


def _check_direction(
    it: Interpreter, value: V.Value, name: str, ty: TensorType
) -> list[bool | None]:
    """Whether extents are those of a type, None if only the program knows. Raises GradientError
    where the value is surely none of it."""
    if V.number_type(value) is None and not isinstance(value, V.ArrayRef):
        raise it.failure(
            errors.GradientError, f"{name} must be of type {ty}, and is {V.describe(value)}"
        )
    own = it.tensor(value)
    complex_of_real = own.dtype.kind == "c" and ty.dtype.kind != "c"
    equal = [
        it.program.guards.equal(d, e) for d, e in zip(own.shape, ty.shape, strict=False)
    ]
    if own.rank != ty.rank or False in equal or complex_of_real:
        raise it.failure(
            errors.GradientError, f"{name} must be of type {ty}, as what it belongs to, and is "
            f"{own}",
        )
    return equal


def _fitted(it: Interpreter, value: V.Value, name: str, ty: TensorType) -> Atom:
    equal = _check_direction(it, value, name, ty)
    atom = it.atom(value)
    own = atom.type
    assert isinstance(own, TensorType)
    for axis, (d, e, same) in enumerate(zip(own.shape, ty.shape, equal, strict=True)):
        if same is None:
            text = f"{name} has {{}} elements along axis {axis}, and what it belongs to {{}}"
            it.emit("check_equal", left=d, right=e, text=text)
    if own.shape != ty.shape:
        atom = it.builder.call(OPS["refine"], atom, shape=ty.shape).atom
    return it.builder.cast(atom, ty.dtype, weak=ty.weak)


def _pullback(
    it: Interpreter, request: V.Derivative, primals: V.Value, cotangent: V.Value
) -> V.Value:
    points = [unshared(it, p) for p in _listed(it, primals, "primals")]
    call = _Call(it, request, points, {}, range(len(points)))
    found = call.outputs.directions(0, cotangent, "the cotangent")
    if not all(map(call.is_sized, found)):
        return _weighed(call, found, cotangent, points)
    seeds = _seeds(it, found, lambda leaf, _: call.result_type(leaf))
    wrt = call.inputs.leaves(call.chosen)
    extra = [call.atoms[k].type for k in wrt]
    if seeds and wrt:
        cotangents = call.run(call.backward(seeds, wrt), extra)
    else:
        cotangents = [_zero(it, ty) for ty in extra]  # type: ignore[arg-type]
    made = call.inputs.of(call.chosen, call.arguments, dict(zip(wrt, cotangents, strict=True)))
    return V.Tuple(tuple(made))


def _weighed(
    call: _Call, found: Mapping[int, Direction], cotangent: V.Value, points: Sequence[V.Value]
) -> V.Value:
    """The pullback where only the running program knows the size of a result: the gradient of the
    sum of the results times their cotangents."""
    it, request = call.it, call.request
    for leaf, direction in found.items():
        for value, name in direction.given:
            _check_direction(it, value, name, call.result_type(leaf))
    weighed = V.Derivative(V.Known(weighing.weighed), "grad", 3)
    given = (request.callee, V.Known(request.has_aux), cotangent, V.Tuple(tuple(points)))
    try:
        return derivatives.call_derivative(it, weighed, given, {})
    except errors.UnsupportedOperationError:
        for leaf in found:
            _require_size(call, leaf, "pass None for it")
        raise


def _seeded(it: Interpreter, request: V.Derivative, primals: Sequence[V.Value]) -> V.Value:
    """The value (with the auxiliary data), the cotangents of the arguments, and the structure of
    the value with the number of its cotangent at each floating leaf.

    These cotangents are parameters of the program's own, in this order behind all others.
    """
    call = _Call(it, request, primals, {}, range(len(primals)))
    wrt, results = call.inputs.leaves(call.chosen), call.results
    for leaf in results:
        _require_size(call, leaf, "use jvp")
    extra = [call.atoms[k].type for k in wrt]
    cotangents: list[Any]
    if wrt and results:
        seeds = {k: Var("seed", call.result_type(k), span=it.builder.span) for k in results}
        it.program.seeds += seeds.values()
        cotangents = call.run(call.backward(seeds, wrt), extra)
    else:
        call.run(call.call())
        cotangents = [_zero(it, ty) for ty in extra]  # type: ignore[arg-type]
        results = []
    number = {leaf: k for k, leaf in enumerate(results)}

    def place(leaf: int | None, of_array: bool) -> V.Value:
        return V.Known(None if leaf is None else number.get(leaf))

    (places,) = call.outputs.placed([0], [call.value], place, constants=True)
    made = call.inputs.of(call.chosen, call.arguments, dict(zip(wrt, cotangents, strict=True)))
    return V.Tuple((call.with_auxiliary(call.value), V.Tuple(tuple(made)), places))


def _require_size(call: _Call, leaf: int, hint: str) -> None:
    if not call.is_sized(leaf):
        raise call.it.failure(
            errors.GradientError,
            f"the result is {call.result_type(leaf)}, whose size is known only once the function "
            "has run, so nothing can be passed in for it",
            hints=(hint,),
        )


# -- Jacobians -------------------------------------------------------------------------------------


def _jacobian(
    it: Interpreter, request: V.Derivative, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    call = _Call(it, request, args, keywords)
    for position in call.chosen:
        derivatives.check_argument(it, call.spec, position, call.name)
    inputs, results = call.inputs.leaves(call.chosen), call.results
    _require_real(call, inputs, results)
    call.run(call.call())
    forward = request.kind in ("jacfwd", "hessian")
    if request.kind == "jacobian":
        forward = _is_tall(call, inputs, results)
    blocks: Blocks = {}
    if results:
        blocks = (_by_columns if forward else _by_rows)(call, inputs, results)

    def whole(number: int | None, of_array: bool) -> V.Value:
        def block(leaf: int | None, of_array: bool) -> V.Value:
            assert leaf is not None
            if number is None:
                return it.result(it.builder.zeros(_plain(call.atoms[leaf].type)))
            return it.result(it.builder.handle(blocks[number, leaf]))

        made = call.inputs.placed(call.chosen, call.arguments, block)
        return made[0] if call.single else V.Tuple(tuple(made))

    found = call.outputs.placed([0], [call.value], whole, constants=True)
    return call.with_auxiliary(*found)


def _require_real(call: _Call, inputs: Iterable[int], results: Iterable[int]) -> None:
    kind = call.name
    for ty in (call.atoms[k].type for k in inputs):
        if isinstance(ty, TensorType) and ty.dtype.kind == "c":
            raise call.it.failure(
                errors.GradientError,
                f"{kind} takes derivatives by real numbers, and this argument is {ty}",
                hints=("take it by the real and the imaginary parts, as two arguments",),
            )
    for ty in map(call.result_type, results):
        if ty.dtype.kind == "c" and kind != "jacfwd":
            raise call.it.failure(
                errors.GradientError, f"{kind} takes real results, and this function returns {ty}",
                hints=("use pyrelay.jacfwd",),
            )


def _is_tall(call: _Call, inputs: Iterable[int], results: Iterable[int]) -> bool:
    """Whether there are no more inputs than results, as far as that can be guessed."""
    results = list(results)
    if not all(map(call.is_sized, results)):
        return True
    columns = sum(_guess(call.atoms[k].type) for k in inputs)
    return columns <= sum(_guess(call.result_type(k)) for k in results)


def _guess(ty: Any) -> int:
    return dims.evaluate(ty.size, dict.fromkeys(dims.symbols(ty.size), _TYPICAL_EXTENT))


Blocks = dict[tuple[int, int], Atom]
"""By the leaf of the result and that of the arguments: their axes in this order."""


def _by_columns(call: _Call, inputs: Sequence[int], results: Sequence[int]) -> Blocks:
    """Tangents of the result along one element of the arguments after the other."""
    builder, blocks = call.it.builder, {}
    assert call.spec.result is not None
    everything = leaf_types([call.spec.result.value])
    own = [everything[k] for k in results]
    shown = [_plain(call.leaves[k].type) for k in results]
    for leaf in inputs:
        ty = call.atoms[leaf].type
        assert isinstance(ty, TensorType)

        def moved(inner: Builder, seed: Atom, leaf: int = leaf) -> list[Handle]:
            found = call.beside(inner, call.forward({leaf: seed}, results), own)
            return [_refined(inner, h, s) for h, s in zip(found, shown, strict=True)]

        for number, out, rows in zip(results, shown, _each(builder, ty, shown, moved), strict=True):
            if ty.rank:
                axes = (*range(1, out.rank + 1), 0)
                turned = builder.call(OPS["transpose"], rows, axes=axes)
                rows = builder.call(OPS["reshape"], turned, shape=(*out.shape, *ty.shape))
            blocks[number, leaf] = rows.atom
    return blocks


def _plain(ty: Any) -> TensorType:
    """The type of NumPy's kind."""
    assert isinstance(ty, TensorType)
    return TensorType(ty.dtype, ty.shape)


def _by_rows(call: _Call, inputs: Sequence[int], results: Sequence[int]) -> Blocks:
    """Cotangents of the arguments for one element of the result after the other."""
    builder, blocks = call.it.builder, {}
    shown = [_plain(call.atoms[k].type) for k in inputs]
    types_in = [call.atoms[k].type for k in inputs]
    for number in results:
        _require_size(call, number, "use pyrelay.jacfwd")
        ty = call.result_type(number)

        def pulled(inner: Builder, seed: Atom, number: int = number) -> list[Handle]:
            found = call.beside(inner, call.backward({number: seed}, inputs), types_in)
            return [_refined(inner, h, s) for h, s in zip(found, shown, strict=True)]

        for leaf, of, rows in zip(inputs, shown, _each(builder, ty, shown, pulled), strict=True):
            if ty.rank:
                rows = builder.call(OPS["reshape"], rows, shape=(*ty.shape, *of.shape))
            blocks[number, leaf] = rows.atom
    return blocks


def _refined(builder: Builder, value: Handle, ty: TensorType) -> Handle:
    """The value as one of NumPy's kind, in extents that are known outside of the loop."""
    plain = builder.handle(builder.cast(value, ty.dtype))
    if plain.shape == ty.shape:
        return plain
    found: Handle = builder.call(OPS["refine"], plain, shape=ty.shape)
    return found


def _each(
    builder: Builder, ty: TensorType, rows: Sequence[TensorType],
    answer: Callable[[Builder, Atom], list[Handle]],
) -> list[Handle]:
    """What `answer` gives for each unit vector of a type, one after the other in a new first axis;
    for a number what it gives for 1."""
    if not ty.rank:
        return answer(builder, constant(1.0, ty))
    size = ty.size

    def body(
        inner: Builder, index: Handle, carried: tuple[Handle, ...]
    ) -> list[Handle]:
        places = inner.call(OPS["iota"], size=size, dtype=types.i64)
        here = inner.call(OPS["equal"], places, inner.cast(index, types.i64))
        unit = inner.handle(inner.cast(here, ty.dtype))
        seed = inner.call(OPS["reshape"], unit, shape=ty.shape) if ty.rank != 1 else unit
        return [
            inner.call(OPS["index_update"], whole, row, index, axes=(0,))
            for whole, row in zip(carried, answer(inner, seed.atom), strict=True)
        ]

    init = [builder.undef(TensorType(row.dtype, (size, *row.shape))) for row in rows]
    return list(builder.counted(builder.extent(size), init, body))

