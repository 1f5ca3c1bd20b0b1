"""Which frames a user sees when an error leaves pyrelay.

In: an exception on its way out of a public function. Out: the same exception, whose traceback
shows the user's frames and at most one of pyrelay's own.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pyrelay import config
from pyrelay.errors import InvariantError, PyrelayError, Span

__all__ = ["PACKAGE_DIRECTORY", "frames_to_the_user", "trimmed", "user_facing"]

PACKAGE_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=BaseException)


def trimmed(error: E) -> E:
    """Drop pyrelay's own frames from an error about the user's program, and return it.

    Errors that carry no place in the user's source keep every frame: those are faults of pyrelay
    or of a library, and the frames are what a report needs. PYRELAY_TRACEBACK=full keeps all.
    Used as `except Exception as error: raise trimmed(error)` at the outermost frame, which is the
    one frame of pyrelay's that Python adds again.
    """
    about_the_program = isinstance(getattr(error, "span", None), Span) or (
        isinstance(error, PyrelayError) and not isinstance(error, InvariantError)
    )
    if not about_the_program or config.current().traceback == "full":
        return error
    kept: list[types.TracebackType] = []
    step = error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(PACKAGE_DIRECTORY):
            kept.append(step)
        step = step.tb_next
    chain: types.TracebackType | None = None
    for entry in reversed(kept):
        chain = types.TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return error.with_traceback(chain)


def user_facing(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator for a public function: the errors it raises come out `trimmed`."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise trimmed(error)  # noqa: B904 -- the same exception, its frames dropped

    return call


def frames_to_the_user() -> int:
    """The stack level, for `warnings`, of the frame that called into pyrelay."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE_DIRECTORY):
        level, frame = level + 1, frame.f_back
    return level
