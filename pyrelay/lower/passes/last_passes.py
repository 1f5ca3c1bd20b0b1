"""The passes that a kernel goes through right before it is printed for the CPU, in their order.

In: a kernel, as the CPU and GPUs share it. Out: it and its routines, with the loops, branches and
checks as LLVM makes the best of them.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.lower.kernels.kernel import Kernel, Routine
from pyrelay.lower.passes.checked_blocks import with_checked_blocks
from pyrelay.lower.passes.chosen_arms import with_chosen_arms
from pyrelay.lower.passes.cold_paths import with_cold_paths
from pyrelay.lower.passes.composed_steps import with_composed_steps
from pyrelay.lower.passes.early_breaks import with_early_breaks
from pyrelay.lower.passes.early_quotients import with_early_quotients
from pyrelay.lower.passes.guessed_branches import with_guessed_branches
from pyrelay.lower.passes.held_elements import with_held_elements
from pyrelay.lower.passes.idle_rounds import without_idle_rounds
from pyrelay.lower.passes.independent_rounds import with_independent_rounds
from pyrelay.lower.passes.jammed_loops import jammed
from pyrelay.lower.passes.joined_checks import with_joined_checks
from pyrelay.lower.passes.lone_calls import with_lone_calls
from pyrelay.lower.passes.met_elements import with_met_elements
from pyrelay.lower.passes.ordered_sums import with_ordered_sums
from pyrelay.lower.passes.paired_angles import with_paired_angles
from pyrelay.lower.passes.parted_loops import parted
from pyrelay.lower.passes.parted_places import with_parted_places
from pyrelay.lower.passes.skewed_rows import skewed
from pyrelay.lower.passes.stepped_rows import stepped
from pyrelay.lower.passes.tiled_rounds import tiled
from pyrelay.lower.passes.turned_reads import with_turned_reads
from pyrelay.lower.passes.unrolling import unrolled


def printable(kernel: Kernel) -> Kernel:
    """The kernel that is printed."""
    kernel = replace(kernel, body=with_turned_reads(kernel))
    kernel = replace(kernel, body=stepped(kernel))
    kernel = replace(kernel, body=with_composed_steps(parted(kernel.body)))
    kernel = replace(kernel, body=skewed(kernel))
    kernel = replace(kernel, body=with_met_elements(kernel))
    kernel = replace(kernel, body=with_independent_rounds(kernel))
    kernel = replace(kernel, body=with_held_elements(kernel))
    kernel = replace(kernel, body=with_paired_angles(kernel.body))
    kernel = replace(kernel, body=with_checked_blocks(kernel))
    kernel = replace(kernel, body=jammed(kernel))
    kernel = replace(kernel, body=with_parted_places(kernel.body))
    kernel = replace(kernel, body=with_ordered_sums(with_early_quotients(kernel.body)))
    body = with_guessed_branches(without_idle_rounds(kernel))
    body = with_cold_paths(with_chosen_arms(body))
    body = with_early_breaks(unrolled(with_joined_checks(body)))
    return replace(
        kernel, body=with_lone_calls(tiled(kernel, body)),
        routines=tuple(map(_called, kernel.routines)),
    )


def _called(routine: Routine) -> Routine:
    """A function that a kernel calls, as the kernel itself."""
    if routine.body is None:
        return routine
    body = with_chosen_arms(with_paired_angles(routine.body))
    body = with_cold_paths(body, routine.results)
    return replace(routine, body=with_lone_calls(with_early_breaks(body)))
