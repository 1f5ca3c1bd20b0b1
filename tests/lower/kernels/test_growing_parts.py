"""Recursive functions whose lists, dicts and sets grow are native; the plan makes room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config

NATIVE = " on this thread"


def remembered(n: int, memo: dict[int, int]) -> int:
    if n in memo:
        return memo[n]
    if n < 2:
        return n
    memo[n] = (remembered(n - 1, memo) + remembered(n - 2, memo)) % 10007
    return memo[n]


def by_dict(n: int) -> Any:
    memo: dict[int, int] = {}
    return remembered(n, memo), len(memo)


def chosen(numbers: list[int], k: int, path: list[int], left: int) -> int:
    if left == 0:
        return sum(path) * len(path)
    if k == len(numbers) or left < 0:
        return 0
    path.append(numbers[k])
    total = chosen(numbers, k + 1, path, left - numbers[k])
    path.pop()
    return total + chosen(numbers, k + 1, path, left)


def by_path(n: int) -> int:
    return chosen([3 * i % 7 + 1 for i in range(n)], 0, [], 11)


def combined(n: int, k: int, start: int, path: list[int], out: list[int]) -> None:
    if len(path) == k:
        out.append(sum(path) * path[0])
        return
    for i in range(start, n):
        path.append(i)
        combined(n, k, i + 1, path, out)
        path.pop()


def by_loop(n: int) -> list[int]:
    out: list[int] = []
    combined(n, 3, 1, [], out)
    return out


def spread(seen: set[int], k: int, most: int) -> int:
    if k in seen or k > most:
        return 0
    seen.add(k)
    return 1 + spread(seen, 2 * k, most) + spread(seen, 3 * k, most)


def by_set(n: int) -> Any:
    seen = {-1}
    return spread(seen, 1, n), len(seen), sum(seen)


def swapped(x: list[int], y: list[int], n: int) -> int:
    if n == 0:
        return len(x) - len(y)
    x.append(n)
    return swapped(y, x, n - 1) + x[-1]


def in_turn(n: int) -> Any:
    x: list[int] = []
    y = [1, 2]
    return swapped(x, y, n), x, y


def pushed(a: Any, stack: list[int], k: int) -> int:
    """An array that stays where it is, beside a list that grows."""
    if k == len(a):
        return len(stack)
    while len(stack) > 0 and a[stack[-1]] < a[k]:
        a[stack.pop()] += k
    stack.append(k)
    return pushed(a, stack, k + 1)


def by_stack(n: int) -> Any:
    a = np.arange(n) * 7 % 5
    return pushed(a, [], 0), a


@pytest.mark.parametrize("room", [1 << 18, 1500, 0])
@pytest.mark.parametrize(
    ("f", "n"),
    [(by_dict, 40), (by_path, 7), (by_loop, 6), (by_set, 60), (in_turn, 21), (by_stack, 30)],
)
def test_what_grows_does_so_as_in_python(
    f: Any, n: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrelay.lower.text.call_spelling.STACK_BYTES", room)
    fast = pyrelay.jit(f)
    with config.override(cache=False):
        got = fast(n)
    for one, other in zip(as_tuple(got), as_tuple(f(n)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert NATIVE in fast.code(n)


def test_room_is_made_by_functions_of_the_plan() -> None:
    code = pyrelay.jit(by_path).code(7)
    assert "# plan chosen_part1(" in code
    assert "resume(" in code.split("def routine1(")[1].split("\n\n")[0]


def test_what_fails_in_the_middle_leaves_nothing_behind() -> None:
    def failing(n: int, out: list[int]) -> int:
        out.append(n)
        return 10 // n + failing(n - 1, out) if n > -3 else 0

    def whole(n: int) -> int:
        return failing(n, [])

    fast = pyrelay.jit(whole)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            fast(100)


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
