"""The programs of the demo learn, and the demo runs from start to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyrelay
from examples import demo, digits, names

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data() -> digits.Digits:
    return digits.digits()


def test_a_third_of_the_digits_is_held_out_and_none_is_in_both(data: digits.Digits) -> None:
    assert len(data.train_labels) + len(data.test_labels) == 1797
    assert len(data.test_labels) == 599
    train = {image.tobytes() for image in data.train_images}
    shared = [image for image in data.test_images if image.tobytes() in train]
    assert not shared


def test_the_perceptron_learns_digits_to_97_percent(data: digits.Digits) -> None:
    outcome = digits.train_perceptron(data)
    assert outcome.accuracy >= 0.97
    assert outcome.losses[-1] < outcome.losses[0] / 4


def test_the_recurrent_network_learns_digits_to_95_percent(data: digits.Digits) -> None:
    assert digits.train_recurrent(data).accuracy >= 0.95


def test_a_training_step_gives_the_numbers_of_plain_numpy_and_finite_differences(
    data: digits.Digits,
) -> None:
    p = {
        name: value.astype(np.float64)
        for name, value in digits.recurrent_start(np.random.default_rng(0), hidden=7).items()
    }
    images = data.train_images[:5].astype(np.float64)
    truth = np.eye(10)[data.train_labels[:5]]
    value, slope = pyrelay.value_and_grad(digits.recurrent_loss)(p, images, truth)
    assert value == pytest.approx(digits.recurrent_loss(p, images, truth), rel=1e-6)
    for name in p:
        direction = np.random.default_rng(1).standard_normal(p[name].shape)
        size = 1e-4
        up = digits.recurrent_loss({**p, name: p[name] + size * direction}, images, truth)
        down = digits.recurrent_loss({**p, name: p[name] - size * direction}, images, truth)
        expected = (up - down) / (2 * size)
        assert np.sum(slope[name] * direction) == pytest.approx(expected, rel=2e-3, abs=1e-5)


def test_inventing_a_name_is_the_same_compiled_and_plain() -> None:
    rng = np.random.default_rng(0)
    p = names.start(rng, hidden=16)
    for _ in range(5):
        chance = rng.random(names.LONGEST)
        compiled, compiled_length = names.invent(p, chance)
        plain, plain_length = names.invent.py(p, chance)
        assert compiled_length == plain_length
        np.testing.assert_array_equal(compiled, plain)


@pytest.mark.slow
def test_the_network_learns_names_and_invents_new_ones() -> None:
    outcome = names.train(steps=200)
    assert np.mean(outcome.losses[-20:]) < 2.0 < outcome.losses[0]
    invented = names.invented_names(outcome.params, 10)
    assert len(set(invented)) == 10
    assert not set(invented) & set(names.real_names())


@pytest.mark.parametrize(
    ("function", "args"),
    [(demo.newton, (2.0, 1.0)), (demo.power, (1.01, 77)), (demo.heat, (np.eye(1, 50, 25)[0], 9))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_programs_of_the_demo_give_the_numbers_of_plain_python(function, args) -> None:
    np.testing.assert_allclose(pyrelay.jit(function)(*args), function(*args), rtol=1e-14)


@pytest.mark.slow
def test_the_demo_runs_from_start_to_end_within_a_minute() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "ten invented names:" in run.stdout
