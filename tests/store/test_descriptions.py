"""Objects have one digest where a compiled program cannot tell them apart, and only there."""

# ruff: noqa: F821 -- names of axes

from __future__ import annotations

import collections
import enum
import functools
import itertools
import linecache
import math
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pyrelay import Tensor
from pyrelay.infer.guards import ABSENT
from pyrelay.infer.structure import Identity
from pyrelay.store.descriptions import Description, NoDescriptionError, described


def defined(text: str, name: str = "f") -> Any:
    """What a text defines under a name, in a module and a file of its own."""
    file = f"<file {next(NUMBERS)}>"
    module = types.ModuleType("defined_here")
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), vars(module))
    return vars(module)[name]


NUMBERS = itertools.count()
PLAIN = "def f(x, k=1.0):\n    return x * k + 1\n"
CLASS = "class f:\n    unit = 1.0\n    def at(self, x):\n        return x\n"

FIELDS = "from pyrelay import Tensor\nclass f:\n    w: Tensor['n', 3]\n"


def declared(annotation: Any) -> Any:
    """A function with an annotation of its parameter."""
    made = defined(PLAIN)
    made.__annotations__ = {"x": annotation}
    return made


def record(factory: Any) -> type:
    @dataclass(frozen=True)
    class Record:
        a: Any = field(default_factory=factory)
        b: int = 1

    return Record


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "ints": (1, 2),
    "an int and a float": (1, 1.0),
    "an int and a bool": (1, True),
    "signs of zero": (0.0, -0.0),
    "complex numbers": (complex(1, 0.0), complex(1, -0.0)),
    "texts and bytes": ("a", b"a"),
    "tuples": ((1, (2,)), ((1, 2),)),
    "types of NumPy's numbers": (np.float32(1), np.float64(1)),
    "dtypes": (np.dtype("f4"), np.dtype("f8")),
    "slices": (slice(1, 2), slice(1, 3)),
    "sets": (frozenset((1, 2)), frozenset((1, 3))),
    "functions of NumPy": (np.sin, np.cos),
    "functions of Python": (math.sin, math.cos),
    "functions of C that call others": (np.sum, np.mean),
    "modules": (math, sys),
    "bodies": (defined(PLAIN), defined(PLAIN.replace("+", "-"))),
    "constants": (defined(PLAIN), defined(PLAIN.replace("+ 1", "+ 2"))),
    "names read": (defined("def f(x):\n    return a\n"), defined("def f(x):\n    return b\n")),
    "defaults": (defined(PLAIN), defined(PLAIN.replace("1.0", "2.0"))),
    "keyword defaults": (
        defined(PLAIN.replace("k=", "*, k=")), defined(PLAIN.replace("k=1", "*, k=2")),
    ),
    "lines": (defined(PLAIN), defined("\n" + PLAIN)),
    "comments": (defined(PLAIN), defined(PLAIN.replace("+ 1", "+ 1  # one"))),
    "functions inside": (
        defined("def f(x):\n    return (lambda y: y + 1)(x)\n"),
        defined("def f(x):\n    return (lambda y: y + 2)(x)\n"),
    ),
    "methods": (defined(CLASS), defined(CLASS.replace("return x", "return -x"))),
    "attributes of classes": (defined(CLASS), defined(CLASS.replace("1.0", "2.0"))),
    "bases": (defined(CLASS), defined(CLASS.replace("f:", "f(Exception):"))),
    "axes in annotations": (declared(Tensor["n", 3]), declared(Tensor["n", 4])),
    "dtypes in annotations": (
        declared(Tensor["n", np.float32]), declared(Tensor["n", np.floating]),
    ),
    "parts of annotations": (
        declared(dict[str, Tensor["n"]]), declared(dict[str, Tensor["m"]]),
    ),
    "cases of annotations": (declared(Tensor["n"] | None), declared(Tensor["m"] | None)),
    "fields in annotations": (
        declared(defined(FIELDS)), declared(defined(FIELDS.replace("3", "4"))),
    ),
    "partial functions": (
        functools.partial(defined(PLAIN), k=1.0), functools.partial(defined(PLAIN), k=2.0),
    ),
    "which are one": ((f := defined(PLAIN), f), (defined(PLAIN), defined(PLAIN))),
    "an object and itself as an identity": (math.sin, Identity(math.sin)),
    "nothing": (None, ABSENT),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_a_program_can_tell_apart_has_two_digests(name: str) -> None:
    one, other = DIFFERENT[name]
    assert described([one]) != described([other])


SAME: dict[str, Callable[[], Any]] = {
    "a function": lambda: defined(PLAIN),
    "a class": lambda: defined(CLASS),
    "a dataclass": lambda: record(list),
    "a class of names": lambda: collections.namedtuple("pair", "a b"),
    "members of an enumeration": lambda: tuple(
        enum.Enum("Level", {"LOW": 1, "HIGH": "high"})  # type: ignore[arg-type]
    ),
    "annotations": lambda: (declared(Tensor["n", 3]), declared(list[Tensor["n"] | None])),
    "a closure": lambda: (lambda k: lambda x: x * k)(2.0),
    "a class that has itself": lambda: defined(
        "class f:\n    def at(self):\n        return f, super().__repr__()\n"
    ),
    "arrays, which are never constants": lambda: (np.random.default_rng().normal(size=3), [1], {}),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_made_again_has_the_same_digest(name: str) -> None:
    assert described([SAME[name]()]) == described([SAME[name]()])


def test_fields_of_dataclasses_count_with_their_factories() -> None:
    assert described([record(list)]) != described([record(tuple)])


def test_objects_of_libraries_without_a_version_have_no_description() -> None:
    odd = types.SimpleNamespace(__call__=None)
    assert described([odd])  # it becomes an argument: only its class counts
    with pytest.raises(NoDescriptionError):
        described([type("Callable", (), {"__call__": lambda self: 1, "__slots__": ()})()])


def test_a_file_of_the_users_may_have_the_name_of_a_module_of_pythons() -> None:
    made = [defined(PLAIN), defined(PLAIN.replace("+", "-"))]
    before = sys.modules.get("this")
    try:
        digests = []
        for function in made:
            module = sys.modules["this"] = types.ModuleType("this")
            module.__file__ = "/somewhere/this.py"
            module.f = function  # type: ignore[attr-defined]
            function.__module__ = "this"
            digests.append(described([function]))
    finally:
        del sys.modules["this"]
        if before is not None:
            sys.modules["this"] = before
    assert digests[0] != digests[1]


def test_what_a_name_of_numpy_means_counts_with_the_name_of_the_function_found() -> None:
    def read(value: Any) -> str:
        made = Description()
        made.member(np, "sin", value)
        return made.digest()

    assert read(np.sin) == read(np.sin)
    assert read(np.sin) != read(np.cos)
    assert read(np.sin) != read(defined(PLAIN))
