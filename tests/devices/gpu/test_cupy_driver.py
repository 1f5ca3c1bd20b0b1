"""Programs on a GPU through CuPy: what is passed, copied and launched, told by a stand-in."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices import cuda
from pyrelay.devices.gpu import cublas, cupy_driver, programs
from pyrelay.devices.gpu.driver import Product
from pyrelay.errors import AliasError, DeviceError, InvalidValueError
from pyrelay.ir.types import f32
from tests.devices import fake_cupy
from tests.devices.fake_cupy import D2D, D2H, H2D, Cublas, Machine, Stream, installed, ndarray
from tests.devices.fake_libraries import ArrayImpl, Dtype, Jax, Tensor, Torch
from tests.devices.running_kernels import needs_compiler
from tests.dtypes import HERE

WEIGHTS: Any = None  # an array of the device, in tests of captured ones


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    with installed(made, monkeypatch):
        yield made


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Cublas:
    made = Cublas(machine)
    monkeypatch.setattr(cuda.driver(), "blas", cublas.Cublas(made))
    return made


def rows(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@needs_compiler
def test_arrays_of_the_host_are_copied_in_and_results_are_numpys(machine: Machine) -> None:
    x = np.sin(np.arange(600.0)).reshape(6, 100)
    result = pyrelay.jit(rows, device="cuda")(x)
    np.testing.assert_allclose(result, rows(x), rtol=1e-14)
    assert machine.copies == [H2D, H2D, D2H]  # the record, the argument, the result
    assert machine.launches == [("kernel0", 2, 32)]  # rows of warps, four a block


@needs_compiler
def test_arrays_of_the_device_choose_it_and_nothing_is_copied(machine: Machine) -> None:
    function = pyrelay.jit(rows)
    x = np.sin(np.arange(600.0)).reshape(6, 100)
    given = machine.array(x)
    first = function(given)
    assert isinstance(first, ndarray)
    machine.copies.clear()
    result = function(given)
    np.testing.assert_allclose(result.get(), rows(x), rtol=1e-14)
    assert machine.copies == []
    assert machine.synchronized == 0
    assert isinstance(function(x), np.ndarray)  # on the CPU, as before
    assert function.cache_info().compilations == 2


@needs_compiler
def test_scalars_stay_on_the_device_between_kernels_and_in_results(machine: Machine) -> None:
    def normal(x: Any) -> Any:
        n = np.sqrt((x * x).sum())
        return x / n, n, float(n)

    x = np.arange(1.0, 5.0)
    y, n, plain = pyrelay.jit(normal)(machine.array(x))
    np.testing.assert_allclose(y.get(), x / np.sqrt(30.0))
    assert n.shape == ()
    assert float(n.get()) == np.sqrt(30.0)
    assert type(plain) is float
    assert plain == np.sqrt(30.0)
    # Only the float that Python is to see is read back.
    assert machine.copies.count(D2H) == 1
    assert machine.copies.count(D2D) == 1


@needs_compiler
def test_arguments_are_written_in_place(machine: Machine) -> None:
    def scale(x: Any, k: Any) -> None:
        x *= k

    given, host = machine.array(np.arange(4.0)), np.arange(4.0)
    function = pyrelay.jit(scale, device="cuda")
    assert function(given, 3.0) is None
    assert given.get().tolist() == [0.0, 3.0, 6.0, 9.0]
    function(host, 3.0)
    assert host.tolist() == [0.0, 3.0, 6.0, 9.0]
    with pytest.raises(AliasError):
        pyrelay.jit(lambda x, y: np.copyto(x, y + x), device="cuda")(given, given_again(given))


def given_again(array: ndarray) -> ndarray:
    """Another array over the same memory."""
    return ndarray(array.shape, array.dtype, array.data)


@needs_compiler
def test_arrays_with_gaps_are_gathered_and_written_back(machine: Machine) -> None:
    x = np.arange(12.0).reshape(3, 4)
    given = machine.array(x)
    columns = ndarray((4, 3), x.dtype, given.data)
    columns.strides = (8, 32)

    def halve(x: Any) -> Any:
        x *= 0.5
        return x.sum(axis=0)

    total = pyrelay.jit(halve)(columns)
    np.testing.assert_array_equal(total.get(), x.sum(axis=1) * 0.5)
    np.testing.assert_array_equal(given.get(), x * 0.5)


@needs_compiler
def test_work_of_other_streams_is_waited_for_without_the_host(machine: Machine) -> None:
    function = pyrelay.jit(lambda x: x + 1.0)
    given = machine.array(np.ones(3))
    function(given)
    assert machine.waited == []
    given = foreign(given, stream=99)
    function(given)
    assert machine.waited == [(0, ("event", 99))]
    # CuPy 13 has a class for such streams.
    machine.cupy.cuda.Stream = None
    machine.cupy.cuda.ExternalStream = lambda ptr: Stream(machine, ptr)
    function(given)
    assert machine.waited == 2 * [(0, ("event", 99))]
    assert machine.synchronized == 0


@needs_compiler
@pytest.mark.parametrize("quick", [True, False])
def test_arrays_of_torch_are_worked_on_in_the_stream_of_torch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    torch = Torch(machine, quick=quick)
    monkeypatch.setitem(sys.modules, "torch", torch)
    function = pyrelay.jit(lambda x: x + 1.0)
    torch.streams[0] = 55
    for _ in range(2):
        found = function(torch.tensor(np.arange(3.0)))
        assert type(found) is Tensor
        assert found.get().tolist() == [1.0, 2.0, 3.0]
    assert torch.taken == [55, 55]
    assert machine.streams == [machine.null]
    torch.streams[0] = 0
    function(torch.tensor(np.arange(3.0)))
    assert torch.taken == [55, 55, 0]


@needs_compiler
def test_what_is_returned_unchanged_is_the_very_array(machine: Machine) -> None:
    given = machine.array(np.arange(4.0))
    same, twice = pyrelay.jit(lambda x: (x, x + x))(given)
    assert same is given
    assert twice.get().tolist() == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.slow
@needs_compiler
def test_gradients_of_structures_are_arrays_of_the_device(machine: Machine) -> None:
    def loss(p: Any, x: Any) -> Any:
        return (np.tanh(x @ p["w"] + p["b"]) ** 2).sum()

    rng = np.random.default_rng(0)
    w, b, x = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(5, 3))
    p = {"w": machine.array(w), "b": machine.array(b)}
    value, found = pyrelay.value_and_grad(loss)(p, machine.array(x))
    wanted, plain = pyrelay.value_and_grad(loss)({"w": w, "b": b}, x)
    np.testing.assert_allclose(value.get(), wanted, rtol=1e-13)
    for name in p:
        np.testing.assert_allclose(found[name].get(), plain[name], rtol=1e-12, atol=1e-14)
    assert D2H not in machine.copies  # nothing was waited for


@pytest.mark.slow
@needs_compiler
def test_captured_arrays_of_the_device_are_read_at_each_call(machine: Machine) -> None:
    global WEIGHTS
    WEIGHTS = machine.array(np.full(3, 2.0))

    @pyrelay.jit(device="cuda")
    def scaled(x: Any) -> Any:
        return x * WEIGHTS

    x = machine.array(np.arange(3.0))
    assert scaled(x).get().tolist() == [0.0, 2.0, 4.0]
    WEIGHTS = machine.array(np.full(3, 5.0))
    assert scaled(x).get().tolist() == [0.0, 5.0, 10.0]


@needs_compiler
def test_scalars_by_value_have_the_size_of_their_parameter(machine: Machine) -> None:
    values = [d.numpy.type(k + 1) for k, d in enumerate(HERE)]
    values += [True, 7, 2.5, 1 + 2j]

    def add(x: Any, *numbers: Any) -> Any:
        for number in numbers:
            x = x + number
        return x

    x = np.arange(5.0)
    found = pyrelay.jit(add, device="cuda")(x, *values)
    np.testing.assert_array_equal(found, add(x, *values))
    assert len(machine.launches) == 1


@needs_compiler
def test_few_elements_are_spread_and_many_have_a_thread_each(machine: Machine) -> None:
    function = pyrelay.jit(lambda x: x + 1.0, device="cuda")
    x = np.zeros(300)
    function(x)
    assert machine.launches[-1] == ("kernel0", 2, 96)  # 150 pairs, on both multiprocessors
    x = np.zeros(40_000)
    assert function(x).sum() == 40_000
    assert machine.launches[-1] == ("kernel0", 79, 256)  # a pair for each thread


@needs_compiler
def test_two_blocks_of_long_rows_are_on_a_multiprocessor(machine: Machine) -> None:
    """A row fills more than half of its shared memory; of two blocks each has 256 threads, since a
    thread takes 100 registers, and reads what there is no room for again."""
    x = np.sin(np.arange(29_000.0)).reshape(2, 14_500)
    result = pyrelay.jit(rows, device="cuda")(x)
    np.testing.assert_allclose(result, rows(x), rtol=1e-14)
    assert machine.launches == [("kernel0", 2, 256)]
    assert [made.asked for made in machine.functions.values()] == [112 * 1024]
    assert machine.fit(0, 256, 112 * 1024) == 2


@needs_compiler
@pytest.mark.slow
def test_launches_ask_for_the_shared_memory_that_a_kernel_has(machine: Machine) -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return ((e / e.sum(axis=-1, keepdims=True)) @ v).sum()

    q, k, v = np.random.default_rng(0).normal(size=(3, 9, 4)).astype(np.float32)
    found = pyrelay.grad(loss, device="cuda")(q, k, v)
    np.testing.assert_allclose(found, pyrelay.grad(loss)(q, k, v), rtol=1e-4, atol=1e-5)
    assert max(made.most_shared for made in machine.functions.values()) == 5 * 64 * 64 * 4


@needs_compiler
def test_errors_are_those_of_python_with_the_line(machine: Machine) -> None:
    def pick(x: Any, i: Any) -> Any:
        y = x[i] * 2.0
        return y.sum()

    with pytest.raises(IndexError) as caught:
        pyrelay.jit(pick)(machine.array(np.ones(4)), machine.array(np.array([1, 9, -7])))
    assert str(caught.value) == "index 9 is out of bounds for axis 0 with size 4"
    assert caught.value.span.line == pick.__code__.co_firstlineno + 1


@needs_compiler
def test_after_an_error_the_next_call_is_fine(machine: Machine) -> None:
    pick = pyrelay.jit(lambda x, i: x[i] * 2.0, device="cuda")
    for _ in range(2):
        with pytest.raises(IndexError):
            pick(np.ones(4), np.array([7]))
        assert pick(np.ones(4), np.array([2])).tolist() == [2.0]


@needs_compiler
def test_kernels_that_run_long_are_stopped_by_a_signal(machine: Machine) -> None:
    driver = cupy_driver.CupyDriver(machine.cupy, 0)

    def interrupted() -> int:
        raise KeyboardInterrupt

    machine.cupy.cuda.runtime.streamQuery = lambda stream: interrupted()
    with pytest.raises(KeyboardInterrupt):
        driver.wait()
    assert machine.synchronized == 1  # after the word that stops it is set
    assert driver.stop[0] == 0


@needs_compiler
def test_an_error_of_the_device_is_raised_where_the_host_waits(machine: Machine) -> None:
    machine.status = 700  # and for ever: no work of the stream will be done
    with pytest.raises(DeviceError, match="stopped with an error") as caught:
        pyrelay.jit(lambda x: x + 1.0, device="cuda")(np.ones(3))
    assert caught.value.notes[0] == "cudaErrorIllegalAddress"


@needs_compiler
def test_waiting_leaves_no_error_to_other_libraries(machine: Machine) -> None:
    driver = cupy_driver.CupyDriver(machine.cupy, 0)
    answers = iter([600, 600, 0, 0])
    machine.cupy.cuda.runtime.streamQuery = lambda stream: next(answers)
    driver.wait()
    driver.wait()  # not asked twice: nothing to clear
    assert machine.cleared == [600]


@needs_compiler
def test_a_launch_that_the_driver_refuses_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources")

    monkeypatch.setattr(fake_cupy.Function, "launched", refused)
    with pytest.raises(DeviceError, match="does not launch") as caught:
        pyrelay.jit(lambda x: x + 1.0, device="cuda")(np.ones(3))
    assert "OUT_OF_RESOURCES" in caught.value.notes[0]


@needs_compiler
def test_machine_code_on_disk_that_does_not_load_is_made_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raised(x: Any) -> Any:
        return x + 3.0625

    load, failures = fake_cupy.Module.load, [0]

    def loaded(self: Any, code: bytes) -> None:
        failures[0] -= 1
        if failures[0] >= 0:
            raise RuntimeError("CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid")
        load(self, code)

    monkeypatch.setattr(fake_cupy.Module, "load", loaded)
    x = np.ones(3)
    assert pyrelay.jit(raised, device="cuda")(x)[0] == 4.0625
    for count, made in ((1, True), (2, False)):
        again = Machine()
        with installed(again, monkeypatch):
            failures[0] = count
            if made:
                assert pyrelay.jit(raised, device="cuda")(x)[0] == 4.0625
            else:
                with pytest.raises(DeviceError, match="does not load") as caught:
                    pyrelay.jit(raised, device="cuda")(x)
                assert "INVALID_IMAGE" in caught.value.notes[0]
        assert len(again.units) == 1


@needs_compiler
def test_kernels_for_which_there_is_no_memory_are_loaded_again_or_refused(machine: Machine) -> None:
    function, x = pyrelay.jit(lambda x: x * 1.0625, device="cuda"), np.ones(3)
    machine.crowded = 2
    said = "no memory on Fake GPU for compiled kernels: 3 of 7 MiB are free, .* libraries that take"
    with pytest.raises(MemoryError, match=said):
        function(x)
    machine.crowded = 1
    assert function(x)[0] == 1.0625
    assert machine.emptied == 2


@needs_compiler
def test_the_record_of_a_call_that_was_stopped_is_not_used_again(machine: Machine) -> None:
    pick = pyrelay.jit(lambda x, i: x[i] * 2.0, device="cuda")
    assert pick(np.ones(4), np.array([2])).tolist() == [2.0]

    def interrupted() -> int:
        raise KeyboardInterrupt

    query = machine.cupy.cuda.runtime.streamQuery
    machine.cupy.cuda.runtime.streamQuery = lambda stream: interrupted()
    with pytest.raises(KeyboardInterrupt):
        pick(np.ones(4), np.array([7]))  # leaves an error in the record
    machine.cupy.cuda.runtime.streamQuery = query
    assert pick(np.ones(4), np.array([2])).tolist() == [2.0]


@needs_compiler
def test_machine_code_is_kept_on_disk_for_other_processes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(x: Any) -> Any:
        return x * 0.5 + 3.25

    x = np.arange(4.0)
    function = pyrelay.jit(shifted, device="cuda")
    assert function(x).tolist() == shifted(x).tolist()
    assert len(machine.units) == 1
    told = str(function.explain())
    assert re.search(r"\n  NVRTC compiled 1 kernel in \d+\.\d\d s: \w+_kernel$", told)
    again = Machine()
    with installed(again, monkeypatch):
        function = pyrelay.jit(shifted, device="cuda")
        assert function(x).tolist() == shifted(x).tolist()
        assert [c.seconds for c in cuda.driver().compilations] == [0.0]
        assert str(function.explain()).endswith("\n  machine code of 1 kernel was on disk")
    assert again.units == []


@needs_compiler
def test_recursion_has_the_stack_that_it_needs(machine: Machine) -> None:
    def climbed(n: Any) -> Any:
        return n if n < 2 else climbed(n - 1) + climbed(n - 2)

    assert machine.limits == {0: 1024}
    found = pyrelay.jit(lambda x: climbed(x[0]) * x, device="cuda")(np.array([7, 2]))
    assert found.tolist() == [91, 26]
    assert machine.limits == {0: 16384}


@needs_compiler
def test_bfloat16_arrays_of_all_libraries_are_known_by_the_name_of_their_type(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = pytest.importorskip("ml_dtypes").bfloat16
    torch, jax = Torch(machine, brain), Jax(machine)
    torch.int16 = Dtype("int16", np.int16)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "jax.dlpack", jax)
    given = machine.array(np.arange(12).reshape(3, 4).astype(brain))
    function = pyrelay.jit(lambda x: x * x + 1)
    assert function(given).dtype == brain
    for made in (
        Tensor(torch, given.data, given.shape, torch.bfloat16),
        ArrayImpl(jax, given.data, given.shape, brain),
    ):
        for _ in range(2):
            found = function(made)
            assert type(found) is type(made)
            assert found.dtype in (torch.bfloat16, brain)
            np.testing.assert_array_equal(
                found.get().astype(int), np.arange(12).reshape(3, 4) ** 2 + 1
            )

    def doubled(x: Any) -> Any:
        x *= 2
        return x.sum()

    columns = Tensor(torch, given.data, (4, 3), torch.bfloat16, strides=(1, 4))
    assert pyrelay.jit(doubled)(columns).get() == 132
    np.testing.assert_array_equal(given.get().astype(int), np.arange(12).reshape(3, 4) * 2)


# -- products of matrices ------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize(
    "dtype", [np.float32, pytest.param(np.complex128, marks=pytest.mark.slow)]
)
def test_products_are_cublas_without_copies(library: Cublas, machine: Machine, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 7)).astype(dtype), rng.normal(size=(7, 3)).astype(dtype)

    def products(a: Any, b: Any) -> Any:
        return a @ b, b.T @ a.T, a.T @ a, a @ a.T, a[0] @ b

    found = pyrelay.jit(products, device="cuda")(a, b)
    close = 1e-5 if np.finfo(dtype).bits == 32 else 1e-13
    for mine, theirs in zip(found, products(a, b), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=close)
    assert len(library.calls) >= 4


@needs_compiler
def test_products_of_16_bit_floats_are_cublas_of_what_lies_in_memory(
    library: Cublas, machine: Machine
) -> None:
    a = np.random.default_rng(1).normal(size=(2, 5, 8)).astype(np.float16)
    compiled = pyrelay.jit(lambda a: (a[0] @ a[1].T + a[0, 0, 0]).astype(np.float32), device="cuda")
    wanted = a[0].astype(np.float32) @ a[1].astype(np.float32).T + a[0, 0, 0]
    np.testing.assert_allclose(compiled(a), wanted, rtol=1e-2, atol=1e-2)
    assert library.calls == [(1, 68)]  # adding up in float32
    assert len(machine.launches) == 2  # views of a, and what is added


@needs_compiler
def test_stacks_of_products_are_one_call_where_they_lie_evenly(
    library: Cublas, machine: Machine
) -> None:
    rng = np.random.default_rng(2)
    a, b, c = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(5, 6))
    function = pyrelay.jit(lambda a, b: a @ b, device="cuda")
    np.testing.assert_allclose(function(a, b), a @ b)
    assert [count for count, _ in library.calls] == [6]
    np.testing.assert_allclose(function(a, c), a @ c)
    assert [count for count, _ in library.calls[1:]] == [1]  # with all rows of all matrices
    np.testing.assert_allclose(function(a, b[:, :1]), a @ b[:, :1])
    assert [count for count, _ in library.calls[2:]] == [3, 3]


@needs_compiler
@pytest.mark.parametrize(("precision", "kind"), [("highest", 68), ("tf32", 77), ("bf16", 75)])
def test_the_precision_of_products_is_a_setting(
    library: Cublas, machine: Machine, precision: str, kind: int
) -> None:
    with config.override(matmul_precision=precision):
        pyrelay.jit(lambda a: a @ a, device="cuda")(np.ones((2, 2), np.float32))
        pyrelay.jit(lambda a: a @ a, device="cuda")(np.ones((2, 2)))
    assert [how for _, how in library.calls] == [kind, 70]


@needs_compiler
def test_graphs_hold_products_too(library: Cublas, machine: Machine) -> None:
    def layers(x: Any, w: Any) -> Any:
        return np.tanh(np.tanh(x @ w) @ w) @ w

    x, w = np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 1, 9).reshape(3, 3)
    function = pyrelay.jit(layers)
    given = machine.array(x), machine.array(w)
    issued = []
    for _ in range(4):
        np.testing.assert_allclose(function(*given).get(), layers(x, w), rtol=1e-13)
        issued.append(len(library.calls))
    assert issued[0] == 3
    assert issued[-1] == issued[-2]  # nothing is issued by a replay
    assert machine.replays >= 2
    assert all(count == 1 for count, _ in library.calls)


@needs_compiler
def test_lines_are_told_as_cublas_wants_them(library: Cublas, machine: Machine) -> None:
    driver = cuda.driver()
    assert driver.product(Product(f32, f32, 2, 2, 2, False, False, 0, 2, 2, ())) is None
    assert driver.product(Product(f32, f32, 2**31, 1, 1, False, False, 1, 1, 1, ())) is None
    assert driver.product(Product(f32, f32, 2, 2, 2, False, False, 2, 2, 2, ())) is not None
    assert library.calls == []


def test_stacks_that_lie_unevenly_are_taken_apart() -> None:
    def pieces(*batch: tuple[int, int, int]) -> list[tuple[int, ...]]:
        return list(cublas.batches(
            Product(f32, f32, 2, 3, 4, False, False, 4, 3, 3, batch)
        ))  # fmt: skip

    assert pieces() == [(0, 0, 0, 1, 0, 0, 6)]
    assert pieces((5, 8, 12)) == [(0, 0, 0, 5, 8, 12, 6)]
    assert pieces((5, 16, 24), (2, 8, 12)) == [(0, 0, 0, 10, 8, 12, 6)]
    assert pieces((2, 0, 24), (2, 8, 12)) == [(0, 0, 0, 2, 8, 12, 6), (0, 24, 12, 2, 8, 12, 6)]


@needs_compiler
def test_an_array_of_a_gpu_is_not_taken_to_the_cpu(
    machine: Machine, golden: Callable[[str, str], None]
) -> None:
    with pytest.raises(DeviceError) as caught:
        pyrelay.jit(lambda x: x + 1.0, device="cpu")(machine.array(np.ones(3)))
    caught.value.calls = ()
    golden("errors/device_array_of_a_gpu.txt", str(caught.value))
    readonly = SimpleReadonly(machine.array(np.ones(3)))
    with pytest.raises(InvalidValueError, match="read-only"):
        pyrelay.jit(lambda x: np.copyto(x, 2.0 * x))(readonly)


class Foreign(ndarray):
    """An array of a library that is not CuPy."""


def foreign(array: ndarray, stream: int) -> Foreign:
    """The same array, with work in a stream of that library's."""
    made = Foreign(array.shape, array.dtype, array.data)
    made.stream = stream
    return made


class SimpleReadonly:
    """An array of another library."""

    def __init__(self, array: ndarray) -> None:
        interface = array.__cuda_array_interface__
        self.told = {**interface, "data": (interface["data"][0], True)}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.told


@needs_compiler
def test_loops_on_the_device_give_arrays_that_lie_inside_of_others(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chain(x: Any, n: int) -> Any:
        steps = []
        for k in range(n):
            x = x * 0.5 + k
            steps.append(x)
        return np.stack(steps), x

    monkeypatch.setattr(programs, "blocks_of", lambda work, meets, most, cores: most)
    x = np.arange(40.0)
    found = pyrelay.jit(chain)(machine.array(x), 30)
    for mine, theirs in zip(found, chain(x, 30), strict=True):
        np.testing.assert_allclose(mine.get(), theirs)
    assert ("kernel0", 2, 256) in machine.launches
