"""Infer: a Python function and its arguments' types to a typed Core module.

In: what to call (a function, or a derivative of one), Python arguments. Out: `Specialised`: the
module, how its flat parameters are found among the arguments and captured objects, how its flat
results become the Python result, which arguments it writes, and the guards it rests on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyrelay import errors
from pyrelay.infer import building, columns
from pyrelay.infer import values as V
from pyrelay.infer.anonymous import NeedsNodes
from pyrelay.infer.asked import Asked, NeedsWrites
from pyrelay.infer.attempt import Attempt, Entered
from pyrelay.infer.closing import NeedsApart
from pyrelay.infer.memoising import NeedsMemo
from pyrelay.infer.specialised import Specialised
from pyrelay.infer.structure import Flattened
from pyrelay.ir import dims

_PYTHON_FRAMES = 8000

_ASKING = (
    V.NeedsStatic, V.NeedsListing, V.NeedsCapture, V.NeedsIdentity, V.NeedsUnrolling, NeedsMemo,
    NeedsNodes, NeedsWrites, building.NeedsPool, errors.PyrelayError,
)
"""What attempts end with that the next one may do without."""


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for interpreting calls inside calls: several Python frames for each of the program."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _PYTHON_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def specialise(
    callee: Any, args: Sequence[Any], keywords: Mapping[str, Any], parse: Callable[[Any], Any]
) -> Specialised:
    """Infer the program of `callee(*args, **keywords)`.

    callee is a Python function or an abstract value (a `Derivative`). Raises a PyrelayError at the
    user's line for what cannot be compiled.

    Lists of many numbers enter as arrays. If the program has to know their lengths, or would check
    that computed arrays have one shape, short ones enter as structures of their items. Lists of
    many trees enter as arrays, too, unless the program does with them what only lists can do.
    """
    entered = Entered()
    made: Specialised | None = None
    failure: errors.PyrelayError | None = None
    try:
        made, may_differ = _specialised(callee, args, keywords, parse, columns.MOST_APART, entered)
    except NeedsApart:
        return _specialised(callee, args, keywords, parse, columns.ALL_APART, entered)[0]
    except errors.PyrelayError as error:
        failure, may_differ = error, True
    if made is None and entered.open:
        try:
            return _specialised(callee, args, keywords, parse, columns.MOST_APART_OPEN, entered)[0]
        except NeedsApart:
            pass
        except errors.PyrelayError:
            pass
    if may_differ and any(n <= columns.MOST_APART_NEEDED for n in entered.lengths):
        try:
            return _specialised(
                callee, args, keywords, parse, columns.MOST_APART_NEEDED, entered
            )[0]
        except NeedsApart:
            return _specialised(callee, args, keywords, parse, columns.ALL_APART, entered)[0]
        except errors.PyrelayError:
            pass
    if made is None and (entered.trees or entered.dicts):
        try:
            return _specialised(callee, args, keywords, parse, columns.ALL_APART, entered)[0]
        except errors.PyrelayError:
            pass
    if made is None:
        assert failure is not None
        raise failure from None
    return made


def _specialised(
    callee: Any, args: Sequence[Any], keywords: Mapping[str, Any], parse: Callable[[Any], Any],
    apart: int, entered: Entered,
) -> tuple[Specialised, bool]:
    """The program where lists up to a length are structures, and whether it checks shapes.

    Notes in `entered` which lists entered as arrays.
    """
    asked = Asked()
    while not asked.is_endless:
        flat = Flattened(apart=apart, families=asked.families)
        attempt = Attempt(parse, asked, flat=flat, entered=entered)
        try:
            with dims.spelled_by(attempt.guards.spell), _deep_recursion():
                return attempt.run(callee, args, keywords), attempt.checks_shapes
        except _ASKING as error:
            failure = asked.grant(error)
        if failure is None:
            asked.note_keys(attempt)
            continue
        losing = asked.fall_back(attempt, failure)
        if losing is not None:
            return losing, False
    raise errors.StaticValueError("too many arguments must be known when the function is compiled.")


__all__ = ["specialise"]
