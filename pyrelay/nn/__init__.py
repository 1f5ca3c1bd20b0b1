"""Functions of neural networks, in plain Python over NumPy.

In and out: NumPy arrays (or numbers) of floats; each keeps the dtype of its argument. They run as
they are, and compile like any function of a user's: nothing in the compiler knows them. Each is
written so that neither it nor its derivative overflows where the result is finite.
"""

from pyrelay.nn.activations import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    logsumexp,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    stop_gradient,
)
from pyrelay.nn.attention import dense, embedding, scaled_dot_product_attention
from pyrelay.nn.convolution import conv, conv1d, conv2d, conv3d, conv_transpose
from pyrelay.nn.losses import bce_with_logits, cross_entropy, huber, mae, mse, nll, one_hot
from pyrelay.nn.normalisation import (
    batch_norm,
    dropout,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from pyrelay.nn.pooling import (
    adaptive_avg_pool,
    adaptive_max_pool,
    avg_pool,
    global_avg_pool,
    global_max_pool,
    max_pool,
)

__all__ = [
    "adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "batch_norm", "bce_with_logits", "conv",
    "conv1d", "conv2d", "conv3d", "conv_transpose", "cross_entropy", "dense", "dropout", "elu",
    "embedding", "gelu", "global_avg_pool", "global_max_pool", "group_norm", "huber",
    "instance_norm", "layer_norm", "leaky_relu", "log_softmax", "logsumexp", "mae", "max_pool",
    "mse", "nll", "one_hot", "relu", "rms_norm", "scaled_dot_product_attention", "sigmoid", "silu",
    "softmax", "softplus", "stop_gradient",
]
