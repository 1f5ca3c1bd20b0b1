"""What a compiled function shows of itself: highlighted text, and how a compilation went.

In: texts of programs and kernels, compiled programs, Python arguments. Out: `Text`, which notebooks
show with colours, one-line descriptions of arguments, and the report of `f.explain`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pyrelay import pipeline
from pyrelay.boundary import Program
from pyrelay.deep_stack import on_deep_stack
from pyrelay.infer.arrays.device_arrays import DeviceArray, device_array, is_device_array
from pyrelay.infer.guards import ABSENT, NameGuard
from pyrelay.infer.names.handlers import lookup
from pyrelay.infer.specialised import Binding, Specialised
from pyrelay.ir import dims, types
from pyrelay.ir.show import show
from pyrelay.lower.planning.instructions import Plan
from pyrelay.lower.text.show import show_kernel_ir, show_plan

_WORDS = frozenset((*keyword.kwlist, "loop", "next", "plan", "vjp", "kernel"))
_TOKEN = re.compile(
    r"(?P<comment>\#[^\n]*)|(?P<string>'[^'\n]*'|\"[^\"\n]*\")"
    r"|(?P<type>\b(?:[fiu](?:8|16|32|64)|c(?:64|128)|bool|int|float|complex)\b(?:\[[^\]\n]*\])?)"
    r"|(?P<number>\b\d[\w.]*(?:e[+-]\d+)?)|(?P<word>@?[A-Za-z_]\w*)"
)
_LIBRARIES = frozenset(("numpy", "numpy.linalg", "numpy.fft", "math", "cmath", "functools"))
_MEANS = {"infer": ", parsing included", "compile": ", by LLVM"}
_COLOURS = {
    "comment": "#6a737d", "string": "#22863a", "type": "#005cc5", "number": "#b08800",
    "word": "#d73a49",
}


class Text(str):
    """Source or IR text: prints as it is, and notebooks show it with colours."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="line-height: 1.3">{highlighted(self)}</pre>'


def highlighted(text: str) -> str:
    """HTML of a program's text: comments, strings, types, numbers and keywords are coloured."""
    from html import escape  # a first call shows nothing

    pieces, end = [], 0
    for token in _TOKEN.finditer(text):
        pieces.append(escape(text[end : token.start()]))
        end = token.end()
        kind, word = token.lastgroup or "", token.group()
        if kind == "word" and word not in _WORDS:
            pieces.append(escape(word))
        else:
            pieces.append(f'<span style="color: {_COLOURS[kind]}">{escape(word)}</span>')
    return "".join([*pieces, escape(text[end:])])


def described(value: Any) -> str:
    """An argument's type as messages write it: `f32[4, 3]`, `int`, `dict of 2`."""
    if is_device_array(value):
        value = device_array(value)
    if isinstance(value, (np.ndarray, np.generic, DeviceArray)):
        dtype = types.from_numpy(value.dtype)
        name = str(value.dtype) if dtype is None else dtype.name
        return f"{name}[{', '.join(map(str, value.shape))}]"
    if value is None or isinstance(value, str):
        return repr(value) if value is None or len(value) < 20 else "str"
    name = type(value).__name__
    return f"{name} of {len(value)}" if isinstance(value, (tuple, list, dict)) else name


def call_text(
    name: str, names: Sequence[str], args: Sequence[Any], keywords: Mapping[str, Any]
) -> str:
    """A call as messages write it: `step(x: f32[4, 3], n: int)`."""
    shown = [f"{n}: {described(a)}" for n, a in zip(names, args, strict=True)]
    shown += [f"{n}: {described(a)}" for n, a in keywords.items()]
    return f"{name}({', '.join(shown)})"


def program_text(spec: Specialised, stage: str, on: str | None = None) -> Text:
    """A specialised program at the end of a stage, for a device or that of the settings.

    stage: infer, grad, optimise, fuse, kernelise, plan or emit. Raises ValueError for another name.
    """
    if stage not in ("kernelise", "plan", "emit"):
        return Text(show(pipeline.lowered(spec.module, stage, on=on)))
    module = pipeline.lowered(spec.module, "fuse", on=on)
    if stage == "kernelise":
        return Text(show_kernel_ir(module))
    made = pipeline.planned(spec, module, on)
    shown = show_plan if stage == "plan" else pipeline.device_for(module, on).shown
    return Text(shown(made))


def program_code(spec: Specialised, on: str | None = None) -> Text:
    """The kernels of a specialised program, and the plan that launches them as comments."""
    module = pipeline.lowered(spec.module, "fuse", on=on)
    made = pipeline.planned(spec, module, on)
    listing = "\n".join("# " + line for line in show_plan(made).splitlines())
    return Text(f"{pipeline.device_for(module, on).shown(made)}\n\n\n{listing}\n")


def explanation(name: str, programs: Iterable[Program]) -> Text:
    """The report of `f.explain`: per program its arguments, its kernels and where time went."""
    parts = [_explained(program) for program in programs]
    if not parts:
        return Text(f"{name}: nothing compiled yet")
    return Text("\n\n".join(parts))


def _explained(program: Program) -> str:
    build, binding = program.build, program.binding
    total = sum(program.seconds.values())
    how = "compiled" if program.spec is not None else "found on disk, loaded"
    lines = [program.signature, f"  {how} in {total * 1e3:.1f} ms"]
    for stage, seconds in program.seconds.items():
        passes = [s for s in build.steps if s.stage == stage and s.name != stage]
        slowest = max(passes, key=lambda s: s.seconds, default=None)
        note = f", most in {slowest.name} ({slowest.seconds * 1e3:.1f} ms)" if slowest else ""
        note = _MEANS.get(stage, note)
        lines.append(f"    {stage:9} {seconds * 1e3:8.1f} ms{note}")
    if build.place.startswith("cuda"):
        places = f"the plan launches them from {build.launches} places"
        lines.append(f"  {build.kernels} kernels; {places}")
    elif build.place != "interpreter":
        stored = build.kernels - build.compiled
        lines.append(
            f"  {build.kernels} kernels: {build.compiled} compiled, {stored} found in memory or on "
            f"disk; the plan launches them from {build.launches} places"
        )
    else:
        lines.append("  runs in the reference interpreter (PYRELAY_INTERPRET=1)")
    lines += (f"  {line}" for line in build.told())
    lines += _reasons(binding)
    return "\n".join(lines)


def _reasons(binding: Binding) -> list[str]:
    """What a call has to agree with to be served by this program."""
    names = binding.leaf_names
    lines = [f"  only for {names[leaf]} = {value!r}" for leaf, value in binding.static.items()]
    lines += [
        f"  only for {names[leaf]} that {'lies in C order' if kept is None else 'lies as it does'}"
        for leaf, kept in binding.layouts.items()
    ]
    lines += [
        f"  only for {names[leaf]} whose axes lie in memory in the order {order}"
        for leaf, order in binding.turned.items()
    ]
    if read := _read_names(binding):
        lines.append("  while these names mean the same: " + ", ".join(read))
    if binding.extents:
        with dims.spelled_by(lambda symbol: _extent_name(binding, symbol)):
            conditions = [
                f"{'' if g.truth else 'not '}{dims.show(g.left)} {g.op} {dims.show(g.right)}"
                for g in binding.extents
            ]
        lines.append("  only where " + ", ".join(conditions))
    return lines


def _extent_name(binding: Binding, symbol: dims.Symbol) -> str:
    """An extent as the user would write it: `x.shape[1]`."""
    leaf, axis = binding.axes[symbol]
    return f"{binding.leaf_names[leaf]}.shape[{axis}]"


def _read_names(binding: Binding) -> list[str]:
    """Names that a program may well give another meaning.

    Left out are modules, functions that pyrelay knows (`np.sin`, `abs`), a function's own parts,
    and what is missing.
    """
    names = [_full_name(guard) for guard in binding.names if not _hardly_changes(guard)]
    return list(dict.fromkeys(names))


def _full_name(guard: NameGuard) -> str:
    """A name as the user writes it, `Class.method` for what is found in a class or module."""
    owner = guard.container
    if isinstance(owner, (type, ModuleType)):
        return f"{owner.__name__}.{guard.name}"
    return guard.name


def _hardly_changes(guard: NameGuard) -> bool:
    if guard.value is ABSENT or isinstance(guard.value, ModuleType):
        return True
    library = isinstance(guard.container, ModuleType) and guard.container.__name__ in _LIBRARIES
    own = isinstance(guard.container, FunctionType) and guard.name.startswith("__")
    return library or own or lookup(guard.value) is not None


class Lowered:
    """A program compiled for certain arguments, to look at.

    signature: the arguments, as text. place: the device it runs on, or "interpreter".
    """

    def __init__(self, function: Any, key: Any, program: Any, spec: Any) -> None:
        self._function, self._key, self._program, self._spec = function, key, program, spec
        self._device = key[-1]
        self.signature, self.place = program.signature, program.build.place

    def ir(self, stage: str = "fuse") -> Any:
        """The program as text at the end of a stage, `infer` or a later one."""
        return program_text(self._spec, stage, self._device)

    def code(self) -> Any:
        """The source of the kernels, and the plan that launches them."""
        return program_code(self._spec, self._device)

    def explain(self) -> Any:
        """Where the time of the compilation went, and what the program depends on."""
        return explanation(self._function.__qualname__, [self._program])

    def with_plan(self, changed: Callable[[Plan], Plan]) -> Any:
        """The function with nothing compiled but this program, that runs another plan."""
        build = on_deep_stack(pipeline.compiled, self._spec, self._device, changed)
        return self._function.with_program(self._key, replace(self._program, build=build))

    def __repr__(self) -> str:
        return f"<pyrelay program {self.signature}>"
