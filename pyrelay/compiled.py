"""A function that compiles itself: programs by the structure and types of arguments.

In: a Python function, or a transform of one, and the arguments of calls. Out: results, by the
program for arguments of their kind: one that was made before, by this process or by another that
left it on disk, or a new one; and what can be seen of the programs.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import types as python_types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyrelay import config, errors, notices, overlapping
from pyrelay.autoreload import follow_autoreload
from pyrelay.bound_method import BoundMethod
from pyrelay.callables import (
    function_of,
    keep_source,
    name_of,
    names_of,
    plain,
    positional,
)
from pyrelay.collecting import few_collections
from pyrelay.deep_stack import deep, on_deep_stack, on_deep_stack_telling
from pyrelay.infer.containers import columns
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families
from pyrelay.infer.structure import (
    Flattened,
    Key,
    flatten,
    forget,
    has_columns,
    keys_of,
    lengths_of,
    mark,
    texts_of,
    without_lengths,
    without_texts,
)
from pyrelay.tracebacks import PACKAGE_DIRECTORY, trimmed, user_facing

if TYPE_CHECKING:
    from pyrelay.inspection import Lowered

_MOST_PROGRAMS = 64
"""Programs kept for one structure of arguments; the one made first goes."""

_MOST_STRUCTURES = 256
"""Structures of arguments that programs are kept for."""

_MOST_CHAINED = 8
"""Programs that calls try the short way one after the other, before they go by `looks`."""

_IN_PYTHON = 4
"""As many of those as one counts whose way is not native: to learn that it does not take a call's
arguments takes microseconds, where `looks` take half of one."""

_MOST_ALIKE = 6
"""Programs for structures that differ only in texts, in how long lists of alike items are, and in
keys of dicts with alike values: these are data from then on."""

_compiling = threading.RLock()
"""One thread compiles at a time: the others find what it made."""


def _after_fork() -> None:
    """In a child: a thread that is gone may have held the lock."""
    global _compiling
    _compiling = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


class CacheInfo(NamedTuple):
    """How often a function was called and compiled, and for how many structures of arguments.

    compilations: programs made, `loaded` of them from disk, as an earlier process had compiled
    them. seconds: what that took in all; `f.explain()` says where it went.
    """

    signatures: int
    compilations: int
    hits: int
    seconds: float
    loaded: int = 0


class _Entry(NamedTuple):
    """A program of a function's table, what runs it, and what `looks` made of it."""

    program: Any
    call: Callable[[Flattened], Any]
    way: list[Callable[..., Any] | None]


class Compiled:
    """A callable that compiles itself per structure of arguments: the base of `jit` and `grad`.

    Each object has a `__call__` of its own, in a slot: calling the object enters the function that
    was written for its latest program, with no frame of Python between.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]
    __pyrelay__: tuple[str, Any, dict[str, Any]]
    __name__: str
    __qualname__: str
    py: Callable[..., Any]
    _short: Callable[..., Any] | None
    _chained: int

    def __init__(
        self, kind: str, function: Any, options: dict[str, Any], device: str | None = None
    ) -> None:
        self.py = plain(function)
        functools.update_wrapper(self, self.py)
        self.device = device
        self.__qualname__ = getattr(self.py, "__qualname__", None) or name_of(self.py)
        self.__name__ = getattr(self.py, "__name__", self.__qualname__)
        self.__pyrelay__ = (kind, function, options)
        self._table: dict[Any, tuple[_Entry, ...]] = {}
        #: for structures whose lists the program needs as structures of their items, or their
        #: objects as nodes: up to where, and of which data types
        self._needs: dict[Key, tuple[int, Families]] = {}
        self._needed_last: tuple[int, Families] | None = None  # by the call before
        self._stretches = False  # whether arrays are, whose extents only programs know
        self._open_texts: bool | None = False  # whether short texts are data; None if never
        self._open_lists: bool | None = False  # whether the items of short lists are, likewise
        self._open_dicts: bool | None = False  # or the keys of small dicts
        self._compilations, self._loaded, self._seconds = 0, 0, 0.0
        self._hits = np.zeros(1, np.int64)
        self._overlapping: dict[overlapping.Layout, Callable[..., Any]] = {}
        self._warned = False
        self._enter_by(None)
        self._function = function_of(self.py)
        self._read: tuple[Any, tuple[str, ...], frozenset[str]] | None = None
        keep_source(self._function)
        follow_autoreload(Compiled)

    def _enter_by(self, short: Callable[..., Any] | None) -> None:
        """Let calls begin with a short way into a program; None: with the table of programs."""
        self.__call__ = short or self._by_table
        self._short = short
        #: ways tried one after the other
        self._chained = 0 if short is None else self._chained + (
            _IN_PYTHON if isinstance(short, python_types.FunctionType) else 1
        )
        self._looks: Any = None  # a `looks.Looks` where they are too many

    def _by_table(self, *args: Any, **keywords: Any) -> Any:
        try:
            return self._dispatch(*args, **keywords)
        except Exception as error:
            raise self._failed(error, args, keywords)  # noqa: B904 -- the same exception

    def _dispatch(self, *args: Any, **keywords: Any) -> Any:
        given = args, keywords
        args, keywords = self._in_order(args, keywords)
        flat = self._flattened(pack=_packed, unpack=_unpacker)
        key, entry, new = self._entry_for(args, keywords, flat)
        self._hits[0] += not new
        if self._looks is not None and not new:
            self._looks.note(key, entry, *given)
        if new:
            self._key(args, keywords, flat := self._flattened())
            entry.program.captured(flat)
        from pyrelay.boundary import NeedsStretching

        try:
            return entry.call(flat)
        except NeedsStretching:
            self._stretches = True
        except errors.AliasError as error:
            if self.__pyrelay__[0] != "jit" or keywords:
                raise
            return overlapping.called(args, error, self.py, self._overlapping, self._made_of)
        return self._dispatch(*given[0], **given[1])

    def _made_of(self, function: Callable[..., Any]) -> Compiled:
        """Another function, compiled as this one is."""
        kind, _, options = self.__pyrelay__
        return Compiled(kind, function, options, self.device)

    def again(self) -> Compiled:
        """The same function with nothing compiled."""
        return self._made_of(self.__pyrelay__[1])

    def forget(self) -> None:
        """Drop the programs, so that calls compile them again."""
        self._table.clear()
        self._overlapping.clear()
        self._open_texts = self._open_lists = self._open_dicts = self._stretches = False
        self._enter_by(None)

    # -- finding a program -------------------------------------------------------------------------

    def _in_order(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments given by name put at their positions, as far as that leaves no gap."""
        if not keywords:
            return args, keywords
        rest, found = dict(keywords), list(args)
        for name in self._names[len(args):]:
            if name not in rest or name in self._positional_only:
                break
            found.append(rest.pop(name))
        ordered = {name: rest.pop(name) for name in self._names[len(args):] if name in rest}
        return tuple(found), {**ordered, **rest}

    def _key(
        self, args: Sequence[Any], keywords: Mapping[str, Any], flat: Flattened, *,
        first: bool = False,
    ) -> Key:
        """The key of some arguments; `first`, whatever is known of how far lists are taken apart.
        """
        names = self._argument_names(len(args))
        pairs = [*zip(args, names, strict=True), *((v, k) for k, v in keywords.items())]
        settings = config.current()
        flat.open_texts = bool(self._open_texts)

        def flattened() -> Key:
            found, pools = flatten(pairs, flat)
            return (
                found[: len(args)], (*keywords, *found[len(args):]), pools, settings.interpret,
                settings.unroll_limit, self._stretches, self._place(settings, flat),
            )

        if first or not self._needs:
            return flattened()
        start = flat.apart, flat.families
        if self._needed_last is not None:
            # to flatten many objects as records, only to learn that they are nodes, takes long
            flat.apart, flat.families = self._needed_last
            try:
                key = flattened()
            except errors.PyrelayError:
                key = ()
            if key in self._table:
                return key
            forget(flat, (0, 0, 0, 0))
            flat.apart, flat.families = start
        met = [start]
        while True:
            key, found = flattened(), (flat.apart, flat.families)
            needed = self._needs.get(key, found)  # which may be less: lists that are short
            if needed == found or needed in met:
                self._needed_last = None if found == start else found
                return key
            met.append(needed)
            forget(flat, (0, 0, 0, 0))
            flat.apart, flat.families = needed

    def _flattened(self, **how: Any) -> Flattened:
        """What arguments are flattened into, as far as nothing says that programs need it else."""
        return Flattened(apart=self._most_apart, **how)

    @property
    def _most_apart(self) -> int:
        """Up to which length lists are structures of their items, likewise."""
        if self._open_dicts:
            return columns.NONE_APART_OPEN if self._open_lists else columns.MOST_APART_OPEN
        return columns.NONE_APART if self._open_lists else columns.MOST_APART

    def _place(self, settings: config.Config, flat: Flattened) -> str:
        """The device: arrays of a GPU are worked on there, unless another one is asked for."""
        chosen = self.device or settings.device
        return "cuda" if flat.on_device and self.device is None and chosen == "cpu" else chosen

    def _argument_names(self, count: int) -> Sequence[str]:
        names = self._names
        return names[:count] + tuple(f"argument {k + 1}" for k in range(len(names), count))

    @property
    def _names(self) -> tuple[str, ...]:
        """The parameters that may be given by position."""
        return self._parameters()[1]

    @property
    def _positional_only(self) -> frozenset[str]:
        return self._parameters()[2]

    def _parameters(self) -> tuple[Any, tuple[str, ...], frozenset[str]]:
        """The function's code now, its positional parameters, those without a name to callers."""
        code = getattr(self._function, "__code__", None)
        known = self._read
        if known is None or known[0] is not code:
            found = positional(self.py)
            unnamed = frozenset(p.name for p in found if p.kind is p.POSITIONAL_ONLY)
            known = self._read = code, names_of(self.__pyrelay__[0], found), unnamed
        return known

    def _found(self, key: Key, flat: Flattened) -> _Entry | None:
        before = mark(flat)
        for entry in self._table.get(key, ()):
            if entry.program.accepts(flat):
                return entry
            forget(flat, before)
        return None

    # -- compiling ---------------------------------------------------------------------------------

    def _specialised(
        self, args: Sequence[Any], keywords: Mapping[str, Any], place: str | None = None
    ) -> Any:
        """The typed program for these arguments, on a device or where this function runs."""
        from pyrelay import ops
        from pyrelay.frontend.parse import parse
        from pyrelay.infer import calls, values
        from pyrelay.infer.specialise import specialise
        from pyrelay.ir.show import show
        from pyrelay.pipeline import dump

        del ops  # its records registered themselves

        def parsed(fn: python_types.FunctionType) -> Any:
            made = parse(fn)
            dump("parse", lambda program: show(program.module), made)
            return made

        kind, function, options = self.__pyrelay__
        near = (place or self.device or config.current().device) == "cpu"
        callee: Any = values.Known(function)
        if kind != "jit":
            callee = calls.transform(kind, callee, options)

        known = self._may_open_texts(self._key(args, keywords, self._flattened(), first=True))

        def specialised() -> Any:
            with _compiling:
                return specialise(
                    callee, args, keywords, parsed, near=near, open_texts=bool(self._open_texts),
                    texts_may_open=known, stretches=self._stretches,
                    apart=self._most_apart,
                )

        made = on_deep_stack(specialised)
        if kind == "jit" and options.get("pure") and made.binding.writes:
            raise notices.impure(made.binding.writes)
        return made

    def _compiled(self, key: Key, args: Sequence[Any], keywords: Mapping[str, Any]) -> _Entry:
        """The program for these arguments, by another thread, from disk, or now."""
        from pyrelay.devices.runtime.library import expect_first_program

        if key[-1] == "cpu" and not config.current().interpret:
            expect_first_program()
        from pyrelay.boundary import warn_of_error_modes  # takes as long as what is expected waits

        warn_of_error_modes()
        with _compiling:
            entry = self._on_disk(args, keywords)
        if entry is not None:
            return entry
        tell = functools.partial(
            notices.tell_of_long_compilation, self.__qualname__, self.__pyrelay__[0]
        )
        entry, crowded = on_deep_stack_telling(
            notices.PATIENCE, tell, self._found_or_made, key, args, keywords
        )
        if crowded:
            self._warn(entry.program.binding)
        return entry

    def _on_disk(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> _Entry | None:
        """The program for these arguments as another process left it."""
        from pyrelay import store

        flat = self._flattened()
        first = self._key(args, keywords, flat, first=True)
        if self._found(self._key(args, keywords, again := self._flattened()), again) is not None:
            return None  # another thread was faster

        def as_needed(apart: int, families: Families) -> tuple[Key, Flattened]:
            flat = Flattened(apart=apart, families=families)
            return self._key(args, keywords, flat, first=True), flat

        found = store.find(store.Called(self.__pyrelay__, first), flat, as_needed)
        if found is None:
            return None
        program, key, _ = found
        return self._entered(first, key, program)[0]

    def _found_or_made(
        self, key: Key, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[_Entry, bool]:
        """The program, and whether it is one of too many."""
        from pyrelay.devices.runtime.library import expect_program, want_lists

        with _compiling, few_collections():
            again = self._flattened()
            found = self._found(self._key(args, keywords, again), again)
            if found is not None:
                return found, False
            if key[-1] == "cpu" and not config.current().interpret:
                if has_columns(key):
                    want_lists()
                expect_program()  # before what follows is imported
            from pyrelay import boundary, pipeline, store

            started = time.perf_counter()
            spec = self._specialised(args, keywords, key[-1])
            spent = time.perf_counter() - started
            binding = spec.binding
            first = self._key(args, keywords, self._flattened(), first=True)
            needed = Flattened(apart=binding.apart, families=binding.families or EVERYWHERE)
            key = self._key(args, keywords, needed, first=True)  # with what was found of nodes
            signature = self._call_text(args, keywords)
            build = pipeline.compiled(spec, key[-1], sizes=binding.sizes(needed.leaves))
            program = boundary.Program(binding, build, signature, spec, spent)
            entry, crowded = self._entered(first, key, program)
            store.keep(store.Called(self.__pyrelay__, first), program, key)
        return entry, crowded

    def _entered(self, first: Key, key: Key, program: Any) -> tuple[_Entry, bool]:
        """A program entered into the table, and whether it is one of too many."""
        if key != first:
            binding = program.binding
            self._needs[first] = binding.apart, binding.families or EVERYWHERE
        entry = _Entry(program, program.caller(), [])
        crowded = self._keep(key, entry)
        if self._looks is not None:
            return entry, crowded
        if self._chained >= _MOST_CHAINED:
            from pyrelay.looks import Looks

            self._looks = Looks(self._dispatch, self._failed, self._way)
            self._looks.texts = not self._open_texts
            self.__call__ = self._short = self._looks.call
            return entry, crowded
        # What does not fit the latest program is tried with those before it.
        short = self._way(key, program, self._short or self._dispatch)
        if short is not None:
            self._enter_by(short)
        return entry, crowded

    def _way(
        self, key: Key, program: Any, otherwise: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """The short way into a program."""
        from pyrelay import direct

        order = [n if n not in self._positional_only else None for n in self._names]
        return direct.direct_call(program, key, order, otherwise, self._failed, self._hits)

    def _keep(self, key: Key, entry: _Entry) -> bool:
        """Enter a program, in front of those for the same structure; drop the oldest ones.

        True if any had to go.
        """
        known = self._table.pop(key, ())
        if self._looks is not None:
            self._looks.forget()  # programs may have to go
        while len(self._table) >= _MOST_STRUCTURES:
            del self._table[next(iter(self._table))]
        self._table[key] = (entry, *known[: _MOST_PROGRAMS - 1])
        self._compilations += 1
        self._loaded += entry.program.spec is None
        self._seconds += sum(entry.program.seconds.values())
        return len(known) >= _MOST_PROGRAMS

    def _warn(self, binding: Any) -> None:
        """Say, once, why a function is compiled again and again."""
        if self._warned:
            return
        self._warned = True
        notices.warn_of_many_programs(self.__qualname__, _MOST_PROGRAMS, binding)

    # -- looking inside ----------------------------------------------------------------------------

    @user_facing
    @deep
    def ir(self, *args: Any, stage: str = "infer", **keywords: Any) -> Any:
        """The program for these arguments as text, at the end of a stage.

        stage: parse, infer, grad, optimise, fuse, kernelise, plan or emit. Raises ValueError for
        another.
        """
        from pyrelay.inspection import Text, program_text

        if stage == "parse":
            from pyrelay.frontend.parse import parse
            from pyrelay.ir.show import show

            return Text(show(parse(self._function).module))
        return program_text(
            self._specialised(*self._in_order(args, keywords)), stage, self.device
        )

    @user_facing
    @deep
    def code(self, *args: Any, **keywords: Any) -> Any:
        """The source of the kernels that run these arguments, and the plan that launches them."""
        from pyrelay.inspection import program_code

        return program_code(self._specialised(*self._in_order(args, keywords)), self.device)

    @user_facing
    def lower(self, *args: Any, **keywords: Any) -> Lowered:
        """Compile for these arguments without running anything; a later call finds the program."""
        args, keywords = self._in_order(args, keywords)
        _, entry, _ = self._entry_for(args, keywords, self._flattened())
        from pyrelay.inspection import Lowered

        key = self._key(args, keywords, self._flattened())  # as the program needs it
        spec = entry.program.spec or self._specialised(args, keywords, key[-1])
        return Lowered(self, key, entry.program, spec)

    def with_program(self, key: Key, program: Any) -> Compiled:
        """The same function with nothing compiled but a program, for a structure of arguments."""
        other = self.again()
        other._needs |= self._needs
        other._open_texts, other._open_lists = self._open_texts, self._open_lists
        other._open_dicts, other._stretches = self._open_dicts, self._stretches
        other._entered(key, key, program)
        return other

    def _entry_for(
        self, args: Sequence[Any], keywords: Mapping[str, Any], flat: Flattened
    ) -> tuple[Key, _Entry, bool]:
        """The key of these arguments, which enter `flat`, their program, and whether it is new."""
        declared = len(EVERYWHERE.changes)
        try:
            key = self._key(args, keywords, flat)
            known = self._found(key, flat)
            varies = (False,) if known is not None else self._what_varies(key)
            if any(varies):
                return self._opened(args, keywords, flat, varies)
            try:
                entry = known or self._compiled(key, args, keywords)
            except errors.PyrelayError as refusal:
                if not refusal.endless or not self._may_open_texts(key):
                    raise
                return self._opened(args, keywords, flat, (True, False, False), refusal)
        except BaseException:
            EVERYWHERE.withdraw(declared)  # else it would change how other programs compile
            raise
        EVERYWHERE.settle()
        return key, entry, known is None

    def _what_varies(self, key: Key) -> tuple[bool, ...]:
        """Whether many programs are for structures that differ from this one in texts, in lengths
        of lists, and in keys of dicts, and in nothing else."""
        same = without_lengths(without_texts(key))
        alike = [other for other in self._table if without_lengths(without_texts(other)) == same]
        if len(alike) < _MOST_ALIKE:
            return (False,)
        return tuple(
            opened is False and any(found(k) != found(key) for k in alike)
            for opened, found in (
                (self._open_texts, texts_of), (self._open_lists, lengths_of),
                (self._open_dicts, keys_of),
            )
        )

    def _may_open_texts(self, key: Key) -> bool:
        """Whether short texts are known that could be data."""
        return self._open_texts is False and without_texts(key) != key

    def _opened(
        self, args: Sequence[Any], keywords: Mapping[str, Any], flat: Flattened,
        varies: tuple[bool, ...], refusal: errors.PyrelayError | None = None,
    ) -> tuple[Key, _Entry, bool]:
        """As `_entry_for`, by a program for any texts, lists of any lengths, or dicts of any keys,
        if there is one. varies: which of these. refusal: of that for these.
        """
        texts, lists, dicts = varies
        for opens in (True, None):
            self._open_texts = opens if texts else self._open_texts
            self._open_lists = opens if lists else self._open_lists
            self._open_dicts = opens if dicts else self._open_dicts
            if self._looks is not None:
                self._looks.texts = not self._open_texts
            forget(flat, (0, 0, 0, 0))
            flat.apart, flat.families = self._most_apart, EVERYWHERE
            try:
                return self._entry_for(args, keywords, flat)
            except errors.PyrelayError:
                if not opens:
                    raise
                if refusal is not None and not refusal.costly:
                    self._open_texts = False
                    raise refusal from None
        raise AssertionError

    @user_facing
    def explain(self, *args: Any, **keywords: Any) -> Any:
        """What was compiled, where the time went, and what a program depends on.

        With arguments: for the program of these arguments, compiled if it is new.
        """
        from pyrelay.inspection import explanation

        if args or keywords:
            _, entry, _ = self._entry_for(*self._in_order(args, keywords), self._flattened())
            return explanation(self.__qualname__, [entry.program])
        entries = [entry for found in tuple(self._table.values()) for entry in found]
        return explanation(self.__qualname__, [entry.program for entry in entries])

    @user_facing
    def compare(self, *args: Any, **keywords: Any) -> Any:
        """Run the plain function and the compiled one on copies of the arguments.

        The result is true if both gave the same (floats up to rounding), wrote the same into their
        arguments, or raised the same, and prints what differs, and the first line that shows it.
        For `jit` only.
        """
        from pyrelay.comparison import compare

        if self.__pyrelay__[0] != "jit":
            raise errors.InvalidValueError(
                f"there is no plain Python {self.__pyrelay__[0]} to compare with.",
                hints=("check_grads compares derivatives with finite differences",),
            )
        return compare(self.py, self, args, keywords)

    def cache_info(self) -> CacheInfo:
        """Structures of arguments seen, programs compiled, calls served by one compiled before, the
        seconds that compiling took, and how many programs were found on disk."""
        return CacheInfo(
            len(self._table), self._compilations, int(self._hits[0]), self._seconds, self._loaded
        )

    # -- being a function --------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundMethod(self, instance)

    def __repr__(self) -> str:
        kind = self.__pyrelay__[0]
        return f"<pyrelay.{kind}{' ' if kind == 'jit' else ' of '}{self.__qualname__}>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from pyrelay.inspection import highlighted

        text = f"{self!r}\n{self.explain()}"
        return {"text/plain": repr(self), "text/html": f"<pre>{highlighted(text)}</pre>"}

    def __copy__(self) -> Compiled:
        return self

    def __deepcopy__(self, memo: Any) -> Compiled:
        return self

    def __reduce__(self) -> Any:
        from pyrelay.pickling import reduced

        return reduced(self)

    def __setstate__(self, state: Any) -> None:
        from pyrelay.pickling import restored

        restored(self, state)

    def _call_text(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        from pyrelay.inspection import call_text

        names = self._argument_names(len(args))
        return call_text(self.__name__, names, args, keywords)

    def _failed(
        self, error: Exception, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Exception:
        """The error as it leaves the call, which is the frame that calls this; with that call, if
        it is about the program."""
        if isinstance(error, errors.PyrelayError) and not isinstance(error, errors.InvariantError):
            frame = sys._getframe(2)
            here = frame.f_code.co_filename
            if not here.startswith(PACKAGE_DIRECTORY):
                source = errors.SourceText(here, ())
                span = errors.Span(source, frame.f_lineno, 0, frame.f_lineno, 0)
                error.calls = (*error.calls, (span, self._call_text(args, keywords)))
        return trimmed(error)


def _packed(family: Any, trees: list[Any]) -> Any:
    """Trees of a data type that was met before, packed by native code, or None."""
    from pyrelay.devices.runtime.packing import packed

    return packed(family, trees)


def _unpacker(schema: Any, columns: Any, given: Any) -> Any:
    """What makes the nodes of results in native code, or None."""
    from pyrelay.devices.runtime.unpacking import unpacker

    return unpacker(schema, columns, given)
