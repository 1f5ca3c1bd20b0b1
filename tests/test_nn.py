"""pyrelay.nn: right as plain NumPy, the same compiled, stable, with derivatives that are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import pyrelay
from pyrelay import grad, nn
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir import walk
from pyrelay.ir.nodes import Loop
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import assert_same, inferred, interpreted

X = np.array([[-2.0, 0.0, 1.5], [0.25, 3.0, -0.5]])
EXTREME = np.array([-1e4, -40.0, 0.0, 40.0, 1e4])
LABELS = np.array([2, 0])

WANTED = [
    (nn.relu, (X,), np.maximum(X, 0)),
    (nn.sigmoid, (X,), scipy.special.expit(X)),
    (nn.silu, (X,), X * scipy.special.expit(X)),
    (nn.softplus, (X,), np.log1p(np.exp(X))),
    (nn.softmax, (X,), scipy.special.softmax(X, axis=-1)),
    (nn.softmax, (X, 0), scipy.special.softmax(X, axis=0)),
    (nn.log_softmax, (X,), scipy.special.log_softmax(X, axis=-1)),
    (nn.logsumexp, (X,), scipy.special.logsumexp(X)),
    (nn.logsumexp, (X, 1), scipy.special.logsumexp(X, axis=1)),
    (nn.logsumexp, (X, 1, True), scipy.special.logsumexp(X, axis=1, keepdims=True)),
    (nn.one_hot, (LABELS, 3), np.eye(3, dtype=np.float32)[LABELS]),
    (nn.cross_entropy, (X, LABELS), -scipy.special.log_softmax(X, 1)[[0, 1], LABELS].mean()),
    (nn.mse, (X, X * 0.5), np.mean((X * 0.5) ** 2)),
    (nn.layer_norm, (X,), (X - X.mean(1)[:, None]) / np.sqrt(X.var(1)[:, None] + 1e-5)),
    (nn.layer_norm, (X, X[0], X[1]), nn.layer_norm(X) * X[0] + X[1]),
]


@pytest.mark.parametrize(("function", "args", "wanted"), WANTED)
def test_values_are_right_plain_and_compiled(function: Any, args: Any, wanted: Any) -> None:
    plain = function(*args)
    np.testing.assert_allclose(plain, wanted, 1e-12)
    compiled = interpreted(function, args)
    if compiled.error is not None:
        raise compiled.error
    assert_same(compiled.result, plain)


def test_gelu_is_near_the_exact_one() -> None:
    exact = 0.5 * X * (1 + scipy.special.erf(X / np.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(X), exact, atol=5e-4)


@pytest.mark.parametrize("function", [nn.relu, nn.sigmoid, nn.softmax, nn.layer_norm, nn.gelu])
def test_single_precision_stays_single(function: Any) -> None:
    assert function(X.astype(np.float32)).dtype == np.float32


ELEMENTWISE = [nn.relu, nn.sigmoid, nn.silu, nn.gelu, nn.softplus, nn.softmax, nn.log_softmax]


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_values_and_derivatives_of_extreme_numbers_are_finite(function: Any) -> None:
    def program(x):
        return function(x), grad(lambda y: np.sum(function(y) * np.arange(5.0)))(x)

    outcome = interpreted(program, (EXTREME,), lambda module: lowered(module, "grad"))
    if outcome.error is not None:
        raise outcome.error
    value, gradient = outcome.result
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


def test_logsumexp_of_nothing_possible_is_minus_infinity() -> None:
    with np.errstate(divide="ignore"):
        assert nn.logsumexp(np.full(3, -np.inf)) == -np.inf


def test_the_derivative_of_cross_entropy_is_softmax_minus_one_hot() -> None:
    def program(x, labels):
        return grad(nn.cross_entropy)(x, labels)

    outcome = interpreted(program, (X, LABELS), lambda module: lowered(module, "grad"))
    wanted = (nn.softmax(X) - nn.one_hot(LABELS, 3)) / 2
    np.testing.assert_allclose(outcome.result, wanted, 1e-7)


def test_cross_entropy_of_a_label_that_is_no_class_raises() -> None:
    assert isinstance(interpreted(nn.cross_entropy, (X, LABELS + 1)).error, IndexError)


def test_stop_gradient_is_a_constant_to_derivatives() -> None:
    def program(x):
        return grad(lambda y: nn.stop_gradient(y) * y)(x)

    outcome = interpreted(program, (3.0,), lambda module: lowered(module, "grad"))
    assert outcome.result == 3.0


# -- convolutions ----------------------------------------------------------------------------------


def by_hand(x: np.ndarray, w: np.ndarray, stride: int, padding: int, groups: int) -> np.ndarray:
    """A convolution of images of two axes as its definition says."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    rows, columns = ((n + 2 * padding - k) // stride + 1 for n, k in zip(
        x.shape[2:], w.shape[2:], strict=True
    ))
    share, own = w.shape[0] // groups, w.shape[1]
    y = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for o, i, j in np.ndindex(w.shape[0], rows, columns):
        g = o // share
        part = padded[
            :, g * own : (g + 1) * own, i * stride : i * stride + w.shape[2],
            j * stride : j * stride + w.shape[3],
        ]
        y[:, o, i, j] = (part * w[o]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize(
    ("stride", "padding", "groups"), [(1, 0, 1), (2, 1, 1), (1, 2, 3), (3, 1, 6)]
)
def test_a_convolution_is_what_its_definition_says(stride: int, padding: int, groups: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 6, 7, 8)), rng.standard_normal((12, 6 // groups, 3, 2))
    wanted = by_hand(x, w, stride, padding, groups)

    def first(x, w):
        return nn.conv(x, w, stride=stride, padding=padding, groups=groups)

    def last(x, w):
        return nn.conv(
            x, w, stride=(stride, stride), padding=((padding, padding), (padding, padding)),
            groups=groups, channels_last=True,
        )

    np.testing.assert_allclose(first(x, w), wanted, atol=1e-12)
    np.testing.assert_allclose(pyrelay.jit(first)(x, w), wanted, atol=1e-12)
    turned = np.moveaxis(x, 1, -1), np.transpose(w, (2, 3, 1, 0))
    compiled = pyrelay.jit(last)(*turned)
    np.testing.assert_allclose(np.moveaxis(compiled, -1, 1), wanted, atol=1e-12)


def test_convolutions_of_one_program_have_gradients_of_every_order() -> None:
    rng = np.random.default_rng(1)

    def loss(x, w, b, v):
        y = np.tanh(nn.conv(x, w, b, stride=2, padding="same", dilation=(1, 2)))
        return (nn.conv_transpose(y, v, stride=2, padding=1, output_padding=1, groups=2) ** 3).sum()

    args = [rng.standard_normal(s) * 0.5 for s in ((2, 3, 5, 6), (4, 3, 2, 3), (4,), (4, 2, 3, 3))]
    assert np.isclose(pyrelay.jit(loss)(*args), loss(*args))
    pyrelay.check_grads(loss, args, modes="rev", argnums=0)


def test_the_transpose_of_a_convolution_is_what_the_convolution_does_to_cotangents() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, 3, 8, 7)), rng.standard_normal((4, 3, 3, 3))
    y = nn.conv(x, w, stride=2, padding=1)
    g = rng.standard_normal(y.shape)
    back = nn.conv_transpose(g, w, stride=2, padding=1, output_padding=(1, 0))
    assert np.isclose((back * x).sum(), (g * y).sum())


def test_a_new_size_of_image_compiles_nothing() -> None:
    f = pyrelay.jit(lambda x, w: nn.conv(x, w, padding=1))
    w = np.ones((2, 3, 3, 3))
    for n in (5, 9, 40):
        x = np.random.default_rng(n).standard_normal((2, 3, n, n + 2))
        np.testing.assert_allclose(f(x, w), f.py(x, w), atol=1e-12)
    assert f.cache_info().compilations == 1


def test_weights_that_reach_beyond_the_image_are_refused() -> None:
    def f(x, w):
        return nn.conv(x, w)

    args = np.ones((1, 1, 2, 5)), np.ones((1, 1, 3, 3))
    for g in (f, pyrelay.jit(f)):
        with pytest.raises(ValueError, match="the weights reach beyond axis 0 of the image"):
            g(*args)
    with pytest.raises(ValueError, match="the image has 3 channels, the weights take 2"):
        pyrelay.jit(f)(np.ones((1, 3, 5, 5)), np.ones((4, 2, 3, 3)))


# -- closed forms ----------------------------------------------------------------------------------

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((2, 4, 5, 6))
Y = RANDOM.standard_normal((2, 3))
TARGETS = np.array([[0.0, 1.0, 0.25], [1.0, 0.5, 0.0]])


def pooled(image, window, stride, padding, pick, fill):
    """Pooling by two loops over the positions."""
    padded = np.pad(image, ((0, 0), (0, 0), *((p, p) for p in padding)), constant_values=fill)
    rows, columns = (
        (padded.shape[2 + k] - window[k]) // stride[k] + 1 for k in range(2)
    )
    out = np.zeros((*image.shape[:2], rows, columns))
    for r in range(rows):
        for c in range(columns):
            top, left = r * stride[0], c * stride[1]
            part = padded[:, :, top : top + window[0], left : left + window[1]]
            out[:, :, r, c] = pick(part, axis=(2, 3))
    return out


def test_pooling_is_what_loops_over_the_windows_give() -> None:
    for window, stride, padding in (((2, 3), (1, 2), (0, 0)), ((3, 3), (2, 2), (1, 1))):
        for function, pick, fill in (
            (nn.max_pool, np.max, -np.inf), (nn.avg_pool, np.mean, 0.0)
        ):
            wanted = pooled(IMAGE, window, stride, padding, pick, fill)
            got = function(IMAGE, window, stride, padding)
            np.testing.assert_allclose(got, wanted, 1e-12)
            last = function(np.moveaxis(IMAGE, 1, -1), window, stride, padding, channels_last=True)
            np.testing.assert_allclose(np.moveaxis(last, -1, 1), wanted, 1e-12)
    kept = nn.avg_pool(np.ones((1, 1, 4, 4)), 3, 2, 1, count_include_pad=False)
    np.testing.assert_allclose(kept, np.ones((1, 1, 2, 2)))


def test_adaptive_pooling_takes_bins_from_floor_to_ceiling() -> None:
    row = np.arange(5.0).reshape(1, 1, 5)
    np.testing.assert_allclose(nn.adaptive_avg_pool(row, 2)[0, 0], [1.0, 3.0])
    np.testing.assert_allclose(nn.adaptive_max_pool(row, 3)[0, 0], [1.0, 3.0, 4.0])
    whole = nn.adaptive_avg_pool(IMAGE, 1)[:, :, 0, 0]
    np.testing.assert_allclose(whole, nn.global_avg_pool(IMAGE))


def test_norms_of_images_have_mean_0_and_variance_1_where_they_say() -> None:
    parts = nn.group_norm(IMAGE, 2, epsilon=0.0).reshape(2, 2, -1)
    np.testing.assert_allclose(parts.mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose(parts.var(-1), 1)
    np.testing.assert_allclose(nn.instance_norm(IMAGE, epsilon=0.0).var((2, 3)), 1)
    mean, variance = np.zeros(4), np.ones(4)
    y, moved_mean, moved_variance = nn.batch_norm(IMAGE, mean, variance, training=True, epsilon=0)
    np.testing.assert_allclose(y.var((0, 2, 3)), 1)
    np.testing.assert_allclose(moved_mean, 0.1 * IMAGE.mean((0, 2, 3)))
    np.testing.assert_allclose(moved_variance, 0.9 + 0.1 * IMAGE.var((0, 2, 3), ddof=1))
    still, _, _ = nn.batch_norm(IMAGE, mean, variance + 3.0, epsilon=0.0)
    np.testing.assert_allclose(still, IMAGE / 2)
    np.testing.assert_allclose((nn.rms_norm(Y, epsilon=0.0) ** 2).mean(-1), 1)


def test_losses_are_their_definitions() -> None:
    p = scipy.special.expit(Y)
    wanted = -(TARGETS * np.log(p) + (1 - TARGETS) * np.log(1 - p))
    np.testing.assert_allclose(nn.bce_with_logits(Y, TARGETS, reduction="none"), wanted, 1e-12)
    weighted = -(3.0 * TARGETS * np.log(p) + (1 - TARGETS) * np.log(1 - p))
    np.testing.assert_allclose(nn.bce_with_logits(Y, TARGETS, 3.0), weighted.mean(), 1e-12)
    np.testing.assert_allclose(
        nn.huber(Y, TARGETS, 0.7, reduction="sum"), scipy.special.huber(0.7, Y - TARGETS).sum()
    )
    logs = scipy.special.log_softmax(Y, -1)
    hot = nn.one_hot(LABELS, 3, float)
    np.testing.assert_allclose(nn.cross_entropy(Y, hot), nn.cross_entropy(Y, LABELS), 1e-12)
    smooth = -((0.8 * hot + 0.2 / 3) * logs).sum(-1).mean()
    np.testing.assert_allclose(nn.cross_entropy(Y, LABELS, label_smoothing=0.2), smooth, 1e-12)
    np.testing.assert_allclose(
        nn.cross_entropy(Y, np.array([2, -1]), ignore_index=-1), -logs[0, 2], 1e-12
    )
    with pytest.raises(ValueError, match="reduction is"):
        nn.mse(Y, Y, reduction="max")


def test_attention_is_a_weighted_mean_of_the_values_that_take_part() -> None:
    q, k, v = RANDOM.standard_normal((3, 2, 4, 5))
    weights = scipy.special.softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(5), -1)
    np.testing.assert_allclose(nn.scaled_dot_product_attention(q, k, v), weights @ v, 1e-12)
    causal = nn.scaled_dot_product_attention(q, k, v, causal=True)
    np.testing.assert_allclose(causal[:, 0], v[:, 0])
    np.testing.assert_allclose(causal[:, -1], (weights @ v)[:, -1], 1e-12)
    nothing = nn.scaled_dot_product_attention(q, k, v, np.zeros((4, 4), bool))
    np.testing.assert_array_equal(nothing, np.zeros_like(v))


def test_dropout_keeps_the_mean_and_draws_one_number_for_each_element() -> None:
    x = np.ones((300, 200), np.float32)
    y = nn.dropout(x, 0.25, np.random.default_rng(3))
    assert y.dtype == np.float32
    assert set(np.unique(y).tolist()) == {0.0, float(np.float32(1 / 0.75))}
    assert y.mean() == pytest.approx(1.0, abs=0.02)
    np.testing.assert_array_equal(y == 0, np.random.default_rng(3).random(x.shape) < 0.25)


def test_the_exact_gelu_and_units_with_slopes() -> None:
    exact = 0.5 * X * (1 + scipy.special.erf(X / np.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(X, approximate=False), exact, 1e-12)
    np.testing.assert_allclose(nn.leaky_relu(X, 0.1), np.maximum(X, 0.1 * X))
    np.testing.assert_allclose(nn.elu(X, 2.0), np.where(X > 0, X, 2 * np.expm1(X)))


@pytest.mark.parametrize("options", [{"stride": 2, "padding": 1}, {"stride": (1, 2)}])
def test_derivatives_of_convolutions_with_options_from_a_closure(options: dict[str, Any]) -> None:
    settings = {"first": options, "rounds": 2, "scale": 1.5}

    def loss(w: Any, x: Any) -> Any:
        total = (nn.conv2d(x, w, **options) ** 2).sum()
        for _ in range(settings["rounds"]):
            total = settings["scale"] * total + (nn.conv2d(x, w, **settings["first"]) ** 3).sum()
        return total

    w, x = RANDOM.standard_normal((2, 2, 3, 3)), RANDOM.standard_normal((1, 2, 6, 5))
    value, found = pyrelay.value_and_grad(loss)(w, x)
    assert value == pytest.approx(loss(w, x), rel=1e-12)
    along = RANDOM.standard_normal(w.shape)
    step = (loss(w + 1e-6 * along, x) - loss(w - 1e-6 * along, x)) / 2e-6
    assert (found * along).sum() == pytest.approx(step, rel=1e-6)
    settings["rounds"] = 1
    assert pyrelay.value_and_grad(loss)(w, x)[0] == pytest.approx(loss(w, x), rel=1e-12)


def test_small_windows_are_one_kernel_on_gpus() -> None:
    x = np.ones((2, 3, 8, 8), np.float32)
    for function, most in (
        (lambda x: nn.max_pool(x, 2), 1), (lambda x: nn.avg_pool(x, 2), 2),
        (lambda x: nn.max_pool(x, 3, 2, 1), 3),
        (grad(lambda x: (nn.max_pool(x, 2) ** 2).sum()), 6),
    ):
        module = lowered(inferred(function, (x,)).module, "fuse", on="cuda_emulator")
        assert not any(isinstance(let.rhs, Loop) for let in walk.nested_lets(module.main.body))
        assert len(plan_code(plan(module, TARGET)).texts) <= most


@needs_compiler
def test_windows_of_any_size_give_the_same_on_gpus() -> None:
    x = np.random.default_rng(4).normal(size=(2, 2, 11, 13))

    def pooled(x: Any) -> Any:
        return nn.max_pool(x, (3, 2), (2, 1), 1), nn.max_pool(x, 9, 1), nn.avg_pool(x, 2)

    for mine, theirs in zip(pyrelay.jit(pooled, device="cuda_emulator")(x), pooled(x), strict=True):
        np.testing.assert_allclose(mine, theirs)


@needs_compiler
@pytest.mark.slow
def test_gradients_of_windows_are_those_of_the_cpu_on_gpus() -> None:
    x = np.random.default_rng(4).normal(size=(2, 2, 11, 13)).round()  # with equal elements

    def loss(x: Any) -> Any:
        y = nn.max_pool(x, (3, 2), (2, 1), 1)
        return (y**2).sum() + np.cos(nn.max_pool(x, 9, 1)).sum() + (nn.avg_pool(x, 2) ** 3).sum()

    np.testing.assert_allclose(grad(loss, device="cuda_emulator")(x), grad(loss)(x), rtol=1e-12)
