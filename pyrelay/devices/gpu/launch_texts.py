"""Kernels of ours whose texts are made for a launch, of what its operands say.

In: the text that stands in a plan for such a kernel, and what makes those of its launches, which
may call a kernel of the plan: one that makes scores of attention, one that finishes a product. Out:
the text of a launch with its own operands, or the forms of a kernel and what chooses one of them:
each is compiled when a launch first needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.lower.kernels.kernel import BOUND, PRODUCT, Kernel, Parameter
from pyrelay.lower.planning.instructions import KernelAddress
from pyrelay.lower.text.cuda_heads import BY_VALUE, parameter_types
from pyrelay.records import dataclass

MOST_OPERANDS = 64  # of each kernel that one of ours calls

KernelOf = Callable[[KernelAddress], Kernel]
"""The kernel at an address of a plan."""

PRECISION = "run.precision"
"""How products are rounded, as text of a plan: its place among the modes of `matmul_precision`."""


def _only(_: Sequence[str]) -> str:
    return "0"


@dataclass(frozen=True, slots=True)
class Launched:
    """What a launch needs: the text of a kernel, or those of its forms, which take the same
    parameters; those of its operands that the parameters take, and where among them stands how
    products are rounded, if it does. `form` gives the text of an expression for the number of the
    form, of the texts of the operands and `PRECISION`."""

    texts: tuple[Text, ...]
    operands: list[Any]
    precision: int | None = None
    form: Callable[[Sequence[str]], str] = _only


Maker = Callable[[Sequence[Any], KernelOf], Launched]

_makers: dict[str, Maker] = {}


def known(text: str, maker: Maker) -> str:
    """A text that stands in plans, for whose launches a function gives what they need."""
    _makers[text] = maker
    return text


def is_known(text: str) -> bool:
    """Whether a text is one of `known`."""
    return text in _makers


def for_launch(source: str, operands: Sequence[Any], kernel_of: KernelOf) -> Launched:
    """What a launch needs whose plan has this source and these operands."""
    return _makers[source](operands, kernel_of)


@dataclass(frozen=True, slots=True)
class Given:
    """What a kernel that is called takes of the one that calls it: `parameters` of that, as they
    are declared behind others; the `names` to hand on, behind others too; and their `kinds`."""

    parameters: str
    names: str
    kinds: tuple[str, ...]


def given(called: Kernel | None, name: str = "given") -> Given:
    """What the parameters are of a kernel that is called, but for those that are filled in."""
    own = _own_parameters(called)
    declared = "".join(f",\n    {kind} {name}{k}" for k, kind in enumerate(own.values()))
    names = "".join(f", {name}{k}" for k in range(len(own)))
    kinds = tuple(p.dtype.name if p.role in BY_VALUE else ADDRESS for p in own)
    return Given(declared, names, kinds)


def name_of(called: Kernel, parameter: Parameter, name: str = "given") -> str:
    """What the kernel that calls another one names a parameter of that."""
    return f"{name}{[*_own_parameters(called)].index(parameter)}"


def _own_parameters(called: Kernel | None) -> dict[Parameter, str]:
    types = {} if called is None else parameter_types(called)
    return {p: kind for p, kind in types.items() if p.role not in (PRODUCT, BOUND)}
