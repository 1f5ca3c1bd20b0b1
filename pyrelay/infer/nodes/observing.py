"""The sorts of fields, from their values over all nodes and from annotations.

In: the classes of a data type, and the values of each field. Out: `Sort`s, of which a schema is
made (datatypes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.errors import TypeMismatchError
from pyrelay.infer.nodes.annotations import Expected, expected_fields
from pyrelay.infer.nodes.datatypes import (
    NO_NODE,
    Array,
    Child,
    Choice,
    Constant,
    Family,
    Items,
    Nothing,
    Number,
    Sort,
    Struct,
    Text,
    enter,
    merged,
    of_numbers,
    ones_of,
)
from pyrelay.ir import types
from pyrelay.records import dataclass


@dataclass
class Observer:
    """Finds the sorts of fields from their values over all nodes, with the help of annotations."""

    family: Family

    def of_class(
        self, cls: type, columns: Mapping[str, Sequence[Any]]
    ) -> tuple[tuple[str, Sort], ...]:
        """Names and sorts of the fields of a class, of which these are the values in all nodes."""
        expected = expected_fields(cls)
        return tuple(
            (n, self.of(values, expected.get(n), f"{cls.__name__}.{n}"))
            for n, values in columns.items()
        )

    def predicted(self, cls: type) -> tuple[tuple[str, Sort], ...] | None:
        """The fields of a class without nodes, if the annotations settle them."""
        if cls.__subclasses__():
            return None
        found = []
        for name, expected in expected_fields(cls).items():
            sort = self._promised(expected)
            if sort is None:
                return None
            found.append((name, sort))
        return tuple(found) if found else None

    def _promised(self, expected: Expected) -> Sort | None:
        if not expected.complete:
            return None
        plain = expected.number is None and expected.sequence is None
        nodes = self._kinds(expected)
        if nodes and plain:
            return Child(nodes)
        if expected.number is not None and not nodes and not expected.none:
            return Number(_NUMBER_TYPES[expected.number])
        if expected.sequence is not None and not nodes and not expected.none:
            items = [self._promised(e) for e in expected.items]
            if any(i is None for i in items):
                return None
            known = [i for i in items if i is not None]
            if expected.fixed:
                return Struct(tuple(known))
            return Items(expected.sequence, known[0])
        return None

    def _kinds(self, expected: Expected) -> tuple[int, ...]:
        """The kinds that an annotation names, None's among them; empty if it names no class."""
        found = {
            self.family.kinds[c] for c in expected.classes
            if c in self.family.kinds and not c.__subclasses__()
        }
        if found and expected.none:
            found.add(NO_NODE)
        return tuple(sorted(found))

    def of(self, values: Sequence[Any], expected: Expected | None, name: str) -> Sort:
        """The sort of these values."""
        quick = self._of_one_kind(values, expected, name)
        if quick is not None:
            return quick
        groups: dict[Any, list[Any]] = {}
        for value in values:
            groups.setdefault(self._group(value), []).append(value)
        self._join_tuples(groups, expected)
        named = self._kinds(expected) if expected is not None else ()
        sorts: list[Sort] = []
        for group, members in groups.items():
            own = self._of_group(group, members, expected, name)
            if isinstance(own, Choice):
                sorts += own.cases
            else:
                enter(sorts, own)
        if named and _CHILD not in groups and set(groups) <= {("constant", type(None), None)}:
            enter(sorts, Child(named))
        elif named:
            sorts = [merged(s, Child(named)) if isinstance(s, Child) else s for s in sorts]
        if not sorts:
            return Nothing()
        ordered = sorted(sorts, key=repr)
        return ordered[0] if len(ordered) == 1 else Choice(tuple(ordered))

    def _of_one_kind(
        self, values: Sequence[Any], expected: Expected | None, name: str
    ) -> Sort | None:
        """The sort of Python numbers of one class, arrays of one type, lists, or nodes."""
        classes = set(map(type, values))
        if len(classes) == 1:
            (cls,) = classes
            if cls in _NUMBER_TYPES:
                return Number(_NUMBER_TYPES[cls])
            if cls is str and self.family.families.rows:
                return Text()
            if cls is np.ndarray and len({(v.dtype, v.ndim) for v in values}) == 1:
                return self._array(list(values), values[0].dtype, name)
            if cls is list and (expected is None or not self._kinds(expected)):
                return self._sequence(list, None, list(values), expected, name)
        kinds = {self._kind(v) for v in values} if dict in classes else {
            self.family.kinds.get(cls, -1) for cls in classes
        }
        if not kinds or kinds == {NO_NODE} or -1 in kinds:
            return None
        named = self._kinds(expected) if expected is not None else ()
        return Child(tuple(sorted({*kinds, *named})))

    def _join_tuples(self, groups: dict[Any, list[Any]], expected: Expected | None) -> None:
        """Tuples with nodes in them, or of several lengths, are sequences of any length."""
        lengths = [g for g in groups if isinstance(g, tuple) and g[0] is tuple]
        told = expected if expected is not None and expected.sequence is tuple else None
        if told is None or not told.fixed:
            nodes = any(
                self._kind(x) > NO_NODE for g in lengths for v in groups[g] for x in v
            )
            if nodes or len(lengths) > 1 or told is not None:
                joined = [v for g in lengths for v in groups.pop(g)]
                if lengths:
                    groups[tuple, None] = joined

    def _group(self, value: Any) -> Any:
        """Values of one group have one sort."""
        cls = type(value)
        if self._kind(value) > NO_NODE:
            return _CHILD
        if cls is str and self.family.families.rows:
            return _TEXT
        if types.of_scalar(value) is not None:
            return _NUMBER
        if cls is np.ndarray:
            return ("array", value.dtype, value.ndim)
        if value is None or isinstance(value, (str, bytes)):
            return ("constant", cls, value)
        if cls is list or cls is tuple:
            return (cls, None if cls is list else len(value))
        if cls is dict or cls is set:
            return ("other", cls)
        try:
            hash(value)
        except TypeError:
            return ("other", cls)
        return ("constant", cls, value)

    def _kind(self, value: Any) -> int:
        """The kind of a node; -1 for what is none."""
        return self.family.kinds.get(self.family.families.class_of(value), -1)

    def _of_group(
        self, group: Any, members: list[Any], expected: Expected | None, name: str
    ) -> Sort:
        if group == _CHILD:
            return Child(tuple(sorted(set(map(self._kind, members)))))
        if group == _TEXT:
            return Text()
        if group == _NUMBER:
            return of_numbers(t for t in map(types.of_scalar, members) if t is not None)
        match group:
            case ("constant", cls, value):
                return Constant(value, cls)
            case ("array", dtype, _):
                return self._array(members, dtype, name)
            case (cls, length) if cls is list or cls is tuple:
                return self._sequence(cls, length, members, expected, name)
        raise TypeMismatchError(
            f"{name} is an object of class {type(members[0]).__name__}, which cannot be a field of "
            "a tree.",
            hints=("keep numbers, arrays, texts, lists, tuples and other nodes in it",),
        )

    def _array(self, members: list[Any], dtype: Any, name: str) -> Sort:
        known = types.from_numpy(dtype)
        if known is None:
            raise TypeMismatchError(f"{name} is an array of {dtype}, which is not supported.")
        shapes = {v.shape for v in members}
        if len(shapes) > 1:
            shown = " and ".join(map(str, sorted(shapes)[:2]))
            raise TypeMismatchError(
                f"the arrays in {name} have different shapes, {shown}.",
                notes=("the arrays of a field are stored as rows of one array",),
                hints=("pad them to one shape",),
            )
        return Array(known.name, ones_of(shapes.pop()))

    def _sequence(
        self, cls: type, length: int | None, members: list[Any], expected: Expected | None,
        name: str,
    ) -> Sort:
        told = expected if expected is not None and expected.sequence is cls else None
        if length is not None:
            parts = []
            for k in range(length):
                inner = told.items[k] if told is not None and k < len(told.items) else None
                parts.append(self.of([v[k] for v in members], inner, f"{name}[{k}]"))
            return Struct(tuple(parts))
        inner = told.items[0] if told is not None else None
        item = self.of([v for each in members for v in each], inner, f"{name}[...]")
        if isinstance(item, Nothing) and inner is not None:
            item = self._promised(inner) or item
        return Items(cls, item)


_CHILD = "child"
_TEXT = "text"
_NUMBER = "number"
_NUMBER_TYPES = {
    float: types.PY_FLOAT, int: types.PY_INT, bool: types.PY_BOOL, complex: types.PY_COMPLEX,
}
