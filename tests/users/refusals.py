"""What is not compiled, and what its error must say."""

from __future__ import annotations

import contextlib
import threading

import numpy as np

from tests.users.corpus import refuse

X = np.array([3.0, 1.0, 2.0])


class Place:
    """Is itself only."""


@refuse((X, 2.0), "except*", "tuple of classes")
def group_of_exceptions(x, y):
    try:
        return x[0] / y
    except* ZeroDivisionError:
        x[0] = 0.0
    return x


@refuse((2,), "the id of Place is its address", "compare with 'is'")
def address_as_a_number(n):
    return id(Place()) % n


@refuse((3,), "are not supported", "give each field an array of its own")
def fields_of_records(n):
    return np.zeros(n, [("u", float), ("v", float)])["u"]


@refuse((X,), "'ctypes' of f64[3] is not compiled")
def default_in_place_of_an_attribute_that_is_there(x):
    return getattr(x, "ctypes", None) is None


@refuse((X,), "flags say in a program how an array lies in memory, and nothing else")
def handler_of_an_attribute_that_is_there(x):
    try:
        return x.flags.writeable
    except AttributeError:
        return x


@refuse((X,), "do not lie one after the other is not compiled", "as_strided(x.copy(), ...)")
def array_with_strides(x):
    return np.lib.stride_tricks.as_strided(x[::2], (2,), (16,))


@refuse((X,), "share memory", "'x is y'")
def memory_that_is_shared(x):
    return np.shares_memory(x, x[1:])


@refuse((X + 0j,), "'np.real_if_close'", "np.real(x)")
def kind_that_values_decide(x):
    return np.real_if_close(x)


@refuse((2.5,), "'hex' of float is not compiled", "write it outside")
def hexadecimal_float(x):
    return x.hex()


@refuse((3,), "the hash of Place", "made of its address", "their positions")
def hash_by_address(n):
    return hash(Place())


@refuse((2.0,), "np.errstate", "np.isfinite")
def strict_arithmetic(x):
    with np.errstate(divide="raise"):
        return 1 / np.float64(x)


@refuse((X,), "x.view(int32)", "bytes", "astype")
def bytes_taken_for_other_numbers(x):
    return x.view(np.float64), x.view(np.int32)


@refuse((X,), "no base case")
def endless_recursion(x):
    return endless_recursion(x + 1.0) * 2.0


@refuse((3,), "a class that reads 'n'", "outside")
def local_class_of_a_variable(n):
    class Pair:
        def first(self):
            return n

    return Pair().first()


@refuse((3,), "a class with an attribute that can be changed, 'seen'", "outside")
def local_class_with_a_list(n):
    class Counted:
        seen = []  # noqa: RUF012

        def add(self, v):
            self.seen.append(v)

    Counted().add(n)
    return len(Counted.seen)


@refuse((X,), "files cannot be opened")
def context_manager(x):
    with open("data.txt") as handle:
        return x, handle.read()


@contextlib.contextmanager
def again_and_again(x):
    for v in x:
        yield v + 1


@refuse((X,), "may yield more than once", "once on each path")
def manager_that_yields_in_a_loop(x):
    with again_and_again(x) as v:
        return v


LOCK = threading.Lock()


@refuse((X,), "'with' cannot enter", "managers written in Python")
def manager_of_the_library(x):
    with LOCK:
        return x.sum()


@refuse((np.array(["a", "b"]),), "not supported")
def array_of_text(x):
    return x.shape


@refuse((np.array([1, None], dtype=object),), "not supported")
def array_of_objects(x):
    return x.shape


@refuse((3,), "would have to show in both", "items.append(x.copy())")
def one_array_again_and_again(n):
    state, history = np.zeros(2), []
    for k in range(n):
        state[0] = k
        history.append(state)
    return history


@refuse((3,), "may have changed since it was made", "iter(list(...))")
def generator_over_what_changes(n):
    items = [1.0, 2.0, 3.0]
    squares = (item * item for item in items)
    for first in squares:
        if first > 0.0:
            break
    items[1] = float(n)
    return first + sum(squares)


@refuse((3,), "another byte order", "convert with astype outside")
def zeros_in_the_other_order(n):
    return np.zeros(n, ">f8")


@refuse((np.ones((2, 3)),), "asks how", "lies in memory", "order='C' for rows")
def elements_as_they_lie(a):
    return np.broadcast_to(a[0], (2, 3)).reshape(-1, order="A")




@refuse((3,), "calls itself and changes objects", "append what it yields to a list")
def length_of_a_list_that_a_generator_changes(n):
    own = []

    def parts(i):
        if i == n:
            yield sum(own)
            return
        own.append(i)
        yield from parts(i + 1)
        own.pop()
        yield from parts(i + 1)

    return [part + len(own) for part in parts(0)]


@refuse((3,), "calls itself and changes objects", "append what it yields to a list")
def length_of_a_list_that_a_generator_inside_changes(n):
    def parts(i, own):
        if i == n:
            yield sum(own)
            return
        own.append(i)
        for part in parts(i + 1, own):
            yield part + len(own)
        own.pop()

    return list(parts(0, []))


@refuse((X,), "the items of an array have one shape, and these are i64[2] and i64[1]", "in a list")
def rows_of_several_lengths(x):
    return np.array([[1, 2], [3]]) @ x[:2]


@refuse((X,), "the axis must be one int here, not 'rows'")
def axis_by_a_name(x):
    return x.sum(axis="rows")


@refuse((X,), "the axis must be one int here, not 0.5")
def axis_between_two(x):
    return x.mean(axis=(0.5,))


TOO_SMALL = ValueError("too small")


@refuse((0,), "this ValueError was made outside of the compiled function", "raise ValueError(...)")
def raised_again_and_again(n):
    if n < 1:
        raise TOO_SMALL
    return n


def _whole(texts):
    for text in texts:
        try:
            yield int(text)
        except ValueError:
            continue


@refuse((["1", "x"],), "a yield in the body of a try with an except is not compiled where")
def generator_with_a_try_in_a_try(texts):
    try:
        return [10 // n for n in _whole(texts)]
    except ZeroDivisionError:
        return None
