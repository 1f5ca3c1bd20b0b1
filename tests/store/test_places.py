"""An object is found again by its path, in whatever leads to it."""

from __future__ import annotations

import enum
import fractions
import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer import own_arrays
from pyrelay.infer.structure import Identity
from pyrelay.store.places import Places, own_place


class Level(enum.Enum):
    LOW = 1


@dataclass
class Record:
    a: list[int] = field(default_factory=lambda: [1])

    def at(self, x: Any) -> Any:
        return x


def outer(k: Any) -> Any:
    def inner(x: Any) -> Any:
        return x * k

    return inner


record, closure = Record(), outer(2.0)
compiled = pyrelay.jit(closure)

FOUND: dict[str, tuple[Any, Any]] = {
    "an item": ((1, (outer, Record)), Record),
    "an object that stands for itself": (("object", Identity(outer)), outer),
    "a cell": (closure, closure.__closure__[0]),
    "the names around a function": (closure, globals()),
    "a method's function": (record.at, Record.at),
    "a method's object": (record.at, record),
    "the class of an object": (record.at, Record),
    "a member of a class": (Record, Record.at),
    "what makes a field": (Record, Record.__dataclass_fields__["a"].default_factory),
    "a member of an enumeration": (Level, Level.LOW),
    "a base": (type("Other", (Record,), {}), Record),
    "what a partial function calls": (functools.partial(outer, 1), outer),
    "the function below a transform": (pyrelay.grad(compiled), closure),
    "a function that is cached": (functools.lru_cache(outer), outer),
    "a module": (1, np),
    "the namespace of a module": (1, vars(np)),
    "a class of NumPy's": (1, np.ndarray),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_path_leads_back_to_its_object(name: str) -> None:
    start, wanted = FOUND[name]
    places = Places()
    places.enter("callee", start)
    path = places.path(wanted)
    assert path is not None
    again = Places()
    again.enter("callee", start)
    assert again.at(path) is wanted


def test_what_nothing_leads_to_has_no_path() -> None:
    places = Places()
    places.enter("callee", outer)
    assert places.path(Record()) is None
    assert places.path({"__name__": "numpy"}) is None
    with pytest.raises(LookupError):
        places.at(("key", 0))


def test_what_the_librarys_own_functions_read_has_a_place() -> None:
    from pyrelay.infer.in_python import containers

    name, value = next((n, v) for n, v in vars(containers).items() if isinstance(v, dict)
                       and not n.startswith("__"))  # fmt: skip
    path = own_place(value)
    assert path == ("module", containers.__name__, name)
    assert Places().at(path) is value
    assert own_place({}) is None


def test_what_pyrelay_made_while_it_compiled_is_made_again() -> None:
    array = own_arrays.numbers((3, 1, 2))
    path = own_place(array)
    assert path == ("module", own_arrays.__name__, "numbers", ("made", ((3, 1, 2),)))
    assert Places().at(path) is array
    assert own_place(np.array([3, 1, 2])) is None


def test_methods_of_classes_of_pythons_library_have_places() -> None:
    for function in (enum.Enum._missing_.__func__, fractions.Fraction.limit_denominator):
        path = Places().path(function)
        assert path is not None
        assert Places().at(path) is function
