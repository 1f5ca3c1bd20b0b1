"""A later process runs what an earlier one compiled, as long as it would compile the same."""

from __future__ import annotations

import enum
import functools
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices import cache
from pyrelay.store import programs

MODEL = """
import numpy as np
import pyrelay
import helping

K = 2.0

@pyrelay.jit
def model(x, n):
    total = 0.0
    for row in range(n):
        total += np.sum(helping.layer(x)) * K
    return x[n] * total
"""

HELPING = """
import numpy as np

def layer(x):
    return np.tanh(x) + 1.0
"""

MAIN = """
import sys
import numpy as np
from model import model
import pyrelay
got, wanted = model(np.ones(5), 2), model.py(np.ones(5), 2)
assert abs(got - wanted) < 1e-12, (got, wanted)
try:
    model(np.ones(5), 7)
except IndexError as error:
    print("".join(error.__notes__).count("return x[n] * total"))
compiler = ("infer.interpreter", "infer.values", "lower.planning.instructions", "ir.build")
found = any(f"pyrelay.{name}" in sys.modules for name in compiler)
print(model.cache_info().loaded, found, *sys.argv[1:])
"""


def run(folder: Path) -> str:
    """What the program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYRELAY_CACHE_DIR": str(folder / "cache"), "PYRELAY_VERIFY": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert not [line for line in told if " has been compiling " not in line]  # a busy machine
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("main", MAIN), ("model", MODEL), ("helping", HELPING)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_a_second_process_loads_the_program_and_no_part_of_the_compiler(folder: Path) -> None:
    assert run(folder) == "1\n0 True\n"
    assert run(folder) == "1\n1 False\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("model", "K = 2.0", "K = 3.25"),
        ("model", "K = 2.0", "K = 2"),
        ("model", "* K", "* K * 2"),
        ("model", "import helping", "import helping\n\nhelping.layer = lambda x: x * 5"),
        ("model", "range(n):", "range(n):  # rows"),
        ("helping", "import numpy as np", "import numpy as np\nnp.tanh = np.cos"),
    ],
)
def test_each_change_of_what_is_read_is_noticed(
    folder: Path, name: str, old: str, new: str
) -> None:
    run(folder)
    path = folder / f"{name}.py"
    path.write_text(path.read_text().replace(old, new))
    assert run(folder) == "1\n0 True\n"
    assert run(folder) == "1\n1 False\n"


@pytest.mark.slow
def test_processes_that_start_together_leave_programs_that_load(folder: Path) -> None:
    many = [
        subprocess.Popen(
            [sys.executable, "main.py"], cwd=folder, stdout=subprocess.PIPE,
            env={**os.environ, "PYRELAY_CACHE_DIR": str(folder / "cache"), "PYRELAY_VERIFY": "0"},
        )
        for _ in range(2)
    ]  # fmt: skip
    for each in many:
        out, _ = each.communicate()
        assert each.returncode == 0, out
    assert run(folder) == "1\n1 False\n"


# -- in one process: `again` has nothing in memory -------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A cache of this test's own, which takes programs."""
    with config.override(verify=False, cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache" / programs.KIND


def files(store: Path) -> list[Path]:
    return sorted(store.iterdir()) if store.exists() else []


def scaled(x: Any, n: Any) -> Any:
    return x * n + 1.0


def test_files_that_cannot_be_read_are_written_again(store: Path) -> None:
    for spoiled in (b"", b"not ours", b"half"):
        pyrelay.jit(scaled).again()(np.ones(2), 2)
        (file,) = files(store)
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2] if spoiled == b"half" else spoiled)
        found = pyrelay.jit(scaled).again()
        assert found(np.ones(2), 2).tolist() == [3.0, 3.0]
        assert found.cache_info().loaded == 0
        found = pyrelay.jit(scaled).again()
        assert found(np.ones(2), 2).tolist() == [3.0, 3.0]
        assert found.cache_info().loaded == 1


def test_what_the_checksum_lets_pass_but_is_no_program_counts_as_missing(store: Path) -> None:
    pyrelay.jit(scaled).again()(np.ones(2), 2)
    (file,) = files(store)
    for foreign in (b"no pickle", b"\x80\x05N.", b"\x80\x05](X\x01\x00\x00\x00aK\x01e."):
        cache.current().put(programs.KIND, file.name, foreign)
        found = pyrelay.jit(scaled).again()
        assert found(np.ones(2), 2).tolist() == [3.0, 3.0]
        assert found.cache_info().loaded == 0


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_read(store: Path) -> None:
    pyrelay.jit(scaled).again()(np.ones(2), 2)
    store.chmod(0o500)
    try:
        found = pyrelay.jit(scaled).again()
        found(np.ones(2), 2)
        assert found.cache_info().loaded == 1
    finally:
        store.chmod(0o700)



def test_several_programs_for_one_structure_are_kept_up_to_a_bound(store: Path) -> None:
    def row(x: Any, k: Any) -> Any:
        return x[:, k] if x.shape[0] > k else x[k, :]

    compiled = pyrelay.jit(row).again()
    shapes = [(4, 4), (2, 4)]
    for shape in shapes:
        compiled(np.ones(shape), 3 if shape == (4, 4) else 1)
    again = pyrelay.jit(row).again()
    for shape in shapes:
        again(np.ones(shape), 3 if shape == (4, 4) else 1)
    assert again.cache_info().loaded == again.cache_info().compilations > 0


SETTINGS = ({"verify": True}, {"interpret": True}, {"cache": False}, {"dump": ("fuse",)})


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_to_be_checked_or_shown_is_compiled(
    store: Path, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    pyrelay.jit(scaled).again()(np.ones(2), 2)
    with config.override(**settings):
        found = pyrelay.jit(scaled).again()
        found(np.ones(2), 2)
    assert found.cache_info().loaded == 0


def test_how_long_loading_took_is_printed_on_request(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyrelay.jit(scaled).again()(np.ones(2), 2)
    with config.override(time=True):
        pyrelay.jit(scaled).again()(np.ones(2), 2)
    assert re.fullmatch(r"pyrelay: load/load [\d.]+ ms\n", capsys.readouterr().err)


def test_settings_that_change_programs_have_programs_of_their_own(store: Path) -> None:
    pyrelay.jit(scaled).again()(np.ones(2), 2)
    with config.override(unroll_limit=7):
        found = pyrelay.jit(scaled).again()
        found(np.ones(2), 2)
        assert found.cache_info().loaded == 0
    assert len(files(store)) == 2


def test_a_program_found_on_disk_shows_and_explains_itself(store: Path) -> None:
    pyrelay.jit(scaled).again()(np.ones(2), 2)
    found = pyrelay.jit(scaled).again()
    found(np.ones(2), 2)
    assert "found on disk, loaded in" in found.explain()
    assert "1 kernels: 0 compiled" in found.explain(np.ones(2), 2)
    assert "kernel" in found.lower(np.ones(2), 2).ir()
    assert "multiply_add_kernel" in found.lower(np.ones(2), 2).code()
    assert found.cache_info().compilations == found.cache_info().loaded == 1


def listed(values: list[Any]) -> Any:
    total = 0.0
    for value in values:
        total += value
    values.append(total)
    return values, {"total": total}


def test_lists_that_enter_as_arrays_or_apart_are_found_again(store: Path) -> None:
    for values in ([1.0, 2.0], [float(k) for k in range(40)]):
        mine, theirs = list(values), list(values)
        pyrelay.jit(listed).again()(list(values))
        found = pyrelay.jit(listed).again()
        assert found(mine) == listed(theirs)
        assert mine == theirs
        assert found.cache_info().loaded == 1


def drawn(generator: Any, x: Any) -> Any:
    print("drawing", x.shape)
    return x + generator.normal(size=x.shape) + np.linalg.solve(np.eye(2), x)


def test_programs_that_call_python_are_found_again(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyrelay.jit(drawn).again()(np.random.default_rng(0), np.ones(2))
    found = pyrelay.jit(drawn).again()
    got = found(np.random.default_rng(0), np.ones(2))
    np.testing.assert_allclose(got, drawn(np.random.default_rng(0), np.ones(2)))
    assert capsys.readouterr().out == "drawing (2,)\n" * 3
    assert found.cache_info().loaded == 1


class TooBigError(Exception):
    pass


def checked(x: Any, limit: Any) -> Any:
    if x > limit:
        raise TooBigError(f"{x} is over {limit}")
    return x


def test_exceptions_of_the_users_are_raised_at_their_line(store: Path) -> None:
    pyrelay.jit(checked).again()(1.0, 2.0)
    found = pyrelay.jit(checked).again()
    with pytest.raises(TooBigError, match=r"3.0 is over 2.0") as caught:
        found(3.0, 2.0)
    assert "raise TooBigError" in "".join(caught.value.__notes__)
    assert found.cache_info().loaded == 1


def factory(k: Any) -> Callable[[Any], Any]:
    return lambda x: x * k


def test_functions_of_one_factory_have_programs_of_their_own(store: Path) -> None:
    for k in (2.0, 3.0, np.ones(3)):
        pyrelay.jit(factory(k))(1.0)
        found = pyrelay.jit(factory(k))
        np.testing.assert_array_equal(found(1.0), factory(k)(1.0))
        assert found.cache_info().loaded == 1


@dataclass
class Branch:
    value: Any
    left: Branch | None = None
    right: Branch | None = None

    @functools.cached_property
    def depth(self) -> int:
        below = [b.depth for b in (self.left, self.right) if b is not None]
        return 1 + max(below, default=0)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


def summed(tree: Any) -> Any:
    if tree is None:
        return 0.0
    return tree.value + summed(tree.left) * 0.5 + summed(tree.right)


def grown(tree: Any, x: Any) -> Any:
    tree.value = tree.value * 2
    return Branch(x, tree, Branch(x + 1)), summed(tree)


def ranked(x: Any, level: Any) -> Any:
    record = Branch(x)
    key = operator.itemgetter(1)
    return x * level.value + (level is Level.HIGH) + key((x, 2.0)) + record.depth, level.name


def tree() -> Branch:
    return Branch(1.0, Branch(2.0), Branch(3.0, Branch(4.0)))


@dataclass
class Item:
    weight: float
    uses: int = 0


def heavy(items: list[Item], limit: Any) -> Any:
    found = [item for item in items if item.weight > limit]
    for item in found:
        item.uses += 1
    return found


def lightest(items: list[Item]) -> Any:
    return min(items, key=lambda item: item.weight), sum(item.weight for item in items)


def items(count: int) -> list[Item]:
    return [Item(0.5 * k - 1.0, k) for k in range(count)]


def chained(n: Any) -> Any:
    head = None
    for k in range(n):
        head = (float(k), head)
    total = 0.0
    node = head
    while node is not None:
        total, node = total + node[0], node[1]
    return head, total


def joined(spans: list[list[int]]) -> Any:
    spans.sort()
    found = [spans[0]]
    for span in spans[1:]:
        if span[0] > found[-1][1]:
            found.append(span)
        found[-1][1] = max(found[-1][1], span[1])
    return found, [[end - start] for start, end in found]


@pytest.mark.parametrize(("function", "args"), [
    (summed, lambda: (tree(),)), (grown, lambda: (tree(), 2.0)),
    (ranked, lambda: (2.0, Level.HIGH)), (heavy, lambda: (items(4), 0.2)),
    (lightest, lambda: (items(20),)), (chained, lambda: (5,)),
    (joined, lambda: ([[5, 7], [1, 3], [6, 8], [2, 3], [9, 9]],)),
])  # fmt: skip
def test_trees_nodes_and_members_of_enumerations_are_found_again(
    store: Path, function: Any, args: Any
) -> None:
    pyrelay.jit(function).again()(*args())
    found = pyrelay.jit(function).again()
    mine, theirs = args(), args()
    assert found(*mine) == function(*theirs)
    assert mine == theirs
    assert found.cache_info().loaded == 1


def class_of_items(factor: Any) -> Any:
    @dataclass
    class Scaled:
        x: float

        def weight(self) -> Any:
            return self.x * factor

    return Scaled


def weighed(items: list[Any]) -> Any:
    return sum(item.weight() for item in items)


def test_a_class_of_nodes_that_changed_has_a_program_of_its_own(store: Path) -> None:
    for factor in (2.0, 3.0):
        cls = class_of_items(factor)
        given = [cls(float(k)) for k in range(20)]
        first = pyrelay.jit(weighed).again()
        assert first(given) == weighed(given)
        found = pyrelay.jit(weighed).again()
        assert found(given) == weighed(given)
        assert (first.cache_info().loaded, found.cache_info().loaded) == (0, 1)


WEIGHTS = np.arange(4.0)
SAME, LISTED = WEIGHTS, [np.ones(4), WEIGHTS]


def two_names(x: Any) -> Any:
    return (x * WEIGHTS + SAME).sum()


def name_and_item(x: Any) -> Any:
    return (x * WEIGHTS + LISTED[1]).sum()


@pytest.mark.parametrize(("function", "loads"), [(two_names, 1), (name_and_item, 0)])
def test_programs_of_one_array_under_two_names_are_not_found_for_two_arrays(
    store: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], loads: int
) -> None:
    x = np.ones(4)
    assert pyrelay.jit(function)(x) == 12.0
    again = pyrelay.jit(function)
    assert again(x) == 12.0
    assert again.cache_info().loaded == loads
    monkeypatch.setitem(globals(), "WEIGHTS", np.full(4, 10.0))
    for compiled in (again, pyrelay.jit(function)):
        assert compiled(x) == 46.0


READING = """
import enum
import itertools
import pyrelay

class Kind(enum.Enum):
    PLUS = "+"
    MINUS = "-"

@pyrelay.jit
def model(text, times):
    counter, total, digits = itertools.count(), 0, 0
    for character in text:
        if character.isdigit():
            digits = 10 * (digits % 1000) + int(character)
    spelled = "kitten"
    for k in range(times):
        if spelled[k % len(spelled)] == "t":
            total += next(counter)
    return total, digits, Kind("-").name
"""

ASKING = """
from model import model
assert model("a1b23" * 20, 9) == model.py("a1b23" * 20, 9)
print(model.cache_info().loaded)
"""


def test_what_pyrelay_and_pythons_library_bring_along_has_a_place(folder: Path) -> None:
    (folder / "model.py").write_text(READING)
    (folder / "main.py").write_text(ASKING)
    assert run(folder) == "0\n"
    assert run(folder) == "1\n"
