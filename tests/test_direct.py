"""The short way into a program: taken where it may be, and it gives what the long way gives."""

from __future__ import annotations

import gc
import pickle
import random
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyrelay


@dataclass
class Layer:
    w: Any
    b: Any


class Pair(NamedTuple):
    first: Any
    second: Any


def arrays(*sizes: int) -> list[Any]:
    return [np.linspace(0.5, 1.0, n) + k for k, n in enumerate(sizes)]


A, B, C = arrays(3, 3, 3)


def total(p):
    return sum(p.values())


def of_layers(layers, x):
    for layer in layers:
        x = np.tanh(x * layer.w + layer.b)
    return x


def scaled(p, mode, flag):
    factor = 2.0 if mode == "double" else 3.0
    return {"a": p["a"] * factor, "b": [p["b"], (p["a"], flag, None)]}


def applied(function, pair):
    return Pair(function(pair.first), pair.second)


def halved(x):
    return x * 0.5


def looked_up(table, key):
    return table[key], key in table


def among(items, wanted):
    return wanted in items, len(items)


_HOW = "i   ,   i   ->   i"  # a program needs to know it


CASES = [
    (total, ({f"w{k}": A * k for k in range(10)},)),
    (total, ({"only": A},)),
    (of_layers, ((Layer(A, B), Layer(B + 1, 1.5)), C)),
    (of_layers, ([Layer(A, B)], C)),
    (of_layers, (tuple(Layer(A * 0.1, B) for _ in range(60)), C)),
    (scaled, ({"a": A, "b": B}, "double", True)),
    (applied, (halved, Pair(A, 2.0))),
    (lambda p: p["layers"][1]["w"] @ p["x"][0], ({"layers": [{"w": A}, {"w": B}], "x": (C, 1)},)),
    (lambda p, x: x + 1.0, ({}, A)),
    (looked_up, ({k: k * k for k in range(20)}, 4)),
    (looked_up, (Counter("abca"), "a")),
    (looked_up, (Counter(range(20)), 3)),
    (looked_up, (defaultdict(int, {1: 2}), 1)),
    (among, ({1, 2, 3}, 2)),
    (among, ({"a", "b"}, "b")),
    (among, ({f"w{k}" for k in range(20)}, "w3")),
    (among, ("a text of more than sixteen", "m")),
    (among, (b"ab", 97)),
    (lambda how, x: np.einsum(how, x, x), (_HOW, A)),
]  # fmt: skip


def same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        got, wanted = list(got.values()), list(wanted.values())
    if isinstance(wanted, (list, tuple)):
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-14) if wanted is not None else None


@pytest.mark.parametrize(("function", "args"), CASES)
def test_structures_of_arrays_and_numbers_take_the_short_way(function: Any, args: Any) -> None:
    compiled = pyrelay.jit(function)
    compiled(*args)
    assert compiled._short is not None
    compiled._dispatch = None
    same(compiled(*args), function(*args))
    assert compiled.cache_info().hits == 1


def swept(x, p, times):
    for _ in range(times):
        for i in range(1, len(x)):
            x[i] += p["step"][0] * x[i - 1]
            p["seen"][i] = x[i]
    return x[0]


def test_arrays_that_a_program_writes_take_the_short_way() -> None:
    compiled = pyrelay.jit(swept)
    compiled(A.copy(), {"step": B, "seen": C.copy()}, 1)
    assert compiled._short is not None
    compiled._dispatch = None
    x, y, seen, noted = A.copy(), A.copy(), C.copy(), C.copy()
    assert compiled(x, {"step": B, "seen": seen}, 2) == swept(y, {"step": B, "seen": noted}, 2)
    np.testing.assert_allclose(x, y, rtol=1e-14)
    np.testing.assert_allclose(seen, noted, rtol=1e-14)


def test_arrays_that_share_memory_with_what_is_written_take_the_long_way() -> None:
    compiled = pyrelay.jit(swept)
    whole = np.arange(8.0)

    def parts(x: int, step: int, seen: int) -> Any:
        """Views of 3, 1 and 3 elements from these on."""
        return whole[x : x + 3], {"step": whole[step : step + 1], "seen": whole[seen : seen + 3]}

    compiled(*parts(0, 3, 4), 1)
    for apart in [(4, 0, 1), (1, 7, 4), (0, 3, 5)]:
        compiled(*parts(*apart), 1)
    assert compiled.cache_info()[1:3] == (1, 3)
    before = whole.copy()
    for shared in [(0, 2, 4), (4, 4, 0), (0, 7, 2), (2, 7, 0), (0, 3, 3), (3, 0, 4)]:
        with pytest.raises(pyrelay.errors.AliasError):
            compiled(*parts(*shared), 1)
    np.testing.assert_array_equal(whole, before)
    whole.flags.writeable = False
    with pytest.raises(pyrelay.PyrelayError, match="read-only"):
        compiled(*parts(0, 3, 4), 1)


def test_what_does_not_fit_takes_the_long_way() -> None:
    compiled = pyrelay.jit(total)
    compiled({"a": A, "b": B})
    others = [
        {"b": A, "a": B}, {"a": A}, {"a": A, "b": 2.0}, {"a": A, "b": B, "c": C},
        OrderedDict(a=A, b=B), {"a": A, "b": A}, {"a": np.ones((3, 3)), "b": B},
        {"a": A.astype(np.float32), "b": B}, {"a": A[::-1], "b": B}, {"a": np.ones(1), "b": B},
    ]  # fmt: skip
    for p in others:
        compiled({"a": A, "b": B})
        same(compiled(p), total(p))
    same(compiled(p={"a": A, "b": B}), total({"a": A, "b": B}))
    with pytest.raises(TypeError, match="positional argument"):
        compiled({"a": A, "b": B}, 1)
    with pytest.raises(pyrelay.PyrelayError):
        compiled("ab")


def test_tables_sets_and_texts_that_do_not_fit_take_the_long_way() -> None:
    def kind(items):
        return type(items), len(items)

    table = {k: k for k in range(20)}
    for first, *others in [
        ({1, 2}, {1, 2.5}, {"a"}, {1: 2}),
        ({"a"}, {"b"}, {"a", "b"}, ["a"]),
        (table, dict.fromkeys(table, 0.5), Counter(table), {1: 2}),
        (Counter("a"), {"a": 1}, defaultdict(int, {"a": 1})),
        ("a text of more than sixteen", "a", b"a text of more than sixteen"),
    ]:
        compiled = pyrelay.jit(kind)
        assert compiled(first) == kind(first)
        for other in others:
            assert compiled(other) == kind(other)
    chosen = pyrelay.jit(np.einsum)
    for how in (_HOW, _HOW.rstrip("i"), _HOW):
        same(chosen(how, A, A), np.einsum(how, A, A))


def test_arguments_given_by_name_take_the_short_way() -> None:
    def function(x, /, y, scale=2.0, *, shift=1.0):
        return (x - y["a"]) * scale + shift

    compiled = pyrelay.jit(function)
    p = {"a": B}
    compiled(A, p, 3.0)
    ways = [((A,), {"y": p, "scale": 4.0}), ((A,), {"scale": 5.0, "y": p}),
            ((A, p), {"scale": 6.0})]  # fmt: skip
    for number, (args, named) in enumerate(ways, 1):
        same(compiled(*args, **named), function(*args, **named))
        assert compiled.cache_info()[1:3] == (1, number)
    for args, named in [((A, p), {"shift": 2.0}), ((A,), {"y": p}), ((A, p, 2.0), {"shift": 2.0})]:
        compiled(A, p, 3.0)
        same(compiled(*args, **named), function(*args, **named))
    compiled(A, p, 3.0)
    for args, named in [((A, p), {"y": 1.0}), ((), {"x": A, "y": p, "scale": 1.0}),
                        ((A, p), {"other": 1.0})]:  # fmt: skip
        with pytest.raises(TypeError):
            function(*args, **named)
        with pytest.raises(TypeError):
            compiled(*args, **named)


def test_values_that_a_program_was_compiled_for_are_compared() -> None:
    compiled = pyrelay.jit(scaled)
    p = {"a": A, "b": B}
    for mode, flag in (("double", True), ("double", False), ("other", True), ("double", True)):
        for _ in range(2):
            same(compiled(p, mode, flag), scaled(p, mode, flag))
    compiled = pyrelay.jit(applied)
    for function in (halved, np.sin, halved, np.cos):
        for _ in range(2):
            same(compiled(function, Pair(A, B)), applied(function, Pair(A, B)))


@pytest.mark.parametrize("function", [
    lambda x, y: x.sum() if x is y else y.sum() - 5.0,
    lambda x, y: (x is not y) * x,
    lambda x, y: x.sum() if [x][0] is y else 1.0,
])  # fmt: skip
def test_one_array_given_twice_is_not_taken_for_two(function: Any) -> None:
    compiled = pyrelay.jit(function)
    for x, y in ((A, B), (A, A), (A, B), (B, B)):
        same(compiled(x, y), function(x, y))
    inside = pyrelay.jit(lambda p, q: function(p["x"], q[0]))
    for x, y in ((A, B), (A, A), (A, B)):
        same(inside({"x": x}, [y]), function(x, y))


def test_one_structure_given_twice_is_not_taken_for_two() -> None:
    def function(p, q):
        return p[0] if p is q else p[0] + q[0]

    compiled = pyrelay.jit(function)
    one, other = [A], [A]
    for p, q in ((one, other), (one, one), (one, other)):
        same(compiled(p, q), function(p, q))


def test_programs_that_tell_objects_apart_take_the_short_way() -> None:
    def function(p, q, x):
        return p is q, x

    compiled = pyrelay.jit(function)
    one, other = [A], [A]
    for p, q in ((one, one), (one, other)):
        same(compiled(p, q, 1.0), function(p, q, 1.0))
    hidden, compiled._dispatch = compiled._dispatch, None
    same(compiled(one, other, 2.0), (False, 2.0))
    compiled._dispatch = hidden
    same(compiled(one, one, 2.0), (True, 2.0))


def test_programs_whose_writes_may_be_lost_take_the_short_way_and_say_so_where_they_raise() -> None:
    def merged(rows):
        rows.sort()
        found = [rows[0]]
        for low, high in rows[1:]:
            if low < 0:
                raise ValueError("below zero")
            if low <= found[-1][1]:
                found[-1][1] = max(found[-1][1], high)
            else:
                found.append([low, high])
        return found

    compiled = pyrelay.jit(merged)
    assert compiled([[8, 10], [1, 3], [2, 6], [4, 7], [5, 9]]) == [[1, 10]]
    compiled._dispatch = None
    assert compiled([[8, 9], [1, 3], [2, 6], [4, 5], [5, 6]]) == [[1, 6], [8, 9]]
    with pytest.raises(ValueError, match="below zero") as caught:
        compiled([[-8, 9], [-9, 3], [2, 6], [4, 5], [5, 6]])
    assert any("is lost" in note for note in caught.value.__notes__)


def test_a_result_that_stands_in_two_places_is_one_object() -> None:
    compiled = pyrelay.jit(lambda p: ([p["a"] * 2.0],) * 2)
    for _ in range(2):
        first, second = compiled({"a": A})
        assert first is second


class Slotted:
    __slots__ = ("scale", "shift")

    def __init__(self, scale: Any, shift: Any) -> None:
        self.scale, self.shift = scale, shift


class Tally:
    calls = 0
    scale = 2.0


def by_case(x, k):
    numbers, named = [x, x + 1], {"n": x}
    if k > 2:
        return numbers, numbers, "many"
    if k > 1:
        return numbers, named, "two"
    return named, [named, numbers], "few"


def test_what_only_some_cases_of_a_result_make_is_one_object_in_each() -> None:
    compiled = pyrelay.jit(by_case)
    compiled(1, 3)
    compiled._dispatch = None
    for k in (3, 2, 1):
        found = compiled(5, k)
        assert found == by_case(5, k)
        assert (found[0] is found[1]) is (k == 3)
    assert found[0] is found[1][0]


def test_objects_with_slots_and_attributes_of_classes_take_the_short_way() -> None:
    def scaled_by(x, p):
        p.shift = p.shift + x
        return x * p.scale

    compiled = pyrelay.jit(scaled_by)
    compiled(2.0, Slotted(1.0, 0.5))
    compiled._dispatch = None
    p = Slotted(3.0, 0.5)
    assert (compiled(2.0, p), p.shift) == (6.0, 2.5)

    def called(x):
        Tally.calls += 1
        return x * Tally.scale

    compiled = pyrelay.jit(called)
    compiled(1.0)
    compiled._dispatch = None
    assert (compiled(3.0), Tally.calls) == (6.0, 2)
    Tally.calls = 7
    assert (compiled(3.0), Tally.calls) == (6.0, 8)


def test_objects_of_which_slots_have_no_value_take_the_long_way() -> None:
    def shifted(p):
        return p.scale + 1.0

    compiled = pyrelay.jit(shifted)
    for _ in range(2):
        assert compiled(Slotted(1.0, 2.0)) == 2.0
        bare = Slotted(1.0, 2.0)
        del bare.shift
        assert compiled(bare) == 2.0


def test_errors_of_the_program_come_as_they_are() -> None:
    @pyrelay.jit
    def first_above(p, least):
        for k in range(3):
            if p["a"][k] > least:
                return k
        raise ValueError("none is")

    assert first_above({"a": A}, 0.0) == 0
    with pytest.raises(ValueError, match="none is") as caught:
        first_above({"a": A}, 9.0)
    assert (str(caught.value), caught.value.__context__) == ("none is", None)


def test_an_argument_in_a_structure_comes_back_itself() -> None:
    compiled = pyrelay.jit(lambda p, n: p["a"] if n > 1 else p["b"] * 2.0)
    p = {"a": A, "b": B}
    for n in (2, 2, 0, 3):
        assert (compiled(p, n) is A) == (n > 1)


# -- what lies outside, what is known, what is copied ----------------------------------------------

outside = np.linspace(0.0, 1.0, 3)
settings: dict[str, Any] = {"scale": 2.0, "shift": outside}
layer = Layer(A, 2.0)


def reading(x):
    return x * outside + settings["shift"] * settings["scale"] + layer.w * layer.b


def known(x, axis, times):
    for _ in range(times):
        x = np.stack([x, x]).sum(axis=axis)
    return x


def named(x, *, scale=2.0, shift):
    return x * scale + shift


def moved(p, step):
    return Layer(p.w - step * p.b, p.b), p, [p.w]


def counted(x, n):
    return {"x": {x.shape[0]}, "range": range(n)}


FEW = [
    (reading, (B,), {}),
    (known, (np.ones((2, 2)), 1, 2), {}),
    (named, (A,), {"shift": 1.0}),
    (named, (A,), {"shift": B, "scale": 3.0}),
    (lambda x, k=3, *, y=B: x * k + y, (A,), {}),
    (lambda x, y: x @ y, (A, A), {}),
    (lambda p, x: p["a"] + x, ({"a": A}, A), {}),
    (lambda p, q: p[0] + q[0], ([A], [A]), {}),
    (moved, (Layer(A, B), 0.5), {}),
    (counted, (A, 4), {}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "keywords"), FEW)
def test_what_a_program_knows_or_reads_outside_takes_the_short_way(
    function: Any, args: Any, keywords: Any
) -> None:
    compiled = pyrelay.jit(function)
    compiled(*args, **keywords)
    compiled._dispatch = None
    got, wanted = compiled(*args, **keywords), function(*args, **keywords)
    if function is moved:
        assert got[1] is args[0]
        got, wanted = (vars(got[0]), *got[2]), (vars(wanted[0]), *wanted[2])
    if function is counted:
        assert got == wanted
    else:
        same(got, wanted)
    assert compiled.cache_info().hits == 1


def test_what_is_read_outside_is_read_at_each_call() -> None:
    global outside
    compiled = pyrelay.jit(reading)
    before, given = outside, dict(settings)
    try:
        for change in (
            lambda: None, lambda: outside.__setitem__(0, 5.0), lambda: settings.update(scale=3.0),
            lambda: settings.update(shift=C), lambda: settings.update(scale=2),
            lambda: setattr(layer, "b", 7.0), lambda: setattr(layer, "w", 1.5),
        ):  # fmt: skip
            change()
            same(compiled(B), reading(B))
        outside = A[None] * 2.0
        same(compiled(B), reading(B))
        outside = A[::-1]
        same(compiled(B), reading(B))
    finally:
        before[0] = 0.0
        outside, layer.w, layer.b = before, A, 2.0
        settings.update(given)


gain: Any = None


def twice_as_much(x: Any) -> Any:
    return x * 2.0


def with_names(x: Any, shift: float = 1.0) -> Any:
    return abs(twice_as_much(x)) + (shift if gain is None else gain)


def test_names_are_looked_at_in_each_call_and_such_calls_are_counted() -> None:
    global gain, twice_as_much, abs
    compiled, whole = pyrelay.jit(with_names), twice_as_much
    given: Any = None

    def closing(x: Any) -> Any:
        return x if given is None else x + given

    closed = pyrelay.jit(closing)

    def same_as_python() -> None:
        for _ in range(2):
            assert compiled(-1.5) == with_names(-1.5)
            assert closed(2.0) == closing(2.0)

    same_as_python()
    before = compiled.cache_info().hits
    for _ in range(5):
        compiled(-1.5)
    assert compiled.cache_info().hits == before + 5
    try:
        gain = given = 4.0
        same_as_python()
        gain = given = None
        same_as_python()
        twice_as_much = lambda x: x * 3.0  # noqa: E731
        same_as_python()
        twice_as_much = whole
        abs = lambda x: x  # noqa: E731
        same_as_python()
        del abs
        same_as_python()
        with_names.__defaults__ = (7.0,)
        same_as_python()
        whole.__code__, code = (lambda x: x * 5.0).__code__, whole.__code__
        same_as_python()
        whole.__code__ = code
        same_as_python()
    finally:
        gain, twice_as_much, with_names.__defaults__ = None, whole, (1.0,)


def test_known_numbers_are_compared_with_their_kind() -> None:
    compiled = pyrelay.jit(lambda x, n: np.concatenate([x] * n if n else [x * n]))
    for n in (2, 3, 2, 0, 2):
        same(compiled(A, n), compiled.py(A, n))
    with pytest.raises(TypeError):
        compiled(A, 2.0)


def test_arguments_by_name_only_are_not_taken_by_position() -> None:
    compiled = pyrelay.jit(named)
    compiled(A, shift=1.0)
    for args, keywords in (((A, 1.0), {}), ((A,), {}), ((A,), {"shift": 1.0, "other": 2.0})):
        with pytest.raises(TypeError):
            compiled(*args, **keywords)
    same(compiled(shift=B, x=A, scale=1.0), named(shift=B, x=A, scale=1.0))


def test_keyword_defaults_may_change() -> None:
    def function(x, *, k=2.0):
        return x * k

    compiled = pyrelay.jit(function)
    for k in (2.0, 3.0, 3, B):
        function.__kwdefaults__ = {"k": k}
        same(compiled(A), function(A))
        same(compiled(A), function(A))


def test_arrays_that_are_not_contiguous_are_copied_on_the_short_way() -> None:
    table = np.arange(12.0).reshape(3, 4)
    compiled = pyrelay.jit(lambda x, y: x * 2.0 + y)
    compiled(A, B)
    compiled._dispatch = None
    for x, y in ((table[:, 0], table[:, 1]), (table[:, 2], A), (A[::-1], B)):
        same(compiled(x, y), compiled.py(x, y))
    scalars = pyrelay.jit(lambda x, y: x * y)
    scalars(np.array(2.0), np.array(3.0))
    scalars._dispatch = None
    same(scalars(np.array(4.0), np.array(3.0)), np.float64(12.0))


def test_arrays_that_are_written_are_not_copied_on_the_short_way() -> None:
    @pyrelay.jit
    def doubled(x):
        x *= 2.0

    table = np.ones((3, 4))
    doubled(np.ones(3))
    doubled(table[:, 1])
    np.testing.assert_array_equal(table, np.ones((3, 4)) + np.eye(4)[1])


def test_calls_of_several_kinds_take_the_short_way_each() -> None:
    compiled = pyrelay.jit(lambda x: x * 2)
    kinds = [A, A.astype(np.float32), np.ones((2, 2)), 3, 2.5, np.arange(3)]
    for each in kinds:
        compiled(each)
    compiled._dispatch = None
    for each in kinds:
        same(compiled(each), each * 2)
    assert compiled.cache_info().hits == len(kinds)


def test_arguments_may_have_any_names() -> None:
    def function(_x, type, /, len, *tuple, list=2.0, **dict):
        return _x * type + len - list + sum(tuple) + sum(dict.values())

    def plainly(_given, _known0=1.0, getattr=2.0):
        return _given * _known0 + getattr

    for each, args, keywords in (
        (function, (A, 2.0, 3.0), {"list": 1.5}), (function, (A, 2.0), {"len": B}),
        (function, (A, 2.0, 3.0, 4.0), {"_same": 1.0}),
        (plainly, (A,), {"_known0": 3.0}), (plainly, (), {"_given": B, "getattr": 1.0}),
        (plainly, (A, 2.0, 3.0), {}),
    ):  # fmt: skip
        compiled = pyrelay.jit(each)
        for _ in range(3):
            same(compiled(*args, **keywords), each(*args, **keywords))
            with pytest.raises(TypeError):
                compiled(*args, **keywords, unknown="x")


def test_calls_that_python_refuses_are_refused_after_others_too() -> None:
    def function(x, y, /, z, *, w=1.0):
        return x + y + z + w

    compiled = pyrelay.jit(function)
    calls: list[tuple[Any, Any, str]] = [
        ((A, B), {}, "'z'"), ((A, B, C), {"z": 1.0}, "multiple values for argument 'z'"),
        ((A, B, C, A), {}, "positional"), ((A,), {"y": B, "z": C}, "'y'"), ((), {}, "'x'"),
        ((A, B, C), {"v": 1.0}, "'v'"),
    ]  # fmt: skip
    for args, keywords, text in calls:
        same(compiled(A, B, C), function(A, B, C))
        with pytest.raises(TypeError, match=text) as caught:
            compiled(*args, **keywords)
        assert str(caught.value).startswith(f"{function.__qualname__}() ")


def test_arrays_that_were_pickled_take_the_short_way() -> None:
    compiled = pyrelay.jit(swept)
    given = (A.copy(), {"step": B, "seen": C.copy()}, 1)
    compiled(*given)
    compiled._dispatch = None
    got, wanted = pickle.loads(pickle.dumps(given)), pickle.loads(pickle.dumps(given))
    assert got[0].dtype is not A.dtype
    assert compiled(*got) == swept(*wanted)
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-14)


def scattered(x, places):
    sums = np.zeros(3)
    np.add.at(sums, places, x)
    return sums


def positive(x):
    found = []
    for k in range(len(x)):
        if x[k] > 1.0:
            found.append(k)
    return found


def by_sign(x):
    found, others = [], [0]
    for v in x:
        if v > 1.0:
            found.append((v, -v))
        else:
            others.append(1)
    return {"found": found, "others": len(others), "both": [found, others]}


def first_row(table, x):
    return x * len(table)


@pytest.mark.parametrize(("function", "args"), [
    (scattered, (A, np.array([0, 2, 0]))), (positive, (A + B,)), (by_sign, (A + B,)),
    (first_row, (np.ones((2, 3)), A)), (first_row, (np.ones((2, 1)), A)),
])  # fmt: skip
def test_lists_as_results_and_arrays_that_are_not_read_take_the_short_way(
    function: Any, args: Any
) -> None:
    compiled = pyrelay.jit(function)
    compiled(*args)
    compiled._dispatch = None
    got, wanted = compiled(*args), function(*args)
    if function is by_sign:
        assert got["both"][0] is got["found"]
        assert [type(v) for v in got["both"][1]] == [int] * len(wanted["both"][1])
    same(got, wanted)


def test_arrays_that_are_not_read_are_looked_at() -> None:
    compiled = pyrelay.jit(first_row)
    tables = [np.ones((2, 3)), np.ones((2, 3), np.float32), np.ones((5, 3)), np.ones((2, 1)),
              np.ones(4), np.array(0.0), [1, 2], "abc"]  # fmt: skip
    for table in tables:
        compiled(tables[0], A)
        try:
            wanted = first_row(table, A)
        except TypeError:
            with pytest.raises(TypeError):
                compiled(table, A)
        else:
            same(compiled(table, A), wanted)


def filed(names, counts, x):
    names.append(len(counts))
    counts["last"] = x * 2.0
    counts["sum"] = counts["sum"] + names[0]
    return names


def test_lists_and_dicts_that_a_program_changes_take_the_short_way() -> None:
    compiled = pyrelay.jit(filed)

    def given() -> Any:
        return [4, 5], {"sum": 1, "last": A}, B

    compiled(*given())
    compiled._dispatch, got, wanted = None, given(), given()
    assert compiled(*got) is got[0]
    filed(*wanted)
    same(got, wanted)


def both(one, other):
    one[0] = other[1] + 1
    return other[0]


def test_one_list_given_twice_is_another_program() -> None:
    compiled = pyrelay.jit(both)
    for _ in range(2):
        assert compiled([1, 2], [3, 4]) == both([1, 2], [3, 4])
        got, wanted = [1, 2], [1, 2]
        assert compiled(got, got) == both(wanted, wanted)
        assert got == wanted


def difference(x, y):
    if x < 0:
        raise ValueError(f"{x} is negative")
    return x - y, y - x


def cleared(x):
    x[:] = 0.0


def doubled_in_place(x):
    x *= 2.0
    return x


def after_another(compiled: Any) -> None:
    try:
        raise KeyError("outer")
    except KeyError:
        compiled(-1.5, 2.0)


def is_native(compiled: Any) -> bool:
    return type(compiled.__call__) is type(len)


@pytest.mark.parametrize(
    ("function", "args"),
    [(halved, (3.0,)), (halved, (A,)), (difference, (1.0, 2.0)), (cleared, (A,)),
     (doubled_in_place, (A,)), (lambda x, n: x.reshape(n, 1).sum(axis=0), (A, 3))],
)  # fmt: skip
def test_calls_with_arrays_and_numbers_are_native_from_beginning_to_end(
    function: Any, args: Any
) -> None:
    compiled = pyrelay.jit(function)
    for _ in range(3):
        mine, plain = ([a.copy() if type(a) is np.ndarray else a for a in args] for _ in range(2))
        got, wanted = compiled(*mine), function(*plain)
        assert type(got) is type(wanted)
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(mine[0], plain[0])
        assert (got is mine[0]) == (wanted is plain[0])
    assert is_native(compiled)


def test_a_native_call_turns_to_python_for_what_does_not_fit() -> None:
    compiled = pyrelay.jit(difference)
    assert compiled(1.0, 2.0) == (-1.0, 1.0)
    assert is_native(compiled)
    before = compiled.cache_info()
    assert compiled(y=2.0, x=1.0) == compiled(1.0, y=2.0) == (-1.0, 1.0)
    with pyrelay.config.override(unroll_limit=3):
        assert compiled(1.0, 2.0) == (-1.0, 1.0)  # another program
    assert compiled(1.0, 2.0) == (-1.0, 1.0)
    assert compiled.cache_info().compilations == before.compilations + 1
    for args in ((1,), (), (1.0, 2.0, 3.0)):
        with pytest.raises(TypeError):
            compiled(*args)
    assert compiled(1, 2) == (-1, 1)
    assert compiled(1.0, 2.0) == (-1.0, 1.0)


def apart(x, y):
    if np.sum(x) < 0:
        raise ValueError("negative")
    return (x - y) * 2


def test_native_calls_of_several_kinds_have_nothing_of_python_between() -> None:
    compiled = pyrelay.jit(apart)
    kinds = [(1.0, 2.0), (3, 4), (A, A + 1), (A.astype("f4"), A.astype("f4") + 1), (2, 2.5)]
    for x, y in kinds:
        compiled(x, y)
    assert is_native(compiled)
    entered: list[Any] = []
    for x, y in kinds:
        sys.setprofile(lambda frame, event, _: entered.append(frame) if event == "call" else None)
        try:
            got = compiled(x, y)
        finally:
            sys.setprofile(None)
        same(got, apart(x, y))
    assert entered == []
    assert compiled.cache_info().hits == len(kinds)
    for x, y in [(1.0, 2.0), (3, 4)]:
        assert compiled(x=x, y=y) == compiled(x, y=y) == apart(x, y)
        with pytest.raises(ValueError, match="negative") as caught:
            compiled(-x, y)
        assert [entry.name for entry in caught.traceback][-1] == "failed"
        assert len(caught.traceback) == 2
    held = compiled.__call__
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert held(3, 4) == -2
    del held, caught
    gc.collect()
    assert gone() is None


def test_an_error_of_a_native_call_names_the_line_and_keeps_nothing() -> None:
    compiled = pyrelay.jit(difference)
    compiled(1.0, 2.0)
    assert is_native(compiled)
    y = 2.5
    before = sys.getrefcount(y)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^-1\.5 is negative") as caught:
            compiled(-1.5, y)
        assert caught.value.__context__ is None
        names = [entry.name for entry in caught.traceback]
        assert names[-1] == "failed"  # one frame of pyrelay's own, in no file
        assert len(names) == 2
    del caught
    assert sys.getrefcount(y) == before
    with pytest.raises(ValueError, match="negative") as caught:
        after_another(compiled)
    assert type(caught.value.__context__) is KeyError


def test_a_native_call_holds_what_it_turns_to_and_goes_with_its_function() -> None:
    compiled = pyrelay.jit(difference)
    compiled(1.0, 2.0)
    call = compiled.__call__
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert call(1, 2) == (-1, 1)  # compiled by the function that it keeps
    with pytest.raises(ValueError, match="negative"):
        call(-1.0, 2.0)
    del call
    gc.collect()
    assert gone() is None


def ends(x):
    return x[0], x[-1], x[1:], x[:-1], x[5:2]


def by_steps(x):
    return x[::2, ::2], x[::-1], x[::-2, 3:0:-1], x[:, 1], x[1, 1:]


def in_other_shapes(x):
    return x.ravel(), x.T, x.reshape(x.shape[1], -1), x[None, :, None], x.swapaxes(0, 1)


def in_containers(x):
    return {"first": x[0], "rest": [x[1:], x]}


def of_a_result(x):
    y = x * 2.0
    return y, y[1:], y.T


def at_places(x):
    return np.diag(x)


def of_three_axes(x):
    y = x.reshape(x.shape[0], 1, x.shape[1])
    return y.transpose(1, 0, 2), np.flip(x), np.squeeze(y, 1)


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [p for v in value for p in parts_of(v)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize(
    "function",
    [ends, by_steps, in_other_shapes, in_containers, of_a_result, at_places, of_three_axes],
)
def test_the_short_way_makes_views(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> str:
        raise AssertionError("a view is put together by the long way")

    monkeypatch.setattr("pyrelay.direct_results._assembled", refused)
    compiled = pyrelay.jit(function)
    whole = np.arange(96.0).reshape(12, 8)
    for x in (whole[:6, :4].copy(), whole[:2].copy(), whole[::2, 1:7], whole.T):
        for _ in range(2):
            found, wanted = parts_of(compiled(x)), parts_of(function(x))
            for ours, numpy in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(ours, numpy)
                shared = np.shares_memory(ours, x)
                assert function is at_places or shared == np.shares_memory(numpy, x)


def test_results_nested_deeper_than_python_reads_are_put_together_by_the_long_way() -> None:
    def nested(x, levels):
        found = x
        for k in range(levels):
            found = (found, k)
        return found

    def depth_of(value: Any) -> int:
        count = 0
        while isinstance(value, tuple):
            value, count = value[0], count + 1
        return count

    compiled = pyrelay.jit(nested)
    for levels in (20, 250):
        for _ in range(2):
            found = compiled(np.arange(3.0), levels)
            assert depth_of(found) == levels
            assert found[1] == levels - 1


class Adam:
    def __init__(self):
        self.t, self.layers = 0, [Layer(A.copy(), B.copy()), Layer(C.copy(), 1.5)]
        self.seen, self.state, self.name = [], {"m": A * 0.0, "k": 1}, "adam"


def step(optimiser, x, far):
    optimiser.t += 1
    for layer in optimiser.layers:
        layer.w = layer.w - x * layer.b
        layer.b = layer.w * 2.0 if far else layer.b
    optimiser.state["m"] = x + optimiser.state["m"]
    optimiser.state["k"] *= 3
    optimiser.last = x
    optimiser.seen = [optimiser.t, x]
    return optimiser.t, optimiser.layers[0]


def as_text(value: Any) -> str:
    return repr({k: repr(v) for k, v in vars(value).items()})


def test_objects_that_a_program_changes_take_the_short_way() -> None:
    compiled = pyrelay.jit(step)

    def calls() -> None:
        for far in (True, False):
            got, wanted = Adam(), Adam()
            for _ in range(2):  # attributes that were new are there the second time
                if hasattr(got, "last"):
                    del got.last
                    del wanted.last
                number, first = compiled(got, B, far)
                step(wanted, B, far)
                assert first is got.layers[0]
                assert number == got.t == wanted.t
                assert as_text(got) == as_text(wanted)

    for _ in range(3):
        calls()
    compiled._looks._otherwise = None
    calls()


def drawn_from(generator, n):
    x = [generator.uniform(0.0, 2.0) for _ in range(n)]
    if n > 2:
        raise ValueError("too many")
    return x


@pytest.mark.parametrize(
    "made", [lambda: np.random.default_rng(3), lambda: np.random.RandomState(3),
             lambda: random.Random(3)],
)  # fmt: skip
def test_generators_of_random_numbers_take_the_short_way(made: Any) -> None:
    compiled = pyrelay.jit(drawn_from)
    mine, pythons = made(), made()
    for n in (1, 3, 2):
        for function, generator in ((compiled, mine), (drawn_from, pythons)):
            with pytest.raises(ValueError, match="many") if n > 2 else nullcontext():
                function(generator, n)
        if n == 1:
            for each in (1, 2, 3):
                assert compiled(mine, each % 3) == drawn_from(pythons, each % 3)
            assert compiled._short is not None
            compiled._dispatch = None
        assert mine.random() == pythons.random()


def test_generators_of_other_bits_are_other_programs() -> None:
    compiled = pyrelay.jit(drawn_from)
    for _ in range(2):
        for bits in (np.random.PCG64, np.random.MT19937, np.random.SFC64, np.random.Philox):
            mine, pythons = np.random.Generator(bits(1)), np.random.Generator(bits(1))
            assert compiled(mine, 2) == drawn_from(pythons, 2)
            assert mine.random() == pythons.random()


def rolled(a):
    return np.random.uniform() + a, random.random()


def test_the_generators_of_modules_take_the_short_way() -> None:
    compiled = pyrelay.jit(rolled)
    found = []
    for function in (compiled, rolled):
        np.random.seed(4)
        random.seed(4)
        found.append([function(a) for a in (1.0, 2.0, 3.0)] + [rolled(0.0)])
    assert found[0] == found[1]
    assert compiled._short is not None
    compiled._dispatch = None
    compiled(1.0)


def test_attributes_that_only_some_calls_set_are_set_by_those() -> None:
    def noted(p, x):
        if x[0] > 0.0:
            p.b = x * 2.0
        return p.w + 1.0

    class Noted:
        def __init__(self):
            self.w = A

    compiled = pyrelay.jit(noted)
    for sign in (1.0, -1.0, 1.0):
        p = Noted()
        compiled(p, A * sign)
        assert hasattr(p, "b") == (sign > 0)


def weighted(xs, pairs, names, x):
    total = x * 0.0
    for v in xs:
        total = total + v
    for place, factor in pairs:
        total[place] += factor
    return total, sum([len(name) for name in names])


NUMBERS, PAIRS = [0.5 * k for k in range(9)], [(k % 3, 0.1 * k) for k in range(7)]
NAMES = [f"{'x' * k}" for k in range(20)]


def test_lists_of_many_numbers_and_texts_take_the_short_way() -> None:
    compiled = pyrelay.jit(weighted)
    compiled(NUMBERS, PAIRS, NAMES, A)
    compiled._dispatch = None
    for n in (9, 5, 8):
        given = NUMBERS[:n], PAIRS[: n - 1][:7] if n > 5 else PAIRS, NAMES, A
        same(compiled(*given), weighted(*given))


def appended(xs, x):
    xs[1] = xs[0] * 2
    xs.append(7)
    return x + xs[1]


def test_lists_of_many_numbers_are_written_on_the_short_way() -> None:
    compiled = pyrelay.jit(appended)
    compiled([*range(1, 8)], A)
    compiled._dispatch = None
    got, wanted = [*range(3, 9)], [*range(3, 9)]
    same(compiled(got, A), appended(wanted, A))
    assert got == wanted
    assert {*map(type, got)} == {int}


@pytest.mark.parametrize(
    "other", [[1, 2, 3, 4, 5, 6], [0.5, 1.5], [0.5] * 5 + [1], [0.5] * 5 + ["a"], (0.5,) * 6]
)
def test_lists_of_other_kinds_or_few_items_take_the_long_way(other: Any) -> None:
    def first(xs, x):
        return xs[0] + x, len(xs)

    compiled = pyrelay.jit(first)
    compiled([0.5] * 6, A)
    try:
        wanted = first(other, A)
        same(compiled(other, A), wanted)
    except pyrelay.PyrelayError:  # of lists whose items differ in kind
        assert len(set(map(type, other))) > 1
    same(compiled([0.25] * 7, A), first([0.25] * 7, A))


@pytest.mark.parametrize("made", [set, Counter, dict.fromkeys, lambda keys: {str(k) for k in keys}])
def test_what_was_empty_at_first_is_not_taken_for_empty_later(made):
    @pyrelay.jit
    def count(items):
        return len(items)

    for keys in ([], range(30), [], [1]):
        assert count(made(keys)) == len(made(keys))


def test_an_ordered_dict_is_changed_as_one():
    @pyrelay.jit
    def step(weights):
        weights["a"] = weights["a"] + 1
        weights["c"] = 2.0
        return weights

    for _ in range(2):
        given = OrderedDict(b=1.0, a=2.0)
        assert step(given) is given
        assert given == OrderedDict(b=1.0, a=3.0, c=2.0)
        assert type(given) is OrderedDict
