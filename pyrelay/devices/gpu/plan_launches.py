"""Launches of a plan as Python.

In: the launches of a function of a plan. Out: lines of `plan_python`, and what they refer to: the
texts of kernels, each once, and a `Launched` for each place that launches one.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from pyrelay.devices.gpu import cuda_library, launch_texts
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_guards import bound_of
from pyrelay.devices.gpu.stretches import runs_on_host
from pyrelay.ir.types import DType
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.passes.narrow import LARGEST, narrow
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Data,
    Immediate,
    KernelAddress,
    Launch,
    Plan,
    Slot,
)
from pyrelay.lower.text import emit_cuda
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel as one place of the plan launches it.

    text: its number among the texts, -1 for a kernel that the host runs, -2 - k for number k of
    those that are compiled when they are first needed: kernels with indices of 64 bits, for arrays
    that are too large for the version before, kernels for few long rows or many indices
    (`Launch.rare`), forms of a kernel, loops as kernels (`persistent_known`), and those of
    `plan_rounds`. base: the first of its sites.
    product: for products of matrices the dtypes of operands and result. outs: for a kernel that the
    host runs, where among its words the addresses of results stand, and of how many words each is.
    forms: how many launches from this one on are forms of one kernel.
    """

    text: int
    kernel: int
    base: int
    product: tuple[DType, DType] | None = None
    outs: tuple[tuple[int, int], ...] = ()
    forms: int = 1


class Launches:
    """The texts and launches of a plan. first: the numbers of texts that are launched elsewhere
    than in rounds of loops that may be kernels. spare: those of products of floats, which the
    device's library has too. in_rounds: whether what is written now is such a round."""

    def __init__(self) -> None:
        self.first: dict[int, None] = {}
        self.spare: dict[int, None] = {}
        self.in_rounds = False
        self.texts: list[Text] = []
        self.late: list[Text] = []
        self.launches: list[Launched] = []
        self.numbers: dict[Text, int] = {}
        self.late_numbers: dict[Text, int] = {}

    def late_text(self, text: Text) -> int:
        """The number of a kernel's text that is compiled when it is first needed, below -1."""
        if text not in self.late_numbers:
            self.late.append(text)
            self.late_numbers[text] = -1 - len(self.late)
        return self.late_numbers[text]

    def text(self, text: Text, is_spare: bool = False) -> int:
        """The number of a kernel's text."""
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        number = self.numbers[text]
        if is_spare:
            self.spare[number] = None
        elif not self.in_rounds:
            self.first[number] = None
        return number

    def launched(self, launched: Launched) -> int:
        """The number of a launch."""
        self.launches.append(launched)
        return len(self.launches) - 1

    def library(self, text: Text, base: int = 0) -> int:
        """The number of a launch of a kernel of ours; `base` is the first of its sites."""
        return self.launched(Launched(self.text(text), -1, base))


class LaunchWriter:
    """Writes lines of a function of the plan: operands and launches."""

    launches: Launches
    plan: Plan
    on_device: frozenset[int]
    lines: list[str]
    cells: int

    # -- operands ------------------------------------------------------------------------------

    def _word(self, operand: Any) -> str:
        """An operand as it is: an int, a scalar of the device, a tape."""
        if isinstance(operand, Slot):
            return f"s{operand.index}"
        if isinstance(operand, Immediate):
            return repr(operand.word)
        assert isinstance(operand, Data)
        return f"run.data[{operand.index}]"

    def _known(self, operand: Any) -> str:
        """An operand that the host computes with: it is fetched if it is on the device."""
        text = self._word(operand)
        if isinstance(operand, Slot) and operand.index in self.on_device:
            self._line(f"if type({text}) is not int: {text} = run.fetched({text})")
        return text

    def _is_placed(self, operands: Sequence[Any]) -> bool:
        """Whether a kernel finds a scalar on the device."""
        return any(isinstance(o, Slot) and o.index in self.on_device for o in operands)

    def _placed(self, operands: Sequence[Any]) -> str:
        """The address where a kernel finds a scalar."""
        return f"run.place({', '.join(map(self._word, operands))})"

    def _tested(self, condition: str, slots: Set[int]) -> str:
        """Text of a condition on words of the host that lie in these slots."""
        return f"({condition})"

    def _line(self, text: str) -> None:
        self.lines.append(text)

    # -- kernels -------------------------------------------------------------------------------

    def _launch(self, launch: Launch) -> None:
        kernel = self.plan.kernels[launch.kernel]
        if runs_on_host(self.plan, launch, self.on_device):
            self._host_launch(launch)
        elif kernel.code is None and launch_texts.is_known(kernel.source):
            self._made_for(launch, kernel.source)
        elif kernel.code is None:
            words = [self._known(o) for o in launch.operands]
            product = cuda_library.multiplied(kernel.source)
            text = Text(kernel.source, cuda_library.kinds_of(kernel.source))
            is_spare = product is not None and product[1].kind in "fc"
            kept = (
                self.launches.late_text(text) if launch.rare
                else self.launches.text(text, is_spare)
            )
            number = self.launches.launched(
                Launched(kept, launch.kernel, launch.first_site, product)
            )
            how = "launch" if product is None else "multiply"
            self._issue(how, number, launch, words)
        else:
            self._device_launch(launch, kernel.code)

    def _made_for(self, launch: Launch, source: str) -> None:
        def kernel_of(address: KernelAddress) -> kernel_ir.Kernel:
            code = self.plan.kernels[address.index].code
            assert code is not None
            return code

        made = launch_texts.for_launch(source, launch.operands, kernel_of)
        words = [self._known(o) for o in made.operands]
        if made.precision is not None:
            words[made.precision] = launch_texts.PRECISION
        forms = len(made.texts)
        kept = self.launches.late_text if launch.rare or forms > 1 else self.launches.text
        first, *_ = [
            self.launches.launched(
                Launched(kept(text), launch.kernel, launch.first_site, forms=forms - k)
            )
            for k, text in enumerate(made.texts)
        ]
        number = f"{first} + {made.form(words)}" if forms > 1 else first
        self._issue("launch", number, launch, words)

    def _issue(self, how: str, number: int | str, launch: Launch, words: Sequence[str]) -> None:
        items = self._known(launch.extent)
        self._line(f"run.{how}({number}, {items}, ({''.join(f'{w}, ' for w in words)}))")

    def _device_launch(self, launch: Launch, code: kernel_ir.Kernel) -> None:
        words: list[str] = []
        kinds: list[str] = []
        pointed: list[kernel_ir.Parameter] = []
        after: list[str] = []
        for parameter, operands in code.split(launch.operands):
            name = parameter.dtype.name
            if isinstance(operands[0], AddressOf) and launch.rare:
                # The cell that the usual kernel would have written.
                words.append(f"s{operands[0].index}.address")
                kinds.append(ADDRESS)
            elif isinstance(operands[0], AddressOf):
                slot, cell = operands[0].index, f"c{self.cells}"
                self.cells += 1
                self._line(f"{cell} = run.cell()")
                words.append(f"{cell}.address")
                kinds.append(ADDRESS)
                after.append(f"s{slot} = {cell}")
                if parameter.dtype.size == 16:
                    after.append(f"s{slot + 1} = {cell}.second()")
            elif parameter.role == kernel_ir.SCALAR and self._is_placed(operands):
                words.append(self._placed(operands))
                kinds.append(ADDRESS)
                pointed.append(parameter)
            else:
                words += map(self._known, operands)
                scalar = parameter.role in (kernel_ir.SCALAR, kernel_ir.EXTENT)
                kinds.append(name if scalar else ADDRESS)
        text = Text(emit_cuda.emit(code, frozenset(pointed)), tuple(kinds))
        small = narrow(code)
        first = self.launches.late_text if launch.rare else self.launches.text
        if small is None:
            number = self.launches.launched(
                Launched(first(text), launch.kernel, launch.first_site)
            )
            self._issue("launch", number, launch, words)
        else:
            few = Text(emit_cuda.emit(code, frozenset(pointed), small.scalars), tuple(kinds))
            number = self.launches.launched(
                Launched(first(few), launch.kernel, launch.first_site)
            )
            self.launches.launched(
                Launched(self.launches.late_text(text), launch.kernel, launch.first_site)
            )
            slots: set[int] = set()

            def read(operand: Any) -> str:
                slots.update((operand.index,) if isinstance(operand, Slot) else ())
                return self._known(operand)

            guard = bound_of(small, launch, code, read)
            large = self._tested(f"{guard} >= {LARGEST}", slots)
            self._issue("launch", f"{number} + {large}", launch, words)
        self.lines += after

    def _host_launch(self, launch: Launch) -> None:
        """The host runs the kernel: scalars of the plan that nothing of the device is known of."""
        words: list[str] = []
        slots: list[int] = []
        outs: list[tuple[int, int]] = []
        code = self.plan.kernels[launch.kernel].code
        assert code is not None
        for parameter, operands in code.split(launch.operands):
            if isinstance(operands[0], AddressOf):
                count = 2 if parameter.dtype.size == 16 else 1
                outs.append((len(words), count))
                slots += range(operands[0].index, operands[0].index + count)
                words.append("0")
            else:
                words += map(self._known, operands)
        number = self.launches.launched(
            Launched(-1, launch.kernel, launch.first_site, outs=tuple(outs))
        )
        given = "".join(f"{w}, " for w in words)
        made = f"run.host_launch({number}, {self._known(launch.extent)}, ({given}))"
        targets = "".join(f"s{k}, " for k in slots)
        self._line(f"({targets}) = {made}" if targets else made)
