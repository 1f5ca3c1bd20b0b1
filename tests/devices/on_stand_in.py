"""A plugin of pytest: the tests of a GPU run on the stand-in for CuPy, where there is no GPU.

python -m pytest -m "" -p tests.devices.on_stand_in tests/devices/gpu/test_programs.py -k "corpus or
family"

Tests that use CuPy's own functions cannot run so.
"""

from __future__ import annotations

from typing import Any


def pytest_configure(config: Any) -> None:
    from pyrelay.devices import cuda
    from pyrelay.devices.gpu import cupy_driver
    from tests.devices.fake_cupy import Machine

    # A cuBLAS that is installed would be given addresses of the host.
    cupy_driver._cublas = lambda: None  # type: ignore[assignment]
    made = cupy_driver.CupyDriver(Machine().cupy, 0)
    cuda.driver = lambda number=None: made
