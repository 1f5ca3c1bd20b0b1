"""Who is timed, and what each has no program for.

In: nothing. Out: `MODULES`, the frameworks in the order of the table's columns with the modules of
their programs; `WITHOUT`, the programs that a framework is not asked for. A framework has all
others: a test holds that without importing any of them, since a name that is missing from a table
would only leave an empty cell behind.
"""

from __future__ import annotations

from benchmarks.programs import (
    arrays,
    gradients,
    image_networks,
    networks,
    recursions,
    rows,
    trees,
)

OURS = "pyrelay"
REFERENCE = "numpy"
MODULES = {
    "numpy": "plain",
    "numba": "with_numba",
    "jax": "with_jax",
    "torch": "with_torch",
    "torch.compile": "with_torch_compile",
    "onnxruntime": "with_onnxruntime",
    "pyrelay": "compiled",
}

_LOOPS = frozenset(
    {
        "stores", "stores_gradient", "escape", "nest", *arrays.PROGRAMS, *rows.PROGRAMS,
        *gradients.GRADIENTS,
    }
)  # fmt: skip
_SCALARS = frozenset({"newton", "fibonacci", "depth", *recursions.PROGRAMS})
_TREES = frozenset({*trees.PROGRAMS, "tree_lstm_gradient"})
_IMAGES = frozenset(image_networks.FORWARD)
_LAYERS = frozenset({"conv3", "conv_stem", "conv1", "conv_depthwise", "residual_block"})
_GRADIENTS = frozenset({"lstm_gradient", "mlp_gradient", *networks.GRADIENTS})
_RECURRENT = frozenset(
    {"lstm_forward", "lstm_gradient", "generator"}
    | {f"{name}{kind}" for name in ("rnn", "gru", "lstm_batch") for kind in ("", "_gradient")}
)

WITHOUT: dict[str, frozenset[str]] = {
    # Nobody has derived these by hand; the results of a peer check them.
    "numpy": frozenset({*networks.GRADIENTS, *gradients.GRADIENTS}),
    # No derivatives, no objects, no vector mathematics: what it is for is loops.
    "numba": frozenset({*networks.FORWARD, *gradients.GRADIENTS, "depth"}) | _TREES | _IMAGES
    | _GRADIENTS,
    # Recursion, and loops that neither `scan` nor `while_loop` says without being another program.
    "jax": frozenset({"escape", "nest", "sieve", "fibonacci", "depth", "fixed_points_gradient"})
    | frozenset(rows.PROGRAMS) | frozenset(recursions.PROGRAMS) | _TREES,
    # A tensor's element costs microseconds: such loops would take minutes.
    "torch": _LOOPS | _SCALARS | frozenset({"tree_sum", "expression"}),
    # Nor are long loops for torch.compile, which unrolls them; networks run as torch's own layers.
    "torch.compile": _LOOPS | _SCALARS | _TREES | _IMAGES | _RECURRENT
    | frozenset({"call_dict", "conv1", "conv_stem", "conv_depthwise"}),
    # Graphs of layers.
    "onnxruntime": frozenset(
        {"elementwise", "matmul", "softmax", "layer_norm", "call", "call_dict"}
    )
    | (frozenset(networks.FORWARD) - _LAYERS) | _LOOPS | _SCALARS | _TREES | _GRADIENTS
    | _RECURRENT,
    "pyrelay": frozenset(),
}  # fmt: skip
