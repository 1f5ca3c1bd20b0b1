"""Object code runs where it was laid, and what kernels do not have is left to LLVM."""

from __future__ import annotations

import ctypes
import sys

import llvmlite.binding as llvm
import pytest

from pyrelay.devices.compiler import native, object_code
from pyrelay.devices.compiler.codegen import kernel_machine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not llvm.get_process_triple().startswith("x86_64"),
    reason="objects of other machines are linked by LLVM",
)

CALLS = """
declare double @other(double)
define double @f(double %x) {
  %y = call double @other(double %x)
  %z = fadd double %y, 0.125
  ret double %z
}
"""
COUNTS = """
@room = internal global [3 x i64] zeroinitializer
@table = internal constant [4 x i64] [i64 5, i64 7, i64 11, i64 13]
define i64 @count(i64 %k) nounwind {
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %k
  %step = load i64, ptr %place
  %old = load i64, ptr getelementptr ([3 x i64], ptr @room, i64 0, i64 2)
  %new = add i64 %old, %step
  store i64 %new, ptr getelementptr ([3 x i64], ptr @room, i64 0, i64 2)
  ret i64 %new
}
"""
OUTSIDE = """
@stdout = external global ptr
define ptr @f() nounwind {
  ret ptr @stdout
}
"""


def _object(text: str) -> bytes:
    code: bytes = kernel_machine().emit_object(llvm.parse_assembly(text))
    return code


def _other(x: float) -> float:
    return 2.0 * x


REAL = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
OTHER = REAL(_other)


@pytest.mark.parametrize("reach", [1 << 31, 0])
def test_functions_outside_are_called_near_and_far(
    reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_code, "_REACH", reach)
    address = ctypes.cast(OTHER, ctypes.c_void_p).value or 0
    found = object_code.load(_object(CALLS), ("f",), {"other": address})
    assert found is not None
    assert REAL(found["f"])(1.5) == 3.125


def test_variables_keep_what_is_written_and_constants_are_found() -> None:
    found = object_code.load(_object(COUNTS), ("count",), {})
    assert found is not None
    count = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(found["count"])
    assert [count(k) for k in (0, 1, 3)] == [5, 12, 25]


def test_functions_of_the_process_are_found() -> None:
    found = object_code.load(_object(CALLS.replace("@other", "@cos")), ("f",), {})
    assert found is not None
    assert REAL(found["f"])(0.0) == 1.125


def test_unwinding_finds_frames() -> None:
    """Where Python ends a thread that is within a kernel, it is unwound."""
    found = object_code.load(_object(CALLS.replace("@other", "@cos")), ("f",), {})
    assert found is not None
    find = ctypes.CDLL("libgcc_s.so.1")["_Unwind_Find_FDE"]
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)
    assert find(found["f"] + 1, (ctypes.c_int64 * 3)())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (OUTSIDE, "f"),  # where a variable of the process lies
        (CALLS, "f"),  # of a name that nobody has
        (COUNTS, "another"),
        (COUNTS.replace("@room = internal", "@room = internal thread_local"), "count"),
    ],
)
def test_what_kernels_do_not_have_is_left_to_llvm(text: str, wanted: str) -> None:
    assert object_code.load(_object(text), (wanted,), {}) is None


def test_llvm_links_what_is_left_to_it() -> None:
    found = native.load(_object(OUTSIDE), "f")
    stdout = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout")
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(found)() == ctypes.addressof(stdout)


@pytest.mark.parametrize("end", [0, 7, 40, 100, -8])
def test_what_is_no_object_code_is_not_loaded(end: int) -> None:
    assert object_code.load(_object(COUNTS)[:end], ("count",), {}) is None
