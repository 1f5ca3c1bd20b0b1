"""At which line an error is shown: one of the user's, if any led to it.

In: the line that inference was at, with the calls that led there. Out: the line that the user
wrote and, of the calls, those before it; for what the standard library could not do, what the
user called of it.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence

from pyrelay.errors import SourceText, Span

ELSEWHERE = "compute it outside the compiled function and pass the result"
"""What to do with a call that is not compiled."""

Calls = list[tuple[Span, str]]

_STANDARD = os.path.join(sysconfig.get_path("stdlib"), "")
_INSTALLED = tuple(
    os.path.join(folder, "")
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
)


def is_standard(source: SourceText) -> bool:
    """Whether a text is one of the standard library's."""
    name = source.filename
    return name.startswith("<frozen ") or (
        name.startswith(_STANDARD) and not name.startswith(_INSTALLED)
    )


def own(here: Span | None, calls: Sequence[tuple[Span, str]]) -> tuple[Span | None, Calls]:
    """The innermost line that is not pyrelay's own, and the calls that led to it.

    calls: innermost first. Where all lines are pyrelay's, or none is, they stay as they are.
    """
    users = [k for k, (span, _) in enumerate(calls) if not span.source.is_library]
    if here is None or not here.source.is_library or not users:
        return here, list(calls)
    return calls[users[0]][0], list(calls[users[0] + 1 :])


def before_standard(
    here: Span | None, calls: Sequence[tuple[Span, str]]
) -> tuple[Span, str, Calls] | None:
    """Where a line lies in the standard library: the line that called that, the name of what it
    called, and the calls that led to it. None if the line lies elsewhere or nobody called.
    """
    if here is None or not is_standard(here.source):
        return None
    for k, (span, called) in enumerate(calls):
        if not (is_standard(span.source) or span.source.is_library):
            return span, called.partition("(")[0], list(calls[k + 1 :])
    return None
