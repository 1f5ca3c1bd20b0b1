"""Kernels become LLVM: statements, expressions and names mean what they mean in Python."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from pyrelay.devices.compiler.kernel_compiler import kernel_object, optimised_module
from pyrelay.devices.compiler.kernel_language import KernelError
from tests.devices.running_kernels import (
    SHORT_NAMES,
    elementwise,
    elementwise_source,
    kernel_assembly,
    needs_vectors,
    run,
)


def kernel(body: str, after: str = "return 0") -> str:
    lines = [f"    {line}" for line in [*body.splitlines(), after]]
    head = ["from pyrelay.devices.compiler.vocabulary import *", "", "LIMIT = 7", "",
            "def kernel(block, begin, end):", "    o = param_i64(block, 1)"]  # fmt: skip
    return "\n".join([*head, *lines, ""])


def in_python(body: str, end: int) -> list[int]:
    """What plain Python stores into `o`."""
    out = [0] * 8

    def store_ordered_i64(array: list[int], place: int, value: int) -> None:
        array[place] = int(value)

    known = {"store_ordered_i64": store_ordered_i64, "LIMIT": 7, "o": out, "begin": 0, "end": end,
             "load_ordered_i64": lambda array, place: array[place]}  # fmt: skip
    exec(body, known)
    return out


BODIES = (
    # What is in no loop's tail, in loops that go on and leave.
    """n = 0
for i in range(end):
    if i % 3 == 1:
        continue
    if i > LIMIT:
        break
    n += i
    last = i
store_ordered_i64(o, 0, n)
store_ordered_i64(o, 1, end)""",
    # Names that are bound twice, read before and after, and swapped.
    """a, b = 1, 2
for i in range(end):
    a, b = b, a + b
    begin += a
store_ordered_i64(o, 0, a)
store_ordered_i64(o, 1, b)
store_ordered_i64(o, 2, begin)""",
    # A name that keeps the value of another, which goes on.
    """x = end
y = x
x = x + 1
z = x
while x < 20:
    x += z
    y = x - 1 if x > 10 else y
store_ordered_i64(o, 0, x)
store_ordered_i64(o, 1, y)
store_ordered_i64(o, 2, z)""",
    # Loops in each direction, with steps that are known and that are not.
    """total = 0
for i in range(end, -3, -2):
    total = total * 3 + i
for i in range(0, end, 1 + end // 4):
    total = total * 3 + i
for i in range(end, 0, -1 - end // 4):
    for k in range(i):
        total = total + k
store_ordered_i64(o, 0, total)""",
    # Conditions, whose second half must not run where the first decides.
    """for i in range(end):
    if i != 0 and not 12 // i < 3 or i == 5:
        store_ordered_i64(o, 0, load_ordered_i64(o, 0) + i)
    small = i == 2 or i == 3
    if small:
        store_ordered_i64(o, 1, load_ordered_i64(o, 1) + i)
    elif i < LIMIT and i > 3:
        store_ordered_i64(o, 2, load_ordered_i64(o, 2) + i)
    else:
        store_ordered_i64(o, 3, load_ordered_i64(o, 3) + i)""",
    # Loops without an end of their own, inside of others.
    """n = end
rounds = 0
while True:
    rounds += 1
    if n <= 1:
        break
    if n % 2 == 0:
        n = n // 2
        continue
    while n > 40:
        n -= 7
    n = 3 * n + 1
    if rounds > 30:
        break
store_ordered_i64(o, 0, rounds)
store_ordered_i64(o, 1, n)""",
    # The index of a loop, used behind it, changed inside.
    """i = -5
for i in range(end):
    i = i * 2
    store_ordered_i64(o, 1, i)
store_ordered_i64(o, 0, i)""",
)


@pytest.mark.parametrize("body", BODIES)
def test_a_kernel_computes_what_its_text_computes_in_python(body: str) -> None:
    source = kernel(body)
    for end in (0, 1, 2, 5, 6, 9, 12):
        out = np.zeros(8, np.int64)
        run(source, out, ranges=[(0, end)])
        assert out.tolist() == in_python(body, end)


def test_a_kernel_that_returns_early_gives_that_status() -> None:
    body = "for i in range(end):\n    if i == 3:\n        return 1\n    store_ordered_i64(o, i, 1)"
    out = np.zeros(8, np.int64)
    with pytest.raises(AssertionError):
        run(kernel(body), out, ranges=[(0, 5)])
    assert out.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def _widths(make: Callable[[int], str], sizes: tuple[int, ...]) -> list[int]:
    """How many LLVM instructions kernels of several sizes have."""
    return [
        sum(1 for f in optimised_module(make(size), "test").functions for b in f.blocks
            for _ in b.instructions)
        for size in sizes
    ]  # fmt: skip


def test_the_size_of_a_kernels_code_grows_as_its_text() -> None:
    def make(size: int) -> str:
        return kernel("\n".join(f"store_ordered_i64(o, {k}, end * {k + 3})" for k in range(size)))

    first, second, third = _widths(make, (20, 40, 80))
    assert third - second == 2 * (second - first)


def _written(body: str) -> list[str]:
    """The lines of a kernel, without functions that it calls."""
    made = str(optimised_module(kernel(body), "test")).splitlines()
    begin = next(k for k, line in enumerate(made) if "@pyrelay_kernel(" in line)
    return made[begin : made.index("}", begin)]


def test_loops_with_two_checks_are_not_written_twice() -> None:
    body = """n, m, rounds = param_extent(block, 2), param_extent(block, 3), 1000
for i in range(end):
    v = 0
    while v < begin:
        if unlikely(v >= n):
            store_ordered_i64(o, 0, v)
            return 1
        if unlikely(v >= m):
            store_ordered_i64(o, 1, v)
            return 2
        store_ordered_i64(o, v + n, load_ordered_i64(o, v) + i)
        v += 1
        rounds = rounds - 1
        if unlikely(rounds < 0):
            rounds = 1000
            status = poll(block)
            if status != 0:
                return status"""
    calls = [line for line in _written(body) if " call " in line]
    assert len(calls) == 1
    # Where Ctrl-C is looked for seldom, registers are kept by what is called.
    assert "call preserve_allcc i64 @look_for_ctrl_c" in calls[0]


@pytest.mark.parametrize(("number", "asked"), [("k", True), ("k * k", False), ("k * k + 1", False)])
def test_numbers_of_32_bits_are_divided_as_such_but_for_products(number: str, asked: bool) -> None:
    body = f"""k = begin
while k < end:
    n = load_ordered_i64(o, k + 1)
    store_ordered_i64(o, k, remainder({number}, n))
    k = load_ordered_i64(o, k)"""
    lines = _written(body)
    assert any(" urem i32 " in line for line in lines) == asked
    assert any(" srem i64 " in line for line in lines)


DIVIDED = """n = param_extent(block, 3)
k = begin
while k < end:
    x, y = load_ordered_{0}(o, k), load_ordered_{0}(param_i64(block, 2), k)
    store_ordered_{0}(param_i64(block, 4), k, x // y)
    store_ordered_{0}(param_i64(block, 5), k, remainder(x, y))
    store_ordered_{0}(param_i64(block, 6), k, floor_divide(x, {1}))
    store_ordered_{0}(param_i64(block, 7), k, x % {1})
    k += 1"""


@pytest.mark.parametrize(("short", "by"), [("i64", -7), ("i64", 10), ("i64", -1), ("i64", 8)])
def test_divisions_in_while_loops_are_those_of_numpy(short: str, by: int) -> None:
    least, most = -(2**63), 2**63 - 1
    numbers = [least, least + 1, -(2**40), -21, -8, -7, -1, 0, 1, 6, 7, 8, 20, 2**32 - 1, 2**32]
    numbers += [2**40, most]
    x, y = (np.array(each) for each in zip(*itertools.product(numbers, numbers), strict=True))
    outs = [np.zeros(x.size, np.int64) for _ in range(4)]
    run(kernel(DIVIDED.format(short, by)), x, y, x.size, *outs, ranges=[(0, x.size)])
    with np.errstate(all="ignore"):
        expected = [x // y, x % y, x // by, x % by]
    for out, wanted in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize(("dtype", "short"), [(np.int32, "i32"), (np.uint8, "u8")])
def test_divisions_of_other_integers_in_while_loops_are_those_of_numpy(
    dtype: type[np.generic], short: str
) -> None:
    info = np.iinfo(dtype)  # type: ignore[arg-type]
    numbers = [info.min, info.min + 1, 0, 1, 2, 7, 100, info.max]
    pairs = np.array(list(itertools.product(numbers, numbers)), dtype)
    x, y = np.ascontiguousarray(pairs.T)
    outs = [np.zeros(x.size, dtype) for _ in range(2)]
    lines = DIVIDED.format(short, 1).splitlines()
    run(kernel("\n".join([*lines[:6], lines[-1]])), x, y, x.size, *outs, ranges=[(0, x.size)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(outs[0], x // y)
        np.testing.assert_array_equal(outs[1], x % y)


INVERTED = """y = param_{0}(block, 2)
n = param_extent(block, 4)
a0, o0, o1 = param_i64(block, 1), param_i64(block, 3), param_i64(block, 5)
for k in range(n):
    x = load_{0}(a0, k)
    store_{0}(o0, k, remainder(x, y))
    store_{0}(o1, k, floor_divide(x, y))"""


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_divisions_by_what_no_round_changes_are_products_with_its_inverse(dtype: str) -> None:
    info, kind = np.iinfo(dtype), np.dtype(dtype)
    powers = (2, 3, 5, 7, 8, 15, 16, 31, 32, 40, 62, 63)
    ends = [-21, -7, 0, 1, 6, 7, 10, *(sign * 2**k + d for k in powers for sign in (-1, 1)
                                       for d in (-1, 0, 1))]  # fmt: skip
    numbers = sorted({v for v in (*ends, info.min, info.max) if info.min <= v <= info.max})
    source = kernel(INVERTED.format(SHORT_NAMES[kind]))
    for divisor in numbers:
        near = [q * divisor + r for q in (-3, 2, 10**6) for r in (-1, 0, 1)]
        x = np.array([*numbers, *(v for v in near if info.min <= v <= info.max)], kind)
        rests, quotients = np.zeros_like(x), np.zeros_like(x)
        run(source, x, kind.type(divisor), rests, x.size, quotients, ranges=[(0, 1)])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(rests, x % kind.type(divisor))
            np.testing.assert_array_equal(quotients, x // kind.type(divisor))


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_words_are_divided_by_known_numbers_in_vectors(dtype: str) -> None:
    needs_vectors(256)
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    x = rng.integers(info.min, info.max, 997, dtype=dtype, endpoint=True)
    x[:40] = np.arange(-20, 20).astype(dtype)
    x[40:46] = info.min, info.max, info.max - 1, 2**32, 2**32 - 1, 2**62
    for divisor in (3, 7, 10, 641, 10**9 + 7, 2**32 + 1, 2**62 + 1, info.max, info.max - 1):
        for text, wanted in (("floor_divide", x // divisor), ("remainder", x % divisor)):
            named = f"{text}(x0, {SHORT_NAMES[np.dtype(dtype)]}({divisor}))"
            np.testing.assert_array_equal(elementwise(named, x, result=x.dtype), wanted)
    assembly = kernel_assembly(elementwise_source("floor_divide(x0, 7)", ["i64"], "i64"))
    assert "vpmuludq" in assembly or "umlal" in assembly


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_quotients_of_two_arrays_are_those_of_floats(dtype: str) -> None:
    info, rng, kind = np.iinfo(dtype), np.random.default_rng(0), np.dtype(dtype)
    ends = [info.min, info.min + 1, 0, 1, 2, 3, 2**51 - 1, 2**51, 2**53 + 1, info.max - 1, info.max]
    ends = [each for each in ends if each <= info.max]
    x, y = (each.ravel() for each in np.meshgrid(np.array(ends, kind), np.array(ends, kind)))
    some = [rng.integers(info.min, info.max, 999, dtype=kind, endpoint=True) for _ in range(2)]
    some[1] >>= rng.integers(0, info.bits, 999, dtype=kind)
    with np.errstate(all="ignore"):
        most = some[0] // np.where(some[1] == 0, 1, some[1]) * some[1]
        x = np.concatenate([x, some[0], most, most - 1, most + 1]).astype(kind)
        y = np.concatenate([y, *[some[1]] * 4]).astype(kind)
        quotients = elementwise("floor_divide(x0, x1)", x, y, result=kind)
        np.testing.assert_array_equal(quotients, x // y)
        rests = elementwise("remainder(x0, x1)", x, y, result=kind)
        np.testing.assert_array_equal(rests, x % y)
    short = SHORT_NAMES[kind]
    text = kernel_assembly(elementwise_source("floor_divide(x0, x1)", [short] * 2, short))
    divides = re.search(r"\s[isu]?div[bwlq]?\s", text) is not None
    assert divides == (info.bits == 64)  # numbers too large for floats


def _waiting(body: str) -> int:
    """How many choices of a kernel wait for a remainder."""
    module = optimised_module(kernel(body), "test")
    function = next(f for f in module.functions if not f.is_declaration)
    names: set[str] = set()
    found = 0
    for block in function.blocks:
        for made in block.instructions:
            reads = {str(each).split(" = ")[0].strip() for each in made.operands}
            if made.opcode == "srem" or reads & names:
                if made.opcode != "phi":
                    names.add(str(made).split(" = ")[0].strip())
                found += made.opcode == "select"
    return found


def test_nothing_waits_for_what_signs_a_division_has_in_rounds_one_by_one() -> None:
    body = "x = end\n{}\nstore_ordered_i64(o, 1, x)"
    counted = "for i in range(begin):\n    y = load_ordered_i64(o, i)\n    x = remainder(x, y) + y"
    assert _waiting(body.format(counted)) > 0
    endless = counted.replace("for i in range(begin)", "while x > begin").replace("i)", "x)")
    assert _waiting(body.format(endless)) <= 1
    early = counted + "\n    if x == 12:\n        return 1"
    assert _waiting(body.format(early)) <= 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("store_ordered_i64(o, 0, later)\nlater = 1", "'later' is not known here"),
        ("x = 1\nif end > 2:\n    x = 2.0", "uses 'x' as int64 and as float64"),
        ("x = 1 if end > 2 else 1.0", "float64 or int64"),
        ("for i in (1, 2):\n    pass", "a loop is over a range"),
        ("x, y = end", "cannot be assigned"),
        ("x = [1]", "is no expression of kernels"),
        ("del o", "is no statement of kernels"),
        ("break", "is no statement of kernels"),
        ("x = 'a'", "not part of the kernel language"),
        ("x = store_ordered_i64(o, 0, 1)", "cannot be void"),
        ("x = len(o)", "is no call of a function of kernels"),
        ("x = 1 ** 2", "Pow is no operator of kernels"),
        ("for i in range(2.0):\n    pass", "the bounds of a range are int64"),
    ],
)
def test_what_is_no_kernel_is_refused_with_the_line(body: str, told: str) -> None:
    with pytest.raises(KernelError, match=told) as refused:
        kernel_object(kernel(body), "test")
    (note,) = refused.value.__notes__
    number = next(k for k in itertools.count(1) if f"in line {k} of" in note)
    assert 7 <= number <= 6 + len(body.splitlines())


def test_a_kernel_that_may_end_without_a_status_is_refused() -> None:
    with pytest.raises(KernelError, match="ends without return"):
        kernel_object(kernel("if end > 2:\n    return 0", after="pass"), "test")
    with pytest.raises(KernelError, match="returns float64"):
        kernel_object(kernel("return 1.0"), "test")


def test_compiling_imports_no_numba() -> None:
    program = (
        "import sys; from pyrelay.devices.compiler import kernel_compiler as k, vocabulary; "
        "print('numba' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"


DIVISIONS = """
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True


def kernel(block, begin, end):
    x, y, o = param_i64(block, 1), param_i64(block, 2), param_i64(block, 3)
    for i in range(begin, end):
        a, b = load_ordered_i64(x, i), load_ordered_i64(y, i)
        store_ordered_i64(o, 4 * i, a // b)
        store_ordered_i64(o, 4 * i + 1, a % b)
        store_ordered_i64(o, 4 * i + 2, b // a)
        store_ordered_i64(o, 4 * i + 3, a // 7 + a % 12)
    return 0
"""


def test_what_is_only_tidied_divides_by_functions_that_round_as_everywhere():
    """Each division in line is a dozen instructions, or four times as many."""
    few = [-(2**63), -(2**40), -13, -4, -1, 0, 1, 3, 12, 2**33, 2**63 - 1]
    x, y = np.array(list(itertools.product(few, few)), np.int64).T.copy()
    found = np.zeros((len(x), 4), np.int64)
    run(DIVISIONS, x, y, found, ranges=[(0, len(x))])
    with np.errstate(divide="ignore", over="ignore"):
        expected = np.stack([x // y, x % y, y // x, x // 7 + x % 12], axis=1)
    np.testing.assert_array_equal(found, expected)
    text = str(optimised_module(DIVISIONS, "text"))
    assert text.count("call preserve_mostcc i64 @floor_") == 3


@pytest.mark.parametrize(("rounds", "narrow"), [("total + load_f64(x, j)", True), ("1.5", False)])
def test_sums_of_floats_that_take_turns_with_vectors_have_these_of_256_bits(
    rounds: str, narrow: bool
) -> None:
    body = f"""x = param_i64(block, 2)
for i in range(begin, end):
    total = 0.0
    for j in range(i):
        total = {rounds} * 0.5
    for j in range(i):
        store_f64(o, j, total * load_f64(x, j))"""
    text = str(optimised_module(kernel(body), "test"))
    assert ('"prefer-vector-width"="256"' in text) is narrow


def test_quotients_of_short_numbers_are_rounded_in_few_bits() -> None:
    """LLVM knows that remainders have the sign of what is divided: nothing rounds bytes down."""
    body = """x = param_i64(block, 2)
for i in range(begin, end):
    store_u8(o, i, u8(floor_divide(i64(load_u8(x, i)) + i64(load_u8(x, i + 1)), 9)))"""
    text = str(optimised_module(kernel(body), "test"))
    assert "udiv <" in text
    assert " mul " not in text.split("vector.body:")[1].split("middle.block:")[0]
    few = np.arange(-128, 128, dtype=np.int8)
    found = np.zeros((2, 256), np.int8)
    body = """x = param_i64(block, 2)
for i in range(begin, end):
    store_i8(o, i, floor_divide(load_i8(x, i), i8(7)))
    store_i8(o, i + 256, floor_divide(load_i8(x, i), i8(127)))"""
    run(kernel(body), found, few, ranges=[(0, 256)])
    np.testing.assert_array_equal(found, [few // np.int8(7), few // np.int8(127)])
