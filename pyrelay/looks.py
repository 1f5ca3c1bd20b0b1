"""Short ways into many programs of a function, by what arguments look like.

In: programs' functions (`direct`), and the arguments they were found for. Out: results of those
that take a call's arguments.

A few programs are tried one after the other. Of many, those are that were found before for
arguments of the same look, which is cheap to tell and need not tell all that programs hang on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy import ndarray

Look = tuple[object, ...]

ELSEWHERE = object()
"""What a way gives for arguments that it does not take."""

_MOST_TRIED = 8
"""Ways for one look; the one that was found first goes."""

_MOST_LOOKS = 1024


def elsewhere(*_args: Any, **_keywords: Any) -> Any:
    """Where ways turn to with what does not fit."""
    return ELSEWHERE


def look_of(args: Sequence[Any], keywords: Mapping[str, Any], *, texts: bool = True) -> Look:
    """What arguments look like: dtypes and numbers of axes, texts, if they are known to programs,
    and classes of all else."""
    found: list[object] = [*keywords]
    for each in (*args, *keywords.values()) if keywords else args:
        kind = type(each)
        if kind is ndarray:
            found += each.dtype, each.ndim
        else:
            found.append(each if kind is str and texts else kind)
    return tuple(found)


class Looks:
    """The ways of a function. `otherwise` takes what fits none of them, `make` makes the way into a
    program of a key, `failed` what is raised of an exception and the arguments."""

    def __init__(
        self, otherwise: Callable[..., Any], failed: Callable[..., Exception],
        make: Callable[..., Callable[..., Any] | None],
    ) -> None:
        self._otherwise, self._failed, self._make = otherwise, failed, make
        self._ways: dict[Look, tuple[Callable[..., Any], ...]] = {}
        self.texts = True  # whether programs hang on them

    def call(self, *args: Any, **keywords: Any) -> Any:
        """The result of the function."""
        try:
            for way in self._ways.get(look_of(args, keywords, texts=self.texts), ()):
                result = way(*args, **keywords)
                if result is not ELSEWHERE:
                    return result
            return self._otherwise(*args, **keywords)
        except Exception as error:
            raise self._failed(error, args, keywords)  # noqa: B904 -- the same exception

    def note(
        self, key: Any, entry: Any, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> None:
        """Try the way into an entry's program first for what looks like these arguments."""
        if not entry.way:
            entry.way.append(self._make(key, entry.program, elsewhere))
        (way,), look = entry.way, look_of(args, keywords, texts=self.texts)
        known = self._ways.get(look, ())
        if way is None or way in known:
            return
        if len(self._ways) >= _MOST_LOOKS:
            self._ways.clear()
        self._ways[look] = (way, *known[: _MOST_TRIED - 1])

    def forget(self) -> None:
        """Keep no program alive."""
        self._ways.clear()
