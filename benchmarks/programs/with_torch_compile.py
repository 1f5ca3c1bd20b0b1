"""PyTorch compiled by torch.compile, for the programs without a long loop."""

from __future__ import annotations

import torch

from benchmarks.programs import torch_networks, with_torch
from benchmarks.programs.with_torch import as_arrays, gradient, program, version

__all__ = ["PROGRAMS", "as_arrays", "version"]

PROGRAMS = {
    "elementwise": program(torch.compile(with_torch.elementwise)),
    "matmul": program(torch.compile(torch.matmul)),
    "mlp_gradient": gradient(torch.compile(with_torch.mlp_loss), 4),
    "softmax": program(torch.compile(with_torch.softmax)),
    "layer_norm": program(torch.compile(with_torch.layer_norm)),
    "call": program(torch.compile(with_torch.call)),
    **{
        name: program(torch.compile(getattr(torch_networks, name)))
        for name in (
            "gelu_chain", "variance", "logsumexp", "conv3", "residual_block", "attention",
            "transformer",
        )
    },
    "transformer_gradient": gradient(
        torch.compile(torch_networks.transformer_loss), 6, value=False
    ),
    "cnn_gradient": gradient(torch.compile(torch_networks.cnn_loss), 3, value=False),
}
