"""What the host computes before a launch to choose the version of a kernel, as Python.

In: what bounds the narrow integers of a kernel or a product, and its launch. Out: text of an
expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def bound_of_product(words: Sequence[str]) -> str:
    """What bounds the numbers of elements of a product, whose words are those of
    `lower.planning.target.MatmulKernel` behind the addresses."""
    m, n, k, _, _, _, a_line, b_line, c_line, _, _, _, *axes = words
    stacks, starts = "", []
    for at in range(0, len(axes), 3):
        extent, *strides = axes[at : at + 3]
        stacks += f"{extent}*"
        starts += [f"{extent}*abs({stride})" for stride in strides]
    matrices = [f"max({m}, {k})*({a_line} + 1)", f"max({n}, {k})*({b_line} + 1)"]
    return " + ".join([*matrices, f"{stacks}{m}*({c_line} + 1)", *starts])
