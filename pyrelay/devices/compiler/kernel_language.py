"""The language that kernels are written in: its types, its intrinsics, what marks parallel access.

In: rules that type a call and functions that emit it; out: ``Intrinsic`` objects, which kernels
call.  Kernels are Python functions, of which ``kernel_lowering`` makes LLVM.  A kernel knows

* floats of 16 bits, of two kinds, which are loaded, stored, chosen and cast and have no arithmetic;
* integers, floats, complex numbers and booleans of fixed width; ``int`` literals are ``i64`` and
  ``float`` literals ``f64``, and no type ever turns into another by itself;
* operators on two operands of one type: ``+ - * & | ^ << >>``, ``/`` on floats and complex,
  ``//`` and ``%`` on integers (rounding down, zero for a zero divisor, as NumPy), ``-x``,
  ``~x``, ``not x``, all comparisons; integers wrap around (``kernel_operators``);
* assignment to names, several at once too, and ``x += y``; ``if``, ``while``,
  ``for i in range(...)``, ``for i in lanes(n, size)`` over n lanes of whole vectors, whose largest
  number has ``size`` bytes and which touch nothing of each other's (both literals); ``break``,
  ``continue``, ``return``, ``and``, ``or``, ``a if c else b``;
  a name is assigned above where it is used, and has one type;
* numbers that the text has under a name outside of its functions;
* intrinsics: functions that emit LLVM instructions in place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm

Rule = Callable[[tuple[types.Type, ...]], types.Type | None]
Emit = Callable[..., Any]

SIGNED = (types.int8, types.int16, types.int32, types.int64)
UNSIGNED = (types.uint8, types.uint16, types.uint32, types.uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (types.float32, types.float64)
COMPLEX = (types.complex64, types.complex128)
BOOL = types.boolean
HALF, BRAIN = types.half, types.brain
HALVES = (HALF, BRAIN)
NUMBERS = INTEGERS + FLOATS + COMPLEX
EVERYTHING = (BOOL, *NUMBERS)
MOVED = (*EVERYTHING, *HALVES)

WORD = llvm.IntType(64)
BIT = llvm.IntType(1)
LLVM_TYPES: dict[types.Type, llvm.Type] = {
    BOOL: BIT,
    **{each: llvm.IntType(each.bitwidth) for each in INTEGERS},
    **dict.fromkeys(HALVES, llvm.FloatType()),
    types.float32: llvm.FloatType(),
    types.float64: llvm.DoubleType(),
    types.complex64: llvm.LiteralStructType([llvm.FloatType()] * 2),
    types.complex128: llvm.LiteralStructType([llvm.DoubleType()] * 2),
}
# The short names that printed types have; they are part of the intrinsics' names.
SHORT_NAMES: dict[str, types.Type] = {
    "bool": BOOL,
    **{f"i{each.bitwidth}": each for each in SIGNED},
    **{f"u{each.bitwidth}": each for each in UNSIGNED},
    "f16": HALF,
    "bf16": BRAIN,
    "f32": types.float32,
    "f64": types.float64,
    "c64": types.complex64,
    "c128": types.complex128,
}


class KernelError(TypeError):
    """A text is not in the kernel language."""


class Intrinsic:
    """A function of the kernel language: a rule that types it and a function that emits it.

    ``rule(argument types) -> result type or None``; ``emit(builder, type of the first argument,
    *llvm values) -> llvm value`` (``None`` where the result is ``void``).

    `apart`: it gives the address of memory that nothing else of the kernel gives an address of.
    `chained`: its instructions wait for each other, so loops over it take several elements at a
    time. `aside`: it neither reads nor writes arrays that lie apart. `predicted`: what emits it
    where nothing is ever lanes of vectors, by branches that processors predict. `called`: what
    emits it in texts that are only tidied, by the call of a function of the module. `inverted`: it
    divides by its second argument, and what emits it in loops where that and its inverse are known.
    """

    def __init__(
        self, name: str, rule: Rule, emit: Emit, apart: bool = False, chained: bool = False,
        aside: bool = False, predicted: Emit | None = None, called: Emit | None = None,
        inverted: Emit | None = None,
    ) -> None:
        self.rule = rule
        self.apart, self.chained, self.aside = apart, chained, aside
        self.emit, self.inverted = emit, inverted
        self.predicted = emit if predicted is None else predicted
        self.called = emit if called is None else called
        self.spelling = name

    def result(self, given: tuple[types.Type, ...]) -> types.Type:
        """The type of a call with arguments of these types; ``KernelError`` where there is none."""
        found = self.rule(given)
        if found is None:
            raise KernelError(f"{self.spelling} does not take ({', '.join(map(str, given))})")
        return found


def fixed(result: types.Type, *arguments: types.Type) -> Rule:
    """The rule of a function with one signature."""
    return lambda given: result if given == arguments else None


def alike(arity: int, allowed: Sequence[types.Type], result: types.Type | None = None) -> Rule:
    """The rule of ``arity`` arguments of one type among ``allowed``; ``result`` or that type."""
    accepted = frozenset(allowed)

    def rule(given: tuple[types.Type, ...]) -> types.Type | None:
        if len(given) != arity or given[0] not in accepted or len(set(given)) != 1:
            return None
        return given[0] if result is None else result

    return rule


# -- metadata ------------------------------------------------------------------------------------


def alias_scopes(module: llvm.Module, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """For each of some arrays that share no memory: the metadata `alias.scope` and `noalias`."""
    domain = module.distinct_metadata()
    domain.operands = (domain,)
    scopes = {}
    for name in names:
        scopes[name] = scope = module.distinct_metadata()
        scope.operands = (scope, domain)
    found = {}
    for name in names:
        others = [scopes[other] for other in names if other != name]
        found[name] = module.add_metadata([scopes[name]]), module.add_metadata(others)
    return found


def all_scopes(found: Iterable[tuple[Any, Any]]) -> list[Any]:
    """The scopes of arrays that share no memory, each once."""
    return list({id(own): own.operands[0] for own, _ in found}.values())


#: The loops that an access promises to be parallel in: all, those without a loop inside.
EVERY_LOOP, INNERMOST_LOOPS = "every loop", "innermost loops"

_groups: weakref.WeakKeyDictionary[llvm.Module, dict[str, llvm.Metadata]] = (
    weakref.WeakKeyDictionary()
)


def access_group(module: llvm.Module, loops: str) -> llvm.Metadata:
    """The access group of ``module``'s loads and stores that are parallel in these loops."""
    known = _groups.setdefault(module, {})
    if loops not in known:
        known[loops] = module.distinct_metadata()
    return known[loops]
