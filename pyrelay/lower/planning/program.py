"""What the functions of one plan share: tables of kernels, sites and hosts, the lowerings.

In: fused groups and places in the user's program. Out: their numbers in the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.errors import Span
from pyrelay.ir import dims, walk
from pyrelay.ir.digest import digest
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Function, Loop, OpCall
from pyrelay.ir.types import DType
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.kernels.kernel import Lowering
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.planning.encoded import HostFunction, Kernel, Site, Ufunc
from pyrelay.lower.planning.finishing import in_place
from pyrelay.lower.planning.target import ConvolutionKernel, ConvolutionSizes, MatmulKernel, Target
from pyrelay.opt.finishing import product_of
from pyrelay.records import dataclass

#: Ops that a name of a kernel can do without.
_MOVING = frozenset(
    ("broadcast_to", "cast", "check_index", "expand_dims", "index", "index_update", "refine",
     "reshape", "slice", "squeeze", "transpose")
)
_MOST_OPS = 5


@dataclass(frozen=True, slots=True)
class Group:
    """A lowered fused group; its extents are polynomials over these symbols."""

    lowering: Lowering
    dims: tuple[Symbol, ...]


def known_convolution(
    extents: Sequence[Extent], axes: Sequence[Sequence[Extent]], sizes: Mapping[Symbol, int]
) -> ConvolutionSizes | None:
    """The extents of a convolution, where those of a program have these sizes; None where they are
    not known."""
    try:
        batch, groups, channels, outputs = (dims.evaluate(each, sizes) for each in extents)
        of_axes = tuple(tuple(dims.evaluate(each, sizes) for each in axis) for axis in axes)
    except KeyError:
        return None
    return ConvolutionSizes(batch, groups, channels, outputs, of_axes)


class Program:
    """Kernels by their text, sites in order, and the lowering of each fused group."""

    def __init__(
        self, target: Target, begin: Callable[[str], object], sizes: Mapping[Symbol, int]
    ) -> None:
        self.target, self.begin, self.sizes = target, begin, sizes
        self._lowerings: dict[Function, Group] = {}
        self._by_digest: dict[str, tuple[Function, Group]] = {}
        #: kernels that differ from another one only in the lines that they fail at
        self._text_of: dict[kernel_ir.Kernel, kernel_ir.Kernel] = {}
        self._in_place: dict[int, Group] = {}  # by the group's id
        self._numbers: dict[kernel_ir.Kernel, int] = {}
        self._by_source: dict[str, int] = {}
        self.kernels: list[Kernel] = []
        self.sites: list[Site] = []
        self.hosts: list[HostFunction] = []
        self.ufuncs: list[Ufunc] = []
        self.begins_again = False  # a call may: it has changed nothing that can be seen

    def lowering(self, function: Function) -> Group:
        """The kernels of a fused group; equal groups share them.

        What can fail names the user's lines, which differ between equal groups: the later ones have
        kernels with sites of their own and the text of the first's.
        """
        found = self._lowerings.get(function)
        if found is None:
            try:
                key = digest(function)
            except TypeError:  # it raises an exception of a class that has no name of its own
                key = ""
            found = self._shared(key, function)
            if found is None:
                found = Group(kernelise(function, splits=self.target.splits), function.dims)
                if key:
                    self._by_digest.setdefault(key, (function, found))
            self._lowerings[function] = found
        return found

    def _shared(self, key: str, function: Function) -> Group | None:
        """The kernels of an equal group that was lowered before, at the lines of this one."""
        if key not in self._by_digest:
            return None
        first, group = self._by_digest[key]
        lowering = group.lowering
        kernels = (*lowering.kernels, *(lowering.long.kernels if lowering.long else ()))
        if not any(code.sites for code in kernels):
            return group
        lines = _lines(first, function)
        if lines is None:
            return None
        of_long = None
        if lowering.long:
            of_long = replace(lowering.long, kernels=self._at(lowering.long.kernels, lines))
        own = replace(lowering, kernels=self._at(lowering.kernels, lines), long=of_long)
        return Group(own, group.dims)

    def _at(
        self, kernels: Sequence[kernel_ir.Kernel], lines: Mapping[Span | None, Span | None]
    ) -> tuple[kernel_ir.Kernel, ...]:
        """Kernels that fail at other lines."""
        made = []
        for code in kernels:
            sites = tuple(replace(site, span=lines[site.span]) for site in code.sites)
            made.append(replace(code, sites=sites))
            self._text_of[made[-1]] = self._text_of.get(code, code)
        return tuple(made)

    def in_place(self, group: Group, function: Function) -> Group:
        """The group with a kernel that finishes its product where it lies; `function` is it."""
        found = self._in_place.get(id(group))
        if found is None:
            assert group.lowering.product is not None
            product = product_of(function.body)
            assert product is not None
            own = replace(group.lowering, kernels=(in_place(function, product),))
            found = self._in_place[id(group)] = Group(own, function.dims)
        return found

    def kernel(self, code: kernel_ir.Kernel, name: str) -> int:
        """The number of a kernel; kernels of one text are one, with the name of the first."""
        code = self._text_of.get(code, code)
        if code not in self._numbers:
            self._numbers[code] = self.source(self.target.emit(code), name, code)
        return self._numbers[code]

    def source(self, text: str, name: str, code: kernel_ir.Kernel | None = None) -> int:
        """The number of the kernel with this text."""
        if text not in self._by_source:
            self.begin(text)
            self._by_source[text] = len(self.kernels)
            self.kernels.append(Kernel(name, text, code.spans if code else (), code))
        return self._by_source[text]

    def expect_product(
        self, kernel: MatmulKernel, extents: Sequence[Extent], transpose_a: bool, transpose_b: bool
    ) -> None:
        """A product of these extents will be launched."""
        if kernel.ways is not None:
            known = [dims.evaluated(extent, self.sizes) for extent in extents]
            self.expect(kernel.ways(known, transpose_a, transpose_b))

    def expect_convolution(
        self, kernel: ConvolutionKernel, extents: Sequence[Extent],
        axes: Sequence[Sequence[Extent]],
    ) -> None:  # fmt: skip
        """A convolution of these extents (`ConvolutionSizes`) will be launched."""
        if kernel.calls is not None:
            self.expect(kernel.calls(known_convolution(extents, axes, self.sizes)))

    def expect(self, parts: Iterable[str]) -> None:
        """Kernels will call these parts."""
        for text in parts:
            self.begin(text)

    def ufunc(self, ufunc: Ufunc) -> int:
        """The number of a ufunc that the plan calls."""
        if ufunc not in self.ufuncs:
            self.ufuncs.append(ufunc)
        return self.ufuncs.index(ufunc)

    def site(
        self, exception: str | type[BaseException], parts: Sequence[Any],
        dtypes: Sequence[DType], span: Span | None,
    ) -> int:
        """The number of a place that raises; `parts` as in `errors.exception_of`."""
        kinds = tuple(d.numpy_name for d in dtypes)
        self.sites.append(Site(exception, tuple(parts), kinds, span))
        return len(self.sites) - 1

    def sites_of(self, code: kernel_ir.Kernel) -> int:
        """Enter the sites of a launch; the number of the first."""
        first = len(self.sites)
        for s in code.sites:
            self.site(s.exception, s.parts, s.dtypes, s.span)
        return first


def _lines(first: Function, second: Function) -> dict[Span | None, Span | None] | None:
    """For each line of a group that of an equal one; None where one would be several."""
    lines: dict[Span | None, Span | None] = {None: None}
    pairs = zip(walk.nested_lets(first.body), walk.nested_lets(second.body), strict=True)
    alike = all(lines.setdefault(a.span, b.span) == b.span for a, b in pairs)
    return lines if alike else None


def name_of(group: Function) -> str:
    """A name for the kernels of a fused group: its ops in order, those that move data left out."""
    names = dict.fromkeys(
        let.rhs.op.name for let in walk.nested_lets(group.body) if isinstance(let.rhs, OpCall)
    )
    telling = [name for name in names if name not in _MOVING] or list(names) or ["copy"]
    shown = telling if len(telling) <= _MOST_OPS else [*telling[: _MOST_OPS - 1], "more"]
    looped = any(isinstance(let.rhs, Loop) for let in walk.nested_lets(group.body))
    words = "_".join(["loop"] * looped + shown)
    return re.sub(r"\W", "_", words)
