"""Times on a GPU, where there is one: pyrelay beside CuPy, JAX and PyTorch, as they are installed.

In: the programs of `benchmarks.gpu`. Out: `Timing`s. Arguments lie on the device, and what is timed
is a run of calls between two events of the stream, the least of several runs. CuPy runs the
programs as they stand, JAX with its own numpy in the place of NumPy's, PyTorch a version of each
under torch.compile.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import pyrelay

ROUNDS, CALLS, WARM = 7, 20, 5


@dataclass(frozen=True)
class Timing:
    """A program, and microseconds of a call by library."""

    program: str
    microseconds: dict[str, float] = field(default_factory=dict)


def least(call: Callable[[], Any], cupy: Any) -> float:
    """Microseconds of a call: the least of some runs, each between two events."""
    for _ in range(WARM):
        call()
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    found = []
    for _ in range(ROUNDS):
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, end) * 1e3 / CALLS)
    return float(min(found))


def rebuilt(module: ModuleType, numpy: Any) -> dict[str, Any]:
    """The functions of a module with another library in the place of `np`."""
    space: dict[str, Any] = {**vars(module), "np": numpy}
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            space[name] = FunctionType(value.__code__, space, name, value.__defaults__)
    return space


def timings(module: ModuleType, cupy: Any) -> list[Timing]:
    """The times of the programs of a module, with what is installed beside CuPy."""
    found = []
    for name, (function, argnums, args) in module.TIMED.items():
        given = [cupy.asarray(a) for a in args]
        mine = pyrelay.jit(function) if argnums is None else pyrelay.grad(function, argnums)
        times = {"pyrelay": least(functools.partial(mine, *given), cupy)}
        if argnums is None:
            times["cupy"] = least(functools.partial(function, *given), cupy)
        for library, peer in (("jax", _jax), ("torch", _torch)):
            if importlib.util.find_spec(library) is not None:
                call = peer(module, function.__name__, argnums, given)
                if call is not None:
                    times[library] = least(call, cupy)
        found.append(Timing(name, times))
    return found


def _jax(
    module: ModuleType, name: str, argnums: Any, given: list[Any]
) -> Callable[[], Any] | None:
    jax = importlib.import_module("jax")
    function = rebuilt(module, importlib.import_module("jax.numpy"))[name]
    made = jax.jit(function if argnums is None else jax.grad(function, argnums))
    args = [jax.dlpack.from_dlpack(a) for a in given]
    # Work of JAX is on a stream of its own, which the events do not see: wait for each call.
    return lambda: jax.block_until_ready(made(*args))


def _torch(
    module: ModuleType, name: str, argnums: Any, given: list[Any]
) -> Callable[[], Any] | None:
    torch = importlib.import_module("torch")
    versions = torch_versions(torch)
    if name not in versions:
        return None
    args = [torch.from_dlpack(a) for a in given]
    if argnums is None:
        made = torch.compile(versions[name])
        return lambda: made(*args)
    made = torch.compile(torch.func.grad(versions[name], argnums))
    return lambda: made(*args)


def torch_versions(torch: Any) -> dict[str, Callable[..., Any]]:
    """The programs as a user of PyTorch writes them."""
    functional = torch.nn.functional

    def perceptron(x: Any, w: Any, v: Any, y: Any) -> Any:
        error = torch.tanh(x @ w) @ v - y
        return (error * error).sum()

    return {
        "elementwise": lambda x, w, b: torch.tanh(x * w + b) * torch.exp(-x * x),
        "softmax": lambda x: torch.softmax(x, 1),
        "softmax_loss": lambda x: (torch.softmax(x, 1) * x).sum(),
        "layer_norm": lambda x, scale, shift: functional.layer_norm(x, x.shape[1:], scale, shift),
        "total": lambda x: (x * x).sum(),
        "column_sums": lambda x: x.sum(0),
        "perceptron": perceptron,
        "attention": functional.scaled_dot_product_attention,
        "running_sum": lambda x: torch.cumsum(x, 0),
        "picked": lambda table, i: (table[i] * table[i]).sum(),
    }


def table(found: list[Timing]) -> str:
    """The times as a table of Markdown; cells of what is not installed are empty."""
    names = list(dict.fromkeys(name for t in found for name in t.microseconds))
    head = "| microseconds of a call | " + " | ".join(names) + " |"
    lines = [head, "|---" * (len(names) + 1) + "|"]
    for timing in found:
        cells = [f"{timing.microseconds[n]:.1f}" if n in timing.microseconds else "" for n in names]
        lines.append(f"| {timing.program} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
