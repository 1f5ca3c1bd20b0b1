"""What can be chosen about the kernels of a program: block sizes of products, who shares a launch.

In: nothing, or a stored text. Out: `Choices`; the defaults are those of the model of a CPU with
caches of 32 KiB and 512 KiB. `pyrelay.tune` measures the others and stores what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from pyrelay.records import dataclass

ALONE, EVENLY, PLANNED = "alone", "evenly", "planned"

#: The values of each choice, in the order in which they are tried.
VALUES: dict[str, tuple[Any, ...]] = {
    "launches": (PLANNED, EVENLY, ALONE),
    "depth": (256, 128, 384),
    "row_bytes": (2048, 1024),
    "band": (120, 48, 240),
    "targets": (64, 32, 128),
    "sources": (512, 256, 1024),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """One way to compile a program.

    launches   PLANNED: threads share what is long enough; EVENLY: in one part each; ALONE: nothing.
    depth      terms of a product's sums that are packed at a time.
    row_bytes  of a row of the right matrix that are packed at a time.
    band       rows of the left matrix that are packed at a time.
    targets, sources  rows and columns of a block of scores of attention.
    """

    launches: str = PLANNED
    depth: int = 256
    row_bytes: int = 2048
    band: int = 120
    targets: int = 64
    sources: int = 512

    def others(self, name: str) -> Iterator[Choices]:
        """The same with the other values of one choice."""
        for value in VALUES[name]:
            if value != getattr(self, name):
                yield replace(self, **{name: value})

    def to_text(self) -> str:
        """A text that `from_text` reads."""
        import json  # programs that nobody tuned read none

        return json.dumps(asdict(self))

    def __str__(self) -> str:
        changed = [
            f"{name}={value}" for name, value in asdict(self).items() if value != VALUES[name][0]
        ]
        return ", ".join(changed) or "the defaults"


DEFAULT = Choices()


def from_text(text: str) -> Choices | None:
    """The choices that a text holds; None if they are none that can be made."""
    import json

    try:
        found = json.loads(text)
        if all(found[name] in values for name, values in VALUES.items()):
            return Choices(**found)
    except (ValueError, KeyError, TypeError):
        pass
    return None
