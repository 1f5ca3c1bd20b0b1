"""Methods of Python's own generators, `random.Random`.

In: a generator on the heap and abstract values. Out: the numbers that Python draws (`drawing`).
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.containers import lists
from pyrelay.infer.drawing import draw, placed
from pyrelay.infer.in_python import lists as in_lists
from pyrelay.infer.in_python import python_random as in_python_random
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import extent
from pyrelay.infer.operators import binary
from pyrelay.ir import types
from pyrelay.ir.types import TensorType

ZERO_F, ONE_F, ONE = V.Known(0.0), V.Known(1.0), V.Known(1)


def _draw(method: str, ty: TensorType, op: str = "host_value") -> Callable[..., V.Value]:
    """A method of random.Random that gives a number."""

    def handler(it: Interpreter, rng: V.Ref, *args: V.Value) -> V.Value:
        return draw(it, rng, method, args, ty, op=op)

    return handler


def _normal(method: str) -> Callable[..., V.Value]:
    def handler(
        it: Interpreter, rng: V.Ref, mu: V.Value = ZERO_F, sigma: V.Value = ONE_F
    ) -> V.Value:
        z = draw(it, rng, method, (ZERO_F, ONE_F), types.PY_FLOAT)
        return placed(it, z, mu, sigma)

    return handler


def _uniform(it: Interpreter, rng: V.Ref, a: V.Value, b: V.Value) -> V.Value:
    """Between two bounds."""
    found = draw(it, rng, "random", (), types.PY_FLOAT)
    return placed(it, found, a, binary(it, "-", b, a))


def _exponential(it: Interpreter, rng: V.Ref, lambd: V.Value = ONE_F) -> V.Value:
    """With the rate `lambd`."""
    return binary(it, "/", draw(it, rng, "expovariate", (ONE_F,), types.PY_FLOAT), lambd)


def _choice(it: Interpreter, rng: V.Ref, seq: V.Value) -> V.Value:
    """An item of a sequence."""
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.names.builtins import len_

    return get_item(it, seq, draw(it, rng, "randrange", (len_(it, seq),), types.PY_INT))


def _shuffle(it: Interpreter, rng: V.Ref, x: V.Value) -> V.Value:
    """The elements of a vector or a list put in a random order, in place."""
    from pyrelay.infer.arrays.subscripts import set_item
    from pyrelay.infer.names.builtins import len_
    from pyrelay.infer.names.numpy import take

    if V.is_list(x):
        ty = TensorType(types.i64, (extent(it, len_(it, x)),))
        order = draw(it, rng, "order", (len_(it, x),), ty)
        content = it.content(x.root)
        if not isinstance(content, V.Growing) and any(map(V.is_list, content)):
            content = lists.grow(it, x.root)  # which of them is where can be told then
        put = in_lists.arrange if isinstance(content, V.Growing) else in_lists.put_in_order
        call(it, V.Known(put), (x, order), {})
        return V.NONE
    if not isinstance(x, V.ArrayRef) or x.type.rank != 1:
        raise it.failure(
            errors.UnsupportedOperationError, f"{V.describe(x)} cannot be shuffled here",
            hints=("shuffle a vector of indices, and take the items by it",),
        )
    size = x.type.shape[0]
    ty = TensorType(types.i64, (size,))
    order = draw(it, rng, "order", (V.Scalar.of_extent(size),), ty)
    set_item(it, x, V.Known(Ellipsis), take(it, x, order))
    return V.NONE


def _sample(
    it: Interpreter, rng: V.Ref, population: V.Value, k: V.Value, *, counts: V.Value = V.NONE
) -> V.Value:
    """Items of different places of a sequence, in a list."""
    from pyrelay.infer.names.builtins import len_

    if counts != V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError, "random.sample with counts= is not compiled",
            hints=("repeat the items: [x for x, n in zip(items, counts) for _ in range(n)]",),
        )
    ty = TensorType(types.i64, (extent(it, k),))
    places = draw(it, rng, "places", (len_(it, population), k), ty)
    return call(it, V.Known(in_lists.items_at), (population, places), {})


def _choices(
    it: Interpreter, rng: V.Ref, population: V.Value, weights: V.Value = V.NONE, *,
    cum_weights: V.Value = V.NONE, k: V.Value = ONE,
) -> V.Value:
    """Items of a sequence in a list, the same one as often as it comes."""
    args = (rng, population, weights, cum_weights, k)
    return call(it, V.Known(in_python_random.choices), args, {})


#: All but `seed`, which makes a generator anew.
METHODS: dict[str, Callable[..., V.Value]] = {
    "random": _draw("random", types.PY_FLOAT), "uniform": _uniform,
    "gauss": _normal("gauss"), "normalvariate": _normal("normalvariate"),
    "expovariate": _exponential, "choice": _choice, "shuffle": _shuffle,
    "sample": _sample, "choices": _choices,
    **{
        name: _draw(name, types.PY_INT)
        for name in ("randint", "randrange", "getrandbits")
    },
    **{
        name: _draw(name, types.PY_FLOAT, "host_draw")
        for name in (
            "betavariate", "gammavariate", "lognormvariate", "paretovariate", "triangular",
            "vonmisesvariate", "weibullvariate",
        )
    },
}
