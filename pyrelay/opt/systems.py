"""Linear systems of few unknowns, inverses, determinants and triangular factors as loops.

In: a module. Out: the module in which `solve`, `inv`, `det`, `slogdet`, `cofactors` and `cholesky`
of one small matrix (`small`, or of so few rows as is known) are elimination in loops over elements.
A call of the library costs many times as much as such a matrix, and keeps the loop around it from
being a kernel. The derivatives are made of the same ops, and so are loops as well.

Elimination picks the greatest element of the column as the pivot, as LAPACK's `getrf` does; a pivot
of exactly 0 raises what NumPy raises, or makes the determinant 0. Cofactors pick the greatest of
the whole rest: with a = L U, U = [U' u; 0 d] and U' regular, adj(U) is det(U') times
[d inv(U'), -inv(U') u; 0, 1], so that no division by d is left and singular matrices have theirs
(Stewart, "On the adjugate matrix", 1998). Golub and Van Loan, "Matrix computations", chapters 3, 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, i64
from pyrelay.ops.linalg import SMALL
from pyrelay.opt.elements import integer, read, stored
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module


def systems(module: Module) -> Module:
    """The module with what is done to small matrices in loops."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.name not in _WRITERS:
        return None
    if any(_of(a.type).rank != 2 or _of(a.type).dtype.kind != "f" for a in call.args):
        return None
    rows = _of(call.args[0].type).shape[0]
    if not call.attrs["small"] and not (isinstance(rows, int) and 1 <= rows <= SMALL):
        return None
    attrs = {k: v for k, v in call.attrs.items() if k != "small"}
    given = [builder.handle(a) for a in call.args]
    return [h.atom for h in _WRITERS[call.op.name](builder, *given, **attrs)]


def _of(ty: Any) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty


# -- elimination -----------------------------------------------------------------------------------


def _solve(build: Builder, a: Handle, b: Handle) -> list[Handle]:
    n, columns = _count(build, a, 0), _count(build, b, 1)
    upper, (x,), _ = _eliminated(build, a, [_copy(build, b)], _refuse_zero)
    return [_substituted_back(build, upper, x, n, columns)]


def _inv(build: Builder, a: Handle) -> list[Handle]:
    return _solve(build, a, _unit(build, a))


def _slogdet(build: Builder, a: Handle) -> list[Handle]:
    """By the logarithms of the pivots, as NumPy has it."""
    upper, _, sign = _eliminated(build, a, [], None)
    dtype = a.dtype

    def factor(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        sign, logarithm = carried
        pivot = read(inner, upper, integer(inner, k), integer(inner, k))
        turned = inner.call(OPS["where"], pivot < 0.0, -sign, sign)
        zero = inner.call(OPS["equal"], pivot, 0.0)
        found = inner.call(OPS["log"], inner.call(OPS["absolute"], pivot))
        return [inner.call(OPS["where"], zero, inner.cast(0.0, dtype), turned), logarithm + found]

    n = _count(build, a, 0)
    return list(build.counted(n, [sign, build.cast(0.0, dtype)], factor))


def _det(build: Builder, a: Handle) -> list[Handle]:
    sign, logarithm = _slogdet(build, a)
    return [sign * build.call(OPS["exp"], logarithm)]


Refusal = Callable[[Builder, Handle], None]


def _eliminated(
    build: Builder, a: Handle, others: Sequence[Handle], refuse: Refusal | None
) -> tuple[Handle, list[Handle], Handle]:
    """The triangle U of a = P L U, others with inv(P L) applied to them, the determinant of P.

    What lies below the diagonal of U is not meant. Rows are exchanged without asking whether they
    differ: a branch that nobody can guess costs more.
    """
    n = _count(build, a, 0)
    widths = [_count(build, x, 1) for x in others]
    held = [_copy(build, a), build.handle(build.cast(1.0, a.dtype)), *others]

    def column(inner: Builder, index: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        u, sign, *rest = carried
        k = integer(inner, index)
        pivot, at = _greatest(inner, u, k, n)
        if refuse is not None:
            refuse(inner, pivot)
        differs = inner.call(OPS["not_equal"], at, k)
        sign = inner.call(OPS["where"], differs, -sign, sign)
        u = _exchanged(inner, u, k, at, k, n)
        divisor = _nonzero(inner, read(inner, u, k, k))
        rest = [
            _exchanged(inner, x, k, at, None, width) for x, width in zip(rest, widths, strict=True)
        ]

        def row(deeper: Builder, i: Handle, state: tuple[Handle, ...]) -> list[Any]:
            u, *rest = state
            i = integer(deeper, i) + k + 1
            factor = read(deeper, u, i, k) / divisor
            u = _reduced(deeper, u, i, k, factor, k + 1, n)
            return [u, *(
                _reduced(deeper, x, i, k, factor, None, width)
                for x, width in zip(rest, widths, strict=True)
            )]

        u, *rest = inner.counted(inner.handle(n) - k - 1, [u, *rest], row)
        return [u, sign, *rest]

    u, sign, *rest = build.counted(n, held, column)
    return u, rest, sign


def _greatest(build: Builder, u: Handle, k: Handle, n: Handle) -> tuple[Handle, Handle]:
    """The greatest size of an element of column k, from row k on, and its row."""

    def row(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = integer(inner, i) + k + 1
        return _better(inner, carried, inner.call(OPS["absolute"], read(inner, u, i, k)), i)

    first = build.call(OPS["absolute"], read(build, u, k, k))
    size, at = build.counted(build.handle(n) - k - 1, [first, k], row)
    return size, at


def _better(
    build: Builder, most: tuple[Handle, ...], size: Handle, *at: Handle
) -> list[Any]:
    """The greater of two sizes, the first of equal ones, each with its place."""
    greater = size > most[0]
    return [
        build.call(OPS["where"], greater, new, old)
        for new, old in zip((size, *at), most, strict=True)
    ]


def _refuse_zero(build: Builder, pivot: Handle) -> None:
    _refuse(build, build.call(OPS["equal"], pivot, 0.0), "Singular matrix")


def _refuse(build: Builder, bad: Handle, text: str) -> None:
    def fail(inner: Builder) -> list[Any]:
        inner.call(OPS["raise"], exception=np.linalg.LinAlgError, parts=(text,))
        return []

    build.cond(bad, fail, lambda inner: [])


def _exchanged(
    build: Builder, x: Handle, one: Handle, other: Handle, start: Handle | None, end: Handle
) -> Handle:
    """x with two rows exchanged, from one column on to another."""

    def element(inner: Builder, j: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        j, (x,) = _from(inner, start, j), carried
        first, second = read(inner, x, one, j), read(inner, x, other, j)
        return [stored(inner, stored(inner, x, second, one, j), first, other, j)]

    count = build.handle(end)
    return build.counted(count if start is None else count - start, [x], element)[0]


def _reduced(
    build: Builder, x: Handle, i: Handle, k: Handle, factor: Handle, start: Handle | None,
    end: Handle,
) -> Handle:
    """x with `factor` times row k taken from row i, from one column on to another."""

    def element(inner: Builder, j: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        j, (x,) = _from(inner, start, j), carried
        left = read(inner, x, i, j) - read(inner, x, k, j) * factor
        return [stored(inner, x, left, i, j)]

    count = build.handle(end)
    return build.counted(count if start is None else count - start, [x], element)[0]


def _substituted_back(
    build: Builder, upper: Handle, x: Handle, n: Handle, columns: Handle
) -> Handle:
    """inv(U) x in place of x, by the first n rows and columns of U."""

    def row(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = inner.handle(n) - 1 - integer(inner, k)
        divisor = _nonzero(inner, read(inner, upper, i, i))

        def element(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            j, (x,) = integer(deeper, j), state

            def product(deepest: Builder, p: Handle, sums: tuple[Handle, ...]) -> list[Any]:
                p = integer(deepest, p) + i + 1
                return [sums[0] - read(deepest, upper, i, p) * read(deepest, x, p, j)]

            (left,) = deeper.counted(deeper.handle(n) - i - 1, [read(deeper, x, i, j)], product)
            return [stored(deeper, x, left / divisor, i, j)]

        return list(inner.counted(columns, carried, element))

    return build.counted(n, [x], row)[0]


# -- cofactors -------------------------------------------------------------------------------------


def _cofactors(build: Builder, a: Handle) -> list[Handle]:
    n, last = _count(build, a, 0), _count(build, a, 0) - 1
    order = _filled(build, build.undef(TensorType(i64, (a.shape[0],))), n)
    u, x, sign, order = _wholly_eliminated(build, a, order)
    dtype = a.dtype

    def multiplied(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        return [carried[0] * read(inner, u, integer(inner, k), integer(inner, k))]

    (others,) = build.counted(last, [build.cast(1.0, dtype)], multiplied)
    final = others * read(build, u, last, last)

    def row(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = integer(inner, i)
        beside = read(inner, u, i, last) * others

        def element(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            j, (x,) = integer(deeper, j), state
            found = read(deeper, x, i, j) * final - read(deeper, x, last, j) * beside
            return [stored(deeper, x, found, i, j)]

        return list(inner.counted(n, carried, element))

    (x,) = build.counted(last, [x], row)
    x = _substituted_back(build, u, x, last, n)

    whole = others * sign

    def turned(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = integer(inner, i)
        at = read(inner, order, i)
        scale = inner.call(OPS["where"], inner.call(OPS["equal"], i, last), whole, sign)

        def element(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            j = integer(deeper, j)
            return [stored(deeper, state[0], read(deeper, x, i, j) * scale, j, at)]

        return list(inner.counted(n, carried, element))

    return list(build.counted(n, [build.undef(a.type)], turned))


def _filled(build: Builder, order: Handle, n: Handle) -> Handle:
    """0, 1, 2, ..."""

    def element(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = integer(inner, i)
        return [stored(inner, carried[0], i, i)]

    return build.counted(n, [order], element)[0]


def _wholly_eliminated(
    build: Builder, a: Handle, order: Handle
) -> tuple[Handle, Handle, Handle, Handle]:
    """U and inv(P L) with a = P L U Q, the determinant of P Q, the columns of a in U's order."""
    n = _count(build, a, 0)
    one = build.handle(build.cast(1.0, a.dtype))
    held = [_copy(build, a), _copy(build, _unit(build, a)), one, order]

    def column(inner: Builder, index: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        u, x, sign, order = carried
        k = integer(inner, index)

        def row(deeper: Builder, i: Handle, most: tuple[Handle, ...]) -> list[Any]:
            i = integer(deeper, i) + k

            def element(deepest: Builder, j: Handle, most: tuple[Handle, ...]) -> list[Any]:
                j = integer(deepest, j) + k
                size = deepest.call(OPS["absolute"], read(deepest, u, i, j))
                return _better(deepest, most, size, i, j)

            return list(deeper.counted(deeper.handle(n) - k, most, element))

        first = inner.call(OPS["absolute"], read(inner, u, k, k))
        _, line, across = inner.counted(inner.handle(n) - k, [first, k, k], row)
        for at in (line, across):
            differs = inner.call(OPS["not_equal"], at, k)
            sign = inner.call(OPS["where"], differs, -sign, sign)
        u, x = (_exchanged(inner, each, k, line, None, n) for each in (u, x))

        def exchange(deeper: Builder, i: Handle, state: tuple[Handle, ...]) -> list[Any]:
            i, (u,) = integer(deeper, i), state
            here, there = read(deeper, u, i, k), read(deeper, u, i, across)
            return [stored(deeper, stored(deeper, u, there, i, k), here, i, across)]

        (u,) = inner.counted(n, [u], exchange)
        here, there = read(inner, order, k), read(inner, order, across)
        order = stored(inner, stored(inner, order, there, k), here, across)
        divisor = _nonzero(inner, read(inner, u, k, k))

        def reduced(deeper: Builder, i: Handle, state: tuple[Handle, ...]) -> list[Any]:
            u, x = state
            i = integer(deeper, i) + k + 1
            factor = read(deeper, u, i, k) / divisor
            u = _reduced(deeper, u, i, k, factor, k + 1, n)
            return [u, _reduced(deeper, x, i, k, factor, None, n)]

        u, x = inner.counted(inner.handle(n) - k - 1, [u, x], reduced)
        return [u, x, sign, order]

    u, x, sign, order = build.counted(n, held, column)
    return u, x, sign, order


# -- a triangular factor ---------------------------------------------------------------------------


def _cholesky(build: Builder, a: Handle, *, upper: bool) -> list[Handle]:
    """Row by row; `upper` reads and writes the mirror image."""
    n = _count(build, a, 0)

    def placed(i: Handle, j: Handle) -> tuple[Handle, Handle]:
        return (j, i) if upper else (i, j)

    def less_products(build: Builder, low: Handle, i: Handle, j: Handle) -> Handle:
        """a[i, j] without the products of what is found of rows i and j already."""

        def product(inner: Builder, k: Handle, sums: tuple[Handle, ...]) -> list[Any]:
            k = integer(inner, k)
            one, other = (read(inner, low, *placed(r, k)) for r in (i, j))
            return [sums[0] - one * other]

        return build.counted(j, [read(build, a, *placed(i, j))], product)[0]

    def row(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = integer(inner, i)

        def element(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            j, (low,) = integer(deeper, j), state
            found = less_products(deeper, low, i, j) / read(deeper, low, *placed(j, j))
            return [stored(deeper, low, found, *placed(i, j))]

        def blank(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            zero = deeper.handle(deeper.cast(0.0, a.dtype))
            return [stored(deeper, state[0], zero, *placed(i, integer(deeper, j) + i + 1))]

        (low,) = inner.counted(i, carried, element)
        square = less_products(inner, low, i, i)
        bad = inner.call(OPS["logical_not"], square > 0.0)
        _refuse(inner, bad, "Matrix is not positive definite")
        low = stored(inner, low, inner.call(OPS["sqrt"], square), *placed(i, i))
        return list(inner.counted(inner.handle(n) - i - 1, [low], blank))

    return list(build.counted(n, [build.undef(a.type)], row))


# -- elements --------------------------------------------------------------------------------------


def _copy(build: Builder, x: Handle) -> Handle:
    """The elements of a matrix in memory to write to."""
    columns = _count(build, x, 1)

    def row(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        i = integer(inner, i)

        def element(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            j = integer(deeper, j)
            return [stored(deeper, state[0], read(deeper, x, i, j), i, j)]

        return list(inner.counted(columns, carried, element))

    return build.counted(_count(build, x, 0), [build.undef(x.type)], row)[0]


def _unit(build: Builder, a: Handle) -> Handle:
    n = a.shape[0]
    row = build.call(OPS["expand_dims"], build.call(OPS["iota"], size=n, dtype=i64), axes=(1,))
    column = build.call(OPS["expand_dims"], build.call(OPS["iota"], size=n, dtype=i64), axes=(0,))
    same = build.call(OPS["equal"], row, column)
    return build.handle(build.cast(same, a.dtype))


def _count(build: Builder, x: Handle, axis: int) -> Handle:
    return integer(build, build.extent(x.shape[axis]))


def _nonzero(build: Builder, pivot: Handle) -> Handle:
    """A pivot to divide by: below or beside one of 0 there are zeros, or nobody reads on."""
    zero = build.call(OPS["equal"], pivot, 0.0)
    found: Handle = build.call(OPS["where"], zero, build.cast(1.0, pivot.dtype), pivot)
    return found


def _from(build: Builder, start: Handle | None, j: Handle) -> Handle:
    j = integer(build, j)
    return j if start is None else j + start


_WRITERS: dict[str, Callable[..., list[Handle]]] = {
    "solve": _solve, "inv": _inv, "det": _det, "slogdet": _slogdet, "cofactors": _cofactors,
    "cholesky": _cholesky,
}
