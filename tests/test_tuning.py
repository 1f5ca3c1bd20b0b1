"""`pyrelay.tune`: what it measures, what it chooses by a clock of ours, where it keeps that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import tuning
from pyrelay.compiled import Compiled
from pyrelay.devices import choices
from pyrelay.devices import chosen as programs_choices
from pyrelay.devices.choices import DEFAULT, VALUES, Choices, from_text
from pyrelay.devices.routines import matmul
from pyrelay.ir.types import f32
from tests.devices.running_kernels import run


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    few = {"row_bytes": (2048,), "depth": (256, 128), "band": (120, 48), "sources": (512,)}
    monkeypatch.setattr(choices, "VALUES", {**VALUES, **few})
    monkeypatch.setattr(programs_choices, "_kept", {})
    with pyrelay.config.override(cache_dir=str(tmp_path)):
        yield


def layer(x, w):
    return np.tanh(x @ w)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Choices], float]], None]:
    """Sets how long a call takes by how it was compiled: time passes in calls alone."""
    now = [0.0]

    def install(cost: Callable[[Choices], float]) -> None:
        real = Compiled.again

        def again(self: Compiled) -> Any:
            fresh, trial = real(self), programs_choices._trial.get()
            assert trial is not None
            chosen = trial.choices

            def call(*args: Any) -> Any:
                now[0] += cost(chosen)
                return fresh(*args)

            return call

        monkeypatch.setattr(Compiled, "again", again)
        monkeypatch.setattr(tuning, "clock", lambda: now[0])

    return install


def test_the_fastest_values_are_found_one_choice_after_another(costs: Any) -> None:
    costs(lambda c: 1.0 - 0.1 * (c.launches == "alone") - 0.2 * (c.depth == 128)
          + 0.3 * (c.band != 120))  # fmt: skip
    x, w = np.ones((3, 4)), np.ones((4, 5))
    fast = pyrelay.jit(layer)
    found = pyrelay.tune(fast, x, w, progress=False)
    assert found.choices == Choices(launches="alone", depth=128)
    assert (found.default, found.best) == pytest.approx((1.0, 0.7))
    assert "launches=alone, depth=128" in repr(found)
    np.testing.assert_allclose(fast(x, w), layer(x, w))
    assert "product_f64x" in str(fast.code(x, w))
    assert "_128_2048_120(" in str(fast.code(x, w))
    assert "on this thread" in str(fast.code(x, w))


def test_choices_are_kept_for_other_functions_and_processes(
    costs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs(lambda c: 1.0 - 0.2 * (c.depth == 128))
    x, w = np.ones((3, 4)), np.ones((4, 5))
    pyrelay.tune(pyrelay.jit(layer), x, w, progress=False)
    monkeypatch.setattr(programs_choices, "_kept", {})  # as another process finds it
    assert "_128_2048_120(" in str(pyrelay.jit(layer).code(x, w))
    other = pyrelay.jit(layer).code(x.astype(np.float32), w.astype(np.float32))
    assert "_128_" not in str(other)


def test_what_is_hardly_faster_and_what_is_the_same_program_is_not_chosen(costs: Any) -> None:
    costs(lambda c: 1.0 - 0.02 * (c.depth == 128) - 0.5 * (c.targets == 32))
    found = pyrelay.tune(pyrelay.jit(layer), np.ones((3, 4)), np.ones((4, 5)), progress=False)
    assert found.choices == DEFAULT
    assert found.measured == 4  # the defaults, on one thread, a depth, a band


def test_the_defaults_stay_where_the_steps_together_gain_nothing(costs: Any) -> None:
    bands: set[int] = set()

    def cost(c: Choices) -> float:
        """Alone is faster at first, and slower once another band has been tried."""
        bands.add(c.band)
        return 1.0 if c.launches != "alone" else 1.2 if 48 in bands else 0.8

    costs(cost)
    found = pyrelay.tune(pyrelay.jit(layer), np.ones((3, 4)), np.ones((4, 5)), progress=False)
    assert (found.choices, found.best) == (DEFAULT, 1.0)


def test_a_bar_is_shown_and_arguments_stay(costs: Any, capsys: Any) -> None:
    costs(lambda c: 1.0)

    def add_to(x, w):
        x += np.sum(w)
        return x

    x = np.ones(3)
    pyrelay.tune(pyrelay.jit(add_to), x, np.ones((4, 5)))
    np.testing.assert_array_equal(x, 1)
    shown = capsys.readouterr().err
    assert shown.startswith("\rtuning")
    assert "add_to [" in shown
    assert shown.endswith("\n")
    with pytest.raises(TypeError, match=r"pyrelay\.jit"):
        pyrelay.tune(layer, x)


class Step:
    def __init__(self):
        self.w, self.calls = np.ones((4, 5)), 0

    @pyrelay.jit
    def forward(self, x):
        self.calls += 1
        return np.tanh(x @ self.w)


def test_a_method_is_tuned_on_a_copy_of_its_object(costs: Any) -> None:
    costs(lambda c: 1.0 - 0.5 * (c.depth == 128))
    step = Step()
    found = pyrelay.tune(step.forward, np.ones((3, 4)), progress=False)
    assert found.choices == Choices(depth=128)
    assert step.calls == 0


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"depth": 100}', DEFAULT.to_text()[:-1] + ', "x": 1}']
)
def test_a_text_that_is_no_choice_is_ignored(text: str) -> None:
    assert from_text(text) is None
    assert from_text(DEFAULT.to_text()) == DEFAULT


@pytest.mark.parametrize("sizes", [(128, 1024, 48), (384, 2048, 240)])
def test_products_in_other_blocks(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    depth, row_bytes, band = sizes
    other = Choices(depth=depth, row_bytes=row_bytes, band=band)
    source = matmul.matmul_kernel(f32, None, other)
    for m, n, k in [(300, 600, 400), (40, 70, 390)]:
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        c = np.empty((m, n), np.float32)
        run(source, a, b, c, m, n, k, 0, 0, 0, k, n, n, 0, 0, 0,
            ranges=[(0, matmul.units(m, n))])  # fmt: skip
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)


def test_programs_are_not_looked_up_where_none_was_ever_tuned(
    monkeypatch: pytest.MonkeyPatch, costs: Any
) -> None:
    x, w = np.ones((3, 4)), np.ones((4, 5))
    pyrelay.jit(layer)(x, w)  # the cache's folder exists now
    asked: list[Any] = []
    real = programs_choices._key
    monkeypatch.setattr(programs_choices, "_key", lambda m: asked.append(m) or real(m))
    pyrelay.jit(lambda x: x * 3.0)(x)
    assert not asked
    costs(lambda c: 1.0)
    pyrelay.tune(pyrelay.jit(layer), x, w, progress=False)
    asked.clear()
    pyrelay.jit(lambda x: x * 4.0)(x)
    assert asked
