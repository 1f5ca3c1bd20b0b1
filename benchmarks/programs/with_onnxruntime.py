"""onnxruntime: convolutions and networks, as graphs of its operators with constant weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.programs import image_layers
from benchmarks.programs.plain import as_arrays

__all__ = ["PROGRAMS", "as_arrays", "version"]


def session(
    nodes: list[Any], x: np.ndarray, constants: dict[str, np.ndarray], rank: int = 4
) -> Any:
    """A function of x that runs the graph; its result, of this rank, is called y."""
    made = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", x.shape), ("y", [None] * rank))
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


class Graph:
    """What `image_layers` asks for: each layer adds nodes, and gives the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def _node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def conv(self, x: str, w: str, b: str, stride: int, padding: int, groups: int) -> str:
        return self._node(
            "Conv", x, w, b, strides=[stride] * 2, pads=[padding] * 4, group=groups
        )

    def relu(self, x: str) -> str:
        return self._node("Relu", x)

    def relu6(self, x: str) -> str:
        return self._node("Clip", x, "zero", "six")

    def add(self, x: str, y: str) -> str:
        return self._node("Add", x, y)

    def max_pool(self, x: str, window: int, stride: int, padding: int) -> str:
        return self._node(
            "MaxPool", x, kernel_shape=[window] * 2, strides=[stride] * 2, pads=[padding] * 4
        )

    def mean(self, x: str) -> str:
        return self.flat(self._node("GlobalAveragePool", x))

    def flat(self, x: str) -> str:
        return self._node("Flatten", x)

    def dense(self, x: str, w: str, b: str) -> str:
        return self._node("Gemm", x, w, b)


def network(name: str) -> Any:
    def setup(x: np.ndarray, *weights: np.ndarray) -> Any:
        graph = Graph()
        constants = {f"w{k}": w for k, w in enumerate(weights)}
        last = image_layers.NETWORKS[name](graph, "x", *constants)
        graph.nodes.append(helper.make_node("Identity", [last], ["y"]))
        if any(node.op_type == "Clip" for node in graph.nodes):
            constants |= {"zero": np.array(0, np.float32), "six": np.array(6, np.float32)}
        return session(graph.nodes, x, constants, rank=2)

    return setup


PROGRAMS = {
    **{name: network(name) for name in image_layers.NETWORKS},
    "conv3": convolution(pads=[1] * 4),
    "conv_stem": convolution(pads=[3] * 4, strides=[2, 2]),
    "conv1": convolution(),
    "conv_depthwise": convolution(pads=[1] * 4),
    "residual_block": residual_block,
}


def version() -> str:
    return onnxruntime.__version__
