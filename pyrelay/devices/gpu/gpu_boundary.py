"""Arguments and results of calls on a GPU.

In: the `programs.Run` of a call, and what the program is called with or leaves. Out: words, and
objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import errors
from pyrelay.devices.gpu.gpu_memory import TAKEN
from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.words import encode, scalar

if TYPE_CHECKING:
    from pyrelay.devices.gpu.programs import Run


class Mismatched(Exception):
    """The arguments are not those that the plan was made for."""


def taken(
    run: Run, parameter: boundary.Parameter, argument: Any,
    back: list[Callable[[], None]],
) -> list[int]:
    """The words of an argument; an array of the host is copied to the device."""
    if isinstance(parameter, boundary.ObjectParameter):
        if argument is not parameter.value:
            raise Mismatched
        return []
    if isinstance(parameter, boundary.ScalarParameter):
        return encode(parameter.kind, argument)
    if argument.dtype != numpy_dtype(parameter.dtype) or argument.ndim != parameter.ndim:
        raise Mismatched
    if parameter.order:  # as arrays of the host are
        argument = argument.transpose(parameter.order)
    if not isinstance(argument, DeviceArray):
        address = run.allocate(argument.nbytes, TAKEN)
        run.driver.upload(address, argument)
        if parameter.writeable:
            back.append(functools.partial(run.driver.download, argument, address))
    elif argument.contiguous:
        address = argument.address
    else:
        gathering = functools.partial(run.driver.gathered, argument)
        address, owner = run.obtained(argument.nbytes, TAKEN, gathering)
        run.live[address] = argument.nbytes, owner
        run.told[address] = TAKEN
        if parameter.writeable:
            back.append(functools.partial(run.driver.scattered, argument, owner))
    run.lent[address] = argument.nbytes
    return [address, *argument.shape]


def results_of(
    run: Run, found: tuple[Any, ...], arguments: Sequence[Any], like: Any
) -> Any:
    """What the call gives, of the words of its results; `like` is an array of the device among its
    arguments, or None."""
    program = run.program
    results: list[Any] = []
    for result, place, dtype in program.results:
        words = found[place]
        if dtype is not None:
            results.append(_array(run, dtype, words, like))
            continue
        match result:
            case boundary.ScalarResult(kind=kind):
                results.append(_scalar(run, kind, words, like))
            case boundary.ParameterResult(parameter=k):
                results.append(arguments[k])
            case boundary.SameResult(result=k):
                results.append(results[k])
            case boundary.ObjectResult(value=value):
                results.append(value)
            case _:
                raise errors.InvariantError(f"{type(result).__name__} is not for GPUs.")
    return results[0] if program.plan.single else tuple(results)


Places = list[tuple[boundary.Result, slice, "np.dtype[Any] | None"]]


def places_of(results: Sequence[boundary.Result]) -> Places:
    """Each result, where its words are, and the dtype of an array."""
    found: Places = []
    start = 0
    for result in results:
        place = slice(start, start + result.words)
        dtype = None
        if isinstance(result, boundary.ArrayResult):
            dtype = numpy_dtype(result.dtype)
        found.append((result, place, dtype))
        start += result.words
    return found


def _array(run: Run, dtype: np.dtype[Any], words: tuple[Any, ...], like: Any) -> Any:
    if run.program.code.fetches:
        words = tuple(map(run.known, words))
    address, shape = words[0], words[1:]
    if address == 0:
        return None
    if like is not None:
        return run.driver.array(address, run.live[address][1], dtype, shape, like)
    array = np.empty(shape, dtype)
    if array.nbytes:
        run.driver.download(array, address)
    return array


def _scalar(run: Run, kind: str, words: Sequence[Any], like: Any) -> Any:
    if like is None or kind in boundary.PYTHON_SCALARS or type(words[0]) is int:
        return scalar(kind, [run.known(word) for word in words])
    # As the library of the arguments has it: an array without axes, which nothing waits for.
    dtype = numpy_dtype(kind)
    address, owner = run.obtained(dtype.itemsize)
    run.driver.copy(address, words[0].address, dtype.itemsize)
    return run.driver.array(address, owner, dtype, (), like)
