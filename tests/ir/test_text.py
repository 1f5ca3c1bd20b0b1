"""The reader: printing and reading are each other's inverse, and mistakes are shown in place."""

from __future__ import annotations

import pytest
from core_programs import PROGRAMS

from pyrelay.errors import TextFormatError
from pyrelay.ir import types
from pyrelay.ir.build import constant
from pyrelay.ir.digest import digest
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Block, Const, Function, Module
from pyrelay.ir.show import show
from pyrelay.ir.text import read
from pyrelay.ir.verify import verify
from pyrelay.opt.fuse import fuse


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_is_read_back(name: str) -> None:
    module = PROGRAMS[name]().module
    text = show(module)
    again = read(text)
    verify(again, "optimise")
    assert show(again) == text
    assert digest(again) == digest(module)


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_programs_are_read_back(name: str) -> None:
    module = fuse(PROGRAMS[name]().module)
    again = read(show(module))
    verify(again, "fuse")
    assert show(again) == show(module)
    assert digest(again) == digest(module)


@pytest.mark.parametrize(
    "text",
    [
        "def @f(x: f64[]) -> (f64[], f64[]) {\n"
        "  y: f64[], g: f64[] = vjp @loss(x)[3] seeds (0: f64(1.0)) wrt (0)\n"
        "  return y, g\n}",
        "def @f(x: f64[]) -> (f64[], f64[]) {\n"
        "  y: f64[], t: f64[] = jvp @loss(x)[3] seeds (0: f64(1.0)) wanted (0)\n"
        "  return y, t\n}",
        "def @f(x) {\n  t = loop (c = 'a\\tb') for item in x {\n    next None\n  }\n"
        "  py.set_item(x, -2, t)\n  return t, (1, (2,)), unset, 1.5, -2, 1j\n}",
        "def @outer.<lambda>1[n, m](x: f64[(n//2) + max(0, n - m), n**2]) -> int {\n"
        "  v0: int = extent(size=2*n*m - 3)\n  return v0\n}",
        "def @f() -> (f32[], float, c64[], bool[], u8[], float) {\n"
        "  return f32(0.1), float(nan), c64(1.0, -2.0), bool(True), u8(3), float(-inf)\n}",
        "def @f() {\n  raise(exception='ValueError', parts=('a', 0))\n  return\n}",
        "def @f() {\n  py.raise(<class builtins.ValueError>)\n  return\n}",
    ],
)
def test_every_construct_is_read_back(text: str) -> None:
    assert show(read(text)) == text


def test_constants_keep_every_bit() -> None:
    values = [0.1, 1e-300, 1e22, -0.0, float("inf"), 2**53 + 1.0, 5e-324]
    consts: list[Const] = [constant(v) for v in values]
    consts += [constant(v, types.TensorType(types.f32)) for v in values[:4]]
    module = Module({"f": Function("f", (), Block((), tuple(consts)))}, "f")
    assert digest(read(show(module))) == digest(module)


def test_a_program_written_by_hand_runs() -> None:
    module = read(
        """
        def @power(x: float, k: int) -> float {
          y: float, i: int = loop (p: float = 1.0, j: int = k) while greater(j, 0) {
            q: float = multiply(p, x)   r: int = subtract(j, 1)
            next q, r
          }
          return y
        }
        """
    )
    verify(module, "optimise")
    assert interpret(module, (3.0, 4)) == (81.0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text defines no function"),
        ("def @f(", "expected '}', found the end"),
        ("def @f() { return x }", "x is not bound here"),
        ("def @f(x: f64[], x: f64[]) { return x }", "x is bound twice"),
        ("def @f() { y = nonsense(1) return y }", "there is no operation 'nonsense'"),
        ("def @f(x: f65[]) { return x }", "'f65' is no type"),
        ("def @f(x: f64[]) -> int { return x }", "@f does not return what it declares"),
        ("def @f() { return } def @f() { return }", "@f is defined twice"),
        ("def @f() { kernel @k() return }", "no kernel @k follows this function"),
        ("def @f() { return <module numpy> }", "has no text that could be read back"),
        ("def @f() { return ? }", "'?' does not belong here"),
        ("def @f() { return f64(1.0, 2.0) }", "f64 takes 1 numbers"),
        ("def @f(x: int) { y: int = add(x, y) return y }", "y is not bound here"),
    ],
)
def test_mistakes_are_shown_in_place(text: str, message: str) -> None:
    with pytest.raises(TextFormatError) as found:
        read(text)
    assert message in str(found.value)


def test_an_error_points_into_the_text() -> None:
    with pytest.raises(TextFormatError) as found:
        read("def @f(x: int) -> int {\n  y: int = add(x, z)\n  return y\n}")
    assert "2 |   y: int = add(x, z)\n    |                   ^" in str(found.value)
