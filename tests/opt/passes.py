"""What the tests of the passes share: Python functions as Core, counts of ops, and runs compared.

In: a Python function and arguments. Out: its module after `infer` (`core`), how often ops stand in
a module (`ops`), and whether two modules do the same on the arguments (`assert_same_runs`).
"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.frontend.parse import parse
from pyrelay.infer.specialise import specialise
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Block, FnCall, If, Let, Loop, Module, OpCall
from pyrelay.ir.verify import verify
from pyrelay.ir.walk import nested_lets

Pass = Callable[[Module], Module]


def core(function: Any, *args: Any) -> Module:
    """The verified module of a Python function for these arguments."""
    module = specialise(function, args, {}, parse).module
    verify(module, "infer")
    return module


def after(module: Module, *passes: Pass) -> Module:
    """The module after passes, verified after each."""
    for each in passes:
        module = each(module)
        verify(module, "optimise")
    return module


def lets(module: Module) -> list[Let]:
    """Every Let of every function."""
    return [let for f in module.functions.values() for let in nested_lets(f.body)]


def ops(module: Module) -> Counter[str]:
    """How often each op stands in the module; calls, branches and loops by "call", "if", "loop"."""
    names = {FnCall: "call", If: "if", Loop: "loop"}
    return Counter(
        let.rhs.op.name if isinstance(let.rhs, OpCall) else names[type(let.rhs)]
        for let in lets(module)
    )


def ops_in(block: Block) -> Counter[str]:
    """How often each op stands in a block, blocks inside included."""
    return Counter(let.rhs.op.name for let in nested_lets(block) if isinstance(let.rhs, OpCall))


def loops(module: Module) -> list[Loop]:
    """The loops of the module, outer ones first."""
    return [let.rhs for let in lets(module) if isinstance(let.rhs, Loop)]


def run(module: Module, args: Sequence[Any]) -> tuple[Any, ...] | Exception:
    """The results, or the exception, of the interpreter."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return interpret(module, copy.deepcopy(list(args)))
        except (ArithmeticError, ValueError, IndexError, RecursionError) as error:
            return error


def assert_same_runs(module: Module, other: Module, args: Sequence[Any]) -> None:
    """Equal results, or exceptions of one class and text, of both modules."""
    wanted, got = run(module, args), run(other, args)
    if isinstance(wanted, Exception):
        assert type(got) is type(wanted), (got, wanted)
        assert str(got) == str(wanted)
        return
    assert not isinstance(got, Exception), got
    assert len(got) == len(wanted)
    for mine, theirs in zip(got, wanted, strict=True):
        assert type(mine) is type(theirs)
        if not isinstance(theirs, (np.ndarray, np.generic, int, float, complex)):
            continue  # a tape: only what is popped from it can be seen
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=0)
