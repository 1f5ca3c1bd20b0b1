"""Arrays that change places after each row."""

from __future__ import annotations

from pyrelay.ir.types import f64, i64
from pyrelay.lower.kernels.kernel import Assign, For, Literal, Local, Pointed, Statement, Store
from pyrelay.lower.passes.row_exchanges import with_exchange
from pyrelay.lower.passes.row_lags import Nest

P, Q, R = (Local(i64, variable=True) for _ in range(3))


def nest(*after: Statement, before: tuple[Statement, ...] = ()) -> Nest:
    inner = For(Local(i64), Literal(0, i64), Literal(9, i64), (
        Store(Pointed(f64, Q), Literal(0, i64), Literal(1.0, f64), False),
    ))  # fmt: skip
    loop = For(Local(i64), Literal(0, i64), Literal(9, i64), (*before, inner, *after))
    return Nest(loop, before, inner, after)


def test_an_exchange_is_taken_out() -> None:
    one, other = Local(i64, variable=True), Local(i64, variable=True)
    found = with_exchange(nest(Assign(one, Q), Assign(other, P), Assign(P, one), Assign(Q, other)))
    assert set(found.exchanged or ()) == {P, Q}
    assert found.after == ()


def test_one_variable_between_is_enough() -> None:
    found = with_exchange(nest(Assign(R, P), Assign(P, Q), Assign(Q, R)))
    assert set(found.exchanged or ()) == {P, Q}


def test_other_assignments_stay() -> None:
    for after in [
        (Assign(P, Q),),
        (Assign(P, Q), Assign(Q, P)),  # both are what Q was
        (Assign(R, P), Assign(P, Q), Assign(Q, Local(i64, variable=True))),
    ]:
        given = nest(*after)
        assert with_exchange(given) is given


def test_addresses_that_are_set_elsewhere_stay() -> None:
    given = nest(Assign(R, P), Assign(P, Q), Assign(Q, R), before=(Assign(P, Literal(0, i64)),))
    assert with_exchange(given) is given
