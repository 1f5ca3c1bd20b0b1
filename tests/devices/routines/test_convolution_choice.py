"""The parts that a convolution is expected to call are those that it calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.compiler import native
from pyrelay.devices.compiler.kernel_compiler import kernel_object
from pyrelay.devices.routines.convolution import convolution_kernel
from pyrelay.devices.routines.convolution_choice import calls, parts
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.ir.types import DTYPES, DType
from pyrelay.lower.planning.target import ConvolutionSizes
from tests.devices.routines.test_convolution import CASES, Case, units
from tests.devices.running_kernels import run_at

f32 = DTYPES["f32"]
_PART = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
MORE = [
    Case((1, 56, 56), (1, 3, 3), 1, 1, 64, 64, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 28, 28), (1, 3, 3), 8, 1, 1, 8, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 28, 28), (1, 5, 5), 64, 1, 1, 16, before=(0, 2, 2), after=(0, 2, 2)),
    Case((1, 224, 224), (1, 7, 7), 1, 1, 3, 64, (1, 2, 2), before=(0, 3, 3), after=(0, 3, 3)),
    Case((1, 56, 56), (1, 1, 1), 1, 1, 64, 128, stride=(1, 2, 2)),
    Case((1, 112, 112), (1, 1, 1), 1, 1, 32, 64),
    Case((1, 84, 84), (1, 8, 8), 1, 1, 4, 32, stride=(1, 4, 4)),
    Case((1, 112, 112), (1, 3, 3), 1, 32, 1, 1, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 14, 14), (1, 3, 3), 1, 1, 256, 256, before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 14, 14), (1, 3, 3), 4, 1, 16, 32, stride=(1, 2, 2), before=(0, 1, 1), after=(0, 1, 1)),
    Case((1, 1, 1000), (1, 1, 5), 2, 1, 8, 16, before=(0, 0, 2), after=(0, 0, 2)),
]  # fmt: skip


@pytest.fixture(scope="module", params=["forward", "weights", "back"])
def kernels(request: Any) -> Any:
    """A product of convolutions, channels first and last, whose parts do nothing but say that they
    were called, as do those of matrix products: addresses, the names of parts in order, and what of
    it all has to stay."""
    taken: list[str] = []
    made, kept = {}, []
    for last in (False, True):
        text = convolution_kernel(f32, request.param, last)
        calls = {
            name: _PART(lambda _, name=name: taken.append(name.rpartition("_f32")[0]) or 0)
            for name in native.parts_of(text) if "finite" not in name
        }
        calls.update({n: _PART(lambda _: 1) for n in native.parts_of(text) if n not in calls})
        kept.append(calls)
        known = {n: ctypes.cast(each, ctypes.c_void_p).value or 0 for n, each in calls.items()}
        for name, part in native.parts_of(text).items():
            if name.startswith("product"):
                known.update(native.load_all(kernel_object(part, "part"), (name,), known))
        linked = native.load_all(kernel_object(text, "kernel"), ("pyrelay_kernel",), known)
        made[last] = linked["pyrelay_kernel"]
    return request.param, made, taken, kept


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("what", ["forward", "weights", "back"])
@pytest.mark.parametrize("dtype", [f32, DTYPES["f64"]], ids=str)
def test_all_parts_are_expected_of_unknown_extents(dtype: DType, what: str, last: bool) -> None:
    """But for those that only loops ask for."""
    found = calls(dtype, what, last)(None)
    linked = native.parts_of(convolution_kernel(dtype, what, last))
    fixed = {n for n in linked if n.startswith(("product", "panel_row", "next_part"))}
    assert {text.split()[-1] for text in found} <= set(linked)
    assert set(linked) - fixed <= {text.split()[-1] for text in found}


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_parts_are_those_that_convolutions_of_all_kinds_call(kernels: Any, last: bool) -> None:
    what, addresses, taken, _ = kernels
    exact = what == "forward" and not last
    lanes, missed, spare = native_vector_bits() // 32, [], []
    room = np.zeros(4 << 20, np.float32)
    for case in CASES + MORE:
        taken.clear()
        axes = tuple(
            zip(case.extent, case.taps, case.out, case.stride, case.step, case.before, strict=True)
        )
        sizes = case.batch, case.groups, case.channels, case.outputs
        finish = (0, 0) if what == "forward" and not last else ()
        words = [number for axis in axes for number in axis]
        run_at(
            addresses[last], room, room, room, *sizes, *words, *finish,
            ranges=[(0, units(case, what, last))],
        )  # fmt: skip
        called = set(taken)
        foreseen = set(parts(what, last, ConvolutionSizes(*sizes, axes), lanes, 4))
        foreseen.discard("winograd_finite")
        if not called <= foreseen:
            missed.append((case, sorted(called), sorted(foreseen)))
        spare += foreseen - called if exact else ()
    # Of what is left over behind whole blocks of others, parts are made when they are called.
    assert len(missed) <= (0 if exact else 8), missed
    assert len(spare) < 8
