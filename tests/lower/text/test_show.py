"""Plans and kernels as text: what a reader finds in `f.code`, and every instruction's own words."""

from __future__ import annotations

import ast
import typing

import numpy as np
import pytest

import pyrelay
from pyrelay.lower.planning import instructions
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Binary,
    Checked,
    Data,
    Kernel,
    Launch,
    LoopNext,
    Plan,
    PlanFunction,
    Return,
    Site,
    Slot,
    TapePush,
    immediate,
)
from pyrelay.lower.text.show import show_plan


def softmax(x, w, n):
    h = np.tanh(x @ w)
    total = 0.0
    for i in range(n):
        total += np.sum(h[i] * 2.0)
    return np.exp(h) / 2.0, total


@pytest.fixture(scope="module")
def text():
    return str(pyrelay.jit(softmax).code(np.ones((4, 3)), np.ones((3, 5000)), 3))


def test_kernels_are_named_after_what_they_compute_and_headed_by_the_lines(text):
    assert "line 33: h = np.tanh(x @ w)\ndef finish_tanh_kernel(block, begin, end):" in text
    assert "line 36: total += np.sum(h[i] * 2.0)\ndef multiply_sum_add_kernel(" in text
    assert "def multiply_sum_add_kernel_2(" in text
    assert "launch exp_divide_kernel(" in text


def test_code_is_one_module_that_defines_every_kernel_once(text):
    tree = ast.parse(text)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(names) == len(set(names))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert tree.body[: len(imports)] == imports
    assert len({node.module for node in imports}) == len(imports)
    imported = {alias.name for node in imports for alias in node.names}
    called = {
        node.func.id for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called - imported <= {"range", "min", "max", "abs", "int", "float", "bool"}


def test_instructions_read_as_statements():
    span = pyrelay.errors.Span(pyrelay.errors.SourceText("m.py", ()), 7, 0, 7, 1)
    code = (
        Binary("mul.f64", 3, Slot(0), immediate(0.5, "float64")),
        Binary("min.i64", 4, Slot(1), immediate(-2)),
        Checked("index", 5, Slot(4), Slot(1), 0),
        Launch(0, (Data(0), AddressOf(6)), Slot(1), immediate(9)),
        Launch(1, (), immediate(1), immediate(9), serial=True),
        LoopNext(4, -1, Slot(2), "again"),
        TapePush(Slot(7), (Slot(3), Slot(4))),
        Return((Slot(3),)),
    )
    kernels = (Kernel("tanh", "a"), Kernel("tanh", "b"))
    plan = Plan((PlanFunction("f", 2, 8, code),), kernels, (Site("IndexError", (), (), span),))
    assert show_plan(plan).splitlines() == [
        "plan f(s0, s1)",
        "   0   s3 = s0 * 0.5",
        "   1   s4 = min(s1, -2)",
        "   2   s5 = index(s4, s1), else IndexError of line 7",
        "   3   launch tanh_kernel(constant0, &s6) over s1",
        "   4   launch tanh_kernel_2() over 1 on this thread",
        "   5   s4 += -1; if s4 > s2 go to again",
        "   6   tapepush s7, s3, s4",
        "   7   return s3",
    ]


def test_no_instruction_is_shown_as_its_fields():
    inverse = instructions.Ufunc("numpy.linalg", "inv", "d->d")
    sample = {"str": "x", "int": 1, "bool": False, "Value": Slot(2)}
    for kind in typing.get_args(instructions.Instruction):
        hints = kind.__annotations__
        made = kind(*(sample.get(hint, ()) for hint in hints.values()))
        function = PlanFunction("f", 0, 3, (made,))
        shown = show_plan(
            Plan((function, function), (Kernel("k", ""),) * 2, ufuncs=(inverse,) * 2)
        )
        assert "=Slot" not in shown
        assert "(index" not in shown


def test_kernelise_is_a_stage_that_can_be_dumped(capsys):
    with pyrelay.config.override(dump=("kernelise",)):
        pyrelay.jit(lambda x: np.tanh(x) * 3.5)(np.ones(3))
    shown = capsys.readouterr().err
    assert shown.startswith("-- kernelise\n# test_show.py, line ")
    assert "kernel tanh_multiply(a0: f64, out0: f64) over x0\n  for x2 in begin..end\n" in shown
