"""`pyrelay.profile`: where the time of calls goes, kernel by kernel.

In: a compiled function and arguments as it gets them. Out: a `Profile`, measured by a second
program for these arguments whose plan measures itself (`lower/planning/stamps.py`); the function's
own programs stay as they are.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pyrelay import config, errors
from pyrelay.bound_method import unbound
from pyrelay.compiled import Compiled
from pyrelay.measuring import benchmark
from pyrelay.records import dataclass
from pyrelay.tracebacks import user_facing

if TYPE_CHECKING:
    from pyrelay.errors import Span
    from pyrelay.lower.planning.instructions import Plan
    from pyrelay.lower.planning.stamps import Stamped, Timed

_WARM = 3
"""Calls before those that are measured."""

_SHOWN = 60
"""Columns of what a kernel computes."""


@dataclass(frozen=True)
class Part:
    """One place from which a program launches a kernel, or calls NumPy or Python.

    kernel: its name, as in `f.code(...)`. computes: what, in the user's words. lines: those of the
    user's program that it computes, in order; scopes: the names given to them
    (`pyrelay.scope`). times: launches in a call, on average. seconds: of all of them.
    """

    kernel: str
    computes: str
    lines: tuple[int, ...]
    scopes: tuple[str, ...]
    times: float
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Where the time of a call goes.

    call: the function and its arguments. seconds: of a call as it is without being measured, the
    median of many. parts: the longest first. between: seconds of what lies between them: memory,
    numbers, the loops and branches of the program. boundary: seconds from the end of a call to the
    start of the next one: arguments checked, results made. calls: how many were measured.
    """

    call: str
    seconds: float
    parts: tuple[Part, ...]
    between: float
    boundary: float
    threads: int
    calls: int

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        from pyrelay.inspection import Text

        return Text(repr(self))._repr_html_()

    def _lines(self) -> Iterable[str]:
        whole = sum(p.seconds for p in self.parts) + self.between + self.boundary
        yield self.call
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        yield (
            f"  {self.seconds * 1e6:.1f} us a call on {threads}; below, {self.calls} calls that "
            f"measured themselves, {whole * 1e6:.1f} us each"
        )
        width = max((len(p.kernel) for p in self.parts), default=0)
        yield f"  {'us':>10}  share    times  {'kernel':{width}}  computes"
        for part in self.parts:
            row = _row(part.seconds, whole, f"{part.times:g}")
            yield f"{row}  {part.kernel:{width}}  {_told(part)}".rstrip()
        yield _row(self.between, whole, "") + "  between them"
        yield _row(self.boundary, whole, "") + "  arguments and results"


def _row(seconds: float, whole: float, times: str) -> str:
    return f"  {seconds * 1e6:10.1f} {seconds / whole if whole else 0.0:6.1%} {times:>8}"


def _told(part: Part) -> str:
    text = part.computes
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 3] + "..."
    if len(part.lines) > 1 or (part.lines and not text):
        lines = _ranges(part.lines)
        text = f"{text}  ({lines})" if text else lines
    return text + "".join(f"  [{scope}]" for scope in part.scopes)


def _ranges(lines: tuple[int, ...]) -> str:
    """Line numbers in order as text: `lines 3-5, 9`."""
    found: list[list[int]] = []
    for line in lines:
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
    return f"line{'s' if len(lines) > 1 else ''} {text}"


@user_facing
def profile(function: Any, *args: Any, seconds: float = 0.5, **keywords: Any) -> Profile:
    """Measure which kernels of a compiled function the time of its calls goes into.

    The function's program for these arguments is compiled once more, with a look at the clock
    around each launch, and called for about so many seconds. Kernels that were fused into one, and
    loops that are one, are one row. The arguments are copied, so that a function that writes them
    may be measured.

    Raises TypeError for a function that is not compiled by pyrelay, DeviceError for programs that
    run on a GPU, whose own tools measure them, or in the interpreter.

    >>> product = pyrelay.jit(lambda x: x @ x)
    >>> found = pyrelay.profile(product, np.ones((90, 90)), seconds=0.01)
    >>> [(part.kernel, part.times) for part in found.parts]
    [('matmul_kernel', 1.0)]
    """
    function, args = unbound(function, args)
    if not isinstance(function, Compiled):
        raise TypeError(
            f"profile takes what pyrelay.jit or pyrelay.grad has made, not {function!r}"
        )
    from pyrelay.lower.planning.stamps import stamped

    args, keywords = copy.deepcopy((args, keywords))
    program = function.lower(*args, **keywords)
    if program.place != "cpu":
        raise _elsewhere(program.place)
    made: list[Stamped] = []

    def with_stamps(plan: Plan) -> Plan:
        made.append(stamped(plan))
        return made[-1].plan

    measured = program.with_plan(with_stamps)
    plain = benchmark(function, *args, seconds=seconds / 2, **keywords)
    number = _repeated(lambda: measured(*args, **keywords), made[0], seconds)
    return _profile(made[0], program.signature, plain.median, number)


def _elsewhere(place: str) -> errors.PyrelayError:
    hints = {
        "interpreter": ("unset PYRELAY_INTERPRET",),
        "cuda_emulator": ("the emulator's times say nothing about a GPU",),
    }
    tools = ("run the program under nsys profile or ncu, which tell its kernels by name",)
    where = "in the interpreter" if place == "interpreter" else f"on device {place!r}"
    return errors.DeviceError(
        f"profile measures programs on the CPU, and this one runs {where}.",
        hints=hints.get(place, tools),
    )


def _repeated(call: Callable[[], object], stamped: Stamped, seconds: float) -> int:
    """Call for so long; how often. Calls that come first do not count."""
    for _ in range(_WARM):
        call()
    stamped.begin()
    number, end = 0, time.perf_counter() + seconds
    while True:
        call()
        number += 1
        if time.perf_counter() >= end:
            return number


def _profile(stamped: Stamped, call: str, seconds: float, calls: int) -> Profile:
    from pyrelay.devices.runtime.threads import usable_threads
    from pyrelay.lower.planning.stamps import BETWEEN, OUTSIDE
    from pyrelay.lower.text.show import kernel_names

    counts, spent = (each / calls for each in stamped.measured())
    names = kernel_names(stamped.plan)
    parts = [
        _part(stamped.plan, names, timed, float(times), float(took))
        for timed, times, took in zip(stamped.rows, counts[2:], spent[2:], strict=True) if times
    ]
    return Profile(
        call, seconds, tuple(sorted(parts, key=lambda p: -p.seconds)), float(spent[BETWEEN]),
        float(spent[OUTSIDE]), usable_threads(config.current().num_threads), calls,
    )


def _part(plan: Plan, names: list[str], timed: Timed, times: float, seconds: float) -> Part:
    from pyrelay.lower.planning import instructions as I  # noqa: N812

    kernels, texts = list[str](), list[str]()
    spans: list[Span] = []
    for each in timed:
        match each:
            case I.Launch(kernel=kernel, computes=computes):
                kernels.append(names[kernel])
                texts.append(computes)
                spans += plan.kernels[kernel].spans
            case I.HostCall(host=host):
                of: Any = plan.hosts[host]
                kernels.append(f"numpy {of.op.name}")
                spans += [of.span] if of.span is not None else []
            case I.UfuncCall(ufunc=ufunc):
                kernels.append(f"numpy {plan.ufuncs[ufunc].name}")
            case I.Copy():
                kernels.append("copy")
            case I.Zero():
                kernels.append("zero")
    lines = sorted({span.line for span in spans})
    scopes = dict.fromkeys(span.scope for span in spans if span.scope)
    return Part(
        ", ".join(dict.fromkeys(kernels)), "; ".join(t for t in dict.fromkeys(texts) if t),
        tuple(lines), tuple(scopes), times, seconds,
    )


__all__ = ["Part", "Profile", "profile"]
