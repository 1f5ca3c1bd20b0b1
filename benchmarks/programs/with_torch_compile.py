"""PyTorch compiled by torch.compile, for the programs without a long loop."""

from __future__ import annotations

import torch

from benchmarks.programs import with_torch
from benchmarks.programs.with_torch import as_arrays, gradient, program, version

__all__ = ["PROGRAMS", "as_arrays", "version"]

PROGRAMS = {
    "elementwise": program(torch.compile(with_torch.elementwise)),
    "matmul": program(torch.compile(torch.matmul)),
    "mlp_gradient": gradient(torch.compile(with_torch.mlp_loss), 4),
    "softmax": program(torch.compile(with_torch.softmax)),
    "layer_norm": program(torch.compile(with_torch.layer_norm)),
    "call": program(torch.compile(with_torch.call)),
}
