"""One library's process of `make gpu-bench`: its programs checked against NumPy, then timed.

python -m benchmarks.gpu_worker LIBRARY FIRST FOLDER   from the program of this number on

In: the programs of `benchmarks.gpu_programs`, and results of NumPy in the folder, which the library
"reference" writes there. Out: a line of JSON behind `MARK` when a program begins and when it is
done. Arguments lie on the device and are the same for all libraries; what is timed is a run of
calls up to the end of the last one's work, the median of several runs.

Gradients, which NumPy has not, are checked against pyrelay's on the CPU; programs with more than
`CHECKED` elements of arguments are not checked.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pyrelay
from benchmarks import gpu_peers
from benchmarks import gpu_programs as gpu
from pyrelay import config
from pyrelay.devices import cuda
from pyrelay.devices.gpu.driver import by_the_clock

MARK, OURS, REFERENCE = "@gpu@", "pyrelay", "reference"
ROUNDS, WARM, MOST_CALLS = 7, 5, 20
BESIDE = 8
"""References that are computed at the same time."""
_RUN = 0.1  # seconds of a run of calls, at most, where one call does not last longer
_COPIED = 1 << 29  # bytes
CHECKED = 1 << 25
_SAMPLED = 1 << 18  # elements of a result that are compared, spread over all

#: How far results may be from NumPy's, as a norm over NumPy's. Conjugate gradients end at a
#: residual that rounding moves by a round.
FAR, FAR_BY_PRECISION = 1e-3, {" in TF32": 1e-2, " in bfloat16": 5e-2}
FAR_BY_PROGRAM = {"conjugate_gradients": 0.2}


@dataclass(frozen=True)
class Library:
    """How a library takes arrays and functions.

    given: an argument of NumPy on the device. drawn: random numbers of the device itself in
    (-0.5, 0.5), for arguments too large for the host. called: the call of a program. wait: for the
    work behind a result. host: a result as an array of NumPy.
    """

    given: Callable[[np.ndarray[Any, Any]], Any]
    drawn: Callable[[tuple[int, ...], str], Any]
    called: Callable[[Callable[..., Any], Any, list[Any]], Callable[[], Any]]
    wait: Callable[[Any], None]
    host: Callable[[Any], np.ndarray[Any, Any]]


def main() -> None:
    warnings.simplefilter("ignore")
    library, first, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if library == REFERENCE:
        _references(first, folder)
        return
    made = LIBRARIES[library]()
    _say(version=getattr(importlib.import_module(module_of(library)), "__version__", "here"))
    if library == OURS and not first:
        _say(copied=copied())
    for number, name in enumerate(gpu.TIMED):
        if number >= first and not is_left_out(library, name):
            _say(begin=number)
            found = told(library, made, number, name, folder)
            _say(done=number, **found)
            if "error" in found and is_lost(made):
                sys.exit("the GPU has stopped")  # for this process: another one goes on


def _references(first: int, folder: Path) -> None:
    """Write what NumPy gives for the programs from a number on, several at once: the GPU waits."""
    with ThreadPoolExecutor(BESIDE) as pool:
        waited = {
            number: pool.submit(_failed, functools.partial(reference, number, name, folder))
            for number, name in list(enumerate(gpu.TIMED))[first:]
        }
        for number, written in waited.items():
            _say(begin=number)
            _say(done=number, **written.result())


def is_lost(made: Library) -> bool:
    """Whether this process can use the GPU no more, as after an access outside of memory."""
    try:
        made.wait(made.given(np.ones(4, np.float32)))
    except Exception:
        return True
    return False


def module_of(library: str) -> str:
    """The package that a column is of."""
    return re.split("[ .]", library)[0]


def is_left_out(library: str, name: str) -> bool:
    """Whether a library is not asked for a program."""
    function, argnums, _ = gpu.TIMED[name]
    match library:
        case "cupy":
            return argnums is not None
        case "cupy.fuse":
            return function is not gpu.elementwise
        case "torch graph":
            return function not in (gpu.small_kernels, gpu.lstm, gpu.lstm_batch)
        case "torch.compile":  # which unrolls loops and compiles none that data end
            return function in (
                gpu.lstm, gpu.lstm_batch, gpu.lstm_loss, gpu.characters, gpu.conjugate_gradients,
            )
    return False


def told(library: str, made: Library, number: int, name: str, folder: Path) -> dict[str, Any]:
    """The time of a program, or what went wrong."""
    function, argnums, _ = gpu.TIMED[name]
    # What is called after a precision has products of that one, with every library.
    fast = name.endswith(tuple(FAR_BY_PRECISION))
    found: dict[str, Any] = {}

    def work() -> None:
        args = arguments(number, name, made)
        precision = config.override(matmul_precision="tf32" if fast else "highest")
        with precision, _precise(library, fast):
            before = len(_compilations(library))
            started = time.perf_counter()
            call = made.called(function, argnums, args)
            given = call()
            made.wait(given)
            first = time.perf_counter() - started
            new = _compilations(library)[before:]
            wrong = difference(leaves(given, made.host), folder / f"{number}.npz")
            if wrong is not None and not wrong <= allowed(name, function):
                raise ValueError(f"the result is {wrong:.2g} from NumPy's")
            del given
            found.update(
                microseconds=median(call, made.wait), first=first, difference=wrong,
                compiled=by_the_clock(new), kernels=sum(c.kernels for c in new),
            )

    return _failed(work) or found


def _failed(work: Callable[[], None]) -> dict[str, Any]:
    """What went wrong: a program that fails is told, the others go on."""
    try:
        work()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:200]}
    return {}


def allowed(name: str, function: Callable[..., Any]) -> float:
    """How far a program's results may be from NumPy's."""
    by_precision = [far for end, far in FAR_BY_PRECISION.items() if name.endswith(end)]
    return FAR_BY_PROGRAM.get(function.__name__, (by_precision or [FAR])[0])


def median(call: Callable[[], Any], wait: Callable[[Any], None]) -> float:
    """Microseconds of a call: the median of some runs."""
    for _ in range(WARM):
        wait(call())
    started = time.perf_counter()
    wait(call())
    calls = max(1, min(MOST_CALLS, int(_RUN / max(time.perf_counter() - started, 1e-9))))
    found: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(calls):
            given = call()
        wait(given)
        found.append((time.perf_counter() - started) * 1e6 / calls)
    return statistics.median(found)


def copied() -> float:
    """Bytes that a copy within the device reads and writes in a second."""
    import cupy

    source, target = cupy.zeros(_COPIED, np.uint8), cupy.empty(_COPIED, np.uint8)
    took = median(lambda: cupy.copyto(target, source), lambda _: _synchronize(cupy))
    return 2 * _COPIED / (took * 1e-6)


# -- arguments and results ---------------------------------------------------------------------


def is_checked(name: str) -> bool:
    """Whether a program's results are compared with NumPy's."""
    return sum(a.size for a in gpu.TIMED[name][2]) <= CHECKED


def arguments(number: int, name: str, made: Library) -> list[Any]:
    """The arguments of a program on the device."""
    if is_checked(name):
        return [made.given(a) for a in drawn(number, name)]
    return [
        made.drawn(a.shape, a.dtype.name) if is_told_by_shape(a) else made.given(a)
        for a in gpu.TIMED[name][2]
    ]


def drawn(number: int, name: str) -> Iterator[np.ndarray[Any, Any]]:
    """The arguments of a program, the same in every process."""
    for place, array in enumerate(gpu.TIMED[name][2]):
        if not is_told_by_shape(array):
            yield array
            continue
        random = np.random.default_rng([number, place]).random(array.shape, np.float32)
        scale = np.float32(array.reshape(-1)[0]) if array.strides == (0,) * array.ndim else 1
        yield ((random - np.float32(0.5)) * scale).astype(array.dtype)


def is_told_by_shape(array: Any) -> bool:
    """Whether the numbers of an argument are to be drawn: zeros, or one number again and again,
    which is how widely they are spread (`gpu.weights`)."""
    if (array.dtype.kind != "f" and array.dtype.name != "bfloat16") or not array.ndim:
        return False
    return array.strides == (0,) * array.ndim or not np.any(array.reshape(-1)[:1000])


def leaves(given: Any, host: Callable[[Any], Any]) -> list[np.ndarray[Any, Any]]:
    """The arrays of a result, a sample of each."""
    if isinstance(given, (tuple, list)):
        return [leaf for part in given for leaf in leaves(part, host)]
    flat = np.asarray(host(given)).reshape(-1)
    return [flat[:: -(-flat.size // _SAMPLED) or 1].astype(np.float64)]


def reference(number: int, name: str, folder: Path) -> None:
    """Write what NumPy gives; numbers of 16 bits are computed with as ones of 32."""
    if not is_checked(name):
        return
    function, argnums, _ = gpu.TIMED[name]
    args = [a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in drawn(number, name)]
    made = function if argnums is None else pyrelay.grad(function, argnums, device="cpu")
    np.savez(folder / f"{number}.npz", *leaves(made(*args), np.asarray))


def difference(found: Sequence[np.ndarray[Any, Any]], file: Path) -> float | None:
    """The norm of what results differ by, over that of NumPy's; None where there are none."""
    if not file.exists():
        return None
    with np.load(file) as held:
        wanted = [held[key] for key in held]
    if [a.shape for a in found] != [a.shape for a in wanted]:
        return float("inf")
    off = sum(float(np.sum((a - b) ** 2)) for a, b in zip(found, wanted, strict=True))
    return (off / max(sum(float(np.sum(b * b)) for b in wanted), 1e-30)) ** 0.5


# -- libraries ---------------------------------------------------------------------------------


def _with_cupy(
    called: Callable[[Callable[..., Any], Any, list[Any]], Callable[[], Any]]
) -> Library:
    import cupy

    def draw(shape: tuple[int, ...], dtype: str) -> Any:
        made = cupy.random.random(shape, dtype=np.float32)
        made -= np.float32(0.5)
        return made if dtype == "float32" else made.astype(_dtype(dtype))

    def given(array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.name != "bfloat16":
            return cupy.asarray(array)
        return cupy.asarray(array.astype(np.float32)).astype(array.dtype)

    def host(array: Any) -> Any:
        if getattr(array, "dtype", None) is not None and array.dtype.name == "bfloat16":
            array = array.astype(np.float32)
        return cupy.asnumpy(array)

    return Library(given, draw, called, lambda _: _synchronize(cupy), host)


def _synchronize(cupy: Any) -> None:
    cupy.cuda.Device().synchronize()


def _dtype(name: str) -> Any:
    return importlib.import_module("ml_dtypes").bfloat16 if name == "bfloat16" else np.dtype(name)


def _pyrelay() -> Library:
    def called(function: Callable[..., Any], argnums: Any, args: list[Any]) -> Callable[[], Any]:
        made = pyrelay.jit(function) if argnums is None else pyrelay.grad(function, argnums)
        return functools.partial(made, *args)

    return _with_cupy(called)


def _cupy() -> Library:
    return _with_cupy(lambda function, _, args: functools.partial(function, *args))


def _cupy_fuse() -> Library:
    import cupy

    # Within a fused function CuPy's own ufuncs are to be called.
    functions = gpu_peers.rebuilt(gpu, cupy)
    return _with_cupy(
        lambda function, _, args: functools.partial(
            cupy.fuse()(functions[function.__name__]), *args
        )
    )


def _jax() -> Library:
    jax = importlib.import_module("jax")
    number = jax.numpy

    def called(function: Callable[..., Any], argnums: Any, args: list[Any]) -> Callable[[], Any]:
        made = gpu_peers.jax_versions(jax).get(function.__name__)
        if made is None:
            made = gpu_peers.rebuilt(gpu, number)[function.__name__]
        made = jax.jit(made if argnums is None else jax.grad(made, argnums))
        return functools.partial(made, *args)

    def draw(shape: tuple[int, ...], dtype: str) -> Any:
        made = jax.random.uniform(jax.random.key(0), shape, number.float32, -0.5, 0.5)
        return made.astype(dtype)

    return Library(number.asarray, draw, called, jax.block_until_ready, np.asarray)


def _torch(form: str) -> Library:
    torch = importlib.import_module("torch")

    def given(array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.astype(np.float32)).cuda().bfloat16()
        return torch.from_numpy(np.ascontiguousarray(array)).cuda().reshape(array.shape)

    def draw(shape: tuple[int, ...], dtype: str) -> Any:
        return (torch.rand(shape, device="cuda") - 0.5).to(getattr(torch, dtype))

    def called(function: Callable[..., Any], argnums: Any, args: list[Any]) -> Callable[[], Any]:
        made = gpu_peers.torch_versions(torch).get(function.__name__)
        if function.__name__.startswith("lstm"):
            call = gpu_peers.torch_lstm(torch, function.__name__, args)
            return gpu_peers.replayed(torch, call) if form == "torch graph" else call
        if made is None:
            raise NotImplementedError(f"no version of {function.__name__} for PyTorch")
        if argnums is not None:
            made = gpu_peers.torch_gradient(torch, made, argnums)
        if form == "torch graph":
            return gpu_peers.replayed(torch, functools.partial(made, *args))
        return functools.partial(torch.compile(made) if form == "torch.compile" else made, *args)

    def host(array: Any) -> Any:
        return array.detach().float().cpu() if isinstance(array, torch.Tensor) else array

    return Library(given, draw, called, lambda _: torch.cuda.synchronize(), host)


#: In the order of the table's columns; what takes long to compile comes last.
LIBRARIES: dict[str, Callable[[], Library]] = {
    OURS: _pyrelay, "cupy": _cupy, "cupy.fuse": _cupy_fuse, "jax": _jax,
    **{form: functools.partial(_torch, form) for form in ("torch", "torch graph", "torch.compile")},
}  # fmt: skip


@contextlib.contextmanager
def _precise(library: str, fast: bool) -> Iterator[None]:
    """The precision of products with a peer."""
    if library == "jax":
        jax = importlib.import_module("jax")
        with jax.default_matmul_precision("tensorfloat32" if fast else "highest"):
            yield
        return
    if library.startswith("torch"):
        torch = importlib.import_module("torch")
        torch.set_float32_matmul_precision("high" if fast else "highest")
    yield


def _compilations(library: str) -> Sequence[Any]:
    return list(cuda.driver().compilations) if library == OURS else ()


def _say(**what: Any) -> None:
    print(MARK + json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
