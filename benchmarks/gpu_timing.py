"""Times on a GPU, where there is one: pyrelay beside CuPy, JAX and PyTorch, as they are installed.

In: the programs of `benchmarks.gpu`. Out: `Timing`s. Arguments lie on the device, and what is timed
is a run of calls up to the end of the last one's work, the least of several runs. CuPy runs the
programs as they stand, JAX with its own numpy in the place of NumPy's or a version with `scan`,
PyTorch a version of each, as it is ("torch"), replayed as a CUDA graph where launches are what is
measured, and under torch.compile.

What fails is noted beside the others, and so is what there was no time for.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import pyrelay
from pyrelay import config

ROUNDS, CALLS, WARM = 7, 20, 5
_ENOUGH = 0.5  # seconds for the runs of one program
_COPIED = 1 << 29  # bytes

#: The columns, in the order in which they are timed: what takes long to compile comes last.
LIBRARIES = ("pyrelay", "cupy", "jax", "torch", "torch graph", "torch.compile")

#: Programs that PyTorch is to replay as a CUDA graph.
GRAPHED = ("small_kernels", "lstm", "lstm_batch")


@dataclass
class Timing:
    """A program; microseconds of a call, or what went wrong, by library.

    first: seconds of pyrelay's first call. compiled: seconds of that in NVRTC. kernels: how many it
    compiled. rate: bytes that have to be moved in a second, over what a copy moves; 0 if unknown.
    """

    program: str
    microseconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    first: float = 0.0
    compiled: float = 0.0
    kernels: int = 0
    rate: float = 0.0


def least(call: Callable[[], Any], wait: Callable[[Any], None]) -> float:
    """Microseconds of a call: the least of some runs."""
    for _ in range(WARM):
        wait(call())
    found: list[float] = []
    begun = time.perf_counter()
    while len(found) < ROUNDS and (not found or time.perf_counter() - begun < _ENOUGH):
        started = time.perf_counter()
        for _ in range(CALLS):
            given = call()
        wait(given)
        found.append((time.perf_counter() - started) * 1e6 / CALLS)
    return min(found)


def rebuilt(module: ModuleType, numpy: Any) -> dict[str, Any]:
    """The functions of a module with another library in the place of `np`."""
    space: dict[str, Any] = {**vars(module), "np": numpy}
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            space[name] = FunctionType(value.__code__, space, name, value.__defaults__)
    return space


def timings(
    module: ModuleType, cupy: Any, seconds: float, note: Callable[[list[Timing]], None]
) -> list[Timing]:
    """The times of the programs of a module. `note` is given what is known after each of them."""
    # JAX would take most of the memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    until = time.perf_counter() + seconds
    found = [Timing(name) for name in module.TIMED]
    rate = _attempt(lambda: copied(cupy), {}, "copy")
    for library in LIBRARIES:
        if library not in ("pyrelay", "cupy") and not _installed(re.split("[ .]", library)[0]):
            continue
        for timing, (function, argnums, args) in zip(found, module.TIMED.values(), strict=True):
            if library == "torch graph" and function.__name__ not in GRAPHED:
                continue
            if time.perf_counter() > until:
                timing.errors[library] = "out of time"
                continue
            one = functools.partial(
                _timed, library, module, cupy, function, argnums, args, timing
            )
            made = _attempt(one, timing.errors, library)
            if made is not None:
                timing.microseconds[library] = made
                if library == "pyrelay" and rate and argnums is None:
                    timing.rate = _least_bytes(timing.program, module) / (made * 1e-6) / rate
            note(found)
    return found


def copied(cupy: Any) -> float:
    """Bytes that a copy within the device reads and writes in a second."""
    source, target = cupy.zeros(_COPIED, np.uint8), cupy.empty(_COPIED, np.uint8)
    took = least(lambda: cupy.copyto(target, source), lambda _: _wait(cupy))
    return 2 * _COPIED / (took * 1e-6)


def _least_bytes(program: str, module: ModuleType) -> int:
    counted: dict[str, int] = getattr(module, "LEAST", {})
    return counted.get(program, 0)


def _attempt(work: Callable[[], float], errors: dict[str, str], name: str) -> float | None:
    try:
        return work()
    except Exception as error:  # a row that fails is told, the others go on
        errors[name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:200]
        return None


def _timed(
    library: str, module: ModuleType, cupy: Any, function: Callable[..., Any], argnums: Any,
    args: tuple[Any, ...], timing: Timing,
) -> float:
    given = [on_device(cupy, a) for a in args]
    # What is called after a precision has products of that one, with every library.
    fast = timing.program.endswith((" in TF32", " in bfloat16"))
    with config.override(matmul_precision="tf32" if fast else "highest"):
        return _timed_as(library, module, cupy, function, argnums, given, timing, fast)


def _timed_as(
    library: str, module: ModuleType, cupy: Any, function: Callable[..., Any], argnums: Any,
    given: list[Any], timing: Timing, fast: bool,
) -> float:
    match library:
        case "pyrelay":
            call = _mine(function, argnums, given, timing, cupy)
        case "cupy":
            if argnums is not None:
                raise NotImplementedError("CuPy has no gradients")
            call = functools.partial(function, *given)
        case "jax":
            return _jax(module, function.__name__, argnums, given, fast)
        case _:
            torch = importlib.import_module("torch")
            torch.set_float32_matmul_precision("high" if fast else "highest")
            call = _torch(function.__name__, argnums, given, library)
    return least(call, lambda _: _wait(cupy))


def _wait(cupy: Any) -> None:
    cupy.cuda.Device().synchronize()


def on_device(cupy: Any, array: Any) -> Any:
    """An argument on the device: small random numbers for zeros, whose values nobody told."""
    random = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    if not random or np.any(array.reshape(-1)[:1]):
        return cupy.asarray(array)
    made = cupy.random.random(array.shape, dtype=np.float32)
    return (made - np.float32(0.5)).astype(array.dtype)


def _mine(
    function: Callable[..., Any], argnums: Any, given: list[Any], timing: Timing, cupy: Any
) -> Callable[[], Any]:
    made = pyrelay.jit(function) if argnums is None else pyrelay.grad(function, argnums)
    before = list(_compilations())
    started = time.perf_counter()
    made(*given)
    _wait(cupy)
    timing.first = time.perf_counter() - started
    new = list(_compilations())[len(before) :]
    timing.compiled, timing.kernels = sum(c.seconds for c in new), sum(c.kernels for c in new)
    return functools.partial(made, *given)


def _compilations() -> Iterator[Any]:
    from pyrelay.devices import cuda

    yield from cuda.driver().compiler.compilations


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def handed_over(array: Any, take: Callable[[Any], Any], brain: Any) -> Any:
    """An array of CuPy's as another library's; bfloat16 by its bits, which all of them know."""
    if array.dtype.name != "bfloat16":
        return take(array)
    return take(array.view(np.int16)).view(brain)


def _jax(
    module: ModuleType, name: str, argnums: Any, given: list[Any], fast: bool
) -> float:
    jax = importlib.import_module("jax")
    function = jax_versions(jax).get(name)
    if function is None:
        function = rebuilt(module, importlib.import_module("jax.numpy"))[name]
    made = jax.jit(function if argnums is None else jax.grad(function, argnums))
    args = [handed_over(a, jax.dlpack.from_dlpack, a.dtype) for a in given]
    with jax.default_matmul_precision("tensorfloat32" if fast else "highest"):
        return least(lambda: made(*args), jax.block_until_ready)


def jax_versions(jax: Any) -> dict[str, Callable[..., Any]]:
    """The programs with loops as a user of JAX writes them."""
    np = jax.numpy

    def lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            h, c = state
            forget, keep, new, give = np.split(row + h @ wh + b, 4, -1)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(keep) * np.tanh(new)
            return (jax.nn.sigmoid(give) * np.tanh(c), c), None

        start = np.zeros((*x.shape[1:-1], wh.shape[0]), x.dtype)
        return jax.lax.scan(step, (start, start), x @ wx)[0][0]

    def lstm_loss(*args: Any) -> Any:
        h = lstm(*args)
        return (h * h).sum()

    def conjugate_gradients(a: Any, b: Any, least: Any) -> Any:
        def step(carried: Any) -> Any:
            x, r, p, size = carried
            ap = a @ p
            step = size / (p * ap).sum()
            x, r = x + step * p, r - step * ap
            new = (r * r).sum()
            return x, r, r + (new / size) * p, new

        first = jax.numpy.zeros_like(b), b, b, (b * b).sum()
        return jax.lax.while_loop(lambda carried: carried[3] > least, step, first)[0]

    def characters(state: Any, w: Any, u: Any, stop: Any) -> Any:
        def goes_on(carried: Any) -> Any:
            _, count, last = carried
            return (count < 256) & (last != stop)

        def step(carried: Any) -> Any:
            state, count, _ = carried
            state = np.tanh(state @ w)
            letter = np.argmax(state @ u).astype(np.int32)
            return state, count + (letter != stop), letter

        return jax.lax.while_loop(goes_on, step, (state, 0, np.int32(-2)))[:2]

    return {
        "lstm": lstm, "lstm_batch": lstm, "lstm_loss": lstm_loss, "characters": characters,
        "conjugate_gradients": conjugate_gradients,
    }


def _torch(name: str, argnums: Any, given: list[Any], library: str) -> Callable[[], Any]:
    torch = importlib.import_module("torch")
    function = torch_versions(torch).get(name)
    if function is None:
        raise NotImplementedError(f"no version of {name} for PyTorch")
    args = [handed_over(a, torch.from_dlpack, torch.bfloat16) for a in given]
    made = function if argnums is None else torch_gradient(torch, function, argnums)
    if library == "torch graph":
        return _replayed(torch, lambda: made(*args))
    made = torch.compile(made) if library == "torch.compile" else made
    return lambda: made(*args)


def torch_gradient(torch: Any, function: Callable[..., Any], argnums: Any) -> Callable[..., Any]:
    """The gradient by PyTorch's tape, which knows the derivatives of cuDNN."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums

    def gradient(*args: Any) -> Any:
        own = [a.detach().requires_grad_(k in numbers) for k, a in enumerate(args)]
        return torch.autograd.grad(function(*own), [own[k] for k in numbers])

    return gradient


def _replayed(torch: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    """A call as a CUDA graph, captured in a stream of its own as PyTorch's manual says."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return lambda: graph.replay()


def torch_versions(torch: Any) -> dict[str, Callable[..., Any]]:
    """The programs as a user of PyTorch writes them."""
    functional = torch.nn.functional

    def perceptron(x: Any, w: Any, v: Any, y: Any) -> Any:
        error = torch.tanh(x @ w) @ v - y
        return (error * error).sum()

    def lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
        return lstm_batch(x[:, None], wx, wh, b)[0]

    def lstm_batch(x: Any, wx: Any, wh: Any, b: Any) -> Any:
        # cuDNN's order of the gates is another one, its work the same.
        state = torch.zeros(1, x.shape[1], wh.shape[0], device=x.device, dtype=x.dtype)
        weights = [wx.T.contiguous(), wh.T.contiguous(), b, torch.zeros_like(b)]
        return torch._VF.lstm(
            x, (state, state), weights, True, 1, 0.0, wh.requires_grad, False, False
        )[0][-1]

    def lstm_loss(*args: Any) -> Any:
        h = lstm(*args)
        return (h * h).sum()

    def characters(state: Any, w: Any, u: Any, stop: Any) -> Any:
        count = 0
        while count < 256:
            state = torch.tanh(state @ w)
            if torch.argmax(state @ u) == stop:
                break
            count += 1
        return state, count

    def conjugate_gradients(a: Any, b: Any, least: Any) -> Any:
        x, r = torch.zeros_like(b), b
        p, size = r, (r * r).sum()
        while size > least:
            ap = a @ p
            step = size / (p * ap).sum()
            x, r = x + step * p, r - step * ap
            new = (r * r).sum()
            p, size = r + (new / size) * p, new
        return x

    def small_kernels(x: Any) -> Any:
        for _ in range(17):
            total = (x * x).sum()
            x = torch.tanh(x) + x / total
        return x

    def transformer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, up: Any, down: Any) -> Any:
        n, d = x.shape
        rows = functional.layer_norm(x, (d,))
        q, k, v = ((rows @ w).view(n, 16, d // 16).transpose(0, 1) for w in (wq, wk, wv))
        mixed = functional.scaled_dot_product_attention(q, k, v)
        x = x + mixed.transpose(0, 1).reshape(n, d) @ wo
        return x + torch.relu(functional.layer_norm(x, (d,)) @ up) @ down

    def two_layers(x: Any, up: Any, down: Any, y: Any) -> Any:
        error = torch.relu(x @ up) @ down - y
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
        "ordered": lambda x: torch.sort(x).values,
        "searched": torch.searchsorted,
        "histogram": lambda x: torch.histc(x, bins=64, min=-4.0, max=4.0),
        "row_sums": lambda x: x.sum(dim=1),
        "place_of_largest": torch.argmax,
        "conjugate_gradients": conjugate_gradients,
        "picked": lambda table, i: (table[i] * table[i]).sum(),
        "lstm": lstm, "lstm_batch": lstm_batch, "lstm_loss": lstm_loss, "characters": characters,
        "small_kernels": small_kernels, "transformer": transformer, "two_layers": two_layers,
    }


def table(found: list[Timing]) -> str:
    """The times as a table of Markdown; cells of what is not installed are empty, those of what
    failed hold a dash, and what failed is told below."""
    names = [n for n in LIBRARIES if any(n in t.microseconds or n in t.errors for t in found)]
    head = ["microseconds of a call", *names, "of a copy's rate", "first call s", "NVRTC s"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for timing in found:
        cells = [
            f"{timing.microseconds[n]:.1f}" if n in timing.microseconds
            else "-" if n in timing.errors else ""
            for n in names
        ]
        cells += [f"{timing.rate:.2f}" if timing.rate else ""]
        cells += [f"{timing.first:.2f}", f"{timing.compiled:.2f}"] if timing.first else ["", ""]
        lines.append(f"| {timing.program} | " + " | ".join(cells) + " |")
    told = [f"{t.program}, {n}: {what}" for t in found for n, what in t.errors.items()]
    return "\n".join([*lines, "", *told]) if told else "\n".join(lines)
