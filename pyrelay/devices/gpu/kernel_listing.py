"""What a GPU compiles for a plan, to be read.

In: a plan. Out: the texts of its kernels as they are compiled before the first call, each below the
lines of the user's program that it computes: with indices of 32 bits where those are enough, and
scalars of the device by their addresses. Loops that may run as one kernel follow, which calls
compile, for their extents first, and the first form of a kernel that has several; a call compiles
the one that it needs.
"""

from __future__ import annotations

from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.instructions import Plan
from pyrelay.lower.text.show import heading, kernel_names


def listing(plan: Plan) -> str:
    """The kernels of a plan."""
    code, names = plan_code(plan), kernel_names(plan)
    told: dict[int, list[str]] = {}
    for launched in code.launches:
        if launched.text >= 0 and launched.kernel >= 0 and launched.text not in told:
            kernel = plan.kernels[launched.kernel]
            told[launched.text] = [f"# {names[launched.kernel]}", *heading(kernel.spans)]
    own = ["# of pyrelay's library"]
    parts = [
        "\n".join([*told.get(number, own), text.source.strip()])
        for number, text in enumerate(code.texts)
    ]
    loops = code.of_loops()
    for text, loop in loops.items():
        heads = f"# {loop.name} as one kernel", "# with a call's extents as constants, or for any"
        parts.append("\n".join([*heads, text.source.strip()]))
    made = code.with_forms()
    for texts, first in made.items():
        head = f"# {names[first.kernel]}, the first of {len(texts)} forms"
        spans = plan.kernels[first.kernel].spans
        parts.append("\n".join([head, *heading(spans), texts[0].source.strip()]))
    left = len({*code.late} - {*loops} - {text for texts in made for text in texts})
    if left:
        parts.append(
            f"# {left} more with indices of 64 bits, for few long rows, many indices or "
            "several rounds at once are compiled when they are first needed."
        )
    return "\n\n\n".join(parts)
