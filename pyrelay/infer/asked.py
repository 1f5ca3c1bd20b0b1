"""What attempts at a program asked for, so that the next one has it from the start.

In: the exception that an attempt ended with. Out: whether another attempt is worth while, and all
that it starts with: numbers taken as known, objects as captured, what becomes a table or a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pyrelay import errors
from pyrelay.infer import needs, own_arrays
from pyrelay.infer.arrays.named_arrays import named_arrays, named_texts
from pyrelay.infer.effort import MOST_STEPS_DEEP, Effort
from pyrelay.infer.flow.joining import UNNUMBERED
from pyrelay.infer.in_python.nested import ORDERED, NestedTable
from pyrelay.infer.in_python.nested_lists import NestedList
from pyrelay.infer.memoising import Memo, NeedsExactKeys, NeedsMemo
from pyrelay.infer.nodes.anonymous import Groups, NeedsNodes, group_of
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families, Family
from pyrelay.infer.nodes.plans import NeedsFields, NeedsNodesOf, NeedsPool, Plan, planned
from pyrelay.infer.number_sources import leaves_of
from pyrelay.infer.program import Place
from pyrelay.infer.specialised import Specialised
from pyrelay.ir.nodes import Function, Let
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.attempt import Attempt

_MOST_RESTARTS = 200
_MOST_EXACT = 2  # see Program.exact


class NeedsWrites(Exception):
    """What a program wrote before it raised would be lost; `made` is the program that loses it.

    `raises` says what has to be followed (`Asked.raises`).
    """

    def __init__(self, made: Specialised, raises: int) -> None:
        super().__init__()
        self.made, self.raises = made, raises


class NeedsFewer(Exception):
    """The program does not read some of the arrays that it was expected to read, by id."""

    def __init__(self, unread: Set[int]) -> None:
        super().__init__()
        self.unread = unread


class NeedsLayouts(Exception):
    """How these arguments, by leaf, lie in memory decides what reshaping copies that is written."""

    def __init__(self, leaves: Set[int]) -> None:
        super().__init__()
        self.leaves = leaves


@dataclass
class Asked:
    """What one specialisation needs, as far as its attempts have told; see `Program` for most."""

    known: dict[int, Any] = field(default_factory=dict)  # leaves that are taken as known
    captured: list[needs.NeedsCapture] = field(default_factory=list)
    #: those of them, by id, that the program should read by what its code says
    expected: dict[int, needs.NeedsCapture] = field(default_factory=dict)
    unread: dict[int, Any] = field(default_factory=dict)  # arrays, by id, that it does not read
    layouts: frozenset[int] = frozenset()  # leaves whose order in memory matters
    copied: frozenset[int] = frozenset()  # leaves that are copied though they have no gaps
    exact: int = 0
    untold: set[str] = field(default_factory=set)  # what asked for more than that, in vain
    chooses: bool = False  # one of two lists stays one of them; lists of lists grow
    tells_new: bool = False  # so it does if the other one is new, which takes more
    doubts: bool = False  # or they have numbers, which may do as well
    unrolled: frozenset[Let] = frozenset()
    families: Families = field(default_factory=lambda: Families(EVERYWHERE))
    effort: Effort = field(default_factory=Effort)
    ahead: frozenset[Let] = frozenset()
    gathered: frozenset[Function] = frozenset()  # generators that call themselves
    gathered_softly: frozenset[Function] = frozenset()  # those that may run in line, if need be
    counted: frozenset[Function] = frozenset()  # or have to
    #: functions that cost much in line (own_functions.py); None if they have to be in line
    own: frozenset[Function] | None = frozenset()
    nodes: Groups = field(default_factory=Groups)
    plans: dict[Any, Plan] = field(default_factory=dict)
    #: from 1: `raise` gives the caller what was written before, from 2: the errors of ops too
    raises: int = 0
    tables: frozenset[Let] = frozenset()
    #: those that need not be tables, or nodes with a field for each key, but are quicker so
    quick: frozenset[Let] = frozenset()
    quick_classes: frozenset[type] = frozenset()  # or classes whose objects need not be nodes
    compares: bool = False  # or cannot be
    memos: list[Memo] = field(default_factory=list)  # functions with tables of what they gave
    wide: bool | None = None  # ints may have 64 bits and no sign; False if that was of no help
    wide_softly: bool = False  # or need not
    placed: bool = False  # lists of lists of the caller's say which of them is where
    ordered: bool = False  # sets keep the order that they have in Python
    #: attributes that are assigned, by class, and variables, by module
    class_attributes: dict[Any, tuple[str, ...]] = field(default_factory=dict)
    remembers: bool = True  # see Program
    exact_keys: bool = False
    lends: int = 0  # see Program
    lent_at: frozenset[Place] = frozenset()
    listed: list[list[type]] = field(default_factory=list)  # what lending was tried before nodes of
    #: what the last attempt had in lists and could have as nodes, and what it was called with
    in_lists: list[list[type]] = field(default_factory=list)
    leaves: Sequence[Any] = ()
    names: Sequence[str] = ()
    known_last: tuple[str, type, str] | None = None  # which argument had to be known last, and why
    shared_at: frozenset[Place] = frozenset()  # where attempts would have had one list twice
    keys_known: bool = False
    ragged: bool = False  # arrays in one list may differ in shape
    deep: bool = False  # lists in lists may hold lists
    counts_known: bool = False  # see Program
    texts_known: bool = False  # see Program
    begins: bool = False  # see Program
    #: lists that are items of others may be nodes with a list in each, and dicts without entries
    nests: bool = False
    fixes: bool = False  # lists that are items of others may be nodes with a field for each item
    unfolds: bool = False  # see Program
    stretches: bool = False  # see Program
    near: bool = True  # loops over short arrays should be kernels, see `short_arrays`
    open_keys: frozenset[Let] = frozenset()
    mixed: frozenset[Let] = frozenset()  # makers of lists that were items beside others
    ranges: frozenset[Let] = frozenset()  # makers of sets that were ranges in fields of nodes
    nested: frozenset[Let] = frozenset()  # makers of containers that are nodes
    nested_wanted: dict[Let, type] = field(default_factory=dict)  # what the last attempt would have
    deep_wanted: bool = False  # lists in lists would have held lists
    keyed: frozenset[Let] = frozenset()  # makers of dicts that are nodes with a field for each key
    keyed_wanted: frozenset[Let] = frozenset()  # or those that could be
    unkeyed: frozenset[Let] = frozenset()  # those that get other keys than they are made with
    fixed_wanted: frozenset[Let] = frozenset()  # makers of lists that could be nodes likewise
    keys_wanted: bool = False
    sequences: bool | None = None  # tuples and strings may have run-time lengths; or may not again
    sequences_wanted: bool = False  # or would have had
    #: data types whose plans are of attempts without these, as long as they turn out to do
    retained: frozenset[Family] = frozenset()
    losing: Specialised | None = None  # the program that follows less of what it raises
    refusal: Exception | None = None  # what is said if nothing helps: the first failure
    granted: int = 0

    @property
    def is_endless(self) -> bool:
        """True if more was asked for than any program should need."""
        counted = len(self.known) + len(self.unrolled) + self.granted
        return counted >= _MOST_RESTARTS

    def note_keys(self, attempt: Attempt) -> None:
        """Keep which dicts and sets were given keys that only the running program knows, whether
        tuples or strings had lengths that only it knows, and where lists would be shared."""
        self.open_keys |= attempt.open_keys
        self.ranges |= attempt.ranges
        self.mixed |= attempt.mixed
        self.sequences_wanted |= attempt.sequences_wanted
        self.keyed_wanted |= attempt.keyed()
        self.fixed_wanted |= attempt.fixed()
        self.shared_at |= attempt.shared_at
        self.in_lists = attempt.listed()
        self.leaves, self.names = attempt.flat.leaves, attempt.flat.names
        self.nested_wanted = attempt.nested()
        self.deep_wanted = attempt.entered.deep
        if self.own is not None:
            self.own |= attempt.own

    def grant(self, error: Exception) -> Exception | None:
        """Note what an attempt asked for; the failure if it cannot be given as it is."""
        if not self.retained.isdisjoint(self._lacking(error)):
            if isinstance(error, NeedsFields):
                self.note_captures(error.captures)
            self._retain_nothing()
            self.granted += 1
            return None
        match error:
            case needs.NeedsStatic():
                return self._grant_static(error)
            case needs.NeedsCapture():
                self._capture(error)
                self.granted += 1
            case NeedsFewer(unread=unread):
                self.unread |= {n: self.expected.pop(n).value for n in unread}
                self.captured = [c for c in self.captured if id(c.value) not in unread]
                self.granted += 1
            case NeedsLayouts(leaves=leaves):
                self.layouts |= leaves
                self.granted += 1
            case needs.NeedsCopies(leaves=leaves):
                self.copied |= leaves
                self.granted += 1
            case needs.NeedsListing(made=made):
                self.ahead |= {made}
                self.granted += 1
            case needs.NeedsGathering(function=function, error=failure, soft=soft):
                if function in self.gathered:
                    return failure
                self.gathered |= {function}
                if soft:
                    self.gathered_softly |= {function}
                self.granted += 1
            case needs.NeedsTable() | needs.NeedsEntries():
                return self._grant_table(error)
            case needs.NeedsNested(made=made, cls=cls):
                if made in self.nested:
                    return _never_ends()
                self._nest({made: cls})
                if cls is not NestedList:
                    self._have_tables({made})
                self.granted += 1
            case needs.NeedsListed():
                self.quick |= self.nested_wanted.keys() | (self.open_keys - self.tables)
                self._nest(self.nested_wanted)
                self._have_tables(self.open_keys)
                self._list_quickly(self.in_lists)
            case needs.NeedsSequences():
                self._open_sequences()
                self.granted += 1
            case needs.NeedsOrder():
                self.ordered, self.refusal = True, None
                self.plans.clear()  # fields hold sets of another class
                if self.nested:
                    self._declare(ORDERED)
                self.granted += 1
            case needs.NeedsWide(soft=soft):
                self.wide, self.wide_softly = True, soft
                self.granted += 1
            case needs.NeedsPlaces():
                self.placed = True
                self.granted += 1
            case needs.NeedsClassAttribute(owner=owner, name=name):
                names = {*self.class_attributes.get(owner, ()), name}
                self.class_attributes = {**self.class_attributes, owner: tuple(sorted(names))}
                self.captured, self.expected = [], {}  # what stood for fewer of them
                self.granted += 1
            case NeedsMemo(memo=memo):
                self.memos.append(memo)
                self.granted += 1
            case NeedsExactKeys():
                self.exact_keys = True
                self.granted += 1
            case NeedsPool():
                planned(self.plans, error)
                self.granted += 1
            case NeedsNodesOf(classes=classes):
                self.families.declare(classes)
                self.granted += 1
            case NeedsFields(needs=found, captures=captures):
                for need in found:
                    planned(self.plans, need)
                self.note_captures(captures)
                self.granted += 1
            case NeedsNodes():
                if not self.nodes.note(error):
                    return error.error or _never_ends()
                self.plans.clear()  # a field may hold nodes where it held tuples
                self.granted += 1
            case needs.NeedsIdentity():
                return self._grant_identity(error)
            case NeedsWrites(made=made, raises=raises):
                self.losing, self.raises = made, raises
                self._begin_with(made)
            case needs.NeedsUnrolling(error=failure):
                return failure
            case _:
                return error
        return None

    def note_captures(self, found: Iterable[needs.NeedsCapture]) -> None:
        """Begin with arrays that an attempt went on without."""
        for need in found:
            if all(need.value is not other.value for other in self.captured):
                self._capture(need)

    def note_tables(self, attempt: Attempt) -> None:
        """Behind a grant: dicts and sets that were given nodes can be nothing but tables."""
        self._have_tables(attempt.of_nodes)

    def _grant_table(self, error: needs.NeedsTable | needs.NeedsEntries) -> Exception | None:
        """Note which dicts are to be tables, or to have rows of entries."""
        match error:
            case needs.NeedsEntries(made=made, endless=True, error=failure):
                self.refusal = self.refusal or failure
                if made <= self.keyed:
                    return _never_ends()
                self.keyed |= made
                self.granted += 1
                return None
            case needs.NeedsEntries(made=made):
                self.keyed |= made
                self.quick |= made
            case needs.NeedsTable(made=made):
                if made in self.tables:  # and what it makes is none
                    return _never_ends()
                self.tables |= {made}
                self.quick |= {made}
        self._anew()
        return None

    def _grant_static(self, error: needs.NeedsStatic) -> Exception | None:
        """Note what is to be known before the program runs."""
        match error:
            case needs.NeedsStatic(origin=origin, why=why) if self.losing is not None:
                if not (isinstance(origin, tuple) and origin[0] == "loops") or (
                    origin[1] <= self.unrolled
                ):
                    return _unknown(why)  # `losing` does without
                self.unrolled |= origin[1]  # short ones, which it unrolled unasked
            case needs.NeedsStatic(origin=("loops", _)) | needs.NeedsStatic(
                origin=("leaf", _), why=needs.HOW_OFTEN
            ) if (
                not self.compares and not self.open_keys <= self.tables
            ):  # dicts become tables, rather than unrolling the loop that gives them keys
                self.quick |= self.open_keys - self.tables
                self._have_tables(self.open_keys)
                self.granted += 1
            case needs.NeedsStatic(origin=("leaf", leaf), why=needs.HOW_OFTEN) if (
                not self.compares and self.in_lists and self.leaves[leaf] > needs.FEW
            ):  # so do objects that are items of the lists that a loop makes longer
                self._list_quickly(self.in_lists)
            case needs.NeedsStatic(origin=("loops", _)) if (
                not self.compares and self.in_lists and self.tables
            ):  # what is made of the entries of a table is as many as only the program knows
                self._list_quickly(self.in_lists)
            case needs.NeedsStatic(origin=("loops", _)) if self.nested_wanted:
                self._nest(self.nested_wanted)  # nor are dicts in dicts reason to unroll it
                self._have_tables(self.open_keys)
                self._anew()
            case needs.NeedsStatic(origin=("loops", _)) if (
                self.nested and self.deep_wanted and not self.deep
            ):  # whose keys may be texts, so lists
                self.deep = True
                self._anew()
            case needs.NeedsStatic(origin=("loops", _)) if (
                (self.gathered or self.tables) and not self.shared_at <= self.lent_at
            ):  # lists that a generator or a table gives one by one become items as copies
                self.lent_at |= self.shared_at
                self.granted += 1
            case needs.NeedsStatic(origin=("loops", loops)) if not loops <= self.unrolled:
                self.unrolled |= loops
            case needs.NeedsStatic(why=needs.HOW_OFTEN) if (
                self.sequences_wanted and self.sequences is None
            ):
                self._open_sequences()  # rather than unrolling the loop
                self.granted += 1
            case needs.NeedsStatic(origin=("leaf", leaf), why=why):
                self.known = {**self.known, **dict.fromkeys(self._beside(leaf, why), True)}
            case needs.NeedsStatic(why=why):
                return _unknown(why)
        return None

    def _beside(self, leaf: int, why: str) -> list[int]:
        """The leaves to be known where one is: all of its kind in the same argument, where another
        was for the same reason."""
        whole = self.names[leaf].partition("[")[0], type(self.leaves[leaf]), why
        if why == needs.HOW_OFTEN or self.known_last != whole:
            self.known_last = whole
            return [leaf]
        return [
            k for k, (name, value) in enumerate(zip(self.names, self.leaves, strict=True))
            if (name.partition("[")[0], type(value), why) == whole
        ]

    def _grant_identity(self, need: needs.NeedsIdentity) -> Exception | None:
        """Note how much of which object is which the program has to tell: more each time."""
        unnumbered = need.root.kind in UNNUMBERED
        if unnumbered and not self.chooses:
            self.refusal = self.refusal or need.error
            if self.exact:
                self._choose()
            else:  # numbers tell which list a result is, and that may be all that is wanted
                self.exact, self.doubts = 1, True
                self.granted += 1
            return None
        if unnumbered and not self.tells_new and self.exact >= _MOST_EXACT:
            self.tells_new, self.exact = True, 0
            return None
        self.refusal = self.refusal or (need.error if self.exact else None)
        self.exact += 1
        if self.exact <= _MOST_EXACT and str(need.error) not in self.untold:
            return None
        self.untold.add(str(need.error))
        return self.refusal or need.error

    def _choose(self) -> None:
        """Have one of two lists stay one of them."""
        self.chooses = True
        if self.doubts:
            self.exact, self.doubts = 0, False

    def _anew(self) -> None:
        """Forget what was taken as known: the next attempt asks for what it needs of that."""
        self.known, self.unrolled, self.exact = {}, frozenset(), 0
        self.granted += 1

    def _nest(self, made: Mapping[Let, type]) -> None:
        """Have containers that are items of others be nodes."""
        self.nested |= made.keys()
        self.keyed -= self.nested
        tables = set(made.values()) != {NestedList}
        self._declare({*made.values(), *((NestedTable,) if tables else ()), *(
            ORDERED if self.ordered and tables else ()
        )})

    def _declare(self, classes: Iterable[type]) -> None:
        for cls in classes:
            self.families.declare([cls])

    def _open_sequences(self) -> None:
        """Tuples that meet others of other lengths are of run-time length, and no nodes.

        Those that nest without end are, and pools are taken to hold what they held before.
        """
        self.sequences, self.nodes = True, self.nodes.nesting()
        stay = {f for f in self.plans if group_of(f) in (None, *self.nodes.groups)}
        self.retained = frozenset(
            f for f in stay if self.plans[f].has_sequences() or group_of(f) is not None
        )
        self._keep_plans(self.retained)

    def _retain_nothing(self) -> None:
        """What is retained of nodes is found anew."""
        self.retained, self.nodes = frozenset(), Groups()
        self._keep_plans(frozenset())

    def _keep_plans(self, retained: Set[Family]) -> None:
        """Forget what pools have to hold, but these, and those without tuples and texts."""
        self.plans = {
            f: plan for f, plan in self.plans.items() if f in retained or not plan.has_sequences()
        }

    def _lacking(self, error: Exception) -> Set[Family]:
        """The data types among those retained that turn out to be something else."""
        match error:
            case NeedsPool(family=family):
                return {family}
            case NeedsFields(needs=found):
                return {need.family for need in found}
            case NeedsNodes():
                return self.retained
        return set()

    def _capture(self, need: needs.NeedsCapture) -> None:
        """Begin with an object, and with all arrays that the code that read it names, with a text
        all texts.

        So one attempt more is enough for any number of them. What turns out not to be read is
        taken back, but texts: a program does not depend on it.
        """
        present = {id(other.value) for other in self.captured}
        if id(need.value) in present:
            raise errors.InvariantError("a captured object is not handed on") from need
        self.captured.append(need)
        present |= {id(need.value), *self.unread}
        for other in named_arrays(need.readers):
            if id(other.value) not in present:
                present.add(id(other.value))
                self.captured.append(other)
                self.expected[id(other.value)] = other
        if own_arrays.is_of_text(need.value):
            self.captured += [
                other for other in named_texts(need.readers, min(2, need.value.size))
                if id(other.value) not in present
            ]

    def _begin_with(self, made: Specialised) -> None:
        """Begin with the objects that a program reads: one more follows each `raise` now, and what
        is read behind a branch is captured before."""
        present = {id(other.value) for other in self.captured}
        for found in made.binding.hidden:
            if id(found.value) not in present:
                present.add(id(found.value))
                self.captured.append(needs.NeedsCapture(found.source, found.value))

    def fall_back(self, attempt: Attempt, failure: Exception) -> Specialised | None:
        """Take what may help an attempt that failed; a program that loses writes if there is one.

        What follows all that it raises would have to be made in another way than that program, at
        many times its cost. Raises the first failure if nothing may help.
        """
        if self.losing is not None:
            return _knowing_it_loses(self.losing)
        if self.wide and self.wide_softly:
            self.wide, self.wide_softly = False, False
            self._anew()
            return None
        if self.doubts:
            self._choose()
            self.granted += 1
            return None
        self.keys_wanted |= attempt.keys_wanted
        if self.quick or self.quick_classes:
            self._less_quick(attempt, failure)
            return None
        if attempt.deepens and not self.deep and not isinstance(failure, errors.AliasError):
            self._deepen(attempt, failure)
            return None
        listed, nested = attempt.listed(), attempt.nested()
        nested.update(dict.fromkeys(self.mixed - self.nested, NestedList))
        if self.nests:
            nested.update(dict.fromkeys(self.fixed_wanted - self.nested, NestedList))
        if nested:
            self._nest(nested)
        self.open_keys |= attempt.outgrown
        of_keys = not self.open_keys <= self.tables and isinstance(failure, errors.StaticValueError)
        keyed = (
            self.keyed_wanted - self.keyed - self.nested - self.tables - self.open_keys
            - self.unkeyed
        )
        if self.memos:  # the next attempt computes everything anew
            self.memos, self.remembers = [], False
        elif not self.open_keys <= self.tables:
            pass  # they become tables
        elif nested:
            pass  # and these are nodes
        elif self.sequences_wanted and self.sequences is None:
            self._open_sequences()
        elif self.keys_wanted and not self.keys_known:
            self.tables = frozenset()
            self.keys_known, self.refusal = True, None
        elif not self.shared_at <= self.lent_at:
            self.lent_at |= self.shared_at
        elif attempt.lent > self.lends:
            self.lends += 1
            self.listed = self.listed or listed
        elif self.gathered_softly:
            self.counted |= self.gathered_softly
            self.gathered -= self.gathered_softly
            self.gathered_softly = frozenset()
        elif listed:
            self._list(listed)
        elif keyed:
            self.lends, self.lent_at = 0, frozenset()
            self.keyed |= keyed
        elif self.sequences:
            self.sequences = False
        elif self.listed:  # which this attempt, that lent, did not get to
            self._list(self.listed)
        elif self.fixes and not self.fixed_wanted <= self.keyed:
            self.lends, self.lent_at, self.sequences = 0, frozenset(), None
            self.keyed |= self.fixed_wanted
        elif (self.nests or self.tables) and (hollow := attempt.hollow()):
            self.nested |= hollow.keys()
            self.tables |= hollow.keys()
            self.keyed -= self.nested
            self._declare({NestedTable, *hollow.values()})
        elif self.retained:
            self._retain_nothing()
            self._anew()
            return None
        elif computed_of := leaves_of(failure):
            self.known = {**self.known, **dict.fromkeys(computed_of, True)}
            return None
        else:
            raise (self.refusal or failure) from None
        if not of_keys:  # what tables take says nothing of what may be wrong with them
            self.refusal = self.refusal or failure
        self._have_tables(self.open_keys)
        self._anew()
        return None

    def _deepen(self, attempt: Attempt, failure: Exception) -> None:
        """Have lists in lists hold lists, behind an attempt that would have had such: with what
        was granted so far, as another way would ask for all of it again."""
        self.deep, self.refusal = True, self.refusal or failure
        attempt.entered.deepened = True
        if not self.effort.texts_may_open:  # else that is tried before much is spent on this
            self.effort.allow(max(MOST_STEPS_DEEP, self.effort.most - self.effort.steps))
        self._anew()

    def in_line(self) -> None:
        """Have no functions of the program's own but those that call themselves, behind an attempt
        that failed for good. What was taken last, as nothing else helped, is not taken at first."""
        self.own = None
        self.lends, self.lent_at = 0, frozenset()
        self.sequences, self.keys_known, self.remembers = None, False, True
        self._anew()

    def _less_quick(self, attempt: Attempt, failure: Exception) -> None:
        """Behind a failed attempt with tables whose keys are known at once: more such tables, keys
        that are sequences, or else tables that compare keys, and nothing that was asked for them.
        """
        more = not self.compares and not self.open_keys <= self.tables
        if more or (self.sequences_wanted and self.sequences is None):
            if more:
                self.quick |= self.open_keys - self.tables  # what it failed at becomes one, too
                self._have_tables(self.open_keys)
            else:
                self._open_sequences()  # their keys may be such
            self.refusal = self.refusal or failure
            self.granted += 1
            return
        found = attempt.outgrown & self.quick & self.keyed
        if found:  # which were nodes for no need
            self.keyed -= found
            self.quick -= found
            self.unkeyed |= found
            attempt.outgrown.clear()
            self._anew()
            return
        attempt.outgrown.clear()
        self._list_no_more()
        self.tables -= self.quick
        self.keyed -= self.quick
        self.nested -= self.quick
        self.quick, self.compares = frozenset(), True
        self._anew()

    def _have_tables(self, made: Set[Let]) -> None:
        """Dicts and sets with keys that only the running program knows become tables."""
        if not self.ranges.isdisjoint(made - self.tables):
            self.plans.clear()  # fields of nodes hold other sets
        self.tables |= made

    def _list_quickly(self, listed: list[list[type]]) -> None:
        """Have objects in lists be nodes rather than unroll the loop that makes them."""
        self.quick_classes |= {cls for classes in listed for cls in classes}
        self._list(listed)
        self._anew()

    def _list_no_more(self) -> None:
        """Objects that were nodes for no need are records of their own again."""
        for cls in self.quick_classes:
            family = self.families.entered.get(cls)
            if family is not None and self.quick_classes.issuperset(family.classes[1:]):
                del self.families.entered[cls]
                self.plans.pop(family, None)
        self.quick_classes = frozenset()

    def _list(self, listed: list[list[type]]) -> None:
        """Have objects in lists be nodes, which may do without copies of lists."""
        self.lends, self.lent_at, self.listed = 0, frozenset(), []
        for classes in listed:
            if all(self.families.of(cls) is None for cls in classes):
                self.families.declare(classes)


def _knowing_it_loses(made: Specialised) -> Specialised:
    """The program, which says that writes before a raise are lost."""
    return replace(made, binding=replace(made.binding, loses=True))


def _unknown(why: str) -> errors.PyrelayError:
    return errors.StaticValueError(f"{why} must be known when the function is compiled.")


def _never_ends() -> errors.PyrelayError:
    return errors.RecursionTypeError(
        "tuples in tuples, or dicts in dicts, without end are made here, and they cannot be nodes "
        "of a tree.",
        hints=("make the nodes objects of a class that contains itself",),
    )
