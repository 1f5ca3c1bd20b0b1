"""How code is generated for a processor."""

from __future__ import annotations

from pyrelay.devices.compiler.codegen import tuned


def test_processors_that_divide_quickly_are_not_asked_how_long_numbers_are() -> None:
    for quick in ("+sse2,+clzero,-avx512f", "+avx2,+gfni"):
        assert tuned(quick) == f"{quick},-idivq-to-divl"
    for other in ("", "+sse2,-gfni", "+sse2,-clzero,+avx2"):
        assert tuned(other) == other
    assert tuned("+avx512f,-gfni") == "+avx512f,-gfni,-prefer-256-bit"
