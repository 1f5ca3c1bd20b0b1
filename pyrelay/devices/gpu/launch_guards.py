"""What the host computes before a launch to choose the version of a kernel, as Python.

In: what bounds the narrow integers of a kernel, and its launch. Out: text of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.passes.narrow import ITEMS, Narrow, Quotient, Term
from pyrelay.lower.planning.instructions import Immediate, Launch


def bound_of(small: Narrow, launch: Launch, code: Kernel, known: Callable[[Any], str]) -> str:
    """What bounds the narrow integers of a launch; `known` gives the text of an operand."""
    words: dict[Any, Any] = {p: given[0] for p, given in code.split(launch.operands)}
    words[ITEMS] = launch.extent

    def text(bound: Iterable[tuple[Term, int]]) -> str:
        fixed, terms = 0, []
        for term, count in bound:
            factors: list[str] = []
            for factor in term:
                if isinstance(factor, Quotient):
                    factors.append(f"(({text(factor.over)}) // max({text(factor.by)}, 1))")
                elif isinstance(words[factor], Immediate):
                    count *= words[factor].word
                else:
                    factors.append(known(words[factor]))
            if factors:
                terms.append("*".join((*[str(count)] * (count != 1), *factors)))
            else:
                fixed += count
        return " + ".join((*terms, *[str(fixed)] * (fixed != 0 or not terms)))

    return text(small.bound.items())
