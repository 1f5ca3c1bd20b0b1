"""onnxruntime: convolutions, as graphs of its operators with the weights as constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.programs.plain import as_arrays

__all__ = ["PROGRAMS", "as_arrays", "version"]


def session(nodes: list[Any], x: np.ndarray, constants: dict[str, np.ndarray]) -> Any:
    """A function of x that runs the graph; its result is called y."""
    made = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", x.shape), ("y", [None] * x.ndim))
    ]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    running = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: running.run(None, {"x": x})[0]


def convolution(**attributes: Any) -> Any:
    def setup(x: np.ndarray, w: np.ndarray) -> Any:
        groups = x.shape[1] // w.shape[1]
        node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, **attributes)
        return session([node], x, {"w": w})

    return setup


def residual_block(x: np.ndarray, *weights: np.ndarray) -> Any:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2", "b2"], ["c"], pads=[1] * 4),
        helper.make_node("Add", ["c", "x"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    return session(nodes, x, dict(zip(("w1", "b1", "w2", "b2"), weights, strict=True)))


PROGRAMS = {
    "conv3": convolution(pads=[1] * 4),
    "conv_stem": convolution(pads=[3] * 4, strides=[2, 2]),
    "conv1": convolution(),
    "conv_depthwise": convolution(pads=[1] * 4),
    "residual_block": residual_block,
}


def version() -> str:
    return onnxruntime.__version__
