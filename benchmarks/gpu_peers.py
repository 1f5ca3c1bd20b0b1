"""The programs of `benchmarks.gpu_programs` as users of JAX and PyTorch write them.

In: the library. Out: functions by the names that they have there. What is not here JAX runs as it
stands, with its own numpy in the place of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any


def rebuilt(module: ModuleType, numpy: Any) -> dict[str, Any]:
    """The functions of a module with another library in the place of `np`."""
    space: dict[str, Any] = {**vars(module), "np": numpy}
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            space[name] = FunctionType(value.__code__, space, name, value.__defaults__)
    return space


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


def torch_gradient(torch: Any, function: Callable[..., Any], argnums: Any) -> Callable[..., Any]:
    """The gradient by PyTorch's tape, which knows the derivatives of cuDNN."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums

    def gradient(*args: Any) -> Any:
        own = [a.detach().requires_grad_(k in numbers) for k, a in enumerate(args)]
        return torch.autograd.grad(function(*own), [own[k] for k in numbers])

    return gradient


def replayed(torch: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    """A call as a CUDA graph, captured in a stream of its own as PyTorch's manual says."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        given = call()

    def replay() -> Any:
        graph.replay()
        return given

    return replay


def torch_lstm(torch: Any, function: str, args: Sequence[Any]) -> Callable[[], Any]:
    """PyTorch's LSTM, which is cuDNN's, with the weights of a call of `lstm`, `lstm_batch` or
    `lstm_loss`, whose gradient it gives; gates stand in another order there."""
    x, wx, wh, b = args
    n = wh.shape[0]

    def other_order(gates: Any) -> Any:
        return torch.cat([gates[..., n : 2 * n], gates[..., :n], gates[..., 2 * n :]], -1)

    steps = x if x.ndim == 3 else x[:, None]
    module = torch.nn.LSTM(x.shape[-1], n).to(x.device)
    own = [module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0]
    with torch.no_grad():
        for parameter, given in zip(own, (wx, wh, b), strict=True):
            gates = other_order(given)
            parameter.copy_(gates.T if gates.ndim == 2 else gates)
        module.bias_hh_l0.zero_()
    module.flatten_parameters()

    def forward() -> Any:
        with torch.no_grad():
            last = module(steps)[0][-1]
        return last if x.ndim == 3 else last[0]

    def gradient() -> Any:
        h = module(steps)[0][-1]
        found = torch.autograd.grad((h * h).sum(), own)
        return tuple(other_order(g.T if g.ndim == 2 else g) for g in found)

    return gradient if function == "lstm_loss" else forward


def torch_versions(torch: Any) -> dict[str, Callable[..., Any]]:
    """The programs as a user of PyTorch writes them."""
    functional = torch.nn.functional

    def perceptron(x: Any, w: Any, v: Any, y: Any) -> Any:
        error = torch.tanh(x @ w) @ v - y
        return (error * error).sum()

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
        "cross_entropy": functional.cross_entropy,
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
        "characters": characters, "small_kernels": small_kernels, "transformer": transformer,
        "two_layers": two_layers,
    }
