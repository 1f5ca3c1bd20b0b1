"""Infer: a Python function and its arguments' types to a typed Core module.

In: what to call (a function, or a derivative of one), Python arguments. Out: `Specialised`: the
module, how its flat parameters are found among the arguments and captured objects, how its flat
results become the Python result, which arguments it writes, and the guards it rests on.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.arguments import Entered
from pyrelay.infer.asked import Asked, NeedsFewer, NeedsLayouts, NeedsWrites
from pyrelay.infer.attempt import Attempt
from pyrelay.infer.closing import NeedsApart
from pyrelay.infer.containers import columns
from pyrelay.infer.effort import (
    MOST_ROUNDS,
    MOST_STEPS,
    MOST_STEPS_BY_ITEMS,
    MOST_STEPS_DEEP,
    MOST_STEPS_OF_TEXTS,
    MOST_STEPS_OTHERWISE,
    MOST_STEPS_UNFOLDED,
    Effort,
    TooManySteps,
)
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.memoising import NeedsExactKeys, NeedsMemo
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.nodes.anonymous import NeedsNodes
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families
from pyrelay.infer.nodes.plans import NeedsFields, NeedsNodesOf, NeedsPool
from pyrelay.infer.specialised import Specialised
from pyrelay.infer.structure import Flattened
from pyrelay.ir import dims

_PYTHON_FRAMES = 8000

_ASKING = (
    needs.NeedsStatic, needs.NeedsListing, needs.NeedsGathering, needs.NeedsCapture,
    needs.NeedsIdentity, needs.NeedsCopies, needs.NeedsPlaces, needs.NeedsWide,
    needs.NeedsSequences, needs.NeedsUnrolling, needs.NeedsTable, needs.NeedsOrder,
    needs.NeedsEntries, needs.NeedsNested, needs.NeedsListed, needs.NeedsClassAttribute,
    NeedsMemo, NeedsExactKeys, NeedsFewer, NeedsLayouts, NeedsNodes, NeedsWrites, NeedsPool,
    NeedsFields, NeedsNodesOf,
    errors.PyrelayError,
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
    callee: Any, args: Sequence[Any], keywords: Mapping[str, Any], parse: Callable[[Any], Any], *,
    near: bool = True, open_texts: bool = False, texts_may_open: bool = False,
    stretches: bool = False, apart: int = columns.MOST_APART,
) -> Specialised:
    """Infer the program of `callee(*args, **keywords)`.

    callee is a Python function or an abstract value (a `Derivative`). near: whether it runs where a
    loop over short arrays is better one kernel (`short_arrays`). open_texts: whether short texts
    are data, too; or may be if this program is too much (`texts_may_open`). stretches: see
    `infer/arrays/stretching`. apart: up to which length lists are structures at first. Raises a
    PyrelayError at the user's line for what cannot be compiled, or takes too long to.

    Lists of many numbers enter as arrays. If the program has to know their lengths, or would check
    that computed arrays have one shape, short ones enter as structures of their items; if it still
    would, arrays in lists keep shapes of their own. Lists of many trees enter as arrays, too,
    unless the program does with them what only lists can do; so do lists of many objects, as nodes
    of data types of this program. What methods of long texts give is computed by the program, or,
    if there is none, known. Short lists of rows of numbers enter as tables where taking them apart
    turns out to be much to compile. Lists in lists hold lists that grow where some would. Loops of
    many rounds are unrolled where nothing else helps.
    """
    effort = Effort(texts_may_open=texts_may_open)
    if texts_may_open:
        effort.allow(MOST_STEPS_OF_TEXTS)
    infer = functools.partial(
        _specialised, callee, args, keywords, parse, near=near, open_texts=open_texts,
        stretches=stretches, effort=effort,
    )
    every = [*args, *keywords.values()]
    try:
        tables = any(map(_is_short_table, every))
        if tables:
            effort.allow(MOST_STEPS_BY_ITEMS)
            try:
                return _inferred(infer, every, apart)
            except TooManySteps:
                effort.allow(MOST_STEPS)
                found = _tried(infer, columns.NONE_APART, Entered())
            if found is not None:
                return found
        try:
            return _inferred(infer, every, apart, tables)
        except errors.PyrelayError:
            if not effort.left_rolled:
                raise
        effort.rounds = MOST_ROUNDS
        effort.allow(MOST_STEPS)
        return _inferred(infer, every, apart)
    except TooManySteps as error:
        raise error.failure from None


def _inferred(
    infer: Callable[..., tuple[Specialised, bool]], every: Sequence[Any], apart: int,
    tables: bool = False,
) -> Specialised:
    """The program by the first way to take lists that it is compiled with.

    apart: up to which length lists are structures at first. tables: whether lists of lists entered
    as tables before, in vain.
    """
    entered = Entered()
    listed = _listed(every, columns.MOST_RECORDS, mixed=True)
    if listed is not None and listed.mixed:
        found = _of_nodes(infer, listed)
        if found is not None:
            return found
        listed = _listed(every, columns.MOST_RECORDS)
    if listed is not None:
        found = _tried(infer, columns.MOST_APART, Entered(), listed)
        if found is not None:  # else records may be what the program needs
            return found
    effort: Effort = infer.keywords["effort"]  # type: ignore[attr-defined]
    begun = effort.steps
    try:
        made, may_differ = infer(apart, entered)
    except NeedsApart:
        if entered.nested:
            return _inferred(infer, every, columns.MOST_APART_SHALLOW)
        return infer(columns.ALL_APART, entered)[0]
    except errors.PyrelayError as failure:
        effort.allow(max(MOST_STEPS_OTHERWISE, 2 * (effort.steps - begun)))
        try:
            found = _otherwise(infer, every, entered, listed, tables)
        except TooManySteps:
            found = None
        if found is None:
            raise failure from None
        return found
    if may_differ and any(n <= columns.MOST_APART_NEEDED for n in entered.lengths):
        try:
            again, differ = infer(columns.MOST_APART_NEEDED, entered)
            if not differ:
                return again
        except NeedsApart:
            return infer(columns.ALL_APART, entered)[0]
        except errors.PyrelayError:
            pass
    if may_differ:
        return _tried(infer, columns.MOST_APART, entered, ragged=True) or made
    return made


def _otherwise(
    infer: Callable[..., tuple[Specialised, bool]], every: Sequence[Any], entered: Entered,
    listed: Families | None, tables: bool,
) -> Specialised | None:
    """The program by another way than the first one, which it is not compiled with, nor by tables
    of lists if they were tried; None if there is none. Raises TooManySteps where none is found
    soon."""
    made: Specialised | None = None
    effort: Effort = infer.keywords["effort"]  # type: ignore[attr-defined]
    if entered.deep:
        left = effort.most - effort.steps
        effort.allow(max(MOST_STEPS_DEEP, left))
        if not entered.deepened:
            made = _tried(infer, columns.MOST_APART, entered, deep=True)
        if made is None and entered.fixed:
            made = _tried(infer, columns.MOST_APART, entered, deep=True, nests=True)
        effort.allow(left)
    if made is None and entered.nested:
        effort.allow(MOST_STEPS)
        try:
            return _inferred(infer, every, columns.MOST_APART_SHALLOW)
        except errors.PyrelayError:
            return None
    if made is None and entered.texts_read:
        infer = functools.partial(infer, texts_known=True)
        made = _tried(infer, columns.MOST_APART, entered)
    if made is None and entered.counts:
        made = _tried(infer, columns.MOST_APART, entered, counts_known=True)
    if made is None and entered.begins:
        made = _tried(infer, columns.MOST_APART, entered, begins=True)
    if made is None and entered.open:
        made = _tried(infer, columns.MOST_APART_OPEN, entered)
    if made is None and any(n <= columns.MOST_APART_NEEDED for n in entered.lengths):
        try:
            made, differ = infer(columns.MOST_APART_NEEDED, entered)
        except NeedsApart:
            return infer(columns.ALL_APART, entered)[0]
        except errors.PyrelayError:
            pass
        else:
            if differ:
                made = _tried(infer, columns.MOST_APART, entered, ragged=True) or made
    if made is None and entered.ragged:
        made = _tried(infer, columns.MOST_APART, entered, ragged=True)
    if made is None and (entered.trees or entered.dicts or entered.texts):
        made = _tried(infer, columns.ALL_APART, entered)
    if made is None and listed is None:
        listed = _listed(every, 0)
        if listed is not None:
            made = _tried(infer, columns.MOST_APART, Entered(), listed)
    if made is None and any(_is_short_of_lists(a) for a in every):
        made = None if tables else _tried(infer, columns.NONE_APART, Entered())
        if made is None and entered.arrays:
            made = _tried(infer, columns.ALL_APART, Entered())
    if made is None:
        made = _of_records(infer, every, entered.fixed)
    if made is None and entered.objects:
        made = _unfolded(infer, entered)
    return made


def _of_records(
    infer: Callable[..., tuple[Specialised, bool]], every: Sequence[Any], made_here: bool
) -> Specialised | None:
    """The program where lists of a few items in lists, of arguments or made here, are nodes; None
    if there is none, or it would be too much."""
    listed = _listed(every, 0, fixed=True)
    made = _of_nodes(infer, listed) if listed is not None else None
    if made is None and made_here:
        made = _of_nodes(infer, None) or _of_nodes(infer, None, fixes=False, nests=True)
    return made


def _of_nodes(
    infer: Callable[..., tuple[Specialised, bool]], listed: Families | None, *,
    fixes: bool = True, nests: bool = False
) -> Specialised | None:
    """The program where lists of a few items are nodes, of arguments where they are `listed`; or
    lists that are items of others, with a list in each, if it nests them."""
    try:
        return _tried(
            infer, columns.MOST_APART, Entered(), listed, fixes=fixes, nests=nests
        )
    except TooManySteps:
        return None


def _unfolded(
    infer: Callable[..., tuple[Specialised, bool]], entered: Entered
) -> Specialised | None:
    """The program where no object of the user is a node; None if there is none, or it would be too
    much."""
    effort: Effort = infer.keywords["effort"]  # type: ignore[attr-defined]
    effort.allow(MOST_STEPS_UNFOLDED)
    try:
        return _tried(infer, columns.MOST_APART, entered, unfolds=True)
    except TooManySteps:
        return None


def _is_short_table(value: Any) -> bool:
    """Whether a list of lists is a structure that could be a table of numbers as well."""
    if not _is_short_of_lists(value):
        return False
    kinds = {type(number) for row in value for number in row}
    return len(kinds) == 1 and kinds <= columns.NUMBERS.keys() and len(set(map(len, value))) == 1


def _is_short_of_lists(value: Any) -> bool:
    """Whether a list of a few lists enters as a structure, which keeps them in their places."""
    return type(value) is list and len(value) <= columns.MOST_APART and bool(value) and (
        all(type(item) is list for item in value)
    )


def _tried(
    infer: Callable[..., tuple[Specialised, bool]], *given: Any, **how: Any
) -> Specialised | None:
    """The program that arguments taken so give; None if there is none."""
    try:
        return infer(*given, **how)[0]
    except (NeedsApart, errors.PyrelayError):
        return None


def _specialised(
    callee: Any, args: Sequence[Any], keywords: Mapping[str, Any], parse: Callable[[Any], Any],
    apart: int, entered: Entered, listed: Families | None = None, *, ragged: bool = False,
    deep: bool = False, counts_known: bool = False, texts_known: bool = False,
    begins: bool = False, fixes: bool = False, nests: bool = False, unfolds: bool = False,
    near: bool, open_texts: bool, effort: Effort, stretches: bool,
) -> tuple[Specialised, bool]:
    """The program where lists up to a length are structures, and whether it checks shapes.

    Notes in `entered` which lists entered as arrays. listed: data types of it from the start.
    """
    asked, checks = Asked(
        ragged=ragged, deep=deep, counts_known=counts_known, texts_known=texts_known,
        begins=begins, fixes=fixes, nests=nests, unfolds=unfolds, compares=unfolds, near=near,
        own=None if unfolds else frozenset(), stretches=stretches, effort=effort,
        families=listed or Families(EVERYWHERE, apart=unfolds),
    ), False
    while not asked.is_endless:
        flat = Flattened(apart=apart, families=asked.families, open_texts=open_texts)
        attempt = Attempt(parse, asked, flat=flat, entered=entered)
        steps = effort.steps
        try:
            with dims.spelled_by(attempt.guards.spell), V.own_serials(), _deep_recursion():
                return attempt.run(callee, args, keywords), attempt.checks_shapes
        except _ASKING as error:
            if asked.losing is None:  # of which the next line may make this one
                checks = attempt.checks_shapes
            asked.note_keys(attempt)
            failure = asked.grant(error)
        if failure is None:
            effort.led_on(steps)
            asked.note_tables(attempt)
            continue
        try:
            losing = asked.fall_back(attempt, failure)
        except Exception:  # of the program where some functions are its own
            if not asked.own:
                raise
            asked.in_line()
            continue
        if losing is not None:
            return losing, checks
    raise errors.StaticValueError("too many arguments must be known when the function is compiled.")


def _listed(
    args: Sequence[Any], least: int, *, fixed: bool = False, mixed: bool = False
) -> Families | None:
    """The data types of a program with lists of more than `least` objects of the user's classes, or
    dicts, or, if fixed, lists of a few items, among its arguments; None if there are no such lists,
    or the objects are nodes anyway. mixed: also lists of a few numbers and texts that are no
    arrays, if there are any."""
    found: dict[tuple[type, ...], None] = {}
    fixed = fixed or mixed
    families = Families(EVERYWHERE, rows=True, fixed=fixed, mixed=mixed)
    pending, met = list(args), set[int]()
    while pending:
        value = pending.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        if type(value) is list and len(value) > least:
            if mixed and type(value[0]) is list and not _are_mixed(value):
                continue
            classes = tuple(dict.fromkeys(map(families.class_of, value)))
            if all(is_record_class(c) and EVERYWHERE.of(c) is None for c in classes):
                found[classes] = None
        elif isinstance(value, (list, tuple)):
            pending += value
        elif type(value) is dict:
            pending += value.values()
        elif is_record_class(type(value)) and EVERYWHERE.of(type(value)) is None:
            pending += vars(value).values() if hasattr(value, "__dict__") else ()
    for classes in found:
        families.declare(classes)
    wanted = any(map(is_fixed, itertools.chain.from_iterable(found))) if fixed else bool(found)
    if mixed and not wanted:
        return _listed(args, least)
    return families if wanted else None


def _are_mixed(rows: list[Any]) -> bool:
    """Whether these are lists of numbers and texts that are no arrays."""
    leaves = {*columns.NUMBERS, str, type(None)}
    simple = all(type(row) is list and leaves.issuperset(map(type, row)) for row in rows)
    return simple and columns.columns_of(rows) is None


__all__ = ["specialise"]
